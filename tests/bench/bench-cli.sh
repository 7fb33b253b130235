#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# How long `crikeep status`, `explain` and `doctor` take on a node with many sandboxes, of which one
# is being created, and many processes, with crikeepd and without it; and explain once more with a
# history as long as it gets. The goal is 100 ms. For `make bench`; 20 seconds.
#
# shellcheck disable=SC1091,SC2034,SC2154 # variables are prelude.sh's
set -u

. "$(dirname "$0")/../prog/prelude.sh"
[ -x "$crikeepd" ] || { echo 'skip - bench-cli: built without crikeepd'; exit 0; }
run=$work/state socket=$work/runtime.sock cri=unix://$work/cri.sock sim='' daemon='' client=''
processes=600 # 200 pods of three
children=()
at_end() {
	[ ${#children[@]} = 0 ] || { kill "${children[@]}" && wait "${children[@]}"; } 2>/dev/null
	end client
	end daemon
	end sim
}
"$crikeep_sim" --listen="$socket" sandboxes=1000,containers=2000,create=1000s >/dev/null 2>&1 &
sim=$!
"$crikeepd" --state-dir "$run" --listen "$work/cri.sock" --unfiltered '' \
	--runtime "unix://$socket" --metrics "$work/metrics.sock" --set log.target=stderr \
	2>/dev/null &
daemon=$!
wait_for 300 test -S "$work/cri.sock" || exit 1
"$crikeep" drive --endpoint "$cri" --pod web --deadline 1000s >/dev/null 2>&1 &
client=$!
wait_for 100 "$crikeep" explain --state-dir "$run" default/web || exit 1

# each with a bigger environment than most: explain reads those
padding=$(head -c 4000 /dev/zero | tr '\0' x)
for ((i = 0; i < processes; i++)); do
	PADDING=$padding sleep 1000 &
	children+=($!)
done

# took COMMAND...: the median time of 11 runs, and of them the median of the processor's time, which
# tells more on a machine under load
took() {
	local TIMEFORMAT='%3R %3U %3S'
	for _ in 1 2 3 4 5 6 7 8 9 10 11; do
		{ time "$@" >/dev/null 2>&1; } 2>&1
	done >"$work/times"
	awk '{ print 1000 * $1 }' "$work/times" | sort -n | sed -n '6s/$/ ms, of the processor /p' |
		tr -d '\n'
	awk '{ print 1000 * ($2 + $3) }' "$work/times" | sort -n | sed -n '6s/$/ ms/p'
}
printf 'listen: %s\nmetrics: %s\nstate_dir: %s\nruntime: %s\n' "$work/cri.sock" \
	"$work/metrics.sock" "$run" "$socket" >"$work/crikeep.yaml"
three() { # three HOW: it is so with crikeepd and the runtime
	echo "status,  $1: $(took "$crikeep" status --state-dir "$run" --endpoint "$cri" \
		--socket "$work/metrics.sock")"
	echo "explain, $1: $(took "$crikeep" explain --state-dir "$run" default/web)"
	echo "doctor,  $1: $(took "$crikeep" doctor --config "$work/crikeep.yaml")"
}
all=(/proc/[0-9]*)
echo "processes: ${#all[@]}"
three 'both run'
end daemon
three 'crikeepd killed'

make_db=$build/tests/prog/make-db
[ -x "$make_db" ] || exit 0
long() { "$crikeep" explain --state-dir "$work/long" slow; }
"$make_db" "$work/long" long
echo "explain, 100,000 lines of history: $(took long)"
