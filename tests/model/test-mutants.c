/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Does the model test see anything? The machine is compiled with the mutants of
 * tests/mutants/machine.tsv here. For each of them random histories are played until one ends in a
 * complaint. A mutant that survives breaks no rule, or breaks one that the oracle does not know.
 *
 *	CK_MODEL_MUTANT=NAME   this one only, with the script that kills it
 *	CK_MODEL_HISTORIES=n   at most so many for each (20000)
 */
#include <sys/mman.h>
#include <sys/wait.h>

#define CK_TEST_SECONDS 280
#include "tests/model/history.h"
#include "tests/mutants/mutants.h"
#include "tests/unit/harness.h"

enum { PROCESSES = 2, MUTANTS_MAX = 100, MUTANTS_AT_LEAST = 45 };

struct verdict {             /* in shared memory */
	uint64_t histories;  /* played */
	char complaint[512]; /* empty: it survived */
};

static struct history history;

static void hunt(uint64_t limit, struct verdict *verdict)
{
	history_catch_signals();
	while (verdict->histories < limit) {
		verdict->histories++;
		if (history_make(&history, verdict->histories, NULL))
			continue;
		memcpy(verdict->complaint, history.failure, sizeof(verdict->complaint));
		return;
	}
}

/* a process that died of its mutant has killed it as well */
static unsigned wait_for_one(const pid_t *pids, struct verdict *verdicts)
{
	int status = 0;
	pid_t pid = wait(&status);

	for (unsigned i = 1; i <= ck_mutant_count(); i++)
		if (pids[i] == pid && !(WIFEXITED(status) && WEXITSTATUS(status) == 0))
			snprintf(verdicts[i].complaint, sizeof(verdicts[i].complaint),
				 "the process died, status 0x%x", (unsigned)status);
	return 1;
}

static void the_model_test_kills_mutants(void **state)
{
	uint64_t limit = ck_test_env("CK_MODEL_HISTORIES", 20000);
	unsigned mutants = ck_mutant_count();
	size_t size = (mutants + 1) * sizeof(struct verdict);
	struct verdict *verdicts =
		mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	const char *only = getenv("CK_MODEL_MUTANT");

	(void)state;
	assert_ptr_not_equal(verdicts, MAP_FAILED);
	if (only && *only) {
		struct verdict *verdict = &verdicts[0];
		assert_true(ck_mutant_choose(only));
		hunt(limit, verdict);
		if (verdict->complaint[0])
			history_shrink(&history);
		history_print(&history, stdout);
		munmap(verdicts, size);
		return;
	}
	assert_in_range(mutants, MUTANTS_AT_LEAST, MUTANTS_MAX);
	pid_t pids[MUTANTS_MAX + 1] = { 0 };
	unsigned running = 0, killed = 0;
	fflush(NULL);
	for (unsigned i = 1; i <= mutants; i++) {
		if (running == PROCESSES)
			running -= wait_for_one(pids, verdicts);
		pids[i] = fork();
		assert_true(pids[i] >= 0);
		if (pids[i] == 0) {
			ck_mutant_on = i;
			hunt(limit, &verdicts[i]);
			_exit(0);
		}
		running++;
	}
	while (running)
		running -= wait_for_one(pids, verdicts);

	for (unsigned i = 1; i <= mutants; i++) {
		const struct verdict *verdict = &verdicts[i];
		killed += verdict->complaint[0] != '\0';
		printf("%-22s %s %6llu histories: %s\n", ck_mutants[i].name,
		       verdict->complaint[0] ? "killed after  " : "SURVIVED      ",
		       (unsigned long long)verdict->histories,
		       verdict->complaint[0] ? verdict->complaint : ck_mutants[i].rule);
	}
	printf("%u of %u mutants killed\n", killed, mutants);
	munmap(verdicts, size);
	assert_int_equal(killed, mutants);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_model_test_kills_mutants),
	};
	return CK_TEST_MAIN(tests);
}
