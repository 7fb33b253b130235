/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The launcher and its parent use a socket of packets: a request is a number and a descriptor, the
 * answer is a pid or an errno. The launcher keeps all privileges, because plugins need them. So it
 * holds nothing of the daemon's but the list, and checks everything it is sent. It ends with the
 * socket, or with the thread that forked it.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/daemon/nri/launcher.h"

#define PLUGIN_FD  3 /* of what is started: its connection */
#define CHANNEL_FD 3 /* of the launcher */

struct request {
	uint64_t number; /* tells a late answer from the answer to the next request */
	uint64_t until;  /* ns of CLOCK_BOOTTIME, after which nobody waits for it */
	uint32_t item;
	uint32_t unused;
};

struct answer {
	uint64_t number;
	int32_t pid; /* 0: it failed */
	int32_t error;
};

struct ck_launcher {
	int fd;
	pid_t pid;
	uint64_t number;
};

/* true: readable before @until */
static bool wait_readable(int fd, uint64_t until)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
	for (;;) {
		uint64_t now = ck_clock_ns(CLOCK_BOOTTIME);
		if (now >= until)
			return false;
		int n = poll(&poll_fd, 1, (int)((until - now) / CK_NS_PER_MS + 1));
		if (n > 0 || (n < 0 && errno != EINTR))
			return n > 0;
	}
}

/* ---- a packet with a descriptor -------------------------------------------------------------- */

union control {
	char room[CMSG_SPACE(sizeof(int))];
	struct cmsghdr align;
};

static int send_request(int channel, const struct request *request, int fd)
{
	union control control = { 0 };
	struct iovec bytes = { (void *)request, sizeof(*request) };
	struct msghdr message = { .msg_iov = &bytes,
				  .msg_iovlen = 1,
				  .msg_control = control.room,
				  .msg_controllen = sizeof(control.room) };
	struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
	rights->cmsg_level = SOL_SOCKET;
	rights->cmsg_type = SCM_RIGHTS;
	rights->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(rights), &fd, sizeof(fd));
	return sendmsg(channel, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)sizeof(*request)
		       ? 0
		       : -errno;
}

/* 1: a request, and *ret_fd is set or -1. 0: the end of the channel. -1: nothing, or no valid
 * request */
static int recv_request(int channel, struct request *ret_request, int *ret_fd)
{
	union control control = { 0 };
	struct iovec bytes = { ret_request, sizeof(*ret_request) };
	struct msghdr message = { .msg_iov = &bytes,
				  .msg_iovlen = 1,
				  .msg_control = control.room,
				  .msg_controllen = sizeof(control.room) };
	ssize_t n = recvmsg(channel, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	*ret_fd = -1;
	struct cmsghdr *rights = n < 0 ? NULL : CMSG_FIRSTHDR(&message);
	if (rights && rights->cmsg_level == SOL_SOCKET && rights->cmsg_type == SCM_RIGHTS &&
	    rights->cmsg_len == CMSG_LEN(sizeof(*ret_fd)))
		memcpy(ret_fd, CMSG_DATA(rights), sizeof(*ret_fd));
	if (n <= 0)
		return n == 0 ? 0 : errno == EAGAIN || errno == EINTR ? -1 : 0;
	return n == (ssize_t)sizeof(*ret_request) ? 1 : -1;
}

/* ---- the launcher ---------------------------------------------------------------------------- */

struct launcher_process {
	const struct ck_launch_item *items;
	size_t n;
	int signals;
	sigset_t before; /* the mask of the daemon as it was started */
	pid_t *pids;     /* plugins that were started and have not ended */
	size_t pids_n;
};

/* In the new process, between fork and exec. Its errno goes to @report, which exec closes. */
static void exec_item(const struct launcher_process *l, const struct ck_launch_item *item, int fd,
		      int report)
{
	struct sigaction normal = { .sa_handler = SIG_DFL };
	prctl(PR_SET_PDEATHSIG, (long)SIGTERM, 0L, 0L, 0L);
	setsid(); /* a terminal's signals must not reach it */
	for (int signal = 1; signal < NSIG; signal++)
		sigaction(signal, &normal, NULL);
	sigprocmask(SIG_SETMASK, &l->before, NULL);
	report = fcntl(report, F_DUPFD_CLOEXEC, PLUGIN_FD + 1);
	int nothing = item->env ? open("/dev/null", O_RDWR | O_CLOEXEC) : STDIN_FILENO;
	if (item->env && nothing >= 0 &&
	    (dup2(nothing, STDOUT_FILENO) < 0 || dup2(nothing, STDERR_FILENO) < 0))
		nothing = -1;
	/* in place of the launcher's own channel */
	if (report >= 0 && nothing >= 0 && dup2(fd, PLUGIN_FD) >= 0)
		execve(item->argv[0], item->argv, item->env ? item->env : environ);
	int e = errno;
	if (write(report, &e, sizeof(e)) < 0)
		_exit(126);
	_exit(127);
}

/* 0 and *ret_pid, or an errno */
static int start(struct launcher_process *l, const struct ck_launch_item *item, int fd,
		 uint64_t until, pid_t *ret_pid)
{
	int pipe_fds[2], e = 0;
	pid_t *pids = ck_realloc(l->pids, (l->pids_n + 1) * sizeof(*pids));
	if (!pids)
		return ENOMEM;
	l->pids = pids;
	if (pipe2(pipe_fds, O_CLOEXEC) < 0)
		return errno;
	CK_AUTO_CLOSE int report = pipe_fds[0];
	pid_t pid = fork();
	if (pid < 0)
		e = errno;
	if (pid == 0)
		exec_item(l, item, fd, pipe_fds[1]);
	close(pipe_fds[1]);
	if (pid < 0)
		return e;
	if (!wait_readable(report, until)) { /* the program may be on a file system that hangs */
		e = ETIMEDOUT;
		kill(pid, SIGKILL);
	} else if (read(report, &e, sizeof(e)) != (ssize_t)sizeof(e)) {
		e = 0; /* exec closed it */
	}
	if (e == 0)
		l->pids[l->pids_n++] = *ret_pid = pid;
	return e; /* a failed process is reaped like any other */
}

/* true: the channel has ended */
static bool serve(struct launcher_process *l)
{
	struct request request;
	CK_AUTO_CLOSE int fd = -1;
	int r = recv_request(CHANNEL_FD, &request, &fd);
	if (r <= 0)
		return r == 0;
	pid_t pid = 0;
	int e = fd < 0 || request.item >= l->n                 ? EBADR
		: ck_clock_ns(CLOCK_BOOTTIME) >= request.until ? ETIMEDOUT
							       : 0;
	if (e == 0)
		e = start(l, &l->items[request.item], fd, request.until, &pid);
	struct answer answer = { .number = request.number, .pid = e ? 0 : pid, .error = e };
	send(CHANNEL_FD, &answer, sizeof(answer), MSG_NOSIGNAL | MSG_DONTWAIT);
	return false;
}

static void reap(struct launcher_process *l)
{
	pid_t pid;
	while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
		for (size_t i = 0; i < l->pids_n; i++)
			if (l->pids[i] == pid)
				l->pids[i--] = l->pids[--l->pids_n];
}

/* true: SIGTERM has come */
static bool read_signals(struct launcher_process *l)
{
	struct signalfd_siginfo info;
	bool end = false;
	while (read(l->signals, &info, sizeof(info)) == (ssize_t)sizeof(info))
		end = end || info.ssi_signo == SIGTERM;
	reap(l);
	return end;
}

static int launcher_main(struct launcher_process *l)
{
	struct pollfd fds[] = { { .fd = CHANNEL_FD, .events = POLLIN },
				{ .fd = l->signals, .events = POLLIN } };
	bool end = false;
	while (!end) {
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			break;
		if (fds[1].revents)
			end = read_signals(l);
		else if (fds[0].revents)
			end = serve(l);
	}
	for (size_t i = 0; i < l->pids_n; i++)
		kill(l->pids[i], SIGTERM);
	return 0;
}

/* The launcher's process, with what the fork copied. Returns its exit status. */
static int launcher_begin(const struct ck_launch_item *items, size_t n, int channel, pid_t parent)
{
	static const char *const of_the_daemon[] = { "NOTIFY_SOCKET", "LISTEN_FDS",
						     "LISTEN_PID",    "LISTEN_FDNAMES",
						     "WATCHDOG_USEC", "WATCHDOG_PID" };
	struct launcher_process l = { .items = items, .n = n };
	sigset_t handled;
	sigemptyset(&handled);
	sigaddset(&handled, SIGTERM);
	sigaddset(&handled, SIGCHLD);
	sigprocmask(SIG_SETMASK, &handled, &l.before);
	signal(SIGINT, SIG_IGN); /* from a terminal: the daemon decides */
	signal(SIGHUP, SIG_IGN);
	prctl(PR_SET_NAME, "crikeepd-launch", 0L, 0L, 0L);
	prctl(PR_SET_PDEATHSIG, (long)SIGTERM, 0L, 0L, 0L);
	if (getppid() != parent) /* it had died before its death could be signalled */
		return 0;
	for (size_t i = 0; i < CK_COUNT(of_the_daemon); i++)
		unsetenv(of_the_daemon[i]);
	int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (nothing >= 0)
		dup2(nothing, STDIN_FILENO);
	if (channel != CHANNEL_FD && dup3(channel, CHANNEL_FD, O_CLOEXEC) < 0)
		return 1;
	syscall(SYS_close_range, CHANNEL_FD + 1, ~0U, 0);
	l.signals = signalfd(-1, &handled, SFD_NONBLOCK | SFD_CLOEXEC);
	return l.signals < 0 ? 1 : launcher_main(&l);
}

/* ---- the daemon's side ----------------------------------------------------------------------- */

int ck_launcher_start(const struct ck_launch_item *items, size_t n,
		      struct ck_launcher **ret_launcher, struct ck_error *err)
{
	int fds[2];
	CK_AUTO(ck_launcher) *launcher = CK_NEW(struct ck_launcher);
	if (!launcher)
		return ck_nomem(err);
	launcher->fd = -1;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
		return ck_fail_errno(err, CK_EIO, errno, "the launcher's socket");
	pid_t parent = getpid();
	launcher->fd = fds[0];
	launcher->pid = fork();
	if (launcher->pid == 0)
		_exit(launcher_begin(items, n, fds[1], parent));
	close(fds[1]);
	if (launcher->pid < 0)
		return ck_fail_errno(err, CK_EIO, errno, "fork the launcher");
	*ret_launcher = CK_TAKE(launcher);
	return 0;
}

pid_t ck_launcher_run(struct ck_launcher *launcher, unsigned i, int fd, struct ck_error *err)
{
	struct request request = { .number = ++launcher->number,
				   .until = ck_clock_ns(CLOCK_BOOTTIME) + CK_LAUNCH_WAIT,
				   .item = i };
	struct answer answer = { 0 };
	int r = send_request(launcher->fd, &request, fd);
	close(fd);
	if (r < 0)
		return ck_fail_errno(err, CK_EIO, -r, "ask the launcher");
	do { /* late answers to earlier requests are skipped */
		if (!wait_readable(launcher->fd, request.until))
			return ck_fail(err, CK_EIO, "the launcher does not answer");
		ssize_t n = recv(launcher->fd, &answer, sizeof(answer), MSG_DONTWAIT);
		if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
			return ck_fail(err, CK_EIO, "the launcher has ended");
		if (n != (ssize_t)sizeof(answer))
			answer.number = 0;
	} while (answer.number != request.number);
	if (answer.error == EBADR)
		return ck_fail(err, CK_EINVAL, "the launcher has no item %u", i);
	if (answer.error)
		return ck_fail_errno(err, CK_EIO, answer.error, "start item %u", i);
	return answer.pid;
}

void ck_launcher_free(struct ck_launcher *launcher)
{
	if (!launcher)
		return;
	if (launcher->fd >= 0)
		close(launcher->fd);
	while (launcher->pid > 0 && waitpid(launcher->pid, NULL, 0) < 0 && errno == EINTR)
		;
	free(launcher);
}
