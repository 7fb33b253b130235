/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Readers, and what keeps the WAL short: an owner writes while others read, are stopped in the
 * middle, or never finish an fsync. Readers run in their own process: in the owner's they would
 * drop SQLite's locks.
 */
#define CK_TEST_SECONDS 120
#include "tests/unit/harness.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/rows.h"

struct fixture {
	struct place place;
	struct ck_store *store;
	struct ck_error err;
	struct ck_row row; /* what transitions() changes */
	off_t wal_max;
	int progress[2]; /* a pipe: one byte for each finished read */
};

/* ---- an fsync that does not return ----------------------------------------------------------- */

static pthread_mutex_t disk = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t disk_changed = PTHREAD_COND_INITIALIZER;
static bool disk_stuck;
static unsigned disk_waiting, disk_syncs, owner_syncs;
static pthread_t owner; /* the thread that runs the tests */

static int stuck_sync(void)
{
	pthread_mutex_lock(&disk);
	disk_syncs++;
	owner_syncs += pthread_equal(pthread_self(), owner) != 0;
	disk_waiting++;
	pthread_cond_broadcast(&disk_changed);
	while (disk_stuck)
		pthread_cond_wait(&disk_changed, &disk);
	disk_waiting--;
	pthread_mutex_unlock(&disk);
	return 0;
}

/* SQLite calls these: functions of the program come before libc's */
int fsync(int fd) __attribute__((visibility("default")));
int fdatasync(int fd) __attribute__((visibility("default")));

int fsync(int fd)
{
	(void)fd;
	return stuck_sync();
}

int fdatasync(int fd)
{
	(void)fd;
	return stuck_sync();
}

static void disk_set_stuck(bool stuck)
{
	pthread_mutex_lock(&disk);
	disk_stuck = stuck;
	pthread_cond_broadcast(&disk_changed);
	pthread_mutex_unlock(&disk);
}

static void wait_until_a_sync_is_stuck(void)
{
	pthread_mutex_lock(&disk);
	while (!disk_waiting)
		pthread_cond_wait(&disk_changed, &disk);
	pthread_mutex_unlock(&disk);
}

/* ---- the owner ------------------------------------------------------------------------------- */

#define MUST(call)                                                             \
	do {                                                                   \
		if ((call) < 0) {                                              \
			fprintf(stderr, "%s: %s\n", #call, f->err.text);       \
			abort();                                               \
		}                                                              \
	} while (0)

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct ck_store_opened opened;
	place_make(&f->place);
	MUST(ck_store_open(f->place.dir, &f->store, &opened, &f->err));
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

/*
 * Makes @n transitions of a row, each in one round with the same transition of its twin: a reader
 * must always see both rows equal. The row has a reply of 8 KiB, so that the WAL grows fast.
 */
static void transitions(struct fixture *f, unsigned n)
{
	static const char reply[8192];
	struct stat st;

	if (!f->row.id) {
		f->row = row_make(f->store, "web", CK_STATE_KEPT);
		ck_shared_result_unref(f->row.result);
		f->row.result = ck_shared_result_new("0f1e2d3c4b5a", reply, sizeof(reply));
		struct ck_row twin = row_make(f->store, "twin", CK_STATE_KEPT);
		twin.requests = f->row.requests = 0;
		MUST(ck_store_begin(f->store, &f->err));
		MUST(ck_store_insert(f->store, &f->row, &f->err));
		MUST(ck_store_insert(f->store, &twin, &f->err));
		MUST(ck_store_commit(f->store, &f->err));
		ck_row_fini(&twin);
	}
	for (unsigned i = 0; i < n; i++) {
		struct ck_row twin = f->row;
		twin.id++;
		f->row.requests++;
		twin.requests++;
		twin.result = NULL;
		twin.state = CK_STATE_EVICTING;
		MUST(ck_store_begin(f->store, &f->err));
		MUST(ck_store_update(f->store, &f->row, &f->err));
		MUST(ck_store_note(f->store, &f->row, CK_WHAT_JOINED, 0, 0, i, 0, "text", &f->err));
		MUST(ck_store_update(f->store, &twin, &f->err));
		MUST(ck_store_commit(f->store, &f->err));
		if (stat(place_file(&f->place, "crikeep.db-wal"), &st) == 0 &&
		    st.st_size > f->wal_max)
			f->wal_max = st.st_size;
	}
}

static void assert_wal_stayed_small(struct fixture *f)
{
	if (f->wal_max > (off_t)CK_WAL_LIMIT)
		fail_msg("the WAL grew to %lld bytes", (long long)f->wal_max);
}

/* ---- readers in a process of their own ------------------------------------------------------- */

/*
 * AddressSanitizer's allocator has locks that fork() does not take: a child that is forked while
 * the checkpointer allocates would wait for ever. So wait first until all other threads wait.
 */
static void let_threads_rest(void)
{
#ifdef __SANITIZE_ADDRESS__
	bool busy = true;
	while (busy) {
		DIR *tasks = opendir("/proc/self/task");
		const struct dirent *task;
		busy = false;
		while (tasks && (task = readdir(tasks))) {
			char path[320], line[16] = "";
			snprintf(path, sizeof(path), "/proc/self/task/%s/syscall", task->d_name);
			FILE *file = atoi(task->d_name) > 0 && atoi(task->d_name) != getpid()
					     ? fopen(path, "re")
					     : NULL;
			if (!file)
				continue;
			busy = busy || (fgets(line, sizeof(line), file) && atol(line) != SYS_futex);
			fclose(file);
		}
		if (tasks)
			closedir(tasks);
	}
#endif
}

static pid_t in_a_child(struct fixture *f, int (*fn)(struct fixture *f))
{
	fflush(stdout);
	let_threads_rest();
	pid_t pid = fork();
	if (pid == 0) {
		/* a stopped child must not outlive a failed test */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (f->store)
			close(f->store->dirfd); /* otherwise it would still own the directory */
		_exit(fn(f));
	}
	return pid;
}

static int join_child(pid_t pid)
{
	int status;
	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return -1;
	return WEXITSTATUS(status);
}

static void wait_until_stopped(pid_t pid)
{
	int status;
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(WIFSTOPPED(status));
}

/* 0: what was read is complete and consistent */
static int read_once(struct fixture *f)
{
	struct ck_reader *reader;
	struct ck_error err = {0};
	int bad;

	if (ck_reader_open(f->place.dir,
			   CK_READ_ROWS | CK_READ_DIGESTS | CK_READ_HISTORY | CK_READ_COUNTERS,
			   &reader, &err) < 0) {
		fprintf(stderr, "reader: %s\n", err.text);
		return 2;
	}
	bad = reader->rows_n != 2 || reader->rows[0].requests != reader->rows[1].requests ||
	      reader->history_n != reader->rows[0].requests;
	if (bad)
		fprintf(stderr, "%zu rows, %u and %u, %zu lines\n", reader->rows_n,
			reader->rows_n > 0 ? reader->rows[0].requests : 0,
			reader->rows_n > 1 ? reader->rows[1].requests : 0, reader->history_n);
	ck_reader_free(reader);
	return bad;
}

static int read_many(struct fixture *f)
{
	int bad = 0;
	for (int i = 0; i < 50 && !bad; i++) {
		bad = read_once(f);
		if (write(f->progress[1], "", 1) != 1)
			bad = 3;
	}
	return bad;
}

/* This part is different in a WAL that started anew. After the owner has moved to a new database,
 * its WAL is empty until the next commit: the answer is `last` then. */
static uint64_t wal_salts(struct fixture *f, uint64_t last)
{
	uint64_t salts;
	/* SQLite has locks on the other files, not on this one */
	int fd = open(place_file(&f->place, "crikeep.db-wal"), O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	ssize_t n = pread(fd, &salts, sizeof(salts), 16);
	close(fd);
	assert_true(n == 0 || n == sizeof(salts));
	return n ? salts : last;
}

/*
 * The WAL starts anew while copies are made. Each time spoils at most one try of the reader. So a
 * reader comes back often, and needs fewer tries than it has, even if it is slow.
 */
static void a_reader_always_sees_whole_rounds(void **state)
{
	struct fixture *f = *state;
	unsigned starts = 0;
	ssize_t n = 1;
	char byte;

	transitions(f, 1);
	assert_int_equal(pipe2(f->progress, O_CLOEXEC), 0);
	pid_t pid = in_a_child(f, read_many);
	close(f->progress[1]);
	uint64_t salts = wal_salts(f, 0);
	while (n) {
		struct pollfd told = {.fd = f->progress[0], .events = POLLIN};
		if (poll(&told, 1, starts < CK_COPY_TRIES / 10 ? 0 : -1) == 1) {
			n = read(told.fd, &byte, 1);
			starts = 0;
		}
		transitions(f, 1);
		if (f->row.requests % 50 == 1)
			ck_store_idle(f->store);
		uint64_t now = wal_salts(f, salts);
		starts += now != salts;
		salts = now;
	}
	close(f->progress[0]);
	assert_int_equal(join_child(pid), 0);
	assert_wal_stayed_small(f);
}

static unsigned hooks_left;

static void stop_here(void)
{
	if (hooks_left && --hooks_left == 0)
		raise(SIGSTOP);
}

static int read_and_stop(struct fixture *f)
{
	ck_copy_hook = stop_here;
	return read_once(f);
}

/* ck_copy_hook is called twice during a copy: between database and WAL, and before the check
 * whether the two belong together. */
static void a_stopped_reader_neither_blocks_nor_pins(void **state)
{
	struct fixture *f = *state;

	transitions(f, 1);
	for (hooks_left = 1; hooks_left <= 2; hooks_left++) {
		pid_t pid = in_a_child(f, read_and_stop);
		wait_until_stopped(pid);
		struct stat before, after;
		assert_int_equal(stat(place_file(&f->place, "crikeep.db"), &before), 0);
		transitions(f, 1000);
		ck_store_idle(f->store);
		transitions(f, 10);
		assert_int_equal(stat(place_file(&f->place, "crikeep.db"), &after), 0);
		/* nothing pinned the WAL, so the database did not move */
		if (!f->store->checkpointer)
			assert_int_equal(before.st_ino, after.st_ino);
		assert_wal_stayed_small(f);
		kill(pid, SIGCONT);
		assert_int_equal(join_child(pid), 0);
	}
}

static void a_stopped_reader_keeps_no_owner_out(void **state)
{
	struct fixture *f = *state;
	struct ck_store_opened opened;

	transitions(f, 5);
	hooks_left = 1;
	pid_t pid = in_a_child(f, read_and_stop);
	wait_until_stopped(pid);
	ck_store_close(f->store);
	f->store = NULL;
	MUST(ck_store_open(f->place.dir, &f->store, &opened, &f->err));
	transitions(f, 5);
	kill(pid, SIGCONT);
	assert_int_equal(join_child(pid), 0);
}

/* ---- a foreign reader: SQLite's own locks ---------------------------------------------------- */

static int foreign_read(struct fixture *f)
{
	sqlite3 *db;
	sqlite3_stmt *stmt;
	int64_t first, second;

	if (sqlite3_open(place_file(&f->place, "crikeep.db"), &db) != SQLITE_OK ||
	    sqlite3_exec(db, "BEGIN", NULL, NULL, NULL) != SQLITE_OK)
		return 3;
	if (ck_sql_number(db, "SELECT requests FROM entry WHERE id = 1", &first, NULL) < 0)
		return 4;
	sqlite3_prepare_v2(db, "SELECT * FROM entry", -1, &stmt, NULL);
	sqlite3_step(stmt);
	raise(SIGSTOP);
	sqlite3_finalize(stmt);
	/* it still sees the old state */
	if (ck_sql_number(db, "SELECT requests FROM entry WHERE id = 2", &second, NULL) < 0 ||
	    first != second)
		return 5;
	sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
	/* by default this connection believes that it is the last one, and would remove the WAL by
	 * its name */
	sqlite3_close(db);
	return 0;
}

static void a_stopped_foreign_reader_is_moved_away_from(void **state)
{
	struct fixture *f = *state;
	struct stat before, after;

	transitions(f, 1);
	pid_t pid = in_a_child(f, foreign_read);
	wait_until_stopped(pid);
	assert_int_equal(stat(place_file(&f->place, "crikeep.db"), &before), 0);
	transitions(f, 1000);
	assert_wal_stayed_small(f);
	assert_int_equal(stat(place_file(&f->place, "crikeep.db"), &after), 0);
	assert_int_not_equal(before.st_ino, after.st_ino);
	kill(pid, SIGCONT);
	assert_int_equal(join_child(pid), 0);
	assert_int_equal(access(place_file(&f->place, "crikeep.db-wal"), F_OK), 0);
	assert_int_equal(join_child(in_a_child(f, read_once)), 0);
}

/* ---- a disk that does not answer ------------------------------------------------------------- */

static void *release_disk_later(void *arg)
{
	(void)arg;
	usleep(20000);
	disk_set_stuck(false);
	return NULL;
}

static void no_call_waits_for_an_fsync(void **state)
{
	struct fixture *f = *state;
	char name[512];
	pthread_t thread;

	transitions(f, 1);
	disk_set_stuck(true);
	ck_store_idle(f->store);
	if (f->store->checkpointer) /* on tmpfs there is no such thread, and nothing is synced */
		wait_until_a_sync_is_stuck();
	transitions(f, 1000); /* this would not return if any of them waited */
	ck_store_idle(f->store);
	transitions(f, 10);
	assert_wal_stayed_small(f);
	assert_int_equal(join_child(in_a_child(f, read_once)), 0);
	MUST(ck_store_set_aside(f->store, name, &f->err));
	ck_row_fini(&f->row);
	transitions(f, 1000);
	ck_store_idle(f->store);
	assert_wal_stayed_small(f);
	assert_int_equal(pthread_create(&thread, NULL, release_disk_later, NULL), 0);
	ck_store_close(f->store); /* waits only for the call that is stuck */
	f->store = NULL;
	pthread_join(thread, NULL);
}

static void only_the_checkpointer_syncs(void **state)
{
	struct fixture *f = *state;
	bool thread = f->store->checkpointer;
	char name[512];

	transitions(f, 1000);
	MUST(ck_store_set_aside(f->store, name, &f->err));
	ck_row_fini(&f->row);
	transitions(f, 10);
	disk_set_stuck(true);
	ck_store_idle(f->store);
	if (thread)
		wait_until_a_sync_is_stuck();
	disk_set_stuck(false);
	ck_store_close(f->store);
	f->store = NULL;
	assert_true(disk_syncs > 0 || !thread);
	assert_int_equal(owner_syncs, 0);
}

/* ---- what is read ---------------------------------------------------------------------------- */

static void a_dump_has_everything(void **state)
{
	struct fixture *f = *state;
	struct ck_counters counters = {.kept = 4, .imported = 2};
	struct ck_reader *reader;

	transitions(f, 3);
	MUST(ck_store_begin(f->store, &f->err));
	MUST(ck_store_counters(f->store, &counters, &f->err));
	f->row.reason = CK_REASON_TTL;
	MUST(ck_store_note(f->store, &f->row, CK_WHAT_MOVED, CK_STATE_KEPT, CK_STATE_EVICTING, 99,
			   5, "why", &f->err));
	MUST(ck_store_commit(f->store, &f->err));
	ck_store_close(f->store);
	f->store = NULL;
	MUST(ck_reader_open(f->place.dir,
			    CK_READ_ROWS | CK_READ_DIGESTS | CK_READ_HISTORY | CK_READ_COUNTERS,
			    &reader, &f->err));
	assert_false(reader->owner_alive);
	assert_int_equal(reader->schema, CK_SCHEMA_VERSION);
	assert_int_equal(reader->rows_n, 2);
	assert_int_equal(reader->rows[0].record.digests_len, f->row.record.digests_len);
	assert_int_equal(reader->counters.kept, 4);
	assert_int_equal(reader->counters.imported, 2);
	assert_int_equal(reader->history_n, 4);
	const struct ck_history_row *line = &reader->history[3];
	assert_int_equal(line->seq, 4);
	assert_int_equal(line->entry, f->row.id);
	assert_string_equal(line->who, "sandbox ns/web attempt 0");
	assert_string_equal(line->object, "0f1e2d3c4b5a");
	assert_int_equal(line->what, CK_WHAT_MOVED);
	assert_int_equal(line->from, CK_STATE_KEPT);
	assert_int_equal(line->to, CK_STATE_EVICTING);
	assert_int_equal(line->reason, CK_REASON_TTL);
	assert_int_equal(line->at, 99);
	assert_int_equal(line->grpc, 5);
	assert_string_equal(line->detail, "why");
	assert_string_equal(line->boot, BOOT);
	assert_true(line->wall > 1500000000);
	ck_reader_free(reader);
}

static int read_with_owner(struct fixture *f)
{
	struct ck_reader *reader;
	struct ck_error err;
	if (ck_reader_open(f->place.dir, CK_READ_COUNTERS, &reader, &err) < 0)
		return 1;
	int bad = !reader->owner_alive || reader->owner_pid != getppid() || reader->rows ||
		  reader->history;
	ck_reader_free(reader);
	return bad;
}

static void a_dump_names_the_living_owner(void **state)
{
	struct fixture *f = *state;
	assert_int_equal(join_child(in_a_child(f, read_with_owner)), 0);
}

static void where_there_is_no_database_nothing_is_found(void **state)
{
	struct fixture *f = *state;
	struct ck_reader *reader;
	char path[400];

	ck_store_close(f->store);
	f->store = NULL;
	assert_int_equal(ck_reader_open("/nonexistent/crikeep", CK_READ_ROWS, &reader, &f->err),
			 -CK_ENOTFOUND);
	snprintf(path, sizeof(path), "%s", place_file(&f->place, "crikeep.db"));
	assert_int_equal(truncate(path, 0), 0);
	assert_int_equal(ck_reader_open(f->place.dir, CK_READ_ROWS, &reader, &f->err),
			 -CK_ENOTFOUND);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(ck_reader_open(f->place.dir, CK_READ_ROWS, &reader, &f->err),
			 -CK_ENOTFOUND);
}

/* ---- the check ------------------------------------------------------------------------------- */

static char findings[4096];

static void add_finding(const char *finding, void *userdata)
{
	(void)userdata;
	size_t n = strlen(findings);
	snprintf(findings + n, sizeof(findings) - n, "%s\n", finding);
}

static int check_after(struct fixture *f, const char *sql)
{
	sqlite3 *db;
	findings[0] = '\0';
	assert_int_equal(sqlite3_open(place_file(&f->place, "crikeep.db"), &db), SQLITE_OK);
	sqlite3_exec(db, "PRAGMA ignore_check_constraints = ON", NULL, NULL, NULL);
	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
	return ck_reader_check(f->place.dir, add_finding, NULL, &f->err);
}

static void the_check_finds_what_is_wrong(void **state)
{
	struct fixture *f = *state;

	transitions(f, 3);
	ck_store_close(f->store);
	f->store = NULL;
	assert_int_equal(check_after(f, ""), 0);
	assert_int_equal(check_after(f, "DELETE FROM fingerprint WHERE entry = 1"), 1);
	assert_string_equal(findings, "entry 1: the fingerprint is missing\n");
	assert_true(check_after(f, "INSERT INTO fingerprint VALUES (1, x'ff'), (77, x'00')") >= 2);
	assert_non_null(strstr(findings, "fingerprint 77: the entry is missing"));
	assert_non_null(strstr(findings, "entry 1: fingerprint: malformed"));
	check_after(f, "UPDATE history SET what = 1, from_state = 2, to_state = 1 WHERE seq = 2");
	assert_non_null(strstr(findings, "history line 2: entry 1 moved from KEPT to CREATING"));
	check_after(f, "UPDATE entry SET stage = printf('%.*c', 100, 'x') WHERE id = 1");
	assert_non_null(strstr(findings, "entry 1: column stage"));
	check_after(f, "PRAGMA user_version = 0");
	assert_string_equal(findings, "schema version 0\n");
	check_after(f, "PRAGMA user_version = 9");
	assert_int_equal(ck_reader_check(f->place.dir, add_finding, NULL, &f->err), -CK_EVERSION);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_reader_always_sees_whole_rounds),
		TEST(a_stopped_reader_neither_blocks_nor_pins),
		TEST(a_stopped_reader_keeps_no_owner_out),
		TEST(a_stopped_foreign_reader_is_moved_away_from),
		TEST(no_call_waits_for_an_fsync),
		TEST(only_the_checkpointer_syncs),
		TEST(a_dump_has_everything),
		TEST(a_dump_names_the_living_owner),
		TEST(where_there_is_no_database_nothing_is_found),
		TEST(the_check_finds_what_is_wrong),
	};
	owner = pthread_self();
	return CK_TEST_MAIN(tests);
}
