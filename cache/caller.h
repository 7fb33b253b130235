/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_CACHE_CALLER_H
#define CK_CACHE_CALLER_H
/* What src/api.c calls once it has checked the arguments; the contracts stand in crikeep.h. */
#include "cache/cache.h"

int ck_turn_begin_impl(struct ck_cache *cache, const struct ck_request *request,
		       struct ck_turn **ret_turn, struct ck_error *err);
int ck_remove_begin_impl(struct ck_cache *cache, enum ck_kind kind, const char *id,
			 uint64_t timeout, struct ck_turn **ret_turn, struct ck_error *err);
int ck_turn_wait_impl(struct ck_turn *turn, struct ck_error *err);
void ck_turn_watch_impl(struct ck_turn *turn, ck_turn_cb *cb, void *userdata);
void ck_turn_leave_impl(struct ck_turn *turn);
int ck_turn_stage_impl(struct ck_turn *turn, const char *stage);
int ck_turn_finish_impl(struct ck_turn *turn, const struct ck_result *result, struct ck_error *err);
int ck_turn_fail_impl(struct ck_turn *turn, const struct ck_status *why, struct ck_error *err);
int ck_turn_lost_impl(struct ck_turn *turn, struct ck_error *err);
int ck_turn_answered_impl(struct ck_turn *turn, bool delivered);
void ck_turn_free_impl(struct ck_turn *turn);
void ck_callback_unqueue(struct ck_cache *cache, struct ck_turn *turn); /* lock held */

static inline void ck_turn_auto(struct ck_turn **turn)
{
	if (*turn)
		ck_turn_free_impl(*turn);
}
#endif
