/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_DAEMON_NRI_LAUNCHER_H
#define CK_DAEMON_NRI_LAUNCHER_H
/*
 * The launcher: a child process, forked before the database is open and the daemon is confined. It
 * is the only process that may exec. It has a list of programs, fixed at the fork, and starts one
 * of them by its number; NRI plugins are launched this way. When its parent ends, it ends too, and
 * sends SIGTERM to what it has started. A program gets descriptor 3, no standard input, and the
 * signal mask and ignored signals with which the daemon was started. If its item has an
 * environment, it gets exactly that and no output. Else it gets our output, and our environment
 * without systemd's variables.
 */
#include <sys/types.h>

#include "src/base/error.h"
#include "src/base/mem.h"

struct ck_launch_item {
	char *const *argv; /* argv[0]: the program's path */
	char *const *env;  /* NULL: ours */
};
struct ck_launcher;
/* ck_launcher_start - fork. @items: copied into the child by the fork. -CK_EIO, -CK_ENOMEM */
int ck_launcher_start(const struct ck_launch_item *items, size_t n,
		      struct ck_launcher **ret_launcher, struct ck_error *err);
/* ck_launcher_run - start item @i with @fd as its descriptor 3 (taken). Its pid, or -CK_EINVAL (no
 * such number), -CK_EIO. Waits for the launcher, which forks and answers, for a second at most */
pid_t ck_launcher_run(struct ck_launcher *launcher, unsigned i, int fd, struct ck_error *err);
/* the launcher ends, and its programs get SIGTERM */
void ck_launcher_free(struct ck_launcher *launcher);
CK_AUTO_DEFINE(ck_launcher)
#endif
