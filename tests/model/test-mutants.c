/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Does the model test see anything? The machine is compiled with CK_MUTANTS here: each guard can be
 * taken out at run time. For each mutant random histories are played until one ends in a complaint.
 * What survives is either no guard at all, or a rule the oracle does not know.
 *
 *	CK_MODEL_MUTANT=NAME   this one only, with the script that kills it
 *	CK_MODEL_HISTORIES=n   at most so many for each (20000)
 */
#include <sys/mman.h>
#include <sys/wait.h>

#define CK_TEST_SECONDS 280
#include "cache/machine/machine-int.h"
#include "tests/model/history.h"
#include "tests/unit/harness.h"

enum { PROCESSES = 2, KILLED_AT_LEAST = 20 };

static const struct {
	const char *name, *guards;
} mutants[CK_MUTANT_MAX] = {
#define MUTANT_INIT(name, text) [CK_MUTANT_##name] = { #name, text },
	CK_MUTANTS_LIST(MUTANT_INIT)
#undef MUTANT_INIT
};

struct verdict {             /* in shared memory */
	uint64_t histories;  /* played */
	char complaint[512]; /* empty: it survived */
};

static struct history history;

static void hunt(enum ck_mutant mutant, uint64_t limit, struct verdict *verdict)
{
	ck_mutant = mutant;
	history_catch_signals();
	while (verdict->histories < limit) {
		verdict->histories++;
		if (history_make(&history, verdict->histories, NULL))
			continue;
		memcpy(verdict->complaint, history.failure, sizeof(verdict->complaint));
		return;
	}
}

static enum ck_mutant mutant_named(const char *name)
{
	for (int i = CK_MUTANT_NONE + 1; i < CK_MUTANT_MAX; i++)
		if (!strcmp(mutants[i].name, name))
			return (enum ck_mutant)i;
	return CK_MUTANT_NONE;
}

/* a process that died of its mutant has killed it as well */
static int wait_for_one(const pid_t *pids, struct verdict *verdicts)
{
	int status = 0;
	pid_t pid = wait(&status);

	for (int i = CK_MUTANT_NONE + 1; i < CK_MUTANT_MAX; i++)
		if (pids[i] == pid && !(WIFEXITED(status) && WEXITSTATUS(status) == 0))
			snprintf(verdicts[i].complaint, sizeof(verdicts[i].complaint),
				 "the process died, status 0x%x", (unsigned)status);
	return 1;
}

static void the_model_test_kills_mutants(void **state)
{
	uint64_t limit = ck_test_env("CK_MODEL_HISTORIES", 20000);
	struct verdict *verdicts = mmap(NULL, CK_MUTANT_MAX * sizeof(*verdicts),
					PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	const char *only = getenv("CK_MODEL_MUTANT");

	(void)state;
	assert_ptr_not_equal(verdicts, MAP_FAILED);
	if (only && *only) {
		struct verdict *verdict = &verdicts[0];
		hunt(mutant_named(only), limit, verdict);
		if (verdict->complaint[0])
			history_shrink(&history);
		history_print(&history, stdout);
		munmap(verdicts, CK_MUTANT_MAX * sizeof(*verdicts));
		return;
	}
	pid_t pids[CK_MUTANT_MAX] = { 0 };
	int running = 0;
	fflush(NULL);
	for (int i = CK_MUTANT_NONE + 1; i < CK_MUTANT_MAX; i++) {
		if (running == PROCESSES)
			running -= wait_for_one(pids, verdicts);
		pids[i] = fork();
		assert_true(pids[i] >= 0);
		if (pids[i] == 0) {
			hunt((enum ck_mutant)i, limit, &verdicts[i]);
			_exit(0);
		}
		running++;
	}
	while (running)
		running -= wait_for_one(pids, verdicts);

	int killed = 0;
	for (int i = CK_MUTANT_NONE + 1; i < CK_MUTANT_MAX; i++) {
		const struct verdict *verdict = &verdicts[i];
		killed += verdict->complaint[0] != '\0';
		printf("%-22s %s %6llu histories: %s\n", mutants[i].name,
		       verdict->complaint[0] ? "killed after  " : "SURVIVED      ",
		       (unsigned long long)verdict->histories,
		       verdict->complaint[0] ? verdict->complaint : mutants[i].guards);
	}
	printf("%d of %d mutants killed\n", killed, CK_MUTANT_MAX - 1);
	munmap(verdicts, CK_MUTANT_MAX * sizeof(*verdicts));
	assert_true(killed >= KILLED_AT_LEAST);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_model_test_kills_mutants),
	};
	return CK_TEST_MAIN(tests);
}
