/* SPDX-License-Identifier: Apache-2.0 */
/* What must follow from the events of callers: they ask, they go, they report how a creation
 * ended. */
#include <string.h>

#include "src/base/error.h"
#include "tests/model/oracle-int.h"

/* ---- a request comes (the first three lines of the table) ------------------------------------ */

void all_unchanged(struct world *w, const char *rule, bool phases)
{
	FOR_SHADOWS (s, w) {
		struct ck_entry *e = entry_of(w, s);
		unsigned differ = e ? e->row.flags ^ s->flags : 0;
		/* what is absent ends at once when there is room for it */
		if (!phases && s->state == CK_STATE_EVICTING && s->reason == CK_REASON_ABSENT)
			continue;
		MUST(w, unchanged(s, e) && !differ && (!phases || e->row.phase == s->phase),
		     "%s: entry %lu was %s and changed", rule, row_of(w, s),
		     ck_state_name(s->state));
	}
	FOR_ENTRIES (e, w)
		MUST(w, w->shadows[e->row.id].alive, "%s: a new entry", rule);
}

/* what another attempt, or another uid of the name, does to existing entries (K9) */
static void moves_on(struct world *w, const struct caller *c)
{
	FOR_SHADOWS (s, w) {
		enum column col = column_of(s);
		bool slot = w->keys[s->key].slot == w->keys[c->key].slot;
		bool uid = c->req.kind == CK_SANDBOX && s->kind == CK_SANDBOX && !slot &&
			   w->keys[s->key].pod == w->keys[c->key].pod;
		struct ck_entry *e = entry_of(w, s);
		unsigned long row = row_of(w, s);

		if (s->key == c->key || col == COL_NONE || (!slot && !uid))
			continue;
		if (col == COL_EVICTING && !s->id[0] && !w->config.rules.can_list)
			continue; /* without an id and lists it may be gone by now */
		if (col == COL_COMMITTED || col == COL_ENDED || col == COL_EVICTING)
			MUST(w, unchanged(s, e),
			     "K9: entry %lu was %s and is touched by another attempt", row,
			     ck_state_name(s->state));
		else
			MUST(w, given_up(s, e),
			     "K9: entry %lu is %s, and another attempt or uid did not abandon it",
			     row, ck_state_name(s->state));
		if (col != COL_COMMITTED && col != COL_ENDED && col != COL_EVICTING)
			FOR_CALLERS (other, w)
				if (other != c && other->key == s->key && other->turn.row == row &&
				    shares(other))
					oracle_fail(w,
						    "K9: caller %d still waits for entry %lu, "
						    "which was abandoned",
						    (int)(other - w->callers), row);
		cell(w, slot ? CELL_OTHER_ATTEMPT : CELL_OTHER_UID, col);
	}
}

/* is another object of its key somebody else's? It may be of another pod if nobody knows the
 * sandbox. */
static bool has_twin(struct world *w, const struct shadow *s)
{
	FOR_SHADOWS (other, w)
		if (other != s && other->state == CK_STATE_COMMITTED &&
		    ck_key_same(w->keys[other->key].key, w->keys[s->key].key))
			return true;
	return false;
}

static void same_request(struct world *w, struct caller *c, struct shadow *s, int r)
{
	enum column col = column_of(s);
	struct ck_entry *e = entry_of(w, s);
	unsigned long row = row_of(w, s);
	/* held: until a duplicate is gone (K26), or a removal has ended (K5) */
	bool held = removal_in_flight(w, s), twin = has_twin(w, s);

	FOR_SHADOWS (other, w)
		held = held || (other != s && other->key == s->key &&
				other->state == CK_STATE_EVICTING);
	s->interest = w->now;
	switch (col) {
	case COL_CREATING:
	case COL_UNKNOWN:
		if (r == CK_CREATE && col == COL_UNKNOWN)
			MUST(w,
			     e && e->row.flags & CK_ENTRY_RESENT && !(s->flags & CK_ENTRY_RESENT),
			     "K8: entry %lu is sent again", row);
		else
			MUST(w, r == CK_WAIT && unchanged(s, e) && c->turn.row == row,
			     "K1: the same request did not join entry %lu", row);
		break;
	case COL_KEPT:
		if (w->config.rules.can_inspect || held) {
			MUST(w, r == CK_WAIT && unchanged(s, e),
			     "K6: the same request was answered %d by a kept entry", r);
			MUST(w,
			     held || (e && (asking(e, CK_WANT_INSPECT) ||
						 e->in.kept.ask_at > w->now)),
			     "K6: nobody asks whether entry %lu lives", row);
		} else if (w->plugin_absent && w->config.rules.hooks &&
			   !(s->flags & CK_ENTRY_TOLD)) {
			MUST(w,
			     r == -CK_EUNAVAILABLE && unchanged(s, e) &&
				     strstr(c->turn.decision.err.text, "10-required"),
			     "H4: a required plugin is absent, and the answer is %d, \"%s\"", r,
			     c->turn.decision.err.text);
			cell(w, CELL_PLUGIN, COL_KEPT);
		} else {
			MUST(w,
			     (r == CK_WAIT || r == CK_HAND_BACK) && e &&
				     (e->row.state == CK_STATE_COMMITTING ||
				      e->row.state == CK_STATE_COMMITTED),
			     "K6: a kept entry is not handed back, but %d", r);
		}
		break;
	case COL_COMMITTING:
		MUST(w, r == CK_WAIT && unchanged(s, e),
		     "K1: the same request was answered %d while hooks run", r);
		break;
	case COL_ENDED:
		MUST(w, r == CK_WAIT || r == CK_CREATE, "K5: what has ended was answered %d", r);
		break;
	case COL_COMMITTED:
		if (s->origin == CK_ORIGIN_RUNTIME)
			MUST(w, r == -CK_ECONFLICT, "K27: an imported entry answered %d", r);
		else if (destroy_in_flight(w, s))
			MUST(w, r != CK_HAND_BACK,
			     "K5: entry %lu is handed back, and is being destroyed", row);
		else if (twin || end_in_flight(w, s))
			return; /* somebody else's of the same key, or its end is under way */
		else if (s->running_seen)
			MUST(w, r == -CK_ECONFLICT || s->running_hidden,
			     "K5: a running container answered %d", r);
		else
			MUST(w,
			     r == CK_HAND_BACK && c->turn.decision.result &&
				     !strcmp(c->turn.decision.result->id, s->id) && e &&
				     (!e->wants || s->found_used || s->start),
			     "K5: committed, and answered %d", r);
		break;
	case COL_EVICTING:
		if (!s->id[0] && !w->config.rules.can_list)
			return; /* without an id and lists it may be gone by now */
		MUST(w, (r == CK_WAIT || (twin && r == -CK_ECONFLICT)) && unchanged(s, e),
		     "K23: entry %lu is EVICTING and answered %d", row, r);
		break;
	default:
		return;
	}
	cell(w, CELL_SAME, col);
}

static void other_request(struct world *w, struct shadow *s, int r)
{
	enum column col = column_of(s);
	struct ck_entry *e = entry_of(w, s);
	unsigned long row = row_of(w, s);

	switch (col) {
	case COL_CREATING:
	case COL_UNKNOWN:
		MUST(w, r == CK_WAIT && unchanged(s, e),
		     "K11: another fingerprint, entry %lu being made: answered %d", row, r);
		break;
	case COL_KEPT:
		MUST(w,
		     (r == CK_WAIT || (has_twin(w, s) && r == -CK_ECONFLICT)) && e &&
			     (e->row.state == CK_STATE_EVICTING || asking(e, CK_WANT_INSPECT)),
		     "K11: another fingerprint, entry %lu kept: answered %d", row, r);
		break;
	case COL_COMMITTING:
		MUST(w, r == CK_WAIT && given_up(s, e),
		     "K13: another fingerprint, hooks of entry %lu run: answered %d", row, r);
		break;
	case COL_ENDED:
		MUST(w, r == CK_WAIT || r == CK_CREATE, "K5: what has ended was answered %d", r);
		break;
	case COL_COMMITTED:
		MUST(w, r == -CK_ECONFLICT || end_in_flight(w, s),
		     "K11: another fingerprint, entry %lu committed: answered %d", row, r);
		break;
	case COL_EVICTING:
		if (!s->id[0] && !w->config.rules.can_list)
			return;
		MUST(w, (r == CK_WAIT || (has_twin(w, s) && r == -CK_ECONFLICT)) && unchanged(s, e),
		     "K23: entry %lu is EVICTING and answered %d", row, r);
		break;
	default:
		return;
	}
	cell(w, CELL_OTHER_FP, col);
}

bool uid_has_another_name(struct world *w, const struct caller *c)
{
	const struct ck_key *key = w->keys[c->key].key;
	FOR_SHADOWS (s, w) {
		const struct ck_key *other = w->keys[s->key].key;
		if (!strcmp(other->pod_uid, key->pod_uid) &&
		    strcmp(other->pod_name, key->pod_name) != 0)
			return true;
	}
	FOR_CALLERS (other, w) {
		const struct ck_key *k = w->keys[other->key].key;
		if (other != c && !strcmp(k->pod_uid, key->pod_uid) &&
		    strcmp(k->pod_name, key->pod_name) != 0)
			return true;
	}
	return false;
}

/* one sandbox has one pod: is this entry of another pod than the caller's? */
static bool of_another_pod(struct world *w, const struct caller *c, const struct shadow *s)
{
	const struct ck_key *key = w->keys[c->key].key, *other = w->keys[s->key].key;
	if (s->state == CK_STATE_GONE || s->state == CK_STATE_ENDED || same_pod(key, other))
		return false;
	if (s->kind == CK_CONTAINER)
		return s->origin == CK_ORIGIN_CACHE && !strcmp(other->sandbox_id, key->sandbox_id);
	return s->id[0] && !strcmp(s->id, key->sandbox_id) && other->pod_name[0];
}

static bool sandbox_has_another_pod(struct world *w, const struct caller *c)
{
	FOR_SHADOWS (s, w)
		if (c->req.kind == CK_CONTAINER && of_another_pod(w, c, s))
			return true;
	return false;
}

void oracle_begun(struct world *w, struct caller *c, int r, bool expired)
{
	struct shadow *s = shadow_of_key(w, c->key);
	struct ck_entry *e = s ? entry_of(w, s) : NULL;
	struct object *in = c->req.kind == CK_CONTAINER ? world_object(w, c->req.in) : NULL;

	if (expired) {
		MUST(w, r == -CK_EDEADLINE, "K9: a request past its deadline was answered %d", r);
		all_unchanged(w, "K9", true);
		return;
	}
	if (uid_has_another_name(w, c)) {
		bool named = false; /* by an entry that is not on its way out */
		FOR_SHADOWS (other, w)
			named = named || (other->state != CK_STATE_GONE &&
					  other->state != CK_STATE_EVICTING &&
					  other->state != CK_STATE_ENDED &&
					  !strcmp(w->keys[other->key].key->pod_uid,
						  w->keys[c->key].key->pod_uid) &&
					  strcmp(w->keys[other->key].key->pod_name,
						 w->keys[c->key].key->pod_name) != 0);
		MUST(w, !named || r == -CK_EINVAL, "K9: one uid with two names was answered %d", r);
		return;
	}
	if (sandbox_has_another_pod(w, c)) {
		MUST(w, r == -CK_EINVAL, "K9: one sandbox with two pods was answered %d", r);
		all_unchanged(w, "K9", true);
		return;
	}
	MUST(w, r != -CK_EINVAL && r != -CK_EDEADLINE, "K9: a request was answered %d", r);
	struct shadow *sandbox =
		in && in->kind == CK_SANDBOX && world_serving(w) ? shadow_of_object(w, in) : NULL;
	if (sandbox && in->stopping && sandbox->state == CK_STATE_ENDED)
		MUST(w, r == -CK_EPRECONDITION,
		     "K16: a container in a stopped sandbox was answered %d", r);
	if (r == -CK_EPRECONDITION) {
		MUST(w,
		     in && (in->stopping || in->condition != CK_CONDITION_READY ||
			    !shadow_of_object(w, in) ||
			    !ck_state_visible(shadow_of_object(w, in)->state)),
		     "K16: refused, and its sandbox is well");
		return;
	}
	if (!world_serving(w))
		MUST(w, r == CK_WAIT,
		     "K24: nothing is known of the runtime yet, and a request was answered %d", r);
	if (!world_serving(w))
		return;
	bool in_margin = w->now >= c->margin_at;
	if (in_margin && !(s && (s->state == CK_STATE_KEPT || s->state == CK_STATE_COMMITTED)))
		return; /* there is nothing that could be handed to it */
	if (!in_margin)
		moves_on(w, c);
	if (!s || !e || (r == -CK_ECONFLICT && oracle_conflicts_beside(w, c)))
		return;
	enum ck_relation relation = world_compare(w, e, &c->fp);
	if (relation == CK_RELATION_NEEDS_DIGESTS) {
		MUST(w, r == CK_WAIT, "K2: nobody can tell whether it is the request, answered %d",
		     r);
		return;
	}
	if (s->origin == CK_ORIGIN_RUNTIME)
		relation = CK_RELATION_SAME;    /* unknown, and the answer does not depend on it */
	if (relation == CK_RELATION_COSMETIC) {
		if (ck_state_visible(s->state) || s->state == CK_STATE_COMMITTING)
			return; /* the rules say more only about kept entries */
		if (w->config.rules.on_annotation_change == CK_ANNOTATION_HAND_BACK) /* K12 */
			relation = CK_RELATION_SAME;
	}
	if (relation == CK_RELATION_SAME)
		same_request(w, c, s, r);
	else if (!in_margin)
		other_request(w, s, r);
}

/* ---- callers go ------------------------------------------------------------------------------ */

void oracle_left(struct world *w, struct caller *c)
{
	struct shadow *s =
		c->making_row && c->making ? &w->shadows[c->making_row] : shadow_of_key(w, c->key);

	if (c->drain || w->in_round > 1 || (c->heard != CK_WAIT && c->heard != CK_CREATE))
		return;
	MUST(w, !ck_turn_waits(&c->turn), "caller %d has left and its turn still waits",
	     (int)(c - w->callers));
	if (!s || !s->alive || !world_serving(w) || ck_state_visible(s->state))
		return;
	FOR_CALLERS (other, w) /* if the newest caller now differs, it decides (K11) */
		if (other != c && other->key == s->key && undecided(other) && entry_of(w, s) &&
		    world_compare(w, entry_of(w, s), &other->fp) != CK_RELATION_SAME)
			return;
	MUST(w, unchanged(s, entry_of(w, s)),
	     "the table: entry %lu was %s and changed because a caller left", row_of(w, s),
	     ck_state_name(s->state));
	cell(w, CELL_LEAVE, column_of(s));
}

void oracle_dropped(struct world *w, struct caller *c)
{
	if (c->heard == CK_HAND_BACK && !c->reported && w->shadows[c->row].handed)
		w->shadows[c->row].handed--;
	struct shadow *s = c->making ? &w->shadows[c->making_row] : NULL;
	if (s && (s->state == CK_STATE_CREATING || s->state == CK_STATE_UNKNOWN ||
		  s->phase == CK_PHASE_FIND))
		/* it is lost, even if its deadline made it lost before */
		s->moved_event = w->event;
}

void oracle_unheard(struct world *w, struct caller *c)
{
	struct shadow *s = &w->shadows[c->making_row];
	struct ck_entry *e = entry_of(w, s);

	s->failing = true;
	MUST(w, !e || e->row.state == CK_STATE_GONE,
	     "K8: nobody heard that he was to make entry %lu, and it is %s", row_of(w, s),
	     e ? ck_state_name(e->row.state) : "");
}

/* the kubelet removes it, or waits until it may (K5) */
static bool is_being_removed(const struct world *w, const char *id)
{
	for (int i = 0; i < WORLD_LABELS; i++) {
		const struct caller *c = &w->callers[i];
		if (c->used && c->drain && !strcmp(c->removal.id, id) &&
		    (c->removal.state == CK_REMOVAL_WAITING || c->removal.outcome == CK_DRAINED))
			return true;
	}
	return false;
}

void oracle_reported(struct world *w, struct caller *c, bool delivered)
{
	struct shadow *s = &w->shadows[c->row];
	struct ck_entry *e = ck_machine_entry(w->m, c->row);

	if (!s->alive)
		return;
	bool last = s->handed == 1;
	s->handed -= s->handed > 0;
	if (delivered || s->state != CK_STATE_COMMITTED || !e || w->in_round > 1 ||
	    s->life != w->life)
		return;
	struct object *in = world_object(w, c->req.in);
	bool well = !(s->flags & CK_ENTRY_DELIVERED) && !s->used && !s->running_seen &&
		    !(in && in->stopping) && !is_being_removed(w, s->id);
	if (s->kind == CK_SANDBOX)
		MUST(w, unchanged(s, e), "K7: a sandbox's answer was lost, and it is %s",
		     ck_state_name(e->row.state));
	else if (last && well)
		MUST(w, e->row.state == CK_STATE_KEPT,
		     "K7: a container's only answer was lost, and it is %s",
		     ck_state_name(e->row.state));
	cell(w, CELL_LEAVE, COL_COMMITTED);
}

void oracle_draining(struct world *w, struct caller *c, struct object *o, int r)
{
	(void)c;
	MUST(w, r == CK_WAIT || r == CK_DRAINED || r < 0, "K16: a removal was answered %d", r);
	if (o->kind == CK_SANDBOX)
		oracle_stopping(w, o, 0);
	if (r == CK_DRAINED)
		FOR_SHADOWS (s, w)
			if (in_sandbox(w, s, o->id))
				MUST(w,
				     !open_or_evicting(s->state) || !entry_of(w, s) ||
					     !open_or_evicting(entry_of(w, s)->row.state),
				     "K16: drained, and entry %lu of it is %s", row_of(w, s),
				     ck_state_name(s->state));
}

/* ---- a creation ends ------------------------------------------------------------------------- */

void oracle_finishing(struct world *w, struct caller *c)
{
	w->newest = newest_live(w, c->key);
	w->taker = somebody_takes(w, c->key, c);
}

static void finished_well(struct world *w, struct caller *c, struct shadow *s, int r)
{
	struct ck_entry *e = entry_of(w, s);
	unsigned long row = row_of(w, s);
	struct caller *newest = w->newest >= 0 ? &w->callers[w->newest] : NULL;
	enum ck_relation relation =
		newest && e ? world_compare(w, e, &newest->fp) : CK_RELATION_SAME;
	bool offer = w->config.rules.hand_back == CK_OFFER && s->kind == CK_SANDBOX && !newest;
	bool here = c->here && w->now < c->margin_at;
	enum ck_state now = e ? e->row.state : CK_STATE_GONE;

	if (s->dead_seen) {
		MUST(w, now == CK_STATE_EVICTING, "K2: entry %lu was dead, is finished, and is %s",
		     row, ck_state_name(now));
		return;
	}
	FOR_SHADOWS (other, w)
		if (other != s && other->key == s->key && other->state == CK_STATE_EVICTING)
			return; /* it waits for its duplicate to go (K26) */
	bool absent = w->plugin_absent && w->config.rules.hooks;
	if (!newest && !offer && w->taker && (now != CK_STATE_KEPT || absent)) {
		/* kept, and handed at once to a waiter that had reached its margin */
		MUST(w,
		     absent ? now == CK_STATE_KEPT && (r == CK_KEPT || r == -CK_EUNAVAILABLE)
			    : (now == CK_STATE_COMMITTING || now == CK_STATE_COMMITTED) &&
				      r == CK_KEPT,
		     "K2, K6: entry %lu is kept, waited for, and is %s, answered %d", row,
		     ck_state_name(now), r);
	} else if (!newest && !offer) {
		MUST(w, now == CK_STATE_KEPT && r == CK_KEPT,
		     "K2: nobody waits for entry %lu, and it is %s, answered %d", row,
		     ck_state_name(now), r);
	} else if (offer && now == CK_STATE_KEPT && !absent) {
		MUST(w, w->rows_n > CK_OFFERS_AT_ONCE && r == CK_KEPT,
		     "K2: entry %lu is offered, and it is KEPT, answered %d", row, r);
	} else if (relation == CK_RELATION_SAME) {
		if (offer && now != CK_STATE_EVICTING && !absent)
			oracle_offered(w, row);
		/* EVICTING: for an older request that differs and is the newest now */
		if (w->plugin_absent && w->config.rules.hooks)
			MUST(w,
			     (now == CK_STATE_KEPT || now == CK_STATE_EVICTING) &&
				     (!here || r == -CK_EUNAVAILABLE),
			     "H4: entry %lu is %s, answered %d", row, ck_state_name(now), r);
		else
			MUST(w,
			     (now == CK_STATE_COMMITTING || now == CK_STATE_COMMITTED) &&
				     (here ? r == CK_WAIT || r == CK_HAND_BACK : r == CK_KEPT),
			     "K2, K3: entry %lu is finished and is %s, answered %d", row,
			     ck_state_name(now), r);
	} else if (relation == CK_RELATION_NEEDS_DIGESTS) {
		MUST(w, now == CK_STATE_KEPT,
		     "K2: nobody can tell whether entry %lu was requested, and it is %s", row,
		     ck_state_name(now));
	} else if (relation != CK_RELATION_COSMETIC) {
		MUST(w, now == CK_STATE_EVICTING,
		     "K11: the newest request differs from entry %lu, which is %s", row,
		     ck_state_name(now));
	}
}

void oracle_finished(struct world *w, struct caller *c, int r)
{
	struct shadow *s = &w->shadows[c->making_row];
	enum column col = making_column(s);
	struct ck_entry *e = entry_of(w, s);

	if (col == COL_CREATING || col == COL_UNKNOWN) {
		finished_well(w, c, s, r);
		cell(w, CELL_FINISH, col);
	} else if (col == COL_EVICTING && e && e->row.state == CK_STATE_EVICTING) {
		MUST(w, e->row.result && e->row.phase >= CK_PHASE_HOOKS,
		     "the table: entry %lu is EVICTING, and its id came late and was not stored",
		     row_of(w, s));
		MUST(w, r == CK_KEPT || r < 0, "K2: the end of a creation that was given up: %d",
		     r);
		cell(w, CELL_FINISH, col);
	} else {
		MUST(w, r < 0 || r == CK_HAND_BACK || r == CK_WAIT || r == CK_KEPT,
		     "a late end was answered %d", r);
	}
}

void oracle_failed(struct world *w, struct caller *c, const struct creation *creation, int grpc,
		   int r)
{
	struct shadow *s = &w->shadows[c->making_row];
	enum column col = making_column(s);
	struct ck_entry *e = entry_of(w, s);
	unsigned long row = row_of(w, s);

	(void)r;
	(void)creation;
	bool making =
		col == COL_UNKNOWN || col == COL_CREATING || (col == COL_EVICTING && !s->id[0]);
	bool unclear = grpc == CK_GRPC_ALREADY_EXISTS || grpc == CK_GRPC_UNKNOWN ||
		       grpc == CK_GRPC_FAILED_PRECONDITION || grpc == CK_GRPC_CANCELLED ||
		       grpc == CK_GRPC_DEADLINE_EXCEEDED || grpc == CK_GRPC_UNAVAILABLE;
	if (making && s->flags & CK_ENTRY_RESENT && unclear) {
		MUST(w, e && (e->row.state == CK_STATE_UNKNOWN || col == COL_EVICTING),
		     "K8: a resend was told that the name is taken, and entry %lu is given up",
		     row);
		s->moved_event = w->event;
		return;
	}
	if (col == COL_CREATING || col == COL_UNKNOWN) {
		s->failing = true;
		MUST(w, !e || e->row.state == CK_STATE_GONE,
		     "K4: the creation of entry %lu failed, and it is %s", row,
		     e ? ck_state_name(e->row.state) : "");
		FOR_CALLERS (other, w) {
			if (other->turn.row == row && shares(other))
				oracle_fail(w,
					    "K4: caller %d still waits for a creation that failed",
					    (int)(other - w->callers));
			if (ck_turn_outcome(&other->turn) == -CK_EFAILED && other->turn.row == row)
				MUST(w,
				     other->turn.decision.status &&
					     other->turn.decision.status->grpc == grpc,
				     "K4: caller %d hears another status",
				     (int)(other - w->callers));
		}
		if (c->here && live(w, c))
			oracle_fail(w, "K4: the creation of caller %d failed, and it waits",
				    (int)(c - w->callers));
		cell(w, CELL_FAIL, col);
	} else if (col == COL_EVICTING) {
		if (!s->id[0]) {
			s->failing = true;
			MUST(w, !e || e->row.state == CK_STATE_GONE,
			     "K4: the creation of entry %lu, EVICTING, failed, and it stays", row);
		}
		cell(w, CELL_FAIL, col);
	}
}

void oracle_lost(struct world *w, struct caller *c)
{
	struct shadow *s = &w->shadows[c->making_row];
	enum column col = making_column(s);
	struct ck_entry *e = entry_of(w, s);
	unsigned long row = row_of(w, s);

	if (col == COL_CREATING || col == COL_UNKNOWN) {
		MUST(w, e && e->row.state == CK_STATE_UNKNOWN, "K8: entry %lu was lost and is %s",
		     row, e ? ck_state_name(e->row.state) : "gone");
		if (c->here && w->now < c->margin_at && e && e->row.state == CK_STATE_UNKNOWN)
			/* or its sandbox, which was found in use, has ended (K16) */
			MUST(w, undecided(c) || ck_turn_outcome(&c->turn) == -CK_EPRECONDITION,
			     "K8: the creation of caller %d is lost, and it does not wait on",
			     (int)(c - w->callers));
		cell(w, CELL_LOSE, col);
		s->moved_event = w->event; /* even if its deadline made it lost before */
	} else if (col == COL_EVICTING) {
		MUST(w, unchanged(s, e),
		     "the table: entry %lu was EVICTING, lost its creation, and is not", row);
		cell(w, CELL_LOSE, col);
		if (!s->id[0])
			s->moved_event = w->event;
	}
}
