#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What a node looks like whose runtime needs longer for a pod than the kubelet waits: straight at
# the runtime, and with crikeepd in between. The runtime is a simulated one, for which no root is
# needed; or a real containerd with a runc that is slow on purpose, as root, of which nothing is
# left afterwards. Prints what happened, then a verdict from the runtime's own log and the client's
# report. Exit status 0: the sandbox was created once, and the client was given its id.
#
# usage: demo.sh [--containerd] BUILD_DIR          KEEP=DIR leaves logs and reports there
set -eu

here=$(cd "$(dirname "$0")" && pwd)
runtime=sim
[ "${1:-}" != --containerd ] || { runtime=containerd; shift; }
if [ "${1:-}" != inside ]; then
	[ $# -eq 1 ] || { echo "usage: $0 [--containerd] BUILD_DIR" >&2; exit 2; }
	build=$(cd "$1" && pwd)
	needed=(crikeepd crikeep)
	[ $runtime != sim ] || needed+=(crikeep-sim)
	for program in "${needed[@]}"; do
		[ -x "$build/$program" ] ||
			{ echo "$0: there is no $build/$program: build first" >&2; exit 2; }
	done
	dir=$(mktemp -d /tmp/ck.XXXXXX)
	status=0
	if [ $runtime = containerd ]; then
		for program in containerd ctr runc busybox unshare; do
			command -v "$program" >/dev/null ||
				{ echo "$0: there is no $program" >&2; exit 2; }
		done
		[ "$(id -u)" -eq 0 ] ||
			{ echo "$0: containerd has to run as root, in namespaces of its own" \
			>&2; exit 2; }
		"$here/isolated.sh" "$0" --containerd inside "$build" "$dir" || status=$?
	else
		"$0" inside "$build" "$dir" || status=$?
	fi
	rm -rf --one-file-system "$dir"
	exit $status
fi

build=$2 dir=$3
create=5 deadline=2 retry=0.5
pids=()
trap 'exit 99' HUP INT TERM # as process 1 of a namespace we would not hear them

say() { fold -s -w 80 <<<"$*" | sed 's/ *$//'; }
await() { # await SOCKET LOG
	local i
	for ((i = 0; i < 100; i++)); do
		[ ! -S "$1" ] || return 0
		sleep 0.1
	done
	echo 'It does not start:' >&2
	cat "$2" >&2
	exit 1
}

# ---- the runtime NAME: started, its log as "SECONDS who what SANDBOX", counted -----------------

if [ $runtime = containerd ]; then
	version() { "$1" --version | head -n 1 | grep -oE '[0-9]+\.[0-9]+(\.[0-9]+)?' | head -n 1; }
	maker=runc
	mount -t tmpfs none "$dir"
	introduction="A real containerd $(version containerd) with a real runc $(version runc),"
	introduction+=' in namespaces of their own. runc is slow:'
	runtime_start() {
		"$here/containerd.sh" start "$dir/$1"
		echo "* create $create" >"$dir/$1/runc/delays"
		ln -s containerd.sock "$dir/$1/runtime.sock"
	}
	# shellcheck disable=SC2317 # called by finish
	runtime_stop() { "$here/containerd.sh" stop "$dir/$1"; }
	runtime_log() {
		awk '$2 == "create" && $6 == "begin" { print $1, "runc begins", $5 }
			$2 == "create" && $6 == "end=0" { print $1, "runc creates", $5 }
			$2 == "delete" && $6 == "begin" && !($5 in gone) {
				gone[$5] = 1
				print $1, "containerd undoes", $5
			}' \
			"$dir/$1/runc/calls.log"
	}
	running() {
		runc --root "$dir/$1/runc/root/k8s.io" list | awk '$3 == "running" { print $1 }'
	}
else
	maker='the runtime'
	introduction='A simulated runtime, which behaves as containerd does. It is slow:'
	runtime_start() {
		echo "$EPOCHREALTIME" >"$dir/$1/started"
		"$build/crikeep-sim" \
			"listen=$dir/$1/runtime.sock,log=$dir/$1/sim.log,create=${create}s" \
			2>"$dir/$1/sim.err" &
		pids+=($!)
		await "$dir/$1/runtime.sock" "$dir/$1/sim.err"
	}
	# shellcheck disable=SC2317
	runtime_stop() { :; }
	runtime_log() {
		awk -v started="$(cat "$dir/$1/started")" '
			$2 == "begin" { print started + $1, "runtime begins", $4 }
			$2 == "create" { print started + $1, "runtime creates", $4 }
			$2 == "rollback" { print started + $1, "runtime undoes", $4 }' \
			OFMT=%.6f "$dir/$1/sim.log"
	}
	running() {
		"$build/crikeep" pods --endpoint "unix://$dir/$1/runtime.sock" -o json |
			sed -n 's/^ *"id": *"\([0-9a-f]*\)".*/\1/p'
	}
fi
begun() { runtime_log "$1" | grep -c ' begins ' || true; }
made() { runtime_log "$1" | grep -c ' creates ' || true; }

# ---- the client --------------------------------------------------------------------------------

# events NAME: both logs by time, in plain words; what the runtime did stands before what the client
# heard of it
events() {
	LC_ALL=C sort -n -s -k 1,1 \
		<(runtime_log "$1" | awk '{ printf "%.6f %s\n", $1 - 0.1, $0 }') \
		<(awk -v began="$began" '
			/^ *-? *at_seconds:/ { at = $NF }
			/^ *-? *seconds:/ { took = $NF }
			/^ *code:/ { code = $NF; gsub("\"", "", code) }
			/^ *text:/ {
				at += began + took
				code = code (/still being created/ ? ":" : "")
				printf "%.6f %.6f client %s\n", at, at, code
			}' \
			"$dir/$1/report") | cut -d ' ' -f 2- |
	LC_ALL=C awk -v began="$began" '
	function line(what) { printf "%7.1f  %-10s  %s\n", ($1 > began) ? $1 - began : 0, $2, what }
	$2 == "client" {
		n++
		code = tolower($3)
		gsub("_", " ", code)
		sub(":$", ": still being created", code)
		line("request " n ": " (code == "ok" ? "here is its id" : code))
	}
	$3 == "begins" { line("begins to create sandbox " substr($4, 1, 12)) }
	$3 == "creates" { line("has created " substr($4, 1, 12)) }
	$3 == "undoes" { line("takes back " substr($4, 1, 12) ", as the request is over") }'
}

# drive NAME SOCKET GIVE_UP: its report goes to a file
drive() {
	echo
	echo '      s  who         what'
	began=$EPOCHREALTIME
	"$build/crikeep" drive --endpoint "unix://$2" --pod web --host-network \
		--deadline "${deadline}s" \
		--retry "${retry/0./}00ms" --give-up "${3}s" -o yaml >"$dir/$1/report" \
		2>"$dir/$1/drive.log" || true
	[ -s "$dir/$1/report" ] || { cat "$dir/$1/drive.log" >&2; exit 1; }
	sleep 0.5 # for the runtime to take back the last one
	events "$1"
}

id() { sed -n '0,/^id: /s/^id: "\?\([0-9a-f]*\)"\?$/\1/p' "$dir/$1/report"; }
figure() { sed -n "0,/^$2: /s/^$2: //p" "$dir/$1/report"; }
when() {
	if [ -n "$(id "$1")" ]; then
		printf 'after %.1f s' "$(figure "$1" seconds)"
	else
		echo never
	fi
}

# ---- what happens ------------------------------------------------------------------------------

say "$introduction it needs $create s to create a pod's sandbox. The client waits $deadline s for" \
	"each request and repeats it $retry s later, the same bytes each time, as a kubelet does."

mkdir "$dir/straight" "$dir/through"
# shellcheck disable=SC2317 # by trap
finish() {
	local name
	[ ${#pids[@]} -eq 0 ] || kill "${pids[@]}" 2>/dev/null || true
	wait || true
	for name in straight through; do
		runtime_stop "$name"
		[ -n "${KEEP:-}" ] || continue
		mkdir -p "$KEEP/$name"
		cp "$dir/$name"/{runc/calls.log,*.log,report} "$KEEP/$name" 2>/dev/null || true
	done
}
trap finish EXIT
runtime_start straight
runtime_start through

echo
echo 'Straight at the runtime:'
drive straight "$dir/straight/runtime.sock" 9

echo
echo 'Through crikeepd:'
"$build/crikeepd" --runtime="unix://$dir/through/runtime.sock" --listen="$dir/through/cri.sock" \
	--unfiltered="$dir/through/all.sock" --metrics= --state-dir="$dir/through/kept" \
	--set=log.target=stderr 2>"$dir/through/crikeepd.log" &
pids+=($!)
await "$dir/through/cri.sock" "$dir/through/crikeepd.log"
drive through "$dir/through/cri.sock" 60

row() { printf '%-38s %20s %18s\n' "$1" "$2" "$3"; }
echo
row '' 'straight at it' 'through crikeepd'
row 'requests of the client' "$(figure straight requests)" "$(figure through requests)"
row "sandboxes $maker began to create" "$(begun straight)" "$(begun through)"
row 'of these created' "$(made straight)" "$(made through)"
row 'the client has its id' "$(when straight)" "$(when through)"
echo

bad=0
wrong() { say "WRONG: $*"; bad=1; }
[ -n "$(id through)" ] || wrong 'the client was given no id'
[ "$(begun through)" = 1 ] || wrong "$maker did not create exactly one sandbox"
[ "$(running through)" = "$(id through)" ] ||
	wrong "what runs is '$(running through)', the client was given '$(id through)'"
[ $bad -ne 0 ] ||
	say 'Through crikeepd the sandbox was created once, and its id was given to the client' \
		'that came back for it.'
exit $bad
