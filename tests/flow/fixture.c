/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <spawn.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "tests/flow/fixture.h"
#include "tests/unit/cri-build.h"
#include "cache/cache.h"
#include "cache/store/store.h"
#include "src/base/mem.h"

/* ---- the runtime, called by the event loop --------------------------------------------------- */

static void note(struct fixture *f, const char *what, const char *id)
{
	size_t n = strlen(f->heard);
	snprintf(f->heard + n, sizeof(f->heard) - n, "%s%s %s", n ? ", " : "", what, id);
}

static struct fx_object *find(struct fixture *f, const char *id)
{
	for (size_t i = 0; i < f->objects_n; i++)
		if (!strcmp(f->objects[i].id, id))
			return &f->objects[i];
	return NULL;
}

static void vanish(struct fixture *f, const char *id)
{
	struct fx_object *o = find(f, id);
	if (o)
		*o = f->objects[--f->objects_n];
}

static void list_answer(struct fixture *f, const struct fx_held *call)
{
	unsigned n = 0;
	for (size_t i = 0; i < f->objects_n; i++) {
		const struct fx_object *o = &f->objects[i];
		if (o->kind != call->filter.kind ||
		    (call->filter.pod_uid && strcmp(o->uid, call->id)) ||
		    (call->filter.sandbox_id && strcmp(o->sandbox, call->id)))
			continue;
		struct ck_object listed = {
			.size = sizeof(listed),
			.kind = o->kind,
			.condition = o->condition,
			.id = o->id,
			.pod_name = o->name,
			.pod_namespace = o->ns,
			.pod_uid = o->uid,
			.sandbox_id = o->sandbox,
			.container_name = o->container,
			.attempt = o->attempt,
			.created_at = o->created_at,
		};
		ck_job_listed(call->job, &listed);
		n++;
	}
	f->list_size = n;
}

/* lock held: fills the answer from the table as it is now; the caller ends the job without the
 * lock */
static struct ck_answer answer_of(struct fixture *f, const struct fx_held *call)
{
	struct ck_answer answer = { .size = sizeof(answer),
				    .grpc = f->fail[call->call],
				    .message = f->message };
	struct fx_object *o;
	if (answer.grpc)
		return answer;
	switch (call->call) {
	case FX_INSPECT:
		o = find(f, call->id);
		answer.condition = o ? o->condition : CK_CONDITION_ABSENT;
		break;
	case FX_LIST:
		list_answer(f, call);
		break;
	case FX_DESTROY:
		vanish(f, call->id);
		if (f->destroyed_n < sizeof(f->destroyed) / sizeof(*f->destroyed))
			snprintf(f->destroyed[f->destroyed_n++], sizeof(f->destroyed[0]), "%s",
				 call->id);
		break;
	case FX_RESOLVE:
		answer.image_id = f->resolved[0] ? f->resolved : NULL;
		break;
	default:
		break;
	}
	return answer;
}

static void end(struct fixture *f, const struct fx_held *call)
{
	struct ck_answer answer = answer_of(f, call);
	if (call->call < FX_RUN) {
		pthread_mutex_unlock(&f->lock);
		ck_job_done(call->job, &answer);
	} else {
		char refusal[sizeof(f->refusal)];
		snprintf(refusal, sizeof(refusal), "%s", f->refusal);
		const char *sent = f->sent;
		pthread_mutex_unlock(&f->lock);
		ck_hook_done(call->job, sent, answer.grpc ? refusal : NULL);
	}
	pthread_mutex_lock(&f->lock);
	f->ended[call->call]++;
	pthread_cond_broadcast(&f->called);
}

static void called(struct fixture *f, const struct fx_held *call)
{
	pthread_mutex_lock(&f->lock);
	f->asked[call->call]++;
	if (!f->hold[call->call])
		end(f, call);
	else if (f->held_n < sizeof(f->held) / sizeof(*f->held))
		f->held[f->held_n++] = *call;
	else
		abort(); /* a job that never ends would hide the real failure */
	pthread_cond_broadcast(&f->called);
	pthread_mutex_unlock(&f->lock);
}

static void host_destroy(struct ck_job *job, enum ck_kind kind, const char *id, void *userdata)
{
	struct fx_held call = { .call = FX_DESTROY, .job = job };
	(void)kind;
	snprintf(call.id, sizeof(call.id), "%s", id);
	called(userdata, &call);
}

static void host_inspect(struct ck_job *job, enum ck_kind kind, const char *id, void *userdata)
{
	struct fx_held call = { .call = FX_INSPECT, .job = job };
	(void)kind;
	snprintf(call.id, sizeof(call.id), "%s", id);
	called(userdata, &call);
}

static void host_list(struct ck_job *job, const struct ck_filter *filter, void *userdata)
{
	struct fx_held call = { .call = FX_LIST, .job = job, .filter = *filter };
	snprintf(call.id, sizeof(call.id), "%s",
		 filter->pod_uid      ? filter->pod_uid
		 : filter->sandbox_id ? filter->sandbox_id
				      : "");
	called(userdata, &call);
}

static void host_resolve(struct ck_job *job, const char *image, void *userdata)
{
	struct fx_held call = { .call = FX_RESOLVE, .job = job };
	snprintf(call.id, sizeof(call.id), "%s", image);
	called(userdata, &call);
}

static void host_log(enum ck_log_level level, const char *text, void *userdata)
{
	struct fixture *f = userdata;
	pthread_mutex_lock(&f->lock);
	size_t n = strlen(f->log);
	snprintf(f->log + n, sizeof(f->log) - n, "<%d> %s\n", (int)level, text);
	pthread_mutex_unlock(&f->lock);
}

/* ---- the plugins ----------------------------------------------------------------------------- */

static int hooks_choose(const struct ck_told *told, char *names, size_t size, void *userdata)
{
	struct fixture *f = userdata;
	pthread_mutex_lock(&f->lock);
	note(f, "choose", told->id);
	bool absent = f->absent[0];
	snprintf(names, size, "%s", absent ? f->absent : f->names);
	pthread_mutex_unlock(&f->lock);
	return absent;
}

static void hooks_fire(struct ck_job *job, enum ck_hook_event event, const struct ck_told *told,
		       void *userdata)
{
	struct fixture *f = userdata;
	struct fx_held call = { .call = event == CK_HOOK_RUN    ? FX_RUN
					: event == CK_HOOK_STOP ? FX_STOP
								: FX_REMOVE,
				.job = job };
	snprintf(call.id, sizeof(call.id), "%s", told->id);
	pthread_mutex_lock(&f->lock);
	note(f, event == CK_HOOK_RUN ? "RUN" : event == CK_HOOK_STOP ? "STOP" : "REMOVE", told->id);
	pthread_mutex_unlock(&f->lock);
	called(f, &call);
}

static void hooks_cancel(uint64_t entry, void *userdata)
{
	struct fixture *f = userdata;
	(void)entry;
	pthread_mutex_lock(&f->lock);
	note(f, "cancel", "-");
	pthread_mutex_unlock(&f->lock);
}

static void hooks_released(const struct ck_told *entry, void *userdata)
{
	struct fixture *f = userdata;
	pthread_mutex_lock(&f->lock);
	note(f, "released", entry->id);
	pthread_mutex_unlock(&f->lock);
}

/* the library's thread works meanwhile; nobody else can continue */
static void wait_for(struct fixture *f, const unsigned *counts, enum fx_call call, unsigned n)
{
	struct timespec limit;
	clock_gettime(CLOCK_REALTIME, &limit);
	limit.tv_sec += 20;
	pthread_mutex_lock(&f->lock);
	while (counts[call] < n && f->threaded &&
	       pthread_cond_timedwait(&f->called, &f->lock, &limit) == 0)
		;
	unsigned count = counts[call];
	pthread_mutex_unlock(&f->lock);
	if (count < n)
		fail_msg("call %d of the host: %u times, not %u", (int)call, count, n);
}

/* ---- life ------------------------------------------------------------------------------------ */

static uint64_t read_clock(void *userdata)
{
	return fx_now(userdata);
}

struct fixture *fixture_new(void)
{
	/* a tmpfs, like the default */
	const char *tmp = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : getenv("TMPDIR");
	struct fixture *f = calloc(1, sizeof(*f));
	assert_non_null(f);
	snprintf(f->dir, sizeof(f->dir), "%s/crikeep-flow.XXXXXX", tmp ? tmp : "/tmp");
	assert_non_null(mkdtemp(f->dir));
	f->now = 1000 * CK_NS_PER_S;
	f->host = (struct ck_host){ .size = sizeof(f->host),
				    .userdata = f,
				    .destroy = host_destroy,
				    .inspect = host_inspect,
				    .list = host_list,
				    .log = host_log };
	f->options = (struct ck_options){ .size = sizeof(f->options),
					  .state_dir = f->dir,
					  .host = &f->host,
					  .clock = read_clock,
					  .clock_userdata = f };
	snprintf(f->refusal, sizeof(f->refusal), "plugin 10-cpu: no");
	pthread_mutex_init(&f->lock, NULL);
	pthread_cond_init(&f->called, NULL);
	return f;
}

void fx_with_hooks(struct fixture *f, const char *names)
{
	snprintf(f->names, sizeof(f->names), "%s", names);
	f->hooks = (struct ck_hooks){ .size = sizeof(f->hooks),
				      .userdata = f,
				      .choose = hooks_choose,
				      .fire = hooks_fire,
				      .cancel = hooks_cancel,
				      .released = hooks_released };
	f->options.hooks = &f->hooks;
}

void fx_open(struct fixture *f)
{
	f->host.resolve_image = f->resolved[0] ? host_resolve : NULL;
	unsigned lists = f->ended[FX_LIST];
	if (ck_cache_open(&f->options, &f->cache, &f->err) < 0)
		fail_msg("open: %s", f->err.text);
	if (f->threaded) {
		assert_int_equal(ck_cache_run_thread(f->cache, &f->err), 0);
		wait_for(f, f->ended, FX_LIST, lists + 2); /* nobody is served before that */
	}
	fx_settle(f);
}

void fx_close(struct fixture *f)
{
	if (!f->cache)
		return;
	for (int call = 0; call < FX_CALLS; call++) /* a job must be ended, before or after */
		fx_release(f, (enum fx_call)call);
	assert_int_equal(ck_cache_close(f->cache, &f->err), 0);
	f->cache = NULL;
}

void fx_cut(struct fixture *f)
{
	assert_int_equal(ck_cache_close(f->cache, &f->err), 0);
	f->cache = NULL;
	for (int call = 0; call < FX_CALLS; call++)
		fx_release(f, (enum fx_call)call);
}

void fx_reopen(struct fixture *f)
{
	fx_close(f);
	fx_open(f);
}

void fx_thread(struct fixture *f)
{
	f->threaded = true;
	if (f->cache)
		assert_int_equal(ck_cache_run_thread(f->cache, &f->err), 0);
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st, (void)flag, (void)ftw;
	return remove(path);
}

void fixture_free(struct fixture *f)
{
	if (!f)
		return;
	fx_close(f);
	nftw(f->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	pthread_cond_destroy(&f->called);
	pthread_mutex_destroy(&f->lock);
	free(f->objects);
	free(f);
}

int fixture_set_up(void **state)
{
	*state = fixture_new();
	return 0;
}

int fixture_tear_down(void **state)
{
	fixture_free(*state);
	return 0;
}

/* ---- time ------------------------------------------------------------------------------------ */

uint64_t fx_now(const struct fixture *f)
{
	return __atomic_load_n(&f->now, __ATOMIC_SEQ_CST);
}

static void set_now(struct fixture *f, uint64_t now)
{
	__atomic_store_n(&f->now, now, __ATOMIC_SEQ_CST);
}

/* the library's thread has done all it can; it continues only after the caller's next step */
static bool thread_rests(struct fixture *f)
{
	pthread_mutex_lock(&f->cache->lock);
	bool rests = !f->cache->processing && !f->cache->pending && !f->cache->gap &&
		     f->cache->due > fx_now(f);
	pthread_mutex_unlock(&f->cache->lock);
	return rests;
}

void fx_settle(struct fixture *f)
{
	int n = 0;
	if (f->threaded) {
		while (!thread_rests(f))
			sched_yield(); /* the test's alarm limits this */
		return;
	}
	do
		assert_true(ck_cache_process(f->cache, &f->err) >= 0);
	while (ck_cache_timeout(f->cache) <= fx_now(f) && ++n < 1000);
	assert_true(n < 1000); /* otherwise it would spin for ever */
}

void fx_advance(struct fixture *f, uint64_t by)
{
	uint64_t target = fx_now(f) + by, due;
	fx_settle(f);
	while (!f->threaded && (due = ck_cache_timeout(f->cache)) <= target) {
		if (due > fx_now(f))
			set_now(f, due);
		fx_settle(f);
	}
	set_now(f, target);
	fx_settle(f);
}

void fx_jump(struct fixture *f, uint64_t by)
{
	set_now(f, fx_now(f) + by);
	fx_settle(f);
}

void fx_wait_asked(struct fixture *f, enum fx_call call, unsigned n)
{
	fx_settle(f);
	wait_for(f, f->hold[call] ? f->asked : f->ended, call, n);
}

/* ---- requests -------------------------------------------------------------------------------- */

struct fx_ask fx_sandbox(const char *name)
{
	/* requests are compared by their members; this many different pods at once are enough */
	static char uids[16][80];
	static unsigned next;
	char *uid = uids[next++ % 16];
	snprintf(uid, sizeof(uids[0]), "uid-%s", name);
	return (struct fx_ask){ .kind = CK_SANDBOX,
				.name = name,
				.ns = "shop",
				.uid = uid,
				.timeout = 10 * CK_NS_PER_S };
}

struct fx_ask fx_container(const char *pod, const char *sandbox, const char *name)
{
	struct fx_ask ask = fx_sandbox(pod);
	ask.kind = CK_CONTAINER;
	ask.sandbox = sandbox;
	ask.container = name;
	ask.image = "registry/app:1";
	return ask;
}

static void pod_config(const struct fx_ask *ask, struct pb *config, uint32_t attempt)
{
	build_sandbox_metadata(config, ask->name, ask->uid, ask->ns, attempt);
	if (ask->label)
		pb_pair(config, 6, "app", ask->label);
	if (ask->note)
		pb_pair(config, 7, "note", ask->note);
	if (ask->annotation) {
		static unsigned value;
		char text[16];
		snprintf(text, sizeof(text), "%u", __atomic_add_fetch(&value, 1, __ATOMIC_RELAXED));
		pb_pair(config, 7, ask->annotation, text);
	}
}

size_t fx_bytes(const struct fx_ask *ask, unsigned char *buf, size_t size)
{
	struct pb request = { .len = 0 }, pod = { .len = 0 }, config = { .len = 0 },
		  image = { .len = 0 };
	pod_config(ask, &pod, ask->kind == CK_SANDBOX ? ask->attempt : 0);
	if (ask->kind == CK_SANDBOX) {
		if (ask->env)
			pb_text(&pod, 2, ask->env); /* a hostname is difference enough */
		pb_message(&request, 1, &pod);
	} else {
		pb_text(&request, 1, ask->sandbox);
		build_container_metadata(&config, ask->container, ask->attempt);
		if (ask->image) {
			pb_text(&image, 1, ask->image);
			pb_message(&config, 2, &image);
		}
		if (ask->env)
			pb_pair(&config, 6, "LEVEL", ask->env);
		pb_message(&request, 2, &config);
		pb_message(&request, 3, &pod);
	}
	assert_true(request.len <= size);
	memcpy(buf, request.bytes, request.len);
	return request.len;
}

int fx_begin(struct fixture *f, const struct fx_ask *ask, struct ck_turn **ret_turn)
{
	unsigned char bytes[32768];
	struct ck_request request = { .size = sizeof(request),
				      .kind = ask->kind,
				      .bytes = bytes,
				      .timeout = ask->timeout,
				      .expired = ask->expired };
	request.len = fx_bytes(ask, bytes, sizeof(bytes));
	*ret_turn = NULL;
	return ck_turn_begin(f->cache, &request, ret_turn, &f->err);
}

static struct ck_turn *begin(struct fixture *f, const struct fx_ask *ask, int wanted)
{
	struct ck_turn *turn;
	int r = fx_begin(f, ask, &turn);
	if (r != wanted)
		fail_msg("begin: %d, not %d: %s", r, wanted, r < 0 ? f->err.text : "");
	return turn;
}

struct ck_turn *fx_create(struct fixture *f, const struct fx_ask *ask)
{
	return begin(f, ask, CK_CREATE);
}

struct ck_turn *fx_wait(struct fixture *f, const struct fx_ask *ask)
{
	return begin(f, ask, CK_WAIT);
}

size_t fx_recorded(const char *name, enum ck_kind kind, int attempt, unsigned char *buf,
		   size_t size)
{
	struct pb request = { .len = 0 };
	load_recorded(name, &request);
	if (attempt >= 0) { /* a message that comes twice is merged, and the later attempt counts */
		struct pb metadata = { .len = 0 }, config = { .len = 0 };
		pb_number(&metadata, kind == CK_SANDBOX ? 4 : 2, (uint64_t)attempt);
		pb_message(&config, 1, &metadata);
		pb_message(&request, kind == CK_SANDBOX ? 1 : 2, &config);
	}
	assert_true(request.len <= size);
	memcpy(buf, request.bytes, request.len);
	return request.len;
}

/* ---- the runtime's side of the test ---------------------------------------------------------- */

struct fx_object *fx_exists(struct fixture *f, const struct fx_ask *ask, const char *id)
{
	pthread_mutex_lock(&f->lock);
	if (f->objects_n == f->objects_room) {
		f->objects_room = f->objects_room ? 2 * f->objects_room : 64;
		f->objects = realloc(f->objects, f->objects_room * sizeof(*f->objects));
		assert_non_null(f->objects);
	}
	struct fx_object *o = &f->objects[f->objects_n++];
	*o = (struct fx_object){ .kind = ask->kind,
				 .condition = CK_CONDITION_READY,
				 .attempt = ask->attempt,
				 .created_at = fx_now(f) };
	snprintf(o->id, sizeof(o->id), "%s", id);
	snprintf(o->name, sizeof(o->name), "%s", ask->name);
	snprintf(o->ns, sizeof(o->ns), "%s", ask->ns);
	snprintf(o->uid, sizeof(o->uid), "%s", ask->uid);
	snprintf(o->sandbox, sizeof(o->sandbox), "%s", ask->sandbox ? ask->sandbox : "");
	snprintf(o->container, sizeof(o->container), "%s", ask->container ? ask->container : "");
	pthread_mutex_unlock(&f->lock);
	return o;
}

void fx_condition(struct fixture *f, const char *id, enum ck_condition condition)
{
	pthread_mutex_lock(&f->lock);
	struct fx_object *o = find(f, id);
	assert_non_null(o);
	o->condition = condition;
	pthread_mutex_unlock(&f->lock);
}

bool fx_has(struct fixture *f, const char *id)
{
	pthread_mutex_lock(&f->lock);
	bool has = find(f, id);
	pthread_mutex_unlock(&f->lock);
	return has;
}

void fx_vanish(struct fixture *f, const char *id)
{
	pthread_mutex_lock(&f->lock);
	vanish(f, id);
	pthread_mutex_unlock(&f->lock);
}

int fx_finish(struct fixture *f, struct ck_turn *turn, const char *id)
{
	struct ck_result result = { .size = sizeof(result), .id = id };
	return ck_turn_finish(turn, &result, &f->err);
}

int fx_make(struct fixture *f, struct ck_turn *turn, const struct fx_ask *ask, const char *id)
{
	fx_exists(f, ask, id);
	return fx_finish(f, turn, id);
}

void fx_keep(struct fixture *f, const struct fx_ask *ask, const char *id)
{
	struct ck_turn *turn = fx_create(f, ask);
	fx_advance(f, ask->timeout + CK_NS_PER_S);
	assert_int_equal(fx_make(f, turn, ask, id), CK_KEPT);
	ck_turn_free(turn);
}

void fx_commit(struct fixture *f, const struct fx_ask *ask, const char *id)
{
	struct ck_turn *turn = fx_create(f, ask);
	int r = fx_make(f, turn, ask, id);
	if (r == CK_WAIT)
		r = fx_decision(f, turn);
	assert_int_equal(r, CK_HAND_BACK);
	ck_turn_answered(turn, CK_DELIVERED);
	ck_turn_free(turn);
	fx_settle(f);
}

struct ck_turn *fx_removal_waits(struct fixture *f, const struct fx_ask *app, uint64_t timeout,
				 struct ck_turn **ret_creator)
{
	struct fx_ask pod = fx_sandbox("web");
	struct ck_turn *removal;
	fx_open(f);
	fx_commit(f, &pod, "s1");
	*ret_creator = fx_create(f, app);
	assert_int_equal(ck_remove_begin(f->cache, CK_SANDBOX, "s1", timeout, &removal, &f->err),
			 CK_WAIT);
	return removal;
}

size_t fx_release(struct fixture *f, enum fx_call call)
{
	size_t n = 0;
	pthread_mutex_lock(&f->lock);
	f->hold[call] = false;
	for (size_t i = 0; i < f->held_n;) {
		struct fx_held held = f->held[i];
		if (held.call != call) {
			i++;
			continue;
		}
		memmove(&f->held[i], &f->held[i + 1], (--f->held_n - i) * sizeof(held));
		/* this was without the lock: the list of held jobs may have changed */
		end(f, &held);
		i = 0;
		n++;
	}
	pthread_mutex_unlock(&f->lock);
	return n;
}

bool fx_was_destroyed(struct fixture *f, const char *id)
{
	bool was = false;
	pthread_mutex_lock(&f->lock);
	for (unsigned i = 0; i < f->destroyed_n; i++)
		was = was || !strcmp(f->destroyed[i], id);
	pthread_mutex_unlock(&f->lock);
	return was;
}

int fx_hides(struct fixture *f, const struct fx_ask *ask, const char *id)
{
	struct ck_view *view;
	struct ck_object o = {
		.size = sizeof(o),
		.kind = ask->kind,
		.condition = CK_CONDITION_READY,
		.id = id,
		.pod_name = ask->name,
		.pod_namespace = ask->ns,
		.pod_uid = ask->uid,
		.sandbox_id = ask->sandbox,
		.container_name = ask->container,
		.attempt = ask->attempt,
	};
	assert_int_equal(ck_view_begin(f->cache, &view, &f->err), 0);
	int r = ck_view_hides(view, &o);
	ck_view_free(view);
	return r;
}

/* ---- hearing --------------------------------------------------------------------------------- */

static void heard(struct ck_turn *turn, int outcome, void *userdata)
{
	struct fx_ear *ear = userdata;
	ear->turn = turn;
	ear->n++;
	ear->outcome = outcome;
}

void fx_listen(struct fx_ear *ear, struct ck_turn *turn)
{
	*ear = (struct fx_ear){ .turn = turn, .outcome = CK_WAIT };
	assert_int_equal(ck_turn_watch(turn, heard, ear), 0);
}

int fx_decision(struct fixture *f, struct ck_turn *turn)
{
	struct fx_ear ear;
	if (f->threaded)
		return ck_turn_wait(turn, &f->err);
	fx_listen(&ear, turn);
	fx_settle(f);
	assert_int_equal(ck_turn_watch(turn, NULL, NULL), 0);
	assert_in_range(ear.n, 0, 1); /* once per decision */
	if (ear.outcome < 0)
		f->err = *ck_turn_error(turn);
	return ear.outcome;
}

void fx_answered_with(struct fixture *f, struct ck_turn *turn, const char *id)
{
	struct ck_reply reply = { .size = sizeof(reply) };
	int r = fx_decision(f, turn);
	if (r != CK_HAND_BACK)
		fail_msg("%d, not handed back: %s", r, r < 0 ? f->err.text : "");
	assert_int_equal(ck_turn_reply(turn, &reply), 0);
	assert_string_equal(reply.id, id);
	assert_int_equal(reply.len, strlen(id) + 2);
	assert_memory_equal((const char *)reply.bytes + 2, id, strlen(id));
}

/* ---- looking into the database: never from the process that owns it, and without a bare fork(),
 * because a lock may be held by another thread. So the program runs itself again.
 * ---------------------------------------------------------------------- */

#define READ_DIR     "CK_FX_READ_DIR"
#define READ_COUNTER "CK_FX_READ_COUNTER"

static void print_counter(const struct ck_reader *reader, const char *name)
{
#define PRINT(counter, kinds, text) \
	if (!strcmp(name, #counter)) \
		printf("%llu", (unsigned long long)ck_counter_sum(reader->counters.counter));
	CK_COUNTERS(PRINT)
#undef PRINT
}

#define HISTORY "history" /* these two are read like a counter */
#define WHY     "why"

static void print_told(const struct ck_reader *reader)
{
	static const char *const names[] = {
		[CK_WHAT_TOLD] = "TOLD",
		[CK_WHAT_STOP_TOLD] = "STOP_TOLD",
		[CK_WHAT_REMOVE_TOLD] = "REMOVE_TOLD",
	};
	const char *sep = "";
	for (size_t i = 0; i < reader->history_n; i++) {
		const struct ck_history_row *line = &reader->history[i];
		const char *what = line->what < CK_COUNT(names) ? names[line->what] : NULL;
		if (!what)
			continue;
		printf("%s%s %s%s%s", sep, what, line->object, line->detail ? ": " : "",
		       line->detail ? line->detail : "");
		sep = "|";
	}
}

static void print_why(const struct ck_reader *reader)
{
	const char *sep = "";
	for (size_t i = 0; i < reader->history_n; i++) {
		const struct ck_history_row *line = &reader->history[i];
		bool moved = line->what == CK_WHAT_MOVED;
		if (!line->detail)
			continue;
		printf("%s%s: %s%s%s", sep,
		       moved ? ck_state_name(line->to) : ck_what_text(line->what),
		       moved ? ck_reason_text(line->reason) : "", moved ? ": " : "", line->detail);
		sep = "|";
	}
}

static int print_rows(const char *dir, const char *counter)
{
	struct ck_reader *reader;
	struct ck_error err;
	bool told = counter && !strcmp(counter, HISTORY), why = counter && !strcmp(counter, WHY);
	unsigned what = told || why ? CK_READ_HISTORY : counter ? CK_READ_COUNTERS : CK_READ_ROWS;
	if (ck_reader_open(dir, what, &reader, &err) < 0) {
		printf("%s", err.text);
		return 1;
	}
	if (told)
		print_told(reader);
	else if (why)
		print_why(reader);
	else if (counter)
		print_counter(reader, counter);
	for (size_t i = 0; i < reader->rows_n; i++) {
		const struct ck_row *row = &reader->rows[i];
		printf("%s%s %s %llu", i ? "|" : "", ck_state_name(row->state),
		       row->result ? row->result->id : "-", (unsigned long long)row->id);
	}
	ck_reader_free(reader);
	return 0;
}

__attribute__((constructor)) static void read_instead(void)
{
	const char *dir = getenv(READ_DIR);
	if (dir)
		exit(print_rows(dir, getenv(READ_COUNTER)));
}

/* @counter NULL: "STATE id row|..."; HISTORY: as fx_told(); WHY: as fx_why() */
static void dump(struct fixture *f, const char *counter, char *text, size_t size)
{
	char variable[sizeof(f->dir) + 32], name[64], *argv[] = { (char *)"read", NULL };
	char *envp[] = { variable, counter ? name : NULL, NULL };
	posix_spawn_file_actions_t actions;
	int fd[2], status;
	size_t n = 0;
	ssize_t got;
	pid_t pid;
	snprintf(variable, sizeof(variable), READ_DIR "=%s", f->dir);
	snprintf(name, sizeof(name), READ_COUNTER "=%s", counter ? counter : "");
	assert_int_equal(pipe2(fd, O_CLOEXEC), 0);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, fd[1], 1);
	assert_int_equal(posix_spawn(&pid, "/proc/self/exe", &actions, NULL, argv, envp), 0);
	posix_spawn_file_actions_destroy(&actions);
	close(fd[1]);
	while (n < size - 1 && (got = read(fd[0], text + n, size - 1 - n)) > 0)
		n += (size_t)got;
	text[n] = '\0';
	close(fd[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
}

const char *fx_rows(struct fixture *f)
{
	static char rows[65536];
	char *to = rows;
	dump(f, NULL, rows, sizeof(rows));
	for (char *at = rows; *at;) { /* without the numbers */
		char *end = at + strcspn(at, "|"), *number = end;
		while (number > at && *number != ' ')
			number--;
		bool more = *end;
		memmove(to, at, (size_t)(number - at));
		to += number - at;
		at = more ? end + 1 : end;
		if (more)
			*to++ = '|';
	}
	*to = '\0';
	return rows;
}

uint64_t fx_row_id(struct fixture *f, const char *id)
{
	static char rows[65536];
	dump(f, NULL, rows, sizeof(rows));
	for (char *row = rows; row; row = strchr(row, '|') ? strchr(row, '|') + 1 : NULL) {
		char state[32], object[80];
		unsigned long long number;
		if (sscanf(row, "%31s %79s %llu", state, object, &number) == 3 &&
		    !strcmp(object, id))
			return number;
	}
	return 0;
}

const char *fx_told(struct fixture *f)
{
	static char told[8192];
	dump(f, HISTORY, told, sizeof(told));
	return told;
}

const char *fx_why(struct fixture *f)
{
	static char why[65536];
	dump(f, WHY, why, sizeof(why));
	return why;
}

uint64_t fx_counter(struct fixture *f, const char *name)
{
	char text[64];
	dump(f, name, text, sizeof(text));
	return strtoull(text, NULL, 10);
}
