/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE 1

#include <dirent.h>
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "toy.h"

#define NS_PER_MS UINT64_C(1000000)
#define SHIM_FD   3

static struct {
	const char *dir;
	const char *create_ms, *destroy_ms; /* as text: they go to the shim as they came */
	const char *fail;
	const char *refuse;
	unsigned plugin_ms;
	bool shim;
	unsigned last; /* number of an object */
	pthread_mutex_t lock;
} toy = { .dir = ".",
	  .create_ms = "1000",
	  .destroy_ms = "0",
	  .fail = "",
	  .lock = PTHREAD_MUTEX_INITIALIZER };

static const char usage[] =
	"usage: %s --dir DIR [options]      a runtime that keeps late results, on DIR/socket\n"
	"  --state DIR            of the cache; DIR/state otherwise\n"
	"  --create-ms N          a creation takes so long; --destroy-ms N\n"
	"  --shim                 a creation survives the runtime\n"
	"  --fail TEXT            creations whose label begins with \"fail\" do, with this text\n"
	"  --plugin-ms N          a plugin is told of what is committed, and takes so long; see "
	"DIR/told\n"
	"  --refuse TEXT          it refuses\n"
	"  --ttl-ms N, --create-deadline-ms N, --lost-grace-ms N     of the cache\n"
	"  --offer                late sandboxes are offered, not kept\n";

static int open_in(const char *directory, const char *name, int flags)
{
	char path[4096];
	snprintf(path, sizeof(path), "%s/%s/%s", toy.dir, directory, name);
	return open(path, flags | O_CLOEXEC, 0600);
}

/* one write(2) with O_APPEND: a line is there, or not */
static void append(const char *name, const char *what, const char *id, const char *label,
		   const char *key)
{
	char line[1024];
	int n = snprintf(line, sizeof(line), "%llu\t%s\t%s\t%s\t%s\n", wire_now_ms(), what, id,
			 label, key);
	int fd = open_in(".", name, O_WRONLY | O_APPEND | O_CREAT);
	if (fd < 0 || write(fd, line, (size_t)n) != n)
		perror(name);
	if (fd >= 0)
		close(fd);
}

/* ---- objects --------------------------------------------------------------------------------- */

enum ck_kind toy_kind(const char *id)
{
	return strncmp(id, "sb-", 3) ? CK_CONTAINER : CK_SANDBOX;
}

static bool object_write(const char *directory, const struct ck_object *o)
{
	int fd = open_in(directory, o->id, O_WRONLY | O_CREAT | O_TRUNC);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
	if (!f)
		return false;
	fprintf(f, "%d\n%s\n%s\n%s\n%s\n%s\n%u\n%llu\n", o->condition, o->pod_name,
		o->pod_namespace, o->pod_uid, o->sandbox_id, o->container_name, o->attempt,
		(unsigned long long)o->created_at);
	return fclose(f) == 0;
}

/* made elsewhere and renamed, so that whoever reads finds it whole or not at all */
static bool object_place(const char *id)
{
	char from[4096], to[4096];
	snprintf(from, sizeof(from), "%s/making/%s", toy.dir, id);
	snprintf(to, sizeof(to), "%s/objects/%s", toy.dir, id);
	return rename(from, to) == 0;
}

bool toy_get(const char *id, struct toy_object *ret)
{
	const char *line[8] = { 0 };
	int fd = strchr(id, '/') || id[0] == '.' ? -1 : open_in("objects", id, O_RDONLY);
	if (fd < 0)
		return false;
	ssize_t n = read(fd, ret->text, sizeof(ret->text) - 1);
	close(fd);
	ret->text[n > 0 ? n : 0] = '\0';
	char *p = ret->text;
	for (size_t i = 0; i < 8; i++) {
		char *end = strchr(p, '\n');
		if (!end)
			return false;
		*end = '\0';
		line[i] = p;
		p = end + 1;
	}
	snprintf(p, (size_t)(ret->text + sizeof(ret->text) - p), "%s", id);
	ret->o = (struct ck_object){
		.size = sizeof(ret->o),
		.kind = toy_kind(id),
		.condition = (enum ck_condition)atoi(line[0]),
		.id = p,
		.pod_name = line[1],
		.pod_namespace = line[2],
		.pod_uid = line[3],
		.sandbox_id = line[4],
		.container_name = line[5],
		.attempt = (uint32_t)strtoul(line[6], NULL, 10),
		.created_at = strtoull(line[7], NULL, 10),
	};
	return true;
}

void toy_each(void (*fn)(const struct ck_object *, void *), void *userdata)
{
	char path[4096];
	struct dirent *d;
	struct toy_object object;
	snprintf(path, sizeof(path), "%s/objects", toy.dir);
	DIR *dir = opendir(path);
	while (dir && (d = readdir(dir)))
		if (toy_get(d->d_name, &object))
			fn(&object.o, userdata);
	if (dir)
		closedir(dir);
}

struct each_in {
	const char *sandbox;
	void (*fn)(const char *id);
};

static void each_in(const struct ck_object *o, void *userdata)
{
	const struct each_in *in = userdata;
	if (o->kind == CK_CONTAINER && !strcmp(o->sandbox_id, in->sandbox))
		in->fn(o->id);
}

static void set_dead(const char *id)
{
	toy_set(id, CK_CONDITION_DEAD);
}

bool toy_set(const char *id, enum ck_condition condition)
{
	struct toy_object object;
	if (!toy_get(id, &object))
		return false;
	object.o.condition = condition;
	if (condition == CK_CONDITION_DEAD && object.o.kind == CK_SANDBOX)
		toy_each(each_in, &(struct each_in){ id, set_dead });
	return object_write("making", &object.o) && object_place(id);
}

static void object_remove(const char *id)
{
	char path[4096];
	snprintf(path, sizeof(path), "%s/objects/%s", toy.dir, id);
	if (unlink(path) == 0)
		append("creations", "destroyed", id, "-", "-");
}

/* ---- the shim -------------------------------------------------------------------------------- */

static void pause_ms(unsigned ms)
{
	struct timespec ts = { .tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000 };
	nanosleep(&ts, NULL);
}

/* shim DIR create|destroy ID MS PARENT FAIL */
static _Noreturn void shim_main(char **argv)
{
	const char *id = argv[4], *fail = argv[7];
	long parent = atol(argv[6]);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGCHLD, SIG_DFL);
	if (parent) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
	}
	toy.dir = argv[2];
	pause_ms((unsigned)atoi(argv[5]));
	const char *end = "ok";
	if (!strcmp(argv[3], "destroy")) {
		toy_each(each_in, &(struct each_in){ id, object_remove });
		object_remove(id);
	} else if (*fail || !object_place(id)) {
		append("creations", "failed", id, "-", "-");
		end = *fail ? fail : "cannot make it";
	} else {
		append("creations", "exists", id, "-", "-");
	}
	_exit(write(SHIM_FD, end, strlen(end)) < 0 ? 1 : 0);
}

static int shim_start(const char *what, const char *id, const char *ms, const char *fail)
{
	char parent[16];
	char *argv[] = { (char *)"shim", (char *)"shim", (char *)toy.dir, (char *)what, (char *)id,
			 (char *)ms,     parent,         (char *)fail,    NULL };
	extern char **environ;
	posix_spawn_file_actions_t actions;
	int ends[2];
	pid_t pid;
	snprintf(parent, sizeof(parent), "%d", toy.shim ? 0 : (int)getpid());
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, ends[1], SHIM_FD);
	int r = posix_spawn(&pid, "/proc/self/exe", &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	close(ends[1]);
	if (r) {
		close(ends[0]);
		return -1;
	}
	return ends[0];
}

enum toy_end toy_result(int fd, char *text, size_t size)
{
	size_t len = 0;
	ssize_t n;
	while (fd >= 0 && len < size - 1 &&
	       ((n = read(fd, text + len, size - 1 - len)) > 0 || (n < 0 && errno == EINTR)))
		len += n > 0 ? (size_t)n : 0;
	text[len] = '\0';
	if (fd >= 0)
		close(fd);
	return !len ? TOY_UNKNOWN : !strcmp(text, "ok") ? TOY_DONE : TOY_FAILED;
}

int toy_destroy(const char *id)
{
	return shim_start("destroy", id, toy.destroy_ms, "");
}

/* ---- creating: a real runtime unpacks its request; here the few fields are looked up --------- */

/* the value of the field at @way, numbers from the request down; texts in *ret, numbers returned */
static unsigned look(const char *p, size_t len, const char *way, const char **ret, size_t *ret_len)
{
	const char *end = p + len;
	unsigned number = 0;
	while (p < end) {
		unsigned long long v[2] = { 0 }; /* tag, and length or value */
		for (int i = 0; i < 2; i++)
			for (unsigned shift = 0; p < end && shift < 64; shift += 7) {
				v[i] |= (unsigned long long)(*p & 0x7f) << shift;
				if (!(*p++ & 0x80))
					break;
			}
		bool text = (v[0] & 7) == 2;
		if (v[0] & 7 && (!text || v[1] > (unsigned long long)(end - p)))
			/* fixed numbers: none of the fields asked for lies behind one */
			return number;
		if (v[0] >> 3 == (unsigned char)way[0]) {
			number = text ? 0 : (unsigned)v[1];
			if (text && way[1])
				number = look(p, (size_t)v[1], way + 1, ret, ret_len);
			else if (text)
				*ret = p, *ret_len = (size_t)v[1];
		}
		p += text ? v[1] : 0;
	}
	return number;
}

static const char *look_text(const struct wire_request *request, const char *way, char **room)
{
	const char *p = "";
	size_t len = 0;
	look(request->body, request->len, way, &p, &len);
	char *text = *room;
	len = len < 150 ? len : 150;
	memcpy(text, p, len);
	text[len] = '\0';
	*room = text + len + 1;
	return text;
}

int toy_create(const struct wire_request *request, char ret_id[TOY_ID])
{
	bool sandbox = !strcmp(request->what, "sandbox");
	struct toy_object object;
	char *room = object.text, key[800];
	const char *text;
	size_t len;
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	pthread_mutex_lock(&toy.lock);
	snprintf(ret_id, TOY_ID, "%s-%u", sandbox ? "sb" : "ct", ++toy.last);
	pthread_mutex_unlock(&toy.lock);
	object.o = (struct ck_object){
		.condition = CK_CONDITION_READY,
		.id = ret_id,
		.pod_name = look_text(request, sandbox ? "\1\1\1" : "\3\1\1", &room),
		.pod_namespace = look_text(request, sandbox ? "\1\1\3" : "\3\1\3", &room),
		.pod_uid = look_text(request, sandbox ? "\1\1\2" : "\3\1\2", &room),
		.sandbox_id = sandbox ? "" : look_text(request, "\1", &room),
		.container_name = sandbox ? "" : look_text(request, "\2\1\1", &room),
		.attempt = look(request->body, request->len, sandbox ? "\1\1\4" : "\2\1\2", &text,
				&len),
		.created_at = (uint64_t)now.tv_sec * 1000 * NS_PER_MS + (uint64_t)now.tv_nsec,
	};
	snprintf(key, sizeof(key), "%s/%s/%s/%s/%s/%u", object.o.pod_namespace, object.o.pod_name,
		 object.o.pod_uid, object.o.sandbox_id, object.o.container_name, object.o.attempt);
	append("creations", "begin", ret_id, request->label, key);
	if (!object_write("making", &object.o))
		return -1;
	return shim_start("create", ret_id, toy.create_ms,
			  strncmp(request->label, "fail", 4) ? "" : toy.fail);
}

/* ---- a plugin's stand-in: what libcrikeep's hooks are told ----------------------------------- */

struct telling {
	struct ck_job *job;
	bool refuses;
};

static void *plugin_thinks(void *userdata)
{
	struct telling telling = *(struct telling *)userdata;
	free(userdata);
	pause_ms(toy.plugin_ms);
	ck_hook_done(telling.job, NULL, telling.refuses ? toy.refuse : NULL);
	return NULL;
}

static int plugin_choose(const struct ck_told *entry, char *names, size_t size, void *userdata)
{
	(void)entry;
	(void)userdata;
	snprintf(names, size, "10-toy");
	return 0;
}

static void plugin_fire(struct ck_job *job, enum ck_hook_event event, const struct ck_told *entry,
			void *userdata)
{
	static const char *const names[] = {
		[CK_HOOK_RUN] = "run", [CK_HOOK_STOP] = "stop", [CK_HOOK_REMOVE] = "remove"
	};
	struct telling *telling = malloc(sizeof(*telling));
	pthread_t thread;
	(void)userdata;
	append("told", names[event], entry->id, "-", "-");
	if (telling) {
		*telling = (struct telling){ job, event == CK_HOOK_RUN && toy.refuse };
		if (pthread_create(&thread, NULL, plugin_thinks, telling) == 0) {
			pthread_detach(thread);
			return;
		}
		free(telling);
	}
	ck_hook_done(job, NULL, NULL);
}

/* ---- the program ----------------------------------------------------------------------------- */

void toy_log(enum ck_log_level level, const char *text, void *userdata)
{
	(void)userdata;
	fprintf(stderr, "%llu <%d> %s\n", wire_now_ms(), level, text);
}

/* ids are never given twice: the log knows the last one */
static void read_last(void)
{
	char line[1024], id[TOY_ID];
	unsigned number;
	int fd = open_in(".", "creations", O_RDONLY);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%*s begin %31s", id) == 1 &&
		    sscanf(id, "%*2s-%u", &number) == 1 && number > toy.last)
			toy.last = number;
	if (f)
		fclose(f);
}

static uint64_t ms(const char *text)
{
	return strtoull(text, NULL, 10) * NS_PER_MS;
}

static const struct option options[] = {
	{ "dir", 1, NULL, 'd' },
	{ "state", 1, NULL, 's' },
	{ "create-ms", 1, NULL, 'c' },
	{ "destroy-ms", 1, NULL, 'D' },
	{ "shim", 0, NULL, 'S' },
	{ "fail", 1, NULL, 'f' },
	{ "plugin-ms", 1, NULL, 'p' },
	{ "refuse", 1, NULL, 'r' },
	{ "ttl-ms", 1, NULL, 't' },
	{ "create-deadline-ms", 1, NULL, 'C' },
	{ "lost-grace-ms", 1, NULL, 'l' },
	{ "offer", 0, NULL, 'o' },
	{ 0 },
};

/* the directory, and those in it that the toy writes to */
static void make_directories(void)
{
	static const char *const below[] = { "", "/objects", "/making" };
	char path[4096];
	for (size_t i = 0; i < sizeof(below) / sizeof(*below); i++) {
		snprintf(path, sizeof(path), "%s%s", toy.dir, below[i]);
		mkdir(path, 0700);
	}
}

void toy_options(int argc, char **argv, struct ck_options *ret_options)
{
	static const struct ck_hooks hooks = { .size = sizeof(hooks),
					       .choose = plugin_choose,
					       .fire = plugin_fire };
	static char state[4096];
	int c;
	if (argc == 8 && !strcmp(argv[1], "shim"))
		shim_main(argv);
	*ret_options = (struct ck_options){ .size = sizeof(*ret_options) };
	while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		switch (c) {
		case 'd':
			toy.dir = optarg;
			break;
		case 's':
			ret_options->state_dir = optarg;
			break;
		case 'c':
			toy.create_ms = optarg;
			break;
		case 'D':
			toy.destroy_ms = optarg;
			break;
		case 'S':
			toy.shim = true;
			break;
		case 'f':
			toy.fail = optarg;
			break;
		case 'p':
			toy.plugin_ms = (unsigned)atoi(optarg);
			ret_options->hooks = &hooks;
			break;
		case 'r':
			toy.refuse = optarg;
			break;
		case 't':
			ret_options->ttl = ms(optarg);
			break;
		case 'C':
			ret_options->create_deadline = ms(optarg);
			break;
		case 'l':
			ret_options->lost_grace = ms(optarg);
			break;
		case 'o':
			ret_options->hand_back = CK_OFFER;
			break;
		default:
			fprintf(stderr, usage, argv[0]);
			exit(2);
		}
	}
	snprintf(state, sizeof(state), "%s/state", toy.dir);
	if (!ret_options->state_dir)
		ret_options->state_dir = state;
	make_directories();
	read_last();
	signal(SIGPIPE, SIG_IGN);
	signal(SIGCHLD, SIG_IGN); /* shims are reaped by the kernel */
}

int toy_listen(void)
{
	char path[4096];
	struct sockaddr_un address;
	snprintf(path, sizeof(path), "%s/socket", toy.dir);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	unlink(path);
	if (fd < 0 || wire_address(path, &address) < 0 ||
	    bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, 128) < 0) {
		perror(path);
		exit(2);
	}
	return fd;
}
