/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sorting: by name. Of a singular field the last one stays, and only if it is not the default.
 * Writing out: all elements of a list, a set or an unknown field are written as one; every other
 * field is written by itself.
 */
#include <string.h>

#include <utlist.h>

#include "cache/request/fields.h"
#include "src/base/error.h"
#include "src/base/mem.h"

#define FIELDS_FIRST 512u        /* a container with 100 envs and 30 mounts fits */
#define ARENA_ALIGN  16u         /* what malloc gives */
#define ARENA_CHUNK  (16u << 10) /* the least that is taken from malloc at once */
/* the most bytes written beside a field's path, key and value: 5, and three lengths of 5 */
#define FIELD_HEAD   20u
#define NUMBER_BYTES 8u          /* of a number as a value */
#define WITH_KEY     0x40        /* in the byte that says what a field is */
#define WITH_TAIL    0x80

/* ---- memory ---------------------------------------------------------------------------------- */

struct ck_request_fields_chunk {
	struct ck_request_fields_chunk *next;
	_Alignas(ARENA_ALIGN) unsigned char bytes[];
};

static bool grow(struct ck_request_fields *fields, size_t size)
{
	/* ck_alloc() would zero it, which takes time */
	struct ck_request_fields_chunk *chunk = ck_realloc(NULL, sizeof(*chunk) + size);

	if (!chunk)
		return false;
	LL_PREPEND(fields->chunks, chunk);
	fields->free = chunk->bytes;
	fields->left = size;
	return true;
}

void *ck_request_fields_take(struct ck_request_fields *fields, size_t size)
{
	size = (size + ARENA_ALIGN - 1) & ~(size_t)(ARENA_ALIGN - 1);
	if (size > fields->left && !grow(fields, size > ARENA_CHUNK ? size : ARENA_CHUNK))
		return NULL;
	void *p = fields->free;
	fields->free += size;
	fields->left -= size;
	return p;
}

static bool more_room(struct ck_request_fields *fields)
{
	size_t room = fields->room ? fields->room * 2 : FIELDS_FIRST;
	struct ck_request_field *stack = ck_realloc(fields->stack, room * sizeof(*stack));

	if (!stack)
		return false;
	fields->stack = stack;
	fields->room = room;
	return true;
}

int ck_request_fields_init(struct ck_request_fields *fields, size_t hint, struct ck_error *err)
{
	*fields = (struct ck_request_fields){ .n = 0 };
	if (grow(fields, hint + ARENA_CHUNK) && more_room(fields))
		return 0;
	ck_request_fields_fini(fields);
	return ck_nomem(err);
}

void ck_request_fields_fini(struct ck_request_fields *fields)
{
	struct ck_request_fields_chunk *chunk, *next;

	LL_FOREACH_SAFE(fields->chunks, chunk, next)
		free(chunk);
	free(fields->stack);
	*fields = (struct ck_request_fields){ .n = 0 };
}

int ck_request_fields_push(struct ck_request_fields *fields, const struct ck_request_field *field,
			   struct ck_error *err)
{
	if (fields->total == CK_FIELDS_MAX)
		return ck_fail(err, CK_ETOOBIG, "a request of more than %u parts", CK_FIELDS_MAX);
	if (fields->n == fields->room && !more_room(fields))
		return ck_nomem(err);
	fields->stack[fields->n++] = *field;
	fields->total++;
	return 0;
}

/* ---- sorting --------------------------------------------------------------------------------- */

static int compare_values(const struct ck_request_field *a, const struct ck_request_field *b)
{
	if (a->data && b->data) {
		size_t len = (size_t)(a->value < b->value ? a->value : b->value);
		int r = len ? memcmp(a->data, b->data, len) : 0;
		if (r)
			return r;
	}
	return (a->value > b->value) - (a->value < b->value);
}

/* inline, because sorting spends its time here */
static inline int compare_fields(const struct ck_request_field *a, const struct ck_request_field *b)
{
	int r = ck_field_name_order(&a->name, &b->name);

	if (!r)
		r = a->what - b->what;
	if (!r &&
	    (a->what == CK_FIELD_SET || a->what == CK_FIELD_MOUNT || a->what == CK_FIELD_UNKNOWN)) {
		r = a->wire - b->wire;
		if (!r)
			r = compare_values(a, b);
	}
	return r;
}

/* A merge sort, because it is stable: equal fields keep their order. */
static void merge_sort(struct ck_request_field **v, struct ck_request_field **scratch, size_t n)
{
	struct ck_request_field **half = v + n / 2, **end = v + n, **left = scratch,
				**left_end = scratch + n / 2, **right = half;

	if (n < 2)
		return;
	merge_sort(v, scratch, n / 2);
	merge_sort(half, scratch, n - n / 2);
	if (compare_fields(half[-1], *half) <= 0)
		return;
	memcpy(scratch, v, n / 2 * sizeof(*v));
	while (left < left_end && right < end)
		*v++ = compare_fields(*left, *right) <= 0 ? *left++ : *right++;
	memcpy(v, left, (size_t)(left_end - left) * sizeof(*v));
}

static bool is_default(const struct ck_request_field *field)
{
	return (field->what == CK_FIELD_NUMBER || field->what == CK_FIELD_BYTES) && !field->value;
}

static bool only_last_counts(const struct ck_request_field *field)
{
	return field->what == CK_FIELD_PRESENT || field->what == CK_FIELD_NUMBER ||
	       field->what == CK_FIELD_BYTES || field->what == CK_FIELD_MAP;
}

static bool same_thing(const struct ck_request_field *a, const struct ck_request_field *b)
{
	return a->what == b->what && !ck_field_name_order(&a->name, &b->name);
}

int ck_request_fields_sort(struct ck_request_fields *fields, size_t from,
			   struct ck_sorted_fields *ret_sorted, struct ck_error *err)
{
	size_t n = fields->n - from, kept = 0;
	/* half as much again: room to merge */
	struct ck_request_field **v = ck_request_fields_take(fields, (n + n / 2) * sizeof(*v));

	if (!v)
		return ck_nomem(err);
	for (size_t i = 0; i < n; i++)
		v[i] = &fields->stack[from + i];
	merge_sort(v, v + n, n);
	for (size_t i = 0; i < n; i++) {
		bool replaced = i + 1 < n && only_last_counts(v[i]) && same_thing(v[i], v[i + 1]);
		if (!replaced && !is_default(v[i]))
			v[kept++] = v[i];
	}
	*ret_sorted = (struct ck_sorted_fields){ v, kept };
	return 0;
}

struct ck_request_field *ck_sorted_fields_find(const struct ck_sorted_fields *sorted,
					       const char *path, enum ck_field_what what)
{
	for (size_t i = 0; i < sorted->n; i++)
		if (sorted->fields[i]->what == what &&
		    ck_field_name_is(&sorted->fields[i]->name, path))
			return sorted->fields[i];
	return NULL;
}

/* ---- writing out ----------------------------------------------------------------------------- */

static size_t run_end(const struct ck_sorted_fields *sorted, size_t i)
{
	struct ck_request_field **v = sorted->fields;
	size_t end = i + 1;

	if (v[i]->what == CK_FIELD_LIST || v[i]->what == CK_FIELD_SET ||
	    v[i]->what == CK_FIELD_UNKNOWN)
		while (end < sorted->n && same_thing(v[end], v[i]))
			end++;
	return end;
}

static unsigned char *write_number(unsigned char *p, uint64_t value)
{
	for (unsigned i = 0; i < NUMBER_BYTES; i++)
		*p++ = (unsigned char)(value >> (8 * i));
	return p;
}

/* Seven bits in each byte, as in protobuf: most lengths are short. */
static unsigned char *write_length(unsigned char *p, size_t length)
{
	for (; length > 0x7f; length >>= 7)
		*p++ = (unsigned char)(length | 0x80);
	*p++ = (unsigned char)length;
	return p;
}

static unsigned char *write_bytes(unsigned char *p, const void *bytes, size_t len)
{
	if (len)
		memcpy(p, bytes, len);
	return p + len;
}

size_t ck_sorted_fields_room(const struct ck_sorted_fields *sorted)
{
	size_t room = 0;

	for (size_t i = 0; i < sorted->n; i++) {
		const struct ck_request_field *field = sorted->fields[i];
		room += FIELD_HEAD + field->name.path_len + field->name.key_len;
		room += field->data ? (size_t)field->value : NUMBER_BYTES;
	}
	return room;
}

/* what (1) path_len (1) path [key_len key] [tail (2)] count { wire (1) len value } ...
 * The first byte says whether key and tail are there, and every length comes before the bytes it
 * counts. So two different fields are never written alike. */
unsigned char *ck_sorted_fields_write(const struct ck_sorted_fields *sorted, size_t *i,
				      unsigned char *p)
{
	const struct ck_request_field *first = sorted->fields[*i];
	const struct ck_field_name *name = &first->name;
	size_t end = run_end(sorted, *i);

	*p++ = (unsigned char)(first->what | (name->keyed ? WITH_KEY : 0) |
			       (name->tail[0] ? WITH_TAIL : 0));
	*p++ = name->path_len;
	p = write_bytes(p, name->path, name->path_len);
	if (name->keyed) {
		p = write_length(p, name->key_len);
		p = write_bytes(p, name->key, name->key_len);
	}
	if (name->tail[0])
		p = write_bytes(p, name->tail, sizeof(name->tail));
	p = write_length(p, end - *i);
	for (; *i < end; ++*i) {
		const struct ck_request_field *field = sorted->fields[*i];
		*p++ = field->wire;
		if (field->data) {
			p = write_length(p, (size_t)field->value);
			p = write_bytes(p, field->data, (size_t)field->value);
		} else {
			p = write_length(p, NUMBER_BYTES);
			p = write_number(p, field->value);
		}
	}
	return p;
}
