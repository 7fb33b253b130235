/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_SIM_SIM_H
#define CK_SIM_SIM_H
/*
 * The simulated runtime. It serves real CRI (v1 and v1alpha2, all calls of src/cri/calls.c that a
 * kubelet or crictl needs) on a real socket, with objects in memory instead of processes. As
 * containerd does, it refuses a name that exists and resolves prefixes of ids. It streams events,
 * and counts what it created and destroyed. crikeepd(8) describes its parameters.
 */
#include "src/base/error.h"

/* ck_sim_check - "create=5s,fail.container=2": 0, or -CK_EINVAL naming the parameter, -CK_ENOMEM */
int ck_sim_check(const char *parameters, struct ck_error *err);
/* ck_sim_serve - serve on @fd, a listening socket (taken), until SIGTERM or SIGINT. With @parent, a
 * socket to the process that started this one (-1: none), until that socket ends; SIGINT is then
 * left to the parent. Files are opened first, then capabilities are dropped for good. The exit
 * status of the process */
int ck_sim_serve(const char *parameters, int fd, int parent);
#endif
