/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sandboxes that the cache does not know or hides, and whose stop has begun: no creation begins in
 * them (K16). Anybody can name an id, so nothing of this is written, and only the latest
 * CK_STOPS_MAX are remembered, each until a whole list tells whether the sandbox exists. If one is
 * forgotten too early, the runtime refuses the container.
 */
#include "cache/machine/machine-int.h"

struct ck_unknown_stop {
	UT_hash_handle hh; /* in the order in which they came */
	uint64_t seq;      /* the machine's; only a list that was begun later counts (K24) */
	char id[];
};

static struct ck_unknown_stop *find(const struct ck_machine *m, const char *id)
{
	struct ck_unknown_stop *stop = NULL;
	HASH_FIND(hh, m->unknown_stops, id, (unsigned)strlen(id), stop);
	return stop;
}

static void forget(struct ck_machine *m, struct ck_unknown_stop *stop)
{
	if (CK_NEVER(m->unknown_stops->hh.prev)) /* the first one has none before it */
		return;
	HASH_DEL(m->unknown_stops, stop);
	free(stop);
}

int ck_unknown_stop_note(struct ck_machine *m, const char *id)
{
	size_t len = strlen(id);
	struct ck_unknown_stop *stop = find(m, id);
	if (stop) {
		stop->seq = m->seq;
		return 0;
	}
	stop = ck_alloc(sizeof(*stop) + len + 1);
	if (!stop)
		return -CK_ENOMEM;
	memcpy(stop->id, id, len + 1);
	stop->seq = m->seq;
	HASH_ADD_KEYPTR(hh, m->unknown_stops, stop->id, (unsigned)len, stop);
	if (!stop->hh.tbl) {
		free(stop);
		return -CK_ENOMEM;
	}
	if (HASH_COUNT(m->unknown_stops) > CK_STOPS_MAX)
		forget(m, m->unknown_stops); /* the oldest */
	return 0;
}

bool ck_unknown_stop_noted(const struct ck_machine *m, const char *id)
{
	return find(m, id);
}

bool ck_unknown_stop_forget(struct ck_machine *m, const char *id)
{
	struct ck_unknown_stop *stop = find(m, id);
	if (stop)
		forget(m, stop);
	return stop;
}

void ck_unknown_stop_listed(struct ck_machine *m, const char *id)
{
	struct ck_unknown_stop *stop = find(m, id);
	if (stop)
		stop->seq = m->seq;
}

void ck_unknown_stops_expire(struct ck_machine *m, uint64_t begun_seq)
{
	struct ck_unknown_stop *stop, *next;
	HASH_ITER (hh, m->unknown_stops, stop, next)
		if (ck_list_counts(begun_seq, stop->seq))
			forget(m, stop);
}

void ck_unknown_stops_free(struct ck_machine *m)
{
	ck_unknown_stops_expire(m, UINT64_MAX);
}
