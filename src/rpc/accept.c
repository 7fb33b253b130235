/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/base/error.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/rpc/accept.h"
#include "src/base/log.h"

struct ck_acceptor {
	struct ck_loop *loop;
	int fd;
	sd_event_source *source;
	struct ck_loop_timer *pause;
	ck_accepted_fn *accepted;
	void *userdata;
	bool full; /* no descriptor was left; this is logged already */
};

static void resume(void *userdata)
{
	sd_event_source_set_enabled(((struct ck_acceptor *)userdata)->source, SD_EVENT_ON);
}

static int somebody_comes(sd_event_source *source, int listening, uint32_t events, void *userdata)
{
	struct ck_acceptor *acceptor = userdata;
	(void)events;
	int fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd >= 0) {
		acceptor->full = false;
		acceptor->accepted(fd, acceptor->userdata);
		return 0;
	}
	if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED)
		return 0;
	if (!acceptor->full) /* a client sees only that nothing happens */
		ck_log(CK_LOG_ERROR, "cannot accept clients until others leave: %s%s",
		       strerror(errno),
		       errno == EMFILE ? " (LimitNOFILE= of the unit, ulimit -n)" : "");
	acceptor->full = true;
	if (ck_loop_timer(acceptor->loop, &acceptor->pause, ck_loop_now() + CK_ACCEPT_PAUSE, resume,
			  acceptor) >= 0)
		sd_event_source_set_enabled(source, SD_EVENT_OFF);
	return 0;
}

int ck_accept_start(struct ck_loop *loop, int fd, ck_accepted_fn *accepted, void *userdata,
		    struct ck_acceptor **ret_acceptor, struct ck_error *err)
{
	struct ck_acceptor *acceptor = CK_NEW(struct ck_acceptor);
	if (!acceptor) {
		close(fd);
		return ck_nomem(err);
	}
	*acceptor = (struct ck_acceptor){
		.loop = loop, .fd = fd, .accepted = accepted, .userdata = userdata
	};
	int r = sd_event_add_io(loop->event, &acceptor->source, fd, EPOLLIN, somebody_comes,
				acceptor);
	if (r < 0)
		r = ck_fail_errno(err, CK_EIO, -r, "watch a listening socket");
	else if (ck_loop_timer_new(loop, &acceptor->pause) < 0) /* it may need a descriptor */
		r = ck_nomem(err);
	if (r < 0) {
		ck_acceptor_free(acceptor);
		return r;
	}
	*ret_acceptor = acceptor;
	return 0;
}

void ck_acceptor_free(struct ck_acceptor *acceptor)
{
	if (!acceptor)
		return;
	sd_event_source_disable_unref(acceptor->source);
	ck_loop_timer_free(acceptor->pause);
	close(acceptor->fd);
	free(acceptor);
}
