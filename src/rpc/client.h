/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_RPC_CLIENT_H
#define CK_RPC_CLIENT_H
/*
 * gRPC calls of one message each way over a unix socket, for programs that only wait for them: the
 * command and the tests. There is one connection. It is dialled at the first call and again after
 * it was lost; any number of calls share it. A deadline is sent to the server and also enforced
 * here, as grpc-go's clients do. One thread. Time is CLOCK_BOOTTIME.
 */
#include "src/rpc/grpc.h"

struct ck_client;

struct ck_unary { /* the caller's, zeroed; not moved until done; ck_unary_fini() */
	bool done;
	/* once done; with grpc-go's codes and texts where the server sent none */
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

/* ck_client_new - @endpoint: "unix:///path" or "/path"; copied. Does not dial. -CK_EINVAL (another
 * endpoint), -CK_ENOMEM */
int ck_client_new(const char *endpoint, struct ck_client **ret_client, struct ck_error *err);
/* ck_client_free - calls under way end as CANCELLED. NULL is fine */
void ck_client_free(struct ck_client *client);
/* ck_client_dial - connect now, if there is no connection. -CK_EUNAVAILABLE and why: no such file,
 * not a socket, refused */
int ck_client_dial(struct ck_client *client, struct ck_error *err);

/* ck_unary_begin - @method: "/runtime.v1.RuntimeService/Version". @timeout: ns; 0: none. Blocks
 * only to dial; if that fails, the call is done at once with UNAVAILABLE. -CK_ENOMEM, -CK_EINVAL
 * (@call is not zeroed) */
int ck_unary_begin(struct ck_client *client, struct ck_unary *call, const char *method,
		   const void *message, size_t len, uint64_t timeout, struct ck_error *err);
/* ck_client_wait - wait until @call is done, or any call if it is NULL, at most until @until
 * (UINT64_MAX: no limit; 0: only handle what has come). false: not done yet; with NULL also: no
 * call is under way */
bool ck_client_wait(struct ck_client *client, struct ck_unary *call, uint64_t until);
/* ck_unary_fini - cancel the call (RST_STREAM) if it is not done; free what it holds and zero it */
void ck_unary_fini(struct ck_unary *call);
uint64_t ck_client_now(void);
#endif
