/* SPDX-License-Identifier: Apache-2.0 */
/* Unix sockets by path: connect and listen without waiting; a failure has its cause in words. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/rpc/address.h"

int ck_unix_address(const char *path, struct sockaddr_un *ret_address, struct ck_error *err)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	size_t len = strlen(path);
	if (len == 0 || len >= sizeof(address.sun_path))
		return ck_fail(err, CK_EINVAL,
			       "'%s': the path of a socket must have 1 to %zu bytes", path,
			       sizeof(address.sun_path) - 1);
	memcpy(address.sun_path, path, len);
	*ret_address = address;
	return 0;
}

/* what an error of connect(2) means here, in words that help to find the cause */
static const char *meaning(const char *path, int e)
{
	struct stat st;
	if (e == ENOENT)
		return "no such file";
	if (stat(path, &st) == 0 && !S_ISSOCK(st.st_mode))
		return "not a socket";
	if (e == ECONNREFUSED)
		return "no process listens there";
	if (e == EAGAIN)
		return "its connection queue is full";
	return strerror(e);
}

int ck_unix_connect(const char *path, struct ck_error *err)
{
	struct sockaddr_un address;
	CK_AUTO_CLOSE int fd = -1;
	int r = ck_unix_address(path, &address, err);
	if (r < 0)
		return r;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return ck_fail_errno(err, CK_EIO, errno, "make a socket");
	if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0) {
		int e = errno;
		r = ck_fail(err, CK_EIO, "unix://%s: %s", path, meaning(path, e));
		if (err)
			err->sys = e;
		return r;
	}
	return CK_TAKE_FD(fd);
}

/* an error if a process listens at this path already, or if it is not a socket */
static int path_is_free(const char *path, struct ck_error *err)
{
	struct stat st;
	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0
				       : ck_fail_errno(err, CK_EIO, errno, "look at '%s'", path);
	if (!S_ISSOCK(st.st_mode))
		return ck_fail(err, CK_EIO, "'%s' exists and is not a socket", path);
	int fd = ck_unix_connect(path, NULL);
	if (fd < 0)
		return 0;
	close(fd);
	return ck_fail(err, CK_EIO, "'%s': another process listens there", path);
}

int ck_unix_listen(const char *path, mode_t mode, gid_t gid, struct ck_error *err)
{
	struct sockaddr_un address;
	char beside[sizeof(address.sun_path)];
	CK_AUTO_CLOSE int fd = -1;
	int r = path_is_free(path, err);
	if (r < 0)
		return r;
	const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	int n = snprintf(beside, sizeof(beside), "%.*s.%s.new", (int)(name - path), path, name);
	if (n < 0 || (size_t)n >= sizeof(beside))
		return ck_fail(err, CK_EINVAL,
			       "'%s': the path of a socket must have 1 to %zu bytes", path,
			       sizeof(beside) - 6);
	r = ck_unix_address(beside, &address, err);
	if (r < 0)
		return r;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return ck_fail_errno(err, CK_EIO, errno, "make a socket");
	unlink(beside);
	/* nobody can connect before mode and group are set: the socket has another name yet */
	if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
		return ck_fail_errno(err, CK_EIO, errno, "bind '%s'", path);
	if (chmod(beside, mode) < 0 || (gid != (gid_t)-1 && chown(beside, (uid_t)-1, gid) < 0) ||
	    listen(fd, SOMAXCONN) < 0 || rename(beside, path) < 0) {
		r = ck_fail_errno(err, CK_EIO, errno, "listen on '%s'", path);
		unlink(beside);
		return r;
	}
	return CK_TAKE_FD(fd);
}
