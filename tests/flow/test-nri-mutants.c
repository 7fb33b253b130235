/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Do the schedules see anything? The library is compiled here with the mutants of
 * tests/mutants/nri.tsv. For each mutant of the list below, schedules are played in a process of
 * their own until the oracle complains. Most requirements are about single answers, and have tests
 * of their own (tests/real/requirements.tsv); those below are about who hears of what, and how
 * often.
 *
 *	CK_TEST_MUTANT=R1   this one only
 */
#define CK_TEST_SECONDS 280
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>

#include "tests/flow/nri-schedule.h"
#include "tests/mutants/mutants.h"

#define PLAY "CK_NRI_MUTANT" /* in the environment: this process plays, and does not test */

enum { LIMIT = 1000, PROCESSES = 2 };

static const char *const mutants[] = {
	"H1",  "H2",  "H3",  "R1",  "R2",  "R5",  "R6",  "R7",  "R9",
	"R14", "R16", "R17", "R22", "R23", "R25", "R27", "R28", "R29",
	"R30", "R31", "R32", "R33", "R36", "R39", "R40",
};
enum { MUTANTS = sizeof(mutants) / sizeof(*mutants) };

/* 0: nothing was seen */
static int play(void)
{
	static struct schedule_counts counts;
	char complaint[512] = "";
	for (unsigned seed = 1; seed <= LIMIT; seed++)
		if (!schedule_play(seed, &counts, false, complaint, sizeof(complaint))) {
			printf("%-4s seen after %4u schedules: %s\n", getenv("CRIKEEP_BREAK"), seed,
			       complaint);
			return 1;
		}
	return 0;
}

static pid_t start(const char *mutant)
{
	char *argv[] = { (char *)"play", NULL };
	pid_t pid;
	setenv("CRIKEEP_BREAK", mutant, 1);
	setenv(PLAY, "1", 1);
	assert_int_equal(posix_spawn(&pid, "/proc/self/exe", NULL, NULL, argv, environ), 0);
	unsetenv(PLAY);
	unsetenv("CRIKEEP_BREAK");
	return pid;
}

static void the_schedules_see_what_is_broken(void **state)
{
	const char *only = getenv("CK_TEST_MUTANT");
	pid_t pids[MUTANTS] = { 0 };
	unsigned running = 0, unseen = 0;
	(void)state;
	for (unsigned i = 0; i < MUTANTS; i++)
		assert_true(ck_mutant_choose(mutants[i]));
	ck_mutant_choose(NULL);
	for (unsigned i = 0, next = 0; i < MUTANTS || running; i = next) {
		if (i < MUTANTS && running < PROCESSES) {
			next = i + 1;
			if (only && *only && strcmp(only, mutants[i]))
				continue;
			pids[i] = start(mutants[i]);
			running++;
			continue;
		}
		int status = 0;
		pid_t pid = wait(&status);
		running--;
		for (unsigned k = 0; k < MUTANTS; k++)
			if (pids[k] == pid && !(WIFEXITED(status) && WEXITSTATUS(status) == 1)) {
				printf("%-4s NOT SEEN, status 0x%x\n", mutants[k],
				       (unsigned)status);
				unseen++;
			}
	}
	assert_int_equal(unseen, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_schedules_see_what_is_broken),
	};
	if (getenv(PLAY))
		return play();
	return CK_TEST_MAIN(tests);
}
