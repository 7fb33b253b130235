/* SPDX-License-Identifier: Apache-2.0 */
/* A binary heap by (time, order of arming); see queue.h. */
#include "src/cli/simulate/queue.h"
#include "src/base/mem.h"

static bool before(const struct ck_event *a, const struct ck_event *b)
{
	return a->at != b->at ? a->at < b->at : a->seq < b->seq;
}

static void put(struct ck_queue *q, struct ck_event *e, size_t place)
{
	q->heap[place - 1] = e;
	e->place = place;
}

/* move @e from @place up or down to where it belongs */
static void settle(struct ck_queue *q, struct ck_event *e, size_t place)
{
	while (place > 1 && before(e, q->heap[place / 2 - 1])) {
		put(q, q->heap[place / 2 - 1], place);
		place /= 2;
	}
	for (;;) {
		size_t child = 2 * place;
		if (child > q->n)
			break;
		if (child < q->n && before(q->heap[child], q->heap[child - 1]))
			child++;
		if (!before(q->heap[child - 1], e))
			break;
		put(q, q->heap[child - 1], place);
		place = child;
	}
	put(q, e, place);
}

void ck_queue_fini(struct ck_queue *q)
{
	free(q->heap);
	*q = (struct ck_queue){ 0 };
}

void ck_queue_arm(struct ck_queue *q, struct ck_event *e, uint64_t at, void (*fire)(void *arg),
		  void *arg)
{
	if (!e->place && q->n == q->room) {
		size_t room = q->room ? 2 * q->room : 64;
		struct ck_event **heap = ck_realloc(q->heap, room * sizeof(*heap));
		if (!heap) {
			q->failed = true;
			return;
		}
		q->heap = heap;
		q->room = room;
	}
	e->at = at;
	e->seq = ++q->seq;
	e->fire = fire;
	e->arg = arg;
	settle(q, e, e->place ? e->place : ++q->n);
}

void ck_queue_disarm(struct ck_queue *q, struct ck_event *e)
{
	size_t place = e->place;
	if (!place)
		return;
	e->place = 0;
	struct ck_event *last = q->heap[--q->n];
	if (last != e)
		settle(q, last, place);
}

struct ck_event *ck_queue_take(struct ck_queue *q)
{
	if (!q->n)
		return NULL;
	struct ck_event *e = q->heap[0];
	ck_queue_disarm(q, e);
	q->now = e->at;
	return e;
}
