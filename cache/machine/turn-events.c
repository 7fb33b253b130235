/* SPDX-License-Identifier: Apache-2.0 */
/* What happens to a turn: it begins, its image is resolved, its time runs out, its caller leaves,
 * its answer arrives or is lost. */
#include "cache/machine/machine-int.h"

static void sandbox_taken(struct ck_machine *m, const char *id)
{
	struct ck_entry *sandbox = ck_machine_object(m, CK_SANDBOX, id);
	if (sandbox)
		ck_taken(m, sandbox);
}

int ck_machine_begin(struct ck_machine *m, struct ck_mturn *t, struct ck_key *key,
		     const struct ck_fingerprint *fp, uint64_t timeout, bool expired,
		     struct ck_error *err)
{
	t->key = key;
	t->fp = fp;
	if (expired) /* it abandons nothing (K9) */
		return ck_fail(err, CK_EDEADLINE,
			       "the caller's deadline had passed before its request was read");
	if (ck_uid_has_another_name(m, key, err) || ck_sandbox_has_another_pod(m, key, err))
		return -CK_EINVAL;
	if (ck_timers_reserve(&m->timers, m->timed + 1) < 0)
		return ck_nomem(err);
	struct ck_group *pod = ck_pod_group(m, key, true);
	if (!pod)
		return ck_nomem(err);
	m->timed++;
	ck_event_begin(m);
	m->counters.requests[key->kind]++;
	if (key->kind == CK_CONTAINER)
		sandbox_taken(m, key->sandbox_id);
	if (timeout > m->longest_deadline[key->kind])
		m->longest_deadline[key->kind] = timeout;
	ck_turn_attach(m, t, pod, timeout);
	ck_bump(m, t);
	/* Nothing has moved, so that the other turns need no new place. A move touches the pod. */
	if (!pod->touched)
		ck_turn_place(m, t);
	ck_event_end(m);
	return ck_turn_answered_now(t) ? ck_turn_outcome(t) : CK_WAIT;
}

void ck_machine_resolved(struct ck_machine *m, struct ck_mturn *t)
{
	struct ck_entry *e = ck_machine_entry(m, t->row);
	t->image.state = CK_IMAGE_KNOWN;
	if (!t->group)
		return;
	ck_event_begin(m);
	if (e && e->begun_turn == t->seq && !e->detached) {
		m->ops.set_image(m->user, e, t->fp);
		ck_dirty(m, e);
	}
	ck_touch(m, t->group);
	ck_event_end(m);
}

/* The newest live request of a key decides what becomes of the result (K11). If that was @t: the
 * older one that decides when @t does not count any more. One that has joined has its place. */
static struct ck_mturn *heir(struct ck_machine *m, const struct ck_mturn *t)
{
	CK_FOR_TURNS (h, t->group)
		if (h != t && ck_turn_live(m, h) && ck_key_same(h->key, t->key))
			return h->seq < t->seq && h->state == CK_TURN_WAITING ? h : NULL;
	return NULL;
}

/* ---- time ------------------------------------------------------------------------------------ */

/* the margin is reached: the answer says what took so long (K3, K14) */
static void turn_out_of_time(struct ck_machine *m, struct ck_mturn *t)
{
	struct ck_entry *e = ck_machine_entry(m, t->row);
	char who[3 * CK_NAME_MAX_LEN];
	m->counters.busy[t->key->kind]++;
	ck_key_print(t->key, who, sizeof(who));
	if (!ck_machine_reconciled(m)) {
		ck_turn_answer(m, t, -CK_EUNAVAILABLE,
			       "the runtime has not listed its sandboxes and containers yet");
		return;
	}
	if (!e) {
		ck_turn_answer(m, t, CK_BUSY, "%s: waiting for %u s", who,
			       ck_seconds_since(m, t->began));
		return;
	}
	ck_history_add(m, e, CK_WHAT_BUSY, 0, NULL);
	switch (e->row.state) {
	case CK_STATE_EVICTING:
		if (ck_evict_waits(e))
			ck_turn_answer(m, t, -CK_EUNAVAILABLE,
				       "%s: removing the earlier result: its %s, %u s in all", who,
				       e->row.phase == CK_PHASE_HOOKS ? "plugins are being told"
								      : "creation still runs",
				       ck_seconds_since(m, e->row.created));
		else
			ck_turn_answer(m, t, -CK_EUNAVAILABLE,
				       "%s: removing the earlier result, try %u: %s", who,
				       e->row.tries + 1,
				       e->row.tries ? ck_grpc_name(e->row.last_grpc) : "under way");
		break;
	case CK_STATE_KEPT:
		ck_turn_answer(
			m, t, CK_BUSY,
			"%s: exists for %u s; the runtime has not said yet whether it is alive",
			who, ck_seconds_since(m, e->row.existed));
		break;
	case CK_STATE_COMMITTING:
		ck_turn_answer(m, t, CK_BUSY, "%s: plugins are being told for %u s", who,
			       ck_seconds_since(m, e->row.changed));
		break;
	case CK_STATE_CREATING:
	case CK_STATE_UNKNOWN:
		ck_turn_answer(m, t, CK_BUSY,
			       "%s: still being created, stage \"%s\" for %u s, %u s in all", who,
			       e->row.stage[0] ? e->row.stage : "unknown",
			       ck_seconds_since(m, e->row.staged ? e->row.staged : e->row.created),
			       ck_seconds_since(m, e->row.created));
		break;
	default:
		if (e->row.start)
			ck_turn_answer(m, t, CK_BUSY, "%s: attempt %u is being started for %u s",
				       who, e->row.key->attempt,
				       ck_seconds_since(m, e->row.staged));
		else
			ck_turn_answer(m, t, CK_BUSY, "%s: waiting for a removal", who);
	}
}

void ck_turn_expired(struct ck_machine *m, struct ck_mturn *t)
{
	/* it has waited long enough for ports (K10), or the database may be readable again; others
	 * may have read it by now and left this one where it was */
	if ((t->state == CK_TURN_WAITING && t->waiting.ports_at && m->now >= t->waiting.ports_at) ||
	    (ck_turn_waits(t) && m->now < ck_turn_waits_until(m, t)))
		ck_turn_place(m, t);
	if (t->state == CK_TURN_CREATING)
		ck_write_begun(m, ck_machine_entry(m, t->row));
	if (!ck_turn_waits(t))
		return;
	if (m->now < ck_turn_waits_until(m, t)) {
		ck_turn_schedule(m, t);
		return;
	}
	struct ck_entry *e = ck_machine_entry(m, t->row);
	struct ck_mturn *next = heir(m, t);
	turn_out_of_time(m, t);
	if (e && e->row.state == CK_STATE_KEPT) {
		ck_interest(m, e);
		ck_kept_schedule(m, e);
	}
	if (next)
		ck_turn_place(m, next);
}

/* ---- the caller goes ------------------------------------------------------------------------- */

void ck_machine_leave(struct ck_machine *m, struct ck_mturn *t)
{
	if (!ck_turn_waits(t) && t->state != CK_TURN_CREATING)
		return;
	ck_event_begin(m);
	struct ck_entry *e = ck_machine_entry(m, t->row);
	struct ck_mturn *next = heir(m, t);
	ck_turn_gone(m, t);
	if (e && !e->detached) {
		ck_history_add(m, e, CK_WHAT_CALLER_GONE, 0, NULL);
		ck_interest(m, e);
		if (e->row.state == CK_STATE_KEPT)
			ck_kept_schedule(m, e);
	}
	if (next)
		ck_turn_place(m, next);
	ck_event_end(m);
}

void ck_machine_unheard(struct ck_machine *m, struct ck_mturn *t)
{
	struct ck_entry *e = ck_machine_entry(m, t->row);
	if (!e || e->creator != t || t->again)
		return;
	ck_event_begin(m);
	ck_creator_parts(m, t);
	ck_turn_gone(m, t); /* before the others are placed, or it would begin again */
	ck_history_add(m, e, CK_WHAT_CALLER_GONE, 0, NULL);
	if (e->row.state == CK_STATE_EVICTING)
		ck_evict_confirmed(m, e);
	else
		ck_entry_drop(m, e);
	ck_event_end(m);
}

void ck_machine_part(struct ck_machine *m, struct ck_mturn *t)
{
	struct ck_entry *e = ck_machine_entry(m, t->row);
	if (e && e->creator == t)
		ck_machine_lost(m, t);
	ck_machine_leave(m, t);
	if (t->state == CK_TURN_HANDED)
		ck_turn_reported(m, t, e);
	ck_answered_del(m, t);
	ck_resolve_del(m, t);
	ck_turn_detach(m, t);
	if (t->seq)
		m->timed--;
	t->seq = 0;
}

void ck_machine_drop(struct ck_machine *m, struct ck_mturn *t)
{
	ck_machine_part(m, t);
	ck_turn_fini(t);
}

/* A container is kept again if its answer was lost and nobody else got it (K7). */
void ck_machine_answer_reported(struct ck_machine *m, struct ck_mturn *t, bool delivered)
{
	struct ck_entry *e = ck_machine_entry(m, t->row);
	if (t->state != CK_TURN_HANDED)
		return;
	ck_turn_reported(m, t, e);
	if (!e || e->detached)
		return;
	ck_event_begin(m);
	if (delivered) {
		ck_somebody_has(m, e);
		ck_taken(m, e);
	} else {
		e->in_time = e->in_time && t->seq != e->begun_turn;
		m->counters.answers_lost[e->row.key->kind]++;
		ck_history_add(m, e, CK_WHAT_ANSWER_LOST, 0, NULL);
		if (e->row.state == CK_STATE_COMMITTED && e->row.key->kind == CK_CONTAINER &&
		    !e->in.committed.unanswered && !e->running && !ck_being_removed(m, e) &&
		    !(e->row.flags & CK_ENTRY_DELIVERED)) {
			ck_take_back(m, e);
		}
	}
	ck_event_end(m);
}
