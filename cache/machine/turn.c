/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Live callers and waiters: when one still counts, what it hears, and when it hears it although
 * nothing was decided.
 *
 *   WAITING ---> CREATING (it makes the resource) ---> WAITING (hooks run) ---> DECIDED
 *
 * A decided turn stays in its pod until the round takes its answer, so that a pod's turns can be
 * walked while they are decided.
 */
#include <stdarg.h>
#include <stdio.h>

#include "cache/machine/machine-int.h"

/* K2: an answer given later than this would not arrive */
static uint64_t turn_margin(uint64_t timeout)
{
	uint64_t margin = timeout / 100 * CK_MARGIN_PERCENT;
	return margin < CK_MARGIN_MIN   ? CK_MARGIN_MIN
	       : margin > CK_MARGIN_MAX ? CK_MARGIN_MAX
					: margin;
}

bool ck_turn_live(const struct ck_machine *m, const struct ck_mturn *t)
{
	return (t->state == CK_TURN_WAITING || t->state == CK_TURN_CREATING) && !t->left &&
	       !t->drain && m->now < t->margin_at;
}

void ck_turn_schedule(struct ck_machine *m, struct ck_mturn *t)
{
	/* a creator gets no early answer */
	uint64_t due = t->state == CK_TURN_WAITING ? t->margin_at : CK_NEVER_DUE;
	if (t->state == CK_TURN_WAITING && t->supersede_at && t->supersede_at > m->now &&
	    t->supersede_at < due)
		due = t->supersede_at;
	ck_timer_set(&m->timers, &t->timer, due);
}

void ck_turn_attach(struct ck_machine *m, struct ck_mturn *t, struct ck_group *pod,
		    uint64_t timeout)
{
	t->state = CK_TURN_WAITING;
	t->seq = ++m->turn_seq;
	t->began = m->now;
	t->deadline = timeout ? m->now + timeout : 0;
	t->margin_at = !timeout                         ? CK_NEVER_DUE
		       : timeout > turn_margin(timeout) ? t->deadline - turn_margin(timeout)
							: m->now;
	t->timer.of = CK_TIMER_TURN;
	t->group = pod;
	DL_PREPEND(pod->turns, t);
	ck_turn_schedule(m, t);
}

static void turn_detach(struct ck_machine *m, struct ck_mturn *t)
{
	ck_timer_unset(&m->timers, &t->timer);
	if (!t->group)
		return;
	DL_DELETE(t->group->turns, t);
	ck_group_put(m, t->group);
	t->group = NULL;
}

static void answered_unlink(struct ck_machine *m, struct ck_mturn *t)
{
	if (!t->answered_queued)
		return;
	DL_DELETE2(m->answered, t, answered_prev, answered_next);
	t->answered_queued = false;
}

struct ck_mturn *ck_machine_answered(struct ck_machine *m)
{
	struct ck_mturn *t = m->answered;
	if (!t)
		return NULL;
	answered_unlink(m, t);
	if (t->state == CK_TURN_DECIDED)
		turn_detach(m, t);
	return t;
}

/* CK_CREATE leaves the turn with work to do; everything else decides it */
void ck_turn_answer(struct ck_machine *m, struct ck_mturn *t, int outcome, const char *fmt, ...)
{
	if (CK_NEVER(t->state == CK_TURN_DECIDED))
		return;
	t->outcome = outcome;
	t->state = outcome == CK_CREATE ? CK_TURN_CREATING : CK_TURN_DECIDED;
	ck_turn_schedule(m, t);
	if (fmt) {
		va_list ap;
		va_start(ap, fmt);
		t->err = (struct ck_error){ .code = outcome < 0 ? -outcome : CK_EUNAVAILABLE };
		vsnprintf(t->err.text, sizeof(t->err.text), fmt, ap);
		va_end(ap);
	}
	if (t->answered_queued)
		return;
	t->answered_queued = true;
	DL_APPEND2(m->answered, t, answered_prev, answered_next);
}

void ck_turn_hand_back(struct ck_machine *m, struct ck_mturn *t, struct ck_entry *e)
{
	if (t->cosmetic) {
		m->counters.relabelled++;
		ck_note_entry(m, e, CK_WHAT_RELABELLED, 0, NULL);
	}
	t->row = e->row.id;
	t->made = ck_made_ref(e->row.made);
	e->unanswered++;
	ck_turn_answer(m, t, CK_HAND_BACK, NULL);
}

/* is the request that of the entry (K11, K12)? The answer cannot change but for an image that is
 * resolved later. */
bool ck_turn_same(struct ck_machine *m, struct ck_mturn *t, struct ck_entry *e,
		  enum ck_reason *ret_why)
{
	if (t->compared_row != e->row.id || t->relation == CK_RELATION_IMAGE ||
	    t->relation == CK_RELATION_NEEDS_DIGESTS) {
		t->relation = m->ops.compare(m->user, e, t->fp, NULL);
		t->compared_row = e->row.id;
	}
	t->cosmetic = false;
	*ret_why = CK_REASON_CHANGED;
	switch (t->relation) {
	case CK_RELATION_SAME:
		return true;
	case CK_RELATION_COSMETIC:
		*ret_why = CK_REASON_RELABELLED;
		t->cosmetic = m->rules.on_annotation_change == CK_ANNOTATION_HAND_BACK ||
			      (m->rules.on_annotation_change == CK_ANNOTATION_AUTO &&
			       e->row.relabelled > 0);
		return t->cosmetic;
	case CK_RELATION_NOT_COMPARABLE:
		*ret_why = CK_REASON_NOT_COMPARABLE;
		return false;
	default:
		return false;
	}
}

/* ---- E5: one image under two references ------------------------------------------------------ */

void ck_turn_want_resolve(struct ck_machine *m, struct ck_mturn *t)
{
	if (!m->rules.can_resolve || t->key->kind != CK_CONTAINER || t->resolve != CK_RESOLVE_NONE)
		return;
	t->resolve = CK_RESOLVE_WANTED;
	LL_PREPEND2(m->resolves, t, resolve_next);
}

struct ck_mturn *ck_machine_take_resolve(struct ck_machine *m)
{
	struct ck_mturn *t = m->resolves;
	if (!t)
		return NULL;
	LL_DELETE2(m->resolves, t, resolve_next);
	t->resolve = CK_RESOLVE_ASKED;
	return t;
}

static void resolve_unlink(struct ck_machine *m, struct ck_mturn *t)
{
	if (t->resolve != CK_RESOLVE_WANTED)
		return;
	LL_DELETE2(m->resolves, t, resolve_next);
	t->resolve = CK_RESOLVE_NONE;
}

void ck_machine_resolved(struct ck_machine *m, struct ck_mturn *t)
{
	struct ck_entry *e = ck_machine_entry(m, t->row);
	t->resolve = CK_RESOLVE_DONE;
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

bool ck_turn_undecided(struct ck_machine *m, struct ck_mturn *t, struct ck_entry *e)
{
	enum ck_reason why;
	if (!ck_turn_same(m, t, e, &why) && t->relation == CK_RELATION_NEEDS_DIGESTS)
		return true; /* the database cannot be read now: it waits */
	if (t->relation != CK_RELATION_IMAGE || !m->rules.can_resolve)
		return false;
	ck_turn_want_resolve(m, t);
	return t->resolve != CK_RESOLVE_DONE;
}

struct ck_mturn *ck_newest_live(struct ck_machine *m, struct ck_entry *e)
{
	CK_FOR_TURNS (t, ck_pod_of(e))
		if (ck_turn_live(m, t) && ck_key_same(t->key, e->row.key))
			return t;
	return NULL;
}

bool ck_awaited(const struct ck_machine *m, const struct ck_entry *e)
{
	CK_FOR_TURNS (t, ck_pod_of(e))
		if (t->row == e->row.id && t->state == CK_TURN_WAITING && ck_turn_live(m, t))
			return true;
	return false;
}

/* a turn that waits for it has reached its margin, and has not heard of it */
bool ck_overdue(const struct ck_machine *m, const struct ck_entry *e)
{
	CK_FOR_TURNS (t, ck_pod_of(e))
		if (t->row == e->row.id && t->state == CK_TURN_WAITING && t->timer.at &&
		    t->timer.due <= m->now)
			return true;
	return false;
}

static unsigned seconds(const struct ck_machine *m, uint64_t since)
{
	return (unsigned)((m->now - since) / CK_NS_PER_S);
}

/* the margin is reached (K3, K14): say what it was that took so long */
static void turn_out_of_time(struct ck_machine *m, struct ck_mturn *t)
{
	struct ck_entry *e = ck_machine_entry(m, t->row);
	char who[3 * CK_NAME_MAX_LEN];
	m->counters.busy++;
	if (t->drain) {
		ck_turn_answer(m, t, CK_BUSY,
			       "containers of the sandbox are still being made or destroyed");
		return;
	}
	ck_key_print(t->key, who, sizeof(who));
	if (!ck_machine_reconciled(m)) {
		ck_turn_answer(m, t, -CK_EUNAVAILABLE,
			       "the runtime has not listed its sandboxes and containers yet");
		return;
	}
	if (!e || !t->row) {
		ck_turn_answer(m, t, CK_BUSY, "%s: waiting for %u s", who, seconds(m, t->began));
		return;
	}
	ck_note_entry(m, e, CK_WHAT_BUSY, 0, NULL);
	switch (e->row.state) {
	case CK_STATE_EVICTING:
		ck_turn_answer(m, t, -CK_EUNAVAILABLE,
			       "%s: removing the earlier result, try %u: %s", who, e->row.tries + 1,
			       e->row.tries ? ck_grpc_name(e->row.last_grpc) : "under way");
		break;
	case CK_STATE_KEPT:
		ck_turn_answer(
			m, t, CK_BUSY,
			"%s: exists for %u s; the runtime has not said yet whether it is alive",
			who, seconds(m, e->row.existed));
		break;
	case CK_STATE_COMMITTING:
		ck_turn_answer(m, t, CK_BUSY, "%s: plugins are being told for %u s", who,
			       seconds(m, e->row.changed));
		break;
	case CK_STATE_CREATING:
		ck_turn_answer(m, t, CK_BUSY, "%s: %s, stage \"%s\" for %u s, %u s in all", who,
			       e->row.flags & CK_ENTRY_ABANDONED
				       ? "an abandoned creation still runs"
				       : "still being made",
			       e->row.stage[0] ? e->row.stage : "unknown",
			       seconds(m, e->row.staged ? e->row.staged : e->row.created),
			       seconds(m, e->row.created));
		break;
	default:
		ck_turn_answer(m, t, CK_BUSY, "%s: waiting for a removal", who);
	}
}

void ck_turn_expired(struct ck_machine *m, struct ck_mturn *t)
{
	if (t->state != CK_TURN_WAITING)
		return;
	if (t->supersede_at && m->now >= t->supersede_at) {
		ck_turn_place(m, t); /* K10: waited long enough for ports */
		if (t->state != CK_TURN_WAITING)
			return;
	}
	struct ck_entry *e = ck_machine_entry(m, t->row);
	if (m->now < t->margin_at) {
		ck_turn_schedule(m, t);
		return;
	}
	turn_out_of_time(m, t);
	if (e && e->row.state == CK_STATE_KEPT) {
		e->row.interest = m->now;
		ck_kept_schedule(m, e);
	}
}

/* ---- the caller's side ----------------------------------------------------------------------- */

void ck_machine_leave(struct ck_machine *m, struct ck_mturn *t)
{
	bool first = !t->left;
	t->left = true;
	if (!first || t->state == CK_TURN_NONE || t->state == CK_TURN_DECIDED)
		return;
	ck_event_begin(m);
	struct ck_entry *e = ck_machine_entry(m, t->row);
	if (t->state == CK_TURN_WAITING) {
		t->state = CK_TURN_DECIDED;
		t->outcome = -CK_EABANDONED;
		t->err = (struct ck_error){ .code = CK_EABANDONED, .text = "the caller has gone" };
		turn_detach(m, t);
	}
	if (e && !e->detached) {
		ck_note_entry(m, e, CK_WHAT_CALLER_GONE, 0, NULL);
		e->row.interest = m->now;
		if (e->row.state == CK_STATE_KEPT)
			ck_kept_schedule(m, e);
		if (e->row.state == CK_STATE_COMMITTING && CK_BROKEN(R41))
			ck_abandon(m, e, CK_REASON_ADMIN);
	}
	ck_event_end(m);
}

void ck_machine_unheard(struct ck_machine *m, struct ck_mturn *t)
{
	struct ck_entry *e = ck_machine_entry(m, t->row);
	if (!e || e->creator != t || t->again || t->finished)
		return;
	ck_event_begin(m);
	ck_creator_ends(m, t);
	t->left = true;
	t->state = CK_TURN_DECIDED;
	t->outcome = -CK_EABANDONED;
	turn_detach(m, t); /* before the others are placed: it is not to begin once more */
	ck_note_entry(m, e, CK_WHAT_CALLER_GONE, 0, NULL);
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
	if (e && t->state == CK_TURN_DECIDED && t->outcome == CK_HAND_BACK && !t->reported &&
	    e->unanswered)
		e->unanswered--;
	struct ck_entry *removed = t->drain ? ck_machine_object(m, t->drain_kind, t->drain) : NULL;
	/* and was not forgotten: the removal failed, and nobody need wait for it */
	if (removed && removed->removing) {
		ck_event_begin(m);
		removed->removing = false;
		ck_touch(m, ck_pod_of(removed));
		ck_event_end(m);
	}
	answered_unlink(m, t);
	resolve_unlink(m, t);
	turn_detach(m, t);
	if (t->seq)
		m->timed--;
	t->seq = 0;
	t->state = CK_TURN_NONE;
}

void ck_machine_drop(struct ck_machine *m, struct ck_mturn *t)
{
	ck_machine_part(m, t);
	ck_key_free(t->key);
	free(t->drain);
	ck_made_unref(t->made);
	ck_shared_status_unref(t->status);
	t->key = NULL;
	t->drain = NULL;
	t->made = NULL;
	t->status = NULL;
}

/* K7: the answer of a container's create was lost, and nobody else got it */
void ck_machine_answer_reported(struct ck_machine *m, struct ck_mturn *t, bool delivered)
{
	struct ck_entry *e = ck_machine_entry(m, t->row);
	if (t->outcome != CK_HAND_BACK || t->state != CK_TURN_DECIDED || t->reported)
		return;
	t->reported = true;
	if (!e || e->detached)
		return;
	ck_event_begin(m);
	if (e->unanswered)
		e->unanswered--;
	if (delivered) {
		if (!(e->row.flags & CK_ENTRY_DELIVERED))
			ck_dirty(m, e);
		e->row.flags |= CK_ENTRY_DELIVERED;
	} else {
		m->counters.answers_lost++;
		ck_note_entry(m, e, CK_WHAT_ANSWER_LOST, 0, NULL);
		if (e->row.state == CK_STATE_COMMITTED && e->row.key->kind == CK_CONTAINER &&
		    !e->unanswered && !e->running && !e->removing &&
		    !(e->row.flags & (CK_ENTRY_DELIVERED | CK_ENTRY_ENDED))) {
			ck_entry_move(m, e, CK_STATE_KEPT);
			e->row.interest = m->now;
			ck_kept_schedule(m, e);
		}
	}
	ck_event_end(m);
}

/* ---- a runtime's status, shared -------------------------------------------------------------- */

struct ck_shared_status *ck_shared_status_new(const struct ck_status *status)
{
	struct ck_shared_status *s = CK_NEW(struct ck_shared_status);
	if (!s)
		return NULL;
	s->refs = 1;
	s->grpc = status->grpc;
	s->message = ck_strdup(status->message ? status->message : "");
	s->details = status->details_len ? ck_memdup(status->details, status->details_len) : NULL;
	s->details_len = s->details ? status->details_len : 0;
	if (!s->message || (status->details_len && !s->details)) {
		ck_shared_status_unref(s);
		return NULL;
	}
	return s;
}

struct ck_shared_status *ck_shared_status_ref(struct ck_shared_status *s)
{
	if (s)
		__atomic_add_fetch(&s->refs, 1, __ATOMIC_RELAXED);
	return s;
}

void ck_shared_status_unref(struct ck_shared_status *s)
{
	if (!s || __atomic_sub_fetch(&s->refs, 1, __ATOMIC_ACQ_REL))
		return;
	free(s->message);
	free(s->details);
	free(s);
}
