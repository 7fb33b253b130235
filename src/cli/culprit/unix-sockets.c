/* SPDX-License-Identifier: Apache-2.0 */
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/cli/culprit/unix-sockets.h"
#include "src/cli/output/text.h"

static bool ask(int fd)
{
	struct {
		struct nlmsghdr head;
		struct unix_diag_req body;
	} request = {
		.head = { .nlmsg_len = sizeof(request), .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			  .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
		.body = { .sdiag_family = AF_UNIX, .udiag_states = 1u << TCP_ESTABLISHED,
			  .udiag_show = UDIAG_SHOW_NAME | UDIAG_SHOW_PEER },
	};
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	return sendto(fd, &request, sizeof(request), 0, (struct sockaddr *)&kernel,
		      sizeof(kernel)) == (ssize_t)sizeof(request);
}

/* @len: of the message. Return: has it a path? */
static bool read_socket(const struct nlmsghdr *head, struct ck_unix_socket *ret)
{
	const struct unix_diag_msg *body = NLMSG_DATA(head);
	int left = (int)head->nlmsg_len - (int)NLMSG_LENGTH(sizeof(*body));
	if (left < 0 || body->udiag_type != SOCK_STREAM)
		return false;
	*ret = (struct ck_unix_socket){ .inode = body->udiag_ino };
	for (const struct rtattr *attr = (const struct rtattr *)(body + 1); RTA_OK(attr, left);
	     attr = RTA_NEXT(attr, left)) {
		size_t len = RTA_PAYLOAD(attr);
		if (attr->rta_type == UNIX_DIAG_PEER && len >= sizeof(ret->peer))
			memcpy(&ret->peer, RTA_DATA(attr), sizeof(ret->peer));
		else if (attr->rta_type == UNIX_DIAG_NAME && len < sizeof(ret->path))
			memcpy(ret->path, RTA_DATA(attr), len);
	}
	return *ret->path == '/';
}

size_t ck_unix_sockets_list(struct ck_unix_socket **ret)
{
	CK_AUTO_CLOSE int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	/* at least what the kernel puts into one message */
	_Alignas(struct nlmsghdr) char buffer[32768];
	size_t n = 0;
	*ret = NULL;
	if (fd < 0 || !ask(fd))
		return 0;
	for (;;) {
		ssize_t len = recv(fd, buffer, sizeof(buffer), 0);
		if (len <= 0)
			return n;
		for (struct nlmsghdr *head = (struct nlmsghdr *)buffer; NLMSG_OK(head, len);
		     head = NLMSG_NEXT(head, len)) {
			struct ck_unix_socket one;
			if (head->nlmsg_type != SOCK_DIAG_BY_FAMILY || n == CK_UNIX_SOCKETS_MAX)
				return n;
			if (!read_socket(head, &one))
				continue;
			*ret = ck_must(ck_grown(*ret, n, sizeof(**ret)));
			(*ret)[n++] = one;
		}
	}
}

long ck_unix_server(const char *path)
{
	CK_AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct ucred peer = { 0 };
	socklen_t len = sizeof(peer);
	if (fd < 0 || strlen(path) >= sizeof(address.sun_path))
		return 0;
	strcpy(address.sun_path, path);
	/* it is accepted by the kernel, even for a process that is stopped */
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
		return 0;
	return peer.pid;
}
