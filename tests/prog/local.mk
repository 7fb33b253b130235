# SPDX-License-Identifier: Apache-2.0
#
# The programs as a user sees them. A script prints "ok - name", "not ok - name" or
# "skip - name: reason".

prog_scripts = \
	tests/prog/test-cli.sh \
	tests/prog/test-cri.sh \
	tests/prog/test-doctor.sh \
	tests/prog/test-embed-nri.sh \
	tests/prog/test-keep.sh \
	tests/prog/test-metrics.sh \
	tests/prog/test-simulate.sh \
	tests/prog/test-status.sh

daemon_scripts = \
	tests/prog/test-crikeepd.sh \
	tests/prog/test-systemd.sh

# How it looks, on a terminal and in Prometheus. Other tests run the same programs, so the
# sanitizers' runs leave these out.
looks_scripts =
if CLI
looks_scripts += tests/prog/test-terminal.sh
endif
if DAEMON
looks_scripts += tests/prog/test-dashboard.sh tests/prog/test-prometheus.sh
endif

# what test-cli.sh reads and makes databases with
if CLI
test_programs += tests/prog/make-db tests/prog/plugin tests/prog/read-tree
endif

EXTRA_DIST += $(prog_scripts) $(daemon_scripts) tests/prog/test-dashboard.sh
EXTRA_DIST += tests/prog/test-prometheus.sh tests/prog/test-terminal.sh
EXTRA_DIST += tests/prog/database.sh tests/prog/prelude.sh
EXTRA_DIST += tests/prog/deploy tests/prog/test-deploy.sh tests/prog/test-troubles.sh
EXTRA_DIST += tests/prog/check-json.py tests/prog/dashboard.py tests/prog/golden
