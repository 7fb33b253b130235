/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kubelet of the demonstration: sends the recorded requests of a real kubelet to an example
 * runtime, in their order, each with a deadline that the creation outlives; and kills the runtime
 * with SIGKILL in between. One thread for each pod, because a kubelet works on a pod one call at a
 * time. When the recording ends before a request was answered, it is repeated until it is.
 * Everything that happens is one line of the log: milliseconds since boot, file, rpc,
 * pod[/container], what, detail.
 */
#define _GNU_SOURCE 1

#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "wire.h"

#define ROWS_MAX  256
#define KILLS_MAX 8
#define TRIES_MAX 10

enum outcome { NOT_YET, ANSWERED, LOST /* the connection was */ };

struct row { /* of index.tsv */
	char file[128], rpc[32], pod[64], container[64], change[16];
	double seconds; /* when the real kubelet sent it */
	unsigned long long at_ms;
	enum outcome outcome;
};

struct kill_at {
	char file[128]; /* or how its name begins */
	unsigned after_ms;
};

static const char usage[] =
	"usage: drive --data DIR --dir DIR --log FILE [options] -- RUNTIME [ARGUMENT...]\n"
	"  --data DIR         the recording, with its index.tsv\n"
	"  --dir DIR          of the runtime, which gets --dir DIR too\n"
	"  --deadline-ms N    of each request [400]\n"
	"  --speed N          the recorded pauses are divided by N [10] ...\n"
	"  --pause-ms N       ... and cut at N [1100]\n"
	"  --kill FILE:N      SIGKILL to the runtime N ms after that request was sent, and a new "
	"start; repeatable\n";

static struct row rows[ROWS_MAX];
static size_t rows_n;
static struct kill_at kills[KILLS_MAX];
static size_t kills_n;
static const char *data, *dir, *log_name;
static char *const *runtime_argv;
static char socket_path[4096];
static unsigned deadline_ms = 400, speed = 10, pause_max_ms = 1100;
static pid_t runtime;
static FILE *log_file;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* the log, and who the runtime is */

static void say(const struct row *row, const char *what, const char *detail)
{
	bool container = row && strcmp(row->container, "-");
	fprintf(log_file, "%llu\t%s\t%s\t%s%s%s\t%s\t%s\n", wire_now_ms(), row ? row->file : "-",
		row ? row->rpc : "-", row ? row->pod : "-", container ? "/" : "",
		container ? row->container : "", what, detail);
	fflush(log_file);
}

static void log_line(const struct row *row, const char *what, const char *detail)
{
	pthread_mutex_lock(&lock);
	say(row, what, detail);
	pthread_mutex_unlock(&lock);
}

static void pause_ms(unsigned long long ms)
{
	struct timespec ts = { .tv_sec = (time_t)(ms / 1000),
			       .tv_nsec = (long)(ms % 1000) * 1000000 };
	nanosleep(&ts, NULL);
}

/* ---- the runtime ----------------------------------------------------------------------------- */

static void runtime_start(void)
{
	char *argv[64] = { runtime_argv[0], (char *)"--dir", (char *)dir };
	for (size_t i = 1; i < 60 && runtime_argv[i]; i++)
		argv[i + 2] = runtime_argv[i];
	unlink(socket_path);
	runtime = fork();
	if (runtime == 0) {
		execv(argv[0], argv);
		perror(argv[0]);
		_exit(127);
	}
	say(NULL, "start", "");
}

static void runtime_await(void)
{
	for (int i = 0; i < 500 && access(socket_path, F_OK) < 0; i++)
		pause_ms(10);
}

static void *kill_later(void *userdata)
{
	const struct kill_at *kill_at = userdata;
	pause_ms(kill_at->after_ms);
	pthread_mutex_lock(&lock);
	kill(runtime, SIGKILL);
	waitpid(runtime, NULL, 0);
	say(NULL, "kill", kill_at->file);
	runtime_start();
	pthread_mutex_unlock(&lock);
	runtime_await();
	return NULL;
}

/* ---- requests -------------------------------------------------------------------------------- */

static char *read_body(const struct row *row, size_t *ret_len)
{
	char path[4096];
	size_t size = 1u << 20;
	char *body = malloc(size);
	snprintf(path, sizeof(path), "%s/%s", data, row->file);
	FILE *f = fopen(path, "rb");
	if (!f || !body) {
		perror(path);
		exit(2);
	}
	*ret_len = fread(body, 1, size, f);
	fclose(f);
	return body;
}

static enum outcome send_row(const struct row *row)
{
	char answer[4096], *body;
	struct wire_request request = { .verb = "CREATE", .timeout_ms = deadline_ms };
	snprintf(request.what, sizeof(request.what), "%s",
		 strcmp(row->rpc, "RunPodSandbox") ? "container" : "sandbox");
	snprintf(request.label, sizeof(request.label), "%s", row->file);
	request.body = body = read_body(row, &request.len);
	log_line(row, "sent", "");
	int r = wire_call(socket_path, &request, wire_now_ms() + deadline_ms, answer,
			  sizeof(answer));
	free(body);
	answer[strcspn(answer, "\n")] = '\0';
	if (r > 0 && !strncmp(answer, "ok ", 3)) {
		log_line(row, "answered", answer + 3);
		return ANSWERED;
	}
	if (r > 0)
		log_line(row, "refused", answer + strcspn(answer, " ") + 1);
	else
		log_line(row, r == -ETIMEDOUT ? "deadline" : "disconnected", "");
	return r > 0 || r == -ETIMEDOUT ? NOT_YET : LOST;
}

static bool same_key(const struct row *a, const struct row *b)
{
	return !strcmp(a->rpc, b->rpc) && !strcmp(a->pod, b->pod) &&
	       !strcmp(a->container, b->container);
}

/* the first request of every pod begins its thread; @userdata is that row */
static void *pod_main(void *userdata)
{
	const struct row *first = userdata;
	for (struct row *row = rows; row < rows + rows_n; row++) {
		if (strcmp(row->pod, first->pod))
			continue;
		unsigned long long now = wire_now_ms();
		if (now < row->at_ms)
			pause_ms(row->at_ms - now);
		for (size_t i = 0; i < kills_n; i++) {
			pthread_t thread;
			if (!strncmp(row->file, kills[i].file, strlen(kills[i].file)) &&
			    pthread_create(&thread, NULL, kill_later, &kills[i]) == 0)
				pthread_detach(thread);
		}
		row->outcome = send_row(row);
	}
	for (struct row *last = rows + rows_n - 1; last >= rows; last--) {
		bool answered = false, newest = !strcmp(last->pod, first->pod);
		for (struct row *row = rows; row < rows + rows_n && newest; row++) {
			newest = newest && !(row > last && same_key(row, last));
			/* Who asks again and loses the connection does not know what became of the
			 * answer; and an answer to what was changed since is none. */
			if (same_key(row, last))
				answered = row->outcome == ANSWERED ||
					   (answered && row->outcome != LOST &&
					    !strcmp(row->change, "same"));
		}
		for (int i = 0; newest && !answered && i < TRIES_MAX; i++) {
			pause_ms(deadline_ms);
			answered = send_row(last) == ANSWERED;
		}
	}
	return NULL;
}

static void log_list(const char *verb, const char *what)
{
	char answer[65536];
	struct wire_request request = { .what = "-", .label = "-" };
	snprintf(request.verb, sizeof(request.verb), "%s", verb);
	if (wire_call(socket_path, &request, wire_now_ms() + 2000, answer, sizeof(answer)) < 0)
		return;
	char *save, *line;
	strtok_r(answer, "\n", &save); /* the head */
	while ((line = strtok_r(NULL, "\n", &save)))
		log_line(NULL, what, line);
}

/* ---- the recording --------------------------------------------------------------------------- */

static void read_index(void)
{
	char path[4096], line[1024];
	double previous = 0;
	unsigned long long at = wire_now_ms();
	snprintf(path, sizeof(path), "%s/index.tsv", data);
	FILE *f = fopen(path, "r");
	if (!f || !fgets(line, sizeof(line), f)) { /* the names of the columns */
		perror(path);
		exit(2);
	}
	while (rows_n < ROWS_MAX && fgets(line, sizeof(line), f)) {
		struct row *row = &rows[rows_n];
		if (sscanf(line, "%127s %31s %63s %63s %*s %*s %lf %15s", row->file, row->rpc,
			   row->pod, row->container, &row->seconds, row->change) != 6)
			continue;
		double pause = rows_n ? (row->seconds - previous) * 1000 / speed : 0;
		previous = row->seconds;
		at += pause < pause_max_ms ? (unsigned long long)pause : pause_max_ms;
		row->at_ms = at;
		rows_n++;
	}
	fclose(f);
}

static void read_options(int argc, char **argv)
{
	static const struct option options[] = {
		{ "data", 1, NULL, 'd' },  { "dir", 1, NULL, 'D' },
		{ "log", 1, NULL, 'l' },   { "deadline-ms", 1, NULL, 't' },
		{ "speed", 1, NULL, 's' }, { "pause-ms", 1, NULL, 'p' },
		{ "kill", 1, NULL, 'k' },  { 0 },
	};
	int c;
	while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		switch (c) {
		case 'd':
			data = optarg;
			break;
		case 'D':
			dir = optarg;
			break;
		case 'l':
			log_name = optarg;
			break;
		case 't':
			deadline_ms = (unsigned)atoi(optarg);
			break;
		case 's':
			speed = (unsigned)atoi(optarg);
			break;
		case 'p':
			pause_max_ms = (unsigned)atoi(optarg);
			break;
		case 'k':
			if (kills_n < KILLS_MAX &&
			    sscanf(optarg, "%127[^:]:%u", kills[kills_n].file,
				   &kills[kills_n].after_ms) == 2 &&
			    ++kills_n)
				break;
			/* fall through */
		default:
			fputs(usage, stderr);
			exit(2);
		}
	}
	if (!data || !dir || !log_name || !speed || optind == argc) {
		fputs(usage, stderr);
		exit(2);
	}
	runtime_argv = argv + optind;
	snprintf(socket_path, sizeof(socket_path), "%s/socket", dir);
}

int main(int argc, char **argv)
{
	pthread_t threads[ROWS_MAX];
	size_t threads_n = 0;
	read_options(argc, argv);
	log_file = fopen(log_name, "w");
	if (!log_file) {
		perror(log_name);
		return 2;
	}
	runtime_start();
	runtime_await();
	read_index();
	for (size_t i = 0; i < rows_n; i++) {
		bool first = true;
		for (size_t j = 0; j < i; j++)
			first = first && strcmp(rows[j].pod, rows[i].pod);
		if (first && pthread_create(&threads[threads_n], NULL, pod_main, &rows[i]) == 0)
			threads_n++;
	}
	for (size_t i = 0; i < threads_n; i++)
		pthread_join(threads[i], NULL);
	log_list("LIST", "visible");
	log_list("LIST-ALL", "exists");
	pthread_mutex_lock(&lock);
	kill(runtime, SIGTERM);
	waitpid(runtime, NULL, 0);
	say(NULL, "end", "");
	pthread_mutex_unlock(&lock);
	fclose(log_file);
	return 0;
}
