# SPDX-License-Identifier: Apache-2.0
# Shares variables with those who source it.
# shellcheck shell=bash disable=SC2034,SC2086,SC2154,SC2317
#
# The stage of scenarios with NRI plugins before a real containerd, for tests to source: crictl ->
# crikeepd -> relay -> containerd -> runc. Before: play.sh, stage.sh, nri-stage.sh.

network=(--host-network)
exit='' options=()

container() { # one that ends by itself, if the stage says so
	local command=''
	[ -z "$exit" ] || command='"command":["/bin/sleep","'$exit'"],'
	cat >"$d/$1-${2:-0}.container" <<-END
		{"metadata":{"name":"$1","attempt":${2:-0}},"image":{"image":"$image"},$command
		"log_path":"$1_${2:-0}.log","linux":{}}
	END
	echo "$d/$1-${2:-0}.container"
}
stage_up() { # stage_up [PARAMETERS [OPTION...]]: parameters as of the simulator
	local word parameters=${1:-}
	[ $# -eq 0 ] || shift
	options=("$@")
	echo 'timeout: 20' >"$d/crictl.yaml"
	"$lab/containerd.sh" start "$d" || return
	relayed=relay
	relay_up relay relay.sock containerd.sock || return
	for word in ${parameters//,/ }; do
		case $word in
		create.sandbox=*) slow "web create $(seconds "$word")" ;;
		create.container=*) relay hold CreateContainer "$(seconds "$word")" ;;
		exit=*) exit=$(seconds "$word") ;;
		esac
	done
	crikeepd_start
}
seconds() { # of WORD=1s or WORD=300ms; longer than the simulator's, because all else is too
	local span=${1#*=}
	case $span in
	*ms) echo 3 ;;
	*s) echo "$((${span%s} + 1))" ;;
	esac
}
newest() { # newest DIR LINE...: the newest containerd is taken, in DIR with these lines for its NRI
	PATH=$tools/containerd:$PATH
	printf '%s\n' '[plugins."io.containerd.nri.v1.nri"]' "${@:2}" >"$1/more.toml"
}
restage() { # crikeepd, from the beginning
	crikeepd_kill
	rm -rf "$d/kept" "$d"/{cri,all,metrics,nri}.sock
	options=("${@:2}")
	crikeepd_start
}
crikeepd_start() {
	"$crikeepd" --runtime="unix://$d/relay.sock" --listen="$d/cri.sock" \
		--unfiltered="$d/all.sock" --metrics= --state-dir="$d/kept" --ttl="$ttl" \
		--hand-back=repeat --set=log.target=stderr \
		--set=nri.enabled=true --set=nri.socket="$d/nri.sock" \
		--set=nri.plugin_dir= --set=nri.config_dir= \
		--set=nri.registration_timeout=30s --set=nri.request_timeout=15s \
		"${options[@]}" 2>>"$d/crikeepd.log" </dev/null &
	crikeepd_pid=$!
	until_ 10 answers
}
unstage() {
	kill -KILL "$crikeepd_pid" "$relay_pid" "${plugin_pids[@]}"
	"$lab/containerd.sh" stop "$d"
}
stop_begun() { grep -q ' StopPodSandbox begin$' "$d/relay.log"; }
has_begun() { grep -q " create $2 $1 .* begin$" "$d/runc/calls.log"; }
