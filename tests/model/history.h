/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_TESTS_MODEL_HISTORY_H
#define CK_TESTS_MODEL_HISTORY_H
/*
 * A history is a script: a list of things that happen to a world. It is made at random from a seed,
 * played and printed. If it ends in a complaint, it is shortened for as long as it ends in the same
 * one.
 */
#include "tests/model/world.h"

enum { HISTORY_STEPS = 64 };

#define STEP_OPS(X) \
	X(BEGIN) X(LEAVE) X(DROP) X(REPORT) X(STAGE) X(FINISH) X(FAIL) X(LOSE) X(REMOVE_BEGIN) \
	X(INSPECTED) X(LISTED_ENTRY) X(DESTROYED) X(HOOKED) X(LISTED) X(VIEW_OPEN) X(VIEW_CLOSE) \
	X(EXTERNAL) X(CONDITION) X(SEEN) X(USED) X(STARTING) X(START_BEGIN) X(START_END) \
	X(STOPPING) X(FORGET) X(EVICT) X(TIME) X(STALL) X(NEXT) X(DISK) X(NEW_DATABASE) \
	X(PLUGIN) X(CRASH)

enum step_op {
	STEP_NONE,
#define STEP_ENUM(name) STEP_##name,
	STEP_OPS(STEP_ENUM)
#undef STEP_ENUM
};

struct step {
	enum step_op op;
	bool more; /* the round goes on after it */
	int label;
	unsigned nth, arg; /* arg: for the function of that name in world.h */
	uint64_t time;
	struct request req;
};

struct history {
	uint64_t seed;
	struct world_config config;
	unsigned n;
	struct step steps[HISTORY_STEPS];
	char failure[512]; /* empty: all is well */
};

/* history_make - play a random history; afterwards @h holds its script. false: it ended in a
 * complaint */
bool history_make(struct history *h, uint64_t seed, coverage *cells);
/* plays the script again; prints the world after each step to @trace unless it is NULL */
bool history_play(struct history *h, FILE *trace);
void history_shrink(struct history *h);
void history_print(const struct history *h, FILE *to);
/* A crash of the machine (CK_NEVER, a bad pointer, an endless loop) is a complaint as well. Called
 * once per process. */
void history_catch_signals(void);
#endif
