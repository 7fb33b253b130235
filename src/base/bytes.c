/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "src/base/bytes.h"
#include "src/base/mem.h"
#include "src/crikeep.h"

#define ROOM_MIN    64u
#define WIRE_VARINT 0u
#define WIRE_BYTES  2u

void ck_bytes_free(struct ck_bytes *bytes)
{
	free(bytes->p);
	*bytes = (struct ck_bytes){ 0 };
}

int ck_bytes_room(struct ck_bytes *bytes, size_t n)
{
	if (bytes->p && bytes->room - bytes->len >= n)
		return 0;
	if (n > SIZE_MAX / 2 - bytes->len)
		return -CK_ENOMEM;
	size_t room = bytes->room ? bytes->room : ROOM_MIN;
	while (room < bytes->len + n)
		room += room < SIZE_MAX / 4 ? room : bytes->len + n - room;
	unsigned char *p = ck_realloc(bytes->p, room);
	if (!p)
		return -CK_ENOMEM;
	bytes->p = p;
	bytes->room = room;
	return 0;
}

int ck_bytes_add(struct ck_bytes *bytes, const void *p, size_t n)
{
	int r = ck_bytes_room(bytes, n);
	if (r < 0)
		return r;
	if (n)
		memcpy(bytes->p + bytes->len, p, n);
	bytes->len += n;
	return 0;
}

int ck_bytes_add_text(struct ck_bytes *bytes, const char *s)
{
	return ck_bytes_add(bytes, s, strlen(s));
}

static size_t varint(unsigned char *p, uint64_t value)
{
	size_t n = 0;
	for (; value > 0x7f; value >>= 7)
		p[n++] = (unsigned char)(value | 0x80);
	p[n++] = (unsigned char)value;
	return n;
}

int ck_bytes_varint(struct ck_bytes *bytes, uint64_t value)
{
	unsigned char p[10];
	return ck_bytes_add(bytes, p, varint(p, value));
}

int ck_bytes_field_number(struct ck_bytes *bytes, uint32_t field, uint64_t value)
{
	unsigned char p[20];
	if (!value)
		return 0;
	size_t n = varint(p, (uint64_t)field << 3 | WIRE_VARINT);
	n += varint(p + n, value);
	return ck_bytes_add(bytes, p, n);
}

int ck_bytes_field(struct ck_bytes *bytes, uint32_t field, const void *p, size_t n)
{
	unsigned char head[20];
	size_t len = varint(head, (uint64_t)field << 3 | WIRE_BYTES);
	len += varint(head + len, n);
	if (n > SIZE_MAX / 2)
		return -CK_ENOMEM;
	int r = ck_bytes_room(bytes, len + n);
	if (r < 0)
		return r;
	ck_bytes_add(bytes, head, len); /* there is room */
	return ck_bytes_add(bytes, p, n);
}

int ck_bytes_field_text(struct ck_bytes *bytes, uint32_t field, const char *s)
{
	return s && *s ? ck_bytes_field(bytes, field, s, strlen(s)) : 0;
}
