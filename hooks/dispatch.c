/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One event on its tour: described by the host, brought to one plugin after the other in index
 * order, its answers merged.
 *
 *   NEW -> DEBT? -> DESCRIBE -> GOING -> CHANGES -> DONE
 *                                 |         what plugins want of other containers is carried out
 *                                 '- at each plugin: answered | not in time | lost | refused
 *
 * A tour waits for a plugin at most request_timeout, counted from when its delivery is queued (H5);
 * then it goes on, and the delivery stays in the plugin's queue without it. So a plugin may hear
 * late, but in order, and never holds up more than that.
 */
#include <stdio.h>
#include <stdarg.h>

#include "hooks/nri-int.h"

/* ---- begin and end --------------------------------------------------------------------------- */

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
	ck_bytes_free(&tour->told_names);
	ck_bytes_free(&tour->result_resources);
	free(tour->pod_id);
	free(tour->names);
	free(tour);
}

/* a container, and its pod? */
static bool is_in(const struct ck_known *container, const struct ck_known *pod)
{
	return container && pod && container->kind == CK_CONTAINER && pod->kind == CK_SANDBOX &&
	       !strcmp(container->sandbox_id, pod->id);
}

static bool ends(enum ck_nri_event event)
{
	return ck_nri_event_stops(event) || ck_nri_event_removes(event);
}

void ck_tour_done(struct ck_tour *tour)
{
	struct ck_tour **end = &tour->nri->tours_done;
	ck_nri_job_forget(CK_TAKE(tour->job));
	if (tour->at)
		CK_TAKE(tour->at)->tour = NULL;
	unlink_tour(tour);
	tour->phase = CK_TOUR_DONE;
	for (struct ck_tour *other = tour->nri->tours; other; other = other->next)
		other->behind =
			other->behind && other->known != tour->known && !is_in(tour->known, other->known); /* looked at anew */
	while (*end)
		end = &(*end)->next;
	*end = tour;
	/* without a cache nobody releases it */
	if (tour->known && ck_nri_event_removes(tour->event) && !tour->known->entry)
		ck_know_forget(tour->nri, tour->known);
}

void ck_tour_refuse(struct ck_tour *tour, const char *fmt, ...)
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
	for (struct ck_plugin *plugin = tour->nri->plugins, *next; plugin && tour->known;
	     plugin = next) {
		next = plugin->next;
		ck_plugin_unqueue(plugin, tour->known);
	}
}

void ck_tour_end_refused(struct ck_tour *tour)
{
	if (ck_nri_event_announces(tour->event) ||
	    tour->event == CK_NRI_VALIDATE_CONTAINER_ADJUSTMENT)
		if (!CK_BROKEN(R38))
			withdraw(tour);
	ck_tour_done(tour);
}

static struct ck_blob *blob_of(const void *p, size_t len, bool *whole)
{
	struct ck_blob *blob = p ? ck_blob_new(p, len) : NULL;
	*whole = *whole && (!p || blob);
	return blob;
}

/* the object of a call: found, or made if the call announces it */
static int find_object(struct ck_tour *tour, const struct ck_nri_call *call,
		       const struct ck_told *told, struct ck_error *err)
{
	struct ck_nri *nri = tour->nri;
	enum ck_kind kind = ck_nri_event_of_pod(call->event) ? CK_SANDBOX : CK_CONTAINER;
	const char *id = kind == CK_SANDBOX ? call->pod_id : call->container_id;
	struct ck_known *known = ck_know_find(nri, kind, id);
	if (!known && told)
		known = ck_know_make(nri, kind, id, told);
	else if (!known && ck_nri_event_announces(call->event)) {
		const struct ck_told key = {
			.size = sizeof(key), .kind = kind, .id = id, .sandbox_id = call->pod_id
		};
		known = ck_know_make(nri, kind, id, &key);
		if (known &&
		    ((tour->before_create &&
		      ck_know_unmade(nri, known, call->container_name, call->attempt) < 0) ||
		     ck_know_all(nri, known) < 0)) {
			/* the next try must not find half of them chosen */
			ck_know_forget(nri, known);
			return ck_nomem(err);
		}
	} else if (!known) {
		return 0; /* nobody knows it */
	}
	if (!known)
		return ck_nomem(err);
	tour->known = ck_know_ref(known);
	return 0;
}

void ck_tour_note(struct ck_tour *tour, const struct ck_plugin *plugin)
{
	struct ck_bytes *names = &tour->told_names;
	if (ck_bytes_room(names, strlen(plugin->name) + 2) < 0)
		return;
	if (names->len)
		ck_bytes_add_text(names, " ");
	ck_bytes_add_text(names, plugin->name);
}

/* its commit: who was asked about it before it was made is not told again, but is among the told */
static void find_consulted(struct ck_tour *tour)
{
	for (const struct ck_plugin *plugin = tour->nri->plugins; plugin; plugin = plugin->next) {
		const struct ck_knower *k = ck_know_who(tour->known, plugin);
		if (!k || !k->told || k->listed)
			continue;
		tour->consulted = true;
		if (ck_plugin_wants(plugin, CK_NRI_CREATE_CONTAINER))
			ck_tour_note(tour, plugin);
	}
}

/* what the caller tells is as good as what the host would describe */
static void keep_described(struct ck_tour *tour, const struct ck_nri_call *call)
{
	struct ck_known *pod = ck_know_find(tour->nri, CK_SANDBOX, call->pod_id);
	if (pod && call->pod)
		ck_know_described(tour->nri, pod, call->pod, call->pod_len, NULL);
	if (tour->known->kind == CK_CONTAINER && call->container)
		ck_know_described(tour->nri, tour->known, call->container, call->container_len,
				  NULL);
}

int ck_tour_begin(struct ck_nri *nri, const struct ck_nri_call *call, const struct ck_told *told,
		  enum ck_nri_event then, ck_nri_cb *cb, void *userdata, struct ck_error *err)
{
	struct ck_tour *tour = CK_NEW(struct ck_tour), **end = &nri->tours;
	bool whole = true;
	if (!tour)
		return ck_nomem(err);
	tour->nri = nri;
	tour->event = tour->asked = call->event;
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
	if (tour->known) {
		keep_described(tour, call);
		tour->inherited = !tour->known->ours;
		if (told && call->event == CK_NRI_CREATE_CONTAINER)
			find_consulted(tour);
	}
	for (struct ck_knower *k = tour->known && CK_BROKEN(R23) ? tour->known->knowers : NULL; k;
	     k = k->next)
		k->stopped = false;
	if (tour->known && ck_nri_event_stops(call->event) && !CK_BROKEN(H1))
		tour->known->stop_begun = true; /* from here on it is in no list */
	while (*end) {
		tour->prev = *end;
		end = &(*end)->next;
	}
	*end = tour;
	return 0;
}

/* ---- an earlier life's debts (H3) ------------------------------------------------------------ */

static const char *next_name(const char **at, size_t *ret_len)
{
	const char *name = *at + strspn(*at, " ");
	*ret_len = strcspn(name, " ");
	*at = name + *ret_len;
	return *ret_len ? name : NULL;
}

/* from @from on: two connections may have one name, and both are owed what one of them was told */
static struct ck_plugin *named(struct ck_plugin *from, const char *name, size_t len)
{
	for (struct ck_plugin *plugin = from; plugin; plugin = plugin->next)
		if (ck_plugin_joined(plugin) && strlen(plugin->name) == len &&
		    !memcmp(plugin->name, name, len))
			return plugin;
	return NULL;
}

/* true: those who were told in an earlier life are not all back, and there is still time for them
 * to come */
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
		if (!named(nri->plugins, name, len)) {
			tour->due = until;
			return true;
		}
	return false;
}

static void take_over_debts(struct ck_tour *tour)
{
	const char *at = tour->names, *name;
	size_t len;
	while ((name = next_name(&at, &len)))
		for (struct ck_plugin *plugin = tour->nri->plugins;
		     (plugin = named(plugin, name, len)); plugin = plugin->next) {
			if (ck_know_who(tour->known, plugin) || CK_BROKEN(H3))
				continue;
			struct ck_knower *k = ck_know_add(tour->known, plugin);
			if (k)
				k->told = true;
		}
}

/* events of one object come one after the other, and a pod ends behind what is in it (R18, R26,
 * R30) */
static bool is_behind(const struct ck_tour *tour)
{
	for (const struct ck_tour *other = tour->prev; other; other = other->prev)
		if ((other->known == tour->known || (ends(tour->event) && ends(other->event) &&
						     is_in(other->known, tour->known))) &&
		    !CK_BROKEN(R30))
			return true;
	return false;
}

/* ---- the steps ------------------------------------------------------------------------------- */

void ck_tour_step(struct ck_tour *tour)
{
	struct ck_known *known = tour->known;
	enum ck_nri_event stop = known && known->kind == CK_SANDBOX ? CK_NRI_STOP_POD_SANDBOX
								    : CK_NRI_STOP_CONTAINER;
	if (tour->phase == CK_TOUR_GOING) { /* once more round, for validation */
		ck_tour_go_on(tour);
		return;
	}
	if (tour->phase != CK_TOUR_NEW && tour->phase != CK_TOUR_DEBT)
		return;
	if (!known || tour->cancelled) {
		ck_tour_done(tour);
		return;
	}
	tour->behind = is_behind(tour);
	if (tour->behind)
		return;
	const char *absent = tour->before_create ? ck_know_absent(tour->nri) : NULL;
	if (absent) {
		ck_tour_refuse(tour, "the required plugin %s is not connected", absent);
		ck_tour_end_refused(tour);
		return;
	}
	if (ends(tour->event) && tour->names && *tour->names && tour->inherited) {
		tour->phase = CK_TOUR_DEBT;
		if (waits_for_debtors(tour))
			return;
		take_over_debts(tour);
	}
	tour->phase = CK_TOUR_NEW;
	tour->due = CK_NRI_FOREVER;
	if (ck_nri_event_stops(tour->event) && CK_BROKEN(R32))
		tour->event++;
	if (ck_nri_event_removes(tour->event) && !tour->then && ck_tour_anybody(tour, stop) &&
	    !CK_BROKEN(R31) && !CK_BROKEN(R32)) {
		tour->then = tour->event; /* nobody hears Remove before Stop (R31) */
		tour->event = stop;
		known->stop_begun = true;
	}
	if (!ck_tour_anybody(tour, tour->event) &&
	    !(tour->event == CK_NRI_CREATE_CONTAINER && ck_tour_validators(tour))) {
		tour->phase = CK_TOUR_GOING; /* nothing need be described */
		ck_tour_go_on(tour);
		return;
	}
	ck_tour_describe(tour);
}

/* ---- time, and the way out ------------------------------------------------------------------- */

static void expired(struct ck_tour *tour)
{
	tour->due = CK_NRI_FOREVER;
	if (tour->phase == CK_TOUR_DESCRIBE && !tour->job)
		ck_tour_describe(tour);
	else if (tour->phase == CK_TOUR_GOING && tour->at && !CK_BROKEN(R13))
		ck_tour_not_in_time(tour);
}

void ck_tours_timers(struct ck_nri *nri, uint64_t now)
{
	/* any of them may end from within, and the next one with it: begin anew after each */
	for (struct ck_tour *tour = nri->tours; tour;) {
		if (tour->phase == CK_TOUR_NEW || tour->phase == CK_TOUR_DEBT) {
			bool debt = tour->phase == CK_TOUR_DEBT;
			if (!tour->behind && (!debt || tour->due <= now)) {
				ck_tour_step(tour);
				if (!tour->behind && (!debt || tour->phase != CK_TOUR_DEBT)) {
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
		uint64_t at = tour->phase != CK_TOUR_NEW ? tour->due
			      : tour->behind             ? CK_NRI_FOREVER
							 : 0;
		due = at < due ? at : due;
	}
	return due;
}

/* the entry was abandoned: nobody further is told; who has it already is waited for (K13) */
void ck_tour_cancel(struct ck_nri *nri, uint64_t entry)
{
	for (struct ck_tour *tour = nri->tours, *next; tour; tour = next) {
		next = tour->next;
		if (!tour->known || tour->known->entry != entry ||
		    ck_nri_event_stops(tour->event) || ck_nri_event_removes(tour->event))
			continue;
		if (!tour->names)
			continue; /* not of its commit */
		tour->cancelled = true;
		withdraw(tour); /* may end it */
		if (tour->phase == CK_TOUR_NEW || tour->phase == CK_TOUR_DESCRIBE)
			ck_tour_done(tour);
		return;
	}
}

void ck_tours_call_back(struct ck_nri *nri)
{
	struct ck_tour *tour;
	while ((tour = nri->tours_done)) {
		nri->tours_done = tour->next;
		const char *names = ck_bytes_add(&tour->told_names, "", 1) == 0
					    ? (const char *)tour->told_names.p
					    : "";
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
			.told_names = names,
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
		ck_tour_done(nri->tours);
}
