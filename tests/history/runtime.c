/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime and the plugins: jobs are answered at once, or are held back until a step. */
#include <string.h>

#include "tests/history/world.h"

/* A creation without a creator ends long before the cache may give it up. */
#define ORPHAN_LIFE (15 * CK_NS_PER_S)
/* and before its create deadline, which goes on over restarts */
#define CREATION_LIFE (40 * CK_NS_PER_S)

/* ---- objects --------------------------------------------------------------------------------- */

const char *runtime_pod(const struct request *req)
{
	static const char *const names[] = { "web", "db" };
	return names[req->pod % 2];
}

const char *runtime_uid(const struct request *req)
{
	static const char *const uids[] = { "uid-0", "uid-1", "uid-2", "uid-3" };
	return uids[req->uid % 4];
}

const char *runtime_container(const struct request *req)
{
	static const char *const names[] = { "app", "log" };
	return req->kind == CK_CONTAINER ? names[req->name % 2] : "";
}

const char *runtime_sandbox(const struct world *w, const struct request *req)
{
	if (req->kind == CK_SANDBOX)
		return "";
	return req->sandbox < 0 ? "sb-none" : w->objects[req->sandbox].id;
}

bool runtime_key_same(const struct request *a, const struct request *b)
{
	if (a->kind != b->kind || a->attempt != b->attempt)
		return false;
	if (a->kind == CK_SANDBOX)
		return a->pod == b->pod && a->uid == b->uid;
	return a->sandbox == b->sandbox && a->name == b->name;
}

/* a container's name in the runtime does not hold its sandbox */
bool runtime_name_same(const struct request *a, const struct request *b)
{
	return a->kind == b->kind && a->attempt == b->attempt && a->pod == b->pod &&
	       a->uid == b->uid && (a->kind == CK_SANDBOX || a->name == b->name);
}

int runtime_add(struct world *w, const struct request *req)
{
	if (w->objects_n == OBJECTS)
		return -1;
	struct object *o = &w->objects[w->objects_n];
	*o = (struct object){ .req = *req, .stage = MAKING, .turn = -1, .since = w->now };
	o->condition = CK_CONDITION_READY;
	snprintf(o->id, sizeof(o->id), "%s-%02d", req->kind == CK_SANDBOX ? "sb" : "ct",
		 w->objects_n);
	if (req->kind == CK_CONTAINER)
		o->doomed = req->sandbox < 0 || w->objects[req->sandbox].stage != EXISTS;
	for (int i = 0; i < w->objects_n; i++)
		o->doomed = o->doomed || (w->objects[i].stage != OVER && !w->objects[i].doomed &&
					  runtime_name_same(&w->objects[i].req, req));
	return w->objects_n++;
}

int runtime_find(struct world *w, const char *id)
{
	for (int i = 0; i < w->objects_n; i++)
		if (!strcmp(w->objects[i].id, id))
			return i;
	return -1;
}

void runtime_end(struct world *w, int object)
{
	struct object *o = &w->objects[object];
	o->stage = OVER;
	o->since = w->now;
	for (int i = 0; i < w->objects_n && o->req.kind == CK_SANDBOX; i++) {
		struct object *c = &w->objects[i];
		if (c->req.kind != CK_CONTAINER || c->req.sandbox != object)
			continue;
		if (c->stage == EXISTS) { /* they go with their sandbox */
			c->stage = OVER;
			c->since = w->now;
		} else if (c->stage == MAKING) {
			c->doomed = true;
		}
	}
}

void runtime_orphan(struct world *w, struct object *o)
{
	bool old = o->stage == MAKING && w->now - o->since > CREATION_LIFE;
	o->turn = -1;
	o->since = old ? w->now - ORPHAN_LIFE : w->now;
}

uint64_t runtime_due(const struct world *w)
{
	uint64_t due = UINT64_MAX;
	for (int i = 0; i < w->objects_n; i++) {
		const struct object *o = &w->objects[i];
		if (o->stage == MAKING && o->turn < 0 && o->since + ORPHAN_LIFE < due)
			due = o->since + ORPHAN_LIFE;
	}
	return due;
}

void runtime_orphans(struct world *w)
{
	for (int i = 0; i < w->objects_n; i++) {
		struct object *o = &w->objects[i];
		if (o->stage != MAKING || o->turn >= 0 || o->since + ORPHAN_LIFE > w->now)
			continue;
		o->stage = o->doomed || (w->seed + (unsigned)i) % 3 == 0 ? OVER : EXISTS;
		world_say(w, "    %s %s, with nobody to hear it", o->id,
			  o->stage == EXISTS ? "is made" : "fails");
	}
}

/* ---- jobs ------------------------------------------------------------------------------------ */

void runtime_object(const struct world *w, int object, enum ck_condition condition,
		    struct ck_object *ret)
{
	const struct object *o = &w->objects[object];
	*ret = (struct ck_object){ .size = sizeof(*ret),
				   .kind = o->req.kind,
				   .condition = condition,
				   .id = o->id,
				   .pod_name = runtime_pod(&o->req),
				   .pod_namespace = "shop",
				   .pod_uid = runtime_uid(&o->req),
				   .sandbox_id = runtime_sandbox(w, &o->req),
				   .container_name = runtime_container(&o->req),
				   .attempt = o->req.attempt,
				   .created_at = (uint64_t)object };
}

static bool listed(const struct world *w, const struct job *job, int object)
{
	const struct object *o = &w->objects[object];
	if (o->stage != EXISTS || o->req.kind != job->filter.kind)
		return false;
	if (job->filter.pod_uid && strcmp(runtime_uid(&o->req), job->of))
		return false;
	return !job->filter.sandbox_id || !strcmp(runtime_sandbox(w, &o->req), job->of);
}

static void list_take(struct world *w, struct job *job)
{
	job->had_n = 0;
	for (int i = 0; i < w->objects_n; i++) {
		if (!listed(w, job, i))
			continue;
		job->had[job->had_n].object = i;
		job->had[job->had_n++].condition = w->objects[i].condition;
	}
}

static void list_answer(struct world *w, struct job *job)
{
	struct ck_object o;
	if (!job->early)
		list_take(w, job);
	for (unsigned i = 0; i < job->had_n; i++) {
		runtime_object(w, job->had[i].object, job->had[i].condition, &o);
		ck_job_listed(job->job, &o);
	}
}

static void hook_answer(struct world *w, const struct job *job)
{
	struct object *o = job->object < 0 ? NULL : &w->objects[job->object];
	bool refuses = w->fail[job->call] && job->call == CALL_RUN;
	if (o && job->call == CALL_RUN)
		o->run_done = true;
	if (o && job->call == CALL_STOP)
		o->stop_done = true;
	if (o && job->call == CALL_REMOVE)
		o->remove_done = true;
	ck_hook_done(job->job, NULL, refuses ? "plugin 10-log: no" : NULL);
}

/* a container is in it, or one that somebody else had put there, and a list may have shown */
static bool held_container(const struct world *w, int sandbox)
{
	for (int i = 0; i < w->objects_n; i++) {
		const struct object *o = &w->objects[i];
		if (o->req.kind == CK_CONTAINER && o->req.sandbox == sandbox &&
		    (o->stage == EXISTS || !o->ours))
			return true;
	}
	return false;
}

static void job_answer(struct world *w, struct job *job)
{
	struct object *o = job->object < 0 ? NULL : &w->objects[job->object];
	bool fails = w->fail[job->call];
	struct ck_answer answer = { .size = sizeof(answer), .grpc = fails ? 14 : 0 };
	if (job->call >= CALL_RUN) {
		hook_answer(w, job);
		return;
	}
	if (job->call == CALL_INSPECT && !fails)
		answer.condition = o && o->stage == EXISTS ? o->condition : CK_CONDITION_ABSENT;
	if (job->call == CALL_LIST && !fails)
		list_answer(w, job);
	/* now and then the answer is lost, and only the answer */
	bool done = !fails || job->number % 4 == 0;
	if (job->call == CALL_DESTROY && o && o->stage == EXISTS && done) {
		bool shared = held_container(w, job->object);
		runtime_end(w, job->object);
		o->destroyed = true;
		/* the call took so long that it was found in use meanwhile */
		o->exempt = o->exempt || shared || (o->runs && !o->stop_done);
		w->tally.destroyed++;
	}
	ck_job_done(job->job, &answer);
}

static void called(struct world *w, struct job *job)
{
	job->number = w->lists++;
	if (w->dead || w->hold[job->call]) {
		if (w->jobs_n == JOBS) {
			world_wrong(w, "more than %d jobs in flight", JOBS);
			w->jobs_n--; /* leaked; the history is over */
		}
		job->early = job->call == CALL_LIST && job->number % 2;
		if (job->early)
			list_take(w, job);
		w->jobs[w->jobs_n++] = *job;
		return;
	}
	job_answer(w, job);
}

void runtime_answer(struct world *w, unsigned n)
{
	struct job job = w->jobs[n];
	memmove(&w->jobs[n], &w->jobs[n + 1], (--w->jobs_n - n) * sizeof(job));
	job_answer(w, &job);
}

void runtime_drop_jobs(struct world *w)
{
	struct ck_answer answer = { .size = sizeof(answer) };
	for (unsigned i = 0; i < w->jobs_n; i++) {
		if (w->jobs[i].call >= CALL_RUN)
			ck_hook_done(w->jobs[i].job, NULL, NULL);
		else
			ck_job_done(w->jobs[i].job, &answer);
	}
	w->jobs_n = 0;
}

static void host_destroy(struct ck_job *ck_job, enum ck_kind kind, const char *id, void *userdata)
{
	struct world *w = userdata;
	struct job job = { .job = ck_job, .call = CALL_DESTROY, .object = runtime_find(w, id) };
	(void)kind;
	if (!w->dead) {
		world_say(w, "    destroy %s", id);
		if (job.object >= 0)
			check_destroy(w, job.object);
	}
	called(w, &job);
}

static void host_inspect(struct ck_job *ck_job, enum ck_kind kind, const char *id, void *userdata)
{
	struct world *w = userdata;
	struct job job = { .job = ck_job, .call = CALL_INSPECT, .object = runtime_find(w, id) };
	(void)kind;
	called(w, &job);
}

static void host_list(struct ck_job *ck_job, const struct ck_filter *filter, void *userdata)
{
	struct world *w = userdata;
	struct job job = { .job = ck_job, .call = CALL_LIST, .object = -1, .filter = *filter };
	snprintf(job.of, sizeof(job.of), "%s",
		 filter->pod_uid      ? filter->pod_uid
		 : filter->sandbox_id ? filter->sandbox_id
				      : "");
	called(w, &job);
}

static void host_log(enum ck_log_level level, const char *text, void *userdata)
{
	struct world *w = userdata;
	if (w->dead)
		return;
	world_say(w, "    <%d> %s", (int)level, text);
	if (strstr(text, "refuses its row"))
		world_wrong(w, "log: %s", text);
}

/* ---- plugins --------------------------------------------------------------------------------- */

static int hooks_choose(const struct ck_told *told, char *names, size_t size, void *userdata)
{
	struct world *w = userdata;
	int object = runtime_find(w, told->id);
	snprintf(names, size, "%s", w->absent ? "10-log" : w->names);
	if (w->absent)
		return 1;
	if (object >= 0 && *w->names)
		w->objects[object].chosen = w->life;
	return 0;
}

static void told(struct world *w, struct object *o, enum ck_hook_event event)
{
	unsigned *times = event == CK_HOOK_RUN    ? &o->runs
			  : event == CK_HOOK_STOP ? &o->stops
						  : &o->removes;
	w->tally.told++;
	if (++*times > 1 && !o->exempt)
		world_wrong(w, "plugins are told %d of %s %u times", (int)event, o->id, *times);
	if (event != CK_HOOK_RUN && *w->names && !o->chosen && !o->exempt)
		world_wrong(w, "plugins hear of the end of %s, and were never told of it", o->id);
	if (event == CK_HOOK_REMOVE && o->stage == EXISTS && !o->exempt)
		world_wrong(w, "plugins hear that %s is gone, but it exists", o->id);
}

static void hooks_fire(struct ck_job *ck_job, enum ck_hook_event event, const struct ck_told *entry,
		       void *userdata)
{
	struct world *w = userdata;
	struct job job = { .job = ck_job, .object = runtime_find(w, entry->id) };
	job.call = event == CK_HOOK_RUN    ? CALL_RUN
		   : event == CK_HOOK_STOP ? CALL_STOP
					   : CALL_REMOVE;
	if (!w->dead) {
		world_say(w, "    plugins: %s %s",
			  event == CK_HOOK_RUN    ? "run"
			  : event == CK_HOOK_STOP ? "stop"
						  : "remove",
			  entry->id);
		if (job.object >= 0)
			told(w, &w->objects[job.object], event);
		else
			world_wrong(w, "plugins are told of %s, which never was", entry->id);
	}
	called(w, &job);
}

static uint64_t read_clock(void *userdata)
{
	return ((struct world *)userdata)->now;
}

void runtime_init(struct world *w)
{
	w->host = (struct ck_host){ .size = sizeof(w->host),
				    .userdata = w,
				    .destroy = host_destroy,
				    .inspect = w->seed % 8 ? host_inspect : NULL,
				    .list = host_list,
				    .log = host_log };
	w->hooks = (struct ck_hooks){
		.size = sizeof(w->hooks), .userdata = w, .choose = hooks_choose, .fire = hooks_fire
	};
	w->names = w->seed % 5 ? "10-log" : "";
	w->options = (struct ck_options){
		.size = sizeof(w->options),
		.state_dir = w->dir,
		.host = &w->host,
		.hooks = w->seed % 4 ? &w->hooks : NULL,
		.hand_back = w->seed % 7 ? CK_REPEAT : CK_OFFER,
		.on_annotation_change = (enum ck_annotation_change)(w->seed / 3 % 2),
		.ttl = 120 * CK_NS_PER_S,
		.create_deadline = 60 * CK_NS_PER_S,
		.clock = read_clock,
		.clock_userdata = w,
	};
}
