/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_CLI_SIMULATE_RUNTIME_H
#define CK_CLI_SIMULATE_RUNTIME_H
/* The slow runtime: which objects exist, and how long it takes to create and remove them. The
 * policy decides what is visible. */
#include "src/cli/simulate/simulation.h"

/* ck_runtime_create - begin to create what @call requests; policy->made() is called when it exists.
 * NULL: out of memory */
struct ck_simulation_object *ck_runtime_create(struct ck_simulation *sim,
					       struct ck_simulation_call *call);
/* ck_runtime_undo - kill a creation; its name is free after @delay */
void ck_runtime_undo(struct ck_simulation *sim, struct ck_simulation_object *object,
		     uint64_t delay);
/* ck_runtime_start - StartContainer; ck_kubelet_started() is called when it runs */
void ck_runtime_start(struct ck_simulation *sim, struct ck_simulation_object *object);
/* ck_runtime_remove - stop and remove it, a sandbox with its containers. policy->removed() is
 * called for each */
void ck_runtime_remove(struct ck_simulation *sim, struct ck_simulation_object *object);
/* ck_runtime_crash - the runtime's process ends: unfinished creations are lost, unfinished removals
 * are undone */
void ck_runtime_crash(struct ck_simulation *sim);
/* ck_runtime_named - the object that holds the name that @call needs, or NULL. A container's name
 * does not include its sandbox */
struct ck_simulation_object *ck_runtime_named(const struct ck_simulation_call *call);
/* ck_runtime_find - by id; NULL: gone */
struct ck_simulation_object *ck_runtime_find(struct ck_simulation *sim, const char *id);
/* ck_runtime_visible - would the runtime itself list it? */
bool ck_runtime_visible(const struct ck_simulation_object *object);
/* ck_runtime_bury - free objects that are gone and no longer in the kubelet's last list; @all: free
 * all objects */
void ck_runtime_bury(struct ck_simulation_pod *pod, bool all);
#endif
