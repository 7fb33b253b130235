/* SPDX-License-Identifier: Apache-2.0 */
/* The connection of the writer: opened, checked and closed. */
#include <time.h>

#include "src/base/clock.h"
#include "cache/store/store-int.h"

/*
 * The writer never syncs. If its process crashes, nothing that it wrote is lost; if the machine
 * crashes, the sandboxes that the rows describe end as well. Pages are read, not mapped: an I/O
 * error on a mapping would be a signal in the host's process.
 */
static const char *const writer_pragmas[] = {
	"PRAGMA page_size = 4096",
	"PRAGMA mmap_size = 0",
	/* 512 KiB and not 2 MB: the system has all pages in memory anyway */
	"PRAGMA cache_size = -512",
	"PRAGMA temp_store = MEMORY",
	"PRAGMA cell_size_check = ON",
	"PRAGMA synchronous = OFF",
	"PRAGMA wal_autocheckpoint = 0",
	/* a WAL that starts anew is cut to this; CK_WAL_LIMIT bounds its growth */
	"PRAGMA journal_size_limit = 1048576",
};

static int use_wal(sqlite3 *db, struct ck_error *err)
{
	char mode[CK_ERROR_TEXT];
	int r = ck_sql_text(db, "PRAGMA journal_mode = WAL", mode, "use a WAL", err);

	return r < 0 || !strcmp(mode, "wal") ? r
					     : ck_fail(err, CK_EINVAL, "this SQLite has no WAL");
}

/* more than entries that ended since the last line of a history that can be read */
#define IDS_SKIPPED (1 << 20)

/* A new row gets an id that no row has, and that no line of the history has for an entry that is
 * gone. If the history cannot be read, some are left out instead: it is not worth the results. */
int ck_store_read_counts(struct ck_store *store, sqlite3 *db, struct ck_error *err)
{
	int64_t id, used, seq;
	int r = ck_sql_number(db, "SELECT ifnull(max(id), 0) FROM entry", &id, err);

	if (r >= 0)
		r = ck_sql_number(db, "SELECT ifnull(max(entry), 0) FROM history", &used, err);
	if (r == -CK_EDAMAGED && id >= 0 && id <= INT64_MAX / 2) {
		used = id + IDS_SKIPPED;
		r = 0;
	}
	if (r >= 0)
		r = ck_sql_number(db, "SELECT ifnull(max(seq), 0) FROM history", &seq, err);
	if (r < 0)
		return r;
	if (id < 0 || used < 0 || seq < 0 || id > INT64_MAX / 2 || used > INT64_MAX / 2 ||
	    seq > INT64_MAX / 2)
		return ck_fail(err, CK_EDAMAGED, "row numbers are used up");
	if (store->last_id < (uint64_t)(id > used ? id : used))
		store->last_id = (uint64_t)(id > used ? id : used);
	store->last_seq = (uint64_t)seq;
	return 0;
}

/* The pages of the table that everything depends on. Damage elsewhere shows when it is used. */
int ck_store_check_pages(sqlite3 *db, struct ck_error *err)
{
	char text[CK_ERROR_TEXT];
	int r = ck_sql_text(db, "PRAGMA integrity_check(entry)", text, "check the database", err);

	return r < 0 || !strcmp(text, "ok") ? r : ck_fail(err, CK_EDAMAGED, "%s", text);
}

static int set_up(struct ck_store *store, sqlite3 *db, bool check, bool *ret_fresh,
		  struct ck_error *err)
{
	int version, r = 0;

	/* Before it is read: beside a -shm that nobody has made, SQLite would wait for 10 s. A
	 * reader of ours does not (copy.c). */
	if (sqlite3_db_readonly(db, "main") == 1)
		return ck_fail(err, CK_EIO, "the database can only be read");
	for (size_t i = 0; r >= 0 && i < CK_COUNT(writer_pragmas); i++)
		r = ck_sql_exec(db, writer_pragmas[i], err);
	if (r < 0)
		return r;
	/* before anything is written: a database of a newer version must stay as it is */
	r = ck_schema_check(db, &version, err);
	if (r < 0)
		return r;
	*ret_fresh = r == 1;
	r = use_wal(db, err);
	if (r >= 0 && version != CK_SCHEMA_VERSION)
		r = ck_schema_make(db, version, err);
	if (r >= 0 && check && !*ret_fresh)
		r = ck_store_check_pages(db, err);
	return r < 0 ? r : ck_store_read_counts(store, db, err);
}

/*
 * A program that is stopped while it holds an exclusive lock makes SQLite wait up to 10 seconds.
 * So look first, and wait for at most CK_BUSY_MS.
 */
int ck_store_wait_for_others(struct ck_store *store, struct ck_error *err)
{
	struct timespec pause = { 0, CK_NS_PER_MS };
	uint64_t until = ck_clock_ns(CLOCK_MONOTONIC) + CK_BUSY_MS * CK_NS_PER_MS;
	long pid = ck_lock_holder(store->dirfd, true);

	while (pid &&
	       ck_clock_ns(CLOCK_MONOTONIC) < until) { /* to look may take longer than to wait */
		nanosleep(&pause, NULL);
		pid = ck_lock_holder(store->dirfd, true);
	}
	return pid ? ck_fail(err, CK_EIO, "process %ld holds a lock on the database", pid) : 0;
}

static int count_frames(void *userdata, sqlite3 *db, const char *name, int frames)
{
	struct ck_store *store = userdata;

	(void)db, (void)name;
	store->frames = frames > 0 ? (unsigned)frames : 0;
	return SQLITE_OK;
}

int ck_store_connect(struct ck_store *store, bool check, bool *ret_fresh, struct ck_error *err)
{
	sqlite3 *db = NULL;
	int r = ck_store_wait_for_others(store, err);

	if (r >= 0)
		r = ck_state_dir_prepare(store->dirfd, err);
	if (r >= 0)
		r = ck_sql_open(store->path, SQLITE_OPEN_READWRITE, &db, err);
	if (r >= 0)
		r = set_up(store, db, check, ret_fresh, err);
	if (r < 0) {
		sqlite3_close(db);
		return r;
	}
	store->db = db;
	store->counters_known = false;
	store->moved = false;
	store->frames = store->told_frames = 0;
	sqlite3_wal_hook(db, count_frames, store);
	ck_store_hold(store, NULL); /* if not now, then when a round begins */
	return 0;
}

void ck_store_disconnect(struct ck_store *store, bool checkpoint)
{
	for (size_t i = 0; i < CK_SQL_N; i++) {
		sqlite3_finalize(store->stmts[i]);
		store->stmts[i] = NULL;
	}
	if (!store->db)
		return;
	/* The last connection to close writes the WAL back and removes it. With synchronous=OFF it
	 * does not wait for a disk. */
	sqlite3_db_config(store->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, checkpoint ? 0 : 1, NULL);
	sqlite3_close(store->db);
	store->db = NULL;
}
