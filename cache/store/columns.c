/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Columns of a statement: one, or all those of a table as the members of a struct. What is read is
 * checked like input from the network: type, length and range of every column.
 */
#include <stdarg.h>
#include <stdio.h>

#include "cache/store/store-int.h"

/* ---- one ------------------------------------------------------------------------------------- */

bool ck_column_number(sqlite3_stmt *stmt, int col, int64_t min, int64_t max, int64_t *ret_value)
{
	if (sqlite3_column_type(stmt, col) != SQLITE_INTEGER)
		return false;
	*ret_value = sqlite3_column_int64(stmt, col);
	return *ret_value >= min && *ret_value <= max;
}

bool ck_column_text(sqlite3_stmt *stmt, int col, size_t max, const char **ret_text)
{
	if (sqlite3_column_type(stmt, col) != SQLITE_TEXT)
		return false;
	const char *text = (const char *)sqlite3_column_text(stmt, col);
	size_t len = (size_t)sqlite3_column_bytes(stmt, col);
	if (!text || len > max || memchr(text, '\0', len))
		return false;
	*ret_text = text;
	return true;
}

bool ck_column_blob(sqlite3_stmt *stmt, int col, size_t min, size_t max, struct ck_blob *ret_blob)
{
	if (sqlite3_column_type(stmt, col) != SQLITE_BLOB)
		return false;
	const void *bytes = sqlite3_column_blob(stmt, col); /* NULL when it is empty */
	size_t len = (size_t)sqlite3_column_bytes(stmt, col);
	if (len < min || len > max || (len && !bytes))
		return false;
	*ret_blob = (struct ck_blob){ bytes ? bytes : "", len };
	return true;
}

int ck_column_fail(sqlite3_stmt *stmt, struct ck_error *err, const char *fmt, ...)
{
	char what[CK_ERROR_TEXT];
	va_list ap;

	/* what could not be read for lack of memory is not damaged */
	if (sqlite3_errcode(sqlite3_db_handle(stmt)) == SQLITE_NOMEM)
		return ck_nomem(err);
	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	return ck_fail(err, CK_EDAMAGED, "%s", what);
}

/* ---- those of a table ------------------------------------------------------------------------ */

static int bind_number(sqlite3_stmt *stmt, int param, const struct ck_store_column *column,
		       const void *member)
{
	uint64_t number = 0;
	uint32_t small;

	if (column->size == sizeof(number)) {
		memcpy(&number, member, sizeof(number));
		if (column->min >= 0 && number > INT64_MAX)
			number = INT64_MAX;
	} else {
		memcpy(&small, member, sizeof(small));
		number = column->min < 0 ? (uint64_t)(int32_t)small : small;
	}
	return sqlite3_bind_int64(stmt, param, (sqlite3_int64)number);
}

int ck_columns_bind(sqlite3_stmt *stmt, const struct ck_store_column *columns, size_t n,
		    const void *from)
{
	int rc = SQLITE_OK;

	for (size_t i = 0; i < n && rc == SQLITE_OK; i++) {
		const struct ck_store_column *column = &columns[i];
		const void *member = (const char *)from + column->at;
		const char *text;
		struct ck_blob blob;
		int param = (int)i + 1;
		switch (column->type) {
		case CK_COLUMN_NUMBER:
			rc = bind_number(stmt, param, column, member);
			break;
		case CK_COLUMN_TEXT:
			memcpy(&text, member, sizeof(text));
			rc = sqlite3_bind_text(stmt, param, text, -1, SQLITE_STATIC);
			break;
		case CK_COLUMN_CHARS:
			rc = sqlite3_bind_text(stmt, param, member, -1, SQLITE_TRANSIENT);
			break;
		case CK_COLUMN_BLOB:
			memcpy(&blob, member, sizeof(blob));
			rc = sqlite3_bind_blob64(stmt, param, blob.bytes, blob.len, SQLITE_STATIC);
			break;
		}
	}
	return rc;
}

static bool read_one(sqlite3_stmt *stmt, int col, const struct ck_store_column *column,
		     void *member)
{
	struct ck_blob blob;
	const char *text;
	int64_t number;
	uint32_t small;

	if (column->min == CK_OR_NULL && column->type != CK_COLUMN_NUMBER &&
	    sqlite3_column_type(stmt, col) == SQLITE_NULL)
		return true;
	switch (column->type) {
	case CK_COLUMN_NUMBER:
		if (!ck_column_number(stmt, col, column->min, column->max, &number))
			return false;
		small = (uint32_t)number;
		memcpy(member, column->size == sizeof(small) ? (void *)&small : &number,
		       column->size);
		return true;
	case CK_COLUMN_TEXT:
		if (!ck_column_text(stmt, col, (size_t)column->max, &text))
			return false;
		memcpy(member, &text, sizeof(text));
		return true;
	case CK_COLUMN_CHARS:
		if (!ck_column_text(stmt, col, column->size - 1, &text))
			return false;
		strcpy(member, text);
		return true;
	case CK_COLUMN_BLOB:
		if (!ck_column_blob(stmt, col, 0, (size_t)column->max, &blob))
			return false;
		memcpy(member, &blob, sizeof(blob));
		return true;
	}
	return false;
}

const char *ck_columns_read(sqlite3_stmt *stmt, const struct ck_store_column *columns, size_t n,
			    void *into)
{
	for (size_t i = 0; i < n; i++)
		if (!read_one(stmt, (int)i, &columns[i], (char *)into + columns[i].at))
			return columns[i].name;
	return NULL;
}
