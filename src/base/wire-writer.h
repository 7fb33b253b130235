/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_BASE_WIRE_WRITER_H
#define CK_BASE_WIRE_WRITER_H
/*
 * Writing one protobuf message, field after field. The first failure (no memory) is kept in r, and
 * nothing more is written, so a caller checks once, at the end. Zeroed it is empty. The caller
 * frees or takes its bytes.
 */
#include "src/base/bytes.h"

struct ck_writer {
	struct ck_bytes bytes;
	int r; /* 0, -CK_ENOMEM; a caller may set another error, and nothing more is written */
};
/* a default (0, "", NULL) is left out, as proto3 does */
void ck_writer_number(struct ck_writer *out, uint32_t field, uint64_t number);
void ck_writer_text(struct ck_writer *out, uint32_t field, const char *text);
/* all of these are written even if they are empty */
void ck_writer_bytes(struct ck_writer *out, uint32_t field, const void *p, size_t len);
/* a text of unknown origin: each byte that is not UTF-8 becomes U+FFFD, because a reader in Go
 * refuses a message with such bytes */
void ck_writer_utf8(struct ck_writer *out, uint32_t field, const void *p, size_t len);
/* an entry of a map */
void ck_writer_pair(struct ck_writer *out, uint32_t field, const char *key, const char *value);
/* a message with one number in it, also with 0 */
void ck_writer_value(struct ck_writer *out, uint32_t field, uint64_t number);
/* what is written between these two is inside the message at @field */
size_t ck_writer_open(struct ck_writer *out, uint32_t field);
void ck_writer_close(struct ck_writer *out, size_t opened); /* @opened: what open returned */
#endif
