/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_SIM_SIM_H
#define CK_SIM_SIM_H
/*
 * The simulated runtime: a process that serves real CRI (v1 and v1alpha2, all of the table in
 * calls.c that a kubelet or crictl needs) on a real socket, with objects in memory instead of
 * processes. It refuses duplicates of a name as containerd does, resolves id prefixes, streams
 * events, and counts for itself what it made and destroyed. crikeepd(8) lists its parameters.
 */
#include <sys/types.h>

#include "src/base/error.h"

/* ck_sim_check - "create=5s,fail.container=2": 0, or -CK_EINVAL naming the parameter */
int ck_sim_check(const char *parameters, struct ck_error *err);
/* ck_sim_serve - be the simulator on @fd (listening; taken) until SIGTERM. Its exit status */
int ck_sim_serve(const char *parameters, int fd);
/* ck_sim_main - the same where its parameters say listen=. Its exit status; 2: the parameters are
 * wrong */
int ck_sim_main(const char *parameters);
/* ck_sim_start - fork it, listening at @path (used if the parameters do not say listen=); it ends
 * with its parent.
 * @ret_path: where it listens, to be freed. Its pid, -CK_EIO, -CK_EINVAL */
pid_t ck_sim_start(const char *parameters, const char *path, char **ret_path, struct ck_error *err);
#endif
