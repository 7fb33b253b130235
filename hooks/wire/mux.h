/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_HOOKS_WIRE_MUX_H
#define CK_HOOKS_WIRE_MUX_H
/*
 * Logical connections over one byte stream, as in NRI's Go code: each frame is a connection's
 * number, a length, and that many bytes. Bytes in, bytes out; no sockets. A zeroed struct is ready
 * for use; ck_mux_fini() frees it.
 *
 * The frames of a connection carry a byte stream. But Go's reader drops a frame of more than 4096
 * bytes where it expects the start of a message, and closes the connection. So ck_mux_send() cuts
 * each message as Go's writer does: at most 4096 bytes first, the rest in a second frame. Incoming
 * messages may be cut in any way.
 */
#include <stdbool.h>

#include "src/base/bytes.h"
#include "src/base/error.h"

enum ck_mux_conn {
	CK_MUX_PLUGIN = 1,  /* we call, the plugin serves */
	CK_MUX_RUNTIME = 2, /* the plugin calls, we serve */
};

/* Bytes of connection @conn: part of a message, or several messages. ck_mux_feed() ends with a
 * negative return. */
typedef int ck_mux_bytes_fn(uint32_t conn, const unsigned char *p, size_t n, void *userdata,
			    struct ck_error *err);

struct ck_mux {
	unsigned char header[8];
	size_t header_len;
	uint32_t conn, left; /* of the incoming frame */
	struct ck_bytes out;
	size_t out_sent;
};

void ck_mux_fini(struct ck_mux *mux);
/* ck_mux_feed - bytes from the socket, in pieces of any size. Frames of other connections are
 * dropped, as in Go. Return: 0; -CK_EMALFORMED (a frame over CK_MUX_FRAME_MAX) or what @fn
 * returned, after which nothing more can be read */
int ck_mux_feed(struct ck_mux *mux, const void *p, size_t n, ck_mux_bytes_fn *fn, void *userdata,
		struct ck_error *err);
/* ck_mux_send - queue one whole message, @head and then @body. 0, -CK_ENOMEM (nothing was queued)
 * */
int ck_mux_send(struct ck_mux *mux, enum ck_mux_conn conn, const void *head, size_t head_len,
		const void *body, size_t body_len);
/* ck_mux_out - what waits to be written; ck_mux_sent - @n bytes of it were written */
const unsigned char *ck_mux_out(const struct ck_mux *mux, size_t *ret_len);
void ck_mux_sent(struct ck_mux *mux, size_t n);
#endif
