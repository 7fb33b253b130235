/* SPDX-License-Identifier: Apache-2.0 */
/* What must follow from the events of the host, the hooks and the clock. */
#include <string.h>

#include "src/base/error.h"
#include "tests/model/oracle-int.h"

/* ---- lists and questions --------------------------------------------------------------------- */

/* somebody had it (K22) */
static bool is_used(enum ck_condition condition)
{
	return condition == CK_CONDITION_RUNNING || condition == CK_CONDITION_RAN;
}

/* It runs (K5). The rules do not foresee that somebody starts it while it is hidden; then they
 * leave open whether it is handed back. */
static void running(struct shadow *s)
{
	s->running_seen = true;
	s->running_hidden = s->running_hidden || s->state == CK_STATE_COMMITTING;
}

/* what was there when the list began; its answer may have taken long */
static void not_listed(struct shadow *s, const struct job *job)
{
	if (!s->absent_since)
		s->absent_since = job->begun_at;
	if (s->absent_at < job->begun_at)
		s->absent_at = job->begun_at;
}

/* The kubelet uses it, as the runtime shows. If it was hidden, it is visible at once (K22). */
static void in_use(struct world *w, struct shadow *s)
{
	struct ck_entry *e = entry_of(w, s);
	enum column col = column_of(s);

	if (col == COL_CREATING || col == COL_COMMITTED || col == COL_ENDED || col == COL_NONE ||
	    (col == COL_EVICTING && (s->phase == CK_PHASE_HOOKS || s->phase == CK_PHASE_REMOVE)) ||
	    !e || !e->row.result)
		return;
	MUST(w, ck_state_visible(e->row.state), "K22: entry %lu was %s, is in use, and is %s",
	     row_of(w, s), ck_state_name(s->state), ck_state_name(e->row.state));
	s->found_used = true;
	cell(w, CELL_IN_USE, col);
}

static void has_ended(struct world *w, struct shadow *s, enum ck_condition condition)
{
	const struct ck_entry *e = entry_of(w, s);
	MUST(w, condition != CK_CONDITION_RAN || !e || e->row.state != CK_STATE_COMMITTED,
	     "K22: entry %lu ran, has ended, and is COMMITTED", row_of(w, s));
}

/* it has ended, but somebody uses it */
static bool taken(const struct ck_entry *e)
{
	return e && e->row.state == CK_STATE_ENDED;
}

/* what must follow when its object is seen dead */
static void seen_dead(struct world *w, struct shadow *s, const char *how)
{
	struct ck_entry *e = entry_of(w, s);
	enum column col = column_of(s);
	unsigned long row = row_of(w, s);

	switch (col) {
	case COL_CREATING:
		MUST(w, unchanged(s, e), "the table: entry %lu is being made, %s dead, and changed",
		     row, how);
		break;
	case COL_UNKNOWN:
		MUST(w, e && (e->row.state == CK_STATE_EVICTING || taken(e)),
		     "K8: entry %lu is lost, %s dead, and not evicted", row, how);
		break;
	case COL_KEPT:
		MUST(w,
		     e && (e->row.state == CK_STATE_EVICTING || taken(e) ||
			   asking(e, CK_WANT_INSPECT)),
		     "K6: entry %lu is kept, %s dead, and not evicted", row, how);
		break;
	case COL_COMMITTING:
		MUST(w, e && e->row.state == CK_STATE_EVICTING,
		     "the table: entry %lu was %s dead during its hooks", row, how);
		break;
	case COL_COMMITTED:
		MUST(w, e && e->row.state == CK_STATE_ENDED,
		     "K5: entry %lu was %s dead and has not ended", row, how);
		break;
	case COL_ENDED:
		MUST(w, unchanged(s, e), "K5: entry %lu has ended, was %s dead, and changed", row,
		     how);
		break;
	case COL_EVICTING:
		MUST(w, unchanged(s, e) || taken(e),
		     "the table: entry %lu was EVICTING, %s dead, and changed", row, how);
		break;
	default:
		return;
	}
	s->dead_seen = true;
	cell(w, CELL_DEAD, col);
}

static void seen_absent(struct world *w, struct shadow *s, const struct job *job)
{
	struct ck_entry *e = entry_of(w, s);
	enum column col = column_of(s);
	unsigned long row = row_of(w, s);
	bool gone = !e || e->row.state == CK_STATE_GONE;

	switch (col) {
	case COL_CREATING:
		MUST(w, unchanged(s, e),
		     "the table: entry %lu is being made, not listed, and changed", row);
		break;
	case COL_UNKNOWN:
		not_listed(s, job);
		MUST(w,
		     gone || unchanged(s, e) ||
			     (e->row.state == CK_STATE_CREATING && e->row.flags & CK_ENTRY_RESENT),
		     "K8: entry %lu is lost, not listed, and is %s", row,
		     e ? ck_state_name(e->row.state) : "");
		break;
	case COL_KEPT:
		MUST(w,
		     gone || asking(e, CK_WANT_INSPECT) ||
			     (e->row.state == CK_STATE_EVICTING && e->row.phase > CK_PHASE_CHECK),
		     "K25: entry %lu is kept, not listed, and stays", row);
		break;
	case COL_COMMITTING:
		MUST(w, gone || e->row.state == CK_STATE_EVICTING,
		     "the table: entry %lu was not listed during its hooks", row);
		break;
	case COL_COMMITTED:
	case COL_ENDED:
		MUST(w, gone, "the table: entry %lu is committed, not listed, and not forgotten",
		     row);
		FOR_SHADOWS (c, w)
			/* a new reason (K18) */
			c->shortened = c->shortened || in_sandbox(w, c, s->id);
		break;
	case COL_EVICTING:
		if (s->phase == CK_PHASE_FIND)
			not_listed(s, job);
		if (!s->id[0] || !s->tried_event || job->begun_event < s->tried_event ||
		    w->in_round > 1)
			return; /* begun before the try, so it does not count (K17) */
		MUST(w, gone || e->row.phase == CK_PHASE_REMOVE,
		     "K17: entry %lu is not listed after its destroy, and that is not enough", row);
		break;
	default:
		return;
	}
	cell(w, CELL_ABSENT, col);
}

/* a list begun before the last move of an entry says nothing about it (K24) */
static void stale(struct world *w, struct shadow *s)
{
	struct ck_entry *e = entry_of(w, s);
	unsigned long row = row_of(w, s);

	MUST(w, e && (e->row.state != CK_STATE_GONE || s->state == CK_STATE_GONE),
	     "K24: entry %lu was ended by a stale list", row);
	if (e && s->state != e->row.state)
		MUST(w, e->row.reason != CK_REASON_ABSENT && e->row.reason != CK_REASON_DEAD,
		     "K24: entry %lu was evicted by a stale list", row);
	if (e && s->state == CK_STATE_EVICTING)
		MUST(w, e->row.phase != CK_PHASE_REMOVE || s->phase == CK_PHASE_REMOVE,
		     "K24: entry %lu was confirmed by a stale list", row);
}

/* What the list says about an entry. -1: not in it; UNKNOWN: the machine may decide. */
static int listed_as(struct world *w, const struct shadow *s, const struct job *job)
{
	int condition = -1;
	unsigned candidates = 0;

	for (unsigned i = 0; i < job->n; i++) {
		const struct object *o = &w->objects[job->object[i]];
		if (s->id[0] && !strcmp(o->id, s->id))
			return job->condition[i];
		if (s->id[0] || shadow_of_object(w, o) ||
		    !ck_key_same(w->keys[o->key].key, w->keys[s->key].key))
			continue;
		candidates++;
		/* if not, it is somebody else's of the same key */
		bool ours = o->row == row_of(w, s);
		condition = ours ? job->condition[i] : CK_CONDITION_UNKNOWN;
	}
	return candidates > 1 ? CK_CONDITION_UNKNOWN : condition;
}

static void listed_one(struct world *w, struct shadow *s, const struct job *job)
{
	int condition = listed_as(w, s, job);
	struct ck_entry *e = entry_of(w, s);

	if (s->moved_event > job->begun_event) {
		stale(w, s);
		return;
	}
	if (condition < 0) {
		seen_absent(w, s, job);
	} else if (condition == CK_CONDITION_DEAD) {
		seen_dead(w, s, "listed as");
	} else if (condition == CK_CONDITION_RUNNING) {
		running(s);
	}
	if (condition < 0 || s->state != CK_STATE_UNKNOWN)
		return;
	bool gone = !e || e->row.state == CK_STATE_GONE;
	bool resent = e && e->row.state == CK_STATE_CREATING;
	if (condition == CK_CONDITION_UNKNOWN &&
	    (gone || resent || unchanged(s, e))) { /* something was evicted or released before */
		not_listed(s, job);
		return;
	}
	s->absent_since = 0;
	if (condition == CK_CONDITION_RUNNING)
		in_use(w, s);
	if (condition == CK_CONDITION_READY) {
		MUST(w, e && !unchanged(s, e) && e->row.state != CK_STATE_GONE,
		     "K8: entry %lu is lost, found alive, and still %s", row_of(w, s),
		     e ? ck_state_name(e->row.state) : "gone");
		cell(w, CELL_FINISH, COL_UNKNOWN);
	}
}

/* what becomes of the containers of a stopped sandbox (K16) */
static void containers_stopped(struct world *w, const char *id, enum cell_row which)
{
	FOR_SHADOWS (s, w) {
		struct ck_entry *e = entry_of(w, s);
		enum column col = column_of(s);
		unsigned long row = row_of(w, s);
		bool gone = !e || e->row.state == CK_STATE_GONE;

		if (!in_sandbox(w, s, id) || col == COL_NONE)
			continue;
		s->shortened = true; /* a new reason (K18) */
		bool visible = col == COL_COMMITTED || col == COL_ENDED;
		if (visible && which == CELL_STOPPED)
			MUST(w, e && e->row.state == CK_STATE_ENDED,
			     "K16: the sandbox of entry %lu is stopped, and it has not ended", row);
		else if (visible)
			MUST(w, gone,
			     "K16: the sandbox of entry %lu is removed, and it is not forgotten",
			     row);
		else if (col == COL_EVICTING)
			MUST(w, gone || unchanged(s, e),
			     "K16: the sandbox of entry %lu is gone, and it is %s", row,
			     e ? ck_state_name(e->row.state) : "");
		else
			MUST(w, given_up(s, e),
			     "K16: the sandbox of entry %lu (%s) is gone, and it is not given up",
			     row, ck_state_name(s->state));
		cell(w, which, col);
	}
}

static bool duplicate_goes(struct world *w, const struct shadow *s)
{
	FOR_SHADOWS (other, w)
		if (other != s && other->key == s->key && other->state == CK_STATE_EVICTING)
			return true;
	return false;
}

void oracle_inspected(struct world *w, const struct job *job, enum ck_condition condition)
{
	uint64_t row = job->row;
	struct shadow *s = &w->shadows[row];
	struct ck_entry *e = ck_machine_entry(w->m, row);

	if (s->alive && s->moved_event > job->begun_event) {
		MUST(w, unchanged(s, e) && e->row.phase == s->phase && e->row.tries == s->fails,
		     "K24: what was asked before entry %lu moved counts", (unsigned long)row);
		return;
	}
	oracle_inspected_start(w, s, job, condition);
	if (condition == CK_CONDITION_RUNNING)
		running(s);
	if (!s->alive)
		return;
	if (is_used(condition) && s->state == CK_STATE_KEPT && !job->again &&
	    s->moved_event <= job->begun_event &&
	    w->now < job->begun_at + CK_DESTROY_TIMEOUT /* else too late */) {
		in_use(w, s);
		has_ended(w, s, condition);
	}
	if (s->state == CK_STATE_EVICTING) {
		if (job->again && e && ck_state_visible(e->row.state))
			s->found_used = true;
		if (condition == CK_CONDITION_UNKNOWN || job->again ||
		    (s->phase != CK_PHASE_CHECK && s->phase != CK_PHASE_DESTROY))
			return;
		s->checks++;
		s->found_used = is_used(condition);
		if (s->found_used) /* or it asks again, if this came too late */
			MUST(w, e && (ck_state_visible(e->row.state) || e->row.phase == s->phase),
			     "K22: entry %lu runs, or ran, and is evicted", (unsigned long)row);
		has_ended(w, s, condition);
	} else if (s->state == CK_STATE_KEPT) {
		if (condition == CK_CONDITION_UNKNOWN) {
			MUST(w, unchanged(s, e), "K6: nothing is known of entry %lu, and it is %s",
			     (unsigned long)row, e ? ck_state_name(e->row.state) : "gone");
		} else if (condition == CK_CONDITION_DEAD || condition == CK_CONDITION_ABSENT) {
			MUST(w,
			     job->again ||
				     w->now >= job->begun_at + CK_DESTROY_TIMEOUT /* too late */ ||
				     (e && e->row.state == CK_STATE_EVICTING),
			     "K6: entry %lu is dead and kept", (unsigned long)row);
		} else if (condition == CK_CONDITION_READY && !w->plugin_absent && !job->again &&
			   unchanged(s, e) && w->now < job->begun_at + CK_DESTROY_TIMEOUT &&
			   !duplicate_goes(w, s) && !removal_in_flight(w, s)) {
			FOR_CALLERS (c, w)
				MUST(w,
				     !(takes(w, c) && c->turn.row == row && shares(c)) ||
					     c->turn.made,
				     "K6: entry %lu is alive, and caller %d waits on",
				     (unsigned long)row, (int)(c - w->callers));
		} else if (condition == CK_CONDITION_READY && w->plugin_absent &&
			   w->config.rules.hooks && unchanged(s, e) &&
			   !(e->row.flags & CK_ENTRY_TOLD)) {
			FOR_CALLERS (c, w)
				if (ck_turn_outcome(&c->turn) == -CK_EUNAVAILABLE &&
				    c->heard == CK_WAIT && c->turn.row == row &&
				    strstr(c->turn.decision.err.text, "10-required"))
					cell(w, CELL_PLUGIN, COL_KEPT);
		}
	}
}

/* An entry is EVICTING without an id. The host's list must tell how its creation ended (FIND): the
 * object is there, or it is absent for long enough. Nothing of an earlier boot still runs. After a
 * failed list nobody knows yet; see oracle_listed_entry(). */
static void listed_late(struct world *w, struct shadow *s, const struct job *job)
{
	struct ck_entry *e = entry_of(w, s);
	unsigned long row = row_of(w, s);
	int condition = listed_as(w, s, job);

	if (condition < 0) {
		bool gone = !e || e->row.state == CK_STATE_GONE;
		not_listed(s, job);
		MUST(w, gone || (unchanged(s, e) && s->reason != CK_REASON_REBOOT),
		     "the table: entry %lu is EVICTING, was never made, and is not gone", row);
	} else if (condition != CK_CONDITION_UNKNOWN) {
		if (condition == CK_CONDITION_RUNNING)
			running(s);
		MUST(w,
		     e && e->row.result &&
			     (unchanged(s, e) || ck_state_visible(e->row.state) /* in use */),
		     "the table: entry %lu is EVICTING, its id came late and was not stored", row);
		cell(w, CELL_FINISH, COL_EVICTING);
		if (condition == CK_CONDITION_RUNNING)
			in_use(w, s);
	}
}

void oracle_listed_entry(struct world *w, const struct job *job, bool ok)
{
	struct shadow *s = &w->shadows[job->row];
	struct ck_entry *e = ck_machine_entry(w->m, job->row);

	if (!ok) {
		all_unchanged(w, "K24", false); /* a failed eviction makes room for another one */
		if (s->alive && s->state == CK_STATE_EVICTING && s->phase == CK_PHASE_FIND)
			cell(w, CELL_LOSE, COL_EVICTING);
		return;
	}
	if (!s->alive || (s->state == CK_STATE_EVICTING && s->moved_event > job->begun_event))
		return;
	if (s->state == CK_STATE_EVICTING &&
	    (s->phase == CK_PHASE_CHECK || s->phase == CK_PHASE_DESTROY) && s->kind == CK_SANDBOX) {
		if (job->kind != CK_CONTAINER)
			return; /* the answer to an older question, for its id */
		bool used = false;
		for (unsigned i = 0; i < job->n; i++) {
			const struct object *o = &w->objects[job->object[i]];
			if (!strcmp(w->keys[o->key].key->sandbox_id, s->id))
				used = used || job->condition[i] == CK_CONDITION_RUNNING ||
				       !ours_uncommitted(w, o);
		}
		if (s->checks && used && unchanged(s, e))
			return; /* another answer of this try came before it */
		s->checks++;
		s->found_used = used;
		if (s->found_used) /* or it asks again, if this came too late */
			MUST(w, e && (ck_state_visible(e->row.state) || e->row.phase == s->phase),
			     "K22: sandbox %s is in use, and is evicted", s->id);
	} else if (s->state == CK_STATE_CREATING || s->state == CK_STATE_UNKNOWN) {
		listed_one(w, s, job);
	} else if (s->state == CK_STATE_EVICTING && s->phase == CK_PHASE_FIND) {
		listed_late(w, s, job);
	}
}

/* It moved in this event: it was handed over after the list was read. */
static bool moved_now(struct world *w, const struct ck_entry *e)
{
	size_t n;
	const struct ck_history_event *history = ck_machine_history(w->m, &n);

	for (size_t i = w->history_seen; i < n; i++)
		if (history[i].entry == e && history[i].what == CK_WHAT_MOVED)
			return true;
	return false;
}

/* Containers that run, and sandboxes with a container that is visible (K22). What became of the
 * container itself is judged elsewhere. */
static void containers_in_use(struct world *w, const struct job *job)
{
	for (unsigned i = 0; i < w->objects_n; i++)
		if (w->objects[i].kind == CK_CONTAINER)
			w->objects[i].listed = false;
	FOR_SHADOWS (s, w)
		s->holds_stranger = false;
	FOR_SHADOWS (s, w)
		if (s->kind == CK_CONTAINER && s->moved_event <= job->begun_event &&
		    listed_as(w, s, job) == CK_CONDITION_RUNNING)
			in_use(w, s);
	for (unsigned i = 0; i < job->n; i++) {
		struct object *o = &w->objects[job->object[i]];
		const struct ck_entry *e = ck_machine_object(w->m, o->kind, o->id);
		o->listed = true;
		FOR_SHADOWS (s, w) /* a list that is older than a removal imports nothing (K24) */
			s->holds_stranger =
				s->holds_stranger ||
				(!e && s->id[0] &&
				 !strcmp(s->id, w->keys[o->key].key->sandbox_id));
		if (e && !w->shadows[e->row.id].alive && job->condition[i] == CK_CONDITION_RUNNING)
			MUST(w, ck_state_visible(e->row.state), "K22: %s runs, is new, and is %s",
			     o->id, ck_state_name(e->row.state));
		FOR_SHADOWS (s, w)
			if (e && ck_state_visible(e->row.state) &&
			    (job->condition[i] == CK_CONDITION_RUNNING || !moved_now(w, e)) &&
			    s->kind == CK_SANDBOX && s->id[0] &&
			    !strcmp(s->id, w->keys[o->key].key->sandbox_id))
				in_use(w, s);
	}
}

/* Only this list told the id of a sandbox, and the list of its containers came before. */
static void sandboxes_in_use(struct world *w, const struct job *job)
{
	for (unsigned i = 0; i < job->n; i++) {
		const struct object *o = &w->objects[job->object[i]];
		struct ck_entry *e = ck_machine_object(w->m, o->kind, o->id);
		struct shadow *s = e ? &w->shadows[e->row.id] : NULL;
		for (unsigned k = 0; s && !s->id[0] && k < w->objects_n; k++) {
			const struct object *c = &w->objects[k];
			struct shadow *in = c->listed ? shadow_of_object(w, c) : NULL;
			if (!in || !ck_state_visible(in->state) || !in_sandbox(w, in, o->id))
				continue;
			MUST(w, ck_state_visible(e->row.state),
			     "K22: entry %lu is found, in use, and is %s", row_of(w, s),
			     ck_state_name(e->row.state));
			if (s->alive)
				in_use(w, s);
		}
	}
}

void oracle_listed(struct world *w, const struct job *job, bool ok)
{
	bool was_serving = world_serving(w);

	if (!ok) {
		all_unchanged(w, "K24", true);
		return;
	}
	w->list_done[job->kind] = true;
	if (job->kind == CK_CONTAINER)
		containers_in_use(w, job);
	else
		sandboxes_in_use(w, job);
	for (unsigned i = 0; i < job->n && job->kind == CK_SANDBOX; i++)
		if (job->condition[i] == CK_CONDITION_DEAD || w->objects[job->object[i]].stopping)
			FOR_SHADOWS (s, w)
				if (in_sandbox(w, s, w->objects[job->object[i]].id))
					s->shortened = true; /* a new reason (K18) */
	if (!was_serving && world_serving(w)) {
		/* callers that waited for the first list are placed at once, and change more */
		FOR_SHADOWS (s, w) {
			int condition =
				s->kind == job->kind ? listed_as(w, s, job) : CK_CONDITION_UNKNOWN;
			if ((s->state == CK_STATE_UNKNOWN || s->phase == CK_PHASE_FIND) &&
			    condition < 0)
				not_listed(s, job);
			if (s->moved_event <= job->begun_event && condition == CK_CONDITION_RUNNING)
				running(s);
			if (s->moved_event <= job->begun_event && s->state == CK_STATE_COMMITTING &&
			    (condition < 0 || condition == CK_CONDITION_DEAD))
				s->dead_seen = true;
		}
		return;
	}
	FOR_SHADOWS (s, w) {
		if (s->kind != job->kind || column_of(s) == COL_NONE)
			continue;
		listed_one(w, s, job);
		int condition = listed_as(w, s, job);
		if (s->kind == CK_SANDBOX && s->id[0] && s->moved_event <= job->begun_event &&
		    (condition < 0 || condition == CK_CONDITION_DEAD) &&
		    ck_state_visible(s->state))
			containers_stopped(w, s->id, condition < 0 ? CELL_REMOVED : CELL_STOPPED);
	}
}

void oracle_viewed(struct world *w, const struct job *list)
{
	for (unsigned i = 0; i < list->n; i++) {
		const struct object *o = &w->objects[list->object[i]];
		if (!object_alive(o) && !ck_machine_object(w->m, o->kind, o->id))
			/* the cache did not destroy it: it vanished before anybody knew its id */
			continue;
		if (o->row && !o->exempt && !w->shadows[o->row].committed &&
		    !w->shadows[o->row].released && oracle_shown(w, o))
			oracle_fail(w, "K21: a list shows %s, which was never committed", o->id);
	}
}

/* ---- destroying ------------------------------------------------------------------------------ */

void oracle_destroyed(struct world *w, uint64_t row, int grpc)
{
	struct shadow *s = &w->shadows[row];
	struct ck_entry *e = ck_machine_entry(w->m, row);
	bool confirmed = grpc == CK_GRPC_OK || grpc == CK_GRPC_NOT_FOUND;

	if (s->alive && ck_state_visible(s->state)) { /* found in use meanwhile */
		MUST(w,
		     confirmed ? !e || e->row.state == CK_STATE_GONE ||
					 (e->row.state == CK_STATE_EVICTING &&
					  e->row.reason == CK_REASON_ABSENT)
			       : unchanged(s, e),
		     "K22: entry %lu is in use, and its destroy was answered %d",
		     (unsigned long)row, grpc);
		cell(w, confirmed ? CELL_DESTROYED : CELL_NOT_DESTROYED, column_of(s));
		return;
	}
	if (!s->alive || s->state != CK_STATE_EVICTING || s->phase != CK_PHASE_DESTROY)
		return;
	if (confirmed) {
		MUST(w, !e || e->row.state == CK_STATE_GONE || e->row.phase == CK_PHASE_REMOVE,
		     "K17: entry %lu is destroyed and stays", (unsigned long)row);
		cell(w, CELL_DESTROYED, COL_EVICTING);
	} else {
		MUST(w, unchanged(s, e) && e->row.phase == CK_PHASE_DESTROY,
		     "K17: entry %lu was not destroyed and is given up", (unsigned long)row);
		/* a try without an answer in time has failed already */
		MUST(w, !e || e->row.tries == s->fails + 1 || e->row.tries == s->fails,
		     "K18: entry %lu counts %u failures after %u", (unsigned long)row, e->row.tries,
		     s->fails);
		cell(w, CELL_NOT_DESTROYED, COL_EVICTING);
	}
}

/* ---- hooks ----------------------------------------------------------------------------------- */

void oracle_hooking(struct world *w, uint64_t row, enum ck_hook_event event)
{
	if (event == CK_HOOK_RUN)
		w->newest = newest_live(w, w->shadows[row].key);
	if (event == CK_HOOK_RUN)
		w->taker = somebody_takes(w, w->shadows[row].key, NULL);
}

void oracle_hooked(struct world *w, uint64_t row, enum ck_hook_event event, bool agree)
{
	struct shadow *s = &w->shadows[row];
	struct ck_entry *e = ck_machine_entry(w->m, row);
	unsigned long id = (unsigned long)row;

	if (!s->alive)
		return;
	s->stop_done += event == CK_HOOK_STOP;
	s->removed_done += event == CK_HOOK_REMOVE;
	if (event == CK_HOOK_RUN && s->state == CK_STATE_EVICTING && s->phase == CK_PHASE_HOOKS) {
		MUST(w,
		     e && e->row.phase != CK_PHASE_HOOKS &&
			     (unchanged(s, e) || ck_state_visible(e->row.state)),
		     "K13: the hooks of entry %lu have ended, and its eviction does not go on", id);
		cell(w, agree ? CELL_AGREE : CELL_REFUSE, COL_EVICTING);
	}
	if (event != CK_HOOK_RUN || s->state != CK_STATE_COMMITTING)
		return;
	enum ck_state now = e ? e->row.state : CK_STATE_GONE;
	if (!agree) {
		MUST(w, now == CK_STATE_EVICTING, "H4: a plugin refused entry %lu, which is %s", id,
		     ck_state_name(now));
		FOR_CALLERS (c, w)
			if (c->turn.row == row && shares(c))
				oracle_fail(w,
					    "H4: entry %lu was refused, and caller %d still waits",
					    id, (int)(c - w->callers));
		cell(w, CELL_REFUSE, COL_COMMITTING);
		return;
	}
	struct caller *newest = w->newest >= 0 ? &w->callers[w->newest] : NULL;
	if (duplicate_goes(w, s))
		MUST(w, now == CK_STATE_KEPT,
		     "K26: hooks agreed to entry %lu, its duplicate is not gone, and it is %s", id,
		     ck_state_name(now));
	else if (removal_in_flight(w, s))
		MUST(w, now == CK_STATE_KEPT,
		     "K5: hooks agreed to entry %lu, which is being removed, and it is %s", id,
		     ck_state_name(now));
	else if (s->kind == CK_SANDBOX)
		MUST(w, now == CK_STATE_COMMITTED, "K7: hooks agreed to entry %lu, which is %s", id,
		     ck_state_name(now));
	else if (!newest && w->taker)
		MUST(w, now == CK_STATE_COMMITTED || now == CK_STATE_KEPT,
		     "K7: container entry %lu is %s after its hooks", id, ck_state_name(now));
	else if (!newest)
		MUST(w, now == CK_STATE_KEPT && e->row.flags & CK_ENTRY_TOLD,
		     "K7: nobody waits for container entry %lu, and it is %s", id,
		     ck_state_name(now));
	else if (e && world_compare(w, e, &newest->fp) == CK_RELATION_SAME)
		MUST(w, now == CK_STATE_COMMITTED,
		     "K7: hooks agreed to entry %lu, caller %d waits, and it is %s", id, w->newest,
		     ck_state_name(now));
	cell(w, CELL_AGREE, COL_COMMITTING);
}

/* ---- what passes by -------------------------------------------------------------------------- */

void oracle_seen(struct world *w, struct object *o, enum ck_condition condition, int r)
{
	struct shadow *s = shadow_of_object(w, o);

	if (!s) {
		MUST(w, r == -CK_ENOTFOUND || r == 0, "seen: %s is unknown, answered %d", o->id, r);
		return;
	}
	if (condition == CK_CONDITION_RUNNING)
		running(s);
	if (is_used(condition))
		in_use(w, s);
	has_ended(w, s, condition);
	if (o->condition != CK_CONDITION_DEAD ||
	    (is_used(condition) && !ck_state_visible(s->state)))
		return;
	if (s->kind == CK_SANDBOX && ck_state_visible(s->state))
		containers_stopped(w, o->id, CELL_STOPPED);
	seen_dead(w, s, "seen");
}

void oracle_used(struct world *w, struct object *o)
{
	struct shadow *s = shadow_of_object(w, o);
	if (s && ck_state_visible(s->state))
		s->used = true;
}

/* Only what was told to somebody can be named; nothing that was given up is revived (K7, K23). */
void oracle_starting(struct world *w, struct object *o, int r)
{
	struct shadow *s = shadow_of_object(w, o);
	struct ck_entry *e = s ? entry_of(w, s) : NULL;
	enum column col = s ? column_of(s) : COL_NONE;
	bool twin = false;

	if (col == COL_NONE)
		return;
	FOR_SHADOWS (other, w)
		twin = twin || (other->key == s->key && other->state == CK_STATE_EVICTING);
	bool delivers = ck_state_visible(s->state) ||
			(col == COL_KEPT && s->flags & CK_ENTRY_TOLD && !twin);
	MUST(w, r == (delivers ? 0 : -CK_ENOTFOUND), "K7: starting %s was answered %d", o->id, r);
	if (delivers)
		MUST(w, ck_state_visible(e->row.state) && e->row.flags & CK_ENTRY_DELIVERED,
		     "K7: %s was started by its full id, and is %s", o->id,
		     ck_state_name(e->row.state));
	else
		MUST(w, unchanged(s, e), "K7: %s is hidden, was started, and is %s", o->id,
		     ck_state_name(e->row.state));
	s->used = s->used || delivers;
	cell(w, CELL_STARTING, col);
}

void oracle_stopping(struct world *w, struct object *o, int r)
{
	struct shadow *s = shadow_of_object(w, o);
	struct ck_entry *e = s ? entry_of(w, s) : NULL;

	MUST(w, r <= 0, "K16: stopping was answered %d", r);
	if (s && ck_state_visible(s->state))
		MUST(w, e && e->row.state == CK_STATE_ENDED,
		     "K16: sandbox %s is stopped and has not ended", o->id);
	containers_stopped(w, o->id, CELL_STOPPED);
}

void oracle_forgotten(struct world *w, struct object *o)
{
	struct shadow *s = shadow_of_object(w, o);
	struct ck_entry *e = s ? entry_of(w, s) : NULL;

	if (s && (s->state == CK_STATE_KEPT || s->state == CK_STATE_COMMITTING))
		MUST(w,
		     !e || e->row.state == CK_STATE_GONE ||
			     (e->row.state == CK_STATE_EVICTING &&
			      e->row.reason == CK_REASON_ABSENT),
		     "forget: entry %lu was removed by its id, and is %s", row_of(w, s),
		     ck_state_name(e->row.state));
	else if (s && s->state != CK_STATE_EVICTING)
		MUST(w, !e || e->row.state == CK_STATE_GONE, "forget: entry %lu is still %s",
		     row_of(w, s), ck_state_name(e->row.state));
	if (o->kind == CK_SANDBOX)
		containers_stopped(w, o->id, CELL_REMOVED);
}

void oracle_evicted(struct world *w, uint64_t row, bool release, int r)
{
	struct shadow *s = &w->shadows[row];
	struct ck_entry *e = ck_machine_entry(w->m, row);
	enum column col = column_of(s);
	unsigned long id = (unsigned long)row;

	if (release) {
		if (col != COL_EVICTING)
			/* an eviction, or a mistake of the administrator: not in the table */
			return;
		if (e && (e->creator || e->row.phase == CK_PHASE_HOOKS)) {
			MUST(w, r < 0 && unchanged(s, e),
			     "K17: entry %lu was released while it is still being created", id);
			return;
		}
		/* destroyed is destroyed; only its plugins are still told */
		s->released = s->released || s->phase != CK_PHASE_REMOVE;
		MUST(w, !e || e->row.state == CK_STATE_GONE || e->row.phase == CK_PHASE_REMOVE,
		     "K17: entry %lu was released and is still %s", id,
		     ck_state_name(e->row.state));
		cell(w, CELL_RELEASE, col);
		return;
	}
	if (ck_state_visible(s->state))
		MUST(w, unchanged(s, e),
		     "K17: an administrator evicted entry %lu, which is committed", id);
	else if (col != COL_EVICTING)
		MUST(w, given_up(s, e), "K13: an administrator evicted entry %lu, which is %s", id,
		     ck_state_name(s->state));
	s->shortened = true;
	if (col != COL_EVICTING)
		cell(w, CELL_EVICT, col);
}

/* ---- time ------------------------------------------------------------------------------------ */

void oracle_expiring(struct world *w)
{
	FOR_CALLERS (c, w) {
		struct shadow *s = shadow_of_key(w, c->key);
		bool due = ck_turn_waits(&c->turn) && w->now >= waits_until(w, c);
		c->shared = shares(c);
		c->before = due && s && world_serving(w) ? column_of(s) : COL_NONE;
	}
}

void oracle_expired(struct world *w)
{
	FOR_CALLERS (c, w) {
		struct shadow *s = shadow_of_key(w, c->key);
		enum column col = c->before;
		int label = (int)(c - w->callers), outcome = ck_turn_outcome(&c->turn);

		if (col >= COLS)
			continue;
		c->before = COL_NONE;
		MUST(w, !ck_turn_waits(&c->turn), "K3: caller %d waits beyond its margin", label);
		struct ck_entry *e = s ? entry_of(w, s) : NULL;
		if (!e || !unchanged(s, e) || !ck_turn_decided(&c->turn))
			continue; /* something else fell due at the same time */
		if (c->turn.row != row_of(w, s))
			continue; /* it waits for something else, such as ports */
		if (col == COL_EVICTING)
			MUST(w,
			     outcome == -CK_EUNAVAILABLE && strstr(c->turn.decision.err.text,
								   "removing the earlier result"),
			     "K14: caller %d waits for an eviction, and hears %d, \"%s\"", label,
			     outcome, c->turn.decision.err.text);
		else if (col != COL_COMMITTED && col != COL_ENDED)
			MUST(w, outcome == CK_BUSY || (outcome == -CK_EUNAVAILABLE && !c->shared),
			     "K3: caller %d is out of time, and hears %d", label, outcome);
		if (col != COL_COMMITTED && col != COL_ENDED)
			cell(w, CELL_MARGIN, col);
	}
	FOR_SHADOWS (s, w) {
		struct ck_entry *e = entry_of(w, s);
		if (s->state == CK_STATE_COMMITTING && w->now > s->interest + w->config.rules.ttl) {
			MUST(w, e && e->row.state != CK_STATE_KEPT,
			     "K15: entry %lu expired during its hooks", row_of(w, s));
			if (unchanged(s, e))
				cell(w, CELL_EXPIRE, COL_COMMITTING);
		}
	}
}
