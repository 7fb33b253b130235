#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# contrib/examples/demo.sh with both example runtimes; and with one that forgets its cache whenever
# it starts, of which the verdict must be that it does not hold.
set -u

build=${CK_TEST_BUILDDIR:-.}
top=${CK_TEST_SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# programs built with a sanitizer need their addresses where they expect them
fixed=()
setarch -R true 2>/dev/null && fixed=(setarch -R)

# demo EXAMPLE BUILD: its output in a file of that name
demo() {
	EXAMPLE=$1 "${fixed[@]}" bash "$top/contrib/examples/demo.sh" "$2" >"$tmp/$1.out" 2>&1
}

forgetful=$tmp/forgetful/contrib/examples
mkdir -p "$forgetful"
ln -s "$(realpath "$build")/contrib/examples/drive" "$forgetful/drive"
cat >"$forgetful/embed-forgetful" <<END
#!/bin/sh
rm -rf "\$2/state"
exec "$(realpath "$build")/contrib/examples/embed-blocking" "\$@"
END
chmod +x "$forgetful/embed-forgetful"

pids=()
demo embed-blocking "$build" & pids+=($!)
demo embed-loop "$build" & pids+=($!)
demo embed-forgetful "$tmp/forgetful" & pids+=($!)

status=0
# verdict PID EXAMPLE WANTED-STATUS NAME
verdict() {
	local got=0
	wait "$1" || got=$?
	if [ $got -eq "$3" ] && [ "$(wc -L <"$tmp/$2.out")" -le 80 ]; then
		echo "ok - $4"
	else
		cat "$tmp/$2.out"
		echo "not ok - $4 (exit status $got)"
		status=1
	fi
}
verdict "${pids[0]}" embed-blocking 0 \
	'embed-blocking: each distinct request is made once and handed back'
verdict "${pids[1]}" embed-loop 0 'embed-loop: each distinct request is made once and handed back'
verdict "${pids[2]}" embed-forgetful 1 'a runtime that forgets its cache does not pass'
exit $status
