#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The Debian packages of contrib/debian, as they come out of the tarball that `make dist` left in
# the build directory: built, looked at by lintian, installed by apt into a clean system of
# debootstrap's, used there, removed and purged. That system is made once, in tests/packages/base of
# the build directory, and copied for each run; where it comes from is what this machine's own apt
# uses.
#
# A && B || C is meant, formats are dpkg's, words are split; variables are prelude.sh's, and check
# calls functions.
# shellcheck disable=SC1091,SC2015,SC2016,SC2086,SC2154,SC2209,SC2317
set -u

here=$(cd "$(dirname "$0")" && pwd)
inside=0
[ "${1:-}" != inside ] || inside=1
. "$here/../prog/prelude.sh"
. "$here/contents.sh"
own=$build/tests/packages
chroot=$own/chroot
packages='libcrikeep0 libcrikeep-dev crikeep crikeepd'
tarball=$(ls "$build"/crikeep-*.tar.gz)
version=${tarball##*/crikeep-} version=${version%.tar.gz}
dir=$build/build-deb
data=$src/tests/data/kubelet-retries

# ---- the chroot --------------------------------------------------------------------------------

# before a command: nothing of this build's environment is there
jail=(env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8)
jail+=(DEBIAN_FRONTEND=noninteractive ${http_proxy:+"http_proxy=$http_proxy"})
jail+=(${https_proxy:+"https_proxy=$https_proxy"} chroot "$chroot")
in_chroot() { "${jail[@]}" "$@"; }
apt() { in_chroot apt-get -qy -o Dpkg::Use-Pty=0 "$@"; }

# the mirrors of this machine: "URI SUITE" each, those of Debian's own release alone
mirrors() {
	local codename
	codename=$(. /etc/os-release && echo "$VERSION_CODENAME")
	apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
		awk -v c="$codename" \
		'$3 == "main" && $2 ~ "^" c "(-updates|-security)?$" { print $1, $2 }' | sort -u
}

make_base() {
	local codename mirror include=systemd
	codename=$(. /etc/os-release && echo "$VERSION_CODENAME")
	mirror=$(mirrors | awk -v c="$codename" '$2 == c { print $1; exit }')
	[ -n "$mirror" ] || { echo "apt has no source of $codename here"; return 1; }
	[[ $mirror != https:* ]] || include+=,ca-certificates
	[ ! -d "$own/base" ] || return 0
	rm -rf --one-file-system "$own/base.new"
	PATH=$PATH:/usr/sbin debootstrap --variant=minbase --include=$include "$codename" \
		"$own/base.new" "$mirror" || return
	rm -f "$own/base.new"/var/cache/apt/archives/*.deb
	mv "$own/base.new" "$own/base"
}

# a copy of it, which apt can work in
furnish() {
	rm -rf --one-file-system "$chroot"
	cp -a "$own/base" "$chroot" || return
	cp -L /etc/resolv.conf /etc/hosts "$chroot/etc/"
	mirrors | sed 's/.*/deb & main/' >"$chroot/etc/apt/sources.list"
	apt-config dump |
		grep -E '^Acquire::(Check-Date|Check-Valid-Until|https?::)' \
		>"$chroot/etc/apt/apt.conf.d/00machine"
	! grep -q '^deb https' "$chroot/etc/apt/sources.list" ||
		cp -L /etc/ssl/certs/ca-certificates.crt "$chroot/etc/ssl/certs/"
	# nothing is started by being installed
	printf '#!/bin/sh\nexit 101\n' >"$chroot/usr/sbin/policy-rc.d"
	chmod +x "$chroot/usr/sbin/policy-rc.d"
	mkdir "$chroot/packages"
	for p in $packages; do
		cp "$dir/${p}_$version"-*.deb "$chroot/packages/" || return
	done
	mount -t proc proc "$chroot/proc" && mount -t tmpfs none "$chroot/run" &&
		mount -t tmpfs none "$chroot/tmp"
}

# every file there is, without what apt, dpkg and ldconfig keep for themselves
everything() {
	(cd "$chroot" && find . -xdev \( -path ./var/lib/apt -o -path ./var/lib/dpkg \
		-o -path ./var/cache -o -path ./var/log -o -path ./packages -o -path ./tmp \
		-o -path ./proc \) -prune -o -print) | sort
}

# ---- what is looked at there -------------------------------------------------------------------

installed() {
	local p
	for p in $packages; do
		in_chroot dpkg-query -W -f '${Package}: ${db:Status-Status} ${Version}\n' "$p" |
			tee "$work/status" |
			grep -F ": installed $version-" || { cat "$work/status"; return 1; }
	done
}
nothing_begins() {
	! find "$chroot/etc/systemd" "$chroot"/etc/rc?.d "$chroot/run" -name '*crikeep*' | grep .
}
verified() {
	in_chroot systemd-analyze verify --man=no crikeepd{,-bypass}.{service,socket} \
		crikeep-exporter.service >"$work/verify" 2>&1 || cat "$work/verify"
	[ ! -s "$work/verify" ]
}
# each page make install has is there, and where one points to another of ours there is one
pages() {
	local page
	(cd "$own/installed" && find . -path '*/man/man?/*' | sed 's|.*/share/||') >"$work/pages"
	[ -s "$work/pages" ] || return
	while read -r page; do
		zcat "$chroot/usr/share/$page.gz" || { echo "there is no $page"; return 1; }
	done <"$work/pages" >"$work/text" || { tail -n 1 "$work/text"; return 1; }
	sed -nE -e 's/^\.Xr ((crikeep|libcrikeep|ck_)[^ ]*) ([1-8]).*/man\/man\3\/\1.\3/p' \
		-e 's/^\.so (man[1-8]\/.*)/man\/\1/p' "$work/text" | sort -u >"$work/refers"
	! comm -23 "$work/refers" <(sort "$work/pages") | grep .
}
completes() {
	in_chroot bash -c '. /usr/share/bash-completion/completions/crikeep && complete -p crikeep'
}
print_config() { in_chroot crikeepd "$@" --print-config | sed 's/ *#.*//'; }
defaults() { # the configuration that is installed says nothing, and what it proposes is the default
	in_chroot crikeepd --check-config | grep -F /etc/crikeep/crikeep.yaml || return
	sed -E 's/^#( *[a-z_]+:)/\1/' "$chroot/etc/crikeep/crikeep.yaml" \
		>"$chroot/tmp/proposed.yaml"
	grep -c '^runtime: ' "$chroot/tmp/proposed.yaml" &&
		diff <(print_config) <(print_config --config /tmp/proposed.yaml)
}
simulates() { # a slow node, on which only what is kept helps
	in_chroot crikeep simulate --create 5s --deadline 2s --pods 20 >"$work/simulated" || return
	awk '$1 == "crikeep" && $2 == "2.00" && $NF == 0 { kept = 1 }
		$1 == "none" && $2 > 10 && $NF > 0 { made_again = 1 }
		END { exit !(kept && made_again) }' "$work/simulated" ||
		{ cat "$work/simulated"; false; }
}
# the demonstration of crikeepd(8), on the default directory: asked for twice and more, made once
serves() {
	local pid status i
	"${jail[@]}" crikeepd --runtime sim:create=3s,log=/tmp/sim.log 2>"$work/crikeepd.log" &
	pid=$!
	for ((i = 0; i < 300; i++)); do
		[ ! -S "$chroot/run/crikeep/cri.sock" ] || break
		sleep 0.1
	done
	in_chroot crikeep drive --endpoint unix:///run/crikeep/cri.sock --pod web --deadline 1s \
		--retry 500ms --give-up 60s
	status=$?
	kill "$pid"
	wait "$pid"
	[ $status -eq 0 ] && grep -c ' begin sandbox ' "$chroot/tmp/sim.log" | grep -qx 1 ||
		{ cat "$work/crikeepd.log"; false; }
}
# the compiler is this machine's; every header and library is the chroot's
compile() { # compile PROGRAM SOURCE...
	local program=$1 flags multiarch
	shift
	multiarch=$chroot/usr/lib/$(dpkg-architecture -q DEB_HOST_MULTIARCH)
	flags=$(PKG_CONFIG_SYSROOT_DIR=$chroot \
		PKG_CONFIG_LIBDIR=$multiarch/pkgconfig:$chroot/usr/share/pkgconfig \
		pkg-config --cflags --libs libcrikeep) || return
	gcc --sysroot="$chroot" -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror \
		-o "$chroot/tmp/$program" "$@" $flags -pthread
}
embeds() {
	cp "$data"/00[24]-RunPodSandbox-web.bin "$chroot/tmp/" &&
		compile vendor "$here/vendor.c" &&
		in_chroot /tmp/vendor \
		/tmp/002-RunPodSandbox-web.bin /tmp/004-RunPodSandbox-web.bin &&
		ldd_of vendor | grep -F 'libcrikeep.so.0 => /lib'
}
ldd_of() { in_chroot ldd "/tmp/$1"; }
examples() {
	local examples=$chroot/usr/share/doc/libcrikeep-dev/examples
	compile embed-blocking "$examples"/{embed-blocking,common,toy}.c &&
		compile embed-loop "$examples"/{embed-loop,common,toy}.c &&
		compile embed-nri "$examples/embed-nri.c" &&
		compile keep "$examples/keep.c" &&
		compile drive "$examples/drive.c"
}
keeps_configuration() {
	echo 'log: {level: debug}' >"$chroot/etc/crikeep/crikeep.yaml"
	in_chroot sh -c 'apt-get -qy --reinstall install /packages/crikeepd_*.deb' || return
	grep -qx 'log: {level: debug}' "$chroot/etc/crikeep/crikeep.yaml"
}
removed() {
	apt remove $packages && [ -f "$chroot/etc/crikeep/crikeep.yaml" ] &&
		! in_chroot sh -c 'command -v crikeep || command -v crikeepd'
}
spares_others() { # who has the lock may be a runtime that embeds the library: its files stay
	[ -d "$chroot/run/crikeep" ] &&
		cp "$chroot/var/lib/dpkg/info/crikeepd.postrm" "$chroot/tmp/postrm" &&
		flock -w 10 "$chroot/run/crikeep" "${jail[@]}" \
		env DPKG_MAINTSCRIPT_PACKAGE=crikeepd /tmp/postrm purge &&
		[ -d "$chroot/run/crikeep" ]
}
purged() {
	in_chroot dpkg --purge $packages && apt autoremove --purge || return
	everything >"$work/after"
	diff "$work/before" "$work/after" && [ ! -e "$chroot/run/crikeep" ]
}

if [ $inside -eq 1 ]; then
	mount --make-rprivate /
	check 'the chroot is furnished' furnish
	check 'apt reads its lists' apt update
	everything >"$work/before"
	check 'apt installs the four, and what they need' in_chroot sh -c \
		'apt-get -qy --no-install-recommends install /packages/*.deb'
	check 'they are installed' installed
	check 'nothing is enabled or started by that' nothing_begins
	check 'systemd-analyze verify finds nothing in the units' verified
	check 'every man page is there, and those they name' pages
	check 'bash completes crikeep' completes
	check 'the installed configuration is the default one' defaults
	check 'crikeep simulate shows what is kept' simulates
	check 'crikeepd answers crikeep drive, and makes a sandbox once' serves
	check 'a host compiles with libcrikeep-dev, a late result is handed back' embeds
	check 'the examples compile where they are installed' examples
	check 'a changed configuration survives an installation' keeps_configuration
	check 'apt removes them, and leaves the configuration' removed
	check 'a purge spares a state directory that somebody owns' spares_others
	check 'a purge leaves nothing' purged
	exit "$failed"
fi

# ---- the first half: built and looked at -------------------------------------------------------

for p in dpkg-buildpackage dh lintian; do
	command -v $p >/dev/null || { echo "skip - the Debian packages: there is no $p"; exit 0; }
done

# meanwhile, for it waits for the network more than it computes
why=
if [ "$(id -u)" -ne 0 ]; then
	why='not root'
elif ! PATH=$PATH:/usr/sbin command -v debootstrap >/dev/null; then
	why='there is no debootstrap'
elif ! unshare --mount --pid --fork --kill-child --mount-proc mount -t tmpfs none /mnt \
	2>/dev/null; then
	why='namespaces or mounts are not allowed'
else
	make_base >"$work/debootstrap" 2>&1 &
	base=$!
fi

deb_lock "$tarball" || exit 99
rm -rf "$dir"
DEB_BUILD_OPTIONS=nocheck "$src/contrib/package.sh" deb "$tarball" "$dir" >"$work/log" 2>&1
built=$?
deb_unlock
result 'they are built' $built
if [ $built -ne 0 ]; then
	tail -n 40 "$work/log"
	[ -n "$why" ] || wait "$base"
	exit 1
fi

files() { # "PACKAGE FILE" of all
	for p in $packages; do
		dpkg-deb --fsys-tarfile "$dir/${p}_$version"-*.deb | tar -t |
			sed "/\/$/d; s|^|$p |" || return
	done
}
as_wanted() {
	wanted >"$work/wanted"
	files | sed 's/^[^ ]* //' | paths | split >"$work/have" && diff "$work/wanted" "$work/have"
}
named() { # a file is in the package whose name says so
	files | while read -r package file; do
		case $package in
		libcrikeep0) role=library ;;
		libcrikeep-dev) role=development ;;
		crikeep) role=command ;;
		*) role=daemon ;;
		esac
		paths <<<"$file" | split | sed "/^$role /d; s/^/$package: /"
	done >"$work/misplaced"
	[ ! -s "$work/misplaced" ] || { cat "$work/misplaced"; false; }
}
# there is no bug of Debian's that a first upload could close
clean() {
	lintian --allow-root --fail-on error,warning --suppress-tags initial-upload-closes-no-bugs \
		"$dir"/*.changes
}
check 'they hold what make install installs' as_wanted
check 'each file is in the package of its name' named
check 'lintian has neither errors nor warnings' clean

if [ -n "$why" ]; then
	echo "skip - the packages in a clean chroot: $why"
	exit "$failed"
fi
if wait "$base"; then
	ok 'debootstrap makes a clean system'
	unshare --mount --pid --fork --kill-child --mount-proc "$0" inside || failed=1
	rm -rf --one-file-system "$chroot"
else
	not_ok 'debootstrap makes a clean system' "$(tail -n 20 "$work/debootstrap")"
fi
exit "$failed"
