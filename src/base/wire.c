/* SPDX-License-Identifier: Apache-2.0 */
/* Reading protobuf bytes in place. Each read is bounded by the message around it, so an inner
 * length cannot reach outside. */
#include <stdbool.h>

#include "src/base/wire.h"
#include "src/base/error.h"

#define VARINT_BYTES 10 /* 64 bits, 7 in each byte */

struct ck_wire ck_wire_begin(const void *bytes, size_t len)
{
	const unsigned char *p = len ? bytes : (const unsigned char *)"";

	return (struct ck_wire){ .p = p, .end = p + len, .request = p };
}

struct ck_wire ck_wire_inside(const struct ck_wire *outer, const struct ck_wire_field *field)
{
	return (struct ck_wire){ .p = field->data,
				 .end = field->data + field->len,
				 .request = outer->request };
}

static int malformed(const struct ck_wire *wire, const unsigned char *at, const char *what,
		     struct ck_error *err)
{
	return ck_fail(err, CK_EMALFORMED, "byte %zu: %s", (size_t)(at - wire->request), what);
}

static int malformed_number(const struct ck_wire *wire, const unsigned char *at,
			    struct ck_error *err)
{
	bool cut = wire->end - at < VARINT_BYTES;

	return malformed(wire, at,
			 cut ? "the message ends inside a number" : "a number of more than 64 bits",
			 err);
}

struct number { /* by value, so that it stays in registers */
	uint64_t value;
	const unsigned char *end; /* the byte after it; NULL: malformed */
};

static struct number read_long_varint(const unsigned char *p, const unsigned char *end)
{
	struct number number = { 0, NULL };

	for (unsigned i = 0; i < VARINT_BYTES && p < end; i++) {
		unsigned char byte = *p++;
		if (i == VARINT_BYTES - 1 && byte > 1)
			break;
		number.value |= (uint64_t)(byte & 0x7f) << (7 * i);
		if (byte < 0x80) {
			number.end = p;
			break;
		}
	}
	return number;
}

/* nearly all tags and lengths take one byte */
static inline struct number read_varint(const unsigned char *p, const unsigned char *end)
{
	return p < end && *p < 0x80 ? (struct number){ *p, p + 1 } : read_long_varint(p, end);
}

static struct number read_fixed(const unsigned char *p, const unsigned char *end, unsigned size)
{
	struct number number = { 0, NULL };

	if ((size_t)(end - p) < size)
		return number;
	for (unsigned i = 0; i < size; i++)
		number.value |= (uint64_t)p[i] << (8 * i);
	number.end = p + size;
	return number;
}

/* a function of its own, so that ck_wire_next() needs no stack */
static __attribute__((noinline)) int next_of_any(struct ck_wire *wire,
						 struct ck_wire_field *ret_field,
						 struct ck_error *err)
{
	const unsigned char *p = wire->p, *end = wire->end;
	struct ck_wire_field field = { 0 };
	struct number tag, number;

	tag = read_varint(p, end);
	if (!tag.end)
		return malformed_number(wire, p, err);
	if (tag.value >> 3 == 0 || tag.value > UINT32_MAX)
		return malformed(wire, p, "not a field number", err);
	field.number = (uint32_t)(tag.value >> 3);
	field.type = (enum ck_wire_type)(tag.value & 7);
	switch (tag.value & 7) {
	case CK_WIRE_BYTES: /* the number is the length */
	case CK_WIRE_VARINT:
		number = read_varint(tag.end, end);
		break;
	case CK_WIRE_FIXED64:
		number = read_fixed(tag.end, end, 8);
		break;
	case CK_WIRE_FIXED32:
		number = read_fixed(tag.end, end, 4);
		break;
	default:
		return malformed(wire, p, "a wire type that CRI does not use", err);
	}
	if (!number.end)
		return malformed_number(wire, tag.end, err);
	if (field.type != CK_WIRE_BYTES) {
		field.value = number.value;
	} else if (number.value <= (size_t)(end - number.end)) {
		field.data = number.end;
		field.len = (size_t)number.value;
		number.end += field.len;
	} else {
		return malformed(wire, number.end, "a length runs past the end of its message",
				 err);
	}
	wire->p = number.end;
	*ret_field = field;
	return 1;
}

int ck_wire_next(struct ck_wire *wire, struct ck_wire_field *ret_field, struct ck_error *err)
{
	const unsigned char *p = wire->p, *end = wire->end;

	if (p == end)
		return 0;
	/* nearly all fields: texts and messages of less than 128 bytes */
	if (end - p > 1 && (p[0] & 0x87) == CK_WIRE_BYTES && p[0] > 7 && p[1] < 0x80 &&
	    p[1] <= end - p - 2) {
		ret_field->number = p[0] >> 3;
		ret_field->type = CK_WIRE_BYTES;
		ret_field->value = 0;
		ret_field->data = p + 2;
		ret_field->len = p[1];
		wire->p = p + 2 + p[1];
		return 1;
	}
	return next_of_any(wire, ret_field, err);
}

int ck_wire_next_packed(struct ck_wire *wire, uint64_t *ret_value, struct ck_error *err)
{
	if (wire->p == wire->end)
		return 0;
	struct number number = read_varint(wire->p, wire->end);
	if (!number.end)
		return malformed_number(wire, wire->p, err);
	wire->p = number.end;
	*ret_value = number.value;
	return 1;
}
