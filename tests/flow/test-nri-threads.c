/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads everywhere: the cache's own, one that turns the hooks, some that describe, many that make
 * pods with containers and end them, and 1,000 connections of plugins that join meanwhile. Nothing
 * races (this test is what the TSan run is for), and for each connection and each pod or container
 * it holds:
 *
 *	known   listed, RunPodSandbox or CreateContainer, once, if it is there meanwhile (H1)
 *	Stop    once, if it had its list before the Stop was sent; none, if it joined when that
 *	        had been sent (H1)
 *	Remove  once, if it knows it; and nothing afterwards
 *
 * A number that all threads count up says what was before what. What is between two numbers may
 * have been on either side; it is counted, and at most one of it came.
 */
#define CK_TEST_SECONDS 300
#include <poll.h>
#include <semaphore.h>
#include <stdarg.h>
#include <string.h>

#include "src/crikeep-nri.h"
#include "tests/flow/fixture.h"
#include "tests/flow/nri-peer.h"

#define CALLERS    6
#define DESCRIBERS 2
#define VISITORS   16
#define PODS_MAX   1500 /* of one caller */

struct asked {
	struct asked *next;
	struct ck_nri_job *job;
	char id[80];
};

/* when a pod or a container did so, in numbers of now(); 0: not yet, or not at all. Atomic */
struct life {
	uint64_t asked, made, stop_from, stop_until, remove_from, remove_until;
};

/* pairs of a connection and a pod, or a container */
struct figures {
	unsigned long connections, pairs, listed, run, neither, both, unasked;
	unsigned long stops, stops_left_out, stops_between, stops_lost, stops_surplus;
	unsigned long removes, removes_lost, duplicates;
};

struct stage {
	struct fixture *f;
	struct ck_nri *nri;
	struct ck_nri_host host;
	struct ck_hooks hooks;
	char socket[300];
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct asked *asked;
	bool describers_end;
	bool calls_ended, hooks_end;        /* atomic */
	bool wrong;                         /* atomic: failed is not empty */
	unsigned target;                    /* so many connections join */
	unsigned joined, ended, containers; /* connections that have had their list; pods; atomic */
	uint64_t clock;                     /* atomic */
	struct life lives[2][CALLERS][PODS_MAX]; /* of pods; of containers, one in a pod at most */
	struct figures figures[2];               /* the same; below lock */
	char failed[512];                        /* the first check that failed */
};

static uint64_t now(struct stage *s)
{
	return __atomic_add_fetch(&s->clock, 1, __ATOMIC_SEQ_CST);
}

static void note(struct stage *s, uint64_t *at)
{
	__atomic_store_n(at, now(s), __ATOMIC_SEQ_CST);
}

static uint64_t noted(const uint64_t *at)
{
	return __atomic_load_n(at, __ATOMIC_SEQ_CST);
}

static unsigned joined(struct stage *s)
{
	return __atomic_load_n(&s->joined, __ATOMIC_SEQ_CST);
}

static bool is_wrong(struct stage *s)
{
	return __atomic_load_n(&s->wrong, __ATOMIC_SEQ_CST);
}

static void __attribute__((format(printf, 3, 4)))
check(struct stage *s, bool ok, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	pthread_mutex_lock(&s->lock);
	if (!ok && !s->failed[0]) {
		vsnprintf(s->failed, sizeof(s->failed), fmt, ap);
		__atomic_store_n(&s->wrong, true, __ATOMIC_SEQ_CST);
	}
	pthread_mutex_unlock(&s->lock);
	va_end(ap);
}

/* ---- the host: it describes in threads of its own, the youngest question first --------------- */

static void describe(struct ck_nri_job *job, enum ck_kind kind, const char *id, void *userdata)
{
	struct stage *s = userdata;
	struct asked *asked = malloc(sizeof(*asked));
	(void)kind;
	if (!asked)
		abort();
	asked->job = job;
	snprintf(asked->id, sizeof(asked->id), "%s", id);
	pthread_mutex_lock(&s->lock);
	asked->next = s->asked;
	s->asked = asked;
	pthread_cond_signal(&s->changed);
	pthread_mutex_unlock(&s->lock);
}

static void *describer(void *userdata)
{
	struct stage *s = userdata;
	pthread_mutex_lock(&s->lock);
	for (;;) {
		struct asked *asked = s->asked;
		if (!asked && s->describers_end)
			break;
		if (!asked) {
			pthread_cond_wait(&s->changed, &s->lock);
			continue;
		}
		s->asked = asked->next;
		pthread_mutex_unlock(&s->lock);
		struct plugin_buffer bytes = { .p = NULL };
		plugin_text(&bytes, 1, asked->id);
		ck_nri_job_done(asked->job, 0, bytes.p, bytes.len);
		plugin_bytes_free(&bytes);
		free(asked);
		pthread_mutex_lock(&s->lock);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

static void no_log(enum ck_log_level level, const char *text, void *userdata)
{
	(void)level, (void)text, (void)userdata;
}

static void *hooks_thread(void *userdata)
{
	struct stage *s = userdata;
	struct pollfd pfd = { .fd = ck_nri_fd(s->nri), .events = POLLIN };
	while (!__atomic_load_n(&s->hooks_end, __ATOMIC_SEQ_CST)) {
		poll(&pfd, 1, 20); /* it is woken for work; the 20 ms are for hooks_end */
		check(s, ck_nri_process(s->nri, NULL) == 0, "ck_nri_process");
	}
	return NULL;
}

static void ready(struct ck_job *job, enum ck_kind kind, const char *id, void *userdata)
{
	struct ck_answer answer = { .size = sizeof(answer), .condition = CK_CONDITION_READY };
	(void)kind, (void)id, (void)userdata;
	ck_job_done(job, &answer);
}

static void nothing(struct ck_job *job, const struct ck_filter *filter, void *userdata)
{
	struct ck_answer answer = { .size = sizeof(answer) };
	(void)filter, (void)userdata;
	ck_job_done(job, &answer);
}

/* ---- callers --------------------------------------------------------------------------------- */

struct caller {
	pthread_t thread;
	struct stage *s;
	unsigned number;
};

static void ended(const struct ck_nri_result *result, void *userdata)
{
	(void)result;
	sem_post(userdata);
}

/* @container: NULL for an event of the pod */
static void tell(struct stage *s, enum ck_nri_event event, const char *pod, const char *container,
		 sem_t *sem)
{
	const struct ck_nri_call call = {
		.size = sizeof(call), .event = event, .pod_id = pod, .container_id = container
	};
	check(s, ck_nri_send(s->nri, &call, ended, sem, NULL) == 0, "send %d of %s", (int)event,
	      container ? container : pod);
}

static void wait_for_events(sem_t *sem, int n)
{
	while (n)
		n -= sem_wait(sem) == 0;
}

/* somebody who joins does so now */
static void until_joined(struct stage *s)
{
	unsigned before = joined(s);
	while (joined(s) == before && !is_wrong(s))
		poll(NULL, 0, 1);
}

/* Made and handed out, perhaps late. @sandbox: NULL for a sandbox */
static void make(struct caller *c, unsigned round, const char *id, const char *sandbox)
{
	struct stage *s = c->s;
	char name[64];
	enum ck_kind kind = sandbox ? CK_CONTAINER : CK_SANDBOX;
	unsigned char bytes[4096];
	struct ck_error err = { 0 };
	struct ck_turn *turn = NULL;
	struct fx_ask ask = { .kind = kind,
			      .ns = "shop",
			      .name = name,
			      .uid = name,
			      .sandbox = sandbox,
			      .container = sandbox ? "main" : NULL,
			      .timeout = 200 * CK_NS_PER_S };
	struct ck_request request = {
		.size = sizeof(request), .kind = kind, .bytes = bytes, .timeout = ask.timeout
	};
	struct ck_result result = { .size = sizeof(result), .id = id };
	snprintf(name, sizeof(name), "pod-%u-%u", c->number, round);
	request.len = fx_bytes(&ask, bytes, sizeof(bytes));
	int r = ck_turn_begin(s->f->cache, &request, &turn, &err);
	r = r == CK_WAIT ? ck_turn_wait(turn, &err) : r;
	check(s, r == CK_CREATE, "%s: begin: %d %s", id, r, err.text);
	if (round % 3 ==
	    (sandbox ? 1 : 0)) { /* kept, and told to nobody before it is asked for again */
		ck_turn_leave(turn);
		r = ck_turn_finish(turn, &result, &err);
		check(s, r == CK_KEPT || r == CK_WAIT, "%s: late: %d", id, r);
		ck_turn_free(turn);
		turn = NULL;
		r = ck_turn_begin(s->f->cache, &request, &turn, &err);
	} else {
		r = ck_turn_finish(turn, &result, &err);
	}
	r = r == CK_WAIT ? ck_turn_wait(turn, &err) : r;
	check(s, r == CK_HAND_BACK, "%s: %d %s", id, r, err.text);
	if (r == CK_HAND_BACK)
		ck_turn_answered(turn, CK_DELIVERED);
	ck_turn_free(turn);
}

/* A pod or a container. */
struct thing {
	struct stage *s;
	struct life *life;
	const char *pod, *container; /* ids; the second is NULL for a pod */
	/* 0: found out; else it is told, and somebody joins before it (1), within it (2), or not */
	unsigned end;
	sem_t *sem;
};

static void stop(const struct thing *t)
{
	enum ck_nri_event event = t->container ? CK_NRI_STOP_CONTAINER : CK_NRI_STOP_POD_SANDBOX;
	if (t->end == 1)
		until_joined(t->s);
	if (!t->end)
		return;
	if (!t->container)
		check(t->s, ck_sandbox_stopping(t->s->f->cache, t->pod) == 0, "%s: stopping",
		      t->pod);
	note(t->s, &t->life->stop_from);
	tell(t->s, event, t->pod, t->container, t->sem);
	tell(t->s, event, t->pod, t->container, t->sem); /* the kubelet says it twice */
	wait_for_events(t->sem, 2);
	note(t->s, &t->life->stop_until);
}

static void take_away(const struct thing *t)
{
	enum ck_kind kind = t->container ? CK_CONTAINER : CK_SANDBOX;
	const char *id = t->container ? t->container : t->pod;
	if (t->end == 2)
		until_joined(t->s);
	note(t->s, &t->life->remove_from);
	if (t->end) {
		tell(t->s, t->container ? CK_NRI_REMOVE_CONTAINER : CK_NRI_REMOVE_POD_SANDBOX,
		     t->pod, t->container, t->sem);
		wait_for_events(t->sem, 1);
		note(t->s, &t->life->remove_until);
	}
	ck_nri_listens(t->s->nri, t->container ? CK_NRI_STOP_CONTAINER : CK_NRI_STOP_POD_SANDBOX,
		       kind, id);
	check(t->s, ck_object_removed(t->s->f->cache, kind, id) == 0, "%s: forget", id);
}

/* Two of three pods have a container. It ends before its pod, or when its pod has stopped. */
static void one_pod(struct caller *c, unsigned round, sem_t *sem)
{
	struct stage *s = c->s;
	char id[64], container_id[64];
	struct thing pod = { .s = s,
			     .life = &s->lives[0][c->number][round],
			     .pod = id,
			     .end = round % 4,
			     .sem = sem };
	struct thing container = pod;
	container.life = &s->lives[1][c->number][round];
	container.container = container_id;
	container.end = round / 3 % 4;
	snprintf(id, sizeof(id), "s-%u-%u", c->number, round);
	snprintf(container_id, sizeof(container_id), "c-%u-%u", c->number, round);
	note(s, &pod.life->asked);
	make(c, round, id, NULL);
	note(s, &pod.life->made);
	if (round % 3) {
		note(s, &container.life->asked);
		make(c, round, container_id, id);
		note(s, &container.life->made);
		stop(&container);
		__atomic_add_fetch(&s->containers, 1, __ATOMIC_SEQ_CST);
	}
	if (round % 3 == 1)
		take_away(&container);
	stop(&pod);
	if (round % 3 == 2)
		take_away(&container);
	take_away(&pod);
	__atomic_add_fetch(&s->ended, 1, __ATOMIC_SEQ_CST);
}

static void *call(void *userdata)
{
	struct caller *c = userdata;
	struct stage *s = c->s;
	sem_t sem;
	sem_init(&sem, 0, 0);
	for (unsigned round = 0; round < PODS_MAX && joined(s) < s->target && !is_wrong(s); round++)
		one_pod(c, round, &sem);
	sem_destroy(&sem);
	return NULL;
}

/* ---- plugins --------------------------------------------------------------------------------- */

static void step(struct plugin *p)
{
	struct pollfd pfd = { .fd = p->fd, .events = POLLIN };
	poll(&pfd, 1, 5);
	plugin_step(p);
}

/* of one pod or container, by one connection */
struct heard {
	unsigned listed, run, stop, remove;
	bool disorder;
};

static struct heard *heard_of(const char *id, struct heard *all)
{
	unsigned caller, round;
	char kind;
	if (sscanf(id, "%c-%u-%u", &kind, &caller, &round) != 3 || caller >= CALLERS ||
	    round >= PODS_MAX)
		return NULL;
	return &all[((kind == 'c') * CALLERS + caller) * PODS_MAX + round];
}

static void look_through(struct stage *s, const struct plugin *p, struct heard *all)
{
	struct heard *h;
	check(s, !p->wrong[0], "%s", p->wrong);
	check(s, p->in_flight_most <= 1, "%u at once", p->in_flight_most);
	for (size_t i = 0; i < p->items_n; i++)
		if ((h = heard_of(p->items[i].id, all)))
			h->listed++;
	for (size_t i = 0; i < p->heard_n; i++) {
		const struct plugin_heard *heard = &p->heard[i];
		if (!(h = heard_of(heard->container[0] ? heard->container : heard->pod, all)))
			continue;
		bool run = heard->call == CK_NRI_RUN_POD_SANDBOX ||
			   heard->call == CK_NRI_CREATE_CONTAINER;
		h->disorder = h->disorder || h->remove || (run && h->stop);
		h->run += run;
		h->stop += heard->call == CK_NRI_STOP_POD_SANDBOX ||
			   heard->call == CK_NRI_STOP_CONTAINER;
		h->remove += heard->call == CK_NRI_REMOVE_POD_SANDBOX ||
			     heard->call == CK_NRI_REMOVE_CONTAINER;
	}
}

struct visit { /* its snapshot was taken between the first two */
	struct stage *s;
	uint64_t join_from, join_until, left;
};

static bool before(uint64_t a, uint64_t b)
{
	return a && b && a < b;
}

static void count_end(struct figures *f, const struct visit *v, const struct life *life,
		      const struct heard *h)
{
	uint64_t stop_from = noted(&life->stop_from), stop_until = noted(&life->stop_until),
		 remove_until = noted(&life->remove_until);
	f->stops += h->stop;
	f->removes += h->remove;
	f->duplicates += h->stop > 1 || h->remove > 1 || h->disorder;
	if (before(v->join_until, stop_from) && before(stop_until, v->left))
		f->stops_lost += h->stop == 0;
	else if (before(stop_until, v->join_from)) /* a resident was sent it */
		h->stop ? f->stops_surplus++ : f->stops_left_out++;
	else
		f->stops_between += stop_from && before(stop_until, v->left);
	f->removes_lost += before(remove_until, v->left) && !h->remove;
}

static void count_pair(struct figures *f, const struct visit *v, const struct life *life,
		       const struct heard *h)
{
	uint64_t remove_from = noted(&life->remove_from);
	unsigned known = h->listed + h->run;
	bool was_there = before(noted(&life->made), v->left) &&
			 (!remove_from || v->join_until < remove_from);
	if (!noted(&life->asked) || (!was_there && !known && !h->stop && !h->remove))
		return;
	f->pairs++;
	f->listed += h->listed;
	f->run += h->run;
	f->neither += was_there && !known;
	f->both += known > 1;
	/* before it was made, when it was gone, or the end of what it does not know */
	f->unasked += (known && before(v->left, noted(&life->asked))) ||
		      (known && before(noted(&life->remove_until), v->join_from)) ||
		      (!known && (h->stop || h->remove));
	if (known)
		count_end(f, v, life, h);
}

/* every member of it is an unsigned long */
static void add(struct figures *sum, const struct figures *f)
{
	unsigned long *to = (unsigned long *)(void *)sum;
	const unsigned long *from = (const unsigned long *)(const void *)f;
	for (size_t i = 0; i < sizeof(*f) / sizeof(*from); i++)
		to[i] += from[i];
}

static void judge_kind(const struct visit *v, const struct heard *all, int kind)
{
	struct stage *s = v->s;
	struct figures f = { .connections = 1 };
	for (unsigned c = 0; c < CALLERS; c++)
		for (unsigned i = 0; i < PODS_MAX; i++)
			count_pair(&f, v, &s->lives[kind][c][i], &all[c * PODS_MAX + i]);
	const char *of = kind ? "containers" : "pods";
	check(s, !f.neither && !f.both && !f.unasked, "%s: neither %lu, both %lu, unasked %lu", of,
	      f.neither, f.both, f.unasked);
	check(s, !f.stops_lost && !f.stops_surplus && !f.removes_lost && !f.duplicates,
	      "%s: Stop: %lu lost, %lu surplus; Remove: %lu lost; %lu twice or out of order", of,
	      f.stops_lost, f.stops_surplus, f.removes_lost, f.duplicates);
	pthread_mutex_lock(&s->lock);
	add(&s->figures[kind], &f);
	pthread_mutex_unlock(&s->lock);
}

static void judge(const struct visit *v, const struct plugin *p)
{
	struct heard *all = calloc((size_t)2 * CALLERS * PODS_MAX, sizeof(*all));
	if (!all)
		abort();
	look_through(v->s, p, all);
	for (int kind = 0; kind < 2; kind++)
		judge_kind(v, all + (size_t)kind * CALLERS * PODS_MAX, kind);
	free(all);
}

static void joins(struct plugin *p, const struct plugin_heard *heard, void *userdata)
{
	struct visit *v = userdata;
	(void)p;
	if (heard->call == PLUGIN_CONFIGURE)
		v->join_from = now(v->s);
	else if (heard->call == PLUGIN_SYNCHRONIZE)
		v->join_until = now(v->s);
}

/* Joins, stays for a while, and leaves. In front of the resident, and behind it. */
static void *visitor(void *userdata)
{
	struct stage *s = userdata;
	for (unsigned n = 0; !__atomic_load_n(&s->calls_ended, __ATOMIC_SEQ_CST); n++) {
		struct visit visit = { .s = s };
		struct plugin *p = plugin_dial(s->socket, n % 2 ? "10-net" : "30-net");
		if (!p)
			continue;
		p->called = joins;
		p->userdata = &visit;
		while (!p->synchronized && !p->ended && !is_wrong(s))
			step(p);
		__atomic_add_fetch(&s->joined, 1, __ATOMIC_SEQ_CST);
		for (unsigned i = 0; i < n % 64 && !p->ended; i++)
			step(p);
		check(s, !p->ended, "a visitor was disconnected");
		visit.left = now(s);
		judge(&visit, p);
		plugin_free(p);
	}
	return NULL;
}

struct resident {
	struct stage *s;
	sem_t in;
};

/* it answers a Stop when somebody has joined since it came */
static void release_stops(struct stage *s, struct plugin *p, unsigned *held_at)
{
	bool ended = __atomic_load_n(&s->calls_ended, __ATOMIC_SEQ_CST);
	if (!p->in_flight) {
		*held_at = joined(s);
		return;
	}
	if (*held_at == joined(s) && !ended)
		return;
	plugin_rule(p, CK_NRI_STOP_POD_SANDBOX, PLUGIN_AGREES, 0);
	plugin_release(p);
	plugin_rule(p, CK_NRI_STOP_POD_SANDBOX, PLUGIN_HOLDS, 0);
	*held_at = joined(s);
}

/* there from the first pod to the last: it hears of every one, and of every end */
static void *resident(void *userdata)
{
	struct resident *me = userdata;
	struct stage *s = me->s;
	struct plugin *p = plugin_dial(s->socket, "20-cpu");
	struct visit visit = { .s = s };
	unsigned held_at = 0;
	bool in = false;
	if (p) {
		p->called = joins;
		p->userdata = &visit;
		plugin_rule(p, CK_NRI_STOP_POD_SANDBOX, PLUGIN_HOLDS, 0);
	}
	while (p && !p->ended && !is_wrong(s)) {
		step(p);
		release_stops(s, p, &held_at);
		if (p->synchronized && !in) {
			in = true;
			sem_post(&me->in);
		}
		if (__atomic_load_n(&s->calls_ended, __ATOMIC_SEQ_CST) &&
		    plugin_count(p, CK_NRI_REMOVE_POD_SANDBOX, NULL) ==
			    __atomic_load_n(&s->ended, __ATOMIC_SEQ_CST))
			break;
	}
	check(s, p && !p->ended, "the resident plugin was disconnected");
	visit.left = now(s);
	if (p)
		judge(&visit, p);
	unsigned pods = __atomic_load_n(&s->ended, __ATOMIC_SEQ_CST);
	check(s, p && plugin_count(p, CK_NRI_RUN_POD_SANDBOX, NULL) == pods, "told of %u of %u",
	      p ? plugin_count(p, CK_NRI_RUN_POD_SANDBOX, NULL) : 0, pods);
	plugin_free(p);
	if (!in)
		sem_post(&me->in);
	return NULL;
}

static int show(const struct ck_nri_plugin *plugin, void *userdata)
{
	(void)plugin, (void)userdata;
	return 0;
}

/* ---- all of them ----------------------------------------------------------------------------- */

static void stage_open(struct stage *s, struct fixture *f)
{
	s->f = f;
	s->target = (unsigned)ck_test_rounds(1000);
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->changed, NULL);
	snprintf(s->socket, sizeof(s->socket), "%s/nri.sock", f->dir);
	s->host = (struct ck_nri_host){
		.size = sizeof(s->host), .userdata = s, .describe = describe, .log = no_log
	};
	const struct ck_nri_options options = {
		.size = sizeof(options),
		.host = &s->host,
		.socket_path = s->socket,
		.request_timeout = 60 * CK_NS_PER_S, /* a loaded machine makes nobody late */
		.registration_timeout = 60 * CK_NS_PER_S,
		.synchronize_timeout = 60 * CK_NS_PER_S,
	};
	assert_int_equal(ck_nri_open(&options, &s->nri, &f->err), 0);
	s->hooks.size = sizeof(s->hooks);
	assert_int_equal(ck_nri_hooks(s->nri, &s->hooks), 0);
	f->host = (struct ck_host){ .size = sizeof(f->host),
				    .userdata = s,
				    .destroy = ready,
				    .inspect = ready,
				    .list = nothing };
	f->options.hooks = &s->hooks;
	f->options.clock = NULL;
	assert_int_equal(ck_cache_open(&f->options, &f->cache, &f->err), 0);
	assert_int_equal(ck_cache_run_thread(f->cache, &f->err), 0);
}

/* visitors and callers, until all of them have gone */
static void everybody_comes(struct stage *s)
{
	struct caller callers[CALLERS];
	pthread_t visitors[VISITORS];
	for (int i = 0; i < VISITORS; i++)
		assert_int_equal(pthread_create(&visitors[i], NULL, visitor, s), 0);
	for (unsigned i = 0; i < CALLERS; i++) {
		callers[i] = (struct caller){ .s = s, .number = i };
		assert_int_equal(pthread_create(&callers[i].thread, NULL, call, &callers[i]), 0);
	}
	for (unsigned i = 0; i < CALLERS; i++) {
		ck_nri_plugins(s->nri, show, NULL);
		pthread_join(callers[i].thread, NULL);
	}
	__atomic_store_n(&s->calls_ended, true, __ATOMIC_SEQ_CST);
	for (int i = 0; i < VISITORS; i++)
		pthread_join(visitors[i], NULL);
}

static void print_figures(const struct stage *s)
{
	for (int kind = 0; kind < 2; kind++) {
		const struct figures *f = &s->figures[kind];
		printf("%lu connections, %u %s, %lu pairs: %lu listed, %lu run; neither %lu, both "
		       "%lu, unasked %lu\n",
		       f->connections, kind ? s->containers : s->ended,
		       kind ? "containers" : "pods", f->pairs, f->listed, f->run, f->neither,
		       f->both, f->unasked);
		printf("%lu Stop, %lu left out after it, %lu joined within it; %lu lost, %lu "
		       "surplus; %lu Remove, %lu lost; %lu duplicates\n",
		       f->stops, f->stops_left_out, f->stops_between, f->stops_lost,
		       f->stops_surplus, f->removes, f->removes_lost, f->duplicates);
	}
}

static void each_connection_hears_of_each_thing_once(void **state)
{
	struct stage *s = calloc(1, sizeof(*s));
	struct fixture *f = fixture_new();
	pthread_t describers[DESCRIBERS], hooks, stays;
	(void)state;
	stage_open(s, f);
	assert_int_equal(pthread_create(&hooks, NULL, hooks_thread, s), 0);
	assert_int_equal(ck_nri_start(s->nri, f->cache, &f->err), 0);
	for (int i = 0; i < DESCRIBERS; i++)
		assert_int_equal(pthread_create(&describers[i], NULL, describer, s), 0);
	struct resident me = { .s = s };
	sem_init(&me.in, 0, 0);
	assert_int_equal(pthread_create(&stays, NULL, resident, &me), 0);
	while (sem_wait(&me.in) < 0)
		;
	everybody_comes(s);
	pthread_join(stays, NULL);
	ck_nri_stop(s->nri);
	assert_int_equal(ck_cache_close(f->cache, &f->err), 0);
	f->cache = NULL;
	__atomic_store_n(&s->hooks_end, true, __ATOMIC_SEQ_CST);
	pthread_join(hooks, NULL);
	ck_nri_close(s->nri); /* while descriptions may still be under way */
	pthread_mutex_lock(&s->lock);
	s->describers_end = true;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
	for (int i = 0; i < DESCRIBERS; i++)
		pthread_join(describers[i], NULL);
	if (s->failed[0])
		fail_msg("%s", s->failed);
	print_figures(s);
	for (int kind = 0; kind < 2 && s->target >= 1000; kind++) {
		/* with fewer it is chance whom each of them meets */
		const struct figures *sum = &s->figures[kind];
		assert_true(sum->stops && sum->stops_left_out && sum->listed && sum->run);
		assert_true(kind || sum->stops_between);
	}
	sem_destroy(&me.in);
	pthread_cond_destroy(&s->changed);
	pthread_mutex_destroy(&s->lock);
	fixture_free(f);
	free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_connection_hears_of_each_thing_once),
	};
	return CK_TEST_MAIN(tests);
}
