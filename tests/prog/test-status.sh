#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# crikeep status: each trouble is made on purpose, and must be named, and nothing else. `whats' is
# the list of problems that a program reads.
#
# A && B || C is meant; words are split on purpose; functions are called by check, variables are
# prelude.sh's:
# shellcheck disable=SC1091,SC2013,SC2015,SC2034,SC2086,SC2154,SC2317
set -u

. "$(dirname "$0")/prelude.sh"
# lines are folded, so that the length of the path is seen
rmdir "$work" && work=$(mktemp -d /tmp/ck.XXXXXX) || exit 99
. "$(dirname "$0")/database.sh"
daemon='' sim=''
unset CONTAINER_RUNTIME_ENDPOINT
where=(--socket "$work/metrics.sock" --endpoint "unix://$work/cri.sock")

at_end() {
	[ -z "$sim" ] || kill -CONT "$sim" 2>/dev/null
	end owner
	end daemon
}

filter() {
	sed -E -e 's/, (<1|[0-9]+)s ago/, Ns ago/' -e 's/[0-9]{2}s\b/NNs/g' \
		-e 's/[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z/TIME/' \
		-e 's/("?((seconds_ago|[a-z_]*bytes|pid)"?: *))[0-9.]+/\1N/' \
		-e 's/process [0-9]+/process N/g' -e 's/[0-9.]+ ([KMG]i)?B/SIZE/g' \
		-e 's/(since|at|^ ) [0-9:]{8}/\1 HH:MM:SS/' -e "s|$work|WORK|g"
}
# whats STATUS [WHAT...]: status ends so, and finds just these problems, in this order
whats() {
	local want=$1
	shift
	run "$want" status "${where[@]}" -o json &&
		[ "$(sed -n 's/.*"what": "\([a-z_]*\)".*/\1/p' "$work/out" | xargs)" = "$*" ] ||
		{ cat "$work/out" "$work/err"; return 1; }
}
# says TEXT: so does the table
says() {
	run "${2:-1}" status "${where[@]}" && grep -qF -- "$1" "$work/out" ||
		{ cat "$work/out" "$work/err"; return 1; }
}

# ---- the state directory -----------------------------------------------------------------------

rm -rf "$dir"
check 'nothing has run: stopped' whats 1 owner_stopped
check 'and the table says so' says 'stopped; it has not run with this state directory'
db empty hold
check 'an owner without entries: no problem' whats 0
check 'and the table says so' says 'Problems: none' 0
db states hold
golden status 1 status "${where[@]}"
golden status-json 1 status "${where[@]}" -o json
narrow() {
	! script -qec "stty cols 80; NO_COLOR=1 $crikeep status ${where[*]}" /dev/null </dev/null |
		tr -d '\r' | sed "s|$work|WORK|g" | grep -E '.{81}'
}
check 'it fits into 80 columns' narrow
# escapes N SETTING...: on a terminal with these settings, so many colours begin
escapes() {
	local want=$1
	shift
	[ "$(script -qec "env -u NO_COLOR $* $crikeep status ${where[*]}" /dev/null </dev/null |
		grep -c $'\e\\[31m')" = "$want" ]
}
check 'problems are red on a terminal' escapes 3 TERM=xterm
check 'not with NO_COLOR' escapes 0 TERM=xterm NO_COLOR=1
check 'and with an empty NO_COLOR' escapes 3 TERM=xterm NO_COLOR=
check 'not on a dumb terminal' escapes 0 TERM=dumb
plain() { TERM=xterm "$crikeep" status "${where[@]}" | grep -c $'\e' | grep -qx 0; }
check 'and not in a file' plain
alone() { # crikeep [-o json]: the same as status
	run 1 -o json && grep -q '"what": "destroy_failing"' "$work/out" && run 1 &&
		grep -q '^Problems:$' "$work/out"
}
check 'crikeep alone is crikeep status' alone
kill -STOP "$owner"
check 'a frozen owner' wait_for 50 whats 1 owner_frozen destroy_failing outcome_unknown \
	creation_failing
listed_frozen() { # and every command that shows entries says so
	local command
	for command in 'list' 'show 1' 'history'; do
		run 0 $command && grep -q 'warning: the owner, process .* is stopped' "$work/err" ||
			{ cat "$work/err"; return 1; }
	done
}
check 'list, show and history say that the owner is frozen' listed_frozen
explained_frozen() { # and what says how the owner is
	run 0 explain prod/db-0 && grep -q 'is stopped by a signal or a' "$work/out" &&
		run 0 stats && grep -q '^owner .*; it is stopped by a signal' "$work/out" &&
		run 0 stats -o json && grep -q '"owner_frozen": true' "$work/out" ||
		{ cat "$work/out"; return 1; }
}
check 'explain and stats do not call it running' explained_frozen
kill -CONT "$owner"
end owner
check 'a killed owner' whats 1 owner_stopped destroy_failing outcome_unknown creation_failing
without_owner() { # each answer says so: on standard error, or in itself
	local command word="warning: no owner is running"
	for command in 'list' 'list -a' 'list -q' 'list -o json' 'show 1' 'show 1 -o yaml' \
		'history' 'history 1 -o json' 'check' 'check -o json'; do
		run 0 $command && grep -q "$word" "$work/err" || { echo "$command"; return 1; }
	done
	for command in show explain history evict; do
		run 1 $command nothing && grep -q "$word" "$work/err" ||
			{ echo "$command nothing"; return 1; }
	done
	run 0 explain 1 && grep -q 'The database has no owner now' "$work/out" &&
		run 0 explain 1 -o json && grep -q '"owner_alive": false' "$work/out" &&
		run 0 stats && grep -q '^owner  *none' "$work/out" &&
		run 0 stats -o json && grep -q '"owner_alive": false' "$work/out" &&
		run 0 evict 1 --dry-run && grep -q "$word" "$work/err" &&
		run 0 evict 1 && grep -q 'has no owner now' "$work/out" &&
		rm -r "$dir/wishes"
}
check 'every command says that there is no owner' without_owner
golden status-stopped 1 status "${where[@]}"
db slow hold
check 'a creation that hangs' whats 1 creation_slow
check 'and its stage' says 'sandbox network creation.'
end owner
check 'which nobody waits for any more' whats 1 owner_stopped
db empty stuck
check 'an owner that cannot write' whats 1 database_not_written
db empty hold
rm "$dir/key"
check 'a key that is missing' whats 1 key_missing
echo short >"$dir/key"
check 'a key that is damaged' whats 1 key_damaged
db twins hold
check 'a key that was replaced' whats 1 key_replaced
db empty
printf 'damage' | dd of="$dir/crikeep.db" conv=notrunc status=none
check 'a database that is damaged' whats 1 owner_stopped database_unreadable
db empty hold
rm "$dir/crikeep.db"
check 'a database that is gone' whats 1 database_missing
unreadable() { # root without its power over modes is like anybody else
	local drop=''
	[ "$(id -u)" != 0 ] || drop='setpriv --bounding-set=-dac_override,-dac_read_search --'
	db empty
	chmod 0 "$dir"
	$drop "$crikeep" status "${where[@]}" >"$work/out" 2>"$work/err"
	local status=$?
	chmod 700 "$dir"
	[ $status = 2 ] && ! [ -s "$work/out" ] && [ "$(wc -l <"$work/err")" = 1 ] &&
		grep -q '^crikeep: .*ermission denied' "$work/err"
}
check 'a directory that may not be read' unreadable
little_space() {
	mkdir -p "$work/small"
	# shellcheck disable=SC2016
	unshare -m sh -c 'mount -t tmpfs -o size=2m none "$1" && chmod 700 "$1" &&
		"$2" "$1" empty && "$3" status -o json --state-dir "$1"' sh "$work/small" \
		"$make_db" "$crikeep" >"$work/out"
	grep -q '"what": "space_low"' "$work/out"
}
if unshare -m true 2>/dev/null; then
	check 'little space' little_space
else
	echo 'skip - little space: no mounts here'
fi

# ---- plugins -----------------------------------------------------------------------------------

# plugin NAME STATE [ADJUSTING [ERROR]]: the owner has this one
plugin() {
	local ns
	ns=$(awk '{ printf "%.0f", ($1 > 20 ? $1 - 20 : 1) * 1e9 }' /proc/uptime)
	{
		echo "crikeep-plugins 1 boot=$(cat /proc/sys/kernel/random/boot_id) time=$ns" \
			"wall=$(date +%s) pid=$owner plugins=1"
		echo "plugin name=$1 state=$2 policy=error keep=0 launched=0 pid=77" \
			"events=16383 adjusting=${3:-0} queued=3 since=$ns overdue=$ns sent=1" \
			"late=1 failed=1 error=${4:-}"
	} >"$dir/plugins"
}
db empty hold
plugin 10-net ready
check 'a plugin that is ready' whats 0
check 'and is counted' says '1 connected' 0
plugin 10-net overdue
check 'a plugin that owes an answer' whats 1 plugin_overdue
plugin 10-net absent
check 'a plugin that is absent' whats 1 plugin_absent
plugin 10-net gone 0 'CreateContainer:\x20no\x20answer'
check 'a plugin that is gone' whats 1 plugin_gone
check 'and its last error' says 'not back: CreateContainer:'
plugin 10-net ready 1
check 'a plugin that adjusts too late' whats 1 plugin_adjusts
sed -i 's/ pid=[0-9]* plugins/ pid=1 plugins/' "$dir/plugins"
check 'what an earlier owner wrote says nothing' whats 0
end owner

# tells TEXT: somebody tells these metrics, once. The socket gets its name when it listens
tells() {
	rm -f "$work/metrics.sock" "$work/metrics.sock.new"
	python3 -c 'import os, socket, sys
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1] + ".new")
listener.listen(1)
os.rename(sys.argv[1] + ".new", sys.argv[1])
listener.accept()[0].sendall(sys.argv[2].encode())' "$work/metrics.sock" "$1" &
	wait_for 100 test -S "$work/metrics.sock"
}
up=$'crikeepd_upstream_up 1\n' eof=$'# EOF\n'
held() {
	tells "crikeepd_pid $owner"$'\n'"crikeep_wal_held_by_pid 42"$'\n'"$eof" &&
		whats 1 runtime_disconnected log_held
}
cut() { tells "crikeepd_pid $owner"$'\n'"$up" && whats 1 owner_silent; }
if command -v python3 >/dev/null; then
	db empty hold
	check 'a process that holds the log' held
	check 'metrics that are not whole' cut
	end owner
	rm -f "$work/metrics.sock"
else
	echo 'skip - metrics of a kind: no python3'
fi

if [ ! -x "$crikeepd" ]; then
	echo 'skip - with crikeepd: built without crikeepd'
	exit "$failed"
fi

# ---- crikeepd and its runtime ------------------------------------------------------------------

# start ARGUMENT...: crikeepd, until its database has an owner
start() {
	end daemon
	rm -rf "$dir"
	"$crikeepd" --state-dir "$dir" --listen "$work/cri.sock" --unfiltered '' \
		--metrics "$work/metrics.sock" --set log.target=stderr "$@" 2>>"$work/log" &
	daemon=$!
}
find_sim() {
	local one
	for one in $(cat "/proc/$daemon/task/$daemon/children"); do
		[ "$(cat "/proc/$one/comm")" != crikeep-sim ] || sim=$one
	done
	[ -n "$sim" ]
}
start --runtime sim:create=1000s
check 'crikeepd and its runtime are well' wait_for 100 whats 0
check 'and named' says "Runtime: crikeep-sim " 0
check 'with the version of crikeepd' says "$("$crikeepd" --version) - " 0
check 'no call is unanswered' says 'Calls: all are answered' 0
"$crikeep" drive --endpoint "unix://$work/cri.sock" --pod web --deadline 1000s >/dev/null 2>&1 &
driver=$!
check 'a call that has no answer yet' wait_for 100 says 'Calls: the oldest one without an answer' 0
end driver
find_sim
kill -STOP "$sim"
check 'a frozen runtime' wait_for 50 whats 1 runtime_silent
hangs() { # the kernel accepts for a process that is frozen
	local where=(--socket "$dir/sim.sock" --endpoint "unix://$work/cri.sock")
	whats 1 owner_silent
}
check 'metrics that do not come' hangs
kill -CONT "$sim"
check 'a runtime that goes on' wait_for 50 whats 0
mv "$work/cri.sock" "$work/elsewhere.sock"
check 'a socket that is gone' whats 1 socket_unreachable
mv "$work/elsewhere.sock" "$work/cri.sock"
kill -STOP "$daemon"
check 'a frozen crikeepd' wait_for 50 whats 1 owner_frozen
kill -CONT "$daemon"
others() { # of another state directory, nothing is said in the name of this owner
	local CRIKEEP_STATE_DIR=$work/other
	export CRIKEEP_STATE_DIR
	rm -rf "$work/other"
	rm -f "$work/ready"
	mkfifo "$work/ready"
	"$make_db" "$work/other" empty hold >"$work/ready" &
	owner=$!
	read -r _ <"$work/ready"
	"$crikeep" status --socket "$work/metrics.sock" -o json >"$work/out"
	local status=$?
	end owner
	[ $status = 0 ] && grep -q '"state": "unknown"' "$work/out" &&
		grep -q "process $daemon serves $work/metrics.sock, and it is not the owner" \
			"$work/out" || { cat "$work/out"; return 1; }
}
check 'the metrics of another crikeepd' others
end daemon
check 'a killed crikeepd' whats 1 owner_stopped

start --runtime sim:create=1000s --shadow
check 'one that only counts is well' wait_for 100 whats 0
check 'and says so' says 'Shadow: it only counts' 0
check 'with what it has counted' says 'Would save: 0 (0 sandboxes, 0 containers)' 0
tried() { # by a client that gives up and repeats; the first one would have been needed
	local cut
	"$crikeep" drive --endpoint "unix://$work/cri.sock" --pod web --deadline 200ms \
		--retry 100ms --give-up 2s >/dev/null 2>&1
	run 0 status "${where[@]}" -o json || return
	cut=$(tr -d ' \n' <"$work/out" | sed -n 's/.*"cut_off":{"sandboxes":\([0-9]*\),.*/\1/p')
	[ "$cut" -ge 2 ] && says "Cut off: $cut ($cut sandboxes, 0 containers)" 0 &&
		says "Would save: $((cut - 1)) (" 0
}
check 'and counts' tried
end daemon
rm -f "$work/cri.sock" "$work/metrics.sock"

start --runtime sim:list=1000s
check 'a runtime that does not tell what exists' wait_for 100 whats 1 runtime_untold
check 'is no unreachable socket' says 'crikeepd does not serve anybody yet'
start --runtime sim: --metrics ''
check 'without metrics' wait_for 100 whats 0
find_sim
kill -STOP "$sim"
check 'a frozen runtime without metrics' wait_for 50 whats 1 runtime_silent
kill -CONT "$sim"
sim=''
rm -f "$work/runtime.sock"
start --runtime "unix://$work/runtime.sock"
check 'a runtime that is not there yet' wait_for 100 whats 1 runtime_disconnected
"$crikeep_sim" --listen="$work/runtime.sock" -- >/dev/null 2>&1 &
runtime=$!
check 'and comes' wait_for 100 whats 0
end runtime
check 'a runtime that was killed' wait_for 50 whats 1 runtime_disconnected
check 'and why' says 'has lost the connection to the runtime: '
"$crikeep_sim" --listen="$work/runtime.sock" -- >/dev/null 2>&1 &
runtime=$!
start --runtime "unix://$work/runtime.sock" --metrics ''
check 'another runtime without metrics' wait_for 100 whats 0
end runtime
check 'it was killed: crikeepd says why' wait_for 50 whats 1 runtime_failing
check 'in its words' says 'Version fails with UNAVAILABLE: '
end daemon

check_json
exit "$failed"
