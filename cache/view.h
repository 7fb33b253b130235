/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_CACHE_VIEW_H
#define CK_CACHE_VIEW_H
/* What src/api.c calls once it has checked the arguments; the contracts stand in crikeep.h. */
#include "cache/cache.h"

int ck_view_begin_impl(struct ck_cache *cache, struct ck_view **ret_view, struct ck_error *err);
int ck_view_hides_impl(struct ck_view *view, const struct ck_object *object);
int ck_view_shows_impl(struct ck_view *view, enum ck_kind kind, const char *id);
int ck_view_resolve_impl(struct ck_view *view, enum ck_kind kind, const char *prefix,
			 const char **ret_id);
int ck_view_listed_impl(struct ck_view *view, enum ck_kind kind, const struct ck_object *objects,
			size_t n);
bool ck_view_in_child(const struct ck_view *view);
void ck_view_free_impl(struct ck_view *view);
#endif
