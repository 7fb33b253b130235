#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# contrib/examples/keep.c and its twin in Go are the smallest hosts, and stay small. The one in C
# keeps and hands back. (tests/real/test-go.sh runs the one in Go.)
#
# functions are called by check, variables are prelude.sh's:
# shellcheck disable=SC1091,SC2154,SC2317
set -u

. "$(dirname "$0")/prelude.sh"

lines() { # lines FILE MOST, without the licence, a build tag and empty ones
	local n
	n=$(grep -cvE 'SPDX|^//go:build|^$' "$1")
	echo "$n lines"
	[ "$n" -gt 10 ] && [ "$n" -le "$2" ]
}
check 'a vendor keeps and hands back in 40 lines of C' lines "$src/contrib/examples/keep.c" 40
check 'or in 30 of Go' lines "$src/contrib/go/example/main.go" 30

hands_back() {
	local keep
	keep=$(realpath "$build/contrib/examples/keep")
	(cd "$work" && timeout 60 "$keep") >"$work/said" 2>&1
	local status=$?
	printf '77d1: %s\n' "the caller's deadline has passed" yours | diff - "$work/said" &&
		[ "$status" = 0 ] && [ -e "$work/state" ]
}
check 'what was made too late is kept, and is the answer to the next request' hands_back
exit "$failed"
