/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_BASE_HASH_H
#define CK_BASE_HASH_H
/* uthash: a failed allocation leaves the element out (hh.tbl NULL) instead of ending the process */
#include "src/base/mem.h"

#define HASH_NONFATAL_OOM    1
#define uthash_malloc(size)  ck_alloc(size)
#define uthash_free(p, size) free(p)
#include <uthash.h>
#endif
