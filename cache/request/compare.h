/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_CACHE_REQUEST_COMPARE_H
#define CK_CACHE_REQUEST_COMPARE_H
/* Compares two blocks of digests: which names differ, and what that means under given rules. */
#include "cache/request/digests.h"

enum ck_image_ids {                        /* what the two image references resolved to */
		    CK_IMAGES_UNKNOWN = 0, /* one of them could not be resolved */
		    CK_IMAGES_ASK,         /* one is known; the other can still be resolved */
		    CK_IMAGES_SAME,
		    CK_IMAGES_DIFFER,
};

struct ck_compare_side {
	const unsigned char *digests;
	size_t len;
	/* CK_SALT_KEY_BYTES: hash each digest with it before comparing; NULL: compare as they
	 * are */
	const unsigned char *salt;
};
#define CK_SALT_KEY_BYTES 16u

/* ck_field_is_strict_only - does only strict mode compare this field (E1, E2)? */
bool ck_field_is_strict_only(enum ck_kind kind, const struct ck_field_name *name);
/* ck_digest_salt - hash a digest as a record stores it */
void ck_digest_salt(unsigned char ret_digest[CK_DIGEST_BYTES],
		    const unsigned char digest[CK_DIGEST_BYTES], const unsigned char *salt);
/* ck_digests_compare - @a or @b may come from a database. Return: SAME, COSMETIC, IMAGE, DIFFERENT,
 * or NOT_COMPARABLE if one of them is not a block */
enum ck_relation ck_digests_compare(const struct ck_compare_side *a,
				    const struct ck_compare_side *b, enum ck_image_ids images,
				    const struct ck_compare_rules *rules,
				    struct ck_difference *ret_difference);
#endif
