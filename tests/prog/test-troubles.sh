#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# crikeep-troubleshooting(7), trouble by trouble: each is made on purpose, the command that the page
# names is run, and its output must have what the page shows, and no other trouble's cause; nor may
# status and doctor claim one. Where a trouble outlives crikeepd, the same again when that was
# killed. A subsection of the page is
#
#	.Ss 7. Its title
#	.\" cause: words of the output that no other trouble has
#	.\" also: other words that claim this cause; they need not be shown
#	.Dl crikeep explain prod/web
#	.Bd -literal ... .Ed	what it prints, or a part of that; "..." stands for anything
#
# and the trouble is made by the function make_7 here. Numbers, times and sizes may differ.
#
# usage: test-troubles.sh [NUMBER]...
#
# A && B || C is meant; functions are called by name, variables are prelude.sh's:
# shellcheck disable=SC1091,SC2015,SC2034,SC2154,SC2317
set -u

# mounts of its own
if [ "$(id -u)" = 0 ] && [ -z "${CK_TROUBLES_INSIDE:-}" ] && unshare -m true 2>/dev/null; then
	CK_TROUBLES_INSIDE=1 exec unshare -m "$BASH" "$0" "$@"
fi
. "$(dirname "$0")/prelude.sh"
# lines are folded, so that the length of the path is seen
rmdir "$work" && work=$(mktemp -d /tmp/ck.XXXXXX) || exit 99
page=$src/man/crikeep-troubleshooting.7
root=$work/n run=$root/run/crikeep
sim='' daemon='' other='' client='' outsider=''
unset CONTAINER_RUNTIME_ENDPOINT CRIKEEP_STATE_DIR CRIKEEP_ENDPOINT
export NO_COLOR=1

if [ ! -x "$crikeepd" ]; then
	echo 'skip - troubles: built without crikeepd'
	exit 0
fi

# ---- the node ----------------------------------------------------------------------------------

at_end() {
	local one
	for one in client outsider other daemon sim; do
		[ -z "${!one}" ] || kill -CONT "${!one}" 2>/dev/null
		end "$one"
	done
	! mountpoint -q "$run" || umount "$run"
}
# file PATH [TEXT]...: a file of the node, with these lines, an hour old
file() {
	local path=$root$1
	shift
	mkdir -p "${path%/*}"
	printf '%s\n' "$@" >"$path"
	touch -d '1 hour ago' "$path"
}
# process PID NAME ARGUMENT...: the node runs it
process() {
	local at=$root/proc/$1
	mkdir -p "$at"
	echo "$2" >"$at/comm"
	awk -v who="$1 ($2)" '{ print who, "S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0",
		int($1 * 100), 0 }' /proc/uptime >"$at/stat"
	shift 2
	printf '%s\0' "$@" >"$at/cmdline"
}
# unit ID ACTIVE FILE RESULT: as `systemctl show' tells of it
unit() { printf 'Id=%s\nLoadState=loaded\nActiveState=%s\nUnitFileState=%s\nResult=%s\n\n' "$@"; }
units() { # units ACTIVE RESULT BYPASS
	{
		unit crikeepd.service "$1" enabled "$2"
		unit crikeepd.socket inactive disabled success
		unit crikeepd-bypass.socket "$3" static success
	} >"$work/units"
}
cri=unix:///run/crikeep/cri.sock
kubelet() { process 4242 kubelet /usr/bin/kubelet "$@"; }
# whole: nothing is wrong with the node, and nothing runs on it
whole() {
	at_end
	rm -rf "${root:?}" "$work/log"
	mkdir -p "$run" "$root/run/containerd" "$root/run/systemd/system"
	chmod 0700 "$run"
	file /etc/crikeep/crikeep.yaml 'metrics: /run/crikeep/metrics.sock'
	file /etc/crictl.yaml "runtime-endpoint: $cri"
	file /var/lib/kubelet/config.yaml 'kind: KubeletConfiguration' 'runtimeRequestTimeout: 0s'
	kubelet --config=/var/lib/kubelet/config.yaml --container-runtime-endpoint "$cri"
	units active success inactive
}
mkdir -p "$work/bin"
# shellcheck disable=SC2016
printf '#!/bin/sh\ncat "%s"\n' "$work/units" >"$work/bin/systemctl"
chmod +x "$work/bin/systemctl"
PATH=$work/bin:$PATH
cp "$crikeep_sim" "$work/bin/containerd" # so the simulated runtime has this name

runtime=$root/run/containerd/containerd.sock
# runtime PARAMETERS: it runs
runtime() {
	"$work/bin/containerd" --listen="$runtime" "${1:-}" >/dev/null 2>&1 &
	sim=$!
	wait_for 100 test -S "$runtime"
	# it binds this name and renames it; who looks for the runtime of a connection finds this
	ln -sf containerd.sock "${runtime%/*}/.containerd.sock.new"
}
# daemon ARGUMENT...: crikeepd runs, and serves
daemon() {
	"$crikeepd" --state-dir "$run" --listen "$run/cri.sock" \
		--unfiltered "$run/unfiltered.sock" --metrics "$run/metrics.sock" \
		--set log.target=stderr --runtime "unix://$runtime" "$@" 2>>"$work/log" &
	daemon=$!
}
# the socket of one that was killed is still there
serves() { wait_for 100 "$crikeep" pods --endpoint "unix://$run/cri.sock"; }
# node [PARAMETERS [ARGUMENT...]]: both
node() {
	runtime "${1:-}"
	daemon "${@:2}"
	serves
}
endpoint=unix://$run/cri.sock
# asks ARGUMENT...: a client asks for a pod, to the end
asks() {
	"$crikeep" drive --endpoint "$endpoint" --namespace prod --uid u1 "$@" >"$work/asked" 2>&1
}
# keeps_asking ARGUMENT...: the same in the background, until it is ended
keeps_asking() {
	"$crikeep" drive --endpoint "$endpoint" --namespace prod --uid u1 "$@" --deadline 1000s \
		--give-up 1000s >"$work/asked" 2>&1 &
	client=$!
}
once=(--give-up 10ms)                # one request, whatever its answer
late=(--deadline 100ms "${once[@]}") # one that ends before the creation
keeping=(--set cache.hand_back=repeat)
slowly=create.sandbox=200ms,cancel=finish
# entry STATE: prod/web has one in this state
entry() {
	"$crikeep" explain --state-dir "$run" prod/web 2>&1 | tr '\n' ' ' | grep -q "in state $1 "
}
kept() { # kept [PARAMETERS [ARGUMENT...]]: a sandbox is
	node "$slowly${1:+,$1}" "${keeping[@]}" "${@:2}"
	asks --pod web "${late[@]}"
	wait_for 100 entry KEPT
}
has_plugin() { "$crikeep" plugins --state-dir "$run" -q | grep -q 10-net; }
plugin() { # plugin HOW [ARGUMENT...]: crikeepd has one
	node '' --nri --nri-socket "$root/nri.sock" --nri-plugin-dir '' "${@:2}"
	"$build/tests/prog/plugin" "$root/nri.sock" 10-net "$1" &
	other=$!
	wait_for 100 has_plugin
}
small() { mount -t tmpfs -o size=2m,mode=0700 none "$run"; }
damage() {
	dd if=/dev/urandom of="$run/crikeep.db" bs=1k seek="$1" count=20 conv=notrunc status=none
}
ends() { # crikeepd does, and all is in its database
	kill "$daemon"
	wait "$daemon"
	daemon=''
}

# ---- the troubles ------------------------------------------------------------------------------

make_1() { node; file /etc/crikeep/crikeep.yaml 'cache:' '  ttk: 10m'; }
make_2() { node; kubelet --container-runtime-endpoint=unix:///run/containerd/containerd.sock; }
make_3() { node; touch -d '1 minute' "$root/var/lib/kubelet/config.yaml"; }
make_4() { node; file /var/lib/kubelet/config.yaml 'runtimeRequestTimeout: 10m0s'; }
make_5() { node; end daemon; }
make_6() { node; kill -STOP "$daemon"; }
make_7() { node; units failed exit-code inactive; }
make_8() {
	mkdir -m 0700 "$root/run/other"
	runtime
	daemon --state-dir "$root/run/other"
	serves
	other=$daemon
	daemon --metrics ''
	wait "$daemon" # it does not start
	daemon=''
	units failed exit-code inactive
}
make_9() { node; rm "$run/cri.sock"; }
make_10() { runtime; units failed exit-code active; }
make_11() { runtime; chmod 0777 "$run"; }
make_12() { runtime; mount -t tmpfs -o size=9m,mode=0700,ro none "$run"; }
make_13() { runtime; rmdir "$run"; : >"$run"; }
make_14() { runtime; file /etc/crikeep/crikeep.yaml 'state_dir: /var/nowhere/state'; }
make_15() { daemon; }
make_16() { : >"$runtime"; }
make_17() { node; end sim; }
make_18() { node; kill -STOP "$sim"; }
make_19() { runtime list=1000s; daemon; }
make_20() { node create=1000s; keeps_asking --pod web; wait_for 100 entry CREATING; }
make_21() { make_20; end sim; }
make_22() { node fail.sandbox=1000; asks --pod web "${once[@]}"; asks --pod web "${once[@]}"; }
make_23() {
	local id
	node fail.container=1000
	asks --pod web
	id=$("$crikeep" pods --endpoint "$endpoint" -q)
	asks --pod web --container app --sandbox "$id" --image a "${once[@]}"
	asks --pod web --container app --sandbox "$id" --image a "${once[@]}"
}
make_24() {
	local id
	node create.container=1s,cancel=finish
	asks --pod web
	id=$("$crikeep" pods --endpoint "$endpoint" -q)
	asks --pod web --container app --sandbox "$id" --image a "${late[@]}"
	wait_for 100 entry KEPT
	asks --pod web --container app --sandbox "$id" --image b
}
make_25() { kept; asks --pod web --attempt 1; }
make_26() { kept; asks --pod web --uid u2; }
make_27() { kept '' --ttl 1s; }
make_28() { kept fail.remove=1000; "$crikeep" evict -y --state-dir "$run" 1 >/dev/null 2>&1; }
make_29() { node; asks --pod web "${once[@]}"; asks --pod web2 "${once[@]}"; }
make_30() {
	small
	node
	head -c 3M /dev/zero >"$run/fill" 2>/dev/null
	asks --pod web "${once[@]}"
}
make_31() { small; node; }
make_32() { node; asks --pod web "${once[@]}"; ends; damage 4; }
make_33() { node; asks --pod web "${once[@]}"; ends; damage 0; daemon; serves; }
make_34() { node; rm "$run/crikeep.db"; }
make_35() { node; rm "$run/key"; }
make_36() { node; echo short >"$run/key"; }
make_37() { kept; end daemon; rm "$run/key"; daemon "${keeping[@]}"; serves; }
make_38() {
	node '' --nri --nri-socket "$root/nri.sock" --nri-plugin-dir '' \
		--set nri.policies=10-net=required
	asks --pod web "${once[@]}"
}
make_39() { plugin holds --set nri.request_timeout=2s; asks --pod web "${late[@]}"; }
make_40() { plugin holds --set nri.request_timeout=100ms; asks --pod web "${late[@]}"; }
make_41() { plugin fails; asks --pod web "${once[@]}"; asks --pod web "${once[@]}"; }
make_42() { plugin adjusts; asks --pod web --container app --image a "${once[@]}"; }
somebody=(setpriv --reuid=65534 --regid=65534 --clear-groups)
make_43() {
	node
	chmod 0711 "$work" "$root" "$root/run" "$run"
	chmod 0666 "$run/cri.sock"
	"${somebody[@]}" "$crikeep" pods --endpoint "$endpoint" >/dev/null 2>&1
	chmod 0600 "$run/cri.sock"
	chmod 0700 "$run"
}
make_44() { node; chmod 0711 "$work" "$root" "$root/run"; as=("${somebody[@]}"); }
make_45() { node; chmod 0666 "$run/cri.sock"; }

# what is true at the same time: of the first, the second is a consequence
together='
8 5
10 5
11 5
12 5
13 5
14 5
16 5
21 17
32 5
41 22
'
# what only root can make
privileged='12 30 31 43 44'
# what is named without crikeepd, too
outlive='1 2 3 4 16 18 22 23 24 25 26 27 28 29 31 35 36'

# ---- what the page says ------------------------------------------------------------------------

page_has() { # page_has NUMBER command|cause|also|prints
	awk -v n="$1" -v what="$2" '
	/^\.S[sh] / { inside = index($0, ".Ss " n ". ") == 1 }
	!inside { next }
	what == "cause" && sub(/^\.\\" cause: /, "") { print }
	what == "also" && sub(/^\.\\" also: /, "") { print }
	what == "command" && sub(/^\.Dl crikeep /, "") { print }
	/^\.Ed/ { shown = 0 }
	what == "prints" && shown { print }
	/^\.Bd -literal/ { shown = 1 }' "$page" | sed -e 's/^\\&//' -e 's/\\-/-/g'
}
numbers() { sed -n 's/^\.Ss \([0-9]*\)\. .*/\1/p' "$page"; }
title() { sed -n "s/^\\.Ss $1\\. //p" "$page" | tr -d '"'; }

# Standard input in one line, in which numbers, times and sizes are alike. A slow machine tries more
# often than once.
alike() {
	tr '\n' ' ' | sed -E -e "s|$root||g" -e 's/ +/ /g' -e 's/\bid [0-9a-f]{6,}/id ID/g' \
		-e 's/[0-9.]+ ([KMGT]i)?B\b/SIZE/g' \
		-e 's/<?([0-9]+(\.[0-9]+)?(ms|s|m|h|d))+\b/SPAN/g' -e 's/[0-9]+/N/g' \
		-e 's/\bN attempts\b/N attempt/g'
}
# has TEXT PART: "..." in PART stands for anything
has() {
	local rest=$1 part
	while IFS= read -r part; do
		[[ $rest == *"$part"* ]] || return 1
		rest=${rest#*"$part"}
	done < <(sed 's/ *\.\.\. */\n/g; s/ $//' <<<"$2")
}

# ---- made, asked for, compared -----------------------------------------------------------------

as=()
# said COMMAND [POD]: what it prints here
said() {
	local where=(--state-dir "$run")
	case $1 in
	status) where+=(--socket "$run/metrics.sock" --endpoint "$endpoint") ;;
	doctor) where=(--root "$root") ;;
	esac
	"${as[@]}" "$crikeep" "$@" "${where[@]}" 2>&1 | alike
}
# named NUMBER: the command that the page names prints what it shows
named() {
	read -ra command < <(page_has "$1" command)
	output=$(said "${command[@]}")
	has "$output" "$(page_has "$1" prints | alike)"
}
# claimed NUMBER [BESIDE]: which other causes $output claims
claimed() {
	local one
	for one in "${all[@]}"; do
		[ "$one" != "$1" ] && [ "$one" != "${2:-}" ] &&
			{ [[ $output == *"${cause[one]}"* ]] ||
				[[ $output == *"${also[one]:-${cause[one]}}"* ]]; } &&
			! grep -qx "$1 $one" <<<"$together" && echo "$one"
	done
	true
}
mapfile -t all < <(numbers)
declare -a cause also
for n in "${all[@]}"; do
	cause[n]=$(page_has "$n" cause | alike | sed 's/ $//')
	also[n]=$(page_has "$n" also | alike | sed 's/ $//')
done
page_and_test_agree() {
	local n
	diff <(numbers) <(declare -F | sed -n 's/^declare -f make_//p' | sort -n) || return 1
	for n in "${all[@]}"; do
		[ -n "${cause[n]}" ] && has "$(page_has "$n" prints | alike)" "${cause[n]}" ||
			{ echo "$n: its output has no '${cause[n]}'"; return 1; }
		page_has "$n" command | grep -qxE 'status|doctor|explain prod/web' ||
			{ echo "$n: its command"; return 1; }
	done
	[ ${#all[@]} -ge 25 ]
}
check 'each cause of the page has its trouble here, and the other way round' page_and_test_agree
[ "$failed" = 0 ] || exit 1

right=0 false=0
# judge NUMBER [HOW BESIDE]: it is named, and nothing else is
judge() {
	local name more
	name="$1. $(title "$1")${2:-}"
	if ! wait_for 100 named "$1"; then
		not_ok "$name" "${command[*]}:" "$output" "$(tail -3 "$work/log" 2>/dev/null)"
		return 1
	fi
	# whatever the command is, the others must not claim more
	[ ${#as[@]} != 0 ] || output+=$(said status; said doctor)
	more=$(claimed "$1" "${3:-}" | xargs)
	if [ -n "$more" ]; then
		false=$((false + 1))
		not_ok "$name" "but also: $more" "$output"
		return 1
	fi
	ok "$name"
}
is_among() { [[ " $2 " == *" $1 "* ]]; }
[ $# != 0 ] || set -- "${all[@]}"
for n; do
	if [ -z "${CK_TROUBLES_INSIDE:-}" ] && is_among "$n" "$privileged"; then
		echo "skip - $n. $(title "$n"): only root can make this, and mounts"
		continue
	fi
	whole
	as=()
	"make_$n"
	judge "$n" && right=$((right + 1))
	is_among "$n" "$outlive" || continue
	end daemon
	judge "$n" ', crikeepd killed' 5
done
echo "# $right of $# named, $false false"
exit "$failed"
