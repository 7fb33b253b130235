/* SPDX-License-Identifier: Apache-2.0 */
/* Make untrusted text safe to show; write spans, sizes and times for people. */
#include <langinfo.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <wchar.h>

#include "src/base/mem.h"
#include "src/base/duration.h"
#include "src/base/utf8.h"
#include "src/cli/output/text.h"

#define REPLACEMENT "\xEF\xBF\xBD" /* U+FFFD */

_Noreturn void ck_text_nomem(void)
{
	fputs("crikeep: out of memory\n", stderr);
	exit(2);
}

void *ck_must(void *p)
{
	if (!p)
		ck_text_nomem();
	return p;
}

char *ck_text_vformat(const char *fmt, va_list ap)
{
	char *s;
	if (vasprintf(&s, fmt, ap) < 0)
		ck_text_nomem();
	return s;
}

char *ck_text_format(const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	char *s = ck_text_vformat(fmt, ap);
	va_end(ap);
	return s;
}

static bool utf8_locale(void)
{
	return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

char *ck_text_clean(const char *s)
{
	bool utf8 = utf8_locale();
	char *out = ck_must(ck_alloc(4 * strlen(s) + 1)), *p = out;
	while (*s) {
		uint32_t c;
		size_t n = ck_utf8_next(s, &c);
		if (n && !ck_utf8_unsafe(c) && (n == 1 || utf8)) {
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
	char *out = ck_must(ck_alloc(strlen(REPLACEMENT) * strlen(s) + 1)), *p = out;
	while (*s) {
		uint32_t c;
		size_t n = ck_utf8_next(s, &c);
		const char *from = n ? s : REPLACEMENT;
		size_t len = n ? n : strlen(REPLACEMENT);
		memcpy(p, from, len);
		p += len;
		s += n ? n : 1;
	}
	*p = '\0';
	return out;
}

size_t ck_text_fit(const char *s, size_t width, size_t *ret_width)
{
	size_t len = 0, shown = 0;
	mbstate_t state = { 0 };
	while (s[len]) {
		wchar_t wc;
		size_t n = mbrtowc(&wc, s + len, MB_LEN_MAX, &state), columns = 1;
		/* not a character of this locale; clean text has none */
		if (n == 0 || n > MB_LEN_MAX)
			n = 1;
		else
			columns = wcwidth(wc) > 0 ? (size_t)wcwidth(wc) : 0;
		if (columns > width - shown)
			break;
		shown += columns;
		len += n;
	}
	*ret_width = shown;
	return len;
}

size_t ck_text_width(const char *s)
{
	size_t width;
	ck_text_fit(s, SIZE_MAX, &width);
	return width;
}

#define UNITS_SHOWN 4u /* down to seconds */

const char *ck_text_span(uint64_t ns, char *buf)
{
	for (size_t i = 0; i < UNITS_SHOWN; i++) {
		uint64_t n = ns / ck_duration_units[i].ns;
		if (!n)
			continue;
		uint64_t rest = i + 1 < UNITS_SHOWN
					? ns % ck_duration_units[i].ns / ck_duration_units[i + 1].ns
					: 0;
		int len = snprintf(buf, CK_TEXT_SPAN, "%llu%s", (unsigned long long)n,
				   ck_duration_units[i].name);
		if (rest)
			snprintf(buf + len, CK_TEXT_SPAN - (size_t)len, "%llu%s",
				 (unsigned long long)rest, ck_duration_units[i + 1].name);
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

/* whole: strptime() leaves nothing of @s */
static bool parse_as(const char *s, const char *form, struct tm *tm)
{
	const char *end = strptime(s, form, tm);
	return end && !*end;
}

bool ck_text_parse_time(const char *s, int64_t now, int64_t *ret_seconds)
{
	/* without a date it is today's, without a year the last that is not in the future */
	static const char *const forms[] = { "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S",
					     "%Y-%m-%d %H:%M",    "%Y-%m-%d",
					     "%H:%M:%S",          "%H:%M" };
	time_t n = (time_t)now;
	struct tm today, tm = { 0 };
	if (parse_as(s, "%Y-%m-%dT%H:%M:%SZ", &tm)) {
		*ret_seconds = timegm(&tm);
		return true;
	}
	if (!localtime_r(&n, &today))
		return false;
	today.tm_hour = today.tm_min = today.tm_sec = 0;
	today.tm_isdst = -1;
	for (size_t i = 0; i < CK_COUNT(forms); i++) {
		tm = today;
		if (!parse_as(s, forms[i], &tm))
			continue;
		*ret_seconds = mktime(&tm);
		return true;
	}
	tm = today;
	if (!parse_as(s, "%b %d %H:%M", &tm))
		return false;
	struct tm last_year = tm;
	last_year.tm_year--;
	*ret_seconds = mktime(&tm);
	if (*ret_seconds > now)
		*ret_seconds = mktime(&last_year);
	return true;
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
