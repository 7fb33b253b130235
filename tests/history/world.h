/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_TESTS_HISTORY_WORLD_H
#define CK_TESTS_HISTORY_WORLD_H
/*
 * What surrounds a cache in a random history: a runtime, plugins, callers, a clock and a disk. The
 * cache is the real one, with its database, and is used through crikeep.h. There are no threads.
 *
 * A step of a history is an operation with three numbers. The numbers choose among what is there
 * when the step is played, so a history keeps a meaning when steps are taken out of it.
 *
 * The world checks what must hold whatever the rules of the moment are: see check.c.
 */
#include <stdbool.h>
#include <stdio.h>

#include "src/base/limits.h"
#include "src/crikeep.h"

enum { OBJECTS = 96, TURNS = 40, JOBS = 128, VIEWS = 4, STEPS_MAX = 48 };
enum call { CALL_INSPECT, CALL_LIST, CALL_DESTROY, CALL_RUN, CALL_STOP, CALL_REMOVE, CALLS };

struct request {
	enum ck_kind kind;
	unsigned pod, uid, attempt, name;
	unsigned version; /* bit 0: another request; bit 1: other labels only */
	int sandbox;      /* containers: the object they are for; -1: one that nobody knows */
};

/* A creation in the runtime, and the object that it makes. */
struct object {
	struct request req;
	char id[16];
	enum { MAKING = 1, EXISTS, OVER } stage;
	enum ck_condition condition;
	uint64_t since;  /* it has no creator, or was destroyed, since */
	int turn;        /* that makes it and has not said how it ended; -1: none */
	bool doomed;     /* its name is taken: it can only fail */
	bool ours;       /* made for a turn; else somebody made it without the cache */
	bool handed;     /* to a turn */
	bool delivered;  /* the caller is known to have it */
	unsigned starting; /* the life in which its start began that has not ended; 0: none */
	bool unheard;      /* it was started, and nobody has heard that */
	bool stopping;   /* the kubelet has begun to stop it */
	bool stop_known; /* and the cache was told, when it was the kubelet's */
	bool seen_dead;  /* it died, and the cache was told */
	bool destroyed;  /* because the cache wanted it */
	/* the cache cannot know all about it: the disk was full before a crash, or an administrator
	 * released it */
	bool exempt;
	bool taken;                            /* used by the kubelet while the cache was away */
	unsigned planted;                      /* the number of list jobs that had begun then */
	unsigned chosen;                       /* the life in which plugins were chosen; 0: never */
	unsigned runs, stops, removes;         /* plugins were told; the last two in this life */
	bool run_done, stop_done, remove_done; /* in any life */
};

struct caller {
	struct ck_turn *turn;
	struct request req;
	int drains;  /* the object that is to be removed; -1: it is a request */
	int object;  /* handed to it, and not reported yet; or -1 */
	bool over;   /* decided for good */
	bool waited; /* before it was decided for the first time */
	bool left;   /* and so hears nothing any more, unless it creates */
	bool owed;   /* what it waits for was handed over or agreed to, and then died */
};

struct job {
	struct ck_job *job;
	enum call call;
	int object;              /* -1: none that the runtime knows */
	struct ck_filter filter; /* of a list; uid or sandbox in @of */
	char of[32];
	unsigned number;
	bool early; /* a list of what was there when it was asked for: */
	struct {
		int object;
		enum ck_condition condition;
	} had[OBJECTS];
	unsigned had_n;
};

struct disk { /* the files of a database, as they are at one moment */
	struct {
		void *bytes;
		size_t len;
	} file[3];
};

struct world {
	char dir[64];
	struct ck_options options;
	struct ck_host host;
	struct ck_hooks hooks;
	struct ck_cache *cache;
	uint64_t now, seed;
	unsigned life, lists;
	struct object objects[OBJECTS];
	int objects_n;
	struct caller callers[TURNS];
	struct request asked[STEPS_MAX]; /* what anybody ever asked for */
	int asked_n;
	struct ck_view *views[VIEWS];
	struct job jobs[JOBS]; /* that are held back */
	unsigned jobs_n;
	bool hold[CALLS], fail[CALLS], absent;
	const char *names; /* of plugins */
	bool disk_full;    /* no round can be written */
	bool lags;         /* the database may be behind memory */
	bool awaits_fault; /* one write will fail */
	const char *crash; /* "before" or "after" the next commit */
	bool dead;         /* it was killed: what it does from here on has no effect */
	struct disk left;  /* what was on disk then */
	FILE *trace;
	char failure[400]; /* empty: all is well */
	struct tally {
		unsigned long begun, handed, kept, destroyed, crashes, reboots, told, faults;
	} tally;
};

/* ---- world.c: life and time ------------------------------------------------------------------ */

void world_init(struct world *w, uint64_t seed, FILE *trace);
void world_fini(struct world *w);
void world_close_inotify(void); /* that the process kept for all its lives */
void world_open(struct world *w);
/* close it, or find it killed; creations that are running lose their creators */
void world_end_life(struct world *w, bool creations_die);
void world_disk_is(struct world *w, bool full);
void world_reboot(struct world *w); /* between two lives */
void world_kill(struct world *w);   /* now */
void world_settle(struct world *w); /* until nothing is due */
void world_advance(struct world *w, uint64_t by);
void world_say(struct world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void world_wrong(struct world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* ---- runtime.c: objects, jobs and hooks ------------------------------------------------------ */

void runtime_init(struct world *w);
int runtime_add(struct world *w, const struct request *req); /* MAKING; -1: no room */
int runtime_find(struct world *w, const char *id);
void runtime_end(struct world *w, int object);          /* it is there no more */
void runtime_orphan(struct world *w, struct object *o); /* its creator will not hear of it */
bool runtime_key_same(const struct request *a, const struct request *b);
bool runtime_name_same(const struct request *a, const struct request *b);
void runtime_answer(struct world *w, unsigned job); /* one that was held back */
void runtime_drop_jobs(struct world *w);            /* after the life that asked */
void runtime_orphans(struct world *w);              /* those whose time has come end */
uint64_t runtime_due(const struct world *w);
const char *runtime_pod(const struct request *req);
const char *runtime_uid(const struct request *req);
const char *runtime_container(const struct request *req);
const char *runtime_sandbox(const struct world *w, const struct request *req);
void runtime_object(const struct world *w, int object, enum ck_condition condition,
		    struct ck_object *ret);

/* ---- callers.c: what the kubelet does -------------------------------------------------------- */

void callers_begin(struct world *w, const struct request *req, uint64_t timeout, bool expired);
void callers_remove(struct world *w, int object, uint64_t timeout);
void callers_finish(struct world *w, int object); /* it exists, and the creator says so */
void callers_fail(struct world *w, int object);
void callers_lose(struct world *w, int object);
void callers_report(struct world *w, struct caller *c, bool delivered);
void callers_free(struct world *w, struct caller *c);

/* ---- check.c --------------------------------------------------------------------------------- */

void check_create(struct world *w, const struct caller *c);
void check_handed(struct world *w, const struct caller *c, int object);
void check_drained(struct world *w, int object);
void check_destroy(struct world *w, int object);
void check_outcome(struct world *w, int outcome);
void check_step(struct world *w);     /* after each step */
void check_end(struct world *w);      /* when all callers have returned and time has passed */
void check_database(struct world *w); /* after a life */

/* ---- steps.c --------------------------------------------------------------------------------- */

struct step {
	unsigned char op, a, b, c;
};
struct step step_random(uint64_t *random);
void step_play(struct world *w, const struct step *step);
void step_drain(struct world *w); /* everything gets a chance to end */
#endif
