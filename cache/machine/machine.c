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
		if (m->lists[kind].wanted && !m->lists[kind].outstanding)
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
	switch (e->row.state) {
	case CK_STATE_KEPT:
		return e->row.flags & CK_ENTRY_TOLD;
	case CK_STATE_COMMITTING:
	case CK_STATE_COMMITTED:
		return true;
	case CK_STATE_ENDED: /* the end of a pod begins when it stops */
		return e->row.key->kind != CK_SANDBOX;
	default:
		return false;
	}
}

/* ---- views: calls that began before (K21) ---------------------------------------------------- */

void ck_machine_view_opened(struct ck_machine *m, uint64_t *ret_seq)
{
	*ret_seq = ++m->seq;
	if (m->views_n == m->views_room) {
		size_t room = m->views_room ? 2 * m->views_room : 16;
		uint64_t *views = ck_realloc(m->views, room * sizeof(*views));
		if (!views)
			return; /* for this view the minute of the tombstones must be enough */
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

/* ---- for tests ------------------------------------------------------------------------------- */

/* Could the database hold the row of @e next to the others? Its unique indexes do not ask whether a
 * container is of the same pod, so all entries are looked at. */
static bool is_unique(const struct ck_machine *m, const struct ck_entry *e)
{
	for (const struct ck_entry *o = m->by_row; o; o = o->by_row.next)
		if (o != e && (o->row.id == e->row.id ||
			       (ck_machine_holds_key(e) && ck_machine_holds_key(o) &&
				ck_key_same(o->row.key, e->row.key))))
			return false;
	return true;
}

static const char *wrong_with(const struct ck_machine *m, const struct ck_mturn *t)
{
	const struct ck_entry *e = NULL;
	HASH_FIND(by_row, m->by_row, &t->row, sizeof(t->row), e);
	bool makes = t->state == CK_TURN_CREATING || t->state == CK_TURN_ORPHANED ||
		     t->state == CK_TURN_SUPERSEDED;
	if (makes != (e && e->creator == t))
		return makes ? "creates nothing" : "creates without being in such a state";
	if (t->state == CK_TURN_JOINED && !(e && ck_state_open(e->row.state)))
		return "has joined what is over";
	if (ck_turn_decided(t) && !ck_turn_answered_now(t))
		return "is decided and still in its pod";
	return NULL;
}

static bool check_turns(const struct ck_machine *m, char *why, size_t size)
{
	for (const struct ck_group *pod = m->groups[CK_BY_POD]; pod; pod = pod->hh.next)
		for (const struct ck_mturn *t = pod->turns; t; t = t->next) {
			const char *wrong = wrong_with(m, t);
			if (!wrong)
				continue;
			snprintf(why, size, "turn %llu (state %d, entry %llu) %s",
				 (unsigned long long)t->seq, (int)t->state,
				 (unsigned long long)t->row, wrong);
			return false;
		}
	return true;
}

bool ck_machine_check(const struct ck_machine *m, char *why, size_t size)
{
	unsigned destroying = 0;
	if (!check_turns(m, why, size))
		return false;
	for (const struct ck_entry *e = m->by_row; e; e = e->by_row.next) {
		destroying += ck_destroying(e);
		const char *wrong = NULL;
		if (e->detached)
			continue;
		if (e->row.state != CK_STATE_CREATING && e->row.state != CK_STATE_UNKNOWN &&
		    e->row.state != CK_STATE_EVICTING && !e->row.result &&
		    e->row.origin == CK_ORIGIN_CACHE)
			wrong = "has no result";
		else if (e->creator && e->row.state != CK_STATE_CREATING &&
			 e->row.state != CK_STATE_UNKNOWN && e->row.state != CK_STATE_EVICTING)
			wrong = "is still being made";
		else if (ck_searched(e) != (e->row.searched != 0) ||
			 (e->row.absent && !e->row.searched))
			wrong = "does not know since when it is searched";
		else if (!is_unique(m, e))
			wrong = "has the key or the row of another entry";
		if (wrong) {
			snprintf(why, size, "entry %llu (%s) %s", (unsigned long long)e->row.id,
				 ck_state_name(e->row.state), wrong);
			return false;
		}
	}
	if (destroying != m->destroying) {
		snprintf(why, size, "%u are being destroyed, %u counted", destroying,
			 m->destroying);
		return false;
	}
	return true;
}
