/* SPDX-License-Identifier: Apache-2.0 */
/* Starts that take longer than their callers wait, and the next attempt that a kubelet asks for
 * meanwhile (K34). */
#include <signal.h>
#include <string.h>

#include "tests/daemon/stage.h"

#define CK_TEST_SECONDS 120
#include "tests/unit/harness.h"

static char pod[POD_ID], container[POD_ID];

/* a container that is ready to be started */
static void begin(struct stage *s, const char *simulator, const char *const *flags)
{
	stage_start(s, simulator, flags);
	assert_int_equal(pod_run(&s->kubelet, "pod", 0, "20S", pod), CK_GRPC_OK);
	assert_int_equal(pod_create(&s->kubelet, pod, "pod", 0, "20S", container), CK_GRPC_OK);
}

static void start(struct stage *s, struct cri_call *call, const char *timeout)
{
	struct ck_bytes request = { 0 };
	assert_int_equal(ck_bytes_field_text(&request, 1, container), 0);
	cri_start(&s->kubelet, call, "StartContainer", &request, timeout);
}

static int over(struct cri_call *call)
{
	cri_wait(call);
	int code = call->status.code;
	cri_end(call);
	return code;
}

/* a call of a kubelet that gives up, as grpc-go does at its deadline */
static void start_too_short(struct stage *s)
{
	struct cri_call call;
	start(s, &call, "300m");
	cri_wait(&call);
	assert_int_equal(call.status.code, CK_GRPC_DEADLINE_EXCEEDED);
	assert_non_null(strstr(call.status.message, "context deadline exceeded"));
	cri_end(&call);
}

static int next_attempt(struct stage *s, struct cri_call *call, const char *timeout)
{
	struct ck_bytes request = cri_create_request(pod, "pod", "main", 1);
	cri_start(&s->kubelet, call, "CreateContainer", &request, timeout);
	cri_wait(call);
	return call->status.code;
}

static unsigned containers(struct stage *s)
{
	struct ck_bytes none = { 0 }, reply;
	assert_int_equal(cri_do(&s->agent, "ListContainers", &none, &reply), CK_GRPC_OK);
	unsigned n = cri_count(&reply, "1");
	ck_bytes_free(&reply);
	return n;
}

static void a_start_goes_on_and_the_next_attempt_finds_it_running(void **state)
{
	struct stage *s = *state;
	struct cri_call call;
	begin(s, "start=2s", NULL);
	start_too_short(s);
	assert_int_equal(next_attempt(s, &call, "30S"), CK_GRPC_ALREADY_EXISTS);
	assert_non_null(strstr(call.status.message, "attempt 0 exists: it was started when"));
	cri_end(&call);
	assert_int_equal(world_count(&s->w, "start container"), 1);
	assert_int_equal(containers(s), 1);
	/* also when it is asked for later, until it ends */
	assert_int_equal(next_attempt(s, &call, "30S"), CK_GRPC_ALREADY_EXISTS);
	cri_end(&call);
	assert_int_equal(world_metric(&s->w, "crikeepd_starts_total"), 1);
	assert_int_equal(world_metric(&s->w, "crikeep_starts_unheard_total"), 1);
	assert_int_equal(cri_do_id(&s->kubelet, "StopContainer", container), CK_GRPC_OK);
	assert_int_equal(next_attempt(s, &call, "30S"), CK_GRPC_OK);
	cri_end(&call);
}

static void a_repeated_start_joins_and_hears_the_same_end(void **state)
{
	struct stage *s = *state;
	struct cri_call first, second, third;
	begin(s, "start=1s", NULL);
	start(s, &first, "20S");
	start(s, &second, "20S");
	start_too_short(s);
	start(s, &third, NULL);
	assert_int_equal(over(&first), CK_GRPC_OK);
	assert_int_equal(over(&second), CK_GRPC_OK);
	assert_int_equal(over(&third), CK_GRPC_OK);
	assert_int_equal(world_count(&s->w, "start container"), 1);
	assert_int_equal(world_metric(&s->w, "crikeepd_starts_joined_total"), 3);
	/* somebody has heard of it, so a second instance is what the caller wants */
	assert_int_equal(next_attempt(s, &first, "20S"), CK_GRPC_OK);
	cri_end(&first);
}

static void a_start_that_fails_makes_room(void **state)
{
	struct stage *s = *state;
	struct cri_call call;
	begin(s, "start=1s,fail.start=1", NULL);
	start_too_short(s);
	assert_int_equal(next_attempt(s, &call, "20S"), CK_GRPC_OK);
	cri_end(&call);
	assert_true(world_logged(&s->w, "it was not started: UNKNOWN"));
}

static void who_waits_too_short_for_a_start_is_told_so(void **state)
{
	struct stage *s = *state;
	struct cri_call call;
	begin(s, "start=60s", NULL);
	start_too_short(s);
	assert_int_equal(next_attempt(s, &call, "1S"), CK_GRPC_UNAVAILABLE);
	assert_non_null(strstr(call.status.message, "attempt 0 is being started"));
	cri_end(&call);
}

static void a_stop_ends_a_start(void **state)
{
	struct stage *s = *state;
	static const char *const flags[] = { "--set", "cache.lost_grace=1s", NULL };
	struct cri_call waits, call;
	begin(s, "start=60s", flags);
	start(s, &waits, "50S");
	assert_int_equal(cri_do_id(&s->kubelet, "StopContainer", container), CK_GRPC_OK);
	assert_int_equal(over(&waits), CK_GRPC_ABORTED);
	assert_int_equal(next_attempt(s, &call, "20S"), CK_GRPC_OK);
	snprintf(container, sizeof(container), "%s", cri_text(&call.reply, "1"));
	cri_end(&call);
	start(s, &waits, "50S");
	assert_int_equal(cri_do_id(&s->kubelet, "StopPodSandbox", pod), CK_GRPC_OK);
	assert_int_equal(over(&waits), CK_GRPC_ABORTED);
	assert_int_equal(world_count(&s->w, "start container"), 0);
}

static void killed_during_a_start_it_finds_the_container_running(void **state)
{
	struct stage *s = *state;
	struct cri_call call;
	begin(s, "start=3s,cancel=finish", NULL);
	start_too_short(s);
	stage_kill(s);
	stage_again(s);
	assert_int_equal(next_attempt(s, &call, "30S"), CK_GRPC_ALREADY_EXISTS);
	cri_end(&call);
	assert_int_equal(world_count(&s->w, "start container"), 1);
	assert_int_equal(containers(s), 1);
	stage_kill(s); /* and so does the life after that */
	stage_again(s);
	assert_int_equal(next_attempt(s, &call, "30S"), CK_GRPC_ALREADY_EXISTS);
	cri_end(&call);
}

static void killed_during_a_start_that_comes_to_nothing_it_creates_anew(void **state)
{
	struct stage *s = *state;
	static const char *const flags[] = { "--set", "cache.lost_grace=1s", NULL };
	struct cri_call call;
	begin(s, "start=60s", flags);
	start_too_short(s);
	stage_kill(s);
	stage_again(s);
	assert_int_equal(next_attempt(s, &call, "30S"), CK_GRPC_OK);
	cri_end(&call);
	assert_true(world_logged(&s->w, "its start ended without an answer"));
	assert_true(world_logged(&s->w, "the runtime has not started it"));
}

static void a_runtime_that_dies_during_a_start_is_asked_again(void **state)
{
	struct stage *s = *state;
	static const char *const flags[] = { "--set", "cache.lost_grace=1s", NULL };
	struct cri_call waits, call;
	begin(s, "start=60s", flags);
	start(s, &waits, "50S");
	while (world_metric(&s->w, "crikeepd_starts_total") < 1)
		;
	world_kill(&s->w.sim, SIGKILL);
	assert_int_equal(over(&waits), CK_GRPC_UNAVAILABLE);
	world_sim(&s->w, NULL);
	assert_int_equal(next_attempt(s, &call, "30S"), CK_GRPC_OK);
	cri_end(&call);
	assert_int_equal(world_metric(&s->w, "crikeep_starts_lost_total"), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_STAGE(a_start_goes_on_and_the_next_attempt_finds_it_running),
		ON_STAGE(a_repeated_start_joins_and_hears_the_same_end),
		ON_STAGE(a_start_that_fails_makes_room),
		ON_STAGE(who_waits_too_short_for_a_start_is_told_so),
		ON_STAGE(a_stop_ends_a_start),
		ON_STAGE(killed_during_a_start_it_finds_the_container_running),
		ON_STAGE(killed_during_a_start_that_comes_to_nothing_it_creates_anew),
		ON_STAGE(a_runtime_that_dies_during_a_start_is_asked_again),
	};
	return CK_TEST_MAIN(tests);
}
