/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of an earlier life (K25). */
#include "cache/machine/machine-int.h"

/* Times of another boot mean nothing, and one that lies ahead cannot be right: now. 0: none. */
static void take_times(struct ck_machine *m, struct ck_entry *e, bool same_boot)
{
	struct ck_row *row = &e->row;
	uint64_t *const times[] = { &row->created, &row->changed,  &row->interest, &row->existed,
				    &row->staged,  &row->searched, &row->absent,   &row->asked };
	for (size_t i = 0; i < CK_COUNT(times); i++)
		if (*times[i] && (!same_boot || *times[i] > m->now)) {
			*times[i] = m->now;
			ck_dirty(m, e);
		}
}

/* an entry for @row, which is taken on success; -CK_ENOMEM */
static int take_row(struct ck_machine *m, struct ck_row *row, struct ck_entry **ret_entry)
{
	struct ck_entry *e;
	struct ck_shared_result *result = row->result;
	if (ck_entry_new(m, row->key, &e) < 0)
		return -CK_ENOMEM;
	HASH_DELETE(by_row, m->by_row, e);
	e->row = *row;
	e->row.result = NULL;
	HASH_ADD(by_row, m->by_row, row.id, sizeof(e->row.id), e);
	if (!e->by_row.tbl || (result && ck_entry_set_result(m, e, result) < 0)) {
		e->row = (struct ck_row){ 0 }; /* stays the caller's */
		ck_entry_free(m, e);
		return -CK_ENOMEM;
	}
	ck_shared_result_unref(result);
	*row = (struct ck_row){ 0 };
	e->restored = true;
	e->has_row = true;
	*ret_entry = e;
	return 0;
}

/* Nothing of an earlier boot runs any more; what it left on disk is destroyed. */
static void resume(struct ck_machine *m, struct ck_entry *e, bool same_boot)
{
	if (e->row.state == CK_STATE_COMMITTING)
		ck_entry_move(m, e, CK_STATE_KEPT);
	switch (e->row.state) {
	case CK_STATE_CREATING:
	case CK_STATE_UNKNOWN:
		if (!same_boot)
			ck_evict(m, e, CK_REASON_REBOOT);
		else if (ck_searched(e))
			/* its ages go on: an owner that dies every few seconds would never give it
			 * up */
			ck_search(m, e, false);
		else
			ck_lost(m, e);
		break;
	case CK_STATE_KEPT:
		e->was_kept = true;
		if (!same_boot) {
			ck_evict(m, e, CK_REASON_REBOOT);
			break;
		}
		e->in.kept.offer_at = ck_offer_at(m, e);
		ck_kept_schedule(m, e);
		break;
	case CK_STATE_COMMITTED:
		if (!same_boot)
			ck_entry_move(m, e, CK_STATE_ENDED);
		/* fall through */
	case CK_STATE_ENDED:
		e->in.committed.undelivered = same_boot && e->row.key->kind == CK_CONTAINER &&
					      e->row.origin == CK_ORIGIN_CACHE &&
					      !(e->row.flags & CK_ENTRY_DELIVERED);
		break;
	case CK_STATE_EVICTING:
		if (!same_boot)
			e->row.reason = CK_REASON_REBOOT;
		ck_evict_resume(m, e);
		break;
	default: /* GONE */
		ck_entry_schedule(m, e, same_boot ? e->row.changed + CK_TOMBSTONE : m->now);
	}
}

/* Such a row is as it was, and is not written again. It gets no line of history either: a node that
 * restarts often would push out the lines that say something. */
static bool stays(const struct ck_row *row, bool same_boot)
{
	return same_boot && (row->state == CK_STATE_KEPT || row->state == CK_STATE_GONE ||
			     ck_state_visible(row->state));
}

static bool key_is_held_twice(const struct ck_entry *e)
{
	if (!ck_machine_holds_key(e))
		return false;
	for (const struct ck_entry *other = ck_machine_same_key(e, NULL); other;
	     other = ck_machine_same_key(e, other))
		if (ck_machine_holds_key(other))
			return true;
	return false;
}

int ck_machine_restore(struct ck_machine *m, struct ck_row *row, bool same_boot, bool other_key)
{
	struct ck_entry *e;
	if (take_row(m, row, &e) < 0)
		return -CK_ENOMEM;
	if (key_is_held_twice(e))
		return -CK_EDAMAGED;
	take_times(m, e, same_boot);
	if (!ck_searched(e))
		e->row.searched = e->row.absent = 0;
	ck_event_begin(m);
	if (other_key || !stays(&e->row, same_boot))
		ck_history_add(m, e, CK_WHAT_RESTORED, 0, other_key ? CK_OTHER_KEY : NULL);
	resume(m, e, same_boot);
	ck_start_restored(m, e);
	/* No ck_event_end() here, because nothing may be destroyed before every row is known (K18,
	 * K22). A timer starts it. */
	if (e->row.state == CK_STATE_EVICTING && e->in.evicting.effort == CK_QUEUED)
		ck_entry_schedule(m, e, m->now);
	return 0;
}
