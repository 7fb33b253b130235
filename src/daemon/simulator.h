/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_DAEMON_SIMULATOR_H
#define CK_DAEMON_SIMULATOR_H
/*
 * Runs crikeep-sim, the simulated runtime, for `runtime: sim:PARAMETERS`. It is a program of its
 * own, so that crikeepd holds none of its code; it gives up its capabilities by itself. These
 * functions fork: call them before the process is confined.
 *
 * crikeep-sim lies beside crikeepd in a build directory, and in libexec when both are installed.
 * The first that exists is taken.
 */
#include <sys/types.h>

#include "src/base/error.h"

struct ck_simulator {
	pid_t pid;
	int fd; /* when it is closed, also by the end of this process, the simulator ends; -1: none */
};

/* ck_simulator_check - 0; -CK_EINVAL: the text names the parameter that is wrong; -CK_EIO: the
 * program does not run; -CK_ENOMEM */
int ck_simulator_check(const char *parameters, struct ck_error *err);
/* ck_simulator_start - it listens when this returns: at @path, if the parameters do not say listen=.
 * @ret_path: where it listens, to be freed. -CK_EINVAL, -CK_EIO, -CK_ENOMEM */
int ck_simulator_start(const char *parameters, const char *path, struct ck_simulator *ret_simulator,
		       char **ret_path, struct ck_error *err);
/* ck_simulator_find - a descriptor (O_PATH) of the program, from the first of these directories that
 * has it (NULL-terminated). @trusted: refuse a program that somebody else than root and this user
 * may write or replace; NULL: take any. -CK_EIO */
int ck_simulator_find(const char *const *directories, const uid_t *trusted, struct ck_error *err);
#endif
