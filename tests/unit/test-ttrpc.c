/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hooks/wire/ttrpc.c over hooks/wire/mux.c: the bytes Go sends and wants, and a peer that sends
 * anything else. What goes out is read by a model of Go's reader, which gives up on a frame it has
 * no room for.
 */
#include <string.h>

#include "tests/unit/harness.h"
#include "hooks/wire/ttrpc.h"
#include "src/base/fault.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/base/utf8.h"

#define PLUGIN  "nri.pkg.api.v1alpha1.Plugin"
#define RUNTIME "nri.pkg.api.v1alpha1.Runtime"

/* ---- our end, which records what it is told -------------------------------------------------- */

struct end {
	struct ck_ttrpc *ttrpc;
	/* a line for each, with the payload's length: "answered 3 known 12 'text' 4\n",
	 * "requested 1 service/method 19\n" */
	struct ck_bytes told;
	struct ck_bytes payload; /* the last one */
	void (*on_request)(struct end *end, uint32_t stream);
	void (*on_answer)(struct end *end, uint32_t call);
	bool quiet;
};

static void note(struct end *end, const void *payload, size_t len, const char *line)
{
	end->payload.len = 0;
	assert_int_equal(ck_bytes_add(&end->payload, payload, len), 0);
	if (!end->quiet)
		assert_int_equal(ck_bytes_add_text(&end->told, line), 0);
}

static void answered(uint32_t call, bool known, const struct ck_ttrpc_answer *answer,
		     void *userdata)
{
	struct end *end = userdata;
	char line[512];
	assert_true(strlen(answer->message) <= CK_TEXT_MAX && answer->payload &&
		    (!answer->code || !answer->len));
	snprintf(line, sizeof(line), "answered %u %s %d '%s' %zu\n", call,
		 known ? "known" : "unknown", answer->code, answer->message, answer->len);
	note(end, answer->payload, answer->len, line);
	if (end->on_answer)
		end->on_answer(end, call);
}

static void requested(const struct ck_ttrpc_request *request, void *userdata)
{
	struct end *end = userdata;
	char line[600];
	assert_true(strlen(request->service) <= CK_TEXT_MAX &&
		    strlen(request->method) <= CK_TEXT_MAX && request->payload);
	snprintf(line, sizeof(line), "requested %u %s/%s %zu\n", request->stream, request->service,
		 request->method, request->len);
	note(end, request->payload, request->len, line);
	if (end->on_request)
		end->on_request(end, request->stream);
}

static const struct ck_ttrpc_ops ops = { answered, requested };

static struct end *end_new(void)
{
	struct end *end = calloc(1, sizeof(*end));
	assert_non_null(end);
	end->ttrpc = ck_ttrpc_new(&ops, end);
	assert_non_null(end->ttrpc);
	return end;
}

static void end_free(struct end *end)
{
	ck_ttrpc_free(end->ttrpc);
	ck_bytes_free(&end->told);
	ck_bytes_free(&end->payload);
	free(end);
}

/* what was told since it was asked last */
#define assert_told(end, text) \
	do { \
		assert_int_equal(ck_bytes_add(&(end)->told, "", 1), 0); \
		assert_string_equal((const char *)(end)->told.p, text); \
		(end)->told.len = 0; \
	} while (0)

static uint32_t call(struct end *end, const char *method, const void *payload, size_t len)
{
	struct ck_error err;
	uint32_t number = 0;
	assert_int_equal(ck_ttrpc_call(end->ttrpc, PLUGIN, method, payload, len, 0, &number, &err),
			 0);
	return number;
}

/* ---- the peer's end: bytes ------------------------------------------------------------------- */

static void hex(struct ck_bytes *out, const char *text)
{
	unsigned byte;
	for (; *text; text += *text == ' ' ? 1 : 2) {
		if (*text == ' ')
			continue;
		assert_int_equal(sscanf(text, "%2x", &byte), 1);
		unsigned char c = (unsigned char)byte;
		assert_int_equal(ck_bytes_add(out, &c, 1), 0);
	}
}

static void word(unsigned char *p, size_t value)
{
	for (int i = 3; i >= 0; i--, value >>= 8)
		p[i] = (unsigned char)value;
}

/* one message in one frame, flags and all */
static void message(struct ck_bytes *out, enum ck_mux_conn conn, uint32_t stream, unsigned type,
		    const void *data, size_t len)
{
	unsigned char head[18] = { 0 };
	word(head, conn);
	word(head + 4, len + 10);
	word(head + 8, len);
	word(head + 12, stream);
	head[16] = (unsigned char)(type & 0xff);
	head[17] = (unsigned char)(type >> 8); /* flags */
	assert_int_equal(ck_bytes_add(out, head, sizeof(head)), 0);
	assert_int_equal(ck_bytes_add(out, data, len), 0);
}

static void request(struct ck_bytes *out, uint32_t stream, const char *method, const void *payload,
		    size_t len)
{
	CK_AUTO_BYTES struct ck_bytes data = { 0 };
	ck_bytes_field_text(&data, 1, RUNTIME);
	ck_bytes_field_text(&data, 2, method);
	ck_bytes_field(&data, 3, payload, len);
	message(out, CK_MUX_RUNTIME, stream, 1, data.p, data.len);
}

static void response(struct ck_bytes *out, uint32_t stream, const void *payload, size_t len)
{
	CK_AUTO_BYTES struct ck_bytes data = { 0 };
	ck_bytes_field(&data, 2, payload, len);
	message(out, CK_MUX_PLUGIN, stream, 2, data.p, data.len);
}

static void fed(struct end *end, struct ck_bytes *bytes, size_t piece)
{
	struct ck_error err = { .text = "" };
	for (size_t at = 0; at < bytes->len; at += piece) {
		size_t n = bytes->len - at < piece ? bytes->len - at : piece;
		int r = ck_ttrpc_feed(end->ttrpc, bytes->p + at, n, &err);
		assert_string_equal(err.text, "");
		assert_int_equal(r, 0);
	}
	ck_bytes_free(bytes);
}

/* ---- what goes out, as Go reads it ----------------------------------------------------------- */

#define GO_BUFFER 4096

/* bufio.Reader over a mux connection whose Read() gives one frame, or fails */
struct go {
	const unsigned char *p, *end; /* frames that are left */
	const unsigned char *buffered;
	size_t buffered_n;
	uint32_t conn;
};

static bool go_read(struct go *go, unsigned char *to, size_t want)
{
	while (want) {
		if (!go->buffered_n) {
			if (go->end - go->p < 8)
				return false;
			size_t len = (size_t)go->p[4] << 24 | (size_t)go->p[5] << 16 |
				     (size_t)go->p[6] << 8 | go->p[7];
			go->conn = go->p[3];
			assert_true((size_t)(go->end - go->p) - 8 >= len);
			go->buffered = go->p + 8;
			go->buffered_n = len;
			go->p += 8 + len;
			/* ENOMEM: the connection is dead from here on */
			if (len > (want < GO_BUFFER ? GO_BUFFER : want))
				return false;
		}
		size_t n = want < go->buffered_n ? want : go->buffered_n;
		memcpy(to, go->buffered, n);
		to += n;
		want -= n;
		go->buffered += n;
		go->buffered_n -= n;
	}
	return true;
}

struct got { /* a message that Go read */
	uint32_t conn, stream;
	unsigned type, flags;
	unsigned char *data;
	size_t len;
};

/* the next message that waits to be written; false: none is left. Frees what @got had */
static bool out_next(struct end *end, struct got *got)
{
	unsigned char head[10];
	size_t n;
	const unsigned char *out = ck_ttrpc_out(end->ttrpc, &n);
	struct go go = { .p = out, .end = out + n };
	free(got->data);
	*got = (struct got){ 0 };
	if (!n)
		return false;
	assert_true(go_read(&go, head, sizeof(head)));
	got->conn = go.conn;
	got->len = (size_t)head[0] << 24 | (size_t)head[1] << 16 | (size_t)head[2] << 8 | head[3];
	got->stream = (uint32_t)head[4] << 24 | (uint32_t)head[5] << 16 | (uint32_t)head[6] << 8 |
		      head[7];
	got->type = head[8];
	got->flags = head[9];
	assert_true(got->len <= CK_TTRPC_MAX);
	got->data = malloc(got->len + 1);
	assert_non_null(got->data);
	assert_true(go_read(&go, got->data, got->len));
	assert_int_equal(go.buffered_n, 0); /* each message begins a frame */
	ck_ttrpc_sent(end->ttrpc, (size_t)(go.p - out));
	return true;
}

static void out_none(struct end *end)
{
	size_t n;
	ck_ttrpc_out(end->ttrpc, &n);
	assert_int_equal(n, 0);
}

static void out_is(struct end *end, const char *expected)
{
	CK_AUTO_BYTES struct ck_bytes bytes = { 0 };
	size_t n;
	hex(&bytes, expected);
	const unsigned char *out = ck_ttrpc_out(end->ttrpc, &n);
	assert_int_equal(n, bytes.len);
	assert_memory_equal(out, bytes.p, n);
	ck_ttrpc_sent(end->ttrpc, n);
}

/* the one answer that waits is this error; its text begins like this */
static void out_error(struct end *end, uint32_t stream, unsigned code, const char *text)
{
	struct got got = { 0 };
	assert_true(out_next(end, &got));
	assert_int_equal(got.conn, CK_MUX_RUNTIME);
	assert_int_equal(got.stream, stream);
	assert_int_equal(got.type, 2);
	assert_int_equal(got.flags, 0);
	assert_true(got.len >= 6 + strlen(text));
	assert_int_equal(got.data[0], 0x0a);
	size_t at = got.data[1] & 0x80 ? 3 : 2; /* behind the length of a status */
	assert_int_equal(got.data[at], 0x08);
	assert_int_equal(got.data[at + 1], code);
	assert_int_equal(got.data[at + 2], 0x12);
	at += got.data[at + 3] & 0x80 ? 5 : 4;
	assert_memory_equal(got.data + at, text, strlen(text));
	assert_false(out_next(end, &got));
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void the_bytes_are_those_of_go(void **state)
{
	(void)state;
	for (size_t piece = 1; piece < 200; piece = piece * 3 + 1) {
		struct end *end = end_new();
		struct ck_error err;
		CK_AUTO_BYTES struct ck_bytes in = { 0 };
		uint32_t number;

		hex(&in, "00000002 00000053 00000049 00000001 01 00 "
			 "0a1c6e72692e706b672e6170692e7631616c706861312e52756e74696d65 "
			 "120e5265676973746572506c7567696e "
			 "1a130a0474657374120231301a0776302e31322e32 2080e497d012");
		fed(end, &in, piece);
		assert_told(end, "requested 1 " RUNTIME "/RegisterPlugin 19\n");
		assert_memory_equal(end->payload.p, "\n\4test\22\00210\32\7v0.12.2", 19);
		assert_int_equal(ck_ttrpc_answer(end->ttrpc, 1, 0, NULL, NULL, 0), 0);
		out_is(end, "00000002 0000000a 00000000 00000001 02 00");

		hex(&in, "12036372741a02763120882728d00f320776302e31322e32");
		assert_int_equal(ck_ttrpc_call(end->ttrpc, PLUGIN, "Configure", in.p, in.len,
					       2 * CK_NS_PER_S, &number, &err),
				 0);
		assert_int_equal(number, 1);
		out_is(end, "00000001 00000052 00000048 00000001 01 00 "
			    "0a1b6e72692e706b672e6170692e7631616c706861312e506c7567696e "
			    "1209436f6e666967757265 "
			    "1a1812036372741a02763120882728d00f320776302e31322e32 2080a8d6b907");
		in.len = 0;
		hex(&in, "00000001 0000000e 00000004 00000001 02 00 1202100b");
		fed(end, &in, piece);
		assert_told(end, "answered 1 known 0 '' 2\n");
		assert_memory_equal(end->payload.p, "\20\13", 2);

		assert_int_equal(call(end, "Shutdown", NULL, 0), 3); /* empty: no payload at all */
		out_is(end, "00000001 00000031 00000027 00000003 01 00 "
			    "0a1b6e72692e706b672e6170692e7631616c706861312e506c7567696e "
			    "1208 53687574646f776e");
		assert_int_equal(call(end, "RunPodSandbox", "x", 1), 5);
		hex(&in, "00000001 00000024 0000001a 00000005 02 00 "
			 "0a18080c12146d6574686f642052756e506f6453616e64626f78");
		fed(end, &in, piece);
		assert_told(end, "answered 5 known 12 'method RunPodSandbox' 0\n");
		hex(&in, "00000001 0000000a 00000000 00000003 02 00"); /* in any order */
		fed(end, &in, piece);
		assert_told(end, "answered 3 known 0 '' 0\n");

		request(&in, 3, "x", "", 0);
		fed(end, &in, piece);
		struct got got = { 0 };
		assert_true(out_next(end, &got) && !out_next(end, &got));
		assert_int_equal(
			ck_ttrpc_answer(end->ttrpc, 3, 12, "method RunPodSandbox", "ignored", 7),
			0);
		out_is(end, "00000002 00000024 0000001a 00000003 02 00 "
			    "0a18080c12146d6574686f642052756e506f6453616e64626f78");
		end_free(end);
	}
}

static void messages_of_every_size_arrive_both_ways(void **state)
{
	(void)state;
	static const size_t sizes[] = {
		1, 4000, 4086, 4087, 4096, 20000, 1000000, (4u << 20) - 300
	};
	unsigned char *body = malloc(4u << 20);
	struct end *end = end_new();
	struct got got = { 0 };
	assert_non_null(body);
	for (size_t i = 0; i < 4u << 20; i++)
		body[i] = (unsigned char)(i * 7 + (i >> 8));
	for (size_t i = 0; i < CK_COUNT(sizes); i++) {
		size_t size = sizes[i];
		/* in one frame, and as Go cuts it: our own mux at the far end */
		for (int as_go = 0; as_go < 2; as_go++) {
			CK_AUTO_BYTES struct ck_bytes in = { 0 }, frame = { 0 };
			struct ck_mux mux = { .header_len = 0 };
			size_t n;
			uint32_t stream = (uint32_t)(4 * i + 2 * (unsigned)as_go + 1);
			request(&frame, stream, "UpdateContainers", body, size);
			if (as_go) {
				assert_int_equal(ck_mux_send(&mux, CK_MUX_RUNTIME, frame.p + 8, 10,
							     frame.p + 18, frame.len - 18),
						 0);
				const unsigned char *out = ck_mux_out(&mux, &n);
				assert_int_equal(ck_bytes_add(&in, out, n), 0);
				ck_mux_fini(&mux);
			} else {
				assert_int_equal(ck_bytes_add(&in, frame.p, frame.len), 0);
			}
			fed(end, &in, 65536);
			end->told.len = 0;
			assert_int_equal(end->payload.len, size);
			assert_memory_equal(end->payload.p, body, size);

			assert_int_equal(ck_ttrpc_answer(end->ttrpc, stream, 0, NULL, body, size),
					 0);
			assert_true(out_next(end, &got));
			assert_int_equal(got.conn, CK_MUX_RUNTIME);
			assert_int_equal(got.stream, stream);
			assert_int_equal(got.data[0], 0x12);
			assert_memory_equal(got.data + got.len - size, body, size);

			uint32_t number = call(end, "Synchronize", body, size);
			assert_true(out_next(end, &got));
			assert_int_equal(got.conn, CK_MUX_PLUGIN);
			assert_int_equal(got.type, 1);
			assert_memory_equal(got.data + got.len - size, body, size);
			response(&in, number, body, size);
			fed(end, &in, 65536);
			end->told.len = 0;
			assert_memory_equal(end->payload.p, body, size);
		}
	}
	assert_false(out_next(end, &got));
	free(body);
	end_free(end);
}

static void a_time_limit_is_sent_along(void **state)
{
	(void)state;
	static const struct {
		uint64_t timeout;
		const char *field;
	} limits[] = {
		{ 0, "" },
		{ 1, "\x20\x01" },
		{ INT64_MAX, "\x20\xff\xff\xff\xff\xff\xff\xff\xff\x7f" },
		/* a negative one would be over already */
		{ UINT64_MAX, "\x20\xff\xff\xff\xff\xff\xff\xff\xff\x7f" },
	};
	struct end *end = end_new();
	struct got got = { 0 };
	for (size_t i = 0; i < CK_COUNT(limits); i++) {
		uint32_t number;
		size_t n = strlen(limits[i].field);
		assert_int_equal(ck_ttrpc_call(end->ttrpc, "s", "m", "p", 1, limits[i].timeout,
					       &number, NULL),
				 0);
		assert_true(out_next(end, &got));
		assert_int_equal(got.len, 9 + n);
		assert_memory_equal(got.data, "\n\1s\22\1m\32\1p", 9);
		assert_memory_equal(got.data + 9, limits[i].field, n);
	}
	assert_false(out_next(end, &got));
	end_free(end);
}

static void a_malformed_envelope_costs_its_own_call(void **state)
{
	(void)state;
	static const char *const bad[] = { "\xff", "\n", "\n\5abc", "\032\x80", "\0\1", "\x13\1" };
	struct end *end = end_new();
	CK_AUTO_BYTES struct ck_bytes in = { 0 };
	uint32_t stream = 1;
	for (size_t i = 0; i < CK_COUNT(bad); i++, stream += 4) {
		size_t len = bad[i][0] ? strlen(bad[i]) : 2;
		message(&in, CK_MUX_RUNTIME, stream, 1, bad[i], len);
		fed(end, &in, 7);
		out_error(end, stream, CK_GRPC_INVALID_ARGUMENT, "byte ");
		assert_int_equal(ck_ttrpc_answer(end->ttrpc, stream, 0, NULL, NULL, 0), -CK_EINVAL);

		uint32_t number = call(end, "m", NULL, 0);
		ck_ttrpc_sent(end->ttrpc, SIZE_MAX);
		message(&in, CK_MUX_PLUGIN, number, 2, bad[i], len);
		assert_told(end, "");
		fed(end, &in, 7);
		end->told.p[end->told.len] = '\0';
		char expected[100];
		snprintf(expected, sizeof(expected),
			 "answered %u known 13 'a response that cannot be read: byte ", number);
		assert_memory_equal(end->told.p, expected, strlen(expected));
		end->told.len = 0;

		request(&in, stream + 2, "fine", "x", 1);
		fed(end, &in, 7);
		snprintf(expected, sizeof(expected), "requested %u " RUNTIME "/fine 1\n",
			 stream + 2);
		assert_told(end, expected);
	}
	/* inside a status, too */
	uint32_t number = call(end, "m", NULL, 0);
	message(&in, CK_MUX_PLUGIN, number, 2, "\n\2\x12\5hello", 9);
	fed(end, &in, 100);
	assert_non_null(memmem(end->told.p, end->told.len, "known 13 ", 9));
	end_free(end);
}

static void fields_are_read_as_protobuf_says(void **state)
{
	(void)state;
	struct end *end = end_new();
	CK_AUTO_BYTES struct ck_bytes in = { 0 };
	/* metadata, an unknown number, fields twice, a service that is a number: skipped, or the
	 * last one counts */
	static const char request_data[] =
		"\n\1a\x2a\4\n\2kv\x78\1\22\1b\n\2cc\x20\5\32\1x\32\3yyy\x08\7\x10\7\x3d"
		"1234";
	message(&in, CK_MUX_RUNTIME, 1, 1, request_data, sizeof(request_data) - 1);
	fed(end, &in, 1);
	assert_told(end, "requested 1 cc/b 3\n");
	assert_memory_equal(end->payload.p, "yyy", 3);
	message(&in, CK_MUX_RUNTIME, 3, 1, "", 0); /* nothing is legal: a call of no name */
	fed(end, &in, 1);
	assert_told(end, "requested 3 / 0\n");

	static const struct {
		const char *data;
		size_t len;
		const char *told;
	} responses[] = {
		{ "\n\0", 2, "0 '' 0" },                       /* a status that says OK */
		{ "\n\3\22\1x\22\2ab", 9, "0 '' 2" },          /* its text means nothing then */
		{ "\n\2\10\5\n\3\22\1x", 9, "5 'x' 0" },       /* a status in two parts */
		/* the last code; an error has no payload */
		{ "\n\2\10\5\n\2\10\7\22\2ab", 12, "7 '' 0" },
		{ "\n\2\10\5\n\2\10\0\22\2ab", 12, "0 '' 2" },
		{ "\n\2\22\0\22\1a\22\2bc", 11, "0 '' 2" }, /* the last payload */
		{ "\10\1\20\2\22\1a", 7, "0 '' 1" },        /* numbers where there are none */
		{ "\n\13\10\xff\xff\xff\xff\xff\xff\xff\xff\xff\1", 13, "-1 '' 0" },
		{ "\n\7\10\5\32\3any\22\1a", 12, "5 '' 0" }, /* details, which nobody reads */
		{ "\n\10\10\5\22\4a\nb\0", 10, "5 'a\\x0ab?' 0" },
	};
	for (size_t i = 0; i < CK_COUNT(responses); i++) {
		char expected[100];
		uint32_t number = call(end, "m", NULL, 0);
		message(&in, CK_MUX_PLUGIN, number, 2, responses[i].data, responses[i].len);
		fed(end, &in, 1);
		snprintf(expected, sizeof(expected), "answered %u known %s\n", number,
			 responses[i].told);
		assert_told(end, expected);
	}
	end_free(end);
}

/* the head of a message of @len bytes, and that many zeroes in the longest frames */
static void feed_long(struct end *end, enum ck_mux_conn conn, uint32_t stream, unsigned type,
		      size_t len)
{
	unsigned char head[18] = { 0 }, *zeroes = calloc(1, CK_MUX_FRAME_MAX);
	assert_non_null(zeroes);
	word(head, conn);
	word(head + 4, 10);
	word(head + 8, len);
	word(head + 12, stream);
	head[16] = (unsigned char)type;
	assert_int_equal(ck_ttrpc_feed(end->ttrpc, head, sizeof(head), NULL), 0);
	while (len) {
		size_t n = len < CK_MUX_FRAME_MAX ? (size_t)len : CK_MUX_FRAME_MAX;
		word(head + 4, n);
		len -= n;
		if (len)
			ck_fault_arm(CK_FAULT_ALLOC, 1, false); /* nothing of it is held */
		assert_int_equal(ck_ttrpc_feed(end->ttrpc, head, 8, NULL), 0);
		assert_int_equal(ck_ttrpc_feed(end->ttrpc, zeroes, n, NULL), 0);
		assert_false(ck_fault_hit());
		ck_fault_arm(0, 0, false);
	}
	free(zeroes);
}

static void a_message_that_is_too_long_costs_its_own_call(void **state)
{
	(void)state;
	static const size_t lengths[] = { CK_TTRPC_MAX + 1, 0xffffffff };
	struct end *end = end_new();
	CK_AUTO_BYTES struct ck_bytes in = { 0 };
	for (uint32_t i = 0; i < CK_COUNT(lengths); i++) {
		char expected[200];
		uint32_t stream = 8 * i + 1, number = 4 * i + 1;
		assert_int_equal(call(end, "m", NULL, 0), number);
		ck_ttrpc_sent(end->ttrpc, SIZE_MAX);
		feed_long(end, CK_MUX_RUNTIME, stream, 1, lengths[i]);
		out_error(end, stream, CK_GRPC_RESOURCE_EXHAUSTED, "the request is over 4 MiB");
		feed_long(end, CK_MUX_PLUGIN, number, 2, lengths[i]);
		snprintf(expected, sizeof(expected),
			 "answered %u known 8 'a response of %ju bytes; the limit is 4194304' 0\n",
			 number, (uintmax_t)lengths[i]);
		assert_told(end, expected);
		/* of a type nobody knows */
		feed_long(end, CK_MUX_RUNTIME, stream + 2, 3, lengths[i]);
		out_none(end);

		assert_int_equal(call(end, "m", NULL, 0), number + 2);
		ck_ttrpc_sent(end->ttrpc, SIZE_MAX);
		request(&in, stream + 2, "fine", "x", 1);
		response(&in, number + 2, "x", 1);
		fed(end, &in, 7);
		snprintf(expected, sizeof(expected),
			 "requested %u " RUNTIME "/fine 1\nanswered %u known 0 '' 1\n", stream + 2,
			 number + 2);
		assert_told(end, expected);
	}
	end_free(end);
}

static void what_is_too_long_to_send_is_refused_here(void **state)
{
	(void)state;
	struct end *end = end_new();
	struct ck_error err;
	struct got got = { 0 };
	CK_AUTO_BYTES struct ck_bytes in = { 0 };
	char *body = calloc(1, 5u << 20);
	uint32_t number = 77;
	/* service, method, and the payload's tag and length */
	const size_t around = 2 + 27 + 2 + 1 + 1 + 4;
	assert_non_null(body);
	assert_int_equal(ck_ttrpc_call(end->ttrpc, PLUGIN, "m", body, CK_TTRPC_MAX - around + 1, 0,
				       &number, &err),
			 -CK_ETOOBIG);
	assert_string_equal(err.text, "m: a message of 4194268 bytes; the limit is 4194304");
	assert_int_equal(ck_ttrpc_call(end->ttrpc, PLUGIN, "m", body, 5u << 20, 0, &number, &err),
			 -CK_ETOOBIG);
	assert_int_equal(number, 77);
	out_none(end);
	assert_int_equal(ck_ttrpc_call(end->ttrpc, PLUGIN, "m", body, CK_TTRPC_MAX - around, 0,
				       &number, &err),
			 0);
	assert_int_equal(number, 1);
	assert_true(out_next(end, &got));
	assert_int_equal(got.len, CK_TTRPC_MAX);

	for (uint32_t stream = 1; stream <= 5; stream += 2) {
		request(&in, stream, "m", "", 0);
		fed(end, &in, 100);
	}
	assert_int_equal(ck_ttrpc_answer(end->ttrpc, 1, 0, NULL, body, CK_TTRPC_MAX - 5), 0);
	assert_true(out_next(end, &got));
	assert_int_equal(got.len, CK_TTRPC_MAX);
	assert_false(out_next(end, &got));
	assert_int_equal(ck_ttrpc_answer(end->ttrpc, 3, 0, NULL, body, CK_TTRPC_MAX - 4), 0);
	out_error(end, 3, CK_GRPC_RESOURCE_EXHAUSTED, "the response is over 4 MiB");
	assert_int_equal(ck_ttrpc_answer(end->ttrpc, 5, 0, NULL, body, 5u << 20), 0);
	out_error(end, 5, CK_GRPC_RESOURCE_EXHAUSTED, "the response is over 4 MiB");
	free(body);
	end_free(end);
}

static void stream_ids_are_odd_and_ascend(void **state)
{
	(void)state;
	static const struct {
		uint32_t stream;
		bool good;
	} streams[] = {
		{ 0, false }, { 2, false },          { 1, true },          { 1, false },
		{ 5, true },  { 3, false },          { 4, false },         { 6, false },
		{ 7, true },  { 0xfffffffe, false }, { 0xffffffff, true }, { 0xffffffff, false },
		{ 9, false },
	};
	struct end *end = end_new();
	CK_AUTO_BYTES struct ck_bytes in = { 0 };
	for (size_t i = 0; i < CK_COUNT(streams); i++) {
		char expected[100];
		request(&in, streams[i].stream, "m", "", 0);
		fed(end, &in, 13);
		snprintf(expected, sizeof(expected), "requested %u " RUNTIME "/m 0\n",
			 streams[i].stream);
		assert_told(end, streams[i].good ? expected : "");
		if (streams[i].good)
			out_none(end);
		else
			out_error(end, streams[i].stream, CK_GRPC_INVALID_ARGUMENT, "stream ids");
	}
	end_free(end);
}

static void unknown_types_are_ignored_and_flags_too(void **state)
{
	(void)state;
	static const unsigned odd[] = { 0, 3, 4, 0x80, 0xff, 0x0103, 0xff03 };
	struct end *end = end_new();
	CK_AUTO_BYTES struct ck_bytes in = { 0 };
	call(end, "m", NULL, 0);
	ck_ttrpc_sent(end->ttrpc, SIZE_MAX);
	for (size_t i = 0; i < CK_COUNT(odd); i++) {
		message(&in, CK_MUX_PLUGIN, 1, odd[i], "\22\1x", 3);
		message(&in, CK_MUX_RUNTIME, 1, odd[i], "\n\1a\22\1b", 6);
	}
	message(&in, CK_MUX_PLUGIN, 1, 1, "\n\1a\22\1b", 6); /* a request where we are the client */
	message(&in, CK_MUX_RUNTIME, 1, 2, "\22\1x", 3);     /* an answer where we serve */
	fed(end, &in, 5);
	assert_told(end, "");
	out_none(end);
	message(&in, CK_MUX_PLUGIN, 1, 0xff02, "\22\1x", 3);
	message(&in, CK_MUX_RUNTIME, 1, 0x0101, "\n\1a\22\1b", 6);
	fed(end, &in, 5);
	assert_told(end, "answered 1 known 0 '' 1\nrequested 1 a/b 0\n");
	end_free(end);
}

static void a_late_answer_is_one_of_an_unknown_call(void **state)
{
	(void)state;
	struct end *end = end_new();
	CK_AUTO_BYTES struct ck_bytes in = { 0 };
	for (uint32_t i = 1; i <= 11; i += 2)
		assert_int_equal(call(end, "m", NULL, 0), i);
	ck_ttrpc_forget(end->ttrpc, 3);
	ck_ttrpc_forget(end->ttrpc, 3);
	ck_ttrpc_forget(end->ttrpc, 2);
	ck_ttrpc_forget(end->ttrpc, 99);
	static const uint32_t order[] = { 9, 3, 9, 1, 2, 0, 13, 5, 11, 7, 0xffffffff };
	for (size_t i = 0; i < CK_COUNT(order); i++)
		response(&in, order[i], "x", 1);
	fed(end, &in, 11);
	assert_told(end, "answered 9 known 0 '' 1\n"
			 "answered 3 unknown 0 '' 1\n"
			 "answered 9 unknown 0 '' 1\n"
			 "answered 1 known 0 '' 1\n"
			 "answered 2 unknown 0 '' 1\n"
			 "answered 0 unknown 0 '' 1\n"
			 "answered 13 unknown 0 '' 1\n" /* which was not made yet */
			 "answered 5 known 0 '' 1\n"
			 "answered 11 known 0 '' 1\n"
			 "answered 7 known 0 '' 1\n"
			 "answered 4294967295 unknown 0 '' 1\n");
	assert_int_equal(call(end, "m", NULL, 0), 13); /* numbers are not used again */
	end_free(end);
}

static void connections_do_not_mix(void **state)
{
	(void)state;
	struct end *end = end_new();
	CK_AUTO_BYTES struct ck_bytes in = { 0 };
	call(end, "m", NULL, 0);
	/* one message of each, in frames that alternate, some of them empty */
	hex(&in, "00000001 00000006 00000003 0000 00000002 00000009 00000009 00000001 01 00000001 "
		 "00000000"
		 "00000001 00000005 0001 02 00 12 00000002 00000005 00 0a 01 61 12 00000009 "
		 "00000002 ffff"
		 "00000001 00000001 01 00000002 00000004 02 62 63 1a 00000001 00000001 78 00000002 "
		 "00000000");
	fed(end, &in, 3);
	assert_told(end, "answered 1 known 0 '' 1\n"); /* the request lacks a byte */
	hex(&in, "00000002 00000001 00");
	fed(end, &in, 3);
	assert_told(end, "requested 1 a/bc 0\n");
	end_free(end);
}

static void too_many_unanswered_calls_are_refused(void **state)
{
	(void)state;
	struct end *end = end_new();
	CK_AUTO_BYTES struct ck_bytes in = { 0 };
	end->quiet = true;
	for (uint32_t i = 0; i < CK_TTRPC_CALLS_MAX; i++)
		request(&in, 2 * i + 1, "m", "", 0);
	fed(end, &in, 1000);
	out_none(end);
	end->quiet = false;
	request(&in, 129, "m", "", 0);
	fed(end, &in, 1000);
	assert_told(end, "");
	out_error(end, 129, CK_GRPC_RESOURCE_EXHAUSTED, "too many calls");
	assert_int_equal(ck_ttrpc_answer(end->ttrpc, 129, 0, NULL, NULL, 0), -CK_EINVAL);

	/* in any order, each once */
	assert_int_equal(ck_ttrpc_answer(end->ttrpc, 65, 0, NULL, NULL, 0), 0);
	out_is(end, "00000002 0000000a 00000000 00000041 02 00");
	assert_int_equal(ck_ttrpc_answer(end->ttrpc, 65, 0, NULL, NULL, 0), -CK_EINVAL);
	assert_int_equal(ck_ttrpc_answer(end->ttrpc, 64, 0, NULL, NULL, 0), -CK_EINVAL);
	out_none(end);
	request(&in, 131, "m", "", 0);
	fed(end, &in, 1000);
	assert_told(end, "requested 131 " RUNTIME "/m 0\n");
	for (uint32_t i = 1; i <= 131; i += 2)
		assert_int_equal(ck_ttrpc_answer(end->ttrpc, i, 0, NULL, NULL, 0),
				 i == 65 || i == 129 ? -CK_EINVAL : 0);
	end_free(end);
}

/* a clean UTF-8 text of no control characters */
static void assert_clean(const char *text)
{
	for (uint32_t c; *text;) {
		size_t n = ck_utf8_next(text, &c);
		assert_true(n > 0 && !ck_utf8_unsafe(c));
		text += n;
	}
}

static void texts_of_the_peer_are_cut_and_cleaned(void **state)
{
	(void)state;
	struct end *end = end_new();
	CK_AUTO_BYTES struct ck_bytes in = { 0 };
	struct got got = { 0 };
	/* a NUL hides nothing */
	message(&in, CK_MUX_RUNTIME, 1, 1, "\n\3a\0b\22\4\0\33\xff\n", 11);
	fed(end, &in, 100);
	assert_told(end, "requested 1 a?b/?\\x1b\\xff\\x0a 0\n");
	for (size_t len = 240; len < 300; len++) { /* cut between characters, wherever these lie */
		CK_AUTO_BYTES struct ck_bytes data = { 0 };
		CK_AUTO_BYTES struct ck_bytes status = { 0 };
		char text[300];
		memset(text, 'x', sizeof(text));
		for (size_t i = len % 3; i + 3 <= len; i += 3)
			memcpy(text + i, "\xe2\x80\x94", 3);
		ck_bytes_field_number(&status, 1, 2);
		ck_bytes_field(&status, 2, text, len);
		ck_bytes_field(&data, 1, status.p, status.len);
		message(&in, CK_MUX_PLUGIN, 1, 2, data.p, data.len);
		fed(end, &in, 1000);
		assert_int_equal(ck_bytes_add(&end->told, "", 1), 0);
		char *told = (char *)end->told.p + strlen("answered 1 unknown 2 '");
		end->told.len = 0;
		char *quote = strchr(told, '\'');
		assert_non_null(quote);
		assert_true(quote - told <= (int)CK_TEXT_MAX);
		assert_string_equal(quote, "' 0\n");
		assert_int_equal(len > CK_TEXT_MAX, !memcmp(quote - 3, "...", 3));
		*quote = '\0';
		assert_clean(told);
		if (len <= CK_TEXT_MAX)
			assert_memory_equal(told, text, len);
	}
	/* and what we send back has to be UTF-8, or Go takes none of it */
	assert_int_equal(ck_ttrpc_answer(end->ttrpc, 1, -1, "bad \xff text\n", NULL, 0), 0);
	assert_true(out_next(end, &got));
	static const char expected[] = "\n\x1e\10\xff\xff\xff\xff\xff\xff\xff\xff\xff\1\22\21"
				       "bad \\xff text\\x0a";
	assert_int_equal(got.len, sizeof(expected) - 1);
	assert_memory_equal(got.data, expected, got.len);
	request(&in, 3, "m", "", 0);
	fed(end, &in, 1000);
	end->told.len = 0;
	char longest[3000];
	memset(longest, 'y', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	assert_int_equal(ck_ttrpc_answer(end->ttrpc, 3, 2, longest, NULL, 0), 0);
	out_error(end, 3, 2, "yyyy");
	request(&in, 5, "m", "", 0);
	fed(end, &in, 1000);
	assert_int_equal(ck_ttrpc_answer(end->ttrpc, 5, 2, NULL, NULL, 0), 0); /* no text at all */
	out_is(end, "00000002 0000000e 00000004 00000005 02 00 0a020802");
	assert_false(out_next(end, &got));
	end_free(end);
}

static void who_calls_and_reads_no_answers_is_cut_off(void **state)
{
	(void)state;
	struct end *end = end_new();
	struct ck_error err;
	CK_AUTO_BYTES struct ck_bytes in = { 0 };
	size_t waiting = 0;
	int r = 0;
	request(&in, 2, "m", "", 0); /* an error each */
	for (unsigned i = 0; i < 1000000 && r == 0; i++) {
		r = ck_ttrpc_feed(end->ttrpc, in.p, in.len, &err);
		ck_ttrpc_out(end->ttrpc, &waiting);
	}
	assert_int_equal(r, -CK_EMALFORMED);
	assert_memory_equal(err.text, "it calls and reads no answers: 16777", 36);
	assert_in_range(waiting, CK_TTRPC_OUT_MAX, CK_TTRPC_OUT_MAX + 1000);
	end_free(end);
}

static void answer_and_call(struct end *end, uint32_t stream)
{
	if (stream < 100) {
		assert_int_equal(ck_ttrpc_answer(end->ttrpc, stream, 0, NULL, end->payload.p,
						 end->payload.len),
				 0);
		call(end, "again", end->payload.p, end->payload.len);
	}
}

static void call_and_forget(struct end *end, uint32_t number)
{
	ck_ttrpc_forget(end->ttrpc, call(end, "more", end->payload.p, end->payload.len));
	ck_ttrpc_forget(end->ttrpc, number);
}

static void calls_are_made_and_answered_from_within(void **state)
{
	(void)state;
	struct end *end = end_new();
	CK_AUTO_BYTES struct ck_bytes in = { 0 };
	struct got got = { 0 };
	char body[5000];
	size_t n = 0;
	memset(body, 'b', sizeof(body));
	end->on_request = answer_and_call;
	end->on_answer = call_and_forget;
	for (uint32_t i = 1; i < 40; i += 2)
		request(&in, i, "m", body, sizeof(body));
	for (uint32_t i = 1; i < 20; i += 2) /* our calls made in between, each answered */
		response(&in, i, body, sizeof(body));
	end->quiet = true;
	fed(end, &in, 4096);
	for (; out_next(end, &got); n++)
		assert_memory_equal(got.data + got.len - sizeof(body), body, sizeof(body));
	assert_int_equal(n, 20 + 20 + 10);
	end_free(end);
}

/* one life under a fault, 0: none: true if it was met. What was not told as done did not happen.
 * @errors: bytes of those sent */
static bool life(unsigned nth, size_t *errors)
{
	static const char body[6000] = "body";
	struct end end = { .quiet = true };
	struct ck_error err = { 0 };
	struct ck_bytes in = { 0 };
	uint32_t number = 0;
	size_t before, after;
	request(&in, 1, "RegisterPlugin", body, sizeof(body));
	message(&in, CK_MUX_RUNTIME, 2, 1, "", 0); /* which is answered with an error */
	message(&in, CK_MUX_RUNTIME, 3, 1, "\xff", 1);
	response(&in, 1, body, sizeof(body));
	assert_int_equal(ck_bytes_room(&end.payload, sizeof(body)), 0);

	ck_fault_arm(CK_FAULT_ALLOC, nth, false);
	end.ttrpc = ck_ttrpc_new(&ops, &end);
	bool fed_well = false;
	if (end.ttrpc) {
		for (int i = 0; i < 6; i++) {
			ck_ttrpc_out(end.ttrpc, &before);
			int r = ck_ttrpc_call(end.ttrpc, PLUGIN, "Configure", body, sizeof(body), 1,
					      &number, &err);
			ck_ttrpc_out(end.ttrpc, &after);
			assert_true(r == 0 ||
				    (r == -CK_ENOMEM && err.code == CK_ENOMEM && before == after));
			if (r < 0) /* the number was not used up */
				assert_int_equal(ck_ttrpc_call(end.ttrpc, PLUGIN, "m", "", 0, 0,
							       &number, &err),
						 0);
			assert_int_equal(number, 2 * i + 1);
		}
		ck_ttrpc_out(end.ttrpc, &before);
		int r = ck_ttrpc_feed(end.ttrpc, in.p, in.len, &err);
		ck_ttrpc_out(end.ttrpc, &after);
		assert_true(r == 0 || (r == -CK_ENOMEM && err.code == CK_ENOMEM));
		fed_well = r == 0;
		if (!nth)
			*errors = after - before;
		if (fed_well)
			assert_int_equal(after - before, *errors);
	}
	for (int i = 0; i < 2 && fed_well; i++) {
		ck_ttrpc_out(end.ttrpc, &before);
		int r = i ? ck_ttrpc_answer(end.ttrpc, 1, 2, "no", NULL, 0)
			  : ck_ttrpc_answer(end.ttrpc, 1, 0, NULL, body, sizeof(body));
		ck_ttrpc_out(end.ttrpc, &after);
		assert_true(r == 0 || r == -CK_ENOMEM || (i && r == -CK_EINVAL));
		assert_int_equal(r == 0, before != after);
		if (r == -CK_ENOMEM) { /* still owed */
			assert_int_equal(ck_ttrpc_answer(end.ttrpc, 1, 2, "no", NULL, 0), 0);
			break;
		}
	}
	bool met = ck_fault_hit();
	ck_fault_arm(0, 0, false);
	ck_ttrpc_free(end.ttrpc);
	ck_bytes_free(&end.payload);
	ck_bytes_free(&in);
	return met;
}

static void every_allocation_may_fail(void **state)
{
	(void)state;
	unsigned nth = 1;
	size_t errors = 0;
	assert_false(life(0, &errors));
	assert_true(errors > 50);
	while (life(nth, &errors))
		nth++;
	assert_in_range(nth, 20, 200);
	ck_ttrpc_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_bytes_are_those_of_go),
		cmocka_unit_test(messages_of_every_size_arrive_both_ways),
		cmocka_unit_test(a_time_limit_is_sent_along),
		cmocka_unit_test(a_malformed_envelope_costs_its_own_call),
		cmocka_unit_test(fields_are_read_as_protobuf_says),
		cmocka_unit_test(a_message_that_is_too_long_costs_its_own_call),
		cmocka_unit_test(what_is_too_long_to_send_is_refused_here),
		cmocka_unit_test(stream_ids_are_odd_and_ascend),
		cmocka_unit_test(unknown_types_are_ignored_and_flags_too),
		cmocka_unit_test(a_late_answer_is_one_of_an_unknown_call),
		cmocka_unit_test(connections_do_not_mix),
		cmocka_unit_test(too_many_unanswered_calls_are_refused),
		cmocka_unit_test(texts_of_the_peer_are_cut_and_cleaned),
		cmocka_unit_test(who_calls_and_reads_no_answers_is_cut_off),
		cmocka_unit_test(calls_are_made_and_answered_from_within),
		cmocka_unit_test(every_allocation_may_fail),
	};
	return CK_TEST_MAIN(tests);
}
