/* SPDX-License-Identifier: Apache-2.0 */
/* Which crikeep-sim crikeepd runs. What it does then is in tests/prog/test-crikeepd.sh and
 * tests/flow/test-sim-trouble.c. */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/daemon/simulator.h"
#include "tests/unit/harness.h"

struct place {
	char dir[CK_PATH_MAX - 32], program[CK_PATH_MAX];
};

static void make(struct place *place)
{
	const char *tmp = getenv("TMPDIR");
	snprintf(place->dir, sizeof(place->dir), "%s/place.XXXXXX", tmp ? tmp : "/tmp");
	assert_non_null(mkdtemp(place->dir));
	snprintf(place->program, sizeof(place->program), "%s/crikeep-sim", place->dir);
	int fd = open(place->program, O_CREAT | O_WRONLY | O_CLOEXEC, 0700);
	assert_true(fd >= 0);
	close(fd);
}

static void drop(const struct place *place)
{
	unlink(place->program);
	assert_int_equal(rmdir(place->dir), 0);
}

/* of what is found: 1 or 2; 0: nothing */
static int find(const struct place *one, const struct place *two, const uid_t *trusted,
		struct ck_error *err)
{
	const char *const directories[] = { "/nowhere", one->dir, two->dir, NULL };
	struct stat found, first;
	int fd = ck_simulator_find(directories, trusted, err);
	if (fd < 0) {
		assert_int_equal(fd, -CK_EIO);
		return 0;
	}
	assert_int_equal(fstat(fd, &found), 0);
	close(fd);
	return stat(one->program, &first) == 0 && first.st_ino == found.st_ino ? 1 : 2;
}

static void the_first_that_exists_is_taken(void **state)
{
	uid_t me = geteuid();
	struct place one, two;
	struct ck_error err;
	(void)state;
	make(&one);
	make(&two);
	assert_int_equal(find(&one, &two, NULL, &err), 1);
	assert_int_equal(find(&one, &two, &me, &err), 1);
	unlink(one.program);
	assert_int_equal(find(&one, &two, NULL, &err), 2);
	assert_int_equal(find(&one, &two, &me, &err), 2);
	unlink(two.program);
	assert_int_equal(find(&one, &two, &me, &err), 0);
	assert_string_equal(err.text, "simulator: there is no '" CK_PKGLIBEXECDIR
				      "/crikeep-sim', which is installed with crikeepd");
	drop(&one);
	drop(&two);
}

static void root_runs_nothing_that_others_may_write(void **state)
{
	static const struct {
		mode_t dir, program;
		bool safe;
	} modes[] = {
		{ 0755, 0755, true },   { 0700, 0500, true },  { 0775, 0755, false },
		{ 01777, 0755, false }, { 0755, 0775, false }, { 0755, 0757, false },
	};
	uid_t me = geteuid();
	struct place one, two;
	struct ck_error err;
	(void)state;
	make(&one);
	make(&two);
	for (size_t i = 0; i < CK_COUNT(modes); i++) {
		assert_int_equal(chmod(one.dir, modes[i].dir), 0);
		assert_int_equal(chmod(one.program, modes[i].program), 0);
		assert_int_equal(find(&one, &two, NULL, &err), 1);
		/* not the second either: somebody has put it there for a reason */
		assert_int_equal(find(&one, &two, &me, &err), modes[i].safe ? 1 : 0);
		if (!modes[i].safe)
			assert_non_null(strstr(err.text, one.program));
	}
	assert_int_equal(chmod(one.dir, 0755), 0);
	assert_int_equal(chmod(one.program, 0755), 0);
	if (me == 0) {
		uid_t other = 12345;
		assert_int_equal(chown(one.program, other, (gid_t)-1), 0);
		assert_int_equal(find(&one, &two, &me, &err), 0);
		assert_int_equal(find(&one, &two, &other, &err), 1);
		assert_int_equal(chown(one.program, 0, (gid_t)-1), 0);
		assert_int_equal(chown(one.dir, other, (gid_t)-1), 0);
		assert_int_equal(find(&one, &two, &me, &err), 0);
		assert_int_equal(find(&one, &two, &other, &err), 1);
	}
	drop(&one);
	drop(&two);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_that_exists_is_taken),
		cmocka_unit_test(root_runs_nothing_that_others_may_write),
	};
	return CK_TEST_MAIN(tests);
}
