# SPDX-License-Identifier: Apache-2.0
# A && B || C is meant; shares variables with those who source it.
# shellcheck shell=bash disable=SC2015,SC2034,SC2086,SC2154
#
# A node, for tests to source: kubelet -> crikeepd [-> relay] -> containerd -> runc. The kubelet has
# no API server: its pods are files in a directory. They have the host's network, and the name of
# their file, with the node's name after it.
#
# Before: play.sh, stage.sh; $d, $port.

timeout=5s # runtimeRequestTimeout; RunPodSandbox gets twice that
kubelet_pid=''

# One kubelet per directory under each controller. It kills what is left in a pod's group.
group() { echo "ck-${d##*/}"; }
groups_up() {
	local controller f
	for controller in blkio cpu cpuacct cpuset devices freezer memory pids systemd; do
		mkdir -p "/sys/fs/cgroup/$controller/$(group)" || return
	done
	for f in cpuset.cpus cpuset.mems; do
		cat "/sys/fs/cgroup/cpuset/$f" >"/sys/fs/cgroup/cpuset/$(group)/$f" || return
	done
}
groups_down() {
	find /sys/fs/cgroup/*/"$(group)" -depth -type d -exec rmdir {} \; 2>/dev/null
}

# What every kubelet writes to, whatever its directories are: files of our own, for all of them.
node_prepare() {
	local f n=0
	mount -t tmpfs none /var/log && mount -t tmpfs none /var/lib || return
	for f in vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1 \
		kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000; do
		n=$((n + 1))
		echo "${f#*=}" >"$stage_dir/sysctl.$n"
		mount --bind "$stage_dir/sysctl.$n" "/proc/sys/${f%=*}" || return
	done
}

kubelet_up() { # kubelet_up SOCKET
	mkdir -p "$d"/{manifests,kubelet,plugins,podlogs}
	cat >"$d/kubelet.yaml" <<-END
		apiVersion: kubelet.config.k8s.io/v1beta1
		kind: KubeletConfiguration
		staticPodPath: $d/manifests
		fileCheckFrequency: 1s
		runtimeRequestTimeout: $timeout
		containerRuntimeEndpoint: unix://$1
		imageServiceEndpoint: unix://$1
		podLogsDir: $d/podlogs
		volumePluginDir: $d/plugins
		address: 127.0.0.1
		port: $port
		readOnlyPort: 0
		healthzPort: 0
		registerNode: false
		enableControllerAttachDetach: false
		authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
		authorization: {mode: AlwaysAllow}
		failCgroupV1: false
		cgroupDriver: cgroupfs
		cgroupRoot: /$(group)
		enforceNodeAllocatable: []
		failSwapOn: false
		oomScoreAdj: 0
		makeIPTablesUtilChains: false
		evictionHard: {memory.available: "0%", nodefs.available: "0%",
		  imagefs.available: "0%", nodefs.inodesFree: "0%"}
		imageGCHighThresholdPercent: 100
	END
	TZ=UTC setsid "$tools/kubelet" --config="$d/kubelet.yaml" --root-dir="$d/kubelet" \
		--cert-dir="$d/pki" --hostname-override=n --v=4 --vmodule=remote_runtime=10 \
		>>"$d/kubelet.log" 2>&1 </dev/null &
	kubelet_pid=$!
	until_ 60 listens
}
listens() { (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null; }
kubelet_says() { curl -sk --http1.1 --max-time 5 "https://127.0.0.1:$port/$1" "${@:2}"; }
kubelet_kill() {
	kill -KILL "$kubelet_pid"
	wait "$kubelet_pid" 2>/dev/null
}

# static_pod NAME [FIELDS [FIELDS]]: of its container, in YAML's flow style; and of the pod
static_pod() {
	cat >"$d/$1.yaml" <<-END
		apiVersion: v1
		kind: Pod
		metadata: {name: $1, namespace: default}
		spec:
		  hostNetwork: true
		  automountServiceAccountToken: false
		  terminationGracePeriodSeconds: 1
		  containers:
		  - {name: c, image: "docker.io/lab/busybox:1", imagePullPolicy: Never${2:+, $2}}
		${3:+  $3}
	END
	mv "$d/$1.yaml" "$d/manifests/$1.yaml" # at once: the kubelet reads the directory
}

unstage() {
	[ -z "$kubelet_pid" ] || kill -KILL "$kubelet_pid" 2>/dev/null
	[ -z "${crikeepd_pid:-}" ] || kill -KILL "$crikeepd_pid" 2>/dev/null
	"$lab/containerd.sh" stop "$d"
	groups_down
}

# ---- what was asked for, and done --------------------------------------------------------------

asked() { grep -c "RemoteRuntimeService\] $1\" " "$d/kubelet.log"; }
# runc_did VERB KIND EVENT: how often, over all pods
runc_did() {
	awk -v verb="$1" -v kind="$2" -v event="$3" \
		'$2 == verb && $4 == kind && $6 == event { n++ } END { print n + 0 }' \
		"$d/runc/calls.log"
}
up() { [ "$(runc_did start container end=0)" -ge "$1" ]; } # up N: containers were started
# the kubelet's own count, of the container that had most
restart_count() {
	past ps -a -o json | sed -n 's/.*container.restartCount": *"\([0-9]*\)".*/\1/p' |
		sort -n | tail -n 1
}
# for each late sandbox that the kubelet knew in the end: seconds from its start until it is first
# named in what the runtime answers to the kubelet, RunPodSandbox or a list, or the kubelet asks it
handed_over() {
	awk '
	FILENAME ~ /calls.log$/ {
		if ($4 != "sandbox")
			next
		if ($2 == "create" && $6 == "begin")
			began[$5] = $1
		if ($2 == "start" && $6 == "end=0" && $1 - began[$5] > 5)
			exists[$5] = $1 % 86400
		next
	}
	/RemoteRuntimeService/ {
		for (id in exists) {
			if (!index($0, id))
				continue
			split($2, t, ":")
			printf "%.2f\n", t[1] * 3600 + t[2] * 60 + t[3] - exists[id]
			delete exists[id]
		}
	}' "$d/runc/calls.log" "$d/kubelet.log"
}
