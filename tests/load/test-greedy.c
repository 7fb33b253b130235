/* SPDX-License-Identifier: Apache-2.0 */
/* A client that wants too much is told so, or waits, by itself. Everybody else is served. */
#include "tests/unit/harness.h"

#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/base/limits.h"
#include "src/base/mem.h"
#include "tests/daemon/world.h"
#include "tests/flow/cri-client.h"
#include "tests/load/load.h"

/* ---- thousands of lists ---------------------------------------------------------------------- */

#define LISTS 3000u

static unsigned answered;

static void list_answered(struct load_call *call)
{
	assert_int_equal(call->code, CK_GRPC_OK);
	answered++;
}

/* A client that asks for thousands of lists waits for them by itself. */
static void somebody_else_does_not_wait_behind_thousands_of_lists(void **state)
{
	struct load_call list = { .over = NULL };
	struct load_client greedy, other;
	struct world w;
	(void)state;
	const char *const socket_of[] = { w.cri, w.unfiltered };
	for (unsigned i = 0; i < CK_COUNT(socket_of); i++) {
		load_forget_clients();
		world_init(&w);
		world_sim(&w, "list=100ms,sandboxes=1");
		world_daemon(&w, NULL);
		load_open(&greedy, socket_of[i]);
		load_open(&other, w.cri);
		struct load_call *lists = calloc(LISTS, sizeof(*lists));
		assert_non_null(lists);
		answered = 0;
		for (unsigned n = 0; n < LISTS; n++) {
			lists[n].over = list_answered;
			load_call(&greedy, &lists[n], "ListPodSandbox", NULL, 0, 0);
		}
		load_flush(&greedy);
		while (!answered)
			load_turn(5);
		assert_true(world_metric(&w, "crikeepd_calls_waiting") > CK_ASKING_MAX);
		assert_int_equal(load_do(&other, &list, "ListPodSandbox", NULL, 0), CK_GRPC_OK);
		assert_in_range(answered, 1, LISTS / 2);
		while (answered < LISTS)
			load_turn(5);
		assert_int_equal(world_metric(&w, "crikeepd_calls_waiting"), 0);
		load_close(&greedy);
		load_close(&other);
		for (unsigned n = 0; n < LISTS; n++)
			load_call_fini(&lists[n]);
		free(lists);
		load_call_fini(&list);
		world_fini(&w);
	}
}

/* Those that wait end with their client, and with the runtime's connection. */
static void who_waits_and_leaves_is_forgotten(void **state)
{
	struct load_client greedy, other;
	struct load_call list = { .over = NULL };
	struct world w;
	(void)state;
	load_forget_clients();
	world_init(&w);
	world_sim(&w, "list=2s,sandboxes=1");
	world_daemon(&w, NULL);
	load_open(&other, w.cri);
	for (unsigned round = 0; round <= 1; round++) {
		load_open(&greedy, w.cri);
		struct load_call *lists = calloc(LISTS, sizeof(*lists));
		assert_non_null(lists);
		for (unsigned n = 0; n < LISTS; n++)
			load_call(&greedy, &lists[n], "ListPodSandbox", NULL, 0, 0);
		load_flush(&greedy);
		while (world_metric(&w, "crikeepd_calls_waiting") < LISTS / 2)
			load_turn(5);
		if (round == 1) {
			world_kill(&w.sim, SIGKILL);
			load_wait(&lists[0]);
			assert_int_equal(lists[0].code, CK_GRPC_UNAVAILABLE);
		}
		load_close(&greedy);
		while (world_metric(&w, "crikeepd_calls_waiting") > 0.5)
			load_turn(5);
		assert_int_equal(world_metric(&w, "crikeepd_clients"), 1);
		for (unsigned n = 0; n < LISTS; n++)
			load_call_fini(&lists[n]);
		free(lists);
		if (round == 0)
			assert_int_equal(load_do(&other, &list, "Version", NULL, 0), CK_GRPC_OK);
	}
	load_close(&other);
	load_call_fini(&list);
	world_fini(&w);
}

/* ---- too many connections -------------------------------------------------------------------- */

static void open_clients(struct cri_client *clients, unsigned n, const char *path)
{
	for (unsigned i = 0; i < n; i++)
		cri_open(&clients[i], path);
}

static unsigned served(struct cri_client *clients, unsigned n)
{
	unsigned ok = 0;
	for (unsigned i = 0; i < n; i++)
		ok += clients[i].fd >= 0 && cri_do(&clients[i], "Version", NULL, NULL) == 0;
	return ok;
}

static void close_clients(struct cri_client *clients, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		cri_close(&clients[i]);
}

/* the text of a GOAWAY, which clients show */
static void assert_reads(int fd, const char *text)
{
	char bytes[1024];
	size_t got = 0;
	ssize_t n;
	while ((n = recv(fd, bytes + got, sizeof(bytes) - got, 0)) > 0)
		got += (size_t)n;
	assert_non_null(memmem(bytes, got, text, strlen(text)));
}

static void a_process_has_so_many_connections(void **state)
{
	static struct cri_client many[CK_PROCESS_CLIENTS + 3];
	struct world w;
	(void)state;
	world_init(&w);
	world_sim(&w, NULL);
	world_daemon(&w, NULL);
	open_clients(many, CK_COUNT(many), w.cri);
	assert_reads(many[CK_PROCESS_CLIENTS].fd, "64 connections, and 64 are allowed");
	assert_int_equal(served(many, CK_COUNT(many)), CK_PROCESS_CLIENTS);
	assert_int_equal(world_metric(&w, "crikeepd_clients_limited_total"), 3);
	assert_true(world_logged(&w, "connections, and 64 are allowed"));
	cri_close(&many[0]);
	while (world_metric(&w, "crikeepd_clients") >= CK_PROCESS_CLIENTS)
		load_turn(5);
	cri_open(&many[0], w.cri);
	assert_int_equal(served(many, 1), 1);
	close_clients(many, CK_COUNT(many));
	world_fini(&w);
}

static void limits_are_the_ones_of_the_configuration(void **state)
{
	static const char *const flags[] = { "--set=limits.process_connections=5",
					     "--set=limits.process_calls=256", NULL };
	static struct cri_client many[6];
	struct load_call calls[258] = { { .over = NULL } };
	struct load_client client;
	struct world w;
	(void)state;
	load_forget_clients();
	world_init(&w);
	world_sim(&w, NULL);
	world_daemon(&w, flags);
	open_clients(many, CK_COUNT(many), w.cri);
	assert_reads(many[5].fd, "5 connections, and 5 are allowed");
	assert_int_equal(served(many, CK_COUNT(many)), 5);
	assert_int_equal(world_metric(&w, "crikeepd_limit{of=\"process_connections\"}"), 5);
	assert_int_equal(world_metric(&w, "crikeepd_limit_used{of=\"process_connections\"}"), 5);
	close_clients(many, CK_COUNT(many));
	while (world_metric(&w, "crikeepd_clients") > 0.5)
		load_turn(5);
	assert_int_equal(kill(w.sim, SIGSTOP), 0); /* it answers none */
	load_open(&client, w.cri);
	for (unsigned i = 0; i < CK_COUNT(calls); i++)
		load_call(&client, &calls[i], "ListPodSandbox", NULL, 0, 0);
	load_wait(&calls[257]);
	assert_int_equal(calls[256].code, CK_GRPC_RESOURCE_EXHAUSTED);
	assert_non_null(strstr(calls[256].text, "256 calls under way"));
	assert_non_null(calls[0].stream);
	assert_int_equal(world_metric(&w, "crikeepd_limit_used{of=\"process_calls\"}"), 256);
	assert_int_equal(world_metric(&w, "crikeepd_limit_used{of=\"calls\"}"), 256);
	load_close(&client);
	for (unsigned i = 0; i < CK_COUNT(calls); i++)
		load_call_fini(&calls[i]);
	assert_int_equal(kill(w.sim, SIGCONT), 0);
	world_fini(&w);
}

#define LEFT 256u

static void call_nth(struct load_client *client, struct load_call *call, const char *rpc,
		     unsigned i)
{
	struct ck_bytes request = { 0 };
	char id[16];
	if (!strcmp(rpc, "RunPodSandbox")) {
		request = load_pod(i);
	} else {
		snprintf(id, sizeof(id), "unknown-%u", i);
		assert_int_equal(ck_bytes_field_text(&request, 1, id), 0);
	}
	load_call(client, call, rpc, request.p, request.len, 0);
	ck_bytes_free(&request);
}

/* @rpc goes on at the runtime, which is slow, when its client has left. @begun: what the runtime
 * logs when it begins; NULL: nothing */
static void has_what_he_left(const char *rpc, const char *slow, const char *begun)
{
	static const char *const flags[] = { "--set=limits.process_calls=256", NULL };
	static struct load_call calls[LEFT];
	struct load_call more = { .over = NULL };
	struct load_client client;
	struct world w;
	load_forget_clients();
	world_init(&w);
	world_sim(&w, slow);
	world_daemon(&w, flags);
	load_open(&client, w.cri);
	for (unsigned i = 0; i < LEFT; i++)
		call_nth(&client, &calls[i], rpc, i);
	load_do(&client, &more, "Version", NULL, 0); /* all before it were read */
	while (begun && world_count(&w, begun) < LEFT)
		load_turn(5);
	load_close(&client);
	while (world_metric(&w, "crikeepd_clients") > 0.5)
		load_turn(5);
	load_open(&client, w.cri);
	load_do(&client, &more, "Version", NULL, 0);
	assert_int_equal(more.code, CK_GRPC_RESOURCE_EXHAUSTED);
	assert_int_equal(world_metric(&w, "crikeepd_limit_used{of=\"process_calls\"}"), LEFT);
	load_close(&client);
	world_kill(&w.sim, SIGKILL); /* it would go on for minutes */
	while (world_metric(&w, "crikeepd_limit_used{of=\"process_calls\"}") > 0.5)
		load_turn(5);
	for (unsigned i = 0; i < LEFT; i++)
		load_call_fini(&calls[i]);
	load_call_fini(&more);
	world_fini(&w);
}

static void who_leaves_his_creates_has_them_still(void **state)
{
	(void)state;
	has_what_he_left("RunPodSandbox", "create=300s", "begin sandbox");
}

static void and_his_stops(void **state)
{
	(void)state;
	has_what_he_left("StopPodSandbox", "stop=300s", NULL);
}

#define PROCESSES (CK_CLIENTS_MAX / CK_PROCESS_CLIENTS)

/* processes that hold all places; each ends when told */
static void hold_all(pid_t *pids, const struct world *w)
{
	for (unsigned i = 0; i < PROCESSES; i++) {
		int fds[2];
		char c = 0;
		assert_int_equal(pipe(fds), 0);
		pids[i] = fork();
		assert_true(pids[i] >= 0);
		if (pids[i] == 0) {
			static struct cri_client many[CK_PROCESS_CLIENTS];
			open_clients(many, CK_COUNT(many), w->cri);
			c = served(many, CK_COUNT(many)) == CK_COUNT(many);
			_exit(write(fds[1], &c, 1) == 1 ? pause() : 1);
		}
		assert_int_equal(read(fds[0], &c, 1), 1);
		assert_int_equal(c, 1);
		close(fds[0]);
		close(fds[1]);
	}
}

static void who_holds_little_gets_the_place_of_who_holds_most(void **state)
{
	static struct cri_client mine[3];
	pid_t pids[PROCESSES];
	struct world w;
	(void)state;
	world_init(&w);
	world_sim(&w, NULL);
	world_daemon(&w, NULL);
	hold_all(pids, &w);
	assert_int_equal(world_metric(&w, "crikeepd_clients"), CK_CLIENTS_MAX);
	open_clients(mine, CK_COUNT(mine), w.cri);
	assert_int_equal(served(mine, CK_COUNT(mine)), CK_COUNT(mine));
	assert_int_equal(world_metric(&w, "crikeepd_clients"), CK_CLIENTS_MAX);
	assert_int_equal(world_metric(&w, "crikeepd_clients_limited_total"), CK_COUNT(mine));
	assert_true(world_logged(&w, "all 512 connections are taken, and process "));
	close_clients(mine, CK_COUNT(mine));
	for (unsigned i = 0; i < PROCESSES; i++)
		world_kill(&pids[i], SIGKILL);
	while (world_metric(&w, "crikeepd_clients") > 0.5)
		load_turn(5);
	world_fini(&w);
}

/* ---- too many calls -------------------------------------------------------------------------- */

static unsigned refused;

static void call_refused(struct load_call *call)
{
	assert_int_equal(call->code, CK_GRPC_RESOURCE_EXHAUSTED);
	assert_non_null(strstr(call->text, "calls under way"));
	refused++;
}

static void a_process_has_so_many_calls(void **state)
{
	const unsigned more = 5, all = CK_PROCESS_CALLS + more;
	struct load_call *calls = calloc(all, sizeof(*calls)), list = { .over = NULL };
	struct load_client greedy;
	struct world w;
	(void)state;
	assert_non_null(calls);
	load_forget_clients();
	world_init(&w);
	world_sim(&w, NULL);
	world_daemon(&w, NULL);
	load_open(&greedy, w.cri);
	assert_int_equal(kill(w.sim, SIGSTOP), 0); /* it answers none */
	refused = 0;
	for (unsigned i = 0; i < all; i++) {
		calls[i].over = call_refused;
		load_call(&greedy, &calls[i], "UpdateRuntimeConfig", NULL, 0, 0);
		if (i % 100 == 0)
			load_turn(0);
	}
	while (refused < more)
		load_turn(5);
	assert_int_equal(world_metric(&w, "crikeepd_calls_limited_total"), more);
	for (unsigned i = 0; i < all; i++)
		calls[i].over = NULL;
	load_close(&greedy);
	assert_int_equal(kill(w.sim, SIGCONT), 0);
	while (world_metric(&w, "crikeepd_clients") > 0.5)
		load_turn(5);
	load_open(&greedy, w.cri);
	assert_int_equal(load_do(&greedy, &list, "ListPodSandbox", NULL, 0), CK_GRPC_OK);
	load_close(&greedy);
	load_call_fini(&list);
	for (unsigned i = 0; i < all; i++)
		load_call_fini(&calls[i]);
	free(calls);
	world_fini(&w);
}

static void a_connection_has_so_many_subscriptions(void **state)
{
	struct load_call subs[CK_CLIENT_SUBS + 1] = { { .over = NULL } }, list = { .over = NULL };
	struct load_client client;
	struct world w;
	(void)state;
	load_forget_clients();
	world_init(&w);
	world_sim(&w, NULL);
	world_daemon(&w, NULL);
	load_open(&client, w.cri);
	for (unsigned i = 0; i <= CK_CLIENT_SUBS; i++)
		load_call(&client, &subs[i], "GetContainerEvents", NULL, 0, 0);
	load_wait(&subs[CK_CLIENT_SUBS]);
	assert_int_equal(subs[CK_CLIENT_SUBS].code, CK_GRPC_RESOURCE_EXHAUSTED);
	assert_int_equal(load_do(&client, &list, "ListPodSandbox", NULL, 0), CK_GRPC_OK);
	assert_non_null(subs[0].stream);
	load_cancel(&subs[0]);
	load_call(&client, &subs[0], "GetContainerEvents", NULL, 0, 0);
	assert_int_equal(load_do(&client, &list, "ListPodSandbox", NULL, 0), CK_GRPC_OK);
	assert_non_null(subs[0].stream);
	load_close(&client);
	for (unsigned i = 0; i <= CK_CLIENT_SUBS; i++)
		load_call_fini(&subs[i]);
	load_call_fini(&list);
	world_fini(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(somebody_else_does_not_wait_behind_thousands_of_lists),
		cmocka_unit_test(who_waits_and_leaves_is_forgotten),
		cmocka_unit_test(a_process_has_so_many_connections),
		cmocka_unit_test(limits_are_the_ones_of_the_configuration),
		cmocka_unit_test(who_leaves_his_creates_has_them_still),
		cmocka_unit_test(and_his_stops),
		cmocka_unit_test(who_holds_little_gets_the_place_of_who_holds_most),
		cmocka_unit_test(a_process_has_so_many_calls),
		cmocka_unit_test(a_connection_has_so_many_subscriptions),
	};
	return CK_TEST_MAIN(tests);
}
