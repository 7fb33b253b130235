# SPDX-License-Identifier: Apache-2.0
#
# A whole node under qemu, as root, with the packages of the tarball: run by `make check-vm`.

vm_scripts = tests/vm/test-node.sh

EXTRA_DIST += $(vm_scripts) tests/vm/deploy.sh tests/vm/node.sh
