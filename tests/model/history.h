/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_TESTS_MODEL_HISTORY_H
#define CK_TESTS_MODEL_HISTORY_H
/*
 * A history is a script: a list of things that happen to a world. Made at random from a seed,
 * played, printed, and, when it ends in a complaint, made shorter for as long as it still ends in
 * the same rule.
 */
#include "tests/model/world.h"

enum { HISTORY_STEPS = 64 };

#define STEP_OPS(X) \
	X(BEGIN) \
	X(LEAVE) \
	X(DROP) X(REPORT) X(STAGE) X(FINISH) X(FAIL) X(LOSE) X(REMOVE_BEGIN) X(INSPECTED) \
		X(LISTED_ENTRY) X(DESTROYED) X(HOOKED) X(LISTED) X(VIEW_OPEN) X(VIEW_CLOSE) \
			X(EXTERNAL) X(CONDITION) X(SEEN) X(USED) X(STOPPING) X(FORGET) X(EVICT) \
				X(TIME) X(STALL) X(NEXT) X(DISK) X(NEW_DATABASE) X(PLUGIN) \
					X(CRASH)

enum step_op {
	STEP_NONE,
#define STEP_ENUM(name) STEP_##name,
	STEP_OPS(STEP_ENUM)
#undef STEP_ENUM
};

struct step {
	enum step_op op;
	bool more; /* the round is not closed after it */
	int label;
	unsigned nth, arg; /* arg: of the function of that name in world.h */
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

/* history_make - play a random history; @h holds its script afterwards. Returns false if it ended
 * in a complaint */
bool history_make(struct history *h, uint64_t seed, coverage *cells);
/* the script again; @trace: with the world after each step, or NULL */
bool history_play(struct history *h, FILE *trace);
void history_shrink(struct history *h);
void history_print(const struct history *h, FILE *to);
/* A death inside the machine (CK_NEVER, a bad pointer, no end) is a complaint as well. Once per
 * process. */
void history_catch_signals(void);
#endif
