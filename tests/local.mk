# SPDX-License-Identifier: Apache-2.0
#
# How tests are built and run. The local.mk of each folder lists its tests. A test of one source
# needs a line in its list; one of more sources needs a line NAME_SOURCES too. What several tests
# share goes into test_support: an archive, from which a program takes what it calls.

# These begin first, so that no core waits for one of them at the end. A test that needs 8 s or more
# is added to these lists by its folder, not to the folder's own.
long_tests =
mutant_tests = # not with sanitizers
# these count instructions; not with sanitizers, which add some
counting_tests =
long_scripts =
# programs that tests start; not tests themselves
test_programs =
test_support =

include $(srcdir)/tests/unit/local.mk
include $(srcdir)/tests/model/local.mk
include $(srcdir)/tests/mutants/local.mk
include $(srcdir)/tests/flow/local.mk
include $(srcdir)/tests/history/local.mk
include $(srcdir)/tests/world/local.mk
include $(srcdir)/tests/fault/local.mk
include $(srcdir)/tests/crash/local.mk
include $(srcdir)/tests/daemon/local.mk
include $(srcdir)/tests/load/local.mk
include $(srcdir)/tests/prog/local.mk
include $(srcdir)/tests/fuzz/local.mk
include $(srcdir)/tests/bench/local.mk
include $(srcdir)/tests/real/local.mk
include $(srcdir)/tests/packages/local.mk
include $(srcdir)/tests/system/local.mk

# What has a second thread, or starts a program that has one. ThreadSanitizer's run is these alone,
# without test-demo.sh: test-crash has its programs, and does not depend on their speed.
# check-layers.sh knows the tests that begin a thread themselves.
threaded_tests = \
	tests/crash/test-crash \
	tests/crash/test-damage \
	tests/crash/test-secrets \
	tests/flow/test-border \
	tests/flow/test-border-process \
	tests/flow/test-create \
	tests/flow/test-nri-threads \
	tests/flow/test-storm \
	tests/flow/test-threads \
	tests/flow/test-turns \
	tests/unit/test-store-open
if RPC
threaded_tests += tests/flow/test-client
endif
threaded_scripts =
if CLI
threaded_scripts += tests/prog/test-keep.sh tests/prog/test-metrics.sh
endif
if DAEMON
threaded_tests += tests/daemon/test-shadow tests/unit/test-confine tests/unit/test-log
endif

# What does not depend on how it was compiled, such as words: left out of the sanitizers' runs.
static_scripts = \
	tests/check-abi.sh \
	tests/check-header.sh \
	tests/check-layers.sh \
	tests/check-runner.sh \
	tests/check-style.sh \
	tests/check-symbols.sh \
	tests/hosts/test-hosts.sh \
	tests/mutants/test-sample.sh \
	tests/prog/test-guides.sh \
	tests/prog/test-manual.sh \
	tests/prog/test-protocol.sh \
	tests/prog/test-trust.sh
if DAEMON
static_scripts += tests/prog/test-troubles.sh
endif

# These need more than a compiler, make and cmocka, or minutes. check-quick, which a newcomer runs,
# leaves them out.
tool_scripts = \
	tests/check-abi.sh \
	tests/check-header.sh \
	tests/check-style.sh \
	tests/hosts/test-hosts.sh \
	tests/mutants/test-sample.sh \
	tests/prog/test-dashboard.sh \
	tests/prog/test-manual.sh \
	tests/prog/test-metrics.sh \
	tests/prog/test-prometheus.sh \
	tests/prog/test-protocol.sh \
	tests/prog/test-systemd.sh \
	tests/prog/test-trust.sh

# what test-hosts.sh compiles
host_sources = \
	tests/hosts/cxx.cc \
	tests/hosts/dl.c \
	tests/hosts/host.h \
	tests/hosts/sqlite.c

EXTRA_DIST += $(long_scripts) $(static_scripts) $(host_sources) \
	tests/link.sh tests/run tests/summary.sh tests/coverage.sh tests/analyze.sh \
	tests/analyze.conf tests/data

# ---- building ----------------------------------------------------------------------------------

check_LTLIBRARIES = libcktest.la
libcktest_la_SOURCES = $(test_support)
programs_under_test = $(long_tests) $(unit_tests) $(model_tests) $(flow_tests) $(fault_tests) \
	$(crash_tests) $(daemon_tests) $(load_tests) $(fuzz_tests)
scripts_under_test =
if CLI
scripts_under_test += $(prog_scripts)
endif
if DAEMON
scripts_under_test += $(daemon_scripts)
if !SANITIZERS
scripts_under_test += $(prometheus_scripts)
endif
endif
if FUZZING
check_PROGRAMS = $(fuzz_tests)
LDADD = $(daemon_libs) $(rpc_lib) libck.la $(CK_FUZZ_LIBS)
else
EXTRA_PROGRAMS += $(programs_under_test) $(mutant_tests) $(counting_tests) $(benches)
if THREAD_SANITIZER
check_PROGRAMS = $(threaded_tests) $(test_programs)
else
check_PROGRAMS = $(programs_under_test) $(test_programs)
endif
if !SANITIZERS
check_PROGRAMS += $(mutant_tests) $(counting_tests) $(benches)
endif
LDADD = libcktest.la $(cli_lib) $(daemon_libs) $(rpc_lib) libck.la $(CMOCKA_LIBS)
endif

# automake's LINK for them, without libtool's share of the time; theirs alone, not that of the
# archives they need
$(check_PROGRAMS) $(EXTRA_PROGRAMS): private LINK = \
	$(SHELL) $(srcdir)/tests/link.sh $(LIBTOOL) $(AM_V_lt) --tag=CC $(AM_LIBTOOLFLAGS) \
	$(LIBTOOLFLAGS) --mode=link $(CCLD) $(AM_CFLAGS) $(CFLAGS) $(AM_LDFLAGS) $(LDFLAGS) -o $@

# compiled and linked, not run. In a make of its own: `all` is one too, and two at a time would
# build the same files.
check-programs: all
	+@$(MAKE) $(AM_MAKEFLAGS) $(check_LTLIBRARIES) $(check_PROGRAMS)

# ---- running -----------------------------------------------------------------------------------

if SANITIZERS
# without mutant_tests: mutants are not the product; without counting_tests
if THREAD_SANITIZER
TESTS = $(threaded_scripts) $(threaded_tests)
else
TESTS = $(long_scripts) $(programs_under_test) $(scripts_under_test)
endif
test_slow = 8
test_scale = 10
else
TESTS = $(long_scripts) $(static_scripts) $(mutant_tests) $(counting_tests) \
	$(programs_under_test) $(scripts_under_test)
test_slow = 1
test_scale = 100
endif

# CK_TEST_SLOW: time limits are multiplied by it. CK_TEST_SCALE: per cent of the normal number of
# random rounds. From the environment or the command line of make.
AM_TESTS_ENVIRONMENT = \
	CK_TEST_SRCDIR='$(abs_srcdir)'; CK_TEST_BUILDDIR='$(abs_builddir)'; \
	CK_TEST_DATA='$(abs_srcdir)/tests/data'; \
	CK_TEST_SLOW=$${CK_TEST_SLOW:-$(test_slow)}; \
	CK_TEST_SCALE=$${CK_TEST_SCALE:-$(test_scale)}; CC='$(CC)'; \
	export CK_TEST_SRCDIR CK_TEST_BUILDDIR CK_TEST_DATA CK_TEST_SLOW CK_TEST_SCALE CC;
TEST_EXTENSIONS = .sh
LOG_DRIVER = $(SHELL) $(srcdir)/tests/run
SH_LOG_DRIVER = $(LOG_DRIVER)

# The verdict is check-local's, which counts single tests and has the last line. A failure must not
# stop make before it.
.IGNORE: check-TESTS
check-local: check-TESTS
	@$(SHELL) $(srcdir)/tests/summary.sh $(TEST_LOGS:.log=.trs)

if !CMOCKA
# while the Makefile is read, so that nothing is compiled first
cmocka_goals = bench check check-am check-deploy check-node check-one check-packages \
	check-programs check-quick check-real check-seeds check-system check-valgrind check-vm \
	check-world coverage distcheck
cmocka := $(if $(filter $(cmocka_goals),\
	$(MAKECMDGOALS)),$(error make $(MAKECMDGOALS) needs cmocka. Install it \
	(Debian: libcmocka-dev) and run configure again))
endif

# What needs no further tools, with a tenth of the random rounds. For contrib/quickstart.
quick_tests = $(filter-out $(tool_scripts) $(counting_tests),$(TESTS))
check-quick:
	+@CK_TEST_SCALE=$${CK_TEST_SCALE:-10} $(MAKE) $(AM_MAKEFLAGS) check TESTS='$(quick_tests)'

# two numbers, to show how far a build is: objects of the product, and of all, that are not there
all_objects = $(sort $(foreach v,$(filter %_OBJECTS,$(.VARIABLES)),$($(v))))
missing_objects = $(foreach o,$(all_objects),$(if $(wildcard $(o)),,$(o)))
count-steps:
	@echo $(words $(filter-out tests/%,$(missing_objects))) $(words $(missing_objects))

# for a compiler whose programs nobody runs
objects: $(BUILT_SOURCES)
	+@$(MAKE) $(AM_MAKEFLAGS) $(all_objects)

# make check-one T=fingerprint/shuffled_envs_are_the_same [WRAP='gdb --args']. A module's test goes
# before its fuzz target.
check-one:
	@test -n '$(T)' || { \
		echo "usage: make check-one T=module[/test] [WRAP='gdb --args']" >&2; exit 2; }
	@$(MAKE) $(AM_MAKEFLAGS) -s $(BUILT_SOURCES) || exit; \
	t='$(T)'; m=$${t%%/*}; f=; test "$$m" = "$$t" || f=$${t#*/}; \
	for p in $(mutant_tests) $(counting_tests) \
		$(filter-out $(fuzz_tests),$(programs_under_test)) $(fuzz_tests); do \
		case $$p in \
		*/$$m | */test-$$m | */fuzz-$$m) \
			case $$p in \
			tests/daemon/* | tests/load/* | tests/flow/test-sim*) \
				$(MAKE) $(AM_MAKEFLAGS) -s crikeepd crikeep-sim \
					tests/daemon/service-manager || exit;; \
			esac; \
			$(MAKE) $(AM_MAKEFLAGS) -s $$p || exit; \
			$(AM_TESTS_ENVIRONMENT) \
			CK_TEST_SLOW=0 CK_TEST_FILTER=$$f $(WRAP) ./$$p; exit;; \
		esac; \
	done; echo "no test program for '$$m'" >&2; exit 2

comma = ,
# Sub-builds live inside the build directory, are configured once and used again.
# $(call sub_build,DIRECTORY,FLAGS)
chosen_programs = --with-cli=$(with_cli) --with-daemon=$(with_daemon) \
	--with-exporter=$(with_exporter)
sub_build = test -f $(1)/Makefile || \
	{ $(MKDIR_P) $(1) && cd $(1) && $(abs_srcdir)/configure -q $(chosen_programs) $(2); }

check-asan:
	@$(call sub_build,build-asan,CC='$(CC)' CFLAGS='-O1 -g' --enable-checks \
		--enable-sanitizers=address$(comma)undefined)
	+@$(MAKE) $(AM_MAKEFLAGS) -C build-asan check

check-tsan:
	@$(call sub_build,build-tsan,CC='$(CC)' CFLAGS='-O1 -g' --enable-checks \
		--enable-sanitizers=thread)
	+@$(MAKE) $(AM_MAKEFLAGS) -C build-tsan check

valgrind = valgrind -q --leak-check=full --errors-for-leak-kinds=definite --error-exitcode=99
under_valgrind = tests/daemon/% tests/fault/% tests/flow/% tests/unit/%
check-valgrind:
	+@$(MAKE) $(AM_MAKEFLAGS) check TESTS='$(filter $(under_valgrind),$(programs_under_test))' \
		CK_TEST_SLOW=30 CK_TEST_SCALE=1 CK_TEST_WRAP='$(valgrind)'

# in a make of its own, because `check` would build every test first. Go's tools come first, one
# after another: side by side they would compile the same packages. A test whose tool could not be
# built says so.
check-real: all
	+@$(MAKE) $(AM_MAKEFLAGS) $(stage_programs) tests/prog/read-tree tests/real/merge \
		$(mutated_programs) $(filter %/test-attacks,$(programs_under_test))
	@for t in $(real_tools) $$(test $$(id -u) -ne 0 || echo $(root_tools)); do \
		echo "  GO       $$t"; $(srcdir)/tests/real/tools.sh tests/real/tools $$t || :; \
	done
	+@CK_TEST_LIMIT=1800 $(MAKE) $(AM_MAKEFLAGS) check TESTS='$(real_scripts)' \
		check_PROGRAMS= check_LTLIBRARIES=

# Not part of check-real: a kubelet takes long to build.
check-node: all
	+@$(MAKE) $(AM_MAKEFLAGS) $(stage_programs)
	+@CK_TEST_LIMIT=3600 $(MAKE) $(AM_MAKEFLAGS) check TESTS='$(node_scripts)' \
		check_PROGRAMS= check_LTLIBRARIES=; \
	status=$$?; cat tests/real/test-node.table; exit $$status

# One tarball for all of them; and what is installed by make, which is what the packages must hold.
# With a log of its own, for quickstart runs it beside another `check` in the same directory.
check-packages: dist
	@rm -rf tests/packages/installed
	+@$(MAKE) $(AM_MAKEFLAGS) -s install DESTDIR=$(abs_builddir)/tests/packages/installed \
		>/dev/null
	+@CK_TEST_LIMIT=1800 $(MAKE) $(AM_MAKEFLAGS) check TESTS='$(package_scripts)' \
		TEST_SUITE_LOG=tests/packages/test-suite.log check_PROGRAMS= check_LTLIBRARIES=

# The tarball, unpacked: all of it is compiled, and what takes seconds is run. It reads what others
# read. What an optimizer does is no business of it.
tarball_tests = $(unit_tests) $(fuzz_tests) tests/check-abi.sh tests/check-header.sh \
	tests/check-layers.sh tests/check-runner.sh tests/check-symbols.sh \
	tests/prog/test-guides.sh tests/prog/test-keep.sh tests/prog/test-manual.sh
check-tarball:
	+@$(MAKE) $(AM_MAKEFLAGS) distcheck TESTS='$(tarball_tests)' \
		DISTCHECK_CONFIGURE_FLAGS="CFLAGS='-O0 -g'"

# it waits for seconds at each of its steps, and is not in check for that
check-deploy: all
	+@CK_TEST_LIMIT=3600 $(MAKE) $(AM_MAKEFLAGS) check TESTS=tests/prog/test-deploy.sh \
		check_PROGRAMS= check_LTLIBRARIES=

check-system: dist
	+@CK_TEST_LIMIT=3600 $(MAKE) $(AM_MAKEFLAGS) check TESTS='$(system_scripts)' \
		check_PROGRAMS= check_LTLIBRARIES=

check-vm:
	+@CK_TEST_QEMU=yes $(MAKE) $(AM_MAKEFLAGS) check-system

coverage:
	@$(call sub_build,build-coverage,CC='$(CC)' CFLAGS='-O0 -g --coverage' --enable-checks)
	-+@$(MAKE) $(AM_MAKEFLAGS) -C build-coverage check
	@$(SHELL) $(srcdir)/tests/coverage.sh build-coverage

SECONDS = 60
corpus = tests/fuzz/corpus/$(T)
fuzz:
	@test -n '$(T)' || { echo 'usage: make fuzz T=name [SECONDS=60]' >&2; exit 2; }
	@$(call sub_build,build-fuzz,CC=clang CFLAGS='-O1 -g' --enable-checks --enable-fuzzing \
		--enable-sanitizers)
	+@$(MAKE) $(AM_MAKEFLAGS) -C build-fuzz $(BUILT_SOURCES) libck.la tests/fuzz/fuzz-$(T)
	@cd build-fuzz && $(MKDIR_P) found/$(T) && \
	seeds=$$(sed 's|^|$(abs_srcdir)/|' $(abs_srcdir)/$(corpus).dirs 2>/dev/null); \
	! test -d $(abs_srcdir)/$(corpus) || seeds="$$seeds $(abs_srcdir)/$(corpus)"; \
	setarch -R tests/fuzz/fuzz-$(T) -max_total_time=$(SECONDS) -max_len=65536 \
		-print_final_stats=1 found/$(T) $$seeds

# every target, RUNS times each, JOBS at a time; with MERGE=yes, what is new becomes a seed
RUNS = 100000
JOBS = $$(nproc)
fuzz-all:
	@$(call sub_build,build-fuzz,CC=clang CFLAGS='-O1 -g' --enable-checks --enable-fuzzing \
		--enable-sanitizers)
	+@$(MAKE) $(AM_MAKEFLAGS) -C build-fuzz fuzz-programs
	@cd build-fuzz && $(abs_srcdir)/tests/fuzz/run-all.sh $(abs_srcdir) $(RUNS) $(JOBS) \
		'$(MERGE)' $(fuzz_tests)
fuzz-programs: $(BUILT_SOURCES)
	+@$(MAKE) $(AM_MAKEFLAGS) $(fuzz_tests)

bench: all
	+@$(MAKE) $(AM_MAKEFLAGS) $(check_LTLIBRARIES) $(benches)
	@for b in $(benches); do \
		echo "== $$b"; $(AM_TESTS_ENVIRONMENT) ./$$b || exit 1; \
	done
	@for b in $(bench_scripts); do \
		echo "== $$b"; $(AM_TESTS_ENVIRONMENT) $(srcdir)/$$b || exit 1; \
	done

# for a release: what tests/check-abi.sh compares with from then on
abi-baseline: libcrikeep.la
	@$(AM_TESTS_ENVIRONMENT) $(SHELL) $(srcdir)/tests/check-abi.sh --record

check-style:
	@cd $(srcdir) && bash tests/check-style.sh

# each tool with every processor, so one after the other; -k tells what all of them find
analyze:
	+@$(MAKE) $(AM_MAKEFLAGS) -k -j1 $(analyze_targets)
analyze_targets = analyze-gcc analyze-clang analyze-clang-tidy analyze-cppcheck
$(analyze_targets): $(BUILT_SOURCES)
	@$(srcdir)/tests/analyze.sh $(@:analyze-%=%) "$$(cd $(srcdir) && \
		find src cache hooks contrib/examples -name '*.c' ! -name '*.pb-c.c' | sort | \
		tr '\n' ' ')" $(DEFS) $(DEFAULT_INCLUDES) $(INCLUDES) $(AM_CPPFLAGS) $(CPPFLAGS) \
		-I$(srcdir)/src -std=c11

clean-local:
	rm -rf analyze build-asan build-tsan build-coverage build-fuzz build-deb build-rpm \
		fuzz-*.input tests/mutants/made tests/mutants/sample \
		tests/real/stage tests/real/tools tests/real/vendor-runtime \
		tests/packages/base tests/packages/chroot tests/packages/installed \
		tests/system/console tests/system/crikeep-node.tar \
		tests/system/heard tests/system/namespaces \
		tests/system/packages tests/system/qemu
