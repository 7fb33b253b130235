/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Our own unary calls to the runtime. A call that the runtime has not begun (REFUSED_STREAM, at a
 * GOAWAY) is sent again on a new connection, as grpc-go does once. After any other loss nobody
 * knows the outcome, and the reply says so.
 */
#include <stdio.h>

#include "src/base/error.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/rpc/upstream.h"

struct ck_unary_call {
	struct ck_upstream *upstream;
	struct ck_h2_stream *stream; /* NULL: over */
	enum ck_lane lane;
	struct ck_h2_header *headers; /* and their bytes, in one block */
	size_t headers_n;
	struct ck_bytes request; /* kept as long as it may be refused */
	struct ck_grpc_reader reader;
	struct ck_unary_reply reply;
	bool has_message, has_status, ended;
	unsigned sent_again;
	int http;
	struct ck_loop_timer *timer;
	ck_unary_cb *cb;
	void *userdata;
};

static void rpc_free(struct ck_unary_call *rpc)
{
	ck_loop_timer_free(rpc->timer);
	ck_grpc_reader_fini(&rpc->reader);
	ck_grpc_status_fini(&rpc->reply.status);
	ck_bytes_free(&rpc->reply.message);
	ck_bytes_free(&rpc->request);
	free(rpc->headers);
	free(rpc);
}

static void done(struct ck_unary_call *rpc)
{
	if (rpc->stream && rpc->ended && !ck_h2_stream_queued(rpc->stream))
		ck_h2_stream_forget(CK_TAKE(rpc->stream));
	else if (rpc->stream)
		ck_h2_stream_reset(CK_TAKE(rpc->stream), CK_H2_CANCEL);
	rpc->cb(&rpc->reply, rpc->userdata);
	rpc_free(rpc);
}

/* end the call with a status of our own */
static void fail(struct ck_unary_call *rpc, int code, const char *text, bool lost)
{
	ck_grpc_status_fini(&rpc->reply.status);
	rpc->reply.status = (struct ck_grpc_status){ .code = code, .message = ck_strdup(text) };
	rpc->reply.lost = lost;
	done(rpc);
}

static void expired(void *userdata)
{
	fail(userdata, CK_GRPC_DEADLINE_EXCEEDED, "the runtime has not answered in time", true);
}

static void finish(struct ck_unary_call *rpc)
{
	if (!rpc->has_status && rpc->http != 200) {
		fail(rpc, ck_grpc_from_http(rpc->http),
		     "the runtime answered without a gRPC status", false);
	} else if (!rpc->has_status) {
		fail(rpc, CK_GRPC_UNAVAILABLE, "the runtime's answer has no status", true);
	} else if (rpc->reply.status.code == CK_GRPC_OK && !rpc->has_message) {
		fail(rpc, CK_GRPC_INTERNAL, "the runtime's answer has no message", true);
	} else {
		done(rpc);
	}
}

static void rpc_headers(struct ck_h2_stream *stream, const struct ck_h2_header *headers, size_t n,
			void *userdata)
{
	struct ck_unary_call *rpc = userdata;
	const struct ck_h2_header *http = ck_h2_find(headers, n, ":status");
	(void)stream;
	if (http)
		rpc->http = ck_grpc_http(http);
	int r = rpc->has_status ? 0 : ck_grpc_status_read(headers, n, &rpc->reply.status);
	if (r < 0)
		fail(rpc, CK_GRPC_RESOURCE_EXHAUSTED, "out of memory", true);
	else if (r > 0)
		rpc->has_status = true;
}

static void rpc_data(struct ck_h2_stream *stream, const unsigned char *bytes, size_t n,
		     void *userdata)
{
	struct ck_unary_call *rpc = userdata;
	struct ck_error err;
	ck_h2_stream_consume(stream, n);
	ck_bytes_free(&rpc->request);
	while (n) {
		size_t used;
		int r = ck_grpc_read(&rpc->reader, bytes, n, &used, &err);
		bytes += r < 0 ? n : used;
		n -= r < 0 ? n : used;
		if (r > 0 && rpc->has_message)
			r = ck_fail(&err, CK_EMALFORMED, "the runtime answered with two messages");
		if (r < 0) {
			fail(rpc,
			     r == -CK_EMALFORMED ? CK_GRPC_INTERNAL : CK_GRPC_RESOURCE_EXHAUSTED,
			     err.text, true);
			return;
		}
		if (r > 0) {
			rpc->has_message = true;
			rpc->reply.message = rpc->reader.message;
			rpc->reader.message = (struct ck_bytes){ 0 };
		}
	}
}

static void rpc_end(struct ck_h2_stream *stream, void *userdata)
{
	struct ck_unary_call *rpc = userdata;
	(void)stream;
	rpc->ended = true;
	finish(rpc);
}

static int send_out(struct ck_unary_call *rpc, struct ck_error *err);

static void rpc_closed(struct ck_h2_stream *stream, uint32_t error, void *userdata)
{
	struct ck_unary_call *rpc = userdata;
	struct ck_error err;
	char text[128];
	(void)stream;
	rpc->stream = NULL;
	if (rpc->has_status && error == CK_H2_NO_ERROR) {
		finish(rpc);
		return;
	}
	if (error == CK_H2_REFUSED_STREAM && !rpc->http) {
		int r = rpc->sent_again++ < CK_SEND_AGAIN_MAX
				? send_out(rpc, &err)
				: ck_fail(&err, CK_EUNAVAILABLE, "the runtime refuses this call");
		if (r >= 0)
			return;
		rpc->reply.unsent = true;
		fail(rpc, CK_GRPC_UNAVAILABLE, err.text, false);
		return;
	}
	snprintf(text, sizeof(text),
		 "the runtime's connection or this call on it ended (HTTP/2 error %u)",
		 (unsigned)error);
	fail(rpc, CK_GRPC_UNAVAILABLE, text, true);
}

static const struct ck_h2_handler rpc_handler = {
	.headers = rpc_headers,
	.data = rpc_data,
	.end = rpc_end,
	.closed = rpc_closed,
};

static int send_out(struct ck_unary_call *rpc, struct ck_error *err)
{
	int r = ck_upstream_open(rpc->upstream, rpc->lane, rpc->headers, rpc->headers_n,
				 &rpc_handler, rpc, &rpc->stream, err);
	if (r < 0)
		return r;
	if (ck_grpc_send(rpc->stream, rpc->request.p, rpc->request.len) < 0) {
		ck_h2_stream_reset(CK_TAKE(rpc->stream), CK_H2_CANCEL);
		return ck_nomem(err);
	}
	ck_h2_stream_end(rpc->stream);
	return 0;
}

/* ---- headers: our own, then the caller's metadata, all in one block -------------------------- */

static bool is_ours(const struct ck_h2_header *h)
{
	static const char *const ours[] = { "content-type", "te", "grpc-timeout", "grpc-encoding",
					    "grpc-accept-encoding" };
	if (!h->name_len || h->name[0] == ':')
		return true;
	for (size_t i = 0; i < CK_COUNT(ours); i++)
		if (strlen(ours[i]) == h->name_len && !memcmp(ours[i], h->name, h->name_len))
			return true;
	return false;
}

static const char *keep(char **to, const char *text, size_t len)
{
	char *at = *to;
	if (len)
		memcpy(at, text, len);
	*to += len;
	return at;
}

static void add_header(struct ck_unary_call *rpc, char **to, struct ck_h2_header h)
{
	const char *name = keep(to, h.name, h.name_len), *value = keep(to, h.value, h.value_len);
	rpc->headers[rpc->headers_n++] =
		(struct ck_h2_header){ name, value, h.name_len, h.value_len };
}

static int make_headers(struct ck_unary_call *rpc, const struct ck_unary_options *options)
{
	char timeout[CK_GRPC_TIMEOUT], path[128];
	const char *version = ck_upstream_version(rpc->upstream);
	ck_grpc_timeout_print(options->timeout, timeout);
	if (options->path[0] == '/')
		snprintf(path, sizeof(path), "%s", options->path);
	else
		snprintf(path, sizeof(path), "/%s.%s/%s", version ? version : "runtime.v1",
			 strstr(options->path, "Image") ? "ImageService" : "RuntimeService",
			 options->path);
	const struct ck_h2_header ours[] = {
		CK_H2_HEADER(":method", "POST"),
		CK_H2_HEADER(":scheme", "http"),
		{ ":path", path, sizeof(":path") - 1, strlen(path) },
		CK_H2_HEADER(":authority", "localhost"),
		CK_H2_HEADER("content-type", "application/grpc"),
		CK_H2_HEADER("te", "trailers"),
		{ "grpc-timeout", timeout, sizeof("grpc-timeout") - 1, strlen(timeout) },
	};
	size_t n = CK_COUNT(ours) + options->metadata_n, size = 0;
	for (size_t i = 0; i < CK_COUNT(ours); i++)
		size += ours[i].name_len + ours[i].value_len;
	for (size_t i = 0; i < options->metadata_n; i++)
		size += options->metadata[i].name_len + options->metadata[i].value_len;
	rpc->headers = ck_alloc(n * sizeof(*rpc->headers) + size);
	if (!rpc->headers)
		return -CK_ENOMEM;
	char *text = (char *)(rpc->headers + n);
	for (size_t i = 0; i < CK_COUNT(ours); i++)
		add_header(rpc, &text, ours[i]);
	for (size_t i = 0; i < options->metadata_n; i++)
		if (!is_ours(&options->metadata[i]))
			add_header(rpc, &text, options->metadata[i]);
	return 0;
}

int ck_unary_start(struct ck_upstream *upstream, const struct ck_unary_options *options,
		   const void *message, size_t len, ck_unary_cb *cb, void *userdata,
		   struct ck_unary_call **ret_rpc, struct ck_error *err)
{
	struct ck_unary_call *rpc = CK_NEW(struct ck_unary_call);
	if (!rpc)
		return ck_nomem(err);
	*rpc = (struct ck_unary_call){
		.upstream = upstream, .lane = options->lane, .cb = cb, .userdata = userdata
	};
	rpc->reader.max = options->reply_max ? options->reply_max : CK_LIST_MAX;
	int r = make_headers(rpc, options);
	if (r >= 0)
		r = ck_bytes_add(&rpc->request, message, len);
	if (r >= 0)
		r = ck_loop_timer(ck_upstream_loop(upstream), &rpc->timer,
				  ck_loop_now() + options->timeout, expired, rpc);
	r = r < 0 ? ck_nomem(err) : send_out(rpc, err);
	if (r < 0) {
		rpc_free(rpc);
		return r;
	}
	if (ret_rpc)
		*ret_rpc = rpc;
	return 0;
}

void ck_unary_cancel(struct ck_unary_call *rpc)
{
	if (!rpc)
		return;
	if (rpc->stream)
		ck_h2_stream_reset(rpc->stream, CK_H2_CANCEL);
	rpc_free(rpc);
}
