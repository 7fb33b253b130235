/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of the cache, said a second time: not how they are kept, but what can be seen from
 * outside if they are kept. crikeep-rules(7) is the rule book. Each complaint begins with the rule
 * that is broken: its number, or "states" (the moves of an entry, which the book draws), or "the
 * table" (of states and events, in world.h).
 *
 * What the rules leave open is left open here as well. An event can do more than one thing: a
 * plugin refuses, and the request that waited is placed anew. Then only the part is judged that the
 * rules decide.
 *
 * This file has what is known of each entry, and its moves. oracle-round.c has what holds after
 * each round, and what a round may bring. oracle-turns.c and oracle-host.c have what must follow
 * from each event.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "tests/model/oracle-int.h"

void oracle_fail(struct world *w, const char *fmt, ...)
{
	va_list ap;

	if (w->failure[0])
		return;
	va_start(ap, fmt);
	vsnprintf(w->failure, sizeof(w->failure), fmt, ap);
	va_end(ap);
}

/* ---- asking ---------------------------------------------------------------------------------- */

enum column column_of(const struct shadow *s)
{
	switch (s->state) {
	case CK_STATE_CREATING:
		return COL_CREATING;
	case CK_STATE_UNKNOWN:
		return COL_UNKNOWN;
	case CK_STATE_ENDED:
		return COL_ENDED;
	case CK_STATE_KEPT:
		return COL_KEPT;
	case CK_STATE_COMMITTING:
		return COL_COMMITTING;
	case CK_STATE_COMMITTED:
		return COL_COMMITTED;
	case CK_STATE_EVICTING:
		return COL_EVICTING;
	default:
		return COL_NONE;
	}
}

/* For the end of a creation. One that was lost and asked for again is being made, but nobody knows
 * what became of the first (K8). */
enum column making_column(const struct shadow *s)
{
	enum column col = s->alive ? column_of(s) : COL_NONE;
	return col == COL_CREATING && s->flags & CK_ENTRY_RESENT ? COL_UNKNOWN : col;
}

unsigned long row_of(const struct world *w, const struct shadow *s)
{
	return (unsigned long)(s - w->shadows);
}

struct ck_entry *entry_of(struct world *w, const struct shadow *s)
{
	return ck_machine_entry(w->m, row_of(w, s));
}

/* the shadow that stands for a key: one that is not EVICTING comes first, one that has ended comes
 * last */
struct shadow *shadow_of_key(struct world *w, int key)
{
	struct shadow *best = NULL;
	int best_rank = 0;

	FOR_SHADOWS (s, w) {
		if (s->key != key || s->state == CK_STATE_GONE)
			continue;
		int rank = s->state == CK_STATE_EVICTING ? 1 : s->state == CK_STATE_ENDED ? 2 : 3;
		if (rank > best_rank) {
			best = s;
			best_rank = rank;
		}
	}
	return best;
}

bool undecided(const struct caller *c)
{
	return c->turn.state != CK_TURN_NEW && !ck_turn_decided(&c->turn);
}

/* it gets what becomes of the entry @turn.row */
bool shares(const struct caller *c)
{
	return undecided(c) && c->turn.state != CK_TURN_WAITING;
}

/* it waits, and has more than its margin left (K2) */
bool live(const struct world *w, const struct caller *c)
{
	return c->here && undecided(c) && w->now < c->margin_at;
}

/* it waits, and has time for a result that exists (K2, K6) */
bool takes(const struct world *w, const struct caller *c)
{
	return c->here && undecided(c) && (!c->deadline || w->now < c->deadline);
}

bool somebody_takes(const struct world *w, int key, const struct caller *but)
{
	for (const struct caller *c = w->callers; c < w->callers + WORLD_LABELS; c++)
		if (c != but && c->used && !c->drain && c->key == key && takes(w, c))
			return true;
	return false;
}

/* a caller whose deadline is short waits until then for a result that was kept (K6) */
uint64_t waits_until(const struct world *w, const struct caller *c)
{
	const struct shadow *s = &w->shadows[c->turn.row];
	bool asks = s->alive && s->was_kept && ck_state_open(s->state) &&
		    c->turn.state == CK_TURN_JOINED;
	bool is_short = c->deadline && c->deadline - c->began < 2 * CK_MARGIN_MIN;
	return asks && is_short && !c->turn.made ? c->deadline : c->margin_at;
}

int newest_live(struct world *w, int key)
{
	int newest = -1;
	FOR_CALLERS (c, w)
		if (c->key == key && live(w, c) &&
		    (newest < 0 || c->order > w->callers[newest].order))
			newest = (int)(c - w->callers);
	return newest;
}

bool somebody_waits(struct world *w, int key)
{
	FOR_CALLERS (c, w) /* it may wait for the entry, or for its name and ports */
		if (w->keys[c->key].pod == w->keys[key].pod && c->here && undecided(c))
			return true;
	return false;
}

bool asking(const struct ck_entry *e, unsigned want)
{
	return (e->wants | e->outstanding) & want;
}

bool open_or_evicting(enum ck_state state)
{
	return ck_state_open(state) || state == CK_STATE_EVICTING;
}

/* on its way out, as K9, K13, K16 and an administrator do with uncommitted entries */
bool given_up(const struct shadow *s, const struct ck_entry *e)
{
	enum column col = column_of(s);
	return col == COL_COMMITTED || col == COL_ENDED || col == COL_EVICTING || col == COL_NONE ||
	       !e || e->row.state == CK_STATE_EVICTING || e->row.state == CK_STATE_GONE;
}

bool unchanged(const struct shadow *s, const struct ck_entry *e)
{
	return e && e->row.state == s->state;
}

bool object_alive(const struct object *o)
{
	return o && o->condition != CK_CONDITION_ABSENT;
}

bool destroy_in_flight(struct world *w, const struct shadow *s)
{
	for (unsigned i = 0; i < w->jobs_n; i++)
		if (w->jobs[i].want == CK_WANT_DESTROY && w->jobs[i].row == row_of(w, s))
			return true;
	return false;
}

/* somebody removes it by its id, or is about to (K5) */
bool removal_in_flight(struct world *w, const struct shadow *s)
{
	for (unsigned i = 0; s->id[0] && i < WORLD_LABELS; i++) {
		const struct caller *c = &w->callers[i];
		if (c->used && c->drain && c->removal.id && !strcmp(c->removal.id, s->id) &&
		    (c->removal.state == CK_REMOVAL_WAITING || c->removal.outcome == CK_DRAINED))
			return true;
	}
	return false;
}

bool end_in_flight(struct world *w, const struct shadow *s)
{
	const struct object *o = world_object_of(w, s->id);
	return destroy_in_flight(w, s) || (o && o->stopping);
}

bool in_sandbox(struct world *w, const struct shadow *s, const char *id)
{
	return s->kind == CK_CONTAINER && !strcmp(w->keys[s->key].key->sandbox_id, id);
}

struct shadow *shadow_of_object(struct world *w, const struct object *o)
{
	FOR_SHADOWS (s, w)
		if (s->kind == o->kind && !strcmp(s->id, o->id) && s->state != CK_STATE_GONE)
			return s;
	return NULL;
}

bool oracle_shown(struct world *w, const struct object *o)
{
	struct ck_entry *e = ck_machine_object(w->m, o->kind, o->id);
	if (e)
		return !ck_machine_hidden(e);
	FOR_ENTRIES (f, w) /* by its key, before its id is known */
		if (open_or_evicting(f->row.state) && !f->row.result &&
		    ck_key_same(f->row.key, w->keys[o->key].key))
			return false;
	return true;
}

/* ours and not the kubelet's, so that it may be destroyed (K22) */
bool ours_uncommitted(struct world *w, const struct object *o)
{
	struct ck_entry *e = ck_machine_object(w->m, o->kind, o->id);
	if (e)
		return open_or_evicting(e->row.state) || e->row.state == CK_STATE_GONE;
	return !oracle_shown(w, o);
}

/* ---- moves ----------------------------------------------------------------------------------- */

/* the table of moves; it is repeated here on purpose */
static bool may_move(enum ck_state from, enum ck_state to)
{
	switch ((int)from) {
	case 0:
		return to == CK_STATE_CREATING || ck_state_visible(to) || to == CK_STATE_EVICTING;
	case CK_STATE_UNKNOWN:
		if (to == CK_STATE_CREATING)
			return true;
		/* fall through */
	case CK_STATE_CREATING:
		return to == CK_STATE_UNKNOWN || to == CK_STATE_COMMITTING || to == CK_STATE_KEPT ||
		       to == CK_STATE_EVICTING || to == CK_STATE_GONE ||
		       (to == CK_STATE_COMMITTED && from == CK_STATE_UNKNOWN);
	case CK_STATE_KEPT:
		return to == CK_STATE_COMMITTING || to == CK_STATE_COMMITTED ||
		       to == CK_STATE_EVICTING;
	case CK_STATE_COMMITTING:
		return to == CK_STATE_COMMITTED || to == CK_STATE_KEPT || to == CK_STATE_EVICTING;
	case CK_STATE_COMMITTED:
		return to == CK_STATE_KEPT || to == CK_STATE_ENDED || to == CK_STATE_GONE;
	case CK_STATE_ENDED:
		return to == CK_STATE_EVICTING || to == CK_STATE_GONE;
	case CK_STATE_EVICTING:
		return to == CK_STATE_COMMITTED || to == CK_STATE_GONE;
	default:
		return false;
	}
}

/* the machine forgets this entry: does the runtime still have or make something of it? */
bool still_exists(struct world *w, const struct shadow *s)
{
	uint64_t row = row_of(w, s);

	for (unsigned i = 0; i < w->objects_n; i++) {
		const struct object *o = &w->objects[i];
		if (!object_alive(o) || o->exempt)
			continue;
		if (s->id[0] ? !strcmp(o->id, s->id)
			     : o->row == row && !ck_machine_object(w->m, o->kind, o->id))
			return true;
	}
	for (unsigned i = 0; i < w->creations_n; i++)
		if (w->creations[i].row == row && w->creations[i].state == CREATION_RUNNING &&
		    !w->creations[i].reserved && !w->creations[i].exempt)
			return true;
	return false;
}

void exempt(struct world *w, const struct shadow *s)
{
	uint64_t row = row_of(w, s);
	for (unsigned i = 0; i < w->objects_n; i++)
		if (w->objects[i].row == row || (s->id[0] && !strcmp(w->objects[i].id, s->id)))
			w->objects[i].exempt = true;
	for (unsigned i = 0; i < w->creations_n; i++)
		if (w->creations[i].row == row)
			w->creations[i].exempt = true;
}

/* a lost creation is given up (K8) */
static void check_patience(struct world *w, const struct shadow *s, enum ck_state from)
{
	bool list = w->config.rules.can_list;
	uint64_t since = list ? s->absent_since : s->lost_at, until = list ? s->absent_at : w->now;
	uint64_t grace = w->config.rules.lost_grace;
	uint64_t absent = since && until > since ? until - since : 0;

	MUST(w, from == CK_STATE_UNKNOWN || s->phase == CK_PHASE_FIND,
	     "K8: entry %lu vanished while it was being made", row_of(w, s));
	MUST(w, absent >= grace, "K8: entry %lu was given up after %llu ms of absence",
	     row_of(w, s), (unsigned long long)(absent / MS));
	if (!s->waited && !somebody_waits(w, s->key))
		MUST(w, w->now - s->created >= w->config.rules.create_deadline,
		     "K8: entry %lu was given up before its create deadline, and nobody waited",
		     row_of(w, s));
}

/* the machine forgets the entry */
static void check_end(struct world *w, struct shadow *s, enum ck_state from)
{
	unsigned long row = row_of(w, s);
	struct ck_entry *e = entry_of(w, s); /* a tombstone, if anything */
	bool told = (e ? e->row.flags : s->flags) & CK_ENTRY_TOLD;

	switch (from) {
	case CK_STATE_CREATING:
	case CK_STATE_UNKNOWN:
		if (s->failing)
			return;
		check_patience(w, s, from);
		cell(w, CELL_EXPIRE, COL_UNKNOWN);
		exempt(w, s);
		return;
	case CK_STATE_ENDED: /* it may make room for a new creation of its key (K5) */
		exempt(w, s);
		return;
	case CK_STATE_COMMITTED:
		MUST(w, !still_exists(w, s), "K17: entry %lu is forgotten although %s exists", row,
		     s->id);
		exempt(w, s);
		return;
	case CK_STATE_EVICTING:
		if (s->failing)
			return;
		if (!s->released && still_exists(w, s)) {
			MUST(w, !s->id[0], "K17: entry %lu is gone although %s exists", row, s->id);
			/* without lists nobody could find it */
			if (!s->id[0] && w->config.rules.can_list && s->reason != CK_REASON_REBOOT)
				check_patience(w, s, from);
		}
		if (!s->released && told && w->config.told[0] && w->config.rules.hooks)
			MUST(w, s->removed_done,
			     "K20: entry %lu is gone, and nobody was told Remove", row);
		exempt(w, s);
		return;
	default:
		MUST(w, from == CK_STATE_GONE, "entry %lu vanished from state %s", row,
		     ck_state_name(from));
		return;
	}
}

static void check_ttl(struct world *w, const struct shadow *s)
{
	const struct ck_rules *rules = &w->config.rules;
	uint64_t grace = rules->ttl < CK_OPEN_GRACE ? rules->ttl : CK_OPEN_GRACE;
	unsigned long row = row_of(w, s);

	MUST(w, w->now + CK_TTL_SLACK >= s->interest + rules->ttl,
	     "K15: entry %lu expired %llu ms after the last interest", row,
	     (unsigned long long)((w->now - s->interest) / MS));
	FOR_CALLERS (c, w)
		if (c->key == s->key && takes(w, c) && w->now < waits_until(w, c) &&
		    world_compare(w, entry_of(w, s), &c->fp) == CK_RELATION_SAME)
			oracle_fail(w, "K15: entry %lu expired while caller %d waits for it", row,
				    (int)(c - w->callers));
	if (s->life != w->life) /* restored into this life, and has not moved in it */
		MUST(w, w->now + CK_TTL_SLACK >= w->opened + grace,
		     "K15: entry %lu expired just after a restart", row);
	cell(w, CELL_EXPIRE, COL_KEPT);
}

static void tombstone(struct world *w, const struct shadow *s)
{
	if (s->released || w->tombs_n == CK_COUNT(w->tombs))
		return;
	w->tombs[w->tombs_n].row = row_of(w, s);
	w->tombs[w->tombs_n].kind = s->kind;
	w->tombs[w->tombs_n].until = w->now + CK_TOMBSTONE;
	w->tombs[w->tombs_n].event = w->event;
	memcpy(w->tombs[w->tombs_n++].id, s->id, sizeof(s->id));
}

static void learn_id(struct world *w, struct shadow *s, const struct ck_row *row)
{
	if (s->id[0] || !row->result)
		return;
	snprintf(s->id, sizeof(s->id), "%s", row->result->id);
	struct object *o = world_object_of(w, s->id);
	/* a creation of ours has made it: who stopped it before had its id from nobody */
	if (o && row->origin == CK_ORIGIN_CACHE)
		o->stop_known = false;
}

/* what was given up because of a request says what that request asks for */
static void explained(struct world *w, const struct ck_history_event *event)
{
	const struct ck_row *row = &event->entry->row;

	if (event->to == CK_STATE_EVICTING)
		MUST(w,
		     event->detail[0] || (row->reason != CK_REASON_CHANGED &&
					  row->reason != CK_REASON_RELABELLED &&
					  row->reason != CK_REASON_ATTEMPT &&
					  row->reason != CK_REASON_POD_REPLACED),
		     "K11: entry %lu is evicted because of a request, and nobody says what it asks",
		     (unsigned long)row->id);
}

/* it became COMMITTED although no hook and no caller made it so (K22) */
static void found_in_use(struct world *w, struct shadow *s)
{
	const struct object *o = world_object_of(w, s->id);
	bool used = s->found_used || s->running_seen || s->holds_stranger || w->inspected_row ||
		    (o && o->ran);

	FOR_ENTRIES (e, w)
		used = used || (ck_state_visible(e->row.state) && s->id[0] &&
				!strcmp(e->row.key->sandbox_id, s->id));
	for (unsigned i = 0; i < w->objects_n; i++)
		used = used || (w->objects[i].ran && s->id[0] &&
				!strcmp(w->keys[w->objects[i].key].key->sandbox_id, s->id));
	MUST(w, used, "K22: entry %lu became COMMITTED and is not in use", row_of(w, s));
	FOR_SHADOWS (c, w)
		c->shortened = c->shortened || (s->id[0] && in_sandbox(w, c, s->id)); /* K18 */
	s->found_used = true;
	s->running_seen = s->running_seen || (o && o->ran);
	if (s->state == CK_STATE_EVICTING)
		cell(w, CELL_IN_USE, COL_EVICTING);
}

/* a sandbox that nobody waits for becomes visible */
void oracle_offered(struct world *w, unsigned long row)
{
	uint64_t *at = &w->offered[w->offers++ % CK_OFFERS_AT_ONCE];
	MUST(w, w->offers <= CK_OFFERS_AT_ONCE || w->now - *at >= CK_OFFER_GAP,
	     "K2: entry %lu is offered, and so were %u in the last %lu ms", row, CK_OFFERS_AT_ONCE,
	     (unsigned long)(CK_OFFER_GAP / CK_NS_PER_MS));
	*at = w->now;
}

static void moved(struct world *w, const struct ck_history_event *event)
{
	const struct ck_row *row = &event->entry->row;
	struct shadow *s = &w->shadows[row->id];
	enum ck_state from = s->state;
	unsigned long id = (unsigned long)row->id;
	bool named = s->id[0];

	if (!s->alive) {
		s->state = event->to;
		return; /* judged when it is seen for the first time */
	}
	MUST(w, from == event->from, "entry %lu moves from %s, but it was %s", id,
	     ck_state_name(event->from), ck_state_name(from));
	MUST(w, may_move(event->from, event->to), "states: entry %lu moves from %s to %s", id,
	     ck_state_name(event->from), ck_state_name(event->to));
	learn_id(w, s, row);
	switch (event->to) {
	case CK_STATE_UNKNOWN:
		s->lost_at = w->now;
		s->absent_since = 0;
		break;
	case CK_STATE_KEPT:
		s->was_kept = true;
		if (from == CK_STATE_COMMITTED)
			MUST(w,
			     s->kind == CK_CONTAINER && !(s->flags & CK_ENTRY_DELIVERED) &&
				     row->flags & CK_ENTRY_TOLD && !s->used,
			     "K7: entry %lu is taken back although it was delivered, ended, used "
			     "or a sandbox",
			     id);
		break;
	case CK_STATE_COMMITTING:
		FOR_SHADOWS (other, w)
			MUST(w,
			     other->key != s->key || other->state != CK_STATE_EVICTING ||
				     other->reason != CK_REASON_DUPLICATE,
			     "K26: entry %lu is handed back before its duplicate is gone", id);
		if (from != CK_STATE_KEPT || !w->config.rules.can_inspect ||
		    w->inspected_row == row->id || w->starting_row == row->id)
			break;
		MUST(w, w->config.rules.hand_back == CK_OFFER && s->kind == CK_SANDBOX,
		     "K6: entry %lu is handed back and nobody asked whether it is alive", id);
		oracle_offered(w, id);
		break;
	case CK_STATE_COMMITTED:
		if (from != CK_STATE_COMMITTING)
			found_in_use(w, s);
		s->committed = true;
		break;
	case CK_STATE_EVICTING:
		MUST(w, row->reason != CK_REASON_NONE || row->state != CK_STATE_EVICTING,
		     "entry %lu is evicted for no reason", id);
		if (ck_state_visible(from) && row->reason == CK_REASON_ABSENT)
			MUST(w, !object_alive(world_object_of(w, s->id)),
			     "K22: entry %lu is in use and there, and is evicted as absent", id);
		else if (ck_state_visible(from))
			MUST(w,
			     from == CK_STATE_ENDED && s->kind == CK_CONTAINER &&
				     event->entry->restored &&
				     !(s->flags & CK_ENTRY_DELIVERED) && !s->used &&
				     row->flags & CK_ENTRY_TOLD,
			     "K25: entry %lu has ended, and is evicted although somebody has it",
			     id);
		MUST(w,
		     row->reason != CK_REASON_RELABELLED ||
			     w->config.rules.on_annotation_change == CK_ANNOTATION_EVICT,
		     "K12: entry %lu is evicted for labels", id);
		if (row->reason == CK_REASON_TTL)
			check_ttl(w, s);
		s->checks = 0;
		s->shortened = false;
		s->fails = s->tried_event = 0;
		if (!ck_state_visible(from)) /* else they may have heard of it before its use */
			s->stop = s->stop_done = 0;
		break;
	case CK_STATE_GONE:
		s->state = event->to; /* so that it does not hide what is left of it */
		check_end(w, s, from);
		if (from == CK_STATE_EVICTING && s->id[0])
			tombstone(w, s);
		break;
	default:
		break;
	}
	s->state = event->to;
	/* nothing was done to what is in use, so older lists still tell how it is (K24) */
	if (event->to != CK_STATE_COMMITTED || from == CK_STATE_COMMITTING || !named)
		s->moved_event = w->event;
	s->life = w->life;
}

/* Is there another entry of its slot? One whose row only waits to be deleted counts no more. */
static void appeared(struct world *w, const struct ck_entry *e, struct shadow *s)
{
	enum ck_state state = e->row.state;
	unsigned long row = row_of(w, s);
	bool chosen = s->hooks_chosen; /* in the event that began it */

	memset(s, 0, sizeof(*s));
	s->alive = true;
	s->hooks_chosen = chosen;
	s->state = state;
	s->kind = e->row.key->kind;
	s->key = world_key(w, e->row.key);
	s->origin = e->row.origin;
	s->created = s->interest = w->now;
	s->moved_event = w->event;
	s->life = w->life;
	s->found_used = ck_state_visible(state); /* imported, or a twin in use */
	if (ck_state_visible(state))
		MUST(w, e->row.origin == CK_ORIGIN_RUNTIME,
		     "states: entry %lu begins as COMMITTED and was not imported", row);
	else if (state == CK_STATE_EVICTING)
		/* or it was given up in the event that began it */
		MUST(w, e->row.reason == CK_REASON_DUPLICATE || e->row.phase == CK_PHASE_CREATION,
		     "states: entry %lu begins as EVICTING and is no duplicate", row);
	else
		MUST(w, state == CK_STATE_CREATING, "states: entry %lu begins as %s", row,
		     ck_state_name(state));
}

static void look_at(struct world *w, const struct ck_entry *e)
{
	struct shadow *s = &w->shadows[e->row.id];
	unsigned long row = (unsigned long)e->row.id;

	if (!s->alive)
		appeared(w, e, s);
	MUST(w, s->state == e->row.state,
	     "entry %lu moved from %s to %s without a line in the history", row,
	     ck_state_name(s->state), ck_state_name(e->row.state));
	if (e->row.phase == CK_PHASE_FIND && s->phase != CK_PHASE_FIND) {
		s->lost_at = w->now;
		s->absent_since = 0;
		s->moved_event = w->event;
	}
	/* its id is known, or its hooks have ended: older lists do not count (K24) */
	if ((e->row.result && !s->id[0]) ||
	    (s->phase == CK_PHASE_HOOKS && e->row.phase != CK_PHASE_HOOKS))
		s->moved_event = w->event;
	learn_id(w, s, &e->row);
	if (s->id[0])
		MUST(w, e->row.result && !strcmp(e->row.result->id, s->id),
		     "entry %lu was %s and has another id now", row, s->id);
	/* a destroy, or the question before it, failed or had no answer in time */
	if (e->row.tries > s->fails) {
		s->failed_at = w->now;
		s->shortened = false;
		s->checks = 0; /* somebody may use it by the next try (K22) */
	}
	s->fails = e->row.tries;
	s->flags = e->row.flags;
	s->origin = e->row.origin;
	s->phase = e->row.phase;
	s->reason = e->row.reason;
	s->stamp = w->stamp;
	oracle_look_at_start(w, s, e);
}

/* a line of the history has a status if it tells of a failure */
static void has_status(struct world *w, const struct ck_history_event *event)
{
	MUST(w,
	     !event->grpc || event->what == CK_WHAT_FAILED ||
		     event->what == CK_WHAT_DESTROY_FAILED || event->what == CK_WHAT_START_FAILED,
	     "entry %lu: %s, with the status %d", (unsigned long)event->entry->row.id,
	     ck_what_text(event->what), event->grpc);
}

void oracle_observe(struct world *w)
{
	size_t n;
	const struct ck_history_event *history = ck_machine_history(w->m, &n);

	for (; w->history_seen < n; w->history_seen++) {
		has_status(w, &history[w->history_seen]);
		if (history[w->history_seen].what != CK_WHAT_MOVED)
			continue;
		explained(w, &history[w->history_seen]);
		moved(w, &history[w->history_seen]);
	}
	w->stamp++;
	FOR_ENTRIES (e, w)
		look_at(w, e);
	FOR_SHADOWS (s, w)
		if (s->stamp != w->stamp) {
			s->alive = false;
			check_end(w, s, s->state);
		}
}
