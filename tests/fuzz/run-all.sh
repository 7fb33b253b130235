#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# run-all.sh SRCDIR RUNS JOBS MERGE TARGET... - runs each fuzz target RUNS times under libFuzzer,
# JOBS at a time, and prints a table. For `make fuzz-all`, in build-fuzz. What is found stays in
# found/NAME; with MERGE=yes, what reaches more than the seeds of tests/fuzz/corpus is copied to
# them, minimised.
set -u

# one SRCDIR RUNS MERGE TARGET - a row of the table; fails if the target does
one() {
	local srcdir=$1 runs=$2 merge=$3 program=$4 name=${4##*/fuzz-} seeds=() dir status corpus
	corpus=$srcdir/tests/fuzz/corpus
	mkdir -p "found/$name"
	while read -r dir; do
		seeds+=("$srcdir/$dir")
	done < <(cat "$corpus/$name.dirs" 2>/dev/null)
	[ ! -d "$corpus/$name" ] || seeds+=("$corpus/$name")
	setarch -R "$program" -runs="$runs" -max_len=65536 -print_final_stats=1 -timeout=60 \
		-artifact_prefix="found/$name-" "found/$name" "${seeds[@]}" >"found/$name.log" 2>&1
	status=$?
	if [ "$status" = 0 ] && [ "$merge" = yes ]; then
		mkdir -p "$corpus/$name"
		setarch -R "$program" -merge=1 -max_len=4096 "$corpus/$name" "${seeds[@]}" \
			"found/$name" >"found/$name.merge.log" 2>&1 || status=$?
	fi
	awk -v name="$name" -v status="$status" '
		/INITED / { for (i = 1; i < NF; i++) if ($i == "cov:") before = $(i + 1) }
		/(INITED|DONE) / { for (i = 1; i < NF; i++) {
			if ($i == "cov:") paths = $(i + 1)
			if ($i == "corp:") corpus = $(i + 1)
		} }
		/^Done / { seconds = $5 }
		/^stat::number_of_executed_units:/ { runs = $2 }
		/^stat::new_units_added:/ { new = $2 }
		END {
			sub(/\/.*/, "", corpus)
			printf "%-16s %12d %7d %6d %6d %6d %8d  %s\n", name, runs, corpus, new,
				paths, paths - before, seconds, status ? "FAILED" : "ok"
		}' "found/$name.log"
	return "$status"
}

if [ "${1:-}" = --one ]; then
	shift
	one "$@"
	exit
fi
if [ $# -lt 5 ]; then
	echo "usage: $0 SRCDIR RUNS JOBS MERGE TARGET..." >&2
	exit 2
fi
srcdir=$1 runs=$2 jobs=$3 merge=$4
shift 4
printf '%-16s %12s %7s %6s %6s %6s %8s\n' target executions corpus new paths more seconds
table=$(mktemp) || exit 1
trap 'rm -f "$table"' EXIT
printf '%s\n' "$@" | xargs -P "$jobs" -n 1 "$0" --one "$srcdir" "$runs" "$merge" | tee "$table"
status=${PIPESTATUS[1]}
awk '{ n += $2 } END { printf "%-16s %12d\n", "all", n }' "$table"
[ "$status" = 0 ]
