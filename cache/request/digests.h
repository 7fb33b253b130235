/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_CACHE_REQUEST_DIGESTS_H
#define CK_CACHE_REQUEST_DIGESTS_H
/*
 * Leaves: what a canonical form consists of, each with a name in clear and a digest of its value.
 *
 * A name is where the leaf stands: the field numbers from the request down, for maps, envs and
 * mounts the element's key, and for the two parts of a mount that are judged on their own the way
 * from the mount down to them:
 *
 *	config.tty                       path 2 14
 *	config.envs[LOG_LEVEL]           path 2 6     key "LOG_LEVEL"
 *	config.mounts[/data].image.image path 2 7     key "/data"      tail 9 1
 *
 * A block is a kind and the leaves in the order of their names: what a record keeps in the
 * database. Names are text only when they are shown. Blocks come back from the database, so
 * everything here that reads one takes it for hostile.
 */
#include <endian.h>
#include <stdbool.h>
#include <string.h>
#include "src/crikeep.h"
#include "cache/request/fingerprint.h"

struct ck_leaf_name {
	/* Field numbers, zeros behind: one byte below 128, else four with the first one's top bit
	 * set. They order as bytes. */
	unsigned char path[CK_PATH_DEPTH_MAX];
	unsigned char path_len;
	unsigned char tail[2];    /* field numbers from the element down; 0 0: the element itself */
	unsigned char keyed;      /* an element with a key, which may be "" */
	uint32_t key_len;
	const unsigned char *key; /* borrowed */
};

enum { /* flags of a leaf */
	CK_LEAF_KEYED = 1,
	/* an image reference beside a user_specified_image that is not empty (E5) */
	CK_LEAF_USER_IMAGE = 2,
	CK_LEAF_FLAGS = 3,
};

struct ck_leaf {
	struct ck_leaf_name name;
	unsigned char flags;
	const unsigned char *digest; /* CK_LEAF_BYTES, borrowed */
};

struct ck_leaves { /* a place in a block */
	const unsigned char *p, *end;
	enum ck_kind kind;
};

/* ck_leaf_step - append a field number to a path; false: no room */
bool ck_leaf_step(struct ck_leaf_name *name, uint32_t number);
/* ck_path_order - as memcmp() of the two paths, in a quarter of its time */
static inline int ck_path_order(const struct ck_leaf_name *a, const struct ck_leaf_name *b)
{
	uint64_t x[2], y[2];
	_Static_assert(sizeof(x) == sizeof(a->path), "a path is two words");

	memcpy(x, a->path, sizeof(x));
	memcpy(y, b->path, sizeof(y));
	if (x[0] != y[0])
		return be64toh(x[0]) < be64toh(y[0]) ? -1 : 1;
	if (x[1] != y[1])
		return be64toh(x[1]) < be64toh(y[1]) ? -1 : 1;
	return 0;
}
/* ck_leaf_order - like memcmp: by path, then key, then tail */
static inline int ck_leaf_order(const struct ck_leaf_name *a, const struct ck_leaf_name *b)
{
	int r = ck_path_order(a, b);

	if (r)
		return r;
	uint32_t len = a->key_len < b->key_len ? a->key_len : b->key_len;
	r = len ? memcmp(a->key, b->key, len) : 0;
	if (r)
		return r;
	if (a->key_len != b->key_len)
		return a->key_len < b->key_len ? -1 : 1;
	if (a->keyed != b->keyed)
		return a->keyed - b->keyed;
	return a->tail[0] != b->tail[0] ? a->tail[0] - b->tail[0] : a->tail[1] - b->tail[1];
}
/* ck_leaf_under - is @name @top itself, or something inside of it? */
bool ck_leaf_under(const struct ck_leaf_name *name, const struct ck_leaf_name *top);
/* ck_leaf_is - is @name at this path ("\2\7": field numbers below 128), whatever its key? */
bool ck_leaf_is(const struct ck_leaf_name *name, const char *path);
/* ck_leaf_print - "config.envs[LOG_LEVEL]", unprintable bytes as \xNN, long keys cut. Always
 * terminates; returns the length that the whole name would take */
size_t ck_leaf_print(enum ck_kind kind, const struct ck_leaf_name *name, char *buf, size_t size);

size_t ck_leaf_size(const struct ck_leaf_name *name); /* in a block */
#define CK_LEAVES_HEAD 1u                             /* bytes before the first leaf: the kind */
/* ck_leaf_write - all of a leaf but its digest, which goes where the returned pointer points */
unsigned char *ck_leaf_write(unsigned char *p, const struct ck_leaf_name *name,
			     unsigned char flags);

/* ck_leaves_begin - false: not a block */
bool ck_leaves_begin(struct ck_leaves *leaves, const unsigned char *block, size_t len);
/* ck_leaves_next - Return: 1 and the leaf, 0 at the end, -CK_EDAMAGED */
int ck_leaves_next(struct ck_leaves *leaves, struct ck_leaf *ret_leaf);
#endif
