/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_BASE_DURATION_H
#define CK_BASE_DURATION_H
/* Spans of time as people write them: "30s", "1h30m", "2.5s", "250ms", "2d". */
#include <stdbool.h>
#include <stdint.h>

#define CK_SPAN_TEXT 48u /* room for any span, printed to the nanosecond */

#define CK_SPAN_UNITS 5u
extern const struct ck_span_unit { /* largest first */
	const char *name;
	uint64_t ns;
} ck_span_units[CK_SPAN_UNITS];

/* ck_span_parse - units d h m s ms, largest first, each once; the whole of @s. false: not a span, *ret_ns as it was */
bool ck_span_parse(const char *s, uint64_t *ret_ns);
/* ck_span_print - so that ck_span_parse() reads the same: "1h30m", "0s". Return: @buf (CK_SPAN_TEXT bytes) */
const char *ck_span_print(uint64_t ns, char *buf);
#endif
