#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# contrib/go, on the installed library: gofmt, go vet, and every test under the race detector.
# Then what is left without the library: it is built and vetted, also for FreeBSD, and tested.
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
builds() { env "$@" go build ./... && env "$@" go vet ./...; }
check 'it is built without cgo' builds CGO_ENABLED=0
check 'it is built for FreeBSD' builds CGO_ENABLED=0 GOOS=freebsd
check 'it is built with cgo and without libcrikeep' \
	builds PKG_CONFIG_PATH=/nonexistent GOFLAGS="$GOFLAGS -tags=no_libcrikeep"

# A vendor gets the module from a directory, as from any proxy, and commits go.mod and vendor/: no
# line of them names a path of this machine. What it vendored is built and run, with and without
# the library.
vendored() (
	module=$(sed -n 's/^module //p' go.mod) version=v0.1.0
	go run ./internal/modproxy "$work/proxy" "$version" || exit
	mkdir -p "$work/vendor" && cd "$work/vendor" || exit
	cat >main.go <<-END
		package main

		import (
			"fmt"
			"os"

			"$module/crikeep"
			"$module/hidelog"
			"$module/resourcestore"
			_ "$module/sloglogrus"
		)

		func main() {
			_ = hidelog.Prepare
			store := resourcestore.New()
			defer store.Close()
			fmt.Println(resourcestore.Durable, crikeep.Sandbox, store.Get(os.Args[0]))
		}
	END
	export GOFLAGS="$go_flags -mod=mod" GOMODCACHE=$work/modules
	export GOPROXY=file://$work/proxy GOSUMDB=off
	go mod init vendor.example && go get "$module@$version" && go mod tidy &&
		go mod vendor || exit
	chmod -R u+w "$work/modules" && rm -rf "$work/proxy" "$work/modules"
	cat go.mod vendor/modules.txt
	! grep -E 'replace|=>|/(work|tmp|home)' go.mod vendor/modules.txt || exit
	[ -f "vendor/$module/LICENSE" ] && [ ! -e "vendor/$module/internal" ] || exit
	export GOFLAGS="$go_flags -mod=vendor" GOPROXY=off
	[ "$(go run .)" = 'true sandbox ' ] &&
		[ "$(CGO_ENABLED=0 go run .)" = 'false sandbox ' ] &&
		[ "$(go run -tags no_libcrikeep .)" = 'false sandbox ' ] &&
		CGO_ENABLED=0 GOOS=freebsd go build -o /dev/null .
)
check 'it is vendored like any other module' vendored

# tests NAME ARGUMENT...: a line for each test of a package; its whole output where one failed
tests() {
	local name=$1 status
	shift
	timeout -k 10 400 go test -count=1 -v -timeout 380s ${pattern:+-run "$pattern"} "$@" \
		>"$work/said" 2>&1
	status=$?
	LC_ALL=C awk -v name="$name" '
		/^--- PASS: / { print "ok - " name ": " $3 }
		/^--- FAIL: / { print "not ok - " name ": " $3; failed = 1 }
		/^--- SKIP: / { print "skip - " name ": " $3 ": see its log" }
		END { exit failed }' "$work/said" || failed=1
	[ $status -eq 0 ] && return
	failed=1
	grep -q '^--- FAIL: ' "$work/said" || not_ok "$name: exit status $status"
	tail -n 300 "$work/said" | cut -c 1-400 | sed 's/^/    /'
}
pattern=${1:-}
for package in $(go list ./...); do
	tests "${package##*/}" -race "$package"
done
export CGO_ENABLED=0
for package in $(go list ./...); do
	tests "${package##*/} without cgo" "$package"
done
exit "$failed"
