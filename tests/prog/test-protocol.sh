#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The protocol in contrib/model/nri.pml, by spin: every run of every small world ends well, the
# formulas hold, and each way to get it wrong that the model has an #ifdef for is found.
# contrib/model/README.md says what that is worth.
#
# shellcheck disable=SC1091,SC2154 # prelude.sh says where everything is
set -u
. "$(dirname "$0")/prelude.sh"
model=$src/contrib/model/nri.pml

# search WHERE OPTIMIZATION COMPILED SEARCHED FLAG...: states visited, every one; what pan says into
# $work/WHERE/said
search() (
	mkdir -p "$work/$1" && cd "$work/$1" || return
	optimize=$2 compiled=$3 searched=$4
	shift 4
	# shellcheck disable=SC2086 # words
	{
		spin "$@" -a "$model" >said 2>&1 || return
		${CC:-cc} -w "$optimize" $compiled -DVECTORSZ=2048 -DMEMLIM=2000 -o pan pan.c \
			>said 2>&1 || return
		./pan -m100000 -w22 $searched >said 2>&1
	}
)
verdict() { # verdict WHERE: of a search
	! grep -q 'Search not completed\|max search depth too small' "$work/$1/said" &&
		grep -q 'errors: 0$' "$work/$1/said"
}
counted() { sed -n 's/^ *\([0-9]*\) states, stored.*/\1/p' "$work/$1/said"; }

holds() { # holds NAME FLAG...: assertions, and whatever could stay undone for ever
	local name=$1
	shift
	rm -rf "$work/world"
	search world -O2 '-DSAFETY -DNOCLAIM' '' "$@"
	if verdict world; then
		echo "    $(counted world) states"
		ok "$name"
	else
		not_ok "$name" "$(tail -n 25 "$work/world/said")"
		(cd "$work/world" && spin "$@" -t -p "$model" 2>&1 | tail -n 200)
	fi
}
formula() { # formula NAME: the program for all of them is built once
	[ -x "$work/ltl/pan" ] || search ltl -O1 '' '-a -N never_both' -DCONNS=1
	(cd "$work/ltl" && ./pan -m100000 -w18 -a -N "$1" >said 2>&1)
	if verdict ltl; then ok "formula $1"; else not_ok "formula $1" \
		"$(tail -n 25 "$work/ltl/said")"; fi
}
# found SWITCH: an assertion does not hold, which is something else than that the model does not
# compile
found() {
	local calm
	# most show in the smaller world, and it is looked through sooner
	for calm in -DCALM -DCONNS=3; do
		search broken -O0 '-DSAFETY -DNOCLAIM' '' "$calm" "-D$1"
		grep -q 'assertion violated' "$work/broken/said" && break
	done
	if grep -q 'assertion violated' "$work/broken/said"; then
		ok "found: $1"
	else
		not_ok "found: $1" "$(tail -n 25 "$work/broken/said")"
	fi
	rm -rf "$work/broken"
}

switches=$(sed -n 's/^#ifn\?def \([A-Z_]*\)$/\1/p; s/^#elif defined(\([A-Z_]*\))$/\1/p' "$model" |
	grep -vxE 'PODS|CONNS|RESTARTS|CALM' | sort -u)
formulas=$(sed -n 's/^ltl \([a-z_]*\) .*/\1/p' "$model")
if [ "$(wc -w <<<"$switches")" -lt 15 ] || [ "$(wc -w <<<"$formulas")" -lt 5 ]; then
	not_ok 'switches and formulas are in the model'
fi

if ! command -v spin >/dev/null; then
	for name in 'one pod, a plugin that returns, another one, a restart' 'two pods' formulas \
		'each break is found'; do
		echo "skip - $name: spin is not installed (Debian: spin)"
	done
	exit 0
fi
lives=3
# then nobody returns; the switches still are searched in the larger world
[ "${CK_TEST_SCALE:-100}" -ge 100 ] || lives=2
holds 'one pod, a plugin that returns, another one, a restart' -DPODS=1 -DCONNS=$lives -DRESTARTS=1
holds 'two pods' -DPODS=2 -DCONNS=1 -DRESTARTS=0 -DCALM
for name in $formulas; do
	formula "$name"
done
search broken -O1 '' '-a -A -N commit_ends' -DCONNS=1 -DNO_DEADLINE # -A: not by an assertion
if grep -q 'acceptance cycle' "$work/broken/said"; then
	ok 'a commit that does not end is found by its formula, too'
else
	not_ok 'a commit that does not end is found by its formula, too' \
		"$(tail -n 25 "$work/broken/said")"
fi
rm -rf "$work/broken"
for name in $switches; do
	found "$name"
done
exit "$failed"
