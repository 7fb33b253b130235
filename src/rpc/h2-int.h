/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_RPC_H2_INT_H
#define CK_RPC_H2_INT_H
/* What h2.c (the connection, and what comes in) and h2-stream.c (a stream, and what goes out)
 * share, and nobody else sees. */
#include <nghttp2/nghttp2.h>

#include "src/base/bytes.h"
#include "src/base/limits.h"
#include "src/rpc/h2.h"

#define CK_H2_FRAME_HEAD 9u

struct ck_h2_trailers;

struct ck_h2_stream {
	struct ck_h2 *h2;
	struct ck_h2_stream *prev, *next;
	const struct ck_h2_handler *handler; /* NULL: nobody is told */
	void *userdata;
	struct ck_bytes queue;
	size_t head;               /* of the queue: bytes that have left */
	size_t held;               /* received and not yet consumed */
	struct ck_h2_trailers *trailers; /* wait until the queue is empty */
	int32_t id;
	bool begun;    /* server: response headers are submitted */
	bool ending;   /* nothing will be queued any more */
	bool trailing; /* its end is a block of trailers */
	bool deferred; /* nghttp2 found the queue empty, and waits to be told */
	bool ended;    /* the peer's half */
};

struct ck_h2 {
	nghttp2_session *session;
	const struct ck_h2_owner *owner;
	void *userdata;
	struct ck_h2_stream *streams; /* newest first */
	size_t n_streams, queued;
	struct ck_bytes out;
	/* its frame did not fit into out any more, and is the next one */
	struct ck_h2_stream *delayed;
	enum ck_h2_role role;
	int broken; /* CK_E...: only closing is left */
	unsigned inside;
	bool pending;        /* the owner was told */
	bool draining, told; /* no new streams; the owner was told */

	/* the header block that is coming in: there is only one at a time on a connection. Texts
	 * lie one behind the other */
	struct ck_bytes texts;
	struct ck_h2_header headers[CK_HEADERS_MAX];
	size_t n_headers, list_size;
	bool regular; /* pseudo headers are over */
	uint32_t bad; /* reset the stream with this */
};

/* h2.c */
/* tell the owner if there is something to fetch, unless nghttp2 is at work */
void ck_h2_poke(struct ck_h2 *h2);
/* ck_h2_must - for what nghttp2 does on the side: @rv fails only when memory is gone, and then the
 * peer would wait for ever, so the connection goes. 0, -CK_ENOMEM */
int ck_h2_must(struct ck_h2 *h2, int rv);

/* h2-stream.c */
/* or NULL */
struct ck_h2_stream *ck_h2_stream_new(struct ck_h2 *h2, const struct ck_h2_handler *handler,
				      void *userdata);
/* nghttp2 has none of it any more */
void ck_h2_stream_free(struct ck_h2_stream *stream);
/* its owner is told by closed() */
void ck_h2_stream_rst(struct ck_h2_stream *stream, uint32_t error);
int ck_h2_on_send_data(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *head,
		       size_t n, nghttp2_data_source *source, void *userdata);
#endif
