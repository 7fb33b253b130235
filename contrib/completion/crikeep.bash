# SPDX-License-Identifier: Apache-2.0
# bash completion for crikeep(1) and crikeepd(8): source it, or install it as
# /usr/share/bash-completion/completions/crikeep, with a link crikeepd beside it
#
# Run as a program, it prints the completions of its last argument, one on each line. _crikeep and crikeep.fish do that
# for zsh and fish.
#
# Commands, options and their fixed values are listed here; row numbers and pods come from `crikeep list`, with the same
# --state-dir.

# _crikeep_options COMMAND: words a command takes, apart from entries and files
_crikeep_options() {
	case $1 in
	'') echo 'status doctor list ls show explain history stats evict check compare pods plugins drive simulate exporter help --version' ;;
	help) echo 'status doctor list show explain history stats evict check compare pods plugins drive simulate exporter' ;;
	status) echo '--socket --endpoint --api' ;;
	doctor) echo '--config --root' ;;
	list | ls) echo '--all --quiet --no-trunc --kind --namespace --pod --sort --state --uid --watch' ;;
	show) echo '--raw' ;;
	history) echo '--follow --lines --since --until' ;;
	evict) echo '--dry-run --release --wait --yes' ;;
	compare) echo 'RunPodSandbox CreateContainer --mode --ignore-annotations --compare-sandbox-config' ;;
	pods) echo '--endpoint --api --all --quiet --no-trunc --timeout' ;;
	explain) echo '--runtime' ;;
	plugins) echo '--quiet --no-trunc --state' ;;
	drive)
		echo '--endpoint --api --deadline --retry --give-up --request --rpc --pod --namespace --uid --container --image' \
			'--sandbox --attempt --host-network --runtime-handler'
		;;
	simulate)
		echo '--containers --create --deadline --give-up --hand-back --jitter --kubelet-restart-at --plot --pods' \
			'--policy --restart-at --seed --slow --trace'
		;;
	exporter) echo '--listen --once --socket' ;;
	esac
	[ "$1" = help ] || echo '--state-dir --output --no-pager --help --usage'
}

# _crikeep_values COMMAND OPTION: the values of an option that has a fixed set of them; status 1: OPTION takes no value
_crikeep_values() {
	case $1:$2 in
	list:--output | list:-o | ls:--output | ls:-o) echo 'table wide name json yaml' ;;
	*:--output | *:-o) echo 'table json yaml' ;;
	list:--kind | ls:--kind) echo 'sandbox container' ;;
	list:--sort | ls:--sort) echo 'entry pod state due' ;;
	list:--state | ls:--state) echo 'creating unknown kept committing committed ended evicting gone' ;;
	plugins:--state) echo 'connected registered synchronizing ready overdue absent gone' ;;
	status:--api | pods:--api | drive:--api) echo 'v1 v1alpha2' ;;
	drive:--rpc) echo 'RunPodSandbox CreateContainer' ;;
	drive:--host-network) return 1 ;;
	compare:--mode) echo 'normalized identity strict' ;;
	simulate:--policy) echo 'none ram crikeep all' ;;
	simulate:--slow) echo 'sandbox container both' ;;
	simulate:--hand-back) echo 'repeat offer' ;;
	simulate:--trace) return 1 ;;
	drive:--* | status:--endpoint | pods:--endpoint | pods:--timeout) ;;
	simulate:--* | list:--namespace | list:-n | ls:-n | list:--pod | list:--uid | ls:--namespace | ls:--pod | ls:--uid) ;;
	explain:--runtime | exporter:--listen | history:--since | history:--until | history:--lines | history:-n | compare:--ignore-annotations) ;;
	*) return 1 ;;
	esac
}

# _crikeep_entries [--all]: rows, and pods as NAMESPACE/NAME; in ${dir[@]} may be --state-dir
_crikeep_entries() {
	crikeep "${dir[@]}" list "$@" --quiet 2>/dev/null
	crikeep "${dir[@]}" list "$@" -o name 2>/dev/null
}

_crikeep() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} command='' words i
	local -a dir=()

	for ((i = 1; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		--state-dir)
			[ "${COMP_WORDS[i + 1]}" = '=' ] && ((i++)) # "--state-dir=DIR" comes as three words
			((i++))
			((i < COMP_CWORD)) && dir=(--state-dir "${COMP_WORDS[i]}")
			;;
		--output | -o)
			[ "${COMP_WORDS[i + 1]}" = '=' ] && ((i++))
			((i++))
			;;
		-*) ;;
		*) [ -n "$command" ] || command=${COMP_WORDS[i]} ;;
		esac
	done
	[ "$prev" = '=' ] && prev=${COMP_WORDS[COMP_CWORD - 2]}
	[ "$cur" = '=' ] && cur=''

	case $command:$prev:$cur in
	*:--state-dir:* | drive:--request:* | doctor:--config:* | doctor:--root:* | exporter:--socket:* | status:--socket:* | simulate:--plot:*)
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
		return
		;;
	show:*:-* | explain:*:-* | history:*:-* | evict:*:-* | plugins:*:-*) words=$(_crikeep_options "$command") ;;
	list:--pod:* | ls:--pod:*) words=$(crikeep "${dir[@]}" list --all -o name 2>/dev/null) ;;
	list:--namespace:* | list:-n:* | ls:--namespace:* | ls:-n:*)
		words=$(crikeep "${dir[@]}" list --all -o name 2>/dev/null | cut -d/ -f1 | sort -u)
		;;
	compare:--mode:*) words=$(_crikeep_values compare --mode) ;;
	compare:*:-*) words=$(_crikeep_options compare) ;;
	compare:*)
		mapfile -t COMPREPLY < <(compgen -W 'RunPodSandbox CreateContainer' -- "$cur"; compgen -f -- "$cur")
		return
		;;
	*)
		words=$(_crikeep_values "$command" "$prev") || case $command in
		show | explain | history) words=$(_crikeep_entries --all) ;;
		evict) words=$(_crikeep_entries) ;;
		plugins) words=$(crikeep "${dir[@]}" plugins --quiet 2>/dev/null) ;;
		*) words=$(_crikeep_options "$command") ;;
		esac
		;;
	esac
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
}

# What crikeepd takes is read from its help.
_crikeepd() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} words=''

	[ "$prev" = '=' ] && prev=${COMP_WORDS[COMP_CWORD - 2]}
	[ "$cur" = '=' ] && cur=''
	case $prev in
	--listen | --metrics | --nri-*-dir | --nri-socket | --state-dir | --unfiltered | --config)
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
		return
		;;
	--runtime) words='unix:// sim:' ;;
	--log-level) words='error warning info debug' ;;
	--hand-back) words='repeat offer' ;;
	--nri-adjust) words='on-commit before-create' ;;
	--nri-policy) words='ignore error fail' ;;
	--create-deadline | --ttl | --set) ;;
	*) words=$(crikeepd --help 2>/dev/null | grep -oE -- '^ +(-., )? *--[a-z-]+' | grep -oE -- '--[a-z-]+') ;;
	esac
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
}

# _crikeep_replies COMMAND WORD...: as bash splits them, "--state=k" is three words
_crikeep_replies() {
	local -a COMP_WORDS=() COMPREPLY=()
	local COMP_CWORD word before=''
	for word; do
		before=''
		case $word in
		--*=*)
			before=${word%%=*}=
			COMP_WORDS+=("${word%%=*}" '=' "${word#*=}")
			;;
		*) COMP_WORDS+=("$word") ;;
		esac
	done
	COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
	case ${1##*/} in
	crikeepd) _crikeepd ;;
	*) _crikeep ;;
	esac
	[ ${#COMPREPLY[@]} -eq 0 ] || printf '%s\n' "${COMPREPLY[@]/#/$before}"
}

if [ "${BASH_SOURCE[0]}" = "$0" ]; then
	_crikeep_replies "$@"
else
	complete -F _crikeep crikeep
	complete -F _crikeepd crikeepd
fi
