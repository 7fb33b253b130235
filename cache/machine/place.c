/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a request finds its place.
 *
 *  begin --place--> create | join | claim a kept result | wait
 *            ^
 *            '--- something of the pod moved: every waiting turn is placed anew, the newest first
 */
#include "cache/machine/machine-int.h"

/* the kubelet asked for @by, so it has given up every other attempt of the slot */
void ck_bump(struct ck_machine *m, struct ck_mturn *by)
{
	for (struct ck_entry *e = by->group->entries, *next; e; e = next) {
		next = ck_pod_next(e);
		const struct ck_key *key = e->row.key;
		if (!ck_state_open(e->row.state) || key->kind != by->key->kind ||
		    ck_key_same(key, by->key))
			continue;
		if (key->kind == CK_SANDBOX)
			ck_abandon_for(m, e,
				       strcmp(key->pod_uid, by->key->pod_uid)
					       ? CK_REASON_POD_REPLACED
					       : CK_REASON_ATTEMPT,
				       by);
		else if (ck_key_same_slot(key, by->key))
			ck_abandon_for(m, e, CK_REASON_ATTEMPT, by);
	}
	const struct ck_mturn *before = by->next;
	if (before && ck_key_same(before->key, by->key))
		return; /* the turn before it asked for the same, and has left no such turn */
	CK_FOR_TURNS (t, by->group) { /* turns that have no entry yet */
		if (!ck_turn_waits(t) || t == by || t->key->kind != by->key->kind ||
		    ck_key_same(t->key, by->key))
			continue;
		if (by->key->kind == CK_CONTAINER && !ck_key_same_slot(t->key, by->key))
			continue;
		ck_turn_supersede(m, t, CK_REASON_ATTEMPT);
	}
}

/* The request of @t is the one of @e. It counts once, on disk, too. Return: it is the first time */
static bool asks_for(struct ck_machine *m, struct ck_mturn *t, struct ck_entry *e)
{
	if (t->counted_row == e->row.id)
		return false;
	t->counted_row = e->row.id;
	e->row.requests++;
	e->row.asked = m->now;
	ck_dirty(m, e);
	return true;
}

static void create(struct ck_machine *m, struct ck_mturn *t)
{
	struct ck_key *key = NULL;
	struct ck_entry *e = NULL;
	struct ck_record record = { 0 };
	if (ck_key_dup(t->key, &key) < 0 || m->ops.record(m->user, t->fp, &record) < 0 ||
	    ck_entry_new(m, key, &e) < 0) {
		ck_key_free(key);
		ck_record_fini(&record);
		ck_turn_answer(m, t, -CK_ENOMEM, "out of memory");
		return;
	}
	e->row.record = record;
	e->row_waits = m->rules.is_runtime && ck_turn_live(m, t);
	asks_for(m, t, e);
	e->row.state = CK_STATE_CREATING;
	e->begun_turn = t->seq;
	ck_creator_begins(m, t, e);
	t->compared.row = e->row.id; /* its record is of this very request */
	t->compared.relation = CK_RELATION_SAME;
	ck_turn_want_resolve(m, t);
	m->counters.created[e->row.key->kind]++;
	if (!e->row_waits)
		ck_history_add(m, e, CK_WHAT_BEGUN, 0, NULL);
	ck_touch(m, t->group);
	ck_creating_schedule(m, e);
}

static void conflict(struct ck_machine *m, struct ck_mturn *t, struct ck_entry *e, const char *why)
{
	char who[3 * CK_NAME_MAX_LEN];
	m->counters.conflicts[e->row.key->kind]++;
	ck_history_add(m, e, CK_WHAT_CONFLICT, 0, why);
	ck_turn_answer(m, t, -CK_ECONFLICT, "%s exists: %s",
		       ck_key_print(e->row.key, who, sizeof(who)), why);
}

/* COMMITTED: the same request gets the same reply at once (K5) */
static void place_at_committed(struct ck_machine *m, struct ck_mturn *t, struct ck_entry *e)
{
	enum ck_reason why;
	struct ck_difference difference = { 0 };
	ck_turn_wait_for(m, t, e->row.id);
	if (ck_being_removed(m, e) ||
	    (e->row.origin == CK_ORIGIN_CACHE && ck_turn_undecided(m, t, e)))
		return;
	if (e->row.origin == CK_ORIGIN_RUNTIME)
		conflict(m, t, e, "it existed before this cache knew it");
	else if (e->running)
		conflict(m, t, e, "it is running");
	else if (ck_turn_same(m, t, e, &why)) {
		asks_for(m, t, e);
		ck_turn_hand_back(m, t, e);
	} else if (m->ops.compare(m->user, e, t->fp, &difference) == CK_RELATION_NOT_COMPARABLE)
		conflict(m, t, e, ck_reason_text(CK_REASON_NOT_COMPARABLE));
	else
		conflict(m, t, e, difference.text);
}

/* KEPT, and it is the request: the host is asked whether the result is alive (K6) */
static void claim(struct ck_machine *m, struct ck_entry *e)
{
	if (ck_duplicate_pending(e) || ck_being_removed(m, e))
		return;
	if (!m->rules.can_inspect) {
		ck_commit(m, e);
		return;
	}
	if ((e->wants | e->outstanding) & CK_WANT_INSPECT)
		return;
	if (e->in.kept.ask_at <= m->now) {
		e->in.kept.asked_at = m->now;
		ck_want(m, e, CK_WANT_INSPECT);
	}
	ck_kept_schedule(m, e);
}

/* Another request than that of @e. It decides what becomes of it if it is the newest. */
static void place_another(struct ck_machine *m, struct ck_mturn *t, struct ck_entry *e,
			  enum ck_reason why)
{
	switch (e->row.state) {
	case CK_STATE_CREATING:
	case CK_STATE_UNKNOWN:
		/* compared with the result (K11), unless it is older than this creation (K14) */
		if (t->seq < e->begun_turn)
			ck_turn_answer(m, t, -CK_EABANDONED, "superseded: %s",
				       ck_reason_text(CK_REASON_CHANGED));
		return;
	case CK_STATE_COMMITTING:
		if (ck_newest_live(m, e) == t)
			ck_abandon_for(m, e, why, t); /* its hooks are undone (K13) */
		return;
	default: /* KEPT: it is evicted, and this request succeeds it (K11) */
		if (ck_newest_live(m, e) != t)
			return;
		if (why == CK_REASON_NOT_COMPARABLE)
			m->counters.not_comparable[e->row.key->kind]++;
		m->counters.changed[e->row.key->kind]++;
		ck_abandon_for(m, e, why, t);
	}
}

/* places a live turn at an open entry of its key, or a committed one that has not ended */
static void place_at(struct ck_machine *m, struct ck_mturn *t, struct ck_entry *e)
{
	enum ck_reason why;
	bool first_time = t->row != e->row.id;
	if (e->row.state == CK_STATE_COMMITTED) {
		place_at_committed(m, t, e);
		return;
	}
	if (ck_turn_undecided(m, t, e)) {
		ck_turn_wait_for(m, t, e->row.id);
		return; /* it is placed anew when its image is known (E5) */
	}
	bool same = ck_turn_same(m, t, e, &why);
	if (same) {
		ck_turn_join(m, t, e);
		if (asks_for(m, t, e)) {
			ck_interest(m, e);
			m->counters.joined[e->row.key->kind] +=
				e->row.state == CK_STATE_CREATING ||
				e->row.state == CK_STATE_UNKNOWN;
			ck_history_add(m, e, CK_WHAT_JOINED, 0, NULL);
		}
	} else {
		ck_turn_wait_for(m, t, e->row.id);
		place_another(m, t, e, why);
	}
	if (e->row.state == CK_STATE_UNKNOWN && first_time && !CK_NEVER(!ck_turn_waits(t)))
		ck_lost_hurry(m, e);
	else if (e->row.state == CK_STATE_KEPT && same)
		claim(m, e);
}

/* A kubelet goes by the newest attempt that it sees. Nobody will find that an older one runs, so
 * that it runs is no reason to wait (K34). */
static bool is_outlived(const struct ck_mturn *t, const struct ck_entry *e)
{
	for (const struct ck_entry *o = t->group->entries; e->running && o; o = ck_pod_next(o))
		if (ck_state_visible(o->row.state) && ck_key_same_slot(o->row.key, e->row.key) &&
		    o->row.key->attempt > e->row.key->attempt)
			return true;
	return false;
}

/* an entry that must be gone before a creation of the turn's key may begin; or NULL */
static struct ck_entry *blocker(struct ck_machine *m, struct ck_mturn *t)
{
	struct ck_entry *ports = NULL;
	for (struct ck_entry *e = t->group->entries; e; e = ck_pod_next(e)) {
		const struct ck_key *key = e->row.key;
		bool same = ck_key_same(key, t->key);
		bool busy = e->row.state == CK_STATE_EVICTING ||
			    e->row.state == CK_STATE_CREATING || e->row.state == CK_STATE_UNKNOWN;
		if (ck_state_visible(e->row.state) && same && ck_being_removed(m, e))
			return e; /* it has ended and is being removed (K5) */
		if (e->row.state == CK_STATE_EVICTING && same)
			return e;
		if (e->row.start && ck_key_same_slot(key, t->key) && !CK_NEVER(same) &&
		    !is_outlived(t, e))
			return e; /* another attempt of it is being started, or was (K34) */
		if (busy && ck_key_same_runtime_name(key, t->key) && !CK_NEVER(same))
			return e; /* the runtime has one object of a name at a time */
		if (key->kind == CK_SANDBOX && t->key->kind == CK_SANDBOX &&
		    e->row.state == CK_STATE_EVICTING && e->row.phase != CK_PHASE_REMOVE)
			ports = e;
	}
	if (!ports)
		return NULL;
	if (!t->waiting.ports_at) { /* waits for the ports until then (K10) */
		uint64_t until = m->now + m->rules.supersede_wait;
		ck_turn_wait_for_ports(m, t, until < t->margin_at ? until : t->margin_at);
	}
	return m->now >= t->waiting.ports_at ? NULL : ports;
}

/* A kubelet that has not heard of the end of a start takes the container for one that must be made
 * anew. If it runs, the next list shows that (K34). */
static void wait_for_blocker(struct ck_machine *m, struct ck_mturn *t, struct ck_entry *e)
{
	ck_turn_wait_for(m, t, e->row.id);
	if (e->row.start && e->running)
		conflict(m, t, e, "it was started when its caller had gone, and runs");
}

/* no container is created in it any more (K16) */
static bool sandbox_stops(struct ck_machine *m, const char *id)
{
	const struct ck_entry *e = ck_machine_object(m, CK_SANDBOX, id);
	return e && ck_state_visible(e->row.state) ? e->row.state == CK_STATE_ENDED
						   : ck_unknown_stop_noted(m, id);
}

void ck_turn_place(struct ck_machine *m, struct ck_mturn *t)
{
	if (!ck_machine_reconciled(m))
		return; /* nothing is served before the first list (K24) */
	if (t->key->kind == CK_CONTAINER && sandbox_stops(m, t->key->sandbox_id)) {
		ck_turn_answer(m, t, -CK_EPRECONDITION, "the sandbox is being stopped");
		return;
	}
	struct ck_entry *active = NULL;
	for (struct ck_entry *e = t->group->entries; e; e = ck_pod_next(e)) {
		if (!ck_key_same(e->row.key, t->key))
			continue;
		if (ck_state_open(e->row.state))
			active = e;
		else if (e->row.state == CK_STATE_COMMITTED && !active)
			active = e;
	}
	/* The pod of the sandbox or of the uid was not known yet when the request came (K9). What
	 * this pod has begun is brought to its end all the same. */
	struct ck_error err = { 0 };
	if (!(active && !strcmp(active->row.key->pod_uid, t->key->pod_uid)) &&
	    (ck_uid_has_another_name(m, t->key, &err) ||
	     ck_sandbox_has_another_pod(m, t->key, &err))) {
		ck_turn_answer(m, t, -CK_EINVAL, "%s", err.text);
		return;
	}
	if (!active)
		ck_turn_wait_for(m, t, t->row); /* what it may have joined is over */
	/* a turn in its margin may begin its first creation, and nothing else; one past
	 * its deadline begins nothing */
	bool in_time = (ck_turn_live(m, t) || !t->row || t->waiting.ports_at) &&
		       (!t->deadline || m->now < t->deadline);
	struct ck_entry *wait_for = active ? NULL : blocker(m, t);
	bool exists = active && (active->was_kept || active->row.state == CK_STATE_COMMITTED);
	if (active && ck_turn_takes(m, t, exists))
		place_at(m, t, active);
	else if (active && (t->row != active->row.id || active->row.state == CK_STATE_COMMITTED))
		ck_turn_wait_for(m, t, active->row.id); /* too late to be served */
	else if (wait_for)
		wait_for_blocker(m, t, wait_for);
	else if (!active && in_time && t->making)
		/* a list showed first what its call still makes (K8): it cannot make another one */
		ck_turn_answer(m, t, -CK_EABANDONED, "superseded: what it created is gone");
	else if (!active && in_time)
		create(m, t);
	if (ck_turn_waits(t)) /* for how long depends on what it waits for (K6) */
		ck_turn_schedule(m, t);
}
