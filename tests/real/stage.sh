# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154 # shares variables with those who source it
#
# The stage of a scenario, for tests to source: crictl -> crikeepd [-> relay] -> containerd -> runc, all of its own, in the
# directory $d. What the runtime did is read from runc and its log of calls, never from crikeepd.
#
# Before: play.sh; $d.

socket=containerd.sock # the runtime's, in $d
relayed=''           # what crikeepd talks to: "" containerd itself, or "relay"
ttl=20s              # of what is kept
more=()              # crikeepd's further options

cri() { "$tools/crictl" -c "$d/crictl.yaml" -r "unix://$d/cri.sock" "$@"; }             # as the kubelet sees it
all() { "$tools/crictl" -c "$d/crictl.yaml" -r "unix://$d/all.sock" "$@"; }             # the unfiltered socket
past() { "$tools/crictl" -c "$d/crictl.yaml" -r "unix://$d/$socket" "$@"; }     # past crikeepd
relay() { "$tools/relay" tell "$d/relay.control" "$@"; }

now() { echo $((${EPOCHREALTIME/./} / 1000)); }
since() { echo $(($(now) - $1)); }

# until_ SECONDS COMMAND...: it succeeds within that time
until_() {
	local end=$(($(now) + $1 * 1000))
	shift
	until "$@" >"$d/until" 2>&1; do
		[ "$(now)" -lt "$end" ] || { echo "not in time: $*"; cat "$d/until"; return 1; }
		sleep 0.05
	done
}

# crictl names a container's or a pod's request by files. Both have a fixed uid, so that a repeat is the same request.
pod() { # pod NAME [ATTEMPT]: the path of its request
	cat >"$d/$1-${2:-0}.pod" <<-END
		{"metadata":{"name":"$1","namespace":"default","uid":"uid-of-$1","attempt":${2:-0}},"log_directory":"$d/log/$1",
		"linux":{"cgroup_parent":"/k8s.io","security_context":{"namespace_options":{"network":2}}}}
	END
	echo "$d/$1-${2:-0}.pod"
}
container() { # container NAME [ATTEMPT]
	cat >"$d/$1-${2:-0}.container" <<-END
		{"metadata":{"name":"$1","attempt":${2:-0}},"image":{"image":"docker.io/lab/busybox:1"},
		"log_path":"$1_${2:-0}.log","linux":{}}
	END
	echo "$d/$1-${2:-0}.container"
}

# try COMMAND...: $status, $out, $err and $took (ms); always succeeds
try() {
	local began
	began=$(now)
	out=$("$@" 2>"$d/err")
	status=$?
	took=$(since "$began")
	err=$(cat "$d/err")
}

# what the runtime did and has
runc_list() { runc --root "$d/runc/root/k8s.io" list 2>/dev/null | awk 'NR > 1 { print $1, $3 }'; }
runs() { runc_list | grep -qx "$1 running"; }
gone() { ! runc_list | grep -q "^$1 "; }
begun() { sed -n "s/^[0-9.]* create $1 $2 \([^ ]*\) begin$/\1/p" "$d/runc/calls.log"; } # begun POD KIND: the ids
creations() { begun "$1" "$2" | wc -l; }
slow() { printf '%s\n' "$@" >"$d/runc/delays"; } # slow "POD VERB SECONDS"...

stage() { # stage [relay]: everything up
	mkdir -p "$d"
	echo 'timeout: 10' >"$d/crictl.yaml"
	"$lab/containerd.sh" start "$d" || return
	relayed=${1:-}
	if [ -n "$relayed" ]; then
		"$tools/relay" serve --listen "$d/relay.sock" --upstream "$d/containerd.sock" --control "$d/relay.control" \
			--log "$d/relay.log" 2>"$d/relay.err" &
		until_ 5 test -S "$d/relay.control" || return
	fi
	crikeepd_start
}

crikeepd_start() {
	local upstream=$d/$socket
	[ -z "$relayed" ] || upstream=$d/relay.sock
	"$crikeepd" --runtime="unix://$upstream" --listen="$d/cri.sock" --unfiltered="$d/all.sock" --metrics="$d/metrics.sock" \
		--state-dir="$d/kept" --ttl="$ttl" --set=log.target=stderr "${more[@]}" 2>>"$d/crikeepd.log" </dev/null &
	crikeepd_pid=$!
	until_ 10 answers
}
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
