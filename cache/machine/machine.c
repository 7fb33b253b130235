/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a machine, its clock, what can be asked of it, and the open views. */
#include <stdio.h>

#include "cache/machine/machine-int.h"

int ck_machine_new(const struct ck_rules *rules, const struct ck_machine_ops *ops, void *user,
		   uint64_t now, struct ck_machine **ret)
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
	/* a round can end without an event and leave groups touched */
	for (struct ck_group *pod; (pod = ck_take_touched(m));)
		ck_group_put(m, pod);
	struct ck_entry *e, *next;
	HASH_ITER (by_row, m->by_row, e, next)
		ck_entry_free(m, e);
	ck_unknown_stops_free(m);
	ck_timers_fini(&m->timers);
	free(m->history);
	free(m->views);
	free(m);
}

void ck_machine_clock(struct ck_machine *m, uint64_t now)
{
	if (now > m->now)
		m->now = now;
}

uint64_t ck_machine_due(const struct ck_machine *m)
{
	return ck_timers_due(&m->timers);
}

bool ck_machine_reconciled(const struct ck_machine *m)
{
	return m->lists[CK_SANDBOX].done && m->lists[CK_CONTAINER].done;
}

bool ck_machine_has_wants(const struct ck_machine *m)
{
	for (int kind = CK_SANDBOX; kind <= CK_CONTAINER; kind++)
		if (m->lists[kind].wanted)
			return true;
	return m->wanting || m->resolves;
}

struct ck_entry *ck_machine_wanting(struct ck_machine *m)
{
	return m->wanting;
}

struct ck_entry *ck_machine_dirty(struct ck_machine *m)
{
	return m->dirty;
}

bool ck_machine_holds_key(const struct ck_entry *e)
{
	return !e->detached && e->row.origin == CK_ORIGIN_CACHE &&
	       ck_state_is_current(e->row.state);
}

const struct ck_history_event *ck_machine_history(struct ck_machine *m, size_t *ret_n)
{
	*ret_n = m->history_n;
	return m->history;
}

uint64_t ck_machine_seq(const struct ck_machine *m)
{
	return m->seq;
}

uint64_t ck_machine_gave_up(const struct ck_machine *m)
{
	return m->gave_up;
}

struct ck_counters *ck_machine_counters(struct ck_machine *m)
{
	return &m->counters;
}

uint64_t ck_machine_moves(const struct ck_machine *m)
{
	return m->moves;
}

bool ck_machine_hidden(const struct ck_entry *e)
{
	return !ck_state_visible(e->row.state);
}

bool ck_machine_told(const struct ck_entry *e)
{
	enum ck_state state = e->row.state;
	if (state == CK_STATE_COMMITTING || ck_state_visible(state))
		return true;
	/* what is given up exists until its destruction is confirmed */
	return e->row.flags & CK_ENTRY_TOLD &&
	       (state == CK_STATE_KEPT ||
		(state == CK_STATE_EVICTING && e->row.phase != CK_PHASE_REMOVE));
}

/* ---- views: calls that began before (K21) ---------------------------------------------------- */

void ck_machine_view_opened(struct ck_machine *m, uint64_t *ret_seq)
{
	*ret_seq = ++m->seq;
	uint64_t *views = ck_grown(m->views, m->views_n, sizeof(*views));
	if (!views)
		return; /* for this view the minute of the tombstones must be enough */
	m->views = views;
	views[m->views_n++] = *ret_seq;
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
