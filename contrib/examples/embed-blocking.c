/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a runtime with a thread for each call embeds libcrikeep: ck_cache_run_thread() runs the event
 * loop of the cache, ck_turn_wait() waits. All that concerns libcrikeep is in this file and in
 * common.c; toy.c is the runtime itself, wire.h its protocol. What to adopt:
 *
 *	create()   every create passes through a turn
 *	watch()    a caller that goes away is reported
 *	host       what the cache asks: destroy, inspect, list
 *	removal()  waits for what is on its way in a sandbox
 *	common.c   lists are filtered, calls that name a hidden id are refused
 */
#define _GNU_SOURCE 1

#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>

#include "toy.h"

#define CALLS_MAX 1024 /* descriptors */
#define NS_PER_MS UINT64_C(1000000)

static struct ck_cache *cache;
static int watch_fd; /* epoll: the listening socket, SIGTERM, and callers that wait */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t idle = PTHREAD_COND_INITIALIZER;
/* by the caller's descriptor; guarded by @lock, like @threads */
static struct ck_turn *turn_of[CALLS_MAX];
static unsigned threads;

static void thread_begin(void *(*fn)(void *), void *userdata)
{
	pthread_t thread;
	pthread_mutex_lock(&lock);
	threads++;
	pthread_mutex_unlock(&lock);
	if (pthread_create(&thread, NULL, fn, userdata) != 0)
		abort(); /* a real runtime refuses the call instead */
	pthread_detach(thread);
}

static void *thread_end(void)
{
	pthread_mutex_lock(&lock);
	if (--threads == 0)
		pthread_cond_signal(&idle);
	pthread_mutex_unlock(&lock);
	return NULL;
}

/* ---- what the cache asks. These must not block: slow work gets a thread, and ck_job_done() comes
 * from there. */

struct removal {
	struct ck_job *job;
	char id[TOY_ID];
};

static void *destroy_in_thread(void *userdata)
{
	struct removal *removal = userdata;
	char text[256];
	bool done = toy_result(toy_destroy(removal->id), text, sizeof(text)) == TOY_DONE;
	/* anything but OK and NOT_FOUND means: it may still be there, and will be tried again
	 * (K17) */
	common_done(removal->job, done ? 0 : 14);
	free(removal);
	return thread_end();
}

static void host_destroy(struct ck_job *job, enum ck_kind kind, const char *id, void *userdata)
{
	struct removal *removal = malloc(sizeof(*removal));
	(void)kind;
	(void)userdata;
	if (!removal) {
		common_done(job, 8);
		return;
	}
	removal->job = job;
	snprintf(removal->id, sizeof(removal->id), "%s", id);
	thread_begin(destroy_in_thread, removal);
}

static const struct ck_host host = {
	.size = sizeof(host),
	.destroy = host_destroy,
	.inspect = common_inspect,
	.list = common_list,
	.log = toy_log,
};

/* ---- callers that go away -------------------------------------------------------------------- */

static void watch(int fd, struct ck_turn *turn)
{
	struct epoll_event event = { .events = EPOLLRDHUP | EPOLLONESHOT, .data.fd = fd };
	pthread_mutex_lock(&lock);
	turn_of[fd] = turn;
	pthread_mutex_unlock(&lock);
	epoll_ctl(watch_fd, turn ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, fd, &event);
}

static void caller_gone(int fd)
{
	pthread_mutex_lock(&lock);
	/* the event may be of an earlier connection of this number: ask the connection */
	if (turn_of[fd] && common_hung_up(fd))
		ck_turn_leave(turn_of[fd]);
	pthread_mutex_unlock(&lock);
}

/* Return: did the caller read it to its end? */
static bool answer(int fd, const char *text)
{
	char c;
	return wire_send(fd, text, strlen(text)) == 0 && shutdown(fd, SHUT_WR) == 0 &&
	       recv(fd, &c, 1, 0) == 0;
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* CK_CREATE: make it, and tell how it ended. Return: what ck_turn_finish() says. */
static int make(struct ck_turn *turn, const struct wire_request *request, struct ck_error *err)
{
	char id[TOY_ID], text[512];
	ck_turn_stage(turn, "container process");
	enum toy_end end = toy_result(toy_create(request, id), text, sizeof(text));
	struct ck_result result = { .size = sizeof(result), .id = id };
	struct ck_status why = { .size = sizeof(why), .grpc = 2, .message = text };
	int r;
	switch (end) {
	case TOY_DONE:
		return ck_turn_finish(turn, &result, err);
	/* whoever waits hears the same status; see answer_turn() for this caller */
	case TOY_FAILED:
		r = ck_turn_fail(turn, &why, err);
		/* CK_WAIT: the first of two requests may still succeed (K8) */
		return r ? r : -CK_EFAILED;
	/* nobody knows how it ended: not a failure, the cache will find out from the lists */
	default:
		r = ck_turn_lost(turn, err);
		return r < 0 ? r : CK_WAIT;
	}
}

static void answer_turn(int fd, struct ck_turn *turn, int outcome, const struct ck_error *err)
{
	char text[1024];
	struct ck_reply reply = { .size = sizeof(reply) };
	struct ck_status status = { .size = sizeof(status) };
	if (outcome == CK_KEPT)
		return; /* the caller is gone, or out of time: its repetition gets the answer */
	if (outcome == CK_HAND_BACK && ck_turn_reply(turn, &reply) == 0) {
		/* a CRI server sends reply.bytes as they are */
		snprintf(text, sizeof(text), "ok %s\n", reply.id);
		ck_turn_answered(turn, answer(fd, text) ? CK_DELIVERED : CK_LOST);
		return;
	}
	if (outcome == -CK_EFAILED && ck_turn_status(turn, &status) == 0)
		snprintf(text, sizeof(text), "error %d %s\n", status.grpc, status.message);
	else
		snprintf(text, sizeof(text), "error %d %s\n", ck_error_grpc(err), err->text);
	answer(fd, text);
}

static void create(int fd, const struct wire_request *request)
{
	struct ck_turn *turn = NULL;
	struct ck_error err = { 0 };
	struct ck_request cri = {
		.size = sizeof(cri),
		.kind = strcmp(request->what, "sandbox") ? CK_CONTAINER : CK_SANDBOX,
		.bytes = request->body,
		.len = request->len,
		.timeout = request->timeout_ms * NS_PER_MS,
		/* then it must not move the kubelet's newer requests away (K9) */
		.expired = common_hung_up(fd),
	};
	int r = ck_turn_begin(cache, &cri, &turn, &err);
	if (turn)
		watch(fd, turn);
	while (r == CK_WAIT || r == CK_CREATE)
		r = r == CK_WAIT ? ck_turn_wait(turn, &err) : make(turn, request, &err);
	if (turn)
		watch(fd, NULL);
	answer_turn(fd, turn, r, r == CK_BUSY ? ck_turn_error(turn) : &err);
	ck_turn_free(turn);
}

static void removal(int fd, const struct wire_request *request)
{
	const char *id = request->what;
	char text[512];
	struct ck_turn *turn = NULL;
	struct ck_error err = { 0 };
	if (!common_may_see(cache, id)) {
		answer(fd, "error 5 no such id\n");
		return;
	}
	int r = ck_remove_begin(cache, toy_kind(id), id, request->timeout_ms * NS_PER_MS, &turn,
				&err);
	if (r == CK_WAIT) /* creates in flight in this sandbox end first (K16) */
		r = ck_turn_wait(turn, &err);
	if (r == CK_DRAINED && toy_result(toy_destroy(id), text, sizeof(text)) == TOY_DONE) {
		ck_object_removed(cache, toy_kind(id), id);
		answer(fd, "ok\n");
	} else {
		answer(fd, "error 14 not yet\n");
	}
	ck_turn_free(turn);
}

static void *serve(void *userdata)
{
	int fd = *(int *)userdata;
	struct wire_request request;
	char *buf = wire_receive(fd, &request);
	free(userdata);
	if (buf && !strcmp(request.verb, "CREATE")) {
		create(fd, &request);
	} else if (buf && !strcmp(request.verb, "REMOVE")) {
		removal(fd, &request);
	} else if (buf) {
		char *text = common_answer(cache, &request);
		answer(fd, text ? text : "error 8 out of memory\n");
		free(text);
	}
	free(buf);
	close(fd);
	return thread_end();
}

static void accept_one(int listener)
{
	int *fd = malloc(sizeof(*fd));
	if (!fd || (*fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) < 0 || *fd >= CALLS_MAX) {
		if (fd && *fd >= 0)
			close(*fd);
		free(fd);
		return;
	}
	thread_begin(serve, fd);
}

int main(int argc, char **argv)
{
	struct ck_options options;
	struct ck_error err;
	sigset_t term;
	toy_options(argc, argv, &options);
	options.host = &host;
	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &term, NULL); /* before there are threads */
	if (ck_cache_open(&options, &cache, &err) < 0 || ck_cache_run_thread(cache, &err) < 0) {
		fprintf(stderr, "%s: %s\n", argv[0], err.text);
		return 1;
	}
	int stop = signalfd(-1, &term, SFD_CLOEXEC), listener = toy_listen();
	watch_fd = epoll_create1(EPOLL_CLOEXEC);
	epoll_ctl(watch_fd, EPOLL_CTL_ADD, stop,
		  &(struct epoll_event){ .events = EPOLLIN, .data.fd = stop });
	epoll_ctl(watch_fd, EPOLL_CTL_ADD, listener,
		  &(struct epoll_event){ .events = EPOLLIN, .data.fd = listener });
	for (;;) {
		struct epoll_event event;
		if (epoll_wait(watch_fd, &event, 1, -1) < 1)
			continue;
		if (event.data.fd == stop)
			break;
		if (event.data.fd == listener)
			accept_one(listener);
		else
			caller_gone(event.data.fd);
	}
	close(listener);
	pthread_mutex_lock(&lock);
	/* they end at their deadlines at the latest, and creations with their shims */
	while (threads)
		pthread_cond_wait(&idle, &lock);
	pthread_mutex_unlock(&lock);
	ck_cache_close(cache, NULL);
	return 0;
}
