/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_CACHE_STORE_STORE_INT_H
#define CK_CACHE_STORE_STORE_INT_H
/*
 * What the files of the store share. Each calls only those below it:
 *
 *   reader.c         readers
 *   open-database.c  open, set aside, close           history.c       lines of the history
 *   transaction.c    a round and its statements
 *   checkpoint.c     keeps the WAL short              connect.c       the connection of the writer
 *   copy.c           a copy in memory                 row.c           a row to and from a statement
 *   lock-holder.c    who holds SQLite's locks
 *   columns.c        columns as members of a struct
 *   sql.c            SQLite calls with our errors; the schema
 *   state-dir.c      the directory: lock, names, key  sqlite-check.c  can this SQLite be used?
 */
#include <sqlite3.h>
#include <stdbool.h>

#include "cache/store/store.h"
#include "src/base/error.h"
#include "src/base/limits.h"
#include "src/base/mem.h"

#define CK_SCHEMA_VERSION 4          /* PRAGMA user_version; sql.c says how to get there */
#define CK_APPLICATION_ID 0x43524b50 /* "CRKP": PRAGMA application_id */
#define CK_PAGE_SIZE      4096u
#define CK_FRAME_SIZE     (CK_PAGE_SIZE + 24u) /* a page in the WAL */

#define CK_BUSY_MS 20 /* the longest that a round waits for a foreign tool that writes */

/* Names in the state directory. */
#define CK_DB_NAME    "crikeep.db"
#define CK_DB_WAL     CK_DB_NAME "-wal"
#define CK_DB_SHM     CK_DB_NAME "-shm"
#define CK_OWNER_NAME "owner"
#define CK_KEY_NAME   "key"

struct ck_store;

/* ---- state-dir.c ----------------------------------------------------------------------------- */

#define CK_OWNER_TEXT 64 /* "PID BOOTTIME\n", different for each owner */

/* true: its owner, which we are, could not read it; it had the mode @ret_had */
bool ck_state_dir_mend_mode(const char *dir, unsigned *ret_had);
int ck_state_dir_open(const char *dir, bool make, char **ret_path, int *ret_fd,
		      struct ck_error *err);
/* own it until the descriptor is closed. -CK_EOWNED */
int ck_state_dir_own(int dirfd, const char *path, struct ck_error *err);
/* is it owned? @ret_pid: the owner's, or the last one's. Takes no lock, so it stops no owner */
bool ck_state_dir_owned(int dirfd, long *ret_pid);
/* the owner cannot write the database now, or can again; readers ask it. Takes no space */
void ck_state_dir_set_degraded(int dirfd, bool degraded);
bool ck_state_dir_degraded(int dirfd);
void ck_state_dir_owner_text(int dirfd, char text[CK_OWNER_TEXT]);
/* of a file, which is not opened; -1: there is none */
int64_t ck_state_dir_size(int dirfd, const char *name);
/* the digest key of the directory; @ret_made: there was none that is valid. Where it cannot be
 * written, the key is good for this owner only. -CK_EIO (no randomness) */
int ck_state_dir_key(int dirfd, struct ck_digest_key *ret_key, bool *ret_made,
		     struct ck_error *err);
bool ck_state_dir_parse_key(const void *bytes, size_t len, struct ck_digest_key *ret_key);
/* before SQLite opens it: make CK_DB_NAME, 0600, if it is absent */
int ck_state_dir_prepare(int dirfd, struct ck_error *err);
int ck_state_dir_set_aside(int dirfd, char ret_name[512], struct ck_error *err);

/* ---- sqlite-check.c -------------------------------------------------------------------------- */

#define CK_SQL_VFS "unix" /* the host may have made another one the default */

int ck_sqlite_check(struct ck_error *err); /* 0, -CK_EINVAL, -CK_ENOMEM */

/* ---- sql.c ----------------------------------------------------------------------------------- */

/* Every call that can fail asks ck_fault(CK_FAULT_STORE) first. */

/* SQLite's code as one of ours */
int ck_sql_fail(struct ck_error *err, sqlite3 *db, int rc, const char *doing);
int ck_sql_prepare(sqlite3 *db, const char *sql, sqlite3_stmt **ret_stmt, struct ck_error *err);
int ck_sql_step(sqlite3_stmt *stmt); /* SQLITE_ROW, SQLITE_DONE or an error */
int ck_sql_exec(sqlite3 *db, const char *sql, struct ck_error *err);
/* Calls @fn for each row, until it returns an error. @doing: for the text of one of SQLite's */
typedef int ck_sql_row_fn(sqlite3_stmt *stmt, void *userdata, struct ck_error *err);
int ck_sql_each(sqlite3 *db, const char *sql, ck_sql_row_fn *fn, void *userdata, const char *doing,
		struct ck_error *err);
/* the first column of the first row, as far as there is room; "": there is none */
int ck_sql_text(sqlite3 *db, const char *sql, char ret_text[CK_ERROR_TEXT], const char *doing,
		struct ck_error *err);
/* -CK_EDAMAGED: not an integer */
int ck_sql_number(sqlite3 *db, const char *sql, int64_t *ret_value, struct ck_error *err);
/* nothing in the file is trusted */
int ck_sql_open(const char *path, int flags, sqlite3 **ret_db, struct ck_error *err);
/* 1: it is empty; 0: it is ours; -CK_EVERSION, -CK_EDAMAGED, ... */
int ck_schema_check(sqlite3 *db, int *ret_version, struct ck_error *err);
int ck_schema_make(sqlite3 *db, int from, struct ck_error *err);

/* ---- columns.c ------------------------------------------------------------------------------- */

struct ck_blob {
	const void *bytes;
	size_t len;
};

/* A column of a table, and the member of a struct that has its value */
struct ck_store_column {
	const char *name;
	enum {
		CK_COLUMN_NUMBER, /* of 4 bytes or 8; signed if @min is negative */
		CK_COLUMN_TEXT,   /* a pointer; what is read is valid until the next step */
		CK_COLUMN_CHARS,  /* an array, and never longer */
		CK_COLUMN_BLOB,   /* a struct ck_blob, likewise */
	} type;
	size_t at, size;
	int64_t min, max; /* of a number; @max: of a length */
};
#define CK_OR_NULL (-1) /* @min of a text or blob */
#define CK_COLUMN(of, name, type, member, min, max) \
	{ #name, CK_COLUMN_##type, offsetof(of, member), sizeof(((of *)NULL)->member), min, max },

/* SQLITE_OK, or an error of a bind. What texts and blobs point to is borrowed until the statement
 * is reset, but not the struct */
int ck_columns_bind(sqlite3_stmt *stmt, const struct ck_store_column *columns, size_t n,
		    const void *from);
/* NULL, or the name of the bad column */
const char *ck_columns_read(sqlite3_stmt *stmt, const struct ck_store_column *columns, size_t n,
			    void *into);
/* One, checked. false: it has another type, or is not within these bounds. */
bool ck_column_number(sqlite3_stmt *stmt, int col, int64_t min, int64_t max, int64_t *ret_value);
/* without a NUL inside; valid until the next step */
bool ck_column_text(sqlite3_stmt *stmt, int col, size_t max, const char **ret_text);
bool ck_column_blob(sqlite3_stmt *stmt, int col, size_t min, size_t max, struct ck_blob *ret_blob);
/* a column is malformed: -CK_EDAMAGED with this text, or -CK_ENOMEM */
int ck_column_fail(sqlite3_stmt *stmt, struct ck_error *err, const char *fmt, ...) CK_PRINTF(3, 4);

/* ---- row.c ----------------------------------------------------------------------------------- */

extern const char ck_row_select[]; /* all rows, by id */
extern const char ck_row_insert[], ck_row_update[], ck_digests_select[];
/* SQLITE_OK, or an error of a bind; @row is borrowed until the statement is reset */
int ck_row_bind(sqlite3_stmt *stmt, const struct ck_row *row, bool whole);
/* ck_row_decode - one row of ck_row_select, checked like input from the network. -CK_EDAMAGED,
 * -CK_ENOMEM */
int ck_row_decode(sqlite3_stmt *stmt, struct ck_row *ret_row, struct ck_error *err);
/* @stmt: ck_digests_select. -CK_ENOTFOUND, -CK_EDAMAGED, -CK_EIO, -CK_ENOMEM */
int ck_digests_read(sqlite3_stmt *stmt, uint64_t id, struct ck_record *record,
		    struct ck_error *err);
/* "requests.sandbox": what follows the name of a counter in the database, by kind */
extern const char *const ck_counter_kinds[CK_CONTAINER + 1];
int ck_counters_read(sqlite3 *db, struct ck_counters *ret_counters, struct ck_error *err);

/* ---- history.c ------------------------------------------------------------------------------- */

extern const char ck_history_select[], ck_history_insert[];
int ck_history_decode(sqlite3_stmt *stmt, struct ck_history_row *ret_row, struct ck_error *err);
void ck_history_row_fini(struct ck_history_row *row);

/* ---- copy.c ---------------------------------------------------------------------------------- */

/* ck_copy_open - the database of the directory @dir, which is open as @dirfd, in memory. The caller
 * closes it. -CK_ENOTFOUND (no database, or an empty one), -CK_EDAMAGED, -CK_EIO, -CK_ENOMEM */
int ck_copy_open(const char *dir, int dirfd, sqlite3 **ret_copy, struct ck_error *err);
/* Called in the middle of a copy: a test stops or changes things there. NULL otherwise. */
extern void (*ck_copy_hook)(void);

/* ---- lock-holder.c --------------------------------------------------------------------------- */

/* ck_lock_holder - a process, neither this one nor the owner, that holds a lock on the database; an
 * idle connection does not. @exclusive: one that keeps others from working. 0: none, or unknown */
long ck_lock_holder(int dirfd, bool exclusive);

/* ---- the store ------------------------------------------------------------------------------- */

enum ck_statement { /* prepared when first used, with the text given then */
		    CK_SQL_BEGIN,
		    CK_SQL_COMMIT,
		    CK_SQL_INSERT,
		    CK_SQL_UPDATE,
		    CK_SQL_DELETE,
		    CK_SQL_DIGESTS,
		    CK_SQL_DIGESTS_INSERT,
		    CK_SQL_DIGESTS_DELETE,
		    CK_SQL_NOTE,
		    CK_SQL_NOTE_TRIM,
		    CK_SQL_COUNTER,
		    CK_SQL_N,
};

struct ck_store {
	char *dir;
	char *path;  /* of the database */
	int dirfd;   /* holds the lock */
	sqlite3 *db; /* the writer; NULL: nothing can be written now */
	/* without a writer: what was in the database, for loading */
	sqlite3 *copy;
	sqlite3_stmt *stmts[CK_SQL_N]; /* of db, prepared when first used */
	struct ck_digest_key key;
	bool set_aside_first; /* the files are damaged and could not be renamed yet */
	/* somebody removed or replaced the file: memory must be written to a new one */
	bool moved;
	bool in_round;
	uint64_t last_id;
	/* of history: committed, and with this round */
	uint64_t last_seq, round_seq;
	struct ck_counters counters; /* as in the database, and with this round */
	bool counters_known;         /* not after a rollback */
	char moves[256];             /* of this round, for ck_crash_hook */
	size_t moves_len;
	unsigned frames;      /* of the WAL after the last commit */
	unsigned next_try;    /* to write it back is at so many */
	unsigned told_frames; /* of a WAL that cannot start anew; 0: it can */
	bool checkpoint_due;  /* something was committed since the last checkpoint */
};

/* ---- connect.c ------------------------------------------------------------------------------- */

/* ck_store_connect - open the writer. @check: look at the pages too. After an error the store is as
 * before. -CK_EDAMAGED, -CK_EVERSION, -CK_EFULL, -CK_EIO, -CK_ENOMEM, -CK_EINVAL */
int ck_store_connect(struct ck_store *store, bool check, bool *ret_fresh, struct ck_error *err);
void ck_store_disconnect(struct ck_store *store, bool checkpoint);
/* -CK_EIO: another process keeps an exclusive lock */
int ck_store_wait_for_others(struct ck_store *store, struct ck_error *err);
int ck_store_check_pages(sqlite3 *db, struct ck_error *err);
/* the highest row id and history line that were ever used */
int ck_store_read_counts(struct ck_store *store, sqlite3 *db, struct ck_error *err);

/* ---- transaction.c --------------------------------------------------------------------------- */

/* begin a transaction that may write; it is held until the next commit */
int ck_store_hold(struct ck_store *store, struct ck_error *err);

int ck_store_statement(struct ck_store *store, enum ck_statement which, const char *sql,
		       sqlite3_stmt **ret_stmt, struct ck_error *err);
/* for ck_crash_hook: an entry changed its state in this round; from 0: a new row */
void ck_store_add_move(struct ck_store *store, enum ck_state from, enum ck_state to);
/* step a statement that returns no row, and reset it. @rc: of its binds */
int ck_store_run(struct ck_store *store, sqlite3_stmt *stmt, int rc, const char *doing,
		 struct ck_error *err);
/* likewise; it has one parameter */
int ck_store_run_by_id(struct ck_store *store, enum ck_statement which, const char *sql,
		       uint64_t id, const char *doing, struct ck_error *err);

/* ---- checkpoint.c ---------------------------------------------------------------------------- */

void ck_checkpoint_bound(struct ck_store *store); /* after each commit */
#endif
