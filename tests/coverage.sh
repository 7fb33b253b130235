#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# usage: coverage.sh BUILDDIR - lines of our sources executed by what ran in a build with
# --coverage, the least first
set -u
cd "$1" || exit 1
# by .gcno, not .gcda: what no program has linked was not executed either
find . -name '*.gcno' ! -path './build-*' -exec gcov -n {} + 2>/dev/null | awk '
/^File / {
	file = ""
	if (match($0, /(src|cache|hooks)\/([a-z]+\/)*[^\/]*\.c\047$/) && !/pb-c/)
		file = substr($0, RSTART, RLENGTH - 1)
}
/^Lines executed:/ && file != "" { # Lines executed:97.50% of 40
	split($0, part, /[:% ]+/)
	if (!(file in lines) || part[3] + 0 > percent[file])
		percent[file] = part[3] + 0
	lines[file] = part[5]
	file = ""
}
END {
	for (file in lines) {
		printf "%6.1f %% of %5d  %s\n", percent[file], lines[file], file | "sort -n"
		total += lines[file]
		done += lines[file] * percent[file] / 100
	}
	close("sort -n")
	if (total)
		printf "%6.1f %% of %5d  all\n", 100 * done / total, total
}'
