#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The manifests of contrib/deploy/kustomize, built by kustomize and decoded strictly by Kubernetes'
# own types; and crikeep-node, which their pods run, in namespaces of their own: what it finds on
# the node (apt-get, systemctl, crikeep-deploy) are stand-ins.
#
# functions are called by check, variables are prelude.sh's:
# shellcheck disable=SC1091,SC2015,SC2016,SC2034,SC2154,SC2317
set -u

. "$(dirname "$0")/../prog/prelude.sh"
deploy=$src/contrib/deploy node=''
at_end() { end node; }

# ---- the manifests -------------------------------------------------------------------------------

tools=$build/tests/real/tools
said=$("$src/tests/real/tools.sh" "$tools" kustomize)
case $? in
0)
	# is_built OVERLAY NAME LABEL ARGS
	is_built() {
		local want="DaemonSet crikeep/$2 pods=$2 canary=$3 unavailable=1 ready=true"
		"$tools/kustomize/kustomize" build "$deploy/kustomize/$1" \
			>"$work/$1.yaml" &&
			"$tools/kustomize/shape" <"$work/$1.yaml" >"$work/shape" &&
			grep -qx 'Namespace crikeep enforce=privileged' "$work/shape" &&
			grep -qx "$want hostPID=true privileged=true args=$4" "$work/shape" &&
			[ "$(wc -l <"$work/shape")" = 2 ] || { cat "$work/shape"; return 1; }
	}
	check 'base changes nothing' is_built base crikeep-node DoesNotExist status
	check 'canary: where its label is' is_built canary crikeep-canary Exists enable
	check 'shadow' is_built shadow crikeep-node DoesNotExist enable,--shadow
	check 'enable' is_built enable crikeep-node DoesNotExist enable
	check 'disable' is_built disable crikeep-node DoesNotExist disable
	typing_error() {
		sed 's/hostPID/hostPIDs/' "$work/base.yaml" >"$work/wrong.yaml" &&
			! "$tools/kustomize/shape" <"$work/wrong.yaml" 2>"$work/err" &&
			grep -q hostPIDs "$work/err"
	}
	check 'a field that Kubernetes does not have is found' typing_error
	;;
3) echo "skip - the manifests: $(tail -n 1 <<<"$said")" ;;
*) not_ok 'kustomize is built' "$said" ;;
esac

# ---- crikeep-node --------------------------------------------------------------------------------

usage() { # wrong usage is told before the node is looked at
	! "$deploy/crikeep-node" remove 2>"$work/err" && grep -q ^usage: "$work/err"
}
check 'wrong usage' usage
if ! unshare --mount --pid --fork --mount-proc true 2>/dev/null; then
	echo 'skip - crikeep-node: no namespaces here'
	exit "$failed"
fi
mkdir "$work/bin" "$work/packages"
: >"$work/packages/crikeepd_1_all.deb"
stand_in() { # stand_in NAME: its text is on standard input
	{ printf '#!/bin/bash\necho "%s $*" >>"%s/calls"\ncd "%s" || exit\n' "$1" "$work" "$work" &&
		cat; } >"$work/bin/$1"
	chmod +x "$work/bin/$1"
}
stand_in apt-get <<'END'
[ ! -e archive-is-empty ] || exit 100
END
stand_in systemctl <<'END'
exit 3
END
stand_in systemd-run <<'END'
while [[ $1 == -* ]]; do shift; done
exec "$@"
END
# its state is the file "is"
stand_in crikeep-deploy <<'END'
case $1 in
enable) [ ! -e is-broken ] || exit 3; echo 0 >is ;;
disable) echo 1 >is ;;
status) exit "$(cat is)" ;;
esac
END
# pod ARGUMENT...: crikeep-node in a mount namespace of its own, with the packages of an image,
# beside a node whose process 1 is the shell
pod() {
	end node
	rm -f "$work"/run/* "$work/calls"
	mkdir -p "$work/run"
	PATH=$work/bin:$PATH unshare --mount --pid --fork --kill-child --mount-proc \
		--propagation private sh -c '
		mount -t tmpfs none /var/cache && cd / && work=$1 && shift || exit
		unshare --mount --propagation private sh -c "
			mount --bind \"\$0/run\" /run && mkdir -p \"\$0/root\" &&
			exec \"\$@\"" "$work" "$@"' sh "$work" "$work/crikeep-node" "$@" \
		>"$work/node.log" 2>&1 &
	node=$!
}
# the image has its packages at the top
sed "s|/packages/|$work/packages/|" "$deploy/crikeep-node" >"$work/crikeep-node"
chmod +x "$work/crikeep-node"
is_ready() { [ -e "$work/run/crikeep-node.ready" ]; }
becomes_ready() { wait_for 300 is_ready || { cat "$work/node.log"; return 1; }; }
deployed() { grep '^crikeep-deploy' "$work/calls" | grep -v status; }
# settled: it has looked, and so would be ready
settled() { wait_for 300 grep -q '^crikeep-deploy status' "$work/calls" && sleep 0.3; }
echo 1 >"$work/is"
only_installs() {
	pod status
	becomes_ready && grep -q '^apt-get .*/var/cache/crikeep-node/crikeepd_1_all.deb' \
		"$work/calls" && [ -z "$(deployed)" ]
}
check 'status installs the packages and changes nothing else' only_installs
enables() {
	pod enable --shadow --watch=5s
	becomes_ready && [ "$(deployed)" = 'crikeep-deploy enable --shadow --watch=5s' ] &&
		grep -q '^systemd-run .*--unit=crikeep-node crikeep-deploy enable' "$work/calls"
}
check 'enable is run once, by the systemd of the node, with its options' enables
disables() { pod disable && becomes_ready && [ "$(deployed)" = 'crikeep-deploy disable' ]; }
check 'disable' disables
fails() {
	touch "$work/is-broken" && pod enable && settled && ! is_ready &&
		[ "$(deployed)" = 'crikeep-deploy enable' ] && rm "$work/is-broken"
}
check 'what is put back is not ready, and not tried again' fails
no_package() {
	touch "$work/archive-is-empty" && pod enable && settled && ! is_ready &&
		[ -z "$(deployed)" ] && grep -q '^apt-get update' "$work/calls" &&
		rm "$work/archive-is-empty"
}
check 'packages that cannot be installed: nothing is changed' no_package
no_node() { # process 1 is the shell, which is in the same namespace as the pod
	! unshare --mount --pid --fork --kill-child --mount-proc \
		sh -c '"$0" status; exit' "$work/crikeep-node" >"$work/out" 2>&1 &&
		grep -q 'needs hostPID' "$work/out"
}
check 'a pod that does not see the node' no_node
exit "$failed"
