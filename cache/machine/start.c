/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The start of a container (K34). The host calls the runtime, and says how that ended; here is what
 * another attempt of the slot waits for, or conflicts with.
 *
 *           .-> UNHEARD        it runs, and nobody has heard that
 *   CALLED -+-> NONE           its caller has heard the end
 *           '-> LOST -> NONE   it was not started, or has ended
 *                 '---> UNHEARD
 *
 * While it is LOST, the host is asked for its status. A restart makes LOST of what is not NONE.
 */
#include "cache/machine/machine-int.h"

/* when a status that says "created" decides that it was not started */
static uint64_t over_at(const struct ck_machine *m, const struct ck_entry *e)
{
	uint64_t grace = e->in.committed.start_lost + m->rules.lost_grace;
	uint64_t most = e->row.staged + m->rules.create_deadline;
	return grace < most ? grace : most;
}

static void decide(struct ck_machine *m, struct ck_entry *e, enum ck_start start)
{
	bool asked = e->row.start == CK_START_LOST;
	e->row.start = start;
	e->in.committed.start_resumed = false;
	ck_dirty(m, e);
	ck_touch(m, ck_pod_of(e));
	if (!asked)
		return;
	ck_unwant(m, e, CK_WANT_INSPECT);
	e->outstanding &= ~(unsigned)CK_WANT_INSPECT;
	ck_entry_schedule(m, e, CK_NEVER_DUE);
	ck_tell_used(m, e); /* it has no other timer */
}

static void unheard(struct ck_machine *m, struct ck_entry *e)
{
	decide(m, e, CK_START_UNHEARD);
	m->counters.starts_unheard[0]++;
	ck_history_add(m, e, CK_WHAT_START_UNHEARD, 0, NULL);
}

static void failed(struct ck_machine *m, struct ck_entry *e, int grpc, const char *why)
{
	if (e->restored && e->row.start == CK_START_LOST)
		ck_gave_up(m, e);
	decide(m, e, CK_START_NONE);
	ck_history_add(m, e, CK_WHAT_START_FAILED, grpc, why);
}

static void ask(struct ck_machine *m, struct ck_entry *e)
{
	if (!m->rules.can_inspect) {
		ck_entry_schedule(m, e, over_at(m, e));
		return;
	}
	/* a status tells how it was when the question began */
	if (!e->decisive_seq && m->now >= over_at(m, e))
		e->decisive_seq = m->seq;
	ck_want(m, e, CK_WANT_INSPECT);
	/* if no answer comes by then, none will */
	ck_entry_schedule(m, e, m->now + m->rules.destroy_timeout);
}

static void search(struct ck_machine *m, struct ck_entry *e)
{
	e->in.committed.start_lost = m->now;
	e->decisive_seq = 0;
	ask(m, e);
}

static void lost(struct ck_machine *m, struct ck_entry *e)
{
	if (e->running) {
		unheard(m, e);
		return;
	}
	decide(m, e, CK_START_LOST);
	m->counters.starts_lost[0]++;
	ck_history_add(m, e, CK_WHAT_START_LOST, 0, NULL);
	search(m, e);
}

/* ---- what the host says ---------------------------------------------------------------------- */

int ck_machine_start_begin(struct ck_machine *m, const char *id)
{
	struct ck_entry *e = ck_machine_object(m, CK_CONTAINER, id);
	/* the runtime will refuse to start what runs or has ended */
	if (!e || e->row.state != CK_STATE_COMMITTED || e->running)
		return -CK_ENOTFOUND;
	ck_event_begin(m);
	bool resumed = e->row.start == CK_START_LOST;
	decide(m, e, CK_START_CALLED);
	e->in.committed.start_resumed = resumed;
	e->row.staged = m->now;
	e->row.flags |= CK_ENTRY_DELIVERED;
	ck_taken(m, e);
	ck_history_add(m, e, CK_WHAT_START_BEGUN, 0, NULL);
	ck_event_end(m);
	return 0;
}

void ck_machine_start_end(struct ck_machine *m, const char *id, enum ck_start_end end, int grpc)
{
	struct ck_entry *e = ck_machine_object(m, CK_CONTAINER, id);
	if (!e || e->row.start != CK_START_CALLED)
		return; /* it was stopped or removed meanwhile */
	ck_event_begin(m);
	switch (end) {
	case CK_START_HEARD:
	case CK_START_TOO_LATE:
		ck_condition_seen(m, e, CK_CONDITION_RUNNING);
		if (end == CK_START_HEARD)
			decide(m, e, CK_START_NONE);
		else
			unheard(m, e);
		break;
	case CK_START_REFUSED:
		/* perhaps because the first call is still under way */
		if (e->in.committed.start_resumed)
			lost(m, e);
		else
			failed(m, e, grpc, NULL);
		break;
	case CK_START_OPEN:
		lost(m, e);
		break;
	}
	ck_event_end(m);
}

void ck_machine_start_stopped(struct ck_machine *m, const char *id)
{
	struct ck_entry *e = ck_machine_object(m, CK_CONTAINER, id);
	if (!e || !e->row.start)
		return;
	ck_event_begin(m);
	decide(m, e, CK_START_NONE);
	ck_event_end(m);
}

/* ---- a start whose end is not known ---------------------------------------------------------- */

void ck_start_seen_running(struct ck_machine *m, struct ck_entry *e)
{
	if (e->row.start == CK_START_LOST)
		unheard(m, e);
	else if (e->row.start)
		ck_touch(m, ck_pod_of(e)); /* another attempt that waits need not wait on */
}

void ck_start_inspected(struct ck_machine *m, struct ck_entry *e, uint64_t begun_seq,
			enum ck_condition condition)
{
	if (CK_NEVER(e->row.start != CK_START_LOST)) /* nothing else asks about it */
		return;
	if (condition == CK_CONDITION_RUNNING || ck_condition_dead(condition))
		ck_condition_seen(m, e, condition);
	else if (condition == CK_CONDITION_ABSENT ||
		 (condition == CK_CONDITION_READY && e->decisive_seq &&
		  ck_list_counts(begun_seq, e->decisive_seq)))
		failed(m, e, 0, "the runtime has not started it");
	else
		ck_entry_schedule(m, e, m->now + CK_INSPECT_AGAIN);
}

void ck_start_expired(struct ck_machine *m, struct ck_entry *e)
{
	if (e->row.state != CK_STATE_COMMITTED || e->row.start != CK_START_LOST)
		return;
	if ((e->wants | e->outstanding) & CK_WANT_INSPECT) { /* there was no answer */
		ck_unwant(m, e, CK_WANT_INSPECT);
		e->outstanding &= ~(unsigned)CK_WANT_INSPECT;
	}
	if (!m->rules.can_inspect && m->now >= over_at(m, e))
		failed(m, e, 0, "nobody knows whether the runtime has started it");
	else
		ask(m, e);
}

void ck_start_restored(struct ck_machine *m, struct ck_entry *e)
{
	if (e->row.state != CK_STATE_COMMITTED || e->row.key->kind != CK_CONTAINER)
		e->row.start = CK_START_NONE;
	else if (e->row.start == CK_START_CALLED)
		lost(m, e);
	else if (e->row.start) { /* whether it still runs is not known yet */
		decide(m, e, CK_START_LOST);
		search(m, e);
	}
}
