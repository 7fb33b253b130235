/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How an event ends, timers, and the end of a round.
 *
 * An event only queues what follows from it. The caller writes the rows of a round, tells
 * ck_machine_settle() whether they are on disk, and carries out the rest after that (K29).
 */
#include "cache/machine/machine-int.h"

void ck_event_begin(struct ck_machine *m)
{
	m->seq++;
}

/* the turns of touched pods are placed anew until nothing moves any more */
void ck_event_end(struct ck_machine *m)
{
	do {
		for (struct ck_group *pod; (pod = ck_take_touched(m));) {
			CK_FOR_TURNS (t, pod)
				if (t->state == CK_TURN_WAITING)
					ck_turn_place(m, t);
			for (struct ck_entry *e = pod->entries; e; e = ck_pod_next(e))
				if (e->row.state == CK_STATE_KEPT)
					ck_kept_schedule(m, e);
			ck_group_put(m, pod);
		}
		ck_evict_pump(m);
	} while (m->touched); /* an entry without a resource is gone at once, and touches its pod */
}

/* ---- time ------------------------------------------------------------------------------------ */

static void entry_expired(struct ck_machine *m, struct ck_entry *e)
{
	switch (e->row.state) {
	case CK_STATE_CREATING:
		ck_lost_expired(m, e);
		break;
	case CK_STATE_KEPT:
		if ((e->wants | e->outstanding) & CK_WANT_INSPECT) { /* there was no answer */
			ck_unwant(m, e, CK_WANT_INSPECT);
			e->outstanding &= ~(unsigned)CK_WANT_INSPECT;
			ck_inspected_kept(m, e, CK_CONDITION_UNKNOWN);
		} else if (ck_awaited(m, e))
			ck_touch(m, ck_pod_of(e)); /* the host is asked again (K6) */
		else if (ck_overdue(m, e))
			/* the timer of the turn that waits is due as well, and goes on from here */
			ck_entry_schedule(m, e, CK_NEVER_DUE);
		else if (m->now < ck_kept_until(m, e))
			ck_kept_schedule(m, e); /* it was to be asked for a turn that has gone */
		else if (!ck_machine_reconciled(m))
			/* turns are not placed before the first list (K24) */
			ck_entry_schedule(m, e, m->now + CK_GAP);
		else
			ck_evict(m, e, CK_REASON_TTL);
		break;
	case CK_STATE_EVICTING:
		if (ck_evict_waits(e))
			ck_lost_expired(m, e);
		else
			ck_evict_expired(m, e);
		break;
	case CK_STATE_GONE:
		ck_gone_expired(m, e);
		break;
	default:
		break;
	}
}

#define TIMER_OWNER(timer, type) ((type *)(void *)((char *)(timer)-offsetof(type, timer)))

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

/* The commit of an entry could not be written, while an earlier row of it is on disk: it is KEPT
 * again, and nobody is answered (K32). */
static void uncommit(struct ck_machine *m, struct ck_entry *e, const char *why)
{
	for (struct ck_mturn *t = m->answered; t; t = t->answered_next) {
		if (t->row != e->row.id ||
		    (t->outcome != CK_HAND_BACK && t->outcome != -CK_ECONFLICT))
			continue;
		if (t->outcome == CK_HAND_BACK)
			e->unanswered--;
		ck_shared_result_unref(t->result);
		t->result = NULL;
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
	/* turns that were to be answered after the hooks, or because it was found in use */
	CK_FOR_TURNS (t, ck_pod_of(e))
		if (t->state == CK_TURN_WAITING && t->row == e->row.id && t->joined)
			ck_turn_answer(
				m, t, -CK_EUNAVAILABLE,
				"the result exists, but handing it over cannot be recorded: %s",
				why);
	ck_kept_schedule(m, e);
	/* it ended in the same round, and a successor may have begun, so it cannot stay */
	if (ended) {
		ck_evict(m, e, CK_REASON_DEAD);
		ck_entry_schedule(m, e, m->now); /* a timer starts it: no event ends here */
	}
	/* turns that wait for something else are placed anew; the write is tried again */
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
	m->history_n = 0;
	if (!written)
		m->counters.write_failures++;
	for (struct ck_entry *e = m->dirty, *next; e; e = next) {
		next = e->dirty_next;
		bool refused = e->refused;
		e->refused = false;
		if (written && !refused) {
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
		if (written) /* the other rows */
			why = "the database refuses its row";
		if (commits)
			uncommit(m, e, why);
		tell_committed(m, e); /* no row of it is on disk, so memory decides (K32) */
		if (e->detached && !e->written) { /* the database never knew of it */
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
