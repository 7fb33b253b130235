# SPDX-License-Identifier: Apache-2.0
# A && B || C is meant; shares variables with those who source it.
# shellcheck shell=bash disable=SC2015,SC2034,SC2086,SC2154
#
# The stage of a scenario, for tests to source: crictl [-> a relay in front] -> crikeepd [-> relay]
# -> containerd -> runc, all of its own, in the directory $d. What the runtime did is read from runc
# and its log of calls, never from crikeepd.
#
# Before: play.sh; $d.

socket=containerd.sock # the runtime's, in $d
relayed=''           # what crikeepd talks to: "" containerd itself, or "relay"
fronted=''           # not empty: who talks to it talks to a relay
ttl=5m               # of what is kept
more=()              # crikeepd's further options
managed=''           # not empty: it runs under a service manager, which has its socket

# as the kubelet sees it
cri() { "$tools/crictl" -c "$d/crictl.yaml" -r "unix://$d/cri.sock" "$@"; }
# the unfiltered socket
all() { "$tools/crictl" -c "$d/crictl.yaml" -r "unix://$d/all.sock" "$@"; }
past() { "$tools/crictl" -c "$d/crictl.yaml" -r "unix://$d/$socket" "$@"; }     # past crikeepd
relay() { "$tools/relay" tell "$d/relay.control" "$@"; }

# What is called often starts no process that it can do without: where page tables are slow, a
# process costs some 10 ms.
now() { echo $((${EPOCHREALTIME/./} / 1000)); }
since() { echo $((${EPOCHREALTIME/./} / 1000 - $1)); }

# until_ SECONDS COMMAND...: it succeeds within that time, or three times as long: the machine may
# have a lot to do. It is tried at once, after 50 ms, and then less and less often, down to twice a
# second.
until_() {
	local end=$((${EPOCHREALTIME/./} + $1 * 3000000)) wait=50
	shift
	until "$@" >"$d/until" 2>&1; do
		[ "${EPOCHREALTIME/./}" -lt "$end" ] ||
			{ echo "not in time: $*"; cat "$d/until"; return 1; }
		nap $wait
		wait=$((wait * 3 / 2 < 500 ? wait * 3 / 2 : 500))
	done
}
exec {nap_fd}<> <(:) # a pipe that nobody writes into
nap() { # nap MILLISECONDS
	local seconds
	printf -v seconds '0.%03d' "$1"
	read -rt "$seconds" -u "$nap_fd"
}

# crictl names a container's or a pod's request by files. Both have a fixed uid, so that a repeat is
# the same request.
pod() { # pod NAME [ATTEMPT]: the path of its request
	cat >"$d/$1-${2:-0}.pod" <<-END
		{"metadata":{"name":"$1","namespace":"default","uid":"uid-of-$1",
		"attempt":${2:-0}},"log_directory":"$d/log/$1",
		"linux":{"cgroup_parent":"/k8s.io",
		"security_context":{"namespace_options":{"network":2}}}}
	END
	echo "$d/$1-${2:-0}.pod"
}
container() { # container NAME [ATTEMPT]
	cat >"$d/$1-${2:-0}.container" <<-END
		{"metadata":{"name":"$1","attempt":${2:-0}},
		"image":{"image":"docker.io/lab/busybox:1"},
		"log_path":"$1_${2:-0}.log","linux":{}}
	END
	echo "$d/$1-${2:-0}.container"
}

# try COMMAND...: $status, $out, $err and $took (ms); always succeeds
try() {
	local began=${EPOCHREALTIME/./}
	out=$("$@" 2>"$d/err")
	status=$?
	took=$(((${EPOCHREALTIME/./} - began) / 1000))
	err=$(<"$d/err")
}

# what of it is seen, and what is said to who asks
timed_out() { # of the last try: by the client's own deadline
	[ $status -ne 0 ] && [[ $err == *'code = DeadlineExceeded'* ]] ||
		{ echo "exit status $status: $out $err"; return 1; }
	at_least "$took" 1900
}
not_found() { # COMMAND...: is refused as if there were no such thing
	try "$@"
	[ $status -ne 0 ] && [[ $err == *'code = NotFound'* ]] ||
		{ echo "exit status $status: $out $err"; return 1; }
}
unseen_pod() { # unseen_pod WHEN ID: nobody sees it
	check "$1, no list of pods shows it" not_in "$2" cri pods
	check "$1, no pod statistics show it" not_in "$2" cri statsp
	check "$1, nor when asked by its id" not_in "$2" cri statsp --id "$2"
	check "$1, no statistics of containers show it" not_in "$2" cri stats -a -p "$2"
	check "$1, it cannot be inspected" not_found cri inspectp "$2"
}
hidden_pod() { # nobody can touch it, either
	unseen_pod "$@"
	check "$1, it cannot be stopped" not_found cri stopp "$2"
	check "$1, it cannot be removed" not_found cri rmp -f "$2"
}
unseen_container() {
	check "$1, no list of containers shows it" not_in "$2" cri ps -a
	check "$1, no statistics show it" not_in "$2" cri stats -a
	check "$1, it cannot be inspected" not_found cri inspect "$2"
	check "$1, it cannot be started" not_found cri start "$2"
}
hidden_container() {
	unseen_container "$@"
	check "$1, it cannot be stopped" not_found cri stop "$2"
	check "$1, it cannot be removed" not_found cri rm "$2"
}
# one_pod ID: this one is all there is, for the kubelet and for the runtime
one_pod() { is "$(cri pods -q --no-trunc)" "$1" && is "$(past pods -q --no-trunc)" "$1"; }
one_container() { is "$(cri ps -aq --no-trunc)" "$1" && is "$(past ps -aq --no-trunc)" "$1"; }

# what the runtime did and has
runc_list() { runc --root "$d/runc/root/k8s.io" list 2>/dev/null | awk 'NR > 1 { print $1, $3 }'; }
runs() { runc_list | grep -qx "$1 running"; }
gone() { ! runc_list | grep -q "^$1 "; }
# begun POD KIND: the ids
begun() { sed -n "s/^[0-9.]* create $1 $2 \([^ ]*\) begin$/\1/p" "$d/runc/calls.log"; }
some() { [ -n "$("$@")" ]; }
first_begun() { # the first id, which may not be there yet
	until_ 10 some begun "$@" >&2
	begun "$@" | head -n 1
}
only_container() { # the id, which may not be there yet
	until_ 10 some past ps -aq >&2
	past ps -aq --no-trunc
}
creations() { begun "$1" "$2" | wc -l; }
slow() { printf '%s\n' "$@" >"$d/runc/delays"; } # slow "POD VERB SECONDS"...

stage() { # stage [relay]: everything up
	mkdir -p "$d"
	echo 'timeout: 30' >"$d/crictl.yaml"
	"$lab/containerd.sh" start "$d" || return
	relayed=${1:-}
	[ -z "$relayed" ] || relay_up relay relay.sock containerd.sock || return
	[ -z "$fronted" ] || relay_up front cri.sock crikeepd.sock || return
	crikeepd_start || return
	[ -z "$fronted" ] || # what was asked until it answered is not compared
		truncate -s 0 "$d/front.log" "$d/relay.log"
}
# relay_up NAME SOCKET UPSTREAM: NAME.control is for orders, NAME.log has the calls. $relay_pid
relay_up() {
	"$tools/relay" serve --listen "$d/$2" --upstream "$d/$3" --control "$d/$1.control" \
		--log "$d/$1.log" 2>"$d/$1.err" &
	relay_pid=$!
	until_ 5 test -S "$d/$1.control"
}

# Between the front and the other relay nothing is altered: each message that came out on one side
# had gone in on the other, to the byte, and each came out whose caller stayed to the end. The
# requests go down; answers, and how calls ended, go up. What is told to one that has left may still
# come through. crikeepd's own question is Version.
unaltered() {
	awk '
	FILENAME ~ /front.log$/ { side = "front" }
	FILENAME !~ /front.log$/ { side = "behind" }
	$4 == "request" { open[side " " $2] = $3 }
	$4 == "told" || $4 == "left" { delete open[side " " $2] }
	$4 == "left" && side == "front" { left[$3]++; gone++; next }
	$4 == "left" { $4 = "told" }
	$4 == "request" || $4 == "answer" || $4 == "told" {
		key = $4 " " $3 " " $5
		keys[key]
		n[side, key]++
	}
	function bad(what) { print what; wrong = 1 }
	END {
		for (call in open)
			bad(open[call] " is under way: " call)
		for (key in keys) {
			split(key, k, " ")
			front = n["front", key]
			behind = n["behind", key]
			if (k[2] == "Version" && behind > front)
				behind = front # what is beyond is its own
			went_in = k[1] == "request" ? front : behind
			came_out = k[1] == "request" ? behind : front
			passed[k[1]] += came_out
			if (came_out > went_in)
				bad("came out, and had not gone in: " key)
			else
				lost[k[1] " " k[2]] += went_in - came_out
		}
		for (kind in lost) {
			split(kind, k, " ")
			if (lost[kind] > left[k[2]])
				bad(lost[kind] " did not come out: " kind)
		}
		if (!passed["request"] || !passed["answer"])
			bad("nothing has passed")
		printf "%d requests and %d answers passed, %d ends; %d callers left\n",
			passed["request"], passed["answer"], passed["told"], gone
		exit wrong
	}' "$d/front.log" "$d/relay.log"
}

crikeepd_start() {
	local upstream=$d/$socket listen=$d/cri.sock
	[ -z "$relayed" ] || upstream=$d/relay.sock
	[ -z "$fronted" ] || listen=$d/crikeepd.sock
	local manager=("$build/tests/daemon/service-manager" "$d/manager.log" 32 "cri=$listen")
	${managed:+"${manager[@]}" --} "$crikeepd" --runtime="unix://$upstream" \
		--listen="$listen" --unfiltered="$d/all.sock" --metrics="$d/metrics.sock" \
		--state-dir="$d/kept" --ttl="$ttl" --set=log.target=stderr "${more[@]}" \
		2>>"$d/crikeepd.log" </dev/null &
	crikeepd_pid=$!
	until_ 10 answers
}
# under a service manager: crikeepd's process; how often it was ready; its next life after a signal
life() { sed -n 's/^[0-9]* start //p' "$d/manager.log" | tail -n 1; }
lives() { grep -c ' ready$' "$d/manager.log"; }
lives_again() { # lives_again COMMAND...
	local n
	n=$(lives)
	"$@" && until_ 10 lived "$n"
}
lived() { [ "$(lives)" -gt "$1" ]; }
answers() { "$crikeep" pods --endpoint "unix://$d/cri.sock" >/dev/null 2>&1; }

crikeepd_kill() { # as the OOM killer does
	kill -KILL "$crikeepd_pid"
	wait "$crikeepd_pid" 2>/dev/null
	rm -f "$d/cri.sock" # so that `answers` cannot meet the old one
}

containerd_kill() {
	kill -KILL "$(cat "$d/pid")"
	until_ 5 no_process "$(cat "$d/pid")"
}
no_process() { ! kill -0 "$1" 2>/dev/null; }

unstage() {
	[ -z "${crikeepd_pid:-}" ] || kill -KILL "$crikeepd_pid" 2>/dev/null
	"$lab/containerd.sh" stop "$d"
}
