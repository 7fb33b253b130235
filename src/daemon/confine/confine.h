/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_DAEMON_CONFINE_CONFINE_H
#define CK_DAEMON_CONFINE_CONFINE_H
/*
 * What the daemon gives up before it accepts its first call: all capabilities, new privileges, core
 * dumps, all system calls that are not on a list, and with Landlock all paths that it does not
 * need. (It is not called a sandbox, because that word means a pod's here.)
 *
 *   a system call that is not on the list                       ENOSYS
 *   a socket that is not AF_UNIX                                EAFNOSUPPORT
 *   memory that can be executed                                 EACCES
 *   a signal to another process                                 EPERM
 *   a path that is not below the state directory, the           EACCES
 *   directories of the sockets or that of the configuration
 *   another program, process or user, mounts, modules,          SIGSYS: the process dies
 *   keys, bpf, io_uring, tracing
 *
 * A build with sanitizers uses neither seccomp nor Landlock, because sanitizers need what these
 * forbid.
 */
#include "src/daemon/conf/conf.h"

/* ck_confine - once, while the process has one thread. The cache may be opened afterwards. @conf:
 * has the paths that are opened later. @ret_text: a line for the log ("no capabilities, seccomp,
 * Landlock ABI 4"). Without conf->confine it does nothing. 0, -CK_EIO, -CK_ENOMEM */
int ck_confine(const struct ck_conf *conf, char *ret_text, size_t size, struct ck_error *err);
#endif
