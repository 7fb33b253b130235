/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls to the host: describe an object, update or evict a container. A call is made below the lock
 * and put on a list. ck_nri_process() starts it without the lock. Whoever ends it, from whatever
 * thread, takes the lock and tells its owner, if there still is one.
 */
#include "hooks/nri-int.h"

struct ck_nri_job *ck_host_call_new(struct ck_nri *nri, enum ck_host_call_kind what,
				    enum ck_kind kind, const char *id, const char *text,
				    struct ck_blob *blob, ck_host_call_fn *done, void *owner)
{
	struct ck_nri_job *host_call = CK_NEW(struct ck_nri_job);
	if (!host_call)
		return NULL;
	host_call->what = what;
	host_call->kind = kind;
	host_call->id = ck_strdup(id);
	host_call->text = ck_strdup(text);
	if (!host_call->id || (text && !host_call->text)) {
		free(host_call->id);
		free(host_call->text);
		free(host_call);
		return NULL;
	}
	host_call->blob = ck_blob_ref(blob);
	host_call->done = done;
	host_call->owner = owner;
	host_call->nri = nri;
	ck_nri_ref(nri);
	DL_APPEND(nri->host_calls, host_call);
	return host_call;
}

void ck_host_call_forget(struct ck_nri_job *host_call)
{
	if (!host_call)
		return;
	host_call->done = NULL;
	host_call->owner = NULL;
}

/* below the lock; true: the nri went with it */
static bool host_call_free(struct ck_nri_job *host_call)
{
	struct ck_nri *nri = host_call->nri;
	free(host_call->id);
	free(host_call->text);
	ck_blob_unref(host_call->blob);
	free(host_call);
	return ck_nri_unref(nri);
}

/* the host is asked for a few descriptions at a time */
static bool may_start(const struct ck_nri *nri, const struct ck_nri_job *host_call)
{
	return !host_call->done || host_call->what != CK_HOST_CALL_DESCRIBE ||
	       nri->describing < CK_NRI_DESCRIBE_AT_ONCE;
}

/* the first that may start; NULL: none */
static struct ck_nri_job *first_ready(const struct ck_nri *nri)
{
	struct ck_nri_job *host_call;
	DL_FOREACH (nri->host_calls, host_call)
		if (may_start(nri, host_call))
			break;
	return host_call;
}

bool ck_host_calls_ready(const struct ck_nri *nri)
{
	return first_ready(nri);
}

void ck_host_calls_start(struct ck_nri *nri)
{
	const struct ck_nri_host *host = &nri->host;
	struct ck_nri_job *host_call;
	while ((host_call = first_ready(nri))) {
		DL_DELETE(nri->host_calls, host_call);
		if (!host_call->done && host_call->what != CK_HOST_CALL_EVICT) {
			host_call_free(host_call); /* the opener has a reference as well */
			continue;
		}
		nri->describing += host_call->what == CK_HOST_CALL_DESCRIBE;
		struct ck_blob *blob = host_call->blob;
		pthread_mutex_unlock(&nri->lock);
		switch (host_call->what) {
		case CK_HOST_CALL_DESCRIBE:
			host->describe(host_call, host_call->kind, host_call->id, host->userdata);
			break;
		case CK_HOST_CALL_UPDATE:
			if (host->update)
				host->update(host_call, host_call->id, blob->bytes, blob->len,
					     host->userdata);
			else
				ck_nri_job_done(host_call, CK_GRPC_UNIMPLEMENTED, NULL, 0);
			break;
		case CK_HOST_CALL_EVICT:
			if (host->evict)
				host->evict(host_call, host_call->id, host_call->text,
					    host->userdata);
			else
				ck_nri_job_done(host_call, CK_GRPC_UNIMPLEMENTED, NULL, 0);
			break;
		}
		pthread_mutex_lock(&nri->lock);
	}
}

void ck_nri_job_done(struct ck_nri_job *host_call, int grpc, const void *bytes, size_t len)
{
	struct ck_nri *nri = host_call ? host_call->nri : NULL;
	if (!nri || ck_host_process_left(&nri->home))
		return;
	ck_nri_lock(nri);
	nri->describing -= host_call->what == CK_HOST_CALL_DESCRIBE;
	if (host_call->done)
		host_call->done(host_call, grpc, bytes, len);
	else if (host_call->what == CK_HOST_CALL_EVICT && grpc != CK_GRPC_OK)
		ck_nri_log(nri, CK_LOG_WARNING, "evicting container %.64s for a plugin: %s",
			   host_call->id, ck_grpc_name(grpc));
	if (!host_call_free(host_call))
		ck_nri_unlock(nri);
}

void ck_host_call_fail(struct ck_nri_job *host_call, const char *why)
{
	struct ck_nri *nri = host_call->nri;
	if (ck_host_process_left(&nri->home))
		return;
	ck_nri_lock(nri);
	ck_nri_log(nri, CK_LOG_WARNING, "the host's description of %.64s: %s", host_call->id, why);
	ck_nri_unlock(nri);
	ck_nri_job_done(host_call, CK_GRPC_INTERNAL, NULL, 0);
}

void ck_host_calls_drop(struct ck_nri *nri)
{
	while (nri->host_calls) {
		struct ck_nri_job *host_call = nri->host_calls;
		DL_DELETE(nri->host_calls, host_call);
		if (host_call->done)
			host_call->done(host_call, CK_GRPC_CANCELLED, NULL, 0);
		host_call_free(host_call);
	}
}
