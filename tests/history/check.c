/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What must hold in every history:
 *
 *	no two creations of one key at a time, and none for what exists
 *	nobody gets what was made for another request, or what plugins were not told of
 *	what is delivered or runs is neither hidden nor destroyed, nor is a sandbox that holds it
 *	what was handed to nobody is hidden
 *	no other attempt is created of what is being started, or was when nobody waited
 *	plugins hear of each object once, of its end if they heard of it, and in this order
 *	in the end everything that exists is committed, and the cache knows nothing else
 *	the database is sound after each life
 */
#include <string.h>

#include "tests/history/world.h"
#include "tests/model/check-machine.h"
#include "cache/cache.h"
#include "cache/store/store.h"

/* ---- when something happens ------------------------------------------------------------------ */

void check_outcome(struct world *w, int outcome)
{
	static const int allowed[] = {
		CK_CREATE,    CK_WAIT,           CK_HAND_BACK,   CK_BUSY,       CK_KEPT,
		CK_DRAINED,   -CK_EFAILED,       -CK_EABANDONED, -CK_ECONFLICT, -CK_EUNAVAILABLE,
		-CK_EREFUSED, -CK_EPRECONDITION, -CK_EINVAL,     -CK_ENOMEM,
	};
	for (size_t i = 0; i < CK_COUNT(allowed); i++)
		if (outcome == allowed[i])
			return;
	world_wrong(w, "a turn is decided %d, which is not documented", outcome);
}

/* It died, or the kubelet has begun to stop it. Containers end with their sandbox. */
static bool has_ended(const struct world *w, const struct object *o)
{
	const struct object *pod = o->req.sandbox >= 0 ? &w->objects[o->req.sandbox] : o;
	return o->stopping || pod->stopping || o->condition == CK_CONDITION_DEAD ||
	       pod->condition == CK_CONDITION_DEAD;
}

/* one uid has one name, and one sandbox has one pod */
static void check_names(struct world *w, const struct caller *c)
{
	const struct request *req = &c->req;
	if (c->turn->m.again)
		return; /* it was begun before anybody knew better, and is brought to its end */
	for (int i = 0; i < w->objects_n; i++) {
		const struct object *o = &w->objects[i];
		if (o->exempt || o->stage != EXISTS || !o->handed)
			continue;
		/* the uid of a pod that has ended says nothing any more */
		if (req->kind == CK_SANDBOX && o->req.uid == req->uid && o->req.pod != req->pod &&
		    !has_ended(w, o))
			world_wrong(w, "%s is created, and %s has its uid", runtime_pod(req),
				    o->id);
		if (req->sandbox == i && (o->req.uid != req->uid || o->req.pod != req->pod))
			world_wrong(w, "a container is created in %s of another pod", o->id);
	}
}

void check_create(struct world *w, const struct caller *c)
{
	bool again = c->turn->m.again;
	check_names(w, c);
	for (int i = 0; i < w->objects_n; i++) {
		const struct object *o = &w->objects[i];
		if (!o->ours || o->exempt || o->doomed)
			continue;
		if (o->stage == MAKING && !again && runtime_name_same(&o->req, &c->req))
			world_wrong(w, "caller %d is to create what is being created as %s",
				    (int)(c - w->callers), o->id);
		bool beside = o->starting == w->life ||
			      (o->unheard && o->condition == CK_CONDITION_RUNNING);
		/* a creation that was lost had begun before */
		if (o->stage == EXISTS && beside && !again && !has_ended(w, o) &&
		    o->req.kind == CK_CONTAINER && c->req.kind == CK_CONTAINER &&
		    o->req.sandbox == c->req.sandbox && o->req.name == c->req.name)
			world_wrong(w, "caller %d is to create, and %s is or was started",
				    (int)(c - w->callers), o->id);
		if (c->req.sandbox == i && o->stage == EXISTS && o->stop_known)
			world_wrong(w, "caller %d is to create in %s, which stops",
				    (int)(c - w->callers), o->id);
		if (o->stage == EXISTS && !again && !o->stopping && !o->handed &&
		    o->condition != CK_CONDITION_DEAD && runtime_key_same(&o->req, &c->req))
			world_wrong(w, "caller %d is to create what exists as %s",
				    (int)(c - w->callers), o->id);
	}
}

/* found in use, also earlier, it is the kubelet's before plugins have heard of it (K22) */
static bool is_used(const struct world *w, int object)
{
	if (w->objects[object].condition == CK_CONDITION_RUNNING)
		return true;
	for (int i = 0; i < w->objects_n; i++)
		if (w->objects[i].req.kind == CK_CONTAINER && w->objects[i].stage != MAKING &&
		    w->objects[i].req.sandbox == object)
			return true;
	return false;
}

/* Was it ever asked for before? A creation that was begun on disk is looked for after a kill, also
 * if its caller never heard that it was to create. */
static bool is_asked_for(const struct world *w, const struct request *req)
{
	int n = 0;
	for (int i = 0; i < w->asked_n; i++)
		n += runtime_key_same(&w->asked[i], req);
	for (int i = 0; i < w->objects_n; i++)
		n += w->objects[i].ours && runtime_key_same(&w->objects[i].req, req);
	return n > 1; /* @req itself is one */
}

void check_handed(struct world *w, const struct caller *c, int object)
{
	const struct object *o = &w->objects[object];
	if (o->exempt)
		return;
	if (!o->ours) { /* the search for a lost creation may have found it */
		if (!is_asked_for(w, &c->req))
			world_wrong(w, "%s is handed back, and was never asked for", o->id);
		return;
	}
	if (o->seen_dead && !c->owed)
		world_wrong(w, "%s is handed back, and was seen dead", o->id);
	if (!runtime_key_same(&o->req, &c->req) || !runtime_name_same(&o->req, &c->req) ||
	    (o->req.version & 1) != (c->req.version & 1))
		world_wrong(w, "%s was made for another request", o->id);
	if (o->stage == OVER && o->destroyed)
		world_wrong(w, "%s is handed back, and was destroyed", o->id);
	if (o->stage == MAKING)
		world_wrong(w, "%s is handed back, and is not there yet", o->id);
	if (!w->options.hooks || !*w->names || is_used(w, object))
		return;
	if (!o->run_done && o->chosen == w->life)
		world_wrong(w, "%s is handed back, and plugins have not agreed", o->id);
	if (!o->chosen)
		world_wrong(w, "%s is handed back, and no plugin was chosen", o->id);
}

static bool in_use(const struct object *o)
{
	if (o->stage != EXISTS || o->stopping)
		return false;
	return o->condition == CK_CONDITION_RUNNING || (o->delivered && !o->exempt);
}

void check_drained(struct world *w, int object)
{
	for (int i = 0; i < w->objects_n; i++) {
		const struct object *c = &w->objects[i];
		if (c->req.kind != CK_CONTAINER || c->req.sandbox != object || c->exempt ||
		    !c->ours || c->doomed)
			continue;
		if (c->stage == MAKING)
			world_wrong(w, "%s is drained, and %s is being made in it",
				    w->objects[object].id, c->id);
	}
}

void check_destroy(struct world *w, int object)
{
	const struct object *o = &w->objects[object];
	if (in_use(o))
		world_wrong(w, "%s is destroyed, and it is in use", o->id);
	for (int i = 0; i < w->objects_n; i++) {
		const struct object *c = &w->objects[i];
		/* nobody knows what was put there after the cache had looked, and nothing runs in a
		 * sandbox that is dead */
		if (c->req.kind == CK_CONTAINER && c->req.sandbox == object && in_use(c) &&
		    o->condition != CK_CONDITION_DEAD && (c->ours || c->taken))
			world_wrong(w, "%s is destroyed, and %s in it is in use", o->id, c->id);
	}
	if (o->stage == EXISTS && o->run_done && !o->stop_done && !o->exempt && w->options.hooks)
		world_wrong(w, "%s is destroyed, and plugins have not heard that it stops", o->id);
}

/* ---- after each step ------------------------------------------------------------------------- */

struct states {
	struct world *w;
	enum ck_state of[OBJECTS]; /* 0: no entry has this id */
};

static int note_state(const struct ck_entry_info *entry, void *userdata)
{
	struct states *states = userdata;
	int object = *entry->id ? runtime_find(states->w, entry->id) : -1;
	/* of a sandbox without a name only a stop is known; a creation may still have its id */
	if (object >= 0 && *entry->pod_name)
		states->of[object] = entry->state;
	return 0;
}

static bool is_committed(enum ck_state state)
{
	return state == CK_STATE_COMMITTED || state == CK_STATE_ENDED;
}

static void check_seen(struct world *w, const struct states *states, int i, bool hidden)
{
	const struct object *o = &w->objects[i];
	bool committed = is_committed(states->of[i]);
	if (states->of[i] && hidden == committed)
		world_wrong(w, "%s is %s, and its entry is in state %d", o->id,
			    hidden ? "hidden" : "visible", (int)states->of[i]);
	if (hidden && o->delivered && !o->stopping && !o->exempt)
		world_wrong(w, "%s was delivered, and is hidden", o->id);
	if (!hidden && !committed && o->ours && !o->handed && !o->exempt)
		world_wrong(w, "%s is visible, and was handed to nobody", o->id);
}

void check_step(struct world *w)
{
	struct states states = { .w = w };
	struct ck_view *view;
	char why[200];
	if (w->failure[0] || w->dead)
		return;
	if (!check_machine(w->cache->machine, why, sizeof(why)))
		world_wrong(w, "the machine's own check: %s", why);
	if (ck_reconciled(w->cache) != 1)
		return;
	ck_entries(w->cache, note_state, &states);
	if (ck_view_begin(w->cache, &view, NULL) < 0)
		return;
	for (int i = 0; i < w->objects_n; i++) {
		struct ck_object o;
		if (w->objects[i].stage != EXISTS)
			continue;
		runtime_object(w, i, w->objects[i].condition, &o);
		int hides = ck_view_hides(view, &o);
		if (hides >= 0)
			check_seen(w, &states, i, hides);
	}
	ck_view_free(view);
}

/* ---- in the end ------------------------------------------------------------------------------ */

static int end_state(const struct ck_entry_info *entry, void *userdata)
{
	struct world *w = userdata;
	int object = *entry->id ? runtime_find(w, entry->id) : -1;
	if (!is_committed(entry->state))
		world_wrong(w, "in the end, %s is in state %d: %s", *entry->id ? entry->id : "?",
			    (int)entry->state, entry->why);
	else if (object < 0 || w->objects[object].stage != EXISTS)
		world_wrong(w, "in the end, %s is committed, and does not exist", entry->id);
	return 0;
}

/* It exists and nobody has it. A sandbox may be found in lists, and what is in a sandbox that stops
 * goes with it. */
static bool is_unclaimed(const struct world *w, const struct object *o)
{
	if (o->stage != EXISTS || !o->ours || o->handed || o->exempt ||
	    o->req.kind != CK_CONTAINER || o->condition != CK_CONDITION_READY)
		return false;
	return o->req.sandbox < 0 || !w->objects[o->req.sandbox].stopping;
}

void check_end(struct world *w)
{
	struct states states = { .w = w };
	if (w->failure[0])
		return;
	ck_entries(w->cache, end_state, w);
	ck_entries(w->cache, note_state, &states);
	for (int i = 0; i < w->objects_n; i++) {
		const struct object *o = &w->objects[i];
		if (o->stage == EXISTS && !states.of[i])
			world_wrong(w, "in the end, %s exists, and the cache does not know it",
				    o->id);
		if (is_unclaimed(w, o))
			world_wrong(w, "in the end, %s exists, and was handed to nobody", o->id);
		if (o->stage == OVER && o->destroyed && o->runs && !o->exempt && w->options.hooks &&
		    (!o->stop_done || !o->remove_done))
			world_wrong(w, "plugins were told of %s, not of its end", o->id);
	}
	if (ck_cache_timeout(w->cache) <= w->now)
		world_wrong(w, "in the end, the event loop is still busy");
}

static void finding(const char *text, void *userdata)
{
	world_wrong(userdata, "the database: %s", text);
}

void check_database(struct world *w)
{
	struct ck_error err;
	if (w->failure[0])
		return;
	int r = ck_reader_check(w->dir, finding, w, &err);
	if (r < 0)
		world_wrong(w, "the database cannot be checked: %s", err.text);
}
