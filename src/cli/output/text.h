/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_CLI_OUTPUT_TEXT_H
#define CK_CLI_OUTPUT_TEXT_H
/*
 * Text for people. Text from the database is untrusted: the name of a pod may contain terminal
 * sequences, newlines or invalid bytes. Everything passes through ck_text_clean() before it reaches
 * a terminal.
 */
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/error.h"

#define CK_TEXT_SPAN 24u /* size of a buffer for a span, a size or a time */

/* ck_text_nomem - print "crikeep: out of memory" and exit with status 2. ck_must() does so if @p is
 * NULL, and so do the functions below that return a copy. */
_Noreturn void ck_text_nomem(void);
void *ck_must(void *p);

/* ck_text_format - like asprintf(). Free it. */
char *ck_text_format(const char *fmt, ...) CK_PRINTF(1, 2);
char *ck_text_vformat(const char *fmt, va_list ap) CK_PRINTF(1, 0);
/* ck_text_clean - a copy to show. Unsafe characters and bad bytes become \xNN; so does everything
 * but ASCII in a locale without UTF-8. Free it. */
char *ck_text_clean(const char *s);
/* ck_text_valid - a copy with U+FFFD for each bad byte, for JSON and YAML, whose writers escape the
 * rest. Free it. */
char *ck_text_valid(const char *s);
/* ck_text_width - the number of columns of clean text */
size_t ck_text_width(const char *s);
/* ck_text_fit - the number of bytes of @s that fit into @width columns. @ret_width: the columns
 * that these take */
size_t ck_text_fit(const char *s, size_t width, size_t *ret_width);

/* ck_text_span - "<1s", "12s", "6m12s", "3h4m", "2d3h". Return: @buf (CK_TEXT_SPAN bytes), as do
 * the next three */
const char *ck_text_span(uint64_t ns, char *buf);
/* ck_text_size - "512 B", "4.0 KiB", "157 MiB" */
const char *ck_text_size(uint64_t bytes, char *buf);
/* ck_text_time - RFC 3339, UTC: "2024-05-01T14:07:10Z"; "" if the year does not have four digits */
const char *ck_text_time(int64_t seconds, char *buf);
/* ck_text_clock - local time for a table: "14:07:10", or "May 01 14:07" on another day than @now */
const char *ck_text_clock(int64_t seconds, int64_t now, char *buf);
/* ck_text_parse_time - a time as the two above print it, or "2024-05-01", "2024-05-01 14:07:10",
 * "14:07", with or without seconds: local time, today, unless it says otherwise. false: it is none
 */
bool ck_text_parse_time(const char *s, int64_t now, int64_t *ret_seconds);
#endif
