/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One event on its dispatch: described by the host, brought to one plugin after the other in index
 * order, its answers merged.
 *
 *   NEW -> DEBT? -> DESCRIBE -> GOING -> CHANGES -> DONE
 *                                 |         what plugins want of other containers is carried out
 *                                 '- at each plugin: answered | not in time | lost | refused
 *
 * A dispatch waits for a plugin at most request_timeout, counted from when its delivery is queued (H5);
 * then it goes on, and the delivery stays in the plugin's queue without it. So a plugin may hear
 * late, but in order, and never holds up more than that.
 */
#include <stdio.h>
#include <stdarg.h>

#include "hooks/nri-int.h"

/* ---- begin and end --------------------------------------------------------------------------- */

static void unlink_dispatch(struct ck_dispatch *dispatch)
{
	*(dispatch->prev ? &dispatch->prev->next : &dispatch->nri->dispatches) = dispatch->next;
	if (dispatch->next)
		dispatch->next->prev = dispatch->prev;
	dispatch->prev = dispatch->next = NULL;
}

static void dispatch_free(struct ck_dispatch *dispatch)
{
	ck_host_call_forget(dispatch->host_call);
	ck_nri_object_unref(dispatch->object);
	ck_blob_unref(dispatch->pod);
	ck_blob_unref(dispatch->container);
	ck_blob_unref(dispatch->resources);
	ck_blob_unref(dispatch->overhead);
	ck_adjust_free(dispatch->adjust);
	ck_bytes_free(&dispatch->adjustment);
	ck_bytes_free(&dispatch->owners);
	ck_bytes_free(&dispatch->told_names);
	ck_bytes_free(&dispatch->result_resources);
	free(dispatch->pod_id);
	free(dispatch->names);
	free(dispatch);
}

/* a container, and its pod? */
static bool is_in(const struct ck_nri_object *container, const struct ck_nri_object *pod)
{
	return container && pod && container->kind == CK_CONTAINER && pod->kind == CK_SANDBOX &&
	       !strcmp(container->sandbox_id, pod->id);
}

static bool ends(enum ck_nri_event event)
{
	return ck_nri_event_stops(event) || ck_nri_event_removes(event);
}

void ck_dispatch_done(struct ck_dispatch *dispatch)
{
	struct ck_dispatch **end = &dispatch->nri->dispatches_done;
	ck_host_call_forget(CK_TAKE(dispatch->host_call));
	if (dispatch->at)
		CK_TAKE(dispatch->at)->dispatch = NULL;
	unlink_dispatch(dispatch);
	dispatch->phase = CK_DISPATCH_DONE;
	for (struct ck_dispatch *other = dispatch->nri->dispatches; other; other = other->next)
		other->behind = other->behind && other->object != dispatch->object &&
				!is_in(dispatch->object, other->object); /* looked at anew */
	while (*end)
		end = &(*end)->next;
	*end = dispatch;
	/* without a cache nobody releases it */
	if (dispatch->object && ck_nri_event_removes(dispatch->event) && !dispatch->object->entry)
		ck_nri_object_forget(dispatch->nri, dispatch->object);
}

void ck_dispatch_refuse(struct ck_dispatch *dispatch, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	vsnprintf(dispatch->refusal, sizeof(dispatch->refusal), fmt, args);
	va_end(args);
	dispatch->refused = true;
}

/* whoever has not heard of it yet need not: it is undone */
static void withdraw(struct ck_dispatch *dispatch)
{
	for (struct ck_plugin *plugin = dispatch->nri->plugins, *next; plugin && dispatch->object;
	     plugin = next) {
		next = plugin->next;
		ck_plugin_unqueue(plugin, dispatch->object);
	}
}

void ck_dispatch_end_refused(struct ck_dispatch *dispatch)
{
	if (ck_nri_event_announces(dispatch->event) ||
	    dispatch->event == CK_NRI_VALIDATE_CONTAINER_ADJUSTMENT)
		if (!CK_BROKEN(R38))
			withdraw(dispatch);
	ck_dispatch_done(dispatch);
}

static struct ck_blob *blob_of(const void *p, size_t len, bool *whole)
{
	struct ck_blob *blob = p ? ck_blob_new(p, len) : NULL;
	*whole = *whole && (!p || blob);
	return blob;
}

/* the object of a call: found, or made if the call announces it */
static int find_object(struct ck_dispatch *dispatch, const struct ck_nri_call *call,
		       const struct ck_told *told, struct ck_error *err)
{
	struct ck_nri *nri = dispatch->nri;
	enum ck_kind kind = ck_nri_event_of_pod(call->event) ? CK_SANDBOX : CK_CONTAINER;
	const char *id = kind == CK_SANDBOX ? call->pod_id : call->container_id;
	struct ck_nri_object *object = ck_nri_object_find(nri, kind, id);
	if (!object && told)
		object = ck_nri_object_ensure(nri, kind, id, told);
	else if (!object && ck_nri_event_announces(call->event)) {
		const struct ck_told key = {
			.size = sizeof(key), .kind = kind, .id = id, .sandbox_id = call->pod_id
		};
		object = ck_nri_object_ensure(nri, kind, id, &key);
		if (object && ((dispatch->before_create &&
				ck_nri_object_not_created(nri, object, call->container_name,
							  call->attempt) < 0) ||
			       ck_recipients_add_all(nri, object) < 0)) {
			/* the next try must not find half of them chosen */
			ck_nri_object_forget(nri, object);
			return ck_nomem(err);
		}
	} else if (!object) {
		return 0; /* nobody knows it */
	}
	if (!object)
		return ck_nomem(err);
	dispatch->object = ck_nri_object_ref(object);
	return 0;
}

void ck_dispatch_note_told(struct ck_dispatch *dispatch, const struct ck_plugin *plugin)
{
	struct ck_bytes *names = &dispatch->told_names;
	if (ck_bytes_room(names, strlen(plugin->name) + 2) < 0)
		return;
	if (names->len)
		ck_bytes_add_text(names, " ");
	ck_bytes_add_text(names, plugin->name);
}

/* its commit: who was asked about it before it was made is not told again, but is among the told */
static void find_consulted(struct ck_dispatch *dispatch)
{
	for (const struct ck_plugin *plugin = dispatch->nri->plugins; plugin;
	     plugin = plugin->next) {
		const struct ck_recipient *recipient = ck_recipient_find(dispatch->object, plugin);
		if (!recipient || !recipient->told || recipient->listed)
			continue;
		dispatch->consulted = true;
		if (ck_plugin_wants(plugin, CK_NRI_CREATE_CONTAINER))
			ck_dispatch_note_told(dispatch, plugin);
	}
}

/* what the caller tells is as good as what the host would describe */
static void keep_described(struct ck_dispatch *dispatch, const struct ck_nri_call *call)
{
	struct ck_nri_object *pod = ck_nri_object_find(dispatch->nri, CK_SANDBOX, call->pod_id);
	if (pod && call->pod)
		ck_nri_object_described(dispatch->nri, pod, call->pod, call->pod_len, NULL);
	if (dispatch->object->kind == CK_CONTAINER && call->container)
		ck_nri_object_described(dispatch->nri, dispatch->object, call->container,
					call->container_len, NULL);
}

int ck_dispatch_begin(struct ck_nri *nri, const struct ck_nri_call *call,
		      const struct ck_told *told, enum ck_nri_event then, ck_nri_cb *cb,
		      void *userdata, struct ck_error *err)
{
	struct ck_dispatch *dispatch = CK_NEW(struct ck_dispatch), **end = &nri->dispatches;
	bool whole = true;
	if (!dispatch)
		return ck_nomem(err);
	dispatch->nri = nri;
	dispatch->event = dispatch->asked = call->event;
	dispatch->then = then;
	dispatch->before_create = call->event == CK_NRI_CREATE_CONTAINER && call->container_name;
	dispatch->cb = cb;
	dispatch->userdata = userdata;
	dispatch->began = ck_nri_now(nri);
	dispatch->due = CK_NRI_FOREVER;
	dispatch->pod = blob_of(call->pod, call->pod_len, &whole);
	dispatch->container = blob_of(call->container, call->container_len, &whole);
	dispatch->resources = blob_of(call->resources, call->resources_len, &whole);
	dispatch->overhead = blob_of(call->overhead, call->overhead_len, &whole);
	dispatch->pod_id = ck_strdup(call->pod_id);
	dispatch->names = ck_strdup(told ? told->told : NULL);
	if (!whole || (call->pod_id && !dispatch->pod_id) ||
	    (told && told->told && !dispatch->names) ||
	    find_object(dispatch, call, told, err) < 0) {
		dispatch_free(dispatch);
		return ck_nomem(err);
	}
	if (dispatch->object) {
		keep_described(dispatch, call);
		dispatch->inherited = !dispatch->object->ours;
		if (told && call->event == CK_NRI_CREATE_CONTAINER)
			find_consulted(dispatch);
	}
	for (struct ck_recipient *recipient =
		     dispatch->object && CK_BROKEN(R23) ? dispatch->object->recipients : NULL;
	     recipient; recipient = recipient->next)
		recipient->stopped = false;
	if (dispatch->object && ck_nri_event_stops(call->event) && !CK_BROKEN(H1))
		dispatch->object->stop_begun = true; /* from here on it is in no list */
	while (*end) {
		dispatch->prev = *end;
		end = &(*end)->next;
	}
	*end = dispatch;
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
static bool waits_for_return(struct ck_dispatch *dispatch)
{
	struct ck_nri *nri = dispatch->nri;
	const char *at = dispatch->names, *name;
	size_t len;
	if (!nri->started)
		return true;
	uint64_t until = nri->started_at + nri->registration_timeout;
	if (ck_nri_now(nri) >= until)
		return false;
	while ((name = next_name(&at, &len)))
		if (!named(nri->plugins, name, len)) {
			dispatch->due = until;
			return true;
		}
	return false;
}

static void add_returned(struct ck_dispatch *dispatch)
{
	const char *at = dispatch->names, *name;
	size_t len;
	while ((name = next_name(&at, &len)))
		for (struct ck_plugin *plugin = dispatch->nri->plugins;
		     (plugin = named(plugin, name, len)); plugin = plugin->next) {
			if (ck_recipient_find(dispatch->object, plugin) || CK_BROKEN(H3))
				continue;
			struct ck_recipient *recipient = ck_recipient_add(dispatch->object, plugin);
			if (recipient)
				recipient->told = true;
		}
}

/* events of one object come one after the other, and a pod ends behind what is in it (R18, R26,
 * R30) */
static bool is_behind(const struct ck_dispatch *dispatch)
{
	for (const struct ck_dispatch *other = dispatch->prev; other; other = other->prev)
		if ((other->object == dispatch->object ||
		     (ends(dispatch->event) && ends(other->event) &&
		      is_in(other->object, dispatch->object))) &&
		    !CK_BROKEN(R30))
			return true;
	return false;
}

/* ---- the steps ------------------------------------------------------------------------------- */

void ck_dispatch_step(struct ck_dispatch *dispatch)
{
	struct ck_nri_object *object = dispatch->object;
	enum ck_nri_event stop = object && object->kind == CK_SANDBOX ? CK_NRI_STOP_POD_SANDBOX
								      : CK_NRI_STOP_CONTAINER;
	if (dispatch->phase == CK_DISPATCH_DELIVER) { /* once more round, for validation */
		ck_dispatch_deliver(dispatch);
		return;
	}
	if (dispatch->phase != CK_DISPATCH_NEW && dispatch->phase != CK_DISPATCH_AWAIT_RETURN)
		return;
	if (!object || dispatch->cancelled) {
		ck_dispatch_done(dispatch);
		return;
	}
	dispatch->behind = is_behind(dispatch);
	if (dispatch->behind)
		return;
	const char *absent = dispatch->before_create ? ck_plugins_absent(dispatch->nri) : NULL;
	if (absent) {
		ck_dispatch_refuse(dispatch, "the required plugin %s is not connected", absent);
		ck_dispatch_end_refused(dispatch);
		return;
	}
	if (ends(dispatch->event) && dispatch->names && *dispatch->names && dispatch->inherited) {
		dispatch->phase = CK_DISPATCH_AWAIT_RETURN;
		if (waits_for_return(dispatch))
			return;
		add_returned(dispatch);
	}
	dispatch->phase = CK_DISPATCH_NEW;
	dispatch->due = CK_NRI_FOREVER;
	if (ck_nri_event_stops(dispatch->event) && CK_BROKEN(R32))
		dispatch->event++;
	if (ck_nri_event_removes(dispatch->event) && !dispatch->then &&
	    ck_dispatch_has_recipients(dispatch, stop) && !CK_BROKEN(R31) && !CK_BROKEN(R32)) {
		dispatch->then = dispatch->event; /* nobody hears Remove before Stop (R31) */
		dispatch->event = stop;
		object->stop_begun = true;
	}
	if (!ck_dispatch_has_recipients(dispatch, dispatch->event) &&
	    !(dispatch->event == CK_NRI_CREATE_CONTAINER && ck_dispatch_has_validators(dispatch))) {
		dispatch->phase = CK_DISPATCH_DELIVER; /* nothing need be described */
		ck_dispatch_deliver(dispatch);
		return;
	}
	ck_dispatch_describe(dispatch);
}

/* ---- time, and the way out ------------------------------------------------------------------- */

static void expired(struct ck_dispatch *dispatch)
{
	dispatch->due = CK_NRI_FOREVER;
	if (dispatch->phase == CK_DISPATCH_DESCRIBE && !dispatch->host_call)
		ck_dispatch_describe(dispatch);
	else if (dispatch->phase == CK_DISPATCH_DELIVER && dispatch->at && !CK_BROKEN(R13))
		ck_dispatch_timed_out(dispatch);
}

void ck_dispatches_timers(struct ck_nri *nri, uint64_t now)
{
	/* any of them may end from within, and the next one with it: begin anew after each */
	for (struct ck_dispatch *dispatch = nri->dispatches; dispatch;) {
		if (dispatch->phase == CK_DISPATCH_NEW ||
		    dispatch->phase == CK_DISPATCH_AWAIT_RETURN) {
			bool debt = dispatch->phase == CK_DISPATCH_AWAIT_RETURN;
			if (!dispatch->behind && (!debt || dispatch->due <= now)) {
				ck_dispatch_step(dispatch);
				if (!dispatch->behind &&
				    (!debt || dispatch->phase != CK_DISPATCH_AWAIT_RETURN)) {
					dispatch = nri->dispatches;
					continue;
				}
			}
		} else if (dispatch->due <= now) {
			expired(dispatch);
			dispatch = nri->dispatches;
			continue;
		}
		dispatch = dispatch->next;
	}
}

void ck_dispatches_plugins_changed(struct ck_nri *nri)
{
	for (struct ck_dispatch *dispatch = nri->dispatches; dispatch; dispatch = dispatch->next)
		if (dispatch->phase == CK_DISPATCH_AWAIT_RETURN)
			dispatch->due = 0; /* looked at by the next ck_dispatches_timers() */
}

uint64_t ck_dispatches_due(const struct ck_nri *nri)
{
	uint64_t due = CK_NRI_FOREVER;
	for (const struct ck_dispatch *dispatch = nri->dispatches; dispatch;
	     dispatch = dispatch->next) {
		uint64_t at = dispatch->phase != CK_DISPATCH_NEW ? dispatch->due
			      : dispatch->behind                 ? CK_NRI_FOREVER
								 : 0;
		due = at < due ? at : due;
	}
	return due;
}

/* the entry was abandoned: nobody further is told; who has it already is waited for (K13) */
void ck_dispatch_cancel(struct ck_nri *nri, uint64_t entry)
{
	for (struct ck_dispatch *dispatch = nri->dispatches, *next; dispatch; dispatch = next) {
		next = dispatch->next;
		if (!dispatch->object || dispatch->object->entry != entry ||
		    ck_nri_event_stops(dispatch->event) || ck_nri_event_removes(dispatch->event))
			continue;
		if (!dispatch->names)
			continue; /* not of its commit */
		dispatch->cancelled = true;
		withdraw(dispatch); /* may end it */
		if (dispatch->phase == CK_DISPATCH_NEW || dispatch->phase == CK_DISPATCH_DESCRIBE)
			ck_dispatch_done(dispatch);
		return;
	}
}

void ck_dispatches_call_back(struct ck_nri *nri)
{
	struct ck_dispatch *dispatch;
	while ((dispatch = nri->dispatches_done)) {
		nri->dispatches_done = dispatch->next;
		const char *names = ck_bytes_add(&dispatch->told_names, "", 1) == 0
					    ? (const char *)dispatch->told_names.p
					    : "";
		const struct ck_nri_result result = {
			.size = sizeof(result),
			.refusal = dispatch->refused ? dispatch->refusal : NULL,
			.adjustment = dispatch->adjustment.p,
			.adjustment_len = dispatch->adjustment.len,
			.owners = dispatch->owners.p,
			.owners_len = dispatch->owners.len,
			.resources = dispatch->result_resources.p,
			.resources_len = dispatch->result_resources.len,
			.told = dispatch->told,
			.told_names = names,
		};
		pthread_mutex_unlock(&nri->lock);
		dispatch->cb(&result, dispatch->userdata);
		pthread_mutex_lock(&nri->lock);
		dispatch_free(dispatch);
	}
}

void ck_dispatches_end_all(struct ck_nri *nri)
{
	while (nri->dispatches)
		ck_dispatch_done(nri->dispatches);
}
