/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Instructions of crikeepd for a call, counted by valgrind's callgrind. Unlike times they hardly
 * depend on the machine, so they are compared with recorded ones. crikeepd is started twice, for
 * few calls and for many: the difference of the sums is that of the calls.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "src/base/mem.h"
#include "tests/daemon/world.h"
#include "tests/load/load.h"

#define CK_TEST_SECONDS 240
#include "tests/unit/harness.h"

#define VALGRIND "/usr/bin/valgrind"
#define WARM     5u
/* another version of a library or of the compiler makes a difference */
#define MORE_AT_MOST 1.15
/* what happens by the clock meanwhile is in the sums as well: with other work on the machine more
 * of it happens in one life than in the other */
#define TRIES 3u

struct counted {
	const char *name, *rpc;
	unsigned calls, hidden; /* sandboxes that are kept */
	double recorded;        /* thousand instructions: gcc -O2, Debian 12, x86-64 */
};

static const struct counted version = { "Version", "Version", 500, 0, 37.2 },
			    list = { "a list of 500", "ListPodSandbox", 20, 0, 1862 },
			    list_20_hidden = { "a list of 500 and 20 hidden", "ListPodSandbox", 60,
					       20, 2250 };

/* of a whole life of crikeepd with @calls calls, in thousands */
static double life(const struct counted *what, unsigned calls)
{
	char out[WORLD_PATH + 32], path[WORLD_PATH];
	const char *const under[] = { VALGRIND, "-q", "--tool=callgrind", out, NULL };
	static const char *const flags[] = { "--set=confine=false", "--log-level=info",
					     "--hand-back=repeat", NULL };
	struct load_client client;
	struct load_call call = { 0 };
	struct world w;
	load_forget_clients();
	world_init(&w);
	snprintf(path, sizeof(path), "%s/callgrind", w.dir);
	snprintf(out, sizeof(out), "--callgrind-out-file=%s", path);
	w.under = under;
	world_sim(&w, what->hidden ? "sandboxes=500,create=2s" : "sandboxes=500");
	world_daemon(&w, flags);
	if (what->hidden)
		load_keep(&w, what->hidden);
	load_open(&client, w.cri);
	for (unsigned i = 0; i < WARM + calls; i++)
		assert_int_equal(load_do(&client, &call, what->rpc, NULL, 0), CK_GRPC_OK);
	load_close(&client);
	load_call_fini(&call);
	assert_int_equal(world_kill(&w.daemon, SIGTERM), 0);
	char *text = world_file(path), *totals = strstr(text, "\ntotals: ");
	assert_non_null(totals);
	double sum = strtod(totals + strlen("\ntotals: "), NULL) / 1000;
	free(text);
	world_fini(&w);
	return sum;
}

static void are_as_recorded(const struct counted *what)
{
#if !defined(__x86_64__) || !defined(__OPTIMIZE__) || defined(__clang__)
	print_message("the counts were recorded for gcc -O2 on x86-64\n");
	skip();
#endif
	if (access(VALGRIND, X_OK) < 0) {
		print_message("valgrind is not there (Debian: valgrind)\n");
		skip();
	}
	double n = 0;
	for (unsigned i = 0; i < TRIES; i++) {
		n = (life(what, what->calls) - life(what, 0)) / what->calls;
		printf("%s: %.1f thousand instructions, %.2f x the recorded %.1f\n", what->name, n,
		       n / what->recorded, what->recorded);
		if (n <= MORE_AT_MOST * what->recorded)
			break;
	}
	assert_true(n <= MORE_AT_MOST * what->recorded);
}

static void version_takes_the_recorded_instructions(void **state)
{
	(void)state;
	are_as_recorded(&version);
}

static void list_takes_the_recorded_instructions(void **state)
{
	(void)state;
	are_as_recorded(&list);
}

static void list_with_hidden_ones_takes_the_recorded_instructions(void **state)
{
	(void)state;
	are_as_recorded(&list_20_hidden);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(version_takes_the_recorded_instructions),
		cmocka_unit_test(list_takes_the_recorded_instructions),
		cmocka_unit_test(list_with_hidden_ones_takes_the_recorded_instructions),
	};
	return CK_TEST_MAIN(tests);
}
