/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_CRI_MESSAGE_H
#define CK_CRI_MESSAGE_H
/*
 * Reading and writing messages of CRI by the names of numbers.h. Repeated fields are walked
 * with ck_cri_each(). ck_fields_read() lays out a few fields that the caller wants in its own
 * order. Of a singular field the last occurrence counts. A field whose wire type is not the
 * expected one is absent. Everything read is borrowed from the message.
 */
#include <stdbool.h>
#include <string.h>

#include "src/base/bytes.h"
#include "src/base/limits.h"
#include "src/base/wire.h"
#include "src/cri/numbers.h"

/* ck_cri_each - the next text, message or bytes at @number; other fields are skipped.
 * Return: 1 and the field, 0 at the end, -CK_EMALFORMED */
static inline int ck_cri_each(struct ck_wire *wire, uint32_t number,
			      struct ck_wire_field *ret_field, struct ck_error *err)
{
	int r;
	while ((r = ck_wire_next(wire, ret_field, err)) > 0)
		if (ret_field->number == number && ret_field->type == CK_WIRE_BYTES)
			break;
	return r;
}

/* ck_cri_last - the last text, message or bytes at @number.
 * Return: 1 and the field, 0: absent, -CK_EMALFORMED: not all of the message can be read */
static inline int ck_cri_last(struct ck_wire wire, uint32_t number,
			      struct ck_wire_field *ret_field, struct ck_error *err)
{
	struct ck_wire_field field;
	int r, found = 0;
	while ((r = ck_cri_each(&wire, number, &field, err)) > 0) {
		*ret_field = field;
		found = 1;
	}
	return r < 0 ? r : found;
}

/* ck_cri_find - the value of @key in a map of texts, the one at @map; its last entry counts.
 * Return: 1 and the value, 0: absent, -CK_EMALFORMED */
static inline int ck_cri_find(struct ck_wire wire, uint32_t map, const void *key, size_t len,
			      struct ck_wire_field *ret_value, struct ck_error *err)
{
	struct ck_wire_field field;
	int r, found = 0;
	while ((r = ck_cri_each(&wire, map, &field, err)) > 0) {
		struct ck_wire entry = ck_wire_inside(&wire, &field);
		struct ck_wire_field its_key = { 0 }, value = { 0 };
		if ((r = ck_cri_last(entry, CK_MAP_KEY, &its_key, err)) < 0 ||
		    (r = ck_cri_last(entry, CK_MAP_VALUE, &value, err)) < 0)
			return r;
		if (its_key.len != len || (len && memcmp(its_key.data, key, len)))
			continue;
		*ret_value = value;
		found = 1;
	}
	return r < 0 ? r : found;
}

/* ck_cri_is_id - an id that crikeep can know: not empty, not too long, no NUL in it */
static inline bool ck_cri_is_id(const void *p, size_t len)
{
	return len && len <= CK_ID_MAX && !memchr(p, '\0', len);
}

/* ck_cri_put_id - into a request about one object: the object's id. All such requests have it at
 * the same place. 0, -CK_ENOMEM */
static inline int ck_cri_put_id(struct ck_bytes *request, const char *id)
{
	return ck_bytes_field_text(request, CRI_PodSandboxStatusRequest_pod_sandbox_id, id);
}

/* ck_cri_put_inside - a message at @outer that has one text, at @inner. 0, -CK_ENOMEM */
static inline int ck_cri_put_inside(struct ck_bytes *request, uint32_t outer, uint32_t inner,
				    const char *text)
{
	struct ck_bytes message = { 0 };
	int r = ck_bytes_field_text(&message, inner, text);
	if (r == 0)
		r = ck_bytes_field(request, outer, message.p, message.len);
	ck_bytes_free(&message);
	return r;
}

#define CK_FIELDS 24u /* the numbers below it are laid out; CRI has no higher ones that are read */

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

/* ck_fields_get - a text, message or bytes; NULL: absent */
static inline const struct ck_wire_field *ck_fields_get(const struct ck_fields *fields,
							uint32_t number)
{
	const struct ck_wire_field *field = &fields->last[number];
	return field->number && field->type == CK_WIRE_BYTES ? field : NULL;
}

/* ck_fields_number - 0: absent */
static inline uint64_t ck_fields_number(const struct ck_fields *fields, uint32_t number)
{
	const struct ck_wire_field *field = &fields->last[number];
	return field->number && field->type == CK_WIRE_VARINT ? field->value : 0;
}

/* ck_fields_inside - the message at @number, empty if it is absent; *ret_fields as ck_fields_read()
 * leaves it */
static inline int ck_fields_inside(const struct ck_fields *fields, uint32_t number,
				   struct ck_fields *ret_fields, struct ck_error *err)
{
	const struct ck_wire_field *field = ck_fields_get(fields, number);
	return ck_fields_read(field ? ck_wire_inside(&fields->all, field) : ck_wire_begin(NULL, 0),
			      ret_fields, err);
}
#endif
