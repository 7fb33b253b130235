/* SPDX-License-Identifier: Apache-2.0 */
/* Removals by the kubelet (K16). A removal of a sandbox waits until no container of it is being
 * created or destroyed. What is removed is not handed out meanwhile (K5). */
#include "cache/machine/machine-int.h"

static bool is_busy(struct ck_machine *m, const char *sandbox_id)
{
	struct ck_entry *e = ck_sandbox_containers(m, sandbox_id);
	while (e && !ck_state_open(e->row.state) && e->row.state != CK_STATE_EVICTING)
		e = e->link[CK_BY_SANDBOX].next;
	return e;
}

static void decide(struct ck_machine *m, struct ck_removal *r, int outcome)
{
	struct ck_entry *e = ck_machine_object(m, r->kind, r->id);
	ck_timer_unset(&m->timers, &r->timer);
	r->state = CK_REMOVAL_DONE;
	r->outcome = outcome;
	if (e && outcome != CK_DRAINED) /* nothing is removed, and nobody need wait for it */
		ck_touch(m, ck_pod_of(e));
}

static void answer(struct ck_machine *m, struct ck_removal *r, int outcome)
{
	decide(m, r, outcome);
	DL_APPEND2(m->removed, r, removed_prev, removed_next);
}

void ck_removals_look(struct ck_machine *m)
{
	for (struct ck_removal *r = m->removals; r; r = r->next)
		if (r->state == CK_REMOVAL_WAITING && !(r->kind == CK_SANDBOX && is_busy(m, r->id)))
			answer(m, r, CK_DRAINED);
}

int ck_machine_remove_begin(struct ck_machine *m, struct ck_removal *r, enum ck_kind kind,
			    const char *id, uint64_t timeout, struct ck_error *err)
{
	r->kind = kind;
	r->id = ck_strdup(id);
	ck_event_begin(m);
	if (!r->id || ck_timers_reserve(&m->timers, m->timed + 1) < 0 ||
	    (kind == CK_SANDBOX && ck_stop_begins(m, id) < 0))
		return ck_nomem(err);
	m->timed++;
	r->state = CK_REMOVAL_WAITING;
	r->timer.of = CK_TIMER_REMOVAL;
	ck_timer_set(&m->timers, &r->timer, ck_margin_at(m, timeout));
	DL_APPEND(m->removals, r);
	if (kind == CK_SANDBOX)
		ck_sandbox_stopped(m, id);
	ck_event_end(m);
	return r->state == CK_REMOVAL_DONE ? r->outcome : CK_WAIT;
}

void ck_removal_expired(struct ck_machine *m, struct ck_removal *r)
{
	m->counters.busy[r->kind]++;
	answer(m, r, CK_BUSY);
	ck_fail(&r->err, CK_EUNAVAILABLE,
		"containers of the sandbox are still being created or destroyed");
}

void ck_machine_remove_leave(struct ck_machine *m, struct ck_removal *r)
{
	if (r->state != CK_REMOVAL_WAITING)
		return;
	ck_event_begin(m);
	decide(m, r, -CK_EABANDONED);
	ck_fail(&r->err, CK_EABANDONED, "the caller has gone");
	ck_event_end(m);
}

struct ck_removal *ck_machine_removed(struct ck_machine *m)
{
	struct ck_removal *r = m->removed;
	if (r) {
		DL_DELETE2(m->removed, r, removed_prev, removed_next);
		r->removed_prev = NULL;
	}
	return r;
}

bool ck_being_removed(const struct ck_machine *m, const struct ck_entry *e)
{
	if (e->destroy_calls) /* begun before it was found in use (K22) */
		return true;
	if (CK_NEVER(!e->row.result))
		return false;
	for (const struct ck_removal *r = m->removals; r; r = r->next)
		if ((r->state == CK_REMOVAL_WAITING || r->outcome == CK_DRAINED) &&
		    r->kind == e->row.key->kind && !strcmp(r->id, e->row.result->id))
			return true;
	return false;
}

/* If it was not forgotten, its removal has failed, and nobody need wait for it any more. */
void ck_machine_remove_end(struct ck_machine *m, struct ck_removal *r)
{
	if (r->state != CK_REMOVAL_NONE) {
		struct ck_entry *e = ck_machine_object(m, r->kind, r->id);
		ck_event_begin(m);
		ck_timer_unset(&m->timers, &r->timer);
		m->timed--;
		DL_DELETE(m->removals, r);
		if (r->removed_prev) /* it is in the list: the first one's is the last */
			DL_DELETE2(m->removed, r, removed_prev, removed_next);
		if (e)
			ck_touch(m, ck_pod_of(e));
		ck_event_end(m);
	}
	free(r->id);
	r->id = NULL;
	r->removed_prev = NULL;
	r->state = CK_REMOVAL_NONE;
}
