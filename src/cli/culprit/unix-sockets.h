/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_CLI_CULPRIT_UNIX_SOCKETS_H
#define CK_CLI_CULPRIT_UNIX_SOCKETS_H
/* Who is connected to whom: the connected unix sockets of this network namespace that have a path,
 * as the kernel lists them (NETLINK_SOCK_DIAG). That is the server's end of each connection. */
#include <stddef.h>
#include <stdint.h>
#include <sys/un.h>

struct ck_unix_socket {
	uint32_t inode, peer; /* peer: 0: unknown */
	char path[sizeof(((struct sockaddr_un *)0)->sun_path) + 1];
};
/* ck_unix_sockets_list - at most CK_UNIX_SOCKETS_MAX. Return: how many; 0: none, or the kernel does
 * not say. free() */
size_t ck_unix_sockets_list(struct ck_unix_socket **ret);
/* ck_unix_server - the process that listens at a path; 0: unknown */
long ck_unix_server(const char *path);
#endif
