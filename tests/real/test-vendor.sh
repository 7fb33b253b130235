#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A vendor's runtime in Go, with nothing of us but contrib/go and the installed library: every rule
# x (in time, late, killed), one line each, under the race detector (vendor/); most of it again
# through Do. Then the same runtime without one or the other call that a vendor owes: lines that
# must be red are.
#
# usage: test-vendor.sh [TEXT]: only lines that contain it, with what helps to see why they fail
#
# Functions are called by check, variables are of prelude.sh's and go-stage.sh's.
# shellcheck disable=SC1091,SC2154,SC2317
set -u

. "$(dirname "$0")/../prog/prelude.sh"
. "$(dirname "$0")/go-stage.sh"

status=0
go_stage 1.21 || status=$?
case $status in
0) ;;
3) echo "skip - a vendor's runtime: $go_why"; exit 0 ;;
*) not_ok "a vendor's runtime: $go_why"; exit 1 ;;
esac
vendor=$build/tests/real/vendor-runtime
cd "$src/tests/real/vendor" || exit 99

unformatted() { gofmt -l . | { ! grep .; }; }
check 'gofmt has nothing to say' unformatted
check 'go vet has nothing to say' go vet .
check 'it is built' go build -race -o "$vendor" . || exit 1

cd "$work" || exit 99
"$vendor" play ${1:+-only "$1"} || failed=1
[ $# -gt 0 ] || "$vendor" play -do || failed=1
[ $# -gt 0 ] || "$vendor" broken || failed=1
exit "$failed"
