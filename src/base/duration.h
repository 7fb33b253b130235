/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_BASE_DURATION_H
#define CK_BASE_DURATION_H
/* What lies between two times; and durations as people write them: "30s", "1h30m", "2.5s", "250ms",
 * "2d". */
#include <stdbool.h>
#include <stdint.h>

/* ck_duration_between - 0 if @to is not the later one: a deadline may be over, and a row may come
 * from anywhere */
static inline uint64_t ck_duration_between(uint64_t from, uint64_t to)
{
	return to > from ? to - from : 0;
}

#define CK_DURATION_TEXT 48u /* room for any duration, printed to the nanosecond */

#define CK_DURATION_UNITS 5u
extern const struct ck_duration_unit { /* largest first */
	const char *name;
	uint64_t ns;
} ck_duration_units[CK_DURATION_UNITS];

/* ck_duration_parse - the whole of @s, with the units d h m s ms, largest first and each once.
 * false: not a duration; *ret_ns is unchanged */
bool ck_duration_parse(const char *s, uint64_t *ret_ns);
/* ck_duration_print - in a form that ck_duration_parse() reads: "1h30m", "0s". Return: @buf
 * (CK_DURATION_TEXT bytes) */
const char *ck_duration_print(uint64_t ns, char *buf);
#endif
