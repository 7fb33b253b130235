/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_CACHE_STORE_STORE_H
#define CK_CACHE_STORE_STORE_H
/*
 * The rows of a state directory, and every SQL statement. The store knows rows, not rules.
 *
 *   state_dir/             0700; its owner holds an flock(2) on the directory itself, for which it
 *                          needs no write permission and no lock file
 *     owner                the owner's pid and start, in ASCII, for messages and readers
 *     crikeep.db -wal -shm 0600; in the owner's process only SQLite ever opens these
 *     key                  32 random bytes, 0600: the key of all digests (fingerprint.h)
 *     wishes/              what crikeep(1) asks the owner for (admin-request.h)
 *     crikeep.db.damaged-YYYYmmddTHHMMSSZ[-N][-wal|-shm]  set aside (K33)
 *
 * There is one connection that writes. Whoever is in the round uses it; it is not thread-safe. The
 * database has a WAL. The writer never syncs. It writes the WAL back when idle or when it is half
 * full, and always has a transaction open: while there is an owner, others can read the database,
 * but no one else can write it (transaction.c).
 *
 * The WAL stays below CK_WAL_LIMIT unless another program pins it: a reader that is stopped. Then
 * it grows until that program ends, and ck_store_pinned() says which one it is.
 *
 * A process that forks and continues without exec must not use it: its child would hold the lock.
 */
#include "cache/machine/entry.h"

struct ck_store;

struct ck_store_opened { /* what ck_store_open() found */
	bool fresh;             /* a new database */
	bool key_made;          /* there was no key, or none that is valid */
	/* the directory was ours and not readable: it had @mode, and is readable now */
	bool mode_mended;
	unsigned mode;
	bool set_aside;         /* the old one was damaged (K33) */
	char set_aside_as[512]; /* its new name */
	/* no space, or read-only: nothing can be written; ck_store_begin() tries again (K32) */
	bool no_database;
	struct ck_error why;    /* of set_aside, no_database */
};

/*
 * ck_store_open - own @dir, and open or make its database and its key If the key cannot be written,
 * it is good for this owner only (the next one cannot compare the rows, K31). If the database
 * cannot be written, what is in it can still be loaded.
 * Return: 0, -CK_EOWNED, -CK_EVERSION, -CK_EIO (the directory or the database cannot be read),
 * -CK_ENOMEM, -CK_EINVAL (SQLite without threads or WAL)
 */
int ck_store_open(const char *dir, struct ck_store **ret_store, struct ck_store_opened *ret_opened,
		  struct ck_error *err);
void ck_store_close(struct ck_store *store); /* checkpoints if it can do so without waiting */
const struct ck_digest_key *ck_store_key(const struct ck_store *store);

/* ck_store_load - every row, oldest first, without digests. @fn may take over what the row holds,
 * and zeroes it then; the rest is freed. A row that is not valid is -CK_EDAMAGED. Return: 0,
 * -CK_EDAMAGED, -CK_EIO, -CK_ENOMEM, or @fn's */
int ck_store_load(struct ck_store *store, int (*fn)(struct ck_row *row, void *userdata),
		  void *userdata, struct ck_error *err);
int ck_store_load_counters(struct ck_store *store, struct ck_counters *ret_counters,
			   struct ck_error *err);
/* ck_store_digests - load record->digests of a row. -CK_ENOTFOUND, -CK_EDAMAGED, -CK_EIO,
 * -CK_ENOMEM */
int ck_store_digests(struct ck_store *store, uint64_t id, struct ck_record *record,
		     struct ck_error *err);

/* One round. After any error but -CK_ECONFLICT the transaction is rolled back, and nothing of it is
 * in the database. Updates and deletes come before inserts: at no time may two rows hold one key.
 * -CK_ECONFLICT: the row breaks a constraint. It is left out, and the round goes on.
 * Return: 0, -CK_ECONFLICT, -CK_EFULL, -CK_EDAMAGED, -CK_EIO, -CK_ENOMEM. begin also opens a
 * database that could not be opened before. */
int ck_store_begin(struct ck_store *store, struct ck_error *err);
/* with its digests, if they are loaded */
int ck_store_insert(struct ck_store *store, const struct ck_row *row, struct ck_error *err);
/* all but key and record; of the record only image_id */
int ck_store_update(struct ck_store *store, const struct ck_row *row, struct ck_error *err);
/* with its digests; the history stays */
int ck_store_delete(struct ck_store *store, uint64_t id, struct ck_error *err);
int ck_store_note(struct ck_store *store, const struct ck_row *row, enum ck_what what,
		  enum ck_state from, enum ck_state to,
		  /* a line of history; of more than CK_HISTORY_ROWS the oldest go */
		  uint64_t at, int grpc, const char *detail, struct ck_error *err);
int ck_store_counters(struct ck_store *store, const struct ck_counters *counters,
		      struct ck_error *err);
int ck_store_commit(struct ck_store *store, struct ck_error *err);
void ck_store_rollback(struct ck_store *store);
uint64_t ck_store_next_id(struct ck_store *store); /* a fresh row id; also without a database */
/* ck_store_set_degraded - tell readers that rounds are not written, or are again (K32) */
void ck_store_set_degraded(struct ck_store *store, bool degraded);
/* bytes on disk; -1: no such file. Opens no file */
void ck_store_sizes(const struct ck_store *store, int64_t *ret_database, int64_t *ret_wal);

/* ck_store_idle - there is nothing to do: checkpoint. ck_store_commit() keeps the WAL under
 * CK_WAL_LIMIT by itself */
void ck_store_idle(struct ck_store *store);
/* ck_store_pinned - has the WAL grown beyond CK_WAL_PINNED, and doubled since this was last true?
 * @ret_wal: its bytes. @ret_pid: the process that uses it; 0: unknown */
bool ck_store_pinned(struct ck_store *store, uint64_t *ret_wal, long *ret_pid);
/* ck_store_pinned_dir - the directory of a WAL beyond CK_WAL_PINNED, for ck_store_wal_pid(). The
 * caller closes it. -1: it is shorter */
int ck_store_pinned_dir(const struct ck_store *store);
/* ck_store_wal_pid - the process that pins it; 0: unknown. Outside of a round: the list of all
 * locks may be long */
long ck_store_wal_pid(int dirfd);
/* ck_store_set_aside - damage was found while running: rename database, -wal and -shm, and make a
 * new database (K33). The caller writes everything it has again, even after an error: the next
 * database will be empty. @ret_name: 512 bytes; "" if nothing could be renamed. Return: 0, -CK_EIO,
 * -CK_EFULL */
int ck_store_set_aside(struct ck_store *store, char *ret_name, struct ck_error *err);

/* ---- readers --------------------------------------------------------------------------------- */

/* For crikeep(1), while the owner runs or not. They change no file. The owner's own process must
 * not use them (copy.c). */

struct ck_history_row {
	uint64_t seq, entry;
	char *who; /* ck_key_print() of the entry's key */
	enum ck_kind kind;
	char *object; /* runtime id or NULL */
	enum ck_what what;
	enum ck_state from, to; /* MOVED only */
	enum ck_reason reason;
	uint64_t at;      /* CLOCK_BOOTTIME of boot */
	int64_t wall;     /* CLOCK_REALTIME when written, seconds; shown only */
	int grpc;
	char *detail; /* or NULL */
	char boot[37];
};

struct ck_reader { /* a consistent copy; rows with digests if asked */
	struct ck_row *rows;
	size_t rows_n;
	struct ck_history_row *history; /* oldest first */
	size_t history_n;
	struct ck_counters counters;
	int schema;
	bool owner_alive;
	long owner_pid; /* 0: unknown */
	bool owner_degraded; /* it cannot write now: it knows more than this copy (K32) */
};

/* ck_store_owner - does a living process own the state directory @dir? @ret_pid: the owner's, or
 * the last one's; 0: unknown */
bool ck_store_owner(const char *dir, long *ret_pid);
/* ck_store_owner_degraded - does a living process own @dir that cannot write the database now? */
bool ck_store_owner_degraded(const char *dir);

enum ck_reader_what {
	CK_READ_ROWS = 1,
	CK_READ_DIGESTS = 2,
	CK_READ_HISTORY = 4,
	CK_READ_COUNTERS = 8
};
/* ck_reader_open - -CK_ENOTFOUND (no database there), -CK_EVERSION, -CK_EDAMAGED, -CK_EIO (no
 * permission ...), -CK_ENOMEM */
int ck_reader_open(const char *dir, unsigned what, struct ck_reader **ret_reader,
		   struct ck_error *err);
void ck_reader_free(struct ck_reader *reader);
/* ck_reader_check - `crikeep check`: integrity_check, schema, every row valid, moves and index
 * hold, history within bounds. Calls @say for each finding. Return: number of findings, or as
 * ck_reader_open() */
int ck_reader_check(const char *dir, void (*say)(const char *finding, void *userdata),
		    void *userdata, struct ck_error *err);
#endif
