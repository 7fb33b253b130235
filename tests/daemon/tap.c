/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <nghttp2/nghttp2.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/base/bytes.h"
#include "src/rpc/address.h"
#include "tests/daemon/tap.h"
#include "tests/unit/harness.h"

#define FRAME_HEAD 9u
#define PREFACE    24u /* "PRI * HTTP/2.0 ...", before the first frame of a client */

enum { UP, DOWN }; /* from the client, to the client */

struct tap_conn {
	int fds[2];                /* of the client, of the server; -1: closed */
	struct ck_bytes copies[2]; /* what came from either */
};

/* ---- passing on ------------------------------------------------------------------------------ */

static void conn_end(struct tap_conn *conn)
{
	for (int side = 0; side < 2; side++) {
		if (conn->fds[side] >= 0)
			close(conn->fds[side]);
		conn->fds[side] = -1;
	}
}

/* what can be read is written at once, however long that takes: sockets here block */
static void pass(struct tap_conn *conn, int from)
{
	unsigned char bytes[16384];
	ssize_t n = recv(conn->fds[from], bytes, sizeof(bytes), MSG_DONTWAIT), done = 0, more = 1;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0 && ck_bytes_add(&conn->copies[from], bytes, (size_t)n) < 0)
		n = 0;
	for (; n > 0 && done < n && more > 0; done += more)
		more = send(conn->fds[!from], bytes + done, (size_t)(n - done), MSG_NOSIGNAL);
	if (n <= 0 || more <= 0)
		conn_end(conn);
}

static void come(struct tap *tap)
{
	int client = accept(tap->listener, NULL, NULL), server;
	struct tap_conn *conn = calloc(1, sizeof(*conn));
	if (client < 0 || !conn || tap->n == TAP_CONNS ||
	    (server = ck_unix_connect(tap->to, NULL)) < 0) {
		if (client >= 0)
			close(client);
		free(conn);
		return;
	}
	int flags = fcntl(server, F_GETFL);
	fcntl(server, F_SETFL, flags & ~O_NONBLOCK);
	*conn = (struct tap_conn){ .fds = { client, server } };
	tap->conns[tap->n++] = conn;
}

static void *run(void *userdata)
{
	struct tap *tap = userdata;
	for (;;) {
		struct pollfd fds[2 + 2 * TAP_CONNS] = { { .fd = tap->stop[0], .events = POLLIN },
							 { .fd = tap->listener,
							   .events = POLLIN } };
		size_t n = tap->n;
		for (size_t i = 0; i < n; i++)
			for (int side = 0; side < 2; side++)
				fds[2 + 2 * i + (size_t)side] = (struct pollfd){
					.fd = tap->conns[i]->fds[side], .events = POLLIN
				};
		if (poll(fds, 2 + 2 * n, -1) < 0 && errno != EINTR)
			return NULL;
		if (fds[0].revents)
			return NULL;
		for (size_t i = 0; i < n; i++)
			for (int side = 0; side < 2; side++)
				if (fds[2 + 2 * i + (size_t)side].revents &&
				    tap->conns[i]->fds[side] >= 0)
					pass(tap->conns[i], side);
		if (fds[1].revents)
			come(tap);
	}
}

void tap_start(struct tap *tap, const char *path, const char *to)
{
	*tap = (struct tap){ .to = to, .listener = ck_unix_listen(path, 0600, (gid_t)-1, NULL) };
	assert_true(tap->listener >= 0);
	fcntl(tap->listener, F_SETFL, fcntl(tap->listener, F_GETFL) & ~O_NONBLOCK);
	assert_int_equal(pipe2(tap->stop, O_CLOEXEC), 0);
	assert_int_equal(pthread_create(&tap->thread, NULL, run, tap), 0);
}

void tap_stop(struct tap *tap)
{
	close(tap->stop[1]);
	assert_int_equal(pthread_join(tap->thread, NULL), 0);
	close(tap->stop[0]);
	close(tap->listener);
	for (size_t i = 0; i < tap->n; i++)
		conn_end(tap->conns[i]);
}

void tap_free(struct tap *tap)
{
	for (size_t i = 0; i < tap->n; i++) {
		ck_bytes_free(&tap->conns[i]->copies[UP]);
		ck_bytes_free(&tap->conns[i]->copies[DOWN]);
		free(tap->conns[i]);
	}
	tap->n = 0;
}

/* ---- reading the copies ---------------------------------------------------------------------- */

struct side {
	struct ck_bytes heads, data; /* blocks of headers, and how it ended; messages */
};

struct stream {
	int32_t id;
	char path[96];
	struct side sides[2];
};

struct streams { /* of one connection */
	struct stream *all;
	size_t n;
};

static struct stream *stream_of(struct streams *streams, int32_t id)
{
	for (size_t i = 0; i < streams->n; i++)
		if (streams->all[i].id == id)
			return &streams->all[i];
	streams->all = realloc(streams->all, (streams->n + 1) * sizeof(*streams->all));
	assert_non_null(streams->all);
	streams->all[streams->n] = (struct stream){ .id = id };
	return &streams->all[streams->n++];
}

static void note(struct ck_bytes *to, const void *bytes, size_t n)
{
	assert_int_equal(ck_bytes_add(to, bytes, n), 0);
}

static void read_block(nghttp2_hd_inflater *inflater, struct stream *stream, int from,
		       const uint8_t *p, size_t n, bool last)
{
	struct ck_bytes *heads = &stream->sides[from].heads;
	int flags = 0;
	do {
		nghttp2_nv nv;
		ssize_t used = nghttp2_hd_inflate_hd2(inflater, &nv, &flags, p, n, last);
		assert_true(used >= 0);
		p += used;
		n -= (size_t)used;
		if (!(flags & NGHTTP2_HD_INFLATE_EMIT))
			continue;
		note(heads, nv.name, nv.namelen);
		note(heads, "=", 1);
		note(heads, nv.value, nv.valuelen);
		note(heads, "\n", 1);
		if (nv.namelen == 5 && !memcmp(nv.name, ":path", 5))
			snprintf(stream->path, sizeof(stream->path), "%.*s", (int)nv.valuelen,
				 (const char *)nv.value);
	} while (!(flags & NGHTTP2_HD_INFLATE_FINAL) && (n || flags & NGHTTP2_HD_INFLATE_EMIT));
	if (flags & NGHTTP2_HD_INFLATE_FINAL) {
		nghttp2_hd_inflate_end_headers(inflater);
		note(heads, "--\n", 3);
	}
}

static uint32_t number(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void read_frame(nghttp2_hd_inflater *inflater, struct streams *streams, int from,
		       const uint8_t *p, size_t n)
{
	uint8_t type = p[3], flags = p[4];
	int32_t id = (int32_t)(number(p + 5) & 0x7fffffff);
	p += FRAME_HEAD;
	if (type > NGHTTP2_RST_STREAM && type != NGHTTP2_CONTINUATION)
		return; /* of the connection, or windows */
	if (type == NGHTTP2_PRIORITY || !id)
		return;
	struct stream *stream = stream_of(streams, id);
	struct side *side = &stream->sides[from];
	assert_false(flags & NGHTTP2_FLAG_PADDED && type != NGHTTP2_RST_STREAM);
	if (type == NGHTTP2_RST_STREAM) {
		char text[32];
		note(&side->heads, text,
		     (size_t)snprintf(text, sizeof(text), "reset %u\n", (unsigned)number(p)));
		return;
	}
	if (type == NGHTTP2_HEADERS && flags & NGHTTP2_FLAG_PRIORITY) {
		p += 5;
		n -= 5;
	}
	if (type == NGHTTP2_DATA)
		note(&side->data, p, n);
	else
		read_block(inflater, stream, from, p, n, flags & NGHTTP2_FLAG_END_HEADERS);
	if (type != NGHTTP2_CONTINUATION && flags & NGHTTP2_FLAG_END_STREAM)
		note(&side->heads, "end\n", 4);
}

static void read_copy(struct streams *streams, int from, const struct ck_bytes *copy)
{
	nghttp2_hd_inflater *inflater;
	const uint8_t *p = copy->p, *end = p + copy->len;
	assert_int_equal(nghttp2_hd_inflate_new(&inflater), 0);
	if (from == UP)
		p += copy->len < PREFACE ? copy->len : PREFACE;
	while (end - p >= (ptrdiff_t)FRAME_HEAD) {
		size_t n = (size_t)p[0] << 16 | (size_t)p[1] << 8 | p[2];
		if ((size_t)(end - p) < FRAME_HEAD + n)
			break; /* cut by the end of the connection */
		read_frame(inflater, streams, from, p, n);
		p += FRAME_HEAD + n;
	}
	nghttp2_hd_inflate_del(inflater);
}

static void call_of(struct stream *stream, struct tap_call *ret)
{
	struct ck_bytes all = { 0 };
	for (int from = UP; from <= DOWN; from++) {
		struct side *side = &stream->sides[from];
		note(&all, from == UP ? ">\n" : "<\n", 2);
		note(&all, side->heads.p, side->heads.len);
		note(&all, side->data.p, side->data.len);
		ck_bytes_free(&side->heads);
		ck_bytes_free(&side->data);
	}
	*ret = (struct tap_call){ .bytes = all.p, .len = all.len };
	memcpy(ret->path, stream->path, sizeof(ret->path));
}

static int order(const void *a, const void *b)
{
	const struct tap_call *x = a, *y = b;
	int r = memcmp(x->bytes, y->bytes, x->len < y->len ? x->len : y->len);
	return r ? r : x->len < y->len ? -1 : x->len > y->len;
}

size_t tap_calls(const struct tap *tap, struct tap_call **ret_calls)
{
	struct tap_call *calls = NULL;
	size_t n = 0;
	for (size_t i = 0; i < tap->n; i++) {
		struct streams streams = { 0 };
		read_copy(&streams, UP, &tap->conns[i]->copies[UP]);
		read_copy(&streams, DOWN, &tap->conns[i]->copies[DOWN]);
		calls = realloc(calls, (n + streams.n + 1) * sizeof(*calls));
		assert_non_null(calls);
		for (size_t s = 0; s < streams.n; s++)
			call_of(&streams.all[s], &calls[n++]);
		free(streams.all);
	}
	if (n)
		qsort(calls, n, sizeof(*calls), order);
	*ret_calls = calls;
	return n;
}

void tap_calls_free(struct tap_call *calls, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(calls[i].bytes);
	free(calls);
}
