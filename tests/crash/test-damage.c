/* SPDX-License-Identifier: Apache-2.0 */
/*
 * K32, K33: the example runtime with its database on a full disk, read-only, or damaged, also
 * across a SIGKILL. Whatever happens to the database: pods are made, what exists is made once, is
 * destroyed by nobody, and is either handed back or visible.
 *
 * As root in small file systems of a mount namespace of our own; otherwise with a limit on file
 * sizes and with permissions. CK_DAMAGE_ROUNDS=N more or fewer than 24 random damages,
 * CK_CRASH_SEED=N others.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <dirent.h>
#include <unistd.h>

#include "tests/crash/world.h"

#define CREATE_MS 100
#define PODS      4

static struct world world;
static char disk[112], error[512];
static bool mounted;
static unsigned slow;

__attribute__((format(printf, 1, 2))) static void wrong(const char *fmt, ...)
{
	va_list ap;
	if (error[0])
		return;
	va_start(ap, fmt);
	vsnprintf(error, sizeof(error), fmt, ap);
	va_end(ap);
}

static void start(const char *more)
{
	const char *args[] = { "--state", disk, "--create-ms", "100", "--shim", more, NULL };
	if (!world_start(&world, NULL, args))
		wrong("the runtime does not start");
}

/* ---- pods: p0, p1, ...; each is one sandbox -------------------------------------------------- */

static int ask(unsigned pod, unsigned deadline_ms, char answer[256])
{
	static char labels[PODS][8];
	snprintf(labels[pod], sizeof(labels[pod]), "p%u", pod);
	answer[0] = '\0';
	struct world_request request = {
		.pod = labels[pod], .version = 1, .deadline_ms = deadline_ms, .label = labels[pod]
	};
	return world_create(&world, &request, answer, 256);
}

static bool find_made(unsigned pod, char id[WORLD_ID])
{
	size_t n;
	bool found = false;
	char label[8];
	struct world_event *e = world_events(&world, "creations", &n);
	snprintf(label, sizeof(label), "p%u", pod);
	for (size_t i = 0; i < n && !found; i++)
		for (size_t k = 0; k < i && !found; k++)
			if (!strcmp(e[i].what, "exists") && !strcmp(e[k].id, e[i].id) &&
			    !strcmp(e[k].label, label)) {
				memcpy(id, e[i].id, WORLD_ID);
				found = true;
			}
	free(e);
	return found;
}

/* its caller leaves, the pod is created, and is kept */
static void keep(unsigned pod)
{
	char answer[256], id[WORLD_ID];
	for (int i = 0; i < 500 && !find_made(pod, id); i++) {
		/* the caller may leave before the runtime's first list, and then nothing moves */
		if (i % 50 == 0)
			ask(pod, 50, answer);
		world_sleep(20);
	}
	if (!find_made(pod, id))
		wrong("p%u was never made", pod);
	world_sleep(60 * slow); /* until the runtime has noticed */
}

/* until it hears @until: 0, or a gRPC code */
static int repeat(unsigned pod, int until, char answer[256])
{
	int r = -1;
	for (int i = 0; i < 40 && r != until; i++) {
		r = ask(pod, 1000 * slow, answer);
		if (r != until)
			world_sleep(100);
	}
	return r;
}

static void expect(unsigned pod, int code)
{
	char answer[256], id[WORLD_ID] = "nothing";
	int r = repeat(pod, code, answer);
	if (r != code)
		wrong("p%u was answered with %d %s, not %d", pod, r, answer, code);
	else if (code == 0 && (!find_made(pod, id) || strcmp(id, answer)))
		wrong("p%u was given %s, made was %s", pod, answer, id);
}

static bool visible(unsigned pod, unsigned *ret_n)
{
	struct world_list list;
	char uid[16];
	snprintf(uid, sizeof(uid), "uid-p%u", pod);
	if (!world_list(&world, "LIST", &list)) {
		wrong("no list");
		return false;
	}
	*ret_n = 0;
	for (size_t i = 0; i < list.n; i++)
		*ret_n += !strcmp(list.v[i].uid, uid);
	return *ret_n > 0;
}

/* this holds in any case: it was created once, it is still there, and it is handed back or
 * visible */
static void expect_sound(unsigned pod)
{
	size_t n, begun = 0;
	unsigned seen = 0;
	char label[8], id[WORLD_ID] = "", answer[256];
	int r = -1;
	for (int i = 0; i < 40 && r != 0 && r != 6; i++) {
		r = ask(pod, 1000 * slow, answer);
		world_sleep(r == 0 || r == 6 ? 0 : 100);
	}
	snprintf(label, sizeof(label), "p%u", pod);
	if (r != 0 && r != 6)
		wrong("p%u: neither handed back nor said to exist: %d %s", pod, r, answer);
	if (!visible(pod, &seen) || seen != 1)
		wrong("p%u is visible %u times", pod, seen);
	struct world_event *e = world_events(&world, "creations", &n);
	for (size_t i = 0; i < n; i++) {
		begun += !strcmp(e[i].what, "begin") && !strcmp(e[i].label, label);
		if (!strcmp(e[i].what, "destroyed"))
			wrong("%s was destroyed", e[i].id);
	}
	free(e);
	if (begun != 1)
		wrong("p%u was made %zu times", pod, begun);
	if (!find_made(pod, id) || !world_exists(&world, id))
		wrong("p%u is gone", pod);
}

/* ---- the disk -------------------------------------------------------------------------------- */

/* without root: no file may grow beyond the size of the WAL */
static void limit_files(bool limited)
{
	char wal[160];
	struct stat st = { .st_size = 0 };
	struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };
	snprintf(wal, sizeof(wal), "%s/crikeep.db-wal", disk);
	if (limited && stat(wal, &st) == 0)
		limit.rlim_cur = st.st_size > 16384 ? (rlim_t)st.st_size : 16384;
	if (world.pid)
		prlimit(world.pid, RLIMIT_FSIZE, &limit, NULL);
	limit.rlim_max = RLIM_INFINITY;
	setrlimit(RLIMIT_FSIZE, &limit); /* and for the next runtime */
}

static void fill_disk(void)
{
	char path[160], zeroes[4096] = { 0 };
	if (!mounted) {
		limit_files(true);
		return;
	}
	snprintf(path, sizeof(path), "%s/filler", disk);
	int fd = open(path, O_WRONLY | O_CREAT, 0600);
	while (write(fd, zeroes, sizeof(zeroes)) > 0)
		;
	close(fd);
}

static void free_disk(void)
{
	char path[160];
	if (!mounted) {
		limit_files(false);
		return;
	}
	snprintf(path, sizeof(path), "%s/filler", disk);
	unlink(path);
}

static void set_read_only(bool read_only)
{
	char path[400];
	struct dirent *d;
	if (mounted) {
		if (mount("none", disk, NULL, MS_REMOUNT | (read_only ? MS_RDONLY : 0), "size=1m") <
		    0)
			wrong("remount: %s", strerror(errno));
		return;
	}
	chmod(disk, read_only ? 0500 : 0700);
	DIR *dir = opendir(disk);
	while (dir && (d = readdir(dir)))
		if (d->d_name[0] != '.') {
			snprintf(path, sizeof(path), "%s/%s", disk, d->d_name);
			chmod(path, read_only ? 0400 : 0600);
		}
	if (dir)
		closedir(dir);
}

static unsigned set_aside(void)
{
	unsigned n = 0;
	struct dirent *d;
	DIR *dir = opendir(disk);
	while (dir && (d = readdir(dir)))
		n += !strncmp(d->d_name, "crikeep.db.damaged-", 19) && !strstr(d->d_name, "-wal") &&
		     !strstr(d->d_name, "-shm");
	if (dir)
		closedir(dir);
	return n;
}

/* @n bytes at random places, or at the beginning */
static void damage(const char *name, unsigned n, bool from_the_beginning)
{
	char path[160];
	struct stat st;
	snprintf(path, sizeof(path), "%s/%s", disk, name);
	int fd = open(path, O_WRONLY);
	if (fd < 0 || fstat(fd, &st) < 0 || st.st_size == 0) {
		if (fd >= 0)
			close(fd);
		return;
	}
	for (unsigned i = 0; i < n; i++) {
		unsigned char byte = (unsigned char)world_random(&world, 256);
		off_t at = from_the_beginning ? (off_t)i % st.st_size
					      : (off_t)world_random(&world, (unsigned)st.st_size);
		if (pwrite(fd, &byte, 1, at) < 0)
			wrong("damage: %s", strerror(errno));
	}
	close(fd);
}

static bool logged(const char *text)
{
	char path[160], line[2048];
	bool found = false;
	snprintf(path, sizeof(path), "%s/log", world.dir);
	FILE *f = fopen(path, "r");
	while (f && !found && fgets(line, sizeof(line), f))
		found = strstr(line, text);
	if (f)
		fclose(f);
	return found;
}

/* ---- scenarios ------------------------------------------------------------------------------- */

static void full_disk(unsigned seed)
{
	(void)seed;
	start(NULL);
	keep(0); /* in the database */
	fill_disk();
	expect(1, 0); /* in time, in memory only */
	keep(2);
	expect(2, 0); /* kept and handed back, in memory only */
	expect(0, 0); /* kept on disk, handed back in memory */
	if (!logged("the database cannot be written"))
		wrong("nothing was said of it");
	free_disk();
	world_sleep(1500 * slow); /* it is tried each second */
	world_kill_it(&world);
	start(NULL);
	for (unsigned pod = 0; pod < 3; pod++) {
		expect(pod, 0); /* K5: all of it was written when there was room */
		expect_sound(pod);
	}
}

static void full_disk_and_killed(unsigned seed)
{
	(void)seed;
	start(NULL);
	keep(0);
	fill_disk();
	expect(1, 0);
	keep(2);
	world_kill_it(&world);
	start(NULL);
	/* nobody knows any more whose it is: it is visible, and nobody destroys it (K27) */
	expect_sound(1);
	expect_sound(2);
	expect(0, 0); /* known from the disk, and handed back in memory */
	expect(3, 0); /* and the next pod is created */
	free_disk();
	for (unsigned pod = 0; pod < 4; pod++)
		expect_sound(pod);
}

static void read_only(unsigned seed)
{
	unsigned n;
	(void)seed;
	start(NULL);
	keep(0);
	world_kill_it(&world);
	set_read_only(true);
	start(NULL);
	if (visible(0, &n))
		wrong("p0 is visible and was handed to nobody");
	expect(0, 0);
	expect(1, 0);
	world_kill_it(&world);
	set_read_only(false);
	start(NULL);
	expect(0, 0);
	expect_sound(0);
	expect_sound(1);
}

static void damaged_and_killed(unsigned seed)
{
	char answer[256];
	(void)seed;
	start(NULL);
	keep(0);
	expect(1, 0);
	/* still being created when the runtime dies, and created all the same */
	ask(2, 30, answer);
	world_kill_it(&world);
	damage("crikeep.db", 4096, true);
	damage("crikeep.db-wal", 65536, true);
	start(NULL);
	world_sleep(2 * CREATE_MS);
	if (set_aside() != 1)
		wrong("%u files were set aside", set_aside());
	expect_sound(0);
	expect_sound(1);
	expect(3, 0);
	world_kill_it(&world);
	start(NULL);
	for (unsigned pod = 0; pod < 4; pod += pod == 1 ? 2 : 1)
		expect_sound(pod);
	if (set_aside() != 1)
		wrong("the new database was set aside too");
}

static void damaged_somewhere(unsigned seed)
{
	start(seed % 2 ? "--offer" : NULL);
	keep(0);
	expect(1, 0);
	keep(2);
	world_kill_it(&world);
	if (seed % 3 != 1)
		damage("crikeep.db", 1u << (seed % 8), false);
	if (seed % 3 != 0)
		damage("crikeep.db-wal", 1u << (seed % 8), false);
	start(seed % 2 ? "--offer" : NULL);
	for (unsigned pod = 0; pod < 3; pod++)
		expect_sound(pod);
	expect(3, 0);
	int status = world_stop(&world);
	if (status)
		wrong("the runtime ended with status 0x%x", (unsigned)status);
	start(NULL);
	for (unsigned pod = 0; pod < 4; pod++)
		expect_sound(pod);
}

static void damaged_while_it_runs(unsigned seed)
{
	start(NULL);
	keep(0);
	expect(1, 0);
	damage("crikeep.db", 4096, true);
	damage("crikeep.db-wal", 1u << (6 + seed % 8), seed % 2);
	keep(2);
	expect(0, 0); /* it is known in memory */
	expect(2, 0);
	world_kill_it(&world);
	start(NULL);
	for (unsigned pod = 0; pod < 3; pod++)
		expect_sound(pod);
	expect(3, 0);
}

static void removed_while_it_runs(unsigned seed)
{
	static const char *const names[] = { "crikeep.db", "crikeep.db-wal", "crikeep.db-shm" };
	char path[160];
	(void)seed;
	start(NULL);
	keep(0);
	expect(1, 0);
	for (size_t i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "%s/%s", disk, names[i]);
		unlink(path);
	}
	keep(2);
	expect(0, 0);
	world_sleep(1500 * slow);
	world_kill_it(&world);
	start(NULL);
	for (unsigned pod = 0; pod < 3; pod++)
		expect_sound(pod);
}

/* ---- running them ---------------------------------------------------------------------------- */

static int scenario_run(void (*scenario)(unsigned), unsigned seed)
{
	if (!world_make(&world, seed % 2 ? "armed-loop" : "armed-blocking", seed))
		return 99;
	snprintf(disk, sizeof(disk), "%s/disk", world.dir);
	mkdir(disk, 0700);
	signal(SIGXFSZ, SIG_IGN); /* the runtime inherits it: a write beyond the limit fails */
	mounted = mount("none", disk, "tmpfs", 0, "size=1m,mode=0700") == 0;
	scenario(seed);
	if (!mounted) {
		limit_files(false);
		set_read_only(false);
	}
	if (error[0] && world_env("CK_DAMAGE_KEEP", 0)) {
		printf("# %s\n", world.dir);
		fflush(stdout);
		return 1;
	}
	world_kill_it(&world);
	if (mounted)
		umount2(disk, MNT_DETACH);
	world_remove(&world);
	return error[0] != '\0';
}

static const struct scenario {
	void (*run)(unsigned seed);
	const char *name;
	bool random;
} scenarios[] = {
	{ full_disk, "K32 a full disk stops no pod, and nothing is lost when there is room again",
	  false },
	{ full_disk_and_killed,
	  "K32 a full disk and kill -9: what exists is made once and destroyed by nobody", false },
	{ read_only, "K32 a read-only database: kept results are handed back, pods are made",
	  false },
	{ damaged_and_killed,
	  "K33 damaged between kill and restart: set aside, what exists is visible once", false },
	{ damaged_somewhere,
	  "K33 damaged anywhere between kill and restart: nothing made twice, destroyed or hidden",
	  true },
	{ damaged_while_it_runs,
	  "K33 damaged while it runs: kept results are handed back from memory", true },
	{ removed_while_it_runs, "K33 removed while it runs: a new database is written from memory",
	  false },
};

#define SCENARIOS (sizeof(scenarios) / sizeof(*scenarios))

int main(void)
{
	unsigned rounds =
		(unsigned)world_env("CK_DAMAGE_ROUNDS", 24 * world_env("CK_TEST_SCALE", 100) / 100);
	unsigned first = 1000 * (unsigned)world_env("CK_CRASH_SEED", 1);
	unsigned failed[SCENARIOS] = { 0 }, running = 0, bad = 0;
	struct {
		pid_t pid;
		size_t scenario;
	} jobs[1024];
	size_t n = 0;
	signal(SIGPIPE, SIG_IGN);
	slow = world_env("CK_TEST_SLOW", 1) > 1 ? 3 : 1;
	if (geteuid() == 0 && unshare(CLONE_NEWNS) == 0)
		/* the mounts end with this process */
		mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL);
	for (size_t s = 0; s < SCENARIOS; s++) {
		for (unsigned seed = first;
		     seed < first + (scenarios[s].random && rounds > 2 ? rounds : 2) && n < 1024;
		     seed++) {
			for (int status; running >= 12 / slow; running--) { /* at a time */
				pid_t pid = wait(&status);
				for (size_t i = 0; i < n; i++)
					failed[jobs[i].scenario] += jobs[i].pid == pid && status;
			}
			fflush(stdout);
			jobs[n].scenario = s;
			jobs[n].pid = fork();
			if (jobs[n].pid == 0) {
				int r = scenario_run(scenarios[s].run, seed);
				if (r)
					printf("# CK_CRASH_SEED=%u: %s\n", seed,
					       error[0] ? error : "cannot run");
				exit(r);
			}
			n++;
			running++;
		}
	}
	for (int status; running; running--) {
		pid_t pid = wait(&status);
		for (size_t i = 0; i < n; i++)
			failed[jobs[i].scenario] += jobs[i].pid == pid && status;
	}
	for (size_t s = 0; s < SCENARIOS; s++) {
		printf("%s - %s\n", failed[s] ? "not ok" : "ok", scenarios[s].name);
		bad += failed[s];
	}
	return bad > 0;
}
