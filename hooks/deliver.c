/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tour among the plugins: what each is sent, what its answer does, and what they all want changed
 * at the end.
 */
#include <stdio.h>

#include "hooks/nri-int.h"
#include "src/base/duration.h"
#include "src/base/utf8.h"
#include "src/base/wire.h"

/* ---- one plugin after the other -------------------------------------------------------------- */

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
		if (!*ret_knower && CK_BROKEN(H2) &&
		    (*ret_knower = ck_know_add(tour->known, plugin)))
			(*ret_knower)->told = true;
		if (*ret_knower && ck_tour_owes(tour->event, *ret_knower))
			return plugin;
	}
	return NULL;
}

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
		if (ck_plugin_joined(plugin) && ck_know_who(tour->known, plugin) &&
		    !plugin->overdue_since && n < CK_COUNT(names))
			names[n++] = plugin->name;
	int r = ck_adjust_validation(tour->adjust, tour->pod ? tour->pod->bytes : NULL,
				     tour->pod ? tour->pod->len : 0, names, n, &bytes, err);
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

/* for the history: the event itself, not what goes out before or behind it */
static void note_told(struct ck_tour *tour, const struct ck_plugin *plugin)
{
	tour->told_before = tour->told_names.len;
	if (tour->event == tour->asked)
		ck_tour_note(tour, plugin);
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
		ck_nri_log(nri, CK_LOG_ERROR, "%s to plugin %s: %s", ck_nri_event_name(tour->event),
			   plugin->name, why);
		if (!ck_nri_event_tears_down(tour->event))
			ck_tour_refuse(tour, "plugin %s cannot be told: %s", plugin->name, why);
		else /* what it misses now nobody would tell it later; a new connection gets a new list */
			ck_plugin_close(plugin, CK_LOG_ERROR, "it cannot be told: %s", why);
		return false;
	}
	k->announcing += ck_nri_event_announces(tour->event);
	k->stopping += ck_nri_event_stops(tour->event);
	tour->told += tour->event == tour->asked;
	note_told(tour, plugin);
	/* what it would answer is needed, or could fail the event; under ignore it is neither */
	bool waits = plugin->policy != CK_NRI_IGNORE || !plugin->overdue_since;
	if (waits) {
		delivery->tour = tour;
		tour->at = delivery;
		tour->due = ck_nri_now(nri) + nri->request_timeout;
	}
	/* may answer at once, and then the tour has moved on, or ended */
	ck_plugin_enqueue(plugin, delivery);
	return waits;
}

static void changes(struct ck_tour *tour);

/* all have answered and agreed */
static void agreed(struct ck_tour *tour)
{
	struct ck_error err = { 0 };
	int r = 0;
	if (tour->event == CK_NRI_CREATE_CONTAINER && tour->adjust && ck_tour_validators(tour)) {
		tour->event = CK_NRI_VALIDATE_CONTAINER_ADJUSTMENT;
		tour->index[0] = '\0';
		tour->serial = 0;
		ck_tour_step(tour);
		return;
	}
	if (tour->event == CK_NRI_VALIDATE_CONTAINER_ADJUSTMENT)
		tour->event = CK_NRI_CREATE_CONTAINER;
	if (tour->adjust && tour->event == CK_NRI_CREATE_CONTAINER) {
		r = ck_adjust_result(tour->adjust, &tour->adjustment, &err);
		if (r >= 0)
			r = ck_adjust_owners(tour->adjust, &tour->owners, &err);
	} else if (tour->adjust && tour->event == CK_NRI_UPDATE_CONTAINER &&
		   !ck_adjust_is_empty(tour->adjust)) {
		r = ck_adjust_result(tour->adjust, &tour->result_resources, &err);
	}
	if (r < 0) {
		ck_tour_refuse(tour, "%s", err.text);
		ck_tour_end_refused(tour);
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
		ck_tour_done(tour);
		return;
	}
	tour->event = tour->then;
	tour->then = 0;
	tour->index[0] = '\0';
	tour->serial = 0;
	tour->phase = CK_TOUR_NEW;
	ck_adjust_free(CK_TAKE(tour->adjust));
	ck_tour_step(tour);
}

static void changed(struct ck_nri_job *job, int grpc, const void *bytes, size_t len)
{
	struct ck_tour *tour = job->owner;
	struct ck_adjust_other other = { 0 };
	(void)bytes;
	(void)len;
	tour->job = NULL;
	/* one that has just gone is skipped, as one nobody knows is */
	if (grpc != CK_GRPC_OK && grpc != CK_GRPC_NOT_FOUND &&
	    ck_adjust_other(tour->adjust, tour->change_i, &other, NULL) >= 0 &&
	    !other.ignore_failure) {
		if (ck_nri_event_tears_down(tour->event))
			ck_nri_log(tour->nri, CK_LOG_WARNING,
				   "plugin %s: updating container %.64s: %s", other.plugins,
				   other.container_id, ck_grpc_name(grpc));
		else
			ck_tour_refuse(tour, "plugin %s: updating container %.64s: %s",
				       other.plugins, other.container_id, ck_grpc_name(grpc));
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
			tour->job = ck_nri_job_new(nri, CK_NRI_JOB_UPDATE, CK_CONTAINER, id, NULL,
						   blob, changed, tour);
		ck_blob_unref(blob);
		if (tour->job)
			return;
	}
	if (tour->refused) {
		ck_tour_end_refused(tour);
		return;
	}
	if (tour->adjust)
		ck_update_evictions(nri, NULL, tour->adjust);
	next_event(tour);
}

void ck_tour_go_on(struct ck_tour *tour)
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
		ck_tour_passes(event, k);
	}
	if (tour->at || tour->phase != CK_TOUR_GOING)
		return;
	tour->due = CK_NRI_FOREVER;
	if (tour->refused)
		ck_tour_end_refused(tour);
	else if (tour->cancelled)
		ck_tour_done(tour);
	else
		agreed(tour);
}

/* ---- answers --------------------------------------------------------------------------------- */

static bool may_refuse(const struct ck_tour *tour, const struct ck_plugin *plugin,
		       enum ck_nri_policy policy)
{
	return !ck_nri_event_tears_down(tour->event) && plugin->policy >= policy;
}

static void merge(struct ck_tour *tour, struct ck_plugin *plugin, enum ck_adjust_reply what,
		  const struct ck_ttrpc_answer *answer)
{
	struct ck_error err = { 0 };
	if (!tour->adjust)
		return;
	int r = ck_adjust_reply(tour->adjust, what, plugin->name, answer->payload, answer->len,
				&err);
	if (r == -CK_EMALFORMED) {
		ck_plugin_close(plugin, CK_LOG_ERROR, "its answer cannot be read: %s", err.text);
		if (may_refuse(tour, plugin, CK_NRI_FAIL))
			ck_tour_refuse(tour, "plugin %s: its answer cannot be read", plugin->name);
	} else if (r < 0) {
		if (ck_nri_event_tears_down(tour->event))
			ck_adjust_free(CK_TAKE(tour->adjust));
		else
			ck_tour_refuse(tour, "%s", err.text);
	} else if (tour->event == CK_NRI_CREATE_CONTAINER && !tour->before_create &&
		   !ck_adjust_is_empty(tour->adjust) && !CK_BROKEN(H7)) {
		plugin->adjusting = true;
		ck_tour_refuse(tour,
			       "plugin %s wants to change the container, which exists already: set "
			       "adjust to before-create",
			       plugin->name);
	}
}

static void validated(struct ck_tour *tour, struct ck_plugin *plugin,
		      const struct ck_ttrpc_answer *answer)
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
			snprintf(reason, sizeof(reason), "%.*s",
				 field.len < CK_TEXT_MAX ? (int)field.len : (int)CK_TEXT_MAX,
				 (const char *)field.data);
	}
	if (!rejected && r == 0)
		return;
	ck_utf8_clean(reason, false, clean, sizeof(clean));
	ck_tour_refuse(tour, "plugin %s rejects it: %s", plugin->name,
		       r < 0 ? "its answer cannot be read" : clean);
}

void ck_tour_answered(struct ck_queued *delivery, struct ck_plugin *plugin,
		      const struct ck_ttrpc_answer *answer, int code)
{
	struct ck_tour *tour = delivery->tour;
	if (!tour)
		return; /* too late for the tour, or none waited */
	delivery->tour = NULL;
	tour->at = NULL;
	if (code == CK_TOUR_SKIPPED || code == CK_TOUR_UNSENT) {
		tour->told -= tour->event == tour->asked;
		tour->told_names.len = tour->told_before;
	}
	if (code == CK_TOUR_SKIPPED) {
		/* it need not hear of it */
	} else if (code == CK_TOUR_LOST) {
		/* waits for it to return */
		if (CK_BROKEN(H9) && ck_nri_event_tears_down(tour->event)) {
			tour->phase = CK_TOUR_NEW;
			tour->inherited = true;
			tour->index[0] = '\0';
			tour->serial = 0;
			free(tour->names);
			tour->names = ck_strdup(plugin->name);
			return;
		}
		if (may_refuse(tour, plugin, CK_NRI_FAIL))
			ck_tour_refuse(tour, "plugin %s: its connection broke", plugin->name);
	} else if (code != CK_GRPC_OK) {
		if (CK_BROKEN(R12) || (CK_BROKEN(R37) && tour->event == CK_NRI_CREATE_CONTAINER))
			;
		else if (may_refuse(tour, plugin, CK_NRI_ERROR))
			ck_tour_refuse(tour, "plugin %s: %s", plugin->name,
				       *answer->message ? answer->message : ck_grpc_name(answer->code));
		else if (CK_BROKEN(R22) || (CK_BROKEN(R28) && ck_nri_event_removes(tour->event)))
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
	ck_tour_go_on(tour);
}

static struct ck_plugin *plugin_at(const struct ck_tour *tour)
{
	for (struct ck_plugin *plugin = tour->nri->plugins; plugin; plugin = plugin->next)
		if (plugin->serial == tour->serial)
			return plugin;
	return NULL;
}

void ck_tour_not_in_time(struct ck_tour *tour)
{
	struct ck_plugin *plugin = plugin_at(tour);
	bool validates = tour->event == CK_NRI_VALIDATE_CONTAINER_ADJUSTMENT;
	char span[CK_DURATION_TEXT];
	CK_TAKE(tour->at)->tour = NULL; /* it stays queued, and is delivered */
	if (plugin && may_refuse(tour, plugin, validates ? CK_NRI_ERROR : CK_NRI_FAIL))
		ck_tour_refuse(tour, "plugin %s: no answer within %s", plugin->name,
			       ck_duration_print(tour->nri->request_timeout, span));
	ck_tour_go_on(tour);
}
