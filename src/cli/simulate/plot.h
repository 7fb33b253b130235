/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_CLI_SIMULATE_PLOT_H
#define CK_CLI_SIMULATE_PLOT_H
/* The number of pods that are ready over the time since their creation: one rising curve per
 * policy, on a terminal and as SVG. */
#include "src/cli/simulate/simulation.h"

#define CK_PLOT_TICKS 6u

struct ck_plot {
	const struct ck_simulation_options *options;
	const struct ck_simulation_result *results;
	size_t n;
	/* the time axis: the slowest pod that became ready, rounded up to whole steps */
	uint64_t x_max, x_step;
};
/* ck_plot_scale - choose the axes; @options and @results are borrowed */
void ck_plot_scale(struct ck_plot *plot, const struct ck_simulation_options *options,
		   const struct ck_simulation_result *results, size_t n);
/* ck_plot_ready - pods ready within @ns */
size_t ck_plot_ready(const struct ck_simulation_result *result, uint64_t ns);
/* ck_plot_time - a tick's label: "0", "500ms", "90s", "5m", "2h". Return: @buf */
const char *ck_plot_time(const struct ck_plot *plot, uint64_t ns, char *buf, size_t size);

/* ck_plot_terminal - 80 columns. Each policy has its own area, because overlapping curves cannot be
 * told apart without colours. With @utf8 the steps are eighths of a line, else ASCII */
void ck_plot_terminal(FILE *out, const struct ck_plot *plot, bool utf8);
/* ck_plot_svg - a self-contained picture, light or dark as the viewer prefers */
void ck_plot_svg(FILE *out, const struct ck_plot *plot);
#endif
