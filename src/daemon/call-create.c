/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RunPodSandbox and CreateContainer: each is a turn of the cache. The turn that creates makes one
 * call to the runtime. This call has a deadline of crikeepd's own, and goes on when its client
 * leaves. All other turns wait, and the runtime is not called for them. Plugins that may change a
 * container are asked before the call (nri-before-create.c). The turn itself has the kubelet's own
 * request.
 *
 *   request --> turn --CREATE--> sent to the runtime --> finished, failed or lost
 *                |                                          |
 *                +--WAIT------------------------------------+--> HAND_BACK or an error
 *
 * After HAND_BACK the call lingers until it is known whether the client took the answer (K7).
 */
#include <stdio.h>

#include <utlist.h>

#include "src/base/error.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/cri/message.h"
#include "src/daemon/call.h"

static void decided(struct ck_turn *turn, int outcome, void *userdata);

/* ---- the answer, and whether it arrived ------------------------------------------------------ */

static void linger_end(struct ck_call *call, enum ck_delivery delivery)
{
	struct ck_peer *client = call->client;
	HASH_DELETE(create.by_stream, client->lingering, call);
	if (!call->create.taken)
		DL_DELETE2(client->untaken, call, create.prev, create.next);
	ck_turn_answered(call->turn, delivery);
	ck_call_free(call);
}

/* false: out of memory */
static bool linger_begin(struct ck_call *call)
{
	struct ck_peer *client = call->client;
	call->create.stream_id = ck_h2_stream_id(call->stream);
	HASH_ADD(create.by_stream, client->lingering, create.stream_id,
		 sizeof(call->create.stream_id), call);
	if (!call->create.by_stream.tbl)
		return false;
	DL_PREPEND2(client->untaken, call, create.prev, create.next);
	call->create.lingers = true;
	return true;
}

static void settled(void *userdata)
{
	struct ck_call *call = userdata;
	if (!call->stream)
		linger_end(call, CK_DELIVERED);
	else if (call->deadline ||
		 ck_loop_timer(&call->daemon->loop, &call->timer, ck_loop_now() + CK_ANSWER_SETTLE,
			       settled, call) < 0)
		linger_end(call, CK_LOST); /* the answer could not even be written */
}

void ck_create_conn_gone(struct ck_peer *client, bool unread)
{
	while (client->lingering)
		linger_end(client->lingering,
			   unread && !client->lingering->create.taken ? CK_LOST : CK_DELIVERED);
}

void ck_create_all_read(struct ck_peer *client)
{
	struct ck_call *call, *next;
	DL_FOREACH_SAFE2 (client->untaken, call, next, create.next) {
		if (call->stream)
			continue;
		DL_DELETE2(client->untaken, call, create.prev, create.next);
		call->create.taken = true; /* a reset under way would arrive soon */
		ck_loop_timer(&call->daemon->loop, &call->timer, ck_loop_now() + CK_ANSWER_SETTLE,
			      settled, call);
	}
}

void ck_create_late_reset(struct ck_peer *client, int32_t stream_id)
{
	struct ck_call *call;
	HASH_FIND(create.by_stream, client->lingering, &stream_id, sizeof(stream_id), call);
	if (call && !call->stream)
		linger_end(call, CK_LOST);
}

static void hand_back(struct ck_call *call)
{
	struct ck_metrics *metrics = &call->daemon->metrics;
	struct ck_reply reply = { .size = sizeof(reply) };
	uint64_t now = ck_loop_now();
	if (!call->stream || ck_turn_reply(call->turn, &reply) < 0 || !linger_begin(call)) {
		ck_turn_answered(call->turn, CK_LOST);
		ck_call_free(call);
		return;
	}
	if (ck_grpc_begin(call->stream) < 0 ||
	    ck_grpc_send(call->stream, reply.bytes, reply.len) < 0 ||
	    ck_grpc_answer(call->stream, true, CK_GRPC_OK, NULL, NULL, 0) < 0 ||
	    ck_loop_timer(&call->daemon->loop, &call->timer,
			  (call->deadline > now ? call->deadline : now) + CK_ANSWER_SETTLE, settled,
			  call) < 0) {
		linger_end(call, CK_LOST); /* the client gets RST_STREAM */
		return;
	}
	ck_connection_watch_read(call->client->conn);
	metrics->answered[call->method->kind]++;
	ck_histogram_add(&metrics->wait[call->method->kind], now - call->began);
	if (call->create.answered_at)
		ck_histogram_add(&metrics->delivery[call->method->kind],
				 now - call->create.answered_at);
}

/* ---- the creation at the runtime ------------------------------------------------------------- */

/* the id in the answer of the runtime; NULL: none, or not a valid one */
static char *id_of(const struct ck_call *call, const struct ck_bytes *message)
{
	uint32_t number = call->method->kind == CK_SANDBOX
				  ? CRI_RunPodSandboxResponse_pod_sandbox_id
				  : CRI_CreateContainerResponse_container_id;
	struct ck_wire_field field;
	int r = ck_cri_last(ck_wire_begin(message->p, message->len), number, &field, NULL);
	return r > 0 && ck_cri_is_id(field.data, field.len)
		       ? ck_strndup((const char *)field.data, field.len)
		       : NULL;
}

bool ck_reply_leaves_open(const struct ck_unary_reply *reply)
{
	if (reply->unsent)
		return false;
	switch (reply->status.code) {
	case CK_GRPC_CANCELLED:
	case CK_GRPC_DEADLINE_EXCEEDED:
	case CK_GRPC_UNAVAILABLE:
		return true;
	}
	return reply->lost;
}

/* The outcome is not known. A client that is still there waits on, like the other clients. */
static void waits_on(struct ck_call *call)
{
	if (!call->stream)
		ck_call_free(call);
}

static void lost(struct ck_call *call)
{
	ck_turn_lost(call->turn, NULL);
	waits_on(call);
}

static void failed(struct ck_call *call, const struct ck_status *why)
{
	struct ck_error err = { 0 };
	int r = ck_turn_fail(call->turn, why, &err);
	if (r == CK_WAIT) { /* an earlier request for the same may still succeed (K8) */
		waits_on(call);
		return;
	}
	if (r < 0)
		ck_log(CK_LOG_ERROR, "a failed creation could not be recorded: %s", err.text);
	ck_consulted_drop(call->daemon, call->create.consulted);
	ck_call_answer_status(call, why);
	ck_call_free(call);
}

static void made(struct ck_unary_reply *reply, void *userdata)
{
	struct ck_call *call = userdata;
	struct ck_daemon *daemon = call->daemon;
	struct ck_error err = { 0 };
	call->rpc = NULL;
	daemon->creating--;
	call->create.answered_at = ck_loop_now();
	if (reply->status.code != CK_GRPC_OK || reply->lost) {
		const struct ck_status why = {
			.size = sizeof(why),
			.grpc = reply->status.code,
			.message = reply->status.message,
			.details = reply->status.details,
			.details_len = reply->status.details_len,
		};
		if (ck_reply_leaves_open(reply))
			lost(call);
		else
			failed(call, &why);
		return;
	}
	CK_AUTO_FREE char *id = id_of(call, &reply->message);
	if (!id) {
		ck_log(CK_LOG_ERROR, "the runtime answered %s without an id", call->method->rpc);
		lost(call);
		return;
	}
	const struct ck_result result = {
		.size = sizeof(result),
		.id = id,
		.reply = reply->message.p,
		.reply_len = reply->message.len,
	};
	ck_histogram_add(&daemon->metrics.runtime[call->method->kind],
			 call->create.answered_at - call->create.sent_at);
	ck_consulted_drop(daemon, call->create.consulted);
	int r = ck_turn_finish(call->turn, &result, &err);
	/* The result was refused, which decides nothing: the turn is still creating. */
	if (r < 0 && !ck_turn_error(call->turn)->code) {
		ck_log(CK_LOG_ERROR, "%s created '%s', but the result could not be accepted: %s",
		       call->method->rpc, id, err.text);
		lost(call);
		return;
	}
	decided(call->turn, r, call);
}

static void too_late(void *userdata)
{
	struct ck_call *call = userdata;
	ck_call_answer(call, CK_GRPC_DEADLINE_EXCEEDED,
		       "context deadline exceeded: the runtime is still creating it; the result "
		       "is kept for the same request");
	ck_turn_leave(call->turn);
	if (call->rpc || call->create.consult)
		ck_call_detach(call);
	else
		ck_call_free(call);
}

static void send_create(struct ck_call *call, const struct ck_bytes *request)
{
	struct ck_daemon *daemon = call->daemon;
	const struct ck_h2_header *path = ck_h2_find(call->headers, call->headers_n, ":path");
	uint64_t left = ck_call_left(call), timeout = daemon->conf.create_deadline;
	char name[128];
	struct ck_error err = { 0 };
	if (left != UINT64_MAX && left + CK_CREATE_EXTRA > timeout)
		timeout = left + CK_CREATE_EXTRA;
	snprintf(name, sizeof(name), "%.*s", (int)path->value_len, path->value);
	const struct ck_unary_options options = {
		.lane = CK_LANE_CREATE,
		.path = name,
		.timeout = timeout,
		.metadata = call->headers,
		.metadata_n = call->headers_n,
		.reply_max = CK_REPLY_MAX,
	};
	ck_turn_stage(call->turn, "runtime"); /* crikeepd knows no finer stage */
	int r = ck_unary_start(daemon->upstream, &options, request->p, request->len, made, call,
			       &call->rpc, &err);
	if (r < 0) {
		const struct ck_status why = { .size = sizeof(why),
					       .grpc = ck_error_grpc(&err),
					       .message = err.text };
		failed(call, &why);
		return;
	}
	call->create.sent_at = ck_loop_now();
	daemon->creating++;
	daemon->metrics.creates[call->method->kind]++;
	if (call->stream && call->deadline)
		/* if the timer cannot be set, the client ends the call by itself */
		ck_loop_timer(&daemon->loop, &call->timer, call->deadline, too_late, call);
}

/* ---- plugins that change containers (H7) ----------------------------------------------------- */

static void not_agreed(struct ck_call *call, int grpc, const char *text)
{
	const struct ck_status why = { .size = sizeof(why), .grpc = grpc, .message = text };
	call->daemon->metrics.nri_refused[call->method->kind]++;
	failed(call, &why);
}

static void consulted(struct ck_call *call, const struct ck_bytes *request,
		      const struct ck_error *err)
{
	if (!err)
		send_create(call, request);
	else
		not_agreed(call, err->code == CK_EREFUSED ? CK_GRPC_UNKNOWN : ck_error_grpc(err),
			   err->text);
}

static void consult(struct ck_call *call)
{
	CK_AUTO_BYTES struct ck_bytes request = { 0 };
	struct ck_error err = { 0 };
	ck_turn_stage(call->turn, "plugins");
	int r = ck_consult_begin(call, &request, consulted, &err);
	if (r != 0)
		consulted(call, &request, r < 0 ? &err : NULL);
}

static void create(struct ck_call *call)
{
	struct ck_daemon *daemon = call->daemon;
	char plugin[CK_NRI_NAME_MAX + 1], text[CK_ERROR_TEXT];
	bool container = call->method->kind == CK_CONTAINER;
	if (daemon->nri && container && daemon->conf.nri.adjust == CK_NRI_BEFORE_CREATE) {
		consult(call);
	} else if (daemon->nri && container &&
		   ck_nri_adjusting(daemon->nri, plugin, sizeof(plugin)) == 1) {
		snprintf(text, sizeof(text),
			 "plugin %s changes containers, for which it must be asked earlier: set "
			 "nri.adjust: before-create",
			 plugin);
		not_agreed(call, CK_GRPC_FAILED_PRECONDITION, text);
	} else {
		send_create(call, &call->request);
	}
}

/* ---- the turn -------------------------------------------------------------------------------- */

static void decided(struct ck_turn *turn, int outcome, void *userdata)
{
	struct ck_call *call = userdata;
	struct ck_status status = { .size = sizeof(status) };
	const struct ck_error *err;
	switch (outcome) {
	case CK_CREATE:
		create(call);
		return;
	case CK_WAIT:
		if (!call->stream && !call->rpc && !call->create.consult)
			/* The client has left, and only hooks are running: the turn will not
			 * report anything to this call (K7). */
			ck_call_free(call);
		return;
	case CK_HAND_BACK:
		hand_back(call);
		return;
	case CK_KEPT:
		ck_call_answer(call, CK_GRPC_UNAVAILABLE,
			       "made too late for this call; it is kept for the same request");
		break;
	case -CK_EFAILED:
		if (ck_turn_status(turn, &status) == 0) {
			ck_call_answer_status(call, &status);
			break;
		}
		/* fall through */
	default:
		err = ck_turn_error(turn);
		call->daemon->metrics.nri_refused[call->method->kind] += outcome == -CK_EREFUSED;
		if (err && err->code)
			ck_call_answer_error(call, err);
		else
			ck_call_answer(call, CK_GRPC_INTERNAL,
				       ck_strerror(outcome < 0 ? -outcome : CK_ESTATE));
		/* Plugins were still being asked, so the runtime was not called. This is certain
		 * to be the end. */
		if (call->create.consult) {
			const struct ck_status why = { .size = sizeof(why),
						       .grpc = CK_GRPC_ABORTED,
						       .message = "not begun" };
			ck_turn_fail(turn, &why, NULL);
		}
		/* The kubelet has moved on during the call, which is cancelled (K9). If the runtime
		 * creates it nevertheless, the cache finds it. */
		if (call->rpc) {
			ck_unary_cancel(CK_TAKE(call->rpc));
			call->daemon->creating--;
		}
		break;
	}
	ck_call_free(call);
}

static void begin(void *userdata)
{
	struct ck_call *call = userdata;
	struct ck_error err = { 0 };
	if (!ck_call_guard(call))
		return;
	ck_view_free(CK_TAKE(call->view));
	uint64_t left = ck_call_left(call);
	const struct ck_request request = {
		.size = sizeof(request),
		.kind = call->method->kind,
		.bytes = call->request.p,
		.len = call->request.len,
		.timeout = ck_call_timeout(call),
		.expired = left == 0,
	};
	int r = ck_turn_begin(call->daemon->cache, &request, &call->turn, &err);
	if (r < 0) {
		ck_call_answer_error(call, &err);
		ck_call_free(call);
		return;
	}
	/* also for a creator, which may be superseded */
	ck_turn_watch(call->turn, decided, call);
	decided(call->turn, r, call);
}

/* Begin from the loop, after everything that arrived with the request: one that was already reset
 * must not supersede others (K9). */
static void create_request(struct ck_call *call)
{
	if (ck_loop_timer(&call->daemon->loop, &call->timer, 0, begin, call) >= 0)
		return;
	ck_call_answer(call, CK_GRPC_RESOURCE_EXHAUSTED, "out of memory");
	ck_call_free(call);
}

static void create_left(struct ck_call *call)
{
	if (call->create.lingers) {
		if (call->reset)
			linger_end(call, CK_LOST);
		return; /* the answer was sent */
	}
	if (call->turn)
		ck_turn_leave(call->turn);
	if (!call->rpc && !call->create.consult) {
		ck_call_free(call);
		return;
	}
	ck_call_detach(call);
	ck_loop_timer_free(CK_TAKE(call->timer));
}

const struct ck_call_ops ck_create_ops = {
	.request = create_request,
	.left = create_left,
};
