/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_RPC_ADDRESS_H
#define CK_RPC_ADDRESS_H
/* Unix sockets by path. Errors name the path and the cause. */
#include <sys/types.h>
#include <sys/un.h>

#include "src/crikeep.h"

/* ck_unix_address - -CK_EINVAL if @path does not fit (107 bytes) */
int ck_unix_address(const char *path, struct sockaddr_un *ret_address, struct ck_error *err);
/* ck_unix_connect - non-blocking; a descriptor, or -CK_EIO with the cause in words ("no such file",
 * "not a socket") and sys */
int ck_unix_connect(const char *path, struct ck_error *err);
/* ck_unix_listen - listen at @path. The socket is bound under another name and renamed to @path, so
 * that an old socket never blocks a start; anything else at @path is an error. It has mode @mode
 * and group @gid ((gid_t)-1: unchanged). A descriptor, or -CK_EIO */
int ck_unix_listen(const char *path, mode_t mode, gid_t gid, struct ck_error *err);
#endif
