/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What systemd does for a service with Type=notify, Restart=always, FileDescriptorStoreMax= and
 * sockets: it listens, starts the program, starts it again whenever it ends, and keeps the
 * descriptors that the program gives it.
 *
 * usage: service-manager LOG MAX [NAME=PATH]... -- PROGRAM ARGUMENT...
 *
 *   MAX      how many descriptors it keeps
 *   SIGUSR1  restart: SIGTERM to the program, and its next life
 *   SIGTERM  stop: SIGTERM to the program, and the end of both, with its exit status
 *
 * Each event is a line of LOG, with the milliseconds since some time: "12 start PID", "14 ready",
 * "20 stored 1", "30 stop", "31 end STATUS", "31 closed 0", "40 full".
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { KEPT = 64, FIRST = 3, SIGNALS = 0, NOTIFY = 1, STORE = 2 };

struct kept {
	int fd;
	char name[64];
};

static struct kept listening[8], store[KEPT];
static int listening_n, store_n, store_max, log_fd;
static pid_t program;
static bool stopping;

static void die(const char *what)
{
	perror(what);
	exit(99);
}

__attribute__((format(printf, 1, 2))) static void say(const char *fmt, ...)
{
	char line[256];
	struct timespec now;
	va_list args;
	clock_gettime(CLOCK_MONOTONIC, &now);
	int n = snprintf(line, sizeof(line), "%lld ",
			 (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000);
	va_start(args, fmt);
	n += vsnprintf(line + n, sizeof(line) - (size_t)n - 1, fmt, args);
	va_end(args);
	line[n++] = '\n';
	if (write(log_fd, line, (size_t)n) != n)
		die("log");
}

static int bound(int type, const char *path)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
	snprintf(at.sun_path, sizeof(at.sun_path), "%s", path);
	if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0)
		die(path);
	return fd;
}

static int notify_socket(const char *log)
{
	char path[100];
	snprintf(path, sizeof(path), "%s.notify", log);
	unlink(path);
	setenv("NOTIFY_SOCKET", path, 1);
	return bound(SOCK_DGRAM, path);
}

/* descriptors from FIRST on, in the order of the names */
static void pass(void)
{
	char number[32], names[KEPT * 80] = "";
	int n = 0, moved[KEPT + 8];
	for (int i = 0; i < listening_n + store_n; i++) {
		struct kept *kept = i < listening_n ? &listening[i] : &store[i - listening_n];
		if (n)
			strcat(names, ":");
		strcat(names, kept->name);
		moved[n++] = fcntl(kept->fd, F_DUPFD_CLOEXEC, FIRST + KEPT + 8);
	}
	for (int i = 0; i < n; i++)
		if (dup2(moved[i], FIRST + i) < 0)
			die("pass descriptors");
	snprintf(number, sizeof(number), "%d", n);
	setenv("LISTEN_FDS", number, 1);
	snprintf(number, sizeof(number), "%d", (int)getpid());
	setenv("LISTEN_PID", number, 1);
	setenv("LISTEN_FDNAMES", names, 1);
}

static void start(char **argv)
{
	pid_t parent = getpid();
	program = fork();
	if (program < 0)
		die("fork");
	if (program > 0) {
		say("start %d", (int)program);
		return;
	}
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
		_exit(126);
	pass();
	execv(argv[0], argv);
	_exit(127);
}

static void drop(int i)
{
	close(store[i].fd);
	store[i] = store[--store_n];
	say("closed %d", store_n);
}

/* the value of @key in lines of KEY=VALUE */
static bool says(const char *text, const char *key, char *value, size_t size)
{
	size_t len = strlen(key);
	for (const char *line = text; line && *line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, key, len) != 0 || line[len] != '=')
			continue;
		snprintf(value, size, "%.*s", (int)strcspn(line + len + 1, "\n"), line + len + 1);
		return true;
	}
	return false;
}

static void notified(int fd)
{
	char text[4096], name[64] = "stored", value[64];
	union {
		char room[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec bytes = { text, sizeof(text) - 1 };
	struct msghdr message = { .msg_iov = &bytes,
				  .msg_iovlen = 1,
				  .msg_control = control.room,
				  .msg_controllen = sizeof(control.room) };
	ssize_t n = recvmsg(fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	int got = -1;
	if (n < 0)
		return;
	text[n] = '\0';
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c))
		if (c->cmsg_type == SCM_RIGHTS)
			memcpy(&got, CMSG_DATA(c), sizeof(got));
	if (says(text, "READY", value, sizeof(value)))
		say("ready");
	says(text, "FDNAME", name, sizeof(name));
	if (got >= 0 && says(text, "FDSTORE", value, sizeof(value)) && store_n < store_max) {
		store[store_n].fd = got;
		strcpy(store[store_n++].name, name);
		say("stored %d", store_n);
	} else if (got >= 0) {
		close(got);
		say("full");
	}
}

static void signalled(int fd, char **argv)
{
	struct signalfd_siginfo info;
	int status;
	if (read(fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return;
	if (info.ssi_signo == SIGUSR1 || info.ssi_signo == SIGTERM) {
		stopping = info.ssi_signo == SIGTERM;
		say("stop");
		kill(program, SIGTERM);
		return;
	}
	if (waitpid(program, &status, WNOHANG) != program)
		return;
	int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	say("end %d", code);
	if (stopping)
		exit(code);
	if (code && code != 128 + SIGKILL)
		poll(NULL, 0, 100); /* it does not even start */
	start(argv);
}

static int signals(void)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC);
}

int main(int argc, char **argv)
{
	int i = 3;
	if (argc < 5)
		return 2;
	log_fd = open(argv[1], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	store_max = atoi(argv[2]);
	if (log_fd < 0 || store_max > KEPT)
		die(argv[1]);
	for (; i < argc - 1 && strcmp(argv[i], "--") != 0; i++) {
		struct kept *kept = &listening[listening_n++];
		size_t len = strcspn(argv[i], "=");
		snprintf(kept->name, sizeof(kept->name), "%.*s", (int)len, argv[i]);
		kept->fd = bound(SOCK_STREAM, argv[i] + len + 1);
		if (listen(kept->fd, 4096) < 0)
			die(argv[i]);
	}
	struct pollfd fds[STORE + KEPT] = { [SIGNALS] = { .fd = signals(), .events = POLLIN },
					    [NOTIFY] = { .fd = notify_socket(argv[1]),
							 .events = POLLIN } };
	argv += i + 1;
	start(argv);
	for (;;) {
		int stored = store_n;
		for (i = 0; i < stored; i++) /* only for its end */
			fds[STORE + i] = (struct pollfd){ .fd = store[i].fd };
		if (poll(fds, STORE + (nfds_t)stored, -1) < 0)
			continue;
		for (i = stored - 1; i >= 0; i--)
			if (fds[STORE + i].revents)
				drop(i);
		/* before the end of the program that has sent it, as systemd does */
		if (fds[NOTIFY].revents)
			notified(fds[NOTIFY].fd);
		else if (fds[SIGNALS].revents)
			signalled(fds[SIGNALS].fd, argv);
	}
}
