#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Four lists are one: the functions that the installed headers declare, the names in libcrikeep.sym,
# what the built library exports, and what Debian's package says of it.
# And what it calls: nothing that changes the host's process or prints, and of SQLite only what
# cache/store/sqlite-check.c has looked at.
set -u
src=${CK_TEST_SRCDIR:-.} build=${CK_TEST_BUILDDIR:-.}
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

# Declarations: the header without comments, macros, system headers and what stands in braces, one
# statement a line.
cat "$src/src/crikeep.h" "$src/src/crikeep-nri.h" | sed '/^#include/d' | ${CC:-cc} -E -P - |
	tr '\n' ' ' |
	sed -e ':again' -e 's/{[^{}]*}//' -e 't again' | tr ';' '\n' | grep -v '^ *typedef' |
	sed -n 's/^[^(]*[ *]\(ck_[a-z0-9_]*\) *(.*/\1/p' | sort >"$tmp/header"
sed -n 's/^[[:space:]]*\(ck_[a-z0-9_]*\);.*/\1/p' "$src/src/libcrikeep.sym" | sort >"$tmp/sym"
# The version nodes themselves are absolute symbols (A).
nm -D --defined-only "$build/.libs/libcrikeep.so" |
	awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort >"$tmp/exported"
# The nodes have lines of their own there.
sed -n 's/^ \(ck_[a-z0-9_]*\)@.*/\1/p' "$src/contrib/debian/libcrikeep0.symbols" |
	sort >"$tmp/debian"

status=0
same() { # same NAME A B
	if [ -s "$tmp/$2" ] && diff -U0 "$tmp/$2" "$tmp/$3" >"$tmp/diff"; then
		echo "ok - $1 ($(wc -l <"$tmp/$2") names)"
	else
		sed -n -e "s/^-\\([^-].*\\)/\\1: in $2, not in $3/p" \
			-e "s/^+\\([^+].*\\)/\\1: in $3, not in $2/p" "$tmp/diff"
		echo "not ok - $1"
		status=1
	fi
}
same 'the headers declare what libcrikeep.sym names' header sym
same 'libcrikeep.so exports what libcrikeep.sym names' sym exported
same 'libcrikeep0.symbols of contrib/debian has what libcrikeep.sym names' sym debian

nm -D --undefined-only "$build/.libs/libcrikeep.so" |
	awk '{ sub(/@.*/, "", $2); print $2 }' | sort >"$tmp/called"
sed -n '/^#define FUNCTIONS(X)/,/[^\\]$/p' "$src/cache/store/sqlite-check.c" |
	grep -o 'X([a-z_0-9]*)' | sed 's/X(\(.*\))/sqlite3_\1/' | sort >"$tmp/looked-at"
grep '^sqlite3_' "$tmp/called" >"$tmp/sqlite"
same 'of SQLite the library calls what it looks at before' sqlite looked-at

process='exit|_exit|_Exit|quick_exit|atexit|fork|vfork|system|popen|daemon|kill|raise|signal'
process="$process|sigaction|sigprocmask|alarm|setitimer|setlocale|uselocale|tzset|umask|chdir"
process="$process|fchdir|chroot|setenv|putenv|unsetenv|clearenv|setrlimit|prctl|printf"
process="$process|__printf_chk|__fprintf_chk|puts|putchar|perror|fputs|stdout|stderr|syslog"
process="$process|openlog|localtime(_r)?"
if grep -xE "$process" "$tmp/called"; then
	echo "not ok - the library leaves the process alone"
	status=1
else
	echo "ok - the library leaves the process alone"
fi
exit $status
