/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attacks of one client, beside an ordinary client in another process: the ordinary one sees no
 * error. How many answers it gets, compared with the runtime under the same attack, is printed: on
 * a busy machine nobody can promise that. At last the memory has gone back to the system.
 *
 *	CK_ATTACKS_RUNTIME=SOCKET   of a real runtime, instead of the simulated one
 */
#define CK_TEST_SECONDS 240
#include "tests/unit/harness.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "tests/daemon/world.h"
#include "tests/load/attacks.h"
#include "tests/load/load.h"

#define ROUNDS     5u
#define MEMORY_KIB (10u << 10) /* less is resident when nothing goes on */

static struct world world;
static bool real; /* the runtime */
static unsigned long errors; /* of a real runtime, which are its own affair */

static int setup(void **state)
{
	(void)state;
	load_forget_clients();
	world_init(&world);
	const char *runtime = getenv("CK_ATTACKS_RUNTIME");
	real = runtime;
	if (real)
		snprintf(world.runtime, sizeof(world.runtime), "%s", runtime);
	else
		world_sim(&world, "sandboxes=20");
	world_daemon(&world, (const char *const[]){ "--log-level=info", NULL });
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	world_fini(&world);
	return 0;
}

/* calls of an ordinary client, one after the other; each must succeed, if it @must. How long they
 * took, ns */
static uint64_t ordinary(struct load_client *client, unsigned long calls, bool must)
{
	static const char *const rpcs[] = { "Version", "ListPodSandbox", "Status",
					    "ListContainers" };
	struct load_call call = { .over = NULL };
	uint64_t began = measure_now();
	for (unsigned long i = 0; i < calls; i++) {
		const char *rpc = rpcs[i % CK_COUNT(rpcs)];
		if (load_do(client, &call, rpc, NULL, 0) == CK_GRPC_OK)
			continue;
		errors++;
		if (must)
			fail_msg("%s: %d (HTTP/2 error %u) %s", rpc, call.code, call.error,
				 call.text);
	}
	load_call_fini(&call);
	return measure_now() - began;
}

/* under the attack, at crikeepd or at the runtime */
static uint64_t attacked(const struct attack *attack, bool at_runtime, unsigned long calls)
{
	const char *socket = at_runtime ? world.runtime : world.cri;
	bool must = !at_runtime || !real;
	const volatile unsigned long *bursts;
	struct load_client client;
	load_open(&client, socket);
	ordinary(&client, 4, must);
	pid_t pid = attack_begin(attack, socket, &bursts);
	while (!*bursts)
		ordinary(&client, 1, must);
	uint64_t took = ordinary(&client, calls, must);
	attack_end(pid, bursts);
	ordinary(&client, 4, must);
	load_close(&client);
	return took;
}

static void pod_is_made(unsigned long i)
{
	struct load_client client;
	struct load_call call = { .over = NULL };
	struct ck_bytes pod = load_pod(i);
	load_open(&client, world.cri);
	assert_int_equal(load_do(&client, &call, "RunPodSandbox", pod.p, pod.len), CK_GRPC_OK);
	load_close(&client);
	load_call_fini(&call);
	ck_bytes_free(&pod);
}

static void an_ordinary_client_sees_no_attack(void **state)
{
	unsigned rounds = real ? 1 : ROUNDS;
	unsigned long calls = ck_test_rounds(20);
	(void)state;
	for (size_t i = 0; i < attacks_n; i++) {
		uint64_t here = 0, there = 0;
		for (unsigned round = 0; round < rounds; round++) {
			here += attacked(&attacks[i], false, calls);
			there += attacked(&attacks[i], true, calls);
		}
		if (!real)
			pod_is_made(100 + i);
		printf("%-28s %6.0f us a call, %6.0f at the runtime: %.2f x its answers\n",
		       attacks[i].name, (double)here / 1e3 / (double)(rounds * calls),
		       (double)there / 1e3 / (double)(rounds * calls),
		       (double)there / (double)here);
	}
	if (errors)
		printf("%lu errors at the runtime\n", errors);
	while (world_metric(&world, "crikeepd_clients") > 0.5)
		load_turn(5);
}

static void memory_goes_back_to_the_system(void **state)
{
	(void)state;
	struct load_memory memory = load_memory(world.daemon);
	printf("resident: %lu KiB, most %lu KiB\n", memory.resident, memory.most);
#ifndef CK_SANITIZERS
	uint64_t until = measure_now() + 30 * LOAD_S;
	while (memory.resident >= MEMORY_KIB && measure_now() < until) {
		load_turn(50);
		memory = load_memory(world.daemon);
	}
	assert_in_range(memory.resident, 1, MEMORY_KIB);
#endif
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_ordinary_client_sees_no_attack),
		cmocka_unit_test(memory_goes_back_to_the_system),
	};
	return CK_TEST_MAIN(tests, setup, teardown);
}
