/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_DAEMON_CONFINE_CONFINE_INT_H
#define CK_DAEMON_CONFINE_CONFINE_INT_H
/* The steps of ck_confine(), which has their order: Landlock in landlock.c, seccomp in
 * seccomp.c. */
#include "src/base/error.h"
#include "src/daemon/conf/conf.h"

/* ck_confine_paths - the ABI of Landlock; 0: this kernel has no Landlock; -CK_EIO */
int ck_confine_paths(const struct ck_conf *conf, struct ck_error *err);
int ck_confine_calls(struct ck_error *err); /* 0, -CK_EIO. Last: it forbids the other steps */
#endif
