/* SPDX-License-Identifier: Apache-2.0 */
/* crikeepd under a service manager, which holds its sockets and its connection to the runtime: its
 * end undoes nothing and refuses nobody. The runtime is one that undoes what it makes when its
 * caller's connection ends, as containerd does. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>

#include "src/base/clock.h"
#include "src/base/limits.h"
#include "src/cri/message.h"
#include "tests/daemon/stage.h"

#define CK_TEST_SECONDS 180
#include "tests/unit/harness.h"

struct service {
	struct stage s;
	char log[WORLD_PATH], sockets[3][WORLD_PATH + 16];
	const char *under[8];
	unsigned lives;
};

static int set_up(void **state)
{
	struct service *sv = calloc(1, sizeof(*sv));
	assert_non_null(sv);
	stage_init(&sv->s);
	assert_true(snprintf(sv->log, WORLD_PATH, "%s/manager", sv->s.w.dir) < WORLD_PATH);
	*state = sv;
	return 0;
}

static int tear_down(void **state)
{
	struct service *sv = *state;
	stage_fini(&sv->s);
	free(sv);
	return 0;
}

#define SERVICE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

/* ---- what the service manager says ----------------------------------------------------------- */

/* how many lines of @event there are; of the last one: its number, and when it came (ms) */
static unsigned events(const struct service *sv, const char *event, long *ret_number, long *ret_ms)
{
	char *text = world_file(sv->log), *next, *word;
	unsigned n = 0;
	for (char *line = strtok_r(text, "\n", &next); line; line = strtok_r(NULL, "\n", &next)) {
		long ms = strtol(line, &word, 10);
		size_t len = strlen(event);
		if (strncmp(++word, event, len) != 0 || (word[len] && word[len] != ' '))
			continue;
		n++;
		if (ret_ms)
			*ret_ms = ms;
		if (ret_number)
			*ret_number = strtol(word + len, NULL, 10);
	}
	free(text);
	return n;
}

static void until(const struct service *sv, const char *event, unsigned n)
{
	char text[32];
	snprintf(text, sizeof(text), " %s", event);
	world_until_in(&sv->s.w, sv->log, text, n, 20);
}

static pid_t main_pid(const struct service *sv)
{
	long pid = 0;
	events(sv, "start", &pid, NULL);
	return (pid_t)pid;
}

/* ---- its lives ------------------------------------------------------------------------------- */

static void served(struct service *sv)
{
	until(sv, "ready", ++sv->lives);
}

static void meet(struct service *sv)
{
	cri_open(&sv->s.kubelet, sv->s.w.cri);
	cri_open(&sv->s.agent, sv->s.w.unfiltered);
}

static void begin(struct service *sv, const char *simulator)
{
	struct world *w = &sv->s.w;
	snprintf(sv->sockets[0], sizeof(sv->sockets[0]), "cri=%s", w->cri);
	snprintf(sv->sockets[1], sizeof(sv->sockets[1]), "unfiltered=%s", w->unfiltered);
	snprintf(sv->sockets[2], sizeof(sv->sockets[2]), "metrics=%s", w->metrics);
	const char *const under[] = { "tests/daemon/service-manager",
				      sv->log,
				      "32",
				      sv->sockets[0],
				      sv->sockets[1],
				      sv->sockets[2],
				      "--",
				      NULL };
	memcpy(sv->under, under, sizeof(under));
	w->under = sv->under;
	world_sim(w, simulator);
	world_daemon(w, NULL);
	served(sv);
	meet(sv);
}

/* kill -9, or SIGTERM as by "systemctl restart"; and its next life */
static void again(struct service *sv, int signal)
{
	stage_leave(&sv->s);
	kill(signal == SIGKILL ? main_pid(sv) : sv->s.w.daemon,
	     signal == SIGKILL ? SIGKILL : SIGUSR1);
	served(sv);
	meet(sv);
}

/* ---- what is being made ---------------------------------------------------------------------- */

static void it_ends_and_the_sandbox_is_made_once(struct service *sv, int signal)
{
	struct stage *s = &sv->s;
	begin(sv, "create=3s,cancel=rollback");
	assert_int_equal(pod_run(&s->kubelet, "late", 0, "300m", NULL), CK_GRPC_DEADLINE_EXCEEDED);
	until(sv, "stored", 1);
	again(sv, signal);
	assert_true(world_logged(&s->w, "connections to the runtime were kept open (1)"));
	assert_int_equal(pod_n(&s->kubelet), 0);
	assert_int_equal(pod_run(&s->kubelet, "late", 0, "30S", NULL), CK_GRPC_OK);
	assert_int_equal(world_count(&s->w, "begin sandbox"), 1);
	assert_int_equal(world_count(&s->w, "rollback sandbox"), 0);
	assert_int_equal(pod_n(&s->kubelet), 1);
	until(sv, "closed", 1); /* what it carried is decided */
}

static void killed_while_creating_the_sandbox_is_made_once(void **state)
{
	it_ends_and_the_sandbox_is_made_once(*state, SIGKILL);
}

static void restarted_while_creating_it_ends_at_once_and_the_sandbox_is_made_once(void **state)
{
	struct service *sv = *state;
	long code = -1, stop = 0, end = 0;
	it_ends_and_the_sandbox_is_made_once(sv, SIGTERM);
	events(sv, "stop", NULL, &stop);
	events(sv, "end", &code, &end);
	assert_int_equal(code, 0);
	unsigned long slow = ck_test_env("CK_TEST_SLOW", 1);
	assert_in_range(end - stop, 0, slow ? 1000 * slow : ULONG_MAX);
}

/* The connection goes from life to life until what it carries is decided. */
static void configure(const struct world *w, const char *text)
{
	FILE *file = fopen(w->config, "we");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

/* Its answer is lost, as that of any call; the kubelet finds the sandbox in its list. */
static void with_shadow_a_restart_undoes_nothing_whatever_comes_next(void **state)
{
	struct service *sv = *state;
	struct stage *s = &sv->s;
	struct cri_call call;
	configure(&s->w, "shadow: true\n");
	begin(sv, "create=4s,cancel=rollback");
	for (unsigned n = 1; n <= 2; n++) {
		struct ck_bytes request = cri_run_request(n == 1 ? "one" : "two", 0);
		cri_start(&s->kubelet, &call, "RunPodSandbox", &request, "60S");
		world_until(&s->w, "begin sandbox", n, 10);
		if (n == 2)
			configure(&s->w, "shadow: false\n");
		kill(n == 1 ? main_pid(sv) : s->w.daemon, n == 1 ? SIGKILL : SIGUSR1);
		served(sv);
		cri_wait(&call);
		assert_false(call.answered && call.status.code == CK_GRPC_OK);
		cri_end(&call);
		stage_leave(s);
		meet(sv);
		world_until(&s->w, "create sandbox", n, 20);
		assert_int_equal(pod_n(&s->kubelet), n);
	}
	assert_int_equal(world_count(&s->w, "rollback sandbox"), 0);
	assert_int_equal(world_count(&s->w, "begin sandbox"), 2);
}

static void killed_three_times_the_sandbox_is_made_once(void **state)
{
	struct service *sv = *state;
	struct stage *s = &sv->s;
	begin(sv, "create=6s,cancel=rollback");
	assert_int_equal(pod_run(&s->kubelet, "late", 0, "300m", NULL), CK_GRPC_DEADLINE_EXCEEDED);
	until(sv, "stored", 1);
	for (int i = 0; i < 3; i++)
		again(sv, SIGKILL);
	assert_int_equal(pod_run(&s->kubelet, "late", 0, "60S", NULL), CK_GRPC_OK);
	assert_int_equal(world_count(&s->w, "begin sandbox"), 1);
	until(sv, "closed", 1);
}

static void killed_while_starting_the_container_is_started_once(void **state)
{
	struct service *sv = *state;
	struct stage *s = &sv->s;
	char sandbox[POD_ID], id[POD_ID];
	struct cri_call call;
	struct ck_bytes request = { 0 };
	begin(sv, "start=3s,cancel=rollback");
	assert_int_equal(pod_run(&s->kubelet, "web", 0, "20S", sandbox), CK_GRPC_OK);
	assert_int_equal(pod_create(&s->kubelet, sandbox, "web", 0, "20S", id), CK_GRPC_OK);
	assert_int_equal(ck_cri_put_id(&request, id), 0);
	cri_start(&s->kubelet, &call, "StartContainer", &request, "300m");
	cri_wait(&call);
	assert_int_equal(call.status.code, CK_GRPC_DEADLINE_EXCEEDED);
	cri_end(&call);
	again(sv, SIGKILL);
	world_until(&s->w, "start container", 1, 20);
	/* the next attempt waits for the start, and is then told that it runs (K34) */
	assert_int_equal(pod_create(&s->kubelet, sandbox, "web", 1, "20S", NULL),
			 CK_GRPC_ALREADY_EXISTS);
	assert_int_equal(world_count(&s->w, "begin container"), 1);
	until(sv, "closed", 1);
}

/* what carries nothing is not kept open */
static void killed_with_nothing_under_way_it_ends_the_connection(void **state)
{
	struct service *sv = *state;
	struct stage *s = &sv->s;
	begin(sv, NULL);
	assert_int_equal(pod_run(&s->kubelet, "web", 0, "20S", NULL), CK_GRPC_OK);
	until(sv, "stored", 1);
	again(sv, SIGKILL);
	until(sv, "closed", 1);
	assert_int_equal(pod_n(&s->kubelet), 1);
}

static void the_end_of_the_runtime_ends_the_connection(void **state)
{
	struct service *sv = *state;
	struct stage *s = &sv->s;
	begin(sv, "create=1h,cancel=rollback");
	assert_int_equal(pod_run(&s->kubelet, "late", 0, "300m", NULL), CK_GRPC_DEADLINE_EXCEEDED);
	until(sv, "stored", 1);
	again(sv, SIGKILL);
	world_kill(&s->w.sim, SIGKILL);
	until(sv, "closed", 1);
	world_sim(&s->w, NULL);
	assert_int_equal(pod_run(&s->kubelet, "late", 0, "60S", NULL), CK_GRPC_OK);
}

/* A loop of crashes that always leaves something behind keeps only what still carries something. */
static void what_carries_nothing_any_more_is_ended_though_a_newer_one_does(void **state)
{
	struct service *sv = *state;
	struct stage *s = &sv->s;
	char web[POD_ID];
	begin(sv, "create.sandbox=1s,create.container=1h,cancel=rollback");
	assert_int_equal(pod_run(&s->kubelet, "web", 0, "20S", web), CK_GRPC_OK);
	assert_int_equal(pod_run(&s->kubelet, "late", 0, "300m", NULL), CK_GRPC_DEADLINE_EXCEEDED);
	again(sv, SIGKILL);
	assert_int_equal(pod_create(&s->kubelet, web, "web", 0, "300m", NULL),
			 CK_GRPC_DEADLINE_EXCEEDED);
	world_until(&s->w, "begin container", 1, 10);
	again(sv, SIGKILL);
	assert_int_equal(pod_run(&s->kubelet, "late", 0, "30S", NULL), CK_GRPC_OK);
	until(sv, "closed", 1);
	again(sv, SIGKILL);
	assert_int_equal(pod_n(&s->kubelet), 2);
	assert_int_equal(events(sv, "closed", NULL, NULL), 1);
	assert_int_equal(world_count(&s->w, "begin sandbox"), 2);
	assert_int_equal(world_count(&s->w, "begin container"), 1);
	assert_int_equal(world_count(&s->w, "rollback container"), 0);
}

/* Each life leaves a creation behind. The first ones stay protected; no more descriptors are kept
 * than can be. */
static void a_crash_loop_does_not_fill_the_store(void **state)
{
	struct service *sv = *state;
	struct stage *s = &sv->s;
	char name[16];
	long stored = 0;
	begin(sv, "create=1h,cancel=rollback");
	for (unsigned life = 0; life < 50; life++) {
		snprintf(name, sizeof(name), "p%u", life);
		assert_int_equal(pod_run(&s->kubelet, name, 0, "300m", NULL),
				 CK_GRPC_DEADLINE_EXCEEDED);
		world_until(&s->w, "begin sandbox", life + 1, 10);
		again(sv, SIGKILL);
	}
	assert_int_equal(events(sv, "stored", &stored, NULL), CK_HELD_MAX);
	assert_int_equal(stored, CK_HELD_MAX);
	assert_int_equal(events(sv, "full", NULL, NULL), 0);
	assert_int_equal(events(sv, "closed", NULL, NULL), 0);
	world_until(&s->w, "rollback sandbox", 50 - CK_HELD_MAX, 20);
	assert_int_equal(world_count(&s->w, "rollback sandbox"), 50 - CK_HELD_MAX);
	assert_true(world_logged(&s->w, "This one is not kept open"));
}

/* ---- who calls ------------------------------------------------------------------------------- */

/* a list, by a client that does what grpc-go does: a call that was not begun is made again. false:
 * it is broken */
static bool list(struct service *sv)
{
	struct cri_client *kubelet = &sv->s.kubelet;
	for (;;) {
		struct cri_call call;
		struct ck_bytes request = { 0 };
		if (kubelet->fd < 0 || kubelet->draining) {
			cri_close(kubelet);
			cri_open(kubelet, sv->s.w.cri); /* fails the test if it is refused */
		}
		cri_start(kubelet, &call, "ListPodSandbox", &request, "30S");
		cri_wait(&call);
		bool answered = call.answered && call.status.code == CK_GRPC_OK,
		     unbegun = !call.answered && call.error == CK_H2_REFUSED_STREAM;
		cri_end(&call);
		if (!unbegun)
			return answered;
	}
}

static void a_restart_refuses_nobody_and_breaks_one_call_at_most(void **state)
{
	struct service *sv = *state;
	uint64_t longest = 0;
	begin(sv, "list=20ms");
	for (unsigned restart = 0; restart < 20; restart++) {
		unsigned broken = 0, after = 0;
		if (restart % 2)
			kill(main_pid(sv), SIGKILL);
		else
			kill(sv->s.w.daemon, SIGUSR1);
		sv->lives++;
		while (after < 3) { /* the next life has served some */
			uint64_t asked = ck_clock_ns(CLOCK_BOOTTIME);
			broken += !list(sv);
			asked = ck_clock_ns(CLOCK_BOOTTIME) - asked;
			longest = asked > longest ? asked : longest;
			after += events(sv, "ready", NULL, NULL) >= sv->lives;
		}
		assert_in_range(broken, 0, 1);
	}
	printf("the longest list over a restart: %u ms\n", (unsigned)(longest / CK_NS_PER_MS));
}

/* ---- what an earlier life left --------------------------------------------------------------- */

static int passed;

static void with_a_connection(void)
{
	char pid[32];
	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	if (dup2(passed, 3) < 0 || fcntl(3, F_SETFD, 0) < 0 || setenv("LISTEN_FDS", "1", 1) ||
	    setenv("LISTEN_PID", pid, 1) || setenv("LISTEN_FDNAMES", "runtime-1", 1))
		_exit(126);
}

/* The runtime must never wait for somebody to read what it sends to an earlier life. */
static void what_comes_for_an_earlier_life_is_read(void **state)
{
	struct stage *s = *state;
	static const char much[1u << 16];
	int ends[2];
	stage_start(s, "create=1h,cancel=finish", NULL);
	assert_int_equal(pod_run(&s->kubelet, "late", 0, "300m", NULL), CK_GRPC_DEADLINE_EXCEEDED);
	stage_kill(s);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	passed = ends[1];
	s->w.before = with_a_connection;
	stage_again(s);
	close(ends[1]);
	for (size_t sent = 0; sent < 64 * sizeof(much);) {
		struct pollfd room = { .fd = ends[0], .events = POLLOUT };
		assert_int_equal(poll(&room, 1, 30000), 1);
		ssize_t n = send(ends[0], much, sizeof(much), MSG_NOSIGNAL | MSG_DONTWAIT);
		assert_true(n > 0 || errno == EAGAIN);
		sent += n > 0 ? (size_t)n : 0;
	}
	close(ends[0]);
	assert_int_equal(pod_n(&s->kubelet), 0); /* and it serves on */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SERVICE(killed_while_creating_the_sandbox_is_made_once),
		SERVICE(restarted_while_creating_it_ends_at_once_and_the_sandbox_is_made_once),
		SERVICE(with_shadow_a_restart_undoes_nothing_whatever_comes_next),
		SERVICE(killed_three_times_the_sandbox_is_made_once),
		SERVICE(killed_while_starting_the_container_is_started_once),
		SERVICE(killed_with_nothing_under_way_it_ends_the_connection),
		SERVICE(the_end_of_the_runtime_ends_the_connection),
		SERVICE(what_carries_nothing_any_more_is_ended_though_a_newer_one_does),
		SERVICE(a_crash_loop_does_not_fill_the_store),
		SERVICE(a_restart_refuses_nobody_and_breaks_one_call_at_most),
		ON_STAGE(what_comes_for_an_earlier_life_is_read),
	};
	return CK_TEST_MAIN(tests);
}
