#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What README.md and the guides below contrib point at is there. The Go that the guides for CRI-O
# and containerd show is what contrib/go compiles and tests, line by line, except for comments and
# layout. The examples are compiled by the commands of their guide.
#
# The variables are of prelude.sh; check calls functions; backquotes are Markdown's.
# shellcheck disable=SC1091,SC2016,SC2154,SC2317
set -u
. "$(dirname "$0")/prelude.sh"
cd "$src" || exit 99
mapfile -t guides < <(ls ./*.md contrib/*/README.md contrib/go/*/README.md)

links_lead_somewhere() {
	local guide to failed=0
	for guide in "${guides[@]}"; do
		while read -r to; do
			[ -e "$(dirname "$guide")/$to" ] || { echo "$guide: $to"; failed=1; }
		done < <(grep -oE '\]\([^)#:]+\)' "$guide" | sed 's/^](//; s/)$//')
	done
	return "$failed"
}
# `contrib/...`: as seen from the top; what has a wildcard or a placeholder is no file
files_are_there() {
	local guide to failed=0
	for guide in "${guides[@]}"; do
		while read -r to; do
			[ -e "$to" ] || { echo "$guide: $to"; failed=1; }
		done < <(grep -oE '`(contrib|man|tests)/[a-zA-Z0-9_./-]+`' "$guide" | tr -d '`' |
			grep -vE 'MODULE|NAME|STORY|VERSION')
	done
	return "$failed"
}
# plain: Go without comments, tabs and what gofmt lines up
plain() { sed -E 's#(^|[[:space:]])//.*##; s/[[:space:]]+/ /g; s/^ //; s/ $//'; }
shown_is_compiled() { # shown_is_compiled GUIDE SOURCE
	sed -n '/^ *```go$/,/^ *```$/p' "$1" | grep -v '```' | plain | grep . >"$work/shown"
	plain <"$2" | sort -u >"$work/compiled"
	[ -s "$work/shown" ] && ! sort -u "$work/shown" | comm -23 - "$work/compiled" | grep .
}
# each command of the Debian package's guide, with what is installed replaced by what is built
built_as_told() {
	local guide=$src/contrib/debian/libcrikeep-dev.README.Debian
	cp contrib/examples/*.[ch] "$work" || return
	printf '#include <crikeep.h>\nint main(void) { return !ck_strerror(0); }\n' \
		>"$work/program.c"
	sed -n 's/^    \(cc .*\)/\1/p' "$guide" >"$work/commands"
	[ "$(wc -l <"$work/commands")" -ge 2 ] || { echo "no commands in $guide"; return 1; }
	(
		cd "$work" || exit
		cc() { command ${CC:-cc} "$@"; }
		pkg-config() {
			PKG_CONFIG_PATH=$build/src command pkg-config \
				--define-variable=includedir="$src/src" \
				--define-variable=libdir="$build/.libs" "$@"
		}
		set -e
		. ./commands
	)
}
check 'links lead somewhere' links_lead_somewhere
check 'files that are named are there' files_are_there
check 'contrib/cri-o: what is shown is compiled' \
	shown_is_compiled contrib/cri-o/README.md contrib/go/resourcestore/crio_test.go
check 'contrib/containerd: what is shown is compiled' \
	shown_is_compiled contrib/containerd/README.md contrib/go/crikeep/containerd_test.go
check 'the examples are compiled as their guide says' built_as_told
exit "$failed"
