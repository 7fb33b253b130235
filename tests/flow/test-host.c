/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the cache asks for, asked of a runtime over a real socket. Each job ends exactly once
 * whatever the runtime does, and a failed one leads to nothing but another try.
 */
#define CK_TEST_SECONDS 300
#include "src/base/fault.h"
#include "tests/flow/peer.h"

#define S  CK_NS_PER_S
#define MS CK_NS_PER_MS

static unsigned times(const struct world *w, const char *line)
{
	return peer_heard(&w->peer, line);
}

static struct ck_turn *begin_as(struct world *w, struct peer_object o, uint32_t attempt)
{
	o.attempt = attempt;
	return world_begin(w, &o);
}

static int outcome_of(struct world *w, struct ck_turn *turn)
{
	static struct world_ear ear;
	world_listen(&ear, turn);
	world_settle(w);
	return ear.n ? ear.outcome : CK_WAIT;
}

/* ---- destroy --------------------------------------------------------------------------------- */

static void a_sandbox_is_stopped_then_removed(void **state)
{
	(void)state;
	struct world *w = world_new();
	struct peer_object o = *peer_sandbox(&w->peer, "s1", "web");
	world_keep(w, &o);
	world_advance(w, CK_TTL + S);
	assert_non_null(strstr(w->peer.heard,
			       "ListContainers s1\nStopPodSandbox s1\nRemovePodSandbox s1\n"));
	assert_null(peer_has(&w->peer, "s1"));
	assert_int_equal(times(w, "RemovePodSandbox s1"), 1);
	assert_int_equal(world_hides(w, &o), 1); /* a tombstone (K21) */
	world_free(w);
}

static void a_container_is_stopped_without_grace_then_removed(void **state)
{
	(void)state;
	struct world *w = world_new();
	world_commit(w, peer_sandbox(&w->peer, "s1", "web"));
	struct peer_object o = *peer_container(&w->peer, "c1", "s1", "app");
	world_keep(w, &o);
	world_advance(w, CK_TTL + S);
	assert_non_null(strstr(w->peer.heard, "StopContainer c1 timeout 0\nRemoveContainer c1\n"));
	assert_null(peer_has(&w->peer, "c1"));
	assert_non_null(peer_has(&w->peer, "s1"));
	world_free(w);
}

static void what_was_stopped_or_removed_before_is_confirmed(void **state)
{
	(void)state;
	struct world *w = world_new();
	world_keep(w, peer_sandbox(&w->peer, "s1", "web"));
	peer_plan(&w->peer, "StopPodSandbox")->grpc = CK_GRPC_NOT_FOUND;
	peer_plan(&w->peer, "RemovePodSandbox")->grpc = CK_GRPC_NOT_FOUND;
	world_advance(w, CK_TTL + S);
	assert_int_equal(times(w, "StopPodSandbox s1"), 1);
	assert_int_equal(times(w, "RemovePodSandbox s1"), 1);
	world_advance(w, 10 * 60 * S);
	assert_int_equal(times(w, "RemovePodSandbox s1"), 1);
	world_free(w);
}

static void a_sandbox_that_does_not_stop_is_not_removed(void **state)
{
	(void)state;
	struct world *w = world_new();
	world_keep(w, peer_sandbox(&w->peer, "s1", "web"));
	peer_plan(&w->peer, "StopPodSandbox")->grpc = CK_GRPC_UNKNOWN;
	world_advance(w, CK_TTL + 20 * S);
	assert_in_range(times(w, "StopPodSandbox s1"), 2, 6); /* 1 s, doubling */
	assert_int_equal(times(w, "RemovePodSandbox"), 0);
	peer_plan(&w->peer, "StopPodSandbox")->grpc = 0;
	world_advance(w, 60 * S);
	assert_null(peer_has(&w->peer, "s1"));
	world_free(w);
}

static void a_destroy_gets_what_is_left_of_its_time(void **state)
{
	(void)state;
	struct world *w = world_new();
	world_keep(w, peer_sandbox(&w->peer, "s1", "web"));
	w->daemon.conf.destroy_timeout = 40 * S;
	peer_plan(&w->peer, "StopPodSandbox")->hold = true;
	peer_plan(&w->peer, "RemovePodSandbox")->hold = true;
	world_advance(w, CK_TTL + S);
	uint64_t stop = peer_timeout(&w->peer, "StopPodSandbox");
	assert_in_range(stop, 39 * S, 40 * S);
	assert_int_equal(peer_release(&w->peer, "StopPodSandbox"), 1);
	world_settle(w);
	uint64_t rest = peer_timeout(&w->peer, "RemovePodSandbox");
	assert_in_range(rest, 30 * S, stop);
	assert_true(rest < stop);
	world_free(w); /* with a job under way: it ends */
}

static void ports_are_free_when_the_sandbox_is_destroyed(void **state)
{
	(void)state;
	struct world *w = world_new();
	struct peer_object o = *peer_sandbox(&w->peer, "s1", "web");
	world_keep(w, &o);
	peer_plan(&w->peer, "StopPodSandbox")->hold = true;
	peer_plan(&w->peer, "RemovePodSandbox")->hold = true;
	/* the old attempt is given up (K9), and its ports are free first (K10) */
	struct ck_turn *turn = begin_as(w, o, 1);
	struct world_ear ear;
	world_listen(&ear, turn);
	world_settle(w);
	assert_int_equal(times(w, "StopPodSandbox s1"), 1);
	assert_int_equal(ear.n, 0);
	peer_release(&w->peer, "StopPodSandbox");
	world_settle(w);
	assert_int_equal(times(w, "RemovePodSandbox s1"), 1);
	assert_int_equal(ear.n, 0);
	peer_release(&w->peer, "RemovePodSandbox");
	world_settle(w);
	assert_int_equal(ear.n, 1);
	assert_int_equal(ear.outcome, CK_CREATE);
	assert_null(peer_has(&w->peer, "s1"));
	ck_turn_free(turn);
	world_free(w);
}

/* ---- the runtime goes in the middle of each call of each job --------------------------------- */

static void a_runtime_that_goes_in_the_middle_is_asked_again(void **state)
{
	static const char *const rpcs[] = { "ListContainers", "StopPodSandbox",
					    "RemovePodSandbox" };
	(void)state;
	for (size_t i = 0; i < CK_COUNT(rpcs); i++) {
		struct world *w = world_new();
		world_keep(w, peer_sandbox(&w->peer, "s1", "web"));
		peer_plan(&w->peer, rpcs[i])->hang_up = true;
		unsigned before = times(w, rpcs[i]);
		world_advance(w, CK_TTL + S / 2);
		assert_int_equal(times(w, rpcs[i]), before + 1);
		assert_non_null(peer_has(&w->peer, "s1"));
		assert_int_equal(w->downs, 1);
		world_advance(w, 5 * S); /* while it is down: tried in vain */
		assert_non_null(peer_has(&w->peer, "s1"));
		peer_plan(&w->peer, rpcs[i])->hang_up = false;
		world_connect(w);
		world_advance(w, 60 * S);
		assert_null(peer_has(&w->peer, "s1"));
		world_free(w);
	}
}

static void a_status_lost_on_its_way_is_asked_for_again(void **state)
{
	(void)state;
	struct world *w = world_new();
	struct peer_object o = *peer_sandbox(&w->peer, "s1", "web");
	world_keep(w, &o);
	peer_plan(&w->peer, "PodSandboxStatus")->hang_up = true;
	struct ck_turn *turn = world_begin(w, &o);
	struct world_ear ear;
	world_listen(&ear, turn);
	world_settle(w);
	assert_int_equal(times(w, "PodSandboxStatus s1"), 1);
	assert_int_equal(ear.n, 0); /* "don't know" is no answer (K6) */
	peer_plan(&w->peer, "PodSandboxStatus")->hang_up = false;
	world_connect(w);
	world_advance(w, S);
	assert_int_equal(ear.outcome, CK_HAND_BACK);
	ck_turn_free(turn);
	world_free(w);
}

/* ---- inspect --------------------------------------------------------------------------------- */

/* one kept object is asked about once; how that decides its repetition at once */
static int inspected_as(enum ck_kind kind,
			void (*meanwhile)(struct world *w, struct peer_object *there),
			unsigned *ret_asked)
{
	struct world *w = world_new();
	struct peer_object o = *peer_sandbox(&w->peer, "s1", "web");
	if (kind == CK_CONTAINER) {
		world_commit(w, &o);
		o = *peer_container(&w->peer, "c1", "s1", "app");
	}
	world_keep(w, &o);
	if (meanwhile)
		meanwhile(w, peer_has(&w->peer, o.id));
	struct ck_turn *turn = world_begin(w, &o);
	world_settle(w);
	*ret_asked = times(w, kind == CK_SANDBOX ? "PodSandboxStatus s1" : "ContainerStatus c1");
	int outcome = outcome_of(w, turn);
	ck_turn_free(turn);
	world_free(w);
	return outcome;
}

static void dies(struct world *w, struct peer_object *there)
{
	(void)w;
	there->condition = CK_CONDITION_DEAD;
}

static void goes(struct world *w, struct peer_object *there)
{
	*there = w->peer.objects[--w->peer.objects_n];
}

static void is_garbled(struct world *w, struct peer_object *there)
{
	peer_plan(&w->peer, there->kind == CK_SANDBOX ? "PodSandboxStatus" : "ContainerStatus")
		->garble = true;
}

static void is_refused(struct world *w, struct peer_object *there)
{
	peer_plan(&w->peer, there->kind == CK_SANDBOX ? "PodSandboxStatus" : "ContainerStatus")
		->grpc = CK_GRPC_INTERNAL;
}

static void is_another(struct world *w, struct peer_object *there)
{
	peer_plan(&w->peer, there->kind == CK_SANDBOX ? "PodSandboxStatus" : "ContainerStatus")
		->other_id = true;
}

static void is_unimplemented(struct world *w, struct peer_object *there)
{
	peer_plan(&w->peer, there->kind == CK_SANDBOX ? "PodSandboxStatus" : "ContainerStatus")
		->grpc = CK_GRPC_UNIMPLEMENTED;
}

static void is_unimplemented_and_dead(struct world *w, struct peer_object *there)
{
	is_unimplemented(w, there);
	dies(w, there);
}

static void is_unimplemented_and_gone(struct world *w, struct peer_object *there)
{
	is_unimplemented(w, there);
	goes(w, there);
}

static void is_unimplemented_and_not_listed(struct world *w, struct peer_object *there)
{
	is_unimplemented(w, there);
	peer_plan(&w->peer, there->kind == CK_SANDBOX ? "ListPodSandbox" : "ListContainers")->grpc =
		CK_GRPC_INTERNAL;
}

/* a runtime without a status call: its list tells */
static void without_a_status_a_list_is_asked(void **state)
{
	unsigned asked;
	(void)state;
	for (int k = CK_SANDBOX; k <= CK_CONTAINER; k++) {
		enum ck_kind kind = (enum ck_kind)k;
		assert_int_equal(inspected_as(kind, is_unimplemented, &asked), CK_HAND_BACK);
		assert_int_equal(inspected_as(kind, is_unimplemented_and_dead, &asked), CK_CREATE);
		assert_int_equal(inspected_as(kind, is_unimplemented_and_gone, &asked), CK_CREATE);
		assert_int_equal(inspected_as(kind, is_unimplemented_and_not_listed, &asked),
				 CK_WAIT);
		assert_int_equal(asked, 1);
	}
}

static void each_condition_is_understood(void **state)
{
	unsigned asked;
	(void)state;
	for (int kind = CK_SANDBOX; kind <= CK_CONTAINER; kind++) {
		assert_int_equal(inspected_as((enum ck_kind)kind, NULL, &asked), CK_HAND_BACK);
		assert_int_equal(asked, 1);
		/* destroyed, and made anew */
		assert_int_equal(inspected_as((enum ck_kind)kind, dies, &asked), CK_CREATE);
		assert_int_equal(inspected_as((enum ck_kind)kind, goes, &asked), CK_CREATE);
		assert_int_equal(inspected_as((enum ck_kind)kind, is_garbled, &asked), CK_WAIT);
		assert_int_equal(inspected_as((enum ck_kind)kind, is_refused, &asked), CK_WAIT);
		assert_int_equal(inspected_as((enum ck_kind)kind, is_another, &asked), CK_WAIT);
	}
}

static void a_container_that_runs_is_not_destroyed(void **state)
{
	(void)state;
	struct world *w = world_new();
	world_commit(w, peer_sandbox(&w->peer, "s1", "web"));
	world_keep(w, peer_container(&w->peer, "c1", "s1", "app"));
	peer_has(&w->peer, "c1")->condition = CK_CONDITION_RUNNING;
	world_advance(w, CK_TTL + 60 * S);
	assert_int_equal(times(w, "StopContainer"), 0);
	assert_int_equal(world_hides(w, peer_has(&w->peer, "c1")), 0);
	world_free(w);
}

/* ---- list ------------------------------------------------------------------------------------ */

#define MANY 500

static void lost_creations_share_a_list(void **state)
{
	static struct ck_turn *turns[MANY];
	static struct world_ear ears[MANY];
	(void)state;
	struct world *w = world_new();
	unsigned before = times(w, "ListPodSandbox");
	for (int i = 0; i < MANY; i++) {
		char id[16], name[16];
		snprintf(id, sizeof(id), "s%d", i);
		snprintf(name, sizeof(name), "pod%d", i);
		turns[i] = world_begin(w, peer_sandbox(&w->peer, id, name));
		assert_non_null(turns[i]);
		world_listen(&ears[i], turns[i]);
		assert_int_equal(ck_turn_lost(turns[i], NULL), 0);
	}
	world_advance(w, S);
	for (int i = 0; i < MANY; i++) {
		assert_int_equal(ears[i].outcome, CK_HAND_BACK);
		ck_turn_free(turns[i]);
	}
	assert_in_range(times(w, "ListPodSandbox") - before, 1, 3);
	world_free(w);
}

static void a_list_serves_nobody_who_came_after_it_began(void **state)
{
	(void)state;
	struct world *w = world_new();
	struct peer_object a = { .kind = CK_SANDBOX, .name = "a", .ns = "shop", .uid = "uid-a" },
			   b = a;
	snprintf(b.name, sizeof(b.name), "b");
	snprintf(b.uid, sizeof(b.uid), "uid-b");
	peer_plan(&w->peer, "ListPodSandbox")->hold = true;
	unsigned before = times(w, "ListPodSandbox");
	struct ck_turn *first = world_begin(w, &a);
	ck_turn_lost(first, NULL);
	world_advance(w, S / 2); /* asked for, and held back */
	assert_int_equal(times(w, "ListPodSandbox"), before + 1);
	struct ck_turn *second = world_begin(w, &b);
	ck_turn_lost(second, NULL);
	world_advance(w, S / 2);
	assert_int_equal(times(w, "ListPodSandbox"), before + 1); /* waits for its own */
	peer_release(&w->peer, "ListPodSandbox");
	world_settle(w);
	assert_int_equal(times(w, "ListPodSandbox"), before + 2);
	ck_turn_free(first);
	ck_turn_free(second);
	world_free(w);
}

static void containers_are_listed_by_their_sandbox_or_all_at_once(void **state)
{
	(void)state;
	struct world *w = world_new();
	struct peer_object c[3] = { 0 };
	struct ck_turn *turns[3];
	struct world_ear ears[3];
	for (int i = 0; i < 3; i++) {
		char s[16], name[16], id[16];
		snprintf(s, sizeof(s), "s%d", i);
		snprintf(name, sizeof(name), "pod%d", i);
		snprintf(id, sizeof(id), "c%d", i);
		world_commit(w, peer_sandbox(&w->peer, s, name));
		c[i] = *peer_container(&w->peer, id, s, "app");
	}
	unsigned whole = times(w, "ListContainers");
	for (int i = 0; i < 3; i++) {
		turns[i] = world_begin(w, &c[i]);
		world_listen(&ears[i], turns[i]);
		ck_turn_lost(turns[i], NULL);
	}
	world_advance(w, S);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(ears[i].outcome, CK_HAND_BACK);
		ck_turn_free(turns[i]);
	}
	unsigned one = times(w, "ListContainers s0") + times(w, "ListContainers s1") +
		       times(w, "ListContainers s2");
	assert_int_equal(one, 1); /* the first, alone */
	assert_int_equal(times(w, "ListContainers") - whole, 2);
	world_free(w);
}

static void a_list_that_cannot_be_read_means_nothing(void **state)
{
	(void)state;
	struct world *w = world_new();
	struct peer_object o = *peer_sandbox(&w->peer, "s1", "web");
	struct ck_turn *turn = world_begin(w, &o);
	struct world_ear ear;
	world_listen(&ear, turn);
	peer_plan(&w->peer, "ListPodSandbox")->garble = true;
	ck_turn_lost(turn, NULL);
	world_advance(w, 5 * S);
	assert_int_equal(ear.n, 0);
	peer_plan(&w->peer, "ListPodSandbox")->garble = false;
	/* of a list that is a failure as well */
	peer_plan(&w->peer, "ListPodSandbox")->grpc = CK_GRPC_NOT_FOUND;
	world_advance(w, 2 * S);
	assert_int_equal(ear.n, 0);
	peer_plan(&w->peer, "ListPodSandbox")->grpc = 0;
	world_advance(w, 2 * S);
	assert_int_equal(ear.outcome, CK_HAND_BACK);
	ck_turn_free(turn);

	/* nobody waits for it: absent for 15 minutes it would be given up */
	o = *peer_sandbox(&w->peer, "s2", "shop");
	turn = world_begin(w, &o);
	ck_turn_lost(turn, NULL);
	ck_turn_free(turn);
	peer_plan(&w->peer, "ListPodSandbox")->garble = true;
	world_advance(w, CK_CREATE_DEADLINE + 60 * S);
	peer_plan(&w->peer, "ListPodSandbox")->garble = false;
	world_advance(w, 10 * S);
	assert_int_equal(world_hides(w, &o), 1);
	world_free(w);
}

static void a_uid_conflict_is_counted_once(void **state)
{
	(void)state;
	struct world *w = world_new();
	struct peer_object *a = peer_sandbox(&w->peer, "s1", "web");
	world_commit(w, a);
	peer_sandbox(&w->peer, "s2", "web")->attempt = 1;
	struct peer_object other = {
		.kind = CK_SANDBOX, .name = "x", .ns = "shop", .uid = "uid-x"
	};
	for (int i = 0; i < 3; i++) { /* each asks for a list */
		other.attempt = (uint32_t)i;
		struct ck_turn *turn = world_begin(w, &other);
		ck_turn_lost(turn, NULL);
		world_advance(w, 2 * S);
		ck_turn_free(turn);
	}
	assert_int_equal(w->daemon.metrics.uid_conflicts, 1);
	peer_has(&w->peer, "s2")->condition = CK_CONDITION_DEAD; /* ordinary */
	world_advance(w, 10 * S);
	assert_int_equal(w->daemon.metrics.uid_conflicts, 1);
	peer_has(&w->peer, "s2")->condition = CK_CONDITION_READY;
	world_advance(w, 10 * S);
	assert_int_equal(w->daemon.metrics.uid_conflicts, 2);
	world_free(w);
}

/* ---- images ---------------------------------------------------------------------------------- */

static void references_of_one_image_are_the_same(void **state)
{
	static const struct {
		const char *id;
		int grpc, outcome;
		bool garble;
	} cases[] = {
		{ "sha256:1", 0, CK_HAND_BACK, false },
		{ "", 0, -CK_ECONFLICT, false }, /* not there */
		{ "sha256:1", CK_GRPC_UNIMPLEMENTED, -CK_ECONFLICT, false },
		{ "sha256:1", 0, -CK_ECONFLICT, true },
	};
	(void)state;
	for (size_t i = 0; i < CK_COUNT(cases); i++) {
		struct world *w = world_new();
		snprintf(w->peer.image_id, sizeof(w->peer.image_id), "%s", cases[i].id);
		peer_plan(&w->peer, "ImageStatus")->grpc = cases[i].grpc;
		peer_plan(&w->peer, "ImageStatus")->garble = cases[i].garble;
		world_commit(w, peer_sandbox(&w->peer, "s1", "web"));
		struct peer_object c = *peer_container(&w->peer, "c1", "s1", "app");
		struct ck_turn *turn = world_begin(w, &c);
		world_settle(w);
		assert_int_equal(times(w, "ImageStatus registry/app:1"), 1);
		struct ck_result result = { .size = sizeof(result), .id = c.id };
		assert_int_equal(ck_turn_finish(turn, &result, NULL), CK_HAND_BACK);
		ck_turn_free(turn);
		snprintf(c.image, sizeof(c.image), "registry/app@sha256:1");
		turn = world_begin(w, &c);
		world_settle(w);
		assert_int_equal(outcome_of(w, turn), cases[i].outcome);
		ck_turn_free(turn);
		world_free(w);
	}
}

/* ---- no memory, anywhere --------------------------------------------------------------------- */

static void jobs_end_whatever_allocation_fails(void **state)
{
	(void)state;
	unsigned nth = 1;
	for (bool hit = true; hit; nth++) {
		struct world *w = world_new();
		world_commit(w, peer_sandbox(&w->peer, "s1", "web"));
		world_keep(w, peer_sandbox(&w->peer, "s2", "old"));
		struct peer_object c = *peer_container(&w->peer, "c1", "s1", "app");
		world_keep(w, &c);
		struct peer_object lost = *peer_sandbox(&w->peer, "s3", "lost");
		struct ck_turn *turn = world_begin(w, &lost);
		assert_non_null(turn);
		ck_turn_lost(turn, NULL);
		ck_turn_free(turn);
		ck_fault_arm(CK_FAULT_ALLOC, nth, false);
		world_advance(w, S);            /* a list */
		struct ck_turn *again = world_begin(w, &c); /* a status, an image */
		world_advance(w, CK_TTL + 2 * S);
		hit = ck_fault_hit();
		ck_fault_arm(0, 0, false);
		ck_turn_free(again);
		world_connect(w);
		world_advance(w, 2 * CK_TTL);
		/* nobody came back for them */
		if (peer_has(&w->peer, "s2") || peer_has(&w->peer, "s3"))
			fail_msg("allocation %u: %s", nth, w->peer.heard);
		assert_non_null(peer_has(&w->peer, "s1"));
		world_free(w);
	}
	printf("        %u allocations\n", nth - 2);
	assert_true(nth > 50);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sandbox_is_stopped_then_removed),
		cmocka_unit_test(a_container_is_stopped_without_grace_then_removed),
		cmocka_unit_test(what_was_stopped_or_removed_before_is_confirmed),
		cmocka_unit_test(a_sandbox_that_does_not_stop_is_not_removed),
		cmocka_unit_test(a_destroy_gets_what_is_left_of_its_time),
		cmocka_unit_test(ports_are_free_when_the_sandbox_is_destroyed),
		cmocka_unit_test(a_runtime_that_goes_in_the_middle_is_asked_again),
		cmocka_unit_test(a_status_lost_on_its_way_is_asked_for_again),
		cmocka_unit_test(each_condition_is_understood),
		cmocka_unit_test(without_a_status_a_list_is_asked),
		cmocka_unit_test(a_container_that_runs_is_not_destroyed),
		cmocka_unit_test(lost_creations_share_a_list),
		cmocka_unit_test(a_list_serves_nobody_who_came_after_it_began),
		cmocka_unit_test(containers_are_listed_by_their_sandbox_or_all_at_once),
		cmocka_unit_test(a_list_that_cannot_be_read_means_nothing),
		cmocka_unit_test(a_uid_conflict_is_counted_once),
		cmocka_unit_test(references_of_one_image_are_the_same),
		cmocka_unit_test(jobs_end_whatever_allocation_fails),
	};
	return CK_TEST_MAIN(tests);
}
