#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Can the tests of NRI's requirements fail? Each row of requirements.tsv is played with its requirement switched off, and has to
# be red. That they are green otherwise is the tests' own business.
#
# usage: test-requirements.sh [REQUIREMENT...]
#
# shellcheck disable=SC1091,SC2034,SC2154 # variables are play.sh's
set -u

here=$(cd "$(dirname "$0")" && pwd)
scenarios='requirements_are_seen_when_broken'
. "$here/play.sh"
[ -x "$crikeepd" ] || skip_all 'crikeepd was not built'
grep -q CRIKEEP_BREAK "$crikeepd" "$build"/.libs/crikeepd 2>/dev/null || skip_all 'built without --enable-checks'
need crictl nri nri-v030 relay
work=$(mktemp -d "${TMPDIR:-/tmp}/q.XXXXXX") || exit 99
trap 'rm -rf "$work"' EXIT

rows() { grep -v '^#' "$here/requirements.tsv"; }

# broken NUMBER TEST SWITCH: its output, with the switch on
broken() {
	local of=${2#* } program=${2%% *}
	mkdir "$work/$1"
	export CRIKEEP_BREAK=$3 TMPDIR=$work/$1
	case $program in
	*.sh) "$here/$program" "$of" ;;
	*)
		export CK_TEST_FILTER=$of CK_TEST_SRCDIR=$src CK_TEST_BUILDDIR=$build CK_TEST_DATA=$src/tests/data
		timeout 120 "$build/$program"
		;;
	esac >"$work/$1.out" 2>&1 </dev/null
	echo $? >"$work/$1.status"
}
# red NUMBER: says which of its checks is, if one is. A scenario that never came to a check, or a program that died, has seen
# nothing
red() {
	grep -vE ' comes to its end$| is synchronized$| crikeepd is well$' "$work/$1.out" |
		sed -n 's/^not ok - //p; s/^\[  FAILED  \] //p' | grep -m 1 .
}

n=0 status=0
while IFS=$'\t' read -r id words test switch; do
	n=$((n + 1))
	[ $# -eq 0 ] || [[ " $* " == *" $id "* ]] || continue
	[[ $test == *.sh\ * ]] || [ -x "$build/${test% *}" ] || continue
	while [ "$(jobs -rp | wc -l)" -ge $((2 * $(nproc))) ]; do
		wait -n
	done
	broken $n "$test" "$switch" &
done < <(rows)
wait
n=0
while IFS=$'\t' read -r id words test switch; do
	n=$((n + 1))
	[ $# -eq 0 ] || [[ " $* " == *" $id "* ]] || continue
	if [ ! -e "$work/$n.out" ]; then
		echo "skip - $id is seen when broken (${test%% *}): it was not built"
		continue
	fi
	why=$(sed -n 's/^skip - [^:]*: //p' "$work/$n.out" | head -n 1)
	if [ -n "$why" ]; then
		echo "skip - $id is seen when broken (${test%% *}): $why"
		continue
	fi
	if seen=$(red $n); then
		echo "ok - $id is seen when broken: $words (${test%% *})"
		echo "    by $seen"
		continue
	fi
	status=1
	echo "not ok - $id is seen when broken: $words (${test%% *})"
	echo "    $test, with CRIKEEP_BREAK=$switch:"
	sed 's/^/    /' "$work/$n.out" | tail -n 30
done < <(rows)
if [ $# -eq 0 ]; then
	missing=$(comm -23 <(printf '%s\n' R{1..42} H{1..10} | sort) <(rows | cut -f 1 | sort))
	if [ -z "$missing" ]; then
		echo 'ok - every requirement has a test'
	else
		status=1
		echo "not ok - every requirement has a test: ${missing//$'\n'/ }"
	fi
fi
exit $status
