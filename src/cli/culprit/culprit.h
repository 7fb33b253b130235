/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_CLI_CULPRIT_CULPRIT_H
#define CK_CLI_CULPRIT_CULPRIT_H
/*
 * For whom does a runtime wait that tells nothing by itself? `crikeep explain` asks this for a
 * creation, a start or an eviction that is under way. The answer is read from /proc, without the
 * owner's and the runtime's help, as root.
 *
 * Suspects are the processes that a runtime starts for this pod: CNI plugins, by their environment;
 * runc, crun, conmon and shims, by an id in their arguments or by the annotations in their bundle.
 * Who is stopped, is in state D or waits for a lock is named first, else the last one of a chain
 * that still runs. A shim or a monitor that just runs is no cause: it does so as long as its pod.
 * Only without a suspect are the runtime's NRI plugins and threads looked at. What is not certain
 * is said to be so. Processes in containers are never suspects, whatever they call themselves,
 * unless they share the node's processes (hostPID).
 *
 * Of arguments and environments nothing is ever shown.
 */
#include <json-c/json.h>

#include "src/base/limits.h"
#include "src/cli/culprit/processes.h"

enum ck_culprit_kind {
	CK_CULPRIT_RUNTIME,
	CK_CULPRIT_CNI_PLUGIN,
	CK_CULPRIT_OCI_RUNTIME,
	CK_CULPRIT_MONITOR,
	CK_CULPRIT_SHIM,
	CK_CULPRIT_NRI_PLUGIN,
};

enum ck_hang { /* the worst first */
	CK_HANG_STOPPED, /* by a signal or a debugger */
	CK_HANG_DISK,
	CK_HANG_LOCK,
	CK_HANG_RUNS,    /* it has not ended */
};

struct ck_culprit {
	enum ck_culprit_kind kind;
	enum ck_hang hang;
	bool certain; /* that this pod waits for it */
	/* the first: whom the runtime, a shim or a monitor started; the last: who hangs */
	struct ck_process chain[CK_ANCESTORS_MAX];
	size_t chain_n;
	struct ck_waiting waiting;
	struct ck_process holder; /* of the lock; pid 0: unknown */
};

struct ck_culprits {
	struct ck_culprit all[CK_CULPRITS_MAX];
	size_t n;
	char unknown[CK_CULPRIT_TEXT_MAX]; /* why nobody is named; "": somebody is */
};

struct ck_culprit_query { /* NULL: unknown */
	const char *pod_namespace, *pod, *uid;
	const char *container;       /* NULL: it is a sandbox */
	const char *sandbox_id, *id;
	const char *endpoint;        /* of the runtime */
	uint64_t since;              /* CLOCK_BOOTTIME: when it began */
	long owner;                  /* who owns the database and lives; 0: nobody */
};

/* ck_culprits_find - takes at most CK_CULPRIT_WAIT, and little more. What was found by then that
 * does not only run is named */
void ck_culprits_find(const struct ck_culprit_query *query, struct ck_culprits *ret);

struct ck_culprit_plugin { /* of the owner */
	const char *name;
	long pid;
	bool overdue; /* it owes an answer */
};
/* ck_culprits_plugins - those of @n that are overdue, or stopped, or wait for a disk; in the same
 * time */
void ck_culprits_plugins(const struct ck_culprit_plugin *plugins, size_t n,
			 struct ck_culprits *ret);

/* ck_culprit_text - one sentence or two that begin with the subject. @now: CLOCK_BOOTTIME. free()
 */
char *ck_culprit_text(const struct ck_culprit *culprit, uint64_t now);
/* ck_culprit_hint - what to do; NULL: nothing is known. free() */
char *ck_culprit_hint(const struct ck_culprit *culprit);
struct json_object *ck_culprit_tree(const struct ck_culprit *culprit, uint64_t now);
#endif
