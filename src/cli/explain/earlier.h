/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_CLI_EXPLAIN_EARLIER_H
#define CK_CLI_EXPLAIN_EARLIER_H
/*
 * Entries that were evicted and of which no row is left: a row goes a minute after its object was
 * destroyed. The history knows why.
 */
#include "src/cli/select-entries.h"

struct ck_earlier {
	const struct ck_history_row **all; /* when each was evicted; the newest comes first */
	size_t n;
};

void ck_earlier_find(const struct ck_look *look, struct ck_earlier *ret);
void ck_earlier_fini(struct ck_earlier *earlier);
/* ck_earlier_text - what and why, for people; free() */
char *ck_earlier_text(const struct ck_look *look, const struct ck_history_row *evicted);
/* ck_absent_plugin - the required plugin that was absent when @entry was last asked for, or NULL */
const char *ck_absent_plugin(const struct ck_look *look, uint64_t entry);
#endif
