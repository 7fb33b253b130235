/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/daemon/proc-stats.h"

/* entries of the listing that do not count: ".", "..", and the descriptor of the listing itself */
#define OWN_FDS 3u

static size_t read_start(int fd, char *buf, size_t size)
{
	ssize_t n = fd < 0 ? -1 : pread(fd, buf, size - 1, 0);
	buf[n > 0 ? n : 0] = '\0';
	return n > 0 ? (size_t)n : 0;
}

/* field 22 of /proc/self/stat, in ticks since boot. The name, in brackets, may have blanks and
 * brackets in it, so the fields are counted from its end. */
static uint64_t started(void)
{
	char buf[1024];
	CK_AUTO_CLOSE int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
	const char *p = read_start(fd, buf, sizeof(buf)) ? strrchr(buf, ')') : NULL;
	for (int field = 2; p && field < 22; field++)
		p = strchr(p + 1, ' ');
	uint64_t ticks;
	long hz = sysconf(_SC_CLK_TCK);
	if (!p || hz <= 0 || sscanf(p, " %" SCNu64, &ticks) != 1)
		return 0;
	uint64_t since_boot = ticks / (uint64_t)hz * CK_NS_PER_S +
			      ticks % (uint64_t)hz * (CK_NS_PER_S / (uint64_t)hz);
	return ck_clock_ns(CLOCK_REALTIME) - ck_clock_ns(CLOCK_BOOTTIME) + since_boot;
}

void ck_process_open(struct ck_process *process)
{
	process->statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	process->fds = opendir("/proc/self/fd");
	process->started_ns = started();
}

void ck_process_close(struct ck_process *process)
{
	if (process->statm >= 0)
		close(process->statm);
	if (process->fds)
		closedir(process->fds);
}

void ck_process_look(const struct ck_process *process, struct ck_process_figures *ret_figures)
{
	char buf[256];
	uint64_t pages, resident, page = (uint64_t)sysconf(_SC_PAGESIZE);
	struct rlimit limit;
	*ret_figures = (struct ck_process_figures){ .cpu_ns = ck_clock_ns(CLOCK_PROCESS_CPUTIME_ID),
						    .started_ns = process->started_ns };
	if (read_start(process->statm, buf, sizeof(buf)) &&
	    sscanf(buf, "%" SCNu64 " %" SCNu64, &pages, &resident) == 2) {
		ret_figures->virtual_size = pages * page;
		ret_figures->resident = resident * page;
	}
	if (process->fds) {
		rewinddir(process->fds);
		while (readdir(process->fds))
			ret_figures->fds++;
		ret_figures->fds -= ret_figures->fds < OWN_FDS ? ret_figures->fds : OWN_FDS;
	}
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
		ret_figures->fds_max = limit.rlim_cur;
}
