/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_CACHE_REQUEST_WORDS_H
#define CK_CACHE_REQUEST_WORDS_H
/* The words that may stay in a text from a runtime, CNI or plugin; see redact.h. */
#include <stdbool.h>
#include <stddef.h>

#define CK_WORD_MAX 16u /* letters of the longest word */

/* ck_word_listed - @word: lower case, @len bytes without a NUL; need not be terminated */
bool ck_word_listed(const char *word, size_t len);
/* ck_word - the n-th word, from 0; NULL: there are not so many. For tests */
const char *ck_word(size_t n);
#endif
