/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps the WAL short. The owner writes it back when idle, if it has more than CK_WAL_IDLE, and
 * under load when it is half full; that only copies pages, because nothing is synced. The WAL
 * starts anew with the first page that is written after all of it was written back and nobody
 * reads it.
 *
 * Somebody may pin it: a program that is stopped while it reads. Then it grows, for as long as he
 * reads, and the log names him.
 */
#include <fcntl.h>

#include "cache/store/store-int.h"
#include "src/base/fault.h"

#define LIMIT_FRAMES  (CK_WAL_LIMIT / CK_FRAME_SIZE)
#define IDLE_FRAMES   (CK_WAL_IDLE / CK_FRAME_SIZE)
#define WRITE_BACK_AT (LIMIT_FRAMES / 2) /* and another time after each quarter */
#define PINNED_FRAMES (CK_WAL_PINNED / CK_FRAME_SIZE)

/* Outside of a transaction. Waits for nobody. */
static void write_back(struct ck_store *store)
{
	if (!ck_fault(CK_FAULT_STORE))
		sqlite3_wal_checkpoint_v2(store->db, "main", SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
}

void ck_checkpoint_bound(struct ck_store *store)
{
	if (store->frames < WRITE_BACK_AT) {
		store->next_try = WRITE_BACK_AT;
		store->told_frames = 0;
	} else if (store->frames >= store->next_try) {
		write_back(store);
		store->next_try = store->frames + LIMIT_FRAMES / 4;
	}
}

void ck_store_idle(struct ck_store *store)
{
	int was_moved = 0;

	if (!store->db || store->in_round)
		return;
	sqlite3_file_control(store->db, "main", SQLITE_FCNTL_HAS_MOVED, &was_moved);
	store->moved = was_moved != 0;
	if (!store->checkpoint_due || store->frames < IDLE_FRAMES)
		return;
	store->checkpoint_due = false;
	if (!sqlite3_get_autocommit(store->db) &&
	    sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL) != SQLITE_OK)
		return;
	write_back(store);
	ck_store_hold(store, NULL);
}

bool ck_store_pinned(struct ck_store *store, uint64_t *ret_wal, long *ret_pid)
{
	if (store->frames < PINNED_FRAMES || store->frames / 2 < store->told_frames)
		return false;
	store->told_frames = store->frames;
	*ret_wal = (uint64_t)store->frames * CK_FRAME_SIZE;
	*ret_pid = ck_lock_holder(store->dirfd, false);
	return true;
}

int ck_store_pinned_dir(const struct ck_store *store)
{
	return store->frames < PINNED_FRAMES ? -1 : fcntl(store->dirfd, F_DUPFD_CLOEXEC, 3);
}

long ck_store_wal_pid(int dirfd)
{
	return ck_lock_holder(dirfd, false);
}
