/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_CACHE_REQUEST_NORMALIZE_H
#define CK_CACHE_REQUEST_NORMALIZE_H
/*
 * The canonical form of a create request: its leaves in the order of their names, each written out
 * as bytes that are equal exactly if the leaves mean the same. What two encodings of one request
 * may do differently is gone from it: the order of fields, of map entries and of what is a set,
 * packed or unpacked numbers, defaults written or left out, messages in pieces.
 *
 * It holds the request's values in clear. It lives while a fingerprint is made and goes no further
 * than fingerprint.c.
 */
#include "cache/request/fields.h"

struct ck_canon_leaf {
	const struct ck_leaf_name *name; /* keys point into the request */
	unsigned char flags;
	const unsigned char *bytes; /* leaves follow one another without a gap */
	size_t len;
};

struct ck_canon {
	struct ck_canon_leaf *leaves;
	size_t n;
	const unsigned char *image; /* config.image.image, in the request; NULL if there is none */
	size_t image_len;
	struct ck_parts parts; /* holds all of it */
};

/* ck_canon_make - @bytes must outlive @ret_canon. -CK_EMALFORMED, -CK_ETOOBIG, -CK_ENOMEM */
int ck_canon_make(enum ck_kind kind, const void *bytes, size_t len, struct ck_canon *ret_canon,
		  struct ck_error *err);
void ck_canon_fini(struct ck_canon *canon);
#endif
