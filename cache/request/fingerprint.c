/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Digests over the canonical form. Everything is keyed, so that a stolen database cannot be
 * searched for guessed values:
 *
 *	digest key --kdf--> root, rest, leaf, image key           the fingerprint's digests
 *	           '------> record key + a record's salt          the same digests as that record keeps them
 *
 * A salt alone opens nothing: two records' digests of one value can be told to be equal only with
 * the key.
 */
#include <sodium.h>
#include <string.h>

#include "cache/request/normalize.h"
#include "cache/request/compare.h"
#include "cache/request/fingerprint.h"
#include "src/base/error.h"
#include "src/base/mem.h"

_Static_assert(CK_KEY_BYTES == crypto_kdf_KEYBYTES,
	       "the digest key is what libsodium's key derivation takes");
_Static_assert(CK_ROOT_BYTES == crypto_generichash_BYTES, "a root is one BLAKE2b-256");

#define KDF_CONTEXT "crikeep" /* 8 bytes with its NUL */
enum { KDF_ID = 0, KDF_DIGESTS = 1, KDF_LATER = 2 };
_Static_assert(sizeof(KDF_CONTEXT) == crypto_kdf_CONTEXTBYTES,
	       "libsodium's contexts have one size");

struct digest_keys { /* needed while a fingerprint is made */
	unsigned char root[32];
	unsigned char rest[16];
	unsigned char leaf[crypto_shorthash_siphashx24_KEYBYTES];
};

struct later_keys {               /* needed as long as it lives */
	unsigned char record[32]; /* with a record's salt: its salts */
	unsigned char image[32];  /* for image ids */
};
_Static_assert(sizeof(struct digest_keys) == crypto_kdf_BYTES_MAX, "one derivation fills all");
_Static_assert(sizeof(struct later_keys) == crypto_kdf_BYTES_MAX, "one derivation fills all");

struct ck_fingerprint {
	unsigned char key_id[CK_KEY_ID_BYTES];
	unsigned char root[CK_ROOT_BYTES];
	unsigned char rest[CK_LEAF_BYTES];
	bool image_asked;                      /* for image_id; it may have stayed unknown */
	unsigned char image_id[CK_LEAF_BYTES]; /* if image_known */
	struct later_keys keys;
	bool image_known;
	bool key_only;
	const char *image;
	size_t leaves_len;
	unsigned char leaves[]; /* a block (digests.h), and behind it the image reference */
};

struct salts { /* of one record */
	unsigned char root[32];
	unsigned char leaf[CK_SALT_KEY_BYTES];
};
_Static_assert(sizeof(struct salts) <= crypto_generichash_BYTES_MAX, "one digest fills both");

static void derive(void *out, size_t len, uint64_t id, const struct ck_digest_key *key)
{
	crypto_kdf_derive_from_key(out, len, id, KDF_CONTEXT, key->bytes);
}

bool ck_digest_key_derive(struct ck_digest_key *key)
{
	unsigned char id[crypto_kdf_BYTES_MIN];
	bool all_equal = true;

	for (size_t i = 1; i < sizeof(key->bytes); i++)
		all_equal = all_equal && key->bytes[i] == key->bytes[0];
	if (all_equal)
		return false;
	derive(id, sizeof(id), KDF_ID, key);
	memcpy(key->id, id, sizeof(key->id));
	return true;
}

/* ---- making one ------------------------------------------------------------------------------ */

static void digest_roots(struct ck_fingerprint *fp, enum ck_kind kind, const struct ck_canon *canon,
			 const struct digest_keys *keys)
{
	const unsigned char head[] = { CK_FORM_VERSION, (unsigned char)kind };
	crypto_generichash_state root, rest;

	crypto_generichash_init(&root, keys->root, sizeof(keys->root), sizeof(fp->root));
	crypto_generichash_update(&root, head, sizeof(head));
	crypto_generichash_init(&rest, keys->rest, sizeof(keys->rest), sizeof(fp->rest));
	crypto_generichash_update(&rest, head, sizeof(head));
	/* leaves lie one behind the other: as many as go into the same digest are hashed at once */
	for (size_t i = 0, next; i < canon->n; i = next) {
		bool exact = ck_leaf_exact(kind, canon->leaves[i].name);
		size_t len = canon->leaves[i].len;
		for (next = i + 1;
		     next < canon->n && ck_leaf_exact(kind, canon->leaves[next].name) == exact;
		     next++)
			len += canon->leaves[next].len;
		crypto_generichash_update(exact ? &rest : &root, canon->leaves[i].bytes, len);
	}
	crypto_generichash_final(&root, fp->root, sizeof(fp->root));
	crypto_generichash_final(&rest, fp->rest, sizeof(fp->rest));
}

static void digest_leaves(struct ck_fingerprint *fp, enum ck_kind kind,
			  const struct ck_canon *canon, const struct digest_keys *keys)
{
	unsigned char *p = fp->leaves;

	*p++ = (unsigned char)kind;
	for (size_t i = 0; i < canon->n; i++) {
		const struct ck_canon_leaf *leaf = &canon->leaves[i];
		p = ck_leaf_write(p, leaf->name, leaf->flags);
		crypto_shorthash_siphashx24(p, leaf->bytes, leaf->len, keys->leaf);
		p += CK_LEAF_BYTES;
	}
	fp->leaves_len = (size_t)(p - fp->leaves);
}

int ck_fingerprint_make(const struct ck_digest_key *key, enum ck_kind kind, const void *bytes,
			size_t len, struct ck_fingerprint **ret_fp, struct ck_error *err)
{
	struct digest_keys keys;
	struct ck_canon canon;
	size_t size = CK_LEAVES_HEAD;

	if (sodium_init() < 0)
		return ck_fail(err, CK_EIO, "libsodium does not start");
	int r = ck_canon_make(kind, bytes, len, &canon, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < canon.n; i++)
		size += ck_leaf_size(canon.leaves[i].name);
	struct ck_fingerprint *fp = ck_alloc(sizeof(*fp) + size + canon.image_len + 1);
	if (!fp) {
		ck_canon_fini(&canon);
		return ck_nomem(err);
	}
	memcpy(fp->key_id, key->id, sizeof(fp->key_id));
	derive(&keys, sizeof(keys), KDF_DIGESTS, key);
	derive(&fp->keys, sizeof(fp->keys), KDF_LATER, key);
	digest_roots(fp, kind, &canon, &keys);
	digest_leaves(fp, kind, &canon, &keys);
	fp->image = (const char *)fp->leaves + size;
	/* with a NUL it would name another image */
	if (canon.image && !memchr(canon.image, '\0', canon.image_len))
		memcpy(fp->leaves + size, canon.image, canon.image_len);
	ck_canon_fini(&canon);
	*ret_fp = fp;
	return 0;
}

void ck_fingerprint_free(struct ck_fingerprint *fp)
{
	free(fp);
}

const char *ck_fingerprint_image(const struct ck_fingerprint *fp)
{
	return fp->image;
}

void ck_fingerprint_set_image_id(struct ck_fingerprint *fp, const char *image_id)
{
	fp->image_asked = true;
	fp->image_known = image_id && *image_id;
	if (fp->image_known)
		crypto_generichash(fp->image_id, sizeof(fp->image_id),
				   (const unsigned char *)image_id, strlen(image_id),
				   fp->keys.image, sizeof(fp->keys.image));
}

void ck_fingerprint_key_only(struct ck_fingerprint *fp)
{
	fp->key_only = true;
}

/* ---- records --------------------------------------------------------------------------------- */

static void derive_salts(struct salts *salts, const struct ck_fingerprint *fp,
			 const unsigned char salt[CK_SALT_BYTES])
{
	crypto_generichash((unsigned char *)salts, sizeof(*salts), salt, CK_SALT_BYTES,
			   fp->keys.record, sizeof(fp->keys.record));
}

static void salt_root(unsigned char ret_root[CK_ROOT_BYTES], const struct ck_fingerprint *fp,
		      const struct salts *salts)
{
	crypto_generichash(ret_root, CK_ROOT_BYTES, fp->root, sizeof(fp->root), salts->root,
			   sizeof(salts->root));
}

int ck_record_make(const struct ck_fingerprint *fp, struct ck_record *ret_record,
		   struct ck_error *err)
{
	struct ck_record record = { .form = CK_FORM_VERSION, .leaves_len = fp->leaves_len };
	struct ck_leaves leaves;
	struct ck_leaf leaf;
	struct salts salts;

	record.leaves = ck_memdup(fp->leaves, fp->leaves_len);
	if (!record.leaves)
		return ck_nomem(err);
	memcpy(record.key_id, fp->key_id, sizeof(record.key_id));
	randombytes_buf(record.salt, sizeof(record.salt));
	derive_salts(&salts, fp, record.salt);
	salt_root(record.root, fp, &salts);
	ck_leaf_salt(record.rest, fp->rest, salts.leaf);
	if (fp->image_known)
		ck_leaf_salt(record.image_id, fp->image_id, salts.leaf);
	ck_leaves_begin(&leaves, fp->leaves, fp->leaves_len);
	while (ck_leaves_next(&leaves, &leaf) > 0)
		ck_leaf_salt(record.leaves + (leaf.digest - fp->leaves), leaf.digest, salts.leaf);
	*ret_record = record;
	return 0;
}

void ck_record_fini(struct ck_record *record)
{
	free(record->leaves);
	record->leaves = NULL;
	record->leaves_len = 0;
}

static bool same_key(const struct ck_record *record, const struct ck_fingerprint *fp)
{
	return record->form == CK_FORM_VERSION &&
	       !memcmp(record->key_id, fp->key_id, sizeof(fp->key_id));
}

void ck_record_set_image_id(struct ck_record *record, const struct ck_fingerprint *fp)
{
	struct salts salts;

	if (!fp->image_known || !same_key(record, fp))
		return;
	derive_salts(&salts, fp, record->salt);
	ck_leaf_salt(record->image_id, fp->image_id, salts.leaf);
}

/* ---- comparing ------------------------------------------------------------------------------- */

static enum ck_image_ids compare_image_ids(const unsigned char *a, bool a_known,
					   const unsigned char *b, bool b_known)
{
	if (!a_known || !b_known)
		return CK_IMAGES_UNKNOWN;
	return memcmp(a, b, CK_LEAF_BYTES) ? CK_IMAGES_DIFFER : CK_IMAGES_SAME;
}

/* what E1 and E2 leave out is in rest, not in root */
static bool same_roots(const unsigned char *root_a, const unsigned char *rest_a,
		       const unsigned char *root_b, const unsigned char *rest_b, enum ck_mode mode)
{
	return !memcmp(root_a, root_b, CK_ROOT_BYTES) &&
	       (mode != CK_MODE_STRICT || !memcmp(rest_a, rest_b, CK_LEAF_BYTES));
}

enum ck_relation ck_record_compare(const struct ck_record *record, const struct ck_fingerprint *fp,
				   const struct ck_compare_rules *rules,
				   struct ck_difference *ret_difference)
{
	unsigned char root[CK_ROOT_BYTES], rest[CK_LEAF_BYTES], image_id[CK_LEAF_BYTES];
	struct ck_compare_side kept = { record->leaves, record->leaves_len, NULL };
	struct salts salts;

	if (rules->mode == CK_MODE_IDENTITY || fp->key_only)
		return CK_RELATION_SAME;
	if (!same_key(record, fp))
		return CK_RELATION_NOT_COMPARABLE;
	derive_salts(&salts, fp, record->salt);
	salt_root(root, fp, &salts);
	ck_leaf_salt(rest, fp->rest, salts.leaf);
	if (same_roots(record->root, record->rest, root, rest, rules->mode))
		return CK_RELATION_SAME;
	if (!record->leaves)
		return CK_RELATION_NEEDS_LEAVES;
	ck_leaf_salt(image_id, fp->image_id, salts.leaf);
	bool kept_known = !sodium_is_zero(record->image_id, CK_LEAF_BYTES);
	enum ck_image_ids images =
		compare_image_ids(record->image_id, kept_known, image_id, fp->image_known);
	if (kept_known && !fp->image_asked)
		images = CK_IMAGES_ASK;
	struct ck_compare_side asked = { fp->leaves, fp->leaves_len, salts.leaf };
	return ck_leaves_compare(&kept, &asked, images, rules, ret_difference);
}

enum ck_relation ck_fingerprints_compare(const struct ck_fingerprint *a,
					 const struct ck_fingerprint *b,
					 const struct ck_compare_rules *rules,
					 struct ck_difference *ret_difference)
{
	struct ck_compare_side side_a = { a->leaves, a->leaves_len, NULL },
			       side_b = { b->leaves, b->leaves_len, NULL };

	if (rules->mode == CK_MODE_IDENTITY)
		return CK_RELATION_SAME;
	if (memcmp(a->key_id, b->key_id, sizeof(a->key_id)))
		return CK_RELATION_NOT_COMPARABLE;
	if (same_roots(a->root, a->rest, b->root, b->rest, rules->mode))
		return CK_RELATION_SAME;
	return ck_leaves_compare(
		&side_a, &side_b,
		compare_image_ids(a->image_id, a->image_known, b->image_id, b->image_known), rules,
		ret_difference);
}
