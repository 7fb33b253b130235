/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Giving up an entry: wait for what is still under way, check that it is not in use, tell the
 * plugins, destroy it, tell the plugins again, forget it.
 *
 *   CREATION -> FIND -.
 *         '-----------+-> CHECK -> STOP -> DESTROY -> REMOVE -> (GONE, a tombstone)
 *   HOOKS ------------'     '-- in use: COMMITTED    after each failure: a pause, then again
 *
 * CREATION ends when the creator reports, FIND when a list tells the id or nothing is found for
 * long enough (lost.c), HOOKS when the plugin that is being asked has answered. What a list no
 * longer shows goes on with STOP and skips DESTROY. From CHECK on an entry is being destroyed: at
 * most CK_DESTROYS_MAX at once, each from its first question until the destroy is confirmed or
 * fails. Entries that may not start yet wait in the order in which they became due. The rules
 * are those of crikeep-rules(7), "6. DESTROYING".
 */
#include <stdio.h>

#include "cache/machine/machine-int.h"

/* destroy calls in flight for one entry: one that timed out and its repetition */
#define DESTROYS_OF_ONE 2
/* why nothing was destroyed (K22) */
#define NOT_KNOWN "the runtime did not say whether it is in use"

static void ready_add(struct ck_machine *m, struct ck_entry *e)
{
	if (e->in.evicting.effort == CK_QUEUED)
		return;
	e->in.evicting.effort = CK_QUEUED;
	DL_APPEND2(m->ready, e, ready_prev, ready_next);
}

static void effort_end(struct ck_machine *m, struct ck_entry *e)
{
	if (e->in.evicting.effort == CK_QUEUED)
		DL_DELETE2(m->ready, e, ready_prev, ready_next);
	m->destroying -= ck_destroying(e);
	e->in.evicting.effort = CK_PAUSED;
}

static void phase_set(struct ck_machine *m, struct ck_entry *e, enum ck_phase phase)
{
	e->row.phase = phase;
	ck_dirty(m, e);
}

/* the containers of a sandbox go first */
static void evict_containers(struct ck_machine *m, struct ck_entry *e)
{
	if (e->row.key->kind != CK_SANDBOX)
		return;
	for (struct ck_entry *c = ck_sandbox_containers(m, e->row.result->id); c;
	     c = c->link[CK_BY_SANDBOX].next)
		ck_abandon(m, c, CK_REASON_SANDBOX_EVICTED);
}

static enum ck_phase first_phase(const struct ck_entry *e)
{
	if (e->row.result)
		return e->outstanding & CK_WANT_RUN ? CK_PHASE_HOOKS : CK_PHASE_CHECK;
	return e->row.state == CK_STATE_CREATING && e->creator ? CK_PHASE_CREATION : CK_PHASE_FIND;
}

/* nothing of it is under way any more, and its id is known */
static void check_begins(struct ck_machine *m, struct ck_entry *e)
{
	phase_set(m, e, e->row.reason == CK_REASON_ABSENT ? CK_PHASE_STOP : CK_PHASE_CHECK);
	/* a late answer to FIND says nothing about what is in the sandbox */
	e->changed_seq = m->seq;
	ck_unwant(m, e, CK_WANT_LIST | CK_WANT_CANCEL);
	e->outstanding &= ~(unsigned)CK_WANT_LIST;
	ck_entry_schedule(m, e, CK_NEVER_DUE);
	evict_containers(m, e);
	ready_add(m, e);
}

void ck_evict_for(struct ck_machine *m, struct ck_entry *e, enum ck_reason reason,
		  struct ck_mturn *t)
{
	uint64_t due = e->timer.at ? e->timer.due : CK_NEVER_DUE;
	if (e->wants & CK_WANT_RUN) /* no plugin was told yet */
		ck_untell(m, e);
	enum ck_phase phase = first_phase(e);
	ck_unwant(m, e, ~0u);
	/* answers to older questions say nothing about an eviction */
	e->outstanding &= ~(unsigned)(CK_WANT_INSPECT | CK_WANT_LIST);
	e->row.reason = reason;
	ck_search_ends(e);
	e->row.tries = 0;
	m->counters.evicted[e->row.key->kind]++;
	ck_entry_move(m, e, CK_STATE_EVICTING);
	if (t)
		ck_turn_explain(m, t, e, reason);
	phase_set(m, e, phase);
	switch (phase) {
	case CK_PHASE_CREATION: /* its creator has as long as before to report */
		ck_entry_schedule(m, e, due);
		break;
	case CK_PHASE_FIND:
		ck_search(m, e, true);
		break;
	case CK_PHASE_HOOKS:
		ck_want(m, e, CK_WANT_CANCEL); /* the plugin being asked is waited for (K13) */
		break;
	default:
		check_begins(m, e);
	}
}

void ck_evict(struct ck_machine *m, struct ck_entry *e, enum ck_reason reason)
{
	ck_evict_for(m, e, reason, NULL);
}

/* ---- giving up ------------------------------------------------------------------------------- */

/* Every turn that joined the entry hears that it is over. The creator may go on, but its caller
 * gets no answer from it. */
void ck_abandon_for(struct ck_machine *m, struct ck_entry *e, enum ck_reason reason,
		    struct ck_mturn *t)
{
	if (!ck_state_open(e->row.state))
		return;
	CK_FOR_TURNS (waiting, ck_pod_of(e))
		if (waiting->row == e->row.id &&
		    (waiting->state == CK_TURN_JOINED || waiting->state == CK_TURN_CREATING ||
		     waiting->state == CK_TURN_ORPHANED))
			ck_turn_supersede(m, waiting, reason);
	ck_evict_for(m, e, reason, t);
}

void ck_abandon(struct ck_machine *m, struct ck_entry *e, enum ck_reason reason)
{
	ck_abandon_for(m, e, reason, NULL);
}

int ck_machine_evict(struct ck_machine *m, uint64_t row, bool release, char *ret_text, size_t size)
{
	struct ck_entry *e = ck_machine_entry(m, row);
	if (!e || e->detached || e->row.state == CK_STATE_GONE) {
		snprintf(ret_text, size, "no such entry");
		return -CK_ENOTFOUND;
	}
	if (ck_state_visible(e->row.state)) {
		snprintf(ret_text, size, "refused: it is committed and belongs to the kubelet");
		return -CK_ESTATE;
	}
	if (release && e->row.state != CK_STATE_EVICTING) {
		snprintf(ret_text, size,
			 "refused: only an entry that is being evicted can be released; evict it "
			 "first");
		return -CK_ESTATE;
	}
	if (release && (e->creator || e->row.phase == CK_PHASE_HOOKS)) {
		snprintf(ret_text, size, "refused: its creation or its hooks have not ended yet");
		return -CK_ESTATE;
	}
	ck_event_begin(m);
	if (release && e->row.phase == CK_PHASE_REMOVE) {
		snprintf(ret_text, size, "it is destroyed already; plugins are being told");
	} else if (release) {
		e->row.reason = CK_REASON_RELEASED;
		m->counters.released[e->row.key->kind]++;
		ck_history_add(m, e, CK_WHAT_RELEASED, 0, NULL);
		ck_evict_confirmed(m, e);
		snprintf(ret_text, size,
			 "released without confirmation; the resource may still exist");
	} else if (e->row.state == CK_STATE_EVICTING) {
		ck_evict_hurry(m, e);
		snprintf(ret_text, size, "already being evicted; trying again now");
	} else {
		ck_abandon(m, e, CK_REASON_ADMIN);
		snprintf(ret_text, size, "evicting%s",
			 e->row.phase == CK_PHASE_CHECK ? ""
							: "; it will be destroyed when its "
							  "creation or its hooks end");
	}
	ck_event_end(m);
	return 0;
}

/* ---- destroying ------------------------------------------------------------------------------ */

static uint64_t back_off(struct ck_machine *m, unsigned tries)
{
	uint64_t pause = CK_BACKOFF_MIN;
	while (--tries && pause < CK_BACKOFF_MAX)
		pause *= 2;
	if (pause > CK_BACKOFF_MAX)
		pause = CK_BACKOFF_MAX;
	return pause - pause / 8 + m->ops.jitter(m->user, pause / 4); /* plus or minus 12.5 % */
}

/* @why: redacted words for the history, or NULL */
static void failed(struct ck_machine *m, struct ck_entry *e, int grpc, const char *why)
{
	effort_end(m, e);
	ck_unwant(m, e, CK_WANT_INSPECT | CK_WANT_LIST | CK_WANT_DESTROY);
	e->outstanding &= ~(unsigned)(CK_WANT_INSPECT | CK_WANT_LIST);
	e->row.tries++;
	e->row.last_grpc = grpc;
	m->counters.destroy_failures[e->row.key->kind]++;
	ck_history_add(m, e, CK_WHAT_DESTROY_FAILED, grpc, why);
	ck_dirty(m, e);
	ck_entry_schedule(m, e, m->now + back_off(m, e->row.tries));
}

static void gone(struct ck_machine *m, struct ck_entry *e)
{
	effort_end(m, e);
	if (!e->row.result) { /* without an id there is nothing to hide (K21) */
		ck_entry_drop(m, e);
		return;
	}
	ck_entry_move(m, e, CK_STATE_GONE);
	ck_entry_schedule(m, e, m->now + CK_TOMBSTONE);
	if (m->rules.hooks)
		m->ops.released(m->user, e);
}

void ck_tombstone_end(struct ck_machine *m, struct ck_entry *e)
{
	ck_entry_detach(m, e);
	ck_dirty(m, e);
}

void ck_gone_expired(struct ck_machine *m, struct ck_entry *e)
{
	for (size_t i = 0; i < m->views_n; i++) {
		if (m->views[i] <= e->changed_seq) {
			ck_entry_schedule(m, e, m->now + CK_GAP);
			return;
		}
	}
	ck_tombstone_end(m, e);
}

/* are plugins to hear of its end? */
static bool owes_end(const struct ck_machine *m, const struct ck_entry *e)
{
	return m->rules.hooks && e->row.flags & CK_ENTRY_TOLD;
}

void ck_evict_confirmed(struct ck_machine *m, struct ck_entry *e)
{
	/* what was never made, or is absent, or was released, was not destroyed */
	m->counters.destroyed[e->row.key->kind] += e->row.phase == CK_PHASE_DESTROY &&
						   e->row.reason != CK_REASON_ABSENT &&
						   e->row.reason != CK_REASON_RELEASED;
	effort_end(m, e);
	ck_unwant(m, e, ~0u);
	ck_entry_schedule(m, e, CK_NEVER_DUE);
	if (owes_end(m, e)) { /* Remove after the destroy (K20) */
		phase_set(m, e, CK_PHASE_REMOVE);
		if (!(e->outstanding & CK_WANT_REMOVE))
			ck_want(m, e, CK_WANT_REMOVE);
	} else {
		gone(m, e);
	}
}

/* A list will tell whether a container that nobody is known to have was ever started (K25). */
static void container_ends(struct ck_machine *m, struct ck_entry *e)
{
	bool undelivered = e->in.committed.undelivered && !e->in.committed.unanswered;
	ck_entry_move(m, e, CK_STATE_ENDED);
	e->in.committed.undelivered = undelivered;
}

void ck_containers_stopped(struct ck_machine *m, const char *sandbox_id)
{
	for (struct ck_entry *c = ck_sandbox_containers(m, sandbox_id); c;
	     c = c->link[CK_BY_SANDBOX].next) {
		ck_touch(m, ck_pod_of(c));
		if (c->row.state == CK_STATE_COMMITTED) {
			container_ends(m, c);
		} else if (c->row.state == CK_STATE_EVICTING) {
			ck_evict_hurry(m, c);
		} else {
			ck_abandon(m, c, CK_REASON_SANDBOX_STOPPED);
		}
	}
}

void ck_ended(struct ck_machine *m, struct ck_entry *e)
{
	bool stop_told = e->in.committed.stop_told;
	if (e->row.state == CK_STATE_COMMITTED) {
		ck_entry_move(m, e, CK_STATE_ENDED);
		e->in.committed.stop_told = stop_told;
	}
	if (e->row.key->kind == CK_SANDBOX)
		ck_containers_stopped(m, e->row.result->id);
}

/* ---- in use ---------------------------------------------------------------------------------- */

/* It exists, is hidden, and is not destroyed yet. What is given up during its hooks is asked after
 * when they have ended. */
static bool may_be_in_use(const struct ck_entry *e)
{
	if (e->row.state == CK_STATE_EVICTING)
		return e->row.phase != CK_PHASE_HOOKS && e->row.phase != CK_PHASE_REMOVE;
	return ck_state_open(e->row.state);
}

/* whoever uses a duplicate keeps it, and it is never served (K26, K27) */
static bool is_duplicate(const struct ck_entry *e)
{
	if (e->row.state != CK_STATE_EVICTING)
		return false;
	for (const struct ck_entry *other = ck_machine_same_key(e, NULL); other;
	     other = ck_machine_same_key(e, other))
		if (ck_state_is_current(other->row.state))
			return true;
	return false;
}

/* Plugins hear of what is in use as of any commit, but nobody can refuse it. */
void ck_tell_used(struct ck_machine *m, struct ck_entry *e)
{
	struct ck_error err = { 0 };
	if (!m->rules.hooks || e->row.flags & CK_ENTRY_TOLD)
		return;
	if (ck_entry_choose(m, e, &err)) {
		if (e->row.told[0])
			ck_want(m, e, CK_WANT_RUN);
	} else if (err.code == CK_ENOMEM) {
		ck_entry_schedule(m, e, m->now + CK_GAP);
	} else {
		ck_history_add(m, e, CK_WHAT_NOT_TOLD, 0, err.text);
	}
}

static void used(struct ck_machine *m, struct ck_entry *e, bool dead)
{
	if (!may_be_in_use(e))
		return;
	/* Nothing is done to it, so lists that were begun before still tell how it is. */
	uint64_t seq = e->row.state == CK_STATE_COMMITTING ? m->seq : e->changed_seq;
	bool stop_told = e->row.phase == CK_PHASE_DESTROY && owes_end(m, e);
	dead = dead || (e->row.state == CK_STATE_UNKNOWN && e->in.creating.dead);
	if (e->row.state == CK_STATE_EVICTING) {
		dead = dead || e->in.evicting.dead;
		effort_end(m, e);
	}
	ck_unwant(m, e, ~(unsigned)CK_WANT_RUN);
	e->outstanding &= ~(unsigned)(CK_WANT_INSPECT | CK_WANT_LIST);
	if (e->creator)
		ck_creator_parts(m, e->creator);
	m->counters.in_use[e->row.key->kind]++;
	ck_history_add(m, e, CK_WHAT_IN_USE, 0, NULL);
	if (is_duplicate(e))
		e->row.origin = CK_ORIGIN_RUNTIME;
	phase_set(m, e, CK_PHASE_NONE);
	e->row.reason = CK_REASON_NONE;
	ck_somebody_has(m, e); /* also after a restart */
	ck_entry_move(m, e, CK_STATE_COMMITTED);
	e->changed_seq = seq;
	e->in.committed.stop_told = stop_told;
	if (dead)
		ck_ended(m, e);
	ck_tell_used(m, e);
}

/* Plugins hear of a sandbox before they hear of a container in it. */
static void used_with_sandbox(struct ck_machine *m, struct ck_entry *e, bool dead)
{
	struct ck_entry *sandbox = ck_machine_object(m, CK_SANDBOX, e->row.key->sandbox_id);
	if (sandbox)
		used(m, sandbox, false);
	used(m, e, dead);
}

void ck_in_use(struct ck_machine *m, struct ck_entry *e)
{
	used_with_sandbox(m, e, false);
}

void ck_was_in_use(struct ck_machine *m, struct ck_entry *e)
{
	if (e->row.state == CK_STATE_EVICTING)
		e->in.evicting.dead = true;
	used_with_sandbox(m, e, true);
}

bool ck_has_visible_container(struct ck_machine *m, const struct ck_entry *e)
{
	uint64_t last = m->lists[CK_CONTAINER].stamp;
	for (struct ck_entry *c = ck_sandbox_containers(m, e->row.result->id); c;
	     c = c->link[CK_BY_SANDBOX].next)
		if (last && c->list_stamp == last && !ck_machine_hidden(c))
			return true;
	return false;
}

/* Asked before each try (K22). True: the answer is awaited, or it is in use. */
static bool check_use(struct ck_machine *m, struct ck_entry *e)
{
	bool sandbox = e->row.key->kind == CK_SANDBOX;
	if (e->in.evicting.effort == CK_CHECKED)
		return false;
	if (sandbox ? m->rules.can_list : m->rules.can_inspect) {
		ck_want(m, e, sandbox ? CK_WANT_LIST : CK_WANT_INSPECT);
		return true;
	}
	/* the host cannot be asked, but a list has shown it */
	if (sandbox ? ck_has_visible_container(m, e) : e->running) {
		ck_in_use(m, e);
		return true;
	}
	return false;
}

/* goes on from the phase that the entry is in, which is being destroyed */
static void step(struct ck_machine *m, struct ck_entry *e)
{
	if (CK_NEVER(ck_evict_waits(e)))
		return;
	/* no answer by then is a failure */
	ck_entry_schedule(m, e, m->now + m->rules.destroy_timeout);
	switch (e->row.phase) {
	case CK_PHASE_CHECK:
		if (check_use(m, e))
			return;
		phase_set(m, e, CK_PHASE_STOP);
		/* fall through */
	case CK_PHASE_STOP:
		if (owes_end(m, e)) { /* Stop before the destroy (K20) */
			phase_set(m, e, CK_PHASE_STOP);
			if (!(e->outstanding & CK_WANT_STOP))
				ck_want(m, e, CK_WANT_STOP);
			return;
		}
		phase_set(m, e, CK_PHASE_DESTROY);
		/* fall through */
	case CK_PHASE_DESTROY:
		if (e->row.reason == CK_REASON_ABSENT) { /* nothing is left to destroy */
			ck_evict_confirmed(m, e);
			return;
		}
		if (check_use(m, e))
			return;
		/* the host has not answered the last calls; more of them would pile up */
		if (e->destroy_calls >= DESTROYS_OF_ONE) {
			effort_end(m, e);
			ck_entry_schedule(m, e, m->now + CK_BACKOFF_MAX);
			return;
		}
		e->in.evicting.tried_seq = m->seq;
		ck_want(m, e, CK_WANT_DESTROY);
		return;
	case CK_PHASE_REMOVE:
		ck_evict_confirmed(m, e);
		return;
	default: /* what waits for its creation or its hooks is not ready */
		break;
	}
}

static bool may_start(struct ck_machine *m, struct ck_entry *e)
{
	for (struct ck_entry *other = ck_pod_of(e)->entries; other; other = ck_pod_next(other))
		if (ck_destroying(other))
			return false; /* one destroy per pod (K18) */
	if (e->row.key->kind != CK_SANDBOX)
		return true;
	/* containers first (K18), except those that failed: they delay nobody (K19) */
	for (struct ck_entry *c = ck_sandbox_containers(m, e->row.result->id); c;
	     c = c->link[CK_BY_SANDBOX].next) {
		if (ck_state_open(c->row.state) ||
		    (c->row.state == CK_STATE_EVICTING && (ck_destroying(c) || !c->row.tries)))
			return false;
	}
	return true;
}

void ck_evict_pump(struct ck_machine *m)
{
	if (!ck_machine_reconciled(m))
		return; /* nothing is destroyed before the first list (K24) */
	for (struct ck_entry *e = m->ready, *next; e; e = next) {
		next = e->ready_next;
		if (m->destroying >= CK_DESTROYS_MAX)
			return; /* enough at once (K18) */
		if (!may_start(m, e))
			continue;
		effort_end(m, e);
		e->in.evicting.effort = CK_STARTED;
		m->destroying++;
		step(m, e);
		next = m->ready; /* it may have ended at once, so that others may start */
	}
}

bool ck_evict_waits(const struct ck_entry *e)
{
	return e->row.phase < CK_PHASE_CHECK;
}

void ck_evict_expired(struct ck_machine *m, struct ck_entry *e)
{
	enum ck_want hook = e->row.phase == CK_PHASE_STOP ? CK_WANT_STOP : CK_WANT_REMOVE;
	if (e->row.phase == CK_PHASE_REMOVE ||
	    (ck_destroying(e) && e->row.phase == CK_PHASE_STOP)) {
		/* wanted again if it could not start; plugins have deadlines of their own (H5) */
		if (!(e->outstanding & hook))
			ck_want(m, e, hook);
		ck_entry_schedule(m, e, m->now + m->rules.destroy_timeout);
	} else if (ck_destroying(e)) {
		failed(m, e, CK_GRPC_DEADLINE_EXCEEDED, "there was no answer in time");
	} else {
		ready_add(m, e);
	}
}

void ck_evict_hurry(struct ck_machine *m, struct ck_entry *e)
{
	if (e->in.evicting.effort != CK_PAUSED || ck_evict_waits(e) ||
	    e->row.phase == CK_PHASE_REMOVE)
		return;
	ck_entry_schedule(m, e, CK_NEVER_DUE);
	ready_add(m, e);
}

void ck_evict_resume(struct ck_machine *m, struct ck_entry *e)
{
	if (!e->row.result) {
		phase_set(m, e, CK_PHASE_FIND);
		ck_search(m, e, false);
		return;
	}
	if (ck_evict_waits(e))
		phase_set(m, e, CK_PHASE_CHECK);
	if (e->row.tries)
		ck_entry_schedule(m, e, m->now + back_off(m, e->row.tries));
	else
		ready_add(m, e);
}

void ck_evict_goes_on(struct ck_machine *m, struct ck_entry *e)
{
	if (e->row.state == CK_STATE_EVICTING && !CK_NEVER(!ck_evict_waits(e)))
		check_begins(m, e);
}

static void not_in_use(struct ck_machine *m, struct ck_entry *e)
{
	e->in.evicting.effort = CK_CHECKED;
	if (e->row.phase == CK_PHASE_CHECK)
		phase_set(m, e, CK_PHASE_STOP);
	step(m, e);
}

/* Is it being asked whether it is in use? If not, another answer came before this one. */
static bool is_asked_about(const struct ck_entry *e)
{
	return e->in.evicting.effort == CK_STARTED &&
	       !CK_NEVER(e->row.phase != CK_PHASE_CHECK && e->row.phase != CK_PHASE_DESTROY);
}

/* what is in a sandbox. lost.c handles the answer to FIND, as for a lost creation */
void ck_evict_listed(struct ck_machine *m, struct ck_entry *e, bool ok, const struct ck_object *o,
		     size_t n)
{
	if (!is_asked_about(e))
		return;
	if (!ok) {
		failed(m, e, CK_GRPC_UNAVAILABLE, NOT_KNOWN);
		return;
	}
	for (size_t i = 0; i < n; i++) {
		if (o[i].kind != CK_CONTAINER || !o[i].sandbox_id ||
		    strcmp(o[i].sandbox_id, e->row.result->id))
			continue;
		const struct ck_entry *c = ck_machine_object(m, CK_CONTAINER, o[i].id);
		bool ours = c && ck_machine_hidden(c);
		for (struct ck_entry *k = c ? NULL : ck_sandbox_containers(m, e->row.result->id);
		     k && !ours; k = k->link[CK_BY_SANDBOX].next)
			ours = !k->row.result && k->row.key->attempt == o[i].attempt &&
			       o[i].container_name &&
			       !strcmp(k->row.key->container, o[i].container_name);
		if (ck_condition_used(o[i].condition) || !ours) {
			ck_in_use(m, e);
			return;
		}
	}
	not_in_use(m, e);
}

void ck_evict_inspected(struct ck_machine *m, struct ck_entry *e, enum ck_condition condition)
{
	if (!is_asked_about(e))
		return;
	if (ck_condition_used(condition)) {
		ck_condition_seen(m, e, condition);
	} else if (condition == CK_CONDITION_UNKNOWN) {
		failed(m, e, CK_GRPC_UNAVAILABLE, NOT_KNOWN);
	} else {
		not_in_use(m, e);
	}
}

void ck_evict_hook_done(struct ck_machine *m, struct ck_entry *e, enum ck_hook_event event)
{
	if (ck_state_visible(e->row.state)) /* found in use while they were told (K22) */
		e->in.committed.stop_told = true;
	if (e->row.state != CK_STATE_EVICTING)
		return;
	if (event == CK_HOOK_REMOVE) {
		gone(m, e);
	} else if (e->row.phase == CK_PHASE_STOP) {
		phase_set(m, e, CK_PHASE_DESTROY);
		if (ck_destroying(e)) /* else it waits for another one (K18) */
			step(m, e);
	}
}

void ck_machine_destroyed(struct ck_machine *m, uint64_t row, int grpc, const char *message)
{
	struct ck_entry *e = ck_machine_entry(m, row);
	if (!e || e->detached || CK_NEVER(!e->destroy_calls))
		return;
	ck_event_begin(m);
	if (--e->destroy_calls == 0)
		e->outstanding &= ~(unsigned)CK_WANT_DESTROY;
	bool confirmed = grpc == CK_GRPC_OK || grpc == CK_GRPC_NOT_FOUND;
	ck_touch(m, ck_pod_of(e)); /* whoever asks for it may be waiting for this answer */
	if (ck_state_visible(e->row.state) && confirmed) {
		/* found in use when this call was under way (K22) */
		bool stop_told = e->in.committed.stop_told;
		ck_ended(m, e);
		ck_evict(m, e, CK_REASON_ABSENT);
		if (stop_told) /* once (K20) */
			phase_set(m, e, CK_PHASE_DESTROY);
	} else if (e->row.state == CK_STATE_EVICTING && e->row.phase == CK_PHASE_DESTROY) {
		if (confirmed)
			/* also if it came after its time-out, or after a later try failed (K17) */
			ck_evict_confirmed(m, e);
		else if (ck_destroying(e) && !e->destroy_calls)
			/* the failure of an earlier try was counted when its time was up */
			failed(m, e, grpc, message);
	}
	ck_event_end(m);
}
