/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A round: begin, rows, history, counters, commit. All of it is in the database, or none of it: a
 * call that fails rolls back the transaction before it returns. Only a row that breaks a constraint
 * is left out alone.
 */
#include <stdio.h>

#include "cache/store/store-int.h"
#include "src/base/fault.h"

/* ---- statements ------------------------------------------------------------------------------ */

/* Rolls back and returns @r. */
static int broken(struct ck_store *store, int r)
{
	ck_store_rollback(store);
	return r;
}

int ck_store_statement(struct ck_store *store, enum ck_statement which, const char *sql,
		       sqlite3_stmt **ret_stmt, struct ck_error *err)
{
	if (CK_NEVER(!store->db ||
		     (!store->in_round && which != CK_SQL_BEGIN && which != CK_SQL_DIGESTS))) {
		ck_fail(err, CK_EIO, "no round is open");
		return -CK_EIO;
	}
	if (!store->stmts[which]) {
		int r = ck_sql_prepare(store->db, sql, &store->stmts[which], err);
		if (r < 0)
			return broken(store, r);
	}
	*ret_stmt = store->stmts[which];
	return 0;
}

int ck_store_run(struct ck_store *store, sqlite3_stmt *stmt, int rc, const char *doing,
		 struct ck_error *err)
{
	rc = rc ? rc : ck_sql_step(stmt);
	int r = rc == SQLITE_DONE ? 0 : ck_sql_fail(err, store->db, rc, doing);

	sqlite3_reset(stmt);
	sqlite3_clear_bindings(stmt); /* they point to the caller's memory */
	/* a statement that breaks a constraint has changed nothing, and the transaction goes on */
	return r < 0 && r != -CK_ECONFLICT ? broken(store, r) : r;
}

int ck_store_run_by_id(struct ck_store *store, enum ck_statement which, const char *sql,
		       uint64_t id, const char *doing, struct ck_error *err)
{
	sqlite3_stmt *stmt;
	int r = ck_store_statement(store, which, sql, &stmt, err);

	return r < 0 ? r
		     : ck_store_run(store, stmt, sqlite3_bind_int64(stmt, 1, (sqlite3_int64)id),
				    doing, err);
}

/* ---- the transaction ------------------------------------------------------------------------- */

/* Nothing could be written so far: try again to set a damaged file aside, and to open or make
 * one. */
static int reconnect(struct ck_store *store, struct ck_error *err)
{
	char name[512];
	bool fresh;
	int r = store->set_aside_first ? ck_state_dir_set_aside(store->dirfd, name, err) : 0;

	if (r < 0)
		return r;
	store->set_aside_first = false;
	r = ck_store_connect(store, false, &fresh, err);
	if (r >= 0) {
		sqlite3_close(store->copy);
		store->copy = NULL;
	}
	return r == -CK_EVERSION || r == -CK_EINVAL ? -CK_EIO : r;
}

/*
 * The owner always has a transaction open that may write, also between two rounds. So no other
 * program can begin one: whatever is stopped inside a transaction, the owner commits. And between
 * two rounds there is nothing to begin, which a program that is stopped could delay.
 */
int ck_store_hold(struct ck_store *store, struct ck_error *err)
{
	sqlite3_stmt *stmt;
	int r = ck_store_statement(store, CK_SQL_BEGIN, "BEGIN IMMEDIATE", &stmt, err);

	return r < 0 ? r : ck_store_run(store, stmt, SQLITE_OK, "begin", err);
}

int ck_store_begin(struct ck_store *store, struct ck_error *err)
{
	int r = store->db ? 0 : reconnect(store, err);

	if (r < 0)
		return r;
	if (store->moved)
		return ck_fail(err, CK_EDAMAGED,
			       "the database was removed or replaced while it was open");
	if (CK_NEVER(store->in_round))
		return ck_fail(err, CK_EIO, "a round is open");
	if (sqlite3_get_autocommit(store->db)) {
		r = ck_store_wait_for_others(store, err);
		r = r < 0 ? r : ck_store_hold(store, err);
	}
	if (r < 0)
		return r;
	store->in_round = true;
	store->round_seq = store->last_seq;
	store->moves[0] = '\0';
	store->moves_len = 0;
	return 0;
}

void ck_store_rollback(struct ck_store *store)
{
	if (!store->in_round)
		return;
	store->in_round = false;
	store->counters_known = false;
	/* Some failures have rolled back already. If the statement fails, closing rolls back. */
	if (!sqlite3_get_autocommit(store->db) &&
	    sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL) != SQLITE_OK &&
	    !sqlite3_get_autocommit(store->db))
		ck_store_disconnect(store, false);
}

int ck_store_commit(struct ck_store *store, struct ck_error *err)
{
	sqlite3_stmt *stmt;
	int r = ck_store_statement(store, CK_SQL_COMMIT, "COMMIT", &stmt, err);

	if (r < 0)
		return r;
	if (ck_crash_hook)
		ck_crash_hook("before", store->moves);
	r = ck_store_run(store, stmt, SQLITE_OK, "commit", err);
	if (r < 0)
		return r;
	if (ck_crash_hook)
		ck_crash_hook("after", store->moves);
	store->in_round = false;
	store->last_seq = store->round_seq;
	store->checkpoint_due = true;
	ck_checkpoint_bound(store);
	ck_store_hold(store, NULL);
	return 0;
}

void ck_store_add_move(struct ck_store *store, enum ck_state from, enum ck_state to)
{
	if (!ck_crash_hook)
		return;
	size_t room = sizeof(store->moves) - store->moves_len;
	int n = snprintf(store->moves + store->moves_len, room, "%s%s>%s",
			 store->moves_len ? "," : "", from ? ck_state_name(from) : "",
			 ck_state_name(to));

	if (n > 0 && (size_t)n < room)
		store->moves_len += (size_t)n;
	else
		store->moves[store->moves_len] = '\0'; /* no room for this one */
}

/* ---- rows ------------------------------------------------------------------------------------ */

static int insert_digests(struct ck_store *store, const struct ck_row *row, struct ck_error *err)
{
	sqlite3_stmt *stmt;
	int r = ck_store_statement(store, CK_SQL_DIGESTS_INSERT,
				   "INSERT OR REPLACE INTO fingerprint (entry, leaves)"
				   " VALUES (?1, ?2)",
				   &stmt, err);

	if (r < 0)
		return r;
	int rc = sqlite3_bind_int64(stmt, 1, (sqlite3_int64)row->id);
	rc = rc ? rc
		: sqlite3_bind_blob64(stmt, 2, row->record.digests, row->record.digests_len,
				      SQLITE_STATIC);
	return ck_store_run(store, stmt, rc, "write a fingerprint", err);
}

int ck_store_insert(struct ck_store *store, const struct ck_row *row, struct ck_error *err)
{
	sqlite3_stmt *stmt;
	int r = ck_store_statement(store, CK_SQL_INSERT, ck_row_insert, &stmt, err);

	if (r < 0)
		return r;
	r = ck_store_run(store, stmt, ck_row_bind(stmt, row, true), "insert an entry", err);
	if (r >= 0 && row->record.digests)
		r = insert_digests(store, row, err);
	if (r >= 0)
		ck_store_add_move(store, 0, row->state);
	return r;
}

int ck_store_update(struct ck_store *store, const struct ck_row *row, struct ck_error *err)
{
	sqlite3_stmt *stmt;
	int r = ck_store_statement(store, CK_SQL_UPDATE, ck_row_update, &stmt, err);

	if (r < 0)
		return r;
	r = ck_store_run(store, stmt, ck_row_bind(stmt, row, false), "update an entry", err);
	/* this row was inserted: the file is not what we wrote */
	if (r >= 0 && sqlite3_changes(store->db) != 1)
		return broken(store, ck_fail(err, CK_EDAMAGED, "entry %llu is missing",
						      (unsigned long long)row->id));
	return r;
}

int ck_store_delete(struct ck_store *store, uint64_t id, struct ck_error *err)
{
	int r = ck_store_run_by_id(store, CK_SQL_DELETE, "DELETE FROM entry WHERE id = ?1", id,
			  "delete an entry", err);

	return r < 0 ? r
		     : ck_store_run_by_id(store, CK_SQL_DIGESTS_DELETE,
				 "DELETE FROM fingerprint WHERE entry = ?1", id,
				 "delete a fingerprint", err);
}

uint64_t ck_store_next_id(struct ck_store *store)
{
	return ++store->last_id;
}

/* ---- counters -------------------------------------------------------------------------------- */

static int write_counter(struct ck_store *store, const char *counter, int kind, uint64_t value,
			 struct ck_error *err)
{
	char name[CK_NAME_MAX_LEN];
	sqlite3_stmt *stmt;
	snprintf(name, sizeof(name), "%s%s", counter, ck_counter_kinds[kind]);
	int r = ck_store_statement(store, CK_SQL_COUNTER,
				   "INSERT INTO counter (name, value) VALUES (?1, ?2)"
				   " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
				   &stmt, err);

	if (r < 0)
		return r;
	int rc = sqlite3_bind_text(stmt, 1, name, -1, SQLITE_STATIC);
	rc = rc ? rc
		: sqlite3_bind_int64(stmt, 2, value > INT64_MAX ? INT64_MAX : (sqlite3_int64)value);
	return ck_store_run(store, stmt, rc, "write a counter", err);
}

int ck_store_counters(struct ck_store *store, const struct ck_counters *counters,
		      struct ck_error *err)
{
	/* a round changes only two or three of them; none ever shrinks, so 0 needs no row */
#define WRITE_COUNTER(member, kinds, text) \
	for (int kind = 0; kind <= CK_CONTAINER; kind++) { \
		uint64_t value = counters->member[kind]; \
		int r = value && (!store->counters_known || store->counters.member[kind] != value) \
				? write_counter(store, #member, kind, value, err) \
				: 0; \
		if (r < 0) \
			return r; \
	}
	CK_COUNTERS(WRITE_COUNTER)
#undef WRITE_COUNTER
	store->counters = *counters;
	store->counters_known = true;
	return 0;
}

/* ---- reading: at the start, and digests when they are asked for ------------------------------ */

static sqlite3 *readable(struct ck_store *store)
{
	return store->db ? store->db : store->copy;
}

struct load {
	int (*fn)(struct ck_row *row, void *userdata);
	void *userdata;
};

static int load_one(sqlite3_stmt *stmt, void *userdata, struct ck_error *err)
{
	const struct load *load = userdata;
	struct ck_row row;
	int r = ck_row_decode(stmt, &row, err);

	if (r < 0)
		return r;
	r = load->fn(&row, load->userdata);
	ck_row_fini(&row);
	return r;
}

int ck_store_load(struct ck_store *store, int (*fn)(struct ck_row *row, void *userdata),
		  void *userdata, struct ck_error *err)
{
	struct load load = { fn, userdata };
	sqlite3 *db = readable(store);
	int r = db ? ck_sql_each(db, ck_row_select, load_one, &load, "read the entries", err) : 0;

	return ck_context(err, r, "load");
}

int ck_store_load_counters(struct ck_store *store, struct ck_counters *ret_counters,
			   struct ck_error *err)
{
	sqlite3 *db = readable(store);

	*ret_counters = (struct ck_counters){0};
	int r = db ? ck_counters_read(db, ret_counters, err) : 0;
	store->counters = *ret_counters;
	store->counters_known = r >= 0 && store->db;
	return r;
}

int ck_store_digests(struct ck_store *store, uint64_t id, struct ck_record *record,
		     struct ck_error *err)
{
	sqlite3_stmt *stmt = NULL;
	int r;

	if (store->db) {
		r = ck_store_statement(store, CK_SQL_DIGESTS, ck_digests_select, &stmt, err);
		return r < 0 ? r : ck_digests_read(stmt, id, record, err);
	}
	if (!store->copy)
		return ck_fail(err, CK_EIO, "there is no database now");
	r = ck_sql_prepare(store->copy, ck_digests_select, &stmt, err);
	if (r >= 0)
		r = ck_digests_read(stmt, id, record, err);
	sqlite3_finalize(stmt);
	return r;
}

void ck_store_sizes(const struct ck_store *store, int64_t *ret_database, int64_t *ret_wal)
{
	*ret_database = ck_state_dir_size(store->dirfd, CK_DB_NAME);
	*ret_wal = ck_state_dir_size(store->dirfd, CK_DB_WAL);
}
