#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A real Prometheus scrapes a crikeepd before its simulated runtime through crikeep exporter, with
# the alerts of contrib/prometheus. An alert fires, and every query of the dashboard has an answer.
# It takes some 30 s, as Prometheus has no clock that could be set. CK_TEST_PICTURE=FILE lets
# gnuplot draw the dashboard.
#
# Functions are called by check, variables are prelude.sh's:
# shellcheck disable=SC1091,SC2015,SC2016,SC2034,SC2154,SC2317
set -u

. "$(dirname "$0")/prelude.sh"
daemon='' exporter='' prometheus='' plugin='' clients=()
at_end() {
	[ ${#clients[@]} -eq 0 ] || kill "${clients[@]}" 2>/dev/null
	end plugin
	end daemon
	end exporter
	end prometheus
}
dashboard=$src/contrib/grafana/crikeep.json
run=$work/run socket=$work/cri.sock
for tool in prometheus python3; do
	if ! command -v $tool >/dev/null; then
		echo "skip - dashboard: no $tool (Debian: $tool)"
		exit 0
	fi
done
if [ ! -x "$crikeepd" ] || ! "$crikeep" exporter --help >/dev/null 2>&1; then
	echo 'skip - dashboard: built without crikeepd or without libmicrohttpd'
	exit 0
fi

# ---- the three of them -------------------------------------------------------------------------

says_where() { # says_where LOG PATTERN: sets $where to the port that is in the log
	where=$(sed -n "s/.*$2.*/\1/p" "$1" | tail -n 1)
	[ -n "$where" ]
}
start_daemon() {
	"$crikeepd" --runtime=sim:create.sandbox=1500ms,create.container=300ms,fail.container=2 \
		--state-dir="$run" --listen="$socket" --unfiltered= --metrics="$work/metrics.sock" \
		--set cache.hand_back=repeat --nri --nri-socket="$work/nri.sock" \
		--nri-plugin-dir= >>"$work/daemon.log" 2>&1 &
	daemon=$!
}
start_exporter() {
	"$crikeep" exporter --listen :0 --socket "$work/metrics.sock" 2>"$work/exporter.log" &
	exporter=$!
	wait_for 100 says_where "$work/exporter.log" 'http:\/\/127.0.0.1:\([0-9]*\)\/metrics'
}
start_prometheus() {
	cat >"$work/prometheus.yml" <<-END
		global: {scrape_interval: 1s, evaluation_interval: 1s}
		rule_files: ["$src/contrib/prometheus/crikeep.rules.yaml"]
		scrape_configs:
		  - job_name: crikeep
		    static_configs: [{targets: ["127.0.0.1:$where"]}]
	END
	prometheus --config.file="$work/prometheus.yml" --storage.tsdb.path="$work/tsdb" \
		--web.listen-address=127.0.0.1:0 >"$work/prometheus.log" 2>&1 &
	prometheus=$!
	wait_for 200 says_where "$work/prometheus.log" 'Listening on.*127.0.0.1:\([0-9]*\)' ||
		{ cat "$work/prometheus.log"; return 1; }
	server=http://127.0.0.1:$where
}
# asked PATH [QUERY]: what Prometheus answers
asked() {
	python3 - "$server/api/v1/$1" "${2:-}" <<-'END'
		import sys, urllib.parse, urllib.request
		query = "?" + urllib.parse.urlencode({"query": sys.argv[2]}) if sys.argv[2] else ""
		print(urllib.request.urlopen(sys.argv[1] + query, timeout=20).read().decode())
	END
}
holds() { asked query "$1" | grep -q '"value":'; }

# ---- what happens to the node ------------------------------------------------------------------

# three restarts, each of which Prometheus sees
restarted() {
	local i
	wait_for 100 holds process_start_time_seconds || return
	for i in 1 2 3; do
		end daemon
		start_daemon
		wait_for 150 holds "changes(process_start_time_seconds[15m]) >= $i" || return
	done
}
has_plugin() { "$crikeep" plugins --state-dir "$run" -q | grep -q 10-net; }
with_plugin() {
	"$build/tests/prog/plugin" "$work/nri.sock" 10-net agrees &
	plugin=$!
	wait_for 100 has_plugin
}
asks() {
	"$crikeep" drive --endpoint "unix://$socket" --namespace prod --host-network "$@" \
		>>"$work/asked" 2>&1
}
# pods of a busy node: some wait long enough, some have to ask again
load() {
	local i
	clients=()
	for i in 1 2 3 4; do
		asks --pod "slow-$i" --uid "slow-$i" --container app --image app:1 \
			--deadline 600ms --retry 300ms &
		clients+=($!)
		asks --pod "patient-$i" --uid "patient-$i" --container app --image app:1 \
			--deadline 9s &
		clients+=($!)
		sleep 2
	done
	wait "${clients[@]}"
}
# kept NAME: asked for once, and late
kept() {
	asks --pod "$1" --uid "$1" --deadline 300ms --give-up 10ms
	wait_for 100 is_kept "$1"
}
is_kept() { "$crikeep" list --state-dir "$run" --state kept | grep -q "$1"; }
# one is no longer what is wanted; and what nobody asks for again is evicted
given_up() {
	kept other && asks --pod other --uid other --runtime-handler other --deadline 9s &&
		kept lonely &&
		"$crikeep" explain --state-dir "$run" prod/lonely &&
		"$crikeep" evict --state-dir "$run" --yes prod/lonely
}
lived() {
	local bad=0
	load || bad=1
	given_up || bad=1
	return "$bad"
}

# ---- what Prometheus makes of it ---------------------------------------------------------------

saved() {
	wait_for 100 holds 'crikeep_saved_total{kind="sandbox"} >= 4' &&
		holds 'crikeep_saved_seconds_total{kind="sandbox"} >= 6' &&
		holds 'crikeepd_runtime_create_seconds_count{kind="container"} >= 8' &&
		holds 'sum(crikeep_changed_total) >= 1'
}
# with the first command and the section of the manual
fires() {
	wait_for 100 holds 'ALERTS{alertname="CrikeepdRestarting", alertstate="firing"}' &&
		asked alerts | python3 -c '
import json, sys
alert = [a for a in json.load(sys.stdin)["data"]["alerts"]
         if a["labels"]["alertname"] == "CrikeepdRestarting"][0]
notes = alert["annotations"]
print(notes)
sys.exit("was started 3 times" not in notes["summary"] or
         notes["runbook_url"].split("#")[0] != "man:crikeep-troubleshooting(7)" or
         not notes["first"].startswith("journalctl"))'
}
answers() {
	python3 "$src/tests/prog/dashboard.py" "$server" "$dashboard" "$since" \
		${CK_TEST_PICTURE:+"$CK_TEST_PICTURE"}
}
# the queries have no data source and no node of their own
names_none() {
	! grep -o '"uid": "[^"]*"' "$dashboard" | grep -v '"${datasource}"\|"crikeep"' &&
		! grep '"expr"' "$dashboard" | grep -v 'instance=~\\"$instance\\"'
}

since=$(date +%s)
start_daemon
check 'crikeep exporter serves' start_exporter
check 'Prometheus starts, and reads the alerts' start_prometheus
check 'crikeepd is restarted three times' restarted
check 'a plugin connects' with_plugin
check 'pods are created, late and in time' lived
check 'what was saved is counted' saved
check 'an alert fires, with what to do first' fires
check 'the dashboard names no data source' names_none
check 'every query of the dashboard has an answer' answers
[ -z "${CK_TEST_VERBOSE:-}" ] || cat "$work/said" "$work/asked"
exit "$failed"
