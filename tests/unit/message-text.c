/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/message-text.h"

static void print_message(FILE *f, const char *path, const ProtobufCMessage *message);

static const char *joined(char *buf, size_t size, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static const char *joined(char *buf, size_t size, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(buf, size, fmt, ap);
	va_end(ap);
	return buf;
}

/* @value: where one value of @field is */
static void print_value(FILE *f, const char *path, const ProtobufCFieldDescriptor *field,
			const void *value)
{
	const char *text;
	switch (field->type) {
	case PROTOBUF_C_TYPE_STRING:
		text = *(char *const *)value;
		fprintf(f, "%s: %s\n", path, text ? text : "");
		break;
	case PROTOBUF_C_TYPE_MESSAGE:
		print_message(f, path, *(ProtobufCMessage *const *)value);
		break;
	case PROTOBUF_C_TYPE_INT64:
		fprintf(f, "%s: %" PRIi64 "\n", path, *(const int64_t *)value);
		break;
	case PROTOBUF_C_TYPE_UINT64:
		fprintf(f, "%s: %" PRIu64 "\n", path, *(const uint64_t *)value);
		break;
	case PROTOBUF_C_TYPE_UINT32:
		fprintf(f, "%s: %" PRIu32 "\n", path, *(const uint32_t *)value);
		break;
	case PROTOBUF_C_TYPE_BOOL:
		fprintf(f, "%s: %s\n", path, *(const protobuf_c_boolean *)value ? "true" : "false");
		break;
	case PROTOBUF_C_TYPE_INT32:
	case PROTOBUF_C_TYPE_ENUM:
		fprintf(f, "%s: %" PRIi32 "\n", path, *(const int32_t *)value);
		break;
	default:
		abort();
	}
}

static size_t size_of(const ProtobufCFieldDescriptor *field)
{
	switch (field->type) {
	case PROTOBUF_C_TYPE_STRING:
	case PROTOBUF_C_TYPE_MESSAGE:
		return sizeof(void *);
	case PROTOBUF_C_TYPE_INT64:
	case PROTOBUF_C_TYPE_UINT64:
		return 8;
	case PROTOBUF_C_TYPE_BOOL:
		return sizeof(protobuf_c_boolean);
	default:
		return 4;
	}
}

static bool is_map(const ProtobufCFieldDescriptor *field)
{
	if (field->type != PROTOBUF_C_TYPE_MESSAGE)
		return false;
	const ProtobufCMessageDescriptor *entry = field->descriptor;
	size_t len = strlen(entry->short_name);
	return len > 5 && !strcmp(entry->short_name + len - 5, "Entry");
}

/* key at 1, value at 2 */
static void print_entry(FILE *f, const char *path, const ProtobufCMessage *entry)
{
	const ProtobufCFieldDescriptor *fields = entry->descriptor->fields;
	const void *at = (const char *)entry + fields[0].offset;
	const char *key = *(char *const *)at;
	char name[512];
	print_value(f, joined(name, sizeof(name), "%s{%s}", path, key ? key : ""), &fields[1],
		    (const char *)entry + fields[1].offset);
}

static void print_message(FILE *f, const char *path, const ProtobufCMessage *message)
{
	long before = ftell(f);
	char name[512];
	if (!message) /* the value of a map's entry that is not there */
		return;
	if (message->n_unknown_fields) {
		fprintf(stderr, "%s has unknown fields\n", path);
		abort();
	}
	for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
		const ProtobufCFieldDescriptor *field = &message->descriptor->fields[i];
		const void *value = (const char *)message + field->offset;
		const void *quantifier = (const char *)message + field->quantifier_offset;
		joined(name, sizeof(name), "%s%s%s", path, *path ? "." : "", field->name);
		if (field->label == PROTOBUF_C_LABEL_REPEATED) {
			for (size_t n = 0; n < *(const size_t *)quantifier; n++) {
				const void *item = *(const char *const *)value + n * size_of(field);
				char indexed[512 + 16];
				if (is_map(field))
					print_entry(f, name, *(ProtobufCMessage *const *)item);
				else
					print_value(f,
						    joined(indexed, sizeof(indexed), "%s[%zu]",
							   name, n),
						    field, item);
			}
		} else if (size_of(field) == sizeof(void *) &&
			   (field->type == PROTOBUF_C_TYPE_STRING ||
			    field->type == PROTOBUF_C_TYPE_MESSAGE)) {
			if (*(const void *const *)value &&
			    *(const void *const *)value != field->default_value)
				print_value(f, name, field, value);
		} else if (*(const protobuf_c_boolean *)quantifier) {
			print_value(f, name, field, value);
		}
	}
	if (ftell(f) == before && *path)
		fprintf(f, "%s: {}\n", path);
}

char *message_text(const ProtobufCMessageDescriptor *descriptor, const void *bytes, size_t len)
{
	char *text = NULL;
	size_t size = 0;
	ProtobufCMessage *message = protobuf_c_message_unpack(descriptor, NULL, len, bytes);
	FILE *f = open_memstream(&text, &size);
	if (!message || !f)
		abort();
	print_message(f, "", message);
	fclose(f);
	protobuf_c_message_free_unpacked(message, NULL);
	return text;
}

bool has_line(const char *text, const char *line)
{
	size_t len = strlen(line);
	for (const char *at = text; (at = strstr(at, line)); at++)
		if ((at == text || at[-1] == '\n') && at[len] == '\n')
			return true;
	return false;
}
