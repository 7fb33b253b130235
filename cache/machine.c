/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules: events in, actions out.
 *
 *  begin --place--> create | join | claim a kept result | wait        finish --result_known--> commit | keep | evict
 *            ^                                                             |
 *            '--------- anything of the pod moved: every waiting turn is placed anew, the newest first
 *
 * What always holds: an event either happens whole or returns an error; effects (answers, wants) only queue up here, and the
 * caller carries them out after it wrote what is dirty.
 */
#include <stdio.h>

#include "cache/machine-int.h"

#ifdef CK_MUTANTS
enum ck_mutant ck_mutant;
#endif

/* ---- the plumbing of a round ------------------------------------------------------------------------------------------ */

#define QUEUE_ADD(first, last, item, prev_, next_) \
	do {                                       \
		(item)->prev_ = (last);            \
		(item)->next_ = NULL;              \
		if (last)                          \
			(last)->next_ = (item);    \
		else                               \
			(first) = (item);          \
		(last) = (item);                   \
	} while (0)
#define QUEUE_DEL(first, last, item, prev_, next_)                      \
	do {                                                            \
		if ((item)->prev_)                                      \
			(item)->prev_->next_ = (item)->next_;           \
		else                                                    \
			(first) = (item)->next_;                        \
		if ((item)->next_)                                      \
			(item)->next_->prev_ = (item)->prev_;           \
		else                                                    \
			(last) = (item)->prev_;                         \
		(item)->prev_ = (item)->next_ = NULL;                   \
	} while (0)

void ck_dirty(struct ck_machine *m, struct ck_entry *e)
{
	if (e->is_dirty)
		return;
	e->is_dirty = true;
	QUEUE_ADD(m->dirty, m->dirty_last, e, dirty_prev, dirty_next);
}

void ck_want(struct ck_machine *m, struct ck_entry *e, enum ck_want want)
{
	e->wants |= want;
	if (e->wants_queued)
		return;
	e->wants_queued = true;
	QUEUE_ADD(m->wanting, m->wanting_last, e, wanting_prev, wanting_next);
}

void ck_unwant(struct ck_machine *m, struct ck_entry *e, unsigned wants)
{
	e->wants &= ~wants;
	if (e->wants || !e->wants_queued)
		return;
	e->wants_queued = false;
	QUEUE_DEL(m->wanting, m->wanting_last, e, wanting_prev, wanting_next);
}

struct ck_entry *ck_machine_wanting(struct ck_machine *m)
{
	return m->wanting;
}

unsigned ck_machine_take_wants(struct ck_machine *m, struct ck_entry *e)
{
	unsigned wants = e->wants;
	ck_unwant(m, e, wants);
	e->outstanding |= wants & ~(unsigned)CK_WANT_CANCEL; /* a cancel has no answer of its own */
	return wants;
}

void ck_touch(struct ck_machine *m, struct ck_group *pod)
{
	if (!pod || pod->touched)
		return;
	pod->touched = true;
	pod->touched_next = m->touched;
	m->touched = pod;
}

void ck_event_begin(struct ck_machine *m)
{
	m->seq++;
}

/* the one mechanism: what was touched is placed anew until nothing moves any more */
void ck_event_end(struct ck_machine *m)
{
	for (struct ck_group *pod; (pod = m->touched);) {
		m->touched = pod->touched_next;
		pod->touched = false;
		CK_FOR_TURNS(t, pod)
			if (t->state == CK_TURN_WAITING)
				ck_turn_place(m, t);
		for (struct ck_entry *e = pod->entries; e; e = ck_pod_next(e))
			if (e->row.state == CK_STATE_KEPT)
				ck_kept_schedule(m, e);
		ck_group_put(m, pod);
	}
	ck_evict_pump(m);
}

void ck_note_entry(struct ck_machine *m, struct ck_entry *e, enum ck_what what, int grpc, const char *detail)
{
	if (m->notes_n == m->notes_room) { /* history is a help, not a promise: without memory a line is missing */
		size_t room = m->notes_room ? 2 * m->notes_room : 16;
		struct ck_note *notes = ck_realloc(m->notes, room * sizeof(*notes));
		if (!notes)
			return;
		m->notes = notes;
		m->notes_room = room;
	}
	struct ck_note *note = &m->notes[m->notes_n++];
	*note = (struct ck_note){ .entry = e, .what = what, .grpc = grpc, .at = m->now };
	if (detail)
		snprintf(note->detail, sizeof(note->detail), "%s", detail);
}

void ck_entry_schedule(struct ck_machine *m, struct ck_entry *e, uint64_t due)
{
	ck_timer_set(&m->timers, &e->timer, due);
	e->row.due = due == CK_NEVER_DUE ? 0 : due; /* for people; not worth a write of its own */
}

void ck_entry_move(struct ck_machine *m, struct ck_entry *e, enum ck_state to)
{
	if (CK_NEVER(!ck_state_may_move(e->row.state, to)))
		return;
	enum ck_state from = e->row.state;
	ck_note_entry(m, e, CK_WHAT_MOVED, 0, NULL);
	if (m->notes_n && m->notes[m->notes_n - 1].entry == e && m->notes[m->notes_n - 1].what == CK_WHAT_MOVED) {
		m->notes[m->notes_n - 1].from = from;
		m->notes[m->notes_n - 1].to = to;
	}
	e->row.state = to;
	e->row.changed = m->now;
	e->changed_seq = m->seq;
	ck_entry_schedule(m, e, CK_NEVER_DUE);
	ck_dirty(m, e);
	ck_touch(m, ck_pod_of(e));
}

/* gone for good: nobody finds it any more, its row is deleted with the next write */
void ck_entry_drop(struct ck_machine *m, struct ck_entry *e)
{
	struct ck_group *pod = ck_pod_of(e);
	if (e->row.state != CK_STATE_GONE)
		ck_entry_move(m, e, CK_STATE_GONE);
	ck_unwant(m, e, ~0u);
	ck_touch(m, pod); /* keeps the group until the event ends */
	if (m->rules.hooks && m->ops.released)
		m->ops.released(m->user, e);
	ck_entry_detach(m, e);
	ck_dirty(m, e);
}

bool ck_machine_row_unwanted(const struct ck_entry *e)
{
	return e->detached;
}

/* ---- hooks: who is told -------------------------------------------------------------------------------------------------- */

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

/* ---- a result: keep, commit ------------------------------------------------------------------------------------------------ */

/* K26: another object of this key is being destroyed */
static bool loser_pending(const struct ck_entry *e)
{
	for (const struct ck_entry *other = ck_pod_of(e)->entries; other; other = ck_pod_next(other))
		if (CK_GUARD(LOSER_FIRST, other->row.state == CK_STATE_EVICTING && other != e && ck_key_same(other->row.key, e->row.key)))
			return true;
	return false;
}

void ck_kept_schedule(struct ck_machine *m, struct ck_entry *e)
{
	uint64_t ttl = m->rules.ttl, longest = m->longest_deadline[e->row.key->kind];
	if (longest > ttl)
		ttl = longest;
	uint64_t due = e->row.interest + ttl;
	uint64_t grace = m->opened + (ttl < CK_OPEN_GRACE ? ttl : CK_OPEN_GRACE);
	if (CK_GUARD(OPEN_GRACE, e->restored && due < grace))
		due = grace;
	if ((e->wants | e->outstanding) & CK_WANT_INSPECT)
		due = e->asked_at + m->rules.destroy_timeout; /* the answer goes on from here, if one comes */
	else if (CK_GUARD(TTL_RESTS, ck_awaited(m, e)))
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
static void committed(struct ck_machine *m, struct ck_entry *e, bool offered)
{
	enum ck_reason why;
	bool awaited = false;
	CK_FOR_TURNS(t, ck_pod_of(e))
		if (ck_turn_live(m, t) && ck_key_same(t->key, e->row.key) && ck_turn_same(m, t, e, &why))
			awaited = true;
	if (!awaited && !offered && e->row.key->kind == CK_CONTAINER && CK_GUARD(CONTAINER_KEPT_AGAIN, true)) {
		keep(m, e); /* visible and CREATED it would make the kubelet build the next attempt */
		return;
	}
	ck_entry_move(m, e, CK_STATE_COMMITTED);
	e->row.reason = CK_REASON_NONE;
	CK_FOR_TURNS(t, ck_pod_of(e)) {
		if (!ck_turn_live(m, t) || !ck_key_same(t->key, e->row.key) || !ck_turn_same(m, t, e, &why))
			continue;
		if (e->kept)
			m->counters.handed_back++;
		else
			m->counters.in_time++;
		ck_turn_hand_back(m, t, e);
	}
	ck_note_entry(m, e, CK_WHAT_HANDED_BACK, 0, NULL);
}

/* CREATING or KEPT becomes the kubelet's: hooks first, if anybody listens (H4: required plugins are checked before any event) */
static void commit(struct ck_machine *m, struct ck_entry *e)
{
	struct ck_error err;
	bool fire = m->rules.hooks && !CK_GUARD(TOLD_ONCE, e->row.flags & CK_ENTRY_TOLD);
	if (fire && !ck_entry_choose(m, e, &err)) {
		enum ck_reason why;
		ck_note_entry(m, e, CK_WHAT_PLUGIN_ABSENT, 0, err.text);
		if (e->row.state == CK_STATE_CREATING)
			keep(m, e);
		CK_FOR_TURNS(t, ck_pod_of(e))
			if (t->state == CK_TURN_WAITING && !t->drain && ck_key_same(t->key, e->row.key) && ck_turn_same(m, t, e, &why))
				ck_turn_answer(m, t, -CK_EUNAVAILABLE, "%s", err.text);
		e->row.interest = m->now;
		ck_kept_schedule(m, e);
		return;
	}
	ck_entry_move(m, e, CK_STATE_COMMITTING);
	if (fire && e->row.told[0])
		ck_want(m, e, CK_WANT_RUN);
	else
		committed(m, e, true);
}

/* the runtime's id is known (K2): the newest live request decides what becomes of it */
void ck_result_known(struct ck_machine *m, struct ck_entry *e)
{
	if (CK_GUARD(ABANDONED_NOT_SERVED, e->row.flags & CK_ENTRY_ABANDONED)) {
		ck_evict(m, e, e->row.reason);
		return;
	}
	enum ck_reason why;
	struct ck_mturn *newest = ck_newest_live(m, e);
	if (newest && ck_turn_undecided(m, newest, e)) {
		keep(m, e);
	} else if (newest && !ck_turn_same(m, newest, e, &why)) { /* K11: the kubelet asks for something else by now */
		m->counters.changed++;
		ck_evict(m, e, why);
	} else if (loser_pending(e)) {
		keep(m, e);
	} else if (newest || !CK_GUARD(COMMIT_NEEDS_SOMEBODY, true) ||
		   (m->rules.hand_back == CK_OFFER && e->row.key->kind == CK_SANDBOX)) {
		commit(m, e);
	} else {
		keep(m, e);
	}
}

/* ---- abandoning -------------------------------------------------------------------------------------------------------------- */

/* what joined an entry hears that it is over; a creator may go on, but its caller gets no answer from it */
static void abort_joined(struct ck_machine *m, struct ck_entry *e, const char *why)
{
	CK_FOR_TURNS(t, ck_pod_of(e)) {
		if (t->row != e->row.id || t->state == CK_TURN_DECIDED || t->drain || (e->creator != t && !t->joined))
			continue;
		m->counters.superseded++;
		t->told_abandoned = e->creator == t;
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
		ck_unwant(m, e, CK_WANT_RUN);
		e->row.flags &= ~(unsigned)CK_ENTRY_TOLD;
		free(e->row.told);
		e->row.told = NULL;
		m->ops.released(m->user, e);
		ck_evict(m, e, reason);
	} else {
		ck_want(m, e, CK_WANT_CANCEL); /* K13: the one in flight is waited for */
	}
}

/* K9: the kubelet asked for @key, so it has given up every other attempt of the slot */
static void bump(struct ck_machine *m, struct ck_mturn *by)
{
	for (struct ck_entry *e = by->group->entries, *next; e; e = next) {
		next = ck_pod_next(e);
		const struct ck_key *key = e->row.key;
		if (!ck_state_open(e->row.state) || key->kind != by->key->kind || ck_key_same(key, by->key))
			continue;
		if (key->kind == CK_SANDBOX)
			ck_abandon(m, e, strcmp(key->pod_uid, by->key->pod_uid) ? CK_REASON_POD_REPLACED : CK_REASON_ATTEMPT);
		else if (ck_key_same_slot(key, by->key))
			ck_abandon(m, e, CK_REASON_ATTEMPT);
	}
	CK_FOR_TURNS(t, by->group) { /* requests that never came to an entry */
		if (t->state != CK_TURN_WAITING || t == by || t->drain || t->key->kind != by->key->kind || ck_key_same(t->key, by->key))
			continue;
		if (by->key->kind == CK_CONTAINER && !ck_key_same_slot(t->key, by->key))
			continue;
		m->counters.superseded++;
		ck_turn_answer(m, t, -CK_EABANDONED, "superseded: %s", ck_reason_text(CK_REASON_ATTEMPT));
	}
}

/* ---- placing a turn ----------------------------------------------------------------------------------------------------------- */

static void create(struct ck_machine *m, struct ck_mturn *t)
{
	struct ck_key *key = NULL;
	struct ck_entry *e = NULL;
	struct ck_record record = { 0 };
	if (ck_key_dup(t->key, &key) < 0 || m->ops.record(m->user, t->fp, &record) < 0 || ck_entry_new(m, key, &e) < 0) {
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
	for (struct ck_entry *old = t->group->entries; old; old = ck_pod_next(old)) /* K12: how often in a row, for nothing but labels */
		if (old != e && old->row.reason == CK_REASON_RELABELLED && ck_key_same(old->row.key, t->key) &&
		    old->row.relabelled + 1 > e->row.relabelled)
			e->row.relabelled = old->row.relabelled + 1;
	t->row = e->row.id;
	t->joined = true;
	ck_turn_want_resolve(m, t);
	m->counters.created++;
	ck_dirty(m, e);
	ck_note_entry(m, e, CK_WHAT_BEGUN, 0, NULL);
	ck_touch(m, t->group);
	ck_turn_answer(m, t, CK_CREATE, NULL);
}

static void conflict(struct ck_machine *m, struct ck_mturn *t, struct ck_entry *e, const char *why)
{
	char who[3 * CK_NAME_MAX_LEN];
	m->counters.conflicts++;
	ck_note_entry(m, e, CK_WHAT_CONFLICT, 0, why);
	ck_turn_answer(m, t, -CK_ECONFLICT, "%s exists: %s", ck_key_print(t->key, who, sizeof(who)), why);
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
		if (CK_GUARD(IMPORT_NOT_SERVED, e->row.origin == CK_ORIGIN_RUNTIME))
			conflict(m, t, e, "it was made before this cache knew it");
		else if (ck_turn_same(m, t, e, &why) && !e->running)
			ck_turn_hand_back(m, t, e); /* K5 */
		else if (e->running)
			conflict(m, t, e, "it is running");
		else if (!CK_GUARD(COMMITTED_CONFLICT, true))
			ck_turn_hand_back(m, t, e);
		else if (m->ops.compare(m->user, e, t->fp, &difference) == CK_RELATION_NOT_COMPARABLE)
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
	case CK_STATE_CREATING: /* K1; another fingerprint is compared at the end (K11), unless it is older than this creation (K14) */
		if (!same && CK_GUARD(OLDER_LOSES, t->seq < e->begun_turn))
			ck_turn_answer(m, t, -CK_EABANDONED, "superseded: %s", ck_reason_text(CK_REASON_CHANGED));
		return;
	case CK_STATE_COMMITTING:
		if (!same)
			ck_abandon(m, e, why); /* K13 */
		return;
	default:
		break;
	}
	if (!same) { /* KEPT (K11): destroyed, and this request succeeds it */
		if (why == CK_REASON_NOT_COMPARABLE)
			m->counters.not_comparable++;
		m->counters.changed++;
		ck_abandon(m, e, why);
	} else if (loser_pending(e)) {
		return;
	} else if (!m->rules.can_inspect || !CK_GUARD(ASK_FIRST, true)) {
		commit(m, e);
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
		if (CK_GUARD(RUNTIME_NAME, busy && ck_key_same_runtime_name(key, t->key) && !ck_key_same(key, t->key)))
			return e;
		if (key->kind == CK_SANDBOX && t->key->kind == CK_SANDBOX && !e->stopped &&
		    (e->row.state == CK_STATE_EVICTING || (ck_state_open(e->row.state) && e->row.flags & CK_ENTRY_ABANDONED)))
			ports = e;
	}
	if (!CK_GUARD(SUPERSEDE_WAIT, ports != NULL))
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
		for (struct ck_entry *e = ck_sandbox_containers(m, t->drain); e; e = e->link[CK_BY_SANDBOX].next)
			if (ck_state_open(e->row.state) || e->row.state == CK_STATE_EVICTING)
				return;
		ck_turn_answer(m, t, CK_DRAINED, NULL);
		return;
	}
	if (CK_GUARD(FIRST_LIST, !ck_lists_done(m)))
		return;
	if (t->key->kind == CK_CONTAINER) {
		struct ck_entry *sandbox = ck_machine_object(m, CK_SANDBOX, t->key->sandbox_id);
		if (sandbox && CK_GUARD(SANDBOX_STOPPING, sandbox->stopping)) {
			ck_turn_answer(m, t, -CK_EPRECONDITION, "the sandbox is being stopped");
			return;
		}
	}
	struct ck_entry *active = NULL;
	for (struct ck_entry *e = t->group->entries; e; e = ck_pod_next(e)) {
		if (!ck_key_same(e->row.key, t->key))
			continue;
		if (CK_GUARD(ONE_CREATION, ck_state_open(e->row.state)))
			active = e;
		else if (e->row.state == CK_STATE_COMMITTED && !CK_GUARD(ENDED_NOT_SERVED, e->row.flags & CK_ENTRY_ENDED) && !active)
			active = e;
	}
	bool in_time = ck_turn_live(m, t) || !t->row || t->supersede_at; /* in its margin it may only begin what it came for */
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

/* ---- events of callers ---------------------------------------------------------------------------------------------------------- */

/* K9: one uid has one name */
static bool uid_has_another_name(struct ck_machine *m, const struct ck_key *key)
{
	struct ck_group *uid = ck_group_find(m, CK_BY_UID, key->pod_uid, strlen(key->pod_uid));
	for (struct ck_entry *e = uid ? uid->entries : NULL; e; e = e->link[CK_BY_UID].next)
		if (e->row.state != CK_STATE_GONE && e->row.state != CK_STATE_EVICTING && !(e->row.flags & CK_ENTRY_ENDED) &&
		    (strcmp(e->row.key->pod_name, key->pod_name) || strcmp(e->row.key->pod_namespace, key->pod_namespace)))
			return CK_GUARD(UID_TWO_NAMES, true);
	return false;
}

int ck_machine_begin(struct ck_machine *m, struct ck_mturn *t, struct ck_key *key, const struct ck_fingerprint *fp,
		     uint64_t timeout, bool expired, struct ck_error *err)
{
	t->key = key;
	t->fp = fp;
	if (CK_GUARD(EXPIRED_BUMPS_NOBODY, expired))
		return ck_fail(err, CK_EDEADLINE, "the caller's deadline had passed before its request was read");
	if (uid_has_another_name(m, key))
		return ck_fail(err, CK_EINVAL, "pod uid %.64s belongs to a pod of another name or namespace", key->pod_uid);
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
	if (CK_GUARD(BUMP, true))
		bump(m, t);
	ck_touch(m, pod);
	ck_event_end(m);
	return t->answered_queued ? t->outcome : CK_WAIT;
}

int ck_machine_stage(struct ck_machine *m, struct ck_mturn *t, const char *stage)
{
	struct ck_entry *e = ck_machine_entry(m, t->row);
	if (!e || e->creator != t)
		return -CK_ESTATE;
	snprintf(e->row.stage, sizeof(e->row.stage), "%s", stage);
	e->stage_since = m->now;
	ck_dirty(m, e);
	return 0;
}

/* a turn that made something becomes an ordinary waiter, or, if its caller has gone, is done */
static struct ck_entry *creator_ends(struct ck_machine *m, struct ck_mturn *t)
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

/* what a creator's own call returns: the answer, or that its caller can no longer be answered (K3) */
static int creator_outcome(struct ck_machine *m, struct ck_mturn *t, const struct ck_entry *e)
{
	if (t->state == CK_TURN_DECIDED)
		return t->outcome == -CK_EABANDONED ? CK_ABANDONED : t->outcome;
	if (e->row.state == CK_STATE_COMMITTING && ck_turn_live(m, t))
		return CK_WAIT;
	if (e->row.state == CK_STATE_EVICTING || e->row.flags & CK_ENTRY_ABANDONED) {
		ck_turn_answer(m, t, -CK_EABANDONED, "superseded: %s", ck_reason_text(e->row.reason));
		return CK_ABANDONED;
	}
	if (ck_turn_live(m, t))
		return CK_WAIT; /* K26: until a loser is gone */
	ck_turn_answer(m, t, CK_KEPT, "the caller's deadline has passed");
	return CK_KEPT;
}

int ck_machine_finish(struct ck_machine *m, struct ck_mturn *t, struct ck_made *made, struct ck_error *err)
{
	struct ck_entry *e = ck_machine_entry(m, t->row);
	if (!e || e->creator != t)
		return ck_fail(err, CK_ESTATE, "the turn is not making anything");
	if (ck_machine_object(m, e->row.key->kind, made->id))
		return ck_fail(err, CK_EINVAL, "the id belongs to another entry");
	ck_event_begin(m);
	if (e->row.made ? 0 : ck_entry_set_made(m, e, made) < 0)
		return ck_nomem(err);
	creator_ends(m, t);
	if (e->row.state == CK_STATE_EVICTING)
		ck_evict_found(m, e); /* evicted meanwhile: the id is learned late */
	else
		ck_result_known(m, e);
	ck_event_end(m);
	return creator_outcome(m, t, e);
}

int ck_machine_fail(struct ck_machine *m, struct ck_mturn *t, struct ck_shared_status *status, const char *detail)
{
	struct ck_entry *e = ck_machine_entry(m, t->row);
	if (!e || e->creator != t)
		return -CK_ESTATE;
	if (CK_GUARD(STILL_RUNNING, e->row.flags & CK_ENTRY_RESENT && status->grpc == CK_GRPC_ALREADY_EXISTS))
		return ck_machine_lost(m, t);
	ck_event_begin(m);
	creator_ends(m, t);
	ck_note_entry(m, e, CK_WHAT_FAILED, status->grpc, detail);
	m->counters.failed++;
	CK_FOR_TURNS(w, ck_pod_of(e)) { /* K4: the same status for all; whoever asks for something else is placed anew */
		if (w->row != e->row.id || w->state != CK_TURN_WAITING || !w->joined || w->drain)
			continue;
		w->status = ck_shared_status_ref(status);
		ck_turn_answer(m, w, -CK_EFAILED, "%s: %s", ck_grpc_name(status->grpc), detail && detail[0] ? detail : "the creation failed");
		w->err.sub = status->grpc;
	}
	if (e->row.state == CK_STATE_CREATING || e->row.state == CK_STATE_EVICTING)
		ck_entry_drop(m, e);
	ck_event_end(m);
	return 0;
}

int ck_machine_lost(struct ck_machine *m, struct ck_mturn *t)
{
	ck_event_begin(m);
	struct ck_entry *e = creator_ends(m, t);
	if (!e)
		return -CK_ESTATE;
	if (t->state == CK_TURN_WAITING && t->left)
		ck_turn_answer(m, t, CK_KEPT, "the caller has gone");
	ck_lost(m, e);
	ck_touch(m, ck_pod_of(e));
	ck_event_end(m);
	return 0;
}

int ck_machine_drain(struct ck_machine *m, struct ck_mturn *t, enum ck_kind kind, const char *id, uint64_t timeout, struct ck_error *err)
{
	struct ck_entry *e = ck_machine_object(m, kind, id);
	t->drain_kind = kind;
	t->drain = ck_strdup(kind == CK_SANDBOX ? id : "");
	if (!t->drain || ck_timers_reserve(&m->timers, m->timed + 1) < 0)
		return ck_nomem(err);
	if (e)
		e->removing = e->row.state == CK_STATE_COMMITTED;
	struct ck_entry *in = kind == CK_SANDBOX ? ck_sandbox_containers(m, id) : NULL;
	if (!in) { /* nothing of it can be in the way */
		if (kind == CK_SANDBOX)
			ck_sandbox_stopped(m, id, true);
		t->state = CK_TURN_DECIDED;
		return t->outcome = CK_DRAINED;
	}
	m->timed++;
	ck_event_begin(m);
	ck_turn_attach(m, t, ck_pod_of(in), timeout);
	ck_sandbox_stopped(m, id, true);
	ck_touch(m, t->group);
	ck_event_end(m);
	return t->answered_queued ? t->outcome : CK_WAIT;
}

/* ---- answers of the host and the hooks ------------------------------------------------------------------------------------------- */

static void inspected_kept(struct ck_machine *m, struct ck_entry *e, enum ck_condition condition)
{
	bool gone = condition == CK_CONDITION_DEAD || condition == CK_CONDITION_ABSENT || condition == CK_CONDITION_RUNNING;
	bool unknown = CK_GUARD(DONT_KNOW, condition == CK_CONDITION_UNKNOWN);
	if (e->row.flags & CK_ENTRY_ABANDONED) {
		ck_evict(m, e, e->row.reason);
	} else if (CK_GUARD(DEAD_NOT_SERVED, gone)) { /* running: the eviction will find it in use (K22) */
		ck_evict(m, e, CK_REASON_DEAD);
	} else if (unknown) {
		e->ask_at = m->now + CK_INSPECT_AGAIN;
		ck_kept_schedule(m, e);
	} else if (ck_newest_live(m, e)) {
		commit(m, e);
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
		inspected_kept(m, e, condition);
	ck_event_end(m);
}

static void run_answered(struct ck_machine *m, struct ck_entry *e, const char *refusal)
{
	if (e->row.state != CK_STATE_COMMITTING)
		return; /* in use: told afterwards, and its answer is only noted (K22) */
	if (refusal) {
		ck_note_entry(m, e, CK_WHAT_REFUSED, 0, refusal);
		CK_FOR_TURNS(t, ck_pod_of(e))
			if (t->row == e->row.id && t->state == CK_TURN_WAITING && t->joined && !t->drain)
				ck_turn_answer(m, t, -CK_EREFUSED, "%s", refusal);
		ck_evict(m, e, e->row.flags & CK_ENTRY_ABANDONED ? e->row.reason : CK_REASON_REFUSED);
	} else if (CK_GUARD(COMMIT_ABANDONED, e->row.flags & CK_ENTRY_ABANDONED)) {
		ck_evict(m, e, e->row.reason);
	} else if (e->dead) {
		ck_evict(m, e, CK_REASON_DEAD);
	} else {
		committed(m, e, false);
	}
}

void ck_machine_hook_done(struct ck_machine *m, uint64_t row, enum ck_hook_event event, const char *refusal)
{
	struct ck_entry *e = ck_machine_entry(m, row);
	unsigned want = event == CK_HOOK_RUN ? CK_WANT_RUN : event == CK_HOOK_STOP ? CK_WANT_STOP : CK_WANT_REMOVE;
	if (!e || !(e->outstanding & want))
		return;
	ck_event_begin(m);
	e->outstanding &= ~want;
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
		ck_machine_hook_done(m, e->row.id, CK_HOOK_RUN, "out of memory");
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

/* ---- what the host saw ----------------------------------------------------------------------------------------------------------- */

int ck_machine_forget(struct ck_machine *m, enum ck_kind kind, const char *id)
{
	struct ck_entry *e = ck_machine_object(m, kind, id);
	if (!e || e->row.state != CK_STATE_COMMITTED) {
		if (kind == CK_SANDBOX)
			ck_sandbox_stopped(m, id, true);
		return -CK_ENOTFOUND;
	}
	ck_event_begin(m);
	if (kind == CK_SANDBOX) {
		ck_sandbox_stopped(m, id, true);
		for (struct ck_entry *c = ck_sandbox_containers(m, id), *next; c; c = next) {
			next = c->link[CK_BY_SANDBOX].next;
			if (c->row.state == CK_STATE_COMMITTED)
				ck_entry_drop(m, c);
		}
	}
	ck_entry_drop(m, e);
	ck_event_end(m);
	return 0;
}

int ck_machine_seen(struct ck_machine *m, enum ck_kind kind, const char *id, enum ck_condition condition)
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
		snprintf(ret_text, size, "refused: only an entry that is being evicted can be released; evict it first");
		return -CK_ESTATE;
	}
	ck_event_begin(m);
	if (release) {
		ck_note_entry(m, e, CK_WHAT_RELEASED, 0, NULL);
		ck_evict_confirmed(m, e);
		snprintf(ret_text, size, "released without confirmation; the resource may still exist");
	} else if (e->row.state == CK_STATE_EVICTING) {
		ck_evict_hurry(m, e);
		snprintf(ret_text, size, "already being evicted; trying again now");
	} else {
		ck_abandon(m, e, CK_REASON_ADMIN);
		snprintf(ret_text, size, e->row.state == CK_STATE_EVICTING ? "evicting" : "abandoned; evicted when its creation or its hooks end");
	}
	ck_event_end(m);
	return 0;
}

/* ---- time --------------------------------------------------------------------------------------------------------------------- */

void ck_machine_clock(struct ck_machine *m, uint64_t now)
{
	if (now > m->now)
		m->now = now;
}

uint64_t ck_machine_due(const struct ck_machine *m)
{
	return ck_timers_due(&m->timers);
}

static void entry_expired(struct ck_machine *m, struct ck_entry *e)
{
	switch (e->row.state) {
	case CK_STATE_CREATING:
		ck_lost_expired(m, e);
		break;
	case CK_STATE_KEPT:
		if (e->outstanding & CK_WANT_INSPECT) { /* never answered */
			e->outstanding &= ~(unsigned)CK_WANT_INSPECT;
			inspected_kept(m, e, CK_CONDITION_UNKNOWN);
		} else if (CK_GUARD(TTL_RESTS, ck_awaited(m, e)))
			ck_touch(m, ck_pod_of(e)); /* K6: ask again */
		else
			ck_evict(m, e, CK_REASON_TTL);
		break;
	case CK_STATE_EVICTING:
		ck_evict_expired(m, e);
		break;
	case CK_STATE_GONE:
		ck_gone_expired(m, e);
		break;
	default:
		break;
	}
}

#define TIMER_OWNER(timer, type) ((type *)(void *)((char *)(timer) - offsetof(type, timer)))

void ck_machine_expire(struct ck_machine *m)
{
	struct ck_timer *timer;
	ck_event_begin(m);
	while ((timer = ck_timers_pop(&m->timers, m->now))) {
		if (timer->of == CK_TIMER_TURN)
			ck_turn_expired(m, TIMER_OWNER(timer, struct ck_mturn));
		else if (timer->of == CK_TIMER_ENTRY)
			entry_expired(m, TIMER_OWNER(timer, struct ck_entry));
		else
			ck_list_expired(m, (enum ck_kind)(TIMER_OWNER(timer, struct ck_list) - m->lists));
	}
	ck_event_end(m);
}

/* ---- the end of a round ---------------------------------------------------------------------------------------------------------- */

struct ck_entry *ck_machine_dirty(struct ck_machine *m)
{
	return m->dirty;
}

const struct ck_note *ck_machine_notes(struct ck_machine *m, size_t *ret_n)
{
	*ret_n = m->notes_n;
	return m->notes;
}

/* K32: the commit of an entry whose earlier row is on disk could not be written: it is KEPT, and nobody was answered */
static void uncommit(struct ck_machine *m, struct ck_entry *e, const char *why)
{
	for (struct ck_mturn *t = m->answered; t; t = t->answered_next) {
		if (t->row != e->row.id || t->outcome != CK_HAND_BACK)
			continue;
		ck_made_unref(t->made);
		t->made = NULL;
		e->unanswered--;
		t->outcome = -CK_EUNAVAILABLE;
		ck_fail(&t->err, CK_EUNAVAILABLE, "the result exists, but handing it over cannot be recorded: %s", why);
	}
	if (e->wants & CK_WANT_RUN) {
		ck_unwant(m, e, CK_WANT_RUN);
		e->row.flags &= ~(unsigned)CK_ENTRY_TOLD;
		free(e->row.told);
		e->row.told = NULL;
		m->ops.released(m->user, e);
	}
	e->row.state = CK_STATE_KEPT;
	e->row.changed = e->row.interest = m->now;
	ck_kept_schedule(m, e);
}

void ck_machine_settle(struct ck_machine *m, bool written, const char *why)
{
	m->notes_n = 0;
	if (!written)
		m->counters.write_failures++;
	for (struct ck_entry *e = m->dirty, *next; e; e = next) {
		next = e->dirty_next;
		if (written) {
			QUEUE_DEL(m->dirty, m->dirty_last, e, dirty_prev, dirty_next);
			e->is_dirty = false;
			e->row.flags &= ~(unsigned)CK_ENTRY_VOLATILE;
			e->written = e->row.state;
			e->written_flags = e->row.flags;
			if (e->detached)
				ck_entry_free(m, e);
			continue;
		}
		e->row.flags |= CK_ENTRY_VOLATILE;
		bool commits = (e->row.state == CK_STATE_COMMITTING || e->row.state == CK_STATE_COMMITTED) && e->written && e->written != e->row.state &&
			       e->written != CK_STATE_EVICTING;
		if (CK_GUARD(DURABLE_FIRST, commits))
			uncommit(m, e, why);
		if (e->detached && !e->written) { /* it came and went without the database */
			QUEUE_DEL(m->dirty, m->dirty_last, e, dirty_prev, dirty_next);
			e->is_dirty = false;
			ck_entry_free(m, e);
		}
	}
}

void ck_machine_all_dirty(struct ck_machine *m)
{
	for (struct ck_entry *e = m->by_row; e; e = e->by_row.next) {
		e->written = 0;
		ck_dirty(m, e);
	}
}

uint64_t ck_machine_seq(const struct ck_machine *m)
{
	return m->seq;
}

struct ck_counters *ck_machine_counters(struct ck_machine *m)
{
	return &m->counters;
}

bool ck_machine_hidden(const struct ck_entry *e)
{
	return e->row.state != CK_STATE_COMMITTED;
}

/* ---- views: calls that began before (K21) ------------------------------------------------------------------------------------------ */

void ck_machine_view_opened(struct ck_machine *m, uint64_t *ret_seq)
{
	*ret_seq = ++m->seq;
	if (m->views_n == m->views_room) {
		size_t room = m->views_room ? 2 * m->views_room : 16;
		uint64_t *views = ck_realloc(m->views, room * sizeof(*views));
		if (!views)
			return; /* the tombstones' minute must do for this one */
		m->views = views;
		m->views_room = room;
	}
	m->views[m->views_n++] = *ret_seq;
}

void ck_machine_view_closed(struct ck_machine *m, uint64_t seq)
{
	for (size_t i = 0; i < m->views_n; i++) {
		if (m->views[i] != seq)
			continue;
		m->views[i] = m->views[--m->views_n];
		return;
	}
}

/* ---- life of the machine ------------------------------------------------------------------------------------------------------------- */

int ck_machine_new(const struct ck_rules *rules, const struct ck_machine_ops *ops, void *user, uint64_t now, struct ck_machine **ret)
{
	struct ck_machine *m = CK_NEW(struct ck_machine);
	if (!m || ck_timers_reserve(&m->timers, CK_CONTAINER + 1) < 0) {
		free(m);
		return -CK_ENOMEM;
	}
	m->rules = *rules;
	m->ops = *ops;
	m->user = user;
	m->now = m->opened = now;
	m->timed = CK_CONTAINER + 1;
	for (int kind = CK_SANDBOX; kind <= CK_CONTAINER; kind++) {
		struct ck_list *list = &m->lists[kind];
		list->timer.of = CK_TIMER_LIST;
		list->done = rules->skip_first_list || !rules->can_list;
		list->wanted = !list->done;
		list->pause = CK_LIST_AGAIN_MIN;
	}
	*ret = m;
	return 0;
}

void ck_machine_free(struct ck_machine *m)
{
	if (!m)
		return;
	struct ck_entry *e, *next;
	HASH_ITER(by_row, m->by_row, e, next)
		ck_entry_free(m, e);
	ck_timers_fini(&m->timers);
	free(m->notes);
	free(m->views);
	free(m);
}

bool ck_machine_check(const struct ck_machine *m, char *why, size_t size)
{
	unsigned slots = 0;
	for (const struct ck_entry *e = m->by_row; e; e = e->by_row.next) {
		slots += e->slot;
		const char *wrong = NULL;
		if (e->detached)
			continue;
		if (e->slot && e->row.state != CK_STATE_EVICTING)
			wrong = "holds a slot without being evicted";
		else if (e->row.state != CK_STATE_CREATING && e->row.state != CK_STATE_EVICTING && !e->row.made && e->row.origin == CK_ORIGIN_CACHE)
			wrong = "has no result";
		else if (e->creator && e->row.state != CK_STATE_CREATING && e->row.state != CK_STATE_EVICTING)
			wrong = "is still being made";
		else if (e->row.flags & CK_ENTRY_LOST && e->row.state != CK_STATE_CREATING)
			wrong = "is lost but not being made";
		else if (e->row.state == CK_STATE_COMMITTED && e->row.flags & CK_ENTRY_ABANDONED)
			wrong = "is committed and abandoned";
		if (wrong) {
			snprintf(why, size, "entry %llu (%s) %s", (unsigned long long)e->row.id, ck_state_name(e->row.state), wrong);
			return false;
		}
	}
	if (slots != m->destroying) {
		snprintf(why, size, "%u slots held, %u counted", slots, m->destroying);
		return false;
	}
	return true;
}
