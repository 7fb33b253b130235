# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154 # $build is the sourcing script's
#
# The contents of the packages, to be sourced by tests: `make install` gives the files, and `split`
# the package of each. A prefix, Debian and rpm have different directories. Here their names are the
# same: LIB for libraries, UNITS for units of systemd, ZSH for zsh's completion.

# paths: change the paths of files on stdin to such names. Documentation is left out, because its
# directories depend on the system
paths() {
	sed -E -e 's|^\.?/||; s|^usr/local/|usr/|' -e 's|^(usr/)?lib/systemd/system/|UNITS/|' \
		-e "s#^usr/(lib64|lib/[a-z0-9_]+-linux-gnu[a-z0-9]*|lib)/#LIB/#" \
		-e 's#^usr/share/zsh/(site-functions|vendor-completions)/#ZSH/#' \
		-e '/^usr\/share\/man\//s/\.gz$//' \
		-e '/^usr\/share\/(doc|licenses|lintian)\//d' -e '/^LIB\/\.build-id\//d' | sort
}

# split: change such names to "PACKAGE NAME"
split() {
	sed -E -e 's#^LIB/libcrikeep\.so\..*#library &#; t' \
		-e 's#^(usr/include|LIB|usr/share/man/man3)/.*#development &#; t' \
		-e 's#^usr/share/man/man7/crikeep-(rules|troubleshooting)\.7$#command &#; t' \
		-e 's#^UNITS/crikeep-exporter\.service$#command &#; t' \
		-e 's#^(usr/bin|ZSH|usr/share/man/man1)/.*#command &#; t' \
		-e 's#^usr/share/(crikeep|bash-completion|fish)/.*#command &#; t' \
		-e 's#^(usr/sbin|usr/libexec|UNITS|usr/share/man/man[578]|etc)/.*#daemon &#; t' \
		-e 's/^/nobody /' | sort
}

# wanted: the contents that the four packages must have. `make check-packages` has installed them
wanted() {
	{
		(cd "$build/tests/packages/installed" && find . ! -type d ! -name '*.la')
		echo etc/crikeep/crikeep.yaml
	} | paths | split
}

# sum_of TARBALL: of what is in it
sum_of() { gzip -dc "$1" | tar -xOf - | sha256sum; }

# deb_of TARBALL DIR: the Debian packages of a tarball: $deb is the directory where test-deb.sh
# builds them, or has built them; or else DIR, where they are built now
deb_of() {
	local theirs=
	deb=$build/build-deb
	deb_lock "$1" || return
	ls "$deb"/crikeep_*.changes >/dev/null 2>&1 && # written last
		theirs=$(ls "$deb"/crikeep_*.orig.tar.gz)
	deb_unlock
	[ -z "$theirs" ] || [ "$(sum_of "$theirs")" != "$(sum_of "$1")" ] || return 0
	deb=$2
	DEB_BUILD_OPTIONS=nocheck "$src/contrib/package.sh" deb "$1" "$deb"
}
# deb_lock TARBALL: while they are built there
deb_lock() { exec {deb_locked}<"$1" && flock "$deb_locked"; }
deb_unlock() { exec {deb_locked}<&-; }
