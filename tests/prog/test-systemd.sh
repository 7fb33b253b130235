#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The units, as systemd-analyze reads them, and what must fit between them and the daemon's
# defaults. And a socket that systemd passes is served.
#
# shellcheck disable=SC1091,SC2154,SC2317 # variables are prelude.sh's, and it calls at_end
set -u

. "$(dirname "$0")/prelude.sh"
pids=()
at_end() { [ ${#pids[@]} -eq 0 ] || kill -9 "${pids[@]}" 2>/dev/null; }
units=$src/contrib/systemd
sed "s|^ExecStart=.*/|ExecStart=$work/|" "$build/contrib/systemd/crikeepd.service" \
	>"$work/crikeepd.service"
cp "$units"/*.{service,socket} "$work/"
sed "s|^ExecStart=[^ ]*|ExecStart=$work/crikeepd|" "$units/crikeep-exporter.service.in" \
	>"$work/crikeep-exporter.service"
mkdir "$work/crikeepd.service.d"
printf '#!/bin/sh\n' >"$work/crikeepd"
chmod +x "$work/crikeepd"

if command -v systemd-analyze >/dev/null; then
	said=$(systemd-analyze verify --man=no "$work"/*.{service,socket} 2>&1) && [ -z "$said" ]
	result units_are_sound $?
	[ -z "$said" ] || printf '%s\n' "$said"
	cp "$units/launched-plugins.conf" "$work/crikeepd.service.d/"
	said=$(systemd-analyze verify --man=no "$work"/crikeepd.service 2>&1) && [ -z "$said" ]
	result so_they_are_for_launched_plugins $?
	[ -z "$said" ] || printf '%s\n' "$said"
	rm "$work/crikeepd.service.d/launched-plugins.conf"
	for unit in crikeepd crikeepd-bypass crikeep-exporter; do
		systemd-analyze security --offline=true --threshold=15 "$work/$unit.service" \
			>"$work/exposure" 2>&1
		result "exposure_of_${unit/-/_}_is_at_most_1.5" $?
		tail -n 1 "$work/exposure"
	done
else
	echo 'skip - units_are_sound: no systemd-analyze'
	echo 'skip - so_they_are_for_launched_plugins: no systemd-analyze'
	echo 'skip - exposure_of_crikeepd_is_at_most_1.5: no systemd-analyze'
	echo 'skip - exposure_of_crikeepd_bypass_is_at_most_1.5: no systemd-analyze'
	echo 'skip - exposure_of_crikeep_exporter_is_at_most_1.5: no systemd-analyze'
fi

# in_seconds SPAN: 90s, 1m20s, 2min
in_seconds() {
	local left=${1//min/m} sum=0 number
	while [[ $left =~ ^([0-9]+)([hms])(.*)$ ]]; do
		number=${BASH_REMATCH[1]}
		case ${BASH_REMATCH[2]} in
		h) sum=$((sum + 3600 * number)) ;;
		m) sum=$((sum + 60 * number)) ;;
		s) sum=$((sum + number)) ;;
		esac
		left=${BASH_REMATCH[3]}
	done
	echo "$sum"
}

unit() { # unit KEY TYPE [NAME]
	sed -n "s/^$1=//p" "$work/${3:-crikeepd}.$2"
}

"$crikeepd" --set log.level=info --print-config >"$work/defaults" || exit 1

default() {
	sed -n "s/^ *$1: *\([^ ]*\).*/\1/p" "$work/defaults"
}

check start_is_waited_for_longer_than_by_the_daemon \
	[ "$(in_seconds "$(unit TimeoutStartSec service)")" -gt \
	"$(in_seconds "$(default start_timeout)")" ]
held=$(sed -n 's/^#define CK_HELD_MAX *\([0-9]*\)u$/\1/p' "$src/src/base/limits.h")
check systemd_keeps_more_connections_than_those_of_earlier_lives \
	[ "$(unit FileDescriptorStoreMax service)" -gt "$held" ]
check the_socket_is_the_default_one [ "$(unit ListenStream socket)" = "$(default listen)" ]
check the_runtime_directory_is_the_state_directory \
	[ "/run/$(unit RuntimeDirectory service)" = "$(default state_dir)" ]

# ---- the bypass ----------------------------------------------------------------------------------

bypass() { unit "$1" "$2" crikeepd-bypass; }
retry=$(unit RestartSec service)
check it_is_given_up_within_2_seconds \
	[ $((${retry%ms} * $(unit StartLimitBurst service))) -le 2000 ]
check and_tried_for_ever_if_it_waits_for_the_runtime \
	[ "$(in_seconds "$(unit StartLimitIntervalSec service)")" -lt \
	"$(in_seconds "$(default start_timeout)")" ]
check then_it_is_bypassed [ "$(unit OnFailure service)" = crikeepd-bypass.service ]
check on_the_same_path [ "$(bypass ListenStream socket)" = "$(unit ListenStream socket)" ]
check only_root_may_connect [ "$(bypass SocketMode socket)" = 0600 ]
check to_the_default_runtime [ "unix://$(bypass Environment service | sed 's/^RUNTIME=//')" = \
	"$(default runtime)" ]

# ---- socket activation ---------------------------------------------------------------------------

if command -v systemd-socket-activate >/dev/null; then
	systemd-socket-activate --listen="$work/passed.sock" --fdname=cri \
		"$crikeepd" --state-dir "$work/passed" --listen "$work/unused.sock" \
		--unfiltered '' --metrics '' --runtime sim: 2>"$work/passed.log" &
	pids=($!)
	wait_for 50 test -S "$work/passed.sock"
	# its client is another crikeepd, which it serves as a runtime
	"$crikeepd" --state-dir "$work/state" --listen "$work/cri.sock" --unfiltered '' \
		--metrics '' --set log.target=stderr --runtime "$work/passed.sock" 2>"$work/log" &
	pids+=($!)
	wait_for 100 grep -q 'serving unix://' "$work/log"
	result a_passed_socket_is_served $?
	check and_no_other_is_made [ ! -e "$work/unused.sock" ]
	kill "${pids[1]}" && wait "${pids[1]}"
	kill "${pids[0]}" && wait "${pids[0]}"
	result and_it_ends_when_asked $?
	pids=()
	check the_passed_socket_stays [ -S "$work/passed.sock" ]
else
	echo 'skip - a_passed_socket_is_served: no systemd-socket-activate'
fi
exit "$failed"
