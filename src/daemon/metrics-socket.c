/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The metrics socket. The text is made when somebody connects, handed to the kernel in one call,
 * and the connection is closed: a socket's buffer holds 208 KiB, the text takes a tenth of that, so
 * nobody's reading is waited for and nothing is kept. Should it not fit it is cut, and the last
 * line, which says that it is whole, is missing.
 */
#include <sys/socket.h>
#include <unistd.h>

#include "src/base/mem.h"
#include "src/rpc/address.h"
#include "src/rpc/accept.h"
#include "src/daemon/metrics.h"
#include "src/daemon/proc-stats.h"

struct ck_metrics_server {
	const struct ck_metrics *metrics;
	struct ck_cache *cache;
	struct ck_process process;
	struct ck_acceptor *acceptor;
	char *path; /* once it is ours */
};

static void accepted(int fd, void *userdata)
{
	struct ck_metrics_server *server = userdata;
	CK_AUTO_FREE char *text =
		ck_metrics_print(server->metrics, server->cache, &server->process);
	if (text)
		send(fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT);
	close(fd);
}

int ck_metrics_serve(struct ck_loop *loop, const struct ck_conf *conf,
		     const struct ck_metrics *metrics, struct ck_cache *cache,
		     struct ck_metrics_server **ret_server, struct ck_error *err)
{
	struct ck_metrics_server *server = CK_NEW(struct ck_metrics_server);
	CK_AUTO_FREE char *path = ck_strdup(conf->metrics);
	if (!server || !path) {
		free(server);
		return ck_nomem(err);
	}
	server->metrics = metrics;
	server->cache = cache;
	ck_process_open(&server->process);
	int r = ck_unix_listen(path, conf->socket_mode, conf->socket_gid, err);
	if (r >= 0) {
		server->path = CK_TAKE(path);
		r = ck_accept_start(loop, r, accepted, server, &server->acceptor, err);
	}
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
	ck_acceptor_free(server->acceptor);
	if (server->path)
		unlink(server->path);
	free(server->path);
	ck_process_close(&server->process);
	free(server);
}
