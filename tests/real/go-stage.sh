# SPDX-License-Identifier: Apache-2.0
# A && B || C is meant; shares variables with those who source it.
# shellcheck shell=bash disable=SC1091,SC2015,SC2034,SC2154
#
# For tests to source: what a program in Go sees of us, as a vendor would. The library is installed
# (`make install`) into $stage inside the build directory, pkg-config finds it there, and what is
# linked finds it again.
#
# go_stage [NEEDED_VERSION]: status 3, and the reason in $go_why, where it cannot be done.
#
# Before: $src, $build.

. "$src/tests/real/go.sh"
stage=$build/tests/real/stage

go_stage() {
	local needs=${1:-1.21} cc=${CC:-cc} header
	cc=${cc#ccache } # Go asks the first word what it can link
	command -v go >/dev/null || { go_why='there is no Go'; return 3; }
	command -v "${cc%% *}" >/dev/null && command -v pkg-config >/dev/null ||
		{ go_why='there is no C compiler, or no pkg-config'; return 3; }
	if ! go_is "$needs"; then
		go_why="this needs Go $needs, and there is $(go env GOVERSION)"
		return 3
	fi
	mkdir -p "$stage" && go_install || { go_why='the library cannot be installed'; return 1; }
	export GOFLAGS="$go_flags -mod=readonly"
	export PKG_CONFIG_PATH=$stage/pkgconfig CGO_LDFLAGS="-Wl,-rpath,$stage/lib" CC=$cc
	# Go takes no notice of a header that is another one, but of flags
	header=$(pkg-config --variable=includedir libcrikeep)/crikeep.h
	CGO_CFLAGS="-O2 -g -DCRIKEEP_STAGED=$(cksum <"$header" | cut -d ' ' -f 1)"
	export CGO_CFLAGS
}

# One at a time, and once for each build of the library: others run what is linked with it.
# configure's prefix is that of the real installation, so the .pc file is told where this one is.
go_install() (
	exec 9>"$stage/lock" && flock 9 || exit
	[ ! -f "$stage/pkgconfig/libcrikeep.pc" ] ||
		[ "$build/libcrikeep.la" -nt "$stage/pkgconfig/libcrikeep.pc" ] ||
		[ "$src/src/crikeep.h" -nt "$stage/pkgconfig/libcrikeep.pc" ] || exit 0
	rm -rf "$stage/root"
	env -u MAKEFLAGS -u MAKELEVEL make -s -C "$build" \
		DESTDIR="$stage/root" install-libLTLIBRARIES install-includeHEADERS \
		install-pkgconfigDATA >"$stage/log" 2>&1 9>&- || { cat "$stage/log"; exit 1; }
	lib=$(dirname "$(find "$stage/root" -name libcrikeep.so)")
	include=$(dirname "$(find "$stage/root" -name crikeep.h)")
	ln -sfn "$lib" "$stage/lib"
	mkdir -p "$stage/pkgconfig" &&
		sed "s|^libdir=.*|libdir=$stage/lib|; s|^includedir=.*|includedir=$include|" \
		"$lib/pkgconfig/libcrikeep.pc" >"$stage/pkgconfig/libcrikeep.pc"
)
