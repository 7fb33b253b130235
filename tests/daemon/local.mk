# SPDX-License-Identifier: Apache-2.0
#
# crikeepd as a process of its own, with the simulated runtime behind it.

if DAEMON
daemon_tests = \
	tests/daemon/test-bad-input \
	tests/daemon/test-full-disk \
	tests/daemon/test-nri \
	tests/daemon/test-watch
long_tests += \
	tests/daemon/test-daemon-secrets \
	tests/daemon/test-late \
	tests/daemon/test-move \
	tests/daemon/test-restart \
	tests/daemon/test-service \
	tests/daemon/test-shadow \
	tests/daemon/test-start \
	tests/daemon/test-teardown
test_programs += tests/daemon/service-manager
test_support += \
	tests/daemon/pods.c tests/daemon/pods.h \
	tests/daemon/stage.c tests/daemon/stage.h \
	tests/daemon/tap.c tests/daemon/tap.h \
	tests/daemon/world.c tests/daemon/world.h
endif
