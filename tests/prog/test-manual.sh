#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Section 3 of the manual says what is so. Its pages show each function, struct member and constant
# of the installed headers as these declare them; and each program in a page, built against what
# `make install` installs, prints what the page says. In a page stands
#
#	.\" program NAME	before a .Bd -literal block: a whole program. Its backslashes are
#				written as \e.
#	.\" prints NAME		before the block with its output
#
# prelude.sh says where everything is; functions are called by check.
# shellcheck disable=SC1091,SC2154,SC2317
set -u
. "$(dirname "$0")/prelude.sh"
pages=("$src"/man/ck_*.3)
chmod 0711 "$work" # programs run as nobody

# ---- what is said, and what is so --------------------------------------------------------------

# the headers without comments, macros and system headers, in one line
sed '/^#include/d' "$src/src/crikeep.h" "$src/src/crikeep-nri.h" | ${CC:-cc} -E -P - |
	tr '\n\t' '  ' >"$work/headers"

# type name(arguments), without any space; a struct's or enum's braces are gone
sed -e ':again' -e 's/{[^{}]*}//' -e 't again' "$work/headers" | tr ';' '\n' | grep '(' |
	tr -d ' ' | sort >"$work/declared"

# struct name: member; "a, b" are two
grep -oE 'struct ck_[a-z_]+ \{[^}]*\}' "$work/headers" | awk '{
	name = $2
	sub(/^[^{]*\{/, "")
	sub(/\}.*/, "")
	n = split($0, member, ";")
	for (i = 1; i <= n; i++) {
		if (member[i] !~ /[a-z]/)
			continue
		parts = member[i] ~ /\(/ ? 1 : split(member[i], part, ",")
		if (parts == 1)
			part[1] = member[i]
		type = part[1]
		sub(/[ *]*[a-z_0-9]+(\[.*\])?$/, "", type)
		for (j = 1; j <= parts; j++) {
			text = j == 1 ? part[j] : type part[j]
			gsub(/ /, "", text)
			print name ":" text
		}
	}
}' | sort >"$work/members"

{
	grep -oE 'enum ck_[a-z_]+ \{[^}]*\}' "$work/headers" | grep -oE '\bCK_[A-Z0-9_]+'
	sed -n 's/^#define \(CK_[A-Z0-9_]*\).*/\1/p' "$src/src/crikeep.h" "$src/src/crikeep-nri.h" |
		grep -vE '_(ENUM|CASE)$'
} | sort -u >"$work/constants"

# Of a page: "function X" for each in NAME, "declares X" for each in SYNOPSIS, "member X" below .Ss
# struct NAME
cat >"$work/page.awk" <<'END'
function words(line, at,  n) { # the arguments of a macro, without their quotes
	n = 0
	while (match(line, /^[ \t]*("[^"]*"|[^ \t"]+)/)) {
		at[++n] = substr(line, RSTART, RLENGTH)
		gsub(/^[ \t]*"?|"$/, "", at[n])
		line = substr(line, RSTART + RLENGTH)
	}
	return n
}
function tight(text) {
	gsub(/[ \t]/, "", text)
	return text
}
FNR == 1 { section = type = struct = "" }
/^\.Sh / { section = $2; struct = "" }
/^\.Ss / { struct = $2 == "struct" ? $3 : "" }
/^\.Nm / && section == "NAME" { print "function " $2 }
/^\.Ft / && section == "SYNOPSIS" {
	words(substr($0, 4), arg)
	type = substr($0, 5)
	gsub(/"/, "", type)
}
/^\.Fn / && section == "SYNOPSIS" {
	n = words(substr($0, 4), arg)
	list = ""
	for (i = 2; i <= n; i++)
		list = list (i > 2 ? "," : "") arg[i]
	print "declares " tight(type arg[1] "(" list ")")
}
/^\.It Fa / && struct != "" {
	n = words(substr($0, 7), arg)
	for (i = 1; i <= n; i++)
		if (arg[i] != ",")
			print "member " struct ":" tight(arg[i])
}
END
awk -f "$work/page.awk" "${pages[@]}" | sort >"$work/told"

same() { # same A B: the same lines
	diff -U0 "$1" "$2" |
		sed -n -e "s/^-\\([^-].*\\)/\\1: not in the manual/p" \
			-e "s/^+\\([^+].*\\)/\\1: not in the headers/p"
	[ -s "$1" ] && cmp -s "$1" "$2"
}
names_are_whole() {
	sed -n 's/^[[:space:]]*\(ck_[a-z0-9_]*\);.*/\1/p' "$src/src/libcrikeep.sym" |
		sort >"$work/exported"
	sed -n 's/^function //p' "$work/told" >"$work/named"
	same "$work/exported" "$work/named"
}
prototypes_agree() {
	sed -n 's/^declares //p' "$work/told" >"$work/shown"
	same "$work/declared" "$work/shown"
}
names_are_declared() { # in the page that has them in its NAME
	local page
	for page in "${pages[@]}"; do
		awk -f "$work/page.awk" "$page" | sed -n 's/^function //p' | while read -r name; do
			awk -f "$work/page.awk" "$page" | grep -q "^declares .*[^a-z_]\\?$name(" ||
				echo "${page##*/}: $name"
		done
	done >"$work/missing"
	cat "$work/missing"
	[ ! -s "$work/missing" ]
}
members_agree() {
	sed -n 's/^member //p' "$work/told" >"$work/shown"
	same "$work/members" "$work/shown"
}
constants_are_told() {
	local name
	sed '/^\.Dt/d' "${pages[@]}" "$src/man/libcrikeep.3" | grep -oE '\bCK_[A-Z0-9_]+' |
		sort -u >"$work/shown"
	comm -23 "$work/constants" "$work/shown" >"$work/missing"
	comm -13 "$work/constants" "$work/shown" >"$work/unknown"
	sed 's/$/: not in the manual/' "$work/missing"
	sed 's/$/: not in the headers/' "$work/unknown"
	[ "$(wc -l <"$work/constants")" -gt 60 ] && [ ! -s "$work/missing" ] &&
		[ ! -s "$work/unknown" ]
}
each_has() { # each_has SECTION...
	local page section failed=0
	for page in "${pages[@]}"; do
		for section; do
			grep -q "^\\.Sh $section\$" "$page" ||
				{ echo "${page##*/}: no $section"; failed=1; }
		done
		grep -q '^Since 0\.[0-9]*' "$page" || { echo "${page##*/}: no Since"; failed=1; }
		grep -q '^\.\\" program ' "$page" || { echo "${page##*/}: no program"; failed=1; }
	done
	[ "$failed" = 0 ]
}
check 'each exported function is in the NAME of one page' names_are_whole
check 'prototypes are those of the headers' prototypes_agree
check 'what a page names, its SYNOPSIS declares' names_are_declared
check 'members of structs are those of the headers' members_agree
check 'each constant is told of, and no other' constants_are_told
# The rule book: "K6 4" for each rule that stands in chapter 4; and for each row of the table at its
# end. HOOKS is the chapter "hooks".
awk '
	/^\.Sh / { chapter = $2 == "HOOKS" ? "hooks" : $2 + 0 }
	/^\.It [KHE][0-9]+$/ { print $2, chapter }
' "$src/man/crikeep-rules.7" | sort >"$work/rules"
sed -n 's/^\.It \([KHE][0-9]*\) Ta \([0-9a-z]*\) Ta .*/\1 \2/p' "$src/man/crikeep-rules.7" |
	sort >"$work/table"
rules_are_found() {
	[ "$(grep -c '^K' "$work/rules")" = 35 ] && diff "$work/rules" "$work/table"
}
check 'each rule has its place, and one row in the table' rules_are_found
# "KEPT COMMITTING" for each move of an entry: in the rule book, and in the source
moves_are_told() {
	sed -n 's/^\.It \([A-Z]*\) Ta \([A-Z, ]*\)$/\1 \2/p' "$src/man/crikeep-rules.7" |
		tr -d ',' | awk '{ for (i = 2; i <= NF; i++) print $1, $i }' |
		sort >"$work/moves_told"
	awk '
		/^#define CK_STATES\(/ { inside = 1 }
		inside && match($0, /X\([A-Z]+/) { from = substr($0, RSTART + 2, RLENGTH - 2) }
		inside { while (match($0, /CK_TO\([A-Z]+/)) {
			print from, substr($0, RSTART + 6, RLENGTH - 6)
			$0 = substr($0, RSTART + RLENGTH)
		} }
		inside && /^$/ { exit }
	' "$src/cache/machine/entry.h" | sort >"$work/moves"
	[ -s "$work/moves" ] && diff "$work/moves_told" "$work/moves"
}
check 'the moves of an entry are those of the source' moves_are_told
rules_are_told() { # K6 in a source, a header or a guide is a rule of crikeep-rules(7)
	local rule failed=0
	find "$src"/cache "$src"/hooks "$src"/src "$src"/contrib \
		\( -name '*.[ch]' -o -name '*.go' -o -name '*.md' \) \
		-exec grep -ohE '\b[KH][0-9]+\b' {} + | sort -u >"$work/cited"
	[ -s "$work/cited" ] || failed=1
	while read -r rule; do
		echo "$rule: not in crikeep-rules(7)" && failed=1
	done < <(cut -d ' ' -f 1 "$work/rules" | comm -13 - "$work/cited")
	return "$failed"
}
check 'each rule that is named by its number is told' rules_are_told
rules_are_tested() { # by a test that has its number in its name, or that requirements.tsv names
	local rule failed=0
	{
		sed -n 's/^static void k0*\([0-9]*\)_.*/K\1/p' "$src/tests/unit/test-rules.c" \
			"$src/tests/daemon/test-teardown.c"
		grep -oE '^H[0-9]+' "$src/tests/real/requirements.tsv"
	} | sort -u >"$work/tested"
	while read -r rule; do
		echo "$rule: has no test" && failed=1
	done < <(cut -d ' ' -f 1 "$work/rules" | grep -v '^E' | comm -23 - "$work/tested")
	return "$failed"
}
check 'each rule is tested' rules_are_tested
check 'no page lacks a section' each_has NAME LIBRARY SYNOPSIS DESCRIPTION 'RETURN VALUES' ERRORS \
	EXAMPLES 'SEE ALSO'

# ---- installed, built, run ---------------------------------------------------------------------

root=$work/root pc=
installed() {
	# Not with the flags of a make that runs this. Whatever the age of its sources (-o), nothing
	# is configured anew under the feet of other tests; a make in that make would not know of
	# -o: these are the targets that need none.
	env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make -s -C "$build" -o Makefile -o config.status \
		DESTDIR="$root" install-libLTLIBRARIES install-includeHEADERS \
		install-pkgconfigDATA install-man install-data-hook || return
	pc=$(find "$root" -name libcrikeep.pc) library=$(find "$root" -name libcrikeep.so) \
		header=$(find "$root" -name crikeep.h)
	[ -f "$pc" ] && [ -e "$library" ] && [ -f "$header" ]
}
check 'library, headers and manual install' installed
[ -n "$pc" ] || exit 1
library=$(dirname "$library") header=$(dirname "$header")

found_by_name() { # man ck_turn_wait: a page, or a line that names one
	local name man3 page
	man3=$(dirname "$(find "$root" -name libcrikeep.3)")
	while read -r name; do
		page=$(sed -n 's/^\.so man3\///p' "$man3/$name.3")
		grep -q "^\\.Nm $name\\( ,\\)\\?\$" "$man3/${page:-$name.3}" ||
			{ echo "$name.3: ${page:-no page}"; return 1; }
	done <"$work/exported"
}
check 'each function is found by its name' found_by_name
references_lead_somewhere() {
	local name man3 failed=0
	man3=$(dirname "$(find "$root" -name libcrikeep.3)")
	while read -r name; do
		[ -f "$man3/$name.3" ] || { echo "$name(3) is referred to"; failed=1; }
	done < <(sed -n 's/^\.Xr \(libcrikeep\|ck_[a-z_]*\) 3.*/\1/p' "$src"/man/*.[1-8] | sort -u)
	[ "$failed" = 0 ]
}
check 'what a page refers to is there' references_lead_somewhere

# block MARK NAME PAGE: the literal block after the mark. What roff would read otherwise than it
# stands there is an error.
block() {
	MARK=".\\\" $1 $2" awk '
	$0 == ENVIRON["MARK"] { marked = 1; next }
	marked && /^\.Bd -literal/ { inside = 1; marked = 0; next }
	marked { exit 1 }
	inside && /^\.Ed/ { found = 1; exit }
	inside {
		line = $0
		sub(/^\\&/, "", line)
		if (line == $0 && line ~ /^[.\047]/)
			exit 1
		n = split(line, part, /\\e/)
		text = part[1]
		for (i = 2; i <= n; i++)
			text = text "\\" part[i]
		if (gsub(/\\e/, "", line) + 0 >= 0 && index(line, "\\"))
			exit 1
		print text
	}
	END { exit !found }' "$3"
}
nobody=()
[ "$(id -u)" != 0 ] || nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups)
runs() { # runs NAME PAGE
	local name=$1 flags
	block program "$name" "$2" >"$work/$name.c" ||
		{ echo 'no program, or one that roff reads otherwise'; return 1; }
	block prints "$name" "$2" >"$work/$name.want" || { echo 'no output is shown'; return 1; }
	flags=$(PKG_CONFIG_PATH=$(dirname "$pc") pkg-config --define-variable=includedir="$header" \
		--define-variable=libdir="$library" --cflags --libs libcrikeep) || return
	# shellcheck disable=SC2086 # words
	${CC:-cc} -std=c11 -Wall -Wextra -Werror -pthread -o "$work/$name" "$work/$name.c" $flags ||
		return
	mkdir "$work/$name.d" && chmod 0777 "$work/$name.d" || return
	(
		cd "$work/$name.d" &&
			LD_LIBRARY_PATH=$library timeout 60 "${nobody[@]}" "../$name" </dev/null
	) >"$work/$name.out" 2>&1 ||
		{ echo "exit status $?"; cat "$work/$name.out"; return 1; }
	diff -u "$work/$name.want" "$work/$name.out"
}
for page in "${pages[@]}"; do
	while read -r name; do
		check "${page##*/}: $name" runs "$name" "$page"
	done < <(sed -n 's/^\.\\" program \([a-z-]*\)$/\1/p' "$page")
done
exit "$failed"
