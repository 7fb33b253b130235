#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The recorded methods, fields and enumerations of cri-api (tests/data) are those of the module that
# Go downloads. What the newest module has beyond the record is printed, a line each; that is no
# failure.
#
# shellcheck disable=SC1091,SC2154 # variables are prelude.sh's
set -u

. "$(dirname "$0")/../prog/prelude.sh"
. "$(dirname "$0")/go.sh"

module=k8s.io/cri-api recorded=v0.37.2
export GOFLAGS=-mod=mod

# listed VERSION: what its api.proto says, sorted. Read in the archive: what needs a newer Go is not
# unpacked.
listed() {
	local zip
	zip=$(go mod download -json "$module@$1" |
			sed -n 's/^[[:space:]]*"Zip": "\(.*\)",*$/\1/p') &&
		[ -n "$zip" ] &&
		python3 -c 'import sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as archive:
	sys.stdout.buffer.write(archive.read(sys.argv[2]))' "$zip" \
			"$module@$1/pkg/apis/runtime/v1/api.proto" >"$work/api.proto" &&
		awk -f "$src/tests/real/cri-api.awk" "$work/api.proto" >"$work/unsorted" &&
		sort "$work/unsorted" >"$work/$1"
}

for program in go python3; do
	command -v $program >/dev/null ||
		{ echo "skip - the calls of cri-api: there is no $program"; exit 0; }
done
cd "$work" && go mod init scratch >/dev/null 2>&1 || exit 99
newest=$(go list -m -versions "$module" 2>"$work/why" | tr ' ' '\n' | tail -n 1)
if [ -z "$newest" ] || ! listed "$recorded" 2>"$work/why" ||
	! listed "$newest" 2>"$work/why"; then
	why=$(tail -n 1 "$work/why" | cut -c 1-200)
	echo "skip - the calls of cri-api: Go cannot fetch $module: $why"
	exit 0
fi

grep -v '^#' "$src/tests/data/cri-api-${recorded#v}.txt" | sort >"$work/record"
check "the record is what cri-api $recorded says" diff -u "$work/record" "$work/$recorded"

comm -13 "$work/record" "$work/$newest" | sed "s/^/note - cri-api $newest adds: /"
comm -23 "$work/record" "$work/$newest" | sed "s/^/note - cri-api $newest has no longer: /"
check "cri-api $newest has calls and messages" grep -q '^RuntimeService/Version ' "$work/$newest"
exit "$failed"
