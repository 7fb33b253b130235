# SPDX-License-Identifier: Apache-2.0
#
# Tests of one module each.

unit_tests = \
	tests/unit/test-adjust \
	tests/unit/test-admin-request \
	tests/unit/test-bytes \
	tests/unit/test-entry \
	tests/unit/test-fingerprint \
	tests/unit/test-hash \
	tests/unit/test-key \
	tests/unit/test-mux \
	tests/unit/test-nri-message \
	tests/unit/test-redact \
	tests/unit/test-rules \
	tests/unit/test-status-file \
	tests/unit/test-store \
	tests/unit/test-store-open \
	tests/unit/test-store-readers \
	tests/unit/test-timers \
	tests/unit/test-ttrpc
if CLI
unit_tests += \
	tests/unit/test-doctor \
	tests/unit/test-print \
	tests/unit/test-processes \
	tests/unit/test-select-entries
endif
if RPC
unit_tests += \
	tests/unit/test-grpc \
	tests/unit/test-h2 \
	tests/unit/test-h2-peer
endif
if DAEMON
unit_tests += \
	tests/unit/test-apply \
	tests/unit/test-conf \
	tests/unit/test-confine \
	tests/unit/test-cri-calls \
	tests/unit/test-describe \
	tests/unit/test-discover-plugins \
	tests/unit/test-filter \
	tests/unit/test-guard \
	tests/unit/test-launcher \
	tests/unit/test-log \
	tests/unit/test-metrics \
	tests/unit/test-resources \
	tests/unit/test-simulator \
	tests/unit/test-uid-conflict
endif

# the rules are played in the model's world
tests_unit_test_rules_SOURCES = tests/unit/test-rules.c $(model_sources)
# it counts how often turns are placed
tests_unit_test_rules_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=ck_turn_place

test_support += \
	tests/unit/cri-build.h \
	tests/unit/harness.h \
	tests/unit/markers.c tests/unit/markers.h \
	tests/unit/message-text.c tests/unit/message-text.h \
	tests/unit/proto-text.c tests/unit/proto-text.h \
	tests/unit/rows.h \
	tests/unit/wire-build.h
if RPC
test_support += tests/unit/wire-pair.c tests/unit/wire-pair.h
endif
