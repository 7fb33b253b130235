/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call that is passed on to the runtime, and its answer. Unfiltered, bytes are passed on as they
 * arrive. The window grows when they have been written, so a call holds no more than one window.
 * Filtered, each message is read whole, hidden objects are cut out of it, and the rest is passed
 * on. After a list or a status that succeeded, the cache is told of the objects in it.
 *
 * While nothing is hidden, there is nothing to cut out of a list of sandboxes: its bytes are passed
 * on as they arrive, and a copy is read at the end. This is decided when the answer begins, for
 * then its bytes are settled: its length comes first, and a runtime knows that when it has made the
 * list. What is hidden later was made later, or was visible when the list was made. What was
 * hidden and is gone since the list was asked for still counts as hidden (K21).
 */
#include <stdio.h>

#include <utlist.h>

#include "src/base/error.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "cache/view.h"
#include "src/daemon/call.h"
#include "src/cri/objects.h"

static void cut_off(struct ck_call *call)
{
	struct ck_daemon *daemon = call->daemon;
	if (!daemon->metrics.clients_cut++)
		ck_log(CK_LOG_WARNING,
		       "a call was cut off: its client does not read, and more than %zu bytes of "
		       "answers are waiting",
		       daemon->conf.client_memory);
	ck_h2_stream_reset(CK_TAKE(call->stream), CK_H2_ENHANCE_YOUR_CALM);
	ck_call_free(call);
}

static bool over_memory(const struct ck_call *call)
{
	return ck_h2_queued(ck_h2_stream_h2(call->stream)) + call->client->held >
	       call->daemon->conf.client_memory;
}

static void out_of_memory(struct ck_call *call)
{
	ck_call_answer(call, CK_GRPC_RESOURCE_EXHAUSTED, "out of memory");
	ck_call_free(call);
}

/* ---- the end of an answer -------------------------------------------------------------------- */

/* The call succeeded, so the cache may learn from the answer. The answer was written before,
 * because this takes as long as all the rest with 500 pods. */
static void learn(struct ck_call *call)
{
	struct ck_error err;
	/* a list that failed says nothing: no answer is not an empty list (K24) */
	if (ck_grpc_reader_inside(&call->pass.reader) ||
	    (!call->method->streams && call->pass.messages != 1))
		return;
	if (call->pass.how == CK_PASS_AS_IT_COMES &&
	    ck_objects_read(call->pass.objects, call->method, call->pass.copy.p,
			    call->pass.copy.len, &err) < 0)
		return;
	const struct ck_object *all = call->pass.objects->all;
	size_t n = call->pass.objects->n;
	for (size_t i = 0; call->method->kind == CK_CONTAINER && i < n; i++)
		if (all[i].condition == CK_CONDITION_DEAD || all[i].condition == CK_CONDITION_RAN)
			ck_exits_saw(call->daemon, all[i].id);
	if (call->method->class == CK_CRI_FILTER) {
		ck_view_listed(call->view, call->method->kind, all, n);
		if (call->method->kind == CK_SANDBOX)
			ck_hosting_saw(call->daemon, all, n);
	} else {
		for (size_t i = 0; i < n; i++)
			ck_object_seen(call->daemon->cache, all[i].kind, all[i].id,
				       all[i].condition);
	}
}

/* The status was passed on, or there is none. The call is over; h2.c writes what is still
 * queued. */
static void over(struct ck_call *call)
{
	if (call->stream)
		ck_h2_stream_forget(CK_TAKE(call->stream));
	/* the runtime does not need the rest of the request */
	if (call->pass.stream && call->pass.ended && !ck_h2_stream_queued(call->pass.stream))
		ck_h2_stream_forget(CK_TAKE(call->pass.stream));
	ck_call_free(call);
}

static void up_headers(struct ck_h2_stream *stream, const struct ck_h2_header *headers, size_t n,
		       void *userdata)
{
	struct ck_call *call = userdata;
	struct ck_grpc_status status = { 0 };
	(void)stream;
	/* a block with a status is the last one, even if it is the first ("trailers only") */
	int has_status = ck_grpc_status_read(headers, n, &status), grpc = status.code;
	ck_grpc_status_fini(&status);
	if (has_status < 0) {
		out_of_memory(call);
		return;
	}
	call->pass.ended = call->pass.ended || has_status;
	if (ck_h2_stream_headers(call->stream, headers, n, has_status && !call->begun) < 0) {
		out_of_memory(call);
		return;
	}
	call->begun = true;
	if (!has_status)
		return;
	ck_shadow_answered(call, grpc);
	ck_h2_stream_forget(
		CK_TAKE(call->stream)); /* first: the stream may end while it is written */
	if (grpc == CK_GRPC_OK && call->pass.objects) {
		ck_connection_write(call->client->conn);
		learn(call);
	}
	over(call);
}

static void up_end(struct ck_h2_stream *stream, void *userdata)
{
	struct ck_call *call = userdata;
	(void)stream;
	call->pass.ended = true;
	ck_h2_stream_end(call->stream); /* not gRPC, but passed on all the same */
	over(call);
}

static void up_closed(struct ck_h2_stream *stream, uint32_t error, void *userdata)
{
	struct ck_call *call = userdata;
	char text[128];
	(void)stream;
	call->pass.stream = NULL;
	if ((error == CK_H2_CANCEL && ck_call_left(call) == 0) ||
	    (error == CK_H2_REFUSED_STREAM && !call->begun) ||
	    (call->daemon->conf.shadow && error != CK_H2_CANCEL)) {
		/* The runtime's own timer; or the call was not begun, and then grpc-go may
		 * send it again. */
		ck_h2_stream_reset(CK_TAKE(call->stream), error);
	} else {
		snprintf(text, sizeof(text),
			 "the runtime's connection or this call on it ended (HTTP/2 error %u)",
			 (unsigned)error);
		ck_call_answer(call, CK_GRPC_UNAVAILABLE, text);
	}
	ck_call_free(call);
}

/* ---- as it comes ----------------------------------------------------------------------------- */

static void up_data(struct ck_h2_stream *stream, const unsigned char *bytes, size_t n,
		    void *userdata)
{
	struct ck_call *call = userdata;
	(void)stream;
	if (ck_h2_stream_send(call->stream, bytes, n) < 0)
		out_of_memory(call);
	else if (over_memory(call))
		cut_off(call);
}

static void up_sent(struct ck_h2_stream *stream, size_t n, void *userdata)
{
	struct ck_call *call = userdata;
	/* the head of the message was not counted */
	size_t counted = n < call->pass.unsent ? n : call->pass.unsent;
	(void)stream;
	call->pass.unsent -= counted;
	call->client->held -= counted;
	if (!call->whole)
		ck_h2_stream_consume(call->stream, n);
}

static const struct ck_h2_handler as_it_comes = {
	.headers = up_headers,
	.data = up_data,
	.end = up_end,
	.sent = up_sent,
	.closed = up_closed,
};

/* ---- filtered -------------------------------------------------------------------------------- */

static int hides(const struct ck_object *object, bool id_only, void *userdata)
{
	struct ck_call *call = userdata;
	if (call->pass.objects &&
	    (call->method->class == CK_CRI_FILTER || !strcmp(object->id, call->id)) &&
	    object->kind == call->method->kind && ck_objects_add(call->pass.objects, object) < 0)
		return -CK_ENOMEM;
	if (!id_only)
		return ck_view_hides(call->view, object);
	/* without a key, only known objects are shown */
	int r = ck_call_shows(call->view, object);
	return r < 0 ? r : !r;
}

/* one message of the answer. 0, or an error */
static int filter_message(struct ck_call *call, const struct ck_bytes *message,
			  struct ck_error *err)
{
	struct ck_bytes left = { 0 };
	struct ck_filter_count count = { 0 };
	struct ck_objects *objects = call->pass.objects;
	int r = objects ? ck_filter_keeping(call->method, message->p, message->len, hides, call,
					    &objects->texts, &left, &count, err)
			: ck_filter_response(call->method, message->p, message->len, hides, call,
					     &left, &count, err);
	if (r < 0 && !err->code)
		ck_fail(err, -r, "%s", ck_strerror(-r));
	if (r < 0)
		return ck_context(err, r, "the runtime's answer");
	call->daemon->metrics.filtered[ck_metrics_method(call->method)] += count.hidden;
	if (r == CK_FILTER_EMPTIED && call->method->streams)
		return 0;
	if (r == CK_FILTER_EMPTIED && call->method->class == CK_CRI_STATUS)
		return ck_fail(err, CK_ENOTFOUND, "no such %s",
			       call->method->kind == CK_SANDBOX ? "pod sandbox" : "container");
	const struct ck_bytes *out = r == CK_FILTER_AS_IT_CAME ? message : &left;
	r = ck_grpc_send(call->stream, out->p, out->len);
	ck_bytes_free(&left);
	return r < 0 ? ck_nomem(err) : 0;
}

/* Is the message, whose length is known now, passed on as it comes? 1, 0, or an error. Lists of
 * containers have annotations of ours, which are cut out. */
static int decide(struct ck_call *call)
{
	const struct ck_cri_method *method = call->method;
	int hides = 1;
	if (method->whole_list && method->kind == CK_SANDBOX && !method->streams &&
	    /* what waits for the client may become as long as the copy */
	    call->pass.reader.expected <= call->daemon->conf.client_memory / 4)
		hides = ck_view_hides_any(call->view);
	if (hides < 0)
		return hides;
	call->pass.how = hides ? CK_PASS_FILTERED : CK_PASS_AS_IT_COMES;
	return 0;
}

/* @n more bytes of the first message have come */
static int pass_on(struct ck_call *call, const unsigned char *bytes, size_t n)
{
	unsigned char head[CK_GRPC_HEAD];
	int r = 0;
	if (call->pass.messages)
		return 0;
	if (call->pass.how == CK_PASS_UNDECIDED) {
		r = decide(call);
		ck_grpc_head(head, call->pass.reader.expected);
		if (r == 0 && call->pass.how == CK_PASS_AS_IT_COMES)
			r = ck_h2_stream_send(call->stream, head, sizeof(head));
	}
	if (r == 0 && call->pass.how == CK_PASS_AS_IT_COMES)
		r = ck_h2_stream_send(call->stream, bytes, n);
	return r;
}

static int message_whole(struct ck_call *call, struct ck_error *err)
{
	struct ck_bytes message = call->pass.reader.message;
	call->pass.reader.message = (struct ck_bytes){ 0 };
	if (!call->pass.messages++ && call->pass.how == CK_PASS_AS_IT_COMES) {
		call->pass.copy = message; /* still counted */
		return 0;
	}
	int r = filter_message(call, &message, err);
	call->client->held -= message.len;
	ck_bytes_free(&message);
	return r;
}

/* Let the window of the runtime grow: always inside of a message, so that it is read whole, and
 * otherwise only if the client reads. */
static void give_back(struct ck_call *call)
{
	if (!call->pass.owed || !call->pass.stream)
		return;
	if (ck_grpc_reader_inside(&call->pass.reader) ||
	    ck_h2_stream_queued(call->stream) < CK_STREAM_WINDOW) {
		ck_h2_stream_consume(call->pass.stream, call->pass.owed);
		call->pass.owed = 0;
	}
}

static void filtered_data(struct ck_h2_stream *stream, const unsigned char *bytes, size_t n,
			  void *userdata)
{
	struct ck_call *call = userdata;
	struct ck_error err = { 0 };
	(void)stream;
	call->pass.owed += n;
	int r = 0;
	while (n && r >= 0) {
		size_t used = 0, before = call->pass.reader.message.len;
		r = ck_grpc_read(&call->pass.reader, bytes, n, &used, &err);
		size_t more = call->pass.reader.message.len - before;
		call->client->held += more;
		if (r < 0)
			break;
		bytes += used;
		n -= used;
		int passed = 0;
		if (r > 0 || call->pass.reader.head_len == CK_GRPC_HEAD)
			passed = pass_on(call, bytes - more, more);
		r = passed < 0 ? ck_fail(&err, -passed, "%s", ck_strerror(-passed))
		    : r > 0    ? message_whole(call, &err)
			       : 0;
	}
	if (r < 0) {
		if (r == -CK_EMALFORMED) /* the fault of the runtime, not of the caller */
			ck_call_answer(call, CK_GRPC_INTERNAL, err.text);
		else
			ck_call_answer_error(call, &err);
		ck_call_free(call);
	} else if (over_memory(call)) {
		cut_off(call);
	} else {
		give_back(call);
	}
}

static const struct ck_h2_handler filtered = {
	.headers = up_headers,
	.data = filtered_data,
	.end = up_end,
	.sent = up_sent,
	.closed = up_closed,
};

void ck_pass_sent(struct ck_call *call, size_t n)
{
	if (!call->pass.stream)
		return;
	if (call->view)
		give_back(call);
	else
		ck_h2_stream_consume(call->pass.stream, n);
}

/* ---- places at the runtime ------------------------------------------------------------------- */

/* Lists, statuses and the like of one process have so many places. The others wait here and not in
 * the queue of the connection to the runtime, where everybody would wait behind them. */

/* what is answered at once, as a rule, and so soon leaves its place to another */
static bool is_question(const struct ck_call *call)
{
	return call->method && call->method->read_only && !call->method->streams;
}

static void not_fresh(struct ck_client_process *process, struct ck_call *call)
{
	call->pass.fresh = false;
	DL_DELETE2(process->fresh, call, pass.prev, pass.next);
	process->fresh_n--;
}

static bool has_enough(struct ck_client_process *process)
{
	uint64_t now = ck_loop_now();
	while (process->fresh && now - process->fresh->pass.asked_at >= CK_ASKING_SLOW)
		not_fresh(process, process->fresh);
	return process->asking >= CK_ASKING_MAX || process->fresh_n >= CK_ASKING_FRESH;
}

bool ck_pass_must_wait(const struct ck_call *call)
{
	struct ck_client_process *process = call->client->process;
	return is_question(call) && process && has_enough(process);
}

static void ask(struct ck_call *call)
{
	struct ck_client_process *process = call->client->process;
	if (!is_question(call) || !process)
		return;
	call->pass.asks = call->pass.fresh = true;
	call->pass.asked_at = ck_loop_now();
	DL_APPEND2(process->fresh, call, pass.prev, pass.next);
	process->fresh_n++;
	call->client->asking++;
	process->asking++;
}

static void advance(void *userdata)
{
	ck_pass_advance(userdata);
}

/* What is at the runtime may have no answer for long: then what waits does not wait for it. */
static void look_again(struct ck_client_process *process)
{
	struct ck_call *oldest = process->fresh;
	if (oldest) /* if the timer cannot be set, the next answer does the same */
		ck_loop_timer(&oldest->daemon->loop, &process->grows_old,
			      oldest->pass.asked_at + CK_ASKING_SLOW, advance, process);
}

static void wait_begin(struct ck_call *call)
{
	look_again(call->client->process);
	call->pass.waits = true;
	DL_APPEND2(call->client->waiting, call, pass.prev, pass.next);
	call->daemon->metrics.calls_waiting++;
}

static void wait_end(struct ck_call *call)
{
	call->pass.waits = false;
	DL_DELETE2(call->client->waiting, call, pass.prev, pass.next);
	call->daemon->metrics.calls_waiting--;
}

void ck_pass_leave(struct ck_call *call)
{
	struct ck_peer *client = call->client;
	if (call->pass.waits)
		wait_end(call);
	if (!call->pass.asks)
		return;
	call->pass.asks = false;
	client->asking--;
	if (!client->process)
		return;
	if (call->pass.fresh)
		not_fresh(client->process, call);
	client->process->asking--;
}

void ck_pass_forget(struct ck_peer *client)
{
	struct ck_client_process *process = client->process;
	struct ck_call *call, *next;
	DL_FOREACH_SAFE2 (process->fresh, call, next, pass.next)
		if (call->client == client)
			not_fresh(process, call);
	process->asking -= client->asking;
}

/* the oldest of the connection that has fewest at the runtime; NULL: none waits */
static struct ck_call *next_to_ask(const struct ck_client_process *process)
{
	const struct ck_peer *client, *next = NULL;
	DL_FOREACH2 (process->clients, client, of_process.next) {
		/* without an h2 the connection is over, and ends its calls one after the other */
		if (client->waiting && ck_connection_h2(client->conn) &&
		    (!next || client->asking < next->asking))
			next = client;
	}
	return next ? next->waiting : NULL;
}

/* the runtime is told what is left of its time */
static void pass_late(struct ck_call *call)
{
	for (size_t i = 0; call->deadline && i < call->headers_n; i++)
		if (ck_h2_find(&call->headers[i], 1, "grpc-timeout")) {
			call->headers[i].value = ck_grpc_timeout_print(ck_call_left(call),
								       call->pass.timeout);
			call->headers[i].value_len = strlen(call->pass.timeout);
		}
	ck_pass_whole(call);
}

void ck_pass_advance(struct ck_client_process *process)
{
	struct ck_call *call;
	if (!process || process->advancing) /* a call that could not be sent has ended */
		return;
	process->advancing = true;
	while (!has_enough(process) && (call = next_to_ask(process))) {
		wait_end(call);
		if (ck_call_left(call)) {
			pass_late(call);
		} else {
			ck_call_answer(call, CK_GRPC_DEADLINE_EXCEEDED,
				       "context deadline exceeded: this process has too many calls "
				       "under way");
			ck_call_free(call);
		}
	}
	process->advancing = false;
	if (next_to_ask(process))
		look_again(process);
}

/* ---- sending the request --------------------------------------------------------------------- */

/* Only with shadow: true is such a call passed on. The connection of creates outlasts this process,
 * which then undoes nothing by its end. */
static bool makes(const struct ck_call *call)
{
	return call->method &&
	       (call->method->class == CK_CRI_CREATE || call->method->class == CK_CRI_START);
}

void ck_pass_end(struct ck_call *call)
{
	if (call->pass.stream && call->daemon->stopping && makes(call))
		ck_h2_stream_forget(call->pass.stream);
	else if (call->pass.stream)
		ck_h2_stream_reset(call->pass.stream, CK_H2_CANCEL);
}

static bool open_up(struct ck_call *call, const struct ck_h2_header *headers, size_t n)
{
	struct ck_error err = { 0 };
	const struct ck_h2_handler *handler = call->view ? &filtered : &as_it_comes;
	int r = ck_upstream_open(call->daemon->upstream,
				 makes(call) ? CK_LANE_CREATE : CK_LANE_PASS, headers, n, handler,
				 call, &call->pass.stream, &err);
	if (r >= 0)
		return true;
	ck_call_answer_error(call, &err);
	ck_call_free(call);
	return false;
}

void ck_pass_begin(struct ck_call *call, const struct ck_h2_header *headers, size_t n)
{
	ask(call);
	open_up(call, headers, n);
}

int ck_pass_more(struct ck_call *call, const unsigned char *bytes, size_t n, struct ck_error *err)
{
	if (ck_h2_stream_send(call->pass.stream, bytes, n) < 0)
		return ck_nomem(err);
	call->pass.unsent += n;
	call->client->held += n;
	return 0;
}

void ck_pass_whole(struct ck_call *call)
{
	if (ck_pass_must_wait(call)) {
		wait_begin(call);
		return;
	}
	ask(call);
	if (call->view)
		call->pass.reader.max = call->daemon->conf.list_max;
	if (!open_up(call, call->headers, call->headers_n))
		return;
	if (ck_grpc_send(call->pass.stream, call->request.p, call->request.len) < 0) {
		out_of_memory(call);
		return;
	}
	ck_h2_stream_end(call->pass.stream);
	call->pass.unsent = call->request.len; /* still counted, until it is written */
	ck_bytes_free(&call->request);
}

/* The filter of this list names a hidden id: the answer is an empty list. */
static void answer_nothing(struct ck_call *call)
{
	call->begun = true;
	if (ck_grpc_begin(call->stream) < 0 ||
	    (!call->method->streams && ck_grpc_send(call->stream, NULL, 0) < 0))
		ck_call_answer(call, CK_GRPC_RESOURCE_EXHAUSTED, "out of memory");
	else
		ck_call_answer(call, CK_GRPC_OK, NULL);
	ck_call_free(call);
}

static void pass_request(struct ck_call *call)
{
	const struct ck_cri_method *method = call->method;
	struct ck_error err = { 0 };
	int r = 0;
	if (!call->client->filtered || method->class == CK_CRI_PASS) {
		ck_pass_whole(call); /* it had to wait, and else would not have been read whole */
		return;
	}
	if (!ck_call_guard(call))
		return;
	if (call->names_hidden) {
		answer_nothing(call);
		return;
	}
	if (call->id[0] && method->class != CK_CRI_FILTER)
		ck_object_used(call->daemon->cache, method->kind, call->id);
	if (call->id[0] && ck_life_begin(call)) /* an Update... that plugins are told of */
		return;
	if (method->class == CK_CRI_GUARD) {
		/* only the id was needed: the answer contains no objects */
		ck_view_free(CK_TAKE(call->view));
	} else {
		if (!call->view)
			r = ck_view_begin(call->daemon->cache, &call->view, &err);
		bool learns = method->class == CK_CRI_STATUS ||
			      (method->whole_list &&
			       !ck_guard_has_filter(method, call->request.p, call->request.len));
		if (r >= 0 && learns && !(call->pass.objects = CK_NEW(struct ck_objects)))
			r = ck_nomem(&err);
	}
	if (r < 0) {
		ck_call_answer_error(call, &err);
		ck_call_free(call);
		return;
	}
	ck_pass_whole(call);
}

const struct ck_call_ops ck_pass_ops = {
	.request = pass_request,
	.left = ck_call_free, /* the runtime gets RST_STREAM, as it would from the client */
};
