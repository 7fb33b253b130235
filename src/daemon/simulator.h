/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_DAEMON_SIMULATOR_H
#define CK_DAEMON_SIMULATOR_H
/*
 * Runs crikeep-sim, the simulated runtime, for `runtime: sim:PARAMETERS`. It is a program of its
 * own, so crikeepd contains none of its code. It drops its capabilities itself. These functions
 * fork: call them before the process is confined.
 *
 * In a build directory, crikeep-sim is beside crikeepd. It is installed in libexec. The first that
 * exists is used.
 */
#include <sys/types.h>

#include "src/base/error.h"

struct ck_simulator {
	pid_t pid;
	int fd; /* the simulator ends when this is closed, also with this process; -1: none */
};

/* ck_simulator_check - 0; -CK_EINVAL: the text names the parameter that is wrong; -CK_EIO: the
 * program does not run; -CK_ENOMEM */
int ck_simulator_check(const char *parameters, struct ck_error *err);
/* ck_simulator_start - it listens when this returns: at @path, unless the parameters have listen=.
 * @ret_path: where it listens, to be freed. -CK_EINVAL, -CK_EIO, -CK_ENOMEM */
int ck_simulator_start(const char *parameters, const char *path, struct ck_simulator *ret_simulator,
		       char **ret_path, struct ck_error *err);
/* ck_simulator_find - a descriptor (O_PATH) of the program, from the first directory that has it.
 * @directories: NULL-terminated. @trusted: refuse a program that anybody but root and this user may
 * write or replace; NULL: take any. -CK_EIO */
int ck_simulator_find(const char *const *directories, const uid_t *trusted, struct ck_error *err);
#endif
