/* SPDX-License-Identifier: Apache-2.0 */
/* States, names, and the shared result. */
#include "tests/unit/harness.h"

#include "cache/machine/machine-int.h"
#include "src/base/fault.h"
#include "src/base/limits.h"
#include "src/base/mem.h"

static void only_the_moves_of_the_rules_are_possible(void **state)
{
	static const char *const moves[] = {
		">CREATING", ">COMMITTED", ">ENDED",
		"CREATING>UNKNOWN", "CREATING>COMMITTING", "CREATING>KEPT", "CREATING>EVICTING",
		"CREATING>GONE",
		"UNKNOWN>CREATING", "UNKNOWN>COMMITTING", "UNKNOWN>COMMITTED", "UNKNOWN>KEPT",
		"UNKNOWN>EVICTING", "UNKNOWN>GONE",
		"KEPT>COMMITTING", "KEPT>COMMITTED", "KEPT>EVICTING",
		"COMMITTING>COMMITTED", "COMMITTING>KEPT", "COMMITTING>EVICTING",
		"COMMITTED>KEPT", "COMMITTED>ENDED", "COMMITTED>GONE",
		"ENDED>EVICTING", "ENDED>GONE",
		"EVICTING>COMMITTED", "EVICTING>GONE",
	};
	size_t n = 0;

	(void)state;
	for (int from = 0; from <= CK_STATE_MAX + 1; from++) {
		for (int to = -1; to <= CK_STATE_MAX + 30; to++) {
			char move[64];
			bool listed = false;
			snprintf(move, sizeof(move), "%s>%s",
				 from ? ck_state_name((enum ck_state)from) : "",
				 ck_state_name((enum ck_state)to));
			for (size_t i = 0; i < CK_COUNT(moves); i++)
				listed = listed || !strcmp(move, moves[i]);
			assert_int_equal(ck_state_may_move((enum ck_state)from, (enum ck_state)to),
					 listed);
			n += listed;
		}
	}
	assert_int_equal(n, CK_COUNT(moves));
}

static void every_value_has_words(void **state)
{
	(void)state;
	for (int i = 1; i <= CK_STATE_MAX; i++)
		assert_string_not_equal(ck_state_name((enum ck_state)i), "?");
	for (int i = 1; i <= CK_REASON_MAX; i++) {
		assert_string_not_equal(ck_reason_name((enum ck_reason)i), "?");
		assert_true(strlen(ck_reason_text((enum ck_reason)i)) > 1);
	}
	for (int i = 1; i <= CK_WHAT_MAX; i++)
		if (i != 10) { /* is no longer used */
			assert_string_not_equal(ck_what_text((enum ck_what)i), "?");
			assert_string_not_equal(ck_what_name((enum ck_what)i), "?");
		}
	assert_string_equal(ck_reason_text(CK_REASON_NONE), "");
	assert_string_equal(ck_state_name((enum ck_state)99), "?");
	assert_string_equal(ck_reason_name((enum ck_reason)99), "?");
	assert_string_equal(ck_reason_text((enum ck_reason) - 1), "?");
	assert_string_equal(ck_what_text((enum ck_what)99), "?");
}

static void a_reply_that_is_not_given_is_made_from_the_id(void **state)
{
	char id[CK_ID_MAX + 1];
	struct ck_shared_result *result = ck_shared_result_new("abc", NULL, 0);

	(void)state;
	assert_int_equal(result->len, 5);
	assert_memory_equal(result->bytes, "\n\003abc", 5);
	assert_string_equal(result->id, "abc");
	ck_shared_result_unref(result);

	memset(id, 'x', sizeof(id) - 1);
	id[sizeof(id) - 1] = '\0';
	result = ck_shared_result_new(id, NULL, 0);
	assert_int_equal(result->len, CK_ID_MAX + 3);
	assert_memory_equal(result->bytes, "\n\200\010xx", 5); /* 1024 as a varint */
	ck_shared_result_unref(result);
}

static void a_result_lives_as_long_as_its_holders(void **state)
{
	struct ck_shared_result *result = ck_shared_result_new("abc", "reply\0more", 10);
	struct ck_shared_result *second = ck_shared_result_ref(result);

	(void)state;
	assert_ptr_equal(result, second);
	ck_shared_result_unref(result);
	assert_memory_equal(second->bytes, "reply\0more", 10);
	assert_string_equal(second->id, "abc");
	ck_shared_result_unref(second);
	ck_shared_result_unref(ck_shared_result_ref(NULL));
}

static void a_result_without_memory_is_none(void **state)
{
	(void)state;
	ck_fault_arm(CK_FAULT_ALLOC, 1, false);
	assert_null(ck_shared_result_new("abc", NULL, 0));
	ck_fault_arm(0, 0, false);
}

static void a_row_can_be_finished_twice(void **state)
{
	struct ck_row row = {
		.result = ck_shared_result_new("abc", NULL, 0),
		.told = strdup("10-x"),
	};

	(void)state;
	row.record.digests = malloc(3);
	ck_row_fini(&row);
	assert_null(row.result);
	ck_row_fini(&row);
}

static void an_object_has_the_key_of_its_names(void **state)
{
	static const struct ck_key pod = { CK_SANDBOX, 1, "ns", "web", "u-1", "", "" };
	static const struct ck_key inside = { CK_CONTAINER, 1, "ns", "web", "u-1", "s1", "app" };
	static const struct {
		const struct ck_key *key;
		bool has;
		enum ck_kind kind;
		uint32_t attempt;
		const char *ns, *name, *uid, *sandbox, *container;
	} cases[] = {
		{ &pod, true, CK_SANDBOX, 1, "ns", "web", "u-1", NULL, NULL },
		{ &pod, false, CK_CONTAINER, 1, "ns", "web", "u-1", NULL, NULL },
		{ &pod, false, CK_SANDBOX, 2, "ns", "web", "u-1", NULL, NULL },
		{ &pod, false, CK_SANDBOX, 1, "other", "web", "u-1", NULL, NULL },
		{ &pod, false, CK_SANDBOX, 1, "ns", "other", "u-1", NULL, NULL },
		{ &pod, false, CK_SANDBOX, 1, "ns", "web", "u-2", NULL, NULL },
		{ &pod, false, CK_SANDBOX, 1, "ns", "web", NULL, NULL, NULL },
		{ &inside, true, CK_CONTAINER, 1, "ns", "web", "u-1", "s1", "app" },
		/* of a container these are labels, which may be absent */
		{ &inside, true, CK_CONTAINER, 1, NULL, NULL, NULL, "s1", "app" },
		{ &inside, false, CK_CONTAINER, 1, "other", NULL, NULL, "s1", "app" },
		{ &inside, false, CK_CONTAINER, 1, NULL, "other", NULL, "s1", "app" },
		{ &inside, false, CK_CONTAINER, 1, NULL, NULL, "u-2", "s1", "app" },
		{ &inside, false, CK_CONTAINER, 1, NULL, NULL, NULL, "s2", "app" },
		{ &inside, false, CK_CONTAINER, 1, NULL, NULL, NULL, "s1", "other" },
	};
	(void)state;
	for (size_t i = 0; i < CK_COUNT(cases); i++) {
		struct ck_object o = { .size = sizeof(o),
				       .kind = cases[i].kind,
				       .id = "x",
				       .attempt = cases[i].attempt,
				       .pod_namespace = cases[i].ns,
				       .pod_name = cases[i].name,
				       .pod_uid = cases[i].uid,
				       .sandbox_id = cases[i].sandbox,
				       .container_name = cases[i].container };
		assert_int_equal(ck_object_has_key(&o, cases[i].key), cases[i].has);
	}
}

static void a_status_is_copied_whole_or_not_at_all(void **state)
{
	const struct ck_status status = {
		.size = sizeof(status), .grpc = 2, .details = "\1\2", .details_len = 2
	};
	struct ck_shared_status *copy = NULL;
	(void)state;
	for (unsigned nth = 1; !copy; nth++) {
		ck_fault_arm(CK_FAULT_ALLOC, nth, false);
		copy = ck_shared_status_new(&status);
		ck_fault_arm(0, 0, false);
		assert_true(nth <= 3 ? !copy : !!copy);
	}
	assert_string_equal(copy->message, "");
	assert_memory_equal(copy->details, "\1\2", 2);
	ck_shared_status_unref(copy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_the_moves_of_the_rules_are_possible),
		cmocka_unit_test(every_value_has_words),
		cmocka_unit_test(a_reply_that_is_not_given_is_made_from_the_id),
		cmocka_unit_test(a_result_lives_as_long_as_its_holders),
		cmocka_unit_test(a_result_without_memory_is_none),
		cmocka_unit_test(a_status_is_copied_whole_or_not_at_all),
		cmocka_unit_test(an_object_has_the_key_of_its_names),
		cmocka_unit_test(a_row_can_be_finished_twice),
	};
	return CK_TEST_MAIN(tests);
}
