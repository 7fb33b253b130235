/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_CLI_ENTRY_TEXT_H
#define CK_CLI_ENTRY_TEXT_H
/* A row in words, and as a tree. crikeep(1) documents the names; they never change. */
#include "src/cli/select-entries.h"
#include "src/cli/output/print.h"

#define CK_ROW_WORDS 160u /* size of a buffer for a state or a next step */

#define CK_SLOW_CREATION (60 * CK_NS_PER_S) /* most pods take a few seconds */
/* after so many failed attempts to destroy an entry somebody should look at it */
#define CK_STUBBORN      3u

/* ck_row_state - "KEPT (told)": the state, and the flags that are unusual in it. Return: @buf, as
 * below */
const char *ck_row_state(const struct ck_row *row, char *buf);
/* ck_state_lower - "kept", as a member of a tree */
#define CK_STATE_WORD 16u
const char *ck_state_lower(enum ck_state state, char buf[CK_STATE_WORD]);
/* ck_row_next - the next step and its time: "expires in 9m12s", "try 4 in 12s", "waits for an
 * owner"; "" for none */
const char *ck_row_next(const struct ck_look *look, const struct ck_row *row, char *buf);
/* ck_row_age - "6m12s" since @at, or "before boot" */
const char *ck_row_age(const struct ck_look *look, const struct ck_row *row, uint64_t at,
		       char *buf);
/* ck_row_tree - everything in a row; the fingerprint (names and digests) and the reply's bytes only
 * with @raw */
struct json_object *ck_row_tree(const struct ck_look *look, const struct ck_row *row, bool raw);
/* ck_flag_tree - ["told", "lost"] */
struct json_object *ck_flag_tree(unsigned flags);
/* ck_key_text - "container prod/web/app attempt 1"; free() */
char *ck_key_text(const struct ck_key *key);
const char *ck_kind_word(enum ck_kind kind);
const char *ck_phase_word(enum ck_phase phase); /* "destroy"; NULL for none */
#endif
