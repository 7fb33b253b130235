/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settling: parts are sorted by name; of a singular field the last one stays, and only if it is not
 * the default. Writing out: the parts of one list, set or unknown field together are one leaf, each
 * other part is one.
 */
#include <string.h>

#include "cache/request/fields.h"
#include "src/base/error.h"
#include "src/base/mem.h"

#define PARTS_FIRST  512u        /* a container with 100 envs and 30 mounts fits */
#define ARENA_ALIGN  16u         /* what malloc gives */
#define ARENA_CHUNK  (16u << 10) /* bytes taken from malloc at once, at least */
/* bytes written beside a part's path, key and value, at most: 5, and three lengths of 5 */
#define PART_HEAD    20u
#define NUMBER_BYTES 8u          /* of a number as a value */
#define WITH_KEY     0x40        /* in the byte that says what a part is */
#define WITH_TAIL    0x80

/* ---- memory ---------------------------------------------------------------------------------- */

struct ck_parts_chunk {
	struct ck_parts_chunk *next;
	_Alignas(ARENA_ALIGN) unsigned char bytes[];
};

static bool grow(struct ck_parts *parts, size_t size)
{
	/* not zeroed: it takes a while */
	struct ck_parts_chunk *chunk = ck_realloc(NULL, sizeof(*chunk) + size);

	if (!chunk)
		return false;
	chunk->next = parts->chunks;
	parts->chunks = chunk;
	parts->free = chunk->bytes;
	parts->left = size;
	return true;
}

void *ck_parts_take(struct ck_parts *parts, size_t size)
{
	size = (size + ARENA_ALIGN - 1) & ~(size_t)(ARENA_ALIGN - 1);
	if (size > parts->left && !grow(parts, size > ARENA_CHUNK ? size : ARENA_CHUNK))
		return NULL;
	void *p = parts->free;
	parts->free += size;
	parts->left -= size;
	return p;
}

static bool more_room(struct ck_parts *parts)
{
	size_t room = parts->room ? parts->room * 2 : PARTS_FIRST;
	struct ck_part *stack = ck_realloc(parts->stack, room * sizeof(*stack));

	if (!stack)
		return false;
	parts->stack = stack;
	parts->room = room;
	return true;
}

int ck_parts_init(struct ck_parts *parts, size_t hint, struct ck_error *err)
{
	*parts = (struct ck_parts){ .n = 0 };
	if (grow(parts, hint + ARENA_CHUNK) && more_room(parts))
		return 0;
	ck_parts_fini(parts);
	return ck_nomem(err);
}

void ck_parts_fini(struct ck_parts *parts)
{
	struct ck_parts_chunk *chunk, *next;

	for (chunk = parts->chunks; chunk; chunk = next) {
		next = chunk->next;
		free(chunk);
	}
	free(parts->stack);
	*parts = (struct ck_parts){ .n = 0 };
}

int ck_parts_push(struct ck_parts *parts, const struct ck_part *part, struct ck_error *err)
{
	if (parts->total == CK_LEAVES_MAX)
		return ck_fail(err, CK_ETOOBIG, "a request of more than %u parts", CK_LEAVES_MAX);
	if (parts->n == parts->room && !more_room(parts))
		return ck_nomem(err);
	parts->stack[parts->n++] = *part;
	parts->total++;
	return 0;
}

/* ---- settling -------------------------------------------------------------------------------- */

static int compare_values(const struct ck_part *a, const struct ck_part *b)
{
	if (a->data && b->data) {
		size_t len = (size_t)(a->value < b->value ? a->value : b->value);
		int r = len ? memcmp(a->data, b->data, len) : 0;
		if (r)
			return r;
	}
	return (a->value > b->value) - (a->value < b->value);
}

/* inline: sorting spends its time here */
static inline int compare_parts(const struct ck_part *a, const struct ck_part *b)
{
	int r = ck_leaf_order(&a->name, &b->name);

	if (!r)
		r = a->what - b->what;
	if (!r &&
	    (a->what == CK_PART_SET || a->what == CK_PART_MOUNT || a->what == CK_PART_UNKNOWN)) {
		r = a->wire - b->wire;
		if (!r)
			r = compare_values(a, b);
	}
	return r;
}

/* a stable merge sort: what compares equal keeps the order it came in */
static void merge_sort(struct ck_part **v, struct ck_part **scratch, size_t n)
{
	struct ck_part **half = v + n / 2, **end = v + n, **left = scratch,
		       **left_end = scratch + n / 2, **right = half;

	if (n < 2)
		return;
	merge_sort(v, scratch, n / 2);
	merge_sort(half, scratch, n - n / 2);
	if (compare_parts(half[-1], *half) <= 0)
		return;
	memcpy(scratch, v, n / 2 * sizeof(*v));
	while (left < left_end && right < end)
		*v++ = compare_parts(*left, *right) <= 0 ? *left++ : *right++;
	memcpy(v, left, (size_t)(left_end - left) * sizeof(*v));
}

static bool is_default(const struct ck_part *part)
{
	return (part->what == CK_PART_NUMBER || part->what == CK_PART_BYTES) && !part->value;
}

static bool only_last_counts(const struct ck_part *part)
{
	return part->what == CK_PART_PRESENT || part->what == CK_PART_NUMBER ||
	       part->what == CK_PART_BYTES || part->what == CK_PART_MAP;
}

static bool same_thing(const struct ck_part *a, const struct ck_part *b)
{
	return a->what == b->what && !ck_leaf_order(&a->name, &b->name);
}

int ck_parts_settle(struct ck_parts *parts, size_t from, struct ck_settled *ret_settled,
		    struct ck_error *err)
{
	size_t n = parts->n - from, kept = 0;
	/* the half behind it: room to merge */
	struct ck_part **v = ck_parts_take(parts, (n + n / 2) * sizeof(*v));

	if (!v)
		return ck_nomem(err);
	for (size_t i = 0; i < n; i++)
		v[i] = &parts->stack[from + i];
	merge_sort(v, v + n, n);
	for (size_t i = 0; i < n; i++) {
		bool replaced = i + 1 < n && only_last_counts(v[i]) && same_thing(v[i], v[i + 1]);
		if (!replaced && !is_default(v[i]))
			v[kept++] = v[i];
	}
	*ret_settled = (struct ck_settled){ v, kept };
	return 0;
}

struct ck_part *ck_settled_find(const struct ck_settled *settled, const char *path,
				enum ck_part_what what)
{
	for (size_t i = 0; i < settled->n; i++)
		if (settled->parts[i]->what == what && ck_leaf_is(&settled->parts[i]->name, path))
			return settled->parts[i];
	return NULL;
}

/* ---- writing out ----------------------------------------------------------------------------- */

static size_t leaf_end(const struct ck_settled *settled, size_t i)
{
	struct ck_part **v = settled->parts;
	size_t end = i + 1;

	if (v[i]->what == CK_PART_LIST || v[i]->what == CK_PART_SET ||
	    v[i]->what == CK_PART_UNKNOWN)
		while (end < settled->n && same_thing(v[end], v[i]))
			end++;
	return end;
}

static unsigned char *write_number(unsigned char *p, uint64_t value)
{
	for (unsigned i = 0; i < NUMBER_BYTES; i++)
		*p++ = (unsigned char)(value >> (8 * i));
	return p;
}

/* seven bits in each byte, as protobuf does: most lengths are short */
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

size_t ck_settled_room(const struct ck_settled *settled)
{
	size_t room = 0;

	for (size_t i = 0; i < settled->n; i++) {
		const struct ck_part *part = settled->parts[i];
		room += PART_HEAD + part->name.path_len + part->name.key_len;
		room += part->data ? (size_t)part->value : NUMBER_BYTES;
	}
	return room;
}

/* what (1) path_len (1) path [key_len key] [tail (2)] count { wire (1) len value } ...: what says
 * whether key and tail are there, and every length comes before what it measures, so no two leaves
 * are written alike */
unsigned char *ck_settled_write(const struct ck_settled *settled, size_t *i, unsigned char *p)
{
	const struct ck_part *first = settled->parts[*i];
	const struct ck_leaf_name *name = &first->name;
	size_t end = leaf_end(settled, *i);

	*p++ = (unsigned char)(first->what | (name->keyed ? WITH_KEY : 0) | (name->tail[0] ? WITH_TAIL : 0));
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
		const struct ck_part *part = settled->parts[*i];
		*p++ = part->wire;
		if (part->data) {
			p = write_length(p, (size_t)part->value);
			p = write_bytes(p, part->data, (size_t)part->value);
		} else {
			p = write_length(p, NUMBER_BYTES);
			p = write_number(p, part->value);
		}
	}
	return p;
}
