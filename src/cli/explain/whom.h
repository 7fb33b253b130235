/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_CLI_EXPLAIN_WHOM_H
#define CK_CLI_EXPLAIN_WHOM_H
/* For whom an entry waits: a process that the runtime started, the runtime itself, or a plugin. */
#include "src/cli/culprit/culprit.h"
#include "src/cli/select-entries.h"

/* ck_whom_find - @endpoint: of the runtime; NULL: it is found. Nobody is looked for if nothing is
 * under way: then @ret has neither a culprit nor a reason */
void ck_whom_find(const struct ck_look *look, const struct ck_row *row, const char *endpoint,
		  struct ck_culprits *ret);
/* ck_whom_callers - how many wait now for what is being created, as the history tells; -1: it does
 * not tell. @ret_last: the line of the last one that has gone, or NULL */
int ck_whom_callers(const struct ck_look *look, const struct ck_row *row,
		    const struct ck_history_row **ret_last);
#endif
