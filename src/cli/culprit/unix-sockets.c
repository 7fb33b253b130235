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

/* the bytes of a message, of which the first ones are taken away */
struct part {
	const char *at;
	size_t left;
};

/* Take the first message or attribute, of @len bytes with its header. Padding follows it, unless it
 * is the last one. false: @len cannot be */
static bool take(struct part *from, size_t header, size_t len, struct part *ret_body)
{
	size_t padded = NLMSG_ALIGN(len);
	if (len < header || len > from->left)
		return false;
	*ret_body = (struct part){ from->at + header, len - header };
	padded = padded < from->left ? padded : from->left;
	from->at += padded;
	from->left -= padded;
	return true;
}

static bool take_message(struct part *from, uint16_t *ret_type, struct part *ret_body)
{
	struct nlmsghdr head;
	if (from->left < sizeof(head))
		return false;
	memcpy(&head, from->at, sizeof(head));
	*ret_type = head.nlmsg_type;
	return take(from, NLMSG_HDRLEN, head.nlmsg_len, ret_body);
}

static bool take_attribute(struct part *from, uint16_t *ret_type, struct part *ret_body)
{
	struct rtattr head;
	if (from->left < sizeof(head))
		return false;
	memcpy(&head, from->at, sizeof(head));
	*ret_type = head.rta_type;
	return take(from, RTA_LENGTH(0), head.rta_len, ret_body);
}

/* Return: has it a path? */
static bool read_socket(struct part message, struct ck_unix_socket *ret)
{
	struct unix_diag_msg body;
	struct part attribute;
	uint16_t type;
	if (message.left < sizeof(body))
		return false;
	memcpy(&body, message.at, sizeof(body));
	if (body.udiag_type != SOCK_STREAM)
		return false;
	*ret = (struct ck_unix_socket){ .inode = body.udiag_ino };
	message.at += sizeof(body);
	message.left -= sizeof(body);
	while (take_attribute(&message, &type, &attribute)) {
		if (type == UNIX_DIAG_PEER && attribute.left >= sizeof(ret->peer))
			memcpy(&ret->peer, attribute.at, sizeof(ret->peer));
		else if (type == UNIX_DIAG_NAME && attribute.left < sizeof(ret->path))
			memcpy(ret->path, attribute.at, attribute.left);
	}
	return *ret->path == '/';
}

size_t ck_unix_sockets_list(struct ck_unix_socket **ret)
{
	CK_AUTO_CLOSE int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	char buffer[32768]; /* at least what the kernel puts into one message */
	size_t n = 0;
	*ret = NULL;
	if (fd < 0 || !ask(fd))
		return 0;
	for (;;) {
		ssize_t len = recv(fd, buffer, sizeof(buffer), 0);
		if (len <= 0)
			return n;
		struct part messages = { buffer, (size_t)len }, message;
		uint16_t type;
		while (take_message(&messages, &type, &message)) {
			struct ck_unix_socket one;
			if (type != SOCK_DIAG_BY_FAMILY || n == CK_UNIX_SOCKETS_MAX)
				return n;
			if (!read_socket(message, &one))
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
