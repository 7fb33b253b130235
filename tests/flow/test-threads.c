/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many threads wait with ck_turn_wait(), and the host answers from its own threads. There must be
 * one creation per key, everybody must hear how theirs ended and nothing else, and nothing may race
 * (the TSan run is mostly for this test).
 */
#include <sched.h>
#include <stdarg.h>
#include <string.h>

#include "tests/flow/fixture.h"
#include "cache/cache.h"

#define THREADS   16
#define ANSWERERS 3

/* ---- a host with threads: jobs are answered in any order ------------------------------------- */

struct queued {
	struct queued *next;
	struct ck_job *job;
	enum ck_condition condition;
};

struct crowd {
	struct fixture *f;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct queued *first;
	bool stop;
	pthread_t answerers[ANSWERERS];
	unsigned destroys;
	char failed[512]; /* the first check that failed */
	unsigned rounds, shared_made;
	bool done;
	pthread_barrier_t begun;
};

static void enqueue(struct crowd *crowd, struct ck_job *job, enum ck_condition condition)
{
	struct queued *q = malloc(sizeof(*q));
	if (!q)
		abort();
	*q = (struct queued){ .job = job, .condition = condition };
	pthread_mutex_lock(&crowd->lock);
	q->next = crowd->first; /* the newest first */
	crowd->first = q;
	pthread_cond_signal(&crowd->changed);
	pthread_mutex_unlock(&crowd->lock);
}

static void *answer(void *userdata)
{
	struct crowd *crowd = userdata;
	pthread_mutex_lock(&crowd->lock);
	for (;;) {
		struct queued *q = crowd->first;
		if (!q && crowd->stop)
			break;
		if (!q) {
			pthread_cond_wait(&crowd->changed, &crowd->lock);
			continue;
		}
		crowd->first = q->next;
		pthread_mutex_unlock(&crowd->lock);
		struct ck_answer done = { .size = sizeof(done), .condition = q->condition };
		ck_job_done(q->job, &done);
		free(q);
		pthread_mutex_lock(&crowd->lock);
	}
	pthread_mutex_unlock(&crowd->lock);
	return NULL;
}

static void crowd_destroy(struct ck_job *job, enum ck_kind kind, const char *id, void *userdata)
{
	struct crowd *crowd = userdata;
	(void)kind, (void)id;
	__atomic_add_fetch(&crowd->destroys, 1, __ATOMIC_RELAXED);
	enqueue(crowd, job, CK_CONDITION_UNKNOWN);
}

static void crowd_inspect(struct ck_job *job, enum ck_kind kind, const char *id, void *userdata)
{
	(void)kind, (void)id;
	enqueue(userdata, job, CK_CONDITION_READY);
}

static void crowd_list(struct ck_job *job, const struct ck_filter *filter, void *userdata)
{
	/* nothing, always: every object is newer than each list, or nobody has seen it */
	(void)filter;
	enqueue(userdata, job, CK_CONDITION_UNKNOWN);
}

static int crowd_choose(const struct ck_told *told, char *names, size_t size, void *userdata)
{
	(void)told, (void)userdata;
	snprintf(names, size, "10-cpu");
	return 0;
}

static void crowd_fire(struct ck_job *job, enum ck_hook_event event, const struct ck_told *told,
		       void *userdata)
{
	(void)event, (void)told, (void)userdata;
	ck_hook_done(job, NULL, NULL);
}

static struct crowd *crowd_new(bool hooks)
{
	struct crowd *crowd = calloc(1, sizeof(*crowd));
	assert_non_null(crowd);
	struct fixture *f = crowd->f = fixture_new();
	pthread_mutex_init(&crowd->lock, NULL);
	pthread_cond_init(&crowd->changed, NULL);
	f->host = (struct ck_host){ .size = sizeof(f->host),
				    .userdata = crowd,
				    .destroy = crowd_destroy,
				    .inspect = crowd_inspect,
				    .list = crowd_list };
	f->hooks = (struct ck_hooks){ .size = sizeof(f->hooks),
				      .choose = crowd_choose,
				      .fire = crowd_fire };
	f->options.hooks = hooks ? &f->hooks : NULL;
	f->options.clock = NULL;
	for (int i = 0; i < ANSWERERS; i++)
		assert_int_equal(pthread_create(&crowd->answerers[i], NULL, answer, crowd), 0);
	assert_int_equal(ck_cache_open(&f->options, &f->cache, &f->err), 0);
	assert_int_equal(ck_cache_run_thread(f->cache, &f->err), 0);
	return crowd;
}

static void crowd_end(struct crowd *crowd)
{
	struct fixture *f = crowd->f;
	if (f->cache)
		assert_int_equal(ck_cache_close(f->cache, &f->err), 0);
	f->cache = NULL;
	pthread_mutex_lock(&crowd->lock);
	crowd->stop = true;
	pthread_cond_broadcast(&crowd->changed);
	pthread_mutex_unlock(&crowd->lock);
	for (int i = 0; i < ANSWERERS; i++)
		pthread_join(crowd->answerers[i], NULL);
	if (crowd->failed[0])
		fail_msg("%s", crowd->failed);
	fixture_free(f);
	pthread_cond_destroy(&crowd->changed);
	pthread_mutex_destroy(&crowd->lock);
	free(crowd);
}

/* cmocka's checks work only in its own thread */
static bool __attribute__((format(printf, 3, 4)))
check(struct crowd *crowd, bool ok, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	pthread_mutex_lock(&crowd->lock);
	if (!ok && !crowd->failed[0])
		vsnprintf(crowd->failed, sizeof(crowd->failed), fmt, ap);
	pthread_mutex_unlock(&crowd->lock);
	va_end(ap);
	return ok;
}

/* ---- what one caller does -------------------------------------------------------------------- */

static int begin(struct crowd *crowd, const struct fx_ask *ask, struct ck_turn **ret_turn,
		 struct ck_error *err)
{
	unsigned char bytes[4096];
	struct ck_request request = {
		.size = sizeof(request), .kind = ask->kind, .bytes = bytes, .timeout = ask->timeout
	};
	request.len = fx_bytes(ask, bytes, sizeof(bytes));
	*ret_turn = NULL;
	return ck_turn_begin(crowd->f->cache, &request, ret_turn, err);
}

static int begin_and_wait(struct crowd *crowd, const struct fx_ask *ask, struct ck_turn **ret_turn,
			  struct ck_error *err)
{
	int r = begin(crowd, ask, ret_turn, err);
	return r == CK_WAIT ? ck_turn_wait(*ret_turn, err) : r;
}

static int finish_and_wait(struct ck_turn *turn, const char *id, struct ck_error *err)
{
	struct ck_result result = { .size = sizeof(result), .id = id };
	int r = ck_turn_finish(turn, &result, err);
	return r == CK_WAIT ? ck_turn_wait(turn, err) : r;
}

static bool reply_is(struct ck_turn *turn, const char *id)
{
	struct ck_reply reply = { .size = sizeof(reply) };
	return ck_turn_reply(turn, &reply) == 0 && !strcmp(reply.id, id);
}

struct caller {
	pthread_t thread;
	struct crowd *crowd;
	unsigned number;
};

/* kept, handed back, superseded, failed, forgotten */
static bool own_pod(struct crowd *crowd, unsigned number, unsigned round)
{
	char name[64], uid[64], id[64];
	struct ck_error err = { 0 };
	struct ck_turn *turn;
	struct fx_ask ask = { .kind = CK_SANDBOX,
			      .ns = "shop",
			      .name = name,
			      .uid = uid,
			      .timeout = 200 * CK_NS_PER_S };
	struct ck_status why = { .size = sizeof(why), .grpc = 3, .message = "no" };
	snprintf(name, sizeof(name), "own-%u-%u", number, round);
	snprintf(uid, sizeof(uid), "uid-%u-%u", number, round);
	snprintf(id, sizeof(id), "s-%u-%u", number, round);

	int r = begin_and_wait(crowd, &ask, &turn, &err);
	if (!check(crowd, r == CK_CREATE, "%s: begin: %d %s", name, r, err.text))
		return false;
	ck_turn_stage(turn, "making it");
	ck_turn_leave(turn);
	r = finish_and_wait(turn, id, &err);
	ck_turn_free(turn);
	if (!check(crowd, r == CK_KEPT, "%s: late: %d %s", name, r, err.text))
		return false;
	r = begin_and_wait(crowd, &ask, &turn, &err);
	bool same = r == CK_HAND_BACK && reply_is(turn, id);
	if (same)
		ck_turn_answered(turn, round % 2 ? CK_DELIVERED : CK_LOST);
	ck_turn_free(turn);
	if (!check(crowd, same, "%s: repeated: %d %s", name, r, err.text))
		return false;
	ck_object_used(crowd->f->cache, CK_SANDBOX, id);
	r = ck_object_removed(crowd->f->cache, CK_SANDBOX, id);
	if (!check(crowd, r == 0, "%s: forget: %d", name, r))
		return false;
	ask.attempt = 1;
	r = begin_and_wait(crowd, &ask, &turn, &err);
	if (r == CK_CREATE)
		ck_turn_fail(turn, &why, NULL);
	ck_turn_free(turn);
	return check(crowd, r == CK_CREATE, "%s: attempt 1: %d %s", name, r, err.text);
}

/* all threads request the same: one creates it */
static bool shared_pod(struct crowd *crowd, unsigned round)
{
	char name[64], uid[64], id[64];
	struct ck_error err = { 0 };
	struct ck_turn *turn;
	struct fx_ask ask = { .kind = CK_SANDBOX,
			      .ns = "shop",
			      .name = name,
			      .uid = uid,
			      .timeout = 200 * CK_NS_PER_S };
	snprintf(name, sizeof(name), "shared-%u", round);
	snprintf(uid, sizeof(uid), "uid-shared-%u", round);
	snprintf(id, sizeof(id), "shared-id-%u", round);
	int r = begin_and_wait(crowd, &ask, &turn, &err);
	if (r == CK_CREATE) {
		__atomic_add_fetch(&crowd->shared_made, 1, __ATOMIC_RELAXED);
		r = finish_and_wait(turn, id, &err);
	}
	bool ok = r == CK_HAND_BACK && reply_is(turn, id);
	ck_turn_free(turn);
	return check(crowd, ok, "%s: %d %s", name, r, err.text);
}

static void *call(void *userdata)
{
	struct caller *caller = userdata;
	bool ok = true;
	for (unsigned round = 0; ok && round < caller->crowd->rounds; round++)
		ok = own_pod(caller->crowd, caller->number, round) &&
		     shared_pod(caller->crowd, round);
	return NULL;
}

static int count_told(const struct ck_told *told, void *userdata)
{
	(void)told;
	++*(unsigned *)userdata;
	return 0;
}

/* what a server does for its other clients meanwhile */
static void *look_on(void *userdata)
{
	struct crowd *crowd = userdata;
	struct ck_object o = { .size = sizeof(o),
			       .kind = CK_SANDBOX,
			       .id = "s-1-1",
			       .pod_name = "own-1-1",
			       .pod_namespace = "shop",
			       .pod_uid = "uid-1-1" };
	while (!__atomic_load_n(&crowd->done, __ATOMIC_SEQ_CST)) {
		struct ck_view *view;
		const char *id;
		unsigned n = 0;
		if (ck_view_begin(crowd->f->cache, &view, NULL) < 0)
			break;
		int r = ck_view_hides(view, &o);
		check(crowd, r == 0 || r == 1, "view: %d", r);
		ck_view_resolve(view, CK_SANDBOX, "s-", &id);
		ck_view_free(view);
		ck_snapshot(crowd->f->cache, count_told, &n);
		ck_object_seen(crowd->f->cache, CK_SANDBOX, "s-1-1", CK_CONDITION_READY);
		ck_cache_timeout(crowd->f->cache);
	}
	return NULL;
}

static void stress(bool hooks, unsigned long rounds)
{
	struct crowd *crowd = crowd_new(hooks);
	struct caller callers[THREADS];
	pthread_t onlooker;
	crowd->rounds = (unsigned)rounds;
	assert_int_equal(pthread_create(&onlooker, NULL, look_on, crowd), 0);
	for (unsigned i = 0; i < THREADS; i++) {
		callers[i] = (struct caller){ .crowd = crowd, .number = i };
		assert_int_equal(pthread_create(&callers[i].thread, NULL, call, &callers[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(callers[i].thread, NULL);
	__atomic_store_n(&crowd->done, true, __ATOMIC_SEQ_CST);
	pthread_join(onlooker, NULL);
	unsigned made = crowd->shared_made;
	crowd_end(crowd);
	assert_int_equal(made, rounds); /* K1 */
}

static void threads_make_each_key_once(void **state)
{
	(void)state;
	stress(false, ck_test_rounds(60));
}

static void threads_make_each_key_once_with_hooks(void **state)
{
	(void)state;
	stress(true, ck_test_rounds(30));
}

/* ---- 500 on one key -------------------------------------------------------------------------- */

struct many {
	struct crowd *crowd;
	unsigned heard, right;
};

static void many_heard(struct ck_turn *turn, int outcome, void *userdata)
{
	struct many *many = userdata;
	bool right = outcome == CK_HAND_BACK && reply_is(turn, "s1");
	ck_turn_free(turn);
	pthread_mutex_lock(&many->crowd->lock);
	many->heard++;
	many->right += right;
	pthread_cond_broadcast(&many->crowd->changed);
	pthread_mutex_unlock(&many->crowd->lock);
}

static void five_hundred_waiting_turns_hear_of_one_creation(void **state)
{
	struct crowd *crowd = crowd_new(false);
	struct many many = { .crowd = crowd };
	struct fx_ask ask = fx_sandbox("web");
	struct ck_turn *creator, *turn;
	struct ck_error err;
	(void)state;
	ask.timeout = 240 * CK_NS_PER_S;
	assert_int_equal(begin_and_wait(crowd, &ask, &creator, &err), CK_CREATE);
	for (int i = 0; i < 500; i++) {
		assert_int_equal(fx_begin(crowd->f, &ask, &turn), CK_WAIT);
		assert_int_equal(ck_turn_watch(turn, many_heard, &many), 0);
	}
	assert_int_equal(fx_finish(crowd->f, creator, "s1"), CK_HAND_BACK);
	ck_turn_free(creator);
	pthread_mutex_lock(&crowd->lock);
	while (many.heard < 500)
		pthread_cond_wait(&crowd->changed, &crowd->lock);
	pthread_mutex_unlock(&crowd->lock);
	assert_int_equal(many.right, 500);
	crowd_end(crowd);
}

/* ---- a watched creator that fails ------------------------------------------------------------ */

static void ignore_it(struct ck_turn *turn, int outcome, void *userdata)
{
	(void)turn, (void)outcome, (void)userdata;
}

/* begin to create pod number @i; @id: the id of the result */
static struct ck_turn *create_one(struct fixture *f, unsigned long i, char id[32])
{
	char name[32];
	struct fx_ask ask = { .kind = CK_SANDBOX, .ns = "shop", .name = name, .uid = name };
	snprintf(name, sizeof(name), "pod-%lu", i);
	snprintf(id, 32, "s%lu", i);
	return fx_create(f, &ask);
}

/* until another thread is inside the library; the test's alarm limits it */
static void wait_for_count(struct ck_cache *cache, const unsigned *count, unsigned n)
{
	for (unsigned now = 0; now < n; sched_yield()) {
		pthread_mutex_lock(&cache->lock);
		now = *count;
		pthread_mutex_unlock(&cache->lock);
	}
}

/* the event loop may call back before ck_turn_finish() returns: both give the reason */
static void a_watched_creator_hears_why_from_its_own_finish(void **state)
{
	struct fixture *f = fixture_new();
	char id[32];
	(void)state;
	fx_with_hooks(f, "10-log");
	snprintf(f->absent, sizeof(f->absent), "20-net");
	fx_thread(f);
	fx_open(f);
	for (unsigned long i = 0; i < ck_test_rounds(300); i++) {
		struct ck_turn *turn = create_one(f, i, id);
		assert_int_equal(ck_turn_watch(turn, ignore_it, NULL), 0);
		f->err = (struct ck_error){ 0 };
		assert_int_equal(fx_finish(f, turn, id), -CK_EUNAVAILABLE);
		assert_string_equal(f->err.text, "required plugin 20-net is absent");
		ck_turn_free(turn);
	}
	fixture_free(f);
}

/* ---- what a creator's own call returns calls nobody back ------------------------------------- */

static void count_it(struct ck_turn *turn, int outcome, void *userdata)
{
	(void)turn, (void)outcome;
	__atomic_add_fetch((unsigned *)userdata, 1, __ATOMIC_SEQ_CST);
}

/* otherwise a host that answers both in the callback and after ck_turn_finish() would answer, and
 * free, twice */
static void a_watched_creator_is_not_called_back_by_its_own_call(void **state)
{
	struct fixture *f = fixture_new();
	struct ck_status status = { .size = sizeof(status), .grpc = 2, .message = "no" };
	unsigned called = 0;
	char id[32];
	(void)state;
	fx_thread(f);
	fx_open(f);
	for (unsigned long i = 0; i < ck_test_rounds(300); i++) {
		struct ck_turn *turn = create_one(f, i, id);
		assert_int_equal(ck_turn_watch(turn, count_it, &called), 0);
		if (i % 2)
			assert_int_equal(ck_turn_fail(turn, &status, NULL), 0);
		else
			assert_int_equal(fx_finish(f, turn, id), CK_HAND_BACK);
		fx_settle(f);
		ck_turn_free(turn);
	}
	assert_int_equal(called, 0);
	fixture_free(f);
}

static void *wait_beside(void *userdata)
{
	return (void *)(intptr_t)ck_turn_wait(userdata, NULL);
}

/* it must not wait for ever for a turn that is decided */
static void who_waits_beside_a_creator_hears_what_its_own_call_decides(void **state)
{
	struct fixture *f = fixture_new();
	struct ck_status status = { .size = sizeof(status), .grpc = 2, .message = "no" };
	char id[32];
	(void)state;
	fx_thread(f);
	fx_open(f);
	for (unsigned long i = 0; i < ck_test_rounds(100); i++) {
		pthread_t thread;
		void *heard;
		struct ck_turn *turn = create_one(f, i, id);
		assert_int_equal(pthread_create(&thread, NULL, wait_beside, turn), 0);
		wait_for_count(f->cache, &turn->waiting, 1);
		if (i % 2)
			assert_int_equal(ck_turn_fail(turn, &status, NULL), 0);
		else
			assert_int_equal(fx_finish(f, turn, id), CK_HAND_BACK);
		pthread_join(thread, &heard);
		assert_int_equal((intptr_t)heard, i % 2 ? -CK_EFAILED : CK_HAND_BACK);
		ck_turn_free(turn);
	}
	fixture_free(f);
}

/* ---- two calls in one round ------------------------------------------------------------------ */

struct same_round {
	struct fixture *f;
	void *(*calls[2])(void *userdata);
	pthread_t threads[2];
	struct fx_ask asks[2];
	struct ck_turn *turns[2];
	int r[2];
};

/* inside a round: the threads wait to enter, in the order in which they are started */
static int call_in_order(const struct ck_entry_info *entry, void *userdata)
{
	struct same_round *same = userdata;
	struct ck_cache *cache = same->f->cache;
	(void)entry;
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(pthread_create(&same->threads[i], NULL, same->calls[i], same), 0);
		wait_for_count(cache, &cache->calls, i + 2); /* one of them is this one */
	}
	return 1;
}

static void in_the_same_round(struct same_round *same)
{
	assert_int_equal(ck_entries(same->f->cache, call_in_order, same), 1);
	for (unsigned i = 0; i < 2; i++)
		pthread_join(same->threads[i], NULL);
}

static int begin_one(struct same_round *same, unsigned i)
{
	unsigned char bytes[4096];
	struct ck_request request = { .size = sizeof(request),
				      .kind = CK_SANDBOX,
				      .bytes = bytes,
				      .timeout = same->asks[i].timeout };
	request.len = fx_bytes(&same->asks[i], bytes, sizeof(bytes));
	return ck_turn_begin(same->f->cache, &request, &same->turns[i], NULL);
}

static void *begin_the_first(void *userdata)
{
	struct same_round *same = userdata;
	same->r[0] = begin_one(same, 0);
	return NULL;
}

static void *begin_the_second(void *userdata)
{
	struct same_round *same = userdata;
	same->r[1] = begin_one(same, 1);
	return NULL;
}

static void *finish_the_first(void *userdata)
{
	struct same_round *same = userdata;
	struct ck_result result = { .size = sizeof(result), .id = "c1" };
	same->r[0] = ck_turn_finish(same->turns[0], &result, NULL);
	return NULL;
}

static void *fail_the_first(void *userdata)
{
	struct same_round *same = userdata;
	struct ck_status status = { .size = sizeof(status), .grpc = 2, .message = "no" };
	same->r[0] = ck_turn_fail(same->turns[0], &status, NULL);
	return NULL;
}

static void *free_the_second(void *userdata)
{
	struct same_round *same = userdata;
	ck_turn_free(same->turns[1]);
	return NULL;
}

/* the first only hears that it was superseded: it has begun nothing that the second must wait
 * for */
static void superseded_before_it_was_begun_is_not_lost(void **state) /* K8, K9 */
{
	struct fixture *f = fixture_new();
	struct same_round same = { .f = f, .calls = { begin_the_first, begin_the_second } };
	struct fx_ask other = fx_sandbox("other");
	(void)state;
	fx_open(f);
	fx_commit(f, &other, "s1");
	same.asks[0] = same.asks[1] = fx_sandbox("web");
	same.asks[1].attempt = 1;
	in_the_same_round(&same);
	assert_int_equal(same.r[0], -CK_EABANDONED);
	assert_null(same.turns[0]);
	assert_int_equal(same.r[1], CK_WAIT);
	assert_int_equal(fx_decision(f, same.turns[1]), CK_CREATE);
	ck_turn_free(same.turns[1]);
	fixture_free(f);
}

/* it was handed to a turn that was freed in the same moment; if it stayed visible and CREATED, the
 * kubelet would create the next attempt */
static void who_is_freed_when_it_is_handed_over_was_not_answered(void **state) /* K7 */
{
	struct fixture *f = fixture_new();
	struct same_round same = { .f = f, .calls = { finish_the_first, free_the_second } };
	struct fx_ask pod = fx_sandbox("web"), ask = fx_container("web", "s1", "app");
	(void)state;
	fx_open(f);
	fx_commit(f, &pod, "s1");
	same.turns[0] = fx_create(f, &ask);
	same.turns[1] = fx_wait(f, &ask);
	ck_turn_leave(same.turns[0]);
	fx_exists(f, &ask, "c1");
	in_the_same_round(&same);
	assert_int_equal(same.r[0], CK_KEPT);
	ck_turn_free(same.turns[0]);
	assert_string_equal(fx_rows(f), "COMMITTED s1|KEPT c1");
	fixture_free(f);
}

static void who_is_freed_when_it_is_to_create_has_begun_nothing(void **state) /* K8 */
{
	struct fixture *f = fixture_new();
	struct same_round same = { .f = f, .calls = { fail_the_first, free_the_second } };
	struct fx_ask other = fx_sandbox("other"), ask = fx_sandbox("web");
	(void)state;
	fx_open(f);
	fx_commit(f, &other, "s1");
	same.turns[0] = fx_create(f, &ask);
	ask.note = "another request";
	same.turns[1] = fx_wait(f, &ask);
	in_the_same_round(&same);
	assert_int_equal(same.r[0], 0);
	ck_turn_free(same.turns[0]);
	assert_string_equal(fx_rows(f), "COMMITTED s1");
	fixture_free(f);
}

/* inside a round */
static int free_beside(const struct ck_entry_info *entry, void *userdata)
{
	struct same_round *same = userdata;
	(void)entry;
	assert_int_equal(pthread_create(&same->threads[1], NULL, free_the_second, same), 0);
	pthread_join(same->threads[1], NULL);
	return 1;
}

/* nobody needs its result, so it waits for no other thread; and the next call finds it done */
static void a_turn_is_freed_without_waiting_for_a_round(void **state)
{
	struct fixture *f = fixture_new();
	struct same_round same = { .f = f };
	struct fx_ask ask = fx_sandbox("web");
	(void)state;
	fx_open(f);
	same.turns[0] = fx_create(f, &ask);
	same.turns[1] = fx_wait(f, &ask);
	assert_int_equal(ck_entries(f->cache, free_beside, &same), 1);
	assert_int_equal(f->cache->calls, 0);
	assert_int_equal(fx_finish(f, same.turns[0], "s1"), CK_HAND_BACK);
	ck_turn_free(same.turns[0]);
	fixture_free(f);
}

/* ---- close among it all ---------------------------------------------------------------------- */

/* four threads for each pod: one creates it, three wait, and another thread closes the cache */
static void *begun_when_it_closes(void *userdata)
{
	struct caller *caller = userdata;
	struct crowd *crowd = caller->crowd;
	char name[64];
	struct ck_error err = { 0 };
	struct ck_turn *turn;
	struct fx_ask ask = { .kind = CK_SANDBOX,
			      .ns = "shop",
			      .name = name,
			      .uid = name,
			      .timeout = 200 * CK_NS_PER_S };
	snprintf(name, sizeof(name), "pod-%u", caller->number / 4);
	int r = begin(crowd, &ask, &turn, &err);
	pthread_barrier_wait(&crowd->begun);
	if (r == CK_CREATE)
		r = finish_and_wait(turn, name, &err);
	else if (r == CK_WAIT)
		r = ck_turn_wait(turn, &err);
	check(crowd, r == CK_HAND_BACK ? reply_is(turn, name) : r == -CK_ECLOSED || r == CK_CREATE,
	      "%s: %d %s", name, r, err.text);
	if (caller->number % 3 == 0)
		ck_turn_leave(turn);
	ck_turn_free(turn);
	return NULL;
}

static void close_ends_everybody_where_he_is(void **state)
{
	(void)state;
	for (unsigned long i = 0; i < ck_test_rounds(30); i++) {
		struct crowd *crowd = crowd_new(i % 2);
		struct caller callers[THREADS];
		pthread_barrier_init(&crowd->begun, NULL, THREADS + 1);
		for (unsigned t = 0; t < THREADS; t++) {
			callers[t] = (struct caller){ .crowd = crowd, .number = t };
			assert_int_equal(pthread_create(&callers[t].thread, NULL,
							begun_when_it_closes, &callers[t]),
					 0);
		}
		/* the host does not use its handle any more */
		pthread_barrier_wait(&crowd->begun);
		assert_int_equal(ck_cache_close(crowd->f->cache, NULL), 0);
		for (unsigned t = 0; t < THREADS; t++)
			pthread_join(callers[t].thread, NULL);
		crowd->f->cache = NULL;
		pthread_barrier_destroy(&crowd->begun);
		crowd_end(crowd);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_make_each_key_once),
		cmocka_unit_test(threads_make_each_key_once_with_hooks),
		cmocka_unit_test(five_hundred_waiting_turns_hear_of_one_creation),
		cmocka_unit_test(a_watched_creator_hears_why_from_its_own_finish),
		cmocka_unit_test(a_watched_creator_is_not_called_back_by_its_own_call),
		cmocka_unit_test(who_waits_beside_a_creator_hears_what_its_own_call_decides),
		cmocka_unit_test(superseded_before_it_was_begun_is_not_lost),
		cmocka_unit_test(who_is_freed_when_it_is_handed_over_was_not_answered),
		cmocka_unit_test(who_is_freed_when_it_is_to_create_has_begun_nothing),
		cmocka_unit_test(a_turn_is_freed_without_waiting_for_a_round),
		cmocka_unit_test(close_ends_everybody_where_he_is),
	};
	return CK_TEST_MAIN(tests);
}
