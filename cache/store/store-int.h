/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_CACHE_STORE_STORE_INT_H
#define CK_CACHE_STORE_STORE_INT_H
/*
 * What the files of the store share.
 *
 *   transaction.c       a round: its statements           row.c        a row to and from a statement
 *   open-database.c  open, reopen, set aside, close    history.c    history lines
 *   state-dir.c   the directory: lock, names, key   sql.c  SQLite calls with our errors; the schema
 *   sqlite-check.c   is this SQLite fit for us
 *   checkpoint.c         bounds on the WAL, a new file     copy.c       a consistent copy without any lock
 *   reader.c        readers
 */
#include <sqlite3.h>
#include <stdbool.h>

#include "cache/store/store.h"
#include "src/base/error.h"
#include "src/base/limits.h"
#include "src/base/mem.h"

#define CK_SCHEMA_VERSION 1          /* PRAGMA user_version; sql.c says how to get there */
#define CK_APPLICATION_ID 0x43524b50 /* "CRKP": PRAGMA application_id */
#define CK_PAGE_SIZE	  4096u
#define CK_FRAME_SIZE	  (CK_PAGE_SIZE + 24u) /* a page in the WAL */

#define CK_BUSY_MS	  20 /* a foreign tool writes: a round waits no longer than this */

/* Names in the state directory. */
#define CK_DB_NAME    "crikeep.db"
#define CK_DB_WAL     CK_DB_NAME "-wal"
#define CK_DB_SHM     CK_DB_NAME "-shm"
#define CK_DB_TMP     CK_DB_NAME ".tmp"	 /* a new file being written (checkpoint.c): worthless */
/* a new file, complete: it is the database; CK_DB_NAME and its WAL are past */
#define CK_DB_NEXT    CK_DB_NAME ".next"
#define CK_OWNER_NAME "owner"
#define CK_KEY_NAME   "key"

struct ck_store;

/* ---- state-dir.c ----------------------------------------------------------------------------- */

#define CK_OWNER_TEXT 64 /* "PID BOOTTIME\n": differs for each life of an owner */

int ck_state_dir_open(const char *dir, bool make, char **ret_path, int *ret_fd,
		      struct ck_error *err);
/* -CK_EOWNED; until the descriptor is closed */
int ck_state_dir_own(int dirfd, const char *path, struct ck_error *err);
/* the last owner's pid either way; asks without taking a lock, so it cannot be in an owner's way */
bool ck_state_dir_owned(int dirfd, long *ret_pid);
void ck_state_dir_owner_text(int dirfd, char text[CK_OWNER_TEXT]);
bool ck_state_dir_is_memory(int dirfd); /* tmpfs: an fsync costs nothing */
/* of a file, without opening it; -1: there is none */
int64_t ck_state_dir_size(int dirfd, const char *name);
/* the digest key of the directory; one of this life only where it cannot be written. -CK_EIO (no
 * randomness) */
int ck_state_dir_key(int dirfd, struct ck_digest_key *ret_key, struct ck_error *err);
bool ck_state_dir_parse_key(const void *bytes, size_t len, struct ck_digest_key *ret_key);
/* make CK_DB_NAME if it is absent, 0600, and finish what an interrupted change of files left;
 * before SQLite has it open */
int ck_state_dir_prepare(int dirfd, struct ck_error *err);
/* an empty file, 0600; must not exist */
int ck_state_dir_make(int dirfd, const char *name, struct ck_error *err);
/* CK_DB_NEXT becomes CK_DB_NAME */
int ck_state_dir_swap(int dirfd, struct ck_error *err);
int ck_state_dir_set_aside(int dirfd, char ret_name[512], struct ck_error *err);

/* ---- sqlite-check.c -------------------------------------------------------------------------- */

#define CK_SQL_VFS "unix" /* by name: a host may have made another one the default */

int ck_sqlite_check(struct ck_error *err); /* 0, -CK_EINVAL, -CK_ENOMEM */

/* ---- sql.c ----------------------------------------------------------------------------------- */

/* every call that can fail asks ck_fault(CK_FAULT_STORE) first */
/* SQLite's code as one of ours */
int ck_sql_fail(struct ck_error *err, sqlite3 *db, int rc, const char *doing);
int ck_sql_prepare(sqlite3 *db, const char *sql, sqlite3_stmt **ret_stmt, struct ck_error *err);
int ck_sql_step(sqlite3_stmt *stmt); /* SQLITE_ROW, SQLITE_DONE or an error */
int ck_sql_exec(sqlite3 *db, const char *sql, struct ck_error *err);
/* -CK_EDAMAGED: not an integer */
int ck_sql_number(sqlite3 *db, const char *sql, int64_t *ret_value, struct ck_error *err);
/* nothing in the file is trusted */
int ck_sql_open(const char *path, int flags, sqlite3 **ret_db, struct ck_error *err);
/* 1: empty, nothing was ever in it; 0: ours; -CK_EVERSION, -CK_EDAMAGED, ... */
int ck_schema_check(sqlite3 *db, int *ret_version, struct ck_error *err);
int ck_schema_make(sqlite3 *db, int from, struct ck_error *err);

/* ---- row.c ----------------------------------------------------------------------------------- */

extern const char ck_row_select[]; /* all rows, by id */
extern const char ck_row_insert[], ck_row_update[], ck_digests_select[];
/* SQLITE_OK or what bind said; borrowed until reset */
int ck_row_bind(sqlite3_stmt *stmt, const struct ck_row *row, bool whole);
/* ck_row_decode - one row of ck_row_select, as distrustful as of the network. -CK_EDAMAGED,
 * -CK_ENOMEM */
int ck_row_decode(sqlite3_stmt *stmt, struct ck_row *ret_row, struct ck_error *err);
/* one row of ck_digests_select */
int ck_digests_decode(sqlite3_stmt *stmt, struct ck_record *record, struct ck_error *err);
int ck_counters_read(sqlite3 *db, struct ck_counters *ret_counters, struct ck_error *err);

/* Columns read with distrust: false: not of this type or not within these bounds. */
bool ck_column_number(sqlite3_stmt *stmt, int col, int64_t min, int64_t max, int64_t *ret_value);
/* no NUL inside; until the next step */
bool ck_column_text(sqlite3_stmt *stmt, int col, size_t max, const char **ret_text);
bool ck_column_blob(sqlite3_stmt *stmt, int col, size_t min, size_t max, const void **ret_bytes,
		    size_t *ret_len);
bool ck_column_null(sqlite3_stmt *stmt, int col);

/* ---- history.c ------------------------------------------------------------------------------- */

extern const char ck_history_select[], ck_history_insert[], ck_history_trim[];
int ck_history_decode(sqlite3_stmt *stmt, struct ck_history_row *ret_row, struct ck_error *err);
void ck_history_row_fini(struct ck_history_row *row);
/* for ck_crash_hook; from 0: a new row */
void ck_store_add_move(struct ck_store *store, enum ck_state from, enum ck_state to);

/* ---- copy.c ---------------------------------------------------------------------------------- */

struct ck_copy { /* a database in memory; plain SQLite reads it */
	sqlite3 *db;
	unsigned char *bytes;
};
/* -CK_ENOTFOUND: no database, or nothing in it yet */
int ck_copy_open(int dirfd, struct ck_copy *ret_copy, struct ck_error *err);
void ck_copy_close(struct ck_copy *copy);
/* Called twice in the middle of a copy: a test stops or changes things there. NULL otherwise. */
extern void (*ck_copy_hook)(void);

/* ---- the store ------------------------------------------------------------------------------- */

#define CK_STATEMENTS(X) \
	X(BEGIN, "BEGIN IMMEDIATE") \
	X(COMMIT, "COMMIT") \
	X(INSERT, ck_row_insert) \
	X(UPDATE, ck_row_update) \
	X(DELETE, "DELETE FROM entry WHERE id = ?1") \
	X(DIGESTS, ck_digests_select) \
	X(DIGESTS_INSERT, "INSERT INTO fingerprint (entry, leaves) VALUES (?1, ?2)") \
	X(DIGESTS_DELETE, "DELETE FROM fingerprint WHERE entry = ?1") \
	X(NOTE, ck_history_insert) \
	X(NOTE_TRIM, ck_history_trim) \
	X(COUNTER, "INSERT INTO counter (name, value) VALUES (?1, ?2)" \
		   " ON CONFLICT (name) DO UPDATE SET value = excluded.value")

enum ck_statement {
#define CK_STATEMENT_ENUM(name, sql) CK_SQL_##name,
	CK_STATEMENTS(CK_STATEMENT_ENUM)
#undef CK_STATEMENT_ENUM
	CK_SQL_N,
};

struct ck_checkpointer;

struct ck_store {
	char *dir;
	char *path; /* of the database */
	int dirfd;  /* holds the lock */
	sqlite3 *db;         /* the writer; NULL: nothing can be written now */
	/* while there is no writer: what was in the database, to be loaded from */
	struct ck_copy copy;
	sqlite3_stmt *stmts[CK_SQL_N]; /* of db, prepared when first used */
	struct ck_digest_key key;
	bool set_aside_first; /* the files are damaged and could not be renamed yet */
	/* the file was taken away under us: what is in memory must be written to a new one */
	bool moved;
	bool in_round;
	uint64_t last_id;
	/* of history: committed, and with this round */
	uint64_t last_seq, round_seq;
	struct ck_counters counters, round_counters;  /* as in the database, and with this round */
	bool counters_known, round_counters_known;
	char moves[256]; /* of this round, for ck_crash_hook */
	size_t moves_len;
	unsigned frames;      /* of the WAL after the last commit */
	bool woken;	      /* the checkpointer, for this WAL */
	unsigned move_frames; /* a move to a new file is tried at so many frames */
	bool checkpoint_due;  /* something was committed since the last checkpoint */
	struct ck_checkpointer *checkpointer; /* NULL on tmpfs */
};

int ck_store_connect(struct ck_store *store, bool check, bool *ret_fresh, struct ck_error *err);
void ck_store_disconnect(struct ck_store *store, bool checkpoint);
int ck_store_statement(struct ck_store *store, enum ck_statement which, sqlite3_stmt **ret_stmt,
		       struct ck_error *err);
/* step a statement that gives no row, and reset it */
int ck_store_run(struct ck_store *store, sqlite3_stmt *stmt, const char *doing,
		 struct ck_error *err);
int ck_store_broken(struct ck_store *store, int r); /* roll back; returns @r */

/* ---- checkpoint.c ---------------------------------------------------------------------------- */

void ck_checkpoint_watch(struct ck_store *store); /* a new writer: count its frames */
void ck_checkpoint_bound(struct ck_store *store); /* after each commit */

/* NULL: no memory or no thread; the owner then checkpoints itself */
struct ck_checkpointer *ck_checkpointer_new(void);
/* its connection from now on, taken; NULL: none */
void ck_checkpointer_use(struct ck_checkpointer *c, sqlite3 *db);
void ck_checkpointer_wake(struct ck_checkpointer *c);
void ck_checkpointer_free(struct ck_checkpointer *c); /* waits for one fsync at most */
#endif
