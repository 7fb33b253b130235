/* SPDX-License-Identifier: Apache-2.0 */
/* Turns: callers that wait or create. How a turn moves, when it still counts, what it hears, and
 * whether its request is the one of an entry. machine.h draws the states. */
#include <stdarg.h>
#include <stdio.h>

#include "cache/machine/machine-int.h"

uint64_t ck_margin_at(const struct ck_machine *m, uint64_t timeout)
{
	uint64_t margin = timeout / 100 * CK_MARGIN_PERCENT;
	margin = margin < CK_MARGIN_MIN   ? CK_MARGIN_MIN
		 : margin > CK_MARGIN_MAX ? CK_MARGIN_MAX
					  : margin;
	return !timeout ? CK_NEVER_DUE : timeout > margin ? m->now + timeout - margin : m->now;
}

bool ck_turn_live(const struct ck_machine *m, const struct ck_mturn *t)
{
	return (ck_turn_waits(t) || t->state == CK_TURN_CREATING) && m->now < t->margin_at;
}

bool ck_turn_takes(const struct ck_machine *m, const struct ck_mturn *t, bool exists)
{
	if (!exists || t->made) /* a creator is told by its own call (K3) */
		return ck_turn_live(m, t);
	return (ck_turn_waits(t) || t->state == CK_TURN_CREATING) &&
	       (!t->deadline || m->now < t->deadline);
}

uint64_t ck_turn_waits_until(struct ck_machine *m, const struct ck_mturn *t)
{
	const struct ck_entry *e = ck_machine_entry(m, t->row);
	/* the margin would leave it less than half of its time for the answer (K6) */
	bool is_short = t->deadline && t->deadline - t->began < 2 * CK_MARGIN_MIN;
	bool asks = e && t->state == CK_TURN_JOINED && e->was_kept &&
		    !CK_NEVER(!ck_state_open(e->row.state));
	return is_short && asks && !t->made ? t->deadline : t->margin_at;
}

/* ---- states ---------------------------------------------------------------------------------- */

static bool may_move(enum ck_turn_state from, enum ck_turn_state to)
{
	static const unsigned moves[] = {
#define TURN_MOVES(name, to) [CK_TURN_##name] = (to),
		CK_TURN_STATES(TURN_MOVES)
#undef TURN_MOVES
	};
	return moves[from] & 1u << to;
}

/* until then, that its creation has begun need not be written */
static uint64_t begun_until(struct ck_machine *m, const struct ck_mturn *t)
{
	const struct ck_entry *e = ck_machine_entry(m, t->row);
	if (CK_NEVER(!e) || !e->row_waits)
		return CK_NEVER_DUE;
	uint64_t until = e->row.created + CK_BEGUN_WAITS;
	return t->margin_at < until ? t->margin_at : until;
}

/* a creator gets its answer from its own call, not from a timer */
void ck_turn_schedule(struct ck_machine *m, struct ck_mturn *t)
{
	uint64_t due = ck_turn_waits(t) ? ck_turn_waits_until(m, t) : CK_NEVER_DUE;
	if (t->state == CK_TURN_CREATING)
		due = begun_until(m, t);
	if (t->state == CK_TURN_WAITING && t->waiting.ports_at > m->now &&
	    t->waiting.ports_at < due)
		due = t->waiting.ports_at;
	if (ck_turn_waits(t) && ck_turn_unread(t) && m->now + CK_RETRY_WRITE < due)
		due = m->now + CK_RETRY_WRITE;
	ck_timer_set(&m->timers, &t->timer, due);
}

static bool move(struct ck_machine *m, struct ck_mturn *t, enum ck_turn_state to)
{
	if (CK_NEVER(!may_move(t->state, to)))
		return false;
	bool was_decided = ck_turn_decided(t);
	t->state = to;
	if (!was_decided)
		t->decision = (struct ck_decision){ 0 }; /* the largest of the union */
	ck_turn_schedule(m, t);
	return true;
}

void ck_turn_attach(struct ck_machine *m, struct ck_mturn *t, struct ck_group *pod,
		    uint64_t timeout)
{
	t->seq = ++m->turn_seq;
	t->began = m->now;
	t->deadline = timeout ? m->now + timeout : 0;
	t->margin_at = ck_margin_at(m, timeout);
	t->timer.of = CK_TIMER_TURN;
	t->group = pod;
	DL_PREPEND(pod->turns, t);
	move(m, t, CK_TURN_WAITING);
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

void ck_turn_wait_for(struct ck_machine *m, struct ck_mturn *t, uint64_t row)
{
	t->row = row;
	if (t->state == CK_TURN_JOINED)
		move(m, t, CK_TURN_WAITING);
}

void ck_turn_wait_for_ports(struct ck_machine *m, struct ck_mturn *t, uint64_t until)
{
	t->waiting.ports_at = until;
	ck_turn_schedule(m, t);
}

void ck_turn_join(struct ck_machine *m, struct ck_mturn *t, struct ck_entry *e)
{
	t->row = e->row.id;
	if (t->state == CK_TURN_WAITING)
		move(m, t, CK_TURN_JOINED);
}

/* ---- answers --------------------------------------------------------------------------------- */

bool ck_turn_answered_now(const struct ck_mturn *t)
{
	return t->answered_prev; /* the first one's is the last */
}

static void answered_add(struct ck_machine *m, struct ck_mturn *t)
{
	if (!ck_turn_answered_now(t))
		DL_APPEND2(m->answered, t, answered_prev, answered_next);
}

void ck_answered_del(struct ck_machine *m, struct ck_mturn *t)
{
	if (!ck_turn_answered_now(t))
		return;
	DL_DELETE2(m->answered, t, answered_prev, answered_next);
	t->answered_prev = NULL;
}

struct ck_mturn *ck_machine_answered(struct ck_machine *m)
{
	struct ck_mturn *t = m->answered;
	if (!t)
		return NULL;
	ck_answered_del(m, t);
	if (ck_turn_decided(t))
		ck_turn_detach(m, t);
	return t;
}

/* the rest of the decision is written by who decides it */
static bool decide(struct ck_machine *m, struct ck_mturn *t, enum ck_turn_state to, int outcome)
{
	if (CK_NEVER(!move(m, t, to)))
		return false;
	t->decision.outcome = outcome;
	answered_add(m, t);
	return true;
}

void ck_turn_answer(struct ck_machine *m, struct ck_mturn *t, int outcome, const char *fmt, ...)
{
	va_list ap;
	if (CK_NEVER(!decide(m, t, CK_TURN_DECIDED, outcome)))
		return;
	t->decision.err.code = outcome < 0 ? -outcome : CK_EUNAVAILABLE;
	va_start(ap, fmt);
	vsnprintf(t->decision.err.text, sizeof(t->decision.err.text), fmt, ap);
	va_end(ap);
}

void ck_turn_failed(struct ck_machine *m, struct ck_mturn *t, struct ck_shared_status *status,
		    const char *detail)
{
	ck_turn_answer(m, t, -CK_EFAILED, "%s: %s", ck_grpc_name(status->grpc),
		       detail && detail[0] ? detail : "the creation failed");
	t->decision.status = ck_shared_status_ref(status);
	t->decision.err.sub = status->grpc;
}

void ck_turn_supersede(struct ck_machine *m, struct ck_mturn *t, enum ck_reason reason)
{
	bool makes = t->state == CK_TURN_CREATING || t->state == CK_TURN_ORPHANED;
	m->counters.superseded[t->key->kind]++;
	if (CK_NEVER(!decide(m, t, makes ? CK_TURN_SUPERSEDED : CK_TURN_DECIDED, -CK_EABANDONED)))
		return;
	ck_fail(&t->decision.err, CK_EABANDONED, "superseded: %s", ck_reason_text(reason));
}

void ck_turn_hand_back(struct ck_machine *m, struct ck_mturn *t, struct ck_entry *e)
{
	if (t->compared.relation == CK_RELATION_COSMETIC) {
		m->counters.relabelled[e->row.key->kind]++;
		ck_history_add(m, e, CK_WHAT_RELABELLED, 0, NULL);
	}
	if (CK_NEVER(!decide(m, t, CK_TURN_HANDED, CK_HAND_BACK)))
		return;
	t->row = e->row.id;
	e->in_time = e->in_time || t->seq == e->begun_turn;
	e->in.committed.unanswered++;
	t->decision.result = ck_shared_result_ref(e->row.result);
}

void ck_turn_gone(struct ck_machine *m, struct ck_mturn *t)
{
	if (t->state == CK_TURN_CREATING) {
		move(m, t, CK_TURN_ORPHANED);
	} else if (ck_turn_waits(t)) {
		move(m, t, CK_TURN_DECIDED);
		t->decision.outcome = -CK_EABANDONED;
		ck_fail(&t->decision.err, CK_EABANDONED, "the caller has gone");
		ck_turn_detach(m, t);
	}
}

void ck_turn_reported(struct ck_machine *m, struct ck_mturn *t, struct ck_entry *e)
{
	move(m, t, CK_TURN_DECIDED);
	if (e && e->row.state == CK_STATE_COMMITTED && !CK_NEVER(!e->in.committed.unanswered))
		e->in.committed.unanswered--;
}

void ck_turn_fini(struct ck_mturn *t)
{
	ck_key_free(t->key);
	if (ck_turn_decided(t)) {
		ck_shared_result_unref(t->decision.result);
		ck_shared_status_unref(t->decision.status);
	}
	*t = (struct ck_mturn){ 0 };
}

/* ---- creators -------------------------------------------------------------------------------- */

void ck_creator_begins(struct ck_machine *m, struct ck_mturn *t, struct ck_entry *e)
{
	e->creator = t;
	t->row = t->making = e->row.id;
	t->again = e->row.flags & CK_ENTRY_RESENT;
	move(m, t, CK_TURN_CREATING);
	answered_add(m, t);
}

struct ck_entry *ck_creator_ends(struct ck_machine *m, struct ck_mturn *t)
{
	struct ck_entry *e = ck_machine_entry(m, t->row);
	if (!e || e->creator != t)
		return NULL;
	e->creator = NULL;
	if (t->state == CK_TURN_CREATING) {
		ck_answered_del(m, t); /* if it has not heard that it was to create */
		move(m, t, CK_TURN_JOINED);
	} else if (t->state == CK_TURN_SUPERSEDED) {
		move(m, t, CK_TURN_DECIDED);
	}
	return e;
}

void ck_turn_made(struct ck_mturn *t)
{
	t->made = t->making;
	t->making = 0;
}

struct ck_entry *ck_creator_parts(struct ck_machine *m, struct ck_mturn *t)
{
	struct ck_entry *e = ck_creator_ends(m, t);
	if (e && t->state == CK_TURN_ORPHANED)
		ck_turn_answer(m, t, CK_KEPT, "the caller has gone");
	return e;
}

/* ---- whose request is that of an entry ------------------------------------------------------- */

/* The answer for an entry is kept. It can change only when an image is resolved, or when digests
 * could not be read. */
bool ck_turn_same(struct ck_machine *m, struct ck_mturn *t, struct ck_entry *e,
		  enum ck_reason *ret_why)
{
	if (t->compared.row != e->row.id || t->compared.relation == CK_RELATION_IMAGE ||
	    t->compared.relation == CK_RELATION_NEEDS_DIGESTS) {
		t->compared.relation = m->ops.compare(m->user, e, t->fp, NULL);
		t->compared.row = e->row.id;
	}
	*ret_why = CK_REASON_CHANGED;
	switch (t->compared.relation) {
	case CK_RELATION_SAME:
		return true;
	case CK_RELATION_COSMETIC:
		*ret_why = CK_REASON_RELABELLED;
		return m->rules.on_annotation_change == CK_ANNOTATION_HAND_BACK;
	case CK_RELATION_NOT_COMPARABLE:
		*ret_why = CK_REASON_NOT_COMPARABLE;
		return false;
	default:
		return false;
	}
}

void ck_turn_explain(struct ck_machine *m, struct ck_mturn *t, struct ck_entry *e,
		     enum ck_reason reason)
{
	struct ck_difference asks = { 0 };
	if (reason == CK_REASON_CHANGED || reason == CK_REASON_RELABELLED)
		m->ops.compare(m->user, e, t->fp, &asks);
	else if (reason == CK_REASON_ATTEMPT)
		snprintf(asks.text, sizeof(asks.text), "attempt %u", t->key->attempt);
	else if (reason == CK_REASON_POD_REPLACED)
		snprintf(asks.text, sizeof(asks.text), "uid %.128s", t->key->pod_uid);
	ck_history_explain(m, e, asks.text);
}

bool ck_turn_undecided(struct ck_machine *m, struct ck_mturn *t, struct ck_entry *e)
{
	enum ck_reason why;
	if (!ck_turn_same(m, t, e, &why) && ck_turn_unread(t))
		return true; /* the database cannot be read now */
	if (t->compared.relation != CK_RELATION_IMAGE || !m->rules.can_resolve)
		return false;
	ck_turn_want_resolve(m, t);
	return t->image.state != CK_IMAGE_KNOWN;
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
		if (t->row == e->row.id && ck_turn_waits(t) && ck_turn_takes(m, t, e->was_kept))
			return true;
	return false;
}

bool ck_overdue(const struct ck_machine *m, const struct ck_entry *e)
{
	CK_FOR_TURNS (t, ck_pod_of(e))
		if (t->row == e->row.id && ck_turn_waits(t))
			return !CK_NEVER(!t->timer.at || t->timer.due > m->now);
	return false;
}

/* ---- one image under two references (E5) ----------------------------------------------------- */

void ck_turn_want_resolve(struct ck_machine *m, struct ck_mturn *t)
{
	if (!m->rules.can_resolve || t->key->kind != CK_CONTAINER ||
	    t->image.state != CK_IMAGE_AS_IT_IS)
		return;
	t->image.state = CK_IMAGE_WANTED;
	LL_PREPEND2(m->resolves, t, image.next);
}

struct ck_mturn *ck_machine_take_resolve(struct ck_machine *m)
{
	struct ck_mturn *t = m->resolves;
	if (!t)
		return NULL;
	LL_DELETE2(m->resolves, t, image.next);
	t->image.state = CK_IMAGE_ASKED;
	return t;
}

void ck_resolve_del(struct ck_machine *m, struct ck_mturn *t)
{
	if (t->image.state != CK_IMAGE_WANTED)
		return;
	LL_DELETE2(m->resolves, t, image.next);
	t->image.state = CK_IMAGE_AS_IT_IS;
}
