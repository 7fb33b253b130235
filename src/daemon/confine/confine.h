/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_DAEMON_CONFINE_CONFINE_H
#define CK_DAEMON_CONFINE_CONFINE_H
/*
 * What the daemon gives up before it accepts its first call: every capability, new privileges, core
 * dumps, system calls outside a list, and with Landlock every path but those it works on. (The word
 * sandbox is taken: here it means a pod's.)
 *
 *   a call outside of the list            ENOSYS          another program, process or user, mounts,     the process dies
 *   a socket that is not AF_UNIX          EAFNOSUPPORT    modules, keys, bpf, io_uring, tracing         (SIGSYS)
 *   memory that can be executed           EACCES          a path outside of the state directory, those  EACCES
 *   a signal to another process           EPERM           of our sockets and of the configuration
 *
 * A build with sanitizers leaves seccomp and Landlock out: their runtime needs what these forbid.
 */
#include "src/daemon/conf/conf.h"

/* ck_confine - once, before there is a second thread; the cache may be opened after it. @conf names
 * what is opened by path later.
 * @ret_text: one line for the log that says what is in force ("no capabilities, seccomp, Landlock
 * ABI 4"). Without conf->confine it does nothing. 0, -CK_EIO, -CK_ENOMEM */
int ck_confine(const struct ck_conf *conf, char *ret_text, size_t size, struct ck_error *err);
#endif
