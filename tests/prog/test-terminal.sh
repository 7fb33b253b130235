#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What a person sees at a terminal of 80 columns, in tmux: completion in zsh and fish, the live
# views, colours, the pager.
#
# Words are split on purpose; functions are called by check, variables are prelude.sh's:
# shellcheck disable=SC1091,SC2016,SC2086,SC2154,SC2317
set -u

. "$(dirname "$0")/prelude.sh"
. "$(dirname "$0")/database.sh"
checks='zsh completes a command|zsh completes a value|zsh completes a pod
zsh completes an option of crikeepd|fish completes a command|fish completes a value
fish completes a pod|fish completes an option of crikeepd
list --watch fits, follows, and ends with ^C|history --follow follows, and ends with ^C
status has colours|NO_COLOR takes them away
what fits is printed, and the pager ends|what does not fit is paged, and q is no failure
colours pass through the pager|less runs no other program|^C is for the pager, and then the end
hints go through the pager, errors do not|a pager of somebody else|a pager that is not there
a pager that ends at once|--no-pager|live views are not paged|a dumb terminal has no pager'
for p in tmux zsh fish less; do
	command -v $p >/dev/null || {
		tr '|' '\n' <<<"$checks" | sed "s/.*/skip - &: there is no $p/"
		exit 0
	}
done

# each pane has a server of its own: one that is ending does not take a new pane
panes=0
tmux_() { tmux -S "$work/tmux$panes" -f /dev/null "$@"; }
at_end() {
	tmux_ kill-server 2>/dev/null
	end owner
}

# installed DIRECTORY: the completions, where `make install` has them
installed() {
	local from=$src/contrib/completion
	mkdir -p "$1/bash-completion/completions" "$1/zsh/site-functions" \
		"$1/fish/vendor_completions.d"
	cp "$from/crikeep.bash" "$1/bash-completion/completions/crikeep"
	cp "$from/_crikeep" "$1/zsh/site-functions"
	cp "$from/crikeep.fish" "$1/fish/vendor_completions.d"
}

# terminal COMMAND...: in a pane of 80 columns and 12 lines
terminal() {
	[ "$panes" = 0 ] || tmux_ kill-server
	panes=$((panes + 1))
	tmux_ new-session -d -x 80 -y 12 "$@"
}
keys() { tmux_ send-keys "$@"; }
pane() { tmux_ capture-pane -p "$@"; }
shows() { pane | grep -qF -- "$1"; }
lacks() { ! shows "$1"; }
until_shown() { wait_for 200 shows "$1" || { echo "not shown: $1"; pane; return 1; }; }
until_gone() { wait_for 200 lacks "$1" || { echo "still shown: $1"; pane; return 1; }; }
not_wrapped() { diff <(pane) <(pane -J | sed 's/ *$//'); }

# ---- completion --------------------------------------------------------------------------------

db states
export PATH=$build:$PATH
installed "$work/share"
mkdir "$work/zsh"
cat >"$work/zsh/.zshrc" <<-END
	fpath=($work/share/zsh/site-functions \$fpath)
	autoload -U compinit
	compinit -u -d $work/zsh/dump
	PS1='ready '
END
zsh_completes() { # zsh_completes TYPED SHOWN
	keys C-u "$1" Tab
	until_shown "ready $2"
}
terminal env ZDOTDIR="$work/zsh" zsh -i
until_shown ready >/dev/null
check 'zsh completes a command' zsh_completes 'crikeep hi' 'crikeep history'
check 'zsh completes a value' zsh_completes 'crikeep list --state=k' 'crikeep list --state=kept'
check 'zsh completes a pod' zsh_completes 'crikeep explain prod/w' 'crikeep explain prod/web-7d9f'
check 'zsh completes an option of crikeepd' \
	zsh_completes 'crikeepd --create-d' 'crikeepd --create-deadline'

fish_completes() { # fish_completes TYPED SHOWN
	local replies
	replies=$(HOME=$work fish -c "source $work/share/fish/vendor_completions.d/crikeep.fish
		complete -C '$1'")
	[ "$replies" = "$2" ] || { echo "$replies"; return 1; }
}
check 'fish completes a command' fish_completes 'crikeep hi' history
check 'fish completes a value' fish_completes 'crikeep list --state=k' --state=kept
check 'fish completes a pod' fish_completes 'crikeep explain prod/w' prod/web-7d9f
check 'fish completes an option of crikeepd' fish_completes 'crikeepd --create-d' --create-deadline

# ---- live views and colours --------------------------------------------------------------------

# shown COMMAND: by a shell, which says how it ended
shown() { terminal sh -c "trap : INT; $1; echo ended with \$?; read -r line"; }
ended() { # by ^C
	keys C-c
	until_shown 'ended with'
}
watched() {
	db states serve
	shown 'crikeep list --watch'
	until_shown 'prod      web-7d9f' && not_wrapped &&
		run 0 evict -y prod/web-7d9f && until_gone 'prod      web-7d9f' && ended
}
check 'list --watch fits, follows, and ends with ^C' watched
followed() {
	db states serve
	shown 'crikeep history -f -n 2'
	until_shown : && run 0 evict -y prod/web-7d9f && until_shown 'EVICTING -> GONE' && ended
}
check 'history --follow follows, and ends with ^C' followed

coloured() { # coloured COMMAND: with any escape sequence
	db empty
	shown "$1"
	until_shown 'ended with' && pane -e | cat -v | grep -F '^[[31m'
}
check 'status has colours' coloured 'crikeep status'
plain() { ! coloured "$1" && shows 'ended with'; }
check 'NO_COLOR takes them away' plain 'NO_COLOR=1 crikeep status'

# ---- the pager ---------------------------------------------------------------------------------

paged() { # paged COMMAND...: with the pager that is the default, unless the command names one
	db states
	shown "unset CRIKEEP_PAGER PAGER LESS LESSSECURE; $*"
}
long='crikeep history -n 0'
first=' -> CREATING' last='1002 prod/crash-0       CREATING -> GONE'
begins() { until_shown "$first" && lacks "$last" && lacks 'ended with'; }
at_the_end() { until_shown 'ended with 0' && shows "$last"; }
fits() { paged crikeep list -q && until_shown 'ended with 0' && shows 10; }
check 'what fits is printed, and the pager ends' fits
does_not_fit() {
	paged "$long" && begins && keys G && until_shown "$last" && lacks 'ended with' &&
		keys q && until_shown 'ended with 0'
}
check 'what does not fit is paged, and q is no failure' does_not_fit
colours_pass() {
	paged 'PAGER="grep -c 31m" crikeep status' && until_shown 'ended with 1' &&
		pane | grep -x '[1-9]' && paged 'CRIKEEP_PAGER=less crikeep status' &&
		until_shown crikeepd && lacks '31m'
}
check 'colours pass through the pager' colours_pass
secure() { paged "$long" && begins && keys ! && until_shown 'not available'; }
check 'less runs no other program' secure
interrupted() {
	# all of it is in the pager
	paged "$long" && begins && keys G && until_shown "$last" && keys g &&
		until_gone "$last" && keys C-c && keys G && until_shown "$last" &&
		lacks 'ended with' && keys q && until_shown 'ended with 130'
}
check '^C is for the pager, and then the end' interrupted
errors() {
	paged 'PAGER="sed s/^/:/" crikeep list -q' && until_shown 'ended with 0' &&
		shows ':crikeep: warning: no owner' &&
		paged 'PAGER="sed s/^/:/" crikeep explain none' && until_shown 'ended with 1' &&
		lacks :crikeep
}
check 'hints go through the pager, errors do not' errors
others() {
	paged "CRIKEEP_PAGER='tail -n 1' PAGER=false $long" && at_the_end && lacks "$first" &&
		paged "PAGER='tail -n 1' $long" && at_the_end && lacks "$first"
}
check 'a pager of somebody else' others
missing() { paged "PAGER=$work/none $long" && at_the_end; }
check 'a pager that is not there' missing
ends_at_once() { paged "PAGER=true crikeep list -a -o json" && until_shown 'ended with 0'; }
check 'a pager that ends at once' ends_at_once
without() { paged "$long --no-pager" && at_the_end && paged "PAGER= $long" && at_the_end; }
check --no-pager without
live() {
	paged 'PAGER="sed s/^/paged/" crikeep history -f' &&
		until_shown 'prod/crash-0 attempt 0: CREATING -> GONE' && lacks paged && ended
}
check 'live views are not paged' live
dumb() { paged "TERM=dumb $long" && at_the_end; }
check 'a dumb terminal has no pager' dumb

exit $failed
