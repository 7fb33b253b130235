#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A whole node: Debian 12 under qemu, emulated, with a kernel, a systemd and a containerd of its
# own. It boots, plays node.sh, and ends. Nothing of it touches this machine. The base system comes
# from debootstrap, is made once, and stays in tests/vm of the build directory; each run boots a
# snapshot of it. The packages come out of the tarball that `make dist` left in the build directory.
#
# usage: test-node.sh [SCENARIO...]   those of node.sh; deploy is that of deploy.sh
#
# The variables are of prelude.sh, and its check calls functions; the mirror's format is apt's.
# shellcheck disable=SC1091,SC2016,SC2154,SC2317
set -u

here=$(cd "$(dirname "$0")" && pwd)
. "$here/../prog/prelude.sh"
own=$build/tests/vm
lab=$src/contrib/lab
PATH=$PATH:/usr/sbin:/sbin

# the base system; a change of this list makes a new one
included=systemd-sysv,dbus,udev,linux-image-cloud-amd64,kmod,procps,containerd,runc,busybox-static
# what our packages need, as the machine has no network
included+=,libcap2,libjson-c5,libmicrohttpd12,libnghttp2-14,libprotobuf-c1,libseccomp2,libsodium23
included+=,libsqlite3-0,libsystemd0,libyaml-0-2

why=
if [ "$(id -u)" -ne 0 ]; then
	why='not root'
elif [ "$(uname -m)" != x86_64 ]; then
	why='this is no x86_64'
fi
for p in qemu-system-x86_64:qemu-system-x86 debootstrap:debootstrap mke2fs:e2fsprogs \
	busybox:busybox-static dpkg-buildpackage:dpkg-dev dh:debhelper; do
	[ -n "$why" ] || command -v ${p%:*} >/dev/null ||
		why="there is no ${p%:*} (Debian: ${p#*:})"
done
[ -z "$why" ] || { echo "skip - a whole node: $why"; exit 0; }

# disk ROOT OUT SIZE: an ext4 of what is in ROOT
disk() {
	rm -f "$2" && truncate -s "$3" "$2" && mke2fs -q -F -t ext4 -E root_owner=0:0 -d "$1" "$2"
}

make_base() {
	local mirror
	[ "$(cat "$own/included" 2>/dev/null)" != "$included" ] || return 0
	mirror=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' \
		'Created-By: Packages' | awk '$2 == "bookworm" && $3 == "main" { print $1; exit }')
	[ -n "$mirror" ] || { echo 'apt has no source of Debian 12 here'; return 1; }
	rm -rf --one-file-system "$own/root" "$own/included"
	debootstrap --variant=minbase --include="$included" bookworm "$own/root" "$mirror" || return
	rm -f "$own/root"/var/cache/apt/archives/*.deb
	cp "$own/root"/boot/vmlinuz-* "$own/vmlinuz" && cp "$own/root"/boot/initrd.img-* \
		"$own/initrd" || return
	# the second disk says what this machine does; the second serial line hears it
	cat >"$own/root/etc/systemd/system/node.service" <<-'END'
		[Unit]
		After=containerd.service
		SuccessAction=poweroff-force
		FailureAction=poweroff-force
		[Service]
		Type=oneshot
		ExecStartPre=mount /dev/vdb /mnt
		ExecStart=/mnt/node.sh
		StandardOutput=file:/dev/ttyS1
		StandardError=inherit
		[Install]
		WantedBy=multi-user.target
	END
	systemctl -q --root="$own/root" enable node.service || return
	disk "$own/root" "$own/base.img" 6G || return
	echo "$included" >"$own/included"
}

# the tarball's packages, and the same as a later version
make_packages() {
	local tarball sum p version
	tarball=$(ls "$build"/crikeep-*.tar.gz) sum=$(sha256sum <"$tarball")
	[ "$(cat "$own/packages/sum" 2>/dev/null)" != "$sum" ] || return 0
	rm -rf "$own/packages" "$own/built"
	DEB_BUILD_OPTIONS=nocheck "$src/contrib/package.sh" deb "$tarball" "$own/built" || return
	mkdir -p "$own/packages/next"
	for p in crikeep crikeepd; do
		cp "$own/built/${p}"_*.deb "$own/packages/" &&
			dpkg-deb -R "$own/packages/${p}"_*.deb "$work/$p" || return
		version=$(sed -n 's/^Version: //p' "$work/$p/DEBIAN/control")
		sed -i "s/^Version: .*/&+next/" "$work/$p/DEBIAN/control" &&
			dpkg-deb -b "$work/$p" "$own/packages/next/${p}_$version+next.deb" || return
	done
	rm -rf "$own/built"
	echo "$sum" >"$own/packages/sum"
}

make_stage() {
	mkdir "$work/stage" && cp -r "$own/packages" "$here/node.sh" "$here/deploy.sh" \
		"$lab/slow-runc.sh" "$work/stage/" &&
		echo "${scenarios[*]}" >"$work/stage/scenarios" || return
	for p in pause busybox; do
		"$lab/image.sh" "$work/stage/$p.tar" "docker.io/lab/$p:1" || return
	done
	case " ${scenarios[*]} " in
	*' deploy '*) add_kubelet || return ;;
	esac
	disk "$work/stage" "$work/stage.img" $((64 + $(du -sm "$work/stage" | cut -f 1)))M
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

kernel_options='root=/dev/vda rw console=ttyS0 systemd.journald.forward_to_console=1'
# Its processor is emulated: not every machine that has /dev/kvm can use it. Its clock counts
# instructions, 2 ns each, so that load on this machine does not move it; what is idle passes in
# real time.
boot() {
	local limit=$((3000 * ${CK_TEST_SLOW:-1}))
	: >"$own/heard"
	timeout "$limit" qemu-system-x86_64 -accel tcg,thread=single -icount shift=1 \
		-rtc clock=vm -cpu max -m 3072 -display none -no-reboot -nic none -snapshot \
		-kernel "$own/vmlinuz" -initrd "$own/initrd" -append "$kernel_options" \
		-drive "file=$own/base.img,if=virtio,format=raw" \
		-drive "file=$work/stage.img,if=virtio,format=raw" \
		-serial "file:$own/console" -serial "file:$own/heard" </dev/null >"$own/qemu" 2>&1 &
	qemu=$!
	# shown as it comes
	tail -n +1 -f --pid="$qemu" -s 0.2 "$own/heard" | sed -u 's/\r$//' |
		tee "$work/heard" | grep --line-buffered -vx end
	wait "$qemu"
}

scenarios=("$@") qemu=
at_end() { [ -z "$qemu" ] || kill "$qemu" 2>/dev/null; }
mkdir -p "$own"
check 'debootstrap makes a base system' make_base
[ "$failed" -ne 0 ] || check 'the packages are built' make_packages
[ "$failed" -ne 0 ] || check 'a disk for this run' make_stage
[ "$failed" -eq 0 ] || exit 1
boot
qemu=
! grep -q '^not ok ' "$work/heard" || failed=1
if ! grep -qx end "$work/heard"; then
	not_ok 'the machine has come to its end' "$(tail -n 30 "$own/console")"
fi
exit "$failed"
