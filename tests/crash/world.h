/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_TESTS_WORLD_H
#define CK_TESTS_WORLD_H
/*
 * An example runtime in its own directory. A test starts, calls and kills it, and starts it again.
 * The runtime's own logs, which survive every crash, tell what happened. One thread starts and
 * kills a world; any thread may call it.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "src/crikeep.h"

#define WORLD_ARGS 32
#define WORLD_ID   32

struct world {
	char dir[96], socket[112];
	const char *program; /* "armed-blocking" or "armed-loop" */
	pid_t pid;           /* 0: not running */
	uint64_t random;
};

struct world_event { /* of DIR/creations */
	unsigned long long ms;
	char what[16], id[WORLD_ID], label[128];
};

struct world_list { /* of LIST, LIST-ALL */
	struct world_object {
		bool sandbox;
		char id[WORLD_ID], uid[64], container[64];
		unsigned condition, attempt;
	} v[64];
	size_t n;
};

unsigned world_random(struct world *world, unsigned below);
unsigned long world_env(const char *name, unsigned long otherwise);
unsigned long long world_now(void); /* ms */
void world_sleep(unsigned ms);

bool world_make(struct world *world, const char *program, uint64_t seed); /* false: no directory */
void world_remove(struct world *world);                                   /* the directory, too */

/* world_start - with options of the runtime, ended by NULL, and @crash for tests/crash/arm.c or
 * NULL. Waits until it listens. */
bool world_start(struct world *world, const char *crash, const char *const *args);
void world_kill_it(struct world *world); /* SIGKILL */
int world_stop(struct world *world);  /* SIGTERM. Return: its wait status */
/* world_died - did it end by itself? @ret_status: its wait status. The world is not running
 * afterwards. */
bool world_died(struct world *world, int *ret_status);

/*
 * world_create - one create as a kubelet sends it: it hangs up at the deadline. Two requests that
 * differ in nothing but @label or in being sent twice are the same; @version changes a field that
 * counts.
 * Return: 0, @answer is an id; > 0: the gRPC code, @answer is the text; -ETIMEDOUT, or another
 * -errno: no answer.
 */
struct world_request {
	const char *pod;
	const char *sandbox_id, *container; /* NULL: the pod's sandbox */
	unsigned attempt, version, deadline_ms;
	const char *label;
	bool unread; /* hang up when the answer is there, without reading it */
};
int world_create(struct world *world, const struct world_request *request, char *answer,
		 size_t size);
int world_send(struct world *world, const char *verb, const char *what, unsigned timeout_ms,
	       const char *label, const void *body, size_t len, char *answer, size_t size);
bool world_list(struct world *world, const char *verb, struct world_list *ret_list);

/* the object as it really exists; returns false if there is none */
bool world_exists(const struct world *world, const char *id);
/* add an object that nobody has created */
bool world_plant(const struct world *world, const char *id, const char *pod, const char *sandbox_id,
		 const char *container, enum ck_condition condition);
/* to be freed */
struct world_event *world_events(const struct world *world, const char *log, size_t *ret_n);
#endif
