/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Readers, and what keeps the WAL short: an owner writes while others read, or are stopped in the
 * middle. Readers run in their own process: in the owner's they would drop SQLite's locks.
 */
#define CK_TEST_SECONDS 120
#include "tests/unit/harness.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
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

/* ---- syncs are counted ----------------------------------------------------------------------- */

static unsigned syncs;

/* SQLite calls these: functions of the program come before libc's */
int fsync(int fd) __attribute__((visibility("default")));
int fdatasync(int fd) __attribute__((visibility("default")));

int fsync(int fd)
{
	(void)fd;
	syncs++;
	return 0;
}

int fdatasync(int fd)
{
	return fsync(fd);
}

/* ---- so are looks at the locks of all processes ---------------------------------------------- */

static unsigned looks;

FILE *fopen(const char *path, const char *mode) __attribute__((visibility("default")));

FILE *fopen(const char *path, const char *mode)
{
	FILE *(*real)(const char *, const char *);
	*(void **)&real = dlsym(RTLD_NEXT, "fopen");
	looks += !strcmp(path, "/proc/locks");
	return real(path, mode);
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

enum child { READ_ONCE, READ_MANY, READ_AND_STOP, READ_AS_NOBODY, READ_WITH_OWNER, FOREIGN_READ,
	     LIVE_AND_BE_KILLED };

#define CHILD    "CK_READERS_CHILD"
#define DIR_OF   "CK_READERS_DIR"
#define PROGRESS 9

/* This program again: a forked child would have this process's knowledge of SQLite's locks. */
static pid_t in_a_child(struct fixture *f, enum child what)
{
	char number[8];
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		/* a stopped child must not outlive a failed test */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (f->progress[1])
			dup2(f->progress[1], PROGRESS);
		snprintf(number, sizeof(number), "%d", what);
		setenv(CHILD, number, 1);
		setenv(DIR_OF, f->place.dir, 1);
		execl("/proc/self/exe", "reader", (char *)NULL);
		_exit(8);
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
		if (write(PROGRESS, "", 1) != 1)
			bad = 3;
	}
	return bad;
}

static void a_reader_always_sees_whole_rounds(void **state)
{
	struct fixture *f = *state;
	struct pollfd told = { .events = POLLIN };
	ssize_t n = 1;
	char byte;

	transitions(f, 1);
	assert_int_equal(pipe2(f->progress, O_CLOEXEC), 0);
	pid_t pid = in_a_child(f, READ_MANY);
	close(f->progress[1]);
	told.fd = f->progress[0];
	while (n) {
		if (poll(&told, 1, 0) == 1)
			n = read(told.fd, &byte, 1);
		transitions(f, 1);
		if (f->row.requests % 50 == 1)
			ck_store_idle(f->store);
	}
	close(f->progress[0]);
	assert_int_equal(join_child(pid), 0);
}

static void stop_here(void)
{
	ck_copy_hook = NULL; /* not in another try */
	raise(SIGSTOP);
}

static int read_and_stop(struct fixture *f)
{
	ck_copy_hook = stop_here;
	return read_once(f);
}

static long pinned_by(struct fixture *f)
{
	int dirfd = ck_store_pinned_dir(f->store);
	if (dirfd < 0)
		return 0;
	long pid = ck_store_wal_pid(dirfd);
	close(dirfd);
	return pid;
}

static char findings[4096];

static void add_finding(const char *finding, void *userdata)
{
	(void)userdata;
	size_t n = strlen(findings);
	snprintf(findings + n, sizeof(findings) - n, "%s\n", finding);
}

/* Its transaction pins the WAL, and nothing else. The log names it, once for each doubling. */
static void a_stopped_reader_only_makes_the_wal_grow(void **state)
{
	struct fixture *f = *state;
	uint64_t wal = 0;
	unsigned told = 0;
	long holder;

	transitions(f, 1);
	pid_t pid = in_a_child(f, READ_AND_STOP);
	wait_until_stopped(pid);
	assert_int_equal(pinned_by(f), 0);
	for (int i = 0; i < 80; i++) {
		transitions(f, 50);
		if (ck_store_pinned(f->store, &wal, &holder)) {
			told++;
			assert_int_equal(holder, pid);
			assert_in_range(wal, CK_WAL_PINNED, 64 << 20);
		}
	}
	assert_int_equal(told, 2);
	assert_int_equal(pinned_by(f), pid);
	char named[64];
	findings[0] = '\0';
	assert_int_equal(ck_reader_check(f->place.dir, add_finding, NULL, &f->err), 1);
	snprintf(named, sizeof(named), "process %ld reads the database", (long)pid);
	assert_non_null(strstr(findings, named));
	kill(pid, SIGCONT);
	assert_int_equal(join_child(pid), 0);
	transitions(f, 400);
	assert_int_equal(pinned_by(f), 0);
	f->wal_max = 0;
	transitions(f, 1000); /* cut when it started anew */
	assert_wal_stayed_small(f);
}

/* also one that was there first */
static void a_stopped_reader_keeps_no_owner_out(void **state)
{
	struct fixture *f = *state;
	struct ck_store_opened opened;

	transitions(f, 5);
	for (int owned = 0; owned <= 1; owned++) {
		if (!owned) {
			ck_store_close(f->store);
			f->store = NULL;
		}
		pid_t pid = in_a_child(f, READ_AND_STOP);
		wait_until_stopped(pid);
		if (owned) {
			ck_store_close(f->store);
			f->store = NULL;
		}
		MUST(ck_store_open(f->place.dir, &f->store, &opened, &f->err));
		assert_false(opened.no_database);
		transitions(f, 5);
		kill(pid, SIGCONT);
		assert_int_equal(join_child(pid), 0);
	}
}

/* ---- readers change nothing ------------------------------------------------------------------ */

static uint64_t look_at(const struct fixture *f)
{
	static const char *const names[] = { "crikeep.db", "crikeep.db-wal", "crikeep.db-shm" };
	uint64_t sum = 0;
	struct stat st;
	size_t files = 0;

	for (size_t i = 0; i < CK_COUNT(names); i++) {
		int fd = open(place_file(&f->place, names[i]), O_RDONLY | O_CLOEXEC);
		unsigned char page[4096];
		ssize_t n;
		if (fd < 0)
			continue;
		files++;
		assert_int_equal(fstat(fd, &st), 0);
		sum = sum * 31 + st.st_ino + (uint64_t)st.st_mtim.tv_nsec + (uint64_t)st.st_size;
		while ((n = read(fd, page, sizeof(page))) > 0)
			for (ssize_t k = 0; k < n; k++)
				sum = sum * 31 + page[k];
		close(fd);
	}
	return sum * 4 + files;
}

static int read_as_nobody(struct fixture *f)
{
	if (geteuid() == 0 && seteuid(65534) < 0)
		return 9;
	int r = read_once(f);
	/* LeakSanitizer traces this process when it ends */
	if (geteuid() != getuid() && (seteuid(getuid()) < 0 || prctl(PR_SET_DUMPABLE, 1) < 0))
		return 9;
	return r;
}

static int take_first(struct ck_row *row, void *userdata)
{
	struct ck_row *first = userdata;
	if (!first->id) {
		*first = *row;
		memset(row, 0, sizeof(*row));
	}
	return 0;
}

static int live_and_be_killed(struct fixture *f)
{
	struct ck_store_opened opened;
	struct ck_row row = { 0 };
	MUST(ck_store_open(f->place.dir, &f->store, &opened, &f->err));
	MUST(ck_store_load(f->store, take_first, &row, &f->err));
	f->row = row;
	transitions(f, 2);
	_exit(0); /* without closing anything */
}

static void assert_read_and_unchanged(struct fixture *f)
{
	uint64_t before = look_at(f);
	assert_int_equal(join_child(in_a_child(f, READ_ONCE)), 0);
	assert_true(before == look_at(f));
	assert_int_equal(join_child(in_a_child(f, READ_AS_NOBODY)), 0);
	assert_true(before == look_at(f));
}

/* As root, and as a user who may only read: beside an owner, after its end, after it was killed,
 * and without the shared memory. In another process, because of SQLite's locks. */
static void a_reader_changes_no_file(void **state)
{
	struct fixture *f = *state;
	static const char *const names[] = { "crikeep.db", "crikeep.db-wal", "crikeep.db-shm" };

	transitions(f, 3);
	ck_store_close(f->store);
	f->store = NULL;
	chmod(f->place.top, 0755);
	chmod(f->place.dir, 0755);
	chmod(place_file(&f->place, names[0]), 0644);
	assert_read_and_unchanged(f);
	assert_int_equal(access(place_file(&f->place, names[1]), F_OK), -1);
	assert_int_equal(join_child(in_a_child(f, LIVE_AND_BE_KILLED)), 0);
	for (size_t i = 0; i < CK_COUNT(names); i++)
		chmod(place_file(&f->place, names[i]), 0644);
	assert_int_equal(access(place_file(&f->place, names[1]), F_OK), 0);
	assert_read_and_unchanged(f);
	assert_int_equal(unlink(place_file(&f->place, names[2])), 0);
	assert_read_and_unchanged(f);
}

/* SQLite's first connection cuts the -shm to 3 bytes, makes it longer, and writes it. An owner that
 * was killed meanwhile, or found no space for it, leaves that, and nobody goes on. Beside a WAL
 * without a frame SQLite would wait for 10 s. */
static void a_reader_does_not_wait_for_shared_memory_that_nobody_makes(void **state)
{
	struct fixture *f = *state;

	transitions(f, 3);
	ck_store_close(f->store);
	f->store = NULL;
	chmod(f->place.top, 0755);
	chmod(f->place.dir, 0755);
	assert_int_equal(join_child(in_a_child(f, LIVE_AND_BE_KILLED)), 0);
	chmod(place_file(&f->place, "crikeep.db"), 0644);
	chmod(place_file(&f->place, "crikeep.db-wal"), 0644);
	chmod(place_file(&f->place, "crikeep.db-shm"), 0644);
	assert_int_equal(truncate(place_file(&f->place, "crikeep.db-shm"), 3), 0);
	assert_read_and_unchanged(f);
	assert_int_equal(truncate(place_file(&f->place, "crikeep.db-wal"), 32), 0);
	assert_read_and_unchanged(f);
	assert_int_equal(truncate(place_file(&f->place, "crikeep.db-shm"), 0), 0);
	assert_int_equal(truncate(place_file(&f->place, "crikeep.db-shm"), 32768), 0);
	assert_read_and_unchanged(f);
}

/* A WAL beside a database without a byte is what a new owner finds after an old one was killed
 * while it set the database aside. SQLite removes such a WAL. A reader must not: if it were stopped
 * just before, it would later remove the new owner's. */
static void a_reader_leaves_the_wal_of_an_empty_database(void **state)
{
	struct fixture *f = *state;

	ck_store_close(f->store);
	f->store = NULL;
	assert_int_equal(join_child(in_a_child(f, LIVE_AND_BE_KILLED)), 0);
	assert_int_equal(truncate(place_file(&f->place, "crikeep.db"), 0), 0);
	uint64_t before = look_at(f);
	assert_int_not_equal(join_child(in_a_child(f, READ_ONCE)), 0);
	assert_true(before == look_at(f));
	assert_int_equal(unlink(place_file(&f->place, "crikeep.db-shm")), 0);
	before = look_at(f);
	assert_int_not_equal(join_child(in_a_child(f, READ_ONCE)), 0);
	assert_true(before == look_at(f));
}

/* a reader who may only read, beside the owner */
static void beside_an_owner_reading_needs_no_more_than_that(void **state)
{
	struct fixture *f = *state;
	static const char *const names[] = { "crikeep.db", "crikeep.db-wal", "crikeep.db-shm" };

	chmod(f->place.top, 0755);
	chmod(f->place.dir, 0755);
	for (size_t i = 0; i < CK_COUNT(names); i++)
		chmod(place_file(&f->place, names[i]), 0644);
	for (int i = 0; i < 20; i++) {
		transitions(f, 1);
		assert_int_equal(join_child(in_a_child(f, READ_AS_NOBODY)), 0);
		if (i % 3 == 0)
			ck_store_idle(f->store);
	}
}

/* The disk was full when it began, or the reader knows it by another pid: whose the lock of the
 * writer is cannot be seen. */
static void beside_an_owner_without_a_pid_others_read_while_it_writes(void **state)
{
	struct fixture *f = *state;
	int status;

	transitions(f, 1);
	assert_int_equal(unlink(place_file(&f->place, "owner")), 0);
	pid_t pid = in_a_child(f, READ_ONCE);
	while (waitpid(pid, &status, WNOHANG) == 0) {
		transitions(f, 1);
		usleep(2000);
	}
	assert_int_equal(status, 0);
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
	sqlite3_close(db);
	return 0;
}

static void beside_a_stopped_foreign_reader_the_files_stay(void **state)
{
	static const char *const names[] = { "crikeep.db", "crikeep.db-wal", "crikeep.db-shm" };
	struct fixture *f = *state;
	struct stat before[3], after;

	transitions(f, 1);
	pid_t pid = in_a_child(f, FOREIGN_READ);
	wait_until_stopped(pid);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(stat(place_file(&f->place, names[i]), &before[i]), 0);
	transitions(f, 1000);
	assert_int_equal(join_child(in_a_child(f, READ_ONCE)), 0);
	kill(pid, SIGCONT);
	assert_int_equal(join_child(pid), 0);
	transitions(f, 1000);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(stat(place_file(&f->place, names[i]), &after), 0);
		assert_int_equal(before[i].st_ino, after.st_ino);
	}
	assert_int_equal(join_child(in_a_child(f, READ_ONCE)), 0);
}

/* To read /proc/locks can take 20 ms: the kernel waits until no processor takes a lock. */
static void who_holds_locks_is_not_asked_while_all_is_well(void **state)
{
	struct fixture *f = *state;

	looks = 0;
	for (int i = 0; i < 20; i++) {
		transitions(f, 1);
		ck_store_idle(f->store);
	}
	assert_int_equal(looks, 0);
}

/* No call waits for a disk, whatever the file system. */
static void nothing_is_ever_synced(void **state)
{
	struct fixture *f = *state;
	char name[512];

	transitions(f, 1000);
	ck_store_idle(f->store);
	assert_wal_stayed_small(f);
	MUST(ck_store_set_aside(f->store, name, &f->err));
	ck_row_fini(&f->row);
	transitions(f, 10);
	ck_store_idle(f->store);
	ck_store_close(f->store);
	f->store = NULL;
	assert_int_equal(syncs, 0);
}

/* ---- what is read ---------------------------------------------------------------------------- */

static void a_dump_has_everything(void **state)
{
	struct fixture *f = *state;
	struct ck_counters counters = {.kept = {0, 4}, .imported = {0, 0, 2}};
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
	assert_int_equal(reader->counters.kept[CK_SANDBOX], 4);
	assert_int_equal(reader->counters.imported[CK_CONTAINER], 2);
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
	assert_int_equal(join_child(in_a_child(f, READ_WITH_OWNER)), 0);
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
	assert_int_equal(ck_reader_open("/nonexistent/crikeep", CK_READ_COUNTERS, &reader, &f->err),
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

static int child_main(int what)
{
	static int (*const children[])(struct fixture *f) = {
		[READ_ONCE] = read_once,
		[READ_MANY] = read_many,
		[READ_AND_STOP] = read_and_stop,
		[READ_AS_NOBODY] = read_as_nobody,
		[READ_WITH_OWNER] = read_with_owner,
		[FOREIGN_READ] = foreign_read,
		[LIVE_AND_BE_KILLED] = live_and_be_killed,
	};
	struct fixture f = { 0 };
	snprintf(f.place.dir, sizeof(f.place.dir), "%s", getenv(DIR_OF));
	return children[what](&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_reader_always_sees_whole_rounds),
		TEST(a_stopped_reader_only_makes_the_wal_grow),
		TEST(a_stopped_reader_keeps_no_owner_out),
		TEST(a_reader_changes_no_file),
		TEST(a_reader_does_not_wait_for_shared_memory_that_nobody_makes),
		TEST(a_reader_leaves_the_wal_of_an_empty_database),
		TEST(beside_an_owner_reading_needs_no_more_than_that),
		TEST(beside_a_stopped_foreign_reader_the_files_stay),
		TEST(who_holds_locks_is_not_asked_while_all_is_well),
		TEST(beside_an_owner_without_a_pid_others_read_while_it_writes),
		TEST(nothing_is_ever_synced),
		TEST(a_dump_has_everything),
		TEST(a_dump_names_the_living_owner),
		TEST(where_there_is_no_database_nothing_is_found),
		TEST(the_check_finds_what_is_wrong),
	};
	if (getenv(CHILD))
		return child_main(atoi(getenv(CHILD)));
	return CK_TEST_MAIN(tests);
}
