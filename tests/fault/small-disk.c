/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fault/small-disk.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "tests/unit/harness.h"

void small_disk_mount(const char *dir)
{
	static bool alone;
	if (!alone &&
	    (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)) {
		print_message("# no mount namespace: %s\n", strerror(errno));
		skip();
	}
	alone = true;
	assert_true(mkdir(dir, 0700) == 0 || errno == EEXIST);
	if (mount("none", dir, "tmpfs", 0, "size=1m,mode=700") < 0) {
		print_message("# no tmpfs: %s\n", strerror(errno));
		skip();
	}
}

static void filler(const char *dir, char *path, size_t size)
{
	assert_true((size_t)snprintf(path, size, "%s/filler", dir) < size);
}

void small_disk_fill(const char *dir)
{
	char path[512], block[4096] = { 0 };
	filler(dir, path, sizeof(path));
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	while (write(fd, block, sizeof(block)) > 0)
		;
	while (write(fd, block, 1) > 0)
		;
	close(fd);
}

void small_disk_make_space(const char *dir)
{
	char path[512];
	filler(dir, path, sizeof(path));
	assert_int_equal(unlink(path), 0);
}
