/* SPDX-License-Identifier: Apache-2.0 */
/* What the kubelet does: requests, and creations in the runtime for those that are to create. */
#include <string.h>

#include "cache/cache.h"
#include "tests/flow/fixture.h"
#include "tests/history/world.h"

static struct fx_ask ask_of(const struct world *w, const struct request *req)
{
	return (struct fx_ask){
		.kind = req->kind,
		.name = runtime_pod(req),
		.ns = "shop",
		.uid = runtime_uid(req),
		.sandbox = req->kind == CK_CONTAINER ? runtime_sandbox(w, req) : NULL,
		.container = req->kind == CK_CONTAINER ? runtime_container(req) : NULL,
		.attempt = req->attempt,
		.env = req->version & 1 ? "other" : NULL,
		.label = req->version & 2 ? "other" : NULL,
	};
}

static int free_place(const struct world *w)
{
	for (int i = 0; i < TURNS; i++)
		if (!w->callers[i].turn)
			return i;
	return -1;
}

static void hand(struct world *w, struct caller *c)
{
	struct ck_reply reply = { .size = sizeof(reply) };
	c->over = true;
	if (ck_turn_reply(c->turn, &reply) != 0) {
		world_wrong(w, "handed back, without a reply");
		return;
	}
	int object = runtime_find(w, reply.id);
	world_say(w, "    caller %d gets %s", (int)(c - w->callers), reply.id);
	if (object < 0) {
		world_wrong(w, "handed back %s, which never was", reply.id);
		return;
	}
	check_handed(w, c, object);
	w->objects[object].handed = true;
	c->object = object;
	w->tally.handed++;
}

static void create(struct world *w, struct caller *c)
{
	check_create(w, c);
	int object = runtime_add(w, &c->req);
	if (object < 0) { /* the history is long enough */
		struct ck_status full = { .size = sizeof(full), .grpc = 8, .message = "full" };
		ck_turn_fail(c->turn, &full, NULL);
		c->over = true;
		return;
	}
	w->objects[object].ours = true;
	w->objects[object].turn = (int)(c - w->callers);
	w->objects[object].exempt = w->lags;
	w->tally.begun++;
	world_say(w, "    caller %d creates %s%s", (int)(c - w->callers), w->objects[object].id,
		  w->objects[object].doomed ? ", whose name is taken" : "");
}

static void drained(struct world *w, struct caller *c)
{
	c->over = true;
	check_drained(w, c->drains);
	runtime_end(w, c->drains);
	world_say(w, "    caller %d removes %s", (int)(c - w->callers), w->objects[c->drains].id);
	ck_object_removed(w->cache, w->objects[c->drains].req.kind, w->objects[c->drains].id);
}

static void decided(struct ck_turn *turn, int outcome, void *userdata)
{
	struct world *w = userdata;
	if (w->dead)
		return;
	for (int i = 0; i < TURNS; i++) {
		struct caller *c = &w->callers[i];
		if (c->turn != turn)
			continue;
		world_say(w, "    caller %d hears %d", i, outcome);
		check_outcome(w, outcome);
		if (outcome == CK_CREATE)
			create(w, c);
		else if (outcome == CK_HAND_BACK)
			hand(w, c);
		else if (outcome == CK_DRAINED)
			drained(w, c);
		else if (outcome != CK_WAIT)
			c->over = true;
		return;
	}
	world_wrong(w, "a turn that was freed hears %d", outcome);
}

/* @r: what the call that began the turn returned */
static void begun(struct world *w, int place, struct ck_turn *turn, int r)
{
	if (w->dead || r < 0) {
		world_say(w, "    %d", r);
		w->callers[place].turn = w->dead ? turn : NULL;
		if (!w->dead && r != -CK_EDEADLINE)
			check_outcome(w, r);
		return;
	}
	w->callers[place].turn = turn;
	w->callers[place].waited = r == CK_WAIT;
	ck_turn_watch(turn, decided, w);
	decided(turn, r, w);
}

void callers_begin(struct world *w, const struct request *req, uint64_t timeout, bool expired)
{
	unsigned char bytes[4096];
	struct ck_error err = { 0 };
	struct ck_turn *turn = NULL;
	int place = free_place(w);
	if (place < 0)
		return;
	struct fx_ask ask = ask_of(w, req);
	struct ck_request request = { .size = sizeof(request),
				      .kind = req->kind,
				      .bytes = bytes,
				      .timeout = timeout,
				      .expired = expired };
	request.len = fx_bytes(&ask, bytes, sizeof(bytes));
	world_say(w, "  caller %d: %s %s of %s %s, attempt %u, version %u, in '%s', %llu s%s",
		  place, req->kind == CK_SANDBOX ? "sandbox" : "container", runtime_container(req),
		  runtime_pod(req), runtime_uid(req), req->attempt, req->version,
		  runtime_sandbox(w, req), (unsigned long long)(timeout / CK_NS_PER_S),
		  expired ? ", already over" : "");
	w->callers[place] = (struct caller){ .req = *req, .drains = -1, .object = -1 };
	if (w->asked_n < STEPS_MAX)
		w->asked[w->asked_n++] = *req;
	int r = ck_turn_begin(w->cache, &request, &turn, &err);
	if (r < 0)
		world_say(w, "    %s", err.text);
	begun(w, place, turn, r);
}

void callers_remove(struct world *w, int object, uint64_t timeout)
{
	struct ck_turn *turn = NULL;
	struct object *o = &w->objects[object];
	int place = free_place(w);
	if (place < 0)
		return;
	w->callers[place] = (struct caller){ .req = o->req, .drains = object, .object = -1 };
	world_say(w, "  caller %d: remove %s", place, o->id);
	o->stopping = true;
	int r = ck_remove_begin(w->cache, o->req.kind, o->id, timeout, &turn, NULL);
	begun(w, place, turn, r);
}

/* the turn that makes it, or NULL */
static struct caller *creator(struct world *w, const struct object *o)
{
	return o->turn < 0 ? NULL : &w->callers[o->turn];
}

void callers_finish(struct world *w, int object)
{
	struct object *o = &w->objects[object];
	struct ck_result result = { .size = sizeof(result), .id = o->id };
	struct ck_error err = { 0 };
	struct caller *c = creator(w, o);
	if (o->stage == MAKING)
		o->stage = EXISTS;
	world_say(w, "  caller %d: %s is made", o->turn, o->id);
	int r = ck_turn_finish(c->turn, &result, &err);
	world_say(w, "    %d %s", r, r < 0 ? err.text : "");
	if (w->dead || r == -CK_ENOMEM)
		return; /* tried again */
	o->turn = -1;
	o->since = w->now;
	w->tally.kept += r == CK_KEPT;
	if (r == CK_HAND_BACK && !c->over) /* its caller may have been answered by a list */
		hand(w, c);
	else if (r != CK_WAIT)
		c->over = true;
	check_outcome(w, r == -CK_ESTATE ? CK_WAIT : r);
}

void callers_fail(struct world *w, int object)
{
	struct object *o = &w->objects[object];
	/* a name that is taken, as one runtime or another says it */
	static const int taken[] = { 6, 2, 9 };
	struct ck_status why = { .size = sizeof(why),
				 .grpc = o->doomed ? taken[object % 3] : 3,
				 .message = "no" };
	struct caller *c = creator(w, o);
	world_say(w, "  caller %d: %s fails", o->turn, o->id);
	o->stage = OVER;
	o->turn = -1;
	/* the name is taken by what the cache asked for earlier, and so its outcome is unknown */
	bool unknown = o->doomed && c->turn->m.again;
	int r;
	do /* without memory nothing was said */
		r = unknown && o->req.attempt % 2 ? ck_turn_lost(c->turn, NULL)
						  : ck_turn_fail(c->turn, &why, NULL);
	while (r == -CK_ENOMEM);
	world_say(w, "    %d", r);
	c->over = c->over || !unknown;
}

void callers_lose(struct world *w, int object)
{
	struct object *o = &w->objects[object];
	struct caller *c = creator(w, o);
	world_say(w, "  caller %d: %s is lost", o->turn, o->id);
	runtime_orphan(w, o);
	ck_turn_lost(c->turn, NULL);
}

void callers_report(struct world *w, struct caller *c, bool delivered)
{
	struct object *o = &w->objects[c->object];
	world_say(w, "  caller %d: %s %s", (int)(c - w->callers), o->id,
		  delivered ? "arrived" : "did not arrive");
	c->object = -1;
	int r = ck_turn_answered(c->turn, delivered ? CK_DELIVERED : CK_LOST);
	if (!w->dead && r == 0 && delivered && o->stage == EXISTS) {
		o->delivered = true;
		o->exempt = o->exempt || w->lags;
	}
}

void callers_free(struct world *w, struct caller *c)
{
	int number = (int)(c - w->callers);
	world_say(w, "  caller %d goes", number);
	for (int i = 0; i < w->objects_n; i++)
		if (w->objects[i].turn == number)
			runtime_orphan(w, &w->objects[i]);
	struct ck_turn *turn = c->turn;
	*c = (struct caller){ .object = -1, .drains = -1 };
	ck_turn_free(turn);
}
