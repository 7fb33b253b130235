/* SPDX-License-Identifier: Apache-2.0 */
/* What tests/prog/test-doctor.sh cannot stage: the clock, and broken files of the kubelet. */
#include <string.h>

#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/cli/doctor/node.h"
#include "tests/unit/harness.h"

static enum ck_verdict verdict_of(const char *name, const struct ck_node *node)
{
	for (size_t i = 0; i < ck_checks_n; i++) {
		if (strcmp(ck_checks[i].name, name) != 0)
			continue;
		CK_AUTO_FREE char *text = NULL;
		size_t len;
		FILE *out = open_memstream(&text, &len);
		enum ck_verdict verdict = ck_checks[i].look(node, out);
		fclose(out);
		assert_string_not_equal(text, "");
		return verdict;
	}
	fail();
	return CK_VERDICT_UNKNOWN;
}

static void a_clock_that_was_never_set_is_wrong(void **state)
{
	(void)state;
	struct ck_node node = { .root = "" };
	assert_int_equal(verdict_of("clock", &node), CK_VERDICT_WRONG);
	node.health.look.wall = INT64_C(1577836799) * (int64_t)CK_NS_PER_S;
	assert_int_equal(verdict_of("clock", &node), CK_VERDICT_WRONG);
	node.health.look.wall = INT64_C(1577836800) * (int64_t)CK_NS_PER_S;
	assert_int_equal(verdict_of("clock", &node), CK_VERDICT_OK);
}

static void a_check_has_a_remedy(void **state)
{
	(void)state;
	for (size_t i = 0; i < ck_checks_n; i++)
		assert_true(strlen(ck_checks[i].remedy) > 0);
}

static void assert_yaml(const char *text, const char *section, const char *want)
{
	CK_AUTO_FREE char *value = ck_node_yaml(text, strlen(text), section, "a");
	if (want)
		assert_string_equal(value, want);
	else
		assert_null(value);
}

static void a_value_of_a_kubelets_file_is_a_scalar_at_its_place(void **state)
{
	(void)state;
	assert_yaml("a: 1\n", NULL, "1");
	assert_yaml("{\"b\": [1], \"a\": \"x y\"}", NULL, "x y");
	assert_yaml("b:\n  a: true\n", "b", "true");
	assert_yaml("b:\n  a: true\n", NULL, NULL);
	assert_yaml("a: [1]\n", NULL, NULL);
	assert_yaml("b: 1\n", "b", NULL);
	assert_yaml("", NULL, NULL);
	assert_yaml("- a\n", NULL, NULL);
	assert_yaml("a: 'never ends\n", NULL, NULL);
	assert_yaml("a: &x [*x]\n", NULL, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_clock_that_was_never_set_is_wrong),
		cmocka_unit_test(a_check_has_a_remedy),
		cmocka_unit_test(a_value_of_a_kubelets_file_is_a_scalar_at_its_place),
	};
	return CK_TEST_MAIN(tests);
}
