/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_TESTS_WIRE_PAIR_H
#define CK_TESTS_WIRE_PAIR_H
/*
 * A client's and a server's HTTP/2 connection with nothing but memory between them, and streams
 * that write down what they are told. pair_run() carries bytes to and fro until both are quiet, as
 * many at a time as `piece` says.
 */
#include "src/base/bytes.h"
#include "src/base/error.h"
#include "src/rpc/grpc.h"

#define CALLS_MAX 64
#define WINDOW    65535u

struct pair;

struct call { /* one end of a stream, and all it was told */
	struct pair *pair;
	struct ck_h2_stream *stream; /* NULL: closed, or not there yet */
	char told[4096];             /* "name: value\n" per header; "--\n" ends a block */
	struct ck_bytes data;
	size_t sent;
	unsigned blocks, ends, closes;
	uint32_t error; /* of the close */
	bool stall;     /* does not give the window back */
	void (*on_headers)(struct call *call); /* may be NULL, as may all these */
	void (*on_data)(struct call *call);
	void (*on_end)(struct call *call);
	void (*on_sent)(struct call *call);
	void (*on_closed)(struct call *call);
};

struct pair {
	struct ck_h2 *client, *server;
	struct call at_server[CALLS_MAX]; /* in the order they were opened */
	unsigned opened, pending_client, pending_server, draining, late_resets;
	int32_t late_id;
	uint32_t late_error;
	bool refuse; /* the server does not handle what is opened */
	size_t piece; /* bytes fed at once; 0: all */
	/* what ck_h2_feed() or ck_h2_next() said last, if it failed */
	int client_error, server_error;
	struct call served; /* the hooks that a call at the server begins with */
	size_t to_client, to_server; /* bytes carried */
};

extern const struct ck_h2_handler pair_handler;

struct pair *pair_new(void); /* connected, settings exchanged */
/* nothing exchanged yet; NULL: no memory */
struct pair *pair_new_raw(uint32_t server_window, uint32_t client_window);
void pair_free(struct pair *pair);
void pair_run(struct pair *pair);
bool pair_to_server(struct pair *pair); /* one round in one direction; false: there was nothing */
bool pair_to_client(struct pair *pair);
/* pair_call - the usual headers of a call, with `authority` as :authority; the body is the caller's
 * business */
int pair_call(struct pair *pair, struct call *call, const char *authority);
void call_fini(struct call *call);
#endif
