/* SPDX-License-Identifier: Apache-2.0 */
/* What /proc tells of processes: its lines, and this process and its children. */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

#include "cache/store/file-locks.h"
#include "src/base/clock.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/cli/culprit/apart.h"
#include "src/cli/culprit/culprit.h"
#include "src/cli/culprit/processes.h"
#include "src/cli/culprit/unix-sockets.h"
#include "tests/unit/harness.h"

#define STAT_END                                                                       \
	" S 7 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 1234 1 2 3 4 5 6 7 8 9 10 11 " \
	"12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32\n"

static void stat_lines(void **state)
{
	struct ck_process process;
	(void)state;
	assert_true(ck_process_parse("42 (a) b) (c)" STAT_END, &process));
	assert_int_equal(process.pid, 42);
	assert_string_equal(process.name, "a) b) (c");
	assert_int_equal(process.state, 'S');
	assert_int_equal(process.parent, 7);
	assert_false(process.kernel);
	assert_false(ck_process_stopped(&process));
	assert_int_equal(process.started / CK_NS_PER_S, 1234 / sysconf(_SC_CLK_TCK));
	assert_false(ck_process_parse("", &process));
	assert_false(ck_process_parse("42 (a", &process));
	assert_false(ck_process_parse("42 )a( S 1", &process));
	assert_false(ck_process_parse("42 (a) S 7 1", &process));
}

static void lines_of_locks(void **state)
{
	struct ck_file_lock lock;
	(void)state;
	assert_true(ck_file_lock_parse("3: POSIX  ADVISORY  READ 17 00:28:5211 128 128\n", &lock));
	assert_int_equal(lock.id, 3);
	assert_false(lock.waits);
	assert_string_equal(lock.how, "POSIX");
	assert_string_equal(lock.kind, "READ");
	assert_int_equal(lock.pid, 17);
	assert_int_equal(lock.minor, 0x28);
	assert_int_equal(lock.inode, 5211);
	assert_int_equal(lock.first, 128);
	assert_true(ck_file_lock_parse("3:  -> FLOCK  ADVISORY  WRITE 18 fd:01:9 0 EOF", &lock));
	assert_true(lock.waits);
	assert_int_equal(lock.pid, 18);
	assert_int_equal(lock.major, 0xfd);
	assert_true(ck_file_lock_parse("4: OFDLCK ADVISORY  READ -1 00:28:5205 0 0", &lock));
	assert_int_equal(lock.pid, -1);
	assert_false(ck_file_lock_parse("POSIX ADVISORY READ 17 00:28:5211 128 128", &lock));
	assert_false(ck_file_lock_parse("", &lock));
}

static void variables(void **state)
{
	static const char environment[] = "A=1\0BA=2\0B=3\0C";
	size_t len = sizeof(environment) - 1;
	(void)state;
	assert_string_equal(ck_process_variable(environment, len, "A"), "1");
	assert_string_equal(ck_process_variable(environment, len, "B"), "3");
	assert_null(ck_process_variable(environment, len, "C"));
	assert_null(ck_process_variable(environment, 0, "A"));
}

static void this_process(void **state)
{
	struct ck_process process, *all;
	size_t len, n = ck_processes_list(&all), seen = 0;
	uint64_t now = ck_clock_ns(CLOCK_BOOTTIME);
	(void)state;
	assert_true(ck_process_see(getpid(), &process));
	assert_int_equal(process.pid, getpid());
	assert_int_equal(process.parent, getppid());
	assert_true(process.started <= now && now - process.started < 3600 * CK_NS_PER_S);
	for (size_t i = 0; i < n; i++)
		seen += all[i].pid == getpid();
	assert_int_equal(seen, 1);
	free(all);
	char *words = ck_process_file(getpid(), "cmdline", 4, &len);
	assert_int_equal(len, 4); /* of more */
	assert_int_equal(words[4], '\0');
	free(words);
	assert_null(ck_process_file(getpid(), "no-such-file", 4, &len));
	assert_false(ck_process_see(0, &process));
}

static void write_file(const char *name, const char *text)
{
	FILE *file = fopen(name, "w");
	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

/* What is no regular file is not opened: a pipe would never end to wait for its other end. */
static void files_that_others_name(void **state)
{
	char dir[] = "filesXXXXXX", *text;
	(void)state;
	assert_non_null(mkdtemp(dir));
	assert_int_equal(chdir(dir), 0);
	write_file("plain", "text");
	assert_int_equal(symlink("plain", "link"), 0);
	assert_int_equal(mkfifo("pipe", 0600), 0);
	text = ck_process_foreign_file(getpid(), "cwd/plain", 4);
	assert_non_null(text);
	assert_string_equal(text, "text");
	free(text);
	assert_null(ck_process_foreign_file(getpid(), "cwd/plain", 3));
	assert_null(ck_process_foreign_file(getpid(), "cwd/link", 4));
	assert_null(ck_process_foreign_file(getpid(), "cwd/pipe", 4));
	assert_null(ck_process_foreign_file(getpid(), "cwd", 4));
	assert_null(ck_process_foreign_file(getpid(), "cwd/none", 4));
	assert_null(ck_process_foreign_file(getpid(), "root/dev/null", 4));
	assert_null(ck_process_foreign_file(0, "cwd/plain", 4));
	unlink("plain");
	unlink("link");
	unlink("pipe");
	assert_int_equal(chdir(".."), 0);
	rmdir(dir);
}

static void users(void **state)
{
	uid_t real, effective;
	(void)state;
	assert_true(ck_process_users(getpid(), &real, &effective));
	assert_int_equal(real, getuid());
	assert_int_equal(effective, geteuid());
	assert_false(ck_process_users(0, &real, &effective));
}

/* fork(); the child ends with this process, whatever fails */
static pid_t child(void)
{
	pid_t pid = fork();
	if (!pid)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pid;
}

static bool is_stopped(long pid)
{
	struct ck_process process;
	return ck_process_see(pid, &process) && ck_process_stopped(&process);
}

/* until @holds, or the time limit of all tests */
static void await(bool (*holds)(long pid), long pid)
{
	static const struct timespec pause = { 0, 10 * (long)CK_NS_PER_MS };
	while (!holds(pid))
		nanosleep(&pause, NULL);
}

static void stopped(void **state)
{
	pid_t pid = child();
	(void)state;
	if (!pid) {
		pause();
		_exit(0);
	}
	assert_false(is_stopped(pid));
	kill(pid, SIGSTOP);
	await(is_stopped, pid);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static bool is_in_state_d(long pid)
{
	struct ck_process process;
	return ck_process_see(pid, &process) && process.state == 'D';
}

static int sleeps(void *userdata)
{
	(void)userdata;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	pause();
	return 0;
}

/* The parent is in state D until its child ends or executes a program: this is no disk. */
static void waits_for_its_child(void **state)
{
	static _Alignas(16) char stack[65536];
	struct ck_waiting waiting;
	pid_t pid = child();
	(void)state;
	if (!pid) {
		clone(sleeps, stack + sizeof(stack), CLONE_VFORK | SIGCHLD, NULL);
		_exit(0);
	}
	await(is_in_state_d, pid);
	ck_process_waiting(pid, &waiting);
	assert_int_equal(waiting.what, CK_WAITS_UNKNOWN);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static bool waits_for_a_lock(long pid)
{
	struct ck_waiting waiting;
	ck_process_waiting(pid, &waiting);
	bool waits = waiting.what == CK_WAITS_LOCK;
	return waits;
}

static void a_lock(void **state)
{
	char name[] = "lockXXXXXX";
	struct flock all = { .l_type = F_WRLCK };
	int fd = mkstemp(name), pids[2];
	struct ck_waiting waiting;
	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	assert_int_equal(fcntl(fd, F_SETLK, &all), 0);
	for (int i = 0; i < 2; i++) { /* by its descriptor, and by its range */
		pids[i] = child();
		if (pids[i])
			continue;
		int own = open(name, O_RDWR);
		if (i == 0)
			flock(own, LOCK_EX);
		else
			fcntl(own, F_SETLKW, &all);
		pause();
		_exit(0);
	}
	for (int i = 0; i < 2; i++) {
		await(waits_for_a_lock, pids[i]);
		ck_process_waiting(pids[i], &waiting);
		assert_int_equal(*waiting.path, '/');
		assert_string_equal(strrchr(waiting.path, '/') + 1, name);
		assert_int_equal(ck_lock_keeper(pids[i]), getpid());
	}
	assert_int_equal(ck_lock_keeper(getpid()), 0);
	for (int i = 0; i < 2; i++) {
		kill(pids[i], SIGKILL);
		assert_int_equal(waitpid(pids[i], NULL, 0), pids[i]);
	}
	close(fd);
	unlink(name);
}

/* Beside others who lock and unlock all the time, which moves every line of the list. */
static void a_lock_among_many(void **state)
{
	enum { others = 4, asked = 60 };
	char name[] = "lockXXXXXX", busy[others][sizeof(name)];
	int fd = mkstemp(name), pids[others + 1], right = 0;
	(void)state;
	assert_int_equal(flock(fd, LOCK_EX), 0);
	for (int i = 0; i < others + 1; i++) {
		if (i < others)
			close(mkstemp(strcpy(busy[i], "busyXXXXXX")));
		pids[i] = child();
		if (pids[i])
			continue;
		int own = open(i < others ? busy[i] : name, O_RDWR);
		flock(own, LOCK_EX);
		while (i < others) {
			flock(own, LOCK_UN);
			flock(own, LOCK_EX);
		}
		_exit(0);
	}
	await(waits_for_a_lock, pids[others]);
	for (int i = 0; i < asked; i++)
		right += ck_lock_keeper(pids[others]) == getpid();
	for (int i = 0; i < others + 1; i++) {
		kill(pids[i], SIGKILL);
		assert_int_equal(waitpid(pids[i], NULL, 0), pids[i]);
		unlink(i < others ? busy[i] : name);
	}
	close(fd);
	assert_int_equal(right, asked);
}

/* Somebody types them into a shell. */
static void hints(void **state)
{
	struct ck_culprit culprit = { .hang = CK_HANG_DISK, .chain_n = 1 };
	static const struct {
		const char *path, *command;
	} paths[] = {
		{ "/run/Net-0.9/a_b", "'findmnt -T /run/Net-0.9/a_b'" },
		{ "/run/$(reboot)", "'findmnt'" },
		{ "/run/a b", "'findmnt'" },
		{ "/run/a'b", "'findmnt'" },
		{ "/run/a\nb", "'findmnt'" },
		{ "", "'findmnt'" },
	};
	(void)state;
	for (size_t i = 0; i < CK_COUNT(paths); i++) {
		strcpy(culprit.waiting.path, paths[i].path);
		char *hint = ck_culprit_hint(&culprit);
		assert_non_null(strstr(hint, paths[i].command));
		free(hint);
	}
}

/* What has been told holds if no more comes. */
#define HOUR (3600 * CK_NS_PER_S)
static void tells_and_hangs(struct ck_apart *apart, void *userdata)
{
	struct ck_culprits found = { .n = 1, .all = { { .chain = { { .pid = 3 } } } } };
	atomic_store(&apart->at, 4);
	ck_apart_tell(apart, &found);
	found.n = 2;
	ck_apart_tell(apart, &found);
	found.n = 3;
	while (userdata)
		pause();
}

static void tells_and_dies(struct ck_apart *apart, void *userdata)
{
	tells_and_hangs(apart, userdata);
	raise(SIGKILL);
}

static void looking_apart(void **state)
{
	struct ck_culprits found;
	long at;
	(void)state;
	assert_int_equal(ck_apart_run(tells_and_hangs, NULL, HOUR, &found, &at), CK_APART_DONE);
	assert_int_equal(found.n, 2);
	assert_int_equal(ck_apart_run(tells_and_dies, NULL, HOUR, &found, &at), CK_APART_FAILED);
	assert_int_equal(found.n, 2);
	assert_int_equal(at, 4);
	assert_int_equal(ck_apart_run(tells_and_hangs, &at, 0, &found, &at), CK_APART_LATE);
	while (waitpid(-1, NULL, 0) > 0) /* it may take longer to die than we wait */
		;
	signal(SIGCHLD, SIG_IGN);
	assert_int_equal(ck_apart_run(tells_and_hangs, NULL, HOUR, &found, &at), CK_APART_DONE);
	signal(SIGCHLD, SIG_DFL);
}

static bool is_among(uint32_t inode, const uint32_t *all, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (all[i] == inode)
			return true;
	return false;
}

static void sockets(void **state)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct ck_unix_socket *all;
	uint32_t *own;
	size_t found = 0;
	(void)state;
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/listen%d",
		 getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp", (int)getpid());
	int listener = socket(AF_UNIX, SOCK_STREAM, 0), client = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(listener, 4), 0);
	assert_int_equal(connect(client, (struct sockaddr *)&address, sizeof(address)), 0);
	int server = accept(listener, NULL, NULL);
	size_t n = ck_unix_sockets_list(&all), own_n = ck_process_sockets(getpid(), &own);
	assert_true(own_n >= 3);
	for (size_t i = 0; i < n; i++)
		found += strcmp(all[i].path, address.sun_path) == 0 &&
			 is_among(all[i].inode, own, own_n) && is_among(all[i].peer, own, own_n);
	if (n) /* a kernel may lack unix_diag */
		assert_int_equal(found, 1);
	assert_int_equal(ck_unix_server(address.sun_path), getpid());
	assert_int_equal(ck_unix_server("/no/such/socket"), 0);
	free(all);
	free(own);
	close(server);
	close(client);
	close(listener);
	unlink(address.sun_path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stat_lines),   cmocka_unit_test(lines_of_locks),
		cmocka_unit_test(variables),    cmocka_unit_test(this_process),
		cmocka_unit_test(files_that_others_name), cmocka_unit_test(users),
		cmocka_unit_test(stopped),      cmocka_unit_test(waits_for_its_child),
		cmocka_unit_test(a_lock),
		cmocka_unit_test(a_lock_among_many), cmocka_unit_test(hints),
		cmocka_unit_test(looking_apart),
		cmocka_unit_test(sockets),
	};
	return CK_TEST_MAIN(tests);
}
