/* SPDX-License-Identifier: Apache-2.0 */
/* What is finished too late: kept, hidden from every call, handed back, given up. */
#include <signal.h>
#include <string.h>

#include "tests/daemon/pods.h"
#include "tests/daemon/world.h"

#define CK_TEST_SECONDS 120
#include "tests/unit/harness.h"

struct fixture {
	struct world w;
	struct cri_client kubelet, agent; /* on the filtered and the unfiltered socket */
};

static void start(struct fixture *f, const char *simulator, const char *const *flags)
{
	world_sim(&f->w, simulator);
	world_daemon(&f->w, flags);
	cri_open(&f->kubelet, f->w.cri);
	cri_open(&f->agent, f->w.unfiltered);
}

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	assert_non_null(f);
	world_init(&f->w);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;
	cri_close(&f->kubelet);
	cri_close(&f->agent);
	world_fini(&f->w);
	free(f);
	return 0;
}

/* the sandbox "late" is made too late; its id, by the unfiltered socket */
static void make_late(struct fixture *f, char *ret_id)
{
	assert_int_equal(pod_run(&f->kubelet, "late", 0, "300m", NULL), CK_GRPC_DEADLINE_EXCEEDED);
	assert_int_equal(pod_n(&f->kubelet), 0); /* while it is made */
	world_until(&f->w, "create sandbox", 1, 10);
	world_until_logged(&f->w, "CREATING -> KEPT", 5);
	assert_int_equal(pod_n(&f->agent), 1);
	pod_id_of(&f->agent, 0, ret_id);
}

static void a_late_sandbox_is_handed_back_to_the_same_request(void **state)
{
	struct fixture *f = *state;
	char kept[POD_ID], id[POD_ID];
	start(f, "create=800ms", NULL);
	make_late(f, kept);
	assert_int_equal(pod_run(&f->kubelet, "late", 0, "5S", id), CK_GRPC_OK);
	assert_string_equal(id, kept);
	assert_true(pod_shown(&f->kubelet, id));
	assert_int_equal(world_count(&f->w, "begin sandbox"), 1);
}

static void a_repetition_that_waits_has_it_the_moment_it_exists(void **state)
{
	struct fixture *f = *state;
	char id[POD_ID];
	start(f, "create=1500ms", NULL);
	for (int i = 0; i < 3; i++)
		assert_int_equal(pod_run(&f->kubelet, "late", 0, "400m", NULL),
				 i ? CK_GRPC_UNAVAILABLE : CK_GRPC_DEADLINE_EXCEEDED);
	assert_int_equal(pod_run(&f->kubelet, "late", 0, "30S", id), CK_GRPC_OK);
	assert_int_equal(world_count(&f->w, "begin sandbox"), 1);
	assert_int_equal(world_metric(&f->w, "crikeepd_creates_total{kind=\"sandbox\"}"), 1);
	assert_int_equal(world_metric(&f->w, "crikeepd_answers_total{kind=\"sandbox\"}"), 1);
}

/* every call of the table that acts on an id, and every list */
static void what_is_kept_is_hidden_from_every_call(void **state)
{
	struct fixture *f = *state;
	char kept[POD_ID], prefix[POD_ID];
	static const char *const acts[] = { "StopPodSandbox", "RemovePodSandbox", "PodSandboxStatus", "PortForward",
					    "PodSandboxStats", "UpdatePodSandboxResources", "CreateContainer" };
	static const char *const lists[] = { "ListPodSandbox", "ListPodSandboxStats", "ListPodSandboxMetrics",
					     "ListContainerStats" };
	start(f, "create=500ms", NULL);
	make_late(f, kept);
	snprintf(prefix, sizeof(prefix), "%.9s", kept);
	for (size_t i = 0; i < sizeof(acts) / sizeof(*acts); i++) {
		assert_int_equal(cri_do_id(&f->kubelet, acts[i], kept), CK_GRPC_NOT_FOUND);
		assert_int_equal(cri_do_id(&f->kubelet, acts[i], prefix), CK_GRPC_NOT_FOUND);
	}
	for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
		struct ck_bytes all = { 0 }, filter = { 0 }, named = { 0 }, reply;
		assert_int_equal(cri_do(&f->kubelet, lists[i], &all, &reply), CK_GRPC_OK);
		assert_int_equal(cri_count(&reply, "1"), 0);
		ck_bytes_free(&reply);
		assert_int_equal(ck_bytes_field_text(&filter, 1, prefix), 0); /* {filter: {id}} */
		assert_int_equal(ck_bytes_field(&named, 1, filter.p, filter.len), 0);
		assert_int_equal(cri_do(&f->kubelet, lists[i], &named, &reply), CK_GRPC_OK);
		assert_int_equal(cri_count(&reply, "1"), 0);
		ck_bytes_free(&reply);
		ck_bytes_free(&filter);
	}
	assert_int_equal(cri_do_id(&f->agent, "PodSandboxStatus", kept), CK_GRPC_OK);
	assert_int_equal(world_count(&f->w, "stop sandbox"), 0);
}

static void another_attempt_is_made_after_the_first_one_is_stopped(void **state)
{
	struct fixture *f = *state;
	char kept[POD_ID], id[POD_ID];
	start(f, "create=500ms", NULL);
	make_late(f, kept);
	assert_int_equal(pod_run(&f->kubelet, "late", 1, "20S", id), CK_GRPC_OK);
	assert_string_not_equal(id, kept);
	char *log = world_file(f->w.runtime_log), *stopped = strstr(log, "stop sandbox"), *again = strstr(log, "begin sandbox");
	again = again ? strstr(again + 1, "begin sandbox") : NULL;
	assert_non_null(stopped);
	assert_non_null(again);
	assert_true(stopped < again);
	free(log);
	world_until(&f->w, "remove sandbox", 1, 10);
	assert_int_equal(pod_n(&f->agent), 1);
}

static void what_nobody_asks_for_is_gone_after_the_ttl(void **state)
{
	struct fixture *f = *state;
	static const char *const flags[] = { "--ttl", "1s", NULL };
	char kept[POD_ID];
	start(f, "create=500ms", flags);
	make_late(f, kept);
	world_until(&f->w, "remove sandbox", 1, 20);
	assert_int_equal(pod_n(&f->agent), 0);
	assert_int_equal(world_count(&f->w, "begin sandbox"), 1);
}

static void a_late_container_is_handed_back_and_starts(void **state)
{
	struct fixture *f = *state;
	char pod[POD_ID], id[POD_ID];
	start(f, "create.container=1s", NULL);
	assert_int_equal(pod_run(&f->kubelet, "pod", 0, "5S", pod), CK_GRPC_OK);
	assert_int_equal(pod_create(&f->kubelet, pod, "pod", 0, "400m", NULL), CK_GRPC_DEADLINE_EXCEEDED);
	world_until(&f->w, "create container", 1, 10);
	world_until_logged(&f->w, "container ns/pod/main attempt 0: CREATING -> KEPT", 5);
	struct ck_bytes none = { 0 }, reply;
	assert_int_equal(cri_do(&f->agent, "ListContainers", &none, &reply), CK_GRPC_OK);
	char kept[POD_ID];
	snprintf(kept, sizeof(kept), "%s", cri_text(&reply, "1.1"));
	ck_bytes_free(&reply);
	assert_false(container_shown(&f->kubelet, kept));
	static const char *const acts[] = { "StartContainer", "StopContainer", "RemoveContainer", "ContainerStatus", "ExecSync",
					    "Exec", "Attach", "ContainerStats", "UpdateContainerResources",
					    "ReopenContainerLog" };
	for (size_t i = 0; i < sizeof(acts) / sizeof(*acts); i++)
		assert_int_equal(cri_do_id(&f->kubelet, acts[i], kept), CK_GRPC_NOT_FOUND);
	assert_int_equal(pod_create(&f->kubelet, pod, "pod", 0, "5S", id), CK_GRPC_OK);
	assert_string_equal(id, kept);
	assert_int_equal(cri_do_id(&f->kubelet, "StartContainer", id), CK_GRPC_OK);
	assert_true(container_shown(&f->kubelet, id));
	assert_int_equal(world_count(&f->w, "begin container"), 1);
}

/* K7: the client went without having read the answer */
static void an_answer_nobody_read_is_given_again(void **state)
{
	struct fixture *f = *state;
	struct cri_call call;
	char pod[POD_ID], id[POD_ID];
	start(f, "create.container=300ms", NULL);
	assert_int_equal(pod_run(&f->kubelet, "pod", 0, "5S", pod), CK_GRPC_OK);
	struct cri_client gone;
	cri_open(&gone, f->w.cri);
	struct ck_bytes request = cri_create_request(pod, "pod", "main", 0);
	cri_start(&gone, &call, "CreateContainer", &request, "20S");
	world_until_logged(&f->w, "container ns/pod/main attempt 0: handed over", 10);
	cri_close(&gone); /* with the answer in its queue */
	cri_end(&call);
	world_until_logged(&f->w, "COMMITTED -> KEPT", 10);
	assert_int_equal(pod_create(&f->kubelet, pod, "pod", 0, "5S", id), CK_GRPC_OK);
	assert_int_equal(world_count(&f->w, "begin container"), 1);
}

static void a_failure_is_told_to_all_and_not_kept(void **state)
{
	struct fixture *f = *state;
	struct cri_call first, second;
	start(f, "create=500ms,fail.sandbox=1", NULL);
	struct ck_bytes a = cri_run_request("pod", 0), b = cri_run_request("pod", 0);
	cri_start(&f->kubelet, &first, "RunPodSandbox", &a, "20S");
	cri_start(&f->kubelet, &second, "RunPodSandbox", &b, "20S");
	cri_wait(&first);
	cri_wait(&second);
	assert_int_equal(first.status.code, CK_GRPC_UNKNOWN);
	assert_int_equal(second.status.code, CK_GRPC_UNKNOWN);
	assert_string_equal(first.status.message, second.status.message);
	cri_end(&first);
	cri_end(&second);
	assert_int_equal(pod_run(&f->kubelet, "pod", 0, "20S", NULL), CK_GRPC_OK);
	assert_int_equal(world_count(&f->w, "begin sandbox"), 2);
}

static void another_request_for_what_runs_is_refused_by_the_names_of_what_differs(void **state)
{
	struct fixture *f = *state;
	struct cri_call call;
	start(f, NULL, NULL);
	assert_int_equal(pod_run(&f->kubelet, "pod", 0, "5S", NULL), CK_GRPC_OK);
	struct ck_bytes request = cri_run_request("pod", 0);
	assert_int_equal(ck_bytes_field_text(&request, 2, "secret-handler"), 0);
	cri_start(&f->kubelet, &call, "RunPodSandbox", &request, "5S");
	cri_wait(&call);
	assert_int_equal(call.status.code, CK_GRPC_ALREADY_EXISTS);
	assert_non_null(strstr(call.status.message, "runtime_handler"));
	assert_null(strstr(call.status.message, "secret"));
	cri_end(&call);
}

static void v1alpha2_and_v1_share_what_is_kept(void **state)
{
	struct fixture *f = *state;
	char kept[POD_ID], id[POD_ID];
	start(f, "create=500ms", NULL);
	make_late(f, kept);
	f->kubelet.version = "v1alpha2";
	assert_int_equal(pod_run(&f->kubelet, "late", 0, "5S", id), CK_GRPC_OK);
	assert_string_equal(id, kept);
}

static void an_unknown_call_is_the_runtimes_business(void **state)
{
	struct fixture *f = *state;
	struct cri_call call;
	start(f, NULL, NULL);
	struct ck_bytes request = { 0 };
	cri_start(&f->kubelet, &call, "HibernatePodSandbox", &request, NULL);
	cri_wait(&call);
	assert_int_equal(call.status.code, CK_GRPC_UNIMPLEMENTED);
	cri_end(&call);
}

static void offered_sandboxes_are_shown_when_they_exist(void **state)
{
	struct fixture *f = *state;
	static const char *const flags[] = { "--hand-back", "offer", NULL };
	start(f, "create=800ms", flags);
	assert_int_equal(pod_run(&f->kubelet, "late", 0, "300m", NULL), CK_GRPC_DEADLINE_EXCEEDED);
	world_until_logged(&f->w, "COMMITTING -> COMMITTED", 10);
	assert_int_equal(pod_n(&f->kubelet), 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(a_late_sandbox_is_handed_back_to_the_same_request),
		TEST(a_repetition_that_waits_has_it_the_moment_it_exists),
		TEST(what_is_kept_is_hidden_from_every_call),
		TEST(another_attempt_is_made_after_the_first_one_is_stopped),
		TEST(what_nobody_asks_for_is_gone_after_the_ttl),
		TEST(a_late_container_is_handed_back_and_starts),
		TEST(an_answer_nobody_read_is_given_again),
		TEST(a_failure_is_told_to_all_and_not_kept),
		TEST(another_request_for_what_runs_is_refused_by_the_names_of_what_differs),
		TEST(v1alpha2_and_v1_share_what_is_kept),
		TEST(an_unknown_call_is_the_runtimes_business),
		TEST(offered_sandboxes_are_shown_when_they_exist),
	};
	return CK_TEST_MAIN(tests);
}
