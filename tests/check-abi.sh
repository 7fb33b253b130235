#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# libcrikeep.so keeps what contrib/abi recorded at the last release: functions, their types and
# versions, structs, values. What grew since is told; whatever moved, changed or went is red. Before
# that this script shows that it sees such changes.
#
#	check-abi.sh --record    write the baseline anew, for a release (`make abi-baseline`)
#
# A struct may grow at its end if it begins with its size. abidiff knows nothing of that (its
# suppressions for it, in 2.2, also hide a member that has become another type), so the new struct
# is cut to the old one's length before the two are compared.
set -u
src=${CK_TEST_SRCDIR:-.} build=${CK_TEST_BUILDDIR:-.}
baseline=$src/contrib/abi/libcrikeep
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
read -ra cc <<<"${CC:-cc}"
status=0

# dump DIRECTORY LIBRARY: DIRECTORY/abi.xml, what the headers in DIRECTORY show of it; no line
# numbers, no paths
dump() {
	abidw --exported-interfaces-only --headers-dir "$1" --drop-private-types \
		--drop-undefined-syms --no-show-locs \
		--no-corpus-path --no-comp-dir-path --no-elf-needed --type-id-style hash "$2" |
		sed "s/^\\( *<abi-instr.*\\) path='[^']*'/\\1 path='libcrikeep'/" >"$1/abi.xml"
}

# values DIRECTORY: DIRECTORY/values, the headers' constants: also those that no function's type
# names, as error codes
values() {
	sed '/^#include/d' "$1/crikeep.h" "$1/crikeep-nri.h" | "${cc[@]}" -E -P -x c - |
		tr '\n' ' ' |
		grep -o 'enum [a-z_]* {[^}]*}' | sed 's/^[^{]*{//; s/}//; s/=[^,]*//g' |
		tr ', ' '\n' | grep '^CK_' >"$1/names"
	sed -n 's/^#define \(CK_[A-Z_]*\) [0-9].*/\1/p' "$1/crikeep.h" "$1/crikeep-nri.h" \
		>>"$1/names"
	{
		printf '#include <stdio.h>\n#include "crikeep-nri.h"\nint main(void)\n{\n'
		sed 's/.*/printf("& %lld\\n", (long long)&);/' "$1/names"
		printf 'return 0;\n}\n'
	} >"$1/values.c"
	"${cc[@]}" -w -I"$1" -o "$1/print-values" "$1/values.c" &&
		"$1/print-values" | LC_ALL=C sort >"$1/values"
}

# members XML: "struct member offset in bits", and "struct size"; of those that begin with their
# size "sized struct"
members() {
	awk -F "'" '
		/<class-decl name=/ {
			struct = /is-declaration-only/ ? "" : $2
			n = 0
			if (struct)
				print struct, $4
		}
		/<\/class-decl>/ { struct = "" }
		struct && /<data-member/ {
			for (i = 1; i < NF; i++)
				if ($i ~ /layout-offset-in-bits=$/)
					offset = $(i + 1)
		}
		struct && /<var-decl name=/ {
			print struct "." $2, offset
			if (n++ == 0 && $2 == "size" && offset == 0)
				print "sized", struct
		}' "$1" | LC_ALL=C sort -u
}

# cut_to OLD NEW: NEW, where each struct of OLD that begins with its size has no more members than
# there
cut_to() {
	awk -F "'" '
		/<class-decl name=/ { struct = /is-declaration-only/ ? "" : $2 }
		NR == FNR && struct && /<class-decl name=/ { size[struct] = $4 }
		NR == FNR && struct && /<var-decl name=/ && n[struct]++ == 0 {
			sized[struct] = $2 == "size"
		}
		NR == FNR { next }
		struct && sized[struct] && /<class-decl name=/ {
			sub(/size-in-bits=.[0-9]*./, "size-in-bits=\047" size[struct] "\047")
		}
		/<class-decl name=/ { seen = 0 }
		struct && sized[struct] && /<data-member/ { drop = ++seen > n[struct] }
		!drop { print }
		/<\/data-member>/ { drop = 0 }' "$1" "$2"
}

# compare OLD NEW: directories, or prefixes, of abi.xml and values. 0: nothing of OLD is different
# in NEW; what is more is told
compare() {
	local old=$1 new=$2 r=0 grown
	members "$old.xml" >"$tmp/old-members"
	members "$new/abi.xml" >"$tmp/new-members"
	# the size of a struct that may grow may differ, if it is not less
	awk 'NR == FNR { if (NF == 2 && $1 != "sized") size[$1] = $2; next }
		$1 == "sized" { sized[$2] = 1 }
		{ line[FNR] = $0 }
		END {
			for (i in line) {
				split(line[i], part, " ")
				if (part[1] == "sized" || size[part[1]] == part[2] ||
					(sized[part[1]] && part[1] !~ /\./ &&
					size[part[1]] + 0 > part[2] + 0))
					continue
				print "was:", line[i] ", is:", size[part[1]]
			}
		}' "$tmp/new-members" "$tmp/old-members" >"$tmp/moved"
	LC_ALL=C comm -23 "$old.values" "$new/values" | sed 's/^/was: /' >>"$tmp/moved"
	if [ -s "$tmp/moved" ]; then
		cat "$tmp/moved"
		r=1
	fi
	cut_to "$old.xml" "$new/abi.xml" >"$tmp/cut.xml"
	abidiff --no-added-syms "$old.xml" "$tmp/cut.xml" || r=1
	grown=$({
		LC_ALL=C comm -13 "$tmp/old-members" "$tmp/new-members" | grep '\.'
		LC_ALL=C comm -13 "$old.values" "$new/values"
		abidiff "$old.xml" "$tmp/cut.xml" | sed -n 's/^ *\[A\] //p'
	} | sed 's/^/added: /')
	[ -z "$grown" ] || printf '%s\n' "$grown"
	return $r
}

# headers DIRECTORY
headers() {
	mkdir -p "$1" && cp "$src/src/crikeep.h" "$src/src/crikeep-nri.h" "$1" && chmod u+w "$1"/*
}

# ---- what it sees: libraries without a body, of headers that were edited -----------------------

stub() { # stub DIRECTORY
	{
		echo '#include "crikeep-nri.h"'
		sed '/^#include/d' "$1/crikeep.h" "$1/crikeep-nri.h" | "${cc[@]}" -E -P -x c - |
			tr '\n' ' ' |
			sed -e ':a' -e 's/{[^{}]*}//' -e 'ta' | tr ';' '\n' |
			sed -n '/typedef/d; s/^ *\(.*[ *]ck_[a-z0-9_]* *(.*)\) *$/\1/p' |
			sed 's/$/ { __builtin_trap(); }/'
	} >"$1/stub.c"
	"${cc[@]}" -g -O0 -fPIC -shared -w -Wl,-soname,libcrikeep.so.0 -o "$1/stub.so" \
		"$1/stub.c" &&
		dump "$1" "$1/stub.so" && values "$1"
}

# edited EXPECTED NAME FILE SED - is the header, changed so, red (1), or green (0) and told?
edited() {
	local expected=$1 name=$2 dir=$tmp/edited r=0
	rm -rf "$dir"
	headers "$dir"
	sed -i "$4" "$dir/$3"
	if cmp -s "$dir/$3" "$tmp/as-is/$3"; then
		echo "not ok - $name: the header was not changed by the test"
	elif ! stub "$dir"; then
		echo "not ok - $name: it is not compiled"
	elif compare "$tmp/stub" "$dir" >"$tmp/out" 2>&1 || r=1; [ $r -ne "$expected" ]; then
		cat "$tmp/out"
		echo "not ok - $name"
	elif [ "$expected" -eq 0 ] && ! grep -q '^added: ' "$tmp/out"; then
		echo "not ok - $name: nobody is told"
	else
		echo "ok - $name"
		return
	fi
	status=1
}

see() {
	local end='s/^	void \*clock_userdata;/&\n	int more;/' \
		narrow='s/	uint64_t ttl;/	uint32_t ttl;/'
	headers "$tmp/as-is"
	stub "$tmp/as-is" || { echo 'not ok - a library without a body is compiled'; exit 1; }
	cp "$tmp/as-is/abi.xml" "$tmp/stub.xml"
	cp "$tmp/as-is/values" "$tmp/stub.values"
	edited 1 'a function that is gone is seen' crikeep.h '/^int ck_reconciled/d'
	edited 1 "an argument's other type is seen" crikeep.h \
		's/\(int ck_turn_stage(struct ck_turn \*turn\), const char \*stage)/\1, int stage)/'
	edited 1 "a callback's other argument is seen" crikeep.h \
		's/\(void (\*destroy)(struct ck_job \*job\), enum ck_kind kind/\1/'
	edited 1 "a member's other type is seen" crikeep.h "$narrow"
	edited 1 'also where the struct has grown' crikeep.h "$end; $narrow"
	edited 1 'a member in the middle is seen' crikeep.h \
		's/^	uint64_t ttl;/	uint64_t odd;\n&/'
	edited 1 'a member of another name is seen' crikeep.h \
		's/	uint64_t ttl;/	uint64_t tttl;/'
	edited 1 'a member that is gone is seen' crikeep.h 's/^	void \*clock_userdata;//'
	edited 1 'a struct that grows and has no size is seen' crikeep.h \
		's/^	char text\[CK_ERROR_TEXT\];/&\n	int more;/'
	edited 1 "an enumerator's other value is seen" crikeep.h \
		's/CK_CONDITION_DEAD = 3/CK_CONDITION_DEAD = 5/'
	edited 1 "an error code's other value is seen" crikeep.h 's/CK_EFULL = 6,/CK_EFULL = 66,/'
	edited 0 'a struct may grow at its end' crikeep.h "$end"
	edited 0 'a function may come' crikeep.h 's/^int ck_reconciled/int ck_more(void);\n&/'
	edited 0 'an error code may come' crikeep.h 's/^\tCK_EFULL = 6,/&\n\tCK_EMORE = 99,/'
}

# ---- the library -------------------------------------------------------------------------------

last='the ABI is that of the last release'
if ! command -v abidw >/dev/null || ! command -v abidiff >/dev/null; then
	echo "skip - $last: no abidw and abidiff (Debian: abigail-tools)"
	exit 0
fi
headers "$tmp/now"
if ! dump "$tmp/now" "$build/.libs/libcrikeep.so" || ! values "$tmp/now"; then
	echo 'not ok - the ABI can be read'
	exit 1
fi
if ! grep -q "<class-decl name='ck_options' size-in-bits" "$tmp/now/abi.xml"; then
	echo "skip - $last: the library was built without debug information"
	exit 0
fi
if [ "${1:-}" = --record ]; then
	mkdir -p "${baseline%/*}" && cp "$tmp/now/abi.xml" "$baseline.xml" &&
		cp "$tmp/now/values" "$baseline.values"
	exit
fi
see
architecture() {
	sed -n "s/.*<abi-corpus.* architecture='\\([^']*\\)'.*/\\1/p" "$1"
}
if [ "$(architecture "$baseline.xml")" != "$(architecture "$tmp/now/abi.xml")" ]; then
	echo "skip - $last: the baseline is of $(architecture "$baseline.xml")"
elif compare "$baseline" "$tmp/now"; then
	echo "ok - $last"
else
	echo "not ok - $last"
	status=1
fi
exit $status
