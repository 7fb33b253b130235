# SPDX-License-Identifier: Apache-2.0
#
# A node in one process: crikeepd, a kubelet and a runtime, from one seed.

if DAEMON
long_tests += \
	tests/world/test-world
endif
world_sources = \
	tests/world/check.c \
	tests/world/crikeepd.c \
	tests/world/disk.c \
	tests/world/kernel.c \
	tests/world/kubelet.c \
	tests/world/plugins.c \
	tests/world/runtime.c \
	tests/world/script.c \
	tests/world/seeds.c \
	tests/world/seeds.h \
	tests/world/world.h
world_test_flags = -Wl,--wrap=ck_sim_log,--wrap=ck_sim_list_objects,--wrap=ck_sim_create_left \
	-Wl,--wrap=ck_fault

world_test_sources = tests/world/test-world.c $(world_sources)

tests_world_test_world_SOURCES = $(world_test_sources)
tests_world_test_world_LDFLAGS = $(world_test_flags)

# Old faults, put back in (faults.tsv), in the way of tests/mutants: run by `make check-world`.
faults_mutated = \
	cache/machine/creation.c \
	cache/machine/evict.c \
	cache/machine/lists.c \
	cache/machine/machine.c \
	cache/machine/place.c \
	cache/machine/restart.c \
	cache/machine/settle.c \
	cache/machine/start.c \
	cache/machine/stopping.c \
	hooks/nri-objects.c \
	hooks/recipients.c \
	hooks/synchronize.c
faults_mutants = \
	tests/world/faults/cache/machine/creation.c \
	tests/world/faults/cache/machine/evict.c \
	tests/world/faults/cache/machine/lists.c \
	tests/world/faults/cache/machine/machine.c \
	tests/world/faults/cache/machine/place.c \
	tests/world/faults/cache/machine/restart.c \
	tests/world/faults/cache/machine/settle.c \
	tests/world/faults/cache/machine/start.c \
	tests/world/faults/cache/machine/stopping.c \
	tests/world/faults/hooks/nri-objects.c \
	tests/world/faults/hooks/recipients.c \
	tests/world/faults/hooks/synchronize.c \
	tests/world/faults/list.c

$(faults_mutants): tests/world/faults.stamp ;
tests/world/faults.stamp: tests/world/faults.tsv tests/mutants/instrument.sh $(faults_mutated)
	$(AM_V_GEN)$(call instrument,$(faults_mutated))

if DAEMON
world_faults = tests/world/test-faults
endif
tests_world_test_faults_SOURCES = tests/world/test-faults.c $(world_sources) $(mutant_switch)
nodist_tests_world_test_faults_SOURCES = $(faults_mutants)
tests_world_test_faults_LDFLAGS = $(world_test_flags)
EXTRA_PROGRAMS += $(world_faults)
CLEANFILES += tests/world/faults.stamp $(faults_mutants) $(world_faults)
EXTRA_DIST += tests/world/faults.tsv

# CK_WORLDS seeds from CK_WORLD_FIRST on, one process a core
check-seeds: $(check_LTLIBRARIES)
	+@$(MAKE) $(AM_MAKEFLAGS) tests/world/test-world
	CK_WORLD_JOBS=$${CK_WORLD_JOBS:-$$(nproc)} CK_WORLDS=$${CK_WORLDS:-1000} \
		CK_TEST_FILTER='every_*' tests/world/test-world
# the long run: many seeds, then the old faults
check-world:
	+@CK_WORLDS=$${CK_WORLDS:-20000} $(MAKE) $(AM_MAKEFLAGS) check-seeds
	+@$(MAKE) $(AM_MAKEFLAGS) $(world_faults)
	CK_WORLD_JOBS=$${CK_WORLD_JOBS:-$$(nproc)} tests/world/test-faults
