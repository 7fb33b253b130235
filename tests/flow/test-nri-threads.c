/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads everywhere: the cache's own, one that turns the hooks, some that describe, many that
 * call, and plugins that come and go. What has to hold for each connection is that it hears of a
 * pod once, and of its end once and in order; and nothing races (this test is what the TSan run is
 * for).
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
#define VISITORS   3

struct asked {
	struct asked *next;
	struct ck_nri_job *job;
	char id[80];
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
	bool calls_ended, hooks_end; /* atomic */
	bool wrong;                  /* atomic: failed is not empty */
	unsigned rounds, pods;       /* pods: that were made; atomic */
	char failed[512];            /* the first check that failed */
};

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

static void tell(struct stage *s, enum ck_nri_event event, const char *id, sem_t *sem)
{
	const struct ck_nri_call call = { .size = sizeof(call), .event = event, .pod_id = id };
	check(s, ck_nri_send(s->nri, &call, ended, sem, NULL) == 0, "send %d of %s", (int)event,
	      id);
}

/* made and handed out, perhaps late; its end is told, or found out */
static void one_pod(struct caller *c, unsigned round, sem_t *sem)
{
	struct stage *s = c->s;
	char name[64], id[64];
	unsigned char bytes[4096];
	struct ck_error err = { 0 };
	struct ck_turn *turn = NULL;
	struct fx_ask ask = { .kind = CK_SANDBOX,
			      .ns = "shop",
			      .name = name,
			      .uid = name,
			      .timeout = 200 * CK_NS_PER_S };
	struct ck_request request = {
		.size = sizeof(request), .kind = CK_SANDBOX, .bytes = bytes, .timeout = ask.timeout
	};
	struct ck_result result = { .size = sizeof(result), .id = id };
	snprintf(name, sizeof(name), "pod-%u-%u", c->number, round);
	snprintf(id, sizeof(id), "s-%u-%u", c->number, round);
	request.len = fx_bytes(&ask, bytes, sizeof(bytes));
	int r = ck_turn_begin(s->f->cache, &request, &turn, &err);
	r = r == CK_WAIT ? ck_turn_wait(turn, &err) : r;
	check(s, r == CK_CREATE, "%s: begin: %d %s", id, r, err.text);
	if (round % 3 == 0) { /* kept, and told to nobody before it is asked for again */
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
	__atomic_add_fetch(&s->pods, 1, __ATOMIC_SEQ_CST);
	if (round % 2) {
		tell(s, CK_NRI_STOP_POD_SANDBOX, id, sem);
		tell(s, CK_NRI_STOP_POD_SANDBOX, id, sem); /* the kubelet says it twice */
		tell(s, CK_NRI_REMOVE_POD_SANDBOX, id, sem);
		for (int i = 0; i < 3; i++)
			while (sem_wait(sem) < 0)
				;
	}
	ck_nri_listens(s->nri, CK_NRI_STOP_POD_SANDBOX, CK_SANDBOX, id);
	check(s, ck_object_removed(s->f->cache, CK_SANDBOX, id) == 0, "%s: forget", id);
}

static void *call(void *userdata)
{
	struct caller *c = userdata;
	sem_t sem;
	sem_init(&sem, 0, 0);
	for (unsigned round = 0;
	     round < c->s->rounds && !__atomic_load_n(&c->s->wrong, __ATOMIC_SEQ_CST); round++)
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

/* each pod once, its end once, and in order */
static void look_through(struct stage *s, const struct plugin *p)
{
	check(s, !p->wrong[0], "%s", p->wrong);
	check(s, p->in_flight_most <= 1, "%u at once", p->in_flight_most);
	for (size_t i = 0; i < p->heard_n; i++) {
		const struct plugin_heard *heard = &p->heard[i];
		if (heard->call < CK_NRI_RUN_POD_SANDBOX || heard->call > CK_NRI_REMOVE_POD_SANDBOX)
			continue;
		unsigned begun = plugin_listed(p, heard->pod) +
				 plugin_count(p, CK_NRI_RUN_POD_SANDBOX, heard->pod);
		check(s, begun == 1, "%s was told of %u times", heard->pod, begun);
		check(s, plugin_count(p, heard->call, heard->pod) == 1, "call %d of %s came twice",
		      heard->call, heard->pod);
		bool before = heard->call != CK_NRI_REMOVE_POD_SANDBOX;
		for (size_t k = 0; k < i && !before; k++)
			before = p->heard[k].call == CK_NRI_STOP_POD_SANDBOX &&
				 !strcmp(p->heard[k].pod, heard->pod);
		check(s, before, "%s was removed and not stopped", heard->pod);
	}
}

/* joins, stays for a while, and leaves */
static void *visitor(void *userdata)
{
	struct stage *s = userdata;
	while (!__atomic_load_n(&s->calls_ended, __ATOMIC_SEQ_CST)) {
		struct plugin *p = plugin_dial(s->socket, "10-net");
		if (!p)
			continue;
		for (int i = 0; i < 60 && !p->ended; i++)
			step(p);
		look_through(s, p);
		plugin_free(p);
	}
	return NULL;
}

struct resident {
	struct stage *s;
	sem_t in;
};

/* there from the first pod to the last: it hears of every one, and of every end */
static void *resident(void *userdata)
{
	struct resident *me = userdata;
	struct stage *s = me->s;
	struct plugin *p = plugin_dial(s->socket, "20-cpu");
	bool in = false;
	while (p && !p->ended && !__atomic_load_n(&s->wrong, __ATOMIC_SEQ_CST)) {
		step(p);
		if (p->synchronized && !in) {
			in = true;
			sem_post(&me->in);
		}
		if (__atomic_load_n(&s->calls_ended, __ATOMIC_SEQ_CST) &&
		    plugin_count(p, CK_NRI_REMOVE_POD_SANDBOX, NULL) ==
			    __atomic_load_n(&s->pods, __ATOMIC_SEQ_CST))
			break;
	}
	check(s, p && !p->ended, "the resident plugin was disconnected");
	look_through(s, p);
	unsigned pods = __atomic_load_n(&s->pods, __ATOMIC_SEQ_CST);
	check(s, plugin_count(p, CK_NRI_RUN_POD_SANDBOX, NULL) == pods, "told of %u of %u",
	      plugin_count(p, CK_NRI_RUN_POD_SANDBOX, NULL), pods);
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
	s->rounds = (unsigned)ck_test_rounds(20);
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

static void each_connection_hears_of_each_pod_once(void **state)
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
	assert_int_equal(s->pods, CALLERS * s->rounds);
	sem_destroy(&me.in);
	pthread_cond_destroy(&s->changed);
	pthread_mutex_destroy(&s->lock);
	fixture_free(f);
	free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_connection_hears_of_each_pod_once),
	};
	return CK_TEST_MAIN(tests);
}
