/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_RPC_GRPC_H
#define CK_RPC_GRPC_H
/*
 * What gRPC puts into HTTP/2: length-prefixed messages, timeouts, statuses. It needs no socket.
 * Source: grpc/doc/PROTOCOL-HTTP2.md.
 */
#include <stdbool.h>

#include "src/base/bytes.h"
#include "src/base/error.h"
#include "src/rpc/h2.h"

#define CK_GRPC_HEAD 5u /* bytes before a message: compressed or not, its length */

/* ---- messages -------------------------------------------------------------------------------- */

struct ck_grpc_reader { /* zeroed, then max set; ck_grpc_reader_fini() */
	size_t max;              /* the longest message that is accepted */
	struct ck_bytes message; /* so far; whole when ck_grpc_read() returned 1 */
	unsigned char head[CK_GRPC_HEAD];
	unsigned head_len;
	size_t expected;
};
/* ck_grpc_read - read up to the end of one message; @ret_used: how many of the bytes were read. 1:
 * @reader->message is whole (it may be taken: zero it), and the next call begins another. 0: more
 * bytes are needed. -CK_ETOOBIG, -CK_EMALFORMED (compressed), -CK_ENOMEM. Memory grows with the
 * bytes that have come, not with the announced length */
int ck_grpc_read(struct ck_grpc_reader *reader, const void *bytes, size_t n, size_t *ret_used,
		 struct ck_error *err);
/* ck_grpc_reader_inside - has a message begun that is not whole yet? */
bool ck_grpc_reader_inside(const struct ck_grpc_reader *reader);
void ck_grpc_reader_fini(struct ck_grpc_reader *reader);
void ck_grpc_head(unsigned char head[CK_GRPC_HEAD], size_t len); /* of an uncompressed message */
/* ck_grpc_send - queue one message with its head. 0, or -CK_ENOMEM: a part may be queued, so reset
 * the stream */
int ck_grpc_send(struct ck_h2_stream *stream, const void *message, size_t len);

/* ---- timeouts: "2000000u". In ns, at most a year (CK_DURATION_MAX) --------------------------- */

#define CK_GRPC_TIMEOUT 16u /* room for one, written */
/* ck_grpc_timeout_parse - false: not 1 to 8 digits and a unit of HMSmun. "0n" is 0, which has
 * already passed */
bool ck_grpc_timeout_parse(const char *s, size_t len, uint64_t *ret_ns);
/* ck_grpc_timeout_print - in the smallest unit that fits, rounded up */
const char *ck_grpc_timeout_print(uint64_t ns, char buf[CK_GRPC_TIMEOUT]);

/* ---- statuses -------------------------------------------------------------------------------- */

struct ck_grpc_status { /* zeroed, OK; ck_grpc_status_fini() */
	int code;       /* enum ck_grpc */
	char *message;  /* percent-decoded; NULL: none */
	void *details;  /* grpc-status-details-bin, decoded; NULL: none */
	size_t details_len;
};
/* ck_grpc_status_read - from a block of headers. @status: empty before. 1: the block has a
 * grpc-status, now in @status; an unreadable one is UNKNOWN. 0: it has none. -CK_ENOMEM. Texts are
 * cut at CK_STATUS_MAX */
int ck_grpc_status_read(const struct ck_h2_header *headers, size_t n,
			struct ck_grpc_status *status);
void ck_grpc_status_fini(struct ck_grpc_status *status);
/* ck_grpc_http - the number in :status; 502 if there is none */
int ck_grpc_http(const struct ck_h2_header *status);
/* ck_grpc_from_http - the code of a response that has this HTTP status and no grpc-status */
int ck_grpc_from_http(int http);
/* ck_grpc_answer - send a status, as trailers or, if @begun is false, as a whole response (trailers
 * only). A text that does not fit into a header block is cut. 0, -CK_ENOMEM */
int ck_grpc_answer(struct ck_h2_stream *stream, bool begun, int code, const char *message,
		   const void *details, size_t details_len);
/* ck_grpc_begin - server: send the response headers, before the first message. 0, -CK_ENOMEM */
int ck_grpc_begin(struct ck_h2_stream *stream);

/* ck_h2_find - the first header of this name, or NULL */
const struct ck_h2_header *ck_h2_find(const struct ck_h2_header *headers, size_t n,
				      const char *name);
bool ck_h2_is(const struct ck_h2_header *header, const char *value); /* NULL header: false */
#endif
