/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_CACHE_VIEW_H
#define CK_CACHE_VIEW_H
/*
 * A consistent filter for one list. It begins before the runtime is asked, so that tombstones
 * outlive the list (K21). Its first question fills it, in one round.
 *
 * src/api.c calls these after it has checked the arguments. crikeep.h has the contracts.
 */
#include "cache/hidden-set.h"

struct ck_view {
	struct ck_cache *cache;
	uint64_t seq;
	struct ck_hidden_set *hidden; /* since its first question */
	char *resolved;
};

int ck_view_begin_impl(struct ck_cache *cache, struct ck_view **ret_view, struct ck_error *err);
int ck_view_hides_impl(struct ck_view *view, const struct ck_object *object);
int ck_view_resolve_impl(struct ck_view *view, enum ck_kind kind, const char *prefix,
			 const char **ret_id);
/* ck_view_hides_any - may ck_view_hides() say yes to anything? It is a question as well, and fixes
 * the answers to the others. 1, 0, -CK_ENOMEM, -CK_EFORK */
int ck_view_hides_any(struct ck_view *view);
void ck_view_free_impl(struct ck_view *view);
#endif
