/* SPDX-License-Identifier: Apache-2.0 */
/* What the host sees of resources: their condition, that they are used, started, stopped or
 * removed. */
#include "cache/machine/machine-int.h"

/* No creation begins in a sandbox that stops, and its uncommitted containers are evicted (K16). */
void ck_sandbox_stopped(struct ck_machine *m, const char *sandbox_id)
{
	struct ck_entry *e = ck_machine_object(m, CK_SANDBOX, sandbox_id);
	if (e && ck_state_visible(e->row.state))
		ck_ended(m, e);
	else
		ck_containers_stopped(m, sandbox_id);
}

void ck_sandbox_gone(struct ck_machine *m, const char *sandbox_id)
{
	ck_sandbox_stopped(m, sandbox_id);
	for (struct ck_entry *c = ck_sandbox_containers(m, sandbox_id), *next; c; c = next) {
		next = c->link[CK_BY_SANDBOX].next;
		if (ck_state_visible(c->row.state))
			ck_entry_drop(m, c);
	}
}

/* nobody has named it or was handed it since the restart (K25) */
static bool nobody_has_it(const struct ck_entry *e)
{
	return e->in.committed.undelivered && !e->in.committed.unanswered &&
	       !(e->row.flags & CK_ENTRY_DELIVERED);
}

/* Nobody asks this of a sandbox, and its row need not be written again. */
void ck_somebody_has(struct ck_machine *m, struct ck_entry *e)
{
	if (e->row.key->kind == CK_SANDBOX || e->row.flags & CK_ENTRY_DELIVERED)
		return;
	e->row.flags |= CK_ENTRY_DELIVERED;
	ck_dirty(m, e);
}

void ck_condition_seen(struct ck_machine *m, struct ck_entry *e, enum ck_condition condition)
{
	bool sandbox = e->row.key->kind == CK_SANDBOX;
	switch (e->row.state) {
	case CK_STATE_KEPT:
	case CK_STATE_COMMITTING:
	case CK_STATE_EVICTING:
		if (ck_condition_used(condition) && !sandbox) {
			e->running = true;
			if (condition == CK_CONDITION_RAN)
				ck_was_in_use(m, e);
			else
				ck_in_use(m, e);
		} else if (ck_condition_dead(condition)) {
			if (e->row.state == CK_STATE_KEPT)
				ck_abandon(m, e, CK_REASON_DEAD);
			else if (e->row.state == CK_STATE_COMMITTING)
				ck_evict(m, e, CK_REASON_DEAD);
			e->in.evicting.dead = true;
		}
		break;
	case CK_STATE_COMMITTED:
		if (ck_condition_used(condition)) {
			if (e->row.origin == CK_ORIGIN_CACHE) /* the other is never taken back */
				ck_somebody_has(m, e);
			e->in.committed.undelivered = false;
		}
		if (condition == CK_CONDITION_RUNNING) {
			e->running = true;
			ck_start_seen_running(m, e);
		} else if (ck_condition_dead(condition)) {
			ck_ended(m, e);
		} else if (condition == CK_CONDITION_READY && nobody_has_it(e)) {
			ck_take_back(m, e);
		}
		break;
	case CK_STATE_ENDED:
		if (condition == CK_CONDITION_READY && nobody_has_it(e)) {
			e->row.flags |= CK_ENTRY_TOLD; /* as ck_take_back() */
			ck_evict(m, e, CK_REASON_SANDBOX_STOPPED);
		} else if (ck_condition_used(condition)) {
			e->in.committed.undelivered = false;
		} else if (ck_condition_dead(condition)) {
			ck_ended(m, e);
		}
		break;
	default:
		break;
	}
}

int ck_stop_begins(struct ck_machine *m, const char *sandbox_id)
{
	const struct ck_entry *e = ck_machine_object(m, CK_SANDBOX, sandbox_id);
	return e && ck_state_visible(e->row.state) ? 0 : ck_unknown_stop_note(m, sandbox_id);
}

int ck_machine_stopping(struct ck_machine *m, const char *sandbox_id)
{
	ck_event_begin(m);
	if (ck_stop_begins(m, sandbox_id) < 0)
		return -CK_ENOMEM;
	ck_sandbox_stopped(m, sandbox_id);
	ck_event_end(m);
	return 0;
}

int ck_machine_forget(struct ck_machine *m, enum ck_kind kind, const char *id)
{
	struct ck_entry *e = ck_machine_object(m, kind, id);
	bool visible = e && ck_state_visible(e->row.state);
	/* its id came from the runtime or from a plugin that is just being told */
	bool hidden = e && (e->row.state == CK_STATE_KEPT || e->row.state == CK_STATE_COMMITTING);
	bool stopped = kind == CK_SANDBOX && ck_unknown_stop_forget(m, id);
	ck_event_begin(m);
	if (kind == CK_SANDBOX)
		ck_sandbox_gone(m, id);
	if (visible)
		ck_entry_drop(m, e);
	else if (hidden)
		ck_evict(m, e, CK_REASON_ABSENT);
	ck_event_end(m);
	return visible || hidden || stopped ? 0 : -CK_ENOTFOUND;
}

int ck_machine_seen(struct ck_machine *m, enum ck_kind kind, const char *id,
		    enum ck_condition condition)
{
	struct ck_entry *e = ck_machine_object(m, kind, id);
	if (!e)
		return -CK_ENOTFOUND;
	ck_event_begin(m);
	ck_condition_seen(m, e, condition);
	ck_event_end(m);
	return 0;
}

int ck_machine_used(struct ck_machine *m, enum ck_kind kind, const char *id)
{
	struct ck_entry *e = ck_machine_object(m, kind, id);
	if (!e || !ck_state_visible(e->row.state))
		return -CK_ENOTFOUND;
	ck_somebody_has(m, e);
	return 0;
}

/* Only its answer, or a plugin, can have told the id of a container that is kept after its commit
 * had begun. So whoever starts it has it, and the runtime says whether it is alive (K7). */
static void delivered_by_start(struct ck_machine *m, struct ck_entry *e)
{
	ck_unwant(m, e, CK_WANT_INSPECT);
	e->outstanding &= ~(unsigned)CK_WANT_INSPECT;
	ck_history_add(m, e, CK_WHAT_STARTED, 0, NULL);
	e->in_time = true;
	ck_commit(m, e);
}

int ck_machine_starting(struct ck_machine *m, const char *id)
{
	struct ck_entry *e = ck_machine_object(m, CK_CONTAINER, id);
	ck_event_begin(m);
	if (e && e->row.state == CK_STATE_KEPT && e->row.flags & CK_ENTRY_TOLD &&
	    !ck_duplicate_pending(e))
		delivered_by_start(m, e);
	int r = ck_machine_used(m, CK_CONTAINER, id);
	ck_event_end(m);
	return r;
}
