#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The installed headers are for everybody: alone and in front, strict C99, C++, no name but its own.
# And they are the manual: each declaration has a comment that says since when it is there.
set -u
# shellcheck disable=SC2086 # CC may carry options
set -- ${CC:-cc}
status=0

try() { # try NAME COMPILER...
	what=$1
	shift
	if "$@" -fsyntax-only -Wall -Wextra -Wpedantic -Wundef -Werror "$header"; then
		echo "ok - $what"
	else
		echo "not ok - $what"
		status=1
	fi
}

# undated HEADER: declarations without "Since: N.N" in the comment before them. One comment may
# stand before several typedefs, enums and structs, but a function ends it, and so does an empty
# line.
undated() {
	awk '
	comment || /^\/\*/ { # a whole comment at the left margin
		if (!comment)
			dated = 0
		comment = !/\*\//
		if (/Since: [0-9]+\.[0-9]/)
			dated = 1
		next
	}
	/^$/ { dated = 0 }
	{
		is_function = /^[a-z][a-z0-9_ ]*[ *]ck_[a-z0-9_]+\(/ && !/^typedef /
		declares = is_function || /^(enum|struct|typedef) /
		if ((declares || /^#define CK_[A-Z_]+(\(X\)| )/) && !dated)
			print FILENAME ":" FNR ": " $0
		if (is_function)
			dated = 0
	}' "$1"
}

for name in crikeep.h crikeep-nri.h; do
	header=${CK_TEST_SRCDIR:-.}/src/$name
	# -include of the same file: it may be included twice
	try "$name is C99" "$@" -std=c99 -Wstrict-prototypes -x c -include "$header"
	if command -v g++ >/dev/null; then
		try "$name is C++" g++ -std=c++11 -x c++ -include "$header"
	elif command -v clang >/dev/null; then
		try "$name is C++" clang -std=c++11 -x c++ -include "$header"
	else
		echo "skip - $name is C++: no C++ compiler"
	fi

	if grep -nE '^#define ' "$header" | grep -vE '#define (CK_|CRIKEEP_(NRI_)?H)' ||
		grep -nE '#include "|config\.h' "$header" | grep -v '#include "crikeep\.h"'; then
		echo "not ok - $name takes and defines no foreign names"
		status=1
	else
		echo "ok - $name takes and defines no foreign names"
	fi

	if undated "$header" | grep .; then
		echo "not ok - $name says of each declaration since when it is there"
		status=1
	else
		echo "ok - $name says of each declaration since when it is there"
	fi
done
exit $status
