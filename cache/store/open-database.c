/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening and closing the store, and setting a damaged database aside. The store owns the directory
 * from open to close. The database in it may be missing for a while (K32) or be replaced (K33).
 */
#include <stdio.h>
#include <unistd.h>

#include "cache/store/store-int.h"

static void forget_copy(struct ck_store *store)
{
	sqlite3_close(store->copy);
	store->copy = NULL;
}

/* ---- damage ---------------------------------------------------------------------------------- */

int ck_store_set_aside(struct ck_store *store, char *ret_name, struct ck_error *err)
{
	bool fresh;

	ret_name[0] = '\0';
	ck_store_rollback(store);
	ck_store_disconnect(store, false);
	forget_copy(store);
	store->set_aside_first = true;
	int r = ck_state_dir_set_aside(store->dirfd, ret_name, err);
	if (r < 0)
		return r;
	store->set_aside_first = false;
	r = ck_store_connect(store, false, &fresh, err);
	return r == -CK_EFULL || r >= 0 ? r : -CK_EIO;
}

/* ---- open ------------------------------------------------------------------------------------ */

/* The database is damaged: @why. The store opens in any case. */
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

/* Nothing can be written: @why. What is in the database must be read all the same (K32). */
static int read_only(struct ck_store *store, struct ck_store_opened *opened,
		     const struct ck_error *why, struct ck_error *err)
{
	int version;
	int r = ck_copy_open(store->dir, store->dirfd, &store->copy, err);

	opened->no_database = true;
	opened->why = *why;
	if (r == -CK_ENOTFOUND)
		return 0;
	if (r >= 0)
		r = ck_schema_check(store->copy, &version, err);
	if (r == 1) { /* its creation was never finished: there is none */
		forget_copy(store);
		return 0;
	}
	if (r >= 0)
		r = ck_store_check_pages(store->copy, err);
	if (r >= 0)
		r = ck_store_read_counts(store, store->copy, err);
	return r < 0 ? r : 0;
}

static bool memory_is_there(void)
{
	CK_AUTO_FREE void *probe = ck_alloc(CK_MEMORY_PROBE);
	return probe != NULL;
}

/* SQLite takes some damage for a lack of memory. An owner that took its word could not start on
 * such a database any more. */
static int connect_or_damaged(struct ck_store *store, bool *ret_fresh, struct ck_error *err)
{
	int r = ck_store_connect(store, true, ret_fresh, err);

	if (r != -CK_ENOMEM || !memory_is_there())
		return r;
	r = ck_store_connect(store, true, ret_fresh, err);
	return r != -CK_ENOMEM || !memory_is_there()
		       ? r
		       : ck_fail(err, CK_EDAMAGED, "SQLite finds no memory for what is in it");
}

static int open_database(struct ck_store *store, struct ck_store_opened *opened,
			 struct ck_error *err)
{
	struct ck_error why = {0};
	int r = connect_or_damaged(store, &opened->fresh, &why);

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
	opened.mode_mended = ck_state_dir_mend_mode(dir, &opened.mode);
	r = ck_state_dir_open(dir, true, &store->dir, &store->dirfd, err);
	if (r >= 0)
		r = path_of_database(store, err);
	if (r >= 0)
		r = ck_state_dir_own(store->dirfd, store->dir, err);
	if (r >= 0)
		r = ck_state_dir_key(store->dirfd, &store->key, &opened.key_made, err);
	if (r >= 0) {
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
	ck_store_disconnect(store, true);
	forget_copy(store);
	if (store->dirfd >= 0)
		close(store->dirfd); /* this also releases the lock */
	explicit_bzero(&store->key, sizeof(store->key));
	free(store->path);
	free(store->dir);
	free(store);
}

void ck_store_set_degraded(struct ck_store *store, bool degraded)
{
	ck_state_dir_set_degraded(store->dirfd, degraded);
}

const struct ck_digest_key *ck_store_key(const struct ck_store *store)
{
	return &store->key;
}
