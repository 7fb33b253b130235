/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One consistent filter for one list. It is begun before the runtime is asked, so that tombstones outlive the list (K21), and
 * filled at its first question, in one round.
 */
#include <unistd.h>

#include "cache/view.h"
#include "src/base/limits.h"

struct hidden_key { /* being made or evicted without an id: hidden by its key, but for ids known to be visible */
	struct ck_key *key;
	char **visible;
	size_t n;
};

struct ck_view {
	struct ck_cache *cache;
	uint64_t seq;
	bool frozen;
	char **ids[CK_CONTAINER + 1]; /* hidden, sorted */
	size_t ids_n[CK_CONTAINER + 1];
	struct hidden_key *keys;
	size_t keys_n;
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

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int add_text(char ***texts, size_t *n, const char *text)
{
	if ((*n & (*n - 1)) == 0) { /* grows at powers of two */
		char **grown = ck_realloc(*texts, (*n ? 2 * *n : 1) * sizeof(char *));
		if (!grown)
			return -CK_ENOMEM;
		*texts = grown;
	}
	char *copy = ck_strdup(text);
	if (!copy)
		return -CK_ENOMEM;
	(*texts)[(*n)++] = copy;
	return 0;
}

static int add_key(struct ck_view *view, const struct ck_entry *e)
{
	struct hidden_key *keys = ck_realloc(view->keys, (view->keys_n + 1) * sizeof(*keys));
	if (!keys)
		return -CK_ENOMEM;
	view->keys = keys;
	struct hidden_key *hidden = &keys[view->keys_n];
	*hidden = (struct hidden_key){ 0 };
	if (ck_key_dup(e->row.key, &hidden->key) < 0)
		return -CK_ENOMEM;
	view->keys_n++;
	for (const struct ck_entry *other = ck_machine_pod_first(e); other; other = ck_machine_pod_next(other))
		if (!ck_machine_hidden(other) && other->row.made && ck_key_same(other->row.key, e->row.key) &&
		    add_text(&hidden->visible, &hidden->n, other->row.made->id) < 0)
			return -CK_ENOMEM;
	return 0;
}

static void view_clear(struct ck_view *view)
{
	for (int kind = 0; kind <= CK_CONTAINER; kind++) {
		for (size_t i = 0; i < view->ids_n[kind]; i++)
			free(view->ids[kind][i]);
		free(view->ids[kind]);
		view->ids[kind] = NULL;
		view->ids_n[kind] = 0;
	}
	for (size_t k = 0; k < view->keys_n; k++) {
		for (size_t i = 0; i < view->keys[k].n; i++)
			free(view->keys[k].visible[i]);
		free(view->keys[k].visible);
		ck_key_free(view->keys[k].key);
	}
	free(view->keys);
	view->keys = NULL;
	view->keys_n = 0;
}

static void run_freeze(struct ck_cache *cache, struct ck_op *op)
{
	struct view_op *freeze = (struct view_op *)(void *)op;
	struct ck_view *view = freeze->view;
	for (const struct ck_entry *e = ck_machine_entries(cache->machine); e && freeze->r == 0; e = e->by_row.next) {
		if (!ck_machine_hidden(e) || e->detached)
			continue;
		enum ck_kind kind = e->row.key->kind;
		const char *id = e->row.made ? e->row.made->id : e->seen;
		if (id)
			freeze->r = add_text(&view->ids[kind], &view->ids_n[kind], id);
		if (!e->row.made && freeze->r == 0)
			freeze->r = add_key(view, e);
	}
}

static int view_freeze(struct ck_view *view)
{
	struct view_op freeze = { .op.run = run_freeze, .view = view };
	if (view->frozen)
		return 0;
	int r = ck_cache_do(view->cache, &freeze.op);
	r = r < 0 ? r : freeze.r;
	if (r < 0) {
		view_clear(view);
		return r;
	}
	for (int kind = CK_SANDBOX; kind <= CK_CONTAINER; kind++)
		if (view->ids_n[kind])
			qsort(view->ids[kind], view->ids_n[kind], sizeof(char *), by_text);
	view->frozen = true;
	return 0;
}

int ck_view_hides_impl(struct ck_view *view, const struct ck_object *object)
{
	int r = view_freeze(view);
	if (r < 0)
		return r;
	enum ck_kind kind = object->kind;
	if (view->ids_n[kind] && bsearch(&object->id, view->ids[kind], view->ids_n[kind], sizeof(char *), by_text))
		return 1;
	if (!view->keys_n)
		return 0;
	struct ck_key *key;
	r = ck_key_from_object(object, &key, NULL);
	if (r < 0)
		return r == -CK_ENOMEM ? r : 0; /* names over the limits are none of ours */
	for (size_t k = 0; k < view->keys_n && r == 0; k++) {
		if (!ck_key_same(view->keys[k].key, key))
			continue;
		r = 1;
		for (size_t i = 0; i < view->keys[k].n; i++)
			r = r && strcmp(view->keys[k].visible[i], object->id);
	}
	ck_key_free(key);
	return r;
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

/* an id's prefix that hidden ids share does not exist for anybody; one that a single visible id shares means that one */
static void run_resolve(struct ck_cache *cache, struct ck_op *op)
{
	struct view_op *resolve = (struct view_op *)(void *)op;
	size_t len = strlen(resolve->prefix);
	const struct ck_entry *visible = NULL, *exact = ck_machine_object(cache->machine, resolve->kind, resolve->prefix);
	unsigned n_visible = 0, n_hidden = 0;
	for (const struct ck_entry *e = ck_machine_entries(cache->machine); e && !exact; e = e->by_row.next) {
		const char *known = e->row.made ? e->row.made->id : e->seen;
		if (e->detached || e->row.key->kind != resolve->kind || !known || strncmp(known, resolve->prefix, len))
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
		n_visible == 1 ? visible->row.made->id : resolve->prefix; /* unknown or ambiguous: the runtime's business */
	free(resolve->view->resolved);
	resolve->view->resolved = ck_strdup(id);
	if (!resolve->view->resolved)
		resolve->r = -CK_ENOMEM;
}

int ck_view_resolve_impl(struct ck_view *view, enum ck_kind kind, const char *prefix, const char **ret_id)
{
	struct view_op resolve = { .op.run = run_resolve, .view = view, .kind = kind, .prefix = prefix };
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
	ck_machine_listed(cache->machine, listed->kind, listed->view->seq, true, listed->objects, listed->n);
}

int ck_view_listed_impl(struct ck_view *view, enum ck_kind kind, const struct ck_object *objects, size_t n)
{
	struct view_op listed = { .op.run = run_listed, .view = view, .kind = kind, .objects = objects, .n = n };
	return ck_cache_do(view->cache, &listed.op);
}

static void run_end(struct ck_cache *cache, struct ck_op *op)
{
	ck_machine_view_closed(cache->machine, ((struct view_op *)(void *)op)->view->seq);
}

bool ck_view_in_child(const struct ck_view *view)
{
	return view->cache->pid != getpid();
}

void ck_view_free_impl(struct ck_view *view)
{
	struct view_op end = { .op.run = run_end, .view = view };
	if (ck_cache_do(view->cache, &end.op) == -CK_EDEADLK)
		return; /* as with turns */
	view_clear(view);
	free(view->resolved);
	ck_cache_unref(view->cache);
	free(view);
}
