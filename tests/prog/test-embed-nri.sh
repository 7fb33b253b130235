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

lives() {
	printf '%s\n' 'run a' 'run b' 'stop a' 'remove b' 'remove a' nonsense 'run ' |
		timeout 60 "$embed_nri" "$work/nri.sock" >"$work/out"
	local status=$?
	cat "$work/out"
	grep -v '^not now$' "$work/out" | sort >"$work/lines"
	[ "$status" = 0 ] && printf '%s\n' 'a has stopped' 'a is gone' 'a runs; plugins told: 0' \
		'b is gone' 'b runs; plugins told: 0' | diff - "$work/lines"
}
check 'pods come and go without plugins' lives
owned() { # the socket of one that lives is not taken, and goes with its owner
	local owner said
	mkfifo "$work/in" "$work/told"
	"$embed_nri" "$work/nri.sock" <"$work/in" >"$work/told" &
	owner=$!
	exec 7>"$work/in" 8<"$work/told"
	echo 'run a' >&7
	read -r _ <&8 || return 1
	said=$("$embed_nri" "$work/nri.sock" </dev/null 2>&1) && return 1
	exec 7>&- 8<&-
	wait "$owner" && [ ! -e "$work/nri.sock" ] && grep -q 'turn its own NRI off' <<<"$said"
}
check 'the socket of a runtime that lives is left to it' owned
exit "$failed"
