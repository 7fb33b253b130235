/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The event loop: does what is due, in one thread at a time. One descriptor says when: an epoll set
 * of an eventfd (a round left work), a timerfd on CLOCK_BOOTTIME (the machine's next timer) and an
 * inotify for requests of an administrator.
 */
#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "cache/caller.h"
#include "src/base/limits.h"

/* of one ck_cache_process(), and callbacks of each: work may make work, and must not keep a host's
 * loop for ever */
#define CK_PASSES 64

static int epoll_add(int epoll_fd, int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };
	return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

int ck_event_loop_open(struct ck_cache *cache, const char *state_dir, struct ck_error *err)
{
	cache->epoll_fd = ck_fd_own(epoll_create1(EPOLL_CLOEXEC));
	cache->event_fd = ck_fd_own(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	cache->timer_fd = ck_fd_own(timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK));
	if (cache->epoll_fd < 0 || cache->event_fd < 0 || cache->timer_fd < 0 ||
	    epoll_add(cache->epoll_fd, cache->event_fd) < 0 ||
	    epoll_add(cache->epoll_fd, cache->timer_fd) < 0)
		return ck_fail_errno(err, CK_EIO, errno, "make the loop's descriptors");
	int r = ck_admin_requests_open(state_dir, &cache->admin_requests, err);
	if (r >= 0 && ck_admin_requests_fd(cache->admin_requests) >= 0 &&
	    epoll_add(cache->epoll_fd, ck_admin_requests_fd(cache->admin_requests)) < 0)
		return ck_fail_errno(err, CK_EIO, errno, "watch the admin requests");
	return r;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void ck_event_loop_close(struct ck_cache *cache)
{
	pthread_mutex_lock(&cache->lock);
	cache->stop = true;
	cache->pending = true;
	ck_cache_wake(cache);
	bool threaded = cache->threaded;
	cache->threaded = false; /* whoever comes first joins it */
	pthread_mutex_unlock(&cache->lock);
	if (threaded)
		pthread_join(cache->thread, NULL);
	pthread_mutex_lock(&cache->lock);
	while (cache->processing) /* a ck_cache_process() in another thread */
		pthread_cond_wait(&cache->changed, &cache->lock);
	cache->signalled = true; /* from now on nobody is woken */
	ck_admin_requests_close(cache->admin_requests);
	cache->admin_requests = NULL;
	close_fd(&cache->epoll_fd);
	close_fd(&cache->event_fd);
	close_fd(&cache->timer_fd);
	pthread_mutex_unlock(&cache->lock);
}

/* ---- one pass -------------------------------------------------------------------------------- */

/* Also those that waited for an owner. Each is answered when what it began is on disk (K29). Their
 * number is bounded, because others make them. */
static int serve_admin_requests(struct ck_cache *cache)
{
	struct ck_admin_request request;
	int n = 0;
	for (; n < (int)CK_ADMIN_REQUESTS_MAX &&
	       ck_admin_requests_take(cache->admin_requests, &request) > 0;
	     n++) {
		struct ck_admin_answer answer = { 0 };
		if (ck_round_enter(cache, NULL) < 0)
			break; /* closing: it waits for the next owner */
		answer.done = ck_machine_evict(cache->machine, request.entry,
					       request.verb == CK_ADMIN_RELEASE, answer.text,
					       sizeof(answer.text)) >= 0;
		ck_round_leave(cache);
		ck_admin_requests_answer(cache->admin_requests, &request, &answer);
	}
	return n;
}

static void run_timers(struct ck_cache *cache)
{
	if (ck_round_enter(cache, NULL) < 0)
		return;
	uint64_t now = ck_cache_now(cache), due = ck_machine_due(cache->machine);
	pthread_mutex_lock(&cache->lock);
	/* After the loop stood still, callers that came meanwhile are served first (K15). Timers
	 * wait for the next ck_cache_process(). */
	bool gap = cache->gap = !cache->gap && due != CK_NEVER_DUE && due + CK_GAP < now;
	pthread_mutex_unlock(&cache->lock);
	if (!gap)
		ck_machine_expire(cache->machine);
	ck_round_leave(cache);
}

static int run_jobs(struct ck_cache *cache)
{
	if (ck_round_enter(cache, NULL) < 0)
		return 0;
	/* what this round wants must be on disk before it is asked for (K29) */
	ck_round_write(cache);
	struct ck_job *jobs = ck_jobs_collect(cache);
	ck_round_leave(cache);
	ck_jobs_start(cache, jobs);
	return jobs ? 1 : 0;
}

static int run_callbacks(struct ck_cache *cache)
{
	int n = 0;
	struct ck_turn *turn;
	pthread_mutex_lock(&cache->lock);
	for (; n < CK_PASSES && (turn = cache->callbacks); n++) {
		int outcome = ck_turn_fetch(turn);
		ck_turn_cb *cb = turn->cb;
		void *userdata = turn->userdata;
		cache->in_callback = turn;
		pthread_mutex_unlock(&cache->lock);
		cb(turn, outcome, userdata); /* may free the turn */
		pthread_mutex_lock(&cache->lock);
		cache->in_callback = NULL;
		pthread_cond_broadcast(&cache->changed);
	}
	cache->pending = cache->pending || cache->callbacks;
	pthread_mutex_unlock(&cache->lock);
	return n;
}

static void rearm(struct ck_cache *cache)
{
	if (cache->clock) { /* the host goes by ck_cache_timeout() */
		cache->armed = 0;
		return;
	}
	uint64_t due = cache->due;
	struct itimerspec at = { .it_value = { .tv_sec = (time_t)(due / CK_NS_PER_S),
					       .tv_nsec = (long)(due % CK_NS_PER_S) } };
	if (due == CK_NEVER_DUE)
		at.it_value = (struct timespec){ 0 };
	else if (due == 0)
		at.it_value.tv_nsec = 1; /* 0 would disarm it */
	if (cache->gap)
		at.it_value = (struct timespec){ .tv_nsec = 1 };
	if (cache->armed != due || cache->gap)
		timerfd_settime(cache->timer_fd, TFD_TIMER_ABSTIME, &at, NULL);
	cache->armed = due;
}

static void checkpoint(struct ck_cache *cache)
{
	if (ck_round_enter(cache, NULL) < 0)
		return;
	ck_store_idle(cache->store);
	ck_round_leave(cache);
}

int ck_event_loop_process(struct ck_cache *cache)
{
	uint64_t count;
	int done = 0;
	pthread_mutex_lock(&cache->lock);
	if (cache->processing || ck_cache_in_round(cache) ||
	    (cache->threaded && !pthread_equal(cache->thread, pthread_self()))) {
		pthread_mutex_unlock(&cache->lock);
		return -CK_EDEADLK;
	}
	if (cache->stop) { /* ck_cache_close() is running, and the descriptors may be closed */
		pthread_mutex_unlock(&cache->lock);
		return 0;
	}
	cache->processing = cache->has_loop = true;
	cache->process_thread = pthread_self();
	cache->signalled = false;
	eventfd_read(cache->event_fd, &count);
	while (read(cache->timer_fd, &count, sizeof(count)) > 0)
		;
	pthread_mutex_unlock(&cache->lock);

	done += serve_admin_requests(cache);
	for (int pass = 0; pass < CK_PASSES; pass++) {
		uint64_t now = ck_cache_now(cache);
		pthread_mutex_lock(&cache->lock);
		cache->pending = false;
		bool due = cache->due <= now;
		pthread_mutex_unlock(&cache->lock);
		if (pass == 0 || (due && !cache->gap)) {
			run_timers(cache);
			done += due;
		}
		int n = run_jobs(cache) + run_callbacks(cache);
		ck_cache_log_write(cache);
		done += n;
		now = ck_cache_now(cache);
		pthread_mutex_lock(&cache->lock);
		bool more = cache->pending || (cache->due <= now && !cache->gap);
		pthread_mutex_unlock(&cache->lock);
		if (!n && !more)
			break;
	}
	if (done)
		checkpoint(cache);
	pthread_mutex_lock(&cache->lock);
	rearm(cache);
	cache->processing = false;
	cache->signalled = false;
	ck_cache_wake(cache); /* for what came after the last pass */
	if (cache->stop)
		pthread_cond_broadcast(&cache->changed);
	pthread_mutex_unlock(&cache->lock);
	return done;
}

uint64_t ck_event_loop_timeout(struct ck_cache *cache)
{
	pthread_mutex_lock(&cache->lock);
	uint64_t due = cache->pending || cache->gap ? 0 : cache->due;
	pthread_mutex_unlock(&cache->lock);
	return due;
}

/* ---- a thread of our own --------------------------------------------------------------------- */

static void *loop_main(void *userdata)
{
	struct ck_cache *cache = userdata;
	for (;;) {
		pthread_mutex_lock(&cache->lock);
		bool stop = cache->stop;
		pthread_mutex_unlock(&cache->lock);
		if (stop)
			return NULL;
		ck_event_loop_process(cache);
		struct pollfd fd = { .fd = cache->epoll_fd, .events = POLLIN };
		/* nobody can wait for a clock of the host's */
		poll(&fd, 1, cache->clock ? 10 : -1);
	}
}

int ck_event_loop_thread(struct ck_cache *cache, struct ck_error *err)
{
	pthread_mutex_lock(&cache->lock);
	if (cache->threaded || cache->processing || ck_cache_in_round(cache)) {
		pthread_mutex_unlock(&cache->lock);
		return ck_fail(err, CK_EDEADLK, "the event loop is already running");
	}
	int r = ck_thread_start(&cache->thread, loop_main, cache);
	if (r == 0)
		cache->threaded = cache->has_loop = true;
	pthread_mutex_unlock(&cache->lock);
	return r ? ck_fail_errno(err, CK_ENOMEM, r, "start a thread") : 0;
}
