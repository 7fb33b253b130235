/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_CACHE_CALLER_H
#define CK_CACHE_CALLER_H
/* What src/api.c calls after it has checked the arguments. crikeep.h has the contracts. */
#include "cache/cache.h"

#define CK_NOT_CREATING "the turn is not creating anything" /* the text of -CK_ESTATE */

int ck_turn_begin_impl(struct ck_cache *cache, const struct ck_request *request,
		       struct ck_turn **ret_turn, struct ck_error *err);
int ck_remove_begin_impl(struct ck_cache *cache, enum ck_kind kind, const char *id,
			 uint64_t timeout, struct ck_turn **ret_turn, struct ck_error *err);
int ck_turn_wait_impl(struct ck_turn *turn, struct ck_error *err);
int ck_turn_finish_impl(struct ck_turn *turn, const struct ck_result *result, struct ck_error *err);
int ck_turn_fail_impl(struct ck_turn *turn, const struct ck_status *why, struct ck_error *err);
void ck_turn_leave_impl(struct ck_turn *turn);
void ck_turn_free_impl(struct ck_turn *turn);
#endif
