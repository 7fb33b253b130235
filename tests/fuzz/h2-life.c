/* SPDX-License-Identifier: Apache-2.0 */
/* A connection of ours that is fed by a peer, for the fuzz targets. */
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/rpc/grpc.h"
#include "tests/fuzz/h2-life.h"

#define CALLS 3

struct call {
	struct end *end;
	struct ck_h2_stream *stream;
	struct ck_grpc_reader reader;
	bool begun;
	uint64_t bytes; /* digest of the data: pieces do not matter */
};

struct end {
	struct ck_h2 *h2;
	uint64_t told;
	size_t open;
};

static uint64_t mix(uint64_t digest, const void *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		digest = (digest ^ ((const unsigned char *)p)[i]) * UINT64_C(1099511628211);
	return digest;
}

static void tell(struct call *call, char what, const void *p, size_t n)
{
	int32_t id = ck_h2_stream_id(call->stream);
	call->end->told = mix(mix(mix(call->end->told, &what, 1), &id, sizeof(id)), p, n);
}

static void let_go(struct call *call)
{
	call->end->open--;
	ck_grpc_reader_fini(&call->reader);
	free(call);
}

static void on_headers(struct ck_h2_stream *stream, const struct ck_h2_header *headers, size_t n,
		       void *userdata)
{
	struct call *call = userdata;
	struct ck_grpc_status status = { 0 };
	const struct ck_h2_header *timeout = ck_h2_find(headers, n, "grpc-timeout");
	uint64_t ns;
	if (stream != call->stream)
		abort();
	for (size_t i = 0; i < n; i++) {
		tell(call, 'h', headers[i].name, headers[i].name_len);
		tell(call, '=', headers[i].value, headers[i].value_len);
	}
	if (timeout && ck_grpc_timeout_parse(timeout->value, timeout->value_len, &ns)) {
		char text[CK_GRPC_TIMEOUT];
		uint64_t again;
		ck_grpc_timeout_print(ns, text);
		if (!ck_grpc_timeout_parse(text, strlen(text), &again) || again < ns)
			abort();
	}
	if (ck_grpc_status_read(headers, n, &status) > 0) {
		tell(call, 's', status.message, status.message ? strlen(status.message) : 0);
		tell(call, 'd', status.details, status.details_len);
	}
	ck_grpc_status_fini(&status);
}

static void on_data(struct ck_h2_stream *stream, const unsigned char *bytes, size_t n,
		    void *userdata)
{
	struct call *call = userdata;
	size_t used = 0;
	int r = 0;
	call->bytes = mix(call->bytes, bytes, n);
	for (size_t at = 0; at < n && r >= 0; at += used) {
		r = ck_grpc_read(&call->reader, bytes + at, n - at, &used, NULL);
		if (r > 0 && !call->begun) {
			call->begun = true;
			ck_grpc_begin(stream);
		}
		if (r > 0)
			ck_grpc_send(stream, call->reader.message.p, call->reader.message.len);
	}
	ck_h2_stream_consume(stream, n);
	if (r < 0) {
		ck_h2_stream_reset(stream, CK_H2_CANCEL);
		let_go(call);
	}
}

static void on_end(struct ck_h2_stream *stream, void *userdata)
{
	struct call *call = userdata;
	tell(call, 'e', &call->bytes, sizeof(call->bytes));
	ck_grpc_answer(stream, call->begun,
		       ck_grpc_reader_inside(&call->reader) ? CK_GRPC_INTERNAL : CK_GRPC_OK, "done",
		       "d", 1);
}

static void on_client_end(struct ck_h2_stream *stream, void *userdata)
{
	struct call *call = userdata;
	(void)stream;
	tell(call, 'e', &call->bytes, sizeof(call->bytes));
}

static void on_client_data(struct ck_h2_stream *stream, const unsigned char *bytes, size_t n,
			   void *userdata)
{
	struct call *call = userdata;
	call->bytes = mix(call->bytes, bytes, n);
	ck_h2_stream_consume(stream, n);
}

static void on_closed(struct ck_h2_stream *stream, uint32_t error, void *userdata)
{
	struct call *call = userdata;
	if (stream != call->stream)
		abort();
	tell(call, 'c', &error, sizeof(error));
	let_go(call);
}

static const struct ck_h2_handler server_handler = { on_headers, on_data, on_end, NULL, on_closed };
static const struct ck_h2_handler client_handler = { on_headers, on_client_data, on_client_end,
						     NULL, on_closed };

static struct call *call_new(struct end *end)
{
	struct call *call = calloc(1, sizeof(*call));
	if (!call)
		abort();
	call->end = end;
	call->reader.max = 4096;
	end->open++;
	return call;
}

static void on_opened(struct ck_h2_stream *stream, void *userdata)
{
	struct call *call = call_new(userdata);
	call->stream = stream;
	ck_h2_stream_handle(stream, &server_handler, call);
}

static void on_late_reset(struct ck_h2 *h2, int32_t id, uint32_t error, void *userdata)
{
	struct end *end = userdata;
	(void)h2;
	end->told = mix(mix(mix(end->told, "l", 1), &id, sizeof(id)), &error, sizeof(error));
}

static const struct ck_h2_owner owner = { .opened = on_opened, .late_reset = on_late_reset };

static void fetch(struct end *end)
{
	const unsigned char *bytes;
	while (ck_h2_next(end->h2, &bytes, NULL) > 0)
		;
}

#define BY_PIECES UINT64_C(1) /* the life ended because of how the bytes were cut */

/* @piece: bytes at once. @eager: what is to be sent is fetched after each, which may close streams
 * earlier. Return: a digest of what was told, or BY_PIECES */
static uint64_t life(bool server, const uint8_t *data, size_t size, size_t piece, bool eager)
{
	const struct ck_h2_header headers[] = { CK_H2_HEADER(":method", "POST"),
						CK_H2_HEADER(":path", "/a/b") };
	struct end end = { 0 };
	struct ck_error err = { 0 };
	int r = 0;
	if (ck_h2_new(server ? CK_H2_SERVER : CK_H2_CLIENT, 65535, &owner, &end, &end.h2, NULL) < 0)
		abort();
	for (int i = 0; i < CALLS && !server; i++) {
		struct call *call = call_new(&end);
		if (ck_h2_open(end.h2, headers, CK_COUNT(headers), &client_handler, call,
			       &call->stream, NULL) < 0)
			abort();
		ck_grpc_send(call->stream, "request", 7);
		ck_h2_stream_end(call->stream);
	}
	fetch(&end);
	for (size_t at = 0; at < size && r == 0; at += piece) {
		r = ck_h2_feed(end.h2, data + at, size - at < piece ? size - at : piece, &err);
		if (eager)
			fetch(&end);
	}
	fetch(&end);
	if (!ck_h2_streams(end.h2) && (ck_h2_queued(end.h2) || end.open))
		abort();
	ck_h2_free(end.h2);
	if (end.open)
		abort();
	/* nghttp2 counts each piece of such a frame's head as a frame */
	return strstr(err.text, "CONTINUATION") ? BY_PIECES : end.told;
}

/* A client that ends its last stream behind a GOAWAY is done: what follows is read only if it came
 * in the same piece. */
static bool may_have_goaway(const uint8_t *data, size_t size)
{
	/* the first bit of a stream's number is reserved, and ignored */
	for (size_t i = 0; i + 6 <= size; i++)
		if (data[i] == 7 && !(data[i + 2] & 0x7f) && !data[i + 3] && !data[i + 4] &&
		    !data[i + 5])
			return true;
	return false;
}

void h2_lives(bool server, const uint8_t *data, size_t size)
{
	/* byte by byte, unless that takes too long */
	const size_t pieces[] = { size <= 8192 ? 1 : 97, 13 };
	uint64_t whole = life(server, data, size, size ? size : 1, false);
	for (size_t i = 0; i < CK_COUNT(pieces); i++) {
		uint64_t told = life(server, data, size, pieces[i], false);
		if (told != whole && told != BY_PIECES && !(server && may_have_goaway(data, size)))
			abort();
	}
	life(server, data, size, 7, true);
}
