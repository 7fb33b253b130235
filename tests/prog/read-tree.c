/* SPDX-License-Identifier: Apache-2.0 */
/*
 * usage: read-tree json|yaml < FILE - read strictly, and print one line "path = value" for each
 * scalar, quoted if it is a string
 *
 * So a test can tell that output is well formed, look for a value, and compare what two forms of it
 * say.
 */
#include <json-c/json.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "src/base/utf8.h"

static char input[1 << 20];
static char path[4096];

static int fail(const char *what)
{
	fprintf(stderr, "read-tree: %s\n", what);
	return 1;
}

/* a step down: the length to cut the path back to */
static size_t enter(const char *name, size_t index)
{
	size_t len = strlen(path);
	if (name)
		snprintf(path + len, sizeof(path) - len, ".%s", name);
	else
		snprintf(path + len, sizeof(path) - len, "[%zu]", index);
	return len;
}

static void print_scalar(const char *value, bool quoted)
{
	printf(quoted ? "%s = \"" : "%s = ", path);
	for (; *value; value++) /* one line per scalar, whatever is in it */
		printf(*value >= 0x20 && *value < 0x7f ? "%c" : "\\x%02x", (unsigned char)*value);
	puts(quoted ? "\"" : "");
}

static void walk_json(struct json_object *node)
{
	size_t len;
	if (json_object_is_type(node, json_type_object)) {
		json_object_object_foreach(node, name, value)
		{
			len = enter(name, 0);
			walk_json(value);
			path[len] = '\0';
		}
	} else if (json_object_is_type(node, json_type_array)) {
		for (size_t i = 0; i < json_object_array_length(node); i++) {
			len = enter(NULL, i);
			walk_json(json_object_array_get_idx(node, i));
			path[len] = '\0';
		}
	} else if (json_object_is_type(node, json_type_string)) {
		print_scalar(json_object_get_string(node), true);
	} else {
		print_scalar(json_object_to_json_string(node), false);
	}
}

/*
 * All but ASCII as \u escapes. Such characters may stand in strings only, where both mean the same.
 * With JSON_TOKENER_STRICT, json-c 0.18 takes nothing but ASCII.
 */
static bool to_ascii(char *ascii, const char *in)
{
	uint32_t c;
	for (size_t n; *in; in += n) {
		n = ck_utf8_next(in, &c);
		if (n == 0)
			return false;
		if (c < 0x80)
			*ascii++ = (char)c;
		else if (c < 0x10000)
			ascii += sprintf(ascii, "\\u%04x", (unsigned)c);
		else
			ascii += sprintf(ascii, "\\u%04x\\u%04x",
					 (unsigned)(0xD800 + ((c - 0x10000) >> 10)),
					 (unsigned)(0xDC00 + ((c - 0x10000) & 0x3FF)));
	}
	*ascii = '\0';
	return true;
}

static int read_json(size_t len)
{
	static char ascii[3 * sizeof(input)];
	if (strlen(input) != len || !to_ascii(ascii, input))
		return fail("invalid UTF-8");
	len = strlen(ascii);
	struct json_tokener *tokener = json_tokener_new();
	json_tokener_set_flags(tokener, JSON_TOKENER_STRICT);
	struct json_object *tree = json_tokener_parse_ex(tokener, ascii, (int)len);
	enum json_tokener_error e = json_tokener_get_error(tokener);
	size_t end = json_tokener_get_parse_end(tokener);
	json_tokener_free(tokener);
	if (e != json_tokener_success)
		return fail(json_tokener_error_desc(e));
	if (strspn(ascii + end, "\n") != len - end)
		return fail("something follows");
	walk_json(tree);
	json_object_put(tree);
	return 0;
}

static void walk_yaml(yaml_document_t *document, yaml_node_t *node)
{
	size_t len;
	switch (node->type) {
	case YAML_MAPPING_NODE:
		for (yaml_node_pair_t *pair = node->data.mapping.pairs.start;
		     pair < node->data.mapping.pairs.top; pair++) {
			len = enter((char *)yaml_document_get_node(document, pair->key)
					    ->data.scalar.value,
				    0);
			walk_yaml(document, yaml_document_get_node(document, pair->value));
			path[len] = '\0';
		}
		return;
	case YAML_SEQUENCE_NODE:
		for (yaml_node_item_t *item = node->data.sequence.items.start;
		     item < node->data.sequence.items.top; item++) {
			len = enter(NULL, (size_t)(item - node->data.sequence.items.start));
			walk_yaml(document, yaml_document_get_node(document, *item));
			path[len] = '\0';
		}
		return;
	default:
		print_scalar((char *)node->data.scalar.value,
			     node->data.scalar.style == YAML_DOUBLE_QUOTED_SCALAR_STYLE);
	}
}

static int read_yaml(size_t len)
{
	yaml_parser_t parser;
	yaml_document_t document;
	yaml_parser_initialize(&parser);
	yaml_parser_set_input_string(&parser, (unsigned char *)input, len);
	if (!yaml_parser_load(&parser, &document))
		return fail(parser.problem);
	yaml_node_t *root = yaml_document_get_root_node(&document);
	if (!root)
		return fail("an empty document");
	walk_yaml(&document, root);
	yaml_document_delete(&document);
	yaml_parser_delete(&parser);
	return 0;
}

int main(int argc, char **argv)
{
	size_t len = fread(input, 1, sizeof(input) - 1, stdin);
	if (argc != 2)
		return fail("json or yaml?");
	return strcmp(argv[1], "json") == 0 ? read_json(len) : read_yaml(len);
}
