/* SPDX-License-Identifier: Apache-2.0 */
/* Durations, read strictly: "10min", "30" and "30s5m" are mistakes. */
#include <stdio.h>
#include <string.h>

#include "src/base/limits.h"
#include "src/base/duration.h"

const struct ck_duration_unit ck_duration_units[CK_DURATION_UNITS] = {
	{ "d", 86400 * CK_NS_PER_S }, { "h", 3600 * CK_NS_PER_S }, { "m", 60 * CK_NS_PER_S },
	{ "s", CK_NS_PER_S },         { "ms", CK_NS_PER_MS },
};

/* a decimal number in billionths; only nine digits behind the point count */
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

bool ck_duration_parse(const char *s, uint64_t *ret_ns)
{
	uint64_t sum = 0;
	size_t next = 0; /* units come largest first, each once */
	if (!*s)
		return false;
	while (*s) {
		uint64_t whole, billionths;
		s = parse_number(s, &whole, &billionths);
		if (!s)
			return false;
		size_t len = strspn(s, "dhms"), i = next;
		while (i < CK_DURATION_UNITS && (strlen(ck_duration_units[i].name) != len ||
						 strncmp(s, ck_duration_units[i].name, len) != 0))
			i++;
		if (i == CK_DURATION_UNITS || whole > INT64_MAX / ck_duration_units[i].ns)
			return false;
		uint64_t part =
			whole * ck_duration_units[i].ns +
			(uint64_t)((double)billionths * (double)ck_duration_units[i].ns / 1e9 +
				   0.5);
		if (part > INT64_MAX - sum)
			return false;
		sum += part;
		next = i + 1;
		s += len;
	}
	*ret_ns = sum;
	return true;
}

const char *ck_duration_print(uint64_t ns, char *buf)
{
	size_t len = 0;
	if (!ns)
		return strcpy(buf, "0s");
	for (size_t i = 0; i < CK_DURATION_UNITS && ns; i++) {
		const struct ck_duration_unit *unit = &ck_duration_units[i];
		/* the rest becomes digits behind the point */
		bool last = i + 1 == CK_DURATION_UNITS;
		if (ns < unit->ns && !last)
			continue;
		/* cppcheck-suppress zerodivcond ; no unit of the table is 0 */
		unsigned long long whole = ns / unit->ns;
		len += (size_t)snprintf(buf + len, CK_DURATION_TEXT - len, "%llu", whole);
		ns %= unit->ns;
		if (last && ns) {
			len += (size_t)snprintf(buf + len, CK_DURATION_TEXT - len, ".%06llu",
						(unsigned long long)ns);
			while (buf[len - 1] == '0')
				len--;
		}
		len += (size_t)snprintf(buf + len, CK_DURATION_TEXT - len, "%s", unit->name);
	}
	return buf;
}
