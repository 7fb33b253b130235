/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A storm: eight threads call whatever they like, for the same few pods, over several lives of the
 * cache. Host and hooks answer later, from threads of their own, and the library runs its own
 * thread. The cache is closed in the middle of it all and opened again with what it left. Never are
 * two creations of one key under way, and nobody gets what belongs to another key. The rest is for
 * the sanitizers.
 */
#include <string.h>

#include "tests/flow/fixture.h"
#include "cache/cache.h"

enum { THREADS = 8, ANSWERERS = 2, LIVES = 4, PODS = 3, KEYS = 3 * PODS, ID = 48 };

struct queued {
	struct queued *next;
	struct ck_job *job;
	bool hook;
};

struct storm {
	struct fixture *f;
	pthread_rwlock_t handle; /* a host does not use its handle any more when it closes it */
	bool closing;
	pthread_mutex_t lock; /* guards what follows */
	pthread_cond_t changed;
	struct queued *first;
	bool stop;
	char failed[200];         /* the first check that failed */
	char sandboxes[PODS][ID]; /* the last that was handed out */
	unsigned making[KEYS];    /* creations that are under way */
	unsigned made, handed;
	pthread_t answerers[ANSWERERS];
	unsigned calls; /* of each thread in each life */
};

struct caller {
	pthread_t thread;
	struct storm *storm;
	uint64_t random;
};

static unsigned below(struct caller *c, unsigned n)
{
	c->random = c->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (unsigned)(c->random >> 33) % n;
}

static void wrong(struct storm *storm, const char *what, const char *detail)
{
	pthread_mutex_lock(&storm->lock);
	if (!storm->failed[0])
		snprintf(storm->failed, sizeof(storm->failed), "%s: %s", what, detail);
	pthread_mutex_unlock(&storm->lock);
}

/* ---- host and hooks -------------------------------------------------------------------------- */

static void enqueue(struct storm *storm, struct ck_job *job, bool hook)
{
	struct queued *q = malloc(sizeof(*q));
	if (!q)
		abort();
	*q = (struct queued){ .job = job, .hook = hook };
	pthread_mutex_lock(&storm->lock);
	q->next = storm->first; /* the newest first */
	storm->first = q;
	pthread_cond_signal(&storm->changed);
	pthread_mutex_unlock(&storm->lock);
}

static void *answer(void *userdata)
{
	static const struct ck_answer done = { .size = sizeof(done),
					       .condition = CK_CONDITION_READY };
	struct storm *storm = userdata;
	unsigned n = 0;
	pthread_mutex_lock(&storm->lock);
	while (storm->first || !storm->stop) {
		struct queued *q = storm->first;
		if (!q) {
			pthread_cond_wait(&storm->changed, &storm->lock);
			continue;
		}
		storm->first = q->next;
		pthread_mutex_unlock(&storm->lock);
		if (q->hook)
			ck_hook_done(q->job, NULL, ++n % 7 ? NULL : "plugin 10-cpu: no");
		else
			ck_job_done(q->job, &done);
		free(q);
		pthread_mutex_lock(&storm->lock);
	}
	pthread_mutex_unlock(&storm->lock);
	return NULL;
}

static void storm_object(struct ck_job *job, enum ck_kind kind, const char *id, void *userdata)
{
	(void)kind, (void)id;
	enqueue(userdata, job, false);
}

/* nothing, always: every object is newer than each list, or is given up */
static void storm_list(struct ck_job *job, const struct ck_filter *filter, void *userdata)
{
	(void)filter;
	enqueue(userdata, job, false);
}

static int storm_choose(const struct ck_told *told, char *names, size_t size, void *userdata)
{
	(void)told, (void)userdata;
	snprintf(names, size, "10-cpu");
	return 0;
}

static void storm_fire(struct ck_job *job, enum ck_hook_event event, const struct ck_told *told,
		       void *userdata)
{
	(void)event, (void)told;
	enqueue(userdata, job, true);
}

/* ---- what a caller does ---------------------------------------------------------------------- */

struct wish { /* a request, and the key it is for */
	struct fx_ask ask;
	char name[16], uid[16], sandbox[ID];
	unsigned pod, key;
};

static void choose_wish(struct caller *c, struct wish *wish)
{
	struct storm *storm = c->storm;
	unsigned container = below(c, 3);
	wish->pod = below(c, PODS);
	wish->key = wish->pod * 3 + container;
	snprintf(wish->name, sizeof(wish->name), "pod-%u", wish->pod);
	snprintf(wish->uid, sizeof(wish->uid), "uid-%u", wish->pod);
	pthread_mutex_lock(&storm->lock);
	memcpy(wish->sandbox, storm->sandboxes[wish->pod], ID);
	pthread_mutex_unlock(&storm->lock);
	if (container && !wish->sandbox[0])
		wish->key = wish->pod * 3, container = 0;
	wish->ask = (struct fx_ask){ .kind = container ? CK_CONTAINER : CK_SANDBOX,
				     .ns = "shop",
				     .name = wish->name,
				     .uid = wish->uid,
				     .timeout = (260 + below(c, 140)) * CK_NS_PER_MS };
	if (container) {
		wish->ask.sandbox = wish->sandbox;
		wish->ask.container = container == 1 ? "app" : "log";
	}
	wish->ask.env = below(c, 10) ? NULL : "other";
}

static void making(struct storm *storm, const struct wish *wish, int by, bool again)
{
	pthread_mutex_lock(&storm->lock);
	storm->making[wish->key] += (unsigned)by;
	bool twice = by > 0 && storm->making[wish->key] > 1 && !again && !wish->sandbox[0];
	storm->made += by > 0;
	pthread_mutex_unlock(&storm->lock);
	if (twice)
		wrong(storm, "two creations at once", wish->name);
}

static void answered(struct caller *c, struct ck_turn *turn, const struct wish *wish)
{
	struct storm *storm = c->storm;
	struct ck_reply reply = { .size = sizeof(reply) };
	char prefix[32];
	snprintf(prefix, sizeof(prefix), "k%u-", wish->key);
	if (ck_turn_reply(turn, &reply) != 0 || strncmp(reply.id, prefix, strlen(prefix)) != 0)
		wrong(storm, "somebody else's reply", wish->name);
	pthread_mutex_lock(&storm->lock);
	storm->handed++;
	if (wish->ask.kind == CK_SANDBOX && reply.id)
		snprintf(storm->sandboxes[wish->pod], ID, "%s", reply.id);
	pthread_mutex_unlock(&storm->lock);
	if (below(c, 8))
		ck_turn_answered(turn, below(c, 5) ? CK_DELIVERED : CK_LOST);
}

static int create(struct caller *c, struct ck_turn *turn, const struct wish *wish)
{
	static unsigned number;
	char id[ID];
	struct ck_result result = { .size = sizeof(result), .id = id };
	struct ck_status why = { .size = sizeof(why), .grpc = 3, .message = "no" };
	making(c->storm, wish, 1, turn->m.again);
	snprintf(id, sizeof(id), "k%u-%u", wish->key,
		 __atomic_add_fetch(&number, 1, __ATOMIC_RELAXED));
	ck_turn_stage(turn, "making it");
	if (below(c, 6) == 0)
		ck_turn_leave(turn);
	making(c->storm, wish, -1, false); /* before anybody may begin the next one */
	switch (below(c, 8)) {
	case 0:
		return ck_turn_fail(turn, &why, NULL) < 0 ? -CK_ESTATE : -CK_EFAILED;
	case 1:
		return ck_turn_lost(turn, NULL) < 0 ? -CK_ESTATE : CK_WAIT;
	case 2:
		return -CK_EFAILED; /* and is freed, which makes it lost */
	default:
		return ck_turn_finish(turn, &result, NULL);
	}
}

/* false: the cache is being closed */
static bool enter(struct storm *storm)
{
	pthread_rwlock_rdlock(&storm->handle);
	if (!storm->closing)
		return true;
	pthread_rwlock_unlock(&storm->handle);
	return false;
}

static bool request(struct caller *c)
{
	unsigned char bytes[4096];
	struct wish wish;
	struct ck_turn *turn = NULL;
	choose_wish(c, &wish);
	struct ck_request request = { .size = sizeof(request),
				      .kind = wish.ask.kind,
				      .bytes = bytes,
				      .timeout = wish.ask.timeout };
	request.len = fx_bytes(&wish.ask, bytes, sizeof(bytes));
	if (!enter(c->storm))
		return false;
	int r = ck_turn_begin(c->storm->f->cache, &request, &turn, NULL);
	pthread_rwlock_unlock(&c->storm->handle);
	for (int i = 0; (r == CK_WAIT || r == CK_CREATE) && i < 8; i++)
		r = r == CK_WAIT ? ck_turn_wait(turn, NULL) : create(c, turn, &wish);
	if (r == CK_HAND_BACK)
		answered(c, turn, &wish);
	ck_turn_free(turn);
	return r != -CK_ECLOSED;
}

static int count(const struct ck_told *told, void *userdata)
{
	(void)told;
	++*(unsigned *)userdata;
	return 0;
}

static void look(struct caller *c, const char *id)
{
	struct ck_cache *cache = c->storm->f->cache;
	struct ck_view *view;
	unsigned n = 0;
	const char *full;
	struct ck_object o = { .size = sizeof(o), .kind = CK_SANDBOX, .id = id };
	if (ck_view_begin(cache, &view, NULL) == 0) {
		ck_view_hides(view, &o);
		ck_view_resolve(view, CK_SANDBOX, "k", &full);
		ck_view_free(view);
	}
	ck_snapshot(cache, count, &n);
	ck_cache_timeout(cache);
}

/* what passes by, for a sandbox that was handed out */
static void observe(struct caller *c)
{
	struct storm *storm = c->storm;
	struct ck_cache *cache = storm->f->cache;
	struct ck_turn *turn;
	char id[ID];
	unsigned pod = below(c, PODS);
	pthread_mutex_lock(&storm->lock);
	memcpy(id, storm->sandboxes[pod], ID);
	pthread_mutex_unlock(&storm->lock);
	if (!id[0])
		return;
	switch (below(c, 8)) {
	case 0:
		ck_sandbox_stopping(cache, id);
		break;
	case 1:
		if (ck_remove_begin(cache, CK_SANDBOX, id, 300 * CK_NS_PER_MS, &turn, NULL) >= 0) {
			ck_turn_leave(turn);
			ck_turn_free(turn);
		}
		break;
	case 2:
		ck_object_removed(cache, CK_SANDBOX, id);
		break;
	case 3:
		ck_object_seen(cache, CK_SANDBOX, id, CK_CONDITION_DEAD);
		break;
	case 4:
		ck_object_used(cache, CK_SANDBOX, id);
		break;
	default:
		look(c, id);
		break;
	}
}

static void *call(void *userdata)
{
	struct caller *c = userdata;
	bool open = true;
	for (unsigned i = 0; open && i < c->storm->calls; i++) {
		if (below(c, 3)) {
			open = request(c);
		} else if ((open = enter(c->storm))) {
			observe(c);
			pthread_rwlock_unlock(&c->storm->handle);
		}
	}
	return NULL;
}

/* ---- the storm ------------------------------------------------------------------------------- */

static void life(struct storm *storm, unsigned number)
{
	struct fixture *f = storm->f;
	struct caller callers[THREADS];
	assert_int_equal(ck_cache_open(&f->options, &f->cache, &f->err), 0);
	assert_int_equal(ck_cache_run_thread(f->cache, &f->err), 0);
	for (unsigned i = 0; i < THREADS; i++) {
		callers[i] = (struct caller){ .storm = storm, .random = number * THREADS + i };
		assert_int_equal(pthread_create(&callers[i].thread, NULL, call, &callers[i]), 0);
	}
	for (unsigned i = 0; i < THREADS / 2; i++) /* the others are in the middle of it */
		pthread_join(callers[i].thread, NULL);
	pthread_rwlock_wrlock(&storm->handle);
	storm->closing = true;
	pthread_rwlock_unlock(&storm->handle);
	assert_int_equal(ck_cache_close(f->cache, &f->err), 0);
	f->cache = NULL;
	for (unsigned i = THREADS / 2; i < THREADS; i++)
		pthread_join(callers[i].thread, NULL);
	storm->closing = false;
}

static void eight_threads_over_several_lives(void **state)
{
	struct storm *storm = calloc(1, sizeof(*storm));
	(void)state;
	assert_non_null(storm);
	struct fixture *f = storm->f = fixture_new();
	pthread_rwlock_init(&storm->handle, NULL);
	pthread_mutex_init(&storm->lock, NULL);
	pthread_cond_init(&storm->changed, NULL);
	f->host = (struct ck_host){ .size = sizeof(f->host),
				    .userdata = storm,
				    .destroy = storm_object,
				    .inspect = storm_object,
				    .list = storm_list };
	f->hooks = (struct ck_hooks){ .size = sizeof(f->hooks),
				      .userdata = storm,
				      .choose = storm_choose,
				      .fire = storm_fire };
	f->options.hooks = &f->hooks;
	f->options.clock = NULL;
	f->options.ttl = f->options.create_deadline = 60 * CK_NS_PER_MS;
	f->options.lost_grace = 30 * CK_NS_PER_MS;
	f->options.supersede_wait = 30 * CK_NS_PER_MS;
	storm->calls = (unsigned)ck_test_rounds(60);
	for (int i = 0; i < ANSWERERS; i++)
		assert_int_equal(pthread_create(&storm->answerers[i], NULL, answer, storm), 0);
	for (unsigned i = 1; i <= LIVES; i++)
		life(storm, i);
	pthread_mutex_lock(&storm->lock);
	storm->stop = true;
	pthread_cond_broadcast(&storm->changed);
	pthread_mutex_unlock(&storm->lock);
	for (int i = 0; i < ANSWERERS; i++)
		pthread_join(storm->answerers[i], NULL);
	printf("%u creations, %u handed over\n", storm->made, storm->handed);
	if (storm->failed[0])
		fail_msg("%s", storm->failed);
	fixture_free(f);
	pthread_cond_destroy(&storm->changed);
	pthread_mutex_destroy(&storm->lock);
	pthread_rwlock_destroy(&storm->handle);
	free(storm);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(eight_threads_over_several_lives),
	};
	return CK_TEST_MAIN(tests);
}
