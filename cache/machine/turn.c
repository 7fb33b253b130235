/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns: callers that wait or create. When a turn still counts, what it hears, and whether its
 * request is the one of an entry.
 *
 *   WAITING ---> CREATING (it makes the resource) ---> WAITING (hooks run) ---> DECIDED
 *
 * A decided turn stays in its pod until the round takes its answer. So the turns of a pod can be
 * decided while they are walked.
 */
#include <stdarg.h>
#include <stdio.h>

#include "cache/machine/machine-int.h"

/* an answer given later than this would not arrive (K2) */
static uint64_t turn_margin(uint64_t timeout)
{
	uint64_t margin = timeout / 100 * CK_MARGIN_PERCENT;
	return margin < CK_MARGIN_MIN   ? CK_MARGIN_MIN
	       : margin > CK_MARGIN_MAX ? CK_MARGIN_MAX
					: margin;
}

uint64_t ck_margin_at(const struct ck_machine *m, uint64_t timeout)
{
	uint64_t margin = turn_margin(timeout);
	return !timeout ? CK_NEVER_DUE : timeout > margin ? m->now + timeout - margin : m->now;
}

bool ck_turn_live(const struct ck_machine *m, const struct ck_mturn *t)
{
	return (t->state == CK_TURN_WAITING || t->state == CK_TURN_CREATING) && !t->left &&
	       m->now < t->margin_at;
}

bool ck_turn_takes(const struct ck_machine *m, const struct ck_mturn *t, bool exists)
{
	if (!exists || t->finished) /* a creator is told by its own call (K3) */
		return ck_turn_live(m, t);
	return (t->state == CK_TURN_WAITING || t->state == CK_TURN_CREATING) && !t->left &&
	       (!t->deadline || m->now < t->deadline);
}

uint64_t ck_turn_waits_until(struct ck_machine *m, const struct ck_mturn *t)
{
	const struct ck_entry *e = ck_machine_entry(m, t->row);
	/* the margin would leave it less than half of its time for the answer (K6) */
	bool is_short = t->deadline && t->deadline - t->began < 2 * CK_MARGIN_MIN;
	bool asks = e && t->joined && e->kept && ck_state_open(e->row.state);
	return is_short && asks && !t->finished ? t->deadline : t->margin_at;
}

void ck_turn_schedule(struct ck_machine *m, struct ck_mturn *t)
{
	/* a creator gets its answer from its own call, not from a timer */
	uint64_t due = t->state == CK_TURN_WAITING ? ck_turn_waits_until(m, t) : CK_NEVER_DUE;
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
	t->margin_at = ck_margin_at(m, timeout);
	t->timer.of = CK_TIMER_TURN;
	t->group = pod;
	DL_PREPEND(pod->turns, t);
	ck_turn_schedule(m, t);
}

void ck_turn_detach(struct ck_machine *m, struct ck_mturn *t)
{
	ck_timer_unset(&m->timers, &t->timer);
	if (!t->group)
		return;
	DL_DELETE(t->group->turns, t);
	ck_group_put(m, t->group);
	t->group = NULL;
}

void ck_answered_del(struct ck_machine *m, struct ck_mturn *t)
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
	ck_answered_del(m, t);
	if (t->state == CK_TURN_DECIDED)
		ck_turn_detach(m, t);
	return t;
}

/* CK_CREATE leaves the turn with work to do; any other outcome decides it */
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
		ck_history_add(m, e, CK_WHAT_RELABELLED, 0, NULL);
	}
	t->row = e->row.id;
	t->result = ck_shared_result_ref(e->row.result);
	e->unanswered++;
	ck_turn_answer(m, t, CK_HAND_BACK, NULL);
}

struct ck_entry *ck_creator_ends(struct ck_machine *m, struct ck_mturn *t)
{
	struct ck_entry *e = ck_machine_entry(m, t->row);
	if (!e || e->creator != t)
		return NULL;
	e->creator = NULL;
	if (t->state == CK_TURN_CREATING) {
		t->state = CK_TURN_WAITING;
		t->joined = true;
	}
	ck_turn_schedule(m, t);
	return e;
}

/* ---- whose request is that of an entry ------------------------------------------------------- */

/* The answer for an entry is kept. It can change only when an image is resolved, or when digests
 * could not be read. */
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

void ck_turn_asks(struct ck_machine *m, struct ck_mturn *t, struct ck_entry *e,
		  enum ck_reason reason, struct ck_difference *ret_asks)
{
	*ret_asks = (struct ck_difference){ .count = 1 };
	switch (reason) {
	case CK_REASON_CHANGED:
	case CK_REASON_RELABELLED:
		m->ops.compare(m->user, e, t->fp, ret_asks);
		break;
	case CK_REASON_ATTEMPT:
		snprintf(ret_asks->text, sizeof(ret_asks->text), "attempt %u", t->key->attempt);
		break;
	case CK_REASON_POD_REPLACED:
		snprintf(ret_asks->text, sizeof(ret_asks->text), "uid %.128s", t->key->pod_uid);
		break;
	default:
		break;
	}
}

bool ck_turn_undecided(struct ck_machine *m, struct ck_mturn *t, struct ck_entry *e)
{
	enum ck_reason why;
	if (!ck_turn_same(m, t, e, &why) && t->relation == CK_RELATION_NEEDS_DIGESTS)
		return true; /* the database cannot be read now */
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
		if (t->row == e->row.id && t->state == CK_TURN_WAITING &&
		    ck_turn_takes(m, t, e->kept))
			return true;
	return false;
}

bool ck_overdue(const struct ck_machine *m, const struct ck_entry *e)
{
	CK_FOR_TURNS (t, ck_pod_of(e))
		if (t->row == e->row.id && t->state == CK_TURN_WAITING && t->timer.at &&
		    t->timer.due <= m->now)
			return true;
	return false;
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

void ck_resolve_del(struct ck_machine *m, struct ck_mturn *t)
{
	if (t->resolve != CK_RESOLVE_WANTED)
		return;
	LL_DELETE2(m->resolves, t, resolve_next);
	t->resolve = CK_RESOLVE_NONE;
}
