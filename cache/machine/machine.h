/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_CACHE_MACHINE_MACHINE_H
#define CK_CACHE_MACHINE_MACHINE_H
/*
 * The rules (rules K1-K33, libcrikeep(3)): events in, actions out. No sockets, threads, SQL,
 * protobuf or clock of its own.
 *
 * One idea carries most of the rules: a request that cannot be answered now waits, and whenever
 * anything of its pod changes it is placed anew, exactly as if it came in at that moment
 * (place.c). Joining, succeeding an evicted entry, waiting for a name, for the
 * ports of an older attempt, for a removal, for the first list: all are the same waiting.
 *
 * A round: feed events; the caller writes what ck_machine_dirty() names, in one transaction;
 * ck_machine_settle() says whether that worked; only then are answers (ck_machine_answered()) and
 * wants (ck_machine_wanting()) carried out (K29). After a turn or an entry exists nothing here
 * needs memory, but for results, imports and history.
 *
 * The machine is used by one thread at a time. Its files; each calls those below it:
 *
 *   settle          every event ends here, due timers, the end of a round
 *   turn-events     a turn begins, its caller leaves, its time is up
 *   place           where a request finds its place
 *   creation        what its creator says     lists     whole lists of the runtime
 *   answers         of the host and of hooks  restart   rows of an earlier life
 *   lost            unknown outcomes          stopping  what the host sees of resources
 *   commit          keep or commit a result   import    resources without a row
 *   evict           abandon, evict, destroy
 *   turn            what a turn is and hears
 *   machine         life, clock, questions
 *   entry-changes   what changes in an entry, and what that queues for the end of the round
 *   groups          who belongs to which pod; below it timers, entry, shared-answer
 *
 * One call goes up: whatever file an event begins in, ck_event_end() in settle.c ends it.
 */
#include <stdbool.h>

#include "cache/machine/entry.h"
#include "cache/machine/timers.h"
#include "src/base/mem.h"

/* uthash: a failed allocation leaves the element out (hh.tbl NULL) instead of ending the process */
#define HASH_NONFATAL_OOM 1
#define uthash_malloc(size) ck_alloc(size)
#define uthash_free(p, size) free(p)
#include <uthash.h>
#include <utlist.h>

struct ck_machine;

/* ---- entries --------------------------------------------------------------------------------- */

enum ck_index { CK_BY_POD, CK_BY_UID, CK_BY_SANDBOX, CK_INDEXES };

struct ck_link { /* an entry's place in one group */
	struct ck_group *group;
	struct ck_entry *prev, *next;
};

/* what the machine wants done for an entry; several can be wanted at once */
enum ck_want {
	CK_WANT_INSPECT = 1 << 0, /* ck_machine_inspected() */
	/* list by key: ck_machine_listed_entry(); for FIND, CHECK of a sandbox, lost */
	CK_WANT_LIST = 1 << 1,
	CK_WANT_DESTROY = 1 << 2, /* ck_machine_destroyed() */
	CK_WANT_RUN = 1 << 3,     /* fire; ck_machine_hook_done() */
	CK_WANT_STOP = 1 << 4,
	CK_WANT_REMOVE = 1 << 5,
	CK_WANT_CANCEL = 1 << 6, /* no further plugin is asked for RUN (K13) */
};

struct ck_entry {
	struct ck_row row;
	struct ck_link link[CK_INDEXES];
	UT_hash_handle by_row, by_object;
	struct ck_timer timer;
	unsigned wants, outstanding; /* enum ck_want: to be started; started and not answered */
	struct ck_entry *wanting_prev, *wanting_next, *dirty_prev, *dirty_next, *ready_prev,
		*ready_next;
	struct ck_mturn *creator; /* who makes it; NULL: nobody any more */
	enum ck_state written;    /* state in the database; 0: no row there */
	/* the machine's sequence at the last move: what a list must be younger than (K24) */
	uint64_t changed_seq;
	uint64_t tried_seq;    /* at the last destroy */
	uint64_t absent_since; /* lost: absent from every list since; 0: not known to be absent */
	uint64_t ask_after;    /* lost: current pause between questions */
	uint64_t lost_at;
	uint64_t ask_at;     /* KEPT: not asked again before (K6) */
	uint64_t asked_at;   /* KEPT: the question is under way since */
	/* CREATING: the id under which a list showed it before its creator told; NULL: none did */
	char *seen;
	/* seq of the turn that began it: older ones with another fingerprint lose (K14) */
	uint64_t begun_turn;
	uint64_t list_stamp; /* the last whole list that held it */
	uint32_t unanswered; /* turns it was handed to that have not reported */
	uint32_t destroy_calls; /* in flight: more than one after a time-out */
	bool is_dirty, is_ready;
	bool destroying;     /* one of the CK_DESTROYS_MAX, from its first question */
	bool checked;        /* EVICTING: found not in use, for this try */
	bool stopped;        /* EVICTING: ports and addresses are free (K10) */
	bool running;        /* COMMITTED container: started */
	bool removing;       /* a removal is in flight */
	bool dead;           /* COMMITTING: seen dead; acted upon after the hooks */
	bool kept;           /* was KEPT once: what is handed over was handed back */
	bool restored;       /* of an earlier life: nobody could ask while we were down (K15) */
	/* GONE for good: out of every index, waits only for its row to be deleted */
	bool detached;
	bool undelivered;    /* restored COMMITTED container: KEPT again if still CREATED (K25) */
	bool stopping;       /* sandbox: StopPodSandbox was seen; no creates in it */
	bool fresh;          /* COMMITTED by this round: ops.committed is due */
};

/* ---- turns ----------------------------------------------------------------------------------- */

enum ck_turn_state { CK_TURN_NONE, CK_TURN_WAITING, CK_TURN_CREATING, CK_TURN_DECIDED };

/* The machine's part of a turn; the caller's memory, zeroed before ck_machine_begin(). */
struct ck_mturn {
	struct ck_key *key;                  /* drain: NULL */
	/* borrowed; must outlive the turn's part in the machine */
	const struct ck_fingerprint *fp;
	enum ck_turn_state state;
	struct ck_group *group; /* the pod it waits in */
	struct ck_mturn *prev, *next;                    /* in its group, newest first */
	struct ck_mturn *answered_prev, *answered_next;  /* answers of this round */
	struct ck_timer timer;
	uint64_t seq;       /* order of arrival */
	uint64_t began, deadline; /* 0: none */
	uint64_t margin_at; /* from here it is not live; CK_NEVER_DUE: none */
	uint64_t supersede_at; /* K10; 0: not waiting for ports */
	uint64_t row;       /* the entry it makes, waits for or was answered from; 0: none */
	char *drain;        /* ck_remove_begin(): the id whose containers must be gone */
	enum ck_kind drain_kind;
	bool answered_queued, reported;
	bool finished; /* it has said how its creation ended */
	bool left;     /* a creator whose caller is gone */
	bool joined;   /* the same request as @row's */
	bool again;    /* CREATING: asked for a second time, the end of the first is unknown (K8) */
	bool cosmetic; /* the same but for labels and annotations (K12) */
	/* its image reference (E5) */
	enum { CK_RESOLVE_NONE, CK_RESOLVE_WANTED, CK_RESOLVE_ASKED, CK_RESOLVE_DONE } resolve;
	struct ck_mturn *resolve_next;
	uint64_t compared_row; /* @relation holds for this row */
	enum ck_relation relation;
	/* once DECIDED */
	int outcome; /* enum ck_outcome, or -CK_E... */
	struct ck_shared_result *result;
	struct ck_shared_status *status;
	struct ck_error err;
};

/* ---- the machine ----------------------------------------------------------------------------- */

struct ck_rules { /* the durations of struct ck_options, defaults filled in */
	uint64_t ttl, create_deadline, lost_grace, supersede_wait, destroy_timeout;
	enum ck_mode mode;
	enum ck_hand_back hand_back;
	enum ck_annotation_change on_annotation_change;
	bool can_inspect, can_list, can_resolve; /* the host offers it */
	bool hooks;
	bool skip_first_list; /* serve before the first successful list (no host.list) */
};

struct ck_history_event { /* a line for history and log; entry valid until ck_machine_settle() */
	struct ck_entry *entry;
	enum ck_what what;
	enum ck_state from, to;
	int grpc;
	uint64_t at;
	char detail[CK_TEXT_MAX + 1]; /* redacted by whoever fed it */
};

struct ck_machine_ops { /* called from inside events; must not call back */
	/* 0 or -CK_ENOMEM */
	int (*record)(void *user, const struct ck_fingerprint *fp, struct ck_record *ret_record);
	/* @entry's record against @fp; loads its digests if needed */
	enum ck_relation (*compare)(void *user, struct ck_entry *entry,
				    const struct ck_fingerprint *fp,
				    struct ck_difference *ret_difference);
	/* its creator's image was resolved */
	void (*set_image)(void *user, struct ck_entry *entry, const struct ck_fingerprint *fp);
	/* 0, or 1: absent, name in @names */
	int (*choose)(void *user, const struct ck_entry *entry, char *names, size_t size);
	void (*released)(void *user, const struct ck_entry *entry);
	/* it was hidden and is visible from now on: said by ck_machine_settle(), after all that may
	 * take it back. May be NULL */
	void (*committed)(void *user, const struct ck_entry *entry);
	uint64_t (*jitter)(void *user, uint64_t below); /* 0 <= r < below */
	uint64_t (*next_id)(void *user);
};

int ck_machine_new(const struct ck_rules *rules, const struct ck_machine_ops *ops, void *user,
		   uint64_t now, struct ck_machine **ret_machine);
void ck_machine_free(struct ck_machine *m); /* entries too; no turn may be left in it */

/* -- events; all return 0, an outcome or -CK_E..., and never leave half a change behind -- */

/* time passes; fires nothing by itself */
void ck_machine_clock(struct ck_machine *m, uint64_t now);
void ck_machine_expire(struct ck_machine *m);              /* fire every timer due by now */
/* when ck_machine_expire() has something to do */
uint64_t ck_machine_due(const struct ck_machine *m);

/* @t->key is taken by the turn in any case. CK_CREATE, CK_WAIT, or decided: @t->outcome is
 * returned. -CK_ENOMEM, -CK_EINVAL, -CK_EDEADLINE, -CK_EPRECONDITION leave the turn unattached. */
int ck_machine_begin(struct ck_machine *m, struct ck_mturn *t, struct ck_key *key,
		     const struct ck_fingerprint *fp, uint64_t timeout, bool expired,
		     struct ck_error *err);
int ck_machine_drain(struct ck_machine *m, struct ck_mturn *t, enum ck_kind kind, const char *id,
		     uint64_t timeout, struct ck_error *err);
int ck_machine_stage(struct ck_machine *m, struct ck_mturn *t, const char *stage);
/* @result is shared, not taken. CK_HAND_BACK, CK_WAIT, CK_KEPT, CK_ABANDONED, -CK_EUNAVAILABLE,
 * -CK_ESTATE */
int ck_machine_finish(struct ck_machine *m, struct ck_mturn *t, struct ck_shared_result *result,
		      struct ck_error *err);
/* @status shared; @detail redacted text for the history */
int ck_machine_fail(struct ck_machine *m, struct ck_mturn *t, struct ck_shared_status *status,
		    const char *detail);
/* also: a creator freed, the creator's upstream gone */
int ck_machine_lost(struct ck_machine *m, struct ck_mturn *t);
/* the caller is gone; waiting turns are DECIDED without an answer */
void ck_machine_leave(struct ck_machine *m, struct ck_mturn *t);
/* before ck_machine_part(): nobody heard that it was to create, if it was. Nothing was begun, so
 * that the next one may; a request sent for a second time (K8) stays lost */
void ck_machine_unheard(struct ck_machine *m, struct ck_mturn *t);
/* the machine forgets the turn: leave, and lost if it was creating */
void ck_machine_part(struct ck_machine *m, struct ck_mturn *t);
/* part, and free what it was given */
void ck_machine_drop(struct ck_machine *m, struct ck_mturn *t);
/* after HAND_BACK (K7) */
void ck_machine_answer_reported(struct ck_machine *m, struct ck_mturn *t, bool delivered);

/* the image reference of @t's request was resolved, or could not be (E5): its fingerprint knows by
 * now */
void ck_machine_resolved(struct ck_machine *m, struct ck_mturn *t);

/* answers to wants; @row of an entry that is gone is fine */
void ck_machine_inspected(struct ck_machine *m, uint64_t row, enum ck_condition condition);
void ck_machine_stopped(struct ck_machine *m, uint64_t row);
void ck_machine_destroyed(struct ck_machine *m, uint64_t row, int grpc);
/* @told: who was sent it, "" nobody, NULL not said; @refusal: redacted */
void ck_machine_hook_done(struct ck_machine *m, uint64_t row, enum ck_hook_event event,
			  const char *told, const char *refusal);
/* the list that was wanted for one entry: sandboxes of its uid, or containers of its sandbox. @ok
 * false: nothing is concluded */
void ck_machine_listed_entry(struct ck_machine *m, uint64_t row, uint64_t begun_seq, bool ok,
			     const struct ck_object *o, size_t n);
/* a whole list of one kind (K24..K27); @ok false: it failed */
void ck_machine_listed(struct ck_machine *m, enum ck_kind kind, uint64_t begun_seq, bool ok,
		       const struct ck_object *o, size_t n);

int ck_machine_stopping(struct ck_machine *m, const char *sandbox_id); /* K16 */
int ck_machine_forget(struct ck_machine *m, enum ck_kind kind, const char *id);
int ck_machine_seen(struct ck_machine *m, enum ck_kind kind, const char *id,
		    enum ck_condition condition);
int ck_machine_used(struct ck_machine *m, enum ck_kind kind, const char *id);
/* for the history: the host told plugins by itself; @names: "" nobody */
int ck_machine_note_told(struct ck_machine *m, enum ck_kind kind, const char *id,
			 enum ck_hook_event event, const char *names);
/* admin; text says what happens */
int ck_machine_evict(struct ck_machine *m, uint64_t row, bool release, char *ret_text, size_t size);
/* a row of an earlier life, taken over; @same_boot false: it is from before (K25). -CK_ENOMEM */
int ck_machine_restore(struct ck_machine *m, struct ck_row *row, bool same_boot);

/* -- what a round leaves behind -- */

/* first of a list through dirty_next; ck_machine_row_unwanted(): delete */
struct ck_entry *ck_machine_dirty(struct ck_machine *m);
/* its row is to be deleted, not updated */
bool ck_machine_row_unwanted(const struct ck_entry *entry);
const struct ck_history_event *ck_machine_history(struct ck_machine *m, size_t *ret_n);
/* K29, K32: the dirty entries are, or are not, in the database. Undoes what may not be outside
 * without being on disk */
void ck_machine_settle(struct ck_machine *m, bool written, const char *why);
/* K33: a new database knows nothing */
void ck_machine_all_dirty(struct ck_machine *m);
/* take the next answered turn of this round, or NULL */
struct ck_mturn *ck_machine_answered(struct ck_machine *m);
/* the next entry with wants, or NULL; ... */
struct ck_entry *ck_machine_wanting(struct ck_machine *m);
/* ... and what it wants: now outstanding */
unsigned ck_machine_take_wants(struct ck_machine *m, struct ck_entry *entry);
/* a turn whose image reference is to be resolved, or NULL */
struct ck_mturn *ck_machine_take_resolve(struct ck_machine *m);
bool ck_machine_has_wants(const struct ck_machine *m); /* entries', turns' or lists' */
/* there was no memory to ask: a question counts as unanswered, STOP and REMOVE are wanted again a
 * second later */
void ck_machine_job_failed(struct ck_machine *m, struct ck_entry *entry, enum ck_want want);
/* kinds (1 << kind) whose whole list is wanted now */
unsigned ck_machine_take_lists(struct ck_machine *m);
uint64_t ck_machine_seq(const struct ck_machine *m);           /* for begun_seq */

/* -- asking -- */

/* the first list of each kind has succeeded */
bool ck_machine_reconciled(const struct ck_machine *m);
struct ck_counters *ck_machine_counters(struct ck_machine *m);
struct ck_entry *ck_machine_entry(struct ck_machine *m, uint64_t row);
struct ck_entry *ck_machine_entries(struct ck_machine *m); /* all, through by_row.next */
struct ck_entry *ck_machine_object(struct ck_machine *m, enum ck_kind kind, const char *id);
/* the entries of its pod ... */
struct ck_entry *ck_machine_pod_first(const struct ck_entry *entry);
struct ck_entry *ck_machine_pod_next(const struct ck_entry *entry);
/* another number whenever what is hidden, and how, may be another */
uint64_t ck_machine_moves(const struct ck_machine *m);
/* visible = COMMITTED; tombstones are hidden too */
bool ck_machine_hidden(const struct ck_entry *entry);
/* a list is being asked for: tombstones stay (K21) */
void ck_machine_view_opened(struct ck_machine *m, uint64_t *ret_seq);
void ck_machine_view_closed(struct ck_machine *m, uint64_t seq);
/* invariants; for tests */
bool ck_machine_check(const struct ck_machine *m, char *why, size_t size);
#endif
