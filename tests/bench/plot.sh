#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# plot.sh [FILE] - draws what `bench growth` printed, for tests/bench/README.md: a table, and plots
# of time and of memory in text. Both axes are logarithmic: a cost that grows with the number rises
# by three rows for each step to the right.
awk '
function log10(x) { return log(x) / log(10) }
function row(value) { return int(3 * (log10(value) - low) + 0.5) }
function put(r, c, mark) { grid[r, c] = mark }

# draws the curves of a unit from 10^first to 10^last, with a name at each full power of ten
function plot(unit, first, last, names,    label, k, i, c, r, part, line, from, to) {
	split(names, label, ",")
	low = first
	split("", grid)
	for (k = 1; k <= n; k++) {
		if (units[k] != unit)
			continue
		for (i = 1; i < SIZES; i++)
			for (c = 1; c < STEP; c++) {
				from = log10(values[k, i])
				to = log10(values[k, i + 1])
				part = from + (to - from) * c / STEP
				put(row(10 ^ part), (i - 1) * STEP + c, ".")
			}
	}
	for (k = 1; k <= n; k++)
		for (i = 1; units[k] == unit && i <= SIZES; i++) {
			r = row(values[k, i])
			c = (i - 1) * STEP
			while (grid[r, c] ~ /[a-z]/) # beside the one that is there
				c++
			put(r, c, substr(curves[k], 1, 1))
		}
	print "\n```"
	for (r = 3 * (last - first); r >= 0; r--) {
		line = sprintf("%8s |  ", r % 3 ? "" : label[r / 3 + 1])
		for (c = 0; c <= (SIZES - 1) * STEP + 3; c++)
			line = line ((r, c) in grid ? grid[r, c] : " ")
		sub(/ +$/, "", line)
		print line
	}
	line = sprintf("%8s +--", "")
	for (i = 1; i <= SIZES; i++)
		line = line "+" (i < SIZES ? sprintf("%" STEP - 1 "s", "") : "")
	gsub(/\+ +/, "&", line)
	print line
	printf "%8s    %-14s%-14s%-14s%s\n```\n", "", "10", "100", "1,000", "10,000"
}

BEGIN {
	SIZES = 4
	STEP = 14
}
$1 == "grows" {
	curves[++n] = $2
	units[n] = $3
	for (i = 1; i <= SIZES; i++)
		values[n, i] = $(3 + i)
}
END {
	print "| | 10 | 100 | 1,000 | 10,000 | |"
	print "|---|--:|--:|--:|--:|---|"
	for (k = 1; k <= n; k++) {
		printf "| %s |", curves[k]
		for (i = 1; i <= SIZES; i++)
			printf (values[k, i] < 100 ? " %.1f |" : " %.0f |"), values[k, i]
		printf " %s |\n", units[k] == "us" ? "µs" : units[k]
	}
	plot("us", -1, 6, "100 ns,1 µs,10 µs,100 µs,1 ms,10 ms,100 ms,1 s")
	plot("bytes", 3, 5, "1 kB,10 kB,100 kB")
}' "$@"
