/* SPDX-License-Identifier: Apache-2.0 */
/* Untrusted text made safe to show, and spans, sizes and times as people read them. */
#include <langinfo.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <wchar.h>

#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/cli/print.h"
#include "src/cli/text.h"

#define REPLACEMENT "\xEF\xBF\xBD" /* U+FFFD */

size_t ck_text_next(const char *s, uint32_t *ret_char)
{
	static const uint32_t smallest[] = { 0, 0, 0x80, 0x800, 0x10000 }; /* of each length: a longer form is an alias */
	const unsigned char *p = (const unsigned char *)s;
	if (*p < 0x80) {
		*ret_char = *p;
		return 1;
	}
	size_t n = *p >= 0xF0 && *p < 0xF8 ? 4 : *p >= 0xE0 && *p < 0xF0 ? 3 : *p >= 0xC0 && *p < 0xE0 ? 2 : 0;
	uint32_t c = n ? *p & (0xFFu >> (n + 1)) : 0;
	for (size_t i = 1; i < n; i++) {
		if ((p[i] & 0xC0) != 0x80) /* stops at the end of the string, too */
			return 0;
		c = c << 6 | (p[i] & 0x3F);
	}
	if (!n || c < smallest[n] || c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF))
		return 0;
	*ret_char = c;
	return n;
}

bool ck_text_unsafe(uint32_t c)
{
	static const struct {
		uint32_t first, last;
	} ranges[] = {
		{ 0x00, 0x1F },     { 0x7F, 0x9F },                           /* controls: C0, DEL, C1 */
		{ 0xAD, 0xAD },     { 0x61C, 0x61C },     { 0x200B, 0x200F }, /* invisible; direction marks */
		{ 0x2028, 0x202E }, { 0x2060, 0x206F },   { 0xFEFF, 0xFEFF }, /* line ends; overrides, isolates */
		{ 0xFFF9, 0xFFFB }, { 0xE0000, 0xE0FFF },                     /* annotations; tags, selectors */
	};
	for (size_t i = 0; i < CK_COUNT(ranges); i++) {
		if (c >= ranges[i].first && c <= ranges[i].last)
			return true;
	}
	return false;
}

static bool utf8_locale(void)
{
	return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

char *ck_text_clean(const char *s)
{
	bool utf8 = utf8_locale();
	char *out = ck_alloc(4 * strlen(s) + 1), *p = out;
	if (!out)
		ck_print_nomem();
	while (*s) {
		uint32_t c;
		size_t n = ck_text_next(s, &c);
		if (n && !ck_text_unsafe(c) && (n == 1 || utf8)) {
			memcpy(p, s, n);
			p += n;
		} else {
			n = n ? n : 1;
			for (size_t i = 0; i < n; i++)
				p += sprintf(p, "\\x%02x", (unsigned char)s[i]);
		}
		s += n;
	}
	*p = '\0';
	return out;
}

char *ck_text_valid(const char *s)
{
	char *out = ck_alloc(strlen(REPLACEMENT) * strlen(s) + 1), *p = out;
	if (!out)
		ck_print_nomem();
	while (*s) {
		uint32_t c;
		size_t n = ck_text_next(s, &c);
		const char *from = n ? s : REPLACEMENT;
		size_t len = n ? n : strlen(REPLACEMENT);
		memcpy(p, from, len);
		p += len;
		s += n ? n : 1;
	}
	*p = '\0';
	return out;
}

size_t ck_text_width(const char *s)
{
	size_t width = 0;
	mbstate_t state = { 0 };
	while (*s) {
		wchar_t wc;
		size_t n = mbrtowc(&wc, s, MB_LEN_MAX, &state);
		if (n == 0 || n > MB_LEN_MAX) /* no character of this locale: clean text has none such */
			return width + strlen(s);
		int w = wcwidth(wc);
		width += w > 0 ? (size_t)w : 0;
		s += n;
	}
	return width;
}

static const struct unit {
	const char *name;
	uint64_t ns;
} units[] = {
	{ "d", 86400 * CK_NS_PER_S }, { "h", 3600 * CK_NS_PER_S }, { "m", 60 * CK_NS_PER_S },
	{ "s", CK_NS_PER_S },         { "ms", CK_NS_PER_MS },
};
#define UNITS_SHOWN 4u /* down to seconds */

const char *ck_text_span(uint64_t ns, char *buf)
{
	for (size_t i = 0; i < UNITS_SHOWN; i++) {
		uint64_t n = ns / units[i].ns;
		if (!n)
			continue;
		uint64_t rest = i + 1 < UNITS_SHOWN ? ns % units[i].ns / units[i + 1].ns : 0;
		int len = snprintf(buf, CK_TEXT_SPAN, "%llu%s", (unsigned long long)n, units[i].name);
		if (rest)
			snprintf(buf + len, CK_TEXT_SPAN - (size_t)len, "%llu%s", (unsigned long long)rest, units[i + 1].name);
		return buf;
	}
	return strcpy(buf, "<1s");
}

const char *ck_text_size(uint64_t bytes, char *buf)
{
	static const char *const names[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	double size = (double)bytes;
	size_t i = 0;
	while (size >= 1024 && i + 1 < CK_COUNT(names)) {
		size /= 1024;
		i++;
	}
	snprintf(buf, CK_TEXT_SPAN, i && size < 10 ? "%.1f %s" : "%.0f %s", size, names[i]);
	return buf;
}

const char *ck_text_time(int64_t seconds, char *buf)
{
	time_t t = (time_t)seconds;
	struct tm tm;
	if (!gmtime_r(&t, &tm) || tm.tm_year < -900 || tm.tm_year > 8099 ||
	    !strftime(buf, CK_TEXT_SPAN, "%Y-%m-%dT%H:%M:%SZ", &tm))
		*buf = '\0';
	return buf;
}

const char *ck_text_clock(int64_t seconds, int64_t now, char *buf)
{
	time_t t = (time_t)seconds, n = (time_t)now;
	struct tm tm, today;
	if (!localtime_r(&t, &tm) || !localtime_r(&n, &today))
		return strcpy(buf, "?");
	bool same_day = tm.tm_year == today.tm_year && tm.tm_yday == today.tm_yday;
	if (!strftime(buf, CK_TEXT_SPAN, same_day ? "%H:%M:%S" : "%b %d %H:%M", &tm))
		strcpy(buf, "?");
	return buf;
}

/* a decimal number, of which nine digits behind the point count; in billionths */
static const char *parse_number(const char *s, uint64_t *ret_whole, uint64_t *ret_billionths)
{
	uint64_t whole = 0, billionths = 0, place = 100000000;
	const char *start = s;
	for (; *s >= '0' && *s <= '9'; s++) {
		if (whole > UINT32_MAX)
			return NULL;
		whole = whole * 10 + (uint64_t)(*s - '0');
	}
	if (s == start)
		return NULL;
	if (*s == '.') {
		start = ++s;
		for (; *s >= '0' && *s <= '9'; s++, place /= 10)
			billionths += (uint64_t)(*s - '0') * place;
		if (s == start)
			return NULL;
	}
	*ret_whole = whole;
	*ret_billionths = billionths;
	return s;
}

bool ck_text_parse_span(const char *s, uint64_t *ret_ns)
{
	uint64_t sum = 0;
	size_t next = 0; /* units come largest first, each once: "30s5m" is a slip of the pen */
	if (!*s)
		return false;
	while (*s) {
		uint64_t whole, billionths;
		s = parse_number(s, &whole, &billionths);
		if (!s)
			return false;
		size_t len = strspn(s, "dhms"), i = next;
		while (i < CK_COUNT(units) && (strlen(units[i].name) != len || strncmp(s, units[i].name, len) != 0))
			i++;
		if (i == CK_COUNT(units) || whole > INT64_MAX / units[i].ns)
			return false;
		uint64_t part = whole * units[i].ns + (uint64_t)((double)billionths * (double)units[i].ns / 1e9 + 0.5);
		if (part > INT64_MAX - sum)
			return false;
		sum += part;
		next = i + 1;
		s += len;
	}
	*ret_ns = sum;
	return true;
}
