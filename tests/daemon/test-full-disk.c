/* SPDX-License-Identifier: Apache-2.0 */
/* crikeepd whose database is on a full or read-only disk, locked, or may not be read: pods start,
 * and what was handed over then stays with the kubelet, also after a kill. */
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <sqlite3.h>

#include "tests/daemon/stage.h"
#include "tests/fault/small-disk.h"

#define CK_TEST_SECONDS 120
#include "tests/unit/harness.h"

/* ---- disks ----------------------------------------------------------------------------------- */

static bool mounted;

static void small_disk(struct stage *s)
{
	small_disk_mount(s->w.state);
	mounted = true;
}

static int tear_down_disk(void **state)
{
	struct stage *s = *state;
	if (s->w.daemon)
		assert_int_equal(world_kill(&s->w.daemon, SIGTERM), 0);
	if (mounted)
		assert_int_equal(umount(s->w.state), 0);
	mounted = false;
	return stage_tear_down(state);
}

static void pods_start(struct stage *s)
{
	char pod[POD_ID], name[16];
	for (int i = 0; i < 20; i++) {
		snprintf(name, sizeof(name), "pod-%d", i);
		assert_int_equal(pod_run(&s->kubelet, name, 0, "5S", pod), CK_GRPC_OK);
		assert_int_equal(pod_create(&s->kubelet, pod, name, 0, "5S", NULL), CK_GRPC_OK);
	}
	assert_int_equal(pod_n(&s->kubelet), 20);
	assert_int_equal(world_metric(&s->w, "crikeep_degraded"), 1);
}

static void make_space(struct stage *s)
{
	small_disk_make_space(s->w.state);
	for (int tries = 1000; tries && world_metric(&s->w, "crikeep_degraded") > 0; tries--)
		poll(NULL, 0, 10);
	assert_int_equal(world_metric(&s->w, "crikeep_degraded"), 0);
}

static void with_a_full_disk_pods_start_and_the_gauge_says_degraded(void **state)
{
	struct stage *s = *state;
	small_disk(s);
	stage_start(s, NULL, NULL);
	assert_int_equal(world_metric(&s->w, "crikeep_degraded"), 0);
	small_disk_fill(s->w.state);
	pods_start(s);
	make_space(s);
}

static void with_a_read_only_disk_pods_start_and_the_gauge_says_degraded(void **state)
{
	struct stage *s = *state;
	small_disk(s);
	assert_int_equal(mount(NULL, s->w.state, NULL, MS_REMOUNT | MS_RDONLY, NULL), 0);
	stage_start(s, NULL, NULL);
	pods_start(s);
}

/* ---- killed before anything could be written ------------------------------------------------- */

/* There may be room in the WAL. Other pods take it, until nothing can be written. */
static void fill_all(struct stage *s)
{
	char name[32];
	small_disk_fill(s->w.state);
	for (int i = 0; i < 100 && world_metric(&s->w, "crikeep_degraded") < 1; i++) {
		snprintf(name, sizeof(name), "other-%d", i);
		assert_int_equal(pod_run(&s->kubelet, name, 0, "20S", NULL), CK_GRPC_OK);
	}
	assert_int_equal(world_metric(&s->w, "crikeep_degraded"), 1);
}

static void handed_over(struct stage *s, const char *kept)
{
	char pod[POD_ID];
	assert_int_equal(pod_run(&s->kubelet, "late", 0, "20S", pod), CK_GRPC_OK);
	assert_string_equal(pod, kept);
}

/* The sandbox was kept before the disk was full, and is handed over now: its row still says KEPT.
 * @ret_kept: its id */
static void handed_over_on_a_full_disk(struct stage *s, char *ret_kept)
{
	small_disk(s);
	s->w.repeat = true;
	stage_start(s, "create=600ms", NULL);
	stage_keep(s, ret_kept);
	fill_all(s);
	handed_over(s, ret_kept);
}

static void container_started(struct stage *s, const char *pod, char *ret_id)
{
	assert_int_equal(pod_create(&s->kubelet, pod, "late", 0, "5S", ret_id), CK_GRPC_OK);
	assert_int_equal(cri_do_id(&s->kubelet, "StartContainer", ret_id), CK_GRPC_OK);
}

/* killed, and begun again: nothing was stopped, hidden or made again */
static void both_survive_a_kill(struct stage *s, const char *pod, const char *container)
{
	unsigned sandboxes = world_count(&s->w, "begin sandbox");
	stage_kill(s);
	stage_again(s);
	assert_true(pod_shown(&s->kubelet, pod));
	assert_true(container_shown(&s->kubelet, container));
	assert_int_equal(cri_do_id(&s->kubelet, "PodSandboxStatus", pod), CK_GRPC_OK);
	assert_int_equal(cri_do_id(&s->kubelet, "ContainerStatus", container), CK_GRPC_OK);
	assert_int_equal(world_count(&s->w, "stop sandbox"), 0);
	assert_int_equal(world_count(&s->w, "stop container"), 0);
	assert_int_equal(world_count(&s->w, "begin sandbox"), sandboxes);
	assert_int_equal(world_count(&s->w, "begin container"), 1);
}

static void a_kept_sandbox_handed_over_and_used_survives_a_kill(void **state)
{
	struct stage *s = *state;
	char pod[POD_ID], container[POD_ID];
	handed_over_on_a_full_disk(s, pod);
	container_started(s, pod, container);
	both_survive_a_kill(s, pod, container);
	make_space(s);
	both_survive_a_kill(s, pod, container);
}

static sqlite3 *lock(struct stage *s)
{
	char path[WORLD_PATH + 16];
	sqlite3 *db;
	snprintf(path, sizeof(path), "%s/crikeep.db", s->w.state);
	assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	return db;
}

/* Another program held the write lock before the owner came back, which is as good as a full disk.
 * The sandbox's row says CREATING. */
static void a_sandbox_made_while_the_database_is_locked_and_used_survives_a_kill(void **state)
{
	struct stage *s = *state;
	char pod[POD_ID], container[POD_ID];
	struct cri_call run;
	struct ck_bytes request = cri_run_request("late", 0);
	stage_start(s, "create=600ms", NULL);
	cri_start(&s->kubelet, &run, "RunPodSandbox", &request, "20S");
	world_until(&s->w, "begin sandbox", 1, 10);
	stage_kill(s);
	cri_wait(&run);
	cri_end(&run);
	sqlite3 *db = lock(s);
	stage_again(s);
	assert_int_equal(pod_run(&s->kubelet, "late", 0, "20S", pod), CK_GRPC_OK);
	container_started(s, pod, container);
	assert_int_equal(world_metric(&s->w, "crikeep_degraded"), 1);
	both_survive_a_kill(s, pod, container);
	sqlite3_close(db);
	both_survive_a_kill(s, pod, container);
}

/* The disk knows no more than that it was being created. */
static void an_offered_sandbox_that_is_not_used_is_listed_again_after_a_kill(void **state)
{
	struct stage *s = *state;
	char offered[POD_ID];
	stage_start(s, "create=1s,cancel=finish", NULL);
	assert_int_equal(pod_run(&s->kubelet, "late", 0, "300m", NULL), CK_GRPC_DEADLINE_EXCEEDED);
	stage_kill(s);
	sqlite3 *db = lock(s);
	stage_again(s);
	world_until_logged(&s->w, "sandbox ns/late attempt 0: listed for the kubelet", 20);
	pod_id_of(&s->kubelet, 0, offered);
	assert_int_equal(world_metric(&s->w, "crikeep_degraded"), 1);
	stage_kill(s);
	stage_again(s);
	while (!pod_n(&s->kubelet))
		poll(NULL, 0, 10);
	assert_true(pod_shown(&s->kubelet, offered));
	sqlite3_close(db);
	assert_int_equal(world_count(&s->w, "begin sandbox"), 1);
	assert_int_equal(world_count(&s->w, "stop sandbox"), 0);
}

/* Nothing shows that the kubelet has it. So it is hidden, until the kubelet repeats its request. */
static void a_kept_sandbox_handed_over_and_not_used_is_so_again_after_a_kill(void **state)
{
	struct stage *s = *state;
	char kept[POD_ID];
	handed_over_on_a_full_disk(s, kept);
	unsigned sandboxes = world_count(&s->w, "begin sandbox");
	stage_kill(s);
	stage_again(s);
	assert_false(pod_shown(&s->kubelet, kept));
	handed_over(s, kept);
	assert_true(pod_shown(&s->kubelet, kept));
	make_space(s);
	assert_int_equal(world_count(&s->w, "begin sandbox"), sandboxes);
}

/* The same for a container. Its start finds nothing until it was handed over again. */
static void a_kept_container_handed_over_and_not_started_is_so_again_after_a_kill(void **state)
{
	struct stage *s = *state;
	char pod[POD_ID], id[POD_ID], again[POD_ID];
	small_disk(s);
	stage_start(s, "create=600ms", NULL);
	assert_int_equal(pod_run(&s->kubelet, "late", 0, "20S", pod), CK_GRPC_OK);
	assert_int_equal(pod_create(&s->kubelet, pod, "late", 0, "300m", NULL),
			 CK_GRPC_DEADLINE_EXCEEDED);
	world_until_logged(&s->w, "CREATING -> KEPT", 10);
	fill_all(s);
	assert_int_equal(pod_create(&s->kubelet, pod, "late", 0, "20S", id), CK_GRPC_OK);
	stage_kill(s);
	stage_again(s);
	assert_true(pod_shown(&s->kubelet, pod));
	assert_int_equal(cri_do_id(&s->kubelet, "StartContainer", id), CK_GRPC_NOT_FOUND);
	assert_int_equal(pod_create(&s->kubelet, pod, "late", 0, "20S", again), CK_GRPC_OK);
	assert_string_equal(again, id);
	assert_int_equal(cri_do_id(&s->kubelet, "StartContainer", id), CK_GRPC_OK);
	make_space(s);
	assert_int_equal(world_count(&s->w, "begin container"), 1);
}

/* ---- a directory that may not be read -------------------------------------------------------- */

/* crikeepd has no capability to pass over the mode, but the directory is its own */
static void an_unreadable_directory_of_its_own_is_made_readable(void **state)
{
	struct stage *s = *state;
	char kept[POD_ID];
	stage_start(s, "create=600ms", NULL);
	stage_keep(s, kept);
	stage_kill(s);
	assert_int_equal(chmod(s->w.state, 0), 0);
	stage_again(s);
	world_until_logged(&s->w, "had mode 0000", 5);
	handed_over(s, kept);
}

/* ---- a file that is cut short while it is mapped --------------------------------------------- */

static void a_truncated_shm_ends_it_in_words(void **state)
{
	struct stage *s = *state;
	char kept[POD_ID], shm[WORLD_PATH + 16];
	const char *asan = getenv("ASAN_OPTIONS");
	char *before = asan ? strdup(asan) : NULL;
	setenv("ASAN_OPTIONS", "handle_sigbus=0", 1); /* crikeepd's own words, not ASan's */
	stage_start(s, "create=600ms", NULL);
	stage_keep(s, kept);
	snprintf(shm, sizeof(shm), "%s/crikeep.db-shm", s->w.state);
	assert_int_equal(truncate(shm, 0), 0);
	pod_run(&s->kubelet, "other", 0, "5S", NULL);
	world_until_logged(&s->w, "crikeep.db-shm, which is mapped into memory, was cut short", 5);
	assert_int_equal(world_kill(&s->w.daemon, SIGKILL), 1);
	stage_leave(s);
	stage_again(s);
	handed_over(s, kept);
	if (before)
		setenv("ASAN_OPTIONS", before, 1);
	else
		unsetenv("ASAN_OPTIONS");
	free(before);
}

#define ON_DISK(test) cmocka_unit_test_setup_teardown(test, stage_set_up, tear_down_disk)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_DISK(with_a_full_disk_pods_start_and_the_gauge_says_degraded),
		ON_DISK(with_a_read_only_disk_pods_start_and_the_gauge_says_degraded),
		ON_DISK(a_kept_sandbox_handed_over_and_used_survives_a_kill),
		ON_STAGE(a_sandbox_made_while_the_database_is_locked_and_used_survives_a_kill),
		ON_DISK(a_kept_sandbox_handed_over_and_not_used_is_so_again_after_a_kill),
		ON_STAGE(an_offered_sandbox_that_is_not_used_is_listed_again_after_a_kill),
		ON_DISK(a_kept_container_handed_over_and_not_started_is_so_again_after_a_kill),
		ON_REPEAT_STAGE(an_unreadable_directory_of_its_own_is_made_readable),
		ON_REPEAT_STAGE(a_truncated_shm_ends_it_in_words),
	};
	return CK_TEST_MAIN(tests);
}
