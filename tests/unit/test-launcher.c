/* SPDX-License-Identifier: Apache-2.0 */
/* The launcher with real programs: what they are given, what is refused, and that nobody outlives
 * the daemon. */
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "tests/unit/harness.h"
#include "src/base/mem.h"
#include "src/daemon/nri/launcher.h"

#define WAIT_MS 20000

static char sh[] = "/bin/sh", dash_c[] = "-c", word[] = "word";
static char say[] = "echo \"$0\" >&3";
static char look[] = "exec >&3; echo /proc/self/fd/*; readlink /proc/self/fd/0; echo "
		     "\"${NOTIFY_SOCKET-none} $CK_TEST_WORD\";"
		     " grep -E '^Sig(Blk|Ign)' /proc/self/status | sed 's/:.*0000000$/:/';"
		     " [ $(cut -d' ' -f6 /proc/$$/stat) = $$ ] && echo leader";
/* not for ever if nobody ends it */
static char stay[] = "trap 'echo term >&3; exit' TERM; echo \"$PPID\" >&3; i=0;"
		     " while [ $i -lt 1200 ]; do sleep 0.05; i=$((i + 1)); done";
static char env[] = "out=$(readlink /proc/$$/fd/1 /proc/$$/fd/2); echo \"$out\" >&3; tr '\\0' ' ' "
		    "</proc/$$/environ >&3";
static char absent[] = "/nowhere/no-such-program";
static char *const argv_say[] = { sh, dash_c, say, word, NULL };
static char *const argv_look[] = { sh, dash_c, look, NULL };
static char *const argv_stay[] = { sh, dash_c, stay, NULL };
static char *const argv_env[] = { sh, dash_c, env, NULL };
static char variable_a[] = "A=1", variable_b[] = "B=two words";
static char *const env_env[] = { variable_a, variable_b, NULL };
static char *const argv_absent[] = { absent, NULL };
enum { SAY, LOOK, STAY, ABSENT, ENV };
static const struct ck_launch_item items[] = {
	{ argv_say, NULL },    { argv_look, NULL },   { argv_stay, NULL },
	{ argv_absent, NULL }, { argv_env, env_env },
};

static struct ck_launcher *launcher_new(void)
{
	struct ck_launcher *launcher;
	struct ck_error err = { 0 };
	if (ck_launcher_start(items, CK_COUNT(items), &launcher, &err) < 0)
		fail_msg("%s", err.text);
	return launcher;
}

/* our end of what item @i got as descriptor 3; @ret_pid may be NULL */
static int start(struct ck_launcher *launcher, unsigned i, pid_t *ret_pid)
{
	int fds[2];
	struct ck_error err = { 0 };
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	pid_t pid = ck_launcher_run(launcher, i, fds[1], &err);
	if (pid <= 0)
		fail_msg("%s", err.text);
	if (ret_pid)
		*ret_pid = pid;
	return fds[0];
}

/* @lines lines, or all there is until the end */
static const char *hear(int fd, unsigned lines)
{
	static char text[4096];
	size_t len = 0;
	unsigned seen = 0;
	while (len < sizeof(text) - 1 && (!lines || seen < lines)) {
		struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
		if (poll(&poll_fd, 1, WAIT_MS) <= 0)
			fail_msg("nothing for %d s", WAIT_MS / 1000);
		if (read(fd, text + len, 1) <= 0)
			break;
		seen += text[len++] == '\n';
	}
	text[len] = '\0';
	return text;
}

static int run(struct ck_launcher *launcher, unsigned i, struct ck_error *err)
{
	int fds[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	int r = ck_launcher_run(launcher, i, fds[1], err);
	close(fds[0]);
	return r;
}

static void an_item_is_started_with_its_descriptor(void **state)
{
	CK_AUTO(ck_launcher) *launcher = launcher_new();
	(void)state;
	for (int i = 0; i < 3; i++) {
		int fd = start(launcher, SAY, NULL);
		assert_string_equal(hear(fd, 0), "word\n");
		close(fd);
	}
}

static void nothing_of_the_daemon_reaches_it(void **state)
{
	sigset_t all, before;
	(void)state;
	setenv("NOTIFY_SOCKET", "/run/nowhere", 1);
	setenv("CK_TEST_WORD", "kept", 1);
	int open_fd = dup(0); /* without CLOEXEC, as somebody's library may leave it */
	CK_AUTO(ck_launcher) *launcher = launcher_new();
	sigfillset(&all); /* later changes are the daemon's own business */
	sigprocmask(SIG_SETMASK, &all, &before);
	int fd = start(launcher, LOOK, NULL);
	sigprocmask(SIG_SETMASK, &before, NULL);
	assert_string_equal(
		hear(fd, 0),
		"/proc/self/fd/0 /proc/self/fd/1 /proc/self/fd/2 /proc/self/fd/3 /proc/self/fd/4\n"
		"/dev/null\nnone kept\nSigBlk:\nSigIgn:\nleader\n"); /* 4: that listing */
	close(fd);
	close(open_fd);
	unsetenv("NOTIFY_SOCKET");
}

static void with_an_environment_of_its_own_it_has_nothing_of_ours(void **state)
{
	(void)state;
	setenv("CK_TEST_WORD", "kept", 1);
	CK_AUTO(ck_launcher) *launcher = launcher_new();
	int fd = start(launcher, ENV, NULL);
	assert_string_equal(hear(fd, 0), "/dev/null\n/dev/null\nA=1 B=two words ");
	close(fd);
}

static void only_the_list_can_be_started(void **state)
{
	struct ck_error err = { 0 };
	CK_AUTO(ck_launcher) *launcher = launcher_new();
	(void)state;
	assert_int_equal(run(launcher, CK_COUNT(items), &err), -CK_EINVAL);
	assert_int_equal(run(launcher, UINT32_MAX, &err), -CK_EINVAL);
	assert_int_equal(run(launcher, ABSENT, &err), -CK_EIO);
	assert_non_null(strstr(err.text, "No such file"));
	int fd = start(launcher, SAY, NULL); /* it serves on */
	assert_string_equal(hear(fd, 0), "word\n");
	close(fd);
}

static void what_it_started_ends_with_it(void **state)
{
	struct ck_launcher *launcher = launcher_new();
	(void)state;
	int one = start(launcher, STAY, NULL), two = start(launcher, STAY, NULL);
	hear(one, 1);
	hear(two, 1);
	ck_launcher_free(launcher);
	assert_string_equal(hear(one, 0), "term\n");
	assert_string_equal(hear(two, 0), "term\n");
	close(one);
	close(two);
}

static void nothing_outlives_a_killed_daemon(void **state)
{
	int fds[2], keep[2];
	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	assert_int_equal(pipe(keep), 0);
	pid_t daemon = fork();
	if (daemon == 0) {
		struct ck_launcher *launcher;
		/* a sibling that holds copies of all descriptors, as the simulator might: the end
		 * of the socket does not come */
		if (fork() == 0) {
			close(fds[0]);
			close(keep[1]);
			_exit(read(keep[0], word, 1) < 0);
		}
		if (ck_launcher_start(items, CK_COUNT(items), &launcher, NULL) < 0 ||
		    ck_launcher_run(launcher, STAY, fds[1], NULL) <= 0)
			_exit(1);
		pause();
	}
	close(fds[1]);
	assert_true(atoi(hear(fds[0], 1)) > 0);
	kill(daemon, SIGKILL);
	assert_string_equal(hear(fds[0], 1), "term\n");
	assert_int_equal(waitpid(daemon, NULL, 0), daemon);
	close(fds[0]);
	close(keep[0]);
	close(keep[1]);
}

static void a_launcher_that_stands_still_costs_a_second(void **state)
{
	struct ck_error err = { 0 };
	struct ck_launcher *launcher = launcher_new();
	(void)state;
	int stays = start(launcher, STAY, NULL);
	pid_t pid = (pid_t)atoi(hear(stays, 1)); /* it is the parent */
	assert_true(pid > 1);
	kill(pid, SIGSTOP);
	int fds[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	assert_int_equal(ck_launcher_run(launcher, SAY, fds[1], &err), -CK_EIO);
	assert_non_null(strstr(err.text, "does not answer"));
	kill(pid, SIGCONT);
	int fd = start(launcher, SAY, NULL); /* the late answer is not taken for this one's */
	assert_string_equal(hear(fd, 0), "word\n");
	/* what nobody waits for any more is not started */
	assert_string_equal(hear(fds[0], 0), "");
	close(fd);
	close(fds[0]);

	kill(pid, SIGKILL);
	assert_string_equal(hear(stays, 0), "term\n"); /* also then */
	assert_int_equal(run(launcher, SAY, &err), -CK_EIO);
	ck_launcher_free(launcher);
	close(stays);
}

static void what_ends_is_reaped(void **state)
{
	CK_AUTO(ck_launcher) *launcher = launcher_new();
	pid_t pid = 0;
	char path[64];
	(void)state;
	int fd = start(launcher, SAY, &pid);
	hear(fd, 0);
	close(fd);
	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	for (int i = 0; access(path, F_OK) == 0 && i < WAIT_MS / 10; i++)
		poll(NULL, 0, 10);
	assert_int_equal(access(path, F_OK), -1);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_item_is_started_with_its_descriptor),
		cmocka_unit_test(nothing_of_the_daemon_reaches_it),
		cmocka_unit_test(with_an_environment_of_its_own_it_has_nothing_of_ours),
		cmocka_unit_test(only_the_list_can_be_started),
		cmocka_unit_test(what_it_started_ends_with_it),
		cmocka_unit_test(nothing_outlives_a_killed_daemon),
		cmocka_unit_test(a_launcher_that_stands_still_costs_a_second),
		cmocka_unit_test(what_ends_is_reaped),
	};
	return CK_TEST_MAIN(tests);
}
