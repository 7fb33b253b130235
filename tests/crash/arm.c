/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linked into the example runtimes, so that a test can kill them at a change of state:
 * CRIKEEP_CRASH=WHEN:MOVE:N is SIGKILL before or after the N-th transaction that contains the move,
 * e.g. after:CREATING>KEPT:2 or before:>CREATING:1. A runtime that outlives the test that started
 * it is killed, too.
 */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "src/base/fault.h"

static char armed_when[8], armed_move[64];
static atomic_int left;

static void crash_here(const char *when, const char *moves)
{
	const char *at = moves;
	size_t len = strlen(armed_move);
	if (strcmp(when, armed_when))
		return;
	/* as a whole item of a list: COMMITTING>COMMITTED is not >COMMITTED */
	while ((at = strstr(at, armed_move))) {
		if ((at == moves || at[-1] == ',') && (at[len] == '\0' || at[len] == ','))
			break;
		at += len;
	}
	if (at && atomic_fetch_sub(&left, 1) == 1)
		kill(getpid(), SIGKILL);
}

__attribute__((constructor)) static void arm(void)
{
	const char *crash = getenv("CRIKEEP_CRASH");
	int n;
	if (getenv("CRIKEEP_TEST_ENDS"))
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!crash || sscanf(crash, "%7[^:]:%63[^:]:%d", armed_when, armed_move, &n) != 3)
		return;
	atomic_store(&left, n);
	ck_crash_hook = crash_here;
}
