/* SPDX-License-Identifier: Apache-2.0 */
/* What the machine asks from inside a round: digests, comparisons, plugins, row ids, chance. */
#include "cache/cache.h"

static int record(void *user, const struct ck_fingerprint *fp, struct ck_record *ret_record)
{
	(void)user;
	return ck_record_make(fp, ret_record, NULL);
}

static enum ck_relation compare(void *user, struct ck_entry *e, const struct ck_fingerprint *fp,
				struct ck_difference *ret)
{
	struct ck_cache *cache = user;
	struct ck_record *record = &e->row.record;
	enum ck_relation relation = ck_record_compare(record, fp, &cache->compare, ret);
	if (relation != CK_RELATION_NEEDS_DIGESTS)
		return relation;
	int r = ck_store_digests(cache->store, e->row.id, record, NULL);
	if (r == -CK_EDAMAGED)
		cache->damaged = true;
	if (r == -CK_EDAMAGED || r == -CK_ENOTFOUND)
		return CK_RELATION_NOT_COMPARABLE; /* lost with a damaged file */
	if (r < 0)
		return CK_RELATION_NEEDS_DIGESTS; /* unreadable now, which proves nothing */
	relation = ck_record_compare(record, fp, &cache->compare, ret);
	ck_record_fini(record);
	return relation;
}

static void set_image(void *user, struct ck_entry *e, const struct ck_fingerprint *fp)
{
	(void)user;
	ck_record_set_image_id(&e->row.record, fp);
}

void ck_told_fill(struct ck_told *told, const struct ck_entry *e)
{
	const struct ck_key *key = e->row.key;
	*told = (struct ck_told){
		.size = sizeof(*told),
		.entry = e->row.id,
		.kind = key->kind,
		.id = e->row.result ? e->row.result->id : "",
		.pod_name = key->pod_name,
		.pod_namespace = key->pod_namespace,
		.pod_uid = key->pod_uid,
		.sandbox_id = key->sandbox_id,
		.container_name = key->container,
		.attempt = key->attempt,
		.told = e->row.told ? e->row.told : "",
	};
}

static int choose(void *user, const struct ck_entry *e, char *names, size_t size)
{
	struct ck_cache *cache = user;
	struct ck_told told;
	ck_told_fill(&told, e);
	return cache->hooks.choose ? cache->hooks.choose(&told, names, size, cache->hooks.userdata)
				   : 0;
}

static void released(void *user, const struct ck_entry *e)
{
	struct ck_cache *cache = user;
	struct ck_told told;
	if (!cache->hooks.released)
		return;
	ck_told_fill(&told, e);
	told.gone = e->row.state == CK_STATE_GONE;
	cache->hooks.released(&told, cache->hooks.userdata);
}

static void committed(void *user, const struct ck_entry *e)
{
	struct ck_cache *cache = user;
	struct ck_told told;
	if (!cache->host.committed)
		return;
	ck_told_fill(&told, e);
	cache->host.committed(&told, cache->host.userdata);
}

static uint64_t jitter(void *user, uint64_t below)
{
	struct ck_cache *cache = user;
	cache->random =
		cache->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return below ? (cache->random >> 16) % below : 0;
}

static uint64_t next_id(void *user)
{
	struct ck_cache *cache = user;
	return ck_store_next_id(cache->store);
}

const struct ck_machine_ops ck_machine_ops = {
	.record = record,
	.compare = compare,
	.set_image = set_image,
	.choose = choose,
	.released = released,
	.committed = committed,
	.jitter = jitter,
	.next_id = next_id,
};
