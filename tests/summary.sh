#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# usage: summary.sh FILE.trs... - the end of `make check`: what was skipped; what a test noted
# ("note - text" in its log); after all of these what failed, how its log ends, and the first lines
# that a script says of it; and on the last line how many single tests passed, failed and were
# skipped. Exit 1 if any failed, if there was none at all, and with CI=true if any was skipped: a
# machine of CI has what tests need.
set -u

# said_of TEST LOG: the indented lines below its "not ok"
said_of() {
	awk -v line="not ok - $1" '
	said && /^    / && said++ <= 8 { print; next }
	{ said = $0 == line }' "$2"
}

for trs in "$@"; do
	[ -f "$trs" ] || continue
	sed -n 's/^:test-result: SKIP /SKIP: /p' "$trs"
	[ ! -f "${trs%.trs}.log" ] || sed -n 's/^note - /NOTE: /p' "${trs%.trs}.log"
done

passed=0 failed=0 skipped=0
for trs in "$@"; do
	if [ ! -f "$trs" ]; then
		echo "FAIL: ${trs%.trs}: it did not run"
		failed=$((failed + 1))
		continue
	fi
	passed=$((passed + $(grep -c '^:test-result: PASS' "$trs")))
	skipped=$((skipped + $(grep -c '^:test-result: SKIP' "$trs")))
	n=$(grep -c '^:test-result: FAIL' "$trs")
	failed=$((failed + n))
	if [ "$n" -gt 0 ]; then
		echo "---- ${trs%.trs}.log ends:"
		tail -n 40 "${trs%.trs}.log"
		echo '----'
		sed -n 's/^:test-result: FAIL //p' "$trs" | while IFS= read -r name; do
			echo "FAIL: $name"
			[ ! -f "${trs%.trs}.log" ] || said_of "$name" "${trs%.trs}.log"
		done
	fi
done

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ $((passed + skipped)) -gt 0 ] && { [ "${CI:-}" != true ] ||
	[ "$skipped" -eq 0 ]; }
