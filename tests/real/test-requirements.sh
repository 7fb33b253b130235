#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Can the tests of NRI's requirements fail? A row of requirements.tsv is played with a mutant of
# tests/mutants/nri.tsv that breaks its requirement, and has to be red. The programs are those of
# tests/mutants, which contain all mutants. That the tests are green otherwise is their own
# business.
#
# 24 rows are played, chosen by CK_REQUIREMENTS_SEED=N. CK_REQUIREMENTS=all plays all of them.
# Arguments play the rows of these requirements alone.
#
# usage: test-requirements.sh [REQUIREMENT...]
#
# shellcheck disable=SC1091,SC2034,SC2154 # variables are play.sh's
set -u

here=$(cd "$(dirname "$0")" && pwd)
scenarios='requirements_are_seen_when_broken'
. "$here/play.sh"
export CK_CRIKEEPD=$build/tests/mutants/crikeepd
[ -x "$CK_CRIKEEPD" ] || skip_all 'crikeepd with mutants was not built'
need crictl nri nri-v030 relay
work=$(mktemp -d "${TMPDIR:-/tmp}/q.XXXXXX") || exit 99
trap 'rm -rf "$work"' EXIT

rows() { grep -v '^#' "$here/requirements.tsv"; }
mutants() { grep -v '^#' "$src/tests/mutants/nri.tsv"; }
# the numbers of the rows that are played
chosen() { # chosen [REQUIREMENT]...
	local seed=${CK_REQUIREMENTS_SEED:-1} id words test mutant row=0
	while IFS=$'\t' read -r id words test mutant; do
		row=$((row + 1))
		[ $# -eq 0 ] || [[ " $* " == *" $id "* ]] || continue
		echo "$(echo "$seed $id $test $mutant" | md5sum) $row"
	done < <(rows) | sort | {
		if [ $# -gt 0 ] || [ "${CK_REQUIREMENTS:-}" = all ]; then cat; else head -n 24; fi
	} | awk '{ print $NF }' | xargs
}
# where a test program with mutants is
with_mutants() { echo "$build/tests/mutants/${1##*/}"; }

# broken NUMBER TEST MUTANT: its output, with the mutant on
broken() {
	local of=${2#* } program=${2%% *}
	mkdir "$work/$1"
	export CRIKEEP_BREAK=$3 TMPDIR=$work/$1
	case $program in
	*.sh) "$here/$program" "$of" ;;
	*)
		export CK_TEST_FILTER=$of CK_TEST_SRCDIR=$src CK_TEST_BUILDDIR=$build \
			CK_TEST_DATA=$src/tests/data
		timeout 120 "$(with_mutants "$program")"
		;;
	esac >"$work/$1.out" 2>&1 </dev/null
	echo $? >"$work/$1.status"
}
# red NUMBER: says which of its checks is, if one is. A scenario that never came to a check, or a
# program that died, has seen nothing
red() {
	grep -vE ' comes to its end$| is synchronized$| crikeepd is well$' "$work/$1.out" |
		sed -n 's/^not ok - //p; s/^\[  FAILED  \] //p' | grep -m 1 .
}

numbers=$(chosen "$@")
is_chosen() { [[ " $numbers " == *" $n "* ]]; }

n=0 status=0
while IFS=$'\t' read -r id words test mutant; do
	n=$((n + 1))
	is_chosen || continue
	[[ $test == *.sh\ * ]] || [ -x "$(with_mutants "${test% *}")" ] || continue
	while [ "$(jobs -rp | wc -l)" -ge $((2 * $(nproc))) ]; do
		wait -n
	done
	broken $n "$test" "$mutant" &
done < <(rows)
wait
n=0
while IFS=$'\t' read -r id words test mutant; do
	n=$((n + 1))
	is_chosen || continue
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
	echo "    $test, with CRIKEEP_BREAK=$mutant:"
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
	unlike=$(comm -3 <(rows | cut -f 4 | sort -u) <(mutants | cut -f 1 | sort -u))
	if [ -z "$unlike" ]; then
		echo 'ok - every mutant has a row, and no other has'
	else
		status=1
		echo "not ok - every mutant has a row, and no other has: ${unlike//$'\n'/ }"
	fi
fi
exit $status
