/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_CACHE_REQUEST_DIGESTS_H
#define CK_CACHE_REQUEST_DIGESTS_H
/*
 * The digests of a request: for each field of its normalized form a name in clear and a digest of
 * the value.
 *
 * A name says where the field is: the field numbers from the request down; for maps, envs and
 * mounts the element's key; and for the two parts of a mount that are compared on their own, the
 * numbers from the mount down to them:
 *
 *	config.tty                       path 2 14
 *	config.envs[LOG_LEVEL]           path 2 6     key "LOG_LEVEL"
 *	config.mounts[/data].image.image path 2 7     key "/data"      tail 9 1
 *
 * A block is a kind and the digests in the order of their names. A record keeps it in the database,
 * so every function that reads a block treats it as hostile input. A name becomes text only to be
 * shown.
 */
#include <endian.h>
#include <stdbool.h>
#include <string.h>
#include "src/crikeep.h"
#include "cache/request/fingerprint.h"

struct ck_field_name {
	/* Field numbers, then zeros. A number below 128 takes one byte; a larger one takes four,
	 * the first with its top bit set. Paths sort as bytes. */
	unsigned char path[CK_PATH_DEPTH_MAX];
	unsigned char path_len;
	unsigned char tail[2]; /* field numbers below the element; 0 0: the element itself */
	unsigned char keyed;   /* the element has a key; it may be "" */
	uint32_t key_len;
	const unsigned char *key; /* borrowed */
};

enum { /* flags of a digest */
       CK_DIGEST_KEYED = 1,
       /* an image reference; user_specified_image beside it is not empty (E5) */
       CK_DIGEST_USER_IMAGE = 2,
       CK_DIGEST_FLAGS = 3,
};

struct ck_field_digest {
	struct ck_field_name name;
	unsigned char flags;
	const unsigned char *bytes; /* CK_DIGEST_BYTES, borrowed */
};

struct ck_digests { /* a position in a block */
	const unsigned char *p, *end;
	enum ck_kind kind;
};

/* ck_field_name_step - append a field number to a path; false: no room */
bool ck_field_name_step(struct ck_field_name *name, uint32_t number);
/* ck_field_path_order - like memcmp() of the two paths, in a quarter of the time */
static inline int ck_field_path_order(const struct ck_field_name *a, const struct ck_field_name *b)
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
/* ck_field_name_order - like memcmp: by path, then key, then tail */
static inline int ck_field_name_order(const struct ck_field_name *a, const struct ck_field_name *b)
{
	int r = ck_field_path_order(a, b);

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
/* ck_field_name_under - is @name equal to @top, or inside it? */
bool ck_field_name_under(const struct ck_field_name *name, const struct ck_field_name *top);
/* ck_field_name_is - is @name at this path ("\2\7": field numbers below 128)? The key does not
 * matter */
bool ck_field_name_is(const struct ck_field_name *name, const char *path);
/* ck_field_name_print - "config.envs[LOG_LEVEL]"; unprintable bytes as \xNN; a long key is cut.
 * @buf is always terminated. Returns the length of the whole name */
size_t ck_field_name_print(enum ck_kind kind, const struct ck_field_name *name, char *buf,
			   size_t size);

/* ck_field_digest_size - bytes in a block */
size_t ck_field_digest_size(const struct ck_field_name *name);
#define CK_DIGESTS_HEAD 1u /* bytes before the first digest: the kind */
/* ck_field_digest_write - write name and flags; the digest itself goes where the result points */
unsigned char *ck_field_digest_write(unsigned char *p, const struct ck_field_name *name,
				     unsigned char flags);

/* ck_digests_begin - false: not a block */
bool ck_digests_begin(struct ck_digests *digests, const unsigned char *block, size_t len);
/* ck_digests_next - Return: 1 and a digest; 0 at the end; -CK_EDAMAGED */
int ck_digests_next(struct ck_digests *digests, struct ck_field_digest *ret_digest);
/* ck_digests_check - is this block well formed, and in order? */
bool ck_digests_check(const unsigned char *block, size_t len);
#endif
