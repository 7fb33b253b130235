/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/wire.h"
#include "tests/unit/proto-text.h"
#include "tests/unit/wire-build.h"

/* ---- reading --------------------------------------------------------------------------------- */

static void bad(const char *what, const char *at)
{
	fprintf(stderr, "proto text: %s at '%.40s'\n", what, at);
	abort();
}

static const char *skip(const char *s)
{
	while (isspace((unsigned char)*s) || *s == ',' || *s == ';')
		s++;
	return s;
}

static const char *read_word(const char *s, char *word, size_t size)
{
	size_t n = 0;
	while (isalnum((unsigned char)*s) || *s == '_' || *s == '-') {
		if (n + 1 == size)
			bad("a long word", s);
		word[n++] = *s++;
	}
	word[n] = 0;
	if (!n)
		bad("no word", s);
	return s;
}

/* in either quotes; \n, \\, \', \", \0 and \xNN */
static const char *read_string(const char *s, struct ck_bytes *out)
{
	char quote = *s++;
	while (*s != quote) {
		char c = *s++;
		if (!c)
			bad("no end of a string", "");
		if (c == '\\') {
			c = *s++;
			if (c == 'x') {
				char hex[3] = { s[0], s[1], 0 };
				c = (char)strtoul(hex, NULL, 16);
				s += 2;
			} else {
				c = c == 'n' ? '\n' : c == '0' ? '\0' : c;
			}
		}
		must(ck_bytes_add(out, &c, 1));
	}
	return s + 1;
}

static uint64_t number_of(const ProtobufCFieldDescriptor *field, const char *word)
{
	if (field && field->type == PROTOBUF_C_TYPE_BOOL)
		return !strcmp(word, "true") || !strcmp(word, "1");
	if (field && field->type == PROTOBUF_C_TYPE_ENUM && isalpha((unsigned char)*word)) {
		const ProtobufCEnumValue *value =
			protobuf_c_enum_descriptor_get_value_by_name(field->descriptor, word);
		if (!value)
			bad("no such enumerator", word);
		return (uint64_t)value->value;
	}
	return *word == '-' ? (uint64_t)strtoll(word, NULL, 10) : strtoull(word, NULL, 10);
}

static const char *read_message(const ProtobufCMessageDescriptor *type, const char *s,
				struct ck_bytes *out)
{
	for (s = skip(s); *s && *s != '}'; s = skip(s)) {
		char word[64];
		s = skip(read_word(s, word, sizeof(word)));
		bool numbered = isdigit((unsigned char)*word);
		const ProtobufCFieldDescriptor *field =
			numbered ? NULL
				 : protobuf_c_message_descriptor_get_field_by_name(type, word);
		if (!numbered && !field)
			bad("no such field", word);
		uint32_t number = field ? field->id : (uint32_t)strtoul(word, NULL, 10);
		struct ck_bytes inner = { 0 };
		if (*s == ':')
			s = skip(s + 1);
		if (*s == '{') {
			if (!field || field->type != PROTOBUF_C_TYPE_MESSAGE)
				bad("no message", s);
			s = read_message(field->descriptor, s + 1, &inner);
			if (*s++ != '}')
				bad("no end of a message", s - 1);
			put(out, number, &inner);
		} else if (*s == '\'' || *s == '"') {
			s = read_string(s, &inner);
			put(out, number, &inner);
		} else {
			s = read_word(s, word, sizeof(word));
			put_number(out, number, number_of(field, word));
		}
	}
	return s;
}

void text_proto(const ProtobufCMessageDescriptor *type, const char *text, struct ck_bytes *out)
{
	const char *end = read_message(type, text, out);
	if (*end)
		bad("more than a message", end);
}

/* ---- writing --------------------------------------------------------------------------------- */

static void write_string(struct ck_bytes *out, const unsigned char *p, size_t len)
{
	must(ck_bytes_add_text(out, "'"));
	for (size_t i = 0; i < len; i++) {
		char text[5];
		snprintf(text, sizeof(text),
			 p[i] < ' ' || p[i] == '\'' || p[i] == '\\' ? "\\x%02x" : "%c", p[i]);
		must(ck_bytes_add_text(out, text));
	}
	must(ck_bytes_add_text(out, "'"));
}

static void write_number(struct ck_bytes *out, const ProtobufCFieldDescriptor *field,
			 uint64_t value)
{
	char text[64];
	const ProtobufCEnumValue *named = NULL;
	if (field && field->type == PROTOBUF_C_TYPE_ENUM)
		named = protobuf_c_enum_descriptor_get_value(field->descriptor, (int)value);
	if (named)
		snprintf(text, sizeof(text), "%s", named->name);
	else if (field && field->type == PROTOBUF_C_TYPE_BOOL)
		snprintf(text, sizeof(text), "%s", value ? "true" : "false");
	else
		snprintf(text, sizeof(text), "%lld", (long long)value);
	must(ck_bytes_add_text(out, text));
}

/* false: malformed */
static bool write_message(const ProtobufCMessageDescriptor *type, struct ck_wire wire,
			  struct ck_bytes *out)
{
	struct ck_wire_field f;
	int r;
	for (bool first = true; (r = ck_wire_next(&wire, &f, NULL)) > 0; first = false) {
		const ProtobufCFieldDescriptor *field =
			protobuf_c_message_descriptor_get_field(type, f.number);
		char name[64];
		snprintf(name, sizeof(name), "%u", f.number);
		if (!first)
			must(ck_bytes_add_text(out, " "));
		must(ck_bytes_add_text(out, field ? field->name : name));
		bool message =
			field && field->type == PROTOBUF_C_TYPE_MESSAGE && f.type == CK_WIRE_BYTES;
		if (message) {
			must(ck_bytes_add_text(out, "{"));
			if (!write_message(field->descriptor, ck_wire_inside(&wire, &f), out))
				return false;
			must(ck_bytes_add_text(out, "}"));
			continue;
		}
		must(ck_bytes_add_text(out, ":"));
		if (f.type != CK_WIRE_BYTES) {
			write_number(out, field, f.value);
		} else if (field && field->type != PROTOBUF_C_TYPE_STRING &&
			   field->type != PROTOBUF_C_TYPE_BYTES) { /* packed */
			struct ck_wire packed = ck_wire_inside(&wire, &f);
			uint64_t value;
			for (bool begin = true;
			     (r = ck_wire_next_packed(&packed, &value, NULL)) > 0; begin = false) {
				must(ck_bytes_add_text(out, begin ? "" : ","));
				write_number(out, field, value);
			}
		} else {
			write_string(out, f.data, f.len);
		}
		if (r < 0)
			return false;
	}
	return r == 0;
}

char *proto_text(const ProtobufCMessageDescriptor *type, const void *bytes, size_t len)
{
	struct ck_bytes out = { 0 };
	if (!write_message(type, ck_wire_begin(bytes, len), &out)) {
		ck_bytes_free(&out);
		must(ck_bytes_add_text(&out, "(malformed)"));
	}
	must(ck_bytes_add(&out, "", 1));
	return (char *)out.p;
}
