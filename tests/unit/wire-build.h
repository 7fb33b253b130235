/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_TESTS_WIRE_BUILD_H
#define CK_TESTS_WIRE_BUILD_H
/* Messages of any size built field by field, with src/base/bytes.h; and exact copies, so that ASan
 * sees a read past the end. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/bytes.h"

static inline void must(int r)
{
	if (r < 0)
		abort();
}

static inline void put_text(struct ck_bytes *to, uint32_t field, const char *text)
{
	must(ck_bytes_field(to, field, text, strlen(text))); /* "" is written, too */
}

static inline void put_number(struct ck_bytes *to, uint32_t field, uint64_t value)
{
	must(ck_bytes_varint(to, field << 3));
	must(ck_bytes_varint(to, value));
}

/* @inner is used up */
static inline void put(struct ck_bytes *to, uint32_t field, struct ck_bytes *inner)
{
	must(ck_bytes_field(to, field, inner->p, inner->len));
	ck_bytes_free(inner);
}

static inline void put_pair(struct ck_bytes *to, uint32_t field, const char *key, const char *value)
{
	struct ck_bytes pair = { 0 };
	put_text(&pair, 1, key);
	put_text(&pair, 2, value);
	put(to, field, &pair);
}

/* fields of a later CRI, of every wire type; one with a length written longer than it need be */
static inline void put_unknown(struct ck_bytes *to)
{
	/* field 100 */
	static const unsigned char odd[] = { 0xa2, 0x06, 0x82, 0x80, 0x00, 'h', 'i' };
	put_number(to, 101, UINT64_MAX);
	must(ck_bytes_varint(to, 102 << 3 | 1));
	must(ck_bytes_add(to, "8 bytes.", 8));
	must(ck_bytes_varint(to, 536870911u << 3 | 5)); /* the highest number there is */
	must(ck_bytes_add(to, "4444", 4));
	must(ck_bytes_add(to, odd, sizeof(odd)));
}

static inline size_t skip_varint(const unsigned char *p, size_t at, uint64_t *ret_value)
{
	*ret_value = 0;
	for (unsigned shift = 0;; shift += 7) {
		*ret_value |= (uint64_t)(p[at] & 0x7f) << shift;
		if (!(p[at++] & 0x80))
			return at;
	}
}

/* is_border - of a well-formed message: does one of its fields end at @len? Only there it can be
 * cut and still be one */
static inline bool is_border(const unsigned char *p, size_t end, size_t len)
{
	size_t at = 0;
	while (at < len && at < end) {
		uint64_t tag, n = 0;
		at = skip_varint(p, at, &tag);
		if ((tag & 7) == 1 || (tag & 7) == 5)
			n = (tag & 7) == 1 ? 8 : 4;
		else
			at = skip_varint(p, at, &n);
		at += (tag & 7) == 0 ? 0 : (size_t)n;
	}
	return at == len;
}

/* exact_copy - of its own block, to be freed; one byte of room when it is empty, never looked at */
static inline unsigned char *exact_copy(const void *p, size_t len)
{
	unsigned char *copy = malloc(len ? len : 1);
	if (!copy)
		abort();
	if (len)
		memcpy(copy, p, len);
	return copy;
}
#endif
