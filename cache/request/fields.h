/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_CACHE_REQUEST_FIELDS_H
#define CK_CACHE_REQUEST_FIELDS_H
/*
 * Parts: what a request says, one field each, while it is brought into canonical form. They are
 * pushed as they are read, settled (put in order, one for each thing said) and written out. What a
 * field of CRI means is normalize.c's business.
 */
#include <stdbool.h>
#include "cache/request/digests.h"

/* What a part is. Written out before it, so part of every digest: never renumber without raising
 * CK_FORM_VERSION. */
enum ck_part_what {
	CK_PART_LEFT_OUT = 0, /* already used otherwise: an element's key, a mount's image */
	CK_PART_PRESENT = 1,  /* a singular message is there, even if nothing is in it */
	CK_PART_NUMBER = 2,   /* singular: the last one counts, 0 is absence */
	CK_PART_BYTES = 3,    /* singular string or bytes: the last one counts, "" is absence */
	CK_PART_MASKED = 4,   /* bytes that E1 has cut; can equal no CK_PART_BYTES */
	CK_PART_LIST = 5,     /* an element of a list, whose order counts */
	CK_PART_SET = 6,      /* an element of a list whose order does not count */
	CK_PART_MAP = 7,      /* an entry of a map: the last one of a key counts */
	/* keyed, and the order among equal keys counts: the last one wins in a container */
	CK_PART_ENV = 8,
	CK_PART_MOUNT = 9,    /* keyed, any number of equal keys, in any order */
	/* a field we have no name for, or with a wire type that is not its own: counts all the
	 * same */
	CK_PART_UNKNOWN = 10,
};

struct ck_part {
	struct ck_leaf_name name;
	const unsigned char *data; /* borrowed; NULL: a number */
	uint64_t value;            /* the number, or how many bytes */
	unsigned char what, wire, flags;
};

struct ck_parts {
	/* those of an element lie above those of what holds it, and go when it is written out */
	struct ck_part *stack;
	size_t n, room;
	unsigned total; /* parts ever pushed: bounds memory and time */
	struct ck_parts_chunk *chunks;
	unsigned char *free; /* what is left of the newest chunk */
	size_t left;
};

/* the parts of the stack from some place on, in canonical order; good until the next push */
struct ck_settled {
	struct ck_part **parts;
	size_t n;
};

/* ck_parts_init - @hint: about how many bytes will be needed; more are there if they are.
 * -CK_ENOMEM */
int ck_parts_init(struct ck_parts *parts, size_t hint, struct ck_error *err);
void ck_parts_fini(struct ck_parts *parts);
/* ck_parts_take - memory that stays where it is until ck_parts_fini(), aligned for anything; NULL:
 * none */
void *ck_parts_take(struct ck_parts *parts, size_t size);
/* ck_parts_push - @part: copied. -CK_ETOOBIG, -CK_ENOMEM */
int ck_parts_push(struct ck_parts *parts, const struct ck_part *part, struct ck_error *err);
/* ck_parts_settle - the parts from @from on; nothing moves on the stack. -CK_ENOMEM */
int ck_parts_settle(struct ck_parts *parts, size_t from, struct ck_settled *ret_settled,
		    struct ck_error *err);

/* ck_settled_find - the part at this path with this meaning, or NULL */
struct ck_part *ck_settled_find(const struct ck_settled *settled, const char *path,
				enum ck_part_what what);
/* ck_settled_room - what all of it takes, written out, at most */
size_t ck_settled_room(const struct ck_settled *settled);
/* ck_settled_write - write out the leaf that begins with part @*i, which moves on to the next
 * leaf's; returns its end */
unsigned char *ck_settled_write(const struct ck_settled *settled, size_t *i, unsigned char *p);
#endif
