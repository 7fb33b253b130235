#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# crikeepd between `crikeep drive` and a real containerd, as root and without Go: one request,
# repeated until its id comes back, whatever is killed meanwhile; in both versions of CRI. What
# happened is read from runc.
#
# usage: test-drive.sh [SCENARIO]
#
# A && B || C is meant; variables are shared with stage.sh.
# shellcheck disable=SC1091,SC2015,SC2034,SC2086,SC2154,SC2317
set -u

here=$(cd "$(dirname "$0")" && pwd)
scenarios='driven driven_v1alpha2 many_driven driven_through_kill driven_through_kills_of_both
	driven_container two_tell_apart'
. "$here/play.sh"
. "$here/stage.sh"
enter "$@"

drive() { # drive SOCKET OPTION...: what it reports goes to $d/report
	local socket=$1
	shift
	"$crikeep" drive --endpoint "unix://$d/$socket" --host-network --deadline 2s --retry 500ms \
		--give-up 40s -o yaml "$@" \
		>"$d/report"
}
field() { sed -n "0,/^$1: /s/^$1: \"\?\([^\"]*\)\"\?$/\1/p" "$d/report"; }
pods() { "$crikeep" pods --endpoint "unix://$d/$1" -q --no-trunc "${@:2}"; }
# seen_alone ID: this one is all there is, for the kubelet, for the runtime and for runc
seen_alone() {
	is "$(pods cri.sock -a)" "$1" && is "$(pods containerd.sock -a)" "$1" &&
		is "$(runc_list)" "$1 running"
}

driven() {
	stage || return
	slow 'web create 5'
	try drive cri.sock --pod web "$@"
	id=$(begun web sandbox)
	check 'the client gets the id' is "$status:$(field id)" "0:$id"
	check 'with its third request or so' at_least "$(field requests)" 3
	check 'not before the sandbox exists' at_least "$took" 4900
	check 'it was created once' is "$(creations web sandbox)" 1
	check 'it is seen, and alone' seen_alone "$id"
}
driven_v1alpha2() { driven --api v1alpha2; }

# a node that starts: a dozen pods at a time, each slower than its client waits
many_driven() {
	local i ids=()
	stage || return
	slow '* create 4'
	for i in {1..12}; do
		"$crikeep" drive --endpoint "unix://$d/cri.sock" --host-network --pod "web-$i" \
			-o yaml >"$d/report-$i" &
		ids+=($!)
	done
	wait "${ids[@]}"
	check 'each client gets an id' is "$(cat "$d"/report-* | grep -c '^id: "[0-9a-f]\{64\}"')" \
		12
	check 'each of them timed out before' is \
		"$(grep -l '^  DEADLINE_EXCEEDED' "$d"/report-* | wc -l)" 12
	check 'each sandbox was created once' is \
		"$(grep -c ' create web-.* sandbox .* begin' "$d/runc/calls.log")" 12
	check 'the ids are those that run' \
		is "$(sed -n 's/^id: "\(.*\)"/\1 running/p' "$d"/report-* | sort)" \
		"$(runc_list | sort)"
	check 'and those that are seen' is "$(pods cri.sock | sort)" \
		"$(pods containerd.sock -a | sort)"
}

# several times: while it is being made, which it takes up at the restart, and while it is kept
driven_through_kill() {
	local client kills
	stage || return
	slow 'web create 4'
	drive cri.sock --pod web &
	client=$!
	for kills in 1 2; do
		sleep 1
		crikeepd_kill
		slow ''
		check "crikeepd starts again, $kills" crikeepd_start
	done
	wait $client
	check 'the client gets an id' is $? 0
	check 'it is seen, and alone' until_ 10 seen_alone "$(field id)"
	sleep 5 # what the runtime was told first would be there by now
	check 'and stays alone' seen_alone "$(field id)"
}

driven_through_kills_of_both() {
	local client
	stage || return
	slow 'web create 4'
	drive cri.sock --pod web &
	client=$!
	sleep 1
	containerd_kill
	crikeepd_kill
	slow ''
	check 'containerd starts again' "$lab/containerd.sh" start "$d"
	check 'crikeepd starts again' crikeepd_start
	wait $client
	check 'the client gets an id' is $? 0
	check 'it is seen, and alone' until_ 10 seen_alone "$(field id)"
}

# containerd does not run runc to create a container; a relay with Go 1.19 is slow for it
driven_container() {
	local sandbox why
	why=$(tool relay) || { echo "skip - $scenario: $why"; return; }
	stage relay || return
	drive cri.sock --pod web --uid u-1
	sandbox=$(field id)
	check 'the sandbox is there' seen_alone "$sandbox"
	relay hold CreateContainer 5
	try drive cri.sock --pod web --uid u-1 --sandbox "$sandbox" \
		--container main --image docker.io/lab/busybox:1
	check 'the client gets the id' is $status 0
	check 'not before the answer comes' at_least "$took" 4900
	check 'it was asked for once' is "$(grep -c ' CreateContainer begin' "$d/relay.log")" 1
	check 'of the container that exists' test \
		-d "$d/state/io.containerd.grpc.v1.cri/containers/$(field id)"
}

# what is not there is not what could not be listed
two_tell_apart() {
	stage || return
	try pods cri.sock
	check 'no pods are an empty list' is "$status:$out" 0:
	containerd_kill
	try pods cri.sock
	check 'no runtime is an error' is $status 2
}

play_all
