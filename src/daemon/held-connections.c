/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections to the runtime over the end of crikeepd.
 *
 *   this life:  connect --> a duplicate to the service manager --> creations and starts
 *   next life:  passed --> read dry --> what they carried is decided --> ended
 *
 * Its name says when its life began. What began later than the next life is not on it, unless a
 * newer connection carries it, too. So a loop of crashes that leaves something behind each time
 * does not keep all connections open.
 *
 * A life with shadow: true records nothing. Its connections are kept open for as long as a creation
 * may take.
 *
 * To end one is to shut it down, also for the service manager, which then forgets its duplicate. No
 * byte of it is parsed: lists and statuses tell the next life how everything ended.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "cache/gauges.h"
#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/daemon/daemon.h"

#define NAME   "runtime-" /* and the time, in ns */
#define SHADOW "shadow-"  /* the same, with shadow: true: nobody is told what it carries */

static void forget(struct ck_held *held, unsigned i)
{
	sd_event_source_disable_unref(held->sources[i]);
	close(held->fds[i]);
	held->n--;
	held->fds[i] = held->fds[held->n];
	held->sources[i] = held->sources[held->n];
	held->since[i] = held->since[held->n];
	held->shadow[i] = held->shadow[held->n];
}

bool ck_held_passed(struct ck_daemon *daemon, int fd, const char *name)
{
	struct ck_held *held = &daemon->held;
	bool shadow = strncmp(name, SHADOW, sizeof(SHADOW) - 1) == 0;
	if (!shadow && strncmp(name, NAME, sizeof(NAME) - 1) != 0)
		return false;
	if (held->n == CK_HELD_MAX) { /* a unit that stores more than ours does */
		shutdown(fd, SHUT_RDWR);
		close(fd);
		return true;
	}
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
	held->sources[held->n] = NULL;
	held->shadow[held->n] = shadow;
	held->since[held->n] = strtoull(strchr(name, '-') + 1, NULL, 10);
	held->fds[held->n++] = fd;
	return true;
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

/* when the life after that of connection @i began, as far as is known */
static uint64_t life_ended(const struct ck_held *held, unsigned i)
{
	uint64_t next = held->began;
	for (unsigned other = 0; held->since[i] && other < held->n; other++)
		if (held->since[other] > held->since[i] && held->since[other] < next)
			next = held->since[other];
	return next;
}

/* since when something is undecided; UINT64_MAX: nothing is */
static uint64_t undecided_since(struct ck_daemon *daemon)
{
	struct ck_gauges gauges;
	if (ck_loop_now() >= daemon->held.until || !daemon->cache)
		return UINT64_MAX;
	if (ck_gauges_read(daemon->cache, &gauges) < 0)
		return 0;
	return gauges.inherited_since ? gauges.inherited_since : UINT64_MAX;
}

/* What is lost is looked for every few seconds, so nobody needs to tell when it is found. */
static void look(void *userdata)
{
	struct ck_daemon *daemon = userdata;
	struct ck_held *held = &daemon->held;
	uint64_t undecided = undecided_since(daemon), longest = held->until - held->began;
	unsigned ended = 0;
	for (unsigned i = held->n; i-- > 0;) {
		uint64_t at = life_ended(held, i);
		/* nobody decides what a life with shadow: true leaves, or what such a one finds */
		bool unknown = held->shadow[i] || !daemon->cache;
		if (undecided < at || (unknown && ck_loop_now() < at + longest))
			continue;
		shutdown(held->fds[i], SHUT_RDWR);
		forget(held, i);
		ended++;
	}
	if (ended)
		ck_log(CK_LOG_INFO,
		       "ended connections to the runtime that were kept open (%u of %u): what they "
		       "carried is decided",
		       ended, ended + held->n);
	if (held->n)
		ck_loop_timer(&daemon->loop, &held->timer, ck_loop_now() + CK_HELD_LOOK, look,
			      daemon);
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
	held->began = ck_loop_now();
	if (!held->n)
		return 0;
	ck_log(CK_LOG_INFO,
	       "connections to the runtime were kept open (%u): what they carry goes on", held->n);
	held->until = held->began + longest + CK_CREATE_EXTRA;
	for (unsigned i = 0; r >= 0 && i < held->n; i++)
		r = sd_event_add_io(daemon->loop.event, &held->sources[i], held->fds[i], EPOLLIN,
				    ready, held);
	if (r < 0)
		return ck_fail_errno(err, CK_EIO, -r, "watch a connection that was kept open");
	if (ck_loop_timer_new(&daemon->loop, &held->timer) < 0)
		return ck_nomem(err);
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
	char state[64];
	snprintf(state, sizeof(state), "FDSTORE=1\nFDNAME=%s%" PRIu64,
		 daemon->conf.shadow ? SHADOW : NAME, daemon->held.began);
	int r = sd_pid_notify_with_fds(0, 0, state, &fd, 1);
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
