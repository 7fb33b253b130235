/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_DAEMON_CONFINE_H
#define CK_DAEMON_CONFINE_H
/*
 * What the daemon gives up before it accepts its first call: every capability, new privileges, core dumps, system calls outside a
 * list (unknown ones get ENOSYS, dangerous ones kill), and with Landlock every path but those it works on. (The word sandbox is
 * taken: here it means a pod's.) A build with sanitizers leaves the filter out.
 */
#include "src/daemon/conf.h"

/* ck_confine - call once, single-threaded, with all that is opened by path later named by @conf. @ret_text: one line for the log
 * that says what is in force ("seccomp, Landlock ABI 4, no capabilities"). 0, -CK_EIO */
int ck_confine(const struct ck_conf *conf, char *ret_text, size_t size, struct ck_error *err);
#endif
