/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_CLI_CULPRIT_APART_H
#define CK_CLI_CULPRIT_APART_H
/*
 * Looks at processes in a child process. The kernel may make it wait without an end, for the memory
 * of a process or for a file whose disk does not answer, and then no signal ends it: the child is
 * left behind. It has none of our open files, and so none of our locks.
 */
#include <stdatomic.h>
#include <stdbool.h>

#include "src/cli/culprit/culprit.h"

struct ck_apart { /* is shared with the child */
	atomic_bool done; /* it has returned from its work */
	_Atomic long at;    /* the process that is looked at; 0: none yet */
	_Atomic unsigned n; /* how often something was told: the last time at [n % 2] */
	struct ck_culprits told[2];
};

/* ck_apart_tell - in the child: what is true even if no more is found */
void ck_apart_tell(struct ck_apart *apart, const struct ck_culprits *found);

/* ck_apart_run - call @work in a child. It takes @wait at most, and little more.
 * @ret: what was told last     @ret_at: the process that is looked at still
*/
enum ck_apart_end {
	CK_APART_DONE,    /* @work has returned */
	CK_APART_LATE,    /* it has not, in this time */
	CK_APART_FAILED,  /* its process has ended otherwise, or there was none */
};
enum ck_apart_end ck_apart_run(void (*work)(struct ck_apart *apart, void *userdata), void *userdata,
			       uint64_t wait, struct ck_culprits *ret, long *ret_at);
#endif
