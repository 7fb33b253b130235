# SPDX-License-Identifier: Apache-2.0
#
# A node in one process: crikeepd, a kubelet and a runtime, from one seed.

if DAEMON
long_tests += \
	tests/world/test-world
endif
world_test_sources = \
	tests/world/test-world.c \
	tests/world/check.c \
	tests/world/crikeepd.c \
	tests/world/kernel.c \
	tests/world/kubelet.c \
	tests/world/runtime.c \
	tests/world/script.c \
	tests/world/world.h
world_test_flags = -Wl,--wrap=ck_sim_log

tests_world_test_world_SOURCES = $(world_test_sources)
tests_world_test_world_LDFLAGS = $(world_test_flags)
