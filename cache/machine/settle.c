/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Around the events: what an event leaves queued (rows to write, wants, answers, notes), timers,
 * and settling a round once it is known whether its rows are on disk. Effects only queue up in
 * here; the caller carries them out afterwards (K29).
 */
#include <stdio.h>

#include "cache/machine/machine-int.h"

/* ---- the plumbing of a round ----------------------------------------------------------------- */

void ck_dirty(struct ck_machine *m, struct ck_entry *e)
{
	if (e->is_dirty)
		return;
	e->is_dirty = true;
	DL_APPEND2(m->dirty, e, dirty_prev, dirty_next);
}

void ck_want(struct ck_machine *m, struct ck_entry *e, enum ck_want want)
{
	if (!e->wants)
		DL_APPEND2(m->wanting, e, wanting_prev, wanting_next);
	e->wants |= want;
}

void ck_unwant(struct ck_machine *m, struct ck_entry *e, unsigned wants)
{
	if (e->wants && !(e->wants & ~wants))
		DL_DELETE2(m->wanting, e, wanting_prev, wanting_next);
	e->wants &= ~wants;
}

struct ck_entry *ck_machine_wanting(struct ck_machine *m)
{
	return m->wanting;
}

unsigned ck_machine_take_wants(struct ck_machine *m, struct ck_entry *e)
{
	unsigned wants = e->wants;
	ck_unwant(m, e, wants);
	e->outstanding |= wants & ~(unsigned)CK_WANT_CANCEL; /* a cancel has no answer of its own */
	if (wants & CK_WANT_DESTROY)
		e->destroys++;
	return wants;
}

void ck_touch(struct ck_machine *m, struct ck_group *pod)
{
	if (!pod || pod->touched)
		return;
	pod->touched = true;
	LL_PREPEND2(m->touched, pod, touched_next);
}

static struct ck_group *take_touched(struct ck_machine *m)
{
	struct ck_group *pod = m->touched;
	if (pod) {
		LL_DELETE2(m->touched, pod, touched_next);
		pod->touched = false;
	}
	return pod;
}

void ck_event_begin(struct ck_machine *m)
{
	m->seq++;
}

/* the one mechanism: what was touched is placed anew until nothing moves any more */
void ck_event_end(struct ck_machine *m)
{
	do {
		for (struct ck_group *pod; (pod = take_touched(m));) {
			CK_FOR_TURNS (t, pod)
				if (t->state == CK_TURN_WAITING)
					ck_turn_place(m, t);
			for (struct ck_entry *e = pod->entries; e; e = ck_pod_next(e))
				if (e->row.state == CK_STATE_KEPT)
					ck_kept_schedule(m, e);
			ck_group_put(m, pod);
		}
		ck_evict_pump(m);
	} while (m->touched); /* what needs no destroying is gone already */
}

void ck_note_entry(struct ck_machine *m, struct ck_entry *e, enum ck_what what, int grpc,
		   const char *detail)
{
	/* history is a help, not a promise: without memory a line is missing */
	if (m->notes_n == m->notes_room) {
		size_t room = m->notes_room ? 2 * m->notes_room : 16;
		struct ck_note *notes = ck_realloc(m->notes, room * sizeof(*notes));
		if (!notes)
			return;
		m->notes = notes;
		m->notes_room = room;
	}
	struct ck_note *note = &m->notes[m->notes_n++];
	*note = (struct ck_note){ .entry = e, .what = what, .grpc = grpc, .at = m->now };
	if (detail)
		snprintf(note->detail, sizeof(note->detail), "%s", detail);
}

void ck_entry_schedule(struct ck_machine *m, struct ck_entry *e, uint64_t due)
{
	ck_timer_set(&m->timers, &e->timer, due);
	e->row.due = due == CK_NEVER_DUE ? 0 : due; /* for people; not worth a write of its own */
}

void ck_entry_move(struct ck_machine *m, struct ck_entry *e, enum ck_state to)
{
	if (CK_NEVER(!ck_state_may_move(e->row.state, to)))
		return;
	enum ck_state from = e->row.state;
	ck_note_entry(m, e, CK_WHAT_MOVED, 0, NULL);
	if (m->notes_n && m->notes[m->notes_n - 1].entry == e &&
	    m->notes[m->notes_n - 1].what == CK_WHAT_MOVED) {
		m->notes[m->notes_n - 1].from = from;
		m->notes[m->notes_n - 1].to = to;
	}
	e->row.state = to;
	m->moves++;
	e->fresh = to == CK_STATE_COMMITTED;
	e->row.changed = m->now;
	e->changed_seq = m->seq;
	ck_entry_schedule(m, e, CK_NEVER_DUE);
	ck_dirty(m, e);
	ck_touch(m, ck_pod_of(e));
}

/* gone for good: nobody finds it any more, its row is deleted with the next write */
void ck_entry_drop(struct ck_machine *m, struct ck_entry *e)
{
	if (e->row.state == CK_STATE_COMMITTED)
		m->forgot_seq = m->seq;
	struct ck_group *pod = ck_pod_of(e);
	if (e->row.state != CK_STATE_GONE)
		ck_entry_move(m, e, CK_STATE_GONE);
	ck_unwant(m, e, ~0u);
	ck_touch(m, pod); /* keeps the group until the event ends */
	if (m->rules.hooks && m->ops.released)
		m->ops.released(m->user, e);
	ck_entry_detach(m, e);
	ck_dirty(m, e);
}

bool ck_machine_row_unwanted(const struct ck_entry *e)
{
	return e->detached;
}

/* ---- time ------------------------------------------------------------------------------------ */

void ck_machine_clock(struct ck_machine *m, uint64_t now)
{
	if (now > m->now)
		m->now = now;
}

uint64_t ck_machine_due(const struct ck_machine *m)
{
	return ck_timers_due(&m->timers);
}

static void entry_expired(struct ck_machine *m, struct ck_entry *e)
{
	switch (e->row.state) {
	case CK_STATE_CREATING:
		ck_lost_expired(m, e);
		break;
	case CK_STATE_KEPT:
		if ((e->wants | e->outstanding) & CK_WANT_INSPECT) { /* never answered */
			ck_unwant(m, e, CK_WANT_INSPECT);
			e->outstanding &= ~(unsigned)CK_WANT_INSPECT;
			ck_inspected_kept(m, e, CK_CONDITION_UNKNOWN);
		} else if (ck_awaited(m, e))
			ck_touch(m, ck_pod_of(e)); /* K6: ask again */
		else if (ck_overdue(m, e))
			/* somebody waited longer than we looked; his own timer is due as well */
			ck_entry_schedule(m, e, CK_NEVER_DUE);
		else if (m->now < ck_kept_until(m, e))
			ck_kept_schedule(m, e); /* who wanted it asked again has gone meanwhile */
		else if (!ck_machine_reconciled(m))
			/* whoever waits for it is not placed yet (K24) */
			ck_entry_schedule(m, e, m->now + CK_GAP);
		else
			ck_evict(m, e, CK_REASON_TTL);
		break;
	case CK_STATE_EVICTING:
		ck_evict_expired(m, e);
		break;
	case CK_STATE_GONE:
		ck_gone_expired(m, e);
		break;
	default:
		break;
	}
}

#define TIMER_OWNER(timer, type) ((type *)(void *)((char *)(timer) - offsetof(type, timer)))

void ck_machine_expire(struct ck_machine *m)
{
	struct ck_timer *timer;
	ck_event_begin(m);
	while ((timer = ck_timers_pop(&m->timers, m->now))) {
		if (timer->of == CK_TIMER_TURN)
			ck_turn_expired(m, TIMER_OWNER(timer, struct ck_mturn));
		else if (timer->of == CK_TIMER_ENTRY)
			entry_expired(m, TIMER_OWNER(timer, struct ck_entry));
		else
			ck_list_expired(
				m, (enum ck_kind)(TIMER_OWNER(timer, struct ck_list) - m->lists));
	}
	ck_event_end(m);
}

/* ---- the end of a round ---------------------------------------------------------------------- */

struct ck_entry *ck_machine_dirty(struct ck_machine *m)
{
	return m->dirty;
}

const struct ck_note *ck_machine_notes(struct ck_machine *m, size_t *ret_n)
{
	*ret_n = m->notes_n;
	return m->notes;
}

/* K32: the commit of an entry whose earlier row is on disk could not be written: it is KEPT, and
 * nobody was answered */
static void uncommit(struct ck_machine *m, struct ck_entry *e, const char *why)
{
	for (struct ck_mturn *t = m->answered; t; t = t->answered_next) {
		if (t->row != e->row.id ||
		    (t->outcome != CK_HAND_BACK && t->outcome != -CK_ECONFLICT))
			continue;
		if (t->outcome == CK_HAND_BACK)
			e->unanswered--;
		ck_made_unref(t->made);
		t->made = NULL;
		t->outcome = -CK_EUNAVAILABLE;
		ck_fail(&t->err, CK_EUNAVAILABLE,
			"the result exists, but handing it over cannot be recorded: %s", why);
	}
	if (e->wants & CK_WANT_RUN)
		ck_untell(m, e);
	bool ended = e->row.flags & CK_ENTRY_ENDED;
	e->row.flags &= ~(unsigned)CK_ENTRY_ENDED;
	e->row.state = CK_STATE_KEPT;
	m->moves++;
	e->row.changed = e->row.interest = m->now;
	/* hooks were to run, or an eviction to be taken back: nobody is answered by this commit */
	CK_FOR_TURNS (t, ck_pod_of(e))
		if (t->state == CK_TURN_WAITING && t->row == e->row.id && t->joined)
			ck_turn_answer(
				m, t, -CK_EUNAVAILABLE,
				"the result exists, but handing it over cannot be recorded: %s",
				why);
	ck_kept_schedule(m, e);
	/* in the same round; a successor of its key may have begun already, so it cannot stay */
	if (ended) {
		ck_evict(m, e, CK_REASON_DEAD);
		ck_entry_schedule(m, e, m->now); /* no event ends here that would start it */
	}
	/* for whoever waits for something else; the write is tried again in a second */
	ck_touch(m, ck_pod_of(e));
}

static void tell_committed(struct ck_machine *m, struct ck_entry *e)
{
	if (!e->fresh || e->row.state != CK_STATE_COMMITTED)
		return;
	e->fresh = false;
	if (m->ops.committed)
		m->ops.committed(m->user, e);
}

static void dirty_del(struct ck_machine *m, struct ck_entry *e)
{
	DL_DELETE2(m->dirty, e, dirty_prev, dirty_next);
	e->is_dirty = false;
}

void ck_machine_settle(struct ck_machine *m, bool written, const char *why)
{
	m->notes_n = 0;
	if (!written)
		m->counters.write_failures++;
	for (struct ck_entry *e = m->dirty, *next; e; e = next) {
		next = e->dirty_next;
		if (written) {
			dirty_del(m, e);
			e->row.flags &= ~(unsigned)CK_ENTRY_VOLATILE;
			e->written = e->row.state;
			tell_committed(m, e);
			if (e->detached)
				ck_entry_free(m, e);
			continue;
		}
		e->row.flags |= CK_ENTRY_VOLATILE;
		bool commits = (e->row.state == CK_STATE_COMMITTING ||
				e->row.state == CK_STATE_COMMITTED) &&
			       e->written && e->written != e->row.state;
		if (commits)
			uncommit(m, e, why);
		tell_committed(m, e); /* K32: a wholly volatile one */
		if (e->detached && !e->written) { /* it came and went without the database */
			dirty_del(m, e);
			ck_entry_free(m, e);
		}
	}
}

void ck_machine_all_dirty(struct ck_machine *m)
{
	for (struct ck_entry *e = m->by_row; e; e = e->by_row.next) {
		e->written = 0;
		ck_dirty(m, e);
	}
}

uint64_t ck_machine_seq(const struct ck_machine *m)
{
	return m->seq;
}

struct ck_counters *ck_machine_counters(struct ck_machine *m)
{
	return &m->counters;
}

uint64_t ck_machine_moves(const struct ck_machine *m)
{
	return m->moves;
}

bool ck_machine_hidden(const struct ck_entry *e)
{
	bool sandbox = e->row.key->kind == CK_SANDBOX;
	if (e->row.state == CK_STATE_COMMITTING)
		return !(sandbox ? CK_BROKEN(R9) : CK_BROKEN(R36));
	return e->row.state != CK_STATE_COMMITTED ||
	       (CK_BROKEN(R11) && sandbox && (e->row.flags & CK_ENTRY_TOLD));
}

/* ---- views: calls that began before (K21) ---------------------------------------------------- */

void ck_machine_view_opened(struct ck_machine *m, uint64_t *ret_seq)
{
	*ret_seq = ++m->seq;
	if (m->views_n == m->views_room) {
		size_t room = m->views_room ? 2 * m->views_room : 16;
		uint64_t *views = ck_realloc(m->views, room * sizeof(*views));
		if (!views)
			return; /* the tombstones' minute must do for this one */
		m->views = views;
		m->views_room = room;
	}
	m->views[m->views_n++] = *ret_seq;
}

void ck_machine_view_closed(struct ck_machine *m, uint64_t seq)
{
	for (size_t i = 0; i < m->views_n; i++) {
		if (m->views[i] != seq)
			continue;
		m->views[i] = m->views[--m->views_n];
		return;
	}
}

/* ---- life of the machine --------------------------------------------------------------------- */

int ck_machine_new(const struct ck_rules *rules, const struct ck_machine_ops *ops, void *user,
		   uint64_t now, struct ck_machine **ret)
{
	struct ck_machine *m = CK_NEW(struct ck_machine);
	if (!m || ck_timers_reserve(&m->timers, CK_CONTAINER + 1) < 0) {
		free(m);
		return -CK_ENOMEM;
	}
	m->rules = *rules;
	m->ops = *ops;
	m->user = user;
	m->now = m->opened = now;
	m->timed = CK_CONTAINER + 1;
	for (int kind = CK_SANDBOX; kind <= CK_CONTAINER; kind++) {
		struct ck_list *list = &m->lists[kind];
		list->timer.of = CK_TIMER_LIST;
		list->done = rules->skip_first_list || !rules->can_list;
		list->wanted = !list->done;
		list->pause = CK_LIST_AGAIN_MIN;
	}
	*ret = m;
	return 0;
}

void ck_machine_free(struct ck_machine *m)
{
	if (!m)
		return;
	/* by a round that ended without an event */
	for (struct ck_group *pod; (pod = take_touched(m));)
		ck_group_put(m, pod);
	struct ck_entry *e, *next;
	HASH_ITER (by_row, m->by_row, e, next)
		ck_entry_free(m, e);
	ck_timers_fini(&m->timers);
	free(m->notes);
	free(m->views);
	free(m);
}

bool ck_machine_check(const struct ck_machine *m, char *why, size_t size)
{
	unsigned slots = 0;
	for (const struct ck_entry *e = m->by_row; e; e = e->by_row.next) {
		slots += e->slot;
		const char *wrong = NULL;
		if (e->detached)
			continue;
		if (e->slot && e->row.state != CK_STATE_EVICTING)
			wrong = "holds a slot without being evicted";
		else if (e->row.state != CK_STATE_CREATING && e->row.state != CK_STATE_EVICTING &&
			 !e->row.made && e->row.origin == CK_ORIGIN_CACHE)
			wrong = "has no result";
		else if (e->creator && e->row.state != CK_STATE_CREATING &&
			 e->row.state != CK_STATE_EVICTING)
			wrong = "is still being made";
		else if (e->row.flags & CK_ENTRY_LOST && e->row.state != CK_STATE_CREATING)
			wrong = "is lost but not being made";
		else if (e->row.state == CK_STATE_COMMITTED && e->row.flags & CK_ENTRY_ABANDONED)
			wrong = "is committed and abandoned";
		if (wrong) {
			snprintf(why, size, "entry %llu (%s) %s", (unsigned long long)e->row.id,
				 ck_state_name(e->row.state), wrong);
			return false;
		}
	}
	if (slots != m->destroying) {
		snprintf(why, size, "%u slots held, %u counted", slots, m->destroying);
		return false;
	}
	return true;
}
