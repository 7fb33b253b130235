#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# crikeepd between an unmodified crictl and a real containerd with a real runc, as root: results
# that come too late, attempts that replace them, and what is left after kill -9 of either daemon.
# Every scenario has a containerd, a runc and a crikeepd of its own in its own directory, so many
# run at a time. Nothing outlives the script but its verdict.
#
# usage: test-containerd.sh [SCENARIO]
#
# A && B || C is meant; variables are shared with stage.sh.
# shellcheck disable=SC1091,SC2015,SC2034,SC2086,SC2154,SC2317
set -u

here=$(cd "$(dirname "$0")" && pwd)
scenarios='plain_use every_spelling every_spelling_newest offered_sandbox late_sandbox
	waiting_sandbox next_attempt next_attempt_early
	unwanted_sandbox evicted_by_hand full_disk late_container next_container_attempt
	unwanted_container late_start stopped_while_starting killed_while_starting repeated_teardown
	teardown_over_a_restart
	dropped_connection frozen_container stopped_runtime frozen_and_removed
	killed_while_kept killed_while_creating killed_before_the_end killed_and_unwanted
	killed_while_evicting moved_straight_and_back asked_to_end another_boot
	held_while_killed held_while_restarted held_over_many_lives held_while_starting
	runtime_killed_while_kept runtime_killed_while_creating runtime_killed_while_evicting'
. "$here/play.sh"
. "$here/stage.sh"

[ "${1:-}" = inside ] || [ "$(id -u)" -ne 0 ] || need relay crictl containerd
enter "$@"
more=(--hand-back=repeat) # most look at what is kept

refused() { # COMMAND...: whatever it is about
	try "$@"
	[ $status -ne 0 ] && [[ $err == *'code = PermissionDenied'* ||
		$err == *'code = Unimplemented'* ]] ||
		{ echo "exit status $status: $out $err"; return 1; }
}

kept() { [[ $("$crikeep" --state-dir="$d/kept" list --no-trunc --state=kept) == *"$1"* ]]; }
shown_to_all() { all pods -q --no-trunc | grep -qx "$1"; }
container_shown_to_all() { all ps -aq --no-trunc | grep -qx "$1"; }

# only_pod ID: for runc, too
only_pod() { one_pod "$1" && is "$(runc_list)" "$1 running"; }
nothing_left() { is "$(past pods -q)" '' && is "$(runc_list)" ''; }

not() { ! "$@"; }

# cut_short SECONDS: a sandbox whose creation takes so long, and whose client has gone: $id
cut_short() {
	slow "web create $1"
	try cri runp -T 1s "$(pod web)"
	check 'the request runs into its deadline' timed_out
	id=$(first_begun web sandbox)
}
late() { # until it runs
	cut_short 6
	check 'the sandbox runs afterwards' until_ 15 runs "$id"
	slow ''
}

# ---- what is not slow --------------------------------------------------------------------------

# the same words through crikeepd and past it, but for crictl's own time and process
same() { diff <(cri "$@" 2>&1 | stampless) <(past "$@" 2>&1 | stampless); }
stampless() { sed -E 's/time="[^"]*"|^E[0-9]{4} [0-9:.]+ +[0-9]+ //'; }

plain_use() {
	local sandbox second id words name
	stage || return
	sandbox=$(cri runp "$(pod web)")
	check 'a sandbox in time' only_pod "$sandbox"
	id=$(cri create "$sandbox" "$(container main)" "$(pod web)")
	check 'a container in time' one_container "$id"
	check 'is started' cri start "$id"
	check 'and runs' runs "$id"
	check 'a command in it, in one answer' is "$(cri exec -s "$id" echo 'one two')" 'one two'
	check 'a command in it, streamed' is "$(cri exec "$id" sh -c 'echo three; echo four')" \
		$'three\nfour'
	check 'a status of a command is passed on' test \
		"$(cri exec -s "$id" sh -c 'exit 7' 2>&1 | grep -c 'exit.* 7')" -gt 0
	check 'its limits are changed' cri update --cpu-share 512 "$id"
	for words in version info 'pods -v' 'ps -a -o json' 'inspect CONTAINER' 'inspect PREFIX' \
		'inspectp SANDBOX' \
		'inspect no-such-thing' images 'inspecti docker.io/lab/busybox:1' \
		'inspecti no-such-image' 'rmi no-such-image' \
		runtime-config; do
		name=$words
		words=${words/CONTAINER/$id} words=${words/PREFIX/${id:0:6}} \
			words=${words/SANDBOX/$sandbox}
		check "the same as without crikeepd: $name" same $words
	done
	try cri runp "$(pod web)"
	check 'a request answered before gets the same answer again' answered "$sandbox"
	second=$(cri runp "$(pod db)")
	check 'another pod beside it' is "$(cri pods -q --no-trunc | sort)" \
		"$(printf '%s\n' "$sandbox" "$second" | sort)"
	check 'is stopped' cri stopp "$second"
	check 'and removed' cri rmp "$second"
	check 'the container is stopped' cri stop -t 1 "$id"
	check 'and removed, alone' cri rm "$id"
	check 'the first pod is still there' only_pod "$sandbox"
	check 'and is removed by force' cri rmp -f "$sandbox"
	check 'nothing is left' nothing_left
}

# ---- the path of a call ------------------------------------------------------------------------

service=/runtime.v1.RuntimeService
spellings=("$service/ListPodSandbox" /runtime.v1alpha2.RuntimeService/ListPodSandbox
	"${service#/}/ListPodSandbox" runtime.v1alpha2.RuntimeService/ListPodSandbox
	"/$service/ListPodSandbox" "$service//ListPodSandbox" "$service/ListPodSandbox/"
	"$service/ListPodSandbox?" "$service/ListPodSandbox?a=b" "$service/ListPodSandbox#a"
	"$service/%4cistPodSandbox" "/runtime.v1%2eRuntimeService/ListPodSandbox"
	"$service/listPodSandbox" /runtime.v1.runtimeservice/ListPodSandbox
	"$service.ListPodSandbox" "${service}/./ListPodSandbox" "/.$service/ListPodSandbox"
	"/a/..$service/ListPodSandbox" "http://localhost$service/ListPodSandbox"
	"unix://localhost$service/ListPodSandbox" " $service/ListPodSandbox"
	"$service/ListPodSandbox " "$service/ ListPodSandbox" "\\${service#/}/ListPodSandbox"
	/ListPodSandbox ListPodSandbox / '' '*')
# what the runtime takes does not go round the filter, however it is spelled
every_spelling() {
	stage || return
	late
	"$tools/relay" spell "$d/$socket" "$id" "${spellings[@]}" >"$d/past"
	"$tools/relay" spell "$d/cri.sock" "$id" "${spellings[@]}" >"$d/through"
	check 'each was tried' is "$(wc -l <"$d/past") $(wc -l <"$d/through")" \
		"${#spellings[@]} ${#spellings[@]}"
	check 'the runtime takes the usual one' grep -qx "OK has $service/ListPodSandbox" "$d/past"
	echo "# the runtime takes: $(sed -n 's/^OK has //p' "$d/past" | xargs)"
	check 'none shows what is hidden' not grep ' has ' "$d/through"
	check 'the usual one is answered' grep -qx "OK lacks $service/ListPodSandbox" "$d/through"
}
every_spelling_newest() {
	PATH=$tools/containerd:$PATH
	printf '%s\n' '[plugins."io.containerd.nri.v1.nri"]' 'disable = true' >"$d/more.toml"
	every_spelling
}

# ---- sandboxes ---------------------------------------------------------------------------------

late_sandbox() {
	stage || return
	cut_short 6
	hidden_pod 'at the time-out' "$id"
	check 'the sandbox runs afterwards' until_ 15 runs "$id"
	check 'the unfiltered socket shows it' until_ 5 shown_to_all "$id"
	check 'but will not stop it' refused all stopp "$id"
	check 'nor remove it' refused all rmp -f "$id"
	hidden_pod 'once it runs' "$id"
	check 'none of that did anything to it' runs "$id"
	try cri runp -T 60s "$(pod web)"
	check 'the same request again gets that id' answered "$id"
	check 'it was created once' is "$(creations web sandbox)" 1
	check 'it is seen now, and alone' only_pod "$id"
	check 'it can be inspected' cri inspectp "$id"
	check 'it can be stopped' cri stopp "$id"
	check 'it can be removed' cri rmp "$id"
	check 'nothing is left' nothing_left
}

# crikeepd's default
offered_sandbox() {
	more=()
	stage || return
	cut_short 6
	check 'once it runs it is seen, and alone, without another request' until_ 15 only_pod "$id"
	try cri create -T 60s "$id" "$(container main)" "$(pod web)"
	check 'a container is created in it' is $status 0
	check 'which starts' cri start "$out"
	try cri runp -T 60s "$(pod web)"
	check 'the same request gets that id' answered "$id"
	check 'it was created once' is "$(creations web sandbox)" 1
	check 'it can be stopped' cri stopp "$id"
	check 'it can be removed' cri rmp "$id"
	check 'nothing is left' nothing_left
}

waiting_sandbox() {
	local began
	stage || return
	slow 'web create 6'
	began=$(now)
	try cri runp -T 1s "$(pod web)"
	check 'the request runs into its deadline' timed_out
	cri runp -T 60s "$(pod web)" >"$d/second" 2>&1 &
	try cri runp -T 60s "$(pod web)"
	took=$(since "$began")
	wait $!
	check 'a repeat that waits gets the id' answered "$(begun web sandbox)"
	check 'not before it exists' at_least "$took" 5900
	check 'so does another one' is "$(cat "$d/second")" "$out"
	check 'it was created once' is "$(creations web sandbox)" 1
	check 'it is seen, and alone' only_pod "$out"
}

next_attempt() {
	local first destroyed created
	stage || return
	late
	first=$id
	try cri runp -T 60s "$(pod web 1)"
	check 'attempt 1 gets a sandbox' is $status 0
	check 'another one' test "$out" != "$first"
	check 'attempt 0 is gone within seconds' until_ 8 gone "$first"
	destroyed=$(grep -n "kill web sandbox $first end" "$d/runc/calls.log" | head -n 1)
	created=$(grep -n "create web sandbox $out begin" "$d/runc/calls.log")
	check 'attempt 0 was stopped before attempt 1 was created' test "${destroyed%%:*}" \
		-lt "${created%%:*}"
	check 'each was created once' is "$(begun web sandbox)" "$first"$'\n'"$out"
	check 'attempt 1 is seen, and alone' until_ 5 only_pod "$out"
}

granted() {
	try cri runp -T 2s "$(pod web 1)"
	[ $status -eq 0 ]
}
next_attempt_early() {
	local first
	stage || return
	cut_short 6
	slow ''
	first=$id
	# a creation whose end nobody knows may still come to hold the pod's ports: attempt 1 waits
	# for it, within bounds
	check 'attempt 1 gets a sandbox, repeating its request' until_ 40 granted
	check 'another one' test "$out" != "$first"
	check 'attempt 0 is gone within seconds' until_ 8 gone "$first"
	check 'attempt 1 is seen, and alone' until_ 5 only_pod "$out"
	sleep 5 # attempt 0 would be there by now
	check 'attempt 0 does not come later' only_pod "$out"
}

# kept_seconds N: crikeepd's log says that it was kept so long before it was given up
kept_seconds() {
	sed -n "s/.* in time id=$id created_in=\([^ ]*\) after=\([^ ]*\).*/\1 \2/p" \
		"$d/crikeepd.log" |
		awk -v wanted="$1" '
		function seconds(text, sum) {
			while (match(text, /^[0-9.]+(ms|h|m|s)/)) {
				unit = substr(text, 1, RLENGTH)
				sub(/^[0-9.]+/, "", unit)
				sum += text * (unit == "h" ? 3600 : unit == "m" ? 60 : \
					unit == "s" ? 1 : 0.001)
				text = substr(text, RLENGTH + 1)
			}
			return sum
		}
		{ kept = seconds($2) - seconds($1) }
		END { exit !(kept > wanted - 0.2) }' # both are rounded
}

unwanted_sandbox() {
	ttl=15s
	stage || return
	late
	check 'it is kept for a while' sleep 5
	check 'and still runs' runs "$id"
	check 'it goes when nobody wants it' until_ 15 gone "$id"
	check 'after the TTL' kept_seconds 15
	check 'nothing is left' until_ 5 nothing_left
	check 'it was created once' is "$(creations web sandbox)" 1
	try cri runp -T 60s "$(pod web)"
	check 'the same request gets a new one' test "$status:$out" != "0:$id"
	check 'which is seen, and alone' only_pod "$out"
}

evicted_by_hand() {
	local ours=("$crikeep" --state-dir="$d/kept")
	stage || return
	late
	check 'crikeep list has it' until_ 5 kept "$id"
	check 'crikeep explains it' grep -q 'web' <("${ours[@]}" explain default/web)
	check 'crikeep evict gives it up' "${ours[@]}" evict default/web --wait
	check 'it is gone' gone "$id"
	check 'nothing is left' nothing_left
	try cri runp -T 60s "$(pod web)"
	check 'the same request gets a new one' test "$status:$out" != "0:$id"
	check 'which is seen, and alone' only_pod "$out"
}

# no room for the database: pods start all the same, and late ones are kept in memory
full_disk() {
	mkdir "$d/kept"
	mount -t tmpfs -o size=1m,mode=700 none "$d/kept"
	stage || return
	check 'the disk is full' fill_up "$d/kept"
	try cri runp -T 60s "$(pod db)"
	check 'a sandbox in time' answered "$(begun db sandbox)"
	check 'is removed' cri rmp -f "$out"
	late
	check 'a late one is not shown' not_in "$id" cri pods
	try cri runp -T 60s "$(pod web)"
	check 'the same request again gets its id' answered "$id"
	check 'it was created once' is "$(creations web sandbox)" 1
	check 'it is seen, and alone' only_pod "$id"
	rm "$d/kept/filler"
	check 'crikeepd writes again when there is room' until_ 5 entered "$id"
	check 'and had said so before' grep -q 'cannot be written' "$d/crikeepd.log"
	crikeepd_kill
	check 'crikeepd starts again' crikeepd_start
	check 'it is still seen, and alone' only_pod "$id"
}
fill_up() { ! dd if=/dev/zero of="$1/filler" bs=4k 2>/dev/null && [ -s "$1/filler" ]; }
entered() { "$crikeep" --state-dir="$d/kept" list --all --no-trunc | grep -q "$1"; }

# ---- containers --------------------------------------------------------------------------------
# containerd does not run runc to create one, so the answer is held back, or the disk is frozen

# a sandbox and a container whose client has gone: $sandbox, $id
late_answer() {
	stage relay || return
	sandbox=$(cri runp -T 60s "$(pod web)")
	relay hold CreateContainer 6
	try cri create -T 2s "$sandbox" "$(container main)" "$(pod web)"
	id=$(only_container)
	check 'the request runs into its deadline' timed_out
	check 'the runtime has the container' test -n "$id"
}
told() { grep -q 'CreateContainer told' "$d/relay.log"; }
calls() { grep -c " $1 begin" "$d/relay.log"; } # that reached the runtime

late_container() {
	late_answer || return
	hidden_container 'at the time-out' "$id"
	check 'the answer comes' until_ 8 told
	check 'the unfiltered socket shows it' until_ 2 container_shown_to_all "$id"
	hidden_container 'once it is there' "$id"
	try cri create -T 60s "$sandbox" "$(container main)" "$(pod web)"
	check 'the same request again gets that id' answered "$id"
	check 'it was created once' is "$(calls CreateContainer)" 1
	check 'it is seen now, and alone' one_container "$id"
	check 'it can be started' cri start "$id"
	check 'and runs' runs "$id"
}

next_container_attempt() {
	late_answer || return
	relay clear
	check 'the answer comes' until_ 8 told
	try cri create -T 60s "$sandbox" "$(container main 1)" "$(pod web)"
	check 'attempt 1 gets a container' is $status 0
	check 'another one' test "$out" != "$id"
	check 'attempt 1 is seen, and soon alone' until_ 8 one_container "$out"
	check 'it can be started' cri start "$out"
}

unwanted_container() {
	ttl=8s
	late_answer || return
	check 'the answer comes' until_ 8 told
	check 'the container goes when nobody wants it' until_ 20 one_container ''
	check 'its sandbox stays' only_pod "$sandbox"
	check 'it was created once' is "$(calls CreateContainer)" 1
}

# a start whose client has gone: $sandbox, $id. containerd runs `runc create` in StartContainer
start_late() {
	stage || return
	sandbox=$(cri runp -T 60s "$(pod web)")
	id=$(cri create -T 60s "$sandbox" "$(container main)" "$(pod web)")
	slow "web create $1"
	try cri --timeout=2s start "$id"
	check 'the start runs into its deadline' timed_out
	check 'the container does not run yet' gone "$id"
}
next_container() { try cri create -T 60s "$sandbox" "$(container main 1)" "$(pod web)"; }

late_start() {
	start_late 10 || return
	next_container
	check 'attempt 1 hears that attempt 0 exists' said AlreadyExists
	check 'when attempt 0 is started' at_least "$took" 2000
	check 'which runs' runs "$id"
	check 'and is alone' one_container "$id"
	next_container
	check 'a later request for attempt 1 hears the same' said AlreadyExists
	check 'runc was asked once' is "$(creations web container)" 1
	check 'attempt 0 can be stopped' cri stop "$id"
	next_container
	check 'then attempt 1 gets a container' is $status 0
	slow ''
	check 'it can be started' cri start "$out"
	check 'and runs' runs "$out"
}
said() {
	[ $status -ne 0 ] && [[ $err == *"code = $1"* ]] || { echo "$status: $out $err"; return 1; }
}

# containerd by itself says that it has stopped it, goes on with the start, and the container runs
stopped_while_starting() {
	start_late 10 || return
	check 'it can be stopped meanwhile' cri stop "$id"
	check 'and removed, when containerd has given up the start' until_ 15 cri rm "$id"
	check 'runc was asked to create it' is "$(creations web container)" 1
	check 'but not to start it' is \
		"$(grep -c " start web container $id " "$d/runc/calls.log")" 0
	check 'its sandbox stays, and soon alone at runc, too' until_ 8 only_pod "$sandbox"
}

killed_while_starting() {
	start_late 10 || return
	crikeepd_kill
	check 'crikeepd starts again' crikeepd_start
	next_container
	check 'attempt 1 gets a container: containerd has given up the start' is $status 0
	slow ''
	check 'it can be started' cri start "$out"
	check 'and runs' runs "$out"
	check 'attempt 0 does not' gone "$id"
}

# repeated METHOD ID: one caller waits; of twenty that come meanwhile half run into their deadlines,
# and half are killed
repeated() {
	relay hold "$1" 90
	one_waits 1 "$@"
	twenty_ask "$@"
	relay clear
	check "$1: who waits hears its end" wait $first
	check "$1: the runtime was asked once" is "$(calls "$1")" 1
}
one_waits() { # N METHOD ID: the N-th call that reaches the runtime: $first
	asks "${@:2}" 90s &
	first=$!
	check "$2 reaches the runtime" until_ 20 asked "$2" "$1"
}
twenty_ask() { # METHOD ID
	local n callers=() heard=0
	for n in {1..10}; do
		asks "$@" 1s &
		callers+=($!)
		timeout -s KILL 1 "$tools/relay" call "$d/cri.sock" "$@" &
		callers+=($!)
	done
	for n in "${callers[@]}"; do
		wait "$n" && heard=$((heard + 1))
	done 2>/dev/null
	check "$1: twenty short calls end without it" is $heard 0
}
asks() { "$tools/relay" call "$d/cri.sock" "$@" 2>/dev/null; } # METHOD ID TIME-OUT
asked() { [ "$(calls "$1")" -ge "$2" ]; } # METHOD TIMES

repeated_teardown() {
	stage relay || return
	sandbox=$(cri runp -T 60s "$(pod web)")
	id=$(cri create -T 60s "$sandbox" "$(container main)" "$(pod web)")
	check 'a container is started' cri start "$id"
	check 'and runs' runs "$id"
	slow 'web kill 2'
	repeated StopContainer "$id"
	repeated RemoveContainer "$id"
	repeated StopPodSandbox "$sandbox"
	repeated RemovePodSandbox "$sandbox"
	check 'nothing is left' nothing_left
}

# those who ask the next life as well are one call, too
teardown_over_a_restart() {
	stage relay || return
	sandbox=$(cri runp -T 60s "$(pod web)")
	relay hold StopPodSandbox 90
	one_waits 1 StopPodSandbox "$sandbox"
	twenty_ask StopPodSandbox "$sandbox"
	check 'the runtime was asked once' is "$(calls StopPodSandbox)" 1
	crikeepd_kill
	check 'who waits hears that crikeepd is gone' not wait $first
	check 'crikeepd starts again' crikeepd_start
	one_waits 2 StopPodSandbox "$sandbox"
	twenty_ask StopPodSandbox "$sandbox"
	relay clear
	check 'who waits hears its end' wait $first
	check 'the runtime was asked twice' is "$(calls StopPodSandbox)" 2
	check 'the sandbox has stopped' gone "$sandbox"
}

dropped_connection() {
	stage relay || return
	sandbox=$(cri runp -T 60s "$(pod web)")
	relay keep CreateContainer
	relay hold CreateContainer 6
	try cri create -T 2s "$sandbox" "$(container main)" "$(pod web)"
	check 'the request runs into its deadline' timed_out
	id=$(only_container)
	relay drop
	relay clear
	check 'crikeepd connects again' until_ 10 answers
	try cri create -T 60s "$sandbox" "$(container main)" "$(pod web)"
	check 'after the connection was lost a repeat gets the id' answered "$id"
	check 'it was created once' is "$(calls CreateContainer)" 1
	check 'it is seen, and alone' one_container "$id"
}

frozen_container() {
	mkdir -p "$d/root"
	truncate -s 256M "$d/disk"
	mkfs.ext4 -q "$d/disk"
	mount -o loop "$d/disk" "$d/root" || { echo "skip - $scenario: no loop devices"; return; }
	stage || return
	sandbox=$(cri runp -T 60s "$(pod web)")
	fsfreeze -f "$d/root"
	try cri create -T 2s "$sandbox" "$(container main)" "$(pod web)"
	check 'the request runs into its deadline while the disk stands still' timed_out
	check 'lists answer meanwhile' cri pods
	check 'nothing is shown' one_container ''
	{ sleep 2; fsfreeze -u "$d/root"; } &
	try cri create -T 30s "$sandbox" "$(container main)" "$(pod web)"
	wait $!
	check 'a repeat that waits gets the id' answered "$(past ps -aq --no-trunc)"
	check 'it is seen, and alone' one_container "$out"
	check 'it can be started' cri start "$out"
}

# containerd is stopped while it makes twenty sandboxes: it is said, and waited for
stopped_runtime() {
	local i bad=0 said='crikeepd: .*the runtime does not answer'
	stage || return
	slow '* create 3'
	for i in {1..20}; do
		cri runp -T 60s "$(pod "p$i")" >"$d/p$i.id" 2>"$d/p$i.err" &
	done
	check 'twenty sandboxes are being made' until_ 20 twenty_begun
	kill -STOP "$(cat "$d/pid")"
	check 'it is said within 10 s' until_ 10 grep -q "$said" "$d/crikeepd.log"
	sleep 5
	kill -CONT "$(cat "$d/pid")"
	check 'and that it answers again' until_ 10 grep -q 'the runtime answers again' \
		"$d/crikeepd.log"
	for i in {1..20}; do
		until_ 60 test -s "$d/p$i.id" || { cat "$d/p$i.err"; bad=1; }
		[ "$(creations "p$i" sandbox)" -eq 1 ] || { echo "p$i: not once"; bad=1; }
	done
	check 'each was made once, and handed over' is $bad 0
	check 'there are twenty' is "$(past pods -q | wc -l)" 20
	check 'on one connection' is "$(grep -c 'connected to the runtime' "$d/crikeepd.log")" 1
}
twenty_begun() { [ "$(grep -c ' create p[0-9]* sandbox .* begin$' "$d/runc/calls.log")" -eq 20 ]; }

# By itself containerd would be left with a container of a sandbox that is no more.
frozen_and_removed() {
	local sandbox thaw
	mkdir -p "$d/root"
	truncate -s 256M "$d/disk"
	mkfs.ext4 -q "$d/disk"
	mount -o loop "$d/disk" "$d/root" || { echo "skip - $scenario: no loop devices"; return; }
	stage || return
	sandbox=$(cri runp -T 60s "$(pod web)")
	fsfreeze -f "$d/root"
	{ sleep 10; fsfreeze -u "$d/root"; } &
	thaw=$!
	try cri create -T 2s "$sandbox" "$(container main)" "$(pod web)"
	check 'the request runs into its deadline while the disk stands still' timed_out
	check 'the pod is removed meanwhile, or soon' until_ 30 cri rmp -f "$sandbox"
	wait $thaw
	check 'no container is left of it' until_ 10 one_container ''
	check 'nothing is left' until_ 10 nothing_left
}

# ---- kill -9 of crikeepd -----------------------------------------------------------------------

killed_while_kept() {
	stage || return
	late
	check 'crikeepd keeps it' until_ 5 kept "$id"
	crikeepd_kill
	check 'crikeepd starts again' crikeepd_start
	hidden_pod 'after the restart' "$id"
	try cri runp -T 60s "$(pod web)"
	check 'the same request again gets the id' answered "$id"
	check 'it was created once' is "$(creations web sandbox)" 1
	check 'it is seen, and alone' only_pod "$id"
}

# the runtime notices that its caller has gone, and takes the sandbox back
killed_while_creating() {
	stage || return
	cut_short 12
	crikeepd_kill
	slow ''
	check 'crikeepd starts again' crikeepd_start
	try cri runp -T 60s "$(pod web)"
	check 'the same request gets a sandbox' is $status 0
	check 'a new one' test "$out" != "$id"
	check 'because the first was taken back' gone "$id"
	check 'one more creation was enough' is "$(begun web sandbox)" "$id"$'\n'"$out"
	check 'it is seen, and alone' only_pod "$out"
}

# the runtime does not notice, and finishes 10 s after the restart
killed_before_the_end() {
	stage relay || return
	relay keep RunPodSandbox
	cut_short 13
	crikeepd_kill
	check 'crikeepd starts again' crikeepd_start
	try cri runp -T 60s "$(pod web)"
	check 'a repeat that waits gets the id' answered "$id"
	check 'nothing else was created' is "$(creations web sandbox)" 1
	check 'it is seen, and alone' only_pod "$id"
}

killed_and_unwanted() {
	ttl=30s
	stage relay || return
	relay keep RunPodSandbox
	cut_short 13
	crikeepd_kill
	check 'crikeepd starts again' crikeepd_start
	check 'the sandbox runs afterwards' until_ 20 runs "$id"
	check 'the unfiltered socket shows it' until_ 5 shown_to_all "$id"
	hidden_pod 'once it runs' "$id"
	check 'it goes when nobody wants it' until_ 60 gone "$id"
	check 'nothing is left' until_ 5 nothing_left
}

killed_while_evicting() {
	local first
	stage || return
	late
	first=$id
	slow 'web kill 10'
	cri runp -T 2s "$(pod web 1)" >/dev/null 2>&1 &
	check 'attempt 1 has attempt 0 stopped' until_ 5 grep -q "kill web sandbox $first begin" \
		"$d/runc/calls.log"
	crikeepd_kill
	wait $! # attempt 1 has lost its connection
	check 'crikeepd starts again' crikeepd_start
	slow ''
	hidden_pod 'after the restart' "$first"
	check 'the destruction is completed' until_ 15 gone "$first"
	check 'nothing is left' until_ 10 nothing_left
	try cri runp -T 60s "$(pod web 1)"
	check 'attempt 1 gets its sandbox' is $status 0
	check 'which is seen, and alone' only_pod "$out"
}

# The kubelet goes past crikeepd for a while, uses there what was kept, and comes back.
moved_straight_and_back() {
	local container
	stage || return
	late
	check 'crikeepd keeps it' until_ 5 kept "$id"
	crikeepd_kill
	container=$(past create "$id" "$(container main)" "$(pod web)")
	check 'straight at the runtime, a container in it is started' past start "$container"
	ttl=2s
	check 'crikeepd starts again' crikeepd_start
	check 'the sandbox is seen at once' one_pod "$id"
	check 'and the container' one_container "$container"
	check 'longer than it would be kept' sleep 4
	check 'both are still seen' one_pod "$id"
	check 'the container, too' one_container "$container"
	check 'the sandbox still runs' runs "$id"
	check 'and the container' runs "$container"
	check 'nothing was made again' is "$(creations web sandbox)" 1
	check 'the pod can be removed' cri rmp -f "$id"
	check 'nothing is left' nothing_left
}

# What was kept before a reboot is no sandbox any more, but may have left something on disk: it
# goes, and is never handed back. The boot id of the restarted crikeepd is another file's.
another_boot() {
	stage || return
	late
	check 'crikeepd keeps it' until_ 5 kept "$id"
	crikeepd_kill
	echo 01234567-89ab-cdef-0123-456789abcdef >"$d/boot_id"
	cat >"$d/rebooted" <<-END
		#!/bin/bash
		mount --make-rprivate / &&
			mount --bind "$d/boot_id" /proc/sys/kernel/random/boot_id &&
			exec "$crikeepd" "\$@"
	END
	printf '#!/bin/sh\nexec unshare --mount bash "%s" "$@"\n' "$d/rebooted" >"$d/crikeepd"
	chmod +x "$d/crikeepd"
	crikeepd=$d/crikeepd
	check 'crikeepd starts on another boot' crikeepd_start
	check 'nobody sees the sandbox' not_in "$id" cri pods
	check 'it is destroyed' until_ 10 gone "$id"
	try cri runp -T 60s "$(pod web)"
	check 'the same request gets a new one' test "$status:$out" != "0:$id"
	check 'which is seen, and alone' only_pod "$out"
}

# SIGTERM without a service manager: as after kill -9, the runtime takes the sandbox back
asked_to_end() {
	stage || return
	cut_short 12
	kill -TERM "$crikeepd_pid"
	wait "$crikeepd_pid"
	status=$?
	check 'it ends well' is $status 0
	check 'and does not wait for the sandbox' gone "$id"
	slow ''
	check 'crikeepd starts again' crikeepd_start
	try cri runp -T 60s "$(pod web)"
	check 'the same request gets a sandbox' is $status 0
	check 'one more creation was enough' is "$(begun web sandbox)" "$id"$'\n'"$out"
	check 'it is seen, and alone' only_pod "$out"
}

# ---- the service manager keeps the connection to the runtime ------------------------------------

held() { # a sandbox that is being made: $id
	managed=yes
	stage || return
	cut_short "$1"
}
made_once() {
	try cri runp -T 60s "$(pod web)"
	check 'a repeat that waits gets the id' answered "$id"
	check 'nothing else was created' is "$(creations web sandbox)" 1
	check 'it is seen, and alone' only_pod "$id"
	check 'the connection that carried it is ended' until_ 10 grep -q ' closed ' \
		"$d/manager.log"
}

held_while_killed() {
	held 12 || return
	check 'crikeepd lives again' lives_again kill -KILL "$(life)"
	made_once
}

held_while_restarted() {
	held 12 || return
	check 'crikeepd lives again' lives_again kill -USR1 "$crikeepd_pid"
	check 'it ended well' grep -q ' end 0$' "$d/manager.log"
	check 'and did not wait for the sandbox' gone "$id"
	made_once
}

held_over_many_lives() {
	local i
	held 15 || return
	for ((i = 0; i < 20; i++)); do
		lives_again kill -KILL "$(life)" >>"$d/lives" || break
	done
	check 'crikeepd lives again 20 times' is $i 20
	made_once
}

held_while_starting() {
	managed=yes
	start_late 10 || return
	check 'crikeepd lives again' lives_again kill -KILL "$(life)"
	next_container
	check 'attempt 1 is refused' test $status -ne 0
	check 'because attempt 0 runs' runs "$id"
	check 'which was started once' is "$(creations web container)" 1
	check 'the connection that carried it is ended' until_ 10 grep -q ' closed ' \
		"$d/manager.log"
}

# ---- kill -9 of containerd ---------------------------------------------------------------------

runtime_again() { "$lab/containerd.sh" start "$d" && until_ 10 answers; }

runtime_killed_while_kept() {
	stage || return
	late
	check 'crikeepd keeps it' until_ 5 kept "$id"
	containerd_kill
	try cri pods
	check 'a list fails meanwhile, and is not empty' test $status -ne 0
	check 'containerd starts again' runtime_again
	hidden_pod 'after the restart' "$id"
	try cri runp -T 60s "$(pod web)"
	check 'the same request again gets the id' answered "$id"
	check 'it was created once' is "$(creations web sandbox)" 1
	check 'it is seen, and alone' only_pod "$id"
}

runtime_killed_while_creating() {
	stage || return
	cut_short 12
	containerd_kill
	slow ''
	check 'containerd starts again' runtime_again
	try cri runp -T 60s "$(pod web)"
	check 'the same request gets a sandbox' is $status 0
	check 'a new one' test "$out" != "$id"
	check 'it is seen, and alone' only_pod "$out"
}

runtime_killed_while_evicting() {
	local first
	stage || return
	late
	first=$id
	slow 'web kill 10'
	cri runp -T 2s "$(pod web 1)" >/dev/null 2>&1 &
	check 'attempt 1 has attempt 0 stopped' until_ 5 grep -q "kill web sandbox $first begin" \
		"$d/runc/calls.log"
	containerd_kill
	slow ''
	check 'containerd starts again' runtime_again
	wait $!
	check 'the destruction is completed' until_ 20 gone "$first"
	try cri runp -T 60s "$(pod web 1)"
	check 'attempt 1 gets its sandbox' is $status 0
	check 'which is seen, and alone' until_ 5 only_pod "$out"
}

play_all
