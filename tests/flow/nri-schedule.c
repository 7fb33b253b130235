/* SPDX-License-Identifier: Apache-2.0 */
#include <sodium.h>
#include <string.h>

#include "src/base/mem.h"
#include "tests/flow/nri-schedule.h"

enum { TURNS = 48, PODS = 4, SENDS = 2048, STEPS = 120, PAUSE_EVERY = 20, LIVE_PLUGINS = 5 };

/* one call of the kubelet's under way */
struct turn {
	struct ck_turn *turn; /* NULL: this place is free */
	struct fx_ear ear;
	struct fx_ask ask;
	char sandbox[16];  /* of ask, of a container */
	bool making;       /* the runtime is creating it */
	char removing[16]; /* it waits to remove this sandbox */
};

struct pod { /* of the kubelet's; it has one uid */
	char name[16], uid[16];
	uint32_t attempt;
	const char *env; /* what differs between two requests */
};

struct schedule {
	struct fixture *f;
	struct nw *w;
	struct oracle oracle;
	struct schedule_counts *counts;
	struct pod pods[PODS];
	struct turn turns[TURNS];
	struct nw_sent *sends;
	/* sends that had ended before a pause are not checked again */
	unsigned sends_n, ids, hurried;
	bool trace;
	bool answered[OBJECTS]; /* the kubelet has had its id */
};

static uint32_t chance(struct schedule *s, uint32_t n)
{
	return nw_random(s->w, n);
}

/* the cache takes random numbers from libsodium: the same seed gives the same ones */
static uint64_t drawn;

static uint32_t draw(void)
{
	drawn = drawn * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(drawn >> 33);
}

static void draw_bytes(void *bytes, const size_t n)
{
	for (size_t i = 0; i < n; i++)
		((unsigned char *)bytes)[i] = (unsigned char)draw();
}

static const char *draw_name(void)
{
	return "seeded";
}

static randombytes_implementation seeded = { .implementation_name = draw_name,
					     .random = draw,
					     .buf = draw_bytes };

static void say(const struct schedule *s, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static void say(const struct schedule *s, const char *format, ...)
{
	va_list args;
	if (!s->trace)
		return;
	va_start(args, format);
	printf("%10.3f  ", (double)(nw_now(s->w) / CK_NS_PER_MS) / 1000);
	vprintf(format, args);
	printf("\n");
	va_end(args);
}

/* ---- the runtime ----------------------------------------------------------------------------- */

/* the kubelet's list */
static bool shown(struct schedule *s, const struct fx_object *o)
{
	struct ck_view *view;
	struct ck_object object = {
		.size = sizeof(object),
		.kind = o->kind,
		.condition = o->condition,
		.id = o->id,
		.pod_name = o->name,
		.pod_namespace = o->ns,
		.pod_uid = o->uid,
		.sandbox_id = o->sandbox,
		.container_name = o->container,
		.attempt = o->attempt,
	};
	assert_int_equal(ck_view_begin(s->f->cache, &view, &s->f->err), 0);
	int hides = ck_view_hides(view, &object);
	ck_view_free(view);
	return hides == 0;
}

/* the @nth object of that kind that the kubelet can see, modulo their number */
static const struct fx_object *pick(struct schedule *s, enum ck_kind kind)
{
	size_t first = s->f->objects_n ? chance(s, (uint32_t)s->f->objects_n) : 0;
	for (size_t i = 0; i < s->f->objects_n; i++) {
		const struct fx_object *o = &s->f->objects[(first + i) % s->f->objects_n];
		if (o->kind == kind && shown(s, o))
			return o;
	}
	return NULL;
}

static bool reserved(const struct schedule *s, const struct fx_ask *ask)
{
	for (size_t i = 0; i < s->f->objects_n; i++) {
		const struct fx_object *o = &s->f->objects[i];
		if (o->kind == ask->kind && o->attempt == ask->attempt &&
		    !strcmp(o->name, ask->name) &&
		    (ask->kind == CK_SANDBOX ||
		     (!strcmp(o->sandbox, ask->sandbox) && !strcmp(o->container, ask->container))))
			return true;
	}
	return false;
}

static void look_what_is_shown(struct schedule *s)
{
	for (size_t i = 0; i < s->f->objects_n; i++)
		if (shown(s, &s->f->objects[i]))
			oracle_committed(&s->oracle, s->f->objects[i].id);
}

/* ---- events of the host ---------------------------------------------------------------------- */

static void send(struct schedule *s, enum ck_nri_event event, const char *pod,
		 const char *container)
{
	struct ck_nri_call call = {
		.size = sizeof(call), .event = event, .pod_id = pod, .container_id = container
	};
	if (s->sends_n == SENDS)
		return;
	say(s, "event %d of %s", (int)event, container ? container : pod);
	int r = nw_send_call(s->w, &call, &s->sends[s->sends_n]);
	if (r < 0)
		oracle_complain(&s->oracle, "event %d of %s: %d, %s", (int)event,
				container ? container : pod, r, s->w->err.text);
	else
		s->sends_n++;
}

static void move(struct schedule *s)
{
	switch (chance(s, 3)) {
	case 0:
		nw_shuffle(s->w, chance(s, 12));
		break;
	case 1:
		nw_shuffle(s->w, chance(s, 80));
		break;
	default:
		nw_settle(s->w);
		oracle_settled(&s->oracle);
	}
}

static void stop_container(struct schedule *s, const char *id, const char *pod)
{
	fx_condition(s->f, id, CK_CONDITION_DEAD);
	ck_object_seen(s->f->cache, CK_CONTAINER, id, CK_CONDITION_DEAD);
	oracle_ends(&s->oracle, id, CK_HOOK_STOP);
	send(s, CK_NRI_STOP_CONTAINER, pod, id);
}

static void remove_container(struct schedule *s, const char *id, const char *pod)
{
	if (chance(s, 4))
		stop_container(s, id, pod); /* else its Remove comes without */
	oracle_ends(&s->oracle, id, CK_HOOK_REMOVE);
	send(s, CK_NRI_REMOVE_CONTAINER, pod, id);
	if (chance(s, 2))
		move(s);
	fx_vanish(s->f, id);
	ck_object_removed(s->f->cache, CK_CONTAINER, id);
}

/* what there is of @pod that the kubelet can see */
static void with_containers(struct schedule *s, const char *pod,
			    void (*fn)(struct schedule *, const char *, const char *))
{
	char ids[64][16];
	unsigned n = 0;
	for (size_t i = 0; i < s->f->objects_n && n < 64; i++) {
		const struct fx_object *o = &s->f->objects[i];
		if (o->kind == CK_CONTAINER && !strcmp(o->sandbox, pod) && shown(s, o))
			snprintf(ids[n++], sizeof(ids[0]), "%.15s", o->id);
	}
	for (unsigned i = 0; i < n; i++)
		if (fx_has(s->f, ids[i]))
			fn(s, ids[i], pod);
}

static void stop_pod(struct schedule *s, const char *id)
{
	say(s, "stop %s", id);
	with_containers(s, id, stop_container);
	ck_sandbox_stopping(s->f->cache, id);
	oracle_ends(&s->oracle, id, CK_HOOK_STOP);
	send(s, CK_NRI_STOP_POD_SANDBOX, id, NULL);
	if (chance(s, 2))
		move(s);
	if (!fx_has(s->f, id))
		return;
	fx_condition(s->f, id, CK_CONDITION_DEAD);
	ck_object_seen(s->f->cache, CK_SANDBOX, id, CK_CONDITION_DEAD);
}

static void removed_pod(struct schedule *s, const char *id)
{
	if (!fx_has(s->f, id))
		return;
	say(s, "remove %s", id);
	with_containers(s, id, remove_container);
	oracle_ends(&s->oracle, id, CK_HOOK_REMOVE);
	if (chance(s, 4))
		send(s, CK_NRI_STOP_POD_SANDBOX, id, NULL);
	send(s, CK_NRI_REMOVE_POD_SANDBOX, id, NULL);
	if (chance(s, 2))
		move(s);
	fx_vanish(s->f, id);
	ck_object_removed(s->f->cache, CK_SANDBOX, id);
}

/* ---- the kubelet's calls --------------------------------------------------------------------- */

static struct turn *place(struct schedule *s)
{
	for (unsigned i = 0; i < TURNS; i++)
		if (!s->turns[i].turn)
			return &s->turns[i];
	return NULL;
}

static void drop(struct turn *t)
{
	ck_turn_free(t->turn);
	*t = (struct turn){ .turn = NULL };
}

static void handed_back(struct schedule *s, struct turn *t)
{
	struct ck_reply reply = { .size = sizeof(reply) };
	bool container = t->ask.kind == CK_CONTAINER;
	char id[16], pod[16];
	assert_int_equal(ck_turn_reply(t->turn, &reply), 0);
	snprintf(id, sizeof(id), "%.15s", reply.id);
	bool again = s->answered[strtoul(id + 1, NULL, 10) % OBJECTS];
	s->answered[strtoul(id + 1, NULL, 10) % OBJECTS] = true;
	snprintf(pod, sizeof(pod), "%.15s", t->sandbox);
	say(s, "handed back %s", id);
	oracle_committed(&s->oracle, id);
	s->counts->commits++;
	ck_turn_answered(t->turn, chance(s, container ? 4 : 10) ? CK_DELIVERED : CK_LOST);
	drop(t);
	if (container && !again && fx_has(s->f, id))
		send(s, CK_NRI_POST_CREATE_CONTAINER, pod, id);
}

static void decided(struct schedule *s, struct turn *t, int outcome)
{
	char id[16];
	switch (outcome) {
	case CK_CREATE:
		t->making = true;
		fx_listen(&t->ear, t->turn);
		break;
	case CK_WAIT:
		fx_listen(&t->ear, t->turn);
		break;
	case CK_HAND_BACK:
		handed_back(s, t);
		break;
	case CK_DRAINED:
		snprintf(id, sizeof(id), "%s", t->removing);
		drop(t);
		removed_pod(s, id);
		break;
	default:
		s->counts->refusals += outcome == -CK_EREFUSED;
		say(s, "a turn ended with %d", outcome);
		drop(t);
	}
}

static void harvest(struct schedule *s)
{
	for (unsigned i = 0; i < TURNS; i++) {
		struct turn *t = &s->turns[i];
		int outcome = t->ear.outcome;
		if (!t->turn || !t->ear.n)
			continue;
		t->ear.n = 0;
		decided(s, t, outcome);
	}
}

static void request(struct schedule *s, const struct fx_ask *ask)
{
	struct turn *t = place(s);
	if (!t)
		return;
	t->ask = *ask;
	if (ask->sandbox) {
		snprintf(t->sandbox, sizeof(t->sandbox), "%s", ask->sandbox);
		t->ask.sandbox = t->sandbox;
	}
	int r = fx_begin(s->f, &t->ask, &t->turn);
	say(s, "ask for %s%s%s attempt %u env %s: %d", ask->sandbox ? ask->sandbox : ask->name,
	    ask->container ? " " : "", ask->container ? ask->container : "", ask->attempt, ask->env,
	    r);
	if (r < 0)
		*t = (struct turn){ .turn = NULL };
	else
		decided(s, t, r);
}

static struct fx_ask ask_for(struct schedule *s, const struct pod *pod)
{
	static const uint64_t timeouts[] = { 3, 10, 10, 60 };
	return (struct fx_ask){ .kind = CK_SANDBOX,
				.name = pod->name,
				.ns = "shop",
				.uid = pod->uid,
				.attempt = pod->attempt,
				.env = pod->env,
				.timeout = timeouts[chance(s, 4)] * CK_NS_PER_S };
}

/* its sandbox is no longer ready: a kubelet makes another one */
static bool has_ended(struct schedule *s, const struct pod *pod)
{
	for (size_t i = 0; i < s->f->objects_n; i++) {
		const struct fx_object *o = &s->f->objects[i];
		if (o->kind == CK_SANDBOX && !strcmp(o->name, pod->name) &&
		    o->attempt == pod->attempt)
			return o->condition != CK_CONDITION_READY;
	}
	return false;
}

static void request_pod(struct schedule *s)
{
	static const char *const envs[] = { "one", "two" };
	struct pod *pod = &s->pods[chance(s, PODS)];
	if (!chance(s, 8) || (has_ended(s, pod) && chance(s, 4)))
		pod->attempt += pod->attempt && !chance(s, 6) ? (uint32_t)-1 : 1;
	if (!chance(s, 12))
		pod->env = envs[chance(s, 2)];
	struct fx_ask ask = ask_for(s, pod);
	request(s, &ask);
}

static void request_container(struct schedule *s)
{
	static const char *const names[] = { "app", "side" };
	const struct fx_object *o = pick(s, CK_SANDBOX);
	if (!o || (o->condition != CK_CONDITION_READY && chance(s, 4)))
		return;
	for (unsigned i = 0; i < PODS; i++) {
		if (strcmp(s->pods[i].name, o->name))
			continue;
		struct fx_ask ask = ask_for(s, &s->pods[i]);
		ask.kind = CK_CONTAINER;
		ask.sandbox = o->id;
		ask.container = names[chance(s, 2)];
		ask.attempt = chance(s, 5) == 0;
		ask.env = chance(s, 10) ? "one" : "two";
		ask.image = "registry/app:1";
		request(s, &ask);
		return;
	}
}

static struct turn *pick_turn(struct schedule *s, bool making)
{
	unsigned first = chance(s, TURNS);
	for (unsigned i = 0; i < TURNS; i++) {
		struct turn *t = &s->turns[(first + i) % TURNS];
		if (t->turn && t->making == making)
			return t;
	}
	return NULL;
}

static void finish(struct schedule *s, struct turn *t)
{
	char id[16];
	struct ck_status status = { .size = sizeof(status), .grpc = 2, .message = "no" };
	t->making = false;
	if (s->ids + 1 >= OBJECTS || reserved(s, &t->ask)) {
		status.message = "name is reserved";
		ck_turn_fail(t->turn, &status, NULL);
		drop(t);
		return;
	}
	snprintf(id, sizeof(id), "%c%u", t->ask.kind == CK_SANDBOX ? 'p' : 'c', ++s->ids);
	int r = fx_make(s->f, t->turn, &t->ask, id);
	say(s, "made %s: %d", id, r);
	if (r == CK_WAIT || r == CK_HAND_BACK)
		decided(s, t, r);
	else
		drop(t);
}

static void fail_or_lose(struct schedule *s, struct turn *t)
{
	struct ck_status status = { .size = sizeof(status), .grpc = 13, .message = "cni: no" };
	char id[16];
	switch (chance(s, 3)) {
	case 0:
		say(s, "a creation fails");
		ck_turn_fail(t->turn, &status, NULL);
		break;
	case 1: /* it was created, and the answer is lost */
		if (s->ids + 1 < OBJECTS && !reserved(s, &t->ask)) {
			snprintf(id, sizeof(id), "%c%u", t->ask.kind == CK_SANDBOX ? 'p' : 'c',
				 ++s->ids);
			fx_exists(s->f, &t->ask, id);
			say(s, "made %s, and nobody knows", id);
		}
		ck_turn_lost(t->turn, NULL);
		break;
	default: /* it was not created, and the answer is lost */
		say(s, "a creation is lost");
	}
	drop(t);
}

static void remove_pod(struct schedule *s, const char *id)
{
	struct turn *t = place(s);
	if (!t)
		return;
	int r = ck_remove_begin(s->f->cache, CK_SANDBOX, id, 10 * CK_NS_PER_S, &t->turn, NULL);
	say(s, "removal of %s: %d", id, r);
	if (r < 0)
		return;
	t->ask.kind = CK_SANDBOX;
	snprintf(t->removing, sizeof(t->removing), "%s", id);
	decided(s, t, r);
}

static void start_container(struct schedule *s, const char *id, const char *pod)
{
	send(s, CK_NRI_START_CONTAINER, pod, id);
	if (chance(s, 2))
		move(s);
	if (!fx_has(s->f, id))
		return;
	fx_condition(s->f, id, CK_CONDITION_RUNNING);
	ck_object_seen(s->f->cache, CK_CONTAINER, id, CK_CONDITION_RUNNING);
	send(s, CK_NRI_POST_START_CONTAINER, pod, id);
}

/* what the kubelet does to what it can see */
static void act(struct schedule *s)
{
	bool container = chance(s, 2);
	const struct fx_object *o = pick(s, container ? CK_CONTAINER : CK_SANDBOX);
	char id[16], pod[16];
	if (!o)
		return;
	snprintf(id, sizeof(id), "%.15s", o->id);
	snprintf(pod, sizeof(pod), "%.15s", o->sandbox);
	if (!container && chance(s, 2))
		stop_pod(s, id);
	else if (!container)
		remove_pod(s, id);
	else if (o->condition == CK_CONDITION_READY && chance(s, 2))
		start_container(s, id, pod);
	else if (o->condition == CK_CONDITION_RUNNING && chance(s, 2)) {
		send(s, CK_NRI_UPDATE_CONTAINER, pod, id);
		send(s, CK_NRI_POST_UPDATE_CONTAINER, pod, id);
	} else if (chance(s, 2))
		stop_container(s, id, pod);
	else
		remove_container(s, id, pod);
}

/* ---- plugins --------------------------------------------------------------------------------- */

static bool lives(const struct plugin *p)
{
	return p->fd >= 0 && !p->ended;
}

static struct plugin *pick_plugin(struct schedule *s)
{
	size_t n = s->w->plugins_n, first = n ? chance(s, (uint32_t)n) : 0;
	for (size_t i = 0; i < n; i++)
		if (lives(s->w->plugins[(first + i) % n]))
			return s->w->plugins[(first + i) % n];
	return NULL;
}

static void join(struct schedule *s)
{
	static const char *const names[] = { "10-a", "20-b", "30-c", "40-d" };
	unsigned living = 0;
	for (size_t i = 0; i < s->w->plugins_n; i++)
		living += lives(s->w->plugins[i]);
	if (living >= LIVE_PLUGINS || s->w->plugins_n == NW_PLUGINS)
		return;
	struct plugin *p = nw_join(s->w, names[chance(s, 4)]);
	say(s, "%s-%s joins as connection %zu", p->index, p->base, s->w->plugins_n - 1);
	if (!chance(s, 4)) {
		p->old = true;
		p->mask = 0x7ff;
	}
	if (!chance(s, 6))
		p->mask &= ~(1u << chance(s, 11));
	if (!chance(s, 6))
		p->at_most = 1 + chance(s, 40);
	if (!chance(s, 6))
		p->cut = 1 + chance(s, 30);
	if (!chance(s, 5))
		plugin_rule(p, chance(s, 2) ? PLUGIN_SYNCHRONIZE : PLUGIN_CONFIGURE, PLUGIN_HOLDS,
			    1);
	s->counts->connections++;
	oracle_joined(&s->oracle, p);
}

static void upset(struct schedule *s)
{
	static const int calls[] = { CK_NRI_RUN_POD_SANDBOX,  CK_NRI_RUN_POD_SANDBOX,
				     CK_NRI_STOP_POD_SANDBOX, CK_NRI_REMOVE_POD_SANDBOX,
				     CK_NRI_CREATE_CONTAINER, CK_NRI_CREATE_CONTAINER,
				     CK_NRI_STOP_CONTAINER,   CK_NRI_REMOVE_CONTAINER,
				     CK_NRI_START_CONTAINER };
	static const enum plugin_does does[] = { PLUGIN_HOLDS,      PLUGIN_HOLDS, PLUGIN_HOLDS,
						 PLUGIN_FAILS,      PLUGIN_FAILS, PLUGIN_CLOSES,
						 PLUGIN_BREAKS_OFF, PLUGIN_SHUTS };
	struct plugin *p = pick_plugin(s);
	if (!p)
		return;
	int call = calls[chance(s, CK_COUNT(calls))];
	p->rules[call] = (struct plugin_rule){ .does = does[chance(s, CK_COUNT(does))],
					       .times = chance(s, 4),
					       .code = 2,
					       .text = "not today" };
	say(s, "%s-%s will do %d at %d", p->index, p->base, (int)p->rules[call].does, call);
}

static void trouble(struct schedule *s)
{
	struct plugin *p = pick_plugin(s);
	if (!p)
		return;
	switch (chance(s, 5)) {
	case 0:
		say(s, "%s-%s crashes", p->index, p->base);
		plugin_close(p);
		break;
	case 1:
		p->deaf = !p->deaf;
		break;
	case 2:
		plugin_ask(p, PLUGIN_RUNTIME_SERVICE, "UpdateContainers",
			   "\x0a\x04\x0a\x02"
			   "c1",
			   6); /* perhaps from inside an event */
		break;
	default:
		memset(p->rules, 0, sizeof(p->rules));
		plugin_release(p);
	}
}

/* ---- time and restart ------------------------------------------------------------------------ */

static void let_time_pass(struct schedule *s)
{
	static const uint64_t ms[] = { 30, 300, 1000, 2100, 2100, 6000, 15000, 70000, 660000 };
	uint64_t by = ms[chance(s, CK_COUNT(ms) - (chance(s, 3) ? 3 : 0))] * CK_NS_PER_MS;
	say(s, "time passes");
	if (chance(s, 4))
		nw_advance(s->w, by);
	else
		nw_set_now(s->w, nw_now(s->w) + by); /* an event loop that was blocked */
}

static void host_trouble(struct schedule *s)
{
	static const enum fx_call calls[] = { FX_DESTROY, FX_DESTROY, FX_INSPECT, FX_LIST };
	enum fx_call call = calls[chance(s, CK_COUNT(calls))];
	switch (chance(s, 6)) {
	case 0:
		s->f->hold[call] = true;
		break;
	case 1:
		s->f->fail[call] = 14;
		break;
	case 2:
		s->w->hold[NW_DESCRIBE] = true;
		break;
	case 3:
		s->w->fail[NW_DESCRIBE] = 14;
		break;
	default:
		fx_release(s->f, call);
		s->f->fail[call] = 0;
		s->w->fail[NW_DESCRIBE] = 0;
		nw_release(s->w, NW_DESCRIBE);
	}
}

static void open_all(struct schedule *s)
{
	static struct ck_hooks hooks;
	if (nw_open(s->w) < 0)
		fail_msg("open: %s", s->w->err.text);
	oracle_between(&s->oracle, &hooks);
	s->f->options.hooks = &hooks;
	fx_open(s->f);
	nw_start(s->w);
}

static void restart(struct schedule *s)
{
	say(s, "everything ends, and begins again");
	s->counts->restarts++;
	for (unsigned i = 0; i < TURNS; i++)
		if (s->turns[i].turn && chance(s, 2))
			drop(&s->turns[i]);
	fx_cut(s->f); /* first, because it calls the hooks to the end */
	nw_close(s->w);
	for (unsigned i = 0; i < TURNS; i++)
		if (s->turns[i].turn)
			drop(&s->turns[i]);
	for (unsigned i = 0; i < FX_CALLS; i++)
		s->f->fail[i] = 0;
	fx_release(s->f, FX_DESTROY);
	s->w->fail[NW_DESCRIBE] = 0;
	if (chance(s, 2))
		nw_shuffle(s->w, 20); /* plugins find out */
	open_all(s);
	if (chance(s, 2))
		nw_settle(s->w); /* what was to be destroyed is, before anybody is back */
	for (unsigned i = chance(s, 2) ? chance(s, 4) : 0; i; i--)
		join(s); /* those that come back at once */
}

/* nothing is held back any more, and all settles; then the oracle checks everything */
static void pause_all(struct schedule *s)
{
	for (unsigned i = 0; i < FX_CALLS; i++)
		s->f->fail[i] = 0;
	for (int call = 0; call < NW_CALLS; call++)
		s->w->fail[call] = 0;
	for (unsigned round = 0; round < 4; round++) {
		for (int call = 0; call < FX_CALLS; call++)
			fx_release(s->f, (enum fx_call)call);
		for (int call = 0; call < NW_CALLS; call++)
			nw_release(s->w, (enum nw_call)call);
		for (size_t i = 0; i < s->w->plugins_n; i++) {
			struct plugin *p = s->w->plugins[i];
			p->deaf = false;
			memset(p->rules, 0, sizeof(p->rules));
			plugin_release(p);
		}
		nw_settle(s->w);
		harvest(s);
		nw_advance(s->w, CK_NS_PER_S);
		harvest(s);
	}
	nw_settle(s->w);
	oracle_settled(&s->oracle);
	look_what_is_shown(s);
	for (unsigned i = 0; i < s->sends_n; i++) {
		const struct nw_sent *sent = &s->sends[i];
		if (sent->ended != 1 || sent->within)
			oracle_complain(&s->oracle, "event %u: its callback came %u times, %s", i,
					sent->ended,
					sent->within ? "from within" : "from the event loop");
	}
	if (!chance(s, 3)) /* what is given up stays for a while, perhaps into the next life */
		s->f->hold[FX_DESTROY] = true;
	say(s, "pause: %zu objects, %zu connections", s->f->objects_n, nw_connected(s->w));
	oracle_check(&s->oracle, true);
}

/* ---- a schedule ------------------------------------------------------------------------------ */

static void step(struct schedule *s)
{
	uint32_t dice = chance(s, 100);
	struct turn *t;
	if (dice < 18)
		request_pod(s);
	else if (dice < 30)
		request_container(s);
	else if (dice < 52) {
		if ((t = pick_turn(s, true)))
			finish(s, t);
	} else if (dice < 54) {
		if ((t = pick_turn(s, true)))
			fail_or_lose(s, t);
	} else if (dice < 57) {
		if ((t = pick_turn(s, chance(s, 2))))
			ck_turn_leave(t->turn);
	} else if (dice < 68)
		act(s);
	else if (dice < 76)
		join(s);
	else if (dice < 83)
		upset(s);
	else if (dice < 87)
		trouble(s);
	else if (dice < 91)
		host_trouble(s);
	else if (dice < 98 || chance(s, 3))
		let_time_pass(s);
	else
		restart(s);
}

static void choose_options(struct schedule *s, struct ck_nri_rule *rules)
{
	static const char *const names[] = { "a", "20-b", "c", "40-d" };
	static const enum ck_nri_policy policies[] = { CK_NRI_IGNORE, CK_NRI_ERROR, CK_NRI_FAIL,
						       CK_NRI_FAIL };
	for (unsigned i = 0; i < 4; i++)
		rules[i] =
			(struct ck_nri_rule){ .name = names[i], .policy = policies[chance(s, 4)] };
	if (!chance(s, 5))
		rules[3].policy = CK_NRI_REQUIRED;
	s->w->options.rules = rules;
	s->w->options.rules_n = chance(s, 5);
	s->w->options.policy = policies[chance(s, 3)];
	s->f->options.hand_back = chance(s, 4) ? CK_REPEAT : CK_OFFER;
}

static void play(struct schedule *s)
{
	struct ck_nri_rule rules[4];
	choose_options(s, rules);
	for (unsigned i = 0; i < PODS; i++) {
		snprintf(s->pods[i].name, sizeof(s->pods[i].name), "web-%u", i);
		snprintf(s->pods[i].uid, sizeof(s->pods[i].uid), "uid-%u", i);
		s->pods[i].env = "one";
		s->pods[i].attempt = 1;
	}
	open_all(s);
	for (unsigned i = 1; i <= STEPS && !s->oracle.complaint[0]; i++) {
		step(s);
		move(s);
		harvest(s);
		look_what_is_shown(s);
		if (i % PAUSE_EVERY == 0)
			pause_all(s);
		else
			oracle_check(&s->oracle, false);
	}
}

bool schedule_play(unsigned seed, struct schedule_counts *counts, bool trace, char *complaint,
		   size_t size)
{
	randombytes_set_implementation(&seeded);
	drawn = seed;
	struct schedule s = { .f = fixture_new(), .w = nw_new(), .counts = counts, .trace = trace };
	s.sends = calloc(SENDS, sizeof(*s.sends));
	assert_non_null(s.sends);
	s.w->rng = seed * 2654435761u | 1;
	nw_over(s.w, s.f);
	oracle_init(&s.oracle, s.w);
	play(&s);
	counts->objects += s.ids;
	counts->runs += s.oracle.runs;
	counts->lists += s.oracle.lists;
	counts->stops += s.oracle.stops;
	counts->removes += s.oracle.removes;
	counts->cancels += s.oracle.cancels;
	counts->debts += s.oracle.debts;
	snprintf(complaint, size, "%s", s.oracle.complaint);
	for (unsigned i = 0; i < TURNS; i++)
		if (s.turns[i].turn)
			drop(&s.turns[i]);
	if (trace && complaint[0])
		for (size_t i = 0; i < s.w->plugins_n; i++)
			printf("connection %zu %s-%s: %s\n", i, s.w->plugins[i]->index,
			       s.w->plugins[i]->base, plugin_story(s.w->plugins[i]));
	fx_cut(s.f);
	nw_close(s.w);
	for (unsigned i = 0; i < s.sends_n; i++)
		nw_sent_free(&s.sends[i]);
	fixture_free(s.f);
	nw_free(s.w);
	free(s.sends);
	oracle_fini(&s.oracle);
	return !complaint[0];
}
