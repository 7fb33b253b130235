/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_CRI_UID_CONFLICT_H
#define CK_CRI_UID_CONFLICT_H
/*
 * Sandboxes that cannot both be right: two READY ones of one pod uid, and one uid under two names
 * or namespaces (K26). A program that releases a pod's addresses by its uid would release those of
 * the other sandbox. Dead sandboxes of a uid are ordinary. A sandbox without a uid was not made by
 * a kubelet and is ignored. Each conflict is reported once, and again only after a list without it.
 */
#include <stdbool.h>

#include "src/crikeep.h"

enum ck_conflict_what {
	CK_CONFLICT_READY = 1, /* two READY sandboxes of one uid */
	CK_CONFLICT_NAME = 2,  /* one uid, two pods */
};

struct ck_conflict_known; /* one that was reported */
struct ck_conflicts { /* zeroed; ck_conflicts_fini() */
	struct ck_conflict_known *known; /* those of the last list, sorted */
	size_t n;
	uint64_t digest; /* of the last list */
};

/* @a and @b: two of the sandboxes in conflict, borrowed for the call */
typedef void ck_conflict_fn(enum ck_conflict_what what, const struct ck_object *a,
			    const struct ck_object *b, void *userdata);

/* ck_conflicts_look - look through a whole list of sandboxes, hidden ones included, and call @fn
 * for each conflict that the last list did not have. Takes n log n steps, and n if the list is the
 * last one again, in any order.
 * Return: how many conflicts there are now, or -CK_ENOMEM: nothing was looked at */
ptrdiff_t ck_conflicts_look(struct ck_conflicts *conflicts, const struct ck_object *objects,
			    size_t n, ck_conflict_fn *fn, void *userdata);
void ck_conflicts_fini(struct ck_conflicts *conflicts);
#endif
