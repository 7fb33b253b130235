/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of a history. */
#include <string.h>

#include "tests/history/world.h"
#include "cache/starts.h"
#include "src/base/fault.h"

/* ---- choosing -------------------------------------------------------------------------------- */

/* the @nth object that fits, or -1 */
static int pick(struct world *w, unsigned nth, bool (*fits)(const struct object *))
{
	int n = 0;
	for (int i = 0; i < w->objects_n; i++)
		n += fits(&w->objects[i]);
	if (!n)
		return -1;
	nth %= (unsigned)n;
	for (int i = w->objects_n - 1; i >= 0; i--) /* the newest first */
		if (fits(&w->objects[i]) && nth-- == 0)
			return i;
	return -1;
}

static bool is_made(const struct object *o)
{
	return o->stage == MAKING && o->turn >= 0;
}

/* its creator has yet to say how it ended */
static bool is_unreported(const struct object *o)
{
	return o->turn >= 0 && !o->doomed;
}

static bool exists(const struct object *o)
{
	return o->stage == EXISTS;
}

static bool is_sandbox(const struct object *o)
{
	return o->stage == EXISTS && o->req.kind == CK_SANDBOX;
}

static bool is_handed_sandbox(const struct object *o)
{
	return is_sandbox(o) && o->handed && !o->stopping;
}

static bool is_handed_container(const struct object *o)
{
	return o->stage == EXISTS && o->req.kind == CK_CONTAINER && o->handed;
}

static bool is_handed(const struct object *o)
{
	return o->stage == EXISTS && o->handed;
}

static struct caller *pick_caller(struct world *w, unsigned nth, bool handed)
{
	unsigned n = 0;
	for (int pass = 0; pass < 2; pass++) {
		for (int i = 0; i < TURNS; i++) {
			struct caller *c = &w->callers[i];
			if (!c->turn || (handed && c->object < 0))
				continue;
			if (pass == 1 && nth-- == 0)
				return c;
			n += pass == 0;
		}
		if (!n)
			return NULL;
		nth = pass == 0 ? nth % n : nth;
	}
	return NULL;
}

/* ---- requests -------------------------------------------------------------------------------- */

static struct request request_of(struct world *w, const struct step *s)
{
	struct request req = { .kind = s->a & 1 ? CK_CONTAINER : CK_SANDBOX, .sandbox = -1 };
	req.pod = s->a >> 1 & 1;
	req.uid = 2 * req.pod + ((s->a >> 2 & 7) == 0);
	if ((s->a >> 5 & 7) == 0)
		req.uid = s->c & 3; /* perhaps one uid of two names */
	req.attempt = (s->b & 3) == 0 ? s->b >> 2 & 1 : 0;
	req.version = (s->b >> 3 & 3) == 0 ? s->b >> 5 & 3 : 0;
	if (req.kind == CK_SANDBOX)
		return req;
	req.name = s->b >> 7 & 1;
	req.sandbox = pick(w, s->c & 7, s->c & 0x38 ? is_handed_sandbox : is_sandbox);
	if (req.sandbox < 0)
		return req;
	if (s->c >> 4 != 7) { /* else perhaps a pod that is not its sandbox's */
		req.pod = w->objects[req.sandbox].req.pod;
		req.uid = w->objects[req.sandbox].req.uid;
	}
	return req;
}

static void step_begin(struct world *w, const struct step *s)
{
	static const unsigned seconds[] = { 10, 2, 120, 0, 30, 5, 10, 120 };
	struct request req = request_of(w, s);
	if (req.kind == CK_CONTAINER && req.sandbox < 0 && s->c % 16)
		req = (struct request){ .kind = CK_SANDBOX, .sandbox = -1 };
	callers_begin(w, &req, seconds[s->c >> 2 & 7] * CK_NS_PER_S, s->c == 77);
}

/* the same again, as the kubelet does it */
static void step_repeat(struct world *w, const struct step *s)
{
	struct request req;
	if (!w->objects_n)
		return;
	int i = w->objects_n - 1 - s->a % w->objects_n;
	req = w->objects[s->b % 4 ? i : w->objects_n - 1].req;
	if (s->c % 8 == 0)
		req.version ^= 1;
	if (s->c % 16 == 1)
		req.attempt ^= 1;
	if (s->c % 16 == 2)
		req.version ^= 2;
	if (s->c % 16 == 3) { /* a container: one sandbox of two pods */
		req.pod ^= 1;
		req.uid = 2 * req.pod;
	}
	callers_begin(w, &req, (s->b & 1 ? 120 : 10) * CK_NS_PER_S, false);
}

/* ---- creations ------------------------------------------------------------------------------- */

static void step_finish(struct world *w, const struct step *s)
{
	int object = pick(w, s->a % 4, is_unreported);
	if (object >= 0)
		callers_finish(w, object);
}

/* it exists before its creator says so */
static void step_exists(struct world *w, const struct step *s)
{
	int object = pick(w, s->a % 4, is_made);
	if (object < 0 || w->objects[object].doomed)
		return;
	world_say(w, "  %s exists", w->objects[object].id);
	w->objects[object].stage = EXISTS;
}

static void step_fail(struct world *w, const struct step *s)
{
	int object = pick(w, s->a % 4, is_made);
	if (object >= 0)
		callers_fail(w, object);
}

static void step_lose(struct world *w, const struct step *s)
{
	int object = pick(w, s->a % 4, is_made);
	if (object >= 0)
		callers_lose(w, object);
}

static void step_leave(struct world *w, const struct step *s)
{
	struct caller *c = pick_caller(w, s->a, false);
	if (!c)
		return;
	world_say(w, "  caller %d leaves", (int)(c - w->callers));
	c->left = true;
	ck_turn_leave(c->turn);
}

static void step_free(struct world *w, const struct step *s)
{
	struct caller *c = pick_caller(w, s->a, false);
	if (c && (c->over || c->left || s->b % 4 == 0))
		callers_free(w, c);
}

static void step_report(struct world *w, const struct step *s)
{
	struct caller *c = pick_caller(w, s->a, true);
	if (c)
		callers_report(w, c, s->b % 4);
}

static void step_stage(struct world *w, const struct step *s)
{
	int object = pick(w, s->a, is_made);
	if (object >= 0)
		ck_turn_stage(w->callers[w->objects[object].turn].turn, "network");
}

/* ---- what the kubelet sees and does ---------------------------------------------------------- */

static void list(struct world *w, struct ck_view *view, enum ck_kind kind)
{
	struct ck_object objects[OBJECTS];
	size_t n = 0;
	world_say(w, "  a list of %s", kind == CK_SANDBOX ? "sandboxes" : "containers");
	for (int i = 0; i < w->objects_n; i++)
		if (w->objects[i].stage == EXISTS && w->objects[i].req.kind == kind)
			runtime_object(w, i, w->objects[i].condition, &objects[n++]);
	ck_view_listed(view, kind, objects, n);
}

static void step_list(struct world *w, const struct step *s)
{
	struct ck_view **view = &w->views[s->a % VIEWS];
	enum ck_kind kind = s->c & 1 ? CK_CONTAINER : CK_SANDBOX;
	if (*view || s->b % 4) { /* a view that is open, or one for this list only */
		struct ck_view *now = *view;
		*view = NULL;
		if (!now && ck_view_begin(w->cache, &now, NULL) < 0)
			return;
		list(w, now, kind);
		ck_view_free(now);
	} else {
		world_say(w, "  a view is opened");
		ck_view_begin(w->cache, view, NULL);
	}
}

static void step_seen(struct world *w, const struct step *s)
{
	int i = pick(w, s->a, exists);
	if (i < 0)
		return;
	struct object *o = &w->objects[i];
	world_say(w, "  %s is seen: %d", o->id, (int)o->condition);
	int r = ck_object_seen(w->cache, o->req.kind, o->id, o->condition);
	o->seen_dead = o->seen_dead ||
		       (r == 0 && o->turn < 0 && o->condition == CK_CONDITION_DEAD && !w->dead);
	/* who waits for it may be decided, at once if no plugin is to be told, and hear it later */
	for (i = 0; i < TURNS; i++)
		w->callers[i].owed = w->callers[i].owed ||
				     ((o->handed || o->run_done || !o->chosen) &&
				      w->callers[i].turn &&
				      runtime_key_same(&w->callers[i].req, &o->req));
}

/* who was handed a container can start it, also if its answer was not reported */
static void step_start(struct world *w, const struct step *s)
{
	int i = pick(w, s->a, is_handed_container);
	if (i < 0 || w->objects[i].condition != CK_CONDITION_READY)
		return;
	struct object *o = &w->objects[i];
	int r = ck_container_starting(w->cache, o->id);
	world_say(w, "  %s is started: %d", o->id, r);
	if (w->dead)
		return;
	if (r < 0 && o->delivered && !o->exempt)
		world_wrong(w, "%s was delivered, and cannot be started: %d", o->id, r);
	if (r < 0)
		return;
	o->condition = CK_CONDITION_RUNNING;
	o->delivered = true;
	o->exempt = o->exempt || w->lags;
	if (s->b & 1)
		ck_object_used(w->cache, o->req.kind, o->id);
	if (s->b & 2)
		ck_object_seen(w->cache, o->req.kind, o->id, o->condition);
}

static bool is_starting(const struct object *o)
{
	return o->stage == EXISTS && o->starting;
}

/* the host carries a start on, and its caller may have gone by its end (K34) */
static void step_start_begin(struct world *w, const struct step *s)
{
	int i = pick(w, s->a, is_handed_container);
	if (i < 0 || w->objects[i].condition != CK_CONDITION_READY ||
	    w->objects[i].starting == w->life)
		return;
	struct object *o = &w->objects[i];
	char sandbox[CK_ID_MAX + 1] = "";
	int r = ck_container_starting(w->cache, o->id);
	if (r == 0)
		r = ck_start_begin(w->cache, o->id, sandbox);
	world_say(w, "  the start of %s begins: %d", o->id, r);
	if (r < 0 || w->dead)
		return;
	if (strcmp(sandbox, runtime_sandbox(w, &o->req)) != 0)
		world_wrong(w, "%s is started in sandbox '%s'", o->id, sandbox);
	o->starting = w->life;
	o->delivered = true;
	o->exempt = o->exempt || w->lags;
}

/* @how: as it ends; @unheard: it runs, although that is not known */
static void start_ends(struct world *w, struct object *o, unsigned how, bool unheard)
{
	bool ready = o->condition == CK_CONDITION_READY && !o->stopping;
	enum ck_start_end end = how % 4 == 3             ? CK_START_OPEN
				: !ready || how % 4 == 2 ? CK_START_REFUSED
				: how % 4                ? CK_START_TOO_LATE
							 : CK_START_HEARD;
	world_say(w, "  the start of %s ends: %d", o->id, (int)end);
	o->starting = 0;
	o->unheard = end == CK_START_TOO_LATE;
	if (end == CK_START_HEARD || end == CK_START_TOO_LATE ||
	    (end == CK_START_OPEN && ready && unheard))
		o->condition = CK_CONDITION_RUNNING;
	ck_start_end(w->cache, o->id, end, CK_GRPC_UNKNOWN);
}

static void step_start_end(struct world *w, const struct step *s)
{
	int i = pick(w, s->a, is_starting);
	if (i >= 0 && w->objects[i].starting == w->life)
		start_ends(w, &w->objects[i], s->b, s->c & 1);
}

static void step_die(struct world *w, const struct step *s)
{
	int i = pick(w, s->a, exists);
	if (i < 0)
		return;
	world_say(w, "  %s dies", w->objects[i].id);
	w->objects[i].condition = CK_CONDITION_DEAD;
}

static void step_vanish(struct world *w, const struct step *s)
{
	int i = pick(w, s->a, exists);
	if (i < 0)
		return;
	world_say(w, "  %s vanishes", w->objects[i].id);
	runtime_end(w, i);
}

static void step_stop(struct world *w, const struct step *s)
{
	int i = pick(w, s->a, s->b % 4 ? is_handed_sandbox : is_sandbox);
	if (i < 0 || s->b == 3) {
		world_say(w, "  stop sb-none");
		ck_sandbox_stopping(w->cache, "sb-none");
		return;
	}
	struct object *o = &w->objects[i];
	world_say(w, "  stop %s", o->id);
	o->stopping = true;
	bool done = ck_sandbox_stopping(w->cache, o->id) == 0 && !w->dead;
	o->stop_known = o->stop_known || (o->handed && done);
	for (int k = 0; k < w->objects_n && s->c % 4; k++) /* else the call fails */
		if (k == i ||
		    (w->objects[k].req.kind == CK_CONTAINER && w->objects[k].req.sandbox == i))
			w->objects[k].condition = CK_CONDITION_DEAD;
}

static void step_remove(struct world *w, const struct step *s)
{
	int i = pick(w, s->a, s->b % 4 ? is_handed : exists);
	if (i >= 0)
		callers_remove(w, i, s->c & 1 ? 10 * CK_NS_PER_S : 120 * CK_NS_PER_S);
}

/* somebody works with the runtime without the cache */
static void plant(struct world *w, const struct step *s, bool taken)
{
	struct request req;
	int i = pick(w, s->a, is_sandbox);
	if (i < 0)
		return;
	req = (struct request){ .kind = CK_CONTAINER,
				.pod = w->objects[i].req.pod,
				.uid = w->objects[i].req.uid,
				.name = s->b & 1,
				.attempt = s->b >> 1 & 1,
				.sandbox = i };
	int c = runtime_add(w, &req);
	if (c < 0 || w->objects[c].doomed) {
		if (c >= 0)
			w->objects[c].stage = OVER;
		return;
	}
	w->objects[c].stage = EXISTS;
	w->objects[c].taken = taken;
	if (s->c & 3)
		w->objects[c].condition = CK_CONDITION_RUNNING;
	world_say(w, "  somebody %s %s in %s",
		  w->objects[c].condition == CK_CONDITION_RUNNING ? "runs" : "makes",
		  w->objects[c].id, w->objects[i].id);
}

static void step_plant(struct world *w, const struct step *s)
{
	plant(w, s, false);
}

/* ---- the host -------------------------------------------------------------------------------- */

static void step_hold(struct world *w, const struct step *s)
{
	enum call call = (enum call)(s->a % CALLS);
	w->hold[call] = !w->hold[call];
	world_say(w, "  calls %d are %s", (int)call, w->hold[call] ? "held back" : "answered");
}

static void step_answer(struct world *w, const struct step *s)
{
	for (unsigned n = s->b % 4 + 1; n && w->jobs_n && !w->dead; n--) {
		world_say(w, "  call %d is answered", (int)w->jobs[s->a % w->jobs_n].call);
		runtime_answer(w, s->a % w->jobs_n);
	}
}

static void step_trouble(struct world *w, const struct step *s)
{
	enum call call = (enum call)(s->a % CALLS);
	if (call == CALL_STOP) {
		w->absent = !w->absent;
		world_say(w, "  the required plugin is %s", w->absent ? "gone" : "back");
		return;
	}
	w->fail[call] = !w->fail[call];
	world_say(w, "  calls %d %s", (int)call, w->fail[call] ? "fail" : "succeed");
}

struct chosen {
	unsigned left;
	uint64_t entry;
};

static int choose_entry(const struct ck_entry_info *entry, void *userdata)
{
	struct chosen *chosen = userdata;
	chosen->entry = entry->entry;
	return chosen->left-- == 0;
}

static int exempt_it(const struct ck_entry_info *entry, void *userdata)
{
	struct world *w = userdata;
	int object = *entry->id ? runtime_find(w, entry->id) : -1;
	if (object >= 0 && entry->state == CK_STATE_EVICTING)
		w->objects[object].exempt = true;
	/* by its key: its id is not known */
	for (int i = 0; i < w->objects_n && !*entry->id && entry->state == CK_STATE_EVICTING; i++)
		w->objects[i].exempt = true;
	return 0;
}

static void step_evict(struct world *w, const struct step *s)
{
	struct chosen chosen = { .left = s->a % 4 };
	char text[200];
	bool release = s->b % 4 == 0;
	ck_entries(w->cache, choose_entry, &chosen);
	if (!chosen.entry || w->dead)
		return;
	world_say(w, "  an administrator %s %llu", release ? "releases" : "evicts",
		  (unsigned long long)chosen.entry);
	if (release)
		ck_entries(w->cache, exempt_it, w);
	if (ck_round_enter(w->cache, NULL) < 0)
		return;
	ck_machine_evict(w->cache->machine, chosen.entry, release, text, sizeof(text));
	ck_round_leave(w->cache);
}

/* ---- time and disk --------------------------------------------------------------------------- */

static void step_time(struct world *w, const struct step *s)
{
	static const unsigned ms[] = { 100, 500, 1000, 3000, 7000, 12000, 31000, 70000 };
	uint64_t by = ms[s->a % CK_COUNT(ms)] * CK_NS_PER_MS;
	world_say(w, "  %u ms later", ms[s->a % CK_COUNT(ms)]);
	if (s->b % 8) {
		world_advance(w, by);
		return;
	}
	w->now += by; /* the loop stood still */
	runtime_orphans(w);
	world_settle(w);
}

static void step_disk(struct world *w, const struct step *s)
{
	bool full = !w->disk_full && s->a % 2;
	world_say(w, "  the disk is %s", full ? "full" : "well");
	world_disk_is(w, full);
}

/* one call of the next steps fails */
static void step_fault(struct world *w, const struct step *s)
{
	if (w->disk_full)
		return;
	world_say(w, "  the %u. %s fails", s->a % 64u + 1, s->b % 4 ? "allocation" : "write");
	w->awaits_fault = s->b % 4 == 0;
	w->lags = w->lags || w->awaits_fault;
	ck_fault_arm(s->b % 4 ? CK_FAULT_ALLOC : CK_FAULT_STORE, s->a % 64u + 1, false);
	w->tally.faults++;
}

static void new_life(struct world *w, const struct step *s)
{
	bool reboot = s->c % 8 == 0;
	bool faulty = w->disk_full;
	ck_fault_arm(0, 0, false);
	w->awaits_fault = false;
	world_end_life(w, s->b % 2);
	if (faulty)
		world_disk_is(w, s->a % 2);
	if (reboot) {
		world_say(w, "  another boot");
		world_reboot(w);
	} else {
		w->now += s->b % 4 * CK_NS_PER_S;
		runtime_orphans(w);
		if (s->b % 8 == 5)
			plant(w, s, true); /* the kubelet works without the cache meanwhile */
	}
	if (!w->failure[0])
		world_open(w);
	if (!w->failure[0])
		world_settle(w);
}

static void step_crash(struct world *w, const struct step *s)
{
	static const char *const whens[] = { "before", "after" };
	if (s->a % 3 == 2) {
		world_kill(w);
		return;
	}
	w->crash = whens[s->a % 3];
	world_say(w, "  it will be killed %s the next commit", w->crash);
}

static void step_restart(struct world *w, const struct step *s)
{
	world_say(w, "  a restart");
	new_life(w, s);
}

/* ---- all of them ----------------------------------------------------------------------------- */

static const struct {
	unsigned weight;
	void (*play)(struct world *w, const struct step *s);
} steps[] = {
	{ 30, step_begin },  { 26, step_repeat }, { 28, step_finish }, { 8, step_exists },
	{ 4, step_fail },    { 6, step_lose },    { 8, step_leave },   { 10, step_free },
	{ 14, step_report }, { 2, step_stage },   { 10, step_list },   { 4, step_seen },
	{ 8, step_start },   { 3, step_die },     { 2, step_vanish },  { 6, step_stop },
	{ 6, step_remove },  { 3, step_plant },   { 10, step_hold },   { 14, step_answer },
	{ 5, step_trouble }, { 4, step_evict },   { 24, step_time },   { 3, step_disk },
	{ 4, step_fault },   { 7, step_crash },   { 3, step_restart }, { 6, step_start_begin },
	{ 6, step_start_end },
};

static uint64_t next_random(uint64_t *random)
{
	uint64_t z = *random += UINT64_C(0x9e3779b97f4a7c15); /* splitmix64 */
	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

struct step step_random(uint64_t *random)
{
	uint64_t r = next_random(random);
	struct step s = { .a = (unsigned char)r,
			  .b = (unsigned char)(r >> 8),
			  .c = (unsigned char)(r >> 16) };
	unsigned sum = 0;
	for (size_t i = 0; i < CK_COUNT(steps); i++)
		sum += steps[i].weight;
	unsigned at = (unsigned)(r >> 32) % sum;
	while (at >= steps[s.op].weight)
		at -= steps[s.op++].weight;
	return s;
}

void step_play(struct world *w, const struct step *s)
{
	steps[s->op].play(w, s);
	if (!w->dead && s->c % 4) /* else what it caused mixes with what comes next */
		world_settle(w);
	if (w->dead && !w->failure[0])
		new_life(w, s);
	if (!w->failure[0])
		check_step(w);
}

static void whole_lists(struct world *w)
{
	for (int kind = CK_SANDBOX; kind <= CK_CONTAINER; kind++) {
		struct ck_view *view;
		if (ck_view_begin(w->cache, &view, NULL) < 0)
			continue;
		list(w, view, (enum ck_kind)kind);
		ck_view_free(view);
	}
}

static void callers_return(struct world *w)
{
	for (int i = 0; i < w->objects_n && !w->failure[0]; i++) {
		const struct object *o = &w->objects[i];
		if (o->turn < 0)
			continue;
		if (o->stage == EXISTS || (o->stage == MAKING && !o->doomed && i % 2))
			callers_finish(w, i);
		else
			callers_fail(w, i);
	}
	for (int i = 0; i < TURNS; i++)
		if (w->callers[i].turn && (w->callers[i].over || i % 2))
			callers_free(w, &w->callers[i]);
}

void step_drain(struct world *w)
{
	static const unsigned seconds[] = { 1, 20, 70, 130, 70, 130, 70 };
	w->crash = NULL;
	world_disk_is(w, false);
	memset(w->hold, 0, sizeof(w->hold));
	memset(w->fail, 0, sizeof(w->fail));
	w->absent = false;
	for (int i = 0; i < VIEWS; i++) {
		ck_view_free(w->views[i]);
		w->views[i] = NULL;
	}
	world_say(w, "  everything may end");
	while (w->jobs_n && !w->failure[0])
		runtime_answer(w, 0);
	for (int i = 0; i < w->objects_n; i++)
		if (is_starting(&w->objects[i]) && w->objects[i].starting == w->life)
			start_ends(w, &w->objects[i], 0, false);
	for (size_t i = 0; i < CK_COUNT(seconds) && !w->failure[0]; i++) {
		callers_return(w);
		world_advance(w, seconds[i] * CK_NS_PER_S);
		check_step(w);
		whole_lists(w);
	}
	for (int i = 0; i < TURNS && !w->failure[0]; i++) {
		if (w->callers[i].turn && !w->callers[i].over && !w->callers[i].left)
			world_wrong(w, "in the end, caller %d has heard nothing", i);
		if (w->callers[i].turn)
			callers_free(w, &w->callers[i]);
	}
	if (!w->failure[0])
		world_settle(w);
	check_end(w);
}
