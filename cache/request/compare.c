/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Both blocks are sorted by name, so comparing is a merge. A name that only one block has, or whose
 * digests differ, is a difference. The rules decide whether it counts (crikeep-rules(7), 4.):
 *
 *	E1 E2  random file of the termination log, config.seen    counts in strict mode only
 *	E3     annotations that network plugins write             never counts in normalized mode
 *	E4     in a container's request: what only                counts with compare_sandbox_config
 *	       RunPodSandbox uses
 *	E5     an image reference                                 does not count if both are known
 *	                                                          to name one image
 *
 * The rules look at names, not at flags in the block, so a damaged block cannot hide a difference.
 */
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "cache/request/compare.h"
#include "src/base/mem.h"

_Static_assert(CK_DIGEST_BYTES == crypto_shorthash_siphashx24_BYTES, "a digest is one SipHash-128");
_Static_assert(CK_SALT_KEY_BYTES == crypto_shorthash_siphashx24_KEYBYTES,
	       "a salt's key is SipHash's");

/* CNI plugins write these into the pod's annotations while the call that needs them is running. */
const char *const ck_ignore_annotations_default[] = {
	"cni.projectcalico.org/*",
	"k8s.v1.cni.cncf.io/network-status",
	"k8s.v1.cni.cncf.io/networks-status",
	"k8s.ovn.org/pod-networks",
	NULL,
};

/* when the running kubelet first saw the pod (E2) */
#define CONFIG_SEEN "kubernetes.io/config.seen"

/* paths, as field numbers */
#define RUN_POD_SANDBOX_LABELS       "\1\6"
#define RUN_POD_SANDBOX_ANNOTATIONS  "\1\7"
#define CREATE_CONTAINER_LABELS      "\3\6" /* of sandbox_config: the pod's */
#define CREATE_CONTAINER_ANNOTATIONS "\3\7"
#define CONFIG_IMAGE_IMAGE           "\2\2\1"
#define CONFIG_MOUNTS                "\2\7"
#define TAIL_HOST_PATH               2 /* of a mount */
#define TAIL_IMAGE                   9

/* what only RunPodSandbox uses (E4) */
static const char *const only_sandbox[] = {
	"\3\4",    /* sandbox_config.dns_config */
	"\3\5",    /* .port_mappings */
	"\3\10\3", /* .linux.sysctls */
	"\3\10\4", /* .linux.overhead */
	"\3\10\5", /* .linux.resources */
};

static bool is_pod_annotation(enum ck_kind kind, const struct ck_field_name *name)
{
	return name->keyed &&
	       ck_field_name_is(name, kind == CK_SANDBOX ? RUN_POD_SANDBOX_ANNOTATIONS
							 : CREATE_CONTAINER_ANNOTATIONS);
}

static bool is_pod_label(enum ck_kind kind, const struct ck_field_name *name)
{
	return name->keyed && ck_field_name_is(name, kind == CK_SANDBOX ? RUN_POD_SANDBOX_LABELS
									: CREATE_CONTAINER_LABELS);
}

static bool key_is(const struct ck_field_name *name, const char *key)
{
	return name->key_len == strlen(key) && !memcmp(name->key, key, name->key_len);
}

bool ck_field_is_strict_only(enum ck_kind kind, const struct ck_field_name *name)
{
	if (kind == CK_CONTAINER && name->tail[0] == TAIL_HOST_PATH &&
	    ck_field_name_is(name, CONFIG_MOUNTS))
		return true;
	return is_pod_annotation(kind, name) && key_is(name, CONFIG_SEEN);
}

static bool is_ignored(const struct ck_field_name *name, const char *const *patterns)
{
	for (; *patterns; patterns++) {
		size_t len = strlen(*patterns);
		if (len && (*patterns)[len - 1] == '*') {
			if (name->key_len >= len - 1 && !memcmp(name->key, *patterns, len - 1))
				return true;
		} else if (key_is(name, *patterns)) {
			return true;
		}
	}
	return false;
}

static bool is_only_sandbox(const struct ck_field_name *name)
{
	for (size_t i = 0; i < CK_COUNT(only_sandbox); i++) {
		size_t len = strlen(only_sandbox[i]);
		if (name->path_len >= len && !memcmp(name->path, only_sandbox[i], len))
			return true;
	}
	return false;
}

/* ---- the difference -------------------------------------------------------------------------- */

struct naming {
	struct ck_difference *difference; /* may be NULL */
	enum ck_kind kind;
	struct ck_field_name last; /* named last; names under it are not repeated */
	size_t len;
	unsigned shown;
};

#define MORE_ROOM 24u /* ", and 65536 more" */

static void name_it(struct naming *naming, const struct ck_field_name *name)
{
	struct ck_difference *difference = naming->difference;
	size_t room = sizeof(difference->text) - MORE_ROOM;

	if (!difference || (difference->count && ck_field_name_under(name, &naming->last)))
		return;
	naming->last = *name;
	difference->count++;
	if (naming->shown + 1 < difference->count || naming->shown == CK_DIFF_PATHS_MAX)
		return; /* once one is left out, all that follow are */
	size_t comma = naming->shown ? 2 : 0, len = naming->len + comma;
	if (len < room)
		len += ck_field_name_print(naming->kind, name, difference->text + len, room - len);
	if (len < room) {
		memcpy(difference->text + naming->len, ", ", comma);
		naming->len = len;
		naming->shown++;
	}
	difference->text[naming->len] = '\0';
}

static void name_the_rest(struct naming *naming)
{
	struct ck_difference *difference = naming->difference;

	if (difference && difference->count > naming->shown)
		snprintf(difference->text + naming->len, sizeof(difference->text) - naming->len,
			 ", and %u more", difference->count - naming->shown);
}

/* ---- judging --------------------------------------------------------------------------------- */

enum weight { NOTHING, COSMETIC, IMAGE, REAL };

static enum weight weigh_image(const struct ck_field_digest *a, const struct ck_field_digest *b,
			       enum ck_image_ids images, bool main_image)
{
	if (!a || !b)
		return REAL;
	if (main_image && images == CK_IMAGES_SAME)
		return NOTHING;
	/* even if the user wrote the same reference: a tag can move between two tries */
	if (main_image && images == CK_IMAGES_DIFFER)
		return REAL;
	/* Both user references are set. They are equal, or another digest (its own, or the mount's)
	 * differs as well. */
	if (a->flags & b->flags & CK_DIGEST_USER_IMAGE && !(main_image && images == CK_IMAGES_ASK))
		return NOTHING;
	return IMAGE;
}

/* What a difference in this digest means. @a or @b is NULL if that side does not have it. */
static enum weight weigh(enum ck_kind kind, const struct ck_field_digest *a,
			 const struct ck_field_digest *b, enum ck_image_ids images,
			 const struct ck_compare_rules *rules)
{
	const struct ck_field_name *name = a ? &a->name : &b->name;
	bool annotation = is_pod_annotation(kind, name);

	if (rules->mode == CK_MODE_STRICT)
		return annotation || is_pod_label(kind, name) ? COSMETIC : REAL;
	if (ck_field_is_strict_only(kind, name))
		return NOTHING;
	if (annotation) {
		const char *const *ignored = rules->ignore_annotations;
		return is_ignored(name, ignored ? ignored : ck_ignore_annotations_default)
			       ? NOTHING
			       : COSMETIC;
	}
	if (is_pod_label(kind, name))
		return COSMETIC;
	if (kind != CK_CONTAINER)
		return REAL;
	if (!rules->compare_sandbox_config && is_only_sandbox(name))
		return NOTHING;
	if (ck_field_name_is(name, CONFIG_IMAGE_IMAGE))
		return weigh_image(a, b, images, true);
	if (ck_field_name_is(name, CONFIG_MOUNTS) && name->tail[0] == TAIL_IMAGE)
		return weigh_image(a, b, images, false);
	return REAL;
}

void ck_digest_salt(unsigned char ret_digest[CK_DIGEST_BYTES],
		    const unsigned char digest[CK_DIGEST_BYTES], const unsigned char *salt)
{
	crypto_shorthash_siphashx24(ret_digest, digest, CK_DIGEST_BYTES, salt);
}

static const unsigned char *salted(const struct ck_compare_side *side,
				   const struct ck_field_digest *digest, unsigned char *buf)
{
	if (!side->salt)
		return digest->bytes;
	ck_digest_salt(buf, digest->bytes, side->salt);
	return buf;
}

enum ck_relation ck_digests_compare(const struct ck_compare_side *a,
				    const struct ck_compare_side *b, enum ck_image_ids images,
				    const struct ck_compare_rules *rules,
				    struct ck_difference *ret_difference)
{
	struct ck_difference difference = { "", 0 };
	struct naming naming = { .difference = ret_difference ? &difference : NULL };
	enum weight heaviest = NOTHING;
	struct ck_digests in_a, in_b;
	struct ck_field_digest digest_a, digest_b;

	if (!ck_digests_begin(&in_a, a->digests, a->len) ||
	    !ck_digests_begin(&in_b, b->digests, b->len) || in_a.kind != in_b.kind)
		return CK_RELATION_NOT_COMPARABLE;
	naming.kind = in_a.kind;
	int has_a = ck_digests_next(&in_a, &digest_a), has_b = ck_digests_next(&in_b, &digest_b);
	while (has_a > 0 || has_b > 0) {
		unsigned char buf_a[CK_DIGEST_BYTES], buf_b[CK_DIGEST_BYTES];
		int order = has_a <= 0   ? 1
			    : has_b <= 0 ? -1
					 : ck_field_name_order(&digest_a.name, &digest_b.name);
		const struct ck_field_digest *from_a = order <= 0 ? &digest_a : NULL,
					     *from_b = order >= 0 ? &digest_b : NULL;
		if (order || memcmp(salted(a, &digest_a, buf_a), salted(b, &digest_b, buf_b),
				    CK_DIGEST_BYTES)) {
			enum weight weight = weigh(naming.kind, from_a, from_b, images, rules);
			if (weight != NOTHING)
				name_it(&naming, from_a ? &from_a->name : &from_b->name);
			if (weight > heaviest)
				heaviest = weight;
		}
		if (from_a)
			has_a = ck_digests_next(&in_a, &digest_a);
		if (from_b)
			has_b = ck_digests_next(&in_b, &digest_b);
	}
	if (has_a < 0 || has_b < 0)
		return CK_RELATION_NOT_COMPARABLE;
	name_the_rest(&naming);
	if (ret_difference)
		*ret_difference = difference;
	switch (heaviest) {
	case NOTHING:
		return CK_RELATION_SAME;
	case COSMETIC:
		return CK_RELATION_COSMETIC;
	case IMAGE:
		return CK_RELATION_IMAGE;
	default:
		return CK_RELATION_DIFFERENT;
	}
}
