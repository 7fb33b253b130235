/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sockets on the event loop. A connection may end, or be freed, inside its own callbacks. It is
 * then destroyed at the end of the loop's turn, when no callback is running.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <linux/sockios.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <utlist.h>

#include "src/base/bytes.h"
#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/rpc/connection.h"

/* more than a socket holds; a peer that writes on and reads nothing is not read for ever */
#define REST_READS 16u

/* for the one loop in its one thread; used up before anything else is read */
static unsigned char received[CK_SOCKET_READ];

struct ck_loop_timer {
	sd_event_source *source;
	ck_timer_cb *fn;
	void *userdata;
};

struct ck_connection {
	struct ck_loop *loop;
	int fd;
	bool watched; /* in loop->sockets */
	struct ck_h2 *h2;
	enum ck_h2_role role;
	const struct ck_connection_owner *owner;
	void *userdata;
	struct ck_bytes rest; /* fetched from h2 and not written yet */
	size_t written;       /* bytes of it that are written */
	struct ck_connection *dirty_next;
	bool dirty;
	uint32_t wanted; /* of EPOLL... */
	bool ended;  /* nothing is read or written any more; closed() follows */
	bool unread; /* the peer did not read all that we wrote */
	bool freed;  /* by its owner */
	bool watches_read;
	char why[128];
};

/* ---- the loop -------------------------------------------------------------------------------- */

uint64_t ck_loop_now(void)
{
	return ck_clock_ns(CLOCK_BOOTTIME);
}

static void conn_ready(struct ck_connection *conn, uint32_t events);

/* One that is freed by another's callback stays in memory until the end of this turn. */
static int sockets_ready(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
	struct epoll_event ready[CK_SOCKETS_AT_ONCE];
	(void)source, (void)events, (void)userdata;
	int n = epoll_wait(fd, ready, CK_COUNT(ready), 0);
	for (int i = 0; i < n; i++)
		conn_ready(ready[i].data.ptr, ready[i].events);
	return 0;
}

int ck_loop_init(struct ck_loop *loop, struct ck_error *err)
{
	int r = sd_event_new(&loop->event);
	if (r < 0)
		return ck_fail_errno(err, CK_EIO, -r, "make the event loop");
	loop->sockets = epoll_create1(EPOLL_CLOEXEC);
	r = loop->sockets < 0 ? -errno
			      : sd_event_add_io(loop->event, &loop->ready, loop->sockets, EPOLLIN,
						sockets_ready, loop);
	if (r < 0) {
		if (loop->sockets >= 0)
			close(loop->sockets);
		loop->event = sd_event_unref(loop->event);
		return ck_fail_errno(err, CK_EIO, -r, "make the event loop");
	}
	return 0;
}

/* 0, or an errno. Not left to close(): somebody else may hold a duplicate */
static int watch(struct ck_connection *conn, int how, uint32_t wanted)
{
	struct epoll_event event = { .events = wanted, .data.ptr = conn };
	if (how != EPOLL_CTL_ADD && !conn->watched)
		return 0;
	if (epoll_ctl(conn->loop->sockets, how, conn->fd, &event) < 0)
		return errno;
	conn->watched = how != EPOLL_CTL_DEL;
	return 0;
}

static void conn_destroy(struct ck_connection *conn)
{
	ck_h2_free(conn->h2); /* calls closed() of its streams */
	watch(conn, EPOLL_CTL_DEL, 0);
	close(conn->fd);
	ck_bytes_free(&conn->rest);
	free(conn);
}

static void mark_dirty(struct ck_connection *conn)
{
	if (conn->dirty)
		return;
	conn->dirty = true;
	LL_PREPEND2(conn->loop->dirty, conn, dirty_next);
}

static void conn_end(struct ck_connection *conn, bool unread, const char *why)
{
	if (conn->ended)
		return;
	conn->ended = true;
	conn->unread = unread;
	snprintf(conn->why, sizeof(conn->why), "%s", why);
	watch(conn, EPOLL_CTL_DEL, 0);
	mark_dirty(conn);
}

/* A client that does not read its answers is not read either: each of its calls would need more
 * memory. */
static void want(struct ck_connection *conn, bool full)
{
	bool deaf =
		full && conn->role == CK_H2_SERVER && ck_h2_frames(conn->h2) > CK_FRAMES_WAITING;
	uint32_t wanted = (deaf ? 0 : (uint32_t)EPOLLIN) | (full ? (uint32_t)EPOLLOUT : 0);
	if (conn->wanted != wanted)
		watch(conn, EPOLL_CTL_MOD, wanted);
	conn->wanted = wanted;
}

/* write_out - 1 all of it, 0 the socket is full, < 0 errno */
static ptrdiff_t write_out(struct ck_connection *conn, const unsigned char *p, size_t len,
			   size_t *written)
{
	while (*written < len) {
		ssize_t n =
			send(conn->fd, p + *written, len - *written, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? 0 : -errno;
		*written += (size_t)n;
	}
	return 1;
}

/* A server that has closed may have sent answers before, and a GOAWAY that says which calls it did
 * not begin. What a client sent before it closed is not needed. */
static void read_rest(struct ck_connection *conn)
{
	struct ck_error err;
	for (unsigned i = 0; i < REST_READS && conn->role == CK_H2_CLIENT && !conn->freed; i++) {
		ssize_t n = recv(conn->fd, received, sizeof(received), MSG_DONTWAIT);
		if (n <= 0 || ck_h2_feed(conn->h2, received, (size_t)n, &err) < 0)
			return;
	}
}

/* ck_h2_next() gathers enough bytes for a write. What the socket does not take is kept in rest,
 * because h2 does not keep it. */
static void conn_flush(struct ck_connection *conn)
{
	while (!conn->ended) {
		struct ck_error err;
		ptrdiff_t r = 1;
		if (conn->rest.len) {
			r = write_out(conn, conn->rest.p, conn->rest.len, &conn->written);
			if (r > 0)
				conn->rest.len = conn->written = 0;
		}
		const unsigned char *p = NULL;
		size_t written = 0;
		ptrdiff_t n = r > 0 ? ck_h2_next(conn->h2, &p, &err) : 0;
		if (n < 0) {
			conn_end(conn, true, err.text);
			return;
		}
		if (n > 0)
			r = write_out(conn, p, (size_t)n, &written);
		if (r < 0) {
			read_rest(conn);
			conn_end(conn, true, strerror((int)-r));
			return;
		}
		if (written < (size_t)n &&
		    ck_bytes_add(&conn->rest, p + written, (size_t)n - written) < 0) {
			conn_end(conn, true, "out of memory");
			return;
		}
		want(conn, r == 0);
		if (r == 0)
			return;
		if (n == 0) { /* nothing left */
			/* else the end of the socket says whether the last answer was read */
			if (ck_h2_over(conn->h2) && !conn->watches_read)
				conn_end(conn, false, "closed");
			return;
		}
	}
}

void ck_loop_flush(struct ck_loop *loop)
{
	while (loop->dirty) {
		struct ck_connection *conn = loop->dirty;
		LL_DELETE2(loop->dirty, conn, dirty_next);
		conn->dirty = false;
		if (!conn->freed && !conn->ended)
			conn_flush(conn);
		if (conn->dirty)
			continue; /* it ended or was freed just now, and is in the list again */
		if (conn->freed) {
			conn->dirty = true; /* so that it is not put into the list again */
			conn_destroy(conn);
		} else if (conn->ended && conn->h2) {
			/* the service manager may hold a duplicate, and the runtime must see it */
			if (conn->role == CK_H2_CLIENT)
				shutdown(conn->fd, SHUT_RDWR);
			ck_h2_free(CK_TAKE(conn->h2));
			if (!conn->freed && conn->owner->closed)
				conn->owner->closed(conn, conn->unread, conn->why, conn->userdata);
		}
	}
}

int ck_loop_run(struct ck_loop *loop)
{
	int code;
	while (sd_event_get_state(loop->event) != SD_EVENT_FINISHED) {
		ck_loop_flush(loop);
		if (sd_event_run(loop->event, UINT64_MAX) < 0)
			return -CK_EIO;
	}
	ck_loop_flush(loop);
	return sd_event_get_exit_code(loop->event, &code) < 0 ? -CK_EIO : code;
}

void ck_loop_fini(struct ck_loop *loop)
{
	ck_loop_flush(loop); /* destroys what was freed after the last turn */
	loop->ready = sd_event_source_disable_unref(loop->ready);
	close(loop->sockets);
	loop->event = sd_event_unref(loop->event);
}

static int timer_due(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct ck_loop_timer *timer = userdata;
	(void)source;
	(void)usec;
	timer->fn(timer->userdata);
	return 0;
}

int ck_loop_timer_new(struct ck_loop *loop, struct ck_loop_timer **ret_timer)
{
	struct ck_loop_timer *timer = CK_NEW(struct ck_loop_timer);
	if (!timer)
		return -CK_ENOMEM;
	/* deadlines are kept to 1 ms (K28); the default accuracy is 250 ms */
	if (sd_event_add_time(loop->event, &timer->source, CLOCK_BOOTTIME, UINT64_MAX, 1000,
			      timer_due, timer) < 0) {
		free(timer);
		return -CK_ENOMEM;
	}
	*ret_timer = timer;
	return 0;
}

int ck_loop_timer(struct ck_loop *loop, struct ck_loop_timer **timer, uint64_t at, ck_timer_cb *fn,
		  void *userdata)
{
	uint64_t usec = at == UINT64_MAX ? at : at / 1000 + (at % 1000 != 0);
	if (!*timer && at == UINT64_MAX)
		return 0;
	if (!*timer && ck_loop_timer_new(loop, timer) < 0)
		return -CK_ENOMEM;
	(*timer)->fn = fn;
	(*timer)->userdata = userdata;
	sd_event_source_set_time((*timer)->source, usec);
	sd_event_source_set_enabled((*timer)->source,
				    at == UINT64_MAX ? SD_EVENT_OFF : SD_EVENT_ONESHOT);
	return 0;
}

void ck_loop_timer_free(struct ck_loop_timer *timer)
{
	if (!timer)
		return;
	sd_event_source_disable_unref(timer->source);
	free(timer);
}

/* ---- a connection ---------------------------------------------------------------------------- */

static void h2_opened(struct ck_h2_stream *stream, void *userdata)
{
	struct ck_connection *conn = userdata;
	if (!conn->freed && conn->owner->opened)
		conn->owner->opened(conn, stream, conn->userdata);
}

static void h2_pending(struct ck_h2 *h2, void *userdata)
{
	(void)h2;
	mark_dirty(userdata);
}

static void h2_draining(struct ck_h2 *h2, void *userdata)
{
	struct ck_connection *conn = userdata;
	(void)h2;
	if (!conn->freed && conn->owner->draining)
		conn->owner->draining(conn, conn->userdata);
}

static void h2_late_reset(struct ck_h2 *h2, int32_t id, uint32_t error, void *userdata)
{
	struct ck_connection *conn = userdata;
	(void)h2;
	if (!conn->freed && conn->owner->late_reset)
		conn->owner->late_reset(conn, id, error, conn->userdata);
}

static const struct ck_h2_owner h2_owner = {
	.opened = h2_opened,
	.pending = h2_pending,
	.draining = h2_draining,
	.late_reset = h2_late_reset,
};

/* While the peer is there, the socket counts what it has not read. When it has closed, the socket
 * has an error if it had not read everything. */
static bool all_was_read(const struct ck_connection *conn)
{
	int unread;
	struct pollfd gone = { .fd = conn->fd };
	if (conn->dirty || conn->rest.len || ioctl(conn->fd, SIOCOUTQ, &unread) < 0 ||
	    poll(&gone, 1, 0) < 0)
		return false;
	if (!(gone.revents & (POLLHUP | POLLERR)))
		return unread == 0;
	/* nothing can be written any more; this returns when the error, if there is one, is set */
	shutdown(conn->fd, SHUT_WR);
	return poll(&gone, 1, 0) >= 0 && !(gone.revents & POLLERR);
}

/* Has the peer read everything? This is checked before what came is handled, because we may then
 * write something that the client does not read any more: grpc-go pings when data comes, and may
 * close without waiting for our reply to that. */
static void look_whether_read(struct ck_connection *conn)
{
	if (!conn->watches_read || !all_was_read(conn))
		return;
	conn->watches_read = false;
	if (conn->owner->all_read)
		conn->owner->all_read(conn, conn->userdata);
}

static void conn_ready(struct ck_connection *conn, uint32_t events)
{
	struct ck_error err;
	if (conn->freed || conn->ended)
		return;
	if (events & EPOLLOUT)
		mark_dirty(conn);
	if (!(events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
		return;
	ssize_t n = recv(conn->fd, received,
			 conn->role == CK_H2_SERVER ? CK_CLIENT_READ : CK_SOCKET_READ,
			 MSG_DONTWAIT);
	if (n > 0)
		look_whether_read(conn);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < 0) {
		/* ECONNRESET: it closed without having read everything */
		conn_end(conn, true, strerror(errno));
	} else if (n == 0) {
		conn_end(conn, conn->rest.len > 0, "closed by the peer");
	} else if (ck_h2_feed(conn->h2, received, (size_t)n, &err) >= 0) {
		if (ck_h2_over(conn->h2)) /* its GOAWAY, and no call is left */
			mark_dirty(conn);
		want(conn, conn->wanted & EPOLLOUT);
	} else if (!conn->freed) {
		conn_flush(conn); /* a GOAWAY that says why */
		conn_end(conn, true, err.text);
	}
}

int ck_connection_new(struct ck_loop *loop, int fd, enum ck_h2_role role,
		      const struct ck_connection_owner *owner, void *userdata,
		      struct ck_connection **ret_conn, struct ck_error *err)
{
	struct ck_connection *conn = CK_NEW(struct ck_connection);
	if (!conn) {
		close(fd);
		return ck_nomem(err);
	}
	*conn = (struct ck_connection){ .loop = loop,
					.fd = fd,
					.role = role,
					.owner = owner,
					.userdata = userdata,
					.wanted = EPOLLIN };
	int r = ck_h2_new(role, CK_STREAM_WINDOW, &h2_owner, conn, &conn->h2, err);
	if (r >= 0) {
		int no = watch(conn, EPOLL_CTL_ADD, EPOLLIN);
		r = no ? ck_fail_errno(err, CK_EIO, no, "watch a socket") : 0;
	}
	if (r < 0) {
		if (conn->dirty)
			LL_DELETE2(loop->dirty, conn, dirty_next);
		conn_destroy(conn);
		return r;
	}
	mark_dirty(conn); /* SETTINGS go out */
	*ret_conn = conn;
	return 0;
}

void ck_connection_free(struct ck_connection *conn)
{
	if (!conn || conn->freed)
		return;
	conn->freed = true;
	watch(conn, EPOLL_CTL_DEL, 0);
	mark_dirty(conn);
}

void ck_connection_write(struct ck_connection *conn)
{
	if (!conn->freed && !conn->ended)
		conn_flush(conn);
}

void ck_connection_watch_read(struct ck_connection *conn)
{
	conn->watches_read = true;
}

void ck_connection_end(struct ck_connection *conn, const char *why)
{
	conn_end(conn, !all_was_read(conn), why);
}

void ck_connection_refuse(struct ck_connection *conn, const char *why)
{
	if (conn->freed || conn->ended)
		return;
	bool unread = !all_was_read(conn);
	ck_h2_refuse(conn->h2, why);
	conn_flush(conn);
	conn_end(conn, unread, why);
}

void ck_connection_shut(struct ck_connection *conn)
{
	if (conn->h2)
		ck_h2_goaway(conn->h2);
}

struct ck_h2 *ck_connection_h2(struct ck_connection *conn)
{
	return conn->h2;
}
