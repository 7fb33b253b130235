/* SPDX-License-Identifier: Apache-2.0 */
/*
 * StartContainer (K34). There is one start of a container at a time. It has a deadline of
 * crikeepd's own, and goes on when its callers leave; calls that come meanwhile join it. What ends
 * the container ends the start.
 *
 *   first call --> on disk --> plugins agree --> the runtime --> plugins are told --> all callers
 *
 * Plugins are told once for each start, whoever joins it. They have deadlines of their own.
 */
#include <stdio.h>

#include <utlist.h>

#include "cache/starts.h"
#include "src/base/error.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/daemon/call.h"

struct ck_starting {
	struct ck_starting *prev, *next; /* of daemon->starts */
	struct ck_daemon *daemon;
	char id[CK_ID_MAX + 1], sandbox_id[CK_ID_MAX + 1];
	struct ck_call *callers;
	struct ck_bytes request; /* until it is sent; from here on, of the first call */
	struct ck_h2_header *headers;
	size_t headers_n;
	uint64_t left; /* ns to its deadline when it came */
	struct ck_unary_call *rpc;
	struct ck_unary_reply answer; /* the runtime's */
	enum ck_start_end end;        /* unless it succeeds */
	bool on_disk;                 /* the cache knows that it is under way */
	bool started;                 /* the runtime has said so */
	bool telling;                 /* an event is under way; NRI calls back */
	bool cut;                     /* it ends when NRI calls back */
};

static void start_free(struct ck_starting *start)
{
	DL_DELETE(start->daemon->starts, start);
	ck_bytes_free(&start->request);
	free(start->headers);
	ck_grpc_status_fini(&start->answer.status);
	ck_bytes_free(&start->answer.message);
	free(start);
}

/* ---- its callers ----------------------------------------------------------------------------- */

static void left(struct ck_call *call)
{
	DL_DELETE2(call->start.of->callers, call, start.prev, start.next);
	ck_call_free(call);
}

static const struct ck_call_ops start_ops = { .left = left };

static void too_late(void *userdata)
{
	struct ck_call *call = userdata;
	ck_call_answer(call, CK_GRPC_DEADLINE_EXCEEDED,
		       "context deadline exceeded: the runtime is still starting it; the start "
		       "goes on");
	left(call);
}

static void join(struct ck_starting *start, struct ck_call *call)
{
	call->start.of = start;
	call->ops = &start_ops;
	DL_APPEND2(start->callers, call, start.prev, start.next);
	if (call->deadline)
		/* if the timer cannot be set, the client ends the call by itself */
		ck_loop_timer(&call->daemon->loop, &call->timer, call->deadline, too_late, call);
}

/* is there a caller that the answer reaches in time? */
static bool is_heard(const struct ck_starting *start)
{
	const struct ck_call *call;
	DL_FOREACH2 (start->callers, call, start.next)
		if (ck_call_left(call) > CK_MARGIN_MIN)
			return true;
	return false;
}

/* ---- its end --------------------------------------------------------------------------------- */

/* First the cache hears how it ended, which decides what an answered caller asks for next. */
static void tell_cache(struct ck_starting *start)
{
	enum ck_start_end end = !start->started   ? start->end
				: is_heard(start) ? CK_START_HEARD
						  : CK_START_TOO_LATE;
	if (start->on_disk)
		ck_start_end(start->daemon->cache, start->id, end, start->answer.status.code);
	start->on_disk = false;
}

static void answer_all(struct ck_starting *start)
{
	const struct ck_unary_reply *answer = &start->answer;
	tell_cache(start);
	while (start->callers) {
		struct ck_call *call = start->callers;
		if (answer->status.code == CK_GRPC_OK)
			ck_call_answer_message(call, answer->message.p, answer->message.len);
		else
			ck_call_pass_status(call, &answer->status);
		left(call);
	}
}

static void fail_all(struct ck_starting *start, int grpc, const char *text)
{
	tell_cache(start);
	while (start->callers) {
		struct ck_call *call = start->callers;
		ck_call_answer(call, grpc, text);
		left(call);
	}
}

/* It may have been sent. A plugin that is being told of it is waited for. */
static void stop(struct ck_starting *start)
{
	if (start->rpc) {
		ck_unary_cancel(CK_TAKE(start->rpc));
		start->daemon->creating--;
	}
	fail_all(start, CK_GRPC_ABORTED, "it is stopped or removed while it is being started");
	start->cut = true;
	if (!start->telling)
		start_free(start);
}

void ck_starts_stop(struct ck_daemon *daemon, enum ck_kind kind, const char *id)
{
	struct ck_starting *start, *next;
	DL_FOREACH_SAFE (daemon->starts, start, next) {
		const char *own = kind == CK_SANDBOX ? start->sandbox_id : start->id;
		if (!start->started && !start->cut && !strcmp(own, id))
			stop(start);
	}
}

/* Its row says that it is under way: the next life asks the runtime how it ended. */
void ck_starts_end(struct ck_daemon *daemon)
{
	struct ck_starting *start, *next;
	DL_FOREACH_SAFE (daemon->starts, start, next) {
		ck_unary_cancel(CK_TAKE(start->rpc));
		start->cut = true;
		if (!start->telling)
			start_free(start);
	}
}

/* ---- its steps ------------------------------------------------------------------------------- */

/* NRI has called back. false: that was the end */
static bool told(struct ck_starting *start)
{
	start->telling = false;
	if (!start->cut)
		return true;
	start_free(start);
	return false;
}

static int tell(struct ck_starting *start, enum ck_nri_event event, ck_nri_cb *done,
		struct ck_error *err)
{
	struct ck_nri_call call = { .size = sizeof(call),
				    .event = event,
				    .container_id = start->id };
	int r = ck_nri_send(start->daemon->nri, &call, done, start, err);
	start->telling = r >= 0;
	return r;
}

static void ended(struct ck_starting *start)
{
	answer_all(start);
	start_free(start);
}

static void told_started(const struct ck_nri_result *result, void *userdata)
{
	(void)result; /* nobody can refuse it any more */
	if (told(userdata))
		ended(userdata);
}

/* StopContainer tells the pid that hooks/ learns after the start */
static bool plugins_listen(const struct ck_starting *start)
{
	return start->daemon->nri &&
	       ck_plugging_wanted(start->daemon, CK_NRI_BIT(START_CONTAINER) |
							 CK_NRI_BIT(POST_START_CONTAINER) |
							 CK_NRI_BIT(STOP_CONTAINER));
}

static void answered(struct ck_unary_reply *reply, void *userdata)
{
	struct ck_starting *start = userdata;
	struct ck_error err = { 0 };
	start->rpc = NULL;
	start->daemon->creating--;
	start->answer =
		(struct ck_unary_reply){ .status = reply->status, .message = reply->message };
	if (!ck_reply_leaves_open(reply))
		start->end = CK_START_REFUSED;
	reply->status = (struct ck_grpc_status){ 0 };
	reply->message = (struct ck_bytes){ 0 };
	start->started = start->answer.status.code == CK_GRPC_OK;
	if (start->started)
		ck_object_seen(start->daemon->cache, CK_CONTAINER, start->id, CK_CONDITION_RUNNING);
	if (start->started && plugins_listen(start)) {
		if (tell(start, CK_NRI_POST_START_CONTAINER, told_started, &err) >= 0)
			return;
		ck_log(CK_LOG_ERROR, "plugins cannot be told that a container was started: %s",
		       err.text);
	}
	ended(start);
}

static void send_start(struct ck_starting *start)
{
	struct ck_daemon *daemon = start->daemon;
	const struct ck_conf *conf = &daemon->conf;
	const struct ck_h2_header *path = ck_h2_find(start->headers, start->headers_n, ":path");
	uint64_t timeout = conf->start_deadline ? conf->start_deadline : conf->create_deadline;
	char name[128];
	struct ck_error err = { 0 };
	if (start->left != UINT64_MAX && start->left + CK_CREATE_EXTRA > timeout)
		timeout = start->left + CK_CREATE_EXTRA;
	snprintf(name, sizeof(name), "%.*s", (int)path->value_len, path->value);
	const struct ck_unary_options options = {
		.lane = CK_LANE_CREATE,
		.path = name,
		.timeout = timeout,
		.metadata = start->headers,
		.metadata_n = start->headers_n,
	};
	int r = ck_unary_start(daemon->upstream, &options, start->request.p, start->request.len,
			       answered, start, &start->rpc, &err);
	ck_bytes_free(&start->request);
	if (r < 0) {
		fail_all(start, ck_error_grpc(&err), err.text);
		start_free(start);
		return;
	}
	start->end = CK_START_OPEN;
	daemon->creating++;
	daemon->metrics.starts++;
}

static void agreed(const struct ck_nri_result *result, void *userdata)
{
	struct ck_starting *start = userdata;
	if (!told(start))
		return;
	if (!result->refusal) {
		send_start(start);
		return;
	}
	fail_all(start, CK_GRPC_UNKNOWN, result->refusal);
	start_free(start);
}

/* @call is the first one. NULL: no memory */
static struct ck_starting *start_new(struct ck_call *call)
{
	struct ck_starting *start = CK_NEW(struct ck_starting);
	if (!start)
		return NULL;
	call->client->held -= call->request.len + call->headers_size;
	*start = (struct ck_starting){
		.daemon = call->daemon,
		.request = call->request,
		.headers = call->headers,
		.headers_n = call->headers_n,
		.left = ck_call_left(call),
		.end = CK_START_REFUSED,
	};
	snprintf(start->id, sizeof(start->id), "%s", call->id);
	call->request = (struct ck_bytes){ 0 };
	call->headers = NULL;
	call->headers_n = call->headers_size = 0;
	DL_PREPEND(call->daemon->starts, start);
	return start;
}

static struct ck_starting *under_way(const struct ck_daemon *daemon, const char *id)
{
	struct ck_starting *start = daemon->starts;
	while (start && (start->cut || strcmp(start->id, id)))
		start = start->next;
	return start;
}

void ck_start_request(struct ck_call *call)
{
	struct ck_daemon *daemon = call->daemon;
	struct ck_starting *start = under_way(daemon, call->id);
	struct ck_error err = { 0 };
	if (start) {
		daemon->metrics.starts_joined++;
		join(start, call);
		return;
	}
	start = start_new(call);
	if (!start) {
		ck_call_answer(call, CK_GRPC_RESOURCE_EXHAUSTED, "out of memory");
		ck_call_free(call);
		return;
	}
	join(start, call);
	start->on_disk = ck_start_begin(daemon->cache, start->id, start->sandbox_id) >= 0;
	if (!plugins_listen(start)) {
		send_start(start);
	} else if (tell(start, CK_NRI_START_CONTAINER, agreed, &err) < 0) {
		fail_all(start, ck_error_grpc(&err), err.text);
		start_free(start);
	}
}
