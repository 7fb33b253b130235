/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "cache/hidden-set.h"

/* Made or evicted, and its id is not known: every object with its key is hidden, except for the ids
 * that are known to be visible. */
struct hidden_key {
	struct ck_key *key;
	char **visible;
	size_t n;
};

/* A visible id that an object had before, which was destroyed: an older list may still show that
 * one. */
struct reused_id {
	enum ck_kind kind;
	char *id;
	uint64_t since; /* of the machine: hidden in views that began before */
};

struct ck_hidden_set {
	unsigned refs;  /* atomic: the cache's, and one of every view */
	uint64_t moves; /* the machine's, when it was made */
	char **ids[CK_CONTAINER + 1]; /* sorted */
	size_t ids_n[CK_CONTAINER + 1];
	struct hidden_key *keys; /* sorted */
	size_t keys_n;
	struct reused_id *reused; /* few: a runtime makes up its ids */
	size_t reused_n;
};

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* 0 if ck_key_same() */
static int by_key(const void *of_a, const void *of_b)
{
	const struct ck_key *a = ((const struct hidden_key *)of_a)->key;
	const struct ck_key *b = ((const struct hidden_key *)of_b)->key;
	if (a->kind != b->kind || a->attempt != b->attempt)
		return a->kind != b->kind        ? (int)a->kind - (int)b->kind
		       : a->attempt < b->attempt ? -1
						 : 1;
	if (a->kind == CK_CONTAINER) {
		int r = strcmp(a->sandbox_id, b->sandbox_id);
		return r ? r : strcmp(a->container, b->container);
	}
	int r = strcmp(a->pod_uid, b->pod_uid);
	r = r ? r : strcmp(a->pod_name, b->pod_name);
	return r ? r : strcmp(a->pod_namespace, b->pod_namespace);
}

/* ---- making a set ---------------------------------------------------------------------------- */

static int add_text(char ***texts, size_t *n, const char *text)
{
	char **grown = ck_grown(*texts, *n, sizeof(*grown));
	if (!grown)
		return -CK_ENOMEM;
	*texts = grown;
	if (!(grown[*n] = ck_strdup(text)))
		return -CK_ENOMEM;
	++*n;
	return 0;
}

static int add_key(struct ck_hidden_set *hidden, const struct ck_entry *e)
{
	struct hidden_key *keys = ck_grown(hidden->keys, hidden->keys_n, sizeof(*keys));
	if (!keys)
		return -CK_ENOMEM;
	hidden->keys = keys;
	struct hidden_key *key = &keys[hidden->keys_n];
	*key = (struct hidden_key){ 0 };
	if (ck_key_dup(e->row.key, &key->key) < 0)
		return -CK_ENOMEM;
	hidden->keys_n++;
	for (const struct ck_entry *other = ck_machine_same_key(e, NULL); other;
	     other = ck_machine_same_key(e, other))
		if (!ck_machine_hidden(other) && other->row.result &&
		    add_text(&key->visible, &key->n, other->row.result->id) < 0)
			return -CK_ENOMEM;
	return 0;
}

static int add_reused(struct ck_hidden_set *hidden, const struct ck_entry *e)
{
	struct reused_id *all = ck_grown(hidden->reused, hidden->reused_n, sizeof(*all));
	if (!all)
		return -CK_ENOMEM;
	hidden->reused = all;
	struct reused_id *reused = &all[hidden->reused_n];
	*reused = (struct reused_id){ .kind = e->row.key->kind,
				      .id = ck_strdup(e->row.result->id),
				      .since = e->id_since };
	hidden->reused_n += reused->id != NULL;
	return reused->id ? 0 : -CK_ENOMEM;
}

static int fill(struct ck_hidden_set *hidden, struct ck_machine *m)
{
	int r = 0;
	for (const struct ck_entry *e = ck_machine_entries(m); e && r == 0; e = e->by_row.next) {
		if (!ck_machine_hidden(e) && e->id_since && !e->detached)
			r = add_reused(hidden, e);
		if (!ck_machine_hidden(e) || e->detached)
			continue;
		enum ck_kind kind = e->row.key->kind;
		const char *id = e->row.result ? e->row.result->id : e->seen;
		if (id)
			r = add_text(&hidden->ids[kind], &hidden->ids_n[kind], id);
		if (!e->row.result && r == 0)
			r = add_key(hidden, e);
	}
	for (int kind = CK_SANDBOX; kind <= CK_CONTAINER; kind++)
		if (hidden->ids_n[kind])
			qsort(hidden->ids[kind], hidden->ids_n[kind], sizeof(char *), by_text);
	if (hidden->keys_n)
		qsort(hidden->keys, hidden->keys_n, sizeof(*hidden->keys), by_key);
	return r;
}

int ck_hidden_set_get(struct ck_cache *cache, struct ck_hidden_set **ret_hidden)
{
	if (!cache->hidden || cache->hidden->moves != ck_machine_moves(cache->machine)) {
		struct ck_hidden_set *hidden = CK_NEW(struct ck_hidden_set);
		if (!hidden)
			return -CK_ENOMEM;
		hidden->refs = 1;
		hidden->moves = ck_machine_moves(cache->machine);
		int r = fill(hidden, cache->machine);
		if (r < 0) {
			ck_hidden_set_unref(hidden);
			return r;
		}
		ck_hidden_set_unref(cache->hidden);
		cache->hidden = hidden;
	}
	__atomic_add_fetch(&cache->hidden->refs, 1, __ATOMIC_RELAXED);
	*ret_hidden = cache->hidden;
	return 0;
}

void ck_hidden_set_unref(struct ck_hidden_set *hidden)
{
	if (!hidden || __atomic_sub_fetch(&hidden->refs, 1, __ATOMIC_ACQ_REL))
		return;
	for (int kind = 0; kind <= CK_CONTAINER; kind++) {
		for (size_t i = 0; i < hidden->ids_n[kind]; i++)
			free(hidden->ids[kind][i]);
		free(hidden->ids[kind]);
	}
	for (size_t k = 0; k < hidden->keys_n; k++) {
		for (size_t i = 0; i < hidden->keys[k].n; i++)
			free(hidden->keys[k].visible[i]);
		free(hidden->keys[k].visible);
		ck_key_free(hidden->keys[k].key);
	}
	free(hidden->keys);
	for (size_t i = 0; i < hidden->reused_n; i++)
		free(hidden->reused[i].id);
	free(hidden->reused);
	free(hidden);
}

/* ---- asking a set ---------------------------------------------------------------------------- */

bool ck_hidden_set_has(const struct ck_hidden_set *hidden, uint64_t begun_seq,
		       const struct ck_object *object)
{
	enum ck_kind kind = object->kind;
	for (size_t i = 0; i < hidden->reused_n; i++)
		if (hidden->reused[i].kind == kind && begun_seq <= hidden->reused[i].since &&
		    !strcmp(hidden->reused[i].id, object->id))
			return true;
	if (hidden->ids_n[kind] &&
	    bsearch(&object->id, hidden->ids[kind], hidden->ids_n[kind], sizeof(char *), by_text))
		return true;
	if (!hidden->keys_n)
		return false;
	/* not copied: a key that is over the limits is none of ours, and is not found */
	struct ck_key key = {
		.kind = kind,
		.attempt = object->attempt,
		.pod_namespace = ck_or_empty(object->pod_namespace),
		.pod_name = ck_or_empty(object->pod_name),
		.pod_uid = ck_or_empty(object->pod_uid),
		.sandbox_id = ck_or_empty(object->sandbox_id),
		.container = ck_or_empty(object->container_name),
	};
	const struct hidden_key wanted = { .key = &key };
	const struct hidden_key *found =
		bsearch(&wanted, hidden->keys, hidden->keys_n, sizeof(wanted), by_key);
	bool hides = found;
	for (size_t i = 0; hides && i < found->n; i++)
		hides = strcmp(found->visible[i], object->id) != 0;
	return hides;
}

bool ck_hidden_set_empty(const struct ck_hidden_set *hidden)
{
	return !hidden->ids_n[CK_SANDBOX] && !hidden->ids_n[CK_CONTAINER] && !hidden->keys_n &&
	       !hidden->reused_n;
}
