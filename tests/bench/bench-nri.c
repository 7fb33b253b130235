/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One event's way to a plugin and back, by crikeep-nri.h against Go's runtime side (containerd/nri
 * pkg/adaptation), in one run: rounds of each in turn, the same plugin program, the same messages.
 * The plugin is on the newest stub and does nothing. We pass on bytes that the host has; Go's side
 * encodes its structures for each plugin, as its hosts make it do. Both sleep while they wait. So
 * on a machine without other work, most of a round trip is the time in which idle processors wake
 * up, and that is the machine's. Hence all is measured twice: with processors that may be idle, and
 * with processors that idle-priority loops keep awake, as they are on a busy node.
 * Nothing here is a test. CK_TEST_SCALE (per cent) makes it shorter or longer.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/bench/measure.h"
#include "tests/unit/harness.h"
#include "src/crikeep-nri.h"

#define ROUNDS  10u
#define WARM    100u
#define PLUGINS 3u
#define ID_AT   2u /* field 1 comes first: tag, length, 64 digits */
#define ID_LEN  64u

static char dir[64], tool[4096];
static pid_t children[2 * PLUGINS + 1 + CPU_SETSIZE];
static size_t children_n;

/* ---- Go's half: tests/real/nri-bench --------------------------------------------------------- */

static FILE *to_go, *from_go;

/* false: it cannot be had here, and why was said */
static bool tool_build(void)
{
	const char *src = getenv("CK_TEST_SRCDIR"), *build = getenv("CK_TEST_BUILDDIR");
	char command[sizeof(tool) + 4160], why[512] = "", line[512];
	snprintf(tool, sizeof(tool), "%s/tests/real/tools/nri-bench", build ? build : ".");
	snprintf(command, sizeof(command),
		 "bash '%s/tests/real/tools.sh' '%s/tests/real/tools' nri-bench", src ? src : ".",
		 build ? build : ".");
	FILE *f = popen(command, "re");
	measure_must(f, "%s: cannot be run", command);
	while (fgets(line, sizeof(line), f))
		memcpy(why, line, sizeof(why));
	int status = pclose(f);
	measure_must(status != -1 && WIFEXITED(status) &&
			     (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 3),
		     "tests/real/tools.sh: %s", why);
	if (WEXITSTATUS(status) == 3)
		printf("there is nothing to compare with: %s", why);
	return WEXITSTATUS(status) == 0;
}

/* @in, @out: become its standard input and output; -1: ours */
static void child_start(char *const *argv, int in, int out)
{
	pid_t parent = getpid(), pid = fork();
	measure_must(pid >= 0, "fork");
	if (pid == 0) {
		bool ready = prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent &&
			     (in < 0 || dup2(in, STDIN_FILENO) >= 0) &&
			     (out < 0 || dup2(out, STDOUT_FILENO) >= 0);
		if (ready)
			execv(argv[0], argv);
		_exit(127);
	}
	children[children_n++] = pid;
}

static void plugin_start(const char *socket, unsigned n)
{
	char path[sizeof(dir) + 16], index[8];
	snprintf(path, sizeof(path), "%s/%s", dir, socket);
	snprintf(index, sizeof(index), "%02u", 10 * n);
	child_start((char *const[]){ tool, (char *)"plugin", path, index, NULL }, -1, -1);
}

/* a loop for each processor of ours, which leaves it to anybody else at once */
static void keep_awake(void)
{
	cpu_set_t ours;
	pid_t parent = getpid();
	measure_must(sched_getaffinity(0, sizeof(ours), &ours) == 0, "sched_getaffinity");
	for (int n = CPU_COUNT(&ours); n > 0; n--) {
		pid_t pid = fork();
		measure_must(pid >= 0, "fork");
		if (pid == 0) {
			const struct sched_param none = { 0 };
			if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent ||
			    sched_setscheduler(0, SCHED_IDLE, &none) < 0)
				_exit(127);
			for (;;)
				;
		}
		children[children_n++] = pid;
	}
}

static void end_children(size_t from)
{
	for (; children_n > from; children_n--) {
		kill(children[children_n - 1], SIGKILL);
		waitpid(children[children_n - 1], NULL, 0);
	}
}

static char *go_line(void)
{
	static char *line;
	static size_t room;
	measure_must(getline(&line, &room, from_go) > 0, "Go's side has ended");
	return line;
}

static void go_start(void)
{
	int in[2], out[2];
	measure_must(pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0, "pipe: %s",
		     strerror(errno));
	child_start((char *const[]){ tool, (char *)"drive", dir, NULL }, in[0], out[1]);
	close(in[0]);
	close(out[1]);
	to_go = fdopen(in[1], "we");
	from_go = fdopen(out[0], "re");
	measure_must(to_go && from_go && strcmp(go_line(), "ready\n") == 0,
		     "Go's side does not start");
}

static void go_ask(const char *what, size_t n)
{
	measure_must(fprintf(to_go, "%s %zu\n", what, n) > 0 && fflush(to_go) == 0,
		     "Go's side has ended");
}

/* ---- our half -------------------------------------------------------------------------------- */

struct message {
	unsigned char bytes[32768];
	size_t len;
};

static struct ck_nri *nri;
static struct message pod, container;

static void read_message(struct message *message, const char *name)
{
	char path[sizeof(dir) + 16];
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	FILE *f = fopen(path, "re");
	message->len = f ? fread(message->bytes, 1, sizeof(message->bytes), f) : 0;
	measure_must(message->len > ID_AT + ID_LEN && message->bytes[1] == ID_LEN, "%s: no message",
		     path);
	fclose(f);
}

static void describe(struct ck_nri_job *job, enum ck_kind kind, const char *id, void *userdata)
{
	(void)kind;
	(void)id;
	(void)userdata;
	measure_must(false, "something is to be described, though it was given");
	ck_nri_job_done(job, 5, NULL, 0);
}

static int nothing(int (*fn)(const struct ck_told *object, void *arg), void *arg, void *userdata)
{
	(void)fn;
	(void)arg;
	(void)userdata;
	return 0;
}

static void say(enum ck_log_level level, const char *text, void *userdata)
{
	(void)userdata;
	if (level <= CK_LOG_WARNING)
		fprintf(stderr, "crikeep: %s\n", text);
}

static void turn(void)
{
	struct pollfd fd = { .fd = ck_nri_fd(nri), .events = POLLIN };
	struct ck_error err;
	measure_must(poll(&fd, 1, -1) > 0 || errno == EINTR, "poll: %s", strerror(errno));
	measure_must(ck_nri_process(nri, &err) == 0, "process: %s", err.text);
}

static void ours_start(void)
{
	static const struct ck_nri_host host = {
		.size = sizeof(host), .describe = describe, .snapshot = nothing, .log = say
	};
	char path[sizeof(dir) + 16];
	struct ck_nri_options options = { .size = sizeof(options),
					  .host = &host,
					  .socket_path = path };
	struct ck_error err;
	snprintf(path, sizeof(path), "%s/c.sock", dir);
	measure_must(ck_nri_open(&options, &nri, &err) == 0 && ck_nri_start(nri, NULL, &err) == 0,
		     "open: %s", err.text);
}

static int count_ready(const struct ck_nri_plugin *plugin, void *userdata)
{
	*(unsigned *)userdata += strcmp(plugin->state, "ready") == 0;
	return 0;
}

static void ours_await(unsigned plugins)
{
	for (unsigned ready = 0; ready < plugins;) {
		turn();
		ready = 0;
		ck_nri_plugins(nri, count_ready, &ready);
	}
}

static unsigned told;
static bool over;

static void ended(const struct ck_nri_result *result, void *userdata)
{
	(void)userdata;
	measure_must(!result->refusal, "refused: %s", result->refusal);
	told = result->told;
	over = true;
}

/* @told_n: how many plugins are told of it */
static void send_event(enum ck_nri_event event, unsigned told_n)
{
	bool of_pod = event == CK_NRI_RUN_POD_SANDBOX || event == CK_NRI_REMOVE_POD_SANDBOX;
	char pod_id[ID_LEN + 1] = "", container_id[ID_LEN + 1] = "";
	struct ck_nri_call call = { .size = sizeof(call),
				    .event = event,
				    .pod_id = pod_id,
				    .pod = pod.bytes,
				    .pod_len = pod.len };
	struct ck_error err;
	memcpy(pod_id, pod.bytes + ID_AT, ID_LEN);
	if (!of_pod) {
		memcpy(container_id, container.bytes + ID_AT, ID_LEN);
		call.container_id = container_id;
		call.container = container.bytes;
		call.container_len = container.len;
	}
	over = false;
	measure_must(ck_nri_send(nri, &call, ended, NULL, &err) == 0, "send: %s", err.text);
	while (!over)
		turn();
	measure_must(told == told_n, "%u plugins were told, not %u", told, told_n);
}

static void pod_number(size_t i)
{
	char id[ID_LEN + 1];
	snprintf(id, sizeof(id), "%064zx", i);
	memcpy(pod.bytes + ID_AT, id, ID_LEN);
}

/* ---- rounds ---------------------------------------------------------------------------------- */

struct side {
	const char *name;
	uint64_t *took;
	size_t n;
	uint64_t busy, cpu; /* ns for all, and of its process */
};

static uint64_t cpu_time(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * UINT64_C(1000000000) + (uint64_t)ts.tv_nsec;
}

static void round_ours(struct side *side, enum ck_nri_event event, unsigned plugins, size_t n)
{
	uint64_t cpu = cpu_time();
	for (size_t i = 0; i < n; i++) {
		if (event == CK_NRI_RUN_POD_SANDBOX)
			pod_number(i);
		uint64_t began = measure_now();
		send_event(event, plugins);
		uint64_t took = measure_now() - began;
		side->took[side->n++] = took;
		side->busy += took;
	}
	side->cpu += cpu_time() - cpu;
	/* and the pods are gone; nobody asked to be told */
	for (size_t i = 0; i < n && event == CK_NRI_RUN_POD_SANDBOX; i++) {
		pod_number(i);
		send_event(CK_NRI_REMOVE_POD_SANDBOX, 0);
	}
}

static void round_go(struct side *side, const char *name, size_t n)
{
	go_ask(name, n);
	char *at = go_line();
	side->cpu += strtoull(at, &at, 10);
	for (size_t i = 0; i < n; i++) {
		uint64_t took = strtoull(at, &at, 10);
		measure_must(took, "Go's side has answered something else");
		side->took[side->n++] = took;
		side->busy += took;
	}
}

static double us(struct side *side, double q)
{
	return (double)measure_quantile(side->took, side->n, q) / 1e3;
}

static void bench_event(enum ck_nri_event event, const char *name, size_t bytes, unsigned plugins)
{
	size_t n = ck_test_rounds(500);
	struct side go = { .name = "Go" }, ours = { .name = "crikeep" };
	go.took = calloc(ROUNDS * n + WARM, sizeof(*go.took));
	ours.took = calloc(ROUNDS * n + WARM, sizeof(*ours.took));
	measure_must(go.took && ours.took, "no memory");
	for (unsigned round = 0; round <= ROUNDS; round++) {
		round_go(&go, name, round ? n : WARM);
		round_ours(&ours, event, plugins, round ? n : WARM);
		if (round == 0) {
			go.n = ours.n = 0;
			go.cpu = ours.cpu = go.busy = ours.busy = 0;
		}
	}
	char what[64];
	snprintf(what, sizeof(what), "%s, %u plugin%s, Go: p50", name, plugins,
		 plugins > 1 ? "s" : "");
	measure_line(what, us(&go, 0.5), "us    p99 %.0f us; %.1f KB", us(&go, 0.99),
		     (double)bytes / 1e3);
	measure_line("  crikeep: p50", us(&ours, 0.5), "us    %.2f x; p99 %.0f us, %.2f x",
		     us(&ours, 0.5) / us(&go, 0.5), us(&ours, 0.99),
		     us(&ours, 0.99) / us(&go, 0.99));
	measure_line("  events a second", (double)ours.n * 1e9 / (double)ours.busy,
		     "      %.2f x Go's %.0f", (double)go.busy / (double)ours.busy,
		     (double)go.n * 1e9 / (double)go.busy);
	measure_line("  processor time for one", (double)ours.cpu / 1e3 / (double)ours.n,
		     "us    %.2f x Go's %.0f us", (double)ours.cpu / (double)go.cpu,
		     (double)go.cpu / 1e3 / (double)go.n);
	free(go.took);
	free(ours.took);
}

static void bench_with(unsigned plugins)
{
	go_ask("plugins", plugins);
	measure_must(strcmp(go_line(), "ready\n") == 0, "Go's side has answered something else");
	ours_await(plugins);
	bench_event(CK_NRI_RUN_POD_SANDBOX, "RunPodSandbox", pod.len, plugins);
	/* a pod and a container they know */
	pod_number(0);
	send_event(CK_NRI_RUN_POD_SANDBOX, plugins);
	send_event(CK_NRI_CREATE_CONTAINER, 0);
	bench_event(CK_NRI_POST_CREATE_CONTAINER, "PostCreateContainer", pod.len + container.len,
		    plugins);
	send_event(CK_NRI_REMOVE_CONTAINER, 0);
	send_event(CK_NRI_REMOVE_POD_SANDBOX, 0);
}

/* also when something went wrong */
static void clean_up(void)
{
	static const char *const files[] = { "pod", "container", "go.sock", "c.sock" };
	end_children(0);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		char path[sizeof(dir) + 16];
		snprintf(path, sizeof(path), "%s/%s", dir, files[i]);
		unlink(path);
	}
	rmdir(dir);
}

int main(void)
{
	const char *tmp = getenv("TMPDIR");
	if (!tool_build())
		return 0;
	snprintf(dir, sizeof(dir), "%s/ck-nri.XXXXXX", tmp && strlen(tmp) < 32 ? tmp : "/tmp");
	measure_must(mkdtemp(dir) && atexit(clean_up) == 0, "%s: %s", dir, strerror(errno));
	go_start();
	read_message(&pod, "pod");
	read_message(&container, "container");
	ours_start();
	for (unsigned n = 1; n <= PLUGINS; n++) { /* 1, then all */
		plugin_start("c.sock", n);
		plugin_start("go.sock", n);
		if (n != 1 && n != PLUGINS)
			continue;
		size_t before = children_n;
		puts("processors may be idle:");
		bench_with(n);
		keep_awake();
		puts("processors are kept awake:");
		bench_with(n);
		end_children(before);
	}
	ck_nri_close(nri);
	return 0;
}
