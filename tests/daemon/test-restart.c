/* SPDX-License-Identifier: Apache-2.0 */
/* crikeepd or the runtime is killed, told to end, or finds its database damaged: no leak, nothing
 * shown twice or too early. */
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/rpc/address.h"
#include "tests/daemon/stage.h"

#define CK_TEST_SECONDS 180
#include "tests/unit/harness.h"

/* ---- crikeepd is killed ---------------------------------------------------------------------- */

static void killed_while_kept_it_hands_back_the_same_sandbox(void **state)
{
	struct stage *s = *state;
	char kept[POD_ID], id[POD_ID];
	stage_start(s, "create=600ms", NULL);
	stage_keep(s, kept);
	stage_kill(s);
	stage_again(s);
	assert_int_equal(pod_n(&s->kubelet), 0);
	assert_int_equal(pod_run(&s->kubelet, "late", 0, "20S", id), CK_GRPC_OK);
	assert_string_equal(id, kept);
	assert_int_equal(world_count(&s->w, "begin sandbox"), 1);
}

static void killed_while_creating_and_rolled_back_it_is_made_once_more(void **state)
{
	struct stage *s = *state;
	stage_start(s, "create=2s,cancel=rollback", NULL);
	assert_int_equal(pod_run(&s->kubelet, "late", 0, "300m", NULL), CK_GRPC_DEADLINE_EXCEEDED);
	stage_kill(s);
	world_until(&s->w, "rollback sandbox", 1, 10);
	stage_again(s);
	assert_int_equal(pod_run(&s->kubelet, "late", 0, "30S", NULL), CK_GRPC_OK);
	assert_int_equal(world_count(&s->w, "create sandbox"), 1);
	assert_int_equal(pod_n(&s->agent), 1);
}

/* Each life is too short for the 5 s of absence before a request is sent once more (K8). The first
 * creation takes so long that the kill comes before its end, also on a busy machine. */
static void killed_again_and_again_it_is_made_once_more_all_the_same(void **state)
{
	struct stage *s = *state;
	int code = -1;
	stage_start(s, "create=3s,cancel=rollback", NULL);
	assert_int_equal(pod_run(&s->kubelet, "late", 0, "100m", NULL), CK_GRPC_DEADLINE_EXCEEDED);
	stage_kill(s);
	world_until(&s->w, "rollback sandbox", 1, 10);
	world_kill(&s->w.sim, SIGKILL);
	world_sim(&s->w, "create=300ms,cancel=rollback");
	for (int lives = 0; lives < 20 && code != CK_GRPC_OK; lives++) {
		stage_again(s);
		code = pod_run(&s->kubelet, "late", 0, "1500m", NULL);
		stage_kill(s);
	}
	assert_int_equal(code, CK_GRPC_OK);
}

/* the runtime goes on, and ends long after the restart */
static void killed_while_creating_and_finished_after_the_restart_it_is_found_and_kept(void **state)
{
	struct stage *s = *state;
	stage_start(s, "create=4s,cancel=finish", NULL);
	assert_int_equal(pod_run(&s->kubelet, "late", 0, "300m", NULL), CK_GRPC_DEADLINE_EXCEEDED);
	stage_kill(s);
	stage_again(s);
	world_until(&s->w, "create sandbox", 1, 20);
	while (pod_n(&s->agent) == 0)
		assert_int_equal(pod_n(&s->kubelet), 0);
	assert_int_equal(pod_n(&s->kubelet), 0); /* by its key, while its id is not known */
	world_until_logged(&s->w, "UNKNOWN -> KEPT", 20);
	assert_int_equal(pod_run(&s->kubelet, "late", 0, "30S", NULL), CK_GRPC_OK);
	assert_int_equal(world_count(&s->w, "begin sandbox"), 1);
	assert_int_equal(pod_n(&s->kubelet), 1);
}

static void killed_while_evicting_it_goes_on_evicting(void **state)
{
	struct stage *s = *state;
	static const char *const flags[] = { "--ttl", "500ms", NULL };
	char kept[POD_ID];
	stage_start(s, "create=500ms,remove=1500ms", flags);
	stage_keep(s, kept);
	world_until(&s->w, "stop sandbox", 1, 20);
	stage_kill(s);
	stage_again(s);
	world_until(&s->w, "remove sandbox", 1, 20);
	world_until_logged(&s->w, "EVICTING -> GONE", 20);
	assert_int_equal(pod_n(&s->agent), 0);
}

/* Its answer was not confirmed yet, so it is kept again (K25). But who names the whole id has it
 * from the answer (K7). */
static void killed_just_after_its_answer_a_container_can_be_started(void **state)
{
	struct stage *s = *state;
	char sandbox[POD_ID], id[POD_ID], beginning[9];
	unsigned tries = 0;
	stage_start(s, NULL, NULL);
	assert_int_equal(pod_run(&s->kubelet, "web", 0, "20S", sandbox), CK_GRPC_OK);
	do { /* a kill that comes after CK_ANSWER_SETTLE finds the answer confirmed */
		assert_true(tries < 20);
		assert_int_equal(pod_create(&s->kubelet, sandbox, "web", tries, "20S", id),
				 CK_GRPC_OK);
		stage_kill(s);
		stage_again(s);
		tries++;
	} while (container_shown(&s->kubelet, id));
	world_until_logged(&s->w, "COMMITTED -> KEPT", 20);
	snprintf(beginning, sizeof(beginning), "%.8s", id);
	assert_int_equal(cri_do_id(&s->kubelet, "ContainerStatus", id), CK_GRPC_NOT_FOUND);
	assert_int_equal(cri_do_id(&s->kubelet, "StartContainer", beginning), CK_GRPC_NOT_FOUND);
	assert_false(container_shown(&s->kubelet, id));
	assert_int_equal(cri_do_id(&s->kubelet, "StartContainer", id), CK_GRPC_OK);
	assert_true(container_shown(&s->kubelet, id));
	stage_kill(s);
	stage_again(s);
	assert_true(container_shown(&s->kubelet, id));
	assert_int_equal(world_count(&s->w, "begin container"), tries);
	assert_int_equal(world_count(&s->w, "remove container"), 0);
}

/* ---- the runtime is killed ------------------------------------------------------------------- */

static void runtime_killed_while_kept_it_hands_back_the_same_sandbox(void **state)
{
	struct stage *s = *state;
	char kept[POD_ID], id[POD_ID];
	stage_start(s, "create=600ms", NULL);
	stage_keep(s, kept);
	world_kill(&s->w.sim, SIGKILL);
	world_until_logged(&s->w, "the runtime is gone", 10);
	assert_int_equal(pod_run(&s->kubelet, "late", 0, "1S", NULL), CK_GRPC_UNAVAILABLE);
	world_sim(&s->w, "create=600ms");
	assert_int_equal(pod_run(&s->kubelet, "late", 0, "30S", id), CK_GRPC_OK);
	assert_string_equal(id, kept);
	assert_int_equal(pod_n(&s->kubelet), 1);
}

static void runtime_killed_while_creating_it_is_made_again_for_who_waits(void **state)
{
	struct stage *s = *state;
	struct cri_call waits;
	stage_start(s, "create=2s", NULL);
	struct ck_bytes request = cri_run_request("late", 0);
	cri_start(&s->kubelet, &waits, "RunPodSandbox", &request, "40S");
	world_until(&s->w, "begin sandbox", 1, 10);
	world_kill(&s->w.sim, SIGKILL);
	world_sim(&s->w, "create=200ms");
	cri_wait(&waits);
	assert_int_equal(waits.status.code, CK_GRPC_OK);
	cri_end(&waits);
	assert_int_equal(world_count(&s->w, "create sandbox"), 1);
	assert_int_equal(pod_n(&s->kubelet), 1);
}

/* ---- the database ---------------------------------------------------------------------------- */

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

/* what it cannot know any more it takes for the kubelet's: shown, adopted from the list, never
 * destroyed (K27, K33) */
static void a_damaged_database_is_set_aside_and_nothing_is_destroyed(void **state)
{
	struct stage *s = *state;
	char kept[POD_ID], used[POD_ID];
	stage_start(s, "create=500ms", NULL);
	assert_int_equal(pod_run(&s->kubelet, "used", 0, "20S", used), CK_GRPC_OK);
	assert_int_equal(pod_run(&s->kubelet, "late", 0, "300m", NULL), CK_GRPC_DEADLINE_EXCEEDED);
	world_until_logged(&s->w, "sandbox ns/late attempt 0: CREATING -> KEPT", 10);
	stage_kill(s);
	damage(&s->w);
	stage_again(s);
	assert_true(world_logged(&s->w, "set aside"));
	assert_true(pod_shown(&s->kubelet, used));
	assert_int_equal(pod_n(&s->kubelet), 2);
	assert_int_equal(pod_n(&s->agent), 2);
	pod_id_of(&s->kubelet, 0, kept);
	assert_int_equal(world_count(&s->w, "remove sandbox"), 0);
	assert_int_equal(cri_do_id(&s->kubelet, "StopPodSandbox", kept), CK_GRPC_OK);
	assert_int_equal(cri_do_id(&s->kubelet, "RemovePodSandbox", kept), CK_GRPC_OK);
	assert_int_equal(pod_n(&s->kubelet), 1);
}

/* ---- told to end ----------------------------------------------------------------------------- */

static void told_to_end_it_ends_at_once_and_leaves_no_socket(void **state)
{
	struct stage *s = *state;
	stage_start(s, "create=1h,cancel=finish", NULL);
	assert_int_equal(pod_run(&s->kubelet, "late", 0, "300m", NULL), CK_GRPC_DEADLINE_EXCEEDED);
	assert_int_equal(world_kill(&s->w.daemon, SIGTERM), 0);
	assert_true(world_logged(&s->w, "stopping with 1 creations and starts under way"));
	assert_true(world_logged(&s->w, "there is no service manager that keeps connections"));
	assert_int_not_equal(access(s->w.cri, F_OK), 0);
	assert_int_not_equal(access(s->w.metrics, F_OK), 0);
}

static void reloaded_it_takes_over_what_may_change(void **state)
{
	struct stage *s = *state;
	stage_start(s, NULL, NULL);
	char *conf = s->w.config;
	int fd = open(conf, O_WRONLY | O_TRUNC | O_CLOEXEC);
	static const char text[] = "cache:\n  ttl: 3m\n";
	assert_int_equal(write(fd, text, sizeof(text) - 1), sizeof(text) - 1);
	close(fd);
	kill(s->w.daemon, SIGHUP);
	world_until_logged(&s->w, "cache.ttl", 10);
	world_until_logged(&s->w, "reloaded the configuration", 10);
	assert_int_equal(truncate(conf, 0), 0);
	fd = open(conf, O_WRONLY | O_CLOEXEC);
	static const char wrong[] = "cache:\n  tll: 3m\n";
	assert_int_equal(write(fd, wrong, sizeof(wrong) - 1), sizeof(wrong) - 1);
	close(fd);
	kill(s->w.daemon, SIGHUP);
	world_until_logged(&s->w, "crikeep.yaml:2", 10);
	assert_int_equal(pod_n(&s->kubelet), 0); /* it serves on */
}

/* ---- two of them ----------------------------------------------------------------------------- */

static void a_second_one_ends_by_naming_the_first(void **state)
{
	struct stage *s = *state;
	struct world second;
	char text[32];
	stage_start(s, NULL, NULL);
	second = s->w;
	snprintf(second.cri, sizeof(second.cri), "%s/second.sock", s->w.dir);
	assert_int_equal(world_daemon_fails(&second, NULL), 1);
	snprintf(text, sizeof(text), "%d", (int)s->w.daemon);
	assert_true(world_logged(&s->w, text));
	assert_int_equal(pod_n(&s->kubelet), 0);
	/* with a state of its own, but at the same path */
	second = s->w;
	snprintf(second.state, sizeof(second.state), "%s/second", s->w.dir);
	snprintf(second.metrics, sizeof(second.metrics), "%s/second.m", s->w.dir);
	snprintf(second.unfiltered, sizeof(second.unfiltered), "%s/second.u", s->w.dir);
	assert_int_equal(world_daemon_fails(&second, NULL), 1);
	assert_true(world_logged(&s->w, "another process listens there"));
	assert_int_equal(pod_n(&s->kubelet), 0);
	struct cri_client again;
	cri_open(&again, s->w.cri);
	assert_int_equal(pod_n(&again), 0);
	cri_close(&again);
}

static void a_second_one_with_a_simulator_of_its_own_names_the_first_too(void **state)
{
	struct stage *s = *state;
	static const char *const simulated[] = { "--runtime", "sim:", NULL };
	char text[64];
	world_daemon(&s->w, simulated);
	struct world second = s->w;
	assert_int_equal(world_daemon_fails(&second, simulated), 1);
	snprintf(text, sizeof(text), "is owned by process %d", (int)s->w.daemon);
	assert_true(world_logged(&s->w, text));
}

/* ---- sockets of systemd's -------------------------------------------------------------------- */

static int passed;

static void activated(void)
{
	char pid[32];
	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	if (dup2(passed, 3) < 0 || fcntl(3, F_SETFD, 0) < 0 || setenv("LISTEN_FDS", "1", 1) ||
	    setenv("LISTEN_PID", pid, 1) || setenv("LISTEN_FDNAMES", "cri", 1))
		_exit(126);
}

static void a_socket_that_was_passed_stays_while_it_is_started_anew(void **state)
{
	struct stage *s = *state;
	world_sim(&s->w, NULL);
	passed = ck_unix_listen(s->w.cri, 0600, (gid_t)-1, NULL);
	assert_true(passed >= 0);
	s->w.before = activated;
	world_daemon(&s->w, NULL);
	world_until_logged(&s->w, "serving", 10);
	assert_int_equal(world_kill(&s->w.daemon, SIGTERM), 0);
	assert_int_not_equal(access(s->w.unfiltered, F_OK), 0); /* its own goes with it */
	cri_open(&s->kubelet, s->w.cri); /* comes before it does */
	world_daemon(&s->w, NULL);
	assert_int_equal(pod_n(&s->kubelet), 0);
	close(passed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_REPEAT_STAGE(killed_while_kept_it_hands_back_the_same_sandbox),
		ON_STAGE(killed_while_creating_and_rolled_back_it_is_made_once_more),
		ON_STAGE(killed_again_and_again_it_is_made_once_more_all_the_same),
		ON_REPEAT_STAGE(
			killed_while_creating_and_finished_after_the_restart_it_is_found_and_kept),
		ON_REPEAT_STAGE(killed_while_evicting_it_goes_on_evicting),
		ON_STAGE(killed_just_after_its_answer_a_container_can_be_started),
		ON_REPEAT_STAGE(runtime_killed_while_kept_it_hands_back_the_same_sandbox),
		ON_STAGE(runtime_killed_while_creating_it_is_made_again_for_who_waits),
		ON_REPEAT_STAGE(a_damaged_database_is_set_aside_and_nothing_is_destroyed),
		ON_STAGE(told_to_end_it_ends_at_once_and_leaves_no_socket),
		ON_STAGE(reloaded_it_takes_over_what_may_change),
		ON_STAGE(a_socket_that_was_passed_stays_while_it_is_started_anew),
		ON_STAGE(a_second_one_ends_by_naming_the_first),
		ON_STAGE(a_second_one_with_a_simulator_of_its_own_names_the_first_too),
	};
	return CK_TEST_MAIN(tests);
}
