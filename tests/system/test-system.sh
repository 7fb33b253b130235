#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A whole node: Debian 12 with a systemd and a containerd of its own. It boots, plays node.sh, and
# ends. It boots in namespaces of this machine, or under qemu, where it has a kernel of its own and
# everything takes ten times as long. The base system comes from debootstrap, is made once for
# each of the two, and stays in tests/system of the build directory; a run changes nothing in it.
# The packages come out of the tarball that `make dist` left in the build directory.
#
# usage: test-system.sh [SCENARIO...]   those of node.sh and deploy.sh; CK_TEST_QEMU=yes: under qemu
#
# CK_TEST_DEPLOY_ROUNDS=N: crikeepd is put on and off so often, in `deploy' and in `image'.
#
# The variables are of prelude.sh, and its check calls functions; the mirror's format is apt's.
# shellcheck disable=SC1091,SC2016,SC2154,SC2317
set -u

here=$(cd "$(dirname "$0")" && pwd)
. "$here/../prog/prelude.sh"
. "$here/../packages/contents.sh"
lab=$src/contrib/lab
PATH=$PATH:/usr/sbin:/sbin
way=namespaces
[ -z "${CK_TEST_QEMU:-}" ] || way=qemu
own=$build/tests/system base=$own/$way
read -ra scenarios <<<"${*:-${CK_TEST_SCENARIOS:-}}"
# an emulated processor is too slow for a kubelet: there the last two are played when asked for
[ ${#scenarios[@]} -gt 0 ] || {
	scenarios=(installed bypass restarts often)
	[ "$way" = qemu ] || scenarios+=(deploy)
	scenarios+=(purge)
	[ "$way" = qemu ] || scenarios+=(image purge)
}

# the base system; a change of this list makes a new one
included=systemd-sysv,dbus,iproute2,procps,containerd,runc,busybox-static
# what our packages need, as the machine has no network
included+=,libcap2,libjson-c5,libmicrohttpd12,libnghttp2-14,libprotobuf-c1,libseccomp2,libsodium23
included+=,libsqlite3-0,libsystemd0,libyaml-0-2
programs=(debootstrap:debootstrap busybox:busybox-static dpkg-buildpackage:dpkg-dev dh:debhelper)
if [ "$way" = qemu ]; then
	included+=,udev,linux-image-cloud-amd64,kmod
	programs+=(qemu-system-x86_64:qemu-system-x86 mke2fs:e2fsprogs)
fi

why=
if [ "$(id -u)" -ne 0 ]; then
	why='not root'
elif [ "$way" = qemu ] && [ "$(uname -m)" != x86_64 ]; then
	why='this is no x86_64'
fi
for p in "${programs[@]}"; do
	[ -n "$why" ] || command -v "${p%:*}" >/dev/null ||
		why="there is no ${p%:*} (Debian: ${p#*:})"
done
[ -z "$why" ] || { echo "skip - a whole node: $why"; exit 0; }

# ---- the base system, the packages, and what this run adds ---------------------------------------

make_base() {
	local mirror
	[ "$(cat "$base/included" 2>/dev/null)" != "$included" ] || return 0
	mirror=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' \
		'Created-By: Packages' | awk '$2 == "bookworm" && $3 == "main" { print $1; exit }')
	[ -n "$mirror" ] || { echo 'apt has no source of Debian 12 here'; return 1; }
	rm -rf --one-file-system "$base"
	mkdir -p "$base"
	debootstrap --variant=minbase --include="$included" bookworm "$base/root" "$mirror" ||
		return
	rm -f "$base/root"/var/cache/apt/archives/*.deb
	# what it plays; "heard" is a file of this machine
	cat >"$base/root/etc/systemd/system/node.service" <<-END
		[Unit]
		After=containerd.service
		SuccessAction=poweroff-force
		FailureAction=poweroff-force
		[Service]
		Type=oneshot
		$([ "$way" = namespaces ] || echo ExecStartPre=mount /dev/vdb /mnt)
		ExecStart=/mnt/node.sh
		StandardOutput=file:$([ "$way" = qemu ] && echo /dev/ttyS1 || echo /dev/heard)
		StandardError=inherit
		[Install]
		WantedBy=multi-user.target
	END
	systemctl -q --root="$base/root" enable node.service || return
	if [ "$way" = qemu ]; then
		mv "$base/root"/boot/vmlinuz-* "$base/vmlinuz" &&
			mv "$base/root"/boot/initrd.img-* "$base/initrd" &&
			disk "$base/root" "$base/disk" 6G || return
		rm -rf --one-file-system "$base/root"
	else
		# they would change this machine's kernel
		systemctl -q --root="$base/root" mask systemd-sysctl.service \
			systemd-modules-load.service || return
	fi
	echo "$included" >"$base/included"
}
# disk ROOT OUT SIZE: an ext4 of what is in ROOT
disk() {
	rm -f "$2" && truncate -s "$3" "$2" && mke2fs -q -F -t ext4 -E root_owner=0:0 -d "$1" "$2"
}

# the tarball's packages, and the same as a later version
make_packages() {
	local tarball sum p version deb
	tarball=$(ls "$build"/crikeep-*.tar.gz) sum=$(sum_of "$tarball")
	[ "$(cat "$own/packages/sum" 2>/dev/null)" != "$sum" ] || return 0
	rm -rf "$own/packages"
	deb_of "$tarball" "$work/built" || return
	mkdir -p "$own/packages/next"
	for p in crikeep crikeepd; do
		cp "$deb/${p}"_*.deb "$own/packages/" &&
			dpkg-deb -R "$own/packages/${p}"_*.deb "$work/$p" || return
		version=$(sed -n 's/^Version: //p' "$work/$p/DEBIAN/control")
		sed -i "s/^Version: .*/&+next/" "$work/$p/DEBIAN/control" &&
			dpkg-deb -b "$work/$p" "$own/packages/next/${p}_$version+next.deb" || return
	done
	echo "$sum" >"$own/packages/sum"
}

make_stage() {
	local p
	mkdir "$work/stage" && cp -r "$own/packages" "$here/node.sh" "$here/deploy.sh" \
		"$lab/slow-runc.sh" "$work/stage/" &&
		echo "${scenarios[*]}" >"$work/stage/scenarios" &&
		echo "${CK_TEST_DEPLOY_ROUNDS:-}" >"$work/stage/rounds" || return
	for p in pause busybox; do
		"$lab/image.sh" "$work/stage/$p.tar" "docker.io/lab/$p:1" || return
	done
	case " ${scenarios[*]} " in
	*' deploy '* | *' image '*) add_kubelet || return ;;
	esac
	case " ${scenarios[*]} " in
	*' image '*) add_image || return ;;
	esac
}
# a machine without Go, or without its modules, plays on without the kubelet
add_kubelet() {
	"$src/tests/real/tools.sh" "$build/tests/real/tools" kubelet
	case $? in
	0) strip -o "$work/stage/kubelet" "$build/tests/real/tools/kubelet" ;;
	3) ;;
	*) return 1 ;;
	esac
}

# The image of contrib/deploy, and what its pods are. Without buildah the scenario says what is
# missing.
add_image() {
	local image=$own/crikeep-node.tar tools=$build/tests/real/tools overlay
	command -v buildah >/dev/null || return 0
	[ "$image" -nt "$own/packages/sum" ] ||
		"$src/contrib/deploy/image.sh" "$own/packages" "$image" || return
	ln "$image" "$work/stage/" 2>/dev/null || cp "$image" "$work/stage/" || return
	"$src/tests/real/tools.sh" "$tools" kustomize
	case $? in
	0) ;;
	3) return 0 ;;
	*) return 1 ;;
	esac
	for overlay in enable disable; do
		"$tools/kustomize/kustomize" build "$src/contrib/deploy/kustomize/$overlay" |
			"$tools/kustomize/shape" pod >"$work/stage/$overlay.yaml" || return
	done
}

# ---- the machine ---------------------------------------------------------------------------------

# Its processor is emulated: not every machine that has /dev/kvm can use it. Its clock counts
# instructions, 2 ns each, so that load on this machine does not move it; what is idle passes in
# real time.
boot_qemu() {
	local kernel_options='root=/dev/vda rw console=ttyS0 systemd.journald.forward_to_console=1'
	disk "$work/stage" "$work/stage.img" $((64 + $(du -sm "$work/stage" | cut -f 1)))M || return
	exec timeout "$limit" qemu-system-x86_64 -accel tcg,thread=single -icount shift=1 \
		-rtc clock=vm -cpu max -m 3072 -display none -no-reboot -nic none -snapshot \
		-kernel "$base/vmlinuz" -initrd "$base/initrd" -append "$kernel_options" \
		-drive "file=$base/disk,if=virtio,format=raw" \
		-drive "file=$work/stage.img,if=virtio,format=raw" \
		-serial "file:$own/console" -serial "file:$heard" </dev/null >"$own/emulator" 2>&1
}

# The file systems, processes and control groups of this machine are none of its business. It shares
# the kernel, and its parameters stay as they are: see boot.sh.
group=ck-system-$$
groups_up() {
	local d
	for d in $(groups); do
		mkdir -p "$d/$group" || return
		[ ! -e "$d/cpuset.cpus" ] || {
			cat "$d/cpuset.cpus" >"$d/$group/cpuset.cpus"
			cat "$d/cpuset.mems" >"$d/$group/cpuset.mems"
		}
		echo "$BASHPID" >"$d/$group/cgroup.procs" || return
	done
}
groups() { findmnt -rno TARGET -t cgroup,cgroup2; }
groups_down() {
	local d
	for d in $(groups); do
		find "$d/$group" -depth -type d -exec rmdir {} \; 2>/dev/null
	done
}
boot_namespaces() {
	groups_up || return
	# unshare takes no SIGTERM
	exec timeout -s KILL "$limit" unshare --mount --pid --fork --kill-child --cgroup --net \
		--uts --ipc "$here/boot.sh" "$base/root" "$work/stage" "$work/changed" "$heard" \
		</dev/null >"$own/console" 2>&1
}

boot() {
	local limit=$((3000 * ${CK_TEST_SLOW:-1})) heard=$own/heard
	tee "$heard" "$own/console" "$own/emulator" </dev/null
	"boot_$way" &
	machine=$!
	# shown as it comes
	tail -n +1 -f --pid="$machine" -s 0.2 "$heard" | sed -u 's/\r$//' |
		tee "$work/heard" | grep --line-buffered -vx end
	wait "$machine"
}

machine=
at_end() {
	[ -z "$machine" ] || { pkill -KILL -P "$machine" && wait "$machine"; } 2>/dev/null
	[ "$way" = qemu ] || groups_down
}
mkdir -p "$own"
check 'debootstrap makes a base system' make_base
[ "$failed" -ne 0 ] || check 'the packages are built' make_packages
[ "$failed" -ne 0 ] || check 'a disk for this run' make_stage
[ "$failed" -eq 0 ] || exit 1
boot
machine=
! grep -q '^not ok ' "$work/heard" || failed=1
if ! grep -qx end "$work/heard"; then
	not_ok 'the machine has come to its end' "$(tail -n 30 "$own/console" "$own/emulator")"
fi
exit "$failed"
