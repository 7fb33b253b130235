/* SPDX-License-Identifier: Apache-2.0 */
#include "cache/gauges.h"

struct census_op {
	struct ck_op op;
	struct ck_census *census;
};

static void grow(uint64_t *oldest, uint64_t now, uint64_t since)
{
	if (now > since && now - since > *oldest)
		*oldest = now - since;
}

static void count_entry(struct ck_census *census, const struct ck_entry *e, uint64_t now)
{
	const struct ck_row *row = &e->row;
	enum ck_kind kind = row->key->kind;
	census->entries[kind][row->state]++;
	switch (row->state) {
	case CK_STATE_CREATING:
		census->lost[kind] += (row->flags & CK_ENTRY_LOST) != 0;
		grow(&census->creating_ns[kind], now, row->created);
		break;
	case CK_STATE_KEPT:
		grow(&census->kept_ns[kind], now, row->interest);
		break;
	case CK_STATE_EVICTING:
		census->failing[kind] += row->tries != 0;
		if (row->tries > census->tries[kind])
			census->tries[kind] = row->tries;
		grow(&census->evicting_ns[kind], now, row->changed);
		break;
	case CK_STATE_COMMITTING:
	case CK_STATE_COMMITTED:
	case CK_STATE_GONE:
		break;
	}
}

static void run_census(struct ck_cache *cache, struct ck_op *op)
{
	struct ck_census *census = ((struct census_op *)(void *)op)->census;
	uint64_t now = ck_cache_now(cache);
	*census = (struct ck_census){ .degraded = cache->volatile_rounds };
	for (const struct ck_entry *e = ck_machine_entries(cache->machine); e; e = e->by_row.next)
		if (!e->detached)
			count_entry(census, e, now);
	for (const struct ck_turn *turn = cache->turns; turn; turn = turn->next) {
		census->waiting[turn->kind] += turn->m.state == CK_TURN_WAITING && !turn->m.drain;
		census->creating[turn->kind] += turn->m.state == CK_TURN_CREATING;
	}
	census->counters = *ck_machine_counters(cache->machine);
	ck_store_sizes(cache->store, &census->database, &census->wal);
}

int ck_census_take(struct ck_cache *cache, struct ck_census *ret_census)
{
	struct census_op take = { .op.run = run_census, .census = ret_census };
	return ck_cache_do(cache, &take.op);
}
