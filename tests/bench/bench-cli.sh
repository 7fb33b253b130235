#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# How long `crikeep status`, `explain` and `doctor` take on a node with many sandboxes, of which one
# is being created, with crikeepd and without it. The goal is 100 ms. For `make bench`; 10 seconds.
#
# shellcheck disable=SC1091,SC2034,SC2154 # variables are prelude.sh's
set -u

. "$(dirname "$0")/../prog/prelude.sh"
[ -x "$crikeepd" ] || { echo 'skip - bench-cli: built without crikeepd'; exit 0; }
run=$work/state socket=$work/runtime.sock cri=unix://$work/cri.sock sim='' daemon='' client=''
at_end() {
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

# took COMMAND...: of 11 runs the one with the median time
took() {
	local began ended
	for _ in 1 2 3 4 5 6 7 8 9 10 11; do
		began=${EPOCHREALTIME/./}
		"$@" >/dev/null 2>&1
		ended=${EPOCHREALTIME/./}
		echo $(((ended - began) / 100))
	done | sort -n | sed -n '6s/\(.\)$/.\1 ms/; 6s/^\./0./p; 6p' | head -n 1
}
printf 'listen: %s\nmetrics: %s\nstate_dir: %s\nruntime: %s\n' "$work/cri.sock" \
	"$work/metrics.sock" "$run" "$socket" >"$work/crikeep.yaml"
three() { # three HOW: it is so with crikeepd and the runtime
	echo "status,  $1: $(took "$crikeep" status --state-dir "$run" --endpoint "$cri" \
		--socket "$work/metrics.sock")"
	echo "explain, $1: $(took "$crikeep" explain --state-dir "$run" default/web)"
	echo "doctor,  $1: $(took "$crikeep" doctor --config "$work/crikeep.yaml")"
}
three 'both run'
end daemon
three 'crikeepd killed'
