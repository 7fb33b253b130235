/* SPDX-License-Identifier: Apache-2.0 */
/* A binary heap whose elements know their place. */
#include "cache/machine/timers.h"
#include "src/base/mem.h"
#include "src/crikeep.h"

static void timers_place(struct ck_timers *timers, size_t at, struct ck_timer *timer)
{
	timers->heap[at] = timer;
	timer->at = at;
}

static void timers_up(struct ck_timers *timers, struct ck_timer *timer)
{
	size_t at = timer->at;
	while (at > 1 && timers->heap[at / 2]->due > timer->due) {
		timers_place(timers, at, timers->heap[at / 2]);
		at /= 2;
	}
	timers_place(timers, at, timer);
}

static void timers_down(struct ck_timers *timers, struct ck_timer *timer)
{
	size_t at = timer->at;
	for (size_t child; (child = 2 * at) <= timers->n; at = child) {
		if (child < timers->n && timers->heap[child + 1]->due < timers->heap[child]->due)
			child++;
		if (timers->heap[child]->due >= timer->due)
			break;
		timers_place(timers, at, timers->heap[child]);
	}
	timers_place(timers, at, timer);
}

int ck_timers_reserve(struct ck_timers *timers, size_t n)
{
	if (n < timers->room)
		return 0;
	size_t room = timers->room ? timers->room : 32;
	while (room <= n)
		room *= 2;
	struct ck_timer **heap = ck_realloc(timers->heap, room * sizeof(struct ck_timer *));
	if (!heap)
		return -CK_ENOMEM;
	timers->heap = heap;
	timers->room = room;
	return 0;
}

void ck_timers_fini(struct ck_timers *timers)
{
	free(timers->heap);
	*timers = (struct ck_timers){ 0 };
}

void ck_timer_unset(struct ck_timers *timers, struct ck_timer *timer)
{
	size_t at = timer->at;
	if (!at)
		return;
	struct ck_timer *last = timers->heap[timers->n--];
	timer->at = 0;
	if (last == timer)
		return;
	timers_place(timers, at, last);
	timers_up(timers, last);
	timers_down(timers, last);
}

void ck_timer_set(struct ck_timers *timers, struct ck_timer *timer, uint64_t due)
{
	ck_timer_unset(timers, timer);
	timer->due = due;
	if (due == CK_NEVER_DUE || CK_NEVER(timers->n + 1 >= timers->room))
		return;
	timers_place(timers, ++timers->n, timer);
	timers_up(timers, timer);
}

uint64_t ck_timers_due(const struct ck_timers *timers)
{
	return timers->n ? timers->heap[1]->due : CK_NEVER_DUE;
}

struct ck_timer *ck_timers_pop(struct ck_timers *timers, uint64_t now)
{
	struct ck_timer *first = timers->n ? timers->heap[1] : NULL;
	if (!first || first->due > now)
		return NULL;
	ck_timer_unset(timers, first);
	return first;
}
