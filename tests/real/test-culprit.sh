#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Hangs that are made on purpose, behind an unpatched containerd: `crikeep explain` names the true
# cause, and no other, with crikeepd running, frozen, and dead where the cause outlives it. The
# last line counts them.
#
# usage: test-culprit.sh [SCENARIO]
#
# A && B || C is meant; variables are shared with stage.sh.
# shellcheck disable=SC1091,SC2015,SC2016,SC2034,SC2046,SC2086,SC2154,SC2317
set -u

here=$(cd "$(dirname "$0")" && pwd)
scenarios='cni_plugin_sleeps cni_plugin_on_a_frozen_disk cni_plugin_waits_for_a_lock
	cni_lock_of_a_stopped_process cni_plugin_stopped runc_sleeps runc_stopped
	runc_on_a_frozen_disk shim_stopped runtime_stopped runtime_stopped_in_the_network
	runtime_on_a_frozen_disk start_sleeps eviction_sleeps conmon_stopped
	nri_plugin_of_the_runtime_stopped nri_plugin_of_crikeepd_stopped nobody_is_named
	cni_plugin_sleeps_newest runc_sleeps_newest shim_stopped_newest runtime_stopped_newest'
. "$here/play.sh"
. "$here/stage.sh"
read_tree=$build/tests/prog/read-tree
at_once=4

if [ "${1:-}" != inside ] && [ "$(id -u)" -eq 0 ]; then
	need crictl
	tool nri >/dev/null || true # without them, their scenarios are skipped
	tool containerd >/dev/null || true
fi
[ "${1:-}" = inside ] || [ -x "$read_tree" ] || skip_all 'read-tree was not built'
enter "$@"

# ---- what explain says -------------------------------------------------------------------------

runtime=() # further arguments of explain
# of the entry that is under way
explain() {
	"$crikeep" --state-dir="$d/kept" explain "$entry" "${runtime[@]}" -o json \
		2>"$d/explain.err" | "$read_tree" json >"$d/explained"
}
entry=default/web
# names WHAT HANGS NAME [PATH]: and nobody else
named() {
	local what=$1 hangs=$2 name=$3 path=${4:-}
	explain
	cat "$d/explained" "$d/explain.err"
	grep -q "waits_for\[0\].what = \"*$what\"*$" "$d/explained" &&
		[ "$(grep -E 'waits_for\[[0-9]\].what = ' "$d/explained" |
			grep -cvE " = \"?$what\"?$")" = 0 ] &&
		[ "$(grep -E 'waits_for\[[0-9]\].hangs = ' "$d/explained" |
			grep -cvE " = \"?$hangs\"?$")" = 0 ] &&
		grep -qE "waits_for\[0\].processes\[[0-9]\].name = \"?$name\"?$" "$d/explained" &&
		{ [ -z "$path" ] ||
			grep -qE "waits_for\[0\].path = \"?$path" "$d/explained"; }
}
# names WHAT HANGS NAME [PATH]: with crikeepd running, and frozen
names() {
	check "is named" until_ 30 named "$@"
	kill -STOP "$crikeepd_pid"
	check "is named with crikeepd frozen" until_ 10 named "$@"
	kill -CONT "$crikeepd_pid"
}
names_without_owner() {
	crikeepd_kill
	check "is named with crikeepd dead" until_ 10 named "$@"
}

# ---- pods with a network, whose plugin is a script ---------------------------------------------

# network SCRIPT...: what the CNI plugin "slow-net" does before its answer
network() {
	mkdir -p "$d/cni"
	cat >"$d/cni/10-slow.conflist" <<-END
		{"cniVersion":"0.4.0","name":"slow","plugins":[{"type":"slow-net"}]}
	END
	printf '%s\n' '#!/bin/bash' 'answer() { echo "{\"cniVersion\":\"0.4.0\",\"interfaces\":[{' \
		'\"name\":\"eth0\",\"sandbox\":\"$CNI_NETNS\"}],\"ips\":[{\"version\":\"4\",' \
		'\"interface\":0,\"address\":\"10.9.0.5/24\"}],\"dns\":{}}"; }' \
		'[ "$CNI_COMMAND" = ADD ] || exit 0' >"$d/cni/loopback"
	cp "$d/cni/loopback" "$d/cni/slow-net"
	echo answer >>"$d/cni/loopback"
	printf '%s\n' "$@" answer >>"$d/cni/slow-net"
	chmod +x "$d/cni/loopback" "$d/cni/slow-net"
}
# No two scenarios have the same pod: what one leaves running must not be taken for another's.
web() {
	sed "s/uid-of-web/uid-of-${d##*/}/" "$(pod web)" >"$d/web.pod"
	echo "$d/web.pod"
}
networked() { # with a network of its own
	sed 's/"network":2/"network":0/' "$(web)" >"$d/networked.pod"
	echo "$d/networked.pod"
}
disk() { # disk DIR: a file system that can be frozen
	mkdir -p "$1"
	truncate -s 64M "$1.img"
	mkfs.ext4 -q "$1.img" && mount -o loop "$1.img" "$1" ||
		{ echo "skip - $scenario: no loop devices"; return 1; }
}
create() { # in the background
	cri runp -T 100s "$1" >"$d/created" 2>&1 &
	creation=$!
}
pids_of() { # pids_of NAME: in this scenario; its containerd's children
	local pid
	for pid in $(pgrep -x "$1"); do
		tr '\0' '\n' 2>/dev/null <"/proc/$pid/environ" | grep -qF "$d/" ||
			tr '\0' '\n' 2>/dev/null <"/proc/$pid/cmdline" | grep -qF "$d/" &&
			echo "$pid"
	done
}
is_there() { [ -n "$(pids_of "$1")" ]; }
over() { kill $creation 2>/dev/null; wait $creation 2>/dev/null; }

cni_plugin_sleeps() {
	network 'sleep 600'
	stage || return
	create "$(networked)"
	names cni_plugin runs slow-net
	over
}

cni_plugin_on_a_frozen_disk() {
	disk "$d/net" || return
	network "echo x >$d/net/lease"
	stage || return
	fsfreeze -f "$d/net"
	create "$(networked)"
	names cni_plugin disk slow-net "$d/net/lease"
	names_without_owner cni_plugin disk slow-net "$d/net/lease"
	over
	fsfreeze -u "$d/net"
}

locked() { ! flock -n "$d/cni-lock" true; }

cni_plugin_waits_for_a_lock() {
	local keeper
	network "exec 9>$d/cni-lock" 'flock 9'
	stage || return
	flock "$d/cni-lock" sleep 600 &
	keeper=$!
	until_ 10 locked
	create "$(networked)"
	names cni_plugin lock slow-net "$d/cni-lock"
	check 'with who holds it' \
		grep -qx "\[0\].waits_for\[0\].lock_holder.pid = $keeper" "$d/explained"
	over
	kill $(pgrep -P $keeper) $keeper
}

cni_lock_of_a_stopped_process() {
	local keeper
	network "exec 9>$d/cni-lock" 'flock 9'
	stage || return
	flock "$d/cni-lock" sleep 600 &
	keeper=$!
	until_ 10 locked
	kill -STOP $keeper
	create "$(networked)"
	names cni_plugin lock slow-net "$d/cni-lock"
	check 'with its state' grep -qE "lock_holder.state = \"?T" "$d/explained"
	over
	kill -KILL $(pgrep -P $keeper) $keeper
}

cni_plugin_stopped() {
	network 'sleep 600'
	stage || return
	create "$(networked)"
	check 'the plugin runs' until_ 20 is_there slow-net
	kill -STOP $(pids_of slow-net)
	names cni_plugin stopped slow-net
	over
	kill -KILL $(pids_of slow-net)
}

# ---- runc, shim --------------------------------------------------------------------------------

begins() { grep -q " $1 web " "$d/runc/calls.log"; }

runc_sleeps() {
	stage || return
	slow 'web create 600'
	create "$(web)"
	names oci_runtime runs runc
	over
}

runc_stopped() {
	stage || return
	slow 'web create 600'
	create "$(web)"
	check 'runc runs' until_ 20 begins create
	kill -STOP $(pids_of runc)
	names oci_runtime stopped runc
	over
	kill -KILL $(pids_of runc)
}

runc_on_a_frozen_disk() {
	disk "$d/runc/root" || return
	stage || return
	fsfreeze -f "$d/runc/root"
	create "$(web)"
	names oci_runtime disk runc "$d/runc/root"
	names_without_owner oci_runtime disk runc "$d/runc/root"
	over
	fsfreeze -u "$d/runc/root"
}

shim_stopped() {
	local id
	stage || return
	slow 'web create 5'
	create "$(web)"
	check 'runc runs' until_ 20 begins create
	kill -STOP $(pids_of containerd-shim)
	names shim stopped 'containerd-shim.*'
	check 'runc ends' until_ 30 grep -q ' create web .* end=0$' "$d/runc/calls.log"
	names shim stopped 'containerd-shim.*'
	names_without_owner shim stopped 'containerd-shim.*'
	over
	kill -KILL $(pids_of containerd-shim)
}

# ---- the runtime -------------------------------------------------------------------------------

runtime_stopped() {
	stage || return
	slow 'web create 3'
	create "$(web)"
	check 'runc runs' until_ 20 begins create
	kill -STOP "$(cat "$d/pid")"
	check 'runc ends' until_ 30 grep -q ' create web .* end=0$' "$d/runc/calls.log"
	names runtime stopped containerd
	runtime=(--runtime="unix://$d/$socket")
	names_without_owner runtime stopped containerd
	over
	kill -CONT "$(cat "$d/pid")"
}

# it waits for nothing: the plugin has ended
runtime_stopped_in_the_network() {
	network "touch $d/begun" "until [ -e $d/go ]; do sleep 0.1; done"
	stage || return
	create "$(networked)"
	check 'the plugin runs' until_ 20 test -e "$d/begun"
	kill -STOP "$(cat "$d/pid")"
	touch "$d/go"
	names runtime stopped containerd
	over
	kill -CONT "$(cat "$d/pid")"
}

runtime_on_a_frozen_disk() {
	local sandbox
	disk "$d/root" || return
	stage || return
	sandbox=$(cri runp -T 20s "$(web)")
	fsfreeze -f "$d/root"
	cri create -T 100s "$sandbox" "$(container main)" "$(web)" >"$d/created" 2>&1 &
	creation=$!
	entry=2
	names runtime disk containerd "$d/root"
	over
	fsfreeze -u "$d/root"
}

# ---- not only creations of sandboxes -----------------------------------------------------------

start_sleeps() {
	local sandbox id
	stage || return
	sandbox=$(cri runp -T 20s "$(web)")
	id=$(cri create -T 20s "$sandbox" "$(container main)" "$(web)")
	slow 'web create 600'
	cri --timeout=100s start "$id" >"$d/created" 2>&1 &
	creation=$!
	entry=2
	names oci_runtime runs runc
	over
}

eviction_sleeps() {
	local id
	more=(--hand-back=repeat)
	stage || return
	slow 'web create 4'
	cri runp -T 1s "$(web)" >"$d/created" 2>&1
	id=$(first_begun web sandbox)
	check 'the sandbox runs' until_ 30 runs "$id"
	slow 'web kill 600'
	check 'it is kept' until_ 20 kept
	"$crikeep" --state-dir="$d/kept" evict -y default/web >"$d/evicted" 2>&1
	names oci_runtime runs runc
	slow ''
	kill $(pids_of runc)
}
kept() { [[ $("$crikeep" --state-dir="$d/kept" list --state=kept -q) ]]; }

bundle_of_web() { # bundle_of_web DIR: of its sandbox, as CRI-O writes it
	mkdir -p "$1/rootfs"
	cat >"$1/config.json" <<-END
		{"ociVersion":"1.0.0","annotations":{"io.kubernetes.pod.name":"web",
		"io.kubernetes.pod.namespace":"default","io.kubernetes.pod.uid":"uid-of-${d##*/}",
		"io.kubernetes.cri-o.ContainerType":"sandbox"}}
	END
}

# No CRI-O is at hand: its monitor is, and works for a simulated runtime.
conmon_stopped() {
	local id=c0ffee
	command -v conmon >/dev/null || { echo "skip - $scenario: there is no conmon"; return; }
	mkdir -p "$d/runc"
	echo 'timeout: 10' >"$d/crictl.yaml"
	"$crikeep_sim" "listen=$d/$socket,create=600s" 2>"$d/sim.log" &
	echo $! >"$d/pid"
	until_ 10 test -S "$d/$socket" || return
	crikeepd_start || return
	create "$(web)"
	check 'it is being created' until_ 20 being_created
	bundle_of_web "$d/bundle"
	printf '%s\n' '#!/bin/bash' 'sleep 600' >"$d/runc/runc"
	chmod +x "$d/runc/runc"
	conmon -c $id -n k8s_POD_web -u $id -b "$d/bundle" -r "$d/runc/runc" \
		-p "$d/bundle/pid" -l "k8s-file:$d/bundle/log" --exit-dir "$d/bundle" \
		--socket-dir-path "$d/bundle" >"$d/conmon.log" 2>&1 &
	check 'conmon runs' until_ 20 is_there conmon
	names oci_runtime runs runc
	kill -STOP $(pids_of conmon)
	names monitor stopped conmon
	names_without_owner monitor stopped conmon
	over
	kill -KILL $(pids_of conmon) $(pids_of runc)
}
being_created() { [[ $("$crikeep" --state-dir="$d/kept" list --state=creating -q) ]]; }

# ---- plugins -----------------------------------------------------------------------------------

plugin() { # plugin SOCKET: one that takes part in RunPodSandbox; $plugin
	"$tools/nri" -idx 10 -name stopper -socket "$1" -log "$d/plugin.log" \
		-script "$d/plugin.script" >"$d/plugin.err" 2>&1 </dev/null &
	plugin=$!
}

nri_plugin_of_the_runtime_stopped() {
	[ -x "$tools/nri" ] && [ -x "$tools/containerd/containerd" ] || {
		echo "skip - $scenario: the plugin or the newest containerd was not built"
		return
	}
	PATH=$tools/containerd:$PATH
	mkdir -p "$d"
	printf '%s\n' '[plugins."io.containerd.nri.v1.nri"]' 'disable = false' \
		"socket_path = \"$d/nri.sock\"" "plugin_path = \"$d/plugins\"" \
		"plugin_config_path = \"$d/plugins.conf\"" 'plugin_registration_timeout = "30s"' \
		'plugin_request_timeout = "300s"' >"$d/more.toml"
	stage || return
	plugin "$d/nri.sock"
	check 'the plugin is connected' until_ 20 connected
	kill -STOP $plugin
	create "$(web)"
	names nri_plugin stopped nri
	over
	kill -KILL $plugin
}
connected() { grep -q Synchronize "$d/plugin.log"; }

nri_plugin_of_crikeepd_stopped() {
	[ -x "$tools/nri" ] || { echo "skip - $scenario: the plugin was not built"; return; }
	more=(--nri --set=nri.socket="$d/nri.sock" --set=nri.request_timeout=100s)
	stage || return
	plugin "$d/nri.sock"
	check 'the plugin is connected' until_ 20 connected
	kill -STOP $plugin
	create "$(web)"
	names nri_plugin stopped 10-stopper
	over
	kill -KILL $plugin
}

# ---- and nobody --------------------------------------------------------------------------------

unknown() {
	explain
	cat "$d/explained"
	grep -q 'waits_for_unknown = "*unknown' "$d/explained" &&
		! grep -q 'waits_for\[' "$d/explained"
}
is_stopped() { grep -q '^State:.T' "/proc/$1/status"; }
# a runtime that is slow by itself, beside processes of other pods and one that lies
nobody_is_named() {
	local uid=uid-of-${d##*/}
	mkdir -p "$d"
	echo 'timeout: 10' >"$d/crictl.yaml"
	"$crikeep_sim" "listen=$d/$socket,create=600s" 2>"$d/sim.log" &
	echo $! >"$d/pid"
	until_ 10 test -S "$d/$socket" || return
	crikeepd_start || return
	create "$(web)"
	check 'it is being created' until_ 20 being_created
	CNI_COMMAND=ADD CNI_CONTAINERID=c0ffee \
		CNI_ARGS='K8S_POD_NAMESPACE=default;K8S_POD_NAME=web2' sleep 600 &
	others=($!)
	CNI_COMMAND=ADD CNI_CONTAINERID=c0ffee \
		CNI_ARGS='K8S_POD_NAME=web;K8S_POD_NAMESPACE=default;K8S_POD_UID=another' \
		sleep 600 &
	others+=($!)
	# in a process namespace of its own, as a container is
	unshare --pid --fork --kill-child env CNI_COMMAND=ADD CNI_CONTAINERID=c0ffee \
		CNI_ARGS="K8S_POD_NAME=web;K8S_POD_NAMESPACE=default;K8S_POD_UID=$uid" \
		sleep 600 &
	others+=($!)
	# of a user who is not the runtime's
	CNI_COMMAND=ADD CNI_CONTAINERID=c0ffee \
		CNI_ARGS="K8S_POD_NAME=web;K8S_POD_NAMESPACE=default;K8S_POD_UID=$uid" \
		setpriv --reuid=65534 --clear-groups sleep 600 &
	others+=($!)
	bundle_of_web "$d/bundle"
	setpriv --reuid=65534 --clear-groups bash -c 'printf runc >/proc/self/comm
		kill -STOP $$' runc --bundle "$d/bundle" &
	others+=($!)
	check 'a stranger calls itself runc' until_ 10 grep -q runc "/proc/$!/comm"
	# a client of a socket that only looks like the runtime's for plugins
	perl -MIO::Socket::UNIX -e '$server = IO::Socket::UNIX->new(Local => $ARGV[0],
		Listen => 1) or die; $client = $server->accept; sleep 600' "$d/nri.sock" &
	others+=($!)
	check 'and another one listens there' until_ 10 test -S "$d/nri.sock"
	perl -MIO::Socket::UNIX -e '$client = IO::Socket::UNIX->new(Peer => $ARGV[0]) or die;
		kill STOP => $$' "$d/nri.sock" &
	others+=($!)
	check 'somebody has a socket like it' until_ 10 is_stopped $!
	runtime=("--runtime=unix://$d/$socket")
	kill -STOP "${others[0]}"
	check 'is named' until_ 10 unknown
	over
	kill -KILL "${others[@]}"
}

# the newest containerd keeps its bundles, and starts its shims, in its own way
newest() { # newest SCENARIO
	[ -x "$tools/containerd/containerd" ] ||
		{ echo "skip - $scenario: the newest containerd was not built"; return; }
	PATH=$tools/containerd:$PATH
	printf '%s\n' '[plugins."io.containerd.nri.v1.nri"]' 'disable = true' >"$d/more.toml"
	"$1"
}
cni_plugin_sleeps_newest() { newest cni_plugin_sleeps; }
runc_sleeps_newest() { newest runc_sleeps; }
shim_stopped_newest() { newest shim_stopped; }
runtime_stopped_newest() { newest runtime_stopped; }

count() {
	local s hangs=0 n=0
	for s in $wanted; do
		grep -q '^ok - ' "$stage_dir/$s.out" || continue
		hangs=$((hangs + 1))
		grep -q '^not ok' "$stage_dir/$s.out" || n=$((n + 1))
	done
	echo "# of $hangs hangs, $n are named truly"
}
trap count EXIT

play_all
