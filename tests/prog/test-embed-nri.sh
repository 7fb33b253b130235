#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# contrib/examples/embed-nri.c, the smallest runtime that serves plugins: it builds against the
# installed header, and does what its first lines say. What plugins see is tested elsewhere.
#
# functions are called by check, variables are prelude.sh's:
# shellcheck disable=SC1091,SC2154,SC2317
set -u

. "$(dirname "$0")/prelude.sh"
embed_nri=$build/contrib/examples/embed-nri

lines() { # half of what it was when it wrote protobuf itself
	local n
	n=$(wc -l <"$src/contrib/examples/embed-nri.c")
	echo "$n lines"
	[ "$n" -gt 10 ] && [ "$n" -le 87 ]
}
check 'a runtime serves plugins in 87 lines of C' lines
lives() {
	timeout 60 "$embed_nri" "$work/nri.sock" a b </dev/null >"$work/out"
	local status=$?
	[ "$status" = 0 ] && printf '%s\n' 'a runs' 'b runs' 'b is gone' 'a is gone' |
		diff - "$work/out"
}
check 'pods come and go without plugins' lives
owned() { # the socket of one that lives is not taken, and goes with its owner
	local owner said
	mkfifo "$work/in" "$work/told"
	"$embed_nri" "$work/nri.sock" a <"$work/in" >"$work/told" &
	owner=$!
	exec 7>"$work/in" 8<"$work/told"
	read -r _ <&8 || return 1
	said=$("$embed_nri" "$work/nri.sock" </dev/null 2>&1) && return 1
	exec 7>&-
	wait "$owner" && [ ! -e "$work/nri.sock" ] && grep -q 'turn its own NRI off' <<<"$said"
}
check 'the socket of a runtime that lives is left to it' owned
exit "$failed"
