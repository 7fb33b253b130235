/* SPDX-License-Identifier: Apache-2.0 */
/* Resources without a row (K27). They are visible and the kubelet's; the cache never serves or
 * destroys them. */
#include "cache/machine/machine-int.h"

struct ck_entry *ck_import(struct ck_machine *m, const struct ck_object *o)
{
	struct ck_key *key = NULL;
	struct ck_entry *e = NULL;
	struct ck_shared_result *result = ck_shared_result_new(o->id, NULL, 0);
	if (result && ck_key_from_object(o, &key, NULL) == 0 && ck_entry_new(m, key, &e) == 0) {
		if (ck_entry_set_result(m, e, result) == 0) {
			e->row.state = o->condition == CK_CONDITION_DEAD ? CK_STATE_ENDED
									 : CK_STATE_COMMITTED;
			e->row.origin = CK_ORIGIN_RUNTIME;
			e->row.flags = CK_ENTRY_TOLD;
			e->running = o->condition == CK_CONDITION_RUNNING;
			m->counters.imported++;
			ck_history_add(m, e, CK_WHAT_IMPORTED, 0, NULL);
			ck_touch(m, ck_pod_of(e));
		} else {
			ck_entry_free(m, e);
			e = NULL;
		}
	} else {
		/* No memory, or a name over the limits: without a row it is visible as well. */
		ck_key_free(key);
	}
	ck_shared_result_unref(result);
	return e;
}
