/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happened to an entry, and why: one line per event. Lines stay after the entry is gone. They
 * are numbered without gaps, and new lines delete the oldest: so the table is bounded, and nobody
 * has to count it.
 */
#include <stdio.h>
#include <time.h>

#include "cache/store/store-int.h"

#define WHO_MAX 4096u /* ck_key_print() of four names */

/* in the order of every statement */
#define COLUMNS(X) \
	X(entry, NUMBER, entry, 1, INT64_MAX) \
	X(who, TEXT, who, 0, WHO_MAX) \
	X(kind, NUMBER, kind, CK_SANDBOX, CK_CONTAINER) \
	X(object, TEXT, object, CK_OR_NULL, CK_ID_MAX) \
	X(what, NUMBER, what, 1, CK_WHAT_MAX) \
	X(from_state, NUMBER, from, 0, CK_STATE_MAX) \
	X(to_state, NUMBER, to, 0, CK_STATE_MAX) \
	X(reason, NUMBER, reason, 0, CK_REASON_MAX) \
	X(at, NUMBER, at, 0, INT64_MAX) \
	X(wall, NUMBER, wall, INT64_MIN, INT64_MAX) \
	X(grpc, NUMBER, grpc, INT32_MIN, INT32_MAX) \
	X(detail, TEXT, detail, CK_OR_NULL, CK_TEXT_MAX) \
	X(boot, CHARS, boot, 0, 0)

#define COLUMN(...) CK_COLUMN(struct ck_history_row, __VA_ARGS__)
static const struct ck_store_column columns[] = { COLUMN(seq, NUMBER, seq, 1, INT64_MAX)
							  COLUMNS(COLUMN) };

#define NAME(name, ...)      ", " #name
#define PARAMETER(name, ...) ", ?"

const char ck_history_select[] = "SELECT seq" COLUMNS(NAME) " FROM history ORDER BY seq";

const char ck_history_insert[] =
	"INSERT INTO history (seq" COLUMNS(NAME) ") VALUES (?" COLUMNS(PARAMETER) ")";

/* The oldest few, which are at the left end of the tree. A table that is far too long shrinks step
 * by step. */
static const char history_trim[] =
	"DELETE FROM history WHERE seq <= ?1 AND seq < (SELECT min(seq) FROM history) + 16";

int ck_store_note(struct ck_store *store, const struct ck_row *row, enum ck_what what,
		  enum ck_state from, enum ck_state to, uint64_t at, int grpc, const char *detail,
		  struct ck_error *err)
{
	char who[WHO_MAX];
	sqlite3_stmt *stmt;
	struct ck_history_row line = {
		.seq = store->round_seq + 1,
		.entry = row->id,
		.who = who,
		.kind = row->key->kind,
		.object = row->result ? (char *)row->result->id : NULL,
		.what = what,
		.from = from,
		.to = to,
		.reason = row->reason,
		.at = at,
		.wall = (int64_t)time(NULL),
		.grpc = grpc,
		.detail = detail && *detail ? (char *)detail : NULL,
	};
	int r = ck_store_statement(store, CK_SQL_NOTE, ck_history_insert, &stmt, err);

	if (r < 0)
		return r;
	ck_key_print(row->key, who, sizeof(who));
	memcpy(line.boot, row->boot, sizeof(line.boot));
	r = ck_store_run(store, stmt, ck_columns_bind(stmt, columns, CK_COUNT(columns), &line),
			 "write a history line", err);
	if (r == -CK_ECONFLICT)
		store->round_seq++; /* the number is taken */
	if (r < 0)
		return r;
	store->round_seq++;
	if (what == CK_WHAT_MOVED && from)
		ck_store_add_move(store, from, to);
	if (store->round_seq <= CK_HISTORY_ROWS)
		return 0;
	return ck_store_run_by_id(store, CK_SQL_NOTE_TRIM, history_trim,
				  store->round_seq - CK_HISTORY_ROWS, "trim the history", err);
}

void ck_history_row_fini(struct ck_history_row *row)
{
	free(row->who);
	free(row->object);
	free(row->detail);
	*row = (struct ck_history_row){ 0 };
}

/* @text is borrowed, or NULL: it is copied. */
static bool own(char **text)
{
	if (!*text)
		return true;
	*text = ck_strdup(*text);
	return *text;
}

int ck_history_decode(sqlite3_stmt *stmt, struct ck_history_row *ret_row, struct ck_error *err)
{
	struct ck_history_row row = { 0 };

	if (ck_columns_read(stmt, columns, CK_COUNT(columns), &row))
		return ck_column_fail(stmt, err, "history line %llu is malformed",
				      (unsigned long long)row.seq);
	/* all of them, so that what is freed then is its own */
	bool who = own(&row.who), object = own(&row.object), detail = own(&row.detail);
	if (!who || !object || !detail) {
		ck_history_row_fini(&row);
		return ck_nomem(err);
	}
	*ret_row = row;
	return 0;
}
