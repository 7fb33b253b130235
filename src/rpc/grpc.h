/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_RPC_GRPC_H
#define CK_RPC_GRPC_H
/*
 * What gRPC puts into HTTP/2: length-prefixed messages, time-outs, statuses. No sockets, no HTTP/2.
 * Source: grpc/doc/PROTOCOL-HTTP2.md.
 */
#include <stdbool.h>

#include "src/base/bytes.h"
#include "src/base/error.h"
#include "src/rpc/h2.h"

#define CK_GRPC_HEAD 5u /* bytes before a message: compressed or not, its length */

/* ---- messages -------------------------------------------------------------------------------- */

struct ck_grpc_reader { /* zeroed, then max set; ck_grpc_reader_fini() */
	size_t max;              /* longest message that is taken */
	struct ck_bytes message; /* so far; whole when ck_grpc_read() returned 1 */
	unsigned char head[CK_GRPC_HEAD];
	unsigned head_len;
	size_t expected;
};
/* ck_grpc_read - takes from @bytes up to the end of one message; @ret_used: how much. 1:
 * @reader->message is whole (it may be taken: zero it); the next call begins another. 0: all was
 * used and more is needed. -CK_ETOOBIG, -CK_EMALFORMED (compressed), -CK_ENOMEM. Memory grows with
 * what has come, not with what was announced */
int ck_grpc_read(struct ck_grpc_reader *reader, const void *bytes, size_t n, size_t *ret_used,
		 struct ck_error *err);
/* a message has begun and is not whole */
bool ck_grpc_reader_inside(const struct ck_grpc_reader *reader);
void ck_grpc_reader_fini(struct ck_grpc_reader *reader);
void ck_grpc_head(unsigned char head[CK_GRPC_HEAD], size_t len); /* of an uncompressed message */
/* ck_grpc_send - queue one message with its head. 0, -CK_ENOMEM: half of it may be queued, reset
 * the stream */
int ck_grpc_send(struct ck_h2_stream *stream, const void *message, size_t len);

/* ---- time-outs: "2000000u". ns, at most a year (CK_DURATION_MAX) ----------------------------- */

#define CK_GRPC_TIMEOUT 16u /* room for one, written */
/* ck_grpc_timeout_parse - false: not 1 to 8 digits and a unit of HMSmun. "0n" is 0: it has
 * passed */
bool ck_grpc_timeout_parse(const char *s, size_t len, uint64_t *ret_ns);
/* the smallest unit that fits, rounded up */
const char *ck_grpc_timeout_print(uint64_t ns, char buf[CK_GRPC_TIMEOUT]);

/* ---- statuses -------------------------------------------------------------------------------- */

struct ck_grpc_status { /* zeroed, OK; ck_grpc_status_fini() */
	int code;       /* enum ck_grpc */
	char *message;  /* percent-decoded; NULL: none */
	void *details;  /* grpc-status-details-bin, decoded; NULL: none */
	size_t details_len;
};
/* ck_grpc_status_read - from a block of headers. 1: it has grpc-status, and @status (empty before)
 * holds it; an unreadable one is UNKNOWN. 0: it has none. -CK_ENOMEM. Texts are cut at
 * CK_STATUS_MAX */
int ck_grpc_status_read(const struct ck_h2_header *headers, size_t n,
			struct ck_grpc_status *status);
void ck_grpc_status_fini(struct ck_grpc_status *status);
/* ck_grpc_http - the number in :status; 502 if there is none */
int ck_grpc_http(const struct ck_h2_header *status);
/* ck_grpc_from_http - what a response of this HTTP status without grpc-status means */
int ck_grpc_from_http(int http);
/* ck_grpc_answer - a status as trailers; as a whole response (trailers only) if @begun is false. A
 * text that would not fit into a header block is cut. 0, -CK_ENOMEM */
int ck_grpc_answer(struct ck_h2_stream *stream, bool begun, int code, const char *message,
		   const void *details, size_t details_len);
/* ck_grpc_begin - server: the response headers before the first message. 0, -CK_ENOMEM */
int ck_grpc_begin(struct ck_h2_stream *stream);

/* the first; or NULL */
const struct ck_h2_header *ck_h2_find(const struct ck_h2_header *headers, size_t n,
				      const char *name);
bool ck_h2_is(const struct ck_h2_header *header, const char *value); /* NULL header: false */
#endif
