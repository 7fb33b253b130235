/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "cache/request/allowlist.h"
#include "cache/request/words.h"
#include "src/base/limits.h"
#include "src/base/mem.h"

static bool listed(const unsigned char *s, size_t len)
{
	char word[CK_WORD_MAX];

	for (size_t i = 0; i < len && len <= sizeof(word); i++)
		word[i] = (char)ck_lower(s[i]);
	return len <= sizeof(word) && ck_word_listed(word, len);
}

bool ck_allowed_word(const unsigned char *s, size_t len)
{
	size_t uppers = 0;

	for (size_t i = 0; i < len; i++)
		uppers += ck_upper(s[i]);
	return (len <= 5 || uppers == 0 || uppers == len || (uppers == 1 && ck_upper(s[0]))) &&
	       listed(s, len);
}

size_t ck_name_part(const unsigned char *s, size_t len)
{
	size_t i = 1;

	while (i < len &&
	       (!ck_upper(s[i]) || (ck_upper(s[i - 1]) && (i + 1 == len || ck_upper(s[i + 1])))))
		i++;
	return i;
}

bool ck_allowed_name(const unsigned char *s, size_t len)
{
	for (size_t n; len; s += n, len -= n) {
		n = ck_name_part(s, len);
		/* parts of one or two letters would let any letters pass */
		if (n < 3 || !listed(s, n))
			return false;
	}
	return true;
}

static bool unit(const unsigned char *s, size_t len)
{
	static const char units[][4] = { "b",  "d",   "g",  "gb", "gi", "gib", "h",  "k",  "kb",
					 "ki", "kib", "m",  "mb", "mi", "mib", "ms", "nd", "ns",
					 "rd", "s",   "st", "th", "ti", "tib", "us" };

	for (size_t i = 0; i < CK_COUNT(units); i++) {
		size_t n = 0;
		while (n < len && units[i][n] == (char)ck_lower(s[n]))
			n++;
		if (n == len && !units[i][n])
			return true;
	}
	return false;
}

bool ck_allowed_number(const unsigned char *s, size_t len)
{
	size_t i = ck_lower(s[0]) == 'v' && len > 1;

	if (len > CK_REDACT_DIGITS)
		return false;
	while (i < len) {
		size_t from = i;
		while (i < len && ck_digit(s[i]))
			i++;
		size_t ends = i;
		while (i < len && !ck_digit(s[i]))
			i++;
		if (ends == from || (i > ends && (i - ends > 3 || !unit(s + ends, i - ends))))
			return false;
	}
	return true;
}

static bool printable(unsigned c)
{
	return (c >= ' ' && c < 0x7f) || c == '\t' || c == '\n' || c == '\r';
}

bool ck_allowed_id(const unsigned char *s, size_t len)
{
	bool text = true;

	for (size_t i = 0; i < len; i++) {
		if (!ck_hex_digit(s[i]) || ck_upper(s[i]))
			return false;
		if (i % 2) /* a byte is complete */
			text = text && printable(ck_hex_value(s[i - 1]) << 4 | ck_hex_value(s[i]));
	}
	return len == CK_ID_DIGITS && !text;
}

bool ck_uuid_begins(const unsigned char *s, size_t len)
{
	if (len < CK_UUID_LEN || (len > CK_UUID_LEN && ck_in_word(s[CK_UUID_LEN])))
		return false;
	for (size_t i = 0; i < CK_UUID_LEN; i++)
		if (i == 8 || i == 13 || i == 18 || i == 23 ? s[i] != '-' : !ck_hex_digit(s[i]))
			return false;
	return true;
}
