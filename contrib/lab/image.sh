#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# image.sh OUT.tar REFERENCE - an image in Docker's archive format, assembled from Debian's
# busybox-static without any registry. It does nothing for ever, and ends at once when it is
# stopped.
set -eu

[ $# -eq 2 ] || { echo "usage: $0 OUT.tar REFERENCE" >&2; exit 2; }
out=$1 reference=$2
busybox=$(command -v busybox)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

digest() { sha256sum "$1" | cut -d ' ' -f 1; }
packed() { # packed DIRECTORY OUT: the same bytes each time
	tar -C "$1" --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 --format=ustar \
		-cf "$2" .
}

mkdir -p "$work/root"/{bin,dev,etc,proc,sys,tmp} "$work/image"
cp "$busybox" "$work/root/bin/busybox"
for applet in cat echo sh sleep tail true; do
	ln "$work/root/bin/busybox" "$work/root/bin/$applet"
done
echo 'root:x:0:0:root:/:/bin/sh' >"$work/root/etc/passwd"
packed "$work/root" "$work/image/layer.tar"

# Process 1 of a container gets only the signals that it handles, except SIGKILL.
cat >"$work/config" <<-END
	{"architecture":"$(dpkg --print-architecture)","os":"linux",
	"created":"1970-01-01T00:00:00Z",
	"config":{"Env":["PATH=/bin"],"Entrypoint":["/bin/tail","-f","/dev/null"],
	"WorkingDir":"/","StopSignal":"SIGKILL"},
	"rootfs":{"type":"layers","diff_ids":["sha256:$(digest "$work/image/layer.tar")"]}}
END
config=$(digest "$work/config").json
mv "$work/config" "$work/image/$config"
echo "[{\"Config\":\"$config\",\"RepoTags\":[\"$reference\"],\"Layers\":[\"layer.tar\"]}]" \
	>"$work/image/manifest.json"
packed "$work/image" "$out"
