/* SPDX-License-Identifier: Apache-2.0 */
#include "cache/request/allowlist.h"
#include "cache/request/words.h"
#include "src/base/limits.h"

bool ck_allowed_word(const unsigned char *s, size_t len)
{
	size_t uppers = 0;

	for (size_t i = 0; i < len; i++)
		uppers += ck_upper(s[i]);
	return (len <= 5 || uppers == 0 || uppers == len || (uppers == 1 && ck_upper(s[0]))) &&
	       ck_word_listed(s, len);
}

bool ck_part_begins(const unsigned char *s, size_t len, size_t at)
{
	return ck_upper(s[at]) && (!ck_upper(s[at - 1]) ||
				   (at + 1 < len && ck_in_word(s[at + 1]) && !ck_upper(s[at + 1])));
}

bool ck_allowed_name(const unsigned char *s, size_t len)
{
	for (size_t from = 0, at = 1; at <= len; at++) {
		if (at < len && !ck_part_begins(s, len, at))
			continue;
		/* parts of one or two letters would let any letters pass */
		if (at - from < 3 || !ck_word_listed(s + from, at - from))
			return false;
		from = at;
	}
	return true;
}

bool ck_allowed_number(const unsigned char *s, size_t len)
{
	static const char units[] =
		"b d g gb gi gib h k kb ki kib m mb mi mib ms nd ns rd s st th ti tib us";
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
		if (ends == from || (i > ends && !ck_word_in(units, s + ends, i - ends)))
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
