/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_CLI_SIMULATE_KUBELET_H
#define CK_CLI_SIMULATE_KUBELET_H
/*
 * The kubelet's side of creates, as read in v1.20 and seen at its socket:
 *   - each pod has a worker. It creates the sandbox, then creates and starts each container, one
 *     after another. A failed container does not stop the next, a failed sandbox ends the sync;
 *   - a failed sync is repeated after 10 to 15 s, whatever the error was. A ticker of 1 s starts
 *     it;
 *   - the kubelet lists once a second. A sandbox that became READY or a container that runs wakes
 *     the worker at once; a container that became CREATED does not. A sync begins with a list that
 *     is newer than the end of the previous sync;
 *   - a READY sandbox in the list is adopted, whoever created it. A container's attempt is that of
 *     its newest listed predecessor plus 1, even if that is only CREATED;
 *   - once a minute, containers that do not run are removed, except the newest of each name. All
 *     objects of a deleted pod are removed.
 */
#include "src/cli/simulate/simulation.h"

/* ck_kubelet_open - allocate the pods and schedule their arrival. Return: 0, -CK_ENOMEM */
int ck_kubelet_open(struct ck_simulation *sim);
void ck_kubelet_close(struct ck_simulation *sim);
/* ck_kubelet_answer - the answer to a create: @object, or the code @grpc if it is NULL. The kubelet
 * continues after the caller has returned */
void ck_kubelet_answer(struct ck_simulation *sim, struct ck_simulation_call *call, int grpc,
		       struct ck_simulation_object *object);
/* ck_kubelet_list_soon - schedule a list: it may show something new */
void ck_kubelet_list_soon(struct ck_simulation *sim);
/* ck_kubelet_started - StartContainer succeeded */
void ck_kubelet_started(struct ck_simulation_object *object);
/* ck_kubelet_fail_calls - the runtime ended: every call fails with UNAVAILABLE */
void ck_kubelet_fail_calls(struct ck_simulation *sim);
/* ck_kubelet_restart - the kubelet's process ends and drops all calls. It starts again after
 * CK_SIMULATION_RESTART */
void ck_kubelet_restart(struct ck_simulation *sim);
/* ck_kubelet_uses - is the object part of a running pod? */
bool ck_kubelet_uses(const struct ck_simulation_object *object);
#endif
