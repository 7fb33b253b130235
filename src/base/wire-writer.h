/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_BASE_WIRE_WRITER_H
#define CK_BASE_WIRE_WRITER_H
/*
 * Writing one protobuf message, field after field. The first failure (no memory) is kept in r, and
 * nothing more is written, so that a long message is one question at its end. Zeroed it is empty;
 * its bytes are freed or taken by who made it.
 */
#include "src/base/bytes.h"

struct ck_writer {
	struct ck_bytes bytes;
	int r; /* 0, -CK_ENOMEM */
};
/* a default (0, "", NULL) is left out, as proto3 does */
void ck_writer_number(struct ck_writer *out, uint32_t field, uint64_t number);
void ck_writer_text(struct ck_writer *out, uint32_t field, const char *text);
/* these are written even if they are empty */
void ck_writer_bytes(struct ck_writer *out, uint32_t field, const void *p, size_t len);
/* a text of unknown origin: bytes that are no UTF-8 become U+FFFD each, because a reader in Go
 * refuses a message with them */
void ck_writer_utf8(struct ck_writer *out, uint32_t field, const void *p, size_t len);
/* of a map */
void ck_writer_pair(struct ck_writer *out, uint32_t field, const char *key, const char *value);
/* a message around one number: also around 0 */
void ck_writer_value(struct ck_writer *out, uint32_t field, uint64_t number);
/* what follows is in the message at @field ... */
size_t ck_writer_open(struct ck_writer *out, uint32_t field);
void ck_writer_close(struct ck_writer *out, size_t opened);   /* ... up to here */
#endif
