/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_CLI_OUTPUT_PRINT_H
#define CK_CLI_OUTPUT_PRINT_H
/*
 * The three forms of output. For machines, a command builds one tree. JSON and YAML are two ways to
 * write it, so their names and values cannot differ. For people, a command fills a table. Every
 * string may come from the database and is made safe here.
 *
 * Nothing here returns an error. Out of memory, the program prints that and exits (ck_text_nomem).
 * An error of the stream stays in the stream; main.c checks it at exit.
 */
#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "src/cli/output/text.h"

enum ck_output { CK_OUTPUT_TABLE, CK_OUTPUT_JSON, CK_OUTPUT_YAML };

/* ---- trees: an object owns its members; NULL strings become null ----------------------------- */

struct json_object *ck_tree_object(void);
struct json_object *ck_tree_array(void);
/* @value: taken; NULL is null */
void ck_tree_put(struct json_object *object, const char *name, struct json_object *value);
/* @value: taken */
void ck_tree_add(struct json_object *array, struct json_object *value);
struct json_object *ck_tree_text(const char *s);
/* @n with this many digits after the point */
struct json_object *ck_tree_decimal(double n, int digits);
struct json_object *ck_tree_seconds(int64_t ns); /* 372.123 */
void ck_tree_put_text(struct json_object *object, const char *name, const char *s);
void ck_tree_put_int(struct json_object *object, const char *name, int64_t n);
/* 0 becomes null */
void ck_tree_put_known(struct json_object *object, const char *name, int64_t n);
/* above INT64_MAX: INT64_MAX */
void ck_tree_put_count(struct json_object *object, const char *name, uint64_t n);
void ck_tree_put_bool(struct json_object *object, const char *name, bool b);
void ck_tree_put_seconds(struct json_object *object, const char *name, int64_t ns);
/* RFC 3339, UTC */
void ck_tree_put_time(struct json_object *object, const char *name, int64_t seconds);
void ck_tree_put_hex(struct json_object *object, const char *name, const void *bytes, size_t len);
/* ck_tree_print - write and free @tree as JSON, indented by two, or as YAML. Characters that could
 * harm a terminal are escaped */
void ck_tree_print(FILE *out, enum ck_output how, struct json_object *tree);

/* ---- tables ---------------------------------------------------------------------------------- */

enum ck_column_flag {
	CK_COLUMN_RIGHT = 1,
	CK_COLUMN_CUT = 2,  /* may be cut to fit the terminal */
	CK_COLUMN_FOLD = 4, /* the last one: continued below itself where it does not fit */
};

struct ck_column {
	const char *name;
	unsigned flags;   /* enum ck_column_flag */
	/* a narrow terminal shows fewer columns: the highest is left out first, 0 never */
	unsigned useless;
};

struct ck_table;
struct ck_table *ck_table_new(const struct ck_column *columns, size_t n);
/* ck_table_cell - add the next cell, row by row; "" and NULL are shown as "-" */
void ck_table_cell(struct ck_table *table, const char *s);
void ck_table_cellf(struct ck_table *table, const char *fmt, ...) CK_PRINTF(2, 3);
/* ck_table_print - write and free. @width: of the terminal; 0: no terminal, so nothing is left out
 * or cut */
void ck_table_print(FILE *out, struct ck_table *table, size_t width);
/* ck_print_width - the width of the terminal @out, or 0 if it is none */
size_t ck_print_width(FILE *out);

/* ck_print_prose_width - the width of paragraphs on standard output: at most 80 */
size_t ck_print_prose_width(void);
/* ck_print_folded - a paragraph, made safe and broken at blanks to fit @width columns; every line
 * begins with @indent blanks */
void ck_print_folded(FILE *out, const char *text, size_t indent, size_t width);
/* ck_print_coloured - the same in a colour, if @out is a terminal that has colours and NO_COLOR is
 * not set */
enum ck_colour { CK_COLOUR_NONE, CK_COLOUR_RED = 31, CK_COLOUR_YELLOW = 33 };
void ck_print_coloured(FILE *out, enum ck_colour colour, const char *text, size_t indent,
		       size_t width);
/* ck_print_list - the same of a text like "1 kept, 2 gone", which is broken at commas only */
void ck_print_list(FILE *out, const char *text, size_t indent, size_t width);
/* ck_print_line - one line, made safe */
void ck_print_line(FILE *out, const char *fmt, ...) CK_PRINTF(2, 3);

/* ck_print_error - one line "crikeep: ..." on standard error, made safe for a terminal */
void ck_print_error(const char *fmt, ...) CK_PRINTF(1, 2);
void ck_print_verror(const char *fmt, va_list ap) CK_PRINTF(1, 0);
#endif
