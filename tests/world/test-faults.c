/* SPDX-License-Identifier: Apache-2.0 */
/*
 * faults.tsv: faults that this repository had, put back in one at a time. Worlds are played until
 * one fails; how many it took is printed, or that none did. CK_WORLD_ONLY=NAME: this one only.
 * CK_WORLD_FAULT_SEEDS: when to give up. A seed that fails without the fault does not count.
 */
#include <sys/mman.h>
#include <sys/wait.h>

#define CK_TEST_SECONDS 0 /* each seed has a limit */
#include "tests/mutants/mutants.h"
#include "tests/unit/harness.h"
#include "tests/world/seeds.h"

#define SEEDS_MAX ck_test_env("CK_WORLD_FAULT_SEEDS", 400)

static bool fails(uint64_t seed, const char *fault, struct result *result)
{
	const struct world_options all = { .faults = UINT32_MAX };
	assert_true(ck_mutant_choose(fault));
	seed_play(seed, &all, result);
	return *result->wrong;
}

static bool is_found(const struct ck_mutant *fault, struct result *result)
{
	unsigned long max = SEEDS_MAX, seed;
	char wrong[sizeof(result->wrong)];
	for (seed = 1; seed <= max; seed++) {
		if (!fails(seed, fault->name, result))
			continue;
		memcpy(wrong, result->wrong, sizeof(wrong));
		if (fails(seed, NULL, result))
			continue;
		print_message("%-18s %4lu  %s\n%24s %s\n", fault->name, seed, fault->rule, "",
			      wrong);
		return true;
	}
	print_message("%-18s    -  %s: in none of %lu\n", fault->name, fault->rule, max);
	return false;
}

/* every @step-th from @first on. Return: how many were found */
static unsigned play_faults(unsigned first, unsigned step)
{
	const char *only = getenv("CK_WORLD_ONLY");
	struct result *result = seed_result();
	unsigned found = 0;
	for (unsigned i = first; i <= ck_mutant_count(); i += step)
		if (!only || !strcmp(only, ck_mutants[i].name))
			found += is_found(&ck_mutants[i], result);
	munmap(result, sizeof(*result));
	return found;
}

static void old_faults_are_found(void **state)
{
	unsigned jobs = (unsigned)ck_test_env("CK_WORLD_JOBS", 1), found = 0;
	pid_t pids[JOBS_MAX];
	int status;
	(void)state;
	assert_in_range(jobs, 1, JOBS_MAX);
	for (unsigned i = 1; i < jobs; i++)
		if ((pids[i] = fork()) == 0)
			_exit((int)play_faults(1 + i, jobs));
	found = play_faults(1, jobs);
	for (unsigned i = 1; i < jobs; i++) {
		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		found += (unsigned)WEXITSTATUS(status);
	}
	print_message("# %u of %u faults were found\n", found, ck_mutant_count());
	assert_true(found > 0); /* which ones, people read */
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(old_faults_are_found) };
	return CK_TEST_MAIN(tests);
}
