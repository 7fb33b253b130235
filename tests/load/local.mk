# SPDX-License-Identifier: Apache-2.0
#
# crikeepd and the simulated runtime as processes, under many calls at once.

if DAEMON
load_tests = \
	tests/load/test-stalled
long_tests += \
	tests/load/test-attacks \
	tests/load/test-greedy \
	tests/load/test-others \
	tests/load/test-waiting
counting_tests += \
	tests/load/test-instructions
test_support += \
	tests/load/attacks.c tests/load/attacks.h \
	tests/load/client.c tests/load/load.h
endif
