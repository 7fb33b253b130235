#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# contrib/go, on the installed library: gofmt, go vet, and every test under the race detector.
#
# usage: test-go.sh [PATTERN]: only tests that go test -run PATTERN finds
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
3) echo "skip - the Go packages: $go_why"; exit 0 ;;
*) not_ok "the Go packages: $go_why"; exit 1 ;;
esac
cd "$src/contrib/go" || exit 99

unformatted() { gofmt -l . | { ! grep .; }; }
check 'gofmt has nothing to say' unformatted
check 'go vet has nothing to say' go vet ./...

# a line for each test of a package; its whole output where one failed
for package in $(go list ./...); do
	timeout -k 10 400 go test -race -count=1 -v -timeout 380s ${1:+-run "$1"} "$package" \
		>"$work/said" 2>&1
	status=$?
	LC_ALL=C awk -v package="${package##*/}" '
		/^--- PASS: / { print "ok - " package ": " $3 }
		/^--- FAIL: / { print "not ok - " package ": " $3; failed = 1 }
		/^--- SKIP: / { print "skip - " package ": " $3 ": see its log" }
		END { exit failed }' "$work/said" || failed=1
	[ $status -eq 0 ] || failed=1
	[ $status -eq 0 ] || grep -q '^--- FAIL: ' "$work/said" ||
		not_ok "${package##*/}: exit status $status"
	[ $status -eq 0 ] || tail -n 300 "$work/said" | cut -c 1-400 | sed 's/^/    /'
done
exit "$failed"
