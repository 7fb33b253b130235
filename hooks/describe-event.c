/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What plugins are told: the pod and the container of an event, as the host describes them. An
 * announcement is not sent before the description is complete. For the end of an object the last
 * description is enough.
 */
#include "hooks/nri-int.h"

static const char *pod_id_of(const struct ck_dispatch *dispatch)
{
	return dispatch->pod_id ? dispatch->pod_id : dispatch->object->sandbox_id;
}

static struct ck_nri_object *pod_of(const struct ck_dispatch *dispatch)
{
	return dispatch->object->kind == CK_SANDBOX
		       ? dispatch->object
		       : ck_nri_object_find(dispatch->nri, CK_SANDBOX, pod_id_of(dispatch));
}

/* the last description of the pod, or at least its id. NULL: out of memory */
static struct ck_blob *last_of_pod(const struct ck_dispatch *dispatch)
{
	struct ck_bytes bytes = { 0 };
	struct ck_blob *blob = NULL;
	const struct ck_nri_object *pod = pod_of(dispatch);
	if (pod)
		return ck_blob_ref(pod->description);
	if (ck_bytes_field_text(&bytes, 1, pod_id_of(dispatch)) == 0)
		blob = ck_blob_new(bytes.p, bytes.len);
	ck_bytes_free(&bytes);
	return blob;
}

/* An end is told with what is known, a beginning only with a description. */
static bool needs_description(const struct ck_dispatch *dispatch)
{
	return ck_nri_event_announces(dispatch->event) &&
	       (!dispatch->consulted || ck_dispatch_has_recipients(dispatch, dispatch->event));
}

static void not_described(struct ck_dispatch *dispatch, enum ck_kind kind, int grpc)
{
	uint64_t now = ck_nri_now(dispatch->nri);
	bool needed = needs_description(dispatch);
	/* whether it has the id that plugins were asked about is known when the runtime is back */
	if (!needed && !(dispatch->consulted && grpc == CK_GRPC_UNAVAILABLE)) {
		struct ck_blob **at = kind == CK_CONTAINER ? &dispatch->container : &dispatch->pod;
		*at = kind == CK_CONTAINER ? ck_blob_ref(dispatch->object->description)
					   : last_of_pod(dispatch);
		if (*at) {
			ck_dispatch_describe(dispatch);
			return;
		}
	}
	/* While the runtime answers nobody, everybody waits, and what it has finished is not undone
	 * for that. */
	if (grpc == CK_GRPC_UNAVAILABLE)
		dispatch->asking = 0;
	if (needed && grpc == CK_GRPC_NOT_FOUND) {
		ck_dispatch_refuse(dispatch, "it is gone");
		ck_dispatch_end_refused(dispatch);
	} else if (needed && dispatch->asking && now - dispatch->asking >= CK_NRI_DESCRIBE_MAX) {
		ck_dispatch_refuse(dispatch, "the runtime does not describe the new object: %s",
				   ck_grpc_name(grpc));
		ck_dispatch_end_refused(dispatch);
	} else { /* ask again: nobody would complete half a description later (R3) */
		dispatch->pause = dispatch->pause ? dispatch->pause * 2 : CK_NRI_DESCRIBE_AGAIN;
		if (dispatch->pause > 8 * CK_NRI_DESCRIBE_AGAIN)
			dispatch->pause = 8 * CK_NRI_DESCRIBE_AGAIN;
		dispatch->due = now + dispatch->pause;
	}
}

static void described(struct ck_nri_job *host_call, int grpc, const void *bytes, size_t len)
{
	struct ck_dispatch *dispatch = host_call->owner;
	struct ck_nri *nri = dispatch->nri;
	struct ck_error err = { 0 };
	dispatch->host_call = NULL;
	if (dispatch->phase != CK_DISPATCH_DESCRIBE)
		return;
	struct ck_nri_object *object =
		host_call->kind == dispatch->object->kind
			? dispatch->object
			: ck_nri_object_find(nri, host_call->kind, host_call->id);
	if (object && grpc != CK_GRPC_OK)
		ck_nri_object_known(nri, object, bytes, len);
	if (grpc != CK_GRPC_OK || !bytes) {
		not_described(dispatch, host_call->kind, grpc ? grpc : CK_GRPC_INTERNAL);
		return;
	}
	struct ck_blob **at = host_call->kind == CK_SANDBOX ? &dispatch->pod : &dispatch->container;
	int r = object ? ck_nri_object_described(nri, object, bytes, len, &err) : 0;
	if (r >= 0)
		*at = object ? ck_blob_ref(object->description) : ck_blob_new(bytes, len);
	if (!*at) {
		ck_nri_log(nri, CK_LOG_ERROR, "the description of %.64s cannot be used: %s",
			   host_call->id, err.text);
		not_described(dispatch, host_call->kind,
			      r == -CK_EMALFORMED ? CK_GRPC_NOT_FOUND : CK_GRPC_RESOURCE_EXHAUSTED);
		return;
	}
	ck_dispatch_describe(dispatch);
}

static void ask(struct ck_dispatch *dispatch, enum ck_kind kind, const char *id)
{
	dispatch->phase = CK_DISPATCH_DESCRIBE;
	if (!dispatch->asking)
		dispatch->asking = ck_nri_now(dispatch->nri);
	dispatch->due = CK_NRI_FOREVER;
	dispatch->host_call = ck_host_call_new(dispatch->nri, CK_HOST_CALL_DESCRIBE, kind, id, NULL,
					       NULL, described, dispatch);
	if (!dispatch->host_call)
		not_described(dispatch, kind, CK_GRPC_RESOURCE_EXHAUSTED);
}

static int begin_merging(struct ck_dispatch *dispatch, struct ck_error *err)
{
	const struct ck_blob *resources = dispatch->resources;
	switch (dispatch->event) {
	case CK_NRI_CREATE_CONTAINER:
		if (dispatch->consulted && !ck_dispatch_has_recipients(dispatch, dispatch->event))
			return 0; /* all have been asked */
		if (CK_NEVER(!dispatch->container))
			return ck_fail(err, CK_ESTATE, "the container is not described");
		return ck_adjust_create(dispatch->container->bytes, dispatch->container->len,
					&dispatch->adjust, err);
	case CK_NRI_UPDATE_CONTAINER:
		return ck_adjust_update(dispatch->object->nri_id,
					resources ? resources->bytes : NULL,
					resources ? resources->len : 0, &dispatch->adjust, err);
	case CK_NRI_STOP_CONTAINER:
		return ck_adjust_others(&dispatch->adjust, err);
	default:
		return 0;
	}
}

/* A runtime forgets the pid of a process that has ended. Plugins undo by it what they did. */
static void add_last_pid(struct ck_dispatch *dispatch)
{
	CK_AUTO_BYTES struct ck_bytes bytes = { 0 };
	struct ck_blob *container = dispatch->container, *with = NULL;
	uint64_t pid = dispatch->object->pid;
	if (dispatch->event != CK_NRI_STOP_CONTAINER || !pid || CK_NEVER(!container))
		return;
	if (ck_bytes_add(&bytes, container->bytes, container->len) == 0 &&
	    ck_bytes_field_number(&bytes, CK_NRI_CONTAINER_PID, pid) == 0)
		with = ck_blob_new(bytes.p, bytes.len);
	if (!with)
		return; /* out of memory: the event goes out without */
	ck_blob_unref(container);
	dispatch->container = with;
}

/* Who was asked about it before it was created is not told again, but the history names them. */
static void find_consulted(struct ck_dispatch *dispatch)
{
	const struct ck_plugin *plugin;
	dispatch->consulted = false;
	DL_FOREACH (dispatch->nri->plugins, plugin) {
		const struct ck_recipient *recipient = ck_recipient_find(dispatch->object, plugin);
		if (!ck_recipient_consulted(recipient))
			continue;
		dispatch->consulted = true;
		if (recipient->told && ck_plugin_wants(plugin, CK_NRI_CREATE_CONTAINER))
			ck_dispatch_note_told(dispatch, plugin);
	}
}

void ck_dispatch_describe(struct ck_dispatch *dispatch)
{
	struct ck_nri_object *object = dispatch->object;
	struct ck_nri_object *pod = pod_of(dispatch);
	struct ck_error err = { 0 };
	bool fresh = ck_nri_event_needs_fresh(dispatch->event);
	if (!dispatch->pod && pod && pod->described && !(fresh && pod == object))
		dispatch->pod = ck_blob_ref(pod->description);
	if (!dispatch->pod) {
		ask(dispatch, CK_SANDBOX, pod ? pod->id : pod_id_of(dispatch));
		return;
	}
	if (object->kind == CK_CONTAINER && !dispatch->container &&
	    (!*object->id || (object->described && !fresh)))
		dispatch->container = ck_blob_ref(object->description);
	if (object->kind == CK_CONTAINER && !dispatch->container) {
		ask(dispatch, CK_CONTAINER, object->id);
		return;
	}
	if (dispatch->consulted && dispatch->event == dispatch->asked)
		find_consulted(dispatch); /* a description may have changed it */
	add_last_pid(dispatch);
	if (begin_merging(dispatch, &err) < 0) {
		ck_nri_log(dispatch->nri, CK_LOG_ERROR, "%s: %s",
			   ck_nri_event_name(dispatch->event), err.text);
		/* an end is told all the same; what its answers want changed is not read then */
		if (!ck_nri_event_tears_down(dispatch->event)) {
			ck_dispatch_refuse(dispatch, "%s", err.text);
			ck_dispatch_end_refused(dispatch);
			return;
		}
	}
	dispatch->phase = CK_DISPATCH_DELIVER;
	ck_dispatch_deliver(dispatch);
}
