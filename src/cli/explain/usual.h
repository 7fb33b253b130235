/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_CLI_EXPLAIN_USUAL_H
#define CK_CLI_EXPLAIN_USUAL_H
/* How long the creations took that ended last on this node, from the history. */
#include "src/cli/select-entries.h"

#define CK_USUAL_LAST  100u /* so many count: older ones tell of another load */
#define CK_USUAL_LEAST 5u   /* fewer tell nothing */

struct ck_usual {
	size_t n; /* how many are known; with fewer than CK_USUAL_LEAST, the times say nothing */
	uint64_t median, longest; /* ns */
};

/* ck_usual_find - of sandboxes, or of containers. Only what the runtime answered counts */
void ck_usual_find(const struct ck_look *look, enum ck_kind kind, struct ck_usual *ret);
#endif
