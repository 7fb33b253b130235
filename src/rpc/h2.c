/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nghttp2, configured for gRPC's peers. Its defaults do not fit them in these ways:
 * - A kubelet's :authority may be the path of a socket. nghttp2's checks of HTTP messages are off;
 *   on_header() and headers_told() have ours.
 * - A kubelet that times out resets its stream, hundreds at once on a busy node. The limit on
 *   resets is raised.
 * - An error text may be longer than a header block can be. The peer is told our limit and then
 *   fails that call only. A block of ours that cannot be sent resets its stream, so that the caller
 *   does not wait for ever.
 * - A runtime may close its half before we have passed its data on. Queues and trailers belong to
 *   the half that writes.
 * - Waiting creates are open streams. A peer may have as many as all calls may be, and no limit is
 *   assumed before the peer's SETTINGS come.
 * - nghttp2 keeps closed streams for a tree of priorities that nobody uses. That is off.
 */
#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/rpc/h2-int.h"

/* the longest frame; peers may allow longer ones, but nghttp2 does not send them */
#define FRAME_ROOM    (CK_H2_FRAME_HEAD + 1u + 16384u)
#define OUT_ENOUGH    (65536u - FRAME_ROOM)            /* fetched at once */
/* nghttp2 estimates a block longer than it is */
#define BLOCK_SLACK   4096u

void ck_h2_poke(struct ck_h2 *h2)
{
	if (h2->inside || h2->pending || !(h2->broken || nghttp2_session_want_write(h2->session)))
		return;
	h2->pending = true;
	if (h2->owner->pending)
		h2->owner->pending(h2, h2->userdata);
}

int ck_h2_must(struct ck_h2 *h2, int rv)
{
	if (nghttp2_is_fatal(rv) && !h2->broken)
		h2->broken = CK_ENOMEM;
	return nghttp2_is_fatal(rv) ? -CK_ENOMEM : 0;
}

/* ---- what nghttp2 tells ---------------------------------------------------------------------- */

/* nghttp2 decodes a list that belongs to no call, and tells nothing of it */
static int on_begin_frame(nghttp2_session *session, const nghttp2_frame_hd *head, void *userdata)
{
	struct ck_h2 *h2 = userdata;
	if (h2->role == CK_H2_CLIENT)
		return 0;
	if (head->type == NGHTTP2_HEADERS) {
		nghttp2_stream *stream = nghttp2_session_find_stream(session, head->stream_id);
		bool fresh = head->stream_id > nghttp2_session_get_last_proc_stream_id(session) &&
			     !h2->draining;
		h2->unheard = !fresh && (!stream || nghttp2_stream_get_state(stream) !=
							    NGHTTP2_STREAM_STATE_OPEN);
	} else if (head->type != NGHTTP2_CONTINUATION) {
		return 0;
	}
	h2->unheard_size += h2->unheard ? head->length : 0;
	h2->too_long = h2->unheard_size > CK_HEADERS_UNHEARD;
	return h2->too_long ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
}

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *userdata)
{
	struct ck_h2 *h2 = userdata;
	h2->texts.len = h2->n_headers = h2->list_size = h2->refused_n = 0;
	h2->regular = false;
	h2->bad = 0;
	if (frame->headers.cat != NGHTTP2_HCAT_REQUEST)
		return 0;
	struct ck_h2_stream *stream = ck_h2_stream_new(h2, NULL, NULL);
	if (!stream)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE; /* resets this stream */
	stream->id = frame->hd.stream_id;
	nghttp2_session_set_stream_user_data(session, stream->id, stream);
	return 0;
}

/* is there a pseudo header of this name already? Peers differ in which one they use */
static bool twice(const struct ck_h2 *h2, const uint8_t *name, size_t len)
{
	const unsigned char *p = h2->texts.p;
	for (size_t i = 0; i < h2->n_headers;
	     p += h2->headers[i].name_len + h2->headers[i].value_len, i++)
		if (h2->headers[i].name_len == len && !memcmp(p, name, len))
			return true;
	return false;
}

static bool is_text(const uint8_t *p, size_t len, const char *text)
{
	return len == strlen(text) && !memcmp(p, text, len);
}

/* May a client send this? HTTP/2 has a list of pseudo headers of a request, and trailers have none.
 * Headers about a connection end at that connection. */
static bool client_may_send(const nghttp2_frame *frame, const uint8_t *name, size_t name_len,
			    const uint8_t *value, size_t value_len)
{
	static const char *const pseudo[] = { ":method", ":scheme", ":path", ":authority" },
			  *const connection[] = { "connection", "keep-alive", "proxy-connection",
						  "transfer-encoding", "upgrade" };
	bool request = frame->headers.cat == NGHTTP2_HCAT_REQUEST;
	for (size_t i = 0; i < CK_COUNT(connection); i++)
		if (is_text(name, name_len, connection[i]))
			return false;
	if (is_text(name, name_len, "te"))
		return is_text(value, value_len, "trailers");
	if (!name_len || *name != ':')
		return true;
	for (size_t i = 0; request && i < CK_COUNT(pseudo); i++)
		if (is_text(name, name_len, pseudo[i]))
			return true;
	return false;
}

/* A list that is refused is decoded to its end, unless that is too far. */
static int refused_header(struct ck_h2 *h2)
{
	h2->too_long = h2->role == CK_H2_SERVER && (h2->list_size > CK_HEADER_LIST_END ||
						    ++h2->refused_n > CK_HEADERS_END);
	return h2->too_long ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
		     size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags,
		     void *userdata)
{
	struct ck_h2 *h2 = userdata;
	(void)session, (void)flags;
	h2->list_size += name_len + value_len + CK_HEADER_EXTRA;
	if (h2->bad)
		return refused_header(h2);
	bool pseudo = name_len && *name == ':', late = pseudo && h2->regular;
	h2->regular = !pseudo;
	if (late || (pseudo && twice(h2, name, name_len)) ||
	    (h2->role == CK_H2_SERVER &&
	     !client_may_send(frame, name, name_len, value, value_len)) ||
	    !nghttp2_check_header_name(name, name_len) ||
	    !nghttp2_check_header_value(value, value_len))
		h2->bad = CK_H2_PROTOCOL_ERROR;
	else if (h2->n_headers == CK_HEADERS_MAX || h2->list_size > CK_HEADER_LIST_MAX)
		h2->bad = CK_H2_ENHANCE_YOUR_CALM;
	else if (ck_bytes_room(&h2->texts, name_len + value_len) < 0)
		h2->bad = CK_H2_INTERNAL_ERROR;
	if (h2->bad)
		return 0;
	ck_bytes_add(&h2->texts, name, name_len);
	ck_bytes_add(&h2->texts, value, value_len);
	h2->headers[h2->n_headers++] =
		(struct ck_h2_header){ .name_len = name_len, .value_len = value_len };
	return 0;
}

static bool informational(const struct ck_h2 *h2)
{
	const struct ck_h2_header *first = h2->headers;
	return h2->role == CK_H2_CLIENT && h2->n_headers && first->name_len == 7 &&
	       !memcmp(first->name, ":status", 7) && first->value_len == 3 && *first->value == '1';
}

static void headers_told(struct ck_h2 *h2, struct ck_h2_stream *stream, bool request)
{
	const char *p = (const char *)h2->texts.p;
	for (size_t i = 0; i < h2->n_headers; i++) {
		h2->headers[i].name = p;
		h2->headers[i].value = p += h2->headers[i].name_len;
		p += h2->headers[i].value_len;
	}
	if (h2->bad) {
		ck_h2_stream_rst(stream, h2->bad);
		return;
	}
	if (request && h2->owner->opened && !h2->draining)
		h2->owner->opened(stream, h2->userdata);
	if (request && !stream->handler)
		ck_h2_stream_rst(stream, CK_H2_REFUSED_STREAM);
	else if (stream->handler && stream->handler->headers && !informational(h2))
		stream->handler->headers(stream, h2->headers, h2->n_headers, stream->userdata);
}

static int on_frame_recv(nghttp2_session *session, const nghttp2_frame *frame, void *userdata)
{
	struct ck_h2 *h2 = userdata;
	struct ck_h2_stream *stream =
		frame->hd.stream_id
			? nghttp2_session_get_stream_user_data(session, frame->hd.stream_id)
			: NULL;
	switch (frame->hd.type) {
	case NGHTTP2_HEADERS:
		/* a second block is the trailers, which end the request */
		if (h2->role == CK_H2_SERVER && frame->headers.cat == NGHTTP2_HCAT_HEADERS &&
		    !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
			h2->bad = CK_H2_PROTOCOL_ERROR;
		if (stream)
			headers_told(h2, stream, frame->headers.cat == NGHTTP2_HCAT_REQUEST);
		/* fall through */
	case NGHTTP2_DATA:
		if (stream && frame->hd.flags & NGHTTP2_FLAG_END_STREAM) {
			stream->ended = true;
			if (stream->handler && stream->handler->end)
				stream->handler->end(stream, stream->userdata);
		}
		break;
	case NGHTTP2_RST_STREAM:
		if (!stream && h2->role == CK_H2_SERVER && h2->owner->late_reset)
			h2->owner->late_reset(h2, frame->hd.stream_id, frame->rst_stream.error_code,
					      h2->userdata);
		break;
	case NGHTTP2_GOAWAY:
		h2->draining = h2->draining || h2->role == CK_H2_CLIENT;
		break;
	}
	return h2->broken ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *bytes,
		   size_t n, void *userdata)
{
	struct ck_h2 *h2 = userdata;
	struct ck_h2_stream *stream = nghttp2_session_get_stream_user_data(session, id);
	(void)flags;
	ck_h2_must(h2, nghttp2_session_consume_connection(session, n));
	if (stream && stream->handler && stream->handler->data) {
		stream->held += n;
		stream->handler->data(stream, bytes, n, stream->userdata);
	} else {
		ck_h2_must(h2, nghttp2_session_consume_stream(session, id, n));
	}
	return h2->broken ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
}

static int on_frame_not_send(nghttp2_session *session, const nghttp2_frame *frame, int why,
			     void *userdata)
{
	struct ck_h2_stream *stream =
		nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
	(void)why, (void)userdata;
	if (frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat != NGHTTP2_HCAT_REQUEST &&
	    stream)
		/* nghttp2 itself closes the stream of a request */
		ck_h2_stream_rst(stream, CK_H2_INTERNAL_ERROR);
	return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t id, uint32_t error, void *userdata)
{
	struct ck_h2_stream *stream = nghttp2_session_get_stream_user_data(session, id);
	(void)userdata;
	if (!stream)
		return 0;
	if (stream->handler && stream->handler->closed)
		stream->handler->closed(stream, error, stream->userdata);
	ck_h2_stream_free(stream);
	return 0;
}

/* ---- the connection -------------------------------------------------------------------------- */

static void *mem_new(size_t n, void *userdata)
{
	(void)userdata;
	return ck_realloc(NULL, n);
}

static void mem_free(void *p, void *userdata)
{
	(void)userdata;
	free(p);
}

static void *mem_array(size_t n, size_t size, void *userdata)
{
	(void)userdata;
	return n && size > SIZE_MAX / n ? NULL : ck_alloc(n * size);
}

static void *mem_resize(void *p, size_t n, void *userdata)
{
	(void)userdata;
	return ck_realloc(p, n);
}

static int session_new(struct ck_h2 *h2, nghttp2_session_callbacks *callbacks,
		       nghttp2_option *option)
{
	nghttp2_mem mem = { NULL, mem_new, mem_free, mem_array, mem_resize };
	nghttp2_session_callbacks_set_send_data_callback(callbacks, ck_h2_on_send_data);
	nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks, on_begin_frame);
	nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
	nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame_recv);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
	nghttp2_session_callbacks_set_on_frame_not_send_callback(callbacks, on_frame_not_send);
	nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
	nghttp2_option_set_no_http_messaging(option, 1);
	nghttp2_option_set_no_auto_window_update(option, 1);
	nghttp2_option_set_no_closed_streams(option, 1);
	nghttp2_option_set_peer_max_concurrent_streams(option, CK_STREAMS_MAX);
	nghttp2_option_set_max_send_header_block_length(option, CK_HEADER_LIST_MAX + BLOCK_SLACK);
#ifdef CK_HAVE_RESET_RATE_LIMIT
	nghttp2_option_set_stream_reset_rate_limit(option, CK_STREAMS_MAX, CK_STREAMS_MAX);
#endif
	return (h2->role == CK_H2_SERVER
			? nghttp2_session_server_new3
			: nghttp2_session_client_new3)(&h2->session, callbacks, h2, option, &mem);
}

int ck_h2_new(enum ck_h2_role role, uint32_t stream_window, const struct ck_h2_owner *owner,
	      void *userdata, struct ck_h2 **ret_h2, struct ck_error *err)
{
	struct ck_h2 *h2 = CK_NEW(struct ck_h2);
	nghttp2_session_callbacks *callbacks = NULL;
	nghttp2_option *option = NULL;
	if (!h2)
		return ck_nomem(err);
	h2->role = role;
	h2->owner = owner;
	h2->userdata = userdata;
	int rv = nghttp2_session_callbacks_new(&callbacks);
	rv = rv ? rv : nghttp2_option_new(&option);
	rv = rv ? rv : session_new(h2, callbacks, option);
	nghttp2_session_callbacks_del(callbacks);
	nghttp2_option_del(option);
	const nghttp2_settings_entry settings[] = {
		{ NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, stream_window },
		{ NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, CK_HEADER_LIST_MAX },
		role == CK_H2_SERVER
			? (nghttp2_settings_entry){ NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS,
						    CK_CALLS_MAX }
			: (nghttp2_settings_entry){ NGHTTP2_SETTINGS_ENABLE_PUSH, 0 },
	};
	rv = rv ? rv
		: nghttp2_submit_settings(h2->session, NGHTTP2_FLAG_NONE, settings,
					  CK_COUNT(settings));
	rv = rv ? rv
		: nghttp2_session_set_local_window_size(h2->session, NGHTTP2_FLAG_NONE, 0,
							CK_CONNECTION_WINDOW);
	if (rv) {
		ck_h2_free(h2);
		return ck_nomem(err);
	}
	*ret_h2 = h2;
	return 0;
}

void ck_h2_free(struct ck_h2 *h2)
{
	if (!h2)
		return;
	h2->inside++;
	while (h2->streams) {
		struct ck_h2_stream *stream = h2->streams;
		if (stream->handler && stream->handler->closed)
			stream->handler->closed(stream, CK_H2_CANCEL, stream->userdata);
		ck_h2_stream_free(stream);
	}
	nghttp2_session_del(h2->session);
	ck_bytes_free(&h2->out);
	ck_bytes_free(&h2->texts);
	free(h2);
}

int ck_h2_feed(struct ck_h2 *h2, const void *bytes, size_t n, struct ck_error *err)
{
	static const char too_long[] = "a list of headers is too long";
	ssize_t rv = 0;
	h2->inside++;
	if (!h2->broken && !h2->too_long)
		rv = nghttp2_session_mem_recv(h2->session, bytes, n);
	if (rv < 0 && !h2->broken && !h2->too_long)
		h2->broken = rv == NGHTTP2_ERR_NOMEM ? CK_ENOMEM : CK_EMALFORMED;
	if (h2->draining && !h2->told) {
		h2->told = true;
		if (h2->owner->draining)
			h2->owner->draining(h2, h2->userdata);
	}
	if (h2->too_long && rv < 0)
		ck_h2_refuse(h2, too_long);
	h2->inside--;
	if (h2->broken == CK_ENOMEM)
		return ck_nomem(err);
	if (h2->too_long)
		return ck_fail(err, CK_ETOOBIG, "HTTP/2: %s", too_long);
	if (h2->broken)
		return ck_fail(err, h2->broken, "HTTP/2: %s",
			       rv < 0 ? nghttp2_strerror((int)rv) : "the connection is over");
	ck_h2_poke(h2);
	return 0;
}

ptrdiff_t ck_h2_next(struct ck_h2 *h2, const unsigned char **ret_bytes, struct ck_error *err)
{
	h2->out.len = 0;
	h2->inside++;
	while (!h2->broken && h2->out.len < OUT_ENOUGH) {
		const uint8_t *p;
		if (ck_bytes_room(&h2->out, FRAME_ROOM) < 0) {
			h2->broken = CK_ENOMEM;
			break;
		}
		ssize_t n = nghttp2_session_mem_send(h2->session, &p);
		if (n < 0 && !h2->broken)
			h2->broken = n == NGHTTP2_ERR_NOMEM ? CK_ENOMEM : CK_EIO;
		else if (n > 0 && ck_bytes_add(&h2->out, p, (size_t)n) < 0)
			h2->broken = CK_ENOMEM;
		else if (n == 0 && !h2->delayed)
			break;
	}
	h2->inside--;
	if (h2->broken)
		return ck_fail(err, h2->broken, "HTTP/2: %s", ck_strerror(h2->broken));
	if (!h2->out.len)
		h2->pending = false;
	*ret_bytes = h2->out.p;
	return (ptrdiff_t)h2->out.len;
}

bool ck_h2_over(const struct ck_h2 *h2)
{
	return h2->broken || (!nghttp2_session_want_read(h2->session) &&
			      !nghttp2_session_want_write(h2->session));
}

bool ck_h2_draining(const struct ck_h2 *h2)
{
	return h2->draining;
}

void ck_h2_goaway(struct ck_h2 *h2)
{
	/* the owner knows, unless a GOAWAY has just come */
	h2->told = h2->told || !h2->draining;
	h2->draining = true;
	ck_h2_must(h2, nghttp2_submit_goaway(h2->session, NGHTTP2_FLAG_NONE,
					     nghttp2_session_get_last_proc_stream_id(h2->session),
					     NGHTTP2_NO_ERROR, NULL, 0));
	ck_h2_poke(h2);
}

void ck_h2_refuse(struct ck_h2 *h2, const char *why)
{
	h2->draining = h2->told = true;
	ck_h2_must(h2, nghttp2_submit_goaway(h2->session, NGHTTP2_FLAG_NONE,
					     nghttp2_session_get_last_proc_stream_id(h2->session),
					     NGHTTP2_ENHANCE_YOUR_CALM, (const uint8_t *)why,
					     strlen(why)));
	ck_h2_poke(h2);
}

size_t ck_h2_streams(const struct ck_h2 *h2)
{
	return h2->n_streams;
}

size_t ck_h2_queued(const struct ck_h2 *h2)
{
	return h2->queued;
}

size_t ck_h2_frames(const struct ck_h2 *h2)
{
	return nghttp2_session_get_outbound_queue_size(h2->session);
}
