/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_TESTS_NRI_SCHEDULE_H
#define CK_TESTS_NRI_SCHEDULE_H
/*
 * One random schedule: a real cache and real hooks, a runtime and a kubelet in memory, plugins on
 * real sockets. Creations are requested, time out, are repeated, repeated with another request or
 * attempt, and expire; pods and containers are started, stopped and removed. Plugins join, stall,
 * refuse, crash and come back. Cache and hooks end and begin again on the same directory. The same
 * seed gives the same schedule. The oracle checks what plugins heard all the time, and everything
 * at each pause.
 */
#include "tests/flow/nri-oracle.h"

struct schedule_counts {
	uint64_t objects, connections, commits, runs, lists, stops, removes, cancels, restarts,
		refusals, debts;
};

/* schedule_play - Return: true if the oracle had no complaint. @counts: added to. @trace: print
 * each step */
bool schedule_play(unsigned seed, struct schedule_counts *counts, bool trace, char *complaint,
		   size_t size);
#endif
