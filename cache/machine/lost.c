/* SPDX-License-Identifier: Apache-2.0 */
/* Creations whose outcome is unknown (K8), and evicted entries whose id is not known. The runtime
 * is asked for them by key. */
#include "cache/machine/machine-int.h"

bool ck_searched(const struct ck_entry *e)
{
	return e->row.state == CK_STATE_UNKNOWN ||
	       (e->row.state == CK_STATE_EVICTING && e->row.phase == CK_PHASE_FIND);
}

void ck_search(struct ck_machine *m, struct ck_entry *e, bool anew)
{
	if (anew || !e->row.searched) {
		e->row.searched = m->now;
		e->row.absent = 0;
	}
	e->changed_seq = m->seq;
	e->decisive_seq = 0;
	e->ask_after = CK_LIST_AGAIN_MIN;
	ck_dirty(m, e);
	ck_entry_schedule(m, e, m->now + e->ask_after);
}

void ck_search_ends(struct ck_entry *e)
{
	e->row.searched = e->row.absent = 0;
}

void ck_lost(struct ck_machine *m, struct ck_entry *e)
{
	if (e->row.state == CK_STATE_CREATING) {
		m->counters.lost[e->row.key->kind]++;
		bool dead = e->in.creating.dead;
		ck_entry_move(m, e, CK_STATE_UNKNOWN);
		e->in.creating.dead = dead;
	} else if (e->row.state == CK_STATE_EVICTING && e->row.phase == CK_PHASE_CREATION) {
		e->row.phase = CK_PHASE_FIND;
	} else if (CK_NEVER(!ck_searched(e))) {
		return;
	}
	ck_search(m, e, true);
}

/* the questions may be 5 s apart, which is too long for a caller with a short deadline */
void ck_lost_hurry(struct ck_machine *m, struct ck_entry *e)
{
	if (!m->rules.can_list || e->ask_after <= CK_LIST_AGAIN_MIN)
		return;
	e->ask_after = CK_LIST_AGAIN_MIN;
	if (!(e->wants & CK_WANT_LIST))
		ck_entry_schedule(m, e, m->now);
}

static bool anybody_waits(const struct ck_machine *m, const struct ck_entry *e)
{
	CK_FOR_TURNS (t, ck_pod_of(e))
		if (ck_turn_waits(t) && ck_turn_live(m, t) &&
		    (t->row == e->row.id || ck_key_same(t->key, e->row.key)))
			return true;
	return false;
}

/* for how long no list may show it before it is given up; nothing of an earlier boot still runs */
static uint64_t patience(const struct ck_machine *m, const struct ck_entry *e)
{
	if (e->row.state == CK_STATE_EVICTING && e->row.reason == CK_REASON_REBOOT)
		return 0;
	return anybody_waits(m, e) ? m->rules.lost_grace : m->rules.create_deadline;
}

void ck_gave_up(struct ck_machine *m, const struct ck_entry *e)
{
	if (!m->gave_up || e->row.created < m->gave_up)
		m->gave_up = e->row.created;
}

static void give_up(struct ck_machine *m, struct ck_entry *e)
{
	char who[3 * CK_NAME_MAX_LEN], time[CK_DURATION_TEXT];
	if (e->row.state == CK_STATE_EVICTING) {
		ck_evict_confirmed(m, e);
		return;
	}
	m->counters.failed[e->row.key->kind]++;
	if (e->restored)
		ck_gave_up(m, e);
	ck_history_add(m, e, CK_WHAT_FAILED, CK_GRPC_UNAVAILABLE,
		       "its outcome was unknown, and the runtime never listed it");
	uint64_t for_ns = ck_duration_between(e->row.searched, m->now);
	for_ns -= for_ns % (for_ns < CK_NS_PER_S ? CK_NS_PER_MS : CK_NS_PER_S);
	CK_FOR_TURNS (t, ck_pod_of(e))
		if (t->row == e->row.id && t->state == CK_TURN_JOINED)
			ck_turn_answer(m, t, -CK_EUNAVAILABLE,
				       "%s: the outcome of the creation was unknown, and the "
				       "runtime did not list it within %s",
				       ck_key_print(e->row.key, who, sizeof(who)),
				       ck_duration_print(for_ns, time));
	ck_entry_drop(m, e);
}

static bool absent_for(const struct ck_machine *m, const struct ck_entry *e, uint64_t time)
{
	return e->row.absent && ck_duration_between(e->row.absent, m->now) >= time;
}

/* A list shows what there was when it began, and its answer may take long: only one that began when
 * the time was up may end the search. */
static void ask(struct ck_machine *m, struct ck_entry *e)
{
	uint64_t time = patience(m, e);
	if (!e->decisive_seq && (!time || absent_for(m, e, time)))
		e->decisive_seq = m->seq;
	if (!(e->outstanding & CK_WANT_LIST))
		ck_want(m, e, CK_WANT_LIST);
}

void ck_lost_absent(struct ck_machine *m, struct ck_entry *e, uint64_t begun_seq)
{
	if (!e->row.absent) {
		e->row.absent = m->now;
		ck_dirty(m, e);
	}
	if (e->creator)
		return; /* it still works, and will say how it ends */
	if (absent_for(m, e, patience(m, e))) {
		if (e->decisive_seq && ck_list_counts(begun_seq, e->decisive_seq))
			give_up(m, e);
		return;
	}
	if (!absent_for(m, e, CK_RESEND_AFTER) || e->row.state != CK_STATE_UNKNOWN ||
	    e->row.flags & CK_ENTRY_RESENT)
		return;
	CK_FOR_TURNS (t, ck_pod_of(e)) {
		if (t->row != e->row.id || t->state != CK_TURN_JOINED || !ck_turn_live(m, t))
			continue;
		ck_search_ends(e);
		ck_entry_move(m, e, CK_STATE_CREATING);
		e->row.flags |= CK_ENTRY_RESENT;
		ck_creator_begins(m, t, e);
		e->changed_seq = m->seq;
		m->counters.resent[e->row.key->kind]++;
		ck_history_add(m, e, CK_WHAT_RESENT, 0, NULL);
		ck_dirty(m, e);
		ck_creating_schedule(m, e);
		return;
	}
}

/* After this time its creator is not expected to report any more, though it still may (K8). */
void ck_creating_schedule(struct ck_machine *m, struct ck_entry *e)
{
	uint64_t own = m->rules.create_deadline, deadline = e->creator->deadline;
	uint64_t callers = deadline ? ck_duration_between(m->now, deadline) + CK_LOST_GRACE : 0;
	ck_entry_schedule(m, e, m->now + (callers > own ? callers : own));
}

void ck_lost_expired(struct ck_machine *m, struct ck_entry *e)
{
	if (!ck_searched(e)) {
		ck_lost(m, e); /* its deadline is over */
		return;
	}
	if (m->rules.can_list) {
		ask(m, e);
		/* asked again if no answer comes by then */
		ck_entry_schedule(m, e, m->now + m->rules.destroy_timeout);
		e->outstanding &= ~(unsigned)CK_WANT_LIST;
	} else if (!e->creator && ck_duration_between(e->row.searched, m->now) >= patience(m, e)) {
		give_up(m, e);
	} else {
		ck_entry_schedule(m, e, m->now + CK_LIST_AGAIN_MAX);
	}
}

static void ask_again(struct ck_machine *m, struct ck_entry *e)
{
	if (e->detached || !ck_searched(e))
		return;
	e->ask_after = 2 * e->ask_after < CK_LIST_AGAIN_MAX ? 2 * e->ask_after : CK_LIST_AGAIN_MAX;
	ck_entry_schedule(m, e, m->now + e->ask_after);
}

/* ---- a list for one entry -------------------------------------------------------------------- */

bool ck_list_counts(uint64_t begun_seq, uint64_t than)
{
	return begun_seq >= than;
}

static bool is_or_unknown(const char *listed, const char *name)
{
	return !*ck_or_empty(listed) || !strcmp(listed, name);
}

bool ck_object_has_key(const struct ck_object *o, const struct ck_key *key)
{
	if (o->kind != key->kind || o->attempt != key->attempt)
		return false;
	if (key->kind == CK_SANDBOX)
		return !strcmp(ck_or_empty(o->pod_uid), key->pod_uid) &&
		       !strcmp(ck_or_empty(o->pod_name), key->pod_name) &&
		       !strcmp(ck_or_empty(o->pod_namespace), key->pod_namespace);
	return !strcmp(ck_or_empty(o->sandbox_id), key->sandbox_id) &&
	       !strcmp(ck_or_empty(o->container_name), key->container) &&
	       /* said in labels, which crictl leaves out */
	       is_or_unknown(o->pod_namespace, key->pod_namespace) &&
	       is_or_unknown(o->pod_name, key->pod_name) && is_or_unknown(o->pod_uid, key->pod_uid);
}

bool ck_object_alive(const struct ck_object *o)
{
	return o->condition == CK_CONDITION_READY || o->condition == CK_CONDITION_RUNNING;
}

/* Its id is known now, and the kubelet may have taken it before (K22). */
static bool is_used(struct ck_machine *m, struct ck_entry *e, enum ck_condition condition)
{
	if (e->row.key->kind == CK_SANDBOX)
		return ck_has_visible_container(m, e);
	e->running = ck_condition_used(condition);
	return e->running;
}

/* An object whose key the cache has under another id, or a second one of a lost creation. It is
 * hidden until it is destroyed (K26). */
void ck_duplicate(struct ck_machine *m, const struct ck_key *key, const struct ck_object *o)
{
	struct ck_key *copy = NULL;
	struct ck_entry *e = ck_key_dup(key, &copy) < 0 ? NULL : ck_entry_known(m, copy, o->id);
	if (!e)
		return; /* out of memory; the next list finds it again */
	e->row.state = CK_STATE_CREATING; /* for an instant */
	m->counters.duplicates[e->row.key->kind]++;
	ck_history_add(m, e, CK_WHAT_DUPLICATE, 0, NULL);
	ck_evict(m, e, CK_REASON_DUPLICATE);
	if (is_used(m, e, o->condition)) { /* it is never served */
		e->row.origin = CK_ORIGIN_RUNTIME;
		ck_in_use(m, e);
	}
}

/* its id and its condition are known now */
static void found(struct ck_machine *m, struct ck_entry *e, enum ck_condition condition)
{
	/* somebody knows its id, and has begun to stop it (K16) */
	if (e->row.key->kind == CK_SANDBOX && ck_unknown_stop_noted(m, e->row.result->id))
		condition = CK_CONDITION_DEAD;
	bool dead = ck_condition_dead(condition);
	if (e->row.state == CK_STATE_EVICTING)
		e->in.evicting.dead = dead;
	else
		e->in.creating.dead = dead;
	e->changed_seq = m->seq; /* an older list does not have it */
	ck_search_ends(e);
	if (is_used(m, e, condition)) {
		/* the list that showed it is younger than the last whole one (K22) */
		e->list_stamp = m->lists[e->row.key->kind].stamp;
		ck_in_use(m, e);
		return;
	}
	if (e->creator)
		ck_creator_parts(m, e->creator);
	if (e->row.state == CK_STATE_EVICTING) {
		ck_evict_goes_on(m, e);
		return;
	}
	if (condition == CK_CONDITION_READY) {
		ck_result_known(m, e);
		return;
	}
	ck_evict(m, e, CK_REASON_DEAD);
	e->in.evicting.dead = dead;
}

bool ck_lost_find(struct ck_machine *m, struct ck_entry *e, const struct ck_object *o, size_t n)
{
	const struct ck_object *best = NULL;
	for (size_t i = 0; i < n; i++) {
		if (!ck_object_has_key(&o[i], e->row.key) ||
		    ck_machine_object(m, o[i].kind, o[i].id))
			continue;
		int more = best ? ck_object_alive(&o[i]) - ck_object_alive(best) : 1;
		if (more > 0 || (more == 0 && o[i].created_at > best->created_at))
			best = &o[i];
	}
	if (!best)
		return false;
	/* It is there; perhaps nothing more is known yet, or there is no memory. Then it is asked
	 * for again. */
	e->list_stamp = m->stamp;
	if (e->row.absent)
		ck_dirty(m, e);
	e->decisive_seq = e->row.absent = 0;
	if (best->condition == CK_CONDITION_UNKNOWN && e->row.state == CK_STATE_UNKNOWN)
		return true;
	struct ck_shared_result *result = ck_shared_result_new(best->id, NULL, 0);
	if (!result || ck_entry_set_result(m, e, result) < 0) {
		ck_shared_result_unref(result);
		return true;
	}
	ck_shared_result_unref(result);
	for (size_t i = 0; i < n; i++)
		if (&o[i] != best && ck_object_alive(&o[i]) &&
		    ck_object_has_key(&o[i], e->row.key) &&
		    !ck_machine_object(m, o[i].kind, o[i].id))
			ck_duplicate(m, e->row.key, &o[i]);
	found(m, e, best->condition);
	return true;
}

void ck_machine_listed_entry(struct ck_machine *m, uint64_t row, uint64_t begun_seq, bool ok,
			     const struct ck_object *o, size_t n)
{
	struct ck_entry *e = ck_machine_entry(m, row);
	if (!e || e->detached ||
	    (e->row.state == CK_STATE_EVICTING && !ck_list_counts(begun_seq, e->changed_seq)))
		/* asked when it was still lost; the question of its eviction will be answered */
		return;
	ck_event_begin(m);
	e->outstanding &= ~(unsigned)CK_WANT_LIST;
	if (e->row.state == CK_STATE_EVICTING && !ck_searched(e)) {
		ck_evict_listed(m, e, ok, o, n);
	} else if (ck_searched(e)) {
		if (ok && ck_list_counts(begun_seq, e->changed_seq)) {
			if (!ck_lost_find(m, e, o, n))
				ck_lost_absent(m, e, begun_seq);
		}
		ask_again(m, e);
	}
	ck_event_end(m);
}
