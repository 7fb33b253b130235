/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_RPC_UPSTREAM_H
#define CK_RPC_UPSTREAM_H
/*
 * The connections to the runtime's socket, kept up, and our own calls on them. There are two lanes,
 * so that a failure of one (a reset, an error too long for it) does not end the creations on the
 * other. After a GOAWAY a lane gets a new connection; the old one ends with its last call.
 */
#include "src/rpc/connection.h"
#include "src/rpc/grpc.h"

struct ck_upstream;
struct ck_unary_call;

enum ck_lane { CK_LANE_PASS, CK_LANE_CREATE };
#define CK_LANES 2

struct ck_upstream_owner {
	/* connected, for the first time or again: the owner reconciles with its lists (K24) */
	void (*up)(void *userdata);
	/* the first lane has no connection; called once until up(), also from inside
	 * ck_upstream_new(). It is dialled again without being asked */
	void (*down)(const char *why, void *userdata);
	/* Calls are open, and the runtime has not answered anything for seconds, or answers again.
	 * Nothing else changes. May be NULL */
	void (*silent)(bool silent, void *userdata);
	/* @fd: a new connection for creates, before anything is sent on it. It ends for everybody
	 * who holds a duplicate, unless this process just ends. May be NULL */
	void (*carries)(int fd, void *userdata);
	/* make a text of the runtime's fit for logs and clients; @out: CK_TEXT_MAX + 1 bytes */
	void (*redact)(const char *text, char *out);
};

/* ck_upstream_new - connects at once, and again after 100 ms doubling to 3 s. @path: copied */
int ck_upstream_new(struct ck_loop *loop, const char *path, const struct ck_upstream_owner *owner,
		    void *userdata, struct ck_upstream **ret_upstream, struct ck_error *err);
void ck_upstream_free(struct ck_upstream *upstream);
bool ck_upstream_is_up(const struct ck_upstream *upstream);
bool ck_upstream_answers(const struct ck_upstream *upstream); /* it is up, and not silent */
/* ck_upstream_introduced - its last answer to Version, a message; empty before the first up() */
const struct ck_bytes *ck_upstream_introduced(const struct ck_upstream *upstream);
struct ck_loop *ck_upstream_loop(struct ck_upstream *upstream);
/* ck_upstream_why - why it is not up: "unix:///run/x: no such file" */
const char *ck_upstream_why(const struct ck_upstream *upstream);
/* ck_upstream_open - a new stream, for a call that is passed on. -CK_EUNAVAILABLE: not connected */
int ck_upstream_open(struct ck_upstream *upstream, enum ck_lane lane,
		     const struct ck_h2_header *headers, size_t n,
		     const struct ck_h2_handler *handler, void *userdata,
		     struct ck_h2_stream **ret_stream, struct ck_error *err);

/* The answer to a unary call. Borrowed for the callback; message may be taken (zero it). */
struct ck_unary_reply {
	struct ck_grpc_status status; /* code 0: message holds the answer */
	struct ck_bytes message;
	/* the runtime refused it without beginning it, and it could not be sent again */
	bool unsent;
	/* the connection or the stream ended first, so nobody knows the outcome; status is
	 * UNAVAILABLE with a text */
	bool lost;
};
typedef void ck_unary_cb(struct ck_unary_reply *reply, void *userdata);

struct ck_unary_options { /* zeroed: defaults */
	enum ck_lane lane;
	/* "/runtime.v1.RuntimeService/StopPodSandbox"; or "StopPodSandbox", for the version that
	 * the runtime speaks */
	const char *path;
	uint64_t timeout;      /* ns, required; sent as grpc-timeout and enforced here */
	const struct ck_h2_header *metadata; /* the caller's, passed on */
	size_t metadata_n;
	size_t reply_max;      /* 0: CK_LIST_MAX */
};
/* ck_unary_start - begin a call. @cb is called exactly once, never from inside this function, and
 * not after ck_unary_cancel(). @message: copied. @ret_rpc may be NULL.
 * Return: 0, -CK_EUNAVAILABLE (not connected, nothing was sent), -CK_ENOMEM */
int ck_unary_start(struct ck_upstream *upstream, const struct ck_unary_options *options,
		   const void *message, size_t len, ck_unary_cb *cb, void *userdata,
		   struct ck_unary_call **ret_rpc, struct ck_error *err);
/* ck_unary_cancel - RST_STREAM(CANCEL); @cb is not called. NULL is fine */
void ck_unary_cancel(struct ck_unary_call *rpc);
/* ck_upstream_version - "runtime.v1" or "runtime.v1alpha2": what it answered last; NULL: it never
 * answered */
const char *ck_upstream_version(const struct ck_upstream *upstream);
#endif
