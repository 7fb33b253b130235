/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections to the runtime over the end of crikeepd.
 *
 *   this life:  connect --> a duplicate to the service manager --> creations and starts
 *   next life:  passed --> read dry --> what they carried is decided --> ended
 *
 * To end one is to shut it down, also for the service manager, which then forgets its duplicate. No
 * byte of it is parsed: lists and statuses tell the next life how everything ended.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "cache/gauges.h"
#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/daemon/daemon.h"

static void forget(struct ck_held *held, unsigned i)
{
	sd_event_source_disable_unref(held->sources[i]);
	close(held->fds[i]);
	held->n--;
	held->fds[i] = held->fds[held->n];
	held->sources[i] = held->sources[held->n];
}

void ck_held_passed(struct ck_daemon *daemon, int fd)
{
	struct ck_held *held = &daemon->held;
	if (held->n == CK_HELD_MAX) { /* a unit that stores more than ours does */
		shutdown(fd, SHUT_RDWR);
		close(fd);
		return;
	}
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
	held->sources[held->n] = NULL;
	held->fds[held->n++] = fd;
}

static int ready(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
	static unsigned char unread[CK_SOCKET_READ];
	struct ck_held *held = userdata;
	unsigned i = 0;
	(void)source;
	(void)events;
	ssize_t n = recv(fd, unread, sizeof(unread), MSG_DONTWAIT);
	if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
		return 0;
	while (held->fds[i] != fd)
		i++;
	forget(held, i);
	return 0;
}

/* What is lost is looked for every few seconds, so nobody needs to tell when it is found. */
static void look(void *userdata)
{
	struct ck_daemon *daemon = userdata;
	struct ck_held *held = &daemon->held;
	struct ck_gauges gauges;
	uint64_t now = ck_loop_now();
	bool undecided = ck_gauges_read(daemon->cache, &gauges) < 0 || gauges.inherited;
	if (held->n && undecided && now < held->until &&
	    ck_loop_timer(&daemon->loop, &held->timer, now + CK_HELD_LOOK, look, daemon) >= 0)
		return;
	if (held->n)
		ck_log(CK_LOG_INFO,
		       "ended the connections to the runtime that were kept open (%u): what they "
		       "carried is decided",
		       held->n);
	while (held->n) {
		shutdown(held->fds[0], SHUT_RDWR);
		forget(held, 0);
	}
}

int ck_held_begin(struct ck_daemon *daemon, struct ck_error *err)
{
	struct ck_held *held = &daemon->held;
	const struct ck_conf *conf = &daemon->conf;
	uint64_t longest = conf->create_deadline > conf->start_deadline ? conf->create_deadline
									: conf->start_deadline;
	int r = 0;
	if (!getenv("NOTIFY_SOCKET"))
		ck_log(CK_LOG_INFO, "there is no service manager that keeps connections open: a "
				    "runtime may undo what is being made when crikeepd ends");
	if (!held->n)
		return 0;
	ck_log(CK_LOG_INFO,
	       "connections to the runtime were kept open (%u): what they carry goes on", held->n);
	held->until = ck_loop_now() + longest + CK_CREATE_EXTRA;
	for (unsigned i = 0; r >= 0 && i < held->n; i++)
		r = sd_event_add_io(daemon->loop.event, &held->sources[i], held->fds[i], EPOLLIN,
				    ready, held);
	if (r < 0)
		return ck_fail_errno(err, CK_EIO, -r, "watch a connection that was kept open");
	look(daemon);
	return 0;
}

void ck_held_give(struct ck_daemon *daemon, int fd)
{
	if (daemon->held.n == CK_HELD_MAX) {
		ck_log(CK_LOG_WARNING,
		       "%u connections of earlier lives still carry something. This one is not "
		       "kept open when crikeepd ends",
		       CK_HELD_MAX);
		return;
	}
	int r = sd_pid_notify_with_fds(0, 0, "FDSTORE=1\nFDNAME=" CK_HELD_NAME, &fd, 1);
	if (r < 0)
		ck_log(CK_LOG_WARNING,
		       "the service manager cannot be given the connection to the runtime: %s",
		       strerror(-r));
}

void ck_held_free(struct ck_daemon *daemon)
{
	while (daemon->held.n)
		forget(&daemon->held, 0);
	ck_loop_timer_free(daemon->held.timer);
}
