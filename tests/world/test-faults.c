/* SPDX-License-Identifier: Apache-2.0 */
/*
 * faults.tsv: faults that this repository had, put back in one at a time. Worlds are played until
 * one fails, and how many it took is printed. Each fault must be found. A seed that fails without
 * the fault does not count. CK_WORLD_ONLY=NAME: this fault only. CK_WORLD_FAULT_SEEDS: when to give
 * up. CK_WORLD_FAULT_FIRST=n CK_WORLD_FAULT_SEEDS=n CK_WORLD_TRACE=1: seed n with the fault, and
 * then without it, and their traces.
 */
#include <sys/mman.h>
#include <sys/wait.h>

#define CK_TEST_SECONDS 0 /* each seed has a limit */
#include "src/base/mem.h"
#include "tests/mutants/mutants.h"
#include "tests/unit/harness.h"
#include "tests/world/seeds.h"

#define SEEDS_MAX ck_test_env("CK_WORLD_FAULT_SEEDS", 1000)

static bool fails(uint64_t seed, const char *fault, struct result *result)
{
	const struct world_options all = { .faults = UINT32_MAX };
	assert_true(ck_mutant_choose(fault));
	seed_play(seed, &all, result);
	return *result->wrong;
}

/* None of the seeds from @first to @max has failed. @traces: of each with the fault. In how many
 * of them did anything happen that would not have happened without it? Else no seed reaches it. */
static void say_missed(const struct ck_mutant *fault, const uint64_t *traces, unsigned long first,
		       unsigned long max, struct result *result)
{
	unsigned long others = 0, last = 0;
	for (unsigned long seed = first; seed <= max; seed++) {
		fails(seed, NULL, result);
		if (traces[seed] && result->hash != traces[seed]) {
			others++;
			last = seed;
		}
	}
	print_message("%-18s    -  %s: in none of %lu to %lu; %lu went another way", fault->name,
		      fault->rule, first, max, others);
	print_message(last ? ", the last was %lu\n" : "\n", last);
}

static bool is_found(const struct ck_mutant *fault, struct result *result)
{
	unsigned long first = ck_test_env("CK_WORLD_FAULT_FIRST", 1), max = SEEDS_MAX, seed;
	CK_AUTO_FREE uint64_t *traces = calloc(max + 1, sizeof(*traces));
	char wrong[sizeof(result->wrong)];
	for (seed = first; seed <= max; seed++) {
		if (!fails(seed, fault->name, result)) {
			traces[seed] = result->hash;
			continue;
		}
		memcpy(wrong, result->wrong, sizeof(wrong));
		if (fails(seed, NULL, result))
			continue;
		print_message("%-18s %4lu  %s\n%24s %s\n", fault->name, seed, fault->rule, "",
			      wrong);
		return true;
	}
	say_missed(fault, traces, first, max, result);
	return false;
}

static bool is_chosen(const struct ck_mutant *fault)
{
	const char *only = getenv("CK_WORLD_ONLY");
	return !only || !strcmp(only, fault->name);
}

/* every @step-th from @first on. Return: how many were not found */
static unsigned play_faults(unsigned first, unsigned step)
{
	struct result *result = seed_result();
	unsigned missed = 0;
	for (unsigned i = first; i <= ck_mutant_count(); i += step)
		if (is_chosen(&ck_mutants[i]))
			missed += !is_found(&ck_mutants[i], result);
	munmap(result, sizeof(*result));
	return missed;
}

static void old_faults_are_found(void **state)
{
	unsigned jobs = (unsigned)ck_test_env("CK_WORLD_JOBS", 1), chosen = 0, missed;
	pid_t pids[JOBS_MAX];
	int status;
	(void)state;
	assert_in_range(jobs, 1, JOBS_MAX);
	for (unsigned i = 1; i <= ck_mutant_count(); i++)
		chosen += is_chosen(&ck_mutants[i]);
	assert_true(chosen > 0);
	for (unsigned i = 1; i < jobs; i++)
		if ((pids[i] = fork()) == 0)
			_exit((int)play_faults(1 + i, jobs));
	missed = play_faults(1, jobs);
	for (unsigned i = 1; i < jobs; i++) {
		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_true(WIFEXITED(status));
		missed += (unsigned)WEXITSTATUS(status);
	}
	assert_int_equal(missed, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(old_faults_are_found) };
	return CK_TEST_MAIN(tests);
}
