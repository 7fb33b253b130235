# SPDX-License-Identifier: Apache-2.0
# A && B || C is meant; variables are shared with those who source it.
# shellcheck shell=bash disable=SC2015,SC2034,SC2086,SC2154
#
# How a script of scenarios is played, for tests to source: first what a machine must have for it;
# then, in namespaces and a temporary file system of its own, every scenario in its own directory,
# many at a time; then what they said, and the logs of those that failed. A scenario is a function;
# its name with blanks for underscores stands before all that it checks.
#
# Before: $here (this directory) and $scenarios; $at_once, how many are played at a time.
# CK_CRIKEEPD in the environment: this crikeepd in place of the one that was built.

src=${CK_TEST_SRCDIR:-$(cd "$here/../.." && pwd)}
build=${CK_TEST_BUILDDIR:-$src}
lab=$src/contrib/lab tools=$build/tests/real/tools
crikeepd=${CK_CRIKEEPD:-$build/crikeepd} crikeep=$build/crikeep crikeep_sim=$build/crikeep-sim
export LC_ALL=C.UTF-8

skip_all() {
	local s
	for s in $scenarios; do
		echo "skip - ${s//_/ }: $1"
	done
	exit 0
}

# tool NAME...: built, or the scenarios that need it are skipped; the reason
tool() {
	local why status=0
	why=$("$here/tools.sh" "$tools" "$@" 2>&1) || status=$?
	[ $status -eq 0 ] || tail -n 1 <<<"$why"
	return $status
}

# need NAME...: all is skipped without these
need() {
	local why status=0
	why=$(tool "$@") || status=$?
	case $status in
	0) ;;
	3) skip_all "$why" ;;
	*) printf '%s\nnot ok - %s can be built\n' "$why" "$*"; exit 1 ;;
	esac
}

# enter SCRIPT'S ARGUMENTS: returns inside only. Its variable $wanted: the scenarios that are
# played.
enter() {
	local p busybox dir status=0
	if [ "${1:-}" = inside ]; then
		stage_dir=$2 wanted=${3:-$scenarios}
		mount -t tmpfs none "$stage_dir" || exit 99
		trap 'exit 99' HUP INT TERM # as process 1 we would not hear them
		return
	fi
	for p in "$crikeepd" "$crikeep"; do
		[ -x "$p" ] || skip_all "${p##*/} was not built"
	done
	[ "$(id -u)" -eq 0 ] || skip_all 'not root'
	for p in containerd ctr runc unshare fsfreeze mkfs.ext4; do
		command -v $p >/dev/null || skip_all "there is no $p"
	done
	busybox=$(command -v busybox) || skip_all 'there is no busybox'
	! ldd "$busybox" >/dev/null 2>&1 || skip_all 'busybox is not linked statically'
	"$lab/isolated.sh" mount -t tmpfs none /mnt 2>/dev/null ||
		skip_all 'namespaces or mounts are not allowed'
	dir=$(mktemp -d /tmp/ck.XXXXXX) || exit 99
	"$lab/isolated.sh" "$0" inside "$dir" "${1:-}" || status=$?
	rmdir "$dir"
	exit $status
}

check() { # check NAME COMMAND...: the command succeeds
	local name=$1
	shift
	if "$@" >"$d/said" 2>&1; then
		echo "ok - $scenario: $name"
	else
		echo "not ok - $scenario: $name"
		sed 's/^/    /' "$d/said"
	fi
}
is() { [ "$1" = "$2" ] || { echo "it is '$1', not '$2'"; return 1; }; }
at_least() { [ "${1:-0}" -ge "$2" ] || { echo "$1 is less than $2"; return 1; }; }
answered() {
	[ $status -eq 0 ] && is "$out" "$1" || { echo "exit status $status: $err"; return 1; }
}
not_in() { # ID COMMAND...: succeeds without a word of it
	local id=$1
	shift
	try "$@"
	[ $status -eq 0 ] && [[ $out != *"${id:0:13}"* ]] ||
		{ echo "exit status $status: $out $err"; return 1; }
}

# each in a subshell: its variables are its own
play() {
	scenario=${1//_/ } d=$stage_dir/$1
	mkdir "$d"
	"$1"
	unstage >/dev/null 2>&1
	echo end
}

# play_all - and exit
play_all() {
	local s log status=0 most
	most=${at_once:-$((4 * $(nproc)))}
	for s in $wanted; do
		# more at a time would take longer, and time is what is looked at
		while [ "$(jobs -rp | wc -l)" -ge "$most" ]; do
			wait -n
		done
		play "$s" >"$stage_dir/$s.out" 2>&1 &
	done
	wait
	for s in $wanted; do
		[ "$(tail -n 1 "$stage_dir/$s.out")" = end ] ||
			echo "not ok - ${s//_/ }: comes to its end" >>"$stage_dir/$s.out"
		# one whose stage could not be set up has checked nothing
		grep -qE '^(ok|not ok|skip) - ' "$stage_dir/$s.out" ||
			echo "not ok - ${s//_/ }: checks something" >>"$stage_dir/$s.out"
		sed '$ { /^end$/d }' "$stage_dir/$s.out"
		grep -q '^not ok' "$stage_dir/$s.out" || continue
		status=1
		for log in crikeepd.log sim.log runc/calls.log front.log relay.log containerd.log \
			kubelet.log; do
			[ -s "$stage_dir/$s/$log" ] || continue
			echo "    == $log ends:"
			tail -n 25 "$stage_dir/$s/$log" | cut -c 1-300 | sed 's/^/    /'
		done
	done
	exit $status
}
