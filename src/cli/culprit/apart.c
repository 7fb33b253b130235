/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/cli/culprit/apart.h"
#include "src/cli/output/text.h"

#define END_FD 3 /* in the child: closed when it ends */

void ck_apart_tell(struct ck_apart *apart, const struct ck_culprits *found)
{
	unsigned n = atomic_load(&apart->n) + 1;
	apart->told[n % 2] = *found;
	atomic_store(&apart->n, n);
}

/* Whoever reads what we print must not wait for the child, nor whoever wants a lock of ours. */
static void leave_files(int end)
{
	if (end != END_FD)
		dup2(end, END_FD); /* first: the end may be one of those below */
	int null = open("/dev/null", O_RDWR);
	for (int fd = 0; fd < END_FD; fd++)
		if (null < 0)
			close(fd);
		else
			dup2(null, fd);
	syscall(SYS_close_range, END_FD + 1, ~0U, 0);
	if (chdir("/") < 0)
		_exit(1);
}

static bool awaits_end(int end, uint64_t wait)
{
	uint64_t until = ck_clock_ns(CLOCK_MONOTONIC) + wait;
	struct pollfd poll_end = { .fd = end };
	int r;
	do {
		uint64_t now = ck_clock_ns(CLOCK_MONOTONIC), left = until > now ? until - now : 0;
		r = poll(&poll_end, 1, (int)(left / CK_NS_PER_MS));
	} while (r < 0 && errno == EINTR);
	return r > 0;
}

/* Return: was there an end in time? */
static bool await(pid_t pid, int end, uint64_t wait)
{
	bool ended = awaits_end(end, wait), killed = !ended;
	if (killed) {
		kill(pid, SIGKILL);
		/* if it does not end, it is in the kernel, and tells nothing any more */
		ended = awaits_end(end, CK_CULPRIT_DIE);
	}
	waitpid(pid, NULL, ended ? 0 : WNOHANG);
	return !killed;
}

enum ck_apart_end ck_apart_run(void (*work)(struct ck_apart *apart, void *userdata), void *userdata,
			       uint64_t wait, struct ck_culprits *ret, long *ret_at)
{
	struct ck_apart *apart = mmap(NULL, sizeof(*apart), PROT_READ | PROT_WRITE,
				      /* cppcheck-suppress invalidFunctionArg ; anonymous: -1 */
				      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int ends[2] = { -1, -1 };
	if (apart == MAP_FAILED)
		ck_text_nomem();
	pid_t pid = pipe2(ends, O_CLOEXEC) < 0 ? -1 : fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		leave_files(ends[1]);
		work(apart, userdata);
		atomic_store(&apart->done, true);
		_exit(0);
	}
	close(ends[1]);
	bool in_time = pid < 0 || await(pid, ends[0], wait);
	close(ends[0]);
	enum ck_apart_end end = atomic_load(&apart->done) ? CK_APART_DONE
				: in_time		  ? CK_APART_FAILED
							  : CK_APART_LATE;
	*ret = apart->told[atomic_load(&apart->n) % 2];
	*ret_at = atomic_load(&apart->at);
	munmap(apart, sizeof(*apart));
	return end;
}
