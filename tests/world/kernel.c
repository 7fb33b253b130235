/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the world puts in the place of the kernel. The dynamic linker takes these functions of the
 * program before those of the C library, also for libsystemd and SQLite.
 *
 *   clock    stands still until the world moves it. A timerfd is an eventfd that is written to when
 *            its time comes
 *   random   numbers of the seed
 *   disk     files are real; a full disk refuses what SQLite writes
 *   death    of crikeepd at any write or send: the files of that moment are copied, and put back
 *            when its process state has been freed; what it sends meanwhile reaches nobody
 *
 * Sockets and epoll are the kernel's own. In one thread they are as deterministic as all else.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>

#include "src/base/error.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "tests/world/world.h"

#pragma GCC visibility push(default) /* so that libraries find them, too */
int clock_gettime(clockid_t clock, struct timespec *ts);
time_t time(time_t *ret);
int nanosleep(const struct timespec *span, struct timespec *left);
int timerfd_create(int clock, int flags);
int timerfd_settime(int fd, int flags, const struct itimerspec *at, struct itimerspec *old);
int close(int fd);
ssize_t getrandom(void *to, size_t n, unsigned flags);
ssize_t pwrite64(int fd, const void *from, size_t n, off64_t at);
int fdatasync(int fd);
int fsync(int fd);
#pragma GCC visibility pop
void randombytes_buf(void *to, size_t n);

#define FDS  1024
#define WALL (UINT64_C(1700000000) * CK_NS_PER_S) /* the wall clock when the node booted */

struct kernel kernel;

static struct {
	bool is;
	uint64_t due; /* UINT64_MAX: not set */
} timers[FDS];

uint64_t random_next(uint64_t *state) /* splitmix64 */
{
	uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

/* ---- time ------------------------------------------------------------------------------------ */

int clock_gettime(clockid_t clock, struct timespec *ts)
{
	uint64_t now = kernel.now;
	if (!kernel.on || clock == CLOCK_PROCESS_CPUTIME_ID || clock == CLOCK_THREAD_CPUTIME_ID)
		return (int)syscall(SYS_clock_gettime, clock, ts);
	if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)
		now += WALL;
	*ts = (struct timespec){ .tv_sec = (time_t)(now / CK_NS_PER_S),
				 .tv_nsec = (long)(now % CK_NS_PER_S) };
	return 0;
}

time_t time(time_t *ret)
{
	struct timespec ts;
	clock_gettime(CLOCK_REALTIME, &ts);
	if (ret)
		*ret = ts.tv_sec;
	return ts.tv_sec;
}

int nanosleep(const struct timespec *span, struct timespec *left)
{
	if (!kernel.on)
		return (int)syscall(SYS_nanosleep, span, left);
	kernel.now += (uint64_t)span->tv_sec * CK_NS_PER_S + (uint64_t)span->tv_nsec;
	return 0;
}

int timerfd_create(int clock, int flags)
{
	_Static_assert((int)TFD_CLOEXEC == (int)EFD_CLOEXEC &&
			       (int)TFD_NONBLOCK == (int)EFD_NONBLOCK,
		       "the flags of both");
	int fd = kernel.on ? eventfd(0, flags) : (int)syscall(SYS_timerfd_create, clock, flags);
	if (kernel.on && fd >= 0 && fd < FDS) {
		timers[fd].is = true;
		timers[fd].due = UINT64_MAX;
	}
	return fd;
}

int timerfd_settime(int fd, int flags, const struct itimerspec *at, struct itimerspec *old)
{
	eventfd_t count;
	if (fd < 0 || fd >= FDS || !timers[fd].is)
		return (int)syscall(SYS_timerfd_settime, fd, flags, at, old);
	uint64_t ns = (uint64_t)at->it_value.tv_sec * CK_NS_PER_S + (uint64_t)at->it_value.tv_nsec;
	eventfd_read(fd, &count);
	timers[fd].due = !ns ? UINT64_MAX : flags & TFD_TIMER_ABSTIME ? ns : kernel.now + ns;
	return 0;
}

int close(int fd)
{
	if (fd >= 0 && fd < FDS)
		timers[fd].is = false;
	return (int)syscall(SYS_close, fd);
}

uint64_t kernel_next(void)
{
	uint64_t next = UINT64_MAX;
	for (int fd = 0; fd < FDS; fd++)
		if (timers[fd].is && timers[fd].due < next)
			next = timers[fd].due;
	return next;
}

void kernel_advance(uint64_t to)
{
	kernel.now = to > kernel.now ? to : kernel.now;
	for (int fd = 0; fd < FDS; fd++) {
		if (!timers[fd].is || timers[fd].due > kernel.now)
			continue;
		timers[fd].due = UINT64_MAX;
		eventfd_write(fd, 1);
	}
}

/* libsystemd would wake up somewhere in the accuracy, which depends on the id of the machine */
int sd_event_add_time(sd_event *event, sd_event_source **source, clockid_t clock, uint64_t usec,
		      uint64_t accuracy, sd_event_time_handler_t callback, void *userdata)
{
	static int (*next)(sd_event *, sd_event_source **, clockid_t, uint64_t, uint64_t,
			   sd_event_time_handler_t, void *);
	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "sd_event_add_time");
	return next(event, source, clock, usec, kernel.on ? 1 : accuracy, callback, userdata);
}

int kernel_event_run(sd_event *event)
{
	static int (*next)(sd_event *, uint64_t);
	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "sd_event_run");
	return next(event, 0);
}

/* ---- random numbers -------------------------------------------------------------------------- */

ssize_t getrandom(void *to, size_t n, unsigned flags)
{
	if (!kernel.on)
		return (ssize_t)syscall(SYS_getrandom, to, n, flags);
	for (size_t i = 0; i < n; i++)
		((unsigned char *)to)[i] = (unsigned char)(random_next(&kernel.random) >> 32);
	return (ssize_t)n;
}

void randombytes_buf(void *to, size_t n)
{
	(void)!getrandom(to, n, 0);
}

/* ---- the disk, and death --------------------------------------------------------------------- */

static void copy_file(int from_dir, int to_dir, const char *name)
{
	int from = openat(from_dir, name, O_RDONLY | O_CLOEXEC);
	int to = openat(to_dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	char part[65536];
	ssize_t n;
	while ((n = read(from, part, sizeof(part))) > 0)
		if (write(to, part, (size_t)n) != n)
			break;
	if (n != 0)
		world_wrong("the copy of '%s' failed: %s", name, strerror(errno));
	close(from);
	close(to);
}

/* all files of @to become those of @from */
static void copy_dir(const char *from_path, const char *to_path)
{
	const char *const paths[] = { to_path, from_path };
	int to = open(to_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
	    from = open(from_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (int i = 0; i < 2; i++) {
		DIR *dir = opendir(paths[i]);
		for (struct dirent *entry; dir && (entry = readdir(dir));) {
			struct stat st;
			if (fstatat(i ? from : to, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
			    !S_ISREG(st.st_mode))
				continue;
			if (i)
				copy_file(from, to, entry->d_name);
			else
				unlinkat(to, entry->d_name, 0);
		}
		closedir(dir);
	}
	close(to);
	close(from);
}

void kernel_die(void)
{
	copy_dir(kernel.state_dir, kernel.copy_dir);
	kernel.dead = true;
}

void kernel_bury(void)
{
	copy_dir(kernel.copy_dir, kernel.state_dir);
	kernel.dead = false;
	kernel.die_after = 0;
}

static void may_die(void)
{
	if (kernel.in_daemon && !kernel.dead && kernel.die_after && --kernel.die_after == 0)
		kernel_die();
}

ssize_t pwrite64(int fd, const void *from, size_t n, off64_t at)
{
	may_die();
	if (kernel.disk_full && !kernel.dead) {
		errno = ENOSPC;
		return -1;
	}
	return (ssize_t)syscall(SYS_pwrite64, fd, from, n, at);
}

int fdatasync(int fd)
{
	return kernel.on ? 0 : (int)syscall(SYS_fdatasync, fd);
}

int fsync(int fd)
{
	return kernel.on ? 0 : (int)syscall(SYS_fsync, fd);
}

ssize_t send(int fd, const void *from, size_t n, int flags)
{
	may_die();
	if (kernel.dead)
		return (ssize_t)n;
	return (ssize_t)syscall(SYS_sendto, fd, from, n, flags, NULL, 0);
}
