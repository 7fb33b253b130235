#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# 20 of the mutants that a machine makes (README.md), against the short tests.
set -u

name='the tests notice 20 mutants made by a machine'
if ! command -v python3 >/dev/null; then
	echo "skip - $name: no python3"
	exit 0
fi
# a make of its own, which must not look for the jobs of the one that runs this test
unset MAKEFLAGS MFLAGS MAKELEVEL
if make -s -C "$CK_TEST_BUILDDIR" -j2 mutants-sample; then
	echo "ok - $name"
else
	echo "not ok - $name"
fi
