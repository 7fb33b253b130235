/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_TESTS_HARNESS_H
#define CK_TESTS_HARNESS_H
/*
 * What every cmocka program begins with, and its main():
 *
 *	return CK_TEST_MAIN(tests[, group_setup, group_teardown]);
 *
 * runs the group under a time limit, only the tests that match CK_TEST_FILTER (make check-one), and
 * fails if it leaves descriptors open. A group that needs longer says `#define CK_TEST_SECONDS 300`
 * before it includes this.
 */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#ifndef CK_TEST_SECONDS
#define CK_TEST_SECONDS 60
#endif

#define CK_TEST_MAIN(...)                          CK_TEST_MAIN_(__VA_ARGS__, NULL, NULL, NULL)
#define CK_TEST_MAIN_(tests, setup, teardown, ...) \
	ck_test_main(#tests, tests, sizeof(tests) / sizeof(*(tests)), setup, teardown)

static inline unsigned long ck_test_env(const char *name, unsigned long otherwise)
{
	const char *value = getenv(name);
	return value && *value ? strtoul(value, NULL, 10) : otherwise;
}

/* ck_test_rounds - how many random rounds to run where @normal is a full run; CK_TEST_SCALE is in
 * per cent */
static inline unsigned long ck_test_rounds(unsigned long normal)
{
	unsigned long n = normal * ck_test_env("CK_TEST_SCALE", 100) / 100;
	return n ? n : 1;
}

static inline int ck_test_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;
	while (dir && readdir(dir))
		n++;
	if (dir)
		closedir(dir);
	return n;
}

static inline int ck_test_main(const char *name, const struct CMUnitTest *tests, size_t n,
			       CMFixtureFunction setup, CMFixtureFunction teardown)
{
	const char *filter = getenv("CK_TEST_FILTER");
	if (filter && *filter)
		cmocka_set_test_filter(filter);
	/* line by line: a crash must not lose what was printed, and stderr stays in its place in
	 * the log */
	setvbuf(stdout, NULL, _IOLBF, 0);
	int before = ck_test_descriptors();
	/* 0, under gdb: none */
	alarm((unsigned)(CK_TEST_SECONDS * ck_test_env("CK_TEST_SLOW", 1)));
	int failed = _cmocka_run_group_tests(name, tests, n, setup, teardown);
	alarm(0);
	int after = ck_test_descriptors();
	if (after != before) {
		printf("not ok - descriptors: %d before the tests, %d after\n", before, after);
		failed++;
	}
	return failed < 100 ? failed : 100; /* an exit status has 8 bits */
}
#endif
