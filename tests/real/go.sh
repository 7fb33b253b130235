# SPDX-License-Identifier: Apache-2.0
# Shares variables with those who source it.
# shellcheck shell=bash disable=SC2034
#
# For scripts to source: Go from PATH or from where Debian puts it, and how it compiles here.

PATH=$PATH:/usr/local/go/bin:/usr/lib/go/bin
export GOTOOLCHAIN=local
# Nobody debugs what is built here. -trimpath: a vendored package is not compiled again because it
# lies elsewhere. In CI nothing is inlined: to compile takes a fifth less, and most runs once.
go_flags="-buildvcs=false -trimpath '-gcflags=all=-dwarf=false${CI:+ -l}'"

# go_is VERSION - or newer
go_is() {
	[ "$(printf 'go%s\n%s\n' "$1" "$(go env GOVERSION)" | sort -V | head -n 1)" = "go$1" ]
}
