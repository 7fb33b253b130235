/* SPDX-License-Identifier: Apache-2.0 */
#include "cache/gauges.h"

struct gauges_op {
	struct ck_op op;
	struct ck_gauges *gauges;
};

static void grow(uint64_t *oldest, uint64_t now, uint64_t since)
{
	if (now > since && now - since > *oldest)
		*oldest = now - since;
}

static void count_entry(struct ck_gauges *gauges, const struct ck_entry *e, uint64_t now)
{
	const struct ck_row *row = &e->row;
	enum ck_kind kind = row->key->kind;
	gauges->entries[kind][row->state]++;
	switch (row->state) {
	case CK_STATE_CREATING:
		gauges->lost[kind] += (row->flags & CK_ENTRY_LOST) != 0;
		grow(&gauges->creating_ns[kind], now, row->created);
		break;
	case CK_STATE_KEPT:
		grow(&gauges->kept_ns[kind], now, row->interest);
		break;
	case CK_STATE_EVICTING:
		gauges->failing[kind] += row->tries != 0;
		if (row->tries > gauges->tries[kind])
			gauges->tries[kind] = row->tries;
		grow(&gauges->evicting_ns[kind], now, row->changed);
		break;
	case CK_STATE_COMMITTING:
	case CK_STATE_COMMITTED:
	case CK_STATE_GONE:
		break;
	}
}

static void run_gauges(struct ck_cache *cache, struct ck_op *op)
{
	struct ck_gauges *gauges = ((struct gauges_op *)(void *)op)->gauges;
	uint64_t now = ck_cache_now(cache);
	*gauges = (struct ck_gauges){ .degraded = cache->volatile_rounds };
	for (const struct ck_entry *e = ck_machine_entries(cache->machine); e; e = e->by_row.next)
		if (!e->detached)
			count_entry(gauges, e, now);
	for (const struct ck_turn *turn = cache->turns; turn; turn = turn->next) {
		gauges->waiting[turn->kind] += turn->m.state == CK_TURN_WAITING && !turn->m.drain;
		gauges->creating[turn->kind] += turn->m.state == CK_TURN_CREATING;
	}
	gauges->counters = *ck_machine_counters(cache->machine);
	ck_store_sizes(cache->store, &gauges->database, &gauges->wal);
}

int ck_gauges_read(struct ck_cache *cache, struct ck_gauges *ret_gauges)
{
	struct gauges_op take = { .op.run = run_gauges, .gauges = ret_gauges };
	return ck_cache_do(cache, &take.op);
}
