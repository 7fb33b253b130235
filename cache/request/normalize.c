/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From request bytes to canonical form, in two steps.
 *
 * walk():    every field becomes a part (fields.h): where it stands, and its value. A field inside a singular message becomes a
 *            part of its own, so messages that come in pieces merge by themselves. An element of a
 *            repeated message is walked and settled by itself, written out, and becomes one part (a
 *            mount up to three).
 * form():    all parts are settled and written out.
 */
#include <string.h>

#include "cache/request/normalize.h"
#include "cache/request/cri.pb-c.h"
#include "src/base/wire.h"
#include "src/base/error.h"
#include "src/base/limits.h"
#include "src/base/mem.h"

/* Lists of which the order does not decide, or which have a key (facts of the kubelet: it walks Go
 * maps to make them). */
static const struct {
	const ProtobufCMessageDescriptor *type;
	uint32_t field;
	enum ck_part_what what;
} special[] = {
	{ &ck__cri__container_config__descriptor, 6, CK_PART_ENV },   /* envs */
	{ &ck__cri__container_config__descriptor, 7, CK_PART_MOUNT }, /* mounts */
	{ &ck__cri__container_config__descriptor, 8, CK_PART_SET },   /* devices */
	{ &ck__cri__container_config__descriptor, 17, CK_PART_SET },  /* CDI_devices */
	{ &ck__cri__dnsconfig__descriptor, 3, CK_PART_SET },          /* options */
};

#define TERMINATION_KEY    "io.kubernetes.container.terminationMessagePath"
#define CONFIG             2 /* of a CreateContainerRequest */
#define CONFIG_ANNOTATIONS 10
#define TERMINATION_SUFFIX 8u /* hex digits, new on every try */

struct walk {
	struct ck_error *err;
	struct ck_parts parts;
	/* the termination log's container path, without leading '/'; NULL: none */
	const unsigned char *termination;
	size_t termination_len;
};

static int push(struct walk *w, const struct ck_part *part)
{
	return ck_parts_push(&w->parts, part, w->err);
}

/* ---- elements -------------------------------------------------------------------------------- */

/* write all of it out, as the value of @part */
static int write_element(struct walk *w, const struct ck_settled *element, struct ck_part *part)
{
	unsigned char *bytes = ck_parts_take(&w->parts, ck_settled_room(element)), *p = bytes;

	if (!bytes)
		return ck_nomem(w->err);
	for (size_t i = 0; i < element->n;) {
		if (element->parts[i]->what == CK_PART_LEFT_OUT)
			i++;
		else
			p = ck_settled_write(element, &i, p);
	}
	part->data = bytes;
	part->value = (uint64_t)(p - bytes);
	return 0;
}

/* field 1 of the element names it, and need not be written out again */
static void take_key(const struct ck_settled *element, struct ck_part *part)
{
	struct ck_part *key = ck_settled_find(element, "\1", CK_PART_BYTES);

	part->name.keyed = 1;
	if (!key)
		return;
	part->name.key = key->data;
	part->name.key_len = (uint32_t)key->value;
	key->what = CK_PART_LEFT_OUT;
}

/* E1: does the path end in a file name of exactly eight lower-case hex digits? */
static bool has_random_name(const struct ck_part *path)
{
	size_t len = (size_t)path->value;

	if (len < TERMINATION_SUFFIX ||
	    (len > TERMINATION_SUFFIX && path->data[len - TERMINATION_SUFFIX - 1] != '/'))
		return false;
	for (size_t i = len - TERMINATION_SUFFIX; i < len; i++)
		if (!strchr("0123456789abcdef", path->data[i]) || !path->data[i])
			return false;
	return true;
}

static bool is_termination_key(const struct ck_leaf_name *annotation)
{
	return annotation->key_len == strlen(TERMINATION_KEY) &&
	       !memcmp(annotation->key, TERMINATION_KEY, annotation->key_len);
}

static bool is_termination_log(const struct walk *w, const struct ck_leaf_name *mount)
{
	return w->termination && mount->key_len == w->termination_len + 1 && mount->key[0] == '/' &&
	       !memcmp(mount->key + 1, w->termination, w->termination_len);
}

/*
 * A mount is one leaf, and up to two beside it: with E1 the host file's random name, which only
 * strict mode looks at, and the image of an image volume, which may be another name of the same
 * (E5). Both also carry all the rest of their mount, so that two mounts on one target cannot
 * exchange them unnoticed.
 */
static int push_mount(struct walk *w, const struct ck_settled *element, struct ck_part *mount)
{
	struct ck_part *host = ck_settled_find(element, "\2", CK_PART_BYTES);
	struct ck_part *image = ck_settled_find(element, "\11\1", CK_PART_BYTES);
	struct ck_part extra[2];
	unsigned extras = 0;
	int r;

	if (host && is_termination_log(w, &mount->name) && has_random_name(host)) {
		extra[extras] = *mount;
		extra[extras].name.tail[0] = 2;
		r = write_element(w, element, &extra[extras++]);
		if (r < 0)
			return r;
		host->what = CK_PART_MASKED;
		host->value -= TERMINATION_SUFFIX;
	}
	if (image) {
		extra[extras] = *mount;
		memcpy(extra[extras].name.tail, "\11\1", 2);
		if (ck_settled_find(element, "\11\22", CK_PART_BYTES))
			extra[extras].flags = CK_LEAF_USER_IMAGE;
		r = write_element(w, element, &extra[extras++]);
		if (r < 0)
			return r;
		image->what = CK_PART_LEFT_OUT;
	}
	r = write_element(w, element, mount);
	if (r == 0)
		r = push(w, mount);
	for (unsigned i = 0; i < extras && r == 0; i++)
		r = push(w, &extra[i]);
	return r;
}

/* ---- walking --------------------------------------------------------------------------------- */

/* A map's entry looks like any message; protoc names it so, and no message of CRI ends in Entry
 * otherwise. */
static bool is_map_entry(const ProtobufCMessageDescriptor *type)
{
	size_t len = strlen(type->short_name);

	return len > 5 && !strcmp(type->short_name + len - 5, "Entry");
}

/* the number as its type means it: what is written in more bits than the type has is cut, as every
 * protobuf decoder does */
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
	return type == PROTOBUF_C_TYPE_BOOL || type == PROTOBUF_C_TYPE_ENUM ||
	       type == PROTOBUF_C_TYPE_INT32 || type == PROTOBUF_C_TYPE_INT64 ||
	       type == PROTOBUF_C_TYPE_UINT32 || type == PROTOBUF_C_TYPE_UINT64;
}

static bool is_bytes(ProtobufCType type)
{
	return type == PROTOBUF_C_TYPE_STRING || type == PROTOBUF_C_TYPE_BYTES;
}

static enum ck_part_what what_is(const ProtobufCMessageDescriptor *type,
				 const ProtobufCFieldDescriptor *field)
{
	bool message = field->type == PROTOBUF_C_TYPE_MESSAGE;

	if (field->label != PROTOBUF_C_LABEL_REPEATED)
		return message                 ? CK_PART_PRESENT
		       : is_bytes(field->type) ? CK_PART_BYTES
					       : CK_PART_NUMBER;
	for (size_t i = 0; i < CK_COUNT(special); i++)
		if (special[i].type == type && special[i].field == field->id)
			return special[i].what;
	return message && is_map_entry(field->descriptor) ? CK_PART_MAP : CK_PART_LIST;
}

static int walk(struct walk *w, const ProtobufCMessageDescriptor *type, struct ck_wire wire,
		const struct ck_leaf_name *at);

/*
 * An entry or env that is a key and a value and nothing else, as all are that today's kubelet
 * sends: the value itself is what its part holds. (Written out it would begin with another wire
 * type, so the two cannot be confused.) Return: 1 if it is one, 0 if it is not: then of @part only
 * the key is good.
 */
static int read_pair(struct walk *w, struct ck_wire wire, struct ck_part *part)
{
	struct ck_wire_field field, key = { 0 }, value = { .data = (const unsigned char *)"" };
	bool pair = true;
	int r;

	while ((r = ck_wire_next(&wire, &field, w->err)) > 0) {
		if (field.type == CK_WIRE_BYTES && field.number == 1)
			key = field;
		else if (field.type == CK_WIRE_BYTES && field.number == 2)
			value = field;
		else
			pair = false;
	}
	if (r < 0)
		return r;
	part->name.keyed = 1;
	part->name.key = key.data;
	part->name.key_len = (uint32_t)key.len;
	part->data = value.data;
	part->value = value.len;
	part->wire = pair ? CK_WIRE_BYTES : 0;
	return pair;
}

static int walk_element(struct walk *w, const ProtobufCMessageDescriptor *type, struct ck_wire wire,
			struct ck_part *part)
{
	static const struct ck_leaf_name top; /* names inside an element begin at the element */
	size_t from = w->parts.n;
	struct ck_settled element;
	int r = 0;

	if (part->what == CK_PART_MAP || part->what == CK_PART_ENV)
		r = read_pair(w, wire, part);
	if (r)
		return r < 0 ? r : push(w, part);
	r = walk(w, type, wire, &top);
	if (r < 0)
		return r;
	r = ck_parts_settle(&w->parts, from, &element, w->err);
	if (r < 0)
		return r;
	w->parts.n = from; /* what is settled stays until the next push */
	if (part->what == CK_PART_MAP || part->what == CK_PART_ENV || part->what == CK_PART_MOUNT)
		take_key(&element, part);
	if (part->what == CK_PART_MOUNT)
		return push_mount(w, &element, part);
	r = write_element(w, &element, part);
	return r < 0 ? r : push(w, part);
}

static int walk_packed(struct walk *w, ProtobufCType type, struct ck_wire wire,
		       struct ck_part *part)
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

/* What all fields of one number in a message have in common. The elements of a list come one after
 * another, so this is looked up once for all of them. */
struct place {
	uint32_t number;                       /* 0: none yet */
	const ProtobufCFieldDescriptor *field; /* NULL: unknown */
	/* where it stands, and what it is if its wire type is its own */
	struct ck_part part;
};

static bool find_place(struct place *place, const ProtobufCMessageDescriptor *type,
		       const struct ck_leaf_name *at, uint32_t number)
{
	const ProtobufCFieldDescriptor *field =
		protobuf_c_message_descriptor_get_field(type, number);

	*place = (struct place){ .number = number, .field = field, .part = { .name = *at } };
	if (field)
		place->part.what = (unsigned char)what_is(type, field);
	return ck_leaf_step(&place->part.name, number);
}

static int walk_field(struct walk *w, const struct place *place, const struct ck_wire *wire,
		      const struct ck_wire_field *read)
{
	const ProtobufCFieldDescriptor *field = place->field;
	struct ck_part part = place->part;
	int r;

	part.data = read->data;
	part.value = read->data ? read->len : read->value;
	if (field && read->data && is_bytes(field->type)) {
		return push(w, &part);
	} else if (field && read->data && part.what == CK_PART_PRESENT) {
		part.value = 0;
		r = push(w, &part);
		return r < 0 ? r
			     : walk(w, field->descriptor, ck_wire_inside(wire, read), &part.name);
	} else if (field && read->data && field->type == PROTOBUF_C_TYPE_MESSAGE) {
		return walk_element(w, field->descriptor, ck_wire_inside(wire, read), &part);
	} else if (field && read->data && part.what == CK_PART_LIST && is_number(field->type)) {
		part.data = NULL;
		return walk_packed(w, field->type, ck_wire_inside(wire, read), &part);
	} else if (field && read->type == CK_WIRE_VARINT && is_number(field->type)) {
		part.value = as_type(field->type, read->value);
		return push(w, &part);
	}
	part.what = CK_PART_UNKNOWN;
	part.wire = (unsigned char)read->type;
	return push(w, &part);
}

/* recursion ends: only messages that cri.proto names are walked into, and none of them can hold
 * itself */
static int walk(struct walk *w, const ProtobufCMessageDescriptor *type, struct ck_wire wire,
		const struct ck_leaf_name *at)
{
	struct place place = { .number = 0 };
	struct ck_wire_field read;
	int r;

	while ((r = ck_wire_next(&wire, &read, w->err)) > 0) {
		if (read.number != place.number && !find_place(&place, type, at, read.number))
			return ck_fail(w->err, CK_ETOOBIG, "byte %zu: messages nested too deeply",
				       (size_t)(wire.p - wire.request));
		r = walk_field(w, &place, &wire, &read);
		if (r < 0)
			return r;
	}
	return r;
}

/* ---- the termination log (E1) ---------------------------------------------------------------- */

/* Its container path is said in config.annotations, behind the mounts; the last one of the key
 * counts, if it is a pair. What is malformed is passed over: walk() will meet it too. */
static void find_termination_log(struct walk *w, struct ck_wire request)
{
	struct ck_wire_field read;

	while (ck_wire_next(&request, &read, w->err) > 0) {
		if (read.number != CONFIG || !read.data)
			continue;
		struct ck_wire config = ck_wire_inside(&request, &read);
		while (ck_wire_next(&config, &read, w->err) > 0) {
			struct ck_part entry = { .value = 0 };
			if (read.number != CONFIG_ANNOTATIONS || !read.data)
				continue;
			int pair = read_pair(w, ck_wire_inside(&config, &read), &entry);
			if (pair < 0 || !is_termination_key(&entry.name))
				continue;
			bool absolute = entry.value && entry.data[0] == '/';
			w->termination = pair && entry.value ? entry.data + absolute : NULL;
			w->termination_len = (size_t)entry.value - absolute;
		}
	}
}

/* ---- the whole ------------------------------------------------------------------------------- */

static int form(struct walk *w, struct ck_canon *canon)
{
	struct ck_settled all;
	int r = ck_parts_settle(&w->parts, 0, &all, w->err);

	if (r < 0)
		return r;
	canon->leaves = ck_parts_take(&w->parts, all.n * sizeof(*canon->leaves));
	unsigned char *p = ck_parts_take(&w->parts, ck_settled_room(&all));
	if (!canon->leaves || !p)
		return ck_nomem(w->err);
	struct ck_part *image = ck_settled_find(&all, "\2\2\1", CK_PART_BYTES);
	if (image) {
		canon->image = image->data;
		canon->image_len = (size_t)image->value;
		if (ck_settled_find(&all, "\2\2\22", CK_PART_BYTES))
			image->flags = CK_LEAF_USER_IMAGE;
	}
	for (size_t i = 0; i < all.n;) {
		const struct ck_part *part = all.parts[i];
		struct ck_canon_leaf *leaf = &canon->leaves[canon->n++];
		*leaf = (struct ck_canon_leaf){ .name = &part->name, .flags = part->flags, .bytes = p };
		p = ck_settled_write(&all, &i, p);
		leaf->len = (size_t)(p - leaf->bytes);
	}
	return 0;
}

int ck_canon_make(enum ck_kind kind, const void *bytes, size_t len, struct ck_canon *ret_canon,
		  struct ck_error *err)
{
	static const struct ck_leaf_name top;
	struct ck_wire request = ck_wire_begin(bytes, len);
	struct walk w = { .err = err };
	struct ck_canon canon = { .n = 0 };

	if (len > CK_REQUEST_MAX)
		return ck_fail(err, CK_ETOOBIG, "a request of %zu bytes, at most %u are possible",
			       len, CK_REQUEST_MAX);
	if (kind == CK_CONTAINER)
		find_termination_log(&w, request);
	int r = ck_parts_init(&w.parts, 2 * len, err);
	if (r == 0)
		r = walk(&w,
			 kind == CK_SANDBOX ? &ck__cri__run_pod_sandbox_request__descriptor
					    : &ck__cri__create_container_request__descriptor,
			 request, &top);
	if (r == 0)
		r = form(&w, &canon);
	if (r < 0) {
		ck_parts_fini(&w.parts);
		return r;
	}
	canon.parts = w.parts;
	*ret_canon = canon;
	return 0;
}

void ck_canon_fini(struct ck_canon *canon)
{
	ck_parts_fini(&canon->parts);
}
