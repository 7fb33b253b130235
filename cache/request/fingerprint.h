/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_CACHE_REQUEST_FINGERPRINT_H
#define CK_CACHE_REQUEST_FINGERPRINT_H
/*
 * What "the same request" means (libcrikeep(3), "THE SAME REQUEST").
 *
 * A request is walked as raw protobuf bytes, with protobuf-c's descriptors of cri.proto as the
 * table of names and types, into a canonical form: maps by key, envs stably by key, mounts,
 * devices, CDI devices and dns options sorted, a default equal to absence, packed equal to
 * unpacked, merged singular messages, unknown fields as a sorted multiset. Two things come out:
 *   root    keyed BLAKE2b over the whole form but for what is always left out (E1, E2): equal roots, the same request;
 *   leaves  a keyed SipHash-128 per path, label, annotation, env name and mount: they decide when roots differ, with mode and
 *           leave-outs applied then, and they name the difference. What E1 and E2 leave out has
 *           leaves too, for strict mode.
 * No value of a request leaves this file, only digests. Names (paths, label, annotation and env
 * names, mount targets) do.
 *
 * A fingerprint belongs to a request in hand. A record is what an entry keeps: the same digests,
 * each hashed once more under a salt of its own, so that equal values of two entries do not show. A
 * fingerprint can be compared with any record without the request.
 */
#include <stdbool.h>
#include "src/crikeep.h"
#include "src/base/limits.h"

/* of the canonical form; a record of another version is not comparable (K31) */
#define CK_FORM_VERSION 1u
#define CK_ROOT_BYTES 32u
#define CK_LEAF_BYTES 16u
#define CK_SALT_BYTES 16u
#define CK_KEY_ID_BYTES 8u

struct ck_digest_key { /* made once per state directory, file "key", 0600 */
	unsigned char bytes[CK_KEY_BYTES];
	unsigned char id[CK_KEY_ID_BYTES]; /* a digest of bytes: names the key in rows */
};
/* ck_digest_key_derive - fill @key->id, and check: false if all bytes are equal (not a key) */
bool ck_digest_key_derive(struct ck_digest_key *key);

/* opaque; immutable once made but for the image id; free with ck_fingerprint_free() */
struct ck_fingerprint;

struct ck_record { /* plain; leaves is one block that can lie in memory or only in the database */
	uint32_t form;
	unsigned char key_id[CK_KEY_ID_BYTES];
	unsigned char salt[CK_SALT_BYTES];
	unsigned char root[CK_ROOT_BYTES];
	/* over what E1 and E2 leave out: with root, decides strict mode without leaves */
	unsigned char rest[CK_LEAF_BYTES];
	unsigned char image_id[CK_LEAF_BYTES]; /* zero: not resolved */
	unsigned char *leaves;             /* malloc'ed, or NULL: not loaded */
	size_t leaves_len;
};

struct ck_compare_rules {
	enum ck_mode mode;
	enum ck_annotation_change on_annotation_change;
	/* E3: NULL-terminated; "prefix*" or whole names; NULL: the default below */
	const char *const *ignore_annotations;
	bool compare_sandbox_config;           /* E4: false leaves it out */
};
extern const char *const ck_ignore_annotations_default[];

enum ck_relation {
	CK_RELATION_SAME = 0,
	CK_RELATION_COSMETIC,       /* differs only in the pod's own labels and annotations (K12) */
	/* differs in image references that are not known to be one image, and else at most as
	 * COSMETIC: resolve config.image.image, then compare again. IMAGE once more: it cannot be
	 * known (an image volume), so it counts as DIFFERENT */
	CK_RELATION_IMAGE,
	CK_RELATION_DIFFERENT,
	CK_RELATION_NOT_COMPARABLE, /* other digest key or form version (K31) */
	/* the roots differ and record->leaves is NULL: load them and compare again */
	CK_RELATION_NEEDS_LEAVES,
};

/* the paths that differ, in field order, at most CK_DIFF_PATHS_MAX, then "and N more" */
struct ck_difference {
	/* "config.envs[LOG_LEVEL], config.mounts[/etc/hosts]"; unprintable bytes as \xNN */
	char text[CK_ERROR_TEXT];
	unsigned count;
};

/* ck_fingerprint_make - -CK_EMALFORMED, -CK_ETOOBIG, -CK_ENOMEM, -CK_EIO (libsodium does not
 * start) */
int ck_fingerprint_make(const struct ck_digest_key *key, enum ck_kind kind, const void *bytes,
			size_t len, struct ck_fingerprint **ret_fp, struct ck_error *err);
void ck_fingerprint_free(struct ck_fingerprint *fp);
/* ck_fingerprint_image - the request's image reference ("" if none); borrowed. Kept for
 * resolve_image, in memory only */
const char *ck_fingerprint_image(const struct ck_fingerprint *fp);
/* ck_fingerprint_set_image_id - the host resolved it, or (NULL) could not */
void ck_fingerprint_set_image_id(struct ck_fingerprint *fp, const char *image_id);

/* ck_fingerprint_key_only - who asks knows only the key: compared as in CK_MODE_IDENTITY with what
 * is kept */
void ck_fingerprint_key_only(struct ck_fingerprint *fp);

/* ck_record_make - fill @ret_record under a fresh salt, leaves included. -CK_ENOMEM */
int ck_record_make(const struct ck_fingerprint *fp, struct ck_record *ret_record,
		   struct ck_error *err);
void ck_record_fini(struct ck_record *record); /* frees leaves */
/* ck_record_set_image_id - the creator's image was resolved after the record was made */
void ck_record_set_image_id(struct ck_record *record, const struct ck_fingerprint *fp);
/* ck_record_check - is this block of leaves, read from a database, well formed? Untrusted. */
bool ck_record_check(const unsigned char *leaves, size_t len);
/* ck_record_compare - @ret_difference may be NULL; filled for COSMETIC, IMAGE and DIFFERENT */
enum ck_relation ck_record_compare(const struct ck_record *record, const struct ck_fingerprint *fp,
				   const struct ck_compare_rules *rules,
				   struct ck_difference *ret_difference);
/* ck_fingerprints_compare - two requests in hand (pending turns, `crikeep compare`) */
enum ck_relation ck_fingerprints_compare(const struct ck_fingerprint *a,
					 const struct ck_fingerprint *b,
					 const struct ck_compare_rules *rules,
					 struct ck_difference *ret_difference);
#endif
