/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The socket that plugins connect to. A connection that sends nothing keeps no other plugin out. A
 * plugin can change every container, so the socket has mode 0600 and the peer's uid is checked.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "hooks/nri-int.h"

#define BACKLOG 64

static int address_of(const char *path, struct sockaddr_un *ret_address, struct ck_error *err)
{
	*ret_address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (strlen(path) >= sizeof(ret_address->sun_path))
		return ck_fail(err, CK_EINVAL, "'%s' is too long for a socket's path", path);
	strcpy(ret_address->sun_path, path);
	return 0;
}

/* A live socket of a runtime is not taken over (H10): connecting to it shows whether somebody
 * listens. The socket of a dead process is removed. */
static int take_path(const struct sockaddr_un *address, struct ck_error *err)
{
	struct stat st;
	if (lstat(address->sun_path, &st) < 0)
		return 0;
	if (!S_ISSOCK(st.st_mode))
		return ck_fail(err, CK_EINVAL, "'%s' exists and is not a socket",
			       address->sun_path);
	CK_AUTO_CLOSE int fd =
		ck_fd_own(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
	if (fd < 0)
		return ck_fail_errno(err, CK_EIO, errno, "make a socket");
	/* EAGAIN: somebody listens and is busy */
	int sys = connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0 ? EAGAIN
										       : errno;
	if (sys == EAGAIN)
		return ck_fail(err, CK_EOWNED, "a runtime serves NRI at '%s': turn its own NRI off",
			       address->sun_path);
	if (sys != EAGAIN && sys != ECONNREFUSED && sys != ENOENT) /* somebody may listen */
		return ck_fail_errno(err, CK_EIO, sys, "find out who listens at '%s'",
				     address->sun_path);
	if (unlink(address->sun_path) < 0 && errno != ENOENT)
		return ck_fail_errno(err, CK_EIO, errno, "remove the dead socket '%s'",
				     address->sun_path);
	return 0;
}

int ck_nri_listen(struct ck_nri *nri, struct ck_error *err)
{
	struct sockaddr_un address;
	int r = address_of(nri->socket_path, &address, err);
	if (r >= 0)
		r = take_path(&address, err);
	if (r < 0)
		return r;
	CK_AUTO_CLOSE int fd =
		ck_fd_own(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
	if (fd < 0)
		return ck_fail_errno(err, CK_EIO, errno, "make a socket");
	if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
		return ck_fail_errno(err, CK_EIO, errno, "bind '%s'", nri->socket_path);
	/* nobody can connect before listen(), so the mode that bind() gives does no harm */
	if (chmod(nri->socket_path, nri->socket_mode) < 0 || listen(fd, BACKLOG) < 0) {
		int sys = errno;
		unlink(nri->socket_path);
		return ck_fail_errno(err, CK_EIO, sys, "listen at '%s'", nri->socket_path);
	}
	nri->listen_fd = CK_TAKE_FD(fd);
	return 0;
}

static bool may_connect(const struct ck_nri *nri, int fd, struct ucred *ret_peer)
{
	socklen_t len = sizeof(*ret_peer);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, ret_peer, &len) < 0)
		return false;
	if (!nri->allow_uids_n)
		return ret_peer->uid == 0 || ret_peer->uid == geteuid();
	for (size_t i = 0; i < nri->allow_uids_n; i++)
		if (nri->allow_uids[i] == ret_peer->uid)
			return true;
	return false;
}

/* Connections that do not register keep no plugin out: the oldest goes. First it is read, as it may
 * have registered just now. */
static void make_room(struct ck_nri *nri)
{
	while (ck_plugins_count(nri, true) >= CK_NRI_UNREGISTERED_MAX) {
		struct ck_plugin *plugin, *oldest = NULL;
		DL_FOREACH (nri->plugins, plugin)
			if (plugin->state != CK_PLUGIN_CLOSED && ck_plugin_unregistered(plugin) &&
			    (!oldest || plugin->serial < oldest->serial))
				oldest = plugin;
		ck_plugin_io(oldest, EPOLLIN);
		if (ck_plugin_unregistered(oldest))
			ck_plugin_close(oldest, CK_LOG_WARNING,
					"%u newer connections have not registered either",
					CK_NRI_UNREGISTERED_MAX);
	}
}

void ck_nri_accept(struct ck_nri *nri)
{
	struct ck_error err;
	nri->accept_again = 0;
	for (;;) {
		struct ucred peer = { 0 };
		struct ck_plugin *plugin = NULL;
		CK_AUTO_CLOSE int fd = ck_fd_own(
			accept4(nri->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK));
		if (fd < 0 && (errno == EINTR || errno == ECONNABORTED))
			continue;
		/* Descriptors have run out. The socket stays readable: wait before the next try. */
		if (fd < 0 && errno != EAGAIN) {
			epoll_ctl(nri->epoll_fd, EPOLL_CTL_DEL, nri->listen_fd, NULL);
			nri->accept_again = ck_nri_now(nri) + CK_ACCEPT_PAUSE;
			ck_nri_log(nri, CK_LOG_ERROR, "accept a plugin: %s", strerror(errno));
			return;
		}
		if (fd < 0)
			return;
		if (!may_connect(nri, fd, &peer)) {
			ck_nri_log(nri, CK_LOG_WARNING, "refused a plugin of uid %u (pid %d)",
				   peer.uid, peer.pid);
			continue;
		}
		make_room(nri);
		if (ck_plugin_add(nri, CK_TAKE_FD(fd), -1, &plugin, &err) < 0)
			ck_nri_log(nri, CK_LOG_ERROR, "refused a plugin (pid %d): %s", peer.pid,
				   err.text);
		else
			plugin->pid = peer.pid;
	}
}

void ck_nri_unlisten(struct ck_nri *nri)
{
	if (nri->listen_fd < 0)
		return;
	close(CK_TAKE_FD(nri->listen_fd));
	unlink(nri->socket_path);
}
