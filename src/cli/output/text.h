/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_CLI_OUTPUT_TEXT_H
#define CK_CLI_OUTPUT_TEXT_H
/*
 * Text for people. What comes from the database is untrusted: a pod's name may hold terminal
 * sequences, newlines or bytes that are no text at all. Nothing reaches a terminal that has not
 * passed through ck_text_clean().
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CK_TEXT_SPAN 24u /* room for a span, a size or a time */

/* ck_text_clean - a copy to show: unsafe characters and bad bytes as \xNN; in a locale without
 * UTF-8 all but ASCII. Free it. */
char *ck_text_clean(const char *s);
/* ck_text_valid - a copy with U+FFFD for each bad byte, all else as it was: for JSON and YAML,
 * which escape it. Free it. */
char *ck_text_valid(const char *s);
/* ck_text_width - the columns clean text takes */
size_t ck_text_width(const char *s);

/* ck_text_span - "<1s", "12s", "6m12s", "3h4m", "2d3h". Return: @buf (CK_TEXT_SPAN bytes), as do
 * the next three */
const char *ck_text_span(uint64_t ns, char *buf);
/* ck_text_size - "512 B", "4.0 KiB", "157 MiB" */
const char *ck_text_size(uint64_t bytes, char *buf);
/* ck_text_time - RFC 3339, UTC: "2024-05-01T14:07:10Z"; "" for a year of other than four digits */
const char *ck_text_time(int64_t seconds, char *buf);
/* ck_text_clock - local time as a table shows it: "14:07:10", and with another day than @now "May
 * 01 14:07" */
const char *ck_text_clock(int64_t seconds, int64_t now, char *buf);
#endif
