#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The alerts: promtool reads them and they come when they should; they know no metric that crikeepd
# does not have, and name no command that crikeep does not know.
#
# A && B || C is meant; functions are called by check.
# shellcheck disable=SC1091,SC2015,SC2154,SC2317
set -u
. "$(dirname "$0")/prelude.sh"
rules=$src/contrib/prometheus/crikeep.rules.yaml

# what metrics.c prints, by its own strings and by the cache's counters; a histogram has its buckets
known() {
	grep -o '"crikeepd\?_[a-z_]*"\|"process_[a-z_]*"' "$src/src/daemon/metrics.c" | tr -d '"' |
		sed 'p; s/$/_bucket/'
	sed -n '/define CK_COUNTERS/,/^$/s/^\tX(\([a-z_]*\),.*/crikeep_\1_total/p' \
		"$src/cache/machine/entry.h"
}

# nobody_unknown: a metric has no colon; what a rule records has
nobody_unknown() {
	local unknown
	unknown=$(grep -v '^ *#' "$rules" | grep -o '\bcrikeepd\?_[a-z_]*\|\bprocess_[a-z_]*' |
			sort -u | grep -vxFf <(known))
	[ -z "$unknown" ] || { echo "$unknown"; return 1; }
}

# every alert says what to begin with; of crikeep only commands and options that its help knows
commands_exist() {
	local alerts firsts command options option
	alerts=$(grep -c '^ *- alert:' "$rules") firsts=$(grep -c '^ *first:' "$rules")
	[ "$alerts" -gt 10 ] && [ "$alerts" = "$firsts" ] ||
		{ echo "$alerts alerts, $firsts say what to begin with"; return 1; }
	while read -r command options; do
		"$crikeep" "$command" --help >"$work/help" 2>&1 ||
			{ echo "crikeep $command: no such command"; return 1; }
		for option in $options; do
			case $option in
			--*) ;;
			*) continue ;;
			esac
			grep -qE -- "$option([][ =,]|\$)" "$work/help" ||
				{ echo "crikeep $command $option: no such option"; return 1; }
		done
	done < <(sed -n 's/^ *first: //p' "$rules" | tr ';' '\n' |
			sed -n 's/^ *crikeep \(.*\)/\1/p' | sort -u)
}

# every alert has a runbook: a section of the page, by the anchor that mandoc gives it
runbooks_exist() {
	local unknown
	[ "$(grep -c '^ *- alert:' "$rules")" = "$(grep -c '^ *runbook_url: ' "$rules")" ] ||
		{ echo 'an alert has none'; return 1; }
	unknown=$(sed -n 's/^ *runbook_url: man:crikeep-troubleshooting(7)#//p
			/^ *runbook_url: man:crikeep-troubleshooting(7)#/!s/^ *runbook_url: //p' \
		"$rules" | sort -u | grep -vxFf <(anchors))
	[ -z "$unknown" ] || { echo "no such section: $unknown"; return 1; }
}
anchors() {
	sed -n 's/^\.S[hs] //p' "$src/man/crikeep-troubleshooting.7" | sed 's/"//g; s/ /_/g'
}

check 'alerts know no metric that is not there' nobody_unknown
check 'alerts have runbooks that exist' runbooks_exist
if [ -x "$crikeep" ]; then
	check 'alerts begin with commands that exist' commands_exist
else
	echo 'skip - alerts begin with commands that exist: crikeep is not built'
fi
if command -v promtool >/dev/null; then
	check 'promtool reads the rules' promtool check rules "$rules"
	check 'alerts come when they should, and only then' promtool test rules \
		"${rules%.rules.yaml}.test.yaml"
else
	no='not installed (Debian: prometheus)'
	echo "skip - promtool reads the rules: $no"
	echo "skip - alerts come when they should, and only then: $no"
fi
exit "$failed"
