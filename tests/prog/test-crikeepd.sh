#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# crikeepd as those who run it meet it: exit statuses and what is said with them, SIGHUP and SIGTERM, a socket passed by systemd,
# a log nobody reads; and that its man pages know every key, flag, parameter and metric there is.
#
# shellcheck disable=SC1091,SC2154,SC2317 # variables are prelude.sh's, and it calls at_end
set -u

. "$(dirname "$0")/prelude.sh"
pid=
at_end() { [ -z "$pid" ] || kill -9 "$pid" 2>/dev/null; }

# wait_for N COMMAND...: until it succeeds, at most N tenths of a second
wait_for() {
	local left=$(($1 * ${CK_TEST_SLOW:-1}))
	shift
	until "$@" >/dev/null 2>&1; do
		left=$((left - 1))
		[ $left -gt 0 ] || return 1
		sleep 0.1
	done
}

own=(--state-dir "$work/state" --listen "$work/cri.sock" --unfiltered '' --metrics '' --set log.target=stderr)

# start ARGUMENT...: in the background, its log in $work/log; returns when it serves
start() {
	rm -f "$work/log" # or the last one's words would be taken for this one's
	"$crikeepd" "${own[@]}" "$@" 2>"$work/log" &
	pid=$!
	wait_for 100 grep -q 'serving unix://' "$work/log"
}

# stop SIGNAL: $? is the daemon's
stop() {
	kill "-$1" "$pid"
	wait "$pid"
	local r=$?
	pid=
	return $r
}

# gone PID...: none of them is left; wait_for calls it
# shellcheck disable=SC2317
gone() {
	local one
	for one; do
		kill -0 "$one" && return 1
	done
	return 0
}

# ---- exit statuses ------------------------------------------------------------------------------------------------------

# ends NAME STATUS TEXT ARGUMENT...: it ends so, and its last line holds TEXT
ends() {
	local name=$1 want=$2 text=$3 r
	shift 3
	"$crikeepd" "$@" >"$work/out" 2>&1
	r=$?
	if [ $r != "$want" ] || ! tail -n 1 "$work/out" | grep -qF -- "$text"; then
		printf 'status %s\n' $r
		cat "$work/out"
		result "$name" 1
	else
		result "$name" 0
	fi
}

printf 'log:\n  level: info\ncache:\n  ttl: 10min\n' >"$work/bad.yaml"
ends wrong_value_is_2_and_names_file_line_key 2 "$work/bad.yaml:4: cache.ttl: '10min' is not a span" --config "$work/bad.yaml"
ends wrong_value_is_2_with_check_config 2 "$work/bad.yaml:4: cache.ttl:" --config "$work/bad.yaml" --check-config
ends wrong_key_is_2 2 "--set: cahce.ttl: no such key; did you mean 'cache.ttl'?" --set cahce.ttl=1m
ends unknown_flag_is_2 2 'for more information' --no-such-flag
ends missing_file_is_2 2 "$work/none.yaml: No such file or directory" --config "$work/none.yaml"
ends loop_is_2 2 'crikeepd would call itself' --runtime "$work/a" --listen "$work/a"
ends good_configuration_is_0 0 'The configuration is good' --check-config --set log.level=debug
ends version_is_0 0 'crikeepd ' --version
ends wrong_simulator_is_2 2 "there is no parameter 'creat'" --sim=creat=5s
ends missing_runtime_is_1_and_names_path_and_cause 1 "unix://$work/nobody: no such file" "${own[@]}" \
	--runtime "unix://$work/nobody" --set start_timeout=200ms
touch "$work/regular"
ends regular_file_is_1_and_named 1 "$work/regular" "${own[@]}" --runtime "unix://$work/regular" --set start_timeout=200ms

# ---- a life -------------------------------------------------------------------------------------------------------------

printf 'log: {level: info}\n' >"$work/c.yaml"
if start --runtime sim: --config "$work/c.yaml"; then
	result it_serves_the_simulator 0
	grep -q 'crikeepd: crikeepd .*: no' "$work/log"
	result the_log_says_what_is_in_force $?

	ends second_daemon_is_1_and_names_the_pid 1 "$pid" "${own[@]}" --listen "$work/second.sock" \
		--runtime "$work/state/sim.sock"
	[ -S "$work/cri.sock" ] && kill -0 "$pid"
	result first_daemon_is_untouched $?

	printf 'log: {level: debug}\ncache: {ttl: 1h}\n' >"$work/c.yaml"
	kill -HUP "$pid"
	wait_for 50 grep -q 'reloaded the configuration' "$work/log" &&
		grep -q 'cache.ttl: changed in the configuration, but needs a restart' "$work/log"
	result sighup_reads_the_file_again $?
	printf 'log: {level: loud}\n' >"$work/c.yaml"
	kill -HUP "$pid"
	wait_for 50 grep -q "not reloaded: $work/c.yaml:1: log.level: 'loud' is not" "$work/log"
	result sighup_with_a_wrong_file_changes_nothing $?
	mv "$work/c.yaml" "$work/gone.yaml"
	kill -HUP "$pid"
	wait_for 50 grep -q "not reloaded: $work/c.yaml: No such file" "$work/log"
	result sighup_without_the_file_changes_nothing $?

	read -ra children <"/proc/$pid/task/$pid/children"
	stop TERM
	result sigterm_is_0 $?
	[ ${#children[@]} -ge 2 ] && wait_for 50 gone "${children[@]}"
	result its_children_end_with_it $?
	[ ! -e "$work/cri.sock" ]
	result its_socket_is_gone $?
else
	cat "$work/log"
	result it_serves_the_simulator 1
fi

# ---- a log nobody reads -------------------------------------------------------------------------------------------------

mkfifo "$work/pipe"
exec 7<>"$work/pipe" # open at both ends, and never read
head -c 65536 /dev/zero | dd of="$work/pipe" oflag=nonblock bs=4096 status=none 2>/dev/null
"$crikeepd" "${own[@]}" --runtime sim: 2>&7 &
pid=$!
wait_for 100 test -S "$work/cri.sock"
result a_full_log_pipe_does_not_hold_it_up $?
stop TERM
result and_it_ends $?
exec 7<&-

# ---- socket activation --------------------------------------------------------------------------------------------------

if command -v systemd-socket-activate >/dev/null; then
	systemd-socket-activate --listen="$work/passed.sock" --fdname=cri \
		"$crikeepd" --state-dir "$work/passed" --listen "$work/unused.sock" --unfiltered '' --metrics '' --runtime sim: \
		2>"$work/passed.log" &
	activated=$!
	# the client that it is started for: another crikeepd, whose runtime it is
	wait_for 50 test -S "$work/passed.sock" && start --runtime "$work/passed.sock"
	result a_passed_socket_is_served $?
	[ ! -e "$work/unused.sock" ]
	result and_no_other_is_made $?
	stop TERM
	pid=$activated
	stop TERM
	result and_it_ends_when_asked $?
	[ -S "$work/passed.sock" ]
	result the_passed_socket_stays $?
else
	echo 'skip - a_passed_socket_is_served: no systemd-socket-activate'
fi

# ---- the man pages ------------------------------------------------------------------------------------------------------

# documented NAME PAGE: each word on stdin stands in the page, whose escapes are undone first
documented() {
	local missing
	sed 's/\\-/-/g' "$src/man/$2" >"$work/page"
	missing=$(while read -r word; do
		grep -qwF -- "$word" "$work/page" || echo "$word"
	done)
	[ -z "$missing" ] || printf 'not in %s: %s\n' "$2" "$missing"
	[ -z "$missing" ]
	result "$1" $?
}

"$crikeepd" --print-config >"$work/defaults"
sed -n 's/^ *\([a-z_]*\):.*/\1/p' "$work/defaults" | documented every_key_is_in_the_man_page crikeep.yaml.5
"$crikeepd" --help | sed -n 's/.* --\([a-z-]*\).*/\1/p' | documented every_flag_is_in_the_man_page crikeepd.8
sed -n 's/^\t{ "\([a-z._]*\)", [A-Z_]*, AT(.*/\1=/p' "$src/src/sim/sim-conf.c" >"$work/parameters"
[ "$(wc -l <"$work/parameters")" -ge 20 ] && sed 's/=$//' "$work/parameters" |
	documented every_parameter_of_the_simulator_is_in_the_man_page crikeepd.8
grep -oE '"crikeepd?_[a-z_]+"' "$src/src/daemon/metrics.c" | tr -d '"' | grep -vx 'crikeep_' >"$work/metrics"
[ "$(wc -l <"$work/metrics")" -ge 20 ] && documented every_metric_is_in_the_man_page crikeepd.8 <"$work/metrics"

# the example with all defaults in it, as a configuration
sed -n '/^All of it, with the defaults:/,/^\.Ed/p' "$src/man/crikeep.yaml.5" | sed '1,2d;$d' >"$work/man.yaml"
"$crikeepd" --config "$work/man.yaml" --print-config | sed 's/ # .*//' >"$work/printed"
sed -i '/allow_uids/d' "$work/printed" "$work/defaults" # who runs this is in them
cmp -s "$work/printed" "$work/defaults"
result the_man_pages_defaults_are_the_defaults $?
exit "$failed"
