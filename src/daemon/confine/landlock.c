/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Landlock: the paths that the daemon may use. All rights that the kernel knows are dropped, and
 * some are allowed again below a few paths. Landlock affects neither descriptors that are already
 * open nor connecting to a socket by its path. It has a scope for signals to other processes, but
 * the filter of seccomp forbids these: the scope would also stop the signal that tells the launcher
 * of the daemon's end (PR_SET_PDEATHSIG).
 *
 * Source: Documentation/userspace-api/landlock.rst. Old headers lack the constants below.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cache/store/store-int.h"
#include "src/base/mem.h"
#include "src/daemon/confine/confine-int.h"

/* struct landlock_ruleset_attr of ABI 6; an older kernel accepts it if the new fields are 0 */
struct ruleset {
	uint64_t fs, net, scoped;
};

#define FS_TRUNCATE  (UINT64_C(1) << 14) /* ABI 3 */
#define FS_IOCTL_DEV (UINT64_C(1) << 15) /* ABI 5 */
#define NET_TCP      UINT64_C(3)         /* ABI 4: bind, connect */
#define SCOPE_SOCKET (UINT64_C(1) << 0)  /* ABI 6: abstract sockets of others */
#define FS_ABI_1     (2 * (uint64_t)LANDLOCK_ACCESS_FS_MAKE_SYM - 1)

#define MAY_READ (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define MAY_WORK \
	(MAY_READ | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_MAKE_REG | \
	 LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE | FS_TRUNCATE)
#define MAY_LISTEN (LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_REMOVE_FILE)
#define OF_FILES   (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE | FS_TRUNCATE)

struct landlock {
	int fd, abi;
	uint64_t handled;
};

/* a path that does not exist needs no rule */
static int allow(const struct landlock *landlock, const char *path, uint64_t rights,
		 struct ck_error *err)
{
	struct stat st;
	CK_AUTO_CLOSE int fd = open(path, O_PATH | O_CLOEXEC);
	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
		return 0;
	if (fd < 0 || fstat(fd, &st) < 0)
		return ck_fail_errno(err, CK_EIO, errno, "look at '%s'", path);
	if (!S_ISDIR(st.st_mode))
		rights &= OF_FILES;
	struct landlock_path_beneath_attr rule = { .allowed_access = rights & landlock->handled,
						   .parent_fd = fd };
	if (syscall(SYS_landlock_add_rule, landlock->fd, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0)
		return ck_fail_errno(err, CK_EIO, errno, "allow '%s'", path);
	return 0;
}

static char *directory_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	return !slash          ? ck_strdup(".")
	       : slash == path ? ck_strdup("/")
			       : ck_strndup(path, (size_t)(slash - path));
}

static int allow_socket(const struct landlock *landlock, const char *path, struct ck_error *err)
{
	if (!path || !*path)
		return 0;
	CK_AUTO_FREE char *dir = directory_of(path);
	return dir ? allow(landlock, dir, MAY_LISTEN, err) : ck_nomem(err);
}

/*
 * The configuration is read again after SIGHUP, and editors replace the file by a new one. So the
 * rule is for its directory, unless this is /etc or another one at the top, which many programs
 * share. Then it is for the file as it is now.
 */
static int allow_config(const struct landlock *landlock, const char *path, struct ck_error *err)
{
	if (!path)
		return 0;
	CK_AUTO_FREE char *real = realpath(path, NULL);
	if (!real) /* the file is gone */
		return 0;
	CK_AUTO_FREE char *dir = directory_of(real);
	if (!dir)
		return ck_nomem(err);
	bool of_its_own = strchr(dir + 1, '/') != NULL;
	return allow(landlock, of_its_own ? dir : real, MAY_READ, err);
}

/* for the library when it opens the cache, and for the metrics of the process */
static const char *const readable[] = {
	"/dev/urandom",
	"/proc/locks",
	"/proc/self",
	"/proc/sys/kernel/random/boot_id",
};

static int allow_all(const struct landlock *landlock, const struct ck_conf *conf,
		     struct ck_error *err)
{
	CK_AUTO_FREE char *state_dir = NULL;
	CK_AUTO_CLOSE int fd = -1;
	/* created if necessary, because a rule needs it */
	int r = ck_state_dir_open(conf->state_dir, true, &state_dir, &fd, err);
	if (r >= 0)
		r = allow(landlock, state_dir, MAY_WORK, err);
	if (r >= 0)
		r = allow_socket(landlock, conf->listen, err);
	if (r >= 0)
		r = allow_socket(landlock, conf->unfiltered, err);
	if (r >= 0)
		r = allow_socket(landlock, conf->metrics, err);
	if (r >= 0 && conf->nri.enabled)
		r = allow_socket(landlock, conf->nri.socket, err);
	if (r >= 0)
		r = allow_config(landlock, conf->file, err);
	/* the names of the host's devices, which plugins give by number */
	if (r >= 0 && conf->nri.enabled && conf->nri.adjust == CK_NRI_BEFORE_CREATE)
		r = allow(landlock, "/sys/devices", MAY_READ, err);
	for (size_t i = 0; r >= 0 && i < CK_COUNT(readable); i++)
		r = allow(landlock, readable[i], MAY_READ, err);
	return r;
}

int ck_confine_paths(const struct ck_conf *conf, struct ck_error *err)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	if (abi <= 0)
		return 0;
	const char *notify = getenv("NOTIFY_SOCKET"); /* usually a path; "@..." is abstract */
	struct ruleset attr = {
		.fs = FS_ABI_1 | (abi >= 2 ? LANDLOCK_ACCESS_FS_REFER : 0) |
		      (abi >= 3 ? FS_TRUNCATE : 0) | (abi >= 5 ? FS_IOCTL_DEV : 0),
		.net = abi >= 4 ? NET_TCP : 0,
		.scoped = abi >= 6 && !(notify && *notify == '@') ? SCOPE_SOCKET : 0,
	};
	CK_AUTO_CLOSE int fd = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);
	if (fd < 0)
		return ck_fail_errno(err, CK_EIO, errno, "Landlock ABI %ld", abi);
	struct landlock landlock = { .fd = fd, .abi = (int)abi, .handled = attr.fs };
	int r = allow_all(&landlock, conf, err);
	if (r >= 0 && syscall(SYS_landlock_restrict_self, fd, 0) < 0)
		r = ck_fail_errno(err, CK_EIO, errno, "Landlock");
	return r < 0 ? r : landlock.abi;
}
