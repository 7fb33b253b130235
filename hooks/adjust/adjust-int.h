/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_HOOKS_ADJUST_ADJUST_INT_H
#define CK_HOOKS_ADJUST_ADJUST_INT_H
/*
 * What the files behind adjust.h share: who owns what (owners.c), how one answer is merged
 * (merge.c), and all answers to one event (adjust.c). Everything is in the arena of one ck_adjust.
 * So messages can share their parts, and nothing has to be freed after a failure.
 */
#include "hooks/adjust/adjust.h"
#include "hooks/wire/nri.pb-c.h"
#include "src/base/arena.h"
#include "src/base/wire-writer.h"

/* ---- who owns what of one container ---------------------------------------------------------- */

struct ck_claim {
	int field;          /* Ck__Nri__Field */
	const char *key;    /* of a list's item; NULL: the whole field */
	const char *plugin; /* "10-a,20-b" where several may have a part */
	bool cleared;       /* it was removed; @plugin may set it again */
	bool open;          /* and so may others, because nobody had set it before */
};

struct ck_claims {
	const char *id; /* of the container */
	struct ck_claim *list;
	size_t n, room;
};

/* How a field is claimed. Borrowed by the functions below. */
struct ck_claimant {
	struct ck_arena *arena;
	struct ck_claims *claims;
	const char *plugin;
	bool later_wins; /* one plugin asks by itself: there is no conflict */
};

/* ck_claim - the plugin owns @field, or @key of it. 0, -CK_ECONFLICT (names both plugins),
 * -CK_ETOOBIG, -CK_ENOMEM */
int ck_claim(const struct ck_claimant *by, int field, const char *key, struct ck_error *err);
/* ck_claim_clear - it is removed. With @open others may set it again, if nobody had set it */
int ck_claim_clear(const struct ck_claimant *by, int field, const char *key, bool open,
		   struct ck_error *err);
/* ck_claim_share - one more plugin has a part in @field */
int ck_claim_share(const struct ck_claimant *by, int field, struct ck_error *err);
/* ck_claims_write - an entry of OwningPlugins, unless nobody owns anything */
void ck_claims_write(const struct ck_claims *claims, struct ck_writer *out);

/* ---- merging --------------------------------------------------------------------------------- */

/* Where an adjustment is merged into: the sum of all, and the container that later plugins are
 * shown. */
struct ck_merge {
	Ck__Nri__ContainerAdjustment *sum;
	Ck__Nri__LinuxContainerAdjustment *linux_sum; /* sum->linux while there is anything in it */
	Ck__Nri__LinuxResources *resources_sum;       /* linux_sum->resources, the same */
	Ck__Nri__Container *seen;
	char **args; /* the container's own */
	size_t args_n;
};

/* ck_merge_adjustment - Return: as ck_adjust_reply() */
int ck_merge_adjustment(struct ck_merge *merge, const struct ck_claimant *by,
			const Ck__Nri__ContainerAdjustment *adjustment, struct ck_error *err);
/* ck_merge_resources - of an update: into @to, which is the sum and what is shown. 1: something has
 * changed, 0: @resources was empty */
int ck_merge_resources(Ck__Nri__LinuxResources *to, const struct ck_claimant *by,
		       const Ck__Nri__LinuxResources *resources, struct ck_error *err);
#endif
