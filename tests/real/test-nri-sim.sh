#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Real NRI plugins, on the newest Go stub and on v0.3.0, before crikeepd and the simulated runtime.
# Needs neither root nor containerd.
#
# usage: test-nri-sim.sh [SCENARIO...]
#
# A && B || C is meant; variables are shared with stage.sh
# shellcheck disable=SC1091,SC2015,SC2034,SC2086,SC2154,SC2317
set -u

here=$(cd "$(dirname "$0")" && pwd)
scenarios="$(echo R{1..42} H{1..10} O{1..8}) debts before_create asked_in_vain conflict
	validated updated old_stub long_list launched stalled frozen frozen_node
	frozen_policies demands"
scenarios=${*:-$scenarios}

. "$here/play.sh"
. "$here/stage.sh"
. "$here/nri-stage.sh"
. "$here/nri-pods.sh"
. "$here/nri-containers.sh"
. "$here/nri-rules.sh"
[ -x "$crikeepd" ] || skip_all 'crikeepd was not built'
need crictl nri nri-v030 relay
wanted=$scenarios
stage_dir=$(mktemp -d "${TMPDIR:-/tmp}/n.XXXXXX") || exit 99
trap 'rm -rf "$stage_dir"' EXIT

# ---- the stage: crictl -> crikeepd -> the simulated runtime ------------------------------------

socket=kept/sim.sock
nri=yes

pod() { # with a network of its own, whatever the simulator makes of it
	cat >"$d/$1-${2:-0}.pod" <<-END
		{"metadata":{"name":"$1","namespace":"default","uid":"uid-of-$1","attempt":${2:-0}},
		"log_directory":"$d/log/$1",
		"linux":{"cgroup_parent":"/k8s.io"}}
	END
	echo "$d/$1-${2:-0}.pod"
}
stage() { # stage [PARAMETERS [OPTION...]]
	parameters=${1:-}
	[ $# -eq 0 ] || shift
	options=("$@")
	echo 'timeout: 20' >"$d/crictl.yaml"
	crikeepd_start
}
stage_apart() { # stage_apart [PARAMETERS]: the runtime outlives crikeepd
	socket=sim.sock parameters='' options=()
	echo 'timeout: 20' >"$d/crictl.yaml"
	"$crikeep_sim" "listen=$d/sim.sock,log=$d/sim.log,state=$d/sim.state${1:+,$1}" \
		2>>"$d/sim.err" </dev/null &
	sim_pid=$!
	until_ 10 past version || return
	crikeepd_start
}
restage() { # from the beginning, with plugins
	nri=yes
	unstage >/dev/null 2>&1
	wait
	rm -rf "$d/kept" "$d"/*.sock "$d/sim.log"
	plugin_pids=()
	stage "$@"
}
crikeepd_start() {
	local runtime="sim:log=$d/sim.log${parameters:+,$parameters}" with=()
	[ "$socket" != sim.sock ] || runtime=unix://$d/sim.sock
	# no time runs out but those that a scenario shortens
	[ "$nri" = no ] || with=(--set=nri.enabled=true --set=nri.socket="$d/nri.sock"
		--set=nri.plugin_dir= --set=nri.config_dir=
		--set=nri.registration_timeout=30s --set=nri.request_timeout=15s)
	"$crikeepd" --runtime="$runtime" --listen="$d/cri.sock" --unfiltered="$d/all.sock" \
		--metrics= --state-dir="$d/kept" --ttl="$ttl" --hand-back=repeat \
		--set=log.target=stderr \
		"${with[@]}" "${options[@]}" 2>>"$d/crikeepd.log" </dev/null &
	crikeepd_pid=$!
	until_ 10 answers
}
unstage() {
	kill -KILL ${crikeepd_pid:-} ${sim_pid:-} "${plugin_pids[@]}" 2>/dev/null
	jobs -p | xargs -r kill -KILL 2>/dev/null
}

# from the runtime's log: seconds since its start, what, kind, id, name
moment() {
	awk -v what="$1" -v id="$2" '$2 == what && $4 == id { printf "%d\n", $1 * 1000; exit }' \
		"$d/sim.log"
}
happened() { [ -n "$(moment "$1" "$2")" ]; }
stop_begun() { happened stop "$1"; }
has_begun() { grep -q " begin $1 .* $2_" "$d/sim.log"; } # has_begun KIND NAME

play_all
