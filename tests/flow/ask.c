/* SPDX-License-Identifier: Apache-2.0 */
#include "src/rpc/address.h"
#include "tests/flow/ask.h"
#include "tests/flow/cri-client.h"

static void ask_headers(struct ck_h2_stream *stream, const struct ck_h2_header *headers, size_t n,
			void *userdata)
{
	struct ask *a = userdata;
	struct ck_grpc_status status = { 0 };
	(void)stream;
	if (ck_grpc_status_read(headers, n, &status) == 1)
		a->grpc = status.code;
	ck_grpc_status_fini(&status);
}

static void ask_data(struct ck_h2_stream *stream, const unsigned char *in, size_t n, void *userdata)
{
	struct ask *a = userdata;
	size_t used = 0;
	a->received += n;
	if (!a->deaf)
		ck_h2_stream_consume(stream, n);
	for (; n; in += used, n -= used) {
		int r = ck_grpc_read(&a->reader, in, n, &used, NULL);
		if (r < 0)
			return; /* an armed fault */
		if (r == 0)
			continue;
		a->messages++;
		if (a->reader.message.len &&
		    memmem(a->reader.message.p, a->reader.message.len, "kept", 4))
			a->shows_kept = true;
		snprintf(a->id, sizeof(a->id), "%s", cri_text(&a->reader.message, "1"));
	}
}

static void ask_closed(struct ck_h2_stream *stream, uint32_t error, void *userdata)
{
	struct ask *a = userdata;
	(void)stream;
	a->stream = NULL;
	a->over = true;
	a->reset = error;
}

const struct ck_h2_handler ask_handler = { .headers = ask_headers,
					   .data = ask_data,
					   .closed = ask_closed };

static void kubelet_closed(struct ck_connection *conn, bool unread, const char *why, void *userdata)
{
	(void)unread, (void)why;
	ck_connection_free(conn);
	*(struct ck_connection **)userdata = NULL;
}

static const struct ck_connection_owner kubelet_owner = { .closed = kubelet_closed };

bool ask_connect(struct world *w, struct ck_connection **kubelet)
{
	char path[300];
	snprintf(path, sizeof(path), "%s/cri.sock", w->dir);
	int fd = ck_unix_connect(path, &w->err);
	assert_true(fd >= 0);
	return ck_connection_new(&w->daemon.loop, fd, CK_H2_CLIENT, &kubelet_owner, kubelet,
				 kubelet, &w->err) >= 0;
}

bool ask_open(struct world *w, struct ck_h2 *h2, struct ask *a, const char *rpc,
	      const char *timeout)
{
	char path[128];
	snprintf(path, sizeof(path), "/runtime.v1.%s/%s",
		 strstr(rpc, "Image") ? "ImageService" : "RuntimeService", rpc);
	const struct ck_h2_header headers[] = {
		CK_H2_HEADER(":method", "POST"),
		CK_H2_HEADER(":scheme", "http"),
		{ ":path", path, 5, strlen(path) },
		CK_H2_HEADER(":authority", "localhost"),
		CK_H2_HEADER("content-type", "application/grpc"),
		CK_H2_HEADER("te", "trailers"),
		{ "grpc-timeout", timeout, 12, timeout ? strlen(timeout) : 0 },
	};
	*a = (struct ask){ .w = w, .grpc = -1, .reader.max = CK_REQUEST_MAX };
	return h2 && ck_h2_open(h2, headers, CK_COUNT(headers) - !timeout, &ask_handler, a,
				&a->stream, &w->err) >= 0;
}

void ask_begin(struct world *w, struct ck_h2 *h2, struct ask *a, const char *rpc,
	       struct ck_bytes *request, const char *timeout)
{
	if (ask_open(w, h2, a, rpc, timeout)) {
		if (ck_grpc_send(a->stream, request->p, request->len) < 0)
			ck_h2_stream_reset(CK_TAKE(a->stream), CK_H2_CANCEL);
		else
			ck_h2_stream_end(a->stream);
	}
	ck_bytes_free(request);
}

void ask_id(struct world *w, struct ck_h2 *h2, struct ask *a, const char *rpc, const char *id,
	    const char *timeout)
{
	struct ck_bytes request = { 0 };
	/* without memory it is another request, which the server must survive as well */
	ck_bytes_field_text(&request, 1, id);
	ask_begin(w, h2, a, rpc, &request, timeout);
}

void ask_end(struct ask *a)
{
	if (a->stream)
		ck_h2_stream_reset(CK_TAKE(a->stream), CK_H2_CANCEL);
	ck_grpc_reader_fini(&a->reader);
}
