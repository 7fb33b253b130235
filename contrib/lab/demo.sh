#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What a node looks like whose containerd needs longer for a pod than the kubelet waits: straight at a real containerd, and with
# crikeepd in between. Prints what happened, then a verdict from runc's log of calls and the client's report. Exit status 0: runc
# created the sandbox once, and the client was given its id. As root; nothing is left of it afterwards.
#
# usage: demo.sh BUILD_DIR          KEEP=DIR leaves logs and reports there
set -eu

here=$(cd "$(dirname "$0")" && pwd)
if [ "${1:-}" != inside ]; then
	[ $# -eq 1 ] || { echo "usage: $0 BUILD_DIR" >&2; exit 2; }
	build=$(cd "$1" && pwd)
	for program in crikeepd crikeep; do
		[ -x "$build/$program" ] || { echo "$0: there is no $build/$program: build first" >&2; exit 2; }
	done
	for program in containerd ctr runc busybox unshare; do
		command -v "$program" >/dev/null || { echo "$0: there is no $program" >&2; exit 2; }
	done
	[ "$(id -u)" -eq 0 ] || { echo "$0: containerd has to run as root, in namespaces of its own" >&2; exit 2; }
	dir=$(mktemp -d /tmp/ck.XXXXXX)
	status=0
	"$here/isolated.sh" "$0" inside "$build" "$dir" || status=$?
	rmdir "$dir"
	exit $status
fi

build=$2 dir=$3
create=5 deadline=2 retry=0.5
mount -t tmpfs none "$dir"
trap 'exit 99' HUP INT TERM # as process 1 we would not hear them

say() { fold -s -w 80 <<<"$*" | sed 's/ *$//'; }
version() { "$1" --version | head -n 1 | grep -oE '[0-9]+\.[0-9]+(\.[0-9]+)?' | head -n 1; }

say "A real containerd $(version containerd) with a real runc $(version runc), in namespaces of their own. runc is slow:" \
	"it needs $create s to create a pod's sandbox. The client waits $deadline s for each request and repeats it" \
	"$retry s later, the same bytes each time, as a kubelet does."

# events NAME: both logs by time, in plain words
events() {
	LC_ALL=C sort -n -s -k 1,1 \
		<(sed 's/ / runc /' "$dir/$1/runc/calls.log") \
		<(awk -v began="$began" '
			/^ *-? *at_seconds:/ { at = $NF }
			/^ *-? *seconds:/ { took = $NF }
			/^ *code:/ { code = $NF; gsub("\"", "", code) }
			/^ *text:/ { printf "%.6f client %s%s\n", began + at + took, code, /still being made/ ? ":" : "" }' \
			"$dir/$1/report") |
	LC_ALL=C awk -v began="$began" '
	function line(who, what) { printf "%7.1f  %-10s  %s\n", $1 - began, who, what }
	$2 == "client" {
		n++
		code = tolower($3)
		gsub("_", " ", code)
		sub(":$", ": still being made", code)
		line("client", "request " n ": " (code == "ok" ? "here is its id" : code))
	}
	$2 == "runc" && $3 == "create" && $7 == "begin" { line("runc", "begins to create sandbox " substr($6, 1, 12)) }
	$2 == "runc" && $3 == "create" && $7 == "end=0" { line("runc", "has created " substr($6, 1, 12)) }
	$2 == "runc" && $3 == "delete" && $7 == "begin" && !($6 in gone) {
		gone[$6] = 1
		line("containerd", "takes back " substr($6, 1, 12) ", as the request is over")
	}'
}

# drive NAME SOCKET GIVE_UP: the client; its report goes to a file
drive() {
	echo
	echo '      s  who         what'
	began=$EPOCHREALTIME
	"$build/crikeep" drive --endpoint "unix://$2" --pod web --host-network --deadline "${deadline}s" --retry 500ms \
		--give-up "${3}s" -o yaml >"$dir/$1/report" 2>"$dir/$1/drive.log" || true
	[ -s "$dir/$1/report" ] || { cat "$dir/$1/drive.log" >&2; exit 1; }
	sleep 0.5 # for containerd to take back the last one
	events "$1"
}

# the figures of NAME
id() { sed -n '0,/^id: /s/^id: "\?\([0-9a-f]*\)"\?$/\1/p' "$dir/$1/report"; }
figure() { sed -n "0,/^$2: /s/^$2: //p" "$dir/$1/report"; }
begun() { grep -c ' create web sandbox [0-9a-f]* begin$' "$dir/$1/runc/calls.log" || true; }
made() { grep -c ' create web sandbox [0-9a-f]* end=0$' "$dir/$1/runc/calls.log" || true; }
running() { runc --root "$dir/$1/runc/root/k8s.io" list | awk '$3 == "running" { print $1 }'; }
when() { if [ -n "$(id "$1")" ]; then printf 'after %.1f s' "$(figure "$1" seconds)"; else echo never; fi; }

mkdir "$dir/straight" "$dir/through"
for name in straight through; do
	"$here/containerd.sh" start "$dir/$name"
	echo "* create $create" >"$dir/$name/runc/delays"
done
# shellcheck disable=SC2317 # by trap
finish() {
	local name
	for name in straight through; do
		"$here/containerd.sh" stop "$dir/$name"
		[ -n "${KEEP:-}" ] || continue
		mkdir -p "$KEEP/$name"
		cp "$dir/$name"/{runc/calls.log,*.log,report} "$KEEP/$name" || true
	done
}
trap finish EXIT

echo
echo 'Straight at containerd:'
drive straight "$dir/straight/containerd.sock" 9

echo
echo 'Through crikeepd:'
"$build/crikeepd" --runtime="unix://$dir/through/containerd.sock" --listen="$dir/through/cri.sock" \
	--unfiltered="$dir/through/all.sock" --metrics= --state-dir="$dir/through/kept" --set=log.target=stderr \
	2>"$dir/through/crikeepd.log" &
for ((i = 0; i < 100; i++)); do
	[ ! -S "$dir/through/cri.sock" ] || break
	sleep 0.1
done
[ -S "$dir/through/cri.sock" ] || { echo 'crikeepd does not start:' >&2; cat "$dir/through/crikeepd.log" >&2; exit 1; }
drive through "$dir/through/cri.sock" 60

row() { printf '%-34s %21s %17s\n' "$1" "$2" "$3"; }
echo
row '' 'straight at containerd' 'through crikeepd'
row 'requests of the client' "$(figure straight requests)" "$(figure through requests)"
row 'sandboxes runc began to create' "$(begun straight)" "$(begun through)"
row 'of these created' "$(made straight)" "$(made through)"
row 'the client has its id' "$(when straight)" "$(when through)"
echo

bad=0
wrong() { say "WRONG: $*"; bad=1; }
[ -n "$(id through)" ] || wrong 'the client was given no id'
[ "$(begun through)" = 1 ] || wrong 'runc did not create exactly one sandbox'
[ "$(running through)" = "$(id through)" ] || wrong "what runs is '$(running through)', the client was given '$(id through)'"
[ $bad -ne 0 ] || say 'Through crikeepd the sandbox was created once, and its id was given to the client that came back for it.'
exit $bad
