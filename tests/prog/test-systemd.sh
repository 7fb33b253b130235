#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The units, as systemd-analyze reads them, and what must fit between them and the daemon's
# defaults.
#
# shellcheck disable=SC1091,SC2154 # prelude.sh has the variables
set -u

. "$(dirname "$0")/prelude.sh"
units=$src/contrib/systemd
sed "s|@sbindir@|$work|" "$units/crikeepd.service.in" >"$work/crikeepd.service"
cp "$units/crikeepd.socket" "$work/"
printf '#!/bin/sh\n' >"$work/crikeepd"
chmod +x "$work/crikeepd"

if command -v systemd-analyze >/dev/null; then
	said=$(systemd-analyze verify --man=no "$work/crikeepd.service" "$work/crikeepd.socket" \
		2>&1) && [ -z "$said" ]
	result units_are_sound $?
	[ -z "$said" ] || printf '%s\n' "$said"
	systemd-analyze security --offline=true --threshold=30 "$work/crikeepd.service" \
		>"$work/exposure" 2>&1
	result exposure_is_below_3 $?
	tail -n 1 "$work/exposure"
else
	echo 'skip - units_are_sound: no systemd-analyze'
	echo 'skip - exposure_is_below_3: no systemd-analyze'
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

unit() {
	sed -n "s/^$1=//p" "$work/crikeepd.$2"
}

"$crikeepd" --set log.level=info --print-config >"$work/defaults" || exit 1

default() {
	sed -n "s/^ *$1: *\([^ ]*\).*/\1/p" "$work/defaults"
}

check start_is_waited_for_longer_than_by_the_daemon \
	[ "$(in_seconds "$(unit TimeoutStartSec service)")" -gt \
	"$(in_seconds "$(default start_timeout)")" ]
check stop_is_waited_for_longer_than_by_the_daemon \
	[ "$(in_seconds "$(unit TimeoutStopSec service)")" -gt \
	"$(in_seconds "$(default stop_wait)")" ]
check the_socket_is_the_default_one [ "$(unit ListenStream socket)" = "$(default listen)" ]
check the_runtime_directory_is_the_state_directory \
	[ "/run/$(unit RuntimeDirectory service)" = "$(default state_dir)" ]
exit "$failed"
