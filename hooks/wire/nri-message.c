/* SPDX-License-Identifier: Apache-2.0 */
/*
 * protobuf-c's descriptors know the names, types and places of all fields; nothing here names one.
 * A struct ck_nri_message is made for each message that is asked for, not for each that is there.
 */
#include <stdio.h>

#include "hooks/wire/nri-message.h"
#include "hooks/wire/nri.pb-c.h"
#include "src/base/arena.h"
#include "src/base/limits.h"
#include "src/base/utf8.h"

#define REPLACEMENT "\xEF\xBF\xBD" /* U+FFFD */

/* a whole message; everything is in its arena */
struct tree {
	struct ck_arena arena;
	int r; /* the first failure, and its error */
	struct ck_error err;
	struct ck_bytes bytes; /* that were borrowed last */
};

/* one field of a message */
struct part {
	struct ck_nri_message **items; /* of messages: those that were asked for; NULL: none was */
	size_t room; /* of a list that is written: how many fit into its array */
	size_t read; /* how many values were asked for, from the first on */
};

struct ck_nri_message {
	struct tree *tree;
	ProtobufCMessage *base;
	struct part parts[]; /* one for each field of base->descriptor */
};

typedef const ProtobufCMessageDescriptor type_t;
typedef const ProtobufCFieldDescriptor field_t;

static bool is_list(field_t *field)
{
	return field->label == PROTOBUF_C_LABEL_REPEATED;
}

static bool is_message(field_t *field)
{
	return field->type == PROTOBUF_C_TYPE_MESSAGE;
}

static bool is_text(field_t *field)
{
	return field->type == PROTOBUF_C_TYPE_STRING;
}

/* a message around one value, which tells 0 from nothing */
static bool is_wrapper(field_t *field)
{
	return is_message(field) && !is_list(field) &&
	       !strncmp(((type_t *)field->descriptor)->short_name, "Optional", 8);
}

static void *where(const struct ck_nri_message *message, field_t *field)
{
	return (char *)message->base + field->offset;
}

static struct part *part_of(struct ck_nri_message *message, field_t *field)
{
	return &message->parts[field - message->base->descriptor->fields];
}

/* ---- the whole ------------------------------------------------------------------------------- */

static void *no_memory(struct tree *tree)
{
	if (tree->r == 0)
		tree->r = ck_arena_fail(&tree->arena, &tree->err);
	return NULL;
}

static struct ck_nri_message *message_new(struct tree *tree, ProtobufCMessage *base)
{
	struct ck_nri_message *message =
		ck_arena_alloc(&tree->arena, sizeof(*message) + base->descriptor->n_fields *
									sizeof(*message->parts));
	if (!message)
		return no_memory(tree);
	message->tree = tree;
	message->base = base;
	return message;
}

int ck_message_read(enum ck_nri_type type, const void *bytes, size_t len,
		    struct ck_nri_message **ret_message, struct ck_error *err)
{
	static type_t *const types[] = {
		[CK_NRI_POD_SANDBOX] = &ck__nri__pod_sandbox__descriptor,
		[CK_NRI_CONTAINER] = &ck__nri__container__descriptor,
		[CK_NRI_RESOURCES] = &ck__nri__linux_resources__descriptor,
		[CK_NRI_ADJUSTMENT] = &ck__nri__container_adjustment__descriptor,
		[CK_NRI_OWNERS] = &ck__nri__owning_plugins__descriptor,
	};
	ProtobufCMessage *base;
	if ((unsigned)type >= CK_COUNT(types) || !types[type])
		return ck_fail(err, CK_EINVAL, "type is not one of its values");
	struct tree *tree = CK_NEW(struct tree);
	if (!tree)
		return ck_nomem(err);
	ck_arena_init(&tree->arena, CK_NRI_MERGE_MAX);
	int r = ck_unpack(&tree->arena, types[type], bytes, len, &base, err);
	*ret_message = r < 0 ? NULL : message_new(tree, base);
	if (r == 0 && !*ret_message)
		r = ck_nomem(err);
	if (r < 0) {
		ck_arena_fini(&tree->arena);
		free(tree);
	}
	return r;
}

int ck_message_new(enum ck_nri_type type, struct ck_nri_message **ret_message, struct ck_error *err)
{
	return ck_message_read(type, "", 0, ret_message, err);
}

void ck_message_free(struct ck_nri_message *message)
{
	if (!message)
		return;
	struct tree *tree = message->tree;
	ck_bytes_free(&tree->bytes);
	ck_arena_fini(&tree->arena); /* @message as well */
	free(tree);
}

void ck_message_fail(struct ck_nri_message *message, const struct ck_error *err)
{
	if (!message || message->tree->r < 0)
		return;
	message->tree->r = -err->code;
	message->tree->err = *err;
}

int ck_message_failed(const struct ck_nri_message *message, struct ck_error *err)
{
	if (message->tree->r < 0 && err)
		*err = message->tree->err;
	return message->tree->r;
}

int ck_message_bytes(const struct ck_nri_message *message, struct ck_bytes *out,
		     struct ck_error *err)
{
	int r = ck_message_failed(message, err);
	return r < 0 ? r : ck_pack(message->base, out, err);
}

int ck_message_borrow(struct ck_nri_message *message, const void **ret_bytes, size_t *ret_len,
		      struct ck_error *err)
{
	struct ck_bytes *bytes = &message->tree->bytes;
	bytes->len = 0;
	int r = ck_message_bytes(message, bytes, err);
	*ret_bytes = bytes->p;
	*ret_len = bytes->len;
	return r;
}

/* ---- paths ----------------------------------------------------------------------------------- */

/* a field, and the message that holds it; NULL: it is not there */
struct place {
	struct ck_nri_message *message;
	field_t *field; /* NULL: the path is wrong */
	bool wrapped;   /* the message is an Optional..., so it says whether the value is set */
};

static struct place wrong(struct ck_nri_message *message, const char *path, const char *what)
{
	struct ck_error err;
	ck_fail(&err, CK_EINVAL, "%s: %s: %s", message->base->descriptor->short_name, path, what);
	ck_message_fail(message, &err);
	return (struct place){ .message = NULL };
}

/* the message at @i of @field, which is there */
static struct ck_nri_message *nth(struct ck_nri_message *message, field_t *field, size_t i)
{
	struct tree *tree = message->tree;
	struct part *part = part_of(message, field);
	void *at = where(message, field);
	struct ck_list one = { 1, at };
	struct ck_list list =
		is_list(field) ? ck_list_get(message->base, field->quantifier_offset) : one;
	if (!part->items &&
	    !(part->items = ck_arena_alloc(&tree->arena, list.n * sizeof(*part->items))))
		return no_memory(tree);
	if (!part->items[i])
		part->items[i] = message_new(tree, list.items[i]);
	return part->items[i];
}

/* the message at @field, which is no list; @make: it is made. NULL: it is not there */
static struct ck_nri_message *single(struct ck_nri_message *message, field_t *field, bool make)
{
	ProtobufCMessage **at = where(message, field);
	if (!*at && make && !(*at = ck_arena_new(&message->tree->arena, field->descriptor)))
		return no_memory(message->tree);
	return *at ? nth(message, field, 0) : NULL;
}

static field_t *field_named(type_t *type, const char *name, size_t len)
{
	char copy[64];
	if (len >= sizeof(copy))
		return NULL;
	memcpy(copy, name, len);
	copy[len] = '\0';
	return protobuf_c_message_descriptor_get_field_by_name(type, copy);
}

/* The path is followed to its end also where nothing is set, so that a wrong one is found. */
static struct place find(struct ck_nri_message *message, const char *path, bool make)
{
	if (!message)
		return (struct place){ .message = NULL };
	if (!path)
		return wrong(message, "NULL", "it is no path");
	struct ck_nri_message *at = message;
	type_t *type = message->base->descriptor;
	for (const char *name = path;; name++) {
		size_t len = strcspn(name, ".");
		field_t *field = field_named(type, name, len);
		if (!field)
			return wrong(message, path, "NRI has no such field");
		name += len;
		if (!*name)
			return (struct place){ .message = at, .field = field };
		if (!is_message(field) || is_list(field))
			return wrong(message, path, "there is nothing inside");
		at = at ? single(at, field, make) : NULL;
		type = field->descriptor;
	}
}

/* find_value - the same; and if there is a wrapper, the value in it */
static struct place find_value(struct ck_nri_message *message, const char *path, bool make)
{
	struct place place = find(message, path, make);
	if (!place.field || !is_wrapper(place.field))
		return place;
	if (place.message)
		place.message = single(place.message, place.field, make);
	place.field = ((type_t *)place.field->descriptor)->fields;
	place.wrapped = true;
	return place;
}

/* ---- writing --------------------------------------------------------------------------------- */

static size_t size_of(field_t *field)
{
	switch (field->type) {
	case PROTOBUF_C_TYPE_STRING:
	case PROTOBUF_C_TYPE_MESSAGE:
		return sizeof(void *);
	case PROTOBUF_C_TYPE_INT64:
	case PROTOBUF_C_TYPE_UINT64:
		return sizeof(uint64_t);
	default:
		return sizeof(uint32_t); /* an enumeration and a truth value too */
	}
}

/* add @item to a list, whose array doubles when it is full */
static bool append(struct place place, const void *item)
{
	struct ck_nri_message *message = place.message;
	struct part *part = part_of(message, place.field);
	struct ck_list list = ck_list_get(message->base, place.field->quantifier_offset);
	size_t size = size_of(place.field);
	if (list.n >= part->room) {
		size_t room = list.n < 4 ? 4 : 2 * list.n;
		void *items = ck_arena_alloc(&message->tree->arena, room * size);
		if (!items)
			return no_memory(message->tree);
		if (list.n)
			memcpy(items, list.items, list.n * size);
		list.items = items;
		part->room = room;
	}
	memcpy((char *)list.items + list.n * size, item, size);
	list.n++;
	part->items = NULL; /* made anew, with room for the new one */
	ck_list_set(message->base, place.field->quantifier_offset, list);
	return true;
}

struct ck_nri_message *ck_message_item(struct ck_nri_message *message, const char *path)
{
	if (!message || message->tree->r < 0)
		return NULL;
	struct tree *tree = message->tree;
	struct place place = find(message, path, true);
	if (!place.field || !place.message)
		return NULL;
	if (!is_message(place.field)) {
		wrong(message, path, "it is no message");
		return NULL;
	}
	if (!is_list(place.field))
		return single(place.message, place.field, true);
	ProtobufCMessage *item = ck_arena_new(&tree->arena, place.field->descriptor);
	if (!item)
		return no_memory(tree);
	return append(place, &item) ? message_new(tree, item) : NULL;
}

static char *repaired(struct tree *tree, const unsigned char *p, size_t len)
{
	const size_t more = sizeof(REPLACEMENT) - 1;
	size_t bad = 0, n;
	uint32_t c;
	for (size_t i = 0; i < len; i += n ? n : 1) {
		n = ck_utf8_next_of(p + i, len - i, &c);
		bad += !n || !c;
	}
	char *text = ck_arena_alloc(&tree->arena, len + bad * (more - 1) + 1), *to = text;
	if (!text)
		return no_memory(tree);
	for (size_t i = 0; i < len; i += n ? n : 1) {
		n = ck_utf8_next_of(p + i, len - i, &c);
		bool good = n && c;
		memcpy(to, good ? (const char *)p + i : REPLACEMENT, good ? n : more);
		to += good ? n : more;
	}
	return text;
}

void ck_message_text(struct ck_nri_message *message, const char *path, const void *text, size_t len)
{
	if (!message || message->tree->r < 0)
		return;
	struct place place = find_value(message, path, true);
	if (!place.field || !place.message)
		return;
	if (!is_text(place.field)) {
		wrong(message, path, "it is no text");
		return;
	}
	char *copy = repaired(message->tree, text, len);
	if (!copy)
		return;
	if (is_list(place.field))
		append(place, &copy);
	else
		*(char **)where(place.message, place.field) = len ? copy : NULL;
}

static bool in_range(field_t *field, int64_t number)
{
	switch (field->type) {
	case PROTOBUF_C_TYPE_INT64:
	case PROTOBUF_C_TYPE_UINT64:
		return true;
	case PROTOBUF_C_TYPE_UINT32:
		return number >= 0 && number <= UINT32_MAX;
	case PROTOBUF_C_TYPE_BOOL:
		return number == 0 || number == 1;
	default:
		return number >= INT32_MIN && number <= INT32_MAX;
	}
}

/* @strict: out of range is wrong. A number of 4 bytes has its low half in @number, on every
 * machine. */
static void put_number(struct ck_nri_message *message, const char *path, int64_t number,
		       bool strict)
{
	if (!message || message->tree->r < 0)
		return;
	struct place place = find_value(message, path, true);
	if (!place.field || !place.message)
		return;
	if (is_message(place.field) || is_text(place.field)) {
		wrong(message, path, "it is no number");
		return;
	}
	if (!in_range(place.field, number)) {
		if (strict)
			wrong(message, path, "the number is out of range");
		return;
	}
	uint32_t half = (uint32_t)number;
	size_t size = size_of(place.field);
	const void *from = size == sizeof(half) ? (const void *)&half : &number;
	if (is_list(place.field)) {
		append(place, from);
		return;
	}
	protobuf_c_boolean has = number != 0;
	memcpy(where(place.message, place.field), from, size);
	memcpy((char *)place.message->base + place.field->quantifier_offset, &has, sizeof(has));
}

void ck_message_number(struct ck_nri_message *message, const char *path, int64_t number)
{
	put_number(message, path, number, true);
}

void ck_message_offer(struct ck_nri_message *message, const char *path, int64_t number)
{
	put_number(message, path, number, false);
}

enum ck_takes ck_message_takes(const struct ck_nri_message *message, const char *name,
			       bool *ret_list)
{
	field_t *field = message ? field_named(message->base->descriptor, name, strlen(name))
				 : NULL;
	if (field && is_wrapper(field))
		field = ((type_t *)field->descriptor)->fields;
	*ret_list = field && is_list(field);
	return !field                                ? CK_TAKES_NOTHING
	       : is_message(field)                   ? CK_TAKES_MESSAGE
	       : is_text(field)                      ? CK_TAKES_TEXT
	       : field->type == PROTOBUF_C_TYPE_BOOL ? CK_TAKES_BOOL
						     : CK_TAKES_NUMBER;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* how many there are of a field; of one that is no list, 0 or 1 */
static size_t count(const struct ck_nri_message *message, field_t *field)
{
	protobuf_c_boolean has;
	if (is_list(field))
		return ck_list_get(message->base, field->quantifier_offset).n;
	if (is_message(field) || is_text(field))
		return *(void **)where(message, field) ? 1 : 0;
	memcpy(&has, (const char *)message->base + field->quantifier_offset, sizeof(has));
	return has ? 1 : 0;
}

/* where value @i of a field is, which is read now; NULL: there are not so many */
static const void *value(struct place place, size_t i)
{
	if (i >= count(place.message, place.field))
		return NULL;
	struct part *part = part_of(place.message, place.field);
	part->read += part->read == i;
	const void *at = where(place.message, place.field);
	if (is_list(place.field))
		at = *(const void *const *)at;
	return (const char *)at + i * size_of(place.field);
}

const char *ck_message_get_text(struct ck_nri_message *message, const char *path, size_t i)
{
	struct place place = find_value(message, path, false);
	if (!place.field)
		return NULL;
	if (!is_text(place.field))
		place = wrong(message, path, "it is no text");
	if (!place.message)
		return NULL;
	const void *at = value(place, i);
	if (at)
		return *(const char *const *)at;
	/* "" is left out of an Optional... */
	return place.wrapped && !is_list(place.field) && i == 0 ? "" : NULL;
}

bool ck_message_get_number(struct ck_nri_message *message, const char *path, size_t i,
			   int64_t *ret_number)
{
	struct place place = find_value(message, path, false);
	*ret_number = 0;
	if (!place.field)
		return false;
	if (is_message(place.field) || is_text(place.field))
		place = wrong(message, path, "it is no number");
	if (!place.message)
		return false;
	const void *at = value(place, i);
	if (at && place.field->type == PROTOBUF_C_TYPE_UINT32)
		*ret_number = *(const uint32_t *)at;
	else if (at && size_of(place.field) == sizeof(uint32_t))
		*ret_number = *(const int32_t *)at;
	else if (at)
		*ret_number = *(const int64_t *)at;
	/* 0 is left out, but it is said by the message around it */
	return at || (!i && !is_list(place.field));
}

size_t ck_message_count(struct ck_nri_message *message, const char *path)
{
	struct place place = find(message, path, false);
	if (!place.field)
		return 0;
	if (is_wrapper(place.field) &&
	    is_list(((type_t *)place.field->descriptor)->fields))
		place = find_value(message, path, false);
	return place.message ? count(place.message, place.field) : 0;
}

struct ck_nri_message *ck_message_get_item(struct ck_nri_message *message, const char *path,
					   size_t i)
{
	struct place place = find(message, path, false);
	if (!place.field)
		return NULL;
	if (!is_message(place.field))
		place = wrong(message, path, "it is no message");
	if (!place.message || i >= count(place.message, place.field))
		return NULL;
	return nth(place.message, place.field, i);
}

/* the first value that is there and was not asked for; its path is appended to @path. @wrapped: it
 * goes by the name that is there */
static bool unread(const struct ck_nri_message *message, bool wrapped, char *path, size_t size)
{
	size_t used = strlen(path);
	if (message->base->n_unknown_fields) {
		snprintf(path + used, size - used, "%sfield %u, of a later NRI", used ? "." : "",
			 (unsigned)message->base->unknown_fields->tag);
		return true;
	}
	for (unsigned f = 0; f < message->base->descriptor->n_fields; f++) {
		field_t *field = &message->base->descriptor->fields[f];
		const struct part *part = &message->parts[f];
		size_t n = count(message, field);
		if (part->read >= n)
			continue;
		if (!wrapped)
			snprintf(path + used, size - used, "%s%s", used ? "." : "", field->name);
		if (!is_message(field) || !part->items)
			return true;
		for (size_t i = 0; i < n; i++)
			if (!part->items[i] ||
			    unread(part->items[i], is_wrapper(field), path, size))
				return true;
	}
	path[used] = '\0';
	return false;
}

int ck_message_check(const struct ck_nri_message *message, struct ck_error *err)
{
	char path[256] = "";
	int r = ck_message_failed(message, err);
	if (r == 0 && unread(message, false, path, sizeof(path)))
		r = ck_fail(err, CK_EFAILED, "%s: %s is set, and was not read",
			    message->base->descriptor->short_name, path);
	return r;
}
