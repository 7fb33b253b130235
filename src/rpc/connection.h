/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_RPC_CONNECTION_H
#define CK_RPC_CONNECTION_H
/*
 * The event loop of the process, and a socket on it that speaks HTTP/2. Reading and writing never
 * wait. Bytes queued during one turn of the loop are written at the end of that turn, so that a
 * call that is passed on leaves in one write.
 */
#include <sys/types.h>
#include <systemd/sd-event.h>

#include "src/rpc/h2.h"

struct ck_connection;

struct ck_loop { /* one per process; zeroed, then ck_loop_init() */
	sd_event *event;
	/* the connections' sockets. Not sources of @event: that fetches all that are ready before
	 * it serves one of them, so thousands took a square of their number */
	int sockets;
	sd_event_source *ready; /* when one of them is */
	struct ck_connection *dirty; /* those that have bytes to write or are to be freed */
};

int ck_loop_init(struct ck_loop *loop, struct ck_error *err); /* 0, -CK_EIO, -CK_ENOMEM */
void ck_loop_fini(struct ck_loop *loop);
/* ck_loop_flush - write, end and free connections, as ck_loop_run() does at the end of each turn.
 * Do not call it from a callback */
void ck_loop_flush(struct ck_loop *loop);
/* ck_loop_run - until sd_event_exit(). Its code, or -CK_EIO */
int ck_loop_run(struct ck_loop *loop);

/* ck_loop_timer - call @fn once at @at (ns of CLOCK_BOOTTIME), to the millisecond. *@timer is NULL
 * at first; a later call moves the timer, which cannot fail, and @at UINT64_MAX switches it off.
 * Free it with ck_loop_timer_free(). 0, -CK_ENOMEM */
typedef void ck_timer_cb(void *userdata);
struct ck_loop_timer;
int ck_loop_timer(struct ck_loop *loop, struct ck_loop_timer **timer, uint64_t at, ck_timer_cb *fn,
		  void *userdata);
/* ck_loop_timer_new - a timer that is off, for what must not fail later. 0, -CK_ENOMEM */
int ck_loop_timer_new(struct ck_loop *loop, struct ck_loop_timer **ret_timer);
void ck_loop_timer_free(struct ck_loop_timer *timer);
uint64_t ck_loop_now(void); /* ns of CLOCK_BOOTTIME */

struct ck_connection_owner { /* the first three are those of struct ck_h2_owner */
	void (*opened)(struct ck_connection *conn, struct ck_h2_stream *stream, void *userdata);
	void (*draining)(struct ck_connection *conn, void *userdata);
	void (*late_reset)(struct ck_connection *conn, int32_t id, uint32_t error, void *userdata);
	/* after ck_connection_watch_read(): bytes came from the peer, and it had read all that was
	 * written to it. Called once for each watch */
	void (*all_read)(struct ck_connection *conn, void *userdata);
	/* the connection is over; its streams are closed already. @unread: the peer did not read
	 * what we wrote last (it reset the connection, or bytes were left to write); all_read() may
	 * have been called before. @why: a few words. The owner calls ck_connection_free(), now or
	 * later */
	void (*closed)(struct ck_connection *conn, bool unread, const char *why, void *userdata);
};

/* ck_connection_new - @fd: a connected stream socket, non-blocking; taken, also on failure.
 * -CK_ENOMEM, -CK_EIO */
int ck_connection_new(struct ck_loop *loop, int fd, enum ck_h2_role role,
		      const struct ck_connection_owner *owner, void *userdata,
		      struct ck_connection **ret_conn, struct ck_error *err);
/* ck_connection_free - its streams are closed; its own closed() is not called. NULL is fine */
void ck_connection_free(struct ck_connection *conn);
/* ck_connection_shut - no new streams; closed() is called when those under way have ended */
void ck_connection_shut(struct ck_connection *conn);
/* ck_connection_write - write the queued bytes now, not at the end of the turn. Do not call it from
 * a callback of this connection */
void ck_connection_write(struct ck_connection *conn);
/* ck_connection_watch_read - call all_read() when the peer has read the bytes queued so far, if
 * that can be known. HTTP/2 has no message for it, but a unix socket knows how much its peer has
 * not read. If nothing comes from the peer after that, closed() says whether all was read */
void ck_connection_watch_read(struct ck_connection *conn);
/* ck_connection_end - end it: closed() of its streams and of its owner is called at the end of this
 * turn of the loop */
void ck_connection_end(struct ck_connection *conn, const char *why);
/* ck_connection_refuse - end it with a GOAWAY that says @why, and that it is too much. Do not call
 * it from a callback of this connection */
void ck_connection_refuse(struct ck_connection *conn, const char *why);
struct ck_h2 *ck_connection_h2(struct ck_connection *conn); /* NULL once it has ended */
#endif
