/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_CLI_ENTRY_TEXT_H
#define CK_CLI_ENTRY_TEXT_H
/* A row in words, and as a tree. crikeep(1) documents the names; they are kept for good. */
#include "src/cli/select-entries.h"
#include "src/cli/output/print.h"

#define CK_ROW_WORDS 160u /* room for a state or a next step */

/* ck_row_state - "KEPT (told)": the state, and those flags that are no matter of course in it.
 * Return: @buf, as below */
const char *ck_row_state(const struct ck_row *row, char *buf);
/* ck_row_next - what is due when: "expires in 9m12s", "try 4 in 12s", "waits for an owner"; "" for
 * nothing */
const char *ck_row_next(const struct ck_look *look, const struct ck_row *row, char *buf);
/* ck_row_age - "6m12s" since @at, or "before boot" */
const char *ck_row_age(const struct ck_look *look, const struct ck_row *row, uint64_t at,
		       char *buf);
/* ck_row_tree - all of a row but its fingerprint; with @raw that too, as names and digests, and the
 * reply's bytes */
struct json_object *ck_row_tree(const struct ck_look *look, const struct ck_row *row, bool raw);
/* ck_flag_tree - ["told", "lost"] */
struct json_object *ck_flag_tree(unsigned flags);
const char *ck_kind_word(enum ck_kind kind);
const char *ck_phase_word(enum ck_phase phase); /* "destroy"; NULL for none */
#endif
