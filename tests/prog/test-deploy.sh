#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# crikeep-deploy on a node below $root: crikeep and crikeepd are real, before a simulated runtime;
# systemctl and the kubelet are those of deploy/. It is cut off at each step, and must find its way
# from there. tests/system/deploy.sh has the real ones.
#
# functions are called by check, variables are prelude.sh's:
# shellcheck disable=SC1003,SC1091,SC2015,SC2034,SC2154,SC2317
set -u

. "$(dirname "$0")/prelude.sh"
for what in "$crikeepd" python3 setsid flock; do
	command -v "$what" >/dev/null && continue
	echo "skip - crikeep-deploy: there is no $what"
	exit 0
done
if ! "$crikeep" exporter --help >/dev/null 2>&1; then
	echo 'skip - crikeep-deploy: built without libmicrohttpd'
	exit 0
fi
here=$src/tests/prog deploy=$src/contrib/deploy/crikeep-deploy
# the paths of sockets must be short
rmdir "$work" && work=$(mktemp -d /tmp/ck.XXXXXX) || exit 99
root=$work/n sd=$work/sd sim='' port=$((20000 + $$ % 10000))
export root sd crikeep crikeepd here port
unset CRIKEEP_STATE_DIR CONTAINER_RUNTIME_ENDPOINT

# ---- the node ----------------------------------------------------------------------------------

file() { # file PATH [TEXT]...
	local path=$root$1
	shift
	mkdir -p "${path%/*}"
	printf '%s\n' "$@" >"$path"
}
mkdir -p "$work/bin" "$sd"
ln -s "$here/deploy/systemctl" "$crikeep" "$crikeepd" "$work/bin/"
printf '#!/bin/sh\ncat "%s/ready"\n' "$sd" >"$work/bin/kubectl" # not that of this machine
cat >"$work/bin/sleep" <<'END'
#!/bin/bash
case $(ps -o args= $PPID) in
*crikeep-deploy*) ! rm "$sd/term" 2>/dev/null || kill -TERM $PPID ;;
esac
exec /bin/sleep "$@"
END
chmod +x "$work/bin"/{kubectl,sleep}
PATH=$work/bin:$PATH
for_all() { # for_all VERB: of systemctl
	systemctl "$1" crikeepd.socket crikeepd.service crikeepd-bypass.socket \
		crikeepd-bypass.service kubelet.service
}
at_end() {
	for_all stop
	end sim
}
units=/usr/lib/systemd/system etc=/etc/systemd/system
dropin=$etc/kubelet.service.d/zz-crikeep-deploy.conf
# node [RUNTIME]: a new one, whose kubelet runs; kubelet.service is kubeadm's
node() {
	local runtime=${1:-/run/containerd/containerd.sock}
	for_all stop
	end sim
	rm -rf "${root:?}" "$sd" && mkdir -p "$sd" "$root/run/crikeep" "$root${runtime%/*}"
	file "$units"/kubelet.service '[Unit]' 'ExecStart=wrong' '[Service]' \
		'ExecStart=/usr/bin/kubelet' 'Restart=always'
	file "$etc"/kubelet.service.d/10-kubeadm.conf '[Service]' 'ExecStart=' \
		'ExecStart=/usr/bin/kubelet --config=/var/lib/kubelet/config.yaml \' \
		'# a comment' \
		"	--healthz-port=$port --kubeconfig=/etc/kubeconfig \$KUBELET_EXTRA_ARGS"
	file /var/lib/kubelet/config.yaml 'kind: KubeletConfiguration' \
		"containerRuntimeEndpoint: \"unix://$runtime\"" 'x:' \
		'  containerRuntimeEndpoint: no'
	file "$units"/crikeepd.service '[Service]' 'ExecStart=/usr/sbin/crikeepd'
	file "$units"/crikeepd.socket '[Socket]' 'ListenStream=/run/crikeep/cri.sock'
	file "$units"/crikeepd-bypass.service '[Service]'
	file "$units"/crikeepd-bypass.socket '[Socket]' 'ListenStream=/run/crikeep/cri.sock'
	file /etc/crikeep/crikeep.yaml '# nothing'
	file /etc/kubeconfig
	# it has the path that the unit's default has, below $root
	"$crikeep_sim" --listen="$root$runtime" -- >/dev/null 2>&1 &
	sim=$!
	wait_for 100 test -S "$root$runtime" && systemctl daemon-reload &&
		systemctl start kubelet.service && wait_for 100 healthy
}
new_kubelet() {
	systemctl daemon-reload && systemctl restart kubelet.service && wait_for 100 healthy
}
healthy() {
	exec 3<>"/dev/tcp/127.0.0.1/$port" && printf 'GET /healthz HTTP/1.0\r\n\r\n' >&3 &&
		head -n 1 <&3 | grep -q ' 200 '
}
# as it is: files and their bytes, units, and what the kubelet was started with
picture() {
	(cd "$root" && find etc usr var -type d && find etc usr var -type f -exec md5sum {} +) |
		sort
	(cd "$sd" && ls -- *.enabled *.active *.failed 2>/dev/null)
	systemctl is-active crikeepd.service
	options
}
options() { tr '\0' '\n' <"$root/proc/$(cat "$sd/kubelet.service.pid")/cmdline"; }
# deploy STATUS ARGUMENT...: its exit status; what it says is in $said
deploy() {
	local want=$1 got
	shift
	"$deploy" --root="$root" "$@" >"$work/said.out" 2>&1
	got=$?
	said=$(cat "$work/said.out")
	[ "$got" = "$want" ] ||
		{ echo "$*: status $got, not $want"; cat "$work/said.out"; return 1; }
}
says() { # says REGEX
	grep -qE -- "$1" <<<"$said" || { echo "it does not say '$1' but:"; echo "$said"; return 1; }
}
through() { # through NAME: crikeepd's socket
	options | tail -n 1 | grep -qx -- "--container-runtime-endpoint=unix:///run/crikeep/$1"
}
restarts() { grep -c '^restart kubelet' "$sd/calls"; }
as_before() { diff "$work/before" <(picture); }
enabled() { deploy 0 status && says 'All is well' && through cri.sock; }

# once the watch has begun: COMMAND...
meanwhile() {
	: >"$work/said.out"
	{ wait_for 600 grep -q Watching "$work/said.out" && "$@"; } &
}
crash() { kill -9 "$(cat "$sd/crikeepd.service.pid")"; }
ended='crikeepd.service has failed|crikeepd has ended by itself'
bypass() { touch "$sd/crikeepd-bypass.service.active" "$sd/crikeepd-bypass.socket.active"; }
terminate() { touch "$sd/term"; } # at its next pause
# ---- on and off ----------------------------------------------------------------------------------

node || exit 99
picture >"$work/before"
turned_on() {
	deploy 0 enable --watch=2s && enabled && [ "$(restarts)" = 1 ] &&
		[ "$(cat "$root/var/lib/crikeep-deploy/kubelet.before")" = \
			"$(cat "$sd/loaded/kubelet.service"/{0,10*})" ]
}
nothing_to_do() {
	deploy 0 enable && says 'nothing to do' && [ "$(restarts)" = 1 ]
}
turned_off() { deploy 0 disable && as_before && [ "$(restarts)" = 2 ]; }
off_again() {
	local before
	before=$(restarts)
	deploy 0 disable && says 'nothing to do' && [ "$(restarts)" = "$before" ] && as_before
}
off_is_said() { deploy 1 status && says 'not enabled' && says '/run/containerd/containerd.sock'; }
check 'nothing is enabled' off_is_said
only_said() { deploy 0 enable --dry-run && says "$dropin" && as_before; }
check '--dry-run changes nothing' only_said
check 'enable puts crikeepd before the runtime' turned_on
check 'a second enable has nothing to do' nothing_to_do
check 'disable puts everything back' turned_off
unread() { # nobody reads what it says
	"$deploy" --root="$root" enable --watch=0 2>&1 | true
	[ "${PIPESTATUS[0]}" = 0 ] && enabled && deploy 0 disable && as_before
}
check 'it does its work, too, when nobody reads what it says' unread
check 'a second disable has nothing to do' off_again
no_record() {
	deploy 0 enable --watch=0 && rm -r "$root/var/lib/crikeep-deploy" && deploy 0 disable &&
		as_before
}
check 'without its record, too' no_record
was_on() { # crikeepd was there, and nobody used it
	systemctl enable --now crikeepd.service && picture >"$work/before" &&
		deploy 0 enable --watch=0 && enabled && deploy 0 disable && as_before
}
check 'a crikeepd that was enabled and running stays so' was_on
changed_unit() {
	local file=$root$etc/kubelet.service.d/10-kubeadm.conf
	node && deploy 0 enable --watch=0 && sed -i 's/--healthz/--v=3 &/' "$file" &&
		deploy 3 status && says 'has changed' && deploy 0 enable --watch=0 && enabled &&
		options | grep -qx -- --v=3 && deploy 0 disable && options | grep -qx -- --v=3
}
check 'a kubelet.service that has changed since is taken over' changed_unit

# ---- only counting -------------------------------------------------------------------------------

counts() { # counts 0|1: crikeepd does what its unit says
	"$crikeep" exporter --once --socket="$root/run/crikeep/metrics.sock" |
		grep -qx "crikeepd_shadow $1"
}
kubelet_is() { # kubelet_is PID: it was not restarted
	[ "$(cat "$sd/kubelet.service.pid")" = "$1" ]
}
shadow() {
	local kubelet
	node && picture >"$work/before" && deploy 0 enable --shadow --watch=0 &&
		says 'It only counts' && enabled && counts 1 && says 'It only counts' &&
		deploy 0 enable --shadow && says 'nothing to do' || return
	kubelet=$(cat "$sd/kubelet.service.pid")
	deploy 0 enable --watch=2s && says 'keeps late results' && enabled && counts 0 &&
		kubelet_is "$kubelet" && [ ! -e "$root$etc/crikeepd.service.d" ] &&
		deploy 0 enable --shadow --watch=2s && enabled && counts 1 &&
		kubelet_is "$kubelet" && deploy 0 disable && as_before
}
check '--shadow: from counting to full use and back, without a restart of the kubelet' shadow
shadow_cut_off() { # between the new drop-in and the restart of crikeepd
	deploy 0 enable --watch=0 &&
		sed -i 's/^shadow=.*/shadow=yes/; s/^phase=.*/phase=enabling/' \
			"$root/var/lib/crikeep-deploy/record" &&
		deploy 0 enable --shadow --watch=0 && enabled && counts 1 && deploy 0 disable &&
		as_before
}
check 'also where a change was cut off' shadow_cut_off

# A change that does not go well ends as it began. mode MODE: enable's options for it, the metric's
# value, and the end of crikeepd's command; other MODE.
mode() {
	case $1 in
	counting) with=(--shadow) value=1 command=' --shadow$' ;;
	full) with=() value=0 command='crikeepd$' ;;
	esac
}
other() { if [ "$1" = full ]; then echo counting; else echo full; fi; }
# begin_as MODE: of a new node; then it is to be changed to the other one
begin_as() {
	node && picture >"$work/before" && mode "$1" &&
		deploy 0 enable "${with[@]}" --watch=0 && picture >"$work/as" || return
	kubelet=$(cat "$sd/kubelet.service.pid")
}
# goes_back MODE TEXT [WATCH]: the change to the other one fails for that reason
goes_back() {
	mode "$(other "$1")"
	deploy 3 enable "${with[@]}" --watch="${3:-60s}" && says "$2" && says 'again as it was' &&
		mode "$1" && enabled && counts "$value" && kubelet_is "$kubelet" &&
		diff "$work/as" <(picture)
}
change_does_not_start() { # change_does_not_start MODE
	begin_as "$1" && mode "$(other "$1")" && echo "$command" >"$sd/crikeepd-is-broken" &&
		goes_back "$1" 'the change failed' && deploy 0 disable && as_before
}
change_crashes() {
	begin_as "$1" && meanwhile crash && goes_back "$1" "$ended" && deploy 0 disable &&
		as_before
}
change_is_interrupted() {
	begin_as "$1" && meanwhile terminate && goes_back "$1" interrupted && deploy 0 disable &&
		as_before
}
change_is_bypassed() {
	begin_as "$1" && meanwhile bypass && goes_back "$1" 'is bypassed' && deploy 0 disable &&
		as_before
}
# the drop-in is written, and systemd does not read it
change_is_not_read() {
	begin_as "$1" && echo 1 >"$sd/reload-fails" && goes_back "$1" 'cannot be written' &&
		deploy 0 disable && as_before
}
# What it was does not work any more, either: the kubelet does without crikeepd
neither() {
	begin_as full && : >"$sd/crikeepd-is-broken" && deploy 4 enable --shadow --watch=60s &&
		says 'nor does it go on as it was' && as_before
}
is_cut_off() { deploy 3 status && says 'cut off'; }
# The next run, after kill -9, knows how it began, too
change_is_cut_off() {
	begin_as "$1" && mode "$(other "$1")" || return
	"$deploy" --root="$root" enable "${with[@]}" --watch=600s >"$work/said.out" 2>&1 &
	wait_for 600 grep -q Watching "$work/said.out" && kill -9 $! || return
	wait $! 2>/dev/null
	# what it had begun may go on for a while
	wait_for 600 is_cut_off && meanwhile crash && goes_back "$1" "$ended" &&
		deploy 0 disable && as_before
}
for from in counting full; do
	to=$(other $from)
	check "$from to $to: crikeepd does not start" change_does_not_start $from
	check "$from to $to: crikeepd ends" change_crashes $from
	check "$from to $to: crikeepd is bypassed" change_is_bypassed $from
	check "$from to $to: SIGTERM" change_is_interrupted $from
	check "$from to $to: systemd does not read the drop-in" change_is_not_read $from
	check "$from to $to: kill -9, and the next try fails" change_is_cut_off $from
done
check 'crikeepd works neither after the change nor as it was' neither
shadow_crio() {
	node /run/crio/crio.sock && picture >"$work/before" &&
		deploy 0 enable --shadow --watch=0 && deploy 0 status && counts 1 &&
		deploy 0 enable --watch=0 && deploy 0 status && counts 0 && deploy 0 disable &&
		as_before
}
check 'before CRI-O' shadow_crio
shadow_by_file() {
	node && file /etc/crikeep/crikeep.yaml 'shadow: true' && picture >"$work/before" &&
		deploy 0 enable --watch=0 && enabled && says 'It only counts' && counts 1 &&
		deploy 0 disable && as_before
}
check 'by crikeep.yaml' shadow_by_file
shadow_and_plugins() {
	file /etc/crikeep/crikeep.yaml 'nri: {enabled: true}' && picture >"$work/before" &&
		deploy 2 enable --shadow && says 'not with nri.enabled' && as_before
}
check 'not with plugins' shadow_and_plugins

# ---- CRI-O, and other ways to say where the runtime is -----------------------------------------

crio() {
	node /run/crio/crio.sock && picture >"$work/before" && deploy 0 enable --watch=0 &&
		deploy 0 status && through run/crio/crio.sock &&
		grep -qx 'ListenStream=/run/crikeep/run/crio/crio.sock' \
			"$root$etc/crikeepd.socket.d"/*.conf &&
		grep -qx 'Environment=RUNTIME=/run/crio/crio.sock' \
			"$root$etc/crikeepd-bypass.service.d"/*.conf &&
		deploy 0 disable && as_before
}
check 'before CRI-O, at a path that ends as its own does' crio
by_flag() { # that of its command line counts more than that of its file
	local option='--container-runtime-endpoint unix:///var/run/crio/crio.sock'
	node && sed -i "s|EXTRA_ARGS|& $option|" \
		"$root$etc/kubelet.service.d/10-kubeadm.conf" && mkdir "$root/run/crio" &&
		ln "$root/run/containerd/containerd.sock" "$root/run/crio/crio.sock" &&
		new_kubelet &&
		deploy 0 enable --dry-run && says 'the runtime at /run/crio/crio.sock'
}
check 'a flag of the kubelet, /var/run, two words' by_flag
elsewhere() {
	node /run/k/containerd.sock && picture >"$work/before" && deploy 0 enable --watch=0 &&
		enabled && deploy 0 disable && as_before
}
check 'a containerd at another path' elsewhere

# ---- what is refused -----------------------------------------------------------------------------

node
# refused TEXT: by enable, and nothing is changed
refused() {
	picture >"$work/before"
	deploy 2 enable --watch=0 && says "$1" && says 'Nothing was changed' && as_before
}
kubelet_unit() { # kubelet_unit COMMAND...
	rm -f "$root$etc/kubelet.service.d/10-kubeadm.conf"
	file "$units"/kubelet.service '[Service]' "${@/#/ExecStart=}"
	systemctl daemon-reload
}
not_understood() { kubelet_unit "$1" && refused 'is not understood'; }
check 'a shell that starts the kubelet' not_understood "/bin/sh -c '/usr/bin/kubelet --v=1'"
check 'a kubelet behind --' not_understood '/usr/bin/kubelet --v=1 -- x'
check 'a program that is not the kubelet' not_understood '/usr/bin/k3s agent --kubelet'
two() { kubelet_unit '/usr/bin/kubelet --v=1' '/usr/bin/kubelet --v=2' && refused 'just one'; }
check 'two commands' two
node
unwell() { touch "$sd/unwell" && refused 'is not well as it is' && rm "$sd/unwell"; }
check 'a kubelet that is not well as it is' unwell
bad_yaml() {
	file /etc/crikeep/crikeep.yaml 'no_such_key: 1' && refused no_such_key
}
check 'a configuration that is not valid' bad_yaml
other_runtime() {
	file /etc/crikeep/crikeep.yaml 'runtime: unix:///run/crio/crio.sock' &&
		refused 'crikeep.yaml names the runtime'
}
check 'a configuration that names another runtime' other_runtime
no_metrics() { file /etc/crikeep/crikeep.yaml 'metrics: ""' && refused 'no metrics socket'; }
check 'a configuration without metrics' no_metrics
file /etc/crikeep/crikeep.yaml '# nothing'
foreign() {
	file "$dropin" '[Service]' 'Nice=1' && refused "$dropin exists" && rm "$root$dropin"
}
check 'a file of its name that is not its own' foreign
no_unit() {
	rm "$root$units/crikeepd.service" && systemctl daemon-reload &&
		refused 'no crikeepd.service'
}
check 'no crikeepd.service' no_unit
docker() {
	node /run/cri-dockerd.sock && refused 'neither'
}
check 'another runtime' docker
by_hand() {
	node && systemctl enable --now crikeepd.socket crikeepd.service &&
		file "$etc"/kubelet.service.d/99-own.conf '[Service]' 'ExecStart=' \
			"ExecStart=/usr/bin/kubelet --healthz-port=$port \
--container-runtime-endpoint=unix:///run/crikeep/cri.sock" &&
		new_kubelet &&
		picture >"$work/before" && deploy 0 enable && says 'It is left as it is' &&
		as_before &&
		deploy 0 disable && says 'nothing to do' && as_before
}
check 'a kubelet that uses crikeepd already is left as it is' by_hand
usage() {
	local status=0
	deploy 2 && deploy 2 enable now && deploy 2 enable --watch=soon && deploy 2 --help=x &&
		deploy 0 --help
}
check 'wrong usage' usage

# ---- it does not go well -------------------------------------------------------------------------

# put_back TEXT [WATCH]: enable gives up, says why, and everything is as before
put_back() {
	deploy 3 enable --watch="${2:-60s}" && says "$1" && says 'as it was before' && as_before
}
node
picture >"$work/before"
does_not_start() {
	touch "$sd/crikeepd-is-broken" && put_back 'crikeepd cannot stay' &&
		rm "$sd/crikeepd-is-broken" && [ "$(restarts)" = 0 ]
}
check 'a crikeepd that does not start: the kubelet is not touched' does_not_start
crashes() { meanwhile crash && put_back "$ended"; }
check 'a crikeepd that ends' crashes
crash_and_start() { crash && sleep 0.3 && systemctl start crikeepd.service; }
restarted() {
	meanwhile crash_and_start && put_back "$ended"
}
check 'a crikeepd that ends and is started again' restarted
bypassed() { meanwhile bypass && put_back 'is bypassed'; }
check 'a crikeepd that is bypassed' bypassed
kubelet_dies() { kill -9 "$(cat "$sd/kubelet.service.pid")"; }
dies() {
	meanwhile kubelet_dies &&
		put_back 'kubelet.service has failed|the kubelet has ended|kubelet is not running'
}
check 'a kubelet that ends' dies
sick() { touch "$sd/unwell" && sleep 8 && rm "$sd/unwell"; }
sickens() { meanwhile sick && put_back "/healthz is not ok"; }
check 'a kubelet whose /healthz is not ok' sickens
not_ready() {
	printf True >"$sd/ready"
	meanwhile unready && put_back 'the node is not Ready'
	local status=$?
	rm "$sd/ready"
	return "$status"
}
unready() { printf Unknown >"$sd/ready"; }
check 'a node that is not Ready any more' not_ready
counts_more() { # its name is behind ours
	file "$etc"/kubelet.service.d/zzz.conf '[Service]' 'ExecStart=' \
		"ExecStart=/usr/bin/kubelet --healthz-port=$port" && systemctl daemon-reload &&
		picture >"$work/before" && put_back 'counts more' && [ "$(restarts)" = "$1" ] &&
		rm "$root$etc/kubelet.service.d/zzz.conf"
}
check 'a drop-in that counts more: the kubelet is not touched' counts_more "$(restarts)"
systemctl daemon-reload
picture >"$work/before"
terminated() {
	meanwhile terminate && put_back 'interrupted'
}
check 'SIGTERM' terminated
fails_to_start() { touch "$sd/kubelet-is-broken"; terminate; }
terminated_in_vain() { # what it sees on its way back counts
	meanwhile fails_to_start && deploy 4 enable --watch=60s && says 'interrupted' &&
		says 'the kubelet is not well without crikeepd' &&
		rm "$sd/kubelet-is-broken" && deploy 0 disable && node && picture >"$work/before"
}
check 'SIGTERM, and the kubelet does not start again' terminated_in_vain

# ---- kill -9 at each step ------------------------------------------------------------------------

# What changes something is a step; the N-th one kills crikeep-deploy, before it is done or after.
cat >"$work/step" <<'END'
#!/bin/bash
name=${0##*/}
real=$(PATH=${PATH#*:} command -v "$name")
case "$name ${1:-}" in
"systemctl show" | "systemctl is-"* | "systemctl -q" | "systemctl cat") exec "$real" "$@" ;;
esac
echo >>"$sd/steps"
if [ "$(wc -l <"$sd/steps")" = "$kill_at" ]; then
	[ "$kill_when" = before ] || "$real" "$@"
	kill -9 "$(cat "$sd/deploy.pid")"
	exit 1
fi
exec "$real" "$@"
END
chmod +x "$work/step"
mkdir "$work/steps"
for name in systemctl sync mv rm rmdir mkdir; do ln -s "$work/step" "$work/steps/$name"; done

# killed N WHEN VERB: true if it was killed, and did not end before
killed() {
	: >"$sd/steps"
	# shellcheck disable=SC2016
	kill_at=$1 kill_when=$2 steps=$work/steps PATH=$work/steps:$PATH bash -c \
		'echo $$ >"$sd/deploy.pid"; exec "$@"' - "$deploy" --root="$root" "$3" --watch=0 \
		>"$work/said.out" 2>&1
	[ $? = 137 ]
} 2>/dev/null # bash says "Killed"
# whatever the kubelet uses, or would use at its next start, is served
served() {
	local command
	command=$(systemctl show -p ExecStart --value kubelet.service)
	case "$command $(options)" in
	*unix:///run/crikeep/cri.sock*) [ "$(systemctl is-active crikeepd.service)" = active ] ;;
	esac || { echo "killed at $1: the kubelet uses crikeepd, which is not there"; return 1; }
}
# CK_TEST_SCALE=1000: at each step; 100: at each ninth, beginning elsewhere each time
stride=$((900 / ${CK_TEST_SCALE:-100})) offset=0
[ "$stride" -gt 0 ] || stride=1
# cut_off VERB WHEN: at such steps; then disable, or enable and disable, in turn
cut_off() {
	local n=$((offset % stride - stride + 1))
	offset=$((offset + 2))
	while :; do
		n=$((n + stride))
		[ "$1" = enable ] || deploy 0 enable --watch=0 || return
		killed "$n" "$2" "$1" || break
		served "$n" || return
		if [ $((n % 2)) = 0 ]; then
			deploy 0 enable --watch=0 && enabled || { echo "killed at $n"; return 1; }
		fi
		deploy 0 disable && as_before || { echo "killed at $n"; return 1; }
	done
	[ "$1" != enable ] || deploy 0 disable || return
	[ "$n" -gt 10 ] && as_before && echo "# $1: $n steps"
}
for when in before after; do
	for verb in enable disable; do
		check "$verb is killed at its steps, $when they are done" cut_off $verb $when
		tail -n 1 "$work/said" | grep '^#'
	done
done
exit "$failed"
