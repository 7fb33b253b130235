/* SPDX-License-Identifier: Apache-2.0 */
/*
 * At least one scenario for each rule K1 to K34 that belongs to the machine. They run in the world
 * of the model test, and its oracle checks them. Each test ends by draining the world, so that
 * everything it began ends as well.
 */
#include <string.h>

#include "src/base/error.h"
#include "src/base/fault.h"
#include "tests/model/oracle.h"
#include "tests/model/world-int.h"
#include "tests/unit/harness.h"

/* ---- saying it shortly ----------------------------------------------------------------------- */

static struct world world;
static struct world *const w = &world;

enum { A = 1, B, C, D, E, F }; /* callers, and what they create */

static const struct request sandbox = { .kind = CK_SANDBOX, .in = -1 };

static struct request container_in(int label)
{
	return (struct request){ .kind = CK_CONTAINER, .in = label };
}

static struct request attempt(struct request req, unsigned char n)
{
	req.attempt = n;
	return req;
}

static struct request changed(struct request req)
{
	req.fp.base = 1;
	return req;
}

static struct request relabelled(struct request req)
{
	req.fp.cosmetic ^= 1;
	return req;
}

static struct request of_pod(struct request req, unsigned char n)
{
	req.pod = n;
	return req;
}

static int begin(int label, struct request req, uint64_t timeout)
{
	return world_begin(w, label, &req, timeout, false);
}

static int outcome(int label)
{
	return world_outcome(w, label);
}

static enum ck_state state_of(int label)
{
	struct ck_entry *e = world_entry(w, label);
	return e ? e->row.state : (enum ck_state)0;
}

static bool flag(int label, unsigned flags)
{
	struct ck_entry *e = world_entry(w, label);
	return e && (e->row.flags & flags) == flags;
}

static bool asked(unsigned want)
{
	return world_job(w, want, 0) != NULL;
}

static const char *text_of(int label)
{
	return w->callers[label].turn.decision.err.text;
}

static void lists_come_in(void)
{
	while (world_job(w, 0, 0))
		world_listed(w, 0, HOW_OK);
}

static void hooks_agree(void)
{
	while (asked(CK_WANT_RUN | CK_WANT_STOP | CK_WANT_REMOVE))
		world_hooked(w, 0, true);
}

/* every question of an eviction is answered truthfully */
static void let_evict(void)
{
	for (int i = 0; i < 16; i++) {
		if (asked(CK_WANT_LIST))
			world_listed_entry(w, 0, HOW_FRESH);
		if (asked(CK_WANT_INSPECT))
			world_inspected(w, 0, true);
		if (asked(CK_WANT_DESTROY))
			world_destroyed(w, 0, HOW_OK);
		hooks_agree();
	}
}

/* the last line of this kind about the entry of @label; "" if there is none. The round goes on. */
static const char *said(int label, enum ck_what what)
{
	size_t n;
	const struct ck_entry *e = world_entry(w, label);
	const struct ck_history_event *lines = ck_machine_history(w->m, &n);
	while (n-- > 0)
		if (lines[n].entry == e && lines[n].what == what)
			return lines[n].detail;
	return "";
}

static void round_ends(void)
{
	w->more = false;
	world_time(w, 1);
}

static void made_and_handed(int label, struct request req)
{
	assert_int_equal(begin(label, req, 10 * S), CK_CREATE);
	world_finish(w, label, true);
	hooks_agree();
	assert_int_equal(outcome(label), CK_HAND_BACK);
	assert_int_equal(state_of(label), CK_STATE_COMMITTED);
}

static void made_and_kept(int label, struct request req)
{
	assert_int_equal(begin(label, req, 10 * S), CK_CREATE);
	world_leave(w, label);
	assert_int_equal(world_finish(w, label, true), CK_KEPT);
	assert_int_equal(state_of(label), CK_STATE_KEPT);
}

/* a container whose start is under way */
static void start_begun(void)
{
	made_and_handed(A, sandbox);
	made_and_handed(B, container_in(A));
	assert_int_equal(world_start_begin(w, B), 0);
	assert_int_equal(w->db[world_entry(w, B)->row.id].row.start, CK_START_CALLED);
}

/* the timer of a back-off, and the question before each destroy */
static void next_try(void)
{
	world_next(w);
	while (asked(CK_WANT_LIST))
		world_listed_entry(w, 0, HOW_FRESH);
}

static void list_passes(enum ck_kind kind) /* somebody lists, and the answer is complete */
{
	world_view_open(w, 0, kind);
	world_view_close(w, 0, HOW_OK);
}

/* the runtime has a second sandbox of A's key, and a list shows it */
static void twin_is_listed(int label)
{
	world_external(w, label, &sandbox, CK_CONDITION_READY, true);
	list_passes(CK_SANDBOX);
	assert_int_equal(state_of(label), CK_STATE_EVICTING);
}

static void start_with(const struct world_config *config)
{
	world_fini(w);
	world_init(w, config, NULL);
	lists_come_in();
}

/* The world does not know of all that was tried, so a new one follows. */
static void in_another_world(void)
{
	struct world_config config = world_config();
	ck_fault_arm(0, 0, false);
	start_with(&config);
}

static int setup(void **state)
{
	struct world_config config = world_config();
	(void)state;
	world_init(w, &config, NULL);
	lists_come_in();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	if (!w->failure[0])
		world_drain(w);
	if (w->failure[0])
		print_error("%s\n", w->failure);
	int r = w->failure[0] ? -1 : 0;
	world_fini(w);
	return r;
}

/* ---- once (K1 to K7) ------------------------------------------------------------------------- */

static void k01_same_request_joins_and_all_get_the_same_answer(void **state)
{
	(void)state;
	assert_int_equal(begin(A, sandbox, 10 * S), CK_CREATE);
	assert_int_equal(begin(B, sandbox, 10 * S), CK_WAIT);
	assert_int_equal(begin(C, sandbox, 10 * S), CK_WAIT);
	assert_int_equal(world_finish(w, A, true), CK_WAIT);
	hooks_agree();
	for (int label = A; label <= C; label++) {
		assert_int_equal(outcome(label), CK_HAND_BACK);
		assert_string_equal(w->callers[label].id, "s1");
	}
	assert_int_equal(w->creations_n, 1);
}

static void k02_result_nobody_waits_for_is_kept(void **state)
{
	(void)state;
	made_and_kept(A, sandbox);
	assert_false(asked(CK_WANT_RUN));
	assert_false(world_shown(w, A));
}

static void k02_offer_commits_a_sandbox_but_no_container(void **state)
{
	struct world_config config = world_config();
	(void)state;
	config.rules.hand_back = CK_OFFER;
	start_with(&config);
	assert_int_equal(begin(A, sandbox, 10 * S), CK_CREATE);
	world_leave(w, A);
	assert_int_equal(world_finish(w, A, true), CK_KEPT);
	hooks_agree();
	assert_int_equal(state_of(A), CK_STATE_COMMITTED);
	assert_true(world_shown(w, A));
	made_and_kept(B, container_in(A));
}

static bool is_shown(int label)
{
	hooks_agree();
	return world_shown(w, label);
}

/* sandboxes 0, 1, ... are begun, one of each pod, and their callers go */
static void crowd_is_late(int crowd, uint64_t timeout)
{
	for (int i = 0; i < crowd; i++) {
		assert_int_equal(begin(i, of_pod(sandbox, (unsigned char)i), timeout), CK_CREATE);
		world_leave(w, i);
	}
}

/* a kubelet starts containers in whatever it is offered, and too many starts at once are late */
static void k02_a_crowd_of_sandboxes_is_offered_little_by_little(void **state)
{
	const int at_once = CK_OFFERS_AT_ONCE, crowd = at_once + 3;
	struct world_config config = world_config();
	(void)state;
	config.rules.hand_back = CK_OFFER;
	start_with(&config);
	crowd_is_late(crowd, 10 * S);
	for (int i = 0; i < crowd; i++) {
		assert_int_equal(world_finish(w, i, true), CK_KEPT);
		assert_int_equal(is_shown(i), i < at_once);
	}
	assert_int_equal(begin(crowd, of_pod(sandbox, (unsigned char)(crowd - 1)), 10 * S),
			 CK_WAIT);
	world_inspected(w, 0, true); /* whoever asks for one need not wait for its turn */
	hooks_agree();
	assert_int_equal(outcome(crowd), CK_HAND_BACK);
	/* people are told when it expires; that it is offered before is in its history */
	assert_true(world_entry(w, at_once)->row.due > w->now + crowd * CK_OFFER_GAP);
	for (int i = at_once; i < crowd - 1; i++) {
		world_time(w, CK_OFFER_GAP - 1);
		assert_false(is_shown(i));
		world_time(w, 1);
		assert_true(is_shown(i));
	}
}

static void k02_what_is_offered_later_than_it_lives_expires(void **state)
{
	const int crowd = CK_OFFERS_AT_ONCE + 8;
	struct world_config config = world_config();
	(void)state;
	config.rules.hand_back = CK_OFFER;
	config.rules.ttl = 1 * S;
	start_with(&config);
	crowd_is_late(crowd, 1 * S);
	for (int i = 0; i < crowd; i++)
		assert_int_equal(world_finish(w, i, true), CK_KEPT);
	world_time(w, 1 * S + CK_TTL_SLACK);
	assert_true(is_shown(CK_OFFERS_AT_ONCE));
	assert_int_equal(state_of(crowd - 1), CK_STATE_EVICTING);
	assert_int_equal(world_entry(w, crowd - 1)->row.reason, CK_REASON_TTL);
}

static void k02_what_was_not_offered_yet_is_offered_by_the_next_life(void **state)
{
	struct world_config config = world_config();
	(void)state;
	start_with(&config);
	made_and_kept(A, sandbox);
	w->config.rules.hand_back = CK_OFFER;
	world_crash(w, 0);
	assert_false(is_shown(A));
	lists_come_in();
	world_time(w, CK_GAP);
	assert_true(is_shown(A));
}

static void k02_turn_past_its_deadline_creates_nothing(void **state)
{
	(void)state;
	world_crash(w, 0);
	assert_int_equal(begin(A, sandbox, 10 * S), CK_WAIT);
	world_stall(w, 120 * S);
	lists_come_in();
	assert_int_equal(outcome(A), CK_WAIT);
	world_time(w, 0);
	assert_int_equal(outcome(A), CK_BUSY);
	assert_int_equal(w->creations_n, 0);
}

/* a request that is another one can be told from the same one only by what is on disk */
static void k02_kept_as_long_as_nobody_can_tell_whose_it_is(void **state)
{
	(void)state;
	begin(A, sandbox, 10 * S);
	w->unreadable = true;
	assert_int_equal(begin(B, changed(sandbox), 240 * S), CK_WAIT);
	world_leave(w, A);
	assert_int_equal(world_finish(w, A, true), CK_KEPT);
	world_time(w, 10 * CK_RETRY_WRITE);
	assert_int_equal(state_of(A), CK_STATE_KEPT);
	assert_int_equal(outcome(B), CK_WAIT);
	w->unreadable = false;
	world_time(w, CK_RETRY_WRITE);
	assert_int_equal(state_of(A), CK_STATE_EVICTING);
	let_evict();
	assert_int_equal(outcome(B), CK_CREATE);
}

static void k03_margin_comes_although_nobody_can_tell_whose_it_is(void **state)
{
	(void)state;
	made_and_kept(A, sandbox);
	w->unreadable = true;
	begin(B, changed(sandbox), 1 * S);
	world_time(w, 749 * MS);
	assert_int_equal(outcome(B), CK_WAIT);
	world_time(w, 1 * MS);
	assert_int_equal(outcome(B), CK_BUSY);
	w->unreadable = false;
}

static void k03_waiter_takes_what_its_creator_is_too_late_for(void **state)
{
	(void)state;
	assert_int_equal(begin(A, sandbox, 2 * S), CK_CREATE);
	assert_int_equal(begin(B, sandbox, 240 * S), CK_WAIT);
	world_time(w, 1800 * MS); /* A is within its margin of 250 ms */
	assert_int_equal(world_finish(w, A, true), CK_KEPT);
	hooks_agree();
	assert_int_equal(outcome(A), CK_KEPT);
	assert_int_equal(outcome(B), CK_HAND_BACK);
}

static void k03_waiter_in_its_margin_is_told_the_stage(void **state)
{
	(void)state;
	begin(A, sandbox, 240 * S);
	world_stage(w, A);
	begin(B, sandbox, 2 * S);
	world_time(w, 1749 * MS);
	assert_int_equal(outcome(B), CK_WAIT);
	world_time(w, 1 * MS);
	assert_int_equal(outcome(B), CK_BUSY);
	assert_non_null(strstr(text_of(B), "sandbox network creation"));
}

static void k04_failure_wakes_all_and_is_not_remembered(void **state)
{
	(void)state;
	begin(A, sandbox, 10 * S);
	begin(B, sandbox, 10 * S);
	world_fail(w, A, CK_GRPC_RESOURCE_EXHAUSTED, true);
	for (int label = A; label <= B; label++) {
		assert_int_equal(outcome(label), -CK_EFAILED);
		assert_int_equal(w->callers[label].turn.decision.status->grpc,
				 CK_GRPC_RESOURCE_EXHAUSTED);
	}
	assert_int_equal(begin(C, sandbox, 10 * S), CK_CREATE);
}

static void k04_failure_without_words_has_its_code(void **state)
{
	struct ck_status status = { .size = sizeof(status), .grpc = CK_GRPC_INTERNAL };
	struct ck_shared_status *shared = ck_shared_status_new(&status);
	(void)state;
	begin(A, sandbox, 10 * S);
	ck_machine_fail(w->m, &w->callers[A].turn, shared, NULL);
	ck_shared_status_unref(shared);
	assert_string_equal(text_of(A), "INTERNAL: the creation failed");
	in_another_world();
}

static void k05_committed_is_handed_back_at_once(void **state)
{
	(void)state;
	made_and_handed(A, sandbox);
	assert_int_equal(begin(B, sandbox, 10 * S), CK_HAND_BACK);
	assert_string_equal(w->callers[B].id, w->callers[A].id);
	assert_int_equal(w->jobs_n, 0);
}

/* Somebody has its id from a plugin, or from the runtime itself. */
static void k05_what_is_removed_during_the_hooks_is_not_handed_out(void **state)
{
	struct world_config config = world_config();
	(void)state;
	for (int n = 0; n < 4; n++) {
		struct request req = n % 2 ? container_in(A) : sandbox;
		start_with(&config);
		if (n % 2)
			made_and_handed(A, sandbox);
		begin(B, req, 60 * S);
		if (n / 2) { /* what was kept is committed for a caller that came later */
			world_leave(w, B);
			assert_int_equal(world_finish(w, B, true), CK_KEPT);
			begin(C, req, 60 * S);
			world_inspected(w, 0, true);
		} else {
			assert_int_equal(world_finish(w, B, true), CK_WAIT);
			begin(C, req, 60 * S);
		}
		assert_int_equal(state_of(B), CK_STATE_COMMITTING);
		world_forget(w, B);
		hooks_agree();
		assert_int_equal(outcome(C), CK_CREATE);
		assert_false(asked(CK_WANT_DESTROY));
		assert_int_equal(teardown(state), 0);
		world_init(w, &config, NULL);
	}
}

static void k05_what_is_being_removed_is_not_handed_out_by_its_commit(void **state)
{
	struct world_config config = world_config();
	(void)state;
	for (int n = 0; n < 6; n++) {
		struct request req = n % 2 ? container_in(A) : sandbox;
		bool removed = n < 4;
		config.rules.can_inspect = n % 4 < 2;
		start_with(&config);
		if (n % 2)
			made_and_handed(A, sandbox);
		begin(B, req, 60 * S);
		assert_int_equal(world_finish(w, B, true), CK_WAIT);
		assert_int_equal(world_remove_begin(w, D, B, 60 * S), CK_DRAINED);
		hooks_agree();
		assert_int_not_equal(outcome(B), CK_HAND_BACK);
		assert_int_equal(begin(C, req, 60 * S), CK_WAIT);
		if (removed)
			world_forget(w, B);
		world_drop(w, D);
		hooks_agree();
		while (asked(CK_WANT_INSPECT))
			world_inspected(w, 0, true);
		hooks_agree();
		assert_int_equal(outcome(C), removed ? CK_CREATE : CK_HAND_BACK);
		assert_int_equal(teardown(state), 0);
		world_init(w, &config, NULL);
	}
}

static void k05_what_has_ended_or_runs_is_not(void **state)
{
	(void)state;
	made_and_handed(A, sandbox);
	made_and_handed(B, container_in(A));
	world_condition(w, B, CK_CONDITION_RUNNING);
	world_seen(w, B);
	assert_int_equal(begin(C, container_in(A), 10 * S), -CK_ECONFLICT);
	world_condition(w, A, CK_CONDITION_DEAD);
	world_seen(w, A);
	assert_int_equal(state_of(A), CK_STATE_ENDED);
	assert_int_equal(begin(D, sandbox, 10 * S), CK_CREATE);
}

static void k06_kept_result_is_asked_after_first(void **state)
{
	(void)state;
	made_and_kept(A, sandbox);
	assert_int_equal(begin(B, sandbox, 10 * S), CK_WAIT);
	assert_int_equal(begin(C, sandbox, 10 * S), CK_WAIT);
	assert_int_equal(w->jobs_n, 1); /* one question for both */
	world_inspected(w, 0, true);
	hooks_agree();
	assert_int_equal(outcome(B), CK_HAND_BACK);
	assert_int_equal(outcome(C), CK_HAND_BACK);
}

static void k06_dead_result_is_evicted_and_made_anew(void **state)
{
	(void)state;
	made_and_kept(A, sandbox);
	world_condition(w, A, CK_CONDITION_DEAD);
	begin(B, sandbox, 60 * S);
	world_inspected(w, 0, true);
	assert_int_equal(state_of(A), CK_STATE_EVICTING);
	let_evict();
	assert_int_equal(outcome(B), CK_CREATE);
}

static void k06_no_answer_is_asked_again(void **state)
{
	(void)state;
	made_and_kept(A, sandbox);
	begin(B, sandbox, 10 * S);
	world_inspected(w, 0, false);
	assert_int_equal(state_of(A), CK_STATE_KEPT);
	assert_false(asked(CK_WANT_INSPECT));
	world_time(w, 499 * MS);
	assert_false(asked(CK_WANT_INSPECT));
	world_time(w, 1 * MS);
	assert_true(asked(CK_WANT_INSPECT));
	world_inspected(w, 0, true);
	hooks_agree();
	assert_int_equal(outcome(B), CK_HAND_BACK);
}

/* its whole deadline is shorter than the margin */
static void k06_short_deadline_is_enough_for_a_kept_result(void **state)
{
	(void)state;
	made_and_kept(A, sandbox);
	assert_int_equal(begin(B, sandbox, 240 * MS), CK_WAIT);
	world_time(w, 239 * MS);
	assert_int_equal(outcome(B), CK_WAIT);
	world_inspected(w, 0, true);
	hooks_agree();
	assert_int_equal(outcome(B), CK_HAND_BACK);
	assert_int_equal(begin(C, sandbox, 1 * MS), CK_HAND_BACK);
}

static void k06_short_deadline_is_a_deadline(void **state)
{
	(void)state;
	made_and_kept(A, sandbox);
	begin(B, sandbox, 300 * MS);
	world_time(w, 300 * MS);
	assert_int_equal(outcome(B), CK_BUSY);
	assert_non_null(strstr(text_of(B), "has not said yet whether it is alive"));
	world_inspected(w, 0, true);
	assert_int_equal(state_of(A), CK_STATE_KEPT);
	world_condition(w, A, CK_CONDITION_DEAD);
	begin(B, sandbox, 300 * MS);
	world_time(w, 60 * MS); /* into the margin */
	world_inspected(w, 0, true);
	world_time(w, 0); /* there is no result to wait for any more */
	assert_int_equal(outcome(B), -CK_EUNAVAILABLE);
}

static void k06_a_question_that_cannot_be_asked_is_asked_later(void **state)
{
	(void)state;
	made_and_kept(A, sandbox);
	begin(B, sandbox, 10 * S);
	world_no_memory(w, CK_WANT_INSPECT);
	assert_int_equal(state_of(A), CK_STATE_KEPT);
	assert_false(asked(CK_WANT_INSPECT));
	world_time(w, CK_INSPECT_AGAIN);
	world_inspected(w, 0, true);
	hooks_agree();
	assert_int_equal(outcome(B), CK_HAND_BACK);
}

/* a host may call a sandbox running */
static void k06_a_sandbox_that_runs_is_alive_and_no_more(void **state)
{
	(void)state;
	made_and_kept(A, sandbox);
	const struct ck_row *row = &world_entry(w, A)->row;
	ck_machine_seen(w->m, CK_SANDBOX, row->result->id, CK_CONDITION_RUNNING);
	assert_int_equal(row->state, CK_STATE_KEPT);
	begin(B, sandbox, 10 * S);
	ck_machine_inspected(w->m, row->id, ck_machine_seq(w->m), CK_CONDITION_RUNNING);
	assert_int_equal(row->state, CK_STATE_COMMITTING);
	in_another_world();
}

static void k07_commit_of_a_sandbox_needs_nobody(void **state)
{
	(void)state;
	begin(A, sandbox, 10 * S);
	world_finish(w, A, true);
	world_leave(w, A);
	hooks_agree();
	assert_int_equal(state_of(A), CK_STATE_COMMITTED);
}

static void k07_container_nobody_waits_for_is_kept_and_told_once(void **state)
{
	(void)state;
	made_and_handed(A, sandbox);
	begin(B, container_in(A), 10 * S);
	world_finish(w, B, true);
	world_leave(w, B);
	hooks_agree();
	assert_int_equal(state_of(B), CK_STATE_KEPT);
	assert_true(flag(B, CK_ENTRY_TOLD));
	begin(C, container_in(A), 10 * S);
	world_inspected(w, 0, true);
	assert_false(asked(CK_WANT_RUN));
	assert_int_equal(outcome(C), CK_HAND_BACK);
}

static void k07_lost_answer_takes_a_container_back(void **state)
{
	(void)state;
	made_and_handed(A, sandbox);
	made_and_handed(B, container_in(A));
	world_report(w, A, false);
	world_report(w, B, false);
	assert_int_equal(state_of(A), CK_STATE_COMMITTED); /* the kubelet takes it from its list */
	assert_int_equal(state_of(B), CK_STATE_KEPT);
	assert_true(flag(B, CK_ENTRY_TOLD));
}

static void k07_call_that_names_it_proves_the_answer(void **state)
{
	(void)state;
	made_and_handed(A, sandbox);
	made_and_handed(B, container_in(A));
	world_used(w, B);
	world_report(w, B, false);
	assert_int_equal(state_of(B), CK_STATE_COMMITTED);
}

static void k07_start_of_a_container_that_was_kept_again_delivers_it(void **state)
{
	(void)state;
	made_and_handed(A, sandbox);
	made_and_handed(B, container_in(A));
	world_report(w, B, false);
	begin(C, container_in(A), 10 * S); /* asks whether it is alive, and need not wait for it */
	world_starting(w, B);
	assert_int_equal(state_of(B), CK_STATE_COMMITTED);
	assert_int_equal(outcome(C), CK_HAND_BACK);
	assert_false(asked(CK_WANT_RUN));
	world_crash(w, 0); /* it is on disk */
	lists_come_in();
	assert_int_equal(state_of(B), CK_STATE_COMMITTED);
}

static void k07_without_hooks_too_a_start_delivers_what_was_handed_over(void **state)
{
	struct world_config config = world_config();
	(void)state;
	config.rules.hooks = false;
	start_with(&config);
	made_and_handed(A, sandbox);
	made_and_handed(B, container_in(A));
	world_crash(w, 0);
	lists_come_in();
	assert_int_equal(state_of(B), CK_STATE_KEPT);
	world_crash(w, 0); /* this is on disk */
	world_starting(w, B);
	assert_int_equal(state_of(B), CK_STATE_COMMITTED);
}

static void k07_start_of_what_nobody_was_told_changes_nothing(void **state)
{
	(void)state;
	made_and_handed(A, sandbox);
	made_and_kept(B, container_in(A));
	world_starting(w, B);
	assert_int_equal(state_of(B), CK_STATE_KEPT);
}

static void k07_start_revives_nothing_that_was_given_up(void **state)
{
	(void)state;
	made_and_handed(A, sandbox);
	made_and_handed(B, container_in(A));
	world_report(w, B, false);
	begin(C, attempt(container_in(A), 1), 10 * S);
	assert_int_equal(state_of(B), CK_STATE_EVICTING);
	world_starting(w, B);
	assert_int_equal(state_of(B), CK_STATE_EVICTING);
}

static void k07_what_is_being_removed_is_not_taken_back(void **state)
{
	(void)state;
	made_and_handed(A, sandbox);
	made_and_handed(B, container_in(A));
	assert_int_equal(world_remove_begin(w, C, B, 10 * S), CK_DRAINED);
	world_report(w, B, false);
	assert_int_equal(state_of(B), CK_STATE_COMMITTED);
	world_forget(w, B);
	assert_null(world_entry(w, B));
}

static void k07_what_dies_while_plugins_are_told_is_made_anew(void **state)
{
	(void)state;
	begin(A, sandbox, 240 * S);
	assert_int_equal(world_finish(w, A, true), CK_WAIT);
	world_condition(w, A, CK_CONDITION_DEAD);
	world_seen(w, A);
	assert_int_equal(state_of(A), CK_STATE_EVICTING);
	let_evict();
	assert_int_equal(outcome(A), CK_CREATE);
	assert_int_equal(w->creations_n, 2);
}

/* the answer is in memory, but nobody could be told */
static void k07_without_memory_for_plugins_the_result_is_kept(void **state)
{
	(void)state;
	begin(A, sandbox, 10 * S);
	begin(B, sandbox, 10 * S);
	begin(C, container_in(-1), 10 * S); /* others of the pod hear nothing of it */
	begin(D, container_in(-1), 10 * S);
	world_finish(w, A, true);
	world_no_memory(w, CK_WANT_RUN);
	assert_int_equal(state_of(A), CK_STATE_KEPT);
	assert_false(flag(A, CK_ENTRY_TOLD));
	for (int label = A; label <= B; label++) {
		assert_int_equal(outcome(label), -CK_EUNAVAILABLE);
		assert_non_null(strstr(text_of(label), "plugins cannot be told"));
	}
	assert_int_equal(outcome(C), CK_CREATE);
	assert_int_equal(outcome(D), CK_WAIT);
}

/* ---- outcome unknown (K8) -------------------------------------------------------------------- */

static void k08_lost_creation_is_asked_after_and_found(void **state)
{
	(void)state;
	begin(A, sandbox, 240 * S);
	begin(B, sandbox, 240 * S);
	world_lose(w, A);
	assert_int_equal(state_of(A), CK_STATE_UNKNOWN);
	assert_int_equal(outcome(B), CK_WAIT);
	world_finish(w, A, false);
	world_time(w, 250 * MS);
	world_listed_entry(w, 0, HOW_OK);
	hooks_agree();
	assert_int_equal(outcome(A), CK_HAND_BACK);
	assert_int_equal(outcome(B), CK_HAND_BACK);
}

static void k08_questions_come_slower_and_slower(void **state)
{
	static const unsigned pauses[] = { 250, 500, 1000, 2000, 4000, 5000, 5000 };
	(void)state;
	begin(A, sandbox, 0);
	world_lose(w, A);
	world_leave(w, A);
	for (size_t i = 0; i < CK_COUNT(pauses); i++) {
		world_time(w, (pauses[i] - 1) * MS);
		assert_false(asked(CK_WANT_LIST));
		world_time(w, 1 * MS);
		assert_true(asked(CK_WANT_LIST));
		world_listed_entry(w, 0, HOW_FAILED);
	}
}

static void k08_own_deadline_makes_it_lost_and_its_maker_may_still_tell(void **state)
{
	(void)state;
	begin(A, sandbox, 0);
	begin(B, sandbox, 0);
	world_time(w, CK_CREATE_DEADLINE - 1 * MS);
	assert_int_not_equal(state_of(A), CK_STATE_UNKNOWN);
	world_time(w, 1 * MS);
	assert_int_equal(state_of(A), CK_STATE_UNKNOWN);
	world_finish(w, A, true);
	hooks_agree();
	assert_int_equal(outcome(A), CK_HAND_BACK);
	assert_int_equal(outcome(B), CK_HAND_BACK);
}

static void k08_found_dead_is_evicted(void **state)
{
	(void)state;
	begin(A, sandbox, 240 * S);
	world_lose(w, A);
	world_finish(w, A, false);
	world_condition(w, A, CK_CONDITION_DEAD);
	world_time(w, 250 * MS);
	world_listed_entry(w, 0, HOW_OK);
	assert_int_equal(state_of(A), CK_STATE_EVICTING);
}

/* a list shows it dead before its maker says that it is made */
static void k08_listed_dead_while_it_is_made_is_evicted(void **state)
{
	(void)state;
	begin(A, sandbox, 240 * S);
	world_finish(w, A, false);
	world_condition(w, A, CK_CONDITION_DEAD);
	list_passes(CK_SANDBOX);
	assert_int_equal(state_of(A), CK_STATE_CREATING);
	assert_int_equal(world_finish(w, A, true), -CK_EABANDONED);
	assert_int_equal(state_of(A), CK_STATE_EVICTING);
	assert_int_equal(world_entry(w, A)->row.reason, CK_REASON_DEAD);
}

static void k08_what_is_given_up_is_found_in_whatever_condition_it_is(void **state)
{
	(void)state;
	begin(A, sandbox, 240 * S);
	world_lose(w, A);
	world_evict(w, 0, false);
	world_finish(w, A, false);
	world_condition(w, A, CK_CONDITION_UNKNOWN);
	world_next(w);
	let_evict();
	assert_int_equal(state_of(A), CK_STATE_GONE);
	assert_int_equal(world_object(w, A)->condition, CK_CONDITION_ABSENT);
}

static void k08_what_has_another_name_is_not_what_was_lost(void **state)
{
	const struct ck_object sandboxes[] = {
		{ .kind = CK_SANDBOX, .id = "1", .pod_name = "pod0", .pod_namespace = "other",
		  .pod_uid = "uid0", .condition = CK_CONDITION_READY },
		{ .kind = CK_SANDBOX, .id = "2", .pod_name = "other", .pod_namespace = "ns",
		  .pod_uid = "uid0", .condition = CK_CONDITION_READY },
		{ .kind = CK_SANDBOX, .id = "3", .pod_name = "pod0", .pod_namespace = "ns",
		  .pod_uid = "other", .condition = CK_CONDITION_READY },
	};
	struct ck_object containers[] = {
		{ .kind = CK_CONTAINER, .id = "4", .sandbox_id = "unknown0",
		  .container_name = "other", .condition = CK_CONDITION_READY },
		{ .kind = CK_CONTAINER, .id = "5", .sandbox_id = "other",
		  .container_name = "main", .condition = CK_CONDITION_READY },
		{ .kind = CK_CONTAINER, .id = "6", .sandbox_id = "unknown0",
		  .container_name = "main", .pod_name = "other", .condition = CK_CONDITION_READY },
		{ .kind = CK_CONTAINER, .id = "7", .sandbox_id = "unknown0",
		  .container_name = "main", .pod_uid = "other", .condition = CK_CONDITION_READY },
		{ .kind = CK_CONTAINER, .id = "8", .sandbox_id = "unknown0",
		  .container_name = "main", .pod_namespace = "other",
		  .condition = CK_CONDITION_READY },
	};
	(void)state;
	begin(A, sandbox, 0);
	begin(B, container_in(-1), 0);
	world_lose(w, A);
	world_lose(w, B);
	const uint64_t sandbox_row = world_entry(w, A)->row.id,
		       container_row = world_entry(w, B)->row.id;
	ck_machine_listed_entry(w->m, sandbox_row, UINT64_MAX, true, sandboxes,
				CK_COUNT(sandboxes));
	assert_int_equal(state_of(A), CK_STATE_UNKNOWN);
	ck_machine_listed_entry(w->m, container_row, UINT64_MAX, true, containers,
				CK_COUNT(containers));
	assert_int_equal(state_of(B), CK_STATE_UNKNOWN);
}

/* the one that is alive, and then the youngest */
static void k08_of_several_that_are_found_one_is_chosen(void **state)
{
	static const struct {
		enum ck_condition condition[2];
		uint64_t created_at[2];
		int chosen;
	} found[] = {
		{ { CK_CONDITION_READY, CK_CONDITION_READY }, { 1, 2 }, 1 },
		{ { CK_CONDITION_READY, CK_CONDITION_READY }, { 2, 1 }, 0 },
		{ { CK_CONDITION_DEAD, CK_CONDITION_READY }, { 2, 1 }, 1 },
		{ { CK_CONDITION_READY, CK_CONDITION_DEAD }, { 1, 2 }, 0 },
	};
	(void)state;
	for (size_t i = 0; i < CK_COUNT(found); i++) {
		struct ck_object o[2];
		for (int n = 0; n < 2; n++)
			o[n] = (struct ck_object){ .kind = CK_SANDBOX, .id = n ? "1" : "0",
						   .pod_name = "pod0", .pod_namespace = "ns",
						   .pod_uid = "uid0",
						   .condition = found[i].condition[n],
						   .created_at = found[i].created_at[n] };
		begin(A, sandbox, 0);
		world_lose(w, A);
		const struct ck_entry *e = world_entry(w, A);
		ck_machine_listed_entry(w->m, e->row.id, UINT64_MAX, true, o, 2);
		assert_string_equal(e->row.result->id, o[found[i].chosen].id);
		in_another_world();
	}
}

/* the runtime made two of one request; a list showed one, and its maker reports the other */
static void k08_its_maker_does_not_replace_what_a_list_has_shown(void **state)
{
	const struct ck_object o = { .kind = CK_SANDBOX, .id = "x", .pod_name = "pod0",
				     .pod_namespace = "ns", .pod_uid = "uid0",
				     .condition = CK_CONDITION_READY };
	struct ck_shared_result *other = ck_shared_result_new("y", NULL, 0);
	struct ck_error err = { 0 };
	(void)state;
	begin(A, sandbox, 0);
	world_time(w, CK_CREATE_DEADLINE);
	const struct ck_entry *e = world_entry(w, A);
	ck_machine_listed_entry(w->m, e->row.id, UINT64_MAX, true, &o, 1);
	assert_string_equal(e->row.result->id, "x");
	struct ck_mturn *t = &w->callers[A].turn;
	assert_int_equal(ck_machine_finish(w->m, t, other, &err), -CK_ESTATE);
	assert_string_equal(e->row.result->id, "x");
	assert_int_equal(ck_machine_finish(w->m, t, e->row.result, &err), CK_WAIT);
	ck_shared_result_unref(other);
	in_another_world();
}

static void who_creates_nothing_reports_nothing(void **state)
{
	struct ck_status status = { .size = sizeof(status), .grpc = CK_GRPC_INTERNAL };
	struct ck_shared_status *failure = ck_shared_status_new(&status);
	struct ck_shared_result *result = ck_shared_result_new("x", NULL, 0);
	struct ck_error err = { 0 };
	(void)state;
	world_crash(w, 0);
	assert_int_equal(begin(A, sandbox, 10 * S), CK_WAIT);
	struct ck_mturn *t = &w->callers[A].turn;
	for (int listed = 0; listed < 2; listed++) {
		if (listed) {
			begin(B, sandbox, 10 * S);
			lists_come_in();
			t = &w->callers[outcome(A) == CK_CREATE ? B : A].turn; /* who waits */
		}
		assert_int_equal(ck_machine_stage(w->m, t, "network"), -CK_ESTATE);
		assert_int_equal(ck_machine_finish(w->m, t, result, &err), -CK_ESTATE);
		assert_int_equal(ck_machine_fail(w->m, t, failure, "no"), -CK_ESTATE);
		assert_int_equal(ck_machine_lost(w->m, t), -CK_ESTATE);
		ck_machine_unheard(w->m, t);
		assert_int_equal(ck_turn_outcome(t), CK_WAIT);
	}
	ck_shared_status_unref(failure);
	ck_shared_result_unref(result);
}

/* timers fire, and the round goes on */
static void timers_fire_within_a_round(uint64_t ns)
{
	world_stall(w, ns);
	w->more = true;
	feed(w);
	oracle_expiring(w);
	ck_machine_expire(w->m);
	w->expired_at = w->now;
	oracle_expired(w);
	fed(w);
}

static void k08_a_caller_that_comes_when_the_question_is_due_asks_no_second_one(void **state)
{
	(void)state;
	begin(A, sandbox, 240 * S);
	world_lose(w, A);
	for (int i = 0; i < 2; i++) {
		world_next(w);
		world_listed_entry(w, 0, HOW_FAILED);
	}
	timers_fire_within_a_round(1 * S);
	begin(B, sandbox, 240 * S);
	round_ends();
	assert_non_null(world_job(w, CK_WANT_LIST, 0));
	assert_null(world_job(w, CK_WANT_LIST, 1));
}

/* its own call has not returned, so it cannot make another one */
static void k08_found_dead_while_its_maker_works_is_made_by_the_next(void **state)
{
	(void)state;
	begin(A, sandbox, 0);
	w->creations[0].reserved = true; /* the runtime has somebody else's of this name */
	world_external(w, B, &sandbox, CK_CONDITION_DEAD, false);
	world_time(w, CK_CREATE_DEADLINE);
	world_time(w, 250 * MS);
	world_listed_entry(w, 0, HOW_FRESH);
	let_evict();
	assert_int_equal(outcome(A), -CK_EABANDONED);
	assert_int_equal(begin(C, sandbox, 0), CK_CREATE);
}

/* the same when it is found alive, and destroyed for another request whose caller then goes */
static void k08_found_while_its_maker_works_and_evicted_is_made_by_the_next(void **state)
{
	(void)state;
	begin(A, sandbox, 0);
	world_time(w, CK_CREATE_DEADLINE);
	begin(B, changed(sandbox), 240 * S);
	world_finish(w, A, false);
	world_time(w, 250 * MS);
	world_listed_entry(w, 0, HOW_FRESH);
	assert_int_equal(state_of(A), CK_STATE_EVICTING);
	world_leave(w, B);
	let_evict();
	assert_int_equal(outcome(A), -CK_EABANDONED);
	assert_int_equal(begin(C, sandbox, 0), CK_CREATE);
}

/* it waits for a lost creation, which no list shows, until the request is its to send again */
static void begin_and_resend(int label)
{
	begin(label, sandbox, 240 * S);
	for (int i = 0; i < 8 && outcome(label) != CK_CREATE; i++) {
		world_next(w);
		world_listed_entry(w, 0, HOW_FRESH);
	}
	assert_int_equal(outcome(label), CK_CREATE);
}

static void k08_what_is_made_after_a_resend_is_made_for_the_first_time(void **state)
{
	(void)state;
	begin(A, sandbox, 240 * S);
	world_lose(w, A);
	world_drop(w, A);
	begin_and_resend(B);
	assert_true(w->callers[B].turn.again);
	world_lose(w, B);
	for (unsigned i = 0; i < w->creations_n; i++)
		w->creations[i].reserved = true;
	world_external(w, C, &sandbox, CK_CONDITION_DEAD, false);
	world_next(w);
	world_listed_entry(w, 0, HOW_FRESH);
	let_evict();
	assert_int_equal(outcome(B), CK_CREATE);
	assert_false(w->callers[B].turn.again);
}

static void k08_resent_once_and_already_exists_means_still_running(void **state)
{
	(void)state;
	begin(A, sandbox, 240 * S);
	world_lose(w, A);
	world_drop(w, A);
	begin_and_resend(B);
	assert_true(w->now >= 1005 * S);
	world_finish(w, B, true); /* the runtime has the name reserved: ALREADY_EXISTS */
	assert_int_equal(outcome(B), CK_CREATE);
	assert_int_equal(state_of(A), CK_STATE_UNKNOWN);
	assert_true(flag(A, CK_ENTRY_RESENT));
	world_finish(w, A, false);
	world_next(w);
	world_listed_entry(w, 0, HOW_FRESH);
	hooks_agree();
	assert_int_equal(outcome(B), CK_HAND_BACK);
}

/* other words for a name that is taken, and what says nothing about the first request */
static void k08_a_resend_that_fails_may_leave_the_first_running(void **state)
{
	static const struct {
		int grpc;
		bool open;
	} statuses[] = {
		{ CK_GRPC_UNKNOWN, true },     { CK_GRPC_FAILED_PRECONDITION, true },
		{ CK_GRPC_CANCELLED, true },   { CK_GRPC_DEADLINE_EXCEEDED, true },
		{ CK_GRPC_UNAVAILABLE, true }, { CK_GRPC_INVALID_ARGUMENT, false },
		{ CK_GRPC_NOT_FOUND, false },
	};
	for (size_t n = 0; n < CK_COUNT(statuses); n++) {
		if (n) {
			teardown(state);
			setup(state);
		}
		begin(A, sandbox, 240 * S);
		world_lose(w, A);
		world_drop(w, A);
		world_fail(w, A, CK_GRPC_INTERNAL, false); /* it has made nothing */
		begin_and_resend(B);
		int r = world_fail(w, B, statuses[n].grpc, true);
		assert_int_equal(r, statuses[n].open ? CK_WAIT : 0);
		assert_int_equal(outcome(B), statuses[n].open ? CK_CREATE : -CK_EFAILED);
	}
}

static void k08_given_up_after_its_grace(void **state)
{
	(void)state;
	begin(A, sandbox, 240 * S);
	world_lose(w, A);
	world_fail(w, A, CK_GRPC_INTERNAL, false);
	uint64_t began = w->now;
	for (int i = 0; i < 40 && outcome(A) == CK_CREATE; i++) {
		world_next(w);
		world_listed_entry(w, 0, HOW_FRESH);
		/* it is sent again, and that one is lost as well */
		world_fail(w, A, CK_GRPC_INTERNAL, false);
		world_lose(w, A);
	}
	assert_int_equal(outcome(A), -CK_EUNAVAILABLE);
	assert_true(w->now - began >= CK_LOST_GRACE);
}

static void k08_the_answer_says_how_long_a_short_grace_was(void **state)
{
	struct world_config config = world_config();
	(void)state;
	config.rules.lost_grace = 100 * MS;
	start_with(&config);
	begin(A, sandbox, 240 * S);
	world_lose(w, A);
	world_fail(w, A, CK_GRPC_INTERNAL, false);
	for (int i = 0; i < 10 && outcome(A) == CK_CREATE; i++) {
		world_next(w);
		world_listed_entry(w, 0, HOW_FRESH);
	}
	assert_int_equal(outcome(A), -CK_EUNAVAILABLE);
	assert_non_null(strstr(text_of(A), "did not list it within 750ms"));
}

/* a list shows what there was when it began, however long its answer takes */
static void k08_list_that_took_long_gives_nothing_up(void **state)
{
	(void)state;
	begin(A, sandbox, 240 * S);
	world_lose(w, A);
	world_time(w, 250 * MS);
	world_listed_entry(w, 0, HOW_OK);
	world_time(w, 500 * MS);
	assert_true(asked(CK_WANT_LIST));
	world_time(w, CK_LOST_GRACE / 2);
	world_finish(w, A, false);
	world_time(w, CK_LOST_GRACE);
	world_listed_entry(w, 0, HOW_OK);
	assert_int_equal(state_of(A), CK_STATE_UNKNOWN);
	for (int i = 0; i < 4 && !asked(CK_WANT_LIST); i++)
		world_next(w);
	world_listed_entry(w, 0, HOW_OK);
	hooks_agree();
	assert_int_equal(outcome(A), CK_HAND_BACK);
}

/* nothing more may be known of it than that it is there */
static void k08_what_a_list_shows_is_not_given_up(void **state)
{
	(void)state;
	begin(A, sandbox, 240 * S);
	world_lose(w, A);
	world_time(w, 250 * MS);
	world_listed_entry(w, 0, HOW_OK);
	world_time(w, 500 * MS);
	world_listed_entry(w, 0, HOW_OK);
	world_time(w, CK_LOST_GRACE);
	assert_true(asked(CK_WANT_LIST));
	world_finish(w, A, false);
	world_condition(w, A, CK_CONDITION_UNKNOWN);
	list_passes(CK_SANDBOX);
	assert_int_equal(state_of(A), CK_STATE_UNKNOWN);
	world_condition(w, A, CK_CONDITION_READY);
	list_passes(CK_SANDBOX);
	hooks_agree();
	assert_int_equal(outcome(A), CK_HAND_BACK);
}

/* an owner that dies each second; the runtime has undone the creation. Returns the lives it took
 * until a caller heard @outcome */
static int lives_until(int expected)
{
	begin(A, sandbox, 240 * S);
	world_fail(w, A, CK_GRPC_INTERNAL, false);
	for (int lives = 1; lives <= 40; lives++) {
		world_crash(w, 0);
		lists_come_in();
		begin(B, sandbox, 240 * S);
		for (int i = 0; i < 4; i++) {
			world_time(w, 250 * MS);
			if (asked(CK_WANT_LIST))
				world_listed_entry(w, 0, HOW_OK);
			if (outcome(B) == expected)
				return lives;
		}
	}
	return -1;
}

static void k08_crash_loop_does_not_put_off_the_second_request(void **state)
{
	(void)state;
	assert_in_range(lives_until(CK_CREATE), 6, 7);
	assert_true(flag(A, CK_ENTRY_RESENT));
}

static void k08_crash_loop_does_not_put_off_the_end_of_the_grace(void **state)
{
	struct world_config config = world_config();
	(void)state;
	config.rules.can_list = false; /* so that nothing is sent again */
	config.rules.skip_first_list = true;
	start_with(&config);
	assert_in_range(lives_until(-CK_EUNAVAILABLE), 30, 32);
}

/* ---- moving on (K9 to K16) ------------------------------------------------------------------- */

static void k09_another_attempt_abandons_the_earlier(void **state)
{
	(void)state;
	begin(A, attempt(sandbox, 1), 10 * S);
	begin(B, attempt(sandbox, 1), 10 * S);
	begin(C, attempt(sandbox, 0), 10 * S); /* a lower attempt counts as well */
	assert_int_equal(outcome(A), -CK_EABANDONED);
	assert_int_equal(outcome(B), -CK_EABANDONED);
	assert_int_equal(state_of(A), CK_STATE_EVICTING);
	assert_int_equal(world_finish(w, A, true), -CK_EABANDONED);
	assert_int_equal(state_of(A), CK_STATE_EVICTING);
}

static void k09_another_uid_of_the_name_does_too(void **state)
{
	struct request replaced = sandbox;
	(void)state;
	replaced.uid = 1;
	made_and_kept(A, sandbox);
	begin(B, replaced, 10 * S);
	assert_int_equal(state_of(A), CK_STATE_EVICTING);
}

static void k09_history_says_who_abandoned_it(void **state)
{
	struct request replaced = sandbox;
	(void)state;
	replaced.uid = 1;
	begin(A, sandbox, 10 * S);
	w->more = true;
	begin(B, attempt(sandbox, 3), 10 * S);
	assert_string_equal(said(A, CK_WHAT_MOVED), "attempt 3");
	begin(C, replaced, 10 * S);
	assert_string_equal(said(A, CK_WHAT_MOVED), "attempt 3"); /* the first one counts */
	round_ends();
	world_finish(w, A, true);
	let_evict();
	made_and_kept(D, of_pod(sandbox, 1));
	replaced.pod = 1;
	w->more = true;
	begin(E, replaced, 10 * S);
	assert_int_equal(strncmp(said(D, CK_WHAT_MOVED), "uid ", 4), 0);
	round_ends();
}

static void k09_request_that_is_over_moves_nothing(void **state)
{
	struct request next = attempt(sandbox, 1);
	(void)state;
	made_and_kept(A, sandbox);
	assert_int_equal(world_begin(w, B, &next, 10 * S, true), -CK_EDEADLINE);
	assert_int_equal(state_of(A), CK_STATE_KEPT);
}

static void k09_one_uid_has_one_name(void **state)
{
	struct request other = sandbox;
	(void)state;
	other.name = 1;
	made_and_kept(A, sandbox);
	assert_int_equal(begin(B, other, 10 * S), -CK_EINVAL);
	assert_int_equal(state_of(A), CK_STATE_KEPT);
}

static void k09_two_names_of_one_uid_before_the_first_list(void **state)
{
	struct request other = sandbox;
	(void)state;
	other.name = 1;
	world_crash(w, 0);
	assert_int_equal(begin(A, sandbox, 240 * S), CK_WAIT);
	assert_int_equal(begin(B, other, 240 * S), CK_WAIT);
	lists_come_in();
	/* whichever is placed first; the other one is refused */
	assert_true((outcome(A) == CK_CREATE && outcome(B) == -CK_EINVAL) ||
		    (outcome(B) == CK_CREATE && outcome(A) == -CK_EINVAL));
}

static void k09_one_sandbox_has_one_pod(void **state)
{
	struct request good = container_in(A), uid = good;
	(void)state;
	uid.uid = 1;
	made_and_handed(A, sandbox);
	assert_int_equal(begin(B, of_pod(good, 1), 10 * S), -CK_EINVAL);
	assert_int_equal(begin(C, uid, 10 * S), -CK_EINVAL);
	made_and_kept(D, good);
	assert_int_equal(begin(E, of_pod(attempt(good, 1), 1), 10 * S), -CK_EINVAL);
	assert_int_equal(state_of(D), CK_STATE_KEPT);
	assert_int_equal(begin(F, attempt(good, 1), 10 * S), CK_CREATE);
	assert_int_equal(state_of(D), CK_STATE_EVICTING);
}

static void k09_so_has_one_that_nobody_knows(void **state)
{
	struct request good = container_in(-1), uid = good;
	(void)state;
	uid.uid = 1;
	made_and_kept(A, good);
	assert_int_equal(begin(B, uid, 10 * S), -CK_EINVAL);
	world_evict(w, 0, false);
	assert_int_equal(begin(C, uid, 10 * S), -CK_EINVAL); /* it could be found in use */
	let_evict();
	assert_int_equal(begin(D, uid, 10 * S), CK_CREATE);
}

/* of what was there before, the runtime says what it knows */
static void k09_so_has_one_that_a_list_has_shown(void **state)
{
	struct request uid = container_in(A);
	struct ck_object o = { .kind = CK_SANDBOX, .id = "s1", .pod_name = "pod0",
			       .pod_namespace = "ns", .condition = CK_CONDITION_READY };
	(void)state;
	uid.uid = 1;
	world_external(w, A, &sandbox, CK_CONDITION_READY, false);
	list_passes(CK_SANDBOX);
	assert_int_equal(begin(B, uid, 10 * S), -CK_EINVAL);
	assert_int_equal(begin(C, container_in(A), 10 * S), CK_CREATE);
	in_another_world();
	world_external(w, A, &sandbox, CK_CONDITION_READY, false);
	ck_machine_listed(w->m, CK_SANDBOX, UINT64_MAX, true, &o, 1); /* without a uid */
	assert_int_equal(begin(B, of_pod(container_in(A), 1), 10 * S), -CK_EINVAL);
	assert_int_equal(begin(C, uid, 10 * S), CK_CREATE);
	in_another_world();
	world_external(w, A, &sandbox, CK_CONDITION_READY, false);
	o.pod_namespace = "other";
	ck_machine_listed(w->m, CK_SANDBOX, UINT64_MAX, true, &o, 1);
	assert_int_equal(begin(B, container_in(A), 10 * S), -CK_EINVAL);
	in_another_world();
}

static void k09_two_pods_of_one_sandbox_before_the_first_list(void **state)
{
	struct request good = container_in(-1), uid = good;
	(void)state;
	uid.uid = 1;
	world_crash(w, 0);
	assert_int_equal(begin(A, good, 240 * S), CK_WAIT);
	assert_int_equal(begin(B, uid, 240 * S), CK_WAIT);
	lists_come_in();
	assert_int_equal(outcome(B), CK_CREATE); /* the newest is placed first */
	assert_int_equal(outcome(A), -CK_EINVAL);
}

static void k10_next_attempt_waits_for_the_ports(void **state)
{
	(void)state;
	made_and_kept(A, sandbox);
	assert_int_equal(begin(B, attempt(sandbox, 1), 240 * S), CK_WAIT);
	world_listed_entry(w, 0, HOW_OK);
	assert_int_equal(outcome(B), CK_WAIT);
	world_destroyed(w, 0, HOW_OK);
	assert_int_equal(outcome(B), CK_CREATE);
}

static void k10_but_not_for_ever(void **state)
{
	(void)state;
	made_and_kept(A, sandbox);
	begin(B, attempt(sandbox, 1), 240 * S);
	world_time(w, 20 * S - 1 * MS);
	assert_int_equal(outcome(B), CK_WAIT);
	world_time(w, 1 * MS);
	assert_int_equal(outcome(B), CK_CREATE);
}

/* it was compared with something else before, and is looked at each second */
static void k10_nor_less_because_it_is_looked_at_meanwhile(void **state)
{
	struct request replaced = sandbox;
	(void)state;
	replaced.uid = 1;
	made_and_kept(A, replaced);
	begin(B, sandbox, 60 * S);
	world_time(w, 20 * S);
	assert_int_equal(outcome(B), CK_CREATE);
	world_leave(w, B);
	world_finish(w, B, true);
	assert_int_equal(state_of(A), CK_STATE_EVICTING);
	w->unreadable = true;
	begin(C, changed(sandbox), 240 * S); /* is it the request of B? */
	world_condition(w, B, CK_CONDITION_ABSENT);
	list_passes(CK_SANDBOX);
	world_listed_entry(w, 0, HOW_FAILED); /* A is not destroyed yet; nothing of B is left */
	assert_int_equal(state_of(A), CK_STATE_EVICTING);
	assert_int_equal(state_of(B), CK_STATE_GONE);
	const uint64_t began = w->now;
	while (outcome(C) == CK_WAIT && w->now < began + 60 * S)
		world_next(w);
	assert_int_equal(outcome(C), CK_CREATE);
	assert_int_equal(w->now - began, 20 * S);
	w->unreadable = false;
}

static void k10_not_after_its_own_deadline(void **state)
{
	(void)state;
	made_and_kept(A, sandbox);
	assert_int_equal(begin(B, attempt(sandbox, 1), 10 * S), CK_WAIT);
	world_stall(w, 60 * S);
	world_time(w, 0);
	assert_int_equal(outcome(B), -CK_EUNAVAILABLE);
	assert_int_equal(w->creations_n, 1);
}

static void k11_changed_request_waits_for_the_end_of_a_creation(void **state)
{
	(void)state;
	begin(A, sandbox, 240 * S);
	assert_int_equal(begin(B, changed(sandbox), 240 * S), CK_WAIT);
	assert_int_equal(state_of(A), CK_STATE_CREATING);
	/* B is the newest, and its request differs */
	assert_int_equal(world_finish(w, A, true), -CK_EABANDONED);
	assert_int_equal(state_of(A), CK_STATE_EVICTING);
	let_evict();
	assert_int_equal(outcome(B), CK_CREATE);
}

static void k11_the_newest_decides(void **state)
{
	(void)state;
	begin(A, sandbox, 240 * S);
	begin(B, changed(sandbox), 240 * S);
	begin(C, sandbox, 240 * S);
	world_finish(w, A, true);
	hooks_agree();
	assert_int_equal(outcome(A), CK_HAND_BACK);
	assert_int_equal(outcome(C), CK_HAND_BACK);
	assert_int_equal(outcome(B), -CK_ECONFLICT);
}

static void k11_kept_result_is_not_for_another_request(void **state)
{
	(void)state;
	made_and_kept(A, sandbox);
	assert_int_equal(begin(B, changed(sandbox), 10 * S), CK_WAIT);
	assert_int_equal(state_of(A), CK_STATE_EVICTING);
	assert_false(asked(CK_WANT_RUN));
}

static void k11_history_says_what_changed(void **state)
{
	struct world_config config = world_config();
	(void)state;
	config.rules.on_annotation_change = CK_ANNOTATION_EVICT;
	start_with(&config);
	made_and_kept(A, sandbox);
	w->more = true;
	begin(B, changed(sandbox), 240 * S); /* finds it kept */
	assert_string_equal(said(A, CK_WHAT_MOVED), "config.differs");
	round_ends();
	let_evict();
	begin(C, sandbox, 240 * S); /* and this one differs when it is made */
	w->more = true;
	world_finish(w, B, true);
	assert_string_equal(said(B, CK_WHAT_MOVED), "config.differs");
	round_ends();
	let_evict();
	world_leave(w, C);
	world_finish(w, C, true);
	w->more = true;
	begin(D, relabelled(sandbox), 240 * S);
	assert_string_equal(said(C, CK_WHAT_MOVED), "config.differs");
	round_ends();
}

static void k11_history_says_what_changed_during_hooks(void **state)
{
	(void)state;
	begin(A, sandbox, 240 * S);
	world_finish(w, A, true);
	w->more = true;
	begin(B, changed(sandbox), 240 * S);
	assert_int_equal(state_of(A), CK_STATE_EVICTING);
	assert_string_equal(said(A, CK_WHAT_MOVED), "config.differs");
	round_ends();
	hooks_agree();
}

static void k11_committed_one_is_a_conflict(void **state)
{
	(void)state;
	made_and_handed(A, sandbox);
	assert_int_equal(begin(B, changed(sandbox), 10 * S), -CK_ECONFLICT);
	assert_non_null(strstr(text_of(B), "config.differs"));
	assert_int_equal(state_of(A), CK_STATE_COMMITTED);
}

/* two requests waited for the first lists; the newer one is that of the kept result, and goes */
static void k11_an_older_request_decides_when_the_newer_one_has_gone(void **state)
{
	(void)state;
	for (int leaves = 0; leaves <= 1; leaves++) {
		made_and_kept(A, sandbox);
		world_crash(w, 0);
		begin(B, changed(sandbox), 0);
		begin(C, sandbox, 10 * S);
		lists_come_in();
		assert_true(asked(CK_WANT_INSPECT));
		assert_int_equal(state_of(A), CK_STATE_KEPT);
		if (leaves)
			world_leave(w, C);
		else
			world_time(w, 10 * S);
		let_evict();
		assert_int_equal(outcome(B), CK_CREATE);
		assert_int_equal(teardown(state), 0);
		assert_int_equal(setup(state), 0);
	}
}

static void k12_other_labels_get_the_same(void **state)
{
	(void)state;
	made_and_kept(A, sandbox);
	begin(B, relabelled(sandbox), 10 * S);
	assert_int_equal(state_of(A), CK_STATE_KEPT);
	world_inspected(w, 0, true);
	hooks_agree();
	assert_int_equal(outcome(B), CK_HAND_BACK);
	assert_int_equal(ck_counter_sum(ck_machine_counters(w->m)->relabelled), 1);
}

static void k12_other_labels_evict_if_the_host_says_so(void **state)
{
	struct world_config config = world_config();
	(void)state;
	config.rules.on_annotation_change = CK_ANNOTATION_EVICT;
	start_with(&config);
	made_and_kept(A, sandbox);
	for (int i = 0; i < 3; i++) {
		begin(B, relabelled(w->callers[A].req), 60 * S);
		assert_int_equal(state_of(A), CK_STATE_EVICTING);
		let_evict();
		assert_int_equal(outcome(B), CK_CREATE);
		world_leave(w, B);
		assert_int_equal(world_finish(w, B, true), CK_KEPT);
		begin(A, relabelled(w->callers[B].req), 60 * S);
		assert_int_equal(state_of(B), CK_STATE_EVICTING);
		let_evict();
		world_leave(w, A);
		assert_int_equal(world_finish(w, A, true), CK_KEPT);
	}
}

/* a container that begins, and another request that may be the same with its image resolved (E5);
 * both are being resolved */
static void images_are_resolved(void)
{
	struct world_config config = world_config();
	struct request other = container_in(-1);
	other.fp.base = 2;
	config.rules.can_resolve = true;
	start_with(&config);
	assert_int_equal(begin(A, container_in(-1), 240 * S), CK_CREATE);
	assert_int_equal(begin(B, other, 10 * S), CK_WAIT);
	while (ck_machine_take_resolve(w->m))
		;
	assert_int_equal(w->callers[A].turn.image.state, CK_IMAGE_ASKED);
	assert_int_equal(w->callers[B].turn.image.state, CK_IMAGE_ASKED);
}

static void e05_an_image_that_is_resolved_too_late_changes_nothing(void **state)
{
	(void)state;
	images_are_resolved();
	world_stall(w, 9900 * MS); /* B has no time left for a creation of its own */
	world_fail(w, A, CK_GRPC_INTERNAL, true);
	assert_null(ck_machine_entries(w->m));
	ck_machine_resolved(w->m, &w->callers[B].turn);
	ck_machine_resolved(w->m, &w->callers[A].turn);
	assert_null(ck_machine_entries(w->m));
	world_time(w, 0);
	assert_int_equal(outcome(B), CK_BUSY);
	images_are_resolved(); /* in the same round */
	w->more = true;
	world_leave(w, B);
	world_fail(w, A, CK_GRPC_INTERNAL, true);
	ck_machine_resolved(w->m, &w->callers[A].turn);
	round_ends();
	assert_int_equal(outcome(A), -CK_EFAILED);
	assert_null(ck_machine_entries(w->m));
}

static void k13_bump_during_the_hooks_is_undone_in_order(void **state)
{
	(void)state;
	begin(A, sandbox, 240 * S);
	world_finish(w, A, true);
	begin(B, attempt(sandbox, 1), 240 * S);
	assert_int_equal(outcome(A), -CK_EABANDONED);
	/* the call to the plugin is waited for */
	assert_int_equal(state_of(A), CK_STATE_EVICTING);
	assert_false(asked(CK_WANT_LIST));
	world_hooked(w, 0, true);
	world_listed_entry(w, 0, HOW_OK);
	assert_true(asked(CK_WANT_STOP));
	assert_false(asked(CK_WANT_DESTROY));
	hooks_agree();
	world_destroyed(w, 0, HOW_OK);
	assert_true(asked(CK_WANT_REMOVE));
	hooks_agree();
	assert_int_equal(outcome(B), CK_CREATE);
}

static void k13_plugins_that_could_not_be_told_hear_of_no_end(void **state)
{
	(void)state;
	begin(A, sandbox, 240 * S);
	world_finish(w, A, true);
	begin(B, attempt(sandbox, 1), 240 * S);
	assert_int_equal(world_entry(w, A)->row.phase, CK_PHASE_HOOKS);
	world_no_memory(w, CK_WANT_RUN);
	world_listed_entry(w, 0, HOW_FRESH);
	assert_false(asked(CK_WANT_STOP));
	world_destroyed(w, 0, HOW_OK);
	assert_false(asked(CK_WANT_REMOVE));
	assert_int_equal(state_of(A), CK_STATE_GONE);
}

static void k13_hooks_that_cannot_be_cut_short_end_by_themselves(void **state)
{
	(void)state;
	begin(A, sandbox, 240 * S);
	world_finish(w, A, true);
	begin(B, attempt(sandbox, 1), 240 * S);
	ck_machine_job_failed(w->m, world_entry(w, A), CK_WANT_CANCEL);
	assert_int_equal(world_entry(w, A)->row.phase, CK_PHASE_HOOKS);
	let_evict();
	assert_int_equal(state_of(A), CK_STATE_GONE);
	assert_int_equal(outcome(B), CK_CREATE);
}

static void k14_newest_successor_wins(void **state)
{
	(void)state;
	made_and_kept(A, sandbox);
	begin(B, changed(sandbox), 240 * S);
	begin(C, sandbox, 240 * S);
	let_evict();
	assert_int_equal(outcome(C), CK_CREATE);
	assert_int_equal(outcome(B), -CK_EABANDONED);
}

static void k14_successor_hears_what_it_waited_for(void **state)
{
	(void)state;
	made_and_kept(A, sandbox);
	begin(B, changed(sandbox), 10 * S);
	world_listed_entry(w, 0, HOW_OK);
	world_destroyed(w, 0, HOW_FAILED);
	world_time(w, 9750 * MS);
	assert_int_equal(outcome(B), -CK_EUNAVAILABLE);
	assert_non_null(strstr(text_of(B), "removing the earlier result, try"));
}

static void k15_requests_and_their_times_are_on_disk(void **state)
{
	(void)state;
	begin(A, sandbox, 240 * S);
	const uint64_t row = world_entry(w, A)->row.id;
	const struct ck_row *stored = &w->db[row].row;
	assert_int_equal(stored->requests, 1);
	assert_int_equal(stored->asked, w->now);
	world_time(w, 5 * S);
	begin(B, sandbox, 10 * S); /* joins */
	begin(C, changed(sandbox), 10 * S); /* asks for something else */
	const uint64_t asked = w->now;
	assert_int_equal(stored->requests, 2);
	assert_int_equal(stored->asked, asked);
	world_leave(w, C);
	world_leave(w, B);
	world_leave(w, A);
	world_time(w, 20 * S);
	world_finish(w, A, true); /* that it exists is not a request; but its TTL begins */
	assert_int_equal(stored->state, CK_STATE_KEPT);
	assert_int_equal(stored->requests, 2);
	assert_int_equal(stored->asked, asked);
	world_time(w, w->config.rules.ttl - 1 * S);
	assert_int_equal(state_of(A), CK_STATE_KEPT);
	begin(D, sandbox, 10 * S); /* takes it */
	assert_int_equal(stored->requests, 3);
	assert_int_equal(stored->asked, w->now);
	world_inspected(w, 0, true);
	hooks_agree();
	world_time(w, 1 * S);
	begin(E, sandbox, 10 * S); /* gets the same reply */
	assert_int_equal(outcome(E), CK_HAND_BACK);
	assert_int_equal(stored->requests, 4);
	assert_int_equal(stored->asked, w->now);
}

static void k15_ttl_counts_from_the_last_interest_and_rests(void **state)
{
	(void)state;
	made_and_kept(A, sandbox);
	world_time(w, 500 * S);
	begin(B, sandbox, 240 * S);
	world_inspected(w, 0, false);
	world_time(w, 200 * S); /* it is asked for again and again; while B waits, its time rests */
	assert_int_equal(state_of(A), CK_STATE_KEPT);
	world_inspected(w, 0, false);
	world_leave(w, B);
	world_time(w, CK_TTL - 1 * MS);
	assert_int_equal(state_of(A), CK_STATE_KEPT);
	world_time(w, CK_TTL_SLACK);
	assert_int_equal(state_of(A), CK_STATE_EVICTING);
}

static void k15_nothing_expires_just_after_a_restart(void **state)
{
	(void)state;
	made_and_kept(A, sandbox);
	world_stall(w, CK_TTL - 1 * S);
	world_crash(w, 0);
	lists_come_in();
	world_time(w, 59 * S);
	assert_int_equal(state_of(A), CK_STATE_KEPT);
	world_time(w, 1100 * MS);
	assert_int_equal(state_of(A), CK_STATE_EVICTING);
}

static void k15_stalled_loop_serves_before_it_expires(void **state)
{
	(void)state;
	made_and_kept(A, sandbox);
	world_stall(w, 2 * CK_TTL);
	begin(B, sandbox, 10 * S);
	world_time(w, 0);
	assert_int_equal(state_of(A), CK_STATE_KEPT);
	world_inspected(w, 0, true);
	hooks_agree();
	assert_int_equal(outcome(B), CK_HAND_BACK);
}

/* its caller has waited until the end, so it is not yet forgotten */
static void k15_stalled_loop_answers_before_it_expires(void **state)
{
	(void)state;
	made_and_kept(A, sandbox);
	begin(B, sandbox, 10 * S);
	world_inspected(w, 0, false);
	world_stall(w, 2 * CK_TTL);
	world_time(w, 0);
	assert_int_equal(outcome(B), CK_BUSY);
	assert_int_equal(state_of(A), CK_STATE_KEPT);
}

static void k16_stopping_a_sandbox_takes_its_containers_along(void **state)
{
	(void)state;
	made_and_handed(A, sandbox);
	made_and_kept(B, container_in(A));
	begin(C, attempt(container_in(A), 1), 10 * S);
	world_stopping(w, A);
	assert_int_equal(state_of(B), CK_STATE_EVICTING);
	assert_int_equal(outcome(C), -CK_EABANDONED);
	assert_int_equal(begin(D, attempt(container_in(A), 2), 10 * S), -CK_EPRECONDITION);
	world_crash(w, 0); /* this is not forgotten */
	lists_come_in();
	assert_int_equal(begin(D, attempt(container_in(A), 2), 10 * S), -CK_EPRECONDITION);
}

static void k16_stop_of_a_sandbox_nobody_listed_holds_until_it_is_listed(void **state)
{
	(void)state;
	world_external(w, A, &sandbox, CK_CONDITION_READY, false);
	world_external(w, B, (struct request[]){ of_pod(sandbox, 1) }, CK_CONDITION_READY, false);
	world_view_open(w, 0, CK_SANDBOX);
	world_stopping(w, A);
	world_stopping(w, B);
	assert_null(ck_machine_entries(w->m));
	assert_int_equal(begin(C, container_in(A), 10 * S), -CK_EPRECONDITION);
	world_condition(w, B, CK_CONDITION_ABSENT);
	/* begun before the stop, so it says nothing about it, but names the sandbox */
	world_view_close(w, 0, HOW_OK);
	assert_int_equal(state_of(A), CK_STATE_ENDED);
	assert_int_equal(begin(C, container_in(A), 10 * S), -CK_EPRECONDITION);
	list_passes(CK_SANDBOX);
	assert_int_equal(begin(C, container_in(A), 10 * S), -CK_EPRECONDITION);
	/* what was never listed does not exist: the runtime says so */
	assert_int_equal(begin(D, of_pod(container_in(B), 1), 10 * S), CK_CREATE);
}

static void k16_stop_of_a_lost_creation_holds_when_it_is_found(void **state)
{
	(void)state;
	begin(A, sandbox, 240 * S);
	world_lose(w, A);
	world_finish(w, A, false);
	assert_int_equal(ck_machine_stopping(w->m, world_object(w, A)->id), 0);
	assert_int_equal(begin(B, container_in(A), 10 * S), -CK_EPRECONDITION);
	list_passes(CK_SANDBOX);
	assert_int_equal(state_of(A), CK_STATE_EVICTING);
	list_passes(CK_SANDBOX);
	assert_int_equal(begin(C, container_in(A), 10 * S), -CK_EPRECONDITION);
}

static void k16_stop_of_an_evicted_sandbox_holds(void **state)
{
	(void)state;
	made_and_kept(A, sandbox);
	world_evict(w, 0, false);
	assert_int_equal(state_of(A), CK_STATE_EVICTING);
	assert_int_equal(ck_machine_stopping(w->m, world_object(w, A)->id), 0);
	assert_int_equal(begin(B, container_in(A), 10 * S), -CK_EPRECONDITION);
}

static void k16_removal_waits_until_creates_have_ended(void **state)
{
	(void)state;
	made_and_handed(A, sandbox);
	begin(B, container_in(A), 10 * S);
	assert_int_equal(world_remove_begin(w, C, A, 60 * S), CK_WAIT);
	world_finish(w, B, true);
	assert_int_equal(outcome(C), CK_WAIT);
	let_evict();
	assert_int_equal(outcome(C), CK_DRAINED);
	world_forget(w, A);
	assert_null(ck_machine_object(w->m, CK_SANDBOX, "s1"));
}

/* it is gone when a list would show it, so that the next container begins */
static void k16_removal_of_a_sandbox_nobody_knows_waits_for_creates_too(void **state)
{
	(void)state;
	world_external(w, D, &sandbox, CK_CONDITION_READY, false);
	begin(A, container_in(D), 60 * S);
	assert_int_equal(world_remove_begin(w, C, D, 60 * S), CK_WAIT);
	assert_int_equal(outcome(A), -CK_EABANDONED);
	assert_int_equal(begin(B, attempt(container_in(D), 1), 60 * S), -CK_EPRECONDITION);
	world_condition(w, D, CK_CONDITION_ABSENT);
	list_passes(CK_SANDBOX);
	assert_int_equal(begin(B, attempt(container_in(D), 1), 60 * S), CK_CREATE);
	world_fail(w, A, CK_GRPC_INTERNAL, true);
	assert_int_equal(outcome(C), CK_WAIT);
	world_fail(w, B, CK_GRPC_INTERNAL, true);
	assert_int_equal(outcome(C), CK_DRAINED);
}

static void k16_removal_of_what_is_given_up_ends_no_eviction(void **state)
{
	(void)state;
	made_and_kept(A, sandbox);
	world_evict(w, 0, false);
	assert_int_equal(ck_machine_forget(w->m, CK_SANDBOX, world_object(w, A)->id),
			 -CK_ENOTFOUND);
	assert_int_equal(state_of(A), CK_STATE_EVICTING);
	let_evict();
	assert_int_equal(world_object(w, A)->condition, CK_CONDITION_ABSENT);
}

static void k16_forgetting_a_sandbox_forgets_its_containers(void **state)
{
	(void)state;
	made_and_handed(A, sandbox);
	made_and_handed(B, container_in(A));
	world_forget(w, A);
	assert_null(ck_machine_entries(w->m));
}

/* ---- destroying (K17 to K23) ----------------------------------------------------------------- */

static void k17_only_a_confirmed_destroy_ends_an_eviction(void **state)
{
	(void)state;
	made_and_kept(A, sandbox);
	world_evict(w, 0, false);
	world_listed_entry(w, 0, HOW_OK);
	for (int i = 0; i < 5; i++) {
		world_destroyed(w, 0, HOW_FAILED);
		assert_int_equal(state_of(A), CK_STATE_EVICTING);
		next_try();
	}
	world_destroyed(w, 0, HOW_DONE_UNHEARD); /* it is done, but nobody knows */
	assert_int_equal(state_of(A), CK_STATE_EVICTING);
	list_passes(CK_SANDBOX); /* absent from a list that began after the attempt */
	assert_int_equal(state_of(A), CK_STATE_GONE);
}

static void k17_admin_can_release_it(void **state)
{
	(void)state;
	made_and_kept(A, sandbox);
	world_evict(w, 0, true);
	/* only what is being evicted can be released */
	assert_int_equal(state_of(A), CK_STATE_KEPT);
	world_evict(w, 0, false);
	world_evict(w, 0, true);
	assert_int_equal(state_of(A), CK_STATE_GONE);
	/* nobody knows whether it is destroyed */
	assert_int_equal(ck_counter_sum(ck_machine_counters(w->m)->released), 1);
	assert_int_equal(ck_counter_sum(ck_machine_counters(w->m)->destroyed), 0);
	assert_int_equal(world_entry(w, A)->row.reason, CK_REASON_RELEASED);
}

static void k17_released_one_that_plugins_know_is_not_destroyed_either(void **state)
{
	(void)state;
	begin(A, sandbox, 240 * S);
	world_finish(w, A, true);
	begin(B, attempt(sandbox, 1), 240 * S); /* while its hooks run */
	world_hooked(w, 0, true);
	world_evict(w, 0, true);
	assert_int_equal(world_entry(w, A)->row.phase, CK_PHASE_REMOVE);
	world_crash(w, 0); /* plugins are still to be told */
	lists_come_in();
	hooks_agree();
	assert_int_equal(state_of(A), CK_STATE_GONE);
	assert_int_equal(ck_counter_sum(ck_machine_counters(w->m)->destroyed), 0);
}

static void k17_destroyed_one_cannot_be_released(void **state)
{
	(void)state;
	begin(A, sandbox, 240 * S);
	world_finish(w, A, true);
	begin(B, attempt(sandbox, 1), 240 * S); /* while its hooks run */
	world_hooked(w, 0, true);
	world_listed_entry(w, 0, HOW_FRESH);
	world_hooked(w, 0, true); /* Stop */
	world_destroyed(w, 0, HOW_OK);
	assert_int_equal(world_entry(w, A)->row.phase, CK_PHASE_REMOVE);
	world_evict(w, 0, true);
	hooks_agree();
	assert_int_equal(ck_counter_sum(ck_machine_counters(w->m)->destroyed), 1);
	assert_int_equal(ck_counter_sum(ck_machine_counters(w->m)->released), 0);
}

static void k18_back_off_doubles_to_a_minute_over_restarts(void **state)
{
	static const unsigned seconds[] = { 1, 2, 4, 8, 16, 32, 60, 60 };
	(void)state;
	made_and_kept(A, sandbox);
	world_evict(w, 0, false);
	world_listed_entry(w, 0, HOW_OK);
	for (size_t i = 0; i < CK_COUNT(seconds); i++) {
		world_destroyed(w, 0, HOW_FAILED);
		if (i == 3) {
			world_crash(w, 0);
			lists_come_in();
		}
		uint64_t failed = w->now;
		next_try();
		assert_true(asked(CK_WANT_DESTROY));
		assert_true(w->now - failed >= seconds[i] * S * 7 / 8 &&
			    w->now - failed <= seconds[i] * S * 9 / 8);
	}
}

static void k18_no_answer_is_a_failure(void **state)
{
	(void)state;
	made_and_kept(A, sandbox);
	world_evict(w, 0, false);
	world_listed_entry(w, 0, HOW_OK);
	world_time(w, CK_DESTROY_TIMEOUT);
	assert_int_equal(world_entry(w, A)->row.tries, 1);
	next_try();
	/* tried again while the first is still running */
	assert_non_null(world_job(w, CK_WANT_DESTROY, 1));
	world_destroyed(w, 0, HOW_FAILED);
	assert_int_equal(world_entry(w, A)->row.tries, 1); /* the late failure was counted */
	world_destroyed(w, 0, HOW_OK);
	assert_int_equal(state_of(A), CK_STATE_GONE);
}

static void k18_two_destroys_without_an_answer_are_enough(void **state)
{
	(void)state;
	made_and_kept(A, sandbox);
	world_evict(w, 0, false);
	world_listed_entry(w, 0, HOW_OK);
	for (int i = 0; i < 6; i++) {
		world_time(w, CK_DESTROY_TIMEOUT);
		next_try();
	}
	assert_non_null(world_job(w, CK_WANT_DESTROY, 1));
	assert_null(world_job(w, CK_WANT_DESTROY, 2));
	world_destroyed(w, 0, HOW_OK);
	assert_int_equal(state_of(A), CK_STATE_GONE);
}

static void k18_eight_at_once_and_a_new_reason_hurries(void **state)
{
	(void)state;
	for (int i = 0; i < 10; i++) {
		made_and_kept(i, of_pod(sandbox, (unsigned char)i));
		world_evict(w, (unsigned)i, false);
	}
	while (asked(CK_WANT_LIST))
		world_listed_entry(w, 0, HOW_OK);
	assert_non_null(world_job(w, CK_WANT_DESTROY, 7));
	assert_null(world_job(w, CK_WANT_DESTROY, 8));
	for (int i = 0; i < 8; i++)
		world_destroyed(w, 0, HOW_OK);
	while (asked(CK_WANT_LIST))
		world_listed_entry(w, 0, HOW_OK);
	world_destroyed(w, 0, HOW_FAILED);
	assert_null(world_job(w, CK_WANT_DESTROY, 1));
	for (unsigned i = 0; i < 10; i++) /* it does not matter which one it was */
		world_evict(w, i, false);
	assert_true(asked(CK_WANT_LIST) || world_job(w, CK_WANT_DESTROY, 1));
}

static void k18_containers_go_before_their_sandbox(void **state)
{
	(void)state;
	made_and_kept(A, sandbox);
	/* in a sandbox that nobody was given: only a bug requests this */
	made_and_kept(B, container_in(A));
	world_evict(w, 0, false);
	assert_int_equal(state_of(A), CK_STATE_EVICTING);
	assert_int_equal(state_of(B), CK_STATE_EVICTING);
	world_inspected(w, 0, true);
	assert_string_equal(w->shadows[world_job(w, CK_WANT_DESTROY, 0)->row].id,
			    world_object(w, B)->id);
	assert_null(world_job(w, CK_WANT_DESTROY, 1));
	assert_false(asked(CK_WANT_LIST));
}

static void k19_failing_destroy_delays_no_other(void **state)
{
	(void)state;
	made_and_kept(A, sandbox);
	made_and_kept(B, of_pod(sandbox, 1));
	world_evict(w, 0, false);
	world_listed_entry(w, 0, HOW_OK);
	world_destroyed(w, 0, HOW_FAILED);
	world_evict(w, 1, false);
	world_listed_entry(w, 0, HOW_OK);
	world_destroyed(w, 0, HOW_OK);
	assert_int_equal(state_of(B), CK_STATE_GONE);
	assert_int_equal(state_of(A), CK_STATE_EVICTING);
}

static void k20_told_entry_stop_destroy_remove(void **state)
{
	(void)state;
	begin(A, sandbox, 10 * S);
	world_finish(w, A, true);
	world_hooked(w, 0, false);
	assert_int_equal(outcome(A), -CK_EREFUSED);
	world_listed_entry(w, 0, HOW_OK);
	assert_true(asked(CK_WANT_STOP) && !asked(CK_WANT_DESTROY));
	world_hooked(w, 0, true);
	assert_true(asked(CK_WANT_DESTROY) && !asked(CK_WANT_REMOVE));
	world_destroyed(w, 0, HOW_FAILED);
	assert_false(asked(CK_WANT_REMOVE));
	next_try();
	world_destroyed(w, 0, HOW_OK);
	assert_true(asked(CK_WANT_REMOVE));
	assert_int_equal(state_of(A), CK_STATE_EVICTING);
	world_hooked(w, 0, true);
	assert_int_equal(state_of(A), CK_STATE_GONE);
}

static void k20_what_cannot_be_told_for_want_of_memory_is_told_later(void **state)
{
	static const unsigned wants[] = { CK_WANT_LIST, CK_WANT_STOP, CK_WANT_DESTROY,
					  CK_WANT_REMOVE };
	(void)state;
	begin(A, sandbox, 10 * S);
	world_finish(w, A, true);
	world_hooked(w, 0, false);
	for (size_t i = 0; i < CK_COUNT(wants); i++) {
		assert_true(asked(wants[i]));
		world_no_memory(w, wants[i]);
		assert_int_equal(state_of(A), CK_STATE_EVICTING);
		assert_false(asked(wants[i]));
		world_next(w);
		if (wants[i] == CK_WANT_DESTROY) /* the question before each */
			world_listed_entry(w, 0, HOW_FRESH);
		assert_true(asked(wants[i]));
		if (wants[i] == CK_WANT_LIST)
			world_listed_entry(w, 0, HOW_FRESH);
		else if (wants[i] == CK_WANT_DESTROY)
			world_destroyed(w, 0, HOW_OK);
		else
			hooks_agree();
	}
	assert_int_equal(state_of(A), CK_STATE_GONE);
}

static void k21_evicted_id_stays_hidden_for_older_lists(void **state)
{
	(void)state;
	made_and_kept(A, sandbox);
	world_evict(w, 0, false);
	world_view_open(w, 0, CK_SANDBOX); /* it is still there */
	let_evict();
	world_crash(w, 0);
	lists_come_in();
	assert_true(ck_machine_hidden(ck_machine_object(w->m, CK_SANDBOX, "s1")));
	world_view_open(w, 0, CK_SANDBOX);
	world_time(w, CK_TOMBSTONE - 1 * MS);
	assert_non_null(ck_machine_object(w->m, CK_SANDBOX, "s1"));
	world_time(w, 1 * S);
	/* that view began after it had gone */
	assert_null(ck_machine_object(w->m, CK_SANDBOX, "s1"));
}

static void k21_open_view_keeps_the_tombstone(void **state)
{
	(void)state;
	made_and_kept(A, sandbox);
	world_evict(w, 0, false);
	world_view_open(w, 0, CK_SANDBOX);
	let_evict();
	world_time(w, 5 * CK_TOMBSTONE);
	assert_non_null(ck_machine_object(w->m, CK_SANDBOX, "s1"));
	world_view_close(w, 0, HOW_OK);
	world_time(w, CK_TOMBSTONE);
	assert_null(ck_machine_object(w->m, CK_SANDBOX, "s1"));
}

/* a destroy that is still under way would hit the next one of this id */
static void k21_id_that_may_still_be_destroyed_is_not_taken(void **state)
{
	struct ck_error err = { 0 };
	(void)state;
	made_and_kept(A, sandbox);
	struct ck_shared_result *result =
		ck_shared_result_ref(world_entry(w, A)->row.result);
	world_evict(w, 0, false);
	world_listed_entry(w, 0, HOW_OK);
	world_time(w, CK_DESTROY_TIMEOUT);
	next_try();
	world_destroyed(w, 0, HOW_OK);
	assert_int_equal(state_of(A), CK_STATE_GONE);
	assert_true(asked(CK_WANT_DESTROY));
	assert_int_equal(begin(B, sandbox, 10 * S), CK_CREATE);
	assert_int_equal(ck_machine_finish(w->m, &w->callers[B].turn, result, &err), -CK_EINVAL);
	ck_shared_result_unref(result);
	world_finish(w, B, true);
	hooks_agree();
	assert_int_equal(outcome(B), CK_HAND_BACK);
}

static void k22_sandbox_in_use_is_left_alone(void **state)
{
	struct request theirs = container_in(A);
	(void)state;
	made_and_kept(A, sandbox);
	world_external(w, B, &theirs, CK_CONDITION_READY, false);
	world_evict(w, 0, false);
	world_listed_entry(w, 0, HOW_FAILED); /* if the question fails, the destroy waits */
	assert_false(asked(CK_WANT_DESTROY));
	world_next(w);
	world_listed_entry(w, 0, HOW_FRESH);
	assert_int_equal(state_of(A), CK_STATE_COMMITTED);
	assert_int_equal(ck_counter_sum(ck_machine_counters(w->m)->in_use), 1);
}

/* the host answers the oldest question for a list of one entry with @o */
static void list_for_entry_shows(const struct ck_object *o)
{
	struct job job = *world_job(w, CK_WANT_LIST, 0);
	job_remove(w, world_job(w, CK_WANT_LIST, 0));
	snapshot(w, &job);
	feed(w);
	ck_machine_listed_entry(w->m, job.row, job.begun_seq, true, o, 1);
	oracle_listed_entry(w, &job, true);
	fed(w);
}

/* what the host lists of it, or beside it, while containers of the cache are being made in it */
static void k22_what_is_listed_is_told_apart_by_its_name(void **state)
{
	static const struct {
		const char *name, *sandbox;
		enum ck_kind kind;
		unsigned attempt;
		bool used;
	} listed[] = {
		{ "main", "s1", CK_CONTAINER, 0, false },
		{ "main", "s1", CK_CONTAINER, 1, true },
		{ "other", "s1", CK_CONTAINER, 0, true },
		{ NULL, "s1", CK_CONTAINER, 0, true },
		{ "other", "s2", CK_CONTAINER, 0, false },
		{ "other", NULL, CK_CONTAINER, 0, false },
		{ "other", "s1", CK_SANDBOX, 0, false },
	};
	(void)state;
	for (size_t i = 0; i < CK_COUNT(listed); i++) {
		const struct ck_object o = { .kind = listed[i].kind,
					     .id = "theirs",
					     .sandbox_id = listed[i].sandbox,
					     .container_name = listed[i].name,
					     .attempt = listed[i].attempt,
					     .condition = CK_CONDITION_READY };
		struct request theirs = attempt(container_in(A), 1);
		made_and_kept(A, sandbox);
		world_evict(w, 0, false);
		begin(B, container_in(A), 240 * S); /* after the question */
		made_and_kept(D, attempt(container_in(A), 2)); /* that one's id is known */
		if (listed[i].used)
			world_external(w, C, &theirs, CK_CONDITION_READY, false);
		list_for_entry_shows(&o);
		assert_int_equal(state_of(A),
				 listed[i].used ? CK_STATE_COMMITTED : CK_STATE_EVICTING);
		assert_int_equal(teardown(state), 0);
		assert_int_equal(setup(state), 0);
	}
}

static void k22_running_container_is_left_alone(void **state)
{
	(void)state;
	made_and_handed(A, sandbox);
	made_and_kept(B, container_in(A));
	world_condition(w, B, CK_CONDITION_RUNNING);
	world_evict(w, 1, false);
	world_inspected(w, 0, true);
	assert_int_equal(state_of(B), CK_STATE_COMMITTED);
	assert_int_equal(begin(C, container_in(A), 10 * S), -CK_ECONFLICT);
}

/* container B, in sandbox A; its creation was lost before it succeeded */
static void a_lost_container_runs(void)
{
	made_and_handed(A, sandbox);
	begin(B, container_in(A), 240 * S);
	world_lose(w, B);
	world_finish(w, B, false);
	world_condition(w, B, CK_CONDITION_RUNNING);
}

static void k22_creation_found_running_is_not_destroyed(void **state)
{
	struct world_config config = world_config();
	(void)state;
	config.rules.can_inspect = false;
	start_with(&config);
	a_lost_container_runs();
	world_time(w, 250 * MS);
	world_listed_entry(w, 0, HOW_OK);
	let_evict();
	assert_int_equal(state_of(B), CK_STATE_COMMITTED);
}

/* Its list says only that it is dead. Its status tells that somebody started it. */
static void k22_creation_found_when_it_had_run_is_not_destroyed(void **state)
{
	(void)state;
	a_lost_container_runs();
	world_condition(w, B, CK_CONDITION_DEAD);
	world_time(w, 250 * MS);
	world_listed_entry(w, 0, HOW_OK);
	assert_int_equal(state_of(B), CK_STATE_EVICTING);
	let_evict();
	assert_int_equal(state_of(B), CK_STATE_ENDED);
	assert_true(world_shown(w, B) && flag(B, CK_ENTRY_DELIVERED));
}

static void runs_and_ends(int label)
{
	world_condition(w, label, CK_CONDITION_RUNNING);
	world_condition(w, label, CK_CONDITION_DEAD);
}

static void k22_kept_container_that_ran_has_ended(void **state)
{
	(void)state;
	made_and_handed(A, sandbox);
	made_and_kept(B, container_in(A));
	runs_and_ends(B);
	assert_int_equal(begin(C, container_in(A), 10 * S), CK_WAIT);
	world_inspected(w, 0, true);
	assert_int_equal(state_of(B), CK_STATE_ENDED);
	assert_false(asked(CK_WANT_DESTROY));
}

static void k22_status_of_what_ran_shows_it(void **state)
{
	(void)state;
	made_and_handed(A, sandbox);
	made_and_kept(B, container_in(A));
	made_and_handed(C, of_pod(sandbox, 1));
	made_and_handed(D, of_pod(container_in(C), 1));
	for (int label = B; label <= D; label += D - B) {
		runs_and_ends(label);
		world_seen(w, label);
		assert_int_equal(state_of(label), CK_STATE_ENDED);
		assert_true(flag(label, CK_ENTRY_DELIVERED));
	}
}

/* no question tells it there, but the list of a host may */
static void k22_what_a_list_says_ran_is_not_destroyed_without_questions(void **state)
{
	struct world_config config = world_config();
	(void)state;
	config.rules.can_inspect = false;
	start_with(&config);
	made_and_handed(A, sandbox);
	made_and_kept(B, container_in(A));
	made_and_handed(C, of_pod(sandbox, 1));
	begin(D, of_pod(container_in(C), 1), 240 * S);
	world_lose(w, D);
	world_finish(w, D, false);
	world_evict(w, 1, false);
	for (int label = B; label <= D; label += D - B) {
		runs_and_ends(label);
		const struct ck_key *key = world_entry(w, label)->row.key;
		const struct ck_object o = { .size = sizeof(o),
					     .kind = CK_CONTAINER,
					     .condition = CK_CONDITION_RAN,
					     .id = world_object(w, label)->id,
					     .sandbox_id = key->sandbox_id,
					     .container_name = key->container,
					     .attempt = key->attempt };
		ck_machine_listed(w->m, CK_CONTAINER, UINT64_MAX, true, &o, 1);
		assert_int_equal(state_of(label), CK_STATE_ENDED);
	}
}

/* A host without lists does not learn anew what runs. So that somebody has it is written down. */
static void k22_what_was_found_running_is_not_taken_back_after_a_restart(void **state)
{
	struct world_config config = world_config();
	(void)state;
	config.rules.can_list = config.rules.can_inspect = false;
	config.rules.skip_first_list = true;
	start_with(&config);
	a_lost_container_runs();
	list_passes(CK_CONTAINER);
	assert_int_equal(state_of(B), CK_STATE_COMMITTED);
	world_crash(w, CRASH_LATE);
	assert_int_equal(begin(C, container_in(A), 10 * S), CK_HAND_BACK);
	world_report(w, C, false);
	assert_int_equal(state_of(B), CK_STATE_COMMITTED);
}

/* ---- in use, though hidden (K22) ------------------------------------------------------------- */

enum { KEPT, LOST, EVICTED, TRIED, GIVEN_UP, HIDDEN_WAYS };

/* sandbox A ends up hidden, in one of the ways that a crash can leave behind */
static void made_and_hidden(int way)
{
	if (way == LOST || way == GIVEN_UP) { /* only a list can tell its id */
		begin(A, sandbox, 10 * S);
		if (way == GIVEN_UP)
			world_evict(w, 0, false);
		world_finish(w, A, false);
		return;
	}
	made_and_kept(A, sandbox);
	if (way == EVICTED || way == TRIED)
		world_evict(w, 0, false);
	if (way == TRIED) {
		world_listed_entry(w, 0, HOW_OK);
		world_destroyed(w, 0, HOW_FAILED);
	}
}

/* The kubelet was straight at the runtime: it used what it saw there. */
static void k22_what_was_taken_meanwhile_is_shown_before_anything_is_served(void **state)
{
	static const enum ck_condition conditions[] = { CK_CONDITION_READY, CK_CONDITION_RUNNING,
							CK_CONDITION_DEAD };
	struct world_config config = world_config();
	(void)state;
	for (int n = 0; n < HIDDEN_WAYS * 2 * 3; n++) {
		bool containers_first = n % 2;
		struct request theirs = container_in(A);
		start_with(&config);
		made_and_hidden(n / 6);
		world_external(w, B, &theirs, conditions[n / 2 % 3], false);
		world_crash(w, 0);
		assert_false(world_shown(w, A));
		begin(C, sandbox, 60 * S);
		world_listed(w, containers_first, HOW_OK);
		assert_int_equal(outcome(C), CK_WAIT);
		world_listed(w, 0, HOW_OK);
		assert_true(world_shown(w, A) && world_shown(w, B));
		assert_int_equal(outcome(C), CK_HAND_BACK); /* the same pod asks again */
		assert_string_equal(w->callers[C].id, world_object(w, A)->id);
		assert_true(asked(CK_WANT_RUN));
		assert_false(asked(CK_WANT_DESTROY | CK_WANT_STOP));
		assert_int_equal(teardown(state), 0);
		world_init(w, &config, NULL);
	}
}

/* Both lists begin at once. The first tells that another sandbox is gone, so it is forgotten, and
 * the second is older than that. */
static void k22_what_was_taken_is_shown_although_something_else_was_removed(void **state)
{
	static const enum ck_condition conditions[] = { CK_CONDITION_READY, CK_CONDITION_RUNNING,
							CK_CONDITION_DEAD };
	struct world_config config = world_config();
	struct request theirs = container_in(A);
	(void)state;
	for (size_t i = 0; i < CK_COUNT(conditions); i++) {
		start_with(&config);
		made_and_kept(A, sandbox);
		made_and_handed(C, of_pod(sandbox, 1));
		world_external(w, B, &theirs, conditions[i], false);
		world_condition(w, C, CK_CONDITION_ABSENT);
		world_crash(w, 0);
		lists_come_in();
		assert_int_equal(state_of(A), CK_STATE_COMMITTED);
		assert_true(world_shown(w, A) && world_shown(w, B));
		assert_int_equal(teardown(state), 0);
		world_init(w, &config, NULL);
	}
}

static void k22_a_later_list_shows_it_too(void **state)
{
	struct request theirs = container_in(A);
	(void)state;
	made_and_kept(A, sandbox);
	world_external(w, B, &theirs, CK_CONDITION_READY, false);
	list_passes(CK_SANDBOX);
	assert_int_equal(state_of(A), CK_STATE_KEPT);
	list_passes(CK_CONTAINER);
	assert_int_equal(state_of(A), CK_STATE_COMMITTED);
	assert_int_equal(ck_counter_sum(ck_machine_counters(w->m)->in_use), 1);
}

static void k22_our_own_hidden_container_proves_nothing(void **state)
{
	(void)state;
	made_and_kept(A, sandbox);
	made_and_kept(B, container_in(A));
	begin(C, attempt(container_in(A), 1), 10 * S); /* abandons B */
	world_finish(w, C, false);
	world_crash(w, 0);
	lists_come_in();
	assert_int_equal(state_of(A), CK_STATE_KEPT);
	assert_int_equal(ck_counter_sum(ck_machine_counters(w->m)->in_use), 0);
}

static void k22_a_container_that_was_handed_over_does(void **state)
{
	(void)state;
	made_and_kept(A, sandbox);
	made_and_handed(B, container_in(A));
	world_report(w, B, true);
	world_crash(w, 0);
	lists_come_in();
	assert_int_equal(state_of(A), CK_STATE_COMMITTED);
}

/* the list that is asked for before a destruction may have begun before the container was made */
static void k22_what_is_handed_over_saves_its_sandbox(void **state)
{
	(void)state;
	made_and_kept(A, sandbox);
	world_evict(w, 0, false);
	made_and_handed(B, container_in(A));
	assert_int_equal(state_of(A), CK_STATE_COMMITTED);
}

/* what was under way already cannot be taken back: nobody gets what it destroys */
static void k22_a_destroy_under_way_still_counts(void **state)
{
	(void)state;
	for (int how = HOW_OK; how <= HOW_FAILED; how++) {
		made_and_kept(A, sandbox);
		world_evict(w, 0, false);
		world_listed_entry(w, 0, HOW_OK);
		hooks_agree();
		assert_true(asked(CK_WANT_DESTROY));
		made_and_handed(B, container_in(A));
		assert_int_equal(state_of(A), CK_STATE_COMMITTED);
		assert_int_equal(begin(C, sandbox, 10 * S), CK_WAIT);
		world_destroyed(w, 0, how);
		hooks_agree();
		assert_int_equal(outcome(C), how == HOW_OK ? CK_CREATE : CK_HAND_BACK);
		assert_int_equal(state_of(B),
				 how == HOW_OK ? CK_STATE_ENDED : CK_STATE_COMMITTED);
		assert_int_equal(teardown(state), 0);
		assert_int_equal(setup(state), 0);
	}
}

/* plugins that were told that it stops, before the destroy, hear of its end and of no other stop */
static void k22_a_destroy_under_way_is_told_once(void **state)
{
	(void)state;
	assert_int_equal(begin(A, sandbox, 10 * S), CK_CREATE);
	world_finish(w, A, true);
	world_hooked(w, 0, false); /* a plugin refuses, so it is undone */
	world_listed_entry(w, 0, HOW_OK);
	assert_true(asked(CK_WANT_STOP));
	world_hooked(w, 0, true);
	assert_true(asked(CK_WANT_DESTROY));
	made_and_handed(B, container_in(A));
	assert_int_equal(state_of(A), CK_STATE_COMMITTED);
	world_destroyed(w, 0, HOW_OK);
	assert_false(asked(CK_WANT_STOP));
	assert_true(asked(CK_WANT_REMOVE));
	hooks_agree();
	assert_int_equal(state_of(A), CK_STATE_GONE);
}

/* Two destroys of sandbox A are under way, and a container is handed over in it. When the first
 * one has ended, its stop is told, and another container is handed over. */
static void used_twice_while_it_is_destroyed(void)
{
	made_and_kept(A, sandbox);
	world_evict(w, 0, false);
	world_listed_entry(w, 0, HOW_OK);
	world_time(w, CK_DESTROY_TIMEOUT);
	next_try();
	assert_non_null(world_job(w, CK_WANT_DESTROY, 1));
	made_and_handed(B, container_in(A));
	assert_int_equal(state_of(A), CK_STATE_COMMITTED);
	world_destroyed(w, 0, HOW_OK);
	assert_true(asked(CK_WANT_STOP));
	begin(C, attempt(container_in(A), 1), 10 * S);
	world_finish(w, C, true);
	world_hooked(w, 1, true);
	assert_int_equal(state_of(A), CK_STATE_COMMITTED);
}

static void k20_a_stop_that_is_being_told_is_not_told_again(void **state)
{
	(void)state;
	used_twice_while_it_is_destroyed();
	world_destroyed(w, 0, HOW_OK);
	assert_int_equal(state_of(A), CK_STATE_EVICTING);
	assert_true(asked(CK_WANT_STOP));
	assert_null(world_job(w, CK_WANT_STOP, 1));
	hooks_agree();
	assert_int_equal(state_of(A), CK_STATE_GONE);
}

static void k20_a_stop_that_was_told_of_what_is_used_is_not_told_again(void **state)
{
	(void)state;
	used_twice_while_it_is_destroyed();
	hooks_agree();
	world_destroyed(w, 0, HOW_OK);
	assert_false(asked(CK_WANT_STOP));
	assert_true(asked(CK_WANT_REMOVE));
	hooks_agree();
	assert_int_equal(state_of(A), CK_STATE_GONE);
}

/* one thing of a pod is destroyed at a time (K18) */
static void k20_a_stop_that_was_told_while_it_waits_for_another_is_not_told_again(void **state)
{
	(void)state;
	used_twice_while_it_is_destroyed();
	made_and_kept(D, container_in(-1));
	world_evict(w, 3, false);
	assert_true(asked(CK_WANT_INSPECT));
	world_destroyed(w, 0, HOW_OK);
	assert_int_equal(state_of(A), CK_STATE_EVICTING);
	hooks_agree();
	assert_int_equal(state_of(A), CK_STATE_EVICTING);
	let_evict();
	assert_int_equal(state_of(A), CK_STATE_GONE);
}

static void k22_plugins_hear_of_the_sandbox_before_its_container(void **state)
{
	(void)state;
	made_and_kept(A, sandbox);
	made_and_kept(B, container_in(A));
	world_condition(w, B, CK_CONDITION_RUNNING);
	world_crash(w, 0);
	lists_come_in();
	assert_int_equal(world_job(w, CK_WANT_RUN, 0)->row, 1);
	assert_int_equal(world_job(w, CK_WANT_RUN, 1)->row, 2);
}

static void k22_a_twin_in_use_does_not_take_the_key(void **state)
{
	struct request theirs;
	(void)state;
	made_and_kept(A, sandbox);
	world_external(w, B, &sandbox, CK_CONDITION_READY, true);
	theirs = container_in(B);
	world_external(w, C, &theirs, CK_CONDITION_RUNNING, false);
	world_crash(w, 0);
	lists_come_in();
	assert_int_equal(state_of(B), CK_STATE_COMMITTED);
	assert_int_equal(world_entry(w, B)->row.origin, CK_ORIGIN_RUNTIME);
	assert_int_equal(state_of(A), CK_STATE_KEPT);
	made_and_handed(D, of_pod(sandbox, 1));
	theirs = of_pod(container_in(D), 1);
	made_and_kept(E, theirs);
	world_external(w, F, &theirs, CK_CONDITION_RUNNING, true);
	list_passes(CK_CONTAINER);
	assert_int_equal(state_of(F), CK_STATE_COMMITTED);
	assert_int_equal(world_entry(w, F)->row.origin, CK_ORIGIN_RUNTIME);
	assert_int_equal(state_of(E), CK_STATE_KEPT);
}

static void k22_what_was_taken_has_ended_when_its_sandbox_is_dead(void **state)
{
	struct request theirs = container_in(A);
	(void)state;
	for (int containers_first = 0; containers_first < 2; containers_first++) {
		struct world_config config = world_config();
		start_with(&config);
		made_and_kept(A, sandbox);
		world_external(w, B, &theirs, CK_CONDITION_DEAD, false);
		world_condition(w, A, CK_CONDITION_DEAD);
		world_crash(w, 0);
		world_listed(w, (unsigned)containers_first, HOW_OK);
		world_listed(w, 0, HOW_OK);
		assert_int_equal(state_of(A), CK_STATE_ENDED);
	}
}

/* Both lists begin at once. The first tells that its sandbox is dead, the second that it runs. */
static void k25_kept_container_that_runs_in_a_dead_sandbox_is_left_alone(void **state)
{
	(void)state;
	for (int can_inspect = 0; can_inspect < 2; can_inspect++) {
		struct world_config config = world_config();
		config.rules.can_inspect = can_inspect;
		start_with(&config);
		made_and_handed(A, sandbox);
		made_and_kept(B, container_in(A));
		world_condition(w, A, CK_CONDITION_DEAD);
		world_condition(w, B, CK_CONDITION_RUNNING);
		world_crash(w, 0);
		lists_come_in();
		assert_false(asked(CK_WANT_DESTROY));
		assert_true(world_shown(w, B));
	}
}

static void k25_kept_container_that_runs_is_never_hidden(void **state)
{
	(void)state;
	made_and_handed(A, sandbox);
	for (int lost = 0; lost < 2; lost++) {
		int label = lost ? C : B;
		if (lost) {
			begin(C, attempt(container_in(A), 1), 10 * S);
			world_finish(w, C, false);
		} else {
			made_and_kept(B, container_in(A));
		}
		world_condition(w, label, CK_CONDITION_RUNNING);
		world_crash(w, 0);
		while (world_job(w, 0, 0)) {
			world_listed(w, 0, HOW_OK);
			assert_true(!asked(CK_WANT_INSPECT | CK_WANT_DESTROY));
		}
		assert_true(world_shown(w, label));
		assert_true(asked(CK_WANT_RUN));
		hooks_agree();
	}
	assert_int_equal(ck_counter_sum(ck_machine_counters(w->m)->evicted), 0);
}

static void k25_kept_container_that_is_absent_is_gone_and_not_destroyed(void **state)
{
	(void)state;
	made_and_handed(A, sandbox);
	made_and_handed(B, of_pod(sandbox, 1));
	made_and_kept(C, container_in(A));
	made_and_handed(D, of_pod(container_in(B), 1)); /* told, and kept again */
	world_report(w, D, false);
	assert_int_equal(state_of(D), CK_STATE_KEPT);
	world_condition(w, C, CK_CONDITION_ABSENT);
	world_condition(w, D, CK_CONDITION_ABSENT);
	world_crash(w, 0);
	lists_come_in();
	assert_int_equal(state_of(C), CK_STATE_GONE);
	assert_false(asked(CK_WANT_INSPECT | CK_WANT_DESTROY));
	assert_true(asked(CK_WANT_STOP));
	world_hooked(w, 0, true);
	assert_false(asked(CK_WANT_INSPECT | CK_WANT_DESTROY));
	assert_true(asked(CK_WANT_REMOVE));
	world_hooked(w, 0, true);
	assert_int_equal(state_of(D), CK_STATE_GONE);
}

static void k23_evicting_entry_is_never_served(void **state)
{
	(void)state;
	made_and_kept(A, sandbox);
	world_evict(w, 0, false);
	assert_int_equal(begin(B, sandbox, 60 * S), CK_WAIT);
	let_evict();
	assert_int_equal(outcome(B), CK_CREATE);
}

/* ---- reconciling (K24 to K27) ---------------------------------------------------------------- */

static void k24_failed_or_older_list_means_nothing(void **state)
{
	(void)state;
	begin(A, sandbox, 10 * S);
	world_leave(w, A);
	world_view_open(w, 0, CK_SANDBOX); /* the list began before it existed */
	world_finish(w, A, true);
	world_view_close(w, 0, HOW_OK);
	assert_int_equal(state_of(A), CK_STATE_KEPT);
	world_condition(w, A, CK_CONDITION_ABSENT);
	world_view_open(w, 0, CK_SANDBOX);
	world_view_close(w, 0, HOW_FAILED);
	assert_int_equal(state_of(A), CK_STATE_KEPT);
	list_passes(CK_SANDBOX);
	assert_int_equal(state_of(A), CK_STATE_GONE);
}

static void k24_what_is_in_a_sandbox_that_is_not_listed_is_forgotten_with_it(void **state)
{
	(void)state;
	made_and_handed(A, sandbox);
	made_and_handed(B, container_in(A));
	world_condition(w, A, CK_CONDITION_ABSENT);
	list_passes(CK_SANDBOX);
	assert_null(ck_machine_entries(w->m));
}

static void k24_nothing_is_served_before_the_first_list(void **state)
{
	(void)state;
	made_and_kept(A, sandbox);
	world_crash(w, 0);
	assert_int_equal(begin(B, sandbox, 60 * S), CK_WAIT);
	assert_false(asked(CK_WANT_INSPECT));
	world_listed(w, 0, HOW_FAILED);
	world_listed(w, 0, HOW_OK);
	assert_false(asked(CK_WANT_INSPECT));
	world_time(w, 60 * S - 1 * S);
	assert_int_equal(outcome(B), -CK_EUNAVAILABLE);
	lists_come_in();
	assert_int_equal(begin(B, sandbox, 60 * S), CK_WAIT);
	assert_true(asked(CK_WANT_INSPECT));
}

static void k24_list_older_than_a_removal_brings_nothing_back(void **state)
{
	(void)state;
	made_and_handed(A, sandbox);
	world_view_open(w, 0, CK_SANDBOX);
	world_forget(w, A);
	world_view_close(w, 0, HOW_OK);
	assert_null(ck_machine_object(w->m, CK_SANDBOX, "s1"));
}

static void k24_list_older_than_a_removal_finds_no_lost_creation(void **state)
{
	(void)state;
	made_and_handed(A, sandbox);
	world_condition(w, A, CK_CONDITION_DEAD);
	world_seen(w, A);
	begin(B, sandbox, 240 * S);
	world_lose(w, B);
	world_time(w, 250 * MS);
	assert_true(asked(CK_WANT_LIST)); /* it shows A's */
	world_forget(w, A);
	world_listed_entry(w, 0, HOW_OK);
	assert_int_equal(state_of(B), CK_STATE_UNKNOWN);
}

/* lists show it before its creator tells its id */
static void k24_what_is_being_made_is_hidden_by_the_id_that_was_listed_last(void **state)
{
	(void)state;
	begin(A, sandbox, 240 * S);
	w->creations[0].reserved = true; /* the runtime has somebody else's of this name */
	world_external(w, B, &sandbox, CK_CONDITION_READY, false);
	list_passes(CK_SANDBOX);
	list_passes(CK_SANDBOX);
	assert_string_equal(world_entry(w, A)->seen, world_object(w, B)->id);
	world_condition(w, B, CK_CONDITION_ABSENT);
	w->creations[0].reserved = false;
	world_finish(w, A, false);
	list_passes(CK_SANDBOX);
	assert_string_equal(world_entry(w, A)->seen, world_object(w, A)->id);
}

static void k25_restart_takes_up_each_state(void **state)
{
	(void)state;
	begin(A, of_pod(sandbox, 1), 10 * S); /* CREATING */
	made_and_kept(B, of_pod(sandbox, 2)); /* KEPT */
	begin(C, of_pod(sandbox, 3), 10 * S); /* COMMITTING */
	world_finish(w, C, true);
	made_and_kept(E, of_pod(sandbox, 5)); /* EVICTING, after one attempt */
	world_evict(w, 3, false);
	world_listed_entry(w, 0, HOW_OK);
	world_destroyed(w, 0, HOW_FAILED);
	begin(D, of_pod(sandbox, 4), 10 * S); /* COMMITTED */
	world_finish(w, D, true);
	world_hooked(w, 1, true);
	assert_int_equal(state_of(C), CK_STATE_COMMITTING);
	assert_int_equal(state_of(D), CK_STATE_COMMITTED);
	world_crash(w, 0);
	assert_int_equal(state_of(A), CK_STATE_UNKNOWN);
	assert_int_equal(state_of(B), CK_STATE_KEPT);
	assert_true(state_of(C) == CK_STATE_KEPT && flag(C, CK_ENTRY_TOLD));
	assert_int_equal(state_of(D), CK_STATE_COMMITTED);
	assert_true(state_of(E) == CK_STATE_EVICTING && world_entry(w, E)->row.tries == 1);
}

static void k25_search_for_what_is_evicted_goes_on(void **state)
{
	(void)state;
	begin(A, sandbox, 10 * S);
	world_lose(w, A);
	begin(B, attempt(sandbox, 1), 240 * S); /* A is given up; nobody knows its id */
	assert_int_equal(state_of(A), CK_STATE_EVICTING);
	uint64_t since = world_entry(w, A)->row.searched;
	assert_true(since);
	world_time(w, 3 * S);
	world_crash(w, 0);
	assert_int_equal(state_of(A), CK_STATE_EVICTING);
	assert_int_equal(world_entry(w, A)->row.searched, since);
}

/* the host has no list, so that only what was listed meanwhile tells that it is used */
static void k22_what_is_taken_during_the_hooks_is_not_destroyed(void **state)
{
	struct world_config config = world_config();
	(void)state;
	config.rules.can_list = false;
	config.rules.skip_first_list = true;
	start_with(&config);
	begin(A, sandbox, 240 * S);
	world_finish(w, A, true);
	begin(B, attempt(sandbox, 1), 240 * S);
	world_external(w, C, (struct request[]){ container_in(A) }, CK_CONDITION_RUNNING, false);
	list_passes(CK_CONTAINER);
	world_hooked(w, 0, true);
	hooks_agree();
	assert_false(asked(CK_WANT_DESTROY));
	assert_int_equal(state_of(A), CK_STATE_COMMITTED);
}

/* only what a destroy call has ended counts as destroyed */
static void k17_counts_what_was_destroyed(void **state)
{
	struct ck_counters *counters = ck_machine_counters(w->m);
	(void)state;
	made_and_kept(A, sandbox);
	world_condition(w, A, CK_CONDITION_ABSENT);
	list_passes(CK_SANDBOX);
	hooks_agree();
	assert_int_equal(state_of(A), CK_STATE_GONE);
	begin(B, of_pod(sandbox, 1), 10 * S);
	world_evict(w, 0, false);
	world_fail(w, B, 14, true);
	assert_int_equal(ck_counter_sum(counters->evicted), 2);
	assert_int_equal(ck_counter_sum(counters->destroyed), 0);
	made_and_kept(C, of_pod(sandbox, 2));
	world_evict(w, 0, false);
	let_evict();
	assert_int_equal(ck_counter_sum(counters->destroyed), 1);
}

/* why it moved, and not what became of it later in the round */
static void history_says_why_it_moved(void **state)
{
	size_t n, seen = 0;
	(void)state;
	made_and_handed(A, sandbox);
	made_and_kept(B, container_in(A));
	w->more = true;
	world_evict(w, 1, false);
	world_condition(w, B, CK_CONDITION_RUNNING);
	world_seen(w, B);
	const struct ck_history_event *lines = ck_machine_history(w->m, &n);
	for (size_t i = 0; i < n; i++) {
		if (lines[i].entry != world_entry(w, B) || lines[i].what != CK_WHAT_MOVED)
			continue;
		seen++;
		assert_int_equal(lines[i].reason, lines[i].to == CK_STATE_EVICTING
							  ? CK_REASON_ADMIN
							  : CK_REASON_NONE);
	}
	assert_int_equal(seen, 2);
	round_ends();
}

static void k15_last_interest_is_on_disk(void **state)
{
	(void)state;
	begin(A, sandbox, 240 * S);
	begin(B, sandbox, 240 * S);
	world_time(w, 1 * S);
	world_leave(w, B);
	assert_int_equal(w->db[1].row.interest, w->now);
}

static void h04_absent_plugin_does_not_hear_of_what_is_in_use(void **state)
{
	(void)state;
	made_and_kept(A, sandbox);
	w->plugin_absent = true;
	world_external(w, B, (struct request[]){ container_in(A) }, CK_CONDITION_RUNNING, false);
	w->more = true;
	list_passes(CK_CONTAINER);
	assert_int_equal(state_of(A), CK_STATE_COMMITTED);
	assert_non_null(strstr(said(A, CK_WHAT_NOT_TOLD), "10-required"));
	round_ends();
	assert_false(asked(CK_WANT_RUN));
}

static void k22_what_is_in_use_is_told_when_there_is_memory(void **state)
{
	(void)state;
	made_and_kept(A, sandbox);
	world_external(w, B, (struct request[]){ container_in(A) }, CK_CONDITION_RUNNING, false);
	list_passes(CK_CONTAINER);
	assert_true(asked(CK_WANT_RUN));
	world_no_memory(w, CK_WANT_RUN);
	assert_false(flag(A, CK_ENTRY_TOLD));
	world_time(w, CK_GAP);
	assert_true(asked(CK_WANT_RUN));
	hooks_agree();
	assert_true(flag(A, CK_ENTRY_TOLD));
}

static void k22_what_was_in_use_is_told_although_it_has_ended(void **state)
{
	(void)state;
	made_and_kept(A, sandbox);
	world_external(w, B, (struct request[]){ container_in(A) }, CK_CONDITION_RUNNING, false);
	list_passes(CK_CONTAINER);
	world_condition(w, A, CK_CONDITION_DEAD);
	world_seen(w, A);
	assert_int_equal(state_of(A), CK_STATE_ENDED);
	world_no_memory(w, CK_WANT_RUN);
	world_time(w, CK_GAP);
	assert_true(asked(CK_WANT_RUN));
	hooks_agree();
	assert_true(flag(A, CK_ENTRY_TOLD));
}

/* it is committed, its plugins are to be told, and then it is found in use, all in one round */
static void k22_what_is_used_in_the_round_of_its_commit_is_told_once(void **state)
{
	(void)state;
	begin(A, sandbox, 240 * S);
	world_finish(w, A, false);
	world_external(w, B, (struct request[]){ container_in(A) }, CK_CONDITION_RUNNING, false);
	w->more = true;
	world_finish(w, A, true);
	list_passes(CK_CONTAINER);
	assert_int_equal(state_of(A), CK_STATE_COMMITTED);
	round_ends();
	assert_true(asked(CK_WANT_RUN));
	assert_null(world_job(w, CK_WANT_RUN, 1));
}

static void k22_what_is_removed_in_the_round_it_was_found_in_use_is_not_told(void **state)
{
	(void)state;
	made_and_kept(A, sandbox);
	world_external(w, B, (struct request[]){ container_in(A) }, CK_CONDITION_RUNNING, false);
	w->more = true;
	list_passes(CK_CONTAINER);
	assert_int_equal(state_of(A), CK_STATE_COMMITTED);
	assert_true(ck_machine_has_wants(w->m));
	world_forget(w, A);
	assert_false(ck_machine_has_wants(w->m));
	round_ends();
	assert_null(ck_machine_entries(w->m));
}

static void k25_undelivered_container_is_kept_again(void **state)
{
	(void)state;
	made_and_handed(A, sandbox);
	made_and_handed(B, container_in(A));
	made_and_handed(C, attempt(container_in(A), 1));
	world_report(w, C, true);
	world_crash(w, 0);
	lists_come_in();
	assert_true(state_of(B) == CK_STATE_KEPT && flag(B, CK_ENTRY_TOLD));
	assert_int_equal(state_of(C), CK_STATE_COMMITTED);
}

/* what its sandbox's end leaves of a container that was handed to nobody */
static void k25_undelivered_container_of_a_dead_sandbox_is_evicted(void **state)
{
	(void)state;
	made_and_handed(A, sandbox);
	made_and_handed(B, container_in(A));
	made_and_handed(C, attempt(container_in(A), 1));
	made_and_handed(D, attempt(container_in(A), 2));
	world_report(w, C, true);
	world_condition(w, A, CK_CONDITION_DEAD);
	world_condition(w, D, CK_CONDITION_DEAD);
	world_crash(w, 0);
	lists_come_in(); /* sandboxes first, so that it has ended */
	world_crash(w, 0);
	lists_come_in();
	list_passes(CK_CONTAINER);
	assert_int_equal(state_of(B), CK_STATE_EVICTING);
	assert_int_equal(world_entry(w, B)->row.reason, CK_REASON_SANDBOX_STOPPED);
	assert_int_equal(state_of(C), CK_STATE_ENDED);
	assert_int_equal(state_of(D), CK_STATE_ENDED); /* somebody may have run it */
	let_evict();
	assert_int_equal(state_of(B), CK_STATE_GONE);
}

/* it was undelivered at the restart, and then a caller got it whose answer is not known yet */
static void k25_what_somebody_may_have_got_since_stays(void **state)
{
	(void)state;
	made_and_handed(A, sandbox);
	made_and_handed(B, container_in(A));
	world_condition(w, B, CK_CONDITION_UNKNOWN);
	world_crash(w, 0);
	lists_come_in();
	assert_int_equal(begin(C, container_in(A), 10 * S), CK_HAND_BACK);
	world_condition(w, B, CK_CONDITION_READY);
	list_passes(CK_CONTAINER);
	assert_int_equal(state_of(B), CK_STATE_COMMITTED);
	world_stopping(w, A);
	list_passes(CK_CONTAINER);
	assert_int_equal(state_of(B), CK_STATE_ENDED);
}

/* an earlier list, which still shows it as created, comes in later */
static void k22_what_ran_in_a_dead_sandbox_was_delivered(void **state)
{
	(void)state;
	made_and_handed(A, sandbox);
	made_and_handed(B, container_in(A));
	world_condition(w, A, CK_CONDITION_DEAD);
	world_crash(w, 0);
	world_condition(w, B, CK_CONDITION_RUNNING);
	lists_come_in();
	list_passes(CK_CONTAINER);
	assert_int_equal(state_of(B), CK_STATE_ENDED);
	world_condition(w, B, CK_CONDITION_READY);
	list_passes(CK_CONTAINER);
	assert_int_equal(state_of(B), CK_STATE_ENDED);
}

static void k25_reboot_evicts_what_is_left_over(void **state)
{
	(void)state;
	made_and_kept(A, sandbox);
	begin(B, of_pod(sandbox, 1), 10 * S);
	world_crash(w, CRASH_REBOOT);
	assert_int_equal(state_of(A), CK_STATE_EVICTING);
	assert_int_equal(state_of(B), CK_STATE_EVICTING);
}

static void k25_time_of_a_row_that_lies_ahead_is_now(void **state)
{
	(void)state;
	made_and_kept(A, sandbox);
	world_evict(w, 0, false);
	let_evict();
	w->db[1].row.changed = w->now + CK_TTL; /* a tombstone would stay as long */
	world_crash(w, 0);
	lists_come_in();
	world_time(w, CK_TOMBSTONE);
	assert_null(ck_machine_object(w->m, CK_SANDBOX, "s1"));
}

static void k26_the_id_in_the_row_wins(void **state)
{
	(void)state;
	made_and_kept(A, sandbox);
	world_external(w, B, &sandbox, CK_CONDITION_READY, true);
	list_passes(CK_SANDBOX);
	assert_int_equal(state_of(B), CK_STATE_EVICTING);
	begin(C, sandbox, 60 * S);
	/* the winner stays hidden until the duplicate has gone */
	assert_int_equal(outcome(C), CK_WAIT);
	assert_int_equal(state_of(A), CK_STATE_KEPT);
	let_evict();
	assert_int_equal(outcome(C), CK_HAND_BACK);
	assert_string_equal(w->callers[C].id, "s1");
}

static void k26_one_that_is_found_during_the_hooks_is_waited_for(void **state)
{
	(void)state;
	begin(A, sandbox, 240 * S);
	world_finish(w, A, true);
	assert_int_equal(state_of(A), CK_STATE_COMMITTING);
	twin_is_listed(B);
	hooks_agree();
	assert_int_equal(state_of(A), CK_STATE_KEPT);
	let_evict();
	assert_int_equal(outcome(A), CK_HAND_BACK);
}

static void k26_one_that_is_found_during_the_question_is_waited_for(void **state)
{
	(void)state;
	made_and_kept(A, sandbox);
	begin(C, sandbox, 240 * S);
	assert_true(asked(CK_WANT_INSPECT));
	twin_is_listed(B);
	world_inspected(w, 0, true);
	assert_int_equal(state_of(A), CK_STATE_KEPT);
	assert_int_equal(outcome(C), CK_WAIT);
	let_evict();
	assert_int_equal(outcome(C), CK_HAND_BACK);
}

/* its maker reports the one that was chosen, and its caller waits until the other one is gone */
static void k26_the_maker_of_a_lost_creation_waits_for_its_twin(void **state)
{
	(void)state;
	begin(A, sandbox, 0);
	w->creations[0].reserved = true; /* the runtime has somebody else's of this name */
	world_external(w, B, &sandbox, CK_CONDITION_READY, false);
	w->creations[0].reserved = false;
	world_finish(w, A, false);
	world_time(w, CK_CREATE_DEADLINE);
	world_time(w, 250 * MS);
	world_listed_entry(w, 0, HOW_FRESH);
	assert_int_equal(state_of(A), CK_STATE_KEPT);
	assert_int_equal(state_of(B), CK_STATE_EVICTING);
	assert_int_equal(world_finish(w, A, true), CK_WAIT);
	let_evict();
	assert_int_equal(outcome(A), CK_HAND_BACK);
}

/* a start tells which of the two the caller has, and the other one goes first */
static void k26_start_of_one_with_a_twin_does_not_deliver_it(void **state)
{
	struct request container;
	(void)state;
	made_and_handed(A, sandbox);
	made_and_handed(B, container_in(A));
	world_report(w, B, false);
	container = container_in(A);
	world_external(w, C, &container, CK_CONDITION_READY, true);
	list_passes(CK_CONTAINER);
	assert_int_equal(state_of(C), CK_STATE_EVICTING);
	world_starting(w, B);
	assert_int_equal(state_of(B), CK_STATE_KEPT);
	let_evict();
	world_starting(w, B);
	assert_int_equal(state_of(B), CK_STATE_COMMITTED);
}

/* what an earlier try has left is the runtime's to show, and the kubelet's to remove */
static void k26_a_dead_one_is_no_candidate(void **state)
{
	(void)state;
	made_and_kept(A, sandbox);
	world_external(w, B, &sandbox, CK_CONDITION_DEAD, true);
	list_passes(CK_SANDBOX);
	assert_null(world_entry(w, B));
	assert_int_equal(state_of(A), CK_STATE_KEPT);
}

static void k26_two_sandboxes_of_one_uid_are_counted(void **state)
{
	struct ck_object o[] = {
		{ .kind = CK_SANDBOX, .id = "s1", .condition = CK_CONDITION_READY },
		{ .kind = CK_SANDBOX, .id = "s2", .condition = CK_CONDITION_READY },
	};
	const uint64_t *counted = ck_machine_counters(w->m)->duplicates;
	(void)state;
	made_and_handed(A, sandbox);
	made_and_handed(B, of_pod(sandbox, 1));
	ck_machine_listed(w->m, CK_SANDBOX, UINT64_MAX, true, o, CK_COUNT(o));
	assert_int_equal(ck_counter_sum(counted), 0); /* the runtime does not say the uids */
	o[0].pod_uid = "uid0";
	o[1].pod_uid = "uid1";
	ck_machine_listed(w->m, CK_SANDBOX, UINT64_MAX, true, o, CK_COUNT(o));
	assert_int_equal(ck_counter_sum(counted), 0);
	o[1].pod_uid = "uid0"; /* whatever was requested */
	ck_machine_listed(w->m, CK_SANDBOX, UINT64_MAX, true, o, CK_COUNT(o));
	assert_int_equal(ck_counter_sum(counted), 1);
}

static void k27_what_has_no_row_is_shown_and_never_served(void **state)
{
	(void)state;
	world_external(w, A, &sandbox, CK_CONDITION_READY, false);
	list_passes(CK_SANDBOX);
	assert_int_equal(state_of(A), CK_STATE_COMMITTED);
	assert_int_equal(world_entry(w, A)->row.origin, CK_ORIGIN_RUNTIME);
	assert_true(world_shown(w, A));
	assert_int_equal(begin(B, sandbox, 10 * S), -CK_ECONFLICT);
	world_evict(w, 0, false);
	assert_int_equal(state_of(A), CK_STATE_COMMITTED);
}

/* ---- starts (K34) ---------------------------------------------------------------------------- */

static void k34_another_attempt_waits_for_a_start_and_finds_it_running(void **state)
{
	(void)state;
	start_begun();
	assert_int_equal(begin(C, attempt(container_in(A), 1), 120 * S), CK_WAIT);
	world_time(w, 60 * S);
	assert_int_equal(outcome(C), CK_WAIT);
	world_start_end(w, B, CK_START_TOO_LATE);
	assert_int_equal(outcome(C), -CK_ECONFLICT);
	assert_non_null(strstr(text_of(C), "attempt 0 exists: it was started when its caller had "
					   "gone, and runs"));
	/* also if it is asked for later: the request may be older than the list that shows it */
	assert_int_equal(begin(D, attempt(container_in(A), 1), 120 * S), -CK_ECONFLICT);
	assert_int_equal(ck_counter_sum(ck_machine_counters(w->m)->starts_unheard), 1);
	world_condition(w, B, CK_CONDITION_DEAD);
	world_seen(w, B);
	assert_int_equal(begin(E, attempt(container_in(A), 1), 120 * S), CK_CREATE);
}

/* Straight at the runtime a kubelet has made the next attempt meanwhile. It goes by the newest one,
 * so it never finds that the first one runs. */
static void k34_a_start_is_no_conflict_beside_a_newer_attempt(void **state)
{
	(void)state;
	start_begun();
	world_start_end(w, B, CK_START_TOO_LATE);
	struct request next = attempt(container_in(A), 1);
	world_external(w, C, &next, CK_CONDITION_READY, false);
	list_passes(CK_CONTAINER);
	assert_int_equal(begin(D, attempt(container_in(A), 2), 10 * S), CK_CREATE);
}

static void k34_a_caller_that_waits_too_long_hears_of_the_start(void **state)
{
	(void)state;
	start_begun();
	begin(C, attempt(container_in(A), 1), 10 * S);
	world_time(w, 10 * S);
	assert_int_equal(outcome(C), CK_BUSY);
	assert_non_null(strstr(text_of(C), "attempt 0 is being started for 10 s"));
	assert_int_equal(begin(D, container_in(A), 10 * S), CK_HAND_BACK); /* K5 */
}

static void k34_a_start_that_was_heard_of_leaves_nothing(void **state)
{
	(void)state;
	start_begun();
	world_start_end(w, B, CK_START_HEARD);
	assert_int_equal(begin(C, attempt(container_in(A), 1), 10 * S), CK_CREATE);
}

static void k34_a_start_that_fails_makes_room(void **state)
{
	(void)state;
	start_begun();
	begin(C, attempt(container_in(A), 1), 10 * S);
	world_start_end(w, B, CK_START_REFUSED);
	assert_int_equal(outcome(C), CK_CREATE);
}

static void k34_the_status_decides_what_nobody_knows(void **state)
{
	(void)state;
	start_begun();
	begin(C, attempt(container_in(A), 1), 120 * S);
	world_start_end(w, B, CK_START_OPEN);
	assert_int_equal(outcome(C), CK_WAIT);
	world_inspected(w, 0, true); /* it is merely created, and may still be started */
	assert_int_equal(outcome(C), CK_WAIT);
	world_next(w);
	world_inspected(w, 0, false);
	assert_int_equal(outcome(C), CK_WAIT);
	world_condition(w, B, CK_CONDITION_RUNNING);
	world_next(w);
	world_inspected(w, 0, true);
	assert_int_equal(outcome(C), -CK_ECONFLICT);
}

static void k34_what_stays_created_was_not_started(void **state)
{
	(void)state;
	start_begun();
	begin(C, attempt(container_in(A), 1), 120 * S);
	world_start_end(w, B, CK_START_OPEN);
	world_time(w, CK_LOST_GRACE - 1);
	world_inspected(w, 0, true); /* asked before the time was up */
	assert_int_equal(outcome(C), CK_WAIT);
	world_next(w);
	world_inspected(w, 0, true);
	assert_int_equal(outcome(C), CK_CREATE);
}

static void k34_a_list_decides_too(void **state)
{
	(void)state;
	start_begun();
	begin(C, attempt(container_in(A), 1), 120 * S);
	world_start_end(w, B, CK_START_OPEN);
	world_condition(w, B, CK_CONDITION_DEAD);
	list_passes(CK_CONTAINER);
	assert_int_equal(state_of(B), CK_STATE_ENDED);
	assert_int_equal(outcome(C), CK_CREATE);
}

static void k34_a_start_goes_on_over_a_restart(void **state)
{
	(void)state;
	start_begun();
	world_crash(w, 0);
	assert_int_equal(begin(C, attempt(container_in(A), 1), 120 * S), CK_WAIT);
	lists_come_in();
	assert_int_equal(outcome(C), CK_WAIT);
	world_condition(w, B, CK_CONDITION_RUNNING);
	world_inspected(w, 0, true);
	assert_int_equal(outcome(C), -CK_ECONFLICT);
	world_crash(w, 0);
	assert_int_equal(begin(D, attempt(container_in(A), 1), 120 * S), CK_WAIT);
	lists_come_in();
	assert_int_equal(outcome(D), -CK_ECONFLICT);
}

static void k34_a_second_start_that_is_refused_decides_nothing(void **state)
{
	(void)state;
	start_begun();
	world_crash(w, 0);
	lists_come_in();
	begin(C, attempt(container_in(A), 1), 120 * S);
	assert_int_equal(world_start_begin(w, B), 0);
	world_start_end(w, B, CK_START_REFUSED); /* "it is being started" */
	assert_int_equal(outcome(C), CK_WAIT);
}

static void k34_a_sandbox_that_stops_ends_a_start(void **state)
{
	(void)state;
	start_begun();
	world_stopping(w, A);
	assert_int_equal(state_of(B), CK_STATE_ENDED);
	assert_int_equal(world_entry(w, B)->row.start, CK_START_NONE);
	world_start_end(w, B, CK_START_OPEN); /* says nothing any more */
	assert_int_equal(ck_counter_sum(ck_machine_counters(w->m)->starts_lost), 0);
}

/* nobody knows how the start ended, and in the same round that does not matter any more */
static void k34_an_answer_about_a_start_that_is_over_changes_nothing(void **state)
{
	(void)state;
	start_begun();
	w->more = true;
	world_start_end(w, B, CK_START_OPEN);
	world_stopping(w, A);
	round_ends();
	world_inspected(w, 0, true);
	assert_int_equal(state_of(B), CK_STATE_ENDED);
	assert_int_equal(world_entry(w, B)->row.start, CK_START_NONE);
}

static void k34_a_stop_of_what_was_not_started_changes_nothing(void **state)
{
	(void)state;
	made_and_handed(A, sandbox);
	made_and_handed(B, container_in(A));
	const uint64_t moves = ck_machine_moves(w->m);
	ck_machine_start_stopped(w->m, world_object(w, B)->id);
	assert_null(ck_machine_dirty(w->m));
	assert_int_equal(ck_machine_moves(w->m), moves);
}

static void k34_a_stop_of_the_container_ends_its_start(void **state)
{
	(void)state;
	start_begun();
	assert_int_equal(begin(C, attempt(container_in(A), 1), 10 * S), CK_WAIT);
	ck_machine_start_stopped(w->m, world_object(w, B)->id);
	assert_int_equal(world_entry(w, B)->row.start, CK_START_NONE);
	assert_int_equal(ck_turn_outcome(&w->callers[C].turn), CK_CREATE);
	in_another_world();
}

static void k34_what_has_ended_or_runs_is_not_started(void **state)
{
	(void)state;
	made_and_handed(A, sandbox);
	made_and_handed(B, container_in(A));
	world_condition(w, B, CK_CONDITION_RUNNING);
	world_seen(w, B);
	assert_int_equal(world_start_begin(w, B), -CK_ENOTFOUND);
	world_stopping(w, A);
	assert_int_equal(state_of(B), CK_STATE_ENDED);
	assert_int_equal(world_start_begin(w, B), -CK_ENOTFOUND);
}

/* sandbox A and container B were committed in a life without plugins, and its start was lost */
static void start_lost_before_there_were_plugins(bool can_inspect)
{
	struct world_config config = world_config();
	config.rules.hooks = false;
	config.rules.can_inspect = can_inspect;
	start_with(&config);
	start_begun();
	w->config.rules.hooks = true;
	world_crash(w, 0);
	lists_come_in();
	assert_int_equal(world_entry(w, B)->row.start, CK_START_LOST);
	/* for plugins it is like what is found in use: they hear of it after its commit */
	w->shadows[world_entry(w, B)->row.id].found_used = true;
}

static void k34_plugins_hear_of_it_while_its_status_is_asked_for(void **state)
{
	(void)state;
	start_lost_before_there_were_plugins(true);
	assert_true(asked(CK_WANT_INSPECT));
	world_time(w, CK_DESTROY_TIMEOUT);
	assert_non_null(world_job(w, CK_WANT_INSPECT, 1));
	assert_true(asked(CK_WANT_RUN));
}

static void k34_plugins_hear_of_it_while_nobody_can_be_asked(void **state)
{
	(void)state;
	start_lost_before_there_were_plugins(false);
	world_time(w, CK_LOST_GRACE);
	assert_int_equal(world_entry(w, B)->row.start, CK_START_NONE);
	assert_true(asked(CK_WANT_RUN));
	assert_int_equal(world_start_begin(w, B), 0);
	world_start_end(w, B, CK_START_OPEN);
	world_no_memory(w, CK_WANT_RUN);
	world_time(w, CK_GAP);
	assert_true(asked(CK_WANT_RUN));
	assert_int_equal(world_entry(w, B)->row.start, CK_START_LOST);
	world_time(w, CK_LOST_GRACE - CK_GAP);
	assert_int_equal(world_entry(w, B)->row.start, CK_START_NONE);
}

/* ---- time and store (K28 to K33) ------------------------------------------------------------- */

static void k28_timers_are_exact(void **state)
{
	(void)state;
	begin(A, sandbox, 240 * S);
	begin(B, sandbox, 10 * S);
	assert_true(ck_machine_due(w->m) == w->now + 10 * S - 250 * MS);
	begin(C, sandbox, 100 * S);
	world_time(w, 10 * S);
	/* 2 %, but at most one second */
	assert_true(ck_machine_due(w->m) == w->now + 90 * S - 1 * S);
	world_drop(w, C);
	world_leave(w, A);
	world_finish(w, A, true);
	uint64_t due = w->now + CK_TTL, at = ck_machine_due(w->m);
	assert_true(at >= due && at <= due + CK_TTL_SLACK);
}

static void k29_effects_come_after_the_write(void **state)
{
	(void)state;
	w->more = true;
	begin(A, sandbox, 10 * S);
	assert_int_equal(w->creations_n, 0);
	assert_false(w->db[1].used);
	w->more = false;
	begin(B, of_pod(sandbox, 1), 10 * S); /* one transaction for both */
	assert_int_equal(w->creations_n, 2);
	assert_true(w->db[1].used && w->db[2].used);
	w->more = true;
	world_finish(w, A, true);
	assert_false(asked(CK_WANT_RUN));
	w->more = false;
	world_stage(w, B);
	assert_true(asked(CK_WANT_RUN));
	assert_int_equal(w->db[1].row.state, CK_STATE_COMMITTING);
	assert_string_equal(w->db[1].row.told, w->config.told);
}

/* of one round: the next one reuses memory for a few, and memory for many is given back */
static size_t lines_of_history(size_t lines)
{
	size_t n;
	w->more = true;
	for (size_t i = 0; i < lines; i++)
		assert_int_equal(ck_machine_note_told(w->m, CK_SANDBOX, w->callers[A].id,
						      CK_HOOK_STOP, "10-log"),
				 0);
	assert_non_null(ck_machine_history(w->m, &n));
	round_ends();
	return n;
}

static void history_names_the_chosen_when_nobody_says_who_was_told(void **state)
{
	(void)state;
	made_and_handed(A, sandbox);
	w->more = true;
	const char *id = w->callers[A].id;
	assert_int_equal(ck_machine_note_told(w->m, CK_SANDBOX, id, CK_HOOK_RUN, NULL), 0);
	assert_true(*world_entry(w, A)->row.told);
	assert_string_equal(said(A, CK_WHAT_TOLD), world_entry(w, A)->row.told);
	round_ends();
}

static void history_cuts_what_is_too_long(void **state)
{
	char names[2 * CK_TEXT_MAX];
	(void)state;
	made_and_handed(A, sandbox);
	const char *id = w->callers[A].id;
	memset(names, 'x', sizeof(names) - 1);
	names[sizeof(names) - 1] = '\0';
	w->more = true;
	ck_machine_note_told(w->m, CK_SANDBOX, id, CK_HOOK_STOP, names);
	assert_string_equal(said(A, CK_WHAT_STOP_TOLD), " ...");
	names[CK_TEXT_MAX / 2] = ' ';
	ck_machine_note_told(w->m, CK_SANDBOX, id, CK_HOOK_STOP, names);
	assert_int_equal(strlen(said(A, CK_WHAT_STOP_TOLD)), CK_TEXT_MAX / 2 + strlen(" ..."));
	round_ends();
}

static void k30_a_large_round_leaves_no_memory_of_its_history(void **state)
{
	size_t n;
	(void)state;
	made_and_handed(A, sandbox);
	assert_int_equal(lines_of_history(CK_HISTORY_ROOM), CK_HISTORY_ROOM);
	assert_non_null(ck_machine_history(w->m, &n)); /* room for the next round */
	assert_int_equal(n, 0);
	assert_int_equal(lines_of_history(100 * CK_HISTORY_ROOM), 100 * CK_HISTORY_ROOM);
	assert_null(ck_machine_history(w->m, &n));
	assert_int_equal(n, 0);
	assert_int_equal(lines_of_history(3), 3);
}

static void k30_memory_holds_what_is_there_and_no_more(void **state)
{
	(void)state;
	made_and_handed(A, sandbox);
	made_and_kept(B, of_pod(sandbox, 1));
	world_evict(w, 1, false);
	let_evict();
	world_time(w, CK_TOMBSTONE + 1 * S);
	world_forget(w, A);
	assert_null(ck_machine_entries(w->m));
	for (int i = 0; i < WORLD_ROWS; i++)
		assert_false(w->db[i].used);
}

static void k31_other_digest_key_is_evicted_at_the_claim(void **state)
{
	(void)state;
	made_and_kept(A, sandbox);
	world_crash(w, CRASH_NEW_KEY);
	lists_come_in();
	assert_int_equal(state_of(A), CK_STATE_KEPT);
	begin(B, sandbox, 60 * S);
	assert_int_equal(state_of(A), CK_STATE_EVICTING);
	assert_int_equal(world_entry(w, A)->row.reason, CK_REASON_NOT_COMPARABLE);
	assert_int_equal(ck_counter_sum(ck_machine_counters(w->m)->not_comparable), 1);
	let_evict();
	assert_int_equal(outcome(B), CK_CREATE);
}

static void k32_start_delivers_although_the_disk_is_full(void **state)
{
	(void)state;
	made_and_handed(A, sandbox);
	made_and_handed(B, container_in(A));
	world_report(w, B, false);
	world_disk(w, true);
	world_starting(w, B);
	assert_int_equal(state_of(B), CK_STATE_COMMITTED);
	world_condition(w, B, CK_CONDITION_RUNNING);
	world_crash(w, 0); /* on disk it is still kept, but it runs: it is in use (K22) */
	world_disk(w, false);
	lists_come_in();
	let_evict();
	assert_int_equal(state_of(B), CK_STATE_COMMITTED);
	assert_non_null(world_object(w, B));
}

static void k32_full_disk_stops_no_pod(void **state)
{
	(void)state;
	world_disk(w, true);
	made_and_handed(A, sandbox); /* wholly volatile */
	made_and_kept(B, of_pod(sandbox, 1));
	world_evict(w, 1, false);
	let_evict();
	assert_int_equal(state_of(B), CK_STATE_GONE);
	assert_int_equal(world_entry(w, A)->saved, CK_VOLATILE);
	world_disk(w, false);
	assert_int_equal(world_entry(w, A)->saved, CK_SAVED);
	assert_true(w->db[1].used);
}

/* A row of it is on disk already, and its commit cannot be written. */
static void k32_durable_result_is_handed_over_from_memory(void **state)
{
	(void)state;
	begin(A, sandbox, 240 * S);
	begin(B, sandbox, 240 * S);
	world_disk(w, true);
	world_finish(w, A, true);
	assert_true(asked(CK_WANT_RUN));
	hooks_agree();
	assert_int_equal(outcome(A), CK_HAND_BACK);
	assert_int_equal(outcome(B), CK_HAND_BACK);
	assert_true(world_shown(w, A));
	assert_int_equal(w->db[1].row.state, CK_STATE_CREATING);
	world_disk(w, false);
	assert_int_equal(w->db[1].row.state, CK_STATE_COMMITTED);
	assert_string_equal(w->db[1].row.told, w->config.told);
}

static void k32_unwritten_hand_over_is_repeated_after_a_crash(void **state)
{
	(void)state;
	made_and_kept(A, sandbox);
	world_disk(w, true);
	begin(B, sandbox, 60 * S);
	world_inspected(w, 0, true);
	hooks_agree();
	assert_int_equal(outcome(B), CK_HAND_BACK);
	assert_int_equal(w->db[1].row.state, CK_STATE_KEPT);
	world_crash(w, 0);
	lists_come_in();
	/* nobody has put anything into it, so it waits for the same request */
	assert_int_equal(state_of(A), CK_STATE_KEPT);
	assert_false(world_shown(w, A));
	world_disk(w, false);
	begin(C, sandbox, 60 * S);
	world_inspected(w, 0, true);
	hooks_agree(); /* no plugin of this life was told */
	assert_int_equal(outcome(C), CK_HAND_BACK);
	assert_string_equal(w->callers[C].id, "s1");
}

/* While nothing could be written, A was destroyed and B took its place. A's row is still there. */
static void k32_what_took_the_place_of_an_old_row_is_left_alone(void **state)
{
	(void)state;
	made_and_kept(A, sandbox);
	world_disk(w, true);
	world_evict(w, 0, false);
	let_evict();
	made_and_handed(B, sandbox);
	world_crash(w, 0);
	assert_int_equal(w->db[1].row.state, CK_STATE_KEPT);
	lists_come_in();
	assert_true(world_shown(w, B));
	let_evict();
	assert_true(world_shown(w, B));
	/* by this life */
	assert_int_equal(ck_counter_sum(ck_machine_counters(w->m)->destroyed), 0);
	world_disk(w, false);
}

/* what was forgotten stays in memory until its row is deleted */
static void k32_answers_about_what_was_forgotten_change_nothing(void **state)
{
	char text[64];
	(void)state;
	start_begun();
	world_start_end(w, B, CK_START_OPEN);
	assert_true(asked(CK_WANT_INSPECT));
	const uint64_t row = world_entry(w, B)->row.id;
	world_disk(w, true);
	world_forget(w, B);
	assert_non_null(ck_machine_entry(w->m, row));
	world_inspected(w, 0, true);
	assert_int_equal(ck_machine_evict(w->m, row, false, text, sizeof(text)), -CK_ENOTFOUND);
	world_disk(w, false);
	assert_null(ck_machine_entry(w->m, row));
}

static void k32_a_stop_of_what_was_forgotten_is_not_followed_by_a_destroy(void **state)
{
	(void)state;
	begin(A, sandbox, 10 * S);
	world_finish(w, A, true);
	world_hooked(w, 0, false);
	world_listed_entry(w, 0, HOW_OK);
	assert_true(asked(CK_WANT_STOP));
	begin(B, container_in(A), 10 * S);
	world_finish(w, B, true);
	world_hooked(w, 1, true); /* B is handed over, so A is in use */
	assert_int_equal(state_of(A), CK_STATE_COMMITTED);
	world_disk(w, true);
	world_forget(w, A);
	hooks_agree();
	assert_false(asked(CK_WANT_DESTROY));
	world_disk(w, false);
}

static void k33_new_database_is_written_from_memory(void **state)
{
	(void)state;
	made_and_handed(A, sandbox);
	made_and_kept(B, of_pod(sandbox, 1));
	begin(C, of_pod(sandbox, 2), 10 * S);
	world_new_database(w);
	for (int i = 1; i <= 3; i++)
		assert_true(w->db[i].used);
	world_crash(w, 0);
	lists_come_in();
	assert_int_equal(state_of(A), CK_STATE_COMMITTED);
	assert_int_equal(state_of(B), CK_STATE_KEPT);
	assert_int_equal(state_of(C), CK_STATE_UNKNOWN);
}

/* there is no row to delete, so there is nothing to wait for */
static void k33_what_a_new_database_never_had_is_forgotten_at_once(void **state)
{
	(void)state;
	made_and_handed(A, sandbox);
	world_disk(w, true);
	row_forget(&w->db[world_entry(w, A)->row.id]); /* the old one was set aside */
	ck_machine_all_dirty(w->m);
	world_forget(w, A);
	assert_null(ck_machine_entries(w->m));
	world_disk(w, false);
}

/* ---- the seam to the hooks (H4) -------------------------------------------------------------- */

static void h04_required_plugin_that_is_absent_is_named(void **state)
{
	(void)state;
	w->plugin_absent = true;
	begin(A, sandbox, 10 * S);
	assert_int_equal(world_finish(w, A, true), -CK_EUNAVAILABLE);
	assert_int_equal(state_of(A), CK_STATE_KEPT);
	assert_non_null(strstr(text_of(A), "10-required"));
	w->plugin_absent = false;
	begin(B, sandbox, 10 * S);
	world_inspected(w, 0, true);
	hooks_agree();
	assert_int_equal(outcome(B), CK_HAND_BACK);
}

/* ---- answers that come too late, and lists that make no sense ------------------------------ */

static void answers_about_nothing_change_nothing(void **state)
{
	char text[64];
	(void)state;
	made_and_kept(A, sandbox);
	world_evict(w, 0, false);
	let_evict();
	const uint64_t rows[] = { world_entry(w, A)->row.id, 12345 };
	for (size_t i = 0; i < CK_COUNT(rows); i++) {
		ck_machine_inspected(w->m, rows[i], UINT64_MAX, CK_CONDITION_READY);
		ck_machine_listed_entry(w->m, rows[i], UINT64_MAX, true, NULL, 0);
		ck_machine_hook_done(w->m, rows[i], CK_HOOK_REMOVE, NULL, NULL);
		assert_int_equal(ck_machine_evict(w->m, rows[i], false, text, sizeof(text)),
				 -CK_ENOTFOUND);
	}
	ck_machine_destroyed(w->m, 12345, 0, NULL);
	assert_int_equal(ck_machine_note_told(w->m, CK_SANDBOX, "nobody", CK_HOOK_STOP, ""),
			 -CK_ENOTFOUND);
	ck_machine_start_stopped(w->m, "nobody");
	ck_machine_start_end(w->m, "nobody", CK_START_HEARD, 0);
	assert_int_equal(ck_machine_start_begin(w->m, "nobody"), -CK_ENOTFOUND);
	assert_int_equal(state_of(A), CK_STATE_GONE);
}

static void what_cannot_be_an_object_is_not_taken_for_one(void **state)
{
	static char id[CK_ID_MAX + 2], name[2 * CK_NAME_MAX_LEN + 2];
	(void)state;
	memset(id, 'x', sizeof(id) - 1);
	memset(name, 'x', sizeof(name) - 1);
	const struct ck_object objects[] = {
		{ .kind = CK_CONTAINER, .id = "other-kind" },
		{ .kind = CK_SANDBOX, .id = id, .pod_name = "a", .pod_uid = "u" },
		{ .kind = CK_SANDBOX, .id = "name-too-long", .pod_name = name, .pod_uid = "u" },
	};
	ck_machine_listed(w->m, CK_SANDBOX, UINT64_MAX, true, objects, CK_COUNT(objects));
	assert_null(ck_machine_entries(w->m));
}

/* ---- without memory -------------------------------------------------------------------------- */

static void without_its_nth(unsigned nth)
{
	ck_fault_arm(CK_FAULT_ALLOC, nth, false);
}

/* was there an allocation that failed? None fails any more */
static bool was_without(void)
{
	bool hit = ck_fault_hit();
	ck_fault_arm(0, 0, false);
	return hit;
}

/* begins @t in a world that does not know of it */
static int begins(struct ck_mturn *t, struct request req, unsigned nth)
{
	static const struct fp fps[] = { { 0 }, { .base = 1 } };
	struct ck_error err;
	struct ck_key *key = key_of_request(w, &req);
	*t = (struct ck_mturn){ 0 };
	without_its_nth(nth);
	int r = ck_machine_begin(w->m, t, key, (const void *)&fps[req.fp.base], 10 * S, false,
				 &err);
	assert_true(r != -CK_ENOMEM || ck_fault_hit());
	was_without();
	return r;
}

static void without_memory_a_request_is_refused_and_comes_again(void **state)
{
	static struct ck_mturn turns[WORLD_LABELS];
	struct ck_mturn waiter;
	(void)state;
	for (int waiting = 0; waiting < 2; waiting++) {
		unsigned refused = 0;
		for (unsigned i = 0; i < CK_COUNT(turns); i++) {
			struct request req = of_pod(sandbox, (unsigned char)i);
			for (unsigned nth = 1; begins(&turns[i], req, nth) != CK_CREATE; nth++) {
				ck_machine_drop(w->m, &turns[i]);
				refused++;
			}
			assert_int_equal(turns[i].state, CK_TURN_CREATING);
			if (waiting && i == 0) /* one turn more than entries */
				assert_int_equal(begins(&waiter, req, 1000), CK_WAIT);
		}
		assert_true(refused >= 3 * CK_COUNT(turns));
		ck_machine_settle(w->m, true);
		for (unsigned i = 0; i < CK_COUNT(turns); i++)
			ck_machine_drop(w->m, &turns[i]);
		if (waiting)
			ck_machine_drop(w->m, &waiter);
		in_another_world();
	}
}

static void without_memory_a_stop_or_removal_is_refused_and_comes_again(void **state)
{
	static struct ck_removal removals[WORLD_LABELS];
	struct ck_error err = { 0 };
	char id[WORLD_ID];
	(void)state;
	for (unsigned i = 0; i < CK_COUNT(removals); i++) {
		snprintf(id, sizeof(id), "unknown%u", i);
		for (unsigned nth = 1;; nth++) {
			without_its_nth(nth);
			int r = ck_machine_remove_begin(w->m, &removals[i], CK_SANDBOX, id, 10 * S,
							&err);
			if (!was_without()) {
				assert_int_equal(r, CK_DRAINED);
				break;
			}
			assert_int_equal(r, -CK_ENOMEM);
			assert_int_equal(removals[i].state, CK_REMOVAL_NONE);
			ck_machine_remove_end(w->m, &removals[i]);
		}
	}
	for (unsigned i = 0; i < CK_COUNT(removals); i++)
		ck_machine_remove_end(w->m, &removals[i]);
	without_its_nth(1);
	assert_int_equal(ck_machine_stopping(w->m, "another"), -CK_ENOMEM);
	was_without();
	assert_int_equal(ck_machine_stopping(w->m, "another"), 0);
	in_another_world();
}

static void without_memory_a_row_stays_its_owners(void **state)
{
	unsigned refused = 0;
	(void)state;
	made_and_kept(A, sandbox);
	made_and_handed(B, of_pod(sandbox, 1));
	machine_end(w);
	machine_start(w);
	for (int id = 1; id <= 2; id++)
		for (unsigned nth = 1;; nth++, refused++) {
			struct ck_row row;
			row_copy(&row, &w->db[id].row);
			without_its_nth(nth);
			int r = ck_machine_restore(w->m, &row, true, false);
			was_without();
			if (r == 0)
				break;
			assert_int_equal(r, -CK_ENOMEM);
			assert_int_equal(row.id, id);
			assert_string_equal(row.result->id, w->db[id].row.result->id);
			ck_row_fini(&row);
		}
	assert_true(refused >= 4);
	assert_int_equal(state_of(A), CK_STATE_KEPT);
	assert_int_equal(state_of(B), CK_STATE_COMMITTED);
	in_another_world();
}

/* until the next list */
static void without_memory_what_is_listed_is_not_known(void **state)
{
	static struct ck_object objects[WORLD_LABELS / 2];
	static char ids[WORLD_LABELS / 2][WORLD_ID];
	(void)state;
	for (unsigned i = 0; i < CK_COUNT(objects); i++) {
		snprintf(ids[i], WORLD_ID, "s%u", i);
		objects[i] = (struct ck_object){ .kind = CK_SANDBOX, .id = ids[i],
						 .pod_name = ids[i], .pod_namespace = "ns",
						 .pod_uid = ids[i],
						 .condition = CK_CONDITION_READY };
		for (unsigned nth = 1; !ck_machine_object(w->m, CK_SANDBOX, ids[i]); nth++) {
			without_its_nth(nth);
			ck_machine_listed(w->m, CK_SANDBOX, UINT64_MAX, true, objects, i + 1);
			was_without();
			assert_true(nth < 16);
		}
	}
	assert_int_equal(ck_counter_sum(ck_machine_counters(w->m)->imported), CK_COUNT(objects));
	in_another_world();
}

static void without_memory_a_lost_creation_and_its_twin_are_found_by_the_next_list(void **state)
{
	const struct ck_object objects[] = {
		{ .kind = CK_SANDBOX, .id = "x", .pod_name = "pod0", .pod_namespace = "ns",
		  .pod_uid = "uid0", .condition = CK_CONDITION_READY, .created_at = 2 },
		{ .kind = CK_SANDBOX, .id = "y", .pod_name = "pod0", .pod_namespace = "ns",
		  .pod_uid = "uid0", .condition = CK_CONDITION_READY, .created_at = 1 },
	};
	const struct ck_entry *twin;
	(void)state;
	begin(A, sandbox, 0);
	world_lose(w, A);
	world_leave(w, A);
	const struct ck_entry *e = world_entry(w, A);
	for (unsigned nth = 1; !(twin = ck_machine_object(w->m, CK_SANDBOX, "y")); nth++) {
		without_its_nth(nth);
		if (e->row.state == CK_STATE_UNKNOWN)
			ck_machine_listed_entry(w->m, e->row.id, UINT64_MAX, true, objects, 2);
		else
			ck_machine_listed(w->m, CK_SANDBOX, UINT64_MAX, true, objects, 2);
		was_without();
		assert_true(nth < 32);
	}
	assert_string_equal(e->row.result->id, "x"); /* the younger one */
	assert_int_equal(e->row.state, CK_STATE_KEPT);
	assert_int_equal(twin->row.state, CK_STATE_EVICTING);
	in_another_world();
}

static void without_memory_plugins_hear_later_of_what_is_in_use(void **state)
{
	const struct ck_object o = { .kind = CK_CONTAINER, .id = "c", .sandbox_id = "s1",
				     .container_name = "main", .pod_name = "pod0",
				     .pod_namespace = "ns", .pod_uid = "uid0",
				     .condition = CK_CONDITION_RUNNING };
	unsigned untold = 0;
	(void)state;
	for (unsigned nth = 1; nth < 16; nth++) {
		made_and_kept(A, sandbox);
		without_its_nth(nth);
		ck_machine_listed(w->m, CK_CONTAINER, UINT64_MAX, true, &o, 1);
		was_without();
		const struct ck_entry *e = ck_machine_object(w->m, CK_SANDBOX, "s1");
		assert_int_equal(e->row.state, CK_STATE_COMMITTED);
		if (!(e->row.flags & CK_ENTRY_TOLD)) {
			ck_machine_clock(w->m, w->now + CK_GAP);
			ck_machine_expire(w->m);
			untold++;
		}
		assert_true(e->row.flags & CK_ENTRY_TOLD && e->wants & CK_WANT_RUN);
		in_another_world();
	}
	assert_int_equal(untold, 1);
}

/* the line before it says what it said */
static void without_memory_the_history_lacks_a_line(void **state)
{
	static struct ck_mturn turn;
	const struct ck_history_event *lines;
	size_t n;
	(void)state;
	for (int label = A; label <= C; label++) { /* C: there is no line before it */
		made_and_handed(A, sandbox);
		made_and_kept(B, of_pod(sandbox, 1));
		if (label == C)
			lines_of_history(100 * CK_HISTORY_ROOM);
		w->more = true;
		do {
			if (label != C)
				ck_machine_note_told(w->m, CK_SANDBOX, world_object(w, label)->id,
						     CK_HOOK_STOP, "10-log");
			ck_machine_history(w->m, &n);
		} while (label != C && (n < 16 || n & (n - 1))); /* all there is room for */
		assert_int_equal(begins(&turn, changed(of_pod(sandbox, 1)), 1), CK_WAIT);
		assert_int_equal(state_of(B), CK_STATE_EVICTING);
		lines = ck_machine_history(w->m, &n);
		for (size_t i = 0; i < n; i++)
			assert_true(lines[i].what != CK_WHAT_MOVED ||
				    lines[i].to != CK_STATE_EVICTING);
		if (label != C)
			assert_string_equal(lines[15].detail, "10-log");
		ck_machine_drop(w->m, &turn);
		w->more = false;
		in_another_world();
	}
}

/* ---- work ------------------------------------------------------------------------------------ */

static unsigned placed; /* how often a turn was placed */

void __real_ck_turn_place(struct ck_machine *m, struct ck_mturn *t);
void __wrap_ck_turn_place(struct ck_machine *m, struct ck_mturn *t);
void __wrap_ck_turn_place(struct ck_machine *m, struct ck_mturn *t)
{
	placed++;
	__real_ck_turn_place(m, t);
}

/* label i of the callers that follow A: they came a millisecond after each other */
static void many_begin(struct request req)
{
	for (int i = B; i < WORLD_LABELS; i++) {
		assert_int_equal(begin(i, req, 10 * S), CK_WAIT);
		world_time(w, MS);
	}
	placed = 0;
}

/* Thousands of callers may wait for one thing, and leave one after the other. */
static void of_many_who_leave_each_moves_one_at_most(void **state)
{
	const struct request asked_for[] = { sandbox, changed(sandbox) };
	for (unsigned i = 0; i < CK_COUNT(asked_for); i++)
		for (int newest_first = 0; newest_first <= 1; newest_first++) {
			teardown(state);
			setup(state);
			assert_int_equal(begin(A, sandbox, 0), CK_CREATE);
			many_begin(asked_for[i]);
			for (int n = B; n < WORLD_LABELS; n++)
				world_leave(w, newest_first ? WORLD_LABELS + B - 1 - n : n);
			assert_true(placed < WORLD_LABELS);
		}
}

static void of_many_whose_time_is_up_each_moves_one_at_most(void **state)
{
	const struct request asked_for[] = { sandbox, changed(sandbox) };
	for (unsigned i = 0; i < CK_COUNT(asked_for); i++) {
		teardown(state);
		setup(state);
		assert_int_equal(begin(A, sandbox, 0), CK_CREATE);
		many_begin(asked_for[i]);
		while (outcome(WORLD_LABELS - 1) == CK_WAIT)
			world_time(w, MS);
		assert_true(placed < WORLD_LABELS);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest rules[] = {
		TEST(k01_same_request_joins_and_all_get_the_same_answer),
		TEST(k02_result_nobody_waits_for_is_kept),
		TEST(k02_offer_commits_a_sandbox_but_no_container),
		TEST(k02_a_crowd_of_sandboxes_is_offered_little_by_little),
		TEST(k02_what_is_offered_later_than_it_lives_expires),
		TEST(k02_what_was_not_offered_yet_is_offered_by_the_next_life),
		TEST(k02_turn_past_its_deadline_creates_nothing),
		TEST(k02_kept_as_long_as_nobody_can_tell_whose_it_is),
		TEST(k03_margin_comes_although_nobody_can_tell_whose_it_is),
		TEST(k03_waiter_takes_what_its_creator_is_too_late_for),
		TEST(k03_waiter_in_its_margin_is_told_the_stage),
		TEST(k04_failure_wakes_all_and_is_not_remembered),
		TEST(k04_failure_without_words_has_its_code),
		TEST(k05_committed_is_handed_back_at_once),
		TEST(k05_what_is_removed_during_the_hooks_is_not_handed_out),
		TEST(k05_what_is_being_removed_is_not_handed_out_by_its_commit),
		TEST(k05_what_has_ended_or_runs_is_not),
		TEST(k06_kept_result_is_asked_after_first),
		TEST(k06_dead_result_is_evicted_and_made_anew),
		TEST(k06_no_answer_is_asked_again),
		TEST(k06_short_deadline_is_enough_for_a_kept_result),
		TEST(k06_short_deadline_is_a_deadline),
		TEST(k06_a_question_that_cannot_be_asked_is_asked_later),
		TEST(k06_a_sandbox_that_runs_is_alive_and_no_more),
		TEST(k07_commit_of_a_sandbox_needs_nobody),
		TEST(k07_container_nobody_waits_for_is_kept_and_told_once),
		TEST(k07_lost_answer_takes_a_container_back),
		TEST(k07_call_that_names_it_proves_the_answer),
		TEST(k07_start_of_a_container_that_was_kept_again_delivers_it),
		TEST(k07_without_hooks_too_a_start_delivers_what_was_handed_over),
		TEST(k07_start_of_what_nobody_was_told_changes_nothing),
		TEST(k07_start_revives_nothing_that_was_given_up),
		TEST(k07_what_is_being_removed_is_not_taken_back),
		TEST(k07_what_dies_while_plugins_are_told_is_made_anew),
		TEST(k07_without_memory_for_plugins_the_result_is_kept),
		TEST(k08_lost_creation_is_asked_after_and_found),
		TEST(k08_questions_come_slower_and_slower),
		TEST(k08_own_deadline_makes_it_lost_and_its_maker_may_still_tell),
		TEST(k08_found_dead_is_evicted),
		TEST(k08_listed_dead_while_it_is_made_is_evicted),
		TEST(k08_what_is_given_up_is_found_in_whatever_condition_it_is),
		TEST(k08_what_has_another_name_is_not_what_was_lost),
		TEST(k08_of_several_that_are_found_one_is_chosen),
		TEST(k08_its_maker_does_not_replace_what_a_list_has_shown),
		TEST(who_creates_nothing_reports_nothing),
		TEST(k08_a_caller_that_comes_when_the_question_is_due_asks_no_second_one),
		TEST(k08_found_dead_while_its_maker_works_is_made_by_the_next),
		TEST(k08_found_while_its_maker_works_and_evicted_is_made_by_the_next),
		TEST(k08_what_is_made_after_a_resend_is_made_for_the_first_time),
		TEST(k08_resent_once_and_already_exists_means_still_running),
		TEST(k08_a_resend_that_fails_may_leave_the_first_running),
		TEST(k08_given_up_after_its_grace),
		TEST(k08_the_answer_says_how_long_a_short_grace_was),
		TEST(k08_list_that_took_long_gives_nothing_up),
		TEST(k08_what_a_list_shows_is_not_given_up),
		TEST(k08_crash_loop_does_not_put_off_the_second_request),
		TEST(k08_crash_loop_does_not_put_off_the_end_of_the_grace),
		TEST(k09_another_attempt_abandons_the_earlier),
		TEST(k09_another_uid_of_the_name_does_too),
		TEST(k09_history_says_who_abandoned_it),
		TEST(k09_request_that_is_over_moves_nothing),
		TEST(k09_one_uid_has_one_name),
		TEST(k09_two_names_of_one_uid_before_the_first_list),
		TEST(k09_one_sandbox_has_one_pod),
		TEST(k09_so_has_one_that_nobody_knows),
		TEST(k09_so_has_one_that_a_list_has_shown),
		TEST(k09_two_pods_of_one_sandbox_before_the_first_list),
		TEST(k10_next_attempt_waits_for_the_ports),
		TEST(k10_but_not_for_ever),
		TEST(k10_nor_less_because_it_is_looked_at_meanwhile),
		TEST(k10_not_after_its_own_deadline),
		TEST(k11_changed_request_waits_for_the_end_of_a_creation),
		TEST(k11_the_newest_decides),
		TEST(k11_kept_result_is_not_for_another_request),
		TEST(k11_history_says_what_changed),
		TEST(k11_history_says_what_changed_during_hooks),
		TEST(k11_committed_one_is_a_conflict),
		TEST(k11_an_older_request_decides_when_the_newer_one_has_gone),
		TEST(k12_other_labels_get_the_same),
		TEST(k12_other_labels_evict_if_the_host_says_so),
		TEST(e05_an_image_that_is_resolved_too_late_changes_nothing),
		TEST(k13_bump_during_the_hooks_is_undone_in_order),
		TEST(k13_plugins_that_could_not_be_told_hear_of_no_end),
		TEST(k13_hooks_that_cannot_be_cut_short_end_by_themselves),
		TEST(k14_newest_successor_wins),
		TEST(k14_successor_hears_what_it_waited_for),
		TEST(k15_requests_and_their_times_are_on_disk),
		TEST(k15_ttl_counts_from_the_last_interest_and_rests),
		TEST(k15_nothing_expires_just_after_a_restart),
		TEST(k15_stalled_loop_serves_before_it_expires),
		TEST(k15_stalled_loop_answers_before_it_expires),
		TEST(k16_stopping_a_sandbox_takes_its_containers_along),
		TEST(k16_stop_of_a_sandbox_nobody_listed_holds_until_it_is_listed),
		TEST(k16_stop_of_a_lost_creation_holds_when_it_is_found),
		TEST(k16_stop_of_an_evicted_sandbox_holds),
		TEST(k16_removal_waits_until_creates_have_ended),
		TEST(k16_removal_of_a_sandbox_nobody_knows_waits_for_creates_too),
		TEST(k16_removal_of_what_is_given_up_ends_no_eviction),
		TEST(k16_forgetting_a_sandbox_forgets_its_containers),
		TEST(k17_only_a_confirmed_destroy_ends_an_eviction),
		TEST(k17_admin_can_release_it),
		TEST(k17_released_one_that_plugins_know_is_not_destroyed_either),
		TEST(k17_destroyed_one_cannot_be_released),
		TEST(k18_back_off_doubles_to_a_minute_over_restarts),
		TEST(k18_no_answer_is_a_failure),
		TEST(k18_two_destroys_without_an_answer_are_enough),
		TEST(k18_eight_at_once_and_a_new_reason_hurries),
		TEST(k18_containers_go_before_their_sandbox),
		TEST(k19_failing_destroy_delays_no_other),
		TEST(k20_told_entry_stop_destroy_remove),
		TEST(k20_what_cannot_be_told_for_want_of_memory_is_told_later),
		TEST(k21_evicted_id_stays_hidden_for_older_lists),
		TEST(k21_open_view_keeps_the_tombstone),
		TEST(k21_id_that_may_still_be_destroyed_is_not_taken),
		TEST(k22_sandbox_in_use_is_left_alone),
		TEST(k22_what_was_found_running_is_not_taken_back_after_a_restart),
		TEST(k22_what_is_listed_is_told_apart_by_its_name),
		TEST(k22_running_container_is_left_alone),
		TEST(k22_creation_found_running_is_not_destroyed),
		TEST(k22_creation_found_when_it_had_run_is_not_destroyed),
		TEST(k22_kept_container_that_ran_has_ended),
		TEST(k22_status_of_what_ran_shows_it),
		TEST(k22_what_a_list_says_ran_is_not_destroyed_without_questions),
		TEST(k22_what_was_taken_meanwhile_is_shown_before_anything_is_served),
		TEST(k22_what_was_taken_is_shown_although_something_else_was_removed),
		TEST(k22_a_later_list_shows_it_too),
		TEST(k22_our_own_hidden_container_proves_nothing),
		TEST(k22_a_container_that_was_handed_over_does),
		TEST(k22_what_is_handed_over_saves_its_sandbox),
		TEST(k22_a_destroy_under_way_still_counts),
		TEST(k22_a_destroy_under_way_is_told_once),
		TEST(k20_a_stop_that_is_being_told_is_not_told_again),
		TEST(k20_a_stop_that_was_told_of_what_is_used_is_not_told_again),
		TEST(k20_a_stop_that_was_told_while_it_waits_for_another_is_not_told_again),
		TEST(k22_plugins_hear_of_the_sandbox_before_its_container),
		TEST(k22_a_twin_in_use_does_not_take_the_key),
		TEST(k22_what_was_taken_has_ended_when_its_sandbox_is_dead),
		TEST(k25_kept_container_that_runs_in_a_dead_sandbox_is_left_alone),
		TEST(k25_kept_container_that_runs_is_never_hidden),
		TEST(k25_kept_container_that_is_absent_is_gone_and_not_destroyed),
		TEST(k23_evicting_entry_is_never_served),
		TEST(k24_failed_or_older_list_means_nothing),
		TEST(k24_what_is_in_a_sandbox_that_is_not_listed_is_forgotten_with_it),
		TEST(k24_nothing_is_served_before_the_first_list),
		TEST(k24_list_older_than_a_removal_brings_nothing_back),
		TEST(k24_list_older_than_a_removal_finds_no_lost_creation),
		TEST(k24_what_is_being_made_is_hidden_by_the_id_that_was_listed_last),
		TEST(k25_restart_takes_up_each_state),
		TEST(k25_search_for_what_is_evicted_goes_on),
		TEST(k22_what_is_taken_during_the_hooks_is_not_destroyed),
		TEST(k17_counts_what_was_destroyed),
		TEST(history_says_why_it_moved),
		TEST(k15_last_interest_is_on_disk),
		TEST(h04_absent_plugin_does_not_hear_of_what_is_in_use),
		TEST(k22_what_is_in_use_is_told_when_there_is_memory),
		TEST(k22_what_was_in_use_is_told_although_it_has_ended),
		TEST(k22_what_is_used_in_the_round_of_its_commit_is_told_once),
		TEST(k22_what_is_removed_in_the_round_it_was_found_in_use_is_not_told),
		TEST(k25_undelivered_container_is_kept_again),
		TEST(k25_undelivered_container_of_a_dead_sandbox_is_evicted),
		TEST(k25_what_somebody_may_have_got_since_stays),
		TEST(k22_what_ran_in_a_dead_sandbox_was_delivered),
		TEST(k25_reboot_evicts_what_is_left_over),
		TEST(k25_time_of_a_row_that_lies_ahead_is_now),
		TEST(k26_the_id_in_the_row_wins),
		TEST(k26_one_that_is_found_during_the_hooks_is_waited_for),
		TEST(k26_one_that_is_found_during_the_question_is_waited_for),
		TEST(k26_the_maker_of_a_lost_creation_waits_for_its_twin),
		TEST(k26_start_of_one_with_a_twin_does_not_deliver_it),
		TEST(k26_a_dead_one_is_no_candidate),
		TEST(k26_two_sandboxes_of_one_uid_are_counted),
		TEST(k27_what_has_no_row_is_shown_and_never_served),
		TEST(k34_another_attempt_waits_for_a_start_and_finds_it_running),
		TEST(k34_a_start_is_no_conflict_beside_a_newer_attempt),
		TEST(k34_a_caller_that_waits_too_long_hears_of_the_start),
		TEST(k34_a_start_that_was_heard_of_leaves_nothing),
		TEST(k34_a_start_that_fails_makes_room),
		TEST(k34_the_status_decides_what_nobody_knows),
		TEST(k34_what_stays_created_was_not_started),
		TEST(k34_a_list_decides_too),
		TEST(k34_a_start_goes_on_over_a_restart),
		TEST(k34_a_second_start_that_is_refused_decides_nothing),
		TEST(k34_a_sandbox_that_stops_ends_a_start),
		TEST(k34_an_answer_about_a_start_that_is_over_changes_nothing),
		TEST(k34_a_stop_of_what_was_not_started_changes_nothing),
		TEST(k34_a_stop_of_the_container_ends_its_start),
		TEST(k34_what_has_ended_or_runs_is_not_started),
		TEST(k34_plugins_hear_of_it_while_its_status_is_asked_for),
		TEST(k34_plugins_hear_of_it_while_nobody_can_be_asked),
		TEST(k28_timers_are_exact),
		TEST(k29_effects_come_after_the_write),
		TEST(k30_memory_holds_what_is_there_and_no_more),
		TEST(history_names_the_chosen_when_nobody_says_who_was_told),
		TEST(history_cuts_what_is_too_long),
		TEST(k30_a_large_round_leaves_no_memory_of_its_history),
		TEST(k31_other_digest_key_is_evicted_at_the_claim),
		TEST(k32_start_delivers_although_the_disk_is_full),
		TEST(k32_full_disk_stops_no_pod),
		TEST(k32_durable_result_is_handed_over_from_memory),
		TEST(k32_unwritten_hand_over_is_repeated_after_a_crash),
		TEST(k32_what_took_the_place_of_an_old_row_is_left_alone),
		TEST(k32_answers_about_what_was_forgotten_change_nothing),
		TEST(k32_a_stop_of_what_was_forgotten_is_not_followed_by_a_destroy),
		TEST(k33_new_database_is_written_from_memory),
		TEST(k33_what_a_new_database_never_had_is_forgotten_at_once),
		TEST(h04_required_plugin_that_is_absent_is_named),
		TEST(answers_about_nothing_change_nothing),
		TEST(what_cannot_be_an_object_is_not_taken_for_one),
		TEST(without_memory_a_request_is_refused_and_comes_again),
		TEST(without_memory_a_stop_or_removal_is_refused_and_comes_again),
		TEST(without_memory_a_row_stays_its_owners),
		TEST(without_memory_what_is_listed_is_not_known),
		TEST(without_memory_a_lost_creation_and_its_twin_are_found_by_the_next_list),
		TEST(without_memory_plugins_hear_later_of_what_is_in_use),
		TEST(without_memory_the_history_lacks_a_line),
		TEST(of_many_who_leave_each_moves_one_at_most),
		TEST(of_many_whose_time_is_up_each_moves_one_at_most),
	};
	return CK_TEST_MAIN(rules);
}
