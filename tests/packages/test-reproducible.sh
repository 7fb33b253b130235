#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The Debian packages are the same bytes from the same tarball: those of test-deb.sh, and others
# that are built in an environment that differs in all that must not matter. The clock differs too:
# the builds do not run in step.
#
# The variables are of prelude.sh; check calls functions.
# shellcheck disable=SC1091,SC2015,SC2154,SC2209,SC2317
set -u

here=$(cd "$(dirname "$0")" && pwd)
. "$here/../prog/prelude.sh"
. "$here/contents.sh"

for p in dpkg-buildpackage dh setpriv taskset; do
	command -v $p >/dev/null ||
		{ echo "skip - the same packages twice: there is no $p"; exit 0; }
done
tarball=$(ls "$build"/crikeep-*.tar.gz)
unset SOURCE_DATE_EPOCH MAKEFLAGS MFLAGS MAKELEVEL
export DEB_BUILD_OPTIONS=nocheck

other=$work/an/other/directory temporary=$work/an/other/tmp
# another user can read no more than what lies here
cp "$src/contrib/package.sh" "$tarball" "$work/" && mkdir -p "$other" "$temporary" || exit 99
chmod 755 "$work" "$work/package.sh" "$work/an" "$work/an/other"
other_user=()
if [ "$(id -u)" -eq 0 ]; then
	other_user=(setpriv --reuid=65534 --regid=65534 --clear-groups)
	chown 65534:65534 "$other" "$temporary"
fi

one() {
	deb_of "$tarball" "$work/one"
} >"$work/log" 2>&1
other() ( # one processor, so -j1
	umask 077
	HOME=/nonexistent TMPDIR=$temporary TZ=Pacific/Kiritimati LC_ALL=C LANG=de_DE.UTF-8 \
		"${other_user[@]}" taskset -c "$(first_cpu)" \
		"$work/package.sh" deb "$work/${tarball##*/}" "$other"
) >"$work/log" 2>&1
first_cpu() { taskset -cp $$ | sed 's/.*: *\([0-9]*\).*/\1/'; }
reports() { "$@" || { tail -n 20 "$work/log"; false; }; }
same() {
	local p status=0
	for p in "$deb"/*.deb; do
		cmp "$p" "$other/${p##*/}" || status=1
	done
	return "$status"
}
four() { [ "$(find "$deb" -name '*.deb' ! -name '*-dbgsym_*' | wc -l)" -eq 4 ]; }

check 'the packages are built by another user, umask, zone, language and -j1' reports other
check 'and as usual' reports one # last: by now test-deb.sh has its lock, or has built them
check 'there are four' four
check 'they have the same bytes' same
exit "$failed"
