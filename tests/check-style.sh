#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Rules of layout that hold everywhere; clang-format would also redraw tables. Plus shellcheck,
# gofmt and mandoc's lint.
set -u
cd "${CK_TEST_SRCDIR:-$(dirname "$0")/..}" || exit 1
status=0

mapfile -t c < <(find src cache hooks tests contrib -name '*.[ch]' ! -name '*.pb-c.*' 2>/dev/null |
		sort)
mapfile -t scripts < <({
	find tests contrib .ci -name "*.sh"
	ls autogen.sh tests/run contrib/quickstart contrib/deploy/crikeep-deploy .ci/run \
		tests/prog/deploy/systemctl
} 2>/dev/null | sort -u)
mapfile -t go < <(find contrib tests -name '*.go' | sort)
mapfile -t man < <(find man -name '*.[1-8]' 2>/dev/null | sort)
mapfile -t other < <({
	ls configure.ac Makefile.am contrib/m4/ck.m4 tests/local.mk tests/*/local.mk
	find cache hooks -name '*.proto'
} 2>/dev/null)

# report NAME: the findings on stdin, one a line; none is good
report() {
	local found
	found=$(cat)
	if [ -z "$found" ]; then
		echo "ok - $1"
	else
		printf '%s\nnot ok - %s\n' "$found" "$1"
		status=1
	fi
}

all=("${c[@]}" "${go[@]}" "${scripts[@]}" "${man[@]}" "${other[@]}")

grep -nH '[[:blank:]]$' "${all[@]}" | report 'no blanks at the end of a line'

grep -nHE $'^\t* {8}|^\t* +\t' "${c[@]}" | report 'C is indented by tabs'

# columns: a tab goes to the next multiple of 8, the further bytes of a UTF-8 character take none
LC_ALL=C awk '{
	gsub(/[\200-\277]/, "")
	n = split($0, part, "\t")
	width = length(part[1])
	for (i = 2; i <= n; i++)
		width += 8 - width % 8 + length(part[i])
	if (width > 100)
		print FILENAME ":" FNR ": " width " columns"
}' "${c[@]}" "${scripts[@]}" "${other[@]}" | report 'no line is longer than 100 columns'

# a body lies between two braces in the first column; a test may be long where it is a list
awk '
	FNR == 1 { begin = 0 }
	/^[{]/ { begin = FNR }
	/^[}]/ {
		if (begin && FNR - begin - 1 > 60 && FILENAME !~ "^tests/")
			print FILENAME ":" begin ": a function of " FNR - begin - 1 " lines"
		begin = 0
	}
' "${c[@]}" | report 'no function is longer than 60 lines'

for f in "${all[@]}"; do
	head -n 3 "$f" | grep -q 'SPDX-License-Identifier: Apache-2\.0' || echo "$f"
done | report 'every source names its licence'

# of all files of a clone; what lies in an unpacked tarball besides is nobody's
if [ ! -e .git ]; then
	:
elif command -v reuse >/dev/null; then
	reuse lint >/dev/null 2>&1 || reuse lint 2>&1 | report 'every file has a licence (REUSE)'
else
	echo 'skip - REUSE: reuse is not installed'
fi

grep -nHE '\b(TO[D]O|FIX[M]E)\b' "${all[@]}" | grep -vE '(TO[D]O|FIX[M]E)\([a-z]' |
	report 'nothing is left to nobody'

if command -v shellcheck >/dev/null; then
	shellcheck -f gcc "${scripts[@]}" 2>&1 | report shellcheck
else
	echo 'skip - shellcheck: not installed'
fi

PATH=$PATH:/usr/local/go/bin:/usr/lib/go/bin # Go is for tests and bindings, and need not be there
! command -v gofmt >/dev/null || gofmt -l "${go[@]}" 2>&1 | report gofmt

if command -v mandoc >/dev/null; then
	for f in "${man[@]}"; do
		mandoc -T lint -W warning "$f"
	done 2>&1 | report 'man pages'
else
	echo 'skip - man pages: no mandoc'
fi
exit $status
