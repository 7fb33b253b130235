/* SPDX-License-Identifier: Apache-2.0 */
/* src/base/bytes.c: bytes grow, protobuf's wire form is what protoc's decoders expect, a failure
 * leaves all as it was. */
#include "tests/unit/harness.h"
#include "cache/request/cri.pb-c.h"
#include "src/base/bytes.h"
#include "src/base/fault.h"
#include "src/base/mem.h"
#include "src/crikeep.h"

static void bytes_grow(void **state)
{
	(void)state;
	struct ck_bytes bytes = { 0 };
	for (int i = 0; i < 100000; i++)
		assert_int_equal(ck_bytes_add(&bytes, &(char){ (char)(i % 127) }, 1), 0);
	assert_int_equal(bytes.len, 100000);
	for (int i = 0; i < 100000; i++)
		assert_int_equal(bytes.p[i], i % 127);
	assert_int_equal(ck_bytes_room(&bytes, 1 << 20), 0);
	assert_true(bytes.room - bytes.len >= 1 << 20);
	assert_int_equal(ck_bytes_add(&bytes, NULL, 0), 0);
	assert_int_equal(ck_bytes_add_text(&bytes, "end"), 0);
	assert_memory_equal(bytes.p + 100000, "end", 3);
	ck_bytes_free(&bytes);
	assert_true(!bytes.p && !bytes.len && !bytes.room);
	assert_int_equal(ck_bytes_add_text(&bytes, "again"), 0);
	ck_bytes_free(&bytes);
}

static void more_than_there_can_be_is_refused(void **state)
{
	(void)state;
	struct ck_bytes bytes = { 0 };
	ck_bytes_add_text(&bytes, "kept");
	assert_int_equal(ck_bytes_room(&bytes, SIZE_MAX), -CK_ENOMEM);
	assert_int_equal(ck_bytes_room(&bytes, SIZE_MAX / 2), -CK_ENOMEM);
	assert_int_equal(ck_bytes_field(&bytes, 1, NULL, SIZE_MAX), -CK_ENOMEM);
	assert_int_equal(bytes.len, 4);
	assert_memory_equal(bytes.p, "kept", 4);
	ck_bytes_free(&bytes);
}

static void varints_are_as_short_as_they_can_be(void **state)
{
	(void)state;
	static const struct {
		uint64_t value;
		const char *wire;
		size_t len;
	} all[] = { { 0, "\0", 1 },
		    { 127, "\177", 1 },
		    { 128, "\200\1", 2 },
		    { 300, "\254\2", 2 },
		    { UINT32_MAX, "\377\377\377\377\17", 5 },
		    { UINT64_MAX, "\377\377\377\377\377\377\377\377\377\1", 10 } };
	for (size_t i = 0; i < CK_COUNT(all); i++) {
		struct ck_bytes bytes = { 0 };
		assert_int_equal(ck_bytes_varint(&bytes, all[i].value), 0);
		assert_int_equal(bytes.len, all[i].len);
		assert_memory_equal(bytes.p, all[i].wire, all[i].len);
		ck_bytes_free(&bytes);
	}
}

static void defaults_are_left_out_messages_are_not(void **state)
{
	(void)state;
	struct ck_bytes bytes = { 0 };
	ck_bytes_field_number(&bytes, 1, 0);
	ck_bytes_field_text(&bytes, 2, "");
	ck_bytes_field_text(&bytes, 3, NULL);
	assert_int_equal(bytes.len, 0);
	ck_bytes_field(&bytes, 4, NULL, 0);
	ck_bytes_field_number(&bytes, 16, 1);
	assert_int_equal(bytes.len, 5);
	assert_memory_equal(bytes.p, "\42\0\200\1\1", 5);
	ck_bytes_free(&bytes);
}

static void protobuf_c_reads_what_was_written(void **state)
{
	(void)state;
	struct ck_bytes metadata = { 0 };
	ck_bytes_field_text(&metadata, 1, "web-0");
	ck_bytes_field_text(&metadata, 2, "u1");
	ck_bytes_field_text(&metadata, 3, "default");
	ck_bytes_field_number(&metadata, 4, 300);
	Ck__Cri__PodSandboxMetadata *read =
		ck__cri__pod_sandbox_metadata__unpack(NULL, metadata.len, metadata.p);
	assert_non_null(read);
	assert_string_equal(read->name, "web-0");
	assert_string_equal(read->namespace_, "default");
	assert_int_equal(read->attempt, 300);
	ck__cri__pod_sandbox_metadata__free_unpacked(read, NULL);
	ck_bytes_free(&metadata);
}

static void a_failure_changes_nothing(void **state)
{
	(void)state;
	struct ck_bytes bytes = { 0 };
	char text[100] = { 0 };
	memset(text, 'x', sizeof(text) - 1);
	ck_bytes_add_text(&bytes, "kept");
	ck_fault_arm(CK_FAULT_ALLOC, 1, true);
	assert_int_equal(ck_bytes_field_text(&bytes, 1, text), -CK_ENOMEM);
	assert_int_equal(ck_bytes_add(&bytes, text, sizeof(text)), -CK_ENOMEM);
	ck_fault_arm(0, 0, false);
	assert_int_equal(bytes.len, 4);
	assert_memory_equal(bytes.p, "kept", 4);
	ck_bytes_free(&bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_grow),
		cmocka_unit_test(more_than_there_can_be_is_refused),
		cmocka_unit_test(varints_are_as_short_as_they_can_be),
		cmocka_unit_test(defaults_are_left_out_messages_are_not),
		cmocka_unit_test(protobuf_c_reads_what_was_written),
		cmocka_unit_test(a_failure_changes_nothing),
	};
	return CK_TEST_MAIN(tests);
}
