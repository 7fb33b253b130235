#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# crikeepd between an unmodified kubelet and a real containerd with a real runc, as root: what a
# slow node costs, counted by runc. The goal is one creation for each attempt that the kubelet asks
# for. The table of all scenarios is left in the build directory, in tests/real/test-node.table;
# `make check-node` prints it. Two scenarios are played straight at containerd, too: they show what
# crikeepd is for.
#
# usage: test-node.sh [SCENARIO]
#
# A && B || C is meant; variables are shared with node-stage.sh.
# shellcheck disable=SC1091,SC2015,SC2034,SC2086,SC2154,SC2317
set -u

here=$(cd "$(dirname "$0")" && pwd)
scenarios='slow_sandbox slow_sandbox_straight slow_sandbox_1.6 late_container both_late
	only_counting_many only_counting only_counting_late_container
	ordinary_use slow_start slow_start_straight slow_start_1.6 slower_start
	deleted_pod deleted_with_a_late_container
	crikeepd_killed kubelet_killed both_killed twenty_pods
	dead_sandbox dead_sandbox_slow moved moved_while_kept
	removed_while_away started_while_away'
at_once=4 # kubelets: each has many inotify instances
. "$here/play.sh"
. "$here/stage.sh"
. "$here/node-stage.sh"

command -v curl >/dev/null || skip_all 'there is no curl'
[ ! -e /sys/fs/cgroup/cgroup.controllers ] || skip_all 'control groups are of version 2 here'
[ "${1:-}" = inside ] || [ "$(id -u)" -ne 0 ] || need relay crictl containerd kubelet
enter "$@"
node_prepare || { echo 'not ok - the node is prepared'; exit 1; }

# node [1.6] [straight] [relay] [counting]: everything up; $began is when the first manifest came
node() {
	local s n=0 word runtime=2.4 way=crikeepd with=''
	for word; do
		case $word in
		1.6) runtime=1.6 ;;
		straight) way=straight ;;
		relay) with=relay ;;
		counting) way='only counts' with=relay fronted=yes more+=(--shadow) ;;
		esac
	done
	for s in $scenarios; do
		n=$((n + 1))
		[ "$s" != "${d##*/}" ] || port=$((20250 + n))
	done
	path="$way, containerd $runtime"
	[ $runtime = 1.6 ] || PATH=$tools/containerd:$PATH
	stage $with && groups_up || return
	kubelet_up "$d/$([ "$way" != straight ] && echo cri.sock || echo $socket)"
}
begin() { # begin POD...
	local p
	began=$(now)
	for p; do
		static_pod "$p"
	done
}
up_in() { # up_in SECONDS [N]
	until_ "$1" up "${2:-1}"
	status=$?
	took=$(since "$began")
	[ $status -eq 0 ] && up_after=$(seconds $took) || up_after="not in $1"
	return $status
}
seconds() { echo "$(($1 / 1000)).$(($1 % 1000 / 100))"; }
up_after='-'

# row SANDBOXES CONTAINERS: for the table, with what is wanted; "-" is not asserted
row() {
	local sandboxes containers restarts over
	sandboxes=$(runc_did create sandbox begin) containers=$(runc_did create container begin)
	restarts=$(restart_count) over=$(handed_over | paste -sd' ')
	printf '%s|%s|%s|%s|%s/%s|%s|%s/%s|%s|%s|%s\n' "$scenario" "$path" \
		"$(asked RunPodSandbox)+$(asked CreateContainer)+$(asked StartContainer)" \
		"$1" "$sandboxes" "$(runc_did create sandbox end=0)" \
		"$2" "$containers" "$(runc_did create container end=0)" \
		"${restarts:--}" "$up_after" "${over:--}" >"$stage_dir/${d##*/}.row"
	[ "$1" = - ] || check 'sandboxes that runc was asked for' is "$sandboxes" "$1"
	[ "$2" = - ] || check 'containers that runc was asked for' is "$containers" "$2"
}
not_restarted() { check 'the kubelet counts no restart' is "$(restart_count)" 0; }

nothing_left() { is "$(past pods -q)" '' && is "$(runc_list)" ''; }
nothing_runs() { is "$(runc_list)" ''; }
cleaned() { # the manifests go; what has ended is the kubelet's to remove, once a minute
	slow ''
	rm -f "$d"/manifests/*
	check 'nothing runs when the pod is deleted' until_ 60 nothing_runs
}
kept() { "$crikeep" --state-dir "$d/kept" list -a | grep -q KEPT; }
running_containers() { past ps -q --no-trunc; }

# ---- what is not slow --------------------------------------------------------------------------

ordinary_use() {
	local image='image: "docker.io/lab/busybox:1", imagePullPolicy: Never' metric='pod="w-n"'
	local others
	node || return
	began=$(now)
	static_pod w 'livenessProbe: {exec: {command: [cat, /hook]}, periodSeconds: 1},
	    lifecycle: {postStart: {exec: {command: [sh, -c, "echo started >/hook"]}}}'
	check 'the pod is up' up_in 30
	check 'a command in it, in one answer' until_ 10 hook_ran
	check 'a command in it, by a web socket' until_ 10 websocket_exec
	check 'the summary of statistics has it' until_ 30 answers_with w-n stats/summary
	check 'the running pods have it' answers_with w-n runningpods/
	check 'so have the metrics of cAdvisor' until_ 30 answers_with "$metric" metrics/cadvisor
	check 'and those of its resources' until_ 30 answers_with "$metric" metrics/resource
	others="{name: i, $image, command: ['true']}, {name: s, $image, restartPolicy: Always}"
	static_pod three 'readinessProbe: {exec: {command: [cat, /etc/hosts]}, periodSeconds: 1}' \
		"initContainers: [$others]"
	check 'one with an init container and a sidecar is ready' until_ 30 is_ready three-n
	check 'in their order' is "$(started three-n)" \
		'initContainers{i} initContainers{s} containers{c}'
	static_pod x 'command: [sh, -c, "exit 1"]'
	check 'one that ends is started again' until_ 60 ended_twice
	check 'the first one is still the same' is "$(begun w-n container | wc -l)" 1
	row - -
	cleaned
}
hook_ran() { is "$(kubelet_says 'run/default/w-n/c?cmd=cat+/hook' -X POST)" started; }
answers_with() { kubelet_says "$2" | grep -q "$1"; }
websocket_exec() {
	kubelet_says 'exec/default/w-n/c?command=echo&command=over&output=1' -N --output - \
		-H 'Connection: Upgrade' -H 'Upgrade: websocket' \
		-H 'Sec-WebSocket-Version: 13' -H 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==' \
		-H 'Sec-WebSocket-Protocol: v4.channel.k8s.io' | grep -aq over
}
is_ready() { # is_ready POD: its readiness probe has succeeded
	grep -q "SyncLoop (probe)\" probe=\"readiness\" status=\"ready\" pod=\"default/$1\"" \
		"$d/kubelet.log"
}
started() { # started POD: its containers, in the order in which they were started
	grep 'reason="Started"' "$d/kubelet.log" |
		sed -n "s/.*object=\"default.$1\" fieldPath=\"spec\.\([^\"]*\)\".*/\1/p" | xargs
}
ended_twice() { [ "$(begun x-n container | wc -l)" -ge 2 ]; }

# ---- slow creations and starts -----------------------------------------------------------------

slow_sandbox() { # [1.6]
	node "$@" || return
	slow 'w-n create:sandbox 15'
	begin w
	check 'the pod is up' up_in 75
	row 1 1
	not_restarted
	cleaned
}
slow_sandbox_1.6() { slow_sandbox 1.6; }
slow_sandbox_straight() {
	node straight || return
	slow 'w-n create:sandbox 15'
	begin w
	check 'the pod does not come up' not up_in 60
	row - -
	check 'while it is made again and again' test "$(runc_did create sandbox begin)" -gt 2
}
not() { ! "$@"; }

# by the relay's log: containerd creates a container without runc
container_creates() { is "$(grep -c ' CreateContainer begin' "$d/relay.log")" "$1"; }

late_container() {
	node relay || return
	relay hold CreateContainer 8
	begin w
	check 'the pod is up' up_in 75
	row 1 1
	check 'one CreateContainer reached the runtime' container_creates 1
	not_restarted
	relay clear
	cleaned
}

both_late() {
	node relay || return
	relay hold CreateContainer 8
	slow 'w-n create:sandbox 15'
	begin w
	check 'the pod is up' up_in 100
	row 1 1
	check 'one CreateContainer reached the runtime' container_creates 1
	not_restarted
	relay clear
	cleaned
}

# containerd runs `runc create` in StartContainer
start_of() { # start_of SECONDS [1.6]
	local id
	node "${@:2}" || return
	slow "w-n create:container $1"
	begin w
	check 'the pod is up' up_in $((${1%.*} + 30))
	id=$(begun w-n container)
	sleep 12 # a kubelet that took it for one to be made anew would have asked by then
	row 1 1
	not_restarted
	check 'it runs' runs "$id"
	cleaned
}
slow_start() { start_of 7.5; }
slow_start_1.6() { start_of 7.5 1.6; }
slower_start() { start_of 30; }
slow_start_straight() {
	node straight || return
	slow 'w-n create:container 7.5'
	begin w
	check 'the pod does not come up' not up_in 45
	row 1 -
	check 'while it is started again and again' test "$(runc_did create container begin)" -gt 2
}

# ---- pods that are deleted meanwhile -----------------------------------------------------------

deleted_pod() {
	node || return
	slow 'w-n create:sandbox 15'
	begin w
	sleep 4
	rm "$d/manifests/w.yaml"
	check 'the sandbox is made, or given up' until_ 30 sandbox_ended
	check 'it goes' until_ 100 nothing_left
	row 1 0
}
sandbox_ended() { grep -q ' create w-n sandbox [^ ]* end=' "$d/runc/calls.log"; }

deleted_with_a_late_container() {
	node relay || return
	relay hold CreateContainer 8
	begin w
	check 'the container is being made' until_ 30 container_creates 1
	sleep 3
	rm "$d/manifests/w.yaml"
	check 'everything goes' until_ 120 nothing_left
	row 1 -
	check 'one CreateContainer reached the runtime' container_creates 1
}

# ---- kill -9 -----------------------------------------------------------------------------------

# The service manager holds the connection that carries the creation, so it is made once.
crikeepd_killed() {
	managed=yes
	node || return
	slow 'w-n create:sandbox 15'
	begin w
	sleep 4
	check 'crikeepd lives again' lives_again kill -KILL "$(life)"
	check 'the pod is up' up_in 90
	row 1 1
	not_restarted
	cleaned
}
kubelet_killed() {
	node || return
	slow 'w-n create:sandbox 15'
	begin w
	sleep 4
	kubelet_kill
	check 'the kubelet starts again' kubelet_up "$d/cri.sock"
	check 'the pod is up' up_in 90
	row 1 1
	not_restarted
	cleaned
}
both_killed() {
	managed=yes
	node || return
	slow 'w-n create:sandbox 15'
	begin w
	sleep 4
	kubelet_kill
	check 'crikeepd lives again' lives_again kill -KILL "$(life)"
	check 'the kubelet starts again' kubelet_up "$d/cri.sock"
	check 'the pod is up' up_in 90
	row 1 1
	not_restarted
	cleaned
}

# ---- many, and again ---------------------------------------------------------------------------

begin_twenty() { # begin_twenty SECONDS: that long or longer takes each sandbox
	local i delays=() names=()
	for i in {1..20}; do
		names+=("p$i")
		delays+=("p$i-n create:sandbox $(($1 + i % 3))")
	done
	slow "${delays[@]}"
	begin "${names[@]}"
}
twenty_pods() {
	timeout=3s
	node || return
	begin_twenty 6
	check 'all are up' up_in 110 20
	row 20 20
	not_restarted
	cleaned
}

pause_dies() { # pause_dies SECONDS: the next sandbox takes that long
	local first pid
	node || return
	begin w
	check 'the pod is up' up_in 60
	first=$(begun w-n sandbox)
	slow "w-n create:sandbox $1"
	pid=$(runc --root "$d/runc/root/k8s.io" state "$first" |
		sed -n 's/.*"pid": \([0-9]*\),.*/\1/p')
	began=$(now)
	kill -KILL "$pid"
	check 'it is up again' up_in 80 2
	row 2 2
	cleaned
}
dead_sandbox() { pause_dies 0.1; }
dead_sandbox_slow() { pause_dies 15; }

# ---- the kubelet goes elsewhere ----------------------------------------------------------------

unchanged() { # IDS NUMBER
	is "$(running_containers | sort)" "$1" && is "$(runc_did create container begin)" "$2"
}

moved() {
	local before
	node straight || return
	path='straight, through, straight'
	begin p1 p2 p3
	check 'the pods are up' up_in 60 3
	before=$(running_containers | sort)
	kubelet_kill
	check 'the kubelet is up behind crikeepd' kubelet_up "$d/cri.sock"
	sleep 20
	check 'nothing has changed' unchanged "$before" 3
	static_pod p4
	check 'another pod is up' until_ 30 up 4
	before=$(running_containers | sort)
	kubelet_kill
	check 'the kubelet is up, straight' kubelet_up "$d/$socket"
	sleep 20
	check 'nothing has changed again' unchanged "$before" 4
	row 4 4
	not_restarted
	cleaned
}

moved_while_kept() {
	local id
	more+=(--ttl=30s --hand-back=repeat)
	node || return
	path='through, straight, through'
	slow 'w-n create:sandbox 12'
	begin w
	sleep 6
	kubelet_kill
	check 'the sandbox is kept' until_ 30 kept
	crikeepd_kill
	check 'the kubelet is up, straight' kubelet_up "$d/$socket"
	check 'the pod is up, in the sandbox that was kept' up_in 60
	id=$(begun w-n container)
	kubelet_kill
	check 'crikeepd starts again' crikeepd_start
	check 'the kubelet is up behind crikeepd' kubelet_up "$d/cri.sock"
	sleep 40 # longer than anything is kept
	check 'the container still runs, and is the only one' unchanged "$id" 1
	row 1 1
	not_restarted
	cleaned
}

# a container is kept, and nobody is there: $id
container_kept() {
	node relay || return
	relay keep CreateContainer
	relay hold CreateContainer 8
	begin w
	check 'the container is being made' until_ 30 container_creates 1
	kubelet_kill
	check 'it is kept' until_ 30 kept
	crikeepd_kill
	relay clear
	id=$(past ps -aq --no-trunc)
}
removed_while_away() {
	container_kept || return
	check 'it can be removed, straight at the runtime' past rm "$id"
	check 'crikeepd starts again' crikeepd_start
	check 'the kubelet starts again' kubelet_up "$d/cri.sock"
	check 'the pod is up' up_in 60
	check 'with another container' test "$(running_containers)" != "$id"
	row 1 1
	cleaned
}
started_while_away() {
	container_kept || return
	check 'it can be started, straight at the runtime' past start "$id"
	check 'crikeepd starts again' crikeepd_start
	check 'the kubelet starts again' kubelet_up "$d/cri.sock"
	sleep 30
	check 'it still runs, and is the only one' unchanged "$id" 1
	row 1 1
	not_restarted
	cleaned
}

# ---- crikeepd only counts ----------------------------------------------------------------------
# A relay stands on either side of it. What is slow ceases to be so when enough was given up, for
# without help no pod would ever be up. What is not slow has long deadlines, for the same reason.

count() { # a node whose crikeepd counts
	ttl=10m timeout=10s
	node counting
}

# given_up METHOD N: so many calls ended by their deadline, whoever said so first
given_up() {
	at_least "$(awk -v method="$1" '
		$3 == method && ($4 == "left" || $5 == "DeadlineExceeded") { over[$2] }
		END { for (call in over) n++; print n + 0 }' "$d/front.log")" "$2"
}
# counted SERIES KIND: by crikeepd
counted() {
	"$crikeep" exporter --once --socket="$d/metrics.sock" |
		sed -n "s/^crikeepd_$1_total{kind=\"$2\"} //p"
}
# by containerd's own log, how often it was asked for a KIND, said that the name is taken, and began
asked_of_containerd() {
	case $1 in
	sandbox) grep ' msg="RunPodSandbox for ' "$d/containerd.log" |
		grep -vc ' returns sandbox id \| failed, error" ' ;;
	container) grep -c ' msg="CreateContainer within sandbox .* for container ' \
		"$d/containerd.log" ;;
	esac
}
refused_by_containerd() { grep -c "msg=.* failed.*failed to reserve $1 name" "$d/containerd.log"; }
begun_by_containerd() { echo $(($(asked_of_containerd $1) - $(refused_by_containerd $1))); }

# as_the_runtime: what crikeepd has counted is what containerd has done. Full use saves what the
# kubelet did not get of that: for each of those it asked once more. $saved
as_the_runtime() {
	local kind method begun given
	saved=0
	for kind in sandbox container; do
		[ $kind = sandbox ] && method=RunPodSandbox || method=CreateContainer
		begun=$(begun_by_containerd $kind)
		given=$(grep -c " $method answer " "$d/front.log")
		saved=$((saved + begun - given))
		check "each creation of a $kind is counted" is "$(counted creates $kind)" \
			"$(asked_of_containerd $kind)"
		check "each $kind that the kubelet got is counted" is \
			"$(counted answers $kind)" "$given"
		check "each $kind that full use saves is counted" is \
			"$(counted shadow_saved $kind)" $((begun - given))
		echo "# $scenario: $kind: $(counted creates $kind) asked for, $begun begun," \
			"$given given, $(counted shadow_saved $kind) saved"
	done
	# with twenty at once, the kubelet may leave before containerd has called runc
	check 'runc was asked for no other sandbox' at_least "$(begun_by_containerd sandbox)" \
		"$(runc_did create sandbox begin)"
	check 'crikeep status says how many would be saved' grep -q "Would save: $saved (" \
		<("$crikeep" status --socket="$d/metrics.sock" --endpoint="unix://$d/cri.sock" \
			--state-dir="$d/kept")
}

pods_up() { # pods_up N: so many have a container that was started
	at_least "$(awk '$2 == "start" && $4 == "container" && $6 == "end=0" { print $3 }' \
		"$d/runc/calls.log" | sort -u | wc -l)" "$1"
}

# only_counts PODS: to the end
only_counts() {
	local saved
	check 'every pod is up then' until_ 60 pods_up "$1"
	row - -
	cleaned
	kill -STOP "$kubelet_pid" # it asks no more
	check 'no message is altered' until_ 60 unaltered
	sed "s/^/# $scenario: /" "$d/until"
	as_the_runtime
	check 'there was something to save' at_least "$saved" "$1"
	check 'it kept nothing' not test -e "$d/kept/crikeep.db"
}

only_counting() {
	count || return
	slow 'w-n create:sandbox 30'
	begin w
	check 'two sandboxes are given up' until_ 60 given_up RunPodSandbox 2
	slow ''
	only_counts 1
	check 'runc was asked for as many as containerd' is \
		"$(runc_did create sandbox begin)" "$(begun_by_containerd sandbox)"
}
only_counting_late_container() {
	count || return
	relay hold CreateContainer 15
	begin w
	check 'two containers are given up' until_ 60 given_up CreateContainer 2
	relay clear
	only_counts 1
}
only_counting_many() {
	count || return
	begin_twenty 30
	check 'twenty sandboxes are given up' until_ 60 given_up RunPodSandbox 20
	slow ''
	only_counts 20
}

# ---- the table ---------------------------------------------------------------------------------

table() {
	{
		echo 'scenario|path|asked for: sandbox+container+start|goal|sandboxes' \
			'begun/done|goal|containers begun/done|restarts|up after, s|late, then' \
			'handed over after, s'
		for s in $wanted; do
			[ ! -f "$stage_dir/$s.row" ] || cat "$stage_dir/$s.row"
		done
	} | column -t -s '|' -o '  '
}

(play_all)
status=$?
# half of the late sandboxes took no longer
median=$(for s in $wanted; do
	[ ! -f "$stage_dir/$s.row" ] || ! grep -q '|crikeepd,' "$stage_dir/$s.row" ||
		cut -d'|' -f10 "$stage_dir/$s.row" | tr ' ' '\n' | grep -vx -e - || :
done | sort -n | awk '{ t[NR] = $1 } END { print NR ? t[int((NR + 1) / 2)] : "unknown" }')
echo "note - half of the late sandboxes are with the kubelet within $median s"
table | tee "$build/tests/real/test-node.table"
exit $status
