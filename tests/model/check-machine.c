/* SPDX-License-Identifier: Apache-2.0 */
/* What is true of a machine's own members after each event. */
#include <stdio.h>

#include "cache/machine/machine-int.h"
#include "tests/model/check-machine.h"

/* A key does not say whether a container is of the same pod, so all entries are looked at. */
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

bool check_machine(const struct ck_machine *m, char *why, size_t size)
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
		else if (e->row.start && (e->row.state != CK_STATE_COMMITTED ||
					  e->row.key->kind != CK_CONTAINER))
			wrong = "is no committed container, and is being started";
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
