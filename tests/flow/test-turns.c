/* SPDX-License-Identifier: Apache-2.0 */
/* The whole life of a turn, by waiting and by callback: what the caller hears, what the host is
 * asked, and what remains. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/resource.h>

#include "tests/flow/fixture.h"
#include "cache/admin-request.h"
#include "cache/cache.h"
#include "cache/store/store-int.h"
#include "src/base/fault.h"

#define S CK_NS_PER_S

static int blocking(void **state)
{
	struct fixture *f = fixture_new();
	f->threaded = true;
	*state = f;
	return 0;
}

/* ---- keep and hand back ---------------------------------------------------------------------- */

static void result_in_time_is_handed_over_at_once(void **state) /* K1, K2 */
{
	struct fixture *f = *state;
	struct fx_ask ask = fx_sandbox("web");
	struct ck_reply reply = { .size = sizeof(reply) };
	fx_open(f);
	struct ck_turn *turn = fx_create(f, &ask);
	assert_int_equal(ck_turn_reply(turn, &reply), -CK_ESTATE);
	assert_string_equal(fx_rows(f), "CREATING -");
	assert_int_equal(fx_make(f, turn, &ask, "s1"), CK_HAND_BACK);
	assert_string_equal(fx_rows(f), "COMMITTED s1");
	assert_int_equal(ck_turn_reply(turn, &reply), 0);
	assert_string_equal(reply.id, "s1");
	assert_memory_equal(reply.bytes, "\x0a\x02s1", 4);
	assert_int_equal(reply.len, 4);
	assert_int_equal(ck_turn_answered(turn, CK_DELIVERED), 0);
	ck_turn_free(turn);
}

/* A container whose answer nobody confirmed is kept again after a restart. A sandbox is not. */
static void that_an_answer_arrived_is_written_of_a_container(void **state) /* K7 */
{
	struct fixture *f = *state;
	struct fx_ask asks[] = { fx_sandbox("web"), fx_container("web", "s1", "app") };
	static const char *const ids[] = { "s1", "c1" };
	fx_open(f);
	for (size_t i = 0; i < CK_COUNT(asks); i++) {
		struct ck_turn *turn = fx_create(f, &asks[i]);
		assert_int_equal(fx_make(f, turn, &asks[i], ids[i]), CK_HAND_BACK);
		int changes = sqlite3_total_changes(f->cache->store->db);
		assert_int_equal(ck_turn_answered(turn, CK_DELIVERED), 0);
		assert_int_equal(sqlite3_total_changes(f->cache->store->db) > changes,
				 asks[i].kind == CK_CONTAINER);
		ck_turn_free(turn);
	}
}

/* The host is the runtime: a crash before the first row is written leaves nothing (K29). */
static struct ck_turn *begun_in_memory(struct fixture *f, const struct fx_ask *ask)
{
	f->options.is_runtime = 1;
	fx_open(f);
	unsigned frames = f->cache->store->frames;
	struct ck_turn *turn = fx_create(f, ask);
	assert_string_equal(fx_rows(f), "");
	assert_int_equal(f->cache->store->frames, frames); /* a round that only counts waits */
	return turn;
}

static void a_runtime_in_time_writes_a_creation_once(void **state)
{
	struct fixture *f = *state;
	struct fx_ask ask = fx_sandbox("web");
	struct ck_turn *turn = begun_in_memory(f, &ask);
	assert_int_equal(ck_turn_stage(turn, "network"), 0);
	fx_advance(f, CK_BEGUN_WAITS - 1);
	assert_string_equal(fx_rows(f), "");
	assert_int_equal(fx_hides(f, &ask, "s1"), 1);
	assert_int_equal(fx_make(f, turn, &ask, "s1"), CK_HAND_BACK);
	assert_string_equal(fx_rows(f), "COMMITTED s1");
	ck_turn_free(turn);
	fx_reopen(f);
	fx_settle(f);
	turn = NULL;
	assert_int_equal(fx_begin(f, &ask, &turn), CK_HAND_BACK); /* its digests are there */
	ck_turn_free(turn);
}

static void a_runtime_that_takes_long_writes_that_it_has_begun(void **state)
{
	struct fixture *f = *state;
	struct fx_ask ask = fx_sandbox("web");
	struct ck_turn *turn = begun_in_memory(f, &ask);
	fx_advance(f, CK_BEGUN_WAITS);
	assert_string_equal(fx_rows(f), "CREATING -");
	ck_turn_free(turn);
}

static void a_runtime_writes_that_it_has_begun_before_the_margin(void **state)
{
	struct fixture *f = *state;
	struct fx_ask ask = fx_sandbox("web");
	ask.timeout = CK_MARGIN_MIN + CK_BEGUN_WAITS / 2;
	struct ck_turn *turn = begun_in_memory(f, &ask);
	fx_advance(f, CK_BEGUN_WAITS / 2 - 1);
	assert_string_equal(fx_rows(f), "");
	fx_advance(f, 1);
	assert_string_equal(fx_rows(f), "CREATING -");
	ck_turn_free(turn);
}

static void a_runtime_whose_caller_goes_has_written_that_it_has_begun(void **state)
{
	struct fixture *f = *state;
	struct fx_ask ask = fx_sandbox("web");
	struct ck_turn *turn = begun_in_memory(f, &ask);
	ck_turn_leave(turn);
	assert_string_equal(fx_rows(f), "CREATING -");
	assert_int_equal(fx_make(f, turn, &ask, "s1"), CK_KEPT);
	assert_string_equal(fx_rows(f), "KEPT s1");
	ck_turn_free(turn);
}

static void a_runtime_that_is_asked_again_has_written_that_it_has_begun(void **state)
{
	struct fixture *f = *state;
	struct fx_ask ask = fx_sandbox("web");
	struct ck_turn *turn = begun_in_memory(f, &ask), *again = fx_wait(f, &ask);
	assert_string_equal(fx_rows(f), "CREATING -");
	ck_turn_free(again);
	ck_turn_free(turn);
}

static void a_runtime_that_failed_leaves_no_row(void **state) /* K4 */
{
	struct fixture *f = *state;
	struct fx_ask ask = fx_sandbox("web");
	struct ck_status status = { .size = sizeof(status), .grpc = CK_GRPC_UNKNOWN };
	struct ck_turn *turn = begun_in_memory(f, &ask);
	assert_int_equal(ck_turn_fail(turn, &status, &f->err), 0);
	assert_string_equal(fx_rows(f), "");
	ck_turn_free(turn);
}

static void a_runtime_that_closes_has_written_that_it_has_begun(void **state) /* K8 */
{
	struct fixture *f = *state;
	struct fx_ask ask = fx_sandbox("web");
	struct ck_turn *turn = begun_in_memory(f, &ask);
	fx_close(f);
	assert_string_equal(fx_rows(f), "UNKNOWN -");
	ck_turn_free(turn);
}

static void late_result_is_kept_and_handed_back(void **state) /* K2, K6 */
{
	struct fixture *f = *state;
	struct fx_ask ask = fx_sandbox("web");
	fx_open(f);
	fx_keep(f, &ask, "s1");
	assert_string_equal(fx_rows(f), "KEPT s1");
	assert_int_equal(fx_hides(f, &ask, "s1"), 1);
	fx_advance(f, 5 * S);
	struct ck_turn *turn = fx_wait(f, &ask); /* the runtime is asked first */
	fx_answered_with(f, turn, "s1");
	assert_int_equal(f->asked[FX_INSPECT], 1);
	assert_string_equal(fx_rows(f), "COMMITTED s1");
	assert_int_equal(fx_hides(f, &ask, "s1"), 0);
	ck_turn_free(turn);
	fx_advance(f, 3600 * S);
	assert_int_equal(f->asked[FX_DESTROY], 0);
}

static void the_reply_is_what_the_runtime_gave(void **state)
{
	struct fixture *f = *state;
	struct fx_ask ask = fx_sandbox("web");
	static const char bytes[] = "\x0a\x02s1\x12\x03"
				    "new";
	struct ck_result result = {
		.size = sizeof(result), .id = "s1", .reply = bytes, .reply_len = sizeof(bytes) - 1
	};
	struct ck_reply reply = { .size = sizeof(reply) };
	fx_open(f);
	struct ck_turn *turn = fx_create(f, &ask);
	fx_advance(f, 11 * S);
	fx_exists(f, &ask, "s1");
	assert_int_equal(ck_turn_finish(turn, &result, &f->err), CK_KEPT);
	assert_int_equal(ck_turn_finish(turn, &result, &f->err), -CK_ESTATE);
	assert_int_equal(f->err.code, CK_ESTATE);
	assert_int_equal(ck_turn_finish(turn, &result, NULL), -CK_ESTATE);
	ck_turn_free(turn);
	fx_reopen(f);
	turn = fx_wait(f, &ask);
	assert_int_equal(fx_decision(f, turn), CK_HAND_BACK);
	assert_int_equal(ck_turn_reply(turn, &reply), 0);
	assert_int_equal(reply.len, sizeof(bytes) - 1);
	assert_memory_equal(reply.bytes, bytes, reply.len);
	ck_turn_free(turn);
}

static void waiting_repetition_gets_the_id_when_it_exists(void **state) /* K1, K3 */
{
	struct fixture *f = *state;
	struct fx_ask ask = fx_sandbox("web");
	fx_open(f);
	struct ck_turn *creator = fx_create(f, &ask);
	fx_advance(f, 9900 * CK_NS_PER_MS); /* into the creator's margin */
	struct ck_turn *again = fx_wait(f, &ask), *third = fx_wait(f, &ask);
	/* its own caller has run out of time */
	assert_int_equal(fx_make(f, creator, &ask, "s1"), CK_KEPT);
	assert_string_equal(fx_rows(f), "COMMITTED s1");
	fx_answered_with(f, again, "s1");
	fx_answered_with(f, third, "s1");
	ck_turn_free(creator);
	ck_turn_free(again);
	ck_turn_free(third);
}

static void container_of_another_pod_harms_nobody(void **state) /* K9 */
{
	struct fixture *f = *state;
	struct fx_ask pod = fx_sandbox("web"), kept = fx_sandbox("kept"),
		      app = fx_container("web", "s1", "app"), odd = app,
		      later = fx_sandbox("later");
	struct ck_turn *turn;
	odd.name = "other";
	odd.uid = "uid-other";
	fx_open(f);
	fx_commit(f, &pod, "s1");
	fx_keep(f, &kept, "s2");
	fx_commit(f, &app, "c1");
	assert_int_equal(fx_begin(f, &odd, &turn), -CK_EINVAL);
	assert_string_equal(f->err.text, "container shop/other/app attempt 0: the sandbox belongs "
					 "to a pod of another name uid");
	turn = fx_wait(f, &kept);
	fx_answered_with(f, turn, "s2");
	ck_turn_free(turn);
	fx_commit(f, &later, "s3");
	assert_string_equal(fx_rows(f), "COMMITTED s1|COMMITTED s2|COMMITTED c1|COMMITTED s3");
	assert_int_equal(fx_counter(f, "write_failures"), 0);
}

/* whose name and namespace make the same text, one after the other */
static void pods_of_similar_names_have_nothing_in_common(void **state) /* K9 */
{
	struct fixture *f = *state;
	struct fx_ask a = fx_sandbox("web"), b = fx_sandbox("\1web");
	a.ns = "shop\1";
	a.uid = "uid-a";
	b.uid = "uid-b";
	fx_open(f);
	struct ck_turn *first = fx_create(f, &a), *second = fx_create(f, &b);
	assert_int_equal(fx_make(f, first, &a, "s1"), CK_HAND_BACK);
	assert_int_equal(fx_make(f, second, &b, "s2"), CK_HAND_BACK);
	ck_turn_free(first);
	ck_turn_free(second);
}

static void failure_wakes_everybody_with_the_runtimes_status(void **state) /* K4 */
{
	struct fixture *f = *state;
	struct fx_ask ask = fx_container("web", "s0", "app");
	struct ck_status why = { .size = sizeof(why),
				 .grpc = 9,
				 .message = "no such image, LEVEL=top-secret",
				 .details = "\0dt",
				 .details_len = 3 };
	struct ck_status heard = { .size = sizeof(heard) };
	ask.env = "top-secret";
	fx_open(f);
	struct ck_turn *creator = fx_create(f, &ask), *again = fx_wait(f, &ask);
	assert_int_equal(ck_turn_status(again, &heard), -CK_ESTATE);
	assert_int_equal(ck_turn_fail(creator, &why, &f->err), 0);
	assert_int_equal(fx_decision(f, again), -CK_EFAILED);
	assert_int_equal(f->err.sub, 9);
	assert_int_equal(ck_error_grpc(&f->err), 9);
	assert_string_equal(f->err.text, "FAILED_PRECONDITION: no such image, LEVEL=***");
	assert_int_equal(ck_turn_status(again, &heard), 0);
	assert_int_equal(heard.grpc, 9);
	assert_string_equal(heard.message, why.message);
	assert_int_equal(heard.details_len, 3);
	assert_memory_equal(heard.details, "\0dt", 3);
	f->err = (struct ck_error){ 0 };
	assert_int_equal(ck_turn_fail(creator, &why, &f->err), -CK_ESTATE);
	assert_int_equal(f->err.code, CK_ESTATE);
	ck_turn_free(creator);
	ck_turn_free(again);
	assert_string_equal(fx_rows(f), "");
	creator = fx_create(f, &ask); /* errors are not cached */
	ck_turn_fail(creator, &why, NULL);
	ck_turn_free(creator);
}

static void busy_at_the_margin_names_stage_and_age(void **state) /* K3 */
{
	struct fixture *f = *state;
	struct fx_ask ask = fx_sandbox("web");
	fx_open(f);
	struct ck_turn *creator = fx_create(f, &ask);
	fx_advance(f, 5 * S);
	assert_int_equal(ck_turn_stage(creator, "sandbox network creation"), 0);
	struct ck_turn *again = fx_wait(f, &ask);
	assert_int_equal(ck_turn_stage(again, "x"), -CK_ESTATE);
	fx_advance(f, 9700 * CK_NS_PER_MS);
	if (!f->threaded)
		assert_int_equal(fx_decision(f, again), CK_WAIT);
	fx_advance(f, 50 * CK_NS_PER_MS); /* the margin of 10 s is 250 ms */
	assert_int_equal(fx_decision(f, again), CK_BUSY);
	assert_string_equal(ck_turn_error(again)->text,
			    "sandbox shop/web attempt 0: still being created, stage \"sandbox "
			    "network creation\""
			    " for 9 s, 14 s in all");
	assert_int_equal(ck_error_grpc(ck_turn_error(again)), 14);
	ck_turn_free(again);
	assert_int_equal(fx_make(f, creator, &ask, "s1"), CK_KEPT);
	ck_turn_free(creator);
}

static void another_attempt_abandons_the_earlier_one(void **state) /* K9, K10 */
{
	struct fixture *f = *state;
	struct fx_ask ask = fx_sandbox("web"), next = ask;
	fx_open(f);
	struct ck_turn *creator = fx_create(f, &ask), *again = fx_wait(f, &ask);
	next.attempt = 1;
	struct ck_turn *newer = fx_wait(f, &next);
	assert_int_equal(fx_decision(f, again), -CK_EABANDONED);
	assert_int_equal(ck_error_grpc(&f->err), 10);
	assert_int_equal(fx_decision(f, creator), -CK_EABANDONED);
	assert_int_equal(fx_make(f, creator, &ask, "s1"), -CK_EABANDONED);
	ck_turn_free(again);
	ck_turn_free(creator);
	assert_int_equal(fx_decision(f, newer), CK_CREATE); /* s1 and its ports are gone */
	assert_true(fx_was_destroyed(f, "s1"));
	assert_int_equal(fx_make(f, newer, &next, "s2"), CK_HAND_BACK);
	ck_turn_free(newer);
}

static void kept_result_of_an_older_attempt_is_evicted(void **state) /* K9 */
{
	struct fixture *f = *state;
	struct fx_ask ask = fx_sandbox("web"), next = ask;
	fx_open(f);
	fx_keep(f, &ask, "s1");
	next.attempt = 1;
	struct ck_turn *newer = fx_wait(f, &next);
	assert_int_equal(fx_decision(f, newer), CK_CREATE);
	assert_true(fx_was_destroyed(f, "s1"));
	assert_int_equal(fx_make(f, newer, &next, "s2"), CK_HAND_BACK);
	ck_turn_free(newer);
	assert_string_equal(fx_rows(f), "GONE s1|COMMITTED s2");
}

static void changed_request_succeeds_the_kept_result(void **state) /* K11, K14 */
{
	struct fixture *f = *state;
	struct fx_ask ask = fx_container("web", "s0", "app"), changed = ask;
	fx_open(f);
	fx_keep(f, &ask, "c1");
	changed.env = "debug";
	struct ck_turn *turn = fx_wait(f, &changed);
	assert_int_equal(fx_decision(f, turn), CK_CREATE);
	assert_true(fx_was_destroyed(f, "c1"));
	assert_int_equal(fx_make(f, turn, &changed, "c2"), CK_HAND_BACK);
	ck_turn_free(turn);
}

/* the lines that an operator reads: those at level info and above */
static const char *log_read(const struct fixture *f)
{
	static char read[4096];
	read[0] = '\0';
	for (const char *line = f->log, *end; (end = strchr(line, '\n')); line = end + 1)
		if (line[1] < '0' + CK_LOG_DEBUG)
			strncat(read, line, (size_t)(end + 1 - line));
	return read;
}

static void what_is_in_time_is_told_to_who_debugs(void **state)
{
	struct fixture *f = *state;
	struct fx_ask ask = fx_sandbox("web");
	fx_open(f);
	fx_commit(f, &ask, "s1");
	fx_settle(f);
	assert_non_null(strstr(f->log, "handed over id=s1 created_in=0.0s after=0.0s\n"));
	assert_string_equal(log_read(f), "");
}

static void a_rescue_is_one_line(void **state)
{
	struct fixture *f = *state;
	struct fx_ask ask = fx_sandbox("web");
	fx_open(f);
	fx_keep(f, &ask, "s1");
	fx_advance(f, 5 * S);
	struct ck_turn *turn = fx_wait(f, &ask);
	fx_answered_with(f, turn, "s1");
	ck_turn_free(turn);
	fx_settle(f);
	assert_string_equal(log_read(f), "<6> sandbox shop/web attempt 0: late, and handed over "
					 "id=s1 created_in=11.0s after=16.0s requests=2\n");
	const char *late = strstr(f->log, "late, and ");
	assert_null(strstr(late + 1, "late, and ")); /* nor is anything else of it said to be */
}

static void what_nobody_asks_for_again_is_one_line(void **state) /* K15 */
{
	struct fixture *f = *state;
	struct fx_ask ask = fx_sandbox("web");
	fx_open(f);
	fx_keep(f, &ask, "s1");
	fx_advance(f, 3600 * S);
	assert_true(fx_was_destroyed(f, "s1"));
	const char *read = log_read(f);
	assert_non_null(strstr(read, "KEPT -> EVICTING: nobody asked again in time id=s1"));
	assert_ptr_equal(strchr(read, '\n'), read + strlen(read) - 1);
}

/* lines for debugging, of which there are many, leave room for those that are read */
static void lines_for_debugging_do_not_crowd_out_others(void **state)
{
	struct fixture *f = *state;
	fx_open(f);
	for (unsigned i = 0; i < 2 * CK_LOG_LINES; i++)
		ck_cache_log(f->cache, CK_LOG_DEBUG, "line %u", i);
	ck_cache_log(f->cache, CK_LOG_INFO, "a rescue");
	fx_settle(f);
	assert_non_null(strstr(f->log, "a rescue"));
	assert_non_null(strstr(f->log, "line 1\n"));
	assert_null(strstr(f->log, "dropped"));
}

static void dropped_lines_are_counted(void **state)
{
	struct fixture *f = *state;
	fx_open(f);
	fx_settle(f);
	ck_fault_arm(CK_FAULT_ALLOC, 1, true);
	ck_cache_log(f->cache, CK_LOG_DEBUG, "nobody need know");
	assert_int_not_equal(ck_cache_timeout(f->cache), 0);
	ck_cache_log(f->cache, CK_LOG_INFO, "a rescue");
	ck_fault_arm(0, 0, false);
	assert_int_equal(ck_cache_timeout(f->cache), 0); /* somebody is to be told of that */
	fx_settle(f);
	assert_non_null(strstr(f->log, "1 lines of this log were dropped"));
	assert_null(strstr(f->log, "a rescue"));
	for (unsigned i = 0; i < CK_LOG_LINES + 2; i++)
		ck_cache_log(f->cache, CK_LOG_INFO, "rescue %u", i);
	fx_close(f);
	assert_non_null(strstr(f->log, "rescue 63\n"));
	assert_null(strstr(f->log, "rescue 64\n"));
	assert_non_null(strstr(f->log, "2 lines of this log were dropped"));
}

static bool loop_is_due(struct fixture *f)
{
	struct pollfd fd = { .fd = ck_cache_fd(f->cache), .events = POLLIN };
	return poll(&fd, 1, 0) > 0;
}

static void a_line_above_the_level_wakes_nobody(void **state)
{
	struct fixture *f = *state;
	struct fx_ask quiet = fx_sandbox("quiet"), loud = fx_sandbox("loud"),
		      late = fx_sandbox("late");
	fx_open(f);
	fx_settle(f);
	f->log[0] = '\0';
	for (int level = CK_LOG_INFO; level <= CK_LOG_DEBUG; level++) {
		ck_cache_log_level(f->cache, (enum ck_log_level)level);
		struct ck_turn *turn = fx_create(f, level == CK_LOG_INFO ? &quiet : &loud);
		assert_int_equal(loop_is_due(f), level == CK_LOG_DEBUG);
		ck_turn_free(turn);
		fx_settle(f);
		assert_int_equal(strstr(f->log, "creation begun") != NULL, level == CK_LOG_DEBUG);
	}
	ck_cache_log_level(f->cache, CK_LOG_INFO);
	fx_keep(f, &late, "s2");
	struct ck_turn *turn = fx_wait(f, &late);
	fx_answered_with(f, turn, "s2");
	ck_turn_free(turn);
	fx_settle(f);
	assert_non_null(strstr(f->log, "late, and handed over id=s2"));
	ck_cache_log_level(NULL, CK_LOG_INFO);
}

static void what_changed_is_in_history_and_log(void **state) /* K11 */
{
	static const char evicted[] = "KEPT -> EVICTING: the request changed: config.envs[LEVEL]";
	struct fixture *f = *state;
	struct fx_ask ask = fx_container("web", "s0", "app"), changed = ask;
	fx_open(f);
	ask.env = "value-of-level";
	fx_keep(f, &ask, "c1");
	changed.env = "value-of-other";
	struct ck_turn *turn = fx_wait(f, &changed);
	assert_int_equal(fx_decision(f, turn), CK_CREATE);
	assert_string_equal(fx_why(f), "EVICTING: the request changed: config.envs[LEVEL]");
	fx_settle(f); /* the log is written after the decision */
	assert_non_null(strstr(f->log, evicted));
	assert_null(strstr(f->log, "value-of"));
	ck_turn_free(turn);
}

static void who_abandoned_a_creation_is_in_history_and_log(void **state) /* K9 */
{
	struct fixture *f = *state;
	struct fx_ask ask = fx_sandbox("web"), next = ask;
	fx_open(f);
	struct ck_turn *turn = fx_create(f, &ask);
	next.attempt = 1;
	struct ck_turn *newer = fx_wait(f, &next);
	assert_string_equal(fx_why(f),
			    "EVICTING: the kubelet asked for another attempt: attempt 1");
	fx_settle(f);
	assert_non_null(strstr(f->log, "CREATING -> EVICTING: the kubelet asked for another attempt"
				       ": attempt 1"));
	ck_turn_free(newer);
	ck_turn_free(turn);
}

static void why_a_destroy_failed_is_in_history_and_log(void **state) /* K18 */
{
	static const char secret[] = "0123456789abcdef0123456789abcdef";
	struct fixture *f = *state;
	struct fx_ask ask = fx_sandbox("web"), next = ask;
	char message[128];
	fx_open(f);
	fx_keep(f, &ask, "s1");
	snprintf(message, sizeof(message), "unlink %s: device or resource busy\n", secret);
	f->message = message;
	f->fail[FX_DESTROY] = 14;
	next.attempt = 1;
	struct ck_turn *turn = fx_wait(f, &next);
	fx_settle(f);
	assert_non_null(
		strstr(fx_why(f), "destroying failed: unlink ***: device or resource busy"));
	assert_non_null(strstr(f->log, "destroying failed: UNAVAILABLE: unlink ***: device or "
				       "resource busy"));
	f->fail[FX_DESTROY] = 0;
	fx_advance(f, 2 * CK_NS_PER_S);
	assert_int_equal(fx_decision(f, turn), CK_CREATE);
	assert_null(strstr(f->log, secret));
	assert_null(strstr(fx_why(f), secret));
	ck_turn_free(turn);
}

static void why_nothing_was_destroyed_is_in_the_history(void **state) /* K22 */
{
	struct fixture *f = *state;
	struct fx_ask ask = fx_sandbox("web"), next = ask;
	fx_open(f);
	fx_keep(f, &ask, "s1");
	f->fail[FX_LIST] = 14;
	f->message = "not shown";
	next.attempt = 1;
	struct ck_turn *turn = fx_wait(f, &next);
	fx_settle(f);
	assert_non_null(strstr(fx_why(f), "destroying failed: the runtime did not say whether it "
					  "is in use"));
	f->fail[FX_LIST] = 0;
	fx_advance(f, 2 * CK_NS_PER_S);
	assert_int_equal(fx_decision(f, turn), CK_CREATE);
	ck_turn_free(turn);
}

static void conflict_names_paths_and_no_values(void **state) /* K11 */
{
	struct fixture *f = *state;
	struct fx_ask ask = fx_container("web", "s0", "app"), changed = ask;
	struct ck_turn *turn;
	fx_open(f);
	fx_commit(f, &ask, "c1");
	changed.env = "value-of-level";
	assert_int_equal(fx_begin(f, &changed, &turn), -CK_ECONFLICT);
	assert_string_equal(f->err.text,
			    "container shop/web/app attempt 0 exists: config.envs[LEVEL]");
	assert_int_equal(ck_error_grpc(&f->err), 6);
	assert_int_equal(f->asked[FX_DESTROY], 0);
	assert_int_equal(fx_begin(f, &ask, &turn), CK_HAND_BACK); /* K5 */
	ck_turn_free(turn);
}

static void an_ended_resource_is_not_served(void **state) /* K5 */
{
	struct fixture *f = *state;
	struct fx_ask ask = fx_container("web", "s0", "app");
	fx_open(f);
	fx_commit(f, &ask, "c1");
	assert_int_equal(ck_object_seen(f->cache, CK_CONTAINER, "c1", CK_CONDITION_DEAD), 0);
	struct ck_turn *turn = fx_create(f, &ask); /* the runtime will judge it */
	struct ck_status why = { .size = sizeof(why), .grpc = 6, .message = "name is reserved" };
	assert_int_equal(ck_turn_fail(turn, &why, &f->err), 0);
	ck_turn_free(turn);
	assert_int_equal(ck_object_seen(f->cache, CK_CONTAINER, "c2", CK_CONDITION_DEAD),
			 -CK_ENOTFOUND);
}

static void an_expired_request_moves_nothing(void **state) /* K9 */
{
	struct fixture *f = *state;
	struct fx_ask ask = fx_sandbox("web"), stale = ask;
	struct ck_turn *turn;
	fx_open(f);
	fx_keep(f, &ask, "s1");
	stale.attempt = 1;
	stale.expired = true;
	assert_int_equal(fx_begin(f, &stale, &turn), -CK_EDEADLINE);
	assert_int_equal(ck_error_grpc(&f->err), 4);
	fx_settle(f);
	assert_string_equal(fx_rows(f), "KEPT s1");
}

static void one_uid_has_one_name(void **state) /* K9 */
{
	struct fixture *f = *state;
	struct fx_ask ask = fx_sandbox("web"), other = ask;
	struct ck_turn *turn;
	fx_open(f);
	fx_keep(f, &ask, "s1");
	other.name = "other";
	assert_int_equal(fx_begin(f, &other, &turn), -CK_EINVAL);
	other.name = "web";
	other.ns = "else";
	assert_int_equal(fx_begin(f, &other, &turn), -CK_EINVAL);
	assert_string_equal(fx_rows(f), "KEPT s1");
}

static void the_time_to_live_ends_a_kept_result(void **state) /* K15 */
{
	struct fixture *f = *state;
	struct fx_ask ask = fx_sandbox("web");
	fx_open(f);
	fx_keep(f, &ask, "s1");
	fx_advance(f, 599 * S);
	assert_int_equal(f->asked[FX_DESTROY], 0);
	fx_advance(f, 1 * S);
	assert_true(fx_was_destroyed(f, "s1"));
	assert_string_equal(fx_rows(f), "GONE s1");
	assert_int_equal(fx_hides(f, &ask, "s1"), 1); /* K21 */
	fx_advance(f, 61 * S);
	assert_string_equal(fx_rows(f), "");
}

static void a_dead_result_is_not_handed_back(void **state) /* K6 */
{
	struct fixture *f = *state;
	struct fx_ask ask = fx_container("web", "s0", "app");
	fx_open(f);
	fx_keep(f, &ask, "c1");
	fx_condition(f, "c1", CK_CONDITION_DEAD);
	struct ck_turn *turn = fx_wait(f, &ask);
	assert_int_equal(fx_decision(f, turn), CK_CREATE);
	assert_true(fx_was_destroyed(f, "c1"));
	assert_int_equal(fx_make(f, turn, &ask, "c2"), CK_HAND_BACK);
	ck_turn_free(turn);
}

static void a_runtime_that_does_not_know_is_asked_again(void **state) /* K6 */
{
	struct fixture *f = *state;
	struct fx_ask ask = fx_container("web", "s0", "app");
	fx_open(f);
	fx_keep(f, &ask, "c1");
	f->fail[FX_INSPECT] = 14;
	struct ck_turn *turn = fx_wait(f, &ask);
	fx_advance(f, 2 * S);
	assert_int_equal(f->asked[FX_INSPECT], 5); /* each 0.5 s */
	f->fail[FX_INSPECT] = 0;
	fx_advance(f, S);
	fx_answered_with(f, turn, "c1");
	ck_turn_free(turn);
}

static void leaving_ends_a_waiting_turn_and_keeps_the_result(void **state)
{
	struct fixture *f = *state;
	struct fx_ask ask = fx_sandbox("web");
	fx_open(f);
	struct ck_turn *creator = fx_create(f, &ask), *again = fx_wait(f, &ask);
	ck_turn_leave(again);
	ck_turn_leave(again);
	ck_turn_leave(creator);
	ck_turn_leave(NULL);
	assert_int_equal(fx_make(f, creator, &ask, "s1"), CK_KEPT);
	ck_turn_leave(creator);
	ck_turn_free(creator);
	ck_turn_free(again);
	assert_string_equal(fx_rows(f), "KEPT s1");
}

/* ---- lost creations -------------------------------------------------------------------------- */

static void lost_creation_is_found_by_its_key(void **state) /* K8 */
{
	struct fixture *f = *state;
	struct fx_ask ask = fx_sandbox("web");
	fx_open(f);
	struct ck_turn *creator = fx_create(f, &ask), *again = fx_wait(f, &ask);
	assert_int_equal(ck_turn_lost(creator, &f->err), 0);
	assert_int_equal(ck_turn_lost(creator, &f->err), -CK_ESTATE);
	fx_exists(f, &ask, "s1");
	fx_advance(f, S);
	fx_answered_with(f, again, "s1");
	fx_answered_with(f, creator, "s1");
	ck_turn_free(creator);
	ck_turn_free(again);
}

static void an_unfinished_creator_that_is_freed_is_lost(void **state) /* K8 */
{
	struct fixture *f = *state;
	struct fx_ask ask = fx_sandbox("web");
	fx_open(f);
	ck_turn_free(fx_create(f, &ask));
	fx_exists(f, &ask, "s1");
	fx_advance(f, S);
	assert_string_equal(fx_rows(f), "KEPT s1");
}

static void a_creation_that_nobody_heard_of_was_not_begun(void **state) /* K8 */
{
	struct fixture *f = *state;
	struct fx_ask pod = fx_sandbox("web");
	f->fail[FX_LIST] = 14;
	fx_open(f);
	struct ck_turn *next = fx_wait(f, &pod), *turn = fx_wait(f, &pod);
	f->fail[FX_LIST] = 0;
	fx_advance(f, 3 * S); /* the newer is told to create it */
	assert_string_equal(fx_rows(f), "CREATING -");
	assert_int_equal(fx_decision(f, next), CK_WAIT);
	ck_turn_leave(turn);
	ck_turn_free(turn);
	assert_int_equal(fx_decision(f, next), CK_CREATE);
	assert_int_equal(fx_make(f, next, &pod, "s1"), CK_HAND_BACK);
	ck_turn_free(next);
	assert_string_equal(fx_rows(f), "COMMITTED s1");

	/* after the last one nothing remains */
	pod.attempt = 1;
	fx_close(f);
	f->fail[FX_LIST] = 14;
	fx_open(f);
	turn = fx_wait(f, &pod);
	f->fail[FX_LIST] = 0;
	fx_advance(f, 3 * S);
	assert_string_equal(fx_rows(f), "COMMITTED s1|CREATING -");
	ck_turn_free(turn);
	assert_string_equal(fx_rows(f), "COMMITTED s1");
}

static void a_second_request_that_nobody_heard_of_leaves_the_first_lost(void **state) /* K8 */
{
	struct fixture *f = *state;
	struct fx_ask ask = fx_sandbox("web");
	ask.timeout = 240 * S;
	fx_open(f);
	struct ck_turn *creator = fx_create(f, &ask), *again = fx_wait(f, &ask);
	ck_turn_lost(creator, NULL);
	ck_turn_free(creator);
	fx_advance(f, 15 * S);
	/* it is told to create, but never fetches that */
	assert_true(again->m.again);
	ck_turn_free(again);
	fx_exists(f, &ask, "s1");
	fx_advance(f, 6 * S);
	assert_string_equal(fx_rows(f), "KEPT s1"); /* the first one has succeeded */
}

static void lost_and_absent_creation_is_sent_once_again(void **state) /* K8 */
{
	struct fixture *f = *state;
	struct fx_ask ask = fx_sandbox("web");
	struct ck_status exists = { .size = sizeof(exists),
				    .grpc = 6,
				    .message = "name is reserved" };
	ask.timeout = 240 * S;
	fx_open(f);
	struct ck_turn *creator = fx_create(f, &ask), *again = fx_wait(f, &ask);
	ck_turn_lost(creator, NULL);
	ck_turn_free(creator);
	fx_advance(f, 15 * S);
	assert_int_equal(fx_decision(f, again), CK_CREATE);
	/* so it is still running */
	assert_int_equal(ck_turn_fail(again, &exists, &f->err), CK_WAIT);
	fx_advance(f, 2 * S);
	assert_int_equal(fx_decision(f, again), CK_WAIT);
	fx_exists(f, &ask, "s1");
	fx_advance(f, 6 * S);
	fx_answered_with(f, again, "s1");
	ck_turn_free(again);
}

static void lost_creation_nobody_sees_ends_after_its_grace(void **state) /* K8 */
{
	struct fixture *f = *state;
	struct fx_ask ask = fx_sandbox("web");
	fx_open(f);
	ck_turn_free(fx_create(f, &ask));
	fx_advance(f, 60 * S);
	assert_string_equal(fx_rows(f), "UNKNOWN -"); /* nobody waits: the whole create deadline */
	fx_advance(f, 900 * S);
	assert_string_equal(fx_rows(f), "");
}

/* ---- stop, remove, forget, seen, answered ---------------------------------------------------- */

static void stopping_evicts_what_is_not_committed(void **state) /* K16 */
{
	struct fixture *f = *state;
	struct fx_ask pod = fx_sandbox("web"), app = fx_container("web", "s1", "app"),
		      side = fx_container("web", "s1", "side"),
		      late = fx_container("web", "s1", "late");
	struct ck_turn *turn;
	fx_open(f);
	fx_commit(f, &pod, "s1");
	fx_commit(f, &app, "c1");
	fx_keep(f, &side, "c2");
	struct ck_turn *creator = fx_create(f, &late);
	assert_int_equal(ck_sandbox_stopping(f->cache, "s1"), 0);
	assert_int_equal(fx_decision(f, creator), -CK_EABANDONED);
	assert_int_equal(fx_make(f, creator, &late, "c3"), -CK_EABANDONED);
	ck_turn_free(creator);
	fx_settle(f);
	assert_true(fx_was_destroyed(f, "c2"));
	assert_true(fx_was_destroyed(f, "c3"));
	assert_false(fx_was_destroyed(f, "c1"));
	assert_int_equal(fx_begin(f, &late, &turn), -CK_EPRECONDITION);
	assert_int_equal(ck_error_grpc(&f->err), 9);
}

static void stopping_an_unknown_sandbox_refuses_creates_in_it(void **state) /* K16 */
{
	struct fixture *f = *state;
	struct fx_ask app = fx_container("web", "unknown", "app");
	struct ck_turn *turn;
	fx_open(f);
	assert_int_equal(ck_sandbox_stopping(f->cache, "unknown"), 0);
	assert_int_equal(ck_sandbox_stopping(f->cache, "unknown"), 0);
	assert_int_equal(fx_begin(f, &app, &turn), -CK_EPRECONDITION);
	assert_int_equal(ck_object_removed(f->cache, CK_SANDBOX, "unknown"), 0);
	turn = fx_create(f, &app);
	ck_turn_free(turn);
}

/* K16. Nothing tells that it exists. */
static void stopping_an_unknown_sandbox_leaves_no_row(void **state)
{
	struct fixture *f = *state;
	struct fx_ask app = fx_container("web", "unknown", "app");
	struct ck_turn *turn;
	fx_open(f);
	for (unsigned i = 0; i < 2 * CK_STOPS_MAX; i++) {
		char id[32];
		snprintf(id, sizeof(id), "unknown-%u", i);
		assert_int_equal(ck_sandbox_stopping(f->cache, id), 0);
	}
	assert_int_equal(ck_sandbox_stopping(f->cache, "unknown"), 0);
	assert_string_equal(fx_rows(f), "");
	assert_null(strstr(f->log, "found in the runtime"));
	fx_reopen(f);
	assert_string_equal(fx_rows(f), "");
	/* it was no more than a word of the last life; the runtime refuses what is in the way */
	fx_settle(f);
	turn = fx_create(f, &app);
	ck_turn_free(turn);
}

/* K1, K16 */
static void a_stop_of_an_id_that_nobody_was_told_does_not_take_it_from_its_creation(void **state)
{
	struct fixture *f = *state;
	struct fx_ask web = fx_sandbox("web");
	fx_open(f);
	struct ck_turn *creator = fx_create(f, &web);
	/* perhaps somebody read the id in a list of processes */
	assert_int_equal(ck_sandbox_stopping(f->cache, "s1"), 0);
	fx_advance(f, 10 * S);
	assert_int_equal(fx_make(f, creator, &web, "s1"), CK_KEPT);
	ck_turn_free(creator);
	assert_string_equal(fx_rows(f), "KEPT s1");
	assert_int_equal(fx_hides(f, &web, "s1"), 1);
	creator = fx_wait(f, &web);
	fx_answered_with(f, creator, "s1");
	ck_turn_free(creator);
}

static void removal_waits_for_creates_in_flight(void **state) /* K16 */
{
	struct fixture *f = *state;
	struct fx_ask pod = fx_sandbox("web"), app = fx_container("web", "s1", "app");
	struct ck_turn *removal, *none;
	fx_open(f);
	fx_commit(f, &pod, "s1");
	assert_int_equal(ck_remove_begin(f->cache, CK_CONTAINER, "c9", 10 * S, &none, &f->err),
			 CK_DRAINED);
	ck_turn_free(none);
	struct ck_turn *creator = fx_create(f, &app);
	assert_int_equal(ck_remove_begin(f->cache, CK_SANDBOX, "s1", 10 * S, &removal, &f->err),
			 CK_WAIT);
	assert_int_equal(fx_make(f, creator, &app, "c1"), -CK_EABANDONED);
	ck_turn_free(creator);
	assert_int_equal(fx_decision(f, removal), CK_DRAINED);
	assert_true(fx_was_destroyed(f, "c1"));
	fx_vanish(f, "s1");
	assert_int_equal(ck_object_removed(f->cache, CK_SANDBOX, "s1"), 0);
	assert_int_equal(ck_object_removed(f->cache, CK_SANDBOX, "s1"), -CK_ENOTFOUND);
	ck_turn_free(removal);
	struct ck_turn *next = fx_create(f, &pod); /* its key is free again */
	ck_turn_free(next);
}

static void removal_gives_up_at_its_margin(void **state) /* K16 */
{
	struct fixture *f = *state;
	struct fx_ask app = fx_container("web", "s1", "app");
	struct ck_turn *creator, *removal = fx_removal_waits(f, &app, 10 * S, &creator);
	fx_advance(f, 9800 * CK_NS_PER_MS);
	assert_int_equal(fx_decision(f, removal), CK_BUSY);
	assert_non_null(strstr(ck_turn_error(removal)->text, "containers of the sandbox"));
	ck_turn_free(removal);
	fx_make(f, creator, &app, "c1");
	ck_turn_free(creator);
	fx_settle(f);
	assert_true(fx_was_destroyed(f, "c1")); /* a late one */
}

static void a_removal_that_failed_does_not_block_the_key(void **state) /* K5 */
{
	struct fixture *f = *state;
	struct fx_ask app = fx_container("web", "s0", "app");
	struct ck_turn *removal, *again;
	fx_open(f);
	fx_commit(f, &app, "c1");
	assert_int_equal(ck_remove_begin(f->cache, CK_CONTAINER, "c1", 10 * S, &removal, &f->err),
			 CK_DRAINED);
	again = fx_wait(f, &app); /* a removal is in flight */
	ck_turn_free(removal);    /* it failed: ck_object_removed() was not called */
	fx_answered_with(f, again, "c1");
	ck_turn_free(again);
}

static void forgetting_a_sandbox_forgets_its_containers(void **state) /* K16 */
{
	struct fixture *f = *state;
	struct fx_ask pod = fx_sandbox("web"), app = fx_container("web", "s1", "app");
	fx_open(f);
	fx_commit(f, &pod, "s1");
	fx_commit(f, &app, "c1");
	assert_int_equal(ck_object_removed(f->cache, CK_SANDBOX, "s1"), 0);
	assert_string_equal(fx_rows(f), "");
	assert_int_equal(ck_object_removed(f->cache, CK_CONTAINER, "c1"), -CK_ENOTFOUND);
	assert_int_equal(f->asked[FX_DESTROY], 0);
}

static void forgetting_an_unknown_sandbox_evicts_what_was_to_live_in_it(void **state) /* K16 */
{
	struct fixture *f = *state;
	struct fx_ask app = fx_container("web", "unknown", "app");
	fx_open(f);
	fx_keep(f, &app, "c1");
	assert_int_equal(ck_object_removed(f->cache, CK_SANDBOX, "unknown"), -CK_ENOTFOUND);
	fx_settle(f);
	assert_true(fx_was_destroyed(f, "c1"));
}

static void lost_answer_makes_a_container_kept_again(void **state) /* K7 */
{
	struct fixture *f = *state;
	struct fx_ask app = fx_container("web", "s0", "app"), pod = fx_sandbox("pod");
	struct ck_turn *turn;
	fx_open(f);
	turn = fx_create(f, &app);
	assert_int_equal(fx_make(f, turn, &app, "c1"), CK_HAND_BACK);
	assert_int_equal(ck_turn_answered(turn, CK_LOST), 0);
	assert_int_equal(ck_turn_answered(turn, CK_LOST), 0);
	ck_turn_free(turn);
	assert_string_equal(fx_rows(f), "KEPT c1");
	turn = fx_wait(f, &app);
	fx_answered_with(f, turn, "c1");
	/* a call uses the id: the answer has arrived */
	ck_object_used(f->cache, CK_CONTAINER, "c1");
	ck_turn_answered(turn, CK_LOST);
	ck_turn_free(turn);
	assert_string_equal(fx_rows(f), "COMMITTED c1");
	turn = fx_create(f, &pod);
	assert_int_equal(fx_make(f, turn, &pod, "s1"), CK_HAND_BACK);
	ck_turn_answered(turn, CK_LOST); /* the kubelet finds a sandbox in its list */
	ck_turn_free(turn);
	assert_string_equal(fx_rows(f), "COMMITTED c1|COMMITTED s1");
	assert_int_equal(ck_object_used(f->cache, CK_CONTAINER, "c2"), -CK_ENOTFOUND);
}

static void a_start_of_what_was_kept_again_is_its_delivery(void **state) /* K7 */
{
	struct fixture *f = *state;
	struct fx_ask app = fx_container("web", "s0", "app"),
		      other = fx_container("web", "s0", "b");
	fx_open(f);
	fx_keep(f, &other, "c2"); /* nobody was told its id */
	struct ck_turn *turn = fx_create(f, &app);
	assert_int_equal(fx_make(f, turn, &app, "c1"), CK_HAND_BACK);
	ck_turn_free(turn);
	fx_reopen(f); /* kill -9 before the answer is confirmed */
	fx_settle(f);
	assert_string_equal(fx_rows(f), "KEPT c2|KEPT c1");
	assert_int_equal(ck_object_used(f->cache, CK_CONTAINER, "c1"), -CK_ENOTFOUND);
	assert_int_equal(fx_hides(f, &app, "c1"), 1);
	assert_int_equal(ck_container_starting(f->cache, "c1"), 0);
	assert_string_equal(fx_rows(f), "KEPT c2|COMMITTED c1");
	assert_int_equal(fx_hides(f, &app, "c1"), 0);
	assert_int_equal(ck_container_starting(f->cache, "c1"), 0);
	assert_int_equal(ck_container_starting(f->cache, "c2"), -CK_ENOTFOUND);
	assert_int_equal(ck_container_starting(f->cache, "c"), -CK_ENOTFOUND);
	fx_reopen(f);
	fx_settle(f);
	assert_string_equal(fx_rows(f), "KEPT c2|COMMITTED c1");
}

static void an_offered_sandbox_is_committed_when_it_exists(void **state) /* K2 */
{
	struct fixture *f = *state;
	struct fx_ask pod = fx_sandbox("web"), app = fx_container("web", "s1", "app");
	f->options.hand_back = CK_OFFER;
	fx_open(f);
	fx_keep(f, &pod, "s1"); /* its caller is told that it is late */
	assert_string_equal(fx_rows(f), "COMMITTED s1");
	assert_int_equal(fx_hides(f, &pod, "s1"), 0);
	fx_keep(f, &app, "c1"); /* never for containers */
	assert_string_equal(fx_rows(f), "COMMITTED s1|KEPT c1");
}

/* ---- destroying ------------------------------------------------------------------------------ */

static void a_destroy_is_tried_until_it_is_confirmed(void **state) /* K17, K18 */
{
	struct fixture *f = *state;
	struct fx_ask app = fx_container("web", "s0", "app"), changed = app;
	fx_open(f);
	fx_keep(f, &app, "c1");
	f->fail[FX_DESTROY] = 14;
	changed.env = "debug";
	changed.timeout = 5 * S;
	struct ck_turn *turn = fx_wait(f, &changed);
	fx_advance(f, 4800 * CK_NS_PER_MS);
	assert_int_equal(fx_decision(f, turn), -CK_EUNAVAILABLE);
	assert_string_equal(f->err.text, "container shop/web/app attempt 0: removing the earlier "
					 "result, try 4: UNAVAILABLE");
	ck_turn_free(turn);
	fx_advance(f, 3600 * S);
	assert_in_range(f->asked[FX_DESTROY], 60, 75); /* later, once a minute */
	f->fail[FX_DESTROY] = 5; /* NOT_FOUND confirms */
	for (unsigned asked = f->asked[FX_DESTROY]; asked == f->asked[FX_DESTROY];)
		/* the back-off has jitter, and a tombstone stays only for a minute */
		fx_advance(f, S);
	assert_string_equal(fx_rows(f), "GONE c1");
}

static void a_destroy_without_an_answer_has_failed(void **state) /* K18 */
{
	struct fixture *f = *state;
	struct fx_ask app = fx_container("web", "s0", "app");
	fx_open(f);
	fx_keep(f, &app, "c1");
	f->hold[FX_DESTROY] = true;
	fx_advance(f, 600 * S);
	assert_int_equal(f->asked[FX_DESTROY], 1);
	fx_advance(f, 65 * S);
	assert_int_equal(f->asked[FX_DESTROY], 2);
	fx_release(f, FX_DESTROY); /* the late answer confirms it, too */
	fx_settle(f);
	assert_string_equal(fx_rows(f), "GONE c1");
}

static void what_is_in_use_is_not_destroyed(void **state) /* K22 */
{
	struct fixture *f = *state;
	struct fx_ask pod = fx_sandbox("web"), stranger = fx_container("web", "s1", "stranger");
	fx_open(f);
	fx_keep(f, &pod, "s1");
	fx_exists(f, &stranger, "c9");
	fx_advance(f, 700 * S);
	assert_int_equal(f->asked[FX_DESTROY], 0);
	assert_string_equal(fx_rows(f), "COMMITTED s1");
	assert_non_null(strstr(f->log, "found in use"));
}

/* ---- views ----------------------------------------------------------------------------------- */

static void uncommitted_is_hidden_by_key_and_by_id(void **state)
{
	struct fixture *f = *state;
	struct fx_ask pod = fx_sandbox("web"), other = fx_sandbox("other"), next = pod;
	next.attempt = 1;
	fx_open(f);
	struct ck_turn *turn = fx_create(f, &pod);
	assert_int_equal(fx_hides(f, &pod, "s1"), 1); /* its id is not known yet */
	assert_int_equal(fx_hides(f, &next, "s1"), 0);
	assert_int_equal(fx_hides(f, &other, "s1"), 0);
	fx_advance(f, 11 * S);
	assert_int_equal(fx_make(f, turn, &pod, "s1"), CK_KEPT);
	ck_turn_free(turn);
	assert_int_equal(fx_hides(f, &pod, "s1"), 1);
	assert_int_equal(fx_hides(f, &other, "s1"), 1);
	assert_int_equal(fx_hides(f, &pod, "s2"), 0);
	struct ck_turn *again = fx_wait(f, &pod);
	fx_answered_with(f, again, "s1");
	ck_turn_free(again);
	assert_int_equal(fx_hides(f, &pod, "s1"), 0);
}

/* only its id is known: only an entry with that id can hide it */
static int hides_id(struct fixture *f, const char *id)
{
	const struct ck_object o = { .size = sizeof(o), .kind = CK_SANDBOX, .id = id };
	struct ck_view *view;
	assert_int_equal(ck_view_begin(f->cache, &view, &f->err), 0);
	int r = ck_view_hides(view, &o);
	ck_view_free(view);
	return r;
}

/* views share a set of hidden ids; after each change comes a view that had its first question
 * before it */
static void a_view_sees_all_that_changed_before_it_was_asked(void **state)
{
	struct fixture *f = *state;
	struct fx_ask pod = fx_sandbox("web"), next = pod, kept = fx_sandbox("kept"),
		      failing = fx_sandbox("failing");
	next.attempt = 1;
	fx_open(f);
	assert_int_equal(fx_hides(f, &failing, "s0"), 0);
	struct ck_turn *turn = fx_create(f, &failing);
	assert_int_equal(fx_hides(f, &failing, "s0"), 1); /* begun */
	const struct ck_status why = { .size = sizeof(why), .grpc = 13, .message = "no" };
	assert_int_equal(ck_turn_fail(turn, &why, &f->err), 0);
	ck_turn_free(turn);
	assert_int_equal(fx_hides(f, &failing, "s0"), 0); /* failed */

	turn = fx_create(f, &pod);
	assert_int_equal(ck_turn_lost(turn, &f->err), 0);
	ck_turn_free(turn);
	/* the first one is evicted, and its id does not matter */
	struct ck_turn *successor = fx_wait(f, &next);
	assert_int_equal(fx_hides(f, &pod, "s1"), 1);
	assert_int_equal(hides_id(f, "s1"), 0);
	f->hold[FX_DESTROY] = true;
	fx_exists(f, &pod, "s1");
	fx_advance(f, 1 * S);
	assert_int_equal(f->asked[FX_DESTROY], 1);
	assert_int_equal(hides_id(f, "s1"), 1); /* found */
	f->hold[FX_DESTROY] = false;
	assert_int_equal(fx_release(f, FX_DESTROY), 1);
	fx_settle(f);
	ck_turn_free(successor);

	fx_keep(f, &kept, "s2");
	assert_int_equal(fx_hides(f, &kept, "s2"), 1);
	turn = fx_wait(f, &kept);
	fx_answered_with(f, turn, "s2");
	ck_turn_free(turn);
	assert_int_equal(fx_hides(f, &kept, "s2"), 0); /* committed */
	assert_int_equal(hides_id(f, "s1"), 1);
	fx_advance(f, 61 * S);
	assert_int_equal(hides_id(f, "s1"), 0); /* its tombstone is gone (K21) */
}

/* crictl sets no labels: its containers are listed with sandbox, name and attempt, and named by id
 * alone */
static void what_a_list_shows_while_it_is_made_is_hidden_by_its_id(void **state)
{
	struct fixture *f = *state;
	struct fx_ask pod = fx_sandbox("web"), app = fx_container("web", "s1", "app");
	struct ck_object listed = { .size = sizeof(listed),
				    .kind = CK_CONTAINER,
				    .condition = CK_CONDITION_READY,
				    .id = "c1",
				    .sandbox_id = "s1",
				    .container_name = "app" };
	const struct ck_object by_id = { .size = sizeof(by_id), .kind = CK_CONTAINER, .id = "c1" };
	struct ck_view *view;
	const char *id;
	fx_open(f);
	fx_commit(f, &pod, "s1");
	struct ck_turn *turn = fx_create(f, &app);
	assert_int_equal(ck_view_begin(f->cache, &view, &f->err), 0);
	assert_int_equal(ck_view_resolve(view, CK_CONTAINER, "c1", &id), 0);
	assert_int_equal(ck_view_hides(view, &listed), 1);
	assert_int_equal(ck_view_listed(view, CK_CONTAINER, &listed, 1), 0);
	ck_view_free(view);
	/* it was not imported as another object */
	assert_string_equal(fx_rows(f), "COMMITTED s1|CREATING -");
	assert_int_equal(ck_view_begin(f->cache, &view, &f->err), 0);
	assert_int_equal(ck_view_resolve(view, CK_CONTAINER, "c1", &id), -CK_ENOTFOUND);
	assert_int_equal(ck_view_hides(view, &by_id), 1);
	ck_view_free(view);
	assert_int_equal(fx_make(f, turn, &app, "c1"), CK_HAND_BACK);
	ck_turn_free(turn);
	assert_int_equal(ck_view_begin(f->cache, &view, &f->err), 0);
	assert_int_equal(ck_view_resolve(view, CK_CONTAINER, "c1", &id), 1);
	assert_int_equal(ck_view_hides(view, &by_id), 0);
	ck_view_free(view);
}

static void a_view_does_not_change_after_its_first_question(void **state)
{
	struct fixture *f = *state;
	struct fx_ask pod = fx_sandbox("web");
	struct ck_object o = { .size = sizeof(o), .kind = CK_SANDBOX, .id = "s1" };
	struct ck_view *before, *unasked;
	fx_open(f);
	fx_keep(f, &pod, "s1");
	assert_int_equal(ck_view_begin(f->cache, &before, &f->err), 0);
	assert_int_equal(ck_view_begin(f->cache, &unasked, &f->err), 0);
	assert_int_equal(ck_view_hides(before, &o), 1);
	struct ck_turn *turn = fx_wait(f, &pod);
	fx_answered_with(f, turn, "s1");
	ck_turn_free(turn);
	assert_int_equal(ck_view_hides(before, &o), 1);
	assert_int_equal(ck_view_hides(unasked, &o), 0);
	ck_view_free(before);
	ck_view_free(unasked);
	ck_view_free(NULL);
}

static void a_tombstone_outlives_the_lists_begun_before_it(void **state) /* K21 */
{
	struct fixture *f = *state;
	struct fx_ask pod = fx_sandbox("web");
	struct ck_object o = { .size = sizeof(o), .kind = CK_SANDBOX, .id = "s1" };
	struct ck_view *old;
	fx_open(f);
	fx_keep(f, &pod, "s1");
	assert_int_equal(ck_view_begin(f->cache, &old, &f->err), 0);
	fx_advance(f, 800 * S);
	assert_true(fx_was_destroyed(f, "s1"));
	assert_int_equal(ck_view_hides(old, &o), 1);
	ck_view_free(old);
	fx_advance(f, 3 * S);
	assert_string_equal(fx_rows(f), "");
}

static bool hides(struct ck_view *view, const char *id)
{
	struct ck_object o = { .size = sizeof(o), .kind = CK_SANDBOX, .id = id };
	return ck_view_hides(view, &o) == 1;
}

/* its host gives ids by name: what was destroyed comes back under the same id */
static void an_id_may_come_back_when_it_was_destroyed(void **state) /* K21 */
{
	struct fixture *f = *state;
	struct fx_ask pod = fx_sandbox("web");
	struct ck_view *old, *asked, *new;
	fx_open(f);
	fx_keep(f, &pod, "s1");
	assert_int_equal(ck_view_begin(f->cache, &old, &f->err), 0);
	assert_int_equal(ck_view_begin(f->cache, &asked, &f->err), 0);
	assert_true(hides(asked, "s1"));
	fx_advance(f, 601 * S);
	assert_true(fx_was_destroyed(f, "s1"));
	assert_string_equal(fx_rows(f), "GONE s1");
	struct ck_turn *turn = fx_create(f, &pod);
	assert_int_equal(fx_make(f, turn, &pod, "s1"), CK_HAND_BACK);
	assert_string_equal(fx_rows(f), "COMMITTED s1");
	ck_turn_free(turn);
	assert_int_equal(ck_view_begin(f->cache, &new, &f->err), 0);
	assert_false(hides(new, "s1"));
	/* their lists were begun when the id had another object */
	assert_true(hides(asked, "s1"));
	assert_true(hides(old, "s1"));
	ck_view_free(old);
	ck_view_free(asked);
	ck_view_free(new);
	fx_reopen(f);
	assert_int_equal(fx_hides(f, &pod, "s1"), 0);
}

static void an_id_that_is_still_being_destroyed_may_not(void **state) /* K21 */
{
	struct fixture *f = *state;
	struct fx_ask pod = fx_sandbox("web"), other = fx_sandbox("other");
	fx_open(f);
	fx_keep(f, &pod, "s1");
	f->hold[FX_DESTROY] = true;
	fx_advance(f, 601 * S);
	struct ck_turn *turn = fx_create(f, &other);
	assert_int_equal(fx_make(f, turn, &other, "s1"), -CK_EINVAL);
	assert_int_equal(fx_make(f, turn, &other, "s2"), CK_HAND_BACK);
	ck_turn_free(turn);
	fx_release(f, FX_DESTROY);
}

static void a_prefix_of_hidden_ids_names_nothing(void **state)
{
	struct fixture *f = *state;
	struct fx_ask web = fx_sandbox("web"), api = fx_sandbox("api"), db = fx_sandbox("db");
	struct ck_view *view;
	const char *id;
	fx_open(f);
	fx_keep(f, &web, "aabb01");
	fx_commit(f, &api, "aacc02");
	fx_commit(f, &db, "aacc03");
	assert_int_equal(ck_view_begin(f->cache, &view, &f->err), 0);
	assert_int_equal(ck_view_resolve(view, CK_SANDBOX, "aab", &id), -CK_ENOTFOUND);
	assert_int_equal(ck_view_resolve(view, CK_SANDBOX, "aabb01", &id), -CK_ENOTFOUND);
	assert_int_equal(ck_view_resolve(view, CK_SANDBOX, "aacc02", &id), 1);
	assert_string_equal(id, "aacc02");
	assert_int_equal(ck_view_resolve(view, CK_SANDBOX, "aacc03", &id), 1);
	assert_string_equal(id, "aacc03");
	/* ambiguous: the runtime decides */
	assert_int_equal(ck_view_resolve(view, CK_SANDBOX, "aacc", &id), 0);
	assert_string_equal(id, "aacc");
	assert_int_equal(ck_view_resolve(view, CK_SANDBOX, "ff", &id), 0);
	assert_string_equal(id, "ff");
	assert_int_equal(ck_view_resolve(view, CK_CONTAINER, "aab", &id), 0);
	ck_view_free(view);
}

static void a_list_that_passes_reconciles(void **state) /* K24, K27 */
{
	struct fixture *f = *state;
	struct fx_ask pod = fx_sandbox("web");
	struct ck_object stranger = { .size = sizeof(stranger),
				      .kind = CK_SANDBOX,
				      .condition = CK_CONDITION_READY,
				      .id = "s9",
				      .pod_name = "old",
				      .pod_namespace = "shop",
				      .pod_uid = "uid-old" };
	struct ck_view *view;
	fx_open(f);
	assert_int_equal(ck_view_begin(f->cache, &view, &f->err), 0);
	fx_commit(f, &pod, "s1"); /* it came after the list began, so its absence proves nothing */
	assert_int_equal(ck_view_listed(view, CK_SANDBOX, &stranger, 1), 0);
	ck_view_free(view);
	assert_string_equal(fx_rows(f), "COMMITTED s1|COMMITTED s9");
	assert_int_equal(ck_view_begin(f->cache, &view, &f->err), 0);
	assert_int_equal(ck_view_listed(view, CK_SANDBOX, &stranger, 1), 0);
	ck_view_free(view);
	assert_string_equal(fx_rows(f), "COMMITTED s9");
	struct fx_ask old = fx_sandbox("old");
	struct ck_turn *turn;
	assert_int_equal(fx_begin(f, &old, &turn), -CK_ECONFLICT); /* K27: it is never handed out */
	fx_settle(f);
	const char *imported = strstr(f->log, "found in the runtime");
	assert_non_null(imported);
	/* nobody knows when it was asked for */
	assert_null(memmem(imported, strcspn(imported, "\n"), "after=", 6));
	assert_int_equal(f->asked[FX_DESTROY], 0);
}

/* ---- the same request ------------------------------------------------------------------------ */

static void two_references_of_one_image_are_the_same(void **state)
{
	struct fixture *f = *state;
	struct fx_ask app = fx_container("web", "s0", "app"), again = app;
	snprintf(f->resolved, sizeof(f->resolved), "sha256:0123");
	again.image = "sha256:0123";
	fx_open(f);
	struct ck_turn *turn = fx_create(f, &app);
	fx_wait_asked(f, FX_RESOLVE, 1);
	fx_advance(f, 11 * S);
	assert_int_equal(fx_make(f, turn, &app, "c1"), CK_KEPT);
	ck_turn_free(turn);
	turn = fx_wait(f, &again);
	fx_answered_with(f, turn, "c1");
	ck_turn_free(turn);
	assert_int_equal(f->asked[FX_DESTROY], 0);
}

static void two_images_are_not_the_same(void **state)
{
	struct fixture *f = *state;
	struct fx_ask app = fx_container("web", "s0", "app"), again = app;
	snprintf(f->resolved, sizeof(f->resolved), "sha256:0123");
	again.image = "registry/app:2";
	fx_open(f);
	f->fail[FX_RESOLVE] = 5;
	fx_keep(f, &app, "c1");
	struct ck_turn *turn = fx_wait(f, &again);
	assert_int_equal(fx_decision(f, turn), CK_CREATE);
	assert_true(fx_was_destroyed(f, "c1"));
	ck_turn_free(turn);
}

static void a_turn_may_go_while_its_image_is_resolved(void **state)
{
	struct fixture *f = *state;
	struct fx_ask app = fx_container("web", "s0", "app"), again = app;
	snprintf(f->resolved, sizeof(f->resolved), "sha256:0123");
	again.image = "sha256:0123";
	fx_open(f);
	fx_keep(f, &app, "c1");
	f->hold[FX_RESOLVE] = true;
	struct ck_turn *turn = fx_wait(f, &again);
	fx_settle(f);
	ck_turn_free(turn);
	assert_int_equal(fx_release(f, FX_RESOLVE), 1);
	turn = fx_wait(f, &again);
	fx_answered_with(f, turn, "c1");
	ck_turn_free(turn);
}

static void ignored_annotations_do_not_differ(void **state)
{
	struct fixture *f = *state;
	static const char *const ignored[] = { "net.example/*", NULL };
	struct fx_ask pod = fx_sandbox("web");
	pod.annotation = "net.example/address";
	f->options.ignore_annotations = ignored;
	fx_open(f);
	fx_keep(f, &pod, "s1");
	struct ck_turn *turn = fx_wait(f, &pod);
	fx_answered_with(f, turn, "s1");
	ck_turn_free(turn);
}

static void other_annotations_evict_only_if_the_host_says_so(void **state) /* K12 */
{
	struct fixture *f = *state;
	struct fx_ask pod = fx_sandbox("web");
	fx_open(f);
	fx_keep(f, &pod, "s1");
	pod.annotation = "other.example/turn";
	struct ck_turn *turn = fx_wait(f, &pod);
	fx_answered_with(f, turn, "s1");
	ck_turn_free(turn);
	fx_close(f);
	f->options.on_annotation_change = CK_ANNOTATION_EVICT;
	pod = fx_sandbox("db");
	fx_open(f);
	fx_keep(f, &pod, "s2");
	pod.annotation = "other.example/turn";
	turn = fx_wait(f, &pod);
	assert_int_equal(fx_decision(f, turn), CK_CREATE);
	assert_true(fx_was_destroyed(f, "s2"));
	ck_turn_free(turn);
}

static struct ck_turn *recorded(struct fixture *f, const char *name, enum ck_kind kind, int attempt,
				int *ret)
{
	unsigned char bytes[32768];
	struct ck_request request = {
		.size = sizeof(request), .kind = kind, .bytes = bytes, .timeout = 4 * S
	};
	struct ck_turn *turn = NULL;
	request.len = fx_recorded(name, kind, attempt, bytes, sizeof(bytes));
	*ret = ck_turn_begin(f->cache, &request, &turn, &f->err);
	return turn;
}

static void recorded_request_is_made_once_through_all_its_retries(void **state)
{
	struct fixture *f = *state;
	static const char *const tries[] = { "007-RunPodSandbox-web.bin",
					     "012-RunPodSandbox-web.bin" };
	int r;
	f->host.inspect = NULL; /* K6 hands back what it has */
	fx_open(f);
	struct ck_turn *turn = recorded(f, "002-RunPodSandbox-web.bin", CK_SANDBOX, -1, &r);
	assert_int_equal(r, CK_CREATE);
	struct ck_turn *again = recorded(f, "004-RunPodSandbox-web.bin", CK_SANDBOX, -1, &r);
	assert_int_equal(r, CK_WAIT);
	fx_advance(f, 20 * S);
	assert_int_equal(fx_decision(f, again), CK_BUSY);
	ck_turn_free(again);
	assert_int_equal(fx_finish(f, turn, "s1"), CK_KEPT);
	ck_turn_free(turn);
	for (size_t i = 0; i < sizeof(tries) / sizeof(*tries); i++) {
		turn = recorded(f, tries[i], CK_SANDBOX, -1, &r);
		assert_int_equal(r, CK_HAND_BACK);
		ck_turn_free(turn);
	}
	/* K9: attempt 1 of a committed pod: a new key */
	turn = recorded(f, "012-RunPodSandbox-web.bin", CK_SANDBOX, 1, &r);
	assert_int_equal(r, CK_CREATE);
	ck_turn_free(turn);
	turn = recorded(f, "013-CreateContainer-web-init.bin", CK_CONTAINER, -1, &r);
	assert_int_equal(r, CK_CREATE);
	assert_int_equal(fx_finish(f, turn, "c1"), CK_HAND_BACK);
	ck_turn_free(turn);
	/* one more mount */
	turn = recorded(f, "017-CreateContainer-web-init.bin", CK_CONTAINER, -1, &r);
	assert_int_equal(r, -CK_ECONFLICT);
	assert_non_null(strstr(f->err.text, "config.mounts[/etc/hosts]"));
}

/* ---- restart (K25) --------------------------------------------------------------------------- */

static void every_state_is_taken_up_after_a_restart(void **state)
{
	struct fixture *f = *state;
	struct fx_ask creating = fx_sandbox("creating"), kept = fx_sandbox("kept"),
		      committed = fx_sandbox("committed"), evicting = fx_sandbox("evicting"),
		      answered = fx_container("p", "s0", "answered"),
		      unanswered = fx_container("q", "s9", "unanswered");
	fx_open(f);
	fx_keep(f, &evicting, "s4");
	f->fail[FX_DESTROY] = 13;
	fx_advance(f, 610 * S);
	fx_keep(f, &kept, "s2");
	fx_commit(f, &committed, "s3");
	fx_commit(f, &answered, "c1");
	struct ck_turn *turn = fx_create(f, &unanswered);
	assert_int_equal(fx_make(f, turn, &unanswered, "c2"), CK_HAND_BACK);
	ck_turn_free(turn);
	struct ck_turn *creator = fx_create(f, &creating);
	fx_cut(f);
	assert_int_equal(fx_finish(f, creator, "s1"), -CK_ECLOSED);
	ck_turn_free(creator);
	assert_string_equal(
		fx_rows(f),
		"EVICTING s4|KEPT s2|COMMITTED s3|COMMITTED c1|COMMITTED c2|UNKNOWN -");

	fx_exists(f, &creating, "s1"); /* the runtime continued while we were down */
	f->fail[FX_DESTROY] = 0;
	fx_open(f);
	fx_advance(f, S);
	assert_string_equal(fx_rows(f),
			    "EVICTING s4|KEPT s2|COMMITTED s3|COMMITTED c1|KEPT c2|KEPT s1");
	fx_advance(f, 70 * S);
	assert_true(fx_was_destroyed(f, "s4"));
	turn = fx_wait(f, &creating);
	fx_answered_with(f, turn, "s1");
	ck_turn_free(turn);
	turn = fx_wait(f, &unanswered);
	fx_answered_with(f, turn, "c2");
	ck_turn_free(turn);
	assert_int_equal(fx_begin(f, &committed, &turn), CK_HAND_BACK);
	ck_turn_free(turn);
}

static void tombstones_outlive_a_restart(void **state) /* K21 */
{
	struct fixture *f = *state;
	struct fx_ask pod = fx_sandbox("web");
	fx_open(f);
	fx_keep(f, &pod, "s1");
	fx_advance(f, 601 * S);
	assert_string_equal(fx_rows(f), "GONE s1");
	fx_reopen(f);
	assert_int_equal(fx_hides(f, &pod, "s1"), 1);
	fx_advance(f, 61 * S);
	assert_string_equal(fx_rows(f), "");
}

/* also the counters: what 10,000 rows cost at an open is reading them */
static void a_restart_writes_only_what_it_changes(void **state)
{
	struct fixture *f = *state;
	struct fx_ask kept = fx_sandbox("kept"), gone = fx_sandbox("gone"),
		      committed = fx_sandbox("committed"), ended = fx_sandbox("ended");
	fx_open(f);
	fx_keep(f, &gone, "s1");
	fx_advance(f, 601 * S);
	fx_keep(f, &kept, "s2");
	fx_commit(f, &committed, "s3");
	fx_commit(f, &ended, "s4");
	fx_condition(f, "s4", CK_CONDITION_DEAD);
	ck_object_seen(f->cache, CK_SANDBOX, "s4", CK_CONDITION_DEAD);
	fx_settle(f);
	fx_reopen(f);
	assert_string_equal(fx_rows(f), "GONE s1|KEPT s2|COMMITTED s3|ENDED s4");
	assert_int_equal(sqlite3_total_changes(f->cache->store->db), 0);
	fx_close(f);
	f->now -= 100 * S; /* as if it were of the future */
	fx_open(f);
	assert_in_range(sqlite3_total_changes(f->cache->store->db), 1, 4);
	f->now += 1 * S;
	fx_reopen(f);
	assert_int_equal(sqlite3_total_changes(f->cache->store->db), 0);
}

static void nothing_expires_just_after_a_restart(void **state) /* K15 */
{
	struct fixture *f = *state;
	struct fx_ask pod = fx_sandbox("web");
	fx_open(f);
	fx_keep(f, &pod, "s1");
	fx_close(f);
	f->now += 7200 * S; /* nobody is alive */
	fx_open(f);
	fx_advance(f, 59 * S);
	assert_int_equal(f->asked[FX_DESTROY], 0);
	fx_advance(f, 2 * S);
	assert_true(fx_was_destroyed(f, "s1"));
}

static void a_row_of_another_key_is_not_comparable(void **state) /* K31 */
{
	struct fixture *f = *state;
	struct fx_ask pod = fx_sandbox("web");
	char path[512];
	fx_open(f);
	fx_keep(f, &pod, "s1");
	fx_close(f);
	snprintf(path, sizeof(path), "%s/key", f->dir);
	assert_int_equal(unlink(path), 0);
	fx_open(f);
	struct ck_turn *turn = fx_wait(f, &pod);
	assert_int_equal(fx_decision(f, turn), CK_CREATE);
	assert_true(fx_was_destroyed(f, "s1"));
	ck_turn_free(turn);
}

static void a_lost_key_is_in_history_and_log(void **state) /* K31 */
{
	struct fixture *f = *state;
	struct fx_ask pod = fx_sandbox("web");
	char path[sizeof(f->dir) + 8];
	fx_open(f);
	fx_keep(f, &pod, "s1");
	fx_reopen(f);
	fx_settle(f);
	assert_null(strstr(f->log, "key")); /* it is the same */
	assert_string_equal(fx_why(f), "");
	fx_close(f);
	snprintf(path, sizeof(path), "%s/key", f->dir);
	assert_int_equal(unlink(path), 0);
	fx_open(f);
	fx_settle(f);
	assert_non_null(strstr(f->log, "the digest key was missing or not valid"));
	assert_non_null(strstr(f->log, "1 result was made under another digest key"));
	assert_string_equal(fx_why(f), "taken up after a restart: made under another digest key");
	fx_reopen(f); /* the new key stays */
	fx_settle(f);
	const char *again = strstr(f->log, "the digest key was missing");
	assert_null(strstr(again + 1, "the digest key was missing"));
}

static void nothing_is_served_before_the_first_list(void **state) /* K24 */
{
	struct fixture *f = *state;
	struct fx_ask pod = fx_sandbox("web"), kept = fx_sandbox("kept");
	fx_open(f);
	fx_keep(f, &kept, "s1");
	fx_close(f);
	f->fail[FX_LIST] = 14;
	fx_open(f);
	struct ck_turn *turn = fx_wait(f, &pod), *again = fx_wait(f, &kept),
		       *late = fx_wait(f, &pod);
	fx_advance(f, 5 * S);
	assert_int_equal(fx_decision(f, turn), CK_WAIT);
	assert_int_equal(fx_decision(f, again), CK_WAIT);
	assert_int_equal(fx_hides(f, &kept, "s1"), 1);
	assert_string_equal(fx_rows(f), "KEPT s1");
	assert_non_null(strstr(f->log, "did not list"));
	f->fail[FX_LIST] = 0;
	fx_advance(f, 4 * S);
	fx_answered_with(f, again, "s1");
	assert_true(fx_decision(f, turn) == CK_CREATE || fx_decision(f, late) == CK_CREATE);
	ck_turn_free(turn);
	ck_turn_free(again);
	ck_turn_free(late);
}

static void without_a_list_the_answer_says_so_at_the_margin(void **state) /* K24 */
{
	struct fixture *f = *state;
	struct fx_ask pod = fx_sandbox("web");
	f->fail[FX_LIST] = 14;
	fx_open(f);
	struct ck_turn *turn = fx_wait(f, &pod);
	fx_advance(f, 10 * S);
	assert_int_equal(fx_decision(f, turn), -CK_EUNAVAILABLE);
	assert_non_null(strstr(f->err.text, "has not listed"));
	ck_turn_free(turn);
}

static void a_host_that_answers_no_questions_is_served(void **state)
{
	struct fixture *f = *state;
	struct fx_ask pod = fx_sandbox("web"), changed = pod;
	f->host.inspect = NULL;
	f->host.list = NULL;
	fx_open(f);
	fx_keep(f, &pod, "s1");
	changed.attempt = 1;
	struct ck_turn *turn = fx_wait(f, &changed);
	assert_int_equal(fx_decision(f, turn), CK_CREATE);
	assert_true(fx_was_destroyed(f, "s1"));
	ck_turn_free(turn); /* lost, and there is nobody to ask */
	fx_advance(f, 901 * S);
	assert_string_equal(fx_rows(f), "");
}

/* ---- requests of an administrator ------------------------------------------------------------ */

static bool request(struct fixture *f, enum ck_admin_verb verb, uint64_t entry,
		    struct ck_admin_answer *answer)
{
	struct ck_admin_request w = { .verb = verb, .entry = entry };
	char name[33];
	assert_int_equal(ck_admin_request_make(f->dir, &w, name, &f->err), 0);
	fx_settle(f);
	assert_int_equal(ck_admin_answer_fetch(f->dir, name, answer, &f->err), 1);
	return answer->done;
}

static void the_owner_answers_requests(void **state)
{
	struct fixture *f = *state;
	struct fx_ask kept = fx_sandbox("kept"), committed = fx_sandbox("committed");
	struct ck_admin_answer answer;
	fx_open(f);
	fx_keep(f, &kept, "s1");
	fx_commit(f, &committed, "s2");
	uint64_t row = fx_row_id(f, "s1");
	assert_false(request(f, CK_ADMIN_EVICT, 999, &answer));
	assert_false(request(f, CK_ADMIN_EVICT, fx_row_id(f, "s2"), &answer));
	assert_non_null(strstr(answer.text, "committed"));
	assert_false(
		request(f, CK_ADMIN_RELEASE, row, &answer)); /* only while it is being evicted */
	f->fail[FX_DESTROY] = 13;
	assert_true(request(f, CK_ADMIN_EVICT, row, &answer));
	fx_settle(f);
	assert_string_equal(fx_rows(f), "EVICTING s1|COMMITTED s2");
	assert_int_equal(f->asked[FX_DESTROY], 1);
	assert_true(request(f, CK_ADMIN_EVICT, row, &answer)); /* K18: shortens the wait */
	fx_settle(f);
	assert_int_equal(f->asked[FX_DESTROY], 2);
	assert_true(request(f, CK_ADMIN_RELEASE, row, &answer));
	assert_string_equal(fx_rows(f), "GONE s1|COMMITTED s2");
}

static void a_request_waits_for_the_next_owner(void **state)
{
	struct fixture *f = *state;
	struct fx_ask kept = fx_sandbox("kept");
	struct ck_admin_request w = { .verb = CK_ADMIN_EVICT };
	struct ck_admin_answer answer;
	char name[33];
	fx_open(f);
	fx_keep(f, &kept, "s1");
	w.entry = fx_row_id(f, "s1");
	fx_close(f);
	assert_int_equal(ck_admin_request_make(f->dir, &w, name, &f->err), 0);
	assert_int_equal(ck_admin_answer_fetch(f->dir, name, &answer, &f->err), 0);
	fx_open(f);
	assert_int_equal(ck_admin_answer_fetch(f->dir, name, &answer, &f->err), 1);
	assert_true(answer.done);
	fx_settle(f);
	assert_true(fx_was_destroyed(f, "s1"));
}

/* ---- hooks: a double of the seam ------------------------------------------------------------- */

static void hooks_fire_at_the_commit_and_not_before(void **state)
{
	struct fixture *f = *state;
	struct fx_ask pod = fx_sandbox("web");
	fx_with_hooks(f, "10-cpu 20-net");
	fx_open(f);
	fx_keep(f, &pod, "s1");
	assert_string_equal(f->heard, "");
	f->hold[FX_RUN] = true;
	struct ck_turn *turn = fx_wait(f, &pod);
	fx_wait_asked(f, FX_RUN, 1);
	assert_string_equal(f->heard, "choose s1, RUN s1");
	/* with the names of those told, before the first byte is sent */
	assert_string_equal(fx_rows(f), "COMMITTING s1");
	assert_int_equal(fx_hides(f, &pod, "s1"), 1);
	fx_release(f, FX_RUN);
	fx_answered_with(f, turn, "s1");
	ck_turn_free(turn);
	assert_string_equal(fx_rows(f), "COMMITTED s1");
}

static void the_history_says_who_was_told(void **state)
{
	struct fixture *f = *state;
	struct fx_ask pod = fx_sandbox("web"), next = pod;
	char longest[CK_TOLD_MAX];
	next.attempt = 1;
	fx_with_hooks(f, "10-cpu 20-net");
	fx_open(f);
	f->hold[FX_RUN] = true;
	struct ck_turn *turn = fx_create(f, &pod);
	assert_int_equal(fx_make(f, turn, &pod, "s1"), CK_WAIT);
	fx_settle(f);
	assert_string_equal(fx_told(f), ""); /* to be chosen is not to be told */
	f->sent = "10-cpu";                  /* the other one has not subscribed */
	fx_release(f, FX_RUN);
	fx_answered_with(f, turn, "s1");
	ck_turn_free(turn);
	assert_string_equal(fx_told(f), "TOLD s1: 10-cpu");
	f->hold[FX_RUN] = false;
	ck_object_removed(f->cache, CK_SANDBOX, "s1");
	/* now the hooks do not say who was sent it; it was refused before all of the chosen were
	 * sent it */
	f->sent = NULL;
	f->fail[FX_RUN] = 1;
	turn = fx_create(f, &next);
	assert_int_equal(fx_make(f, turn, &next, "s2"), CK_WAIT);
	assert_int_equal(fx_decision(f, turn), -CK_EREFUSED);
	ck_turn_free(turn);
	fx_settle(f);
	assert_string_equal(fx_told(f), "TOLD s1: 10-cpu|TOLD s2|STOP_TOLD s2|REMOVE_TOLD s2");
	f->sent = "";
	next.attempt = 2;
	turn = fx_create(f, &next);
	assert_int_equal(fx_make(f, turn, &next, "s3"), CK_WAIT);
	assert_int_equal(fx_decision(f, turn), -CK_EREFUSED);
	ck_turn_free(turn);
	fx_settle(f);
	assert_null(strstr(fx_told(f), "s3")); /* nobody was told */
	for (int i = 0; i < 60; i++)
		snprintf(longest + 17 * i, sizeof(longest) - 17 * (size_t)i, "%02d-abcdefghijklm%s",
			 i, i < 59 ? " " : "");
	f->sent = longest;
	f->fail[FX_RUN] = 0;
	next.attempt = 3;
	fx_commit(f, &next, "s4");
	const char *line = strstr(fx_told(f), "TOLD s4");
	assert_non_null(line);
	assert_non_null(strstr(line, " 13-abcdefghijklm ...")); /* as many complete names as fit */
}

static void nobody_chosen_is_nobody_asked(void **state)
{
	struct fixture *f = *state;
	struct fx_ask pod = fx_sandbox("web");
	fx_with_hooks(f, "");
	fx_open(f);
	fx_commit(f, &pod, "s1");
	assert_int_equal(f->asked[FX_RUN], 0);
}

static void an_absent_required_plugin_keeps_the_result(void **state) /* H4 */
{
	struct fixture *f = *state;
	struct fx_ask pod = fx_sandbox("web");
	fx_with_hooks(f, "10-cpu");
	snprintf(f->absent, sizeof(f->absent), "30-audit");
	fx_open(f);
	struct ck_turn *turn = fx_create(f, &pod);
	assert_int_equal(fx_make(f, turn, &pod, "s1"), -CK_EUNAVAILABLE);
	assert_non_null(strstr(f->err.text, "30-audit"));
	ck_turn_free(turn);
	assert_string_equal(fx_rows(f), "KEPT s1");
	turn = fx_wait(f, &pod);
	assert_int_equal(fx_decision(f, turn), -CK_EUNAVAILABLE);
	assert_non_null(strstr(f->err.text, "30-audit"));
	ck_turn_free(turn);
	f->absent[0] = '\0';
	turn = fx_wait(f, &pod);
	fx_answered_with(f, turn, "s1");
	ck_turn_free(turn);
	assert_int_equal(f->asked[FX_RUN], 1);
}

static void a_refusal_is_undone(void **state) /* H4, K20 */
{
	struct fixture *f = *state;
	struct fx_ask app = fx_container("web", "s0", "app");
	fx_with_hooks(f, "10-cpu");
	app.env = "top-secret";
	snprintf(f->refusal, sizeof(f->refusal), "plugin 10-cpu: LEVEL=top-secret is wrong");
	fx_open(f);
	f->fail[FX_RUN] = 1;
	struct ck_turn *turn = fx_create(f, &app);
	assert_int_equal(fx_make(f, turn, &app, "c1"), CK_WAIT);
	assert_int_equal(fx_decision(f, turn), -CK_EREFUSED);
	assert_int_equal(ck_error_grpc(&f->err), 2);
	/* what is stored is redacted as well */
	assert_string_equal(f->err.text, "plugin 10-cpu: LEVEL=*** is wrong");
	ck_turn_free(turn);
	fx_settle(f);
	assert_true(fx_was_destroyed(f, "c1"));
	assert_string_equal(f->heard, "choose c1, RUN c1, STOP c1, REMOVE c1, released c1");
}

static void an_attempt_bump_cancels_the_commit(void **state) /* K13 */
{
	struct fixture *f = *state;
	struct fx_ask pod = fx_sandbox("web"), next = pod;
	next.attempt = 1;
	fx_with_hooks(f, "10-cpu");
	fx_open(f);
	f->hold[FX_RUN] = true;
	struct ck_turn *turn = fx_create(f, &pod);
	assert_int_equal(fx_make(f, turn, &pod, "s1"), CK_WAIT);
	fx_settle(f);
	unsigned lists = f->asked[FX_LIST];
	struct ck_turn *newer = fx_wait(f, &next);
	fx_settle(f);
	assert_int_equal(fx_decision(f, turn), -CK_EABANDONED);
	assert_string_equal(f->heard, "choose s1, RUN s1, cancel -");
	assert_string_equal(fx_rows(f), "EVICTING s1");
	assert_int_equal(f->asked[FX_LIST], lists); /* the call in flight is waited for */
	f->hold[FX_STOP] = true;
	fx_release(f, FX_RUN);
	fx_settle(f);
	assert_int_equal(f->asked[FX_DESTROY], 0); /* K20: Stop comes first */
	fx_release(f, FX_STOP);
	fx_settle(f);
	assert_int_equal(fx_decision(f, newer), CK_CREATE);
	assert_string_equal(f->heard,
			    "choose s1, RUN s1, cancel -, STOP s1, REMOVE s1, released s1");
	ck_turn_free(turn);
	ck_turn_free(newer);
}

static void a_bump_before_the_first_event_tells_nobody(void **state) /* K13 */
{
	struct fixture *f = *state;
	struct fx_ask pod = fx_sandbox("web"), next = pod;
	next.attempt = 1;
	fx_with_hooks(f, "10-cpu");
	fx_open(f);
	struct ck_turn *turn = fx_create(f, &pod);
	assert_int_equal(fx_make(f, turn, &pod, "s1"), CK_WAIT); /* the event loop has not run */
	struct ck_turn *newer = fx_wait(f, &next);
	assert_int_equal(fx_decision(f, newer), CK_CREATE);
	assert_string_equal(f->heard, "choose s1, released s1, released s1");
	assert_true(fx_was_destroyed(f, "s1"));
	ck_turn_free(turn);
	ck_turn_free(newer);
}

/* The list of sandboxes tells before that of containers. */
static void a_pod_that_vanished_ends_after_its_containers(void **state) /* R26 */
{
	struct fixture *f = *state;
	struct fx_ask pod = fx_sandbox("web"), app = fx_container("web", "s1", "app");
	fx_with_hooks(f, "10-cpu");
	fx_open(f);
	fx_commit(f, &pod, "s1");
	fx_commit(f, &app, "c1");
	fx_vanish(f, "c1");
	fx_vanish(f, "s1");
	fx_reopen(f);
	fx_settle(f);
	assert_string_equal(fx_rows(f), "");
	assert_string_equal(f->heard, "choose s1, RUN s1, choose c1, RUN c1, "
				      "released c1, released s1");
}

static void a_told_result_is_handed_back_without_firing(void **state) /* K7 */
{
	struct fixture *f = *state;
	struct fx_ask app = fx_container("web", "s0", "app");
	fx_with_hooks(f, "10-cpu");
	fx_open(f);
	f->hold[FX_RUN] = true;
	struct ck_turn *turn = fx_create(f, &app);
	assert_int_equal(fx_make(f, turn, &app, "c1"), CK_WAIT);
	fx_settle(f);
	ck_turn_leave(turn); /* when the hooks agree, no caller is left */
	ck_turn_free(turn);
	fx_release(f, FX_RUN);
	fx_settle(f);
	assert_string_equal(fx_rows(f), "KEPT c1");
	fx_reopen(f);
	turn = fx_wait(f, &app);
	fx_answered_with(f, turn, "c1");
	ck_turn_free(turn);
	assert_int_equal(f->asked[FX_RUN], 1);
	assert_string_equal(f->heard, "choose c1, RUN c1");
}

static void a_told_result_owes_stop_and_remove_after_a_restart(void **state) /* H3, K25 */
{
	struct fixture *f = *state;
	struct fx_ask pod = fx_sandbox("web");
	fx_with_hooks(f, "10-cpu");
	fx_open(f);
	f->hold[FX_RUN] = true;
	struct ck_turn *turn = fx_create(f, &pod);
	assert_int_equal(fx_make(f, turn, &pod, "s1"), CK_WAIT);
	fx_settle(f);
	fx_cut(f); /* its life ends while it is COMMITTING */
	ck_turn_free(turn);
	fx_open(f);
	assert_string_equal(fx_rows(f), "KEPT s1");
	fx_advance(f, 800 * S);
	assert_string_equal(f->heard, "choose s1, RUN s1, STOP s1, REMOVE s1, released s1");
	assert_true(fx_was_destroyed(f, "s1"));
}

struct seen {
	struct fixture *f;
	int n, stop_at;
	char text[256];
};

static int see(const struct ck_told *told, void *userdata)
{
	struct seen *seen = userdata;
	size_t n = strlen(seen->text);
	snprintf(seen->text + n, sizeof(seen->text) - n, "%s%s(%s)", n ? " " : "", told->id,
		 told->told);
	return ++seen->n == seen->stop_at ? 7 : 0;
}

static void a_snapshot_holds_what_plugins_were_told(void **state) /* H1 */
{
	struct fixture *f = *state;
	struct fx_ask kept = fx_sandbox("kept"), running = fx_sandbox("running"),
		      telling = fx_sandbox("telling"), stopping = fx_sandbox("stopping");
	struct seen all = { .f = f }, first = { .f = f, .stop_at = 1 };
	fx_with_hooks(f, "10-cpu");
	fx_open(f);
	fx_keep(f, &kept, "s1");
	fx_commit(f, &running, "s2");
	fx_commit(f, &stopping, "s4");
	f->hold[FX_RUN] = true;
	struct ck_turn *turn = fx_create(f, &telling);
	assert_int_equal(fx_make(f, turn, &telling, "s3"), CK_WAIT);
	fx_settle(f);
	assert_int_equal(ck_sandbox_stopping(f->cache, "s4"), 0);
	assert_int_equal(ck_snapshot(f->cache, see, &all), 0);
	assert_string_equal(all.text, "s2(10-cpu) s4(10-cpu) s3(10-cpu)");
	assert_int_equal(ck_snapshot(f->cache, see, &first), 7);
	assert_int_equal(first.n, 1);
	fx_release(f, FX_RUN);
	fx_answered_with(f, turn, "s3");
	ck_turn_free(turn);
}

/* what is given up exists until it is destroyed; what plugins were not told of is not for them */
static void a_snapshot_holds_what_is_given_up_until_it_is_destroyed(void **state) /* H1 */
{
	struct fixture *f = *state;
	struct fx_ask refused = fx_sandbox("refused"), kept = fx_sandbox("kept");
	struct seen before = { .f = f }, after = { .f = f };
	fx_with_hooks(f, "10-cpu");
	fx_open(f);
	fx_keep(f, &kept, "s1");
	f->fail[FX_RUN] = 1;
	f->hold[FX_DESTROY] = f->hold[FX_REMOVE] = true;
	struct ck_turn *turn = fx_create(f, &refused);
	assert_int_equal(fx_make(f, turn, &refused, "s2"), CK_WAIT);
	fx_advance(f, 800 * CK_NS_PER_S); /* the other one's time is over, too */
	assert_int_equal(fx_decision(f, turn), -CK_EREFUSED);
	ck_turn_free(turn);
	assert_string_equal(fx_rows(f), "EVICTING s1|EVICTING s2");
	assert_int_equal(ck_snapshot(f->cache, see, &before), 0);
	assert_string_equal(before.text, "s2(10-cpu)");
	fx_release(f, FX_DESTROY);
	fx_settle(f);
	assert_true(fx_was_destroyed(f, "s2")); /* and plugins are being told so */
	assert_int_equal(ck_snapshot(f->cache, see, &after), 0);
	assert_string_equal(after.text, "");
	fx_release(f, FX_REMOVE);
	fx_settle(f);
}

/* ---- callbacks ------------------------------------------------------------------------------- */

struct chain {
	struct fixture *f;
	unsigned n;
	uint32_t attempt;
	struct ck_turn *newest; /* nobody supersedes it */
};

static void begin_next(struct chain *c);

static void superseded(struct ck_turn *turn, int outcome, void *userdata)
{
	struct chain *c = userdata;
	assert_int_equal(outcome, -CK_EABANDONED);
	ck_turn_free(turn);
	if (++c->n < 20000)
		begin_next(c);
}

/* of the next attempt, so that the turn before it is superseded and called back */
static void begin_next(struct chain *c)
{
	struct fx_ask ask = fx_sandbox("web");
	ask.attempt = ++c->attempt;
	c->newest = fx_wait(c->f, &ask);
	ck_turn_watch(c->newest, superseded, c);
}

static void callbacks_that_make_callbacks_do_not_keep_the_loop(void **state)
{
	struct fixture *f = *state;
	struct fx_ask ask = fx_sandbox("web");
	struct chain c = { .f = f };
	fx_open(f);
	struct ck_turn *creator = fx_create(f, &ask);
	begin_next(&c);
	begin_next(&c);
	assert_true(ck_cache_process(f->cache, NULL) > 0);
	assert_in_range(c.n, 1, 10000);
	assert_int_equal(ck_cache_timeout(f->cache), 0); /* the rest is due at once */
	c.n = 20000;
	assert_true(ck_cache_process(f->cache, NULL) > 0);
	ck_turn_free(c.newest);
	ck_turn_free(creator);
}

static uint64_t count_looks(void *userdata)
{
	struct fixture *f = userdata;
	f->asked[FX_CALLS - 1]++; /* no hooks here */
	return fx_now(f);
}

static void an_idle_loop_looks_once(void **state)
{
	struct fixture *f = *state;
	f->options.clock = count_looks;
	fx_open(f);
	fx_settle(f);
	f->asked[FX_CALLS - 1] = 0;
	assert_int_equal(ck_cache_process(f->cache, NULL), 0);
	assert_in_range(f->asked[FX_CALLS - 1], 1, 8); /* each pass asks several times */
}

static void a_thread_that_was_joined_owns_the_loop_no_more(void **state)
{
	struct fixture *f = *state;
	f->threaded = true;
	fx_open(f);
	ck_event_loop_close(f->cache);
	assert_int_equal(ck_cache_process(f->cache, NULL), 0);
}

/* whichever of them is the one too many */
static void an_open_without_descriptors_says_so(void **state)
{
	struct fixture *f = *state;
	struct rlimit limit;
	unsigned said = 0;
	int fd = dup(0), r;
	fx_open(f); /* its directory and its key are there from now on */
	fx_close(f);
	assert_int_equal(close(fd), 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	do {
		struct rlimit few = { (rlim_t)fd++, limit.rlim_max };
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
		r = ck_cache_open(&f->options, &f->cache, &f->err);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
		if (r < 0 && strstr(f->err.text, "the loop's descriptors")) {
			assert_non_null(strstr(f->err.text, strerror(EMFILE)));
			said++;
		}
	} while (r < 0);
	assert_true(said >= 3); /* it makes three */
}

/* ---- both faces ------------------------------------------------------------------------------ */

#define BOTH(test) \
	{ #test "_by_callback", test, fixture_set_up, fixture_tear_down, NULL }, \
	{ \
#test "_blocking", test, blocking, fixture_tear_down, NULL \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(result_in_time_is_handed_over_at_once),
		ON_FIXTURE(that_an_answer_arrived_is_written_of_a_container),
		ON_FIXTURE(a_runtime_in_time_writes_a_creation_once),
		ON_FIXTURE(a_runtime_that_takes_long_writes_that_it_has_begun),
		ON_FIXTURE(a_runtime_writes_that_it_has_begun_before_the_margin),
		ON_FIXTURE(a_runtime_whose_caller_goes_has_written_that_it_has_begun),
		ON_FIXTURE(a_runtime_that_is_asked_again_has_written_that_it_has_begun),
		ON_FIXTURE(a_runtime_that_failed_leaves_no_row),
		ON_FIXTURE(a_runtime_that_closes_has_written_that_it_has_begun),
		BOTH(late_result_is_kept_and_handed_back),
		BOTH(the_reply_is_what_the_runtime_gave),
		BOTH(waiting_repetition_gets_the_id_when_it_exists),
		BOTH(container_of_another_pod_harms_nobody),
		ON_FIXTURE(pods_of_similar_names_have_nothing_in_common),
		BOTH(failure_wakes_everybody_with_the_runtimes_status),
		BOTH(busy_at_the_margin_names_stage_and_age),
		BOTH(another_attempt_abandons_the_earlier_one),
		BOTH(kept_result_of_an_older_attempt_is_evicted),
		BOTH(changed_request_succeeds_the_kept_result),
		BOTH(what_is_in_time_is_told_to_who_debugs),
		BOTH(a_rescue_is_one_line),
		BOTH(what_nobody_asks_for_again_is_one_line),
		BOTH(lines_for_debugging_do_not_crowd_out_others),
		BOTH(dropped_lines_are_counted),
		ON_FIXTURE(a_line_above_the_level_wakes_nobody),
		BOTH(what_changed_is_in_history_and_log),
		ON_FIXTURE(why_a_destroy_failed_is_in_history_and_log),
		ON_FIXTURE(why_nothing_was_destroyed_is_in_the_history),
		BOTH(who_abandoned_a_creation_is_in_history_and_log),
		BOTH(conflict_names_paths_and_no_values),
		BOTH(an_ended_resource_is_not_served),
		ON_FIXTURE(an_expired_request_moves_nothing),
		ON_FIXTURE(one_uid_has_one_name),
		ON_FIXTURE(the_time_to_live_ends_a_kept_result),
		BOTH(a_dead_result_is_not_handed_back),
		ON_FIXTURE(a_runtime_that_does_not_know_is_asked_again),
		ON_FIXTURE(leaving_ends_a_waiting_turn_and_keeps_the_result),
		BOTH(lost_creation_is_found_by_its_key),
		ON_FIXTURE(an_unfinished_creator_that_is_freed_is_lost),
		ON_FIXTURE(a_creation_that_nobody_heard_of_was_not_begun),
		ON_FIXTURE(a_second_request_that_nobody_heard_of_leaves_the_first_lost),
		ON_FIXTURE(lost_and_absent_creation_is_sent_once_again),
		ON_FIXTURE(lost_creation_nobody_sees_ends_after_its_grace),
		ON_FIXTURE(stopping_evicts_what_is_not_committed),
		ON_FIXTURE(stopping_an_unknown_sandbox_refuses_creates_in_it),
		ON_FIXTURE(stopping_an_unknown_sandbox_leaves_no_row),
		ON_FIXTURE(a_stop_of_an_id_that_nobody_was_told_does_not_take_it_from_its_creation),
		BOTH(removal_waits_for_creates_in_flight),
		ON_FIXTURE(removal_gives_up_at_its_margin),
		ON_FIXTURE(a_removal_that_failed_does_not_block_the_key),
		ON_FIXTURE(forgetting_a_sandbox_forgets_its_containers),
		ON_FIXTURE(forgetting_an_unknown_sandbox_evicts_what_was_to_live_in_it),
		BOTH(lost_answer_makes_a_container_kept_again),
		BOTH(a_start_of_what_was_kept_again_is_its_delivery),
		ON_FIXTURE(an_offered_sandbox_is_committed_when_it_exists),
		ON_FIXTURE(a_destroy_is_tried_until_it_is_confirmed),
		ON_FIXTURE(a_destroy_without_an_answer_has_failed),
		ON_FIXTURE(what_is_in_use_is_not_destroyed),
		ON_FIXTURE(uncommitted_is_hidden_by_key_and_by_id),
		ON_FIXTURE(a_view_sees_all_that_changed_before_it_was_asked),
		ON_FIXTURE(what_a_list_shows_while_it_is_made_is_hidden_by_its_id),
		ON_FIXTURE(a_view_does_not_change_after_its_first_question),
		ON_FIXTURE(a_tombstone_outlives_the_lists_begun_before_it),
		ON_FIXTURE(an_id_may_come_back_when_it_was_destroyed),
		ON_FIXTURE(an_id_that_is_still_being_destroyed_may_not),
		ON_FIXTURE(a_prefix_of_hidden_ids_names_nothing),
		ON_FIXTURE(a_list_that_passes_reconciles),
		BOTH(two_references_of_one_image_are_the_same),
		ON_FIXTURE(two_images_are_not_the_same),
		ON_FIXTURE(a_turn_may_go_while_its_image_is_resolved),
		ON_FIXTURE(ignored_annotations_do_not_differ),
		ON_FIXTURE(other_annotations_evict_only_if_the_host_says_so),
		BOTH(recorded_request_is_made_once_through_all_its_retries),
		ON_FIXTURE(every_state_is_taken_up_after_a_restart),
		ON_FIXTURE(tombstones_outlive_a_restart),
		ON_FIXTURE(a_restart_writes_only_what_it_changes),
		ON_FIXTURE(nothing_expires_just_after_a_restart),
		ON_FIXTURE(a_row_of_another_key_is_not_comparable),
		ON_FIXTURE(a_lost_key_is_in_history_and_log),
		ON_FIXTURE(nothing_is_served_before_the_first_list),
		ON_FIXTURE(without_a_list_the_answer_says_so_at_the_margin),
		ON_FIXTURE(a_host_that_answers_no_questions_is_served),
		ON_FIXTURE(the_owner_answers_requests),
		ON_FIXTURE(a_request_waits_for_the_next_owner),
		BOTH(hooks_fire_at_the_commit_and_not_before),
		BOTH(the_history_says_who_was_told),
		ON_FIXTURE(nobody_chosen_is_nobody_asked),
		BOTH(an_absent_required_plugin_keeps_the_result),
		ON_FIXTURE(a_refusal_is_undone),
		ON_FIXTURE(an_attempt_bump_cancels_the_commit),
		ON_FIXTURE(a_bump_before_the_first_event_tells_nobody),
		ON_FIXTURE(a_pod_that_vanished_ends_after_its_containers),
		ON_FIXTURE(a_told_result_is_handed_back_without_firing),
		ON_FIXTURE(a_told_result_owes_stop_and_remove_after_a_restart),
		ON_FIXTURE(a_snapshot_holds_what_plugins_were_told),
		ON_FIXTURE(a_snapshot_holds_what_is_given_up_until_it_is_destroyed),
		ON_FIXTURE(callbacks_that_make_callbacks_do_not_keep_the_loop),
		ON_FIXTURE(an_idle_loop_looks_once),
		ON_FIXTURE(a_thread_that_was_joined_owns_the_loop_no_more),
		ON_FIXTURE(an_open_without_descriptors_says_so),
	};
	return CK_TEST_MAIN(tests);
}
