/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What host and hooks are asked. The event loop collects a job in a round, when what wants it is on
 * disk, and starts it outside of rounds. Any thread may end it; the answer goes to the machine. A
 * job has copies of everything it names, and a reference to the cache, so it may end after the
 * cache was closed.
 */
#include <stdio.h>

#include <utlist.h>

#include "cache/cache.h"
#include "cache/request/redact.h"
#include "src/base/limits.h"

enum job_what {
	JOB_INSPECT,
	JOB_LIST,
	JOB_LIST_KIND,
	JOB_DESTROY,
	JOB_RESOLVE,
	JOB_HOOK,
	JOB_CANCEL
};

struct ck_job {
	struct ck_job *prev, *next; /* collected, and not started yet */
	struct ck_cache *cache;
	enum job_what what;
	uint64_t row, begun_seq;
	enum ck_kind kind;
	enum ck_hook_event event;
	struct ck_filter filter;
	struct ck_told told;
	struct ck_turn *turn;      /* JOB_RESOLVE; owned by the round; NULL: it was freed */
	char *texts[7];            /* copies; told, filter and @id point to them */
	const char *id;            /* an object's, or an image reference */
	struct ck_object *objects; /* JOB_LIST*: the strings of each are one block at .id */
	size_t n;
	bool incomplete; /* an object is missing for lack of memory: the list has failed */
	int grpc;
	enum ck_condition condition;
	char *image_id;
	void *request; /* JOB_HOOK: a refusal is redacted with it */
	size_t request_len;
	char *who; /* JOB_HOOK: the plugins that were sent it; NULL: the hooks do not say */
	bool refused;
	char text[CK_TEXT_MAX + 1]; /* JOB_HOOK: refusal; JOB_DESTROY: why it failed; redacted */
};

static void job_free(struct ck_job *job)
{
	for (size_t i = 0; i < CK_COUNT(job->texts); i++)
		free(job->texts[i]);
	for (size_t i = 0; i < job->n; i++)
		free((char *)job->objects[i].id);
	free(job->objects);
	free(job->image_id);
	free(job->request);
	free(job->who);
	ck_cache_unref(job->cache);
	free(job);
}

static struct ck_job *job_new(struct ck_cache *cache, enum job_what what, const struct ck_entry *e)
{
	struct ck_job *job = CK_NEW(struct ck_job);
	if (!job)
		return NULL;
	job->cache = ck_cache_ref(cache);
	job->what = what;
	/* newer than everything so far, older than everything to come: what moves later is not
	 * judged by its answer (K24) */
	job->begun_seq = ck_machine_seq(cache->machine);
	if (!e)
		return job;
	struct ck_told *told = &job->told;
	const char **names[] = { &told->id,      &told->pod_name,   &told->pod_namespace,
				 &told->pod_uid, &told->sandbox_id, &told->container_name,
				 &told->told };
	_Static_assert(CK_COUNT(names) == CK_COUNT(job->texts), "each name is copied");
	bool whole = true;
	ck_told_fill(told, e);
	if (what != JOB_HOOK)
		told->told = "";
	for (size_t i = 0; i < CK_COUNT(names); i++) {
		*names[i] = job->texts[i] = ck_strdup(*names[i]);
		whole = whole && job->texts[i];
	}
	if (!whole) {
		job_free(job);
		return NULL;
	}
	job->row = e->row.id;
	job->kind = told->kind;
	job->id = told->id;
	return job;
}

/* is its request the one of @e? A creator that is out of time has heard that its result is kept */
static bool asked_for(const struct ck_turn *turn, const struct ck_entry *e)
{
	return turn->is == CK_TURN_REQUEST && turn->m.row == e->row.id &&
	       (turn->m.state == CK_TURN_JOINED || ck_turn_outcome(&turn->m) == CK_KEPT);
}

static struct ck_job *job_hook(struct ck_cache *cache, const struct ck_entry *e,
			       enum ck_hook_event event)
{
	struct ck_job *job = job_new(cache, JOB_HOOK, e);
	if (!job)
		return NULL;
	job->event = event;
	const struct ck_turn *turn;
	DL_FOREACH (cache->turns, turn)
		if (event == CK_HOOK_RUN && asked_for(turn, e) && !job->request &&
		    (job->request = ck_memdup(turn->request, turn->request_len)))
			job->request_len = turn->request_len;
	return job;
}

/* By key: the sandboxes of its uid, or the containers of its sandbox. Before a sandbox is
 * destroyed: the containers in it (K22). */
static struct ck_job *job_list(struct ck_cache *cache, const struct ck_entry *e)
{
	struct ck_job *job = job_new(cache, JOB_LIST, e);
	if (!job)
		return NULL;
	bool in_it = e->row.state == CK_STATE_EVICTING && e->row.phase != CK_PHASE_FIND;
	job->filter = (struct ck_filter){ .size = sizeof(job->filter),
					  .kind = in_it ? CK_CONTAINER : job->kind };
	if (in_it)
		job->filter.sandbox_id = job->told.id;
	else if (job->kind == CK_SANDBOX)
		job->filter.pod_uid = job->told.pod_uid;
	else
		job->filter.sandbox_id = job->told.sandbox_id;
	return job;
}

static struct ck_job *job_make(struct ck_cache *cache, const struct ck_entry *e, enum ck_want want)
{
	switch (want) {
	case CK_WANT_INSPECT:
		return job_new(cache, JOB_INSPECT, e);
	case CK_WANT_LIST:
		return job_list(cache, e);
	case CK_WANT_DESTROY:
		return job_new(cache, JOB_DESTROY, e);
	case CK_WANT_RUN:
		return job_hook(cache, e, CK_HOOK_RUN);
	case CK_WANT_STOP:
		return job_hook(cache, e, CK_HOOK_STOP);
	case CK_WANT_REMOVE:
		return job_hook(cache, e, CK_HOOK_REMOVE);
	case CK_WANT_CANCEL:
		return job_new(cache, JOB_CANCEL, e);
	}
	return NULL;
}

struct ck_job *ck_jobs_collect(struct ck_cache *cache)
{
	struct ck_machine *m = cache->machine;
	struct ck_job *jobs = NULL;
	struct ck_entry *e;
	struct ck_mturn *t;
	while ((e = ck_machine_wanting(m))) {
		unsigned wants = ck_machine_take_wants(m, e);
		for (unsigned want = 1; want <= CK_WANT_CANCEL; want <<= 1) {
			if (!(wants & want))
				continue;
			struct ck_job *job = job_make(cache, e, (enum ck_want)want);
			if (!job) {
				/* no memory: it will be wanted again */
				ck_machine_job_failed(m, e, (enum ck_want)want);
				continue;
			}
			DL_APPEND(jobs, job);
		}
	}
	unsigned kinds = ck_machine_take_lists(m);
	for (int kind = CK_SANDBOX; kind <= CK_CONTAINER; kind++) {
		if (!(kinds & 1u << kind))
			continue;
		struct ck_job *job = job_new(cache, JOB_LIST_KIND, NULL);
		if (!job) {
			ck_machine_listed(m, (enum ck_kind)kind, 0, false, NULL, 0);
			continue;
		}
		job->kind = (enum ck_kind)kind;
		job->filter = (struct ck_filter){ .size = sizeof(job->filter), .kind = job->kind };
		DL_APPEND(jobs, job);
	}
	while ((t = ck_machine_take_resolve(m))) {
		struct ck_turn *turn = CK_OWNER_OF(t, struct ck_turn, m);
		struct ck_job *job = job_new(cache, JOB_RESOLVE, NULL);
		if (!job || !(job->texts[0] = ck_strdup(ck_fingerprint_image(turn->fp)))) {
			if (job)
				job_free(job);
			ck_machine_resolved(m, t);
			continue;
		}
		job->id = job->texts[0];
		job->turn = turn;
		turn->resolving = job;
		DL_APPEND(jobs, job);
	}
	return jobs;
}

void ck_jobs_start(struct ck_cache *cache, struct ck_job *jobs)
{
	const struct ck_host *host = &cache->host;
	struct ck_job *job, *next;
	DL_FOREACH_SAFE (jobs, job, next) { /* a job may be gone as soon as it is started */
		switch (job->what) {
		case JOB_INSPECT:
			host->inspect(job, job->kind, job->id, host->userdata);
			break;
		case JOB_LIST:
		case JOB_LIST_KIND:
			host->list(job, &job->filter, host->userdata);
			break;
		case JOB_DESTROY:
			host->destroy(job, job->kind, job->id, host->userdata);
			break;
		case JOB_RESOLVE:
			host->resolve_image(job, job->id, host->userdata);
			break;
		case JOB_HOOK:
			if (cache->hooks.fire)
				cache->hooks.fire(job, job->event, &job->told,
						  cache->hooks.userdata);
			else
				ck_hook_done(job, NULL, NULL);
			break;
		case JOB_CANCEL:
			if (cache->hooks.cancel)
				cache->hooks.cancel(job->row, cache->hooks.userdata);
			job_free(job);
			break;
		}
	}
}

void ck_job_forget_turn(struct ck_job *job)
{
	job->turn->resolving = NULL;
	job->turn = NULL;
}

/* ---- called by the host, in any thread; in a forked child all of it does nothing ------------- */

static bool in_child(const struct ck_job *job)
{
	return ck_cache_in_child(job->cache);
}

const struct ck_told *ck_job_entry(const struct ck_job *job)
{
	return job && !in_child(job) && (job->what == JOB_DESTROY || job->what == JOB_INSPECT)
		       ? &job->told
		       : NULL;
}

int ck_job_listed(struct ck_job *job, const struct ck_object *o)
{
	if (job && in_child(job))
		return -CK_EFORK;
	if (!job || !o || o->size < CK_OBJECT_SIZE_0_1 || !o->id || !o->id[0] ||
	    (job->what != JOB_LIST && job->what != JOB_LIST_KIND))
		return -CK_EINVAL;
	const char *texts[] = { o->id,      o->pod_name,   o->pod_namespace,
				o->pod_uid, o->sandbox_id, o->container_name };
	size_t len[CK_COUNT(texts)], sum = 0;
	for (size_t i = 0; i < CK_COUNT(texts); i++) {
		len[i] = texts[i] ? strlen(texts[i]) + 1 : 0;
		if (len[i] > CK_NAME_MAX_LEN + 1)
			return -CK_EINVAL; /* not an object of ours */
		sum += len[i];
	}
	struct ck_object *objects = ck_grown(job->objects, job->n, sizeof(*objects));
	char *block = objects ? ck_alloc(sum) : NULL;
	job->objects = objects ? objects : job->objects;
	if (!block) {
		job->incomplete = true;
		return -CK_ENOMEM;
	}
	struct ck_object *copy = &job->objects[job->n++];
	const char **into[] = { &copy->id,      &copy->pod_name,   &copy->pod_namespace,
				&copy->pod_uid, &copy->sandbox_id, &copy->container_name };
	*copy = *o;
	for (size_t i = 0; i < CK_COUNT(texts); i++) {
		*into[i] = len[i] ? memcpy(block, texts[i], len[i]) : NULL;
		block += len[i];
	}
	return 0;
}

static void tell_machine(struct ck_cache *cache, struct ck_job *job)
{
	struct ck_machine *m = cache->machine;
	bool ok = job->grpc == CK_GRPC_OK && !job->incomplete;
	switch (job->what) {
	case JOB_INSPECT:
		ck_machine_inspected(m, job->row, job->begun_seq,
				     ok                               ? job->condition
				     : job->grpc == CK_GRPC_NOT_FOUND ? CK_CONDITION_ABSENT
								      : CK_CONDITION_UNKNOWN);
		break;
	case JOB_LIST:
		ck_machine_listed_entry(m, job->row, job->begun_seq, ok, job->objects, job->n);
		break;
	case JOB_LIST_KIND:
		if (!ok && !(cache->unlisted & 1u << job->kind))
			ck_cache_log(
				cache, CK_LOG_WARNING,
				"the runtime did not list its %s: %s; it is asked until it does",
				job->kind == CK_SANDBOX ? "sandboxes" : "containers",
				ck_grpc_name(job->grpc));
		cache->unlisted = ok ? cache->unlisted & ~(1u << job->kind)
				     : cache->unlisted | 1u << job->kind;
		ck_machine_listed(m, job->kind, job->begun_seq, ok, job->objects, job->n);
		break;
	case JOB_DESTROY:
		ck_machine_destroyed(m, job->row, job->grpc, job->text);
		break;
	case JOB_RESOLVE:
		if (!job->turn)
			break;
		ck_fingerprint_set_image_id(job->turn->fp, ok ? job->image_id : NULL);
		job->turn->resolving = NULL;
		ck_machine_resolved(m, &job->turn->m);
		break;
	case JOB_HOOK:
		ck_machine_hook_done(m, job->row, job->event, job->who,
				     job->refused ? job->text : NULL);
		break;
	case JOB_CANCEL:
		break;
	}
}

static void job_end(struct ck_job *job)
{
	/* if the cache is closed, its next life asks again */
	if (ck_round_enter(job->cache, NULL) >= 0) {
		tell_machine(job->cache, job);
		ck_round_leave(job->cache);
	}
	job_free(job);
}

/* The request of a destroyed entry is not kept; then the list alone decides. */
static void redact(struct ck_job *job, const char *text)
{
	const char *names[CK_COUNT(job->texts) + 1];
	struct ck_known known = { job->kind, job->request, job->request_len, names,
				  CK_COUNT(names) };
	memcpy(names, job->texts, sizeof(job->texts)); /* the plugins told before are the last */
	names[CK_COUNT(job->texts)] = job->who;
	ck_redact(text, &known, job->text);
}

void ck_job_done(struct ck_job *job, const struct ck_answer *answer)
{
	static const struct ck_answer failed = { .size = sizeof(failed), .grpc = CK_GRPC_UNKNOWN };
	if (!job || in_child(job) || job->what == JOB_HOOK)
		return;
	if (!answer || answer->size < CK_ANSWER_SIZE_0_1)
		answer = &failed;
	job->grpc = answer->grpc;
	job->condition = answer->condition >= CK_CONDITION_UNKNOWN &&
					 answer->condition <= CK_CONDITION_RAN
				 ? answer->condition
				 : CK_CONDITION_UNKNOWN;
	if (job->what == JOB_RESOLVE && answer->image_id)
		job->image_id = ck_strdup(answer->image_id);
	if (job->what == JOB_DESTROY && answer->grpc && answer->message)
		redact(job, answer->message);
	job_end(job);
}

void ck_hook_done(struct ck_job *job, const char *told, const char *refusal)
{
	if (!job || in_child(job) || job->what != JOB_HOOK)
		return;
	if (told) /* without memory, the line in the history names nobody */
		job->who = ck_strndup(told, strnlen(told, CK_TOLD_MAX));
	job->refused = refusal;
	if (refusal && job->request)
		redact(job, refusal);
	else if (refusal)
		/* Plugins see env and args. Without the request nobody knows which words of the
		 * text are theirs. */
		snprintf(job->text, sizeof(job->text), "a plugin refused; its text is not kept");
	job_end(job);
}
