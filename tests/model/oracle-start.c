/* SPDX-License-Identifier: Apache-2.0 */
/* Starts of containers, and what another attempt of the slot may do meanwhile (K34). */
#include "tests/model/oracle-int.h"

/* A shadow has the start that follows from what the host has said. An entry must have the same one,
 * but for what the machine finds out by itself. */

void oracle_start_begun(struct world *w, struct object *o, int r)
{
	struct shadow *s = shadow_of_object(w, o);
	MUST(w, r == 0 || !s || s->state != CK_STATE_COMMITTED || s->running_seen || s->found_used,
	     "K34: the start of %s is not taken: %d", o->id, r);
	if (r < 0 || !s)
		return;
	MUST(w, s->state == CK_STATE_COMMITTED, "K34: the start of %s is taken, which is %s", o->id,
	     ck_state_name(s->state));
	s->start_resumed = s->start == CK_START_LOST;
	s->start = CK_START_CALLED;
	s->start_began = w->now;
	s->used = true;
}

void oracle_start_ended(struct world *w, struct object *o, enum ck_start_end end)
{
	struct shadow *s = shadow_of_object(w, o);
	if (!s || s->start != CK_START_CALLED)
		return;
	bool open = end == CK_START_OPEN || (end == CK_START_REFUSED && s->start_resumed);
	const struct ck_entry *e = ck_machine_object(w->m, o->kind, o->id);
	s->start_lost = w->now;
	s->start = open && !(e && e->running)         ? CK_START_LOST
		   : open || end == CK_START_TOO_LATE ? CK_START_UNHEARD
						      : CK_START_NONE;
	if (end == CK_START_HEARD || end == CK_START_TOO_LATE)
		s->running_seen = true;
}

void oracle_written(struct world *w)
{
	FOR_SHADOWS (s, w)
		s->start_saved = s->start;
}

/* from here on a status that says "created" ends a start of which nobody knows */
static uint64_t over_at(const struct world *w, const struct shadow *s)
{
	uint64_t grace = s->start_lost + w->config.rules.lost_grace,
		 most = s->start_began + w->config.rules.create_deadline;
	return grace < most ? grace : most;
}

void oracle_look_at_start(struct world *w, struct shadow *s, const struct ck_entry *e)
{
	const struct object *o = world_object_of(w, s->id);
	unsigned long row = row_of(w, s);

	if (s->state != CK_STATE_COMMITTED)
		s->start = CK_START_NONE;
	if (s->start == CK_START_LOST && e->row.start == CK_START_UNHEARD)
		MUST(w, o && o->ran, "K34: entry %lu was started, it says, and never ran", row);
	else if (s->start == CK_START_LOST && e->row.start == CK_START_NONE)
		MUST(w, !o || o->condition == CK_CONDITION_ABSENT || w->now >= over_at(w, s),
		     "K34: the start of entry %lu is given up too early", row);
	else
		MUST(w, s->start == e->row.start, "K34: the start of entry %lu is %d and not %d",
		     row, (int)e->row.start, (int)s->start);
	MUST(w, e->row.start != CK_START_LOST || !e->running,
	     "K34: entry %lu runs, and the end of its start is not known", row);
	s->start = e->row.start;
}

void oracle_inspected_start(struct world *w, const struct shadow *s, const struct job *job,
			    enum ck_condition condition)
{
	const struct ck_entry *e = ck_machine_entry(w->m, job->row);
	if (s->alive && s->start == CK_START_LOST && !job->again && e && !e->row.start &&
	    e->row.state == CK_STATE_COMMITTED && condition == CK_CONDITION_READY)
		MUST(w, job->begun_at >= over_at(w, s),
		     "K34: the start of entry %lu is given up by an old status", row_of(w, s));
}

/* it runs, and the kubelet goes by a newer attempt that it sees */
static bool is_outlived(struct world *w, const struct shadow *s)
{
	const struct ck_entry *e = ck_machine_entry(w->m, row_of(w, s));
	bool runs = s->running_seen && e && e->running;
	FOR_SHADOWS (o, w) {
		if (runs && (o->state == CK_STATE_COMMITTED || o->state == CK_STATE_ENDED) &&
		    w->keys[o->key].slot == w->keys[s->key].slot &&
		    w->keys[o->key].key->attempt > w->keys[s->key].key->attempt)
			return true;
	}
	return false;
}

static bool is_other_attempt(struct world *w, const struct shadow *s, const struct caller *c)
{
	return s->start && s->key != c->key && w->keys[s->key].slot == w->keys[c->key].slot &&
	       !is_outlived(w, s);
}

void oracle_create_beside(struct world *w, const struct caller *c)
{
	FOR_SHADOWS (s, w)
		MUST(w, w->in_round > 1 || !is_other_attempt(w, s, c),
		     "K34: caller %d is to create, and entry %lu is being started",
		     (int)(c - w->callers), row_of(w, s));
}

bool oracle_conflicts_beside(struct world *w, const struct caller *c)
{
	FOR_SHADOWS (s, w)
		if (is_other_attempt(w, s, c) && s->start && s->running_seen)
			return true;
	return false;
}

bool oracle_waits_beside(struct world *w, const struct caller *c)
{
	bool beside = false;
	FOR_SHADOWS (s, w) {
		if (!is_other_attempt(w, s, c))
			continue;
		beside = true;
		MUST(w, s->start != CK_START_UNHEARD || c->turn.row != row_of(w, s),
		     "K34: caller %d waits for entry %lu, which runs", (int)(c - w->callers),
		     row_of(w, s));
	}
	return beside;
}
