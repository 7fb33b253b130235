/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every allocation failing in turn, ours and nghttp2's, through calls between two connections in
 * memory: nothing is lost that was told as done, nobody waits for ever, and each connection is
 * either as good as before or over.
 */
#include "tests/unit/harness.h"
#include "src/base/fault.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "tests/unit/wire-pair.h"

static char body[100000];

static void answer(struct call *call)
{
	if (ck_grpc_begin(call->stream) < 0 || ck_grpc_send(call->stream, body, sizeof(body)) < 0 ||
	    ck_grpc_answer(call->stream, true, CK_GRPC_OK, "fine", "d", 1) < 0)
		ck_h2_stream_reset(CK_TAKE(call->stream), CK_H2_INTERNAL_ERROR);
}

static bool over(const struct pair *pair)
{
	return ck_h2_over(pair->client) || ck_h2_over(pair->server);
}

/* one life under a fault; false: there was none left to meet */
static bool lives(unsigned nth, bool sticky)
{
	struct call calls[3] = { { 0 } };
	ck_fault_arm(CK_FAULT_ALLOC, nth, sticky);
	struct pair *pair = pair_new_raw(WINDOW, WINDOW);
	if (pair) {
		pair->served.on_end = answer;
		for (size_t i = 0; i < CK_COUNT(calls); i++) {
			if (pair_call(pair, &calls[i], "localhost") < 0) {
				assert_null(calls[i].stream);
				continue;
			}
			if (ck_h2_stream_send(calls[i].stream, body, 1000) < 0)
				ck_h2_stream_reset(CK_TAKE(calls[i].stream), CK_H2_CANCEL);
			else
				ck_h2_stream_end(calls[i].stream);
			if (i == 0)
				pair_run(pair);
			if (i == 1 && calls[i].stream)
				ck_h2_stream_reset(CK_TAKE(calls[i].stream), CK_H2_CANCEL);
		}
		pair_run(pair);
	}
	bool met = ck_fault_hit();
	ck_fault_arm(0, 0, false);
	if (!pair)
		return met;

	pair_run(pair);
	for (size_t i = 0; i < CK_COUNT(calls); i++) {
		/* closed, or its connection is: its owner's part is ck_h2_free() */
		assert_true(!calls[i].stream || over(pair));
		if (calls[i].closes && calls[i].error == CK_H2_NO_ERROR && calls[i].ends)
			assert_non_null(strstr(calls[i].told, "grpc-status: 0\n"));
	}
	if (!over(pair)) {
		struct call after = { 0 };
		assert_int_equal(pair_call(pair, &after, "localhost"), 0);
		ck_h2_stream_end(after.stream);
		pair_run(pair);
		assert_int_equal(after.data.len, CK_GRPC_HEAD + sizeof(body));
		assert_int_equal(after.error, CK_H2_NO_ERROR);
		assert_int_equal(ck_h2_streams(pair->client) + ck_h2_queued(pair->server), 0);
		call_fini(&after);
	}
	pair_free(pair);
	for (size_t i = 0; i < CK_COUNT(calls); i++)
		call_fini(&calls[i]);
	return met;
}

static void each_allocation_failing_costs_a_call_or_the_connection(void **state)
{
	(void)state;
	unsigned n = 1;
	while (lives(n, false))
		n++;
	assert_in_range(n, 50, 10000);
	printf("%u allocations\n", n - 1);
}

static void memory_that_stays_gone_ends_calls_too(void **state)
{
	(void)state;
	for (unsigned n = 1; lives(n, true); n++)
		;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_allocation_failing_costs_a_call_or_the_connection),
		cmocka_unit_test(memory_that_stays_gone_ends_calls_too),
	};
	return CK_TEST_MAIN(tests);
}
