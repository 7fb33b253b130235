#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes ./configure out of configure.ac in a fresh clone. A release tarball has it already.
cd "$(dirname "$0")" && exec autoreconf -fi
