/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_CLI_FAILING_H
#define CK_CLI_FAILING_H
/*
 * Creations that have failed, and have not succeeded since. No row is left of them: the
 * history knows them.
 */
#include "src/cli/select-entries.h"

struct ck_failing {
	char *who;                         /* "container prod/web/app", whatever the attempt */
	const struct ck_history_row *last; /* the last failure; borrowed from the copy */
	size_t n;                          /* failures in a row */
};

struct ck_failings {
	struct ck_failing *all; /* the one that failed last comes first */
	size_t n;
};

/* ck_what_is_problem - does such a line tell of a failure, other than that of destroying? */
bool ck_what_is_problem(enum ck_what what);
/* ck_failings_find - of all pods. @within: only what happened so recently, ns; 0: all */
void ck_failings_find(const struct ck_look *look, uint64_t within, struct ck_failings *ret);
void ck_failings_fini(struct ck_failings *failings);
/* ck_failing_text - one sentence for people; free() */
char *ck_failing_text(const struct ck_look *look, const struct ck_failing *failing);
#endif
