/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_CACHE_REQUEST_FIELDS_H
#define CK_CACHE_REQUEST_FIELDS_H
/*
 * The fields of a request while it is normalized. They are pushed as they are read, then sorted
 * (a field that a later one replaces is dropped) and written out. normalize.c knows what each field
 * of CRI means.
 */
#include <stdbool.h>
#include "cache/request/digests.h"

/* What a field is. The number is written out and so is part of every digest: do not renumber
 * without raising CK_FORM_VERSION. */
enum ck_field_what {
	CK_FIELD_LEFT_OUT = 0, /* used elsewhere: an element's key, a mount's image */
	CK_FIELD_PRESENT = 1,  /* a singular message is there, even if it is empty */
	CK_FIELD_NUMBER = 2,   /* singular: the last one counts, 0 means absent */
	CK_FIELD_BYTES = 3,    /* singular string or bytes: the last one counts, "" means absent */
	CK_FIELD_MASKED = 4, /* bytes without their random end (E1); never equals CK_FIELD_BYTES */
	CK_FIELD_LIST = 5,   /* an element of a list whose order counts */
	CK_FIELD_SET = 6,    /* an element of a list whose order does not count */
	CK_FIELD_MAP = 7,    /* an entry of a map: the last one of a key counts */
	/* keyed; among equal keys the order counts, because the last one wins in a container */
	CK_FIELD_ENV = 8,
	CK_FIELD_MOUNT = 9, /* keyed, any number of equal keys, in any order */
	/* a field that cri.proto does not name, or with a wrong wire type: it counts as well */
	CK_FIELD_UNKNOWN = 10,
};

struct ck_request_field {
	struct ck_field_name name;
	const unsigned char *data; /* borrowed; NULL: a number */
	uint64_t value;            /* the number, or how many bytes */
	unsigned char what, wire, flags;
};

struct ck_request_fields {
	/* the fields of an element lie above those of the message that contains it; they are popped
	 * when the element is written out */
	struct ck_request_field *stack;
	size_t n, room;
	unsigned total; /* fields ever pushed; limited, which bounds memory and time */
	struct ck_request_fields_chunk *chunks;
	unsigned char *free; /* the rest of the newest chunk */
	size_t left;
};

/* the fields of the stack from some index on, sorted by name; valid until the next push */
struct ck_sorted_fields {
	struct ck_request_field **fields;
	size_t n;
};

/* ck_request_fields_init - @hint: how many bytes will be needed, about. -CK_ENOMEM */
int ck_request_fields_init(struct ck_request_fields *fields, size_t hint, struct ck_error *err);
void ck_request_fields_fini(struct ck_request_fields *fields);
/* ck_request_fields_take - memory that stays in place until ck_request_fields_fini(), aligned for
 * any type; NULL: out of memory */
void *ck_request_fields_take(struct ck_request_fields *fields, size_t size);
/* ck_request_fields_push - push a copy of @field. -CK_ETOOBIG, -CK_ENOMEM */
int ck_request_fields_push(struct ck_request_fields *fields, const struct ck_request_field *field,
			   struct ck_error *err);
/* ck_request_fields_sort - sort the fields from @from on; the stack itself stays as it is.
 * -CK_ENOMEM */
int ck_request_fields_sort(struct ck_request_fields *fields, size_t from,
			   struct ck_sorted_fields *ret_sorted, struct ck_error *err);

/* ck_sorted_fields_find - the field with this path and kind, or NULL */
struct ck_request_field *ck_sorted_fields_find(const struct ck_sorted_fields *sorted,
					       const char *path, enum ck_field_what what);
/* ck_sorted_fields_room - the most bytes that ck_sorted_fields_write() needs for all of them */
size_t ck_sorted_fields_room(const struct ck_sorted_fields *sorted);
/* ck_sorted_fields_write - write out the field at @*i, with all others of its list, set or unknown
 * number; @*i moves behind them. Returns the end of what it wrote */
unsigned char *ck_sorted_fields_write(const struct ck_sorted_fields *sorted, size_t *i,
				      unsigned char *p);
#endif
