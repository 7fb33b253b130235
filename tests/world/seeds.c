/* SPDX-License-Identifier: Apache-2.0 */
/* One seed, in a process of its own. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "tests/unit/harness.h"
#include "tests/world/seeds.h"

#define SECONDS_MAX 60 /* a seed takes less than one, a busy node for an hour seven */

static void play(uint64_t seed, const struct world_options *options, struct result *result)
{
	if (!getenv("CK_WORLD_TRACE")) { /* crikeepd's log */
		int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
		dup2(fd, STDERR_FILENO);
		close(fd);
	}
	world_run(seed, options);
	*result = (struct result){
		.worlds = 1,
		.hash = w.hash,
		/* of a busy node only while it is busy */
		.simulated = (options->busy ? w.calm_at : kernel.now) - BOOTED,
		.cpu = options->busy ? w.calm_cpu : world_cpu(),
		.options = w.options,
#define C(name, text) .name = w.name,
		COUNTS(C)
#undef C
	};
	memcpy(result->wrong, w.wrong, sizeof(w.wrong));
}

/* of CPU time, and much more of the clock on the wall: others may use the machine */
static void limit(unsigned seconds)
{
	const struct rlimit cpu = { seconds, seconds };
	if (seconds)
		setrlimit(RLIMIT_CPU, &cpu);
	alarm(20 * seconds);
}

/* in a child: a crash ends one seed only, and each begins with the same memory */
void seed_play(uint64_t seed, const struct world_options *options, struct result *result)
{
	int status = 0;
	memset(result, 0, sizeof(*result));
	result->options = *options;
	snprintf(result->wrong, sizeof(result->wrong), "the process died");
	fflush(NULL);
	alarm(0); /* each seed has a limit of its own */
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		signal(SIGSEGV, SIG_DFL); /* cmocka would go on in the child */
		signal(SIGABRT, SIG_DFL);
		signal(SIGBUS, SIG_DFL);
		signal(SIGFPE, SIG_DFL);
		limit((unsigned)(SECONDS_MAX * ck_test_env("CK_TEST_SLOW", 1)));
		play(seed, options, result);
		exit(0);
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFSIGNALED(status))
		snprintf(result->wrong, sizeof(result->wrong), "the process died of %s",
			 strsignal(WTERMSIG(status)));
	else if (status && !*result->wrong)
		snprintf(result->wrong, sizeof(result->wrong), "the process ended with status %d",
			 WEXITSTATUS(status));
}

struct result *seed_result(void)
{
	struct result *result = mmap(NULL, sizeof(*result), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(result, MAP_FAILED);
	return result;
}
