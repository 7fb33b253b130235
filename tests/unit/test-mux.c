/* SPDX-License-Identifier: Apache-2.0 */
/* hooks/wire/mux.c: frames however they are cut, and messages cut as Go's writer cuts them. */
#include <string.h>

#include "tests/unit/harness.h"
#include "hooks/wire/mux.h"
#include "src/base/fault.h"
#include "src/base/limits.h"
#include "src/base/mem.h"

struct told { /* what came for connections 1 and 2 */
	char text[3][64];
	size_t len[3], calls;
	int fail; /* returned for the call of this number */
};

static int tell(uint32_t conn, const unsigned char *p, size_t n, void *userdata,
		struct ck_error *err)
{
	struct told *told = userdata;
	assert_in_range(conn, CK_MUX_PLUGIN, CK_MUX_RUNTIME);
	assert_true(n > 0 && told->len[conn] + n < sizeof(told->text[conn]));
	memcpy(told->text[conn] + told->len[conn], p, n);
	told->len[conn] += n;
	told->calls++;
	return told->fail && (int)told->calls == told->fail ? ck_fail(err, CK_EREFUSED, "enough")
							    : 0;
}

static void frames_are_read_however_they_are_cut(void **state)
{
	(void)state;
	static const char wire[] = "\0\0\0\1\0\0\0\3abc"
				   "\0\0\0\2\0\0\0\0" /* nothing, which is legal */
				   "\0\0\0\7\0\0\0\2xx"
				   "\0\0\0\2\0\0\0\5hello"
				   "\0\0\0\0\0\0\0\1z"
				   "\0\0\1\1\0\0\0\1y" /* not connection 1 */
				   "\0\0\0\1\0\0\0\1d"
				   "\0\0\0\2\0\0\0\1!";
	for (size_t piece = 1; piece <= sizeof(wire); piece++) {
		struct ck_mux mux = { .header_len = 0 };
		struct told told = { .calls = 0 };
		for (size_t at = 0; at < sizeof(wire) - 1; at += piece) {
			size_t n = sizeof(wire) - 1 - at;
			assert_int_equal(ck_mux_feed(&mux, wire + at, n < piece ? n : piece, tell,
						     &told, NULL),
					 0);
		}
		assert_string_equal(told.text[1], "abcd");
		assert_string_equal(told.text[2], "hello!");
		assert_int_equal(mux.header_len, 0);
		ck_mux_fini(&mux);
	}
}

static void a_frame_that_is_too_long_ends_it(void **state)
{
	(void)state;
	static const struct {
		const char *header, *text;
	} bad[] = {
		{ "\0\0\0\1\377\377\377\377", "a frame of 4294967295 bytes; the limit is 4194314" },
		{ "\0\0\0\2\0\100\0\13", "a frame of 4194315 bytes; the limit is 4194314" },
		/* though nobody reads it */
		{ "\0\0\0\11\200\0\0\0", "a frame of 2147483648 bytes; the limit is 4194314" },
	};
	struct told told = { .calls = 0 };
	struct ck_error err;
	for (size_t i = 0; i < CK_COUNT(bad); i++) {
		struct ck_mux mux = { .header_len = 0 };
		assert_int_equal(ck_mux_feed(&mux, bad[i].header, 7, tell, &told, &err), 0);
		assert_int_equal(ck_mux_feed(&mux, bad[i].header + 7, 1, tell, &told, &err),
				 -CK_EMALFORMED);
		assert_string_equal(err.text, bad[i].text);
		assert_int_equal(ck_mux_feed(&mux, "x", 1, tell, &told, &err), -CK_EMALFORMED);
		ck_mux_fini(&mux);
	}
	struct ck_mux mux = { .header_len = 0 };
	assert_int_equal(ck_mux_feed(&mux, "\0\0\0\1\0\100\0\12x", 9, tell, &told, &err), 0);
	assert_int_equal(mux.left, CK_MUX_FRAME_MAX - 1);
	assert_string_equal(told.text[1], "x");
	assert_null(mux.out.p); /* nothing is held */
	ck_mux_fini(&mux);
}

static void what_its_reader_says_ends_it(void **state)
{
	(void)state;
	struct ck_mux mux = { .header_len = 0 };
	struct told told = { .fail = 2 };
	struct ck_error err;
	assert_int_equal(ck_mux_feed(&mux, "\0\0\0\1\0\0\0\1a\0\0\0\2\0\0\0\1b\0\0\0\1\0\0\0\1c",
				     27, tell, &told, &err),
			 -CK_EREFUSED);
	assert_string_equal(err.text, "enough");
	assert_string_equal(told.text[1], "a");
	assert_string_equal(told.text[2], "b");
	ck_mux_fini(&mux);
}

/* the frames of @p: their lengths, 0 after the last; their contents, which are one message, are
 * compared */
static void frames_check(const unsigned char *p, size_t n, uint32_t conn,
			 const unsigned char *message, size_t size, size_t lengths[4])
{
	size_t i = 0;
	for (; n; i++) {
		assert_true(i < 3 && n >= 8);
		assert_int_equal(p[0] << 24 | p[1] << 16 | p[2] << 8 | p[3], conn);
		lengths[i] = (size_t)p[4] << 24 | (size_t)p[5] << 16 | (size_t)p[6] << 8 | p[7];
		p += 8;
		n -= 8;
		assert_true(lengths[i] > 0 && lengths[i] <= n && lengths[i] <= size);
		assert_memory_equal(p, message, lengths[i]);
		p += lengths[i];
		n -= lengths[i];
		message += lengths[i];
		size -= lengths[i];
	}
	lengths[i] = 0;
	assert_int_equal(size, 0);
}

static void a_message_goes_out_in_the_frames_go_expects(void **state)
{
	(void)state;
	static const size_t max = CK_MUX_FIRST + CK_MUX_FRAME_MAX;
	static const struct {
		size_t head, body, frames[3];
	} messages[] = {
		{ 0, 0, { 0 } }, /* none at all: an empty frame says nothing */
		{ 10, 0, { 10 } },
		{ 10, 1, { 11 } },
		{ 10, 4085, { 4095 } },
		{ 10, 4086, { 4096 } },
		{ 10, 4087, { 4096, 1 } },
		{ 10, 4096, { 4096, 10 } },
		{ 0, 4097, { 4096, 1 } },
		{ 4097, 0, { 4096, 1 } },
		{ 5000, 5, { 4096, 909 } },
		{ 10, 20000, { 4096, 15914 } },
		{ 10, (4u << 20) - 300, { 4096, (4u << 20) - 300 + 10 - 4096 } },
		/* the longest that ttrpc has */
		{ 10, 4u << 20, { 4096, CK_MUX_FRAME_MAX - 4096 } },
		{ 0, max, { 4096, CK_MUX_FRAME_MAX } },
		{ 5, max, { 4096, CK_MUX_FRAME_MAX, 5 } },
	};
	unsigned char *bytes = malloc(max + 5);
	assert_non_null(bytes);
	for (size_t i = 0; i < max + 5; i++)
		bytes[i] = (unsigned char)(i * 31 + (i >> 9));
	for (size_t i = 0; i < CK_COUNT(messages); i++) {
		struct ck_mux mux = { .header_len = 0 };
		size_t lengths[4] = { 0 }, n, head = messages[i].head, body = messages[i].body;
		assert_int_equal(ck_mux_send(&mux, CK_MUX_PLUGIN, bytes, head, bytes + head, body),
				 0);
		const unsigned char *out = ck_mux_out(&mux, &n);
		frames_check(out, n, CK_MUX_PLUGIN, bytes, head + body, lengths);
		for (size_t k = 0; k < 3; k++)
			assert_int_equal(lengths[k], messages[i].frames[k]);
		ck_mux_sent(&mux, n);
		ck_mux_out(&mux, &n);
		assert_int_equal(n, 0);
		assert_true(mux.out.room <= CK_SOCKET_READ); /* a list's room is given back */
		ck_mux_fini(&mux);
	}
	free(bytes);
}

static void a_message_with_only_a_head_needs_no_body(void **state)
{
	(void)state;
	struct ck_mux mux = { .header_len = 0 };
	size_t n;
	assert_int_equal(ck_mux_send(&mux, CK_MUX_RUNTIME, "head", 4, NULL, 0), 0);
	const unsigned char *out = ck_mux_out(&mux, &n);
	assert_int_equal(n, 12);
	assert_memory_equal(out, "\0\0\0\2\0\0\0\4head", 12);
	ck_mux_fini(&mux);
}

static void what_is_written_in_pieces_stays_in_order_and_small(void **state)
{
	(void)state;
	struct ck_mux mux = { .header_len = 0 };
	unsigned char body[1000];
	size_t n, written = 0;
	for (unsigned i = 0; i < 2000; i++) {
		memset(body, (int)(i & 0xff), sizeof(body));
		assert_int_equal(ck_mux_send(&mux, CK_MUX_PLUGIN, body, sizeof(body), NULL, 0), 0);
		for (;;) { /* the socket never takes the last bytes */
			const unsigned char *out = ck_mux_out(&mux, &n);
			if (n <= 500)
				break;
			size_t piece = n - 500 < 77 ? n - 500 : 77;
			for (size_t k = 0; k < piece; k++, written++) {
				if (written % 1008 >= 8)
					assert_int_equal(out[k], written / 1008 & 0xff);
			}
			ck_mux_sent(&mux, piece);
		}
	}
	assert_int_equal(written + 500, 2000 * 1008);
	assert_true(mux.out.room < 512 << 10); /* of 2 MB */
	ck_mux_sent(&mux, n + 1000);           /* more than there is: no harm */
	ck_mux_out(&mux, &n);
	assert_int_equal(n, 0);
	ck_mux_fini(&mux);
}

static void without_memory_nothing_is_queued(void **state)
{
	(void)state;
	struct ck_mux mux = { .header_len = 0 };
	unsigned char body[5000] = { 0 };
	size_t n;
	assert_int_equal(ck_mux_send(&mux, CK_MUX_PLUGIN, "1", 1, NULL, 0), 0);
	ck_fault_arm(CK_FAULT_ALLOC, 1, false);
	assert_int_equal(ck_mux_send(&mux, CK_MUX_PLUGIN, "22", 2, body, sizeof(body)), -CK_ENOMEM);
	assert_true(ck_fault_hit());
	ck_fault_arm(0, 0, false);
	/* not asked for */
	assert_int_equal(ck_mux_send(&mux, CK_MUX_PLUGIN, "3", 1, body, SIZE_MAX - 3), -CK_ENOMEM);
	assert_int_equal(ck_mux_send(&mux, CK_MUX_PLUGIN, body, SIZE_MAX - 3, "3", 1), -CK_ENOMEM);
	assert_int_equal(ck_mux_send(&mux, CK_MUX_PLUGIN, "3", 1, NULL, 0), 0);
	const unsigned char *out = ck_mux_out(&mux, &n);
	assert_int_equal(n, 18);
	assert_memory_equal(out,
			    "\0\0\0\1\0\0\0\1"
			    "1\0\0\0\1\0\0\0\1"
			    "3",
			    18);
	ck_mux_fini(&mux);

	/* all of it is asked for at once: there is no second allocation that could leave half a
	 * message */
	unsigned char list[2 * CK_MUX_FIRST] = { 0 };
	ck_fault_arm(CK_FAULT_ALLOC, 2, true);
	assert_int_equal(ck_mux_send(&mux, CK_MUX_PLUGIN, NULL, 0, list, sizeof(list)), 0);
	assert_false(ck_fault_hit());
	ck_fault_arm(0, 0, false);
	ck_mux_out(&mux, &n);
	assert_int_equal(n, sizeof(list) + 16);
	ck_mux_fini(&mux);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_are_read_however_they_are_cut),
		cmocka_unit_test(a_frame_that_is_too_long_ends_it),
		cmocka_unit_test(what_its_reader_says_ends_it),
		cmocka_unit_test(a_message_goes_out_in_the_frames_go_expects),
		cmocka_unit_test(a_message_with_only_a_head_needs_no_body),
		cmocka_unit_test(what_is_written_in_pieces_stays_in_order_and_small),
		cmocka_unit_test(without_memory_nothing_is_queued),
	};
	return CK_TEST_MAIN(tests);
}
