/* SPDX-License-Identifier: Apache-2.0 */
/* Workers, lists, collection; see kubelet.h. */
#include "src/cli/simulate/kubelet.h"
#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/cli/simulate/runtime.h"

#define RELIST_PERIOD  (1 * CK_NS_PER_S)
#define TICKER         (1 * CK_NS_PER_S) /* for syncs to repeat */
#define BACKOFF        (10 * CK_NS_PER_S)
#define BACKOFF_JITTER (5 * CK_NS_PER_S)
#define COLLECT_PERIOD (60 * CK_NS_PER_S)
/* all pods arrive within this time, as after a boot or a scale-up */
#define ARRIVALS       (1 * CK_NS_PER_S)

static void step(struct ck_simulation_pod *pod);

/* the next tick after @after of a ticker with this period and a random phase */
static uint64_t next_tick(const struct ck_simulation *sim, uint64_t after, uint64_t period,
			  uint64_t which)
{
	uint64_t phase =
		ck_simulation_chance_below(sim, CK_CHANCE_PHASE, which, sim->kubelet_life, period);
	if (after < phase)
		return phase;
	return after - (after - phase) % period + period;
}

static const char *rpc(const struct ck_simulation_call *call)
{
	return call->kind == CK_SANDBOX ? "RunPodSandbox" : "CreateContainer";
}

static void trace(const struct ck_simulation_pod *pod, const char *what, uint64_t began,
		  const char *result)
{
	const struct ck_simulation *sim = pod->sim;
	if (!sim->options->trace)
		return;
	fprintf(stderr, "%-8s %9.3f %-8s %-37s %9.3f%s%s\n", sim->policy->name, (double)began / 1e9,
		pod->name, what, (double)(sim->queue.now - began) / 1e9, *result ? " " : "",
		result);
}

static void trace_call(const struct ck_simulation_call *call)
{
	char what[64];
	int n = snprintf(what, sizeof(what), "%s", rpc(call));
	if (call->kind == CK_CONTAINER)
		n += snprintf(what + n, sizeof(what) - (size_t)n, " c%u", call->container);
	snprintf(what + n, sizeof(what) - (size_t)n, " try %u, attempt %u", call->serial,
		 call->attempt);
	trace(call->pod, what, call->began, ck_grpc_name(call->grpc));
}

/* ---- when a worker syncs --------------------------------------------------------------------- */

static void read_list(struct ck_simulation_pod *pod)
{
	pod->sandbox_id[0] = '\0';
	memset(pod->want, 0, sizeof(pod->want));
	bool seen[CK_SIMULATION_CONTAINERS_MAX] = { false };
	for (struct ck_simulation_object *o = pod->objects; o; o = o->next) { /* newest first */
		if (o->listed == CK_SIMULATION_GONE)
			continue;
		if (o->kind == CK_SANDBOX && !pod->sandbox_id[0]) {
			memcpy(pod->sandbox_id, o->id, sizeof(pod->sandbox_id));
			/* an adopted sandbox is delivered here */
			ck_simulation_delivered(pod->sim, o);
		}
		if (o->kind == CK_CONTAINER && !seen[o->container]) {
			seen[o->container] = true;
			pod->want[o->container].running = o->listed == CK_SIMULATION_RUNNING;
			pod->want[o->container].attempt = o->attempt + 1;
		}
	}
}

static void wake(struct ck_simulation_pod *pod)
{
	struct ck_simulation *sim = pod->sim;
	if (pod->ready || pod->given_up || sim->kubelet_down)
		return;
	pod->woken = true;
	if (pod->syncing)
		return;
	if (pod->synced && sim->relisted_at <= pod->ended_at) {
		ck_kubelet_list_soon(sim);
		return;
	}
	pod->woken = false;
	pod->syncing = true;
	pod->sync_failed = false;
	pod->step = 0;
	read_list(pod);
	step(pod);
}

/* If a list has started a sync before this was due, another sync follows it at once. */
static void requeued(void *arg)
{
	wake(arg);
}

static void settled(struct ck_simulation_pod *pod)
{
	struct ck_simulation *sim = pod->sim;
	ck_queue_disarm(&sim->queue, &pod->requeue);
	ck_queue_disarm(&sim->queue, &pod->give_up);
	sim->unsettled--;
}

/* Remove what is listed of a deleted pod. The kubelet does not know about hidden objects. */
static void remove_listed(struct ck_simulation_pod *pod, enum ck_kind kind)
{
	if (pod->sim->runtime_down)
		return; /* collect() does it later */
	for (struct ck_simulation_object *o = pod->objects; o; o = o->next)
		if (o->kind == kind && o->listed != CK_SIMULATION_GONE && ck_runtime_visible(o))
			pod->sim->policy->remove(pod->sim, o);
}

static void sync_ended(struct ck_simulation_pod *pod)
{
	struct ck_simulation *sim = pod->sim;
	pod->syncing = false;
	pod->synced = true;
	pod->ended_at = sim->queue.now;
	if (pod->given_up) {
		remove_listed(pod, CK_SANDBOX);
		return;
	}
	if (!pod->sync_failed) {
		pod->ready = true;
		sim->result.ready[pod->number] = sim->queue.now - pod->came_at;
		settled(pod);
		trace(pod, "ready", pod->came_at, "");
		return;
	}
	uint64_t pause = BACKOFF + ck_simulation_chance_below(sim, CK_CHANCE_BACKOFF, pod->number,
							      pod->call.serial, BACKOFF_JITTER);
	ck_queue_arm(&sim->queue, &pod->requeue, next_tick(sim, sim->queue.now + pause, TICKER, 1),
		     requeued, pod);
	if (pod->woken)
		wake(pod);
}

static void given_up(void *arg)
{
	struct ck_simulation_pod *pod = arg;
	pod->given_up = true;
	settled(pod);
	trace(pod, "given up", pod->came_at, "");
	if (!pod->syncing) /* else sync_ended() does it */
		remove_listed(pod, CK_SANDBOX);
}

static void came(void *arg)
{
	struct ck_simulation_pod *pod = arg;
	struct ck_simulation *sim = pod->sim;
	pod->came_at = sim->queue.now;
	ck_queue_arm(&sim->queue, &pod->give_up, sim->queue.now + sim->options->give_up, given_up,
		     pod);
	wake(pod);
}

/* ---- a sync ---------------------------------------------------------------------------------- */

static void call_ended(struct ck_simulation_call *call)
{
	struct ck_simulation_pod *pod = call->pod;
	struct ck_simulation_object *object = call->object;
	call->open = false;
	call->object = NULL;
	trace_call(call);
	if (call->grpc || CK_NEVER(!object)) {
		pod->sync_failed = true;
		if (call->kind == CK_SANDBOX) {
			sync_ended(pod);
			return;
		}
	} else {
		ck_simulation_delivered(pod->sim, object);
		if (call->kind == CK_CONTAINER) {
			pod->starting = object;
			ck_runtime_start(pod->sim, object);
			return; /* ck_kubelet_started() continues */
		}
		memcpy(pod->sandbox_id, object->id, sizeof(pod->sandbox_id));
	}
	pod->step++;
	step(pod);
}

static void answered(void *arg)
{
	call_ended(arg);
}

static void timed_out(void *arg)
{
	struct ck_simulation_call *call = arg;
	struct ck_simulation *sim = call->pod->sim;
	call->grpc = CK_GRPC_DEADLINE_EXCEEDED;
	sim->policy->gone(sim, call);
	call->object = NULL;
	call_ended(call);
}

void ck_kubelet_answer(struct ck_simulation *sim, struct ck_simulation_call *call, int grpc,
		       struct ck_simulation_object *object)
{
	call->grpc = grpc;
	call->object = object;
	ck_queue_arm(&sim->queue, &call->end, sim->queue.now, answered, call);
}

static void send_create(struct ck_simulation_pod *pod, enum ck_kind kind, unsigned container,
			uint32_t attempt)
{
	struct ck_simulation *sim = pod->sim;
	struct ck_simulation_call *call = &pod->call;
	call->open = true;
	call->kind = kind;
	call->container = container;
	call->attempt = attempt;
	memcpy(call->sandbox_id, pod->sandbox_id, sizeof(call->sandbox_id));
	call->began = sim->queue.now;
	call->serial++;
	call->object = NULL;
	sim->result.requests[kind]++;
	if (sim->runtime_down) {
		ck_kubelet_answer(sim, call, CK_GRPC_UNAVAILABLE, NULL);
		return;
	}
	ck_queue_arm(&sim->queue, &call->end, sim->queue.now + sim->options->deadline, timed_out,
		     call);
	sim->policy->create(sim, call);
}

/* Make the next call of this sync, or end the sync. */
static void step(struct ck_simulation_pod *pod)
{
	if (pod->step == 0) {
		if (!pod->sandbox_id[0]) {
			/* No sandbox was listed, so its attempt is 0. In this simulation a listed
			 * sandbox is always READY. */
			send_create(pod, CK_SANDBOX, 0, 0);
			return;
		}
		pod->step = 1;
	}
	for (; pod->step <= pod->sim->options->containers && !pod->given_up; pod->step++) {
		unsigned n = pod->step - 1;
		if (!pod->want[n].running) {
			send_create(pod, CK_CONTAINER, n, pod->want[n].attempt);
			return;
		}
	}
	sync_ended(pod);
}

void ck_kubelet_started(struct ck_simulation_object *object)
{
	struct ck_simulation_pod *pod = object->pod;
	if (pod->starting != object)
		return; /* started by the kubelet before its restart */
	pod->starting = NULL;
	pod->step++;
	step(pod);
}

/* ---- lists ----------------------------------------------------------------------------------- */

/* Does this change wake the worker? The kubelet ignores a change to CREATED. */
static bool worth_waking(const struct ck_simulation_object *o, enum ck_simulation_state now_listed)
{
	return o->kind == CK_SANDBOX || now_listed == CK_SIMULATION_RUNNING ||
	       now_listed == CK_SIMULATION_GONE;
}

static void relist(void *arg)
{
	struct ck_simulation *sim = arg;
	if (sim->kubelet_down)
		return;
	if (sim->runtime_down) {
		ck_kubelet_list_soon(sim);
		return;
	}
	if (sim->policy->list)
		sim->policy->list(sim);
	sim->relisted_at = sim->queue.now;
	for (unsigned i = 0; i < sim->options->pods; i++) {
		struct ck_simulation_pod *pod = &sim->pods[i];
		bool event = pod->woken; /* the worker waits for this list */
		for (struct ck_simulation_object *o = pod->objects; o; o = o->next) {
			enum ck_simulation_state listed =
				ck_runtime_visible(o) && !o->hidden ? o->state : CK_SIMULATION_GONE;
			if (listed == o->listed)
				continue;
			event = event || worth_waking(o, listed);
			o->listed = listed;
		}
		ck_runtime_bury(pod, false);
		if (event)
			wake(pod);
	}
}

void ck_kubelet_list_soon(struct ck_simulation *sim)
{
	if (!sim->relist.place && !sim->kubelet_down)
		ck_queue_arm(&sim->queue, &sim->relist,
			     next_tick(sim, sim->queue.now, RELIST_PERIOD, 0), relist, sim);
}

/* Container and sandbox garbage collection. */
static void collect(void *arg)
{
	struct ck_simulation *sim = arg;
	ck_queue_arm(&sim->queue, &sim->collect, sim->queue.now + COLLECT_PERIOD, collect, sim);
	if (sim->kubelet_down || sim->runtime_down)
		return;
	for (unsigned i = 0; i < sim->options->pods; i++) {
		struct ck_simulation_pod *pod = &sim->pods[i];
		if (pod->given_up && !pod->syncing) {
			remove_listed(pod, CK_CONTAINER);
			remove_listed(pod, CK_SANDBOX);
			continue;
		}
		bool kept[CK_SIMULATION_CONTAINERS_MAX] = { false };
		for (struct ck_simulation_object *o = pod->objects; o; o = o->next) {
			if (o->kind != CK_CONTAINER || o->listed != CK_SIMULATION_EXISTS ||
			    o->state != CK_SIMULATION_EXISTS)
				continue;
			if (kept[o->container] && pod->starting != o)
				sim->policy->remove(sim, o);
			kept[o->container] = true;
		}
	}
}

/* ---- start, restart and end ------------------------------------------------------------------ */

int ck_kubelet_open(struct ck_simulation *sim)
{
	const struct ck_simulation_options *o = sim->options;
	sim->pods = ck_alloc(o->pods * sizeof(*sim->pods));
	sim->result.ready = ck_alloc(o->pods * sizeof(*sim->result.ready));
	if (!sim->pods || !sim->result.ready)
		return ck_nomem(&sim->err);
	sim->result.pods = sim->unsettled = o->pods;
	for (unsigned i = 0; i < o->pods; i++) {
		struct ck_simulation_pod *pod = &sim->pods[i];
		pod->sim = sim;
		pod->number = i;
		pod->call.pod = pod;
		snprintf(pod->name, sizeof(pod->name), "web-%u", i);
		uint64_t high = ck_simulation_chance(sim, CK_CHANCE_ID, i, 100),
			 low = ck_simulation_chance(sim, CK_CHANCE_ID, i, 101);
		snprintf(pod->uid, sizeof(pod->uid), "%08x-%04x-%04x-%04x-%012llx",
			 (unsigned)(high >> 32), (unsigned)(high >> 16 & 0xffff),
			 (unsigned)(high & 0xffff), (unsigned)(low >> 48),
			 (unsigned long long)(low & 0xffffffffffff));
		sim->result.ready[i] = UINT64_MAX;
		ck_queue_arm(&sim->queue, &pod->arrival,
			     ck_simulation_chance_below(sim, CK_CHANCE_ARRIVAL, i, 0, ARRIVALS),
			     came, pod);
	}
	ck_queue_arm(&sim->queue, &sim->collect, next_tick(sim, 0, COLLECT_PERIOD, 2), collect,
		     sim);
	return 0;
}

void ck_kubelet_close(struct ck_simulation *sim)
{
	for (unsigned i = 0; sim->pods && i < sim->options->pods; i++)
		ck_runtime_bury(&sim->pods[i], true);
	free(sim->pods);
	sim->pods = NULL;
}

static void fail_start(struct ck_simulation_pod *pod)
{
	pod->starting = NULL;
	pod->sync_failed = true;
	pod->step++;
	step(pod);
}

void ck_kubelet_fail_calls(struct ck_simulation *sim)
{
	for (unsigned i = 0; i < sim->options->pods; i++) {
		struct ck_simulation_pod *pod = &sim->pods[i];
		if (pod->call.open)
			ck_kubelet_answer(sim, &pod->call, CK_GRPC_UNAVAILABLE, NULL);
		if (pod->starting)
			fail_start(pod);
	}
}

static void reborn(void *arg)
{
	struct ck_simulation *sim = arg;
	sim->kubelet_down = false;
	sim->kubelet_life++;
	for (unsigned i = 0; i < sim->options->pods; i++) {
		struct ck_simulation_pod *pod = &sim->pods[i];
		if (pod->arrival.place || pod->ready || pod->given_up)
			continue;
		pod->woken = true; /* sync after the next list */
		pod->synced = false;
	}
	ck_kubelet_list_soon(sim);
}

void ck_kubelet_restart(struct ck_simulation *sim)
{
	sim->kubelet_down = true;
	ck_queue_disarm(&sim->queue, &sim->relist);
	for (unsigned i = 0; i < sim->options->pods; i++) {
		struct ck_simulation_pod *pod = &sim->pods[i];
		ck_queue_disarm(&sim->queue, &pod->requeue);
		ck_queue_disarm(&sim->queue, &pod->call.end);
		if (pod->call.open) {
			pod->call.open = false;
			pod->call.grpc = CK_GRPC_CANCELLED;
			trace_call(&pod->call);
			sim->policy->gone(sim, &pod->call);
			pod->call.object = NULL;
		}
		pod->starting = NULL;
		pod->syncing = pod->woken = false;
	}
	ck_queue_arm(&sim->queue, &sim->kubelet_restart, sim->queue.now + CK_SIMULATION_RESTART,
		     reborn, sim);
}

bool ck_kubelet_uses(const struct ck_simulation_object *object)
{
	const struct ck_simulation_pod *pod = object->pod;
	if (!pod->ready)
		return false;
	return object->kind == CK_SANDBOX ? strcmp(pod->sandbox_id, object->id) == 0
					  : object->state == CK_SIMULATION_RUNNING;
}
