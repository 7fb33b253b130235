/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "src/base/mem.h"
#include "src/rpc/address.h"
#include "tests/daemon/world.h"
#include "tests/unit/harness.h"

#define FLAGS_MAX 40

static void name(char *to, const struct world *w, const char *leaf)
{
	assert_true(snprintf(to, WORLD_PATH, "%s/%s", w->dir, leaf) < WORLD_PATH);
}

void world_init(struct world *w)
{
	const char *tmp = getenv("TMPDIR");
	memset(w, 0, sizeof(*w));
	assert_true(snprintf(w->dir, sizeof(w->dir), "%s/w.XXXXXX", tmp ? tmp : "/tmp") <
		    WORLD_PATH);
	assert_non_null(mkdtemp(w->dir));
	name(w->cri, w, "cri.sock");
	name(w->unfiltered, w, "all.sock");
	name(w->metrics, w, "metrics.sock");
	name(w->state, w, "state");
	name(w->runtime, w, "sim.sock");
	name(w->runtime_log, w, "sim.log");
	name(w->runtime_state, w, "sim.state");
	name(w->log, w, "log");
	name(w->config, w, "crikeep.yaml");
	int fd = open(w->config, O_WRONLY | O_CREAT | O_CLOEXEC, 0600); /* not the machine's */
	assert_true(fd >= 0);
	close(fd);
}

void world_fini(struct world *w)
{
	char command[WORLD_PATH + 16];
	int daemon = w->daemon ? world_kill(&w->daemon, SIGTERM) : 0,
	    sim = w->sim ? world_kill(&w->sim, SIGTERM) : 0;
	if (daemon || sim) /* also what a sanitizer has to say at the end */
		fail_msg("crikeepd ended with %d, the simulator with %d\n%s", daemon, sim,
			 world_file(w->log));
	snprintf(command, sizeof(command), "rm -rf '%s'", w->dir);
	assert_int_equal(system(command), 0); /* NOLINT: a path of ours */
}

int world_kill(pid_t *pid, int sig)
{
	int status = 0;
	if (*pid <= 0)
		return -1;
	/* A test may have stopped it. Not after @sig: LeakSanitizer stops a process that ends, and
	 * waits for ever if that is undone. */
	kill(*pid, SIGCONT);
	kill(*pid, sig);
	while (waitpid(*pid, &status, 0) < 0)
		assert_int_equal(errno, EINTR);
	*pid = 0;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* CK_TEST_SLOW=0, under gdb: as long as it takes */
static unsigned long tries_in(unsigned long seconds, unsigned long a_second)
{
	unsigned long slow = ck_test_env("CK_TEST_SLOW", 1);
	return slow ? seconds * a_second * slow : ULONG_MAX;
}

static void pause_ms(int ms)
{
	poll(NULL, 0, ms);
}

/* the path of a program, which is ours unless @name is absolute */
static void built(char *path, size_t size, const char *name)
{
	const char *build = getenv("CK_TEST_BUILDDIR");
	snprintf(path, size, "%s%s%s", *name == '/' ? "" : build ? build : ".",
		 *name == '/' ? "" : "/", name);
}

/* a program under test, which dies with it */
static pid_t run(const struct world *w, void (*before)(void), int fd, const char *const *argv)
{
	char path[4096];
	built(path, sizeof(path), argv[0]);
	pid_t parent = getpid(), pid = fork();
	assert_true(pid >= 0);
	if (pid > 0)
		return pid;
	if (before)
		before();
	if (!fd)
		fd = open(w->log, O_WRONLY | O_CREAT | O_APPEND, 0600);
	if (fd < 0 || dup2(fd, STDERR_FILENO) < 0 || dup2(fd, STDOUT_FILENO) < 0 ||
	    prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
		_exit(126);
	execv(path, (char *const *)argv);
	_exit(127);
}

/* somebody serves there, or the process has ended: false */
static bool until_served(const char *path, pid_t *pid)
{
	unsigned long tries = tries_in(15, 100);
	siginfo_t info;
	while (tries--) {
		int fd = ck_unix_connect(path, NULL);
		if (fd >= 0) {
			close(fd);
			return true;
		}
		info.si_pid = 0;
		if (waitid(P_PID, (id_t)*pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0 ||
		    info.si_pid)
			return false;
		pause_ms(10);
	}
	return false;
}

void world_sim(struct world *w, const char *parameters)
{
	char text[1024];
	const char *comma = parameters && *parameters ? "," : "";
	snprintf(text, sizeof(text), "listen=%s,log=%s,state=%s%s%s", w->runtime,
		 w->runtime_log, w->runtime_state, comma, parameters ? parameters : "");
	const char *const argv[] = { "crikeep-sim", text, NULL };
	w->sim = run(w, NULL, 0, argv);
	if (!until_served(w->runtime, &w->sim))
		fail_msg("the simulator did not start: %s", world_file(w->log));
}

static void start_daemon(struct world *w, const char *const *flags)
{
	char endpoint[WORLD_PATH + 16], path[4096];
	const char *argv[FLAGS_MAX];
	size_t n = 0;
	snprintf(endpoint, sizeof(endpoint), "unix://%s", w->runtime);
	built(path, sizeof(path), "crikeepd");
	const char *const ours[] = { w->under ? path : "crikeepd",
				     "--runtime",
				     endpoint,
				     "--listen",
				     w->cri,
				     "--unfiltered",
				     w->unfiltered,
				     "--metrics",
				     w->metrics,
				     "--state-dir",
				     w->state,
				     "--log-level",
				     "debug",
				     "--config",
				     w->config,
				     w->repeat ? "--hand-back=repeat" : NULL,
				     NULL };
	const char *const *const parts[] = { w->under, ours, flags };
	for (size_t part = 0; part < CK_COUNT(parts); part++)
		for (size_t i = 0; parts[part] && parts[part][i]; i++) {
			assert_true(n < FLAGS_MAX - 1);
			argv[n++] = parts[part][i];
		}
	argv[n] = NULL;
	w->daemon = run(w, w->before, w->log_fd, argv);
}

void world_daemon(struct world *w, const char *const *flags)
{
	start_daemon(w, flags);
	if (!until_served(w->cri, &w->daemon))
		fail_msg("crikeepd did not start: %s", world_file(w->log));
}

int world_daemon_fails(struct world *w, const char *const *flags)
{
	int status = 0;
	start_daemon(w, flags);
	while (waitpid(w->daemon, &status, 0) < 0)
		assert_int_equal(errno, EINTR);
	w->daemon = 0;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* ---- looking --------------------------------------------------------------------------------- */

static char *all_of(int fd)
{
	size_t len = 0, room = 65536;
	char *text = malloc(room);
	ssize_t n;
	assert_non_null(text);
	while (fd >= 0 && (n = read(fd, text + len, room - len - 1)) != 0) {
		if (n < 0 && errno == EAGAIN) {
			struct pollfd wait = { .fd = fd, .events = POLLIN };
			assert_int_equal(poll(&wait, 1, 10000), 1);
			continue;
		}
		if (n < 0)
			break;
		len += (size_t)n;
		if (room - len < 2) {
			text = realloc(text, room *= 2);
			assert_non_null(text);
		}
	}
	text[len] = 0;
	if (fd >= 0)
		close(fd);
	return text;
}

char *world_file(const char *path)
{
	return all_of(open(path, O_RDONLY | O_CLOEXEC));
}

static unsigned occurrences(const char *path, const char *what)
{
	char *text = world_file(path);
	unsigned n = 0;
	for (const char *p = text; (p = strstr(p, what)); p += strlen(what))
		n++;
	free(text);
	return n;
}

bool world_logged(const struct world *w, const char *text)
{
	return occurrences(w->log, text) > 0;
}

unsigned world_count(const struct world *w, const char *what)
{
	char padded[128];
	snprintf(padded, sizeof(padded), " %s ", what);
	return occurrences(w->runtime_log, padded);
}

static bool often_enough(const char *path, const char *what, unsigned n, unsigned seconds)
{
	unsigned long tries = tries_in(seconds, 50);
	while (occurrences(path, what) < n) {
		if (!tries--)
			return false;
		pause_ms(20);
	}
	return true;
}

void world_until(const struct world *w, const char *what, unsigned n, unsigned seconds)
{
	char padded[128];
	snprintf(padded, sizeof(padded), " %s ", what);
	if (!often_enough(w->runtime_log, padded, n, seconds))
		fail_msg("'%s' happened %u times, not %u\n%s", what, world_count(w, what), n,
			 world_file(w->log));
}

void world_until_in(const struct world *w, const char *path, const char *text, unsigned n,
		    unsigned seconds)
{
	if (!often_enough(path, text, n, seconds))
		fail_msg("'%s' is %u times in '%s', not %u\n%s\n%s", text, occurrences(path, text),
			 path, n, world_file(path), world_file(w->log));
}

void world_until_logged(const struct world *w, const char *text, unsigned seconds)
{
	world_until_in(w, w->log, text, 1, seconds);
}

char *world_metrics(const struct world *w)
{
	return all_of(ck_unix_connect(w->metrics, NULL));
}

double world_metric(const struct world *w, const char *name_and_labels)
{
	char *text = world_metrics(w);
	size_t len = strlen(name_and_labels);
	const char *line = text;
	while (line && (strncmp(line, name_and_labels, len) || line[len] != ' ')) {
		line = strchr(line, '\n');
		line = line ? line + 1 : NULL;
	}
	if (!line)
		fail_msg("no metric %s in\n%s", name_and_labels, text);
	double value = strtod(line + len, NULL);
	free(text);
	return value;
}
