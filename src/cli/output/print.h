/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_CLI_OUTPUT_PRINT_H
#define CK_CLI_OUTPUT_PRINT_H
/*
 * The three forms of output. For machines a command builds one tree, and JSON and YAML are two ways
 * to write it, so names and values cannot differ; for people it fills a table. Every string may
 * come from the database: it is made safe here.
 *
 * Nothing here fails: a program for people has no better answer to a lack of memory than to say so
 * and end (ck_print_nomem). Errors of the stream stay in the stream, for whoever closes it.
 */
#include <json-c/json.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "src/base/error.h"

enum ck_output { CK_OUTPUT_TABLE, CK_OUTPUT_JSON, CK_OUTPUT_YAML };

_Noreturn void ck_print_nomem(void); /* "crikeep: out of memory", exit 2 */

/* ---- trees: a member is given to its object; NULL strings become null ------------------------ */

struct json_object *ck_tree_object(void);
struct json_object *ck_tree_array(void);
/* @value: taken; NULL is null */
void ck_tree_put(struct json_object *object, const char *name, struct json_object *value);
/* @value: taken */
void ck_tree_add(struct json_object *array, struct json_object *value);
struct json_object *ck_tree_text(const char *s);
void ck_tree_put_text(struct json_object *object, const char *name, const char *s);
void ck_tree_put_int(struct json_object *object, const char *name, int64_t n);
/* above INT64_MAX: INT64_MAX */
void ck_tree_put_count(struct json_object *object, const char *name, uint64_t n);
void ck_tree_put_bool(struct json_object *object, const char *name, bool b);
void ck_tree_put_seconds(struct json_object *object, const char *name, int64_t ns);   /* 372.123 */
/* RFC 3339, UTC */
void ck_tree_put_time(struct json_object *object, const char *name, int64_t seconds);
void ck_tree_put_hex(struct json_object *object, const char *name, const void *bytes, size_t len);
/* ck_tree_print - write and free @tree: JSON indented by two, or YAML; all but ASCII that could
 * harm a terminal is escaped */
void ck_tree_print(FILE *out, enum ck_output how, struct json_object *tree);

/* ---- tables ---------------------------------------------------------------------------------- */

enum ck_column_flag {
	CK_COLUMN_RIGHT = 1,
	CK_COLUMN_CUT = 2, /* may be cut to the terminal's width */
};

struct ck_column {
	const char *name;
	unsigned flags;   /* enum ck_column_flag */
	/* on a terminal too narrow for all, columns are left out: the highest first; 0 never */
	unsigned useless;
};

struct ck_table;
struct ck_table *ck_table_new(const struct ck_column *columns, size_t n);
/* ck_table_cell - the next cell, row by row; "" and NULL are shown as "-" */
void ck_table_cell(struct ck_table *table, const char *s);
void ck_table_cellf(struct ck_table *table, const char *fmt, ...) CK_PRINTF(2, 3);
/* ck_table_print - write and free. @width: of the terminal; 0: none, so nothing is left out or
 * cut */
void ck_table_print(FILE *out, struct ck_table *table, size_t width);
/* ck_print_width - of the terminal @out is, or 0 */
size_t ck_print_width(FILE *out);

/* ck_print_folded - a paragraph, broken at blanks before @width columns; every line after @indent
 * blanks. Made safe. */
void ck_print_folded(FILE *out, const char *text, size_t indent, size_t width);
/* ck_print_line - one line, made safe */
void ck_print_line(FILE *out, const char *fmt, ...) CK_PRINTF(2, 3);

/* ck_print_error - one line "crikeep: ..." on standard error, made safe for a terminal */
void ck_print_error(const char *fmt, ...) CK_PRINTF(1, 2);
void ck_print_verror(const char *fmt, va_list ap) CK_PRINTF(1, 0);
#endif
