#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# image.sh PACKAGES OUT.tar [NAME] - builds the image of Containerfile with the .deb and .rpm files
# of the directory PACKAGES, as an OCI archive: `ctr -n k8s.io images import OUT.tar`. The packages
# come from contrib/package.sh. Of the network, only Debian's archive is needed, by debootstrap:
# $CRIKEEP_MIRROR and $CRIKEEP_SUITE say which (bookworm). As root, with debootstrap and buildah.
set -euo pipefail

if [ $# -lt 2 ] || [ ! -d "$1" ]; then
	echo "usage: $0 PACKAGES OUT.tar [NAME]" >&2
	exit 2
fi
for program in debootstrap buildah; do
	command -v $program >/dev/null || { echo "$0: there is no $program" >&2; exit 2; }
done
here=$(cd "$(dirname "$0")" && pwd)
packages=$(realpath "$1") out=$(realpath -m "$2") name=${3:-localhost/crikeep-node:latest}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/packages"
for kind in crikeep_*.deb crikeepd_*.deb crikeep-[0-9]*.rpm crikeepd-[0-9]*.rpm; do
	# what is quoted in $kind would be no pattern any more
	# shellcheck disable=SC2086
	find "$packages" -maxdepth 1 -name "$kind" ! -name '*.src.rpm' \
		-exec cp -t "$work/packages" {} +
done
[ -n "$(ls "$work/packages")" ] || { echo "$0: there are no packages in $packages" >&2; exit 2; }
cp "$here/Containerfile" "$here/crikeep-node" "$work/"

debootstrap --variant=minbase "${CRIKEEP_SUITE:-bookworm}" "$work/base" \
	${CRIKEEP_MIRROR:+"$CRIKEEP_MIRROR"} >&2
rm -rf "$work"/base/var/cache/apt/* "$work"/base/var/lib/apt/lists/* "$work"/base/dev/*
tar -C "$work/base" --numeric-owner -cf "$work/base.tar" .
buildah --storage-driver vfs --root "$work/storage" --runroot "$work/run" build --isolation chroot \
	--tag "$name" --file "$work/Containerfile" "$work" >&2
rm -f "$out"
buildah --storage-driver vfs --root "$work/storage" --runroot "$work/run" push "$name" \
	"oci-archive:$out:$name" >&2
echo "$out"
