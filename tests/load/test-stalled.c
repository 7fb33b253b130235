/* SPDX-License-Identifier: Apache-2.0 */
/* Whoever does not read, a client or a log, holds up nobody else, and what is kept for a client is
 * bounded. */
#include "tests/unit/harness.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "src/base/mem.h"
#include "tests/daemon/world.h"
#include "tests/load/load.h"

#define LISTS        8u  /* asked for and not read, by one client; 16 MiB each */
#define LIST_MIB     16u /* 64 sandboxes of 256 KiB */
#define MEMORY_MIB   48u /* limits.client_memory */
#define OTHERS_CALLS 1000u
#define OTHERS_LISTS 10u

static const char *const flags[] = { "--set", "limits.list_message=24MiB", "--set",
				     "limits.client_memory=48MiB", NULL };

/* somebody else's calls, one after the other: all are answered */
static void others_are_answered(const struct world *w, unsigned calls, unsigned lists)
{
	struct load_client client;
	struct load_call call = { .over = NULL };
	load_open(&client, w->cri);
	for (unsigned i = 0; i < calls; i++)
		assert_int_equal(load_do(&client, &call, "Version", NULL, 0), CK_GRPC_OK);
	for (unsigned i = 0; i < lists; i++) {
		assert_int_equal(load_do(&client, &call, "ListPodSandbox", NULL, 0), CK_GRPC_OK);
		assert_true(call.reply.len > LIST_MIB << 20);
	}
	load_call_fini(&call);
	load_close(&client);
}

/* pods that come and stay: each makes events */
static void pods_are_made(const struct world *w, unsigned long first, unsigned n)
{
	struct load_client client;
	struct load_call call = { .over = NULL };
	load_open(&client, w->cri);
	for (unsigned i = 0; i < n; i++) {
		struct ck_bytes request = load_pod(first + i);
		assert_int_equal(load_do(&client, &call, "RunPodSandbox", request.p, request.len),
				 CK_GRPC_OK);
		ck_bytes_free(&request);
	}
	load_call_fini(&call);
	load_close(&client);
}

/* ---- clients --------------------------------------------------------------------------------- */

struct staller {
	struct load_client client;
	struct load_call events, lists[LISTS];
};

static void staller_make(struct staller *staller, const char *socket)
{
	*staller = (struct staller){ .events.over = NULL };
	load_open(&staller->client, socket);
	load_call(&staller->client, &staller->events, "GetContainerEvents", NULL, 0, 0);
	for (unsigned i = 0; i < LISTS; i++)
		load_call(&staller->client, &staller->lists[i], "ListPodSandbox", NULL, 0, 0);
	load_flush(&staller->client);
}

static void staller_free(struct staller *staller)
{
	load_close(&staller->client);
	load_call_fini(&staller->events);
	for (unsigned i = 0; i < LISTS; i++)
		load_call_fini(&staller->lists[i]);
}

static void a_client_that_never_reads_delays_nobody(void **state)
{
	struct staller deaf, hoarder, agent;
	struct world w;
	(void)state;
	load_forget_clients();
	world_init(&w);
	world_sim(&w, "sandboxes=64,padding=256KiB");
	world_daemon(&w, flags);
	others_are_answered(&w, 10, 1);
	struct load_memory before = load_memory(w.daemon);

	staller_make(&deaf, w.cri);
	deaf.client.deaf = true;
	staller_make(&hoarder, w.cri);
	hoarder.client.hoards = true;
	staller_make(&agent, w.unfiltered);
	agent.client.deaf = true;
	pods_are_made(&w, 0, 50);
	others_are_answered(&w, OTHERS_CALLS, OTHERS_LISTS);
	pods_are_made(&w, 50, 50);

	struct load_memory after = load_memory(w.daemon);
	printf("most resident: %lu MiB, %lu before; %u MiB were asked for and not read\n",
	       after.most >> 10, before.most >> 10, 3 * LISTS * LIST_MIB);
	assert_true(world_metric(&w, "crikeepd_clients_cut_total") >= 1);
	/* a call is cut off, not its connection */
	assert_true(world_metric(&w, "crikeepd_clients") >= 3);
#ifndef CK_SANITIZERS
	/* two clients at their limits, a window for each call of the third, and a list on its way
	 * through for each of the two */
	assert_true((after.most - before.resident) >> 10 < 2 * MEMORY_MIB + 4 * LIST_MIB + 8);
#endif
	/* the hoarder has read from its socket: what it was sent is a window at most for each
	 * call */
	assert_true(hoarder.client.fd >= 0);
	for (unsigned i = 0; i < LISTS; i++)
		assert_true(hoarder.lists[i].received < LIST_MIB << 20);
	staller_free(&deaf);
	staller_free(&hoarder);
	staller_free(&agent);
	others_are_answered(&w, 10, 1);
	world_fini(&w);
}

/* ---- logs ------------------------------------------------------------------------------------ */

static void calls_go_on_without_a_log(struct world *w)
{
	static const char *const padded[] = { "--set", "log.target=stderr", NULL };
	world_sim(w, "sandboxes=1");
	world_daemon(w, w->before ? (const char *const[]){ "--set", "log.target=journal", NULL }
				  : padded);
	for (unsigned i = 0; i < 10; i++) {
		assert_int_equal(kill(w->daemon, SIGHUP), 0); /* it says so */
		others_are_answered(w, OTHERS_CALLS / 10, 0);
		pods_are_made(w, i * 10, 10);
	}
	assert_true(world_metric(w, "crikeepd_log_dropped_total") > 2);
}

static void a_log_pipe_that_is_full_delays_nobody(void **state)
{
	struct world w;
	int fds[2];
	(void)state;
	load_forget_clients();
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_int_equal(fcntl(fds[1], F_SETFL, O_NONBLOCK), 0);
	for (size_t step = 4096; step; step = step > 1 ? step / 2 : 0) {
		char much[4096] = { 0 };
		while (write(fds[1], much, step) > 0)
			continue;
	}
	/* as a shell makes them: whoever writes waits */
	assert_int_equal(fcntl(fds[1], F_SETFL, 0), 0);
	world_init(&w);
	w.log_fd = fds[1];
	calls_go_on_without_a_log(&w);
	world_fini(&w);
	close(fds[0]);
	close(fds[1]);
}

/* a mount namespace with a /run of its own, and in it a journal that takes nothing any more */
static void stopped_journal(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX,
				       .sun_path = "/run/systemd/journal/socket" };
	int journal = socket(AF_UNIX, SOCK_DGRAM, 0),
	    writer = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("tmpfs", "/run", "tmpfs", 0, NULL) < 0 || mkdir("/run/systemd", 0755) < 0 ||
	    mkdir("/run/systemd/journal", 0755) < 0 ||
	    bind(journal, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    connect(writer, (struct sockaddr *)&address, sizeof(address)) < 0)
		_exit(125);
	while (send(writer, "MESSAGE=full\n", 13, MSG_DONTWAIT) > 0)
		continue;
	/* the socket that nobody reads stays open in crikeepd itself */
}

static bool may_have_a_run_of_its_own(void)
{
	int status = -1;
	pid_t pid = fork();
	if (pid == 0) {
		stopped_journal();
		_exit(0);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

static void a_journal_that_has_stopped_delays_nobody(void **state)
{
	struct world w;
	(void)state;
	load_forget_clients();
	if (!may_have_a_run_of_its_own()) {
		print_message("a mount namespace needs root\n");
		skip();
	}
	world_init(&w);
	w.before = stopped_journal;
	calls_go_on_without_a_log(&w);
	world_fini(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_client_that_never_reads_delays_nobody),
		cmocka_unit_test(a_log_pipe_that_is_full_delays_nobody),
		cmocka_unit_test(a_journal_that_has_stopped_delays_nobody),
	};
	return CK_TEST_MAIN(tests);
}
