/* SPDX-License-Identifier: Apache-2.0 */
/* Counts how often each cell of the table of states and events is met, and prints the table. */
#include "tests/model/oracle-int.h"

static const struct {
	const char *text;
	unsigned columns;
} cell_rows[CELLS] = {
#define CELL_INIT(name, text, columns) [CELL_##name] = { text, columns },
	CELL_ROWS(CELL_INIT)
#undef CELL_INIT
};

void cell(struct world *w, enum cell_row row, enum column col)
{
	if (w->failure[0] || col >= COLS)
		return;
	MUST(w, cell_rows[row].columns & 1u << col, "the table: \"%s\" cannot happen in column %d",
	     cell_rows[row].text, (int)col);
	if (w->cells)
		w->cells[row][col]++;
}

unsigned coverage_print(coverage counts, FILE *to)
{
	static const char *const names[COLS] = { "CREATING",  "UNKNOWN", "KEPT",    "COMMITTING",
						 "COMMITTED", "ENDED",   "EVICTING" };
	unsigned cells = 0, met = 0;

	fprintf(to, "%-26s", "event");
	for (int col = 0; col < COLS; col++)
		fprintf(to, "%12s", names[col]);
	fputc('\n', to);
	for (int row = 0; row < CELLS; row++) {
		fprintf(to, "%-26s", cell_rows[row].text);
		for (int col = 0; col < COLS; col++) {
			if (!(cell_rows[row].columns & 1u << col)) {
				fprintf(to, "%12s", "-");
				continue;
			}
			cells++;
			met += counts[row][col] > 0;
			if (counts[row][col])
				fprintf(to, "%12llu", (unsigned long long)counts[row][col]);
			else
				fprintf(to, "%12s", "MISSING");
		}
		fputc('\n', to);
	}
	fprintf(to, "%u of %u cells of the table covered, %d events x %d states\n", met, cells,
		CELLS, COLS);
	return cells - met;
}
