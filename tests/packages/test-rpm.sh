#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The rpms of contrib/rpm, as they come out of the tarball that `make dist` left in the build
# directory.
#
# The variables are of prelude.sh; check calls functions.
# shellcheck disable=SC1091,SC2015,SC2154,SC2209,SC2317
set -u

here=$(cd "$(dirname "$0")" && pwd)
. "$here/../prog/prelude.sh"
. "$here/contents.sh"

for p in rpmbuild rpm rpm2cpio cpio; do
	command -v $p >/dev/null || { echo "skip - the rpms: there is no $p"; exit 0; }
done
tarball=$(ls "$build"/crikeep-*.tar.gz)
version=${tarball##*/crikeep-} version=${version%.tar.gz}
dir=$build/build-rpm
rm -rf "$dir"
# what is looked at here does not depend on the optimizer
echo "optflags: $(uname -m) -O0 -g" >"$work/.rpmrc"
HOME=$work WITHOUT_CHECK=1 "$src/contrib/package.sh" rpm "$tarball" "$dir" >"$work/log" 2>&1
built=$?
result 'they are built' $built
[ $built -eq 0 ] || { tail -n 40 "$work/log"; exit 1; }

files() { # "PACKAGE MODE FILE" of all
	for p in "$dir"/RPMS/*/*.rpm; do
		rpm -qp --qf '[%{=NAME} %{FILEMODES:perms} %{FILENAMES}\n]' "$p" || return
	done
}
as_wanted() {
	wanted >"$work/wanted"
	files | awk '$2 !~ /^d/ { print $3 }' | paths | split >"$work/have" &&
		diff "$work/wanted" "$work/have"
}
named() { # a file is in the package whose name says so
	files | sed -nE 's/^([^ ]+) [^d][^ ]* (.*)/\1 \2/p' | while read -r package file; do
		case $package in
		libcrikeep) role=library ;;
		libcrikeep-devel) role=development ;;
		crikeep) role=command ;;
		crikeepd) role=daemon ;;
		*) role=none ;;
		esac
		paths <<<"$file" | split | sed "/^$role /d; s/^/$package: /"
	done >"$work/misplaced"
	[ ! -s "$work/misplaced" ] || { cat "$work/misplaced"; false; }
}
one() { echo "$dir"/RPMS/*/"$1-$version"-*.rpm; }
has() { # has PACKAGE QUERY LINE
	rpm -qp "$2" "$(one "$1")" >"$work/query" && grep -qE -- "$3" "$work/query" ||
		{ cat "$work/query"; false; }
}
runs() {
	mkdir -p "$work/root" && cd "$work/root" || return
	for p in "$(one crikeep)" "$(one crikeepd)"; do
		rpm2cpio "$p" | cpio -idm --quiet || return
	done
	usr/bin/crikeep --version | grep -F "$version" &&
		usr/sbin/crikeepd --version | grep -F "$version"
}

check 'they hold what make install installs' as_wanted
check 'each file is in the package of its name' named
check 'the library provides its versioned symbols' has libcrikeep \
	--provides '^libcrikeep\.so\.0\(CRIKEEP_0\.1\)'
check 'libcrikeep-devel requires the library' has libcrikeep-devel \
	--requires "^libcrikeep\\(.*\\) = $version-"
check 'the configuration is kept when it was changed' has crikeepd \
	--configfiles '^/etc/crikeep/crikeep.yaml$'
check 'the programs in them run' runs
exit "$failed"
