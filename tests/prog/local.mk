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
	tests/prog/test-status.sh \
	tests/prog/test-terminal.sh

daemon_scripts = \
	tests/prog/test-crikeepd.sh \
	tests/prog/test-systemd.sh

# What Prometheus makes of crikeepd's metrics. Other tests read the same metrics, so the sanitizers'
# runs leave these out.
prometheus_scripts = tests/prog/test-dashboard.sh tests/prog/test-prometheus.sh

# what test-cli.sh reads and makes databases with
if CLI
test_programs += tests/prog/make-db tests/prog/plugin tests/prog/read-tree
endif

EXTRA_DIST += $(prog_scripts) $(daemon_scripts) $(prometheus_scripts)
EXTRA_DIST += tests/prog/database.sh tests/prog/prelude.sh
EXTRA_DIST += tests/prog/deploy tests/prog/test-deploy.sh tests/prog/test-troubles.sh
EXTRA_DIST += tests/prog/check-json.py tests/prog/dashboard.py tests/prog/golden
