/* SPDX-License-Identifier: Apache-2.0 */
/* The metrics socket: the text is made when somebody connects, and mostly fits into the socket's buffer at once. */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/daemon/address.h"
#include "src/daemon/metrics.h"
#include "src/daemon/process.h"

struct reader {
	struct ck_metrics_server *server;
	struct reader *next; /* the newer one */
	sd_event_source *source;
	int fd;
	char *text;
	size_t sent, len;
	uint64_t until;
};

struct ck_metrics_server {
	struct ck_loop *loop;
	const struct ck_metrics *metrics;
	struct ck_cache *cache;
	struct ck_process process;
	char *path;
	int fd;
	sd_event_source *source;
	struct ck_loop_timer *timer;
	uint64_t resume; /* no descriptor was free: nobody is let in before; UINT64_MAX: open */
	struct reader *oldest;
	unsigned readers;
};

static void reader_free(struct reader *reader)
{
	struct reader **at = &reader->server->oldest;
	while (*at && *at != reader)
		at = &(*at)->next;
	if (*at) {
		*at = reader->next;
		reader->server->readers--;
	}
	sd_event_source_disable_unref(reader->source);
	close(reader->fd);
	free(reader->text);
	free(reader);
}

/* true: all is written, or never will be */
static bool reader_write(struct reader *reader)
{
	while (reader->sent < reader->len) {
		ssize_t n = send(reader->fd, reader->text + reader->sent, reader->len - reader->sent, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno != EAGAIN;
		reader->sent += (size_t)n;
	}
	return true;
}

static int on_writable(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
	(void)source, (void)fd, (void)events;
	if (reader_write(userdata))
		reader_free(userdata);
	return 0;
}

static void on_time(void *userdata);

static int arm(struct ck_metrics_server *server)
{
	uint64_t at = server->oldest ? server->oldest->until : UINT64_MAX;
	return ck_loop_timer(server->loop, &server->timer, at < server->resume ? at : server->resume, on_time, server);
}

static void on_time(void *userdata)
{
	struct ck_metrics_server *server = userdata;
	uint64_t now = ck_loop_now();
	while (server->oldest && server->oldest->until <= now)
		reader_free(server->oldest);
	if (server->resume <= now) {
		server->resume = UINT64_MAX;
		sd_event_source_set_enabled(server->source, SD_EVENT_ON);
	}
	arm(server); /* the timer is there, so it cannot fail */
}

/* what the buffer did not take: written as the reader reads */
static int reader_stay(struct ck_metrics_server *server, struct reader *reader)
{
	struct reader **end = &server->oldest;
	if (sd_event_add_io(server->loop->event, &reader->source, reader->fd, EPOLLOUT, on_writable, reader) < 0)
		return -CK_ENOMEM;
	if (server->readers == CK_METRICS_READERS)
		reader_free(server->oldest);
	while (*end)
		end = &(*end)->next;
	*end = reader;
	server->readers++;
	reader->until = ck_loop_now() + CK_METRICS_WAIT;
	return arm(server);
}

/* The listener stays readable: without a pause the loop would do nothing else. */
static void pause_accepting(struct ck_metrics_server *server)
{
	server->resume = ck_loop_now() + CK_METRICS_PAUSE;
	if (arm(server) >= 0)
		sd_event_source_set_enabled(server->source, SD_EVENT_OFF);
}

static int on_connection(sd_event_source *source, int listener, uint32_t events, void *userdata)
{
	struct ck_metrics_server *server = userdata;
	(void)source, (void)events;
	int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd < 0 && errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
		pause_accepting(server);
	if (fd < 0)
		return 0;
	struct reader *reader = CK_NEW(struct reader);
	if (!reader) {
		close(fd);
		return 0;
	}
	reader->server = server;
	reader->fd = fd;
	reader->text = ck_metrics_print(server->metrics, server->cache, &server->process);
	reader->len = reader->text ? strlen(reader->text) : 0;
	if (reader_write(reader) || reader_stay(server, reader) < 0)
		reader_free(reader);
	return 0;
}

int ck_metrics_serve(struct ck_loop *loop, const struct ck_conf *conf, const struct ck_metrics *metrics, struct ck_cache *cache,
		     struct ck_metrics_server **ret_server, struct ck_error *err)
{
	struct ck_metrics_server *server = CK_NEW(struct ck_metrics_server);
	if (!server)
		return ck_nomem(err);
	server->loop = loop;
	server->resume = UINT64_MAX;
	server->metrics = metrics;
	server->cache = cache;
	ck_process_open(&server->process);
	int r = server->fd = ck_unix_listen(conf->metrics, conf->socket_mode, conf->socket_gid, err);
	if (r >= 0 && !(server->path = ck_strdup(conf->metrics)))
		r = ck_nomem(err);
	if (r >= 0 && (r = sd_event_add_io(loop->event, &server->source, server->fd, EPOLLIN, on_connection, server)) < 0)
		r = ck_fail_errno(err, CK_EIO, -r, "watch '%s'", conf->metrics);
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
	while (server->oldest)
		reader_free(server->oldest);
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
