/* SPDX-License-Identifier: Apache-2.0 */
/* GetContainerEvents of a real crikeepd before a real (if simulated) runtime: everything once, and
 * nothing of what is hidden. */
#include <signal.h>
#include <string.h>

#include "tests/daemon/stage.h"

#define CK_TEST_SECONDS 120
#include "tests/unit/harness.h"

enum { CREATED, STARTED, STOPPED, DELETED };

struct fixture {
	struct stage stage;
	struct cri_client watcher;
	struct cri_call shown, all; /* events on the kubelet's socket; on that of node agents */
};

/* @repeat: a late sandbox is kept for the same request, not offered */
static void start(struct fixture *f, const char *simulator, bool repeat)
{
	f->stage.w.repeat = repeat;
	stage_start(&f->stage, simulator, NULL);
	cri_open(&f->watcher, f->stage.w.cri);
	cri_start(&f->watcher, &f->shown, "GetContainerEvents", NULL, NULL);
	cri_start(&f->stage.agent, &f->all, "GetContainerEvents", NULL, NULL);
	/* by the answer both streams have reached the runtime, in this order */
	assert_int_equal(cri_do(&f->watcher, "Version", NULL, NULL), CK_GRPC_OK);
	assert_int_equal(cri_do(&f->stage.agent, "Version", NULL, NULL), CK_GRPC_OK);
}

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	assert_non_null(f);
	stage_init(&f->stage);
	f->watcher.fd = -1;
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;
	cri_end(&f->shown);
	cri_end(&f->all);
	cri_close(&f->watcher);
	stage_fini(&f->stage);
	free(f);
	return 0;
}

/* @n events have come, no more, and the last is this one */
static void last_is(struct cri_call *events, unsigned n, const char *id, uint64_t type)
{
	cri_wait_messages(events, n);
	assert_int_equal(events->messages, n);
	assert_string_equal(cri_text(&events->reply, "1"), id);
	assert_int_equal(cri_number(&events->reply, "2"), type);
}

static void a_late_sandbox_is_told_of_when_it_is_handed_back(void **state)
{
	struct fixture *f = *state;
	char id[POD_ID];
	start(f, "create=500ms", true);
	assert_int_equal(pod_run(&f->stage.kubelet, "late", 0, "200m", NULL),
			 CK_GRPC_DEADLINE_EXCEEDED);
	cri_wait_messages(&f->all, 2); /* CREATED, STARTED */
	world_until_logged(&f->stage.w, "CREATING -> KEPT", 10);
	assert_int_equal(cri_do(&f->watcher, "Version", NULL, NULL), CK_GRPC_OK);
	assert_int_equal(f->shown.messages, 0);
	assert_int_equal(pod_run(&f->stage.kubelet, "late", 0, "20S", id), CK_GRPC_OK);
	last_is(&f->shown, 2, id, STARTED);
	assert_string_equal(cri_text(&f->shown.reply, "4.1"), id);
	assert_int_equal(cri_do_id(&f->stage.kubelet, "StopPodSandbox", id), CK_GRPC_OK);
	last_is(&f->shown, 3, id, STOPPED);
	last_is(&f->all, 3, id, STOPPED);
	assert_int_equal(world_metric(&f->stage.w, "crikeepd_events_total{what=\"made\"}"), 2);
}

static void a_late_sandbox_is_told_of_when_it_is_offered(void **state)
{
	struct fixture *f = *state;
	char id[POD_ID];
	start(f, "create=500ms", false);
	assert_int_equal(pod_run(&f->stage.kubelet, "late", 0, "200m", NULL),
			 CK_GRPC_DEADLINE_EXCEEDED);
	cri_wait_messages(&f->shown, 2); /* without another request */
	assert_int_equal(pod_n(&f->stage.kubelet), 1);
	pod_id_of(&f->stage.kubelet, 0, id);
	last_is(&f->shown, 2, id, STARTED);
	assert_int_equal(cri_do_id(&f->stage.kubelet, "StopPodSandbox", id), CK_GRPC_OK);
	last_is(&f->shown, 3, id, STOPPED);
}

static void what_nobody_asked_for_again_is_never_told_of(void **state)
{
	struct fixture *f = *state;
	char id[POD_ID];
	start(f, "create=500ms", true);
	assert_int_equal(pod_run(&f->stage.kubelet, "late", 0, "200m", NULL),
			 CK_GRPC_DEADLINE_EXCEEDED);
	world_until_logged(&f->stage.w, "CREATING -> KEPT", 10);
	/* the first one goes */
	assert_int_equal(pod_run(&f->stage.kubelet, "late", 1, "20S", id), CK_GRPC_OK);
	world_until(&f->stage.w, "remove sandbox", 1, 20);
	cri_wait_messages(&f->all, 6);   /* four of the first, two of the second */
	cri_wait_messages(&f->shown, 2); /* made; who stops it at once may hear of that first */
	assert_int_equal(cri_do_id(&f->stage.kubelet, "StopPodSandbox", id), CK_GRPC_OK);
	last_is(&f->shown, 3, id, STOPPED);
}

/* the runtime's own events of a creation in time come just before or just after its commit */
static void creations_in_time_are_told_of_once(void **state)
{
	enum { PODS = 40 };
	struct fixture *f = *state;
	char id[PODS][POD_ID], container[POD_ID];
	unsigned n = 0;
	start(f, "create=0s", false);
	for (unsigned i = 0; i < PODS; i++) {
		char name[16];
		snprintf(name, sizeof(name), "pod%u", i);
		assert_int_equal(pod_run(&f->stage.kubelet, name, 0, "20S", id[i]), CK_GRPC_OK);
		assert_int_equal(pod_create(&f->stage.kubelet, id[i], name, 0, "20S", container),
				 CK_GRPC_OK);
		assert_int_equal(cri_do_id(&f->stage.kubelet, "StartContainer", container),
				 CK_GRPC_OK);
	}
	cri_wait_messages(&f->shown, n = 4 * PODS); /* of each sandbox two, of each container two */
	for (unsigned i = 0; i < PODS; i++)
		assert_int_equal(cri_do_id(&f->stage.kubelet, "StopPodSandbox", id[i]), CK_GRPC_OK);
	cri_wait_messages(&f->all, n + 2 * PODS);
	cri_wait_messages(&f->shown, n + 2 * PODS);
	assert_int_equal(cri_do(&f->watcher, "Version", NULL, NULL), CK_GRPC_OK);
	assert_int_equal(f->shown.messages, n + 2 * PODS);
	assert_int_equal(world_metric(&f->stage.w, "crikeepd_events_total{what=\"made\"}") +
				 world_metric(&f->stage.w, "crikeepd_events_total{what=\"sent\"}"),
			 n + 2 * PODS);
}

static void a_container_s_life_is_told_in_order(void **state)
{
	struct fixture *f = *state;
	char sandbox[POD_ID], id[POD_ID];
	start(f, "create=0s", false);
	assert_int_equal(pod_run(&f->stage.kubelet, "web", 0, "20S", sandbox), CK_GRPC_OK);
	last_is(&f->shown, 2, sandbox, STARTED);
	assert_int_equal(pod_create(&f->stage.kubelet, sandbox, "web", 0, "20S", id), CK_GRPC_OK);
	last_is(&f->shown, 3, id, CREATED);
	assert_string_equal(cri_text(&f->shown.reply, "4.1"), sandbox);
	assert_string_equal(cri_text(&f->shown.reply, "5.1"), id);
	assert_int_equal(cri_do_id(&f->stage.kubelet, "StartContainer", id), CK_GRPC_OK);
	last_is(&f->shown, 4, id, STARTED);
	assert_int_equal(cri_do_id(&f->stage.kubelet, "StopContainer", id), CK_GRPC_OK);
	last_is(&f->shown, 5, id, STOPPED);
	assert_int_equal(cri_do_id(&f->stage.kubelet, "RemoveContainer", id), CK_GRPC_OK);
	last_is(&f->shown, 6, id, DELETED);
}

static void a_runtime_that_dies_ends_the_stream_and_is_listened_to_again(void **state)
{
	struct fixture *f = *state;
	struct cri_call again;
	char id[POD_ID];
	start(f, "create=0s", false);
	world_kill(&f->stage.w.sim, SIGKILL);
	cri_wait(&f->shown);
	assert_int_equal(f->shown.status.code, CK_GRPC_UNAVAILABLE);
	world_sim(&f->stage.w, "create=0s");
	while (pod_run(&f->stage.kubelet, "web", 0, "5S", id) != CK_GRPC_OK)
		usleep(20000); /* until it is connected again */
	cri_start(&f->watcher, &again, "GetContainerEvents", NULL, NULL);
	assert_int_equal(cri_do(&f->watcher, "Version", NULL, NULL), CK_GRPC_OK);
	assert_int_equal(cri_do_id(&f->stage.kubelet, "StopPodSandbox", id), CK_GRPC_OK);
	last_is(&again, 1, id, STOPPED);
	cri_end(&again);
}

#define WATCHED(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WATCHED(a_late_sandbox_is_told_of_when_it_is_handed_back),
		WATCHED(a_late_sandbox_is_told_of_when_it_is_offered),
		WATCHED(what_nobody_asked_for_again_is_never_told_of),
		WATCHED(creations_in_time_are_told_of_once),
		WATCHED(a_container_s_life_is_told_in_order),
		WATCHED(a_runtime_that_dies_ends_the_stream_and_is_listened_to_again),
	};
	return CK_TEST_MAIN(tests);
}
