/* SPDX-License-Identifier: Apache-2.0 */
/* crikeepd or the runtime is killed, told to end, or finds its database damaged: no leak, nothing shown twice or too early. */
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>

#include "src/rpc/address.h"
#include "tests/daemon/pods.h"
#include "tests/daemon/world.h"

#define CK_TEST_SECONDS 180
#include "tests/unit/harness.h"

struct fixture {
	struct world w;
	struct cri_client kubelet, agent;
	const char *const *flags;
};

static void open_clients(struct fixture *f)
{
	cri_open(&f->kubelet, f->w.cri);
	cri_open(&f->agent, f->w.unfiltered);
}

static void close_clients(struct fixture *f)
{
	cri_close(&f->kubelet);
	cri_close(&f->agent);
}

static void start(struct fixture *f, const char *simulator, const char *const *flags)
{
	f->flags = flags;
	world_sim(&f->w, simulator);
	world_daemon(&f->w, flags);
	open_clients(f);
}

/* kill -9 of crikeepd, and its next life */
static void kill_daemon(struct fixture *f)
{
	close_clients(f);
	assert_int_equal(world_kill(&f->w.daemon, SIGKILL), 128 + SIGKILL);
}

static void new_life(struct fixture *f)
{
	world_daemon(&f->w, f->flags);
	open_clients(f);
}

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	assert_non_null(f);
	f->kubelet.fd = f->agent.fd = -1;
	world_init(&f->w);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;
	close_clients(f);
	world_fini(&f->w);
	free(f);
	return 0;
}

static void keep_one(struct fixture *f, char *ret_id)
{
	assert_int_equal(pod_run(&f->kubelet, "late", 0, "300m", NULL), CK_GRPC_DEADLINE_EXCEEDED);
	world_until_logged(&f->w, "CREATING -> KEPT", 10);
	pod_id_of(&f->agent, 0, ret_id);
}

/* ---- crikeepd is killed ---------------------------------------------------------------------------------------------- */

static void killed_while_kept_it_hands_back_the_same_sandbox(void **state)
{
	struct fixture *f = *state;
	char kept[POD_ID], id[POD_ID];
	start(f, "create=600ms", NULL);
	keep_one(f, kept);
	kill_daemon(f);
	new_life(f);
	assert_int_equal(pod_n(&f->kubelet), 0);
	assert_int_equal(pod_run(&f->kubelet, "late", 0, "20S", id), CK_GRPC_OK);
	assert_string_equal(id, kept);
	assert_int_equal(world_count(&f->w, "begin sandbox"), 1);
}

static void killed_while_creating_and_rolled_back_it_is_made_once_more(void **state)
{
	struct fixture *f = *state;
	start(f, "create=1s,cancel=rollback", NULL);
	assert_int_equal(pod_run(&f->kubelet, "late", 0, "300m", NULL), CK_GRPC_DEADLINE_EXCEEDED);
	kill_daemon(f);
	world_until(&f->w, "rollback sandbox", 1, 10);
	new_life(f);
	assert_int_equal(pod_run(&f->kubelet, "late", 0, "30S", NULL), CK_GRPC_OK);
	assert_int_equal(world_count(&f->w, "create sandbox"), 1);
	assert_int_equal(pod_n(&f->agent), 1);
}

/* the runtime goes on, and ends long after the restart */
static void killed_while_creating_and_finished_after_the_restart_it_is_found_and_kept(void **state)
{
	struct fixture *f = *state;
	start(f, "create=4s,cancel=finish", NULL);
	assert_int_equal(pod_run(&f->kubelet, "late", 0, "300m", NULL), CK_GRPC_DEADLINE_EXCEEDED);
	kill_daemon(f);
	new_life(f);
	world_until(&f->w, "create sandbox", 1, 20);
	while (pod_n(&f->agent) == 0)
		assert_int_equal(pod_n(&f->kubelet), 0);
	assert_int_equal(pod_n(&f->kubelet), 0); /* by its key, while its id is not known */
	world_until_logged(&f->w, "CREATING -> KEPT", 20);
	assert_int_equal(pod_run(&f->kubelet, "late", 0, "30S", NULL), CK_GRPC_OK);
	assert_int_equal(world_count(&f->w, "begin sandbox"), 1);
	assert_int_equal(pod_n(&f->kubelet), 1);
}

static void killed_while_evicting_it_goes_on_evicting(void **state)
{
	struct fixture *f = *state;
	static const char *const flags[] = { "--ttl", "500ms", NULL };
	char kept[POD_ID];
	start(f, "create=500ms,remove=1500ms", flags);
	keep_one(f, kept);
	world_until(&f->w, "stop sandbox", 1, 20);
	kill_daemon(f);
	new_life(f);
	world_until(&f->w, "remove sandbox", 1, 20);
	world_until_logged(&f->w, "EVICTING -> GONE", 20);
	assert_int_equal(pod_n(&f->agent), 0);
}

/* ---- the runtime is killed ------------------------------------------------------------------------------------------- */

static void runtime_killed_while_kept_it_hands_back_the_same_sandbox(void **state)
{
	struct fixture *f = *state;
	char kept[POD_ID], id[POD_ID];
	start(f, "create=600ms", NULL);
	keep_one(f, kept);
	world_kill(&f->w.sim, SIGKILL);
	world_until_logged(&f->w, "the runtime is gone", 10);
	assert_int_equal(pod_run(&f->kubelet, "late", 0, "1S", NULL), CK_GRPC_UNAVAILABLE);
	world_sim(&f->w, "create=600ms");
	assert_int_equal(pod_run(&f->kubelet, "late", 0, "30S", id), CK_GRPC_OK);
	assert_string_equal(id, kept);
	assert_int_equal(pod_n(&f->kubelet), 1);
}

static void runtime_killed_while_creating_it_is_made_again_for_who_waits(void **state)
{
	struct fixture *f = *state;
	struct cri_call waits;
	start(f, "create=2s", NULL);
	struct ck_bytes request = cri_run_request("late", 0);
	cri_start(&f->kubelet, &waits, "RunPodSandbox", &request, "40S");
	world_until(&f->w, "begin sandbox", 1, 10);
	world_kill(&f->w.sim, SIGKILL);
	world_sim(&f->w, "create=200ms");
	cri_wait(&waits);
	assert_int_equal(waits.status.code, CK_GRPC_OK);
	cri_end(&waits);
	assert_int_equal(world_count(&f->w, "create sandbox"), 1);
	assert_int_equal(pod_n(&f->kubelet), 1);
}

/* ---- the database ---------------------------------------------------------------------------------------------------- */

static void damage(const struct world *w)
{
	char path[WORLD_PATH + 16], rubbish[8192];
	snprintf(path, sizeof(path), "%s/crikeep.db", w->state);
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	memset(rubbish, 0xa5, sizeof(rubbish));
	assert_int_equal(pwrite(fd, rubbish, sizeof(rubbish), 0), sizeof(rubbish));
	close(fd);
	snprintf(path, sizeof(path), "%s/crikeep.db-wal", w->state);
	fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	if (fd >= 0)
		close(fd);
}

/* what it cannot know any more it takes for the kubelet's: shown, adopted from the list, never destroyed (K27, K33) */
static void a_damaged_database_is_set_aside_and_nothing_is_destroyed(void **state)
{
	struct fixture *f = *state;
	char kept[POD_ID], used[POD_ID];
	start(f, "create=500ms", NULL);
	assert_int_equal(pod_run(&f->kubelet, "used", 0, "20S", used), CK_GRPC_OK);
	assert_int_equal(pod_run(&f->kubelet, "late", 0, "300m", NULL), CK_GRPC_DEADLINE_EXCEEDED);
	world_until_logged(&f->w, "sandbox ns/late attempt 0: CREATING -> KEPT", 10);
	kill_daemon(f);
	damage(&f->w);
	new_life(f);
	assert_true(world_logged(&f->w, "set aside"));
	assert_true(pod_shown(&f->kubelet, used));
	assert_int_equal(pod_n(&f->kubelet), 2);
	assert_int_equal(pod_n(&f->agent), 2);
	pod_id_of(&f->kubelet, 0, kept);
	assert_int_equal(world_count(&f->w, "remove sandbox"), 0);
	assert_int_equal(cri_do_id(&f->kubelet, "StopPodSandbox", kept), CK_GRPC_OK);
	assert_int_equal(cri_do_id(&f->kubelet, "RemovePodSandbox", kept), CK_GRPC_OK);
	assert_int_equal(pod_n(&f->kubelet), 1);
}

/* ---- told to end ----------------------------------------------------------------------------------------------------- */

static void told_to_end_it_answers_who_waits_for_what_is_being_made(void **state)
{
	struct fixture *f = *state;
	struct cri_call creates, joins;
	static const char *const flags[] = { "--set", "stop_wait=30s", NULL };
	start(f, "create=1500ms", flags);
	struct ck_bytes a = cri_run_request("late", 0), b = cri_run_request("late", 0);
	cri_start(&f->kubelet, &creates, "RunPodSandbox", &a, "30S");
	cri_start(&f->kubelet, &joins, "RunPodSandbox", &b, "30S");
	world_until(&f->w, "begin sandbox", 1, 10);
	kill(f->w.daemon, SIGTERM);
	cri_wait(&creates);
	cri_wait(&joins);
	assert_int_equal(creates.status.code, CK_GRPC_OK);
	assert_int_equal(joins.status.code, CK_GRPC_OK);
	assert_string_equal(cri_text(&creates.reply, "1"), cri_text(&joins.reply, "1"));
	cri_end(&creates);
	cri_end(&joins);
	assert_int_equal(world_kill(&f->w.daemon, 0), 0);
	close_clients(f);
	new_life(f);
	assert_int_equal(pod_n(&f->kubelet), 1);
}

static void told_to_end_it_takes_no_new_call_and_leaves_no_socket(void **state)
{
	struct fixture *f = *state;
	static const char *const flags[] = { "--set", "stop_wait=1s", NULL };
	start(f, "create=10s", flags);
	assert_int_equal(pod_run(&f->kubelet, "late", 0, "300m", NULL), CK_GRPC_DEADLINE_EXCEEDED);
	kill(f->w.daemon, SIGTERM);
	world_until_logged(&f->w, "stopping; 1 creations in flight", 10);
	assert_true(ck_unix_connect(f->w.cri, NULL) < 0);
	assert_int_equal(world_kill(&f->w.daemon, 0), 0);
	assert_true(world_logged(&f->w, "have not ended within stop_wait"));
	assert_int_not_equal(access(f->w.cri, F_OK), 0);
	assert_int_not_equal(access(f->w.metrics, F_OK), 0);
}

static void reloaded_it_takes_over_what_may_change(void **state)
{
	struct fixture *f = *state;
	start(f, NULL, NULL);
	char *conf = f->w.config;
	int fd = open(conf, O_WRONLY | O_TRUNC | O_CLOEXEC);
	static const char text[] = "cache:\n  ttl: 3m\n";
	assert_int_equal(write(fd, text, sizeof(text) - 1), sizeof(text) - 1);
	close(fd);
	kill(f->w.daemon, SIGHUP);
	world_until_logged(&f->w, "cache.ttl", 10);
	world_until_logged(&f->w, "reloaded the configuration", 10);
	assert_int_equal(truncate(conf, 0), 0);
	fd = open(conf, O_WRONLY | O_CLOEXEC);
	static const char wrong[] = "cache:\n  tll: 3m\n";
	assert_int_equal(write(fd, wrong, sizeof(wrong) - 1), sizeof(wrong) - 1);
	close(fd);
	kill(f->w.daemon, SIGHUP);
	world_until_logged(&f->w, "crikeep.yaml:2", 10);
	assert_int_equal(pod_n(&f->kubelet), 0); /* it serves on */
}

/* ---- two of them ----------------------------------------------------------------------------------------------------- */

static void a_second_one_ends_by_naming_the_first(void **state)
{
	struct fixture *f = *state;
	struct world second;
	char text[32];
	start(f, NULL, NULL);
	second = f->w;
	snprintf(second.cri, sizeof(second.cri), "%s/second.sock", f->w.dir);
	assert_int_equal(world_daemon_fails(&second, NULL), 1);
	snprintf(text, sizeof(text), "%d", (int)f->w.daemon);
	assert_true(world_logged(&f->w, text));
	assert_int_equal(pod_n(&f->kubelet), 0);
	/* with a state of its own, but at the same path */
	second = f->w;
	snprintf(second.state, sizeof(second.state), "%s/second", f->w.dir);
	snprintf(second.metrics, sizeof(second.metrics), "%s/second.m", f->w.dir);
	snprintf(second.unfiltered, sizeof(second.unfiltered), "%s/second.u", f->w.dir);
	assert_int_equal(world_daemon_fails(&second, NULL), 1);
	assert_true(world_logged(&f->w, "another process listens there"));
	assert_int_equal(pod_n(&f->kubelet), 0);
	struct cri_client again;
	cri_open(&again, f->w.cri);
	assert_int_equal(pod_n(&again), 0);
	cri_close(&again);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(killed_while_kept_it_hands_back_the_same_sandbox),
		TEST(killed_while_creating_and_rolled_back_it_is_made_once_more),
		TEST(killed_while_creating_and_finished_after_the_restart_it_is_found_and_kept),
		TEST(killed_while_evicting_it_goes_on_evicting),
		TEST(runtime_killed_while_kept_it_hands_back_the_same_sandbox),
		TEST(runtime_killed_while_creating_it_is_made_again_for_who_waits),
		TEST(a_damaged_database_is_set_aside_and_nothing_is_destroyed),
		TEST(told_to_end_it_answers_who_waits_for_what_is_being_made),
		TEST(told_to_end_it_takes_no_new_call_and_leaves_no_socket),
		TEST(reloaded_it_takes_over_what_may_change),
		TEST(a_second_one_ends_by_naming_the_first),
	};
	return CK_TEST_MAIN(tests);
}
