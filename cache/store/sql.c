/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SQLite calls with our errors, and the schema. Each call asks ck_fault() whether
 * it is to fail. A database is untrusted input: its schema must be exactly ours before any row is
 * read.
 */
#include <errno.h>
#include <stdio.h>

#include "cache/store/store-int.h"
#include "src/base/fault.h"

/* ---- calls ----------------------------------------------------------------------------------- */

static int code_of(int rc, int sys)
{
	switch (rc & 0xff) {
	case SQLITE_NOMEM:
		return CK_ENOMEM;
	case SQLITE_FULL:
		return CK_EFULL;
	case SQLITE_CONSTRAINT:
		return CK_ECONFLICT;
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
	case SQLITE_FORMAT:
	case SQLITE_MISMATCH:
	case SQLITE_ERROR: /* our statements are fixed, so the schema is not what they expect */
		return CK_EDAMAGED;
	case SQLITE_IOERR:
		if (rc == SQLITE_IOERR_NOMEM)
			return CK_ENOMEM;
		if (rc == SQLITE_IOERR_CORRUPTFS)
			return CK_EDAMAGED;
		break;
	}
	return sys == ENOSPC || sys == EDQUOT ? CK_EFULL : CK_EIO;
}

int ck_sql_fail(struct ck_error *err, sqlite3 *db, int rc, const char *doing)
{
	/* errno and text belong to this failure only if SQLite has seen it, unlike an injected
	 * one */
	bool own = db && sqlite3_extended_errcode(db) == rc;
	int sys = own ? sqlite3_system_errno(db) : 0;
	int r = ck_fail(err, code_of(rc, sys), "%s: %s", doing,
			own ? sqlite3_errmsg(db) : sqlite3_errstr(rc));

	if (err) {
		err->sys = sys;
		err->sub = rc;
	}
	return r;
}

int ck_sql_prepare(sqlite3 *db, const char *sql, sqlite3_stmt **ret_stmt, struct ck_error *err)
{
	int rc = ck_fault(CK_FAULT_STORE)
			 ? SQLITE_IOERR
			 : sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, ret_stmt,
					      NULL);

	return rc == SQLITE_OK ? 0 : ck_sql_fail(err, db, rc, "prepare");
}

int ck_sql_step(sqlite3_stmt *stmt)
{
	return ck_fault(CK_FAULT_STORE) ? SQLITE_IOERR : sqlite3_step(stmt);
}

int ck_sql_exec(sqlite3 *db, const char *sql, struct ck_error *err)
{
	int rc = ck_fault(CK_FAULT_STORE) ? SQLITE_IOERR : sqlite3_exec(db, sql, NULL, NULL, NULL);

	/* the text is for people, who do not know our statements */
	return rc == SQLITE_OK ? 0 : ck_sql_fail(err, db, rc, "set up the database");
}

int ck_sql_each(sqlite3 *db, const char *sql, ck_sql_row_fn *fn, void *userdata, const char *doing,
		struct ck_error *err)
{
	sqlite3_stmt *stmt = NULL;
	int rc = SQLITE_DONE;
	int r = ck_sql_prepare(db, sql, &stmt, err);

	while (r >= 0 && (rc = ck_sql_step(stmt)) == SQLITE_ROW)
		r = fn(stmt, userdata, err);
	if (r >= 0 && rc != SQLITE_DONE)
		r = ck_sql_fail(err, db, rc, doing);
	sqlite3_finalize(stmt);
	return r < 0 ? r : 0;
}

int ck_sql_number(sqlite3 *db, const char *sql, int64_t *ret_value, struct ck_error *err)
{
	sqlite3_stmt *stmt = NULL;
	int r = ck_sql_prepare(db, sql, &stmt, err);

	if (r < 0)
		return r;
	int rc = ck_sql_step(stmt);
	if (rc == SQLITE_ROW && ck_column_number(stmt, 0, INT64_MIN, INT64_MAX, ret_value))
		r = 0;
	else if (rc == SQLITE_ROW || rc == SQLITE_DONE)
		r = ck_fail(err, CK_EDAMAGED, "a number is missing or malformed");
	else
		r = ck_sql_fail(err, db, rc, "read the database");
	sqlite3_finalize(stmt);
	return r;
}

static int read_text(sqlite3_stmt *stmt, void *userdata, struct ck_error *err)
{
	char *into = userdata;
	const char *text;

	if (!ck_column_text(stmt, 0, INT32_MAX, &text))
		return ck_column_fail(stmt, err, "a text is malformed");
	if (!*into)
		snprintf(into, CK_ERROR_TEXT, "%s", text);
	return 0;
}

int ck_sql_text(sqlite3 *db, const char *sql, char ret_text[CK_ERROR_TEXT], const char *doing,
		struct ck_error *err)
{
	ret_text[0] = '\0';
	return ck_sql_each(db, sql, read_text, ret_text, doing, err);
}

int ck_sql_open(const char *path, int flags, sqlite3 **ret_db, struct ck_error *err)
{
	/* Only one thread at a time uses a connection, so it needs no mutex. The schema of a file
	 * must not run code in our process. */
	static const struct {
		int option, value;
	} config[] = {
		{ SQLITE_DBCONFIG_DEFENSIVE, 1 },        { SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0 },
		{ SQLITE_DBCONFIG_ENABLE_TRIGGER, 0 },   { SQLITE_DBCONFIG_ENABLE_VIEW, 0 },
		{ SQLITE_DBCONFIG_DQS_DDL, 0 },          { SQLITE_DBCONFIG_DQS_DML, 0 },
		{ SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1 },
	};
	sqlite3 *db = NULL;
	int rc = ck_fault(CK_FAULT_STORE)
			 ? SQLITE_IOERR
			 : sqlite3_open_v2(path, &db,
					   flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW,
					   CK_SQL_VFS);

	if (rc == SQLITE_OK) {
		sqlite3_extended_result_codes(db, 1);
		sqlite3_busy_timeout(db, CK_BUSY_MS);
	}
	for (size_t i = 0; rc == SQLITE_OK && i < CK_COUNT(config); i++)
		rc = sqlite3_db_config(db, config[i].option, config[i].value, NULL);
	if (rc != SQLITE_OK) {
		int r = ck_sql_fail(err, db, rc, "open");
		sqlite3_close(db); /* a failed open must be closed, too */
		return r;
	}
	*ret_db = db;
	return 0;
}

/* ---- the schema ------------------------------------------------------------------------------ */

/* What sqlite_schema contains in version CK_SCHEMA_VERSION, sorted by name, beside the statistics
 * that any ANALYZE makes. No index: each would be a page more in every transaction, and memory
 * holds what is needed to find an entry. */
static const struct object {
	const char *name, *sql;
} schema[] = {
	{ "counter", "CREATE TABLE counter (\n"
		     "  name  TEXT PRIMARY KEY NOT NULL,\n"
		     "  value INTEGER NOT NULL CHECK (value >= 0)\n"
		     ") STRICT, WITHOUT ROWID" },
	{ "entry", "CREATE TABLE entry (\n"
		   "  id         INTEGER PRIMARY KEY, -- not one that a history line names\n"
		   "  kind       INTEGER NOT NULL CHECK (kind IN (1, 2)),\n"
		   "  attempt    INTEGER NOT NULL CHECK (attempt BETWEEN 0 AND 4294967295),\n"
		   "  namespace  TEXT NOT NULL,\n"
		   "  name       TEXT NOT NULL,\n"
		   "  uid        TEXT NOT NULL,\n"
		   "  sandbox    TEXT NOT NULL,\n"
		   "  container  TEXT NOT NULL,\n"
		   "  form       INTEGER NOT NULL CHECK (form BETWEEN 0 AND 4294967295), -- 0: no "
		   "fingerprint\n"
		   "  key_id     BLOB CHECK (length(key_id) = 8),\n"
		   "  salt       BLOB CHECK (length(salt) = 16),\n"
		   "  root       BLOB CHECK (length(root) = 32),\n"
		   "  rest       BLOB CHECK (length(rest) = 16),\n"
		   "  image_id   BLOB CHECK (length(image_id) = 16),\n"
		   "  state      INTEGER NOT NULL CHECK (state BETWEEN 1 AND 8),\n"
		   "  flags      INTEGER NOT NULL CHECK (flags BETWEEN 0 AND 7),\n"
		   "  reason     INTEGER NOT NULL CHECK (reason >= 0),\n"
		   "  phase      INTEGER NOT NULL CHECK (phase >= 0),\n"
		   "  origin     INTEGER NOT NULL CHECK (origin IN (1, 2)),\n"
		   "  stage      TEXT NOT NULL,\n"
		   "  object     TEXT, -- the runtime's id\n"
		   "  reply      BLOB CHECK ((reply IS NULL) = (object IS NULL)),\n"
		   "  told       TEXT,\n"
		   "  requests   INTEGER NOT NULL CHECK (requests >= 0),\n"
		   "  tries      INTEGER NOT NULL CHECK (tries >= 0),\n"
		   "  last_grpc  INTEGER NOT NULL,\n"
		   "  created    INTEGER NOT NULL CHECK (created >= 0), -- times: ns of "
		   "CLOCK_BOOTTIME of boot\n"
		   "  changed    INTEGER NOT NULL CHECK (changed >= 0),\n"
		   "  interest   INTEGER NOT NULL CHECK (interest >= 0),\n"
		   "  existed    INTEGER NOT NULL CHECK (existed >= 0),\n"
		   "  due        INTEGER NOT NULL CHECK (due >= 0),\n"
		   "  boot       TEXT NOT NULL,\n"
		   "  staged     INTEGER NOT NULL CHECK (staged >= 0), -- when the stage began\n"
		   "  searched   INTEGER NOT NULL CHECK (searched >= 0), -- its id, since\n"
		   "  absent     INTEGER NOT NULL CHECK (absent >= 0), -- from every list, since\n"
		   "  asked      INTEGER NOT NULL CHECK (asked >= 0), -- for it, last\n"
		   "  start      INTEGER NOT NULL CHECK (start BETWEEN 0 AND 3) -- of a container\n"
		   ") STRICT" },
	{ "fingerprint", "CREATE TABLE fingerprint (\n"
			 "  entry  INTEGER PRIMARY KEY,\n"
			 "  leaves BLOB NOT NULL\n"
			 ") STRICT" },
	{ "history",
	  "CREATE TABLE history (\n"
	  "  seq        INTEGER PRIMARY KEY,\n"
	  "  entry      INTEGER NOT NULL,\n"
	  "  who        TEXT NOT NULL,\n"
	  "  kind       INTEGER NOT NULL CHECK (kind IN (1, 2)),\n"
	  "  object     TEXT,\n"
	  "  what       INTEGER NOT NULL CHECK (what > 0),\n"
	  "  from_state INTEGER NOT NULL CHECK (from_state BETWEEN 0 AND 8),\n"
	  "  to_state   INTEGER NOT NULL CHECK (to_state BETWEEN 0 AND 8),\n"
	  "  reason     INTEGER NOT NULL CHECK (reason >= 0),\n"
	  "  at         INTEGER NOT NULL CHECK (at >= 0), -- ns of CLOCK_BOOTTIME of boot\n"
	  "  wall       INTEGER NOT NULL, -- seconds of CLOCK_REALTIME\n"
	  "  grpc       INTEGER NOT NULL,\n"
	  "  detail     TEXT,\n"
	  "  boot       TEXT NOT NULL\n"
	  ") STRICT" },
};

_Static_assert(CK_STATE_MAX == 8 && CK_ORIGIN_CACHE == 1 && CK_ORIGIN_RUNTIME == 2 &&
		       CK_SANDBOX == 1 && CK_CONTAINER == 2,
	       "the schema says these as numbers");
_Static_assert(CK_KEY_ID_BYTES == 8 && CK_SALT_BYTES == 16 && CK_ROOT_BYTES == 32 &&
		       CK_DIGEST_BYTES == 16,
	       "the schema says these as numbers");

static int compare_schema(sqlite3 *db, struct ck_error *err)
{
	sqlite3_stmt *stmt = NULL;
	size_t n = 0;
	bool same = true;
	int rc;
	int r = ck_sql_prepare(db,
			       "SELECT name, sql FROM sqlite_schema WHERE type <> 'table'"
			       " OR substr(name, 1, 7) <> 'sqlite_' ORDER BY name",
			       &stmt, err);

	if (r < 0)
		return r;
	for (; (rc = ck_sql_step(stmt)) == SQLITE_ROW; n++) {
		const char *name = (const char *)sqlite3_column_text(stmt, 0);
		const char *sql = (const char *)sqlite3_column_text(stmt, 1);
		same = same && n < CK_COUNT(schema) && name && !strcmp(name, schema[n].name) &&
		       sql && !strcmp(sql, schema[n].sql);
	}
	if (rc != SQLITE_DONE)
		r = ck_sql_fail(err, db, rc, "read the schema");
	else if (!same || n != CK_COUNT(schema))
		r = ck_column_fail(stmt, err, "the schema is not crikeep's");
	sqlite3_finalize(stmt);
	return r;
}

int ck_schema_check(sqlite3 *db, int *ret_version, struct ck_error *err)
{
	int64_t application = 0, version = 0, objects = 0;
	int r = ck_sql_number(db, "PRAGMA application_id", &application, err);

	if (r >= 0)
		r = ck_sql_number(db, "PRAGMA user_version", &version, err);
	if (r >= 0)
		r = ck_sql_number(db, "SELECT count(*) FROM sqlite_schema", &objects, err);
	if (r < 0)
		return r;
	if (!application && !version && !objects) {
		*ret_version = 0;
		return 1;
	}
	if (application != CK_APPLICATION_ID)
		return ck_fail(err, CK_EDAMAGED, "the file is not a database of crikeep");
	if (version > CK_SCHEMA_VERSION)
		return ck_fail(err, CK_EVERSION,
			       "the database has schema version %lld, this program knows %d",
			       (long long)version, CK_SCHEMA_VERSION);
	/* no release had a smaller version, so there is nothing to convert */
	r = version < CK_SCHEMA_VERSION
		    ? ck_fail(err, CK_EDAMAGED, "schema version %lld", (long long)version)
		    : compare_schema(db, err);
	if (r < 0)
		return r;
	*ret_version = (int)version;
	return 0;
}

/* Bring a database from version @from (0: it is empty) to CK_SCHEMA_VERSION, completely or not at
 * all. */
int ck_schema_make(sqlite3 *db, int from, struct ck_error *err)
{
	char sql[64];
	int r = ck_sql_exec(db, "BEGIN IMMEDIATE", err);

	if (r < 0)
		return r;
	for (size_t i = 0; r >= 0 && from < 1 && i < CK_COUNT(schema); i++)
		r = ck_sql_exec(db, schema[i].sql, err);
	if (r >= 0) {
		snprintf(sql, sizeof(sql), "PRAGMA application_id = %d", CK_APPLICATION_ID);
		r = ck_sql_exec(db, sql, err);
	}
	if (r >= 0) {
		snprintf(sql, sizeof(sql), "PRAGMA user_version = %d", CK_SCHEMA_VERSION);
		r = ck_sql_exec(db, sql, err);
	}
	if (r >= 0)
		r = ck_sql_exec(db, "COMMIT", err);
	if (r < 0)
		sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
	return r;
}
