/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_CACHE_REQUEST_FINGERPRINT_H
#define CK_CACHE_REQUEST_FINGERPRINT_H
/*
 * What "the same request" means (libcrikeep(3), "THE SAME REQUEST").
 *
 * The bytes of a request are read as protobuf, with protobuf-c's descriptors of cri.proto as the
 * table of names and types, and normalized: maps are sorted by key, envs stably by key; mounts,
 * devices, CDI devices and DNS options are sorted; a default equals an absent field, packed equals
 * unpacked; singular messages are merged; unknown fields are a sorted multiset. The result is:
 *
 *	root      A keyed SipHash-128 of the whole form, except for what normalized mode never
 *	          compares (E1, E2). Equal roots mean the same request.
 *	digests   The same for each path, label, annotation, env name and mount. If the roots
 *	          differ, these decide, under the given mode and exceptions, and they name the
 *	          difference. What root leaves out has digests too, for strict mode. A request
 *	          that comes again has the root of its record: so the digests are made when
 *	          somebody needs them.
 *
 * Only digests of values go further than fingerprint.c. Names (paths; names of labels, annotations
 * and envs; mount targets) stay readable.
 *
 * A fingerprint belongs to a request that is at hand. A record is what an entry stores: the same
 * digests, each hashed again under a salt of the record, so that nobody can see that two entries
 * have an equal value. Comparing a fingerprint with a record does not need the record's request.
 */
#include <stdbool.h>
#include "src/crikeep.h"
#include "src/base/limits.h"

/* of the normalized form; a record of another version is not comparable (K31) */
#define CK_FORM_VERSION 1u
#define CK_ROOT_BYTES 32u
#define CK_DIGEST_BYTES 16u
#define CK_SALT_BYTES 16u
#define CK_KEY_ID_BYTES 8u

struct ck_digest_key { /* made once per state directory, file "key", 0600 */
	unsigned char bytes[CK_KEY_BYTES];
	/* derived from them */
	unsigned char id[CK_KEY_ID_BYTES]; /* names the key in rows */
	unsigned char digests[64], later[64]; /* keys, for fingerprint.c */
};
/* ck_digest_key_derive - fill what is derived. false: all bytes are equal, so it is not a key */
bool ck_digest_key_derive(struct ck_digest_key *key);

/* opaque; only the image id changes after it was made; free with ck_fingerprint_free() */
struct ck_fingerprint;

struct ck_record { /* its digests may be in memory or only in the database */
	uint32_t form;
	unsigned char key_id[CK_KEY_ID_BYTES];
	unsigned char salt[CK_SALT_BYTES];
	unsigned char root[CK_ROOT_BYTES];
	/* a digest of what root leaves out (E1, E2); root and rest together decide strict mode */
	unsigned char rest[CK_DIGEST_BYTES];
	unsigned char image_id[CK_DIGEST_BYTES]; /* zero: not resolved */
	unsigned char *digests;                  /* one block, malloc'ed; NULL: not loaded */
	size_t digests_len;
};

struct ck_compare_rules {
	enum ck_mode mode;
	/* annotations that do not count (E3): "prefix*" or whole names, then NULL; NULL itself: the
	 * default below */
	const char *const *ignore_annotations;
	bool compare_sandbox_config; /* what only RunPodSandbox uses (E4); false: not compared */
};
extern const char *const ck_ignore_annotations_default[];

enum ck_relation {
	CK_RELATION_SAME = 0,
	CK_RELATION_COSMETIC, /* differs only in the pod's own labels and annotations (K12) */
	/* Image references differ, and it is not known whether they mean one image; the rest is
	 * equal or COSMETIC. Resolve config.image.image and compare again. If the result is IMAGE
	 * again, nobody can tell (an image volume) and it counts as DIFFERENT. */
	CK_RELATION_IMAGE,
	CK_RELATION_DIFFERENT,
	CK_RELATION_NOT_COMPARABLE, /* other digest key or form version (K31) */
	/* the roots differ and record->digests is NULL: load it and compare again; or there was no
	 * memory for the fingerprint's digests */
	CK_RELATION_NEEDS_DIGESTS,
};

/* The paths that differ, in field order: at most CK_DIFF_PATHS_MAX, then "and N more". */
struct ck_difference {
	/* "config.envs[LOG_LEVEL], config.mounts[/etc/hosts]"; unprintable bytes as \xNN */
	char text[CK_ERROR_TEXT];
	unsigned count;
};

/* ck_fingerprint_make - @bytes must stay as they are until ck_fingerprint_digest() or
 * ck_fingerprint_free(). -CK_EMALFORMED, -CK_ETOOBIG, -CK_ENOMEM, -CK_EIO (libsodium does not
 * start) */
int ck_fingerprint_make(const struct ck_digest_key *key, enum ck_kind kind, const void *bytes,
			size_t len, struct ck_fingerprint **ret_fp, struct ck_error *err);
void ck_fingerprint_free(struct ck_fingerprint *fp);
/* ck_fingerprint_digest - make the digests now; from then on nothing is left of the request but its
 * image reference. -CK_ENOMEM: it can be called again */
int ck_fingerprint_digest(const struct ck_fingerprint *fp, struct ck_error *err);
/* ck_fingerprint_image - the request's image reference ("": none), borrowed; resolve_image needs
 * it. It is never stored */
const char *ck_fingerprint_image(const struct ck_fingerprint *fp);
/* ck_fingerprint_set_image_id - the id that the host resolved it to; NULL: it could not */
void ck_fingerprint_set_image_id(struct ck_fingerprint *fp, const char *image_id);

/* ck_fingerprint_key_only - the caller knows only the key: compare with records as CK_MODE_IDENTITY
 * does */
void ck_fingerprint_key_only(struct ck_fingerprint *fp);

/* ck_record_make - fill @ret_record, with digests, under a new salt. -CK_ENOMEM */
int ck_record_make(const struct ck_fingerprint *fp, struct ck_record *ret_record,
		   struct ck_error *err);
void ck_record_fini(struct ck_record *record); /* frees digests */
/* ck_record_set_image_id - the creator's image was resolved after the record was made */
void ck_record_set_image_id(struct ck_record *record, const struct ck_fingerprint *fp);
/* ck_record_compare - @ret_difference may be NULL; it is filled for COSMETIC, IMAGE and
 * DIFFERENT */
enum ck_relation ck_record_compare(const struct ck_record *record, const struct ck_fingerprint *fp,
				   const struct ck_compare_rules *rules,
				   struct ck_difference *ret_difference);
/* ck_fingerprints_compare - two requests at hand (waiting turns, `crikeep compare`) */
enum ck_relation ck_fingerprints_compare(const struct ck_fingerprint *a,
					 const struct ck_fingerprint *b,
					 const struct ck_compare_rules *rules,
					 struct ck_difference *ret_difference);
#endif
