/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the runtime lists against what we believe: lost creations (K8), whole lists (K24, K26, K27),
 * conditions seen, sandboxes that stop (K16), and the rows of an earlier life (K25). A list counts
 * for an entry only if it succeeded and was begun after the entry's last move; a failed one means
 * nothing.
 */
#include <stdio.h>

#include "cache/machine/machine-int.h"

bool ck_machine_reconciled(const struct ck_machine *m)
{
	return m->lists[CK_SANDBOX].done && m->lists[CK_CONTAINER].done;
}

/* K24: a list begun before the last move does not count */
static bool younger(uint64_t begun_seq, uint64_t than)
{
	return begun_seq >= than;
}

static const char *text(const char *s)
{
	return s ? s : "";
}

static bool object_has_key(const struct ck_object *o, const struct ck_key *key)
{
	if (o->kind != key->kind || o->attempt != key->attempt)
		return false;
	if (key->kind == CK_SANDBOX)
		return !strcmp(text(o->pod_uid), key->pod_uid) &&
		       !strcmp(text(o->pod_name), key->pod_name) &&
		       !strcmp(text(o->pod_namespace), key->pod_namespace);
	return !strcmp(text(o->sandbox_id), key->sandbox_id) &&
	       !strcmp(text(o->container_name), key->container);
}

static bool alive(const struct ck_object *o)
{
	return o->condition == CK_CONDITION_READY || o->condition == CK_CONDITION_RUNNING;
}

/* ---- lost creations and entries whose id is not known ---------------------------------------- */

void ck_lost(struct ck_machine *m, struct ck_entry *e)
{
	if (e->row.state != CK_STATE_CREATING)
		return;
	if (!(e->row.flags & CK_ENTRY_LOST)) {
		m->counters.lost++;
		ck_note_entry(m, e, CK_WHAT_LOST, 0, NULL);
	}
	e->row.flags |= CK_ENTRY_LOST;
	e->lost_at = m->now;
	e->changed_seq = m->seq;
	e->absent_since = 0;
	e->ask_after = CK_LIST_AGAIN_MIN;
	ck_dirty(m, e);
	ck_entry_schedule(m, e, m->now + e->ask_after);
}

/* a caller with a short deadline would fall between two questions that are 5 s apart */
void ck_lost_hurry(struct ck_machine *m, struct ck_entry *e)
{
	if (!(e->row.flags & CK_ENTRY_LOST) || !m->rules.can_list ||
	    e->ask_after <= CK_LIST_AGAIN_MIN)
		return;
	e->ask_after = CK_LIST_AGAIN_MIN;
	if (!(e->wants & CK_WANT_LIST))
		ck_entry_schedule(m, e, m->now);
}

static bool anybody_waits(const struct ck_machine *m, const struct ck_entry *e)
{
	CK_FOR_TURNS (t, ck_pod_of(e))
		if (t->state == CK_TURN_WAITING && ck_turn_live(m, t) &&
		    (t->row == e->row.id || ck_key_same(t->key, e->row.key)))
			return true;
	return false;
}

static void give_up(struct ck_machine *m, struct ck_entry *e)
{
	char who[3 * CK_NAME_MAX_LEN];
	m->counters.failed++;
	ck_note_entry(m, e, CK_WHAT_FAILED, CK_GRPC_UNAVAILABLE,
		      "its outcome was unknown, and nothing came of it");
	CK_FOR_TURNS (t, ck_pod_of(e))
		if (t->row == e->row.id && t->state == CK_TURN_WAITING && t->joined && !t->drain)
			ck_turn_answer(m, t, -CK_EUNAVAILABLE,
				       "%s: the outcome of the creation was unknown, and nothing "
				       "came of it in %u s",
				       ck_key_print(e->row.key, who, sizeof(who)),
				       (unsigned)((m->now - e->lost_at) / CK_NS_PER_S));
	ck_entry_drop(m, e);
}

/* not in a list that counts (K8) */
static void lost_absent(struct ck_machine *m, struct ck_entry *e)
{
	uint64_t grace = anybody_waits(m, e) ? m->rules.lost_grace : m->rules.create_deadline;
	if (!e->absent_since)
		e->absent_since = m->now;
	uint64_t absent = m->now - e->absent_since;
	if (e->creator)
		return; /* he works on it still, and will say how it ends */
	if (absent >= grace) {
		give_up(m, e);
		return;
	}
	if (absent < CK_RESEND_AFTER || e->row.flags & CK_ENTRY_ABANDONED ||
	    e->row.flags & CK_ENTRY_RESENT)
		return;
	CK_FOR_TURNS (t, ck_pod_of(e)) {
		if (t->row != e->row.id || !t->joined || t->state != CK_TURN_WAITING ||
		    !ck_turn_live(m, t))
			continue;
		e->row.flags = (e->row.flags & ~(unsigned)CK_ENTRY_LOST) | CK_ENTRY_RESENT;
		e->creator = t;
		t->again = true;
		e->changed_seq = m->seq;
		m->counters.resent++;
		ck_note_entry(m, e, CK_WHAT_RESENT, 0, NULL);
		ck_dirty(m, e);
		ck_creating_schedule(m, e);
		ck_turn_answer(m, t, CK_CREATE, NULL);
		return;
	}
}

/* K8: after this nobody counts on hearing of its end from its creator, who may still tell it */
void ck_creating_schedule(struct ck_machine *m, struct ck_entry *e)
{
	uint64_t own = m->rules.create_deadline,
		 callers = e->creator->deadline ? e->creator->deadline - m->now + CK_LOST_GRACE : 0;
	ck_entry_schedule(m, e, m->now + (callers > own ? callers : own));
}

void ck_lost_expired(struct ck_machine *m, struct ck_entry *e)
{
	if (!(e->row.flags & CK_ENTRY_LOST)) {
		ck_lost(m, e); /* its own deadline */
		return;
	}
	if (m->rules.can_list) {
		if (!(e->outstanding & CK_WANT_LIST))
			ck_want(m, e, CK_WANT_LIST);
		/* asked again if no answer comes */
		ck_entry_schedule(m, e, m->now + m->rules.destroy_timeout);
		e->outstanding &= ~(unsigned)CK_WANT_LIST;
	} else if (!e->creator &&
		   m->now - e->lost_at >=
			   (anybody_waits(m, e) ? m->rules.lost_grace : m->rules.create_deadline)) {
		give_up(m, e);
	} else {
		ck_entry_schedule(m, e, m->now + CK_LIST_AGAIN_MAX);
	}
}

static void lost_ask_again(struct ck_machine *m, struct ck_entry *e)
{
	if (e->detached || e->row.state != CK_STATE_CREATING || !(e->row.flags & CK_ENTRY_LOST))
		return;
	e->ask_after = 2 * e->ask_after < CK_LIST_AGAIN_MAX ? 2 * e->ask_after : CK_LIST_AGAIN_MAX;
	ck_entry_schedule(m, e, m->now + e->ask_after);
}

/* an object of a key we hold under another id, or a second one of a lost creation: destroyed, and
 * hidden until then (K26) */
static void duplicate(struct ck_machine *m, const struct ck_key *key, const struct ck_object *o)
{
	struct ck_key *copy = NULL;
	struct ck_entry *e = NULL;
	struct ck_made *made = ck_made_new(o->id, NULL, 0);
	if (made && ck_key_dup(key, &copy) == 0 && ck_entry_new(m, copy, &e) == 0) {
		if (ck_entry_set_made(m, e, made) == 0) {
			e->row.state = CK_STATE_CREATING; /* for an instant: it is born evicted */
			m->counters.duplicates++;
			ck_note_entry(m, e, CK_WHAT_DUPLICATE, 0, NULL);
			ck_evict(m, e, CK_REASON_DUPLICATE);
		} else {
			ck_entry_free(m, e);
		}
	} else {
		ck_key_free(copy); /* out of memory: the next list finds it again */
	}
	ck_made_unref(made);
}

/* the id of a lost or evicted creation is found among @o; true: it was there */
static bool find_id(struct ck_machine *m, struct ck_entry *e, const struct ck_object *o, size_t n)
{
	const struct ck_object *best = NULL;
	for (size_t i = 0; i < n; i++) {
		if (!object_has_key(&o[i], e->row.key) || ck_machine_object(m, o[i].kind, o[i].id))
			continue;
		if (!best || alive(&o[i]) > alive(best) ||
		    (alive(&o[i]) == alive(best) && o[i].created_at > best->created_at))
			best = &o[i];
	}
	if (!best)
		return false;
	if (best->condition == CK_CONDITION_UNKNOWN && e->row.state == CK_STATE_CREATING)
		return true; /* it is there, and nothing more is known: asked again */
	struct ck_made *made = ck_made_new(best->id, NULL, 0);
	if (!made || ck_entry_set_made(m, e, made) < 0) {
		ck_made_unref(made);
		return true; /* out of memory: asked again */
	}
	ck_made_unref(made);
	for (size_t i = 0; i < n; i++)
		if (&o[i] != best && alive(&o[i]) && object_has_key(&o[i], e->row.key) &&
		    !ck_machine_object(m, o[i].kind, o[i].id))
			duplicate(m, e->row.key, &o[i]);
	if (e->row.state == CK_STATE_EVICTING) {
		ck_evict_found(m, e);
		return true;
	}
	e->row.flags &= ~(unsigned)CK_ENTRY_LOST;
	struct ck_mturn *creator = e->creator;
	if (creator && ck_creator_ends(m, creator) && creator->state == CK_TURN_WAITING &&
	    creator->left)
		ck_turn_answer(m, creator, CK_KEPT, "the caller has gone");
	if (best->condition == CK_CONDITION_READY)
		ck_result_known(m, e);
	else
		ck_evict(m, e, e->row.flags & CK_ENTRY_ABANDONED ? e->row.reason : CK_REASON_DEAD);
	return true;
}

void ck_machine_listed_entry(struct ck_machine *m, uint64_t row, uint64_t begun_seq, bool ok,
			     const struct ck_object *o, size_t n)
{
	struct ck_entry *e = ck_machine_entry(m, row);
	if (!e || e->detached ||
	    (e->row.state == CK_STATE_EVICTING && !younger(begun_seq, e->changed_seq)))
		/* asked when it was still lost; the answer to its eviction's own question is on its
		 * way */
		return;
	ck_event_begin(m);
	e->outstanding &= ~(unsigned)CK_WANT_LIST;
	if (e->row.state == CK_STATE_EVICTING && e->row.phase != CK_PHASE_FIND) {
		ck_evict_listed(m, e, ok && younger(begun_seq, e->changed_seq), o, n);
	} else if (e->row.state == CK_STATE_EVICTING && e->row.phase == CK_PHASE_FIND && e->slot) {
		if (ok && younger(begun_seq, e->changed_seq) && !find_id(m, e, o, n))
			ck_evict_confirmed(m, e); /* there is nothing of that name */
	} else if (e->row.state == CK_STATE_CREATING && e->row.flags & CK_ENTRY_LOST) {
		if (ok && younger(begun_seq, e->changed_seq)) {
			if (find_id(m, e, o, n))
				e->absent_since = 0;
			else
				lost_absent(m, e);
		}
		lost_ask_again(m, e);
	}
	ck_event_end(m);
}

/* ---- conditions ------------------------------------------------------------------------------ */

/* K16: nothing new begins in it, and what is not committed in it goes */
void ck_sandbox_stopped(struct ck_machine *m, const char *sandbox_id, bool removed)
{
	struct ck_entry *e = ck_machine_object(m, CK_SANDBOX, sandbox_id);
	if (e && e->row.state == CK_STATE_COMMITTED) {
		e->stopping = true;
		e->removing = e->removing || removed;
		if (!(e->row.flags & CK_ENTRY_ENDED)) {
			e->row.flags |= CK_ENTRY_ENDED;
			ck_dirty(m, e);
			ck_touch(m, ck_pod_of(e));
		}
	}
	for (struct ck_entry *c = ck_sandbox_containers(m, sandbox_id); c;
	     c = c->link[CK_BY_SANDBOX].next) {
		ck_touch(m, ck_pod_of(c));
		if (c->row.state == CK_STATE_COMMITTED && !(c->row.flags & CK_ENTRY_ENDED)) {
			c->row.flags |= CK_ENTRY_ENDED;
			ck_dirty(m, c);
		} else if (c->row.state == CK_STATE_EVICTING) {
			ck_evict_hurry(m, c);
		} else {
			ck_abandon(m, c, CK_REASON_SANDBOX_STOPPED);
		}
	}
}

void ck_condition_seen(struct ck_machine *m, struct ck_entry *e, enum ck_condition condition)
{
	bool sandbox = e->row.key->kind == CK_SANDBOX;
	switch (e->row.state) {
	case CK_STATE_KEPT:
		e->running = e->running || condition == CK_CONDITION_RUNNING;
		if (condition == CK_CONDITION_DEAD || condition == CK_CONDITION_RUNNING)
			/* running: the eviction will find it in use (K22) */
			ck_abandon(m, e, CK_REASON_DEAD);
		break;
	case CK_STATE_COMMITTING:
		if (condition == CK_CONDITION_DEAD)
			e->dead = true;
		break;
	case CK_STATE_COMMITTED:
		if (condition == CK_CONDITION_RUNNING) {
			e->running = true;
			e->undelivered = false;
		} else if (condition == CK_CONDITION_DEAD) {
			e->undelivered = false;
			if (!(e->row.flags & CK_ENTRY_ENDED)) {
				e->row.flags |= CK_ENTRY_ENDED;
				ck_dirty(m, e);
				ck_touch(m, ck_pod_of(e));
			}
			if (sandbox)
				ck_sandbox_stopped(m, e->row.made->id, false);
		} else if (condition == CK_CONDITION_READY && e->undelivered && !e->unanswered &&
			   !(e->row.flags & (CK_ENTRY_DELIVERED | CK_ENTRY_ENDED))) {
			/* K25; nobody has named it or was handed it since */
			e->undelivered = false;
			e->kept = true;
			ck_entry_move(m, e, CK_STATE_KEPT);
			e->row.interest = m->now;
			ck_kept_schedule(m, e);
		}
		break;
	default:
		break;
	}
}

/* ---- whole lists ----------------------------------------------------------------------------- */

void ck_list_expired(struct ck_machine *m, enum ck_kind kind)
{
	m->lists[kind].wanted = true;
}

unsigned ck_machine_take_lists(struct ck_machine *m)
{
	unsigned kinds = 0;
	for (int kind = CK_SANDBOX; kind <= CK_CONTAINER; kind++) {
		struct ck_list *list = &m->lists[kind];
		if (!list->wanted || list->outstanding)
			continue;
		list->wanted = false;
		list->outstanding = true;
		kinds |= 1u << kind;
	}
	return kinds;
}

/* a resource without a row: visible, the kubelet's, never ours to serve or destroy (K27) */
static struct ck_entry *import(struct ck_machine *m, const struct ck_object *o)
{
	struct ck_key *key = NULL;
	struct ck_entry *e = NULL;
	struct ck_made *made = ck_made_new(o->id, NULL, 0);
	if (made && ck_key_from_object(o, &key, NULL) == 0 && ck_entry_new(m, key, &e) == 0) {
		if (ck_entry_set_made(m, e, made) == 0) {
			e->row.state = CK_STATE_COMMITTED;
			e->row.origin = CK_ORIGIN_RUNTIME;
			e->row.flags = CK_ENTRY_TOLD |
				       (o->condition == CK_CONDITION_DEAD ? CK_ENTRY_ENDED : 0u);
			e->running = o->condition == CK_CONDITION_RUNNING;
			m->counters.imported++;
			ck_note_entry(m, e, CK_WHAT_IMPORTED, 0, NULL);
			ck_touch(m, ck_pod_of(e));
		} else {
			ck_entry_free(m, e);
			e = NULL;
		}
	} else {
		/* out of memory, or a name over the limits: it stays visible, which is all an
		 * import does */
		ck_key_free(key);
	}
	ck_made_unref(made);
	return e;
}

/* entries that may have @o's key: of its sandbox, or of its pod's name */
static struct ck_entry *namesakes(struct ck_machine *m, const struct ck_object *o,
				  enum ck_index index)
{
	char name[2 * CK_NAME_MAX_LEN + 2];
	if (index == CK_BY_SANDBOX)
		return ck_sandbox_containers(m, text(o->sandbox_id));
	if (strlen(text(o->pod_namespace)) + strlen(text(o->pod_name)) >= sizeof(name) - 2)
		return NULL;
	size_t at = strlen(text(o->pod_namespace)) + 1;
	memcpy(name, text(o->pod_namespace), at);
	memcpy(name + at, text(o->pod_name), strlen(text(o->pod_name)));
	struct ck_group *pod = ck_group_find(m, CK_BY_POD, name, at + strlen(text(o->pod_name)));
	return pod ? pod->entries : NULL;
}

/* without memory it stays hidden by its key alone, until the next list */
static void note_seen(struct ck_machine *m, struct ck_entry *e, const char *id)
{
	if (e->row.made || (e->seen && !strcmp(e->seen, id)))
		return;
	free(e->seen);
	e->seen = ck_strdup(id);
	m->moves++;
}

bool ck_is_nameless(const struct ck_entry *e)
{
	const struct ck_key *key = e->row.key;
	return key->kind == CK_SANDBOX && e->row.origin == CK_ORIGIN_RUNTIME && !key->pod_name[0] &&
	       !key->pod_uid[0];
}

/* an object that no row knows by its id */
static void listed_stranger(struct ck_machine *m, const struct ck_object *o,
			    const struct ck_object *all, size_t n, uint64_t begun_seq)
{
	/* a container names its sandbox, but its pod only where somebody labelled it so: crictl
	 * does not */
	enum ck_index index = o->kind == CK_CONTAINER ? CK_BY_SANDBOX : CK_BY_POD;
	for (struct ck_entry *e = namesakes(m, o, index); e; e = e->link[index].next) {
		if (!object_has_key(o, e->row.key))
			continue;
		switch (e->row.state) {
		case CK_STATE_CREATING:
			if (e->row.flags & CK_ENTRY_LOST && younger(begun_seq, e->changed_seq))
				find_id(m, e, all, n);
			else if (!(e->row.flags & CK_ENTRY_LOST) &&
				 o->condition == CK_CONDITION_DEAD &&
				 younger(begun_seq, e->changed_seq))
				e->dead = true; /* EVICTING at finish */
			note_seen(m, e, o->id);
			return; /* it is being made: hidden by its key, and from now on by its id */
		case CK_STATE_EVICTING:
			if (!e->row.made) {
				find_id(m, e, all, n);
				return;
			}
			break;
		case CK_STATE_KEPT:
		case CK_STATE_COMMITTING:
			if (alive(o) && younger(begun_seq, e->changed_seq))
				duplicate(m, e->row.key, o);
			return;
		default:
			break;
		}
	}
	if (!younger(begun_seq, m->forgot_seq))
		return; /* K24: it may be what was forgotten meanwhile; the next list tells */
	if (import(m, o) && o->kind == CK_SANDBOX && o->condition == CK_CONDITION_DEAD)
		ck_sandbox_stopped(m, o->id, false); /* K16: seen NOTREADY */
}

static void absent(struct ck_machine *m, struct ck_entry *e, uint64_t begun_seq)
{
	switch (e->row.state) {
	case CK_STATE_CREATING:
		if (e->row.flags & CK_ENTRY_LOST)
			lost_absent(m, e);
		break;
	case CK_STATE_KEPT:
		ck_abandon(m, e, CK_REASON_ABSENT);
		break;
	case CK_STATE_COMMITTING:
		e->dead = true;
		break;
	case CK_STATE_COMMITTED:
		if (e->row.key->kind == CK_SANDBOX)
			ck_sandbox_stopped(m, e->row.made->id, true);
		ck_entry_drop(m, e);
		break;
	case CK_STATE_EVICTING:
		if (e->row.phase == CK_PHASE_DESTROY && younger(begun_seq, e->tried_seq))
			ck_evict_confirmed(m, e); /* K17 */
		break;
	default:
		break;
	}
}

static void count_conflicts(struct ck_machine *m, const struct ck_object *o, size_t n)
{
	for (size_t i = 0; i < n; i++) { /* K26: two READY sandboxes of one uid */
		if (o[i].kind != CK_SANDBOX || o[i].condition != CK_CONDITION_READY ||
		    !o[i].pod_uid)
			continue;
		struct ck_group *uid =
			ck_group_find(m, CK_BY_UID, o[i].pod_uid, strlen(o[i].pod_uid));
		struct ck_entry *e = uid && uid->ready_stamp == m->stamp
					     ? ck_machine_object(m, CK_SANDBOX, o[i].id)
					     : NULL;
		if (e) {
			m->counters.duplicates++;
			ck_note_entry(m, e, CK_WHAT_DUPLICATE, 0, NULL);
		}
		if (uid)
			uid->ready_stamp = m->stamp;
	}
}

void ck_machine_listed(struct ck_machine *m, enum ck_kind kind, uint64_t begun_seq, bool ok,
		       const struct ck_object *o, size_t n)
{
	struct ck_list *list = &m->lists[kind];
	bool wanted = list->outstanding;
	list->outstanding = false;
	if (!ok) { /* it means nothing (K24) */
		if (wanted && !list->done) {
			ck_timer_set(&m->timers, &list->timer, m->now + list->pause);
			list->pause = 2 * list->pause < CK_LIST_AGAIN_MAX ? 2 * list->pause
									  : CK_LIST_AGAIN_MAX;
		}
		return;
	}
	ck_event_begin(m);
	m->stamp++;
	for (size_t i = 0; i < n; i++) {
		if (o[i].kind != kind || !o[i].id || !o[i].id[0] || strlen(o[i].id) > CK_ID_MAX)
			continue;
		struct ck_entry *e = ck_machine_object(m, kind, o[i].id);
		if (!e) {
			listed_stranger(m, &o[i], o, n, begun_seq);
			e = ck_machine_object(m, kind, o[i].id);
		} else if (younger(begun_seq, e->changed_seq)) {
			ck_condition_seen(m, e, o[i].condition);
		}
		if (e)
			e->list_stamp = m->stamp;
	}
	if (kind == CK_SANDBOX)
		count_conflicts(m, o, n);
	for (struct ck_entry *e = m->by_row, *next; e; e = next) {
		next = e->by_row.next;
		if (e->detached || e->row.key->kind != kind || e->list_stamp == m->stamp ||
		    !younger(begun_seq, e->changed_seq))
			continue;
		absent(m, e, begun_seq);
	}
	bool first = !ck_machine_reconciled(m);
	list->done = true;
	list->wanted = false;
	ck_timer_unset(&m->timers, &list->timer);
	if (first && ck_machine_reconciled(m)) /* now everybody who came before may be served */
		for (struct ck_group *pod = m->groups[CK_BY_POD]; pod; pod = pod->hh.next)
			ck_touch(m, pod);
	ck_event_end(m);
}

int ck_machine_stopping(struct ck_machine *m, const char *sandbox_id)
{
	if (!sandbox_id[0] || strlen(sandbox_id) > CK_ID_MAX)
		return -CK_EINVAL;
	ck_event_begin(m);
	/* nothing is known of it but that it stops */
	if (!ck_machine_object(m, CK_SANDBOX, sandbox_id)) {
		struct ck_object o = { .size = sizeof(o),
				       .kind = CK_SANDBOX,
				       .condition = CK_CONDITION_DEAD,
				       .id = sandbox_id };
		if (!import(m, &o))
			return -CK_ENOMEM;
	}
	ck_sandbox_stopped(m, sandbox_id, false);
	ck_event_end(m);
	return 0;
}

/* ---- an earlier life (K25) ------------------------------------------------------------------- */

int ck_machine_restore(struct ck_machine *m, struct ck_row *row, bool same_boot)
{
	struct ck_entry *e;
	struct ck_key *key = row->key;
	if (ck_entry_new(m, key, &e) < 0)
		return -CK_ENOMEM;
	struct ck_made *made = row->made;
	HASH_DELETE(by_row, m->by_row, e);
	e->row = *row;
	e->row.made = NULL;
	HASH_ADD(by_row, m->by_row, row.id, sizeof(e->row.id), e);
	if (!e->by_row.tbl || (made && ck_entry_set_made(m, e, made) < 0)) {
		e->row = (struct ck_row){ 0 }; /* stays the caller's */
		ck_entry_free(m, e);
		return -CK_ENOMEM;
	}
	ck_made_unref(made);
	*row = (struct ck_row){ 0 };
	e->restored = true;
	e->written = e->row.state;
	if (!same_boot)
		/* times of another boot mean nothing */
		e->row.created = e->row.changed = e->row.interest = m->now;
	if (!same_boot && e->row.staged)
		e->row.staged = m->now;
	ck_event_begin(m);
	ck_note_entry(m, e, CK_WHAT_RESTORED, 0, NULL);
	switch (e->row.state) {
	case CK_STATE_CREATING:
		if (!same_boot)
			ck_evict(m, e, CK_REASON_REBOOT);
		else
			ck_lost(m, e);
		break;
	case CK_STATE_COMMITTING:
		ck_entry_move(m, e, CK_STATE_KEPT);
		/* fall through */
	case CK_STATE_KEPT:
		e->kept = true;
		if (!same_boot)
			ck_evict(m, e, CK_REASON_REBOOT);
		else if (e->row.flags & CK_ENTRY_ABANDONED)
			ck_evict(m, e, e->row.reason);
		else
			ck_kept_schedule(m, e);
		break;
	case CK_STATE_COMMITTED:
		if (!same_boot)
			e->row.flags |= CK_ENTRY_ENDED;
		e->undelivered = same_boot && e->row.key->kind == CK_CONTAINER &&
				 e->row.origin == CK_ORIGIN_CACHE &&
				 !(e->row.flags & (CK_ENTRY_DELIVERED | CK_ENTRY_ENDED));
		break;
	case CK_STATE_EVICTING:
		ck_evict_resume(m, e);
		break;
	default:
		ck_entry_schedule(m, e, same_boot ? e->row.changed + CK_TOMBSTONE : m->now);
	}
	/* no ck_event_end(): nothing is destroyed before every row is known (K18, K22). Timers
	 * start it. */
	if (e->is_ready)
		ck_entry_schedule(m, e, m->now);
	return 0;
}
