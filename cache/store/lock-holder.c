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

#include "cache/store/file-locks.h"
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

struct search {
	struct stat db, shm;
	unsigned major, minor; /* of their file system */
	long me, owner; /* 0: none */
	bool exclusive;
};

/* A subvolume of btrfs has a device of its own in st_dev. /proc/locks prints that of the file
 * system, and so does the list of mounts. */
static void find_device(int dirfd, struct search *search)
{
	char path[64], line[4096];
	int mount = -1, id;
	unsigned major, minor;

	search->major = major(search->db.st_dev);
	search->minor = minor(search->db.st_dev);
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", dirfd);
	FILE *file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		sscanf(line, "mnt_id: %d", &mount);
	if (file)
		fclose(file);
	file = fopen("/proc/self/mountinfo", "re");
	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "%d %*d %u:%u", &id, &major, &minor) == 3 && id == mount) {
			search->major = major;
			search->minor = minor;
		}
	if (file)
		fclose(file);
}

static bool is_wanted(const struct ck_file_lock *lock, void *userdata)
{
	const struct search *search = userdata;
	bool writes = !strcmp(lock->kind, "WRITE");
	if (lock->waits || strcmp(lock->how, "POSIX") != 0)
		return false;
	if (lock->pid == search->me || (search->owner && lock->pid == search->owner))
		return false;
	if (lock->major != search->major || lock->minor != search->minor)
		return false;
	if (lock->inode == search->db.st_ino)
		return writes && lock->first >= FILE_FIRST;
	if (lock->inode != search->shm.st_ino || lock->first < SHM_FIRST)
		return false;
	return (writes && lock->first <= SHM_IN_USE && lock->first != SHM_CHECKPOINT) ||
	       (!search->exclusive && lock->first <= SHM_LAST);
}

long ck_lock_holder(int dirfd, bool exclusive)
{
	struct search search = { .me = (long)getpid(), .exclusive = exclusive };
	struct ck_file_lock lock;
	bool found = false, all = false;

	if (!ck_state_dir_owned(dirfd, &search.owner))
		search.owner = 0;
	if (fstatat(dirfd, CK_DB_NAME, &search.db, AT_SYMLINK_NOFOLLOW) < 0 ||
	    fstatat(dirfd, CK_DB_SHM, &search.shm, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	find_device(dirfd, &search);
	/* A line is left out between two reads if another one goes away meanwhile. */
	for (int looks = 0; looks < LOOKS && !found && !all; looks++)
		found = ck_file_locks_find(is_wanted, &search, &lock, &all);
	return found ? lock.pid : 0;
}
