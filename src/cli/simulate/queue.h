/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_CLI_SIMULATE_QUEUE_H
#define CK_CLI_SIMULATE_QUEUE_H
/*
 * Virtual time: a queue of events. An event is a member of the object it happens to, so only the
 * heap is allocated, and an object that is freed disarms its own events. Two events with the same
 * time fire in the order in which they were armed, so every run is the same.
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
	bool failed; /* out of memory: an event could not be armed, so the run has no result */
};

void ck_queue_fini(struct ck_queue *q);
/* ck_queue_arm - call @fire at @at; an armed event is moved */
void ck_queue_arm(struct ck_queue *q, struct ck_event *e, uint64_t at, void (*fire)(void *arg),
		  void *arg);
void ck_queue_disarm(struct ck_queue *q, struct ck_event *e); /* may be unarmed */
/* ck_queue_take - disarm the next event and move the time on to it. Return: the event, or NULL:
 * none is left */
struct ck_event *ck_queue_take(struct ck_queue *q);
#endif
