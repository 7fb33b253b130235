#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The same plugins beside the newest containerd with its own NRI, and beside crikeepd over another
# one whose NRI is off, as root: what they are told of one pod's life, and what they answer, field
# by field. Prints the tables; nri-tap/compare.go lists the differences there are, with the reason
# of each, and any other fails.
#
# CK_NRI_PLUGINS names a directory with further plugins, as NRI's own directory of plugins has them:
# programs called NN-NAME. They need not know anything of this test. A file "annotations" there has
# further annotations of the pod for before_create: "key":"value", ...
#
# usage: test-nri-beside.sh [on_commit|before_create]
#
# A && B || C is meant; shares variables
# shellcheck disable=SC1091,SC2015,SC2034,SC2086,SC2119,SC2120,SC2154,SC2317
set -u

here=$(cd "$(dirname "$0")" && pwd)
scenarios='on_commit before_create'
. "$here/play.sh"
. "$here/stage.sh"
. "$here/nri-stage.sh"
. "$here/nri-containerd.sh"

[ "${1:-}" = inside ] || [ "$(id -u)" -ne 0 ] || need crictl nri nri-tap relay containerd
enter "$@"

on_commit() { beside on-commit; }

before_create() { # what one of them changes is done
	mkdir "$d/own"
	tell 30-adjust 'CreateContainer annotate color=blue' 'CreateContainer env SHADE=dark' \
		"CreateContainer mount $stage_dir /mnt rbind ro" 'CreateContainer shares 77'
	adjusters=(30-adjust)
	notes=$(cat "${CK_NRI_PLUGINS:-/nowhere}/annotations" 2>/dev/null)
	beside before-create
}
adjusters=() notes=''

beside() { # beside MODE
	local name plugins=(10-all)
	mkdir -p "$d/own"
	networked "$d/own"
	networked "$d"
	newest "$d/own" "socket_path = \"$d/own/nri.sock\"" "plugin_path = \"$d/none\"" \
		"plugin_config_path = \"$d/none\""
	"$lab/containerd.sh" start "$d/own" || return
	newest "$d" 'disable = true'
	stage_up '' --set=nri.adjust="$1" || return
	plugins+=("${adjusters[@]}")
	for name in "${CK_NRI_PLUGINS:-/nowhere}"/[0-9][0-9]-*; do
		[ ! -x "$name" ] || plugins+=("${name##*/}")
	done
	for name in "${plugins[@]}"; do
		beside_both "$name"
	done
	check "a pod lives with containerd's own NRI" life own "$d/own"
	check 'and with ours' life cri "$d"
	"$tools/nri-tap" compare "$1" "$d/own" "$d" "${plugins[@]}" 20-late >"$d/table" ||
		echo 'not as expected' >>"$d/table"
	sed '/^not as/d' "$d/table"
	check 'they are told the same, but for what is known' not grep -E 'NOT |not as' "$d/table"
	[ "$1" = on-commit ] || for name in own ours; do
		check "$name: what a plugin changes is done" changed "$d/spec.$name"
	done
}

own() { "$tools/crictl" -c "$d/crictl.yaml" -r "unix://$d/own/containerd.sock" "$@"; }

beside_both() { # a plugin, between each runtime and which stands a tap
	tapped "$1" "$d/own"
	tapped "$1" "$d"
}
tapped() { # tapped NN-NAME DIR
	local program=("${CK_NRI_PLUGINS:-/nowhere}/$1")
	[ -x "${program[0]}" ] || program=("$tools/nri" -script "$d/$1.script" -events all)
	"$tools/nri-tap" run "$2/nri.sock" "$1" "$2/$1.tap" "${program[@]}" 2>>"$2/$1.err" \
		</dev/null &
	plugin_pids+=($!)
	check "${2##*/}: plugin $1 is synchronized" until_ 10 grep -q Synchronize "$2/$1.tap"
}

life() { # life RUNTIME DIR: of a pod with one container; a plugin comes late
	local pod container
	request "$2"
	pod=$("$1" runp "$2/pod") && container=$("$1" create "$pod" "$2/container" "$2/pod") &&
		"$1" start "$container" && tapped 20-late "$2" &&
		past_of "$1" inspect "$container" >"$d/spec.${1/cri/ours}" &&
		"$1" update --cpu-share 512 "$container" && "$1" stop "$container" &&
		"$1" rm "$container" && "$1" stopp "$pod" && "$1" rmp "$pod"
}
past_of() { if [ "$1" = cri ]; then past "${@:2}"; else "$@"; fi; }
changed() {
	grep -q '"color": "blue"' "$1" && grep -q SHADE=dark "$1" && grep -q '"/mnt"' "$1" &&
		grep -q '"shares": 77' "$1"
}

request() { # with something in each field that CRI has for it
	cat >"$1/pod" <<-END
		{"metadata":{"name":"web","namespace":"default","uid":"uid-of-web"},
		"hostname":"web","log_directory":"$1/log",
		"labels":{"app":"web"},"annotations":{"note":"of the pod"${notes:+,$notes}},
		"linux":{"cgroup_parent":"/k8s.io","sysctls":{"net.ipv4.ip_forward":"1"},
		"overhead":{"cpu_shares":11,"memory_limit_in_bytes":11534336},
		"resources":{"cpu_shares":100,"memory_limit_in_bytes":104857600}}}
	END
	cat >"$1/container" <<-END
		{"metadata":{"name":"main"},"image":{"image":"$image"},
		"command":["/bin/tail","-f","/dev/null"],"working_dir":"/tmp",
		"envs":[{"key":"COLOR","value":"red"}],
		"labels":{"part":"main"},"annotations":{"note":"of the container"},
		"mounts":[{"container_path":"/data","host_path":"$1","readonly":true}],
		"devices":[{"container_path":"/dev/nothing","host_path":"/dev/null",
		"permissions":"rwm"}],
		"log_path":"main.log",
		"linux":{"resources":{"cpu_period":100000,"cpu_quota":50000,"cpu_shares":256,
		"memory_limit_in_bytes":52428800,"oom_score_adj":500},
		"security_context":{"run_as_user":{"value":0},
		"capabilities":{"add_capabilities":["NET_ADMIN"]},
		"seccomp":{"profile_type":1}}}}
	END
}

networked() { # networked DIR: pods get an address, if not a network
	mkdir -p "$1/cni"
	cat >"$1/cni/address" <<-'END'
		#!/bin/bash
		cat >/dev/null
		name=eth0 address=10.1.2.3/24
		[ "${0##*/}" != loopback ] || name=lo address=127.0.0.1/8
		case $CNI_COMMAND in
		VERSION) echo '{"cniVersion":"0.4.0",
			"supportedVersions":["0.3.1","0.4.0","1.0.0","1.1.0"]}' ;;
		ADD) echo '{"cniVersion":"0.3.1","interfaces":[{"name":"'$name'",
			"sandbox":"'$CNI_NETNS'"}],"ips":[{"version":"4","interface":0,
			"address":"'$address'"}]}' ;;
		esac
	END
	chmod +x "$1/cni/address"
	cp "$1/cni/address" "$1/cni/loopback"
	echo '{"cniVersion":"0.4.0","name":"lab","plugins":[{"type":"address"}]}' \
		>"$1/cni/10-lab.conflist"
}

unstage() {
	kill -KILL "$crikeepd_pid" "$relay_pid" "${plugin_pids[@]}"
	"$lab/containerd.sh" stop "$d"
	"$lab/containerd.sh" stop "$d/own"
}

play_all
