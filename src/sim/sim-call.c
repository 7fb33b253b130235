/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One call. Its stream is read to the end, its handler runs after the delay of the parameters, and
 * its answer is sent. A caller whose deadline is over gets RST_STREAM(CANCEL), as from a server in
 * Go; the work for it may go on.
 */
#include <stdarg.h>
#include <stdio.h>

#include <utlist.h>

#include "src/base/limits.h"
#include "src/sim/sim-int.h"

#define STREAM_ITEMS 100u /* in one message of a streamed list */

void ck_sim_call_free(struct ck_sim_call *call)
{
	DL_DELETE(call->sim->calls, call);
	call->sim->subscribers -= call->subscribed;
	if (call->making)
		call->making->caller = NULL;
	if (call->stream)
		ck_h2_stream_forget(call->stream);
	ck_grpc_reader_fini(&call->reader);
	ck_loop_timer_free(call->timer);
	ck_loop_timer_free(call->deadline_timer);
	ck_bytes_free(&call->out.bytes);
	free(call->text);
	free(call);
}

/* ---- answering ------------------------------------------------------------------------------- */

int ck_sim_fail(struct ck_sim_call *call, int code, const char *fmt, ...)
{
	va_list ap, again;
	va_start(ap, fmt);
	va_copy(again, ap);
	int n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	free(call->text);
	call->code = code;
	call->text = n < 0 ? NULL : ck_alloc((size_t)n + 1);
	if (call->text)
		vsnprintf(call->text, (size_t)n + 1, fmt, again);
	va_end(again);
	return -CK_EFAILED;
}

int ck_sim_nomem(struct ck_sim_call *call)
{
	return ck_sim_fail(call, CK_GRPC_RESOURCE_EXHAUSTED, "out of memory");
}

/* Real runtimes repeat a command line, a mount or an environment in their error texts, also of
 * another container. */
static int quote(const struct ck_sim_call *call, struct ck_bytes *text)
{
	int r = ck_bytes_add(text, call->reader.message.p, call->reader.message.len);
	for (int kind = CK_SANDBOX; kind <= CK_CONTAINER; kind++)
		for (const struct ck_sim_object *object = call->sim->list[kind]; object && r == 0;
		     object = object->next)
			r = ck_bytes_add(text, object->config.p, object->config.len);
	return r;
}

static int quote_byte(enum ck_sim_quotes form, unsigned char c, struct ck_bytes *text)
{
	bool word = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
	bool plain = c >= ' ' && c <= '~';
	char s[8];

	if (form == CK_SIM_QUOTES_GO && c == '\n')
		snprintf(s, sizeof(s), "\\n");
	else if (form == CK_SIM_QUOTES_GO && (c == '"' || c == '\\'))
		snprintf(s, sizeof(s), "\\%c", c);
	else if (form == CK_SIM_QUOTES_TEXT || (form == CK_SIM_QUOTES_GO && plain) ||
		 (form == CK_SIM_QUOTES_PERCENT && word))
		snprintf(s, sizeof(s), "%c", plain ? c : ' ');
	else
		snprintf(s, sizeof(s), "%s%02x",
			 form == CK_SIM_QUOTES_GO        ? "\\x"
			 : form == CK_SIM_QUOTES_PERCENT ? "%"
							 : "",
			 c);
	return ck_bytes_add_text(text, s);
}

static int quote_in_base64(const struct ck_bytes *bytes, struct ck_bytes *text)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	int r = 0;

	for (size_t i = 0; i + 2 < bytes->len && r == 0; i += 3) {
		const unsigned char *p = bytes->p + i;
		unsigned v = (unsigned)p[0] << 16 | (unsigned)p[1] << 8 | p[2];
		for (int shift = 18; shift >= 0 && r == 0; shift -= 6)
			r = ck_bytes_add(text, &digits[v >> shift & 63], 1);
	}
	return r;
}

/* "failed as told: " and the requests, in the form that was asked for */
static int quote_in_form(const struct ck_sim_call *call, const char *begins, struct ck_bytes *text)
{
	enum ck_sim_quotes form = call->sim->conf.quotes;
	CK_AUTO_BYTES struct ck_bytes bytes = { 0 };
	int r = quote(call, &bytes);

	if (r == 0)
		r = ck_bytes_add_text(text, begins);
	if (r == 0 && form == CK_SIM_QUOTES_BASE64)
		r = quote_in_base64(&bytes, text);
	for (size_t i = 0; form != CK_SIM_QUOTES_BASE64 && i < bytes.len && r == 0; i++)
		r = quote_byte(form, bytes.p[i], text);
	return r == 0 ? ck_bytes_add(text, "", 1) : r;
}

int ck_sim_fail_as_told(struct ck_sim_call *call)
{
	static const char begins[] = "failed as told: ";
	size_t len = (size_t)call->sim->conf.error_text;
	if (call->sim->conf.quotes) {
		CK_AUTO_BYTES struct ck_bytes text = { 0 };
		if (quote_in_form(call, begins, &text) < 0)
			return ck_sim_nomem(call);
		return ck_sim_fail(call, CK_GRPC_UNKNOWN, "%s", (char *)text.p);
	}
	CK_AUTO_FREE char *rest = ck_alloc(len + 1);
	if (!rest)
		return ck_sim_nomem(call);
	memset(rest, 'x', len);
	return ck_sim_fail(call, CK_GRPC_UNKNOWN, "%s%s", begins,
			   len > sizeof(begins) - 1 ? rest + sizeof(begins) - 1 : "");
}

static int message_send(struct ck_sim_call *call, const struct ck_bytes *message)
{
	int r = call->begun ? 0 : ck_grpc_begin(call->stream);
	call->begun = true;
	return r < 0 ? r : ck_grpc_send(call->stream, message->p, message->len);
}

void ck_sim_item(struct ck_sim_call *call)
{
	if (++call->filled < STREAM_ITEMS || !call->method->streams || call->out.r < 0)
		return;
	call->out.r = message_send(call, &call->out.bytes);
	call->out.bytes.len = 0;
	call->filled = 0;
}

/* Unlike ck_grpc_answer(), this does not cut a text that is too long for a block of headers. Real
 * runtimes do not cut it either, and the caller must cope with it. */
static int answer_long(struct ck_sim_call *call)
{
	struct ck_h2_header headers[] = {
		CK_H2_HEADER(":status", "200"),
		CK_H2_HEADER("content-type", "application/grpc"),
		CK_H2_HEADER("grpc-status", "2"),
		{ "grpc-message", call->text, sizeof("grpc-message") - 1, strlen(call->text) },
	};
	return ck_h2_stream_headers(call->stream, headers, CK_COUNT(headers), true);
}

void ck_sim_answer(struct ck_sim_call *call)
{
	int r = 0;
	if (call->stream) {
		if (call->code == CK_GRPC_OK && call->out.r < 0)
			ck_sim_nomem(call);
		if (call->code == CK_GRPC_OK && (!call->method->streams || call->filled))
			r = message_send(call, &call->out.bytes);
		if (r == 0 && call->code == CK_GRPC_UNKNOWN && call->text &&
		    strlen(call->text) >= CK_HEADER_LIST_MAX / 2)
			r = answer_long(call);
		else if (r == 0)
			r = ck_grpc_answer(call->stream, call->begun, call->code, call->text, NULL,
					   0);
		if (r < 0)
			ck_h2_stream_reset(CK_TAKE(call->stream), CK_H2_INTERNAL_ERROR);
	}
	ck_sim_call_free(call);
}

void ck_sim_event_send(struct ck_sim_call *call, const struct ck_bytes *event)
{
	bool full = ck_h2_stream_queued(call->stream) > CK_SIM_EVENTS_MAX;
	if (!full && message_send(call, event) == 0)
		return;
	ck_sim_fail(call, CK_GRPC_RESOURCE_EXHAUSTED,
		    full ? "events are not read" : "out of memory");
	ck_sim_answer(call);
}

/* ---- running --------------------------------------------------------------------------------- */

/* the caller has left, or its deadline is over; its stream is gone */
static void call_left(struct ck_sim_call *call)
{
	call->stream = NULL;
	if (call->making)
		ck_sim_create_left(CK_TAKE(call->making));
	else if (call->paused && call->rpc->pause != CK_SIM_LIST && call->sim->conf.finish)
		return; /* a start, a stop or a removal goes on */
	ck_sim_call_free(call);
}

static void deadline_over(void *userdata)
{
	struct ck_sim_call *call = userdata;
	if (!call->stream)
		return;
	ck_h2_stream_reset(call->stream, CK_H2_CANCEL);
	call_left(call);
}

static bool due_to_fail(struct ck_sim_call *call)
{
	struct ck_sim_conf *conf = &call->sim->conf;
	uint64_t *left = call->rpc->pause == CK_SIM_START  ? &conf->fail_start
			 : call->rpc->pause == CK_SIM_REMOVE ? &conf->fail_remove
			 : call->rpc->pause == CK_SIM_LIST ? &conf->fail_list
							   : NULL;
	if (!left || !*left)
		return false;
	--*left;
	return true;
}

static void call_run(void *userdata)
{
	struct ck_sim_call *call = userdata;
	call->paused = false;
	if (due_to_fail(call))
		ck_sim_fail_as_told(call);
	else if (call->rpc->run(call) == CK_SIM_LATER)
		return;
	ck_sim_answer(call);
}

static void call_begin(struct ck_sim_call *call)
{
	const struct ck_sim_conf *conf = &call->sim->conf;
	const uint64_t pauses[] = { [CK_SIM_START] = conf->start,
				    [CK_SIM_STOP] = conf->stop,
				    [CK_SIM_REMOVE] = conf->remove,
				    [CK_SIM_LIST] = conf->list };
	uint64_t pause = pauses[call->rpc->pause];
	struct ck_loop *loop = &call->sim->loop;
	int r = 0;
	if (call->deadline != UINT64_MAX)
		r = ck_loop_timer(loop, &call->deadline_timer, call->deadline, deadline_over, call);
	if (r == 0 && pause) {
		call->paused = true;
		r = ck_loop_timer(loop, &call->timer, ck_loop_now() + pause, call_run, call);
	} else if (r == 0) {
		call_run(call);
	}
	if (r < 0) {
		ck_sim_nomem(call);
		ck_sim_answer(call);
	}
}

/* ---- reading --------------------------------------------------------------------------------- */

static int read_timeout(struct ck_sim_call *call, const struct ck_h2_header *timeout)
{
	uint64_t ns;
	call->deadline = UINT64_MAX;
	if (!timeout)
		return 0;
	if (!ck_grpc_timeout_parse(timeout->value, timeout->value_len, &ns))
		return ck_sim_fail(call, CK_GRPC_INTERNAL, "malformed grpc-timeout");
	call->deadline = ck_loop_now() + ns;
	return 0;
}

static void stream_headers(struct ck_h2_stream *stream, const struct ck_h2_header *headers,
			   size_t n, void *userdata)
{
	struct ck_sim_call *call = userdata;
	const struct ck_h2_header *path = ck_h2_find(headers, n, ":path");
	(void)stream;
	if (call->rpc)
		return; /* trailers */
	int r = read_timeout(call, ck_h2_find(headers, n, "grpc-timeout"));
	if (r == 0 && !ck_h2_is(ck_h2_find(headers, n, ":method"), "POST"))
		r = ck_sim_fail(call, CK_GRPC_INTERNAL, "the method is not POST");
	/* CRI-O refuses "application/grpc+proto" too */
	if (r == 0 && !ck_h2_is(ck_h2_find(headers, n, "content-type"), "application/grpc"))
		r = ck_sim_fail(call, CK_GRPC_INTERNAL, "the content-type is not application/grpc");
	if (r == 0 && path) {
		call->method = ck_cri_method_find(path->value, path->value_len);
		call->rpc = ck_sim_rpc_find(call->sim, call->method);
		if (call->rpc)
			call->version = memcmp(path->value, "/runtime.v1.", 12) ? "v1alpha2" : "v1";
	}
	if (r == 0 && !call->rpc)
		r = ck_sim_fail(call, CK_GRPC_UNIMPLEMENTED, "unknown method %.*s",
				path ? (int)path->value_len : 0, path ? path->value : "");
	if (r < 0)
		ck_sim_answer(call);
}

static void stream_data(struct ck_h2_stream *stream, const unsigned char *bytes, size_t n,
			void *userdata)
{
	struct ck_sim_call *call = userdata;
	struct ck_error err;
	size_t used = 0;
	ck_h2_stream_consume(stream, n);
	if (call->whole)
		return; /* a second message is ignored */
	int r = ck_grpc_read(&call->reader, bytes, n, &used, &err);
	call->whole = r > 0;
	if (r >= 0)
		return;
	if (r == -CK_ETOOBIG)
		ck_sim_fail(call, CK_GRPC_RESOURCE_EXHAUSTED,
			    "grpc: received message larger than max (%zu vs. %zu)",
			    call->reader.expected, call->reader.max);
	else
		ck_sim_fail(call, r == -CK_ENOMEM ? CK_GRPC_RESOURCE_EXHAUSTED : CK_GRPC_INTERNAL,
			    "%s", err.text);
	ck_sim_answer(call);
}

static void stream_end(struct ck_h2_stream *stream, void *userdata)
{
	struct ck_sim_call *call = userdata;
	(void)stream;
	if (call->whole) {
		call_begin(call);
		return;
	}
	ck_sim_fail(call, CK_GRPC_INTERNAL, "the request ends before its message does");
	ck_sim_answer(call);
}

static void stream_closed(struct ck_h2_stream *stream, uint32_t error, void *userdata)
{
	(void)stream;
	(void)error;
	call_left(userdata);
}

static const struct ck_h2_handler handler = {
	.headers = stream_headers,
	.data = stream_data,
	.end = stream_end,
	.closed = stream_closed,
};

int ck_sim_call_open(struct ck_sim *sim, struct ck_h2_stream *stream)
{
	struct ck_sim_call *call = CK_NEW(struct ck_sim_call);
	if (!call)
		return -CK_ENOMEM;
	call->sim = sim;
	call->stream = stream;
	call->reader.max = (size_t)sim->conf.max_message;
	DL_APPEND(sim->calls, call);
	ck_h2_stream_handle(stream, &handler, call);
	return 0;
}

/* ---- looking into the request ---------------------------------------------------------------- */

int ck_sim_request_field(struct ck_sim_call *call, uint32_t number, struct ck_wire_field *ret_field)
{
	struct ck_wire wire = ck_wire_begin(call->reader.message.p, call->reader.message.len);
	struct ck_wire_field field;
	struct ck_error err;
	int r, found = 0;
	while ((r = ck_wire_next(&wire, &field, &err)) > 0) {
		if (field.number == number) {
			*ret_field = field;
			found = 1;
		}
	}
	return r < 0 ? ck_sim_fail(call, CK_GRPC_INTERNAL, "grpc: error unmarshalling request: %s",
				   err.text)
		     : found;
}

int ck_sim_request_object(struct ck_sim_call *call, enum ck_kind kind, bool must,
			  struct ck_sim_object **ret_object)
{
	const char *what = kind == CK_SANDBOX ? "sandbox" : "container";
	struct ck_wire_field field = { .data = (const unsigned char *)"" };
	int r = ck_sim_request_field(call, CRI_ContainerStatusRequest_container_id, &field);
	if (r < 0)
		return r;
	*ret_object = NULL;
	r = ck_sim_object_find(call->sim, kind, (const char *)field.data, field.len, ret_object);
	int shown = field.len < CK_SIM_ID ? (int)field.len : (int)CK_SIM_ID;
	if (r == -CK_ECONFLICT)
		return ck_sim_fail(call, CK_GRPC_UNKNOWN,
				   "an error occurred when try to find %s: multiple IDs found with "
				   "provided prefix: %.*s",
				   what, shown, (const char *)field.data);
	if (r < 0 && must)
		return ck_sim_fail(call, CK_GRPC_NOT_FOUND,
				   "an error occurred when try to find %s \"%.*s\": not found",
				   what, shown, (const char *)field.data);
	return 0;
}
