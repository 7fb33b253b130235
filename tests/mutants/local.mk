# SPDX-License-Identifier: Apache-2.0
#
# Sources with the edits of a table of mutants (README.md). They are linked before libck.la, so that
# their functions are the program's.

mutant_switch = tests/mutants/mutants.c tests/mutants/mutants.h
machine_mutated = \
	cache/machine/answers.c \
	cache/machine/commit.c \
	cache/machine/creation.c \
	cache/machine/evict.c \
	cache/machine/lists.c \
	cache/machine/lost.c \
	cache/machine/place.c \
	cache/machine/restart.c \
	cache/machine/settle.c \
	cache/machine/stopping.c \
	cache/machine/turn.c \
	cache/machine/turn-events.c
machine_mutants = \
	tests/mutants/machine/cache/machine/answers.c \
	tests/mutants/machine/cache/machine/commit.c \
	tests/mutants/machine/cache/machine/creation.c \
	tests/mutants/machine/cache/machine/evict.c \
	tests/mutants/machine/cache/machine/lists.c \
	tests/mutants/machine/cache/machine/lost.c \
	tests/mutants/machine/cache/machine/place.c \
	tests/mutants/machine/cache/machine/restart.c \
	tests/mutants/machine/cache/machine/settle.c \
	tests/mutants/machine/cache/machine/stopping.c \
	tests/mutants/machine/cache/machine/turn.c \
	tests/mutants/machine/cache/machine/turn-events.c \
	tests/mutants/machine/list.c

$(machine_mutants): tests/mutants/machine.stamp ;
tests/mutants/machine.stamp: $(machine_mutated)
tests/mutants/%.stamp: tests/mutants/%.tsv tests/mutants/instrument.sh
	$(AM_V_GEN)$(MKDIR_P) $(@D) && \
		$(SHELL) $(srcdir)/tests/mutants/instrument.sh $< $(srcdir) $(@:.stamp=) \
		$($*_mutated) && touch $@

CLEANFILES += tests/mutants/machine.stamp $(machine_mutants)
EXTRA_DIST += tests/mutants/machine.tsv tests/mutants/instrument.sh tests/mutants/README.md
