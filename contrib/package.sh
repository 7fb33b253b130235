#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# package.sh deb|rpm TARBALL DIR - builds the packages of a tarball of `make dist` in DIR and lists
# them. DIR must be new or empty. What builds them is in the tarball too: contrib/debian and
# contrib/rpm. DEB_BUILD_OPTIONS=nocheck leaves the tests out of deb, WITHOUT_CHECK=1 out of rpm.
#
# package.sh deb|rpm --tools - only looks for the tools that this needs
set -euo pipefail

usage() { echo "usage: $0 deb|rpm TARBALL DIR" >&2; exit 2; }

# need PROGRAM:PACKAGE...
need() {
	local pair missing=()
	for pair; do
		command -v "${pair%%:*}" >/dev/null || missing+=("${pair%%:*} (Debian: ${pair#*:})")
	done
	[ ${#missing[@]} -eq 0 ] || {
		printf 'The %s packages need %s.\n' "$kind" "${missing[0]}" >&2
		[ ${#missing[@]} -eq 1 ] || printf '    and %s\n' "${missing[@]:1}" >&2
		exit 2
	}
}

deb() {
	cp "$tarball" "$dir/crikeep_$version.orig.tar.gz"
	tar -xzf "$tarball" -C "$dir"
	cp -R "$dir/$name/contrib/debian" "$dir/$name/debian"
	(cd "$dir/$name" && dpkg-buildpackage -us -uc -j"$(nproc)")
	ls "$dir"/*.dsc "$dir"/*.deb
}

rpm() {
	local without=()
	mkdir "$dir/SOURCES"
	cp "$tarball" "$dir/SOURCES/"
	tar -xzf "$tarball" -C "$dir" --strip-components=3 "$name/contrib/rpm/crikeep.spec"
	[ -z "${WITHOUT_CHECK:-}" ] || without+=(--without check)
	# rpm's own database knows nothing of a Debian machine's packages
	[ ! -e /etc/debian_version ] || without+=(--nodeps)
	rpmbuild -ba "${without[@]}" --define "_topdir $dir" --define "_smp_mflags -j$(nproc)" \
		"$dir/crikeep.spec"
	find "$dir" -name '*.rpm' | sort
}

kind=${1:-}
case $kind in
deb) need dpkg-buildpackage:dpkg-dev dh:debhelper ;;
rpm) need rpmbuild:rpm ;;
*) usage ;;
esac
[ "$*" != "$kind --tools" ] || exit 0
if [ $# -ne 3 ] || [ ! -f "$2" ]; then usage; fi
tarball=$(realpath "$2")
mkdir -p "$3" && dir=$(cd "$3" && pwd)
[ -z "$(ls -A "$dir")" ] || { echo "$0: $dir is not empty" >&2; exit 2; }
name=$(basename "$tarball" .tar.gz)
version=${name#crikeep-}
# of the make that calls this: packages are built by one of their own
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES GNUMAKEFLAGS DESTDIR TAR_OPTIONS
# for configure, make and libtool: where it is dash, they take half the time that bash takes
export CONFIG_SHELL=/bin/sh
"$kind"
