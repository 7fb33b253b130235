#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# crikeep(1) against databases that make-db wrote: with the owner up, down and killed, with hostile
# rows, and with output that cannot be written. Golden output lies in golden/, which
# CK_TEST_GOLDEN=write makes anew. What changes from run to run is filtered: spans of two digits of
# seconds (make-db chooses such), times, and process ids.
#
# A && B || C is meant; words are split on purpose; functions are called by check, variables are
# prelude.sh's:
# shellcheck disable=SC1091,SC2015,SC2016,SC2086,SC2094,SC2154,SC2317
set -u

. "$(dirname "$0")/prelude.sh"
. "$(dirname "$0")/database.sh"
at_end() { end owner; }

filter() {
	sed -E -e 's/[0-9]{2}s\b/NNs/g' \
		-e 's/[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z/TIME/' \
		-e 's/("?(([a-z]+_)?seconds_ago|due_in_seconds|owner_pid)"?: *)-?[0-9.]+/\1N/' \
		-e 's/("(wal|database)_bytes": *)[0-9]+/\1N/' \
		-e 's/process [0-9]+/process N/g' \
		-e 's/^([0-9:]{8}|[A-Z][a-z]{2} [0-9]{2} [0-9:]{5})/HH:MM:SS/' \
		-e 's/("?(digest|salt|root|rest|key_id)"?: *"?)[0-9a-f]{16,}/\1HEX/' \
		-e 's/, at ([0-9:]{8}|[A-Z][a-z]{2} [0-9]{2} [0-9:]{5})$/, at HH:MM/' \
		-e "s|$work|WORK|g" |
		# for whom a runtime waits depends on the machine and on who asks
		awk '
			/^  Waits for: / { skip = 1; next }
			/^$|^  Hint: / { skip = 0 }
			!skip' |
		sed -E 's/("?waits_for_unknown"?: ).*/\1WHOM/' |
		# where this paragraph is broken depends on the length of a pid
		awk '
			/^The owner of the database, process N/ { pid = 1 }
			pid && NF { text = text blank $0; blank = " "; next }
			pid { print text; text = blank = ""; pid = 0 }
			{ print }
			END { if (pid) print text }'
}

# row ENTRY NAME VALUE: such is the entry
row() { "$crikeep" list -a -o json | "$read_tree" json | grep -Fx "[$(($1 - 1))].$2 = $3"; }

# ---- what people read --------------------------------------------------------------------------

db states hold
golden list 0 list
golden list-all 0 list --all
golden list-filters 0 list --kind container --state kept,EVICTING --pod db-0 --namespace prod \
	--uid db-0
golden list-wide 0 list -n prod -o wide --sort state
golden list-name 0 list -a -o name --sort pod
golden list-sort-due 0 list --sort due
golden list-quiet 0 ls -q --pod prod/db-0
golden list-no-trunc 0 list --no-trunc --pod api-0
golden show 0 show 2 77aa
golden explain-pod 0 explain prod/db-0
for i in 1 2 7 8 9 10 11; do golden "explain-$i" 0 explain $i; done
golden explain-failing 0 explain crash-0
golden explain-earlier 0 explain left
golden explain-failing-json 0 explain prod/crash-0 -o json
check 'a number is not the pod whose creations fail' run 1 explain 1000
golden history 0 history
golden history-of-one 0 history db-0 -n 3 --since 10m
since() { # since N ARGUMENT...: history shows N lines
	local want=$1
	shift
	run 0 history -n 0 -o json "$@" && [ "$(grep -c '"seq"' "$work/out")" = "$want" ]
}
all=$("$crikeep" history -n 0 -o json | grep -c '"seq"')
hour=$(date -u -d '1 hour ago' +%FT%TZ)
check 'since a time, with a date' since "$all" --since "$hour"
check 'until a time' since 0 --until "$hour"
check 'until a span ago' since 0 --until 1h
tomorrow=$(date -d tomorrow +%F)
check 'between two times' since "$all" --since "$(date -d '1 hour ago' '+%F %R')" \
	--until "$tomorrow"
check 'since a time that has not come' since 0 --since "$(date -d 'next year' +%F)"
golden stats 0 stats
db states hold # a machine that is slow is past its spans
golden list-json 0 list -a -o json
golden show-json 0 show 2 77aa -o json
golden explain-json 0 explain prod/db-0 -o json
golden stats-json 0 stats -o json
golden check 0 check
golden check-json 0 check -o json
golden show-raw-yaml 0 show 2 --raw -o yaml
golden history-json 0 history 5 -o json

db states
golden list-no-owner 0 list
golden explain-no-owner 0 explain db-0
golden empty-selection 0 list --kind container --pod web-7d9f
golden only-committed 0 list --pod dns
db empty
golden empty 0 list
golden empty-history 0 history
golden empty-json 0 list -o json

db hostile
golden hostile 0 list
golden hostile-explain 0 explain 2
golden hostile-show 0 show 1 2 3
golden hostile-json 0 list -o json
golden hostile-yaml 0 list -o yaml
golden hostile-history 0 history
nothing_harmful() { # no control but the line's end, no direction override, nothing but UTF-8
	local form
	for form in table json yaml; do
		"$crikeep" list -a -o $form && "$crikeep" history -o $form &&
			"$crikeep" show 1 2 3 --raw -o $form && "$crikeep" explain 2 -o $form ||
			return 1
	done >"$work/all"
	! grep -nP '[\x00-\x09\x0b-\x1f\x7f]' "$work/all" &&
		! grep -nP '[\x{80}-\x{9f}\x{202a}-\x{202e}]' "$work/all" &&
		iconv -f UTF-8 -t UTF-8 "$work/all" >/dev/null
}
check 'nothing in a row reaches the terminal unescaped' nothing_harmful
only_ascii() { LC_ALL=C "$crikeep" list | LC_ALL=C grep -c '[^ -~]' | grep -qx 0; }
check 'a locale without UTF-8 gets ASCII' only_ascii

# ---- what machines read ------------------------------------------------------------------------

well_formed() { # every form of every listing can be read, and YAML says what JSON says
	local command form
	for command in 'list -a' 'show 1 2 3 --raw' 'explain 1' 'history' 'stats' 'check' \
		'evict 1 2 3 --dry-run'; do
		for form in json yaml; do
			"$crikeep" $command -o $form | "$read_tree" $form >"$work/$form.all" ||
				return 1
			# a second may go by in between
			sed '/seconds\|_at/d' "$work/$form.all" | filter >"$work/$form"
		done
		if [ "$command" != check ] && ! [ -s "$work/json" ]; then
			echo "nothing from $command"
			return 1
		fi
		diff "$work/json" "$work/yaml" || return 1
	done
}
check 'hostile rows as JSON and YAML' well_formed
db states hold
check 'all states as JSON and YAML' well_formed

# ---- terminals ---------------------------------------------------------------------------------

on_a_terminal() { # on_a_terminal COLUMNS ARGUMENT...: no line is longer, and there is no colour
	local columns=$1
	shift
	script -qec "stty cols $columns; $crikeep $*" /dev/null </dev/null |
		tr -d '\r' >"$work/screen"
	[ "$(wc -l <"$work/screen")" -gt 3 ] || { echo 'too little'; cat "$work/screen"; return 1; }
	! grep -P '\x1b' "$work/screen" && ! grep -nE ".{$((columns + 1))}" "$work/screen"
}
check 'list fits into 80 columns' on_a_terminal 80 list
check 'list --all fits into 80 columns' on_a_terminal 80 list --all
frames() { [ "$(grep -c $'^\e\\[H\e\\[2Jcrikeep list' "$work/screen")" -gt "$1" ]; }
watched() { # each second anew, within 80 columns and 12 lines, and what is too much is counted
	script -qfec "stty cols 80 rows 12; $crikeep list -aw --sort pod" "$work/screen" \
		</dev/null >/dev/null &
	local watcher=$!
	wait_for 200 frames 2
	kill "$watcher"
	wait "$watcher" 2>/dev/null
	tr -d '\r' <"$work/screen" | awk '/crikeep list, / { n++ } n == 2' |
		sed 's/\x1b\[[0-9]*[HJ]//g' >"$work/frame"
	grep -q "^crikeep list, $dir at [0-9:]*\$" "$work/frame" &&
		grep -q '^and 7 more$' "$work/frame" && [ "$(wc -l <"$work/frame")" -le 11 ] &&
		! grep -E '.{81}' "$work/frame" || { cat -v "$work/screen"; return 1; }
}
check 'list --watch fits into 80 columns and 12 lines' watched
check 'list --watch needs a terminal' run 2 list --watch
check 'list fits into 70 columns' on_a_terminal 70 list
check 'history fits into 80 columns' on_a_terminal 80 history
check 'explain fits into 80 columns' on_a_terminal 80 explain db-0
check 'explain fits into 50 columns' on_a_terminal 50 explain db-0
check 'stats fits into 80 columns' on_a_terminal 80 stats

# ---- which entry is meant ----------------------------------------------------------------------

db twins
golden ambiguous-pod 2 explain web
golden ambiguous-id 2 show 9f
golden ambiguous-id-and-pod 2 explain 9f3
golden ambiguous-history 2 history web
golden not-found 1 show nothing
golden not-found-history 1 history nothing
one() { # one ARGUMENT ENTRY: the argument means just this entry
	run 0 show "$1" -o json && [ "$(grep -c '"entry"' "$work/out")" = 1 ] &&
		grep -q "\"entry\": $2," "$work/out"
}
check 'an id by its prefix' one 9f3b 2
check 'a pod with its namespace' one test/web 2
check 'a pod by its name alone' one two 5
check 'a pod by a unique beginning' one tw 5
check 'a pod by its namespace and a unique beginning' one prod/tw 5
check 'a number is a row, not the beginning of an id' one 1 1
check 'an id that begins with a row number' one 1d 5
check 'a whole id wins over ids that begin with it' one aaaa 3
some_missing() {
	run 1 show 1 nothing && grep -q '^entry: *1$' "$work/out" && grep -q nothing "$work/err"
}
check 'what exists is shown although another does not' some_missing
db twins hold
golden explain-other-key 0 explain two
db offers hold
golden explain-offer-waits 0 explain waits
golden explain-offered 0 explain listed
golden history-offered 0 history
db usual hold
golden explain-usual 0 explain slow
golden explain-usual-json 0 explain slow -o json
golden explain-usual-unknown 0 explain other
golden explain-usual-evicting 0 explain gone
db states
a_number_is_a_row() { # 77 begins the id of entry 4, and 02 is no row number
	local command
	for command in show explain history 'evict --dry-run'; do
		run 1 $command 77 && grep -q "no entry .*77" "$work/err" && run 1 $command 02 &&
			run 1 $command 99999999999999999999 || return 1
	done
}
check 'a number that is no row means nothing' a_number_is_a_row
lists() { # lists POD ENTRY...: list --pod lists just these
	local pod=$1
	shift
	run 0 list -a -o json --pod "$pod" &&
		[ "$(sed -n 's/.*"entry": \([0-9]*\),/\1/p' "$work/out" | xargs)" = "$*" ]
}
check 'list takes a unique beginning' lists we 1
check 'with the namespace' lists prod/we 1
check 'a whole name wins over names that only begin with it' lists old 8
golden list-ambiguous-pod 2 list --pod prod/j
golden list-near-pod 0 list --pod wbe-7
check 'among the entries that other filters leave' run 0 list -a --pod d --namespace kube-system
whole_for_scripts() { run 0 list -qa --pod we && [ -z "$out" ] && run 0 list -qa --pod web-7d9f &&
	[ "$out" = 1 ]; }
check 'list -q takes whole names only' whole_for_scripts
check 'history takes a unique beginning' run 0 history prod/we
check 'explain takes a unique beginning' run 0 explain api
check 'explain takes the beginning of a pod whose creations fail' run 0 explain cra
golden not-found-near 1 explain prod/wbe-7d9f
golden not-found-namespace 1 show test/web-7d9f
golden not-found-history-near 1 history crush-0
golden ambiguous-beginning 2 explain job
golden evict-near 1 evict prod/wbe-7d9f
golden evict-beginning 2 evict prod/web-7
golden evict-no-row 1 evict 77
golden evict-short-id 2 evict 77a
golden evict-short-name 2 evict db-0

# ---- compare -----------------------------------------------------------------------------------

recorded() { # recorded NAME STATUS FILE FILE [ARGUMENT...]: of a kubelet's requests
	local name=$1 status=$2 a=$3 b=$4
	shift 4
	golden "$name" "$status" compare CreateContainer "$src/tests/data/kubelet-retries/$a" \
		"$src/tests/data/kubelet-retries/$b" "$@"
}
main=011-CreateContainer-api-main.bin
recorded compare 0 $main 016-CreateContainer-api-main.bin
recorded compare-json 0 $main 016-CreateContainer-api-main.bin -o json
recorded compare-different 1 $main 017-CreateContainer-web-init.bin
recorded compare-different-json 1 $main 017-CreateContainer-web-init.bin -o json

golden simulate 0 simulate --pods 3
golden simulate-json 0 simulate --pods 3 --policy ram -o json

# ---- evict -------------------------------------------------------------------------------------

db states
golden evict-without-owner 0 evict 2
requests() { find "$dir/wishes" -name '*.wish' 2>/dev/null | wc -l; }
[ "$(requests)" -ge 1 ] && ok 'without an owner the request waits' ||
	not_ok 'without an owner the request waits'
golden evict-wait-without-owner 2 evict 2 --wait
before=$(requests)
golden evict-dry-run 0 evict prod/db-0 2 --dry-run
golden evict-committed 1 evict 3
golden evict-committed-pod 1 evict kube-system/dns
golden evict-gone 0 evict 8
golden release-kept 1 evict --release 2
golden release-pod 2 evict --release prod/db-0
golden evict-nothing 1 evict nothing
before=0
db twins
golden evict-one-too-short 2 evict aaaab 1 9f3
[ "$(requests)" = "$before" ] && ok 'what is refused leaves no request' ||
	not_ok 'what is refused leaves no request'

db states serve
golden evict 0 evict 2
golden evict-wait 0 evict prod/web-7d9f --wait
golden evict-json 1 evict 7 9 --dry-run -o json
golden evict-in-use 1 evict 6 --wait
golden evict-not-gone 1 evict 5 --wait=300ms
golden release 0 evict 5 --release --wait -o json
"$crikeep" history -f -n 1 >"$work/all" 2>&1 &
follower=$!
"$crikeep" history --follow prod/w -o json -n 0 >"$work/one" 2>&1 &
follower_of_one=$!
check 'history --follow begins with the last lines' wait_for 100 test -s "$work/all" -a \
	-s "$work/one"
once() { [ "$(wc -l <"$work/all")" = 1 ] || { cat "$work/all"; return 1; }; }
check 'as many as are asked for' once
"$crikeep" evict -y prod/job-x >/dev/null 2>&1
check 'and shows what is written then' wait_for 100 grep -q \
	'^[0-9:]\{8\} 7 sandbox prod/job-x attempt 0: COMMITTING -> EVICTING: ' "$work/all"
no_other() { ! grep -q job-x "$work/one" && grep -q '"who": "sandbox prod/web-7d9f' "$work/one"; }
check 'of a pod, nothing else' no_other
kill "$follower" "$follower_of_one"
wait "$follower" "$follower_of_one" 2>/dev/null
nobody_reads() {
	timeout 20 "$crikeep" history -f | head -n 1 >"$work/all"
	[ "${PIPESTATUS[0]}" != 124 ] && [ "$(wc -l <"$work/all")" = 1 ]
}
check 'history --follow ends when nobody reads' nobody_reads
check 'what is followed must exist' run 1 history -f nothing
check 'history --follow prints no YAML' run 2 history -f -o yaml
check 'a released entry is gone' row 5 state '"GONE"'
golden explain-released 0 explain 5
[ "$(requests)" = 0 ] && ok 'a request that was taken up is gone' ||
	not_ok 'a request that was taken up is gone'
db states hold
golden evict-unanswered 1 evict 2
db states
typed() { # typed ANSWER STATUS ARGUMENT...: such is the status of evict on a terminal
	local answer=$1 status=$2
	shift 2
	printf '%s\n' "$answer" |
		script -qec "$crikeep evict $*; echo status \$?" /dev/null |
		tr -d '\r' >"$work/screen"
	grep -q "status $status" "$work/screen" || { cat "$work/screen"; return 1; }
}
asked() { grep -qF "$1 [y/N]" "$work/screen" || { cat "$work/screen"; return 1; }; }
no_is_no() {
	typed n 1 prod/db-0 && asked 'Evict these entries?' && [ "$(requests)" = 0 ] &&
		grep -q '^entry 4, container prod/db-0/app .*KEPT.*: will be destroyed' \
			"$work/screen" && typed '' 1 4 && asked 'Evict this entry?' &&
		[ "$(requests)" = 0 ]
}
check 'on a terminal evict says what it destroys, and no is no' no_is_no
yes_is_yes() {
	typed y 0 4 && asked 'Evict this entry?' && [ "$(requests)" = 1 ] &&
		typed yes 0 --release 5 && asked 'Forget this entry?' && [ "$(requests)" = 2 ] &&
		typed n 0 -y 2 && ! grep -q 'y/N' "$work/screen" && [ "$(requests)" = 3 ]
}
check 'on a terminal yes is yes' yes_is_yes
will='will be destroyed'
says_the_plan() { # says_the_plan LINES TEXT ARGUMENT...: on standard error alone, before it acts
	local lines=$1 text=$2
	shift 2
	run 0 evict "$@" </dev/null && [ "$(wc -l <"$work/err")" = "$lines" ] &&
		grep -q "$text" "$work/err" && ! grep -q "$text\|y/N" "$work/out" ||
		{ cat "$work/err" "$work/out"; return 1; }
}
check 'evict says without a terminal what it destroys' \
	says_the_plan 3 "^entry 4, container prod/db-0/app .*KEPT.*: $will" prod/db-0
check 'evict --yes says it too' says_the_plan 1 "^entry 2, sandbox prod/api-0 .*KEPT: $will" -y 2
check 'evict --release says what it forgets' \
	says_the_plan 1 '^entry 5, .*EVICTING: will be forgotten' --release 5
tree_alone() { run 0 evict 2 -o json && [ -z "$err" ]; }
check 'evict for a machine says nothing beside its tree' tree_alone
no_plan_without_certainty() { run 2 evict 2 77a && ! grep -q "$will" "$work/err"; }
check 'an evict that does nothing plans nothing' no_plan_without_certainty
db crowd
nothing_cut() { # nothing_cut FILE VERB: a line for each of 81 entries, the first names the others
	local others container='container prod/p\{253\}/c-[0-9]* attempt 0'
	others=$(seq -s ', ' 2 81)
	[ "$(wc -l <"$1")" = 81 ] && [ "$(sort -u "$1" | wc -l)" = 81 ] &&
		grep -q "^entry 1, sandbox prod/p\{253\} attempt 0, id .*: $2 be destroyed" "$1" &&
		grep -q "with its containers: entries $others\$" "$1" &&
		[ "$(grep -c "^entry [0-9]*, $container, .*: $2 go with its sandbox, entry 1\$" \
			"$1")" = 80 ]
}
dry_run_is_whole() { run 0 evict 1 --dry-run && nothing_cut "$work/out" would; }
check 'evict --dry-run cuts nothing' dry_run_is_whole
plan_is_whole() { run 0 evict 1 && nothing_cut "$work/err" will; }
check 'evict cuts nothing of its plan' plan_is_whole
each_once() { # a container that was asked for too has its own line alone
	run 0 evict 81 1 --dry-run && [ "$(wc -l <"$work/out")" = 81 ] &&
		grep -q '^entry 81, .* would be destroyed' "$work/out"
}
check 'evict says of each entry once what it does' each_once

# ---- owners, directories, streams --------------------------------------------------------------

db states hold
owner_is() { "$crikeep" stats -o json | grep -q "\"owner_alive\": $1"; }
check 'a living owner' owner_is true
end owner
check 'a killed owner' owner_is false
db states stuck
golden stats-degraded 0 stats
golden explain-degraded 0 explain 1
golden list-degraded 0 list --pod api-0
golden check-degraded 0 check
golden show-degraded 0 show 5
degraded_is() { "$crikeep" "${@:2}" -o json | grep -q "\"owner_degraded\": $1"; }
check 'stats says it to programs' degraded_is true stats
check 'explain says it to programs' degraded_is true explain 1
end owner
check 'a killed owner is not degraded' degraded_is false stats
db states hold
check 'an owner that can write is not degraded' degraded_is false stats
end owner
golden list-killed 0 list
check 'a sound database' run 0 check
damage() { # somewhere inside of the rows; the WAL of the killed owner would hide it
	db states
	printf 'damage' | dd of="$dir/crikeep.db" bs=1 seek=8200 conv=notrunc status=none
	run 1 check && [ -n "$out" ] && run 1 check -o json && grep -q finding "$work/out"
}
check 'a damaged database has findings' damage

golden no-directory 2 list --state-dir "$work/nowhere"
mkdir "$work/bare"
golden no-database 2 explain web --state-dir "$work/bare"
unreadable() { # root without its power over modes is like anybody else
	local drop=''
	[ "$(id -u)" != 0 ] || drop='setpriv --bounding-set=-dac_override,-dac_read_search --'
	db states
	chmod 0 "$dir"
	$drop "$crikeep" list >"$work/out" 2>"$work/err"
	local status=$?
	chmod 700 "$dir"
	echo "exit status $status" "$(cat "$work/out" "$work/err")"
	[ $status = 2 ] && ! [ -s "$work/out" ] && [ "$(wc -l <"$work/err")" = 1 ] &&
		grep -q '^crikeep: .*ermission denied' "$work/err"
}
check 'a directory that may not be read' unreadable

db states
environment() {
	local -x CRIKEEP_STATE_DIR=$work/nowhere
	run 2 list -q && run 0 list -q --state-dir "$dir" && run 0 --state-dir="$dir" list -q
}
check 'the state directory from the environment, and the option wins' environment
db states hold
full() {
	local a
	for a in 'list' 'list -o json' 'list -o yaml' 'history' 'explain 1' '--help' \
		'show --help' '--version'; do
		"$crikeep" $a >/dev/full 2>"$work/err"
		[ $? = 2 ] && grep -q '^crikeep: cannot write the output' "$work/err" &&
			[ "$(wc -l <"$work/err")" = 1 ] ||
			{ echo "$a"; cat "$work/err"; return 1; }
	done
}
check 'output that cannot be written is noticed' full
broken_pipe() {
	local form status
	mkfifo "$work/pipe"
	for form in table json yaml; do # less and more than a buffer
		exec 7<>"$work/pipe" 8>"$work/pipe" 7>&-
		"$crikeep" list -o $form >&8 2>"$work/err"
		status=$?
		exec 8>&-
		[ $status = 2 ] && ! [ -s "$work/err" ] ||
			{ echo "$form: exit status $status"; cat "$work/err"; return 1; }
	done
}
check 'a broken pipe is noticed quietly' broken_pipe
closed() {
	"$crikeep" list >&- 2>"$work/err"; [ $? = 2 ] && grep -q 'Bad file descriptor' "$work/err"
}
check 'closed standard output is noticed' closed

# ---- plugins -----------------------------------------------------------------------------------

# plugins_file PID SECONDS_AGO [LINE...]: as the process that has the connections would write it
plugins_file() {
	local pid=$1 ns boot
	boot=$(cat /proc/sys/kernel/random/boot_id)
	ns=$(awk -v ago="$2" '{ printf "%.0f", ($1 > ago ? $1 - ago : 1) * 1e9 }' /proc/uptime)
	shift 2
	{
		echo "crikeep-plugins 1 boot=$boot time=$ns wall=$(($(date +%s) - 20))" \
			"pid=$pid plugins=$#"
		for line; do
			echo "plugin ${line//@/$ns}"
		done
	} >"$dir/plugins"
}
# plugin NAME STATE POLICY LAUNCHED PID EVENTS QUEUED OVERDUE SENT LATE FAILED ERROR: a line of it
plugin() {
	echo "name=$1 state=$2 policy=$3 keep=0 launched=$4 pid=$5 events=$6 adjusting=0" \
		"queued=$7 since=@ overdue=$8 sent=$9 late=${10} failed=${11} error=${12}"
}
some_plugins() { # some_plugins PID
	plugins_file "$1" 20 "$(plugin '' connected error 0 79 0 0 0 0 0 0 '')" \
		"$(plugin 10-logger ready error 1 77 16383 0 0 41 0 0 '')" \
		"$(plugin 20-slow overdue required 0 78 9 7 @ 9 1 2 'RunPodSandbox:\x20UNKNOWN' |
			sed s/keep=0/keep=1/)"
}
evil=$(plugin '99-\x1b[31mred\x0a' ready ignore 0 0 0 0 0 0 0 0 '\x9b1m\xe2\x80\xae\x0anext')
evil=${evil/adjusting=0/adjusting=1}

db states
golden plugins-nothing-known 2 plugins
some_plugins $$
plugins_file $$ 20
golden plugins-none 0 plugins
db states hold
some_plugins "$owner"
golden plugins 0 plugins
golden plugins-json 0 plugins -o json
golden plugins-one 0 plugins slow
golden plugins-overdue 0 plugins --state overdue -q
golden plugins-not-there 1 plugins logger 30-nobody
check 'plugins fit into 80 columns' on_a_terminal 80 plugins
plugins_file "$owner" 20 "$(plugin 10-logger ready error 1 77 16383 0 0 41 0 0 '')" \
	"$(plugin policy absent required 0 0 0 0 0 0 0 0 '' | sed 's/since=@/since=0/')"
golden plugins-absent 0 plugins
golden plugins-absent-named 1 plugins policy
golden plugins-absent-quiet 0 plugins -q
golden plugins-absent-json 0 plugins --state absent -o json
some_plugins "$owner"
check 'plugins fit into 60 columns' on_a_terminal 60 plugins
plugins_file "$owner" 20 "$evil"
golden plugins-hostile 0 plugins
plugins_file "$owner" 20 "$(plugin 10-logger ready error 1 77 16383 0 0 41 0 0 '')" \
	"$(plugin 20-slow gone fail 0 0 0 0 0 9 1 0 'RunPodSandbox:\x20no\x20answer' |
		sed 's/since=@/since=0/')"
golden plugins-left 0 plugins
golden plugins-left-named 1 plugins slow
golden plugins-left-quiet 0 plugins -q
plugins_well_formed() {
	local form
	for form in json yaml; do
		"$crikeep" plugins -o $form | "$read_tree" $form |
			sed '/seconds_ago/d' >"$work/$form"
		[ -s "$work/$form" ] || return 1
	done
	diff "$work/json" "$work/yaml"
}
check 'hostile plugins as JSON and YAML' plugins_well_formed
some_plugins "$owner"
end owner
golden plugins-gone 0 plugins
golden plugins-gone-json 0 plugins -o json
golden plugins-gone-named 1 plugins 10-logger
golden plugins-gone-quiet 0 plugins -q
sed -i 's/boot=[^ ]*/boot=00000000-0000-0000-0000-000000000000/; s/wall=[0-9]*/wall=1700000000/' \
	"$dir/plugins"
golden plugins-before-boot 0 plugins
# a runtime that uses the plugins only: no database, and the writer is asked for by its number
without_the_cache() {
	local boot
	boot=$(cat /proc/sys/kernel/random/boot_id)
	mkdir -p "$work/bare"
	sed "s/boot=[^ ]*/boot=$boot/; s/ pid=[0-9]* plugins/ pid=$$ plugins/" "$dir/plugins" \
		>"$work/bare/plugins"
	run 0 plugins -q --state-dir "$work/bare" && [ "$out" = "$(printf '10-logger\n20-slow')" ]
}
check 'plugins without a database' without_the_cache
bad_files() { # each is refused with one line on standard error and nothing else
	local bad
	some_plugins $$
	cp "$dir/plugins" "$work/good"
	for bad in 's/crikeep-plugins 1/crikeep-plugins 2/' 's/plugins=3/plugins=4/' '$d' \
		's/policy=error/policy=none/' \
		's/ready/re\tady/' 's/sent=41/sent=-1/' 's/sent=41/sent=99999999999999999999/' \
		's/10-logger/10-\\x00logger/' 's/ error=$//' '$s/$/x y/'; do
		sed "$bad" "$work/good" >"$dir/plugins"
		run 2 plugins && [ -z "$out" ] && [ "$(wc -l <"$work/err")" = 1 ] ||
			{ echo "$bad"; return 1; }
	done
	rm "$dir/plugins" && ln -s "$work/good" "$dir/plugins" && run 2 plugins && [ -z "$out" ] ||
		return 1
	rm "$dir/plugins" && mkfifo "$dir/plugins" && run 2 plugins && [ -z "$out" ] || return 1
	rm "$dir/plugins" && truncate -s 1M "$dir/plugins" && run 2 plugins && [ -z "$out" ]
}
check 'a malformed file of plugins is refused' bad_files

# ---- the command line --------------------------------------------------------------------------

commands='status doctor list show explain history stats evict check compare pods plugins'
commands="$commands drive simulate"
# else it was left out of the build
"$crikeep" exporter --help >/dev/null 2>&1 && commands="$commands exporter"
golden help 0 --help
for c in $commands; do
	golden "help-$c" 0 $c --help
done
examples_last() {
	local c
	for c in '' $commands; do
		run 0 $c --help || return 1
		sed -n '/^Examples:/,$p' "$work/out" | tail -n 1 | grep -q '^  crikeep' ||
			{ cat "$work/out"; return 1; }
		[ -z "$c" ] || { run 0 help $c && run 0 $c -h; } || return 1
	done
}
check 'help ends with examples' examples_last
narrow() { ! for c in '' $commands; do "$crikeep" $c --help; done | grep -E '.{81}'; }
check 'help fits into 80 columns' narrow
options() {
	"$crikeep" $1 --help | grep -oE '^ +(-., )?(    )?--[a-z-]+' | grep -oE '[-]-.*' | sort -u
}
everywhere_the_same() { # help, man page and completion name the same options
	local c o
	# shellcheck disable=SC1091
	. "$src/contrib/completion/crikeep.bash"
	sed 's/\\-/-/g; s/Fl -/Fl --/g' "$src/man/crikeep.1" >"$work/man"
	for c in $commands; do
		for o in $(options $c); do
			grep -qF -- "Fl $o" "$work/man" || { echo "man page: $c $o"; return 1; }
		done
		diff <(options $c | grep -vx -- --version) <(_crikeep_options $c |
				grep -oE '[-]-[a-z-]+' | sort -u) || return 1
	done
}
check 'help, man page and completion name the same options' everywhere_the_same
db states
completes() { # completes WORDS -- REPLIES
	local PATH=$build:$PATH COMP_WORDS=() COMP_CWORD COMPREPLY=()
	while [ "$1" != -- ]; do
		COMP_WORDS+=("$1")
		shift
	done
	shift
	COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
	_crikeep
	[ "${COMPREPLY[*]}" = "$*" ] || { echo "${COMPREPLY[*]}"; return 1; }
}
check 'completion of a command' completes crikeep -o json hi -- history
check 'completion of a value' completes crikeep list --state = k -- kept
check 'completion of an entry' completes crikeep evict 1 -- 1 10
check 'completion of a pod' completes crikeep explain prod/w -- prod/web-7d9f
check 'completion of a pod in a filter' completes crikeep list --pod prod/a -- prod/api-0
check 'completion of a namespace' completes crikeep list -n k -- kube-system
check 'completion with another directory' completes crikeep --state-dir "$work/nowhere" show '' --
golden usage-near 2 hisotry
golden usage-far 2 frobnicate
golden usage-option 2 list --frobnicate
golden usage-state 2 list --state kept,nice
golden usage-kind 2 list --kind pod
golden usage-output 2 list -o xml
golden usage-since 2 history --since yesterday
golden usage-lines 2 history -n many
golden usage-wait 2 evict 1 --wait=soon
golden usage-nothing-to-show 2 show
golden usage-two-to-explain 2 explain 1 2
golden usage-too-much 2 stats 1
golden usage-hostile 2 $'li\x1b[31mst\n'
check 'a version' run 0 --version

check_json
exit "$failed"
