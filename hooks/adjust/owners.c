/* SPDX-License-Identifier: Apache-2.0 */
/* Who owns which field of a container: one list of claims, searched from its start. It is short,
 * and its length is bounded. */
#include "hooks/adjust/adjust-int.h"
#include "src/base/limits.h"

static struct ck_claim *find(const struct ck_claims *claims, int field, const char *key)
{
	for (size_t i = 0; i < claims->n; i++) {
		struct ck_claim *claim = &claims->list[i];
		if (claim->field == field && (!key || !strcmp(claim->key, key)))
			return claim;
	}
	return NULL;
}

static int add(const struct ck_claimant *by, struct ck_claim claim, struct ck_error *err)
{
	struct ck_claims *claims = by->claims;
	if (claims->n == CK_NRI_ENTRIES_MAX)
		return ck_fail(err, CK_ETOOBIG,
			       "plugins change more than %u things of one container",
			       CK_NRI_ENTRIES_MAX);
	if (claims->n == claims->room) {
		size_t room = claims->room ? 2 * claims->room : 8;
		struct ck_claim *list = ck_arena_alloc(by->arena, room * sizeof(*list));
		if (!list)
			return ck_arena_fail(by->arena, err);
		if (claims->n)
			memcpy(list, claims->list, claims->n * sizeof(*list));
		claims->list = list;
		claims->room = room;
	}
	claims->list[claims->n++] = claim;
	return 0;
}

static const char *field_name(int field)
{
	const ProtobufCEnumValue *value =
		protobuf_c_enum_descriptor_get_value(&ck__nri__field__descriptor, field);
	return value ? value->name : "";
}

int ck_claim(const struct ck_claimant *by, int field, const char *key, struct ck_error *err)
{
	struct ck_claim mine = { .field = field, .key = key, .plugin = by->plugin };
	struct ck_claim *claim = find(by->claims, field, key);
	if (!claim)
		return add(by, mine, err);
	bool free_for_us = claim->cleared && (claim->open || !strcmp(claim->plugin, by->plugin));
	if (!free_for_us && !by->later_wins)
		return ck_fail(err, CK_ECONFLICT,
			       "plugins \"%s\" and \"%s\" both tried to set %s%s%s", by->plugin,
			       claim->plugin, field_name(field), key ? " " : "", key ? key : "");
	*claim = mine;
	return 0;
}

int ck_claim_clear(const struct ck_claimant *by, int field, const char *key, bool open,
		   struct ck_error *err)
{
	struct ck_claim mine = {
		.field = field, .key = key, .plugin = by->plugin, .cleared = true, .open = open
	};
	struct ck_claim *claim = find(by->claims, field, key);
	if (!claim)
		return add(by, mine, err);
	mine.open = open && claim->cleared && claim->open;
	*claim = mine;
	return 0;
}

int ck_claim_share(const struct ck_claimant *by, int field, struct ck_error *err)
{
	struct ck_claim *claim = find(by->claims, field, NULL);
	if (!claim)
		return add(by, (struct ck_claim){ .field = field, .plugin = by->plugin }, err);
	const char *last = strrchr(claim->plugin, ',');
	if (!strcmp(last ? last + 1 : claim->plugin, by->plugin))
		return 0;
	const char *all = ck_arena_printf(by->arena, "%s,%s", claim->plugin, by->plugin);
	if (!all)
		return ck_arena_fail(by->arena, err);
	claim->plugin = all;
	return 0;
}

/* ---- as OwningPlugins ------------------------------------------------------------------------ */

/* field 2 of a map's entry */
static void write_owner(struct ck_writer *out, const struct ck_claim *claim)
{
	size_t text = ck_writer_open(out, 2);
	if (out->r == 0 && claim->cleared)
		out->r = ck_bytes_add_text(&out->bytes, "-");
	if (out->r == 0)
		out->r = ck_bytes_add_text(&out->bytes, claim->plugin);
	ck_writer_close(out, text);
}

static void write_keys(struct ck_writer *out, const struct ck_claims *claims, int field)
{
	size_t entry = ck_writer_open(out, 2); /* compound */
	ck_writer_number(out, 1, (uint64_t)field);
	size_t owners = ck_writer_open(out, 2);
	for (size_t i = 0; i < claims->n; i++) {
		if (claims->list[i].field != field || !claims->list[i].key)
			continue;
		size_t key = ck_writer_open(out, 1);
		ck_writer_text(out, 1, claims->list[i].key);
		write_owner(out, &claims->list[i]);
		ck_writer_close(out, key);
	}
	ck_writer_close(out, owners);
	ck_writer_close(out, entry);
}

void ck_claims_write(const struct ck_claims *claims, struct ck_writer *out)
{
	uint64_t written = 0; /* a bit for each field with keys */
	if (!claims->n)
		return;
	size_t entry = ck_writer_open(out, 1);
	ck_writer_text(out, 1, claims->id);
	size_t owners = ck_writer_open(out, 2);
	for (size_t i = 0; i < claims->n; i++) {
		const struct ck_claim *claim = &claims->list[i];
		uint64_t bit = UINT64_C(1) << claim->field;
		if (!claim->key) {
			size_t simple = ck_writer_open(out, 1);
			ck_writer_number(out, 1, (uint64_t)claim->field);
			write_owner(out, claim);
			ck_writer_close(out, simple);
		} else if (!(written & bit)) {
			written |= bit;
			write_keys(out, claims, claim->field);
		}
	}
	ck_writer_close(out, owners);
	ck_writer_close(out, entry);
}
