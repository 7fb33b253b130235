/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One event from its begin to its callback. The host describes the object, one plugin after the
 * other is sent the event in index order, and their answers are merged.
 *
 *   NEW -> AWAIT_RETURN? -> DESCRIBE -> DELIVER -> UPDATE -> DONE       refused: -> DONE
 *    '<---------- the event that follows -----------'
 *
 * A dispatch waits for a plugin for at most request_timeout, counted from when its delivery is
 * queued (H5). Then it goes on, and the delivery stays in the plugin's queue. So a plugin may hear
 * late, but in order, and holds up no event for longer than that. It does not wait for a plugin
 * that is overdue, unless the plugin's silence fails the event.
 */
#include "hooks/nri-int.h"

/* ---- begin and end --------------------------------------------------------------------------- */

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

static bool ends(enum ck_nri_event event)
{
	return ck_nri_event_stops(event) || ck_nri_event_removes(event);
}

static struct ck_blob *blob_of(const void *p, size_t len, bool *whole)
{
	struct ck_blob *blob = p ? ck_blob_new(p, len) : NULL;
	*whole = *whole && (!p || blob);
	return blob;
}

/* the object of a call: known, or new if the call announces it */
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
			/* the next try must not find it with half of its recipients */
			ck_nri_object_forget(nri, object);
			return ck_nomem(err);
		}
	} else if (!object) {
		return 0; /* no plugin knows it */
	}
	if (!object)
		return ck_nomem(err);
	dispatch->object = ck_nri_object_ref(object);
	return 0;
}

/* The commit of a container that plugins were asked about before it was created */
static bool was_consulted(const struct ck_dispatch *dispatch)
{
	const struct ck_recipient *recipient;
	LL_FOREACH (dispatch->object->recipients, recipient)
		if (ck_recipient_consulted(recipient))
			return true;
	return false;
}

/* a description that the caller gives is as good as the host's */
static void keep_described(struct ck_dispatch *dispatch, const struct ck_nri_call *call)
{
	struct ck_nri_object *pod = ck_nri_object_find(dispatch->nri, CK_SANDBOX, call->pod_id);
	if (pod && call->pod)
		ck_nri_object_described(dispatch->nri, pod, call->pod, call->pod_len, NULL);
	if (dispatch->object->kind == CK_CONTAINER && call->container)
		ck_nri_object_described(dispatch->nri, dispatch->object, call->container,
					call->container_len, NULL);
}

/* @object: of the event; NULL: found by the ids of @call */
static int begin(struct ck_nri *nri, const struct ck_nri_call *call, const struct ck_told *told,
		 struct ck_nri_object *object, enum ck_nri_event then, ck_nri_cb *cb,
		 void *userdata, struct ck_error *err)
{
	struct ck_dispatch *dispatch = CK_NEW(struct ck_dispatch);
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
	dispatch->object = ck_nri_object_ref(object);
	if (!whole || (call->pod_id && !dispatch->pod_id) ||
	    (told && told->told && !dispatch->names) ||
	    (!object && find_object(dispatch, call, told, err) < 0)) {
		dispatch_free(dispatch);
		return ck_nomem(err);
	}
	if (dispatch->object) {
		keep_described(dispatch, call);
		dispatch->inherited = !dispatch->object->ours;
		if (call->event == CK_NRI_CREATE_CONTAINER && !dispatch->before_create)
			dispatch->consulted = was_consulted(dispatch);
	}
	DL_APPEND(nri->dispatches, dispatch);
	return 0;
}

static void nobody_waits(const struct ck_nri_result *result, void *userdata)
{
	(void)result;
	(void)userdata;
}

/* Stop and Remove of objects that recipients.c has found to be gone. What finds no memory begins
 * later, for nobody else tells of it; and nothing behind it begins before. */
static void begin_ended(struct ck_nri *nri)
{
	struct ck_nri_object *object, *next;
	nri->ended_due = 0;
	DL_FOREACH_SAFE (nri->ended, object, next) {
		bool container = object->kind == CK_CONTAINER;
		const struct ck_nri_call call = {
			.size = sizeof(call),
			.event = container ? CK_NRI_STOP_CONTAINER : CK_NRI_STOP_POD_SANDBOX,
			.pod_id = container ? object->sandbox_id : object->nri_id,
		};
		struct ck_error err;
		if (begin(nri, &call, NULL, object,
			  container ? CK_NRI_REMOVE_CONTAINER : CK_NRI_REMOVE_POD_SANDBOX,
			  nobody_waits, NULL, &err) < 0) {
			ck_nri_log(nri, CK_LOG_WARNING,
				   "plugins cannot be told yet that %.64s is gone: %s",
				   object->nri_id, err.text);
			nri->ended_due = ck_nri_now(nri) + CK_NRI_DESCRIBE_AGAIN;
			return;
		}
		DL_DELETE(nri->ended, object);
		ck_nri_object_unref(object);
	}
}

int ck_dispatch_begin(struct ck_nri *nri, const struct ck_nri_call *call,
		      const struct ck_told *told, enum ck_nri_event then, ck_nri_cb *cb,
		      void *userdata, struct ck_error *err)
{
	begin_ended(nri); /* in order: a pod ends after its containers */
	return nri->ended ? ck_nomem(err)
			  : begin(nri, call, told, NULL, then, cb, userdata, err);
}

/* ---- plugins that return after a restart of ours (H3) ---------------------------------------- */

static const char *next_name(const char **at, size_t *ret_len)
{
	const char *name = *at + strspn(*at, " ");
	*ret_len = strcspn(name, " ");
	*at = name + *ret_len;
	return *ret_len ? name : NULL;
}

/* From @from on. Two connections may have one name: then both hear the end of what one was told.
 * One whose snapshot is still to come gets from that what exists (H1). */
static struct ck_plugin *named(struct ck_plugin *from, const char *name, size_t len)
{
	for (struct ck_plugin *plugin = from; plugin; plugin = plugin->next)
		if (ck_plugin_joined(plugin) && !plugin->want_snapshot &&
		    strlen(plugin->name) == len && !memcmp(plugin->name, name, len))
			return plugin;
	return NULL;
}

/* true: not all that were told before the restart are connected, and there is still time */
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
			if (ck_recipient_find(dispatch->object, plugin))
				continue;
			struct ck_recipient *recipient = ck_recipient_add(dispatch->object, plugin);
			if (recipient)
				recipient->told = true;
		}
}

/* Events of one object come one after the other (R30), and a pod ends after its containers (R18,
 * R26). */
static bool is_behind(const struct ck_dispatch *dispatch)
{
	const struct ck_dispatch *other = dispatch->nri->dispatches;
	for (; other != dispatch; other = other->next)
		if (other->object == dispatch->object ||
		    (ends(dispatch->event) && ends(other->event) &&
		     ck_nri_object_is_in(other->object, dispatch->object)))
			return true;
	return false;
}

/* ---- the steps ------------------------------------------------------------------------------- */

/* false: it goes on waiting, and nothing has changed */
static bool step(struct ck_dispatch *dispatch)
{
	struct ck_nri_object *object = dispatch->object;
	enum ck_nri_event stop = object && object->kind == CK_SANDBOX ? CK_NRI_STOP_POD_SANDBOX
								      : CK_NRI_STOP_CONTAINER;
	if (!object || dispatch->cancelled) {
		ck_dispatch_end(dispatch);
		return true;
	}
	dispatch->behind = is_behind(dispatch);
	if (dispatch->behind)
		return false;
	const char *absent = dispatch->before_create ? ck_plugins_absent(dispatch->nri) : NULL;
	if (absent) {
		ck_dispatch_refuse(dispatch, "the required plugin %s is not connected", absent);
		ck_dispatch_end_refused(dispatch);
		return true;
	}
	if (ends(dispatch->event) && dispatch->names && *dispatch->names && dispatch->inherited) {
		dispatch->phase = CK_DISPATCH_AWAIT_RETURN;
		if (waits_for_return(dispatch))
			return false;
		add_returned(dispatch);
	}
	dispatch->phase = CK_DISPATCH_NEW;
	dispatch->due = CK_NRI_FOREVER;
	if (ck_nri_event_removes(dispatch->event) && !dispatch->then &&
	    ck_dispatch_has_recipients(dispatch, stop)) {
		dispatch->then = dispatch->event; /* nobody hears Remove before Stop (R31) */
		dispatch->event = stop;
	}
	/* who joins from now on hears no Stop at all */
	object->stop_begun = object->stop_begun || ck_nri_event_removes(dispatch->event);
	/* the last time to learn the pid that StopContainer tells */
	bool keeps_pid = dispatch->event == CK_NRI_POST_START_CONTAINER &&
			 ck_dispatch_has_recipients(dispatch, CK_NRI_STOP_CONTAINER);
	/* a description also tells whether it has the id that plugins were asked about */
	if (!ck_dispatch_has_recipients(dispatch, dispatch->event) && !keeps_pid &&
	    !(dispatch->event == CK_NRI_CREATE_CONTAINER &&
	      (dispatch->consulted || ck_dispatch_has_validators(dispatch)))) {
		dispatch->phase = CK_DISPATCH_DELIVER; /* nobody needs a description */
		ck_dispatch_deliver(dispatch);
	} else {
		ck_dispatch_describe(dispatch);
	}
	return true;
}

/* ---- time and end ---------------------------------------------------------------------------- */

static void expired(struct ck_dispatch *dispatch)
{
	dispatch->due = CK_NRI_FOREVER;
	if (dispatch->phase == CK_DISPATCH_DESCRIBE && !dispatch->host_call)
		ck_dispatch_describe(dispatch);
	else if (dispatch->phase == CK_DISPATCH_DELIVER && dispatch->at)
		ck_dispatch_timed_out(dispatch);
}

static bool is_due(const struct ck_dispatch *dispatch, uint64_t now)
{
	return dispatch->phase == CK_DISPATCH_NEW ? !dispatch->behind : dispatch->due <= now;
}

/* false: nothing has changed */
static bool go_on(struct ck_dispatch *dispatch)
{
	if (dispatch->phase == CK_DISPATCH_NEW || dispatch->phase == CK_DISPATCH_AWAIT_RETURN)
		return step(dispatch);
	expired(dispatch);
	return true;
}

void ck_dispatches_timers(struct ck_nri *nri, uint64_t now)
{
	struct ck_dispatch *dispatch;
	begin_ended(nri);
	if (nri->plugin_joined)
		DL_FOREACH (nri->dispatches, dispatch)
			if (dispatch->phase == CK_DISPATCH_AWAIT_RETURN)
				dispatch->due = 0;
	if (nri->plugin_overdue)
		DL_FOREACH (nri->dispatches, dispatch)
			if (dispatch->at && !ck_dispatch_waits(dispatch))
				dispatch->due = 0;
	nri->plugin_joined = nri->plugin_overdue = false;
	/* each may end others as well, so begin again after each */
	for (dispatch = nri->dispatches; dispatch;)
		if (is_due(dispatch, now) && go_on(dispatch))
			dispatch = nri->dispatches;
		else
			dispatch = dispatch->next;
}

uint64_t ck_dispatches_due(const struct ck_nri *nri)
{
	const struct ck_dispatch *dispatch;
	uint64_t due = nri->ended ? nri->ended_due : CK_NRI_FOREVER;
	DL_FOREACH (nri->dispatches, dispatch) {
		uint64_t at = dispatch->phase != CK_DISPATCH_NEW ? dispatch->due
			      : dispatch->behind                 ? CK_NRI_FOREVER
								 : 0;
		due = at < due ? at : due;
	}
	return due;
}

/* a plugin that was sent it already is waited for (K13) */
void ck_dispatch_cancel(struct ck_nri *nri, uint64_t entry)
{
	struct ck_dispatch *dispatch;
	DL_FOREACH (nri->dispatches, dispatch) {
		if (!dispatch->object || dispatch->object->entry != entry ||
		    ck_nri_event_stops(dispatch->event) || ck_nri_event_removes(dispatch->event))
			continue;
		if (!dispatch->names)
			continue; /* not the event of its commit */
		dispatch->cancelled = true;
		ck_dispatch_withdraw(dispatch); /* may end it */
		if (dispatch->phase == CK_DISPATCH_NEW || dispatch->phase == CK_DISPATCH_DESCRIBE)
			ck_dispatch_end(dispatch);
		return;
	}
}

void ck_dispatches_call_back(struct ck_nri *nri)
{
	struct ck_dispatch *dispatch;
	while ((dispatch = nri->dispatches_done)) {
		DL_DELETE(nri->dispatches_done, dispatch);
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
		ck_dispatch_end(nri->dispatches);
}
