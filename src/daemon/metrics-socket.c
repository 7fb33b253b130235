/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The metrics socket. When a client connects, the text is made and written in one call, and the
 * connection is closed. The buffer of a socket has 208 KiB and the text takes a tenth of that, so
 * the daemon does not wait for the client and keeps nothing. A text that did not fit would be cut,
 * and would lack its last line.
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
	const struct ck_access *access;
	struct ck_cache *cache;
	struct ck_process process;
	struct ck_acceptor *acceptor;
	char *path; /* set once the socket is bound */
};

static void accepted(int fd, void *userdata)
{
	struct ck_metrics_server *server = userdata;
	struct ucred peer = { 0 };
	socklen_t len = sizeof(peer);
	bool may = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 &&
		   ck_access_allows(server->access, peer.uid);
	CK_AUTO_FREE char *text =
		may ? ck_metrics_print(server->metrics, server->cache, &server->process) : NULL;
	if (text)
		send(fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT);
	close(fd);
}

int ck_metrics_serve(struct ck_loop *loop, const struct ck_conf *conf, int fd,
		     const struct ck_metrics *metrics, struct ck_cache *cache,
		     struct ck_metrics_server **ret_server, struct ck_error *err)
{
	struct ck_metrics_server *server = CK_NEW(struct ck_metrics_server);
	CK_AUTO_FREE char *path = ck_strdup(conf->metrics);
	if (!server || !path) {
		if (fd >= 0)
			close(fd);
		free(server);
		return ck_nomem(err);
	}
	server->metrics = metrics;
	server->access = &conf->metrics_socket;
	server->cache = cache;
	ck_process_open(&server->process);
	int r = fd;
	if (fd < 0) {
		r = ck_unix_listen(path, conf->metrics_socket.mode, conf->metrics_socket.group.gid,
				   err);
		if (r >= 0)
			server->path = CK_TAKE(path);
	}
	if (r >= 0)
		r = ck_accept_start(loop, r, accepted, server, &server->acceptor, err);
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
