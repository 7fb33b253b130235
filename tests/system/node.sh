#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What is played inside the machine that test-system.sh boots, as root, beside a real systemd and
# Debian's containerd, whose runc is slow where $slow/delays says so. /mnt holds this script and the
# packages. The last line is "end".
#
# Under qemu, times are those of the emulated clock, which counts instructions: one needs 2 ns. What
# is idle passes in real time, which load on the emulating machine stretches; so where times are
# taken, the emulated machine is never idle.
#
# A && B || C is meant; check calls functions.
# shellcheck disable=SC1091,SC2015,SC2034,SC2317
set -u

export LC_ALL=C.UTF-8 TZ=UTC DEBIAN_FRONTEND=noninteractive HOME=/root
work=/tmp/node slow=/opt/slow
socket=/run/crikeep/cri.sock runtime=/run/containerd/containerd.sock
taken=- left=-
mkdir -p "$work" "$slow/pods"

check() { # check NAME COMMAND...: the command succeeds
	local name=$1 status=0
	shift
	if "$@" >"$work/said" 2>&1; then
		echo "ok - $name"
	else
		status=1
		echo "not ok - $name"
		tail -n 20 "$work/said" | cut -c 1-200 | sed 's/^/    /'
		journalctl -q --no-pager -n 25 -o short-monotonic -u 'crikeepd*' 2>&1 |
			cut -c 1-200 | sed 's/^/    | /'
	fi
	return $status
}
is() { [ "$1" = "$2" ] || { echo "'$1', not '$2'"; return 1; }; }
# wait_for SECONDS COMMAND...
wait_for() {
	local until=$((${EPOCHREALTIME/./} + $1 * 1000000))
	shift
	until "$@" >/dev/null 2>&1; do
		[ "${EPOCHREALTIME/./}" -lt $until ] || { echo "in vain: $*"; return 1; }
		sleep "${pause:-0.1}"
	done
}
timed() { # timed COMMAND...: something else computes whenever it waits
	local status=0 computes
	[ ! -e /run/systemd/container ] || { "$@"; return; }
	chrt --idle 0 bash -c 'while :; do :; done' &
	computes=$!
	"$@" || status=$?
	{ kill $computes && wait $computes; } 2>/dev/null
	return $status
}
main_pid() { systemctl show -P MainPID crikeepd; }
kill_it() {
	local pid
	pid=$(main_pid)
	[ "$pid" -gt 0 ] && kill -9 "$pid"
}
active() { systemctl -q is-active "$@"; }
delay() { printf '%s\n' "$@" >"$slow/delays"; } # delay 'POD VERB SECONDS'...
creations() { grep -c " create $1 $2 .* begin$" "$slow/calls.log"; } # creations POD KIND

drive() { crikeep drive --host-network --give-up 120s "$@"; }
pods() { crikeep pods --no-trunc -q --timeout 2s "$@"; }
runtime_pods() { pods -a --endpoint "unix://$runtime"; }
of_pod() { runtime_list | awk -v pod="$1" '$2 == pod { print $1 }'; } # of_pod NAME: its ids
runtime_list() { # "ID NAME" of each sandbox
	awk '$2 == "create" && $6 == "end=0" { print $5, $3 }' "$slow/calls.log" |
		grep -F "$(runtime_pods)"
}

# ---- the machine ---------------------------------------------------------------------------------

furnish() {
	local image
	echo '127.0.0.1 localhost' >/etc/hosts # containers get a copy
	cp /mnt/slow-runc.sh "$slow/runc" && chmod +x "$slow/runc" &&
		command -v runc >"$slow/real" && touch "$slow/delays" "$slow/calls.log" || return
	cat >/etc/containerd/config.toml <<-END
		version = 2
		[plugins."io.containerd.grpc.v1.cri"]
		  sandbox_image = "docker.io/lab/pause:1"
		  restrict_oom_score_adj = true
		  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
		    runtime_type = "io.containerd.runc.v2"
		    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
		      BinaryName = "$slow/runc"
	END
	systemctl restart containerd && wait_for 60 ctr version || return
	for image in pause busybox; do
		ctr -n k8s.io images import "/mnt/$image.tar" || return
	done
}
is_a_node() {
	is "$(cat /proc/1/comm)" systemd && grep -q landlock /sys/kernel/security/lsm || return
	[ -e /run/systemd/container ] || is "$(stat -f -c %T /sys/fs/cgroup)" cgroup2fs
}

# every file there is, without what apt, dpkg and the journal keep for themselves
everything() {
	find / -xdev \( -path /var/lib/apt -o -path /var/lib/dpkg -o -path /var/lib/containerd \
		-o -path /var/backups -o -path /var/cache -o -path /var/log -o -path /tmp \
		-o -path /mnt -o -path "$slow" -o -path /var/lib/systemd \) -prune -o -print | sort
}

# ---- installed and enabled -----------------------------------------------------------------------

install() { apt-get -qy -o Dpkg::Use-Pty=0 install "$@"; }
nothing_began() {
	! active crikeepd.service && ! active crikeepd.socket && ! active crikeepd-bypass.socket &&
		! find /etc/systemd /run -name '*crikeep*' | grep .
}
served() { # by crikeepd, and not by the bypass
	pods && active crikeepd.service && ! active crikeepd-bypass.service
}
enabled() { # crikeep drive adopts nothing from lists
	echo 'cache: {hand_back: repeat}' >/etc/crikeep/crikeep.yaml
	systemctl enable --now crikeepd.socket crikeepd.service && served
}
confined() {
	journalctl -q -u crikeepd -o cat | grep -i landlock &&
		grep -q '^CapEff:\s*0*$' "/proc/$(main_pid)/status" &&
		grep -q '^Seccomp:\s*2$' "/proc/$(main_pid)/status"
}
kept_and_handed_over() {
	delay 'late create 4'
	drive --pod late --deadline 2s --retry 500ms && is "$(creations late sandbox)" 1 &&
		is "$(pods)" "$(runtime_pods)"
}
installed() {
	# without it, nothing else is worth a try
	check 'apt installs the packages' install /mnt/packages/*.deb || { echo end; exit; }
	check 'nothing is enabled or started by that' nothing_began
	check 'the service is enabled, and serves' enabled
	systemd-analyze --no-pager security crikeepd.service crikeepd-bypass.service | tail -n 2 |
		sed 's/^/# exposure: /'
	check 'it is confined, by Landlock too' confined
	check 'a late sandbox is made once, and handed over' kept_and_handed_over
}

# ---- the bypass ----------------------------------------------------------------------------------

break_it() { mv /usr/sbin/crikeepd /usr/sbin/crikeepd.away && kill_it; }
mend_it() {
	mv /usr/sbin/crikeepd.away /usr/sbin/crikeepd &&
		systemctl start crikeepd.socket crikeepd.service
}
# served_within SECONDS NAME: the next list; NAME.times gets the milliseconds
served_within() {
	local began=${EPOCHREALTIME/./} took
	timed wait_for 60 pods || return
	took=$(((${EPOCHREALTIME/./} - began) / 1000))
	echo $took >>"$work/$2.times"
	[ $took -le $(($1 * 1000)) ] || { echo "$took ms"; return 1; }
}
spread() { # spread NAME: of its times
	sort -n "$work/$1.times" | awk -v name="$1" '{ t[NR] = $1 } END {
		printf "# %s: %d times, %d to %d ms, the median %d\n", name, NR, t[1], t[NR],
			t[int((NR + 1) / 2)] }'
}
by_the_runtime() { is "$(pods -a)" "$(runtime_pods)" && active crikeepd-bypass.service; }

# One sandbox is kept when crikeepd goes, and gets a container meanwhile; another is kept and gets
# none.
leave_two() {
	delay 'taken create 4' 'left create 4'
	! drive --pod taken --uid uid-taken --deadline 1s --give-up 1s || return
	! drive --pod left --uid uid-left --deadline 1s --give-up 1s || return
	wait_for 60 both_are_kept
}
both_are_kept() {
	taken=$(of_pod taken) left=$(of_pod left)
	is "$(crikeep list -q --state kept | wc -l)" 2 && [ -n "$taken" ] && [ -n "$left" ]
}
hidden() { ! pods -a | grep -x -e "$taken" -e "$left"; }
bypassed() { break_it && served_within 5 bypass && by_the_runtime; }
both_are_seen() { is "$(pods -a | grep -cx -e "$taken" -e "$left")" 2; }
only_root() {
	is "$(stat -c %U:%G:%a $socket)" root:root:600 &&
		! setpriv --reuid nobody --regid nogroup --clear-groups crikeep pods
}
noticed() {
	systemctl --failed | grep crikeepd.service &&
		journalctl -q -o cat _PID=1 | grep 'The runtime on the kubelet.s socket'
}
started_in_vain() {
	local i
	for i in {1..6}; do
		! systemctl start crikeepd.service || return
		wait_for 5 by_the_runtime || return
	done
	for i in {1..6}; do
		! systemctl start crikeepd.socket crikeepd.service || return
		wait_for 5 by_the_runtime || return
	done
}
# from the fourth within ten seconds on, systemd may refuse it
restarted_by_hand() {
	local i
	for i in {1..8}; do
		systemctl restart crikeepd.service
		wait_for 5 pods || { echo "restart $i"; return 1; }
	done
	systemctl start crikeepd.service && served
}
takes_over() {
	delay
	drive --sandbox "$taken" --pod taken --uid uid-taken --container app \
		--image docker.io/lab/busybox:1 --deadline 60s
}
way_back() { mend_it && served_within 5 back && served && active crikeepd.socket; }
# the time to live of what is kept is over when the other one is gone
kept_its_own() {
	pause=2 wait_for 120 left_is_gone && is "$(pods -a | grep -cx "$taken")" 1
}
left_is_gone() { ! runtime_pods | grep -qx "$left"; }
broken_and_mended() {
	local i bad=0
	rm -f "$work"/{bypass,back}.times
	for i in {1..20}; do
		bypassed || { bad=1; echo "bypass $i"; }
		way_back || { bad=1; echo "way back $i"; }
	done
	return $bad
}
# systemd gives crikeepd up while a sandbox is made, and with it the connection that carries it
connections() { systemctl show -P NFileDescriptorStore crikeepd.service; }
cut_off() { # the client goes on, and wants a container, too
	delay 'cut create 20'
	drive --pod cut --container app --image docker.io/lab/busybox:1 --deadline 2s \
		--retry 500ms >"$work/cut" 2>&1 &
	clients=($!)
	wait_for 60 cut_begun && [ "$(connections)" -gt 0 ] && bypassed && is "$(connections)" 0
}
cut_begun() { [ "$(creations cut sandbox)" -gt 0 ]; }
made_again() {
	delay
	wait "${clients[0]}" && is "$(creations cut sandbox)" 2 && is "$(of_pod cut | wc -l)" 1
}
still_there() { way_back && is "$(pods -a | grep -cx "$(of_pod cut)")" 1; }
bad_configuration() {
	mv /etc/crikeep/crikeep.yaml{,.good}
	echo 'no_such_key: 1' >/etc/crikeep/crikeep.yaml
	kill_it
	served_within 5 bypass && by_the_runtime
}
good_configuration() {
	mv /etc/crikeep/crikeep.yaml{.good,}
	systemctl start crikeepd.socket crikeepd.service
	served
}
by_hand() {
	systemctl start crikeepd-bypass.service && by_the_runtime && ! active crikeepd.service
}
# crikeepd then makes the socket, and removes it when it ends
without_its_socket() {
	systemctl stop crikeepd.socket crikeepd.service
	systemctl start crikeepd.service && served && ! active crikeepd.socket && bypassed &&
		mv /usr/sbin/crikeepd.away /usr/sbin/crikeepd &&
		systemctl start crikeepd.service && served && by_hand &&
		systemctl start crikeepd.service && served && by_hand
}
way_back_by_hand() {
	systemctl start crikeepd.socket crikeepd.service && served && active crikeepd.socket
}
bypass() {
	echo 'cache: {ttl: 20s, hand_back: repeat}' >/etc/crikeep/crikeep.yaml
	systemctl restart crikeepd
	check 'two sandboxes are kept' leave_two
	check 'they are hidden' hidden
	check 'the program is removed: the runtime serves within 5 s' bypassed
	check 'what was kept is seen' both_are_seen
	check 'only root may connect' only_root
	check 'systemctl and the journal say so' noticed
	check 'starts of crikeepd that are in vain end in the bypass' started_in_vain
	check 'a container is made in what was kept' takes_over
	check 'the program is back: crikeepd serves within 5 s' way_back
	check 'what got a container stays, the other is destroyed' kept_its_own
	check 'given up during a creation: systemd closes the connection that carries it' cut_off
	check 'it is made again, by the runtime alone' made_again
	check 'and is there after the way back' still_there
	check 'a wrong configuration is bypassed too' bad_configuration
	check 'and once it is right there is a way back' good_configuration
	check 'an operator bypasses it' by_hand
	check 'and ends that' way_back_by_hand
	check 'the same without crikeepd.socket' without_its_socket
	check 'and there is a way back' way_back_by_hand
	check 'restarts in a row, more than systemd permits' restarted_by_hand
	check '20 of 20: removed and served, back and served, within 5 s' broken_and_mended
	spread bypass
	spread back
	rm /etc/crikeep/crikeep.yaml.good 2>/dev/null
	systemctl reset-failed crikeepd
	systemctl restart crikeepd
}

# ---- restarts ------------------------------------------------------------------------------------

# drive_many N NAME: clients that wait for slow sandboxes; their ids go to clients
drive_many() {
	local i
	clients=()
	delay "* create 3"
	for ((i = 1; i <= $1; i++)); do
		drive --pod "$2-$i" --deadline 2s --retry 500ms -o yaml >"$work/$2-$i.report" 2>&1 &
		clients+=($!)
	done
}
# stores: connections stay open when crikeepd is killed. Without that, containerd undoes what it is
# making, and it is made again.
stores() { [ "$(systemctl show -P FileDescriptorStoreMax crikeepd.service)" -gt 0 ]; }
all_served() { # all_served NAME: each client has an id, each sandbox was made once, none is left
	local p bad=0
	for p in "${clients[@]}"; do
		wait "$p" || { bad=1; echo 'a client has no id'; }
	done
	for p in "$work/$1"-*.report; do
		p=${p##*/} p=${p%.report}
		[ "$1" != killed ] || stores || continue
		is "$(creations "$p" sandbox)" 1 || { bad=1; echo "of $p"; }
	done
	is "$(pods -a | sort)" "$(runtime_pods | sort)" && [ $bad -eq 0 ]
}
kills() {
	local i
	drive_many 4 killed
	for i in 1 2 3; do
		sleep 4 # more often would be bypassed
		kill_it
		wait_for 60 pods || return
	done
	all_served killed
}
upgrade() {
	drive_many 4 upgraded
	sleep 2
	install /mnt/packages/next/*.deb && all_served upgraded &&
		dpkg-query -W -f '${Version}\n' crikeepd | grep '+next$' && served
}
repaired() { # the package brings back what was removed
	rm /usr/sbin/crikeepd
	kill_it
	wait_for 60 active crikeepd-bypass.service &&
		install --reinstall /mnt/packages/next/*.deb && wait_for 60 served
}
restarts() {
	check 'kill -9 three times under creations: each is handed over' kills
	check 'an upgrade under creations: each is made once' upgrade
	check 'a package that repairs crikeepd ends the bypass' repaired
}

# ---- restarts by the hundred, before a simulated runtime -----------------------------------------

# Fifty clients make one sandbox after the other; each takes 10 s.
client() { # client NUMBER
	local n=0
	while [ ! -e "$work/enough" ]; do
		drive --pod "often-$1-$n" --deadline 4s --give-up 600s -o yaml >>"$work/often.$1"
		n=$((n + 1))
	done
}
often_begins() {
	local i often=/run/systemd/system/crikeepd.service.d
	mkdir -p "$often"
	printf '[Unit]\nStartLimitIntervalSec=0\n' >"$often/often.conf"
	cp /etc/crikeep/crikeep.yaml "$work/yaml"
	printf '%s\n' 'runtime: unix:///run/sim.sock' 'cache: {hand_back: repeat}' \
		>/etc/crikeep/crikeep.yaml
	systemd-run -q --unit=sim /usr/libexec/crikeep/crikeep-sim \
		"listen=/run/sim.sock,log=$work/sim.log,create=10s" || return
	systemctl daemon-reload && systemctl stop crikeepd.service && rm -f /run/crikeep/crikeep.db*
	systemctl start crikeepd.service && wait_for 60 pods || return
	rm -f "$work/enough"
	clients=()
	for i in {1..50}; do
		client "$i" &
		clients+=($!)
	done
	wait_for 60 enough_begun
}
enough_begun() { [ "$(grep -c ' begin sandbox ' "$work/sim.log")" -ge 50 ]; }
# Ended by SIGTERM and by SIGKILL in turn, each once the last life serves. NAME.times gets the
# milliseconds until the next list.
restarted() { # restarted TIMES UNIT NAME [PODS-OPTION...]
	local i began times=$1 unit=$2 name=$3
	shift 3
	for ((i = 1; i <= times; i++)); do
		began=${EPOCHREALTIME/./}
		if [ $((i % 2)) -eq 0 ]; then
			systemctl restart "$unit"
		else
			systemctl kill -s KILL --kill-who=main "$unit"
		fi
		wait_for 60 pods "$@" || return
		echo $(((${EPOCHREALTIME/./} - began) / 1000)) >>"$work/$name.times"
	done
}
often_restarted() { restarted 100 crikeepd.service gap; }
# systemd's own proxy has nothing to do but to begin: what it needs is systemd's and the machine's
empty_restarted() {
	printf '[Socket]\nListenStream=/run/empty.sock\n' >/run/systemd/system/empty.socket
	cat >/run/systemd/system/empty.service <<-END
		[Unit]
		StartLimitIntervalSec=0
		[Service]
		ExecStart=/lib/systemd/systemd-socket-proxyd /run/sim.sock
		Restart=always
		RestartSec=200ms
	END
	systemctl daemon-reload && systemctl start empty.socket empty.service || return
	restarted 100 empty.service gap-of-an-empty-service --endpoint unix:///run/empty.sock
	local status=$?
	systemctl -q stop empty.socket empty.service
	rm /run/systemd/system/empty.*
	return $status
}
often_upgraded() {
	install --reinstall /mnt/packages/next/*.deb && wait_for 60 pods
}
often_ends() {
	touch "$work/enough"
	wait "${clients[@]}"
}
once_each() { # a pod's sandbox is begun once
	awk '$2 == "begin" { n[$5]++ } END { for (p in n) if (n[p] > 1) { print p, n[p]; bad = 1 }
		exit bad }' "$work/sim.log"
}
none_leaks() {
	is "$(crikeep pods --endpoint unix:///run/sim.sock -q --no-trunc | sort)" \
		"$(sed -n 's/^id: "\(.*\)"/\1/p' "$work"/often.* | sort)"
}
# At most one call per client and restart, but for those that heard in time that it is still being
# made.
few_fail() {
	awk '/^ *code:/ { failed = !/OK|DEADLINE_EXCEEDED/ }
		/^ *text:/ && failed && !/still being created/ { n[FILENAME]++ }
		END { for (f in n) if (n[f] > most) { most = n[f]; which = f }
		print "# failed calls of a client, at most:", most + 0
		print which >"/dev/stderr"
		exit most > 101 }' "$work"/often.[0-9]* 2>"$work/most"
	local status=$?
	sed -n 's/^ *text: //p' "$(cat "$work/most")" |
		sed 's/often-[0-9-]*/POD/; s/[0-9]\+ s/N s/g' | cut -c 1-90 | sort |
		uniq -c | sort -rn | head -n 12 | sed 's/^/#  /'
	return $status
}
often() {
	stores || { echo '# often: left out, as nobody keeps connections open'; return; }
	check 'fifty clients begin' often_begins
	check 'crikeepd is restarted 100 times' often_restarted
	check 'so is an empty service, for comparison' empty_restarted
	check 'crikeepd is upgraded once' often_upgraded
	check 'the clients end' often_ends
	check 'each sandbox was begun once' once_each
	check 'the runtime has those that the clients have' none_leaks
	check 'a client has at most one failed call per restart' few_fail
	grep '^#' "$work/said"
	spread gap
	spread gap-of-an-empty-service
	echo "# sandboxes made: $(grep -c ' create sandbox ' "$work/sim.log")"
	rm -r /run/systemd/system/crikeepd.service.d
	systemctl daemon-reload
	systemctl -q stop crikeepd.service sim.service
	rm -f /run/crikeep/crikeep.db*
	mv "$work/yaml" /etc/crikeep/crikeep.yaml
	systemctl start crikeepd.service
}

. /mnt/deploy.sh

# ---- away ----------------------------------------------------------------------------------------

purged() {
	apt-get -qy -o Dpkg::Use-Pty=0 purge crikeep crikeepd || return
	everything >"$work/after"
	diff "$work/before" "$work/after" | grep -v ' /run/\(systemd\|containerd\|log\|lock\)' |
		grep '^[<>]' && return 1
	! systemctl --all list-units 'crikeep*' | grep crikeep && ! pgrep -l crikeep
}
purge() { check 'a purge leaves nothing' purged; }

# --------------------------------------------------------------------------------------------------

check 'a node: systemd, control groups, Landlock' is_a_node
check 'containerd runs, with a slow runc' furnish
everything >"$work/before"
read -ra scenarios </mnt/scenarios
read -r deploy_rounds </mnt/rounds # of deploy.sh
for scenario in "${scenarios[@]}"; do
	began=$SECONDS
	"$scenario"
	echo "# $scenario: $((SECONDS - began)) s"
done
echo end
