# SPDX-License-Identifier: Apache-2.0
#
# The examples are killed at chosen points and started again.

crash_tests = \
	tests/crash/test-damage \
	tests/crash/test-secrets

long_tests += \
	tests/crash/test-crash
long_scripts += \
	tests/crash/test-demo.sh

# The examples, linked so that they can be killed inside.
test_programs += \
	tests/crash/armed-blocking \
	tests/crash/armed-loop
armed_cppflags = $(AM_CPPFLAGS) -I$(srcdir)/src
tests_crash_armed_blocking_SOURCES = \
	tests/crash/arm.c contrib/examples/embed-blocking.c $(example_sources)
tests_crash_armed_blocking_CPPFLAGS = $(armed_cppflags)
tests_crash_armed_blocking_LDADD = libck.la
tests_crash_armed_loop_SOURCES = \
	tests/crash/arm.c contrib/examples/embed-loop.c $(example_sources)
tests_crash_armed_loop_CPPFLAGS = $(armed_cppflags)
tests_crash_armed_loop_LDADD = libck.la

test_support += tests/crash/world.c tests/crash/world.h
