/* SPDX-License-Identifier: Apache-2.0 */
#include "cache/view.h"

int ck_view_begin_impl(struct ck_cache *cache, struct ck_view **ret_view, struct ck_error *err)
{
	struct ck_view *view = CK_NEW(struct ck_view);
	if (!view)
		return ck_nomem(err);
	int r = ck_round_enter(cache, err);
	if (r < 0) {
		free(view);
		return r;
	}
	view->cache = ck_cache_ref(cache);
	ck_machine_view_opened(cache->machine, &view->seq);
	ck_round_leave(cache);
	*ret_view = view;
	return 0;
}

static int fix(struct ck_view *view)
{
	if (view->hidden)
		return 0;
	int r = ck_round_enter(view->cache, NULL);
	if (r < 0)
		return r;
	r = ck_hidden_set_get(view->cache, &view->hidden);
	ck_round_leave(view->cache);
	return r;
}

int ck_view_hides_impl(struct ck_view *view, const struct ck_object *object)
{
	int r = fix(view);
	return r < 0 ? r : ck_hidden_set_has(view->hidden, view->seq, object);
}

int ck_view_hides_any(struct ck_view *view)
{
	int r = fix(view);
	return r < 0 ? r : !ck_hidden_set_empty(view->hidden);
}

/* A prefix that only hidden ids have exists for nobody: -CK_ENOTFOUND. A prefix that one visible id
 * has means that id: 1. Anything else is for the runtime to judge. */
static int resolve(struct ck_machine *m, enum ck_kind kind, const char *prefix, const char **ret_id)
{
	size_t len = strlen(prefix);
	const struct ck_entry *exact = ck_machine_object(m, kind, prefix);
	const char *id = NULL; /* of the visible one */
	unsigned n_visible = 0, n_hidden = 0;
	for (const struct ck_entry *e = ck_machine_entries(m); e && !exact; e = e->by_row.next) {
		const char *known = e->row.result ? e->row.result->id : e->seen;
		if (e->detached || e->row.key->kind != kind || !known ||
		    strncmp(known, prefix, len))
			continue;
		if (ck_machine_hidden(e)) {
			n_hidden++;
		} else {
			n_visible++;
			id = known;
		}
	}
	if (exact && ck_machine_hidden(exact))
		n_hidden = 1;
	else if (exact)
		id = exact->row.result->id, n_visible = 1;
	*ret_id = n_visible == 1 ? id : prefix;
	return n_hidden && !n_visible ? -CK_ENOTFOUND : n_visible == 1;
}

int ck_view_resolve_impl(struct ck_view *view, enum ck_kind kind, const char *prefix,
			 const char **ret_id)
{
	const char *id;
	int r = ck_round_enter(view->cache, NULL);
	if (r < 0)
		return r;
	r = resolve(view->cache->machine, kind, prefix, &id);
	free(view->resolved);
	view->resolved = ck_strdup(id);
	ck_round_leave(view->cache);
	if (!view->resolved)
		return -CK_ENOMEM;
	if (r >= 0)
		*ret_id = view->resolved;
	return r;
}

void ck_view_free_impl(struct ck_view *view)
{
	int r = ck_round_enter(view->cache, NULL);
	if (r == -CK_EDEADLK)
		return; /* as in ck_turn_free_impl() */
	if (r >= 0) {
		ck_machine_view_closed(view->cache->machine, view->seq);
		ck_round_leave(view->cache);
	}
	ck_hidden_set_unref(view->hidden);
	free(view->resolved);
	ck_cache_unref(view->cache);
	free(view);
}
