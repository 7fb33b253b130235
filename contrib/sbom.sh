#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# sbom.sh SOURCE BINARY... - an SPDX 2.3 document, in JSON, of what was built: each binary with its
# digest, and the packages of the libraries that it names as needed. Where a library comes from is
# what ldd finds and dpkg says. For `make sbom`; needs Debian, readelf, ldd and jq.
set -euo pipefail

src=$1
shift
for p in readelf ldd dpkg-query sha256sum jq; do
	command -v $p >/dev/null || { echo "make sbom needs $p" >&2; exit 2; }
done
export LC_ALL=C
version=$(sed -n 's/^AC_INIT(\[crikeep\], \[\(.*\)\])$/\1/p' "$src/configure.ac")
epoch=${SOURCE_DATE_EPOCH:-$(git -C "$src" log -1 --format=%ct 2>/dev/null ||
	stat -c %Y "$src/configure.ac")}
own_library=libcrikeep.so.0

# needed BINARY - "LIBRARY PATH" of each library that it names as needed. The library of this build
# is no package
needed() {
	ldd "$1" | awk '$2 == "=>" { print $1, $3 }' >"$work/ldd"
	readelf -dW "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]$/\1/p' | grep -vxF "$own_library" |
		while read -r name; do
			awk -v name="$name" '$1 == name { print; found = 1 }
				END { exit !found }' "$work/ldd" ||
				echo "$name" "$(ldd "$1" | awk -v n="/$name" \
					'index($1, n) { print $1 }')"
		done
}
# look_up PATH - into package; with a merged /usr, dpkg may know the other name. It reads its whole
# database each time, so each library is asked for once
declare -A package_of=()
look_up() {
	local path
	package=${package_of[$1]:-}
	[ -z "$package" ] || return 0
	for path in "$1" "/usr$1" "${1#/usr}" "$(realpath "$1")"; do
		package=$(dpkg-query -S "$path" 2>/dev/null | sed -n '1s/: .*//p') || true
		[ -z "$package" ] || { package_of[$1]=$package; return 0; }
	done
	echo "no package has $1" >&2
	return 1
}
spdx_id() { printf 'SPDXRef-%s-%s' "$1" "$(printf %s "$2" | tr -c 'A-Za-z0-9.\n' -)"; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
: >"$work/files" && : >"$work/packages" && : >"$work/relations"
relation() { # relation FROM TYPE TO
	jq -n --arg a "$1" --arg t "$2" --arg b "$3" \
		'{ spdxElementId: $a, relationshipType: $t, relatedSpdxElement: $b }' \
		>>"$work/relations"
}
jq -n --arg version "$version" '{ SPDXID: "SPDXRef-Package-crikeep", name: "crikeep",
	versionInfo: $version, downloadLocation: "NOASSERTION", filesAnalyzed: false,
	licenseConcluded: "Apache-2.0", licenseDeclared: "Apache-2.0",
	copyrightText: "2026 the authors of crikeep" }' >>"$work/packages"
relation SPDXRef-DOCUMENT DESCRIBES SPDXRef-Package-crikeep

for binary; do
	file=$(spdx_id File "${binary##*/}")
	sha1=$(sha1sum "$binary") sha256=$(sha256sum "$binary")
	jq -n --arg id "$file" --arg name "./${binary##*/}" --arg sha1 "${sha1%% *}" \
		--arg sha256 "${sha256%% *}" '{ SPDXID: $id, fileName: $name, checksums:
		[ { algorithm: "SHA1", checksumValue: $sha1 },
		  { algorithm: "SHA256", checksumValue: $sha256 } ],
		fileTypes: [ "BINARY" ], licenseConcluded: "Apache-2.0",
		licenseInfoInFiles: [ "Apache-2.0" ],
		copyrightText: "2026 the authors of crikeep" }' >>"$work/files"
	relation SPDXRef-Package-crikeep CONTAINS "$file"
	needed "$binary" >"$work/needed"
	while read -r name path; do
		look_up "$path"
		echo "$package" >>"$work/names"
		relation "$file" DYNAMIC_LINK "$(spdx_id Package "${package%%:*}")"
	done <"$work/needed"
done

# What dpkg says, and the licences that the package's own copyright file names are left to whoever
# reads it: few of Debian's have SPDX's names.
sort -u "$work/names" | while read -r package; do
	jq -n --arg id "$(spdx_id Package "${package%%:*}")" --arg name "${package%%:*}" \
		--arg version "$(dpkg-query -W -f '${Version}' "$package")" \
		--arg source "$(dpkg-query -W -f '${source:Package}' "$package")" \
		--arg arch "$(dpkg-query -W -f '${Architecture}' "$package")" \
		'{ SPDXID: $id, name: $name, versionInfo: $version,
		downloadLocation: "NOASSERTION", filesAnalyzed: false,
		sourceInfo: ("Debian source package " + $source),
		licenseConcluded: "NOASSERTION", licenseDeclared: "NOASSERTION",
		licenseComments: ("see /usr/share/doc/" + $name + "/copyright"),
		copyrightText: "NOASSERTION", externalRefs: [ {
		referenceCategory: "PACKAGE-MANAGER", referenceType: "purl", referenceLocator:
		("pkg:deb/debian/" + $name + "@" + ($version | @uri) + "?arch=" + $arch) } ] }' \
		>>"$work/packages"
done

digest=$(sha256sum "$@" | sed 's/ .*//' | sha256sum)
jq -n --arg version "$version" --arg created "$(date -u -d "@$epoch" +%Y-%m-%dT%H:%M:%SZ)" \
	--arg digest "${digest%% *}" --slurpfile packages "$work/packages" \
	--slurpfile files "$work/files" --slurpfile relations "$work/relations" \
	'{ spdxVersion: "SPDX-2.3", dataLicense: "CC0-1.0", SPDXID: "SPDXRef-DOCUMENT",
	name: ("crikeep-" + $version),
	documentNamespace: ("https://crikeep.example/spdx/" + $version + "/" + $digest),
	creationInfo: { created: $created, creators: [ "Tool: crikeep-contrib-sbom.sh" ] },
	packages: $packages, files: $files, relationships: ($relations | unique) }'
