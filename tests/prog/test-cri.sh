#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# crikeep pods and crikeep drive against crikeepd's simulated runtime, and against crikeepd before
# it. Golden output lies in golden/, as for test-cli.sh; ids, uids and times are filtered.
#
# A && B || C is meant; functions are called by check.
# shellcheck disable=SC1091,SC2015,SC2154,SC2317
set -u

. "$(dirname "$0")/prelude.sh"
data=$src/tests/data/kubelet-retries sock=$work/sim.sock pids=()
export CONTAINER_RUNTIME_ENDPOINT=unix://$sock
at_end() { stop; }

filter() {
	sed -E -e 's/[0-9a-f]{64}/ID/g; s/^[0-9a-f]{13} /ID            /' \
		-e 's/[0-9a-f]{8}-[0-9a-f-]{27}/UID/g; s/ *[0-9]+\.[0-9]{3}s/ N.NNNs/g' \
		-e 's/("?[a-z_]*seconds"?: *)[0-9.]+/\1N/; s/ *<?\b[0-9]+s\b/ Ns/' \
		-e 's/[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z/TIME/' -e "s|$work|WORK|g"
}
stop() {
	[ ${#pids[@]} = 0 ] || { kill -KILL "${pids[@]}" && wait "${pids[@]}"; } 2>/dev/null
	pids=()
}
# start SOCKET PROGRAM ARGUMENT...: until it listens
start() {
	local socket=$1 i
	shift
	"$@" >"$work/log" 2>&1 &
	pids+=($!)
	for ((i = 0; i < 200; i++)); do
		[ -S "$socket" ] && return
		kill -0 $! 2>/dev/null || break
		sleep 0.05
	done
	cat "$work/log"
	exit 99
}
sim() { # sim PARAMETERS: a fresh runtime and nothing else
	stop
	rm -f "$sock"
	start "$sock" "$crikeep_sim" "listen=$sock,$1"
}
# has 'PATH = VALUE'...: the JSON in $out says so;  value PATH: what it says, without quotes
has() {
	local line
	"$read_tree" json <"$work/out" >"$work/tree" || return 1
	for line; do
		grep -qFx -- "$line" "$work/tree" ||
			{ echo "not: $line"; cat "$work/tree"; return 1; }
	done
}
value() { "$read_tree" json <"$work/out" | sed -n "s/^$1 = //p" | tr -d '"'; }
# "ABORTED = 1,"
errors() { "$read_tree" json <"$work/out" | sed -n 's/^\.errors\.//p' | tr '\n' ','; }

if ! [ -x "$crikeepd" ]; then
	echo 'skip - pods and drive: built without crikeepd'
	exit 0
fi

# ---- no answer is no empty answer --------------------------------------------------------------

golden pods-nobody 2 pods
: >"$work/file"
golden pods-no-socket 2 pods --endpoint "unix://$work/file"
golden pods-no-endpoint 2 pods --endpoint tcp://127.0.0.1:1
golden drive-nobody 2 drive --pod web-0 -o json
sim fail.list=2
golden pods-failed 2 pods -o json
golden pods-failed-table 2 pods
golden pods-none 0 pods
golden pods-none-json 0 pods -o json
unanswered() { # somebody who listens and says nothing
	sim create=0ms
	kill -STOP "${pids[0]}"
	run 2 pods --timeout 200ms && [ -z "$out" ] && [[ $err == *DEADLINE_EXCEEDED* ]] &&
		run 1 drive --pod web-0 --deadline 100ms --retry 50ms --give-up 200ms -o json &&
		[ "$(errors)" = 'DEADLINE_EXCEEDED = 2,' ]
}
check 'a server that says nothing is waited for no longer than said' unanswered

# ---- drive -------------------------------------------------------------------------------------

sim fail.sandbox=2
golden drive 0 drive --pod web-0 --uid 11111111-2222-3333-4444-555555555555 --retry 20ms
golden pods 0 pods
golden drive-json 0 drive --pod web-1 --namespace prod --container app --image busybox \
	--runtime-handler '' -o json
golden drive-yaml 0 drive --pod web-2 --host-network -o yaml
repeated() { # on a runtime without memory of what it has made, the name is taken
	run 1 drive --pod web-0 --uid 11111111-2222-3333-4444-555555555555 --retry 50ms \
		--give-up 100ms -o json &&
		has '.id = null' && [ "$(value .requests)" -ge 2 ] &&
		[ "$(errors)" = "UNKNOWN = $(value .requests)," ]
}
check 'the same pod makes the same request' repeated
attempts() {
	run 0 drive --pod web-0 --uid 11111111-2222-3333-4444-555555555555 --attempt 1 -o json &&
		has '.steps[0].attempt = 1' && sandbox=$(value .id) &&
		run 0 drive --pod web-0 --uid 11111111-2222-3333-4444-555555555555 --container app \
		--image busybox \
			--sandbox "$sandbox" --attempt 3 -o json &&
		has '.steps[0].attempt = 3' ".steps[0].sandbox_id = \"$sandbox\""
}
check 'another attempt, and a container in a sandbox that is there' attempts
given_up() {
	sim create=1m
	# at 0, 1.5 and 3 s; a busy machine may be late by a second
	run 1 drive --pod web-0 --deadline 1s --retry 500ms --give-up 4s -o json &&
		[ "$(errors)" = 'DEADLINE_EXCEEDED = 3,' ] && has '.requests = 3' &&
		[ "$(grep -cE '^\.steps\[0\]\.tries\[.\]\.seconds = (0\.[1-9]|1\.)' \
			"$work/tree")" = 3 ]
}
check 'each request has its deadline, and the last its end' given_up
progress() {
	script -qec "$crikeep drive --pod web-0 --deadline 200ms --retry 200ms --give-up 300ms" \
		/dev/null \
		</dev/null >"$work/screen"
	grep -q $'\rRunPodSandbox .*request 1  waiting' "$work/screen" &&
		tail -n 1 "$work/screen" | grep -q 'gave up after'
}
check 'a terminal shows what drive is waiting for' progress
recorded() {
	sim create=0ms
	run 0 drive --request "$data/001-RunPodSandbox-api.bin" -o json &&
		! has '.steps[0].pod = null' >/dev/null &&
		# its sandbox is not there
		run 1 drive --request "$data/011-CreateContainer-api-main.bin" --give-up 10ms \
			-o json &&
		has '.steps[0].rpc = "CreateContainer"' '.steps[0].container = "main"'
}
check 'a recorded request is known by its bytes' recorded
truncated() {
	head -c 50 "$data/001-RunPodSandbox-api.bin" >"$work/short.bin"
	run 2 drive --request "$work/short.bin" && [[ $err == *neither* ]] &&
		run 1 drive --request "$work/short.bin" --rpc RunPodSandbox --give-up 10ms \
		-o json &&
		[ "$(errors)" = 'INTERNAL = 1,' ] && run 2 drive --request "$work/nowhere" &&
		[[ $err == *'cannot read'* ]]
}
check 'what is no request is sent only when told' truncated

restarted() {
	sim create=1m
	"$crikeep" drive --pod web-0 --deadline 5s --retry 100ms --give-up 20s -o json \
		>"$work/out" 2>"$work/err" &
	local driver=$!
	sleep 0.3
	sim create=0ms
	wait "$driver" && [[ $(errors) =~ ^'UNAVAILABLE = '[0-9]+,$ ]] &&
		[[ $(value .seconds) =~ ^[0-4]\. ]]
}
check 'a runtime that restarts is dialled again' restarted

# ---- conflicts ---------------------------------------------------------------------------------

sim create=0ms
for a in 0 1; do run 0 drive --pod twin --uid u1 --attempt $a; done
run 0 drive --pod one --uid u2
run 0 drive --pod other --uid u2
run 0 drive --pod fine --uid u3
golden pods-conflicts 1 pods
golden pods-conflicts-json 1 pods -o json
quiet() {
	run 1 pods -q && [ "$(wc -l <"$work/out")" = 5 ] && ! grep -vqE '^[0-9a-f]{64}$' "$work/out"
}
check 'ids only' quiet
hostile() {
	run 0 drive --pod $'web\x1b[31m' --namespace $'n\ns' --uid u4 && run 1 pods --no-trunc &&
		! LC_ALL=C grep -P '[\x00-\x09\x0b-\x1f\x7f]' "$work/out" && run 1 pods -o json &&
		has '.pods[5].uid = "u4"' && ! has '.pods[6].uid = "u4"' >/dev/null
}
check 'nothing a runtime says reaches the terminal unescaped' hostile
on_80() {
	script -qec "stty cols 80; $crikeep pods" /dev/null </dev/null | tr -d '\r' |
		sed '/^conflict/,$d' >"$work/screen"
	[ "$(wc -l <"$work/screen")" = 7 ] && ! grep -E '.{81}' "$work/screen"
}
check 'pods fit into 80 columns' on_80

# ---- before crikeepd ---------------------------------------------------------------------------

kept() {
	stop
	start "$work/keep.sock" "$crikeepd" --runtime sim:create=800ms --state-dir "$work/state" \
		--listen "$work/keep.sock" \
		--unfiltered "$work/all.sock" --metrics ''
	export CONTAINER_RUNTIME_ENDPOINT=unix://$work/keep.sock
	run 0 drive --pod web-0 --deadline 300ms --retry 100ms --give-up 20s -o json || return 1
	local id
	id=$(value .id)
	[ "$(value .requests)" -ge 3 ] &&
		! errors | tr , '\n' | grep -vE '^(DEADLINE_EXCEEDED|UNAVAILABLE) |^$' &&
		run 0 pods -q && [ "$out" = "$id" ] && run 0 pods -q --endpoint "$work/all.sock" &&
		[ "$out" = "$id" ]
}
check 'what a runtime alone never hands over, crikeepd does' kept

# ---- the command line --------------------------------------------------------------------------

golden usage-drive-nothing 2 drive
golden usage-drive-both 2 drive --pod web-0 --request x
golden usage-drive-nameless 2 drive --uid u1
golden usage-drive-rpc 2 drive --request x --rpc Version
golden usage-drive-image 2 drive --pod web-0 --container app
golden usage-drive-sandbox 2 drive --pod web-0 --sandbox s1
golden usage-drive-attempt 2 drive --pod web-0 --attempt -1
golden usage-drive-deadline 2 drive --pod web-0 --deadline soon
golden usage-drive-api 2 drive --pod web-0 --api v2
golden usage-pods-too-much 2 pods web-0
check_json
exit "$failed"
