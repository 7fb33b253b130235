/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Questions to the host. A job is made below the lock and put on a list; ck_nri_process() starts it
 * with the lock free; whoever ends it, from whatever thread, takes the lock and tells its owner, if
 * there still is one.
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
	*nri->host_calls_end = host_call;
	nri->host_calls_end = &host_call->next;
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

/* descriptions only so many at a time */
static bool may_start(const struct ck_nri *nri, const struct ck_nri_job *host_call)
{
	return !host_call->done || host_call->what != CK_HOST_CALL_DESCRIBE ||
	       nri->describing < CK_NRI_DESCRIBE_AT_ONCE;
}

bool ck_host_calls_ready(const struct ck_nri *nri)
{
	for (const struct ck_nri_job *host_call = nri->host_calls; host_call;
	     host_call = host_call->next)
		if (may_start(nri, host_call))
			return true;
	return false;
}

static struct ck_nri_job *take_ready(struct ck_nri *nri)
{
	for (struct ck_nri_job **at = &nri->host_calls; *at; at = &(*at)->next) {
		struct ck_nri_job *host_call = *at;
		if (!may_start(nri, host_call))
			continue;
		*at = host_call->next;
		if (nri->host_calls_end == &host_call->next)
			nri->host_calls_end = at;
		host_call->next = NULL;
		return host_call;
	}
	return NULL;
}

void ck_host_calls_start(struct ck_nri *nri)
{
	const struct ck_nri_host *host = &nri->host;
	struct ck_nri_job *host_call;
	while ((host_call = take_ready(nri))) {
		if (!host_call->done && host_call->what != CK_HOST_CALL_EVICT) {
			host_call_free(
				host_call); /* never the last reference: the opener has one */
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

void ck_host_calls_drop(struct ck_nri *nri)
{
	while (nri->host_calls) {
		struct ck_nri_job *host_call = nri->host_calls;
		nri->host_calls = host_call->next;
		if (host_call->done)
			host_call->done(host_call, CK_GRPC_CANCELLED, NULL, 0);
		host_call_free(host_call);
	}
	nri->host_calls_end = &nri->host_calls;
}
