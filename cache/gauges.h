/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_CACHE_GAUGES_H
#define CK_CACHE_GAUGES_H
/* How much of everything the cache holds, in one consistent look: for metrics. No names, no ids. */
#include "cache/cache.h"

struct ck_gauges {
	/* by kind and state; GONE: tombstones */
	size_t entries[CK_CONTAINER + 1][CK_STATE_MAX + 1];
	/* CREATING, and nobody knows how it will end (K8) */
	size_t lost[CK_CONTAINER + 1];
	size_t waiting[CK_CONTAINER + 1];        /* turns that wait for a result */
	size_t creating[CK_CONTAINER + 1];       /* turns that make one */
	/* EVICTING, and at least one try to destroy it failed */
	size_t failing[CK_CONTAINER + 1];
	uint32_t tries[CK_CONTAINER + 1];        /* the most failed tries of one of these */
	uint64_t creating_ns[CK_CONTAINER + 1];  /* age of the oldest entry in CREATING; 0: none */
	/* how long nobody has asked for the KEPT entry that was asked for longest ago */
	uint64_t kept_ns[CK_CONTAINER + 1];
	uint64_t evicting_ns[CK_CONTAINER + 1];  /* how long the oldest has been in EVICTING */
	/* the database refuses writes: memory is ahead of it (K32) */
	bool degraded;
	int64_t database, wal;                   /* bytes; -1: no such file */
	struct ck_counters counters;             /* since the database was made */
};

/* ck_gauges_read - 0, -CK_ECLOSED, -CK_EDEADLK (from inside a round) */
int ck_gauges_read(struct ck_cache *cache, struct ck_gauges *ret_gauges);
#endif
