/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a disk can do to a host, seen through the public API (K32, K33): no space, read-only, damage
 * while running and while closed, and a reader that is stopped in
 * the middle of its work.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>

#include <sqlite3.h>

#include "tests/fault/small-disk.h"
#include "tests/flow/fixture.h"
#include "cache/cache.h"
#include "cache/gauges.h"
#include "cache/store/store-int.h"
#include "src/base/fault.h"

#define S CK_NS_PER_S

/* ---- syncs are counted: SQLite finds these before the C library's ---------------------------- */

static unsigned syncs;

__attribute__((visibility("default"))) int fsync(int fd)
{
	(void)fd;
	syncs++;
	return 0; /* nothing of this test must survive it anyway */
}

__attribute__((visibility("default"))) int fdatasync(int fd)
{
	return fsync(fd);
}

/* ---- so are reads of the list of all locks inside of a round --------------------------------- */

static struct ck_cache *watched;
static unsigned looks, looks_in_round;

__attribute__((visibility("default"))) FILE *fopen(const char *path, const char *mode)
{
	FILE *(*open_file)(const char *, const char *) = NULL;
	void *found = dlsym(RTLD_NEXT, "fopen");
	memcpy(&open_file, &found, sizeof(found));
	if (watched && !strcmp(path, "/proc/locks")) {
		looks++;
		pthread_mutex_lock(&watched->lock);
		looks_in_round += ck_cache_in_round(watched);
		pthread_mutex_unlock(&watched->lock);
	}
	return open_file(path, mode);
}

/* ---- places ---------------------------------------------------------------------------------- */

static pid_t stopped; /* a reader that a test has stopped; 0: none */

static void reader_dies(void)
{
	if (!stopped)
		return;
	kill(stopped, SIGKILL);
	waitpid(stopped, NULL, 0);
	stopped = 0;
}

static int tear_down(void **state)
{
	reader_dies(); /* if the test failed */
	return fixture_tear_down(state);
}

static void unmount(struct fixture *f)
{
	fx_close(f);
	assert_int_equal(umount(f->dir), 0);
}

static unsigned lines_of(const char *log, const char *text)
{
	unsigned n = 0;
	while ((log = strstr(log, text))) {
		log += strlen(text);
		n++;
	}
	return n;
}

static unsigned set_aside(struct fixture *f)
{
	unsigned n = 0;
	DIR *dir = opendir(f->dir);
	struct dirent *entry;
	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		const char *suffix = strrchr(entry->d_name, '-');
		if (!strncmp(entry->d_name, "crikeep.db.damaged-", 19) && strcmp(suffix, "-wal") &&
		    strcmp(suffix, "-shm"))
			n++;
	}
	closedir(dir);
	return n;
}

/* ---- no space (K32) -------------------------------------------------------------------------- */

static void full_disk_never_stops_pods(void **state)
{
	struct fixture *f = *state;
	struct fx_ask durable = fx_sandbox("durable"), late = fx_sandbox("late"),
		      quick = fx_sandbox("quick"), old = fx_sandbox("old");
	small_disk_mount(f->dir);
	fx_open(f);
	fx_keep(f, &old, "s0");
	fx_advance(f, 300 * S);
	fx_keep(f, &durable, "s1");
	small_disk_fill(f->dir);
	fx_keep(f, &late, "s2"); /* begun and kept in memory */
	fx_commit(f, &quick, "s3");
	struct ck_turn *turn = fx_wait(f, &late);
	fx_answered_with(f, turn, "s2"); /* wholly volatile: may be committed */
	ck_turn_free(turn);
	turn = fx_wait(f, &durable);
	fx_answered_with(f, turn, "s1"); /* although its row still says KEPT */
	ck_turn_free(turn);
	assert_int_equal(fx_hides(f, &durable, "s1"), 0);
	assert_int_equal(fx_hides(f, &late, "s2"), 0);
	fx_advance(f, 320 * S);
	/* its time was over: destroying continues as well */
	assert_true(fx_was_destroyed(f, "s0"));
	assert_int_equal(lines_of(f->log, "going on in memory"), 1);
	assert_string_equal(fx_rows(f), "KEPT s0|KEPT s1");

	small_disk_make_space(f->dir);
	fx_advance(f, 2 * S); /* tried again each second */
	assert_int_equal(lines_of(f->log, "can be written again"), 1);
	assert_string_equal(fx_rows(f), "GONE s0|COMMITTED s1|COMMITTED s2|COMMITTED s3");
	assert_int_equal(fx_counter(f, "write_failures") > 3, 1);
	assert_int_equal(set_aside(f), 0);
	unmount(f);
}

/* A hand-over is logged and counted once, after the attempt to write it. */
static void full_disk_makes_log_and_counters_say_what_happened(void **state)
{
	struct fixture *f = *state;
	struct fx_ask kept = fx_sandbox("kept"), other = fx_sandbox("other");
	small_disk_mount(f->dir);
	fx_open(f);
	fx_keep(f, &kept, "s1");
	small_disk_fill(f->dir);
	struct ck_turn *turn = fx_wait(f, &kept);
	fx_answered_with(f, turn, "s1");
	ck_turn_free(turn);
	assert_int_equal(fx_begin(f, &kept, &turn), CK_HAND_BACK);
	ck_turn_free(turn);
	assert_int_equal(lines_of(f->log, "handed over"), 1);
	assert_int_equal(lines_of(f->log, "COMMITTING -> COMMITTED"), 1);
	assert_true(ck_store_owner_degraded(f->dir)); /* for crikeep(1) */
	const char *full = strstr(f->log, "going on in memory");
	assert_non_null(full);
	assert_true(full < strstr(f->log, "handed over"));
	small_disk_make_space(f->dir);
	fx_advance(f, 2 * S);
	fx_commit(f, &other, "s2");
	assert_int_equal(lines_of(f->log, "its history has a gap"), 1);
	assert_false(ck_store_owner_degraded(f->dir));
	fx_advance(f, 2 * S);
	assert_int_equal(fx_counter(f, "handed_back"), 1);
	assert_int_equal(fx_counter(f, "write_failures"), 1); /* the others were not tried */
	unmount(f);
}

/* What was handed over from memory is kept again by the next life, and is handed over again. */
static void hand_over_on_a_full_disk_survives_a_crash(void **state)
{
	struct fixture *f = *state;
	struct fx_ask kept = fx_sandbox("kept");
	small_disk_mount(f->dir);
	fx_open(f);
	fx_keep(f, &kept, "s1");
	small_disk_fill(f->dir);
	struct ck_turn *turn = fx_wait(f, &kept);
	fx_answered_with(f, turn, "s1");
	ck_turn_free(turn);
	fx_reopen(f); /* closing cannot write it either */
	assert_string_equal(fx_rows(f), "KEPT s1");
	assert_int_equal(fx_hides(f, &kept, "s1"), 1);
	turn = fx_wait(f, &kept);
	fx_answered_with(f, turn, "s1");
	ck_turn_free(turn);
	small_disk_make_space(f->dir);
	fx_advance(f, 2 * S);
	assert_string_equal(fx_rows(f), "COMMITTED s1");
	assert_int_equal(f->asked[FX_DESTROY], 0);
	unmount(f);
}

static void full_disk_at_the_start_is_worked_around(void **state)
{
	struct fixture *f = *state;
	struct fx_ask ask = fx_sandbox("web"), other = fx_sandbox("other");
	small_disk_mount(f->dir);
	small_disk_fill(f->dir);
	fx_open(f);
	assert_int_equal(lines_of(f->log, "there is no database"), 1);
	fx_keep(f, &ask, "s1");
	struct ck_turn *turn = fx_wait(f, &ask);
	fx_answered_with(f, turn, "s1");
	ck_turn_free(turn);
	fx_keep(f, &other, "s2");
	small_disk_make_space(f->dir);
	fx_advance(f, 2 * S);
	assert_string_equal(fx_rows(f), "COMMITTED s1|KEPT s2");
	unmount(f);
}

static void nothing_spins_when_all_that_was_unwritten_is_gone(void **state)
{
	struct fixture *f = *state;
	struct fx_ask ask = fx_sandbox("web");
	struct ck_status why = { .size = sizeof(why), .grpc = 2 };
	small_disk_mount(f->dir);
	fx_open(f);
	small_disk_fill(f->dir);
	struct ck_turn *turn = fx_create(f, &ask);
	/* it came and went while nothing could be written */
	assert_int_equal(ck_turn_fail(turn, &why, NULL), 0);
	ck_turn_free(turn);
	fx_jump(f, 10 * S);
	assert_true(ck_cache_timeout(f->cache) > fx_now(f));
	small_disk_make_space(f->dir);
	unmount(f);
}

/* ---- read-only (K32) ------------------------------------------------------------------------- */

static void read_only_disk_is_read(void **state)
{
	struct fixture *f = *state;
	struct fx_ask kept = fx_sandbox("kept"), committed = fx_sandbox("committed"),
		      fresh = fx_sandbox("fresh");
	struct ck_turn *turn;
	small_disk_mount(f->dir);
	fx_open(f);
	fx_keep(f, &kept, "s1");
	fx_commit(f, &committed, "s2");
	fx_close(f);
	assert_int_equal(mount(NULL, f->dir, NULL, MS_REMOUNT | MS_RDONLY, NULL), 0);
	fx_open(f);
	assert_int_equal(lines_of(f->log, "there is no database"), 1);
	/* it is known, although nothing can be written */
	assert_int_equal(fx_hides(f, &kept, "s1"), 1);
	assert_int_equal(fx_hides(f, &committed, "s2"), 0);
	assert_int_equal(fx_begin(f, &committed, &turn), CK_HAND_BACK);
	ck_turn_free(turn);
	turn = fx_wait(f, &kept);
	fx_answered_with(f, turn, "s1");
	ck_turn_free(turn);
	fx_commit(f, &fresh, "s3");
	assert_int_equal(mount(NULL, f->dir, NULL, MS_REMOUNT, NULL), 0);
	fx_advance(f, 2 * S);
	assert_string_equal(fx_rows(f), "COMMITTED s1|COMMITTED s2|COMMITTED s3");
	assert_int_equal(f->asked[FX_DESTROY], 0);
	unmount(f);
}

/* ---- damage (K33) ---------------------------------------------------------------------------- */

/* only SQLite may open the database in the process that owns it, so another process overwrites its
 * pages, from page @page on */
static void damage(struct fixture *f, const char *name, off_t from)
{
	char path[512], noise[4096];
	struct stat st;
	int status;
	snprintf(path, sizeof(path), "%s/%s", f->dir, name);
	memset(noise, 0x5a, sizeof(noise));
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		int fd = open(path, O_WRONLY);
		if (fd < 0 || fstat(fd, &st) < 0)
			_exit(1);
		for (off_t at = from; at < st.st_size; at += (off_t)sizeof(noise))
			if (pwrite(fd, noise, sizeof(noise), at) < 0)
				_exit(1);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* Nobody else can write while the cache has it open, so its own connection does. */
static void behind_its_back(struct fixture *f, const char *sql)
{
	assert_int_equal(sqlite3_exec(f->cache->store->db, sql, NULL, NULL, NULL), SQLITE_OK);
}

/* The schema has no condition that a row of ours could break. */
#define REFUSE(what) \
	"CREATE TEMP TRIGGER refuse BEFORE " what " ON main.entry WHEN NEW.container = 'app'" \
	" BEGIN SELECT RAISE(ABORT, 'a row of app'); END"
#define TAKE_AGAIN "DROP TRIGGER refuse"

static void refused_row_stays_in_memory_alone(void **state)
{
	struct fixture *f = *state;
	struct fx_ask kept = fx_sandbox("kept"), odd = fx_container("web", "s0", "app"),
		      later = fx_sandbox("later"), last = fx_sandbox("last");
	fx_open(f);
	fx_keep(f, &kept, "s1");
	behind_its_back(f, REFUSE("INSERT"));
	struct ck_turn *turn = fx_create(f, &odd);
	assert_string_equal(fx_rows(f), "KEPT s1");
	fx_commit(f, &later, "s2");
	assert_string_equal(fx_rows(f), "KEPT s1|COMMITTED s2");
	struct ck_turn *again = fx_wait(f, &kept);
	fx_answered_with(f, again, "s1");
	ck_turn_free(again);
	assert_int_equal(lines_of(f->log, "the database refuses its row"), 1);
	assert_int_equal(lines_of(f->log, "cannot be written"), 0);
	/* from memory, as on a full disk */
	assert_int_equal(fx_make(f, turn, &odd, "c1"), CK_HAND_BACK);
	ck_turn_answered(turn, CK_DELIVERED);
	ck_turn_free(turn);
	behind_its_back(f, TAKE_AGAIN);
	fx_commit(f, &last, "s3"); /* tried again with the next round */
	assert_string_equal(fx_rows(f), "COMMITTED s1|COMMITTED c1|COMMITTED s2|COMMITTED s3");
	fx_reopen(f);
	assert_string_equal(fx_rows(f), "COMMITTED s1|COMMITTED c1|COMMITTED s2|COMMITTED s3");
}

static void refused_commit_is_handed_over_from_memory(void **state)
{
	struct fixture *f = *state;
	struct fx_ask kept = fx_container("web", "s0", "app"), other = fx_sandbox("other");
	fx_open(f);
	fx_keep(f, &kept, "c1");
	behind_its_back(f, REFUSE("UPDATE"));
	struct ck_turn *turn = fx_wait(f, &kept);
	fx_answered_with(f, turn, "c1");
	ck_turn_free(turn);
	assert_int_equal(fx_hides(f, &kept, "c1"), 0);
	assert_int_equal(lines_of(f->log, "the database refuses its row"), 1);
	assert_string_equal(fx_rows(f), "KEPT c1");
	fx_advance(f, 2 * S); /* the counters are written */
	assert_true(ck_cache_timeout(f->cache) <= fx_now(f) + 2 * S);
	behind_its_back(f, TAKE_AGAIN);
	fx_advance(f, 2 * S); /* tried again, also if nothing else happens */
	assert_string_equal(fx_rows(f), "COMMITTED c1");
	fx_commit(f, &other, "s2");
	assert_string_equal(fx_rows(f), "COMMITTED c1|COMMITTED s2");
}

static unsigned commits;

static void count_commit(const char *when, const char *what)
{
	(void)what;
	commits += !strcmp(when, "after");
}

static void a_row_refused_for_ever_is_tried_less_and_less_often(void **state)
{
	struct fixture *f = *state;
	struct fx_ask odd = fx_container("web", "s0", "app"), other = fx_sandbox("other");
	fx_open(f);
	fx_keep(f, &other, "s1");
	behind_its_back(f, REFUSE("INSERT"));
	struct ck_turn *turn = fx_create(f, &odd);
	fx_advance(f, 2 * S); /* the counters are written */
	commits = 0;
	ck_crash_hook = count_commit;
	fx_advance(f, 5 * S);
	assert_in_range(commits, 1, 3);
	fx_advance(f, 300 * S);
	assert_in_range(commits, 6, 12);
	commits = 0;
	fx_settle(f);
	ck_object_seen(f->cache, CK_SANDBOX, "s1", CK_CONDITION_READY); /* changes nothing */
	ck_crash_hook = NULL;
	assert_int_equal(commits, 0);
	behind_its_back(f, TAKE_AGAIN);
	fx_advance(f, CK_BACKOFF_MAX);
	assert_string_equal(fx_rows(f), "KEPT s1|CREATING -");
	assert_int_equal(lines_of(f->log, "the database refuses its row"), 1);
	ck_turn_free(turn);
}

/* While nothing could be written, one entry lost a key and another one, which had changed before,
 * got it. */
static void late_rows_free_a_key_before_another_takes_it(void **state)
{
	struct fixture *f = *state;
	struct fx_ask kept = fx_container("web", "s0", "app");
	char path[512];
	sqlite3 *db;
	fx_open(f);
	fx_keep(f, &kept, "c1");
	fx_exists(f, &kept, "c2");
	f->fail[FX_DESTROY] = 14;
	fx_reopen(f);
	assert_string_equal(fx_rows(f), "KEPT c1|EVICTING c2");
	snprintf(path, sizeof(path), "%s/crikeep.db", f->dir);
	behind_its_back(f, "ROLLBACK"); /* it holds the lock that another one is to have */
	assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	fx_advance(f, 3 * S); /* destroying c2 fails once more */
	fx_condition(f, "c1", CK_CONDITION_DEAD);
	ck_object_seen(f->cache, CK_CONTAINER, "c1", CK_CONDITION_DEAD);
	fx_condition(f, "c2", CK_CONDITION_RUNNING);
	ck_object_seen(f->cache, CK_CONTAINER, "c2", CK_CONDITION_RUNNING);
	assert_string_equal(fx_rows(f), "KEPT c1|EVICTING c2");
	sqlite3_close(db);
	fx_advance(f, 2 * S);
	assert_int_equal(lines_of(f->log, "the database refuses its row"), 0);
	assert_string_equal(fx_rows(f), "EVICTING c1|COMMITTED c2");
}

/* Nobody but root can write such rows, and no rule says which of the two is true. */
static void two_rows_of_one_key_are_damage(void **state)
{
	static const struct {
		const char *twin; /* what it has of its own beside an id and an object */
		bool damage;
	} cases[] = {
		{ "state = 2", true },
		{ "state = 4", true },
		{ "state = 7, object = NULL, reply = NULL", true },
		{ "uid = 'another'", true }, /* the key of a container does not say its pod */
		{ "state = 5", false },
		{ "state = 8", false },
		{ "state = 4, origin = 2", false },
		{ "attempt = 1", false },
		{ "sandbox = 's9'", false },
	};
	struct fixture *f = *state;
	size_t damaged = 0;
	fx_open(f);
	for (size_t i = 0; i < CK_COUNT(cases); i++) {
		char sandbox[16], object[16], other[16], is[32], sql[512];
		snprintf(sandbox, sizeof(sandbox), "sb%zu", i);
		snprintf(object, sizeof(object), "c%zu", i);
		snprintf(other, sizeof(other), "s%zu", i);
		struct fx_ask kept = fx_container("web", sandbox, "app"), next = fx_sandbox(other);
		fx_keep(f, &kept, object);
		snprintf(sql, sizeof(sql),
			 "CREATE TEMP TABLE twin AS SELECT * FROM entry WHERE sandbox = '%s';"
			 "UPDATE twin SET id = id + 1000, object = 'twin', %s;"
			 "INSERT INTO entry SELECT * FROM twin; DROP TABLE twin",
			 sandbox, cases[i].twin);
		behind_its_back(f, sql);
		fx_keep(f, &next, other); /* with it, that row is written */
		fx_reopen(f);
		damaged += cases[i].damage;
		if (lines_of(f->log, "has the key of another one") != damaged)
			fail_msg("%s", cases[i].twin);
		snprintf(is, sizeof(is), "%s c%zu", cases[i].damage ? "COMMITTED" : "KEPT", i);
		assert_non_null(strstr(fx_rows(f), is)); /* the host's lists tell what exists */
	}
}

static void damage_between_lives_is_set_aside(void **state)
{
	struct fixture *f = *state;
	struct fx_ask kept = fx_sandbox("kept"), committed = fx_sandbox("committed"),
		      fresh = fx_sandbox("fresh");
	fx_open(f);
	fx_keep(f, &kept, "s1");
	fx_commit(f, &committed, "s2");
	fx_close(f);
	damage(f, "crikeep.db", 4096);
	fx_open(f);
	assert_int_equal(set_aside(f), 1);
	assert_int_equal(lines_of(f->log, "set aside as crikeep.db.damaged-"), 1);
	/* the host's lists tell what exists: the kubelet may take or remove all of it, and we
	 * neither destroy nor hand out any of it */
	assert_string_equal(fx_rows(f), "COMMITTED s1|COMMITTED s2");
	assert_int_equal(fx_hides(f, &kept, "s1"), 0);
	struct ck_turn *turn;
	assert_int_equal(fx_begin(f, &kept, &turn), -CK_ECONFLICT);
	fx_commit(f, &fresh, "s3");
	fx_reopen(f);
	assert_int_equal(set_aside(f), 1);
	assert_int_equal(fx_counter(f, "set_aside"), 1);
	assert_int_equal(f->asked[FX_DESTROY], 0);
}

static void damage_while_running_loses_nothing(void **state)
{
	struct fixture *f = *state;
	struct fx_ask kept = fx_sandbox("kept"), other = fx_sandbox("other"), changed = kept;
	fx_open(f);
	fx_keep(f, &other, "s2");
	fx_keep(f, &kept, "s1");
	fx_reopen(f); /* SQLite has no part of the fingerprints in memory now */
	damage(f, "crikeep.db", 4096);
	changed.env = "changed"; /* to name the difference, its digests must be read */
	struct ck_turn *turn = fx_wait(f, &changed);
	assert_int_equal(fx_decision(f, turn), CK_CREATE);
	assert_true(fx_was_destroyed(f, "s1"));
	assert_int_equal(set_aside(f), 1);
	assert_string_equal(fx_rows(f), "KEPT s2|GONE s1|CREATING -"); /* from memory */
	assert_int_equal(fx_make(f, turn, &changed, "s3"), CK_HAND_BACK);
	ck_turn_free(turn);
	turn = fx_wait(f, &other); /* equal roots need no digests */
	fx_answered_with(f, turn, "s2");
	ck_turn_free(turn);
	fx_reopen(f);
	assert_string_equal(fx_rows(f), "COMMITTED s2|GONE s1|COMMITTED s3");
	assert_int_equal(set_aside(f), 1);
}

/* SQLite finds nothing wrong with it. Digests that can be read go into the new file. */
static void a_damaged_fingerprint_sets_the_database_aside(void **state)
{
	struct fixture *f = *state;
	struct fx_ask bad = fx_sandbox("bad"), good = fx_sandbox("good");
	char path[512], sql[128];
	sqlite3 *db;
	bad.env = good.env = "before";
	fx_open(f);
	fx_keep(f, &bad, "s1");
	fx_keep(f, &good, "s2");
	for (const struct ck_entry *e = ck_machine_entries(f->cache->machine); e;
	     e = e->by_row.next)
		assert_null(e->row.record.digests); /* memory holds the roots (K30) */
	snprintf(sql, sizeof(sql), /* syncs are counted in this process */
		 "PRAGMA synchronous = OFF; "
		 "UPDATE fingerprint SET leaves = x'ff' WHERE entry = %llu",
		 (unsigned long long)fx_row_id(f, "s1"));
	fx_close(f);
	snprintf(path, sizeof(path), "%s/crikeep.db", f->dir);
	assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
	fx_open(f);
	bad.env = "after";
	struct ck_turn *turn = fx_wait(f, &bad);
	assert_int_equal(fx_decision(f, turn), CK_CREATE);
	ck_turn_free(turn);
	assert_int_equal(set_aside(f), 1);
	good.env = "after";
	turn = fx_wait(f, &good);
	assert_int_equal(fx_decision(f, turn), CK_CREATE);
	assert_non_null(strstr(fx_why(f), "the request changed: config."));
	ck_turn_free(turn);
	assert_int_equal(set_aside(f), 1);
}

static void removed_database_is_written_anew(void **state)
{
	struct fixture *f = *state;
	struct fx_ask kept = fx_sandbox("kept"), other = fx_sandbox("other");
	char path[512];
	fx_open(f);
	fx_keep(f, &kept, "s1");
	snprintf(path, sizeof(path), "%s/crikeep.db", f->dir);
	assert_int_equal(unlink(path), 0);
	fx_advance(f, 700 * S); /* something happens, and then it is noticed */
	fx_keep(f, &other, "s2");
	fx_advance(f, S);
	assert_true(fx_was_destroyed(f, "s1"));
	assert_non_null(strstr(fx_rows(f), "KEPT s2"));
	fx_reopen(f);
	assert_non_null(strstr(fx_rows(f), "KEPT s2"));
}

/* ---- nobody waits for a disk ----------------------------------------------------------------- */

static uint64_t real_now(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * S + (uint64_t)ts.tv_nsec;
}

static off_t wal_size(struct fixture *f)
{
	char path[512];
	struct stat st;
	snprintf(path, sizeof(path), "%s/crikeep.db-wal", f->dir);
	/* this asks for its size and does not open the file */
	return stat(path, &st) == 0 ? st.st_size : 0;
}

/* @n transitions with large replies; returns the longest call and the largest WAL */
static void work(struct fixture *f, unsigned n, uint64_t *ret_longest, off_t *ret_wal)
{
	static char reply[16384];
	uint64_t longest = 0;
	off_t largest = 0;
	/* begin is one transition, finish is one, and forgetting is a third */
	for (unsigned i = 0; i < n; i += 2) {
		char name[32], id[32];
		uint64_t t[5];
		struct ck_turn *turn;
		snprintf(name, sizeof(name), "pod-%u", i);
		snprintf(id, sizeof(id), "id-%u", i);
		struct fx_ask ask = fx_sandbox(name);
		struct ck_result result = {
			.size = sizeof(result), .id = id, .reply = reply, .reply_len = sizeof(reply)
		};
		t[0] = real_now();
		assert_int_equal(fx_begin(f, &ask, &turn), CK_CREATE);
		t[1] = real_now();
		assert_int_equal(ck_turn_finish(turn, &result, NULL), CK_HAND_BACK);
		t[2] = real_now();
		ck_turn_free(turn);
		assert_int_equal(ck_object_removed(f->cache, CK_SANDBOX, id), 0);
		t[3] = real_now();
		assert_true(ck_cache_process(f->cache, NULL) >= 0);
		t[4] = real_now();
		for (int k = 0; k < 4; k++)
			longest = t[k + 1] - t[k] > longest ? t[k + 1] - t[k] : longest;
		largest = wal_size(f) > largest ? wal_size(f) : largest;
	}
	*ret_longest = longest;
	*ret_wal = largest;
}

/* A busy machine has its own pauses. But nothing may wait for a reader that never ends. */
static void assert_nobody_waited(uint64_t longest)
{
	uint64_t slow = ck_test_env("CK_TEST_SLOW", 1); /* 0 in check-one: no alarm */
	if (longest > S * (slow ? slow : 1))
		fail_msg("a call took %llu ms", (unsigned long long)(longest / CK_NS_PER_MS));
}

/* a directory for temporary files on a disk; false: there is none */
static bool make_dir_on_disk(char *dir, size_t size)
{
	const char *const places[] = { getenv("TMPDIR"), "/var/tmp" };
	struct statfs fs;
	for (size_t i = 0; i < CK_COUNT(places); i++) {
		snprintf(dir, size, "%s/crikeep-disk.XXXXXX", places[i] ? places[i] : "/tmp");
		assert_non_null(mkdtemp(dir));
		assert_int_equal(statfs(dir, &fs), 0);
		if (fs.f_type != TMPFS_MAGIC)
			return true;
		rmdir(dir);
	}
	return false;
}

static void no_call_waits_for_a_disk_to_sync(void **state)
{
	struct fixture *f = *state;
	uint64_t longest;
	off_t wal;
	char disk[256];
	if (!make_dir_on_disk(disk, sizeof(disk))) {
		print_message("# neither TMPDIR nor /var/tmp is on a disk\n");
		skip();
	}
	assert_int_equal(rmdir(f->dir), 0);
	memcpy(f->dir, disk, sizeof(disk));
	fx_open(f);
	work(f, 1000, &longest, &wal);
	assert_nobody_waited(longest);
	assert_in_range(wal, 0, CK_WAL_LIMIT);
	fx_reopen(f);
	assert_int_equal(syncs, 0);
	assert_string_equal(fx_rows(f), "");
}

/* ---- a reader that is stopped while it reads: this program again, as READER_... says --------- */

#define READER "CK_DISK_READER"
#define PATH   "CK_DISK_PATH"

static void stop_here(void)
{
	raise(SIGSTOP);
}

static int reader(const char *how, const char *dir)
{
	struct ck_reader *reader;
	if (!strcmp(how, "dump")) { /* crikeep's own reader, in its transaction */
		ck_copy_hook = stop_here;
		return ck_reader_open(dir, CK_READ_ROWS, &reader, NULL) < 0;
	}
	char path[512]; /* a foreign tool, inside a transaction */
	sqlite3 *db;
	sqlite3_stmt *stmt;
	bool writes = !strcmp(how, "writer");
	snprintf(path, sizeof(path), "%s/crikeep.db", dir);
	if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL) ||
	    sqlite3_exec(db, writes ? "BEGIN IMMEDIATE" : "BEGIN", NULL, NULL, NULL) ||
	    sqlite3_prepare_v2(db, "SELECT count(*) FROM entry", -1, &stmt, NULL) ||
	    sqlite3_step(stmt) != SQLITE_ROW)
		return 1;
	stop_here();
	return 0;
}

static void reader_stops(struct fixture *f, const char *how)
{
	char reader[64], path[300], *argv[] = { (char *)"reader", NULL },
				    *envp[] = { reader, path, NULL };
	int status;
	snprintf(reader, sizeof(reader), READER "=%s", how);
	snprintf(path, sizeof(path), PATH "=%s", f->dir);
	assert_int_equal(posix_spawn(&stopped, "/proc/self/exe", NULL, NULL, argv, envp), 0);
	assert_int_equal(waitpid(stopped, &status, WUNTRACED), stopped);
	assert_true(WIFSTOPPED(status));
}

/* the list may be long, and everybody waits for a round */
static void gauges_name_it_outside_of_a_round(struct fixture *f)
{
	struct ck_gauges gauges;
	looks = looks_in_round = 0;
	watched = f->cache;
	int r = ck_gauges_read(f->cache, &gauges);
	watched = NULL;
	assert_int_equal(r, 0);
	assert_int_equal(gauges.wal_pid, stopped);
	assert_true(looks > 0);
	assert_int_equal(looks_in_round, 0);
}

static void stopped_reader_blocks_nobody(struct fixture *f, const char *how)
{
	struct fx_ask ask = fx_sandbox("kept");
	uint64_t longest;
	off_t wal;
	fx_open(f);
	fx_keep(f, &ask, "s1");
	reader_stops(f, how);
	char line[64];
	unsigned told = 0;
	snprintf(line, sizeof(line), "cannot start anew: process %d reads", (int)stopped);
	for (int i = 0; i < 50; i++) {
		f->log[0] = '\0'; /* the work fills it */
		work(f, 20, &longest, &wal);
		told += lines_of(f->log, line);
		assert_nobody_waited(longest);
	}
	assert_in_range(told, 1, 3);
	gauges_name_it_outside_of_a_round(f);
	reader_dies();
	work(f, 1000, &longest, &wal); /* cut when it started anew */
	work(f, 1000, &longest, &wal);
	assert_in_range(wal, 0, CK_WAL_LIMIT);
	fx_reopen(f);
	assert_string_equal(fx_rows(f), "KEPT s1");
}

static void stopped_reader_of_our_own_blocks_nobody(void **state)
{
	stopped_reader_blocks_nobody(*state, "dump");
}

static void stopped_reader_of_somebody_else_blocks_nobody(void **state)
{
	stopped_reader_blocks_nobody(*state, "sqlite");
}

/* It held the write lock first, so nothing can be written. That is as on a full disk, and costs one
 * wait for the lock a second and no more. */
static void stopped_writer_of_somebody_else_stops_no_pod(void **state)
{
	struct fixture *f = *state;
	struct fx_ask kept = fx_sandbox("kept"), fresh = fx_sandbox("fresh");
	uint64_t longest;
	char line[64];
	off_t wal;
	fx_open(f);
	fx_keep(f, &kept, "s1");
	fx_close(f);
	reader_stops(f, "writer");
	fx_open(f);
	snprintf(line, sizeof(line), "process %d holds a lock on the database", (int)stopped);
	assert_true(lines_of(f->log, line) > 0);
	struct ck_turn *turn = fx_wait(f, &kept);
	fx_answered_with(f, turn, "s1");
	ck_turn_free(turn);
	fx_commit(f, &fresh, "s2");
	assert_string_equal(fx_rows(f), "KEPT s1");
	uint64_t begun = real_now();
	work(f, 1000, &longest, &wal); /* 1,500 rounds, and the cache's clock stands still */
	assert_true(real_now() - begun < 1000 * CK_BUSY_MS * CK_NS_PER_MS);
	assert_nobody_waited(longest);
	reader_dies();
	f->log[0] = '\0'; /* the work has filled it */
	fx_advance(f, 2 * S);
	assert_int_equal(lines_of(f->log, "can be written again"), 1);
	assert_string_equal(fx_rows(f), "COMMITTED s1|COMMITTED s2");
}

/* its locks are listed under another device than st_dev says */
static void stopped_writer_on_btrfs_is_named(void **state)
{
	struct fixture *f = *state;
	char image[64], command[300];
	int status;
	small_disk_mount(f->dir); /* in a mount namespace, or the test is skipped */
	unmount(f);
	snprintf(image, sizeof(image), "%s.img", f->dir);
	snprintf(command, sizeof(command),
		 "truncate -s 120M %s && mkfs.btrfs -q %s && mount -o loop %s %s && chmod 700 %s",
		 image, image, image, f->dir, f->dir);
	status = system(command);
	unlink(image);
	if (status) {
		print_message("# no btrfs on a loop device\n");
		skip();
	}
	stopped_writer_of_somebody_else_stops_no_pod(state);
	fx_close(f);
	unmount(f);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(full_disk_never_stops_pods),
		TEST(full_disk_makes_log_and_counters_say_what_happened),
		TEST(hand_over_on_a_full_disk_survives_a_crash),
		TEST(full_disk_at_the_start_is_worked_around),
		TEST(nothing_spins_when_all_that_was_unwritten_is_gone),
		TEST(read_only_disk_is_read),
		TEST(refused_row_stays_in_memory_alone),
		TEST(refused_commit_is_handed_over_from_memory),
		TEST(a_row_refused_for_ever_is_tried_less_and_less_often),
		TEST(late_rows_free_a_key_before_another_takes_it),
		TEST(two_rows_of_one_key_are_damage),
		TEST(damage_between_lives_is_set_aside),
		TEST(damage_while_running_loses_nothing),
		TEST(a_damaged_fingerprint_sets_the_database_aside),
		TEST(removed_database_is_written_anew),
		TEST(no_call_waits_for_a_disk_to_sync),
		TEST(stopped_reader_of_our_own_blocks_nobody),
		TEST(stopped_reader_of_somebody_else_blocks_nobody),
		TEST(stopped_writer_of_somebody_else_stops_no_pod),
		TEST(stopped_writer_on_btrfs_is_named),
	};
	if (getenv(READER))
		return reader(getenv(READER), getenv(PATH));
	return CK_TEST_MAIN(tests);
}
