#!/bin/bash -eu
# SPDX-License-Identifier: Apache-2.0
#
# Builds the fuzz targets as OSS-Fuzz asks for it: with $CC, $CFLAGS and $LIB_FUZZING_ENGINE, from
# $SRC/crikeep, into $OUT: each target, its seeds as a .zip, and the libraries that it is linked
# with. By hand, with clang and libFuzzer (and zip), in a clone of crikeep:
#
#	SRC=.. CRIKEEP=$PWD OUT=/tmp/out WORK=/tmp/work CC=clang \
#	CFLAGS='-O1 -g -fsanitize=fuzzer-no-link,address' LIB_FUZZING_ENGINE=-fsanitize=fuzzer \
#	contrib/oss-fuzz/build.sh

source=${CRIKEEP:-$SRC/crikeep}
mkdir -p "$OUT/lib" "$WORK/crikeep"
[ -x "$source/configure" ] || (cd "$source" && ./autogen.sh)
cd "$WORK/crikeep"
# what a sanitizer replaces must not be fortified; the $ is for the linker
# shellcheck disable=SC2016
"$source/configure" -q --enable-checks --enable-fuzzing CC="$CC" CFLAGS="$CFLAGS" \
	CPPFLAGS='-U_FORTIFY_SOURCE -DCK_SANITIZERS' LDFLAGS='-Wl,-rpath,\$$ORIGIN/lib'
make -s -j"$(nproc)" fuzz-programs CK_FUZZ_LIBS="$LIB_FUZZING_ENGINE"

for program in tests/fuzz/fuzz-*; do
	if [ ! -f "$program" ] || [ ! -x "$program" ]; then continue; fi
	name=${program##*/fuzz-}
	cp "$program" "$OUT/"
	ldd "$program" |
		awk '$2 == "=>" && $3 !~ /\/lib(c|m|dl|rt|pthread|gcc_s)\.so/ { print $3 }' |
		xargs -r cp -L -t "$OUT/lib"
	corpus=$source/tests/fuzz/corpus
	dirs=()
	[ ! -d "$corpus/$name" ] || dirs+=("$corpus/$name")
	while read -r dir; do
		dirs+=("$source/$dir")
	done < <(cat "$corpus/$name.dirs" 2>/dev/null || :)
	# seeds of several directories may have one name; a checksum is a name of its own
	seeds=$WORK/seeds/$name
	rm -rf "$seeds" && mkdir -p "$seeds"
	find "${dirs[@]}" -maxdepth 1 -type f ! -name '.*' -exec sha1sum {} + |
		while read -r sum seed; do cp "$seed" "$seeds/$sum"; done
	rm -f "$OUT/fuzz-${name}_seed_corpus.zip"
	zip -q -j -r "$OUT/fuzz-${name}_seed_corpus.zip" "$seeds"
done
