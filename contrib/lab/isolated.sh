#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# isolated.sh COMMAND... - run it, as root, in mount, network and process namespaces of its own.
# With the command end all processes it started and all mounts; interfaces, routes and net sysctls
# never reach the machine. Control groups are shared: `containerd.sh stop` removes those of its
# containers.
set -eu

[ $# -gt 0 ] || { echo "usage: $0 COMMAND..." >&2; exit 2; }
# shellcheck disable=SC2016 # expanded inside
exec unshare --mount --net --pid --fork --kill-child --mount-proc bash -c '
	# shared among our own: kubelets and runtimes expect it
	mount --make-rprivate / && mount --make-rshared / || exit
	[ ! -x "$(command -v ip)" ] || ip link set lo up
	exec "$@"' isolated "$@"
