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

long ck_lock_holder(int dirfd, bool exclusive)
{
	char line[256];
	struct stat db, shm;
	long holder = 0, owner = 0, me = (long)getpid();
	bool owned = ck_state_dir_owned(dirfd, &owner);

	if (fstatat(dirfd, CK_DB_NAME, &db, AT_SYMLINK_NOFOLLOW) < 0 ||
	    fstatat(dirfd, CK_DB_SHM, &shm, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	FILE *file = fopen("/proc/locks", "re");
	while (file && !holder && fgets(line, sizeof(line), file)) {
		struct lock lock;
		if (!parse(line, &lock) || lock.pid == me || (owned && lock.pid == owner))
			continue;
		bool writes = !strcmp(lock.kind, "WRITE");
		if ((is_of(&lock, &db) && writes && lock.first >= FILE_FIRST) ||
		    (is_of(&lock, &shm) && writes && lock.first >= SHM_FIRST &&
		     lock.first <= SHM_IN_USE && lock.first != SHM_CHECKPOINT) ||
		    (is_of(&lock, &shm) && !exclusive && lock.first >= SHM_FIRST &&
		     lock.first <= SHM_LAST))
			holder = lock.pid;
	}
	if (file)
		fclose(file);
	return holder;
}
