/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of the host and of the hooks to what the machine wanted. */
#include <stdio.h>

#include "cache/machine/machine-int.h"

void ck_machine_inspected(struct ck_machine *m, uint64_t row, uint64_t begun_seq,
			  enum ck_condition condition)
{
	struct ck_entry *e = ck_machine_entry(m, row);
	if (!e || e->detached || !(e->outstanding & CK_WANT_INSPECT) ||
	    !ck_list_counts(begun_seq, e->changed_seq))
		return;
	ck_event_begin(m);
	e->outstanding &= ~(unsigned)CK_WANT_INSPECT;
	if (e->row.state == CK_STATE_EVICTING)
		ck_evict_inspected(m, e, condition);
	else if (e->row.state == CK_STATE_KEPT)
		ck_inspected_kept(m, e, condition);
	else if (e->row.state == CK_STATE_COMMITTED)
		ck_start_inspected(m, e, begun_seq, condition);
	ck_event_end(m);
}

static void run_answered(struct ck_machine *m, struct ck_entry *e, const char *refusal)
{
	if (e->detached)
		return;
	if (refusal && !ck_state_visible(e->row.state))
		ck_history_add(m, e, CK_WHAT_REFUSED, 0, refusal);
	ck_evict_goes_on(m, e); /* if it was given up during its hooks (K13) */
	if (e->row.state != CK_STATE_COMMITTING)
		return; /* it was found in use, and plugins were told afterwards (K22) */
	if (refusal) {
		CK_FOR_TURNS (t, ck_pod_of(e))
			if (t->row == e->row.id && t->state == CK_TURN_JOINED)
				ck_turn_answer(m, t, -CK_EREFUSED, "%s", refusal);
		ck_evict(m, e, CK_REASON_REFUSED);
	} else {
		ck_committed(m, e, false);
	}
}

/* For the history: the plugins that were sent the event or, of a RUN nobody refused, the chosen
 * ones. */
static void note_told(struct ck_machine *m, struct ck_entry *e, enum ck_hook_event event,
		      const char *told, bool refused)
{
	static const enum ck_what whats[] = {
		[CK_HOOK_RUN] = CK_WHAT_TOLD,
		[CK_HOOK_STOP] = CK_WHAT_STOP_TOLD,
		[CK_HOOK_REMOVE] = CK_WHAT_REMOVE_TOLD,
	};
	if (!told && event == CK_HOOK_RUN && !refused)
		told = e->row.told;
	if (!told || *told)
		ck_history_add(m, e, whats[event], 0, told);
}

int ck_machine_note_told(struct ck_machine *m, enum ck_kind kind, const char *id,
			 enum ck_hook_event event, const char *names)
{
	struct ck_entry *e = ck_machine_object(m, kind, id);
	if (!e)
		return -CK_ENOTFOUND;
	ck_event_begin(m);
	note_told(m, e, event, names, false);
	ck_event_end(m);
	return 0;
}

void ck_machine_hook_done(struct ck_machine *m, uint64_t row, enum ck_hook_event event,
			  const char *told, const char *refusal)
{
	struct ck_entry *e = ck_machine_entry(m, row);
	unsigned want = event == CK_HOOK_RUN    ? CK_WANT_RUN
			: event == CK_HOOK_STOP ? CK_WANT_STOP
						: CK_WANT_REMOVE;
	if (!e || !(e->outstanding & want))
		return;
	ck_event_begin(m);
	e->outstanding &= ~want;
	if (!e->detached)
		note_told(m, e, event, told, refusal);
	if (event == CK_HOOK_RUN)
		run_answered(m, e, refusal);
	else if (!e->detached)
		ck_evict_hook_done(m, e, event);
	ck_event_end(m);
}

void ck_machine_job_failed(struct ck_machine *m, struct ck_entry *e, enum ck_want want)
{
	switch (want) {
	case CK_WANT_INSPECT:
		ck_machine_inspected(m, e->row.id, m->seq, CK_CONDITION_UNKNOWN);
		break;
	case CK_WANT_LIST:
		ck_machine_listed_entry(m, e->row.id, m->seq, false, NULL, 0);
		break;
	case CK_WANT_DESTROY:
		ck_machine_destroyed(m, e->row.id, CK_GRPC_RESOURCE_EXHAUSTED, "out of memory");
		break;
	case CK_WANT_RUN:
		ck_event_begin(m);
		e->outstanding &= ~(unsigned)CK_WANT_RUN;
		ck_commit_failed(m, e, "out of memory");
		ck_event_end(m);
		break;
	case CK_WANT_STOP:
	case CK_WANT_REMOVE:
		e->outstanding &= ~(unsigned)want;
		ck_entry_schedule(m, e, m->now + CK_GAP);
		break;
	case CK_WANT_CANCEL: /* the hooks learn by themselves that it is undone */
		break;
	}
}
