/* SPDX-License-Identifier: Apache-2.0 */
/* Trees as JSON and YAML, tables, folded paragraphs. The same on every system. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <yaml.h>

#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/base/utf8.h"
#include "src/cli/output/pager.h"
#include "src/cli/output/print.h"

#define PROSE_WIDTH 80u

/* ---- trees ----------------------------------------------------------------------------------- */

struct json_object *ck_tree_object(void)
{
	return ck_must(json_object_new_object());
}

struct json_object *ck_tree_array(void)
{
	return ck_must(json_object_new_array());
}

void ck_tree_put(struct json_object *object, const char *name, struct json_object *value)
{
	if (json_object_object_add(object, name, value) < 0)
		ck_text_nomem();
}

void ck_tree_add(struct json_object *array, struct json_object *value)
{
	if (json_object_array_add(array, value) < 0)
		ck_text_nomem();
}

struct json_object *ck_tree_text(const char *s)
{
	if (!s)
		return NULL;
	CK_AUTO_FREE char *valid = ck_text_valid(s);
	return ck_must(json_object_new_string(valid));
}

void ck_tree_put_text(struct json_object *object, const char *name, const char *s)
{
	ck_tree_put(object, name, ck_tree_text(s));
}

struct json_object *ck_tree_decimal(double n, int digits)
{
	/* given along, because a double would be printed as 372.12299999999999 */
	CK_AUTO_FREE char *text = ck_text_format("%.*f", digits, n);
	return ck_must(json_object_new_double_s(n, text));
}

struct json_object *ck_tree_seconds(int64_t ns)
{
	return ck_tree_decimal((double)ns / (double)CK_NS_PER_S, 3);
}

void ck_tree_put_int(struct json_object *object, const char *name, int64_t n)
{
	ck_tree_put(object, name, ck_must(json_object_new_int64(n)));
}

void ck_tree_put_known(struct json_object *object, const char *name, int64_t n)
{
	ck_tree_put(object, name, n ? ck_must(json_object_new_int64(n)) : NULL);
}

void ck_tree_put_count(struct json_object *object, const char *name, uint64_t n)
{
	ck_tree_put_int(object, name, n > INT64_MAX ? INT64_MAX : (int64_t)n);
}

void ck_tree_put_bool(struct json_object *object, const char *name, bool b)
{
	ck_tree_put(object, name, ck_must(json_object_new_boolean(b)));
}

void ck_tree_put_seconds(struct json_object *object, const char *name, int64_t ns)
{
	ck_tree_put(object, name, ck_tree_seconds(ns));
}

void ck_tree_put_time(struct json_object *object, const char *name, int64_t seconds)
{
	char text[CK_TEXT_SPAN];
	ck_text_time(seconds, text);
	ck_tree_put_text(object, name, *text ? text : NULL);
}

void ck_tree_put_hex(struct json_object *object, const char *name, const void *bytes, size_t len)
{
	static const char digits[] = "0123456789abcdef";
	const unsigned char *p = bytes;
	CK_AUTO_FREE char *text = ck_must(ck_alloc(2 * len + 1));
	for (size_t i = 0; i < len; i++) {
		text[2 * i] = digits[p[i] >> 4];
		text[2 * i + 1] = digits[p[i] & 15];
	}
	ck_tree_put_text(object, name, text);
}

/* A string as JSON writes it. Characters that could harm a terminal are escaped too. */
static void json_text(FILE *out, const char *s)
{
	static const char special[] = "\"\\\b\f\n\r\t", names[] = "\"\\bfnrt";
	putc('"', out);
	while (*s) {
		uint32_t c;
		size_t n = ck_utf8_next(s, &c);
		const char *found = strchr(special, *s);
		if (CK_NEVER(n == 0)) /* ck_tree_text() lets no bad byte in */
			break;
		if (found)
			fprintf(out, "\\%c", names[found - special]);
		else if (!ck_utf8_unsafe(c))
			fwrite(s, 1, n, out);
		else if (c <= 0xFFFF)
			fprintf(out, "\\u%04x", (unsigned)c);
		else
			fprintf(out, "\\u%04x\\u%04x", 0xD800u + ((c - 0x10000) >> 10),
				0xDC00u + ((c - 0x10000) & 0x3FF));
		s += n;
	}
	putc('"', out);
}

static void json_line(FILE *out, const char *before, int depth)
{
	fprintf(out, "%s\n%*s", before, 2 * depth, "");
}

/* Not by json-c, whose versions differ in spaces and line ends. */
static void json_node(FILE *out, struct json_object *node, int depth)
{
	const char *before = "";
	switch (json_object_get_type(node)) {
	case json_type_string:
		json_text(out, json_object_get_string(node));
		return;
	case json_type_object:
		putc('{', out);
		json_object_object_foreach(node, name, value)
		{
			json_line(out, before, depth + 1);
			json_text(out, name);
			fputs(": ", out);
			json_node(out, value, depth + 1);
			before = ",";
		}
		if (*before)
			json_line(out, "", depth);
		putc('}', out);
		return;
	case json_type_array:
		putc('[', out);
		for (size_t i = 0; i < json_object_array_length(node); i++) {
			json_line(out, before, depth + 1);
			json_node(out, json_object_array_get_idx(node, i), depth + 1);
			before = ",";
		}
		if (*before)
			json_line(out, "", depth);
		putc(']', out);
		return;
	default: /* numbers, true, false, null */
		fputs(ck_must((void *)json_object_to_json_string(node)), out);
	}
}

/* ck_yaml: events emitted from a tree. Once the emitter fails (the stream is full), nothing more is
 * tried */
static bool yaml_emit(yaml_emitter_t *emitter, yaml_event_t *event, int made)
{
	if (!made)
		ck_text_nomem();
	return yaml_emitter_emit(emitter, event);
}

static bool yaml_scalar(yaml_emitter_t *emitter, const char *s, bool quoted)
{
	yaml_event_t event;
	int made = yaml_scalar_event_initialize(
		&event, NULL, NULL, (const yaml_char_t *)s, (int)strlen(s), !quoted, quoted,
		quoted ? YAML_DOUBLE_QUOTED_SCALAR_STYLE : YAML_PLAIN_SCALAR_STYLE);
	return yaml_emit(emitter, &event, made);
}

static bool yaml_node(yaml_emitter_t *emitter, struct json_object *node)
{
	yaml_event_t event;
	int made;
	switch (json_object_get_type(node)) {
	case json_type_string: /* always quoted: a container named "no" or "1e3" stays a string */
		return yaml_scalar(emitter, json_object_get_string(node), true);
	case json_type_object:
		made = yaml_mapping_start_event_initialize(&event, NULL, NULL, 1,
							   YAML_BLOCK_MAPPING_STYLE);
		if (!yaml_emit(emitter, &event, made))
			return false;
		json_object_object_foreach(node, name, value)
		{
			if (!yaml_scalar(emitter, name, false) || !yaml_node(emitter, value))
				return false;
		}
		return yaml_emit(emitter, &event, yaml_mapping_end_event_initialize(&event));
	case json_type_array:
		made = yaml_sequence_start_event_initialize(&event, NULL, NULL, 1,
							    YAML_BLOCK_SEQUENCE_STYLE);
		if (!yaml_emit(emitter, &event, made))
			return false;
		for (size_t i = 0; i < json_object_array_length(node); i++) {
			if (!yaml_node(emitter, json_object_array_get_idx(node, i)))
				return false;
		}
		return yaml_emit(emitter, &event, yaml_sequence_end_event_initialize(&event));
	default: /* numbers, true, false, null are written as in JSON */
		return yaml_scalar(emitter, json_object_to_json_string(node), false);
	}
}

static int yaml_write(void *userdata, unsigned char *bytes, size_t len)
{
	return fwrite(bytes, 1, len, userdata) == len;
}

static void print_yaml(FILE *out, struct json_object *tree)
{
	yaml_emitter_t emitter;
	yaml_event_t event;
	if (!yaml_emitter_initialize(&emitter))
		ck_text_nomem();
	yaml_emitter_set_output(&emitter, yaml_write, out);
	/* escapes all but ASCII: libyaml takes direction overrides for printable */
	yaml_emitter_set_unicode(&emitter, 0);
	yaml_emitter_set_width(&emitter, -1);
	if (yaml_emit(&emitter, &event,
		      yaml_stream_start_event_initialize(&event, YAML_UTF8_ENCODING)) &&
	    yaml_emit(&emitter, &event,
		      yaml_document_start_event_initialize(&event, NULL, NULL, NULL, 1)) &&
	    yaml_node(&emitter, tree) &&
	    yaml_emit(&emitter, &event, yaml_document_end_event_initialize(&event, 1)))
		yaml_emit(&emitter, &event, yaml_stream_end_event_initialize(&event));
	if (emitter.error == YAML_MEMORY_ERROR)
		ck_text_nomem();
	yaml_emitter_delete(&emitter);
}

void ck_tree_print(FILE *out, enum ck_output how, struct json_object *tree)
{
	if (how == CK_OUTPUT_YAML) {
		print_yaml(out, tree);
	} else {
		json_node(out, tree, 0);
		putc('\n', out);
	}
	json_object_put(tree);
}

/* ---- tables ---------------------------------------------------------------------------------- */

struct ck_table {
	const struct ck_column *columns; /* borrowed: static in every command */
	size_t *widths;                  /* of the widest cell; 0: the column is not shown */
	char **cells;                    /* row by row */
	size_t n, cells_n, cells_room;
};

struct ck_table *ck_table_new(const struct ck_column *columns, size_t n)
{
	struct ck_table *table = ck_must(CK_NEW(struct ck_table));
	table->columns = columns;
	table->n = n;
	table->widths = ck_must(ck_alloc(n * sizeof(*table->widths)));
	for (size_t i = 0; i < n; i++)
		table->widths[i] = strlen(columns[i].name);
	return table;
}

void ck_table_cell(struct ck_table *table, const char *s)
{
	if (table->cells_n == table->cells_room) {
		table->cells_room = table->cells_room ? 2 * table->cells_room : 64;
		table->cells = ck_must(
			ck_realloc(table->cells, table->cells_room * sizeof(*table->cells)));
	}
	char *clean = ck_text_clean(s && *s ? s : "-");
	size_t width = ck_text_width(clean), *widest = &table->widths[table->cells_n % table->n];
	if (width > *widest)
		*widest = width;
	table->cells[table->cells_n++] = clean;
}

void ck_table_cellf(struct ck_table *table, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	CK_AUTO_FREE char *s = ck_text_vformat(fmt, ap);
	va_end(ap);
	ck_table_cell(table, s);
}

/* Leave out the least useful columns, then cut the widest of those that may be cut, until the rest
 * fits, as far as that goes. */
static void table_narrow(struct ck_table *table, size_t width)
{
	for (;;) {
		size_t sum = 0, worst = table->n, widest = table->n;
		for (size_t i = 0; i < table->n; i++) {
			const struct ck_column *column = &table->columns[i];
			if (!table->widths[i])
				continue;
			sum += table->widths[i] + (sum ? 1 : 0);
			if (column->useless && (worst == table->n ||
						column->useless > table->columns[worst].useless))
				worst = i;
			if (column->flags & (CK_COLUMN_CUT | CK_COLUMN_FOLD) &&
			    table->widths[i] > strlen(column->name) &&
			    (widest == table->n || table->widths[i] > table->widths[widest]))
				widest = i;
		}
		if (sum <= width)
			return;
		if (worst < table->n)
			table->widths[worst] = 0;
		else if (widest < table->n)
			table->widths[widest]--;
		else
			return;
	}
}

/* How much of @s fits into @width columns, broken at a blank if there is one. @ret_next: where the
 * next line begins; the end of @s, if none does */
static size_t fold_cell(const char *s, size_t width, size_t *ret_shown, const char **ret_next)
{
	size_t len = ck_text_fit(s, width, ret_shown), blank = len;
	if (!len) /* not even one character fits */
		len = strlen(s);
	*ret_next = s + len;
	if (!s[len])
		return len;
	while (blank && s[blank] != ' ')
		blank--;
	if (!blank)
		return len;
	*ret_next = s + blank + 1;
	return blank;
}

static void fold_rest(FILE *out, const char *s, size_t indent, size_t width)
{
	while (*s) {
		size_t shown;
		const char *next;
		int len = (int)fold_cell(s, width, &shown, &next);
		fprintf(out, "%*s%.*s\n", (int)indent, "", len, s);
		s = next;
	}
}

/* @cells: NULL for the names of the columns. No blanks follow the last cell. */
static void table_row(FILE *out, const struct ck_table *table, char *const *cells)
{
	const char *rest = "";
	size_t blanks = 0, indent = 0, rest_at = 0, rest_width = 0;
	for (size_t i = 0; i < table->n; i++) {
		const char *s = cells ? cells[i] : table->columns[i].name;
		size_t width = table->widths[i], shown;
		if (!width)
			continue;
		int len = (int)ck_text_fit(s, width, &shown);
		bool right = table->columns[i].flags & CK_COLUMN_RIGHT;
		if (table->columns[i].flags & CK_COLUMN_FOLD) {
			len = (int)fold_cell(s, width, &shown, &rest);
			rest_at = indent;
			rest_width = width;
		}
		fprintf(out, "%*s%.*s", (int)(blanks + (right ? width - shown : 0)), "", len, s);
		blanks = 1 + (right ? 0 : width - shown);
		indent += width + 1;
	}
	putc('\n', out);
	fold_rest(out, rest, rest_at, rest_width);
}

void ck_table_print(FILE *out, struct ck_table *table, size_t width)
{
	if (width)
		table_narrow(table, width);
	if (table->cells_n)
		table_row(out, table, NULL);
	for (size_t i = 0; i < table->cells_n; i++) {
		if (i % table->n == 0)
			table_row(out, table, &table->cells[i]);
		free(table->cells[i]);
	}
	free(table->cells);
	free(table->widths);
	free(table);
}

size_t ck_print_width(FILE *out)
{
	return ck_pager_columns(out);
}

size_t ck_print_prose_width(void)
{
	size_t width = ck_print_width(stdout);
	return width && width < PROSE_WIDTH ? width : PROSE_WIDTH;
}

/* ---- lines and paragraphs -------------------------------------------------------------------- */

/* @end: what each part but the last ends with, before a blank */
static void fold(FILE *out, const char *text, size_t indent, size_t width, const char *end)
{
	CK_AUTO_FREE char *clean = ck_text_clean(text);
	size_t column = 0;
	char *rest = clean;
	for (char *part; (part = strsep(&rest, *end ? end : " "));) {
		const char *tail = rest ? end : "";
		part += strspn(part, " ");
		size_t w = ck_text_width(part) + strlen(tail);
		if (!*part)
			continue;
		if (column && column + 1 + w > width) {
			putc('\n', out);
			column = 0;
		}
		int blanks = column ? 1 : (int)indent;
		fprintf(out, "%*s%s%s", blanks, "", part, tail);
		column += (size_t)blanks + w;
	}
	putc('\n', out);
}

void ck_print_folded(FILE *out, const char *text, size_t indent, size_t width)
{
	fold(out, text, indent, width, "");
}

static bool has_colours(FILE *out)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
	return ck_pager_columns(out) && !(no && *no) && term && *term && strcmp(term, "dumb") != 0;
}

void ck_print_coloured(FILE *out, enum ck_colour colour, const char *text, size_t indent,
		       size_t width)
{
	bool on = colour && has_colours(out);
	if (on)
		fprintf(out, "\033[%dm", (int)colour);
	ck_print_folded(out, text, indent, width);
	if (on)
		fputs("\033[0m", out);
}

void ck_print_list(FILE *out, const char *text, size_t indent, size_t width)
{
	fold(out, text, indent, width, ",");
}

void ck_print_line(FILE *out, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	CK_AUTO_FREE char *s = ck_text_vformat(fmt, ap), *clean = ck_text_clean(s);
	va_end(ap);
	fprintf(out, "%s\n", clean);
}

/* ---- errors ---------------------------------------------------------------------------------- */

void ck_print_verror(const char *fmt, va_list ap)
{
	CK_AUTO_FREE char *s = ck_text_vformat(fmt, ap);
	ck_print_line(stderr, "crikeep: %s", s);
}

void ck_print_error(const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	ck_print_verror(fmt, ap);
	va_end(ap);
}
