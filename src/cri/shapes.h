/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_CRI_SHAPES_H
#define CK_CRI_SHAPES_H
/* Where things lie in a message of CRI: for guard.c and filter.c, which walk it. calls.c has the
 * shapes; other fields pass. */
#include "src/base/wire.h"
#include "src/cri/calls.h"

enum ck_use {
	/* strings of the object the message is about: an index into what is collected of it */
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
	CK_USE_LABELS,  /* a map; the pod of a container is in it */
	CK_USE_SUBJECT, /* an event's id: of the sandbox around it, or of one of its containers */
	CK_USE_INSIDE,  /* a message that tells more of the same object */
	CK_USE_OBJECT,  /* each occurrence is an object of its own */
	/* of requests */
	CK_USE_ACTS_ON, /* the id the call is for */
	CK_USE_NAMES,   /* another id */
};

struct ck_place {
	uint32_t field;
	enum ck_use use;
	enum ck_kind kind; /* of an id in a request */
	const struct ck_shape *inside;
};

#define CK_SHAPE_STATE   1u /* it tells a state; 0 is not on the wire */
#define CK_SHAPE_ID_ONLY 2u
#define CK_SHAPE_HOLDS   4u /* objects lie in it, at some depth */

struct ck_shape {
	enum ck_kind object; /* what the message is about; 0: what it lies in */
	unsigned flags;
	unsigned n;
	const struct ck_place *places;
};

/* a wire type that is not the expected one makes a field unknown, as for every protobuf library */
static inline const struct ck_place *ck_shape_find(const struct ck_shape *shape,
						   const struct ck_wire_field *field)
{
	for (unsigned i = 0; i < shape->n; i++) {
		const struct ck_place *place = &shape->places[i];
		bool number = place->use >= CK_USE_ATTEMPT && place->use <= CK_USE_CREATED_AT;
		if (place->field == field->number)
			return field->type == (number ? CK_WIRE_VARINT : CK_WIRE_BYTES) ? place
											: NULL;
	}
	return NULL;
}
#endif
