/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Life, time and the disk. A kill -9 keeps what was on disk at that moment: the files are read
 * then, what happens until the call of the library returns is of no effect, and the next life finds
 * these files.
 */
#include <fcntl.h>
#include <ftw.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/history/world.h"
#include "cache/cache.h"
#include "src/base/fault.h"

static const char *const files[] = { "crikeep.db", "crikeep.db-wal", "key" };

/* ---- words ----------------------------------------------------------------------------------- */

void world_say(struct world *w, const char *fmt, ...)
{
	va_list ap;
	if (!w->trace)
		return;
	va_start(ap, fmt);
	vfprintf(w->trace, fmt, ap);
	va_end(ap);
	fputc('\n', w->trace);
}

void world_wrong(struct world *w, const char *fmt, ...)
{
	va_list ap;
	if (w->failure[0] || w->dead)
		return;
	va_start(ap, fmt);
	vsnprintf(w->failure, sizeof(w->failure), fmt, ap);
	va_end(ap);
}

/* ---- the disk -------------------------------------------------------------------------------- */

static void path_of(const struct world *w, const char *name, char path[128])
{
	snprintf(path, 128, "%s/%s", w->dir, name);
}

static void disk_free(struct disk *disk)
{
	for (size_t i = 0; i < CK_COUNT(disk->file); i++)
		free(disk->file[i].bytes);
	*disk = (struct disk){ 0 };
}

static void disk_read(const struct world *w, struct disk *disk)
{
	disk_free(disk);
	for (size_t i = 0; i < CK_COUNT(files); i++) {
		char path[128];
		struct stat st;
		path_of(w, files[i], path);
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			continue;
		if (fstat(fd, &st) < 0 || !(disk->file[i].bytes = malloc((size_t)st.st_size + 1)) ||
		    read(fd, disk->file[i].bytes, (size_t)st.st_size) != st.st_size)
			abort();
		disk->file[i].len = (size_t)st.st_size;
		close(fd);
	}
}

static void disk_write(const struct world *w, const struct disk *disk)
{
	char path[128];
	path_of(w, "crikeep.db-shm", path);
	unlink(path);
	for (size_t i = 0; i < CK_COUNT(files); i++) {
		path_of(w, files[i], path);
		unlink(path);
		if (!disk->file[i].bytes)
			continue;
		int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (fd < 0 ||
		    write(fd, disk->file[i].bytes, disk->file[i].len) != (ssize_t)disk->file[i].len)
			abort();
		close(fd);
	}
}

void world_disk_is(struct world *w, bool full)
{
	w->disk_full = full;
	w->lags = w->lags || full;
	w->awaits_fault = false;
	ck_fault_arm(full ? CK_FAULT_STORE : 0, full ? 1 : 0, true);
}

/* A reader waits for real until nobody has written for a while (CK_COPY_REST). */
static void disk_rests(const struct world *w)
{
	static const struct timespec long_ago[2];
	char path[128];
	for (size_t i = 0; i < CK_COUNT(files); i++) {
		path_of(w, files[i], path);
		utimensat(AT_FDCWD, path, long_ago, 0);
	}
}

/* the rows are of another boot now */
void world_reboot(struct world *w)
{
	char path[128];
	sqlite3 *db = NULL;
	path_of(w, files[0], path);
	if (sqlite3_open(path, &db) == SQLITE_OK)
		sqlite3_exec(db, "UPDATE entry SET boot = 'another'", NULL, NULL, NULL);
	sqlite3_close(db);
	for (int i = 0; i < w->objects_n; i++) {
		struct object *o = &w->objects[i];
		if (o->stage == MAKING)
			o->stage = OVER;
		o->condition = CK_CONDITION_DEAD;
		o->since = 0;
	}
	w->now = 100 * CK_NS_PER_S; /* the clock counts from the boot */
	w->tally.reboots++;
}

/* ---- dying ----------------------------------------------------------------------------------- */

static struct world *living; /* for the crash hook */

/* The host is the runtime, and @o is not finished: it ends with the process, and perhaps nothing
 * tells of it afterwards (K29). */
static bool ends_with_host(const struct world *w, const struct object *o)
{
	return w->options.is_runtime && (o->turn >= 0 || o->stage == MAKING);
}

void world_kill(struct world *w)
{
	if (w->dead)
		return;
	disk_read(w, &w->left);
	world_say(w, "    kill -9");
	w->dead = true;
	w->tally.crashes++;
	/* what is not on disk is known to nobody now */
	for (int i = 0; i < w->objects_n; i++)
		if (w->lags || ends_with_host(w, &w->objects[i]))
			w->objects[i].exempt = true;
}

static void crash_hook(const char *when, const char *what)
{
	struct world *w = living;
	(void)what;
	if (!w || !w->crash || strcmp(when, w->crash))
		return;
	w->crash = NULL;
	world_kill(w);
}

/* ---- inotify --------------------------------------------------------------------------------- */

/*
 * Closing an inotify instance takes the kernel up to 20 ms, of which it does nothing: it waits for
 * all who may still look at its watches, one instance after the other on the whole machine. That
 * was more than a whole history. So a process keeps one instance, each life gets a descriptor of it
 * and closes that, and a watch ends with its directory. This function is called instead of libc's.
 */
static struct {
	pid_t process;
	int fd;
} instance;

int inotify_init1(int flags)
{
	if (instance.process != getpid()) { /* a parent's instance is not ours */
		world_close_inotify();
		int fd = (int)syscall(SYS_inotify_init1, flags);
		if (fd < 0)
			return -1;
		instance.process = getpid();
		instance.fd = fd;
	}
	return fcntl(instance.fd, F_DUPFD_CLOEXEC, 0);
}

void world_close_inotify(void)
{
	if (instance.process)
		close(instance.fd);
	instance.process = 0;
}

/* ---- life ------------------------------------------------------------------------------------ */

void world_open(struct world *w)
{
	struct ck_error err;
	w->life++;
	int r = ck_cache_open(&w->options, &w->cache, &err);
	if (r < 0 && w->disk_full) { /* nothing can be read either */
		world_disk_is(w, false);
		r = ck_cache_open(&w->options, &w->cache, &err);
	}
	if (r < 0) {
		world_wrong(w, "open: %s", err.text);
		w->cache = NULL;
		return;
	}
	w->cache->random = w->seed; /* of the jitter: the same in each run */
}

static void orphan(struct world *w, struct object *o, bool dies)
{
	runtime_orphan(w, o);
	if (o->stage == MAKING && dies)
		o->stage = OVER;
}

void world_end_life(struct world *w, bool creations_die)
{
	bool died = w->dead;
	if (!died && w->lags)
		for (int i = 0; i < w->objects_n; i++)
			w->objects[i].exempt = true;
	w->dead = true; /* nothing it does from here on is of interest */
	for (int i = 0; i < VIEWS; i++) {
		ck_view_free(w->views[i]);
		w->views[i] = NULL;
	}
	if (w->cache)
		ck_cache_close(w->cache, NULL);
	w->cache = NULL;
	for (int i = 0; i < TURNS; i++) {
		ck_turn_free(w->callers[i].turn);
		w->callers[i] = (struct caller){ .object = -1, .drains = -1 };
	}
	runtime_drop_jobs(w);
	w->dead = false;
	w->crash = NULL;
	for (int i = 0; i < w->objects_n; i++) {
		w->objects[i].stops = w->objects[i].removes = 0;
		bool dies = ends_with_host(w, &w->objects[i]);
		if (w->objects[i].turn >= 0 || dies)
			orphan(w, &w->objects[i], creations_die || dies);
	}
	if (died)
		disk_write(w, &w->left);
	if (!w->disk_full)
		w->lags = false;
	disk_rests(w);
	check_database(w);
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st, (void)flag, (void)ftw;
	return remove(path);
}

/* A new database with its schema, and the key. Making it takes longer than a whole history, so it
 * is made once. */
static const struct disk *new_disk(struct world *w)
{
	static struct disk disk;
	if (!disk.file[0].bytes) {
		struct ck_error err;
		if (ck_cache_open(&w->options, &w->cache, &err) < 0)
			abort();
		ck_cache_close(w->cache, NULL);
		w->cache = NULL;
		disk_read(w, &disk);
	}
	return &disk;
}

void world_init(struct world *w, uint64_t seed, FILE *trace)
{
	const char *tmp = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : getenv("TMPDIR");
	*w = (struct world){ .seed = seed, .now = 1000 * CK_NS_PER_S, .trace = trace };
	snprintf(w->dir, sizeof(w->dir), "%.40s/crikeep-h.XXXXXX", tmp ? tmp : "/tmp");
	if (!mkdtemp(w->dir))
		abort();
	for (int i = 0; i < TURNS; i++)
		w->callers[i] = (struct caller){ .object = -1, .drains = -1 };
	runtime_init(w);
	w->options.is_runtime = seed % 4 == 0;
	disk_write(w, new_disk(w));
	living = w;
	ck_crash_hook = crash_hook;
	world_open(w);
	world_settle(w);
}

void world_fini(struct world *w)
{
	ck_crash_hook = NULL;
	living = NULL;
	ck_fault_arm(0, 0, false);
	if (w->cache)
		world_end_life(w, true);
	disk_free(&w->left);
	nftw(w->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* ---- time ------------------------------------------------------------------------------------ */

void world_settle(struct world *w)
{
	struct ck_error err;
	for (int n = 0; !w->failure[0] && !w->dead; n++) {
		if (ck_cache_process(w->cache, &err) < 0)
			world_wrong(w, "ck_cache_process(): %s", err.text);
		if (ck_cache_timeout(w->cache) > w->now)
			return;
		if (n == 300)
			world_wrong(w, "the event loop does not come to rest");
	}
}

void world_advance(struct world *w, uint64_t by)
{
	uint64_t target = w->now + by;
	bool pending = w->awaits_fault && !ck_fault_hit();
	world_settle(w);
	while (!w->failure[0] && !w->dead) {
		uint64_t due = ck_cache_timeout(w->cache), orphan_due = runtime_due(w);
		due = orphan_due < due ? orphan_due : due;
		if (due > target)
			break;
		w->now = due > w->now ? due : w->now;
		runtime_orphans(w);
		world_settle(w);
	}
	if (w->dead)
		return;
	w->now = target;
	world_settle(w);
	if (w->disk_full || pending || by < 2 * CK_NS_PER_S)
		return;
	w->lags = w->awaits_fault = false; /* it is written once a second */
}
