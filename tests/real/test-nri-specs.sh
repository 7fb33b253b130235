#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What cri-tools demands of a runtime with NRI (the NRI specs of critest on its main branch, 13 of
# them), in our words, over Debian's containerd and over the newest one, in both modes of
# nri.adjust, as root. Each of the four has one containerd, on which the specs are played in turn.
#
# With before-create four of the specs cannot pass as they are written, because they look for the
# container by the id that CRI gives it: failed_container, late_plugin, during_list, none_lost. They
# are held here by the one id that plugins have of a container (known_as).
#
# usage: test-nri-specs.sh [SCENARIO]
#
# A && B || C is meant; shares variables
# shellcheck disable=SC1091,SC2015,SC2034,SC2086,SC2119,SC2120,SC2154,SC2317
set -u

here=$(cd "$(dirname "$0")" && pwd)
scenarios='on_commit before_create newest_on_commit newest_before_create'
. "$here/play.sh"
. "$here/stage.sh"
. "$here/nri-stage.sh"
. "$here/nri-containerd.sh"
. "$here/nri-pods.sh"
. "$here/nri-containers.sh"

[ "${1:-}" = inside ] || [ "$(id -u)" -ne 0 ] || need crictl nri relay containerd
enter "$@"

on_commit() { specs on-commit; }
before_create() { specs before-create; }
newest_on_commit() { over_newest on-commit; }
newest_before_create() { over_newest before-create; }

over_newest() {
	newest "$d" 'disable = true'
	specs "$1"
	check 'it was the newest containerd' has "$(past version)" \
		"RuntimeVersion:  $(sed -n 's|.*containerd/v2 v\([0-9.]*\).*|\1|p' \
			"$here/containerd/go.mod")"
}

specs() { # specs ADJUST: all of them
	local mode=$scenario spec
	adjust=$1
	stage_up '' --set=nri.adjust="$adjust" || return
	for spec in pod_life container_life failed_container pod_hidden containers_wait \
		pod_refused stop_waits stopped_twice container_hidden container_refused \
		late_plugin during_list none_lost; do
		scenario="$mode: ${spec//_/ }"
		"$spec"
	done
	scenario=$mode
}

# each scenario has the stage for itself
stage() {
	[ ${#plugin_pids[@]} -eq 0 ] || {
		kill -KILL "${plugin_pids[@]}"
		wait "${plugin_pids[@]}"
	} 2>/dev/null
	plugin_pids=() command=''
	cri rmp -fa >/dev/null 2>&1
	rm -f "$d"/[0-9]*-*.log "$d"/[0-9]*-*.script "$d"/go*
	check 'nothing is left of the one before' until_ 20 is_empty pods_past
}

container() { # one that does something else, if $command says so
	cat >"$d/$1-${2:-0}.container" <<-END
		{"metadata":{"name":"$1","attempt":${2:-0}},"image":{"image":"$image"},
		${command:+"\"command\":[$command],"}
		"log_path":"$1_${2:-0}.log","linux":{}}
	END
	echo "$d/$1-${2:-0}.container"
}

known_as() { # known_as NN-NAME CONTAINER ID
	local id
	id=$(ids_of "$1" "$2")
	if [ "$adjust" = on-commit ]; then
		is "$id" "$3"
	else
		[[ $id =~ ^[0-9a-f]{64}$ ]] && differs "$id" "$3" ||
			{ echo "it is '$id'"; return 1; }
	fi
}

# ---- the specs -----------------------------------------------------------------------------------

pod_life() { # Run, Stop, Remove: in this order, with the pod's id, name, namespace and uid
	local event
	stage || return
	plugin 10-a
	run web
	web=$out
	check 'it is stopped' cri stopp "$web"
	check 'it is removed' cri rmp "$web"
	check 'each event came, in order' hears 10-a web \
		'RunPodSandbox StopPodSandbox RemovePodSandbox'
	for event in Run Stop Remove; do
		check "$event with its id, namespace and uid" is \
			"$(told 10-a "${event}PodSandbox" web pod) $(
				told 10-a "${event}PodSandbox" web namespace) $(
				told 10-a "${event}PodSandbox" web uid)" "$web default uid-of-web"
	done
}

container_life() { R34; } # Create, Start, Stop, Remove: in this order, with its id and name

failed_container() { # ends by itself: StopContainer comes before anybody stops or removes it
	stage || return
	plugin 10-a
	run web
	web=$out
	command='"/bin/sh","-c","exit 1"'
	make_in "$web" main
	main=$out
	check 'it is started' cri start "$main"
	check 'it ends' until_ 20 exited "$main"
	check 'with its status' has "$(cri inspect "$main")" '"exitCode": 1'
	check 'that is told, without its removal' until_ 10 hears 10-a main \
		"${whole% RemoveContainer}"
	check 'its removal is told after it' cri rm "$main"
	check 'once' until_ 10 hears 10-a main "$whole"
	check 'all with its id' known_as 10-a main "$main"
}

pod_hidden() { R9; } # while RunPodSandbox is asked, the pod is in no list and has no status

containers_wait() { # and no container starts in it
	R10
	R11
}

pod_refused() { R12; } # an error fails it, nothing is left, and a later try succeeds

stop_waits() { # while StopPodSandbox is asked, containers have ended and the pod has a status
	R18
	R20
}

stopped_twice() { # a second stop succeeds, untold; the pod is never used again
	stage || return
	plugin 10-a
	run web
	web=$out
	check 'it is stopped' cri stopp "$web"
	check 'and again' cri stopp "$web"
	try cri create "$web" "$(container main)" "$(pod web)"
	check 'no container can be made in it' refused ''
	run db # what was to be told before it, was
	check 'its stop was told once, and a container never' is \
		"$(heard 10-a web), $(heard 10-a main)" 'RunPodSandbox StopPodSandbox, '
}

container_hidden() { R36; } # while CreateContainer is asked, it is in no list and has no status

container_refused() { R37; } # an error fails it, nothing is left, and a later try succeeds

late_plugin() { # one that connects later is told what there is, and then what comes
	stage || return
	plugin 10-a
	running
	plugin 20-b
	check 'it has the pod' hears 20-b web has
	check 'by its id' is "$(told 20-b Synchronize web pod)" "$web"
	check 'and the container' hears 20-b main has
	check 'by its id too' known_as 20-b main "$main"
	make_in "$web" second
	check 'what is made then is told' until_ 10 hears 20-b second \
		'CreateContainer PostCreateContainer'
	check 'with its id' known_as 20-b second "$out"
}

during_list() { # nothing that is made while a plugin has its list is lost
	stage || return
	plugin 10-a
	running
	tell 20-b "Synchronize wait $d/go"
	plugin_start 20-b
	holds 20-b Synchronize
	begin second cri create "$web" "$(container second)" "$(pod web)"
	check 'a container comes into being during Synchronize' until_ 10 is_begun second
	let_go go
	ended second
	check 'it is made' given
	check 'the plugin has it, once' until_ 10 once 20-b second
	check 'by its id' known_as 20-b second "$out"
}

none_lost() { # before, during and after the list, several at a time
	local i id=() pod
	stage || return
	plugin 10-a
	run web
	web=$out pod=$(pod web)
	for i in 1 2; do
		make_in "$web" "before-$i"
	done
	tell 20-b "Synchronize wait $d/go"
	plugin_start 20-b
	holds 20-b Synchronize
	for i in 1 2 3; do
		begin "during_$i" cri create "$web" "$(container "during-$i")" "$pod"
	done
	check 'containers come into being during Synchronize' until_ 10 is_begun during-1
	let_go go
	for i in 1 2 3; do
		ended "during_$i"
		check "the ${i}. is made" given
		id[i]=$out
	done
	for i in 1 2; do
		make_in "$web" "after-$i"
	done
	for i in before-{1,2} during-{1,2,3} after-{1,2}; do
		check "$i reaches the plugin, once" until_ 10 once 20-b "$i"
	done
	for i in 1 2 3; do
		check "the ${i}. by its id" known_as 20-b "during-$i" "${id[i]}"
	done
}

# asked of the first plugin, or already made: the creation is under way
is_begun() { container_past "$1" || asked 10-a CreateContainer "$1"; }
once() { # once NN-NAME CONTAINER: in its list or as an event
	case $(heard "$1" "$2") in
	has | 'CreateContainer PostCreateContainer') ;;
	*) heard "$1" "$2"; return 1 ;;
	esac
}

play_all
