/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_BASE_BYTES_H
#define CK_BASE_BYTES_H
/*
 * A buffer that grows, and protobuf's wire form written into it; wire.h reads it. Zeroed it is
 * empty; ck_bytes_free() when done. A failure (no memory) leaves the contents unchanged.
 */
#include <stddef.h>
#include <stdint.h>

struct ck_bytes {
	unsigned char *p;
	size_t len, room;
};

void ck_bytes_free(struct ck_bytes *bytes); /* it is empty then and can be used again */
/* a local that is freed on every way out */
#define CK_AUTO_BYTES __attribute__((cleanup(ck_bytes_free)))
/* ck_bytes_room - make room for @n more bytes. 0, -CK_ENOMEM, as all functions below */
int ck_bytes_room(struct ck_bytes *bytes, size_t n);
int ck_bytes_add(struct ck_bytes *bytes, const void *p, size_t n);
int ck_bytes_add_text(struct ck_bytes *bytes, const char *s); /* without its NUL */

/* protobuf: a default (0, "", NULL) is left out, as proto3 does */
int ck_bytes_field_number(struct ck_bytes *bytes, uint32_t field, uint64_t value);
int ck_bytes_field_text(struct ck_bytes *bytes, uint32_t field, const char *s);
/* ck_bytes_field - a message or bytes; written even if it is empty */
int ck_bytes_field(struct ck_bytes *bytes, uint32_t field, const void *p, size_t n);
int ck_bytes_varint(struct ck_bytes *bytes, uint64_t value);
#endif
