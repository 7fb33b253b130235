/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whole lists of the runtime are compared with the entries (K24, K26, K27). A list counts for an
 * entry only if it succeeded and was begun after the entry's last move. Nothing is concluded from a
 * failed list.
 */
#include "cache/machine/machine-int.h"

unsigned ck_machine_take_lists(struct ck_machine *m)
{
	unsigned kinds = 0;
	for (int kind = CK_SANDBOX; kind <= CK_CONTAINER; kind++) {
		struct ck_list *list = &m->lists[kind];
		if (!list->wanted)
			continue;
		list->wanted = false;
		list->outstanding = true;
		kinds |= 1u << kind;
	}
	return kinds;
}

/* the entries that may have @o's key: those of its sandbox, or of its pod */
static struct ck_entry *namesakes(struct ck_machine *m, const struct ck_object *o,
				  enum ck_index index)
{
	if (index == CK_BY_SANDBOX)
		return ck_sandbox_containers(m, ck_or_empty(o->sandbox_id));
	struct ck_key key = {
		.pod_namespace = ck_or_empty(o->pod_namespace),
		.pod_name = ck_or_empty(o->pod_name),
	};
	if (strlen(key.pod_namespace) + strlen(key.pod_name) > 2 * CK_NAME_MAX_LEN)
		return NULL;
	struct ck_group *pod = ck_pod_group(m, &key, false);
	return pod ? pod->entries : NULL;
}

/* without memory it is hidden by its key alone until the next list */
static void note_seen(struct ck_machine *m, struct ck_entry *e, const char *id)
{
	if (e->row.result || (e->seen && !strcmp(e->seen, id)))
		return;
	free(e->seen);
	e->seen = ck_strdup(id);
	m->moves++;
}

/* If an entry's object is not listed, another one of its key has taken its place: their rows could
 * not be written before a crash (K32). That is no duplicate, and may be in use. */
static bool is_listed(const char *id, const struct ck_object *all, size_t n)
{
	size_t i = 0;
	while (i < n && strcmp(all[i].id, id))
		i++;
	return i < n;
}

/* A resource without a row is visible and the kubelet's; the cache never serves or destroys it
 * (K27). NULL: no memory, or a name over the limits; then it is visible as well. */
static struct ck_entry *import(struct ck_machine *m, const struct ck_object *o)
{
	struct ck_key *key = NULL;
	struct ck_entry *e =
		ck_key_from_object(o, &key, NULL) < 0 ? NULL : ck_entry_known(m, key, o->id);
	if (!e)
		return NULL;
	e->row.state = ck_condition_dead(o->condition) ? CK_STATE_ENDED : CK_STATE_COMMITTED;
	e->row.origin = CK_ORIGIN_RUNTIME;
	e->row.flags = CK_ENTRY_TOLD;
	e->running = o->condition == CK_CONDITION_RUNNING;
	m->counters.imported[e->row.key->kind]++;
	ck_history_add(m, e, CK_WHAT_IMPORTED, 0, NULL);
	ck_touch(m, ck_pod_of(e));
	return e;
}

/* An object whose id no entry has. true: it is not ours, and visible */
static bool listed_stranger(struct ck_machine *m, const struct ck_object *o,
			    const struct ck_object *all, size_t n, uint64_t begun_seq)
{
	/* a container names its sandbox always, its pod only in labels, which crictl leaves out */
	enum ck_index index = o->kind == CK_CONTAINER ? CK_BY_SANDBOX : CK_BY_POD;
	for (struct ck_entry *e = namesakes(m, o, index); e; e = e->link[index].next) {
		if (!ck_object_has_key(o, e->row.key))
			continue;
		switch (e->row.state) {
		case CK_STATE_CREATING:
			/* what ran is no creation that died */
			if (o->condition == CK_CONDITION_DEAD &&
			    ck_list_counts(begun_seq, e->changed_seq))
				e->in.creating.dead =
					true; /* evicted when its creator reports it */
			note_seen(m, e, o->id);
			return false; /* it is being created; from now on its id hides it too */
		case CK_STATE_UNKNOWN:
		case CK_STATE_EVICTING:
			if (e->row.result)
				break;
			if (ck_searched(e) && ck_list_counts(begun_seq, e->changed_seq))
				ck_lost_find(m, e, all, n);
			note_seen(m, e, o->id);
			return false;
		case CK_STATE_KEPT:
		case CK_STATE_COMMITTING:
			if (ck_list_counts(begun_seq, e->changed_seq) &&
			    !is_listed(e->row.result->id, all, n))
				break;
			if (ck_object_alive(o) && ck_list_counts(begun_seq, e->changed_seq))
				ck_duplicate(m, e->row.key, o);
			return false;
		default:
			break;
		}
	}
	if (!ck_list_counts(begun_seq, m->forgot_seq))
		/* It may have been forgotten meanwhile (K24), and the next list tells. Whatever it
		 * is now, a container shows that its sandbox was used (K22), also a dead one. */
		return o->kind == CK_CONTAINER;
	/* its stop has begun, or it is seen NOTREADY (K16) */
	if (import(m, o) && o->kind == CK_SANDBOX &&
	    (ck_condition_dead(o->condition) || ck_unknown_stop_noted(m, o->id)))
		ck_sandbox_stopped(m, o->id);
	return true;
}

static void absent(struct ck_machine *m, struct ck_entry *e, uint64_t begun_seq)
{
	switch (e->row.state) {
	case CK_STATE_UNKNOWN:
		ck_lost_absent(m, e, begun_seq);
		break;
	case CK_STATE_KEPT:
	case CK_STATE_COMMITTING:
		ck_evict(m, e, CK_REASON_ABSENT);
		break;
	case CK_STATE_COMMITTED:
	case CK_STATE_ENDED:
		if (e->row.key->kind == CK_SANDBOX)
			ck_sandbox_gone(m, e->row.result->id);
		ck_entry_drop(m, e);
		break;
	case CK_STATE_EVICTING:
		if (ck_searched(e))
			ck_lost_absent(m, e, begun_seq);
		else if (e->row.phase == CK_PHASE_DESTROY &&
			 ck_list_counts(begun_seq, e->in.evicting.tried_seq))
			ck_evict_confirmed(m, e); /* a list begun after the try has it not (K17) */
		break;
	default:
		break;
	}
}

/* counts READY sandboxes that share their uid with another one (K26); @e: its entry, or NULL */
static void count_conflict(struct ck_machine *m, const struct ck_object *o, struct ck_entry *e)
{
	if (o->condition != CK_CONDITION_READY || !o->pod_uid)
		return;
	struct ck_group *uid = e ? e->link[CK_BY_UID].group : NULL;
	if (!uid || strcmp(uid->name, o->pod_uid) != 0) /* not the uid of its key */
		uid = ck_group_find(m, CK_BY_UID, o->pod_uid, strlen(o->pod_uid));
	if (!uid)
		return;
	if (e && uid->ready_stamp == m->stamp) {
		m->counters.duplicates[CK_SANDBOX]++;
		ck_history_add(m, e, CK_WHAT_DUPLICATE, 0, NULL);
	}
	uid->ready_stamp = m->stamp;
}

/* It runs, or ran. It was given up after the list had begun, and nothing was done to it yet. */
static bool used_untouched(const struct ck_entry *e, const struct ck_object *o)
{
	return e->row.state == CK_STATE_EVICTING && e->row.phase == CK_PHASE_CHECK &&
	       ck_condition_used(o->condition);
}

/* A container that is visible is in the kubelet's hands, and so is its sandbox (K22). */
static void listed_one(struct ck_machine *m, const struct ck_object *o, const struct ck_object *all,
		       size_t n, uint64_t begun_seq)
{
	struct ck_entry *e = ck_machine_object(m, o->kind, o->id);
	bool visible = false;
	if (!e) {
		visible = listed_stranger(m, o, all, n, begun_seq);
		e = ck_machine_object(m, o->kind, o->id);
	} else if (ck_list_counts(begun_seq, e->changed_seq) || used_untouched(e, o)) {
		ck_condition_seen(m, e, o->condition);
	}
	if (e) {
		e->list_stamp = m->stamp;
		visible = !ck_machine_hidden(e);
	}
	if (o->kind == CK_SANDBOX && !visible)
		ck_unknown_stop_listed(m, o->id);
	if (o->kind == CK_SANDBOX)
		count_conflict(m, o, e);
	struct ck_entry *sandbox =
		o->kind == CK_CONTAINER
			? ck_machine_object(m, CK_SANDBOX, ck_or_empty(o->sandbox_id))
			: NULL;
	if (visible && sandbox)
		ck_in_use(m, sandbox);
}

void ck_machine_listed(struct ck_machine *m, enum ck_kind kind, uint64_t begun_seq, bool ok,
		       const struct ck_object *o, size_t n)
{
	struct ck_list *list = &m->lists[kind];
	bool wanted = list->outstanding;
	list->outstanding = false;
	if (!ok) { /* nothing is concluded from it (K24) */
		if (wanted && !CK_NEVER(list->done)) { /* once it is done, none is wanted */
			ck_timer_set(&m->timers, &list->timer, m->now + list->pause);
			list->pause = 2 * list->pause < CK_LIST_AGAIN_MAX ? 2 * list->pause
									  : CK_LIST_AGAIN_MAX;
		}
		return;
	}
	ck_event_begin(m);
	m->stamp++;
	for (size_t i = 0; i < n; i++)
		if (o[i].kind == kind && strlen(o[i].id) <= CK_ID_MAX)
			listed_one(m, &o[i], o, n, begun_seq);
	if (kind == CK_SANDBOX)
		ck_unknown_stops_expire(m, begun_seq);
	for (struct ck_entry *e = m->by_row, *next; e; e = next) {
		next = e->by_row.next;
		if (e->detached || e->row.key->kind != kind || e->list_stamp == m->stamp ||
		    !ck_list_counts(begun_seq, e->changed_seq))
			continue;
		absent(m, e, begun_seq);
	}
	bool first = !ck_machine_reconciled(m);
	list->done = true;
	list->stamp = m->stamp;
	list->wanted = false;
	ck_timer_unset(&m->timers, &list->timer);
	if (first && ck_machine_reconciled(m)) /* turns that came before may be served now */
		for (struct ck_group *pod = m->groups[CK_BY_POD]; pod; pod = pod->hh.next)
			ck_touch(m, pod);
	ck_event_end(m);
}
