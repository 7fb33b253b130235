/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_DAEMON_PROC_STATS_H
#define CK_DAEMON_PROC_STATS_H
/*
 * What the kernel says about this process, for metrics. The files are opened once, before the
 * process is confined and can no longer open files in /proc.
 */
#include <dirent.h>
#include <stdint.h>

struct ck_process { /* ck_process_open(), ck_process_close() */
	int statm;
	DIR *fds;
	uint64_t started_ns; /* of the wall clock; 0: not known */
};

/* 0: not known */
struct ck_process_figures {
	uint64_t resident, virtual_size; /* bytes */
	uint64_t cpu_ns, started_ns;
	uint64_t fds, fds_max;
};

void ck_process_open(
	struct ck_process *process); /* figures of a file that cannot be opened are not known */
void ck_process_close(struct ck_process *process);
void ck_process_look(const struct ck_process *process, struct ck_process_figures *ret_figures);
#endif
