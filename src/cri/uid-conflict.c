/* SPDX-License-Identifier: Apache-2.0 */
#include "src/base/hash.h"
#include "src/cri/uid-conflict.h"

struct ck_conflict_known {
	enum ck_conflict_what what;
	char *uid;
};

/* READY ones come first, so that two of them are neighbours. Older ones come before newer ones, so
 * that every list gives the same pair. */
static int by_uid(const void *a, const void *b)
{
	const struct ck_object *x = *(const struct ck_object *const *)a,
			       *y = *(const struct ck_object *const *)b;
	int r = strcmp(x->pod_uid, y->pod_uid);
	if (!r)
		r = (y->condition == CK_CONDITION_READY) - (x->condition == CK_CONDITION_READY);
	if (!r)
		r = (x->created_at > y->created_at) - (x->created_at < y->created_at);
	return r ? r : strcmp(ck_or_empty(x->id), ck_or_empty(y->id));
}

static int known_compare(const void *a, const void *b)
{
	const struct ck_conflict_known *x = a, *y = b;
	int r = strcmp(x->uid, y->uid);
	return r ? r : (int)x->what - (int)y->what;
}

static bool other_pod(const struct ck_object *a, const struct ck_object *b)
{
	return strcmp(ck_or_empty(a->pod_name), ck_or_empty(b->pod_name)) ||
	       strcmp(ck_or_empty(a->pod_namespace), ck_or_empty(b->pod_namespace));
}

void ck_conflicts_fini(struct ck_conflicts *conflicts)
{
	for (size_t i = 0; i < conflicts->n; i++)
		free(conflicts->known[i].uid);
	free(conflicts->known);
	*conflicts = (struct ck_conflicts){ 0 };
}

struct found {
	struct ck_conflicts now;
	const struct ck_object *(*pairs)[2]; /* beside now.known */
	size_t room;
};

static int found_add(struct found *found, enum ck_conflict_what what, const struct ck_object *a,
		     const struct ck_object *b)
{
	if (found->now.n == found->room) {
		size_t room = found->room ? 2 * found->room : 4;
		struct ck_conflict_known *known =
			ck_realloc(found->now.known, room * sizeof(*known));
		if (!known)
			return -CK_ENOMEM;
		found->now.known = known;
		void *pairs = ck_realloc(found->pairs, room * sizeof(*found->pairs));
		if (!pairs)
			return -CK_ENOMEM;
		found->pairs = pairs;
		found->room = room;
	}
	char *uid = ck_strdup(a->pod_uid);
	if (!uid)
		return -CK_ENOMEM;
	found->pairs[found->now.n][0] = a;
	found->pairs[found->now.n][1] = b;
	found->now.known[found->now.n++] = (struct ck_conflict_known){ .what = what, .uid = uid };
	return 0;
}

/* find - @sorted: by uid; @found is then sorted as well */
static int find(const struct ck_object *const *sorted, size_t n, struct found *found)
{
	int r = 0;
	for (size_t first = 0, end; first < n && r == 0; first = end) {
		for (end = first + 1;
		     end < n && !strcmp(sorted[end]->pod_uid, sorted[first]->pod_uid);)
			end++;
		if (end - first > 1 && sorted[first + 1]->condition == CK_CONDITION_READY)
			r = found_add(found, CK_CONFLICT_READY, sorted[first], sorted[first + 1]);
		for (size_t i = first + 1; i < end && r == 0; i++) {
			if (!other_pod(sorted[first], sorted[i]))
				continue;
			r = found_add(found, CK_CONFLICT_NAME, sorted[first], sorted[i]);
			break;
		}
	}
	return r;
}

/* of all that decides whether there are conflicts; the order does not matter. Lists that are not
 * the same have the same one by chance only, as four hashes of 32 bits go. Never 0 */
static uint64_t digest_of(const struct ck_object *objects, size_t n)
{
	uint64_t sum = n;
	for (size_t i = 0; i < n; i++) {
		const struct ck_object *o = &objects[i];
		const char *texts[] = { o->id, o->pod_uid, o->pod_name, o->pod_namespace };
		uint64_t hash = (uint64_t)o->kind << 8 | (uint64_t)o->condition;
		for (size_t t = 0; t < CK_COUNT(texts); t++) {
			const char *text = ck_or_empty(texts[t]);
			hash = (hash ^ ck_hash(text, strlen(text))) * UINT64_C(0x9e3779b97f4a7c15);
			hash ^= hash >> 29;
		}
		sum += hash;
	}
	return sum ? sum : 1;
}

ptrdiff_t ck_conflicts_look(struct ck_conflicts *conflicts, const struct ck_object *objects,
			    size_t n, ck_conflict_fn *fn, void *userdata)
{
	struct found found = { 0 };
	size_t m = 0;
	uint64_t digest = digest_of(objects, n);
	if (digest == conflicts->digest)
		return (ptrdiff_t)conflicts->n;
	const struct ck_object **sorted = ck_alloc((n + 1) * sizeof(*sorted));
	if (!sorted)
		return -CK_ENOMEM;
	for (size_t i = 0; i < n; i++)
		if (objects[i].kind == CK_SANDBOX && objects[i].pod_uid && objects[i].pod_uid[0])
			sorted[m++] = &objects[i];
	qsort(sorted, m, sizeof(*sorted), by_uid);
	int r = find(sorted, m, &found);
	if (r == 0) {
		for (size_t i = 0; i < found.now.n; i++)
			if (!conflicts->n ||
			    !bsearch(&found.now.known[i], conflicts->known, conflicts->n,
				     sizeof(*conflicts->known), known_compare))
				fn(found.now.known[i].what, found.pairs[i][0], found.pairs[i][1],
				   userdata);
		ck_conflicts_fini(conflicts);
		*conflicts = found.now;
		conflicts->digest = digest;
		found.now = (struct ck_conflicts){ 0 };
	}
	ck_conflicts_fini(&found.now);
	free(found.pairs);
	free(sorted);
	return r < 0 ? r : (ptrdiff_t)conflicts->n;
}
