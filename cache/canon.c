/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From request bytes to canonical form, in two steps.
 *
 * walk():    every field becomes a part: where it stands, and its value. A field inside a singular message becomes a part of
 *            its own, so messages that come in pieces merge by themselves. An element of a repeated message is walked and
 *            settled by itself, written out, and becomes one part (a mount up to three). Mounts come last: E1 needs to know
 *            an annotation that stands behind them.
 * settle():  parts are sorted by name; of a singular field the last one stays, and only if it is not the default.
 *
 * Then parts are written out; those of one list, set or unknown field together are one leaf.
 */
#include <string.h>

#include "cache/canon.h"
#include "cache/cri.pb-c.h"
#include "cache/wire.h"
#include "src/base/error.h"
#include "src/base/limits.h"
#include "src/base/mem.h"

/* What a part is. Written out before it, so part of every digest: never renumber without raising CK_FORM_VERSION. */
enum what {
	LEFT_OUT = 0,   /* already used otherwise: an element's key, a mount's image, a mount's raw bytes */
	PRESENT = 1,    /* a singular message is there, even if nothing is in it */
	NUMBER = 2,     /* singular: the last one counts, 0 is absence */
	BYTES = 3,      /* singular string or bytes: the last one counts, "" is absence */
	MASKED = 4,     /* bytes that E1 has cut; can equal no BYTES */
	LIST = 5,       /* an element of a list, whose order counts */
	SET = 6,        /* an element of a list whose order does not count */
	MAP = 7,        /* an entry of a map: the last one of a key counts */
	ENV = 8,        /* keyed, and the order among equal keys counts: the last one wins in a container */
	MOUNT = 9,      /* keyed, any number of equal keys, in any order */
	UNKNOWN = 10,   /* a field we have no name for, or with a wire type that is not its own: counts all the same */
	RAW_MOUNT = 11, /* its bytes as they came, until all of the request is known; never written out */
};

struct part {
	struct ck_leaf_name name;
	const unsigned char *data; /* NULL: a number */
	uint64_t value;            /* the number, or how many bytes */
	unsigned char what, wire, flags;
};

/* Lists of which the order does not decide, or which have a key (facts of the kubelet: it walks Go maps to make them). */
static const struct {
	const ProtobufCMessageDescriptor *type;
	uint32_t field;
	enum what what;
} special[] = {
	{ &ck__cri__container_config__descriptor, 6, ENV },       /* envs */
	{ &ck__cri__container_config__descriptor, 7, RAW_MOUNT }, /* mounts */
	{ &ck__cri__container_config__descriptor, 8, SET },       /* devices */
	{ &ck__cri__container_config__descriptor, 17, SET },      /* CDI_devices */
	{ &ck__cri__dnsconfig__descriptor, 3, SET },              /* options */
};

#define TERMINATION_KEY    "io.kubernetes.container.terminationMessagePath"
#define CONFIG_ANNOTATIONS "\2\12"
#define TERMINATION_SUFFIX 8u /* hex digits, new on every try */

#define PARTS_FIRST  512u        /* a container with 100 envs and 30 mounts fits */
#define ARENA_ALIGN  16u         /* what malloc gives */
#define ARENA_SLACK  (16u << 10) /* beyond twice the request: heads of leaves, and the leaves */
#define LEAF_HEAD    15u         /* bytes written before a leaf's path, key and values, at most: 5, and two lengths of 5 */
#define VALUE_HEAD   6u          /* bytes written before one value, at most: 1, and a length of 5 */
#define NUMBER_BYTES 8u          /* of a number as a value */

struct chunk {
	struct chunk *next;
	_Alignas(ARENA_ALIGN) unsigned char bytes[];
};

struct walk {
	struct ck_error *err;
	struct part *parts; /* a stack: those of an element lie above those of what holds it, and go when it is written out */
	size_t n, room;
	unsigned total; /* parts ever pushed: bounds memory and time */
	struct chunk *chunks;
	unsigned char *free; /* what is left of the newest chunk */
	size_t left;
	const unsigned char *request;     /* where it begins: errors count from there */
	const unsigned char *termination; /* the termination log's container path, without leading '/'; NULL: none */
	size_t termination_len;
};

/* ---- memory --------------------------------------------------------------------------------------------------------- */

static bool grow(struct walk *w, size_t size)
{
	struct chunk *chunk = ck_alloc(sizeof(*chunk) + size);

	if (!chunk)
		return false;
	chunk->next = w->chunks;
	w->chunks = chunk;
	w->free = chunk->bytes;
	w->left = size;
	return true;
}

/* memory that stays where it is until the form is freed, aligned for anything */
static void *take(struct walk *w, size_t size)
{
	size = (size + ARENA_ALIGN - 1) & ~(size_t)(ARENA_ALIGN - 1);
	if (size > w->left && !grow(w, size > ARENA_SLACK ? size : ARENA_SLACK))
		return NULL;
	void *p = w->free;
	w->free += size;
	w->left -= size;
	return p;
}

static void free_chunks(struct chunk *chunk)
{
	while (chunk) {
		struct chunk *next = chunk->next;
		free(chunk);
		chunk = next;
	}
}

static bool more_parts(struct walk *w)
{
	size_t room = w->room ? w->room * 2 : PARTS_FIRST;
	struct part *parts = ck_realloc(w->parts, room * sizeof(*parts));

	if (!parts)
		return false;
	w->parts = parts;
	w->room = room;
	return true;
}

static int push(struct walk *w, const struct part *part)
{
	if (w->total == CK_LEAVES_MAX)
		return ck_fail(w->err, CK_ETOOBIG, "a request of more than %u parts", CK_LEAVES_MAX);
	if (w->n == w->room && !more_parts(w))
		return ck_nomem(w->err);
	w->parts[w->n++] = *part;
	w->total++;
	return 0;
}

/* ---- settling ------------------------------------------------------------------------------------------------------- */

static int compare_values(const struct part *a, const struct part *b)
{
	if (a->data && b->data) {
		size_t len = (size_t)(a->value < b->value ? a->value : b->value);
		int r = len ? memcmp(a->data, b->data, len) : 0;
		if (r)
			return r;
	}
	return (a->value > b->value) - (a->value < b->value);
}

static int compare_parts(const struct part *a, const struct part *b)
{
	int r = ck_leaf_order(&a->name, &b->name);

	if (!r)
		r = a->what - b->what;
	if (!r && (a->what == SET || a->what == MOUNT || a->what == UNKNOWN)) {
		r = a->wire - b->wire;
		if (!r)
			r = compare_values(a, b);
	}
	return r;
}

/* A stable merge sort: what compares equal keeps the order it came in, and runs that are in order already cost little. */
static void merge_sort(struct part *v, struct part *scratch, size_t n)
{
	size_t half = n / 2, i = 0, j = half, k = 0;

	if (n < 2)
		return;
	merge_sort(v, scratch, half);
	merge_sort(v + half, scratch, n - half);
	if (compare_parts(&v[half - 1], &v[half]) <= 0)
		return;
	memcpy(scratch, v, half * sizeof(*v));
	while (i < half && j < n)
		v[k++] = compare_parts(&scratch[i], &v[j]) <= 0 ? scratch[i++] : v[j++];
	memcpy(v + k, scratch + i, (half - i) * sizeof(*v));
}

static bool is_default(const struct part *part)
{
	return (part->what == NUMBER || part->what == BYTES) && !part->value;
}

static bool only_last_counts(const struct part *part)
{
	return part->what == PRESENT || part->what == NUMBER || part->what == BYTES || part->what == MAP;
}

/* put the parts from @from on into canonical order, one for each thing said */
static int settle(struct walk *w, size_t from)
{
	struct part *parts = w->parts + from, *scratch = NULL;
	size_t n = w->n - from, kept = 0;

	for (size_t i = 1; i < n && !scratch; i++) {
		if (compare_parts(&parts[i - 1], &parts[i]) > 0) {
			scratch = take(w, n / 2 * sizeof(*parts));
			if (!scratch)
				return ck_nomem(w->err);
			merge_sort(parts, scratch, n);
		}
	}
	for (size_t i = 0; i < n; i++) {
		bool replaced = i + 1 < n && only_last_counts(&parts[i]) && parts[i].what == parts[i + 1].what &&
				!ck_leaf_order(&parts[i].name, &parts[i + 1].name);
		if (!replaced && !is_default(&parts[i]) && parts[i].what != LEFT_OUT) {
			if (kept != i)
				parts[kept] = parts[i];
			kept++;
		}
	}
	w->n = from + kept;
	return 0;
}

/* ---- writing out ---------------------------------------------------------------------------------------------------- */

/* the parts from @i on that are one leaf end before the returned index */
static size_t leaf_end(const struct part *parts, size_t i, size_t n)
{
	size_t end = i + 1;

	if (parts[i].what == LIST || parts[i].what == SET || parts[i].what == UNKNOWN)
		while (end < n && parts[end].what == parts[i].what && !ck_leaf_order(&parts[end].name, &parts[i].name))
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

static size_t leaf_room(const struct part *parts, size_t i, size_t end)
{
	size_t room = LEAF_HEAD + parts[i].name.path_len + parts[i].name.key_len;

	for (; i < end; i++)
		room += VALUE_HEAD + (parts[i].data ? (size_t)parts[i].value : NUMBER_BYTES);
	return room;
}

/* what (1) path_len (1) tail (2) keyed (1) key_len path key count { wire (1) len value } ...: every length comes before what it
 * measures, so no two leaves are written alike */
static unsigned char *write_leaf(unsigned char *p, const struct part *parts, size_t i, size_t end)
{
	const struct ck_leaf_name *name = &parts[i].name;

	*p++ = parts[i].what;
	*p++ = name->path_len;
	p = write_bytes(p, name->tail, sizeof(name->tail));
	*p++ = name->keyed;
	p = write_length(p, name->key_len);
	p = write_bytes(p, name->path, name->path_len);
	p = write_bytes(p, name->key, name->key_len);
	p = write_length(p, end - i);
	for (; i < end; i++) {
		*p++ = parts[i].wire;
		if (parts[i].data) {
			p = write_length(p, (size_t)parts[i].value);
			p = write_bytes(p, parts[i].data, (size_t)parts[i].value);
		} else {
			p = write_length(p, NUMBER_BYTES);
			p = write_number(p, parts[i].value);
		}
	}
	return p;
}

/* write out the settled parts from @from on, as the value of @part; they stay */
static int write_element(struct walk *w, size_t from, struct part *part)
{
	const struct part *parts = w->parts + from;
	size_t n = w->n - from, room = 0, end;

	for (size_t i = 0; i < n; i = end) {
		end = leaf_end(parts, i, n);
		room += leaf_room(parts, i, end);
	}
	unsigned char *bytes = take(w, room), *p = bytes;
	if (!bytes)
		return ck_nomem(w->err);
	for (size_t i = 0; i < n; i = end) {
		end = leaf_end(parts, i, n);
		if (parts[i].what != LEFT_OUT)
			p = write_leaf(p, parts, i, end);
	}
	part->data = bytes;
	part->value = (uint64_t)(p - bytes);
	return 0;
}

/* ---- elements ------------------------------------------------------------------------------------------------------- */

/* the settled part of an element at this path with this meaning, or NULL */
static struct part *find(struct walk *w, size_t from, const char *path, enum what what)
{
	for (size_t i = from; i < w->n; i++)
		if (w->parts[i].what == what && ck_leaf_is(&w->parts[i].name, path))
			return &w->parts[i];
	return NULL;
}

/* field 1 of the element names it, and need not be written out again */
static void take_key(struct walk *w, size_t from, struct part *part)
{
	struct part *key = find(w, from, "\1", BYTES);

	part->name.keyed = 1;
	if (!key)
		return;
	part->name.key = key->data;
	part->name.key_len = (uint32_t)key->value;
	key->what = LEFT_OUT;
}

/* E1: does the path end in a file name of exactly eight lower-case hex digits? */
static bool has_random_name(const struct part *path)
{
	size_t len = (size_t)path->value;

	if (len < TERMINATION_SUFFIX || (len > TERMINATION_SUFFIX && path->data[len - TERMINATION_SUFFIX - 1] != '/'))
		return false;
	for (size_t i = len - TERMINATION_SUFFIX; i < len; i++)
		if (!strchr("0123456789abcdef", path->data[i]) || !path->data[i])
			return false;
	return true;
}

static bool is_termination_log(const struct walk *w, const struct ck_leaf_name *mount)
{
	return w->termination && mount->key_len == w->termination_len + 1 && mount->key[0] == '/' &&
	       !memcmp(mount->key + 1, w->termination, w->termination_len);
}

/*
 * A mount is one leaf, and up to two beside it: with E1 the host file's random name, which only strict mode looks at, and the
 * image of an image volume, which may be another name of the same (E5). Both also carry all the rest of their mount, so that
 * two mounts on one target cannot exchange them unnoticed.
 */
static int push_mount(struct walk *w, size_t from, const struct part *mount)
{
	struct part *host = find(w, from, "\2", BYTES), *image = find(w, from, "\11\1", BYTES);
	struct part extra[2], rest = *mount;
	unsigned extras = 0;
	int r;

	if (host && is_termination_log(w, &mount->name) && has_random_name(host)) {
		extra[extras] = *mount;
		extra[extras].name.tail[0] = 2;
		r = write_element(w, from, &extra[extras++]);
		if (r < 0)
			return r;
		host->what = MASKED;
		host->value -= TERMINATION_SUFFIX;
	}
	if (image) {
		extra[extras] = *mount;
		memcpy(extra[extras].name.tail, "\11\1", 2);
		if (find(w, from, "\11\22", BYTES))
			extra[extras].flags = CK_LEAF_USER_IMAGE;
		r = write_element(w, from, &extra[extras++]);
		if (r < 0)
			return r;
		image->what = LEFT_OUT;
	}
	r = write_element(w, from, &rest);
	w->n = from;
	if (r == 0)
		r = push(w, &rest);
	for (unsigned i = 0; i < extras && r == 0; i++)
		r = push(w, &extra[i]);
	return r;
}

/* ---- walking -------------------------------------------------------------------------------------------------------- */

/* A map's entry looks like any message; protoc names it so, and no message of CRI ends in Entry otherwise. */
static bool is_map_entry(const ProtobufCMessageDescriptor *type)
{
	size_t len = strlen(type->short_name);

	return len > 5 && !strcmp(type->short_name + len - 5, "Entry");
}

static enum what what_repeated(const ProtobufCMessageDescriptor *type, const ProtobufCFieldDescriptor *field)
{
	for (size_t i = 0; i < CK_COUNT(special); i++)
		if (special[i].type == type && special[i].field == field->id)
			return special[i].what;
	return field->type == PROTOBUF_C_TYPE_MESSAGE && is_map_entry(field->descriptor) ? MAP : LIST;
}

/* the number as its type means it: what is written in more bits than the type has is cut, as every protobuf decoder does */
static uint64_t as_type(ProtobufCType type, uint64_t value)
{
	switch (type) {
	case PROTOBUF_C_TYPE_BOOL:
		return value != 0;
	case PROTOBUF_C_TYPE_UINT32:
		return (uint32_t)value;
	case PROTOBUF_C_TYPE_INT32:
	case PROTOBUF_C_TYPE_ENUM:
		return (uint64_t)(int64_t)(int32_t)(uint32_t)value;
	default:
		return value;
	}
}

static bool is_number(ProtobufCType type)
{
	return type == PROTOBUF_C_TYPE_BOOL || type == PROTOBUF_C_TYPE_ENUM || type == PROTOBUF_C_TYPE_INT32 ||
	       type == PROTOBUF_C_TYPE_INT64 || type == PROTOBUF_C_TYPE_UINT32 || type == PROTOBUF_C_TYPE_UINT64;
}

static bool is_bytes(ProtobufCType type)
{
	return type == PROTOBUF_C_TYPE_STRING || type == PROTOBUF_C_TYPE_BYTES;
}

static int walk(struct walk *w, const ProtobufCMessageDescriptor *type, struct ck_wire wire, const struct ck_leaf_name *at);

/*
 * An entry or env that is a key and a value and nothing else, as all are that today's kubelet sends: the value itself is what
 * its part holds. (Written out it would begin with another wire type, so the two cannot be confused.) Return: 1 if it is one.
 */
static int read_pair(struct walk *w, struct ck_wire wire, struct part *part)
{
	struct ck_wire_field field, key = { 0 }, value = { 0 };
	int r;

	while ((r = ck_wire_next(&wire, &field, w->err)) > 0) {
		if (field.type != CK_WIRE_BYTES || field.number > 2)
			return 0;
		if (field.number == 1)
			key = field;
		else
			value = field;
	}
	if (r < 0)
		return r;
	part->name.keyed = 1;
	part->name.key = key.data;
	part->name.key_len = (uint32_t)key.len;
	part->data = value.data ? value.data : (const unsigned char *)"";
	part->value = value.len;
	part->wire = CK_WIRE_BYTES;
	return 1;
}

static int walk_element(struct walk *w, const ProtobufCMessageDescriptor *type, struct ck_wire wire, struct part *part)
{
	static const struct ck_leaf_name top; /* names inside an element begin at the element */
	size_t from = w->n;
	int r = 0;

	if (part->what == MAP || part->what == ENV)
		r = read_pair(w, wire, part);
	if (r)
		return r < 0 ? r : push(w, part);
	r = walk(w, type, wire, &top);
	if (r < 0)
		return r;
	r = settle(w, from);
	if (r < 0)
		return r;
	if (part->what == MAP || part->what == ENV || part->what == MOUNT)
		take_key(w, from, part);
	if (part->what == MOUNT)
		return push_mount(w, from, part);
	r = write_element(w, from, part);
	w->n = from;
	return r < 0 ? r : push(w, part);
}

static int walk_packed(struct walk *w, ProtobufCType type, struct ck_wire wire, struct part *part)
{
	int r;

	while ((r = ck_wire_next_packed(&wire, &part->value, w->err)) > 0) {
		part->value = as_type(type, part->value);
		r = push(w, part);
		if (r < 0)
			return r;
	}
	return r;
}

static int walk_field(struct walk *w, const ProtobufCMessageDescriptor *type, const struct ck_wire *wire,
		      const struct ck_wire_field *read, const struct ck_leaf_name *at)
{
	const ProtobufCFieldDescriptor *field = protobuf_c_message_descriptor_get_field(type, read->number);
	struct part part = { .name = *at };

	if (!ck_leaf_step(&part.name, read->number))
		return ck_fail(w->err, CK_ETOOBIG, "byte %zu: messages nested too deeply", (size_t)(wire->p - wire->request));
	part.data = read->data;
	part.value = read->data ? read->len : read->value;
	if (field && field->label == PROTOBUF_C_LABEL_REPEATED) {
		part.what = (unsigned char)what_repeated(type, field);
		if (read->data && (is_bytes(field->type) || part.what == RAW_MOUNT))
			return push(w, &part);
		if (read->data && field->type == PROTOBUF_C_TYPE_MESSAGE)
			return walk_element(w, field->descriptor, ck_wire_inside(wire, read), &part);
		if (is_number(field->type) && (read->data || read->type == CK_WIRE_VARINT)) {
			part.data = NULL;
			if (read->data)
				return walk_packed(w, field->type, ck_wire_inside(wire, read), &part);
			part.value = as_type(field->type, read->value);
			return push(w, &part);
		}
	} else if (field && read->data && field->type == PROTOBUF_C_TYPE_MESSAGE) {
		struct ck_leaf_name down = part.name;
		part.what = PRESENT;
		part.value = 0;
		int r = push(w, &part);
		return r < 0 ? r : walk(w, field->descriptor, ck_wire_inside(wire, read), &down);
	} else if (field && read->data && is_bytes(field->type)) {
		part.what = BYTES;
		return push(w, &part);
	} else if (field && read->type == CK_WIRE_VARINT && is_number(field->type)) {
		part.what = NUMBER;
		part.value = as_type(field->type, read->value);
		return push(w, &part);
	}
	part.what = UNKNOWN;
	part.wire = (unsigned char)read->type;
	return push(w, &part);
}

/* recursion ends: only messages that cri.proto names are walked into, and none of them can hold itself */
static int walk(struct walk *w, const ProtobufCMessageDescriptor *type, struct ck_wire wire, const struct ck_leaf_name *at)
{
	struct ck_wire_field field;
	int r;

	while ((r = ck_wire_next(&wire, &field, w->err)) > 0) {
		r = walk_field(w, type, &wire, &field, at);
		if (r < 0)
			return r;
	}
	return r;
}

/* ---- mounts (E1) ---------------------------------------------------------------------------------------------------- */

/* The container path of the termination log is said behind the mounts, in config.annotations; the last one of the key counts. */
static void find_termination_log(struct walk *w)
{
	for (size_t i = w->n; i-- > 0;) {
		const struct part *part = &w->parts[i];
		if (part->what != MAP || part->name.key_len != strlen(TERMINATION_KEY) ||
		    !ck_leaf_is(&part->name, CONFIG_ANNOTATIONS) || memcmp(part->name.key, TERMINATION_KEY, part->name.key_len))
			continue;
		if (part->wire == CK_WIRE_BYTES && part->value) { /* a pair (read_pair), and not "" */
			bool absolute = part->data[0] == '/';
			w->termination = part->data + absolute;
			w->termination_len = (size_t)part->value - absolute;
		}
		return;
	}
}

static int walk_mounts(struct walk *w)
{
	int r = 0;

	find_termination_log(w);
	for (size_t i = 0, n = w->n; i < n && r == 0; i++) {
		struct part mount = w->parts[i];
		if (mount.what != RAW_MOUNT)
			continue;
		w->parts[i].what = LEFT_OUT;
		mount.what = MOUNT;
		r = walk_element(w, &ck__cri__mount__descriptor,
				 (struct ck_wire){ mount.data, mount.data + mount.value, w->request }, &mount);
	}
	return r;
}

/* ---- the whole ------------------------------------------------------------------------------------------------------ */

static int write_form(struct walk *w, struct ck_canon *canon)
{
	size_t room = 0, leaves = 0, end;
	const struct part *image = find(w, 0, "\2\2\1", BYTES);
	bool user_image = find(w, 0, "\2\2\22", BYTES);

	for (size_t i = 0; i < w->n; i = end, leaves++) {
		end = leaf_end(w->parts, i, w->n);
		room += leaf_room(w->parts, i, end);
	}
	canon->leaves = take(w, leaves * sizeof(*canon->leaves));
	unsigned char *p = take(w, room);
	if (!canon->leaves || !p)
		return ck_nomem(w->err);
	for (size_t i = 0; i < w->n; i = end) {
		struct ck_canon_leaf *leaf = &canon->leaves[canon->n++];
		end = leaf_end(w->parts, i, w->n);
		leaf->name = w->parts[i].name;
		leaf->flags = w->parts[i].flags;
		if (&w->parts[i] == image && user_image)
			leaf->flags |= CK_LEAF_USER_IMAGE;
		leaf->bytes = p;
		p = write_leaf(p, w->parts, i, end);
		leaf->len = (size_t)(p - leaf->bytes);
	}
	if (image) {
		canon->image = image->data;
		canon->image_len = (size_t)image->value;
	}
	return 0;
}

int ck_canon_make(enum ck_kind kind, const void *bytes, size_t len, struct ck_canon *ret_canon, struct ck_error *err)
{
	static const struct ck_leaf_name top;
	struct ck_wire request = ck_wire_begin(bytes, len);
	struct ck_canon canon = { 0 };
	struct walk w = { .err = err, .request = request.p };
	int r = 0;

	if (len > CK_REQUEST_MAX)
		return ck_fail(err, CK_ETOOBIG, "a request of %zu bytes, at most %u are possible", len, CK_REQUEST_MAX);
	if (!grow(&w, 2 * len + ARENA_SLACK) || !more_parts(&w))
		r = ck_nomem(err);
	if (r == 0)
		r = walk(&w,
			 kind == CK_SANDBOX ? &ck__cri__run_pod_sandbox_request__descriptor
					    : &ck__cri__create_container_request__descriptor,
			 request, &top);
	if (r == 0)
		r = walk_mounts(&w);
	if (r == 0)
		r = settle(&w, 0);
	if (r == 0)
		r = write_form(&w, &canon);
	free(w.parts);
	if (r < 0) {
		free_chunks(w.chunks);
		return r;
	}
	canon.memory = w.chunks;
	*ret_canon = canon;
	return 0;
}

void ck_canon_fini(struct ck_canon *canon)
{
	free_chunks(canon->memory);
	canon->memory = NULL;
}
