/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CRI-O's rules, as read in 1.26 and measured with 1.26.4. A result whose caller is gone is put
 * aside in memory:
 *   - the creation runs on after its caller's deadline; the result is hidden from lists until it is
 *     asked for;
 *   - the next create of the same name takes it, whatever else it asks for: only the name is
 *     compared;
 *   - a create that finds the name taken and no result yet waits, and is held to its own deadline
 *     even when the result is there in the meantime: its answer is an error in any case;
 *   - a reaper comes once a minute: it marks a result the first time and removes it the second,
 *     whoever waits for it;
 *   - after a restart everything complete is listed.
 */
#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/cli/simulate/kubelet.h"
#include "src/cli/simulate/runtime.h"

#define REAPER_PERIOD (60 * CK_NS_PER_S)

struct ram {
	struct ck_event reaper;
	unsigned life;
};

static void reap(void *arg)
{
	struct ck_simulation *sim = arg;
	struct ram *ram = sim->state;
	for (unsigned i = 0; i < sim->options->pods; i++)
		for (struct ck_simulation_object *o = sim->pods[i].objects; o; o = o->next) {
			if (!o->kept || o->state != CK_SIMULATION_EXISTS)
				continue;
			if (o->stale)
				ck_runtime_remove(sim, o);
			o->stale = true;
		}
	ck_queue_arm(&sim->queue, &ram->reaper, sim->queue.now + REAPER_PERIOD, reap, sim);
}

static int open_store(struct ck_simulation *sim, struct ck_error *err)
{
	struct ram *ram = sim->state;
	if (!ram)
		sim->state = ram = CK_NEW(struct ram);
	if (!ram)
		return ck_nomem(err);
	uint64_t phase =
		ck_simulation_chance_below(sim, CK_CHANCE_REAPER, ram->life++, 0, REAPER_PERIOD);
	ck_queue_arm(&sim->queue, &ram->reaper, sim->queue.now + phase, reap, sim);
	return 0;
}

static void close_store(struct ck_simulation *sim)
{
	struct ram *ram = sim->state;
	ck_queue_disarm(&sim->queue, &ram->reaper);
	for (unsigned i = 0; i < sim->options->pods; i++)
		for (struct ck_simulation_object *o = sim->pods[i].objects; o; o = o->next)
			o->kept = o->stale = false;
}

static void done(struct ck_simulation *sim)
{
	free(sim->state);
	sim->state = NULL;
}

static void create(struct ck_simulation *sim, struct ck_simulation_call *call)
{
	struct ck_simulation_object *object = ck_runtime_named(call);
	if (!object) {
		call->object = ck_runtime_create(sim, call);
		if (call->object)
			call->object->call = call;
	} else if (ck_runtime_visible(object)) { /* kept, or a plain duplicate of one that was handed over */
		object->kept = object->stale = false;
		ck_kubelet_list_soon(sim);
		ck_kubelet_answer(sim, call, 0, object);
	}
	/* else it waits, and its deadline comes first */
}

static void gone(struct ck_simulation *sim, struct ck_simulation_call *call)
{
	(void)sim;
	if (call->object && call->object->call == call)
		call->object->call = NULL;
}

static void made(struct ck_simulation *sim, struct ck_simulation_object *object)
{
	struct ck_simulation_call *call = object->call;
	object->call = NULL;
	if (call)
		ck_kubelet_answer(sim, call, 0, object);
	else
		object->kept = true;
}

static void list(struct ck_simulation *sim)
{
	for (unsigned i = 0; i < sim->options->pods; i++)
		for (struct ck_simulation_object *o = sim->pods[i].objects; o; o = o->next)
			o->hidden = o->kept;
}

const struct ck_simulation_policy ck_simulation_policy_ram = {
	.name = "ram",
	.meaning = "kept in memory for 1 to 2 minutes, handed to the next of the name",
	.open = open_store,
	.close = close_store,
	.done = done,
	.create = create,
	.gone = gone,
	.made = made,
	.list = list,
	.remove = ck_runtime_remove,
};
