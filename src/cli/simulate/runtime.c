/* SPDX-License-Identifier: Apache-2.0 */
/* Objects and their states; see runtime.h. An object needs one timer only, because each state ends
 * in one way. */
#include "src/cli/simulate/runtime.h"
#include "src/base/mem.h"
#include "src/cli/simulate/kubelet.h"

/* an id begins with the number of its pod, so that ck_runtime_find() need not search all pods */
#define POD_DIGITS 4

/* How long this creation of this slot takes: the same under every policy. */
static uint64_t duration(const struct ck_simulation *sim, const struct ck_simulation_call *call,
			 unsigned slot)
{
	const struct ck_simulation_options *o = sim->options;
	if (!o->slow[call->kind])
		return CK_SIMULATION_QUICK;
	uint64_t spread = (uint64_t)((double)o->create * o->jitter);
	uint64_t drawn = ck_simulation_chance_below(sim, CK_CHANCE_DURATION,
						    (uint64_t)call->pod->number << 8 | slot,
						    call->pod->made[slot], 2 * spread + 1);
	uint64_t ns = o->create - spread + drawn;
	return ns ? ns : 1;
}

static void exists(void *arg)
{
	struct ck_simulation_object *object = arg;
	struct ck_simulation *sim = object->pod->sim;
	object->state = CK_SIMULATION_EXISTS;
	object->exists_at = sim->queue.now;
	ck_kubelet_list_soon(sim);
	sim->policy->made(sim, object);
}

struct ck_simulation_object *ck_runtime_create(struct ck_simulation *sim,
					       struct ck_simulation_call *call)
{
	struct ck_simulation_pod *pod = call->pod;
	unsigned slot = call->kind == CK_SANDBOX ? 0 : 1 + call->container;
	struct ck_simulation_object *object = CK_NEW(struct ck_simulation_object);
	if (!object) {
		sim->queue.failed = true;
		return NULL;
	}
	object->pod = pod;
	object->kind = call->kind;
	object->container = call->container;
	object->attempt = call->attempt;
	object->state = CK_SIMULATION_MAKING;
	memcpy(object->sandbox_id, call->sandbox_id, sizeof(object->sandbox_id));
	uint64_t number = sim->objects++;
	for (unsigned i = 0; i < CK_SIMULATION_ID; i += 16)
		snprintf(object->id + i, 17, "%016llx",
			 (unsigned long long)ck_simulation_chance(sim, CK_CHANCE_ID, number, i));
	char owner[POD_DIGITS + 1];
	snprintf(owner, sizeof(owner), "%0*x", POD_DIGITS, pod->number);
	memcpy(object->id, owner, POD_DIGITS);
	object->next = pod->objects;
	pod->objects = object;
	ck_queue_arm(&sim->queue, &object->next_state, sim->queue.now + duration(sim, call, slot),
		     exists, object);
	pod->made[slot]++;
	sim->result.creates[call->kind]++;
	return object;
}

static void gone(void *arg)
{
	struct ck_simulation_object *object = arg;
	struct ck_simulation *sim = object->pod->sim;
	ck_queue_disarm(&sim->queue, &object->next_state);
	object->state = CK_SIMULATION_GONE;
	ck_kubelet_list_soon(sim);
	if (sim->policy->removed)
		sim->policy->removed(sim, object);
	if (object->kind != CK_SANDBOX)
		return;
	/* As with containerd, a container that is still being created outlives its sandbox. */
	for (struct ck_simulation_object *c = object->pod->objects; c; c = c->next)
		if (c->kind == CK_CONTAINER && strcmp(c->sandbox_id, object->id) == 0 &&
		    (c->state == CK_SIMULATION_EXISTS || c->state == CK_SIMULATION_RUNNING ||
		     c->state == CK_SIMULATION_REMOVING))
			gone(c);
}

void ck_runtime_undo(struct ck_simulation *sim, struct ck_simulation_object *object, uint64_t delay)
{
	object->state = CK_SIMULATION_UNDOING;
	ck_queue_arm(&sim->queue, &object->next_state, sim->queue.now + delay, gone, object);
}

static void running(void *arg)
{
	struct ck_simulation_object *object = arg;
	struct ck_simulation *sim = object->pod->sim;
	object->state = CK_SIMULATION_RUNNING;
	ck_kubelet_list_soon(sim);
	if (sim->policy->started)
		sim->policy->started(sim, object);
	ck_kubelet_started(object);
}

void ck_runtime_start(struct ck_simulation *sim, struct ck_simulation_object *object)
{
	ck_queue_arm(&sim->queue, &object->next_state, sim->queue.now + CK_SIMULATION_START,
		     running, object);
}

void ck_runtime_remove(struct ck_simulation *sim, struct ck_simulation_object *object)
{
	if (object->state == CK_SIMULATION_REMOVING)
		return;
	object->state = CK_SIMULATION_REMOVING;
	ck_queue_arm(&sim->queue, &object->next_state, sim->queue.now + CK_SIMULATION_REMOVE, gone,
		     object);
}

void ck_runtime_crash(struct ck_simulation *sim)
{
	for (unsigned i = 0; i < sim->options->pods; i++)
		for (struct ck_simulation_object *o = sim->pods[i].objects; o; o = o->next) {
			o->call = NULL;
			if (o->state == CK_SIMULATION_MAKING || o->state == CK_SIMULATION_UNDOING)
				o->state = CK_SIMULATION_GONE;
			else if (o->state == CK_SIMULATION_REMOVING)
				o->state = CK_SIMULATION_EXISTS;
			ck_queue_disarm(&sim->queue, &o->next_state);
		}
}

struct ck_simulation_object *ck_runtime_named(const struct ck_simulation_call *call)
{
	for (struct ck_simulation_object *o = call->pod->objects; o; o = o->next)
		if (o->state != CK_SIMULATION_GONE && o->kind == call->kind &&
		    o->container == call->container && o->attempt == call->attempt)
			return o;
	return NULL;
}

struct ck_simulation_object *ck_runtime_find(struct ck_simulation *sim, const char *id)
{
	char owner[POD_DIGITS + 1];
	snprintf(owner, sizeof(owner), "%s", id);
	unsigned long pod = strtoul(owner, NULL, 16);
	if (pod >= sim->options->pods)
		return NULL;
	for (struct ck_simulation_object *o = sim->pods[pod].objects; o; o = o->next)
		if (o->state != CK_SIMULATION_GONE && strcmp(o->id, id) == 0)
			return o;
	return NULL;
}

bool ck_runtime_visible(const struct ck_simulation_object *object)
{
	return object->state == CK_SIMULATION_EXISTS || object->state == CK_SIMULATION_RUNNING;
}

void ck_runtime_bury(struct ck_simulation_pod *pod, bool all)
{
	struct ck_simulation_object **at = &pod->objects;
	while (*at) {
		struct ck_simulation_object *o = *at;
		if (!all && (o->state != CK_SIMULATION_GONE || o->listed != CK_SIMULATION_GONE ||
			     pod->call.object == o || pod->starting == o)) {
			at = &o->next;
			continue;
		}
		ck_queue_disarm(&pod->sim->queue, &o->next_state);
		*at = o->next;
		free(o);
	}
}
