/* SPDX-License-Identifier: Apache-2.0 */
/* Seeds; see world.h. And the smallest run that fails as one of them does. */
#include <sys/mman.h>
#include <sys/wait.h>

#include "tests/unit/harness.h"
#include "tests/world/seeds.h"

#define ENOUGH  ck_test_env("CK_WORLD_WRONG", 5) /* seeds that fail */
#define SHRINKS 100 /* runs to find a smaller one that fails */

/* ---- options --------------------------------------------------------------------------------- */

static struct world_options options_of_environment(void)
{
	struct world_options options = {
		.faults = UINT32_MAX,
		.pods = (unsigned)ck_test_env("CK_WORLD_PODS", 0),
		.seconds = (unsigned)ck_test_env("CK_WORLD_SECONDS", 0),
	};
	const char *text = getenv("CK_WORLD_FAULTS");
	if (!text)
		return options;
	options.faults = 0;
	while (*(text += strspn(text, ", "))) {
		size_t len = strcspn(text, ", "), i = 0;
		while (fault_names[i] &&
		       (strncmp(fault_names[i], text, len) != 0 || fault_names[i][len]))
			i++;
		if (!fault_names[i])
			fail_msg("CK_WORLD_FAULTS: there is no fault '%.*s'", (int)len, text);
		options.faults |= 1u << i;
		text += len;
	}
	return options;
}

static void print_options(uint64_t seed, const struct result *result)
{
	const char *comma = "";
	print_message("CK_WORLD_SEED=%llu CK_WORLD_FAULTS=", (unsigned long long)seed);
	for (unsigned i = 0; fault_names[i]; i++)
		if (result->options.faults & 1u << i) {
			print_message("%s%s", comma, fault_names[i]);
			comma = ",";
		}
	print_message(" CK_WORLD_PODS=%u CK_WORLD_SECONDS=%u: %s\n", result->options.pods,
		      result->options.seconds, result->wrong);
}

/* ---- the smallest run that fails ------------------------------------------------------------- */

/* without the words that name something: those with a digit */
static void skeleton(const char *text, char *to)
{
	while (*(text += strspn(text, " "))) {
		size_t len = strcspn(text, " ");
		if (strcspn(text, "0123456789") >= len) {
			memcpy(to, text, len);
			to += len;
		}
		text += len;
	}
	*to = '\0';
}

static bool is_like(const char *a, const char *b)
{
	char bare_a[sizeof(w.wrong)], bare_b[sizeof(w.wrong)];
	skeleton(a, bare_a);
	skeleton(b, bare_b);
	return *a && !strcmp(bare_a, bare_b);
}

static bool smaller(uint64_t seed, struct result *best, const struct world_options *options,
		    unsigned *left)
{
	struct result *one = seed_result();
	bool better = false;
	if (*left) {
		--*left;
		seed_play(seed, options, one);
		better = is_like(one->wrong, best->wrong);
		if (better)
			*best = *one;
	}
	munmap(one, sizeof(*one));
	return better;
}

/* one thing less, as long as the run fails in the same way */
static void shrink(uint64_t seed, struct result *best)
{
	unsigned left = (unsigned)ck_test_env("CK_WORLD_SHRINKS", SHRINKS);
	bool moved = true;
	while (moved && left) {
		moved = false;
		for (unsigned i = 0; fault_names[i]; i++) {
			struct world_options o = best->options;
			o.faults &= ~(1u << i);
			moved = (o.faults != best->options.faults &&
				 smaller(seed, best, &o, &left)) ||
				moved;
		}
		for (unsigned part = 2; part <= 16; part *= 2) {
			struct world_options o = best->options;
			o.seconds -= o.seconds / part;
			moved = (o.seconds != best->options.seconds &&
				 smaller(seed, best, &o, &left)) ||
				moved;
			o = best->options;
			o.pods -= o.pods / part;
			moved = (o.pods != best->options.pods && smaller(seed, best, &o, &left)) ||
				moved;
		}
	}
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void add(struct result *sum, const struct result *one)
{
	sum->worlds += one->worlds;
	sum->failed += one->failed;
	sum->simulated += one->simulated;
	sum->cpu += one->cpu;
#define C(name, text) sum->name += one->name;
	COUNTS(C)
#undef C
}

static void print_sum(const struct result *sum)
{
	print_message("# %u worlds, %.1f simulated hours, %.0f simulated hours for each CPU hour",
		      sum->worlds, (double)sum->simulated / 3600e9,
		      sum->cpu ? (double)sum->simulated / (double)sum->cpu : 0);
#define C(name, text) print_message(", %u " text, sum->name);
	COUNTS(C)
#undef C
	print_message("\n");
}

/* every @step-th seed from @first on. *@sum is shared with other processes, each has its own */
static void play_many(uint64_t first, uint64_t n, unsigned step, struct result *sum)
{
	struct world_options options = options_of_environment();
	struct result *one = seed_result();
	for (uint64_t i = 0; i < n && sum->failed < ENOUGH; i += step) {
		seed_play(first + i, &options, one);
		add(sum, one);
		if (!*one->wrong)
			continue;
		sum->failed++;
		print_message("CK_WORLD_SEED=%llu: %s\n", (unsigned long long)(first + i),
			      one->wrong);
		shrink(first + i, one);
		print_options(first + i, one);
	}
	munmap(one, sizeof(*one));
}

static void every_world_is_safe_and_comes_to_its_end(void **state)
{
	unsigned long seed = ck_test_env("CK_WORLD_SEED", 0),
		      first = seed ? seed : ck_test_env("CK_WORLD_FIRST", 1),
		      n = seed ? 1 : ck_test_env("CK_WORLDS", ck_test_rounds(20));
	unsigned jobs = seed ? 1 : (unsigned)ck_test_env("CK_WORLD_JOBS", 1);
	struct result *sums[JOBS_MAX] = { NULL }, sum = { 0 };
	pid_t pids[JOBS_MAX];
	(void)state;
	assert_in_range(jobs, 1, JOBS_MAX);
	for (unsigned i = 0; i < jobs; i++) {
		sums[i] = seed_result();
		pids[i] = i + 1 < jobs ? fork() : 0;
		if (pids[i] == 0)
			play_many(first + i, n > i ? n - i : 0, jobs, sums[i]);
		if (pids[i] == 0 && i + 1 < jobs)
			_exit(0);
	}
	for (unsigned i = 0; i < jobs; i++) {
		if (i + 1 < jobs)
			assert_int_equal(waitpid(pids[i], NULL, 0), pids[i]);
		add(&sum, sums[i]);
		munmap(sums[i], sizeof(*sums[i]));
	}
	print_sum(&sum);
	assert_int_equal(sum.failed, 0);
}

static void a_seed_replays_exactly(void **state)
{
	struct result *one = seed_result();
	struct world_options options = options_of_environment();
	unsigned long n = ck_test_rounds(3);
	(void)state;
	for (unsigned long seed = 1; seed <= n; seed++) {
		seed_play(seed, &options, one);
		uint64_t hash = one->hash;
		seed_play(seed, &options, one);
		assert_true(hash && one->hash == hash);
	}
	munmap(one, sizeof(*one));
}

/* how much of a node's life an hour of CPU time is: one of 40 pods a minute, a third of whose calls
 * are slow */
static void a_slow_node_with_forty_pods_a_minute(void **state)
{
	struct result *one = seed_result();
	const struct world_options options = {
		.faults = UINT32_MAX,
		.seconds = (unsigned)ck_test_env("CK_WORLD_BUSY", 60 * ck_test_rounds(4)),
		.busy = true,
	};
	(void)state;
	seed_play(1, &options, one);
	if (*one->wrong)
		print_message("%s\n", one->wrong);
	print_sum(one);
	assert_string_equal(one->wrong, "");
	munmap(one, sizeof(*one));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_seed_replays_exactly),
		cmocka_unit_test(a_slow_node_with_forty_pods_a_minute),
		cmocka_unit_test(every_world_is_safe_and_comes_to_its_end),
	};
	return CK_TEST_MAIN(tests);
}
