# SPDX-License-Identifier: Apache-2.0
#
# Sources with the edits of a table of mutants (README.md). They are linked before libck.la, so that
# their functions are the program's.

mutant_switch = tests/mutants/mutants.c tests/mutants/mutants.h
machine_mutated = \
	cache/machine/answers.c \
	cache/machine/commit.c \
	cache/machine/creation.c \
	cache/machine/entry-changes.c \
	cache/machine/evict.c \
	cache/machine/lists.c \
	cache/machine/lost.c \
	cache/machine/machine.c \
	cache/machine/place.c \
	cache/machine/removal.c \
	cache/machine/restart.c \
	cache/machine/settle.c \
	cache/machine/start.c \
	cache/machine/stopping.c \
	cache/machine/turn.c \
	cache/machine/turn-events.c \
	cache/machine/unknown-stops.c
machine_mutants = \
	tests/mutants/machine/cache/machine/answers.c \
	tests/mutants/machine/cache/machine/commit.c \
	tests/mutants/machine/cache/machine/creation.c \
	tests/mutants/machine/cache/machine/entry-changes.c \
	tests/mutants/machine/cache/machine/evict.c \
	tests/mutants/machine/cache/machine/lists.c \
	tests/mutants/machine/cache/machine/lost.c \
	tests/mutants/machine/cache/machine/machine.c \
	tests/mutants/machine/cache/machine/place.c \
	tests/mutants/machine/cache/machine/removal.c \
	tests/mutants/machine/cache/machine/restart.c \
	tests/mutants/machine/cache/machine/settle.c \
	tests/mutants/machine/cache/machine/start.c \
	tests/mutants/machine/cache/machine/stopping.c \
	tests/mutants/machine/cache/machine/turn.c \
	tests/mutants/machine/cache/machine/turn-events.c \
	tests/mutants/machine/cache/machine/unknown-stops.c \
	tests/mutants/machine/list.c

# crikeep's NRI side: the library's part of it, and crikeepd's
nri_library_mutated = \
	cache/machine/answers.c \
	cache/machine/commit.c \
	cache/machine/evict.c \
	cache/machine/machine.c \
	cache/machine/place.c \
	cache/machine/turn-events.c \
	hooks/deliver.c \
	hooks/describe-event.c \
	hooks/dispatch.c \
	hooks/nri.c \
	hooks/plugin-list.c \
	hooks/plugin-queue.c \
	hooks/plugin-socket.c \
	hooks/plugin.c \
	hooks/recipients.c \
	hooks/synchronize.c \
	hooks/unsolicited.c
nri_daemon_mutated = \
	src/cri/guard.c \
	src/daemon/call-pass.c \
	src/daemon/nri-call-steps.c \
	src/daemon/nri-exits.c \
	src/daemon/nri/describe.c
nri_mutated = $(nri_library_mutated) $(nri_daemon_mutated)
nri_library_mutants = \
	tests/mutants/nri/cache/machine/answers.c \
	tests/mutants/nri/cache/machine/commit.c \
	tests/mutants/nri/cache/machine/evict.c \
	tests/mutants/nri/cache/machine/machine.c \
	tests/mutants/nri/cache/machine/place.c \
	tests/mutants/nri/cache/machine/turn-events.c \
	tests/mutants/nri/hooks/deliver.c \
	tests/mutants/nri/hooks/describe-event.c \
	tests/mutants/nri/hooks/dispatch.c \
	tests/mutants/nri/hooks/nri.c \
	tests/mutants/nri/hooks/plugin-list.c \
	tests/mutants/nri/hooks/plugin-queue.c \
	tests/mutants/nri/hooks/plugin-socket.c \
	tests/mutants/nri/hooks/plugin.c \
	tests/mutants/nri/hooks/recipients.c \
	tests/mutants/nri/hooks/synchronize.c \
	tests/mutants/nri/hooks/unsolicited.c \
	tests/mutants/nri/list.c
nri_daemon_mutants = \
	tests/mutants/nri/src/cri/guard.c \
	tests/mutants/nri/src/daemon/call-pass.c \
	tests/mutants/nri/src/daemon/nri-call-steps.c \
	tests/mutants/nri/src/daemon/nri-exits.c \
	tests/mutants/nri/src/daemon/nri/describe.c

$(machine_mutants): tests/mutants/machine.stamp ;
tests/mutants/machine.stamp: $(machine_mutated)
$(nri_library_mutants) $(nri_daemon_mutants): tests/mutants/nri.stamp ;
tests/mutants/nri.stamp: $(nri_mutated)
tests/mutants/%.stamp: tests/mutants/%.tsv tests/mutants/instrument.sh
	$(AM_V_GEN)$(MKDIR_P) $(@D) && \
		$(SHELL) $(srcdir)/tests/mutants/instrument.sh $< $(srcdir) $(@:.stamp=) \
		$($*_mutated) && touch $@

CLEANFILES += tests/mutants/machine.stamp $(machine_mutants) \
	tests/mutants/nri.stamp $(nri_library_mutants) $(nri_daemon_mutants)
EXTRA_DIST += tests/mutants/machine.tsv tests/mutants/nri.tsv tests/mutants/instrument.sh \
	tests/mutants/README.md

# What tests/real/test-requirements.sh runs: crikeepd, and tests of tests/flow, with the mutants of
# nri.tsv. Only `make check-real` builds them.
nri_switch = $(mutant_switch) tests/mutants/nobody-waits.c
mutated_programs = \
	tests/mutants/test-nri-events \
	tests/mutants/test-nri-join \
	tests/mutants/test-nri-policy \
	tests/mutants/test-nri-schedules
tests_mutants_test_nri_events_SOURCES = tests/flow/test-nri-events.c $(nri_switch)
nodist_tests_mutants_test_nri_events_SOURCES = $(nri_library_mutants)
tests_mutants_test_nri_join_SOURCES = tests/flow/test-nri-join.c $(nri_switch)
nodist_tests_mutants_test_nri_join_SOURCES = $(nri_library_mutants)
tests_mutants_test_nri_policy_SOURCES = tests/flow/test-nri-policy.c $(nri_switch)
nodist_tests_mutants_test_nri_policy_SOURCES = $(nri_library_mutants)
tests_mutants_test_nri_schedules_SOURCES = tests/flow/test-nri-schedules.c $(nri_switch)
nodist_tests_mutants_test_nri_schedules_SOURCES = $(nri_library_mutants)
if DAEMON
mutated_programs += tests/mutants/crikeepd
tests_mutants_crikeepd_SOURCES = $(crikeepd_SOURCES) $(nri_switch)
nodist_tests_mutants_crikeepd_SOURCES = $(nri_library_mutants) $(nri_daemon_mutants)
tests_mutants_crikeepd_LDADD = $(crikeepd_LDADD)
# crikeepd looks for it beside itself
EXTRA_tests_mutants_crikeepd_DEPENDENCIES = tests/mutants/crikeep-sim
tests/mutants/crikeep-sim: crikeep-sim
	$(AM_V_GEN)$(MKDIR_P) $(@D) && ln -sf ../../crikeep-sim $@
CLEANFILES += tests/mutants/crikeep-sim
endif
# By hand: how many mutants of machine.tsv the random histories of the whole cache notice, and the
# world of the whole crikeepd.
mutated_by_hand = tests/mutants/test-histories
if DAEMON
mutated_by_hand += tests/mutants/test-world
endif
tests_mutants_test_histories_SOURCES = tests/history/test-histories.c $(history_test_sources) \
	$(mutant_switch)
nodist_tests_mutants_test_histories_SOURCES = $(machine_mutants)
tests_mutants_test_world_SOURCES = $(world_test_sources) $(mutant_switch)
nodist_tests_mutants_test_world_SOURCES = $(machine_mutants)
tests_mutants_test_world_LDFLAGS = $(world_test_flags)
EXTRA_PROGRAMS = $(mutated_programs) $(mutated_by_hand)
CLEANFILES += $(mutated_programs) $(mutated_by_hand)
