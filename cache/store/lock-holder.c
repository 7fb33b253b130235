/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which process holds SQLite's locks on the database? /proc/locks says so. Nothing here opens a
 * file of the database: closing it would drop the locks that this process has.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "cache/store/store-int.h"

/* Bytes that SQLite locks: sqlite.org/walformat.html, section 2.3, and sqlite.org/fileformat2.html,
 * section 1.7. */
#define SHM_FIRST   120         /* the one of the writer; then checkpoint, recovery, readers */
#define SHM_CHECKPOINT 121      /* keeps nobody from writing or reading */
#define SHM_LAST    127
#define SHM_IN_USE  128         /* shared by whoever has it open */
#define FILE_FIRST  0x40000000l /* of the database itself; shared by whoever has it open */

/* at a long list: one look in a hundred missed a line among 400 locks that change */
#define LOOKS 3

struct lock {
	char kind[8]; /* READ, WRITE */
	long pid;
	unsigned major, minor;
	uint64_t inode, first;
};

static bool parse(const char *line, struct lock *ret)
{
	/* a request that waits has "->" behind its number, and does not match */
	return sscanf(line, "%*d: POSIX %*s %7s %ld %x:%x:%" SCNu64 " %" SCNu64, ret->kind,
		      &ret->pid, &ret->major, &ret->minor, &ret->inode, &ret->first) == 6;
}

static bool is_of(const struct lock *lock, const struct stat *st)
{
	return lock->inode == st->st_ino && lock->major == major(st->st_dev) &&
	       lock->minor == minor(st->st_dev);
}

struct search {
	struct stat db, shm;
	long me, owner; /* 0: none */
	bool exclusive;
};

static bool is_wanted(const struct search *search, const struct lock *lock)
{
	bool writes = !strcmp(lock->kind, "WRITE");
	if (lock->pid == search->me || (search->owner && lock->pid == search->owner))
		return false;
	if (is_of(lock, &search->db))
		return writes && lock->first >= FILE_FIRST;
	if (!is_of(lock, &search->shm) || lock->first < SHM_FIRST)
		return false;
	return (writes && lock->first <= SHM_IN_USE && lock->first != SHM_CHECKPOINT) ||
	       (!search->exclusive && lock->first <= SHM_LAST);
}

/* @ret_all: is the list so short that the kernel wrote it at one moment? */
static long look(const struct search *search, bool *ret_all)
{
	char line[256];
	long holder = 0;
	size_t read = 0;
	FILE *file = fopen("/proc/locks", "re");

	while (file && !holder && fgets(line, sizeof(line), file)) {
		struct lock lock;
		read += strlen(line);
		if (parse(line, &lock) && is_wanted(search, &lock))
			holder = lock.pid;
	}
	if (file)
		fclose(file);
	*ret_all = read < (size_t)sysconf(_SC_PAGESIZE) - sizeof(line);
	return holder;
}

long ck_lock_holder(int dirfd, bool exclusive)
{
	struct search search = { .me = (long)getpid(), .exclusive = exclusive };
	long holder = 0;
	bool all = false;

	if (!ck_state_dir_owned(dirfd, &search.owner))
		search.owner = 0;
	if (fstatat(dirfd, CK_DB_NAME, &search.db, AT_SYMLINK_NOFOLLOW) < 0 ||
	    fstatat(dirfd, CK_DB_SHM, &search.shm, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	/* The kernel writes a page at a time. A line is left out between two pages if another one
	 * goes away meanwhile. */
	for (int looks = 0; looks < LOOKS && !holder && !all; looks++)
		holder = look(&search, &all);
	return holder;
}
