#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# crikeep simulate: what its three policies are known to do on a slow node, as measured with
# containerd, CRI-O and a kubelet, and the forms of its output.
#
# Options are split on purpose; functions are called by check.
# shellcheck disable=SC1091,SC2086,SC2154,SC2317
set -u

. "$(dirname "$0")/prelude.sh"
crikeep=("$crikeep")
! setarch -R true 2>/dev/null || crikeep=(setarch -R "${crikeep[@]}") # for a sanitizer
mkdir "$work/tmp" && export TMPDIR=$work/tmp

# simulate OPTIONS: into the file of values, "path = value" each
simulate() {
	"${crikeep[@]}" simulate "$@" -o json >"$work/json" || return
	# shellcheck disable=SC2034 # prelude.sh reads it
	json=("simulate=$work/json") # the last one is held against the schema
	"$read_tree" json <"$work/json" >"$work/values"
}

# value POLICY NAME: of the last simulation, which ran all policies or this one only
value() {
	local at
	at=$(sed -n "s/^\.*policies\[\([0-9]\)\]\.policy = \"$1\"$/\1/p" "$work/values")
	sed -n "s/^\.*policies\[$at\]\.$2 = //p" "$work/values"
}

# is POLICY NAME VALUE
is() {
	local got
	got=$(value "$1" "$2")
	[ "$got" = "$3" ] || { echo "$1: $2 is '$got', not '$3'"; return 1; }
}

# less A B: both are numbers, and the first is less
less() {
	awk -v a="$1" -v b="$2" 'BEGIN { exit !(a ~ /^[0-9]/ && b ~ /^[0-9]/ && a + 0 < b + 0) }'
}

# below POLICY POLICY NAME: the first one's value is smaller
below() {
	local a b
	a=$(value "$1" "$3") b=$(value "$2" "$3")
	less "$a" "$b" || { echo "$3: $1 '$a', $2 '$b'"; return 1; }
}

# ---- the policies ------------------------------------------------------------------------------

no_leaks() {
	is "$1" leaks.hidden 0 && is "$1" leaks.listed 0
}

made_once() {
	simulate --policy crikeep "$@" && is crikeep creates_per_resource 1.0000 &&
		is crikeep never_ready 0 && no_leaks crikeep
}
check 'crikeep makes each resource once' made_once
check 'crikeep makes each resource once, for requests that wait' made_once --create 15s \
	--deadline 10s
check 'crikeep makes each resource once, over many deadlines' made_once --create 26s --deadline 3s
check 'crikeep makes each resource once, longer than a result in memory lives' \
	made_once --create 260s --deadline 120s --give-up 1h
check 'crikeep makes each resource once, three containers in each pod' made_once --containers 3
check 'crikeep makes each resource once, sandboxes kept' made_once --hand-back repeat
check 'crikeep makes each resource once, the kubelet restarts' made_once --kubelet-restart-at 7s
check 'crikeep makes each resource once, with more chance' made_once --jitter 90% --pods 60 --seed 7

kept_over_restart() { # 9 s: every sandbox is complete and kept, and nothing is being made
	made_once --hand-back repeat --restart-at 9s
}
check 'crikeep keeps what was complete when the runtime restarts' kept_over_restart

remade_after_restart() {
	simulate --policy crikeep --restart-at 3s && is crikeep never_ready 0 && no_leaks crikeep
}
check 'crikeep makes anew what was lost when the runtime restarted' remade_after_restart

quick_creates() {
	simulate --create 1s --jitter 0
	for p in none ram crikeep; do
		is $p creates_per_pod 2.0000 && is $p requests_per_pod 2.0000 || return
		is $p lag_seconds.max 0.000 && is $p never_ready 0 || return
	done
}
check 'within the deadline all policies are alike' quick_creates

never_ready() {
	simulate --policy none --pods 10 && is none never_ready 10 &&
		is none ready_seconds.max null &&
		is none requests.container 0
}
check 'none: no number of retries makes a sandbox that outlives the deadline' never_ready

attempts_rise() {
	set -- --policy none --slow container --pods 1 --give-up 2m --trace
	"${crikeep[@]}" simulate "$@" 2>"$work/trace" >"$work/out" || return
	for attempt in 0 1 2 3; do
		grep -q "CreateContainer c0 .*attempt $attempt " "$work/trace" ||
			{ cat "$work/trace"; return 1; }
	done
	grep -q '^none .* 1$' "$work/out"
}
check 'none: a late container is listed, and the next has another attempt' attempts_rise

as_measured() { # facts of CRI-O 1.26 and kubelet 1.20 with a sandbox of 15 s and a deadline of 10 s
	set -- --policy ram --create 15s --deadline 10s --pods 1 --jitter 0 --trace
	"${crikeep[@]}" simulate "$@" 2>"$work/trace" >"$work/out" || return
	cat >"$work/want" <<-END
		RunPodSandbox try 1, attempt 0 10.000 DEADLINE_EXCEEDED
		RunPodSandbox try 2, attempt 0 0.000 OK
		CreateContainer c0 try 3, attempt 0 10.000 DEADLINE_EXCEEDED
		CreateContainer c0 try 4, attempt 0 10.000 DEADLINE_EXCEEDED
		CreateContainer c0 try 5, attempt 0 0.000 OK
	END
	awk '$4 != "ready" { $1 = $2 = $3 = ""; sub(/^ */, ""); print }' "$work/trace" |
		diff -u "$work/want" -
}
check 'ram: the timeline is that of CRI-O and a kubelet' as_measured

reaped() {
	simulate --create 280s --deadline 240s --give-up 30m --jitter 5% && is ram never_ready 20 &&
		is crikeep never_ready 0 &&
		below crikeep ram creates_per_pod && no_leaks ram
}
check 'ram: a result is removed while a request waits for it' reaped

answered_at_once() {
	simulate --create 15s --deadline 10s && below crikeep ram ready_seconds.p50 &&
		below crikeep ram requests_per_pod &&
		below crikeep ram lag_seconds.p50
}
check 'crikeep answers a request that waits, ram at the next one' answered_at_once

offered() {
	local repeated
	simulate --policy crikeep --hand-back repeat &&
		repeated=$(value crikeep ready_seconds.p50)
	simulate --policy crikeep &&
		less "$(value crikeep ready_seconds.p50)" "$repeated"
}
check 'crikeep: an offered sandbox is taken from the list' offered

given_up() {
	for at in 3s 8s 16s 24s; do
		simulate --hand-back repeat --give-up $at && is crikeep never_ready 20 &&
			no_leaks crikeep && no_leaks ram || return
	done
	for at in 3s 8s 16s; do # offered, and removed by the kubelet
		simulate --policy crikeep --give-up $at && is crikeep never_ready 20 &&
			no_leaks crikeep || return
	done
}
check 'nothing is left of pods that were given up' given_up

# ---- the output --------------------------------------------------------------------------------

deterministic() {
	set -- --jitter 40% --kubelet-restart-at 20s --restart-at 30s --containers 2
	"${crikeep[@]}" simulate "$@" --seed 5 --trace >"$work/one" 2>&1 || return
	"${crikeep[@]}" simulate "$@" --seed 5 --trace >"$work/two" 2>&1 || return
	diff -u "$work/one" "$work/two" || return
	"${crikeep[@]}" simulate "$@" --seed 6 --trace >"$work/two" 2>&1 &&
		! cmp -s "$work/one" "$work/two"
}
check 'the same seed gives the same numbers, another one others' deterministic

columns() { # columns LOCALE
	LC_ALL=$1 "${crikeep[@]}" simulate --pods 1000 --jitter 50% --give-up 24h --deadline 4.6s \
		>"$work/out" || return
	LC_ALL=C awk '
		{ gsub(/[\200-\277]/, "") } # of a character of several bytes the first one counts
		length($0) > 80 { print length($0) ": " $0; bad = 1 }
		END { exit bad }' "$work/out"
}
check 'table and plot are 80 columns wide' columns C.UTF-8
check 'table and plot are 80 columns wide in ASCII' columns C
ascii() { # the last output
	! LC_ALL=C grep -n '[^ -~]' "$work/out"
}
check 'in the C locale all is ASCII' ascii

trees() {
	simulate --pods 5 && "${crikeep[@]}" simulate --pods 5 -o yaml | "$read_tree" yaml |
		diff -u "$work/values" -
}
check 'JSON is well formed, and YAML says the same' trees

# every tag that is opened is closed in order, and no bare & or < stands between
well_formed() {
	awk '{ text = text $0 "\n" } END {
		sub(/^<\?xml[^>]*\?>/, "", text)
		while (match(text, /<[^<>]*>/)) {
			if (substr(text, 1, RSTART - 1) ~ /[<>]|&([^#a-z]|$)/)
				bad = bad "stray: " substr(text, 1, RSTART) "\n"
			tag = substr(text, RSTART + 1, RLENGTH - 2)
			text = substr(text, RSTART + RLENGTH)
			split(tag, word, /[ \n\/]/)
			if (tag ~ /^\// && stack[depth--] != substr(tag, 2))
				bad = bad "closes nothing: " tag "\n"
			else if (tag !~ /^\/|\/$/)
				stack[++depth] = word[1]
			tags++
		}
		printf "%s", bad
		if (bad != "" || depth || tags < 10 || text ~ /[<>]/) {
			print depth " open, " tags " tags"
			exit 1
		}
	}' "$1"
}
svg() {
	local plot=$work/plot.svg
	"${crikeep[@]}" simulate --plot "$plot" >"$work/out" && well_formed "$plot" || return
	[ "$(grep -c '<path class="curve c[012]" d="M70 376' "$plot")" = 3 ] ||
		{ echo 'not three curves'; return 1; }
	grep -q prefers-color-scheme "$plot" && grep -q '>pods ready<' "$plot" &&
		grep -q 'crikeep: 20 of 20 ready' "$plot"
}
check 'the plot is well-formed SVG' svg

# trouble WORDS OPTIONS: exit status 2, and the words on standard error
trouble() {
	local words=$1 got
	shift
	"${crikeep[@]}" simulate "$@" >"$work/out" 2>"$work/err"
	got=$?
	grep -q -- "$words" "$work/err" || { cat "$work/err"; return 1; }
	[ $got = 2 ] || { echo "exit status $got"; return 1; }
}
check 'a plot that cannot be written is trouble' trouble "write '$work/no/plot.svg'" --pods 1 \
	--plot "$work/no/plot.svg"
[ ! -e /dev/full ] ||
	check 'a plot on a full disk is trouble' trouble "write '/dev/full'" --pods 1 \
	--plot /dev/full

nowhere() {
	local TMPDIR=$work/no
	trouble "make a directory in '$work/no'" --policy crikeep
}
check 'no room for a state directory is trouble' nowhere

bad_values() {
	trouble '--create' --create 0s && trouble '--create' --create 25h &&
		trouble '--create' --create fast &&
		trouble '--deadline' --deadline 5 && trouble '--jitter' --jitter 101% &&
		trouble '--jitter' --jitter=-1% &&
		trouble '--pods' --pods 0 && trouble '--pods' --pods 1001 &&
		trouble '--pods' --pods 2x &&
		trouble '--containers' --containers 17 && trouble '--policy' --policy some &&
		trouble '--slow' --slow image &&
		trouble '--hand-back' --hand-back never && trouble '--seed' --seed=-1 &&
		trouble '--give-up' --give-up '' &&
		trouble '--restart-at' --restart-at now && trouble 'Too many arguments' extra
}
check 'a bad value is trouble' bad_values

help() {
	"${crikeep[@]}" simulate --help | sed -n '/^Examples:$/,$p' >"$work/out"
	[ "$(wc -l <"$work/out")" -gt 2 ] &&
		! tail -n +2 "$work/out" | grep -v '^  crikeep simulate '
}
check '--help ends with examples' help

# ---- what it leaves behind ---------------------------------------------------------------------

interrupted() {
	"${crikeep[@]}" simulate --policy crikeep --pods 1000 --containers 16 >"$work/out" 2>&1 &
	local pid=$!
	# by its name: ThreadSanitizer has a file of its own here, before main() can catch signals
	until compgen -G "$TMPDIR/crikeep-simulate-*" >/dev/null || ! kill -0 $pid 2>/dev/null; do
		:
	done
	kill -TERM $pid
	wait $pid
	local got=$?
	[ $got = 2 ] && grep -q interrupted "$work/out" && return
	echo "exit status $got"
	cat "$work/out"
	return 1
}
check 'a signal ends it in good order' interrupted
check 'no state directory is left' test -z "$(ls "$TMPDIR")"

check_json
exit "$failed"
