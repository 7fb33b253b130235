/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order matters: Landlock opens paths, setting groups and the bounding set needs capabilities,
 * and the filter of seccomp forbids all of this.
 *
 * The daemon stays uid 0. The socket of the runtime belongs to root, and the daemon connects to it
 * again when the runtime restarts. Without capabilities, uid 0 is only an owner of files. Landlock
 * keeps the daemon from reading other files of root.
 */
#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "src/base/capabilities.h"
#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/daemon/confine/confine-int.h"
#include "src/daemon/confine/confine.h"

/* A filter and capabilities belong to one thread. Another thread would not be confined. */
static int be_alone(struct ck_error *err)
{
	struct stat st;
	/* ".", ".." and one thread; without /proc it is not checked */
	bool alone = stat("/proc/self/task", &st) < 0 || st.st_nlink == 3;
#ifdef CK_SANITIZERS /* TSan has a thread of its own after a fork */
	alone = true;
#endif
	return alone ? 0
		     : ck_fail(err, CK_EIO, "%lu threads are already running",
			       (unsigned long)st.st_nlink - 2);
}

/* Sockets may be made after CAP_CHOWN is gone. An owner may give a file to one of his groups. */
static int join_group(gid_t gid, struct ck_error *err)
{
	int n = getgroups(0, NULL);
	if (gid == (gid_t)-1 || gid == getegid() || n < 0)
		return 0;
	CK_AUTO_FREE gid_t *groups = ck_alloc(((size_t)n + 1) * sizeof(*groups));
	if (!groups)
		return ck_nomem(err);
	n = getgroups(n, groups);
	for (int i = 0; i < n; i++)
		if (groups[i] == gid)
			return 0;
	if (n < 0)
		return ck_fail_errno(err, CK_EIO, errno, "read the groups");
	groups[n] = gid;
	/* a process that is not root could not do it before either */
	return setgroups((size_t)n + 1, groups) < 0 && errno != EPERM
		       ? ck_fail_errno(err, CK_EIO, errno, "join the group")
		       : 0;
}

/* requests in memory contain secrets */
static int keep_memory_private(struct ck_error *err)
{
	if (setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 }) < 0)
		return ck_fail_errno(err, CK_EIO, errno, "forbid core dumps");
#ifndef CK_SANITIZERS /* the leak checker traces its own process */
	if (prctl(PR_SET_DUMPABLE, 0L, 0L, 0L, 0L) < 0)
		return ck_fail_errno(err, CK_EIO, errno, "forbid tracing");
#endif
	return 0;
}

int ck_confine(const struct ck_conf *conf, char *ret_text, size_t size, struct ck_error *err)
{
	if (!conf->confine) {
		snprintf(ret_text, size, "not confined");
		return 0;
	}
	tzset(); /* reads a file, which is not possible later */
	int r = be_alone(err);
	if (r >= 0 && prctl(PR_SET_NO_NEW_PRIVS, 1L, 0L, 0L, 0L) < 0)
		r = ck_fail_errno(err, CK_EIO, errno, "forbid new privileges");
#ifndef CK_SANITIZERS
	int abi = 0;
	if (r >= 0)
		r = abi = ck_confine_paths(conf, err);
#endif
	const gid_t groups[] = { conf->cri_socket.group.gid, conf->unfiltered_socket.group.gid,
				 conf->metrics_socket.group.gid };
	for (size_t i = 0; r >= 0 && i < CK_COUNT(groups); i++)
		r = join_group(groups[i], err);
	if (r >= 0)
		r = ck_capabilities_drop(err);
	if (r >= 0)
		r = keep_memory_private(err);
#ifndef CK_SANITIZERS
	if (r >= 0)
		r = ck_confine_calls(err);
#endif
	if (r < 0)
		return ck_context(err, r, "confine the process");
#ifdef CK_SANITIZERS
	snprintf(ret_text, size, "no capabilities; built with sanitizers: no seccomp, no Landlock");
#else
	if (abi > 0)
		snprintf(ret_text, size, "no capabilities, seccomp, Landlock ABI %d", abi);
	else
		snprintf(ret_text, size, "no capabilities, seccomp; this kernel has no Landlock");
#endif
	return 0;
}
