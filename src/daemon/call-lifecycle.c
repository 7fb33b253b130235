/* SPDX-License-Identifier: Apache-2.0 */
/*
 * StopPodSandbox, StopContainer, RemovePodSandbox and RemoveContainer, which nri-call-steps.c takes
 * over; StartContainer, which call-start.c does; and GetContainerEvents, which call-events.c does.
 */
#include "src/base/error.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/daemon/call.h"

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
	if (call->method->class == CK_CRI_START) {
		ck_start_request(call);
		return;
	}
	ck_starts_stop(call->daemon, call->method->kind, call->id);
	if (call->method->class == CK_CRI_STOP && call->method->kind == CK_SANDBOX)
		r = ck_sandbox_stopping(call->daemon->cache, call->id);
	if (r < 0) {
		ck_fail(&err, -r, "%s", ck_strerror(-r));
		ck_call_answer_error(call, &err);
		ck_call_free(call);
		return;
	}
	ck_life_begin(call);
}

const struct ck_call_ops ck_act_ops = {
	.request = act_request,
	.left = ck_call_free,
};
