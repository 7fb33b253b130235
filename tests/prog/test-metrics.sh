#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Metrics of a real, confined crikeepd before its simulated runtime: by its socket, and over HTTP by
# crikeep exporter.
#
# stop() sees its variables by name; A && B || C is meant; functions are called by check, variables
# are prelude.sh's:
# shellcheck disable=SC1091,SC2015,SC2034,SC2154,SC2317
set -u

. "$(dirname "$0")/prelude.sh"
daemon='' exporter='' relay=''
at_end() { stop daemon; stop exporter; stop relay; }
slow=${CK_TEST_SLOW:-1}
[ "$slow" -gt 0 ] || slow=1

stop() { # stop NAME: end the process whose id is in $NAME, and wait for it
	local pid=${!1}
	[ -n "$pid" ] || return 0
	kill "$pid" 2>/dev/null
	wait "$pid" 2>/dev/null
	printf -v "$1" ''
}
until_true() { # until_true COMMAND...: within 10 s
	local i
	for ((i = 0; i < 500 * slow; i++)); do
		"$@" >/dev/null 2>&1 && return 0
		sleep 0.02
	done
	echo "in vain: $*"
	return 1
}
start_daemon() {
	"$crikeepd" --runtime=sim: --state-dir="$work/state" --listen="$work/cri.sock" \
		--unfiltered= \
		--metrics="$work/metrics.sock" >>"$work/daemon.log" 2>&1 &
	daemon=$!
	until_true test -S "$work/metrics.sock"
}

# get PATH [METHOD]: status in $status, headers in $headers, the body in $work/body. No curl: it may
# be absent
get() {
	local line
	headers='' status=''
	exec 3<>"/dev/tcp/127.0.0.1/$port" || return 1
	printf '%s %s HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n' "${2:-GET}" "$1" >&3
	while IFS= read -r -t 20 line <&3 && [ "$line" != $'\r' ]; do
		headers+=${line%$'\r'}$'\n'
	done
	cat <&3 >"$work/body"
	exec 3>&-
	status=${headers#* }
	status=${status%% *}
}
is() { # is STATUS PATH [METHOD]
	get "$2" "${3:-GET}"
	[ "$status" = "$1" ] || { printf '%s\n%s\n' "$headers" "$(cat "$work/body")"; return 1; }
}
value() { sed -n "s/^$1 //p" "$work/body"; }

if [ ! -x "$crikeepd" ]; then
	echo 'skip - metrics: built without crikeepd'
	exit 0
fi
if ! "$crikeep" exporter --help >/dev/null 2>&1; then
	echo 'skip - exporter: built without libmicrohttpd'
	exit 0
fi

# ---- the exporter alone ------------------------------------------------------------------------

"$crikeep" exporter --listen :0 --socket "$work/metrics.sock" 2>"$work/exporter.log" &
exporter=$!
check 'it says where it serves' until_true grep -q 'http://127.0.0.1:[0-9]*/metrics' \
	"$work/exporter.log"
port=$(sed -n 's|.*http://127.0.0.1:\([0-9]*\)/metrics.*|\1|p' "$work/exporter.log")
away() {
	is 503 /metrics && grep -q 'No such file' "$work/body" &&
		grep -qF "$work/metrics.sock" "$work/body"
}
check 'while crikeepd is away the status is 503, with the reason' away

# ---- a daemon behind it ------------------------------------------------------------------------

check 'crikeepd starts' start_daemon
served() {
	is 200 /metrics && grep -qi '^content-type: text/plain; version=0.0.4' <<<"$headers" &&
		[ "$(tail -n 1 "$work/body")" = '# EOF' ]
}
check 'GET /metrics is the whole text' served
once() {
	"$crikeep" exporter --once --socket "$work/metrics.sock" >"$work/once" &&
		diff <(sed 's/ [^ ]*$//' "$work/body") <(sed 's/ [^ ]*$//' "$work/once")
}
check '--once prints the same text' once
runs() { is 200 /metrics && [ "$(value crikeepd_upstream_up)" = 1 ]; }
check 'it is connected to the runtime' until_true runs
process() {
	local rss
	rss=$(value process_resident_memory_bytes)
	[ "$rss" -gt 1000000 ] && [ "$(value process_open_fds)" -gt 5 ] ||
		{ echo "$rss"; return 1; }
	# two ways to ask for the same: fds, within what a scrape opens
	local fds=(/proc/"$daemon"/fd/*)
	local told
	told=$(value process_open_fds)
	[ $((told - ${#fds[@]})) -ge -1 ] && [ $((told - ${#fds[@]})) -le 2 ] ||
		{ echo "$told, not ${#fds[@]}"; return 1; }
}
check 'the confined process is described' process
if command -v promtool >/dev/null; then
	lint() { promtool check metrics <"$work/body"; }
	check 'promtool finds nothing' lint
else
	echo 'skip - promtool finds nothing: no promtool (Debian: prometheus)'
fi
head_is_get_without_text() {
	is 200 /metrics HEAD && [ ! -s "$work/body" ] &&
		grep -qi '^content-type: text/plain; version=0.0.4' <<<"$headers" &&
		[ "$(sed -n 's/^content-length: //Ip' <<<"$headers")" -gt 10000 ]
}
check 'HEAD has the status and the headers of GET' head_is_get_without_text
check 'another path is 404' is 404 /
check 'for HEAD, too' is 404 / HEAD
check 'another path that begins like it is 404' is 404 /metrics/
check 'another method is 404' is 404 /metrics POST
rubbish() ( # in a shell of its own, which does not mind that nobody reads
	trap '' PIPE
	exec 3<>"/dev/tcp/127.0.0.1/$port" || return 1
	head -c 100000 /dev/urandom >&3 2>/dev/null
	printf '\r\n\r\n' >&3
	timeout 20 cat <&3 >"$work/body"
	exec 3>&-
	! grep -qa crikeepd "$work/body" && is 200 /metrics
)
check 'rubbish gets no metrics, and harms nobody' rubbish
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
	# the rights of the exporter are those that its user has to the socket
	as_other() { # as_other CHECK SETPRIV-OPTION...
		local own=$port pid r
		chmod 711 "$work"
		cp -n "$crikeep" "$work/exporter" # the build's directory may be closed to others
		rm -f "$work/other.log" # an earlier one has a port that is gone
		setpriv --reuid=65534 --regid=65534 --clear-groups "${@:2}" "$work/exporter" \
			exporter --listen :0 \
			--socket "$work/metrics.sock" 2>"$work/other.log" &
		pid=$!
		until_true grep -q '/metrics' "$work/other.log" ||
			{ cat "$work/other.log"; return 1; }
		port=$(sed -n 's|.*http://127.0.0.1:\([0-9]*\)/metrics.*|\1|p' "$work/other.log")
		"$1"
		r=$?
		kill "$pid"
		wait "$pid"
		port=$own
		return "$r"
	}
	only=-all,+dac_override
	of_unit=("--inh-caps=$only" "--ambient-caps=$only" "--bounding-set=$only" --no-new-privs)
	reads() { [ "$(stat -c %a "$work/metrics.sock")" = 660 ] && is 200 /metrics; }
	check 'with the capability of its unit it reads the socket of root' as_other reads \
		"${of_unit[@]}"
	has_rights_of_user() {
		is 503 /metrics && grep -q 'Permission denied' "$work/body" &&
			chmod 666 "$work/metrics.sock" && is 200 /metrics
	}
	check 'it has the rights of its user' as_other has_rights_of_user
else
	echo 'skip - it has the rights of its user: not root, or no setpriv'
fi
# more than it serves at once, none of which asks for anything: later ones are served when those are
# cut
many() {
	local i fds=()
	for ((i = 0; i < 12; i++)); do
		exec {fd}<>"/dev/tcp/127.0.0.1/$port" || return 1
		fds+=("$fd")
	done
	is 200 /metrics
	i=$?
	for fd in "${fds[@]}"; do exec {fd}>&-; done
	return "$i"
}
check 'silent clients do not keep others out' many
stop daemon
check 'when crikeepd has ended it is 503 again' away
check 'and 200 when it is back' eval 'start_daemon && until_true is 200 /metrics'
stop daemon

# ---- something else at the socket's path -------------------------------------------------------

# serve_instead WHAT: a socket there that does WHAT. It gets its name when it listens: before that,
# a connection to it is refused
serve_instead() {
	stop relay
	rm -f "$work/metrics.sock" "$work/metrics.sock.new"
	python3 - "$work/metrics.sock" "$1" <<-'END' &
		import os, socket, sys
		listener = socket.socket(socket.AF_UNIX)
		listener.bind(sys.argv[1] + ".new")
		listener.listen(5)
		os.rename(sys.argv[1] + ".new", sys.argv[1])
		kept = []
		while True:
		    peer = listener.accept()[0]
		    try:
		        if sys.argv[2] == "silent":
		            kept.append(peer)
		            continue
		        if sys.argv[2] == "cut":
		            peer.sendall(b"# HELP a b.\n# TYPE a gauge\na 1\n")
		        while sys.argv[2] == "endless":
		            peer.sendall(b"a 1\n" * 4096)
		    except OSError:
		        pass
		    peer.close()
	END
	relay=$!
	until_true test -S "$work/metrics.sock"
}
says() {
	is 503 /metrics || return 1
	grep -q "$1" "$work/body" || { cat "$work/body"; return 1; }
}
if command -v python3 >/dev/null; then
	serve_instead cut
	check 'a text that was cut is not passed on' says 'not whole'
	serve_instead empty
	check 'nothing is not passed on' says 'not whole'
	serve_instead endless
	check 'a text without end is not passed on' says 'more than 1048576 bytes'
	serve_instead silent
	check 'nobody is waited for' says 'does not answer'
	stop relay
else
	echo 'skip - wrong answers: no python3'
fi

# ---- the way in and out ------------------------------------------------------------------------

kill -TERM "$exporter"
wait "$exporter"
ended=$?
exporter=''
check 'SIGTERM ends it' test $ended = 0
refused() { # refused ARGUMENT...: status 2, one line
	"$crikeep" exporter "$@" 2>"$work/err"
	[ $? = 2 ] && [ "$(grep -c ^crikeep "$work/err")" = 1 ] || { cat "$work/err"; return 1; }
}
for address in localhost:9750 127.0.0.1:65536 127.0.0.1: :: ::1:9750 1.2.3:x 127.0.0.1:-1 \
	'[::1]'; do
	check "--listen $address is refused" refused --listen "$address"
done
check '--once is refused where nobody listens' refused --once --socket "$work/nobody.sock"
check 'an address of another machine is refused' refused --listen 192.0.2.1:9750
check 'a socket path that is too long is refused' refused --socket "/$(printf '%0120d' 0)"
exit "$failed"
