/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "cache/starts.h"

int ck_start_begin(struct ck_cache *cache, const char *container_id, char *ret_sandbox_id)
{
	int r = ck_round_enter(cache, NULL);
	if (r < 0)
		return r;
	r = ck_machine_start_begin(cache->machine, container_id);
	if (r >= 0)
		snprintf(ret_sandbox_id, CK_ID_MAX + 1, "%s",
			 ck_machine_object(cache->machine, CK_CONTAINER, container_id)
				 ->row.key->sandbox_id);
	ck_round_leave(cache);
	return r;
}

void ck_start_end(struct ck_cache *cache, const char *container_id, enum ck_start_end end, int grpc)
{
	if (ck_round_enter(cache, NULL) < 0)
		return;
	ck_machine_start_end(cache->machine, container_id, end, grpc);
	ck_round_leave(cache);
}

void ck_start_stopped(struct ck_cache *cache, const char *container_id)
{
	if (ck_round_enter(cache, NULL) < 0)
		return;
	ck_machine_start_stopped(cache->machine, container_id);
	ck_round_leave(cache);
}
