/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two processes share a socket of packets. crikeep-sim sends one, "ready PATH" or "error TEXT".
 * crikeepd sends nothing: the end of its side tells crikeep-sim that it is gone.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/daemon/simulator.h"

#define PROGRAM    "crikeep-sim"
#define PARENT_FD  3 /* of the new process */
#define EXIT_USAGE 2
#define PACKET_MAX (CK_PATH_MAX + 8u)

/* ---- where it is ----------------------------------------------------------------------------- */

/* true: only root and @trusted may write to it */
static bool is_safe(const struct stat *st, uid_t trusted)
{
	return (st->st_uid == 0 || st->st_uid == trusted) && !(st->st_mode & (S_IWGRP | S_IWOTH));
}

int ck_simulator_find(const char *const *directories, const uid_t *trusted, struct ck_error *err)
{
	for (size_t i = 0; directories[i]; i++) {
		struct stat in, st;
		CK_AUTO_CLOSE int dir = open(directories[i], O_PATH | O_DIRECTORY | O_CLOEXEC);
		CK_AUTO_CLOSE int fd = dir < 0 ? -1 : openat(dir, PROGRAM, O_PATH | O_CLOEXEC);
		if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
			continue;
		if (fd < 0 || fstat(fd, &st) < 0 || fstat(dir, &in) < 0)
			return ck_fail_errno(err, CK_EIO, errno, "simulator: '%s/" PROGRAM "'",
					     directories[i]);
		if (trusted && !(is_safe(&in, *trusted) && is_safe(&st, *trusted)))
			return ck_fail(err, CK_EIO,
				       "simulator: '%s/" PROGRAM "' is not run as root: others may "
				       "write it or its directory",
				       directories[i]);
		return CK_TAKE_FD(fd);
	}
	return ck_fail(err, CK_EIO,
		       "simulator: there is no '" CK_PKGLIBEXECDIR "/" PROGRAM "', which is "
		       "installed with crikeepd");
}

/*
 * Root runs no program that an unprivileged user controls. Whoever owns the directory of crikeepd's
 * own executable is trusted: that user could replace crikeepd itself, as the owner of a build
 * directory can.
 */
static int find_program(struct ck_error *err)
{
	char own[CK_PATH_MAX];
	const char *directories[] = { own, CK_PKGLIBEXECDIR, NULL };
	struct stat st;
	ssize_t n = readlink("/proc/self/exe", own, sizeof(own) - 1);
	own[n < 0 ? 0 : n] = '\0';
	char *slash = strrchr(own, '/');
	if (slash)
		*slash = '\0';
	uid_t owner = slash && stat(own, &st) == 0 ? st.st_uid : 0;
	return ck_simulator_find(slash ? directories : directories + 1,
				 geteuid() == 0 ? &owner : NULL, err);
}

/* ---- its process ----------------------------------------------------------------------------- */

/* In the new process. It keeps the standard descriptors and its end of the socket. */
static void exec_program(int program, int fd, const char *const *argv)
{
	char text[CK_ERROR_TEXT];
	/* move both away first: either may have the number 3 */
	program = fcntl(program, F_DUPFD_CLOEXEC, PARENT_FD + 1);
	fd = fcntl(fd, F_DUPFD_CLOEXEC, PARENT_FD + 1);
	if (program >= 0 && dup2(fd, PARENT_FD) >= 0) {
		close_range(PARENT_FD + 1, ~0U, CLOSE_RANGE_CLOEXEC);
		fexecve(program, (char *const *)(uintptr_t)argv, environ);
	}
	int n = snprintf(text, sizeof(text), "error simulator: " PROGRAM ": %s", strerror(errno));
	if (send(fd, text, (size_t)n, MSG_NOSIGNAL) < 0)
		_exit(126);
	_exit(127);
}

/* its packet, as a text. 0: it has ended without one; < 0: it does not answer */
static ssize_t receive(int fd, char *text, size_t size)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
	int n;
	do
		n = poll(&poll_fd, 1, (int)(CK_SIMULATOR_WAIT / CK_NS_PER_MS));
	while (n < 0 && errno == EINTR);
	ssize_t len = n > 0 ? recv(fd, text, size - 1, 0) : -1;
	text[len < 0 ? 0 : len] = '\0';
	return len;
}

static int wait_for(pid_t pid)
{
	int status = 0;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

/* run - until it is ready. @ret_text (PACKET_MAX bytes): the path of "ready PATH" */
static int run(const char *const *argv, struct ck_simulator *ret_simulator, char *ret_text,
	       struct ck_error *err)
{
	static const char ready[] = "ready ", error[] = "error ";
	char text[PACKET_MAX];
	int fds[2];
	CK_AUTO_CLOSE int program = find_program(err);
	if (program < 0)
		return program;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
		return ck_fail_errno(err, CK_EIO, errno, "simulator: make its socket");
	CK_AUTO_CLOSE int fd = fds[0];
	pid_t pid = fork();
	if (pid == 0)
		exec_program(program, fds[1], argv);
	close(fds[1]);
	if (pid < 0)
		return ck_fail_errno(err, CK_EIO, errno, "simulator: fork");
	ssize_t len = receive(fd, text, sizeof(text));
	if (len > 0 && strncmp(text, ready, strlen(ready)) == 0) {
		strcpy(ret_text, text + strlen(ready));
		*ret_simulator = (struct ck_simulator){ .pid = pid, .fd = CK_TAKE_FD(fd) };
		return 0;
	}
	if (len < 0)
		kill(pid, SIGKILL);
	int status = wait_for(pid);
	if (len > 0 && strncmp(text, error, strlen(error)) == 0)
		return ck_fail(err, WEXITSTATUS(status) == EXIT_USAGE ? CK_EINVAL : CK_EIO, "%s",
			       text + strlen(error));
	if (len < 0)
		return ck_fail(err, CK_EIO, "simulator: " PROGRAM " does not answer");
	return ck_fail(err, CK_EIO, "simulator: " PROGRAM " ended at once (wait status %d)",
		       status);
}

int ck_simulator_check(const char *parameters, struct ck_error *err)
{
	const char *const argv[] = { PROGRAM, "--check", "--parent=3", "--", parameters, NULL };
	struct ck_simulator simulator = { .fd = -1 };
	char text[PACKET_MAX];
	int r = run(argv, &simulator, text, err);
	if (r < 0)
		return r;
	close(simulator.fd);
	wait_for(simulator.pid);
	return 0;
}

int ck_simulator_start(const char *parameters, const char *path, struct ck_simulator *ret_simulator,
		       char **ret_path, struct ck_error *err)
{
	char listen[CK_PATH_MAX + 16], text[PACKET_MAX];
	snprintf(listen, sizeof(listen), "--listen=%s", path);
	const char *const argv[] = { PROGRAM, "--parent=3", listen, "--", parameters, NULL };
	struct ck_simulator simulator = { .fd = -1 };
	int r = run(argv, &simulator, text, err);
	if (r < 0)
		return r;
	*ret_path = ck_strdup(text);
	if (!*ret_path) {
		close(simulator.fd); /* it ends */
		wait_for(simulator.pid);
		return ck_nomem(err);
	}
	*ret_simulator = simulator;
	return 0;
}
