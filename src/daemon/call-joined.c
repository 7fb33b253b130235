/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One call at the runtime for all callers that ask for the same. It has a request and headers of
 * its own, and goes on when they have left.
 */
#include <stdio.h>

#include <utlist.h>

#include "src/base/mem.h"
#include "src/daemon/call.h"

/* ---- its callers ----------------------------------------------------------------------------- */

static void answered(struct ck_call *call)
{
	DL_DELETE2(call->join.of->callers, call, join.prev, join.next);
	ck_call_free(call);
}

/* What goes on without callers counts for the process of the last one. */
static void left(struct ck_call *call)
{
	struct ck_joined *joined = call->join.of;
	if (joined->callers != call || call->join.next) {
		answered(call);
		return;
	}
	joined->callers = NULL;
	joined->last = call;
	ck_loop_timer_free(CK_TAKE(call->timer));
	ck_call_detach(call);
}

static const struct ck_call_ops joined_ops = { .left = left };

static void too_late(void *userdata)
{
	struct ck_call *call = userdata;
	ck_call_answer(call, CK_GRPC_DEADLINE_EXCEEDED,
		       "context deadline exceeded; what has begun at the runtime goes on");
	left(call);
}

void ck_join(struct ck_joined *joined, struct ck_call *call)
{
	if (joined->last)
		ck_call_free(CK_TAKE(joined->last));
	call->join.of = joined;
	call->ops = &joined_ops;
	DL_APPEND2(joined->callers, call, join.prev, join.next);
	if (call->deadline)
		/* if the timer cannot be set, the client ends the call by itself */
		ck_loop_timer(&call->daemon->loop, &call->timer, call->deadline, too_late, call);
}

void ck_joined_begin(struct ck_joined *joined, struct ck_call *call)
{
	call->client->held -= call->request.len + call->headers_size;
	*joined = (struct ck_joined){
		.daemon = call->daemon,
		.method = call->method,
		.request = call->request,
		.headers = call->headers,
		.headers_n = call->headers_n,
		.left = ck_call_left(call),
	};
	snprintf(joined->id, sizeof(joined->id), "%s", call->id);
	call->request = (struct ck_bytes){ 0 };
	call->headers = NULL;
	call->headers_n = call->headers_size = 0;
	ck_join(joined, call);
}

/* ---- at the runtime -------------------------------------------------------------------------- */

int ck_joined_send(const struct ck_joined *joined, enum ck_lane lane, uint64_t timeout,
		   ck_unary_cb *done, void *userdata, struct ck_unary_call **ret_rpc,
		   struct ck_error *err)
{
	const struct ck_h2_header *path = ck_h2_find(joined->headers, joined->headers_n, ":path");
	char name[128];
	snprintf(name, sizeof(name), "%.*s", (int)path->value_len, path->value);
	const struct ck_unary_options options = {
		.lane = lane,
		.path = name,
		.timeout = timeout,
		.metadata = joined->headers,
		.metadata_n = joined->headers_n,
	};
	return ck_unary_start(joined->daemon->upstream, &options, joined->request.p,
			      joined->request.len, done, userdata, ret_rpc, err);
}

/* ---- its end --------------------------------------------------------------------------------- */

void ck_joined_answer(struct ck_joined *joined, const struct ck_unary_reply *answer)
{
	while (joined->callers) {
		struct ck_call *call = joined->callers;
		if (answer->status.code == CK_GRPC_OK)
			ck_call_answer_message(call, answer->message.p, answer->message.len);
		else
			ck_call_pass_status(call, &answer->status);
		answered(call);
	}
}

void ck_joined_fail(struct ck_joined *joined, int grpc, const char *text)
{
	while (joined->callers) {
		struct ck_call *call = joined->callers;
		ck_call_answer(call, grpc, text);
		answered(call);
	}
}

void ck_joined_fini(struct ck_joined *joined)
{
	while (joined->callers)
		answered(joined->callers);
	if (joined->last)
		ck_call_free(joined->last);
	ck_bytes_free(&joined->request);
	free(joined->headers);
}
