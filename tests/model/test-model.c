/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The model test: random histories of the machine, each judged by an oracle that knows the rules;
 * and at the end the coverage of the table of states and events. Two processes share the seeds.
 *
 *	CK_MODEL_HISTORIES=n   how many (100000; CK_TEST_SCALE per cent of it)
 *	CK_MODEL_SEED=n        this one only; if it fails, with the world after each step
 *	CK_MODEL_FIRST=n       the first seed (1)
 *
 * A history that ends in a complaint is made as short as it can be and printed as a script.
 */
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#define CK_TEST_SECONDS 280
#include "tests/model/history.h"
#include "tests/unit/harness.h"

enum {
	PROCESSES = 2,
	ENOUGH = 50000, /* histories that cover every cell; the runs of sanitizers are shorter */
};

struct share { /* the results of the processes, in shared memory */
	coverage cells;
	uint64_t histories, failures;
};

static struct history history;

static bool fails(uint64_t seed, coverage *cells)
{
	if (history_make(&history, seed, cells))
		return false;
	fprintf(stderr, "\nseed %llu: %s\nshorter:\n", (unsigned long long)seed, history.failure);
	history_shrink(&history);
	history_print(&history, stderr);
	return true;
}

static void explore(uint64_t from, uint64_t n, struct share *share)
{
	history_catch_signals();
	for (uint64_t i = 0; i < n && share->failures < 3; i++) {
		share->failures += fails(from + i * PROCESSES, &share->cells);
		share->histories++;
	}
}

static void histories_keep_the_rules(void **state)
{
	uint64_t seed = ck_test_env("CK_MODEL_SEED", 0);
	uint64_t first = ck_test_env("CK_MODEL_FIRST", 1);
	uint64_t n = ck_test_env("CK_MODEL_HISTORIES", ck_test_rounds(100000));
	struct share *shares = mmap(NULL, PROCESSES * sizeof(*shares), PROT_READ | PROT_WRITE,
				    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct share *all = *state;
	pid_t pids[PROCESSES];

	assert_ptr_not_equal(shares, MAP_FAILED);
	if (seed) {
		history_catch_signals();
		bool failed = fails(seed, &all->cells);
		if (failed)
			history_play(&history, stderr);
		munmap(shares, PROCESSES * sizeof(*shares));
		assert_false(failed);
		return;
	}
	fflush(NULL);
	for (unsigned i = 0; i < PROCESSES; i++) {
		pids[i] = fork();
		assert_true(pids[i] >= 0);
		if (pids[i] == 0) {
			explore(first + i, n / PROCESSES + (i < n % PROCESSES), &shares[i]);
			exit(0); /* not _exit(): gcov counts what was executed */
		}
	}
	bool ended = true;
	for (unsigned i = 0; i < PROCESSES; i++) {
		int status = 0;
		waitpid(pids[i], &status, 0);
		ended = ended && WIFEXITED(status) && WEXITSTATUS(status) == 0;
		all->histories += shares[i].histories;
		all->failures += shares[i].failures;
		for (int row = 0; row < CELLS; row++)
			for (int col = 0; col < COLS; col++)
				all->cells[row][col] += shares[i].cells[row][col];
	}
	munmap(shares, PROCESSES * sizeof(*shares));
	printf("%llu histories\n", (unsigned long long)all->histories);
	assert_true(ended);
	assert_int_equal(all->failures, 0);
}

static void every_cell_of_the_table_is_covered(void **state)
{
	struct share *all = *state;
	if (ck_test_env("CK_MODEL_SEED", 0))
		return; /* one history covers a few cells only */
	unsigned missing = coverage_print(all->cells, stdout);
	if (all->histories >= ENOUGH)
		assert_int_equal(missing, 0);
}

int main(void)
{
	static struct share all;
	struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate(histories_keep_the_rules, &all),
		cmocka_unit_test_prestate(every_cell_of_the_table_is_covered, &all),
	};
	return CK_TEST_MAIN(tests);
}
