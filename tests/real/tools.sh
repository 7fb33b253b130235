#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# tools.sh DIR [NAME...] - builds what the tests in this directory are driven with, once: DIR/relay;
# DIR/crictl, the unmodified crictl that crictl/go.mod pins; DIR/nri and DIR/nri-v030, NRI plugins
# that write down what they are told; by name only: DIR/containerd/, the unmodified containerd and
# shim that containerd/go.mod pins; DIR/kubelet, the unmodified kubelet that kubelet/go.mod pins;
# DIR/kustomize/, the unmodified kustomize that kustomize/go.mod pins, and shape; DIR/nri-tap,
# DIR/h2spec and DIR/linear, see there; DIR/nri-bench, for tests/bench/bench-nri. The libraries that
# crictl and kustomize share with the kubelet are of its versions, and so compiled once.
# Exit status 3: it cannot be done here, and the last line says why (no Go, an old one, modules that
# cannot be had).
#
# shellcheck disable=SC1091,SC2154 # go_flags is go.sh's
set -u

[ $# -ge 1 ] || { echo "usage: $0 DIR [NAME...]" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1" && out=$(cd "$1" && pwd) || exit
shift
. "$here/go.sh"
# Time for memory: a compiler collects no garbage before it has its share of half of what is free,
# or 2 GiB. One thread for each package, and as many packages at a time as there are cores: the
# compiler's threads would wait for each other.
cores=$(nproc)
mib=$(awk -v cores="$cores" '/^MemAvailable:/ { n = int($2 / 2048 / cores) }
	END { print n < 2048 ? n : 2048 }' /proc/meminfo)
export GOFLAGS="$go_flags -mod=readonly -p=$cores" GOGC=off GOMEMLIMIT=${mib}MiB GOMAXPROCS=1

command -v go >/dev/null || { echo 'there is no Go'; exit 3; }

# build NAME PACKAGE...: out of the module in the directory NAME; several: into a directory
build() {
	local log=$out/$1.log sums=$here/$1/go.sum needs sources=("$here/$1") to=$out/$1
	[ $# -eq 2 ] || to+=/
	exec 9>"$out/$1.lock" && flock 9 || return # several scripts may want it at the same time
	! grep -q nri-record "$here/$1/go.mod" || sources+=("$here/nri-record")
	[ ! -x "$out/$1" ] || [ "$out/$1" -ot "$sums" ] ||
		[ -n "$(find "${sources[@]}" -name '*.go' -newer "$out/$1")" ] || return 0
	needs=$(sed -n 's/^go //p' "$here/$1/go.mod")
	if ! go_is "$needs"; then
		echo "$1 needs Go $needs, this is $(go env GOVERSION)"
		return 3
	fi
	# fetched by itself, so that a machine without modules is told from one where the build is
	# broken
	if ! (cd "$here/$1" && go list -deps "${@:2}") 2>"$log" >"$out/deps"; then
		echo "Go cannot fetch the modules of $1: $(tail -n 1 "$log" | cut -c 1-200)"
		return 3
	fi
	(cd "$here/$1" && go build -o "$to" "${@:2}" && touch "$to") >"$log" 2>&1 ||
		{ cat "$log"; return 1; }
}

[ $# -gt 0 ] || set -- relay crictl nri nri-v030
for name; do
	case $name in
	adjust | h2spec | linear | nri | nri-bench | nri-tap | nri-v030 | relay)
		build "$name" . || exit
		;;
	crictl) build crictl sigs.k8s.io/cri-tools/cmd/crictl || exit ;;
	containerd)
		build containerd \
			github.com/containerd/containerd/v2/cmd/containerd{,-shim-runc-v2} || exit
		;;
	kustomize)
		build kustomize . sigs.k8s.io/kustomize/kustomize/v5 || exit
		;;
	kubelet) build kubelet k8s.io/kubernetes/cmd/kubelet || exit ;;
	*) echo "$0: nothing is called '$name'" >&2; exit 2 ;;
	esac
done
