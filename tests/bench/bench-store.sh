#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What contrib/go/resourcestore costs beside a map in memory of the same interface:
# contrib/go/internal/benchstore on the installed library, with its state on tmpfs and on the disk
# the build is on. For `make bench`; 20 seconds.
#
# shellcheck disable=SC1091,SC2154 # variables are go-stage.sh's
set -u

src=${CK_TEST_SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}
build=${CK_TEST_BUILDDIR:-$src}
. "$src/tests/real/go-stage.sh"

status=0
go_stage 1.21 || status=$?
case $status in
0) ;;
3) echo "skip - bench-store: $go_why"; exit 0 ;;
*) echo "bench-store: $go_why" >&2; exit 1 ;;
esac
mkdir -p "$build/tests/bench" && work=$(mktemp -d "$build/tests/bench/store.XXXXXX") || exit 99
trap 'rm -rf "$work"' EXIT
(cd "$src/contrib/go" && go build -o "$work/benchstore" ./internal/benchstore) &&
	"$work/benchstore" "$work"
