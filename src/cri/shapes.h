/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_CRI_SHAPES_H
#define CK_CRI_SHAPES_H
/*
 * Where the ids and the objects lie in a message of CRI. guard.c and filter.c walk messages by
 * these shapes, which calls.c defines. Fields that are not in a shape pass unread.
 */
#include "src/base/wire.h"
#include "src/cri/calls.h"

enum ck_use {
	/* strings of the object that the message is about; also an index of them */
	CK_USE_ID,
	CK_USE_SANDBOX_ID,
	CK_USE_POD_NAME,
	CK_USE_POD_NAMESPACE,
	CK_USE_POD_UID,
	CK_USE_CONTAINER_NAME,
	CK_USE_TEXTS,
	/* its numbers */
	CK_USE_ATTEMPT = CK_USE_TEXTS,
	CK_USE_STATE,
	CK_USE_CREATED_AT,
	CK_USE_STARTED_AT,
	CK_USE_LABELS,  /* a map; it names the pod of a container */
	CK_USE_ANNOTATIONS, /* a map */
	CK_USE_SUBJECT, /* an event's id: its sandbox's, or that of a container in it */
	CK_USE_INSIDE,  /* a message that says more about the same object */
	CK_USE_OBJECT,  /* each occurrence is an object of its own */
	/* in requests */
	CK_USE_ACTS_ON, /* the id that the call acts on */
	CK_USE_NAMES,   /* another id */
	CK_USE_LISTED,  /* other ids: each occurrence is one */
};

struct ck_place {
	uint32_t field;
	enum ck_use use;
	enum ck_kind kind; /* of an id in a request */
	const struct ck_shape *inside;
};

#define CK_SHAPE_STATE   1u /* it has a state; state 0 is not on the wire */
#define CK_SHAPE_ID_ONLY 2u /* it has nothing of the object but its id */
#define CK_SHAPE_HOLDS   4u /* it has objects or annotations in it, at some depth */

struct ck_shape {
	enum ck_kind object; /* what the message is about; 0: the same as the message around it */
	unsigned flags;
	unsigned n;
	const struct ck_place *places;
};

/* A field of another wire type than the expected one is unknown, as in every protobuf library. */
static inline const struct ck_place *ck_shape_find(const struct ck_shape *shape,
						   const struct ck_wire_field *field)
{
	for (unsigned i = 0; i < shape->n; i++) {
		const struct ck_place *place = &shape->places[i];
		bool number = place->use >= CK_USE_ATTEMPT && place->use <= CK_USE_STARTED_AT;
		if (place->field == field->number)
			return field->type == (number ? CK_WIRE_VARINT : CK_WIRE_BYTES) ? place
											: NULL;
	}
	return NULL;
}
#endif
