# SPDX-License-Identifier: Apache-2.0
#
# Every allocation and every call of the store fails once; full and damaged disks.

test_support += tests/fault/small-disk.c tests/fault/small-disk.h

fault_tests = \
	tests/fault/test-disk \
	tests/fault/test-foreign \
	tests/fault/test-store-damage
if RPC
fault_tests += \
	tests/fault/test-h2-faults
endif

long_tests += \
	tests/fault/test-keep-faults \
	tests/fault/test-store-faults
