#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# `make dist` makes the same bytes from the same commit: from two fresh clones that differ in all
# that must not matter, and once more out of the tarball itself. And the tarball's version is
# everybody's.
#
# The variables are of prelude.sh; check calls functions.
# shellcheck disable=SC1091,SC2015,SC2154,SC2317
set -u

. "$(dirname "$0")/../prog/prelude.sh"

if ! command -v git >/dev/null; then
	echo 'skip - make dist makes the same bytes: there is no git'
	exit 0
fi
# a clone of whoever's it is
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*'
version=$(sed -n 's/^AC_INIT(\[crikeep\], \[\(.*\)\])$/\1/p' "$src/configure.ac")
tarball=crikeep-$version.tar.gz
unset SOURCE_DATE_EPOCH TAR_OPTIONS MAKEFLAGS MFLAGS MAKELEVEL

# dist SOURCE BUILD COMMAND...: COMMAND makes SOURCE's configure
dist() (
	from=$1 to=$2
	shift 2
	export CONFIG_SHELL=/bin/sh # where it is dash, faster than what configure would choose
	mkdir -p "$to" && cd "$from" && "$@" && cd "$to" && "$from/configure" -q && make dist
) >"$work/log" 2>&1

# what is no clone itself becomes a repository first
origin=$src
if [ ! -e "$src/.git" ]; then
	origin=$work/origin
	mkdir "$origin" && tar -xzf "$build/$tarball" -C "$origin" --strip-components=1 &&
		cd "$origin" && git init -q &&
		git add -A && git -c user.name=test -c user.email=test@localhost commit -q -m all ||
		exit 99
	cd "$work" || exit 99
fi

# clone DIR: of the commit that is checked out; as a file URL, or the clone would share files with
# what it comes from
clone() {
	git clone -q "file://$origin" "$1" 2>"$work/log"
}

one=$work/one other=$work/an/other/directory
one() {
	clone "$one" && (umask 022 && TZ=UTC dist "$one" "$one.build" ./autogen.sh)
}
other() {
	clone "$other" &&
		find "$other" -name .git -prune -o -type f -exec touch -d 2001-02-03 {} + &&
		(umask 077 && TZ=Pacific/Kiritimati LC_ALL=C CFLAGS=-O0 \
			dist "$other" "$work/elsewhere" ./autogen.sh)
}
again() { # what the tarball holds has no .git
	mkdir "$work/from" && tar -xzf "$one.build/$tarball" -C "$work/from" &&
		dist "$work/from/${tarball%.tar.gz}" "$work/again" true
}
same() {
	cmp "$one.build/$tarball" "$1" ||
		{ diff <(tar -tvzf "$one.build/$tarball") <(tar -tvzf "$1") | head -n 20; false; }
}
reports() { "$@" || { tail -n 20 "$work/log"; false; }; }

check 'a fresh clone makes a tarball of the version' reports one
check 'another clone, umask, time zone and locale make one' reports other
check 'and it has the same bytes' same "$work/elsewhere/$tarball"
check 'what is unpacked from it makes one' reports again
check 'and it has the same bytes again' same "$work/again/$tarball"

tar -xzf "$one.build/$tarball" -C "$work"
files() { (cd "$1" && find . -type f | sort); }
tracked() { # every tracked file is in it, but for what serves the repository alone
	(cd "$one" && git ls-files | sed 's|^|./|' | grep -vE '^\./(\.gitignore|\.ci/.*)$' | sort) \
		>"$work/tracked"
	files "$work/${tarball%.tar.gz}" >"$work/held"
	! comm -23 "$work/tracked" "$work/held" | grep .
}
check 'every tracked file is in it' tracked
says() { # says FILE: of the tarball, its version
	case $1 in
	*changelog) sed -n '1s/^crikeep (\(.*\)-[0-9]*) .*/\1/p' "$1" ;;
	*.spec) sed -n 's/^Version: *//p' "$1" ;;
	esac | grep -qxF "$version"
}
check "Debian's changelog has the version" says "$work/${tarball%.tar.gz}/contrib/debian/changelog"
check 'the spec has the version' says "$work/${tarball%.tar.gz}/contrib/rpm/crikeep.spec"
to_copy() { # of `make install`
	local file doc=$build/tests/packages/installed/usr/local/share/doc/crikeep
	for file in crikeep.yaml crikeep.rules.yaml launched-plugins.conf examples/keep.c; do
		[ -s "$doc/$file" ] || { echo "$doc has no $file"; return 1; }
	done
}
check 'make install installs a configuration, alerts and examples to copy' to_copy
exit "$failed"
