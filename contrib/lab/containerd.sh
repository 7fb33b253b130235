#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A containerd of one's own, with Debian's containerd, runc and busybox-static: socket, root and
# state in DIR, two images made on the spot, runc behind slow-runc.sh, no network but the host's. To
# be run inside isolated.sh.
#
# usage: containerd.sh start DIR   until it answers; again after it was killed. DIR/root may be a
# mount point.
#        containerd.sh stop DIR    containers, daemon, control groups
#
# DIR/more.toml, if there is one, is added to its configuration, and says all of its NRI; without
# one it has none, for there is one NRI socket for all. Another containerd is taken if it stands in
# PATH before Debian's.
#
# DIR/containerd.sock, DIR/pid, DIR/containerd.log; DIR/runc: see slow-runc.sh. Images: lab/pause:1,
# lab/busybox:1. DIR has to be short: a socket's path ends at 107 bytes.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
usage() { echo "usage: $0 start|stop DIR" >&2; exit 2; }
[ $# -eq 2 ] || usage
[ -d "$2" ] || { echo "$0: $2 is no directory" >&2; exit 2; }
dir=$(cd "$2" && pwd)
ctr() { command ctr -a "$dir/containerd.sock" -n k8s.io "$@"; }

prepare() {
	local image
	mkdir -p "$dir"/{root,state,runc/pods,cni,certs}
	cp "$here/slow-runc.sh" "$dir/runc/runc"
	chmod +x "$dir/runc/runc"
	command -v runc >"$dir/runc/real"
	touch "$dir/runc/delays" "$dir/runc/calls.log"
	# A virtual machine may lack CAP_SYS_RESOURCE, hugetlb or AppArmor; none of them matters
	# here.
	cat >"$dir/config.toml" <<-END
		version = 2
		root = "$dir/root"
		state = "$dir/state"
		disabled_plugins = ["io.containerd.snapshotter.v1.aufs",
		  "io.containerd.snapshotter.v1.btrfs",
		  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs",
		  "io.containerd.tracing.processor.v1.otlp", "io.containerd.internal.v1.tracing",
		  "io.containerd.internal.v1.opt"]
		[grpc]
		  address = "$dir/containerd.sock"
		[ttrpc]
		  address = "$dir/containerd.sock.ttrpc"
		[plugins."io.containerd.grpc.v1.cri"]
		  sandbox_image = "docker.io/lab/pause:1"
		  disable_apparmor = true
		  restrict_oom_score_adj = true
		  disable_hugetlb_controller = true
		  tolerate_missing_hugetlb_controller = true
		  netns_mounts_under_state_dir = true
		  stream_server_address = "127.0.0.1"
		  stream_server_port = "0"
		  [plugins."io.containerd.grpc.v1.cri".cni]
		    bin_dir = "$dir/cni"
		    conf_dir = "$dir/cni"
		  [plugins."io.containerd.grpc.v1.cri".registry]
		    config_path = "$dir/certs"
		  [plugins."io.containerd.grpc.v1.cri".containerd]
		    default_runtime_name = "runc"
		    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
		      runtime_type = "io.containerd.runc.v2"
		      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
		        BinaryName = "$dir/runc/runc"
		        Root = "$dir/runc/root"
	END
	[ -f "$dir/more.toml" ] ||
		printf '[plugins."io.containerd.nri.v1.nri"]\n  disable = true\n' >"$dir/more.toml"
	cat "$dir/more.toml" >>"$dir/config.toml"
	for image in pause busybox; do
		"$here/image.sh" "$dir/$image.tar" "docker.io/lab/$image:1"
	done
}

start() {
	local i image
	[ -f "$dir/config.toml" ] || prepare
	setsid containerd -c "$dir/config.toml" >>"$dir/containerd.log" 2>&1 </dev/null &
	echo $! >"$dir/pid"
	for ((i = 0; ; i++)); do
		! ctr --connect-timeout 1s version >/dev/null 2>&1 || break
		if [ "$i" -ge 100 ] || ! kill -0 "$(cat "$dir/pid")" 2>/dev/null; then
			echo 'containerd does not start; its log ends:' >&2
			tail -n 5 "$dir/containerd.log" >&2
			return 1
		fi
		sleep 0.1
	done
	for image in pause busybox; do
		[ ! -f "$dir/$image.tar" ] || ctr images import "$dir/$image.tar" >/dev/null
		rm -f "$dir/$image.tar"
	done
}

stop() {
	local id i group
	# the daemon first, for it would make new things; containers outlive it
	kill "$(cat "$dir/pid")" 2>/dev/null || true
	for ((i = 0; i < 50; i++)); do
		kill -0 "$(cat "$dir/pid")" 2>/dev/null || break
		sleep 0.1
	done
	[ "$i" -lt 50 ] || kill -KILL "$(cat "$dir/pid")" 2>/dev/null || true
	for id in $(runc --root "$dir/runc/root/k8s.io" list -q 2>/dev/null); do
		runc --root "$dir/runc/root/k8s.io" delete -f "$id" >/dev/null 2>&1 || true
	done
	for id in "$dir"/runc/pods/*; do
		for group in /sys/fs/cgroup/k8s.io/"${id##*/}" \
			/sys/fs/cgroup/*/k8s.io/"${id##*/}"; do
			rmdir "$group" 2>/dev/null || true
		done
	done
	# unless others are in there
	rmdir /sys/fs/cgroup/k8s.io /sys/fs/cgroup/*/k8s.io 2>/dev/null || true
}

case $1 in
start | stop) "$1" ;;
*) usage ;;
esac
