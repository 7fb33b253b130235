/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whole HTTP/2 frames, in any order and with odd values, from a client to our server and from a
 * runtime to our client (h2-life.h). An input is a program for the peer: its first byte chooses the
 * side, and each step is a byte that chooses a frame, with a few bytes of values. Most frames are
 * valid, so that steps reach what bytes at random do not: trailers after data, resets of streams in
 * every state, windows that open and close, lists of headers near their limits, CONTINUATION.
 */
#include <string.h>

#include "src/base/limits.h"
#include "src/base/mem.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/h2-life.h"

enum {
	DATA,
	HEADERS,
	PRIORITY,
	RST_STREAM,
	SETTINGS,
	PUSH_PROMISE,
	PING,
	GOAWAY,
	WINDOW_UPDATE,
	CONTINUATION
};
enum { END_STREAM = 1, ACK = 1, END_HEADERS = 4, PADDED = 8, WITH_PRIORITY = 32 };

#define HEAD   9u
#define ROOM   (64u << 10)
#define FRAME  16384u
#define REPEAT 64u /* of a step at most */

static struct peer {
	const uint8_t *in, *end; /* the program */
	bool server;             /* ours is the server */
	uint32_t last;           /* the newest stream of a client */
	size_t n;
	uint8_t bytes[ROOM];
} peer;

static uint8_t next(void)
{
	return peer.in < peer.end ? *peer.in++ : 0;
}

static bool maybe(unsigned one_in)
{
	return next() % one_in == 1;
}

/* a number with few bits set, or few missing: what lies at a limit */
static uint32_t odd_number(void)
{
	uint8_t how = next();
	uint32_t n = how < 64    ? next()
		     : how < 128 ? next() * 256u + next()
				 : UINT32_C(1) << how % 32;
	return how & 1 ? n : n - 1;
}

static void put(const void *p, size_t n)
{
	if (n > ROOM - peer.n)
		n = ROOM - peer.n;
	if (n)
		memcpy(peer.bytes + peer.n, p, n);
	peer.n += n;
}

static void put_number(uint32_t n, unsigned bytes)
{
	while (bytes--) {
		uint8_t c = (uint8_t)(n >> 8 * bytes);
		put(&c, 1);
	}
}

static void frame(unsigned type, unsigned flags, uint32_t id, const void *p, size_t n)
{
	put_number((uint32_t)n, 3);
	put_number(type, 1);
	put_number(flags, 1);
	put_number(id, 4);
	put(p, n);
}

static void frame_number(unsigned type, uint32_t id, uint32_t n)
{
	const uint8_t p[] = { (uint8_t)(n >> 24), (uint8_t)(n >> 16), (uint8_t)(n >> 8),
			      (uint8_t)n };
	frame(type, 0, id, p, sizeof(p));
}

/* a stream that has begun, mostly; else none, one of ours, or one that is yet to come */
static uint32_t some_stream(void)
{
	uint8_t c = next();
	if (c >= 250)
		return c == 250 ? 0 : c == 251 ? odd_number() : peer.last + 2 * (c - 250) - 1;
	return peer.last > 2u * (c % 8) ? peer.last - 2u * (c % 8) : 1;
}

/* ---- headers --------------------------------------------------------------------------------- */

struct block { /* one list, in HPACK */
	size_t n;
	uint8_t bytes[2 * FRAME];
};

static void block_put(struct block *block, const void *p, size_t n)
{
	if (n > sizeof(block->bytes) - block->n)
		n = sizeof(block->bytes) - block->n;
	memcpy(block->bytes + block->n, p, n);
	block->n += n;
}

static void block_text(struct block *block, const char *text, size_t n)
{
	uint8_t head[3] = { (uint8_t)n };
	size_t head_n = 1;
	if (n >= 127) { /* a prefix of 7 bits, then 7 bits each; n is below 127 + 2^14 */
		head[0] = 127;
		head[1] = (uint8_t)((n - 127) | 128);
		head[2] = (uint8_t)((n - 127) >> 7);
		head_n = 3;
	}
	block_put(block, head, head_n);
	block_put(block, text, n);
}

static void block_header(struct block *block, const char *name, const char *value)
{
	/* literal: not indexed, never indexed, or put into the dynamic table */
	static const uint8_t kinds[] = { 0x00, 0x10, 0x40 };
	block_put(block, &kinds[next() % sizeof(kinds)], 1);
	block_text(block, name, strlen(name));
	block_text(block, value, strlen(value));
}

static void block_odd(struct block *block)
{
	static const char *const odd[][2] = {
		{ "grpc-timeout", "1m" },
		{ "grpc-timeout", "99999999H" },
		{ "grpc-timeout", "5" },
		{ "grpc-status", "-1" },
		{ "grpc-message", "%zz%00%e2%82" },
		{ "grpc-status-details-bin", "AAE=" },
		{ "grpc-status-details-bin", "****" },
		{ "grpc-encoding", "gzip" },
		{ "te", "gzip" },
		{ "te", "trailers" },
		{ "connection", "close" },
		{ "content-length", "7" },
		{ ":path", "/a/b" },
		{ ":authority", "" },
		{ ":protocol", "websocket" },
		{ "Upper", "case" },
		{ "", "no name" },
		{ "x", "a\r\nb" },
	};
	uint8_t c = next();
	char value[FRAME];
	if (c < CK_COUNT(odd)) {
		block_header(block, odd[c][0], odd[c][1]);
	} else if (c < 64) { /* one that is in a table, or is not */
		uint8_t index = (uint8_t)(128 | next());
		block_put(block, &index, 1);
	} else if (c < 80) { /* the size of the table changes */
		uint8_t size = (uint8_t)(0x20 | (next() & 0x1f));
		block_put(block, &size, 1);
	} else {
		size_t n = (size_t)next() * 64;
		memset(value, 'v', n);
		value[n] = '\0';
		block_header(block, "x-long", value);
	}
}

static void block_usual(struct block *block, bool trailers)
{
	if (trailers) {
		block_header(block, "grpc-status", maybe(4) ? "5" : "0");
		if (maybe(3))
			block_header(block, "grpc-message", "not%20found");
	} else if (peer.server) {
		block_header(block, ":method", "POST");
		block_header(block, ":scheme", "http");
		block_header(block, ":path", "/runtime.v1.RuntimeService/Version");
		block_header(block, ":authority", "localhost");
		block_header(block, "te", "trailers");
		block_header(block, "content-type", "application/grpc");
	} else {
		block_header(block, ":status", maybe(6) ? "103" : maybe(6) ? "404" : "200");
		block_header(block, "content-type", "application/grpc");
	}
}

/* in one frame, or with CONTINUATION; others may come in between, which is an error */
static void put_block(uint32_t id, unsigned type, unsigned flags, const struct block *block)
{
	static uint8_t payload[FRAME + 16];
	size_t first = maybe(4) ? next() : FRAME, at, head = 0;
	if (type == PUSH_PROMISE) {
		memset(payload, 0, 4);
		payload[3] = (uint8_t)(2 * next());
		head = 4;
	} else if (maybe(8)) {
		flags |= WITH_PRIORITY;
		for (; head < 5; head++)
			payload[head] = next();
	}
	first = first < block->n ? first : block->n;
	first = first < FRAME - head ? first : FRAME - head;
	memcpy(payload + head, block->bytes, first);
	bool whole = first == block->n && !maybe(16);
	frame(type, flags | (whole ? END_HEADERS : 0u), id, payload, head + first);
	for (at = first; !whole; at += first) {
		if (maybe(16))
			frame_number(WINDOW_UPDATE, 0, 1);
		first = block->n - at < FRAME ? block->n - at : FRAME;
		whole = at + first == block->n;
		frame(CONTINUATION, whole ? END_HEADERS : 0u, id, block->bytes + at, first);
	}
}

static void put_headers(uint32_t id, bool trailers)
{
	static struct block block;
	block.n = 0;
	if (!maybe(8))
		block_usual(&block, trailers);
	for (unsigned n = maybe(3) ? 1 + next() % 128 : 0; n; n--)
		block_odd(&block);
	put_block(id, maybe(32) ? PUSH_PROMISE : HEADERS, trailers != maybe(8) ? END_STREAM : 0u,
		  &block);
}

/* ---- data ------------------------------------------------------------------------------------ */

/* a gRPC message, whole or a part of one */
static void put_data(uint32_t id)
{
	static uint8_t payload[FRAME];
	size_t n = 0, size = maybe(4) ? (size_t)next() * 64 : next() % 32;
	unsigned flags = maybe(4) ? END_STREAM : 0;
	if (maybe(8)) {
		flags |= PADDED;
		payload[n++] = next();
	}
	if (!maybe(4)) { /* compressed?, length */
		uint32_t says = maybe(8) ? odd_number() : (uint32_t)size;
		payload[n++] = maybe(16);
		for (int i = 24; i >= 0; i -= 8)
			payload[n++] = (uint8_t)(says >> i);
	}
	size = size < FRAME - n ? size : FRAME - n;
	memset(payload + n, next(), size);
	frame(DATA, flags, id, payload, n + size);
}

static void put_settings(void)
{
	uint8_t payload[6 * 8];
	size_t n = 0;
	if (maybe(8)) {
		frame(SETTINGS, ACK, 0, NULL, 0);
		return;
	}
	for (unsigned pairs = next() % 8; pairs; pairs--) {
		uint32_t value = odd_number();
		payload[n++] = 0;
		payload[n++] = next() % 9;
		for (int i = 24; i >= 0; i -= 8)
			payload[n++] = (uint8_t)(value >> i);
	}
	frame(SETTINGS, 0, 0, payload, n);
}

static void step(void)
{
	uint8_t payload[64] = { 0 };
	uint8_t what = next();
	switch (what % 16) {
	case 0: /* a call as it should be */
	case 1:
	case 2:
		if (peer.server)
			peer.last = peer.last ? peer.last + 2 : 1;
		put_headers(peer.server ? peer.last : some_stream(), false);
		break;
	case 3:
	case 4:
	case 5:
		put_data(some_stream());
		break;
	case 6:
	case 7:
		put_headers(some_stream(), true);
		break;
	case 8:
		frame_number(RST_STREAM, some_stream(), maybe(4) ? odd_number() : 8);
		break;
	case 9:
		frame_number(WINDOW_UPDATE, maybe(2) ? 0 : some_stream(), odd_number());
		break;
	case 10:
		put_settings();
		break;
	case 11:
		frame(PING, maybe(4) ? ACK : 0u, 0, payload, 8);
		break;
	case 12: /* the last stream it answers, an error, a text */
		payload[3] = next();
		payload[7] = next() % 16;
		frame(GOAWAY, 0, 0, payload, 8u + next() % 16);
		break;
	case 13:
		payload[3] = next();
		frame(PRIORITY, 0, some_stream(), payload, 5);
		break;
	case 14: /* any type, with a length that may not be allowed */
		frame(next(), next(), some_stream(), payload, next() % sizeof(payload));
		break;
	default: /* a frame that is cut: what follows is read as its end */
		frame(next() % 10, next(), some_stream(), payload, next() % sizeof(payload));
		peer.n -= peer.n > HEAD ? next() % HEAD : 0;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
	peer.in = data;
	peer.end = data + size;
	peer.server = next() % 2;
	peer.n = 0;
	peer.last = peer.server ? 0 : 5; /* our client has made 1, 3 and 5 */
	if (peer.server)
		put(preface, strlen(preface));
	frame(SETTINGS, 0, 0, NULL, 0);
	while (peer.in < peer.end && peer.n < ROOM) {
		const uint8_t *from = peer.in;
		step();
		unsigned again = maybe(32) ? next() % REPEAT : 0;
		for (const uint8_t *then = peer.in; again && peer.n < ROOM / 2; again--) {
			peer.in = from;
			step();
			peer.in = then;
		}
	}
	h2_lives(peer.server, peer.bytes, peer.n);
	return 0;
}
