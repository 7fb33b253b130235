/* SPDX-License-Identifier: Apache-2.0 */
/* A thread with its own connection, which writes the WAL back and syncs. */
#include <pthread.h>

#include "cache/store/store-int.h"
#include "src/base/host-process.h"

struct ck_checkpointer {
	pthread_t thread;
	pthread_mutex_t lock; /* never held during I/O */
	pthread_cond_t wake;
	sqlite3 *db;   /* the thread uses it, and only the thread closes it */
	sqlite3 *next; /* if @has_next: to be used from now on; NULL: none */
	bool has_next, wanted, quit;
};

/* With the lock held: use @next from now on. The old connection is closed without the lock. */
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
			/* passive: it takes no lock that a writer waits for */
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
	sqlite3 *unused = c->next; /* the thread has never taken it */
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
