/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_CACHE_REQUEST_ALLOWLIST_H
#define CK_CACHE_REQUEST_ALLOWLIST_H
/*
 * Which words of a text from a runtime may stay; see redact.h. A word here is a run of ASCII
 * letters and digits, or a UUID. It is not terminated and has at least one byte.
 */
#include <stdbool.h>
#include <stddef.h>

#define CK_ID_DIGITS 64u /* of a container's or sandbox's id, and of a SHA-256 */
#define CK_UUID_LEN  36u

/* <ctype.h> would ask the host's locale */
static inline bool ck_upper(unsigned char c)
{
	return c >= 'A' && c <= 'Z';
}

static inline unsigned char ck_lower(unsigned char c)
{
	return ck_upper(c) ? (unsigned char)(c + ('a' - 'A')) : c;
}

static inline bool ck_digit(unsigned char c)
{
	return c >= '0' && c <= '9';
}

static inline bool ck_hex_digit(unsigned char c)
{
	return ck_digit(c) || (ck_lower(c) >= 'a' && ck_lower(c) <= 'f');
}

static inline unsigned ck_hex_value(unsigned char c)
{
	return ck_digit(c) ? c - '0' + 0u : ck_lower(c) - 'a' + 10u;
}

/* asked of every byte of a request: no branches */
static inline bool ck_in_word(unsigned char c)
{
	return ((unsigned)(c - '0') < 10) | ((unsigned)((c | 0x20) - 'a') < 26);
}

/* ck_allowed_word - "word", "Word" or "WORD" of words.h; a short one may also be a "gRPC" */
bool ck_allowed_word(const unsigned char *s, size_t len);
/* ck_allowed_name - RunPodSandbox, OOMKilled: its parts are words of words.h */
bool ck_allowed_name(const unsigned char *s, size_t len);
/* ck_part_begins - such a part begins within a word of @s, at @at */
bool ck_part_begins(const unsigned char *s, size_t len, size_t at);
/* ck_allowed_number - 12, 128MiB, 1m30s, and v2 */
bool ck_allowed_number(const unsigned char *s, size_t len);
/* ck_allowed_id - CK_ID_DIGITS, but not a printable text in hexadecimal */
bool ck_allowed_id(const unsigned char *s, size_t len);
/* ck_uuid_begins - @s begins with a UUID that is a word of its own */
bool ck_uuid_begins(const unsigned char *s, size_t len);
#endif
