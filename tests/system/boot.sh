#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# boot.sh ROOT STAGE CHANGED HEARD - process 1 of new namespaces, for test-system.sh: it puts a
# system together and becomes its systemd. ROOT is the base system, and is not changed: what is
# written goes to the directory CHANGED. STAGE appears as /mnt, and /dev/heard is the file HEARD.
set -eu

base=$1 stage=$2 changed=$3 heard=$4
mkdir -p "$changed"/{upper,work,root,containerd}
root=$changed/root
mount --make-rprivate /
mount -t overlay -o "lowerdir=$base,upperdir=$changed/upper,workdir=$changed/work" node "$root"
cd "$root"
mkdir -p var/lib/containerd old
# an overlay cannot lie on an overlay
mount --bind "$changed/containerd" var/lib/containerd
mount --bind "$stage" mnt

mount -t proc proc proc
# A kubelet sets these, and exits if it cannot. They are this machine's: it gets files instead.
mkdir "$changed/sysctl"
for parameter in vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1 \
	kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000; do
	file=$changed/sysctl/$(basename "${parameter%=*}")
	echo "${parameter#*=}" >"$file"
	mount --bind "$file" "proc/sys/${parameter%=*}"
done
mount -t sysfs -o ro sysfs sys
mount -t securityfs -o ro securityfs sys/kernel/security
# control groups of version 1 or 2, as this machine has them
if [ "$(stat -f -c %T /sys/fs/cgroup)" = cgroup2fs ]; then
	mount -t cgroup2 cgroup2 sys/fs/cgroup
else
	mount -t tmpfs -o mode=755 cgroup sys/fs/cgroup
	groups=$(findmnt -rno TARGET,FSTYPE,FS-OPTIONS -t cgroup,cgroup2)
	while read -r target type options; do
		mkdir -p "sys/fs/cgroup/$(basename "$target")"
		[ "$type" = cgroup2 ] || type+=" -o ${options#*,}"
		# shellcheck disable=SC2086 # words
		mount -t $type cgroup "sys/fs/cgroup/$(basename "$target")"
	done <<<"$groups"
fi

mount -t tmpfs -o mode=755 dev dev
mkdir dev/pts dev/shm dev/mqueue
for device in null zero full random urandom tty kmsg; do
	[ -e "/dev/$device" ] || continue
	touch "dev/$device"
	mount --bind "/dev/$device" "dev/$device"
done
touch dev/heard
mount --bind "$heard" dev/heard
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts dev/pts
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
for n in 0:stdin 1:stdout 2:stderr; do
	ln -s "/proc/self/fd/${n%:*}" "dev/${n#*:}"
done
mount -t tmpfs shm dev/shm
mount -t tmpfs -o mode=755 run run
mount -t tmpfs tmp tmp

ip link set lo up
hostname node
pivot_root . old
umount -l /old
rmdir /old
exec env -i container=namespaces PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd \
	--log-target=journal
