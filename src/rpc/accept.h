/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_RPC_ACCEPT_H
#define CK_RPC_ACCEPT_H
/*
 * Accepting connections. When the process has no descriptor left, the listener pauses, because its
 * socket stays readable and the loop would do nothing else. Clients wait in the socket's queue.
 */
#include "src/rpc/connection.h"

struct ck_acceptor;
typedef void ck_accepted_fn(int fd, void *userdata); /* @fd: yours, non-blocking */
/* ck_accept_start - @fd: a listening socket, taken, also on failure. -CK_ENOMEM, -CK_EIO */
int ck_accept_start(struct ck_loop *loop, int fd, ck_accepted_fn *accepted, void *userdata,
		    struct ck_acceptor **ret_acceptor, struct ck_error *err);
void ck_acceptor_free(struct ck_acceptor *acceptor); /* closes the listening socket. NULL is fine */
#endif
