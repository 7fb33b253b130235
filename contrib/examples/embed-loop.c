/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a runtime with one thread and an event loop embeds libcrikeep: ck_cache_fd() is one more
 * descriptor of the loop, ck_cache_process() is called when it is readable, ck_turn_watch() calls
 * back. No lock, no thread. Compare embed-blocking.c, which does the same with a thread for each
 * call, and says what to adopt.
 */
#define _GNU_SOURCE 1

#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>

#include "toy.h"

#define NS_PER_MS UINT64_C(1000000)

/* what the loop waits for, and what it calls then */
struct source {
	void (*ready)(struct source *source);
	int fd; /* -1: none */
};

struct call { /* one connection */
	struct source client, shim; /* its first member: a source of a call is the call */
	struct wire_request request;
	struct ck_turn *turn;
	char *buf;
	size_t len;
	char id[TOY_ID]; /* of what the shim makes or destroys */
	bool begun, handed, answered, gone;
};

struct removal { /* the cache wants something destroyed */
	struct source shim;
	struct ck_job *job;
};

static struct ck_cache *cache;
static int loop_fd;
static unsigned pending; /* calls and removals */
static bool stopping;

static void source_add(struct source *source, int fd, void (*ready)(struct source *))
{
	*source = (struct source){ ready, fd };
	static struct epoll_event event; /* static: what it points to is kept, as analyzers see */
	event = (struct epoll_event){ .events = EPOLLIN | EPOLLRDHUP, .data.ptr = source };
	if (epoll_ctl(loop_fd, EPOLL_CTL_ADD, fd, &event) < 0)
		abort(); /* a real runtime refuses the call instead */
}

static int source_take(struct source *source)
{
	int fd = source->fd;
	epoll_ctl(loop_fd, EPOLL_CTL_DEL, fd, NULL);
	source->fd = -1;
	return fd;
}

/* ---- what the cache asks in ck_cache_process(); ck_job_done() may come at once or later ------ */

static void destroyed(struct source *source)
{
	struct removal *removal = (struct removal *)source;
	char text[256];
	bool done = toy_result(source_take(source), text, sizeof(text)) == TOY_DONE;
	/* anything but OK and NOT_FOUND means: it may still be there, and will be tried again
	 * (K17) */
	common_done(removal->job, done ? 0 : 14);
	free(removal);
	pending--;
}

static void host_destroy(struct ck_job *job, enum ck_kind kind, const char *id, void *userdata)
{
	struct removal *removal = malloc(sizeof(*removal));
	int fd = removal ? toy_destroy(id) : -1;
	(void)kind;
	(void)userdata;
	if (fd < 0) {
		free(removal);
		common_done(job, 8);
		return;
	}
	pending++;
	removal->job = job;
	source_add(&removal->shim, fd, destroyed);
}

static const struct ck_host host = {
	.size = sizeof(host),
	.destroy = host_destroy,
	.inspect = common_inspect,
	.list = common_list,
	.log = toy_log,
};

/* ---- calls ----------------------------------------------------------------------------------- */

static void call_free_if_over(struct call *call)
{
	if (!call->gone || call->shim.fd >= 0) /* what is being made is made to its end */
		return;
	ck_turn_free(call->turn);
	free(call->buf);
	free(call);
	pending--;
}

static void answer(struct call *call, const char *text)
{
	call->answered = true; /* the text fits into the socket's buffer */
	wire_send(call->client.fd, text, strlen(text));
	shutdown(call->client.fd, SHUT_WR);
}

static void decided(struct ck_turn *turn, int outcome, void *userdata);

static void made(struct source *source)
{
	struct call *call = (struct call *)(void *)((char *)source - offsetof(struct call, shim));
	char text[512];
	struct ck_result result = { .size = sizeof(result), .id = call->id };
	struct ck_status why = { .size = sizeof(why), .grpc = 2, .message = text };
	int r;
	switch (toy_result(source_take(source), text, sizeof(text))) {
	case TOY_DONE:
		r = ck_turn_finish(call->turn, &result, NULL);
		break;
	case TOY_FAILED: /* whoever waits hears the same status; see decided() for this caller */
		r = ck_turn_fail(call->turn, &why, NULL);
		/* CK_WAIT: the first of two requests may still succeed (K8) */
		r = r ? r : -CK_EFAILED;
		break;
	/* nobody knows how it ended: not a failure, the cache will find out from the lists */
	default:
		r = ck_turn_lost(call->turn, NULL);
		r = r < 0 ? r : CK_WAIT;
		break;
	}
	decided(call->turn, r, call);
	call_free_if_over(call);
}

/* what became of a create: ck_turn_begin() or ck_turn_finish() said so, or it is the callback of
 * ck_turn_watch() */
static void decided(struct ck_turn *turn, int outcome, void *userdata)
{
	struct call *call = userdata;
	const struct ck_status busy = { .size = sizeof(busy),
					.grpc = 8,
					.message = "no process could be started" };
	char text[1024] = "";
	struct ck_reply reply = { .size = sizeof(reply) };
	struct ck_status status = { .size = sizeof(status) };
	if (outcome == CK_CREATE) {
		ck_turn_stage(turn, "container process");
		int fd = toy_create(&call->request, call->id);
		if (fd >= 0)
			source_add(&call->shim, fd, made);
		else if (ck_turn_fail(turn, &busy, NULL) == 0)
			snprintf(text, sizeof(text), "error %d %s\n", busy.grpc, busy.message);
	} else if (outcome == CK_HAND_BACK && ck_turn_reply(turn, &reply) == 0) {
		/* a CRI server sends reply.bytes as they are */
		snprintf(text, sizeof(text), "ok %s\n", reply.id);
		call->handed = true;
	} else if (outcome == -CK_EFAILED && ck_turn_status(turn, &status) == 0) {
		snprintf(text, sizeof(text), "error %d %s\n", status.grpc, status.message);
	} else if (outcome < 0 || outcome == CK_BUSY) {
		const struct ck_error *err = ck_turn_error(turn);
		if (err && err->code)
			snprintf(text, sizeof(text), "error %d %s\n", ck_error_grpc(err),
				 err->text);
		else /* a ck_turn_finish() that was refused decided nothing: INTERNAL */
			snprintf(text, sizeof(text), "error 13 %s\n", ck_strerror(-outcome));
	}
	/* CK_WAIT: called back. CK_KEPT: the caller is gone or out of time; its repetition gets
	 * the answer. */
	if (*text && !call->gone && !call->answered)
		answer(call, text);
}

static void create(struct call *call)
{
	struct ck_error err = { 0 };
	char text[1024];
	struct ck_request cri = {
		.size = sizeof(cri),
		.kind = strcmp(call->request.what, "sandbox") ? CK_CONTAINER : CK_SANDBOX,
		.bytes = call->request.body,
		.len = call->request.len,
		.timeout = call->request.timeout_ms * NS_PER_MS,
		/* then it must not move the kubelet's newer requests away (K9) */
		.expired = common_hung_up(call->client.fd),
	};
	int r = ck_turn_begin(cache, &cri, &call->turn, &err);
	if (r >= 0) {
		/* also of a creator, which hears so that it was superseded */
		ck_turn_watch(call->turn, decided, call);
		decided(call->turn, r, call);
		return;
	}
	/* there is no turn */
	snprintf(text, sizeof(text), "error %d %s\n", ck_error_grpc(&err), err.text);
	answer(call, text);
}

static void removed(struct source *source)
{
	struct call *call = (struct call *)(void *)((char *)source - offsetof(struct call, shim));
	char text[256];
	bool done = toy_result(source_take(source), text, sizeof(text)) == TOY_DONE;
	if (done)
		ck_object_removed(cache, toy_kind(call->request.what), call->request.what);
	if (!call->gone)
		answer(call, done ? "ok\n" : "error 14 not removed\n");
	call_free_if_over(call);
}

/* creates in flight in this sandbox have ended (K16), or there were none */
static void drained(struct ck_turn *turn, int outcome, void *userdata)
{
	struct call *call = userdata;
	int fd = -1;
	if (outcome == CK_WAIT) {
		ck_turn_watch(turn, drained, call);
		return;
	}
	if (outcome == CK_DRAINED)
		fd = toy_destroy(call->request.what);
	if (fd >= 0)
		source_add(&call->shim, fd, removed);
	else
		answer(call, "error 14 not yet\n");
}

static void removal(struct call *call)
{
	const char *id = call->request.what;
	if (!common_may_see(cache, id)) {
		answer(call, "error 5 no such id\n");
		return;
	}
	int r = ck_remove_begin(cache, toy_kind(id), id, call->request.timeout_ms * NS_PER_MS,
				&call->turn, NULL);
	drained(call->turn, r, call);
}

static void client_ready(struct source *source)
{
	struct call *call = (struct call *)source;
	char c = 0, *to = call->begun ? &c : call->buf + call->len;
	ssize_t n = recv(source->fd, to,
			 call->begun ? 1 : WIRE_HEAD_MAX + WIRE_BODY_MAX - call->len, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) { /* the caller has what it wants, or is gone */
		if (call->handed) /* 0: it has read the answer; a reset: it has not (K7) */
			ck_turn_answered(call->turn, n == 0 ? CK_DELIVERED : CK_LOST);
		else if (call->turn)
			ck_turn_leave(call->turn);
		close(source_take(source));
		call->gone = true;
		call_free_if_over(call);
		return;
	}
	if (call->begun)
		return;
	call->len += (size_t)n;
	if (wire_parse(call->buf, call->len, &call->request) <= 0)
		return;
	call->begun = true;
	if (!strcmp(call->request.verb, "CREATE")) {
		create(call);
	} else if (!strcmp(call->request.verb, "REMOVE")) {
		removal(call);
	} else {
		char *text = common_answer(cache, &call->request);
		answer(call, text ? text : "error 8 out of memory\n");
		free(text);
	}
}

static void accept_one(struct source *source)
{
	int fd = accept4(source->fd, NULL, NULL, SOCK_CLOEXEC);
	struct call *call = fd < 0 ? NULL : calloc(1, sizeof(*call));
	/* touched as far as it is filled */
	char *buf = call ? malloc(WIRE_HEAD_MAX + WIRE_BODY_MAX) : NULL;
	if (!buf) {
		free(call);
		if (fd >= 0)
			close(fd);
		return;
	}
	call->buf = buf;
	call->shim.fd = -1;
	pending++;
	source_add(&call->client, fd, client_ready);
}

/* ---- the loop -------------------------------------------------------------------------------- */

static void cache_ready(struct source *source)
{
	(void)source;
	ck_cache_process(cache, NULL);
}

static void stop_ready(struct source *source)
{
	source_take(source);
	stopping = true;
}

int main(int argc, char **argv)
{
	struct ck_options options;
	struct ck_error err;
	struct source listener, cache_source, stop;
	sigset_t term;
	toy_options(argc, argv, &options);
	options.host = &host;
	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	sigprocmask(SIG_BLOCK, &term, NULL);
	loop_fd = epoll_create1(EPOLL_CLOEXEC);
	if (ck_cache_open(&options, &cache, &err) < 0) {
		fprintf(stderr, "%s: %s\n", argv[0], err.text);
		return 1;
	}
	source_add(&cache_source, ck_cache_fd(cache), cache_ready);
	source_add(&stop, signalfd(-1, &term, SFD_CLOEXEC), stop_ready);
	source_add(&listener, toy_listen(), accept_one);
	/* they end at their deadlines at the latest, and creations with their shims */
	while (!stopping || pending) {
		struct epoll_event event;
		if (stopping && listener.fd >= 0)
			close(source_take(&listener));
		/* one at a time: what is called may free another source */
		if (epoll_wait(loop_fd, &event, 1, -1) == 1)
			((struct source *)event.data.ptr)->ready(event.data.ptr);
	}
	ck_cache_close(cache, NULL);
	return 0;
}
