/* SPDX-License-Identifier: Apache-2.0 */
/* What happens to a turn: it begins, its image is resolved, its time runs out, its caller leaves,
 * its answer arrives or is lost. */
#include "cache/machine/machine-int.h"

/* an entry by which the uid belongs to another name; one uid has one name (K9) */
static struct ck_entry *uid_of_another_name(struct ck_machine *m, const struct ck_key *key)
{
	struct ck_group *uid = ck_group_find(m, CK_BY_UID, key->pod_uid, strlen(key->pod_uid));
	for (struct ck_entry *e = uid ? uid->entries : NULL; e; e = e->link[CK_BY_UID].next)
		if (e->row.state != CK_STATE_GONE && e->row.state != CK_STATE_EVICTING &&
		    !(e->row.flags & CK_ENTRY_ENDED) &&
		    (strcmp(e->row.key->pod_name, key->pod_name) ||
		     strcmp(e->row.key->pod_namespace, key->pod_namespace)))
			return e;
	return NULL;
}

/* Names that the runtime did not tell fit every pod. */
static bool fits(const struct ck_entry *e, const char *known, const char *asked)
{
	return !strcmp(known, asked) || (e->row.origin == CK_ORIGIN_RUNTIME && !*known);
}

/* An evicted entry counts, because it can be found in use and stay. A container of the runtime does
 * not: it says its pod in labels only, and it keeps no key. */
static bool is_of_another_pod(const struct ck_entry *e, const struct ck_key *key)
{
	const struct ck_key *own = e->row.key;
	if (e->row.state == CK_STATE_GONE || e->row.flags & CK_ENTRY_ENDED ||
	    (own->kind == CK_CONTAINER && e->row.origin == CK_ORIGIN_RUNTIME))
		return false;
	return !fits(e, own->pod_namespace, key->pod_namespace) ||
	       !fits(e, own->pod_name, key->pod_name) || !fits(e, own->pod_uid, key->pod_uid);
}

bool ck_sandbox_has_another_pod(struct ck_machine *m, const struct ck_key *key,
				struct ck_error *err)
{
	if (key->kind != CK_CONTAINER)
		return false;
	struct ck_entry *e = ck_machine_object(m, CK_SANDBOX, key->sandbox_id);
	if (!e || !is_of_another_pod(e, key)) {
		e = ck_sandbox_containers(m, key->sandbox_id);
		while (e && !is_of_another_pod(e, key))
			e = e->link[CK_BY_SANDBOX].next;
	}
	if (!e)
		return false;
	const struct ck_key *own = e->row.key;
	char who[3 * CK_NAME_MAX_LEN];
	ck_history_add(m, e, CK_WHAT_CONFLICT, 0, "its sandbox was requested with another pod");
	ck_fail(err, CK_EINVAL, "%s: the sandbox belongs to a pod of another%s%s%s",
		ck_key_print(key, who, sizeof(who)),
		fits(e, own->pod_namespace, key->pod_namespace) ? "" : " namespace",
		fits(e, own->pod_name, key->pod_name) ? "" : " name",
		fits(e, own->pod_uid, key->pod_uid) ? "" : " uid");
	return true;
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
	struct ck_entry *other = uid_of_another_name(m, key);
	if (other) {
		ck_history_add(m, other, CK_WHAT_CONFLICT, 0,
			       "its pod's uid was requested with another name or namespace");
		return ck_fail(err, CK_EINVAL,
			       "pod uid %.64s belongs to a pod of another name or namespace",
			       key->pod_uid);
	}
	if (ck_sandbox_has_another_pod(m, key, err))
		return -CK_EINVAL;
	if (ck_timers_reserve(&m->timers, m->timed + 1) < 0)
		return ck_nomem(err);
	struct ck_group *pod = ck_pod_group(m, key, true);
	if (!pod)
		return ck_nomem(err);
	m->timed++;
	ck_event_begin(m);
	m->counters.requests++;
	if (timeout > m->longest_deadline[key->kind])
		m->longest_deadline[key->kind] = timeout;
	ck_turn_attach(m, t, pod, timeout);
	ck_bump(m, t);
	/* Nothing has moved, so that the other turns need no new place. A move touches the pod. */
	if (!pod->touched)
		ck_turn_place(m, t);
	ck_event_end(m);
	return t->answered_queued ? t->outcome : CK_WAIT;
}

int ck_machine_drain(struct ck_machine *m, struct ck_mturn *t, enum ck_kind kind, const char *id,
		     uint64_t timeout, struct ck_error *err)
{
	struct ck_entry *e = ck_machine_object(m, kind, id);
	t->drain_kind = kind;
	t->drain = ck_strdup(id);
	if (!t->drain || ck_timers_reserve(&m->timers, m->timed + 1) < 0 ||
	    (kind == CK_SANDBOX && ck_stop_begins(m, id) < 0))
		return ck_nomem(err);
	struct ck_entry *in = kind == CK_SANDBOX ? ck_sandbox_containers(m, id) : NULL;
	ck_event_begin(m);
	if (e && e->row.state == CK_STATE_COMMITTED)
		e->removing = true;
	if (in) {
		m->timed++;
		ck_turn_attach(m, t, ck_pod_of(in), timeout);
		ck_touch(m, t->group);
	} else { /* no container of it is known */
		t->state = CK_TURN_DECIDED;
		t->outcome = CK_DRAINED;
	}
	if (kind == CK_SANDBOX)
		ck_sandbox_stopped(m, id, true);
	ck_event_end(m);
	return t->state == CK_TURN_DECIDED ? t->outcome : CK_WAIT;
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

/* ---- time ------------------------------------------------------------------------------------ */

static unsigned seconds(const struct ck_machine *m, uint64_t since)
{
	return (unsigned)(ck_duration_between(since, m->now) / CK_NS_PER_S);
}

/* the margin is reached: the answer says what took so long (K3, K14) */
static void turn_out_of_time(struct ck_machine *m, struct ck_mturn *t)
{
	struct ck_entry *e = ck_machine_entry(m, t->row);
	char who[3 * CK_NAME_MAX_LEN];
	m->counters.busy++;
	if (t->drain) {
		ck_turn_answer(m, t, CK_BUSY,
			       "containers of the sandbox are still being created or destroyed");
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
	ck_history_add(m, e, CK_WHAT_BUSY, 0, NULL);
	switch (e->row.state) {
	case CK_STATE_EVICTING:
		if (ck_evict_waits(e))
			ck_turn_answer(m, t, -CK_EUNAVAILABLE,
				       "%s: removing the earlier result: its %s, %u s in all", who,
				       e->row.phase == CK_PHASE_HOOKS ? "plugins are being told"
								      : "creation still runs",
				       seconds(m, e->row.created));
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
			who, seconds(m, e->row.existed));
		break;
	case CK_STATE_COMMITTING:
		ck_turn_answer(m, t, CK_BUSY, "%s: plugins are being told for %u s", who,
			       seconds(m, e->row.changed));
		break;
	case CK_STATE_CREATING:
		ck_turn_answer(m, t, CK_BUSY,
			       "%s: still being created, stage \"%s\" for %u s, %u s in all", who,
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
		ck_turn_place(m, t); /* it has waited long enough for ports (K10) */
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

/* ---- the caller goes ------------------------------------------------------------------------- */

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
		ck_turn_detach(m, t);
	}
	if (e && !e->detached) {
		ck_history_add(m, e, CK_WHAT_CALLER_GONE, 0, NULL);
		e->row.interest = m->now;
		if (e->row.state == CK_STATE_KEPT)
			ck_kept_schedule(m, e);
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
	ck_turn_detach(m, t); /* before the others are placed, or it would begin again */
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
	if (e && t->state == CK_TURN_DECIDED && t->outcome == CK_HAND_BACK && !t->reported &&
	    e->unanswered)
		e->unanswered--;
	struct ck_entry *removed = t->drain ? ck_machine_object(m, t->drain_kind, t->drain) : NULL;
	/* it was not forgotten, so its removal has failed, and nobody need wait for it */
	if (removed && removed->removing) {
		ck_event_begin(m);
		removed->removing = false;
		ck_touch(m, ck_pod_of(removed));
		ck_event_end(m);
	}
	ck_answered_del(m, t);
	ck_resolve_del(m, t);
	ck_turn_detach(m, t);
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
	ck_shared_result_unref(t->result);
	ck_shared_status_unref(t->status);
	t->key = NULL;
	t->drain = NULL;
	t->result = NULL;
	t->status = NULL;
}

/* A container is kept again if its answer was lost and nobody else got it (K7). */
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
		ck_history_add(m, e, CK_WHAT_ANSWER_LOST, 0, NULL);
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
