/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_BASE_WIRE_H
#define CK_BASE_WIRE_H
/*
 * Reading protobuf bytes in place, one field after the other. Bounds are checked; nothing is copied
 * or allocated. Groups (wire types 3 and 4, which no message of CRI has) and the unassigned types 6
 * and 7 are errors.
 */
#include "src/crikeep.h"

enum ck_wire_type {
	CK_WIRE_VARINT = 0,
	CK_WIRE_FIXED64 = 1,
	CK_WIRE_BYTES = 2,
	CK_WIRE_FIXED32 = 5
};

enum { CK_MAP_KEY = 1, CK_MAP_VALUE = 2 }; /* an entry of a map is a message of these two */

struct ck_wire { /* the rest of one message; a copy can be read again later */
	const unsigned char *p, *end;
	/* the beginning of the outermost message; errors count bytes from there */
	const unsigned char *request;
};

struct ck_wire_field {
	uint32_t number;
	enum ck_wire_type type;
	uint64_t value;            /* all types but CK_WIRE_BYTES */
	const unsigned char *data; /* CK_WIRE_BYTES: borrowed from the request */
	size_t len;
};

struct ck_wire ck_wire_begin(const void *bytes, size_t len);
/* ck_wire_inside - the message, or packed list, that a CK_WIRE_BYTES field of @outer holds */
struct ck_wire ck_wire_inside(const struct ck_wire *outer, const struct ck_wire_field *field);
/* ck_wire_next - Return: 1 and the field, 0 at the end, -CK_EMALFORMED ("byte 12: ...") */
int ck_wire_next(struct ck_wire *wire, struct ck_wire_field *ret_field, struct ck_error *err);
/* ck_wire_next_packed - the same for the numbers of a packed list */
int ck_wire_next_packed(struct ck_wire *wire, uint64_t *ret_value, struct ck_error *err);
#endif
