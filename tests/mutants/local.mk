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
# $(call instrument,SOURCES): of a stamp whose first prerequisite is the table
instrument = $(MKDIR_P) $(@D) && $(SHELL) $(srcdir)/tests/mutants/instrument.sh $< $(srcdir) \
	$(@:.stamp=) $(1) && touch $@
tests/mutants/%.stamp: tests/mutants/%.tsv tests/mutants/instrument.sh
	$(AM_V_GEN)$(call instrument,$($*_mutated))

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

# Made by a machine (README.md): `make mutants` tries all of them; mutants-sample, which
# tests/mutants/test-sample.sh runs in `make check`, a few.
# Without what only hosts of its own can try: tests/hosts/test-hosts.sh mixes two SQLites.
mutants_made_of = $(filter-out cache/store/sqlite-check.c,$(filter %.c,$(request_sources) \
	$(machine_sources) $(store_sources) $(cache_sources) $(wire_sources) $(adjust_sources) \
	$(hooks_sources)))
mutants_count = 328
mutants_judges = $(filter tests/unit/% tests/model/% tests/flow/% tests/fault/% tests/history/% \
	tests/world/%,$(programs_under_test))
# the short ones that notice most
sample_judges = \
	tests/flow/test-border-calls \
	tests/flow/test-decisions \
	tests/flow/test-embed \
	tests/flow/test-nri-events \
	tests/flow/test-nri-told \
	tests/flow/test-nri-trouble \
	tests/unit/test-adjust \
	tests/unit/test-admin-request \
	tests/unit/test-entry \
	tests/unit/test-fingerprint \
	tests/unit/test-key \
	tests/unit/test-mux \
	tests/unit/test-nri-message \
	tests/unit/test-redact \
	tests/unit/test-rules \
	tests/unit/test-status-file \
	tests/unit/test-store \
	tests/unit/test-store-open \
	tests/unit/test-timers \
	tests/unit/test-ttrpc
# Two makes: the second one finds the copies that the first has written. They define all that their
# originals in libck.la do, so those are not linked.
# $(call try_mutants,DIRECTORY,SAMPLE,JUDGES,LEAST)
try_mutants = rm -rf $(1) && $(PYTHON) $(srcdir)/tests/mutants/mutate.py $(srcdir) $(1) \
	$(srcdir)/tests/mutants/explained.tsv $(mutants_count) $(2) $${CK_MUTANTS_SEED:-1} \
	$(mutants_made_of) && $(MAKE) $(AM_MAKEFLAGS) $(3) && \
	$(MAKE) $(AM_MAKEFLAGS) mutated=$(1) judges='$(3)' mutated-judges && \
	CK_TEST_SLOW=$${CK_TEST_SLOW:-4} CK_MUTANTS_LEAST=$${CK_MUTANTS_LEAST:-$(4)} && \
	CK_TEST_SCALE=$${CK_TEST_SCALE:-100} && $(AM_TESTS_ENVIRONMENT) export CK_MUTANTS_LEAST && \
	$(PYTHON) $(srcdir)/tests/mutants/notice.py $(1) $(3:%=$(1)/%)
PYTHON = python3
mutants: all
	+@$(call try_mutants,tests/mutants/made,0,$(mutants_judges),95)
mutants-sample: all
	+@$(call try_mutants,tests/mutants/sample,20,$(sample_judges),75)
.PHONY: mutants mutants-sample mutated-judges

# in the second make
mutated_copies = $(shell test -z '$(mutated)' || find $(mutated) -name '*.c')
mutated_objects = $(mutated_copies:.c=.o)
mutated_judges = $(judges:%=$(mutated)/%)
mutated_switch = tests/mutants/mutants.$(OBJEXT) tests/mutants/made.$(OBJEXT)
# automake knows no program of it, and so would not remove what its own rule makes besides
tests/mutants/made.$(OBJEXT): tests/mutants/made.c tests/mutants/made.h
	$(AM_V_CC)$(MKDIR_P) $(@D) && $(COMPILE) -c -o $@ $(srcdir)/tests/mutants/made.c
automake_name = $(subst /,_,$(subst -,_,$(@:$(mutated)/%=%)))
mutated-judges: $(mutated_judges)
# -w: an edit may leave a comparison that is always true
$(mutated_objects): %.o: %.c
	$(AM_V_CC)$(COMPILE) -w -c -o $@ $<
$(mutated_judges): $(mutated)/%: $(mutated_objects) $(mutated_switch) $(check_LTLIBRARIES)
	$(AM_V_CCLD)$(MKDIR_P) $(@D) && \
		$(or $($(automake_name)_LINK),$(LINK)) $($(automake_name)_OBJECTS) \
		$(mutated_objects) $(mutated_switch) $(or $($(automake_name)_LDADD),$(LDADD)) \
		$(LIBS)
EXTRA_DIST += tests/mutants/explained.tsv tests/mutants/made.c tests/mutants/made.h \
	tests/mutants/mutate.py tests/mutants/notice.py
