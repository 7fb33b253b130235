# SPDX-License-Identifier: Apache-2.0
#
# LLVMFuzzerTestOneInput() in fuzz-NAME.c, with seeds in corpus/NAME/ and in the directories that
# corpus/NAME.dirs lists. A plain build links driver.c: a short run with a set seed in `make check`.

fuzz_tests = \
	tests/fuzz/fuzz-admin-request \
	tests/fuzz/fuzz-key \
	tests/fuzz/fuzz-mux \
	tests/fuzz/fuzz-nri-message \
	tests/fuzz/fuzz-record \
	tests/fuzz/fuzz-redact \
	tests/fuzz/fuzz-request \
	tests/fuzz/fuzz-rows \
	tests/fuzz/fuzz-status-file \
	tests/fuzz/fuzz-ttrpc
if RPC
fuzz_tests += \
	tests/fuzz/fuzz-h2 \
	tests/fuzz/fuzz-h2-frames
endif
if DAEMON
fuzz_tests += \
	tests/fuzz/fuzz-apply \
	tests/fuzz/fuzz-cri-calls \
	tests/fuzz/fuzz-describe \
	tests/fuzz/fuzz-filter \
	tests/fuzz/fuzz-yaml
endif

tests_fuzz_fuzz_h2_SOURCES = tests/fuzz/fuzz-h2.c \
	tests/fuzz/h2-life.c tests/fuzz/h2-life.h
tests_fuzz_fuzz_h2_frames_SOURCES = tests/fuzz/fuzz-h2-frames.c \
	tests/fuzz/h2-life.c tests/fuzz/h2-life.h

test_support += tests/fuzz/driver.c tests/fuzz/fuzz.h

EXTRA_DIST += tests/fuzz/corpus tests/fuzz/run-all.sh
