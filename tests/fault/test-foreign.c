/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sqlite3 program at the database: it reads, writes, analyzes, rebuilds and locks, and is
 * stopped at each of its system calls in turn. The owner goes on, and every row that was committed
 * stays.
 */
#define CK_TEST_SECONDS 300
#include "tests/unit/harness.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>

#include "tests/unit/rows.h"

struct fixture {
	struct place place;
	struct ck_store *store;
	struct ck_row row;
	struct ck_error err;
	unsigned long stops; /* of all programs so far */
	uint64_t longest;    /* call of the owner, ns */
};

static uint64_t now(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * CK_NS_PER_S + (uint64_t)ts.tv_nsec;
}

/* ---- the owner ------------------------------------------------------------------------------- */

static void owner_opens(struct fixture *f)
{
	struct ck_store_opened opened = { 0 };
	uint64_t begun = now();
	if (ck_store_open(f->place.dir, &f->store, &opened, &f->err) < 0)
		fail_msg("open: %s", f->err.text);
	if (opened.set_aside)
		fail_msg("set aside: %s", opened.why.text);
	if (now() - begun > f->longest)
		f->longest = now() - begun;
}

static void owner_closes(struct fixture *f)
{
	ck_store_close(f->store);
	f->store = NULL;
}

/* One round: what it commits is counted in the row. */
static int round_of(struct fixture *f)
{
	uint64_t begun = now();
	struct ck_row row = f->row;
	row.requests++;
	int r = ck_store_begin(f->store, &f->err);
	if (r >= 0)
		r = ck_store_update(f->store, &row, &f->err);
	if (r >= 0)
		r = ck_store_note(f->store, &row, CK_WHAT_JOINED, 0, 0, 1, 0, "text", &f->err);
	if (r >= 0)
		r = ck_store_commit(f->store, &f->err);
	if (r >= 0)
		f->row.requests++;
	if (now() - begun > f->longest)
		f->longest = now() - begun;
	return r;
}

static void assert_nothing_is_lost(struct fixture *f)
{
	static struct rows rows;
	if (ck_store_load(f->store, rows_add, &rows, &f->err) < 0)
		fail_msg("load: %s", f->err.text);
	assert_int_equal(rows.n, 1);
	assert_int_equal(rows.row[0].requests, f->row.requests);
	assert_int_equal(rows.row[0].state, CK_STATE_KEPT);
	assert_int_equal(ck_store_digests(f->store, f->row.id, &rows.row[0].record, &f->err), 0);
	rows_fini(&rows);
}

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	place_make(&f->place);
	owner_opens(f);
	f->row = row_make(f->store, "web", CK_STATE_KEPT);
	assert_int_equal(ck_store_begin(f->store, &f->err), 0);
	assert_int_equal(ck_store_insert(f->store, &f->row, &f->err), 0);
	assert_int_equal(ck_store_commit(f->store, &f->err), 0);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;
	ck_row_fini(&f->row);
	ck_store_close(f->store);
	place_remove(&f->place);
	free(f);
	return 0;
}

/* ---- the program ----------------------------------------------------------------------------- */

/* The program, which is about to begin; 0: there is none, or it cannot be traced. */
static pid_t start(struct fixture *f, const char *sql)
{
	int status;
	char path[400];
	snprintf(path, sizeof(path), "%s", place_file(&f->place, "crikeep.db"));
	pid_t pid = fork();
	if (pid == 0) {
		int null = open("/dev/null", O_RDWR);
		if (f->store)
			close(f->store->dirfd); /* otherwise it would own the directory */
		dup2(null, 0);
		dup2(null, 1);
		dup2(null, 2);
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
			_exit(126);
		execlp("sqlite3", "sqlite3", "-batch", "-init", "/dev/null", path, sql,
		       (char *)NULL);
		_exit(127);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status))
		return 0;
	assert_int_equal(ptrace(PTRACE_SETOPTIONS, pid, NULL, PTRACE_O_EXITKILL), 0);
	return pid;
}

/* to its next system call, or out of it; false: it has ended */
static bool step(pid_t pid)
{
	int status;
	assert_int_equal(ptrace(PTRACE_SYSCALL, pid, NULL, NULL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFSTOPPED(status);
}

static const char *const scripts[] = {
	"SELECT count(*) FROM history; SELECT name, state FROM entry",
	"BEGIN; SELECT * FROM entry; SELECT * FROM entry; COMMIT",
	"PRAGMA integrity_check",
	"BEGIN IMMEDIATE; SELECT * FROM entry; COMMIT",
	"BEGIN EXCLUSIVE; SELECT * FROM entry; COMMIT",
	"PRAGMA wal_checkpoint(TRUNCATE)",
	"PRAGMA locking_mode = EXCLUSIVE; SELECT * FROM entry",
	"ANALYZE",
	"VACUUM",
	"REINDEX",
	"PRAGMA optimize(-1)",
	"ATTACH ':memory:' AS m; CREATE TABLE m.t AS SELECT * FROM entry",
	".dump",
	/* the others change what is ours, where they can */
	"UPDATE entry SET state = 5, requests = 0",
	"DELETE FROM entry; DROP TABLE history",
	"PRAGMA journal_mode = DELETE",
};
#define HARMLESS 13

static void skip_without_program(void)
{
	print_message("# there is no sqlite3, or it cannot be traced\n");
	skip();
}

/*
 * The owner works at half of the stops, and at the other half when the program runs again: if it
 * worked all the time, the program would try for 10 seconds to read what does not change meanwhile.
 */
static void stopped_anywhere_it_stops_no_owner(void **state)
{
	struct fixture *f = *state;
	for (size_t i = 0; i < 2 * CK_COUNT(scripts); i++) {
		const char *script = scripts[i / 2];
		pid_t pid = start(f, script);
		if (!pid)
			skip_without_program();
		for (unsigned long n = 0; step(pid); n++) {
			if (n / 16 % 2 != i % 2)
				continue;
			if (round_of(f) < 0)
				fail_msg("%s, stop %lu: %s", script, n, f->err.text);
			if (f->stops++ % 5 == 0)
				ck_store_idle(f->store);
		}
		assert_nothing_is_lost(f);
	}
	print_message("# %lu stops, the longest call took %llu us\n", f->stops,
		      (unsigned long long)(f->longest / 1000));
	assert_true(f->longest < CK_NS_PER_S * ck_test_env("CK_TEST_SLOW", 1) ||
		    !ck_test_env("CK_TEST_SLOW", 1));
	owner_closes(f);
	owner_opens(f);
	assert_nothing_is_lost(f);
}

/* ends without closing anything, as if killed */
static void a_life(struct fixture *f, unsigned rounds)
{
	int status;
	pid_t pid = fork();
	if (pid == 0) {
		owner_opens(f);
		for (unsigned i = 0; i < rounds; i++)
			if (round_of(f) < 0)
				_exit(1);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	f->row.requests += rounds;
}

/*
 * It begins when there is no owner, so it can hold any lock that SQLite has when an owner starts.
 * Then the owner knows all rows, and cannot write until the program goes on.
 */
static void stopped_anywhere_it_keeps_no_owner_out(void **state)
{
	struct fixture *f = *state;
	unsigned long rounds = ck_test_rounds(300), locked = 0;
	owner_closes(f);
	for (unsigned long i = 0; i < rounds; i++) {
		unsigned long stops = i * 7919 % 449; /* spread over the life of a program */
		if (i % 3)
			a_life(f, 2);
		pid_t pid = start(f, scripts[i % HARMLESS]);
		bool lives = pid;
		if (!pid)
			skip_without_program();
		while (lives && stops--)
			lives = step(pid);
		owner_opens(f);
		assert_nothing_is_lost(f);
		int r = round_of(f);
		if (r != -CK_EIO && r < 0)
			fail_msg("%s: %s", scripts[i % HARMLESS], f->err.text);
		locked += r < 0;
		while (lives)
			lives = step(pid);
		if (round_of(f) < 0)
			fail_msg("%s, afterwards: %s", scripts[i % HARMLESS], f->err.text);
		owner_closes(f);
	}
	print_message("# %lu programs, %lu held a lock; the longest call took %llu us\n", rounds,
		      locked, (unsigned long long)(f->longest / 1000));
	assert_true(f->longest < CK_NS_PER_S * ck_test_env("CK_TEST_SLOW", 1) ||
		    !ck_test_env("CK_TEST_SLOW", 1));
	owner_opens(f);
	assert_nothing_is_lost(f);
}

/* what any ANALYZE leaves is SQLite's, not ours, and not damage */
static void what_it_rebuilds_without_an_owner_is_still_the_database(void **state)
{
	struct fixture *f = *state;
	for (size_t i = 0; i < CK_COUNT(scripts) - 3; i++) {
		owner_closes(f);
		pid_t pid = start(f, scripts[i]);
		if (!pid)
			skip_without_program();
		while (step(pid))
			;
		owner_opens(f);
		assert_nothing_is_lost(f);
		assert_int_equal(round_of(f), 0);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(stopped_anywhere_it_stops_no_owner),
		TEST(stopped_anywhere_it_keeps_no_owner_out),
		TEST(what_it_rebuilds_without_an_owner_is_still_the_database),
	};
	return CK_TEST_MAIN(tests);
}
