#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Includes point down. The table below is the picture of CONTRIBUTING.md, "Where things are": a folder, and the folders it may
# include from besides itself. The root is src/crikeep.h and its like, which everybody may include.
set -u
cd "${CK_TEST_SRCDIR:-.}" || exit 1

dirs=
for d in src cache hooks; do [ -d $d ] && dirs="$dirs $d"; done
# shellcheck disable=SC2086
find $dirs -name '*.[ch]' ! -name '*.pb-c.*' -exec grep -Hn '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' {} + |
awk -F: '
function folder(path) {
	if (path ~ /^src\/crikeep(-nri)?\.h$/) return "crikeep.h"
	if (path ~ /^src\/export\.h$/) return "build"
	if (path ~ /^src\/api[^\/]*$/) return "api"
	sub(/\/[^\/]*$/, "", path)
	return (path in below) ? path : "?"
}
BEGIN {
	below["crikeep.h"] = below["build"] = below["src/base"] = ""
	below["cache/request"] = "src/base"
	below["cache/machine"] = "cache/request src/base"
	below["cache/store"] = "cache/machine cache/request src/base"
	below["cache"] = "cache/store cache/machine cache/request src/base"
	below["hooks/wire"] = "src/base"
	below["hooks/adjust"] = "hooks/wire src/base"
	below["hooks"] = "hooks/adjust hooks/wire src/base"
	below["api"] = "cache cache/store cache/machine cache/request hooks hooks/adjust hooks/wire src/base"
	below["src/rpc"] = "cache/request src/base"
	below["src/cri"] = "cache/request src/base"
	below["src/sim"] = "src/cri src/rpc src/base"
	library = "api cache cache/store cache/machine cache/request hooks hooks/wire src/cri src/rpc src/base"
	below["src/daemon/conf"] = library
	below["src/daemon/confine"] = "src/daemon/conf " library
	below["src/daemon"] = "src/daemon/conf src/daemon/confine src/daemon/nri src/sim " library
	below["src/daemon/nri"] = library
	below["src/cli/output"] = "src/base"
	below["src/cli/simulate"] = "src/cli/output " library
	below["src/cli"] = "src/cli/simulate src/cli/output " library
}
{
	split($0, quoted, "\"")
	included = quoted[2]
	from = folder($1)
	if (included !~ /\//) # beside the includer
		included = substr($1, 1, match($1, /[^\/]*$/) - 1) included
	to = folder(included)
	seen[from]++
	if (from == "?") why = "a file outside of the folders"
	else if (to == "?") why = "not a path from the top of the tree"
	else if (to == from || to == "crikeep.h" || index(" " below[from] " ", " " to " ")) next
	else why = from " must not include from " to
	print $1 ":" $2 ": \"" quoted[2] "\": " why
	bad[from]++
}
END {
	for (f in seen)
		print ((f in bad) ? "not ok - " : "ok - ") "includes of " f
	for (f in bad)
		exit 1
}'
