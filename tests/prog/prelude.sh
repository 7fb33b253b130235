# SPDX-License-Identifier: Apache-2.0
# Shares variables and functions with those who source it.
# shellcheck shell=bash disable=SC2034,SC2154,SC2317
#
# What a test that is a script begins with, to be sourced: where everything is, a directory $work of
# its own that goes with it, and how it says what holds. A script ends by `exit $failed'.

src=${CK_TEST_SRCDIR:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}
build=${CK_TEST_BUILDDIR:-$src}
crikeep=$build/crikeep crikeepd=$build/crikeepd crikeep_sim=$build/crikeep-sim \
	read_tree=$build/tests/prog/read-tree
export LC_ALL=C.UTF-8 TZ=UTC CRIKEEP_PAGER=cat
failed=0
work=${0##*/} work=${work#test-}
work=$(mktemp -d "${TMPDIR:-/tmp}/${work%.sh}.XXXXXX") || exit 99
trap 'at_end; rm -rf "$work"' EXIT

at_end() { :; } # for the script to define: what it must end
end() { # end VARIABLE: kill the process whose id it holds
	local pid=${!1}
	[ -z "$pid" ] || { kill -KILL "$pid" && wait "$pid"; } 2>/dev/null
	printf -v "$1" ''
}

ok() { echo "ok - $1"; }
not_ok() { # not_ok NAME [TEXT]...
	echo "not ok - $1"
	failed=1
	shift
	[ $# = 0 ] || printf '%s\n' "$@" | sed 's/^/    /'
}
check() { # check NAME COMMAND...: the command succeeds
	local name=$1
	shift
	if "$@" >"$work/said" 2>&1; then ok "$name"; else not_ok "$name" "$(cat "$work/said")"; fi
}
result() { # result NAME STATUS: of a command that has ended
	if [ "$2" = 0 ]; then ok "$1"; else not_ok "$1"; fi
}

# wait_for N COMMAND...: until it succeeds, at most N tenths of a second
wait_for() {
	local left=$(($1 * ${CK_TEST_SLOW:-1}))
	shift
	until "$@" >/dev/null 2>&1; do
		left=$((left - 1))
		[ $left -gt 0 ] || return 1
		sleep 0.1
	done
}

# run STATUS ARGUMENT...: crikeep's streams into $out and $err; not the status: says so
run() {
	local want=$1 got
	shift
	"$crikeep" "$@" >"$work/out" 2>"$work/err"
	got=$?
	out=$(cat "$work/out") err=$(cat "$work/err")
	[ $got = 2 ] || keep_json "$@"
	[ $got = "$want" ] ||
		{ printf 'crikeep %s: exit status %s, not %s\n%s\n%s\n' "$*" $got "$want" "$out" \
		"$err"; return 1; }
}

# every tree that was printed is held against the schema in the end
json=()
keep_json() { # keep_json ARGUMENT...
	case " $* " in *' -o json '*) ;; *) return 0 ;; esac
	local command=$1
	[ "$command" != -o ] || command=status # which is the command if none is named
	cp "$work/out" "$work/json.${#json[@]}"
	json+=("$command=$work/json.${#json[@]}")
}
check_json() {
	local name='every tree matches the JSON schema' python
	# the one in PATH may lack the system's modules
	for python in python3 /usr/bin/python3 ''; do
		"$python" -c 'from jsonschema import Draft202012Validator' 2>/dev/null && break
	done
	if [ -z "$python" ]; then
		echo "skip - $name: python3 has no jsonschema 4"
		return
	fi
	[ ${#json[@]} -gt 0 ] || not_ok "$name" 'none was printed'
	check "$name" "$python" "$src/tests/prog/check-json.py" \
		"$src/contrib/schema/crikeep.schema.json" "${json[@]}"
}

# golden NAME STATUS ARGUMENT...: what crikeep prints, through the script's `filter', is what
# golden/NAME holds. CK_TEST_GOLDEN=write makes golden/ anew: look at the difference before you keep
# it.
golden() {
	local name=$1 golden=$src/tests/prog/golden
	shift
	if ! run "$@" >"$work/said"; then
		not_ok "$name" "$(cat "$work/said")"
		return
	fi
	{ printf '%s\n' "$out"; [ -z "$err" ] ||
		printf '== standard error\n%s\n' "$err"; } | filter >"$work/$name"
	[ "${CK_TEST_GOLDEN:-}" != write ] || cp "$work/$name" "$golden/$name"
	check "$name" diff -u "$golden/$name" "$work/$name"
}
