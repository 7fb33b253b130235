/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as frames: what is told does not depend on how they were cut, and is what a plain
 * reading of the frames gives. The same bytes as a message: it goes out in frames that are read
 * back as they were. Seeds: both sides of a Go plugin's life.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "hooks/wire/mux.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "tests/fuzz/fuzz.h"

struct told {
	struct ck_bytes bytes[2]; /* of connections 1 and 2 */
};

static void check(bool holds)
{
	if (!holds)
		abort();
}

static int tell(uint32_t conn, const unsigned char *p, size_t n, void *userdata,
		struct ck_error *err)
{
	struct told *told = userdata;
	(void)err;
	check((conn == CK_MUX_PLUGIN || conn == CK_MUX_RUNTIME) && n > 0);
	check(ck_bytes_add(&told->bytes[conn - 1], p, n) == 0);
	return 0;
}

static bool same(const struct ck_bytes *a, const struct ck_bytes *b)
{
	return a->len == b->len && (!a->len || !memcmp(a->p, b->p, a->len));
}

static void fini(struct told *told)
{
	ck_bytes_free(&told->bytes[0]);
	ck_bytes_free(&told->bytes[1]);
}

static size_t word(const uint8_t *p)
{
	return (size_t)p[0] << 24 | (size_t)p[1] << 16 | (size_t)p[2] << 8 | p[3];
}

static int read_plainly(const uint8_t *p, size_t n, struct told *told)
{
	while (n >= 8) {
		size_t conn = word(p), len = word(p + 4), part = len < n - 8 ? len : n - 8;
		if (len > CK_MUX_FRAME_MAX)
			return -CK_EMALFORMED;
		if (part && (conn == CK_MUX_PLUGIN || conn == CK_MUX_RUNTIME))
			tell((uint32_t)conn, p + 8, part, told, NULL);
		p += 8 + part;
		n -= 8 + part;
	}
	return 0;
}

static void read_in_pieces(const uint8_t *data, size_t size, size_t piece,
			   const struct told *expected, int expected_r)
{
	struct ck_mux mux = { .header_len = 0 };
	struct told told = { .bytes = { { 0 } } };
	int r = 0;
	for (size_t at = 0; at < size && r == 0; at += piece)
		r = ck_mux_feed(&mux, data + at, size - at < piece ? size - at : piece, tell, &told,
				NULL);
	check(r == expected_r && same(&told.bytes[0], &expected->bytes[0]) &&
	      same(&told.bytes[1], &expected->bytes[1]));
	fini(&told);
	ck_mux_fini(&mux);
}

/* as one message, then as two, written in pieces of odd sizes */
static void send_and_read(const uint8_t *data, size_t size)
{
	struct ck_mux out = { .header_len = 0 }, in = { .header_len = 0 };
	struct told told = { .bytes = { { 0 } } };
	size_t half = size / 3, n;
	check(ck_mux_send(&out, CK_MUX_PLUGIN, data, half, data + half, size - half) == 0);
	check(ck_mux_send(&out, CK_MUX_RUNTIME, data, half, NULL, 0) == 0);
	check(ck_mux_send(&out, CK_MUX_RUNTIME, NULL, 0, data + half, size - half) == 0);
	for (size_t piece = 1;; piece = piece * 7 % 10007) {
		const unsigned char *p = ck_mux_out(&out, &n);
		if (!n)
			break;
		n = n < piece ? n : piece;
		check(ck_mux_feed(&in, p, n, tell, &told, NULL) == 0);
		ck_mux_sent(&out, n);
	}
	const struct ck_bytes whole = { (unsigned char *)data, size, size };
	check(same(&told.bytes[0], &whole) && same(&told.bytes[1], &whole) && !in.header_len);
	fini(&told);
	ck_mux_fini(&out);
	ck_mux_fini(&in);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const size_t pieces[] = { 1, 2, 7, 13, 4096, SIZE_MAX / 2 };
	struct told told = { .bytes = { { 0 } } };
	int r = read_plainly(data, size, &told);
	for (size_t i = 0; i < CK_COUNT(pieces); i++)
		read_in_pieces(data, size, pieces[i], &told, r);
	fini(&told);
	send_and_read(data, size);
	return 0;
}
