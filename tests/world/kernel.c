/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the world puts in the place of the kernel. The dynamic linker takes these functions of the
 * program before those of the C library, also for libsystemd and SQLite.
 *
 *   clock    stands still until the world moves it. A timerfd is an eventfd that is written to when
 *            its time comes
 *   random   numbers of the seed
 *   disk     disk.c
 *   memory   crikeepd's own allocations fail now and then
 *   death    of crikeepd at any write or send: the files of that moment are copied, and put back
 *            when its process state has been freed; what it sends meanwhile reaches nobody
 *
 * Sockets and epoll are the kernel's own. In one thread they are as deterministic as all else.
 */
#include <dlfcn.h>
#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>

#include "src/base/error.h"
#include "src/base/fault.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "tests/world/world.h"

#pragma GCC visibility push(default) /* so that libraries find them, too */
int clock_gettime(clockid_t clock, struct timespec *ts);
time_t time(time_t *ret);
int nanosleep(const struct timespec *span, struct timespec *left);
int timerfd_create(int clock, int flags);
int timerfd_settime(int fd, int flags, const struct itimerspec *at, struct itimerspec *old);
ssize_t read(int fd, void *to, size_t n);
int close(int fd);
int epoll_wait(int fd, struct epoll_event *to, int n, int timeout);
ssize_t getrandom(void *to, size_t n, unsigned flags);
#pragma GCC visibility pop
void randombytes_buf(void *to, size_t n);

#define FDS  1024
#define WALL (UINT64_C(1700000000) * CK_NS_PER_S) /* the wall clock when the node booted */

struct kernel kernel;

static int quiet = -1; /* an epoll instance that has nothing to tell */

static struct {
	bool is, rang; /* rang: it was written to, and not read since */
	uint64_t due;  /* UINT64_MAX: not set */
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
		timers[fd].rang = false;
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
	if (timers[fd].rang)
		eventfd_read(fd, &count);
	timers[fd].rang = false;
	timers[fd].due = !ns ? UINT64_MAX : flags & TFD_TIMER_ABSTIME ? ns : kernel.now + ns;
	return 0;
}

/* Who reads a timer reads until there is nothing more. */
ssize_t read(int fd, void *to, size_t n)
{
	if (fd >= 0 && fd < FDS && timers[fd].is && !timers[fd].rang) {
		errno = EAGAIN;
		return -1;
	}
	if (fd >= 0 && fd < FDS)
		timers[fd].rang = false;
	return (ssize_t)syscall(SYS_read, fd, to, n);
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
		timers[fd].rang = true;
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

int epoll_wait(int fd, struct epoll_event *to, int n, int timeout)
{
	return fd == quiet ? 0 : (int)syscall(SYS_epoll_pwait, fd, to, n, timeout, NULL, 0);
}

int kernel_event_run(sd_event *event, bool ready)
{
	static int (*next)(sd_event *, uint64_t);
	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "sd_event_run");
	quiet = ready ? -1 : sd_event_get_fd(event);
	int r = next(event, 0);
	quiet = -1;
	return r;
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

/* ---- death and memory ------------------------------------------------------------------------ */

void kernel_die(void)
{
	disk_copy(kernel.state_dir, kernel.copy_dir);
	kernel.dead = true;
}

void kernel_bury(void)
{
	disk_copy(kernel.copy_dir, kernel.state_dir);
	kernel.dead = false;
	kernel.die_after = 0;
}

bool kernel_may_die(void)
{
	return kernel.in_daemon && !kernel.dead && kernel.die_after && --kernel.die_after == 0;
}

bool __wrap_ck_fault(enum ck_fault what);
bool __wrap_ck_fault(enum ck_fault what)
{
	return what == CK_FAULT_ALLOC && kernel.in_daemon && !kernel.dead && kernel.scarce &&
	       below(1000) < kernel.scarce;
}

ssize_t send(int fd, const void *from, size_t n, int flags)
{
	if (kernel_may_die())
		kernel_die();
	if (kernel.dead)
		return (ssize_t)n;
	return (ssize_t)syscall(SYS_sendto, fd, from, n, flags, NULL, 0);
}
