/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_BASE_WIRE_WRITER_H
#define CK_BASE_WIRE_WRITER_H
/*
 * Writing one protobuf message, field after field. The first failure (no memory) is kept in r, and nothing more is written, so
 * that a long message is one question at its end. Zeroed it is empty; its bytes are freed or taken by who made it.
 */
#include "src/base/bytes.h"

struct ck_out {
	struct ck_bytes bytes;
	int r; /* 0, -CK_ENOMEM */
};
/* a default (0, "", NULL) is left out, as proto3 does */
void ck_out_number(struct ck_out *out, uint32_t field, uint64_t number);
void ck_out_text(struct ck_out *out, uint32_t field, const char *text);
/* these are written even if they are empty */
void ck_out_bytes(struct ck_out *out, uint32_t field, const void *p, size_t len);
/* a text of unknown origin: bytes that are no UTF-8 become U+FFFD each, because a reader in Go refuses a message with them */
void ck_out_utf8(struct ck_out *out, uint32_t field, const void *p, size_t len);
void ck_out_pair(struct ck_out *out, uint32_t field, const char *key, const char *value); /* of a map */
void ck_out_value(struct ck_out *out, uint32_t field, uint64_t number); /* a message around one number: also around 0 */
size_t ck_out_open(struct ck_out *out, uint32_t field); /* what follows is in the message at @field ... */
void ck_out_close(struct ck_out *out, size_t opened);   /* ... up to here */
#endif
