# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154,SC2317 # shares variables with those who source it
#
# R34 to R37, and adjustments: what plugins hear of containers. See nri-stage.sh.

whole='CreateContainer PostCreateContainer StartContainer PostStartContainer'
whole+=' StopContainer RemoveContainer'

R34() {
	stage || return
	plugin 10-a
	# once for each plugin, and where the stage is shared there were some before
	check 'it is said where StartContainer comes too early, and only there' is "$(grep -q \
		'StartContainer: before containerd that event has no pid' "$d/crikeepd.log" &&
		echo said)" "$([ -z "$relayed" ] || echo said)"
	running
	check 'it is stopped' cri stop "$main"
	check 'it is removed' cri rm "$main"
	check 'each event came, in order' hears 10-a main "$whole"
	check 'each with the id' known_as 10-a main "$main"
	check 'and that of the pod' is \
		"$(lines 10-a 'f("cname") == "main" { print f("pod") }' | sort -u)" "$web"
}

ids_of() { lines "$1" "f(\"cname\") == \"$2\" { print f(\"container\") }" | sort -u | xargs; }
# known_as NN-NAME CONTAINER ID: the plugin has heard of it by this id only
known_as() { is "$(ids_of "$1" "$2")" "$3"; }

R35() {
	stage exit=300ms || return
	plugin 10-a
	running
	check 'it ends by itself, and is told' until_ 10 hears 10-a main \
		"${whole% RemoveContainer}"
	check 'it was not removed' is "$(containers_past)" "$main"
	check 'its removal is told' cri rm "$main"
	check 'with no second end' hears 10-a main "$whole"
}

R36() {
	stage || return
	plugin 10-a
	run web
	web=$out
	tell 10-a "CreateContainer wait $d/go"
	begin main cri create "$web" "$(container main)" "$(pod web)"
	holds 10-a CreateContainer main
	id=$(told 10-a CreateContainer main container)
	check 'no list shows it' is "$(cri ps -aq)" ''
	check 'its status is not to be had' not_found cri inspect "$id"
	let_go go
	ended main
	check 'it is made' given
	check 'the plugin knows it by its id' known_as 10-a main "$out"
	check 'and seen' is "$(cri ps -aq --no-trunc)" "$out"
}

R37() {
	stage || return
	plugin 10-a
	run web
	web=$out
	tell 10-a 'CreateContainer error no such device'
	try cri create "$web" "$(container main)" "$(pod web)"
	check 'the call fails with its text, and without an id' refused \
		'plugin 10-a: no such device'
	check 'no container is left behind' until_ 10 is_empty containers_past
	check 'nothing else was said of it but its end' until_ 10 ended_untold 10-a main
	tell 10-a ''
	make_in "$web" main
	check 'a later one is told' until_ 10 hears_last 10-a main \
		'CreateContainer PostCreateContainer'
	check 'and can be started' cri start "$out"
}
ended_untold() { # with or without an undo
	case $(heard "$1" "$2") in
	CreateContainer | 'CreateContainer StopContainer RemoveContainer') ;;
	*) heard "$1" "$2"; return 1 ;;
	esac
}
hears_last() { [[ $(heard "$1" "$2") == *"$3" ]] || { heard "$1" "$2"; return 1; }; }

# ---- what a plugin changes ---------------------------------------------------------------------

H7() {
	stage || return
	plugin 10-a
	run web
	web=$out
	tell 10-a 'CreateContainer annotate color=blue'
	try cri create "$web" "$(container main)" "$(pod web)"
	check 'what comes too late fails the creation' refused 'plugin 10-a'
	check 'nothing is left of it' until_ 10 is_empty containers_past
	tell 10-a ''
	try cri create "$web" "$(container second)" "$(pod web)"
	check 'the next one fails' refused before-create
	check 'before anything is made' is "$(heard 10-a second)" ''
	restage '' --set=nri.adjust=before-create || return
	plugin 20-b
	tell 20-b 'CreateContainer annotate color=blue' 'CreateContainer env SHADE=dark' \
		"CreateContainer mount $d /mnt rbind ro"
	run db
	make_in "$out" third db
	past inspect "$out" >"$d/third"
	check 'before the creation an annotation is applied' grep -q '"color": "blue"' "$d/third"
	check 'a variable' grep -q 'SHADE=dark' "$d/third"
	check 'a mount' grep -q '/mnt' "$d/third"
	tell 20-b 'CreateContainer rlimit RLIMIT_NOFILE 10 10'
	try cri create "$(cri pods -q --name db)" "$(container fourth)" "$(pod db)"
	check 'what CRI cannot say fails it, naming plugin and field' refused 'plugin 20-b'
	check 'as in' grep -qi rlimits "$d/err"
}

# a container that plugins are asked about before it exists has one id for them, whatever the
# runtime calls it
before_create() {
	stage create.container=2500ms --set=nri.adjust=before-create || return
	plugin 10-a
	run web
	web=$out
	ask 1s web "$web" main
	check 'a container is late' out_of_time
	check 'plugins were asked' hears 10-a main CreateContainer
	check 'the runtime makes it' until_ 10 container_past main
	plugin 20-b
	ask 5s web "$web" main
	main=$out
	check 'the same request has it' is "$main" "$(containers_past)"
	check 'who was asked hears the rest' until_ 10 hears 10-a main \
		'CreateContainer PostCreateContainer'
	check 'who has come meanwhile is asked now' until_ 10 hears 20-b main \
		'CreateContainer PostCreateContainer'
	id=$(told 10-a CreateContainer main container)
	check 'its id is not the one of the runtime' differs "$id" "$main"
	check 'it is started' cri start "$main"
	tell 10-a "SIGUSR1 call-update $id 88"
	kill -USR1 "${plugin_pids[0]}"
	check 'the plugin can name it' until_ 10 has_shares "$main" 88
	check 'the pod is removed' says RemovePodSandbox "$web"
	check 'each hears of all' is "$(heard 10-a main), $(heard 20-b main)" "$whole, $whole"
	check 'by one id' is "$(ids_of 10-a main) $(ids_of 20-b main)" "$id $id"
}
# and it may never come to be
asked_in_vain() {
	stage fail.container=1 --set=nri.adjust=before-create || return
	plugin 10-a
	plugin 20-b
	run web
	web=$out
	try cri create "$web" "$(container main)" "$(pod web)"
	check 'the runtime cannot make it' refused ''
	check 'who was asked hears that it is over' until_ 10 hears 10-a main \
		'CreateContainer StopContainer RemoveContainer'
	check 'each of them' until_ 10 hears 20-b main \
		'CreateContainer StopContainer RemoveContainer'
	tell 20-b 'CreateContainer error no such device'
	try cri create "$web" "$(container second)" "$(pod web)"
	check 'a plugin says no' refused 'plugin 20-b: no such device'
	check 'the one before it hears that it is over' \
		until_ 10 hears 10-a second 'CreateContainer StopContainer RemoveContainer'
	check 'nothing was made' is "$(containers_past)" ''
}

# two plugins, one annotation
conflict() {
	stage '' --set=nri.adjust=before-create || return
	plugin 10-a
	plugin 20-b
	tell 10-a 'CreateContainer annotate color=blue'
	tell 20-b 'CreateContainer annotate color=red'
	run web
	web=$out
	try cri create "$web" "$(container main)" "$(pod web)"
	check 'the creation fails and names one' refused 10-a
	check 'and the other' has "$err" 20-b
	tell 20-b 'CreateContainer unannotate color' 'CreateContainer annotate color=red'
	make_in "$web" main
	check 'who takes it away first may set it' has "$(past inspect "$out")" '"color": "red"'
}

# a plugin that says no to what others want
validated() {
	stage '' --set=nri.adjust=before-create || return
	plugin 10-a
	plugin 90-judge -events ValidateContainerAdjustment
	tell 10-a 'CreateContainer annotate color=blue'
	tell 90-judge 'ValidateContainerAdjustment error no blue here'
	run web
	web=$out
	try cri create "$web" "$(container main)" "$(pod web)"
	check 'the creation fails with its text' refused 'no blue here'
	check 'it was shown who wants what' has \
		"$(lines 90-judge \
			'f("what") == "call" && f("event") == "ValidateContainerAdjustment"')" \
		'Annotations.color=10-a'
	tell 90-judge ''
	make_in "$web" main
	check 'it may be persuaded' has "$(past inspect "$out")" '"color": "blue"'
}

updated() {
	stage || return
	plugin 10-a
	running
	tell 10-a 'UpdateContainer shares 77'
	check 'resources are updated' cri update --cpu-share 50 "$main"
	check 'the plugin saw what was asked' is "$(told 10-a UpdateContainer main asked)" 50
	check 'what the plugin wants is done' until_ 10 has_shares "$main" 77
	check 'it hears so' until_ 10 asked 10-a PostUpdateContainer main
	tell 10-a "SIGUSR1 call-update $main 88"
	kill -USR1 "$plugin_pid"
	check 'it changes a container out of the blue' until_ 10 has_shares "$main" 88
	make_in "$web" victim
	victim=$out
	check 'a second container is started' cri start "$victim"
	tell 10-a "UpdateContainer evict $victim too greedy"
	cri update --cpu-share 51 "$main" >/dev/null
	check 'a container it wants gone is stopped' until_ 10 exited "$victim"
}
has_shares() {
	past inspect "$1" | grep -q "\"\\(cpuShares\\|cpu_shares\\|shares\\)\": \"\\?$2\\b"
}
exited() { is "$(container_state_past "$1")" CONTAINER_EXITED; }

# ---- who the plugins are -----------------------------------------------------------------------

old_stub() {
	stage || return
	run web
	web=$out
	plugin_old 10-a
	plugin 20-b
	make_in "$web" main
	main=$out
	check 'a container is started' cri start "$main"
	check 'it has the pod in its list' hears 10-a web has
	check 'the pod is removed' says RemovePodSandbox "$web"
	check 'a plugin on v0.3.0 hears of all' hears 10-a main "$whole"
	check 'also of the pod' hears 10-a web 'has StopPodSandbox RemovePodSandbox'
	check 'as does one on the newest' is "$(heard 20-b main), $(heard 20-b web)" \
		"$whole, has StopPodSandbox RemovePodSandbox"
}

# a list that does not fit into one message
long_list() {
	stage sandboxes=200,padding=32KiB || return
	plugin 10-a
	check 'it comes in pieces' at_least \
		"$(lines 10-a 'f("what") == "rpc" && f("event") == "Synchronize" &&
			f("more") == "true"' | wc -l)" 1
	check 'the plugin gets it as one' is \
		"$(lines 10-a 'f("what") == "call" && f("event") == "Synchronize" {
			print f("pods") }')" 200
	check 'each pod once' is \
		"$(lines 10-a 'f("what") == "has" { print f("pod") }' | sort -u | wc -l)" 200
	launch nri-v030 20-b
	check 'a plugin on v0.3.0, which would take each for the whole, is disconnected' until_ 10 \
		gone_from 20-b
	run web
	check 'the other one is not' hears 10-a web RunPodSandbox
}

launched() {
	mkdir "$d/plugins" "$d/conf"
	ln -s "$tools/nri" "$d/plugins/10-a"
	ln -s "$tools/nri" "$d/plugins/20-b"
	printf 'log %s\nscript %s\n' "$d/10-a.log" "$d/10-a.script" >"$d/conf/10-a.conf"
	printf 'log %s\nevents RunPodSandbox\n' "$d/20-b.log" >"$d/conf/b.conf"
	echo '#!/bin/sh' >"$d/plugins/odd"
	chmod +x "$d/plugins/odd"
	echo nothing >"$d/plugins/30-not-executable"
	stage '' --set=nri.plugin_dir="$d/plugins" --set=nri.config_dir="$d/conf" || return
	check 'the first is synchronized' until_ 10 replied 10-a Synchronize
	check 'the second too' until_ 10 replied 20-b Synchronize
	run web
	check 'they are told' is "$(heard 10-a web) $(heard 20-b web)" 'RunPodSandbox RunPodSandbox'
	check 'in order' before 10-a RunPodSandbox 20-b RunPodSandbox web
	check 'subscriptions are theirs' is "$(cri rmp -f "$out" >/dev/null; heard 20-b web)" \
		RunPodSandbox
	check 'their environment is three variables' has "$(lines 10-a 'f("what") == "env"')" \
		'"env":["NRI_PLUGIN_NAME=a","NRI_PLUGIN_IDX=10","NRI_PLUGIN_SOCKET=3"]'
}
