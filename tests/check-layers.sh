#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Includes point down, as the table in CONTRIBUTING.md, "Where things are", says: a file includes
# from its own folder, from the folders its row names, and the public headers. A row names only
# rows above it. Besides: no folder has more than 30 files, no two files differ by folder alone, and
# ThreadSanitizer's run has each test that begins a thread.
set -u
cd "${CK_TEST_SRCDIR:-.}" || exit 1

result=$(find src cache hooks -type f \( -name '*.[ch]' -o -name '*.proto' \) ! -name '*.pb-c.*' |
		sort |
awk '
# folder - the row a file belongs to
function folder(path) {
	if (path ~ /^src\/crikeep(-nri)?\.h$/) return "public"
	sub(/\/[^\/]*$/, "", path)
	return (path in includes) ? path : "?"
}
function report(ok, name) {
	print (ok ? "ok - " : "not ok - ") name
	failed += !ok
}
FILENAME == "CONTRIBUTING.md" {
	if (split($0, cell, "|") < 4 || cell[2] !~ /^ `[a-z\/]+` $/) next
	gsub(/[ `]/, "", cell[2])
	gsub(/`/, "", cell[3])
	n = split(cell[3], named, " ")
	for (i = 1; i <= n; i++)
		if (!(named[i] in includes)) {
			print "CONTRIBUTING.md: " cell[2] " includes from " named[i] \
				", which is no row above it"
			upward++
		}
	includes[cell[2]] = " " cell[3] " "
	next
}
{
	from = folder($0)
	count[from]++
	base = $0
	sub(/.*\//, "", base)
	if (base != "main.c" && base in first) {
		print $0 ": " first[base] " has the same name"
		twins++
	}
	first[base] = $0
	path = $0
	while ((getline line < path) > 0) {
		if (line !~ /^[ \t]*#[ \t]*include[ \t]*"/) continue
		split(line, quoted, "\"")
		to = quoted[2] == "crikeep.h" ? "public" : folder(quoted[2]) # as it is installed
		if (to == from || to == "public" || index(includes[from], " " to " ")) continue
		print path ": \"" quoted[2] "\": " \
			(to == "?" ? "not a file of the tree" : from " must not include from " to)
		bad[from]++
	}
	close(path)
}
END {
	for (f in count) {
		if (f == "public") continue
		report(!(f in bad) && f != "?", "includes of " f)
		report(count[f] <= 30, f " has at most 30 files (" count[f] ")")
	}
	for (f in includes)
		if (!count[f]) report(0, f " has no file")
	report(!upward, "the table points down")
	report(!twins, "no two files differ by folder alone")
	exit failed > 0
}' CONTRIBUTING.md -)
status=$?
echo "$result"

missing=$(grep -l pthread_create tests/*/test-*.c | sed 's/\.c$//' | while read -r test; do
	grep -q "[[:space:]]$test\( \|\$\)" tests/local.mk || echo "$test begins a thread"
done)
if [ -z "$missing" ]; then
	echo 'ok - threaded_tests in tests/local.mk has each test that begins a thread'
else
	echo "$missing"
	echo 'not ok - threaded_tests in tests/local.mk has each test that begins a thread'
	status=1
fi
exit $status
