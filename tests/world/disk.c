/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crikeepd's disk, at the border to the kernel, where SQLite's own "unix" VFS calls it. Files are
 * real. What is in the way of a call decides kernel.disk:
 *
 *   FULL       what is written finds no space
 *   READ_ONLY  nothing can be written, created or removed
 *   FAILING    some writes are refused by the device
 *   TORN       some writes end in the middle, and the rest finds no space
 *   BLIND      some reads are refused by the device
 *   SLOW       each write takes up to 50 ms, in which crikeepd does nothing else
 *
 * kill -9 in the middle of a write leaves a part of it. A power cut takes any of the writes of the
 * last half a minute away, whole or in part, each for itself: nothing of crikeepd is synced.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <utlist.h>

#include "src/base/limits.h"
#include "tests/world/world.h"

#pragma GCC visibility push(default) /* so that SQLite finds them, too */
int open(const char *path, int flags, ...);
int open64(const char *path, int flags, ...);
int unlink(const char *path);
ssize_t pwrite64(int fd, const void *from, size_t n, off64_t at);
/* by another name: with _FORTIFY_SOURCE, glibc's header has an inline function of that one */
ssize_t read_at(int fd, void *to, size_t n, off64_t at) __asm__("pread64");
int ftruncate64(int fd, off64_t size);
int fdatasync(int fd);
int fsync(int fd);
#pragma GCC visibility pop

#define SECTOR  512u
#define BOOT_ID "/proc/sys/kernel/random/boot_id"
#define DIRTY   (30 * S) /* what is older is on the disk */

static bool is_ours(const char *path) /* sockets lie elsewhere */
{
	return !strncmp(path, kernel.state_dir, strlen(kernel.state_dir));
}

/* ---- files of a moment ----------------------------------------------------------------------- */

static void copy_file(int from_dir, int to_dir, const char *name)
{
	int from = openat(from_dir, name, O_RDONLY | O_CLOEXEC);
	int to = openat(to_dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	char part[65536];
	ssize_t n;
	while ((n = read(from, part, sizeof(part))) > 0)
		if (write(to, part, (size_t)n) != n)
			break;
	if (n != 0)
		world_wrong("the copy of '%s' failed: %s", name, strerror(errno));
	close(from);
	close(to);
}

void disk_copy(const char *from_path, const char *to_path)
{
	const char *const paths[] = { to_path, from_path };
	int to = open(to_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
	    from = open(from_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (int i = 0; i < 2; i++) {
		DIR *dir = opendir(paths[i]);
		for (struct dirent *entry; dir && (entry = readdir(dir));) {
			struct stat st;
			if (fstatat(i ? from : to, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
			    !S_ISREG(st.st_mode))
				continue;
			if (i)
				copy_file(from, to, entry->d_name);
			else
				unlinkat(to, entry->d_name, 0);
		}
		closedir(dir);
	}
	close(to);
	close(from);
}

/* ---- what a power cut may take away ---------------------------------------------------------- */

struct written {
	struct written *prev, *next;
	uint64_t at;
	char name[64];
	off64_t place;
	size_t len, old_len; /* old_len: what was there before, up to the end of the file */
	off64_t size;        /* of the file, before */
	unsigned char bytes[]; /* the new ones, then the old ones */
};
static struct written *dirty;

static void forget(struct written *it)
{
	DL_DELETE(dirty, it);
	free(it);
}

void disk_close(void)
{
	struct written *it, *next;
	DL_FOREACH_SAFE (dirty, it, next)
		forget(it);
}

static void note(int fd, const void *from, size_t n, off64_t at)
{
	char link[64], path[256] = "";
	struct stat st;
	while (dirty && dirty->at + DIRTY < kernel.now)
		forget(dirty);
	struct written *it = calloc(1, sizeof(*it) + 2 * n);
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (readlink(link, path, sizeof(path) - 1) < 0 || fstat(fd, &st) < 0 || !is_ours(path)) {
		free(it);
		return;
	}
	snprintf(it->name, sizeof(it->name), "%s", strrchr(path, '/') + 1);
	it->at = kernel.now;
	it->place = at;
	it->len = n;
	it->size = st.st_size;
	memcpy(it->bytes, from, n);
	ssize_t old = (ssize_t)syscall(SYS_pread64, fd, it->bytes + n, n, at);
	it->old_len = old > 0 ? (size_t)old : 0;
	DL_APPEND(dirty, it);
}

static void put_back(int dir, const struct written *it, bool new, size_t len)
{
	int fd = (int)syscall(SYS_openat, dir, it->name, O_WRONLY | O_CLOEXEC, 0);
	if (fd < 0)
		return; /* it was removed meanwhile */
	syscall(SYS_pwrite64, fd, it->bytes + (new ? 0 : it->len), len, it->place);
	if (!new)
		syscall(SYS_ftruncate, fd, it->size);
	close(fd);
}

void disk_loses_power(const char *dir)
{
	unsigned kept = (unsigned)below(101), lost = 0;
	int to = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct written *it;
	for (it = dirty ? dirty->prev : NULL; it; it = it == dirty ? NULL : it->prev)
		put_back(to, it, false, it->old_len);
	DL_FOREACH (dirty, it) {
		if (!chance(kept))
			lost++;
		else
			put_back(to, it, true,
				 chance(90) ? it->len : below(it->len / SECTOR) * SECTOR);
	}
	trace("power cut: %u recent writes are lost", lost);
	close(to);
	disk_close();
}

/* ---- calls ----------------------------------------------------------------------------------- */

static bool in_the_way(enum disk disk)
{
	return kernel.in_daemon && !kernel.dead && kernel.disk == disk;
}

static int fails(int error)
{
	errno = error;
	return -1;
}

static int boot_id(void)
{
	char text[64];
	int fd = memfd_create("boot_id", MFD_CLOEXEC);
	int n = snprintf(text, sizeof(text), "%08x-0000-4000-8000-000000000000\n", kernel.boots);
	syscall(SYS_pwrite64, fd, text, (size_t)n, 0);
	return fd;
}

static int opens(const char *path, int flags, unsigned mode)
{
	if (kernel.on && !strcmp(path, BOOT_ID))
		return boot_id();
	if (in_the_way(DISK_READ_ONLY) && is_ours(path) &&
	    (flags & (O_WRONLY | O_RDWR | O_CREAT)))
		return fails(EROFS);
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

static unsigned mode_of(int flags, va_list args)
{
	return flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(args, unsigned) : 0;
}

int open(const char *path, int flags, ...)
{
	va_list args;
	va_start(args, flags);
	unsigned mode = mode_of(flags, args);
	va_end(args);
	return opens(path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
	va_list args;
	va_start(args, flags);
	unsigned mode = mode_of(flags, args);
	va_end(args);
	return opens(path, flags | O_LARGEFILE, mode);
}

int unlink(const char *path)
{
	if (in_the_way(DISK_READ_ONLY) && is_ours(path))
		return fails(EROFS);
	return (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}

/* 0: @*n bytes of it are written. Else the error */
static int refuses(size_t *n)
{
	static bool rest; /* of a torn write */
	if (in_the_way(DISK_FULL))
		return ENOSPC;
	if (in_the_way(DISK_READ_ONLY))
		return EROFS;
	if (in_the_way(DISK_FAILING) && chance(30))
		return EIO;
	if (!in_the_way(DISK_TORN) || (!rest && chance(70)))
		return 0;
	if (rest) {
		rest = false;
		return ENOSPC;
	}
	rest = true;
	*n = 1 + below(*n - 1);
	return 0;
}

ssize_t pwrite64(int fd, const void *from, size_t n, off64_t at)
{
	if (kernel_may_die()) { /* in the middle of it */
		syscall(SYS_pwrite64, fd, from, below(n / SECTOR + 1) * SECTOR, at);
		kernel_die();
	}
	int error = refuses(&n);
	if (error)
		return fails(error);
	if (in_the_way(DISK_SLOW))
		kernel.now += below(50 * MS);
	if (kernel.journal && kernel.in_daemon && !kernel.dead)
		note(fd, from, n, at);
	return (ssize_t)syscall(SYS_pwrite64, fd, from, n, at);
}

ssize_t read_at(int fd, void *to, size_t n, off64_t at)
{
	if (in_the_way(DISK_BLIND) && chance(20))
		return fails(EIO);
	return (ssize_t)syscall(SYS_pread64, fd, to, n, at);
}

int ftruncate64(int fd, off64_t size)
{
	if (in_the_way(DISK_READ_ONLY))
		return fails(EROFS);
	return (int)syscall(SYS_ftruncate, fd, size);
}

int fdatasync(int fd)
{
	return kernel.on ? 0 : (int)syscall(SYS_fdatasync, fd);
}

int fsync(int fd)
{
	return kernel.on ? 0 : (int)syscall(SYS_fsync, fd);
}
