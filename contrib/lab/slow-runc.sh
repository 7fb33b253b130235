#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Stands in for runc: logs each call, and is slow where it is told to be. containerd.sh puts a copy
# into a directory of its own, with
#	real       the path of the real runc
#	delays     lines "POD VERB[:KIND] SECONDS": the first that fits counts; read anew for each
#	           call. POD * means any, KIND is sandbox or container. The wait comes before the
#	           work, so that a runc killed meanwhile has done nothing.
#	calls.log  written: seconds since 1970, verb, pod, sandbox or container, id, and begin, work
#	           (the wait is over) or end=STATUS
#	pods/      written: which pod an id belongs to; only `create` can see that
# Only pods with "io.kubernetes.cri" annotations have names, that is containerd's; others are "-".
dir=${0%/*}

verb='' bundle='' id='' next=''
for word; do
	case $next in
	bundle) bundle=$word next='' ; continue ;;
	skip) next='' ; continue ;;
	esac
	case $word in
	--bundle | -b) next=bundle ;;
	--root | --log | --log-format | --pid-file | --console-socket | --process) next=skip ;;
	-p | --pid | --cwd | --user) next=skip ;;
	-*) ;;
	*) if [ -z "$verb" ]; then verb=$word; elif [ -z "$id" ]; then id=$word; fi ;;
	esac
done

pod=- kind=-
if [ -n "$bundle" ] && config=$(cat "$bundle/config.json" 2>/dev/null); then
	[[ $config =~ \"io.kubernetes.cri.sandbox-name\":\ *\"([^\"]*)\" ]] &&
		pod=${BASH_REMATCH[1]}
	[[ $config =~ \"io.kubernetes.cri.container-type\":\ *\"([^\"]*)\" ]] &&
		kind=${BASH_REMATCH[1]}
	echo "$pod $kind" >"$dir/pods/$id"
elif [ -n "$id" ] && [ -r "$dir/pods/$id" ]; then
	read -r pod kind <"$dir/pods/$id"
fi

note() { echo "$EPOCHREALTIME $verb $pod $kind ${id:--} $1" >>"$dir/calls.log"; }

note begin
while read -r who what seconds; do
	if { [ "$who" = "$pod" ] || [ "$who" = '*' ]; } &&
		{ [ "$what" = "$verb" ] || [ "$what" = "$verb:$kind" ]; }; then
		# not sleep(1): it would live on when this shell is killed, and hold the pipes
		# containerd waits for
		read -rt "$seconds" <> <(:)
		break
	fi
done <"$dir/delays"
note work
# who runs a command in a container sends signals to it by our process id
[ "$verb" != exec ] || exec "$(<"$dir/real")" "$@"
"$(<"$dir/real")" "$@"
status=$?
note end=$status
exit $status
