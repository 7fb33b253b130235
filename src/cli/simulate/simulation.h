/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_CLI_SIMULATE_SIMULATION_H
#define CK_CLI_SIMULATE_SIMULATION_H
/*
 * crikeep simulate: one slow node in virtual time, once per policy.
 *
 *   kubelet.c  --create, remove, list-->  policy-*.c  --create, undo, remove-->  runtime.c
 *       ^                                  |      ^                                 |
 *       '------------ answer --------------'      '------------- made, removed -----'
 *
 * The kubelet and the runtime are the same under every policy. The policies differ in who gets a
 * result whose caller is gone. A random number depends on its purpose (ck_simulation_chance), not
 * on the order of draws, so under each policy the same pod has the same durations and pauses.
 *
 * All times are nanoseconds since the start of the run.
 */
#include <stdio.h>
#include "src/base/limits.h"
#include "src/cli/simulate/queue.h"
#include "src/crikeep.h"

#define CK_SIMULATION_PODS_MAX       1000u /* twice what a kubelet is made for */
#define CK_SIMULATION_CONTAINERS_MAX 16u
#define CK_SIMULATION_ID             64u /* hex digits, as runtimes make them */

/* Durations of operations that are not slow (ns), as measured with containerd 1.6 and CRI-O 1.26 on
 * a quiet machine. */
#define CK_SIMULATION_QUICK   (100 * CK_NS_PER_MS) /* a create */
#define CK_SIMULATION_START   (70 * CK_NS_PER_MS)  /* StartContainer */
#define CK_SIMULATION_REMOVE  (200 * CK_NS_PER_MS) /* stop and remove */
#define CK_SIMULATION_RESTART (1 * CK_NS_PER_S)    /* of the runtime or the kubelet */

struct ck_simulation_options {
	uint64_t create;                         /* how long a slow create takes */
	/* 0.1: each takes up to 10 percent less or more */
	double jitter;
	bool slow[CK_CONTAINER + 1];             /* by enum ck_kind: is this create the slow one? */
	uint64_t deadline;                       /* of each create, as the kubelet sends it */
	/* a pod that is not ready after this time is deleted */
	uint64_t give_up;
	uint64_t restart_at, kubelet_restart_at; /* 0: never */
	unsigned pods, containers;
	uint64_t seed;
	enum ck_hand_back hand_back;
	bool trace; /* each call of the kubelet to standard error */
};

struct ck_simulation;
struct ck_simulation_pod;

enum ck_simulation_state {
	CK_SIMULATION_GONE = 0,
	CK_SIMULATION_MAKING, /* holds its name; not visible */
	/* the creation was killed; holds its name until it is rolled back */
	CK_SIMULATION_UNDOING,
	CK_SIMULATION_EXISTS,  /* sandbox READY, container CREATED */
	CK_SIMULATION_RUNNING, /* container */
	CK_SIMULATION_REMOVING,
};

/* A sandbox or container of the runtime. */
struct ck_simulation_object {
	struct ck_simulation_object *next; /* of its pod, newest first */
	struct ck_simulation_pod *pod;
	enum ck_kind kind;
	unsigned container; /* number in the pod */
	uint32_t attempt;
	char id[CK_SIMULATION_ID + 1], sandbox_id[CK_SIMULATION_ID + 1];
	enum ck_simulation_state state;
	enum ck_simulation_state listed; /* what the kubelet saw in its last list; GONE: nothing */
	uint64_t exists_at;
	bool delivered; /* the kubelet knows its id */
	bool hidden;    /* the policy leaves it out of lists */
	struct ck_event next_state;
	/* none and ram: the create that makes it, while its caller waits */
	struct ck_simulation_call *call;
	bool kept, stale; /* ram: kept for a later create; marked by the reaper */
	/* crikeep: the turn that creates it; the kubelet's turn that removes it */
	void *maker, *remover;
	void *job; /* crikeep: the library's job that removes it */
};

/* A create in flight. */
struct ck_simulation_call {
	struct ck_simulation_pod *pod;
	bool open;
	enum ck_kind kind;
	unsigned container;
	uint32_t attempt;
	char sandbox_id[CK_SIMULATION_ID + 1];
	uint64_t began;
	unsigned serial;     /* of this pod's creates */
	struct ck_event end; /* its deadline, then its answer */
	int grpc;
	struct ck_simulation_object *object; /* the answer; none and ram: also what it creates */
	void *turn;                   /* crikeep */
};

/* A pod, and its worker in the kubelet: one sync at a time, one call at a time. */
struct ck_simulation_pod {
	struct ck_simulation *sim;
	unsigned number;
	char name[32], uid[40];
	struct ck_simulation_object *objects;
	/* creations so far: of the sandbox, of each container */
	unsigned made[1 + CK_SIMULATION_CONTAINERS_MAX];
	struct ck_simulation_call call;
	uint64_t came_at;
	bool ready, given_up;
	bool syncing;
	/* another sync must follow: after this one, or after the next list */
	bool woken;
	bool sync_failed;
	/* it has synced since the kubelet started: ended_at is valid */
	bool synced;
	uint64_t ended_at;              /* end of the last sync; the next needs a newer list */
	unsigned step;                  /* of the sync: 0 the sandbox, n the n-th container */
	char sandbox_id[CK_SIMULATION_ID + 1]; /* the sandbox of this sync */
	struct { /* per container, as listed at the start of the sync */
		bool running;
		uint32_t attempt; /* of the next create */
	} want[CK_SIMULATION_CONTAINERS_MAX];
	struct ck_simulation_object *starting; /* in StartContainer */
	struct ck_event arrival, requeue, give_up;
};

/* A policy: how the runtime treats creates whose caller is gone. A member may be NULL. */
struct ck_simulation_policy {
	const char *name, *meaning;
	/* also after the runtime restarted */
	int (*open)(struct ck_simulation *sim, struct ck_error *err);
	/* also when the runtime goes down; every open call fails afterwards */
	void (*close)(struct ck_simulation *sim);
	/* once, at the very end; also if open failed */
	void (*done)(struct ck_simulation *sim);
	/* answers with ck_kubelet_answer(), now, later or never */
	void (*create)(struct ck_simulation *sim, struct ck_simulation_call *call);
	/* the caller is gone */
	void (*gone)(struct ck_simulation *sim, struct ck_simulation_call *call);
	void (*made)(struct ck_simulation *sim, struct ck_simulation_object *object);
	/* decides which objects are hidden from the next list */
	void (*list)(struct ck_simulation *sim);
	void (*started)(struct ck_simulation *sim, struct ck_simulation_object *object);
	/* the kubelet removes it */
	void (*remove)(struct ck_simulation *sim, struct ck_simulation_object *object);
	void (*removed)(struct ck_simulation *sim, struct ck_simulation_object *object);
};
extern const struct ck_simulation_policy ck_simulation_policy_none, ck_simulation_policy_ram,
	ck_simulation_policy_crikeep;

/* What came out. Percentiles are taken from the arrays, which are sorted. */
struct ck_simulation_result {
	const struct ck_simulation_policy *policy;
	uint64_t creates[CK_CONTAINER + 1], requests[CK_CONTAINER + 1]; /* by enum ck_kind */
	/* per pod: from its coming to its last container's start; UINT64_MAX: never */
	uint64_t *ready;
	size_t pods, never;
	uint64_t *lag; /* per delivered resource: from "exists" to "the kubelet has its id" */
	size_t lags, lags_room;
	size_t left_hidden;  /* at the end: the kubelet does not know them, and never will */
	size_t left_visible; /* at the end: listed, but of no use to any pod */
};
void ck_simulation_result_fini(struct ck_simulation_result *result);

struct ck_simulation {
	const struct ck_simulation_options *options;
	const struct ck_simulation_policy *policy;
	void *state; /* the policy's own */
	struct ck_queue queue;
	struct ck_simulation_pod *pods;
	size_t unsettled;      /* pods neither ready nor given up */
	uint64_t objects;      /* ever made; numbers the ids */
	unsigned kubelet_life; /* counts its restarts */
	bool kubelet_down, runtime_down, over;
	uint64_t relisted_at; /* the kubelet's last list */
	struct ck_event relist, collect, restart, kubelet_restart, end;
	struct ck_simulation_result result;
	int failed; /* -CK_E...: the run is worth nothing; err says why */
	struct ck_error err;
};

/* ck_simulation_run - one policy from the first pod to the last; @ret_result to be freed with
 * ck_simulation_result_fini()
 * Return: 0, -CK_ENOMEM, what the policy's open said, or -CK_ECLOSED: interrupted by a signal. */
int ck_simulation_run(const struct ck_simulation_options *options,
		      const struct ck_simulation_policy *policy,
		      struct ck_simulation_result *ret_result, struct ck_error *err);
/* ck_simulation_interrupt - end the run at its next event; from a signal handler */
void ck_simulation_interrupt(void);

/* the purpose of a random number */
enum ck_simulation_chance {
	CK_CHANCE_DURATION = 1,
	CK_CHANCE_ARRIVAL,
	CK_CHANCE_BACKOFF,
	CK_CHANCE_PHASE,
	CK_CHANCE_UNDO,
	CK_CHANCE_ID,
	CK_CHANCE_REQUEST,
	CK_CHANCE_REAPER,
};
/* ck_simulation_chance - a number that depends on seed, purpose, @a and @b only */
uint64_t ck_simulation_chance(const struct ck_simulation *sim, enum ck_simulation_chance what,
			      uint64_t a, uint64_t b);
/* ck_simulation_chance_below - the same, 0 <= r < @below */
uint64_t ck_simulation_chance_below(const struct ck_simulation *sim, enum ck_simulation_chance what,
				    uint64_t a, uint64_t b, uint64_t below);
/* ck_simulation_delivered - the kubelet has the id of @object now */
void ck_simulation_delivered(struct ck_simulation *sim, struct ck_simulation_object *object);
/* ck_simulation_fail - end the run with an error; the first one counts */
void ck_simulation_fail(struct ck_simulation *sim, int r, const struct ck_error *err);
#endif
