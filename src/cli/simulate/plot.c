/* SPDX-License-Identifier: Apache-2.0 */
/* Axes, and the plot for terminals; see plot.h. */
#include "src/cli/simulate/plot.h"
#include "src/base/mem.h"

#define COLUMNS 65 /* of 80, less "crikeep  1000 |" */
#define ROWS    3  /* per policy */

/* ---- axes ------------------------------------------------------------------------------------ */

void ck_plot_scale(struct ck_plot *plot, const struct ck_simulation_options *options,
		   const struct ck_simulation_result *results, size_t n)
{
	static const uint64_t steps[] = {
		/* ms */
		10,     20,      50,      100,     200,      500,      1000,     2000,
		5000,   10000,   20000,   30000,   60000,    120000,   300000,   600000,
		900000, 1800000, 3600000, 7200000, 14400000, 21600000, 43200000,
	};
	uint64_t last = 0;
	for (size_t i = 0; i < n; i++)
		for (size_t p = 0; p + results[i].never < results[i].pods; p++)
			last = results[i].ready[p] > last ? results[i].ready[p] : last;
	if (!last)
		last = options->give_up;
	size_t s = 0;
	while (s + 1 < CK_COUNT(steps) && last > steps[s] * CK_NS_PER_MS * CK_PLOT_TICKS)
		s++;
	uint64_t step = steps[s] * CK_NS_PER_MS;
	*plot = (struct ck_plot){ options, results, n, (last + step - 1) / step * step, step };
}

size_t ck_plot_ready(const struct ck_simulation_result *result, uint64_t ns)
{
	size_t n = 0;
	while (n < result->pods && result->ready[n] <= ns)
		n++;
	return n;
}

const char *ck_plot_time(const struct ck_plot *plot, uint64_t ns, char *buf, size_t size)
{
	static const struct {
		uint64_t ns;
		const char *name;
	} units[] = { { 3600 * CK_NS_PER_S, "h" },
		      { 60 * CK_NS_PER_S, "m" },
		      { CK_NS_PER_S, "s" },
		      { CK_NS_PER_MS, "ms" } };
	size_t u = 0; /* one unit for all labels */
	while (u + 1 < CK_COUNT(units) && plot->x_step % units[u].ns)
		u++;
	if (ns)
		snprintf(buf, size, "%llu%s", (unsigned long long)(ns / units[u].ns),
			 units[u].name);
	else
		snprintf(buf, size, "0");
	return buf;
}

/* ---- on a terminal --------------------------------------------------------------------------- */

/* The character of a cell, by how many eighths of it are filled. */
static const char *const eighths[2][9] = {
	{ " ", " ", ".", ".", ":", ":", ":", "#", "#" },
	{ " ", "\u2581", "\u2582", "\u2583", "\u2584", "\u2585", "\u2586", "\u2587", "\u2588" },
};

static void area(FILE *out, const struct ck_plot *plot, const struct ck_simulation_result *result,
		 bool utf8)
{
	unsigned height[COLUMNS]; /* in eighths of a row, rounded up: a single pod is visible */
	for (unsigned c = 0; c < COLUMNS; c++) {
		size_t ready = ck_plot_ready(result, plot->x_max / COLUMNS * (c + 1));
		height[c] = (unsigned)((ready * ROWS * 8 + result->pods - 1) / result->pods);
	}
	for (unsigned row = ROWS; row-- > 0;) {
		const char *bar = utf8 ? "\u2502" : "|";
		if (row == ROWS - 1)
			fprintf(out, "%-8s %4zu %s", result->policy->name, result->pods, bar);
		else
			fprintf(out, "%13s %s", row ? "" : "0", bar);
		unsigned width = COLUMNS; /* print no trailing blanks */
		while (width && height[width - 1] <= row * 8)
			width--;
		for (unsigned c = 0; c < width; c++) {
			unsigned filled = height[c] <= row * 8 ? 0 : height[c] - row * 8;
			fputs(eighths[utf8][filled > 8 ? 8 : filled], out);
		}
		putc('\n', out);
	}
}

void ck_plot_terminal(FILE *out, const struct ck_plot *plot, bool utf8)
{
	fprintf(out, "Pods ready over time since their creation:\n");
	for (size_t i = 0; i < plot->n; i++)
		area(out, plot, &plot->results[i], utf8);
	char labels[COLUMNS + 1];
	memset(labels, ' ', COLUMNS);
	fprintf(out, "%14s%s", "", utf8 ? "\u2514" : "+");
	for (unsigned c = 0; c < COLUMNS; c++) {
		unsigned tick =
			(unsigned)(((uint64_t)c + 1) * plot->x_max / COLUMNS / plot->x_step);
		bool ticked = tick > (unsigned)((uint64_t)c * plot->x_max / COLUMNS / plot->x_step);
		fputs(ticked ? utf8 ? "\u2534" : "+" : utf8 ? "\u2500" : "-", out);
		if (ticked) {
			char text[16];
			size_t len =
				strlen(ck_plot_time(plot, tick * plot->x_step, text, sizeof(text)));
			/* ends below its tick */
			memcpy(labels + (c + 1 >= len ? c + 1 - len : 0), text, len);
		}
	}
	size_t len = COLUMNS;
	while (len && labels[len - 1] == ' ')
		len--;
	fprintf(out, "\n%14s0%.*s\n", "", (int)len, labels);
}
