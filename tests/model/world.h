/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_TESTS_MODEU_WORLD_H
#define CK_TESTS_MODEU_WORLD_H
/*
 * A world around the machine, small enough to be known completely: a runtime with objects and
 * creations in flight, callers, plugins with pending answers, a database, and a clock that is set.
 * The database is a copy of the rows of the last round that was written. Each world_*() function
 * below is one thing that happens. It is fed to the machine. Unless @more is set the round ends:
 * rows are written, the machine is told, its answers are delivered, and its wants become jobs in
 * flight.
 *
 * oracle.c watches. It knows the world as it is and the machine by its interface only, and
 * complains in @failure. Labels name callers and what they make: caller 3 makes creation 3, which
 * becomes object 3.
 */
#include <stdbool.h>
#include <stdio.h>

#include "cache/machine/machine.h"
#include "src/base/limits.h"

#define MS CK_NS_PER_MS
#define S  CK_NS_PER_S

enum {
	WORLD_PODS = 12,
	WORLD_LABELS = 64,
	WORLD_OBJECTS = 64,
	WORLD_ROWS = 192,
	WORLD_KEYS = 96,
	WORLD_JOBS = 64,
	WORLD_VIEWS = 4,
	WORLD_ID = 24,
};

/* ---- the table, state by event --------------------------------------------------------------- */

enum column {
	COL_CREATING,
	COL_UNKNOWN,
	COL_KEPT,
	COL_COMMITTING,
	COL_COMMITTED,
	COL_ENDED,
	COL_EVICTING,
	COLS,
	COL_NONE
};

#define C_ (1 << COL_CREATING)
#define U_ (1 << COL_UNKNOWN)
#define K_ (1 << COL_KEPT)
#define G_ (1 << COL_COMMITTING)
#define D_ (1 << COL_COMMITTED)
#define N_ (1 << COL_ENDED)
#define E_ (1 << COL_EVICTING)
/* event, words, the columns in which it can happen */
#define CELL_ROWS(X) \
	X(SAME, "same request", C_ | U_ | K_ | G_ | D_ | N_ | E_) \
	X(OTHER_FP, "other fingerprint", C_ | U_ | K_ | G_ | D_ | N_ | E_) \
	X(OTHER_ATTEMPT, "other attempt", C_ | U_ | K_ | G_ | D_ | N_ | E_) \
	X(OTHER_UID, "other uid of the name", C_ | U_ | K_ | G_ | D_ | N_ | E_) \
	X(FINISH, "finish", C_ | U_ | E_) \
	X(FAIL, "definite failure", C_ | U_ | E_) \
	X(LOSE, "lost", C_ | U_ | E_) \
	X(LEAVE, "caller gone", C_ | U_ | K_ | G_ | D_ | E_) \
	X(MARGIN, "margin reached", C_ | U_ | K_ | G_ | E_) \
	X(AGREE, "hooks agree", G_ | E_) \
	X(REFUSE, "hooks refuse", G_ | E_) \
	X(PLUGIN, "required plugin absent", K_) \
	X(DEAD, "object seen dead", C_ | U_ | K_ | G_ | D_ | N_ | E_) \
	X(STARTING, "start requested", K_ | G_ | D_ | N_ | E_) \
	X(STOPPED, "sandbox stopped", C_ | U_ | K_ | G_ | D_ | N_ | E_) \
	X(REMOVED, "sandbox removed", C_ | U_ | K_ | G_ | D_ | N_ | E_) \
	X(EXPIRE, "TTL", U_ | K_ | G_) \
	X(DESTROYED, "destroyed", D_ | N_ | E_) \
	X(NOT_DESTROYED, "not destroyed", D_ | N_ | E_) \
	X(IN_USE, "found in use", U_ | K_ | G_ | E_) \
	X(ABSENT, "absent from a later list", C_ | U_ | K_ | G_ | D_ | N_ | E_) \
	X(EVICT, "admin evict", C_ | U_ | K_ | G_ | D_ | N_) \
	X(RELEASE, "admin release", E_) \
	X(WRITE, "write fails", C_ | U_ | K_ | G_ | D_ | N_ | E_) \
	X(RESTART, "restart", C_ | U_ | K_ | G_ | D_ | N_ | E_)

enum cell_row {
#define CELL_ENUM(name, text, columns) CELL_##name,
	CELL_ROWS(CELL_ENUM)
#undef CELL_ENUM
		CELLS
};

/* how often each cell was met with the right result */
typedef uint64_t coverage[CELLS][COLS];
unsigned coverage_print(coverage counts, FILE *to); /* returns how many cells were never met */

/* ---- requests -------------------------------------------------------------------------------- */

struct fp {                     /* stands for a struct ck_fingerprint */
	unsigned char base;     /* 2 differs from 0 in its image reference only */
	unsigned char cosmetic; /* labels and annotations */
};

struct request {
	enum ck_kind kind;
	/* uid 1: another uid under the same name; name 1: another name for the same uid */
	unsigned char pod, uid, name;
	unsigned char attempt;
	struct fp fp;
	int in; /* container: label of its sandbox; < 0: an unknown sandbox */
};

/* ---- what there is --------------------------------------------------------------------------- */

struct caller {
	bool used;
	bool here;   /* its caller still waits */
	bool making; /* may call finish, fail, lost */
	/* the answer of begin or finish is heard when the round is settled */
	bool fresh;
	bool drain; /* @removal, not @turn */
	struct request req;
	struct ck_mturn turn;
	struct ck_removal removal;
	struct fp fp;
	int key;                             /* number in keys[] */
	uint64_t began, deadline, margin_at; /* by the rules, not by the turn */
	unsigned order;
	uint64_t making_row; /* the entry it makes or made */
	enum column before;  /* for the oracle, of a caller whose margin is near */
	bool shared;         /* the same */
	int heard;           /* its last answer; CK_WAIT: none */
	uint64_t row;        /* of the answer */
	char id[WORLD_ID];
	bool reported;
};

enum creation_state { CREATION_RUNNING = 1, CREATION_MADE, CREATION_FAILED };

struct creation {
	enum creation_state state;
	bool told;     /* its caller has heard the end */
	bool reserved; /* the runtime has the name already and will say ALREADY_EXISTS */
	/* given up by the rules, or its row never reached the disk: nothing of it is judged */
	bool exempt;
	int label, key;
	struct request req;
	uint64_t row;
	int object; /* MADE: the object */
};

struct object {
	int label, key;
	struct request req; /* that made it */
	enum ck_kind kind;
	enum ck_condition condition; /* ABSENT: gone */
	uint64_t row;                /* of the creation that made it; 0: not ours */
	bool exempt;
	bool stopping;
	bool stop_known; /* in this life, or on disk */
	bool ran;        /* it runs, or did */
	bool called;     /* a container: its start is under way */
	bool listed;     /* a container: in the last whole list since the start */
	uint64_t created_at;
	char id[WORLD_ID];
};

struct job {
	unsigned want; /* enum ck_want; 0: a whole list */
	uint64_t row;
	enum ck_kind kind;
	uint64_t begun_seq, begun_at;
	unsigned begun_event;
	/* asked anew while an older one was in flight; their answers cannot be told apart */
	bool again;
	unsigned n; /* list: objects that were there when it began */
	unsigned char object[WORLD_OBJECTS], condition[WORLD_OBJECTS];
};

struct view { /* a list in flight */
	bool open;
	uint64_t seq;
	struct job list;
};

struct shadow { /* what is known about an entry from outside, and its past */
	bool alive;
	enum ck_state state;
	unsigned flags;
	enum ck_phase phase;
	enum ck_reason reason;
	enum ck_origin origin;
	enum ck_kind kind;
	int key;
	char id[WORLD_ID];
	unsigned moved_event, tried_event; /* of the last move, of the last destroy */
	unsigned stamp, life;              /* life: of the machine that made or restored it */
	uint64_t created, lost_at, absent_since, absent_at, interest, failed_at;
	unsigned fails;  /* destroys in a row that failed */
	unsigned handed; /* answers that were not reported on */
	unsigned run, stop, stop_done, removed, removed_done, resent;
	unsigned checks; /* answers to "is it in use?" since it is EVICTING (K22) */
	bool found_used; /* the last of them said yes */
	bool holds_stranger; /* a list had a container in it that no entry has */
	bool shortened;  /* a new reason came (K18) */
	bool was_kept; /* so handing it over is handing it back */
	bool failing, released, dead_seen, running_seen, running_hidden, used, delivered, committed,
		hooks_chosen;
	bool waited; /* somebody waited for it at the last look */
	enum ck_start start, start_saved; /* by the rules; as it must be on disk */
	uint64_t start_began, start_lost;
	bool start_resumed;
};

struct stored { /* a row in the database */
	bool used;
	unsigned boot; /* the boot in which it was written */
	struct ck_row row;
};

struct world_config {
	struct ck_rules rules;
	unsigned pods;
	const char *told; /* with rules.hooks, the plugins to tell; "": nobody */
};

struct world {
	struct world_config config;
	struct ck_machine *m;
	uint64_t now, expired_at;
	/* sandboxes that nobody waited for became visible then; the oldest is at offers modulo
	 * room */
	uint64_t offered[CK_OFFERS_AT_ONCE];
	unsigned offers;
	unsigned event; /* how many things were fed */
	unsigned in_round;
	bool more; /* the round goes on */
	bool disk_broken, plugin_absent;
	bool unreadable; /* what requests that are not the same differ in cannot be read */
	unsigned life, boot, jitter_count;
	unsigned char digest_key;
	bool list_done[CK_CONTAINER + 1]; /* a whole list has come since the start */
	uint64_t opened;
	struct caller callers[WORLD_LABELS];
	struct creation creations[WORLD_LABELS];
	unsigned creations_n;
	struct object objects[WORLD_OBJECTS];
	unsigned objects_n;
	struct job jobs[WORLD_JOBS];
	unsigned jobs_n;
	struct view views[WORLD_VIEWS];
	struct stored db[WORLD_ROWS];
	struct shadow shadows[WORLD_ROWS];
	uint64_t rows_n; /* ids given out, from 1 */
	struct {
		struct ck_key *key;
		int slot, name, pod; /* first key with the same slot, runtime name, pod name */
		unsigned stamp;
	} keys[WORLD_KEYS];
	int keys_n;
	struct {
		char id[WORLD_ID];
		enum ck_kind kind;
		uint64_t row, until;
		unsigned event;
	} tombs[WORLD_OBJECTS];
	unsigned tombs_n;
	size_t history_seen;
	unsigned stamp;
	unsigned orders;
	uint64_t starting_row;  /* a call that is being fed starts this one */
	uint64_t inspected_row; /* the answer being fed says that this row is ready */
	bool taker;             /* before the event somebody could be handed what exists */
	int newest;             /* the newest live caller of the key before the event; -1: none */
	char failure[512];
	uint64_t (*cells)[COLS]; /* coverage, or NULL */
};

/* hooks with one recipient, a host that offers everything, the usual durations */
struct world_config world_config(void);
void world_init(struct world *w, const struct world_config *config, coverage *cells);
void world_fini(struct world *w);
/* ends everything in good order: callers leave, the runtime and the plugins do as asked, time
 * passes. Nothing may be left. */
void world_drain(struct world *w);

/* ---- what can happen ------------------------------------------------------------------------- */

/* An event without anything to happen to does nothing, so that a script stays valid when lines are
 * left out. */

int world_begin(struct world *w, int label, const struct request *req, uint64_t timeout,
		bool expired);
void world_leave(struct world *w, int label);
void world_drop(struct world *w, int label);
void world_report(struct world *w, int label, bool delivered);
void world_stage(struct world *w, int label);
/* the creation succeeds; @heard false: its caller does not hear it yet, or ever */
int world_finish(struct world *w, int label, bool heard);
int world_fail(struct world *w, int label, int grpc, bool heard);
void world_lose(struct world *w, int label);
int world_remove_begin(struct world *w, int label, int sandbox, uint64_t timeout);

enum how {
	HOW_OK,
	HOW_FAILED,
	HOW_FRESH, /* a list shows what is there now, not when it began */
	HOW_DONE_UNHEARD
};
void world_inspected(struct world *w, unsigned nth, bool known);
void world_listed_entry(struct world *w, unsigned nth, enum how how);
void world_destroyed(struct world *w, unsigned nth, enum how how);
void world_hooked(struct world *w, unsigned nth, bool agree);
void world_no_memory(struct world *w, unsigned want); /* to start such a job */
void world_listed(struct world *w, unsigned nth, enum how how);
void world_view_open(struct world *w, unsigned nth, enum ck_kind kind);
void world_view_close(struct world *w, unsigned nth, enum how how);

/* an object that is not ours appears; @twin: the runtime has another one of this name, whose id is
 * known */
void world_external(struct world *w, int label, const struct request *req,
		    enum ck_condition condition, bool twin);
/* changes without being seen; ABSENT: it vanishes */
void world_condition(struct world *w, int label, enum ck_condition condition);
void world_seen(struct world *w, int label);
void world_used(struct world *w, int label);
void world_starting(struct world *w, int label); /* StartContainer names it */
/* the host starts it, and hears how that ended */
int world_start_begin(struct world *w, int label);
void world_start_end(struct world *w, int label, enum ck_start_end end);
void world_stopping(struct world *w, int label);
void world_forget(struct world *w, int label); /* the kubelet removes it */
void world_evict(struct world *w, unsigned nth, bool release);

void world_time(struct world *w, uint64_t ns);  /* time passes, and every timer due by then fires */
void world_stall(struct world *w, uint64_t ns); /* time passes without timers */
void world_next(struct world *w);               /* time passes until the next timer */
void world_disk(struct world *w, bool broken);
void world_new_database(struct world *w); /* the old one was set aside (K33) */
enum crash {
	CRASH_LATE = 1, /* after the write, before answers and wants are carried out */
	CRASH_REBOOT = 2,
	CRASH_NEW_KEY = 4
};
void world_crash(struct world *w, unsigned how);

/* ---- asking ---------------------------------------------------------------------------------- */

bool same_pod(const struct ck_key *a, const struct ck_key *b);
int world_key(struct world *w, const struct ck_key *key); /* its number in keys[] */
/* the entry that this caller made or was answered from; or NULL */
struct ck_entry *world_entry(struct world *w, int label);
/* the most important entry of this key */
struct ck_entry *world_key_entry(struct world *w, int key);
/* the latest object of this label; or NULL */
struct object *world_object(struct world *w, int label);
struct object *world_object_of(struct world *w, const char *id);
/* one that runs, or has ended and is not told yet; or NULL */
struct creation *world_creation(struct world *w, int label);
struct job *world_job(struct world *w, unsigned want, unsigned nth);
bool world_shown(struct world *w, int label); /* would a list show it? */
bool world_serving(const struct world *w);    /* the first lists have come, or are not waited for */
int world_outcome(struct world *w, int label); /* its last answer */
void world_print(struct world *w, FILE *to);   /* the whole world, for debugging */
enum ck_relation world_compare(struct world *w, const struct ck_entry *e, const struct fp *fp);

#endif
