/* SPDX-License-Identifier: Apache-2.0 */
/*
 * src/rpc/client.c over a real socket, to a server that does what the path of a call says. The
 * server is h2.c in a thread of its own. Deadlines are real ones, of some milliseconds: the client
 * waits for nothing else.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "tests/unit/harness.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/rpc/address.h"
#include "src/rpc/client.h"

#define MS CK_NS_PER_MS

/* ---- the server ------------------------------------------------------------------------------ */

static struct server {
	char dir[64], path[96];
	int listener, stop[2];
	pthread_t thread;
	/* looked at when the thread has ended, or after an answer that was later */
	unsigned connections, calls, cancels;
	char timeout[32];                     /* grpc-timeout of the last call */
	char headers[1024];                   /* of the last call */
	bool hang_up, closing; /* streams that end with their connection were not cancelled */
	struct ck_h2 *h2;
} server;

struct served {
	char path[64];
	struct ck_grpc_reader reader;
};

static void answer(struct ck_h2_stream *stream, int code, const char *message)
{
	ck_grpc_begin(stream);
	if (!code)
		ck_grpc_send(stream, "reply", 5);
	ck_grpc_answer(stream, true, code, message, "details", 7);
}

static void on_headers(struct ck_h2_stream *stream, const struct ck_h2_header *headers, size_t n,
		       void *userdata)
{
	struct served *served = userdata;
	const struct ck_h2_header *path = ck_h2_find(headers, n, ":path"),
				  *timeout = ck_h2_find(headers, n, "grpc-timeout");
	(void)stream;
	server.calls++;
	snprintf(served->path, sizeof(served->path), "%.*s", (int)path->value_len, path->value);
	snprintf(server.timeout, sizeof(server.timeout), "%.*s",
		 timeout ? (int)timeout->value_len : 0, timeout ? timeout->value : "");
	*server.headers = '\0';
	for (size_t i = 0; i < n; i++) {
		size_t at = strlen(server.headers);
		snprintf(server.headers + at, sizeof(server.headers) - at, "%.*s: %.*s\n",
			 (int)headers[i].name_len, headers[i].name, (int)headers[i].value_len,
			 headers[i].value);
	}
}

static void on_data(struct ck_h2_stream *stream, const unsigned char *bytes, size_t n,
		    void *userdata)
{
	struct served *served = userdata;
	size_t used;
	if (strcmp(served->path, "/stall") == 0)
		return;
	for (size_t at = 0; at < n; at += used)
		assert_true(ck_grpc_read(&served->reader, bytes + at, n - at, &used, NULL) >= 0);
	ck_h2_stream_consume(stream, n);
}

static void on_end(struct ck_h2_stream *stream, void *userdata)
{
	static const struct ck_h2_header page[] = { CK_H2_HEADER(":status", "503"),
						    CK_H2_HEADER("content-type", "text/html") };
	struct served *served = userdata;
	const char *path = served->path;
	if (strcmp(path, "/ok") == 0) {
		answer(stream, 0, NULL);
	} else if (strcmp(path, "/echo") == 0) {
		ck_grpc_begin(stream);
		ck_grpc_send(stream, served->reader.message.p, served->reader.message.len);
		ck_grpc_answer(stream, true, 0, NULL, NULL, 0);
	} else if (strcmp(path, "/empty") == 0) {
		ck_grpc_begin(stream);
		ck_grpc_send(stream, NULL, 0);
		ck_grpc_answer(stream, true, 0, NULL, NULL, 0);
	} else if (strcmp(path, "/not-found") == 0) {
		answer(stream, CK_GRPC_NOT_FOUND, "100% gone");
	} else if (strcmp(path, "/alone") == 0) {
		ck_grpc_answer(stream, false, CK_GRPC_ABORTED, "moved on", NULL, 0);
	} else if (strcmp(path, "/no-message") == 0) {
		ck_grpc_answer(stream, false, 0, NULL, NULL, 0);
	} else if (strcmp(path, "/no-trailers") == 0) {
		ck_grpc_begin(stream);
		ck_h2_stream_end(stream);
	} else if (strcmp(path, "/page") == 0) {
		ck_h2_stream_headers(stream, page, 2, true);
	} else if (strcmp(path, "/compressed") == 0) {
		ck_grpc_begin(stream);
		ck_h2_stream_send(stream, "\1\0\0\0\1x", 6);
	} else if (strncmp(path, "/reset-", 7) == 0) {
		ck_h2_stream_reset(stream, (uint32_t)atoi(path + 7));
		ck_grpc_reader_fini(&served->reader);
		free(served);
	} else if (strcmp(path, "/hang-up") == 0) {
		server.hang_up = true;
	} else if (strcmp(path, "/goaway") == 0) {
		answer(stream, 0, NULL);
		ck_h2_goaway(server.h2);
	}
	/* "/never": no answer */
}

static void on_closed(struct ck_h2_stream *stream, uint32_t error, void *userdata)
{
	struct served *served = userdata;
	(void)stream;
	server.cancels += error == CK_H2_CANCEL && !server.closing;
	ck_grpc_reader_fini(&served->reader);
	free(served);
}

static const struct ck_h2_handler handler = { on_headers, on_data, on_end, NULL, on_closed };

static void on_opened(struct ck_h2_stream *stream, void *userdata)
{
	struct served *served = calloc(1, sizeof(*served));
	(void)userdata;
	served->reader.max = 100 << 20;
	ck_h2_stream_handle(stream, &handler, served);
}

static const struct ck_h2_owner owner = { .opened = on_opened };

static void send_all(int fd)
{
	const unsigned char *bytes;
	ptrdiff_t n;
	while ((n = ck_h2_next(server.h2, &bytes, NULL)) > 0) {
		for (ssize_t done = 0; done < n;) {
			ssize_t sent = send(fd, bytes + done, (size_t)(n - done), MSG_NOSIGNAL);
			if (sent < 0)
				return;
			done += sent;
		}
	}
}

/* one connection after the other; false: asked to end */
static bool serve(int fd)
{
	static unsigned char in[65536];
	assert_int_equal(ck_h2_new(CK_H2_SERVER, 65535, &owner, NULL, &server.h2, NULL), 0);
	bool go_on = true;
	ssize_t n = 1;
	for (server.hang_up = false; go_on && n > 0 && !server.hang_up && !ck_h2_over(server.h2);) {
		struct pollfd p[] = { { .fd = fd, .events = POLLIN },
				      { .fd = server.stop[0], .events = POLLIN } };
		send_all(fd);
		assert_true(poll(p, 2, -1) > 0);
		go_on = !p[1].revents;
		if (go_on && p[0].revents) {
			n = recv(fd, in, sizeof(in), 0);
			if (n > 0)
				ck_h2_feed(server.h2, in, (size_t)n, NULL);
		}
	}
	if (!server.hang_up)
		send_all(fd);
	server.closing = true;
	ck_h2_free(server.h2);
	server.closing = false;
	close(fd);
	return go_on;
}

static void *serve_all(void *userdata)
{
	(void)userdata;
	for (bool go_on = true; go_on;) {
		struct pollfd p[] = { { .fd = server.listener, .events = POLLIN },
				      { .fd = server.stop[0], .events = POLLIN } };
		assert_true(poll(p, 2, -1) > 0);
		int fd = p[1].revents ? -1 : accept4(server.listener, NULL, NULL, SOCK_CLOEXEC);
		server.connections += fd >= 0;
		go_on = fd >= 0 && serve(fd);
	}
	return NULL;
}

static int start(void **state)
{
	(void)state;
	memset(&server, 0, sizeof(server));
	strcpy(server.dir, "/tmp/client.XXXXXX");
	assert_non_null(mkdtemp(server.dir));
	snprintf(server.path, sizeof(server.path), "%s/s", server.dir);
	server.listener = ck_unix_listen(server.path, 0600, (gid_t)-1, NULL);
	assert_true(server.listener >= 0);
	assert_int_equal(pipe(server.stop), 0);
	assert_int_equal(pthread_create(&server.thread, NULL, serve_all, NULL), 0);
	return 0;
}

/* what the thread has counted can be looked at now */
static void stop_server(void)
{
	if (!server.thread)
		return;
	close(server.stop[1]);
	pthread_join(server.thread, NULL);
	server.thread = 0;
	close(server.stop[0]);
	close(server.listener);
	unlink(server.path);
	rmdir(server.dir);
}

static int stop(void **state)
{
	(void)state;
	stop_server();
	return 0;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static struct ck_client *client_new(void)
{
	struct ck_client *client;
	assert_int_equal(ck_client_new(server.path, &client, NULL), 0);
	return client;
}

static void ask(struct ck_client *client, struct ck_unary *call, const char *path, uint64_t timeout)
{
	*call = (struct ck_unary){ 0 };
	assert_int_equal(ck_unary_begin(client, call, path, "request", 7, timeout, NULL), 0);
	assert_true(ck_client_wait(client, call, UINT64_MAX));
	assert_true(call->done);
	assert_in_range(call->ended, call->began, ck_client_now());
}

static void expect(struct ck_client *client, const char *path, int code, const char *text)
{
	struct ck_unary call;
	ask(client, &call, path, 0);
	assert_int_equal(call.status.code, code);
	if (text)
		assert_string_equal(call.status.message, text);
	else
		assert_null(call.status.message);
	if (code)
		assert_int_equal(call.reply.len, 0);
	ck_unary_fini(&call);
}

static void what_the_server_says_is_told(void **state)
{
	(void)state;
	struct ck_client *client = client_new();
	struct ck_unary call;
	ask(client, &call, "/ok", 0);
	assert_int_equal(call.status.code, 0);
	assert_int_equal(call.reply.len, 5);
	assert_memory_equal(call.reply.p, "reply", 5);
	ck_unary_fini(&call);
	ask(client, &call, "/not-found", 0);
	assert_int_equal(call.status.details_len, 7);
	ck_unary_fini(&call);
	expect(client, "/empty", 0, NULL);
	expect(client, "/not-found", CK_GRPC_NOT_FOUND, "100% gone");
	expect(client, "/alone", CK_GRPC_ABORTED, "moved on");
	ck_client_free(client);
	stop_server();
	assert_int_equal(server.connections, 1);
	assert_string_equal(server.timeout, "");
	char headers[512];
	snprintf(headers, sizeof(headers),
		 ":method: POST\n:scheme: http\n:path: /alone\n:authority: "
		 "localhost\ncontent-type: application/grpc\n"
		 "user-agent: crikeep/%s\nte: trailers\n",
		 ck_version());
	assert_string_equal(server.headers, headers);
}

static void what_the_server_leaves_unsaid_is_told_as_grpc_go_does(void **state)
{
	(void)state;
	struct ck_client *client = client_new();
	expect(client, "/no-message", CK_GRPC_INTERNAL,
	       "server closed the stream without sending a message");
	expect(client, "/no-trailers", CK_GRPC_INTERNAL,
	       "server closed the stream without sending trailers");
	expect(client, "/page", CK_GRPC_UNAVAILABLE, "the server's answer is not of gRPC");
	expect(client, "/compressed", CK_GRPC_INTERNAL,
	       "a compressed message, which was not agreed on");
	expect(client, "/reset-8", CK_GRPC_CANCELLED,
	       "stream terminated by RST_STREAM with error code: CANCEL");
	expect(client, "/reset-7", CK_GRPC_UNAVAILABLE,
	       "stream terminated by RST_STREAM with error code: REFUSED_STREAM");
	expect(client, "/reset-11", CK_GRPC_RESOURCE_EXHAUSTED,
	       "stream terminated by RST_STREAM with error code: ENHANCE_YOUR_CALM");
	expect(client, "/reset-99", CK_GRPC_UNKNOWN,
	       "stream terminated by RST_STREAM with error code: unknown");
	expect(client, "/ok", 0, NULL);
	ck_client_free(client);
	stop_server();
	assert_int_equal(server.connections, 1); /* none of it cost the connection */
}

static void a_deadline_is_told_and_kept(void **state)
{
	(void)state;
	struct ck_client *client = client_new();
	struct ck_unary call;
	ask(client, &call, "/never", 30 * MS);
	assert_int_equal(call.status.code, CK_GRPC_DEADLINE_EXCEEDED);
	assert_string_equal(call.status.message, "context deadline exceeded");
	assert_in_range(call.ended - call.began, 30 * MS, 2000 * MS);
	ck_unary_fini(&call);
	expect(client, "/ok", 0, NULL);
	stop_server(); /* the server has answered after it heard of the reset */
	assert_int_equal(server.cancels, 1);
	ck_client_free(client);
}

static void a_deadline_is_written_as_the_time_that_is_left(void **state)
{
	(void)state;
	struct ck_client *client = client_new();
	struct ck_unary call;
	ask(client, &call, "/ok", 2000 * MS);
	ck_unary_fini(&call);
	ck_client_free(client);
	stop_server();
	assert_string_equal(server.timeout, "2000000u");
}

static void a_server_that_reads_nothing_is_given_up_too(void **state)
{
	(void)state;
	struct ck_client *client = client_new();
	struct ck_unary call = { 0 };
	size_t len = 4 << 20;
	char *big = calloc(1, len);
	assert_int_equal(ck_unary_begin(client, &call, "/stall", big, len, 30 * MS, NULL), 0);
	assert_true(ck_client_wait(client, &call, UINT64_MAX));
	assert_int_equal(call.status.code, CK_GRPC_DEADLINE_EXCEEDED);
	ck_unary_fini(&call);
	expect(client, "/ok", 0, NULL);
	ck_client_free(client);
	free(big);
}

static void a_large_message_goes_there_and_back(void **state)
{
	(void)state;
	struct ck_client *client = client_new();
	struct ck_unary call = { 0 };
	size_t len = 5000000;
	char *big = malloc(len);
	for (size_t i = 0; i < len; i++)
		big[i] = (char)(i * 7 % 251);
	assert_int_equal(ck_unary_begin(client, &call, "/echo", big, len, 0, NULL), 0);
	assert_true(ck_client_wait(client, &call, UINT64_MAX));
	assert_int_equal(call.status.code, 0);
	assert_int_equal(call.reply.len, len);
	assert_memory_equal(call.reply.p, big, len);
	ck_unary_fini(&call);
	ck_client_free(client);
	free(big);
}

static void many_calls_share_the_connection(void **state)
{
	(void)state;
	struct ck_client *client = client_new();
	static struct ck_unary calls[300];
	unsigned done = 0;
	for (size_t i = 0; i < CK_COUNT(calls); i++) {
		calls[i] = (struct ck_unary){ 0 };
		assert_int_equal(ck_unary_begin(client, &calls[i], i % 3 ? "/ok" : "/never", "x", 1,
						0, NULL),
				 0);
	}
	while (done < 200) {
		assert_true(ck_client_wait(client, NULL, UINT64_MAX));
		done = 0;
		for (size_t i = 0; i < CK_COUNT(calls); i++)
			done += calls[i].done;
	}
	assert_int_equal(done, 200);
	assert_false(ck_client_wait(client, NULL, ck_client_now() + MS));
	assert_false(ck_client_wait(client, &calls[0], 0));
	for (size_t i = 0; i < CK_COUNT(calls); i++) {
		assert_int_equal(calls[i].done, i % 3 != 0);
		ck_unary_fini(&calls[i]);
	}
	expect(client, "/ok", 0, NULL); /* behind the resets of those that were given up */
	stop_server();
	assert_int_equal(server.cancels, 100);
	assert_int_equal(server.connections, 1);
	ck_client_free(client);
}

static void a_lost_connection_is_dialled_again(void **state)
{
	(void)state;
	struct ck_client *client = client_new();
	struct ck_unary other = { 0 };
	assert_int_equal(ck_unary_begin(client, &other, "/never", "x", 1, 0, NULL), 0);
	expect(client, "/hang-up", CK_GRPC_UNAVAILABLE, "the connection was lost");
	assert_true(other.done);
	assert_int_equal(other.status.code, CK_GRPC_UNAVAILABLE);
	ck_unary_fini(&other);
	expect(client, "/ok", 0, NULL);
	expect(client, "/goaway", 0, NULL);
	expect(client, "/ok", 0, NULL);
	ck_client_free(client);
	stop_server();
	assert_int_equal(server.connections, 3);
}

static void nobody_to_dial_is_told_with_the_cause(void **state)
{
	(void)state;
	struct ck_client *client;
	struct ck_error err;
	char path[128], text[256];
	assert_int_equal(ck_client_new("relative", &client, &err), -CK_EINVAL);
	assert_int_equal(ck_client_new("tcp://127.0.0.1:1", &client, &err), -CK_EINVAL);
	memset(path, 'x', sizeof(path) - 1);
	path[0] = '/';
	path[sizeof(path) - 1] = '\0';
	assert_int_equal(ck_client_new(path, &client, &err), -CK_EINVAL);

	snprintf(path, sizeof(path), "unix://%s", server.dir); /* a directory */
	snprintf(text, sizeof(text), "unix://%s: not a socket", server.dir);
	assert_int_equal(ck_client_new(path, &client, &err), 0);
	assert_int_equal(ck_client_dial(client, &err), -CK_EUNAVAILABLE);
	assert_string_equal(err.text, text);
	expect(client, "/ok", CK_GRPC_UNAVAILABLE, text);
	ck_client_free(client);
}

static void calls_end_with_their_client(void **state)
{
	(void)state;
	struct ck_client *client = client_new();
	struct ck_unary call = { 0 };
	assert_int_equal(ck_unary_begin(client, &call, "/never", "x", 1, 0, NULL), 0);
	/* it is under way */
	assert_int_equal(ck_unary_begin(client, &call, "/never", "x", 1, 0, NULL), -CK_EINVAL);
	ck_client_free(client);
	assert_true(call.done);
	assert_int_equal(call.status.code, CK_GRPC_CANCELLED);
	ck_unary_fini(&call);
	ck_unary_fini(&call);
	ck_client_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_the_server_says_is_told, start, stop),
		cmocka_unit_test_setup_teardown(
			what_the_server_leaves_unsaid_is_told_as_grpc_go_does, start, stop),
		cmocka_unit_test_setup_teardown(a_deadline_is_told_and_kept, start, stop),
		cmocka_unit_test_setup_teardown(a_deadline_is_written_as_the_time_that_is_left,
						start, stop),
		cmocka_unit_test_setup_teardown(a_server_that_reads_nothing_is_given_up_too, start,
						stop),
		cmocka_unit_test_setup_teardown(a_large_message_goes_there_and_back, start, stop),
		cmocka_unit_test_setup_teardown(many_calls_share_the_connection, start, stop),
		cmocka_unit_test_setup_teardown(a_lost_connection_is_dialled_again, start, stop),
		cmocka_unit_test_setup_teardown(nobody_to_dial_is_told_with_the_cause, start, stop),
		cmocka_unit_test_setup_teardown(calls_end_with_their_client, start, stop),
	};
	return CK_TEST_MAIN(tests);
}
