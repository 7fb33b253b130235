/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_DAEMON_CALL_H
#define CK_DAEMON_CALL_H
/*
 * One call of a client, from its first header to its end. serve.c makes it and reads its request;
 * then one of the files below has it, by its method. A call ends when ck_call_free() is called; a
 * client that goes calls ops->left and leaves the rest to them.
 *
 *   call-pass.c    handed to the runtime, its answer handed back: as it comes, or filtered
 *   call-create.c  RunPodSandbox, CreateContainer
 *   call-lifecycle.c     StartContainer, Stop..., Remove..., before and after they are passed on
 *   nri-call-steps.c    the same and Update..., step by step, where NRI plugins are to be told
 *   call-events.c  GetContainerEvents
 */
#include "src/daemon/daemon.h"
#include "src/cri/filter.h"
#include "src/cri/guard.h"

struct ck_peer { /* a connection somebody made to us */
	struct ck_peer *prev, *next; /* of its listener */
	struct ck_listener *listener;
	struct ck_daemon *daemon;
	struct ck_connection *conn;
	/* answered with an id; the end of the connection may tell that it was not read (K7) */
	struct ck_call *lingering;
	/* bytes of its calls: headers, messages being gathered, requests on their way out */
	size_t held;
	bool filtered;             /* the kubelet's socket; not that of node agents */
};

struct ck_call;
struct ck_call_ops {
	void (*request)(struct ck_call *call); /* the request is whole, in call->request */
	/* the client is gone; call->stream is NULL. Must lead to ck_call_free(), now or later */
	void (*left)(struct ck_call *call);
};

struct ck_call_pass { /* call-pass.c: the call at the runtime */
	struct ck_h2_stream *stream;  /* NULL: not sent yet, or over */
	size_t unsent;                /* bytes of the request, counted in client->held */
	struct ck_grpc_reader reader; /* of a filtered answer */
	struct ck_objects *objects;   /* what a whole list contained, for the cache */
	size_t messages;              /* of a filtered answer, so far */
	/* read from the runtime and not yet given back to its window */
	size_t owed;
	bool ended;                   /* the runtime's trailers came, or the end of its stream */
	/* the runtime's status, before the client gets it; NULL: nobody wants it */
	void (*ended_with)(struct ck_call *call, int grpc);
};

struct ck_call_create { /* call-create.c */
	struct ck_call *prev, *next; /* of client->lingering */
	bool lingers;                /* is there */
	bool taken;                  /* the client has read its answer */
	int32_t stream_id;           /* of the client's stream, after it ended */
	uint64_t answered_at;        /* when the runtime answered */
	struct ck_consult *consult;  /* nri-before-create.c: plugins are being asked */
	/* number of what they made of the request; 0: they were not asked */
	uint64_t consulted;
};

struct ck_call {
	struct ck_peer *client; /* NULL once the connection is gone */
	struct ck_daemon *daemon;
	const struct ck_cri_method *method; /* NULL: not in the table */
	const struct ck_call_ops *ops;
	struct ck_h2_stream *stream;  /* the client's; NULL once it is gone or answered */
	struct ck_h2_header *headers; /* of the request, kept while it is gathered */
	size_t headers_n, headers_size;
	struct ck_grpc_reader reader;
	struct ck_bytes request;
	uint64_t began, deadline;  /* 0: none */
	char id[CK_ID_MAX + 1];    /* the id it acts on, in full; "" none */
	bool whole, begun;         /* request complete; response headers sent */
	bool names_hidden;         /* a list's filter names a hidden id */
	bool reset;                /* the client's stream was reset */
	struct ck_view *view;      /* resolves the request's ids and filters the answer */
	struct ck_turn *turn;      /* of a creation or a removal */
	struct ck_unary_call *rpc; /* a call of our own that it waits for */
	struct ck_loop_timer *timer;
	struct ck_call_pass pass;
	struct ck_call_create create;
};

/* ---- serve.c --------------------------------------------------------------------------------- */

/* ck_call_answer - the client hears this status and @call->stream is done with */
void ck_call_answer(struct ck_call *call, int grpc, const char *message);
void ck_call_answer_status(struct ck_call *call, const struct ck_status *status);
/* by ck_error_grpc() */
void ck_call_answer_error(struct ck_call *call, const struct ck_error *err);
/* the runtime's: no error of ours */
void ck_call_pass_status(struct ck_call *call, const struct ck_grpc_status *status);
/* OK, and this */
void ck_call_answer_message(struct ck_call *call, const void *message, size_t len);
/* ck_call_free - answers nothing; a client that still waits gets RST_STREAM */
void ck_call_free(struct ck_call *call);
/* ck_call_detach - it goes on without its client, who was answered or is gone */
void ck_call_detach(struct ck_call *call);
/* ck_call_timeout - the same as the cache wants it: 0 if it has none, and never 0 else */
uint64_t ck_call_timeout(const struct ck_call *call);
uint64_t ck_call_left(const struct ck_call *call); /* ns of its deadline; UINT64_MAX: it has none */
/* ck_call_guard - NOT_FOUND, or a malformed request, is answered and the call freed: false. Sets
 * call->id */
bool ck_call_guard(struct ck_call *call);

/* ---- call-pass.c ----------------------------------------------------------------------------- */

/* ck_pass_begin - at its headers: what the client sends goes on as it comes, and so does the
 * answer */
void ck_pass_begin(struct ck_call *call, const struct ck_h2_header *headers, size_t n);
/* ck_pass_more - of that request. -CK_ENOMEM */
int ck_pass_more(struct ck_call *call, const unsigned char *bytes, size_t n, struct ck_error *err);
/* ck_pass_whole - the request in call->request goes out in one piece; the answer comes back as it
 * is, or with call->view filtered */
void ck_pass_whole(struct ck_call *call);
extern const struct ck_call_ops ck_pass_ops, ck_act_ops, ck_create_ops;
/* ck_pass_sent - bytes for the client have left its queue */
void ck_pass_sent(struct ck_call *call, size_t n);

/* ---- nri-call-steps.c ------------------------------------------------------------------------ */

/*
 * ck_life_begin - does a plugin listen to what this call of a known id is about? Then it is taken,
 * and true: it goes its steps, also when its client is gone, and ends by itself. false: it is
 * passed on as ever
 */
bool ck_life_begin(struct ck_call *call);
/* ck_lives_end - the daemon ends; those that NRI will call back are freed by that */
void ck_lives_end(struct ck_daemon *daemon);

/* ---- nri-before-create.c --------------------------------------------------------------------- */

/* plugins have answered: @request is the one to send, borrowed; or @err (the plugin's words with
 * CK_EREFUSED) says why not */
typedef void ck_consulted_fn(struct ck_call *call, const struct ck_bytes *request,
			     const struct ck_error *err);
/*
 * ck_consult_begin - ask plugins about the container that @call, a creator, is about to make.
 * call->consult until then; the call may be detached meanwhile. Return: 0: @done comes, unless
 * ck_consult_drop() came first; 1: they were asked before, and @ret_request is to be sent; or an
 * error
 */
int ck_consult_begin(struct ck_call *call, struct ck_bytes *ret_request, ck_consulted_fn *done,
		     struct ck_error *err);
void ck_consult_drop(struct ck_consult *consult); /* its call is freed; NULL is fine */
/* ck_consulted_drop - it is known how the creation ended: what went out will not go out again */
void ck_consulted_drop(struct ck_daemon *daemon, uint64_t number);
void ck_consulted_forget(struct ck_daemon *daemon); /* at the end */

/* ---- call-create.c --------------------------------------------------------------------------- */

/* the client has read all answers that are under way */
void ck_create_all_read(struct ck_peer *client);
/* the client's connection ended: @unread or not. One stream of it was reset after its answer
 * (K7) */
void ck_create_conn_gone(struct ck_peer *client, bool unread);
void ck_create_late_reset(struct ck_peer *client, int32_t stream_id);
#endif
