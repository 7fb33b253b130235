/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections to the runtime.
 *
 *   down --dial--> connected --Version answers--> up --connection ends--> down
 *
 * After a failure it is dialled again, after a pause that doubles. Calls pass as soon as the first
 * lane is connected. up() waits for the answer to Version: a runtime listens before its CRI
 * answers, and our own calls need to know the version that it speaks. A lane that got a GOAWAY is
 * dialled again at once; its old connection retires and ends with its last call.
 *
 * While calls are open, Version is asked now and then. If no answer comes, the runtime is silent:
 * stopped, or stuck. The owner hears of it, and nothing else is done. It is a call and no PING of
 * HTTP/2, because gRPC servers end a connection with too many of these.
 */
#include <stdio.h>

#include <utlist.h>

#include "src/base/error.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/rpc/address.h"
#include "src/base/log.h"
#include "src/rpc/upstream.h"

struct lane {
	struct ck_upstream *upstream;
	struct ck_connection *conn; /* takes new streams; NULL: none */
};

struct retiring { /* got a GOAWAY and still has calls */
	struct retiring *next;
	struct ck_connection *conn;
};

struct ck_upstream {
	struct ck_loop *loop;
	char *path;
	const struct ck_upstream_owner *owner;
	void *userdata;
	struct lane lanes[CK_LANES];
	struct retiring *retiring;
	struct ck_loop_timer *again; /* made at the start: without it nobody dials again */
	uint64_t pause; /* before the next try */
	struct ck_unary_call *asking;
	const char *version; /* the one that answered last */
	struct ck_bytes introduced; /* what it answered */
	bool old_asked, up;
	bool told; /* the owner knows that it is down */
	struct ck_loop_timer *look;
	struct ck_unary_call *probe; /* asked at the last look */
	bool silent;                 /* it was not answered by the next one */
	char why[CK_ERROR_TEXT];
};

static const char *const versions[] = { "runtime.v1", "runtime.v1alpha2" };

static void ask_version(struct ck_upstream *upstream);

static void try_again(void *userdata);

/* the runtime is not there: tell the owner once, and try again later */
static void later(struct ck_upstream *upstream, const char *why)
{
	snprintf(upstream->why, sizeof(upstream->why), "%s", why);
	if (upstream->up || !upstream->told) {
		upstream->up = false;
		upstream->told = true;
		upstream->owner->down(upstream->why, upstream->userdata);
	}
	upstream->pause = upstream->pause ? 2 * upstream->pause : CK_CONNECT_MIN;
	if (upstream->pause > CK_CONNECT_MAX)
		upstream->pause = CK_CONNECT_MAX;
	ck_loop_timer(upstream->loop, &upstream->again, ck_loop_now() + upstream->pause, try_again,
		      upstream);
}

/* ---- does it answer? ------------------------------------------------------------------------- */

static void silent_set(struct ck_upstream *upstream, bool silent)
{
	if (upstream->silent != silent && upstream->owner->silent)
		upstream->owner->silent(silent, upstream->userdata);
	upstream->silent = silent;
}

static void probe_answered(struct ck_unary_reply *reply, void *userdata)
{
	struct ck_upstream *upstream = userdata;
	upstream->probe = NULL;
	if (!reply->lost && reply->status.code != CK_GRPC_DEADLINE_EXCEEDED)
		silent_set(upstream, false);
}

static bool has_calls(const struct ck_upstream *upstream)
{
	for (size_t i = 0; i < CK_LANES; i++) {
		struct ck_connection *conn = upstream->lanes[i].conn;
		if (conn && ck_connection_h2(conn) && ck_h2_streams(ck_connection_h2(conn)))
			return true;
	}
	return false;
}

static void look(void *userdata)
{
	struct ck_upstream *upstream = userdata;
	const struct ck_unary_options options = { .path = "Version",
						  .timeout = CK_ANSWERS_TIMEOUT };
	struct ck_error err;
	if (upstream->probe)
		silent_set(upstream, true);
	else if (has_calls(upstream))
		/* if it cannot be asked, the next look may */
		ck_unary_start(upstream, &options, NULL, 0, probe_answered, upstream,
			       &upstream->probe, &err);
	ck_loop_timer(upstream->loop, &upstream->look, ck_loop_now() + CK_ANSWERS_LOOK, look,
		      upstream);
}

static void look_ends(struct ck_upstream *upstream)
{
	ck_unary_cancel(CK_TAKE(upstream->probe));
	upstream->silent = false; /* it is down, and the owner hears that */
	ck_loop_timer(upstream->loop, &upstream->look, UINT64_MAX, look, upstream);
}

/* ---- connections ----------------------------------------------------------------------------- */

static void went_down(struct ck_upstream *upstream, const char *why)
{
	ck_unary_cancel(CK_TAKE(upstream->asking));
	look_ends(upstream);
	later(upstream, why);
}

static void retired(struct ck_upstream *upstream, struct ck_connection *conn)
{
	struct retiring *old;
	LL_SEARCH_SCALAR(upstream->retiring, old, conn, conn);
	if (old)
		LL_DELETE(upstream->retiring, old);
	free(old);
}

static void conn_closed(struct ck_connection *conn, bool unread, const char *why, void *userdata)
{
	struct lane *lane = userdata;
	struct ck_upstream *upstream = lane->upstream;
	(void)unread;
	bool current = lane->conn == conn;
	ck_connection_free(conn);
	if (current)
		lane->conn = NULL; /* the second lane is dialled when it is needed */
	else
		retired(upstream, conn);
	if (lane == &upstream->lanes[CK_LANE_PASS] && !lane->conn && (current || upstream->up)) {
		char text[CK_ERROR_TEXT];
		snprintf(text, sizeof(text), "unix://%s: %s", upstream->path, why);
		went_down(upstream, text);
	}
}

static int dial(struct ck_upstream *upstream, enum ck_lane which, struct ck_error *err);

/* false: out of memory; the connection stays until it closes, and takes no new streams */
static bool retire(struct lane *lane)
{
	struct ck_upstream *upstream = lane->upstream;
	struct retiring *old = CK_NEW(struct retiring);
	if (!old)
		return false;
	old->conn = CK_TAKE(lane->conn);
	LL_PREPEND(upstream->retiring, old);
	ck_connection_shut(old->conn);
	return true;
}

static void conn_draining(struct ck_connection *conn, void *userdata)
{
	struct lane *lane = userdata;
	struct ck_upstream *upstream = lane->upstream;
	struct ck_error err;
	if (lane->conn == conn && !retire(lane))
		return;
	if (lane == &upstream->lanes[CK_LANE_PASS] && !lane->conn &&
	    dial(upstream, CK_LANE_PASS, &err) < 0)
		went_down(upstream, err.text);
}

static const struct ck_connection_owner conn_owner = {
	.draining = conn_draining,
	.closed = conn_closed,
};

static int dial(struct ck_upstream *upstream, enum ck_lane which, struct ck_error *err)
{
	struct lane *lane = &upstream->lanes[which];
	int fd = ck_unix_connect(upstream->path, err);
	if (fd >= 0 && which == CK_LANE_CREATE && upstream->owner->carries)
		upstream->owner->carries(fd, upstream->userdata);
	return fd < 0 ? fd
		      : ck_connection_new(upstream->loop, fd, CK_H2_CLIENT, &conn_owner, lane,
					  &lane->conn, err);
}

static void try_again(void *userdata)
{
	struct ck_upstream *upstream = userdata;
	struct ck_error err;
	if (!upstream->lanes[CK_LANE_PASS].conn && dial(upstream, CK_LANE_PASS, &err) < 0) {
		later(upstream, err.text);
		return;
	}
	upstream->old_asked = false;
	ask_version(upstream);
}

/* ---- which version of CRI it speaks ---------------------------------------------------------- */

static void version_answered(struct ck_unary_reply *reply, void *userdata)
{
	struct ck_upstream *upstream = userdata;
	const char *text = reply->status.message;
	char why[CK_ERROR_TEXT], redacted[CK_TEXT_MAX + 1];
	upstream->asking = NULL;
	if (reply->status.code == CK_GRPC_OK) {
		upstream->version = versions[upstream->old_asked];
		ck_bytes_free(&upstream->introduced);
		upstream->introduced = reply->message;
		reply->message = (struct ck_bytes){ 0 };
		upstream->pause = 0;
		upstream->up = true;
		upstream->told = false;
		upstream->owner->up(upstream->userdata);
		look(upstream);
		return;
	}
	if (reply->status.code == CK_GRPC_UNIMPLEMENTED && !upstream->old_asked) {
		upstream->old_asked = true;
		ask_version(upstream);
		return;
	}
	upstream->owner->redact(text ? text : "no reason given", redacted);
	snprintf(why, sizeof(why), "unix://%s: Version: %s: %s", upstream->path,
		 ck_grpc_name(reply->status.code), redacted);
	later(upstream, why);
}

static void ask_version(struct ck_upstream *upstream)
{
	char path[64];
	snprintf(path, sizeof(path), "/%s.RuntimeService/Version", versions[upstream->old_asked]);
	struct ck_unary_options options = { .path = path, .timeout = CK_ASK_TIMEOUT };
	struct ck_error err;
	if (upstream->asking || upstream->up)
		return;
	if (ck_unary_start(upstream, &options, NULL, 0, version_answered, upstream,
			   &upstream->asking, &err) < 0) {
		later(upstream, err.text);
	}
}

/* ---- for its owner --------------------------------------------------------------------------- */

int ck_upstream_new(struct ck_loop *loop, const char *path, const struct ck_upstream_owner *owner,
		    void *userdata, struct ck_upstream **ret_upstream, struct ck_error *err)
{
	struct ck_upstream *upstream = CK_NEW(struct ck_upstream);
	char *copy = ck_strdup(path);
	if (!upstream || !copy) {
		free(upstream);
		free(copy);
		return ck_nomem(err);
	}
	*upstream = (struct ck_upstream){
		.loop = loop, .path = copy, .owner = owner, .userdata = userdata
	};
	for (size_t i = 0; i < CK_LANES; i++)
		upstream->lanes[i].upstream = upstream;
	snprintf(upstream->why, sizeof(upstream->why), "unix://%s: not connected yet", path);
	if (ck_loop_timer_new(loop, &upstream->again) < 0 ||
	    ck_loop_timer_new(loop, &upstream->look) < 0) {
		ck_upstream_free(upstream);
		return ck_nomem(err);
	}
	*ret_upstream = upstream;
	try_again(upstream);
	return 0;
}

void ck_upstream_free(struct ck_upstream *upstream)
{
	if (!upstream)
		return;
	ck_unary_cancel(upstream->asking);
	ck_unary_cancel(upstream->probe);
	for (size_t i = 0; i < CK_LANES; i++)
		ck_connection_free(upstream->lanes[i].conn);
	struct retiring *old, *next;
	LL_FOREACH_SAFE(upstream->retiring, old, next) {
		ck_connection_free(old->conn);
		free(old);
	}
	ck_loop_timer_free(upstream->again);
	ck_loop_timer_free(upstream->look);
	ck_bytes_free(&upstream->introduced);
	free(upstream->path);
	free(upstream);
}

bool ck_upstream_answers(const struct ck_upstream *upstream)
{
	struct ck_connection *conn = upstream->lanes[CK_LANE_PASS].conn;
	/* when a connection breaks, its calls end before it is said to be down */
	return upstream->up && !upstream->silent && conn && ck_connection_h2(conn);
}

bool ck_upstream_is_up(const struct ck_upstream *upstream)
{
	return upstream->up;
}

const struct ck_bytes *ck_upstream_introduced(const struct ck_upstream *upstream)
{
	return &upstream->introduced;
}

const char *ck_upstream_why(const struct ck_upstream *upstream)
{
	return upstream->why;
}

const char *ck_upstream_version(const struct ck_upstream *upstream)
{
	return upstream->version;
}

struct ck_loop *ck_upstream_loop(struct ck_upstream *upstream)
{
	return upstream->loop;
}

#define OPEN_HEADERS_MAX 64u /* on the stack; more headers are copied to the heap */

/* CRI-O accepts "application/grpc" without a suffix only */
static int open_stream(struct ck_connection *conn, const struct ck_h2_header *headers, size_t n,
		       const struct ck_h2_handler *handler, void *userdata,
		       struct ck_h2_stream **ret_stream, struct ck_error *err)
{
	static const struct ck_h2_header plain = CK_H2_HEADER("content-type", "application/grpc");
	const struct ck_h2_header *type = ck_h2_find(headers, n, "content-type");
	if (!type || ck_h2_is(type, "application/grpc"))
		return ck_h2_open(ck_connection_h2(conn), headers, n, handler, userdata, ret_stream,
				  err);
	struct ck_h2_header some[OPEN_HEADERS_MAX],
		*copy = n > CK_COUNT(some) ? ck_alloc(n * sizeof(*copy)) : some;
	if (!copy)
		return ck_nomem(err);
	memcpy(copy, headers, n * sizeof(*copy));
	copy[type - headers] = plain;
	int r = ck_h2_open(ck_connection_h2(conn), copy, n, handler, userdata, ret_stream, err);
	if (copy != some)
		free(copy);
	return r;
}

/* A call that a GOAWAY refused is sent again from inside closed(), before draining() is called. The
 * ids of streams may also run out. If dialling fails here, the upstream does not go down yet,
 * because a call may be in the middle of something; draining() does that. */
static int open_elsewhere(struct lane *lane, enum ck_lane which, const struct ck_h2_header *headers,
			  size_t n, const struct ck_h2_handler *handler, void *userdata,
			  struct ck_h2_stream **ret_stream, struct ck_error *err)
{
	if (!retire(lane))
		return ck_nomem(err);
	int r = dial(lane->upstream, which, err);
	if (r < 0)
		return ck_context(err, -CK_EUNAVAILABLE, "the runtime is not connected");
	return open_stream(lane->conn, headers, n, handler, userdata, ret_stream, err);
}

int ck_upstream_open(struct ck_upstream *upstream, enum ck_lane which,
		     const struct ck_h2_header *headers, size_t n,
		     const struct ck_h2_handler *handler, void *userdata,
		     struct ck_h2_stream **ret_stream, struct ck_error *err)
{
	struct lane *lane = &upstream->lanes[which];
	if (!upstream->lanes[CK_LANE_PASS].conn)
		return ck_fail(err, CK_EUNAVAILABLE, "the runtime is not connected: %s",
			       upstream->why);
	/* it has ended; the lane is told at the end of this turn of the loop */
	if (lane->conn && !ck_connection_h2(lane->conn))
		return ck_fail(err, CK_EUNAVAILABLE, "the runtime's connection has just ended");
	int r = lane->conn ? 0 : dial(upstream, which, err);
	if (r < 0)
		return ck_context(err, -CK_EUNAVAILABLE, "the runtime is not connected");
	r = open_stream(lane->conn, headers, n, handler, userdata, ret_stream, err);
	if (r == -CK_EUNAVAILABLE && ck_h2_draining(ck_connection_h2(lane->conn)))
		r = open_elsewhere(lane, which, headers, n, handler, userdata, ret_stream, err);
	return r;
}
