/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening the store, opening the database, and setting a damaged one aside. The directory is owned
 * for the life of the store; the database in it may be there, not be there yet (K32), or be
 * replaced (K33).
 */
#include <stdio.h>
#include <unistd.h>

#include "cache/store/store-int.h"

/*
 * The writer. Its own crash loses nothing that it wrote, so it never syncs; a crash of the machine
 * ends the sandboxes the rows speak of. Pages are read, not mapped: an I/O error on a mapping would
 * be a signal in the host's process.
 */
static const char *const writer_pragmas[] = {
	"PRAGMA page_size = 4096",
	"PRAGMA mmap_size = 0",
	"PRAGMA temp_store = MEMORY",
	"PRAGMA cell_size_check = ON",
	"PRAGMA synchronous = OFF",
	"PRAGMA wal_autocheckpoint = 0",
	/* of what the WAL is cut to when it starts anew; CK_WAL_LIMIT bounds its growth */
	"PRAGMA journal_size_limit = 1048576",
};

static int use_wal(sqlite3 *db, struct ck_error *err)
{
	sqlite3_stmt *stmt = NULL;
	const char *mode;
	int r;

	if (sqlite3_db_readonly(db, "main") == 1)
		return ck_fail(err, CK_EIO, "the database can only be read");
	r = ck_sql_prepare(db, "PRAGMA journal_mode = WAL", &stmt, err);
	if (r < 0)
		return r;
	int rc = ck_sql_step(stmt);
	if (rc != SQLITE_ROW)
		r = ck_sql_fail(err, db, rc, "use a WAL");
	else if (!ck_column_text(stmt, 0, CK_NAME_MAX_LEN, &mode) || strcmp(mode, "wal"))
		r = ck_fail(err, CK_EINVAL, "this SQLite has no WAL");
	sqlite3_finalize(stmt);
	return r;
}

/* Highest id and history line ever used; ids of rows that are gone, too. */
static int read_counts(struct ck_store *store, sqlite3 *db, struct ck_error *err)
{
	int64_t id, used, seq;
	int r = ck_sql_number(db, "SELECT ifnull(max(id), 0) FROM entry", &id, err);

	if (r >= 0)
		r = ck_sql_number(
			db, "SELECT ifnull(max(seq), 0) FROM sqlite_sequence WHERE name = 'entry'",
			&used, err);
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

/* Pages of the table everything depends on, and its indexes. The rest shows when it is used. */
static int check_pages(sqlite3 *db, struct ck_error *err)
{
	sqlite3_stmt *stmt = NULL;
	const char *text;
	int r = ck_sql_prepare(db, "PRAGMA integrity_check(entry)", &stmt, err);

	if (r < 0)
		return r;
	int rc = ck_sql_step(stmt);
	if (rc != SQLITE_ROW)
		r = ck_sql_fail(err, db, rc, "check the database");
	else if (!ck_column_text(stmt, 0, INT32_MAX, &text))
		r = ck_nomem(err);
	else if (strcmp(text, "ok"))
		r = ck_fail(err, CK_EDAMAGED, "%s", text);
	sqlite3_finalize(stmt);
	return r;
}

/*
 * The checkpointer's connection, made here so that no file is opened by path while files change
 * their names: its WAL and shared memory are open before it is handed over.
 */
static void give_checkpointer(struct ck_store *store)
{
	sqlite3 *db = NULL;
	int64_t n;

	if (!store->checkpointer)
		return;
	if (ck_sql_open(store->path, SQLITE_OPEN_READWRITE, &db, NULL) < 0)
		return;
	if (ck_sql_exec(db,
			"PRAGMA mmap_size = 0; PRAGMA synchronous = NORMAL; PRAGMA "
			"wal_autocheckpoint = 0",
			NULL) < 0 ||
	    ck_sql_number(db, "SELECT count(*) FROM sqlite_schema", &n, NULL) < 0) {
		sqlite3_close(db);
		return;
	}
	ck_checkpointer_use(store->checkpointer, db);
}

static int set_up(struct ck_store *store, sqlite3 *db, bool check, bool *ret_fresh,
		  struct ck_error *err)
{
	int version, r = 0;

	for (size_t i = 0; r >= 0 && i < CK_COUNT(writer_pragmas); i++)
		r = ck_sql_exec(db, writer_pragmas[i], err);
	if (r < 0)
		return r;
	/* a database of a newer version must stay as it is, so this comes before anything is
	 * written */
	r = ck_schema_check(db, &version, err);
	if (r < 0)
		return r;
	*ret_fresh = r == 1;
	r = use_wal(db, err);
	if (r >= 0 && version != CK_SCHEMA_VERSION)
		r = ck_schema_make(db, version, err);
	if (r >= 0 && check && !*ret_fresh)
		r = check_pages(db, err);
	return r < 0 ? r : read_counts(store, db, err);
}

/* 0, -CK_EDAMAGED, -CK_EVERSION, -CK_EFULL, -CK_EIO, -CK_ENOMEM, -CK_EINVAL; the store is as before
 * unless 0 */
int ck_store_connect(struct ck_store *store, bool check, bool *ret_fresh, struct ck_error *err)
{
	sqlite3 *db = NULL;
	int r = ck_state_dir_prepare(store->dirfd, err);

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
	ck_checkpoint_watch(store);
	give_checkpointer(store);
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
	if (store->checkpointer)
		ck_checkpointer_use(store->checkpointer, NULL);
	/* the last connection writes the WAL back and removes it; with synchronous=OFF that waits
	 * for no disk */
	sqlite3_db_config(store->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, checkpoint ? 0 : 1, NULL);
	sqlite3_close(store->db);
	store->db = NULL;
}

/* ---- damage ---------------------------------------------------------------------------------- */

int ck_store_set_aside(struct ck_store *store, char *ret_name, struct ck_error *err)
{
	bool fresh;

	ret_name[0] = '\0';
	ck_store_rollback(store);
	ck_store_disconnect(store, false);
	ck_copy_close(&store->copy);
	store->set_aside_first = true;
	int r = ck_state_dir_set_aside(store->dirfd, ret_name, err);
	if (r < 0)
		return r;
	store->set_aside_first = false;
	r = ck_store_connect(store, false, &fresh, err);
	return r == -CK_EFULL || r >= 0 ? r : -CK_EIO;
}

/* ---- open ------------------------------------------------------------------------------------ */

/* The database is damaged, @why is known. Whatever comes of it, the store opens. */
static void start_anew(struct ck_store *store, struct ck_store_opened *opened,
		       const struct ck_error *why)
{
	struct ck_error err;
	int r = ck_store_set_aside(store, opened->set_aside_as, &err);

	opened->set_aside = !store->set_aside_first;
	opened->no_database = r < 0;
	opened->fresh = r >= 0;
	opened->why = opened->set_aside ? *why : err;
}

/* Nothing can be written, for reason @why; what is there has to be known all the same (K32). */
static int read_only(struct ck_store *store, struct ck_store_opened *opened,
		     const struct ck_error *why, struct ck_error *err)
{
	int version;
	int r = ck_copy_open(store->dirfd, &store->copy, err);

	opened->no_database = true;
	opened->why = *why;
	if (r == -CK_ENOTFOUND)
		return 0;
	if (r >= 0)
		r = ck_schema_check(store->copy.db, &version, err);
	if (r == 1) { /* begun, and never finished: as good as none */
		ck_copy_close(&store->copy);
		return 0;
	}
	if (r >= 0)
		r = check_pages(store->copy.db, err);
	if (r >= 0)
		r = read_counts(store, store->copy.db, err);
	return r < 0 ? r : 0;
}

static int open_database(struct ck_store *store, struct ck_store_opened *opened,
			 struct ck_error *err)
{
	struct ck_error why = {0};
	int r = ck_store_connect(store, true, &opened->fresh, &why);

	if (r == -CK_EFULL || r == -CK_EIO) {
		struct ck_error unwritable = why;
		r = read_only(store, opened, &unwritable, &why);
	}
	if (r == -CK_EDAMAGED) {
		start_anew(store, opened, &why);
		return 0;
	}
	if (r < 0 && err)
		*err = why;
	return r;
}

static int path_of_database(struct ck_store *store, struct ck_error *err)
{
	size_t size = strlen(store->dir) + sizeof("/" CK_DB_NAME);

	store->path = ck_alloc(size);
	if (!store->path)
		return ck_nomem(err);
	snprintf(store->path, size, "%s/%s", store->dir, CK_DB_NAME);
	return 0;
}

int ck_store_open(const char *dir, struct ck_store **ret_store, struct ck_store_opened *ret_opened,
		  struct ck_error *err)
{
	struct ck_store_opened opened = {0};
	struct ck_store *store;
	int r = ck_sqlite_check(err);

	if (r < 0)
		return r;
	store = CK_NEW(struct ck_store);
	if (!store)
		return ck_nomem(err);
	store->dirfd = -1;
	r = ck_state_dir_open(dir, true, &store->dir, &store->dirfd, err);
	if (r >= 0)
		r = path_of_database(store, err);
	if (r >= 0)
		r = ck_state_dir_own(store->dirfd, store->dir, err);
	if (r >= 0)
		r = ck_state_dir_key(store->dirfd, &store->key, err);
	if (r >= 0) {
		if (!ck_state_dir_is_memory(store->dirfd))
			store->checkpointer = ck_checkpointer_new();
		r = open_database(store, &opened, err);
	}
	if (r < 0) {
		ck_store_close(store);
		return ck_context(err, r, "open the store");
	}
	*ret_store = store;
	*ret_opened = opened;
	return 0;
}

void ck_store_close(struct ck_store *store)
{
	if (!store)
		return;
	ck_store_rollback(store);
	ck_checkpointer_free(store->checkpointer);
	store->checkpointer = NULL;
	ck_store_disconnect(store, true);
	ck_copy_close(&store->copy);
	if (store->dirfd >= 0)
		close(store->dirfd); /* and with it the lock */
	explicit_bzero(&store->key, sizeof(store->key));
	free(store->path);
	free(store->dir);
	free(store);
}

const struct ck_digest_key *ck_store_key(const struct ck_store *store)
{
	return &store->key;
}
