/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_CACHE_STARTS_H
#define CK_CACHE_STARTS_H
/* Starts of containers that a host carries on without their callers (K34). */
#include "cache/cache.h"

/*
 * ck_start_begin - StartContainer is about to be sent: this is on disk when the function returns
 * @ret_sandbox_id: CK_ID_MAX + 1 bytes
 * Return: 0: ck_start_end() follows; -CK_ENOTFOUND: nothing waits for this start, because the
 * container is not known, or runs, or has ended; -CK_ECLOSED, -CK_EDEADLK
 */
int ck_start_begin(struct ck_cache *cache, const char *container_id, char *ret_sandbox_id);
/* ck_start_end - @grpc: the runtime's status, with CK_START_REFUSED; or 0 */
void ck_start_end(struct ck_cache *cache, const char *container_id, enum ck_start_end end,
		  int grpc);
/* ck_start_stopped - it was stopped. What its start has left behind counts no more */
void ck_start_stopped(struct ck_cache *cache, const char *container_id);
#endif
