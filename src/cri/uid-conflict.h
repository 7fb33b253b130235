/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_CRI_UID_CONFLICT_H
#define CK_CRI_UID_CONFLICT_H
/*
 * What cannot be true of a node's sandboxes: two of one pod uid that are READY, and one uid under
 * two names or namespaces (K26). Whoever lets go of a pod's addresses by its uid frees those of the
 * other one. Dead sandboxes of the uid are ordinary, and so is a sandbox without a uid, which no
 * kubelet made. Each is told once: again only when it was gone in between.
 */
#include <stdbool.h>

#include "src/crikeep.h"

enum ck_conflict_what {
	CK_CONFLICT_READY = 1, /* two READY sandboxes of one uid */
	CK_CONFLICT_NAME = 2,  /* one uid, two pods */
};

struct ck_conflict_known; /* one that was told */
struct ck_conflicts { /* zeroed; ck_conflicts_fini() */
	struct ck_conflict_known *known; /* by the last list, sorted */
	size_t n;
};

/* @a and @b: two of the sandboxes in question, borrowed for the call */
typedef void ck_conflict_fn(enum ck_conflict_what what, const struct ck_object *a,
			    const struct ck_object *b, void *userdata);

/* ck_conflicts_look - through a whole list of sandboxes, hidden ones included; @fn for each
 * conflict the last list did not have.
 * Return: how many conflicts there are now, or -CK_ENOMEM: nothing was looked at. In n log n */
ptrdiff_t ck_conflicts_look(struct ck_conflicts *conflicts, const struct ck_object *objects,
			    size_t n, ck_conflict_fn *fn, void *userdata);
void ck_conflicts_fini(struct ck_conflicts *conflicts);
#endif
