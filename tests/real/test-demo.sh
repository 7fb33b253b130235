#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The demonstration of `contrib/quickstart run --containerd`: its verdict, that it can be wrong, and
# that it leaves nothing.
#
# Functions are called by check, variables are of prelude.sh's.
# shellcheck disable=SC1091,SC2154,SC2317
set -u

. "$(dirname "$0")/../prog/prelude.sh"
demo=$src/contrib/lab/demo.sh

skip_all() {
	echo "skip - the demonstration with containerd: $1"
	exit 0
}
for p in "$crikeepd" "$crikeep"; do
	[ -x "$p" ] || skip_all "$p was not built"
done
[ "$(id -u)" -eq 0 ] || skip_all 'not root'
for p in containerd ctr runc busybox unshare; do
	command -v $p >/dev/null || skip_all "there is no $p"
done
"$src/contrib/lab/isolated.sh" mount -t tmpfs none /mnt 2>/dev/null ||
	skip_all 'namespaces or mounts are not allowed'

# a crikeepd that is not there: its sockets are the runtime's own
mkdir "$work/without"
cat >"$work/without/crikeepd" <<'END'
#!/bin/bash
for option; do
	case $option in
	--runtime=unix://*) runtime=${option#*//} ;;
	--listen=*) ln -s "$runtime" "${option#*=}" ;;
	esac
done
END
printf '#!/bin/sh\nexec "%s" "$@" --give-up 8s\n' "$crikeep" >"$work/without/crikeep"
chmod +x "$work/without"/*
"$demo" --containerd "$work/without" >"$work/without.out" 2>&1 &

KEEP=$work/kept "$demo" --containerd "$build" >"$work/shown" 2>&1
status=$?
wait $!
without=$?

gone() { # every control group is gone, of all that runc was ever asked to create
	awk '{ print $5 }' "$work"/kept/*/calls.log | sort -u >"$work/ids"
	[ -s "$work/ids" ] && ! find /sys/fs/cgroup -type d | grep -F -f "$work/ids"
}
no_wider() { awk 'length($0) > 80 { print; bad = 1 } END { exit bad }' "$1"; }

check 'through crikeepd the sandbox is created once and its id is given' test $status = 0
check 'so it says' grep -q '^Through crikeepd the sandbox was created once' "$work/shown"
check 'straight at containerd the client never has it' grep \
	-qE '^the client has its id +never +after' "$work/shown"
check 'no line is wider than 80 columns' no_wider "$work/shown"
check 'without crikeepd the verdict is another' test $without = 1
check 'and says what is wrong' grep -q '^WRONG: the client was given no id' "$work/without.out"
check 'no control group is left' gone
check 'no mount is left' sh \
	-c '! grep -E "/tmp/ck\.[A-Za-z0-9]{6}(/(straight|through)|$| )" /proc/mounts'
[ "$failed" = 0 ] || cat "$work/shown"
exit "$failed"
