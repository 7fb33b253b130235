#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# crikeepd as a process: exit statuses and error texts, SIGHUP and SIGTERM, the simulated runtime, a
# log that is not read. And its man pages describe every key, option, parameter and metric.
#
# shellcheck disable=SC1091,SC2154,SC2317 # variables are prelude.sh's, and it calls at_end
set -u

. "$(dirname "$0")/prelude.sh"
pid=
at_end() { [ -z "$pid" ] || kill -9 "$pid" 2>/dev/null; }

own=(--state-dir "$work/state" --listen "$work/cri.sock" --unfiltered '' --metrics ''
	--set log.target=stderr)

# start ARGUMENT...: in the background, its log in $work/log; returns when it serves
start() {
	rm -f "$work/log" # not to read the log of the last one
	"$crikeepd" "${own[@]}" "$@" 2>"$work/log" &
	pid=$!
	wait_for 100 grep -q 'serving unix://' "$work/log"
}

# stop SIGNAL: $? is that of the daemon
stop() {
	kill "-$1" "$pid"
	wait "$pid"
	local r=$?
	pid=
	return $r
}

# gone PID...: none of these processes is left; called by wait_for
# shellcheck disable=SC2317
gone() {
	local one
	for one; do
		kill -0 "$one" && return 1
	done
	return 0
}

# ---- exit statuses -------------------------------------------------------------------------------

# ends NAME STATUS TEXT ARGUMENT...: it ends with STATUS, and its last line contains TEXT
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
ends wrong_value_is_2_and_names_file_line_key 2 \
	"$work/bad.yaml:4: cache.ttl: '10min' is not a span" --config "$work/bad.yaml"
ends wrong_value_is_2_with_check_config 2 "$work/bad.yaml:4: cache.ttl:" \
	--config "$work/bad.yaml" --check-config
ends wrong_key_is_2 2 "--set: cahce.ttl: no such key; did you mean 'cache.ttl'?" --set cahce.ttl=1m
ends unknown_flag_is_2 2 'for more information' --no-such-flag
ends missing_file_is_2 2 "$work/none.yaml: No such file or directory" --config "$work/none.yaml"
ends loop_is_2 2 'crikeepd would call itself' --runtime "$work/a" --listen "$work/a"
ends good_configuration_is_0 0 'The configuration is good' --check-config --set log.level=debug
ends version_is_0 0 'crikeepd ' --version
wrong="runtime: simulator: there is no parameter 'creat'"
ends wrong_simulator_is_2 2 "--runtime: $wrong" --runtime=sim:creat=5s
printf 'log:\n  level: info\nruntime: sim:creat=5s\n' >"$work/sim.yaml"
for option in --check-config --print-config --nri; do
	ends "wrong_simulator_is_2_and_names_file_and_line_with_$option" 2 \
		"$work/sim.yaml:3: $wrong" --config "$work/sim.yaml" $option
done
good='The configuration is good'
ends good_simulator_is_0_with_check_config 0 "$good" --check-config --runtime=sim:create=5s
ends a_simulator_that_cannot_listen_is_1 1 '/proc/nowhere' "${own[@]}" \
	--runtime sim:listen=/proc/nowhere/s
own_quick=("${own[@]}" --set start_timeout=200ms)
ends missing_runtime_is_1_and_names_path_and_cause 1 "unix://$work/nobody: no such file" \
	"${own_quick[@]}" --runtime "unix://$work/nobody"
touch "$work/regular"
ends regular_file_is_1_and_named 1 "$work/regular" "${own_quick[@]}" \
	--runtime "unix://$work/regular"

# ---- the program of the simulated runtime --------------------------------------------------------

"$crikeep_sim" --help >"$work/help" && [ "$(wc -l <"$work/help")" -gt 10 ] &&
	[ "$(wc -L <"$work/help")" -le 80 ]
result help_of_the_simulator_fits_80_columns $?
check it_has_the_daemons_version \
	[ "$("$crikeep_sim" --version)" = "crikeep-sim $("$crikeepd" --version | cut -d ' ' -f 2)" ]

# a crikeepd in a directory without a crikeep-sim, and then with a wrong one
mkdir "$work/alone"
cp "$crikeepd" "$work/alone/"
beside=$work/alone/crikeep-sim
real=$crikeepd crikeepd=$work/alone/crikeepd
said=$("$crikeepd" --runtime sim: --check-config 2>&1)
case $?:$said in
2:*"runtime: simulator: there is no '/"*"/crikeep-sim', which is installed with crikeepd") ok=0 ;;
0:*) ok=0 ;; # it is installed on this machine
*) ok=1 && echo "$said" ;;
esac
result without_the_program_it_is_2_and_says_so $ok
echo 'no program' >"$beside"
ends a_program_that_may_not_run_is_named 2 'crikeep-sim: Permission denied' --runtime sim:
chmod 755 "$beside"
ends a_program_that_cannot_run_is_named 2 'crikeep-sim: Exec format error' --runtime sim:
cp "$(type -P true)" "$beside"
ends a_program_that_is_another_is_named 2 'crikeep-sim ended at once' --runtime sim:
if [ "$(id -u)" = 0 ]; then
	cp "$crikeep_sim" "$beside"
	chmod 755 "$beside"
	ends root_runs_what_only_root_may_write 0 "$good" --runtime sim: --check-config
	refused="'$beside' is not run as root"
	chmod 775 "$beside"
	ends root_runs_nothing_that_others_may_write 2 "$refused" --runtime sim: --check-config
	chmod 755 "$beside"
	chmod 1777 "$work/alone"
	ends root_runs_nothing_from_a_directory_of_everybody 2 "$refused" \
		--runtime sim: --check-config
fi
crikeepd=$real

# ---- a life --------------------------------------------------------------------------------------

printf 'log: {level: info}\n' >"$work/c.yaml"
if start --runtime sim: --config "$work/c.yaml"; then
	result it_serves_the_simulator 0
	grep -q 'crikeepd: crikeepd .*: no' "$work/log"
	result the_log_says_what_is_in_force $?

	ends second_daemon_is_1_and_names_the_pid 1 "$pid" "${own[@]}" \
		--listen "$work/second.sock" --runtime "$work/state/sim.sock"
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
	for sim in "${children[@]}"; do
		[ "$(cat "/proc/$sim/comm")" != crikeep-sim ] || break
	done
	check the_simulator_is_another_program [ "/proc/$sim/exe" -ef "$crikeep_sim" ]
	# Only root can change the bounding set. For other users it has no effect, because new
	# privileges are off.
	sed -n 's/^\(Cap[A-Z][a-z]*\|NoNewPrivs\):\t/\1 /p' "/proc/$sim/status" >"$work/privileges"
	[ "$(id -u)" = 0 ] || sed -i '/^CapBnd/d' "$work/privileges"
	grep -q '^CapEff' "$work/privileges" && grep -qx 'NoNewPrivs 1' "$work/privileges" &&
		! grep '^Cap' "$work/privileges" | grep -qv ' 0*$'
	result the_simulator_has_no_capabilities $? || cat "$work/privileges"
	stop TERM
	result sigterm_is_0 $?
	[ ${#children[@]} -ge 1 ] && wait_for 50 gone "${children[@]}"
	result its_children_end_with_it $?
	check its_socket_is_gone [ ! -e "$work/cri.sock" ]
else
	cat "$work/log"
	result it_serves_the_simulator 1
fi

# ---- its children end as it does -----------------------------------------------------------------

if start --runtime sim:; then
	read -ra children <"/proc/$pid/task/$pid/children"
	kill -9 "$pid"
	wait "$pid" 2>/dev/null
	pid=
	[ ${#children[@]} -ge 1 ] && wait_for 50 gone "${children[@]}"
	result killed_its_children_end_with_it $?
else
	cat "$work/log"
	result killed_its_children_end_with_it 1
fi
# like a terminal, which sends SIGINT to all of them
rm -f "$work/log"
setsid "$crikeepd" "${own[@]}" --runtime sim: 2>"$work/log" &
pid=$!
wait_for 100 grep -q 'serving unix://' "$work/log"
kill -INT "-$pid"
wait "$pid"
result sigint_of_a_terminal_is_0 $?
pid=
! grep 'the simulator ended' "$work/log"
result and_the_daemon_ends_first $?

# ---- a log of JSON lines -------------------------------------------------------------------------

printf 'log:\n  format: json\n  level: debug\n' >"$work/c.yaml"
late() { # a caller who goes before the sandbox is there, whose environment is in no line
	"$crikeep" drive --endpoint "unix://$work/cri.sock" --pod late --attempt 7 \
		--deadline 300ms --give-up 300ms
	wait_for 100 grep -q '"message":"sandbox default/late attempt 7: listed' "$work/log"
}
objects() { # each line is one, with what every line has
	local line n=0
	while read -r line; do
		n=$((n + 1))
		printf '%s\n' "$line" | "$read_tree" json >"$work/tree"
		[ "$(head -n 3 "$work/tree" | cut -d ' ' -f 1 | xargs)" = \
			'.time .level .message' ] && continue
		echo "$line"
		return 1
	done <"$work/log"
	[ "$n" -gt 5 ]
}
about() { # what the line about the late sandbox says besides its text
	grep '"message":"sandbox default/late attempt 7: listed' "$work/log" | "$read_tree" json |
		sed '1,3d; s/[0-9a-f]\{16,\}/ID/; s/seconds = [0-9][0-9.]*$/seconds = N/' |
		diff - <(printf '.%s\n' 'kind = "sandbox"' 'namespace = "default"' 'pod = "late"' \
		"uid = \"$(sed -n 's/.*"pod":"late","uid":"\([^"]*\)".*/\1/p' "$work/log" |
			head -n 1)\"" 'attempt = 7' 'id = "ID"' 'created_in_seconds = N' \
		'after_seconds = N' 'requests = 1')
}
if start --runtime sim:create=1s --config "$work/c.yaml"; then
	check json_lines_tell_of_a_late_sandbox late
	check each_json_line_is_one_object objects
	check and_says_what_it_is_about about
	printf 'log: {level: debug}\n' >"$work/c.yaml"
	kill -HUP "$pid"
	wait_for 50 grep -q '^crikeepd: reloaded the configuration' "$work/log"
	result sighup_changes_the_format $?
	stop TERM
else
	cat "$work/log"
	result json_lines_tell_of_a_late_sandbox 1
fi

# ---- a log that is not read ----------------------------------------------------------------------

mkfifo "$work/pipe"
exec 7<>"$work/pipe" # open, and never read
head -c 65536 /dev/zero | dd of="$work/pipe" oflag=nonblock bs=4096 status=none 2>/dev/null
"$crikeepd" "${own[@]}" --runtime sim: 2>&7 &
pid=$!
wait_for 100 test -S "$work/cri.sock"
result a_full_log_pipe_does_not_hold_it_up $?
stop TERM
result and_it_ends $?
exec 7<&-

# ---- the man pages -------------------------------------------------------------------------------

# documented NAME PAGE: the page, without its escapes, contains each word on stdin
documented() {
	local missing
	sed 's/\\-/-/g' "$src/man/$2" >"$work/page"
	missing=$(while read -r word; do
		grep -qwF -- "$word" "$work/page" || echo "$word"
	done)
	[ -z "$missing" ] || printf 'not in %s: %s\n' "$2" "$missing"
	check "$1" [ -z "$missing" ]
}

"$crikeepd" --print-config >"$work/defaults"
sed -n 's/^ *\([a-z_]*\):.*/\1/p' "$work/defaults" |
	documented every_key_is_in_the_man_page crikeep.yaml.5
options() { sed -n 's/.* --\([a-z-]*\).*/\1/p'; }
"$crikeepd" --help | options | documented every_flag_is_in_the_man_page crikeepd.8
sed -n 's/^\t{ "\([a-z._]*\)", [A-Z_]*, AT(.*/\1/p' "$src/src/sim/sim-conf.c" >"$work/parameters"
[ "$(wc -l <"$work/parameters")" -ge 20 ] || echo 'no parameters found' >"$work/parameters"
documented every_parameter_of_the_simulator_is_in_the_man_page crikeepd.8 <"$work/parameters"
grep -oE '"crikeepd?_[a-z_]+"' "$src/src/daemon/metrics.c" | tr -d '"' |
	grep -vx 'crikeep_' >"$work/metrics"
[ "$(wc -l <"$work/metrics")" -ge 20 ] || echo 'no metrics found' >"$work/metrics"
documented every_metric_is_in_the_man_page crikeepd.8 <"$work/metrics"
"$crikeep_sim" --help | options |
	documented every_flag_of_the_simulator_is_in_the_man_page crikeepd.8

# the example with all defaults in it, as a configuration
sed -n '/^All keys, with their defaults:/,/^\.Ed/p' "$src/man/crikeep.yaml.5" |
	sed '1,2d;$d' >"$work/man.yaml"
"$crikeepd" --config "$work/man.yaml" --print-config | sed 's/ # .*//' >"$work/printed"
sed -i '/allow_uids/d' "$work/printed" "$work/defaults" # it depends on the user
[ "$(wc -l <"$work/man.yaml")" -ge 30 ] && diff "$work/printed" "$work/defaults"
result the_man_pages_defaults_are_the_defaults $?
exit "$failed"
