#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# chroot.sh DIR SUITE [COMMAND...] - a newcomer's machine: a minimal Debian (SUITE: bookworm,
# trixie, ...) in a chroot, with a clone of this repository in /crikeep. COMMAND runs in the clone,
# with its time; without one `contrib/quickstart run` and then `contrib/quickstart check`. Needs
# root, git and debootstrap.
#
# The minimal system is made once, in DIR/SUITE, and copied for each run to DIR/run. Packages come
# from this machine's mirror. What is not committed is not in the clone.
set -euo pipefail

usage() { sed -n 's/^# \{0,1\}//; 4,11p' "$0" >&2; exit 2; }
[ $# -ge 2 ] || usage
here=$(cd "$(dirname "$0")" && pwd)
if [ "$1" != inside ]; then
	[ "$(id -u)" -eq 0 ] || { echo "$0: this needs root" >&2; exit 2; }
	mkdir -p "$1"
	dir=$(cd "$1" && pwd) suite=$2
	shift 2
	status=0
	unshare --mount --pid --fork --kill-child "$0" inside "$dir" "$suite" "$@" || status=$?
	rm -rf --one-file-system "$dir/run"
	exit $status
fi
dir=$2 suite=$3
shift 3
base=$dir/$suite root=$dir/run

# the first of apt's sources that has this machine's own release
mirror() {
	local codename
	# shellcheck disable=SC1091
	codename=$(. /etc/os-release && echo "$VERSION_CODENAME")
	# shellcheck disable=SC2016 # the format is apt's
	apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
		awk -v c="$codename" '$2 == c && $3 == "main" && !n++ { print $1 }'
}

if [ ! -d "$base" ]; then
	echo "A minimal $suite, by debootstrap"
	uri=$(mirror)
	rm -rf --one-file-system "$base.new"
	PATH=$PATH:/usr/sbin debootstrap --variant=minbase "$suite" "$base.new" "$uri" \
		>"$dir/debootstrap.log" || { tail -n 20 "$dir/debootstrap.log" >&2; exit 1; }
	mv "$base.new" "$base"
fi
rm -rf --one-file-system "$root"
cp -a "$base" "$root"
cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
apt-config dump | grep -E '^Acquire::(Check-Date|Check-Valid-Until|https?::)' \
	>"$root/etc/apt/apt.conf.d/00machine" || true
git -c safe.directory='*' clone -q "file://$here/../.." "$root/crikeep"

mount --make-rprivate /
mount --bind "$root" "$root" # tests mount; for that, a root has to be a mount of its own
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys"
mount --rbind /dev "$root/dev"
mount -t tmpfs tmpfs "$root/tmp"

inside() {
	local began=$SECONDS status=0
	printf '\n== %s: %s\n' "$suite" "$*"
	env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 TERM="${TERM:-dumb}" \
		${http_proxy:+"http_proxy=$http_proxy"} ${https_proxy:+"https_proxy=$https_proxy"} \
		${CI:+"CI=$CI"} chroot "$root" sh -c 'cd /crikeep && exec "$@"' sh "$@" || status=$?
	printf '== %s: %s: status %d after %d:%02d\n' "$suite" "$*" $status \
		$(((SECONDS - began) / 60)) $(((SECONDS - began) % 60))
	return $status
}

if [ $# -gt 0 ]; then
	inside "$@"
else
	status=0
	inside contrib/quickstart run || status=1
	inside contrib/quickstart check || status=1
	exit $status
fi
