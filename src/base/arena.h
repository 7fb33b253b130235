/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_BASE_ARENA_H
#define CK_BASE_ARENA_H
/*
 * Memory with one end: pieces are taken one by one and given back all together. And protobuf-c
 * messages made of untrusted bytes in it: what is unpacked can be rearranged and shared freely, for
 * nothing in it is freed by itself. It has a bound, because a message of two bytes takes a hundred
 * once it is unpacked.
 */
#include <protobuf-c/protobuf-c.h>

#include "src/base/bytes.h"
#include "src/base/error.h"

struct ck_arena { /* ck_arena_init() before, ck_arena_fini() after */
	struct ck_arena_block *last;
	size_t left;      /* bytes free in the last block */
	size_t used, max; /* bytes in all blocks */
	/* why the last piece was not to be had: CK_ETOOBIG (the bound), CK_ENOMEM */
	int failed;
};

void ck_arena_init(struct ck_arena *arena, size_t max);
void ck_arena_fini(struct ck_arena *arena);
/* zeroed; NULL: ck_arena_fail() says why */
void *ck_arena_alloc(struct ck_arena *arena, size_t size);
char *ck_arena_strdup(struct ck_arena *arena, const char *s);
char *ck_arena_printf(struct ck_arena *arena, const char *fmt, ...) CK_PRINTF(2, 3);
/* an empty message; NULL */
void *ck_arena_new(struct ck_arena *arena, const ProtobufCMessageDescriptor *type);
/* ck_arena_fail - why a piece could not be had: -CK_ETOOBIG, -CK_ENOMEM */
int ck_arena_fail(const struct ck_arena *arena, struct ck_error *err);

/*
 * ck_unpack - a message of untrusted bytes, whose texts are UTF-8 without NUL, as proto3 demands
 * Fields it does not know are kept in it. Return: 0, -CK_EMALFORMED ("byte 12: ..."), -CK_ETOOBIG,
 * -CK_ENOMEM
 */
int ck_unpack(struct ck_arena *arena, const ProtobufCMessageDescriptor *type, const void *bytes,
	      size_t len, void *ret_message, struct ck_error *err);
/* ck_pack - append @message to @out. 0, -CK_ENOMEM */
int ck_pack(const void *message, struct ck_bytes *out, struct ck_error *err);
/* ck_unpacked_unknown - the number of a field that this message, or one in it, has and we do not
 * know; 0: there is none */
uint32_t ck_unpacked_unknown(const void *message);

/* A list in a message, wherever its count is: protobuf-c lays out the array behind it. */
struct ck_list {
	size_t n;
	void **items;
};
struct ck_list ck_list_get(const void *message, size_t at);
void ck_list_set(void *message, size_t at, struct ck_list list);
/* ck_list_grow - room for @n more, in a new array: the old one may be shared. 0, -CK_ETOOBIG,
 * -CK_ENOMEM */
int ck_list_grow(struct ck_arena *arena, struct ck_list *list, size_t n, struct ck_error *err);
/* ck_list_key - of an item whose first field is its key, a text: "" if it has none */
const char *ck_list_key(const void *item);
/* ck_list_drop - without the items of this key. Return: how many there were */
size_t ck_list_drop(struct ck_list *list, const char *key);
#endif
