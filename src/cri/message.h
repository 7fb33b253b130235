/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_CRI_MESSAGE_H
#define CK_CRI_MESSAGE_H
/*
 * One message laid out by field number, for code that wants a few fields of it in its own order. Of
 * a field that comes twice, the last counts; what is repeated by its nature is walked with
 * src/base/wire.h. A wire type that is not the expected one makes a field absent. Everything is
 * borrowed from the message.
 */
#include "src/base/wire.h"

#define CK_FIELDS 24u /* numbers below it; in what is read this way, CRI has none above */

struct ck_fields {
	struct ck_wire all; /* from its beginning */
	struct ck_wire_field last[CK_FIELDS];
};

/* ck_fields_read - 0, or -CK_EMALFORMED: not all of @wire can be read */
static inline int ck_fields_read(struct ck_wire wire, struct ck_fields *ret_fields,
				 struct ck_error *err)
{
	struct ck_wire_field field;
	int r;
	*ret_fields = (struct ck_fields){ .all = wire };
	while ((r = ck_wire_next(&wire, &field, err)) > 0)
		if (field.number < CK_FIELDS)
			ret_fields->last[field.number] = field;
	return r;
}

/* ck_fields_get - NULL: absent */
static inline const struct ck_wire_field *ck_fields_get(const struct ck_fields *fields,
							uint32_t number, enum ck_wire_type type)
{
	const struct ck_wire_field *field = &fields->last[number];
	return field->number && field->type == type ? field : NULL;
}

static inline uint64_t ck_fields_number(const struct ck_fields *fields, uint32_t number)
{
	const struct ck_wire_field *field = ck_fields_get(fields, number, CK_WIRE_VARINT);
	return field ? field->value : 0;
}

/* ck_fields_inside - the message at @number, empty if it is absent; *ret_fields as ck_fields_read()
 * leaves it */
static inline int ck_fields_inside(const struct ck_fields *fields, uint32_t number,
				   struct ck_fields *ret_fields, struct ck_error *err)
{
	const struct ck_wire_field *field = ck_fields_get(fields, number, CK_WIRE_BYTES);
	return ck_fields_read(field ? ck_wire_inside(&fields->all, field) : ck_wire_begin(NULL, 0),
			      ret_fields, err);
}
#endif
