/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One consistent filter for one list. It is begun before the runtime is asked, so that tombstones
 * outlive the list (K21), and filled at its first question, in one round.
 */

#include "cache/hidden-set.h"
#include "cache/view.h"
#include "src/base/limits.h"

struct ck_view {
	struct ck_cache *cache;
	uint64_t seq;
	struct ck_hidden_set *hidden; /* since its first question */
	char *resolved;
};

struct view_op {
	struct ck_op op;
	struct ck_view *view;
	enum ck_kind kind;
	const struct ck_object *objects;
	size_t n;
	const char *prefix;
	int r;
};

static void run_begin(struct ck_cache *cache, struct ck_op *op)
{
	ck_machine_view_opened(cache->machine, &((struct view_op *)(void *)op)->view->seq);
}

int ck_view_begin_impl(struct ck_cache *cache, struct ck_view **ret_view, struct ck_error *err)
{
	struct ck_view *view = CK_NEW(struct ck_view);
	if (!view)
		return ck_nomem(err);
	view->cache = ck_cache_ref(cache);
	struct view_op begin = { .op.run = run_begin, .view = view };
	int r = ck_cache_do(cache, &begin.op);
	if (r < 0) {
		ck_cache_unref(cache);
		free(view);
		return ck_fail(err, -r, "%s", ck_strerror(-r));
	}
	*ret_view = view;
	return 0;
}

static void run_freeze(struct ck_cache *cache, struct ck_op *op)
{
	struct view_op *freeze = (struct view_op *)(void *)op;
	freeze->r = ck_hidden_set_get(cache, &freeze->view->hidden);
}

int ck_view_hides_impl(struct ck_view *view, const struct ck_object *object)
{
	struct view_op freeze = { .op.run = run_freeze, .view = view };
	int r = view->hidden ? 0 : ck_cache_do(view->cache, &freeze.op);
	r = r < 0 ? r : freeze.r;
	return r < 0 ? r : ck_hidden_set_has(view->hidden, object);
}

static void run_shows(struct ck_cache *cache, struct ck_op *op)
{
	struct view_op *shows = (struct view_op *)(void *)op;
	const struct ck_entry *e = ck_machine_object(cache->machine, shows->kind, shows->prefix);
	shows->r = e && !ck_machine_hidden(e);
}

int ck_view_shows_impl(struct ck_view *view, enum ck_kind kind, const char *id)
{
	struct view_op shows = { .op.run = run_shows, .view = view, .kind = kind, .prefix = id };
	int r = ck_cache_do(view->cache, &shows.op);
	return r < 0 ? r : shows.r;
}

/* an id's prefix that hidden ids share does not exist for anybody; one that a single visible id
 * shares means that one */
static void run_resolve(struct ck_cache *cache, struct ck_op *op)
{
	struct view_op *resolve = (struct view_op *)(void *)op;
	size_t len = strlen(resolve->prefix);
	const struct ck_entry *visible = NULL,
			      *exact = ck_machine_object(cache->machine, resolve->kind,
							 resolve->prefix);
	unsigned n_visible = 0, n_hidden = 0;
	for (const struct ck_entry *e = ck_machine_entries(cache->machine); e && !exact;
	     e = e->by_row.next) {
		const char *known = e->row.result ? e->row.result->id : e->seen;
		if (e->detached || e->row.key->kind != resolve->kind || !known ||
		    strncmp(known, resolve->prefix, len))
			continue;
		if (ck_machine_hidden(e)) {
			n_hidden++;
		} else {
			n_visible++;
			visible = e;
		}
	}
	if (exact && ck_machine_hidden(exact))
		n_hidden = 1;
	else if (exact)
		visible = exact, n_visible = 1;
	resolve->r = n_hidden && !n_visible;
	const char *id =
		n_visible == 1 ? visible->row.result->id : resolve->prefix; /* unknown or ambiguous: the runtime's business */
	free(resolve->view->resolved);
	resolve->view->resolved = ck_strdup(id);
	if (!resolve->view->resolved)
		resolve->r = -CK_ENOMEM;
}

int ck_view_resolve_impl(struct ck_view *view, enum ck_kind kind, const char *prefix,
			 const char **ret_id)
{
	struct view_op resolve = {
		.op.run = run_resolve, .view = view, .kind = kind, .prefix = prefix
	};
	int r = ck_cache_do(view->cache, &resolve.op);
	if (r < 0)
		return r;
	if (resolve.r == 0)
		*ret_id = view->resolved;
	return resolve.r;
}

static void run_listed(struct ck_cache *cache, struct ck_op *op)
{
	struct view_op *listed = (struct view_op *)(void *)op;
	ck_machine_listed(cache->machine, listed->kind, listed->view->seq, true, listed->objects,
			  listed->n);
}

int ck_view_listed_impl(struct ck_view *view, enum ck_kind kind, const struct ck_object *objects,
			size_t n)
{
	struct view_op listed = {
		.op.run = run_listed, .view = view, .kind = kind, .objects = objects, .n = n
	};
	return ck_cache_do(view->cache, &listed.op);
}

static void run_end(struct ck_cache *cache, struct ck_op *op)
{
	ck_machine_view_closed(cache->machine, ((struct view_op *)(void *)op)->view->seq);
}

bool ck_view_in_child(const struct ck_view *view)
{
	return ck_cache_in_child(view->cache);
}

void ck_view_free_impl(struct ck_view *view)
{
	struct view_op end = { .op.run = run_end, .view = view };
	if (ck_cache_do(view->cache, &end.op) == -CK_EDEADLK)
		return; /* as with turns */
	ck_hidden_set_unref(view->hidden);
	free(view->resolved);
	ck_cache_unref(view->cache);
	free(view);
}
