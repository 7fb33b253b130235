/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What plugins ask for by themselves: UpdateContainers, and evictions. A request is served at once,
 * even while the same plugin is handling an event (H8): it needs nothing that an event holds.
 * Containers that the plugin was not told of are skipped, like unknown ones.
 */
#include <stdio.h>

#include "hooks/nri-int.h"

const char *ck_update_target(struct ck_nri *nri, const struct ck_plugin *plugin, const char *id)
{
	struct ck_nri_object *object = ck_nri_object_find(nri, CK_CONTAINER, id);
	if (!object || !*object->id || object->stop_begun)
		return NULL;
	const struct ck_recipient *recipient = plugin ? ck_recipient_find(object, plugin) : NULL;
	if (plugin && (!recipient || !recipient->told))
		return NULL;
	return object->id;
}

/* ---- changes nobody waits for ---------------------------------------------------------------- */

static void plain_changed(struct ck_nri_job *host_call, int grpc, const void *bytes, size_t len)
{
	(void)bytes;
	(void)len;
	if (grpc != CK_GRPC_OK)
		ck_nri_log(host_call->nri, CK_LOG_WARNING,
			   "updating container %.64s for a plugin: %s", host_call->id,
			   ck_grpc_name(grpc));
}

void ck_update_plain(struct ck_nri *nri, const struct ck_plugin *plugin, struct ck_adjust *adjust)
{
	struct ck_adjust_other other;
	for (size_t i = 0; i < ck_adjust_others_n(adjust); i++) {
		const char *id = ck_adjust_other(adjust, i, &other, NULL) < 0
					 ? NULL
					 : ck_update_target(nri, plugin, other.container_id);
		struct ck_blob *blob = id ? ck_blob_new(other.resources, other.len) : NULL;
		if (blob)
			ck_host_call_new(nri, CK_HOST_CALL_UPDATE, CK_CONTAINER, id, NULL, blob,
					 plain_changed, NULL);
		ck_blob_unref(blob);
	}
}

void ck_update_evictions(struct ck_nri *nri, const struct ck_plugin *plugin,
			 const struct ck_adjust *adjust)
{
	for (size_t i = 0; i < ck_adjust_evictions_n(adjust); i++) {
		struct ck_adjust_eviction eviction = ck_adjust_eviction(adjust, i);
		const char *id = ck_update_target(nri, plugin, eviction.container_id);
		if (!id)
			continue;
		ck_nri_log(nri, CK_LOG_WARNING, "plugin %s evicts container %.64s", eviction.plugin,
			   id);
		if (!ck_host_call_new(nri, CK_HOST_CALL_EVICT, CK_CONTAINER, id,
				      eviction.reason ? eviction.reason : "", NULL, NULL, NULL))
			ck_nri_log(nri, CK_LOG_ERROR, "evicting container %.64s: out of memory",
				   id);
	}
}

/* ---- UpdateContainers ------------------------------------------------------------------------ */

/* one call of a plugin: its updates run at the same time, and the last one answers it */
struct request {
	struct ck_nri *nri;
	uint64_t serial; /* of the connection, which may have gone */
	uint32_t stream;
	struct ck_adjust *adjust;
	size_t n, open;
	bool *failed;
};

static void request_free(struct request *request)
{
	ck_adjust_free(request->adjust);
	free(request->failed);
	free(request);
}

static void answer_request(struct request *request)
{
	struct ck_bytes bytes = { 0 };
	struct ck_error err;
	struct ck_plugin *plugin = request->nri->plugins;
	while (plugin && plugin->serial != request->serial)
		plugin = plugin->next;
	if (plugin && plugin->state != CK_PLUGIN_CLOSED) {
		int r = ck_adjust_failed(request->adjust, request->failed, &bytes, &err);
		ck_ttrpc_answer(plugin->ttrpc, request->stream,
				r < 0 ? CK_GRPC_RESOURCE_EXHAUSTED : CK_GRPC_OK,
				r < 0 ? err.text : NULL, bytes.p, bytes.len);
		ck_plugin_pump(plugin);
	}
	ck_bytes_free(&bytes);
	request_free(request);
}

static void one_changed(struct ck_nri_job *host_call, int grpc, const void *bytes, size_t len)
{
	struct request *request = host_call->owner;
	(void)bytes;
	(void)len;
	/* one that has gone is skipped, like an unknown one */
	request->failed[host_call->i] = grpc != CK_GRPC_OK && grpc != CK_GRPC_NOT_FOUND;
	if (--request->open == 0)
		answer_request(request);
}

void ck_update_requested(struct ck_plugin *plugin, const struct ck_ttrpc_request *call)
{
	struct ck_nri *nri = plugin->nri;
	struct ck_error err = { 0 };
	struct request *request = CK_NEW(struct request);
	int r = request ? ck_adjust_others(&request->adjust, &err) : ck_nomem(&err);
	if (r >= 0 && !ck_plugin_joined(plugin))
		r = ck_fail(&err, CK_ESTATE, "this plugin is not synchronized yet");
	if (r >= 0)
		r = ck_adjust_reply(request->adjust, CK_REPLY_UPDATE_CONTAINERS, plugin->name,
				    call->payload, call->len, &err);
	if (r >= 0) {
		request->nri = nri;
		request->serial = plugin->serial;
		request->stream = call->stream;
		request->n = ck_adjust_others_n(request->adjust);
		request->failed = ck_alloc(request->n + 1);
		if (!request->failed)
			r = ck_nomem(&err);
	}
	if (r < 0 || CK_NEVER(!request->failed)) {
		ck_ttrpc_answer(plugin->ttrpc, call->stream,
				r == -CK_ENOMEM   ? CK_GRPC_RESOURCE_EXHAUSTED
				: r == -CK_ESTATE ? CK_GRPC_FAILED_PRECONDITION
						  : CK_GRPC_INVALID_ARGUMENT,
				err.text, NULL, 0);
		if (request)
			request_free(request);
		return;
	}
	request->open = 1; /* so that it is not answered before all have begun */
	for (size_t i = 0; i < request->n; i++) {
		struct ck_adjust_other other;
		const char *id = ck_adjust_other(request->adjust, i, &other, NULL) < 0
					 ? NULL
					 : ck_update_target(nri, plugin, other.container_id);
		if (!id)
			continue;
		struct ck_blob *blob = ck_blob_new(other.resources, other.len);
		struct ck_nri_job *host_call =
			blob ? ck_host_call_new(nri, CK_HOST_CALL_UPDATE, CK_CONTAINER, id, NULL,
						blob, one_changed, request)
			     : NULL;
		ck_blob_unref(blob);
		if (host_call) {
			host_call->i = i;
			request->open++;
		} else {
			request->failed[i] = true;
		}
	}
	ck_update_evictions(nri, plugin, request->adjust);
	if (--request->open == 0)
		answer_request(request);
}
