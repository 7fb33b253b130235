#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# crikeepd as those who run it meet it: exit statuses and what is said with them, SIGHUP and SIGTERM, a socket passed by systemd,
# a log nobody reads; and that its man pages know every key, flag, parameter and metric there is.
set -u
daemon=$CK_TEST_BUILDDIR/crikeepd
top=$CK_TEST_SRCDIR
dir=$(mktemp -d) || exit 1
pid=
status=0

trap '[ -z "$pid" ] || kill -9 "$pid" 2>/dev/null; rm -rf "$dir"' EXIT

# result NAME STATUS: what the last command said of it
result() {
	if [ "$2" = 0 ]; then
		echo "ok - $1"
	else
		echo "not ok - $1"
		status=1
	fi
}

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

own=(--state-dir "$dir/state" --listen "$dir/cri.sock" --unfiltered '' --metrics '' --set log.target=stderr)

# start ARGUMENT...: in the background, its log in $dir/log; returns when it serves
start() {
	rm -f "$dir/log" # or the last one's words would be taken for this one's
	"$daemon" "${own[@]}" "$@" 2>"$dir/log" &
	pid=$!
	wait_for 100 grep -q 'serving unix://' "$dir/log"
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
	"$daemon" "$@" >"$dir/out" 2>&1
	r=$?
	if [ $r != "$want" ] || ! tail -n 1 "$dir/out" | grep -qF -- "$text"; then
		printf 'status %s\n' $r
		cat "$dir/out"
		result "$name" 1
	else
		result "$name" 0
	fi
}

printf 'log:\n  level: info\ncache:\n  ttl: 10min\n' >"$dir/bad.yaml"
ends wrong_value_is_2_and_names_file_line_key 2 "$dir/bad.yaml:4: cache.ttl: '10min' is not a span" --config "$dir/bad.yaml"
ends wrong_value_is_2_with_check_config 2 "$dir/bad.yaml:4: cache.ttl:" --config "$dir/bad.yaml" --check-config
ends wrong_key_is_2 2 "--set: cahce.ttl: no such key; did you mean 'cache.ttl'?" --set cahce.ttl=1m
ends unknown_flag_is_2 2 'for more information' --no-such-flag
ends missing_file_is_2 2 "$dir/none.yaml: No such file or directory" --config "$dir/none.yaml"
ends loop_is_2 2 'crikeepd would call itself' --runtime "$dir/a" --listen "$dir/a"
ends good_configuration_is_0 0 'The configuration is good' --check-config --set log.level=debug
ends version_is_0 0 'crikeepd ' --version
ends wrong_simulator_is_2 2 "there is no parameter 'creat'" --sim=creat=5s
ends missing_runtime_is_1_and_names_path_and_cause 1 "unix://$dir/nobody: no such file" "${own[@]}" \
	--runtime "unix://$dir/nobody" --set start_timeout=200ms
touch "$dir/regular"
ends regular_file_is_1_and_named 1 "$dir/regular" "${own[@]}" --runtime "unix://$dir/regular" --set start_timeout=200ms

# ---- a life -------------------------------------------------------------------------------------------------------------

printf 'log: {level: info}\n' >"$dir/c.yaml"
if start --runtime sim: --config "$dir/c.yaml"; then
	result it_serves_the_simulator 0
	grep -q 'crikeepd: crikeepd .*: no' "$dir/log"
	result the_log_says_what_is_in_force $?

	ends second_daemon_is_1_and_names_the_pid 1 "$pid" "${own[@]}" --listen "$dir/second.sock" \
		--runtime "$dir/state/sim.sock"
	[ -S "$dir/cri.sock" ] && kill -0 "$pid"
	result first_daemon_is_untouched $?

	printf 'log: {level: debug}\ncache: {ttl: 1h}\n' >"$dir/c.yaml"
	kill -HUP "$pid"
	wait_for 50 grep -q 'reloaded the configuration' "$dir/log" &&
		grep -q 'cache.ttl: changed in the configuration, but needs a restart' "$dir/log"
	result sighup_reads_the_file_again $?
	printf 'log: {level: loud}\n' >"$dir/c.yaml"
	kill -HUP "$pid"
	wait_for 50 grep -q "not reloaded: $dir/c.yaml:1: log.level: 'loud' is not" "$dir/log"
	result sighup_with_a_wrong_file_changes_nothing $?
	mv "$dir/c.yaml" "$dir/gone.yaml"
	kill -HUP "$pid"
	wait_for 50 grep -q "not reloaded: $dir/c.yaml: No such file" "$dir/log"
	result sighup_without_the_file_changes_nothing $?

	read -ra children <"/proc/$pid/task/$pid/children"
	stop TERM
	result sigterm_is_0 $?
	[ ${#children[@]} -ge 2 ] && wait_for 50 gone "${children[@]}"
	result its_children_end_with_it $?
	[ ! -e "$dir/cri.sock" ]
	result its_socket_is_gone $?
else
	cat "$dir/log"
	result it_serves_the_simulator 1
fi

# ---- a log nobody reads -------------------------------------------------------------------------------------------------

mkfifo "$dir/pipe"
exec 7<>"$dir/pipe" # open at both ends, and never read
head -c 65536 /dev/zero | dd of="$dir/pipe" oflag=nonblock bs=4096 status=none 2>/dev/null
"$daemon" "${own[@]}" --runtime sim: 2>&7 &
pid=$!
wait_for 100 test -S "$dir/cri.sock"
result a_full_log_pipe_does_not_hold_it_up $?
stop TERM
result and_it_ends $?
exec 7<&-

# ---- socket activation --------------------------------------------------------------------------------------------------

if command -v systemd-socket-activate >/dev/null; then
	systemd-socket-activate --listen="$dir/passed.sock" --fdname=cri \
		"$daemon" --state-dir "$dir/passed" --listen "$dir/unused.sock" --unfiltered '' --metrics '' --runtime sim: \
		2>"$dir/passed.log" &
	activated=$!
	# the client that it is started for: another crikeepd, whose runtime it is
	wait_for 50 test -S "$dir/passed.sock" && start --runtime "$dir/passed.sock"
	result a_passed_socket_is_served $?
	[ ! -e "$dir/unused.sock" ]
	result and_no_other_is_made $?
	stop TERM
	pid=$activated
	stop TERM
	result and_it_ends_when_asked $?
	[ -S "$dir/passed.sock" ]
	result the_passed_socket_stays $?
else
	echo 'skip - a_passed_socket_is_served: no systemd-socket-activate'
fi

# ---- the man pages ------------------------------------------------------------------------------------------------------

# documented NAME PAGE: each word on stdin stands in the page, whose escapes are undone first
documented() {
	local missing
	sed 's/\\-/-/g' "$top/man/$2" >"$dir/page"
	missing=$(while read -r word; do
		grep -qwF -- "$word" "$dir/page" || echo "$word"
	done)
	[ -z "$missing" ] || printf 'not in %s: %s\n' "$2" "$missing"
	[ -z "$missing" ]
	result "$1" $?
}

"$daemon" --print-config >"$dir/defaults"
sed -n 's/^ *\([a-z_]*\):.*/\1/p' "$dir/defaults" | documented every_key_is_in_the_man_page crikeep.yaml.5
"$daemon" --help | sed -n 's/.* --\([a-z-]*\).*/\1/p' | documented every_flag_is_in_the_man_page crikeepd.8
sed -n 's/^\t{ "\([a-z._]*\)", [A-Z_]*, AT(.*/\1=/p' "$top/src/daemon/sim-conf.c" >"$dir/parameters"
[ "$(wc -l <"$dir/parameters")" -ge 20 ] && sed 's/=$//' "$dir/parameters" |
	documented every_parameter_of_the_simulator_is_in_the_man_page crikeepd.8
grep -oE '"crikeepd?_[a-z_]+"' "$top/src/daemon/metrics.c" | tr -d '"' | grep -vx 'crikeep_' >"$dir/metrics"
[ "$(wc -l <"$dir/metrics")" -ge 20 ] && documented every_metric_is_in_the_man_page crikeepd.8 <"$dir/metrics"

# the example with all defaults in it, as a configuration
sed -n '/^All of it, with the defaults:/,/^\.Ed/p' "$top/man/crikeep.yaml.5" | sed '1,2d;$d' >"$dir/man.yaml"
"$daemon" --config "$dir/man.yaml" --print-config | sed 's/ # .*//' >"$dir/printed"
sed -i '/allow_uids/d' "$dir/printed" "$dir/defaults" # who runs this is in them
cmp -s "$dir/printed" "$dir/defaults"
result the_man_pages_defaults_are_the_defaults $?
exit $status
