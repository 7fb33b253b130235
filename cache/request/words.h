/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_CACHE_REQUEST_WORDS_H
#define CK_CACHE_REQUEST_WORDS_H
/* The words that may stay in a text from a runtime, CNI or plugin; see redact.h. */
#include <stdbool.h>
#include <stddef.h>

/* ck_word_listed - @s: @len letters and digits, in either case */
bool ck_word_listed(const unsigned char *s, size_t len);
/* ck_word_in - the same for the words of @line, with a blank between two */
bool ck_word_in(const char *line, const unsigned char *s, size_t len);
/* ck_words - the n-th line of the list, from 0; NULL: there are not so many. For tests */
const char *ck_words(size_t n);
#endif
