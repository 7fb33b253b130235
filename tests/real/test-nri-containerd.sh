#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Real NRI plugins before crikeepd and a real containerd with a real runc, as root: those scenarios
# of test-nri-sim.sh in which the runtime has a part. Each has a containerd of its own; nothing
# outlives the script but its verdict.
#
# usage: test-nri-containerd.sh [SCENARIO]
#
# A && B || C is meant; shares variables
# shellcheck disable=SC1091,SC2015,SC2034,SC2086,SC2119,SC2120,SC2154,SC2317
set -u

here=$(cd "$(dirname "$0")" && pwd)
scenarios="R3 R5 R7 R8 R9 R12 R14 R18 R19 R20 R22 R26 R27 R31 R34 R35 R36 R37 R39 R40 H7 O1 O3 O5 O8
	before_create conflict updated old_stub frozen_node frozen_policies"
. "$here/play.sh"
. "$here/stage.sh"
. "$here/nri-stage.sh"
. "$here/nri-containerd.sh"
. "$here/nri-pods.sh"
. "$here/nri-containers.sh"
. "$here/nri-rules.sh"

[ "${1:-}" = inside ] || [ "$(id -u)" -ne 0 ] || need crictl nri nri-v030 relay
enter "$@"

stage() { stage_up "$@"; }
stage_apart() { stage_up "$@"; }

play_all
