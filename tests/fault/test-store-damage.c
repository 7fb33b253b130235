/* SPDX-License-Identifier: Apache-2.0 */
/*
 * K32 and K33: full disks, and files with changed bytes. A full disk is the test's own small tmpfs
 * in a mount namespace, and in any case a limit on the size of files. Damage either has no effect
 * or is found; then the files are set aside, and the store continues.
 */
#define CK_TEST_SECONDS 300
#include "tests/unit/harness.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "tests/unit/rows.h"

#define NEED(x)                                                                       \
	do {                                                                          \
		if (!(x)) {                                                           \
			fprintf(stderr, "%d: %s: %s\n", __LINE__, #x, err.text);      \
			_exit(1);                                                     \
		}                                                                     \
	} while (0)

static struct ck_error err;

/* ---- no space -------------------------------------------------------------------------------- */

static int put(struct ck_store *store, const char *name, size_t reply)
{
	static const char bytes[CK_REPLY_MAX];
	struct ck_row row = row_make(store, name, CK_STATE_KEPT);
	int r = ck_store_begin(store, &err);

	ck_shared_result_unref(row.result);
	row.result = ck_shared_result_new("0f1e2d3c4b5a", bytes, reply);
	if (r >= 0)
		r = ck_store_insert(store, &row, &err);
	if (r >= 0)
		r = ck_store_note(store, &row, CK_WHAT_BEGUN, 0, 0, 1, 0, NULL, &err);
	if (r >= 0)
		r = ck_store_commit(store, &err);
	ck_row_fini(&row);
	return r;
}

static size_t count(struct ck_store *store)
{
	static struct rows rows;
	NEED(ck_store_load(store, rows_add, &rows, &err) == 0);
	size_t n = rows.n;
	rows_fini(&rows);
	return n;
}

/* Writes until nothing more can be written; then exactly what was committed is there. */
static void fill_up(const char *dir, int code)
{
	struct ck_store_opened opened;
	struct ck_store *store;
	char name[32];
	size_t n = 0;
	int r = 0;

	NEED(ck_store_open(dir, &store, &opened, &err) == 0 && !opened.no_database);
	for (; r >= 0 && n < 1000; n += r >= 0) {
		snprintf(name, sizeof(name), "pod-%zu", n);
		r = put(store, name, 32768);
	}
	NEED(r == -code || r == -CK_EFULL);
	NEED(put(store, "again", 32768) < 0);
	NEED(count(store) == n);
	ck_store_idle(store); /* this does no harm either */
	NEED(count(store) == n);
	ck_store_close(store);
	memset(&opened, 0, sizeof(opened));
	NEED(ck_store_open(dir, &store, &opened, &err) == 0);
	NEED(!opened.set_aside);
	NEED(count(store) == n);
	ck_store_close(store);
}

static int in_a_child(void (*fn)(const char *dir), const char *dir)
{
	int status;

	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		fn(dir);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void with_small_files(const char *dir)
{
	struct rlimit limit = {300000, 300000};

	signal(SIGXFSZ, SIG_IGN);
	setrlimit(RLIMIT_FSIZE, &limit);
	fill_up(dir, CK_EIO);
}

static void a_limit_on_files_loses_nothing(void **state)
{
	struct place place;

	(void)state;
	place_make(&place);
	assert_int_equal(in_a_child(with_small_files, place.dir), 0);
	place_remove(&place);
}

#define NO_MOUNT 77

static void mount_small(const char *dir, const char *options)
{
	bool alone = unshare(CLONE_NEWNS) == 0 || unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0;

	if (!alone || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mkdir(dir, 0700) < 0 || mount("none", dir, "tmpfs", 0, options) < 0)
		_exit(NO_MOUNT);
}

static void with_a_small_tmpfs(const char *dir)
{
	mount_small(dir, "size=1m,mode=0700");
	fill_up(dir, CK_EFULL);
}

static void with_no_space_at_all(const char *dir)
{
	struct ck_store_opened opened;
	struct ck_store *store;
	char path[400];
	static char block[1 << 20];

	mount_small(dir, "size=256k,mode=0700");
	snprintf(path, sizeof(path), "%s/filler", dir);
	int fd = open(path, O_WRONLY | O_CREAT, 0600);
	while (write(fd, block, 4096) == 4096)
		;
	close(fd);
	NEED(ck_store_open(dir, &store, &opened, &err) == 0);
	NEED(opened.no_database && !opened.set_aside);
	NEED(count(store) == 0);
	NEED(put(store, "web", 5) < 0);
	NEED(ck_store_next_id(store) > 0);
	unlink(path); /* then there is space, and memory can be written */
	NEED(put(store, "web", 5) == 0);
	NEED(count(store) == 1);
	ck_store_close(store);
}

/* There is a database, its owner was killed, and no page is free for SQLite's shared memory. */
static void with_no_space_for_an_old_database(const char *dir)
{
	struct ck_store_opened opened;
	struct ck_store *store;
	char path[400];
	static char block[4096];

	mount_small(dir, "size=512k,mode=0700");
	pid_t pid = fork();
	if (pid == 0) {
		NEED(ck_store_open(dir, &store, &opened, &err) == 0);
		NEED(put(store, "web", 5) == 0);
		kill(getpid(), SIGKILL);
	}
	waitpid(pid, NULL, 0);
	snprintf(path, sizeof(path), "%s/crikeep.db-shm", dir);
	unlink(path);
	snprintf(path, sizeof(path), "%s/filler", dir);
	int fd = open(path, O_WRONLY | O_CREAT, 0600);
	while (write(fd, block, sizeof(block)) == (ssize_t)sizeof(block))
		;
	close(fd);
	memset(&opened, 0, sizeof(opened));
	NEED(ck_store_open(dir, &store, &opened, &err) == 0);
	NEED(opened.no_database && !opened.set_aside);
	NEED(count(store) == 1);
	NEED(put(store, "db", 5) < 0);
	unlink(path);
	NEED(put(store, "db", 5) == 0);
	NEED(count(store) == 2);
	ck_store_close(store);
}

static void on_a_small_disk(void (*fn)(const char *dir))
{
	struct place place;

	place_make(&place);
	int status = in_a_child(fn, place.dir);
	place_remove(&place);
	if (status == NO_MOUNT)
		skip();
	assert_int_equal(status, 0);
}

static void a_full_disk_loses_nothing(void **state)
{
	(void)state;
	on_a_small_disk(with_a_small_tmpfs);
}

static void without_space_at_the_start_memory_must_do(void **state)
{
	(void)state;
	on_a_small_disk(with_no_space_at_all);
}

static void without_space_an_old_database_is_read(void **state)
{
	(void)state;
	on_a_small_disk(with_no_space_for_an_old_database);
}

/* ---- damage ---------------------------------------------------------------------------------- */

static uint64_t seed;

static size_t random_below(size_t n) /* xorshift64* */
{
	seed ^= seed >> 12;
	seed ^= seed << 25;
	seed ^= seed >> 27;
	return (size_t)(seed * UINT64_C(2685821657736338717) >> 33) % n;
}

struct file {
	const char *name;
	unsigned char bytes[1 << 20];
	size_t len;
};

static struct file files[] = {{.name = "crikeep.db"}, {.name = "crikeep.db-wal"}};

static void read_file(const char *dir, struct file *file)
{
	char path[400];
	snprintf(path, sizeof(path), "%s/%s", dir, file->name);
	int fd = open(path, O_RDONLY);
	assert_true(fd >= 0);
	file->len = (size_t)read(fd, file->bytes, sizeof(file->bytes));
	close(fd);
	assert_true(file->len > 0 && file->len < sizeof(file->bytes));
}

static void write_damaged(const char *dir, const struct file *file, bool damage)
{
	static unsigned char bytes[sizeof(file->bytes)];
	size_t len = file->len;
	char path[400];

	memcpy(bytes, file->bytes, len);
	if (damage && random_below(4) == 0)
		len = random_below(len);
	for (uint64_t n = damage ? 1 + random_below(16) : 0; n && len; n--) {
		/* the first page is the most important */
		size_t at = random_below(random_below(2) ? len : len < 4096 ? len : 4096);
		switch (random_below(4)) {
		case 0:
			bytes[at] ^= (unsigned char)(1u << random_below(8));
			break;
		case 1:
			bytes[at] = (unsigned char)random_below(256);
			break;
		case 2:
			memset(bytes + at, (int)random_below(2) * 0xff,
			       len - at < 64 ? len - at : 64);
			break;
		case 3: /* a page from another place */
			if (len >= 8192)
				memcpy(bytes + random_below(len / 4096) * 4096,
				       bytes + random_below(len / 4096) * 4096, 4096);
			break;
		}
	}
	snprintf(path, sizeof(path), "%s/%s", dir, file->name);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	assert_int_equal(write(fd, bytes, len), len);
	close(fd);
}

static void make_original(const char *dir)
{
	struct ck_store_opened opened;
	struct ck_store *store;
	char name[32];

	assert_int_equal(ck_store_open(dir, &store, &opened, &err), 0);
	for (int i = 0; i < 60; i++) { /* half of it in the database, half in the WAL */
		snprintf(name, sizeof(name), "pod-%d", i);
		assert_int_equal(put(store, name, 100), 0);
		if (i == 30)
			ck_store_idle(store);
	}
	for (size_t i = 0; i < CK_COUNT(files); i++)
		read_file(dir, &files[i]);
	ck_store_close(store);
}

static void say_nothing(const char *finding, void *userdata)
{
	(void)finding, (void)userdata;
}

/* What an owner does with what it finds. Returns whether it was damaged. */
static bool use(const char *dir)
{
	static struct rows rows;
	struct ck_store_opened opened = {0};
	struct ck_store *store;
	char name[512];
	int r = ck_store_open(dir, &store, &opened, &err);

	/* the version itself was damaged: the file is left alone, as it must be */
	if (r == -CK_EVERSION)
		return true;
	if (r < 0)
		fail_msg("open: %s", err.text);
	assert_false(opened.no_database);
	r = ck_store_load(store, rows_add, &rows, &err);
	for (size_t i = 0; r >= 0 && i < rows.n; i++) {
		r = ck_store_digests(store, rows.row[i].id, &rows.row[i].record, &err);
		r = r == -CK_ENOTFOUND ? 0 : r;
	}
	if (r >= 0)
		r = put(store, "another", 10);
	for (size_t i = 0; r >= 0 && i < rows.n; i++) {
		r = ck_store_begin(store, &err);
		if (r >= 0)
			r = ck_store_delete(store, rows.row[i].id, &err);
		if (r >= 0)
			r = ck_store_commit(store, &err);
	}
	if (r < 0 && r != -CK_EDAMAGED)
		fail_msg("%d: %s", r, err.text);
	if (r < 0) {
		assert_int_equal(ck_store_set_aside(store, name, &err), 0);
		assert_int_equal(put(store, "another", 10), 0);
	}
	rows_fini(&rows);
	ck_store_close(store);
	return opened.set_aside || r < 0;
}

static void damage_is_harmless_or_found(void **state)
{
	unsigned long rounds = ck_test_rounds(500), found = 0;
	struct place place;

	(void)state;
	place_make_in(&place, access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	make_original(place.dir);
	place_remove(&place);
	for (unsigned long i = 1; i <= rounds; i++) {
		struct ck_reader *reader;
		seed = i * UINT64_C(0x9e3779b97f4a7c15);
		place_make_in(&place, access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
		mkdir(place.dir, 0700);
		uint64_t which = random_below(3);
		write_damaged(place.dir, &files[0], which != 1);
		write_damaged(place.dir, &files[1], which != 0);
		/* first readers, then an owner */
		if (ck_reader_open(place.dir, CK_READ_DIGESTS | CK_READ_HISTORY | CK_READ_COUNTERS,
				   &reader, &err) == 0)
			ck_reader_free(reader);
		ck_reader_check(place.dir, say_nothing, NULL, &err);
		found += use(place.dir);
		place_remove(&place);
	}
	printf("%lu of %lu damaged databases were found damaged, the others could be used\n", found,
	       rounds);
	assert_true(found > rounds / 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_limit_on_files_loses_nothing),
		cmocka_unit_test(a_full_disk_loses_nothing),
		cmocka_unit_test(without_space_at_the_start_memory_must_do),
		cmocka_unit_test(without_space_an_old_database_is_read),
		cmocka_unit_test(damage_is_harmless_or_found),
	};
	return CK_TEST_MAIN(tests);
}
