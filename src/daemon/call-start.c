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
	struct ck_joined asked;
	char sandbox_id[CK_ID_MAX + 1];
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
	DL_DELETE(start->asked.daemon->starts, start);
	ck_joined_fini(&start->asked);
	ck_grpc_status_fini(&start->answer.status);
	ck_bytes_free(&start->answer.message);
	free(start);
}

/* ---- its end --------------------------------------------------------------------------------- */

/* is there a caller that the answer reaches in time? */
static bool is_heard(const struct ck_starting *start)
{
	const struct ck_call *call;
	DL_FOREACH2 (start->asked.callers, call, join.next)
		if (ck_call_left(call) > CK_MARGIN_MIN)
			return true;
	return false;
}

/* First the cache hears how it ended, which decides what an answered caller asks for next. */
static void tell_cache(struct ck_starting *start)
{
	enum ck_start_end end = !start->started   ? start->end
				: is_heard(start) ? CK_START_HEARD
						  : CK_START_TOO_LATE;
	if (start->on_disk)
		ck_start_end(start->asked.daemon->cache, start->asked.id, end,
			     start->answer.status.code);
	start->on_disk = false;
}

static void fail_all(struct ck_starting *start, int grpc, const char *text)
{
	tell_cache(start);
	ck_joined_fail(&start->asked, grpc, text);
}

/* It may have been sent. A plugin that is being told of it is waited for. */
static void stop(struct ck_starting *start)
{
	if (start->rpc) {
		ck_unary_cancel(CK_TAKE(start->rpc));
		start->asked.daemon->creating--;
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
		const char *own = kind == CK_SANDBOX ? start->sandbox_id : start->asked.id;
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
				    .container_id = start->asked.id };
	int r = ck_nri_send(start->asked.daemon->nri, &call, done, start, err);
	start->telling = r >= 0;
	return r;
}

static void ended(struct ck_starting *start)
{
	tell_cache(start);
	ck_joined_answer(&start->asked, &start->answer);
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
	return start->asked.daemon->nri &&
	       ck_plugging_wanted(start->asked.daemon, CK_NRI_BIT(START_CONTAINER) |
							       CK_NRI_BIT(POST_START_CONTAINER) |
							       CK_NRI_BIT(STOP_CONTAINER));
}

static void answered(struct ck_unary_reply *reply, void *userdata)
{
	struct ck_starting *start = userdata;
	struct ck_error err = { 0 };
	start->rpc = NULL;
	start->asked.daemon->creating--;
	start->answer =
		(struct ck_unary_reply){ .status = reply->status, .message = reply->message };
	if (!ck_reply_leaves_open(reply))
		start->end = CK_START_REFUSED;
	reply->status = (struct ck_grpc_status){ 0 };
	reply->message = (struct ck_bytes){ 0 };
	start->started = start->answer.status.code == CK_GRPC_OK;
	if (start->started)
		ck_object_seen(start->asked.daemon->cache, CK_CONTAINER, start->asked.id,
			       CK_CONDITION_RUNNING);
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
	struct ck_daemon *daemon = start->asked.daemon;
	const struct ck_conf *conf = &daemon->conf;
	uint64_t timeout = conf->start_deadline ? conf->start_deadline : conf->create_deadline,
		 left = start->asked.left;
	struct ck_error err = { 0 };
	if (left != UINT64_MAX && left + CK_CREATE_EXTRA > timeout)
		timeout = left + CK_CREATE_EXTRA;
	int r = ck_joined_send(&start->asked, CK_LANE_CREATE, timeout, answered, start, &start->rpc,
			       &err);
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

static struct ck_starting *under_way(const struct ck_daemon *daemon, const char *id)
{
	struct ck_starting *start = daemon->starts;
	while (start && (start->cut || strcmp(start->asked.id, id)))
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
		ck_join(&start->asked, call);
		return;
	}
	start = CK_NEW(struct ck_starting);
	if (!start) {
		ck_call_answer(call, CK_GRPC_RESOURCE_EXHAUSTED, "out of memory");
		ck_call_free(call);
		return;
	}
	ck_joined_begin(&start->asked, call);
	start->end = CK_START_REFUSED;
	DL_PREPEND(daemon->starts, start);
	start->on_disk = ck_start_begin(daemon->cache, start->asked.id, start->sandbox_id) >= 0;
	if (!plugins_listen(start)) {
		send_start(start);
	} else if (tell(start, CK_NRI_START_CONTAINER, agreed, &err) < 0) {
		fail_all(start, ck_error_grpc(&err), err.text);
		start_free(start);
	}
}
