/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_HOOKS_WIRE_MUX_H
#define CK_HOOKS_WIRE_MUX_H
/*
 * Logical connections over one byte stream, as NRI's Go side does it: each frame is a connection's
 * number, a length and that many bytes. Bytes in, bytes out; no sockets. Zeroed it is ready;
 * ck_mux_fini() when done.
 *
 * What frames carry is a byte stream per connection. But Go's reader throws a frame away, and its
 * connection with it, that is longer than 4096 bytes where it does not expect one; so ck_mux_send()
 * cuts each message the way Go's own writer does: at most 4096 bytes first, all the rest in a
 * second frame. What comes in may be cut in any way.
 */
#include <stdbool.h>

#include "src/base/bytes.h"
#include "src/base/error.h"

enum ck_mux_conn {
	CK_MUX_PLUGIN = 1,
	/* we call, the plugin serves */ CK_MUX_RUNTIME = 2 /* the plugin calls, we serve */
};

/* bytes of connection @conn, which may be part of a message or several. A negative return ends
 * ck_mux_feed() with it */
typedef int ck_mux_bytes_fn(uint32_t conn, const unsigned char *p, size_t n, void *userdata,
			    struct ck_error *err);

struct ck_mux {
	unsigned char header[8];
	size_t header_len;
	uint32_t conn, left; /* of the frame that is coming in */
	struct ck_bytes out;
	size_t out_sent;
};

void ck_mux_fini(struct ck_mux *mux);
/* ck_mux_feed - whatever the socket gave, down to single bytes. Frames of other connections are
 * thrown away, as Go does. -CK_EMALFORMED: a frame over CK_MUX_FRAME_MAX, or what @fn returned;
 * nothing more can be read then */
int ck_mux_feed(struct ck_mux *mux, const void *p, size_t n, ck_mux_bytes_fn *fn, void *userdata,
		struct ck_error *err);
/* ck_mux_send - queue one whole message, given in two parts that follow each other. 0, -CK_ENOMEM
 * (nothing was queued) */
int ck_mux_send(struct ck_mux *mux, enum ck_mux_conn conn, const void *head, size_t head_len,
		const void *body, size_t body_len);
/* ck_mux_out - what waits to be written; ck_mux_sent - that much of it was */
const unsigned char *ck_mux_out(const struct ck_mux *mux, size_t *ret_len);
void ck_mux_sent(struct ck_mux *mux, size_t n);
#endif
