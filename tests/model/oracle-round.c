/* SPDX-License-Identifier: Apache-2.0 */
/* What must hold after each round: what is on disk, what is hidden, that everything exists once.
 * What a round may ask and answer. Restarts. */
#include <string.h>

#include "tests/model/check-machine.h"
#include "tests/model/oracle-int.h"

/* ---- writing (K29, K32) ---------------------------------------------------------------------- */

void oracle_settling(struct world *w, bool written)
{
	if (written)
		return;
	for (struct ck_entry *e = ck_machine_dirty(w->m); e; e = e->dirty_next) {
		struct shadow *s = &w->shadows[e->row.id];
		if (s->alive)
			cell(w, CELL_WRITE, column_of(s));
	}
}

void oracle_settled(struct world *w)
{
	FOR_SHADOWS (s, w) {
		struct ck_entry *e = entry_of(w, s);

		MUST(w, !e || e->row.state == s->state,
		     "K32: entry %lu moved from %s to %s when the round was closed", row_of(w, s),
		     ck_state_name(s->state), ck_state_name(e->row.state));
	}
	oracle_observe(w);
}

/* It has only begun, its creator's caller waits, and the host is the runtime. */
static bool need_not_be_written(struct world *w, const struct shadow *s, const struct ck_entry *e)
{
	if (!w->config.rules.is_runtime || s->state != CK_STATE_CREATING ||
	    e->row.flags & CK_ENTRY_RESENT || w->expired_at >= s->created + CK_BEGUN_WAITS)
		return false;
	FOR_CALLERS (c, w)
		if (c->here && c->making && c->making_row == e->row.id)
			return w->expired_at < c->margin_at;
	return false;
}

static void check_database(struct world *w)
{
	FOR_SHADOWS (s, w) {
		struct ck_entry *e = entry_of(w, s);
		const struct stored *stored = &w->db[row_of(w, s)];
		unsigned long row = row_of(w, s);

		if (!e || (s->state == CK_STATE_GONE && !s->id[0]))
			continue;
		MUST(w, stored->used || need_not_be_written(w, s, e),
		     "K29: entry %lu (%s) is not in the database", row, ck_state_name(s->state));
		if (!stored->used)
			return;
		unsigned differ = stored->row.flags ^ e->row.flags;
		MUST(w,
		     stored->row.state == e->row.state && !differ &&
			     stored->row.phase == e->row.phase &&
			     !stored->row.result == !e->row.result &&
			     stored->row.tries == e->row.tries &&
			     stored->row.requests == e->row.requests &&
			     stored->row.asked == e->row.asked &&
			     stored->row.searched == e->row.searched &&
			     stored->row.absent == e->row.absent &&
			     stored->row.reason == e->row.reason,
		     "K29: entry %lu (%s) differs from its row in the database (%s): a transition "
		     "was not written",
		     row, ck_state_name(e->row.state), ck_state_name(stored->row.state));
		if (e->row.searched)
			MUST(w,
			     e->row.searched >= s->lost_at &&
				     (!e->row.absent || e->row.absent >= e->row.searched),
			     "K8: entry %lu is lost or absent for longer than it is", row);
	}
	for (uint64_t id = 1; id <= w->rows_n; id++)
		MUST(w, !w->db[id].used || ck_machine_entry(w->m, id),
		     "K29: row %lu is in the database, and no entry has it", (unsigned long)id);
}

/* ---- what holds after each round ------------------------------------------------------------- */

static void check_keys(struct world *w)
{
	unsigned char seen[WORLD_KEYS] = { 0 }, visible[WORLD_KEYS] = { 0 };

	FOR_SHADOWS (s, w) {
		if (s->state == CK_STATE_COMMITTED && s->origin == CK_ORIGIN_CACHE)
			MUST(w, !visible[s->key]++,
			     "hidden until committed: two of one key are visible");
		if ((ck_state_open(s->state) || s->state == CK_STATE_COMMITTED) &&
		    s->origin == CK_ORIGIN_CACHE)
			MUST(w, !seen[s->key]++,
			     "states: two entries of one key outside EVICTING");
	}
}

static void check_objects(struct world *w)
{
	for (unsigned i = 0; i < w->objects_n; i++) {
		const struct object *o = &w->objects[i];
		if (!object_alive(o) || !o->row || o->exempt ||
		    ck_machine_object(w->m, o->kind, o->id))
			continue;
		MUST(w, !oracle_shown(w, o),
		     "K17: %s exists, was made for entry %lu, and is neither known nor hidden",
		     o->id, (unsigned long)o->row);
	}
}

/* A plugin that connects now gets a list (H1), in this life and in any later one: it has what the
 * kubelet has, and what plugins know and was not destroyed. */
static void check_snapshot(struct world *w)
{
	FOR_SHADOWS (s, w) {
		struct ck_entry *e = entry_of(w, s);
		const struct object *o = world_object_of(w, s->id);
		if (!e)
			continue;
		bool told = e->row.flags & CK_ENTRY_TOLD;
		bool there = o && object_alive(o) && !s->released &&
			     e->row.reason != CK_REASON_ABSENT;
		MUST(w,
		     !o || !o->stop_known || s->kind != CK_SANDBOX ||
			     s->state != CK_STATE_COMMITTED,
		     "K16: %s is being stopped, and has not ended", s->id);
		switch (s->state) {
		case CK_STATE_COMMITTED:
		case CK_STATE_ENDED:
			MUST(w, ck_machine_told(e), "H1: new plugins do not learn of %s", s->id);
			break;
		case CK_STATE_KEPT:
		case CK_STATE_EVICTING:
			MUST(w, ck_machine_told(e) || !told || !there,
			     "H1: %s exists, and new plugins do not learn of it", s->id);
			MUST(w, told || !ck_machine_told(e),
			     "H1: plugins do not know %s, and new ones have it in their list",
			     s->id);
			break;
		default:
			break;
		}
	}
}

static void check_tombstones(struct world *w)
{
	for (unsigned i = 0; i < w->tombs_n; i++) {
		bool wanted = w->now < w->tombs[i].until;
		for (unsigned v = 0; v < WORLD_VIEWS; v++)
			wanted = wanted || (w->views[v].open &&
					    w->views[v].list.begun_event < w->tombs[i].event);
		if (!wanted) {
			w->tombs[i--] = w->tombs[--w->tombs_n];
			continue;
		}
		struct ck_entry *e = ck_machine_object(w->m, w->tombs[i].kind, w->tombs[i].id);
		MUST(w, e && ck_machine_hidden(e),
		     "K21: %s was evicted %llu ms ago and is not hidden any more", w->tombs[i].id,
		     (unsigned long long)((w->now + CK_TOMBSTONE - w->tombs[i].until) / MS));
	}
}

static void check_destroys(struct world *w)
{
	unsigned n = 0;
	int pods[WORLD_JOBS];
	uint64_t rows[WORLD_JOBS];

	for (unsigned i = 0; i < w->jobs_n; i++) {
		const struct job *job = &w->jobs[i];
		const struct shadow *s = &w->shadows[job->row];
		if (job->want != CK_WANT_DESTROY || s->state != CK_STATE_EVICTING ||
		    s->phase == CK_PHASE_REMOVE || s->released ||
		    w->now >= job->begun_at + w->config.rules.destroy_timeout)
			continue;
		int pod = w->keys[w->shadows[job->row].key].pod;
		for (unsigned k = 0; k < n; k++)
			MUST(w, pods[k] != pod || rows[k] == job->row,
			     "K18: two destroys of pod %s at once", w->keys[pod].key->pod_name);
		rows[n] = job->row;
		pods[n++] = pod;
	}
	MUST(w, n <= CK_DESTROYS_MAX, "K18: %u destroys at once", n);
}

static void check_turns(struct world *w)
{
	FOR_CALLERS (c, w) {
		int label = (int)(c - w->callers);
		if (!ck_turn_waits(&c->turn))
			continue;
		MUST(w, c->here, "caller %d has left and its turn still waits", label);
		if (w->expired_at == w->now && ck_machine_due(w->m) > w->now)
			MUST(w, w->now < waits_until(w, c),
			     "K3, K6: caller %d waits beyond its time", label);
		if (!live(w, c) || !world_serving(w))
			continue;
		struct shadow *s = shadow_of_key(w, c->key);
		struct ck_entry *e = s ? entry_of(w, s) : NULL;
		/* its removal may have begun before its creation was found (K16) */
		if (e && s->state == CK_STATE_COMMITTED && !end_in_flight(w, s) &&
		    !s->running_seen && s->origin == CK_ORIGIN_CACHE &&
		    world_compare(w, e, &c->fp) == CK_RELATION_SAME)
			oracle_fail(w, "K1: caller %d waits for what is committed", label);
		if (e && s->state == CK_STATE_CREATING && e->creator &&
		    !(s->flags & CK_ENTRY_RESENT)) {
			const struct caller *creator =
				(const void *)((const char *)e->creator -
					       offsetof(struct caller, turn));
			enum ck_relation relation = world_compare(w, e, &c->fp);
			if (creator->order > c->order &&
			    (relation == CK_RELATION_DIFFERENT || relation == CK_RELATION_IMAGE))
				oracle_fail(w,
					    "K14: caller %d is older than what is being made, "
					    "differs, and still waits",
					    label);
		}
		if (s)
			continue;
		/* nothing of its key is left; it may wait for other things */
		bool blocked = oracle_waits_beside(w, c);
		FOR_SHADOWS (other, w)
			if (other->state != CK_STATE_GONE &&
			    (w->keys[other->key].pod == w->keys[c->key].pod ||
			     in_sandbox(w, other, "")))
				blocked = blocked || !ck_state_visible(other->state) ||
					  other->kind != c->req.kind;
		FOR_CALLERS (other, w)
			blocked =
				blocked || (other != c && other->key == c->key && undecided(other));
		MUST(w, blocked, "K1: nothing is in the way of caller %d, and it waits", label);
	}
}

static void check_removals(struct world *w)
{
	for (const struct caller *c = w->callers; c < w->callers + WORLD_LABELS; c++) {
		if (!c->used || !c->drain || c->removal.state != CK_REMOVAL_WAITING)
			continue;
		int label = (int)(c - w->callers);
		bool busy = false;
		MUST(w, c->here, "caller %d has left and its removal still waits", label);
		if (w->expired_at == w->now && ck_machine_due(w->m) > w->now)
			MUST(w, w->now < c->margin_at, "K3: removal %d waits beyond its margin",
			     label);
		FOR_SHADOWS (s, w)
			busy = busy ||
			       (in_sandbox(w, s, c->removal.id) && open_or_evicting(s->state));
		MUST(w, busy, "K16: nothing is in the way of removal %d, and it waits", label);
	}
}

void oracle_round(struct world *w)
{
	char why[256] = "";

	if (!check_machine(w->m, why, sizeof(why)))
		oracle_fail(w, "check_machine: %s", why);
	check_keys(w);
	check_objects(w);
	check_tombstones(w);
	check_snapshot(w);
	check_destroys(w);
	check_turns(w);
	check_removals(w);
	if (!w->disk_broken)
		check_database(w);
	FOR_CALLERS (c, w)
		if (c->here && undecided(c) && world_serving(w))
			FOR_SHADOWS (s, w)
				if (s->key == c->key &&
				    s->interest < (w->now < c->margin_at ? w->now : c->margin_at))
					s->interest = w->now < c->margin_at ? w->now : c->margin_at;
}

void oracle_feeding(struct world *w)
{
	FOR_SHADOWS (s, w)
		s->waited = somebody_waits(w, s->key);
}

void oracle_drained(struct world *w)
{
	FOR_ENTRIES (e, w)
		MUST(w, ck_state_visible(e->row.state),
		     "K18, K19: in the end entry %lu is still %s (phase %d, reason %s)",
		     (unsigned long)e->row.id, ck_state_name(e->row.state), (int)e->row.phase,
		     ck_reason_name(e->row.reason));
	for (unsigned i = 0; i < w->objects_n; i++) {
		const struct object *o = &w->objects[i];
		if (object_alive(o) && o->row && !o->exempt && !oracle_shown(w, o))
			oracle_fail(w, "K17: in the end %s exists and is hidden", o->id);
	}
	for (unsigned i = 0; i < w->jobs_n; i++)
		oracle_fail(w, "in the end something is still asked: want %u", w->jobs[i].want);
}

/* ---- what a round brought -------------------------------------------------------------------- */

static void check_resend(struct world *w, struct shadow *s)
{
	unsigned long row = row_of(w, s);

	MUST(w, s->flags & CK_ENTRY_RESENT, "K1: a second creation of entry %lu", row);
	MUST(w, !s->resent++, "K8: entry %lu is sent a third time", row);
	MUST(w, s->absent_since && w->now - s->absent_since >= CK_RESEND_AFTER,
	     "K8: entry %lu is sent again without %d s of absence", row,
	     (int)(CK_RESEND_AFTER / S));
}

/* an older attempt has given its ports back, or was waited for long enough (K10) */
static void check_ports(struct world *w, const struct caller *c)
{
	uint64_t waited = w->now - c->began;

	if (c->req.kind != CK_SANDBOX || w->in_round > 1 ||
	    waited >= w->config.rules.supersede_wait || w->now >= c->margin_at)
		return;
	FOR_SHADOWS (s, w) {
		if (s->kind != CK_SANDBOX || s->key == c->key ||
		    w->keys[s->key].pod != w->keys[c->key].pod)
			continue;
		bool moved_on =
			s->reason == CK_REASON_ATTEMPT || s->reason == CK_REASON_POD_REPLACED;
		if (moved_on && s->phase != CK_PHASE_REMOVE &&
		    (s->state == CK_STATE_EVICTING || ck_state_open(s->state)))
			oracle_fail(w, "K10: a new attempt is made while entry %lu holds its ports",
				    row_of(w, s));
	}
}

void oracle_create(struct world *w, struct caller *c)
{
	struct ck_entry *e = ck_machine_entry(w->m, c->turn.row);
	int label = (int)(c - w->callers);
	struct shadow *s = e ? &w->shadows[e->row.id] : NULL;
	bool resend = false;

	MUST(w, e && s->alive && s->key == c->key && e->row.state == CK_STATE_CREATING,
	     "K1: caller %d is to create without an entry", label);
	if (!e)
		return;
	MUST(w, e->creator == &c->turn, "K1: caller %d is to create, and another one does", label);
	MUST(w, c->here, "caller %d has left and is to create", label);
	MUST(w, !c->making, "K8: caller %d is to create, and its call is still under way", label);
	MUST(w, !c->deadline || w->now < c->deadline,
	     "K2: caller %d is to create after its deadline", label);
	FOR_SHADOWS (other, w)
		MUST(w,
		     w->in_round > 1 || other->key == c->key ||
			     same_pod(w->keys[other->key].key, w->keys[c->key].key) ||
			     (!ck_state_open(other->state) && other->state != CK_STATE_COMMITTED) ||
			     strcmp(w->keys[other->key].key->pod_uid,
				    w->keys[c->key].key->pod_uid) != 0,
		     "K9: caller %d is to create, and entry %lu has its uid under another name",
		     label, row_of(w, other));
	for (unsigned i = 0; i < w->creations_n; i++)
		resend = resend || w->creations[i].row == e->row.id;
	if (resend)
		check_resend(w, s);
	else
		check_ports(w, c);
	for (unsigned i = 0; i < w->creations_n; i++) {
		const struct creation *other = &w->creations[i];
		if (other->state == CREATION_RUNNING && other->key == c->key && !other->reserved &&
		    !other->exempt)
			MUST(w, other->row == e->row.id,
			     "K1: entry %lu is made while entry %lu still is",
			     (unsigned long)e->row.id, (unsigned long)other->row);
	}
	enum ck_relation relation = world_compare(w, e, &c->fp);
	MUST(w,
	     relation == CK_RELATION_SAME ||
		     (s->flags & CK_ENTRY_RESENT && relation == CK_RELATION_COSMETIC),
	     "K11: caller %d makes entry %lu, which was asked for otherwise", label,
	     (unsigned long)e->row.id);
	FOR_SHADOWS (other, w)
		if (other != s && w->keys[other->key].name == w->keys[c->key].name &&
		    w->in_round == 1) /* else it may be EVICTING since a later event */
			MUST(w,
			     other->state != CK_STATE_CREATING &&
				     other->state != CK_STATE_UNKNOWN &&
				     (other->state != CK_STATE_EVICTING ||
				      other->moved_event == w->event),
			     "states: entry %lu is made while entry %lu has its name in the "
			     "runtime",
			     (unsigned long)e->row.id, row_of(w, other));
	oracle_create_beside(w, c);
	struct object *in = c->req.kind == CK_CONTAINER ? world_object(w, c->req.in) : NULL;
	struct shadow *sandbox =
		in && in->stopping && w->in_round == 1 ? shadow_of_object(w, in) : NULL;
	if (sandbox && sandbox->state == CK_STATE_ENDED)
		oracle_fail(w, "K16: a container is made in %s, which is being stopped", in->id);
}

static void check_handed(struct world *w, struct caller *c)
{
	struct ck_entry *e = ck_machine_entry(w->m, c->row);
	int label = (int)(c - w->callers);

	w->shadows[c->row].handed++;
	if (w->in_round > 1) /* a later event of the round may have changed it */
		return;
	MUST(w, e, "caller %d was handed something that has no entry", label);
	if (!e)
		return;
	struct shadow *s = &w->shadows[e->row.id];
	const struct stored *stored = &w->db[e->row.id];
	MUST(w, e->row.state == CK_STATE_COMMITTED,
	     "hidden until committed: caller %d was handed %s, which is %s", label, c->id,
	     ck_state_name(e->row.state));
	MUST(w, s->key == c->key && e->row.result && !strcmp(e->row.result->id, c->id),
	     "K1: caller %d was handed %s", label, c->id);
	MUST(w, s->origin == CK_ORIGIN_CACHE, "K27: caller %d was handed %s, which is not ours",
	     label, c->id);
	MUST(w, !s->running_seen || s->running_hidden, "K5: caller %d was handed %s, which runs",
	     label, c->id);
	MUST(w, !c->deadline || w->now < c->deadline,
	     "K2, K6: caller %d was handed %s after its deadline", label, c->id);
	MUST(w, w->disk_broken || (stored->used && stored->row.state == CK_STATE_COMMITTED),
	     "K29, K32: caller %d was handed %s, %s on disk", label, c->id,
	     ck_state_name(stored->row.state));
	if (w->config.rules.hooks && w->config.told[0] &&
	    !s->found_used) /* what was found in use was visible before plugins could be told */
		MUST(w, e->row.flags & CK_ENTRY_TOLD && s->run,
		     "K7: caller %d was handed %s, and no plugin was told", label, c->id);
	switch (world_compare(w, e, &c->fp)) {
	case CK_RELATION_SAME:
		break;
	case CK_RELATION_COSMETIC:
		MUST(w, w->config.rules.on_annotation_change != CK_ANNOTATION_EVICT,
		     "K12: caller %d was handed %s with other labels", label, c->id);
		break;
	default:
		oracle_fail(w, "K11: caller %d was handed %s, which was asked for otherwise", label,
			    c->id);
		break;
	}
}

void oracle_heard(struct world *w, struct caller *c)
{
	int label = (int)(c - w->callers);
	struct shadow *s = shadow_of_key(w, c->key);

	if (c->drain) {
		MUST(w, c->heard == CK_DRAINED || c->heard == CK_BUSY || !c->here,
		     "K16: a removal was answered %d", c->heard);
		MUST(w, c->heard != CK_BUSY || w->now >= c->margin_at,
		     "K16: removal %d gives up before its margin", label);
		return;
	}
	switch (c->heard) {
	case CK_HAND_BACK:
		check_handed(w, c);
		break;
	case CK_BUSY:
		MUST(w, w->now >= c->margin_at, "K3: caller %d is told BUSY before its margin",
		     label);
		break;
	case CK_CREATE:
	case CK_WAIT:
		oracle_fail(w, "caller %d is decided, and told %d", label, c->heard);
		break;
	case -CK_EFAILED:
		MUST(w, c->turn.decision.status && c->turn.decision.status->grpc,
		     "K4: caller %d is told of a failure without its status", label);
		break;
	case -CK_EUNAVAILABLE:
		MUST(w, c->turn.decision.err.text[0],
		     "K3: caller %d is told UNAVAILABLE without a reason", label);
		break;
	case -CK_EINVAL:
		/* in a round of several events, the pod of the other name may be gone by now */
		MUST(w,
		     c->req.kind == CK_CONTAINER || w->in_round > 1 ||
			     uid_has_another_name(w, c),
		     "K9: caller %d has waited, and its request is refused", label);
		break;
	case -CK_ECONFLICT:
		MUST(w,
		     w->in_round > 1 || !s || ck_state_visible(s->state) ||
			     oracle_conflicts_beside(w, c),
		     "K11: caller %d conflicts with an entry that is %s", label,
		     ck_state_name(s->state));
		break;
	default:
		break;
	}
}

/* the pause after a failed destroy, without its jitter (K18) */
static uint64_t backoff(unsigned fails)
{
	uint64_t pause = CK_BACKOFF_MIN;
	while (--fails && pause < CK_BACKOFF_MAX)
		pause *= 2;
	return pause < CK_BACKOFF_MAX ? pause : CK_BACKOFF_MAX;
}

/* the plugin that is being told of it is waited for (K13) */
static void check_hooks_ended(struct world *w, const struct shadow *s)
{
	for (unsigned i = 0; i < w->jobs_n; i++)
		MUST(w, w->jobs[i].row != row_of(w, s) || w->jobs[i].want != CK_WANT_RUN,
		     "K13: the eviction of entry %lu does not wait for its hooks", row_of(w, s));
}

static void check_destroy(struct world *w, const struct ck_entry *e, struct shadow *s)
{
	unsigned long row = row_of(w, s);

	MUST(w, e->row.state == CK_STATE_EVICTING && e->row.phase == CK_PHASE_DESTROY && s->id[0],
	     "K17: entry %lu is destroyed in state %s", row, ck_state_name(e->row.state));
	MUST(w, e->row.origin == CK_ORIGIN_CACHE || e->row.reason == CK_REASON_DUPLICATE,
	     "K27: entry %lu is not ours and is destroyed", row);
	if (s->flags & CK_ENTRY_TOLD && w->config.rules.hooks && w->config.told[0])
		MUST(w, s->stop_done || s->life != w->life,
		     "K20: entry %lu is destroyed and no plugin was told Stop", row);
	MUST(w, !s->found_used, "K22: entry %lu is destroyed although it is in use", row);
	MUST(w, e->row.reason != CK_REASON_ABSENT,
	     "K25: entry %lu was not listed any more, and is destroyed", row);
	if (s->kind == CK_SANDBOX && w->config.rules.can_list)
		MUST(w, s->checks || s->life != w->life,
		     "K22: entry %lu is destroyed and nobody asked what is in it", row);
	if (s->fails && s->failed_at && !s->shortened)
		MUST(w, w->now - s->failed_at >= backoff(s->fails) / 2,
		     "K18: entry %lu is destroyed again %llu ms after failure %u", row,
		     (unsigned long long)((w->now - s->failed_at) / MS), s->fails);
	if (s->kind == CK_SANDBOX)
		FOR_SHADOWS (other, w)
			if (in_sandbox(w, other, s->id) && other->state == CK_STATE_EVICTING &&
			    other->id[0] &&
			    !other->fails && /* one that failed delays nobody (K19) */
			    other->moved_event <= s->moved_event &&
			    other->phase != CK_PHASE_REMOVE &&
			    object_alive(world_object_of(w, other->id)))
				oracle_fail(w,
					    "K18: sandbox %s is destroyed before its container %s",
					    s->id, other->id);
	const struct stored *stored = &w->db[row];
	MUST(w, w->disk_broken || (stored->used && stored->row.state == CK_STATE_EVICTING),
	     "K29: entry %lu is destroyed before it is written", row);
	s->tried_event = w->event;
}

void oracle_wanted(struct world *w, struct ck_entry *e, unsigned want)
{
	struct shadow *s = &w->shadows[e->row.id];
	const struct stored *stored = &w->db[e->row.id];
	unsigned long row = row_of(w, s);

	switch (want) {
	case CK_WANT_RUN:
		MUST(w,
		     e->row.state == CK_STATE_COMMITTING ||
			     (ck_state_visible(e->row.state) && s->found_used),
		     "K7: hooks run for entry %lu, which is %s", row, ck_state_name(e->row.state));
		MUST(w, !s->run++, "hooks only once: RUN again for entry %lu", row);
		MUST(w, s->hooks_chosen, "H4: RUN for entry %lu before its recipients are chosen",
		     row);
		MUST(w,
		     w->disk_broken || (stored->used && stored->row.state == e->row.state &&
					stored->row.told),
		     "H3, K29: RUN for entry %lu before the told list is on disk", row);
		break;
	case CK_WANT_STOP:
		check_hooks_ended(w, s);
		MUST(w, e->row.state == CK_STATE_EVICTING && e->row.flags & CK_ENTRY_TOLD,
		     "K20: STOP for entry %lu, %s", row, ck_state_name(e->row.state));
		MUST(w, !s->stop++ && !s->tried_event,
		     "K20: STOP for entry %lu comes twice or after its destroy", row);
		break;
	case CK_WANT_REMOVE:
		MUST(w, s->released || s->stop_done || s->life != w->life,
		     "K20: REMOVE for entry %lu before STOP", row);
		MUST(w, !s->removed++, "K20: REMOVE twice for entry %lu", row);
		MUST(w, s->released || !still_exists(w, s),
		     "K20: REMOVE for entry %lu, and %s exists", row, s->id);
		break;
	case CK_WANT_DESTROY:
		check_destroy(w, e, s);
		break;
	case CK_WANT_INSPECT:
		MUST(w, w->config.rules.can_inspect && s->id[0],
		     "K6: entry %lu is to be inspected and cannot be", row);
		break;
	case CK_WANT_LIST:
		MUST(w, w->config.rules.can_list, "K8: a list is wanted, and the host has none");
		break;
	case CK_WANT_CANCEL:
		MUST(w, e->row.state == CK_STATE_EVICTING && e->row.phase == CK_PHASE_HOOKS,
		     "K13: hooks of entry %lu are cut short", row);
		break;
	default:
		break;
	}
}

/* ---- restart (K25) --------------------------------------------------------------------------- */

/* What nobody had listed yet is remembered in memory only, and so is all of it if the disk is full.
 */
static bool stop_is_on_disk(struct world *w, const struct object *o)
{
	const struct shadow *s = shadow_of_object(w, o);
	const struct stored *stored = s ? &w->db[row_of(w, s)] : NULL;
	return stored && stored->used && stored->row.state == CK_STATE_ENDED;
}

void oracle_crashed(struct world *w, bool reboot)
{
	for (unsigned i = 0; i < w->objects_n; i++)
		if (!stop_is_on_disk(w, &w->objects[i]))
			w->objects[i].stop_known = false;
	FOR_SHADOWS (s, w) {
		const struct stored *stored = &w->db[row_of(w, s)];
		if (!stored->used)
			exempt(w, s); /* nobody knows it any more: somebody else's (K32) */
		s->alive = false;
	}
	for (unsigned i = 0; i < w->tombs_n; i++) {
		const struct stored *stored = &w->db[w->tombs[i].row];
		if (reboot || !stored->used || stored->row.state != CK_STATE_GONE)
			w->tombs[i--] = w->tombs[--w->tombs_n];
	}
	for (unsigned i = 0; i < w->creations_n; i++)
		if (!w->db[w->creations[i].row].used)
			w->creations[i].exempt = true;
	/* two objects of one key and one row without an id: nobody knows which is ours */
	for (unsigned i = 0; i < w->objects_n; i++)
		for (unsigned k = 0; k < w->objects_n; k++)
			if (i != k && w->objects[i].key == w->objects[k].key &&
			    object_alive(&w->objects[k]))
				w->objects[i].exempt = true;
}

void oracle_restored(struct world *w, const struct ck_row *row, bool same_boot)
{
	struct ck_entry *e = ck_machine_entry(w->m, row->id);
	struct shadow *s = &w->shadows[row->id], before = *s;
	unsigned long id = (unsigned long)row->id;
	enum ck_state to = row->state;

	if (!e) {
		MUST(w, row->state == CK_STATE_GONE, "K25: row %lu (%s) is not taken up", id,
		     ck_state_name(row->state));
		return;
	}
	memset(s, 0, sizeof(*s));
	s->alive = true;
	s->kind = row->key->kind;
	s->key = before.key;
	s->origin = row->origin;
	s->created = same_boot ? before.created : 0;
	s->interest = same_boot ? row->interest : 0;
	s->fails = row->tries;
	s->shortened = true; /* the oracle does not know when the last try was */
	s->committed = before.committed;
	s->released = before.released;
	s->found_used = before.found_used && ck_state_visible(row->state);
	s->used = row->flags & CK_ENTRY_DELIVERED;
	s->was_kept = row->state == CK_STATE_KEPT || row->state == CK_STATE_COMMITTING;
	/* if plugins were told while nothing could be written, those of this life are told again */
	s->run = (row->flags & CK_ENTRY_TOLD) != 0;
	/* what was not on disk is not known (K32) */
	s->resent = row->flags & CK_ENTRY_RESENT ? 1 : 0;
	s->life = w->life - 1;
	s->moved_event = w->event;
	s->state = row->state;
	s->flags = row->flags;
	s->start_saved = before.start_saved;
	if (same_boot && row->state == CK_STATE_COMMITTED && before.start_saved) {
		s->start = CK_START_LOST;
		s->start_began = before.start_began;
		s->start_lost = w->now;
	}
	cell(w, CELL_RESTART, column_of(s));
	switch (row->state) {
	case CK_STATE_CREATING:
	case CK_STATE_UNKNOWN:
		to = CK_STATE_UNKNOWN;
		MUST(w, !same_boot || e->row.state == CK_STATE_UNKNOWN,
		     "K25: entry %lu was being made and is not lost", id);
		break;
	case CK_STATE_COMMITTING:
		to = CK_STATE_KEPT;
		MUST(w, e->row.flags & CK_ENTRY_TOLD,
		     "K25: entry %lu was being committed and is not told", id);
		break;
	case CK_STATE_EVICTING:
		MUST(w, e->row.tries == row->tries, "K25: entry %lu forgot its %u tries", id,
		     row->tries);
		break;
	default:
		break;
	}
	bool abandoned = e->row.reason == CK_REASON_SANDBOX_EVICTED && to == CK_STATE_KEPT;
	if ((!same_boot || abandoned) && to != CK_STATE_GONE && !ck_state_visible(to))
		to = CK_STATE_EVICTING;
	if (!same_boot && !row->result && !w->config.rules.can_list &&
	    e->row.state == CK_STATE_GONE)
		to = CK_STATE_GONE; /* no id, and no list to find one */
	if (to == CK_STATE_GONE)
		exempt(w, s);
	if (!same_boot && to == CK_STATE_COMMITTED)
		to = CK_STATE_ENDED;
	if (same_boot || row->state != CK_STATE_COMMITTED)
		MUST(w, e->row.state == to, "K25: entry %lu was %s and is %s", id,
		     ck_state_name(row->state), ck_state_name(e->row.state));
	s->state = e->row.state;
	s->phase = e->row.phase;
	if (e->row.state == CK_STATE_UNKNOWN || s->phase == CK_PHASE_FIND) {
		bool before_too = same_boot && row->searched; /* its ages go on (K8) */
		s->lost_at = before_too ? row->searched : w->now;
		s->absent_since = before_too ? row->absent : 0;
	}
	s->flags = e->row.flags;
}
