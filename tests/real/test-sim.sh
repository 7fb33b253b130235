#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# An unmodified crictl and the simulated runtime: first without crikeepd, each of crictl's commands;
# then through it, with exact times, because the runtime's own log says when it made what. Needs
# neither root nor containerd.
#
# A && B || C is meant; variables are shared with stage.sh.
# shellcheck disable=SC1091,SC2015,SC2034,SC2086,SC2154,SC2317
set -u

here=$(cd "$(dirname "$0")" && pwd)
scenarios=${1:-'straight late_sandbox waiting_sandbox next_attempt unwanted_sandbox
	late_container waiting_container next_container_attempt killed_and_finished_later
	runtime_killed_while_kept'}

. "$here/play.sh"
. "$here/stage.sh"
[ -x "$crikeepd" ] || skip_all 'crikeepd was not built'
need crictl
wanted=$scenarios
stage_dir=$(mktemp -d) || exit 99
trap 'rm -rf "$stage_dir"' EXIT

# ---- the stage: crictl -> crikeepd -> the simulated runtime ------------------------------------

socket=sim.sock
more=(--hand-back=repeat) # it is looked at while it is kept

sim_start() {
	"$crikeep_sim" "listen=$d/sim.sock,log=$d/sim.log,state=$d/sim.state,$1" 2>>"$d/sim.err" \
		</dev/null &
	sim_pid=$!
	until_ 10 past version
}
sim_kill() {
	kill -KILL "$sim_pid"
	wait "$sim_pid" 2>/dev/null
	rm -f "$d/sim.sock"
}
stage() { # stage PARAMETERS
	echo 'timeout: 10' >"$d/crictl.yaml"
	sim_start "$1" && crikeepd_start
}
unstage() {
	[ -z "${crikeepd_pid:-}" ] || kill -KILL "$crikeepd_pid"
	[ -z "${sim_pid:-}" ] || kill -KILL "$sim_pid"
}

# from the runtime's log: seconds since its start, what, kind, id, name
# in ms
moment() {
	awk -v what="$1" -v id="$2" '$2 == what && $4 == id { printf "%d\n", $1 * 1000; exit }' \
		"$d/sim.log"
}
ids() { awk -v what="$1" -v kind="$2" '$2 == what && $3 == kind { print $4 }' "$d/sim.log"; }
happened() { [ -n "$(moment "$1" "$2")" ]; }
made_in() { echo $(($(moment create "$1") - $(moment begin "$1"))); } # ms
says() { # says WORD COMMAND...
	local word=$1
	shift
	try "$@"
	[ $status -eq 0 ] && [[ $out == *"$word"* ]] ||
		{ echo "exit status $status: $out $err"; return 1; }
}

# ---- without crikeepd --------------------------------------------------------------------------

straight() {
	local pod container
	echo 'timeout: 10' >"$d/crictl.yaml"
	sim_start create=100ms || return
	check 'version' says crikeep-sim past version
	check 'info' says '"RuntimeReady"' past info
	check 'info counts' says '"existing": 0' past info
	check 'pull' says sha256: past pull busybox
	check 'images' says docker.io/library/busybox past images
	check 'inspecti' says docker.io/library/busybox:latest past inspecti busybox
	check 'imagefsinfo' says usedBytes past imagefsinfo
	pod=$(past runp "$(pod web)")
	check 'runp' happened create "$pod"
	check 'pods' says "${pod:0:13}" past pods
	check 'pods by name, state and id' says "${pod:0:13}" past pods --name web --state Ready \
		--id "${pod:0:6}"
	check 'pods of another state' is "$(past pods -q --state NotReady)" ''
	check 'inspectp' says SANDBOX_READY past inspectp "${pod:0:8}"
	container=$(past create "$pod" "$(container main)" "$(pod web)")
	check 'create' happened create "$container"
	past events >"$d/events" 2>&1 &
	events=$!
	check 'start' past start "$container"
	check 'ps' says "${container:0:13}" past ps
	check 'ps of a pod' says "${container:0:13}" past ps -p "$pod"
	check 'inspect' says CONTAINER_RUNNING past inspect "$container"
	check 'exec -s' says simulated past exec -s "$container" true
	check 'update' past update --cpu-share 100 "$container"
	check 'stats' says "${container:0:13}" past stats
	check 'statsp' says "${pod:0:13}" past statsp
	check 'metricsp' says "$container" past metricsp
	check 'stop' past stop "$container"
	check 'events' until_ 5 grep -q CONTAINER_STOPPED_EVENT "$d/events"
	kill $events
	check 'ps does not show what has ended' is "$(past ps -q)" ''
	check 'rm' past rm "$container"
	check 'stopp' past stopp "$pod"
	check 'inspectp of what is stopped' says SANDBOX_NOTREADY past inspectp "$pod"
	check 'rmp' past rmp "$pod"
	check 'nothing is left' is "$(past pods -q)$(past ps -aq)" ''
	check 'rmi' past rmi busybox
	check 'no image is left' is "$(past images -q)" ''
}

# ---- through crikeepd: sandboxes ---------------------------------------------------------------

late_sandbox() {
	stage create=6s || return
	try cri runp -T 1s "$(pod web)"
	check 'the request runs into its deadline' timed_out
	id=$(ids begin sandbox)
	unseen_pod 'at the time-out' "$id"
	# nobody was told of this id: the runtime has the word on it, and knows none such
	cri stopp "$id" >"$d/stopp" 2>&1
	check 'the runtime makes it all the same' until_ 10 happened create "$id"
	check 'and takes its time' at_least "$(made_in "$id")" 6000
	check 'the unfiltered socket shows it' says "$id" all pods -q --no-trunc
	hidden_pod 'once it exists' "$id"
	try cri runp -T 1s "$(pod web)"
	check 'the same request again gets that id' answered "$id"
	check 'it was made once' is "$(ids begin sandbox)" "$id"
	check 'it is seen now, and alone' one_pod "$id"
	check 'it can be stopped and removed' cri rmp -f "$id"
	check 'nothing is left' is "$(past pods -q)" ''
}

waiting_sandbox() {
	local began
	stage create=4s || return
	began=$(now)
	try cri runp -T 1s "$(pod web)"
	check 'the request runs into its deadline' timed_out
	try cri runp -T 8s "$(pod web)"
	took=$(since "$began")
	check 'a repeat that waits gets the id' answered "$(ids create sandbox)"
	check 'not before it exists' at_least "$took" 4000
	check 'it was made once' is "$(ids begin sandbox)" "$out"
}

next_attempt() {
	local first
	stage create.sandbox=3s || return
	try cri runp -T 1s "$(pod web)"
	first=$(ids begin sandbox)
	check 'attempt 0 exists' until_ 6 happened create "$first"
	try cri runp -T 8s "$(pod web 1)"
	check 'attempt 1 gets a sandbox' is $status 0
	check 'another one' test "$out" != "$first"
	check 'attempt 0 was stopped before attempt 1 was begun' test "$(moment stop "$first")" \
		-le "$(moment begin "$out")"
	check 'and removed within seconds' until_ 5 happened remove "$first"
	check 'attempt 1 is seen, and alone' one_pod "$out"
}

unwanted_sandbox() {
	ttl=5s # no shorter than a deadline seen
	stage create=3s || return
	try cri runp -T 1s "$(pod web)"
	id=$(ids begin sandbox)
	check 'it goes when nobody wants it' until_ 15 happened remove "$id"
	took=$(($(moment remove "$id") - $(moment create "$id")))
	check 'after the TTL' at_least "$took" 4900
	check 'nothing is left' is "$(past pods -q)" ''
}

# ---- through crikeepd: containers --------------------------------------------------------------

late_container() {
	local pod
	stage create.container=6s || return
	pod=$(cri runp "$(pod web)")
	try cri create -T 2s "$pod" "$(container main)" "$(pod web)"
	check 'the request runs into its deadline' timed_out
	id=$(ids begin container)
	unseen_container 'at the time-out' "$id"
	cri stop "$id" >"$d/stop" 2>&1
	check 'the runtime makes it all the same' until_ 10 happened create "$id"
	check 'and takes its time' at_least "$(made_in "$id")" 6000
	check 'the unfiltered socket shows it' says "$id" all ps -aq --no-trunc
	hidden_container 'once it exists' "$id"
	try cri create -T 2s "$pod" "$(container main)" "$(pod web)"
	check 'the same request again gets that id' answered "$id"
	check 'it was made once' is "$(ids begin container)" "$id"
	check 'it is seen now, and alone' one_container "$id"
	check 'it can be started' cri start "$id"
	check 'it can be removed' cri rm -f "$id"
}

waiting_container() {
	local pod began
	stage create.container=4s || return
	pod=$(cri runp "$(pod web)")
	began=$(now)
	try cri create -T 2s "$pod" "$(container main)" "$(pod web)"
	check 'the request runs into its deadline' timed_out
	try cri create -T 8s "$pod" "$(container main)" "$(pod web)"
	took=$(since "$began")
	check 'a repeat that waits gets the id' answered "$(ids create container)"
	check 'not before it exists' at_least "$took" 4000
	check 'it was made once' is "$(ids begin container)" "$out"
}

next_container_attempt() {
	local pod first
	stage create.container=3s || return
	pod=$(cri runp "$(pod web)")
	try cri create -T 2s "$pod" "$(container main)" "$(pod web)"
	first=$(ids begin container)
	check 'attempt 0 exists' until_ 6 happened create "$first"
	try cri create -T 8s "$pod" "$(container main 1)" "$(pod web)"
	check 'attempt 1 gets a container' is $status 0
	check 'another one' test "$out" != "$first"
	check 'attempt 0 is removed within seconds' until_ 5 happened remove "$first"
	check 'attempt 1 is seen, and alone' one_container "$out"
}

# ---- through crikeepd: deaths ------------------------------------------------------------------

killed_and_finished_later() {
	stage create=9s,cancel=finish || return
	try cri runp -T 1s "$(pod web)"
	id=$(ids begin sandbox)
	crikeepd_kill
	crikeepd_start
	check 'it is still being made when crikeepd is back' test -z "$(moment create "$id")"
	check 'it comes to exist' until_ 12 happened create "$id"
	hidden_pod 'then' "$id"
	try cri runp -T 5s "$(pod web)"
	check 'the same request again gets that id' answered "$id"
	check 'it was made once' is "$(ids begin sandbox)" "$id"
	check 'it is seen now, and alone' one_pod "$id"
}

runtime_killed_while_kept() {
	stage create=3s || return
	try cri runp -T 1s "$(pod web)"
	id=$(ids begin sandbox)
	check 'it exists' until_ 6 happened create "$id"
	sim_kill
	sim_start create=3s
	check 'crikeepd is connected again' until_ 10 cri pods
	hidden_pod 'after the runtime was killed' "$id"
	try cri runp -T 5s "$(pod web)"
	check 'the same request again gets that id' answered "$id"
	check 'it was made once' is "$(ids begin sandbox)" "$id"
}

play_all
