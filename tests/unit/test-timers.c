/* SPDX-License-Identifier: Apache-2.0 */
/* What is due when: order, moving, taking out, and that setting a timer needs no memory. */
#include "tests/unit/harness.h"
#include "cache/machine/timers.h"
#include "src/base/fault.h"

#define N 10000

static uint64_t next_random(uint64_t *state)
{
	*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return *state >> 33;
}

static void nothing_is_due_in_an_empty_heap(void **state)
{
	struct ck_timers timers = { 0 };
	struct ck_timer timer = { 0 };
	(void)state;
	assert_true(ck_timers_due(&timers) == CK_NEVER_DUE);
	assert_null(ck_timers_pop(&timers, CK_NEVER_DUE - 1));
	ck_timer_unset(&timers, &timer);
	ck_timer_set(&timers, &timer, CK_NEVER_DUE); /* is not set, and needs no room */
	assert_int_equal(timers.n, 0);
	ck_timers_fini(&timers);
}

static void ten_thousand_timers_come_in_order(void **state)
{
	static struct ck_timer timer[N];
	struct ck_timers timers = { 0 };
	uint64_t random = 1, last = 0;
	(void)state;
	assert_int_equal(ck_timers_reserve(&timers, N), 0);
	ck_fault_arm(CK_FAULT_ALLOC, 1, true); /* from here on no memory is needed */
	for (int i = 0; i < N; i++)
		ck_timer_set(&timers, &timer[i], 1 + next_random(&random) % 1000);
	for (int i = 0; i < N; i += 3)
		ck_timer_set(&timers, &timer[i], 1 + next_random(&random) % 100000); /* moved */
	for (int i = 0; i < N; i += 5)
		ck_timer_unset(&timers, &timer[i]);
	for (int i = 5; i < N; i += 10)
		ck_timer_set(&timers, &timer[i], CK_NEVER_DUE); /* taken out already */
	ck_fault_arm(0, 0, false);
	int left = N - N / 5;
	assert_int_equal(timers.n, left);
	while (left--) {
		uint64_t due = ck_timers_due(&timers);
		assert_true(due >= last);
		assert_null(ck_timers_pop(&timers, due - 1)); /* not before its time */
		struct ck_timer *t = ck_timers_pop(&timers, due);
		assert_non_null(t);
		assert_true(t->due == due);
		assert_int_equal(t->at, 0);
		assert_int_not_equal((t - timer) % 5, 0);
		last = due;
	}
	assert_null(ck_timers_pop(&timers, CK_NEVER_DUE - 1));
	ck_timers_fini(&timers);
}

static void a_timer_may_be_set_while_others_are_taken(void **state)
{
	static struct ck_timer timer[100];
	struct ck_timers timers = { 0 };
	uint64_t random = 7, now = 0;
	(void)state;
	assert_int_equal(ck_timers_reserve(&timers, 100), 0);
	for (int i = 0; i < 100; i++)
		ck_timer_set(&timers, &timer[i], next_random(&random) % 50);
	for (int round = 0; round < 10000; round++) {
		struct ck_timer *t;
		now += 1;
		while ((t = ck_timers_pop(&timers, now))) {
			assert_true(t->due <= now);
			ck_timer_set(&timers, t, now + 1 + next_random(&random) % 50);
		}
		assert_int_equal(timers.n, 100);
		assert_true(ck_timers_due(&timers) > now);
	}
	ck_timers_fini(&timers);
}

static void room_that_is_not_there_is_reported(void **state)
{
	struct ck_timers timers = { 0 };
	(void)state;
	ck_fault_arm(CK_FAULT_ALLOC, 1, false);
	assert_true(ck_timers_reserve(&timers, 10) < 0);
	assert_true(ck_fault_hit());
	ck_fault_arm(0, 0, false);
	assert_int_equal(ck_timers_reserve(&timers, 10), 0);
	assert_int_equal(ck_timers_reserve(&timers, 5), 0); /* never less */
	assert_true(timers.room >= 10);
	ck_timers_fini(&timers);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_due_in_an_empty_heap),
		cmocka_unit_test(ten_thousand_timers_come_in_order),
		cmocka_unit_test(a_timer_may_be_set_while_others_are_taken),
		cmocka_unit_test(room_that_is_not_there_is_reported),
	};
	return CK_TEST_MAIN(tests);
}
