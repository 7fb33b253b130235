/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_BASE_UTF8_H
#define CK_BASE_UTF8_H
/* Untrusted bytes as characters: which there are, and which of them a terminal may be shown. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ck_utf8_next - the length of the UTF-8 character at @s and which one it is; 0: these bytes are
 * none */
size_t ck_utf8_next(const char *s, uint32_t *ret_char);
/* ck_utf8_unsafe - may this character not be shown as it is? Controls, and what turns, hides or
 * joins its neighbours */
bool ck_utf8_unsafe(uint32_t c);
/* ck_utf8_clean - @s with unsafe characters and bad bytes as \xNN; @ascii: with all that is not
 * ASCII, too. What does not fit into @size (4 or more) is cut off, and "..." says so. Return: the
 * length */
size_t ck_utf8_clean(const char *s, bool ascii, char *buf, size_t size);
#endif
