/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_CLI_SIMULATE_RUNTIME_H
#define CK_CLI_SIMULATE_RUNTIME_H
/* The slow runtime: what exists, and how long it takes to come and to go. Who may see it is the
 * policy's business. */
#include "src/cli/simulate/simulation.h"

/* ck_runtime_create - begin to make what @call asks for; policy->made() tells when it exists. NULL:
 * out of memory */
struct ck_simulation_object *ck_runtime_create(struct ck_simulation *sim,
					       struct ck_simulation_call *call);
/* ck_runtime_undo - kill a creation; its name is free after @delay */
void ck_runtime_undo(struct ck_simulation *sim, struct ck_simulation_object *object,
		     uint64_t delay);
/* ck_runtime_start - StartContainer. ck_kubelet_started() tells that it runs */
void ck_runtime_start(struct ck_simulation *sim, struct ck_simulation_object *object);
/* ck_runtime_remove - stop and remove; with a sandbox its containers go. policy->removed() tells
 * each that is gone */
void ck_runtime_remove(struct ck_simulation *sim, struct ck_simulation_object *object);
/* ck_runtime_crash - the runtime's process ends: what was being made is lost, what was being
 * removed stays */
void ck_runtime_crash(struct ck_simulation *sim);
/* ck_runtime_named - what holds the name that @call needs, or NULL. A container's name does not
 * tell its sandbox */
struct ck_simulation_object *ck_runtime_named(const struct ck_simulation_call *call);
/* ck_runtime_find - by id; NULL: gone */
struct ck_simulation_object *ck_runtime_find(struct ck_simulation *sim, const char *id);
/* ck_runtime_visible - would the runtime itself list it? */
bool ck_runtime_visible(const struct ck_simulation_object *object);
/* ck_runtime_bury - free what is gone and out of the kubelet's last list; @all: free everything */
void ck_runtime_bury(struct ck_simulation_pod *pod, bool all);
#endif
