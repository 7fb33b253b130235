/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_BASE_CAPABILITIES_H
#define CK_BASE_CAPABILITIES_H
/* The rights of root that a server does not need. They belong to a thread: call this while there is
 * only one. */
#include "src/base/error.h"

/* ck_capabilities_drop - give up every capability and new privileges, for ever and for all
 * children. uid 0 is then only an owner of files. -CK_EIO, -CK_ENOMEM */
int ck_capabilities_drop(struct ck_error *err);
#endif
