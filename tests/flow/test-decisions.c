/* SPDX-License-Identifier: Apache-2.0 */
/* A decision stays: whoever waits for a decided turn hears it again. And when a removal is decided,
 * which waits for nothing but the containers of its sandbox. */
#include <string.h>

#include "tests/flow/fixture.h"

#define S CK_NS_PER_S

/* ---- what was decided is said again ---------------------------------------------------------- */

/* without lists and without an event loop, in which nobody could wait for anything */
static void open_without_loop(struct fixture *f)
{
	f->host.list = NULL;
	assert_int_equal(ck_cache_open(&f->options, &f->cache, &f->err), 0);
}

static void a_decided_turn_says_so_again(void **state)
{
	struct fixture *f = *state;
	struct fx_ask ask = fx_sandbox("web");
	struct ck_reply reply = { .size = sizeof(reply) };
	struct ck_turn *turn, *again;
	open_without_loop(f);
	turn = fx_create(f, &ask);
	assert_int_equal(ck_turn_wait(turn, NULL), -CK_ENOLOOP); /* it is not decided */
	assert_int_equal(fx_make(f, turn, &ask, "s1"), CK_HAND_BACK);
	for (int i = 0; i < 2; i++)
		assert_int_equal(ck_turn_wait(turn, &f->err), CK_HAND_BACK);
	assert_int_equal(fx_begin(f, &ask, &again), CK_HAND_BACK);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(ck_turn_wait(again, &f->err), CK_HAND_BACK);
		assert_int_equal(ck_turn_answered(again, CK_DELIVERED), 0);
	}
	assert_int_equal(ck_turn_reply(again, &reply), 0);
	assert_string_equal(reply.id, "s1");
	ck_turn_free(turn);
	ck_turn_free(again);
}

static void a_kept_and_an_abandoned_turn_say_so_again(void **state)
{
	struct fixture *f = *state;
	struct fx_ask late = fx_sandbox("late"), old = fx_sandbox("old"), newer = old;
	struct ck_turn *kept, *abandoned, *next;
	open_without_loop(f);
	kept = fx_create(f, &late);
	fx_jump(f, 11 * S);
	assert_int_equal(fx_make(f, kept, &late, "s1"), CK_KEPT);
	assert_int_equal(ck_turn_wait(kept, &f->err), CK_KEPT);
	abandoned = fx_create(f, &old);
	newer.attempt = 1;
	assert_int_equal(fx_begin(f, &newer, &next), CK_WAIT);
	assert_int_equal(ck_turn_wait(abandoned, &f->err), -CK_EABANDONED);
	assert_int_equal(fx_make(f, abandoned, &old, "s2"), -CK_EABANDONED);
	assert_int_equal(ck_turn_wait(abandoned, &f->err), -CK_EABANDONED);
	assert_non_null(strstr(f->err.text, "superseded"));
	ck_turn_leave(next);
	for (int i = 0; i < 2; i++)
		assert_int_equal(ck_turn_wait(next, &f->err), -CK_EABANDONED);
	ck_turn_free(kept);
	ck_turn_free(abandoned);
	ck_turn_free(next);
}

static void a_failed_turn_says_so_again(void **state)
{
	struct fixture *f = *state;
	struct fx_ask ask = fx_sandbox("web");
	const struct ck_status why = { .size = sizeof(why), .grpc = 9, .message = "no" };
	struct ck_status heard = { .size = sizeof(heard) };
	open_without_loop(f);
	struct ck_turn *turns[] = { fx_create(f, &ask), fx_wait(f, &ask) };
	assert_int_equal(ck_turn_fail(turns[0], &why, &f->err), 0);
	for (int i = 0; i < 4; i++) { /* its creator, too */
		f->err = (struct ck_error){ 0 };
		assert_int_equal(ck_turn_wait(turns[i % 2], &f->err), -CK_EFAILED);
		assert_int_equal(f->err.sub, 9);
		assert_int_equal(ck_turn_status(turns[i % 2], &heard), 0);
		assert_int_equal(heard.grpc, 9);
	}
	ck_turn_free(turns[0]);
	ck_turn_free(turns[1]);
}

struct within {
	int n, outcome, again[2];
};

static void wait_within(struct ck_turn *turn, int outcome, void *userdata)
{
	struct within *in = userdata;
	in->n++;
	in->outcome = outcome;
	for (int i = 0; i < 2; i++)
		in->again[i] = ck_turn_wait(turn, NULL);
}

static void what_a_callback_heard_is_said_again(void **state)
{
	struct fixture *f = *state;
	struct fx_ask ask = fx_sandbox("web");
	struct within in = { 0 };
	fx_open(f);
	struct ck_turn *creator = fx_create(f, &ask), *again = fx_wait(f, &ask);
	ck_turn_watch(again, wait_within, &in);
	assert_int_equal(fx_make(f, creator, &ask, "s1"), CK_HAND_BACK);
	fx_settle(f);
	ck_turn_watch(again, wait_within, &in); /* it was called for this decision */
	fx_settle(f);
	assert_int_equal(in.n, 1);
	assert_int_equal(in.outcome, CK_HAND_BACK);
	assert_int_equal(in.again[0], CK_HAND_BACK);
	assert_int_equal(in.again[1], CK_HAND_BACK);
	fx_close(f);
	assert_int_equal(ck_turn_wait(again, NULL),
			 CK_HAND_BACK); /* closing decides no other way */
	ck_turn_free(creator);
	ck_turn_free(again);
}

static void a_turn_that_was_told_to_create_is_not_decided(void **state)
{
	struct fixture *f = *state;
	struct fx_ask ask = fx_sandbox("web");
	struct within in = { 0 };
	f->fail[FX_LIST] = 14;
	fx_open(f);
	struct ck_turn *turn = fx_wait(f, &ask); /* for the first list */
	f->fail[FX_LIST] = 0;
	ck_turn_watch(turn, wait_within, &in);
	fx_advance(f, 3 * S);
	assert_int_equal(in.outcome, CK_CREATE);
	assert_int_equal(in.again[0], -CK_EDEADLK); /* it would wait, which a callback must not */
	assert_int_equal(fx_make(f, turn, &ask, "s1"), CK_HAND_BACK);
	fx_settle(f);
	assert_int_equal(in.n, 1); /* what finish returns is for its caller */
	assert_int_equal(ck_turn_wait(turn, NULL), CK_HAND_BACK);
	ck_turn_free(turn);
}

/* A list has shown what is being created, and a plugin refuses it, before its creator has ended. */
static void a_creator_hears_that_its_result_was_refused(void **state) /* K8, K23 */
{
	struct fixture *f = *state;
	struct fx_ask ask = fx_sandbox("web"), patient = ask;
	patient.timeout = 600 * S;
	fx_with_hooks(f, "10-log");
	f->fail[FX_RUN] = 1;
	f->options.create_deadline = 60 * S;
	fx_open(f);
	struct ck_turn *creator = fx_create(f, &ask), *waits = fx_wait(f, &patient);
	fx_exists(f, &ask, "s1");
	fx_jump(f, 70 * S); /* its time is up, and it is looked for */
	fx_settle(f);
	fx_advance(f, 5 * S);
	assert_int_equal(fx_decision(f, waits), -CK_EREFUSED);
	assert_int_equal(fx_finish(f, creator, "s1"), -CK_EREFUSED);
	assert_int_equal(ck_turn_wait(creator, &f->err), -CK_EREFUSED);
	ck_turn_free(waits);
	ck_turn_free(creator);
}

/* ---- what is hidden by its key --------------------------------------------------------------- */

/* A creation of one pod is looked for, in a sandbox in which another pod has a container of its
 * name and attempt. */
static void the_list_shows_what_another_pod_has_in_the_sandbox(void **state) /* K22, K24 */
{
	struct fixture *f = *state;
	struct fx_ask lost = fx_container("web", "s1", "app");
	struct fx_ask used = fx_container("db", "s1", "app");
	fx_open(f);
	struct ck_turn *creator = fx_create(f, &lost);
	assert_int_equal(ck_turn_lost(creator, &f->err), 0);
	fx_exists(f, &used, "c1");
	fx_condition(f, "c1", CK_CONDITION_RUNNING);
	ck_turn_free(creator);
	fx_reopen(f);
	fx_settle(f);
	assert_int_equal(fx_hides(f, &lost, "c2"), 1);
	assert_int_equal(fx_hides(f, &used, "c1"), 0);
}

/* ---- removals -------------------------------------------------------------------------------- */

static int remove_begin(struct fixture *f, enum ck_kind kind, const char *id,
			struct ck_turn **ret_turn)
{
	return ck_remove_begin(f->cache, kind, id, 0, ret_turn, &f->err);
}

/* a whole list of containers passes by, in which @id has no labels of a pod, like crictl's */
static void list_without_pod(struct fixture *f, const char *sandbox, const char *id)
{
	const struct ck_object o = { .size = sizeof(o),
				     .kind = CK_CONTAINER,
				     .condition = CK_CONDITION_RUNNING,
				     .id = id,
				     .sandbox_id = sandbox,
				     .container_name = id };
	struct ck_view *view;
	assert_int_equal(ck_view_begin(f->cache, &view, &f->err), 0);
	assert_int_equal(ck_view_listed(view, CK_CONTAINER, &o, 1), 0);
	ck_view_free(view);
}

static void removal_ends_in_whatever_pod_its_containers_are(void **state) /* K16 */
{
	struct fixture *f = *state;
	struct fx_ask pod = fx_sandbox("web"), app = fx_container("web", "s1", "app");
	struct ck_turn *removal;
	fx_open(f);
	fx_commit(f, &pod, "s1");
	struct ck_turn *creator = fx_create(f, &app);
	list_without_pod(f, "s1", "debug");
	assert_int_equal(remove_begin(f, CK_SANDBOX, "s1", &removal), CK_WAIT);
	assert_int_equal(fx_make(f, creator, &app, "c1"), -CK_EABANDONED);
	ck_turn_free(creator);
	assert_int_equal(fx_decision(f, removal), CK_DRAINED);
	assert_true(fx_was_destroyed(f, "c1"));
	assert_int_equal(ck_turn_wait(removal, &f->err), CK_DRAINED);
	ck_turn_free(removal);
}

static void removal_of_an_unknown_sandbox_refuses_creates_in_it(void **state) /* K16 */
{
	struct fixture *f = *state;
	struct fx_ask app = fx_container("web", "s9", "app");
	struct ck_turn *removal, *turn;
	fx_open(f);
	assert_int_equal(remove_begin(f, CK_SANDBOX, "s9", &removal), CK_DRAINED);
	assert_int_equal(fx_begin(f, &app, &turn), -CK_EPRECONDITION);
	ck_turn_free(removal);
	assert_int_equal(fx_begin(f, &app, &turn), -CK_EPRECONDITION); /* it stops all the same */
}

static void removal_is_over_when_nobody_removes_it_any_more(void **state) /* K5 */
{
	struct fixture *f = *state;
	struct fx_ask app = fx_container("web", "s0", "app");
	struct ck_turn *removals[2], *again;
	fx_open(f);
	fx_commit(f, &app, "c1");
	for (int i = 0; i < 2; i++)
		assert_int_equal(remove_begin(f, CK_CONTAINER, "c1", &removals[i]), CK_DRAINED);
	again = fx_wait(f, &app);
	ck_turn_free(removals[0]); /* it failed, but the other one goes on */
	assert_int_equal(fx_decision(f, again), CK_WAIT);
	ck_turn_free(removals[1]);
	fx_answered_with(f, again, "c1");
	ck_turn_free(again);
}

static void removal_that_is_given_up_holds_nobody(void **state) /* K5 */
{
	struct fixture *f = *state;
	struct fx_ask pod = fx_sandbox("web"), app = fx_container("web", "s1", "app");
	struct ck_turn *creator, *removal = fx_removal_waits(f, &app, 0, &creator);
	struct ck_turn *again = fx_wait(f, &pod);
	ck_turn_leave(removal);
	assert_int_equal(fx_make(f, creator, &app, "c1"), -CK_EABANDONED);
	assert_int_equal(fx_decision(f, again), CK_CREATE);
	ck_turn_free(again);
	ck_turn_free(creator);
	ck_turn_free(removal);
}

static void removal_is_no_turn_of_a_request(void **state)
{
	struct fixture *f = *state;
	struct fx_ask app = fx_container("web", "s1", "app");
	struct ck_result result = { .size = sizeof(result), .id = "c1" };
	struct ck_status status = { .size = sizeof(status), .grpc = 2 };
	struct ck_reply reply = { .size = sizeof(reply) };
	struct ck_turn *creator, *removal = fx_removal_waits(f, &app, 0, &creator);
	assert_int_equal(ck_turn_finish(removal, &result, NULL), -CK_ESTATE);
	assert_int_equal(ck_turn_fail(removal, &status, NULL), -CK_ESTATE);
	assert_int_equal(ck_turn_lost(removal, NULL), -CK_ESTATE);
	assert_int_equal(ck_turn_stage(removal, "x"), -CK_ESTATE);
	assert_int_equal(ck_turn_reply(removal, &reply), -CK_ESTATE);
	assert_int_equal(ck_turn_status(removal, &status), -CK_ESTATE);
	assert_int_equal(ck_turn_answered(removal, CK_LOST), 0);
	assert_int_equal(ck_turn_error(removal)->code, 0);
	ck_turn_leave(removal);
	assert_int_equal(ck_turn_wait(removal, &f->err), -CK_EABANDONED);
	ck_turn_free(creator);
	fx_close(f);
	ck_turn_free(removal);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_FIXTURE(a_decided_turn_says_so_again),
		ON_FIXTURE(a_kept_and_an_abandoned_turn_say_so_again),
		ON_FIXTURE(a_failed_turn_says_so_again),
		ON_FIXTURE(what_a_callback_heard_is_said_again),
		ON_FIXTURE(a_turn_that_was_told_to_create_is_not_decided),
		ON_FIXTURE(a_creator_hears_that_its_result_was_refused),
		ON_FIXTURE(the_list_shows_what_another_pod_has_in_the_sandbox),
		ON_FIXTURE(removal_ends_in_whatever_pod_its_containers_are),
		ON_FIXTURE(removal_of_an_unknown_sandbox_refuses_creates_in_it),
		ON_FIXTURE(removal_is_over_when_nobody_removes_it_any_more),
		ON_FIXTURE(removal_that_is_given_up_holds_nobody),
		ON_FIXTURE(removal_is_no_turn_of_a_request),
	};
	return CK_TEST_MAIN(tests);
}
