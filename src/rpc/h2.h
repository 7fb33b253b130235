/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_RPC_H2_H
#define CK_RPC_H2_H
/*
 * One end of one HTTP/2 connection that carries gRPC, on nghttp2, without a socket: bytes in, bytes
 * out. It can be fed one byte at a time, fuzzed, and made to fail. One thread at a time.
 *
 * Flow control. The connection's window is given back as bytes come in. A stream's window is given
 * back only when its owner says so (ck_h2_stream_consume). So a reader that stalls blocks only its
 * own stream, and the bytes held for a stream that is passed on stay below its window.
 *
 * Lifetime. A stream is valid until its closed() has returned, or until ck_h2_stream_reset() or
 * ck_h2_stream_forget() was called, whichever is first. All callbacks are called from inside
 * ck_h2_feed(), ck_h2_next() or ck_h2_free(). A callback, also one of another connection, may call
 * every function but those three.
 * Source: RFC 9113; gRPC over HTTP/2; facts of grpc-go in the comments of h2.c.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/crikeep.h"

struct ck_h2;
struct ck_h2_stream;

enum ck_h2_role { CK_H2_CLIENT, CK_H2_SERVER };

enum ck_h2_error { /* those of RFC 9113, 7, that are used */
	CK_H2_NO_ERROR = 0,
	CK_H2_PROTOCOL_ERROR = 1,
	CK_H2_INTERNAL_ERROR = 2,
	CK_H2_REFUSED_STREAM = 7,
	CK_H2_CANCEL = 8,
	CK_H2_ENHANCE_YOUR_CALM = 11,
};

struct ck_h2_header { /* the name in lower case; not NUL-terminated; borrowed */
	const char *name, *value;
	size_t name_len, value_len;
};
#define CK_H2_HEADER(n, v) { (n), (v), sizeof(n) - 1, sizeof(v) - 1 } /* of two literals */

/* The callbacks of a stream's owner. Members may be NULL. */
struct ck_h2_handler {
	/* a whole block came. Server: request headers, then perhaps trailers. Client: response
	 * headers, then trailers; or trailers only, which is one block and end(). It is not called
	 * for blocks of status 1xx, nor for a block that breaks the rules or a limit: that resets
	 * its stream, and closed() follows. @headers: borrowed for the call */
	void (*headers)(struct ck_h2_stream *stream, const struct ck_h2_header *headers, size_t n,
			void *userdata);
	/* @bytes: borrowed for the call. The stream's window is smaller by n until
	 * ck_h2_stream_consume() */
	void (*data)(struct ck_h2_stream *stream, const unsigned char *bytes, size_t n,
		     void *userdata);
	/* the peer sends no more on this stream; called once */
	void (*end)(struct ck_h2_stream *stream, void *userdata);
	/* n of the queued bytes have left the queue */
	void (*sent)(struct ck_h2_stream *stream, size_t n, void *userdata);
	/* the stream is closed in both directions; the last call. @error: CK_H2_NO_ERROR after
	 * both ends ended it, the peer's RST_STREAM code, CK_H2_REFUSED_STREAM if the peer has not
	 * begun it (GOAWAY), or CK_H2_CANCEL if the connection ended */
	void (*closed)(struct ck_h2_stream *stream, uint32_t error, void *userdata);
};

struct ck_h2_owner { /* the callbacks of the connection's owner. Members may be NULL */
	/* server: a new stream. Call ck_h2_stream_handle(), or the stream is refused. Its headers()
	 * follows at once */
	void (*opened)(struct ck_h2_stream *stream, void *userdata);
	/* there are bytes for ck_h2_next(). It may be called again before they are fetched, but
	 * never from inside ck_h2_next() */
	void (*pending)(struct ck_h2 *h2, void *userdata);
	/* client: no new streams (a GOAWAY came, or the ids are used up); those under way go on.
	 * Called once */
	void (*draining)(struct ck_h2 *h2, void *userdata);
	/* server: RST_STREAM came for a closed stream. Either it had ended on both sides, and its
	 * answer may not have been read; or we reset it, and the two resets crossed */
	void (*late_reset)(struct ck_h2 *h2, int32_t id, uint32_t error, void *userdata);
};

/* ck_h2_new - @owner: borrowed, static. @stream_window: bytes in flight on one stream toward us, at
 * least 65535. 0, -CK_ENOMEM */
int ck_h2_new(enum ck_h2_role role, uint32_t stream_window, const struct ck_h2_owner *owner,
	      void *userdata, struct ck_h2 **ret_h2, struct ck_error *err);
/* ck_h2_free - closed() is called for each stream that is left. NULL is fine */
void ck_h2_free(struct ck_h2 *h2);

/* ck_h2_feed - @bytes: what was read. 0, or -CK_EMALFORMED, -CK_ETOOBIG, -CK_ENOMEM: close. A peer
 * that breaks the rules of HTTP/2, or sends too long a list of headers, gets a GOAWAY: fetch and
 * write it; then ck_h2_over() is true */
int ck_h2_feed(struct ck_h2 *h2, const void *bytes, size_t n, struct ck_error *err);
/* ck_h2_next - the bytes to write next; @ret_bytes are valid until the next call for this
 * connection. Return: how many; 0: none now; -CK_EMALFORMED, -CK_ENOMEM, -CK_EIO: close */
ptrdiff_t ck_h2_next(struct ck_h2 *h2, const unsigned char **ret_bytes, struct ck_error *err);
/* ck_h2_over - nothing more will be read or written: close */
bool ck_h2_over(const struct ck_h2 *h2);
/* ck_h2_draining - client: no new streams; draining() was called or is about to be */
bool ck_h2_draining(const struct ck_h2 *h2);
/* ck_h2_goaway - accept no new streams; those under way go on. draining() is called only if the
 * peer began it */
void ck_h2_goaway(struct ck_h2 *h2);
/* ck_h2_refuse - the same because the peer wants too much; @why goes along */
void ck_h2_refuse(struct ck_h2 *h2, const char *why);
size_t ck_h2_streams(const struct ck_h2 *h2); /* how many are open */
size_t ck_h2_queued(const struct ck_h2 *h2);  /* bytes queued on all streams, not fetched yet */
/* ck_h2_frames - frames without data that are not fetched yet: headers, trailers, resets */
size_t ck_h2_frames(const struct ck_h2 *h2);

/* ck_h2_open - client: a new stream. @headers: pseudo headers first; copied. Send its body with
 * ck_h2_stream_send() and end it. -CK_EUNAVAILABLE (draining), -CK_ENOMEM */
int ck_h2_open(struct ck_h2 *h2, const struct ck_h2_header *headers, size_t n,
	       const struct ck_h2_handler *handler, void *userdata,
	       struct ck_h2_stream **ret_stream, struct ck_error *err);
/* ck_h2_stream_handle - give the stream an owner, or another one. @handler: borrowed, static */
void ck_h2_stream_handle(struct ck_h2_stream *stream, const struct ck_h2_handler *handler,
			 void *userdata);
/* ck_h2_stream_forget - no callback is called any more, and the stream goes on to its end by
 * itself; received data is dropped. If its end is not queued yet: RST_STREAM(CANCEL) */
void ck_h2_stream_forget(struct ck_h2_stream *stream);
struct ck_h2 *ck_h2_stream_h2(const struct ck_h2_stream *stream);
int32_t ck_h2_stream_id(const struct ck_h2_stream *stream);

/* ck_h2_stream_headers - server: response headers; once they were sent, trailers, which follow the
 * queued bytes and end the stream. @end: this is all of the response ("trailers only"). @headers:
 * copied. 0, -CK_ENOMEM. A block that cannot be sent (over 64 KiB) becomes RST_STREAM */
int ck_h2_stream_headers(struct ck_h2_stream *stream, const struct ck_h2_header *headers, size_t n,
			 bool end);
/* ck_h2_stream_send - queue bytes; copied. 0, -CK_ENOMEM. Does nothing after the end or a close */
int ck_h2_stream_send(struct ck_h2_stream *stream, const void *bytes, size_t n);
/* ck_h2_stream_end - END_STREAM after the queued bytes */
void ck_h2_stream_end(struct ck_h2_stream *stream);
/* ck_h2_stream_consume - the owner is done with @n bytes of data() */
void ck_h2_stream_consume(struct ck_h2_stream *stream, size_t n);
/* ck_h2_stream_reset - RST_STREAM; no callback is called any more */
void ck_h2_stream_reset(struct ck_h2_stream *stream, uint32_t error);
size_t ck_h2_stream_queued(const struct ck_h2_stream *stream); /* bytes not fetched yet */
#endif
