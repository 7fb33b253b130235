/* SPDX-License-Identifier: Apache-2.0 */
/* GetContainerEvents through crikeepd: what is hidden is in no event, and each commit is told of
 * exactly once. */
#define CK_TEST_SECONDS 300
#include "src/base/fault.h"
#include "src/daemon/commit-events.h"
#include "tests/flow/peer.h"

#define S CK_NS_PER_S

static int finish(struct world *w, struct ck_turn *turn, const char *id)
{
	struct ck_result result = { .size = sizeof(result), .id = id };
	int r = ck_turn_finish(turn, &result, &w->err);
	if (r == CK_HAND_BACK)
		ck_turn_answered(turn, CK_DELIVERED);
	ck_turn_free(turn);
	return r;
}

/* a request for what is kept: handed back once it was inspected */
static void repeat(struct world *w, const struct peer_object *o)
{
	struct world_ear ear;
	struct ck_turn *turn = world_begin(w, o);
	world_listen(&ear, turn);
	world_settle(w);
	assert_int_equal(ear.outcome, CK_HAND_BACK);
	ck_turn_answered(turn, CK_DELIVERED);
	ck_turn_free(turn);
}

/* ---- made at a commit ------------------------------------------------------------------------ */

static void a_commit_in_time_is_told_of(void **state)
{
	(void)state;
	struct world *w = world_new();
	struct client *c = client_subscribe(w);
	assert_int_equal(peer_subscribers(&w->peer), 1);
	assert_false(w->peer.may_compress);
	world_commit(w, peer_sandbox(&w->peer, "s1", "web"));
	world_settle(w);
	assert_string_equal(c->seen, "CREATED s1[s1]\nSTARTED s1[s1]\n");
	/* nanoseconds since 1970 */
	assert_in_range(c->created_at, UINT64_C(1500000000) * S, UINT64_C(1) << 62);
	assert_int_equal(w->daemon.metrics.events_made, 2);
	client_free(c);
	assert_int_equal(peer_subscribers(&w->peer), 0);
	world_free(w);
}

static void what_was_hidden_is_told_of_at_its_commit(void **state)
{
	(void)state;
	struct world *w = world_new();
	struct client *c = client_subscribe(w);
	struct peer_object o = *peer_sandbox(&w->peer, "s1", "web");
	struct ck_turn *turn = world_begin(w, &o);
	/* its id is not known yet: hidden by its key */
	peer_event(&w->peer, "s1", "s1", CK_EVENT_CREATED);
	world_settle(w);
	ck_turn_leave(turn);
	assert_int_equal(finish(w, turn, "s1"), CK_KEPT);
	peer_event(&w->peer, "s1", "s1", CK_EVENT_STARTED); /* by its id */
	world_settle(w);
	assert_string_equal(c->seen, "");
	assert_int_equal(w->daemon.metrics.events_hidden, 2);
	repeat(w, &o);
	assert_string_equal(c->seen, "CREATED s1[s1]\nSTARTED s1[s1]\n");
	client_free(c);
	world_free(w);
}

static void a_container_is_told_of_with_its_pod(void **state)
{
	(void)state;
	for (int asked_one_by_one = 0; asked_one_by_one <= 1; asked_one_by_one++) {
		struct world *w = world_new();
		struct client *c = client_subscribe(w);
		w->peer.no_containers_statuses = asked_one_by_one;
		world_commit(w, peer_sandbox(&w->peer, "s1", "web"));
		world_settle(w);
		world_keep(w, peer_container(&w->peer, "c1", "s1", "kept"));
		world_commit(w, peer_container(&w->peer, "c2", "s1", "app"));
		world_settle(w);
		world_commit(w, peer_container(&w->peer, "c3", "s1", "side"));
		world_settle(w);
		/* the kept one is in no event */
		assert_int_equal(client_saw(c, "CREATED c2[s1 c2]"), 1);
		assert_int_equal(client_saw(c, "CREATED c3[s1 c2 c3]"), 1);
		assert_null(strstr(c->seen, "c1"));
		assert_null(strstr(c->seen, "STARTED c"));
		assert_int_equal(peer_heard(&w->peer, "ContainerStatus"), asked_one_by_one ? 3 : 0);
		client_free(c);
		world_free(w);
	}
}

static void a_container_that_vanished_is_left_out(void **state)
{
	(void)state;
	struct world *w = world_new();
	struct client *c = client_subscribe(w);
	w->peer.no_containers_statuses = true;
	world_commit(w, peer_sandbox(&w->peer, "s1", "web"));
	world_commit(w, peer_container(&w->peer, "c1", "s1", "one"));
	world_settle(w);
	peer_plan(&w->peer, "ContainerStatus")->hold = true;
	world_commit(w, peer_container(&w->peer, "c2", "s1", "two"));
	world_settle(w); /* listed, and c1 is being asked for */
	struct peer_object *gone = peer_has(&w->peer, "c1");
	*gone = w->peer.objects[--w->peer.objects_n];
	peer_release(&w->peer, "ContainerStatus");
	world_settle(w);
	assert_int_equal(client_saw(c, "CREATED c2[s1 c2]"), 1);
	client_free(c);
	world_free(w);
}

static void what_was_found_in_use_is_told_to_run(void **state)
{
	(void)state;
	struct world *w = world_new();
	struct client *c = client_subscribe(w);
	world_commit(w, peer_sandbox(&w->peer, "s1", "web"));
	world_keep(w, peer_container(&w->peer, "c1", "s1", "app"));
	peer_has(&w->peer, "c1")->condition = CK_CONDITION_RUNNING;
	world_advance(w, CK_TTL + 60 * S); /* K22 */
	assert_int_equal(client_saw(c, "CREATED c1[s1 c1]"), 1);
	assert_int_equal(client_saw(c, "STARTED c1[s1 c1]"), 1);
	client_free(c);
	world_free(w);
}

static void a_second_commit_is_not_told_of(void **state)
{
	(void)state;
	struct world *w = world_new();
	struct client *c = client_subscribe(w);
	world_commit(w, peer_sandbox(&w->peer, "s1", "web"));
	struct peer_object o = *peer_container(&w->peer, "c1", "s1", "app");
	struct ck_turn *turn = world_begin(w, &o);
	struct ck_result result = { .size = sizeof(result), .id = "c1" };
	assert_int_equal(ck_turn_finish(turn, &result, NULL), CK_HAND_BACK);
	world_settle(w);
	ck_turn_answered(turn, CK_LOST); /* K7: kept again */
	ck_turn_free(turn);
	assert_int_equal(world_hides(w, &o), 1);
	repeat(w, &o);
	assert_int_equal(client_saw(c, "CREATED c1[s1 c1]"), 1);
	client_free(c);
	world_free(w);
}

static void nobody_listens_nothing_is_asked(void **state)
{
	(void)state;
	struct world *w = world_new();
	world_commit(w, peer_sandbox(&w->peer, "s1", "web"));
	world_settle(w);
	struct client *c = client_subscribe(w);
	client_free(c);
	world_commit(w, peer_sandbox(&w->peer, "s2", "shop"));
	world_settle(w);
	assert_int_equal(peer_heard(&w->peer, "PodSandboxStatus"), 0);
	world_free(w);
}

static void a_client_that_leaves_takes_its_questions_along(void **state)
{
	(void)state;
	struct world *w = world_new();
	struct client *c = client_subscribe(w);
	peer_plan(&w->peer, "PodSandboxStatus")->hold = true;
	world_commit(w, peer_sandbox(&w->peer, "s1", "web"));
	world_settle(w);
	client_free(c);
	assert_int_equal(peer_release(&w->peer, "PodSandboxStatus"), 0); /* reset */
	c = client_subscribe(w);
	world_settle(w);
	assert_string_equal(c->seen, "");
	client_free(c);
	world_free(w);
}

/* ---- exactly once ---------------------------------------------------------------------------- */

static void the_runtime_s_own_event_after_a_made_one_is_dropped(void **state)
{
	(void)state;
	struct world *w = world_new();
	struct client *c = client_subscribe(w);
	world_commit(w, peer_sandbox(&w->peer, "s1", "web"));
	world_settle(w);
	peer_event(&w->peer, "s1", "s1", CK_EVENT_CREATED);
	peer_event(&w->peer, "s1", "s1", CK_EVENT_STARTED);
	world_settle(w);
	assert_string_equal(c->seen, "CREATED s1[s1]\nSTARTED s1[s1]\n");
	world_commit(w, peer_container(&w->peer, "c1", "s1", "app"));
	world_settle(w);
	peer_event(&w->peer, "c1", "s1", CK_EVENT_CREATED);
	peer_has(&w->peer, "c1")->condition = CK_CONDITION_RUNNING;
	peer_event(&w->peer, "c1", "s1", CK_EVENT_STARTED);
	world_settle(w);
	assert_int_equal(client_saw(c, "CREATED c1[s1 c1]"), 1);
	assert_int_equal(client_saw(c, "STARTED c1[s1 c1]"), 1);
	client_free(c);
	world_free(w);
}

static void a_made_event_after_the_runtime_s_own_is_dropped(void **state)
{
	(void)state;
	struct world *w = world_new();
	struct client *c = client_subscribe(w), *late = NULL;
	peer_plan(&w->peer, "PodSandboxStatus")->hold = true;
	world_commit(w, peer_sandbox(&w->peer, "s1", "web"));
	world_settle(w);
	peer_event(&w->peer, "s1", "s1", CK_EVENT_CREATED);
	world_settle(w);
	assert_string_equal(c->seen, "CREATED s1[s1]\n");
	late = client_subscribe(w); /* has had neither */
	peer_release(&w->peer, "PodSandboxStatus");
	world_settle(w);
	assert_string_equal(c->seen, "CREATED s1[s1]\nSTARTED s1[s1]\n");
	assert_string_equal(late->seen, "CREATED s1[s1]\nSTARTED s1[s1]\n");
	client_free(c);
	client_free(late);
	world_free(w);
}

/* ---- a commit does not depend on it ---------------------------------------------------------- */

static void a_commit_does_not_wait_for_a_status(void **state)
{
	(void)state;
	struct world *w = world_new();
	struct client *c = client_subscribe(w);
	peer_plan(&w->peer, "PodSandboxStatus")->hold = true;
	for (int i = 0; i < 50; i++) {
		char id[16], name[16];
		snprintf(id, sizeof(id), "s%d", i);
		snprintf(name, sizeof(name), "pod%d", i);
		world_commit(w, peer_sandbox(&w->peer, id, name)); /* says CK_HAND_BACK */
	}
	world_settle(w);
	assert_string_equal(c->seen, "");
	assert_int_equal(peer_heard(&w->peer, "PodSandboxStatus"), CK_ANNOUNCE_MAX);
	peer_release(&w->peer, "PodSandboxStatus");
	world_settle(w);
	assert_int_equal(w->daemon.metrics.events_made, 100);
	client_free(c);
	world_free(w);
}

static void a_status_that_fails_is_one_event_less(void **state)
{
	static const struct peer_plan plans[] = {
		{ .rpc = "PodSandboxStatus", .grpc = CK_GRPC_INTERNAL },
		{ .rpc = "PodSandboxStatus", .garble = true },
		{ .rpc = "PodSandboxStatus", .grpc = CK_GRPC_NOT_FOUND },
		{ .rpc = "PodSandboxStatus", .other_id = true },
		{ .rpc = "ListContainers", .grpc = CK_GRPC_INTERNAL },
		{ .rpc = "ListContainers", .garble = true },
		{ .rpc = "ContainerStatus", .grpc = CK_GRPC_INTERNAL },
		{ .rpc = "ContainerStatus", .garble = true },
		{ .rpc = "ContainerStatus", .other_id = true },
	};
	(void)state;
	for (size_t i = 0; i < CK_COUNT(plans); i++) {
		struct world *w = world_new();
		world_commit(w, peer_sandbox(&w->peer, "s1", "web"));
		struct client *c = client_subscribe(w);
		w->peer.no_containers_statuses = true;
		*peer_plan(&w->peer, plans[i].rpc) = plans[i];
		world_commit(w, peer_container(&w->peer, "c1", "s1", "app"));
		world_settle(w);
		assert_string_equal(c->seen, "");
		*peer_plan(&w->peer, plans[i].rpc) = (struct peer_plan){ 0 };
		world_commit(w, peer_container(&w->peer, "c2", "s1", "side"));
		world_settle(w);
		assert_string_equal(c->seen, "CREATED c2[s1 c1 c2]\n");
		client_free(c);
		world_free(w);
	}
}

static void a_commit_that_cannot_be_written_is_told_of(void **state)
{
	(void)state;
	struct world *w = world_new();
	struct client *c = client_subscribe(w);
	struct world_ear ear;
	struct peer_object o = *peer_sandbox(&w->peer, "s1", "web");
	world_keep(w, &o); /* its row is on disk */
	ck_fault_arm(CK_FAULT_STORE, 1, true);
	struct ck_turn *turn = world_begin(w, &o);
	world_listen(&ear, turn);
	world_settle(w);
	ck_fault_arm(0, 0, false);
	assert_int_equal(ear.outcome, CK_HAND_BACK); /* K32 */
	ck_turn_free(turn);
	world_settle(w);
	assert_string_equal(c->seen, "CREATED s1[s1]\nSTARTED s1[s1]\n");
	/* its row is written when that is possible, and nothing is told twice */
	world_advance(w, 2 * S);
	world_settle(w);
	assert_string_equal(c->seen, "CREATED s1[s1]\nSTARTED s1[s1]\n");

	/* one the database never knew is committed all the same */
	ck_fault_arm(CK_FAULT_STORE, 1, true);
	world_commit(w, peer_sandbox(&w->peer, "s2", "shop"));
	world_settle(w);
	world_advance(w, 5 * S);
	ck_fault_arm(0, 0, false);
	world_advance(w, 5 * S);
	assert_int_equal(client_saw(c, "CREATED s2[s2]"), 1);
	client_free(c);
	world_free(w);
}

/* ---- the runtime's events -------------------------------------------------------------------- */

static void the_cache_hears_of_the_end_of_what_is_hidden(void **state)
{
	(void)state;
	for (int type = CK_EVENT_STOPPED; type <= CK_EVENT_DELETED; type++) {
		struct world *w = world_new();
		struct client *c = client_subscribe(w);
		world_keep(w, peer_sandbox(&w->peer, "s1", "web"));
		peer_has(&w->peer, "s1")->condition = CK_CONDITION_DEAD;
		peer_event(&w->peer, "s1", "s1", type);
		world_settle(w);
		assert_string_equal(c->seen, "");
		assert_int_equal(peer_heard(&w->peer, "RemovePodSandbox s1"), 1);
		peer_event(&w->peer, "s1", "s1", CK_EVENT_DELETED); /* of our own removal */
		world_settle(w);
		assert_string_equal(c->seen, "");
		client_free(c);
		world_free(w);
	}
}

static void events_of_what_is_visible_pass(void **state)
{
	(void)state;
	struct world *w = world_new();
	struct client *c = client_subscribe(w);
	world_commit(w, peer_sandbox(&w->peer, "s1", "web"));
	world_commit(w, peer_container(&w->peer, "c1", "s1", "app"));
	struct peer_object hidden = *peer_container(&w->peer, "c2", "s1", "side");
	world_keep(w, &hidden);
	world_settle(w);
	c->seen[0] = '\0';
	peer_event(&w->peer, "c1", "s1", CK_EVENT_STARTED);
	peer_event(&w->peer, "c1", "s1", CK_EVENT_STOPPED);
	peer_event(&w->peer, "c2", "s1", CK_EVENT_CREATED); /* hidden, in a pod that is not */
	world_settle(w);
	assert_string_equal(c->seen, "STARTED c1[s1 c1]\nSTOPPED c1[s1 c1]\n");
	c->seen[0] = '\0';
	/* removed through crikeepd, so that nobody knows it any more when its event comes */
	*peer_has(&w->peer, "c1") = w->peer.objects[--w->peer.objects_n];
	ck_object_removed(w->daemon.cache, CK_CONTAINER, "c1");
	peer_event(&w->peer, "c1", "s1", CK_EVENT_DELETED);
	/* only ids: of what is not known to be visible nothing is told */
	peer_event(&w->peer, "c9", "gone", CK_EVENT_STOPPED);
	peer_event(&w->peer, "c9", "gone", CK_EVENT_DELETED);
	peer_event(&w->peer, "c9", "s1", CK_EVENT_STOPPED);
	peer_event(&w->peer, "s1", "gone", CK_EVENT_STOPPED); /* visible */
	world_settle(w);
	assert_string_equal(c->seen, "DELETED c1[s1]\nSTOPPED s1[]\n");
	client_free(c);
	world_free(w);
}

static void an_event_that_cannot_be_read_is_dropped(void **state)
{
	(void)state;
	struct world *w = world_new();
	struct client *c = client_subscribe(w);
	world_commit(w, peer_sandbox(&w->peer, "s1", "web"));
	world_settle(w);
	c->seen[0] = '\0';
	peer_event_bytes(&w->peer, "\x0a\xff\xff\x03", 4);
	peer_event_bytes(&w->peer, "\x22\x05\x0a\x02s1\x1b", 7); /* a group */
	peer_event(&w->peer, "s1", "s1", CK_EVENT_STOPPED);
	world_settle(w);
	assert_string_equal(c->seen, "STOPPED s1[s1]\n");
	client_free(c);
	world_free(w);
}

/* ---- streams --------------------------------------------------------------------------------- */

static void the_runtime_s_status_is_the_client_s(void **state)
{
	(void)state;
	struct world *w = world_new();
	peer_plan(&w->peer, "GetContainerEvents")->grpc = CK_GRPC_UNIMPLEMENTED;
	struct client *c = client_subscribe(w);
	assert_true(c->ended);
	assert_int_equal(c->grpc, CK_GRPC_UNIMPLEMENTED);
	world_commit(w, peer_sandbox(&w->peer, "s1", "web"));
	world_settle(w);
	assert_int_equal(peer_heard(&w->peer, "PodSandboxStatus"), 0);
	client_free(c);
	world_free(w);
}

static void a_runtime_that_goes_ends_the_stream(void **state)
{
	(void)state;
	struct world *w = world_new();
	struct client *c = client_subscribe(w);
	peer_plan(&w->peer, "PodSandboxStatus")->hang_up = true;
	world_commit(w, peer_sandbox(&w->peer, "s1", "web")); /* while its events are being made */
	world_settle(w);
	assert_true(c->ended);
	assert_int_equal(c->grpc, CK_GRPC_UNAVAILABLE);
	struct client *down = client_subscribe(w);
	assert_true(down->ended);
	assert_int_equal(down->grpc, CK_GRPC_UNAVAILABLE);
	peer_plan(&w->peer, "PodSandboxStatus")->hang_up = false;
	world_connect(w);
	struct client *again = client_subscribe(w);
	world_commit(w, peer_container(&w->peer, "c1", "s1", "app"));
	world_settle(w);
	assert_string_equal(again->seen, "CREATED c1[s1 c1]\n");
	client_free(c);
	client_free(down);
	client_free(again);
	world_free(w);
}

/* not by stalling the runtime, and not by what is made on top: it is cut off, and nobody else
 * notices */
static void a_client_that_does_not_read_is_cut_off(void **state)
{
	static char padding[64 << 10];
	(void)state;
	struct world *w = world_new();
	struct client *stalled = client_subscribe(w), *c = client_subscribe(w);
	stalled->reads = false;
	memset(padding, 'x', sizeof(padding) - 1);
	w->peer.padding = padding;
	world_commit(w, peer_sandbox(&w->peer, "s0", "pod0"));
	for (int i = 0; i < 40; i++)
		peer_event(&w->peer, "s0", "s0", CK_EVENT_STOPPED);
	world_settle(w);
	/* 2.5 MiB wait, but in the runtime: its stream has no window */
	assert_false(stalled->ended);
	assert_int_equal(client_saw(c, "STOPPED s0[s0]"), 40);
	for (int i = 1; i < 40 && !stalled->ended; i++) {
		char id[16], name[16], line[40];
		snprintf(id, sizeof(id), "s%d", i);
		snprintf(name, sizeof(name), "pod%d", i);
		snprintf(line, sizeof(line), "STARTED %s[%s]", id, id);
		world_commit(w, peer_sandbox(&w->peer, id, name));
		world_settle(w);
		assert_int_equal(client_saw(c, line), 1);
	}
	assert_true(stalled->ended);
	assert_int_equal(stalled->reset, CK_H2_ENHANCE_YOUR_CALM);
	assert_in_range(stalled->unread, 1, CK_EVENTS_QUEUED);
	assert_int_equal(w->daemon.metrics.clients_cut, 1);
	assert_int_equal(peer_subscribers(&w->peer), 1);
	client_free(stalled);
	client_free(c);
	world_free(w);
}

static void a_slow_client_gets_everything(void **state)
{
	static char padding[64 << 10];
	(void)state;
	struct world *w = world_new();
	struct client *c = client_subscribe(w);
	memset(padding, 'x', sizeof(padding) - 1);
	w->peer.padding = padding;
	world_commit(w, peer_sandbox(&w->peer, "s1", "web"));
	world_settle(w);
	client_stop_reading(c);
	for (int i = 0; i < 100; i++)
		peer_event(&w->peer, "s1", "s1", CK_EVENT_STOPPED);
	world_settle(w);
	assert_in_range(client_saw(c, "STOPPED s1[s1]"), 1, 10); /* a window of them */
	client_read_on(c);
	world_settle(w);
	assert_int_equal(client_saw(c, "STOPPED s1[s1]"), 100);
	client_free(c);
	world_free(w);
}

static void a_daemon_that_stops_says_so(void **state)
{
	(void)state;
	struct world *w = world_new();
	struct client *c = client_subscribe(w);
	ck_events_free(w->daemon.events);
	world_settle(w);
	assert_int_equal(c->grpc, CK_GRPC_UNAVAILABLE);
	client_free(c);
	world_free(w);
}

/* a subscription ends, or its events are whole: never half a one, never one of what is hidden */
static void nothing_hidden_leaks_whatever_allocation_fails(void **state)
{
	(void)state;
	unsigned nth = 1;
	for (bool hit = true; hit; nth++) {
		struct world *w = world_new();
		world_commit(w, peer_sandbox(&w->peer, "s1", "web"));
		world_keep(w, peer_container(&w->peer, "hidden", "s1", "kept"));
		w->peer.no_containers_statuses = nth % 2;
		struct peer_object o = *peer_container(&w->peer, "c1", "s1", "app");
		struct ck_turn *turn = world_begin(w, &o);
		assert_non_null(turn);
		struct client *c = client_subscribe(w);
		ck_fault_arm(CK_FAULT_ALLOC, nth, false);
		struct client *second = client_subscribe(w);
		peer_event(&w->peer, "c1", "s1", CK_EVENT_CREATED);
		peer_event(&w->peer, "s1", "s1", CK_EVENT_STARTED);
		world_settle(w);
		struct ck_result result = { .size = sizeof(result), .id = "c1" };
		int r = ck_turn_finish(turn, &result, NULL);
		world_settle(w);
		hit = ck_fault_hit();
		ck_fault_arm(0, 0, false);
		ck_turn_free(turn);
		world_settle(w);
		assert_null(strstr(c->seen, "hidden"));
		if (r == CK_HAND_BACK && !hit)
			assert_int_equal(client_saw(second, "CREATED c1[s1 c1]"), 1);
		assert_in_range(client_saw(c, "CREATED c1[s1 c1]"), 0, 1);
		client_free(c);
		client_free(second);
		world_connect(w);
		c = client_subscribe(w);
		world_commit(w, peer_container(&w->peer, "c2", "s1", "side"));
		world_settle(w);
		assert_int_equal(strncmp(c->seen, "CREATED c2[s1 ", 14), 0);
		client_free(c);
		world_free(w);
	}
	printf("        %u allocations\n", nth - 2);
	assert_true(nth > 50);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_commit_in_time_is_told_of),
		cmocka_unit_test(what_was_hidden_is_told_of_at_its_commit),
		cmocka_unit_test(a_container_is_told_of_with_its_pod),
		cmocka_unit_test(a_container_that_vanished_is_left_out),
		cmocka_unit_test(what_was_found_in_use_is_told_to_run),
		cmocka_unit_test(a_second_commit_is_not_told_of),
		cmocka_unit_test(nobody_listens_nothing_is_asked),
		cmocka_unit_test(a_client_that_leaves_takes_its_questions_along),
		cmocka_unit_test(the_runtime_s_own_event_after_a_made_one_is_dropped),
		cmocka_unit_test(a_made_event_after_the_runtime_s_own_is_dropped),
		cmocka_unit_test(a_commit_does_not_wait_for_a_status),
		cmocka_unit_test(a_status_that_fails_is_one_event_less),
		cmocka_unit_test(a_commit_that_cannot_be_written_is_told_of),
		cmocka_unit_test(the_cache_hears_of_the_end_of_what_is_hidden),
		cmocka_unit_test(events_of_what_is_visible_pass),
		cmocka_unit_test(an_event_that_cannot_be_read_is_dropped),
		cmocka_unit_test(the_runtime_s_status_is_the_client_s),
		cmocka_unit_test(a_runtime_that_goes_ends_the_stream),
		cmocka_unit_test(a_client_that_does_not_read_is_cut_off),
		cmocka_unit_test(a_slow_client_gets_everything),
		cmocka_unit_test(a_daemon_that_stops_says_so),
		cmocka_unit_test(nothing_hidden_leaks_whatever_allocation_fails),
	};
	return CK_TEST_MAIN(tests);
}
