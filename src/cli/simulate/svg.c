/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plot as SVG 1.1 with one style sheet. It needs no scripts, fonts or other files. The colours
 * can be told apart by colour-blind people, on white and on black, and each curve has its own dash
 * pattern. A viewer that does not know prefers-color-scheme shows the light colours. text() escapes
 * every text.
 */
#include <stdarg.h>
#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/cli/simulate/plot.h"

enum { WIDTH = 800, HEIGHT = 440, LEFT = 70, RIGHT = 776, TOP = 92, BOTTOM = 376 };

static const char style[] = "<style>\n"
			    "text{font:13px system-ui,sans-serif;fill:#1f2328}\n"
			    ".title{font-size:17px;font-weight:600}\n"
			    ".axis{stroke:#1f2328}.grid{stroke:#d8dee4}.back{fill:#ffffff}\n"
			    ".curve{fill:none;stroke-width:2.5}\n"
			    ".c0{stroke:#b3261e;stroke-dasharray:2 "
			    "4}.c1{stroke:#8a5a00;stroke-dasharray:9 4}.c2{stroke:#0b57d0}\n"
			    "@media (prefers-color-scheme:dark){\n"
			    "text{fill:#e6edf3}\n"
			    ".axis{stroke:#e6edf3}.grid{stroke:#30363d}.back{fill:#0d1117}\n"
			    ".c0{stroke:#ff8a80}.c1{stroke:#e3b341}.c2{stroke:#79b8ff}\n"
			    "}\n"
			    "</style>\n";

static void escaped(FILE *out, const char *s)
{
	for (; *s; s++) {
		switch (*s) {
		case '&': fputs("&amp;", out); break;
		case '<': fputs("&lt;", out); break;
		case '>': fputs("&gt;", out); break;
		case '"': fputs("&quot;", out); break;
		case '\'': fputs("&#39;", out); break;
		default: putc(*s, out);
		}
	}
}

/* @attributes is trusted and not escaped */
CK_PRINTF(5, 6)
static void text(FILE *out, double x, double y, const char *attributes, const char *fmt, ...)
{
	char s[256];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(s, sizeof(s), fmt, ap);
	va_end(ap);
	fprintf(out, "<text x=\"%.1f\" y=\"%.1f\"%s%s>", x, y, *attributes ? " " : "", attributes);
	escaped(out, s);
	fputs("</text>\n", out);
}

static double at_x(const struct ck_plot *plot, uint64_t ns)
{
	return LEFT + (RIGHT - LEFT) * ((double)ns / (double)plot->x_max);
}

static double at_y(const struct ck_plot *plot, size_t pods)
{
	return BOTTOM - (BOTTOM - TOP) * ((double)pods / (double)plot->options->pods);
}

/* the mark above @pods: a round number, or at the top the number of all pods */
static size_t next_mark(size_t pods, size_t all)
{
	static const size_t steps[] = { 1, 2, 5, 10, 20, 50, 100, 200 };
	size_t s = 0;
	while (s + 1 < CK_COUNT(steps) && all > 5 * steps[s])
		s++;
	return pods + steps[s] + steps[s] / 2 < all ? pods + steps[s] : all;
}

static void axes(FILE *out, const struct ck_plot *plot)
{
	char label[16];
	size_t all = plot->options->pods, pods = 0;
	for (uint64_t t = plot->x_step; t <= plot->x_max; t += plot->x_step)
		fprintf(out, "<path class=\"grid\" d=\"M%.1f %dV%d\"/>\n", at_x(plot, t), TOP,
			BOTTOM);
	for (uint64_t t = 0; t <= plot->x_max; t += plot->x_step)
		text(out, at_x(plot, t), BOTTOM + 20, "text-anchor=\"middle\"", "%s",
		     ck_plot_time(plot, t, label, sizeof(label)));
	for (bool more = true; more; pods = next_mark(pods, all)) {
		double y = at_y(plot, pods);
		more = pods < all;
		fprintf(out, "<path class=\"grid\" d=\"M%d %.1fH%d\"/>\n", LEFT, y, RIGHT);
		text(out, LEFT - 8, y + 4, "text-anchor=\"end\"", "%zu", pods);
	}
	fprintf(out, "<path class=\"axis\" fill=\"none\" d=\"M%d %dV%dH%d\"/>\n", LEFT, TOP, BOTTOM,
		RIGHT);
	text(out, (LEFT + RIGHT) / 2.0, BOTTOM + 46, "text-anchor=\"middle\"",
	     "time since the pod was created");
	fprintf(out, "<g transform=\"translate(22 %d) rotate(-90)\">", (TOP + BOTTOM) / 2);
	text(out, 0, 0, "text-anchor=\"middle\"", "pods ready");
	fputs("</g>\n", out);
}

static void curve(FILE *out, const struct ck_plot *plot, const struct ck_simulation_result *result,
		  unsigned class)
{
	fprintf(out, "<path class=\"curve c%u\" d=\"M%d %d", class, LEFT, BOTTOM);
	for (size_t p = 0; p + result->never < result->pods; p++)
		fprintf(out, "H%.1fV%.1f", at_x(plot, result->ready[p]), at_y(plot, p + 1));
	fprintf(out, "H%d\"/>\n", RIGHT);
}

static unsigned class_of(const struct ck_simulation_result *result)
{
	return result->policy == &ck_simulation_policy_none  ? 0
	       : result->policy == &ck_simulation_policy_ram ? 1
							     : 2;
}

void ck_plot_svg(FILE *out, const struct ck_plot *plot)
{
	const struct ck_simulation_options *o = plot->options;
	fprintf(out,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" "
		"height=\"%d\" role=\"img\" "
		"aria-labelledby=\"title\">\n<title id=\"title\">",
		WIDTH, HEIGHT, WIDTH, HEIGHT);
	escaped(out, "Pods ready over time on a slow node");
	fputs("</title>\n", out);
	fputs(style, out);
	fprintf(out, "<rect class=\"back\" width=\"%d\" height=\"%d\"/>\n", WIDTH, HEIGHT);
	text(out, LEFT, 30, "class=\"title\"", "Pods ready over time on a slow node");
	text(out, LEFT, 50, "",
	     "%u pods, a create takes %.4gs (jitter %.3g%%), the kubelet waits %.4gs", o->pods,
	     (double)o->create / 1e9, o->jitter * 100, (double)o->deadline / 1e9);
	axes(out, plot);
	/* dashed curves lie above the solid one, so that both are visible where they agree */
	for (size_t i = plot->n; i-- > 0;) {
		const struct ck_simulation_result *r = &plot->results[i];
		int x = LEFT + (int)i * 220;
		curve(out, plot, r, class_of(r));
		fprintf(out, "<path class=\"curve c%u\" d=\"M%d 72h34\"/>\n", class_of(r), x);
		text(out, x + 42, 76, "", "%s: %zu of %zu ready", r->policy->name,
		     r->pods - r->never, r->pods);
	}
	fputs("</svg>\n", out);
}
