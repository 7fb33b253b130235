/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tests/bench/measure.h"

void measure_must(bool ok, const char *fmt, ...)
{
	va_list ap;
	if (ok)
		return;
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(1);
}

uint64_t measure_now(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_BOOTTIME, &ts);
	return (uint64_t)ts.tv_sec * UINT64_C(1000000000) + (uint64_t)ts.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

uint64_t measure_quantile(uint64_t *values, size_t n, double q)
{
	if (!n)
		return 0;
	qsort(values, n, sizeof(*values), by_value);
	return values[(size_t)((double)(n - 1) * q)];
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return x < y ? -1 : x > y;
}

double measure_median(double *values, size_t n)
{
	qsort(values, n, sizeof(*values), by_size);
	return values[n / 2];
}

void measure_line(const char *what, double value, const char *unit, ...)
{
	char text[96];
	va_list ap;
	va_start(ap, unit);
	vsnprintf(text, sizeof(text), unit, ap);
	va_end(ap);
	printf("%-38s %9.*f %s\n", what, value < 10 ? 2 : value < 1000 ? 1 : 0, value, text);
}
