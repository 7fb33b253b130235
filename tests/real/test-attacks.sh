#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# tests/load/test-attacks before a real containerd, as root: what one client's rubbish costs an
# ordinary client, compared with containerd under the same attack.
#
# usage: test-attacks.sh
#
# Variables are shared with stage.sh.
# shellcheck disable=SC1091,SC2034,SC2154,SC2317
set -u

here=$(cd "$(dirname "$0")" && pwd)
scenarios=attacks
. "$here/play.sh"
. "$here/stage.sh"
[ -x "$build/tests/load/test-attacks" ] || skip_all 'tests/load/test-attacks was not built'
enter "$@"

twenty_pods() {
	local i
	for i in {1..20}; do
		"$crikeep" drive --endpoint "unix://$d/cri.sock" --host-network --pod "p$i" ||
			return
	done
}

attacks() {
	stage || return
	check 'there are pods' twenty_pods
	check 'an ordinary client sees no attack' env CK_TEST_BUILDDIR="$build" \
		CK_ATTACKS_RUNTIME="$d/containerd.sock" "$build/tests/load/test-attacks"
	sed -n 's/^.* x its answers$/    &/p; s/^.* errors at the runtime$/    &/p' "$d/said"
}

play_all
