/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bounds on the WAL. A WAL starts anew when everything in it has been written back and nobody reads
 * it.
 *
 * On tmpfs the owner writes it back itself, when idle or half full: that is copying memory. On a
 * disk a thread with its own connection does, because it syncs; the owner does the rest (unsynced,
 * like all it writes) if work leaves no pause, and never waits for that thread.
 *
 * Somebody may pin the WAL: a foreign tool that was stopped inside a transaction (crikeep's own
 * readers take no lock, see copy.c), or the thread while a disk takes seconds per fsync. Then the
 * owner moves: it copies the database to a new file and puts that in the place of the old one. Who
 * holds the old files keeps a consistent, old state; the new WAL is empty.
 */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "cache/store/store-int.h"
#include "src/base/fault.h"
#include "src/base/host-process.h"

#define LIMIT_FRAMES (CK_WAL_LIMIT / CK_FRAME_SIZE)
#define WAKE_AT	      (LIMIT_FRAMES / 4)     /* the thread, if there is one, writes back */
/* the owner does; after the thread little is left to do */
#define WRITE_BACK_AT (LIMIT_FRAMES / 2)
/* that did not help. The rest is for the round that found out */
#define MOVE_AT	      (LIMIT_FRAMES / 4 * 3)

/* ---- the thread ------------------------------------------------------------------------------ */

struct ck_checkpointer {
	pthread_t thread;
	pthread_mutex_t lock; /* never held during I/O */
	pthread_cond_t wake;
	sqlite3 *db;	      /* in use by the thread; only it closes it */
	sqlite3 *next;	      /* offered to it, with has_next; NULL: none shall be used */
	bool has_next, wanted, quit;
};

/* With the lock held: the connection to be used from now on. The old one is the thread's to close,
 * without the lock. */
static void take_next(struct ck_checkpointer *c)
{
	sqlite3 *old = c->db;

	c->db = c->next;
	c->next = NULL;
	c->has_next = false;
	pthread_mutex_unlock(&c->lock);
	sqlite3_close(old);
	pthread_mutex_lock(&c->lock);
}

static void *checkpointer_main(void *arg)
{
	struct ck_checkpointer *c = arg;

	pthread_mutex_lock(&c->lock);
	while (!c->quit) {
		if (c->has_next) {
			take_next(c);
		} else if (c->wanted && c->db) {
			c->wanted = false;
			pthread_mutex_unlock(&c->lock);
			/* passive: takes no lock a writer waits for */
			sqlite3_wal_checkpoint_v2(c->db, "main", SQLITE_CHECKPOINT_PASSIVE, NULL,
						  NULL);
			pthread_mutex_lock(&c->lock);
		} else {
			pthread_cond_wait(&c->wake, &c->lock);
		}
	}
	c->next = NULL;
	take_next(c);
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

struct ck_checkpointer *ck_checkpointer_new(void)
{
	struct ck_checkpointer *c = CK_NEW(struct ck_checkpointer);

	if (!c)
		return NULL;
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->wake, NULL);
	if (ck_thread_start(&c->thread, checkpointer_main, c) == 0)
		return c;
	pthread_cond_destroy(&c->wake);
	pthread_mutex_destroy(&c->lock);
	free(c);
	return NULL;
}

void ck_checkpointer_use(struct ck_checkpointer *c, sqlite3 *db)
{
	pthread_mutex_lock(&c->lock);
	sqlite3 *unused = c->next; /* offered, and never taken up */
	c->next = db;
	c->has_next = true;
	if (c->db)
		sqlite3_interrupt(c->db);
	pthread_cond_signal(&c->wake);
	pthread_mutex_unlock(&c->lock);
	sqlite3_close(unused);
}

void ck_checkpointer_wake(struct ck_checkpointer *c)
{
	pthread_mutex_lock(&c->lock);
	c->wanted = true;
	pthread_cond_signal(&c->wake);
	pthread_mutex_unlock(&c->lock);
}

void ck_checkpointer_free(struct ck_checkpointer *c)
{
	if (!c)
		return;
	ck_checkpointer_use(c, NULL);
	pthread_mutex_lock(&c->lock);
	c->quit = true;
	pthread_cond_signal(&c->wake);
	pthread_mutex_unlock(&c->lock);
	pthread_join(c->thread, NULL);
	pthread_cond_destroy(&c->wake);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

/* ---- the owner ------------------------------------------------------------------------------- */

static int on_commit(void *userdata, sqlite3 *db, const char *name, int frames)
{
	struct ck_store *store = userdata;

	(void)db, (void)name;
	store->frames = frames > 0 ? (unsigned)frames : 0;
	return SQLITE_OK;
}

void ck_checkpoint_watch(struct ck_store *store)
{
	store->frames = 0;
	store->woken = false;
	store->move_frames = MOVE_AT;
	sqlite3_wal_hook(store->db, on_commit, store);
}

/* Everything written back and nobody reading: the next write starts the WAL anew. Waits for
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

/* A copy of the database in a file of its own, named CK_DB_TMP. It is not synced: neither is the
 * writer. */
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
 * Once the copy has the name CK_DB_NEXT it is the database; if we are killed before everything is
 * in place, the next life goes on from there (ck_state_dir_prepare()). The old connection is closed last:
 * as long as it lives nobody who also has the old file open takes itself for the last one, who
 * would remove the WAL by its name.
 */
static void move(struct ck_store *store)
{
	bool fresh;

	if (copy_to_tmp(store, NULL) < 0 ||
	    renameat(store->dirfd, CK_DB_TMP, store->dirfd, CK_DB_NEXT) < 0) {
		unlinkat(store->dirfd, CK_DB_TMP, 0);
		/* no space, for instance: not after every commit */
		store->move_frames = store->frames + LIMIT_FRAMES / 4;
		return;
	}
	int r = ck_state_dir_swap(store->dirfd, NULL);
	ck_store_disconnect(store, false);
	if (r >= 0)
		/* if not: ck_store_begin() tries again */
		ck_store_connect(store, false, &fresh, NULL);
}

void ck_checkpoint_bound(struct ck_store *store)
{
	if (store->frames < WAKE_AT) {
		store->woken = false;
		return;
	}
	/* once: at work all the time it would never let the owner do the rest */
	if (store->checkpointer && !store->woken) {
		ck_checkpointer_wake(store->checkpointer);
		store->woken = true;
	}
	if (store->frames < WRITE_BACK_AT)
		return;
	if (write_back(store))
		store->move_frames = MOVE_AT;
	else if (store->frames >= store->move_frames)
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
