/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of a forged database: the bytes give each column of one row a type and a value, in a table
 * without a single check. The decoder refuses the row or gives one that can be used, written and
 * read again.
 *
 * Bytes: for each of the 33 columns of ck_row_select, then for the 14 of ck_history_select: a type
 * (modulo 6: as a good row has it, null, integer, small integer, text, blob), and for all but the
 * first two: integer 8 bytes, small integer 1 byte, text and blob a length (1 byte, times 16 if
 * above 200) and so many bytes. When bytes run out the good value is taken.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cache/store/store-int.h"
#include "tests/fuzz/fuzz.h"

static const char *const entry_good[] = {
	"7",
	"1",
	"0",
	"'ns'",
	"'web'",
	"'uid'",
	"''",
	"''",
	"1",
	"x'0102030405060708'",
	"zeroblob(16)",
	"zeroblob(32)",
	"zeroblob(16)",
	"zeroblob(16)",
	"2",
	"1",
	"0",
	"0",
	"1",
	"'stage'",
	"'0f1e2d'",
	"x'0a03616263'",
	"'10-x'",
	"1",
	"0",
	"0",
	"0",
	"5",
	"6",
	"7",
	"8",
	"9",
	"'6f9f0b1c-52a4-4e43-9c2e-3b9f8a1d7c10'",
	"10",
	"11",
	"12",
	"13",
};
static const char *const history_good[] = {
	"1",      "7",          "'sandbox ns/web attempt 0'",
	"1",      "'0f1e2d'",   "1",
	"1",      "2",          "1",
	"5",      "1700000000", "0",
	"'text'", "'boot'",
};

struct input {
	const uint8_t *at, *end;
};

static uint8_t take(struct input *in)
{
	return in->at < in->end ? *in->at++ : 0;
}

/* The value of an SQL expression, computed once. */
static sqlite3_value *value_of(sqlite3 *db, const char *good)
{
	static struct {
		const char *good;
		sqlite3_value *value;
	} known[CK_COUNT(entry_good) + CK_COUNT(history_good)];
	char sql[80];
	sqlite3_stmt *stmt;
	size_t i = 0;

	while (known[i].good && known[i].good != good)
		i++;
	if (!known[i].good) {
		snprintf(sql, sizeof(sql), "SELECT %s", good);
		if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) != SQLITE_OK ||
		    sqlite3_step(stmt) != SQLITE_ROW)
			abort();
		known[i].value = sqlite3_value_dup(sqlite3_column_value(stmt, 0));
		known[i].good = good;
		sqlite3_finalize(stmt);
	}
	return known[i].value;
}

static void bind_value(struct input *in, sqlite3_stmt *stmt, int col, const char *good)
{
	uint64_t number = 0;

	switch (take(in) % 6) {
	case 0:
		sqlite3_bind_value(stmt, col, value_of(sqlite3_db_handle(stmt), good));
		break;
	case 1:
		break;
	case 2:
		for (int i = 0; i < 8; i++)
			number = number << 8 | take(in);
		sqlite3_bind_int64(stmt, col, (sqlite3_int64)number);
		break;
	case 3:
		sqlite3_bind_int64(stmt, col, (int8_t)take(in));
		break;
	case 4:
	case 5: {
		bool text = in->at[-1] % 6 == 4;
		size_t len = take(in);
		len = len > 200 ? len * 16 : len;
		len = len > (size_t)(in->end - in->at) ? (size_t)(in->end - in->at) : len;
		if (text)
			sqlite3_bind_text(stmt, col, (const char *)in->at, (int)len,
					  SQLITE_TRANSIENT);
		else
			sqlite3_bind_blob(stmt, col, in->at, (int)len, SQLITE_TRANSIENT);
		in->at += len;
		break;
	}
	}
}

static void insert(struct input *in, sqlite3 *db, const char *sql, const char *const *good,
		   size_t n)
{
	sqlite3_stmt *stmt;

	if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) != SQLITE_OK)
		abort();
	for (size_t i = 0; i < n; i++)
		bind_value(in, stmt, (int)i + 1, good[i]);
	sqlite3_step(stmt);
	sqlite3_finalize(stmt);
}

static void decode_entry(sqlite3 *db, bool again)
{
	sqlite3_stmt *stmt, *write;
	struct ck_row row;
	struct ck_error err;

	if (sqlite3_prepare_v2(db, ck_row_select, -1, &stmt, NULL) != SQLITE_OK)
		abort();
	int r = sqlite3_step(stmt) == SQLITE_ROW ? ck_row_decode(stmt, &row, &err) : -CK_EDAMAGED;
	sqlite3_finalize(stmt);
	if (r < 0) {
		if (again || r != -CK_EDAMAGED)
			abort();
		return;
	}
	if (!row.key || strcmp(ck_state_name(row.state), "?") == 0 ||
	    strlen(row.stage) > CK_STAGE_MAX || (row.result && !*row.result->id))
		abort();
	if (!again) { /* what was taken can be written, and is taken again */
		sqlite3_exec(db, "DELETE FROM entry", NULL, NULL, NULL);
		if (sqlite3_prepare_v2(db, ck_row_insert, -1, &write, NULL) != SQLITE_OK ||
		    ck_row_bind(write, &row, true) != SQLITE_OK ||
		    sqlite3_step(write) != SQLITE_DONE)
			abort();
		sqlite3_finalize(write);
		decode_entry(db, true);
	}
	ck_row_fini(&row);
}

static void decode_history(sqlite3 *db)
{
	sqlite3_stmt *stmt;
	struct ck_history_row row;
	struct ck_error err;

	if (sqlite3_prepare_v2(db, ck_history_select, -1, &stmt, NULL) != SQLITE_OK)
		abort();
	if (sqlite3_step(stmt) == SQLITE_ROW && ck_history_decode(stmt, &row, &err) >= 0) {
		if (!row.who || row.what > CK_WHAT_MAX)
			abort();
		ck_history_row_fini(&row);
	}
	sqlite3_finalize(stmt);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static sqlite3 *db;
	struct input in = {data, data + size};

	if (!db && (sqlite3_open(":memory:", &db) != SQLITE_OK ||
		    sqlite3_exec(db,
				 "CREATE TABLE entry (id, kind, attempt, namespace, name, uid, "
				 "sandbox, container, form, key_id, salt,"
				 " root, rest, image_id, state, flags, reason, phase, origin, "
				 "stage, object, reply, told, requests, tries,"
				 " last_grpc, created, changed, interest, existed, "
				 "due, boot, staged, searched, absent, asked, start);"
				 "CREATE TABLE history (seq, entry, who, kind, object, what, "
				 "from_state, to_state, reason, at, wall, grpc,"
				 " detail, boot)",
				 NULL, NULL, NULL) != SQLITE_OK))
		abort();
	sqlite3_exec(db, "DELETE FROM entry; DELETE FROM history", NULL, NULL, NULL);
	insert(&in, db, ck_row_insert, entry_good, CK_COUNT(entry_good));
	insert(&in, db, ck_history_insert, history_good, CK_COUNT(history_good));
	decode_entry(db, false);
	decode_history(db);
	return 0;
}
