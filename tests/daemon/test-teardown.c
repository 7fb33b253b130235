/* SPDX-License-Identifier: Apache-2.0 */
/* Stops and removals that are asked for again while the runtime is still at them. */
#include <signal.h>
#include <string.h>

#include "tests/daemon/stage.h"

#define CK_TEST_SECONDS 120
#include "tests/unit/harness.h"

enum { MANY = 1000 };
static char pod[POD_ID], container[POD_ID];

static void begin_with(struct stage *s, const char *simulator, const char *const *flags)
{
	stage_start(s, simulator, flags);
	assert_int_equal(pod_run(&s->kubelet, "pod", 0, "20S", pod), CK_GRPC_OK);
	assert_int_equal(pod_create(&s->kubelet, pod, "pod", 0, "20S", container), CK_GRPC_OK);
	assert_int_equal(cri_do_id(&s->kubelet, "StartContainer", container), CK_GRPC_OK);
}

static void begin(struct stage *s, const char *simulator)
{
	begin_with(s, simulator, NULL);
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

/* -1: without an answer */
static int over(struct cri_call *call)
{
	cri_wait(call);
	int code = call->answered ? call->status.code : -1;
	cri_end(call);
	return code;
}

static void gave_up(struct cri_call *call)
{
	cri_wait(call);
	assert_int_equal(call->status.code, CK_GRPC_DEADLINE_EXCEEDED);
	assert_non_null(strstr(call->status.message, "context deadline exceeded"));
	cri_end(call);
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

/* The runtime stands still: nothing ends before all have asked, however slow the machine is. */
static void hold(struct stage *s)
{
	assert_int_equal(kill(s->w.sim, SIGSTOP), 0);
}

static void let_go(struct stage *s)
{
	assert_int_equal(kill(s->w.sim, SIGCONT), 0);
}

/* once it has given up, crikeepd has read all that was asked for before */
static void ask_and_give_up(struct stage *s, const char *rpc)
{
	struct cri_call call;
	ask(s, &call, rpc, 0, "100m");
	gave_up(&call);
}

/* One third waits, one third leaves, and one third, also the last one, has no time left soon. */
enum caller { GIVES_UP, LEAVES, WAITS };
static enum caller nth(unsigned i, unsigned k)
{
	return (enum caller)((k - 1 - i) % 3);
}

static void all_ask(struct stage *s, struct cri_call *call, const char *rpc, unsigned k)
{
	for (unsigned i = 0; i < k; i++)
		ask(s, &call[i], rpc, 0, nth(i, k) == GIVES_UP ? "300m" : "90S");
	for (unsigned i = 0; i < k; i++)
		if (nth(i, k) == LEAVES) {
			cri_cancel(&call[i]);
			cri_end(&call[i]);
		}
	for (unsigned i = 0; i < k; i++)
		if (nth(i, k) == GIVES_UP)
			gave_up(&call[i]);
}

static void the_rest_hears(struct cri_call *call, unsigned k, int code)
{
	for (unsigned i = 0; i < k; i++)
		if (nth(i, k) == WAITS)
			assert_int_equal(over(&call[i]), code);
}

/* crikeepd is killed so often while all wait, and all ask again */
static void repeated(struct stage *s, const char *rpc, unsigned k, unsigned restarts)
{
	static struct cri_call call[MANY];
	for (unsigned i = 0; i < restarts; i++) {
		hold(s);
		all_ask(s, call, rpc, k);
		assert_int_equal(world_kill(&s->w.daemon, SIGKILL), 128 + SIGKILL);
		the_rest_hears(call, k, -1);
		stage_leave(s);
		let_go(s);
		stage_again(s);
	}
	hold(s);
	all_ask(s, call, rpc, k);
	let_go(s);
	the_rest_hears(call, k, CK_GRPC_OK);
	unsigned n = calls(s, rpc);
	print_message("%s: callers %u, restarts of crikeepd %u, calls in the runtime %u\n", rpc, k,
		      restarts, n);
	assert_in_range(n, 1, 1 + restarts);
}

static void all_repeated(struct stage *s, unsigned k, unsigned restarts)
{
	begin(s, "cancel=finish");
	repeated(s, "StopContainer", k, restarts);
	repeated(s, "RemoveContainer", k, restarts);
	repeated(s, "StopPodSandbox", k, restarts);
	repeated(s, "RemovePodSandbox", k, restarts);
}

static void k35_twenty_repeated_calls_are_one(void **state)
{
	all_repeated(*state, 20, 0);
}

static void k35_a_thousand_repeated_calls_are_one(void **state)
{
	all_repeated(*state, MANY, 0);
}

static void k35_a_restart_costs_twenty_callers_one_call_more(void **state)
{
	all_repeated(*state, 20, 1);
}

static void k35_a_restart_costs_a_thousand_callers_one_call_more(void **state)
{
	all_repeated(*state, MANY, 1);
}

static void the_stop_before_a_removal_is_one_too(void **state)
{
	struct stage *s = *state;
	begin(s, NULL);
	repeated(s, "RemovePodSandbox", 20, 0);
	assert_int_equal(calls(s, "StopPodSandbox"), 1);
}

static void callers_that_come_one_after_the_other_find_it_under_way(void **state)
{
	struct stage *s = *state;
	struct cri_call call;
	begin(s, NULL);
	hold(s);
	for (unsigned i = 0; i < 10; i++)
		ask_and_give_up(s, "StopPodSandbox");
	ask(s, &call, "StopPodSandbox", 0, "60S");
	ask_and_give_up(s, "StopPodSandbox");
	let_go(s);
	assert_int_equal(over(&call), CK_GRPC_OK);
	assert_int_equal(calls(s, "StopPodSandbox"), 1);
	assert_int_equal(
		world_metric(&s->w, "crikeepd_teardowns_joined_total{kind=\"sandbox\"}"), 11);
}

/* the runtime is held while it makes another container in the pod */
static void begin_creating(struct stage *s, struct cri_call *creates)
{
	static const char *const flags[] = { "--set", "cache.create_deadline=3s", NULL };
	begin_with(s, "create=1s", flags);
	struct ck_bytes request = cri_create_request(pod, "pod", "other", 0);
	cri_start(&s->kubelet, creates, "CreateContainer", &request, "60S");
	world_until(&s->w, "begin container", 2, 20);
	hold(s);
}

static void a_removal_waits_for_a_creation_also_without_its_callers(void **state)
{
	struct stage *s = *state;
	struct cri_call creates, removes;
	begin_creating(s, &creates);
	ask(s, &removes, "RemovePodSandbox", 0, "60S");
	ask_and_give_up(s, "RemovePodSandbox");
	cri_cancel(&removes);
	cri_end(&removes);
	let_go(s);
	assert_int_equal(over(&creates), CK_GRPC_ABORTED);
	world_until(&s->w, "remove sandbox", 1, 20);
	assert_int_equal(calls(s, "RemovePodSandbox"), 1);
}

/* they hold one turn while they wait, and one call is sent in the end */
static void a_thousand_removals_wait_for_a_creation_as_one(void **state)
{
	static struct cri_call call[MANY];
	struct stage *s = *state;
	struct cri_call creates, first;
	begin_creating(s, &creates);
	ask(s, &first, "RemovePodSandbox", 0, "60S");
	all_ask(s, call, "RemovePodSandbox", MANY);
	assert_int_equal(
		world_metric(&s->w, "crikeepd_teardowns_joined_total{kind=\"sandbox\"}"), MANY);
	let_go(s);
	the_rest_hears(call, MANY, CK_GRPC_OK);
	assert_int_equal(over(&first), CK_GRPC_OK);
	assert_int_equal(over(&creates), CK_GRPC_ABORTED);
	assert_int_equal(calls(s, "StopPodSandbox"), 1);
	assert_int_equal(calls(s, "RemovePodSandbox"), 1);
}

static void another_grace_is_another_request(void **state)
{
	struct stage *s = *state;
	enum { N = 20 };
	struct cri_call call[N];
	begin(s, NULL);
	hold(s);
	for (unsigned i = 0; i < N; i++)
		ask(s, &call[i], "StopContainer", i % 2 ? 30 : 2, i < N - 1 ? "60S" : "100m");
	gave_up(&call[N - 1]);
	let_go(s);
	for (unsigned i = 0; i < N - 1; i++)
		assert_int_equal(over(&call[i]), CK_GRPC_OK);
	assert_int_equal(calls(s, "StopContainer"), 2);
}

static void all_hear_an_error_and_the_next_call_is_a_new_one(void **state)
{
	struct stage *s = *state;
	struct cri_call a, b;
	begin(s, "fail.remove=1");
	hold(s);
	ask(s, &a, "RemoveContainer", 0, "60S");
	ask(s, &b, "RemoveContainer", 0, "60S");
	ask_and_give_up(s, "RemoveContainer");
	let_go(s);
	assert_int_equal(over(&a), CK_GRPC_UNKNOWN);
	assert_int_equal(over(&b), CK_GRPC_UNKNOWN);
	ask(s, &a, "RemoveContainer", 0, "60S");
	assert_int_equal(over(&a), CK_GRPC_OK);
	assert_int_equal(calls(s, "RemoveContainer"), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_STAGE(k35_twenty_repeated_calls_are_one),
		ON_STAGE(k35_a_thousand_repeated_calls_are_one),
		ON_STAGE(k35_a_restart_costs_twenty_callers_one_call_more),
		ON_STAGE(k35_a_restart_costs_a_thousand_callers_one_call_more),
		ON_STAGE(the_stop_before_a_removal_is_one_too),
		ON_STAGE(callers_that_come_one_after_the_other_find_it_under_way),
		ON_STAGE(a_removal_waits_for_a_creation_also_without_its_callers),
		ON_STAGE(a_thousand_removals_wait_for_a_creation_as_one),
		ON_STAGE(another_grace_is_another_request),
		ON_STAGE(all_hear_an_error_and_the_next_call_is_a_new_one),
	};
	return CK_TEST_MAIN(tests);
}
