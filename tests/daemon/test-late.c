/* SPDX-License-Identifier: Apache-2.0 */
/* What is finished too late: offered, or kept, hidden from every call, handed back, given up. */
#include <signal.h>
#include <sys/socket.h>
#include <string.h>
#include <sys/wait.h>

#include "tests/daemon/stage.h"

#define CK_TEST_SECONDS 120
#include "tests/unit/harness.h"

static void a_late_sandbox_is_handed_back_to_the_same_request(void **state)
{
	struct stage *s = *state;
	char kept[POD_ID], id[POD_ID];
	stage_start(s, "create=800ms", NULL);
	stage_keep(s, kept);
	assert_int_equal(pod_run(&s->kubelet, "late", 0, "5S", id), CK_GRPC_OK);
	assert_string_equal(id, kept);
	assert_true(pod_shown(&s->kubelet, id));
	assert_int_equal(world_count(&s->w, "begin sandbox"), 1);
}

#define TOOK "crikeepd_runtime_create_seconds_"

static void a_repetition_that_waits_has_it_the_moment_it_exists(void **state)
{
	struct stage *s = *state;
	char id[POD_ID];
	stage_start(s, "create=3s", NULL);
	for (int i = 0; i < 3; i++)
		assert_int_equal(pod_run(&s->kubelet, "late", 0, "400m", NULL),
				 i ? CK_GRPC_UNAVAILABLE : CK_GRPC_DEADLINE_EXCEEDED);
	assert_int_equal(pod_run(&s->kubelet, "late", 0, "30S", id), CK_GRPC_OK);
	assert_int_equal(world_count(&s->w, "begin sandbox"), 1);
	assert_int_equal(world_metric(&s->w, "crikeepd_creates_total{kind=\"sandbox\"}"), 1);
	assert_int_equal(world_metric(&s->w, "crikeepd_answers_total{kind=\"sandbox\"}"), 1);
	assert_int_equal(world_metric(&s->w, TOOK "count{kind=\"sandbox\"}"), 1);
	assert_true(world_metric(&s->w, TOOK "sum{kind=\"sandbox\"}") >= 3);
	assert_int_equal(world_metric(&s->w, TOOK "count{kind=\"container\"}"), 0);
	/* counted once the answer has certainly arrived */
	while (world_metric(&s->w, "crikeep_saved_total{kind=\"sandbox\"}") < 1)
		;
	assert_true(world_metric(&s->w, "crikeep_saved_seconds_total{kind=\"sandbox\"}") >= 3);
}

/* shorter than the margin; on a slow machine some tries are over before they are read */
static void a_caller_with_a_short_deadline_is_handed_it_too(void **state)
{
	struct stage *s = *state;
	char kept[POD_ID], id[POD_ID] = "";
	int code = -1;
	stage_start(s, "create=800ms", NULL);
	stage_keep(s, kept);
	for (int i = 0; i < 60 && code != CK_GRPC_OK; i++)
		code = pod_run(&s->kubelet, "late", 0, "240m", id);
	assert_int_equal(code, CK_GRPC_OK);
	assert_string_equal(id, kept);
	assert_int_equal(world_count(&s->w, "begin sandbox"), 1);
}

/* every call of the table that acts on an id, and every list */
static void what_is_kept_is_hidden_from_every_call(void **state)
{
	struct stage *s = *state;
	char kept[POD_ID], prefix[POD_ID];
	static const char *const acts[] = { "StopPodSandbox",   "RemovePodSandbox",
					    "PodSandboxStatus", "PortForward",
					    "PodSandboxStats",  "UpdatePodSandboxResources",
					    "CreateContainer" };
	static const char *const lists[] = { "ListPodSandbox", "ListPodSandboxStats",
					     "ListPodSandboxMetrics", "ListContainerStats" };
	stage_start(s, "create=500ms", NULL);
	stage_keep(s, kept);
	snprintf(prefix, sizeof(prefix), "%.9s", kept);
	for (size_t i = 0; i < sizeof(acts) / sizeof(*acts); i++) {
		assert_int_equal(cri_do_id(&s->kubelet, acts[i], kept), CK_GRPC_NOT_FOUND);
		assert_int_equal(cri_do_id(&s->kubelet, acts[i], prefix), CK_GRPC_NOT_FOUND);
	}
	for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
		struct ck_bytes all = { 0 }, filter = { 0 }, named = { 0 }, reply;
		assert_int_equal(cri_do(&s->kubelet, lists[i], &all, &reply), CK_GRPC_OK);
		assert_int_equal(cri_count(&reply, "1"), 0);
		ck_bytes_free(&reply);
		assert_int_equal(ck_bytes_field_text(&filter, 1, prefix), 0); /* {filter: {id}} */
		assert_int_equal(ck_bytes_field(&named, 1, filter.p, filter.len), 0);
		assert_int_equal(cri_do(&s->kubelet, lists[i], &named, &reply), CK_GRPC_OK);
		assert_int_equal(cri_count(&reply, "1"), 0);
		ck_bytes_free(&reply);
		ck_bytes_free(&filter);
	}
	assert_int_equal(cri_do_id(&s->agent, "PodSandboxStatus", kept), CK_GRPC_OK);
	assert_int_equal(world_count(&s->w, "stop sandbox"), 0);
}

static void another_attempt_is_made_after_the_first_one_is_stopped(void **state)
{
	struct stage *s = *state;
	char kept[POD_ID], id[POD_ID];
	stage_start(s, "create=500ms", NULL);
	stage_keep(s, kept);
	assert_int_equal(pod_run(&s->kubelet, "late", 1, "20S", id), CK_GRPC_OK);
	assert_string_not_equal(id, kept);
	char *log = world_file(s->w.runtime_log), *stopped = strstr(log, "stop sandbox"),
	     *again = strstr(log, "begin sandbox");
	again = again ? strstr(again + 1, "begin sandbox") : NULL;
	assert_non_null(stopped);
	assert_non_null(again);
	assert_true(stopped < again);
	free(log);
	world_until(&s->w, "remove sandbox", 1, 10);
	assert_int_equal(pod_n(&s->agent), 1);
}

static void what_nobody_asks_for_is_gone_after_the_ttl(void **state)
{
	struct stage *s = *state;
	static const char *const flags[] = { "--ttl", "1s", NULL };
	char kept[POD_ID];
	stage_start(s, "create=500ms", flags);
	stage_keep(s, kept);
	world_until(&s->w, "remove sandbox", 1, 20);
	assert_int_equal(pod_n(&s->agent), 0);
	assert_int_equal(world_count(&s->w, "begin sandbox"), 1);
}

static void a_late_container_is_handed_back_and_starts(void **state)
{
	struct stage *s = *state;
	char pod[POD_ID], id[POD_ID];
	stage_start(s, "create.container=1s", NULL);
	assert_int_equal(pod_run(&s->kubelet, "pod", 0, "5S", pod), CK_GRPC_OK);
	assert_int_equal(pod_create(&s->kubelet, pod, "pod", 0, "400m", NULL),
			 CK_GRPC_DEADLINE_EXCEEDED);
	world_until(&s->w, "create container", 1, 10);
	world_until_logged(&s->w, "container ns/pod/main attempt 0: CREATING -> KEPT", 5);
	struct ck_bytes none = { 0 }, reply;
	assert_int_equal(cri_do(&s->agent, "ListContainers", &none, &reply), CK_GRPC_OK);
	char kept[POD_ID];
	snprintf(kept, sizeof(kept), "%s", cri_text(&reply, "1.1"));
	ck_bytes_free(&reply);
	assert_false(container_shown(&s->kubelet, kept));
	static const char *const acts[] = { "StartContainer",
					    "StopContainer",
					    "RemoveContainer",
					    "ContainerStatus",
					    "ExecSync",
					    "Exec",
					    "Attach",
					    "ContainerStats",
					    "UpdateContainerResources",
					    "ReopenContainerLog" };
	for (size_t i = 0; i < sizeof(acts) / sizeof(*acts); i++)
		assert_int_equal(cri_do_id(&s->kubelet, acts[i], kept), CK_GRPC_NOT_FOUND);
	assert_int_equal(pod_create(&s->kubelet, pod, "pod", 0, "5S", id), CK_GRPC_OK);
	assert_string_equal(id, kept);
	assert_int_equal(cri_do_id(&s->kubelet, "StartContainer", id), CK_GRPC_OK);
	assert_true(container_shown(&s->kubelet, id));
	assert_int_equal(world_count(&s->w, "begin container"), 1);
}

/* K7: the client went without having read the answer */
/* what grpc-go does when it closes: a GOAWAY, and no RST_STREAM */
static void say_goaway(struct cri_client *client)
{
	const unsigned char *bytes;
	struct ck_error err;
	ck_h2_goaway(client->h2);
	ptrdiff_t n = ck_h2_next(client->h2, &bytes, &err);
	assert_true(n > 0 && send(client->fd, bytes, (size_t)n, MSG_NOSIGNAL) == n);
}

/* @gone has asked for a container in @pod, and the answer is on its way */
static void answer_unread(struct stage *s, struct cri_client *gone, struct cri_call *call,
			  char pod[POD_ID])
{
	stage_start(s, "create.container=300ms", NULL);
	assert_int_equal(pod_run(&s->kubelet, "pod", 0, "5S", pod), CK_GRPC_OK);
	cri_open(gone, s->w.cri);
	struct ck_bytes request = cri_create_request(pod, "pod", "main", 0);
	cri_start(gone, call, "CreateContainer", &request, "20S");
	world_until_logged(&s->w, "container ns/pod/main attempt 0: handed over", 10);
}

enum goodbye { CLOSES, GOAWAY_AND_CLOSES, GOAWAY_A_WHILE_BEFORE };

static void answer_nobody_reads(struct stage *s, enum goodbye goodbye)
{
	struct cri_call call;
	struct cri_client gone;
	char pod[POD_ID], id[POD_ID];
	answer_unread(s, &gone, &call, pod);
	if (goodbye != CLOSES)
		say_goaway(&gone);
	if (goodbye == GOAWAY_A_WHILE_BEFORE) /* it has been read when this is answered */
		assert_int_equal(pod_n(&s->kubelet), 1);
	cri_close(&gone); /* with the answer in its queue */
	cri_end(&call);
	world_until_logged(&s->w, "COMMITTED -> KEPT", 10);
	assert_int_equal(pod_create(&s->kubelet, pod, "pod", 0, "5S", id), CK_GRPC_OK);
	assert_int_equal(world_count(&s->w, "begin container"), 1);
}

static void an_answer_nobody_read_is_given_again(void **state)
{
	answer_nobody_reads(*state, CLOSES);
}

static void also_if_the_client_says_goaway(void **state)
{
	answer_nobody_reads(*state, GOAWAY_AND_CLOSES);
}

static void also_if_it_closes_a_while_later(void **state)
{
	answer_nobody_reads(*state, GOAWAY_A_WHILE_BEFORE);
}

/* grpc-go pings when an answer comes. crictl then ends at once, without waiting for the reply; a
 * busy crikeepd finds the ping and the end of the connection at the same time. */
static void an_answer_that_was_read_stays_given_though_the_client_pinged_and_closed(void **state)
{
	static const unsigned char ping[9 + 8] = { 0, 0, 8, 6 };
	struct stage *s = *state;
	struct cri_call call;
	struct cri_client gone;
	char pod[POD_ID], id[POD_ID];
	int status;
	answer_unread(s, &gone, &call, pod);
	assert_int_equal(pod_n(&s->kubelet), 1); /* so the answer is written */
	assert_int_equal(kill(s->w.daemon, SIGSTOP), 0);
	assert_int_equal(waitpid(s->w.daemon, &status, WUNTRACED), s->w.daemon);
	cri_wait(&call);
	assert_int_equal(call.status.code, CK_GRPC_OK);
	snprintf(id, sizeof(id), "%s", cri_text(&call.reply, "1"));
	assert_int_equal(send(gone.fd, ping, sizeof(ping), MSG_NOSIGNAL), sizeof(ping));
	cri_close(&gone);
	cri_end(&call);
	assert_int_equal(kill(s->w.daemon, SIGCONT), 0);
	assert_int_equal(pod_n(&s->kubelet), 1); /* so the end of the connection was seen */
	assert_true(container_shown(&s->kubelet, id));
	assert_false(world_logged(&s->w, "COMMITTED -> KEPT"));
}

static void a_failure_is_told_to_all_and_not_kept(void **state)
{
	struct stage *s = *state;
	struct cri_call first, second;
	stage_start(s, "create=500ms,fail.sandbox=1", NULL);
	struct ck_bytes a = cri_run_request("pod", 0), b = cri_run_request("pod", 0);
	cri_start(&s->kubelet, &first, "RunPodSandbox", &a, "20S");
	cri_start(&s->kubelet, &second, "RunPodSandbox", &b, "20S");
	cri_wait(&first);
	cri_wait(&second);
	assert_int_equal(first.status.code, CK_GRPC_UNKNOWN);
	assert_int_equal(second.status.code, CK_GRPC_UNKNOWN);
	assert_string_equal(first.status.message, second.status.message);
	cri_end(&first);
	cri_end(&second);
	assert_int_equal(pod_run(&s->kubelet, "pod", 0, "20S", NULL), CK_GRPC_OK);
	assert_int_equal(world_count(&s->w, "begin sandbox"), 2);
}

static void another_request_for_what_runs_is_refused_by_the_names_of_what_differs(void **state)
{
	struct stage *s = *state;
	struct cri_call call;
	stage_start(s, NULL, NULL);
	assert_int_equal(pod_run(&s->kubelet, "pod", 0, "5S", NULL), CK_GRPC_OK);
	struct ck_bytes request = cri_run_request("pod", 0);
	assert_int_equal(ck_bytes_field_text(&request, 2, "secret-handler"), 0);
	cri_start(&s->kubelet, &call, "RunPodSandbox", &request, "5S");
	cri_wait(&call);
	assert_int_equal(call.status.code, CK_GRPC_ALREADY_EXISTS);
	assert_non_null(strstr(call.status.message, "runtime_handler"));
	assert_null(strstr(call.status.message, "secret"));
	cri_end(&call);
}

static void v1alpha2_and_v1_share_what_is_kept(void **state)
{
	struct stage *s = *state;
	char kept[POD_ID], id[POD_ID];
	stage_start(s, "create=500ms", NULL);
	stage_keep(s, kept);
	s->kubelet.version = "v1alpha2";
	assert_int_equal(pod_run(&s->kubelet, "late", 0, "5S", id), CK_GRPC_OK);
	assert_string_equal(id, kept);
}

static void an_unknown_call_is_the_runtimes_business(void **state)
{
	struct stage *s = *state;
	struct cri_call call;
	stage_start(s, NULL, NULL);
	struct ck_bytes request = { 0 };
	cri_start(&s->kubelet, &call, "HibernatePodSandbox", &request, NULL);
	cri_wait(&call);
	assert_int_equal(call.status.code, CK_GRPC_UNIMPLEMENTED);
	cri_end(&call);
}

/* without a flag, a configuration file or another request */
static void a_late_sandbox_is_listed_when_it_exists_and_is_the_answer_to_a_repeat(void **state)
{
	struct stage *s = *state;
	char offered[POD_ID], id[POD_ID];
	stage_start(s, "create=800ms", NULL);
	assert_int_equal(pod_run(&s->kubelet, "late", 0, "300m", NULL), CK_GRPC_DEADLINE_EXCEEDED);
	assert_int_equal(pod_n(&s->kubelet), 0); /* while it is made */
	world_until_logged(&s->w, "sandbox ns/late attempt 0: listed for the kubelet", 10);
	assert_int_equal(pod_n(&s->kubelet), 1);
	pod_id_of(&s->kubelet, 0, offered);
	assert_int_equal(cri_do_id(&s->kubelet, "PodSandboxStatus", offered), CK_GRPC_OK);
	assert_int_equal(pod_create(&s->kubelet, offered, "late", 0, "5S", NULL), CK_GRPC_OK);
	assert_int_equal(pod_run(&s->kubelet, "late", 0, "5S", id), CK_GRPC_OK);
	assert_string_equal(id, offered);
	assert_int_equal(world_count(&s->w, "begin sandbox"), 1);
	assert_int_equal(cri_do_id(&s->kubelet, "RemovePodSandbox", offered), CK_GRPC_OK);
	assert_int_equal(pod_n(&s->agent), 0);
}

/* a runtime that is stopped is named, and nothing is done about it */
static void a_silent_runtime_is_named_and_waited_for(void **state)
{
	struct stage *s = *state;
	struct cri_call call;
	struct ck_bytes request = cri_run_request("web", 0);
	stage_start(s, "create=800ms", NULL);
	assert_int_equal(world_metric(&s->w, "crikeepd_upstream_up"), 1);
	assert_int_equal(kill(s->w.sim, SIGSTOP), 0);
	cri_start(&s->kubelet, &call, "RunPodSandbox", &request, "60S");
	world_until_logged(&s->w, "the runtime does not answer", 12);
	assert_int_equal(world_metric(&s->w, "crikeepd_upstream_up"), 0);
	assert_true(world_metric(&s->w, "crikeepd_upstream_silent_seconds") > 0);
	assert_int_equal(kill(s->w.sim, SIGCONT), 0);
	cri_wait(&call);
	assert_int_equal(call.status.code, CK_GRPC_OK);
	cri_end(&call);
	world_until_logged(&s->w, "the runtime answers again", 5);
	assert_int_equal(world_metric(&s->w, "crikeepd_upstream_up"), 1);
	assert_int_equal(world_metric(&s->w, "crikeepd_upstream_silent_seconds"), 0);
	assert_int_equal(world_metric(&s->w, "crikeepd_upstream_connects_total"), 1);
	assert_int_equal(world_count(&s->w, "begin sandbox"), 1);
	assert_int_equal(world_count(&s->w, "cancel"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_REPEAT_STAGE(a_late_sandbox_is_handed_back_to_the_same_request),
		ON_STAGE(a_repetition_that_waits_has_it_the_moment_it_exists),
		ON_REPEAT_STAGE(a_caller_with_a_short_deadline_is_handed_it_too),
		ON_REPEAT_STAGE(what_is_kept_is_hidden_from_every_call),
		ON_REPEAT_STAGE(another_attempt_is_made_after_the_first_one_is_stopped),
		ON_REPEAT_STAGE(what_nobody_asks_for_is_gone_after_the_ttl),
		ON_STAGE(a_late_container_is_handed_back_and_starts),
		ON_STAGE(an_answer_nobody_read_is_given_again),
		ON_STAGE(also_if_the_client_says_goaway),
		ON_STAGE(also_if_it_closes_a_while_later),
		ON_STAGE(an_answer_that_was_read_stays_given_though_the_client_pinged_and_closed),
		ON_STAGE(a_failure_is_told_to_all_and_not_kept),
		ON_STAGE(another_request_for_what_runs_is_refused_by_the_names_of_what_differs),
		ON_REPEAT_STAGE(v1alpha2_and_v1_share_what_is_kept),
		ON_STAGE(an_unknown_call_is_the_runtimes_business),
		ON_STAGE(a_silent_runtime_is_named_and_waited_for),
		ON_STAGE(a_late_sandbox_is_listed_when_it_exists_and_is_the_answer_to_a_repeat),
	};
	return CK_TEST_MAIN(tests);
}
