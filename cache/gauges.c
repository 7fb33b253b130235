/* SPDX-License-Identifier: Apache-2.0 */
#include <unistd.h>

#include <utlist.h>

#include "cache/gauges.h"
#include "src/base/duration.h"

static void grow(uint64_t *oldest, uint64_t now, uint64_t since)
{
	uint64_t age = ck_duration_between(since, now);
	if (age > *oldest)
		*oldest = age;
}

static void count_entry(struct ck_gauges *gauges, const struct ck_entry *e, uint64_t now)
{
	const struct ck_row *row = &e->row;
	enum ck_kind kind = row->key->kind;
	gauges->entries[kind][row->state]++;
	bool inherited = e->restored &&
			 (row->state == CK_STATE_UNKNOWN || row->state == CK_STATE_CREATING ||
			  row->start == CK_START_LOST);
	if (inherited && (!gauges->inherited_since || row->created < gauges->inherited_since))
		gauges->inherited_since = row->created;
	switch (row->state) {
	case CK_STATE_UNKNOWN:
		gauges->lost[kind]++;
		/* fall through */
	case CK_STATE_CREATING:
		grow(&gauges->creating_ns[kind], now, row->created);
		break;
	case CK_STATE_KEPT:
		grow(&gauges->kept_ns[kind], now, row->asked);
		break;
	case CK_STATE_EVICTING:
		gauges->failing[kind] += row->tries != 0;
		if (row->tries > gauges->tries[kind])
			gauges->tries[kind] = row->tries;
		if (row->phase < CK_PHASE_CHECK) /* the runtime is not asked to destroy it yet */
			grow(&gauges->creating_ns[kind], now, row->created);
		else
			grow(&gauges->evicting_ns[kind], now, row->changed);
		break;
	case CK_STATE_COMMITTING:
	case CK_STATE_COMMITTED:
	case CK_STATE_ENDED:
	case CK_STATE_GONE:
		break;
	}
}

int ck_gauges_read(struct ck_cache *cache, struct ck_gauges *ret_gauges)
{
	int r = ck_round_enter(cache, NULL);
	if (r < 0)
		return r;
	struct ck_gauges gauges = { .degraded = cache->volatile_rounds,
				    .inherited_since = ck_machine_gave_up(cache->machine) };
	const struct ck_turn *turn;
	uint64_t now = ck_cache_now(cache);
	for (const struct ck_entry *e = ck_machine_entries(cache->machine); e; e = e->by_row.next)
		if (!e->detached)
			count_entry(&gauges, e, now);
	DL_FOREACH (cache->turns, turn) {
		if (turn->is == CK_TURN_REMOVAL)
			continue;
		gauges.waiting[turn->kind] += ck_turn_waits(&turn->m);
		gauges.creating[turn->kind] += turn->m.state == CK_TURN_CREATING ||
						turn->m.state == CK_TURN_ORPHANED;
	}
	gauges.counters = *ck_machine_counters(cache->machine);
	ck_store_sizes(cache->store, &gauges.database, &gauges.wal);
	int pinned = ck_store_pinned_dir(cache->store);
	ck_round_leave(cache);
	if (pinned >= 0) {
		gauges.wal_pid = ck_store_wal_pid(pinned);
		close(pinned);
	}
	*ret_gauges = gauges;
	return 0;
}
