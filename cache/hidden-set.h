/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_CACHE_HIDDEN_SET_H
#define CK_CACHE_HIDDEN_SET_H
/*
 * What is hidden at one moment, by id and by key. A set never changes, so all views that begin
 * while nothing moves share one. With 500 waiting creates a list costs no more than with none.
 */
#include "cache/cache.h"

struct ck_hidden_set;

/* ck_hidden_set_get - inside the round: as it is now; a reference. -CK_ENOMEM */
int ck_hidden_set_get(struct ck_cache *cache, struct ck_hidden_set **ret_hidden);
/* any thread; NULL is fine */
void ck_hidden_set_unref(struct ck_hidden_set *hidden);
/* any thread; @begun_seq: the machine's sequence when the list was begun */
bool ck_hidden_set_has(const struct ck_hidden_set *hidden, uint64_t begun_seq,
		       const struct ck_object *object);
/* any thread: has it nothing, of any view? */
bool ck_hidden_set_empty(const struct ck_hidden_set *hidden);
#endif
