# SPDX-License-Identifier: Apache-2.0
#
# A whole node with the packages of the tarball, as root: in namespaces by `make check-system`,
# under qemu by `make check-vm`.

system_scripts = tests/system/test-system.sh

EXTRA_DIST += $(system_scripts) tests/system/boot.sh tests/system/deploy.sh tests/system/node.sh
