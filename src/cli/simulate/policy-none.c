/* SPDX-License-Identifier: Apache-2.0 */
/*
 * containerd's rules, as read in 1.6 and 2.x and measured with 1.6.20. Nothing is kept:
 *   - a second create of a name is refused, whether the first is running, finished or being rolled
 *     back;
 *   - RunPodSandbox stops at the caller's deadline and rolls everything back; the name is free a
 *     moment later;
 *   - CreateContainer ignores the deadline: the container is completed and listed as CREATED, and
 *     its name stays taken.
 * Not modelled: a slow step of a sandbox that ignores the deadline. Such a sandbox is completed
 * late, and the kubelet adopts it.
 */
#include "src/base/error.h"
#include "src/cli/simulate/kubelet.h"
#include "src/cli/simulate/runtime.h"

#define UNDO_MIN    (30 * CK_NS_PER_MS)
#define UNDO_SPREAD (120 * CK_NS_PER_MS)

static void create(struct ck_simulation *sim, struct ck_simulation_call *call)
{
	if (ck_runtime_named(call)) {
		/* "failed to reserve name ...: is reserved for ..." */
		ck_kubelet_answer(sim, call, CK_GRPC_UNKNOWN, NULL);
		return;
	}
	call->object = ck_runtime_create(sim, call);
	if (call->object)
		call->object->call = call;
}

static void gone(struct ck_simulation *sim, struct ck_simulation_call *call)
{
	struct ck_simulation_object *object = call->object;
	if (!object)
		return;
	object->call = NULL;
	if (object->state == CK_SIMULATION_MAKING && object->kind == CK_SANDBOX) {
		uint64_t more = ck_simulation_chance_below(sim, CK_CHANCE_UNDO, call->pod->number,
							   call->serial, UNDO_SPREAD);
		ck_runtime_undo(sim, object, UNDO_MIN + more);
	}
}

static void made(struct ck_simulation *sim, struct ck_simulation_object *object)
{
	struct ck_simulation_call *call = object->call;
	object->call = NULL;
	if (call)
		ck_kubelet_answer(sim, call, 0, object);
}

const struct ck_simulation_policy ck_simulation_policy_none = {
	.name = "none",
	.meaning = "not kept: late sandboxes are undone, late containers created again",
	.create = create,
	.gone = gone,
	.made = made,
	.remove = ck_runtime_remove,
};
