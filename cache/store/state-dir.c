/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state directory: its owner, the digest key, and the names of the database's files. This file
 * does not use SQLite and never opens an existing database file: closing any descriptor of it would
 * drop the locks that SQLite holds on it in this process.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cache/store/store-int.h"
#include "src/base/host-process.h"

/* for 200 ms: somebody may hold a shared lock for an instant to see whether it is free */
#define LOCK_TRIES    40
#define LOCK_PAUSE_NS (5 * (long)CK_NS_PER_MS)
#define NAME_TRIES    1000

/* ---- the directory --------------------------------------------------------------------------- */

/* Root without capabilities is held to the mode like anybody else, and without the directory there
 * are no pods. What it has lost by accident it may give itself again. A directory that can be read
 * and not written stays as it is. */
bool ck_state_dir_mend_mode(const char *dir, unsigned *ret_had)
{
	struct stat st;

	if (stat(dir, &st) < 0 || !S_ISDIR(st.st_mode) || st.st_uid != geteuid() ||
	    (st.st_mode & 0500) == 0500)
		return false;
	*ret_had = st.st_mode & 07777;
	return chmod(dir, *ret_had | 0700) == 0;
}

int ck_state_dir_open(const char *dir, bool make, char **ret_path, int *ret_fd,
		      struct ck_error *err)
{
	bool made = make && mkdir(dir, 0700) == 0;
	struct stat st;

	CK_AUTO_CLOSE int fd = ck_fd_own(open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	if (fd < 0)
		return ck_fail_errno(err, errno == ENOENT && !make ? CK_ENOTFOUND : CK_EIO, errno,
				     "state directory '%s'", dir);
	if (made && fchmod(fd, 0700) < 0) /* the umask may have removed bits that we need */
		return ck_fail_errno(err, CK_EIO, errno, "state directory '%s'", dir);
	if (fstat(fd, &st) < 0)
		return ck_fail_errno(err, CK_EIO, errno, "state directory '%s'", dir);
	if (make && st.st_uid != 0 && st.st_uid != geteuid())
		return ck_fail(err, CK_EIO,
			       "state directory '%s' belongs to uid %u, not to root or this user",
			       dir, (unsigned)st.st_uid);
	if (make && st.st_mode & 022)
		return ck_fail(err, CK_EIO,
			       "state directory '%s' has mode %04o: others can write into it", dir,
			       (unsigned)st.st_mode & 07777);

	char *path = realpath(dir, NULL); /* the host may change its working directory */
	if (!path)
		return errno == ENOMEM
			       ? ck_nomem(err)
			       : ck_fail_errno(err, CK_EIO, errno, "state directory '%s'", dir);
	*ret_path = path;
	*ret_fd = CK_TAKE_FD(fd);
	return 0;
}

int64_t ck_state_dir_size(int dirfd, const char *name)
{
	struct stat st;

	return fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ? -1 : (int64_t)st.st_size;
}

/* ---- small files: written as a whole, or not at all ------------------------------------------ */

static ssize_t file_read(int dirfd, const char *name, void *buf, size_t size)
{
	struct stat st;
	CK_AUTO_CLOSE int fd = openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return -1;
	return read(fd, buf, size);
}

static int file_write(int dirfd, const char *name, const void *bytes, size_t len)
{
	char tmp[32];
	CK_AUTO_CLOSE int fd = -1;

	snprintf(tmp, sizeof(tmp), "%s.tmp", name);
	unlinkat(dirfd, tmp, 0); /* left by an owner that was killed */
	fd = ck_fd_own(
		openat(dirfd, tmp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
	if (fd < 0)
		return -1;
	if (fchmod(fd, 0600) < 0 || write(fd, bytes, len) != (ssize_t)len ||
	    renameat(dirfd, tmp, dirfd, name) < 0) {
		unlinkat(dirfd, tmp, 0);
		return -1;
	}
	return 0;
}

/* ---- ownership ------------------------------------------------------------------------------- */

/*
 * The lock is an flock(2) on the directory. With it come marks: shared OFD locks, each on a byte of
 * its own, that exclude nobody. Unlike an flock they can be queried without being taken
 * (F_OFD_GETLK), so a reader that is stopped while it looks cannot keep an owner out. A mark ends
 * with its owner, and needs no space on a disk.
 */
enum mark {
	MARK_OWNED,
	MARK_DEGRADED, /* the owner cannot write the database now */
};

static int mark_set(int dirfd, enum mark mark, bool set)
{
	struct flock lock = { .l_type = set ? F_RDLCK : F_UNLCK,
			      .l_whence = SEEK_SET,
			      .l_start = mark,
			      .l_len = 1 };

	return fcntl(dirfd, F_OFD_SETLK, &lock);
}

static bool mark_is_set(int dirfd, enum mark mark)
{
	struct flock ask = { .l_type = F_WRLCK,
			     .l_whence = SEEK_SET,
			     .l_start = mark,
			     .l_len = 1 };

	return fcntl(dirfd, F_OFD_GETLK, &ask) == 0 && ask.l_type != F_UNLCK;
}

void ck_state_dir_owner_text(int dirfd, char text[CK_OWNER_TEXT])
{
	ssize_t n = file_read(dirfd, CK_OWNER_NAME, text, CK_OWNER_TEXT - 1);

	text[n > 0 ? n : 0] = '\0';
}

static long owner_pid(int dirfd)
{
	char text[CK_OWNER_TEXT], *end;

	ck_state_dir_owner_text(dirfd, text);
	errno = 0;
	long pid = strtol(text, &end, 10);
	return errno || end == text || *end != ' ' || pid < 1 ? 0 : pid;
}

bool ck_state_dir_owned(int dirfd, long *ret_pid)
{
	*ret_pid = owner_pid(dirfd);
	return mark_is_set(dirfd, MARK_OWNED);
}

void ck_state_dir_set_degraded(int dirfd, bool degraded)
{
	mark_set(dirfd, MARK_DEGRADED, degraded); /* it only informs */
}

bool ck_state_dir_degraded(int dirfd)
{
	return mark_is_set(dirfd, MARK_DEGRADED);
}

bool ck_store_owner(const char *dir, long *ret_pid)
{
	CK_AUTO_CLOSE int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	*ret_pid = 0;
	return fd >= 0 && ck_state_dir_owned(fd, ret_pid);
}

bool ck_store_owner_degraded(const char *dir)
{
	CK_AUTO_CLOSE int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd >= 0 && ck_state_dir_degraded(fd);
}

int ck_state_dir_own(int dirfd, const char *path, struct ck_error *err)
{
	struct timespec now, pause = {0, LOCK_PAUSE_NS};
	char text[CK_OWNER_TEXT];

	for (int i = 0; flock(dirfd, LOCK_EX | LOCK_NB) < 0; i++) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return ck_fail_errno(err, CK_EIO, errno, "lock '%s'", path);
		if (i == LOCK_TRIES) {
			long pid = owner_pid(dirfd);
			return pid ? ck_fail(err, CK_EOWNED, "'%s' is owned by process %ld", path,
					     pid)
				   : ck_fail(err, CK_EOWNED, "'%s' is owned by another process",
					     path);
		}
		struct timespec left = pause;
		/* the host's signals must not shorten it */
		while (nanosleep(&left, &left) < 0 && errno == EINTR)
			;
	}
	if (mark_set(dirfd, MARK_OWNED, true) < 0)
		return ck_fail_errno(err, CK_EIO, errno, "lock '%s'", path);

	clock_gettime(CLOCK_BOOTTIME, &now);
	int n = snprintf(text, sizeof(text), "%ld %lld.%09ld\n", (long)getpid(),
			 (long long)now.tv_sec, now.tv_nsec);
	if (file_write(dirfd, CK_OWNER_NAME, text, (size_t)n) < 0)
		/* no pid is better than the pid of an earlier owner */
		unlinkat(dirfd, CK_OWNER_NAME, 0);
	return 0;
}

/* ---- the digest key -------------------------------------------------------------------------- */

bool ck_state_dir_parse_key(const void *bytes, size_t len, struct ck_digest_key *ret_key)
{
	struct ck_digest_key key = {0};

	if (len != sizeof(key.bytes))
		return false;
	memcpy(key.bytes, bytes, len);
	if (!ck_digest_key_derive(&key))
		return false;
	*ret_key = key;
	return true;
}

int ck_state_dir_key(int dirfd, struct ck_digest_key *ret_key, bool *ret_made,
		     struct ck_error *err)
{
	unsigned char bytes[CK_KEY_BYTES + 1]; /* one more shows a file that is too long */
	ssize_t n = file_read(dirfd, CK_KEY_NAME, bytes, sizeof(bytes));

	*ret_made = n < 0 || !ck_state_dir_parse_key(bytes, (size_t)n, ret_key);
	if (!*ret_made)
		return 0;
	do {
		if (getrandom(bytes, CK_KEY_BYTES, 0) != CK_KEY_BYTES)
			return ck_fail_errno(err, CK_EIO, errno, "make a key");
	} while (!ck_state_dir_parse_key(bytes, CK_KEY_BYTES, ret_key));
	/* if this fails, the next owner cannot compare our rows (K31) */
	file_write(dirfd, CK_KEY_NAME, bytes, CK_KEY_BYTES);
	return 0;
}

/* ---- the database's files -------------------------------------------------------------------- */

static int make_database(int dirfd, struct ck_error *err)
{
	/* SQLite would use the umask's mode; -wal and -shm inherit this one */
	CK_AUTO_CLOSE int fd = ck_fd_own(openat(
		dirfd, CK_DB_NAME, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));

	if (fd < 0 || fchmod(fd, 0600) < 0)
		return ck_fail_errno(err, errno == ENOSPC || errno == EDQUOT ? CK_EFULL : CK_EIO,
				     errno, "make '%s'", CK_DB_NAME);
	return 0;
}

int ck_state_dir_prepare(int dirfd, struct ck_error *err)
{
	struct stat st;

	if (fstatat(dirfd, CK_DB_NAME, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? make_database(dirfd, err)
				       : ck_fail_errno(err, CK_EIO, errno, "'%s'", CK_DB_NAME);
	return S_ISREG(st.st_mode) ? 0
				   : ck_fail(err, CK_EDAMAGED, "'%s' is not a file", CK_DB_NAME);
}

/* false: errno says why; 0: the name is taken */
static bool name_is_free(int dirfd, const char *name)
{
	static const char *const suffixes[] = {"", "-wal", "-shm"};
	char full[512];
	struct stat st;

	for (size_t i = 0; i < CK_COUNT(suffixes); i++) {
		snprintf(full, sizeof(full), "%s%s", name, suffixes[i]);
		errno = 0;
		if (fstatat(dirfd, full, &st, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT)
			return false;
	}
	return true;
}

/*
 * The database goes first. If we are killed in between, the next owner finds a WAL without a
 * database, which SQLite drops. The other way round, it would find an older state of the database
 * and believe it.
 */
int ck_state_dir_set_aside(int dirfd, char ret_name[512], struct ck_error *err)
{
	static const char *const from[] = {CK_DB_WAL, CK_DB_SHM};
	static const char *const suffix[] = {"-wal", "-shm"};
	char base[128], name[160], full[192];
	time_t now = time(NULL);
	struct tm tm;

	strftime(base, sizeof(base), CK_DB_NAME ".damaged-%Y%m%dT%H%M%SZ", gmtime_r(&now, &tm));
	snprintf(name, sizeof(name), "%s", base);
	for (int i = 2; !name_is_free(dirfd, name); i++) {
		if (errno)
			return ck_fail_errno(err, CK_EIO, errno, "set '%s' aside", CK_DB_NAME);
		if (i == NAME_TRIES)
			return ck_fail(err, CK_EIO, "set '%s' aside: no name is free", CK_DB_NAME);
		snprintf(name, sizeof(name), "%s-%d", base, i);
	}
	if (renameat(dirfd, CK_DB_NAME, dirfd, name) < 0 && errno != ENOENT)
		return ck_fail_errno(err, CK_EIO, errno, "set '%s' aside", CK_DB_NAME);
	for (size_t i = 0; i < CK_COUNT(from); i++) {
		snprintf(full, sizeof(full), "%s%s", name, suffix[i]);
		if (renameat(dirfd, from[i], dirfd, full) < 0 && errno != ENOENT)
			return ck_fail_errno(err, CK_EIO, errno, "set '%s' aside", from[i]);
	}
	snprintf(ret_name, 512, "%s", name);
	return 0;
}
