/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_RPC_CLIENT_H
#define CK_RPC_CLIENT_H
/*
 * gRPC calls of one message each way over a unix socket, for a program that has nothing else to do
 * than to wait for them: the command and the tests. One connection, dialled at the first call and
 * again after it was lost; any number of calls on it at once. A deadline is said to the server and
 * kept here too, as grpc-go's clients do. One thread. Time is CLOCK_BOOTTIME.
 */
#include "src/rpc/grpc.h"

struct ck_client;

struct ck_unary { /* the caller's, zeroed; at its place until done; ck_unary_fini() */
	bool done;
	/* once done; the codes and texts of grpc-go for what the server did not say itself */
	struct ck_grpc_status status;
	struct ck_bytes reply;        /* once done and OK */
	uint64_t began, ended;        /* ns */

	struct ck_client *client; /* from here on: client.c's */
	struct ck_h2_stream *stream;
	struct ck_unary *prev, *next;
	struct ck_grpc_reader reader;
	uint64_t deadline;
	int http;
	bool answered, replied;
};

/* ck_client_new - @endpoint: "unix:///path" or "/path"; copied. Dials nobody. -CK_EINVAL (not such
 * an endpoint), -CK_ENOMEM */
int ck_client_new(const char *endpoint, struct ck_client **ret_client, struct ck_error *err);
/* ck_client_free - calls under way end as CANCELLED. NULL is fine */
void ck_client_free(struct ck_client *client);
/* ck_client_dial - connect now, if there is no connection. -CK_EUNAVAILABLE and why: no such file,
 * not a socket, refused */
int ck_client_dial(struct ck_client *client, struct ck_error *err);

/* ck_unary_begin - @method: "/runtime.v1.RuntimeService/Version". @timeout: ns; 0: none. Does not
 * block but for dialling; if that fails the call is done at once, as UNAVAILABLE. -CK_ENOMEM,
 * -CK_EINVAL (@call is not zeroed) */
int ck_unary_begin(struct ck_client *client, struct ck_unary *call, const char *method,
		   const void *message, size_t len, uint64_t timeout, struct ck_error *err);
/* ck_client_wait - until @call is done, or any if it is NULL, or until @until (UINT64_MAX: no
 * limit; 0: only what is there). false: not yet; with NULL also: none is under way */
bool ck_client_wait(struct ck_client *client, struct ck_unary *call, uint64_t until);
/* ck_unary_fini - give it up (RST_STREAM) if it is not done; free what it holds and make it as
 * new */
void ck_unary_fini(struct ck_unary *call);
uint64_t ck_client_now(void);
#endif
