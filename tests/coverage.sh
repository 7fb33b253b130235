#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# usage: coverage.sh BUILDDIR - what was executed of our sources by what ran in a build with
# --coverage: lines, the least first; branches of cache/ and hooks/; and each line of cache/machine
# with a branch that was never taken
#
# A branch is one outcome of a condition or a switch, as gcc compiles it with -O0. Not counted are
# - lines with CK_NEVER(): its branch cannot be taken, or the program would abort;
# - lines with a macro of uthash or utlist: their branches are those of the libraries;
# - of a switch, one branch that was never taken: gcc makes a default where none is written.
# What a failed allocation leads to counts: tests/fault takes it.
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
		printf "%6.1f %% of %5d  lines of all\n", 100 * done / total, total
}'

find cache hooks -name '*.gcno' -exec gcov -t -b -c {} + 2>/dev/null | awk '
function line_ends() { # the branches of the line that came last
	if (n && text !~ /CK_NEVER\(|HASH_[A-Z_]+ ?\(|[DL]L_[A-Z0-9_]+ ?\(/) {
		if (missed && text ~ /switch \(/) {
			n--
			missed--
		}
		branches[file] += n
		taken[file] += n - missed
		if (missed && file ~ /^cache\/machine\//)
			open[++opens] = sprintf("%s:%d: %d of %d not taken: %s", file, line,
				missed, n, text)
	}
	n = missed = 0
}
/^ *-: *0:Source:/ {
	line_ends()
	file = ""
	if (match($0, /(cache|hooks)\/([a-z]+\/)*[^\/]*\.c$/) && !/pb-c/)
		file = substr($0, RSTART)
	next
}
file == "" { next }
/^branch/ { # branch  0 taken 12 (fallthrough)
	n++
	missed += /never executed|taken 0( |$)/
	next
}
/^ *[^:]*: *[0-9]+:/ { #      12:   33:	if (x)
	line_ends()
	text = $0
	sub(/^ *[^:]*: */, "", text)
	line = text + 0
	sub(/^[0-9]+:[ \t]*/, "", text)
}
END {
	line_ends()
	for (file in branches) {
		printf "%6.1f %% of %5d  branches of %s\n",
			100 * taken[file] / branches[file], branches[file], file | "sort -n"
		folder = file
		sub(/\/[^\/]*$/, "", folder)
		all[folder] += branches[file]
		done[folder] += taken[file]
	}
	close("sort -n")
	for (folder in all)
		printf "%6.1f %% of %5d  branches of %s\n", 100 * done[folder] / all[folder],
			all[folder], folder | "sort -n"
	close("sort -n")
	for (i = 1; i <= opens; i++)
		print open[i]
}'
