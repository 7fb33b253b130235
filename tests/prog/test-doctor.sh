#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# crikeep doctor on a node below $root, whose crikeepd and runtime are real, and whose kubelet,
# systemd and files are staged: each finding is made on purpose, and must be named, and no other.
#
# functions are called by check, variables are prelude.sh's:
# shellcheck disable=SC1091,SC2015,SC2034,SC2154,SC2317
set -u

. "$(dirname "$0")/prelude.sh"
# lines are folded, so that the length of the path is seen
rmdir "$work" && work=$(mktemp -d /tmp/ck.XXXXXX) || exit 99
root=$work/node daemon='' sim=''
unset CRIKEEP_STATE_DIR CONTAINER_RUNTIME_ENDPOINT

if [ ! -x "$crikeepd" ]; then
	echo 'skip - doctor: built without crikeepd'
	exit 0
fi
at_end() {
	end daemon
	end sim
}
filter() {
	sed -E -e 's/[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z/TIME/' -e 's/[0-9.]+ ([KMG]i)?B/SIZE/g' \
		-e "s|$work|WORK|g" -e 's/group [0-9]+/group N/' \
		-e 's/crikeepd \(process [0-9]+\)/crikeepd (process N)/'
}

# ---- the node ----------------------------------------------------------------------------------

# file PATH [TEXT]...: a file of the node, with these lines, an hour old
file() {
	local path=$root$1
	shift
	mkdir -p "${path%/*}"
	printf '%s\n' "$@" >"$path"
	touch -d '1 hour ago' "$path"
}
# process PID NAME ARGUMENT...: the node runs it
process() {
	local at=$root/proc/$1
	mkdir -p "$at"
	echo "$2" >"$at/comm"
	awk -v who="$1 ($2)" '{ print who, "S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0",
		int($1 * 100), 0 }' /proc/uptime >"$at/stat"
	shift 2
	printf '%s\0' "$@" >"$at/cmdline"
}
# unit ID LOAD ACTIVE FILE RESULT: as `systemctl show' tells of it, in no order
unit() { printf 'Result=%s\nId=%s\nLoadState=%s\nActiveState=%s\nUnitFileState=%s\n\n' \
	"$5" "$1" "$2" "$3" "$4"; }
cri=unix:///run/crikeep/cri.sock
# whole: a node on which nothing is wrong
whole() {
	rm -rf "${root:?}"/{etc,proc,var,run/systemd}
	file /etc/crikeep/crikeep.yaml 'metrics: /run/crikeep/metrics.sock'
	file /etc/crictl.yaml "runtime-endpoint: $cri"
	file /var/lib/kubelet/config.yaml 'kind: KubeletConfiguration' 'runtimeRequestTimeout: 0s' \
		'containerRuntimeEndpoint: ""'
	process 4242 kubelet /usr/bin/kubelet --config=/var/lib/kubelet/config.yaml --v 2 \
		--container-runtime-endpoint "$cri"
	mkdir -p "$root/run/systemd/system"
	{
		unit crikeepd.service loaded active enabled success
		unit crikeepd.socket loaded inactive disabled success
		unit crikeepd-bypass.socket loaded inactive static success
	} >"$work/units"
}
mkdir -p "$work/bin" "$root/run/containerd" "$root/run/crikeep"
# shellcheck disable=SC2016
printf '#!/bin/sh\ncat "%s"\n' "$work/units" >"$work/bin/systemctl"
chmod +x "$work/bin/systemctl"
PATH=$work/bin:$PATH

"$crikeep_sim" --listen="$root/run/containerd/containerd.sock" -- >/dev/null 2>&1 &
sim=$!
wait_for 100 test -S "$root/run/containerd/containerd.sock"
start() {
	end daemon
	"$crikeepd" --state-dir "$root/run/crikeep" --listen "$root/run/crikeep/cri.sock" \
		--unfiltered "$root/run/crikeep/unfiltered.sock" \
		--metrics "$root/run/crikeep/metrics.sock" --set log.target=stderr \
		--runtime "unix://$root/run/containerd/containerd.sock" 2>>"$work/log" &
	daemon=$!
}
doctor=(doctor --root "$root")
# finds [NAME...]: just these checks, in this order, and what the last of them says has $text
text=''
finds() {
	local want=1 names
	[ $# != 0 ] || want=0
	[ "${warning:-}" = '' ] || want=0
	run $want "${doctor[@]}" -o json || return 1
	names=$(awk -F'"' '/"name":/ { name = $4 } /"result": "w/ { print name }' "$work/out" |
		xargs)
	[ "$names" = "$*" ] && grep -qF -- "$text" "$work/out" || { cat "$work/out"; return 1; }
}
warns() { local warning=yes; finds "$@"; }
# unknown NAME...: just these checks could not be made
unknown() {
	[ "$(awk -F'"' '/"name":/ { name = $4 } /"result": "unknown/ { print name }' "$work/out" |
		xargs)" = "$*" ] || { cat "$work/out"; return 1; }
}

whole
start
check 'a node that is well' wait_for 100 finds
golden doctor 0 "${doctor[@]}"
golden doctor-json 0 "${doctor[@]}" -o json
none() { unknown; }
check 'and nothing is unknown' none

# ---- crikeepd's configuration ------------------------------------------------------------------

file /etc/crikeep/crikeep.yaml 'cache:' '  ttk: 10m'
text="crikeep.yaml:2: cache.ttk: no such key; did you mean"
check 'a configuration that is not valid' finds configuration
without_conf() { unknown configuration_odd cri_socket cri_server unfiltered_socket \
	metrics_socket runtime_socket kubelet_endpoint create_deadline ttl statistics \
	crictl_endpoint; }
check 'then what depends on it is not judged' without_conf
file /etc/crikeep/crikeep.yaml 'confine: false'
text='the daemon keeps all its privileges'
check 'a configuration that is odd' warns configuration_odd
rm "$root/etc/crikeep/crikeep.yaml"
text='so the defaults count'
check 'no configuration' finds
file /tmp/other.yaml 'cache:' '  ttl: 1m'
process 4000 crikeepd /usr/sbin/crikeepd --config /tmp/other.yaml --set cache.ttl=2m
text='kept for 2m'
check 'the command line of crikeepd' finds configuration_odd ttl
text='/tmp/nowhere.yaml: No such file'
wrong_file() {
	local doctor=("${doctor[@]}" --config /tmp/nowhere.yaml)
	finds configuration
}
check 'another file that does not exist' wrong_file

# ---- the state directory -----------------------------------------------------------------------

whole
mode=$(stat -c %a "$root/run/crikeep")
chmod 0772 "$root/run/crikeep"
text='has mode 0772: others can write into it'
check 'a state directory that others can write' finds state_dir
chmod "$mode" "$root/run/crikeep"
file /etc/crikeep/crikeep.yaml 'state_dir: /run/nowhere/state'
text='/run/nowhere does not exist'
check 'one that cannot be created' finds state_dir cri_server owner_stopped
text='does not own'
check 'and somebody else serves then' finds state_dir cri_server owner_stopped
file /run/a-file
file /etc/crikeep/crikeep.yaml 'state_dir: /run/a-file'
text='is not a directory'
check 'one that is a file' finds state_dir cri_server owner_stopped database_unreadable
rm "$root/run/a-file"

# ---- sockets -----------------------------------------------------------------------------------

whole
text=''
mv "$root/run/crikeep/unfiltered.sock" "$root/run/crikeep/away.sock"
check 'a socket that is gone' finds unfiltered_socket
: >"$root/run/crikeep/unfiltered.sock"
text='it is not a socket'
check 'a socket that is a file' finds unfiltered_socket
mv "$root/run/crikeep/away.sock" "$root/run/crikeep/unfiltered.sock"
mode=$(stat -c %a "$root/run/crikeep/cri.sock")
chmod 0666 "$root/run/crikeep/cri.sock"
text='has mode 0666'
check 'a socket that everybody may open' finds cri_socket
unit crikeepd.socket loaded active enabled success >>"$work/units"
text=''
check 'a socket of systemd has the rights of its unit' finds
chmod "$mode" "$root/run/crikeep/cri.sock"
whole
file /etc/crikeep/crikeep.yaml 'metrics_socket:' '  group: 4711'
text='and group 4711'
check 'a socket of another group' finds metrics_socket
whole
mv "$root/run/containerd/containerd.sock" "$root/run/containerd/away.sock"
text='it does not exist'
check 'a runtime without its socket' finds runtime_socket
mv "$root/run/containerd/away.sock" "$root/run/containerd/containerd.sock"

# ---- the kubelet -------------------------------------------------------------------------------

containerd=unix:///run/containerd/containerd.sock
# kubelet ARGUMENT...: so it runs
kubelet() { process 4242 kubelet /usr/bin/kubelet "$@"; }
kubelet --container-runtime-endpoint=$containerd
text='that is the runtime itself'
check 'a kubelet that uses the runtime' finds kubelet_endpoint
golden doctor-endpoint 1 "${doctor[@]}"
kubelet --container-runtime-endpoint=/var/run/crikeep/cri.sock
text=''
check 'a path without unix:// and with /var/run' finds
kubelet
text='its default'
check 'a kubelet without an endpoint' finds kubelet_endpoint
file /etc/kubelet.yaml "containerRuntimeEndpoint: $cri"
kubelet --config /etc/kubelet.yaml
text='from /etc/kubelet.yaml'
check 'an endpoint from --config' finds
file /etc/kubelet.d/20-b.conf '{"containerRuntimeEndpoint": "unix:///b.sock"}'
file /etc/kubelet.d/10-a.conf '{"containerRuntimeEndpoint": "unix:///a.sock"}'
file /etc/kubelet.d/30-c.yaml '{"containerRuntimeEndpoint": "unix:///c.sock"}'
kubelet --config /etc/kubelet.yaml --config-dir=/etc/kubelet.d
text='unix:///b.sock, from /etc/kubelet.d/20-b.conf'
check 'an endpoint from --config-dir' finds kubelet_endpoint
kubelet --config /etc/kubelet.yaml --config-dir=/etc/kubelet.d --container-runtime-endpoint=$cri
text='from its command line'
check 'an option counts more than files' finds
touch -d '1 minute' "$root/etc/kubelet.yaml"
text='was started before /etc/kubelet.yaml was written last'
check 'a kubelet that has not read its file since' warns kubelet_files
rm "$root/proc/4242/stat"
text=''
check 'a kubelet whose start is not known' finds
no_start() { unknown kubelet_files; }
check 'is unknown' no_start
rm -r "$root/proc/4242"
file /var/lib/kubelet/kubeadm-flags.env \
	"KUBELET_KUBEADM_ARGS=\"--v=2 --container-runtime-endpoint=$containerd\""
text='is not running, and would use'
check 'a kubelet that does not run, of kubeadm' finds kubelet_endpoint
file /etc/default/kubelet '# KUBELET_EXTRA_ARGS=--container-runtime-endpoint=unix:///x.sock' \
	"KUBELET_EXTRA_ARGS=--container-runtime-endpoint=$cri"
text='from /etc/default/kubelet'
check 'and the arguments that are added' finds
rm -r "${root:?}"/{var,etc/default}
text=''
check 'no kubelet' finds
no_kubelet() { unknown kubelet_endpoint kubelet_files create_deadline ttl statistics; }
check 'is unknown' no_kubelet
whole
file /var/lib/kubelet/config.yaml 'runtimeRequestTimeout: 10m0s'
text='the runtime may take 15m (cache.create_deadline)'
check 'a kubelet that waits longer than crikeepd' finds create_deadline ttl
file /etc/crikeep/crikeep.yaml 'cache:' '  create_deadline: 40m' '  ttl: 30m'
text='waits up to 20m'
check 'and crikeepd that waits longer still' finds
file /etc/crikeep/crikeep.yaml 'cache:' '  ttl: 4m10s'
whole_ttl() { file /var/lib/kubelet/config.yaml 'runtimeRequestTimeout: 2m'; }
whole_ttl
text='kept for 4m10s'
check 'results that are not kept long enough' finds configuration_odd ttl
whole
kubelet "--container-runtime-endpoint=$cri" --runtime-request-timeout=soon
text='cannot be read'
check 'a timeout that cannot be read' finds
not_read() { unknown create_deadline ttl; }
check 'is unknown, too' not_read
whole
kubelet --container-runtime-endpoint=unix:///run/crio/crio.sock
file /etc/crikeep/crikeep.yaml 'listen: /run/crio/crio.sock'
mkdir -p "$root/run/crio"
ln -f "$root/run/crikeep/cri.sock" "$root/run/crio/crio.sock"
text='because its endpoint ends in run/crio/crio.sock, and the runtime is not CRI-O'
check 'statistics of a runtime that is not CRI-O' warns statistics
golden doctor-statistics 0 "${doctor[@]}"
kubelet --container-runtime-endpoint=unix:///run/crio/crio.sock \
	--feature-gates=A=true,PodAndContainerStatsFromCRI=true,B=false
text='takes them from the runtime'
check 'the feature gate decides' finds
file /var/lib/kubelet/config.yaml 'featureGates:' '  PodAndContainerStatsFromCRI: true'
kubelet --container-runtime-endpoint=unix:///run/crio/crio.sock \
	--config=/var/lib/kubelet/config.yaml
check 'also in the file' finds
whole
file /etc/crictl.yaml "runtime-endpoint: $containerd" 'timeout: 10'
text='can remove what is hidden'
check 'a crictl that goes past crikeepd' warns crictl_endpoint

# ---- systemd -----------------------------------------------------------------------------------

whole
sed -i '1,/^$/{s/=active/=failed/; s/=success/=exit-code/}' "$work/units"
text='crikeepd.service is failed (exit-code)'
check 'a unit that has failed' finds unit
text=': another crikeepd (process '
check 'and an owner that is not of it' finds unit
whole
sed -i '1,/^$/s/=enabled/=disabled/' "$work/units"
text='crikeepd.service is disabled'
check 'a unit that is not enabled' finds unit_enabled
unit crikeepd.socket loaded inactive enabled success >>"$work/units"
text=''
check 'but its socket is' finds
unit crikeepd-bypass.socket loaded active static success >>"$work/units"
text='without crikeepd'
check 'the bypass' finds bypass
unit crikeepd.service not-found inactive '' success >"$work/units"
text='is not installed'
check 'no unit' finds
no_units() { unknown unit unit_enabled bypass; }
check 'is not known' no_units
whole
rm -r "$root/run/systemd"
text='systemd is not running here'
check 'no systemd' finds
check 'is not known, too' no_units

# ---- crikeepd and the owner --------------------------------------------------------------------

whole
text=''
end sim
check 'what status finds' wait_for 100 finds runtime_disconnected
end daemon
check 'a crikeepd that is gone' finds owner_stopped
golden doctor-stopped 1 "${doctor[@]}"
file /etc/crikeep/crikeep.yaml 'runtime: unix:///run/crio/crio.sock'
text='because its endpoint does not end in run/crio/crio.sock, and the runtime is CRI-O'
check 'statistics of CRI-O behind crikeepd' finds statistics owner_stopped
whole
run 1 "${doctor[@]}" -o json
no_daemon() { unknown cri_socket cri_server unfiltered_socket metrics_socket; }
check 'and its sockets' no_daemon
embedded() { # a runtime with libcrikeep owns the state directory
	local owner status
	mkfifo "$work/ready"
	rm -rf "$root/run/crikeep"
	"$build/tests/prog/make-db" "$root/run/crikeep" empty hold >"$work/ready" &
	owner=$!
	read -r _ <"$work/ready"
	finds && grep -q 'the owner is make-db (process' "$work/out"
	status=$?
	end owner
	return "$status"
}
text=''
check 'a runtime with libcrikeep' embedded
unreadable() { # root without its power over modes is like anybody else
	local drop='' status
	[ "$(id -u)" != 0 ] || drop='setpriv --bounding-set=-dac_override,-dac_read_search --'
	chmod 0 "$root/run/crikeep"
	# shellcheck disable=SC2086
	$drop "$crikeep" "${doctor[@]}" >"$work/out" 2>"$work/err"
	status=$?
	chmod 700 "$root/run/crikeep"
	[ "$status" = 2 ] && ! [ -s "$work/out" ] && grep -q 'ermission denied' "$work/err"
}
check 'a directory that may not be read' unreadable
no_root() { # a remedy would be told for files that are not there
	run 2 doctor --root "$work/none" && [ -z "$out" ] &&
		grep -q -- "--root: '$work/none': No such file" "$work/err" &&
		touch "$work/file" && run 2 doctor --root "$work/file" && [ -z "$out" ] &&
		grep -q 'Not a directory' "$work/err"
}
check 'a root that is not there' no_root
narrow() {
	! script -qec "stty cols 80; NO_COLOR=1 $crikeep ${doctor[*]}" /dev/null </dev/null |
		tr -d '\r' | sed "s|$work|WORK|g" | grep -E '.{81}'
}
check 'it fits into 80 columns' narrow

check_json
exit "$failed"
