/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One event on its tour: described by the host, brought to one plugin after the other in index order, its answers merged.
 *
 *   NEW -> DEBT? -> DESCRIBE -> GOING -> CHANGES -> DONE
 *                                 |         what plugins want of other containers is carried out
 *                                 '- at each plugin: answered | not in time | lost | refused
 *
 * A tour waits for a plugin at most request_timeout, counted from when its delivery is queued (H5); then it goes on, and the
 * delivery stays in the plugin's queue without it. So a plugin may hear late, but in order, and never holds up more than that.
 */
#include <stdio.h>
#include <stdarg.h>

#include "hooks/nri-int.h"
#include "src/base/span.h"
#include "src/base/utf8.h"
#include "src/base/wire.h"

const char *ck_nri_event_name(enum ck_nri_event event)
{
	switch (event) {
#define CK_NRI_EVENT_NAME(name, value, text) case CK_NRI_##name: return text;
	CK_NRI_EVENTS(CK_NRI_EVENT_NAME)
#undef CK_NRI_EVENT_NAME
	}
	return "?";
}

bool ck_nri_event_announces(enum ck_nri_event event)
{
	return event == CK_NRI_RUN_POD_SANDBOX || event == CK_NRI_CREATE_CONTAINER;
}

static bool is_stop(enum ck_nri_event event)
{
	return event == CK_NRI_STOP_POD_SANDBOX || event == CK_NRI_STOP_CONTAINER;
}

static bool is_remove(enum ck_nri_event event)
{
	return event == CK_NRI_REMOVE_POD_SANDBOX || event == CK_NRI_REMOVE_CONTAINER;
}

static bool of_pod(enum ck_nri_event event)
{
	return event <= CK_NRI_REMOVE_POD_SANDBOX || event == CK_NRI_UPDATE_POD_SANDBOX || event == CK_NRI_POST_UPDATE_POD_SANDBOX;
}

bool ck_nri_event_tears_down(enum ck_nri_event event)
{
	switch (event) {
	case CK_NRI_RUN_POD_SANDBOX:
	case CK_NRI_CREATE_CONTAINER:
	case CK_NRI_START_CONTAINER:
	case CK_NRI_UPDATE_CONTAINER:
	case CK_NRI_UPDATE_POD_SANDBOX:
	case CK_NRI_VALIDATE_CONTAINER_ADJUSTMENT:
		return false;
	default:
		return true;
	}
}

/* the state it shows may have changed since it was described */
static bool wants_fresh(enum ck_nri_event event)
{
	switch (event) {
	case CK_NRI_RUN_POD_SANDBOX:
	case CK_NRI_STOP_POD_SANDBOX:
	case CK_NRI_POST_UPDATE_POD_SANDBOX:
	case CK_NRI_CREATE_CONTAINER:
	case CK_NRI_POST_START_CONTAINER:
	case CK_NRI_POST_UPDATE_CONTAINER:
	case CK_NRI_STOP_CONTAINER:
		return true;
	default:
		return false;
	}
}

void ck_queued_free(struct ck_queued *delivery)
{
	if (!delivery)
		return;
	ck_know_unref(delivery->known);
	ck_blob_unref(delivery->pod);
	ck_blob_unref(delivery->object);
	ck_blob_unref(delivery->extra);
	free(delivery);
}

/* ---- begin and end ------------------------------------------------------------------------------------------------------ */

static void unlink_tour(struct ck_tour *tour)
{
	*(tour->prev ? &tour->prev->next : &tour->nri->tours) = tour->next;
	if (tour->next)
		tour->next->prev = tour->prev;
	tour->prev = tour->next = NULL;
}

static void tour_free(struct ck_tour *tour)
{
	ck_nri_job_forget(tour->job);
	ck_know_unref(tour->known);
	ck_blob_unref(tour->pod);
	ck_blob_unref(tour->container);
	ck_blob_unref(tour->resources);
	ck_blob_unref(tour->overhead);
	ck_adjust_free(tour->adjust);
	ck_bytes_free(&tour->adjustment);
	ck_bytes_free(&tour->owners);
	ck_bytes_free(&tour->result_resources);
	free(tour->pod_id);
	free(tour->names);
	free(tour);
}

static void done(struct ck_tour *tour)
{
	struct ck_tour **end = &tour->nri->tours_done;
	ck_nri_job_forget(CK_TAKE(tour->job));
	if (tour->at)
		CK_TAKE(tour->at)->tour = NULL;
	unlink_tour(tour);
	tour->phase = CK_TOUR_DONE;
	while (*end)
		end = &(*end)->next;
	*end = tour;
	/* without a cache nobody releases it */
	if (tour->known && is_remove(tour->event) && !tour->known->entry)
		ck_know_forget(tour->nri, tour->known);
}

static void refuse(struct ck_tour *tour, const char *fmt, ...) CK_PRINTF(2, 3);
static void refuse(struct ck_tour *tour, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	vsnprintf(tour->refusal, sizeof(tour->refusal), fmt, args);
	va_end(args);
	tour->refused = true;
}

/* whoever has not heard of it yet need not: it is undone */
static void withdraw(struct ck_tour *tour)
{
	for (struct ck_plugin *plugin = tour->nri->plugins, *next; plugin && tour->known; plugin = next) {
		next = plugin->next;
		ck_plugin_unqueue(plugin, tour->known);
	}
}

static void end_refused(struct ck_tour *tour)
{
	if (ck_nri_event_announces(tour->event) || tour->event == CK_NRI_VALIDATE_CONTAINER_ADJUSTMENT)
		if (!CK_BROKEN(R38))
			withdraw(tour);
	done(tour);
}

static struct ck_blob *blob_of(const void *p, size_t len, bool *whole)
{
	struct ck_blob *blob = p ? ck_blob_new(p, len) : NULL;
	*whole = *whole && (!p || blob);
	return blob;
}

/* the object of a call: found, or made if the call announces it */
static int find_object(struct ck_tour *tour, const struct ck_nri_call *call, const struct ck_told *told, struct ck_error *err)
{
	struct ck_nri *nri = tour->nri;
	enum ck_kind kind = of_pod(call->event) ? CK_SANDBOX : CK_CONTAINER;
	const char *id = kind == CK_SANDBOX ? call->pod_id : call->container_id;
	struct ck_known *known = ck_know_find(nri, kind, id);
	if (!known && told)
		known = ck_know_make(nri, kind, id, told);
	else if (!known && ck_nri_event_announces(call->event)) {
		const struct ck_told key = { .size = sizeof(key), .kind = kind, .id = id, .sandbox_id = call->pod_id };
		known = ck_know_make(nri, kind, id, &key);
		if (known && call->container_name) { /* only plugins know this id */
			char *name = ck_strdup(call->container_name);
			if (!name) {
				ck_know_forget(nri, known);
				return ck_nomem(err);
			}
			HASH_DELETE(by_id, nri->by_id, known);
			known->id[0] = '\0';
			free(known->name);
			known->name = name;
			known->attempt = call->attempt;
			nri->unmade++;
		}
		if (known && ck_know_all(nri, known) < 0)
			return ck_nomem(err);
	} else if (!known) {
		return 0; /* nobody knows it */
	}
	if (!known)
		return ck_nomem(err);
	tour->known = ck_know_ref(known);
	return 0;
}

/* what the caller tells is as good as what the host would describe */
static void keep_described(struct ck_tour *tour, const struct ck_nri_call *call)
{
	struct ck_known *pod = ck_know_find(tour->nri, CK_SANDBOX, call->pod_id);
	if (pod && call->pod)
		ck_know_described(tour->nri, pod, call->pod, call->pod_len, NULL);
	if (tour->known->kind == CK_CONTAINER && call->container)
		ck_know_described(tour->nri, tour->known, call->container, call->container_len, NULL);
}

int ck_tour_begin(struct ck_nri *nri, const struct ck_nri_call *call, const struct ck_told *told, enum ck_nri_event then,
		  ck_nri_cb *cb, void *userdata, struct ck_error *err)
{
	struct ck_tour *tour = CK_NEW(struct ck_tour), **end = &nri->tours;
	bool whole = true;
	if (!tour)
		return ck_nomem(err);
	tour->nri = nri;
	tour->event = call->event;
	tour->then = then;
	tour->before_create = call->event == CK_NRI_CREATE_CONTAINER && call->container_name;
	tour->cb = cb;
	tour->userdata = userdata;
	tour->began = ck_nri_now(nri);
	tour->due = CK_NRI_FOREVER;
	tour->pod = blob_of(call->pod, call->pod_len, &whole);
	tour->container = blob_of(call->container, call->container_len, &whole);
	tour->resources = blob_of(call->resources, call->resources_len, &whole);
	tour->overhead = blob_of(call->overhead, call->overhead_len, &whole);
	tour->pod_id = ck_strdup(call->pod_id);
	tour->names = ck_strdup(told ? told->told : NULL);
	if (!whole || (call->pod_id && !tour->pod_id) || (told && told->told && !tour->names) ||
	    find_object(tour, call, told, err) < 0) {
		tour_free(tour);
		return ck_nomem(err);
	}
	if (tour->known)
		keep_described(tour, call);
	if (tour->known && is_stop(call->event) && !CK_BROKEN(H1))
		tour->known->stop_begun = true; /* from here on it is in no list */
	while (*end) {
		tour->prev = *end;
		end = &(*end)->next;
	}
	*end = tour;
	return 0;
}

/* ---- who hears of it ----------------------------------------------------------------------------------------------------- */

/* has this connection still to hear of this event? */
static bool owed(enum ck_nri_event event, const struct ck_knower *k)
{
	if (ck_nri_event_announces(event))
		return !k->told && !k->listed && !k->announcing;
	if (!k->told && !k->listed && !k->announcing)
		return false;
	if (event == CK_NRI_POST_CREATE_CONTAINER)
		return !k->listed && !k->stopped;
	if (is_stop(event))
		return !k->stopped || CK_BROKEN(R24);
	if (is_remove(event))
		return !k->removed || CK_BROKEN(R29);
	return !k->stopped;
}

/* the event passes by @k: its bytes go out, or it is not subscribed to it */
static void passes(enum ck_nri_event event, struct ck_knower *k)
{
	if (ck_nri_event_announces(event))
		k->told = true;
	else if (is_stop(event))
		k->stopped = true;
	else if (is_remove(event))
		k->removed = k->stopped = true;
}

bool ck_queued_passes(const struct ck_queued *delivery, const struct ck_plugin *plugin)
{
	struct ck_knower *k = ck_know_who(delivery->known, plugin);
	enum ck_nri_event event = delivery->event;
	if (!k)
		return false; /* it was left out of its list, because it had gone */
	k->announcing -= ck_nri_event_announces(event);
	if (ck_nri_event_announces(event)) {
		if (k->told)
			return false;
	} else if (!k->told || (is_stop(event) && k->stopped && !CK_BROKEN(R24)) ||
		   (is_remove(event) && k->removed && !CK_BROKEN(R29))) {
		return false;
	}
	passes(event, k);
	return true;
}

static bool anybody(const struct ck_tour *tour, enum ck_nri_event event)
{
	for (const struct ck_knower *k = tour->known->knowers; k; k = k->next)
		if (owed(event, k) && ck_plugin_joined(k->plugin) && ck_plugin_wants(k->plugin, event))
			return true;
	return false;
}

static bool validators(const struct ck_tour *tour)
{
	for (const struct ck_knower *k = tour->known->knowers; k; k = k->next)
		if (ck_plugin_joined(k->plugin) && ck_plugin_wants(k->plugin, CK_NRI_VALIDATE_CONTAINER_ADJUSTMENT))
			return true;
	return false;
}

static bool is_before(const struct ck_tour *tour, const struct ck_plugin *plugin)
{
	int order = strncmp(plugin->name, tour->index, 2);
	return order < 0 || (order == 0 && plugin->serial <= tour->serial);
}

static struct ck_plugin *next_plugin(struct ck_tour *tour, struct ck_knower **ret_knower)
{
	for (struct ck_plugin *plugin = tour->nri->plugins; plugin; plugin = plugin->next) {
		if (!ck_plugin_joined(plugin) || is_before(tour, plugin))
			continue;
		*ret_knower = ck_know_who(tour->known, plugin);
		if (*ret_knower && owed(tour->event, *ret_knower))
			return plugin;
	}
	return NULL;
}

/* ---- one plugin after the other ------------------------------------------------------------------------------------------- */

static void step(struct ck_tour *tour);

static int add_extra(struct ck_tour *tour, struct ck_queued *delivery, const struct ck_bytes *bytes)
{
	(void)tour;
	delivery->extra = ck_blob_new(bytes->p, bytes->len);
	return delivery->extra ? 0 : -CK_ENOMEM;
}

static int fill_validation(struct ck_tour *tour, struct ck_queued *delivery, struct ck_error *err)
{
	const char *names[CK_NRI_PLUGINS_MAX];
	size_t n = 0;
	struct ck_bytes bytes = { 0 };
	for (struct ck_plugin *plugin = tour->nri->plugins; plugin; plugin = plugin->next)
		/* who has not answered was not consulted */
		if (ck_plugin_joined(plugin) && ck_know_who(tour->known, plugin) && !plugin->overdue_since && n < CK_COUNT(names))
			names[n++] = plugin->name;
	int r = ck_adjust_validation(tour->adjust, tour->pod ? tour->pod->bytes : NULL, tour->pod ? tour->pod->len : 0, names, n,
				     &bytes, err);
	if (r >= 0)
		r = add_extra(tour, delivery, &bytes);
	ck_bytes_free(&bytes);
	return r;
}

/* what this plugin is sent: the container as those before it have changed it */
static int fill(struct ck_tour *tour, struct ck_queued *delivery, struct ck_error *err)
{
	struct ck_bytes bytes = { 0 }, seen = { 0 };
	int r = 0;
	delivery->pod = ck_blob_ref(tour->pod);
	delivery->object = ck_blob_ref(tour->container);
	switch (tour->event) {
	case CK_NRI_VALIDATE_CONTAINER_ADJUSTMENT:
		return fill_validation(tour, delivery, err);
	case CK_NRI_CREATE_CONTAINER:
		r = ck_adjust_seen(tour->adjust, &seen, err);
		ck_blob_unref(CK_TAKE(delivery->object));
		if (r >= 0 && !(delivery->object = ck_blob_new(seen.p, seen.len)))
			r = ck_nomem(err);
		break;
	case CK_NRI_UPDATE_CONTAINER:
		r = ck_adjust_seen(tour->adjust, &seen, err);
		if (r >= 0)
			r = ck_bytes_field(&bytes, 3, seen.p, seen.len);
		break;
	case CK_NRI_UPDATE_POD_SANDBOX:
		if (tour->overhead)
			r = ck_bytes_field(&bytes, 2, tour->overhead->bytes, tour->overhead->len);
		if (r >= 0 && tour->resources)
			r = ck_bytes_field(&bytes, 3, tour->resources->bytes, tour->resources->len);
		break;
	default:
		break;
	}
	if (r >= 0 && bytes.len)
		r = add_extra(tour, delivery, &bytes);
	ck_bytes_free(&bytes);
	ck_bytes_free(&seen);
	return r;
}

/* true: whoever answers for @plugin lets the tour go on */
static bool visit(struct ck_tour *tour, struct ck_plugin *plugin, struct ck_knower *k)
{
	struct ck_nri *nri = tour->nri;
	struct ck_error err = { 0 };
	struct ck_queued *delivery = CK_NEW(struct ck_queued);
	if (delivery) {
		delivery->event = tour->event;
		delivery->known = ck_know_ref(tour->known);
	}
	if (!delivery || fill(tour, delivery, &err) < 0) {
		const char *why = *err.text ? err.text : "out of memory";
		ck_queued_free(delivery);
		ck_nri_log(nri, CK_LOG_ERROR, "%s to plugin %s: %s", ck_nri_event_name(tour->event), plugin->name, why);
		if (!ck_nri_event_tears_down(tour->event))
			refuse(tour, "plugin %s cannot be told: %s", plugin->name, why);
		return false;
	}
	k->announcing += ck_nri_event_announces(tour->event);
	tour->told++;
	/* what it would answer is needed, or could fail the event; under ignore it is neither */
	bool waits = plugin->policy != CK_NRI_IGNORE || !plugin->overdue_since || CK_BROKEN(H5);
	if (waits) {
		delivery->tour = tour;
		tour->at = delivery;
		tour->due = ck_nri_now(nri) + nri->request_timeout;
	}
	ck_plugin_enqueue(plugin, delivery); /* may answer at once, and then the tour has moved on, or ended */
	return waits;
}

static void changes(struct ck_tour *tour);

/* all have answered and agreed */
static void agreed(struct ck_tour *tour)
{
	struct ck_error err = { 0 };
	int r = 0;
	if (tour->event == CK_NRI_CREATE_CONTAINER && tour->adjust && validators(tour)) {
		tour->event = CK_NRI_VALIDATE_CONTAINER_ADJUSTMENT;
		tour->index[0] = '\0';
		tour->serial = 0;
		step(tour);
		return;
	}
	if (tour->event == CK_NRI_VALIDATE_CONTAINER_ADJUSTMENT)
		tour->event = CK_NRI_CREATE_CONTAINER;
	if (tour->adjust && tour->event == CK_NRI_CREATE_CONTAINER) {
		r = ck_adjust_result(tour->adjust, &tour->adjustment, &err);
		if (r >= 0)
			r = ck_adjust_owners(tour->adjust, &tour->owners, &err);
	} else if (tour->adjust && tour->event == CK_NRI_UPDATE_CONTAINER && !ck_adjust_is_empty(tour->adjust)) {
		r = ck_adjust_result(tour->adjust, &tour->result_resources, &err);
	}
	if (r < 0) {
		refuse(tour, "%s", err.text);
		end_refused(tour);
		return;
	}
	tour->phase = CK_TOUR_CHANGES;
	tour->changes = tour->adjust ? ck_adjust_others_n(tour->adjust) : 0;
	tour->change_i = 0;
	changes(tour);
}

static void next_event(struct ck_tour *tour)
{
	if (!tour->then || tour->cancelled) {
		done(tour);
		return;
	}
	tour->event = tour->then;
	tour->then = 0;
	tour->index[0] = '\0';
	tour->serial = 0;
	tour->phase = CK_TOUR_NEW;
	ck_adjust_free(CK_TAKE(tour->adjust));
	step(tour);
}

static void changed(struct ck_nri_job *job, int grpc, const void *bytes, size_t len)
{
	struct ck_tour *tour = job->owner;
	struct ck_adjust_other other = { 0 };
	(void)bytes;
	(void)len;
	tour->job = NULL;
	if (grpc != CK_GRPC_OK && ck_adjust_other(tour->adjust, tour->change_i, &other, NULL) >= 0 && !other.ignore_failure) {
		if (ck_nri_event_tears_down(tour->event))
			ck_nri_log(tour->nri, CK_LOG_WARNING, "plugin %s: updating container %.64s: %s", other.plugins,
				   other.container_id, ck_grpc_name(grpc));
		else
			refuse(tour, "plugin %s: updating container %.64s: %s", other.plugins, other.container_id,
			       ck_grpc_name(grpc));
	}
	tour->change_i++;
	changes(tour);
}

/* one after the other; what nobody knows is skipped, as a container that has just gone would be */
static void changes(struct ck_tour *tour)
{
	struct ck_nri *nri = tour->nri;
	struct ck_adjust_other other;
	struct ck_error err;
	for (; tour->change_i < tour->changes && !tour->refused; tour->change_i++) {
		if (ck_adjust_other(tour->adjust, tour->change_i, &other, &err) < 0)
			continue;
		const char *id = ck_update_target(nri, NULL, other.container_id);
		if (!id)
			continue;
		struct ck_blob *blob = ck_blob_new(other.resources, other.len);
		if (blob)
			tour->job = ck_nri_job_new(nri, CK_NRI_JOB_UPDATE, CK_CONTAINER, id, NULL, blob, changed, tour);
		ck_blob_unref(blob);
		if (tour->job)
			return;
	}
	if (tour->refused) {
		end_refused(tour);
		return;
	}
	if (tour->adjust)
		ck_update_evictions(nri, NULL, tour->adjust);
	next_event(tour);
}

static void go_on(struct ck_tour *tour)
{
	struct ck_knower *k = NULL;
	struct ck_plugin *plugin;
	while (!tour->at && !tour->refused && !tour->cancelled && tour->phase == CK_TOUR_GOING &&
	       (plugin = next_plugin(tour, &k))) {
		enum ck_nri_event event = tour->event;
		memcpy(tour->index, plugin->name, 2);
		tour->serial = plugin->serial;
		if (ck_plugin_wants(plugin, event)) {
			tour->due = CK_NRI_FOREVER;
			if (visit(tour, plugin, k))
				return;
			continue;
		}
		passes(event, k);
	}
	if (tour->at || tour->phase != CK_TOUR_GOING)
		return;
	tour->due = CK_NRI_FOREVER;
	if (tour->refused)
		end_refused(tour);
	else if (tour->cancelled)
		done(tour);
	else
		agreed(tour);
}

/* ---- what plugins are told ------------------------------------------------------------------------------------------------ */

static void describe(struct ck_tour *tour);

static void not_described(struct ck_tour *tour, enum ck_kind kind, int grpc)
{
	uint64_t now = ck_nri_now(tour->nri);
	struct ck_known *known = tour->known;
	if (!ck_nri_event_announces(tour->event)) { /* what was known of it has to do */
		if (kind == CK_CONTAINER)
			tour->container = ck_blob_ref(known->object);
		else if (known->kind == CK_SANDBOX)
			tour->pod = ck_blob_ref(known->object);
		else
			tour->pod = ck_blob_new("", 0);
		describe(tour);
	} else if (grpc == CK_GRPC_NOT_FOUND) {
		refuse(tour, "it is gone");
		end_refused(tour);
	} else if (now - tour->began >= CK_NRI_DESCRIBE_MAX) {
		refuse(tour, "the runtime does not tell what it has made: %s", ck_grpc_name(grpc));
		end_refused(tour);
	} else { /* asked again; half a description would never be put right (R3) */
		tour->pause = tour->pause ? tour->pause * 2 : CK_NRI_DESCRIBE_AGAIN;
		if (tour->pause > 8 * CK_NRI_DESCRIBE_AGAIN)
			tour->pause = 8 * CK_NRI_DESCRIBE_AGAIN;
		tour->due = now + tour->pause;
	}
}

static void described(struct ck_nri_job *job, int grpc, const void *bytes, size_t len)
{
	struct ck_tour *tour = job->owner;
	struct ck_nri *nri = tour->nri;
	struct ck_error err = { 0 };
	tour->job = NULL;
	if (tour->phase != CK_TOUR_DESCRIBE)
		return;
	if (grpc != CK_GRPC_OK || !bytes) {
		not_described(tour, job->kind, grpc ? grpc : CK_GRPC_INTERNAL);
		return;
	}
	struct ck_known *known = job->kind == tour->known->kind ? tour->known : ck_know_find(nri, job->kind, job->id);
	struct ck_blob **at = job->kind == CK_SANDBOX ? &tour->pod : &tour->container;
	int r = known ? ck_know_described(nri, known, bytes, len, &err) : 0;
	if (r >= 0)
		*at = known ? ck_blob_ref(known->object) : ck_blob_new(bytes, len);
	if (!*at) {
		ck_nri_log(nri, CK_LOG_ERROR, "the description of %.64s cannot be used: %s", job->id, err.text);
		not_described(tour, job->kind, r == -CK_EMALFORMED ? CK_GRPC_NOT_FOUND : CK_GRPC_RESOURCE_EXHAUSTED);
		return;
	}
	describe(tour);
}

static void ask(struct ck_tour *tour, enum ck_kind kind, const char *id)
{
	tour->phase = CK_TOUR_DESCRIBE;
	tour->due = CK_NRI_FOREVER;
	tour->job = ck_nri_job_new(tour->nri, CK_NRI_JOB_DESCRIBE, kind, id, NULL, NULL, described, tour);
	if (!tour->job)
		not_described(tour, kind, CK_GRPC_RESOURCE_EXHAUSTED);
}

static int begin_merging(struct ck_tour *tour, struct ck_error *err)
{
	const struct ck_blob *resources = tour->resources;
	switch (tour->event) {
	case CK_NRI_CREATE_CONTAINER:
		return ck_adjust_create(tour->container->bytes, tour->container->len, &tour->adjust, err);
	case CK_NRI_UPDATE_CONTAINER:
		return ck_adjust_update(tour->known->nri_id, resources ? resources->bytes : NULL, resources ? resources->len : 0,
					&tour->adjust, err);
	case CK_NRI_STOP_CONTAINER:
		return ck_adjust_others(&tour->adjust, err);
	default:
		return 0;
	}
}

/* pod, then container; then it goes out */
static void describe(struct ck_tour *tour)
{
	struct ck_known *known = tour->known;
	struct ck_known *pod = known->kind == CK_SANDBOX ? known : ck_know_find(tour->nri, CK_SANDBOX, tour->pod_id);
	struct ck_error err = { 0 };
	bool fresh = wants_fresh(tour->event);
	if (!tour->pod && pod && pod->described && !(fresh && pod == known))
		tour->pod = ck_blob_ref(pod->object);
	if (!tour->pod) {
		const char *id = pod ? pod->id : tour->pod_id;
		if (!id)
			id = known->sandbox_id;
		ask(tour, CK_SANDBOX, id);
		return;
	}
	if (known->kind == CK_CONTAINER && !tour->container && (!*known->id || (known->described && !fresh)))
		tour->container = ck_blob_ref(known->object);
	if (known->kind == CK_CONTAINER && !tour->container) {
		ask(tour, CK_CONTAINER, known->id);
		return;
	}
	if (begin_merging(tour, &err) < 0) {
		ck_nri_log(tour->nri, CK_LOG_ERROR, "%s: %s", ck_nri_event_name(tour->event), err.text);
		refuse(tour, "%s", err.text);
		end_refused(tour);
		return;
	}
	tour->phase = CK_TOUR_GOING;
	go_on(tour);
}

/* ---- an earlier life's debts (H3) ----------------------------------------------------------------------------------------- */

static const char *next_name(const char **at, size_t *ret_len)
{
	const char *name = *at + strspn(*at, " ");
	*ret_len = strcspn(name, " ");
	*at = name + *ret_len;
	return *ret_len ? name : NULL;
}

static struct ck_plugin *named(const struct ck_nri *nri, const char *name, size_t len)
{
	for (struct ck_plugin *plugin = nri->plugins; plugin; plugin = plugin->next)
		if (ck_plugin_joined(plugin) && strlen(plugin->name) == len && !memcmp(plugin->name, name, len))
			return plugin;
	return NULL;
}

/* true: those who were told in an earlier life are not all back, and there is still time for them to come */
static bool waits_for_debtors(struct ck_tour *tour)
{
	struct ck_nri *nri = tour->nri;
	const char *at = tour->names, *name;
	size_t len;
	if (!nri->started)
		return true;
	uint64_t until = nri->started_at + nri->registration_timeout;
	if (ck_nri_now(nri) >= until)
		return false;
	while ((name = next_name(&at, &len)))
		if (!named(nri, name, len)) {
			tour->due = until;
			return true;
		}
	return false;
}

static void take_over_debts(struct ck_tour *tour)
{
	const char *at = tour->names, *name;
	size_t len;
	while ((name = next_name(&at, &len))) {
		struct ck_plugin *plugin = named(tour->nri, name, len);
		if (!plugin || ck_know_who(tour->known, plugin) || CK_BROKEN(H3))
			continue;
		struct ck_knower *k = ck_know_add(tour->known, plugin);
		if (k)
			k->told = true;
	}
}

/* ---- the steps ------------------------------------------------------------------------------------------------------------ */

static void step(struct ck_tour *tour)
{
	struct ck_known *known = tour->known;
	bool ends = is_stop(tour->event) || is_remove(tour->event);
	enum ck_nri_event stop = known && known->kind == CK_SANDBOX ? CK_NRI_STOP_POD_SANDBOX : CK_NRI_STOP_CONTAINER;
	if (tour->phase == CK_TOUR_GOING) { /* once more round, for validation */
		go_on(tour);
		return;
	}
	if (tour->phase != CK_TOUR_NEW && tour->phase != CK_TOUR_DEBT)
		return;
	if (!known || tour->cancelled) {
		done(tour);
		return;
	}
	const char *absent = tour->before_create ? ck_know_absent(tour->nri) : NULL;
	if (absent) {
		refuse(tour, "the required plugin %s is not connected", absent);
		end_refused(tour);
		return;
	}
	if (ends && tour->names && *tour->names && !known->ours) {
		tour->phase = CK_TOUR_DEBT;
		if (waits_for_debtors(tour))
			return;
		take_over_debts(tour);
	}
	tour->phase = CK_TOUR_NEW;
	tour->due = CK_NRI_FOREVER;
	if (is_remove(tour->event) && !tour->then && anybody(tour, stop)) {
		tour->then = tour->event; /* nobody hears Remove before Stop (R31) */
		tour->event = stop;
		known->stop_begun = true;
	}
	if (!anybody(tour, tour->event) && !(tour->event == CK_NRI_CREATE_CONTAINER && validators(tour))) {
		tour->phase = CK_TOUR_GOING; /* nothing need be described */
		go_on(tour);
		return;
	}
	describe(tour);
}

/* ---- answers -------------------------------------------------------------------------------------------------------------- */

static bool may_refuse(const struct ck_tour *tour, const struct ck_plugin *plugin, enum ck_nri_policy policy)
{
	return !ck_nri_event_tears_down(tour->event) && plugin->policy >= policy;
}

static void merge(struct ck_tour *tour, struct ck_plugin *plugin, enum ck_adjust_reply what, const struct ck_ttrpc_answer *answer)
{
	struct ck_error err = { 0 };
	if (!tour->adjust)
		return;
	int r = ck_adjust_reply(tour->adjust, what, plugin->name, answer->payload, answer->len, &err);
	if (r == -CK_EMALFORMED) {
		ck_plugin_close(plugin, CK_LOG_ERROR, "its answer cannot be read: %s", err.text);
		if (may_refuse(tour, plugin, CK_NRI_FAIL))
			refuse(tour, "plugin %s: its answer cannot be read", plugin->name);
	} else if (r < 0) {
		if (ck_nri_event_tears_down(tour->event))
			ck_adjust_free(CK_TAKE(tour->adjust));
		else
			refuse(tour, "%s", err.text);
	} else if (tour->event == CK_NRI_CREATE_CONTAINER && !tour->before_create && !ck_adjust_is_empty(tour->adjust) &&
		   !CK_BROKEN(H7)) {
		plugin->adjusting = true;
		refuse(tour, "plugin %s changes containers, which exist by now: adjust = before-create is needed", plugin->name);
	}
}

static void validated(struct ck_tour *tour, struct ck_plugin *plugin, const struct ck_ttrpc_answer *answer)
{
	struct ck_wire wire = ck_wire_begin(answer->payload, answer->len);
	struct ck_wire_field field;
	char reason[CK_TEXT_MAX + 1] = "", clean[CK_TEXT_MAX + 1];
	bool rejected = false;
	int r;
	while ((r = ck_wire_next(&wire, &field, NULL)) > 0) {
		if (field.number == 1 && field.type == CK_WIRE_VARINT)
			rejected = field.value;
		else if (field.number == 2 && field.type == CK_WIRE_BYTES)
			snprintf(reason, sizeof(reason), "%.*s", field.len < CK_TEXT_MAX ? (int)field.len : (int)CK_TEXT_MAX,
				 (const char *)field.data);
	}
	if (!rejected && r == 0)
		return;
	ck_utf8_clean(reason, false, clean, sizeof(clean));
	refuse(tour, "plugin %s rejects it: %s", plugin->name, r < 0 ? "its answer cannot be read" : clean);
}

void ck_tour_answered(struct ck_queued *delivery, struct ck_plugin *plugin, const struct ck_ttrpc_answer *answer, int code)
{
	struct ck_tour *tour = delivery->tour;
	if (!tour)
		return; /* too late for the tour, or none waited */
	delivery->tour = NULL;
	tour->at = NULL;
	if (code == CK_TOUR_SKIPPED) {
		tour->told--;
	} else if (code == CK_TOUR_LOST) {
		if (may_refuse(tour, plugin, CK_NRI_FAIL))
			refuse(tour, "plugin %s: its connection broke", plugin->name);
	} else if (code != CK_GRPC_OK) {
		if (CK_BROKEN(R12))
			;
		else if (may_refuse(tour, plugin, CK_NRI_ERROR))
			refuse(tour, "plugin %s: %s", plugin->name,
			       *answer->message ? answer->message : ck_grpc_name(answer->code));
		else if (CK_BROKEN(R22))
			tour->cancelled = true;
	} else if (tour->event == CK_NRI_CREATE_CONTAINER) {
		merge(tour, plugin, CK_REPLY_CREATE_CONTAINER, answer);
	} else if (tour->event == CK_NRI_UPDATE_CONTAINER) {
		merge(tour, plugin, CK_REPLY_UPDATE_CONTAINER, answer);
	} else if (tour->event == CK_NRI_STOP_CONTAINER) {
		merge(tour, plugin, CK_REPLY_STOP_CONTAINER, answer);
	} else if (tour->event == CK_NRI_VALIDATE_CONTAINER_ADJUSTMENT) {
		validated(tour, plugin, answer);
	}
	go_on(tour);
}

/* ---- time, and the way out ------------------------------------------------------------------------------------------------ */

static struct ck_plugin *plugin_at(const struct ck_tour *tour)
{
	for (struct ck_plugin *plugin = tour->nri->plugins; plugin; plugin = plugin->next)
		if (plugin->serial == tour->serial)
			return plugin;
	return NULL;
}

static void expired(struct ck_tour *tour)
{
	struct ck_plugin *plugin = plugin_at(tour);
	char span[CK_SPAN_TEXT];
	tour->due = CK_NRI_FOREVER;
	if (tour->phase == CK_TOUR_DESCRIBE && !tour->job) {
		describe(tour);
		return;
	}
	if (tour->phase != CK_TOUR_GOING || !tour->at)
		return;
	CK_TAKE(tour->at)->tour = NULL; /* it stays queued, and is delivered */
	bool validates = tour->event == CK_NRI_VALIDATE_CONTAINER_ADJUSTMENT;
	if (plugin && may_refuse(tour, plugin, validates ? CK_NRI_ERROR : CK_NRI_FAIL))
		refuse(tour, "plugin %s: no answer within %s", plugin->name, ck_span_print(tour->nri->request_timeout, span));
	go_on(tour);
}

void ck_tours_timers(struct ck_nri *nri, uint64_t now)
{
	/* any of them may end from within, and the next one with it: begin anew after each */
	for (struct ck_tour *tour = nri->tours; tour;) {
		if (tour->phase == CK_TOUR_NEW || tour->phase == CK_TOUR_DEBT) {
			bool debt = tour->phase == CK_TOUR_DEBT;
			if (!debt || tour->due <= now) {
				step(tour);
				if (!debt || tour->phase != CK_TOUR_DEBT) {
					tour = nri->tours;
					continue;
				}
			}
		} else if (tour->due <= now) {
			expired(tour);
			tour = nri->tours;
			continue;
		}
		tour = tour->next;
	}
}

void ck_tours_plugins_changed(struct ck_nri *nri)
{
	for (struct ck_tour *tour = nri->tours; tour; tour = tour->next)
		if (tour->phase == CK_TOUR_DEBT)
			tour->due = 0; /* looked at by the next ck_tours_timers() */
}

uint64_t ck_tours_due(const struct ck_nri *nri)
{
	uint64_t due = CK_NRI_FOREVER;
	for (const struct ck_tour *tour = nri->tours; tour; tour = tour->next) {
		uint64_t at = tour->phase == CK_TOUR_NEW ? 0 : tour->due;
		due = at < due ? at : due;
	}
	return due;
}

/* the entry was abandoned: nobody further is told; who has it already is waited for (K13) */
void ck_tour_cancel(struct ck_nri *nri, uint64_t entry)
{
	for (struct ck_tour *tour = nri->tours, *next; tour; tour = next) {
		next = tour->next;
		if (!tour->known || tour->known->entry != entry || is_stop(tour->event) || is_remove(tour->event))
			continue;
		if (!tour->names || CK_BROKEN(H2))
			continue; /* not of its commit */
		tour->cancelled = true;
		withdraw(tour); /* may end it */
		if (tour->phase == CK_TOUR_NEW || tour->phase == CK_TOUR_DESCRIBE)
			done(tour);
		return;
	}
}

void ck_tours_call_back(struct ck_nri *nri)
{
	struct ck_tour *tour;
	while ((tour = nri->tours_done)) {
		nri->tours_done = tour->next;
		const struct ck_nri_result result = {
			.size = sizeof(result),
			.refusal = tour->refused ? tour->refusal : NULL,
			.adjustment = tour->adjustment.p,
			.adjustment_len = tour->adjustment.len,
			.owners = tour->owners.p,
			.owners_len = tour->owners.len,
			.resources = tour->result_resources.p,
			.resources_len = tour->result_resources.len,
			.told = tour->told,
		};
		pthread_mutex_unlock(&nri->lock);
		tour->cb(&result, tour->userdata);
		pthread_mutex_lock(&nri->lock);
		tour_free(tour);
	}
}

void ck_tours_end_all(struct ck_nri *nri)
{
	while (nri->tours)
		done(nri->tours);
}
