#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# tests/run and summary.sh decide what a failure is, so they are tested too: programs that pass,
# fail, skip, crash, hang.
set -u
src=${CK_TEST_SRCDIR:-.}
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
status=0

# expect NAME WANTED-RESULTS < script: what the driver finds in a program, as PASS=n FAIL=n SKIP=n
expect() {
	local got
	{ echo '#!/bin/sh'; cat; } >"$dir/$1"
	chmod +x "$dir/$1"
	CK_TEST_LIMIT=1 CK_TEST_SLOW=1 CK_TEST_WRAP='' sh "$src/tests/run" --test-name "$1" \
		--log-file "$dir/$1.log" --trs-file "$dir/$1.trs" --color-tests no -- "$dir/$1" \
		>"$dir/$1.out"
	got=$(grep -c '^:test-result: PASS' "$dir/$1.trs")
	got="$got $(grep -c '^:test-result: FAIL' "$dir/$1.trs")"
	got="$got $(grep -c '^:test-result: SKIP' "$dir/$1.trs")"
	verdict "$1" "$2" "$got"
}

verdict() { # verdict NAME WANTED GOT
	if [ "$2" = "$3" ]; then
		echo "ok - $1"
	else
		echo "not ok - $1: wanted '$2', got '$3'"
		status=1
	fi
}

# pass, fail, skip
expect script_lines_are_counted '2 0 1' <<'END'
echo 'ok - a'; echo 'ok - b'; echo 'skip - c: no reason'
END
expect cmocka_lines_are_counted_once '2 1 1' <<'END'
echo '[==========] Running 4 test(s).'
echo '[ RUN      ] a'; echo '[       OK ] a'
echo '[ RUN      ] b'; echo '[  SKIPPED ] b'
echo '[ RUN      ] c'; echo '[  FAILED  ] c'
echo '[ RUN      ] d'; echo 'half a line[       OK ] d'
echo '[==========] 4 test(s) run.'
echo '[  PASSED  ] 2 test(s).'
echo '[  SKIPPED ] 1 test(s), listed below:'; echo '[  SKIPPED ] b'
echo '[  FAILED  ] 1 test(s), listed below:'; echo '[  FAILED  ] c'
exit 1
END
expect a_test_without_end_has_failed '0 1 0' <<'END'
echo '[==========] Running 1 test(s).'; echo '[ RUN      ] a'; kill -SEGV $$
END
expect a_crash_after_the_tests_is_a_failure '1 1 0' <<'END'
echo 'ok - a'; kill -ABRT $$
END
expect an_exit_status_is_a_failure '1 1 0' <<'END'
echo 'ok - a'; exit 66
END
expect a_named_failure_is_not_counted_twice '0 1 0' <<'END'
echo 'not ok - a'; exit 1
END
expect no_test_at_all_is_a_failure '0 1 0' <<'END'
:
END
expect a_hang_is_a_failure '1 1 0' <<'END'
echo 'ok - a'; exec sleep 60
END

# ^C ends the test that runs, too, and leaves nothing
cat >"$dir/interrupted" <<'END'
#!/bin/sh
echo "$TMPDIR" >"$0.dir"; echo $$ >"$0.pid.new"; mv "$0.pid.new" "$0.pid"; sleep 20; >"$0.end"
END
chmod +x "$dir/interrupted"
sh "$src/tests/run" --test-name interrupted --log-file "$dir/interrupted.log" \
	--trs-file "$dir/interrupted.trs" -- "$dir/interrupted" &
until [ -s "$dir/interrupted.pid" ]; do sleep 0.05; done
kill -TERM $!
wait $!
verdict an_interrupted_test_is_ended '99 ended gone gone' "$? $(
	[ -e "$dir/interrupted.end" ] && echo 'went on' || echo ended) $(
	kill -0 "$(cat "$dir/interrupted.pid")" 2>/dev/null && echo 'runs on' || echo gone) $(
	[ -e "$(cat "$dir/interrupted.dir")" ] && echo 'is left' || echo gone)"

expect what_a_script_says_of_a_failure_is_no_test '1 1 0' <<'END'
echo 'ok - a'; echo 'not ok - b c'; echo '    it is 1, not 2'; echo '    == a.log ends:'; exit 1
END
expect a_note_is_no_test '1 0 0' <<'END'
echo 'note - n'; echo 'ok - a'
END

# sums DIRECTORY-RELATIVE .trs...: the last line and the exit status
sums() {
	local wanted=$1 name=$2
	shift 2
	(cd "$dir" && "$@") >"$dir/sum"
	verdict "$name" "$wanted" "$? $(tail -n 1 "$dir/sum")"
}
summary=$(cd "$src" && pwd)/tests/summary.sh
sums '0 2 passed, 0 failed, 1 skipped' a_skip_is_fine_at_home \
	env CI= sh "$summary" script_lines_are_counted.trs
sums '1 2 passed, 0 failed, 1 skipped' a_skip_fails_in_ci \
	env CI=true sh "$summary" script_lines_are_counted.trs
sums '1 5 passed, 2 failed, 2 skipped' all_is_added_up \
	env CI= sh "$summary" script_lines_are_counted.trs cmocka_lines_are_counted_once.trs \
	an_exit_status_is_a_failure.trs
sums '1 0 passed, 1 failed, 0 skipped' what_did_not_run_has_failed env CI= sh "$summary" absent.trs
sums '1 0 passed, 0 failed, 0 skipped' nothing_is_not_success env CI= sh "$summary"
sums '1 1 passed, 1 failed, 0 skipped' a_failure_is_told_with_its_reason \
	env CI= sh "$summary" what_a_script_says_of_a_failure_is_no_test.trs
verdict it_stands_below_its_name '    it is 1, not 2' \
	"$(sed -n '/^FAIL: b c$/ { n; p; }' "$dir/sum")"
sums '1 2 passed, 1 failed, 0 skipped' a_note_is_told env CI= sh "$summary" \
	what_a_script_says_of_a_failure_is_no_test.trs a_note_is_no_test.trs
verdict a_failure_is_told_after_all_notes 'NOTE: n FAIL: b c' \
	"$(grep -E '^(NOTE|FAIL): ' "$dir/sum" | paste -sd ' ')"
exit $status
