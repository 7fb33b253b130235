/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happened to an entry, and why: one line per event. Lines stay after the entry is gone. They
 * are numbered without gaps, and new lines delete the oldest: so the table is bounded, and nobody
 * ever has to count or scan it.
 */
#include <stdio.h>
#include <time.h>

#include "cache/store/store-int.h"

#define WHO_MAX 4096u /* ck_key_print() of four names */

const char ck_history_select[] = "SELECT seq, entry, who, kind, object, what, from_state, "
				 "to_state, reason, at, wall, grpc, detail,"
				 " boot FROM history ORDER BY seq";

const char ck_history_insert[] =
	"INSERT INTO history (seq, entry, who, kind, object, what, from_state, to_state, reason, "
	"at, wall,"
	" grpc, detail, boot) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)";

/* The oldest few, which are at the left end of the tree. A table that is far too long shrinks step
 * by step. */
static const char history_trim[] =
	"DELETE FROM history WHERE seq <= ?1 AND seq < (SELECT min(seq) FROM history) + 16";

enum { SEQ, ENTRY, WHO, KIND, OBJECT, WHAT, FROM, TO, REASON, AT, WALL, GRPC, DETAIL, BOOT };

static int bind_note(sqlite3_stmt *stmt, const struct ck_row *row, const char *who,
		     enum ck_what what, enum ck_state from, enum ck_state to, uint64_t at, int grpc,
		     const char *detail)
{
	int rc = sqlite3_bind_int64(stmt, ENTRY + 1, (sqlite3_int64)row->id);

#define BIND(call) rc = rc ? rc : (call)
	BIND(sqlite3_bind_text(stmt, WHO + 1, who, -1, SQLITE_STATIC));
	BIND(sqlite3_bind_int(stmt, KIND + 1, (int)row->key->kind));
	BIND(row->result ? sqlite3_bind_text(stmt, OBJECT + 1, row->result->id, -1, SQLITE_STATIC)
		       : sqlite3_bind_null(stmt, OBJECT + 1));
	BIND(sqlite3_bind_int(stmt, WHAT + 1, (int)what));
	BIND(sqlite3_bind_int(stmt, FROM + 1, (int)from));
	BIND(sqlite3_bind_int(stmt, TO + 1, (int)to));
	BIND(sqlite3_bind_int(stmt, REASON + 1, (int)row->reason));
	BIND(sqlite3_bind_int64(stmt, AT + 1, at > INT64_MAX ? INT64_MAX : (sqlite3_int64)at));
	BIND(sqlite3_bind_int64(stmt, WALL + 1, (sqlite3_int64)time(NULL)));
	BIND(sqlite3_bind_int(stmt, GRPC + 1, grpc));
	BIND(detail && *detail ? sqlite3_bind_text(stmt, DETAIL + 1, detail,
						   (int)strnlen(detail, CK_TEXT_MAX), SQLITE_STATIC)
			       : sqlite3_bind_null(stmt, DETAIL + 1));
	BIND(sqlite3_bind_text(stmt, BOOT + 1, row->boot, -1, SQLITE_STATIC));
#undef BIND
	return rc;
}

int ck_store_note(struct ck_store *store, const struct ck_row *row, enum ck_what what,
		  enum ck_state from, enum ck_state to, uint64_t at, int grpc, const char *detail,
		  struct ck_error *err)
{
	char who[WHO_MAX];
	sqlite3_stmt *stmt;
	int r = ck_store_statement(store, CK_SQL_NOTE, ck_history_insert, &stmt, err);

	if (r < 0)
		return r;
	int rc = bind_note(stmt, row, ck_key_print(row->key, who, sizeof(who)), what, from, to, at,
			   grpc, detail);
	rc = rc ? rc : sqlite3_bind_int64(stmt, SEQ + 1, (sqlite3_int64)store->round_seq + 1);
	if (rc != SQLITE_OK)
		return ck_store_broken(store,
				       ck_sql_fail(err, store->db, rc, "bind a history line"));
	r = ck_store_run(store, stmt, "write a history line", err);
	if (r == -CK_ECONFLICT)
		store->round_seq++; /* the number is taken */
	if (r < 0)
		return r;
	store->round_seq++;
	if (what == CK_WHAT_MOVED && from)
		ck_store_add_move(store, from, to);
	if (store->round_seq <= CK_HISTORY_ROWS)
		return 0;
	r = ck_store_statement(store, CK_SQL_NOTE_TRIM, history_trim, &stmt, err);
	if (r < 0)
		return r;
	rc = sqlite3_bind_int64(stmt, 1, (sqlite3_int64)(store->round_seq - CK_HISTORY_ROWS));
	if (rc != SQLITE_OK)
		return ck_store_broken(store, ck_sql_fail(err, store->db, rc, "bind"));
	return ck_store_run(store, stmt, "trim the history", err);
}

void ck_history_row_fini(struct ck_history_row *row)
{
	free(row->who);
	free(row->object);
	free(row->detail);
	*row = (struct ck_history_row){0};
}

static bool read_text(sqlite3_stmt *stmt, int col, size_t max, char **ret_copy, bool *nomem)
{
	const char *text;

	if (!ck_column_text(stmt, col, max, &text))
		return false;
	*ret_copy = ck_strdup(text);
	*nomem = !*ret_copy;
	return *ret_copy != NULL;
}

static bool read_numbers(sqlite3_stmt *stmt, struct ck_history_row *row)
{
	int64_t seq, entry, kind, what, from, to, reason, at, wall, grpc;

	if (!ck_column_number(stmt, SEQ, 1, INT64_MAX, &seq) ||
	    !ck_column_number(stmt, ENTRY, 1, INT64_MAX, &entry) ||
	    !ck_column_number(stmt, KIND, CK_SANDBOX, CK_CONTAINER, &kind) ||
	    !ck_column_number(stmt, WHAT, 1, CK_WHAT_MAX, &what) ||
	    !ck_column_number(stmt, FROM, 0, CK_STATE_MAX, &from) ||
	    !ck_column_number(stmt, TO, 0, CK_STATE_MAX, &to) ||
	    !ck_column_number(stmt, REASON, 0, CK_REASON_MAX, &reason) ||
	    !ck_column_number(stmt, AT, 0, INT64_MAX, &at) ||
	    !ck_column_number(stmt, WALL, INT64_MIN, INT64_MAX, &wall) ||
	    !ck_column_number(stmt, GRPC, INT32_MIN, INT32_MAX, &grpc))
		return false;
	*row = (struct ck_history_row){
		.seq = (uint64_t)seq,
		.entry = (uint64_t)entry,
		.kind = (enum ck_kind)kind,
		.what = (enum ck_what)what,
		.from = (enum ck_state)from,
		.to = (enum ck_state)to,
		.reason = (enum ck_reason)reason,
		.at = (uint64_t)at,
		.wall = wall,
		.grpc = (int)grpc,
	};
	return true;
}

int ck_history_decode(sqlite3_stmt *stmt, struct ck_history_row *ret_row, struct ck_error *err)
{
	struct ck_history_row row = {0};
	const char *boot;
	bool nomem = false;

	if (read_numbers(stmt, &row) && read_text(stmt, WHO, WHO_MAX, &row.who, &nomem) &&
	    (ck_column_null(stmt, OBJECT) ||
	     read_text(stmt, OBJECT, CK_ID_MAX, &row.object, &nomem)) &&
	    (ck_column_null(stmt, DETAIL) ||
	     read_text(stmt, DETAIL, CK_TEXT_MAX, &row.detail, &nomem)) &&
	    ck_column_text(stmt, BOOT, sizeof(row.boot) - 1, &boot)) {
		strcpy(row.boot, boot);
		*ret_row = row;
		return 0;
	}
	uint64_t seq = row.seq;
	ck_history_row_fini(&row);
	if (nomem || sqlite3_errcode(sqlite3_db_handle(stmt)) == SQLITE_NOMEM)
		return ck_nomem(err);
	return ck_fail(err, CK_EDAMAGED, "history line %llu is malformed", (unsigned long long)seq);
}
