/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_CACHE_REQUEST_COMPARE_H
#define CK_CACHE_REQUEST_COMPARE_H
/* Two blocks of leaves, side by side: which names differ, and what that means under given rules. */
#include "cache/request/digests.h"

enum ck_image_ids { /* what both references resolved to */
	CK_IMAGES_UNKNOWN = 0, /* nobody could tell */
	CK_IMAGES_ASK,         /* one is known, and the other can still be asked for */
	CK_IMAGES_SAME,
	CK_IMAGES_DIFFER,
};

struct ck_compare_side {
	const unsigned char *leaves;
	size_t len;
	/* CK_SALT_KEY_BYTES to hash each digest with before it is compared; NULL: as they are */
	const unsigned char *salt;
};
#define CK_SALT_KEY_BYTES 16u

/* ck_leaf_exact - is this what E1 or E2 leave out: looked at in strict mode only? */
bool ck_leaf_exact(enum ck_kind kind, const struct ck_leaf_name *name);
/* ck_leaf_salt - a digest as a record keeps it */
void ck_leaf_salt(unsigned char ret_digest[CK_LEAF_BYTES],
		  const unsigned char digest[CK_LEAF_BYTES], const unsigned char *salt);
/* ck_leaves_compare - @a or @b may come from a database. SAME, COSMETIC, IMAGE, DIFFERENT;
 * NOT_COMPARABLE if one is no block */
enum ck_relation ck_leaves_compare(const struct ck_compare_side *a, const struct ck_compare_side *b,
				   enum ck_image_ids images, const struct ck_compare_rules *rules,
				   struct ck_difference *ret_difference);
#endif
