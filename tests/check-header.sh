#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The installed headers are for everybody: alone and in front, strict C99, C++, no name but its own.
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
done
exit $status
