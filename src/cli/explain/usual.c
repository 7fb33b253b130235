/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "src/base/duration.h"
#include "src/base/mem.h"
#include "src/cli/explain/usual.h"

/* The history is read from its end: the end of each creation first, then its beginning. */
struct ends {
	const struct ck_history_row *open[CK_USUAL_LAST]; /* no beginning was found yet */
	size_t open_n, n; /* n: also those whose beginning was found */
	uint64_t took[CK_USUAL_LAST];
	size_t took_n;
};

static bool is_end(const struct ck_history_row *line)
{
	return line->what == CK_WHAT_MOVED && line->from == CK_STATE_CREATING &&
	       (line->to == CK_STATE_KEPT || line->to == CK_STATE_COMMITTING ||
		line->to == CK_STATE_COMMITTED);
}

static bool is_beginning(const struct ck_history_row *line)
{
	return line->what == CK_WHAT_MOVED && line->to == CK_STATE_CREATING;
}

static void begin(struct ends *ends, const struct ck_history_row *line)
{
	for (size_t i = 0; i < ends->open_n; i++) {
		const struct ck_history_row *end = ends->open[i];
		if (end->entry != line->entry)
			continue;
		if (strcmp(end->boot, line->boot) == 0)
			ends->took[ends->took_n++] = ck_duration_between(line->at, end->at);
		ends->open[i] = ends->open[--ends->open_n];
		return;
	}
}

static int by_length(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
	return left < right ? -1 : left > right;
}

void ck_usual_find(const struct ck_look *look, enum ck_kind kind, struct ck_usual *ret)
{
	const struct ck_reader *reader = look->reader;
	struct ends ends = { 0 };
	for (size_t i = reader->history_n;
	     i-- > 0 && (ends.n < CK_USUAL_LAST || ends.open_n > 0);) {
		const struct ck_history_row *line = &reader->history[i];
		if (line->kind != kind)
			continue;
		if (is_end(line) && ends.n < CK_USUAL_LAST) {
			ends.open[ends.open_n++] = line;
			ends.n++;
		} else if (is_beginning(line)) {
			begin(&ends, line);
		}
	}
	*ret = (struct ck_usual){ .n = ends.took_n };
	if (!ends.took_n)
		return;
	qsort(ends.took, ends.took_n, sizeof(*ends.took), by_length);
	ret->median = ends.took[(ends.took_n - 1) / 2];
	ret->longest = ends.took[ends.took_n - 1];
}
