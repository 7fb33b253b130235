/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_RPC_H2_INT_H
#define CK_RPC_H2_INT_H
/* Shared by h2.c (the connection and what comes in) and h2-stream.c (streams and what goes out),
 * and by no other file. */
#include <nghttp2/nghttp2.h>

#include "src/base/bytes.h"
#include "src/base/limits.h"
#include "src/rpc/h2.h"

#define CK_H2_FRAME_HEAD 9u

struct ck_h2_trailers;

struct ck_h2_stream {
	struct ck_h2 *h2;
	struct ck_h2_stream *prev, *next;
	const struct ck_h2_handler *handler; /* NULL: it has no owner */
	void *userdata;
	struct ck_bytes queue;
	size_t head;                     /* bytes of the queue that are fetched */
	size_t held;                     /* bytes received and not consumed yet */
	struct ck_h2_trailers *trailers; /* sent once the queue is empty */
	int32_t id;
	bool begun;    /* server: response headers are submitted */
	bool ending;   /* nothing more will be queued */
	bool trailing; /* its end is a block of trailers */
	bool deferred; /* nghttp2 found the queue empty and must be told of new bytes */
	bool ended;    /* by the peer */
};

struct ck_h2 {
	nghttp2_session *session;
	const struct ck_h2_owner *owner;
	void *userdata;
	struct ck_h2_stream *streams; /* newest first */
	size_t n_streams, queued;
	struct ck_bytes out;
	/* its frame did not fit into out; it is the next one */
	struct ck_h2_stream *delayed;
	enum ck_h2_role role;
	int broken; /* CK_E...: only closing is left */
	unsigned inside;     /* calls of nghttp2 that have not returned */
	bool pending;        /* pending() was called */
	bool draining, told; /* no new streams; draining() was called */

	/* the header block that is coming in; a connection has only one at a time. Its texts
	 * follow each other */
	struct ck_bytes texts;
	struct ck_h2_header headers[CK_HEADERS_MAX];
	size_t n_headers, list_size;
	size_t refused_n; /* headers that came when bad was set */
	/* server: the list belongs to no call; bytes of such lists, of the whole connection */
	bool unheard;
	size_t unheard_size;
	bool too_long; /* server: lists were, and the connection is refused */
	bool regular; /* a header that is no pseudo header has come */
	uint32_t bad; /* not 0: reset the stream with this error */
};

/* h2.c */
/* ck_h2_poke - call pending() if there are bytes to fetch and nghttp2 is not running */
void ck_h2_poke(struct ck_h2 *h2);
/* ck_h2_must - for calls of nghttp2 that fail only without memory. The peer would then wait for
 * ever, so the connection ends. 0, -CK_ENOMEM */
int ck_h2_must(struct ck_h2 *h2, int rv);

/* h2-stream.c */
/* ck_h2_stream_new - NULL: out of memory */
struct ck_h2_stream *ck_h2_stream_new(struct ck_h2 *h2, const struct ck_h2_handler *handler,
				      void *userdata);
/* ck_h2_stream_free - nghttp2 does not know the stream any more */
void ck_h2_stream_free(struct ck_h2_stream *stream);
/* ck_h2_stream_rst - RST_STREAM; closed() is called */
void ck_h2_stream_rst(struct ck_h2_stream *stream, uint32_t error);
int ck_h2_on_send_data(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *head,
		       size_t n, nghttp2_data_source *source, void *userdata);
#endif
