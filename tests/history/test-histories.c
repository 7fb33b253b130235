/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random histories of the whole cache: machine, store and API together, with a runtime, plugins and
 * callers around it (world.h), and what must hold (check.c). The model test judges each move of the
 * machine; this one knows few rules, but has the real database, restarts and faults.
 *
 *	CK_HISTORIES=n       how many (1000; CK_TEST_SCALE per cent of it)
 *	CK_HISTORY_FIRST=n   the first seed (1)
 *	CK_HISTORY_SEED=n    this one only, told step by step
 *
 * A history that fails is made as short as it can be, and told.
 */
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define CK_TEST_SECONDS 280
#include "tests/history/world.h"
#include "tests/unit/harness.h"

enum { PROCESSES = 2, FAILURES_MAX = 3, SECONDS_MAX = 20 };

struct history {
	uint64_t seed;
	unsigned n;
	struct step steps[STEPS_MAX];
	char failure[400];
};

struct share {         /* of one process, in shared memory */
	uint64_t seed; /* that is being played */
	unsigned long histories, failures;
	struct tally tally;
};

static struct world world;

static void add(struct tally *to, const struct tally *from)
{
	to->begun += from->begun;
	to->handed += from->handed;
	to->kept += from->kept;
	to->destroyed += from->destroyed;
	to->crashes += from->crashes;
	to->reboots += from->reboots;
	to->told += from->told;
	to->faults += from->faults;
}

static void make(struct history *h, uint64_t seed)
{
	uint64_t random = seed * UINT64_C(0xd1342543de82ef95);
	*h = (struct history){ .seed = seed, .n = 12 + (unsigned)(seed % (STEPS_MAX - 12 + 1)) };
	for (unsigned i = 0; i < h->n; i++)
		h->steps[i] = step_random(&random);
}

static bool play(struct history *h, struct tally *tally, FILE *trace)
{
	struct world *w = &world;
	world_init(w, h->seed, trace);
	for (unsigned i = 0; i < h->n && !w->failure[0]; i++) {
		world_say(w, "#%u at %llu.%03llu s", i + 1,
			  (unsigned long long)(w->now / CK_NS_PER_S),
			  (unsigned long long)(w->now / CK_NS_PER_MS % 1000));
		step_play(w, &h->steps[i]);
	}
	if (!w->failure[0])
		step_drain(w);
	world_fini(w);
	if (tally)
		add(tally, &w->tally);
	memcpy(h->failure, w->failure, sizeof(h->failure));
	return !h->failure[0];
}

/* numbers may differ */
static bool same_failure(const char *a, const char *b)
{
	while (*a || *b) {
		a += strspn(a, "0123456789");
		b += strspn(b, "0123456789");
		if (*a != *b)
			return false;
		a += *a != '\0';
		b += *b != '\0';
	}
	return true;
}

static void shrink(struct history *h)
{
	static struct history shorter;
	for (unsigned len = h->n / 2; len; len /= 2)
		for (unsigned at = 0; at + len <= h->n;) {
			shorter = *h;
			memmove(&shorter.steps[at], &shorter.steps[at + len],
				(h->n - at - len) * sizeof(*h->steps));
			shorter.n -= len;
			if (!play(&shorter, NULL, NULL) &&
			    same_failure(shorter.failure, h->failure))
				*h = shorter;
			else
				at++;
		}
}

static bool fails(uint64_t seed, struct tally *tally, bool told)
{
	static struct history h;
	make(&h, seed);
	if (play(&h, tally, told ? stdout : NULL))
		return false;
	printf("\nCK_HISTORY_SEED=%llu: %s\nshorter:\n", (unsigned long long)seed, h.failure);
	alarm(0);
	shrink(&h);
	play(&h, NULL, stdout);
	printf("%s\n", h.failure);
	fflush(stdout);
	return true;
}

static void explore(uint64_t first, uint64_t n, struct share *share)
{
	for (uint64_t i = 0; i < n && share->failures < FAILURES_MAX; i++) {
		share->seed = first + i * PROCESSES;
		alarm(SECONDS_MAX * (unsigned)ck_test_env("CK_TEST_SLOW", 1)); /* for one */
		share->failures += fails(share->seed, &share->tally, false);
		share->histories++;
	}
}

static void histories_keep_what_must_hold(void **state)
{
	uint64_t seed = ck_test_env("CK_HISTORY_SEED", 0);
	uint64_t first = ck_test_env("CK_HISTORY_FIRST", 1);
	uint64_t n = ck_test_env("CK_HISTORIES", ck_test_rounds(1000));
	struct share *shares = mmap(NULL, PROCESSES * sizeof(*shares), PROT_READ | PROT_WRITE,
				    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	unsigned long histories = 0, failures = 0;
	struct tally tally = { 0 };
	pid_t pids[PROCESSES];
	(void)state;
	assert_ptr_not_equal(shares, MAP_FAILED);
	if (seed) {
		assert_false(fails(seed, NULL, true));
		munmap(shares, PROCESSES * sizeof(*shares));
		return;
	}
	fflush(NULL);
	for (unsigned i = 0; i < PROCESSES; i++) {
		pids[i] = fork();
		assert_true(pids[i] >= 0);
		if (pids[i] == 0) {
			explore(first + i, n / PROCESSES + (i < n % PROCESSES), &shares[i]);
			exit(0);
		}
	}
	for (unsigned i = 0; i < PROCESSES; i++) {
		int status = 0;
		waitpid(pids[i], &status, 0);
		if (status)
			printf("CK_HISTORY_SEED=%llu: the process died, status 0x%x\n",
			       (unsigned long long)shares[i].seed, (unsigned)status);
		failures += shares[i].failures + (status != 0);
		histories += shares[i].histories;
		add(&tally, &shares[i].tally);
	}
	munmap(shares, PROCESSES * sizeof(*shares));
	printf("%lu histories: %lu creations, %lu handed over, %lu kept, %lu destroyed, plugins "
	       "told %lu times, %lu kills, %lu reboots, %lu faults\n",
	       histories, tally.begun, tally.handed, tally.kept, tally.destroyed, tally.told,
	       tally.crashes, tally.reboots, tally.faults);
	assert_int_equal(failures, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(histories_keep_what_must_hold),
	};
	return CK_TEST_MAIN(tests);
}
