# SPDX-License-Identifier: Apache-2.0
#
# The machine against an oracle, in many random histories.

model_tests = tests/model/test-model
mutant_tests += tests/model/test-mutants

# The world of the model test, and the oracle that watches it.
model_sources = \
	tests/model/check-machine.c tests/model/check-machine.h \
	tests/model/coverage.c \
	tests/model/oracle.c tests/model/oracle.h tests/model/oracle-int.h \
	tests/model/oracle-host.c \
	tests/model/oracle-round.c \
	tests/model/oracle-start.c \
	tests/model/oracle-turns.c \
	tests/model/world.c tests/model/world.h tests/model/world-int.h \
	tests/model/world-events.c
history_sources = $(model_sources) \
	tests/model/history.c tests/model/history.h \
	tests/model/script.c tests/model/script.h
tests_model_test_model_SOURCES = tests/model/test-model.c $(history_sources)
tests_model_test_mutants_SOURCES = tests/model/test-mutants.c $(history_sources) $(mutant_switch)
nodist_tests_model_test_mutants_SOURCES = $(machine_mutants)
