/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random histories of the whole cache: machine, store and API together, with a runtime, plugins and
 * callers around it (world.h), and what must hold (check.c). The model test judges each move of the
 * machine; this one knows few rules, but has the real database, restarts and faults.
 *
 *	CK_HISTORIES=n          how many (1000; CK_TEST_SCALE per cent of it)
 *	CK_HISTORY_FIRST=n      the first seed (1)
 *	CK_HISTORY_PROCESSES=n  how many processes play them (one for each processor)
 *	CK_HISTORY_SEED=n       this one only, told step by step
 *
 * A history that fails is told with its seed, and the others go on. The first few that fail are
 * made as short as they can be, and told step by step. A process plays a batch and ends, so that a
 * leak is known to be of one of its histories.
 */
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#define CK_TEST_SECONDS 280
#include "tests/history/world.h"
#include "tests/unit/harness.h"

enum { PROCESSES_MAX = 64, BATCH = 500, SHRUNK_MAX = 5, SECONDS_MAX = 20, SHRINK_SECONDS = 300 };

struct history {
	uint64_t seed;
	unsigned n;
	struct step steps[STEPS_MAX];
	char failure[400];
};

struct share {                             /* of one process, in shared memory */
	uint64_t seed;                     /* that is being played; @end: all are played */
	uint64_t begin, end;               /* its batch */
	unsigned long histories, failures; /* of all its batches */
	struct tally tally;
};

struct run {
	struct share *shares;
	pid_t pids[PROCESSES_MAX]; /* 0: none */
	unsigned processes, playing;
	unsigned long deaths; /* of processes, and failures at their ends */
	uint64_t n;           /* histories */
	uint64_t next, end;   /* seeds that are in no batch yet */
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

/* for one history, or for making one shorter */
static void limit(unsigned seconds)
{
	alarm(seconds * (unsigned)ck_test_env("CK_TEST_SLOW", 1));
}

/* several processes write: a report is one piece, or its lines would be mixed with others' */
static void shorten_and_tell(struct history *h)
{
	char *text = NULL;
	size_t len;
	FILE *report = open_memstream(&text, &len);
	if (!report)
		return;
	limit(SHRINK_SECONDS);
	shrink(h);
	fprintf(report, "CK_HISTORY_SEED=%llu is shorter:\n", (unsigned long long)h->seed);
	play(h, NULL, report);
	fprintf(report, "%s\n", h->failure);
	fclose(report);
	fflush(stdout);
	for (size_t at = 0; at < len;) {
		ssize_t n = write(STDOUT_FILENO, text + at, len - at);
		if (n <= 0)
			break;
		at += (size_t)n;
	}
	free(text);
}

static bool fails(uint64_t seed, struct tally *tally, bool told, bool shortened)
{
	static struct history h;
	make(&h, seed);
	if (play(&h, tally, told ? stdout : NULL))
		return false;
	printf("CK_HISTORY_SEED=%llu: %s\n", (unsigned long long)seed, h.failure);
	fflush(stdout);
	if (shortened)
		shorten_and_tell(&h);
	return true;
}

/* ---- processes ------------------------------------------------------------------------------- */

static unsigned long failures_of(const struct run *run)
{
	unsigned long n = run->deaths;
	for (unsigned i = 0; i < run->processes; i++)
		n += run->shares[i].failures;
	return n;
}

static void explore(const struct run *run, struct share *share)
{
	for (share->seed = share->begin; share->seed < share->end; share->seed++) {
		limit(SECONDS_MAX);
		if (fails(share->seed, &share->tally, false, failures_of(run) < SHRUNK_MAX))
			share->failures++;
		share->histories++;
	}
	world_close_inotify();
}

/* the next batch, or the rest of one that a process could not finish */
static void start(struct run *run, unsigned i)
{
	struct share *share = &run->shares[i];
	if (share->begin >= share->end) {
		uint64_t left = run->end - run->next;
		uint64_t part = (run->n + run->processes - 1) / run->processes;
		part = part < BATCH ? part : BATCH;
		share->begin = run->next;
		run->next += left < part ? left : part;
		share->end = run->next;
	}
	if (share->begin >= share->end)
		return;
	fflush(NULL);
	run->pids[i] = fork();
	assert_true(run->pids[i] >= 0);
	if (run->pids[i] == 0) {
		sigset_t none;
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		explore(run, share);
		exit(0);
	}
	run->playing++;
}

static void ended(struct run *run, unsigned i, int status)
{
	struct share *share = &run->shares[i];
	bool in_a_history = share->seed < share->end;
	run->pids[i] = 0;
	run->playing--;
	if (in_a_history)
		printf("CK_HISTORY_SEED=%llu: the process died, status 0x%x\n",
		       (unsigned long long)share->seed, (unsigned)status);
	else if (status)
		printf("CK_HISTORY_FIRST=%llu CK_HISTORIES=%llu CK_HISTORY_PROCESSES=1: the "
		       "process "
		       "ended with status 0x%x\n",
		       (unsigned long long)share->begin,
		       (unsigned long long)(share->end - share->begin), (unsigned)status);
	run->deaths += in_a_history || status;
	share->histories += in_a_history;
	share->begin = in_a_history ? share->seed + 1 : share->end;
	start(run, i);
}

static unsigned long histories_of(const struct run *run)
{
	unsigned long n = 0;
	for (unsigned i = 0; i < run->processes; i++)
		n += run->shares[i].histories;
	return n;
}

static void play_all(struct run *run)
{
	const struct timespec second = { .tv_sec = 1 };
	time_t told = time(NULL);
	sigset_t child;
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, NULL);
	alarm(0); /* each history has a limit of its own */
	for (unsigned i = 0; i < run->processes; i++)
		start(run, i);
	while (run->playing) {
		int status;
		sigtimedwait(&child, NULL, &second);
		for (unsigned i = 0; i < run->processes; i++)
			if (run->pids[i] && waitpid(run->pids[i], &status, WNOHANG) > 0)
				ended(run, i, status);
		if (time(NULL) - told < 60)
			continue;
		told = time(NULL);
		printf("%lld: %lu histories, %lu failures\n", (long long)told, histories_of(run),
		       failures_of(run));
	}
	sigprocmask(SIG_UNBLOCK, &child, NULL);
}

static void histories_keep_what_must_hold(void **state)
{
	uint64_t seed = ck_test_env("CK_HISTORY_SEED", 0);
	struct run run = { .next = ck_test_env("CK_HISTORY_FIRST", 1) };
	struct tally tally = { 0 };
	(void)state;
	if (seed) {
		bool failed = fails(seed, NULL, true, true);
		world_close_inotify();
		assert_false(failed);
		return;
	}
	run.n = ck_test_env("CK_HISTORIES", ck_test_rounds(1000));
	run.end = run.next + run.n;
	run.processes = (unsigned)ck_test_env("CK_HISTORY_PROCESSES",
					      (unsigned long)sysconf(_SC_NPROCESSORS_ONLN));
	assert_in_range(run.processes, 1, PROCESSES_MAX);
	run.shares = mmap(NULL, PROCESSES_MAX * sizeof(*run.shares), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(run.shares, MAP_FAILED);
	play_all(&run);
	for (unsigned i = 0; i < run.processes; i++)
		add(&tally, &run.shares[i].tally);
	printf("%lu histories: %lu creations, %lu handed over, %lu kept, %lu destroyed, plugins "
	       "told %lu times, %lu kills, %lu reboots, %lu faults\n",
	       histories_of(&run), tally.begun, tally.handed, tally.kept, tally.destroyed,
	       tally.told, tally.crashes, tally.reboots, tally.faults);
	unsigned long failures = failures_of(&run);
	munmap(run.shares, PROCESSES_MAX * sizeof(*run.shares));
	assert_int_equal(failures, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(histories_keep_what_must_hold),
	};
	return CK_TEST_MAIN(tests);
}
