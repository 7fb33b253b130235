# SPDX-License-Identifier: Apache-2.0
#
# Several modules together: threads, sockets, plugins, the daemon inside the test's process.

flow_tests = \
	tests/flow/test-border \
	tests/flow/test-border-calls \
	tests/flow/test-border-process \
	tests/flow/test-create \
	tests/flow/test-decisions \
	tests/flow/test-embed \
	tests/flow/test-nri-events \
	tests/flow/test-nri-join \
	tests/flow/test-nri-policy \
	tests/flow/test-nri-restart \
	tests/flow/test-nri-threads \
	tests/flow/test-nri-told \
	tests/flow/test-nri-trouble \
	tests/flow/test-storm \
	tests/flow/test-threads \
	tests/flow/test-turns
if RPC
flow_tests += \
	tests/flow/test-client
endif
if DAEMON
flow_tests += \
	tests/flow/test-events \
	tests/flow/test-nri-calls \
	tests/flow/test-sim \
	tests/flow/test-sim-life \
	tests/flow/test-sim-trouble
endif

mutant_tests += tests/flow/test-nri-mutants
long_tests += \
	tests/flow/test-nri-schedules
if DAEMON
long_tests += \
	tests/flow/test-calls \
	tests/flow/test-host
endif

tests_flow_test_calls_SOURCES = tests/flow/test-calls.c \
	tests/flow/ask.c tests/flow/ask.h tests/flow/peer.c tests/flow/peer.h
tests_flow_test_events_SOURCES = tests/flow/test-events.c tests/flow/peer.c tests/flow/peer.h
tests_flow_test_host_SOURCES = tests/flow/test-host.c tests/flow/peer.c tests/flow/peer.h
tests_flow_test_nri_calls_SOURCES = tests/flow/test-nri-calls.c \
	tests/flow/ask.c tests/flow/ask.h tests/flow/peer.c tests/flow/peer.h
tests_flow_test_nri_mutants_SOURCES = tests/flow/test-nri-mutants.c $(nri_switch)
nodist_tests_flow_test_nri_mutants_SOURCES = $(nri_library_mutants)

test_support += \
	tests/flow/fixture.c tests/flow/fixture.h \
	tests/flow/nri-oracle.c tests/flow/nri-oracle.h \
	tests/flow/nri-peer.c tests/flow/nri-peer.h \
	tests/flow/nri-schedule.c tests/flow/nri-schedule.h \
	tests/flow/nri-world.c tests/flow/nri-world.h
if DAEMON
test_support += tests/flow/cri-client.c tests/flow/cri-client.h
endif
