/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_CACHE_MACHINE_TIMERS_H
#define CK_CACHE_MACHINE_TIMERS_H
/* Timers in a binary heap. A timer is a member of the struct it belongs to. Room is reserved before
 * it is needed, so that setting a timer cannot fail. */
#include <stddef.h>
#include <stdint.h>

#define CK_NEVER_DUE UINT64_MAX

enum ck_timer_of { CK_TIMER_ENTRY, CK_TIMER_TURN, CK_TIMER_REMOVAL, CK_TIMER_LIST };

struct ck_timer {
	uint64_t due;
	size_t at;           /* place in the heap, from 1; 0: not set */
	enum ck_timer_of of; /* which struct it is a member of */
};

struct ck_timers {
	struct ck_timer **heap; /* from 1 */
	size_t n, room;
};

/* makes room for @n timers in all; 0 or -CK_ENOMEM */
int ck_timers_reserve(struct ck_timers *timers, size_t n);
void ck_timers_fini(struct ck_timers *timers);
/* @due CK_NEVER_DUE: the same as unset */
void ck_timer_set(struct ck_timers *timers, struct ck_timer *timer, uint64_t due);
void ck_timer_unset(struct ck_timers *timers, struct ck_timer *timer);
uint64_t ck_timers_due(const struct ck_timers *timers);
/* takes the earliest timer that is due, or NULL */
struct ck_timer *ck_timers_pop(struct ck_timers *timers, uint64_t now);
#endif
