/* SPDX-License-Identifier: Apache-2.0 */
#include <ftw.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "contrib/examples/wire.h"
#include "tests/crash/world.h"
#include "tests/unit/cri-build.h"

unsigned world_random(struct world *world, unsigned below)
{
	world->random =
		world->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return below ? (unsigned)(world->random >> 33) % below : 0;
}

unsigned long world_env(const char *name, unsigned long otherwise)
{
	const char *value = getenv(name);
	return value && *value ? strtoul(value, NULL, 10) : otherwise;
}

unsigned long long world_now(void)
{
	return wire_now_ms();
}

void world_sleep(unsigned ms)
{
	struct timespec ts = { .tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000 };
	nanosleep(&ts, NULL);
}

/* ---- the runtime ----------------------------------------------------------------------------- */

bool world_make(struct world *world, const char *program, uint64_t seed)
{
	const char *tmp = getenv("TMPDIR");
	*world = (struct world){ .program = program,
				 .random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1 };
	snprintf(world->dir, sizeof(world->dir), "%s/w.XXXXXX",
		 tmp && strlen(tmp) < 60 ? tmp : "/tmp");
	if (!mkdtemp(world->dir))
		return false;
	snprintf(world->socket, sizeof(world->socket), "%s/socket", world->dir);
	return true;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	/* it is busy if a file system is mounted there */
	return remove(path) < 0 && errno != EBUSY;
}

void world_remove(struct world *world)
{
	world_kill_it(world);
	nftw(world->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

bool world_start(struct world *world, const char *crash, const char *const *args)
{
	extern char **environ;
	const char *argv[WORLD_ARGS] = { world->program, "--dir", world->dir };
	char program[4096], log[128], armed[96];
	char *env[256] = { (char *)"CRIKEEP_TEST_ENDS=1" };
	posix_spawn_file_actions_t actions;
	const char *build = getenv("CK_TEST_BUILDDIR");
	size_t n = 1;
	for (size_t i = 0; args && args[i] && i < WORLD_ARGS - 4; i++)
		argv[i + 3] = args[i];
	snprintf(armed, sizeof(armed), "CRIKEEP_CRASH=%s", crash ? crash : "");
	if (crash)
		env[n++] = armed;
	for (char **p = environ; *p && n < 255; p++)
		env[n++] = *p;
	snprintf(program, sizeof(program), "%s/tests/crash/%s", build ? build : ".",
		 world->program);
	snprintf(log, sizeof(log), "%s/log", world->dir);
	unlink(world->socket);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 2, log, O_WRONLY | O_CREAT | O_APPEND, 0600);
	int r = posix_spawn(&world->pid, program, &actions, NULL, (char **)argv, env);
	posix_spawn_file_actions_destroy(&actions);
	if (r) {
		world->pid = 0;
		fprintf(stderr, "%s: %s\n", program, strerror(r));
		return false;
	}
	/* an armed runtime may die before it listens */
	for (int i = 0; i < 4000; i++) {
		struct sockaddr_un address;
		siginfo_t info = { 0 };
		int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		bool up = wire_address(world->socket, &address) == 0 &&
			  connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0;
		close(fd);
		if (up ||
		    (waitid(P_PID, (id_t)world->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
		     info.si_pid))
			return true;
		world_sleep(5);
	}
	return false;
}

void world_kill_it(struct world *world)
{
	if (!world->pid)
		return;
	kill(world->pid, SIGKILL);
	waitpid(world->pid, NULL, 0);
	world->pid = 0;
}

int world_stop(struct world *world)
{
	int status = -1;
	if (!world->pid)
		return -1;
	kill(world->pid, SIGTERM);
	waitpid(world->pid, &status, 0);
	world->pid = 0;
	return status;
}

bool world_died(struct world *world, int *ret_status)
{
	if (!world->pid || waitpid(world->pid, ret_status, WNOHANG) != world->pid)
		return false;
	world->pid = 0;
	return true;
}

/* ---- calls ----------------------------------------------------------------------------------- */

int world_send(struct world *world, const char *verb, const char *what, unsigned timeout_ms,
	       const char *label, const void *body, size_t len, char *answer, size_t size)
{
	struct wire_request request = { .timeout_ms = timeout_ms, .body = body, .len = len };
	int code, at = 0;
	snprintf(request.verb, sizeof(request.verb), "%s", verb);
	snprintf(request.what, sizeof(request.what), "%s", what);
	snprintf(request.label, sizeof(request.label), "%s", label);
	int r = wire_call(world->socket, &request, world_now() + timeout_ms, answer, size);
	if (r < 0)
		return r;
	if (!strncmp(answer, "ok", 2)) {
		/* after the blank or the end of the line */
		memmove(answer, answer + 3, strlen(answer + 2));
		answer[strcspn(answer, strncmp(verb, "LIST", 4) ? "\n" : "")] = '\0';
		return 0;
	}
	if (sscanf(answer, "error %d %n", &code, &at) != 1 || code <= 0)
		return -EPROTO;
	memmove(answer, answer + at, strlen(answer + at) + 1);
	answer[strcspn(answer, "\n")] = '\0';
	return code;
}

/* its bytes differ from the previous one's as the kubelet makes them differ: shuffled, with another
 * time stamp */
static void build(struct world *world, const struct world_request *r, struct pb *request)
{
	struct pb *config = calloc(1, sizeof(*config)), *sandbox = calloc(1, sizeof(*sandbox));
	char uid[128], version[32], seen[32];
	bool order = world_random(world, 2);
	snprintf(uid, sizeof(uid), "uid-%s", r->pod);
	snprintf(version, sizeof(version), "version-%u", r->version);
	snprintf(seen, sizeof(seen), "%u", world_random(world, 1000000));
	request->len = 0;
	build_sandbox_metadata(sandbox, r->pod, uid, "ck", r->container ? 0 : r->attempt);
	if (!r->container) {
		pb_text(sandbox, 2, version); /* hostname */
		pb_pair(sandbox, 7, order ? "kubernetes.io/config.seen" : "a", order ? seen : "1");
		pb_pair(sandbox, 7, order ? "a" : "kubernetes.io/config.seen", order ? "1" : seen);
		pb_message(request, 1, sandbox);
	} else {
		pb_text(request, 1, r->sandbox_id);
		build_container_metadata(config, r->container, r->attempt);
		pb_text(config, 4, version); /* args */
		pb_pair(config, 6, order ? "A" : "B", order ? "1" : "2");
		pb_pair(config, 6, order ? "B" : "A", order ? "2" : "1");
		pb_message(request, 2, config);
		pb_message(request, 3, sandbox);
	}
	free(config);
	free(sandbox);
}

/* the answer is there, but is never read: the runtime sees its connection reset */
static int hang_up_unread(struct world *world, const struct world_request *r, const struct pb *body)
{
	struct wire_request request = { .verb = "CREATE",
					.timeout_ms = r->deadline_ms,
					.body = (const char *)body->bytes,
					.len = body->len };
	snprintf(request.what, sizeof(request.what), "%s", r->container ? "container" : "sandbox");
	snprintf(request.label, sizeof(request.label), "%s", r->label);
	int fd = wire_begin(world->socket, &request);
	struct pollfd ready = { .fd = fd, .events = POLLIN };
	if (fd < 0)
		return fd;
	int n = poll(&ready, 1, (int)r->deadline_ms);
	close(fd);
	return n > 0 ? -ECONNABORTED : -ETIMEDOUT;
}

int world_create(struct world *world, const struct world_request *request, char *answer,
		 size_t size)
{
	struct pb *body = calloc(1, sizeof(*body));
	int r;
	build(world, request, body);
	if (request->unread)
		r = hang_up_unread(world, request, body);
	else
		r = world_send(world, "CREATE", request->container ? "container" : "sandbox",
			       request->deadline_ms, request->label, body->bytes, body->len, answer,
			       size);
	free(body);
	return r;
}

bool world_list(struct world *world, const char *verb, struct world_list *ret)
{
	char answer[16384], kind[16];
	ret->n = 0;
	if (world_send(world, verb, "-", 3000, "-", NULL, 0, answer, sizeof(answer)) != 0)
		return false;
	for (char *line = answer; *line && ret->n < 64;
	     line += strcspn(line, "\n"), line += *line == '\n') {
		struct world_object *o = &ret->v[ret->n];
		if (sscanf(line, "%15s %31s %u %63s %63s %u", kind, o->id, &o->condition, o->uid,
			   o->container, &o->attempt) != 6)
			return false;
		o->sandbox = !strcmp(kind, "sandbox");
		ret->n++;
	}
	return true;
}

/* ---- what is left ---------------------------------------------------------------------------- */

bool world_exists(const struct world *world, const char *id)
{
	char path[256];
	snprintf(path, sizeof(path), "%s/objects/%s", world->dir, id);
	return access(path, F_OK) == 0;
}

bool world_plant(const struct world *world, const char *id, const char *pod, const char *sandbox_id,
		 const char *container, enum ck_condition condition)
{
	char path[256], made[256];
	snprintf(path, sizeof(path), "%s/objects", world->dir);
	mkdir(path, 0700); /* before the runtime does */
	snprintf(made, sizeof(made), "%s/planted", world->dir);
	snprintf(path, sizeof(path), "%s/objects/%s", world->dir, id);
	FILE *f = fopen(made, "w");
	if (!f)
		return false;
	fprintf(f, "%d\n%s\nck\nuid-%s\n%s\n%s\n0\n1\n", condition, pod, pod, sandbox_id,
		container);
	return fclose(f) == 0 && rename(made, path) == 0;
}

struct world_event *world_events(const struct world *world, const char *log, size_t *ret_n)
{
	char path[256], line[2048];
	size_t n = 0, room = 256;
	struct world_event *events = malloc(room * sizeof(*events));
	snprintf(path, sizeof(path), "%s/%s", world->dir, log);
	FILE *f = fopen(path, "r");
	while (f && events && fgets(line, sizeof(line), f)) {
		if (n == room) {
			struct world_event *grown = realloc(events, (room *= 2) * sizeof(*events));
			if (!grown)
				break;
			events = grown;
		}
		struct world_event *e = &events[n];
		n += sscanf(line, "%llu %15s %31s %127s", &e->ms, e->what, e->id, e->label) == 4;
	}
	if (f)
		fclose(f);
	*ret_n = n;
	return events;
}
