/* SPDX-License-Identifier: Apache-2.0 */
/* Resources from CRI's words into NRI's and back: what is the same in both comes back, and the rest
 * is refused by name. */
#include "tests/unit/harness.h"
#include "src/base/fault.h"
#include "src/base/mem.h"
#include "src/daemon/nri/resources.h"

static struct ck_bytes cri, nri, back;
static struct ck_error err;

static int tear_down(void **state)
{
	(void)state;
	ck_bytes_free(&cri);
	ck_bytes_free(&nri);
	ck_bytes_free(&back);
	return 0;
}

static void number(struct ck_bytes *out, uint32_t field, uint64_t value)
{
	assert_int_equal(ck_bytes_field_number(out, field, value), 0);
}

static void text(struct ck_bytes *out, uint32_t field, const char *value)
{
	assert_int_equal(ck_bytes_field_text(out, field, value), 0);
}

/* a page size and its limit, or a key and its value */
static void entry(struct ck_bytes *out, uint32_t field, const char *key, const char *value,
		  uint64_t limit)
{
	CK_AUTO_BYTES struct ck_bytes inside = { 0 };
	text(&inside, 1, key);
	text(&inside, 2, value);
	number(&inside, 2, limit);
	assert_int_equal(ck_bytes_field(out, field, inside.p, inside.len), 0);
}

static void everything_of_cri_comes_back(void **state)
{
	(void)state;
	number(&cri, 4, 64 << 20);
	number(&cri, 10, UINT64_MAX); /* -1 */
	number(&cri, 3, 512);
	number(&cri, 2, UINT64_MAX);
	number(&cri, 1, 100000);
	text(&cri, 6, "0-3");
	text(&cri, 7, "0");
	entry(&cri, 8, "2MB", NULL, 4096);
	entry(&cri, 9, "memory.high", "max", 0);
	assert_int_equal(ck_resources_from_cri(cri.p, cri.len, &nri, &err), 0);
	assert_int_equal(ck_resources_to_cri(nri.p, nri.len, &back, &err), 0);
	assert_int_equal(back.len, cri.len);
	assert_memory_equal(back.p, cri.p, cri.len);
}

static void what_cri_has_no_place_for_is_named(void **state)
{
	static const struct {
		uint32_t outer, inner;
		const char *want;
	} cases[] = {
		{ 1, 2, "field MemReservation cannot be applied through CRI" },
		{ 1, 4, "field MemKernelLimit cannot be applied through CRI" },
		{ 1, 5, "field MemTCPLimit cannot be applied through CRI" },
		{ 1, 6, "field MemSwappiness cannot be applied through CRI" },
		{ 1, 7, "field MemDisableOomKiller cannot be applied through CRI" },
		{ 1, 8, "field MemUseHierarchy cannot be applied through CRI" },
		{ 1, 9,
		  "a field of resources that is not known (9) cannot be applied through CRI" },
		{ 2, 4, "field CPURealtimeRuntime cannot be applied through CRI" },
		{ 2, 5, "field CPURealtimePeriod cannot be applied through CRI" },
		{ 4, 0, "field BlockioClass cannot be applied through CRI" },
		{ 5, 0, "field RdtClass cannot be applied through CRI" },
		{ 7, 0, "field Devices cannot be applied through CRI" },
		{ 8, 0, "field PidsLimit cannot be applied through CRI" },
		{ 9, 0,
		  "a field of resources that is not known (9) cannot be applied through CRI" },
	};
	(void)state;
	text(&back, 6, "before");
	size_t before = back.len;
	for (size_t i = 0; i < CK_COUNT(cases); i++) {
		CK_AUTO_BYTES struct ck_bytes inside = { 0 }, one = { 0 }, value = { 0 };
		number(&value, 1, 7);
		if (cases[i].inner)
			assert_int_equal(
				ck_bytes_field(&inside, cases[i].inner, value.p, value.len), 0);
		assert_int_equal(ck_bytes_field(&one, cases[i].outer, inside.p, inside.len), 0);
		assert_int_equal(ck_resources_to_cri(one.p, one.len, &back, &err), -CK_EINVAL);
		assert_string_equal(err.text, cases[i].want);
		assert_int_equal(back.len, before);
	}
}

static void a_zero_that_is_meant_is_refused(void **state)
{
	static const unsigned char quota_0[] = { 2 << 3 | 2, 2, 2 << 3 | 2, 0 };
	/* memory and cpu, with nothing in them */
	static const unsigned char nothing[] = { 1 << 3 | 2, 0, 2 << 3 | 2, 0 };
	(void)state;
	assert_int_equal(ck_resources_to_cri(quota_0, sizeof(quota_0), &back, &err), -CK_EINVAL);
	assert_string_equal(err.text, "field CPUQuota cannot be set to 0 through CRI");
	assert_int_equal(ck_resources_to_cri(nothing, sizeof(nothing), &back, &err), 0);
	assert_int_equal(back.len, 0);
}

static void what_is_malformed_is_an_error(void **state)
{
	static const unsigned char cut[] = { 2 << 3 | 2, 9, 0 };
	(void)state;
	assert_int_equal(ck_resources_to_cri(cut, sizeof(cut), &back, &err), -CK_EMALFORMED);
	assert_int_equal(ck_resources_from_cri(cut, sizeof(cut), &back, &err), -CK_EMALFORMED);
}

static void no_memory_is_an_error(void **state)
{
	bool hit = true;
	(void)state;
	number(&cri, 4, 64);
	entry(&cri, 9, "memory.high", "max", 0);
	assert_int_equal(ck_resources_from_cri(cri.p, cri.len, &nri, &err), 0);
	for (unsigned nth = 1; hit; nth++) {
		CK_AUTO_BYTES struct ck_bytes out = { 0 };
		ck_fault_arm(CK_FAULT_ALLOC, nth, false);
		int r = ck_resources_to_cri(nri.p, nri.len, &out, &err);
		hit = ck_fault_hit();
		ck_fault_arm(0, 0, false);
		assert_int_equal(r, hit ? -CK_ENOMEM : 0);
	}
}

#define TEST(name) cmocka_unit_test_teardown(name, tear_down)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(everything_of_cri_comes_back),
		TEST(what_cri_has_no_place_for_is_named),
		TEST(a_zero_that_is_meant_is_refused),
		TEST(what_is_malformed_is_an_error),
		TEST(no_memory_is_an_error),
	};
	return CK_TEST_MAIN(tests);
}
