/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of a result: it is kept, or committed once the hooks agree. */
#include "cache/machine/machine-int.h"

bool ck_duplicate_pending(const struct ck_entry *e)
{
	for (const struct ck_entry *other = ck_machine_same_key(e, NULL); other;
	     other = ck_machine_same_key(e, other))
		if (other->row.state == CK_STATE_EVICTING)
			return true;
	return false;
}

/* when its time to live will be over, if nobody asks for it before (K15) */
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
	uint64_t until = ck_kept_until(m, e), due = until;
	if ((e->wants | e->outstanding) & CK_WANT_INSPECT)
		/* if no answer comes by then, none will */
		due = e->in.kept.asked_at + m->rules.destroy_timeout;
	else if (ck_awaited(m, e))
		due = e->in.kept.ask_at > m->now ? e->in.kept.ask_at : CK_NEVER_DUE;
	else if (e->in.kept.offer_at && e->in.kept.offer_at < due)
		due = e->in.kept.offer_at;
	ck_entry_schedule(m, e, due);
	if (due == e->in.kept.offer_at)
		e->row.due = until; /* who reads it takes it for the end of what is kept */
}

static void move_to_kept(struct ck_machine *m, struct ck_entry *e)
{
	ck_entry_move(m, e, CK_STATE_KEPT);
	ck_interest(m, e);
	ck_kept_schedule(m, e);
}

static void keep(struct ck_machine *m, struct ck_entry *e)
{
	m->counters.kept[e->row.key->kind]++;
	move_to_kept(m, e);
}

/* A visible CREATED container would make the kubelet build the next attempt. Plugins know it, or
 * had it in their list, and are not told again. */
void ck_take_back(struct ck_machine *m, struct ck_entry *e)
{
	e->row.flags |= CK_ENTRY_TOLD;
	move_to_kept(m, e);
}

void ck_taken(struct ck_machine *m, struct ck_entry *e)
{
	enum ck_kind kind = e->row.key->kind;
	/* else it was handed over in an earlier life, which has counted it */
	bool of_this_life = !e->restored || e->was_kept || e->row.existed > m->opened;
	if (e->taken || !ck_state_visible(e->row.state))
		return;
	e->taken = true;
	if (e->in_time || !of_this_life || e->row.origin != CK_ORIGIN_CACHE)
		return;
	m->counters.saved[kind]++;
	m->counters.saved_ms[kind] +=
		ck_duration_between(e->row.created, e->row.existed) / CK_NS_PER_MS;
}

static bool is_taken(struct ck_machine *m, struct ck_entry *e, struct ck_mturn *t)
{
	enum ck_reason why;
	return ck_turn_takes(m, t, e->was_kept) && ck_key_same(t->key, e->row.key) &&
	       ck_turn_same(m, t, e, &why);
}

static bool is_taken_by_any(struct ck_machine *m, struct ck_entry *e)
{
	CK_FOR_TURNS (t, ck_pod_of(e))
		if (is_taken(m, e, t))
			return true;
	return false;
}

/* The sandbox of @e may be given up, and have been asked about before there was anything in it. It
 * is not destroyed under what the kubelet has in it (K22). */
static void save_sandbox(struct ck_machine *m, struct ck_entry *e)
{
	struct ck_entry *sandbox = ck_machine_object(m, CK_SANDBOX, e->row.key->sandbox_id);
	if (sandbox && sandbox->row.state == CK_STATE_EVICTING && !sandbox->in.evicting.dead)
		ck_in_use(m, e);
}

/* COMMITTING, and the hooks agree: it is handed to every turn that waits for it (K7) */
void ck_committed(struct ck_machine *m, struct ck_entry *e, bool offered)
{
	bool awaited = is_taken_by_any(m, e);
	/* a duplicate was found while the hooks ran (K26), or somebody began to remove it (K5); or
	 * nobody waits: see ck_take_back() */
	if (ck_duplicate_pending(e) || ck_being_removed(m, e) ||
	    (!awaited && !offered && e->row.key->kind == CK_CONTAINER)) {
		keep(m, e);
		return;
	}
	e->row.reason = CK_REASON_NONE;
	ck_entry_move(m, e, CK_STATE_COMMITTED);
	ck_history_add(m, e, awaited ? CK_WHAT_HANDED_BACK : CK_WHAT_OFFERED, 0, NULL);
	CK_FOR_TURNS (t, ck_pod_of(e)) {
		if (!is_taken(m, e, t))
			continue;
		if (e->was_kept)
			m->counters.handed_back[e->row.key->kind]++;
		else
			m->counters.in_time[e->row.key->kind]++;
		ck_turn_hand_back(m, t, e);
	}
	if (e->row.key->kind == CK_CONTAINER)
		save_sandbox(m, e);
}

/* An entry that is CREATING or KEPT becomes the kubelet's, after its hooks if anybody listens.
 * Required plugins are checked before any event (H4). */
void ck_commit(struct ck_machine *m, struct ck_entry *e)
{
	struct ck_error err;
	/* hooks are never fired twice */
	bool fire = m->rules.hooks && !(e->row.flags & CK_ENTRY_TOLD);
	if (fire && !ck_entry_choose(m, e, &err)) {
		enum ck_reason why;
		ck_history_add(m, e, CK_WHAT_PLUGIN_ABSENT, 0, err.text);
		if (e->row.state != CK_STATE_KEPT)
			keep(m, e);
		CK_FOR_TURNS (t, ck_pod_of(e))
			if (ck_turn_waits(t) && ck_key_same(t->key, e->row.key) &&
			    ck_turn_same(m, t, e, &why))
				ck_turn_answer(m, t, -CK_EUNAVAILABLE, "%s", err.text);
		ck_interest(m, e);
		ck_kept_schedule(m, e);
		return;
	}
	ck_entry_move(m, e, CK_STATE_COMMITTING);
	if (fire && e->row.told[0])
		ck_want(m, e, CK_WANT_RUN);
	else
		ck_committed(m, e, true);
}

void ck_commit_failed(struct ck_machine *m, struct ck_entry *e, const char *why)
{
	ck_untell(m, e);
	ck_evict_goes_on(m, e); /* if it was given up meanwhile */
	if (ck_state_visible(e->row.state)) /* it was found in use */
		ck_entry_schedule(m, e, m->now + CK_GAP);
	if (e->row.state != CK_STATE_COMMITTING)
		return;
	keep(m, e);
	CK_FOR_TURNS (t, ck_pod_of(e))
		if (t->state == CK_TURN_JOINED && t->row == e->row.id)
			ck_turn_answer(m, t, -CK_EUNAVAILABLE,
				       "the result exists, but plugins cannot be told: %s", why);
}

/* when this sandbox becomes visible though nobody waits for it (K2); 0: it does not */
uint64_t ck_offer_at(struct ck_machine *m, const struct ck_entry *e)
{
	const uint64_t ahead = (CK_OFFERS_AT_ONCE - 1) * CK_OFFER_GAP;
	if (m->rules.hand_back != CK_OFFER || e->row.key->kind != CK_SANDBOX)
		return 0;
	if (m->offers_until < m->now)
		m->offers_until = m->now;
	uint64_t at = m->offers_until > m->now + ahead ? m->offers_until - ahead : m->now;
	m->offers_until += CK_OFFER_GAP;
	return at;
}

/* the newest live request decides what becomes of the result (K2) */
void ck_result_known(struct ck_machine *m, struct ck_entry *e)
{
	if (e->in.creating.dead) {
		ck_evict(m, e, CK_REASON_DEAD);
		e->in.evicting.dead = true;
		return;
	}
	enum ck_reason why;
	struct ck_mturn *newest = ck_newest_live(m, e);
	if (newest && ck_turn_undecided(m, newest, e)) {
		keep(m, e);
	} else if (newest && !ck_turn_same(m, newest, e, &why)) {
		/* by now the kubelet asks for something else (K11) */
		m->counters.changed[e->row.key->kind]++;
		ck_evict_for(m, e, why, newest);
	} else if (ck_duplicate_pending(e)) {
		keep(m, e);
	} else {
		uint64_t at = newest ? m->now : ck_offer_at(m, e);
		if (at == m->now) {
			ck_commit(m, e);
			return;
		}
		keep(m, e);
		if (at)
			ck_history_add(m, e, CK_WHAT_OFFER_WAITS, 0, NULL);
		e->in.kept.offer_at = at;
		ck_kept_schedule(m, e);
	}
}

void ck_inspected_kept(struct ck_machine *m, struct ck_entry *e, enum ck_condition condition)
{
	bool gone = ck_condition_dead(condition) || condition == CK_CONDITION_ABSENT;
	bool unknown = condition == CK_CONDITION_UNKNOWN; /* no answer is not an answer (K6) */
	if (ck_condition_used(condition) && e->row.key->kind == CK_CONTAINER) {
		ck_condition_seen(m, e, condition);
	} else if (gone) {
		ck_evict(m, e, CK_REASON_DEAD);
		e->in.evicting.dead = condition != CK_CONDITION_ABSENT;
	} else if (unknown) {
		e->in.kept.ask_at = m->now + CK_INSPECT_AGAIN;
		ck_kept_schedule(m, e);
	} else if (is_taken_by_any(m, e) && !ck_duplicate_pending(e)) {
		ck_commit(m, e);
	} else {
		ck_kept_schedule(m, e);
	}
}
