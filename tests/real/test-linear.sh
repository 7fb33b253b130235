#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Histories of real processes, checked by porcupine: linear/main.go says what of. Needs neither root
# nor containerd. CK_LINEAR=10000 for a night.
#
# shellcheck disable=SC1091,SC2086,SC2154,SC2317 # variables are prelude.sh's
set -u

. "$(dirname "$0")/../prog/prelude.sh"

tools=$build/tests/real/tools
said=$("$src/tests/real/tools.sh" "$tools" linear) || {
	[ $? -eq 3 ] || { not_ok "linear is built" "$said"; exit 1; }
	echo "skip - histories of real processes: $(tail -n 1 <<<"$said")"
	exit 0
}
histories() { "$tools/linear" -crikeepd "$crikeepd" -sim "$crikeep_sim" -dir "$work" "$@"; }

check 'histories with kills are linearizable' histories -histories "${CK_LINEAR:-80}"
check 'a planted second creation is found' histories -histories 40 -plant
exit $failed
