/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_DAEMON_CALL_H
#define CK_DAEMON_CALL_H
/*
 * One call of a client, from its first header to its end. serve.c creates it and reads its request.
 * Then one of the files below handles it, depending on its method. ck_call_free() ends a call. When
 * the client leaves, ops->left is called, and the file that handles the call does the rest.
 *
 *   call-pass.c        passed on to the runtime; its answer is passed back, as it is or filtered
 *   call-create.c      RunPodSandbox, CreateContainer
 *   call-shadow.c      counts these two; with shadow: true every call is passed on
 *   call-lifecycle.c   StartContainer, Stop..., Remove...: what comes first
 *   call-start.c       StartContainer
 *   nri-call-steps.c   Stop..., Remove...; and Update..., if NRI plugins are to be told
 *   call-joined.c      these three: one call at the runtime for all that ask for the same
 *   call-events.c      GetContainerEvents
 *
 * client-limits.c counts connections and calls, and says who has too many.
 */
#include "src/base/hash.h"
#include "src/daemon/daemon.h"
#include "src/cri/filter.h"
#include "src/cri/guard.h"

/* a connection of a client */
struct ck_peer {
	struct ck_peer *prev, *next; /* of its listener */
	struct ck_listener *listener;
	struct ck_daemon *daemon;
	struct ck_connection *conn;
	/* Creates that were answered with an id. The end of the connection may show that the client
	 * has not read the answer: then a container is kept again (K7). */
	struct ck_call *lingering; /* by stream_id */
	struct ck_call *untaken;   /* the same, of those it may not have read yet */
	/* call-pass.c: questions at the runtime, and those that wait until fewer are */
	unsigned asking;
	struct ck_call *waiting; /* oldest first */
	/* client-limits.c: NULL when it has lost its place */
	struct ck_client_process *process;
	struct {
		struct ck_peer *prev, *next; /* of its process */
	} of_process;
	unsigned calls; /* under way */
	size_t held;   /* bytes of its calls: headers, incomplete messages, unsent requests */
	/* it is on the kubelet's socket, not on the one for node agents; with shadow: true nobody's
	 * answers are filtered */
	bool filtered;
};

struct ck_call;
struct ck_call_ops {
	void (*request)(struct ck_call *call); /* the request is complete, in call->request */
	/* the client has left, and call->stream is NULL. Must call ck_call_free(), now or later */
	void (*left)(struct ck_call *call);
};

enum ck_pass_how {
	CK_PASS_UNDECIDED, /* it has not begun */
	CK_PASS_FILTERED,  /* read whole, and cut */
	CK_PASS_AS_IT_COMES,
};

/* call-pass.c: the call at the runtime */
struct ck_call_pass {
	struct ck_call *prev, *next;  /* of client->waiting, or of process->fresh */
	struct ck_h2_stream *stream;  /* NULL: not sent yet, or over */
	size_t unsent;                /* bytes of the request, counted in client->held */
	struct ck_grpc_reader reader; /* of a filtered answer */
	struct ck_objects *objects;   /* what a whole list contained, for the cache */
	size_t messages;              /* of a filtered answer, so far */
	enum ck_pass_how how;         /* what is done with its first message */
	struct ck_bytes copy;         /* of that message, if it was passed on as it came */
	/* read from the runtime and not yet given back to its window */
	size_t owed;
	bool asks, waits; /* counted in client->asking, in client->waiting */
	bool fresh;       /* in process->fresh, since asked_at */
	uint64_t asked_at;
	bool ended; /* the runtime's trailers came, or the end of its stream */
	char timeout[CK_GRPC_TIMEOUT]; /* of a call that waited: what the header names */
};

/* call-create.c */
struct ck_call_create {
	UT_hash_handle by_stream;    /* of client->lingering */
	struct ck_call *prev, *next; /* of client->untaken */
	bool lingers;                /* it is in client->lingering */
	bool taken;                  /* the client has read its answer */
	int32_t stream_id;           /* of the client's stream */
	uint64_t sent_at;            /* when it was sent to the runtime */
	uint64_t answered_at;        /* when the runtime answered */
	struct ck_consult *consult;  /* nri-before-create.c: plugins are being asked */
	/* number of the request as plugins changed it; 0: they were not asked */
	uint64_t consulted;
};

/* call-shadow.c */
struct ck_call_shadow {
	struct ck_key *key;        /* what it creates; NULL: not known */
	uint64_t begun_at;         /* when its request was complete; 0: it is not counted */
	int grpc;                  /* the runtime's status, if it has answered */
	bool whole, unread;        /* the copy of its request is complete; was given up */
	bool again;                /* one for the same was cut off */
	bool answered;
};

struct ck_joined;
struct ck_call_join {                /* call-joined.c */
	struct ck_call *prev, *next; /* that wait for the same end */
	struct ck_joined *of;
};

struct ck_call {
	struct ck_call *prev, *next; /* of daemon->metrics.calls_open */
	struct ck_peer *client; /* NULL once the connection is gone */
	/* whose it is when it goes on without its client; NULL: it has its client, or nobody's */
	struct ck_client_process *left_by;
	struct ck_daemon *daemon;
	const struct ck_cri_method *method; /* NULL: not in the table */
	const struct ck_call_ops *ops;
	struct ck_h2_stream *stream;  /* the client's; NULL once it is gone or answered */
	struct ck_h2_header *headers; /* of the request, kept until it is complete */
	size_t headers_n, headers_size;
	struct ck_grpc_reader reader;
	struct ck_bytes request;
	uint64_t began, deadline;  /* 0: none */
	char id[CK_ID_MAX + 1];    /* the full id of its object; "": none */
	bool whole, begun;         /* the request is complete; response headers were sent */
	bool names_hidden;         /* the filter of a list names a hidden id */
	bool reset;                /* the client's stream was reset */
	struct ck_view *view;      /* resolves the request's ids and filters the answer */
	struct ck_turn *turn;      /* of a creation or a removal */
	struct ck_unary_call *rpc; /* a call of our own that it waits for */
	struct ck_loop_timer *timer;
	struct ck_call_pass pass;
	struct ck_call_create create;
	struct ck_call_shadow shadow;
	struct ck_call_join join;
};

/* ---- client-limits.c ------------------------------------------------------------------------- */

struct ck_client_process { /* that has connections */
	struct ck_client_process *prev, *next; /* of daemon->processes */
	pid_t pid; /* 0: not of our pid namespace. Each connection counts as a process then */
	uid_t uid;
	struct ck_peer *clients; /* newest first */
	unsigned clients_n, calls; /* also calls that go on without their client, */
	unsigned left_n;           /* which are so many */
	unsigned asking; /* call-pass.c: of all its clients */
	struct ck_call *fresh; /* of these, sent a moment ago; the oldest first */
	unsigned fresh_n;
	struct ck_loop_timer *grows_old; /* when the oldest is not fresh any more */
	bool advancing;  /* what waits is being sent */
};

struct ucred;
/* ck_client_comes - @who has connected. When all places are taken, the process that holds most may
 * lose its newest one. -CK_ETOOBIG (there is no place for this one), -CK_ENOMEM */
int ck_client_comes(struct ck_peer *client, const struct ucred *who, struct ck_error *err);
void ck_client_leaves(struct ck_peer *client);
/* ck_client_counts - its calls are so many more, or fewer */
void ck_client_counts(struct ck_peer *client, int calls);
/* ck_client_detaches - @call goes on without its client, and counts for its process until it is
 * freed: ck_client_left_call_ends() */
void ck_client_detaches(struct ck_call *call);
void ck_client_left_call_ends(struct ck_call *call);
/* ck_client_may_call - the call is counted already. -CK_ETOOBIG */
int ck_client_may_call(const struct ck_peer *client, struct ck_error *err);
/* ck_refused - count it, and log it unless the last one for this cause is a moment ago */
void ck_refused(struct ck_daemon *daemon, enum ck_refusal cause, const char *text);

/* ---- serve.c --------------------------------------------------------------------------------- */

/* ck_call_answer - send this status to the client. @call->stream is NULL afterwards */
void ck_call_answer(struct ck_call *call, int grpc, const char *message);
void ck_call_answer_status(struct ck_call *call, const struct ck_status *status);
/* with the code of ck_error_grpc() */
void ck_call_answer_error(struct ck_call *call, const struct ck_error *err);
/* the status of the runtime, which does not count as an error of crikeepd */
void ck_call_pass_status(struct ck_call *call, const struct ck_grpc_status *status);
/* OK, with this message */
void ck_call_answer_message(struct ck_call *call, const void *message, size_t len);
/* ck_call_free - sends no answer: a client that still waits gets RST_STREAM */
void ck_call_free(struct ck_call *call);
/* ck_call_detach - the call goes on without its client, which was answered or has left */
void ck_call_detach(struct ck_call *call);
/* ck_call_timeout - the same in the form of the cache: 0 if it has none, and never 0 otherwise */
uint64_t ck_call_timeout(const struct ck_call *call);
uint64_t ck_call_left(const struct ck_call *call); /* ns to its deadline; UINT64_MAX: no deadline */
/* ck_call_guard - sets call->id. false: the request is malformed or names a hidden object; it was
 * answered, and the call is freed */
bool ck_call_guard(struct ck_call *call);
/* ck_call_shows - for an object of which only the id is known: 1 it is known to be committed, 0, or
 * an error */
int ck_call_shows(struct ck_view *view, const struct ck_object *object);

/* ---- call-pass.c ----------------------------------------------------------------------------- */

/* ck_pass_begin - after the headers: pass on the request and the answer as they come */
void ck_pass_begin(struct ck_call *call, const struct ck_h2_header *headers, size_t n);
/* ck_pass_more - pass on these bytes of the request. -CK_ENOMEM */
int ck_pass_more(struct ck_call *call, const unsigned char *bytes, size_t n, struct ck_error *err);
/* ck_pass_whole - send call->request, at once or when it is its turn. The answer is passed back;
 * with call->view it is filtered */
void ck_pass_whole(struct ck_call *call);
/* ck_pass_must_wait - is it a question, and has its process enough of them at the runtime? */
bool ck_pass_must_wait(const struct ck_call *call);
/* ck_pass_leave - it gives up its place. ck_pass_advance() follows, when it is freed */
void ck_pass_leave(struct ck_call *call);
/* ck_pass_forget - @client leaves its process */
void ck_pass_forget(struct ck_peer *client);
/* ck_pass_advance - send what waits, as far as there are places. NULL is fine */
void ck_pass_advance(struct ck_client_process *process);
/* ck_pass_end - the call is freed: it is cancelled at the runtime, if it is still there */
void ck_pass_end(struct ck_call *call);
extern const struct ck_call_ops ck_pass_ops, ck_act_ops, ck_create_ops;
/* ck_pass_sent - bytes for the client have left its queue */
void ck_pass_sent(struct ck_call *call, size_t n);

/* ---- call-shadow.c --------------------------------------------------------------------------- */

/* These do nothing unless the call is a create, and shadow: true. Nothing that they do reaches the
 * client or the runtime. */
/* ck_shadow_data - bytes of a request that is passed on */
void ck_shadow_data(struct ck_call *call, const unsigned char *bytes, size_t n);
void ck_shadow_begin(struct ck_call *call); /* the request is complete */
void ck_shadow_answered(struct ck_call *call, int grpc);
void ck_shadow_end(struct ck_call *call); /* it is about to be freed */
void ck_shadows_free(struct ck_daemon *daemon);

/* ---- call-joined.c --------------------------------------------------------------------------- */

struct ck_joined {
	struct ck_daemon *daemon;
	const struct ck_cri_method *method;
	char id[CK_ID_MAX + 1];
	struct ck_call *callers; /* that wait for its end; NULL: all have left */
	struct ck_call *last;    /* who left last, while there are none */
	/* of the first call */
	struct ck_bytes request;
	struct ck_h2_header *headers;
	size_t headers_n;
	uint64_t left; /* ns to its deadline when it came; UINT64_MAX: no deadline */
};
/* ck_joined_begin - for @call, the first one. It is taken over as by ck_join() */
void ck_joined_begin(struct ck_joined *joined, struct ck_call *call);
/* ck_join - @call waits for the same end. It is answered at its deadline at the latest, and freed
 * when it is answered or its client leaves */
void ck_join(struct ck_joined *joined, struct ck_call *call);
/* ck_joined_send - ask the runtime. As ck_unary_start() */
int ck_joined_send(const struct ck_joined *joined, enum ck_lane lane, uint64_t timeout,
		   ck_unary_cb *done, void *userdata, struct ck_unary_call **ret_rpc,
		   struct ck_error *err);
/* all that still wait hear this */
void ck_joined_answer(struct ck_joined *joined, const struct ck_unary_reply *answer);
void ck_joined_fail(struct ck_joined *joined, int grpc, const char *text);
/* ck_joined_fini - who still waits gets RST_STREAM */
void ck_joined_fini(struct ck_joined *joined);

/* ---- nri-call-steps.c ------------------------------------------------------------------------ */

/*
 * ck_life_begin - take the call over: true. A stop or removal always is, and joins an identical
 * one; an update is if a plugin listens to its events. It then goes through its steps, also when
 * its client has left, and ends by itself. false: pass it on as usual. @call: its id is known
 */
bool ck_life_begin(struct ck_call *call);
/* ck_lives_end - the daemon ends. A call that waits for NRI is freed when NRI calls back */
void ck_lives_end(struct ck_daemon *daemon);

/* ---- nri-before-create.c --------------------------------------------------------------------- */

/* plugins have answered. @request: to be sent, borrowed. @err: not NULL if it must not be sent;
 * with CK_EREFUSED the text is the plugin's */
typedef void ck_consulted_fn(struct ck_call *call, const struct ck_bytes *request,
			     const struct ck_error *err);
/*
 * ck_consult_begin - ask plugins about the container that @call is about to create. Sets
 * call->create.consult until they have answered; the call may be detached meanwhile. Return: 0:
 * @done is called, unless ck_consult_drop() is called first; 1: they were asked before, and
 * @ret_request is to be sent; or an error
 */
int ck_consult_begin(struct ck_call *call, struct ck_bytes *ret_request, ck_consulted_fn *done,
		     struct ck_error *err);
void ck_consult_drop(struct ck_consult *consult); /* when its call is freed; NULL is fine */
/* ck_consults_end - nobody is asked any more, and nothing is created: NRI calls back when its
 * plugins go, and the runtime's connection has gone by then */
void ck_consults_end(struct ck_daemon *daemon);
/* ck_consulted_drop - the creation has ended, so this request is not sent again */
void ck_consulted_drop(struct ck_daemon *daemon, uint64_t number);
void ck_consulted_forget(struct ck_daemon *daemon); /* at the end */
/* ck_consulted_last - what plugins are to be told of a container of an earlier life that cannot be
 * described: its id as they know it, if they were asked about it; its sandbox, its name. false: it
 * has no id of its own, or there is no memory */
bool ck_consulted_last(struct ck_daemon *daemon, const char *id, struct ck_bytes *ret_container);

/* ---- call-start.c ---------------------------------------------------------------------------- */

/* ck_start_request - its id is known, and visible */
void ck_start_request(struct ck_call *call);
/* ck_starts_stop - this object is about to be stopped or removed, which ends starts (K34) */
void ck_starts_stop(struct ck_daemon *daemon, enum ck_kind kind, const char *id);
/* ck_starts_end - the daemon ends */
void ck_starts_end(struct ck_daemon *daemon);

/* ---- call-create.c --------------------------------------------------------------------------- */

/* May it have been done in spite of this status? Then the outcome is unknown (K8). */
bool ck_reply_leaves_open(const struct ck_unary_reply *reply);
/* the client has read all answers sent so far */
void ck_create_all_read(struct ck_peer *client);
/* the connection of the client has ended, and it had not read everything if @unread; one of its
 * streams was reset after the answer was sent (K7) */
void ck_create_conn_gone(struct ck_peer *client, bool unread);
void ck_create_late_reset(struct ck_peer *client, int32_t stream_id);
#endif
