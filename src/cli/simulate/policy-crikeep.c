/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library itself, embedded in the simulated runtime through crikeep.h as in any runtime: a
 * cache in its own directory, requests as real bytes, lists through views. Only its clock is
 * virtual. It is processed after everything that happens to it, and whenever ck_cache_timeout()
 * says that something is due.
 *
 * When the runtime restarts, the cache is closed and opened again on the same directory.
 */
#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <unistd.h>
#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/cli/output/print.h"
#include "src/cli/simulate/kubelet.h"
#include "src/cli/simulate/request.h"
#include "src/cli/simulate/runtime.h"

/* the cache's clock at the start of the run; a real boot clock is never 0 */
#define EPOCH          (3600 * CK_NS_PER_S)
#define REMOVE_TIMEOUT (30 * CK_NS_PER_S)
/* the pause if something is due now, but was not done now */
#define STALLED        (1 * CK_NS_PER_MS)

struct keeper {
	struct ck_simulation *sim;
	struct ck_cache *cache; /* NULL while the runtime is down */
	char dir[PATH_MAX];
	struct ck_event due;
	bool processing; /* in ck_cache_process(), whose loop also does what its callbacks add */
	struct ck_writer request;
	struct turn *turns;
};

/* A turn: a create, or a removal by the kubelet. */
struct turn {
	struct turn *prev, *next;
	struct keeper *keeper;
	struct ck_turn *turn;
	struct ck_simulation_call *call;     /* to answer; NULL: its caller is gone, or a removal */
	struct ck_simulation_object *object; /* what it is creating */
	char removing[CK_SIMULATION_ID + 1]; /* what it waits to remove */
};

static void decided(struct turn *t, int outcome);

/* ---- turns ----------------------------------------------------------------------------------- */

static uint64_t now(void *userdata)
{
	const struct keeper *k = userdata;
	return EPOCH + k->sim->queue.now;
}

static void process_cache(void *arg)
{
	struct keeper *k = arg;
	struct ck_queue *q = &k->sim->queue;
	struct ck_error err;
	if (k->processing || !k->cache)
		return;
	k->processing = true;
	int r, done = 0;
	while ((r = ck_cache_process(k->cache, &err)) > 0)
		done += r;
	k->processing = false;
	if (r < 0)
		ck_simulation_fail(k->sim, r, &err);
	if (done)
		ck_kubelet_list_soon(k->sim);
	uint64_t due = ck_cache_timeout(k->cache);
	if (due == UINT64_MAX)
		ck_queue_disarm(q, &k->due);
	else
		ck_queue_arm(q, &k->due, due > now(k) ? due - EPOCH : q->now + STALLED,
			     process_cache, k);
}

static struct turn *turn_new(struct keeper *k)
{
	struct turn *t = CK_NEW(struct turn);
	if (!t) {
		k->sim->queue.failed = true;
		return NULL;
	}
	t->keeper = k;
	t->next = k->turns;
	if (t->next)
		t->next->prev = t;
	k->turns = t;
	return t;
}

static void turn_drop(struct turn *t)
{
	if (t->call)
		t->call->turn = NULL;
	if (t->object)
		t->object->maker = NULL;
	if (t->prev)
		t->prev->next = t->next;
	else
		t->keeper->turns = t->next;
	if (t->next)
		t->next->prev = t->prev;
	ck_turn_free(t->turn);
	free(t);
}

/* Answer with an error. It is UNAVAILABLE if the result is kept for the next request, because the
 * answer would not reach this caller in time. */
static void refuse(struct turn *t, const struct ck_error *why)
{
	if (t->call)
		ck_kubelet_answer(t->keeper->sim, t->call,
				  why && why->code ? ck_error_grpc(why) : CK_GRPC_UNAVAILABLE,
				  NULL);
	turn_drop(t);
}

static void hand_back(struct turn *t)
{
	struct ck_simulation *sim = t->keeper->sim;
	struct ck_reply reply = { .size = sizeof(reply) };
	if (!CK_NEVER(!t->call || ck_turn_reply(t->turn, &reply) < 0)) {
		struct ck_simulation_object *object = ck_runtime_find(sim, reply.id);
		ck_turn_answered(t->turn, CK_DELIVERED);
		ck_kubelet_answer(sim, t->call, object ? 0 : CK_GRPC_NOT_FOUND, object);
	}
	turn_drop(t);
}

static void watched(struct ck_turn *turn, int outcome, void *userdata)
{
	(void)turn;
	struct turn *t = userdata;
	if (t->keeper->cache) /* else the cache is being closed, and frees the turn */
		decided(t, outcome);
}

static void decided(struct turn *t, int outcome)
{
	struct ck_simulation *sim = t->keeper->sim;
	struct ck_simulation_object *object;
	switch (outcome) {
	case CK_CREATE:
		t->object = ck_runtime_create(sim, t->call);
		if (t->object)
			t->object->maker = t;
		return;
	case CK_WAIT:
		ck_turn_watch(t->turn, watched, t);
		return;
	case CK_HAND_BACK:
		hand_back(t);
		return;
	case CK_DRAINED:
		object = ck_runtime_find(sim, t->removing);
		if (object) {
			object->remover = t;
			ck_runtime_remove(sim, object);
		} else {
			turn_drop(t);
		}
		return;
	default:
		refuse(t, ck_turn_error(t->turn));
	}
}

/* ---- jobs of the runtime for the cache ------------------------------------------------------- */

static void describe(const struct ck_simulation_object *o, struct ck_object *ret, char name[16])
{
	static const enum ck_condition conditions[] = {
		[CK_SIMULATION_GONE] = CK_CONDITION_ABSENT,
		[CK_SIMULATION_MAKING] = CK_CONDITION_ABSENT,
		[CK_SIMULATION_UNDOING] = CK_CONDITION_ABSENT,
		[CK_SIMULATION_EXISTS] = CK_CONDITION_READY,
		[CK_SIMULATION_RUNNING] = CK_CONDITION_RUNNING,
		[CK_SIMULATION_REMOVING] = CK_CONDITION_DEAD,
	};
	snprintf(name, 16, "c%u", o->container);
	*ret = (struct ck_object){
		.size = sizeof(*ret),
		.kind = o->kind,
		.condition = conditions[o->state],
		.id = o->id,
		.pod_name = o->pod->name,
		.pod_namespace = "default",
		.pod_uid = o->pod->uid,
		.sandbox_id = o->kind == CK_CONTAINER ? o->sandbox_id : NULL,
		.container_name = o->kind == CK_CONTAINER ? name : NULL,
		.attempt = o->attempt,
		.created_at = o->exists_at,
	};
}

static bool listed(const struct ck_simulation_object *o)
{
	return ck_runtime_visible(o) || o->state == CK_SIMULATION_REMOVING;
}

static void destroy(struct ck_job *job, enum ck_kind kind, const char *id, void *userdata)
{
	(void)kind;
	struct keeper *k = userdata;
	struct ck_simulation_object *object = ck_runtime_find(k->sim, id);
	if (!object || object->job) {
		struct ck_answer answer = { .size = sizeof(answer),
					    .grpc = object ? CK_GRPC_UNAVAILABLE
							   : CK_GRPC_NOT_FOUND };
		ck_job_done(job, &answer);
		return;
	}
	object->job = job;
	ck_runtime_remove(k->sim, object);
}

static void inspect(struct ck_job *job, enum ck_kind kind, const char *id, void *userdata)
{
	(void)kind;
	struct keeper *k = userdata;
	struct ck_answer answer = { .size = sizeof(answer), .condition = CK_CONDITION_ABSENT };
	struct ck_simulation_object *object = ck_runtime_find(k->sim, id);
	if (object) {
		struct ck_object o;
		char name[16];
		describe(object, &o, name);
		answer.condition = o.condition;
	}
	ck_job_done(job, &answer);
}

static void list_for_job(struct ck_job *job, const struct ck_filter *filter, void *userdata)
{
	struct keeper *k = userdata;
	struct ck_answer answer = { .size = sizeof(answer) };
	for (unsigned i = 0; i < k->sim->options->pods; i++) {
		const struct ck_simulation_pod *pod = &k->sim->pods[i];
		if (filter->pod_uid && strcmp(filter->pod_uid, pod->uid) != 0)
			continue;
		for (const struct ck_simulation_object *object = pod->objects; object;
		     object = object->next) {
			struct ck_object o;
			char name[16];
			if (object->kind != filter->kind || !listed(object))
				continue;
			if (filter->sandbox_id &&
			    strcmp(filter->sandbox_id, object->sandbox_id) != 0)
				continue;
			describe(object, &o, name);
			if (ck_job_listed(job, &o) < 0)
				/* an incomplete list must not count */
				answer.grpc = CK_GRPC_RESOURCE_EXHAUSTED;
		}
	}
	ck_job_done(job, &answer);
}

static void log_line(enum ck_log_level level, const char *text, void *userdata)
{
	const struct keeper *k = userdata;
	if (level <= CK_LOG_ERROR || (k->sim->options->trace && level <= CK_LOG_WARNING))
		ck_print_error("%s", text);
}

/* ---- the policy ------------------------------------------------------------------------------ */

/* In memory if possible, like the default state directory. */
static const char *temporary(void)
{
	const char *dir = getenv("TMPDIR");
	if (dir && *dir)
		return dir;
	return access("/dev/shm", W_OK | X_OK) == 0 ? "/dev/shm" : "/tmp";
}

static int open_cache(struct ck_simulation *sim, struct ck_error *err)
{
	struct keeper *k = sim->state;
	if (!k) {
		sim->state = k = CK_NEW(struct keeper);
		if (!k)
			return ck_nomem(err);
		k->sim = sim;
		snprintf(k->dir, sizeof(k->dir), "%s/crikeep-simulate-XXXXXX", temporary());
		if (!mkdtemp(k->dir)) {
			int r = ck_fail_errno(err, CK_EIO, errno, "make a directory in '%s'",
					      temporary());
			k->dir[0] = '\0';
			return r;
		}
	}
	struct ck_host host = {
		.size = sizeof(host),
		.userdata = k,
		.destroy = destroy,
		.inspect = inspect,
		.list = list_for_job,
		.log = log_line,
	};
	struct ck_options options = {
		.size = sizeof(options),
		.state_dir = k->dir,
		.host = &host,
		.hand_back = sim->options->hand_back,
		.clock = now,
		.clock_userdata = k,
	};
	int r = ck_cache_open(&options, &k->cache, err);
	if (r == 0)
		process_cache(k);
	return r;
}

static void close_cache(struct ck_simulation *sim)
{
	struct keeper *k = sim->state;
	struct ck_cache *cache = CK_TAKE(k->cache);
	if (!cache)
		return;
	ck_queue_disarm(&sim->queue, &k->due);
	/* closing waits for jobs, and the runtime has ended, so they end now */
	for (unsigned i = 0; i < sim->options->pods; i++)
		for (struct ck_simulation_object *o = sim->pods[i].objects; o; o = o->next) {
			struct ck_answer answer = { .size = sizeof(answer),
						    .grpc = CK_GRPC_UNAVAILABLE };
			if (o->job)
				ck_job_done(o->job, &answer);
			o->job = o->remover = NULL;
		}
	ck_cache_close(cache, NULL);
	for (struct turn *t = k->turns, *next; t; t = next) {
		next = t->next;
		turn_drop(t);
	}
}

static int remove_file(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static void done(struct ck_simulation *sim)
{
	struct keeper *k = sim->state;
	if (!k)
		return;
	if (k->dir[0] && nftw(k->dir, remove_file, 16, FTW_DEPTH | FTW_PHYS) != 0)
		ck_print_error("cannot remove '%s': %s", k->dir, strerror(errno));
	ck_bytes_free(&k->request.bytes);
	free(k);
	sim->state = NULL;
}

static void create(struct ck_simulation *sim, struct ck_simulation_call *call)
{
	struct keeper *k = sim->state;
	struct turn *t = turn_new(k);
	if (!t || ck_simulation_request_write(&k->request, call) < 0) {
		sim->queue.failed = true;
		return;
	}
	t->call = call;
	call->turn = t;
	struct ck_request request = {
		.size = sizeof(request),
		.kind = call->kind,
		.bytes = k->request.bytes.p,
		.len = k->request.bytes.len,
		.timeout = sim->options->deadline,
	};
	struct ck_error err;
	int r = ck_turn_begin(k->cache, &request, &t->turn, &err);
	if (r == -CK_EMALFORMED || r == -CK_EINVAL || r == -CK_ENOMEM)
		ck_simulation_fail(sim, r, &err);
	if (r < 0)
		refuse(t, &err);
	else
		decided(t, r);
	process_cache(k);
}

static void gone(struct ck_simulation *sim, struct ck_simulation_call *call)
{
	struct turn *t = call->turn;
	if (!t)
		return;
	call->turn = NULL;
	t->call = NULL;
	ck_turn_leave(t->turn);
	if (!t->object) /* a creator continues */
		turn_drop(t);
	process_cache(sim->state);
}

static void made(struct ck_simulation *sim, struct ck_simulation_object *object)
{
	struct turn *t = object->maker;
	struct ck_result result = { .size = sizeof(result), .id = object->id };
	struct ck_error err;
	object->maker = NULL;
	t->object = NULL;
	int r = ck_turn_finish(t->turn, &result, &err);
	if (r < 0)
		refuse(t, &err);
	else if (t->call)
		decided(t, r);
	else
		turn_drop(t);
	process_cache(sim->state);
}

static void list(struct ck_simulation *sim)
{
	struct keeper *k = sim->state;
	struct ck_view *view = NULL;
	struct ck_error err;
	size_t n[CK_CONTAINER + 1] = { 0 }, room = 0;
	for (unsigned i = 0; i < sim->options->pods; i++)
		for (struct ck_simulation_object *o = sim->pods[i].objects; o; o = o->next)
			room++;
	struct ck_object *objects[CK_CONTAINER + 1] = { NULL };
	char(*names)[16] = ck_alloc(room * sizeof(*names));
	objects[CK_SANDBOX] = ck_alloc(room * sizeof(struct ck_object));
	objects[CK_CONTAINER] = ck_alloc(room * sizeof(struct ck_object));
	int r = names && objects[CK_SANDBOX] && objects[CK_CONTAINER]
			? ck_view_begin(k->cache, &view, &err)
			: ck_nomem(&err);
	if (r == 0) {
		size_t named = 0;
		for (unsigned i = 0; i < sim->options->pods; i++)
			for (struct ck_simulation_object *o = sim->pods[i].objects; o;
			     o = o->next) {
				struct ck_object *object = &objects[o->kind][n[o->kind]];
				if (!listed(o))
					continue;
				describe(o, object, names[named++]);
				o->hidden = ck_view_hides(view, object) != 0;
				n[o->kind]++;
			}
		for (enum ck_kind kind = CK_SANDBOX; r == 0 && kind <= CK_CONTAINER; kind++)
			r = ck_view_listed(view, kind, objects[kind], n[kind]);
		ck_view_free(view);
		if (r < 0)
			ck_fail(&err, -r, "a list: %s", ck_strerror(-r));
	}
	if (r < 0)
		ck_simulation_fail(sim, r, &err);
	free(names);
	free(objects[CK_SANDBOX]);
	free(objects[CK_CONTAINER]);
	process_cache(k);
}

static void started(struct ck_simulation *sim, struct ck_simulation_object *object)
{
	struct keeper *k = sim->state;
	ck_container_starting(k->cache, object->id);
	ck_object_seen(k->cache, object->kind, object->id, CK_CONDITION_RUNNING);
	process_cache(k);
}

static void remove_object(struct ck_simulation *sim, struct ck_simulation_object *object)
{
	struct keeper *k = sim->state;
	struct turn *t = turn_new(k);
	struct ck_error err;
	if (!t)
		return;
	memcpy(t->removing, object->id, sizeof(t->removing));
	if (object->kind == CK_SANDBOX)
		ck_sandbox_stopping(k->cache, object->id);
	int r = ck_remove_begin(k->cache, object->kind, object->id, REMOVE_TIMEOUT, &t->turn, &err);
	if (r < 0)
		refuse(t, &err);
	else
		decided(t, r);
	process_cache(k);
}

static void removed(struct ck_simulation *sim, struct ck_simulation_object *object)
{
	struct keeper *k = sim->state;
	struct ck_answer answer = { .size = sizeof(answer) };
	if (object->job)
		ck_job_done(object->job, &answer);
	object->job = NULL;
	if (object->remover) {
		ck_object_removed(k->cache, object->kind, object->id);
		turn_drop(object->remover);
		object->remover = NULL;
	}
	process_cache(k);
}

const struct ck_simulation_policy ck_simulation_policy_crikeep = {
	.name = "crikeep",
	.meaning = "kept in a database until the kubelet has it, or wants something else",
	.open = open_cache,
	.close = close_cache,
	.done = done,
	.create = create,
	.gone = gone,
	.made = made,
	.list = list,
	.started = started,
	.remove = remove_object,
	.removed = removed,
};
