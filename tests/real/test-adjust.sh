#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What plugins want, merged by containerd's own code and by ours: the same answers to both,
# thousands at random, and what comes out compared. Needs neither root nor containerd, but a current
# Go.
#
# usage: test-adjust.sh [same_answers_are_merged_the_same]
#
# shellcheck disable=SC1091,SC2034,SC2154 # variables are play.sh's
set -u

here=$(cd "$(dirname "$0")" && pwd)
scenarios='same_answers_are_merged_the_same'
. "$here/play.sh"
[ -x "$build/tests/real/merge" ] || skip_all 'tests/real/merge was not built'
need adjust

if out=$("$tools/adjust" -cases $((40 * ${CK_TEST_SCALE:-100})) "$build/tests/real/merge" \
	2>&1); then
	tail -n 1 <<<"$out" # how many of each
	echo 'ok - same answers are merged the same'
else
	printf '%s\n' "$out"
	echo 'not ok - same answers are merged the same'
	exit 1
fi
