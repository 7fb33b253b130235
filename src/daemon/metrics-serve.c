/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The metrics socket. The text is made when somebody connects, handed to the kernel in one call, and the connection is closed:
 * a socket's buffer holds 208 KiB, the text takes a tenth of that, so nobody's reading is waited for and nothing is kept. Should
 * it not fit it is cut, and the last line, which says that it is whole, is missing.
 */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/rpc/address.h"
#include "src/daemon/metrics.h"
#include "src/daemon/process.h"

struct ck_metrics_server {
	struct ck_loop *loop;
	const struct ck_metrics *metrics;
	struct ck_cache *cache;
	struct ck_process process;
	char *path;
	int fd;
	sd_event_source *source;
	struct ck_loop_timer *timer; /* no descriptor was free: nobody is let in before */
};

static void on_time(void *userdata)
{
	struct ck_metrics_server *server = userdata;
	sd_event_source_set_enabled(server->source, SD_EVENT_ON);
}

/* The listener stays readable: without a pause the loop would do nothing else. */
static void pause_accepting(struct ck_metrics_server *server)
{
	if (ck_loop_timer(server->loop, &server->timer, ck_loop_now() + CK_METRICS_PAUSE, on_time, server) >= 0)
		sd_event_source_set_enabled(server->source, SD_EVENT_OFF);
}

static int on_connection(sd_event_source *source, int listener, uint32_t events, void *userdata)
{
	struct ck_metrics_server *server = userdata;
	(void)source, (void)events;
	CK_AUTO_CLOSE int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd < 0) {
		if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
			pause_accepting(server);
		return 0;
	}
	CK_AUTO_FREE char *text = ck_metrics_print(server->metrics, server->cache, &server->process);
	if (text)
		send(fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT);
	return 0;
}

int ck_metrics_serve(struct ck_loop *loop, const struct ck_conf *conf, const struct ck_metrics *metrics, struct ck_cache *cache,
		     struct ck_metrics_server **ret_server, struct ck_error *err)
{
	struct ck_metrics_server *server = CK_NEW(struct ck_metrics_server);
	if (!server)
		return ck_nomem(err);
	server->loop = loop;
	server->metrics = metrics;
	server->cache = cache;
	ck_process_open(&server->process);
	int r = server->fd = ck_unix_listen(conf->metrics, conf->socket_mode, conf->socket_gid, err);
	if (r >= 0 && !(server->path = ck_strdup(conf->metrics)))
		r = ck_nomem(err);
	if (r >= 0 && (r = sd_event_add_io(loop->event, &server->source, server->fd, EPOLLIN, on_connection, server)) < 0)
		r = ck_fail_errno(err, CK_EIO, -r, "watch '%s'", conf->metrics);
	if (r >= 0) /* made now, because it may need a descriptor; that it comes once does nothing */
		r = ck_loop_timer(loop, &server->timer, ck_loop_now(), on_time, server) < 0 ? ck_nomem(err) : 0;
	if (r < 0) {
		ck_metrics_server_free(server);
		return r;
	}
	*ret_server = server;
	return 0;
}

void ck_metrics_server_free(struct ck_metrics_server *server)
{
	if (!server)
		return;
	ck_loop_timer_free(server->timer);
	sd_event_source_disable_unref(server->source);
	if (server->fd >= 0)
		close(server->fd);
	if (server->path)
		unlink(server->path);
	free(server->path);
	ck_process_close(&server->process);
	free(server);
}
