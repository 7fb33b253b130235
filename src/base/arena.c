/* SPDX-License-Identifier: Apache-2.0 */
#include <stdalign.h>
#include <stdarg.h>
#include <stdio.h>

#include "src/base/arena.h"
#include "src/base/fault.h"
#include "src/base/mem.h"
#include "src/base/utf8.h"
#include "src/base/wire.h"

#define BLOCK 16384u /* two of them hold an ordinary container */

struct ck_arena_block {
	struct ck_arena_block *before;
	alignas(max_align_t) unsigned char bytes[];
};

void ck_arena_init(struct ck_arena *arena, size_t max)
{
	*arena = (struct ck_arena){ .max = max };
}

void ck_arena_fini(struct ck_arena *arena)
{
	while (arena->last) {
		struct ck_arena_block *block = arena->last;
		arena->last = block->before;
		free(block);
	}
	arena->left = arena->used = 0;
}

static void *failed(struct ck_arena *arena, int code)
{
	arena->failed = code;
	return NULL;
}

/* pieces are taken from the end of the newest block */
void *ck_arena_alloc(struct ck_arena *arena, size_t size)
{
	if (size > arena->max)
		return failed(arena, CK_ETOOBIG);
	size = (size + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
	if (size > arena->left) {
		size_t room = size > BLOCK ? size : BLOCK;
		if (room > arena->max - arena->used)
			return failed(arena, CK_ETOOBIG);
		struct ck_arena_block *block = ck_alloc(sizeof(*block) + room);
		if (!block)
			return failed(arena, CK_ENOMEM);
		block->before = arena->last;
		arena->last = block;
		arena->left = room;
		arena->used += room;
	} else if (ck_fault(CK_FAULT_ALLOC)) {
		return failed(arena, CK_ENOMEM);
	}
	arena->left -= size;
	return arena->last->bytes + arena->left;
}

char *ck_arena_strdup(struct ck_arena *arena, const char *s)
{
	size_t size = strlen(s) + 1;
	char *copy = ck_arena_alloc(arena, size);
	return copy ? memcpy(copy, s, size) : NULL;
}

char *ck_arena_printf(struct ck_arena *arena, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	char *s = n < 0 ? NULL : ck_arena_alloc(arena, (size_t)n + 1);
	if (s) {
		va_start(ap, fmt);
		vsnprintf(s, (size_t)n + 1, fmt, ap);
		va_end(ap);
	}
	return s;
}

void *ck_arena_new(struct ck_arena *arena, const ProtobufCMessageDescriptor *type)
{
	ProtobufCMessage *message = ck_arena_alloc(arena, type->sizeof_message);
	if (message)
		protobuf_c_message_init(type, message);
	return message;
}

int ck_arena_fail(const struct ck_arena *arena, struct ck_error *err)
{
	if (arena->failed == CK_ETOOBIG)
		return ck_fail(err, CK_ETOOBIG, "it takes more than %zu MiB", arena->max >> 20);
	return ck_nomem(err);
}

/* ---- messages -------------------------------------------------------------------------------- */

static bool is_text(const unsigned char *p, size_t len)
{
	uint32_t c;
	while (len) {
		size_t n = ck_utf8_next_of(p, len, &c);
		if (!n || !c)
			return false;
		p += n;
		len -= n;
	}
	return true;
}

/* protobuf-c accepts any bytes as a text and ends it at a NUL. The recursion ends, because no
 * message holds one of its own type. */
static int check_texts(const ProtobufCMessageDescriptor *type, struct ck_wire wire,
		       struct ck_error *err)
{
	struct ck_wire_field field;
	int r;
	while ((r = ck_wire_next(&wire, &field, err)) > 0) {
		const ProtobufCFieldDescriptor *known =
			protobuf_c_message_descriptor_get_field(type, field.number);
		if (!known || field.type != CK_WIRE_BYTES)
			continue;
		if (known->type == PROTOBUF_C_TYPE_STRING && !is_text(field.data, field.len))
			return ck_fail(err, CK_EMALFORMED, "byte %zu: %s of %s is not UTF-8",
				       (size_t)(field.data - wire.request), known->name,
				       type->short_name);
		if (known->type == PROTOBUF_C_TYPE_MESSAGE &&
		    (r = check_texts(known->descriptor, ck_wire_inside(&wire, &field), err)) < 0)
			return r;
	}
	return r;
}

static void *arena_alloc(void *arena, size_t size)
{
	return ck_arena_alloc(arena, size);
}

static void arena_free(void *arena, void *p)
{
	(void)arena, (void)p;
}

int ck_unpack(struct ck_arena *arena, const ProtobufCMessageDescriptor *type, const void *bytes,
	      size_t len, void *ret_message, struct ck_error *err)
{
	ProtobufCAllocator allocator = { .alloc = arena_alloc,
					 .free = arena_free,
					 .allocator_data = arena };
	int r = check_texts(type, ck_wire_begin(bytes, len), err);
	if (r < 0)
		return r;
	arena->failed = 0;
	ProtobufCMessage *message =
		protobuf_c_message_unpack(type, &allocator, len, len ? bytes : (const uint8_t *)"");
	if (!message && arena->failed)
		return ck_arena_fail(arena, err);
	if (!message)
		return ck_fail(err, CK_EMALFORMED, "not a message of type %s", type->short_name);
	memcpy(ret_message, &message, sizeof(message));
	return 0;
}

int ck_pack(const void *message, struct ck_bytes *out, struct ck_error *err)
{
	size_t size = protobuf_c_message_get_packed_size(message);
	if (ck_bytes_room(out, size) < 0)
		return ck_nomem(err);
	out->len += protobuf_c_message_pack(message, out->p + out->len);
	return 0;
}

/* protobuf-c keeps a list as a count and an array, a single message as a pointer */
uint32_t ck_unpacked_unknown(const void *message)
{
	const ProtobufCMessage *base = message;
	uint32_t number = base->n_unknown_fields ? base->unknown_fields[0].tag : 0;
	for (unsigned i = 0; !number && i < base->descriptor->n_fields; i++) {
		const ProtobufCFieldDescriptor *field = &base->descriptor->fields[i];
		if (field->type != PROTOBUF_C_TYPE_MESSAGE)
			continue;
		const void *at = (const unsigned char *)message + field->offset;
		void *const *inner = (void *const *)at;
		size_t n = *inner ? 1 : 0;
		if (field->label == PROTOBUF_C_LABEL_REPEATED) {
			memcpy(&n, (const unsigned char *)message + field->quantifier_offset,
			       sizeof(n));
			inner = *(void **const *)at;
		}
		for (size_t k = 0; !number && k < n; k++)
			number = ck_unpacked_unknown(inner[k]);
	}
	return number;
}

/* ---- lists in messages ----------------------------------------------------------------------- */

struct ck_list ck_list_get(const void *message, size_t at)
{
	struct ck_list list;
	memcpy(&list.n, (const char *)message + at, sizeof(list.n));
	memcpy(&list.items, (const char *)message + at + sizeof(list.n), sizeof(list.items));
	return list;
}

void ck_list_set(void *message, size_t at, struct ck_list list)
{
	memcpy((char *)message + at, &list.n, sizeof(list.n));
	memcpy((char *)message + at + sizeof(list.n), &list.items, sizeof(list.items));
}

int ck_list_grow(struct ck_arena *arena, struct ck_list *list, size_t n, struct ck_error *err)
{
	void **items = ck_arena_alloc(arena, (list->n + n) * sizeof(*items));
	if (!items)
		return ck_arena_fail(arena, err);
	if (list->n)
		memcpy(items, list->items, list->n * sizeof(*items));
	list->items = items;
	return 0;
}

const char *ck_list_key(const void *item)
{
	const char *key;
	memcpy(&key, (const char *)item + sizeof(ProtobufCMessage), sizeof(key));
	return key ? key : "";
}

size_t ck_list_drop(struct ck_list *list, const char *key)
{
	size_t n = 0, before = list->n;
	for (size_t i = 0; i < before; i++) {
		if (strcmp(ck_list_key(list->items[i]), key))
			list->items[n++] = list->items[i];
	}
	list->n = n;
	return before - n;
}
