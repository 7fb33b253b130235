/* SPDX-License-Identifier: Apache-2.0 */
/* src/rpc/h2.c: two connections in memory, told what they must be told, in every order the peers of gRPC come up with. */
#include "tests/unit/harness.h"
#include "src/base/fault.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "tests/unit/wire-pair.h"

#define OK_TRAILERS   ((const struct ck_h2_header[]){ CK_H2_HEADER("grpc-status", "0") })
#define REQUEST_TOLD                                                                                   \
	":method: POST\n:scheme: http\n:path: /runtime.v1.RuntimeService/Version\n:authority: localhost\n" \
	"content-type: application/grpc\nte: trailers\n--\n"
#define RESPONSE_TOLD ":status: 200\ncontent-type: application/grpc\n--\ngrpc-status: 0\n--\n"

/* the server says back what it was told, then OK */
static void echo(struct call *call)
{
	ck_grpc_begin(call->stream);
	ck_h2_stream_send(call->stream, call->data.p, call->data.len);
	ck_h2_stream_headers(call->stream, OK_TRAILERS, 1, false);
}

static void begin_call(struct pair *pair, struct call *call, const char *body)
{
	assert_int_equal(pair_call(pair, call, "localhost"), 0);
	assert_int_equal(ck_h2_stream_send(call->stream, body, strlen(body)), 0);
	ck_h2_stream_end(call->stream);
}

static void check_echo(struct call *call, const char *body)
{
	assert_string_equal(call->told, RESPONSE_TOLD);
	assert_int_equal(call->data.len, strlen(body));
	assert_memory_equal(call->data.p, body, call->data.len);
	assert_int_equal(call->ends, 1);
	assert_int_equal(call->closes, 1);
	assert_int_equal(call->error, CK_H2_NO_ERROR);
	assert_null(call->stream);
}

static void a_call_goes_there_and_back(void **state)
{
	(void)state;
	const size_t pieces[] = { 0, 1, 7 };
	for (size_t i = 0; i < CK_COUNT(pieces); i++) {
		struct pair *pair = pair_new_raw(WINDOW, WINDOW);
		struct call call = { 0 };
		pair->piece = pieces[i];
		pair->served.on_end = echo;
		begin_call(pair, &call, "what is it?");
		pair_run(pair);
		assert_int_equal(pair->opened, 1);
		assert_string_equal(pair->at_server[0].told, REQUEST_TOLD);
		assert_int_equal(pair->at_server[0].closes, 1);
		assert_int_equal(pair->at_server[0].sent, 11);
		assert_int_equal(call.sent, 11);
		check_echo(&call, "what is it?");
		assert_int_equal(ck_h2_streams(pair->client) + ck_h2_streams(pair->server), 0);
		assert_int_equal(ck_h2_queued(pair->client) + ck_h2_queued(pair->server), 0);
		pair_free(pair);
		call_fini(&call);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_call_goes_there_and_back),
	};
	return CK_TEST_MAIN(tests);
}
