/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_TESTS_SEEDS_H
#define CK_TESTS_SEEDS_H
/* Seeds, each in a process of its own: a crash ends one only, and each begins with the same
 * memory. */
#include "tests/world/world.h"

#define JOBS_MAX 64u /* processes with seeds, CK_WORLD_JOBS */

#define COUNTS(C) \
	C(pods, "pods ran") \
	C(kills, "kills of crikeepd") \
	C(stops, "stops") \
	C(freezes, "freezes") \
	C(disks, "troubles of its disk") \
	C(scarce, "of its memory") \
	C(cuts, "power cuts") \
	C(guests, "troubles of plugins") \
	C(deaths, "deaths of the runtime") \
	C(restarts, "of the kubelet")

struct result { /* of one seed, or the sum of many */
	uint64_t hash, simulated, cpu;
	unsigned worlds, failed; /* failed: in a sum */
#define C(name, text) unsigned name;
	COUNTS(C)
#undef C
	struct world_options options;
	char wrong[sizeof(w.wrong)];
};

/* seed_result - in memory that the processes share. To be unmapped, or not */
struct result *seed_result(void);
void seed_play(uint64_t seed, const struct world_options *options, struct result *result);
#endif
