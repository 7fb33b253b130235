/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_BASE_UTF8_H
#define CK_BASE_UTF8_H
/* Untrusted bytes as characters, and which of them are safe on a terminal. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ck_utf8_next - read the UTF-8 character at @s. Return: its length; 0: it is no character */
size_t ck_utf8_next(const char *s, uint32_t *ret_char);
/* ck_utf8_next_of - the same where @left bytes (1 or more) are left, and a NUL is a character */
size_t ck_utf8_next_of(const void *s, size_t left, uint32_t *ret_char);
/* ck_utf8_unsafe - must this character not be shown as it is? Control characters, and those that
 * turn, hide or join their neighbours */
bool ck_utf8_unsafe(uint32_t c);
/* ck_utf8_clean - copy @s with unsafe characters and bad bytes as \xNN; @ascii: also every other
 * character that is not ASCII. A text that does not fit into @size (4 or more) is cut and ends in
 * "...". Return: the length */
size_t ck_utf8_clean(const char *s, bool ascii, char *buf, size_t size);
#endif
