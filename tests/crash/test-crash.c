/* SPDX-License-Identifier: Apache-2.0 */
/*
 * K8, K25, K29: SIGKILL at each change of state. A round is one example runtime, armed to die
 * before or after one transition, with a story that leads there, a second story beside it, and
 * delays from a seed; it is started again whenever it died. Then everything is let expire, and the
 * runtime's own log and what a kubelet could see are compared with what must hold:
 *
 *	no result that existed is made again while it exists, nor destroyed without a reason
 *	none is lost: whoever repeats a request gets it
 *	none leaks: in the end what exists is visible, and was handed over
 *	a container that was answered can be started
 *	never are two objects of one key visible
 *	plugins are told of each at most once, and of the end of whatever they were told of
 *
 * CK_CRASH_ROUNDS=N more or fewer than 300; CK_CRASH_SEED=N; CK_CRASH_JOBS=N at a time;
 * CK_CRASH_ROUND=N only that one, and its directory is kept.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/crash/world.h"

#define ROUNDS      300
#define WANTS_MAX   8
#define STORIES_MAX 2
#define MADE_MAX    128

enum {
	MAY_GO = 1, /* there is a reason to destroy it */
	MUST_BE = 2,
	ADOPTED = 4, /* it may be visible although no request got it */
};

struct want { /* over all creations for one label */
	char label[64];
	unsigned flags;
};

struct story {
	struct world world; /* calls the same runtime, with its own random numbers */
	char pod[16], error[512], handed[WANTS_MAX][WORLD_ID];
	struct want wants[WANTS_MAX];
	size_t wants_n, handed_n;
	unsigned create_ms, plugin_ms, patience_ms;
	const unsigned *deaths; /* of the runtime so far */
	bool patient;
	void (*tell)(struct story *story);
	pthread_t thread;
	bool over;
};

static unsigned slow; /* factor for sanitizers */

__attribute__((format(printf, 2, 3))) static void wrong(struct story *s, const char *fmt, ...)
{
	va_list ap;
	if (s->error[0])
		return;
	va_start(ap, fmt);
	vsnprintf(s->error, sizeof(s->error), fmt, ap);
	va_end(ap);
}

/* ---- what a kubelet does --------------------------------------------------------------------- */

/* the label of a distinct request is KEY.VERSION */
static const char *want(struct story *s, const char *what, unsigned attempt, unsigned version,
			unsigned flags)
{
	struct want *w = &s->wants[s->wants_n];
	snprintf(w->label, sizeof(w->label), "%s.%s.a%u.v%u", s->pod, what, attempt, version);
	for (size_t i = 0; i < s->wants_n; i++)
		if (!strcmp(s->wants[i].label, w->label))
			return s->wants[i].label;
	w->flags = flags;
	s->wants_n++;
	return w->label;
}

static int ask(struct story *s, const struct world_request *request, char id[256])
{
	int r = world_create(&s->world, request, id, 256);
	if (r == 0)
		snprintf(s->handed[s->handed_n++ % WANTS_MAX], WORLD_ID, "%.31s", id);
	return r;
}

/* Everything that is bound to happen is waited for by time, never by a number of tries: while the
 * runtime is being started again, which takes long on a busy machine, each try fails at once. */
static unsigned long long last_chance(const struct story *s)
{
	return world_now() + s->patience_ms;
}

/* Like a kubelet: until it has its answer. Its deadlines grow, because on a busy machine a short
 * one may be over each time before anybody had a chance to run. */
static void obtain(struct story *s, struct world_request *request, char id[256])
{
	unsigned long long end = last_chance(s);
	unsigned late = 0;
	int r = -ETIMEDOUT;
	while (!s->error[0] && world_now() < end) {
		request->deadline_ms = (300 + world_random(&s->world, 1200)) * slow
				       << (late < 12 ? late / 3 : 4);
		r = ask(s, request, id);
		late += r == -ETIMEDOUT;
		if (r == 0)
			return;
		world_sleep(r == -ETIMEDOUT ? world_random(&s->world, 50)
					    : 20 + world_random(&s->world, 100));
	}
	id[0] = '\0';
	wrong(s, "%s is lost: no answer in %u ms; the last: %s", request->label, s->patience_ms,
	      r < 0 ? strerror(-r) : "a refusal");
}

/* Who has the answer can start it, whatever happened to the runtime in between; and what runs is
 * the kubelet's for good. */
static void obtain_and_start(struct story *s, struct world_request *request)
{
	char id[256], answer[256];
	unsigned long long end = last_chance(s);
	int r = -1;
	obtain(s, request, id);
	while (!s->error[0] && r < 0 && world_now() < end) {
		r = world_send(&s->world, "START", id, 3000 * slow, "-", NULL, 0, answer,
			       sizeof(answer));
		world_sleep(20);
	}
	if (r)
		wrong(s, "%s was answered, and its start was not: %d", id, r);
}

static void obtain_sandbox(struct story *s, unsigned flags, char id[256])
{
	struct world_request request = { .pod = s->pod,
					 .version = 1,
					 .label = want(s, "s", 0, 1, flags) };
	obtain(s, &request, id);
}

static bool begun(struct story *s, const char *label)
{
	size_t n;
	struct world_event *e = world_events(&s->world, "creations", &n);
	bool found = false;
	for (size_t i = 0; i < n; i++)
		found = found || !strcmp(e[i].label, label);
	free(e);
	return found;
}

/* a create whose caller leaves first; repeated if nobody received it, as between two lives of the
 * runtime */
static void once(struct story *s, struct world_request request, unsigned deadline_ms)
{
	char id[256];
	unsigned long long end = last_chance(s);
	request.deadline_ms = deadline_ms;
	do
		if (ask(s, &request, id) != -ETIMEDOUT)
			world_sleep(20);
	while (!begun(s, request.label) && world_now() < end);
}

/* of the pod's only container, in @sandbox */
static struct world_request container_request(struct story *s, const char *sandbox, unsigned flags)
{
	return (struct world_request){
		.pod = s->pod,
		.version = 1,
		.sandbox_id = sandbox,
		.container = "main",
		.label = want(s, "c", 0, 1, flags),
	};
}

static bool logged(struct story *s, const char *what, const char *label, char id[WORLD_ID])
{
	size_t n;
	struct world_event *e = world_events(&s->world, "creations", &n);
	bool found = false;
	for (size_t i = 0; i < n && !found; i++)
		for (size_t j = 0; j < i && !strcmp(e[i].what, what) && !found; j++)
			if (!strcmp(e[j].label, label) && !strcmp(e[j].id, e[i].id)) {
				found = true;
				memcpy(id, e[j].id, WORLD_ID);
			}
	free(e);
	return found;
}

static bool await(struct story *s, const char *what, const char *label, char id[WORLD_ID])
{
	unsigned long long end = last_chance(s);
	bool found;
	while (!(found = logged(s, what, label, id)) && world_now() < end)
		world_sleep(20);
	return found;
}

/* While it is being created, or when it is kept; always the latter in the first lap, so that the
 * story reaches its transition. The runtime may die first. */
static void pause_some(struct story *s, const char *label)
{
	char id[WORLD_ID];
	unsigned long long end = last_chance(s);
	if (!s->patient) {
		world_sleep(world_random(&s->world, s->create_ms * 3 / 2));
		return;
	}
	while (!logged(s, "exists", label, id) && !__atomic_load_n(s->deaths, __ATOMIC_ACQUIRE) &&
	       world_now() < end)
		world_sleep(20);
	world_sleep(100 * slow); /* it exists before the cache knows */
}

/* STOP or REMOVE, until it is done; for REMOVE, or until there is nothing of that id */
static void end_sandbox(struct story *s, const char *verb, const char *id)
{
	char answer[256];
	unsigned long long end = last_chance(s);
	int r = -1, gone = strcmp(verb, "REMOVE") ? 0 : 5;
	while (!s->error[0] && r != 0 && r != gone && world_now() < end) {
		r = world_send(&s->world, verb, id, 3000 * slow, "-", NULL, 0, answer,
			       sizeof(answer));
		world_sleep(20);
	}
	if (r != 0 && r != gone)
		wrong(s, "%s of %s did not succeed: %d", verb, id, r);
}

/* ---- stories --------------------------------------------------------------------------------- */

static void tell_late(struct story *s)
{
	char sandbox[256], again[256];
	struct world_request request = { .pod = s->pod,
					 .version = 1,
					 .label = want(s, "s", 0, 1, MUST_BE) };
	once(s, request, 300);
	pause_some(s, request.label);
	obtain(s, &request, sandbox);
	if (s->error[0])
		return;
	request.sandbox_id = sandbox;
	request.container = "main";
	request.label = want(s, "c", 0, 1, MUST_BE);
	once(s, request, 300);
	pause_some(s, request.label);
	obtain(s, &request, again);
	obtain_and_start(s, &request); /* K5 */
}

static void tell_in_time(struct story *s)
{
	char sandbox[256];
	obtain_sandbox(s, MUST_BE, sandbox);
	if (s->error[0])
		return;
	struct world_request request = container_request(s, sandbox, MUST_BE);
	once(s, request, 2000 * slow);
	obtain_and_start(s, &request);
}

static void tell_change(struct story *s)
{
	char sandbox[256];
	obtain_sandbox(s, MUST_BE, sandbox);
	if (s->error[0])
		return;
	struct world_request request = container_request(s, sandbox, MAY_GO);
	once(s, request, 300);
	pause_some(s, request.label);
	request.version = 2;
	request.label = want(s, "c", 0, 2, MUST_BE);
	obtain_and_start(s, &request);
}

static void tell_bump(struct story *s)
{
	char sandbox[256];
	struct world_request request = { .pod = s->pod,
					 .version = 1,
					 .label = want(s, "s", 0, 1, MAY_GO) };
	once(s, request, 60);
	if (!s->patient && world_random(&s->world, 2))
		pause_some(s, request.label);
	request.attempt = 1;
	request.label = want(s, "s", 1, 1, MUST_BE);
	obtain(s, &request, sandbox);
}

static void tell_fail(struct story *s)
{
	char answer[256], label[96];
	unsigned long long end = last_chance(s);
	int r = 0;
	struct world_request request = { .pod = s->pod, .version = 1, .deadline_ms = 2000 * slow };
	snprintf(label, sizeof(label), "fail.%s", want(s, "s", 0, 1, MUST_BE));
	request.label = label;
	while (!s->error[0] && r != 2 && world_now() < end) {
		r = world_create(&s->world, &request, answer, sizeof(answer));
		if (r == 0)
			wrong(s, "a failed creation was handed out as %s", answer);
		world_sleep(30);
	}
	if (r != 2)
		wrong(s, "the runtime's own status did not come: %d", r);
	request.label = s->wants[0].label; /* K4: errors are not kept */
	obtain(s, &request, answer);
}

static void tell_stop(struct story *s)
{
	char sandbox[256];
	obtain_sandbox(s, MAY_GO, sandbox);
	if (s->error[0])
		return;
	struct world_request request = container_request(s, sandbox, MAY_GO);
	once(s, request, world_random(&s->world, 2) ? 60 : 300);
	pause_some(s, request.label);
	end_sandbox(s, "STOP", sandbox);
	end_sandbox(s, "REMOVE", sandbox);
}

static void tell_ttl(struct story *s)
{
	char id[WORLD_ID], sandbox[256];
	struct world_request request = { .pod = s->pod,
					 .version = 1,
					 .label = want(s, "s", 0, 1, MAY_GO | MUST_BE) };
	once(s, request, 300);
	if (await(s, "exists", request.label, id) && !await(s, "destroyed", request.label, id))
		wrong(s, "%s did not expire", id);
	obtain(s, &request, sandbox);
}

static void tell_refused(struct story *s)
{
	char answer[256];
	struct world_request request = { .pod = s->pod,
					 .version = 1,
					 /* killed when it was committed, before it could answer */
					 .label = want(s, "s", 0, 1, MAY_GO | ADOPTED) };
	for (int i = 0; i < 4; i++) {
		request.deadline_ms = 2500 * slow;
		/* if it is killed before the refusal is on disk, the plugin has been told and is
		 * not asked again (K7, K25) */
		if (ask(s, &request, answer) == 0 && !__atomic_load_n(s->deaths, __ATOMIC_ACQUIRE))
			wrong(s, "%s was handed out although a plugin refused it", answer);
		world_sleep(50);
	}
}

static void tell_unread(struct story *s)
{
	char sandbox[256], container[256];
	obtain_sandbox(s, MUST_BE, sandbox);
	if (s->error[0])
		return;
	struct world_request request = container_request(s, sandbox, MUST_BE);
	request.deadline_ms = 2000 * slow;
	request.unread = true;
	world_create(&s->world, &request, container, sizeof(container));
	pause_some(s, request.label);
	request.unread = false;
	obtain_and_start(s, &request);
}

/* the plugin agrees only after the caller's time is over */
static void tell_left(struct story *s)
{
	char sandbox[256];
	obtain_sandbox(s, MUST_BE, sandbox);
	if (s->error[0])
		return;
	struct world_request request = container_request(s, sandbox, MUST_BE);
	once(s, request, s->create_ms + 250 + s->plugin_ms / 2);
	/* only after it has agreed: otherwise a repeated request would get the container at once */
	world_sleep(s->plugin_ms);
	obtain_and_start(s, &request);
}

static void tell_remove(struct story *s)
{
	char sandbox[256];
	obtain_sandbox(s, MAY_GO, sandbox);
	end_sandbox(s, "REMOVE", sandbox);
}

/* K22: somebody bypassed us and runs a container in a sandbox that nobody was given */
static void tell_in_use(struct story *s)
{
	char id[WORLD_ID], sandbox[256];
	struct world_request request = { .pod = s->pod,
					 .version = 1,
					 .label = want(s, "s", 0, 1, MAY_GO | ADOPTED) };
	once(s, request, 60);
	bool made = await(s, "exists", request.label, id);
	if (made)
		world_plant(&s->world, "ct-900", s->pod, id, "stranger", CK_CONDITION_RUNNING);
	request.attempt = 1;
	request.label = want(s, "s", 1, 1, MUST_BE);
	obtain(s, &request, sandbox);
	if (made && (!world_exists(&s->world, id) || !world_exists(&s->world, "ct-900")))
		wrong(s, "%s was destroyed while it was in use", id);
}

/* K27: it was there before this cache was */
static void tell_import(struct story *s)
{
	char answer[256] = "";
	unsigned long long end = last_chance(s);
	int r = -1;
	struct world_request request = { .pod = s->pod,
					 .version = 1,
					 .label = want(s, "s", 0, 1, 0) };
	request.deadline_ms = 1000 * slow;
	while (r != 6 && world_now() < end) {
		r = world_create(&s->world, &request, answer, sizeof(answer));
		world_sleep(20);
	}
	if (r != 6)
		wrong(s, "a create for what exists already was answered with %d %s", r, answer);
	if (!world_exists(&s->world, "sb-900"))
		wrong(s, "what was never ours was destroyed");
}

/* ---- the transitions, and what leads to each ------------------------------------------------- */

enum { PLUGIN = 1, REFUSE = 2, SHORT_TTL = 4, PLANT = 8, ALONE = REFUSE | SHORT_TTL };

static const struct transition {
	const char *move; /* NULL: at any time */
	void (*tell)(struct story *story);
	unsigned how;
	const char *tale;
} transitions[] = {
	{ ">CREATING", tell_late, 0, "late" },
	{ "CREATING>COMMITTING", tell_in_time, 0, "in time" },
	{ "COMMITTING>COMMITTED", tell_in_time, PLUGIN, "in time" },
	{ "CREATING>KEPT", tell_late, 0, "late" },
	{ "KEPT>COMMITTING", tell_late, PLUGIN, "late" },
	{ "KEPT>EVICTING", tell_change, 0, "the request changes" },
	{ "KEPT>EVICTING", tell_ttl, SHORT_TTL, "nobody repeats it" },
	{ "KEPT>EVICTING", tell_stop, 0, "the sandbox is stopped" },
	{ "CREATING>EVICTING", tell_bump, 0, "the next attempt comes" },
	{ "EVICTING>GONE", tell_change, PLUGIN, "the request changes" },
	{ "CREATING>GONE", tell_fail, 0, "the creation fails" },
	{ "COMMITTING>EVICTING", tell_refused, PLUGIN | REFUSE, "a plugin refuses" },
	{ "COMMITTING>KEPT", tell_left, PLUGIN, "the caller goes meanwhile" },
	{ "COMMITTED>KEPT", tell_unread, 0, "the answer is lost" },
	{ "COMMITTED>ENDED", tell_remove, 0, "removed" },
	{ "ENDED>GONE", tell_remove, 0, "removed" },
	{ "EVICTING>COMMITTED", tell_in_use, 0, "found in use" },
	{ ">COMMITTED", tell_import, PLANT, "imported" },
	{ NULL, tell_late, PLUGIN, "late" },
	{ NULL, tell_change, 0, "the request changes" },
	{ NULL, tell_stop, 0, "the sandbox is stopped" },
};

#define TRANSITIONS (sizeof(transitions) / sizeof(*transitions))
#define CASES       (2 * TRANSITIONS) /* before and after each */

static struct tally { /* shared by all processes */
	unsigned rounds[CASES], died[CASES], failed[CASES];
} *tally;

struct round {
	struct world world;
	struct story stories[STORIES_MAX];
	size_t n;
	unsigned number, test, deaths;
	bool shim; /* creations survive the runtime */
	const char *args[24];
	char numbers[4][16];
};

/* ---- what must hold -------------------------------------------------------------------------- */

struct made { /* one creation */
	char id[WORLD_ID], label[128];
	size_t begun, existed, destroyed, failed; /* line in the log + 1; 0: never */
};

static size_t read_made(struct world *world, struct made *made, size_t room)
{
	size_t n, m = 0;
	struct world_event *e = world_events(world, "creations", &n);
	for (size_t i = 0; i < n; i++) {
		if (!strcmp(e[i].what, "begin") && m < room) {
			made[m] = (struct made){ .begun = i + 1 };
			memcpy(made[m].id, e[i].id, WORLD_ID);
			snprintf(made[m++].label, sizeof(made->label), "%s", e[i].label);
		}
		for (size_t k = 0; k < m; k++) {
			if (strcmp(made[k].id, e[i].id))
				continue;
			if (!strcmp(e[i].what, "exists"))
				made[k].existed = i + 1;
			if (!strcmp(e[i].what, "destroyed"))
				made[k].destroyed = i + 1;
			if (!strcmp(e[i].what, "failed"))
				made[k].failed = i + 1;
		}
	}
	/* killed between the two: what was destroyed, or is there, did exist */
	for (size_t k = 0; k < m; k++)
		if (!made[k].existed && (made[k].destroyed || world_exists(world, made[k].id)))
			made[k].existed = made[k].destroyed ? made[k].destroyed : n + 1;
	free(e);
	return m;
}

static bool same_key(const char *a, const char *b) /* labels without their version */
{
	const char *end = strrchr(a, '.');
	return end && !strncmp(a, b, (size_t)(end - a) + 1);
}

static void check_creations(struct story *s, const struct made *made, size_t n)
{
	for (size_t w = 0; w < s->wants_n; w++) {
		const struct want *want = &s->wants[w];
		unsigned exists = 0;
		for (size_t i = 0; i < n; i++) {
			if (strcmp(made[i].label, want->label))
				continue;
			exists += made[i].existed && !made[i].destroyed;
			if (made[i].destroyed && !(want->flags & MAY_GO))
				wrong(s, "%s (%s) was destroyed for no reason", made[i].id,
				      made[i].label);
			for (size_t k = 0; k < n; k++)
				if (k != i && made[i].existed && made[k].begun > made[i].begun &&
				    same_key(made[i].label, made[k].label) &&
				    (!made[i].destroyed || made[i].destroyed > made[k].begun))
					wrong(s,
					      "%s (%s) was made although %s (%s) was there or "
					      "being made",
					      made[k].id, made[k].label, made[i].id, made[i].label);
		}
		if (want->flags & MUST_BE && exists != 1)
			wrong(s, "of %s there are %u", want->label, exists);
	}
}

static bool contains(const struct world_list *list, const char *id)
{
	for (size_t i = 0; i < list->n; i++)
		if (!strcmp(list->v[i].id, id))
			return true;
	return false;
}

static void check_unique(struct story *s, const struct world_list *visible)
{
	for (size_t i = 0; i < visible->n; i++)
		for (size_t k = 0; k < i; k++) {
			const struct world_object *a = &visible->v[i], *b = &visible->v[k];
			if (a->sandbox == b->sandbox && a->attempt == b->attempt &&
			    !strcmp(a->uid, b->uid) && !strcmp(a->container, b->container))
				wrong(s, "%s and %s of one key are both visible", a->id, b->id);
		}
}

static void check_left(struct story *stories, size_t n, const struct world_list *visible,
		       const struct world_list *all, const struct made *made, size_t made_n)
{
	for (size_t i = 0; i < all->n; i++) {
		bool good = strstr(all->v[i].id, "-900");
		for (size_t k = 0; k < n; k++) {
			for (size_t h = 0; h < stories[k].handed_n && h < WANTS_MAX; h++)
				good = good || !strcmp(stories[k].handed[h], all->v[i].id);
			for (size_t m = 0; m < made_n; m++)
				for (size_t w = 0; w < stories[k].wants_n; w++)
					good = good ||
					       (stories[k].wants[w].flags & ADOPTED &&
						!strcmp(made[m].id, all->v[i].id) &&
						!strcmp(made[m].label, stories[k].wants[w].label));
		}
		if (!good)
			wrong(stories, "%s leaked: it exists and was handed to nobody",
			      all->v[i].id);
		if (!contains(visible, all->v[i].id))
			wrong(stories, "%s leaked: it exists and stays hidden", all->v[i].id);
	}
}

struct telling { /* how often plugins were told of one object */
	unsigned run, stop, removed;
};

static struct telling told_of(const struct world_event *e, size_t n, const char *id)
{
	struct telling told = { 0 };
	for (size_t i = 0; i < n; i++) {
		if (strcmp(e[i].id, id))
			continue;
		told.run += !strcmp(e[i].what, "run");
		told.stop += !strcmp(e[i].what, "stop");
		told.removed += !strcmp(e[i].what, "remove");
	}
	return told;
}

/* Who was told of what is destroyed is told of its end. Not the other way round: the names are
 * written before the first byte is sent, so somebody may be named who was never told. */
static bool end_untold(const struct made *made, const struct telling *told)
{
	return told->run && made->destroyed && (!told->stop || !told->removed);
}

static void check_told(struct story *s, const struct made *made, size_t made_n)
{
	size_t n;
	struct world_event *e = world_events(&s->world, "told", &n);
	for (size_t m = 0; m < made_n; m++) {
		struct telling told = told_of(e, n, made[m].id);
		if (told.run > 1)
			wrong(s, "plugins were told of %s %u times", made[m].id, told.run);
		if (end_untold(&made[m], &told))
			wrong(s, "plugins were told of %s, not of its end: %s", made[m].id,
			      told.stop ? "no remove" : "no stop");
	}
	free(e);
}

/* Nothing hidden exists any more, and no plugin has yet to be told of an end: Remove is sent after
 * the object has gone. */
static bool all_is_over(struct round *round, struct world_list *visible, struct world_list *all)
{
	struct made made[MADE_MAX];
	size_t n, made_n;
	bool over = world_list(&round->world, "LIST-ALL", all) &&
		    world_list(&round->world, "LIST", visible) && all->n == visible->n;
	if (!over)
		return false;
	made_n = read_made(&round->world, made, MADE_MAX);
	struct world_event *e = world_events(&round->world, "told", &n);
	for (size_t m = 0; m < made_n && over; m++) {
		struct telling told = told_of(e, n, made[m].id);
		over = !end_untold(&made[m], &told);
	}
	free(e);
	return over;
}

/* ---- a round --------------------------------------------------------------------------------- */

static void *story_main(void *userdata)
{
	struct story *s = userdata;
	s->tell(s);
	__atomic_store_n(&s->over, true, __ATOMIC_RELEASE);
	return NULL;
}

static void round_arguments(struct round *round)
{
	const struct transition *t = &transitions[round->test / 2];
	/* in the first lap so long that a busy machine does not lead a story elsewhere: longer than
	 * the deadlines of those who leave first, and shorter than all others */
	bool patient = round->number < CASES;
	unsigned create_ms = 700 * slow;
	if (!patient)
		create_ms = (120 + world_random(&round->world, 230)) * (slow > 1 ? 2 : 1);
	unsigned plugin_ms = t->tell == tell_left ? (patient ? 800 : 160) * slow
						  : world_random(&round->world, 60);
	size_t n = 0;
	snprintf(round->numbers[0], 16, "%u", create_ms);
	snprintf(round->numbers[1], 16, "%u", plugin_ms);
	snprintf(round->numbers[2], 16, "%u", 3000 * slow);
	/* A creation that survives the runtime must end before it is given up, also on a busy
	 * machine; one that died with it is given up soon. */
	round->shim = world_random(&round->world, 10) < 7;
	snprintf(round->numbers[3], 16, "%u", (round->shim ? 10000 : 1500) * slow);
	const char *args[] = {
		"--create-ms", round->numbers[0], "--create-deadline-ms", round->numbers[2],
		"--lost-grace-ms", round->numbers[3], "--fail", "the image is broken",
	};
	for (; n < sizeof(args) / sizeof(*args); n++)
		round->args[n] = args[n];
	if (round->shim)
		round->args[n++] = "--shim";
	if (t->how & PLUGIN) {
		round->args[n++] = "--plugin-ms";
		round->args[n++] = round->numbers[1];
	}
	if (t->how & REFUSE) {
		round->args[n++] = "--refuse";
		round->args[n++] = "not with me";
	}
	if (t->how & SHORT_TTL) {
		round->args[n++] = "--ttl-ms";
		round->args[n++] = "400";
	}
	round->n = t->how & ALONE ? 1 : STORIES_MAX;
	for (size_t i = 0; i < round->n; i++) {
		struct story *s = &round->stories[i];
		s->world = round->world;
		s->world.random += 7919 * (i + 1);
		snprintf(s->pod, sizeof(s->pod), "p%zu", i);
		s->tell = i ? tell_late : t->tell;
		s->create_ms = create_ms;
		s->plugin_ms = plugin_ms;
		s->patience_ms = 60000 * slow;
		s->deaths = &round->deaths;
		s->patient = patient;
	}
}

static const char *round_crash(struct round *round, char text[96])
{
	const struct transition *t = &transitions[round->test / 2];
	if (!t->move)
		return NULL;
	/* in the first lap the first one; then also the second, which may belong to the other
	 * story, or may not be reached */
	unsigned nth = round->number >= CASES && world_random(&round->world, 4) == 0 ? 2 : 1;
	snprintf(text, 96, "%s:%s:%u", round->test % 2 ? "after" : "before", t->move, nth);
	return text;
}

static void start_again(struct round *round)
{
	char crash[96];
	const struct transition *t = &transitions[world_random(&round->world, TRANSITIONS)];
	snprintf(crash, sizeof(crash), "%s:%s:1",
		 world_random(&round->world, 2) ? "after" : "before",
		 t->move ? t->move : "KEPT>COMMITTING");
	if (!world_start(&round->world, world_random(&round->world, 3) ? NULL : crash, round->args))
		wrong(round->stories, "the runtime does not start again");
}

/* while the stories run: a runtime that died is started again, and lists must be right at every
 * moment */
static void round_attend(struct round *round)
{
	struct tally *t = tally;
	struct world_list visible;
	int status;
	bool over = false, random_kill = !transitions[round->test / 2].move;
	unsigned long long kill_at =
		world_now() + world_random(&round->world, round->number < CASES ? 400 : 1500);
	while (!over) {
		if (random_kill && world_now() >= kill_at) {
			random_kill = false;
			kill(round->world.pid, SIGKILL);
		}
		if (world_died(&round->world, &status)) {
			if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
				wrong(round->stories,
				      "the runtime ended by itself, with status 0x%x",
				      (unsigned)status);
			__atomic_add_fetch(&t->died[round->test], 1, __ATOMIC_RELAXED);
			/* before the next runtime can be called */
			__atomic_add_fetch(&round->deaths, 1, __ATOMIC_RELEASE);
			start_again(round);
		}
		if (world_list(&round->world, "LIST", &visible))
			check_unique(round->stories, &visible);
		world_sleep(25);
		over = true;
		for (size_t i = 0; i < round->n; i++)
			over = over && __atomic_load_n(&round->stories[i].over, __ATOMIC_ACQUIRE);
	}
}

/* Creations that survived their runtime end; one that it was to start may never have begun. */
static void await_creations(struct round *round)
{
	struct made made[MADE_MAX];
	unsigned long long now = world_now();
	unsigned long long least = now + round->stories[0].create_ms + 200 * slow,
			   most = least + (round->shim ? 5000 * slow : 0);
	bool pending = true;
	for (; now < least || (pending && now < most); now = world_now()) {
		world_sleep(50);
		size_t n = read_made(&round->world, made, MADE_MAX);
		pending = false;
		for (size_t i = 0; i < n; i++)
			pending = pending || (!made[i].existed && !made[i].failed);
	}
}

/* nobody requests anything any more: what is kept expires soon, what is lost is given up, and the
 * rest must belong to the kubelet */
static void round_end(struct round *round)
{
	bool plugin = transitions[round->test / 2].how & PLUGIN;
	const char *const args[] = {
		"--ttl-ms", "100", "--create-deadline-ms", "100", "--lost-grace-ms", "100",
		plugin ? "--plugin-ms" : NULL, "0", NULL,
	};
	struct world_list visible = { .n = 0 }, all = { .n = 0 };
	struct made made[MADE_MAX];
	unsigned long long end;
	await_creations(round);
	world_kill_it(&round->world);
	world_start(&round->world, NULL, args);
	end = last_chance(&round->stories[0]);
	do
		world_sleep(100);
	while (!all_is_over(round, &visible, &all) && world_now() < end);
	size_t n = read_made(&round->world, made, MADE_MAX);
	check_unique(round->stories, &visible);
	check_left(round->stories, round->n, &visible, &all, made, n);
	check_told(round->stories, made, n);
	for (size_t i = 0; i < round->n; i++)
		check_creations(&round->stories[i], made, n);
	int status = world_stop(&round->world);
	if (status)
		wrong(round->stories, "the runtime ended with status 0x%x", (unsigned)status);
}

static void round_run(unsigned number, uint64_t seed, bool keep)
{
	struct round *round = calloc(1, sizeof(*round));
	char crash[96];
	const char *error = NULL;
	round->number = number;
	round->test = number % CASES;
	if (!world_make(&round->world, (number / CASES) % 2 ? "armed-loop" : "armed-blocking",
			seed + number))
		exit(99);
	round_arguments(round);
	if (transitions[round->test / 2].how & PLANT)
		world_plant(&round->world, "sb-900", "p0", "", "", CK_CONDITION_READY);
	const char *armed = round_crash(round, crash);
	if (!world_start(&round->world, armed, round->args))
		wrong(round->stories, "the runtime does not start");
	for (size_t i = 0; i < round->n; i++)
		pthread_create(&round->stories[i].thread, NULL, story_main, &round->stories[i]);
	round_attend(round);
	for (size_t i = 0; i < round->n; i++)
		pthread_join(round->stories[i].thread, NULL);
	round_end(round);
	for (size_t i = 0; i < round->n; i++)
		error = error ? error : round->stories[i].error[0] ? round->stories[i].error : NULL;
	__atomic_add_fetch(&tally->rounds[round->test], 1, __ATOMIC_RELAXED);
	if (error) {
		__atomic_add_fetch(&tally->failed[round->test], 1, __ATOMIC_RELAXED);
		printf("# CK_CRASH_ROUND=%u CK_CRASH_SEED=%llu, %s, killed %s: %s\n", number,
		       (unsigned long long)seed, round->world.program,
		       armed ? armed : "at any time", error);
		fflush(stdout);
	}
	if (keep || error) { /* what it left tells why */
		world_kill_it(&round->world);
		printf("# %s\n", round->world.dir);
	} else {
		world_remove(&round->world);
	}
	free(round);
}

int main(void)
{
	uint64_t seed = world_env("CK_CRASH_SEED", 1);
	unsigned rounds = (unsigned)world_env("CK_CRASH_ROUNDS",
					      ROUNDS * world_env("CK_TEST_SCALE", 100) / 100);
	signal(SIGPIPE, SIG_IGN);
	slow = world_env("CK_TEST_SLOW", 1) > 1 ? 3 : 1;
	if (rounds && rounds < CASES)
		rounds = CASES; /* each transition at least once */
	/* A round waits for deadlines most of its time. If each case has one, all begin at once. */
	unsigned jobs = rounds == CASES ? CASES : slow > 1 ? 6 : 24, failed = 0;
	jobs = (unsigned)world_env("CK_CRASH_JOBS", jobs);
	tally = mmap(NULL, sizeof(*tally), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	if (tally == MAP_FAILED)
		return 99;
	if (getenv("CK_CRASH_ROUND")) {
		round_run((unsigned)world_env("CK_CRASH_ROUND", 0), seed, true);
		rounds = 0;
	}
	for (unsigned job = 0; job < jobs && rounds; job++) {
		if (fork())
			continue;
		for (unsigned number = job; number < rounds; number += jobs) {
			/* in the first lap each point must be reached, and a busy machine can
			 * prevent that */
			for (unsigned i = 0;
			     i < 4 && (i == 0 || (number < CASES && !tally->died[number % CASES]));
			     i++)
				round_run(number, seed + 1000000 * i, false);
		}
		exit(0);
	}
	for (int status; wait(&status) > 0;)
		failed += status != 0;
	if (failed)
		printf("not ok - %u of the test's own processes failed\n", failed);
	for (unsigned test = 0; test < CASES; test++) {
		const struct transition *t = &transitions[test / 2];
		if (!tally->rounds[test])
			continue;
		bool good = !tally->failed[test] && tally->died[test];
		failed += !good;
		printf("%s - K29 killed %s %s, %s: %u rounds, %u deaths%s\n",
		       good ? "ok" : "not ok", test % 2 ? "after" : "before",
		       t->move ? t->move : "or later", t->tale, tally->rounds[test],
		       tally->died[test], tally->died[test] ? "" : ", the point was never reached");
	}
	return failed > 0;
}
