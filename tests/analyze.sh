#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# analyze.sh TOOL FILES FLAG... - looks through the product by gcc -fanalyzer, clang's static
# analyzer, clang-tidy or cppcheck. FILES are C files of the source directory, in one word; FLAGs
# are the compiler's. Prints the findings, and how many there are as the last line. For
# `make analyze`, in the build directory.
set -u

here=$(cd "$(dirname "$0")" && pwd)
jobs=$(nproc)

# left_out TOOL - the checks that analyze.conf names, one a line
left_out() { awk -v tool="$1" '$1 == tool { print $2 }' "$here/analyze.conf"; }

# ---- one file: FLAG... FILE ---------------------------------------------------------------------

# -O0: what is analyzed is what is written; with more, gcc 12 does not come to an end of some files.
# -fno-builtin-memcpy: it takes a pointer that was copied by memcpy() for uninitialized.
one_gcc() {
	gcc -Werror "$@" -O0 -U_FORTIFY_SOURCE -fno-builtin-memcpy -fanalyzer \
		-fdiagnostics-plain-output -S -o /dev/null
}
one_clang-tidy() {
	local file=${!#} checks='-*,bugprone-*,cert-*' allowed='' check
	for check in $(left_out clang-tidy); do checks+=,-$check; done
	for check in bugprone-reserved-identifier cert-dcl37-c cert-dcl51-cpp; do
		allowed+="{ key: $check.AllowedIdentifiers, value: _GNU_SOURCE }, "
	done
	clang-tidy --quiet --warnings-as-errors='*' --checks="$checks" \
		--config="{ CheckOptions: [ $allowed ] }" \
		--header-filter='/(src|cache|hooks|contrib)/.*[/][^./]+[.]h$' \
		"$file" -- "${@:1:$#-1}"
}
# what scan-build runs, without its compilation and its pages. It looks at 60,000 states of each
# function, and not at 225,000, which takes three times as long and has found nothing more.
one_clang() {
	clang --analyze -w -Xclang -analyzer-werror -Xclang -analyzer-config \
		-Xclang max-nodes=60000 --analyzer-output text "$@" -o /dev/null
}

case $1 in
one-*)
	what=${1#one-}
	shift
	"one_$what" "$@"
	exit
	;;
esac

# ---- all files ----------------------------------------------------------------------------------

tool=$1
read -ra files <<<"${2:-}"
shift 2
src=${here%/tests}

each() { # each FLAG... - the tool for each file, as many at a time as there are processors
	printf "$src/%s\n" "${files[@]}" | xargs -P "$jobs" -n 1 "$here/analyze.sh" "one-$tool" "$@"
}
need() { # need PROGRAM PACKAGE
	command -v "$1" >/dev/null || { echo "make analyze needs $1 (Debian: $2)" >&2; exit 2; }
}
run_cppcheck() {
	local check flag options=()
	for check in $(left_out cppcheck); do options+=("--suppress=$check"); done
	for flag; do # it parses no header of the system, but for these two, which are all macros
		case $flag in
		-D*) options+=("$flag") ;;
		esac
	done
	mkdir -p analyze && cp /usr/include/uthash.h /usr/include/utlist.h analyze/ || return
	(cd "$src" && cppcheck -q -j "$jobs" --enable=warning,style,performance,portability \
		--inline-suppr --std=c11 --library=posix --error-exitcode=1 \
		"--template={file}:{line}:{column}: warning: {message} [{id}]" "${options[@]}" \
		-I. -Isrc -I"$OLDPWD/analyze" --suppress="*:$OLDPWD/analyze/*" "${files[@]}")
}

if [ ${#files[@]} -eq 0 ] || [ $# -eq 0 ]; then
	echo "usage: $0 gcc|clang|clang-tidy|cppcheck FILES FLAG..." >&2
	exit 2
fi
out=$(mktemp) || exit 1
trap 'rm -f "$out"' EXIT

look() { # look FLAG... - at all files, by the tool; the output is in $out
	case $tool in
	cppcheck) run_cppcheck "$@" ;;
	*) each "$@" ;;
	esac >"$out" 2>&1
}
# a finding in a header is found once for each file that includes it
findings() { grep -E ': (warning|error): ' "$out" | sort -u | wc -l; }

case $tool in
gcc) need gcc gcc && name="gcc -fanalyzer $(gcc -dumpfullversion)" ;;
clang) need clang clang && name="clang --analyze $(clang -dumpversion)" ;;
clang-tidy)
	need clang-tidy clang-tidy
	name=$(clang-tidy --version | sed -n 's/.*version/clang-tidy/p')
	;;
cppcheck) need cppcheck cppcheck && name=$(cppcheck --version) ;;
esac

# who finds nothing in a file with faults would find nothing anywhere
all=("${files[@]}")
files=(tests/data/faulty.c)
if look "$@" || [ "$(findings)" -eq 0 ]; then
	cat "$out"
	echo "$name does not see the fault in ${files[0]}"
	exit 1
fi

files=("${all[@]}")
status=0
look "$@" || status=1
n=$(findings)
if [ "$n" -gt 0 ] || [ "$status" -ne 0 ]; then
	grep -vE '^[0-9]+ (warnings?|errors?) generated|^Suppressed ' "$out" | sed "s|$src/||g"
fi
echo "$name: $n findings in ${#files[@]} files"
[ "$n" -eq 0 ] && [ "$status" -eq 0 ]
