# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154 # $build is the sourcing script's
#
# What lies in which package, for tests to source: `make install` says what there is, `split` where it belongs. The names of
# directories differ between a prefix, Debian and rpm, and are made the same: LIB for libraries, UNITS for systemd's.

# paths: files on stdin, from the root, to names without a leading /; documentation apart, whose place is each system's own
paths() {
	sed -E -e 's|^\.?/||; s|^usr/local/|usr/|' -e 's|^(usr/)?lib/systemd/system/|UNITS/|' \
		-e "s#^usr/(lib64|lib/[a-z0-9_]+-linux-gnu[a-z0-9]*|lib)/#LIB/#" -e '/^usr\/share\/man\//s/\.gz$//' \
		-e '/^usr\/share\/(doc|licenses)\//d' -e '/^LIB\/\.build-id\//d' | sort
}

# split: of such names, "PACKAGE NAME"
split() {
	sed -E -e 's#^LIB/libcrikeep\.so\..*#library &#; t' -e 's#^(usr/include|LIB|usr/share/man/man3)/.*#development &#; t' \
		-e 's#^usr/share/man/man7/crikeep-rules\.7$#development &#; t' \
		-e 's#^(usr/bin|usr/share/man/man1|usr/share/bash-completion)/.*#command &#; t' \
		-e 's#^(usr/sbin|usr/libexec|UNITS|usr/share/man/man[578]|etc)/.*#daemon &#; t' -e 's/^/nobody /' | sort
}

# wanted: what the four packages must hold; `make check-packages` has filled the directory
wanted() {
	{
		(cd "$build/tests/packages/installed" && find . ! -type d ! -name '*.la')
		echo etc/crikeep/crikeep.yaml
	} | paths | split
}
