/* SPDX-License-Identifier: Apache-2.0 */
/* Seeds, each in a process of its own; see world.h. */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "tests/unit/harness.h"
#include "tests/world/world.h"

#define ENOUGH      ck_test_env("CK_WORLD_WRONG", 5) /* seeds that fail */
#define SECONDS_MAX 60 /* a seed takes about one */

struct result { /* of one seed, or the sum of many */
	uint64_t hash, simulated, cpu;
	unsigned pods, kills, stops, deaths, restarts, freezes, disks;
	char wrong[sizeof(w.wrong)];
};

static void play(uint64_t seed, struct result *result)
{
	struct rusage used;
	if (!getenv("CK_WORLD_TRACE")) { /* crikeepd's log */
		int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
		dup2(fd, STDERR_FILENO);
		close(fd);
	}
	world_run(seed);
	getrusage(RUSAGE_SELF, &used);
	*result = (struct result){
		.hash = w.hash,
		.simulated = kernel.now - BOOTED,
		.cpu = (uint64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * S +
		       (uint64_t)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1000,
		.pods = w.pods,
		.kills = w.kills,
		.stops = w.stops,
		.deaths = w.deaths,
		.restarts = w.restarts,
		.freezes = w.freezes,
		.disks = w.disks,
	};
	memcpy(result->wrong, w.wrong, sizeof(w.wrong));
}

/* in a child: a crash ends one seed only, and each begins with the same memory */
static void play_apart(uint64_t seed, struct result *result)
{
	int status = 0;
	memset(result, 0, sizeof(*result));
	snprintf(result->wrong, sizeof(result->wrong), "the process died");
	fflush(NULL);
	alarm(0); /* each seed has a limit of its own */
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		alarm((unsigned)(SECONDS_MAX * ck_test_env("CK_TEST_SLOW", 1)));
		play(seed, result);
		exit(0);
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (status && !*result->wrong)
		snprintf(result->wrong, sizeof(result->wrong), "the process ended with 0x%x",
			 (unsigned)status);
	if (*result->wrong)
		print_message("CK_WORLD_SEED=%llu: %s\n", (unsigned long long)seed, result->wrong);
}

static void add(struct result *sum, const struct result *one)
{
	sum->simulated += one->simulated;
	sum->cpu += one->cpu;
	sum->pods += one->pods;
	sum->kills += one->kills;
	sum->stops += one->stops;
	sum->deaths += one->deaths;
	sum->restarts += one->restarts;
	sum->freezes += one->freezes;
	sum->disks += one->disks;
}

static struct result *shared_result(void)
{
	struct result *result = mmap(NULL, sizeof(*result), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(result, MAP_FAILED);
	return result;
}

static void every_world_is_safe_and_comes_to_its_end(void **state)
{
	unsigned long seed = ck_test_env("CK_WORLD_SEED", 0),
		      first = seed ? seed : ck_test_env("CK_WORLD_FIRST", 1),
		      n = seed ? 1 : ck_test_env("CK_WORLDS", ck_test_rounds(30)), wrong = 0;
	struct result *one = shared_result(), sum = { 0 };
	(void)state;
	for (unsigned long i = 0; i < n && wrong < ENOUGH; i++) {
		play_apart(first + i, one);
		add(&sum, one);
		wrong += *one->wrong != '\0';
	}
	print_message("# %lu worlds, %.1f simulated hours, %.0f simulated hours for each CPU hour; "
		      "%u pods ran; crikeepd: %u kills, %u stops, %u freezes, %u full disks; "
		      "%u deaths of the runtime, %u of the kubelet\n",
		      n, (double)sum.simulated / 3600e9,
		      sum.cpu ? (double)sum.simulated / (double)sum.cpu : 0, sum.pods, sum.kills,
		      sum.stops, sum.freezes, sum.disks, sum.deaths, sum.restarts);
	munmap(one, sizeof(*one));
	assert_int_equal(wrong, 0);
}

static void a_seed_replays_exactly(void **state)
{
	struct result *one = shared_result();
	unsigned long n = ck_test_rounds(3);
	(void)state;
	for (unsigned long seed = 1; seed <= n; seed++) {
		play_apart(seed, one);
		uint64_t hash = one->hash;
		play_apart(seed, one);
		assert_true(hash && one->hash == hash);
	}
	munmap(one, sizeof(*one));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_seed_replays_exactly),
		cmocka_unit_test(every_world_is_safe_and_comes_to_its_end),
	};
	return CK_TEST_MAIN(tests);
}
