/* SPDX-License-Identifier: Apache-2.0 */
/* Two READY sandboxes with one uid, and one uid in two pods, are reported once. */
#include "tests/unit/harness.h"

#include "src/base/fault.h"
#include "src/base/mem.h"
#include "src/cri/uid-conflict.h"

#define READY CK_CONDITION_READY
#define DEAD  CK_CONDITION_DEAD

struct heard {
	char text[512];
};

static void hear(enum ck_conflict_what what, const struct ck_object *a, const struct ck_object *b,
		 void *userdata)
{
	struct heard *heard = userdata;
	size_t at = strlen(heard->text);
	snprintf(heard->text + at, sizeof(heard->text) - at, "%s%s %s,%s", at ? "; " : "",
		 what == CK_CONFLICT_READY ? "ready" : "name", a->id, b->id);
}

static struct ck_object sandbox(const char *id, const char *name, const char *ns, const char *uid,
				enum ck_condition condition)
{
	return (struct ck_object){ .size = sizeof(struct ck_object),
				   .kind = CK_SANDBOX,
				   .condition = condition,
				   .id = id,
				   .pod_name = name,
				   .pod_namespace = ns,
				   .pod_uid = uid };
}

/* the conflicts of a list that were not in the previous list */
static const char *look(struct ck_conflicts *conflicts, const struct ck_object *o, size_t n,
			ptrdiff_t there)
{
	static struct heard heard;
	heard.text[0] = '\0';
	assert_int_equal(ck_conflicts_look(conflicts, o, n, hear, &heard), there);
	return heard.text;
}

static void ordinary_lists_have_none(void **state)
{
	(void)state;
	struct ck_conflicts conflicts = { 0 };
	struct ck_object o[] = {
		/* its earlier attempt */
		sandbox("s1", "web", "shop", "u1", READY),
		sandbox("s0", "web", "shop", "u1", DEAD),
		/* replaced, and still there */
		sandbox("s2", "api", "shop", "u2", READY),
		sandbox("s3", "web", "shop", "u3", READY),
	};
	assert_string_equal(look(&conflicts, o, CK_COUNT(o), 0), "");
	assert_string_equal(look(&conflicts, NULL, 0, 0), "");
	ck_conflicts_fini(&conflicts);
}

static void two_ready_sandboxes_of_a_uid_are_one(void **state)
{
	(void)state;
	struct ck_conflicts conflicts = { 0 };
	struct ck_object o[] = { sandbox("s2", "web", "shop", "u1", READY),
				 sandbox("s0", "web", "shop", "u1", DEAD),
				 sandbox("s3", "web", "shop", "u1", READY),
				 sandbox("s1", "web", "shop", "u1", READY) };
	o[0].created_at = 3, o[1].created_at = 1, o[2].created_at = 2, o[3].created_at = 4;
	/* the oldest two */
	assert_string_equal(look(&conflicts, o, CK_COUNT(o), 1), "ready s3,s2");
	ck_conflicts_fini(&conflicts);
}

static void a_uid_with_two_names_or_namespaces_is_one(void **state)
{
	(void)state;
	struct ck_conflicts conflicts = { 0 };
	struct ck_object o[] = {
		sandbox("s1", "web", "shop", "u1", READY), sandbox("s2", "api", "shop", "u1", DEAD),
		sandbox("s3", "web", "shop", "u2", DEAD),  sandbox("s4", "web", "test", "u2", DEAD),
		sandbox("s5", "web", "shop", "u3", READY), sandbox("s6", "api", "shop", "u3", READY)
	};
	assert_string_equal(look(&conflicts, o, CK_COUNT(o), 4),
			    "name s1,s2; name s3,s4; ready s5,s6; name s5,s6");
	ck_conflicts_fini(&conflicts);
}

static void each_is_told_once_and_again_after_it_was_gone(void **state)
{
	(void)state;
	struct ck_conflicts conflicts = { 0 };
	struct ck_object o[] = { sandbox("s1", "web", "shop", "u1", READY),
				 sandbox("s2", "web", "shop", "u1", READY),
				 sandbox("s3", "api", "shop", "u2", READY),
				 sandbox("s4", "api", "shop", "u2", READY) };
	assert_string_equal(look(&conflicts, o, 2, 1), "ready s1,s2");
	assert_string_equal(look(&conflicts, o, 2, 1), "");
	assert_string_equal(look(&conflicts, o, 4, 2), "ready s3,s4"); /* a second one */
	assert_string_equal(look(&conflicts, o + 2, 2, 1), "");
	assert_string_equal(look(&conflicts, o, 4, 2), "ready s1,s2"); /* it had gone */
	o[1].condition = DEAD;
	assert_string_equal(look(&conflicts, o, 4, 1), "");
	o[1].condition = READY;
	o[0].pod_namespace = "test";
	assert_string_equal(look(&conflicts, o, 4, 3), "ready s1,s2; name s1,s2");
	ck_conflicts_fini(&conflicts);
}

static void what_has_no_uid_is_nobody_s(void **state)
{
	(void)state;
	struct ck_conflicts conflicts = { 0 };
	struct ck_object o[] = {
		sandbox("s1", "a", "shop", "", READY),   sandbox("s2", "b", "shop", "", READY),
		sandbox("s3", "a", "shop", NULL, READY), sandbox("s4", "b", "shop", NULL, READY),
		sandbox("c1", "a", "shop", "u1", READY), sandbox("c2", "a", "shop", "u1", READY)
	};
	o[4].kind = o[5].kind = CK_CONTAINER;
	assert_string_equal(look(&conflicts, o, CK_COUNT(o), 0), "");
	struct ck_object bare[] = { sandbox("s1", NULL, NULL, "u1", DEAD),
				    sandbox("s2", "", "", "u1", DEAD) };
	assert_string_equal(look(&conflicts, bare, CK_COUNT(bare), 0), "");
	ck_conflicts_fini(&conflicts);
}

static void a_big_list_is_looked_through(void **state)
{
	enum { PODS = 20000 };
	static struct ck_object o[2 * PODS];
	static char ids[2 * PODS][12], uids[PODS][12];
	(void)state;
	struct ck_conflicts conflicts = { 0 };
	for (size_t i = 0; i < PODS; i++) {
		snprintf(uids[i], sizeof(uids[i]), "u%zu", i * 7919 % PODS);
		for (size_t k = 0; k < 2; k++) {
			snprintf(ids[2 * i + k], sizeof(ids[0]), "s%zu", 2 * i + k);
			o[2 * i + k] = sandbox(ids[2 * i + k], "web", "shop", uids[i],
					       k && i != 4711 ? DEAD : READY);
		}
	}
	assert_string_equal(look(&conflicts, o, CK_COUNT(o), 1), "ready s9422,s9423");
	for (size_t i = 0; i < CK_COUNT(o); i++)
		o[i].condition = READY;
	assert_int_equal(strncmp(look(&conflicts, o, CK_COUNT(o), PODS), "ready ", 6), 0);
	ck_conflicts_fini(&conflicts);
}

/* nothing is reported or forgotten, so the next list reports it */
static void without_memory_nothing_changes(void **state)
{
	(void)state;
	struct ck_object o[] = { sandbox("s1", "web", "shop", "u1", READY),
				 sandbox("s2", "web", "shop", "u1", READY),
				 sandbox("s3", "api", "shop", "u2", READY),
				 sandbox("s4", "other", "shop", "u2", READY) };
	bool hit = true;
	for (unsigned nth = 1; hit; nth++) {
		struct ck_conflicts conflicts = { 0 };
		struct heard heard = { "" };
		assert_string_equal(look(&conflicts, o, 2, 1), "ready s1,s2");
		ck_fault_arm(CK_FAULT_ALLOC, nth, false);
		ptrdiff_t r = ck_conflicts_look(&conflicts, o, 4, hear, &heard);
		hit = ck_fault_hit();
		ck_fault_arm(0, 0, false);
		assert_int_equal(r, hit ? -CK_ENOMEM : 3);
		assert_string_equal(heard.text, hit ? "" : "ready s3,s4; name s3,s4");
		if (hit)
			assert_string_equal(look(&conflicts, o, 4, 3), "ready s3,s4; name s3,s4");
		ck_conflicts_fini(&conflicts);
		assert_true(nth < 20);
	}
}

/* what needs no memory was not looked through */
static void a_list_is_looked_through_when_it_has_changed(void **state)
{
	(void)state;
	struct ck_conflicts conflicts = { 0 };
	struct heard heard = { "" };
	struct ck_object a[] = { sandbox("s1", "web", "shop", "u1", READY),
				 sandbox("s2", "web", "shop", "u1", READY),
				 sandbox("s3", "api", "shop", "u2", READY) },
			 b[] = { a[2], a[0], a[1] };
	assert_string_equal(look(&conflicts, a, 3, 1), "ready s1,s2");
	ck_fault_arm(CK_FAULT_ALLOC, 1, false);
	assert_int_equal(ck_conflicts_look(&conflicts, b, 3, hear, &heard), 1);
	assert_false(ck_fault_hit());
	ck_fault_arm(0, 0, false);
	for (unsigned change = 0; change < 6; change++) {
		struct ck_object c[] = { a[0], a[1], a[2] };
		switch (change) {
		case 0:
			c[2].id = "s4";
			break;
		case 1:
			c[2].pod_name = "other";
			break;
		case 2:
			c[2].pod_namespace = "other";
			break;
		case 3:
			c[2].pod_uid = "u3";
			break;
		case 4:
			c[2].condition = DEAD;
			break;
		}
		ck_fault_arm(CK_FAULT_ALLOC, 1, false);
		assert_int_equal(ck_conflicts_look(&conflicts, c, change == 5 ? 2 : 3, hear,
						   &heard),
				 -CK_ENOMEM);
		ck_fault_arm(0, 0, false);
	}
	ck_conflicts_fini(&conflicts);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ordinary_lists_have_none),
		cmocka_unit_test(two_ready_sandboxes_of_a_uid_are_one),
		cmocka_unit_test(a_uid_with_two_names_or_namespaces_is_one),
		cmocka_unit_test(each_is_told_once_and_again_after_it_was_gone),
		cmocka_unit_test(what_has_no_uid_is_nobody_s),
		cmocka_unit_test(a_big_list_is_looked_through),
		cmocka_unit_test(without_memory_nothing_changes),
		cmocka_unit_test(a_list_is_looked_through_when_it_has_changed),
	};
	return CK_TEST_MAIN(tests);
}
