# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2015,SC2154,SC2317
#
# crikeep-deploy beside a real systemd, a real kubelet and containerd; node.sh sources this. The
# kubelet's pods are files, ten of them. That none is restarted is seen in containerd: the processes
# of all containers stay the same. The emulated kubelet is slow: node.sh plays this only if it is
# asked for by its name, as in `test-node.sh installed deploy purge`.

manifests=/var/lib/kubelet/manifests
kubelet_files=(/etc/systemd/system/kubelet.service /etc/systemd/system/kubelet.service.d
	/etc/default/kubelet /usr/bin/kubelet)

# as kubeadm sets it up; the endpoint stands in the file, and another way to write it in a flag
kubelet_begins() {
	rm -f "$work/times"
	systemctl -q disable --now crikeepd.socket crikeepd.service 2>/dev/null
	delay
	[ ! -d /etc/crikeep ] || echo '# nothing' >/etc/crikeep/crikeep.yaml
	ln -sf /mnt/kubelet /usr/bin/kubelet
	mkdir -p "$manifests" /etc/systemd/system/kubelet.service.d
	cat >/etc/systemd/system/kubelet.service <<-'END'
		[Unit]
		StartLimitIntervalSec=0
		[Service]
		ExecStart=/usr/bin/kubelet
		Restart=always
		RestartSec=10
	END
	cat >/etc/systemd/system/kubelet.service.d/10-kubeadm.conf <<-'END'
		[Service]
		Environment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml"
		EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
		EnvironmentFile=-/etc/default/kubelet
		ExecStart=
		ExecStart=/usr/bin/kubelet $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS \
		  $KUBELET_EXTRA_ARGS
	END
	echo 'KUBELET_EXTRA_ARGS=--hostname-override=n' >/etc/default/kubelet
	printf 'KUBELET_KUBEADM_ARGS="%s %s"\n' --v=2 \
		"--container-runtime-endpoint=unix:///var/run/containerd/containerd.sock" \
		>/var/lib/kubelet/kubeadm-flags.env
	cat >/var/lib/kubelet/config.yaml <<-END
		apiVersion: kubelet.config.k8s.io/v1beta1
		kind: KubeletConfiguration
		staticPodPath: $manifests
		fileCheckFrequency: 5s
		containerRuntimeEndpoint: unix://$runtime
		volumePluginDir: /var/lib/kubelet/plugins
		address: 127.0.0.1
		readOnlyPort: 0
		registerNode: false
		enableControllerAttachDetach: false
		authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
		authorization: {mode: AlwaysAllow}
		cgroupDriver: cgroupfs
		enforceNodeAllocatable: []
		failSwapOn: false
		failCgroupV1: false
		makeIPTablesUtilChains: false
		evictionHard: {memory.available: "0%", nodefs.available: "0%",
		  imagefs.available: "0%", nodefs.inodesFree: "0%"}
		imageGCHighThresholdPercent: 100
	END
	systemctl daemon-reload && systemctl start kubelet.service
}
static_pods() {
	local i
	for i in {0..9}; do
		cat >"/var/lib/kubelet/p$i.yaml" <<-END
			apiVersion: v1
			kind: Pod
			metadata: {name: p$i, namespace: default}
			spec:
			  hostNetwork: true
			  automountServiceAccountToken: false
			  terminationGracePeriodSeconds: 1
			  containers:
			  - {name: c, image: "docker.io/lab/busybox:1", imagePullPolicy: Never,
			     command: [/bin/sleep, infinity]}
		END
		mv "/var/lib/kubelet/p$i.yaml" "$manifests/"
	done
	pause=2 wait_for 600 twenty_run
}
# "ID PID" of each container of the pods p0 to p9, pauses included
running() {
	ctr -n k8s.io tasks ls | awk '$3 == "RUNNING" { print $1, $2 }' | sort
}
twenty_run() { [ "$(running | wc -l)" = 20 ]; }
none_restarted() { ! comm -23 "$work/running" <(running) | grep .; } # others may have come
endpoint_of_kubelet() {
	tr '\0' '\n' <"/proc/$(systemctl show -P MainPID kubelet)/cmdline" |
		sed -n 's/^--container-runtime-endpoint=//p' | tail -n 1
}
straight() {
	is "$(endpoint_of_kubelet)" unix:///var/run/containerd/containerd.sock &&
		! active crikeepd.service && ! active crikeepd.socket &&
		! active crikeepd-bypass.service && ! systemctl -q is-enabled crikeepd.service &&
		! find /etc/systemd /var/lib/crikeep* -path '*crikeep*' 2>/dev/null | grep .
}
round() {
	crikeep-deploy enable --watch=5s && is "$(endpoint_of_kubelet)" "unix://$socket" &&
		crikeep-deploy status && none_restarted && crikeep-deploy disable && straight &&
		none_restarted
}
# rounds N COMMAND: which leaves the node as it was, and no container restarted
rounds() {
	local i began=$SECONDS
	for ((i = 1; i <= $1; i++)); do
		"$2" || { echo "round $i"; return 1; }
	done
	echo "# $1 rounds: $((SECONDS - began)) s," \
		"$(none_restarted | wc -l) of $(wc -l <"$work/running") processes restarted" |
		tee -a "$work/times"
}
# a pod that is added while crikeepd is there, and outlives it
comes_and_stays() {
	crikeep-deploy enable --watch=5s &&
		sed 's/name: p0/name: late/' "$manifests/p0.yaml" >/var/lib/kubelet/late.yaml &&
		mv /var/lib/kubelet/late.yaml "$manifests/" && pause=2 wait_for 120 late_runs &&
		[ "$(crikeep list -a -q | wc -l)" -gt 0 ] || return
	running >"$work/running"
	crikeep-deploy disable && straight && none_restarted
}
late_runs() { [ "$(running | wc -l)" = 22 ]; }

# put_back TEXT COMMAND...: which breaks something while enable watches. It must notice that, and
# need 10 s at most from then on. $option is one of enable, $ends what holds afterwards.
put_back() {
	local text=$1 noticed took p status
	shift
	: >"$work/enable"
	crikeep-deploy enable ${option:+"$option"} --watch=300s >"$work/enable" 2>&1 &
	p=$!
	if ! wait_for 300 grep -q Watching "$work/enable" || ! "$@" ||
		! wait_for 60 grep -q 'cannot stay\|change failed' "$work/enable"; then
		cat "$work/enable"
		return 1
	fi
	noticed=${EPOCHREALTIME/./}
	wait $p
	status=$?
	took=$(((${EPOCHREALTIME/./} - noticed) / 1000))
	cat "$work/enable"
	echo "# put back $took ms after it was noticed" | tee -a "$work/times"
	is $status 3 && grep -q "$text" "$work/enable" && [ $took -le 10000 ] &&
		"${ends[@]:-straight}" && none_restarted
}
breaks_configuration() {
	echo 'no_such_key: 1' >/etc/crikeep/crikeep.yaml
	kill -9 "$(main_pid)"
}
bad_configuration_is_put_back() {
	put_back 'crikeepd' breaks_configuration
	local status=$?
	echo '# nothing' >/etc/crikeep/crikeep.yaml
	return $status
}
missing_program_is_put_back() {
	put_back 'crikeepd' break_it
	local status=$?
	mv /usr/sbin/crikeepd.away /usr/sbin/crikeepd
	return $status
}
crash_is_put_back() { put_back 'crikeepd' crash; }
crash() { kill -SEGV "$(main_pid)"; }
# change_is_put_back SHADOW OPTION: from counting, which is 1, or from full use, which is 0
change_is_put_back() {
	local option=$2 ends=(as_it_was "$1")
	put_back 'crikeepd' crash
}
as_it_was() {
	crikeep-deploy status && counts "$1" && is "$(endpoint_of_kubelet)" "unix://$socket"
}
counts() { crikeep exporter --once | grep -x "crikeepd_shadow $1"; }
count_first() { crikeep-deploy enable --shadow --watch=2s && as_it_was 1 && none_restarted; }
full_use() { crikeep-deploy enable --watch=2s && as_it_was 0 && none_restarted; }
off() { crikeep-deploy disable && straight && none_restarted; }
deploy_is_killed() { # with the kubelet's file written, and no watch
	crikeep-deploy enable --watch=300s >"$work/enable" 2>&1 &
	wait_for 300 grep -q Watching "$work/enable" && kill -9 $! || return
	! crikeep-deploy status && crikeep-deploy enable --watch=2s && crikeep-deploy status &&
		none_restarted && crikeep-deploy disable && straight && none_restarted
}
# ---- the image -----------------------------------------------------------------------------------

# The pod of contrib/deploy/kustomize as a file, and its name is that of the DaemonSet. It is the
# next one whenever the file changes.
pod_of_image() { # pod_of_image VERB: made, and ready
	local since=$EPOCHSECONDS
	sed 's/^\( *\)- enable$/&\n\1- --watch=5s/' "/mnt/$1.yaml" >"/var/lib/kubelet/$1.yaml" &&
		mv "/var/lib/kubelet/$1.yaml" "$manifests/crikeep-node.yaml" &&
		pause=1 wait_for 600 pod_is_ready "$1" "$since" || {
		pgrep -fa crikeep-node
		journalctl -q -u kubelet --since "@$since" | grep crikeep-node | tail -n 15
		return 1
	}
}
pod_is_ready() { # its program says so, and the kubelet has heard it
	local p
	p=$(pgrep -of "^/bin/sh /usr/local/sbin/crikeep-node $1") &&
		[ -e "/proc/$p/root/run/crikeep-node.ready" ] &&
		journalctl -q -u kubelet --since "@$2" |
		grep 'readiness" status="ready" pod="crikeep/crikeep-node-'
}
pod_round() {
	pod_of_image enable && is "$(endpoint_of_kubelet)" "unix://$socket" &&
		crikeep-deploy status && none_restarted &&
		pod_of_image disable && straight && none_restarted
}
image() {
	if ! ls /mnt/kubelet /mnt/crikeep-node.tar /mnt/enable.yaml >/dev/null; then
		echo 'skip - the image: no kubelet, no kustomize, or no buildah'
		return
	fi
	check 'a kubelet runs' kubelet_begins
	check 'ten static pods run' static_pods || { journalctl -u kubelet | tail -n 30; return; }
	running >"$work/running"
	check 'the image is imported' ctr -n k8s.io images import /mnt/crikeep-node.tar
	check "its pod, on and off, ${deploy_rounds:-2} times: no container is restarted" \
		rounds "${deploy_rounds:-2}" pod_round
	cat "$work/times" 2>/dev/null
	check 'the kubelet goes' kubelet_ends
}

kubelet_ends() {
	rm -f "$manifests"/*
	pause=2 wait_for 120 none_runs
	systemctl stop kubelet.service
	rm -rf "${kubelet_files[@]}"
	findmnt -rno TARGET | grep ^/var/lib/kubelet | xargs -r umount
	rm -rf --one-file-system /var/lib/kubelet
	systemctl daemon-reload
}
none_runs() { [ "$(running | wc -l)" = 0 ]; }
deploy() {
	if [ ! -x /mnt/kubelet ]; then
		echo 'skip - crikeep-deploy: no kubelet could be built'
		return
	fi
	check 'a kubelet runs' kubelet_begins
	check 'ten static pods run' static_pods || { journalctl -u kubelet | tail -n 30; return; }
	running >"$work/running"
	check "on and off, ${deploy_rounds:-5} times: no container is restarted" \
		rounds "${deploy_rounds:-5}" round
	check 'a pod that is made meanwhile stays' comes_and_stays
	check 'a configuration that breaks is put back' bad_configuration_is_put_back
	check 'a program that is removed is put back' missing_program_is_put_back
	check 'a crash is put back' crash_is_put_back
	check 'kill -9 of crikeep-deploy: enable goes on' deploy_is_killed
	check 'it only counts' count_first
	check 'a crash while it is to become full use: it counts again' change_is_put_back 1 ''
	check 'full use' full_use
	check 'a crash while it is only to count: full use again' change_is_put_back 0 --shadow
	check 'off' off
	cat "$work/times" 2>/dev/null
	check 'the kubelet goes' kubelet_ends
	systemctl enable --now crikeepd.socket crikeepd.service
}
