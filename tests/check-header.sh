#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# crikeep.h is for everybody: alone and in front, strict C99, C++, no name but its own.
set -u
header=${CK_TEST_SRCDIR:-.}/src/crikeep.h
# shellcheck disable=SC2086 # CC may carry options
set -- ${CC:-cc}
status=0

try() { # try NAME COMPILER...
	name=$1
	shift
	if "$@" -fsyntax-only -Wall -Wextra -Wpedantic -Wundef -Werror "$header"; then
		echo "ok - $name"
	else
		echo "not ok - $name"
		status=1
	fi
}

# -include of the same file: it may be included twice
try 'crikeep.h is C99' "$@" -std=c99 -Wstrict-prototypes -x c -include "$header"
if command -v g++ >/dev/null; then
	try 'crikeep.h is C++' g++ -std=c++11 -x c++ -include "$header"
elif command -v clang >/dev/null; then
	try 'crikeep.h is C++' clang -std=c++11 -x c++ -include "$header"
else
	echo 'skip - crikeep.h is C++: no C++ compiler'
fi

if grep -nE '^#define ' "$header" | grep -vE '#define (CK_|CRIKEEP_H)' ||
	grep -nE '#include "|config\.h' "$header"; then
	echo 'not ok - crikeep.h takes and defines no foreign names'
	status=1
else
	echo 'ok - crikeep.h takes and defines no foreign names'
fi
exit $status
