/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A copy of the database in memory, made by SQLite in one transaction that lasts no longer than
 * the copying. Whoever makes it changes, creates and removes no file.
 *
 * While the shared memory of the WAL (-shm) is there it is used, but never written: a reader that
 * is stopped holds shared locks only, and nothing worse than a WAL that grows comes of it. Without
 * it, or if somebody holds a lock for longer, the files are read without locks, at a moment when
 * nobody has written for a while: then nothing has changed them when the copy is done.
 *
 * The process that has the database open must not do this: closing a descriptor of it drops
 * SQLite's locks.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cache/store/store-int.h"
#include "src/base/fault.h"

void (*ck_copy_hook)(void);

struct files { /* [0]: the database, [1]: its WAL, [2]: its -shm; st_ino 0: there is none */
	struct stat st[3];
};

static int look(int dirfd, struct files *ret_files, struct ck_error *err)
{
	static const char *const names[] = { CK_DB_NAME, CK_DB_WAL, CK_DB_SHM };

	*ret_files = (struct files){ 0 };
	for (size_t i = 0; i < CK_COUNT(names); i++) {
		struct stat *st = &ret_files->st[i];
		if (fstatat(dirfd, names[i], st, AT_SYMLINK_NOFOLLOW) < 0) {
			if (errno != ENOENT || i == 0)
				return ck_fail_errno(err, errno == ENOENT ? CK_ENOTFOUND : CK_EIO,
						     errno, "read '%s'", names[i]);
			*st = (struct stat){ 0 };
		} else if (!S_ISREG(st->st_mode)) {
			return ck_fail(err, CK_EIO, "'%s' is not a file", names[i]);
		}
	}
	if (ret_files->st[0].st_size + ret_files->st[1].st_size > CK_COPY_MAX)
		return ck_fail(err, CK_EIO, "'%s' is too long to be read", CK_DB_NAME);
	/* Without any byte it was made and not written yet. A WAL beside it is of an older one;
	 * SQLite would remove it, also for a reader. */
	return ret_files->st[0].st_size ? 0
					: ck_fail(err, CK_ENOTFOUND, "there is no database yet");
}

/* Is this file as it was, and was it so for longer than one tick of the clock that dates it? */
static bool rested(const struct stat *before, const struct stat *after)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	int64_t ago = (now.tv_sec - after->st_mtim.tv_sec) * (int64_t)CK_NS_PER_S +
		      (now.tv_nsec - after->st_mtim.tv_nsec);
	return before->st_ino == after->st_ino && before->st_size == after->st_size &&
	       before->st_mtim.tv_sec == after->st_mtim.tv_sec &&
	       before->st_mtim.tv_nsec == after->st_mtim.tv_nsec &&
	       (ago < 0 || ago > CK_COPY_REST);
}

static bool same(const struct files *a, const struct files *b)
{
	return rested(&a->st[0], &b->st[0]) && rested(&a->st[1], &b->st[1]);
}

/* A URI, because options come in one. The caller frees it. */
static char *uri_of(const char *path, const char *options)
{
	static const char hex[] = "0123456789abcdef";
	char *uri = ck_alloc(sizeof("file:?") + 3 * strlen(path) + strlen(options));

	if (!uri)
		return NULL;
	char *p = stpcpy(uri, "file:");
	for (const unsigned char *s = (const unsigned char *)path; *s; s++) {
		*p++ = '%';
		*p++ = hex[*s >> 4];
		*p++ = hex[*s & 15];
	}
	*p++ = '?';
	strcpy(p, options);
	return uri;
}

static int into_memory(sqlite3 *from, sqlite3 **ret_copy, struct ck_error *err)
{
	sqlite3 *copy = NULL;
	int r = ck_sql_open(":memory:",
			    SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_MEMORY, &copy,
			    err);

	if (r < 0)
		return r;
	sqlite3_backup *backup =
		ck_fault(CK_FAULT_STORE) ? NULL : sqlite3_backup_init(copy, "main", from, "main");
	int rc = backup ? sqlite3_backup_step(backup, CK_COPY_FIRST) : SQLITE_IOERR;
	if (ck_copy_hook)
		ck_copy_hook();
	while (rc == SQLITE_OK)
		rc = sqlite3_backup_step(backup, -1);
	sqlite3_backup_finish(backup);
	if (rc != SQLITE_DONE) {
		r = ck_sql_fail(err, copy, rc, "read the database");
		sqlite3_close(copy);
		return r;
	}
	*ret_copy = copy;
	return 0;
}

static int copy_once(const char *path, const char *options, bool exclusive, sqlite3 **ret_copy,
		     struct ck_error *err)
{
	CK_AUTO_FREE char *uri = uri_of(path, options);
	sqlite3 *db = NULL;

	if (!uri)
		return ck_nomem(err);
	int r = ck_sql_open(uri, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, &db, err);
	/* SQLite then keeps the index of the WAL in memory of its own */
	if (r >= 0 && exclusive)
		r = ck_sql_exec(db, "PRAGMA locking_mode = EXCLUSIVE", err);
	/* one transaction for all steps */
	if (r >= 0)
		r = ck_sql_exec(db, "BEGIN; SELECT 1 FROM sqlite_schema", err);
	if (r >= 0)
		r = into_memory(db, ret_copy, err);
	sqlite3_close(db);
	return r;
}

int ck_copy_open(const char *dir, int dirfd, sqlite3 **ret_copy, struct ck_error *err)
{
	struct timespec pause = { 0, CK_COPY_PAUSE };
	struct files before, after;
	CK_AUTO_FREE char *path = ck_alloc(strlen(dir) + sizeof("/" CK_DB_NAME));
	sqlite3 *copy = NULL;
	bool refused = false;
	long pid;

	if (!path)
		return ck_nomem(err);
	stpcpy(stpcpy(path, dir), "/" CK_DB_NAME);
	int r = look(dirfd, &before, err);
	for (int i = 0; r >= 0 && i < CK_COPY_TRIES; i++) {
		if (i)
			nanosleep(&pause, NULL);
		bool wal = before.st[1].st_ino, shm = before.st[2].st_size >= CK_SHM_MIN;
		/* files that do not rest beside an owner that can write: the lock is its own, and
		 * its pid is unknown here. An owner that starts has none yet. */
		bool owners = i % 2 && ck_state_dir_owned(dirfd, &pid) && pid != (long)getpid() &&
			      !ck_state_dir_degraded(dirfd);
		bool locks = wal && shm && !refused && (owners || !ck_lock_holder(dirfd, true));
		r = copy_once(path,
			      locks ? "readonly_shm=1" : wal ? "vfs=unix-none" : "immutable=1",
			      !locks && wal, &copy, err);
		if (r == -CK_ENOMEM || (r < 0 && r != -CK_EIO && locks))
			return r;
		refused = r < 0 && locks; /* an owner that was killed may not have written it */
		int seen = look(dirfd, &after, r < 0 ? NULL : err);
		if (r >= 0 && seen >= 0 && (locks || same(&before, &after))) {
			*ret_copy = copy;
			return 0;
		}
		if (r < 0 && seen >= 0 && !locks && same(&before, &after))
			return r;
		sqlite3_close(copy);
		copy = NULL;
		before = after;
		r = seen;
	}
	return r < 0 ? r : ck_fail(err, CK_EIO, "'%s' changes faster than it can be read",
				   CK_DB_NAME);
}
