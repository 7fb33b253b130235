# SPDX-License-Identifier: Apache-2.0
# bash completion for crikeep(1): source it, or install it as /usr/share/bash-completion/completions/crikeep
#
# Commands, options and their fixed values are listed here; row numbers come from `crikeep list`, with the same --state-dir.

# _crikeep_options COMMAND: words a command takes, apart from entries and files
_crikeep_options() {
	case $1 in
	'') echo 'list ls show explain history stats evict check compare pods plugins drive simulate exporter help --version' ;;
	help) echo 'list show explain history stats evict check compare pods plugins drive simulate exporter' ;;
	list | ls) echo '--all --quiet --no-trunc --kind --namespace --pod --state --uid' ;;
	show) echo '--raw' ;;
	history) echo '--lines --since' ;;
	evict) echo '--dry-run --release --wait --yes' ;;
	compare) echo 'RunPodSandbox CreateContainer --mode --ignore-annotations --compare-sandbox-config' ;;
	pods) echo '--endpoint --api --all --quiet --no-trunc --timeout' ;;
	plugins) echo '--quiet --no-trunc --state' ;;
	drive)
		echo '--endpoint --api --deadline --retry --give-up --request --rpc --pod --namespace --uid --container --image' \
			'--sandbox --attempt --host-network --runtime-handler'
		;;
	simulate)
		echo '--containers --create --deadline --give-up --hand-back --jitter --kubelet-restart-at --plot --pods' \
			'--policy --restart-at --seed --slow --trace'
		;;
	exporter) echo '--listen --socket' ;;
	esac
	[ "$1" = help ] || echo '--state-dir --output --help --usage'
}

# _crikeep_values COMMAND OPTION: the values of an option that has a fixed set of them; status 1: OPTION takes no value
_crikeep_values() {
	case $1:$2 in
	*:--output | *:-o) echo 'table json yaml' ;;
	list:--kind | ls:--kind) echo 'sandbox container' ;;
	list:--state | ls:--state) echo 'creating kept committing committed evicting gone' ;;
	plugins:--state) echo 'connected registered synchronizing ready overdue absent gone' ;;
	pods:--api | drive:--api) echo 'v1 v1alpha2' ;;
	drive:--rpc) echo 'RunPodSandbox CreateContainer' ;;
	drive:--host-network) return 1 ;;
	compare:--mode) echo 'normalized identity strict' ;;
	simulate:--policy) echo 'none ram crikeep all' ;;
	simulate:--slow) echo 'sandbox container both' ;;
	simulate:--hand-back) echo 'repeat offer' ;;
	simulate:--trace) return 1 ;;
	drive:--* | pods:--endpoint | pods:--timeout) ;;
	simulate:--* | list:--namespace | list:--pod | list:--uid | ls:--namespace | ls:--pod | ls:--uid) ;;
	exporter:--listen | history:--since | history:--lines | history:-n | compare:--ignore-annotations) ;;
	*) return 1 ;;
	esac
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
	*:--state-dir:* | drive:--request:* | exporter:--socket:* | simulate:--plot:*)
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
		return
		;;
	show:*:-* | explain:*:-* | history:*:-* | evict:*:-* | plugins:*:-*) words=$(_crikeep_options "$command") ;;
	compare:--mode:*) words=$(_crikeep_values compare --mode) ;;
	compare:*:-*) words=$(_crikeep_options compare) ;;
	compare:*)
		mapfile -t COMPREPLY < <(compgen -W 'RunPodSandbox CreateContainer' -- "$cur"; compgen -f -- "$cur")
		return
		;;
	*)
		words=$(_crikeep_values "$command" "$prev") || case $command in
		show | explain | history) words=$(crikeep "${dir[@]}" list --all --quiet 2>/dev/null) ;;
		evict) words=$(crikeep "${dir[@]}" list --quiet 2>/dev/null) ;;
		plugins) words=$(crikeep "${dir[@]}" plugins --quiet 2>/dev/null) ;;
		*) words=$(_crikeep_options "$command") ;;
		esac
		;;
	esac
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
}
complete -F _crikeep crikeep
