/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random schedules of commits and plugins (nri-schedule.h), each watched by an oracle.
 *
 *	CK_TEST_SEED=n    this one only, with each of its steps
 *	CK_TEST_FIRST=n   the first seed (1)
 *	CRIKEEP_BREAK=R1  with this mutant (tests/mutants/test-nri-schedules only): it has to fail
 */
#define CK_TEST_SECONDS 240
#include "tests/flow/nri-schedule.h"

static void schedules_keep_the_contract(void **state)
{
	static struct schedule_counts counts;
	unsigned long only = ck_test_env("CK_TEST_SEED", 0),
		      first = only ? only : ck_test_env("CK_TEST_FIRST", 1);
	unsigned long n = only ? 1 : ck_test_rounds(1000);
	char complaint[512] = "";
	(void)state;
	for (unsigned long seed = first; seed < first + n; seed++)
		if (!schedule_play((unsigned)seed, &counts, only, complaint, sizeof(complaint)))
			fail_msg("CK_TEST_SEED=%lu: %s", seed, complaint);
	printf("%lu schedules: %llu objects made, %llu answers, %llu connections; heard: %llu "
	       "listed, %llu run, %llu stop, %llu "
	       "remove; "
	       "%llu refusals, %llu cancelled, %llu restarts, %llu debts paid\n",
	       n, (unsigned long long)counts.objects, (unsigned long long)counts.commits,
	       (unsigned long long)counts.connections, (unsigned long long)counts.lists,
	       (unsigned long long)counts.runs, (unsigned long long)counts.stops,
	       (unsigned long long)counts.removes, (unsigned long long)counts.refusals,
	       (unsigned long long)counts.cancels, (unsigned long long)counts.restarts,
	       (unsigned long long)counts.debts);
	if (n < 100)
		return;
	/* a schedule in which nothing happens proves nothing */
	assert_true(counts.commits > n && counts.connections > 2 * n && counts.runs > n &&
		    counts.stops > n);
	assert_true(counts.lists && counts.removes && counts.refusals && counts.cancels &&
		    counts.restarts);
	assert_true(counts.debts || n < 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(schedules_keep_the_contract),
	};
	return CK_TEST_MAIN(tests);
}
