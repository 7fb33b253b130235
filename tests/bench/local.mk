# SPDX-License-Identifier: Apache-2.0
#
# Benchmarks: built by `make check`, run by `make bench`.

benches = \
	tests/bench/bench \
	tests/bench/bench-nri
if DAEMON
benches += \
	tests/bench/bench-daemon
endif

bench_scripts = \
	tests/bench/bench-cli.sh \
	tests/bench/bench-open.sh \
	tests/bench/bench-store.sh

test_support += tests/bench/measure.c tests/bench/measure.h

EXTRA_DIST += $(bench_scripts) tests/bench/README.md tests/bench/plot.sh
