/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cache/store/file-locks.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/cli/culprit/processes.h"
#include "src/cli/output/text.h"

#define LOOKS 10 /* at a long list of locks */
#define KERNEL_THREAD 0x200000u /* PF_KTHREAD of the kernel's sched.h */

/* ---- files of /proc -------------------------------------------------------------------------- */

/* NULL: it is not open, or cannot be read */
static char *read_open(int fd, size_t max, size_t *ret_len)
{
	CK_AUTO_FREE char *text = NULL;
	size_t len = 0, room = 0;
	ssize_t n = fd < 0 ? -1 : 1;
	while (n > 0 && len < max) {
		room = room ? 2 * room : 1024;
		room = room < max ? room : max;
		text = ck_must(ck_realloc(text, room + 1));
		while (n > 0 && len < room) {
			n = read(fd, text + len, room - len);
			len += n > 0 ? (size_t)n : 0;
		}
	}
	if (n < 0 || !text)
		return NULL;
	text[len] = '\0';
	if (ret_len)
		*ret_len = len;
	return CK_TAKE(text);
}

char *ck_process_file(long pid, const char *name, size_t max, size_t *ret_len)
{
	CK_AUTO_FREE char *path = ck_text_format("/proc/%ld/%s", pid, name);
	CK_AUTO_CLOSE int fd = pid > 0 ? open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY) : -1;
	return read_open(fd, max, ret_len);
}

char *ck_process_foreign_file(long pid, const char *name, size_t max)
{
	CK_AUTO_FREE char *path = ck_text_format("/proc/%ld/%s", pid, name);
	/* O_PATH opens nothing: no device notices, and no pipe waits for its other end */
	CK_AUTO_CLOSE int place = pid > 0 ? open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC) : -1;
	CK_AUTO_FREE char *again = ck_text_format("/proc/self/fd/%d", place);
	struct stat st;
	if (place < 0 || fstat(place, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size < 0 ||
	    (uint64_t)st.st_size > max)
		return NULL;
	CK_AUTO_CLOSE int fd = open(again, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	return read_open(fd, max, NULL);
}

bool ck_process_users(long pid, uid_t *ret_real, uid_t *ret_effective)
{
	CK_AUTO_FREE char *text = ck_process_file(pid, "status", CK_PROCESS_STATUS_MAX, NULL);
	const char *at = text ? strstr(text, "\nUid:") : NULL;
	return at && sscanf(at, "\nUid: %u %u", ret_real, ret_effective) == 2;
}

char *ck_process_link(long pid, const char *name)
{
	CK_AUTO_FREE char *path = ck_text_format("/proc/%ld/%s", pid, name);
	char to[CK_PATH_MAX];
	ssize_t n = readlink(path, to, sizeof(to) - 1);
	return n < 0 ? NULL : ck_must(ck_strndup(to, (size_t)n));
}

const char *ck_process_variable(const char *environment, size_t len, const char *name)
{
	size_t n = strlen(name);
	for (size_t at = 0; at < len; at += strlen(environment + at) + 1)
		if (strncmp(environment + at, name, n) == 0 && environment[at + n] == '=')
			return environment + at + n + 1;
	return NULL;
}

/* ---- processes ------------------------------------------------------------------------------- */

bool ck_process_parse(const char *line, struct ck_process *ret)
{
	uint64_t ticks, hz = (uint64_t)sysconf(_SC_CLK_TCK);
	unsigned flags;
	/* the name, in brackets, may have blanks and brackets in it */
	const char *name = strchr(line, '('), *end = strrchr(line, ')');
	*ret = (struct ck_process){ 0 };
	if (!name || !end || sscanf(line, "%ld", &ret->pid) != 1 ||
	    sscanf(end, ") %c %ld %*d %*d %*d %*d %u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d "
			"%*d %" SCNu64,
		   &ret->state, &ret->parent, &flags, &ticks) != 4)
		return false;
	snprintf(ret->name, sizeof(ret->name), "%.*s", (int)(end - name - 1), name + 1);
	ret->kernel = flags & KERNEL_THREAD;
	ret->started = ticks / hz * CK_NS_PER_S + ticks % hz * (CK_NS_PER_S / hz);
	return true;
}

bool ck_process_see(long pid, struct ck_process *ret)
{
	CK_AUTO_FREE char *line = ck_process_file(pid, "stat", CK_PROCESS_STAT_MAX, NULL);
	return ck_process_parse(ck_or_empty(line), ret);
}

bool ck_process_stopped(const struct ck_process *process)
{
	return process->state == 'T' || process->state == 't';
}

static bool is_nobody(const struct ck_process *process)
{
	return process->kernel || process->state == 'Z' || process->state == 'X';
}

size_t ck_processes_list(struct ck_process **ret)
{
	DIR *dir = opendir("/proc");
	size_t n = 0;
	*ret = NULL;
	for (struct dirent *entry; dir && n < CK_PROCESSES_MAX && (entry = readdir(dir));) {
		struct ck_process process;
		if (!ck_process_see(strtol(entry->d_name, NULL, 10), &process) ||
		    is_nobody(&process))
			continue;
		*ret = ck_must(ck_grown(*ret, n, sizeof(**ret)));
		(*ret)[n++] = process;
	}
	if (dir)
		closedir(dir);
	return n;
}

static int by_inode(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return (x > y) - (x < y);
}

size_t ck_process_sockets(long pid, uint32_t **ret)
{
	CK_AUTO_FREE char *path = ck_text_format("/proc/%ld/fd", pid);
	DIR *dir = pid > 0 ? opendir(path) : NULL;
	size_t n = 0;
	*ret = NULL;
	for (struct dirent *entry; dir && n < CK_PROCESS_SOCKETS_MAX && (entry = readdir(dir));) {
		char to[64];
		uint32_t inode;
		ssize_t len = readlinkat(dirfd(dir), entry->d_name, to, sizeof(to) - 1);
		to[len > 0 ? len : 0] = '\0';
		if (sscanf(to, "socket:[%" SCNu32 "]", &inode) != 1)
			continue;
		*ret = ck_must(ck_grown(*ret, n, sizeof(**ret)));
		(*ret)[n++] = inode;
	}
	if (dir)
		closedir(dir);
	if (n)
		qsort(*ret, n, sizeof(**ret), by_inode);
	return n;
}

/* ---- what a thread waits for ----------------------------------------------------------------- */

struct call { /* a system call under way */
	long number;
	uint64_t args[6];
};

/* Where a call has the name of a file, or its descriptor: the number of the argument. The numbers
 * of calls are those of this program; of a program of another word size, what is found is no path,
 * and is dropped. */
enum { NAME, AT_NAME, FD };
static const struct {
	long number;
	int how, arg;
} calls[] = {
#ifdef SYS_open
	{ SYS_open, NAME, 0 },     { SYS_stat, NAME, 0 },    { SYS_lstat, NAME, 0 },
	{ SYS_access, NAME, 0 },   { SYS_mkdir, NAME, 0 },   { SYS_rmdir, NAME, 0 },
	{ SYS_unlink, NAME, 0 },   { SYS_rename, NAME, 0 },  { SYS_creat, NAME, 0 },
	{ SYS_readlink, NAME, 0 }, { SYS_chmod, NAME, 0 },   { SYS_chown, NAME, 0 },
	{ SYS_link, NAME, 1 },     { SYS_symlink, NAME, 1 },
#endif
	{ SYS_mount, NAME, 1 },    { SYS_umount2, NAME, 0 }, { SYS_truncate, NAME, 0 },
	{ SYS_statfs, NAME, 0 },   { SYS_execve, NAME, 0 },  { SYS_chdir, NAME, 0 },
	{ SYS_openat, AT_NAME, 0 },     { SYS_mkdirat, AT_NAME, 0 },
	{ SYS_unlinkat, AT_NAME, 0 },   { SYS_faccessat, AT_NAME, 0 },
	{ SYS_readlinkat, AT_NAME, 0 }, { SYS_fchmodat, AT_NAME, 0 },
	{ SYS_fchownat, AT_NAME, 0 },   { SYS_statx, AT_NAME, 0 },
	{ SYS_utimensat, AT_NAME, 0 },  { SYS_renameat2, AT_NAME, 0 },
	{ SYS_linkat, AT_NAME, 2 },     { SYS_symlinkat, AT_NAME, 1 },
#ifdef SYS_newfstatat
	{ SYS_newfstatat, AT_NAME, 0 },
#endif
#ifdef SYS_renameat
	{ SYS_renameat, AT_NAME, 0 },
#endif
#ifdef SYS_openat2
	{ SYS_openat2, AT_NAME, 0 },
#endif
	{ SYS_read, FD, 0 },      { SYS_write, FD, 0 },     { SYS_pread64, FD, 0 },
	{ SYS_pwrite64, FD, 0 },  { SYS_writev, FD, 0 },    { SYS_readv, FD, 0 },
	{ SYS_fsync, FD, 0 },     { SYS_fdatasync, FD, 0 }, { SYS_syncfs, FD, 0 },
	{ SYS_ftruncate, FD, 0 }, { SYS_fallocate, FD, 0 }, { SYS_flock, FD, 0 },
	{ SYS_fcntl, FD, 0 },     { SYS_getdents64, FD, 0 }, { SYS_fstat, FD, 0 },
	{ SYS_fchmod, FD, 0 },    { SYS_fchown, FD, 0 },    { SYS_close, FD, 0 },
	{ SYS_ioctl, FD, 0 },     { SYS_copy_file_range, FD, 2 },
};

static bool parse_call(const char *line, struct call *ret)
{
	return sscanf(line,
		      "%ld %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64,
		      &ret->number, &ret->args[0], &ret->args[1], &ret->args[2], &ret->args[3],
		      &ret->args[4], &ret->args[5]) == 7;
}

/* Calls that wait in state D for no disk: for a child that has not executed its program yet; or
 * they sleep, and their control group is frozen. */
static const long no_disk[] = {
#ifdef SYS_vfork
	SYS_vfork,
#endif
#ifdef SYS_clone3
	SYS_clone3,
#endif
	SYS_clone, SYS_nanosleep, SYS_clock_nanosleep, SYS_futex, SYS_ppoll, SYS_epoll_pwait,
#ifdef SYS_poll
	SYS_poll, SYS_epoll_wait,
#endif
};

/* @where: the kernel's function */
static bool may_wait_for_disk(const struct call *call, const char *where)
{
	for (size_t i = 0; call && i < CK_COUNT(no_disk); i++)
		if (call->number == no_disk[i])
			return false;
	return strcmp(where, "__refrigerator") != 0; /* its control group is frozen */
}

static bool locks_a_file(const struct call *call)
{
	return call->number == SYS_flock ||
	       (call->number == SYS_fcntl &&
		(call->args[1] == F_SETLKW || call->args[1] == F_OFD_SETLKW));
}

/* a text in another process; NULL: it cannot be read, or is none */
static char *read_text(long pid, uint64_t address)
{
	CK_AUTO_FREE char *path = ck_text_format("/proc/%ld/mem", pid);
	CK_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	char text[CK_PATH_MAX];
	/* not beyond the end of a page at once: the next one need not be there */
	size_t len = 0, page = (size_t)sysconf(_SC_PAGESIZE);
	while (fd >= 0 && len < sizeof(text)) {
		size_t want = page - (size_t)((address + len) % page);
		want = want < sizeof(text) - len ? want : sizeof(text) - len;
		ssize_t n = pread(fd, text + len, want, (off_t)(address + len));
		if (n <= 0)
			return NULL;
		if (memchr(text + len, '\0', (size_t)n))
			return ck_must(ck_strdup(text));
		len += (size_t)n;
	}
	return NULL;
}

static char *path_of_fd(long pid, int fd)
{
	CK_AUTO_FREE char *name = ck_text_format("fd/%d", fd);
	return ck_process_link(pid, fd == AT_FDCWD ? "cwd" : name);
}

/* the file that the call names; NULL: none, or it is unknown */
static char *path_of(long pid, const struct call *call)
{
	for (size_t i = 0; i < CK_COUNT(calls); i++) {
		int arg = calls[i].arg;
		if (calls[i].number != call->number)
			continue;
		if (calls[i].how == FD)
			return path_of_fd(pid, (int)call->args[arg]);
		int from = calls[i].how == AT_NAME ? (int)call->args[arg] : AT_FDCWD;
		uint64_t address = call->args[calls[i].how == AT_NAME ? arg + 1 : arg];
		CK_AUTO_FREE char *name = read_text(pid, address);
		if (!name || !*name || *name == '/')
			return CK_TAKE(name);
		CK_AUTO_FREE char *dir = path_of_fd(pid, from);
		return dir ? ck_text_format("%s/%s", dir, name) : NULL;
	}
	return NULL;
}

/* the function in which it waits: the first of its stack, if the kernel says no other */
static void read_where(long pid, const char *task, char *ret, size_t size)
{
	CK_AUTO_FREE char *wchan_path = ck_text_format("%s/wchan", task);
	CK_AUTO_FREE char *stack_path = ck_text_format("%s/stack", task);
	CK_AUTO_FREE char *wchan = ck_process_file(pid, wchan_path, size - 1, NULL);
	CK_AUTO_FREE char *stack = ck_process_file(pid, stack_path, 256, NULL);
	const char *name = stack ? strchr(stack, ' ') : NULL; /* "[<0>] name+0x1/0x2" */
	if (wchan && *wchan && strcmp(wchan, "0") != 0)
		snprintf(ret, size, "%s", wchan);
	else if (name)
		snprintf(ret, size, "%.*s", (int)strcspn(name + 1, "+\n"), name + 1);
}

static uint64_t read_switches(long pid, const char *task)
{
	static const char name[] = "\nvoluntary_ctxt_switches:";
	CK_AUTO_FREE char *path = ck_text_format("%s/status", task);
	CK_AUTO_FREE char *text = ck_process_file(pid, path, CK_PROCESS_STATUS_MAX, NULL);
	const char *at = text ? strstr(text, name) : NULL;
	return at ? strtoull(at + sizeof(name) - 1, NULL, 10) : 0;
}

static void look_at_thread(long pid, long thread, struct ck_waiting *ret)
{
	CK_AUTO_FREE char *task = ck_text_format("task/%ld", thread);
	CK_AUTO_FREE char *stat_path = ck_text_format("%s/stat", task);
	CK_AUTO_FREE char *call_path = ck_text_format("%s/syscall", task);
	CK_AUTO_FREE char *line = ck_process_file(pid, stat_path, CK_PROCESS_STAT_MAX, NULL);
	CK_AUTO_FREE char *text = NULL, *path = NULL;
	struct ck_process process;
	struct call call;
	*ret = (struct ck_waiting){ .thread = thread };
	if (!ck_process_parse(ck_or_empty(line), &process))
		return;
	text = ck_process_file(pid, call_path, CK_PROCESS_STAT_MAX, NULL);
	bool called = parse_call(ck_or_empty(text), &call);
	bool locks = process.state == 'S' && called && locks_a_file(&call);
	if (process.state != 'D' && !locks)
		return;
	read_where(pid, task, ret->where, sizeof(ret->where));
	if (!locks && !may_wait_for_disk(called ? &call : NULL, ret->where))
		return;
	ret->what = locks ? CK_WAITS_LOCK : CK_WAITS_DISK;
	ret->switches = read_switches(pid, task);
	path = called ? path_of(pid, &call) : NULL;
	/* else a pipe, a socket, or no path at all */
	if (path && *path == '/' && strlen(path) < sizeof(ret->path))
		strcpy(ret->path, path);
}

void ck_process_waiting(long pid, struct ck_waiting *ret)
{
	CK_AUTO_FREE char *path = ck_text_format("/proc/%ld/task", pid);
	DIR *dir = opendir(path);
	unsigned n = 0;
	*ret = (struct ck_waiting){ 0 };
	for (struct dirent *entry; dir && n < CK_PROCESS_THREADS_MAX && (entry = readdir(dir));) {
		struct ck_waiting waiting;
		long thread = strtol(entry->d_name, NULL, 10);
		if (thread <= 0)
			continue;
		n++;
		look_at_thread(pid, thread, &waiting);
		if (waiting.what && (!ret->what || waiting.what == CK_WAITS_DISK))
			*ret = waiting;
		if (ret->what == CK_WAITS_DISK)
			break;
	}
	if (dir)
		closedir(dir);
}

/* ---- locks ----------------------------------------------------------------------------------- */

struct pair {
	long waiter;
	struct ck_file_lock held; /* the last one in the list so far */
};

static bool is_wait_of(const struct ck_file_lock *lock, void *userdata)
{
	struct pair *pair = userdata;
	if (!lock->waits)
		pair->held = *lock;
	return lock->waits && lock->pid == pair->waiter && lock->id == pair->held.id &&
	       lock->inode == pair->held.inode;
}

/* Both are found in one reading: the next one may number the locks in another way. */
long ck_lock_keeper(long pid)
{
	struct pair pair = { .waiter = pid };
	struct ck_file_lock wait;
	bool found = false, all = false;
	for (int looks = 0; looks < LOOKS && !found && !all; looks++)
		found = ck_file_locks_find(is_wait_of, &pair, &wait, &all);
	return found && pair.held.pid > 0 && pair.held.pid != pid ? pair.held.pid : 0;
}
