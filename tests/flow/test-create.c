/* SPDX-License-Identifier: Apache-2.0 */
/* ck_create(): the whole turn of a caller in one call. */
#include <string.h>

#include "tests/flow/fixture.h"

#define S CK_NS_PER_S

struct story {
	struct fixture *f;
	struct fx_ask ask;
	void (*creates)(struct story *s, struct ck_turn *turn);
	enum ck_delivery sent;
	unsigned created, answered;
	int grpc;
	char id[16], message[128], details[16];
};

static void finish(struct story *s, struct ck_turn *turn)
{
	fx_make(s->f, turn, &s->ask, "x1");
}

static void finish_late(struct story *s, struct ck_turn *turn)
{
	fx_jump(s->f, 20 * S);
	finish(s, turn);
}

static void creation_fails(struct story *s, struct ck_turn *turn)
{
	const struct ck_status why = { .size = sizeof(why),
				       .grpc = 13,
				       .message = "no network",
				       .details = "why",
				       .details_len = 3 };
	(void)s;
	ck_turn_fail(turn, &why, NULL);
}

/* it exists, and the host forgets to say so */
static void forget(struct story *s, struct ck_turn *turn)
{
	(void)turn;
	fx_exists(s->f, &s->ask, "x1");
}

static void create(struct ck_turn *turn, void *userdata)
{
	struct story *s = userdata;
	s->created++;
	assert_int_equal(ck_turn_stage(turn, "making it"), 0);
	s->creates(s, turn);
}

static enum ck_delivery answer(const struct ck_reply *reply, const struct ck_status *status,
			       void *userdata)
{
	struct story *s = userdata;
	s->answered++;
	assert_true(!reply != !status);
	s->grpc = status ? status->grpc : 0;
	snprintf(s->id, sizeof(s->id), "%s", reply ? reply->id : "");
	snprintf(s->message, sizeof(s->message), "%s", status ? status->message : "");
	snprintf(s->details, sizeof(s->details), "%.*s", status ? (int)status->details_len : 0,
		 status && status->details ? (const char *)status->details : "");
	return s->sent;
}

static int do_create(struct story *s)
{
	unsigned char bytes[4096];
	const struct ck_request request = { .size = sizeof(request),
					    .kind = s->ask.kind,
					    .bytes = bytes,
					    .len = fx_bytes(&s->ask, bytes, sizeof(bytes)),
					    .timeout = s->ask.timeout };
	s->created = s->answered = 0;
	return ck_create(s->f->cache, &request, create, answer, s, &s->f->err);
}

static void a_result_is_answered_once_and_found_again(void **state)
{
	struct story s = {
		.f = *state, .ask = fx_sandbox("web"), .creates = finish, .sent = CK_DELIVERED
	};
	fx_open(s.f);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(do_create(&s), CK_HAND_BACK);
		assert_string_equal(s.id, "x1");
		assert_int_equal(s.created, i == 0);
		assert_int_equal(s.answered, 1);
	}
	assert_string_equal(fx_rows(s.f), "COMMITTED x1");
}

static void a_late_result_is_kept_and_handed_back(void **state)
{
	struct story s = {
		.f = *state, .ask = fx_sandbox("web"), .creates = finish_late, .sent = CK_DELIVERED
	};
	fx_open(s.f);
	assert_int_equal(do_create(&s), CK_KEPT);
	assert_int_equal(s.answered, 1);
	assert_int_equal(s.grpc, 14);
	assert_string_equal(s.message, "the caller's deadline has passed");
	assert_string_equal(s.f->err.text, s.message);
	assert_string_equal(fx_rows(s.f), "KEPT x1");
	fx_thread(s.f); /* it is inspected before */
	assert_int_equal(do_create(&s), CK_HAND_BACK);
	assert_int_equal(s.created, 0);
	assert_string_equal(s.id, "x1");
}

static void a_failure_is_answered_with_the_status_of_the_runtime(void **state)
{
	struct story s = { .f = *state,
			   .ask = fx_sandbox("web"),
			   .creates = creation_fails,
			   .sent = CK_DELIVERED };
	fx_open(s.f);
	assert_int_equal(do_create(&s), -CK_EFAILED);
	assert_int_equal(s.answered, 1);
	assert_int_equal(s.grpc, 13);
	assert_string_equal(s.message, "no network");
	assert_string_equal(s.details, "why");
	assert_int_equal(s.f->err.code, CK_EFAILED);
	assert_string_equal(fx_rows(s.f), "");
}

static void who_does_not_say_how_it_ended_has_lost_it(void **state)
{
	struct story s = {
		.f = *state, .ask = fx_sandbox("web"), .creates = forget, .sent = CK_DELIVERED
	};
	s.f->host.list = NULL;
	/* not fx_open(), which asks for the descriptor: so there is no event loop */
	assert_int_equal(ck_cache_open(&s.f->options, &s.f->cache, &s.f->err), 0);
	assert_int_equal(do_create(&s), -CK_ENOLOOP);
	assert_int_equal(s.grpc, 13);
	assert_string_equal(fx_rows(s.f), "UNKNOWN -");
}

static void an_answer_that_was_not_sent_is_not_forgotten(void **state) /* K7 */
{
	struct story s = { .f = *state,
			   .ask = fx_container("web", "s1", "app"),
			   .creates = finish,
			   .sent = CK_LOST };
	struct fx_ask pod = fx_sandbox("web");
	fx_open(s.f);
	fx_commit(s.f, &pod, "s1");
	assert_int_equal(do_create(&s), CK_HAND_BACK);
	assert_string_equal(fx_rows(s.f), "COMMITTED s1|KEPT x1");
	s.sent = CK_DELIVERED;
	fx_thread(s.f);
	assert_int_equal(do_create(&s), CK_HAND_BACK);
	assert_int_equal(s.created, 0);
	assert_string_equal(fx_rows(s.f), "COMMITTED s1|COMMITTED x1");
}

static void a_delivered_answer_is_delivered_after_a_crash(void **state) /* K25 */
{
	struct story s = { .f = *state,
			   .ask = fx_container("web", "s1", "app"),
			   .creates = finish,
			   .sent = CK_DELIVERED };
	struct fx_ask pod = fx_sandbox("web");
	fx_open(s.f);
	fx_commit(s.f, &pod, "s1");
	assert_int_equal(do_create(&s), CK_HAND_BACK);
	fx_reopen(s.f);
	fx_settle(s.f);
	assert_string_equal(fx_rows(s.f), "COMMITTED s1|COMMITTED x1");
}

static void whoever_cannot_begin_is_answered_too(void **state)
{
	struct story s = {
		.f = *state, .ask = fx_sandbox("web"), .creates = finish, .sent = CK_DELIVERED
	};
	const struct ck_request odd = {
		.size = sizeof(odd), .kind = CK_SANDBOX, .bytes = "???", .len = 3
	};
	fx_open(s.f);
	assert_int_equal(ck_create(s.f->cache, &odd, create, answer, &s, &s.f->err),
			 -CK_EMALFORMED);
	assert_int_equal(s.answered, 1);
	assert_int_equal(s.grpc, 3);
	assert_int_equal(ck_create(NULL, &odd, create, answer, &s, &s.f->err), -CK_EINVAL);
	assert_int_equal(s.answered, 2);
	assert_string_equal(s.f->err.text, "no cache");
	assert_int_equal(ck_create(s.f->cache, &odd, NULL, answer, &s, &s.f->err), -CK_EINVAL);
	assert_int_equal(ck_create(s.f->cache, &odd, create, NULL, &s, &s.f->err), -CK_EINVAL);
	assert_int_equal(s.answered, 2);
	assert_int_equal(s.created, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_FIXTURE(a_result_is_answered_once_and_found_again),
		ON_FIXTURE(a_late_result_is_kept_and_handed_back),
		ON_FIXTURE(a_failure_is_answered_with_the_status_of_the_runtime),
		ON_FIXTURE(who_does_not_say_how_it_ended_has_lost_it),
		ON_FIXTURE(an_answer_that_was_not_sent_is_not_forgotten),
		ON_FIXTURE(a_delivered_answer_is_delivered_after_a_crash),
		ON_FIXTURE(whoever_cannot_begin_is_answered_too),
	};
	return CK_TEST_MAIN(tests);
}
