# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154,SC2317 # shares variables with those who source it
#
# R38 to R42, H1 to H10 but H7, and O1 to O8: commits, late results and who knows what. See
# nri-stage.sh.

late_pod() { # a pod 'web' that nobody has waited for: $late
	ask 1s web
	check 'the request runs into its deadline' out_of_time
	check 'the runtime makes it all the same' until_ 10 made_pod web
	late=$(pods_past --name web)
}
made_pod() { is "$(state_past "$(pods_past --name "$1")")" SANDBOX_READY; }

R38() {
	stage create.sandbox=2500ms || return
	plugin 10-a
	late_pod
	run db
	check 'other pods are told' hears 10-a db RunPodSandbox
	check 'what is kept is not' hears 10-a web ''
	ask 5s web
	check 'the same request has it' is "$out" "$late"
	check 'it is told then' hears 10-a web RunPodSandbox
}

R39() {
	stage create.sandbox=2500ms,create.container=2500ms || return
	plugin 10-a
	late_pod
	plugin 20-b
	check 'who joins meanwhile has it in no list' hears 20-b web ''
	ask 5s web
	web=$out
	check 'the same request has it' is "$web" "$late"
	check 'both hear of it, once' is "$(heard 10-a web), $(heard 20-b web)" \
		'RunPodSandbox, RunPodSandbox'
	ask 1s web "$web" main
	check 'a container is late' out_of_time
	check 'the runtime makes it' until_ 10 container_past main
	check 'it is not told' hears 10-a main ''
	ask 5s web "$web" main
	check 'the same request has it' is "$out" "$(containers_past)"
	check 'and it is told as any other' until_ 10 hears 10-a main \
		'CreateContainer PostCreateContainer'
}

R40() {
	ttl=1s
	stage || return
	plugin 10-a
	run web
	web=$out
	tell 10-a "CreateContainer/main wait $d/go"
	# crictl's pod, driven: its uid is the same
	ask 4s web "$web" main
	check 'the client leaves while a plugin is asked' out_of_time
	let_go go
	check 'nobody comes for it: it goes' until_ 15 is_empty containers_past
	check 'the plugin hears so' until_ 10 ended_told 10-a main
}
ended_told() {
	[[ $(heard "$1" "$2") == CreateContainer*'StopContainer RemoveContainer' ]] ||
		{ heard "$1" "$2"; return 1; }
}

R41() {
	stage || return
	plugin 10-a
	plugin 20-b
	tell 10-a "RunPodSandbox/web wait $d/go"
	leaves 10-a RunPodSandbox web runp "$(pod web)"
	let_go go
	check 'the next plugin is asked all the same' until_ 10 hears 20-b web RunPodSandbox
	check 'the pod is seen' until_ 10 is_seen "$(pods_past)"
	check 'nobody was disconnected' is "$(state_of 10-a), $(state_of 20-b)" 'start up, start up'
	check 'its deadline was ours' at_least "$(told 20-b RunPodSandbox web left)" 1000
	tell 10-a "RunPodSandbox/db wait $d/go-on"
	ask 4s db
	check 'one is out of time while a plugin is asked' out_of_time
	let_go go-on
	check 'the next plugin is asked all the same' until_ 10 hears 20-b db RunPodSandbox
	check 'nobody was disconnected' is "$(state_of 10-a), $(state_of 20-b)" 'start up, start up'
}
is_seen() { is "$(cri pods -q --no-trunc)" "$1"; }

R42() {
	stage '' --set=nri.request_timeout=500ms || return
	tell 10-a "RunPodSandbox/web wait $d/go"
	plugin 10-a -reconnect 300ms
	run web
	web=$out
	check 'who does not answer is disconnected' until_ 10 gone_from 10-a
	run db
	let_go go
	check 'it comes back' until_ 10 hears_in 2 10-a web has
	run last
	check 'the first connection has heard no more' is \
		"$(heard_in 1 10-a web), $(heard_in 1 10-a db)" 'RunPodSandbox, '
	check 'the list tells it of all' hears_in 2 10-a web has
	check 'or an event does, not both' until_ 10 once_in 2 10-a db
	check 'what comes later is told' until_ 10 hears_in 2 10-a last RunPodSandbox
}
once_in() {
	case $(heard_in "$1" "$2" "$3") in
	has | RunPodSandbox) ;;
	*) heard_in "$@"; return 1 ;;
	esac
}

# ---- cache and hooks ---------------------------------------------------------------------------

H1() {
	stage || return
	plugin 10-a -events RunPodSandbox
	plugin 20-b -events StopPodSandbox
	run ended
	ended=$out
	run web
	tell 20-b "StopPodSandbox wait $d/go"
	begin stop cri stopp "$ended"
	holds 20-b StopPodSandbox ended
	tell 10-a "RunPodSandbox wait $d/go"
	begin db cri runp "$(pod db)"
	holds 10-a RunPodSandbox db
	plugin 30-c
	check 'a list has what is committed' hears 30-c web has
	check 'and what is about to be' hears 30-c db has
	check 'and what is being stopped' hears 30-c ended has
	let_go go
	ended db
	check 'the pod is made' given
	ended stop
	check 'the other one is stopped' succeeded
	plugin 40-d
	check 'what has stopped is in the list' hears 40-d ended has
	check 'it has no process' is "$(told 40-d Synchronize ended pid)" ''
	check 'it is removed' cri rmp "$ended"
	check 'who joined when it was being stopped hears of the removal' \
		until_ 10 hears 30-c ended 'has RemovePodSandbox'
	check 'and so does who joined when it had stopped' \
		until_ 10 hears 40-d ended 'has RemovePodSandbox'
	plugin 50-e
	check 'what is removed is in no list' hears 50-e ended ''
}

H2() {
	stage || return
	run web
	web=$out
	plugin 10-a -events StopPodSandbox
	plugin 20-b -events RunPodSandbox,RemovePodSandbox
	check 'a pod is stopped' cri stopp "$web"
	plugin 30-c
	tell 20-b "RemovePodSandbox wait $d/go"
	begin remove cri rmp "$web"
	holds 20-b RemovePodSandbox web
	plugin 40-d
	let_go go
	ended remove
	check 'and removed' succeeded
	check 'who had it in a list hears what it asked for' is \
		"$(heard 10-a web), $(heard 20-b web)" \
		'has StopPodSandbox, has RemovePodSandbox'
	check 'who joined when it had stopped hears of the removal only' \
		until_ 10 hears 30-c web 'has RemovePodSandbox'
	run db
	check 'who joined when it was being removed hears of the next pod' \
		until_ 10 hears 40-d db RunPodSandbox
	check 'and nothing of it' hears 40-d web ''
}

H3() {
	stage || return
	plugin 10-a -reconnect 100ms
	run web
	web=$out
	tell 10-a 'SIGUSR1 close'
	kill -USR1 "$plugin_pid"
	check 'a plugin drops its connection' until_ 10 gone_from 10-a
	check 'and is back with a list' until_ 10 called_in 2 10-a Synchronize
	run db
	check 'what it had heard of is in it, once' hears_in 2 10-a web has
	check 'what is new is told' hears_in 2 10-a db RunPodSandbox
	check 'the pod is removed' says RemovePodSandbox "$web"
	check 'the new connection hears so' hears_in 2 10-a web \
		'has StopPodSandbox RemovePodSandbox'
	check 'the old one does not' hears_in 1 10-a web RunPodSandbox
}
called_in() {
	[ -n "$(lines "$2" \
		"f(\"what\") == \"done\" && f(\"event\") == \"$3\" && f(\"conn\") == $1")" ]
}

# what was told in an earlier life, and is ended in this one
debts() {
	stage_apart fail.remove=2 || return
	plugin 10-a -reconnect 50ms
	plugin 20-b -reconnect 50ms
	tell 20-b 'RunPodSandbox error no room'
	try cri runp "$(pod web)"
	check 'a pod is refused' refused 'no room'
	check 'its end begins' until_ 10 hears 10-a web 'RunPodSandbox StopPodSandbox'
	crikeepd_kill
	check 'crikeepd starts again' crikeepd_start
	check 'the first plugin is back' until_ 10 called_in 2 10-a Synchronize
	check 'the second too' until_ 10 called_in 2 20-b Synchronize
	check 'it is in the list, and its end is told' until_ 15 hears_in 2 10-a web \
		'has StopPodSandbox RemovePodSandbox'
	check 'to each of them' until_ 5 hears_in 2 20-b web \
		'has StopPodSandbox RemovePodSandbox'
}

H4() {
	stage '' --set=nri.policies=b=required || return
	plugin 10-a
	ask 10s web
	check 'without a required plugin there is no pod' is "$code" UNAVAILABLE
	check 'and the answer names it' has "$err" b
	check 'nobody was told' hears 10-a web ''
	plugin 20-b
	ask 5s web
	check 'it is there: the same request has the pod' is "$out" "$(pods_past)"
	check 'and both are told' is "$(heard 10-a web), $(heard 20-b web)" \
		'RunPodSandbox, RunPodSandbox'
}

H5() {
	stage '' --set=nri.request_timeout=3s || return
	plugin 10-a
	plugin 20-b
	tell 10-a "RunPodSandbox/web wait $d/go"
	run web
	check 'a commit does not wait for ever' not replied 10-a RunPodSandbox web
	run db
	run last
	check 'who is late is sent nothing more' hears 10-a db ''
	check 'others are' hears 20-b last RunPodSandbox
	let_go go
	check 'until it answers' until_ 10 hears 10-a last RunPodSandbox
	check 'in order' is "$(runs_of 10-a)" 'web db last'
	check 'on the same connection' connected 10-a
}

runs_of() {
	lines "$1" 'f("what") == "call" && f("event") == "RunPodSandbox" { print f("name") }' |
		xargs
}

H6() {
	stage || return
	plugin 10-a
	plugin 20-b
	run web
	web=$out
	tell 10-a "StopPodSandbox wait $d/go"
	leaves 10-a StopPodSandbox web stopp "$web"
	check 'what it was given is our deadline' at_least "$(told 10-a StopPodSandbox web left)" \
		1000
	let_go go
	check 'the next is asked all the same' until_ 10 hears 20-b web \
		'RunPodSandbox StopPodSandbox'
	check 'nobody was disconnected' is "$(state_of 10-a), $(state_of 20-b)" 'start up, start up'
	check 'it is stopped' until_ 10 is_stopped "$web"
}
is_stopped() { is "$(state_past "$1")" SANDBOX_NOTREADY; }

H8() {
	stage || return
	plugin 10-a
	running
	tell 10-a "CreateContainer/second call-update $main 77" \
		'CreateContainer/second call-update nobody 66'
	make_in "$web" second
	check 'a call from inside an event is answered in it' is \
		"$(lines 10-a 'f("what") == "updated" { print f("text") }' | xargs)" 'done done'
	check 'and carried out' has_shares "$main" 77
	check 'nobody was disconnected' connected 10-a
}

H9() {
	stage || return
	plugin 20-b
	plugin 10-a
	run web
	tell 10-a "StopPodSandbox/web wait $d/go"
	begin stop cri stopp "$out"
	holds 10-a StopPodSandbox web
	kill -KILL "$plugin_pid"
	wait "$plugin_pid" 2>/dev/null
	mv "$d/10-a.log" "$d/10-a.first.log"
	let_go go
	plugin 10-a
	ended stop
	check 'a pod is stopped while a plugin dies' succeeded
	check 'the other one hears so' hears 20-b web 'RunPodSandbox StopPodSandbox'
	run db
	check 'it is not told again when it is back: the list has it' hears 10-a web has
	check 'what is new is' hears 10-a db RunPodSandbox
}

H10() {
	nri=no
	stage || return
	check 'without configuration there is no socket' not test -e "$d/nri.sock"
	run web
	check 'and pods are made' given
	restage || return
	plugin 10-a
	"$crikeepd" --runtime=sim: --listen="$d/second.sock" --unfiltered= --metrics= \
		--state-dir="$d/second" --set=log.target=stderr \
		--set=nri.enabled=true --set=nri.socket="$d/nri.sock" \
		2>"$d/second.log" </dev/null &
	second=$!
	check 'a live socket is not taken over' until_ 10 no_process "$second"
	kill "$second" 2>/dev/null
	check 'and why is said' grep -q "$d/nri.sock" "$d/second.log"
	run db
	check 'who was there first is not disturbed' hears 10-a db RunPodSandbox
}

# a plugin that does nothing any more holds a commit for its own deadline, and the others only where
# they come after it
stalled() {
	stage '' --set=nri.request_timeout=4s || return
	plugin 10-a
	plugin 20-b
	stalled=$plugin_pid
	plugin 30-c
	kill -STOP "$stalled"
	try cri runp "$(pod web)"
	check 'a pod is made' given
	check 'after the deadline' at_least "$took" 4000
	check 'the plugin before it was told at once, the one behind it then' before 10-a \
		RunPodSandbox 30-c RunPodSandbox web
	check 'at that deadline' at_least \
		$(($(when 30-c call RunPodSandbox web) - $(when 10-a call RunPodSandbox web))) \
		3900000
	try cri runp "$(pod db)"
	check 'another pod is made' given
	check 'and does not wait for it again' sooner 4000000 30-c RunPodSandbox 10-a db
	kill -CONT "$stalled"
	check 'it hears of both when it goes on' until_ 10 hears 20-b db RunPodSandbox
	check 'nobody was disconnected' is "$(state_of 10-a), $(state_of 20-b), $(state_of 30-c)" \
		'start up, start up, start up'
}

# sooner MICROSECONDS NN-NAME EVENT NN-NAME NAME: the first hears of it that much later than the
# second at most
sooner() {
	local us=$(($(when "$2" call "$3" "$5") - $(when "$4" call "$3" "$5")))
	[ $us -lt "$1" ] || { echo "it took $us us"; return 1; }
}

# one that does nothing any more, and has subscribed to everything, costs one deadline and fails
# nothing
frozen() {
	stage '' --set=nri.request_timeout=4s || return
	plugin 10-a -events all
	plugin 20-b -events all
	frozen=$plugin_pid
	plugin 30-c -events all
	kill -STOP "$frozen"
	run web
	web=$out
	check 'the first one waits for it' at_least "$took" 4000
	make_in "$web" main
	check 'the second one does not' sooner 4000000 30-c CreateContainer 10-a main
	check 'the container is started' cri start "$out"
	check 'and removed with its pod' says RemovePodSandbox "$web"
	check 'the others have heard all of it' is "$(heard 10-a main)" "$(heard 30-c main)"
	check 'and of its end' has "$(heard 30-c main)" 'PostStartContainer StopContainer Remove'
	check 'who does not answer is disconnected' until_ 25 plugin_is 20-b gone
	check 'and why can be seen' grep -q 'RunPodSandbox: no answer within 24s' "$d/plugins"
}
# the same with 20 pods, four at a time
frozen_node() {
	local began without with
	stage '' --set=nri.request_timeout=3s || return
	plugin 10-a -events all
	plugin 30-c -events all
	began=$(now)
	check '20 pods with containers live' lives early
	without=$(since "$began")
	plugin 20-b -events all
	kill -STOP "$plugin_pid"
	began=$(now)
	check 'and 20 more beside a frozen plugin' lives late
	with=$(since "$began")
	echo "    20 pods: $without ms; beside a frozen plugin that has 3000 ms to answer: $with ms"
	check 'others waited for it once, all at the same time' waited 2900 30000
	check 'they have heard all of it' is "$(all_heard 10-a)" "$(all_heard 30-c)"
}
lives() { # lives NAME: 20 pods, each with a container that is started, come and go
	local i pids=() status=0
	for i in 1 2 3 4; do
		lives_of "$1-$i" &
		pids+=($!)
	done
	for i in "${pids[@]}"; do
		wait "$i" || status=1
	done
	return $status
}
lives_of() { # five of them, one after the other
	local i web main
	for i in 1 2 3 4 5; do
		web=$(cri runp "$(pod "$1-$i")") &&
			main=$(cri create "$web" "$(container "main-$1-$i")" "$(pod "$1-$i")") &&
			cri start "$main" >/dev/null && says RemovePodSandbox "$web" || return
	done
}
# waited MIN MAX: ms in which any event was between the first plugin, which had answered, and the
# last, not counting passages of less than a second
waited() {
	local ms
	ms=$({
		lines 10-a 'f("what") == "done" { print f("event"), f("pod"), f("cname"), f("at") }'
		echo
		lines 30-c 'f("what") == "call" { print f("event"), f("pod"), f("cname"), f("at") }'
	} | awk '
		!NF { last = 1 }
		{ at = $NF; sub(/ [^ ]*$/, "") }
		!last { done[$0] = at }
		last && ($0 in done) && at - done[$0] >= 1 { print done[$0], at }' | sort -n | awk '
		$1 > end { sum += end - begin; begin = end = $1 }
		$2 > end { end = $2 }
		END { printf "%d\n", (sum + end - begin) * 1000 }')
	echo "they waited $ms ms"
	[ "$ms" -ge "$1" ] && [ "$ms" -le "$2" ]
}
all_heard() { # of each pod and container, in any order of these
	lines "$1" 'f("what") == "call" { print f("name"), f("cname"), f("event") }' |
		sort -s -k 1,2
}

# one that can fail what is asked of it does, while it does not answer and when it is gone
frozen_policies() {
	stage '' --set=nri.request_timeout=2s --set=nri.policies=b=fail || return
	plugin 10-a
	plugin 20-b
	kill -STOP "$plugin_pid"
	try cri runp "$(pod web)"
	check 'with policy "fail" the creation fails' refused 'plugin 20-b: no answer within 2s'
	check 'leaves nothing' until_ 10 is_empty pods_past
	check 'and is told to be gone' until_ 10 hears 10-a web \
		'RunPodSandbox StopPodSandbox RemovePodSandbox'
	kill -KILL "$plugin_pid"
	restage '' --set=nri.request_timeout=2s --set=nri.policies=b=required || return
	rm -f "$d"/*-?.log
	plugin 10-a
	plugin 20-b
	kill -STOP "$plugin_pid"
	try cri runp "$(pod db)"
	check 'with policy "required" it fails as well' refused 'plugin 20-b: no answer within 2s'
	check 'the plugin is disconnected' until_ 20 plugin_is 20-b gone
	ask 10s last
	check 'from then on there is no pod' is "$code" UNAVAILABLE
	check 'and the answer names it' has "$err" b
	check 'nobody was told' hears 10-a last ''
}
# a plugin's own failure policy
demands() {
	stage '' --set=nri.request_timeout=1s || return
	plugin 10-a -fail-request -keep-connected
	tell 10-a "RunPodSandbox/web wait $d/go"
	try cri runp "$(pod web)"
	check 'a pod to which it does not agree in time is refused' refused \
		'plugin 10-a: no answer within 1s'
	check 'and undone' until_ 10 is_empty pods_past
	check 'its policy is shown' plugin_is 10-a 'fail+keep'
	sleep 6 # five times its deadline, and then some
	check 'nobody was disconnected' connected 10-a
	let_go go
	check 'it hears that the pod is gone' until_ 10 hears 10-a web \
		'RunPodSandbox StopPodSandbox RemovePodSandbox'
	run db
}
plugin_is() {
	"$crikeep" plugins --state-dir="$d/kept" "$1" --no-trunc >"$d/plugins" 2>&1
	grep -qF "$2" "$d/plugins" || { cat "$d/plugins"; return 1; }
}

# ---- what CRI-O does (facts of its code), and we do not ----------------------------------------

O1() { # its hook runs before it is known whether anybody still wants the pod
	ttl=5s
	stage create.sandbox=2500ms || return
	plugin 10-a
	late_pod
	check 'a pod that timed out goes when nobody comes' until_ 15 is_empty pods_past
	run db
	check 'no plugin has ever heard of it' hears 10-a web ''
}
O2() { # the client's deadline, once over, disconnects every plugin
	stage create.sandbox=2500ms || return
	plugin 10-a
	plugin 20-b
	late_pod
	ask 5s web
	check 'the same request has the pod' is "$out" "$late"
	check 'each plugin has heard of it, once' is "$(heard 10-a web), $(heard 20-b web)" \
		'RunPodSandbox, RunPodSandbox'
	check 'over one connection each' is "$(state_of 10-a), $(state_of 20-b)" \
		'start up, start up'
}
O3() { # a client that leaves during the hook has the pod destroyed
	stage || return
	plugin 10-a
	tell 10-a "RunPodSandbox wait $d/go"
	ask 4s web
	check 'the client leaves while a plugin is asked' out_of_time
	first=$(pods_past)
	let_go go
	ask 5s web
	check 'the same request has the same pod' is "$out" "$first"
	check 'the plugin has heard of it, once' hears 10-a web RunPodSandbox
}
O4() { # what it parks and then drops, after plugins were told, leaves them with it for ever
	ttl=1s
	stage || return
	plugin 10-a
	tell 10-a "RunPodSandbox wait $d/go"
	ask 4s web
	check 'the client leaves while a plugin is asked' out_of_time
	first=$(pods_past)
	begin again cri runp "$(pod web 1)"
	check 'another attempt is asked for' until_ 10 listed_as EVICTING
	let_go go
	ended again
	check 'it is made' given
	check 'the first one is told to be gone' until_ 10 heard_of 10-a "$first" \
		'RunPodSandbox StopPodSandbox RemovePodSandbox'
	check 'the second one is told' heard_of 10-a "$out" RunPodSandbox
}
listed_as() { has "$("$crikeep" --state-dir="$d/kept" list)" "$1"; }
heard_of() {
	is "$(lines "$1" "f(\"what\") == \"call\" && f(\"pod\") == \"$2\" { print f(\"event\") }" |
		xargs)" "$3"
}
O5() { # who connects while it is parked never hears of it
	stage create.sandbox=2500ms || return
	late_pod
	plugin 10-a
	check 'what is kept is in no list' hears 10-a web ''
	ask 5s web
	check 'the same request has it' is "$out" "$late"
	check 'who joined while it was kept hears of it, once' hears 10-a web RunPodSandbox
}
O6() { # who connects while pods are made misses some
	local i pids=()
	stage create.sandbox=100ms || return
	for i in {1..6}; do
		"$crikeep" drive --endpoint "unix://$d/cri.sock" "${network[@]}" --pod "web-$i" \
			>/dev/null 2>&1 &
		pids+=($!)
		[ $((i % 2)) -eq 0 ] || plugin_start "$i"0-p
	done
	wait "${pids[@]}"
	for i in 1 3 5; do
		check "plugin $i is synchronized" until_ 10 replied "$i"0-p Synchronize
		check "plugin $i knows each pod, and once" until_ 10 each_once "$i"0-p
	done
}
each_once() {
	is "$({
		lines "$1" 'f("what") == "has" { print f("name") }'
		runs_of "$1" | xargs -n 1
	} | sort | xargs)" \
		'web-1 web-2 web-3 web-4 web-5 web-6'
}
O7() { # a container handed back gets no PostCreateContainer
	stage create.container=2500ms || return
	plugin 10-a
	run web
	web=$out
	ask 1s web "$web" main
	check 'a container is late' out_of_time
	check 'the runtime makes it' until_ 10 container_past main
	ask 5s web "$web" main
	check 'the same request has it' is "$out" "$(containers_past)"
	check 'it is told at that moment, once' until_ 10 hears 10-a main \
		'CreateContainer PostCreateContainer'
}
O8() { # nor StopContainer and RemoveContainer when it is dropped
	ttl=5s
	stage create.container=2500ms || return
	plugin 10-a
	run web
	ask 1s web "$out" main
	check 'a container is late' out_of_time
	check 'the runtime makes it' until_ 10 container_past main
	check 'it goes when nobody comes' until_ 15 is_empty containers_past
	run db
	check 'no plugin has ever heard of it' hears 10-a main ''
}
