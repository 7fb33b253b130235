/* SPDX-License-Identifier: Apache-2.0 */
/* Reading protobuf bytes in place. Every read is bounded by the message it is in, so an inner length cannot reach outside. */
#include "cache/wire.h"
#include "src/base/error.h"

#define VARINT_BYTES 10 /* 64 bits, 7 in each byte */

struct ck_wire ck_wire_begin(const void *bytes, size_t len)
{
	const unsigned char *p = len ? bytes : (const unsigned char *)"";

	return (struct ck_wire){ .p = p, .end = p + len, .request = p };
}

struct ck_wire ck_wire_inside(const struct ck_wire *outer, const struct ck_wire_field *field)
{
	return (struct ck_wire){ .p = field->data, .end = field->data + field->len, .request = outer->request };
}

static int malformed(const struct ck_wire *wire, const char *what, struct ck_error *err)
{
	return ck_fail(err, CK_EMALFORMED, "byte %zu: %s", (size_t)(wire->p - wire->request), what);
}

static int read_long_varint(struct ck_wire *wire, uint64_t *ret_value, struct ck_error *err)
{
	const unsigned char *p = wire->p;
	uint64_t value = 0;

	for (unsigned i = 0; i < VARINT_BYTES; i++) {
		if (p == wire->end)
			return malformed(wire, "the message ends inside a number", err);
		unsigned char byte = *p++;
		if (i == VARINT_BYTES - 1 && byte > 1)
			break;
		value |= (uint64_t)(byte & 0x7f) << (7 * i);
		if (byte < 0x80) {
			wire->p = p;
			*ret_value = value;
			return 0;
		}
	}
	return malformed(wire, "a number of more than 64 bits", err);
}

/* nearly all tags and lengths take one byte */
static inline int read_varint(struct ck_wire *wire, uint64_t *ret_value, struct ck_error *err)
{
	if (wire->p == wire->end || *wire->p >= 0x80)
		return read_long_varint(wire, ret_value, err);
	*ret_value = *wire->p++;
	return 0;
}

static int read_fixed(struct ck_wire *wire, unsigned size, uint64_t *ret_value, struct ck_error *err)
{
	uint64_t value = 0;

	if ((size_t)(wire->end - wire->p) < size)
		return malformed(wire, "the message ends inside a number", err);
	for (unsigned i = 0; i < size; i++)
		value |= (uint64_t)wire->p[i] << (8 * i);
	wire->p += size;
	*ret_value = value;
	return 0;
}

static int read_bytes(struct ck_wire *wire, struct ck_wire_field *field, struct ck_error *err)
{
	uint64_t len;
	int r = read_varint(wire, &len, err);

	if (r < 0)
		return r;
	if (len > (size_t)(wire->end - wire->p))
		return malformed(wire, "a length runs past the end of its message", err);
	field->data = wire->p;
	field->len = (size_t)len;
	wire->p += len;
	return 0;
}

int ck_wire_next(struct ck_wire *wire, struct ck_wire_field *ret_field, struct ck_error *err)
{
	struct ck_wire_field field = { 0 };
	const unsigned char *start = wire->p;
	uint64_t tag;
	int r;

	if (wire->p == wire->end)
		return 0;
	r = read_varint(wire, &tag, err);
	if (r < 0)
		return r;
	if (tag >> 3 == 0 || tag > UINT32_MAX) {
		wire->p = start;
		return malformed(wire, "not a field number", err);
	}
	field.number = (uint32_t)(tag >> 3);
	field.type = (enum ck_wire_type)(tag & 7);
	switch (tag & 7) {
	case CK_WIRE_BYTES:
		r = read_bytes(wire, &field, err);
		break;
	case CK_WIRE_VARINT:
		r = read_varint(wire, &field.value, err);
		break;
	case CK_WIRE_FIXED64:
		r = read_fixed(wire, 8, &field.value, err);
		break;
	case CK_WIRE_FIXED32:
		r = read_fixed(wire, 4, &field.value, err);
		break;
	default:
		wire->p = start;
		r = malformed(wire, "a wire type that CRI does not use", err);
	}
	if (r < 0)
		return r;
	*ret_field = field;
	return 1;
}

int ck_wire_next_packed(struct ck_wire *wire, uint64_t *ret_value, struct ck_error *err)
{
	if (wire->p == wire->end)
		return 0;
	int r = read_varint(wire, ret_value, err);
	return r < 0 ? r : 1;
}
