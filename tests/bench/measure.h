/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_TESTS_MEASURE_H
#define CK_TESTS_MEASURE_H
/* What benchmarks and load tests measure with. Trouble of the measurement itself ends the
 * program. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* or the program ends */
void measure_must(bool ok, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
uint64_t measure_now(void);                                      /* ns of CLOCK_BOOTTIME */
uint64_t measure_quantile(uint64_t *values, size_t n, double q); /* sorts them */
double measure_median(double *values, size_t n);                 /* sorts them; @n is odd */
/* measure_line - what, value, unit and ratio to what */
void measure_line(const char *what, double value, const char *unit, ...)
	__attribute__((format(printf, 3, 4)));
#endif
