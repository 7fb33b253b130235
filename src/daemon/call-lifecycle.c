/* SPDX-License-Identifier: Apache-2.0 */
/*
 * StopPodSandbox, StopContainer, RemovePodSandbox and RemoveContainer; and StartContainer, which
 * call-start.c takes over, and GetContainerEvents, which call-events.c does. The calls are passed
 * on. The cache is told before and after.
 *
 * A removal waits until creations in its sandbox have ended and been destroyed (K16). A pod is
 * stopped before it is removed, even if the runtime would do this by itself, because plugins are
 * told at the stop. If plugins listen, nri-call-steps.c takes the call over.
 */
#include "cache/starts.h"
#include "src/base/error.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/cri/message.h"
#include "src/daemon/call.h"

static void stopped(struct ck_call *call, int grpc)
{
	if (grpc == CK_GRPC_OK && call->method->kind == CK_CONTAINER)
		ck_start_stopped(call->daemon->cache, call->id);
	else if (grpc == CK_GRPC_OK)
		ck_object_seen(call->daemon->cache, CK_SANDBOX, call->id, CK_CONDITION_DEAD);
}

static void removed(struct ck_call *call, int grpc)
{
	if (grpc == CK_GRPC_OK || grpc == CK_GRPC_NOT_FOUND)
		ck_object_removed(call->daemon->cache, call->method->kind, call->id);
}

/* ---- removal: drained, stopped, removed ------------------------------------------------------ */

static void stopped_first(struct ck_unary_reply *reply, void *userdata)
{
	struct ck_call *call = userdata;
	call->rpc = NULL;
	if (reply->status.code == CK_GRPC_OK || reply->status.code == CK_GRPC_NOT_FOUND) {
		stopped(call, reply->status.code);
		ck_pass_whole(call);
		return;
	}
	ck_call_answer(call, reply->status.code, reply->status.message);
	ck_call_free(call);
}

static void stop_first(struct ck_call *call)
{
	struct ck_bytes request = { 0 };
	struct ck_error err = { 0 };
	uint64_t left = ck_call_left(call);
	struct ck_unary_options options = { .path = "StopPodSandbox",
					    .timeout = left < CK_STOP_MAX ? left : CK_STOP_MAX };
	int r = ck_cri_put_id(&request, call->id);
	r = r < 0 ? ck_nomem(&err)
		  : ck_unary_start(call->daemon->upstream, &options, request.p, request.len,
				   stopped_first, call, &call->rpc, &err);
	ck_bytes_free(&request);
	if (r < 0) {
		ck_call_answer_error(call, &err);
		ck_call_free(call);
	}
}

static void drained(struct ck_turn *turn, int outcome, void *userdata)
{
	struct ck_call *call = userdata;
	if (outcome == CK_WAIT)
		return;
	if (outcome == CK_DRAINED) {
		if (ck_life_begin(call))
			return;
		if (call->method->kind == CK_SANDBOX)
			stop_first(call);
		else
			ck_pass_whole(call);
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
	call->pass.ended_with = removed;
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
		call->pass.ended_with = stopped;
		break;
	default:
		ck_starts_stop(call->daemon, call->method->kind, call->id);
		remove_begin(call);
		return;
	}
	if (!ck_life_begin(call))
		ck_pass_whole(call);
}

const struct ck_call_ops ck_act_ops = {
	.request = act_request,
	.left = ck_call_free,
};
