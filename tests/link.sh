#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Links a test program without libtool, which takes ten times as long as the linker: a test links
# archives of this build, and they and what they need stand in their .la files. Where that is not
# enough, libtool does it.
#
# usage: link.sh LIBTOOL [OPTION...] --mode=link COMMAND...

# archive FILE.la - sets $found to the archive and to the libraries that it needs
archive() {
	old_library='' dependency_libs='' inherited_linker_flags=''
	# shellcheck disable=SC1090 # assignments
	. "./$1"
	[ -n "$old_library" ] || return
	case $dependency_libs in *.la*) return 1 ;; esac
	case $1 in
	*/*) found=${1%/*}/.libs/$old_library ;;
	*) found=.libs/$old_library ;;
	esac
	found="$found $dependency_libs $inherited_linker_flags"
}

command=''
for word; do
	case $word in
	--mode=link) command=' ' ;;
	*.la)
		archive "$word" || exec "$@"
		command="$command $found"
		;;
	*[!A-Za-z0-9_/.,:=+-]*) exec "$@" ;; # it would need quotes
	*) [ -z "$command" ] || command="$command $word" ;;
	esac
done
# shellcheck disable=SC2086 # words, each of them without blanks
exec $command
