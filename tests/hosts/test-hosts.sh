#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Hosts of other kinds than the examples, each compiled against the installed headers and the shared
# library alone: in C++, one that loads the library while it runs, and some that carry a SQLite of
# their own.
set -u
src=${CK_TEST_SRCDIR:-.} build=$(cd "${CK_TEST_BUILDDIR:-.}" && pwd)
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
export LD_LIBRARY_PATH=$build/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
read -ra cc <<<"${CC:-cc}"
warn=(-Wall -Wextra -Wpedantic -Werror)
status=0

# compile OUTPUT COMPILER...
compile() {
	local out=$1
	shift
	"$@" "${warn[@]}" -O1 -g -I"$src/src" -I"$src/tests/hosts" -o "$tmp/$out" -L"$build/.libs" \
		-lcrikeep -pthread "${libs[@]}"
}

# host NAME PROGRAM EXPECTED [ARGUMENT...] - its last line has to hold EXPECTED
host() {
	local name=$1 program=$2 expected=$3 out
	shift 3
	out=$(timeout 60 "$tmp/$program" "$tmp/$program.d" "$@" 2>&1) || out="$out (status $?)"
	case ${out##*$'\n'} in
	*"$expected") echo "ok - $name" ;;
	*)
		printf '%s\nnot ok - %s\n' "$out" "$name"
		status=1
		;;
	esac
}

# try NAME PROGRAM EXPECTED COMPILER...
try() {
	local name=$1 program=$2 expected=$3
	shift 3
	if compile "$program" "$@"; then
		host "$name" "$program" "$expected"
	else
		echo "not ok - $name: it is not compiled"
		status=1
	fi
}

libs=()
for cxx in g++ clang++; do
	if command -v $cxx >/dev/null; then
		mkdir "$tmp/$cxx.d"
		try "a host in C++11 ($cxx)" $cxx 'handed back' $cxx -std=c++11 \
			"$src/tests/hosts/cxx.cc"
	else
		echo "skip - a host in C++11 ($cxx): no $cxx"
	fi
done

libs=(-ldl)
if "${cc[@]}" -std=c11 -D_GNU_SOURCE "${warn[@]}" -I"$src/src" -o "$tmp/dl" \
	"$src/tests/hosts/dl.c" "${libs[@]}"; then
	host 'a host that loads the library and lets it go' dl 'loaded 20 times' \
		"$build/.libs/libcrikeep.so"
else
	echo 'not ok - a host that loads the library and lets it go: it is not compiled'
	status=1
fi

sqlite=("${cc[@]}" -std=c11 -D_GNU_SOURCE "$src/tests/hosts/sqlite.c" -rdynamic)
archive=$("${cc[@]}" -print-file-name=libsqlite3.a)
libs=('-Wl,--whole-archive' "$archive" '-Wl,--no-whole-archive' -lm -ldl)
if [ -f "$archive" ]; then
	try 'a host that carries its own SQLite' own 'handed back' "${sqlite[@]}" -DOWN
else
	echo 'skip - a host that carries its own SQLite: no libsqlite3.a'
fi
libs=(-lsqlite3 -ldl)
try 'a SQLite that is too old is refused' old 'SQLite 3.36.0 is too old: 3.37 is needed' \
	"${sqlite[@]}" -DOLD
try 'one without threads is refused' threads 'this SQLite was compiled without threads' \
	"${sqlite[@]}" -DNO_THREADS
try 'one without WAL is refused' wal 'this SQLite was compiled without WAL' "${sqlite[@]}" -DNO_WAL
try 'one set to one thread is refused' single \
	'this SQLite was set to one thread (SQLITE_CONFIG_SINGLETHREAD)' \
	"${sqlite[@]}" -DSINGLE
try 'a mixture of two is refused' mixed "sqlite3_db_readonly() of $tmp/mixed" "${sqlite[@]}" -DMIXED
try "the host's default VFS is not ours" vfs 'handed back' "${sqlite[@]}" -DVFS
try 'a program that takes the addresses of functions is no mixture' jumps 'handed back' \
	"${sqlite[@]}" -DJUMPS -no-pie -fno-pic
exit $status
