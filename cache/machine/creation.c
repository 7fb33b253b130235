/* SPDX-License-Identifier: Apache-2.0 */
/* What its creator says about a creation: how far it is, and how it ends. */
#include <stdio.h>

#include "cache/machine/machine-int.h"

int ck_machine_stage(struct ck_machine *m, struct ck_mturn *t, const char *stage)
{
	struct ck_entry *e = ck_machine_entry(m, t->row);
	if (!e || e->creator != t)
		return -CK_ESTATE;
	snprintf(e->row.stage, sizeof(e->row.stage), "%s", stage);
	e->row.staged = m->now;
	ck_dirty(m, e);
	return 0;
}

/* What the creator's own call returns: the answer, or that its caller can no longer be answered
 * (K3). */
static int creator_outcome(struct ck_machine *m, struct ck_mturn *t, const struct ck_entry *e)
{
	if (ck_turn_decided(t)) {
		int outcome = t->decision.outcome;
		/* a list showed it first, and then its time was up */
		return outcome == CK_BUSY ? CK_KEPT : outcome;
	}
	if (e->row.state == CK_STATE_COMMITTING && ck_turn_live(m, t))
		return CK_WAIT;
	if (e->row.state == CK_STATE_EVICTING) {
		ck_turn_answer(m, t, -CK_EABANDONED, "superseded: %s",
			       ck_reason_text(e->row.reason));
		return -CK_EABANDONED;
	}
	if (ck_turn_live(m, t))
		return CK_WAIT; /* until a duplicate is gone (K26) */
	ck_turn_answer(m, t, CK_KEPT,
		       t->state == CK_TURN_ORPHANED ? "the caller has gone"
						    : "the caller's deadline has passed");
	return CK_KEPT;
}

/* Its object is destroyed, and no call is under way that could destroy another one of this id. */
static bool is_spent(const struct ck_entry *e)
{
	return e->row.state == CK_STATE_GONE && !e->destroy_calls;
}

/* @e, whose id was not known, gets that of @result, which a tombstone may still have. Happens whole
 * or not at all. */
static int take_id(struct ck_machine *m, struct ck_entry *e, struct ck_shared_result *result,
		   struct ck_error *err)
{
	struct ck_entry *other = ck_machine_object(m, e->row.key->kind, result->id);
	if (other && !is_spent(other))
		return ck_fail(err, CK_EINVAL, "the id belongs to another entry");
	if (ck_entry_set_result(m, e, result) < 0)
		return ck_nomem(err);
	if (other) {
		e->id_since = other->changed_seq;
		ck_tombstone_end(m, other);
	}
	return 0;
}

int ck_machine_finish(struct ck_machine *m, struct ck_mturn *t, struct ck_shared_result *result,
		      struct ck_error *err)
{
	struct ck_entry *e = ck_machine_entry(m, t->row);
	if (e && e->creator != t && t->making == e->row.id && !CK_NEVER(!e->row.result) &&
	    !strcmp(e->row.result->id, result->id)) {
		ck_turn_made(t);
		/* it took so long that a list showed it first (K8) */
		return creator_outcome(m, t, e);
	}
	if (!e || e->creator != t)
		return ck_fail(err, CK_ESTATE, "the turn is not creating anything");
	ck_event_begin(m);
	int r = take_id(m, e, result, err);
	if (r < 0)
		return r;
	ck_creator_ends(m, t);
	ck_turn_made(t);
	ck_search_ends(e);
	if (e->row.state == CK_STATE_EVICTING)
		ck_evict_goes_on(m, e); /* it was given up meanwhile */
	else
		ck_result_known(m, e);
	ck_event_end(m);
	return creator_outcome(m, t, e);
}

/* The runtime was asked for the same before, and this may come of that: the name is taken, in
 * whatever words; or the second request got nowhere (K8). */
static bool first_may_run(const struct ck_entry *e, int grpc)
{
	return e->row.flags & CK_ENTRY_RESENT &&
	       (grpc == CK_GRPC_ALREADY_EXISTS || grpc == CK_GRPC_UNKNOWN ||
		grpc == CK_GRPC_FAILED_PRECONDITION || grpc == CK_GRPC_CANCELLED ||
		grpc == CK_GRPC_DEADLINE_EXCEEDED || grpc == CK_GRPC_UNAVAILABLE);
}

int ck_machine_fail(struct ck_machine *m, struct ck_mturn *t, struct ck_shared_status *status,
		    const char *detail)
{
	struct ck_entry *e = ck_machine_entry(m, t->row);
	if (!e || e->creator != t)
		return -CK_ESTATE;
	if (first_may_run(e, status->grpc)) {
		ck_machine_lost(m, t);
		return CK_WAIT;
	}
	ck_event_begin(m);
	ck_creator_ends(m, t);
	t->making = 0;
	ck_history_add(m, e, CK_WHAT_FAILED, status->grpc, detail);
	m->counters.failed[e->row.key->kind]++;
	/* Every turn that joined gets the same status; other turns are placed anew (K4). */
	CK_FOR_TURNS (w, ck_pod_of(e))
		if (w->row == e->row.id &&
		    (w->state == CK_TURN_JOINED || (w == t && t->state == CK_TURN_ORPHANED)))
			ck_turn_failed(m, w, status, detail);
	if (e->row.state != CK_STATE_EVICTING)
		ck_entry_drop(m, e);
	else if (!CK_NEVER(!ck_evict_waits(e))) /* it had a creator: its id is not known */
		ck_evict_confirmed(m, e);
	ck_event_end(m);
	return 0;
}

int ck_machine_lost(struct ck_machine *m, struct ck_mturn *t)
{
	ck_event_begin(m);
	struct ck_entry *e = ck_creator_parts(m, t);
	if (!e)
		return -CK_ESTATE;
	t->making = 0;
	ck_lost(m, e);
	ck_touch(m, ck_pod_of(e));
	ck_event_end(m);
	return 0;
}
