/* SPDX-License-Identifier: Apache-2.0 */
/* What can happen in the world of world.h. Each event first changes the world, then goes to the
 * machine, then is judged. */
#include <stdlib.h>
#include <string.h>

#include "src/base/error.h"
#include "tests/model/oracle.h"
#include "tests/model/world-int.h"

/* ---- callers --------------------------------------------------------------------------------- */

struct caller *caller(struct world *w, int label)
{
	return label >= 0 && label < WORLD_LABELS && w->callers[label].used ? &w->callers[label]
									    : NULL;
}

/* an answer given later than this would not arrive (K2) */
static uint64_t margin(uint64_t timeout)
{
	uint64_t part = timeout / 50;
	return part < 250 * MS ? 250 * MS : part > 1 * S ? 1 * S : part;
}

static void caller_begins(struct world *w, struct caller *c, uint64_t timeout)
{
	memset(c, 0, sizeof(*c));
	c->used = c->here = c->fresh = true;
	c->order = ++w->orders;
	c->heard = CK_WAIT;
	c->began = w->now;
	c->margin_at = CK_NEVER_DUE;
	if (timeout) {
		c->deadline = w->now + timeout;
		c->margin_at = timeout > margin(timeout) ? c->deadline - margin(timeout) : w->now;
	}
}

int world_begin(struct world *w, int label, const struct request *req, uint64_t timeout,
		bool expired)
{
	struct ck_error err = { 0 };

	if (caller(w, label))
		world_drop(w, label);
	struct caller *c = &w->callers[label];
	caller_begins(w, c, timeout);
	c->req = *req;
	c->fp = req->fp;
	struct ck_key *key = key_of_request(w, req);
	c->key = world_key(w, key);
	feed(w);
	int r = ck_machine_begin(w->m, &c->turn, key, (const void *)&c->fp, timeout, expired, &err);
	oracle_begun(w, c, r, expired);
	if (c->turn.state == CK_TURN_NEW) { /* never became a turn */
		ck_machine_drop(w->m, &c->turn);
		c->heard = r;
		c->used = false;
	}
	fed(w);
	return r;
}

int world_remove_begin(struct world *w, int label, int sandbox, uint64_t timeout)
{
	struct object *o = world_object(w, sandbox);
	struct ck_error err = { 0 };

	if (!o || !(oracle_shown(w, o) || ck_machine_object(w->m, o->kind, o->id)))
		return 0;
	if (caller(w, label))
		world_drop(w, label);
	struct caller *c = &w->callers[label];
	caller_begins(w, c, timeout);
	c->drain = true;
	c->key = o->key;
	bool shown = oracle_shown(w, o);
	feed(w);
	int r = ck_machine_remove_begin(w->m, &c->removal, o->kind, o->id, timeout, &err);
	oracle_draining(w, c, o, r);
	if (o->kind == CK_SANDBOX) {
		o->stopping = true;
		o->stop_known = shown; /* of a hidden one, until a list shows it (K16) */
	}
	fed(w);
	return r;
}

void world_leave(struct world *w, int label)
{
	struct caller *c = caller(w, label);
	if (!c || !c->here)
		return;
	feed(w);
	if (c->drain)
		ck_machine_remove_leave(w->m, &c->removal);
	else
		ck_machine_leave(w->m, &c->turn);
	c->here = false;
	oracle_left(w, c);
	fed(w);
}

void world_drop(struct world *w, int label)
{
	struct caller *c = caller(w, label);
	if (!c)
		return;
	struct ck_entry *e = ck_machine_entry(w->m, c->turn.row);
	/* its caller goes in the round that told it to create */
	bool unheard = e && e->creator == &c->turn && !c->making;
	if (unheard) {
		c->making = true;
		c->making_row = e->row.id;
	}
	feed(w);
	if (unheard)
		ck_machine_unheard(w->m, &c->turn);
	if (unheard && !c->turn.again)
		oracle_unheard(w, c);
	if (c->drain)
		ck_machine_remove_end(w->m, &c->removal);
	else
		ck_machine_drop(w->m, &c->turn);
	oracle_dropped(w, c);
	c->used = c->here = c->making = false;
	fed(w);
}

void world_report(struct world *w, int label, bool delivered)
{
	struct caller *c = caller(w, label);
	if (!c || c->heard != CK_HAND_BACK || c->reported || c->drain)
		return;
	c->reported = true;
	feed(w);
	ck_machine_answer_reported(w->m, &c->turn, delivered);
	oracle_reported(w, c, delivered);
	fed(w);
}

void world_stage(struct world *w, int label)
{
	struct caller *c = caller(w, label);
	if (!c || !c->making)
		return;
	feed(w);
	ck_machine_stage(w->m, &c->turn, "sandbox network creation");
	fed(w);
}

/* ---- creations end --------------------------------------------------------------------------- */

int world_fail(struct world *w, int label, int grpc, bool heard)
{
	struct creation *creation = world_creation(w, label);
	struct caller *c = caller(w, label);

	if (!creation || creation->state == CREATION_MADE)
		return 0;
	creation->state = CREATION_FAILED;
	if (!heard || !c || !c->making)
		return 0;
	creation->told = true;
	/* runtimes have several words for a name that is taken */
	static const int taken[] = { CK_GRPC_ALREADY_EXISTS, CK_GRPC_UNKNOWN,
				     CK_GRPC_FAILED_PRECONDITION };
	struct ck_status status = { .size = sizeof(status),
				    .grpc = creation->reserved ? taken[label % 3] : grpc,
				    .message = "no" };
	struct ck_shared_status *shared = ck_shared_status_new(&status);
	feed(w);
	c->making = false;
	int r = ck_machine_fail(w->m, &c->turn, shared, "no");
	oracle_failed(w, c, creation, status.grpc, r);
	ck_shared_status_unref(shared);
	c->fresh = true;
	fed(w);
	return r;
}

int world_finish(struct world *w, int label, bool heard)
{
	struct creation *creation = world_creation(w, label);
	struct caller *c = caller(w, label);

	if (!creation)
		return 0;
	if (creation->reserved || creation->state == CREATION_FAILED)
		return world_fail(w, label, CK_GRPC_INTERNAL, heard);
	if (creation->state == CREATION_RUNNING) {
		struct object *o =
			object_new(w, label, &creation->req, creation->key, creation->row);
		o->exempt = creation->exempt;
		creation->state = CREATION_MADE;
		creation->object = (int)(o - w->objects);
	}
	if (!heard || !c || !c->making)
		return 0;
	creation->told = true;
	struct ck_error err = { 0 };
	struct ck_shared_result *result =
		ck_shared_result_new(w->objects[creation->object].id, NULL, 0);
	feed(w);
	c->making = false;
	oracle_finishing(w, c);
	int r = ck_machine_finish(w->m, &c->turn, result, &err);
	oracle_finished(w, c, r);
	ck_shared_result_unref(result);
	c->fresh = true;
	fed(w);
	return r;
}

void world_lose(struct world *w, int label)
{
	struct caller *c = caller(w, label);
	if (!c || !c->making)
		return;
	feed(w);
	c->making = false;
	ck_machine_lost(w->m, &c->turn);
	oracle_lost(w, c);
	c->fresh = true;
	fed(w);
}

/* ---- jobs end -------------------------------------------------------------------------------- */

/* a status tells more than a list: whether what has ended was started */
static enum ck_condition status_of(const struct object *o)
{
	return o->ran && o->condition == CK_CONDITION_DEAD ? CK_CONDITION_RAN : o->condition;
}

static enum ck_condition condition_of(struct world *w, uint64_t row)
{
	struct object *o = world_object_of(w, w->shadows[row].id);
	return o ? status_of(o) : CK_CONDITION_ABSENT;
}

void world_inspected(struct world *w, unsigned nth, bool known)
{
	struct job *job = world_job(w, CK_WANT_INSPECT, nth), copy;
	if (!job)
		return;
	copy = *job;
	uint64_t row = job->row;
	enum ck_condition condition = known ? condition_of(w, row) : CK_CONDITION_UNKNOWN;
	job_remove(w, job);
	feed(w);
	w->inspected_row = condition == CK_CONDITION_READY ? row : 0;
	ck_machine_inspected(w->m, row, copy.begun_seq, condition);
	oracle_inspected(w, &copy, condition);
	fed(w);
	w->inspected_row = 0;
}

void world_listed_entry(struct world *w, unsigned nth, enum how how)
{
	struct job *job = world_job(w, CK_WANT_LIST, nth), copy;
	struct ck_object objects[WORLD_OBJECTS];
	if (!job)
		return;
	if (how == HOW_FRESH)
		snapshot(w, job);
	copy = *job;
	job_remove(w, job);
	size_t n = listed_objects(w, &copy, objects);
	feed(w);
	ck_machine_listed_entry(w->m, copy.row, copy.begun_seq, how != HOW_FAILED, objects,
				how == HOW_FAILED ? 0 : n);
	oracle_listed_entry(w, &copy, how != HOW_FAILED);
	fed(w);
}

void world_destroyed(struct world *w, unsigned nth, enum how how)
{
	struct job *job = world_job(w, CK_WANT_DESTROY, nth);
	if (!job)
		return;
	uint64_t row = job->row;
	struct object *o = world_object_of(w, w->shadows[row].id);
	int grpc = how == HOW_FAILED         ? CK_GRPC_INTERNAL
		   : how == HOW_DONE_UNHEARD ? CK_GRPC_DEADLINE_EXCEEDED
		   : o && alive(o)           ? CK_GRPC_OK
					     : CK_GRPC_NOT_FOUND;
	if (how != HOW_FAILED && o)
		object_gone(w, o);
	job_remove(w, job);
	feed(w);
	ck_machine_destroyed(w->m, row, grpc, how == HOW_FAILED ? "busy" : NULL);
	oracle_destroyed(w, row, grpc);
	fed(w);
}

void world_hooked(struct world *w, unsigned nth, bool agree)
{
	struct job *job = world_job(w, CK_WANT_RUN | CK_WANT_STOP | CK_WANT_REMOVE, nth);
	if (!job)
		return;
	uint64_t row = job->row;
	unsigned want = job->want;
	enum ck_hook_event event = want == CK_WANT_RUN    ? CK_HOOK_RUN
				   : want == CK_WANT_STOP ? CK_HOOK_STOP
							  : CK_HOOK_REMOVE;
	job_remove(w, job);
	feed(w);
	oracle_hooking(w, row, event);
	ck_machine_hook_done(w->m, row, event, NULL, agree ? NULL : "plugin 10-logger: no");
	oracle_hooked(w, row, event, agree);
	fed(w);
}

void world_no_memory(struct world *w, unsigned want)
{
	struct job *job = world_job(w, want, 0), copy;
	struct ck_entry *e = job ? ck_machine_entry(w->m, job->row) : NULL;
	if (!e)
		return;
	struct shadow *s = &w->shadows[e->row.id];
	copy = *job;
	job_remove(w, job);
	feed(w);
	/* nobody heard of it */
	s->run -= want == CK_WANT_RUN;
	s->stop -= want == CK_WANT_STOP;
	s->removed -= want == CK_WANT_REMOVE;
	ck_machine_job_failed(w->m, e, (enum ck_want)want);
	if (want == CK_WANT_INSPECT)
		oracle_inspected(w, &copy, CK_CONDITION_UNKNOWN);
	else if (want == CK_WANT_LIST)
		oracle_listed_entry(w, &copy, false);
	else if (want == CK_WANT_DESTROY)
		oracle_destroyed(w, copy.row, CK_GRPC_RESOURCE_EXHAUSTED);
	fed(w);
}

void world_listed(struct world *w, unsigned nth, enum how how)
{
	struct job *job = world_job(w, 0, nth), copy;
	struct ck_object objects[WORLD_OBJECTS];
	if (!job)
		return;
	if (how == HOW_FRESH)
		snapshot(w, job);
	copy = *job;
	job_remove(w, job);
	size_t n = listed_objects(w, &copy, objects);
	feed(w);
	ck_machine_listed(w->m, copy.kind, copy.begun_seq, how != HOW_FAILED, objects,
			  how == HOW_FAILED ? 0 : n);
	oracle_listed(w, &copy, how != HOW_FAILED);
	fed(w);
}

void world_view_open(struct world *w, unsigned nth, enum ck_kind kind)
{
	struct view *view = &w->views[nth % WORLD_VIEWS];
	if (view->open)
		return;
	view->open = true;
	ck_machine_view_opened(w->m, &view->seq);
	view->list = (struct job){
		.kind = kind, .begun_seq = view->seq, .begun_at = w->now, .begun_event = w->event
	};
	snapshot(w, &view->list);
}

void world_view_close(struct world *w, unsigned nth, enum how how)
{
	struct view *view = &w->views[nth % WORLD_VIEWS];
	struct ck_object objects[WORLD_OBJECTS];
	if (!view->open)
		return;
	view->open = false;
	oracle_viewed(w, &view->list);
	if (how == HOW_FAILED) {
		ck_machine_view_closed(w->m, view->seq);
		return;
	}
	size_t n = listed_objects(w, &view->list, objects);
	feed(w);
	ck_machine_listed(w->m, view->list.kind, view->list.begun_seq, true, objects, n);
	oracle_listed(w, &view->list, true);
	ck_machine_view_closed(w->m, view->seq);
	fed(w);
}

/* ---- what passes by -------------------------------------------------------------------------- */

void world_external(struct world *w, int label, const struct request *req,
		    enum ck_condition condition, bool twin)
{
	struct ck_key *key = key_of_request(w, req);
	int number = world_key(w, key);
	ck_key_free(key);
	struct ck_entry *e = world_key_entry(w, number);
	bool known = e && e->row.result &&
		     (e->row.state == CK_STATE_KEPT || e->row.state == CK_STATE_COMMITTING);
	FOR_ENTRIES (other, w) /* a list tells them apart by their keys, which have no pod */
		if (ck_key_same(other->row.key, w->keys[number].key) &&
		    !same_pod(other->row.key, w->keys[number].key))
			return;
	/* otherwise nobody could tell which of the two is ours */
	if (name_in_use(w, number) && !(twin && known))
		return;
	struct object *o = object_new(w, label, req, number, 0);
	o->condition = condition;
	o->ran = condition == CK_CONDITION_RUNNING;
}

void world_condition(struct world *w, int label, enum ck_condition condition)
{
	struct object *o = world_object(w, label);
	if (!o || !alive(o) || (condition == CK_CONDITION_RUNNING && o->kind == CK_SANDBOX))
		return;
	if (condition == CK_CONDITION_ABSENT)
		object_gone(w, o);
	else
		o->condition = condition;
	o->ran = o->ran || condition == CK_CONDITION_RUNNING;
}

void world_seen(struct world *w, int label)
{
	struct object *o = world_object(w, label);
	if (!o)
		return;
	feed(w);
	int r = ck_machine_seen(w->m, o->kind, o->id, status_of(o));
	oracle_seen(w, o, status_of(o), r);
	fed(w);
}

void world_used(struct world *w, int label)
{
	struct object *o = world_object(w, label);
	if (!o)
		return;
	feed(w);
	ck_machine_used(w->m, o->kind, o->id);
	oracle_used(w, o);
	fed(w);
}

void world_starting(struct world *w, int label)
{
	struct object *o = world_object(w, label);
	struct ck_entry *e = o ? ck_machine_object(w->m, o->kind, o->id) : NULL;
	if (!e || o->kind != CK_CONTAINER)
		return;
	feed(w);
	w->starting_row = e->row.id;
	int r = ck_machine_starting(w->m, o->id);
	oracle_starting(w, o, r);
	fed(w);
	w->starting_row = 0;
}

int world_start_begin(struct world *w, int label)
{
	struct object *o = world_object(w, label);
	if (!o || o->kind != CK_CONTAINER || o->called || !oracle_shown(w, o))
		return -CK_ENOTFOUND;
	feed(w);
	int r = ck_machine_start_begin(w->m, o->id);
	o->called = r == 0;
	oracle_start_begun(w, o, r);
	fed(w);
	return r;
}

void world_start_end(struct world *w, int label, enum ck_start_end end)
{
	struct object *o = world_object(w, label);
	if (!o || !o->called)
		return;
	/* it is told truthfully */
	if (o->condition == CK_CONDITION_DEAD || o->condition == CK_CONDITION_ABSENT)
		end = end == CK_START_OPEN ? end : CK_START_REFUSED;
	else if (o->condition == CK_CONDITION_RUNNING && end == CK_START_REFUSED)
		end = CK_START_HEARD;
	else if (end == CK_START_HEARD || end == CK_START_TOO_LATE)
		o->condition = CK_CONDITION_RUNNING;
	o->ran = o->ran || o->condition == CK_CONDITION_RUNNING;
	o->called = false;
	feed(w);
	ck_machine_start_end(w->m, o->id, end, end == CK_START_REFUSED ? CK_GRPC_INTERNAL : 0);
	oracle_start_ended(w, o, end);
	fed(w);
}

void world_stopping(struct world *w, int label)
{
	struct object *o = world_object(w, label);
	/* it is hidden, so the guard answers NOT_FOUND */
	if (!o || o->kind != CK_SANDBOX || !oracle_shown(w, o))
		return;
	feed(w);
	int r = ck_machine_stopping(w->m, o->id);
	o->stopping = o->stop_known = true;
	oracle_stopping(w, o, r);
	fed(w);
}

void world_forget(struct world *w, int label)
{
	struct object *o = world_object(w, label);
	struct ck_entry *e = o ? ck_machine_object(w->m, o->kind, o->id) : NULL;
	if (!e || e->row.state == CK_STATE_GONE)
		return;
	/* What is hidden is removed by somebody who has its id from the runtime or a plugin, if the
	 * host lets such a call through. */
	object_gone(w, o);
	feed(w);
	ck_machine_forget(w->m, o->kind, o->id);
	oracle_forgotten(w, o);
	fed(w);
}

void world_evict(struct world *w, unsigned nth, bool release)
{
	char text[256] = "";
	FOR_ENTRIES (e, w) {
		if (e->row.state == CK_STATE_GONE || nth-- > 0)
			continue;
		uint64_t row = e->row.id;
		feed(w);
		int r = ck_machine_evict(w->m, row, release, text, sizeof(text));
		oracle_evicted(w, row, release, r);
		fed(w);
		return;
	}
}

/* ---- time, disk, death ----------------------------------------------------------------------- */

/* time passes between rounds */
void world_stall(struct world *w, uint64_t ns)
{
	w->more = false;
	if (w->in_round)
		close_round(w);
	w->now += ns;
	ck_machine_clock(w->m, w->now);
}

void world_time(struct world *w, uint64_t ns)
{
	world_stall(w, ns);
	feed(w);
	oracle_expiring(w);
	ck_machine_expire(w->m);
	w->expired_at = w->now;
	oracle_expired(w);
	fed(w);
}

void world_next(struct world *w)
{
	uint64_t due = ck_machine_due(w->m);
	if (due != CK_NEVER_DUE)
		world_time(w, due > w->now ? due - w->now : 0);
}

void world_disk(struct world *w, bool broken)
{
	w->disk_broken = broken;
	feed(w);
	fed(w); /* the write is tried again each second (K32); here at once */
}

void world_new_database(struct world *w)
{
	if (w->disk_broken)
		return;
	for (unsigned i = 0; i < WORLD_ROWS; i++)
		row_forget(&w->db[i]);
	feed(w);
	ck_machine_all_dirty(w->m);
	fed(w);
}

void world_crash(struct world *w, unsigned how)
{
	bool reboot = how & CRASH_REBOOT;

	if (how & CRASH_LATE && !w->disk_broken)
		write_rows(w);
	oracle_crashed(w, reboot);
	machine_end(w);
	w->expired_at = 0; /* the clock may begin anew */
	for (unsigned i = 0; i < w->objects_n; i++)
		w->objects[i].called = false;
	for (unsigned i = 0; reboot && i < w->creations_n; i++)
		if (w->creations[i].state == CREATION_RUNNING)
			w->creations[i].state = CREATION_FAILED;
	for (unsigned i = 0; reboot && i < w->objects_n; i++)
		if (alive(&w->objects[i]))
			w->objects[i].condition = CK_CONDITION_DEAD;
	if (reboot) {
		w->now = 7 * S; /* the clock counts from the boot */
		w->boot++;
	}
	if (how & CRASH_NEW_KEY)
		w->digest_key++;
	machine_start(w);
	feed(w);
	size_t n;
	for (uint64_t id = 1; id <= w->rows_n; id++) {
		struct ck_row row;
		if (!w->db[id].used)
			continue;
		row_copy(&row, &w->db[id].row);
		bool other_key = row.record.form && row.record.key_id[0] != w->digest_key;
		if (ck_machine_restore(w->m, &row, w->db[id].boot == w->boot, other_key) < 0)
			oracle_fail(w, "K25: row %u was refused", (unsigned)id);
	}
	for (uint64_t id = 1; id <= w->rows_n; id++)
		if (w->db[id].used)
			oracle_restored(w, &w->db[id].row, w->db[id].boot == w->boot);
	ck_machine_history(w->m, &n);
	w->history_seen = n; /* the moves of a restart are judged above */
	oracle_observe(w);
	close_round(w);
}
