# SPDX-License-Identifier: Apache-2.0
#
# The packages and the tarball they are built from: run by `make check-packages`.

package_scripts = \
	tests/packages/test-deb.sh \
	tests/packages/test-dist.sh \
	tests/packages/test-reproducible.sh \
	tests/packages/test-rpm.sh

EXTRA_DIST += $(package_scripts) tests/packages/contents.sh tests/packages/vendor.c
