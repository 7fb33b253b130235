/* SPDX-License-Identifier: Apache-2.0 */
/*
 * src/rpc/h2.c: two connections in memory. Calls, flow control, ends and resets in every order the
 * peers of gRPC come up with. Peers that break rules are in test-h2-peer.c, memory that is gone in
 * tests/fault/test-h2-faults.c.
 */
#include <malloc.h>

#include "tests/unit/harness.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "tests/unit/wire-pair.h"

#define REQUEST_TOLD(authority) \
	":method: POST\n:scheme: http\n:path: " \
	"/runtime.v1.RuntimeService/Version\n:authority: " authority \
	"\ncontent-type: application/grpc\nte: trailers\n--\n"
#define RESPONSE_TOLD ":status: 200\ncontent-type: application/grpc\n--\ngrpc-status: 0\n--\n"

static const struct ck_h2_header ok_trailers[] = { CK_H2_HEADER("grpc-status", "0") };
static char filler[1 << 20];

static void finish_ok(struct call *call)
{
	assert_int_equal(ck_h2_stream_headers(call->stream, ok_trailers, 1, false), 0);
}

/* the server says back what it was told, then OK */
static void echo(struct call *call)
{
	assert_int_equal(ck_grpc_begin(call->stream), 0);
	assert_int_equal(ck_h2_stream_send(call->stream, call->data.p, call->data.len), 0);
	finish_ok(call);
}

static void answer_a_megabyte(struct call *call)
{
	assert_int_equal(ck_grpc_begin(call->stream), 0);
	assert_int_equal(ck_h2_stream_send(call->stream, filler, sizeof(filler)), 0);
	finish_ok(call);
}

static void begin_call(struct pair *pair, struct call *call, const char *body)
{
	assert_int_equal(pair_call(pair, call, "localhost"), 0);
	assert_int_equal(ck_h2_stream_send(call->stream, body, strlen(body)), 0);
	ck_h2_stream_end(call->stream);
}

static void check_closed(const struct call *call, uint32_t error)
{
	assert_null(call->stream);
	assert_int_equal(call->closes, 1);
	assert_int_equal(call->error, error);
}

static void check_echo(const struct call *call, const char *body)
{
	assert_string_equal(call->told, RESPONSE_TOLD);
	assert_int_equal(call->data.len, strlen(body));
	assert_memory_equal(call->data.p, body, call->data.len);
	assert_int_equal(call->ends, 1);
	check_closed(call, CK_H2_NO_ERROR);
}

/* the connection is as good as new */
static void check_alive(struct pair *pair)
{
	struct call call = { 0 }, before = pair->served;
	pair->served = (struct call){ .on_end = echo };
	begin_call(pair, &call, "still there?");
	pair_run(pair);
	check_echo(&call, "still there?");
	call_fini(&call);
	pair->served = before;
	assert_int_equal(pair->client_error, 0);
	assert_int_equal(pair->server_error, 0);
}

static void check_empty(struct pair *pair)
{
	assert_int_equal(ck_h2_streams(pair->client) + ck_h2_streams(pair->server), 0);
	assert_int_equal(ck_h2_queued(pair->client) + ck_h2_queued(pair->server), 0);
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
		assert_int_equal(pair->pending_client, 1); /* once for all three */
		pair_run(pair);
		assert_int_equal(pair->opened, 1);
		assert_string_equal(pair->at_server[0].told, REQUEST_TOLD("localhost"));
		check_closed(&pair->at_server[0], CK_H2_NO_ERROR);
		assert_int_equal(pair->at_server[0].sent, 11);
		assert_int_equal(call.sent, 11);
		check_echo(&call, "what is it?");
		check_empty(pair);
		pair_free(pair);
		call_fini(&call);
	}
}

/* kubelet 1.20 with grpc-go 1.27: nghttp2 by itself would reset the stream */
static void a_socket_path_may_be_the_authority(void **state)
{
	(void)state;
	struct pair *pair = pair_new();
	struct call call = { 0 };
	pair->served.on_end = echo;
	assert_int_equal(pair_call(pair, &call, "/run/containerd/containerd.sock"), 0);
	ck_h2_stream_end(call.stream);
	pair_run(pair);
	assert_string_equal(pair->at_server[0].told,
			    REQUEST_TOLD("/run/containerd/containerd.sock"));
	check_echo(&call, "");
	pair_free(pair);
	call_fini(&call);
}

/* by itself nghttp2 would hold the 101st back until the server's settings are there */
static void calls_do_not_wait_for_the_settings(void **state)
{
	(void)state;
	struct pair *pair = pair_new_raw(WINDOW, WINDOW);
	struct call calls[CALLS_MAX] = { { 0 } };
	struct ck_h2_stream *unheard;
	for (unsigned i = 0; i < 100; i++) {
		const struct ck_h2_header headers[] = { CK_H2_HEADER(":method", "POST"),
							CK_H2_HEADER(":path", "/a/b") };
		assert_int_equal(ck_h2_open(pair->client, headers, 2, NULL, NULL, &unheard, NULL),
				 0);
	}
	pair->refuse = true;
	for (unsigned i = 0; i < CALLS_MAX; i++)
		begin_call(pair, &calls[i], "x");
	assert_true(pair_to_server(pair));
	for (unsigned i = 0; i < CALLS_MAX; i++)
		assert_int_equal(calls[i].sent, 1);
	pair_run(pair);
	for (unsigned i = 0; i < CALLS_MAX; i++)
		check_closed(&calls[i], CK_H2_REFUSED_STREAM);
	check_empty(pair);
	pair_free(pair);
}

/* ---- flow control ---------------------------------------------------------------------------- */

static void a_stalled_reader_holds_up_nobody_else(void **state)
{
	(void)state;
	struct pair *pair = pair_new();
	struct call stalled[40] = { { 0 } };
	pair->served.on_end = answer_a_megabyte;
	for (size_t i = 0; i < CK_COUNT(stalled); i++) {
		stalled[i].stall = true;
		begin_call(pair, &stalled[i], "much");
	}
	pair_run(pair);
	for (size_t i = 0; i < CK_COUNT(stalled); i++)
		/* no more than that is ever held for it */
		assert_int_equal(stalled[i].data.len, WINDOW);
	assert_int_equal(ck_h2_queued(pair->server), CK_COUNT(stalled) * (sizeof(filler) - WINDOW));
	check_alive(pair);
	for (size_t i = 0; i < CK_COUNT(stalled); i++) {
		stalled[i].stall = false;
		ck_h2_stream_consume(stalled[i].stream, WINDOW);
	}
	pair_run(pair);
	for (size_t i = 0; i < CK_COUNT(stalled); i++) {
		assert_int_equal(stalled[i].data.len, sizeof(filler));
		check_closed(&stalled[i], CK_H2_NO_ERROR);
		call_fini(&stalled[i]);
	}
	check_empty(pair);
	pair_free(pair);
}

static void a_stalled_server_holds_up_nobody_else(void **state)
{
	(void)state;
	struct pair *pair = pair_new();
	struct call big[20] = { { 0 } };
	pair->served.stall = true;
	for (size_t i = 0; i < CK_COUNT(big); i++) {
		assert_int_equal(pair_call(pair, &big[i], "localhost"), 0);
		assert_int_equal(ck_h2_stream_send(big[i].stream, filler, sizeof(filler)), 0);
		ck_h2_stream_end(big[i].stream);
	}
	pair_run(pair);
	assert_int_equal(pair->at_server[3].data.len, WINDOW);
	pair->served.stall = false;
	check_alive(pair);
	for (size_t i = 0; i < CK_COUNT(big); i++)
		ck_h2_stream_reset(big[i].stream, CK_H2_CANCEL);
	assert_int_equal(ck_h2_queued(pair->client), 0);
	pair_run(pair);
	check_closed(&pair->at_server[3], CK_H2_CANCEL);
	check_empty(pair);
	check_alive(pair);
	pair_free(pair);
}

/* what was received and not consumed is given back, or the peer could never end */
static void a_forgotten_stream_comes_to_its_end(void **state)
{
	(void)state;
	struct pair *pair = pair_new();
	struct call call = { .stall = true };
	pair->served.on_end = answer_a_megabyte;
	begin_call(pair, &call, "much");
	pair_run(pair);
	assert_int_equal(call.data.len, WINDOW);
	ck_h2_stream_forget(call.stream);
	pair_run(pair);
	check_closed(&pair->at_server[0], CK_H2_NO_ERROR);
	assert_int_equal(pair->at_server[0].sent, sizeof(filler));
	assert_int_equal(call.data.len, WINDOW);
	assert_int_equal(call.closes + call.ends, 0);
	check_empty(pair);
	pair_free(pair);
	call_fini(&call);
}

static void answer_a_window(struct call *call)
{
	assert_int_equal(ck_grpc_begin(call->stream), 0);
	assert_int_equal(ck_h2_stream_send(call->stream, filler, WINDOW), 0);
}

static void trailers_do_not_wait_for_a_window(void **state)
{
	(void)state;
	struct pair *pair = pair_new();
	struct call call = { .stall = true };
	pair->served.on_end = answer_a_window;
	begin_call(pair, &call, "a window full");
	pair_run(pair);
	assert_int_equal(call.data.len, WINDOW);
	assert_int_equal(call.ends, 0);
	finish_ok(&pair->at_server[0]);
	pair_run(pair);
	assert_string_equal(call.told, RESPONSE_TOLD);
	check_closed(&call, CK_H2_NO_ERROR);
	check_empty(pair);

	/* and when they were there before the window closed */
	struct call again = { .stall = true };
	pair->served.on_sent = finish_ok; /* first after 16384 bytes: the rest is queued before */
	begin_call(pair, &again, "a window full");
	pair_run(pair);
	assert_string_equal(again.told, RESPONSE_TOLD);
	assert_int_equal(again.data.len, WINDOW);
	check_closed(&again, CK_H2_NO_ERROR);
	pair_free(pair);
	call_fini(&call);
	call_fini(&again);
}

static void more_consumed_than_received_is_taken_as_all(void **state)
{
	(void)state;
	struct pair *pair = pair_new();
	struct call call = { .stall = true };
	assert_int_equal(pair_call(pair, &call, "localhost"), 0);
	pair_run(pair);
	struct call *server = &pair->at_server[0];
	answer_a_window(server);
	pair_run(pair);
	ck_h2_stream_consume(call.stream, SIZE_MAX);
	ck_h2_stream_consume(call.stream, WINDOW);
	ck_h2_stream_send(server->stream, filler, 3 * WINDOW);
	pair_run(pair);
	assert_int_equal(call.data.len, 2 * WINDOW); /* not three */
	ck_h2_stream_reset(call.stream, CK_H2_CANCEL);
	pair_run(pair);
	check_alive(pair);
	pair_free(pair);
	call_fini(&call);
}

/* ---- ends ------------------------------------------------------------------------------------ */

static void a_body_may_grow_while_it_leaves(void **state)
{
	(void)state;
	struct pair *pair = pair_new();
	struct call call = { 0 };
	pair->served.on_end = echo;
	assert_int_equal(pair_call(pair, &call, "localhost"), 0);
	pair_run(pair);
	size_t sent = 0;
	for (unsigned i = 0; i < 3000; i++) { /* unevenly fed and fetched, more than one window */
		size_t n = i * 7919 % 301;
		for (size_t at = 0; at < n; at++)
			filler[at] = (char)((sent + at) * 31 % 251);
		ck_h2_stream_send(call.stream, filler, n);
		sent += n;
		if (i % 5 == 0)
			pair_to_server(pair);
		if (i % 7 == 0)
			pair_to_client(pair);
	}
	ck_h2_stream_end(call.stream);
	assert_int_equal(ck_h2_stream_send(call.stream, "late", 4), 0); /* after the end: nothing */
	ck_h2_stream_end(call.stream);
	pair_run(pair);
	assert_int_equal(call.data.len, sent);
	for (size_t at = 0; at < sent; at++)
		assert_int_equal(call.data.p[at], at * 31 % 251);
	check_closed(&call, CK_H2_NO_ERROR);
	pair_free(pair);
	call_fini(&call);
	memset(filler, 0, sizeof(filler));
}

static void refuse_at_once(struct call *call)
{
	assert_int_equal(
		ck_grpc_answer(call->stream, false, CK_GRPC_NOT_FOUND, "no such sandbox", NULL, 0),
		0);
}

static void trailers_alone_are_a_whole_answer(void **state)
{
	(void)state;
	struct pair *pair = pair_new();
	struct call call = { 0 }, open = { 0 };
	pair->served.on_headers = refuse_at_once;
	begin_call(pair, &call, "x");
	assert_int_equal(pair_call(pair, &open, "localhost"), 0); /* answered before it has ended */
	pair_run(pair);
	const char *told = ":status: 200\ncontent-type: application/grpc\ngrpc-status: "
			   "5\ngrpc-message: no such sandbox\n--\n";
	assert_string_equal(call.told, told);
	assert_int_equal(call.blocks, 1);
	check_closed(&call, CK_H2_NO_ERROR);
	assert_string_equal(open.told, told);
	assert_int_equal(open.ends, 1);
	assert_non_null(open.stream);
	ck_h2_stream_end(open.stream);
	pair_run(pair);
	check_closed(&open, CK_H2_NO_ERROR);
	check_empty(pair);
	pair_free(pair);
}

static const struct ck_h2_handler second_owner;

static void a_stream_can_change_hands(void **state)
{
	(void)state;
	struct pair *pair = pair_new();
	struct call call = { 0 }, second = { 0 };
	begin_call(pair, &call, "x");
	pair_run(pair);
	second.stream = call.stream;
	ck_h2_stream_handle(call.stream, &pair_handler, &second);
	answer_a_window(&pair->at_server[0]);
	finish_ok(&pair->at_server[0]);
	pair_run(pair);
	assert_int_equal(call.blocks + call.ends + call.closes, 0);
	assert_string_equal(second.told, RESPONSE_TOLD);
	check_closed(&second, CK_H2_NO_ERROR);

	struct call silent = { 0 }; /* a handler without members hears nothing and breaks nothing */
	begin_call(pair, &silent, "x");
	ck_h2_stream_handle(silent.stream, &second_owner, NULL);
	pair->served.on_end = answer_a_megabyte;
	pair_run(pair);
	check_closed(&pair->at_server[1], CK_H2_NO_ERROR);
	check_empty(pair);
	pair_free(pair);
	call_fini(&second);
}

/* ---- resets ---------------------------------------------------------------------------------- */

static void drop(struct call *call)
{
	struct ck_h2_stream *stream = CK_TAKE(call->stream);
	assert_int_equal(call->closes, 0);
	ck_h2_stream_reset(stream, CK_H2_CANCEL);
}

/* each side lets go from inside each callback, and from outside after each round */
static void a_reset_is_fine_at_every_moment(void **state)
{
	(void)state;
	for (int moment = 0; moment < 24; moment++) {
		struct pair *pair = pair_new();
		struct call call = { 0 };
		bool client_drops = moment % 2;
		void (**const spots[])(struct call *) = {
			client_drops ? &call.on_headers : &pair->served.on_headers,
			client_drops ? &call.on_data : &pair->served.on_data,
			client_drops ? &call.on_end : &pair->served.on_end,
			client_drops ? &call.on_sent : &pair->served.on_sent,
		};
		pair->served.on_end = answer_a_megabyte;
		if (moment < 8)
			*spots[moment / 2] = drop;
		if (moment == 4) /* the server's on_end was taken: answer earlier */
			pair->served.on_headers = answer_a_megabyte;
		if (moment == 6)
			pair->served.on_headers = answer_a_megabyte;
		begin_call(pair, &call, "x");
		bool dropped = moment < 8;
		for (int round = 8; !dropped && round < 24; round += 2) {
			struct call *other = client_drops ? &call : &pair->at_server[0];
			if (round / 2 * 2 == moment / 2 * 2 && (dropped = other->stream != NULL))
				drop(other);
			pair_to_server(pair);
			pair_to_client(pair);
		}
		pair_run(pair);
		/* at 8 the server has no stream yet; at 9 it never gets one */
		if (dropped && moment != 8 && moment != 9) {
			struct call *told = client_drops ? &pair->at_server[0] : &call;
			assert_int_equal(told->closes, 1);
		}
		if (moment == 9)
			/* a request that was not sent is not sent */
			assert_int_equal(pair->opened, 0);
		check_empty(pair);
		check_alive(pair);
		pair_free(pair);
		call_fini(&call);
	}
}

static struct call *victim;

static void drop_the_other(struct call *call)
{
	(void)call;
	if (victim->stream)
		drop(victim);
}

static void a_callback_may_reset_another_stream(void **state)
{
	(void)state;
	for (int moment = 0; moment < 5; moment++) {
		struct pair *pair = pair_new();
		struct call first = { 0 }, other = { 0 };
		void (**const spots[])(struct call *) = { &first.on_headers, &first.on_data,
							  &first.on_end, &first.on_sent,
							  &first.on_closed };
		*spots[moment] = drop_the_other;
		victim = &other;
		pair->served.on_end = answer_a_megabyte;
		begin_call(pair, &other, "x");
		begin_call(pair, &first, "x");
		pair_run(pair);
		assert_int_equal(first.data.len, sizeof(filler));
		check_closed(&first, CK_H2_NO_ERROR);
		assert_null(other.stream);
		check_empty(pair);
		check_alive(pair);
		pair_free(pair);
		call_fini(&first);
		call_fini(&other);
	}
}

static void a_late_reset_is_told(void **state)
{
	(void)state;
	struct pair *pair = pair_new();
	struct call call = { 0 };
	pair->served.on_end = echo;
	begin_call(pair, &call, "x");
	assert_true(pair_to_server(pair));
	const unsigned char *answer;
	/* on its way while the caller gives up */
	ptrdiff_t n = ck_h2_next(pair->server, &answer, NULL);
	assert_true(n > 0);
	check_closed(&pair->at_server[0], CK_H2_NO_ERROR);
	int32_t id = ck_h2_stream_id(call.stream);
	drop(&call);
	assert_true(pair_to_server(pair));
	assert_int_equal(pair->late_resets, 1);
	assert_int_equal(pair->late_id, id);
	assert_int_equal(pair->late_error, CK_H2_CANCEL);
	assert_int_equal(ck_h2_feed(pair->client, answer, (size_t)n, NULL), 0);
	pair_run(pair);
	assert_int_equal(call.blocks + call.closes, 0);
	check_empty(pair);
	check_alive(pair);
	assert_int_equal(pair->late_resets, 1); /* only that one */
	pair_free(pair);
}

/* Debian's nghttp2 says GOAWAY after 1,000 of them, unless told otherwise */
static void five_thousand_resets_cost_nothing(void **state)
{
	(void)state;
	struct pair *pair = pair_new();
	for (int i = 0; i < 5000; i++) {
		struct call call = { 0 };
		begin_call(pair, &call, "x");
		pair_run(pair);
		drop(&call);
		pair_run(pair);
		call_fini(&pair->at_server[0]);
		pair->opened = 0;
	}
	assert_int_equal(pair->draining, 0);
	check_empty(pair);
	check_alive(pair);
	pair_free(pair);
}

/* nghttp2 by itself keeps closed streams, as many as may be open: here without limit */
static void a_closed_stream_leaves_nothing_behind(void **state)
{
	(void)state;
	struct pair *pair = pair_new();
	size_t before = 0;
	pair->served.on_end = echo;
	for (int i = 0; i < 6000; i++) {
		struct call call = { 0 };
		begin_call(pair, &call, "x");
		pair_run(pair);
		call_fini(&call);
		call_fini(&pair->at_server[0]);
		pair->opened = 0;
		if (i == 1000)
			before = mallinfo2().uordblks;
	}
	assert_in_range(mallinfo2().uordblks, 0, before + 16384);
	pair_free(pair);
}

/* ---- the connection -------------------------------------------------------------------------- */

static void goaway_lets_calls_end(void **state)
{
	(void)state;
	struct pair *pair = pair_new();
	struct call call = { 0 }, refused = { 0 }, late = { 0 };
	struct ck_error err;
	begin_call(pair, &call, "x");
	pair_run(pair);
	begin_call(pair, &refused, "on its way");
	const unsigned char *request;
	ptrdiff_t n = ck_h2_next(pair->client, &request, NULL);
	ck_h2_goaway(pair->server);
	assert_int_equal(ck_h2_feed(pair->server, request, (size_t)n, NULL), 0);
	begin_call(pair, &late, "not sent yet");
	pair_to_client(pair);
	assert_int_equal(pair->draining, 1);
	pair_run(pair);
	check_closed(&refused, CK_H2_REFUSED_STREAM);
	check_closed(&late, CK_H2_REFUSED_STREAM);
	assert_int_equal(pair->opened, 1);
	struct ck_h2_stream *stream;
	assert_int_equal(
		ck_h2_open(pair->client, ok_trailers, 1, &pair_handler, NULL, &stream, &err),
		-CK_EUNAVAILABLE);
	assert_false(ck_h2_over(pair->client) || ck_h2_over(pair->server));
	echo(&pair->at_server[0]);
	pair_run(pair);
	check_echo(&call, "x");
	assert_true(ck_h2_over(pair->client) && ck_h2_over(pair->server));
	assert_int_equal(pair->draining, 1);
	pair_free(pair);
	call_fini(&call);
}

static void a_client_that_drains_takes_no_calls(void **state)
{
	(void)state;
	struct pair *pair = pair_new();
	struct call call = { 0 }, late = { 0 };
	pair->served.on_end = echo;
	begin_call(pair, &call, "x");
	ck_h2_goaway(pair->client);
	assert_int_equal(pair_call(pair, &late, "localhost"), -CK_EUNAVAILABLE);
	pair_run(pair);
	check_echo(&call, "x");
	assert_int_equal(pair->draining, 0); /* it said so itself */
	assert_true(ck_h2_over(pair->client));
	pair_free(pair);
	call_fini(&call);
}

static void streams_are_closed_with_their_connection(void **state)
{
	(void)state;
	struct pair *pair = pair_new();
	struct call calls[3] = { { 0 } };
	begin_call(pair, &calls[0], "half closed");
	assert_int_equal(pair_call(pair, &calls[1], "localhost"), 0);
	pair_run(pair);
	begin_call(pair, &calls[2], "not sent");
	ck_h2_free(CK_TAKE(pair->client));
	ck_h2_free(CK_TAKE(pair->server));
	for (int i = 0; i < 3; i++)
		check_closed(&calls[i], CK_H2_CANCEL);
	check_closed(&pair->at_server[0], CK_H2_CANCEL);
	check_closed(&pair->at_server[1], CK_H2_CANCEL);
	pair_free(pair);
}

/* a header block that is too long costs its own call, not the connection, whoever tries to send
 * it */
static void headers_too_long_cost_one_call(void **state)
{
	(void)state;
	struct pair *pair = pair_new();
	struct call call = { 0 }, other = { 0 };
	char *text = filler;
	memset(text, 'x', 150000);
	struct ck_h2_header headers[] = { CK_H2_HEADER(":path", "/a/b"),
					  { "grpc-message", text, 12, 150000 } };
	struct ck_error err;
	assert_int_equal(
		ck_h2_open(pair->client, headers, 2, &pair_handler, &call, &call.stream, &err),
		-CK_ETOOBIG);

	begin_call(pair, &other, "y");
	begin_call(pair, &call, "x");
	pair_run(pair);
	headers[0] = (struct ck_h2_header)CK_H2_HEADER("grpc-status", "2");
	ck_grpc_begin(pair->at_server[1].stream);
	assert_int_equal(ck_h2_stream_headers(pair->at_server[1].stream, headers, 2, false), 0);
	pair_run(pair);
	check_closed(&call, CK_H2_INTERNAL_ERROR);
	check_closed(&pair->at_server[1], CK_H2_INTERNAL_ERROR);
	echo(&pair->at_server[0]);
	pair_run(pair);
	check_echo(&other, "y");

	/* the longest that fits goes through, as do many short ones */
	struct call longest = { 0 };
	begin_call(pair, &longest, "x");
	pair_run(pair);
	headers[1].value_len = CK_HEADER_LIST_MAX - 12 - 11 - 1 - 2 * CK_HEADER_EXTRA;
	ck_grpc_begin(pair->at_server[2].stream);
	assert_int_equal(ck_h2_stream_headers(pair->at_server[2].stream, headers, 2, false), 0);
	pair_run(pair);
	assert_int_equal(longest.blocks, 2);
	check_closed(&longest, CK_H2_NO_ERROR);
	check_alive(pair);
	pair_free(pair);
	call_fini(&other);
	memset(filler, 0, sizeof(filler));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_call_goes_there_and_back),
		cmocka_unit_test(a_socket_path_may_be_the_authority),
		cmocka_unit_test(calls_do_not_wait_for_the_settings),
		cmocka_unit_test(a_stalled_reader_holds_up_nobody_else),
		cmocka_unit_test(a_stalled_server_holds_up_nobody_else),
		cmocka_unit_test(a_forgotten_stream_comes_to_its_end),
		cmocka_unit_test(trailers_do_not_wait_for_a_window),
		cmocka_unit_test(more_consumed_than_received_is_taken_as_all),
		cmocka_unit_test(a_body_may_grow_while_it_leaves),
		cmocka_unit_test(trailers_alone_are_a_whole_answer),
		cmocka_unit_test(a_stream_can_change_hands),
		cmocka_unit_test(a_reset_is_fine_at_every_moment),
		cmocka_unit_test(a_callback_may_reset_another_stream),
		cmocka_unit_test(a_late_reset_is_told),
		cmocka_unit_test(five_thousand_resets_cost_nothing),
		cmocka_unit_test(a_closed_stream_leaves_nothing_behind),
		cmocka_unit_test(goaway_lets_calls_end),
		cmocka_unit_test(a_client_that_drains_takes_no_calls),
		cmocka_unit_test(streams_are_closed_with_their_connection),
		cmocka_unit_test(headers_too_long_cost_one_call),
	};
	return CK_TEST_MAIN(tests);
}
