/* SPDX-License-Identifier: Apache-2.0 */
/* Which entries an argument ENTRY|POD means, for who reads and for who changes something. */
#include <string.h>

#include "src/base/mem.h"
#include "cache/store/store-int.h"
#include "src/cli/cli.h"
#include "src/cli/select-entries.h"
#include "tests/unit/harness.h"

#define ROWS 5

static const struct {
	const char *namespace, *pod, *id;
} plans[ROWS] = { /* rows 1 to 5 */
	{ "prod", "web", "9f3a4b21c0de" },
	{ "test", "web", "9f3b0000c0de" },
	{ "prod", "db", "aaaa" },
	{ "prod", "db", "aaaabbbb" },
	{ "prod", "12", NULL },
};

static struct ck_row rows[ROWS];
static struct ck_history_row lines[ROWS];
static struct ck_reader reader = {
	.rows = rows, .rows_n = ROWS, .history = lines, .history_n = ROWS
};
static const struct ck_look look = { .reader = &reader };

static int setup(void **state)
{
	(void)state;
	for (size_t i = 0; i < ROWS; i++) {
		const struct ck_object o = { .size = sizeof(o),
					     .kind = CK_SANDBOX,
					     .pod_namespace = plans[i].namespace,
					     .pod_name = plans[i].pod,
					     .pod_uid = plans[i].pod };
		char who[128];
		assert_int_equal(ck_key_from_object(&o, &rows[i].key, NULL), 0);
		rows[i].id = lines[i].entry = i + 1;
		if (plans[i].id)
			rows[i].result = ck_shared_result_new(plans[i].id, NULL, 0);
		lines[i].who = strdup(ck_key_print(rows[i].key, who, sizeof(who)));
		lines[i].object = plans[i].id ? strdup(plans[i].id) : NULL;
	}
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	for (size_t i = 0; i < ROWS; i++) {
		ck_row_fini(&rows[i]);
		ck_history_row_fini(&lines[i]);
	}
	return 0;
}

#define NOTHING   0u                   /* it names nothing */
#define REFUSED   1u                   /* ambiguous, or too short: an error */
#define ROW(n)    (1u << (n))
#define POD_OF(n) (ROW(n) | 1u << ROWS << 1) /* and it is named as a pod */

static unsigned result(int r, struct ck_picked *picked)
{
	unsigned rows_picked = r == CK_EXIT_TROUBLE ? REFUSED : NOTHING;
	for (size_t i = 0; r == CK_EXIT_YES && i < ROWS; i++)
		rows_picked |= picked->match[i] ? ROW(i + 1) : 0;
	if (r == CK_EXIT_YES && picked->pod)
		rows_picked |= POD_OF(0) & ~ROW(0);
	free(picked->match);
	return rows_picked;
}

static unsigned picked(const char *arg, enum ck_pick_for pick_for)
{
	struct ck_picked picked = { 0 };
	return result(ck_look_pick(&look, arg, pick_for, &picked), &picked);
}

static unsigned in_history(const char *arg)
{
	struct ck_picked picked = { 0 };
	return result(ck_look_pick_history(&look, arg, &picked), &picked);
}

/* for everybody */
static void assert_means(const char *arg, unsigned what)
{
	assert_int_equal(picked(arg, CK_PICK_TO_READ), what);
	assert_int_equal(picked(arg, CK_PICK_TO_CHANGE), what);
	assert_int_equal(in_history(arg), what);
}

static void a_number_is_a_row_and_nothing_else(void **state)
{
	(void)state;
	assert_means("1", ROW(1));
	assert_means("5", ROW(5));
	assert_means("9", NOTHING);  /* two ids begin with it */
	assert_means("6", NOTHING);
	assert_means("12", NOTHING); /* a pod has this name */
	assert_means("prod/12", POD_OF(5));
	assert_means("0", NOTHING);
	assert_means("01", NOTHING); /* no row number: an id may begin so */
	assert_means("18446744073709551617", NOTHING); /* 2^64 + 1 */
}

static void a_number_stays_its_row_when_the_row_is_gone(void **state)
{
	(void)state;
	rows[0].id = lines[0].entry = 7; /* row 1 is gone; the id of none begins with 1 */
	free(lines[4].object);
	ck_shared_result_unref(rows[4].result);
	rows[4].result = ck_shared_result_new("1dcba", NULL, 0);
	lines[4].object = strdup("1dcba");
	assert_means("1", NOTHING);
	assert_means("1dcb", ROW(5));
	assert_means("7", ROW(1));
}

static void who_reads_may_give_the_beginning_of_an_id(void **state)
{
	(void)state;
	assert_int_equal(picked("9f3a", CK_PICK_TO_READ), ROW(1));
	assert_int_equal(picked("9f3", CK_PICK_TO_READ), REFUSED);
	assert_int_equal(picked("a", CK_PICK_TO_READ), REFUSED);
	assert_int_equal(picked("aaaab", CK_PICK_TO_READ), ROW(4));
	assert_int_equal(picked("b", CK_PICK_TO_READ), NOTHING);
	assert_int_equal(in_history("9f3b"), ROW(2));
}

static void who_changes_gives_four_characters_of_an_id(void **state)
{
	(void)state;
	assert_int_equal(picked("9f3a", CK_PICK_TO_CHANGE), ROW(1));
	assert_int_equal(picked("9f3", CK_PICK_TO_CHANGE), REFUSED);
	rows[1].id = 1002; /* and the other id of 9f3 is gone: still refused */
	ck_shared_result_unref(rows[1].result);
	rows[1].result = NULL;
	assert_int_equal(picked("9f3", CK_PICK_TO_READ), ROW(1));
	assert_int_equal(picked("9f3", CK_PICK_TO_CHANGE), REFUSED);
	assert_int_equal(picked("", CK_PICK_TO_CHANGE), NOTHING);
	ck_shared_result_unref(rows[2].result);
	rows[2].result = ck_shared_result_new("aaaabbcc", NULL, 0);
	assert_int_equal(picked("aaaabb", CK_PICK_TO_CHANGE), REFUSED); /* ambiguous */
}

static void a_whole_id_wins_over_ids_that_begin_with_it(void **state)
{
	(void)state;
	assert_means("aaaa", ROW(3));
	assert_means("aaaabb", ROW(4));
}

static void who_reads_may_leave_out_the_namespace(void **state)
{
	(void)state;
	assert_means("prod/db", POD_OF(3) | ROW(4));
	assert_int_equal(picked("db", CK_PICK_TO_READ), POD_OF(3) | ROW(4));
	assert_int_equal(picked("db", CK_PICK_TO_CHANGE), REFUSED);
	assert_int_equal(picked("web", CK_PICK_TO_READ), REFUSED);
	assert_int_equal(picked("web", CK_PICK_TO_CHANGE), REFUSED);
	assert_means("test/web", POD_OF(2));
}

static void who_reads_may_give_the_beginning_of_a_pods_name(void **state)
{
	(void)state;
	assert_int_equal(picked("d", CK_PICK_TO_READ), POD_OF(3) | ROW(4));
	assert_int_equal(picked("d", CK_PICK_TO_CHANGE), REFUSED);
	assert_int_equal(picked("prod/d", CK_PICK_TO_READ), POD_OF(3) | ROW(4));
	assert_int_equal(picked("prod/d", CK_PICK_TO_CHANGE), REFUSED);
	assert_int_equal(picked("w", CK_PICK_TO_READ), REFUSED);
	assert_int_equal(picked("test/w", CK_PICK_TO_READ), POD_OF(2));
	assert_means("", NOTHING);
	assert_means("pro", NOTHING);
	assert_means("prod/", NOTHING);
	assert_means("prod", NOTHING);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_number_is_a_row_and_nothing_else),
		TEST(a_number_stays_its_row_when_the_row_is_gone),
		TEST(who_reads_may_give_the_beginning_of_an_id),
		TEST(who_changes_gives_four_characters_of_an_id),
		TEST(a_whole_id_wins_over_ids_that_begin_with_it),
		TEST(who_reads_may_leave_out_the_namespace),
		TEST(who_reads_may_give_the_beginning_of_a_pods_name),
	};
	return CK_TEST_MAIN(tests);
}
