/* SPDX-License-Identifier: Apache-2.0 */
/*
 * StopPodSandbox, StopContainer, RemovePodSandbox and RemoveContainer; and StartContainer, which
 * call-start.c takes over, and GetContainerEvents, which call-events.c does. The calls are passed
 * on by nri-call-steps.c. The cache is told before and after.
 *
 * A removal waits until creations in its sandbox have ended and been destroyed (K16). A pod is
 * stopped before it is removed, even if the runtime would do this by itself, because plugins are
 * told at the stop.
 */
#include "src/base/error.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/daemon/call.h"

/* ---- removal: drained, and then its steps ---------------------------------------------------- */

static void drained(struct ck_turn *turn, int outcome, void *userdata)
{
	struct ck_call *call = userdata;
	if (outcome == CK_WAIT)
		return;
	if (outcome == CK_DRAINED) {
		ck_life_begin(call);
		return;
	}
	const struct ck_error *err = ck_turn_error(turn);
	if (err && err->code)
		ck_call_answer_error(call, err);
	else
		ck_call_answer(call, CK_GRPC_UNAVAILABLE,
			       "creations in this pod sandbox have not ended yet");
	ck_call_free(call);
}

static void remove_begin(struct ck_call *call)
{
	struct ck_error err = { 0 };
	int r = ck_remove_begin(call->daemon->cache, call->method->kind, call->id,
				ck_call_timeout(call), &call->turn, &err);
	if (r < 0) {
		ck_call_answer_error(call, &err);
		ck_call_free(call);
		return;
	}
	if (r == CK_WAIT)
		ck_turn_watch(call->turn, drained, call);
	drained(call->turn, r, call);
}

/* ---- by method ------------------------------------------------------------------------------- */

static void act_request(struct ck_call *call)
{
	struct ck_error err = { 0 };
	int r = 0;
	if (call->method->class == CK_CRI_EVENTS) {
		r = ck_events_subscribe(call->daemon, call->stream, call->headers, call->headers_n,
					call->request.p, call->request.len, &err);
		if (r < 0)
			ck_call_answer_error(call, &err);
		else
			call->stream = NULL; /* call-events.c has it */
		ck_call_free(call);
		return;
	}
	if (!ck_call_guard(call))
		return;
	ck_view_free(CK_TAKE(call->view));
	if (!call->id[0]) { /* the runtime answers a request without an id */
		ck_pass_whole(call);
		return;
	}
	ck_object_used(call->daemon->cache, call->method->kind, call->id);
	switch (call->method->class) {
	case CK_CRI_START:
		ck_start_request(call);
		return;
	case CK_CRI_STOP:
		ck_starts_stop(call->daemon, call->method->kind, call->id);
		if (call->method->kind == CK_SANDBOX)
			r = ck_sandbox_stopping(call->daemon->cache, call->id);
		if (r < 0) {
			ck_fail(&err, -r, "%s", ck_strerror(-r));
			ck_call_answer_error(call, &err);
			ck_call_free(call);
			return;
		}
		break;
	default:
		ck_starts_stop(call->daemon, call->method->kind, call->id);
		remove_begin(call);
		return;
	}
	ck_life_begin(call);
}

const struct ck_call_ops ck_act_ops = {
	.request = act_request,
	.left = ck_call_free,
};
