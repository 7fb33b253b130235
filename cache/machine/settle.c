/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How an event ends, timers, and the end of a round.
 *
 * An event only queues what follows from it. The caller tries to write the rows of a round, tells
 * ck_machine_settle() whether they are on disk, and carries out the rest after that (K29). Nothing
 * is taken back if they are not: memory decides, and the rows are written later (K32).
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
				if (ck_turn_waits(t))
					ck_turn_place(m, t);
			for (struct ck_entry *e = pod->entries; e; e = ck_pod_next(e))
				if (e->row.state == CK_STATE_KEPT)
					ck_kept_schedule(m, e);
			ck_group_put(m, pod);
		}
		ck_evict_pump(m);
	} while (m->touched); /* an entry without a resource is gone at once, and touches its pod */
	ck_removals_look(m);
}

/* ---- time ------------------------------------------------------------------------------------ */

static void entry_expired(struct ck_machine *m, struct ck_entry *e)
{
	switch (e->row.state) {
	case CK_STATE_CREATING:
	case CK_STATE_UNKNOWN:
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
		else if (!ck_machine_reconciled(m))
			/* turns are not placed before the first list (K24) */
			ck_entry_schedule(m, e, m->now + CK_GAP);
		else if (e->in.kept.offer_at && e->in.kept.offer_at <= m->now) {
			e->in.kept.offer_at = 0; /* once: a required plugin may be absent */
			if (!ck_duplicate_pending(e))
				ck_commit(m, e);
			else
				ck_kept_schedule(m, e);
		} else if (m->now < ck_kept_until(m, e))
			ck_kept_schedule(m, e); /* it was to be asked for a turn that has gone */
		else
			ck_evict(m, e, CK_REASON_TTL);
		break;
	case CK_STATE_COMMITTED:
	case CK_STATE_ENDED:
		ck_tell_used(m, e);
		ck_start_expired(m, e);
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

void ck_machine_expire(struct ck_machine *m)
{
	struct ck_timer *timer;
	ck_event_begin(m);
	while ((timer = ck_timers_pop(&m->timers, m->now))) {
		if (timer->of == CK_TIMER_TURN)
			ck_turn_expired(m, CK_OWNER_OF(timer, struct ck_mturn, timer));
		else if (timer->of == CK_TIMER_ENTRY)
			entry_expired(m, CK_OWNER_OF(timer, struct ck_entry, timer));
		else if (timer->of == CK_TIMER_REMOVAL)
			ck_removal_expired(m, CK_OWNER_OF(timer, struct ck_removal, timer));
		else
			CK_OWNER_OF(timer, struct ck_list, timer)->wanted = true;
	}
	ck_event_end(m);
}

/* ---- the end of a round ---------------------------------------------------------------------- */

static void tell_committed(struct ck_machine *m, struct ck_entry *e)
{
	if (!e->fresh) /* which says that it is visible, too */
		return;
	e->fresh = false;
	if (m->ops.committed)
		m->ops.committed(m->user, e);
}

static void dirty_del(struct ck_machine *m, struct ck_entry *e)
{
	DL_DELETE2(m->dirty, e, dirty_prev, dirty_next);
	e->saved = CK_SAVED;
}

/* a round of a whole node leaves thousands of lines, and the next one has three */
static void history_clear(struct ck_machine *m)
{
	m->history_n = 0;
	if (m->history_room <= CK_HISTORY_ROOM)
		return;
	free(m->history);
	m->history = NULL;
	m->history_room = 0;
}

void ck_machine_settle(struct ck_machine *m, bool written)
{
	history_clear(m);
	for (struct ck_entry *e = m->dirty, *next; e; e = next) {
		next = e->dirty_next;
		tell_committed(m, e);
		if (written && e->saved != CK_REFUSED) {
			e->has_row = !e->detached;
		} else {
			e->saved = written ? CK_REFUSED : CK_VOLATILE;
			if (e->has_row || !e->detached)
				continue; /* it stays dirty, and is written later (K32) */
		}
		dirty_del(m, e);
		if (e->detached)
			ck_entry_free(m, e);
	}
}

void ck_machine_all_dirty(struct ck_machine *m)
{
	for (struct ck_entry *e = m->by_row; e; e = e->by_row.next) {
		e->has_row = false;
		ck_dirty(m, e);
	}
}
