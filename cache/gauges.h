/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_CACHE_GAUGES_H
#define CK_CACHE_GAUGES_H
/* How much of everything the cache holds at one moment, for metrics. No names, no ids. */
#include "cache/cache.h"

struct ck_gauges {
	/* by kind and state; GONE: tombstones */
	size_t entries[CK_CONTAINER + 1][CK_STATE_MAX + 1];
	/* UNKNOWN: nobody knows how their creation ends (K8) */
	size_t lost[CK_CONTAINER + 1];
	/* when the oldest creation or start of an earlier life began that may still be under way;
	 * 0: there is none. Of a start: when its container was created */
	uint64_t inherited_since;
	size_t waiting[CK_CONTAINER + 1];        /* turns that wait for a result */
	size_t creating[CK_CONTAINER + 1];       /* turns that make one */
	/* EVICTING, and destroying it has failed at least once */
	size_t failing[CK_CONTAINER + 1];
	uint32_t tries[CK_CONTAINER + 1];        /* the most failures of one of these */
	uint64_t creating_ns[CK_CONTAINER + 1];  /* age of the oldest entry in CREATING; 0: none */
	/* the longest time for which nobody has asked for a KEPT entry */
	uint64_t kept_ns[CK_CONTAINER + 1];
	uint64_t evicting_ns[CK_CONTAINER + 1];  /* the longest time in EVICTING */
	/* the database cannot be written, and memory is ahead of it (K32) */
	bool degraded;
	int64_t database, wal;                   /* bytes; -1: no such file */
	long wal_pid;                            /* who makes the WAL grow; 0: nobody */
	struct ck_counters counters;             /* since the database was made */
};

/* ck_gauges_read - 0, -CK_ECLOSED, -CK_EDEADLK (from inside a round) */
int ck_gauges_read(struct ck_cache *cache, struct ck_gauges *ret_gauges);
#endif
