# SPDX-License-Identifier: Apache-2.0
# A && B || C is meant; awk; shared variables
# shellcheck shell=bash disable=SC2015,SC2016,SC2034,SC2086,SC2154
#
# Of scenarios with NRI plugins, for tests to source: crictl, crikeep drive -> crikeepd -> a
# runtime, and real Go plugins beside it. A scenario holds one requirement; requirements.tsv says
# what it is, and test-requirements.sh plays it with the mutant that breaks it. Nothing here waits
# for a time: a plugin holds an event until the scenario lets it go.
#
# Before: play.sh, stage.sh; a `stage [PARAMETERS [OPTION...]]` with --nri="$d/nri.sock". Variables
# of a scenario: $d, and $out, $err, $status, $took of the last try.

# with a mutant the first failure will do
check() { # check NAME COMMAND...: the command succeeds
	local name=$1
	shift
	if "$@" >"$d/said" 2>&1; then
		echo "ok - $scenario: $name"
		return
	fi
	echo "not ok - $scenario: $name"
	sed 's/^/    /' "$d/said"
	[ -z "${CRIKEEP_BREAK:-}" ] || exit 0
}
is() { [ "$1" = "$2" ] || { echo "it is '$1', not '$2'"; return 1; }; }
differs() { [ "$1" != "$2" ] || { echo "both are '$1'"; return 1; }; }
has() { [[ $1 == *"$2"* ]] || { echo "'$1' has no '$2'"; return 1; }; }
not() { ! "$@"; }

# each in a process of its own, which ends with all that it started
play() {
	scenario=${1//_/ } d=$stage_dir/$1 plugin_pids=()
	mkdir -m 0711 "$d"
	trap 'unstage >/dev/null 2>&1; echo end' EXIT
	"$1"
	check 'crikeepd is well' is_well
	exit 0
}
is_well() { kill -0 "$crikeepd_pid" && not grep -E 'runtime error|Sanitizer' "$d/crikeepd.log"; }

# ---- plugins -----------------------------------------------------------------------------------

# plugin NN-NAME [OPTION...]: connected, and synchronized
plugin() {
	plugin_start "$@"
	check "plugin $1 is synchronized" until_ 10 replied "$1" Synchronize
}
plugin_start() { launch nri "$@"; }
plugin_old() {
	launch nri-v030 "$@"
	check "plugin $1 is synchronized" until_ 10 replied "$1" Synchronize
}
launch() { # launch PROGRAM NN-NAME [OPTION...]
	"$tools/$1" -idx "${2%%-*}" -name "${2#*-}" -socket "$d/nri.sock" -log "$d/$2.log" \
		-script "$d/$2.script" "${@:3}" \
		2>>"$d/$2.err" </dev/null &
	plugin_pids+=($!)
	plugin_pid=$!
}
tell() { # tell NN-NAME LINE...: what it answers from now on
	printf '%s\n' "${@:2}" >"$d/$1.script.new"
	mv "$d/$1.script.new" "$d/$1.script"
}
let_go() { : >"$d/$1"; } # whoever waits for this file

# lines NN-NAME AWK: those of its log of which the expression is true; f(KEY) is a field
lines() {
	awk "$awk_fields $2" "$d/$1.log" 2>/dev/null
}
on_one_line() { # on_one_line COMMAND...: what it prints
	local text
	text=$("$@")
	echo "${text//$'\n'/ }"
}
awk_fields='
function f(key) {
	if (!match($0, "\"" key "\":(\"([^\"\\\\]|\\\\.)*\"|[0-9.]+|true)"))
		return ""
	value = substr($0, RSTART + length(key) + 3, RLENGTH - length(key) - 3)
	gsub(/^"|"$/, "", value)
	return value
}
function of(name) { return (f("cname") != "" ? f("cname") : f("name")) == name }
'
# heard NN-NAME [NAME]: what it was told of this pod or container, in order: "has" stands for a list
# that had it
heard() {
	on_one_line lines "$1" "f(\"what\") == \"has\" && of(\"${2:-}\") { print \"has\" }
		f(\"what\") == \"call\" && of(\"${2:-}\") { print f(\"event\") }"
}
# asked NN-NAME EVENT [NAME]: it was; replied: and it has answered
asked() { noted call "$@"; }
replied() { noted "done" "$@"; }
noted() {
	local name=''
	[ -z "${4:-}" ] || name="&& of(\"$4\")"
	[ -n "$(lines "$2" "f(\"what\") == \"$1\" && f(\"event\") == \"$3\" $name")" ] ||
		{ echo "$2 has no $1 of $3 ${4:-}; it has:"; cut -c 1-250 "$d/$2.log"; return 1; }
}
# told NN-NAME EVENT NAME KEY: that field of what it was told, the last time
told() {
	lines "$1" "f(\"what\") ~ /call|has/ && f(\"event\") == \"$2\" && of(\"$3\") {
		print f(\"$4\")
	}" | tail -n 1
}
state_of() {
	on_one_line lines "$1" "f(\"what\") ~ /^(start|up|refused|lost)$/ { print f(\"what\") }"
}
connected() { is "$(state_of "$1")" 'start up'; }
gone_from() { # gone_from NN-NAME [N]: it has lost its n-th connection
	[ -n "$(lines "$1" "f(\"what\") == \"lost\" && f(\"conn\") == ${2:-1}")" ] ||
		{ state_of "$1"; return 1; }
}
# heard_in N NN-NAME [NAME]: as heard, in its n-th connection
heard_in() {
	on_one_line lines "$2" "f(\"conn\") != $1 { next }
		f(\"what\") == \"has\" && of(\"${3:-}\") { print \"has\" }
		f(\"what\") == \"call\" && of(\"${3:-}\") { print f(\"event\") }"
}
hears() { is "$(heard "$1" "$2")" "$3"; }
hears_in() { is "$(heard_in "$1" "$2" "$3")" "$4"; }
one_at_a_time() { # no event of its comes before the one before it was answered
	local bad
	bad=$(lines "$1" 'f("event") ~ /Synchronize|Configure|SIG/ { next }
		f("what") == "call" && ++n > 1 { print f("event"), f("name") }
		f("what") == "done" { n-- }')
	[ -z "$bad" ] || { echo "at the same time as another: $bad"; return 1; }
}
# before NN-NAME EVENT NN-NAME EVENT NAME: the first has answered when the second is asked
before() {
	local first second
	first=$(when "$1" "done" "$2" "$5") second=$(when "$3" call "$4" "$5")
	[ -n "$first" ] && [ -n "$second" ] && [ "$first" -le "$second" ] ||
		{ echo "$1: $first, $3: $second"; return 1; }
}
when() { # when NN-NAME WHAT EVENT NAME: in microseconds
	lines "$1" "f(\"what\") == \"$2\" && f(\"event\") == \"$3\" && of(\"$4\") {
		printf \"%.0f\n\", f(\"at\") * 1e6
	}"
}
holds() { # holds NN-NAME EVENT [NAME]: it was asked and has not answered
	check "$1 is asked: $2${3:+ of }${3:-}" until_ 10 asked "$1" "$2" "${3:-}"
}

# ---- the client --------------------------------------------------------------------------------

# begin NAME COMMAND...: in the background; ended NAME waits for it and is as a try
begin() {
	local name=$1
	shift
	{
		local status=0
		"$@" >"$d/$name.out" 2>"$d/$name.err" || status=$?
		echo $status >"$d/$name.status"
	} &
	eval "background_$name=$!"
}
ended() {
	local pid=background_$1
	wait "${!pid}"
	status=$(<"$d/$1.status") out=$(<"$d/$1.out") err=$(<"$d/$1.err")
}
# leaves NN-NAME EVENT NAME CRICTL'S ARGUMENT...: a client that is killed while the plugin is asked
leaves() {
	local client
	"$tools/crictl" -c "$d/crictl.yaml" -r "unix://$d/cri.sock" "${@:4}" >"$d/client" 2>&1 &
	client=$!
	holds "$1" "$2" "$3"
	kill -KILL $client
	wait $client 2>/dev/null
	check 'the client leaves while a plugin is asked' is "$(cat "$d/client")" ''
	cri pods >/dev/null # by now it is known to be gone
}
given() {
	[ "$status" -eq 0 ] && [ -n "$out" ] || { echo "exit status $status: $out $err"; return 1; }
}
refused() { # refused TEXT
	[ "$status" -ne 0 ] && [ -z "$out" ] && has "$err" "$1" ||
		{ echo "exit status $status: $out $err"; return 1; }
}
succeeded() { [ "$status" -eq 0 ] || { echo "exit status $status: $out $err"; return 1; }; }
failed() { [ "$status" -ne 0 ] || { echo "it succeeded: $out"; return 1; }; }

# run POD, make POD_ID CONTAINER [POD]: their ids in $out
run() {
	try cri runp "$(pod "$1")"
	check "a pod '$1' is made" given
}
make_in() {
	try cri create "$1" "$(container "$2")" "$(pod "${3:-web}")"
	check "a container '$2' is made" given
}
# ask DEADLINE POD [SANDBOX CONTAINER]: one request as the kubelet's, always the same; $out is the
# id, "" if it ran out of time
ask() {
	local of=()
	[ -z "${3:-}" ] || of=(--sandbox "$3" --container "$4" --image "$image")
	"$crikeep" drive --endpoint "unix://$d/cri.sock" "${network[@]}" --deadline "$1" \
		--give-up 1ms --retry 10ms -o yaml \
		--pod "$2" --uid "uid-of-$2" "${of[@]}" >"$d/$2${4:-}.report" 2>"$d/$2${4:-}.err"
	out=$(sed -n 's/^id: "\?\([^"]*\)"\?$/\1/p' "$d/$2${4:-}.report")
	err=$(sed -n 's/^ *text: //p' "$d/$2${4:-}.report")
	code=$(sed -n 's/^ *\(- \)\?code: "\?\([A-Z_]*\)"\?$/\2/p' "$d/$2${4:-}.report")
	[ "$out" != null ] || out=''
	status=0
	[ -n "$out" ] || status=1
}
image=docker.io/lab/busybox:1 network=()
# by the client's own deadline, or told so just before
out_of_time() { [[ $code == DEADLINE_EXCEEDED || $code == UNAVAILABLE ]] && is "$out" ''; }

# says METHOD ID: one call to crikeepd that has nothing but an id
says() { "$tools/relay" call "$d/cri.sock" "$1" "$2"; }

# past crikeepd: what the runtime has. ids of all pods, of all containers
pods_past() { past pods -q --no-trunc "$@"; }
containers_past() { past ps -aq --no-trunc "$@"; }
state_past() { past inspectp "$1" 2>/dev/null | first_state; }
container_state_past() { past inspect "$1" 2>/dev/null | first_state; }
first_state() { sed -n 's/.*"state": "\([A-Z_]*\)".*/\1/p' | head -n 1; }
