/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What crikeepd costs a call, against the runtime's own socket and, beside it, nginx as a gRPC
 * proxy: all in one run on one machine, rounds of each in turn, because a number alone says more
 * about the machine. The runtime is the built-in one, so that the time of a call is that of sockets
 * and HTTP/2. Nothing here is a test. CK_TEST_SCALE (per cent) makes it shorter or longer.
 */
#include <string.h>
#include <sys/prctl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "tests/unit/harness.h"
#include "src/base/mem.h"
#include "src/rpc/address.h"
#include "tests/daemon/world.h"
#include "tests/flow/cri-client.h"
#include "tests/load/load.h"

#define ROUNDS   10u
#define MANY     8u   /* clients at once */
#define PODS     500u /* of a long list, and waiting */
#define HIDDEN   20u  /* of a long list */
#define ENTRIES  2000u
#define KEPT_AT_ONCE 100u
#define CALLS    50000u /* before memory is looked at once more */

/* as it is, not as tests want it */
static const char *const flags[] = { "--log-level=info", "--hand-back=repeat", NULL };

/* ---- nginx ----------------------------------------------------------------------------------- */

struct nginx {
	char path[WORLD_PATH]; /* its socket */
	pid_t pid, worker;     /* 0: there is none */
};

static pid_t child_of(pid_t pid)
{
	char path[64], text[32] = "";
	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)pid);
	FILE *f = fopen(path, "re");
	pid_t child = f && fgets(text, sizeof(text), f) ? (pid_t)strtol(text, NULL, 10) : 0;
	if (f)
		fclose(f);
	return child;
}

static const char *nginx_program(void)
{
	static const char *const places[] = { "/usr/sbin/nginx", "/usr/local/sbin/nginx",
					      "/usr/bin/nginx" };
	for (size_t i = 0; i < CK_COUNT(places); i++) {
		if (access(places[i], X_OK) == 0)
			return places[i];
	}
	return NULL;
}

/* one worker, connections kept on both sides, nothing written down */
static void nginx_write(const char *path, const struct nginx *nginx, const struct world *w)
{
	FILE *f = fopen(path, "we");
	measure_must(f, "%s: cannot be written", path);
	fprintf(f,
		"worker_processes 1;\ndaemon off;\nerror_log stderr crit;\npid %s/nginx.pid;\n%s"
		"events { worker_connections 1024; }\n"
		"http {\n"
		"	access_log off;\n"
		"	client_body_temp_path %s/nginx.1; proxy_temp_path %s/nginx.2; "
		"fastcgi_temp_path %s/nginx.3;\n"
		"	uwsgi_temp_path %s/nginx.4; scgi_temp_path %s/nginx.5;\n"
		"	upstream runtime { server unix:%s; keepalive 64; keepalive_requests "
		"100000000; }\n"
		"	server {\n"
		"		listen unix:%s http2;\n"
		"		keepalive_requests 100000000; client_max_body_size 0;\n"
		"		location / { grpc_pass grpc://runtime; }\n"
		"	}\n"
		"}\n",
		w->dir, geteuid() == 0 ? "user root;\n" : "", w->dir, w->dir, w->dir, w->dir,
		w->dir, w->runtime, nginx->path);
	fclose(f);
}

static void nginx_start(struct nginx *nginx, const struct world *w)
{
	const char *program = nginx_program();
	char conf[WORLD_PATH + 16];
	nginx->pid = nginx->worker = 0;
	if (!program) {
		printf("%-38s (Debian: nginx-light)\n", "nginx is not there to compare with");
		return;
	}
	snprintf(nginx->path, sizeof(nginx->path), "%s/nginx.sock", w->dir);
	snprintf(conf, sizeof(conf), "%s/nginx.conf", w->dir);
	nginx_write(conf, nginx, w);
	pid_t parent = getpid();
	nginx->pid = fork();
	measure_must(nginx->pid >= 0, "fork");
	if (nginx->pid == 0) {
		if (prctl(PR_SET_PDEATHSIG, SIGTERM) == 0 && getppid() == parent)
			execl(program, program, "-e", "stderr", "-p", w->dir, "-c", conf,
			      (char *)NULL);
		_exit(127);
	}
	for (int fd = -1; fd < 0;) {
		fd = ck_unix_connect(nginx->path, NULL);
		measure_must(fd >= 0 || waitpid(nginx->pid, NULL, WNOHANG) == 0,
			     "nginx did not start");
		if (fd >= 0)
			close(fd);
		else
			nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
	}
	nginx->worker = child_of(nginx->pid);
}

/* ---- one call after the other, on one connection or on many ---------------------------------- */

struct path {
	const char *name, *socket;
	pid_t between; /* who hands the calls on; 0: nobody */
	uint64_t *took;
	size_t n, room;
	uint64_t busy; /* ns in which they were made */
	uint64_t cpu;  /* ns, of the one between */
};

/* ns a process has run: a busy machine makes calls slow, and this hardly */
static uint64_t cpu_time(pid_t pid)
{
	char path[64];
	unsigned long long ns = 0;
	snprintf(path, sizeof(path), "/proc/%d/schedstat", (int)pid);
	FILE *f = pid ? fopen(path, "re") : NULL;
	if (f && fscanf(f, "%llu", &ns) != 1)
		ns = 0;
	if (f)
		fclose(f);
	return ns;
}

static struct path *measured;
static size_t to_begin;
static const char *rpc;

static void one_over(struct load_call *call)
{
	measure_must(call->code == CK_GRPC_OK, "%s: %d %s", measured->name, call->code, call->text);
	measure_must(measured->n < measured->room, "more calls than were begun");
	measured->took[measured->n++] = call->ended - call->began;
	if (!to_begin)
		return;
	to_begin--;
	load_call(call->client, call, rpc, NULL, 0, 0);
}

/* @warm calls that do not count, then @calls, by @n clients. The thread spins: who sleeps would
 * measure its own waking */
static void run(struct path *path, unsigned n, size_t warm, size_t calls)
{
	struct load_client clients[MANY];
	struct load_call call[MANY] = { 0 };
	size_t before = path->n;
	measured = path;
	for (unsigned i = 0; i < n; i++)
		load_open(&clients[i], path->socket);
	for (int counts = 0; counts < 2; counts++) {
		uint64_t began = measure_now(), cpu = cpu_time(path->between);
		path->n = before;
		to_begin = counts ? calls : warm;
		for (unsigned i = 0; i < n && to_begin; i++, to_begin--) {
			call[i].over = one_over;
			load_call(&clients[i], &call[i], rpc, NULL, 0, 0);
		}
		for (unsigned i = 0; i < n;) {
			load_turn(0);
			while (i < n && !call[i].stream && !to_begin)
				i++;
		}
		if (counts) {
			path->busy += measure_now() - began;
			path->cpu += cpu_time(path->between) - cpu;
		}
	}
	for (unsigned i = 0; i < n; i++) {
		load_close(&clients[i]);
		load_call_fini(&call[i]);
	}
}

static void path_make(struct path *path, const char *name, const char *socket, pid_t between,
		      size_t room)
{
	*path = (struct path){ .name = name, .socket = socket, .between = between, .room = room };
	path->took = malloc(room * sizeof(*path->took));
	measure_must(path->took, "no memory");
}

static double us(struct path *path, double q)
{
	return (double)measure_quantile(path->took, path->n, q) / 1e3;
}

static double rate(const struct path *path)
{
	return (double)path->n * 1e9 / (double)path->busy;
}

static void bench_pass(const struct world *w, const struct nginx *nginx, unsigned clients,
		       size_t calls)
{
	struct path paths[3];
	size_t n = nginx->pid ? 3 : 2;
	path_make(&paths[0], "direct", w->runtime, 0, calls * ROUNDS);
	path_make(&paths[1], "crikeepd", w->cri, w->daemon, calls * ROUNDS);
	path_make(&paths[2], "nginx", nginx->path, nginx->worker, calls * ROUNDS);
	rpc = "Version";
	for (unsigned round = 0; round < ROUNDS; round++)
		for (size_t i = 0; i < n; i++)
			run(&paths[i], clients, calls / 10 + 1, calls);
	double p50 = us(&paths[0], 0.5), p99 = us(&paths[0], 0.99);
	for (size_t i = 0; i < n; i++) {
		char what[64];
		snprintf(what, sizeof(what), "Version, %u client%s, %s: p50", clients,
			 clients > 1 ? "s" : "", paths[i].name);
		measure_line(what, us(&paths[i], 0.5), "us    %+.1f us; p99 %.0f us, %+.0f us",
			     us(&paths[i], 0.5) - p50, us(&paths[i], 0.99),
			     us(&paths[i], 0.99) - p99);
		if (clients > 1)
			measure_line("  calls a second", rate(&paths[i]),
				     "      %.2f x direct, %.2f x nginx",
				     rate(&paths[i]) / rate(&paths[0]),
				     n > 2 ? rate(&paths[i]) / rate(&paths[2]) : 0.0);
		if (i)
			measure_line("  its processor time for a call",
				     (double)paths[i].cpu / 1e3 / (double)paths[i].n,
				     "us    %.2f x nginx",
				     n > 2 ? (double)paths[i].cpu / (double)paths[2].cpu : 0.0);
	}
	for (size_t i = 0; i < 3; i++)
		free(paths[i].took);
}

static void bench_list(const struct world *w, const struct nginx *nginx, unsigned hidden)
{
	struct path paths[3];
	size_t calls = ck_test_rounds(100), n = nginx && nginx->pid ? 3 : 2;
	path_make(&paths[0], "direct", w->runtime, 0, calls * ROUNDS);
	path_make(&paths[1], "crikeepd", w->cri, w->daemon, calls * ROUNDS);
	if (n > 2)
		path_make(&paths[2], "nginx", nginx->path, nginx->worker, calls * ROUNDS);
	rpc = "ListPodSandbox";
	for (unsigned round = 0; round < ROUNDS; round++)
		for (size_t i = 0; i < n; i++)
			run(&paths[i], 1, calls / 10 + 1, calls);
	for (size_t i = 0; i < n; i++) {
		char what[64];
		snprintf(what, sizeof(what), i ? "  %s: p50" : "list of 500 sandboxes, %s: p50",
			 paths[i].name);
		if (!i && hidden)
			snprintf(what, sizeof(what), "the same, %u hidden, direct: p50", hidden);
		measure_line(what, us(&paths[i], 0.5),
			     "us    %.2f x direct; p10 %.2f x; p99 %.0f us, %.2f x",
			     us(&paths[i], 0.5) / us(&paths[0], 0.5),
			     us(&paths[i], 0.1) / us(&paths[0], 0.1), us(&paths[i], 0.99),
			     us(&paths[i], 0.99) / us(&paths[0], 0.99));
		if (paths[i].cpu)
			measure_line("    its processor time for a list",
				     (double)paths[i].cpu / 1e3 / (double)paths[i].n, "us");
	}
	for (size_t i = 0; i < n; i++)
		free(paths[i].took);
}

static void bench_list_with_hidden(void)
{
	struct world w;
	world_init(&w);
	world_sim(&w, "sandboxes=500,create=1500ms");
	world_daemon(&w, flags);
	load_keep(&w, HIDDEN);
	bench_list(&w, NULL, HIDDEN);
	world_fini(&w);
}

/* ---- from "it exists" to "the caller has its id" --------------------------------------------- */

struct maker { /* asks for pods until it has them */
	struct load_call call; /* first */
	struct ck_bytes request;
	char id[80];
	uint64_t at, again; /* when its id came (ns of the wall clock); when to ask */
	unsigned tries;
};

static uint64_t wall(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * LOAD_S + (uint64_t)ts.tv_nsec;
}

static void made(struct load_call *call)
{
	struct maker *maker = (struct maker *)call;
	maker->at = wall();
	maker->again = UINT64_MAX;
	if (call->code == CK_GRPC_OK)
		memcpy(maker->id, call->reply.p + 2,
		       call->reply.len - 2 < sizeof(maker->id) ? call->reply.len - 2
							       : sizeof(maker->id) - 1);
	else
		maker->again = measure_now() + 100 * LOAD_MS;
}

/* created_at of each sandbox, as the runtime says it in its list */
static uint64_t created_at(const struct ck_bytes *list, const char *id)
{
	char path[32];
	for (unsigned i = 0, n = cri_count(list, "1"); i < n; i++) {
		snprintf(path, sizeof(path), "1#%u.1", i);
		if (strcmp(cri_text(list, path), id) != 0)
			continue;
		snprintf(path, sizeof(path), "1#%u.4", i);
		return cri_number(list, path);
	}
	measure_must(false, "%s is not in the list", id);
	return 0;
}

static void lag(const struct world *w, const char *socket, unsigned long first, size_t n,
		uint64_t deadline, uint64_t *ret_lags)
{
	struct maker *makers = calloc(n, sizeof(*makers));
	struct load_client client, lister;
	struct load_call list = { .over = NULL };
	uint64_t began = measure_now();
	measure_must(makers, "no memory");
	load_open(&client, socket);
	for (size_t i = 0; i < n; i++) {
		makers[i].call.over = made;
		makers[i].request = load_pod(first + i);
		makers[i].again = began + i * 10 * LOAD_MS;
	}
	for (size_t done = 0; done < n;) {
		uint64_t now = measure_now();
		done = 0;
		for (size_t i = 0; i < n; i++) {
			struct maker *maker = &makers[i];
			done += *maker->id != 0;
			if (maker->call.stream || maker->again > now)
				continue;
			maker->tries++;
			load_call(&client, &maker->call, "RunPodSandbox", maker->request.p,
				  maker->request.len, deadline);
		}
		load_turn(1);
	}
	load_open(&lister, w->runtime);
	measure_must(load_do(&lister, &list, "ListPodSandbox", NULL, 0) == CK_GRPC_OK, "list");
	for (size_t i = 0; i < n; i++) {
		measure_must(makers[i].tries == (deadline ? 2 : 1), "it asked %u times",
			     makers[i].tries);
		ret_lags[i] = makers[i].at - created_at(&list.reply, makers[i].id);
		load_call_fini(&makers[i].call);
		ck_bytes_free(&makers[i].request);
	}
	load_close(&lister);
	load_close(&client);
	load_call_fini(&list);
	free(makers);
}

static void bench_lag(void)
{
	size_t n = ck_test_rounds(200);
	uint64_t *direct = calloc(n, sizeof(*direct)), *waiting = calloc(n, sizeof(*waiting));
	struct world w;
	measure_must(direct && waiting, "no memory");
	world_init(&w);
	world_sim(&w, "create=1500ms");
	world_daemon(&w, flags);
	lag(&w, w.runtime, 0, n, 0, direct);
	lag(&w, w.cri, n, n, LOAD_S, waiting);
	double base = (double)measure_quantile(direct, n, 0.5) / 1e6;
	measure_line("exists -> a waiting call has its id",
		     (double)measure_quantile(waiting, n, 0.5) / 1e6,
		     "ms    p99 %.2f ms; direct %.2f, %.2f ms",
		     (double)measure_quantile(waiting, n, 0.99) / 1e6, base,
		     (double)measure_quantile(direct, n, 0.99) / 1e6);
	world_fini(&w);
	free(direct);
	free(waiting);
}

/* ---- a list while creates wait --------------------------------------------------------------- */

/* in a process of its own, so that its work does not count as waiting of the one who lists */
static void keep_asking(const struct world *w, unsigned n, int ready)
{
	struct maker *makers = calloc(n, sizeof(*makers));
	struct load_client client;
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || !makers)
		_exit(1);
	load_forget_clients();
	load_open(&client, w->cri);
	for (unsigned i = 0; i < n; i++) {
		makers[i].call.over = made;
		makers[i].request = load_pod(i);
	}
	for (uint64_t looked = 0;; load_turn(2)) {
		uint64_t now = measure_now();
		if (now - looked < 5 * LOAD_MS)
			continue;
		looked = now;
		for (unsigned i = 0; i < n; i++) {
			if (makers[i].call.stream || makers[i].again > now)
				continue;
			load_call(&client, &makers[i].call, "RunPodSandbox", makers[i].request.p,
				  makers[i].request.len, 2 * LOAD_S);
		}
		if (ready >= 0 && write(ready, "", 1) == 1)
			ready = -1;
	}
}

struct lister {
	struct world w;
	struct load_client client;
	struct load_call call;
	struct path path;
};

static void lister_make(struct lister *lister)
{
	*lister = (struct lister){ .call.over = NULL };
	world_init(&lister->w);
	world_sim(&lister->w, "create=300s,sandboxes=50");
	world_daemon(&lister->w, flags);
	load_open(&lister->client, lister->w.cri);
	path_make(&lister->path, "lister", lister->w.cri, 0, 1u << 21);
}

static void lister_list(struct lister *lister, uint64_t ns)
{
	struct load_call *call = &lister->call;
	struct path *path = &lister->path;
	for (uint64_t until = measure_now() + ns; measure_now() < until && path->n < path->room;) {
		load_call(&lister->client, call, "ListPodSandbox", NULL, 0, 0);
		while (call->stream)
			load_turn(0);
		measure_must(call->code == CK_GRPC_OK, "list: %s", call->text);
		path->took[path->n++] = call->ended - call->began;
	}
}

static void lister_free(struct lister *lister)
{
	load_close(&lister->client);
	load_call_fini(&lister->call);
	free(lister->path.took);
	world_kill(&lister->w.sim, SIGKILL); /* what it is asked to make takes minutes */
	world_kill(&lister->w.daemon, SIGKILL);
	world_fini(&lister->w);
}

/* two daemons, one with creates that wait and one without, are listed in turn: what else happens on
 * the machine meets both */
static void bench_waiting(void)
{
	static struct lister none, waiting;
	unsigned long rounds = ck_test_rounds(200);
	int ready[2];
	char one;
	lister_make(&none);
	lister_make(&waiting);
	measure_must(pipe(ready) == 0, "pipe");
	fflush(NULL);
	pid_t pid = fork();
	measure_must(pid >= 0, "fork");
	if (pid == 0)
		keep_asking(&waiting.w, PODS, ready[1]);
	measure_must(read(ready[0], &one, 1) == 1, "read");
	for (unsigned long round = 0; round < rounds + 1; round++) {
		if (round == 1)
			none.path.n = waiting.path.n = 0; /* warm */
		lister_list(&none, 50 * LOAD_MS);
		lister_list(&waiting, 50 * LOAD_MS);
	}
	world_kill(&pid, SIGKILL);
	measure_line("list of 50, 500 creates waiting: p99", us(&waiting.path, 0.99),
		     "us    %.2f x none (%.0f us); p50 %.2f x (%.0f us)",
		     us(&waiting.path, 0.99) / us(&none.path, 0.99), us(&none.path, 0.99),
		     us(&waiting.path, 0.5) / us(&none.path, 0.5), us(&none.path, 0.5));
	measure_line("  the slowest", us(&waiting.path, 1),
		     "us    none: %.0f us; %zu and %zu lists", us(&none.path, 1), waiting.path.n,
		     none.path.n);
	close(ready[0]);
	close(ready[1]);
	lister_free(&none);
	lister_free(&waiting);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static double kept(const struct world *w)
{
	return world_metric(w, "crikeep_entries{kind=\"sandbox\",state=\"kept\"}");
}

/* pods of which nobody asks again, until @n are kept; few at once, so that what waiting takes does
 * not hide what keeping takes. A request may come too late to be taken, on a busy machine */
static void keep(const struct world *w, double n)
{
	static unsigned long pod;
	struct load_call calls[KEPT_AT_ONCE] = { 0 };
	struct load_client client;
	load_open(&client, w->cri);
	while (kept(w) < n) {
		for (unsigned i = 0; i < KEPT_AT_ONCE; i++) {
			struct ck_bytes request = load_pod(pod++);
			load_call(&client, &calls[i], "RunPodSandbox", request.p, request.len,
				  150 * LOAD_MS);
			ck_bytes_free(&request);
		}
		for (unsigned i = 0; i < KEPT_AT_ONCE; i++)
			load_wait(&calls[i]);
	}
	for (unsigned i = 0; i < KEPT_AT_ONCE; i++)
		load_call_fini(&calls[i]);
	load_close(&client);
}

static void memory_line(const char *what, struct load_memory memory)
{
	measure_line(what, (double)memory.resident / 1024,
		     "MiB   %.2f MiB of it anonymous; most %.2f MiB",
		     (double)memory.anonymous / 1024, (double)memory.most / 1024);
}

static void bench_memory(const struct nginx *nginx)
{
	struct load_memory before, after;
	struct world w;
	double n = (double)ck_test_rounds(ENTRIES);
	world_init(&w);
	world_sim(&w, "create=300ms");
	world_daemon(&w, flags);
	memory_line("resident, idle", load_memory(w.daemon));
	struct path path;
	path_make(&path, "crikeepd", w.cri, 0, CALLS);
	rpc = "Version";
	run(&path, MANY, 0, ck_test_rounds(CALLS));
	memory_line("resident, after 50,000 calls", load_memory(w.daemon));
	if (nginx->worker)
		memory_line("  nginx's worker, after its calls", load_memory(nginx->worker));
	keep(&w, n);
	double n_before = kept(&w);
	before = load_memory(w.daemon);
	keep(&w, 2 * n);
	double thousands = (kept(&w) - n_before) / 1000;
	after = load_memory(w.daemon);
	measure_line("resident, for 1,000 kept entries",
		     ((double)after.resident - (double)before.resident) / 1024 / thousands,
		     "MiB   %.2f MiB of it anonymous; a request has 0.7 KiB",
		     ((double)after.anonymous - (double)before.anonymous) / 1024 / thousands);
	memory_line("resident, with 4,000 kept entries", after);
	free(path.took);
	world_fini(&w);
}

int main(void)
{
	struct world w;
	struct nginx nginx;
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (access("/dev/shm", W_OK) == 0)
		/* /run, where the database lies by default, is such a file system */
		setenv("TMPDIR", "/dev/shm", 1);
	world_init(&w);
	world_sim(&w, "sandboxes=500");
	world_daemon(&w, flags);
	nginx_start(&nginx, &w);
	bench_pass(&w, &nginx, 1, ck_test_rounds(5000));
	bench_pass(&w, &nginx, MANY, ck_test_rounds(10000));
	bench_list(&w, &nginx, 0);
	bench_list_with_hidden();
	bench_lag();
	bench_waiting();
	bench_memory(&nginx);
	if (nginx.pid)
		world_kill(&nginx.pid, SIGTERM);
	world_fini(&w);
	return 0;
}
