/* SPDX-License-Identifier: Apache-2.0 */
/* src/rpc/grpc.c: messages in pieces, time-outs, statuses there and back. */
#include "tests/unit/harness.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "tests/unit/wire-pair.h"

static void messages_are_read_however_they_are_cut(void **state)
{
	(void)state;
	static const char wire[] = "\0\0\0\0\3abc\0\0\0\0\0\0\0\0\0\1x";
	static const char *const messages[] = { "abc", "", "x" };
	for (size_t piece = 1; piece < sizeof(wire); piece++) {
		struct ck_grpc_reader reader = { .max = 3 };
		size_t got = 0;
		for (size_t at = 0; at < sizeof(wire) - 1;) {
			size_t n = sizeof(wire) - 1 - at, used;
			n = n < piece ? n : piece;
			int r = ck_grpc_read(&reader, wire + at, n, &used, NULL);
			assert_in_range(r, 0, 1);
			assert_true(used <= n && (r || used == n));
			at += used;
			assert_int_equal(ck_grpc_reader_inside(&reader), !r && at != 8 && at != 13);
			if (!r)
				continue;
			assert_true(got < 3);
			assert_int_equal(reader.message.len, strlen(messages[got]));
			if (reader.message.len)
				assert_memory_equal(reader.message.p, messages[got],
						    reader.message.len);
			if (++got == 1) { /* taken: the next one does not miss it */
				ck_bytes_free(&reader.message);
			}
		}
		assert_int_equal(got, 3);
		ck_grpc_reader_fini(&reader);
	}
}

static void a_message_over_the_limit_is_refused_before_it_comes(void **state)
{
	(void)state;
	struct ck_grpc_reader reader = { .max = 1000 };
	struct ck_error err;
	size_t used;
	assert_int_equal(ck_grpc_read(&reader, "\0\0\0\3\351", 5, &used, &err), -CK_ETOOBIG);
	assert_string_equal(err.text, "a message of 1001 bytes; the limit is 1000");
	ck_grpc_reader_fini(&reader);
	reader = (struct ck_grpc_reader){ .max = SIZE_MAX };
	assert_int_equal(ck_grpc_read(&reader, "\0\377\377\377\377xy", 7, &used, &err), 0);
	assert_int_equal(used, 7);
	assert_in_range(reader.message.room, 2, 1000); /* memory grows with what has come */
	assert_true(ck_grpc_reader_inside(&reader));
	ck_grpc_reader_fini(&reader);
	reader = (struct ck_grpc_reader){ .max = 1000 };
	/* compressed */
	assert_int_equal(ck_grpc_read(&reader, "\1\0\0\0\1x", 6, &used, &err), -CK_EMALFORMED);
	ck_grpc_reader_fini(&reader);
}

static void timeouts_are_read_and_written(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		uint64_t ns;
	} good[] = {
		{ "0n", 0 },
		{ "1n", 1 },
		{ "2000000u", 2 * CK_NS_PER_S },
		{ "240000m", 240 * CK_NS_PER_S },
		{ "90S", 90 * CK_NS_PER_S },
		{ "2M", 120 * CK_NS_PER_S },
		{ "1H", 3600 * CK_NS_PER_S },
		{ "00000001S", CK_NS_PER_S },
		{ "99999999n", 99999999 },
		{ "99999999H", CK_DURATION_MAX },
		{ "99999999M", CK_DURATION_MAX },
	};
	static const char *const bad[] = { "", "1", "S", "-1S", "+1S", " 1S", "1 S",
					   "1s", "1h", "1N", "100000000n", "1.5S", "1SS", "0x1S" };
	char buf[CK_GRPC_TIMEOUT];
	uint64_t ns;
	for (size_t i = 0; i < CK_COUNT(good); i++) {
		assert_true(ck_grpc_timeout_parse(good[i].text, strlen(good[i].text), &ns));
		assert_int_equal(ns, good[i].ns);
	}
	for (size_t i = 0; i < CK_COUNT(bad); i++)
		assert_false(ck_grpc_timeout_parse(bad[i], strlen(bad[i]), &ns));
	assert_false(ck_grpc_timeout_parse("1S\0", 3, &ns));

	assert_string_equal(ck_grpc_timeout_print(0, buf), "0n");
	assert_string_equal(ck_grpc_timeout_print(99999999, buf), "99999999n");
	assert_string_equal(ck_grpc_timeout_print(100000000, buf), "100000u");
	assert_string_equal(ck_grpc_timeout_print(100000001, buf), "100001u");
	assert_string_equal(ck_grpc_timeout_print(2 * CK_NS_PER_S, buf), "2000000u");
	assert_string_equal(ck_grpc_timeout_print(240 * CK_NS_PER_S, buf), "240000m");
	assert_string_equal(ck_grpc_timeout_print(UINT64_MAX, buf), "31536000S");
	/* never less, and less than a unit more */
	for (uint64_t at = 1; at < CK_DURATION_MAX / 3; at = at * 3 + 1) {
		ck_grpc_timeout_print(at, buf);
		assert_true(ck_grpc_timeout_parse(buf, strlen(buf), &ns));
		assert_true(ns >= at && ns - at <= at / 1000);
	}
}

static int read_status(struct ck_grpc_status *status, const char *code, const char *message,
		       const char *details)
{
	struct ck_h2_header headers[3];
	size_t n = 0;
	if (code)
		headers[n++] = (struct ck_h2_header){ "grpc-status", code, 11, strlen(code) };
	if (message)
		headers[n++] =
			(struct ck_h2_header){ "grpc-message", message, 12, strlen(message) };
	if (details)
		headers[n++] = (struct ck_h2_header){ "grpc-status-details-bin", details, 23,
						      strlen(details) };
	*status = (struct ck_grpc_status){ 0 };
	return ck_grpc_status_read(headers, n, status);
}

static void a_status_is_read_from_trailers(void **state)
{
	(void)state;
	struct ck_grpc_status status;
	assert_int_equal(read_status(&status, NULL, "text", NULL), 0);
	assert_null(status.message);

	assert_int_equal(read_status(&status, "5", "no%20such: 100%25 %c3%A4 %zz %4", "AAEC"), 1);
	assert_int_equal(status.code, CK_GRPC_NOT_FOUND);
	assert_string_equal(status.message, "no such: 100% \xc3\xa4 %zz %4");
	assert_int_equal(status.details_len, 3);
	assert_memory_equal(status.details, "\0\1\2", 3);
	ck_grpc_status_fini(&status);

	assert_int_equal(read_status(&status, "0", "", ""), 1);
	assert_true(!status.code && !status.message && !status.details);

	/* padded; a NUL ends no text */
	assert_int_equal(read_status(&status, "13", "a%00b", "AAE="), 1);
	assert_string_equal(status.message, "a?b");
	assert_int_equal(status.details_len, 2);
	ck_grpc_status_fini(&status);

	const char *const unreadable[] = { "", "x", "-1", "17", "99", "1x", "100", " 5" };
	for (size_t i = 0; i < CK_COUNT(unreadable); i++) {
		assert_int_equal(read_status(&status, unreadable[i], NULL, "!!!!"), 1);
		assert_int_equal(status.code, CK_GRPC_UNKNOWN);
		assert_true(!status.details && !status.details_len);
	}
}

static const char *answer_text;
static size_t answer_details;
static bool answer_begun;

static void answer(struct call *call)
{
	static char details[100000];
	if (answer_begun) {
		assert_int_equal(ck_grpc_begin(call->stream), 0);
		assert_int_equal(ck_grpc_send(call->stream, "message", 7), 0);
	}
	assert_int_equal(ck_grpc_answer(call->stream, answer_begun, CK_GRPC_ABORTED, answer_text,
					details, answer_details),
			 0);
}

static struct ck_grpc_status answered;

static void on_headers(struct ck_h2_stream *stream, const struct ck_h2_header *headers, size_t n,
		       void *userdata)
{
	(void)stream, (void)userdata;
	ck_grpc_status_read(headers, n, &answered);
}

static const struct ck_h2_handler status_reader = { .headers = on_headers };

/* the text and details as they arrive */
static void ask(const char *text, size_t details, bool begun)
{
	struct pair *pair = pair_new();
	struct call call = { 0 };
	answer_text = text;
	answer_details = details;
	answer_begun = begun;
	pair->served.on_headers = answer;
	assert_int_equal(pair_call(pair, &call, "localhost"), 0);
	ck_h2_stream_end(call.stream);
	ck_h2_stream_handle(call.stream, &status_reader, NULL);
	ck_grpc_status_fini(&answered);
	pair_run(pair);
	assert_int_equal(ck_h2_streams(pair->client), 0);
	assert_int_equal(pair->at_server[0].error, CK_H2_NO_ERROR);
	assert_int_equal(answered.code, CK_GRPC_ABORTED);
	pair_free(pair);
}

static void an_answer_of_any_length_arrives(void **state)
{
	(void)state;
	static char text[150001];
	for (int begun = 0; begun < 2; begun++) {
		ask("100 % \xc3\xa4\n\t\"\1", 5, begun);
		assert_string_equal(answered.message, "100 % \xc3\xa4\n\t\"\1");
		assert_int_equal(answered.details_len, 5);
		ask(NULL, 0, begun);
		assert_true(!answered.message && !answered.details);

		memset(text, 'x', sizeof(text) - 1);
		ask(text, 0, begun);
		assert_in_range(strlen(answered.message), 60000, CK_HEADER_LIST_MAX);
		assert_int_equal(strspn(answered.message, "x"), strlen(answered.message));
		ask(text, 20000, begun); /* both, the text shorter */
		assert_int_equal(answered.details_len, 20000);
		assert_in_range(strlen(answered.message), 30000, 40000);
		ask(text, sizeof(text) / 2, begun); /* details are whole or left out */
		assert_int_equal(answered.details_len, 0);
		assert_in_range(strlen(answered.message), 60000, CK_HEADER_LIST_MAX);

		for (size_t i = 0; i + 3 < sizeof(text); i += 3)
			memcpy(text + i, "\xe2\x82\xac", 3);
		ask(text, 0, begun); /* cut between characters */
		assert_int_equal(strlen(answered.message) % 3, 0);
		assert_in_range(strlen(answered.message), 20000, CK_HEADER_LIST_MAX / 3);
	}
	ck_grpc_status_fini(&answered);
}

static void http_statuses_have_their_codes(void **state)
{
	(void)state;
	assert_int_equal(ck_grpc_from_http(404), CK_GRPC_UNIMPLEMENTED);
	assert_int_equal(ck_grpc_from_http(503), CK_GRPC_UNAVAILABLE);
	assert_int_equal(ck_grpc_from_http(200), CK_GRPC_UNKNOWN);
}

static void headers_are_found_by_their_whole_name(void **state)
{
	(void)state;
	const struct ck_h2_header headers[] = { CK_H2_HEADER("grpc-status-details-bin", "x"),
						CK_H2_HEADER("grpc-status", "0"),
						CK_H2_HEADER("grpc-status", "1") };
	assert_ptr_equal(ck_h2_find(headers, 3, "grpc-status"), &headers[1]);
	assert_null(ck_h2_find(headers, 3, "grpc"));
	assert_null(ck_h2_find(NULL, 0, "grpc"));
	assert_true(ck_h2_is(&headers[1], "0"));
	assert_false(ck_h2_is(&headers[1], "00") || ck_h2_is(&headers[1], "") ||
		     ck_h2_is(NULL, "0"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_are_read_however_they_are_cut),
		cmocka_unit_test(a_message_over_the_limit_is_refused_before_it_comes),
		cmocka_unit_test(timeouts_are_read_and_written),
		cmocka_unit_test(a_status_is_read_from_trailers),
		cmocka_unit_test(an_answer_of_any_length_arrives),
		cmocka_unit_test(http_statuses_have_their_codes),
		cmocka_unit_test(headers_are_found_by_their_whole_name),
	};
	return CK_TEST_MAIN(tests);
}
