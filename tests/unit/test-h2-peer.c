/* SPDX-License-Identifier: Apache-2.0 */
/*
 * src/rpc/h2.c against peers that break rules or limits. The peer is nghttp2 itself, with nothing
 * of ours around it, so that it can send what h2.c would never send; or hand-made bytes.
 */
#include <nghttp2/nghttp2.h>

#include "tests/unit/harness.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "tests/unit/wire-pair.h"

struct raw { /* a peer, and the h2 it talks to */
	nghttp2_session *session;
	struct ck_h2 *h2;
	struct call calls[4]; /* at a server: what was opened; at a client: the caller's */
	unsigned opened, frames_goaway, frames_rst;
	uint32_t rst_error, goaway_error;
	int feed_error;
};

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *userdata)
{
	struct raw *raw = userdata;
	(void)session;
	if (frame->hd.type == NGHTTP2_GOAWAY) {
		raw->frames_goaway++;
		raw->goaway_error = frame->goaway.error_code;
	} else if (frame->hd.type == NGHTTP2_RST_STREAM) {
		raw->frames_rst++;
		raw->rst_error = frame->rst_stream.error_code;
	}
	return 0;
}

static void answer(struct call *call)
{
	assert_int_equal(ck_grpc_answer(call->stream, false, CK_GRPC_OK, NULL, NULL, 0), 0);
}

static void on_opened(struct ck_h2_stream *stream, void *userdata)
{
	struct raw *raw = userdata;
	assert_true(raw->opened < CK_COUNT(raw->calls));
	struct call *call = &raw->calls[raw->opened++];
	call->stream = stream;
	call->on_end = answer;
	ck_h2_stream_handle(stream, &pair_handler, call);
}

static const struct ck_h2_owner owner = { .opened = on_opened };

static struct raw *raw_new(enum ck_h2_role ours)
{
	struct raw *raw = calloc(1, sizeof(*raw));
	nghttp2_session_callbacks *callbacks;
	nghttp2_option *option;
	assert_non_null(raw);
	assert_int_equal(ck_h2_new(ours, WINDOW, &owner, raw, &raw->h2, NULL), 0);
	nghttp2_session_callbacks_new(&callbacks);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
	nghttp2_option_new(&option);
	nghttp2_option_set_no_http_messaging(option, 1);
	nghttp2_option_set_max_send_header_block_length(option, 1 << 24);
	nghttp2_option_set_peer_max_concurrent_streams(option, 1000);
	(ours == CK_H2_SERVER ? nghttp2_session_client_new2
			      : nghttp2_session_server_new2)(&raw->session, callbacks, raw, option);
	nghttp2_session_callbacks_del(callbacks);
	nghttp2_option_del(option);
	nghttp2_submit_settings(raw->session, NGHTTP2_FLAG_NONE, NULL, 0);
	return raw;
}

static void raw_free(struct raw *raw)
{
	ck_h2_free(raw->h2);
	nghttp2_session_del(raw->session);
	for (unsigned i = 0; i < CK_COUNT(raw->calls); i++)
		call_fini(&raw->calls[i]);
	free(raw);
}

static void raw_run(struct raw *raw)
{
	for (bool moved = true; moved;) {
		const unsigned char *bytes;
		const uint8_t *raw_bytes;
		ptrdiff_t n = ck_h2_next(raw->h2, &bytes, NULL);
		if (n > 0)
			nghttp2_session_mem_recv(raw->session, bytes, (size_t)n);
		ssize_t m = nghttp2_session_mem_send(raw->session, &raw_bytes);
		if (m > 0 && ck_h2_feed(raw->h2, raw_bytes, (size_t)m, NULL) < 0)
			raw->feed_error++;
		moved = n > 0 || m > 0;
	}
}

/* a name is copied by nghttp2 only to be made lower case */
#define NV(n, v) \
	{ \
		(uint8_t *)(n), (uint8_t *)(v), sizeof(n) - 1, sizeof(v) - 1, \
			NGHTTP2_NV_FLAG_NO_COPY_NAME \
	}

/* one request with these headers behind :method, and then a good one; true if the first was told */
static bool request_is_told(const nghttp2_nv *more, size_t n, uint32_t *ret_error)
{
	struct raw *raw = raw_new(CK_H2_SERVER);
	nghttp2_nv *headers = calloc(n + 1, sizeof(*headers));
	headers[0] = (nghttp2_nv)NV(":method", "POST");
	memcpy(headers + 1, more, n * sizeof(*headers));
	assert_true(nghttp2_submit_request(raw->session, NULL, headers, n + 1, NULL, NULL) > 0);
	raw_run(raw);
	bool told = raw->opened;
	*ret_error = raw->rst_error;
	assert_int_equal(raw->frames_rst, !told);
	assert_int_equal(ck_h2_streams(raw->h2), 0);

	assert_true(nghttp2_submit_request(raw->session, NULL, headers, 1, NULL, NULL) > 0);
	raw_run(raw);
	assert_string_equal(raw->calls[told].told, ":method: POST\n--\n");
	assert_int_equal(raw->calls[told].closes, 1);
	assert_int_equal(raw->frames_goaway + (unsigned)raw->feed_error, 0);
	free(headers);
	raw_free(raw);
	return told;
}

static void bad_headers_cost_their_call_alone(void **state)
{
	(void)state;
	const nghttp2_nv fine[] = { NV(":path", "/a/b"), NV("x", ""), NV("y", "\xc3\xa4 \t~"),
				    NV("te", "trailers"), NV("x-bin", "AAAA") };
	const nghttp2_nv bad[][2] = {
		{ NV("x", "1"), NV(":path", "/a/b") }, /* a pseudo header after others */
		{ NV(":path", "/a/b"), NV("Upper", "1") },
		{ NV(":path", "/a/b"), NV("", "1") },
		{ NV(":path", "/a/b"), NV("a b", "1") },
		{ NV(":path", "/a/b"), NV("x", "a\0b") },
		{ NV(":path", "/a/b"), NV("x", "a\r\nb") },
		{ NV(":path", "/a/b"), NV(":status", "200") },
		{ NV(":path", "/a/b"), NV(":protocol", "x") },
		{ NV(":path", "/a/b"), NV("connection", "close") },
		{ NV(":path", "/a/b"), NV("te", "gzip") },
	};
	uint32_t error;
	assert_true(request_is_told(fine, CK_COUNT(fine), &error));
	for (size_t i = 0; i < CK_COUNT(bad); i++) {
		assert_false(request_is_told(bad[i], 2, &error));
		assert_int_equal(error, CK_H2_PROTOCOL_ERROR);
	}
}

/* trailers end the request, and have no pseudo headers */
static void bad_trailers_cost_their_call_alone(void **state)
{
	(void)state;
	const nghttp2_nv request[] = { NV(":method", "POST") }, plain[] = { NV("x", "1") },
			 pseudo[] = { NV(":method", "POST") };
	for (int i = 0; i < 3; i++) {
		struct raw *raw = raw_new(CK_H2_SERVER);
		nghttp2_submit_headers(raw->session, NGHTTP2_FLAG_NONE, -1, NULL, request, 1, NULL);
		raw_run(raw);
		nghttp2_submit_headers(raw->session,
				       i == 1 ? NGHTTP2_FLAG_NONE : NGHTTP2_FLAG_END_STREAM, 1,
				       NULL, i == 2 ? pseudo : plain, 1, NULL);
		raw_run(raw);
		assert_int_equal(raw->frames_rst, i > 0);
		assert_int_equal(raw->rst_error, i > 0 ? CK_H2_PROTOCOL_ERROR : 0);
		assert_int_equal(raw->frames_goaway + (unsigned)raw->feed_error, 0);
		raw_free(raw);
	}
}

static void too_many_headers_cost_their_call_alone(void **state)
{
	(void)state;
	nghttp2_nv many[CK_HEADERS_MAX];
	uint32_t error;
	for (size_t i = 0; i < CK_COUNT(many); i++)
		many[i] = (nghttp2_nv)NV("x", "1");
	assert_true(request_is_told(many, CK_HEADERS_MAX - 1, &error));
	assert_false(request_is_told(many, CK_HEADERS_MAX, &error));
	assert_int_equal(error, CK_H2_ENHANCE_YOUR_CALM);
}

static void long_headers_cost_their_call_alone(void **state)
{
	(void)state;
	static char text[30000];
	uint32_t error;
	memset(text, 'x', sizeof(text));
	nghttp2_nv three[3];
	for (size_t i = 0; i < CK_COUNT(three); i++)
		three[i] = (nghttp2_nv){ (uint8_t *)"x", (uint8_t *)text, 1, sizeof(text),
					 NGHTTP2_NV_FLAG_NONE };
	assert_true(request_is_told(three, 2, &error));
	assert_false(request_is_told(three, 3, &error));
	assert_int_equal(error, CK_H2_ENHANCE_YOUR_CALM);
}

static void assert_ends_the_connection(const nghttp2_nv *headers, size_t n)
{
	struct raw *raw = raw_new(CK_H2_SERVER);
	assert_true(nghttp2_submit_request(raw->session, NULL, headers, n, NULL, NULL) > 0);
	raw_run(raw);
	assert_true(raw->feed_error);
	assert_int_equal(raw->opened, 0);
	assert_int_equal(raw->frames_goaway, 1);
	assert_int_equal(raw->goaway_error, CK_H2_ENHANCE_YOUR_CALM);
	raw_free(raw);
}

/* A few bytes name many long ones (HPACK), and each block is decoded to its end. */
static void a_header_list_without_end_costs_the_connection(void **state)
{
	(void)state;
	static nghttp2_nv empty[CK_HEADERS_MAX + CK_HEADERS_END + 1];
	static char text[3000];
	nghttp2_nv many[CK_HEADER_LIST_END / sizeof(text)];
	memset(text, 'x', sizeof(text));
	for (size_t i = 0; i < CK_COUNT(many); i++)
		many[i] = (nghttp2_nv){ (uint8_t *)"x", (uint8_t *)text, 1, sizeof(text),
					NGHTTP2_NV_FLAG_NONE };
	for (size_t i = 0; i < CK_COUNT(empty); i++)
		empty[i] = (nghttp2_nv)NV("", "");
	assert_ends_the_connection(many, CK_COUNT(many));
	assert_ends_the_connection(empty, CK_COUNT(empty));
}

/* nghttp2 decodes them, and tells nothing of them */
static void lists_that_belong_to_no_call_have_an_end(void **state)
{
	(void)state;
	enum { HEAD = 9, BLOCK = 5000 };
	static unsigned char frame[HEAD + BLOCK] = {
		0, BLOCK >> 8, BLOCK & 0xff, NGHTTP2_HEADERS,
		NGHTTP2_FLAG_END_HEADERS | NGHTTP2_FLAG_END_STREAM, 0, 0, 0, 1
	};
	const nghttp2_nv request[] = { NV(":method", "POST") };
	for (size_t i = HEAD; i < sizeof(frame); i += 5) /* x: y, put into no table */
		memcpy(frame + i, "\0\1x\1y", 5);
	struct raw *raw = raw_new(CK_H2_SERVER);
	nghttp2_session_set_next_stream_id(raw->session, 7);
	nghttp2_submit_headers(raw->session, NGHTTP2_FLAG_NONE, -1, NULL, request, 1, NULL);
	raw_run(raw);
	assert_int_equal(raw->opened, 1); /* so stream 1 is over */
	for (unsigned i = 1; i <= CK_HEADERS_UNHEARD / BLOCK; i++)
		assert_int_equal(ck_h2_feed(raw->h2, frame, sizeof(frame), NULL), 0);
	raw_run(raw);
	assert_int_equal(raw->frames_goaway, 0);
	assert_int_equal(ck_h2_feed(raw->h2, frame, sizeof(frame), NULL), -CK_ETOOBIG);
	raw_run(raw);
	assert_int_equal(raw->goaway_error, CK_H2_ENHANCE_YOUR_CALM);
	raw_free(raw);
}

/* the runtime's headers are as little to be trusted */
static void a_bad_answer_is_told_as_a_reset(void **state)
{
	(void)state;
	struct raw *raw = raw_new(CK_H2_CLIENT);
	const struct ck_h2_header headers[] = { CK_H2_HEADER(":method", "POST") };
	for (int i = 0; i < 2; i++) {
		assert_int_equal(ck_h2_open(raw->h2, headers, 1, &pair_handler, &raw->calls[i],
					    &raw->calls[i].stream, NULL),
				 0);
		ck_h2_stream_end(raw->calls[i].stream);
	}
	raw_run(raw);
	const nghttp2_nv bad[] = { NV(":status", "200"), NV("X", "1") },
			 trailers[] = { NV("grpc-status", "0") };
	nghttp2_submit_headers(raw->session, NGHTTP2_FLAG_NONE, 1, NULL, bad, 2, NULL);
	raw_run(raw);
	assert_int_equal(raw->calls[0].closes, 1);
	assert_int_equal(raw->calls[0].error, CK_H2_PROTOCOL_ERROR);
	assert_int_equal(raw->calls[0].blocks, 0);

	const nghttp2_nv early[] = { NV(":status", "103"), NV("link", "x") },
			 first[] = { NV(":status", "200") };
	nghttp2_submit_headers(raw->session, NGHTTP2_FLAG_NONE, 3, NULL, early, 2, NULL);
	raw_run(raw);
	assert_int_equal(raw->calls[1].blocks, 0);
	nghttp2_submit_headers(raw->session, NGHTTP2_FLAG_NONE, 3, NULL, first, 1, NULL);
	nghttp2_submit_headers(raw->session, NGHTTP2_FLAG_END_STREAM, 3, NULL, trailers, 1, NULL);
	raw_run(raw);
	assert_string_equal(raw->calls[1].told, ":status: 200\n--\ngrpc-status: 0\n--\n");
	assert_int_equal(raw->calls[1].closes, 1);
	assert_int_equal(raw->calls[1].error, CK_H2_NO_ERROR);
	raw_free(raw);
}

static void a_request_with_trailers_is_told_in_order(void **state)
{
	(void)state;
	struct raw *raw = raw_new(CK_H2_SERVER);
	const nghttp2_nv headers[] = { NV(":method", "POST") }, trailers[] = { NV("x", "1") };
	nghttp2_submit_headers(raw->session, NGHTTP2_FLAG_NONE, -1, NULL, headers, 1, NULL);
	raw_run(raw);
	assert_int_equal(raw->calls[0].ends, 0);
	nghttp2_submit_headers(raw->session, NGHTTP2_FLAG_END_STREAM, 1, NULL, trailers, 1, NULL);
	raw_run(raw);
	assert_string_equal(raw->calls[0].told, ":method: POST\n--\nx: 1\n--\n");
	assert_int_equal(raw->calls[0].ends, 1);
	assert_int_equal(raw->calls[0].closes, 1);
	raw_free(raw);
}

/* a server is fed these bytes behind the preface; the error of its GOAWAY, or -1 if it sends none
 * and goes on */
static long goaway_for(const char *frame, size_t n)
{
	struct call call = { 0 };
	struct raw raw = { 0 };
	nghttp2_session_callbacks *callbacks;
	static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0";
	const unsigned char *bytes;
	ptrdiff_t out;
	(void)call;
	assert_int_equal(ck_h2_new(CK_H2_SERVER, WINDOW, &owner, &raw, &raw.h2, NULL), 0);
	nghttp2_session_callbacks_new(&callbacks);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
	nghttp2_session_client_new(&raw.session, callbacks, &raw);
	nghttp2_session_callbacks_del(callbacks);
	assert_int_equal(ck_h2_feed(raw.h2, preface, sizeof(preface) - 1, NULL), 0);
	assert_int_equal(ck_h2_feed(raw.h2, frame, n, NULL), 0);
	while ((out = ck_h2_next(raw.h2, &bytes, NULL)) > 0)
		nghttp2_session_mem_recv(raw.session, bytes, (size_t)out);
	assert_int_equal(ck_h2_over(raw.h2), raw.frames_goaway);
	if (raw.frames_goaway) /* what follows is not looked at */
		assert_int_equal(ck_h2_feed(raw.h2, "more", 4, NULL), 0);
	ck_h2_free(raw.h2);
	nghttp2_session_del(raw.session);
	return raw.frames_goaway ? (long)raw.goaway_error : -1;
}
#define GOAWAY_FOR(frame) goaway_for(frame, sizeof(frame) - 1)

static void broken_frames_end_the_connection_with_a_reason(void **state)
{
	(void)state;
	assert_int_equal(GOAWAY_FOR("\0\0\10\6\0\0\0\0\0pingping"), -1);
	/* DATA on a stream nobody opened */
	assert_int_equal(GOAWAY_FOR("\0\0\0\0\0\0\0\0\1"), NGHTTP2_PROTOCOL_ERROR);
	/* 16 MiB */
	assert_int_equal(GOAWAY_FOR("\377\377\377\0\0\0\0\0\1"), NGHTTP2_FRAME_SIZE_ERROR);
	/* HEADERS cut short */
	assert_int_equal(GOAWAY_FOR("\0\0\1\1\4\0\0\0\1\377"), NGHTTP2_COMPRESSION_ERROR);
	/* a window update of 0 */
	assert_int_equal(GOAWAY_FOR("\0\0\4\10\0\0\0\0\0\0\0\0\0"), NGHTTP2_PROTOCOL_ERROR);
	assert_int_equal(GOAWAY_FOR("\0\0\4\10\0\0\0\0\0\177\377\377\377"),
			 NGHTTP2_FLOW_CONTROL_ERROR);
}

static void what_is_not_http2_is_refused(void **state)
{
	(void)state;
	const char *const bad[] = { "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nXX",
				    "\xff\xff\xff\xff\xff\xff" };
	for (size_t i = 0; i < CK_COUNT(bad); i++) {
		struct ck_error err = { 0 };
		struct ck_h2 *h2;
		const unsigned char *bytes;
		assert_int_equal(ck_h2_new(CK_H2_SERVER, WINDOW, &owner, NULL, &h2, NULL), 0);
		assert_int_equal(ck_h2_feed(h2, bad[i], strlen(bad[i]), &err), -CK_EMALFORMED);
		assert_non_null(strstr(err.text, "HTTP/2"));
		assert_true(ck_h2_over(h2));
		assert_int_equal(ck_h2_feed(h2, "x", 1, NULL), -CK_EMALFORMED);
		assert_int_equal(ck_h2_next(h2, &bytes, NULL), -CK_EMALFORMED);
		ck_h2_free(h2);
	}
}

/* answers to pings pile up while the peer does not read */
static void a_flood_of_pings_ends_the_connection(void **state)
{
	(void)state;
	struct raw *raw = raw_new(CK_H2_SERVER);
	int r = 0;
	raw_run(raw);
	for (int i = 0; i < 100000 && r == 0; i++)
		r = ck_h2_feed(raw->h2, "\0\0\10\6\0\0\0\0\0pingping", 17, NULL);
	assert_int_equal(r, -CK_EMALFORMED);
	raw_free(raw);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bad_headers_cost_their_call_alone),
		cmocka_unit_test(bad_trailers_cost_their_call_alone),
		cmocka_unit_test(too_many_headers_cost_their_call_alone),
		cmocka_unit_test(long_headers_cost_their_call_alone),
		cmocka_unit_test(a_header_list_without_end_costs_the_connection),
		cmocka_unit_test(lists_that_belong_to_no_call_have_an_end),
		cmocka_unit_test(a_bad_answer_is_told_as_a_reset),
		cmocka_unit_test(a_request_with_trailers_is_told_in_order),
		cmocka_unit_test(broken_frames_end_the_connection_with_a_reason),
		cmocka_unit_test(what_is_not_http2_is_refused),
		cmocka_unit_test(a_flood_of_pings_ends_the_connection),
	};
	return CK_TEST_MAIN(tests);
}
