/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_BASE_HASH_H
#define CK_BASE_HASH_H
/* uthash: a failed allocation leaves the element out (hh.tbl NULL) instead of ending the process */
#include "src/base/mem.h"

#define HASH_NONFATAL_OOM    1
#define uthash_malloc(size)  ck_alloc(size)
#define uthash_free(p, size) free(p)
#define HASH_FUNCTION(p, len, ret_hash) ((ret_hash) = ck_hash(p, len))

#include <stdint.h>
#include <string.h>

/* Eight bytes at a time: an id has 64. uthash's own takes seven instructions a byte, and ids
 * are looked up for each object of a list. */
static inline unsigned ck_hash(const void *p, size_t len)
{
	const char *at = p;
	uint64_t hash = len, word;
	for (; len >= sizeof(word); len -= sizeof(word), at += sizeof(word)) {
		memcpy(&word, at, sizeof(word));
		hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
		hash ^= hash >> 32;
	}
	word = 0;
	memcpy(&word, at, len);
	hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
	hash = (hash ^ hash >> 32) * UINT64_C(0xd6e8feb86659fd93);
	return (unsigned)(hash ^ hash >> 32);
}

#include <uthash.h>
#endif
