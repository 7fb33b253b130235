/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules: where a request finds its place, and what becomes of a result.
 *
 *  begin --place--> create | join | claim a kept result | wait        finish --result_known--> commit | keep | evict
 *            ^                                                             |
 *            '--------- anything of the pod moved: every waiting turn is placed anew, the newest first
 *
 * The events that lead here are in event.c; what happens around an event, and at the end of a
 * round, in settle.c.
 */
#include "cache/machine/machine-int.h"

/* ---- hooks: who is told ---------------------------------------------------------------------- */

bool ck_entry_choose(struct ck_machine *m, struct ck_entry *e, struct ck_error *err)
{
	char names[CK_TOLD_MAX + 1] = "";
	if (m->ops.choose(m->user, e, names, sizeof(names))) {
		ck_fail(err, CK_EUNAVAILABLE, "required plugin %s is absent", names);
		return false;
	}
	char *told = ck_strdup(names);
	if (!told) {
		m->ops.released(m->user, e);
		ck_nomem(err);
		return false;
	}
	free(e->row.told);
	e->row.told = told;
	e->row.flags |= CK_ENTRY_TOLD;
	ck_dirty(m, e);
	return true;
}

/* ---- a result: keep, commit ------------------------------------------------------------------ */

/* K26: another object of this key is being destroyed */
bool ck_loser_pending(const struct ck_entry *e)
{
	for (const struct ck_entry *other = ck_pod_of(e)->entries; other;
	     other = ck_pod_next(other))
		if (other->row.state == CK_STATE_EVICTING && other != e &&
		    ck_key_same(other->row.key, e->row.key))
			return true;
	return false;
}

/* when nobody will have asked for long enough (K15) */
uint64_t ck_kept_until(const struct ck_machine *m, const struct ck_entry *e)
{
	uint64_t ttl = m->rules.ttl, longest = m->longest_deadline[e->row.key->kind];
	if (longest > ttl)
		ttl = longest;
	uint64_t until = e->row.interest + ttl;
	uint64_t grace = m->opened + (ttl < CK_OPEN_GRACE ? ttl : CK_OPEN_GRACE);
	return e->restored && until < grace ? grace : until;
}

void ck_kept_schedule(struct ck_machine *m, struct ck_entry *e)
{
	uint64_t due = ck_kept_until(m, e);
	if ((e->wants | e->outstanding) & CK_WANT_INSPECT)
		/* the answer goes on from here, if one comes */
		due = e->asked_at + m->rules.destroy_timeout;
	else if (ck_awaited(m, e))
		due = e->ask_at > m->now ? e->ask_at : CK_NEVER_DUE;
	ck_entry_schedule(m, e, due);
}

static void keep(struct ck_machine *m, struct ck_entry *e)
{
	m->counters.kept++;
	e->kept = true;
	ck_entry_move(m, e, CK_STATE_KEPT);
	e->row.interest = m->now;
	ck_kept_schedule(m, e);
}

/* COMMITTING, and hooks agree: it belongs to whoever waits (K7) */
void ck_committed(struct ck_machine *m, struct ck_entry *e, bool offered)
{
	enum ck_reason why;
	bool awaited = false;
	CK_FOR_TURNS (t, ck_pod_of(e))
		if (ck_turn_live(m, t) && ck_key_same(t->key, e->row.key) &&
		    ck_turn_same(m, t, e, &why))
			awaited = true;
	if (ck_loser_pending(e)) {
		keep(m, e); /* K26: found while the hooks ran */
		return;
	}
	if (!awaited && !offered && e->row.key->kind == CK_CONTAINER) {
		/* visible and CREATED it would make the kubelet build the next attempt */
		keep(m, e);
		return;
	}
	ck_entry_move(m, e, CK_STATE_COMMITTED);
	e->row.reason = CK_REASON_NONE;
	if (awaited)
		ck_note_entry(m, e, CK_WHAT_HANDED_BACK, 0, NULL);
	CK_FOR_TURNS (t, ck_pod_of(e)) {
		if (!ck_turn_live(m, t) || !ck_key_same(t->key, e->row.key) ||
		    !ck_turn_same(m, t, e, &why))
			continue;
		if (e->kept)
			m->counters.handed_back++;
		else
			m->counters.in_time++;
		ck_turn_hand_back(m, t, e);
	}
}

/* CREATING or KEPT becomes the kubelet's: hooks first, if anybody listens (H4: required plugins are
 * checked before any event) */
void ck_commit(struct ck_machine *m, struct ck_entry *e)
{
	struct ck_error err;
	/* hooks are never fired twice */
	bool fire = m->rules.hooks && !(e->row.flags & CK_ENTRY_TOLD);
	fire = fire && !(CK_BROKEN(R39) && e->row.state == CK_STATE_KEPT);
	if (fire && !ck_entry_choose(m, e, &err)) {
		enum ck_reason why;
		ck_note_entry(m, e, CK_WHAT_PLUGIN_ABSENT, 0, err.text);
		if (e->row.state == CK_STATE_CREATING)
			keep(m, e);
		CK_FOR_TURNS (t, ck_pod_of(e))
			if (t->state == CK_TURN_WAITING && !t->drain &&
			    ck_key_same(t->key, e->row.key) && ck_turn_same(m, t, e, &why))
				ck_turn_answer(m, t, -CK_EUNAVAILABLE, "%s", err.text);
		e->row.interest = m->now;
		ck_kept_schedule(m, e);
		return;
	}
	ck_entry_move(m, e, CK_STATE_COMMITTING);
	if (fire && e->row.told[0])
		ck_want(m, e, CK_WANT_RUN);
	else
		ck_committed(m, e, true);
}

/* whoever was chosen was not told, and will not be by this commit */
void ck_untell(struct ck_machine *m, struct ck_entry *e)
{
	ck_unwant(m, e, CK_WANT_RUN);
	e->row.flags &= ~(unsigned)CK_ENTRY_TOLD;
	free(e->row.told);
	e->row.told = NULL;
	m->ops.released(m->user, e);
}

/* hooks could not be asked: it is kept, and asked for again */
void ck_commit_failed(struct ck_machine *m, struct ck_entry *e, const char *why)
{
	ck_untell(m, e);
	if (e->row.state != CK_STATE_COMMITTING)
		return;
	if (e->row.flags & CK_ENTRY_ABANDONED || e->dead) {
		ck_evict(m, e, e->dead ? CK_REASON_DEAD : e->row.reason);
		return;
	}
	keep(m, e);
	CK_FOR_TURNS (t, ck_pod_of(e))
		if (t->state == CK_TURN_WAITING && t->row == e->row.id && t->joined)
			ck_turn_answer(m, t, -CK_EUNAVAILABLE,
				       "the result exists, but plugins cannot be told: %s", why);
}

/* the runtime's id is known (K2): the newest live request decides what becomes of it */
void ck_result_known(struct ck_machine *m, struct ck_entry *e)
{
	if (e->row.flags & CK_ENTRY_ABANDONED) { /* never served (K23) */
		ck_evict(m, e, e->row.reason);
		return;
	}
	if (e->dead) {
		ck_evict(m, e, CK_REASON_DEAD);
		return;
	}
	enum ck_reason why;
	struct ck_mturn *newest = ck_newest_live(m, e);
	if (newest && ck_turn_undecided(m, newest, e)) {
		keep(m, e);
	} else if (newest && !ck_turn_same(m, newest, e, &why)) { /* K11: the kubelet asks for something else by now */
		m->counters.changed++;
		ck_evict(m, e, why);
	} else if (ck_loser_pending(e)) {
		keep(m, e);
	} else if (newest || CK_BROKEN(R38) ||
		   (m->rules.hand_back == CK_OFFER && e->row.key->kind == CK_SANDBOX)) {
		ck_commit(m, e);
	} else {
		keep(m, e);
	}
}

/* ---- abandoning ------------------------------------------------------------------------------ */

/* what joined an entry hears that it is over; a creator may go on, but its caller gets no answer
 * from it */
static void abort_joined(struct ck_machine *m, struct ck_entry *e, const char *why)
{
	CK_FOR_TURNS (t, ck_pod_of(e)) {
		if (t->row != e->row.id || t->state == CK_TURN_DECIDED || t->drain ||
		    (e->creator != t && !t->joined))
			continue;
		m->counters.superseded++;
		ck_turn_answer(m, t, -CK_EABANDONED, "superseded: %s", why);
	}
}

void ck_abandon(struct ck_machine *m, struct ck_entry *e, enum ck_reason reason)
{
	switch (e->row.state) {
	case CK_STATE_KEPT:
		if ((e->wants | e->outstanding) & CK_WANT_INSPECT)
			break; /* K6: waits for the answer */
		abort_joined(m, e, ck_reason_text(reason));
		ck_evict(m, e, reason);
		return;
	case CK_STATE_CREATING:
	case CK_STATE_COMMITTING:
		break;
	default:
		return;
	}
	if (!(e->row.flags & CK_ENTRY_ABANDONED)) {
		e->row.flags |= CK_ENTRY_ABANDONED;
		e->row.reason = reason;
		e->changed_seq = m->seq;
		ck_dirty(m, e);
		ck_touch(m, ck_pod_of(e));
	}
	abort_joined(m, e, ck_reason_text(reason));
	if (e->row.state != CK_STATE_COMMITTING)
		return;
	if (e->wants & CK_WANT_RUN) { /* nobody was told yet, and nobody will be */
		ck_untell(m, e);
		ck_evict(m, e, reason);
	} else {
		ck_want(m, e, CK_WANT_CANCEL); /* K13: the one in flight is waited for */
	}
}

/* K9: the kubelet asked for @key, so it has given up every other attempt of the slot */
void ck_bump(struct ck_machine *m, struct ck_mturn *by)
{
	for (struct ck_entry *e = by->group->entries, *next; e; e = next) {
		next = ck_pod_next(e);
		const struct ck_key *key = e->row.key;
		if (!ck_state_open(e->row.state) || key->kind != by->key->kind ||
		    ck_key_same(key, by->key))
			continue;
		if (key->kind == CK_SANDBOX)
			ck_abandon(m, e,
				   strcmp(key->pod_uid, by->key->pod_uid) ? CK_REASON_POD_REPLACED
									  : CK_REASON_ATTEMPT);
		else if (ck_key_same_slot(key, by->key))
			ck_abandon(m, e, CK_REASON_ATTEMPT);
	}
	const struct ck_mturn *before = by->next;
	if (before && !before->drain && before->key->kind == by->key->kind &&
	    ck_key_same(before->key, by->key))
		return; /* there are none: the one before it has asked for the same */
	CK_FOR_TURNS (t, by->group) { /* requests that never came to an entry */
		if (t->state != CK_TURN_WAITING || t == by || t->drain ||
		    t->key->kind != by->key->kind || ck_key_same(t->key, by->key))
			continue;
		if (by->key->kind == CK_CONTAINER && !ck_key_same_slot(t->key, by->key))
			continue;
		m->counters.superseded++;
		ck_turn_answer(m, t, -CK_EABANDONED, "superseded: %s",
			       ck_reason_text(CK_REASON_ATTEMPT));
	}
}

/* ---- placing a turn -------------------------------------------------------------------------- */

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
	e->row.requests = 1;
	e->row.state = CK_STATE_CREATING;
	e->creator = t;
	e->begun_turn = t->seq;
	for (struct ck_entry *old = t->group->entries; old;
	     old = ck_pod_next(old)) /* K12: how often in a row, for nothing but labels */
		if (old != e && old->row.reason == CK_REASON_RELABELLED &&
		    ck_key_same_slot(old->row.key, t->key) &&
		    old->row.relabelled + 1 > e->row.relabelled)
			e->row.relabelled = old->row.relabelled + 1;
	t->row = e->row.id;
	t->joined = true;
	ck_turn_want_resolve(m, t);
	m->counters.created++;
	ck_dirty(m, e);
	ck_note_entry(m, e, CK_WHAT_BEGUN, 0, NULL);
	ck_touch(m, t->group);
	ck_creating_schedule(m, e);
	ck_turn_answer(m, t, CK_CREATE, NULL);
}

static void conflict(struct ck_machine *m, struct ck_mturn *t, struct ck_entry *e, const char *why)
{
	char who[3 * CK_NAME_MAX_LEN];
	m->counters.conflicts++;
	ck_note_entry(m, e, CK_WHAT_CONFLICT, 0, why);
	ck_turn_answer(m, t, -CK_ECONFLICT, "%s exists: %s", ck_key_print(t->key, who, sizeof(who)),
		       why);
}

/* an entry of the turn's key that is not on its way out */
static void place_at(struct ck_machine *m, struct ck_mturn *t, struct ck_entry *e)
{
	enum ck_reason why;
	bool first_time = t->row != e->row.id;
	t->row = e->row.id;
	t->joined = false;
	if (e->row.flags & CK_ENTRY_ABANDONED)
		return; /* K23: it will come to an end, and then the turn succeeds it */
	if (e->row.state == CK_STATE_COMMITTED) {
		struct ck_difference difference = { 0 };
		if (e->removing || (e->row.origin == CK_ORIGIN_CACHE && ck_turn_undecided(m, t, e)))
			return;
		if (e->row.origin == CK_ORIGIN_RUNTIME)
			conflict(m, t, e, "it was made before this cache knew it");
		else if (ck_turn_same(m, t, e, &why) && !e->running)
			ck_turn_hand_back(m, t, e); /* K5 */
		else if (e->running)
			conflict(m, t, e, "it is running");
		else if (m->ops.compare(m->user, e, t->fp, &difference) ==
			 CK_RELATION_NOT_COMPARABLE)
			conflict(m, t, e, ck_reason_text(CK_REASON_NOT_COMPARABLE));
		else
			conflict(m, t, e, difference.text);
		return;
	}
	if (ck_turn_undecided(m, t, e))
		return; /* placed anew when its image is known (E5) */
	bool same = ck_turn_same(m, t, e, &why);
	t->joined = same;
	if (same && first_time) {
		e->row.requests++;
		e->row.interest = m->now;
		m->counters.joined += e->row.state == CK_STATE_CREATING;
		ck_note_entry(m, e, CK_WHAT_JOINED, 0, NULL);
	}
	switch (e->row.state) {
	/* K1; another fingerprint is compared at the end (K11), unless it is older than this
	 * creation (K14) */
	case CK_STATE_CREATING:
		if (!same && t->seq < e->begun_turn)
			ck_turn_answer(m, t, -CK_EABANDONED, "superseded: %s",
				       ck_reason_text(CK_REASON_CHANGED));
		else if (first_time)
			ck_lost_hurry(m, e);
		return;
	case CK_STATE_COMMITTING:
		if (!same && ck_newest_live(m, e) == t)
			ck_abandon(m, e, why); /* K13 */
		return;
	default:
		break;
	}
	if (!same && ck_newest_live(m, e) != t) {
		return;     /* a newer request has its say first */
	} else if (!same) { /* KEPT (K11): destroyed, and this request succeeds it */
		if (why == CK_REASON_NOT_COMPARABLE)
			m->counters.not_comparable++;
		m->counters.changed++;
		ck_abandon(m, e, why);
	} else if (ck_loser_pending(e)) {
		return;
	} else if (!m->rules.can_inspect) {
		ck_commit(m, e);
	} else if (!((e->wants | e->outstanding) & CK_WANT_INSPECT)) {
		if (e->ask_at <= m->now) { /* K6 */
			e->asked_at = m->now;
			ck_want(m, e, CK_WANT_INSPECT);
		}
		ck_kept_schedule(m, e);
	}
}

/* something that must be gone before a creation of the turn's key may begin */
static struct ck_entry *blocker(struct ck_machine *m, struct ck_mturn *t)
{
	struct ck_entry *ports = NULL;
	for (struct ck_entry *e = t->group->entries; e; e = ck_pod_next(e)) {
		const struct ck_key *key = e->row.key;
		bool busy = e->row.state == CK_STATE_EVICTING || e->row.state == CK_STATE_CREATING;
		if (e->row.state == CK_STATE_COMMITTED && e->removing && ck_key_same(key, t->key))
			return e; /* K5: ended, and on its way out */
		if (e->row.state == CK_STATE_EVICTING && ck_key_same(key, t->key))
			return e;
		if (busy && ck_key_same_runtime_name(key, t->key) && !ck_key_same(key, t->key))
			return e; /* one object of a runtime name at a time */
		if (key->kind == CK_SANDBOX && t->key->kind == CK_SANDBOX && !e->stopped &&
		    (e->row.state == CK_STATE_EVICTING ||
		     (ck_state_open(e->row.state) && e->row.flags & CK_ENTRY_ABANDONED)))
			ports = e;
	}
	if (!ports)
		return NULL;
	if (!t->supersede_at) { /* K10 */
		t->supersede_at = m->now + m->rules.supersede_wait;
		if (t->supersede_at > t->margin_at)
			t->supersede_at = t->margin_at;
		ck_turn_schedule(m, t);
	}
	return m->now >= t->supersede_at ? NULL : ports;
}

void ck_turn_place(struct ck_machine *m, struct ck_mturn *t)
{
	if (t->drain) {
		for (struct ck_entry *e = ck_sandbox_containers(m, t->drain); e;
		     e = e->link[CK_BY_SANDBOX].next)
			if (ck_state_open(e->row.state) || e->row.state == CK_STATE_EVICTING)
				return;
		ck_turn_answer(m, t, CK_DRAINED, NULL);
		return;
	}
	if (!ck_machine_reconciled(m))
		return; /* nothing is served before the first list (K24) */
	if (t->key->kind == CK_CONTAINER) {
		struct ck_entry *sandbox = ck_machine_object(m, CK_SANDBOX, t->key->sandbox_id);
		bool ends = sandbox && (sandbox->stopping || sandbox->row.flags & CK_ENTRY_ENDED) &&
			    !CK_BROKEN(R25);
		if (ends) { /* K16 */
			ck_turn_answer(m, t, -CK_EPRECONDITION, "the sandbox is being stopped");
			return;
		}
	}
	struct ck_entry *active = NULL;
	for (struct ck_entry *e = t->group->entries; e; e = ck_pod_next(e)) {
		if (!ck_key_same(e->row.key, t->key))
			continue;
		if (ck_state_open(e->row.state))
			active = e;
		else if (e->row.state == CK_STATE_COMMITTED &&
			 !(e->row.flags & CK_ENTRY_ENDED) && !active)
			active = e;
	}
	/* in its margin it may only begin what it came for */
	bool in_time = ck_turn_live(m, t) || !t->row || t->supersede_at;
	if (active) {
		if (ck_turn_live(m, t))
			place_at(m, t, active);
		else
			t->row = active->row.id;
		return;
	}
	struct ck_entry *wait_for = blocker(m, t);
	if (wait_for) {
		t->row = wait_for->row.id;
		t->joined = false;
	} else if (in_time) {
		create(m, t);
	}
}
