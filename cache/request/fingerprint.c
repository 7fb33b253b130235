/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Digests of the normalized form. All of them are keyed, so nobody can search a stolen database for
 * guessed values:
 *
 *	digest key --kdf--> root, rest, digest, image key     the fingerprint's digests
 *	           '------> record key + a record's salt      the same, as that record stores them
 *
 * A salt alone is of no use: without the key nobody can tell that two records have digests of one
 * value.
 */
#include <sodium.h>
#include <string.h>

#include "cache/request/normalize.h"
#include "cache/request/compare.h"
#include "cache/request/fingerprint.h"
#include "src/base/error.h"
#include "src/base/mem.h"

_Static_assert(CK_KEY_BYTES == crypto_kdf_KEYBYTES,
	       "libsodium derives keys from a key of this size");
_Static_assert(CK_DIGEST_BYTES == crypto_shorthash_siphashx24_BYTES, "one SipHash-128");
_Static_assert(CK_ROOT_BYTES == crypto_generichash_BYTES, "a record's root is one BLAKE2b-256");

#define KDF_CONTEXT "crikeep" /* 8 bytes with its NUL */
enum { KDF_ID = 0, KDF_DIGESTS = 1, KDF_LATER = 2 };
_Static_assert(sizeof(KDF_CONTEXT) == crypto_kdf_CONTEXTBYTES,
	       "libsodium's contexts have one size");

struct digest_keys { /* needed until the digests are made */
	unsigned char root[crypto_shorthash_siphashx24_KEYBYTES];
	unsigned char rest[crypto_shorthash_siphashx24_KEYBYTES];
	unsigned char digest[crypto_shorthash_siphashx24_KEYBYTES];
};

struct later_keys {               /* needed while the fingerprint lives */
	unsigned char record[32]; /* makes a record's salts from its salt */
	unsigned char image[32];  /* for image ids */
};
_Static_assert(sizeof(struct digest_keys) <= crypto_kdf_BYTES_MAX, "one derivation fills all");
_Static_assert(sizeof(struct later_keys) == crypto_kdf_BYTES_MAX, "one derivation fills all");

/* Made by the first who needs them. */
struct digests {
	struct ck_normalized form; /* until they are made */
	enum ck_kind kind;
	unsigned char key[crypto_shorthash_siphashx24_KEYBYTES];
	unsigned char *bytes; /* a block (digests.h); NULL: not made */
	size_t len;
};

struct ck_fingerprint {
	unsigned char key_id[CK_KEY_ID_BYTES];
	unsigned char root[CK_DIGEST_BYTES];
	unsigned char rest[CK_DIGEST_BYTES];
	bool image_asked;                        /* the host was asked for it, perhaps in vain */
	unsigned char image_id[CK_DIGEST_BYTES]; /* if image_known */
	struct later_keys keys;
	bool image_known;
	bool key_only;
	const char *image;
	struct digests *digests;
};

struct block { /* one allocation */
	struct ck_fingerprint fp;
	struct digests digests;
	char image[];
};

struct salts { /* of one record */
	unsigned char root[32];
	unsigned char digest[CK_SALT_KEY_BYTES];
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
	derive(key->digests, sizeof(key->digests), KDF_DIGESTS, key);
	derive(key->later, sizeof(key->later), KDF_LATER, key);
	return true;
}

/* ---- making one ------------------------------------------------------------------------------ */

static void hash(unsigned char ret_digest[CK_DIGEST_BYTES], const void *bytes, size_t len,
		 const unsigned char *key)
{
	crypto_shorthash_siphashx24(ret_digest, bytes, len, key);
}

/* SipHash takes one piece. So the fields of root are copied together from the left, and what it
 * leaves out from the right. */
static int digest_roots(struct ck_fingerprint *fp, enum ck_kind kind, struct ck_normalized *form,
			const struct digest_keys *keys, struct ck_error *err)
{
	const unsigned char head[] = { CK_FORM_VERSION, (unsigned char)kind };
	size_t size = 2 * sizeof(head);

	for (size_t i = 0; i < form->n; i++)
		size += form->fields[i].len;
	unsigned char *all = ck_request_fields_take(&form->memory, size);
	if (!all)
		return ck_nomem(err);
	unsigned char *root = mempcpy(all, head, sizeof(head));
	unsigned char *rest = memcpy(all + size - sizeof(head), head, sizeof(head));
	for (size_t i = 0; i < form->n; i++) {
		const struct ck_normalized_field *field = &form->fields[i];
		if (ck_field_is_strict_only(kind, field->name))
			rest = memcpy(rest - field->len, field->bytes, field->len);
		else
			root = mempcpy(root, field->bytes, field->len);
	}
	hash(fp->root, all, (size_t)(root - all), keys->root);
	hash(fp->rest, rest, (size_t)(all + size - rest), keys->rest);
	return 0;
}

int ck_fingerprint_digest(const struct ck_fingerprint *fp, struct ck_error *err)
{
	struct digests *digests = fp->digests;
	const struct ck_normalized *form = &digests->form;
	size_t size = CK_DIGESTS_HEAD;

	if (digests->bytes)
		return 0;
	for (size_t i = 0; i < form->n; i++)
		size += ck_field_digest_size(form->fields[i].name);
	unsigned char *p = digests->bytes = ck_realloc(NULL, size);
	if (!p)
		return ck_nomem(err);
	*p++ = (unsigned char)digests->kind;
	for (size_t i = 0; i < form->n; i++) {
		const struct ck_normalized_field *field = &form->fields[i];
		p = ck_field_digest_write(p, field->name, field->flags);
		hash(p, field->bytes, field->len, digests->key);
		p += CK_DIGEST_BYTES;
	}
	digests->len = size;
	ck_normalized_fini(&digests->form);
	return 0;
}

static struct ck_fingerprint *fingerprint_new(const struct ck_normalized *form)
{
	/* cut at a NUL it would name another image */
	size_t image_len =
		form->image && !memchr(form->image, '\0', form->image_len) ? form->image_len : 0;
	struct block *block = ck_alloc(sizeof(*block) + image_len + 1);

	if (!block)
		return NULL;
	if (image_len)
		memcpy(block->image, form->image, image_len);
	block->fp.image = block->image;
	block->fp.digests = &block->digests;
	return &block->fp;
}

int ck_fingerprint_make(const struct ck_digest_key *key, enum ck_kind kind, const void *bytes,
			size_t len, struct ck_fingerprint **ret_fp, struct ck_error *err)
{
	struct digest_keys keys;
	struct ck_normalized form;

	if (sodium_init() < 0)
		return ck_fail(err, CK_EIO, "libsodium does not start");
	int r = ck_normalize(kind, bytes, len, &form, err);
	if (r < 0)
		return r;
	struct ck_fingerprint *fp = fingerprint_new(&form);
	if (!fp) {
		ck_normalized_fini(&form);
		return ck_nomem(err);
	}
	memcpy(&keys, key->digests, sizeof(keys));
	memcpy(&fp->keys, key->later, sizeof(fp->keys));
	memcpy(fp->key_id, key->id, sizeof(fp->key_id));
	r = digest_roots(fp, kind, &form, &keys, err);
	*fp->digests = (struct digests){ .form = form, .kind = kind };
	memcpy(fp->digests->key, keys.digest, sizeof(keys.digest));
	if (r < 0)
		ck_fingerprint_free(fp);
	else
		*ret_fp = fp;
	return r;
}

void ck_fingerprint_free(struct ck_fingerprint *fp)
{
	if (!fp)
		return;
	ck_normalized_fini(&fp->digests->form);
	free(fp->digests->bytes);
	free(fp); /* the first of its block */
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
	struct ck_record record = { .form = CK_FORM_VERSION };
	const struct digests *from = fp->digests;
	struct ck_digests digests;
	struct ck_field_digest digest;
	struct salts salts;
	int r = ck_fingerprint_digest(fp, err);

	if (r < 0)
		return r;
	record.digests = ck_memdup(from->bytes, from->len);
	if (!record.digests)
		return ck_nomem(err);
	record.digests_len = from->len;
	memcpy(record.key_id, fp->key_id, sizeof(record.key_id));
	randombytes_buf(record.salt, sizeof(record.salt));
	derive_salts(&salts, fp, record.salt);
	salt_root(record.root, fp, &salts);
	ck_digest_salt(record.rest, fp->rest, salts.digest);
	if (fp->image_known)
		ck_digest_salt(record.image_id, fp->image_id, salts.digest);
	ck_digests_begin(&digests, from->bytes, from->len);
	while (ck_digests_next(&digests, &digest) > 0)
		ck_digest_salt(record.digests + (digest.bytes - from->bytes), digest.bytes,
			       salts.digest);
	*ret_record = record;
	return 0;
}

void ck_record_fini(struct ck_record *record)
{
	free(record->digests);
	record->digests = NULL;
	record->digests_len = 0;
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
	ck_digest_salt(record->image_id, fp->image_id, salts.digest);
}

/* ---- comparing ------------------------------------------------------------------------------- */

static enum ck_image_ids compare_image_ids(const unsigned char *a, bool a_known,
					   const unsigned char *b, bool b_known)
{
	if (!a_known || !b_known)
		return CK_IMAGES_UNKNOWN;
	return memcmp(a, b, CK_DIGEST_BYTES) ? CK_IMAGES_DIFFER : CK_IMAGES_SAME;
}

/* root leaves out what only strict mode compares (E1, E2); rest has it */
static bool same_roots(const unsigned char *root_a, const unsigned char *rest_a,
		       const unsigned char *root_b, const unsigned char *rest_b, size_t root_len,
		       enum ck_mode mode)
{
	return !memcmp(root_a, root_b, root_len) &&
	       (mode != CK_MODE_STRICT || !memcmp(rest_a, rest_b, CK_DIGEST_BYTES));
}

enum ck_relation ck_record_compare(const struct ck_record *record, const struct ck_fingerprint *fp,
				   const struct ck_compare_rules *rules,
				   struct ck_difference *ret_difference)
{
	unsigned char root[CK_ROOT_BYTES], rest[CK_DIGEST_BYTES], image_id[CK_DIGEST_BYTES];
	struct ck_compare_side kept = { record->digests, record->digests_len, NULL };
	struct salts salts;

	if (rules->mode == CK_MODE_IDENTITY || fp->key_only)
		return CK_RELATION_SAME;
	if (!same_key(record, fp))
		return CK_RELATION_NOT_COMPARABLE;
	derive_salts(&salts, fp, record->salt);
	salt_root(root, fp, &salts);
	ck_digest_salt(rest, fp->rest, salts.digest);
	if (same_roots(record->root, record->rest, root, rest, sizeof(root), rules->mode))
		return CK_RELATION_SAME;
	if (!record->digests || ck_fingerprint_digest(fp, NULL) < 0)
		return CK_RELATION_NEEDS_DIGESTS;
	ck_digest_salt(image_id, fp->image_id, salts.digest);
	bool kept_known = !sodium_is_zero(record->image_id, CK_DIGEST_BYTES);
	enum ck_image_ids images =
		compare_image_ids(record->image_id, kept_known, image_id, fp->image_known);
	if (kept_known && !fp->image_asked)
		images = CK_IMAGES_ASK;
	struct ck_compare_side asked = { fp->digests->bytes, fp->digests->len, salts.digest };
	return ck_digests_compare(&kept, &asked, images, rules, ret_difference);
}

enum ck_relation ck_fingerprints_compare(const struct ck_fingerprint *a,
					 const struct ck_fingerprint *b,
					 const struct ck_compare_rules *rules,
					 struct ck_difference *ret_difference)
{
	if (rules->mode == CK_MODE_IDENTITY)
		return CK_RELATION_SAME;
	if (memcmp(a->key_id, b->key_id, sizeof(a->key_id)))
		return CK_RELATION_NOT_COMPARABLE;
	if (same_roots(a->root, a->rest, b->root, b->rest, sizeof(a->root), rules->mode))
		return CK_RELATION_SAME;
	if (ck_fingerprint_digest(a, NULL) < 0 || ck_fingerprint_digest(b, NULL) < 0)
		return CK_RELATION_NEEDS_DIGESTS;
	struct ck_compare_side side_a = { a->digests->bytes, a->digests->len, NULL },
			       side_b = { b->digests->bytes, b->digests->len, NULL };
	return ck_digests_compare(
		&side_a, &side_b,
		compare_image_ids(a->image_id, a->image_known, b->image_id, b->image_known), rules,
		ret_difference);
}
