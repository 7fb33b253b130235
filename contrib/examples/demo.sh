#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A runtime that embeds libcrikeep meets the recorded requests of a real kubelet. Each creation
# takes longer than the kubelet waits, and the runtime is killed three times. Prints what happened,
# then a verdict computed from the runtime's own log of creations and the kubelet's log. Exit status
# 0: every distinct request was made exactly once, and handed back.
#
# usage: demo.sh BUILD_DIR          EXAMPLE=embed-loop for the one with a single thread; KEEP=DIR
# leaves all files there
set -eu

[ $# -eq 1 ] || { echo "usage: $0 BUILD_DIR" >&2; exit 2; }
programs=$1/contrib/examples
example=${EXAMPLE:-embed-blocking}
data=$(cd "$(dirname "$0")/../../tests/data/kubelet-retries" && pwd)
deadline_ms=400 create_ms=700

for p in "$programs/$example" "$programs/drive"; do
	[ -x "$p" ] || { echo "$0: there is no $p: build first" >&2; exit 2; }
done
if [ -n "${KEEP:-}" ]; then
	dir=$KEEP
	mkdir -p "$dir"
else
	dir=$(mktemp -d /tmp/ck-demo.XXXXXX)
	trap 'rm -rf "$dir"' EXIT
fi

seconds() { printf '%d.%d' $(($1 / 1000)) $(($1 % 1000 / 100)); }
deadline=$(seconds $deadline_ms) create=$(seconds $create_ms)
cat <<END
The kubelet waits $deadline s for each request, the runtime needs $create s for each
creation, and is killed with kill -9 three times: while results are kept, while
one is replaced by another, and in the middle of a creation.
Runtime: $example.

END

"$programs/drive" --data "$data" --dir "$dir/runtime" --log "$dir/kubelet.tsv" \
	--deadline-ms $deadline_ms \
	--kill 002-:850 --kill 019-:150 --kill 025-:300 -- \
	"$programs/$example" --create-ms $create_ms --shim 2>"$dir/runtime.log" ||
	{ cat "$dir/runtime.log" >&2; exit 1; }

# what happened: both logs by time, in plain words
LC_ALL=C sort -n -s -k 1,1 \
	<(awk -F '\t' -v OFS='\t' '{ print $1, "kubelet", $2, $3, $4, $5, $6 }' \
	"$dir/kubelet.tsv") \
	<(awk -F '\t' -v OFS='\t' '{ print $1, "runtime", $2, $3, $4 }' "$dir/runtime/creations") |
LC_ALL=C awk -F '\t' '
function line(who, what) { printf "%7.2f  %-7s  %s\n", ($1 - start) / 1000, who, what }
function answer(text) {
	text = "try " try[request()] ": " text
	line($2, sprintf("%-34s  %s", substr($3, 1, 3) " " request(), text))
}
function request() { return $4 " " $5 }
BEGIN { print "      s  who      what" }
!start { start = $1 }
$2 == "runtime" && $3 == "begin" { line($2, "makes " $4 " for request " substr($5, 1, 3)) }
$2 == "runtime" && $3 == "exists" { line($2, $4 " exists") }
$2 == "runtime" && $3 == "failed" { line($2, "making " $4 " failed") }
$2 == "runtime" && $3 == "destroyed" { line($2, $4 " destroyed: the request has changed since") }
$2 == "kubelet" && $6 == "sent" { try[request()]++ }
$2 == "kubelet" && $6 == "kill" { line("demo", "KILL -9 of the runtime; it starts again") }
$2 == "kubelet" && $6 == "deadline" { answer("deadline exceeded") }
$2 == "kubelet" && $6 == "disconnected" { answer("connection lost") }
$2 == "kubelet" && $6 == "refused" { split($7, word, " "); answer("not yet (code " word[1] ")") }
$2 == "kubelet" && $6 == "answered" {
	answer(($5, $7) in had ? $7 " again" : "handed back " $7)
	had[$5, $7]
}
'

# the verdict
echo
LC_ALL=C awk -F '\t' '
function wrong(text) { bad[++n_bad] = text }
FNR == 1 { input++ }
input == 1 && FNR > 1 { # index.tsv: which requests are the same
	key = $2 " " $3 ($4 == "-" ? "" : "/" $4)
	if ($8 != "same") {
		groups[++n] = $1
		key_of[$1] = key
		if (key in newest)
			replaced[newest[key]] = 1
		newest[key] = $1
	}
	group[$1] = newest[key]
}
input == 2 && $2 == "begin" { # the runtime: what it made
	of[$3] = group[$4]
	begun[group[$4]]++
}
input == 2 && $2 == "exists" { made[of[$3]]++; id[of[$3]] = $3; exists[$3] = 1 }
input == 2 && $2 == "destroyed" { delete exists[$3] }
input == 3 && $5 == "sent" { tries[group[$2]]++ } # the kubelet: what it was answered
input == 3 && $5 == "answered" {
	if (!(group[$2] in handed))
		took[group[$2]] = tries[group[$2]]
	handed[group[$2]] = $6
}
input == 3 && $5 == "kill" { kills++ }
input == 3 && $5 == "visible" { split($6, field, " "); visible[field[2]] = 1 }
input == 3 && $5 == "exists" { split($6, field, " "); left[field[2]] = 1 }
END {
	printf "%-35s  %5s  %6s  %s\n", "distinct request", "made", "as", "and then"
	for (i = 1; i <= n; i++) {
		g = groups[i]
		name = substr(g, 1, 3) " " key_of[g]
		then = "not handed back"
		if (g in handed)
			then = "handed back on try " took[g]
		else if (g in replaced)
			then = "replaced, and destroyed"
		printf "%-35s  %4dx  %6s  %s\n", name, begun[g], id[g], then
		if (begun[g] != 1 || made[g] != 1)
			wrong(name ": begun " begun[g] + 0 " times, made " made[g] + 0 " times")
		if (g in replaced && id[g] in exists)
			wrong(name ": was replaced, but " id[g] " still exists")
		if (!(g in replaced) && handed[g] != id[g])
			wrong(name ": was handed \"" handed[g] "\", made was \"" id[g] "\"")
		if (!(g in replaced) && !(handed[g] in visible))
			wrong(name ": " handed[g] " was handed back and is in no list")
		if (g in handed)
			good[handed[g]] = 1
	}
	for (i in left)
		if (!(i in good))
			wrong(i " exists and belongs to nobody")
	for (i in visible)
		if (!(i in good))
			wrong(i " is visible and was handed to nobody")
	if (n == 0)
		wrong("there were no requests")
	if (kills != 3)
		wrong("the runtime was killed " kills + 0 " times, not 3")
	print ""
	for (i = 1; i <= n_bad; i++)
		print "WRONG: " bad[i]
	if (!n_bad)
		print "Each of " n " distinct requests was made exactly once." \
			" Nothing is lost or left."
	exit n_bad > 0
}' "$data/index.tsv" "$dir/runtime/creations" "$dir/kubelet.tsv"
