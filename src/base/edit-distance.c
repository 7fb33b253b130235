/* SPDX-License-Identifier: Apache-2.0 */
/* Levenshtein's distance, with the three rows that transpositions need. */
#include <stdint.h>
#include <string.h>

#include "src/base/edit-distance.h"

#define NAME_LONGEST 63u /* of a command, a configuration key, a pod that has a host name */

size_t ck_edit_distance(const char *a, const char *b)
{
	size_t rows[3][NAME_LONGEST + 1], *before = rows[0], *above = rows[1], *row = rows[2];
	size_t n = strlen(b);
	if (n > NAME_LONGEST || strlen(a) > NAME_LONGEST)
		return SIZE_MAX;
	for (size_t j = 0; j <= n; j++)
		above[j] = j;
	for (size_t i = 1; i <= strlen(a); i++) {
		row[0] = i;
		for (size_t j = 1; j <= n; j++) {
			size_t best = above[j - 1] + (a[i - 1] != b[j - 1]);
			if (above[j] + 1 < best)
				best = above[j] + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
			    before[j - 2] + 1 < best)
				best = before[j - 2] + 1;
			row[j] = best;
		}
		size_t *oldest = before;
		before = above;
		above = row;
		row = oldest;
	}
	return above[n];
}
