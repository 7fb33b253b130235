/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8 read strictly, and made safe to show. */
#include <stdio.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/base/utf8.h"

size_t ck_utf8_next(const char *s, uint32_t *ret_char)
{
	/* by length; a smaller character in this length is an alias and refused */
	static const uint32_t smallest[] = { 0, 0, 0x80, 0x800, 0x10000 };
	const unsigned char *p = (const unsigned char *)s;
	if (*p < 0x80) {
		*ret_char = *p;
		return 1;
	}
	size_t n = *p >= 0xF0 && *p < 0xF8   ? 4
		   : *p >= 0xE0 && *p < 0xF0 ? 3
		   : *p >= 0xC0 && *p < 0xE0 ? 2
					     : 0;
	uint32_t c = n ? *p & (0xFFu >> (n + 1)) : 0;
	for (size_t i = 1; i < n; i++) {
		if ((p[i] & 0xC0) != 0x80) /* also at the end of the string */
			return 0;
		c = c << 6 | (p[i] & 0x3F);
	}
	if (!n || c < smallest[n] || c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF))
		return 0;
	*ret_char = c;
	return n;
}

size_t ck_utf8_next_of(const void *s, size_t left, uint32_t *ret_char)
{
	char end[5] = ""; /* nothing behind the text is read for a character that is cut off */
	return ck_utf8_next(left < 4 ? memcpy(end, s, left) : s, ret_char);
}

bool ck_utf8_unsafe(uint32_t c)
{
	static const struct {
		uint32_t first, last;
	} ranges[] = {
		/* controls: C0, DEL, C1 */
		{ 0x00, 0x1F },     { 0x7F, 0x9F },
		/* invisible; direction marks */
		{ 0xAD, 0xAD },     { 0x61C, 0x61C },     { 0x200B, 0x200F },
		/* line ends; overrides, isolates */
		{ 0x2028, 0x202E }, { 0x2060, 0x206F },   { 0xFEFF, 0xFEFF },
		/* annotations; tags, selectors */
		{ 0xFFF9, 0xFFFB }, { 0xE0000, 0xE0FFF },
	};
	for (size_t i = 0; i < CK_COUNT(ranges); i++) {
		if (c >= ranges[i].first && c <= ranges[i].last)
			return true;
	}
	return false;
}

size_t ck_utf8_clean(const char *s, bool ascii, char *buf, size_t size)
{
	static const char cut[] = "...";
	size_t len = 0, keep = 0; /* the longest text that leaves room for the dots */
	while (*s) {
		uint32_t c;
		size_t n = ck_utf8_next(s, &c), bytes = n ? n : 1;
		bool plain = n && !ck_utf8_unsafe(c) && (n == 1 || !ascii);
		if (len + (plain ? n : 4 * bytes) >= size) {
			memcpy(buf + keep, cut, sizeof(cut));
			return keep + sizeof(cut) - 1;
		}
		for (size_t i = 0; i < bytes; i++) {
			if (plain)
				buf[len++] = s[i];
			else
				len += (size_t)snprintf(buf + len, size - len, "\\x%02x",
							(unsigned char)s[i]);
		}
		keep = len + sizeof(cut) <= size ? len : keep;
		s += bytes;
	}
	buf[len] = '\0';
	return len;
}
