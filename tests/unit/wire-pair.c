/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/harness.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "tests/unit/wire-pair.h"

static void told(struct call *call, const char *name, size_t name_len, const char *value,
		 size_t value_len)
{
	size_t at = strlen(call->told);
	int shown = value_len > 200 ? 200 : (int)value_len;
	snprintf(call->told + at, sizeof(call->told) - at, "%.*s: %.*s\n", (int)name_len, name,
		 shown, value);
}

static void on_headers(struct ck_h2_stream *stream, const struct ck_h2_header *headers, size_t n,
		       void *userdata)
{
	struct call *call = userdata;
	assert_ptr_equal(call->stream, stream);
	for (size_t i = 0; i < n; i++)
		told(call, headers[i].name, headers[i].name_len, headers[i].value,
		     headers[i].value_len);
	size_t at = strlen(call->told);
	snprintf(call->told + at, sizeof(call->told) - at, "--\n");
	call->blocks++;
	if (call->on_headers)
		call->on_headers(call);
}

static void on_data(struct ck_h2_stream *stream, const unsigned char *bytes, size_t n,
		    void *userdata)
{
	struct call *call = userdata;
	assert_ptr_equal(call->stream, stream);
	assert_int_equal(call->ends, 0);
	ck_bytes_add(&call->data, bytes, n); /* under faults some may be missing */
	if (!call->stall)
		ck_h2_stream_consume(stream, n);
	if (call->on_data)
		call->on_data(call);
}

static void on_end(struct ck_h2_stream *stream, void *userdata)
{
	struct call *call = userdata;
	assert_ptr_equal(call->stream, stream);
	assert_int_equal(++call->ends, 1);
	if (call->on_end)
		call->on_end(call);
}

static void on_sent(struct ck_h2_stream *stream, size_t n, void *userdata)
{
	struct call *call = userdata;
	assert_ptr_equal(call->stream, stream);
	call->sent += n;
	if (call->on_sent)
		call->on_sent(call);
}

static void on_closed(struct ck_h2_stream *stream, uint32_t error, void *userdata)
{
	struct call *call = userdata;
	assert_ptr_equal(call->stream, stream);
	call->error = error;
	assert_int_equal(++call->closes, 1);
	if (call->on_closed)
		call->on_closed(call);
	call->stream = NULL;
}

const struct ck_h2_handler pair_handler = { on_headers, on_data, on_end, on_sent, on_closed };

static void on_opened(struct ck_h2_stream *stream, void *userdata)
{
	struct pair *pair = userdata;
	if (pair->refuse)
		return;
	assert_true(pair->opened < CALLS_MAX);
	struct call *call = &pair->at_server[pair->opened++];
	*call = pair->served;
	call->pair = pair;
	call->stream = stream;
	ck_h2_stream_handle(stream, &pair_handler, call);
}

static void on_pending_client(struct ck_h2 *h2, void *userdata)
{
	(void)h2;
	((struct pair *)userdata)->pending_client++;
}

static void on_pending_server(struct ck_h2 *h2, void *userdata)
{
	(void)h2;
	((struct pair *)userdata)->pending_server++;
}

static void on_draining(struct ck_h2 *h2, void *userdata)
{
	(void)h2;
	((struct pair *)userdata)->draining++;
}

static void on_late_reset(struct ck_h2 *h2, int32_t id, uint32_t error, void *userdata)
{
	struct pair *pair = userdata;
	assert_ptr_equal(h2, pair->server);
	pair->late_resets++;
	pair->late_id = id;
	pair->late_error = error;
}

static const struct ck_h2_owner client_owner = { .pending = on_pending_client,
						 .draining = on_draining };
static const struct ck_h2_owner server_owner = { on_opened, on_pending_server, NULL,
						 on_late_reset };

struct pair *pair_new_raw(uint32_t server_window, uint32_t client_window)
{
	struct pair *pair = calloc(1, sizeof(*pair));
	assert_non_null(pair);
	if (ck_h2_new(CK_H2_SERVER, server_window, &server_owner, pair, &pair->server, NULL) < 0 ||
	    ck_h2_new(CK_H2_CLIENT, client_window, &client_owner, pair, &pair->client, NULL) < 0) {
		pair_free(pair);
		return NULL;
	}
	return pair;
}

struct pair *pair_new(void)
{
	struct pair *pair = pair_new_raw(WINDOW, WINDOW);
	assert_non_null(pair);
	pair_run(pair);
	return pair;
}

void pair_free(struct pair *pair)
{
	ck_h2_free(pair->client);
	ck_h2_free(pair->server);
	for (unsigned i = 0; i < pair->opened; i++) {
		/* closed, or let go of by the test */
		assert_int_equal(pair->at_server[i].stream != NULL, 0);
		call_fini(&pair->at_server[i]);
	}
	free(pair);
}

static bool carry(struct pair *pair, struct ck_h2 *from, int *from_error, struct ck_h2 *to,
		  int *to_error, size_t *carried)
{
	const unsigned char *bytes;
	ptrdiff_t n = ck_h2_next(from, &bytes, NULL);
	if (n < 0)
		*from_error = (int)n;
	if (n <= 0)
		return false;
	*carried += (size_t)n;
	for (size_t at = 0; at < (size_t)n;) {
		size_t piece = (size_t)n - at;
		piece = pair->piece && piece > pair->piece ? pair->piece : piece;
		int r = ck_h2_feed(to, bytes + at, piece, NULL);
		if (r < 0)
			*to_error = r;
		at += piece;
	}
	return true;
}

bool pair_to_server(struct pair *pair)
{
	return carry(pair, pair->client, &pair->client_error, pair->server, &pair->server_error,
		     &pair->to_server);
}

bool pair_to_client(struct pair *pair)
{
	return carry(pair, pair->server, &pair->server_error, pair->client, &pair->client_error,
		     &pair->to_client);
}

void pair_run(struct pair *pair)
{
	for (bool more = true; more;) { /* both ways in each round */
		more = pair_to_server(pair);
		more = pair_to_client(pair) || more;
	}
}

int pair_call(struct pair *pair, struct call *call, const char *authority)
{
	const struct ck_h2_header headers[] = {
		CK_H2_HEADER(":method", "POST"),
		CK_H2_HEADER(":scheme", "http"),
		CK_H2_HEADER(":path", "/runtime.v1.RuntimeService/Version"),
		{ ":authority", authority, 10, strlen(authority) },
		CK_H2_HEADER("content-type", "application/grpc"),
		CK_H2_HEADER("te", "trailers"),
	};
	call->pair = pair;
	return ck_h2_open(pair->client, headers, CK_COUNT(headers), &pair_handler, call,
			  &call->stream, NULL);
}

void call_fini(struct call *call)
{
	ck_bytes_free(&call->data);
}
