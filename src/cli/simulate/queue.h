/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_CLI_SIMULATE_QUEUE_H
#define CK_CLI_SIMULATE_QUEUE_H
/*
 * Virtual time: what happens when. Events lie inside the things they happen to, so nothing is
 * allocated per event but room in the heap, and a thing that goes away disarms its own. Two events
 * of the same instant fire in the order in which they were armed: a run is the same every time.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ck_event {
	uint64_t at;
	uint64_t seq;
	size_t place; /* in the heap, counted from 1; 0: not armed */
	void (*fire)(void *arg);
	void *arg;
};

struct ck_queue {
	struct ck_event **heap;
	size_t n, room;
	uint64_t now; /* ns since the start of the run */
	uint64_t seq;
	bool failed; /* an event could not be armed: out of memory, and the run is worth nothing */
};

void ck_queue_fini(struct ck_queue *q);
/* ck_queue_arm - let @fire happen at @at; an armed event is moved */
void ck_queue_arm(struct ck_queue *q, struct ck_event *e, uint64_t at, void (*fire)(void *arg),
		  void *arg);
void ck_queue_disarm(struct ck_queue *q, struct ck_event *e); /* not armed is fine */
/* ck_queue_take - the next event, disarmed, and time moved on to it; NULL: nothing is left to
 * happen */
struct ck_event *ck_queue_take(struct ck_queue *q);
#endif
