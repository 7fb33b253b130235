/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/mem.h"
#include "src/cli/output/pager.h"

#define COLUMNS_DEFAULT 80u

static const int fatal[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM };

static struct {
	pid_t pid;   /* 0: there is none */
	int errors;  /* the standard error that was there before; -1: it is still there */
	size_t columns;
} pager = { .errors = -1 };

static void await(void)
{
	/* NOLINTNEXTLINE(bugprone-signal-handler,cert-sig30-c): errno may be read in a handler */
	while (waitpid(pager.pid, NULL, 0) < 0 && errno == EINTR)
		;
}

/* ^C is for the pager, too, which may go on. Two programs must not read from one terminal, so it is
 * waited for. */
static void on_fatal(int number)
{
	close(STDOUT_FILENO);
	if (pager.errors >= 0)
		dup2(pager.errors, STDERR_FILENO);
	await();
	signal(number, SIG_DFL);
	raise(number);
}

static const char *program(void)
{
	const char *own = getenv("CRIKEEP_PAGER"), *all = getenv("PAGER");
	return own ? own : all ? all : "less";
}

/* A plain name is not given to a shell, which would find too late that there is no such program. */
static bool needs_shell(const char *command)
{
	return strpbrk(command, " \t\n|&;<>()$`\\\"'*?[#~=%") != NULL;
}

static void set_default(const char *name, const char *value)
{
	setenv(name, value, 0);
}

/* in the child, which says on @told if there is no such program */
static _Noreturn void run_pager(const char *command, int in, int told)
{
	sigset_t none;
	dup2(in, STDIN_FILENO);
	signal(SIGPIPE, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	/* quit if it fits; colours; leave it on the terminal */
	set_default("LESS", "FRX");
	/* crikeep mostly runs as root, perhaps for somebody who may run nothing else */
	set_default("LESSSECURE", "1");
	if (needs_shell(command))
		execlp("sh", "sh", "-c", command, (char *)NULL);
	else
		execlp(command, command, (char *)NULL);
	(void)!write(told, "", 1);
	_exit(1);
}

/* the pipe to the pager, or -1 */
static int run(const char *command)
{
	int in[2] = { -1, -1 }, told[2] = { -1, -1 };
	char failed;
	pid_t pid = -1;
	if (pipe2(in, O_CLOEXEC) == 0 && pipe2(told, O_CLOEXEC) == 0) {
		fflush(stdout);
		pid = fork();
	}
	if (pid == 0)
		run_pager(command, in[0], told[1]);
	close(in[0]);
	close(told[1]);
	/* one byte if it failed; the end if it runs */
	if (pid > 0 && read(told[0], &failed, 1) != 0) {
		waitpid(pid, NULL, 0);
		pid = -1;
	}
	close(told[0]);
	if (pid > 0) {
		pager.pid = pid;
		return in[1];
	}
	close(in[1]);
	return -1;
}

static size_t columns(int fd)
{
	struct winsize size;
	return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : COLUMNS_DEFAULT;
}

void ck_pager_start(void)
{
	const char *command = program(), *term = getenv("TERM");
	if (pager.pid || !isatty(STDOUT_FILENO) || !*command || strcmp(command, "cat") == 0 ||
	    !term || !*term || strcmp(term, "dumb") == 0)
		return;
	pager.columns = columns(STDOUT_FILENO);
	int in = run(command);
	if (in < 0)
		return;
	setvbuf(stdout, NULL, _IOLBF, 0); /* in the order in which it is printed, with errors */
	if (isatty(STDERR_FILENO)) {
		pager.errors = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
		if (pager.errors >= 0)
			dup2(in, STDERR_FILENO);
	}
	dup2(in, STDOUT_FILENO);
	close(in);
	for (size_t i = 0; i < CK_COUNT(fatal); i++)
		signal(fatal[i], on_fatal);
}

bool ck_pager_end(void)
{
	if (!pager.pid)
		return false;
	fflush(stderr);
	if (pager.errors >= 0)
		dup2(pager.errors, STDERR_FILENO);
	await();
	for (size_t i = 0; i < CK_COUNT(fatal); i++)
		signal(fatal[i], SIG_DFL);
	return true;
}

size_t ck_pager_columns(FILE *out)
{
	if (pager.pid && (out == stdout || (out == stderr && pager.errors >= 0)))
		return pager.columns;
	return isatty(fileno(out)) ? columns(fileno(out)) : 0;
}
