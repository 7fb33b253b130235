/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From request bytes to normalized form, in two steps.
 *
 * walk()        Reads every field (fields.h): its place and its value. A field inside a singular
 *               message is a field of its own, so messages that come in pieces merge by themselves.
 *               An element of a repeated message is walked and sorted by itself and written out;
 *               the result is the value of one field (a mount becomes up to three).
 * write_form()  Sorts all fields and writes them out.
 */
#include <string.h>

#include "cache/request/normalize.h"
#include "cache/request/cri.pb-c.h"
#include "src/base/wire.h"
#include "src/base/error.h"
#include "src/base/limits.h"
#include "src/base/mem.h"

/* Lists whose order does not count, or whose elements have a key. The kubelet builds them by
 * walking Go maps, so their order changes from try to try. */
static const struct {
	const ProtobufCMessageDescriptor *type;
	uint32_t field;
	enum ck_field_what what;
} special[] = {
	{ &ck__cri__container_config__descriptor, 6, CK_FIELD_ENV },   /* envs */
	{ &ck__cri__container_config__descriptor, 7, CK_FIELD_MOUNT }, /* mounts */
	{ &ck__cri__container_config__descriptor, 8, CK_FIELD_SET },   /* devices */
	{ &ck__cri__container_config__descriptor, 17, CK_FIELD_SET },  /* CDI_devices */
	{ &ck__cri__dnsconfig__descriptor, 3, CK_FIELD_SET },          /* options */
};

#define TERMINATION_KEY    "io.kubernetes.container.terminationMessagePath"
#define CONFIG             2 /* of a CreateContainerRequest */
#define CONFIG_ANNOTATIONS 10
#define TERMINATION_SUFFIX 8u /* hex digits, different on every try */

struct walk {
	struct ck_error *err;
	struct ck_request_fields fields;
	/* container path of the termination log, without its leading '/'; NULL: none */
	const unsigned char *termination;
	size_t termination_len;
};

static int push(struct walk *w, const struct ck_request_field *field)
{
	return ck_request_fields_push(&w->fields, field, w->err);
}

/* ---- elements -------------------------------------------------------------------------------- */

/* Write all of @element out, as the value of @field. */
static int write_element(struct walk *w, const struct ck_sorted_fields *element,
			 struct ck_request_field *field)
{
	unsigned char *bytes = ck_request_fields_take(&w->fields, ck_sorted_fields_room(element)),
		      *p = bytes;

	if (!bytes)
		return ck_nomem(w->err);
	for (size_t i = 0; i < element->n;) {
		if (element->fields[i]->what == CK_FIELD_LEFT_OUT)
			i++;
		else
			p = ck_sorted_fields_write(element, &i, p);
	}
	field->data = bytes;
	field->value = (uint64_t)(p - bytes);
	return 0;
}

/* Field 1 of the element is its key, so it is left out of the value. */
static void take_key(const struct ck_sorted_fields *element, struct ck_request_field *field)
{
	struct ck_request_field *key = ck_sorted_fields_find(element, "\1", CK_FIELD_BYTES);

	field->name.keyed = 1;
	if (!key)
		return;
	field->name.key = key->data;
	field->name.key_len = (uint32_t)key->value;
	key->what = CK_FIELD_LEFT_OUT;
}

/* Does the path end in a file name of exactly eight lower-case hex digits (E1)? */
static bool has_random_name(const struct ck_request_field *path)
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

static bool is_termination_key(const struct ck_field_name *annotation)
{
	return annotation->key_len == strlen(TERMINATION_KEY) &&
	       !memcmp(annotation->key, TERMINATION_KEY, annotation->key_len);
}

static bool is_termination_log(const struct walk *w, const struct ck_field_name *mount)
{
	return w->termination && mount->key_len == w->termination_len + 1 && mount->key[0] == '/' &&
	       !memcmp(mount->key + 1, w->termination, w->termination_len);
}

/*
 * A mount becomes one field, and up to two more: the random name of the host file, which only
 * strict mode compares (E1), and the image of an image volume, which may be another name of the
 * same image (E5). Each of the two also contains the rest of the mount. Otherwise two mounts on one
 * target could exchange their files or images and nobody would see it.
 */
static int push_mount(struct walk *w, const struct ck_sorted_fields *element,
		      struct ck_request_field *mount)
{
	struct ck_request_field *host = ck_sorted_fields_find(element, "\2", CK_FIELD_BYTES);
	struct ck_request_field *image = ck_sorted_fields_find(element, "\11\1", CK_FIELD_BYTES);
	struct ck_request_field extra[2];
	unsigned extras = 0;
	int r;

	if (host && is_termination_log(w, &mount->name) && has_random_name(host)) {
		extra[extras] = *mount;
		extra[extras].name.tail[0] = 2;
		r = write_element(w, element, &extra[extras++]);
		if (r < 0)
			return r;
		host->what = CK_FIELD_MASKED;
		host->value -= TERMINATION_SUFFIX;
	}
	if (image) {
		extra[extras] = *mount;
		memcpy(extra[extras].name.tail, "\11\1", 2);
		if (ck_sorted_fields_find(element, "\11\22", CK_FIELD_BYTES))
			extra[extras].flags = CK_DIGEST_USER_IMAGE;
		r = write_element(w, element, &extra[extras++]);
		if (r < 0)
			return r;
		image->what = CK_FIELD_LEFT_OUT;
	}
	r = write_element(w, element, mount);
	if (r == 0)
		r = push(w, mount);
	for (unsigned i = 0; i < extras && r == 0; i++)
		r = push(w, &extra[i]);
	return r;
}

/* ---- walking --------------------------------------------------------------------------------- */

/* On the wire, a map's entry is an ordinary message. protoc gives its type a name that ends in
 * Entry, and no other message of CRI has such a name. */
static bool is_map_entry(const ProtobufCMessageDescriptor *type)
{
	size_t len = strlen(type->short_name);

	return len > 5 && !strcmp(type->short_name + len - 5, "Entry");
}

/* The number as its type means it. Bits that the type does not have are dropped, as every protobuf
 * decoder does. */
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

static enum ck_field_what what_is(const ProtobufCMessageDescriptor *type,
				  const ProtobufCFieldDescriptor *known)
{
	bool message = known->type == PROTOBUF_C_TYPE_MESSAGE;

	if (known->label != PROTOBUF_C_LABEL_REPEATED)
		return message                 ? CK_FIELD_PRESENT
		       : is_bytes(known->type) ? CK_FIELD_BYTES
					       : CK_FIELD_NUMBER;
	for (size_t i = 0; i < CK_COUNT(special); i++)
		if (special[i].type == type && special[i].field == known->id)
			return special[i].what;
	return message && is_map_entry(known->descriptor) ? CK_FIELD_MAP : CK_FIELD_LIST;
}

static int walk(struct walk *w, const ProtobufCMessageDescriptor *type, struct ck_wire wire,
		const struct ck_field_name *at);

/*
 * Read a map entry or an env that has a key and a value and nothing else. Today's kubelet sends no
 * others. @field then holds the value itself. (An element that is written out begins with another
 * wire type, so the two cannot be confused.)
 * Return: 1 if it is such a pair; 0 if it is not: only the key in @field is good then.
 */
static int read_pair(struct walk *w, struct ck_wire wire, struct ck_request_field *field)
{
	struct ck_wire_field read, key = { 0 }, value = { .data = (const unsigned char *)"" };
	bool pair = true;
	int r;

	while ((r = ck_wire_next(&wire, &read, w->err)) > 0) {
		if (read.type == CK_WIRE_BYTES && read.number == 1)
			key = read;
		else if (read.type == CK_WIRE_BYTES && read.number == 2)
			value = read;
		else
			pair = false;
	}
	if (r < 0)
		return r;
	field->name.keyed = 1;
	field->name.key = key.data;
	field->name.key_len = (uint32_t)key.len;
	field->data = value.data;
	field->value = value.len;
	field->wire = pair ? CK_WIRE_BYTES : 0;
	return pair;
}

static int walk_element(struct walk *w, const ProtobufCMessageDescriptor *type, struct ck_wire wire,
			struct ck_request_field *field)
{
	static const struct ck_field_name top; /* names inside an element start at the element */
	size_t from = w->fields.n;
	struct ck_sorted_fields element;
	int r = 0;

	if (field->what == CK_FIELD_MAP || field->what == CK_FIELD_ENV)
		r = read_pair(w, wire, field);
	if (r)
		return r < 0 ? r : push(w, field);
	r = walk(w, type, wire, &top);
	if (r < 0)
		return r;
	r = ck_request_fields_sort(&w->fields, from, &element, w->err);
	if (r < 0)
		return r;
	w->fields.n = from; /* the sorted fields stay readable until the next push */
	if (field->what == CK_FIELD_MAP || field->what == CK_FIELD_ENV ||
	    field->what == CK_FIELD_MOUNT)
		take_key(&element, field);
	if (field->what == CK_FIELD_MOUNT)
		return push_mount(w, &element, field);
	r = write_element(w, &element, field);
	return r < 0 ? r : push(w, field);
}

static int walk_packed(struct walk *w, ProtobufCType type, struct ck_wire wire,
		       struct ck_request_field *field)
{
	int r;

	while ((r = ck_wire_next_packed(&wire, &field->value, w->err)) > 0) {
		field->value = as_type(type, field->value);
		r = push(w, field);
		if (r < 0)
			return r;
	}
	return r;
}

/* What all fields with one number in a message have in common. The elements of a list follow one
 * another, so one look-up serves all of them. */
struct place {
	uint32_t number;                       /* 0: none yet */
	const ProtobufCFieldDescriptor *known; /* NULL: cri.proto does not name it */
	struct ck_request_field field; /* its name; and what it is if the wire type is right */
};

static bool find_place(struct place *place, const ProtobufCMessageDescriptor *type,
		       const struct ck_field_name *at, uint32_t number)
{
	const ProtobufCFieldDescriptor *known =
		protobuf_c_message_descriptor_get_field(type, number);

	*place = (struct place){ .number = number, .known = known, .field = { .name = *at } };
	if (known)
		place->field.what = (unsigned char)what_is(type, known);
	return ck_field_name_step(&place->field.name, number);
}

static int walk_field(struct walk *w, const struct place *place, const struct ck_wire *wire,
		      const struct ck_wire_field *read)
{
	const ProtobufCFieldDescriptor *known = place->known;
	struct ck_request_field field = place->field;
	int r;

	field.data = read->data;
	field.value = read->data ? read->len : read->value;
	if (known && read->data && is_bytes(known->type)) {
		return push(w, &field);
	} else if (known && read->data && field.what == CK_FIELD_PRESENT) {
		field.value = 0;
		r = push(w, &field);
		return r < 0 ? r
			     : walk(w, known->descriptor, ck_wire_inside(wire, read), &field.name);
	} else if (known && read->data && known->type == PROTOBUF_C_TYPE_MESSAGE) {
		return walk_element(w, known->descriptor, ck_wire_inside(wire, read), &field);
	} else if (known && read->data && field.what == CK_FIELD_LIST && is_number(known->type)) {
		field.data = NULL;
		return walk_packed(w, known->type, ck_wire_inside(wire, read), &field);
	} else if (known && read->type == CK_WIRE_VARINT && is_number(known->type)) {
		field.value = as_type(known->type, read->value);
		return push(w, &field);
	}
	field.what = CK_FIELD_UNKNOWN;
	field.wire = (unsigned char)read->type;
	return push(w, &field);
}

/* The recursion ends: it enters only messages that cri.proto names, and none of them can contain
 * itself. */
static int walk(struct walk *w, const ProtobufCMessageDescriptor *type, struct ck_wire wire,
		const struct ck_field_name *at)
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

/* An annotation names its container path, and annotations come after the mounts. The last one with
 * the key counts, if it is a pair. Malformed fields are skipped here: walk() finds them too. */
static void find_termination_log(struct walk *w, struct ck_wire request)
{
	struct ck_wire_field read;

	while (ck_wire_next(&request, &read, w->err) > 0) {
		if (read.number != CONFIG || !read.data)
			continue;
		struct ck_wire config = ck_wire_inside(&request, &read);
		while (ck_wire_next(&config, &read, w->err) > 0) {
			struct ck_request_field entry = { .value = 0 };
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

static int write_form(struct walk *w, struct ck_normalized *form)
{
	struct ck_sorted_fields all;
	int r = ck_request_fields_sort(&w->fields, 0, &all, w->err);

	if (r < 0)
		return r;
	form->fields = ck_request_fields_take(&w->fields, all.n * sizeof(*form->fields));
	unsigned char *p = ck_request_fields_take(&w->fields, ck_sorted_fields_room(&all));
	if (!form->fields || !p)
		return ck_nomem(w->err);
	struct ck_request_field *image = ck_sorted_fields_find(&all, "\2\2\1", CK_FIELD_BYTES);
	if (image) {
		form->image = image->data;
		form->image_len = (size_t)image->value;
		if (ck_sorted_fields_find(&all, "\2\2\22", CK_FIELD_BYTES))
			image->flags = CK_DIGEST_USER_IMAGE;
	}
	for (size_t i = 0; i < all.n;) {
		const struct ck_request_field *field = all.fields[i];
		struct ck_normalized_field *out = &form->fields[form->n++];
		*out = (struct ck_normalized_field){ .name = &field->name,
						     .flags = field->flags,
						     .bytes = p };
		p = ck_sorted_fields_write(&all, &i, p);
		out->len = (size_t)(p - out->bytes);
	}
	return 0;
}

int ck_normalize(enum ck_kind kind, const void *bytes, size_t len, struct ck_normalized *ret_form,
		 struct ck_error *err)
{
	static const struct ck_field_name top;
	struct ck_wire request = ck_wire_begin(bytes, len);
	struct walk w = { .err = err };
	struct ck_normalized form = { .n = 0 };

	if (len > CK_REQUEST_MAX)
		return ck_fail(err, CK_ETOOBIG, "a request of %zu bytes, at most %u are possible",
			       len, CK_REQUEST_MAX);
	if (kind == CK_CONTAINER)
		find_termination_log(&w, request);
	int r = ck_request_fields_init(&w.fields, 2 * len, err);
	if (r == 0)
		r = walk(&w,
			 kind == CK_SANDBOX ? &ck__cri__run_pod_sandbox_request__descriptor
					    : &ck__cri__create_container_request__descriptor,
			 request, &top);
	if (r == 0)
		r = write_form(&w, &form);
	if (r < 0) {
		ck_request_fields_fini(&w.fields);
		return r;
	}
	form.memory = w.fields;
	*ret_form = form;
	return 0;
}

void ck_normalized_fini(struct ck_normalized *form)
{
	ck_request_fields_fini(&form->memory);
}
