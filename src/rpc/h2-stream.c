/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stream: its queue, its trailers and its end. Data is copied from the queue to h2->out, behind
 * its frame header; nghttp2 does not copy it. The object lives until nghttp2 closes the stream,
 * even if its owner has forgotten it before.
 */
#include <utlist.h>

#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/rpc/h2-int.h"

#define QUEUE_HOLE 4096u /* the rest of a queue is moved to its beginning only above that */

struct ck_h2_trailers { /* one block of memory with their texts */
	size_t n;
	struct ck_h2_header headers[];
};

struct ck_h2_stream *ck_h2_stream_new(struct ck_h2 *h2, const struct ck_h2_handler *handler,
				      void *userdata)
{
	struct ck_h2_stream *stream = CK_NEW(struct ck_h2_stream);
	if (!stream)
		return NULL;
	stream->h2 = h2;
	stream->handler = handler;
	stream->userdata = userdata;
	DL_PREPEND(h2->streams, stream);
	h2->n_streams++;
	return stream;
}

static size_t queue_left(const struct ck_h2_stream *stream)
{
	return stream->queue.len - stream->head;
}

static void queue_drop(struct ck_h2_stream *stream)
{
	stream->h2->queued -= queue_left(stream);
	ck_bytes_free(&stream->queue);
	stream->head = 0;
}

void ck_h2_stream_free(struct ck_h2_stream *stream)
{
	struct ck_h2 *h2 = stream->h2;
	DL_DELETE(h2->streams, stream);
	h2->n_streams--;
	if (h2->delayed == stream)
		h2->delayed = NULL;
	queue_drop(stream);
	free(stream->trailers);
	free(stream);
}

void ck_h2_stream_rst(struct ck_h2_stream *stream, uint32_t error)
{
	ck_h2_must(stream->h2, nghttp2_submit_rst_stream(stream->h2->session, NGHTTP2_FLAG_NONE,
							 stream->id, error));
}

static void stream_resume(struct ck_h2_stream *stream)
{
	if (!stream->deferred)
		return;
	stream->deferred = false;
	ck_h2_must(stream->h2, nghttp2_session_resume_data(stream->h2->session, stream->id));
}

/* counted as HTTP/2 does; peers refuse more, and so do we */
static bool sendable(const struct ck_h2_header *headers, size_t n)
{
	size_t size = 0;
	for (size_t i = 0; i < n && size <= CK_HEADER_LIST_MAX; i++)
		size += headers[i].name_len + headers[i].value_len + CK_HEADER_EXTRA;
	return n <= CK_HEADERS_MAX && size <= CK_HEADER_LIST_MAX;
}

static void to_nv(nghttp2_nv *nv, const struct ck_h2_header *headers, size_t n)
{
	for (size_t i = 0; i < n; i++)
		nv[i] = (nghttp2_nv){ (uint8_t *)headers[i].name, (uint8_t *)headers[i].value,
				      headers[i].name_len, headers[i].value_len,
				      NGHTTP2_NV_FLAG_NONE };
}

static struct ck_h2_trailers *trailers_dup(const struct ck_h2_header *headers, size_t n)
{
	size_t size = sizeof(struct ck_h2_trailers) + n * sizeof(*headers);
	for (size_t i = 0; i < n; i++)
		size += headers[i].name_len + headers[i].value_len;
	struct ck_h2_trailers *copy = ck_alloc(size);
	if (!copy)
		return NULL;
	char *p = (char *)&copy->headers[n];
	copy->n = n;
	for (size_t i = 0; i < n; i++) {
		copy->headers[i] = headers[i];
		copy->headers[i].name = memcpy(p, headers[i].name, headers[i].name_len);
		copy->headers[i].value =
			memcpy(p + headers[i].name_len, headers[i].value, headers[i].value_len);
		p += headers[i].name_len + headers[i].value_len;
	}
	return copy;
}

static int trailers_submit(struct ck_h2_stream *stream, const struct ck_h2_header *headers,
			   size_t n)
{
	nghttp2_nv nv[CK_HEADERS_MAX];
	to_nv(nv, headers, n);
	return nghttp2_submit_trailer(stream->h2->session, stream->id, nv, n) == 0 ? 0 : -CK_ENOMEM;
}

/* ---- what nghttp2 asks for ------------------------------------------------------------------- */

static ssize_t on_read(nghttp2_session *session, int32_t id, uint8_t *buf, size_t max,
		       uint32_t *flags, nghttp2_data_source *source, void *userdata)
{
	struct ck_h2_stream *stream = source->ptr;
	size_t left = queue_left(stream), n = left < max ? left : max;
	(void)session, (void)id, (void)buf, (void)userdata;
	if (!n && !stream->ending) {
		stream->deferred = true;
		return NGHTTP2_ERR_DEFERRED;
	}
	*flags |= NGHTTP2_DATA_FLAG_NO_COPY;
	if (n == left && stream->ending)
		*flags |= NGHTTP2_DATA_FLAG_EOF |
			  (stream->trailing ? NGHTTP2_DATA_FLAG_NO_END_STREAM : 0u);
	return (ssize_t)n;
}

int ck_h2_on_send_data(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *head,
		       size_t n, nghttp2_data_source *source, void *userdata)
{
	struct ck_h2 *h2 = userdata;
	struct ck_h2_stream *stream = source->ptr;
	(void)session, (void)frame;
	h2->delayed = NULL;
	if (h2->out.room - h2->out.len < CK_H2_FRAME_HEAD + n) {
		h2->delayed = stream;
		return NGHTTP2_ERR_WOULDBLOCK;
	}
	ck_bytes_add(&h2->out, head, CK_H2_FRAME_HEAD); /* there is room */
	ck_bytes_add(&h2->out, stream->queue.p ? stream->queue.p + stream->head : NULL, n);
	stream->head += n;
	h2->queued -= n;
	if (stream->ending && !queue_left(stream))
		/* the request of a create is sent at once; its answer may take minutes */
		queue_drop(stream);
	if (stream->trailers && !queue_left(stream)) {
		CK_AUTO_FREE struct ck_h2_trailers *trailers = CK_TAKE(stream->trailers);
		if (trailers_submit(stream, trailers->headers, trailers->n) < 0)
			h2->broken = CK_ENOMEM;
	}
	if (n && stream->handler && stream->handler->sent)
		stream->handler->sent(stream, n, stream->userdata);
	return h2->broken ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
}

/* ---- what the owner of a stream does --------------------------------------------------------- */

int ck_h2_open(struct ck_h2 *h2, const struct ck_h2_header *headers, size_t n,
	       const struct ck_h2_handler *handler, void *userdata,
	       struct ck_h2_stream **ret_stream, struct ck_error *err)
{
	nghttp2_nv nv[CK_HEADERS_MAX];
	if (h2->draining || h2->broken)
		return ck_fail(err, CK_EUNAVAILABLE, "the connection takes no new calls");
	if (!sendable(headers, n))
		return ck_fail(err, CK_ETOOBIG, "the call's headers are over %u bytes",
			       CK_HEADER_LIST_MAX);
	struct ck_h2_stream *stream = ck_h2_stream_new(h2, handler, userdata);
	if (!stream)
		return ck_nomem(err);
	const nghttp2_data_provider body = { .source.ptr = stream, .read_callback = on_read };
	to_nv(nv, headers, n);
	int32_t id = nghttp2_submit_request(h2->session, NULL, nv, n, &body, stream);
	if (id < 0) {
		ck_h2_stream_free(stream);
		if (id != NGHTTP2_ERR_STREAM_ID_NOT_AVAILABLE)
			return ck_nomem(err);
		h2->draining = true; /* draining() is called by the next ck_h2_feed() */
		return ck_fail(err, CK_EUNAVAILABLE,
			       "the connection has had all the calls it can have");
	}
	stream->id = id;
	*ret_stream = stream;
	ck_h2_poke(h2);
	return 0;
}

void ck_h2_stream_handle(struct ck_h2_stream *stream, const struct ck_h2_handler *handler,
			 void *userdata)
{
	stream->handler = handler;
	stream->userdata = userdata;
}

void ck_h2_stream_forget(struct ck_h2_stream *stream)
{
	if (!stream->ending) {
		ck_h2_stream_reset(stream, CK_H2_CANCEL);
		return;
	}
	ck_h2_stream_handle(stream, NULL, NULL);
	ck_h2_stream_consume(stream, stream->held);
}

struct ck_h2 *ck_h2_stream_h2(const struct ck_h2_stream *stream)
{
	return stream->h2;
}

int32_t ck_h2_stream_id(const struct ck_h2_stream *stream)
{
	return stream->id;
}

int ck_h2_stream_headers(struct ck_h2_stream *stream, const struct ck_h2_header *headers, size_t n,
			 bool end)
{
	nghttp2_nv nv[CK_HEADERS_MAX];
	struct ck_h2 *h2 = stream->h2;
	int r = 0;
	if (stream->ending)
		return 0;
	if (!sendable(headers, n)) {
		stream->ending = true;
		ck_h2_stream_rst(stream, CK_H2_INTERNAL_ERROR);
	} else if (!stream->begun) {
		const nghttp2_data_provider body = { .source.ptr = stream,
						     .read_callback = on_read };
		to_nv(nv, headers, n);
		r = nghttp2_submit_response(h2->session, stream->id, nv, n, end ? NULL : &body) == 0
			    ? 0
			    : -CK_ENOMEM;
		stream->begun = r == 0;
		stream->ending = r == 0 && end;
	} else {
		if (!queue_left(stream))
			/* not by way of on_read(): the window may be closed */
			r = trailers_submit(stream, headers, n);
		else if (!(stream->trailers = trailers_dup(headers, n)))
			r = -CK_ENOMEM;
		stream->ending = stream->trailing = r == 0;
	}
	ck_h2_poke(h2);
	return r;
}

int ck_h2_stream_send(struct ck_h2_stream *stream, const void *bytes, size_t n)
{
	if (stream->ending || !n)
		return 0;
	struct ck_bytes *queue = &stream->queue;
	if (stream->head == queue->len) {
		stream->head = queue->len = 0;
	} else if (stream->head > QUEUE_HOLE && stream->head > queue->len / 2) {
		queue->len -= stream->head;
		memmove(queue->p, queue->p + stream->head, queue->len);
		stream->head = 0;
	}
	if (ck_bytes_add(queue, bytes, n) < 0)
		return -CK_ENOMEM;
	stream->h2->queued += n;
	stream_resume(stream);
	ck_h2_poke(stream->h2);
	return 0;
}

void ck_h2_stream_end(struct ck_h2_stream *stream)
{
	if (stream->ending)
		return;
	stream->ending = true;
	stream_resume(stream);
	ck_h2_poke(stream->h2);
}

void ck_h2_stream_consume(struct ck_h2_stream *stream, size_t n)
{
	n = n < stream->held ? n : stream->held;
	stream->held -= n;
	if (!n || stream->ended) /* nothing more comes, so the window is not needed */
		return;
	ck_h2_must(stream->h2, nghttp2_session_consume_stream(stream->h2->session, stream->id, n));
	ck_h2_poke(stream->h2);
}

void ck_h2_stream_reset(struct ck_h2_stream *stream, uint32_t error)
{
	ck_h2_stream_handle(stream, NULL, NULL);
	stream->ending = true;
	ck_h2_stream_rst(stream, error);
	if (stream->h2->delayed != stream)
		queue_drop(stream);
	ck_h2_poke(stream->h2);
}

size_t ck_h2_stream_queued(const struct ck_h2_stream *stream)
{
	return queue_left(stream);
}
