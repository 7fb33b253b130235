/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_CACHE_MACHINE_MACHINE_H
#define CK_CACHE_MACHINE_MACHINE_H
/*
 * The rules of crikeep-rules(7), K1 to K34: events in, actions out. The machine has no sockets,
 * threads, SQL, protobuf or clock of its own. One thread at a time uses it.
 *
 * One idea carries most of the rules: a request that cannot be answered now waits. Whenever
 * anything of its pod changes it is placed anew, as if it came in at that moment (place.c). A
 * request may wait to join a creation, to succeed an evicted entry, for a name, for the ports of an
 * older attempt, for a removal or for the first list; all of this is the same waiting.
 *
 * Events are grouped into rounds. The caller feeds events. It writes the rows that
 * ck_machine_dirty() names, in one transaction, and tells ck_machine_settle() whether that worked.
 * Only then it carries out the answers (ck_machine_answered()) and wants (ck_machine_wanting()), so
 * that nothing leaves the process before it is on disk, or is known not to be (K29, K32). Once a
 * turn or an entry exists, events need memory for results, imports and history only.
 *
 * Each file calls the files below it:
 *
 *   settle          every event ends here; due timers; the end of a round
 *   turn-events     a turn begins, its caller leaves, its time is up
 *   place           where a request finds its place
 *   creation        what its creator says     lists     whole lists of the runtime
 *   removal         removals that wait        conflict  requests that contradict what is known
 *   answers         of the host and of hooks  restart   rows of an earlier life
 *   start           starts of containers
 *   lost            unknown outcomes          stopping  what the host sees of resources
 *   commit          keep or commit a result   evict     abandon, evict, destroy
 *   unknown-stops   stops of sandboxes that nobody listed
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
#include "src/base/hash.h"
#include "src/base/mem.h"

#include <utlist.h>

struct ck_machine;

/* ---- entries --------------------------------------------------------------------------------- */

enum ck_index { CK_BY_POD, CK_BY_UID, CK_BY_SANDBOX, CK_INDEXES };

struct ck_link { /* an entry's place in one group */
	struct ck_group *group;
	struct ck_entry *prev, *next;
};

/* What the machine wants done for an entry, several at once; and the function for the answer. */
enum ck_want {
	CK_WANT_INSPECT = 1 << 0, /* ck_machine_inspected() */
	/* a list by key: ck_machine_listed_entry(). For a lost creation, and in FIND and CHECK */
	CK_WANT_LIST = 1 << 1,
	CK_WANT_DESTROY = 1 << 2, /* ck_machine_destroyed() */
	CK_WANT_RUN = 1 << 3,     /* run the hooks: ck_machine_hook_done() */
	CK_WANT_STOP = 1 << 4,
	CK_WANT_REMOVE = 1 << 5,
	CK_WANT_CANCEL = 1 << 6, /* RUN asks no further plugin (K13); has no answer of its own */
};

/* what the database has of an entry */
enum ck_saved {
	CK_SAVED,    /* everything */
	CK_UNSAVED,  /* what it was before this round */
	CK_VOLATILE, /* what it was before a round that could not be written (K32) */
	CK_REFUSED,  /* the database takes rounds, but not the row of this entry */
};

/* how far a try to destroy an entry is */
enum ck_effort {
	CK_PAUSED,  /* none has begun; or the last one failed */
	CK_QUEUED,  /* it begins as soon as it may */
	CK_STARTED, /* one of CK_DESTROYS_MAX, from its first question on */
	CK_CHECKED, /* the same, and found not in use */
};

struct ck_entry {
	struct ck_row row;
	struct ck_link link[CK_INDEXES];
	UT_hash_handle by_row, by_object;
	struct ck_timer timer;
	unsigned wants, outstanding; /* enum ck_want: to be started; started and not answered */
	struct ck_entry *wanting_prev, *wanting_next, *dirty_prev, *dirty_next, *ready_prev,
		*ready_next;
	struct ck_mturn *creator; /* the turn that makes it; NULL: none does any more */
	bool has_row;             /* it has a row in the database, perhaps of an earlier state */
	/* it has begun, and nothing else has happened: neither its row nor a line of history is
	 * written yet (K29) */
	bool row_waits;
	enum ck_saved saved;
	/* What is known in one state only. A move to another state clears it. */
	union {
		struct {           /* CREATING, UNKNOWN */
			bool dead; /* listed dead before its creator reported it */
		} creating;
		struct {
			uint64_t ask_at;   /* not inspected again before (K6) */
			uint64_t asked_at; /* when the inspection under way was wanted */
			uint64_t offer_at; /* committed then, if nobody asks; 0: it is not (K2) */
		} kept;
		struct { /* COMMITTED, ENDED */
			uint32_t unanswered; /* turns it was handed to that have not reported */
			/* a restored container: if it is still CREATED, it is KEPT again, or
			 * evicted once its sandbox has ended (K25) */
			bool undelivered;
			/* a start of which nobody knew how it would end was requested again */
			bool start_resumed;
			uint64_t start_lost; /* LOST: since then, in this life */
			/* plugins were told that it stops, and not of its end, because it was
			 * found in use (K22) */
			bool stop_told;
		} committed;
		struct {
			enum ck_effort effort;
			bool dead;    /* seen dead: it has ended if it is in use */
			/* the machine's sequence at the last destroy */
			uint64_t tried_seq;
		} evicting;
	} in;
	/* the machine's sequence at the last move; only a younger list counts (K24) */
	uint64_t changed_seq;
	/* a view that began before has another, destroyed object in mind by its id; 0: none has */
	uint64_t id_since;
	/* lost, or its start is: an answer to what was asked from here on may end the search; 0:
	 * none yet */
	uint64_t decisive_seq;
	uint64_t ask_after;    /* lost: current pause between questions */
	/* CREATING: the id under which a list showed it before its creator reported; or NULL */
	char *seen;
	/* seq of the turn that began it; older turns with another fingerprint lose (K14) */
	uint64_t begun_turn;
	uint64_t list_stamp;    /* the last whole list that held it */
	uint32_t destroy_calls; /* in flight: more than one after a time-out */
	bool running;           /* a container: seen to run, or that it ran */
	bool was_kept;          /* handing it over counts as handing it back */
	bool restored;          /* of an earlier life: nobody could ask for it meanwhile (K15) */
	/* out of every index; only its row in the database is left to delete */
	bool detached;
	bool fresh; /* COMMITTED in this round: ops.committed is due */
	/* the request that began it has the answer, or may still get it */
	bool in_time;
	bool taken; /* the kubelet has it: it is settled whether its creation was saved */
};

/* ---- turns ----------------------------------------------------------------------------------- */

/*
 * The states of a turn.
 *
 * NEW         not in the machine yet
 * WAITING     for the first list, or for the end of an entry that is in its way
 * JOINED      its request is that of the entry @row, and it gets what becomes of it
 * CREATING    it makes the entry @row
 * ORPHANED    the same, and its caller has gone
 * SUPERSEDED  the same, and its caller has heard that nobody wants it any more
 * HANDED      it has the result; it is not known whether the answer arrived
 * DECIDED     all that is to happen to it has happened
 *
 *   NEW -> WAITING <-> JOINED       both, from here: -> CREATING, -> HANDED, -> DECIDED
 *
 *             .-> JOINED            the creation has ended
 *   CREATING -+-> ORPHANED ---.---.
 *             '-> SUPERSEDED <'   v
 *                     '-------> DECIDED <- HANDED
 *
 * SUPERSEDED, HANDED and DECIDED turns have a decision, which does not change any more. A decided
 * turn stays in its pod until the round takes it, so that the turns of a pod can be decided while
 * they are walked.
 */
#define CK_TURN_TO(state) (1u << CK_TURN_##state)
/* name, what it may move to */
#define CK_TURN_STATES(X) \
	X(NEW, CK_TURN_TO(WAITING)) \
	X(WAITING, \
	  CK_TURN_TO(JOINED) | CK_TURN_TO(CREATING) | CK_TURN_TO(HANDED) | CK_TURN_TO(DECIDED)) \
	X(JOINED, \
	  CK_TURN_TO(WAITING) | CK_TURN_TO(CREATING) | CK_TURN_TO(HANDED) | CK_TURN_TO(DECIDED)) \
	X(CREATING, CK_TURN_TO(JOINED) | CK_TURN_TO(ORPHANED) | CK_TURN_TO(SUPERSEDED)) \
	X(ORPHANED, CK_TURN_TO(SUPERSEDED) | CK_TURN_TO(DECIDED)) \
	X(SUPERSEDED, CK_TURN_TO(DECIDED)) \
	X(HANDED, CK_TURN_TO(DECIDED)) \
	X(DECIDED, 0)

enum ck_turn_state {
#define CK_TURN_ENUM(name, to) CK_TURN_##name,
	CK_TURN_STATES(CK_TURN_ENUM)
#undef CK_TURN_ENUM
};

struct ck_decision {
	int outcome; /* enum ck_outcome, or -CK_E... */
	struct ck_shared_result *result;
	struct ck_shared_status *status;
	struct ck_error err;
};

/* The machine's part of a turn: the caller's memory, zeroed before ck_machine_begin(). */
struct ck_mturn {
	struct ck_key *key;
	/* borrowed; must outlive the turn's part in the machine */
	const struct ck_fingerprint *fp;
	enum ck_turn_state state;
	union { /* zeroed whenever the state moves, except from one decided state to another */
		struct {
			/* creates then even if ports are taken (K10); 0: does not wait for them */
			uint64_t ports_at;
		} waiting;                   /* WAITING */
		struct ck_decision decision; /* SUPERSEDED, HANDED, DECIDED */
	};
	struct ck_group *group;                         /* the pod it waits in */
	struct ck_mturn *prev, *next;                   /* in its group, newest first */
	struct ck_mturn *answered_prev, *answered_next; /* answers of this round; or NULL */
	struct ck_timer timer;
	uint64_t seq;             /* order of arrival; 0: it has no part in the machine */
	uint64_t began, deadline; /* deadline 0: none */
	uint64_t margin_at;       /* from here on it is not live; CK_NEVER_DUE: none */
	uint64_t row;             /* the entry it makes, waits for or was answered from; 0: none */
	uint64_t counted_row;     /* the entry in whose requests it is counted; 0: none */
	uint64_t making;          /* the entry whose creation it has begun, unreported; 0: none */
	uint64_t made;            /* the same, once its host has said that it exists */
	bool again;               /* what it was told to create had been asked for before (K8) */
	struct {                  /* its image reference (E5), which has states of its own */
		enum { CK_IMAGE_AS_IT_IS, CK_IMAGE_WANTED, CK_IMAGE_ASKED, CK_IMAGE_KNOWN } state;
		struct ck_mturn *next; /* WANTED */
	} image;
	struct { /* the last comparison with an entry, because entries are compared often */
		uint64_t row;
		enum ck_relation relation;
	} compared;
};

/* is its answer one of this round, which nobody has taken yet? */
bool ck_turn_answered_now(const struct ck_mturn *t);

/* it waits, and is placed anew whenever anything of its pod changes */
static inline bool ck_turn_waits(const struct ck_mturn *t)
{
	return t->state == CK_TURN_WAITING || t->state == CK_TURN_JOINED;
}

static inline bool ck_turn_decided(const struct ck_mturn *t)
{
	return t->state == CK_TURN_SUPERSEDED || t->state == CK_TURN_HANDED ||
	       t->state == CK_TURN_DECIDED;
}

/* what its caller is to hear, or has heard */
static inline int ck_turn_outcome(const struct ck_mturn *t)
{
	bool creates = t->state == CK_TURN_CREATING || t->state == CK_TURN_ORPHANED;
	return ck_turn_decided(t) ? t->decision.outcome : creates ? CK_CREATE : CK_WAIT;
}

/* ---- removals -------------------------------------------------------------------------------- */

/*
 * A removal that the kubelet wants and the host is about to forward: the caller's memory, zeroed
 * before ck_machine_remove_begin(). It is in flight until ck_machine_remove_end().
 *
 *   NONE ---> WAITING ---> DONE   nothing of the sandbox is left, or its time is up, or its caller
 *     ^----------------------'    has gone
 */
enum ck_removal_state { CK_REMOVAL_NONE, CK_REMOVAL_WAITING, CK_REMOVAL_DONE };

struct ck_removal {
	enum ck_removal_state state;
	enum ck_kind kind;
	char *id;
	struct ck_timer timer;
	struct ck_removal *prev, *next;                 /* all that are in flight */
	struct ck_removal *removed_prev, *removed_next; /* decided in this round */
	/* DONE: */
	int outcome; /* CK_DRAINED, CK_BUSY, -CK_EABANDONED */
	struct ck_error err;
};

/* ---- the machine ----------------------------------------------------------------------------- */

struct ck_rules { /* the durations of struct ck_options, with defaults filled in */
	uint64_t ttl, create_deadline, lost_grace, supersede_wait, destroy_timeout;
	enum ck_mode mode;
	enum ck_hand_back hand_back;
	enum ck_annotation_change on_annotation_change;
	bool can_inspect, can_list, can_resolve; /* the host offers it */
	bool hooks;
	bool is_runtime; /* of struct ck_options */
	bool skip_first_list; /* serve before the first successful list (no host.list) */
};

struct ck_history_event {       /* a line for history and log */
	struct ck_entry *entry; /* valid until ck_machine_settle() */
	enum ck_what what;
	enum ck_state from, to;
	enum ck_reason reason; /* of the entry then */
	int grpc;
	uint64_t at;
	char detail[CK_TEXT_MAX + 1]; /* redacted by the caller of the event */
};

struct ck_machine_ops { /* called from inside events; must not call back */
	/* 0 or -CK_ENOMEM */
	int (*record)(void *user, const struct ck_fingerprint *fp, struct ck_record *ret_record);
	/* compares @entry's record with @fp; loads its digests if needed */
	enum ck_relation (*compare)(void *user, struct ck_entry *entry,
				    const struct ck_fingerprint *fp,
				    struct ck_difference *ret_difference);
	/* the image of its creator's request was resolved */
	void (*set_image)(void *user, struct ck_entry *entry, const struct ck_fingerprint *fp);
	/* 0: @names are the plugins to tell; 1: @names is a required plugin that is absent */
	int (*choose)(void *user, const struct ck_entry *entry, char *names, size_t size);
	void (*released)(void *user, const struct ck_entry *entry);
	/* it was hidden and is visible from now on. ck_machine_settle() calls this. May be NULL */
	void (*committed)(void *user, const struct ck_entry *entry);
	uint64_t (*jitter)(void *user, uint64_t below); /* 0 <= r < below */
	uint64_t (*next_id)(void *user);
};

int ck_machine_new(const struct ck_rules *rules, const struct ck_machine_ops *ops, void *user,
		   uint64_t now, struct ck_machine **ret_machine);
/* frees the entries too; no turn may be left in it */
void ck_machine_free(struct ck_machine *m);

/* -- events: each returns 0, an outcome or -CK_E..., and happens whole or not at all -- */

/* sets the time; no timer fires */
void ck_machine_clock(struct ck_machine *m, uint64_t now);
void ck_machine_expire(struct ck_machine *m); /* fires every timer that is due by now */
/* when ck_machine_expire() has something to do */
uint64_t ck_machine_due(const struct ck_machine *m);

/* The turn takes @key in any case. CK_CREATE, CK_WAIT, or its decision is returned.
 * -CK_ENOMEM, -CK_EINVAL, -CK_EDEADLINE, -CK_EPRECONDITION leave the turn unattached. */
int ck_machine_begin(struct ck_machine *m, struct ck_mturn *t, struct ck_key *key,
		     const struct ck_fingerprint *fp, uint64_t timeout, bool expired,
		     struct ck_error *err);
int ck_machine_stage(struct ck_machine *m, struct ck_mturn *t, const char *stage);
/* @result is shared, not taken. CK_HAND_BACK, CK_WAIT, CK_KEPT, -CK_EABANDONED, -CK_EUNAVAILABLE,
 * -CK_ESTATE */
int ck_machine_finish(struct ck_machine *m, struct ck_mturn *t, struct ck_shared_result *result,
		      struct ck_error *err);
/* @status is shared; @detail is redacted text for the history. 0, CK_WAIT: its outcome is unknown
 * (K8); -CK_ESTATE */
int ck_machine_fail(struct ck_machine *m, struct ck_mturn *t, struct ck_shared_status *status,
		    const char *detail);
/* the outcome is unknown: also when a creator is freed, or its upstream connection is gone */
int ck_machine_lost(struct ck_machine *m, struct ck_mturn *t);
/* the caller is gone: a turn that waits is DECIDED without an answer, one that creates ORPHANED */
void ck_machine_leave(struct ck_machine *m, struct ck_mturn *t);
/* before ck_machine_part(), if nobody heard that this turn was to create: nothing was begun, and
 * the next turn may create. A request sent for a second time (K8) stays lost */
void ck_machine_unheard(struct ck_machine *m, struct ck_mturn *t);
/* the machine forgets the turn: it leaves, and its creation is lost if it has one. What was decided
 * stays until ck_turn_fini(): somebody may be reading it */
void ck_machine_part(struct ck_machine *m, struct ck_mturn *t);
void ck_machine_drop(struct ck_machine *m, struct ck_mturn *t); /* the same, and ck_turn_fini() */
/* frees what the machine gave to it; it is NEW again */
void ck_turn_fini(struct ck_mturn *t);
/* after HAND_BACK: did the answer arrive? (K7) */
void ck_machine_answer_reported(struct ck_machine *m, struct ck_mturn *t, bool delivered);

/* the image reference of @t's request was resolved, or could not be (E5); its fingerprint knows
 * the result already */
void ck_machine_resolved(struct ck_machine *m, struct ck_mturn *t);

/* It waits until nothing in a sandbox is being created or destroyed (K16). CK_DRAINED, CK_WAIT;
 * -CK_ENOMEM leaves it NONE */
int ck_machine_remove_begin(struct ck_machine *m, struct ck_removal *r, enum ck_kind kind,
			    const char *id, uint64_t timeout, struct ck_error *err);
void ck_machine_remove_leave(struct ck_machine *m, struct ck_removal *r); /* its caller has gone */
/* it was carried out and the object forgotten, or it is not carried out; frees what it holds */
void ck_machine_remove_end(struct ck_machine *m, struct ck_removal *r);

/* answers to wants; the entry of @row may be gone by now */
/* @begun_seq: when it was asked; what was asked before the last move does not count */
void ck_machine_inspected(struct ck_machine *m, uint64_t row, uint64_t begun_seq,
			  enum ck_condition condition);
/* @message: the runtime's words, redacted, or NULL */
void ck_machine_destroyed(struct ck_machine *m, uint64_t row, int grpc, const char *message);
/* @told: names of those it was sent to, "" nobody, NULL not said; @refusal: redacted */
void ck_machine_hook_done(struct ck_machine *m, uint64_t row, enum ck_hook_event event,
			  const char *told, const char *refusal);
/* the list that was wanted for one entry: sandboxes of its uid, or containers of its sandbox. @ok
 * false: nothing is concluded */
void ck_machine_listed_entry(struct ck_machine *m, uint64_t row, uint64_t begun_seq, bool ok,
			     const struct ck_object *o, size_t n);
/* a whole list of one kind: what it shows is compared with all entries (K24 to K27); @ok false: it
 * failed, and says nothing */
void ck_machine_listed(struct ck_machine *m, enum ck_kind kind, uint64_t begun_seq, bool ok,
		       const struct ck_object *o, size_t n);

/* it stops, with what is in it (K16) */
int ck_machine_stopping(struct ck_machine *m, const char *sandbox_id);
int ck_machine_forget(struct ck_machine *m, enum ck_kind kind, const char *id);
int ck_machine_seen(struct ck_machine *m, enum ck_kind kind, const char *id,
		    enum ck_condition condition);
int ck_machine_used(struct ck_machine *m, enum ck_kind kind, const char *id);
/* StartContainer: whoever names it has got its answer (K7) */
int ck_machine_starting(struct ck_machine *m, const char *container_id);
/* The host is about to start a container (K34). ck_machine_start_end() follows, unless the host
 * dies. -CK_ENOTFOUND: it is not committed, or runs, so that this start says nothing */
int ck_machine_start_begin(struct ck_machine *m, const char *container_id);
enum ck_start_end {
	CK_START_HEARD,    /* it was started, and somebody has been told so */
	CK_START_TOO_LATE, /* it was started, and nobody waited any more */
	CK_START_REFUSED,  /* it was not started; @grpc: the runtime's code, or 0 */
	CK_START_OPEN,     /* it is not known */
};
void ck_machine_start_end(struct ck_machine *m, const char *container_id, enum ck_start_end end,
			  int grpc);
/* it was stopped: what its start has left behind counts no more */
void ck_machine_start_stopped(struct ck_machine *m, const char *container_id);
/* for the history: the host told the plugins @names by itself; "": nobody */
int ck_machine_note_told(struct ck_machine *m, enum ck_kind kind, const char *id,
			 enum ck_hook_event event, const char *names);
/* an administrator evicts or, with @release, gives up waiting for the destroy; @ret_text says what
 * happens */
int ck_machine_evict(struct ck_machine *m, uint64_t row, bool release, char *ret_text, size_t size);
/* takes over a row of an earlier life; @same_boot false: of an earlier boot (K25); @other_key: its
 * request cannot be compared (K31). -CK_ENOMEM; -CK_EDAMAGED: another row holds its key, and this
 * machine is of no use any more */
int ck_machine_restore(struct ck_machine *m, struct ck_row *row, bool same_boot, bool other_key);

/* -- what a round leaves behind -- */

/* the first entry whose row has to be written; the others follow through dirty_next */
struct ck_entry *ck_machine_dirty(struct ck_machine *m);
/* is it the one entry of its key? What the runtime created, is being destroyed or is gone is not */
bool ck_machine_holds_key(const struct ck_entry *entry);
const struct ck_history_event *ck_machine_history(struct ck_machine *m, size_t *ret_n);
/* the dirty rows are in the database or, if not @written, are not: they stay dirty (K29, K32) */
void ck_machine_settle(struct ck_machine *m, bool written);
/* the database is a new one and has no row yet (K33) */
void ck_machine_all_dirty(struct ck_machine *m);
/* takes the next answered turn of this round, or NULL */
struct ck_mturn *ck_machine_answered(struct ck_machine *m);
/* takes the next removal that was decided in this round, or NULL */
struct ck_removal *ck_machine_removed(struct ck_machine *m);
/* the next entry with wants, or NULL */
struct ck_entry *ck_machine_wanting(struct ck_machine *m);
/* takes its wants; they are outstanding from now on */
unsigned ck_machine_take_wants(struct ck_machine *m, struct ck_entry *entry);
/* takes a turn whose image reference is to be resolved, or NULL */
struct ck_mturn *ck_machine_take_resolve(struct ck_machine *m);
bool ck_machine_has_wants(const struct ck_machine *m); /* of entries, turns or lists */
/* there was no memory to start it: a question counts as unanswered, STOP and REMOVE are wanted
 * again a second later */
void ck_machine_job_failed(struct ck_machine *m, struct ck_entry *entry, enum ck_want want);
/* takes the kinds (1 << kind) whose whole list is wanted now */
unsigned ck_machine_take_lists(struct ck_machine *m);
uint64_t ck_machine_seq(const struct ck_machine *m); /* for begun_seq of a list */

/* -- questions -- */

/* has the first list of each kind succeeded? */
bool ck_machine_reconciled(const struct ck_machine *m);
struct ck_counters *ck_machine_counters(struct ck_machine *m);
/* when the oldest creation or start of an earlier life began that was given up, though the runtime
 * may still be at it; 0: there is none */
uint64_t ck_machine_gave_up(const struct ck_machine *m);
struct ck_entry *ck_machine_entry(struct ck_machine *m, uint64_t row);
struct ck_entry *ck_machine_entries(struct ck_machine *m); /* all, through by_row.next */
struct ck_entry *ck_machine_object(struct ck_machine *m, enum ck_kind kind, const char *id);
/* the first entry (@after NULL), or the next one, that is not @entry and has its key */
struct ck_entry *ck_machine_same_key(const struct ck_entry *entry, const struct ck_entry *after);
/* a number that changes whenever what is hidden, or by what it is hidden, may have changed */
uint64_t ck_machine_moves(const struct ck_machine *m);
/* everything but COMMITTED and ENDED; tombstones too */
bool ck_machine_hidden(const struct ck_entry *entry);
/* plugins know it or are being told of it, and it is not gone: it is in the first list of a new
 * plugin (H1) */
bool ck_machine_told(const struct ck_entry *entry);
/* a call that lists has begun: tombstones stay until it has ended (K21) */
void ck_machine_view_opened(struct ck_machine *m, uint64_t *ret_seq);
void ck_machine_view_closed(struct ck_machine *m, uint64_t seq);
#endif
