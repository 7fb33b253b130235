/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_TESTS_FIXTURE_H
#define CK_TESTS_FIXTURE_H
/*
 * A cache in its own directory, with a clock that only the test moves, a runtime that is a table in
 * memory, and plugins that record what they hear. Each call of the host is answered at once, or
 * with an error, or is held back until the test releases it. The library's thread may call all of
 * it; a test reads what was recorded.
 */
#include <pthread.h>
#include <stdbool.h>

#include "tests/unit/harness.h"
#include "src/crikeep.h"
#include "src/base/limits.h"

enum fx_call { FX_INSPECT, FX_LIST, FX_DESTROY, FX_RESOLVE, FX_RUN, FX_STOP, FX_REMOVE, FX_CALLS };

/* what a request says; NULL and 0 are left out. Two requests with equal members are the same
 * request */
struct fx_ask {
	enum ck_kind kind;
	const char *name, *ns, *uid; /* of the pod */
	const char *sandbox, *container;
	uint32_t attempt;
	const char *image, *env, *label, *note; /* note: an annotation "note", of the pod */
	const char *annotation;                 /* its name; the value is different each time */
	uint64_t timeout;
	bool expired;
};

struct fx_object {
	enum ck_kind kind;
	enum ck_condition condition;
	char id[80], name[64], ns[64], uid[64], sandbox[80], container[64];
	uint32_t attempt;
	uint64_t created_at;
};

struct fx_held {
	enum fx_call call;
	struct ck_job *job;
	struct ck_filter filter; /* FX_LIST; strings in the two below */
	char id[80];             /* or the uid or sandbox of a filter */
};

struct fixture {
	char dir[256];
	struct ck_options options;
	struct ck_host host;
	struct ck_hooks hooks;
	struct ck_cache *cache;
	struct ck_error err;
	bool threaded; /* the library's thread runs the event loop */
	uint64_t now;  /* atomic */

	/* guards everything below; a test may change it when nothing moves: see fx_settle() */
	pthread_mutex_t lock;
	pthread_cond_t called;
	struct fx_object *objects;
	size_t objects_n, objects_room;
	bool hold[FX_CALLS]; /* keep the job until fx_release() */
	int fail[FX_CALLS];  /* a gRPC code to answer with; of hooks: refuse */
	struct fx_held held[1024];
	size_t held_n;
	unsigned asked[FX_CALLS], ended[FX_CALLS];
	unsigned list_size; /* of the last list */
	char destroyed[64][80];
	unsigned destroyed_n;
	char names[128];  /* whom choose picks */
	char absent[64];  /* a required plugin that is not there */
	char refusal[256];
	const char *message; /* of what fails */
	/* the names of those an event was really sent to; NULL: the hooks do not say */
	const char *sent;
	char heard[8192]; /* "choose s1 RUN s1 ..." */
	char log[65536];
	char resolved[64]; /* what every image reference means; "" is unknown */
};

/* the directory, the clock at 1,000 s, options without hooks; not open yet */
struct fixture *fixture_new(void);
void fixture_free(struct fixture *f); /* closes it too */
int fixture_set_up(void **state);     /* *state is a fixture */
int fixture_tear_down(void **state);
#define ON_FIXTURE(test) cmocka_unit_test_setup_teardown(test, fixture_set_up, fixture_tear_down)
void fx_open(struct fixture *f);      /* fails the test if it cannot */
void fx_close(struct fixture *f);
void fx_reopen(struct fixture *f); /* close, and open again in the same process */
/* close while jobs are held back; they end afterwards, without effect */
void fx_cut(struct fixture *f);
/* the library runs the event loop from now on, also after a reopen */
void fx_thread(struct fixture *f);
void fx_with_hooks(struct fixture *f, const char *names); /* before fx_open() */

uint64_t fx_now(const struct fixture *f);
/* until nothing is due now, whether the library or the test runs the event loop */
void fx_settle(struct fixture *f);
void fx_advance(struct fixture *f, uint64_t by);   /* stops at each timer in between */
void fx_jump(struct fixture *f, uint64_t by);      /* does not stop at timers */
/* until the call came so often and, if not held back, was answered */
void fx_wait_asked(struct fixture *f, enum fx_call call, unsigned n);

/* requests */
/* uid "uid-NAME", ns "shop", 10 s */
struct fx_ask fx_sandbox(const char *name);
/* of that pod */
struct fx_ask fx_container(const char *pod, const char *sandbox, const char *name);
size_t fx_bytes(const struct fx_ask *ask, unsigned char *buf, size_t size);
/* f->err says why */
int fx_begin(struct fixture *f, const struct fx_ask *ask, struct ck_turn **ret_turn);
/* begun, and it is CK_CREATE */
struct ck_turn *fx_create(struct fixture *f, const struct fx_ask *ask);
/* begun, and it is CK_WAIT */
struct ck_turn *fx_wait(struct fixture *f, const struct fx_ask *ask);
/* a recorded request; @attempt replaces that of its metadata, -1 leaves the bytes as they are */
size_t fx_recorded(const char *name, enum ck_kind kind, int attempt, unsigned char *buf,
		   size_t size);

/* the runtime */
/* READY from now on */
struct fx_object *fx_exists(struct fixture *f, const struct fx_ask *ask, const char *id);
void fx_condition(struct fixture *f, const char *id, enum ck_condition condition);
bool fx_has(struct fixture *f, const char *id);
void fx_vanish(struct fixture *f, const char *id);
/* what ck_turn_finish() says */
int fx_finish(struct fixture *f, struct ck_turn *turn, const char *id);
/* exists, and finished */
int fx_make(struct fixture *f, struct ck_turn *turn, const struct fx_ask *ask, const char *id);
/* begun and not finished before its caller is out of time; freed */
void fx_keep(struct fixture *f, const struct fx_ask *ask, const char *id);
/* begun, finished, answered; freed */
void fx_commit(struct fixture *f, const struct fx_ask *ask, const char *id);
/* Opened, pod "web" is committed as s1, @app in it is begun, and the removal of s1, which is
 * returned, waits for it. */
struct ck_turn *fx_removal_waits(struct fixture *f, const struct fx_ask *app, uint64_t timeout,
				 struct ck_turn **ret_creator);
/* answer the jobs that were held back, from the table as it is now; returns how many */
size_t fx_release(struct fixture *f, enum fx_call call);
bool fx_was_destroyed(struct fixture *f, const char *id);
/* a new view, one question */
int fx_hides(struct fixture *f, const struct fx_ask *ask, const char *id);

/* what a turn hears */
struct fx_ear {
	struct ck_turn *turn;
	int n, outcome;
};
void fx_listen(struct fx_ear *ear, struct ck_turn *turn); /* by callback */
/* the turn's decision: by ck_turn_wait() if the library runs the event loop, else by callback.
 * In the second case, CK_WAIT means that there is no decision yet. */
int fx_decision(struct fixture *f, struct ck_turn *turn);
/* CK_HAND_BACK, with that id */
void fx_answered_with(struct fixture *f, struct ck_turn *turn, const char *id);

/* the entries in the database, "KEPT s1|COMMITTED s2", read in another process */
const char *fx_rows(struct fixture *f);
const char *fx_told(struct fixture *f); /* "TOLD s1: 10-cpu|STOP_TOLD s1|...", from the history */
/* the lines of history with a detail: "EVICTING: the request changed: config.envs[LEVEL]|..." */
const char *fx_why(struct fixture *f);
uint64_t fx_counter(struct fixture *f, const char *name); /* as it is in the database */
/* of the entry with that runtime id; 0: none */
uint64_t fx_row_id(struct fixture *f, const char *id);
#endif
