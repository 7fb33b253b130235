/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "src/base/wire-writer.h"
#include "src/base/utf8.h"

#define WIRE_BYTES 2u

void ck_writer_number(struct ck_writer *out, uint32_t field, uint64_t number)
{
	if (out->r == 0)
		out->r = ck_bytes_field_number(&out->bytes, field, number);
}

void ck_writer_text(struct ck_writer *out, uint32_t field, const char *text)
{
	if (out->r == 0)
		out->r = ck_bytes_field_text(&out->bytes, field, text);
}

void ck_writer_bytes(struct ck_writer *out, uint32_t field, const void *p, size_t len)
{
	if (out->r == 0)
		out->r = ck_bytes_field(&out->bytes, field, p, len);
}

size_t ck_writer_open(struct ck_writer *out, uint32_t field)
{
	if (out->r == 0)
		out->r = ck_bytes_varint(&out->bytes, (uint64_t)field << 3 | WIRE_BYTES);
	return out->bytes.len;
}

/* the length stands before the message and is known only now */
void ck_writer_close(struct ck_writer *out, size_t opened)
{
	if (out->r < 0)
		return;
	size_t len = out->bytes.len - opened;
	out->r = ck_bytes_varint(&out->bytes, len);
	if (out->r < 0)
		return;
	unsigned char number[10], *at = out->bytes.p + opened;
	size_t n = out->bytes.len - opened - len;
	memcpy(number, at + len, n);
	memmove(at + n, at, len);
	memcpy(at, number, n);
}

void ck_writer_utf8(struct ck_writer *out, uint32_t field, const void *text, size_t len)
{
	static const char replacement[] = "\xEF\xBF\xBD";
	const unsigned char *p = text, *end = p + len, *from = p;
	uint32_t c;
	size_t opened = ck_writer_open(out, field);
	while (p < end && out->r == 0) {
		size_t n = ck_utf8_next_of(p, (size_t)(end - p), &c);
		p += n;
		if (n && p < end)
			continue;
		out->r = ck_bytes_add(&out->bytes, from, (size_t)(p - from));
		if (!n && out->r == 0)
			out->r = ck_bytes_add(&out->bytes, replacement, sizeof(replacement) - 1);
		p += !n;
		from = p;
	}
	ck_writer_close(out, opened);
}

void ck_writer_pair(struct ck_writer *out, uint32_t field, const char *key, const char *value)
{
	size_t pair = ck_writer_open(out, field);
	ck_writer_text(out, 1, key);
	ck_writer_text(out, 2, value);
	ck_writer_close(out, pair);
}

void ck_writer_value(struct ck_writer *out, uint32_t field, uint64_t number)
{
	size_t value = ck_writer_open(out, field);
	ck_writer_number(out, 1, number);
	ck_writer_close(out, value);
}
