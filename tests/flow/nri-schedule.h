/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_TESTS_NRI_SCHEDULE_H
#define CK_TESTS_NRI_SCHEDULE_H
/*
 * One random schedule: a real cache and real hooks, a runtime and a kubelet in memory, plugins on
 * real sockets. Pods and containers are asked for, made, timed out, repeated, asked for differently
 * or under another attempt, expired, started, stopped and removed; plugins join, stall, refuse,
 * crash and come back; cache and hooks end and begin again on the same directory. The same seed is
 * the same schedule. What plugins heard is held against the oracle all the time, and at every
 * pause.
 */
#include "tests/flow/nri-oracle.h"

struct schedule_counts {
	uint64_t objects, connections, commits, runs, lists, stops, removes, cancels, restarts,
		refusals, debts;
};

/* schedule_play - Return: whether the oracle was content; else its complaint. @counts: added to.
 * @trace: each step to stdout */
bool schedule_play(unsigned seed, struct schedule_counts *counts, bool trace, char *complaint,
		   size_t size);
#endif
