/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_BASE_ARENA_H
#define CK_BASE_ARENA_H
/*
 * Memory that is taken piece by piece and freed all at once, and protobuf-c messages that are
 * unpacked into it from untrusted bytes. Unpacked messages can be rearranged and can share parts,
 * because no part is freed alone. An arena has a bound, because a message of two bytes takes a
 * hundred once it is unpacked.
 */
#include <protobuf-c/protobuf-c.h>

#include "src/base/bytes.h"
#include "src/base/error.h"

struct ck_arena { /* ck_arena_init() before, ck_arena_fini() after */
	struct ck_arena_block *last;
	size_t left;      /* bytes free in the last block */
	size_t used, max; /* bytes in all blocks */
	/* why the last allocation failed: CK_ETOOBIG (the bound), CK_ENOMEM */
	int failed;
};

void ck_arena_init(struct ck_arena *arena, size_t max);
void ck_arena_fini(struct ck_arena *arena);
/* ck_arena_alloc - zeroed memory; NULL: ck_arena_fail() says why */
void *ck_arena_alloc(struct ck_arena *arena, size_t size);
char *ck_arena_strdup(struct ck_arena *arena, const char *s);
char *ck_arena_printf(struct ck_arena *arena, const char *fmt, ...) CK_PRINTF(2, 3);
/* ck_arena_new - an empty message, or NULL */
void *ck_arena_new(struct ck_arena *arena, const ProtobufCMessageDescriptor *type);
/* ck_arena_fail - the error of the last allocation: -CK_ETOOBIG, -CK_ENOMEM */
int ck_arena_fail(const struct ck_arena *arena, struct ck_error *err);

/*
 * ck_unpack - unpack untrusted bytes. Texts must be UTF-8 without NUL, as proto3 demands. Unknown
 * fields are kept in the message.
 * Return: 0, -CK_EMALFORMED ("byte 12: ..."), -CK_ETOOBIG, -CK_ENOMEM
 */
int ck_unpack(struct ck_arena *arena, const ProtobufCMessageDescriptor *type, const void *bytes,
	      size_t len, void *ret_message, struct ck_error *err);
/* ck_pack - append @message to @out. 0, -CK_ENOMEM */
int ck_pack(const void *message, struct ck_bytes *out, struct ck_error *err);
/* ck_unpacked_unknown - the number of an unknown field of this message or of one in it; 0: none */
uint32_t ck_unpacked_unknown(const void *message);

/* A list in a message, at the offset of its count; in protobuf-c's structs the array follows it. */
struct ck_list {
	size_t n;
	void **items;
};
struct ck_list ck_list_get(const void *message, size_t at);
void ck_list_set(void *message, size_t at, struct ck_list list);
/* ck_list_grow - make room for @n more items, in a new array, because the old one may be shared.
 * 0, -CK_ETOOBIG, -CK_ENOMEM */
int ck_list_grow(struct ck_arena *arena, struct ck_list *list, size_t n, struct ck_error *err);
/* ck_list_key - the key of an item, which is its first field, a text; "" if it has none */
const char *ck_list_key(const void *item);
/* ck_list_drop - remove the items of this key. Return: how many there were */
size_t ck_list_drop(struct ck_list *list, const char *key);
#endif
