/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_DAEMON_NRI_LAUNCHER_H
#define CK_DAEMON_NRI_LAUNCHER_H
/*
 * The launcher: a child forked before the database is open and before the daemon is confined, the
 * only process that may exec. It offers a list, fixed at the fork, and takes numbers only. Plugins
 * are its customers (hooks/). It ends when its parent does, and what it started then gets SIGTERM,
 * too. That is given: its descriptor 3, no standard input, no signal blocked or ignored that was
 * not when the daemon was started; and either exactly the environment of its item and no output,
 * or, where that has none, our output, and our environment without systemd's variables.
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
/* the launcher ends, and what it started gets SIGTERM */
void ck_launcher_free(struct ck_launcher *launcher);
CK_AUTO_DEFINE(ck_launcher)
#endif
