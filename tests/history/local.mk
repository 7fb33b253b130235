# SPDX-License-Identifier: Apache-2.0
#
# Random histories of the whole cache.

history_test_sources = \
	tests/history/callers.c \
	tests/history/check.c \
	tests/history/runtime.c \
	tests/history/steps.c \
	tests/history/world.c tests/history/world.h \
	tests/model/check-machine.c tests/model/check-machine.h

long_tests += \
	tests/history/test-histories
tests_history_test_histories_SOURCES = tests/history/test-histories.c $(history_test_sources)
