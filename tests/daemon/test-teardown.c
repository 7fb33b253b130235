/* SPDX-License-Identifier: Apache-2.0 */
/* Stops and removals that are asked for again while the runtime is still at them. */
#include <signal.h>
#include <string.h>

#include "tests/daemon/stage.h"

#define CK_TEST_SECONDS 120
#include "tests/unit/harness.h"

enum { MANY = 1000 };
static char pod[POD_ID], container[POD_ID];

static void begin(struct stage *s, const char *simulator)
{
	stage_start(s, simulator, NULL);
	assert_int_equal(pod_run(&s->kubelet, "pod", 0, "20S", pod), CK_GRPC_OK);
	assert_int_equal(pod_create(&s->kubelet, pod, "pod", 0, "20S", container), CK_GRPC_OK);
	assert_int_equal(cri_do_id(&s->kubelet, "StartContainer", container), CK_GRPC_OK);
}

/* @grace: of StopContainer, in s; 0: none */
static void ask(struct stage *s, struct cri_call *call, const char *rpc, unsigned grace,
		const char *timeout)
{
	struct ck_bytes request = { 0 };
	assert_int_equal(ck_bytes_field_text(&request, 1, strstr(rpc, "Pod") ? pod : container), 0);
	if (grace)
		assert_int_equal(ck_bytes_field_number(&request, 2, grace), 0);
	cri_start(&s->kubelet, call, rpc, &request, timeout);
}

static int over(struct cri_call *call)
{
	cri_wait(call);
	int code = call->status.code;
	cri_end(call);
	return code;
}

/* how many calls of this method the runtime has seen */
static unsigned calls(struct stage *s, const char *rpc)
{
	struct ck_bytes request = { 0 }, reply;
	char name[64];
	unsigned n = 0;
	assert_int_equal(ck_bytes_field_number(&request, 1, 1), 0);
	assert_int_equal(cri_do(&s->agent, "Status", &request, &reply), CK_GRPC_OK);
	assert_int_equal(ck_bytes_add(&reply, "", 1), 0);
	snprintf(name, sizeof(name), "\"%s\":", rpc);
	for (size_t i = 0; i + strlen(name) < reply.len; i++)
		if (!memcmp(reply.p + i, name, strlen(name)))
			n = (unsigned)strtoul((const char *)reply.p + i + strlen(name), NULL, 10);
	ck_bytes_free(&reply);
	return n;
}

/* one third leaves, one third has no time left soon, and one third waits */
static void repeated(struct stage *s, const char *rpc, unsigned k)
{
	static struct cri_call call[MANY];
	for (unsigned i = 0; i < k; i++)
		ask(s, &call[i], rpc, 0, i % 3 == 1 ? "300m" : "90S");
	for (unsigned i = 0; i < k; i += 3) {
		cri_cancel(&call[i]);
		cri_end(&call[i]);
	}
	for (unsigned i = 1; i < k; i += 3) {
		cri_wait(&call[i]);
		assert_int_equal(call[i].status.code, CK_GRPC_DEADLINE_EXCEEDED);
		assert_non_null(strstr(call[i].status.message, "context deadline exceeded"));
		cri_end(&call[i]);
	}
	for (unsigned i = 2; i < k; i += 3)
		assert_int_equal(over(&call[i]), CK_GRPC_OK);
	assert_int_equal(calls(s, rpc), 1);
}

static void k35_twenty_repeated_calls_are_one(void **state)
{
	struct stage *s = *state;
	begin(s, "stop=2s,remove=2s");
	repeated(s, "StopContainer", 20);
	repeated(s, "RemoveContainer", 20);
	repeated(s, "StopPodSandbox", 20);
}

static void twenty_repeated_removals_of_a_pod_are_one(void **state)
{
	struct stage *s = *state;
	begin(s, "remove=2s");
	repeated(s, "RemovePodSandbox", 20);
	assert_int_equal(calls(s, "StopPodSandbox"), 1);
}

static void k35_a_thousand_repeated_calls_are_one(void **state)
{
	struct stage *s = *state;
	begin(s, "stop=8s,remove=8s");
	repeated(s, "StopContainer", MANY);
	repeated(s, "RemoveContainer", MANY);
}

static void callers_that_come_one_after_the_other_find_it_under_way(void **state)
{
	struct stage *s = *state;
	struct cri_call call;
	begin(s, "stop=6s");
	for (unsigned i = 0; i < 10; i++) {
		ask(s, &call, "StopPodSandbox", 0, "300m");
		assert_int_equal(over(&call), CK_GRPC_DEADLINE_EXCEEDED);
	}
	ask(s, &call, "StopPodSandbox", 0, "60S");
	assert_int_equal(over(&call), CK_GRPC_OK);
	assert_int_equal(calls(s, "StopPodSandbox"), 1);
	assert_int_equal(world_metric(&s->w, "crikeepd_teardowns_joined_total"), 10);
}

static void another_grace_is_another_request(void **state)
{
	struct stage *s = *state;
	struct cri_call a, b, c;
	begin(s, "stop=1s");
	ask(s, &a, "StopContainer", 30, "60S");
	ask(s, &b, "StopContainer", 2, "60S");
	ask(s, &c, "StopContainer", 30, "60S");
	assert_int_equal(over(&a), CK_GRPC_OK);
	assert_int_equal(over(&b), CK_GRPC_OK);
	assert_int_equal(over(&c), CK_GRPC_OK);
	assert_int_equal(calls(s, "StopContainer"), 2);
}

static void all_hear_an_error_and_the_next_call_is_a_new_one(void **state)
{
	struct stage *s = *state;
	struct cri_call a, b;
	begin(s, "remove=1s,fail.remove=1");
	ask(s, &a, "RemoveContainer", 0, "60S");
	ask(s, &b, "RemoveContainer", 0, "60S");
	assert_int_equal(over(&a), CK_GRPC_UNKNOWN);
	assert_int_equal(over(&b), CK_GRPC_UNKNOWN);
	ask(s, &a, "RemoveContainer", 0, "60S");
	assert_int_equal(over(&a), CK_GRPC_OK);
	assert_int_equal(calls(s, "RemoveContainer"), 2);
}

static void a_restart_costs_one_call_more(void **state)
{
	struct stage *s = *state;
	struct cri_call call;
	begin(s, "stop=3s,cancel=finish");
	for (unsigned life = 0; life < 2; life++) {
		for (unsigned i = 0; i < 5; i++) {
			ask(s, &call, "StopPodSandbox", 0, "200m");
			assert_int_equal(over(&call), CK_GRPC_DEADLINE_EXCEEDED);
		}
		if (life == 0) {
			stage_kill(s);
			stage_again(s);
		}
	}
	ask(s, &call, "StopPodSandbox", 0, "60S");
	assert_int_equal(over(&call), CK_GRPC_OK);
	assert_int_equal(calls(s, "StopPodSandbox"), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_STAGE(k35_twenty_repeated_calls_are_one),
		ON_STAGE(twenty_repeated_removals_of_a_pod_are_one),
		ON_STAGE(k35_a_thousand_repeated_calls_are_one),
		ON_STAGE(callers_that_come_one_after_the_other_find_it_under_way),
		ON_STAGE(another_grace_is_another_request),
		ON_STAGE(all_hear_an_error_and_the_next_call_is_a_new_one),
		ON_STAGE(a_restart_costs_one_call_more),
	};
	return CK_TEST_MAIN(tests);
}
