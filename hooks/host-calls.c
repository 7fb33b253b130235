/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Questions to the host. A job is made below the lock and put on a list; ck_nri_process() starts it
 * with the lock free; whoever ends it, from whatever thread, takes the lock and tells its owner, if
 * there still is one.
 */
#include "hooks/nri-int.h"

struct ck_nri_job *ck_nri_job_new(struct ck_nri *nri, enum ck_nri_job_what what, enum ck_kind kind,
				  const char *id, const char *text, struct ck_blob *blob,
				  ck_nri_job_fn *done, void *owner)
{
	struct ck_nri_job *job = CK_NEW(struct ck_nri_job);
	if (!job)
		return NULL;
	job->what = what;
	job->kind = kind;
	job->id = ck_strdup(id);
	job->text = ck_strdup(text);
	if (!job->id || (text && !job->text)) {
		free(job->id);
		free(job->text);
		free(job);
		return NULL;
	}
	job->blob = ck_blob_ref(blob);
	job->done = done;
	job->owner = owner;
	job->nri = nri;
	ck_nri_ref(nri);
	*nri->jobs_ready_end = job;
	nri->jobs_ready_end = &job->next;
	return job;
}

void ck_nri_job_forget(struct ck_nri_job *job)
{
	if (!job)
		return;
	job->done = NULL;
	job->owner = NULL;
}

/* below the lock; true: the nri went with it */
static bool job_free(struct ck_nri_job *job)
{
	struct ck_nri *nri = job->nri;
	free(job->id);
	free(job->text);
	ck_blob_unref(job->blob);
	free(job);
	return ck_nri_unref(nri);
}

/* descriptions only so many at a time */
static bool may_start(const struct ck_nri *nri, const struct ck_nri_job *job)
{
	return !job->done || job->what != CK_NRI_JOB_DESCRIBE ||
	       nri->describing < CK_NRI_DESCRIBE_AT_ONCE;
}

bool ck_nri_jobs_ready(const struct ck_nri *nri)
{
	for (const struct ck_nri_job *job = nri->jobs_ready; job; job = job->next)
		if (may_start(nri, job))
			return true;
	return false;
}

static struct ck_nri_job *take_ready(struct ck_nri *nri)
{
	for (struct ck_nri_job **at = &nri->jobs_ready; *at; at = &(*at)->next) {
		struct ck_nri_job *job = *at;
		if (!may_start(nri, job))
			continue;
		*at = job->next;
		if (nri->jobs_ready_end == &job->next)
			nri->jobs_ready_end = at;
		job->next = NULL;
		return job;
	}
	return NULL;
}

void ck_nri_jobs_start(struct ck_nri *nri)
{
	const struct ck_nri_host *host = &nri->host;
	struct ck_nri_job *job;
	while ((job = take_ready(nri))) {
		if (!job->done && job->what != CK_NRI_JOB_EVICT) {
			job_free(job); /* never the last reference: the opener has one */
			continue;
		}
		nri->describing += job->what == CK_NRI_JOB_DESCRIBE;
		struct ck_blob *blob = job->blob;
		pthread_mutex_unlock(&nri->lock);
		switch (job->what) {
		case CK_NRI_JOB_DESCRIBE:
			host->describe(job, job->kind, job->id, host->userdata);
			break;
		case CK_NRI_JOB_UPDATE:
			if (host->update)
				host->update(job, job->id, blob->bytes, blob->len, host->userdata);
			else
				ck_nri_job_done(job, CK_GRPC_UNIMPLEMENTED, NULL, 0);
			break;
		case CK_NRI_JOB_EVICT:
			if (host->evict)
				host->evict(job, job->id, job->text, host->userdata);
			else
				ck_nri_job_done(job, CK_GRPC_UNIMPLEMENTED, NULL, 0);
			break;
		}
		pthread_mutex_lock(&nri->lock);
	}
}

void ck_nri_job_done(struct ck_nri_job *job, int grpc, const void *bytes, size_t len)
{
	struct ck_nri *nri = job ? job->nri : NULL;
	if (!nri || ck_host_process_left(&nri->home))
		return;
	ck_nri_lock(nri);
	nri->describing -= job->what == CK_NRI_JOB_DESCRIBE;
	if (job->done)
		job->done(job, grpc, bytes, len);
	else if (job->what == CK_NRI_JOB_EVICT && grpc != CK_GRPC_OK)
		ck_nri_log(nri, CK_LOG_WARNING, "evicting container %.64s for a plugin: %s",
			   job->id, ck_grpc_name(grpc));
	if (!job_free(job))
		ck_nri_unlock(nri);
}

void ck_nri_jobs_drop(struct ck_nri *nri)
{
	while (nri->jobs_ready) {
		struct ck_nri_job *job = nri->jobs_ready;
		nri->jobs_ready = job->next;
		if (job->done)
			job->done(job, CK_GRPC_CANCELLED, NULL, 0);
		job_free(job);
	}
	nri->jobs_ready_end = &nri->jobs_ready;
}
