/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CRI-O's rules, as read in 1.26 and measured with 1.26.4. A result whose caller is gone is kept in
 * memory:
 *   - the creation continues after its caller's deadline; the result is hidden from lists until it
 *     is requested again;
 *   - the next create of the same name gets it: nothing but the name is compared;
 *   - a create whose name is taken, but has no result yet, waits until its own deadline. It fails
 *     even if the result is ready earlier;
 *   - once a minute a reaper marks every kept result, and removes those it had already marked, even
 *     if a request waits for them;
 *   - after a restart, everything complete is listed.
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
	} else if (ck_runtime_visible(object)) {
		/* kept, or handed over before */
		object->kept = object->stale = false;
		ck_kubelet_list_soon(sim);
		ck_kubelet_answer(sim, call, 0, object);
	}
	/* else it waits until its deadline */
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
	.meaning = "kept in memory for 1 to 2 minutes, for the next request of that name",
	.open = open_store,
	.close = close_store,
	.done = done,
	.create = create,
	.gone = gone,
	.made = made,
	.list = list,
	.remove = ck_runtime_remove,
};
