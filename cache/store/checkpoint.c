/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps the WAL short. A WAL starts anew when all of it has been written back and nobody reads it.
 *
 * On tmpfs the owner writes it back itself, when idle or when it is half full: that only copies
 * memory. On a disk a thread with its own connection does (checkpointer.c), because it syncs. If
 * there is no pause in the work, the owner writes back the rest, without a sync, and never waits
 * for that thread.
 *
 * Somebody may pin the WAL: a foreign tool that was stopped inside a transaction (crikeep's own
 * readers take no lock, see copy.c), or the thread, on a disk that takes seconds for a sync. Then
 * the owner moves: it copies the database to a new file and puts it in the place of the old one.
 * Whoever has the old files open keeps a consistent, old state; the new WAL is empty.
 */
#include <stdio.h>
#include <unistd.h>

#include "cache/store/store-int.h"
#include "src/base/fault.h"

#define LIMIT_FRAMES (CK_WAL_LIMIT / CK_FRAME_SIZE)
#define WAKE_AT	      (LIMIT_FRAMES / 4)     /* the thread, if there is one, writes back */
#define WRITE_BACK_AT (LIMIT_FRAMES / 2)     /* the owner does; the thread has left little to do */
#define MOVE_AT       (LIMIT_FRAMES / 4 * 3) /* that did not help; one more round fits */

/* If all was written back and nobody reads, the next write starts the WAL anew. Waits for
 * nobody. */
static bool write_back(struct ck_store *store)
{
	sqlite3_busy_timeout(store->db, 0);
	int rc = ck_fault(CK_FAULT_STORE)
			 ? SQLITE_IOERR
			 : sqlite3_wal_checkpoint_v2(store->db, "main", SQLITE_CHECKPOINT_RESTART,
						     NULL, NULL);
	sqlite3_busy_timeout(store->db, CK_BUSY_MS);
	return rc == SQLITE_OK;
}

/* Copy the database to CK_DB_TMP. Like all that the owner writes, it is not synced. */
static int copy_to_tmp(struct ck_store *store, struct ck_error *err)
{
	char path[4096];
	sqlite3 *copy = NULL;
	int r = ck_state_dir_make(store->dirfd, CK_DB_TMP, err);

	if (r < 0)
		return r;
	if ((size_t)snprintf(path, sizeof(path), "%s/%s", store->dir, CK_DB_TMP) >= sizeof(path))
		return ck_fail(err, CK_EIO, "the path is too long");
	r = ck_sql_open(path, SQLITE_OPEN_READWRITE, &copy, err);
	if (r >= 0)
		r = ck_sql_exec(copy, "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF", err);
	if (r >= 0) {
		sqlite3_backup *backup = sqlite3_backup_init(copy, "main", store->db, "main");
		int rc = backup ? sqlite3_backup_step(backup, -1) : sqlite3_errcode(copy);
		sqlite3_backup_finish(backup);
		if (rc != SQLITE_DONE)
			r = ck_sql_fail(err, copy, rc, "copy the database");
	}
	sqlite3_close(copy);
	return r;
}

/*
 * As soon as the copy has the name CK_DB_NEXT, it is the database. If we are killed before it is in
 * place, the next owner continues (ck_state_dir_prepare()). The old connection is closed last:
 * while it is open, no other connection to the old file believes that it is the last one and
 * removes the WAL by its name.
 */
static void move(struct ck_store *store)
{
	bool fresh;

	if (copy_to_tmp(store, NULL) < 0 ||
	    renameat(store->dirfd, CK_DB_TMP, store->dirfd, CK_DB_NEXT) < 0) {
		unlinkat(store->dirfd, CK_DB_TMP, 0);
		/* no space, for instance: do not try again after every commit */
		store->move_frames = store->frames + LIMIT_FRAMES / 4;
		return;
	}
	int r = ck_state_dir_swap(store->dirfd, NULL);
	ck_store_disconnect(store, false);
	if (r >= 0) /* if not, or if this fails, ck_store_begin() tries again */
		ck_store_connect(store, false, &fresh, NULL);
}

void ck_checkpoint_bound(struct ck_store *store)
{
	if (store->frames < WAKE_AT) {
		store->woken = false;
		return;
	}
	/* Only once: if it worked all the time, the owner could never do the rest. */
	if (store->checkpointer && !store->woken) {
		ck_checkpointer_wake(store->checkpointer);
		store->woken = true;
	}
	if (store->frames < WRITE_BACK_AT)
		return;
	if (write_back(store))
		store->move_frames = 0;
	else if (store->frames >= MOVE_AT && store->frames >= store->move_frames)
		move(store);
}

void ck_store_idle(struct ck_store *store)
{
	int was_moved = 0;

	if (!store->db || store->in_round)
		return;
	sqlite3_file_control(store->db, "main", SQLITE_FCNTL_HAS_MOVED, &was_moved);
	store->moved = was_moved != 0;
	if (!store->checkpoint_due)
		return;
	store->checkpoint_due = false;
	if (store->checkpointer)
		ck_checkpointer_wake(store->checkpointer);
	else
		write_back(store);
}
