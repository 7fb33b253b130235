/* SPDX-License-Identifier: Apache-2.0 */
/* One poll waits for the socket and the nearest deadline. h2.c and grpc.c do everything else. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <utlist.h>

#include "src/base/clock.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/rpc/address.h"
#include "src/rpc/client.h"

#define SCHEME "unix://"

struct ck_client {
	char *path;
	int fd; /* -1: not connected */
	struct ck_h2 *h2;
	struct ck_unary *calls; /* under way, newest first */
	unsigned ended;        /* calls done since it was last looked at */
	const unsigned char *out; /* of h2, not yet written */
	size_t out_len;
	unsigned char in[CK_SOCKET_READ];
};

uint64_t ck_client_now(void)
{
	return ck_clock_ns(CLOCK_BOOTTIME);
}

/* ---- the end of a call ----------------------------------------------------------------------- */

/* The stream is given up; h2.c handles what still comes or goes on it. */
static void call_done(struct ck_unary *call)
{
	struct ck_h2_stream *stream = CK_TAKE(call->stream);
	call->done = true;
	call->ended = ck_client_now();
	call->client->ended++;
	DL_DELETE(call->client->calls, call);
	ck_grpc_reader_fini(&call->reader);
	if (stream && (call->status.code || ck_h2_stream_queued(stream)))
		ck_h2_stream_reset(stream, CK_H2_CANCEL);
	else if (stream)
		ck_h2_stream_forget(stream);
}

static void call_fail(struct ck_unary *call, int code, const char *text)
{
	ck_grpc_status_fini(&call->status);
	ck_bytes_free(&call->reply);
	call->status.code = code;
	call->status.message = ck_strdup(text); /* without memory the code alone */
	call_done(call);
}

static void call_timed_out(struct ck_unary *call)
{
	call_fail(call, CK_GRPC_DEADLINE_EXCEEDED, "context deadline exceeded");
}

/* the code and the text that grpc-go makes of a reset */
static void call_reset(struct ck_unary *call, uint32_t error)
{
	static const struct {
		const char *name;
		int code;
	} codes[] = {
		[0] = { "NO_ERROR", CK_GRPC_INTERNAL },
		[1] = { "PROTOCOL_ERROR", CK_GRPC_INTERNAL },
		[2] = { "INTERNAL_ERROR", CK_GRPC_INTERNAL },
		[3] = { "FLOW_CONTROL_ERROR", CK_GRPC_RESOURCE_EXHAUSTED },
		[4] = { "SETTINGS_TIMEOUT", CK_GRPC_INTERNAL },
		[5] = { "STREAM_CLOSED", CK_GRPC_INTERNAL },
		[6] = { "FRAME_SIZE_ERROR", CK_GRPC_INTERNAL },
		[7] = { "REFUSED_STREAM", CK_GRPC_UNAVAILABLE },
		[8] = { "CANCEL", CK_GRPC_CANCELLED },
		[9] = { "COMPRESSION_ERROR", CK_GRPC_INTERNAL },
		[10] = { "CONNECT_ERROR", CK_GRPC_INTERNAL },
		[11] = { "ENHANCE_YOUR_CALM", CK_GRPC_RESOURCE_EXHAUSTED },
		[12] = { "INADEQUATE_SECURITY", CK_GRPC_PERMISSION_DENIED },
	};
	char text[96];
	bool known = error < CK_COUNT(codes);
	int code = known ? codes[error].code : CK_GRPC_UNKNOWN;
	if (code == CK_GRPC_CANCELLED && call->deadline <= ck_client_now())
		code = CK_GRPC_DEADLINE_EXCEEDED; /* the server's timer was faster than ours */
	snprintf(text, sizeof(text), "stream terminated by RST_STREAM with error code: %s",
		 known ? codes[error].name : "unknown");
	call_fail(call, code, text);
}

static void on_headers(struct ck_h2_stream *stream, const struct ck_h2_header *headers, size_t n,
		       void *userdata)
{
	struct ck_unary *call = userdata;
	const struct ck_h2_header *http = ck_h2_find(headers, n, ":status");
	(void)stream;
	if (http)
		call->http = ck_grpc_http(http);
	if (call->answered)
		return;
	int r = ck_grpc_status_read(headers, n, &call->status);
	call->answered = r > 0;
	if (r < 0)
		call_fail(call, CK_GRPC_RESOURCE_EXHAUSTED, "out of memory");
}

static void on_data(struct ck_h2_stream *stream, const unsigned char *bytes, size_t n,
		    void *userdata)
{
	struct ck_unary *call = userdata;
	struct ck_error err = { 0 };
	size_t used = 0;
	ck_h2_stream_consume(stream, n);
	for (size_t at = 0; at < n && call->stream; at += used) {
		int r = ck_grpc_read(&call->reader, bytes + at, n - at, &used, &err);
		if (r < 0) {
			call_fail(call,
				  r == -CK_EMALFORMED ? CK_GRPC_INTERNAL
						      : CK_GRPC_RESOURCE_EXHAUSTED,
				  err.text);
		} else if (r > 0) { /* the last message of several is kept */
			call->replied = true;
			ck_bytes_free(&call->reply);
			call->reply = call->reader.message;
			call->reader.message = (struct ck_bytes){ 0 };
		}
	}
}

static void on_end(struct ck_h2_stream *stream, void *userdata)
{
	struct ck_unary *call = userdata;
	(void)stream;
	if (call->answered && (call->status.code || call->replied))
		call_done(call);
	else if (call->answered)
		call_fail(call, CK_GRPC_INTERNAL,
			  "server closed the stream without sending a message");
	else if (call->http && call->http != 200)
		call_fail(call, ck_grpc_from_http(call->http),
			  "the server's answer is not of gRPC");
	else
		call_fail(call, CK_GRPC_INTERNAL,
			  "server closed the stream without sending trailers");
}

static void on_closed(struct ck_h2_stream *stream, uint32_t error, void *userdata)
{
	struct ck_unary *call = userdata;
	(void)stream;
	call->stream = NULL;
	if (call->client->fd < 0)
		call_fail(call, CK_GRPC_UNAVAILABLE, "the connection was lost");
	else
		call_reset(call, error);
}

static const struct ck_h2_handler handler = { on_headers, on_data, on_end, NULL, on_closed };

/* ---- the connection -------------------------------------------------------------------------- */

int ck_client_new(const char *endpoint, struct ck_client **ret_client, struct ck_error *err)
{
	const char *path = strncmp(endpoint, SCHEME, strlen(SCHEME)) == 0
				   ? endpoint + strlen(SCHEME)
				   : endpoint;
	struct sockaddr_un address;
	if (*path != '/')
		return ck_fail(err, CK_EINVAL, "an endpoint is unix:///PATH, not '%s'", endpoint);
	int r = ck_unix_address(path, &address, err);
	if (r < 0)
		return r;
	struct ck_client *client = CK_NEW(struct ck_client);
	char *copy = ck_strdup(path);
	if (!client || !copy) {
		free(client);
		free(copy);
		return ck_nomem(err);
	}
	client->path = copy;
	client->fd = -1;
	*ret_client = client;
	return 0;
}

static void disconnect(struct ck_client *client)
{
	if (client->fd >= 0)
		close(client->fd);
	client->fd = -1;
	client->out_len = 0;
	ck_h2_free(CK_TAKE(client->h2));
}

void ck_client_free(struct ck_client *client)
{
	if (!client)
		return;
	while (client->calls)
		call_fail(client->calls, CK_GRPC_CANCELLED, "the client is gone");
	disconnect(client);
	free(client->path);
	free(client);
}

int ck_client_dial(struct ck_client *client, struct ck_error *err)
{
	static const struct ck_h2_owner owner = { 0 };
	if (client->fd >= 0)
		return 0;
	CK_AUTO_CLOSE int fd = ck_unix_connect(client->path, err);
	if (fd < 0)
		return -CK_EUNAVAILABLE;
	int r = ck_h2_new(CK_H2_CLIENT, CK_STREAM_WINDOW, &owner, NULL, &client->h2, err);
	if (r == 0)
		client->fd = CK_TAKE_FD(fd);
	return r;
}

/* 0: everything is written that the socket takes now */
static int flush(struct ck_client *client)
{
	struct ck_error err;
	for (;;) {
		if (!client->out_len) {
			ptrdiff_t n = ck_h2_next(client->h2, &client->out, &err);
			if (n <= 0)
				return (int)n;
			client->out_len = (size_t)n;
		}
		ssize_t n = send(client->fd, client->out, client->out_len, MSG_NOSIGNAL);
		if (n < 0)
			return errno == EAGAIN || errno == EINTR ? 0 : -CK_EIO;
		client->out += n;
		client->out_len -= (size_t)n;
	}
}

static int receive(struct ck_client *client)
{
	ssize_t n = recv(client->fd, client->in, sizeof(client->in), 0);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -CK_EIO;
	return n == 0 ? -CK_EIO : ck_h2_feed(client->h2, client->in, (size_t)n, NULL);
}

static uint64_t nearest_deadline(const struct ck_client *client)
{
	uint64_t at = UINT64_MAX;
	const struct ck_unary *call;
	DL_FOREACH(client->calls, call)
		at = call->deadline < at ? call->deadline : at;
	return at;
}

static void expire(struct ck_client *client)
{
	uint64_t now = ck_client_now();
	struct ck_unary *call, *next;
	DL_FOREACH_SAFE(client->calls, call, next)
		if (call->deadline <= now)
			call_timed_out(call);
}

/* wait for the socket once, at most until @until, and handle what came */
static void turn(struct ck_client *client, uint64_t until)
{
	uint64_t now = ck_client_now(), at = nearest_deadline(client);
	at = at < until ? at : until;
	uint64_t left = at > now ? at - now : 0;
	struct timespec pause = { .tv_sec = (time_t)(left / CK_NS_PER_S),
				  .tv_nsec = (long)(left % CK_NS_PER_S) };
	int r = flush(client);
	struct pollfd p = { .fd = client->fd,
			    .events = (short)(POLLIN | (client->out_len ? POLLOUT : 0)) };
	if (r == 0 && ppoll(&p, 1, at == UINT64_MAX ? NULL : &pause, NULL) > 0 &&
	    p.revents & ~POLLOUT)
		r = receive(client);
	expire(client);
	if (r == 0)
		r = flush(client); /* what was reset just now */
	if (r < 0 || ck_h2_over(client->h2))
		disconnect(client);
}

/* ---- calls ----------------------------------------------------------------------------------- */

static int call_open(struct ck_client *client, struct ck_unary *call, const char *method,
		     uint64_t timeout, struct ck_error *err)
{
	static char agent[48];
	char text[CK_GRPC_TIMEOUT];
	snprintf(agent, sizeof(agent), "crikeep/%s", ck_version());
	ck_grpc_timeout_print(timeout, text);
	const struct ck_h2_header headers[] = {
		CK_H2_HEADER(":method", "POST"),
		CK_H2_HEADER(":scheme", "http"),
		{ ":path", method, 5, strlen(method) },
		CK_H2_HEADER(":authority", "localhost"),
		CK_H2_HEADER("content-type", "application/grpc"),
		{ "user-agent", agent, 10, strlen(agent) },
		CK_H2_HEADER("te", "trailers"),
		{ "grpc-timeout", text, 12, strlen(text) },
	};
	return ck_h2_open(client->h2, headers, CK_COUNT(headers) - !timeout, &handler, call,
			  &call->stream, err);
}

int ck_unary_begin(struct ck_client *client, struct ck_unary *call, const char *method,
		   const void *message, size_t len, uint64_t timeout, struct ck_error *err)
{
	struct ck_error why = { 0 };
	if (call->client || call->done)
		return ck_fail(err, CK_EINVAL, "a call can be made once");
	call->client = client;
	call->began = ck_client_now();
	call->deadline = timeout ? call->began + timeout : UINT64_MAX;
	call->reader.max = CK_LIST_MAX;
	DL_PREPEND(client->calls, call);
	int r = ck_client_dial(client, &why);
	if (r == 0)
		r = call_open(client, call, method, timeout, &why);
	/* the server sent a GOAWAY, and no other call is under way */
	if (r == -CK_EUNAVAILABLE && client->fd >= 0 && !call->next) {
		disconnect(client);
		r = ck_client_dial(client, &why);
		if (r == 0)
			r = call_open(client, call, method, timeout, &why);
	}
	if (r == 0)
		r = ck_grpc_send(call->stream, message, len);
	if (r == -CK_EUNAVAILABLE) {
		call_fail(call, CK_GRPC_UNAVAILABLE, why.text);
		return 0;
	}
	if (r < 0) {
		ck_unary_fini(call);
		return r == -CK_ENOMEM ? ck_nomem(err) : ck_fail(err, -r, "%s", why.text);
	}
	ck_h2_stream_end(call->stream);
	return 0;
}

bool ck_client_wait(struct ck_client *client, struct ck_unary *call, uint64_t until)
{
	for (;;) {
		if (call ? call->done : client->ended) {
			client->ended = 0;
			return true;
		}
		if (!client->calls)
			return false;
		bool over = ck_client_now() >= until;
		turn(client, over ? 0 : until);
		if (over && !(call ? call->done : client->ended))
			return false;
	}
}

void ck_unary_fini(struct ck_unary *call)
{
	if (call->client && !call->done)
		call_fail(call, CK_GRPC_CANCELLED, "given up");
	ck_grpc_status_fini(&call->status);
	ck_bytes_free(&call->reply);
	*call = (struct ck_unary){ 0 };
}
