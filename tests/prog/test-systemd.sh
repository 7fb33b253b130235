#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The units, as systemd-analyze reads them, and what must fit between them and the daemon's defaults.
set -u
src=$CK_TEST_SRCDIR/contrib/systemd
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
status=0

# result NAME STATUS
result() {
	if [ "$2" = 0 ]; then
		echo "ok - $1"
	else
		echo "not ok - $1"
		status=1
	fi
}

sed "s|@sbindir@|$dir|" "$src/crikeepd.service.in" >"$dir/crikeepd.service"
cp "$src/crikeepd.socket" "$dir/"
printf '#!/bin/sh\n' >"$dir/crikeepd"
chmod +x "$dir/crikeepd"

if command -v systemd-analyze >/dev/null; then
	said=$(systemd-analyze verify --man=no "$dir/crikeepd.service" "$dir/crikeepd.socket" 2>&1) && [ -z "$said" ]
	result units_are_sound $?
	[ -z "$said" ] || printf '%s\n' "$said"
	systemd-analyze security --offline=true --threshold=30 "$dir/crikeepd.service" >"$dir/exposure" 2>&1
	result exposure_is_below_3 $?
	tail -n 1 "$dir/exposure"
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
	sed -n "s/^$1=//p" "$dir/crikeepd.$2"
}

daemon=$CK_TEST_BUILDDIR/crikeepd
"$daemon" --set log.level=info --print-config >"$dir/defaults" || exit 1

default() {
	sed -n "s/^ *$1: *\([^ ]*\).*/\1/p" "$dir/defaults"
}

[ "$(in_seconds "$(unit TimeoutStartSec service)")" -gt "$(in_seconds "$(default start_timeout)")" ]
result start_is_waited_for_longer_than_by_the_daemon $?
[ "$(in_seconds "$(unit TimeoutStopSec service)")" -gt "$(in_seconds "$(default stop_wait)")" ]
result stop_is_waited_for_longer_than_by_the_daemon $?
[ "$(unit ListenStream socket)" = "$(default listen)" ]
result the_socket_is_the_default_one $?
[ "/run/$(unit RuntimeDirectory service)" = "$(default state_dir)" ]
result the_runtime_directory_is_the_state_directory $?
exit $status
