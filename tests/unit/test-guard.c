/* SPDX-License-Identifier: Apache-2.0 */
/* Ids in requests, wherever they lie, are refused, written out or passed. Nothing else is
 * changed. */
#include "tests/unit/harness.h"

#include "src/base/fault.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/cri/guard.h"
#include "tests/unit/wire-build.h"

/*
 * The known ids: "seen1" is visible and "hid1" hidden; "se" is a prefix of seen1, and "hi" one of
 * hidden ids only; "broken" cannot be looked up; all others are unknown. The id of a container
 * begins with c- and that of a sandbox with s-, so that a confusion of kinds shows.
 */
static const char *const known[][2] = {
	/* named, in full; NULL: hidden */
	{ "s-seen1", "s-seen1" }, { "s-se", "s-seen1" },    { "s-hid1", NULL },
	{ "s-hi", NULL },         { "s-SEEN1", "s-seen1" }, { "c-seen1", "c-seen1" },
	{ "c-se", "c-seen1" },    { "c-hid1", NULL },       { "c-hi", NULL },
	{ "c-SEEN1", "c-seen1" },
};

struct asked {
	unsigned n;
	char last[CK_ID_MAX + 1];
};

static int resolve(enum ck_kind kind, const char *id, const char **ret_id, void *userdata)
{
	static char borrowed[CK_ID_MAX + 1]; /* until the next question, as the view's */
	struct asked *asked = userdata;

	assert_int_equal(id[0], kind == CK_SANDBOX ? 's' : 'c');
	asked->n++;
	strcpy(asked->last, id);
	if (!strcmp(id + 2, "broken"))
		return -CK_ENOMEM;
	strcpy(borrowed, id);
	for (size_t i = 0; i < CK_COUNT(known); i++) {
		if (strcmp(id, known[i][0]))
			continue;
		if (!known[i][1])
			return 1;
		strcpy(borrowed, known[i][1]);
	}
	*ret_id = borrowed;
	return 0;
}

/* where the ids of a call lie: a path of field numbers to each */
static const struct place {
	const char *rpc;
	char kind; /* the first letter of the id that it acts on */
	uint32_t path[5];
	char other_kind;
	uint32_t other[5];
} places[] = {
	{ "StopPodSandbox", 's', { 1 }, 0, { 0 } },
	{ "RemovePodSandbox", 's', { 1 }, 0, { 0 } },
	{ "PodSandboxStatus", 's', { 1 }, 0, { 0 } },
	{ "PortForward", 's', { 1 }, 0, { 0 } },
	{ "PodSandboxStats", 's', { 1 }, 0, { 0 } },
	{ "UpdatePodSandboxResources", 's', { 1 }, 0, { 0 } },
	{ "StartContainer", 'c', { 1 }, 0, { 0 } },
	{ "StopContainer", 'c', { 1 }, 0, { 0 } },
	{ "RemoveContainer", 'c', { 1 }, 0, { 0 } },
	{ "ContainerStatus", 'c', { 1 }, 0, { 0 } },
	{ "UpdateContainerResources", 'c', { 1 }, 0, { 0 } },
	{ "ReopenContainerLog", 'c', { 1 }, 0, { 0 } },
	{ "ExecSync", 'c', { 1 }, 0, { 0 } },
	{ "Exec", 'c', { 1 }, 0, { 0 } },
	{ "Attach", 'c', { 1 }, 0, { 0 } },
	{ "ContainerStats", 'c', { 1 }, 0, { 0 } },
	{ "CheckpointContainer", 'c', { 1 }, 0, { 0 } },
	{ "CheckpointPod", 's', { 1 }, 'c', { 3 } },
	{ "CreateContainer", 's', { 1 }, 'c', { 2, 15, 2, 3, 4 } },
	{ "ListPodSandbox", 's', { 1, 1 }, 0, { 0 } },
	{ "StreamPodSandboxes", 's', { 1, 1 }, 0, { 0 } },
	{ "ListPodSandboxStats", 's', { 1, 1 }, 0, { 0 } },
	{ "StreamPodSandboxStats", 's', { 1, 1 }, 0, { 0 } },
	{ "ListContainers", 'c', { 1, 1 }, 's', { 1, 3 } },
	{ "StreamContainers", 'c', { 1, 1 }, 's', { 1, 3 } },
	{ "ListContainerStats", 'c', { 1, 1 }, 's', { 1, 2 } },
	{ "StreamContainerStats", 'c', { 1, 1 }, 's', { 1, 2 } },
};

static const struct ck_cri_method *method(const char *rpc)
{
	char path[128];
	int len = snprintf(path, sizeof(path), "/runtime.v1.RuntimeService/%s", rpc);
	const struct ck_cri_method *found = ck_cri_method_find(path, (size_t)len);
	assert_non_null(found);
	return found;
}

/* the id at the end of a path, with unknown fields before and behind it at every level */
static void put_at(struct ck_bytes *to, const uint32_t *path, unsigned depth, const char *kind_id)
{
	struct ck_bytes inner = { 0 };

	put_unknown(to);
	if (depth == 5 || !path[1]) {
		put_text(to, path[0], kind_id);
	} else {
		put_at(&inner, path + 1, depth + 1, kind_id);
		put(to, path[0], &inner);
	}
	put_unknown(to);
}

static struct ck_bytes build(const struct place *place, const char *id, const char *other)
{
	struct ck_bytes request = { 0 };
	char text[2 * CK_ID_MAX];

	if (other) { /* second in the table, first on the wire: the order does not matter */
		snprintf(text, sizeof(text), "%c-%s", place->other_kind, other);
		put_at(&request, place->other, 1, text);
	}
	snprintf(text, sizeof(text), "%c-%s", place->kind, id);
	put_at(&request, place->path, 1, text);
	return request;
}

struct run {
	struct asked asked;
	struct ck_error err;
	struct ck_bytes out;
	char id[CK_ID_MAX + 1];
	int r;
};

/* @request: must not be changed */
static void guard(struct run *run, const struct ck_cri_method *method, const void *request,
		  size_t len)
{
	unsigned char *copy = exact_copy(request, len);

	memset(run, 0, sizeof(*run));
	run->r = ck_guard_request(method, copy, len, resolve, &run->asked, run->id, &run->out,
				  &run->err);
	assert_int_equal(run->out.p != NULL, run->r == CK_IDS_REWRITTEN);
	assert_int_equal(run->err.code, run->r < 0 ? -run->r : 0);
	if (run->r < 0)
		assert_true(*run->err.text);
	free(copy);
}

static void expect(const struct place *place, const char *id, const char *other, int r,
		   const char *full, const char *other_full)
{
	struct ck_bytes request = build(place, id, other),
			expected = build(place, full, other ? other_full : NULL);
	struct run run;
	char text[2 * CK_ID_MAX];

	guard(&run, method(place->rpc), request.p, request.len);
	assert_int_equal(run.r, r);
	snprintf(text, sizeof(text), "%c-%s", place->kind, full);
	assert_string_equal(run.id, text);
	if (r == CK_IDS_REWRITTEN) {
		assert_int_equal(run.out.len, expected.len);
		assert_memory_equal(run.out.p, expected.p, expected.len);
	}
	ck_bytes_free(&run.out);
	ck_bytes_free(&request);
	ck_bytes_free(&expected);
}

static void every_call_is_guarded_at_its_ids(void **state)
{
	size_t guarded = 0, n = 0;

	(void)state;
	for (size_t i = 0; ck_cri_method_at(i); i++)
		guarded += ck_cri_method_at(i)->request != NULL;
	assert_int_equal(guarded, CK_COUNT(places));
	for (const struct place *p = places; n < CK_COUNT(places); p++, n++) {
		bool filter = method(p->rpc)->class == CK_CRI_FILTER;
		expect(p, "seen1", NULL, CK_IDS_UNCHANGED, "seen1", NULL);
		expect(p, "unknown", NULL, CK_IDS_UNCHANGED, "unknown", NULL);
		expect(p, "se", NULL, CK_IDS_REWRITTEN, "seen1", NULL);
		/* as long, but another one */
		expect(p, "SEEN1", NULL, CK_IDS_REWRITTEN, "seen1", NULL);
		expect(p, "hid1", NULL, filter ? CK_IDS_UNCHANGED : CK_IDS_HIDDEN, "hid1",
		       NULL);
		expect(p, "hi", NULL, filter ? CK_IDS_UNCHANGED : CK_IDS_HIDDEN, "hi", NULL);
		if (!p->other_kind)
			continue;
		expect(p, "seen1", "unknown", CK_IDS_UNCHANGED, "seen1", "unknown");
		expect(p, "seen1", "se", CK_IDS_REWRITTEN, "seen1", "seen1");
		expect(p, "se", "se", CK_IDS_REWRITTEN, "seen1", "seen1");
		expect(p, "se", "seen1", CK_IDS_REWRITTEN, "seen1", "seen1");
		expect(p, "seen1", "hid1", filter ? CK_IDS_UNCHANGED : CK_IDS_HIDDEN, "seen1",
		       "hid1");
		expect(p, "se", "hi", filter ? CK_IDS_REWRITTEN : CK_IDS_HIDDEN, "seen1", "hi");
		expect(p, "hi", "se", filter ? CK_IDS_REWRITTEN : CK_IDS_HIDDEN, "hi", "seen1");
	}
}

static void calls_without_ids_pass_unread(void **state)
{
	struct run run;

	(void)state;
	for (size_t i = 0; ck_cri_method_at(i); i++) {
		if (ck_cri_method_at(i)->request)
			continue;
		guard(&run, ck_cri_method_at(i), "\xff\xff", 2);
		assert_int_equal(run.r, CK_IDS_UNCHANGED);
		assert_string_equal(run.id, "");
		assert_int_equal(run.asked.n, 0);
	}
}

static void an_empty_or_absent_id_is_the_runtimes_business(void **state)
{
	struct run run;

	(void)state;
	for (size_t i = 0; i < CK_COUNT(places); i++) {
		struct ck_bytes request = { 0 };
		guard(&run, method(places[i].rpc), "", 0);
		assert_int_equal(run.r, CK_IDS_UNCHANGED);
		put_at(&request, places[i].path, 1, "");
		guard(&run, method(places[i].rpc), request.p, request.len);
		assert_int_equal(run.r, CK_IDS_UNCHANGED);
		assert_string_equal(run.id, "");
		assert_int_equal(run.asked.n, 0);
		ck_bytes_free(&request);
	}
}

static void the_last_occurrence_of_an_id_counts(void **state)
{
	static const char *const ids[][2] = { { "s-hid1", "s-se" },
					      { "s-se", "s-se" },
					      { "s-unknown", "s-se" } };
	struct run run;

	(void)state;
	for (size_t i = 0; i < CK_COUNT(ids); i++) {
		struct ck_bytes request = { 0 }, expected = { 0 };
		put_text(&request, 1, ids[i][0]);
		put_number(&request, 2, 1);
		put_text(&request, 1, ids[i][1]);
		put_text(&expected, 1, ids[i][0]); /* the runtime ignores it as well */
		put_number(&expected, 2, 1);
		put_text(&expected, 1, "s-seen1");
		guard(&run, method("PodSandboxStatus"), request.p, request.len);
		assert_int_equal(run.r, CK_IDS_REWRITTEN);
		assert_int_equal(run.out.len, expected.len);
		assert_memory_equal(run.out.p, expected.p, expected.len);
		assert_string_equal(run.id, "s-seen1");
		assert_int_equal(run.asked.n, 1);
		ck_bytes_free(&run.out);
		ck_bytes_free(&request);
		ck_bytes_free(&expected);
	}
	struct ck_bytes hidden = { 0 };
	put_text(&hidden, 1, "s-seen1");
	put_text(&hidden, 1, "s-hid1");
	guard(&run, method("PodSandboxStatus"), hidden.p, hidden.len);
	assert_int_equal(run.r, CK_IDS_HIDDEN);
	put_text(&hidden, 1, "");
	guard(&run, method("PodSandboxStatus"), hidden.p, hidden.len);
	assert_int_equal(run.r, CK_IDS_UNCHANGED);
	ck_bytes_free(&hidden);
}

static void each_id_of_a_list_counts(void **state)
{
	struct ck_bytes request = { 0 }, expected = { 0 };
	struct run run;

	(void)state;
	put_text(&request, 1, "s-seen1");
	put_text(&request, 3, "c-se");
	put_text(&request, 3, "c-unknown");
	put_text(&request, 3, "");
	put_text(&request, 3, "c-SEEN1");
	put_text(&expected, 1, "s-seen1");
	put_text(&expected, 3, "c-seen1");
	put_text(&expected, 3, "c-unknown");
	put_text(&expected, 3, "");
	put_text(&expected, 3, "c-seen1");
	guard(&run, method("CheckpointPod"), request.p, request.len);
	assert_int_equal(run.r, CK_IDS_REWRITTEN);
	assert_int_equal(run.out.len, expected.len);
	assert_memory_equal(run.out.p, expected.p, expected.len);
	assert_string_equal(run.id, "s-seen1");
	ck_bytes_free(&run.out);
	ck_bytes_free(&expected);

	put_text(&request, 3, "c-hid1");
	put_text(&request, 3, "c-seen1"); /* nothing after it makes it right */
	guard(&run, method("CheckpointPod"), request.p, request.len);
	assert_int_equal(run.r, CK_IDS_HIDDEN);
	ck_bytes_free(&request);
}

static void a_list_of_ids_ends_somewhere(void **state)
{
	struct ck_bytes request = { 0 };
	struct run run;

	(void)state;
	for (unsigned i = 0; i < CK_LISTED_IDS_MAX; i++)
		put_text(&request, 3, "c-seen1");
	guard(&run, method("CheckpointPod"), request.p, request.len);
	assert_int_equal(run.r, CK_IDS_UNCHANGED);
	put_text(&request, 3, "c-seen1");
	guard(&run, method("CheckpointPod"), request.p, request.len);
	assert_int_equal(run.r, -CK_ETOOBIG);
	ck_bytes_free(&request);
}

/* the config comes in two pieces, which are one message: what the first says still counts after the
 * second */
static void a_message_in_pieces_is_merged(void **state)
{
	static const uint32_t target[] = { 2, 15, 2, 3, 4 };
	struct ck_bytes request = { 0 };
	struct run run;

	(void)state;
	put_text(&request, 1, "s-seen1");
	put_at(&request, target, 1, "c-hid1");
	put_pair(&request, 2, "metadata", "");
	guard(&run, method("CreateContainer"), request.p, request.len);
	assert_int_equal(run.r, CK_IDS_HIDDEN);
	put_at(&request, target, 1, "c-seen1");
	guard(&run, method("CreateContainer"), request.p, request.len);
	assert_int_equal(run.r, CK_IDS_UNCHANGED);
	ck_bytes_free(&request);
}

static void a_field_of_another_wire_type_is_another_field(void **state)
{
	struct ck_bytes request = { 0 };
	struct run run;

	(void)state;
	put_text(&request, 1, "s-se");
	put_number(&request, 1, 7);
	guard(&run, method("StopPodSandbox"), request.p, request.len);
	assert_int_equal(run.r, CK_IDS_REWRITTEN);
	assert_string_equal(run.id, "s-seen1");
	assert_memory_equal(run.out.p + run.out.len - 2, "\x08\x07", 2);
	ck_bytes_free(&run.out);
	ck_bytes_free(&request);
}

static void ids_that_cannot_be_are_refused(void **state)
{
	char id[CK_ID_MAX + 2];
	struct run run;

	(void)state;
	for (size_t i = 0; i < CK_COUNT(places); i++) {
		memset(id, places[i].kind, sizeof(id));
		struct ck_bytes long_id = { 0 }, longest = { 0 }, nul = { 0 };
		id[CK_ID_MAX + 1] = '\0';
		put_at(&long_id, places[i].path, 1, id);
		guard(&run, method(places[i].rpc), long_id.p, long_id.len);
		assert_int_equal(run.r, -CK_ETOOBIG);
		id[CK_ID_MAX] = '\0';
		put_at(&longest, places[i].path, 1, id);
		guard(&run, method(places[i].rpc), longest.p, longest.len);
		assert_int_equal(run.r, CK_IDS_UNCHANGED);
		assert_string_equal(run.id, id);
		put_at(&nul, places[i].path, 1, "?-seen1");
		/* no unknown field has a "?" */
		*(unsigned char *)memchr(nul.p, '?', nul.len) = '\0';
		guard(&run, method(places[i].rpc), nul.p, nul.len);
		assert_int_equal(run.r, -CK_EMALFORMED);
		assert_int_equal(run.asked.n, 0);
		ck_bytes_free(&long_id);
		ck_bytes_free(&longest);
		ck_bytes_free(&nul);
	}
}

static void a_failed_look_up_is_an_error(void **state)
{
	struct run run;

	(void)state;
	for (size_t i = 0; i < CK_COUNT(places); i++) {
		struct ck_bytes request =
			build(&places[i], "broken", places[i].other_kind ? "hid1" : NULL);
		guard(&run, method(places[i].rpc), request.p, request.len);
		assert_int_equal(run.r, -CK_ENOMEM);
		ck_bytes_free(&request);
	}
}

static void a_cut_off_request_is_malformed_wherever_it_is_cut(void **state)
{
	struct run run;

	(void)state;
	for (size_t i = 0; i < CK_COUNT(places); i++) {
		struct ck_bytes request =
			build(&places[i], "se", places[i].other_kind ? "se" : NULL);
		for (size_t len = 0; len < request.len; len++) {
			guard(&run, method(places[i].rpc), request.p, len);
			assert_int_equal(run.r == -CK_EMALFORMED,
					 !is_border(request.p, request.len, len));
			ck_bytes_free(&run.out);
		}
		ck_bytes_free(&request);
	}
}

static void memory_may_end_anywhere(void **state)
{
	(void)state;
	for (size_t i = 0; i < CK_COUNT(places); i++) {
		struct ck_bytes request =
			build(&places[i], "se", places[i].other_kind ? "se" : NULL);
		struct run run = { .r = -CK_ENOMEM };
		unsigned n = 0;
		while (run.r == -CK_ENOMEM) {
			ck_fault_arm(CK_FAULT_ALLOC, ++n, false);
			guard(&run, method(places[i].rpc), request.p, request.len);
			assert_int_equal(run.r, ck_fault_hit() ? -CK_ENOMEM : CK_IDS_REWRITTEN);
			ck_fault_arm(0, 0, false);
			ck_bytes_free(&run.out);
		}
		assert_true(n > 1);
		ck_bytes_free(&request);
	}
}

static void a_request_of_16_mib_is_rewritten_around_its_id(void **state)
{
	static const uint32_t target[] = { 2, 15, 2, 3, 4 };
	size_t size = CK_REQUEST_MAX;
	char *big = malloc(size + 1);
	struct ck_bytes request = { 0 };
	struct run run;

	(void)state;
	memset(big, 'x', size);
	big[size] = '\0';
	put_at(&request, target, 1, "c-se");
	put_text(&request, 9, big);
	guard(&run, method("CreateContainer"), request.p, request.len);
	assert_int_equal(run.r, CK_IDS_REWRITTEN);
	/* "en1": the lengths around it keep their size */
	assert_int_equal(run.out.len, request.len + 3);
	ck_bytes_free(&run.out);
	ck_bytes_free(&request);
	free(big);
}

static void any_field_restricts_a_list_but_an_empty_filter(void **state)
{
	static const char *const lists[] = {
		"ListPodSandbox",     "StreamPodSandboxes",   "ListContainers",
		"StreamContainers",   "ListPodSandboxStats",  "StreamPodSandboxStats",
		"ListContainerStats", "StreamContainerStats",
	};

	(void)state;
	for (size_t i = 0; i < CK_COUNT(lists); i++) {
		const struct ck_cri_method *list = method(lists[i]);
		assert_false(ck_guard_has_filter(list, "", 0));
		/* an empty filter */
		assert_false(ck_guard_has_filter(list, "\x0a\x00", 2));
		assert_false(ck_guard_has_filter(list, "\x0a\x00\x0a\x00", 4));
		/* state = READY: an empty message */
		assert_true(ck_guard_has_filter(list, "\x0a\x02\x12\x00", 4));
		assert_true(ck_guard_has_filter(list, "\x0a\x03\x0a\x01x", 5)); /* id */
		/* an empty id, which restricts nothing; the guard is too careful here */
		assert_true(ck_guard_has_filter(list, "\x0a\x02\x0a\x00", 4));
		/* an unknown field */
		assert_true(ck_guard_has_filter(list, "\x12\x00", 2));
		assert_true(ck_guard_has_filter(list, "\x08\x00", 2));
		assert_true(ck_guard_has_filter(list, "\x0a", 1));
		assert_true(ck_guard_has_filter(list, "\x0a\x00\x0a", 3));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_call_is_guarded_at_its_ids),
		cmocka_unit_test(calls_without_ids_pass_unread),
		cmocka_unit_test(an_empty_or_absent_id_is_the_runtimes_business),
		cmocka_unit_test(the_last_occurrence_of_an_id_counts),
		cmocka_unit_test(each_id_of_a_list_counts),
		cmocka_unit_test(a_list_of_ids_ends_somewhere),
		cmocka_unit_test(a_message_in_pieces_is_merged),
		cmocka_unit_test(a_field_of_another_wire_type_is_another_field),
		cmocka_unit_test(ids_that_cannot_be_are_refused),
		cmocka_unit_test(a_failed_look_up_is_an_error),
		cmocka_unit_test(a_cut_off_request_is_malformed_wherever_it_is_cut),
		cmocka_unit_test(memory_may_end_anywhere),
		cmocka_unit_test(a_request_of_16_mib_is_rewritten_around_its_id),
		cmocka_unit_test(any_field_restricts_a_list_but_an_empty_filter),
	};
	return CK_TEST_MAIN(tests);
}
