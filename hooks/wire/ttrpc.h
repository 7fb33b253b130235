/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_HOOKS_WIRE_TTRPC_H
#define CK_HOOKS_WIRE_TTRPC_H
/*
 * ttrpc over a mux, in both directions: our calls to a plugin, and its calls to us. NRI uses unary
 * calls only. Bytes in, bytes out; no sockets, no clock. A call that nobody waits for any more is
 * forgotten with ck_ttrpc_forget(); its late answer comes as one of an unknown call.
 *
 * Source: containerd/ttrpc PROTOCOL.md and its request.proto; the limits are in limits.h.
 */
#include "hooks/wire/mux.h"

/* An answer to one of our calls. Borrowed for the callback. */
struct ck_ttrpc_answer {
	int code;            /* google.rpc.Code; 0: @payload is the response */
	const char *message; /* of an error, cut at CK_TEXT_MAX, clean UTF-8; "" if there is none */
	const void *payload;
	size_t len;
};
/* A call of the plugin's. Borrowed for the callback. */
struct ck_ttrpc_request {
	uint32_t stream; /* answer it once with ck_ttrpc_answer(), now or later */
	const char *service, *method;
	const void *payload;
	size_t len;
};

struct ck_ttrpc_ops {
	/* @call: the number that ck_ttrpc_call() gave. @known is false after ck_ttrpc_forget().
	 * Both functions may call everything here but ck_ttrpc_free() and ck_ttrpc_feed() */
	void (*answered)(uint32_t call, bool known, const struct ck_ttrpc_answer *answer,
			 void *userdata);
	void (*requested)(const struct ck_ttrpc_request *request, void *userdata);
};

struct ck_ttrpc;
/* NULL: out of memory */
struct ck_ttrpc *ck_ttrpc_new(const struct ck_ttrpc_ops *ops, void *userdata);
void ck_ttrpc_free(struct ck_ttrpc *ttrpc);
/* ck_ttrpc_feed - bytes from the socket. A malformed envelope, or a message that is too long, fails
 * only its own call, as in Go: the answer is INVALID_ARGUMENT or RESOURCE_EXHAUSTED. Negative
 * (-CK_EMALFORMED, -CK_ENOMEM): close the connection; @err says why */
int ck_ttrpc_feed(struct ck_ttrpc *ttrpc, const void *p, size_t n, struct ck_error *err);
/* ck_ttrpc_call - queue a call. @timeout: ns, sent with it; 0: none. Return: 0 and @ret_call;
 * -CK_ETOOBIG (message over 4 MiB: nothing was queued), -CK_ENOMEM */
int ck_ttrpc_call(struct ck_ttrpc *ttrpc, const char *service, const char *method,
		  const void *payload, size_t len, uint64_t timeout, uint32_t *ret_call,
		  struct ck_error *err);
void ck_ttrpc_forget(struct ck_ttrpc *ttrpc, uint32_t call);
/* ck_ttrpc_answer - answer a call of the plugin's. @code 0: with @payload; else with @message. A
 * response over 4 MiB is sent as RESOURCE_EXHAUSTED. 0, -CK_ENOMEM, -CK_EINVAL (there is no such
 * call, or it was answered) */
int ck_ttrpc_answer(struct ck_ttrpc *ttrpc, uint32_t stream, int code, const char *message,
		    const void *payload, size_t len);
/* as ck_mux_out(), ck_mux_sent() */
const unsigned char *ck_ttrpc_out(const struct ck_ttrpc *ttrpc, size_t *ret_len);
void ck_ttrpc_sent(struct ck_ttrpc *ttrpc, size_t n);
#endif
