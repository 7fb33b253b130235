/* SPDX-License-Identifier: Apache-2.0 */
/* Events: what callers, the host and the hooks say. Each happens whole, or returns an error and
 * nothing happened. */
#include <stdio.h>

#include "cache/machine/machine-int.h"

/* ---- events of callers ----------------------------------------------------------------------- */

/* K9: one uid has one name */
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

int ck_machine_begin(struct ck_machine *m, struct ck_mturn *t, struct ck_key *key,
		     const struct ck_fingerprint *fp, uint64_t timeout, bool expired,
		     struct ck_error *err)
{
	t->key = key;
	t->fp = fp;
	if (expired) /* it moves nothing (K9) */
		return ck_fail(err, CK_EDEADLINE,
			       "the caller's deadline had passed before its request was read");
	struct ck_entry *other = uid_of_another_name(m, key);
	if (other) {
		ck_note_entry(m, other, CK_WHAT_CONFLICT, 0,
			      "its pod's uid was asked for under another name or namespace");
		return ck_fail(err, CK_EINVAL,
			       "pod uid %.64s belongs to a pod of another name or namespace",
			       key->pod_uid);
	}
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
	/* nothing has moved: those that wait go on, however many they are; a move touches the
	 * pod */
	if (!pod->touched)
		ck_turn_place(m, t);
	ck_event_end(m);
	return t->answered_queued ? t->outcome : CK_WAIT;
}

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

/* a turn that made something becomes an ordinary waiter, or, if its caller has gone, is done */
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

/* what a creator's own call returns: the answer, or that its caller can no longer be answered
 * (K3) */
static int creator_outcome(struct ck_machine *m, struct ck_mturn *t, const struct ck_entry *e)
{
	if (t->state == CK_TURN_DECIDED && t->outcome == CK_BUSY)
		return CK_KEPT; /* a list told of it, and then its own time was up */
	if (t->state == CK_TURN_DECIDED)
		return t->outcome == -CK_EABANDONED ? CK_ABANDONED : t->outcome;
	if (e->row.state == CK_STATE_COMMITTING && ck_turn_live(m, t))
		return CK_WAIT;
	if (e->row.state == CK_STATE_EVICTING || e->row.flags & CK_ENTRY_ABANDONED) {
		ck_turn_answer(m, t, -CK_EABANDONED, "superseded: %s",
			       ck_reason_text(e->row.reason));
		return CK_ABANDONED;
	}
	if (ck_turn_live(m, t))
		return CK_WAIT; /* K26: until a loser is gone */
	ck_turn_answer(m, t, CK_KEPT, "the caller's deadline has passed");
	return CK_KEPT;
}

int ck_machine_finish(struct ck_machine *m, struct ck_mturn *t, struct ck_made *made,
		      struct ck_error *err)
{
	struct ck_entry *e = ck_machine_entry(m, t->row);
	if (e && e->creator != t && !t->finished && t->seq == e->begun_turn && e->row.made &&
	    !strcmp(e->row.made->id, made->id)) {
		t->finished = true;
		/* it took so long that a list told of it first (K8) */
		return creator_outcome(m, t, e);
	}
	if (!e || e->creator != t)
		return ck_fail(err, CK_ESTATE, "the turn is not making anything");
	struct ck_entry *other = ck_machine_object(m, e->row.key->kind, made->id);
	if (other && !ck_is_nameless(other))
		return ck_fail(err, CK_EINVAL, "the id belongs to another entry");
	ck_event_begin(m);
	/* somebody read the id in the runtime and stopped it before we knew whose it is */
	if (other)
		ck_entry_drop(m, other);
	if (e->row.made ? 0 : ck_entry_set_made(m, e, made) < 0)
		return ck_nomem(err);
	ck_creator_ends(m, t);
	t->finished = true;
	e->row.flags &= ~(unsigned)CK_ENTRY_LOST;
	if (e->row.state == CK_STATE_EVICTING)
		ck_evict_found(m, e); /* evicted meanwhile: the id is learned late */
	else
		ck_result_known(m, e);
	ck_event_end(m);
	return creator_outcome(m, t, e);
}

int ck_machine_fail(struct ck_machine *m, struct ck_mturn *t, struct ck_shared_status *status,
		    const char *detail)
{
	struct ck_entry *e = ck_machine_entry(m, t->row);
	if (!e || e->creator != t)
		return -CK_ESTATE;
	/* K8: the first of the two requests still runs */
	if (e->row.flags & CK_ENTRY_RESENT && status->grpc == CK_GRPC_ALREADY_EXISTS)
		return ck_machine_lost(m, t);
	ck_event_begin(m);
	ck_creator_ends(m, t);
	ck_note_entry(m, e, CK_WHAT_FAILED, status->grpc, detail);
	m->counters.failed++;
	/* K4: the same status for all; whoever asks for something else is placed anew */
	CK_FOR_TURNS (w, ck_pod_of(e)) {
		if (w->row != e->row.id || w->state != CK_TURN_WAITING || !w->joined || w->drain)
			continue;
		w->status = ck_shared_status_ref(status);
		ck_turn_answer(m, w, -CK_EFAILED, "%s: %s", ck_grpc_name(status->grpc),
			       detail && detail[0] ? detail : "the creation failed");
		w->err.sub = status->grpc;
	}
	if (e->row.state == CK_STATE_EVICTING)
		ck_evict_confirmed(m, e);
	else
		ck_entry_drop(m, e);
	ck_event_end(m);
	return 0;
}

int ck_machine_lost(struct ck_machine *m, struct ck_mturn *t)
{
	ck_event_begin(m);
	struct ck_entry *e = ck_creator_ends(m, t);
	if (!e)
		return -CK_ESTATE;
	if (t->state == CK_TURN_WAITING && t->left)
		ck_turn_answer(m, t, CK_KEPT, "the caller has gone");
	ck_lost(m, e);
	ck_touch(m, ck_pod_of(e));
	ck_event_end(m);
	return 0;
}

int ck_machine_drain(struct ck_machine *m, struct ck_mturn *t, enum ck_kind kind, const char *id,
		     uint64_t timeout, struct ck_error *err)
{
	struct ck_entry *e = ck_machine_object(m, kind, id);
	t->drain_kind = kind;
	t->drain = ck_strdup(id);
	if (!t->drain || ck_timers_reserve(&m->timers, m->timed + 1) < 0)
		return ck_nomem(err);
	struct ck_entry *in = kind == CK_SANDBOX ? ck_sandbox_containers(m, id) : NULL;
	ck_event_begin(m);
	if (e && e->row.state == CK_STATE_COMMITTED)
		e->removing = true;
	if (in) {
		m->timed++;
		ck_turn_attach(m, t, ck_pod_of(in), timeout);
		ck_touch(m, t->group);
	} else { /* nothing of it can be in the way */
		t->state = CK_TURN_DECIDED;
		t->outcome = CK_DRAINED;
	}
	if (kind == CK_SANDBOX)
		ck_sandbox_stopped(m, id, true);
	ck_event_end(m);
	return t->state == CK_TURN_DECIDED ? t->outcome : CK_WAIT;
}

/* ---- answers of the host and the hooks ------------------------------------------------------- */

void ck_inspected_kept(struct ck_machine *m, struct ck_entry *e, enum ck_condition condition)
{
	bool gone = condition == CK_CONDITION_DEAD || condition == CK_CONDITION_ABSENT ||
		    condition == CK_CONDITION_RUNNING;
	bool unknown = condition == CK_CONDITION_UNKNOWN; /* no answer is not an answer (K6) */
	if (e->row.flags & CK_ENTRY_ABANDONED) {
		ck_evict(m, e, e->row.reason);
	} else if (gone) { /* running: the eviction will find it in use (K22) */
		ck_evict(m, e, CK_REASON_DEAD);
	} else if (unknown) {
		e->ask_at = m->now + CK_INSPECT_AGAIN;
		ck_kept_schedule(m, e);
	} else if (ck_newest_live(m, e) && !ck_loser_pending(e)) {
		ck_commit(m, e);
	} else {
		ck_kept_schedule(m, e);
	}
}

void ck_machine_inspected(struct ck_machine *m, uint64_t row, enum ck_condition condition)
{
	struct ck_entry *e = ck_machine_entry(m, row);
	if (!e || e->detached || !(e->outstanding & CK_WANT_INSPECT))
		return;
	ck_event_begin(m);
	e->outstanding &= ~(unsigned)CK_WANT_INSPECT;
	if (e->row.state == CK_STATE_EVICTING)
		ck_evict_inspected(m, e, condition);
	else if (e->row.state == CK_STATE_KEPT)
		ck_inspected_kept(m, e, condition);
	ck_event_end(m);
}

static void run_answered(struct ck_machine *m, struct ck_entry *e, const char *refusal)
{
	if (e->row.state != CK_STATE_COMMITTING)
		return; /* in use: told afterwards, and its answer is only noted (K22) */
	if (refusal) {
		ck_note_entry(m, e, CK_WHAT_REFUSED, 0, refusal);
		CK_FOR_TURNS (t, ck_pod_of(e))
			if (t->row == e->row.id && t->state == CK_TURN_WAITING && t->joined &&
			    !t->drain)
				ck_turn_answer(m, t, -CK_EREFUSED, "%s", refusal);
		if (CK_BROKEN(R14))
			e->row.flags &= ~(unsigned)CK_ENTRY_TOLD;
		if (CK_BROKEN(R17))
			ck_committed(m, e, true);
		else
			ck_evict(m, e,
				 e->row.flags & CK_ENTRY_ABANDONED ? e->row.reason
								   : CK_REASON_REFUSED);
	} else if (e->row.flags & CK_ENTRY_ABANDONED) { /* during its hooks: undone (K13) */
		ck_evict(m, e, e->row.reason);
	} else if (e->dead) {
		ck_evict(m, e, CK_REASON_DEAD);
	} else {
		ck_committed(m, e, false);
	}
}

/* as many whole names as there is room for */
static const char *some_names(const char *names, char *buf, size_t size)
{
	static const char more[] = " ...";
	size_t len = strlen(names);
	if (len >= size) {
		for (len = size - sizeof(more); len && names[len] != ' ';)
			len--;
		snprintf(buf, size, "%.*s%s", (int)len, names, more);
		return buf;
	}
	return names;
}

/* for the history: who was sent it, or, of a RUN that went round, who was chosen */
static void note_told(struct ck_machine *m, struct ck_entry *e, enum ck_hook_event event,
		      const char *told, bool refused)
{
	static const enum ck_what whats[] = {
		[CK_HOOK_RUN] = CK_WHAT_TOLD,
		[CK_HOOK_STOP] = CK_WHAT_STOP_TOLD,
		[CK_HOOK_REMOVE] = CK_WHAT_REMOVE_TOLD,
	};
	char names[CK_TEXT_MAX + 1];
	if (!told && event == CK_HOOK_RUN && !refused)
		told = e->row.told;
	if (!told || *told)
		ck_note_entry(m, e, whats[event], 0,
			      told ? some_names(told, names, sizeof(names)) : NULL);
}

int ck_machine_note_told(struct ck_machine *m, enum ck_kind kind, const char *id,
			 enum ck_hook_event event, const char *names)
{
	struct ck_entry *e = ck_machine_object(m, kind, id);
	if (!e)
		return -CK_ENOTFOUND;
	ck_event_begin(m);
	note_told(m, e, event, names, false);
	ck_event_end(m);
	return 0;
}

void ck_machine_hook_done(struct ck_machine *m, uint64_t row, enum ck_hook_event event,
			  const char *told, const char *refusal)
{
	struct ck_entry *e = ck_machine_entry(m, row);
	unsigned want = event == CK_HOOK_RUN    ? CK_WANT_RUN
			: event == CK_HOOK_STOP ? CK_WANT_STOP
						: CK_WANT_REMOVE;
	if (!e || !(e->outstanding & want))
		return;
	ck_event_begin(m);
	e->outstanding &= ~want;
	if (!e->detached)
		note_told(m, e, event, told, refusal);
	if (event == CK_HOOK_RUN)
		run_answered(m, e, refusal);
	else if (!e->detached)
		ck_evict_hook_done(m, e, event);
	ck_event_end(m);
}

bool ck_machine_has_wants(const struct ck_machine *m)
{
	bool lists = false;
	for (int kind = CK_SANDBOX; kind <= CK_CONTAINER; kind++)
		lists = lists || (m->lists[kind].wanted && !m->lists[kind].outstanding);
	return m->wanting || m->resolves || lists;
}

void ck_machine_job_failed(struct ck_machine *m, struct ck_entry *e, enum ck_want want)
{
	switch (want) {
	case CK_WANT_INSPECT:
		ck_machine_inspected(m, e->row.id, CK_CONDITION_UNKNOWN);
		break;
	case CK_WANT_LIST:
		ck_machine_listed_entry(m, e->row.id, 0, false, NULL, 0);
		break;
	case CK_WANT_DESTROY:
		ck_machine_destroyed(m, e->row.id, CK_GRPC_RESOURCE_EXHAUSTED);
		break;
	case CK_WANT_RUN:
		ck_event_begin(m);
		e->outstanding &= ~(unsigned)CK_WANT_RUN;
		ck_commit_failed(m, e, "out of memory");
		ck_event_end(m);
		break;
	case CK_WANT_STOP:
	case CK_WANT_REMOVE:
		e->outstanding &= ~(unsigned)want;
		ck_entry_schedule(m, e, m->now + CK_GAP);
		break;
	case CK_WANT_CANCEL: /* the hooks find out by themselves that it is undone */
		break;
	}
}

/* ---- what the host saw ----------------------------------------------------------------------- */

int ck_machine_forget(struct ck_machine *m, enum ck_kind kind, const char *id)
{
	struct ck_entry *e = ck_machine_object(m, kind, id);
	bool known = e && e->row.state == CK_STATE_COMMITTED;
	ck_event_begin(m);
	if (kind == CK_SANDBOX) {
		ck_sandbox_stopped(m, id, true);
		for (struct ck_entry *c = ck_sandbox_containers(m, id), *next; c; c = next) {
			next = c->link[CK_BY_SANDBOX].next;
			if (c->row.state == CK_STATE_COMMITTED)
				ck_entry_drop(m, c);
		}
	}
	if (known)
		ck_entry_drop(m, e);
	ck_event_end(m);
	return known ? 0 : -CK_ENOTFOUND;
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
	if (!e || e->row.state != CK_STATE_COMMITTED)
		return -CK_ENOTFOUND;
	if (!(e->row.flags & CK_ENTRY_DELIVERED)) {
		e->row.flags |= CK_ENTRY_DELIVERED;
		ck_dirty(m, e);
	}
	return 0;
}

int ck_machine_evict(struct ck_machine *m, uint64_t row, bool release, char *ret_text, size_t size)
{
	struct ck_entry *e = ck_machine_entry(m, row);
	if (!e || e->detached || e->row.state == CK_STATE_GONE) {
		snprintf(ret_text, size, "no such entry");
		return -CK_ENOTFOUND;
	}
	if (e->row.state == CK_STATE_COMMITTED) {
		snprintf(ret_text, size, "refused: it is committed and belongs to the kubelet");
		return -CK_ESTATE;
	}
	if (release && e->row.state != CK_STATE_EVICTING) {
		snprintf(ret_text, size,
			 "refused: only an entry that is being evicted can be released; evict it "
			 "first");
		return -CK_ESTATE;
	}
	ck_event_begin(m);
	if (release) {
		ck_note_entry(m, e, CK_WHAT_RELEASED, 0, NULL);
		ck_evict_confirmed(m, e);
		snprintf(ret_text, size,
			 "released without confirmation; the resource may still exist");
	} else if (e->row.state == CK_STATE_EVICTING) {
		ck_evict_hurry(m, e);
		snprintf(ret_text, size, "already being evicted; trying again now");
	} else {
		ck_abandon(m, e, CK_REASON_ADMIN);
		snprintf(ret_text, size,
			 e->row.state == CK_STATE_EVICTING
				 ? "evicting"
				 : "abandoned; evicted when its creation or its hooks end");
	}
	ck_event_end(m);
	return 0;
}
