# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154,SC2317 # shares variables with those who source it
#
# R1 to R33: what plugins hear of pods. See nri-stage.sh.

# ---- Synchronize -------------------------------------------------------------------------------

R1() {
	stage || return
	plugin 10-a
	tell 10-a "RunPodSandbox/web wait $d/go"
	begin web cri runp "$(pod web)"
	holds 10-a RunPodSandbox web
	plugin 20-b
	let_go go
	ended web
	check 'the pod is made' given
	tell 30-c "Synchronize wait $d/go-c"
	plugin_start 30-c
	holds 30-c Synchronize
	begin db cri runp "$(pod db)"
	check 'a second pod is told to the first plugin' until_ 10 asked 10-a RunPodSandbox db
	let_go go-c
	ended db
	check 'the second pod is made' given
	run last
	check 'connected before: RunPodSandbox, each pod once' \
		is "$(heard 10-a web), $(heard 10-a db)" 'RunPodSandbox, RunPodSandbox'
	check 'joined while one was committed: that one in the list, once' \
		is "$(heard 20-b web), $(heard 20-b db)" 'has, RunPodSandbox'
	check 'joining while another was committed: once' is "$(heard 30-c web), $(heard 30-c db)" \
		'has, RunPodSandbox'
}

R2() {
	stage || return
	tell 10-a "Synchronize wait $d/go"
	plugin_start 10-a
	holds 10-a Synchronize
	begin web cri runp "$(pod web)"
	check 'a pod comes into being during Synchronize' until_ 10 pod_past web
	let_go go
	ended web
	check 'it is made' given
	run db
	check 'it comes as RunPodSandbox, after the list' until_ 10 hears 10-a web RunPodSandbox
	check 'and so do those after it' until_ 10 hears 10-a db RunPodSandbox
}
pod_past() { [ -n "$(pods_past --name "$1")" ]; }

R3() {
	stage create.sandbox=6s || return
	run early
	begin web cri runp "$(pod web)"
	check 'a pod is being made' until_ 10 has_begun sandbox web
	plugin 10-a
	check 'half made it is in no list' is "$(heard 10-a web)" ''
	check 'what was there before is' is "$(heard 10-a early)" has
	complete 10-a Synchronize early
	ended web
	check 'what was half made is told when it is done' until_ 10 hears 10-a web RunPodSandbox
}
complete() { # complete NN-NAME EVENT POD: the data
	check 'with a process id' at_least "$(told "$1" "$2" "$3" pid)" 1
	check 'with its control group' test -n "$(told "$1" "$2" "$3" cgroup)"
	[ ${#network[@]} -gt 0 ] || check 'with its address' test -n "$(told "$1" "$2" "$3" ips)"
	[ ${#network[@]} -gt 0 ] || check 'with its network namespace' \
		test -n "$(told "$1" "$2" "$3" network)"
}

R4() {
	stage create.container=60s --set=nri.request_timeout=60s || return
	plugin 10-a
	tell 10-a "RunPodSandbox/stuck wait $d/never"
	run web
	web=$out
	begin main cri create "$web" "$(container main)" "$(pod web)"
	check 'a creation is stuck' until_ 10 has_begun container main
	begin stuck cri runp "$(pod stuck)"
	holds 10-a RunPodSandbox stuck
	plugin_start 20-b
	check 'another plugin is let in meanwhile' until_ 10 hears 20-b web has
	check 'while the first has not answered' not replied 10-a RunPodSandbox stuck
}

R5() {
	stage || return
	run web
	web=$out
	make_in "$web" main
	plugin 10-a
	check 'it has the pod' hears 10-a web has
	check 'and the container' hears 10-a main has
	check 'with the id' known_as 10-a main "$out"
	run db
	check 'it hears of a pod made afterwards' until_ 10 hears 10-a db RunPodSandbox
	make_in "$out" second db
	check 'and of a container' until_ 10 hears 10-a second 'CreateContainer PostCreateContainer'
}

R6() {
	stage || return
	run web
	web=$out
	tell 10-a "Synchronize wait $d/go"
	plugin_start 10-a
	holds 10-a Synchronize
	begin main cri create "$web" "$(container main)" "$(pod web)"
	check 'a container comes into being during Synchronize' until_ 10 container_past main
	let_go go
	ended main
	check 'it is made' given
	check 'it is told after the list' until_ 10 hears 10-a main \
		'CreateContainer PostCreateContainer'
}
container_past() { [ -n "$(containers_past --name "$1")" ]; }

R7() {
	stage_apart || return
	run web
	web=$out
	plugin 10-a -reconnect 50ms
	run db
	db=$out
	crikeepd_kill
	crikeepd_start
	check 'the plugin is back' until_ 10 hears_in 2 10-a web has
	check 'and has the pod it heard of before' hears_in 2 10-a db has
	check 'pods are removed' cri rmp -f "$web" "$db"
	check 'it hears so of a pod that it had in its lists' hears_in 2 10-a web \
		'has StopPodSandbox RemovePodSandbox'
	check 'and of one that it saw made' hears_in 2 10-a db 'has StopPodSandbox RemovePodSandbox'
}

# ---- RunPodSandbox -----------------------------------------------------------------------------

R8() {
	stage || return
	plugin 10-a
	tell 10-a "RunPodSandbox wait $d/go"
	begin web cri runp "$(pod web)"
	holds 10-a RunPodSandbox web
	check 'the runtime has it ready' is "$(state_past "$(pods_past)")" SANDBOX_READY
	complete 10-a RunPodSandbox web
	let_go go
	ended web
	check 'it is made' given
}

R9() {
	stage || return
	plugin 10-a
	tell 10-a "RunPodSandbox wait $d/go"
	begin web cri runp "$(pod web)"
	holds 10-a RunPodSandbox web
	id=$(pods_past)
	check 'the runtime has it' test -n "$id"
	check 'no list shows it' is "$(cri pods -q)" ''
	check 'its status is not to be had' not_found cri inspectp "$id"
	let_go go
	ended web
	check 'it is made' is "$out" "$id"
	check 'and seen' is "$(cri pods -q --no-trunc)" "$id"
}

R10() {
	stage || return
	plugin 10-a
	tell 10-a "RunPodSandbox wait $d/go"
	begin web cri runp "$(pod web)"
	holds 10-a RunPodSandbox web
	try cri create "$(pods_past)" "$(container main)" "$(pod web)"
	check 'no container can be made in it' refused ''
	check 'none is' is "$(containers_past)" ''
	check 'nor told' is "$(heard 10-a main)" ''
}

R11() {
	stage || return
	plugin 10-a
	tell 10-a "RunPodSandbox wait $d/go"
	begin web cri runp "$(pod web)"
	holds 10-a RunPodSandbox web
	let_go go
	ended web
	web=$out
	check 'it is made' given
	check 'its status is ready' has "$(cri inspectp "$web" 2>&1)" SANDBOX_READY
	make_in "$web" main
	check 'and told' until_ 10 hears 10-a main 'CreateContainer PostCreateContainer'
}

R12() {
	stage || return
	plugin 10-a
	tell 10-a 'RunPodSandbox/web error no room'
	try cri runp "$(pod web)"
	check 'the call fails with its text, and without an id' refused 'plugin 10-a: no room'
	check 'no list has it' is "$(cri pods -q)" ''
	check 'the runtime has none, after a moment' until_ 10 is_empty pods_past
	tell 10-a ''
	run web
	check 'the same request succeeds then, and is seen' is "$(cri pods -q --no-trunc)" "$out"
}
is_empty() { is "$("$@")" ''; }

R13() {
	stage '' --set=nri.request_timeout=300ms --set=log.level=debug \
		--set=nri.policies=b=fail || return
	plugin 10-a
	plugin 20-b
	tell 10-a "RunPodSandbox/web wait $d/never"
	run web
	check 'who does not answer is disconnected' until_ 10 gone_from 10-a
	check 'what it was asked for went on before' until_ 10 logged 'COMMITTING -> COMMITTED' \
		'plugin 10-a: RunPodSandbox: no answer'
	tell 20-b "RunPodSandbox/db wait $d/never"
	try cri runp "$(pod db)"
	check 'with policy "fail" the creation fails' refused 'plugin 20-b: no answer within'
	check 'and leaves nothing' until_ 10 lists_agree
}

logged() { # logged TEXT TEXT: the first of them before the second
	awk -v first="$1" -v second="$2" \
		'index($0, second) { both = seen; exit } index($0, first) { seen = 1 }
		END { exit !both }' "$d/crikeepd.log"
}
lists_agree() { is "$(cri pods -q --no-trunc)" "$(pods_past)"; }

undone() { # a second plugin says no
	plugin 10-a
	plugin 20-b
	tell 20-b 'RunPodSandbox error no room'
	tell 10-a "StopPodSandbox wait $d/go"
	try cri runp "$(pod web)"
	check 'the second plugin refuses' refused 'plugin 20-b: no room'
	id=$(told 10-a RunPodSandbox web pod)
	holds 10-a StopPodSandbox web
}
R14() {
	stage || return
	undone
	let_go go
	check 'the first hears Stop and Remove' until_ 10 hears 10-a web \
		'RunPodSandbox StopPodSandbox RemovePodSandbox'
	check 'of that id' is \
		"$(told 10-a StopPodSandbox web pod) $(told 10-a RemovePodSandbox web pod)" \
		"$id $id"
}

R15() {
	stage || return
	plugin 10-a
	run web
	check 'the id' is "$(told 10-a RunPodSandbox web pod)" "$out"
	check 'namespace, name and uid' is \
		"$(told 10-a RunPodSandbox web namespace) $(told 10-a RunPodSandbox web uid)" \
		'default uid-of-web'
}

R16() {
	stage || return
	plugin 30-c
	plugin 10-a
	plugin 20-b
	run web
	make_in "$out" main
	cri start "$out" >/dev/null
	check 'the first by index before the second' \
		before 10-a RunPodSandbox 20-b RunPodSandbox web
	check 'the second before the third' before 20-b RunPodSandbox 30-c RunPodSandbox web
	check 'all before the container' is "$(told 30-c CreateContainer main cname)" main
	check 'which is told in the same order' \
		before 10-a CreateContainer 30-c CreateContainer main
}

R17() {
	stage || return
	plugin 10-a
	tell 10-a 'RunPodSandbox error no room'
	try cri runp "$(pod web)"
	check 'a plugin refuses' refused 'no room'
	first=$(told 10-a RunPodSandbox web pod)
	tell 10-a ''
	run web
	check 'the next has another id' differs "$out" "$first"
	second=$out
	check 'and was told' is "$(told 10-a RunPodSandbox web pod)" "$second"
	cri rmp -f "$second" >/dev/null
	run web
	check 'so has the one after it was removed' differs "$out" "$second"
}

# ---- StopPodSandbox ----------------------------------------------------------------------------

running() { # a pod 'web' with a container 'main' that runs: $web, $main
	run web
	web=$out
	make_in "$web" main
	main=$out
	check 'the container is started' cri start "$main"
}

R18() {
	stage || return
	plugin 10-a
	running
	tell 10-a "StopPodSandbox wait $d/go"
	begin stop cri stopp "$web"
	holds 10-a StopPodSandbox web
	check 'its container has ended' is "$(container_state_past "$main")" CONTAINER_EXITED
	check 'and was told so before' hears 10-a main \
		"${whole% RemoveContainer}"
	let_go go
	ended stop
	check 'the pod is stopped' succeeded
}

stop_held() {
	plugin 10-a
	run web
	web=$out
	tell 10-a "StopPodSandbox wait $d/go"
	begin stop cri stopp "$web"
	holds 10-a StopPodSandbox web
}
R19() {
	stage || return
	stop_held
	cri pods >/dev/null # what was asked of the runtime before this has arrived there
	check 'the runtime was not asked to stop it' not stop_begun "$web"
	check 'and has not' is "$(state_past "$web")" SANDBOX_READY
	let_go go
	ended stop
	check 'it is stopped then' is "$(state_past "$web")" SANDBOX_NOTREADY
}
R20() {
	stage || return
	stop_held
	check 'its status can be had' cri inspectp "$web"
	check 'and it is listed' is "$(cri pods -q --no-trunc)" "$web"
	let_go go
	ended stop
	check 'it is stopped' succeeded
}

R21() {
	stage '' --set=nri.request_timeout=300ms || return
	plugin 10-a
	plugin 20-b
	run web
	web=$out
	tell 10-a 'StopPodSandbox error broken'
	tell 20-b "StopPodSandbox wait $d/go"
	try cri stopp "$web"
	check 'an error and no answer: the call succeeds' succeeded
	check 'both were told' until_ 10 asked 20-b StopPodSandbox web
	check 'it is stopped' is "$(state_past "$web")" SANDBOX_NOTREADY
}

R22() {
	stage || return
	plugin 10-a
	plugin 20-b
	run web
	tell 10-a 'StopPodSandbox error broken'
	check 'a pod is stopped' cri stopp "$out"
	check "a plugin's error keeps no other plugin from StopPodSandbox" hears 20-b web \
		'RunPodSandbox StopPodSandbox'
}

R23() {
	stage || return
	plugin 10-a
	run web
	web=$out
	check 'it is stopped' says StopPodSandbox "$web"
	check 'a repeat succeeds' says StopPodSandbox "$web"
	check 'and a third' says StopPodSandbox "$web"
	check 'there is one event' hears 10-a web 'RunPodSandbox StopPodSandbox'
	check 'the history has it, once' is \
		"$("$crikeep" history --state-dir "$d/kept" web |
			grep -c 'plugins were told that it stops: 10-a')" 1
}

R24() {
	stage stop=700ms || return
	plugin 10-a
	run web
	web=$out
	try cri -t 200ms stopp "$web"
	check 'the runtime is too slow for the client' failed
	check 'the repeat succeeds' cri stopp "$web"
	check 'and so does one that comes when it has ended' cri stopp "$web"
	check 'there is one event' hears 10-a web 'RunPodSandbox StopPodSandbox'
	run db
	db=$out
	check 'a sandbox ends by itself' past stopp "$db"
	cri pods >/dev/null
	check 'it is stopped' cri stopp "$db"
	check 'there is one event' hears 10-a db 'RunPodSandbox StopPodSandbox'
}

R25() {
	stage '' --set=nri.adjust=before-create || return
	plugin 10-a
	run web
	web=$out
	check 'it is stopped' cri stopp "$web"
	try cri create "$web" "$(container main)" "$(pod web)"
	check 'no container can be made in it' refused ''
	run db
	check 'and no event says so' hears 10-a main ''
}

# ---- RemovePodSandbox --------------------------------------------------------------------------

R26() {
	stage || return
	plugin 10-a
	running
	tell 10-a "RemovePodSandbox wait $d/go"
	begin remove says RemovePodSandbox "$web"
	holds 10-a RemovePodSandbox web
	check 'its containers are removed' is "$(containers_past)" ''
	check 'it is there' is "$(pods_past)" "$web"
	check 'and listed' is "$(cri pods -q --no-trunc)" "$web"
	check 'Stop is over' hears 10-a web 'RunPodSandbox StopPodSandbox RemovePodSandbox'
	let_go go
	ended remove
	check 'it is removed' succeeded
	check 'and gone' is "$(pods_past)" ''
}

R27() {
	stage || return
	plugin 10-a
	run web
	web=$out
	check 'it is gone, behind our back' past rmp -f "$web"
	check 'its removal succeeds' says RemovePodSandbox "$web"
	check 'and is told' hears 10-a web 'RunPodSandbox StopPodSandbox RemovePodSandbox'
}

R28() {
	stage '' --set=nri.request_timeout=300ms || return
	plugin 10-a
	plugin 20-b
	plugin 30-c
	run web
	web=$out
	tell 10-a 'RemovePodSandbox error broken'
	tell 20-b "RemovePodSandbox wait $d/go"
	check 'an error and no answer: the call succeeds' says RemovePodSandbox "$web"
	check 'the third is told' until_ 10 hears 30-c web \
		'RunPodSandbox StopPodSandbox RemovePodSandbox'
	check 'it is gone' is "$(pods_past)" ''
}

R29() {
	stage || return
	plugin 10-a
	run web
	web=$out
	check 'it is removed' says RemovePodSandbox "$web"
	check 'a repeat succeeds' says RemovePodSandbox "$web"
	check 'so does an id that never was' says RemovePodSandbox "$(printf '%064d' 0)"
	run db
	check 'there is one event' hears 10-a web 'RunPodSandbox StopPodSandbox RemovePodSandbox'
	check 'and none of nobody' is "$(heard 10-a '')" 'Configure Synchronize'
}

# ---- order -------------------------------------------------------------------------------------

R30() {
	stage '' --set=nri.request_timeout=3s || return
	plugin 10-a
	tell 10-a "RunPodSandbox/web wait $d/go"
	run web
	check 'one plugin is late' not replied 10-a RunPodSandbox web
	check 'the pod is removed' says RemovePodSandbox "$out"
	check 'the plugin hears nothing of it while it is' hears 10-a web RunPodSandbox
	let_go go
	check 'and all of it afterwards' until_ 10 hears 10-a web \
		'RunPodSandbox StopPodSandbox RemovePodSandbox'
	check 'one after the other' one_at_a_time 10-a
	check 'with one id' is "$(lines 10-a 'f("name") == "web" { print f("pod") }' | sort -u)" \
		"$out"
}

R31() {
	stage || return
	plugin 10-a
	run web
	check 'a running pod is removed' says RemovePodSandbox "$out"
	check 'and Stop comes first' hears 10-a web 'RunPodSandbox StopPodSandbox RemovePodSandbox'
}

R32() {
	stage || return
	undone
	check 'Remove waits for Stop' hears 10-a web 'RunPodSandbox StopPodSandbox'
	let_go go
	check 'and comes then' until_ 10 hears 10-a web \
		'RunPodSandbox StopPodSandbox RemovePodSandbox'
	check 'one after the other' one_at_a_time 10-a
}

R33() {
	local i pids=()
	stage || return
	plugin 10-a
	tell 10-a 'RunPodSandbox sleep 30ms'
	for i in {1..8}; do
		"$crikeep" drive --endpoint "unix://$d/cri.sock" "${network[@]}" --pod "web-$i" \
			>/dev/null 2>&1 &
		pids+=($!)
	done
	wait "${pids[@]}"
	check 'one after the other' one_at_a_time 10-a
	check 'each is told' is \
		"$(lines 10-a 'f("what") == "done" && f("event") == "RunPodSandbox"' | wc -l)" 8
	check 'each is made' is "$(cri pods -q | wc -l)" 8
}
