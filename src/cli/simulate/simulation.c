/* SPDX-License-Identifier: Apache-2.0 */
/* One run: events happen until every pod is ready or given up and all clean-up timers have expired.
 * */
#include <signal.h>
#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/cli/simulate/kubelet.h"
#include "src/cli/simulate/runtime.h"

/*
 * How long a run lasts after the last pod is ready or given up: long enough for every clean-up.
 * crikeep keeps a result for 10 minutes, or the longest deadline, after its last request. CRI-O
 * keeps it for 2 minutes, and the kubelet collects once a minute. All begin when the last creation
 * ends.
 */
static uint64_t settle_time(const struct ck_simulation_options *o)
{
	uint64_t keep = o->deadline > CK_TTL ? o->deadline : CK_TTL;
	return keep + 2 * o->create + o->deadline + 300 * CK_NS_PER_S;
}

static volatile sig_atomic_t interrupted;

void ck_simulation_interrupt(void)
{
	interrupted = 1;
}

/* ---- chance ---------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t x) /* splitmix64's finalizer */
{
	x += UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

uint64_t ck_simulation_chance(const struct ck_simulation *sim, enum ck_simulation_chance what,
			      uint64_t a, uint64_t b)
{
	return mix(mix(mix(mix(sim->options->seed) ^ (uint64_t)what) ^ a) ^ b);
}

uint64_t ck_simulation_chance_below(const struct ck_simulation *sim, enum ck_simulation_chance what,
				    uint64_t a, uint64_t b, uint64_t below)
{
	/* The modulo bias is below a day's nanoseconds in 2^64. */
	return ck_simulation_chance(sim, what, a, b) % below;
}

/* ---- results --------------------------------------------------------------------------------- */

void ck_simulation_result_fini(struct ck_simulation_result *result)
{
	free(result->ready);
	free(result->lag);
	*result = (struct ck_simulation_result){ 0 };
}

void ck_simulation_delivered(struct ck_simulation *sim, struct ck_simulation_object *object)
{
	struct ck_simulation_result *r = &sim->result;
	if (object->delivered)
		return;
	object->delivered = true;
	if (r->lags == r->lags_room) {
		size_t room = r->lags_room ? 2 * r->lags_room : 64;
		uint64_t *lag = ck_realloc(r->lag, room * sizeof(*lag));
		if (!lag) {
			sim->queue.failed = true;
			return;
		}
		r->lag = lag;
		r->lags_room = room;
	}
	r->lag[r->lags++] = sim->queue.now - object->exists_at;
}

void ck_simulation_fail(struct ck_simulation *sim, int r, const struct ck_error *err)
{
	if (sim->failed)
		return;
	sim->failed = r;
	sim->err = *err;
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

static void count(struct ck_simulation *sim)
{
	struct ck_simulation_result *r = &sim->result;
	for (unsigned i = 0; i < sim->options->pods; i++) {
		if (!sim->pods[i].ready)
			r->never++;
		for (struct ck_simulation_object *o = sim->pods[i].objects; o; o = o->next) {
			if (o->state == CK_SIMULATION_GONE || ck_kubelet_uses(o))
				continue;
			if (o->listed == CK_SIMULATION_GONE)
				r->left_hidden++;
			else
				r->left_visible++;
		}
	}
	qsort(r->ready, r->pods, sizeof(*r->ready), by_size);
	if (r->lags)
		qsort(r->lag, r->lags, sizeof(*r->lag), by_size);
}

/* ---- a run ----------------------------------------------------------------------------------- */

static void kubelet_restarts(void *arg)
{
	ck_kubelet_restart(arg);
}

static void runtime_is_back(void *arg)
{
	struct ck_simulation *sim = arg;
	struct ck_error err = { 0 };
	sim->runtime_down = false;
	int r = sim->policy->open ? sim->policy->open(sim, &err) : 0;
	if (r < 0)
		ck_simulation_fail(sim, r, &err);
	ck_kubelet_list_soon(sim);
}

static void runtime_restarts(void *arg)
{
	struct ck_simulation *sim = arg;
	sim->runtime_down = true;
	if (sim->policy->close)
		sim->policy->close(sim);
	ck_runtime_crash(sim);
	ck_kubelet_fail_calls(sim);
	ck_queue_arm(&sim->queue, &sim->restart, sim->queue.now + CK_SIMULATION_RESTART,
		     runtime_is_back, sim);
}

static void over(void *arg)
{
	struct ck_simulation *sim = arg;
	sim->over = true;
}

static int run(struct ck_simulation *sim)
{
	const struct ck_simulation_options *o = sim->options;
	if (o->restart_at)
		ck_queue_arm(&sim->queue, &sim->restart, o->restart_at, runtime_restarts, sim);
	if (o->kubelet_restart_at)
		ck_queue_arm(&sim->queue, &sim->kubelet_restart, o->kubelet_restart_at,
			     kubelet_restarts, sim);
	while (!sim->over) {
		/* never NULL: the kubelet's collection is always armed */
		struct ck_event *e = ck_queue_take(&sim->queue);
		e->fire(e->arg);
		if (interrupted)
			return ck_fail(&sim->err, CK_ECLOSED, "interrupted");
		if (sim->queue.failed)
			return ck_nomem(&sim->err);
		if (sim->failed)
			return sim->failed;
		if (!sim->unsettled && !sim->end.place)
			ck_queue_arm(&sim->queue, &sim->end, sim->queue.now + settle_time(o), over,
				     sim);
	}
	return 0;
}

int ck_simulation_run(const struct ck_simulation_options *options,
		      const struct ck_simulation_policy *policy,
		      struct ck_simulation_result *ret_result, struct ck_error *err)
{
	struct ck_simulation sim = { .options = options,
				     .policy = policy,
				     .result.policy = policy };
	int r = ck_kubelet_open(&sim);
	if (r == 0 && policy->open)
		r = policy->open(&sim, &sim.err);
	if (r == 0) {
		r = run(&sim);
		if (r == 0)
			count(&sim);
		if (policy->close && !sim.runtime_down)
			policy->close(&sim);
	}
	if (policy->done)
		policy->done(&sim);
	ck_kubelet_close(&sim);
	ck_queue_fini(&sim.queue);
	if (r == 0) {
		*ret_result = sim.result;
	} else {
		ck_simulation_result_fini(&sim.result);
		if (err)
			*err = sim.err;
	}
	return r;
}
