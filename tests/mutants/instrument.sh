#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Copies sources with every edit of a table of mutants in them, behind a switch. README.md has the
# format of a table.
#
# usage: instrument.sh TABLE TOP TO SOURCE...
#
# TOP/SOURCE is read, TO/SOURCE is written, and TO/list.c names the mutants. A SOURCE without an
# edit is an error. So are an edit of another file, an edit whose old text does not occur exactly
# once, and two edits that overlap by halves.
set -eu
export LC_ALL=C

table=$1 top=$2 to=$3
shift 3
for source; do mkdir -p "$to/${source%/*}"; done
awk -F '\t' -v table="$table" -v top="$top" -v to="$to" -v sources="$*" '
function fail(row, why) {
	if (row)
		why = why "\n    " name[row] " in " file[row] ": " old[row]
	print table ": " why | "cat >&2"
	exit failed = 1
}
function quoted(s) {
	gsub(/[\\"]/, "\\\\&", s)
	return "\"" s "\""
}
# without blanks, line ends and comments; place[i]: where its i-th character stood
function dense(s, place,    i, n, c, result) {
	n = length(s)
	for (i = 1; i <= n; i++) {
		c = substr(s, i, 1)
		if (substr(s, i, 2) == "/*") {
			i += 3
			while (i < n && substr(s, i - 1, 2) != "*/")
				i++
		} else if (c !~ /[ \t\n]/) {
			result = result c
			place[length(result)] = i
		}
	}
	return result
}
function locate(row, text, place,    sought, ignored, at) {
	sought = dense(old[row], ignored)
	at = sought == "" ? 0 : index(text, sought)
	if (!at)
		fail(row, "the old text is not there")
	if (index(substr(text, at + 1), sought))
		fail(row, "the old text occurs more than once")
	first[row] = place[at]
	last[row] = place[at + length(sought) - 1]
}
function halves(a, b) {
	return first[a] <= last[b] && last[a] >= first[b] && \
		(first[a] < first[b] || last[a] > last[b])
}
function wrap(row, before, after, start, then, otherwise, end) {
	start = start "ck_mutant_on == " number[name[row]] then new[row] otherwise
	before[first[row]] = before[first[row]] start
	after[last[row]] = end after[last[row]]
}
function instrument(source,
	line, s, text, place, row, rows, order, size, i, k, before, after, out) {
	while ((getline line < (top "/" source)) > 0)
		s = s line "\n"
	text = dense(s, place)
	for (row = 1; row <= edits; row++) {
		if (file[row] != source)
			continue
		locate(row, text, place)
		# the longer first, which stands outside of what it holds
		size[row] = last[row] - first[row]
		for (i = ++rows; i > 1 && size[order[i - 1]] < size[row]; i--)
			order[i] = order[i - 1]
		order[i] = row
	}
	if (!rows)
		fail(0, "no edit of " source)
	for (i = 1; i <= rows; i++) {
		row = order[i]
		for (k = 1; k < i; k++)
			if (halves(row, order[k]))
				fail(row, "overlaps with an edit of " name[order[k]])
		if (substr(s, last[row], 1) ~ /[;}]/)
			wrap(row, before, after, "{ if (", ") { ", " } else { ", " } }")
		else
			wrap(row, before, after, "(", " ? (", ") : (", "))")
	}
	out = to "/" source
	printf "#include \"tests/mutants/mutants.h\"\n#line 1 \"%s\"\n", source >out
	for (i = 1; i <= length(s); i++)
		printf "%s", before[i] substr(s, i, 1) after[i] >out
	close(out)
}
/^#/ || !NF { next }
NF < 4 || NF > 5 { fail(0, "line " FNR ": not name, rule, file, old text, new text") }
{
	name[++edits] = $1; file[edits] = $3; old[edits] = $4; new[edits] = $5
	if (index(" " sources " ", " " $3 " ") == 0)
		fail(edits, "this source is not instrumented: name it in tests/mutants/local.mk")
	if (!($1 in number)) {
		number[$1] = ++mutants
		list = list sprintf("\t{ %s, %s },\n", quoted($1), quoted($2))
	}
}
END {
	if (failed)
		exit 1
	n = split(sources, each, " ")
	for (j = 1; j <= n; j++)
		instrument(each[j])
	printf "#include \"tests/mutants/mutants.h\"\n\nconst struct ck_mutant ck_mutants[] = {\n" \
		"\t{ NULL, NULL },\n%s\t{ NULL, NULL },\n};\n", list >(to "/list.c")
}' "$table"
