#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Includes point down:  src/cli, src/daemon -> src/rpc | src/api -> cache | hooks -> src/base
# cache and hooks do not know each other, nor do the command and the daemon; everybody may include src/crikeep.h and
# src/crikeep-nri.h.
set -u
cd "${CK_TEST_SRCDIR:-.}" || exit 1

dirs=
for d in src cache hooks; do [ -d $d ] && dirs="$dirs $d"; done
# shellcheck disable=SC2086
find $dirs -name '*.[ch]' ! -name '*.pb-c.*' -exec grep -Hn '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' {} + |
awk -F: '
function layer(path) {
	if (path ~ /^src\/crikeep(-nri)?\.h$/) return "crikeep.h"
	if (path ~ /^src\/export\.h$/) return "build"
	if (path ~ /^src\/api[^\/]*$/) return "api"
	if (path ~ /^src\/(base|cli|daemon|rpc)\//) { split(path, part, "/"); return part[2] }
	if (path ~ /^(cache|hooks)\//) { split(path, part, "/"); return part[1] }
	return "?"
}
BEGIN {
	below["cli"] = below["daemon"] = " rpc api cache hooks base "
	below["api"] = " cache hooks base "
	below["cache"] = below["hooks"] = below["rpc"] = " base "
	below["base"] = below["crikeep.h"] = below["build"] = " "
}
{
	split($0, quoted, "\"")
	included = quoted[2]
	from = layer($1)
	if (included !~ /\//) # beside the includer
		included = substr($1, 1, match($1, /[^\/]*$/) - 1) included
	to = layer(included)
	seen[from]++
	if (from == "?") why = "a file outside of the layers"
	else if (to == "?") why = "not a path from the top of the tree"
	else if (to == from || to == "crikeep.h" || index(below[from], " " to " ")) next
	else why = from " must not know " to
	print $1 ":" $2 ": \"" quoted[2] "\": " why
	bad[from]++
}
END {
	for (l in seen)
		print ((l in bad) ? "not ok - " : "ok - ") "includes of " l
	for (l in bad)
		exit 1
}'
