#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What it costs a large program in Go to open contrib/go/resourcestore: time, and memory. Like
# CRI-O, it has a SQLite of its own and exports tens of thousands of symbols, so the dynamic linker
# is slow to say what an address is. For `make bench`; 30 seconds, most of them the linker's.
#
# shellcheck disable=SC1091,SC2154 # variables are go-stage.sh's
set -u

src=${CK_TEST_SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}
build=${CK_TEST_BUILDDIR:-$src}
symbols=60000
. "$src/tests/real/go-stage.sh"

status=0
go_stage 1.21 || status=$?
case $status in
0) ;;
3) echo "skip - bench-open: $go_why"; exit 0 ;;
*) echo "bench-open: $go_why" >&2; exit 1 ;;
esac
archive=$("$CC" -print-file-name=libsqlite3.a)
[ -f "$archive" ] || { echo 'skip - bench-open: no libsqlite3.a'; exit 0; }
mkdir -p "$build/tests/bench" && work=$(mktemp -d "$build/tests/bench/open.XXXXXX") || exit 99
trap 'rm -rf "$work"' EXIT

seq "$symbols" | sed 's/.*/\t.globl ck_bench_symbol_of_a_large_program_&\
	.type ck_bench_symbol_of_a_large_program_&, @function\
ck_bench_symbol_of_a_large_program_&:\
	.zero 16\
	.size ck_bench_symbol_of_a_large_program_&, 16/; 1i\	.text' >"$work/many.s"
printf '\t.section .note.GNU-stack,"",@progbits\n' >>"$work/many.s"
"$CC" -c -o "$work/many.o" "$work/many.s" || exit 1
own="-Wl,--whole-archive $work/many.o $archive -Wl,--no-whole-archive -Wl,--export-dynamic -lm -ldl"
cd "$src/contrib/go" && go build -o "$work/small" ./internal/benchopen &&
	go build -ldflags "-linkmode external -extldflags '$own'" -o "$work/large" \
		./internal/benchopen || exit 1

# middle PROGRAM [DIR]: of 11 runs the one with the median time
middle() {
	for _ in 1 2 3 4 5 6 7 8 9 10 11; do
		[ $# = 1 ] || rm -rf "$2"
		"$@" || exit 1
	done | sort -n | sed -n 6p
}
for program in small large; do
	echo "a $program program: in memory $(middle "$work/$program")"
	echo "a $program program: durable   $(middle "$work/$program" "$work/state")"
done
