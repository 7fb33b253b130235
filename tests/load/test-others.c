/* SPDX-License-Identifier: Apache-2.0 */
/* What goes wrong with one call costs that call, and nothing of all the others on the same
 * connections. */
#include "tests/unit/harness.h"

#include <string.h>

#include "src/base/mem.h"
#include "tests/daemon/world.h"
#include "tests/flow/cri-client.h"
#include "tests/load/load.h"

#define MANY 8u

struct others { /* on one connection with what goes wrong */
	struct load_client client;
	struct load_call events, pod;
	struct ck_bytes request;
};

/* an open stream of events, and a pod that is being made */
static void others_begin(struct others *others, const struct world *w)
{
	*others = (struct others){ .request = load_pod(1000) };
	load_open(&others->client, w->cri);
	load_call(&others->client, &others->events, "GetContainerEvents", NULL, 0, 0);
	load_call(&others->client, &others->pod, "RunPodSandbox", others->request.p,
		  others->request.len, 30 * LOAD_S);
	load_flush(&others->client);
}

/* calls answered now, the pod made, its event come, and still the same two connections to the
 * runtime */
static void others_have_lost_nothing(struct others *others, const struct world *w)
{
	struct load_call call = { .over = NULL };
	for (unsigned i = 0; i < 200; i++)
		assert_int_equal(load_do(&others->client, &call, "Version", NULL, 0), CK_GRPC_OK);
	assert_int_equal(load_do(&others->client, &call, "ListPodSandbox", NULL, 0), CK_GRPC_OK);
	load_call_fini(&call);
	load_wait(&others->pod);
	assert_int_equal(others->pod.code, CK_GRPC_OK);
	while (!others->events.messages)
		load_turn(5);
	assert_non_null(others->events.stream);
	assert_true(others->client.fd >= 0);
	assert_false(others->client.draining);
	assert_true(world_metric(w, "crikeepd_upstream_failures_total") < 0.5);
}

static void others_end(struct others *others)
{
	load_close(&others->client);
	load_call_fini(&others->events);
	load_call_fini(&others->pod);
	ck_bytes_free(&others->request);
}

/* ---- an error text of 150 KB ----------------------------------------------------------------- */

static void an_error_text_of_150_kb_costs_its_own_call(void **state)
{
	struct load_call list = { .over = NULL }, removal = { .over = NULL };
	struct ck_bytes id = { 0 };
	struct others others;
	struct world w;
	(void)state;
	load_forget_clients();
	world_init(&w);
	world_sim(&w, "create=1s,sandboxes=1,fail.remove=3,fail.sandbox=1,error_text=150000");
	world_daemon(&w, NULL);
	struct load_client client;
	load_open(&client, w.cri);
	assert_int_equal(load_do(&client, &list, "ListPodSandbox", NULL, 0), CK_GRPC_OK);
	ck_bytes_field_text(&id, 1, cri_text(&list.reply, "1.1"));
	others_begin(&others, &w);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(
			load_do(&others.client, &removal, "RemovePodSandbox", id.p, id.len),
			CK_GRPC_UNAVAILABLE);
	/* their pod failed like that: it was not heard how, and so tried once more (K8) */
	others_have_lost_nothing(&others, &w);
	assert_int_equal(load_do(&client, &removal, "RemovePodSandbox", id.p, id.len), CK_GRPC_OK);
	assert_int_equal(world_count(&w, "begin sandbox"), 2);
	others_end(&others);
	ck_bytes_free(&id);
	load_call_fini(&list);
	load_call_fini(&removal);
	load_close(&client);
	world_fini(&w);
}

/* ---- GOAWAY ---------------------------------------------------------------------------------- */

static struct {
	unsigned begun, answered, refused, failed, wanted;
	char text[256];
} calls;

static void call_next(struct load_call *call)
{
	if (call->code == CK_GRPC_OK)
		calls.answered++;
	else if (call->code < 0 && call->error == CK_H2_REFUSED_STREAM)
		calls.refused++; /* gRPC asks again by itself: the runtime has not looked at it */
	else if (!calls.failed++)
		snprintf(calls.text, sizeof(calls.text), "%d (HTTP/2 error %u): %s", call->code,
			 (unsigned)call->error, call->text);
	if (calls.begun == calls.wanted + calls.refused)
		return;
	calls.begun++;
	load_call(call->client, call, calls.begun % 4 ? "Version" : "ListPodSandbox", NULL, 0,
		  30 * LOAD_S);
}

static void a_goaway_of_the_runtime_costs_no_call(void **state)
{
	struct load_call many[MANY] = { 0 }, *pods;
	struct load_client client[2];
	size_t n = ck_test_rounds(200);
	struct world w;
	(void)state;
	load_forget_clients();
	pods = calloc(n, sizeof(*pods));
	assert_non_null(pods);
	world_init(&w);
	world_sim(&w, "goaway=50,create=500ms");
	world_daemon(&w, NULL);
	memset(&calls, 0, sizeof(calls));
	calls.wanted = 4000;
	for (unsigned i = 0; i < 2; i++)
		load_open(&client[i], w.cri);
	for (size_t i = 0; i < n; i++) {
		struct ck_bytes request = load_pod(i);
		load_call(&client[1], &pods[i], "RunPodSandbox", request.p, request.len,
			  30 * LOAD_S);
		ck_bytes_free(&request);
	}
	for (unsigned i = 0; i < MANY; i++) {
		many[i].over = call_next;
		calls.begun++;
		load_call(&client[i % 2], &many[i], "Version", NULL, 0, 30 * LOAD_S);
	}
	for (unsigned i = 0; i < MANY; i++)
		load_wait(&many[i]);
	for (size_t i = 0; i < n; i++) {
		load_wait(&pods[i]);
		if (pods[i].code != CK_GRPC_OK)
			fail_msg("a pod: %d %s", pods[i].code, pods[i].text);
	}
	printf("of %u calls %u were refused unseen, %u failed %s\n", calls.begun, calls.refused,
	       calls.failed, calls.text);
	assert_int_equal(calls.failed, 0);
	assert_int_equal(calls.answered, calls.wanted);
	assert_true(calls.refused < calls.wanted / 4);
	assert_int_equal(world_count(&w, "begin sandbox"), n);
	assert_true(world_metric(&w, "crikeepd_upstream_failures_total") < 0.5);
	for (unsigned i = 0; i < 2; i++) {
		assert_false(client[i].draining);
		load_close(&client[i]);
	}
	for (unsigned i = 0; i < MANY; i++)
		load_call_fini(&many[i]);
	for (size_t i = 0; i < n; i++)
		load_call_fini(&pods[i]);
	free(pods);
	world_fini(&w);
}

/* ---- calls cancelled ------------------------------------------------------------------------- */

static void five_thousand_cancelled_calls_cost_nobody_else(void **state)
{
	static const char *const rpcs[] = { "Version", "ListPodSandbox", "RunPodSandbox",
					    "GetContainerEvents", "ListContainers" };
	enum { BATCH = 100 };
	struct load_call batch[BATCH] = { 0 };
	struct ck_bytes pod = load_pod(0);
	struct others others;
	struct world w;
	unsigned rounds = 5000 / BATCH;
	(void)state;
	load_forget_clients();
	world_init(&w);
	world_sim(&w, "create=3s,list=50ms");
	world_daemon(&w, NULL);
	others_begin(&others, &w);
	for (unsigned round = 0; round < rounds; round++) {
		for (unsigned i = 0; i < BATCH; i++) {
			unsigned which = (round + i) % CK_COUNT(rpcs);
			bool create = !strcmp(rpcs[which], "RunPodSandbox");
			load_call(&others.client, &batch[i], rpcs[which], create ? pod.p : NULL,
				  create ? pod.len : 0, LOAD_S);
			/* half of them while the request is still here, half on their way */
			if (i % 2)
				load_flush(&others.client);
		}
		if (round % 2)
			load_turn(1);
		for (unsigned i = 0; i < BATCH; i++)
			load_cancel(&batch[i]);
		load_turn(1);
	}
	others_have_lost_nothing(&others, &w);
	world_until(&w, "create sandbox", 2, 20);
	assert_int_equal(world_count(&w, "begin sandbox"), 2);
	assert_int_equal(others.client.open, 1);
	others_end(&others);
	for (unsigned i = 0; i < BATCH; i++)
		load_call_fini(&batch[i]);
	ck_bytes_free(&pod);
	world_fini(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_error_text_of_150_kb_costs_its_own_call),
		cmocka_unit_test(a_goaway_of_the_runtime_costs_no_call),
		cmocka_unit_test(five_thousand_cancelled_calls_cost_nobody_else),
	};
	return CK_TEST_MAIN(tests);
}
