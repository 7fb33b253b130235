/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_CACHE_MACHINE_MACHINE_INT_H
#define CK_CACHE_MACHINE_MACHINE_INT_H
/* What the files of the machine share. No other file includes this one, but the test that looks at
 * all members: tests/model/check-machine.c. */
#include "cache/machine/machine.h"
#include "src/base/duration.h"
#include "src/base/error.h"
#include "src/base/limits.h"

struct ck_group { /* entries with a common pod, uid or sandbox; and the turns of a pod */
	UT_hash_handle hh;
	struct ck_entry *entries;
	struct ck_mturn *turns; /* CK_BY_POD: those that wait, newest first */
	struct ck_group *touched_next;
	bool touched;
	uint64_t ready_stamp; /* CK_BY_UID: the last whole list with a READY sandbox of it */
	enum ck_index index;
	size_t len;
	char name[];
};

struct ck_list { /* the whole list of one kind */
	struct ck_timer timer;
	uint64_t pause;
	uint64_t stamp;                 /* of the last one that succeeded; 0: none */
	bool wanted, outstanding, done; /* done: one has succeeded since the start */
};

struct ck_unknown_stop;

struct ck_machine {
	struct ck_rules rules;
	struct ck_machine_ops ops;
	void *user;
	uint64_t now, opened, seq, turn_seq, stamp;
	uint64_t moves;      /* counts entries that come, go, change their state or get an id */
	uint64_t forgot_seq; /* when something was forgotten last; an older list may show it */
	struct ck_group *groups[CK_INDEXES];
	struct ck_entry *by_row, *by_object[CK_CONTAINER + 1];
	struct ck_timers timers;
	size_t timed; /* entries, turns, removals and lists: each has a timer */
	struct ck_entry *dirty, *wanting, *ready;
	struct ck_mturn *answered, *resolves;
	struct ck_removal *removals, *removed; /* in flight; decided in this round */
	struct ck_group *touched;
	struct ck_unknown_stop *unknown_stops; /* by id; the oldest first */
	struct ck_list lists[CK_CONTAINER + 1];
	unsigned destroying; /* how many entries are being destroyed */
	uint64_t longest_deadline[CK_CONTAINER + 1];
	uint64_t offers_until; /* the sandboxes offered so far take up the gaps until then (K2) */
	uint64_t *views; /* seqs of the views that are open */
	size_t views_n;
	struct ck_history_event *history; /* of this round */
	size_t history_n, history_room;
	uint64_t gave_up; /* when the oldest of an earlier life that may go on began; 0: none */
	struct ck_counters counters;
};

/* for texts */
static inline unsigned ck_seconds_since(const struct ck_machine *m, uint64_t since)
{
	return (unsigned)(ck_duration_between(since, m->now) / CK_NS_PER_S);
}

/* groups.c */
/* takes @key on success */
int ck_entry_new(struct ck_machine *m, struct ck_key *key, struct ck_entry **ret_entry);
void ck_entry_free(struct ck_machine *m, struct ck_entry *e);
void ck_entry_detach(struct ck_machine *m, struct ck_entry *e);
struct ck_group *ck_group_find(struct ck_machine *m, enum ck_index index, const char *name,
			       size_t len);
struct ck_group *ck_pod_group(struct ck_machine *m, const struct ck_key *key, bool make);
/* the first container; the others follow through link[CK_BY_SANDBOX].next */
struct ck_entry *ck_sandbox_containers(struct ck_machine *m, const char *sandbox_id);
/* frees the group when it is empty */
void ck_group_put(struct ck_machine *m, struct ck_group *group);
#define ck_pod_of(e)   ((e)->link[CK_BY_POD].group)
#define ck_pod_next(e) ((e)->link[CK_BY_POD].next)

/* entry-changes.c */
void ck_dirty(struct ck_machine *m, struct ck_entry *e);
/* that it has begun is written with this round, if it is not yet */
void ck_write_begun(struct ck_machine *m, struct ck_entry *e);
void ck_interest(struct ck_machine *m, struct ck_entry *e); /* somebody cares about it (K15) */
void ck_want(struct ck_machine *m, struct ck_entry *e, enum ck_want want);
void ck_unwant(struct ck_machine *m, struct ck_entry *e, unsigned wants);
/* its turns are placed anew before the event ends */
void ck_touch(struct ck_machine *m, struct ck_group *pod);
struct ck_group *ck_take_touched(struct ck_machine *m); /* the next touched group, or NULL */
void ck_history_add(struct ck_machine *m, struct ck_entry *e, enum ck_what what, int grpc,
		    const char *detail);
/* @detail for the line that says that @e moved just now */
void ck_history_explain(struct ck_machine *m, const struct ck_entry *e, const char *detail);
/* sets its timer and row.due */
void ck_entry_schedule(struct ck_machine *m, struct ck_entry *e, uint64_t due);
void ck_entry_move(struct ck_machine *m, struct ck_entry *e, enum ck_state to);
/* @result is shared. -CK_ENOMEM */
int ck_entry_set_result(struct ck_machine *m, struct ck_entry *e, struct ck_shared_result *result);
/* a new entry with an id; takes @key, always. NULL: no memory */
struct ck_entry *ck_entry_known(struct ck_machine *m, struct ck_key *key, const char *id);
/* it is gone: nobody finds it any more, and its row is deleted with the next write */
void ck_entry_drop(struct ck_machine *m, struct ck_entry *e);
/* chooses the plugins to tell; false: a required one is absent, or there is no memory */
bool ck_entry_choose(struct ck_machine *m, struct ck_entry *e, struct ck_error *err);
/* the chosen plugins are not told, and will not be by this commit */
void ck_untell(struct ck_machine *m, struct ck_entry *e);

/* turn.c */
/* from here on an answer would not arrive (K2); CK_NEVER_DUE: a caller without a deadline */
uint64_t ck_margin_at(const struct ck_machine *m, uint64_t timeout);
/* it has not reached its margin: something may be made for it */
bool ck_turn_live(const struct ck_machine *m, const struct ck_mturn *t);
/* It can be handed a result. What @exists, because it was kept or is committed, needs no time to be
 * made: for it the deadline counts, and not the margin (K2, K6). */
bool ck_turn_takes(const struct ck_machine *m, const struct ck_mturn *t, bool exists);
/* when a waiting turn is told that it has waited in vain */
uint64_t ck_turn_waits_until(struct ck_machine *m, const struct ck_mturn *t);
void ck_turn_attach(struct ck_machine *m, struct ck_mturn *t, struct ck_group *pod,
		    uint64_t timeout);
void ck_turn_detach(struct ck_machine *m, struct ck_mturn *t); /* from its pod and its timer */
void ck_turn_schedule(struct ck_machine *m, struct ck_mturn *t);
/* could the database not be read when its request was compared? It is placed anew a second later */
static inline bool ck_turn_unread(const struct ck_mturn *t)
{
	return t->compared.relation == CK_RELATION_NEEDS_DIGESTS;
}
/* it waits for something else than the result of the entry @row, or 0: for nothing in particular */
void ck_turn_wait_for(struct ck_machine *m, struct ck_mturn *t, uint64_t row);
/* WAITING: it creates at that time even if its ports are still taken (K10) */
void ck_turn_wait_for_ports(struct ck_machine *m, struct ck_mturn *t, uint64_t until);
/* its request is the one of @e */
void ck_turn_join(struct ck_machine *m, struct ck_mturn *t, struct ck_entry *e);

/* what decides it; the round takes it with ck_machine_answered() */
void ck_turn_answer(struct ck_machine *m, struct ck_mturn *t, int outcome, const char *fmt, ...)
	CK_PRINTF(4, 5);
/* the creation of what it has joined failed; @detail: redacted */
void ck_turn_failed(struct ck_machine *m, struct ck_mturn *t, struct ck_shared_status *status,
		    const char *detail);
void ck_turn_supersede(struct ck_machine *m, struct ck_mturn *t, enum ck_reason reason);
/* right after ck_turn_same() */
void ck_turn_hand_back(struct ck_machine *m, struct ck_mturn *t, struct ck_entry *e);
/* its caller has gone, and knows it */
void ck_turn_gone(struct ck_machine *m, struct ck_mturn *t);
/* HANDED: whether the answer arrived is known now, or will never be. @e may be NULL */
void ck_turn_reported(struct ck_machine *m, struct ck_mturn *t, struct ck_entry *e);
void ck_answered_del(struct ck_machine *m, struct ck_mturn *t);

void ck_creator_begins(struct ck_machine *m, struct ck_mturn *t, struct ck_entry *e);
/* A creator becomes an ordinary waiter, unless its caller is decided or gone. Returns its entry, or
 * NULL if it makes nothing. An ORPHANED one is to be decided next */
struct ck_entry *ck_creator_ends(struct ck_machine *m, struct ck_mturn *t);
/* its host has said that it exists */
void ck_turn_made(struct ck_mturn *t);
/* as ck_creator_ends() when the creation goes on without it: an ORPHANED turn is decided */
struct ck_entry *ck_creator_parts(struct ck_machine *m, struct ck_mturn *t);
void ck_turn_want_resolve(struct ck_machine *m, struct ck_mturn *t);
void ck_resolve_del(struct ck_machine *m, struct ck_mturn *t);
/* whether it is the same request depends on something that is not known yet */
bool ck_turn_undecided(struct ck_machine *m, struct ck_mturn *t, struct ck_entry *e);
/* is it the request of the entry? If not, @ret_why says why it is evicted (K11, K12) */
bool ck_turn_same(struct ck_machine *m, struct ck_mturn *t, struct ck_entry *e,
		  enum ck_reason *ret_why);
/* the line that says that @e was given up just now says what the request of @t asks for: the names
 * of the fields that differ, never a value */
void ck_turn_explain(struct ck_machine *m, struct ck_mturn *t, struct ck_entry *e,
		     enum ck_reason reason);
struct ck_mturn *ck_newest_live(struct ck_machine *m, struct ck_entry *e); /* with its key */
/* does a live turn wait for it, or for its end? */
bool ck_awaited(const struct ck_machine *m, const struct ck_entry *e);
/* has a turn that waits for it reached its margin, without having heard of it? */
bool ck_overdue(const struct ck_machine *m, const struct ck_entry *e);
/* newest first */
#define CK_FOR_TURNS(t, pod) for (struct ck_mturn *t = (pod)->turns; t; t = t->next)

/* evict.c */
/* it is not handed out any more: its turns are told, and it is evicted */
void ck_abandon(struct ck_machine *m, struct ck_entry *e, enum ck_reason reason);
void ck_evict(struct ck_machine *m, struct ck_entry *e, enum ck_reason reason);
/* the same because of the request of @t, or NULL: the history says what it asks for */
void ck_abandon_for(struct ck_machine *m, struct ck_entry *e, enum ck_reason reason,
		    struct ck_mturn *t);
void ck_evict_for(struct ck_machine *m, struct ck_entry *e, enum ck_reason reason,
		  struct ck_mturn *t);
void ck_evict_confirmed(struct ck_machine *m, struct ck_entry *e);
/* does its eviction wait for its creation, its id or its hooks? */
bool ck_evict_waits(const struct ck_entry *e);
/* is it one of the CK_DESTROYS_MAX? */
static inline bool ck_destroying(const struct ck_entry *e)
{
	return e->row.state == CK_STATE_EVICTING && e->in.evicting.effort >= CK_STARTED;
}
/* what its eviction waited for has ended, and its id is known */
void ck_evict_goes_on(struct ck_machine *m, struct ck_entry *e);
void ck_evict_listed(struct ck_machine *m, struct ck_entry *e, bool ok, const struct ck_object *o,
		     size_t n);
void ck_evict_inspected(struct ck_machine *m, struct ck_entry *e, enum ck_condition condition);
void ck_evict_hook_done(struct ck_machine *m, struct ck_entry *e, enum ck_hook_event event);
void ck_evict_expired(struct ck_machine *m, struct ck_entry *e);
/* a new reason to be rid of it: the pause before the next try ends (K18) */
void ck_evict_hurry(struct ck_machine *m, struct ck_entry *e);
/* starts the destroys that may start now */
void ck_evict_pump(struct ck_machine *m);
/* their sandbox has stopped: those that are not committed are evicted, the others have ended */
void ck_containers_stopped(struct ck_machine *m, const char *sandbox_id);
/* a committed @e has ended, and with a sandbox all that is in it */
void ck_ended(struct ck_machine *m, struct ck_entry *e);
/* somebody uses it, so it becomes the kubelet's, and so does the sandbox it is in (K22) */
void ck_in_use(struct ck_machine *m, struct ck_entry *e);
/* a container that ran, and has ended */
void ck_was_in_use(struct ck_machine *m, struct ck_entry *e);
/* what was found in use and committed; without memory now, a second later */
void ck_tell_used(struct ck_machine *m, struct ck_entry *e);
/* a sandbox: did the last list of containers show one in it that is visible? Then it is in use */
bool ck_has_visible_container(struct ck_machine *m, const struct ck_entry *e);
void ck_evict_resume(struct ck_machine *m, struct ck_entry *e); /* after a restart */
/* the minute of a tombstone is over (K21) */
void ck_gone_expired(struct ck_machine *m, struct ck_entry *e);
void ck_tombstone_end(struct ck_machine *m, struct ck_entry *e); /* nothing hides its id any more */

/* commit.c */
/* CREATING or KEPT: runs the hooks, then it is COMMITTED */
void ck_commit(struct ck_machine *m, struct ck_entry *e);
/* the hooks agree (K7); @offered: it is committed even if nobody waits */
void ck_committed(struct ck_machine *m, struct ck_entry *e, bool offered);
/* COMMITTED: a container of which nobody is known to have the answer is KEPT again (K7) */
void ck_take_back(struct ck_machine *m, struct ck_entry *e);
/* the kubelet has it: it got the answer, starts it, or asks for a container in it. Counts whether
 * its creation was saved */
void ck_taken(struct ck_machine *m, struct ck_entry *e);
/* ck_somebody_has - a container: this is on disk from this event on, and it is not taken back (K7).
 * Of a sandbox nothing is noted */
void ck_somebody_has(struct ck_machine *m, struct ck_entry *e);
/* the hooks could not be run: it is kept, and asked for again */
void ck_commit_failed(struct ck_machine *m, struct ck_entry *e, const char *why);
/* its creation has succeeded: keep, commit or evict it (K2) */
void ck_result_known(struct ck_machine *m, struct ck_entry *e);
/* the answer to the question whether a kept result is alive (K6) */
void ck_inspected_kept(struct ck_machine *m, struct ck_entry *e, enum ck_condition condition);
/* is another object of its key being destroyed? (K26) */
bool ck_duplicate_pending(const struct ck_entry *e);
/* its time to live (K15) */
uint64_t ck_kept_until(const struct ck_machine *m, const struct ck_entry *e);
void ck_kept_schedule(struct ck_machine *m, struct ck_entry *e);
uint64_t ck_offer_at(struct ck_machine *m, const struct ck_entry *e);

/* unknown-stops.c */
int ck_unknown_stop_note(struct ck_machine *m, const char *id); /* -CK_ENOMEM */
bool ck_unknown_stop_noted(const struct ck_machine *m, const char *id);
bool ck_unknown_stop_forget(struct ck_machine *m, const char *id); /* was it noted? */
/* a list shows it, and it has no entry, or a hidden one: remembered until the next list */
void ck_unknown_stop_listed(struct ck_machine *m, const char *id);
/* a whole list of sandboxes has come: what stopped before it is known now, or does not exist */
void ck_unknown_stops_expire(struct ck_machine *m, uint64_t begun_seq);
void ck_unknown_stops_free(struct ck_machine *m);

/* stopping.c */
/* before anything else changes: -CK_ENOMEM if it cannot be remembered */
int ck_stop_begins(struct ck_machine *m, const char *sandbox_id);
void ck_sandbox_stopped(struct ck_machine *m, const char *sandbox_id);
/* before it is dropped itself: visible containers are forgotten with it, and end before it (R26) */
void ck_sandbox_gone(struct ck_machine *m, const char *sandbox_id);
/* Somebody used it, if it is a container (K22). */
static inline bool ck_condition_used(enum ck_condition condition)
{
	return condition == CK_CONDITION_RUNNING || condition == CK_CONDITION_RAN;
}
static inline bool ck_condition_dead(enum ck_condition condition)
{
	return condition == CK_CONDITION_DEAD || condition == CK_CONDITION_RAN;
}
void ck_condition_seen(struct ck_machine *m, struct ck_entry *e, enum ck_condition condition);

/* start.c: COMMITTED containers (K34) */
void ck_start_seen_running(struct ck_machine *m, struct ck_entry *e);
/* the answer to the question how its start has ended */
void ck_start_inspected(struct ck_machine *m, struct ck_entry *e, uint64_t begun_seq,
			enum ck_condition condition);
void ck_start_expired(struct ck_machine *m, struct ck_entry *e);
void ck_start_restored(struct ck_machine *m, struct ck_entry *e); /* after a restart */

/* lost.c */
void ck_lost(struct ck_machine *m, struct ck_entry *e);
/* begins to ask the host for an entry whose id is not known; unless @anew, its ages go on */
void ck_search(struct ck_machine *m, struct ck_entry *e, bool anew);
/* its id is known, or it is created once more, or does not matter any more */
void ck_search_ends(struct ck_entry *e);
/* is the host asked for it? */
bool ck_searched(const struct ck_entry *e);
/* not in a list that counts (K8) */
void ck_lost_absent(struct ck_machine *m, struct ck_entry *e, uint64_t begun_seq);
/* looks in @o for the id of a lost or evicted creation; true: it is there */
bool ck_lost_find(struct ck_machine *m, struct ck_entry *e, const struct ck_object *o, size_t n);
void ck_creating_schedule(struct ck_machine *m, struct ck_entry *e); /* its deadline */
/* a caller came for @e, which is UNKNOWN: ask now, and often */
void ck_lost_hurry(struct ck_machine *m, struct ck_entry *e);
void ck_lost_expired(struct ck_machine *m, struct ck_entry *e);
/* @o is a second object of @key and is destroyed (K26) */
void ck_duplicate(struct ck_machine *m, const struct ck_key *key, const struct ck_object *o);
/* does a list begun at @begun_seq count for what last moved at @than? (K24) */
bool ck_list_counts(uint64_t begun_seq, uint64_t than);
bool ck_object_has_key(const struct ck_object *o, const struct ck_key *key);
bool ck_object_alive(const struct ck_object *o);

/* conflict.c */
/* does the uid of a key belong to a pod of another name (K9)? @err says so */
bool ck_uid_has_another_name(struct ck_machine *m, const struct ck_key *key, struct ck_error *err);
/* does the sandbox of a container's key belong to another pod (K9)? @err says what differs */
bool ck_sandbox_has_another_pod(struct ck_machine *m, const struct ck_key *key,
				struct ck_error *err);

/* removal.c */
/* decides those for which nothing is left to wait for */
void ck_removals_look(struct ck_machine *m);
void ck_removal_expired(struct ck_machine *m, struct ck_removal *r);
/* lost.c: of an earlier life, and nobody waits for it any more; it may still be under way */
void ck_gave_up(struct ck_machine *m, const struct ck_entry *e);
bool ck_being_removed(const struct ck_machine *m, const struct ck_entry *e);

/* place.c */
/* abandons what the kubelet has given up by asking for @by (K9) */
void ck_bump(struct ck_machine *m, struct ck_mturn *by);
void ck_turn_place(struct ck_machine *m, struct ck_mturn *t);

/* turn-events.c */
void ck_turn_expired(struct ck_machine *m, struct ck_mturn *t);

/* settle.c */
void ck_event_begin(struct ck_machine *m);
void ck_event_end(struct ck_machine *m);
#endif
