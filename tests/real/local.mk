# SPDX-License-Identifier: Apache-2.0
#
# crikeepd with a real containerd, as root, or with a real client: run by `make check-real`. The
# scripts build a relay and crictl with Go, once, in tests/real/tools of the build directory. What
# a machine does not allow is skipped with the reason.

# those that take minutes begin first
real_scripts = \
	tests/real/test-go.sh \
	tests/real/test-containerd.sh \
	tests/real/test-culprit.sh \
	tests/real/test-nri-containerd.sh \
	tests/real/test-nri-specs.sh \
	tests/real/test-nri-sim.sh \
	tests/real/test-vendor.sh \
	tests/real/test-requirements.sh \
	tests/real/test-attacks.sh \
	tests/real/test-adjust.sh \
	tests/real/test-cri-api.sh \
	tests/real/test-demo.sh \
	tests/real/test-drive.sh \
	tests/real/test-h2spec.sh \
	tests/real/test-kustomize.sh \
	tests/real/test-linear.sh \
	tests/real/test-nri-beside.sh \
	tests/real/test-sim.sh

# of tests/real/tools.sh, what these are driven with, and what only root can use
real_tools = relay crictl nri nri-v030 kustomize adjust h2spec linear
root_tools = containerd nri-tap

# A current kubelet, built with Go, and a current containerd: run by `make check-node`.
node_scripts = tests/real/test-node.sh

# what tests/real/stage.sh starts crikeepd with
stage_programs = tests/daemon/service-manager

# what tests/real/adjust compares with
test_programs += tests/real/merge
tests_real_merge_LDADD = libck.la

EXTRA_DIST += \
	$(node_scripts) \
	$(real_scripts) \
	contrib/lab \
	tests/real/adjust \
	tests/real/containerd \
	tests/real/cri-api.awk \
	tests/real/crictl \
	tests/real/go.sh \
	tests/real/go-stage.sh \
	tests/real/h2spec \
	tests/real/kubelet \
	tests/real/kustomize \
	tests/real/linear \
	tests/real/node-stage.sh \
	tests/real/nri \
	tests/real/nri-bench \
	tests/real/nri-containerd.sh \
	tests/real/nri-containers.sh \
	tests/real/nri-pods.sh \
	tests/real/nri-record \
	tests/real/nri-rules.sh \
	tests/real/nri-stage.sh \
	tests/real/nri-tap \
	tests/real/nri-v030 \
	tests/real/play.sh \
	tests/real/relay \
	tests/real/requirements.tsv \
	tests/real/stage.sh \
	tests/real/tools.sh \
	tests/real/vendor
