/* SPDX-License-Identifier: Apache-2.0 */
/* Opening: who may open a directory, what is made in it, and what happens to a bad database. */
#include "tests/unit/harness.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>

#include "tests/unit/rows.h"

struct fixture {
	struct place place;
	struct ck_store *store;
	struct ck_store_opened opened;
	struct rows rows;
	struct ck_error err;
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	place_make(&f->place);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;
	rows_fini(&f->rows);
	ck_store_close(f->store);
	place_remove(&f->place);
	free(f);
	return 0;
}

static int try_open(struct fixture *f)
{
	memset(&f->opened, 0, sizeof(f->opened));
	return ck_store_open(f->place.dir, &f->store, &f->opened, &f->err);
}

static void must_open(struct fixture *f)
{
	if (try_open(f) < 0)
		fail_msg("%s", f->err.text);
}

static void close_store(struct fixture *f)
{
	ck_store_close(f->store);
	f->store = NULL;
}

static void put_row(struct fixture *f, const char *name)
{
	struct ck_row row = row_make(f->store, name, CK_STATE_KEPT);
	assert_int_equal(ck_store_begin(f->store, &f->err), 0);
	assert_int_equal(ck_store_insert(f->store, &row, &f->err), 0);
	assert_int_equal(ck_store_note(f->store, &row, CK_WHAT_BEGUN, 0, 0, 1, 0, NULL, &f->err),
			 0);
	assert_int_equal(ck_store_commit(f->store, &f->err), 0);
	ck_row_fini(&row);
}

static size_t count_rows(struct fixture *f)
{
	rows_fini(&f->rows);
	assert_int_equal(ck_store_load(f->store, rows_add, &f->rows, &f->err), 0);
	return f->rows.n;
}

static void change(struct fixture *f, const char *sql)
{
	sqlite3 *db;
	char *text = NULL;
	assert_int_equal(sqlite3_open(place_file(&f->place, "crikeep.db"), &db), SQLITE_OK);
	if (sqlite3_exec(db, sql, NULL, NULL, &text) != SQLITE_OK)
		fail_msg("%s", text);
	sqlite3_close(db);
}

static void write_file(const char *path, const void *bytes, size_t len)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	assert_int_equal(write(fd, bytes, len), len);
	close(fd);
}

static unsigned mode_of(struct fixture *f, const char *name)
{
	struct stat st;
	assert_int_equal(stat(place_file(&f->place, name), &st), 0);
	return st.st_mode & 07777;
}

/* Runs @fn in a child, which then dies without closing anything, as if by kill -9. */
static void in_a_life_that_is_killed(struct fixture *f, void (*fn)(struct fixture *f))
{
	int status;
	pid_t pid = fork();
	if (pid == 0) {
		fn(f);
		kill(getpid(), SIGKILL);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* ---- the directory --------------------------------------------------------------------------- */

static void the_directory_is_owned_once_and_the_owner_is_named(void **state)
{
	struct fixture *f = *state;
	struct ck_store *second;
	char pid[64];
	long found = 0;

	must_open(f);
	snprintf(pid, sizeof(pid), "process %ld", (long)getpid());
	assert_int_equal(ck_store_open(f->place.dir, &second, &f->opened, &f->err), -CK_EOWNED);
	assert_non_null(strstr(f->err.text, pid));
	int fd = open(f->place.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(ck_state_dir_owned(fd, &found));
	assert_int_equal(found, getpid());
	close_store(f);
	assert_false(ck_state_dir_owned(fd, &found));
	close(fd);
	must_open(f);
}

static void *hold_for_an_instant(void *arg)
{
	int fd = *(int *)arg;
	usleep(30000);
	flock(fd, LOCK_UN);
	return NULL;
}

/* no pid is better than that of an earlier owner */
static void an_owner_that_cannot_leave_its_pid_leaves_no_other(void **state)
{
	struct fixture *f = *state;

	must_open(f);
	close_store(f);
	write_file(place_file(&f->place, "owner"), "12 34.5\n", 8);
	assert_int_equal(mkdir(place_file(&f->place, "owner.tmp"), 0700), 0);
	must_open(f);
	assert_int_not_equal(access(place_file(&f->place, "owner"), F_OK), 0);
}

static void a_shared_lock_for_an_instant_keeps_no_owner_out(void **state)
{
	struct fixture *f = *state;
	pthread_t thread;
	int r = -1;

	mkdir(f->place.dir, 0700);
	int fd = open(f->place.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	/* on a busy machine the instant may be longer than an owner waits */
	for (int i = 0; i < 20 && r < 0; i++) {
		assert_int_equal(flock(fd, LOCK_SH | LOCK_NB), 0);
		pthread_create(&thread, NULL, hold_for_an_instant, &fd);
		r = try_open(f);
		pthread_join(thread, NULL);
	}
	assert_int_equal(r, 0);
	close(fd);
}

static void open_and_put(struct fixture *f)
{
	must_open(f);
	put_row(f, "web");
}

static void ownership_ends_with_the_process_and_its_rows_stay(void **state)
{
	struct fixture *f = *state;

	in_a_life_that_is_killed(f, open_and_put);
	assert_int_equal(access(place_file(&f->place, "crikeep.db-wal"), F_OK), 0);
	must_open(f);
	assert_false(f->opened.fresh);
	assert_int_equal(count_rows(f), 1);
}

static void files_are_private_whatever_the_umask(void **state)
{
	static const mode_t masks[] = {0, 0777};
	static const char *const names[] = { "crikeep.db", "crikeep.db-wal", "crikeep.db-shm",
					     "key", "owner" };
	struct fixture *f = *state;

	for (size_t i = 0; i < CK_COUNT(masks); i++) {
		mode_t before = umask(masks[i]);
		must_open(f);
		put_row(f, "web");
		umask(before);
		assert_int_equal(mode_of(f, "."), 0700);
		for (size_t k = 0; k < CK_COUNT(names); k++)
			assert_int_equal(mode_of(f, names[k]), 0600);
		close_store(f);
		place_remove(&f->place);
		place_make(&f->place);
	}
}

static void a_directory_others_can_write_into_is_refused(void **state)
{
	struct fixture *f = *state;

	mkdir(f->place.dir, 0700);
	chmod(f->place.dir, 0770);
	assert_int_equal(try_open(f), -CK_EIO);
	assert_non_null(strstr(f->err.text, "others can write"));
	chmod(f->place.dir, 0755);
	must_open(f);
}

static void a_directory_that_cannot_be_made_is_an_error(void **state)
{
	struct fixture *f = *state;

	strcat(f->place.dir, "/no/parent");
	assert_int_equal(try_open(f), -CK_EIO);
	assert_non_null(strstr(f->err.text, "No such file"));
}

/* ---- the key --------------------------------------------------------------------------------- */

static void the_key_stays_and_a_bad_one_is_replaced(void **state)
{
	static const unsigned char zeros[CK_KEY_BYTES];
	struct fixture *f = *state;
	struct ck_digest_key first;

	must_open(f);
	first = *ck_store_key(f->store);
	close_store(f);
	must_open(f);
	assert_memory_equal(&first, ck_store_key(f->store), sizeof(first));
	close_store(f);
	/* an empty key, a cut key, and no key */
	for (size_t len = 0; len <= CK_KEY_BYTES; len += CK_KEY_BYTES / 2) {
		write_file(place_file(&f->place, "key"), zeros, len);
		must_open(f);
		assert_memory_not_equal(first.bytes, ck_store_key(f->store)->bytes, CK_KEY_BYTES);
		assert_true(f->opened.key_made);
		assert_false(f->opened.fresh);
		close_store(f);
		must_open(f);
		assert_false(f->opened.key_made);
		close_store(f);
	}
	unlink(place_file(&f->place, "key"));
	assert_int_equal(symlink("/etc/hostname", place_file(&f->place, "key")), 0);
	must_open(f);
	assert_int_equal(mode_of(f, "key"), 0600);
}

/* ---- the database ---------------------------------------------------------------------------- */

static void a_fresh_database_is_said_to_be_one(void **state)
{
	struct fixture *f = *state;

	must_open(f);
	assert_true(f->opened.fresh);
	close_store(f);
	must_open(f);
	assert_false(f->opened.fresh);
	close_store(f);
	/* killed after the file was made and before it was written */
	write_file(place_file(&f->place, "crikeep.db"), "", 0);
	must_open(f);
	assert_true(f->opened.fresh);
	assert_false(f->opened.set_aside);
}

static void a_newer_database_is_left_as_it_is(void **state)
{
	static char before[1 << 20], after[1 << 20];
	struct fixture *f = *state;

	must_open(f);
	put_row(f, "web");
	close_store(f);
	change(f, "PRAGMA user_version = 99; CREATE TABLE more (x)");
	int fd = open(place_file(&f->place, "crikeep.db"), O_RDONLY);
	ssize_t n = read(fd, before, sizeof(before));
	close(fd);
	assert_int_equal(try_open(f), -CK_EVERSION);
	fd = open(place_file(&f->place, "crikeep.db"), O_RDONLY);
	assert_int_equal(read(fd, after, sizeof(after)), n);
	close(fd);
	assert_memory_equal(before, after, (size_t)n);
	struct ck_reader *reader;
	assert_int_equal(ck_reader_open(f->place.dir, CK_READ_ROWS, &reader, &f->err),
			 -CK_EVERSION);
}

static void must_be_set_aside(struct fixture *f)
{
	must_open(f);
	assert_true(f->opened.set_aside);
	assert_true(f->opened.fresh);
	assert_int_equal(f->opened.why.code, CK_EDAMAGED);
	/* people read it, and do not know our statements */
	assert_null(strstr(f->opened.why.text, "PRAGMA"));
	assert_null(strstr(f->opened.why.text, "SELECT"));
	assert_int_equal(strncmp(f->opened.set_aside_as, "crikeep.db.damaged-20", 21), 0);
	assert_int_equal(
		faccessat(f->store->dirfd, f->opened.set_aside_as, F_OK, AT_SYMLINK_NOFOLLOW), 0);
	assert_int_equal(count_rows(f), 0);
	put_row(f, "new");
	close_store(f);
}

/* K33 */
static void what_is_not_our_schema_is_set_aside(void **state)
{
	static const char *const changes[] = {
		"PRAGMA application_id = 1",
		"PRAGMA user_version = 0",
		"PRAGMA user_version = 3", /* of no release */
		"PRAGMA user_version = -5",
		"DROP TABLE history",
		"CREATE INDEX more ON entry (uid)",
		"ALTER TABLE entry DROP COLUMN due",
		"ALTER TABLE entry ADD COLUMN more TEXT",
		"DROP TABLE fingerprint; CREATE VIEW fingerprint AS SELECT 1 AS entry, x'00' AS "
		"leaves",
		"CREATE TRIGGER t AFTER INSERT ON entry BEGIN DELETE FROM history; END",
		"CREATE TABLE more (x)",
		"PRAGMA writable_schema = ON; "
		"UPDATE sqlite_schema SET sql = replace(sql, '1 AND 8', '1 AND 9')",
		"PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = 'garbage' WHERE name "
		"= 'entry'",
		"PRAGMA writable_schema = ON; UPDATE sqlite_schema SET rootpage = 1 WHERE name = "
		"'entry'",
		"UPDATE history SET entry = 9223372036854775807",
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < CK_COUNT(changes); i++) {
		must_open(f);
		put_row(f, changes[i]);
		close_store(f);
		change(f, changes[i]);
		must_be_set_aside(f);
	}
}

static void damage_page_with(struct fixture *f, const char *text)
{
	unsigned char page[4096];
	int fd = open(place_file(&f->place, "crikeep.db"), O_RDWR);
	bool found = false;
	for (off_t at = 0; !found && pread(fd, page, sizeof(page), at) == sizeof(page);
	     at += sizeof(page)) {
		found = memmem(page, sizeof(page), text, strlen(text));
		memset(page, 0xff, 8);
		assert_int_equal(found ? pwrite(fd, page, 8, at) : 8, 8);
	}
	close(fd);
	assert_true(found);
}

/* history is not worth the results: then some numbers are left out */
static void an_unreadable_history_costs_no_row(void **state)
{
	struct fixture *f = *state;

	must_open(f);
	put_row(f, "web");
	uint64_t id = ck_store_next_id(f->store);
	close_store(f);
	change(f, "WITH RECURSIVE n(i) AS"
		  " (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 900)"
		  "INSERT INTO history SELECT i, 7, iif(i = 9, 'in an early page', 'x'), 1,"
		  " NULL, 1, 0, 0, 0, 0, 0, 0, NULL, '' FROM n");
	damage_page_with(f, "in an early page");
	must_open(f);
	assert_false(f->opened.set_aside);
	assert_int_equal(count_rows(f), 1);
	assert_true(ck_store_next_id(f->store) > id);
}

static void what_is_no_database_is_set_aside(void **state)
{
	struct fixture *f = *state;

	mkdir(f->place.dir, 0700);
	write_file(place_file(&f->place, "crikeep.db"), "hello, world", 12);
	must_be_set_aside(f);
	unlink(place_file(&f->place, "crikeep.db"));
	assert_int_equal(mkdir(place_file(&f->place, "crikeep.db"), 0700), 0);
	must_be_set_aside(f);
	unlink(place_file(&f->place, "crikeep.db"));
	assert_int_equal(symlink("/etc/hostname", place_file(&f->place, "crikeep.db")), 0);
	must_be_set_aside(f);
	unlink(place_file(&f->place, "crikeep.db"));
	assert_int_equal(mkfifo(place_file(&f->place, "crikeep.db"), 0600), 0);
	must_be_set_aside(f);
}

static void names_of_damaged_files_are_never_used_twice(void **state)
{
	struct fixture *f = *state;
	int n = 0;

	/* more than once in a second, which is what names are made of */
	for (int i = 0; i < 5; i++) {
		mkdir(f->place.dir, 0700);
		write_file(place_file(&f->place, "crikeep.db"), "hello, world", 12);
		must_be_set_aside(f);
	}
	DIR *dir = opendir(f->place.dir);
	for (struct dirent *e; (e = readdir(dir));)
		n += !strncmp(e->d_name, "crikeep.db.damaged-", 19) && !strstr(e->d_name, "-wal") &&
		     !strstr(e->d_name, "-shm");
	closedir(dir);
	assert_int_equal(n, 5);
}

/* K33 */
static void set_aside_while_running_starts_empty_and_goes_on(void **state)
{
	struct fixture *f = *state;
	char name[512];

	must_open(f);
	put_row(f, "web");
	uint64_t id = ck_store_next_id(f->store);
	assert_int_equal(ck_store_begin(f->store, &f->err), 0);
	assert_int_equal(ck_store_set_aside(f->store, name, &f->err), 0);
	assert_int_equal(access(place_file(&f->place, name), F_OK), 0);
	strcat(name, "-wal");
	assert_int_equal(access(place_file(&f->place, name), F_OK), 0);
	assert_int_equal(count_rows(f), 0);
	assert_true(ck_store_next_id(f->store) > id);
	put_row(f, "web");
	assert_int_equal(count_rows(f), 1);
}

static void a_file_removed_under_us_is_noticed(void **state)
{
	struct fixture *f = *state;
	char name[512];

	must_open(f);
	put_row(f, "web");
	ck_store_idle(f->store);
	put_row(f, "db");
	assert_int_equal(unlink(place_file(&f->place, "crikeep.db")), 0);
	ck_store_idle(f->store);
	assert_int_equal(ck_store_begin(f->store, &f->err), -CK_EDAMAGED);
	assert_int_equal(ck_store_set_aside(f->store, name, &f->err), 0);
	put_row(f, "web");
	close_store(f);
	must_open(f);
	assert_int_equal(count_rows(f), 1);
}

/* ---- K32: nothing can be written ------------------------------------------------------------- */

/* As another user: these permissions do not stop root. Runs in a child; a failed assertion ends
 * it. */
static void as_nobody(struct fixture *f, void (*fn)(struct fixture *f))
{
	int status;

	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		if (geteuid() == 0 && seteuid(65534) < 0)
			_exit(3);
		fn(f);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

#define NEED(x)                                                             \
	do {                                                                \
		if (!(x)) {                                                 \
			fprintf(stderr, "%d: %s: %s\n", __LINE__, #x, f->err.text); \
			_exit(1);                                           \
		}                                                           \
	} while (0)

static void give_away(struct fixture *f, mode_t dir_mode)
{
	static const char *const names[] = {
		".", "crikeep.db", "crikeep.db-wal", "crikeep.db-shm", "key", "owner"
	};

	chmod(f->place.top, 0755);
	for (size_t i = 0; geteuid() == 0 && i < CK_COUNT(names); i++)
		if (chown(place_file(&f->place, names[i]), 65534, 65534) < 0)
			continue; /* it does not exist */
	chmod(f->place.dir, dir_mode);
}

static void give_away_to_be_read(struct fixture *f)
{
	give_away(f, 0500);
	chmod(place_file(&f->place, "crikeep.db"), 0400);
	chmod(place_file(&f->place, "crikeep.db-wal"), 0400);
	chmod(place_file(&f->place, "crikeep.db-shm"), 0400);
}

static void open_read_only(struct fixture *f)
{
	struct ck_row row;

	NEED(try_open(f) == 0);
	NEED(f->opened.no_database && !f->opened.set_aside && !f->opened.fresh);
	NEED(ck_store_load(f->store, rows_add, &f->rows, &f->err) == 0 && f->rows.n == 1);
	NEED(ck_store_digests(f->store, f->rows.row[0].id, &f->rows.row[0].record, &f->err) == 0);
	NEED(ck_store_begin(f->store, &f->err) == -CK_EIO);
	NEED(ck_store_begin(f->store, &f->err) == -CK_EIO);
	chmod(f->place.dir, 0700); /* and now it exists again */
	chmod(place_file(&f->place, "crikeep.db"), 0600);
	chmod(place_file(&f->place, "crikeep.db-wal"), 0600);
	chmod(place_file(&f->place, "crikeep.db-shm"), 0600);
	row = row_make(f->store, "db", CK_STATE_KEPT);
	NEED(row.id > f->rows.row[0].id);
	NEED(ck_store_begin(f->store, &f->err) == 0);
	NEED(ck_store_insert(f->store, &row, &f->err) == 0);
	NEED(ck_store_commit(f->store, &f->err) == 0);
	ck_row_fini(&row);
	rows_fini(&f->rows);
	NEED(ck_store_load(f->store, rows_add, &f->rows, &f->err) == 0 && f->rows.n == 2);
	rows_fini(&f->rows);
	ck_store_close(f->store);
}

static void a_database_that_can_only_be_read_is_read(void **state)
{
	struct fixture *f = *state;

	in_a_life_that_is_killed(f, open_and_put);
	give_away_to_be_read(f);
	as_nobody(f, open_read_only);
}

static int slept; /* µs */

static int sleeps(sqlite3_vfs *vfs, int us)
{
	(void)vfs;
	slept += us;
	return us;
}

static void open_read_only_and_wait_for_nothing(struct fixture *f)
{
	sqlite3_vfs_find(NULL)->xSleep = sleeps;
	NEED(try_open(f) == 0);
	NEED(f->opened.no_database && !f->opened.set_aside && !f->opened.fresh);
	NEED(ck_store_begin(f->store, &f->err) == -CK_EIO);
	ck_store_close(f->store);
	NEED(slept == 0);
}

/* An owner that was killed while SQLite made the -shm leaves one of 3 bytes. Beside a WAL without a
 * frame SQLite would wait 10 s for whoever makes it, in each try to write. */
static void shared_memory_that_nobody_makes_is_not_waited_for(void **state)
{
	struct fixture *f = *state;

	in_a_life_that_is_killed(f, open_and_put);
	assert_int_equal(truncate(place_file(&f->place, "crikeep.db-wal"), 32), 0);
	assert_int_equal(truncate(place_file(&f->place, "crikeep.db-shm"), 3), 0);
	give_away_to_be_read(f);
	as_nobody(f, open_read_only_and_wait_for_nothing);
}

static void open_without(struct fixture *f)
{
	NEED(try_open(f) == 0);
	NEED(f->opened.no_database && !f->opened.fresh && f->opened.why.code == CK_EIO);
	NEED(ck_store_load(f->store, rows_add, &f->rows, &f->err) == 0 && f->rows.n == 0);
	NEED(ck_store_begin(f->store, &f->err) == -CK_EIO);
	ck_store_close(f->store);
}

static void a_directory_that_cannot_be_written_is_worked_without(void **state)
{
	struct fixture *f = *state;

	mkdir(f->place.dir, 0700);
	give_away(f, 0500);
	as_nobody(f, open_without);
}

static void open_damaged(struct fixture *f)
{
	NEED(try_open(f) == 0);
	NEED(f->opened.no_database && !f->opened.set_aside);
	NEED(ck_store_begin(f->store, &f->err) == -CK_EIO);
	chmod(f->place.dir, 0700);
	NEED(ck_store_begin(f->store, &f->err) == 0);
	NEED(ck_store_commit(f->store, &f->err) == 0);
	ck_store_close(f->store);
}

static void damage_that_cannot_be_renamed_is_worked_without(void **state)
{
	struct fixture *f = *state;

	mkdir(f->place.dir, 0700);
	write_file(place_file(&f->place, "crikeep.db"), "hello, world", 12);
	give_away(f, 0500);
	as_nobody(f, open_damaged);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_directory_is_owned_once_and_the_owner_is_named),
		TEST(an_owner_that_cannot_leave_its_pid_leaves_no_other),
		TEST(a_shared_lock_for_an_instant_keeps_no_owner_out),
		TEST(ownership_ends_with_the_process_and_its_rows_stay),
		TEST(files_are_private_whatever_the_umask),
		TEST(a_directory_others_can_write_into_is_refused),
		TEST(a_directory_that_cannot_be_made_is_an_error),
		TEST(the_key_stays_and_a_bad_one_is_replaced),
		TEST(a_fresh_database_is_said_to_be_one),
		TEST(a_newer_database_is_left_as_it_is),
		TEST(what_is_not_our_schema_is_set_aside),
		TEST(an_unreadable_history_costs_no_row),
		TEST(what_is_no_database_is_set_aside),
		TEST(names_of_damaged_files_are_never_used_twice),
		TEST(set_aside_while_running_starts_empty_and_goes_on),
		TEST(a_file_removed_under_us_is_noticed),
		TEST(a_database_that_can_only_be_read_is_read),
		TEST(shared_memory_that_nobody_makes_is_not_waited_for),
		TEST(a_directory_that_cannot_be_written_is_worked_without),
		TEST(damage_that_cannot_be_renamed_is_worked_without),
	};
	return CK_TEST_MAIN(tests);
}
