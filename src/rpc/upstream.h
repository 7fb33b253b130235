/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_RPC_UPSTREAM_H
#define CK_RPC_UPSTREAM_H
/*
 * The runtime's side: connections to its socket, kept up, and calls on them. Two lanes, so that
 * what happens to one (a reset, an error too long for it) cannot take the creations with it. After
 * a GOAWAY a lane gets a new connection and the old one ends with its calls.
 */
#include "src/rpc/connection.h"
#include "src/rpc/grpc.h"

struct ck_upstream;
struct ck_unary_call;

enum ck_lane { CK_LANE_PASS, CK_LANE_CREATE };
#define CK_LANES 2

struct ck_upstream_owner {
	/* connected, for the first time or again: lists are due (K24) */
	void (*up)(void *userdata);
	/* the first lane has no connection, or lost it; told once, also from inside
	 * ck_upstream_new(). It tries again by itself */
	void (*down)(const char *why, void *userdata);
};

/* ck_upstream_new - connects at once, and again after 100 ms doubling to 3 s. @path: copied */
int ck_upstream_new(struct ck_loop *loop, const char *path, const struct ck_upstream_owner *owner,
		    void *userdata, struct ck_upstream **ret_upstream, struct ck_error *err);
void ck_upstream_free(struct ck_upstream *upstream);
bool ck_upstream_is_up(const struct ck_upstream *upstream);
struct ck_loop *ck_upstream_loop(struct ck_upstream *upstream);
/* why it is not: "unix:///run/x: no such file" */
const char *ck_upstream_why(const struct ck_upstream *upstream);
/* ck_upstream_open - a stream of its own for a call that is passed on. -CK_EUNAVAILABLE: not
 * connected */
int ck_upstream_open(struct ck_upstream *upstream, enum ck_lane lane,
		     const struct ck_h2_header *headers, size_t n,
		     const struct ck_h2_handler *handler, void *userdata,
		     struct ck_h2_stream **ret_stream, struct ck_error *err);

/* The answer of a unary call. Borrowed for the callback, but *message may be taken (zero it). */
struct ck_unary_reply {
	struct ck_grpc_status status; /* code 0: message holds the answer */
	struct ck_bytes message;
	/* the runtime has not begun it: refused, and no connection to send it on once more */
	bool unsent;
	/* the connection or the stream went: nobody knows how it ended. status is UNAVAILABLE with
	 * a text */
	bool lost;
};
typedef void ck_unary_cb(struct ck_unary_reply *reply, void *userdata);

struct ck_unary_options { /* zeroed: defaults */
	enum ck_lane lane;
	/* "/runtime.v1.RuntimeService/StopPodSandbox"; or only "StopPodSandbox": the version the
	 * runtime speaks */
	const char *path;
	uint64_t timeout;      /* ns, required; sent as grpc-timeout, and kept by us */
	const struct ck_h2_header *metadata; /* of the caller, passed on */
	size_t metadata_n;
	size_t reply_max;      /* 0: CK_LIST_MAX */
};
/* ck_unary_start - @cb comes exactly once, never from inside this call, unless ck_unary_cancel()
 * came first. @message: copied. -CK_EUNAVAILABLE: not connected, nothing was sent; -CK_ENOMEM.
 * @ret_rpc may be NULL */
int ck_unary_start(struct ck_upstream *upstream, const struct ck_unary_options *options,
		   const void *message, size_t len, ck_unary_cb *cb, void *userdata,
		   struct ck_unary_call **ret_rpc, struct ck_error *err);
/* RST_STREAM(CANCEL); @cb will not come. NULL is fine */
void ck_unary_cancel(struct ck_unary_call *rpc);
/* ck_upstream_version - "runtime.v1" or "runtime.v1alpha2", as it answered last; NULL: it never
 * did */
const char *ck_upstream_version(const struct ck_upstream *upstream);
#endif
