#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What SECURITY.md, FAULTS.md and NEWS say is so: tests that are named exist, commits are in the log
# with their dates, and the version is this one. And `make sbom` describes what was built.
#
# The variables are of prelude.sh; check calls functions; jq and eval have words in single quotes.
# shellcheck disable=SC1091,SC2015,SC2016,SC2034,SC2086,SC2154,SC2317
set -u

. "$(dirname "$0")/prelude.sh"
version=$(sed -n 's/^AC_INIT(\[crikeep\], \[\(.*\)\])$/\1/p' "$src/configure.ac")

tests_exist() { # in SECURITY.md they are `PROGRAM/NAME`
	local program name source n=0
	while IFS=/ read -r program name; do
		n=$((n + 1))
		source=$(find "$src/tests" -name "$program.c")
		[ -n "$source" ] && grep -q "^static void $name(void \*\*" "$source" ||
			{ echo "there is no test $program/$name"; return 1; }
	done < <(grep -o '`test-[a-z-]*/[a-z_0-9]*`' "$src/SECURITY.md" | tr -d '`' | sort -u)
	[ $n -ge 10 ]
}
same_address() {
	local address
	address=$(sed -n 's/^Maintainer: .*<\(.*\)>$/\1/p' "$src/contrib/debian/control")
	[ -n "$address" ] && grep -qF "<$address>" "$src/SECURITY.md"
}
commits_are_there() {
	local date commit n=0
	while read -r date commit; do
		n=$((n + 1))
		[ "$(git -C "$src" log -1 --format=%ad --date=short "$commit")" = "$date" ] &&
			git -C "$src" merge-base --is-ancestor "$commit" HEAD ||
			{ echo "there is no $commit of $date"; return 1; }
	done < <(sed -nE 's/^\| (20[0-9-]+) \| ([0-9a-f]{7}) \|.*/\1 \2/p' "$src/FAULTS.md")
	[ $n -ge 25 ]
}
check 'SECURITY.md names tests that exist' tests_exist
check 'SECURITY.md has the address of the maintainers' same_address
news() { grep -m 1 '^[0-9]' "$src/NEWS" | grep -qE "^$version(,|\$)"; }
check 'NEWS begins with this version' news
# a tarball has no log, and a shallow clone the end of it
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*'
if [ -e "$src/.git" ] && [ "$(git -C "$src" rev-parse --is-shallow-repository)" = false ]; then
	check 'the commits of FAULTS.md are in the log' commits_are_there
fi

# ---- what is it made of --------------------------------------------------------------------------

for p in jq dpkg-query readelf; do
	command -v $p >/dev/null || { echo "skip - the SBOM: there is no $p"; exit "$failed"; }
done
library=$build/.libs/libcrikeep.so.0
binaries=("$library")
for p in "$crikeep" "$crikeepd" "$crikeep_sim"; do
	[ ! -x "$p" ] || binaries+=("$p")
done
sbom=$work/sbom.json
makes() { "$src/contrib/sbom.sh" "$src" "${binaries[@]}" >"$sbom"; }
holds() { jq -e "$1" "$sbom"; }
# what SPDX 2.3 requires of a document, its packages, files and relationships
required='.spdxVersion == "SPDX-2.3" and .dataLicense == "CC0-1.0" and
	.SPDXID == "SPDXRef-DOCUMENT" and (.name | length > 0) and
	(.documentNamespace | test("^https://[^# ]+$")) and
	(.creationInfo.created | test("^[0-9-]{10}T[0-9:]{8}Z$")) and
	(.creationInfo.creators | length > 0) and
	all(.packages[]; .name and .downloadLocation and .versionInfo) and
	all(.files[]; (.fileName | startswith("./")) and
		any(.checksums[]; .algorithm == "SHA1" and (.checksumValue | length == 40)) and
		any(.checksums[]; .algorithm == "SHA256")) and
	all(.packages[].SPDXID, .files[].SPDXID; test("^SPDXRef-[A-Za-z0-9.-]+$")) and
	any(.relationships[]; .relationshipType == "DESCRIBES")'
ids='([.SPDXID] + [.packages[].SPDXID] + [.files[].SPDXID]) as $ids |
	($ids | length) == ($ids | unique | length) and
	all(.relationships[]; . as $r | any($ids[]; . == $r.spdxElementId) and
		any($ids[]; . == $r.relatedSpdxElement))'
digests() { # of files that are there
	local name digest n=0
	while read -r name digest; do
		n=$((n + 1))
		printf '%s\n' "${binaries[@]}" | grep -E "/$name\$" |
			xargs sha256sum | grep "^$digest " || return
	done < <(jq -r '.files[] | (.fileName[2:]) + " " +
		(.checksums[] | select(.algorithm == "SHA256").checksumValue)' "$sbom")
	[ $n -eq ${#binaries[@]} ]
}
libraries_of() { # libraries_of BINARY - their names
	readelf -dW "$1" | grep NEEDED | grep -o '\[.*\]' | tr -d '[]' | grep -v '^libcrikeep'
}
linked() { # as many packages as the loader would look for libraries of, counted in another way
	local binary need have
	for binary in "${binaries[@]}"; do libraries_of "$binary"; done | sort -u |
		sed 's|^|*/|' | xargs dpkg-query -S >"$work/owners"
	for binary in "${binaries[@]}"; do
		need=$(libraries_of "$binary" | while read -r l; do
			grep -F "/$l" "$work/owners" | sed 's/:.*//' | head -n 1
		done | sort -u | wc -l)
		have=$(jq --arg id "SPDXRef-File-${binary##*/}" '[ .relationships[] |
			select(.spdxElementId == $id and .relationshipType == "DYNAMIC_LINK") ] |
			length' "$sbom")
		[ "$need" -eq "$have" ] || { echo "$binary needs $need, has $have"; return 1; }
	done
}
check 'an SBOM is made of what was built' makes
check 'it is a document of SPDX 2.3' holds "$required"
check 'its elements have names of their own, and relationships name them' holds "$ids"
check 'its digests are those of the files' digests
check 'each binary is linked to the packages of its libraries' linked
again() { mv "$sbom" "$sbom.1" && makes && cmp "$sbom" "$sbom.1"; }
check 'the same build has the same SBOM' again
exit "$failed"
