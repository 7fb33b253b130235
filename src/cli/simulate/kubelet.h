/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_CLI_SIMULATE_KUBELET_H
#define CK_CLI_SIMULATE_KUBELET_H
/*
 * The kubelet's side of creates, as read in v1.20 and seen at its socket:
 *   - a worker per pod: sandbox, then each container create and start, strictly one after another;
 *     an error of one container does not stop the next, an error of the sandbox ends the sync;
 *   - a failed sync is repeated after 10 to 15 s, found by a ticker of 1 s, whatever the error was;
 *   - a list each second; a sandbox that became READY or a container that runs wakes the worker at
 *     once, a container that became CREATED does not. A sync begins with a list younger than the
 *     end of the one before;
 *   - a READY sandbox in the list is adopted, whoever made it; a container's attempt is that of its
 *     newest listed predecessor plus 1, and CREATED counts as one;
 *   - once a minute containers that do not run are removed but for the newest of each name, and all
 *     of a deleted pod.
 */
#include "src/cli/simulate/simulation.h"

/* ck_kubelet_open - lay out the pods and let them come. Return: 0, -CK_ENOMEM */
int ck_kubelet_open(struct ck_simulation *sim);
void ck_kubelet_close(struct ck_simulation *sim);
/* ck_kubelet_answer - what a create comes to: @object, or @grpc (not 0) if it is NULL. The kubelet
 * goes on with it after the caller returned */
void ck_kubelet_answer(struct ck_simulation *sim, struct ck_simulation_call *call, int grpc,
		       struct ck_simulation_object *object);
/* ck_kubelet_list_soon - the next list may show something new */
void ck_kubelet_list_soon(struct ck_simulation *sim);
/* ck_kubelet_started - StartContainer succeeded */
void ck_kubelet_started(struct ck_simulation_object *object);
/* ck_kubelet_fail_calls - the runtime is gone: every call ends with UNAVAILABLE */
void ck_kubelet_fail_calls(struct ck_simulation *sim);
/* ck_kubelet_restart - its process ends: all calls are dropped; another life begins
 * CK_SIMULATION_RESTART later */
void ck_kubelet_restart(struct ck_simulation *sim);
/* ck_kubelet_uses - is the object part of a pod that runs? */
bool ck_kubelet_uses(const struct ck_simulation_object *object);
#endif
