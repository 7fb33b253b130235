/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A consistent copy, without any lock, of a database that somebody else may be writing.
 *
 * A reader that uses SQLite holds locks of the WAL while it reads, for an instant even exclusive
 * ones. If it is stopped there (SIGSTOP, a debugger, a frozen cgroup), it pins the WAL or keeps an
 * owner out as long as it is stopped. This reader holds nothing but descriptors, so it may be
 * stopped anywhere.
 *
 * Why the copy is consistent (https://www.sqlite.org/fileformat2.html, section 4): pages go to the
 * WAL first, and to the database file only after they were committed in the WAL. The database file
 * is read first, the WAL after it. So each page that changed meanwhile in the database file is in
 * the WAL, unless the WAL started anew in between; then its header has other salts. Header,
 * identity of the files and owner must be the same after the copy as before; if not, everything is
 * read again. The owner (connect.c) never truncates the WAL to nothing while it is alive, so a
 * header is always there.
 *
 * The process that owns the directory must not do this: closing a descriptor of the database drops
 * SQLite's locks.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cache/store/store-int.h"
#include "src/base/fault.h"

#define HEADER_SIZE   100u /* of a database */
#define WAL_HEADER    32u
#define FRAME_HEADER  24u

void (*ck_copy_hook)(void);

struct bytes {
	unsigned char *at;
	size_t len;
};

static uint32_t be32(const unsigned char *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static uint32_t le32(const unsigned char *p)
{
	return (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | p[0];
}

/* ---- reading the files ----------------------------------------------------------------------- */

struct mark {             /* must be the same before and after the copy */
	const char *name; /* which file is the database */
	dev_t dev;
	ino_t ino;
	unsigned char wal[WAL_HEADER]; /* zero: none */
	char owner[CK_OWNER_TEXT];
};

static int open_file(int dirfd, const char *name, struct stat *ret_st)
{
	int fd = openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	int r = fstat(fd, ret_st) < 0 ? -errno : S_ISREG(ret_st->st_mode) ? 0 : -EINVAL;
	if (r == 0)
		return fd;
	close(fd);
	return r;
}

static bool same_mark(const struct mark *a, const struct mark *b)
{
	return a->name == b->name && a->dev == b->dev && a->ino == b->ino &&
	       !memcmp(a->wal, b->wal, sizeof(a->wal)) && !strcmp(a->owner, b->owner);
}

/* 0, or -errno */
static int take_mark(int dirfd, struct mark *ret_mark)
{
	struct mark mark = {.name = CK_DB_NEXT};
	struct stat st;

	if (fstatat(dirfd, mark.name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		mark.name = CK_DB_NAME;
		if (fstatat(dirfd, mark.name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			return -errno;
	}
	mark.dev = st.st_dev;
	mark.ino = st.st_ino;
	CK_AUTO_CLOSE int fd = open_file(dirfd, CK_DB_WAL, &st);
	if (fd >= 0 && pread(fd, mark.wal, sizeof(mark.wal), 0) != (ssize_t)sizeof(mark.wal))
		memset(mark.wal, 0, sizeof(mark.wal));
	else if (fd < 0 && fd != -ENOENT)
		return fd;
	ck_state_dir_owner_text(dirfd, mark.owner);
	*ret_mark = mark;
	return 0;
}

/* Reads a whole file, as long as it is now. The caller frees @ret->at. 0, or -errno */
static int read_file(int fd, const struct stat *st, struct bytes *ret)
{
	struct bytes b = {0};

	if (st->st_size > CK_COPY_MAX)
		return -EFBIG;
	b.at = ck_alloc((size_t)st->st_size);
	if (!b.at)
		return -ENOMEM;
	while (b.len < (size_t)st->st_size) {
		ssize_t n = pread(fd, b.at + b.len, (size_t)st->st_size - b.len, (off_t)b.len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			int r = -errno;
			if (n == 0)
				/* it is shorter now: the mark has changed, or the WAL was cut
				 * behind its last frame */
				break;
			free(b.at);
			return r;
		}
		b.len += (size_t)n;
	}
	*ret = b;
	return 0;
}

/* 1: the copy is good; 0: the files changed meanwhile; -errno */
static int read_files(int dirfd, struct bytes *ret_db, struct bytes *ret_wal)
{
	struct mark before, after;
	struct stat st;
	int r = take_mark(dirfd, &before);

	if (r < 0)
		return r;
	CK_AUTO_CLOSE int db_fd = open_file(dirfd, before.name, &st);
	if (db_fd == -ENOENT) /* it was there: the new file got its final name since */
		return 0;
	if (db_fd < 0)
		return db_fd;
	if (st.st_ino != before.ino || st.st_dev != before.dev)
		return 0;
	r = read_file(db_fd, &st, ret_db);
	if (r < 0)
		return r;
	if (ck_copy_hook)
		ck_copy_hook();
	/* CK_DB_NEXT has no WAL: nobody has opened it yet */
	if (!strcmp(before.name, CK_DB_NAME)) {
		CK_AUTO_CLOSE int wal_fd = open_file(dirfd, CK_DB_WAL, &st);
		if (wal_fd < 0 && wal_fd != -ENOENT)
			return wal_fd;
		r = wal_fd < 0 ? 0 : read_file(wal_fd, &st, ret_wal);
		if (r < 0)
			return r;
	}
	if (ck_copy_hook)
		ck_copy_hook();
	r = take_mark(dirfd, &after);
	return r < 0 ? r : same_mark(&before, &after);
}

/* ---- the WAL --------------------------------------------------------------------------------- */

struct checksum {
	uint32_t s0, s1;
	bool big_endian;
};

static void checksum_add(struct checksum *c, const unsigned char *p, size_t len)
{
	uint32_t (*word)(const unsigned char *) = c->big_endian ? be32 : le32;

	for (size_t i = 0; i + 8 <= len; i += 8) {
		c->s0 += word(p + i) + c->s1;
		c->s1 += word(p + i + 4) + c->s0;
	}
}

static bool checksum_is(const struct checksum *c, const unsigned char *p)
{
	return c->s0 == be32(p) && c->s1 == be32(p + 4);
}

/* The part of a WAL that SQLite would recover: up to the last commit before the first bad
 * checksum. */
struct wal {
	size_t frames;
	uint32_t pages; /* size of the database after them */
};

static struct wal wal_find(const struct bytes *wal, size_t page_size)
{
	struct checksum sum = {0};
	struct wal found = {0};

	if (wal->len < WAL_HEADER || (be32(wal->at) & ~1u) != 0x377f0682 ||
	    be32(wal->at + 4) != 3007000 || be32(wal->at + 8) != page_size)
		return found;
	sum.big_endian = be32(wal->at) & 1;
	checksum_add(&sum, wal->at, 24);
	if (!checksum_is(&sum, wal->at + 24))
		return found;
	const unsigned char *frame = wal->at + WAL_HEADER;
	size_t n = (wal->len - WAL_HEADER) / (FRAME_HEADER + page_size);
	for (size_t i = 1; i <= n; i++, frame += FRAME_HEADER + page_size) {
		if (memcmp(frame + 8, wal->at + 16, 8)) /* salts */
			break;
		checksum_add(&sum, frame, 8);
		checksum_add(&sum, frame + FRAME_HEADER, page_size);
		if (!checksum_is(&sum, frame + 16) || !be32(frame))
			break;
		if (be32(frame + 4))
			found = (struct wal){i, be32(frame + 4)};
	}
	return found;
}

static int wal_apply(struct bytes *db, const struct bytes *wal, size_t page_size,
		     struct ck_error *err)
{
	struct wal found = wal_find(wal, page_size);
	size_t len = found.pages * page_size;

	if (!found.frames)
		return 0;
	if (found.pages > db->len / page_size + found.frames || len > CK_COPY_MAX)
		return ck_fail(err, CK_EDAMAGED, "the WAL speaks of %u pages",
			       (unsigned)found.pages);
	unsigned char *at = ck_realloc(db->at, len);
	if (!at)
		return ck_nomem(err);
	if (len > db->len)
		memset(at + db->len, 0, len - db->len);
	*db = (struct bytes){at, len};
	const unsigned char *frame = wal->at + WAL_HEADER;
	for (size_t i = 0; i < found.frames; i++, frame += FRAME_HEADER + page_size) {
		uint32_t page = be32(frame);
		if (page <= found.pages)
			memcpy(at + (page - 1) * page_size, frame + FRAME_HEADER, page_size);
	}
	return 0;
}

/* ---- the copy -------------------------------------------------------------------------------- */

static int to_database(struct bytes *db, const struct bytes *wal, struct ck_copy *ret_copy,
		       struct ck_error *err)
{
	struct ck_copy copy = {0};

	if (!db->len) /* it was made and not written yet */
		return ck_fail(err, CK_ENOTFOUND, "there is no database yet");
	if (db->len < HEADER_SIZE || memcmp(db->at, "SQLite format 3", 16))
		return ck_fail(err, CK_EDAMAGED, "'%s' is not a database", CK_DB_NAME);
	size_t page_size = (size_t)db->at[16] << 8 | db->at[17];
	page_size = page_size == 1 ? 65536 : page_size;
	if (page_size < 512 || page_size & (page_size - 1))
		return ck_fail(err, CK_EDAMAGED, "'%s' has pages of %zu bytes", CK_DB_NAME,
			       page_size);
	int r = wal_apply(db, wal, page_size, err);
	if (r < 0)
		return r;
	db->at[18] = db->at[19] = 1; /* read and write version: the copy has no WAL */

	r = ck_sql_open(":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_MEMORY,
			&copy.db, err);
	if (r < 0)
		return r;
	int rc = ck_fault(CK_FAULT_STORE)
			 ? SQLITE_IOERR
			 : sqlite3_deserialize(copy.db, "main", db->at, (sqlite3_int64)db->len,
					       (sqlite3_int64)db->len, SQLITE_DESERIALIZE_READONLY);
	if (rc != SQLITE_OK) {
		/* this code means that it has no memory */
		r = rc == SQLITE_ERROR ? ck_nomem(err)
				       : ck_sql_fail(err, copy.db, rc, "read the copy");
		sqlite3_close(copy.db);
		return r;
	}
	copy.bytes = db->at;
	db->at = NULL;
	*ret_copy = copy;
	return 0;
}

static int fail_sys(struct ck_error *err, int sys)
{
	if (sys == ENOMEM)
		return ck_nomem(err);
	return ck_fail_errno(err, sys == ENOENT ? CK_ENOTFOUND : CK_EIO, sys, "read '%s'",
			     CK_DB_NAME);
}

int ck_copy_open(int dirfd, struct ck_copy *ret_copy, struct ck_error *err)
{
	struct timespec pause = {0, CK_COPY_PAUSE};
	int r = 0;

	for (int i = 0; r == 0 && i < CK_COPY_TRIES; i++) {
		struct bytes db = {0}, wal = {0};
		long pid;
		if (i)
			nanosleep(&pause, NULL);
		r = read_files(dirfd, &db, &wal);
		/* the owner may be about to put another file in place */
		if (r == -ENOENT && ck_state_dir_owned(dirfd, &pid))
			r = 0;
		int done = r > 0 ? to_database(&db, &wal, ret_copy, err) : 0;
		free(db.at);
		free(wal.at);
		if (r > 0)
			return done;
	}
	return r < 0 ? fail_sys(err, -r)
		     : ck_fail(err, CK_EIO, "'%s' changes faster than it can be read", CK_DB_NAME);
}

void ck_copy_close(struct ck_copy *copy)
{
	sqlite3_close(copy->db);
	free(copy->bytes);
	*copy = (struct ck_copy){0};
}
