/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "src/base/limits.h"
#include "src/base/host-process.h"

void ck_host_process_mark(struct ck_host_process *home)
{
	size_t size = (size_t)sysconf(_SC_PAGESIZE);
	unsigned char *here =
		/* cppcheck-suppress invalidFunctionArg ; MAP_ANONYMOUS takes -1 */
		mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	*home = (struct ck_host_process){ .pid = getpid() };
	if (here == MAP_FAILED)
		return;
	if (madvise(here, size, MADV_WIPEONFORK) < 0) {
		munmap(here, size);
		return;
	}
	*here = 1;
	home->here = here;
}

void ck_host_process_fini(struct ck_host_process *home)
{
	if (home->here)
		munmap((void *)(uintptr_t)home->here, (size_t)sysconf(_SC_PAGESIZE));
	home->here = NULL;
}

bool ck_host_process_left(const struct ck_host_process *home)
{
	return home->here ? !*home->here : home->pid != getpid();
}

int ck_fd_own(int fd)
{
	if (fd < 0 || fd > 2)
		return fd;
	int own = fcntl(fd, F_DUPFD_CLOEXEC, 3), sys = errno;
	close(fd);
	errno = sys;
	return own;
}

int ck_thread_start(pthread_t *ret_thread, void *(*main)(void *userdata), void *userdata)
{
	pthread_attr_t attr;
	sigset_t all, before;
	size_t stack = 0;
	int r = pthread_attr_init(&attr);
	if (r)
		return r;
	if (pthread_attr_getstacksize(&attr, &stack) == 0 && stack < CK_THREAD_STACK)
		pthread_attr_setstacksize(&attr, CK_THREAD_STACK);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before); /* the host gets all signals */
	r = pthread_create(ret_thread, &attr, main, userdata);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return r;
}
