/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All answers to one event: what is merged so far, who owns it, updates of other containers, and
 * evictions. merge.c merges a single adjustment.
 */
#include "hooks/adjust/adjust-int.h"
#include "src/base/limits.h"
#include "src/base/mem.h"

struct change { /* of another container */
	struct ck_claims claims;
	Ck__Nri__LinuxResources *resources;
	const char *plugins;
	bool ignore_failure;    /* all plugins that asked for it ignore its failure */
	struct ck_bytes packed; /* resources, encoded on demand */
	bool is_packed;
};

struct ck_adjust {
	struct ck_arena arena;
	enum { CREATE, UPDATE, OTHERS } kind;
	struct ck_bytes before;             /* Container or LinuxResources as it came */
	bool changed;                       /* a plugin changes the container itself */
	struct ck_claims claims;            /* of the container itself; its id */
	struct ck_merge merge;              /* CREATE */
	Ck__Nri__LinuxResources *resources; /* UPDATE: the requested ones, with changes */
	struct change *changes;
	size_t changes_n, changes_room;
	struct ck_adjust_eviction *evictions; /* their texts are the arena's */
	size_t evictions_n, evictions_room;
};

/* ---- begin and end --------------------------------------------------------------------------- */

static struct ck_adjust *adjust_new(const void *before, size_t len) /* NULL: out of memory */
{
	CK_AUTO(ck_adjust) *adjust = CK_NEW(struct ck_adjust);
	if (!adjust)
		return NULL;
	ck_arena_init(&adjust->arena, CK_NRI_MERGE_MAX);
	if (ck_bytes_add(&adjust->before, before, len) < 0)
		return NULL;
	return CK_TAKE(adjust);
}

/* The messages that collect the changes exist from the start. They are written only if they are not
 * empty. */
static int merge_init(struct ck_merge *merge, Ck__Nri__Container *container, struct ck_arena *arena,
		      struct ck_error *err)
{
	merge->seen = container;
	merge->args = container->args;
	merge->args_n = container->n_args;
	if (!(merge->sum = ck_arena_new(arena, &ck__nri__container_adjustment__descriptor)) ||
	    !(merge->linux_sum =
		      ck_arena_new(arena, &ck__nri__linux_container_adjustment__descriptor)) ||
	    !(merge->resources_sum = ck_arena_new(arena, &ck__nri__linux_resources__descriptor)))
		return ck_arena_fail(arena, err);
	if (!container->linux &&
	    !(container->linux = ck_arena_new(arena, &ck__nri__linux_container__descriptor)))
		return ck_arena_fail(arena, err);
	if (!container->linux->resources &&
	    !(container->linux->resources =
		      ck_arena_new(arena, &ck__nri__linux_resources__descriptor)))
		return ck_arena_fail(arena, err);
	return 0;
}

int ck_adjust_create(const void *container, size_t len, struct ck_adjust **ret_adjust,
		     struct ck_error *err)
{
	CK_AUTO(ck_adjust) *adjust = adjust_new(container, len);
	Ck__Nri__Container *unpacked;
	int r;
	if (!adjust)
		return ck_nomem(err);
	adjust->kind = CREATE;
	if ((r = ck_unpack(&adjust->arena, &ck__nri__container__descriptor, container, len,
			   &unpacked, err)) < 0)
		return ck_context(err, r, "the container");
	if ((r = merge_init(&adjust->merge, unpacked, &adjust->arena, err)) < 0)
		return r;
	adjust->claims.id = unpacked->id ? unpacked->id : "";
	*ret_adjust = CK_TAKE(adjust);
	return 0;
}

int ck_adjust_update(const char *container_id, const void *resources, size_t len,
		     struct ck_adjust **ret_adjust, struct ck_error *err)
{
	CK_AUTO(ck_adjust) *adjust = adjust_new(resources, len);
	int r;
	if (!adjust)
		return ck_nomem(err);
	adjust->kind = UPDATE;
	if ((r = ck_unpack(&adjust->arena, &ck__nri__linux_resources__descriptor, resources, len,
			   &adjust->resources, err)) < 0)
		return ck_context(err, r, "the resources");
	if (!(adjust->claims.id = ck_arena_strdup(&adjust->arena, container_id)))
		return ck_arena_fail(&adjust->arena, err);
	*ret_adjust = CK_TAKE(adjust);
	return 0;
}

int ck_adjust_others(struct ck_adjust **ret_adjust, struct ck_error *err)
{
	struct ck_adjust *adjust = adjust_new(NULL, 0);
	if (!adjust)
		return ck_nomem(err);
	adjust->kind = OTHERS;
	*ret_adjust = adjust;
	return 0;
}

void ck_adjust_free(struct ck_adjust *adjust)
{
	if (!adjust)
		return;
	for (size_t i = 0; i < adjust->changes_n; i++)
		ck_bytes_free(&adjust->changes[i].packed);
	free(adjust->changes);
	free(adjust->evictions);
	ck_bytes_free(&adjust->before);
	ck_arena_fini(&adjust->arena);
	free(adjust);
}

/* ---- other containers ------------------------------------------------------------------------ */

static int too_many(const struct ck_adjust *adjust, struct ck_error *err)
{
	if (adjust->changes_n + adjust->evictions_n < CK_NRI_CHANGES_MAX)
		return 0;
	return ck_fail(err, CK_ETOOBIG, "more than %u containers to update or to evict",
		       CK_NRI_CHANGES_MAX);
}

/* room for one more; too_many() keeps the size from overflowing */
static int grow(void *list, size_t n, size_t *room, size_t size, struct ck_error *err)
{
	void *p;
	if (n < *room)
		return 0;
	size_t more = *room ? 2 * *room : 4;
	memcpy(&p, list, sizeof(p));
	if (!(p = ck_realloc(p, more * size)))
		return ck_nomem(err);
	memcpy(list, &p, sizeof(p));
	*room = more;
	return 0;
}

static int find_change(struct ck_adjust *adjust, const char *id, struct change **ret_change,
		       struct ck_error *err)
{
	int r;
	for (size_t i = 0; i < adjust->changes_n; i++) {
		if (!strcmp(adjust->changes[i].claims.id, id)) {
			*ret_change = &adjust->changes[i];
			return 0;
		}
	}
	if ((r = too_many(adjust, err)) < 0 ||
	    (r = grow(&adjust->changes, adjust->changes_n, &adjust->changes_room,
		      sizeof(*adjust->changes), err)) < 0)
		return r;
	Ck__Nri__LinuxResources *resources =
		ck_arena_new(&adjust->arena, &ck__nri__linux_resources__descriptor);
	if (!resources)
		return ck_arena_fail(&adjust->arena, err);
	*ret_change = &adjust->changes[adjust->changes_n++];
	**ret_change = (struct change){
		.claims.id = id,
		.resources = resources,
		.ignore_failure = true,
	};
	return 0;
}

/* "10-a,20-b". Plugins answer one after the other, so only the last name can be @plugin already. */
static int add_plugin(struct ck_adjust *adjust, const char **plugins, const char *plugin,
		      struct ck_error *err)
{
	const char *last = *plugins ? strrchr(*plugins, ',') : NULL;
	last = last ? last + 1 : *plugins;
	if (last && !strcmp(last, plugin))
		return 0;
	const char *all =
		*plugins ? ck_arena_printf(&adjust->arena, "%s,%s", *plugins, plugin) : plugin;
	if (!all)
		return ck_arena_fail(&adjust->arena, err);
	*plugins = all;
	return 0;
}

/* Merge into *resources. An update whose failure is ignored changes nothing if another plugin owns
 * one of its fields. 1: changed, 0 */
static int merge_update(struct ck_adjust *adjust, Ck__Nri__LinuxResources **resources,
			const struct ck_claimant *by, const Ck__Nri__ContainerUpdate *update,
			struct ck_error *err)
{
	const Ck__Nri__LinuxResources *wanted = update->linux ? update->linux->resources : NULL;
	if (!wanted)
		return 0;
	if (!update->ignore_failure)
		return ck_merge_resources(*resources, by, wanted, err);
	CK_AUTO_BYTES struct ck_bytes packed = { 0 };
	Ck__Nri__LinuxResources *copy;
	struct ck_claims claims = *by->claims;
	int r = ck_pack(*resources, &packed, err);
	if (r < 0 || (r = ck_unpack(&adjust->arena, &ck__nri__linux_resources__descriptor, packed.p,
				    packed.len, &copy, err)) < 0)
		return r;
	if (claims.n) {
		claims.list = ck_arena_alloc(&adjust->arena, claims.room * sizeof(*claims.list));
		if (!claims.list)
			return ck_arena_fail(&adjust->arena, err);
		memcpy(claims.list, by->claims->list, claims.n * sizeof(*claims.list));
	}
	struct ck_error why = { 0 };
	r = ck_merge_resources(*resources, by, wanted, &why);
	if (r == -CK_ECONFLICT) {
		*resources = copy;
		*by->claims = claims;
		return 0;
	}
	if (r < 0 && err)
		*err = why;
	return r;
}

static int merge_other(struct ck_adjust *adjust, struct ck_claimant by, const char *id,
		       const Ck__Nri__ContainerUpdate *update, struct ck_error *err)
{
	struct change *change = NULL;
	int r = find_change(adjust, id, &change, err);
	if (r < 0 || CK_NEVER(!change))
		return r;
	by.claims = &change->claims;
	r = merge_update(adjust, &change->resources, &by, update, err);
	if (r < 0)
		return r;
	if (r > 0) {
		change->ignore_failure &= update->ignore_failure;
		change->is_packed = false;
		return add_plugin(adjust, &change->plugins, by.plugin, err);
	}
	if (!change->plugins) /* it is new, and this update was empty */
		adjust->changes_n--;
	return 0;
}

static int merge_updates(struct ck_adjust *adjust, struct ck_claimant by, size_t n,
			 Ck__Nri__ContainerUpdate **updates, struct ck_error *err)
{
	for (size_t i = 0; i < n; i++) {
		const char *id = updates[i]->container_id ? updates[i]->container_id : "";
		int r;
		if (adjust->kind == OTHERS || strcmp(id, adjust->claims.id)) {
			r = merge_other(adjust, by, id, updates[i], err);
		} else if (adjust->kind == CREATE) {
			r = ck_fail(err, CK_EINVAL,
				    "plugin \"%s\" asked update of \"%s\" during creation",
				    by.plugin, id);
		} else {
			r = merge_update(adjust, &adjust->resources, &by, updates[i], err);
			adjust->changed |= r > 0;
		}
		if (r < 0)
			return r;
	}
	return 0;
}

/* the first reason for a container is kept */
static bool is_evicted(const struct ck_adjust *adjust, const char *id)
{
	for (size_t i = 0; i < adjust->evictions_n; i++) {
		if (!strcmp(adjust->evictions[i].container_id, id))
			return true;
	}
	return false;
}

static int take_evictions(struct ck_adjust *adjust, const char *plugin, size_t n,
			  Ck__Nri__ContainerEviction **evictions, struct ck_error *err)
{
	int r;
	for (size_t i = 0; i < n; i++) {
		const char *id = evictions[i]->container_id ? evictions[i]->container_id : "";
		const char *reason = evictions[i]->reason ? evictions[i]->reason : "";
		if (adjust->kind == CREATE && !strcmp(id, adjust->claims.id))
			return ck_fail(err, CK_EINVAL,
				       "plugin \"%s\" asked eviction of \"%s\" during creation",
				       plugin, id);
		if (is_evicted(adjust, id))
			continue;
		if ((r = too_many(adjust, err)) < 0 ||
		    (r = grow(&adjust->evictions, adjust->evictions_n, &adjust->evictions_room,
			      sizeof(*adjust->evictions), err)) < 0)
			return r;
		adjust->evictions[adjust->evictions_n++] =
			(struct ck_adjust_eviction){ id, reason, plugin };
	}
	return 0;
}

/* ---- one answer ------------------------------------------------------------------------------ */

/* What the kinds of answers have in common. */
struct answer {
	const Ck__Nri__ContainerAdjustment *adjust;
	size_t updates_n, evictions_n;
	Ck__Nri__ContainerUpdate **updates;
	Ck__Nri__ContainerEviction **evictions;
};

#define UNPACK(adjust, what, reply, len, message, err) \
	ck_unpack(&(adjust)->arena, &ck__nri__##what##__descriptor, reply, len, &(message), err)

static int unpack_answer(struct ck_adjust *adjust, enum ck_adjust_reply what, const void *reply,
			 size_t len, struct answer *ret_answer, struct ck_error *err)
{
	Ck__Nri__CreateContainerResponse *create;
	Ck__Nri__UpdateContainerResponse *update;
	Ck__Nri__StopContainerResponse *stop;
	Ck__Nri__SynchronizeResponse *synchronize;
	Ck__Nri__UpdateContainersRequest *containers;
	int r = -CK_EINVAL;
	switch (what) {
	case CK_REPLY_CREATE_CONTAINER:
		if ((r = UNPACK(adjust, create_container_response, reply, len, create, err)) == 0)
			*ret_answer =
				(struct answer){ create->adjust, create->n_update, create->n_evict,
						 create->update, create->evict };
		return r;
	case CK_REPLY_UPDATE_CONTAINER:
		if ((r = UNPACK(adjust, update_container_response, reply, len, update, err)) == 0)
			*ret_answer = (struct answer){ NULL, update->n_update, update->n_evict,
						       update->update, update->evict };
		return r;
	case CK_REPLY_STOP_CONTAINER:
		if ((r = UNPACK(adjust, stop_container_response, reply, len, stop, err)) == 0)
			*ret_answer = (struct answer){ .updates_n = stop->n_update,
						       .updates = stop->update };
		return r;
	case CK_REPLY_SYNCHRONIZE:
		if ((r = UNPACK(adjust, synchronize_response, reply, len, synchronize, err)) == 0)
			*ret_answer = (struct answer){ .updates_n = synchronize->n_update,
						       .updates = synchronize->update };
		return r;
	case CK_REPLY_UPDATE_CONTAINERS:
		if ((r = UNPACK(adjust, update_containers_request, reply, len, containers, err)) ==
		    0)
			*ret_answer =
				(struct answer){ NULL, containers->n_update, containers->n_evict,
						 containers->update, containers->evict };
		return r;
	}
	return ck_fail(err, CK_EINVAL, "no answer that changes anything");
}

int ck_adjust_reply(struct ck_adjust *adjust, enum ck_adjust_reply what, const char *plugin,
		    const void *reply, size_t len, struct ck_error *err)
{
	struct answer answer = { 0 };
	int r;
	if (!len)
		return 0;
	if ((r = unpack_answer(adjust, what, reply, len, &answer, err)) < 0)
		return ck_context(err, r, "the answer of plugin \"%s\"", plugin);
	struct ck_claimant by = {
		.arena = &adjust->arena,
		.claims = &adjust->claims,
		.plugin = ck_arena_strdup(&adjust->arena, plugin),
		.later_wins = what == CK_REPLY_SYNCHRONIZE || what == CK_REPLY_UPDATE_CONTAINERS,
	};
	if (!by.plugin)
		return ck_arena_fail(&adjust->arena, err);
	if (answer.adjust && adjust->kind == CREATE) {
		if ((r = ck_merge_adjustment(&adjust->merge, &by, answer.adjust, err)) < 0)
			return r;
		adjust->changed = protobuf_c_message_get_packed_size(&adjust->merge.sum->base) > 0;
	}
	if ((r = merge_updates(adjust, by, answer.updates_n, answer.updates, err)) < 0)
		return r;
	return take_evictions(adjust, by.plugin, answer.evictions_n, answer.evictions, err);
}

/* ---- results --------------------------------------------------------------------------------- */

static int append(struct ck_bytes *out, const struct ck_bytes *bytes, struct ck_error *err)
{
	return ck_bytes_add(out, bytes->p, bytes->len) < 0 ? ck_nomem(err) : 0;
}

int ck_adjust_seen(const struct ck_adjust *adjust, struct ck_bytes *out, struct ck_error *err)
{
	if (!adjust->changed)
		return append(out, &adjust->before, err);
	return ck_pack(adjust->kind == CREATE ? &adjust->merge.seen->base
					      : &adjust->resources->base,
		       out, err);
}

bool ck_adjust_is_empty(const struct ck_adjust *adjust)
{
	return !adjust->changed;
}

int ck_adjust_result(const struct ck_adjust *adjust, struct ck_bytes *out, struct ck_error *err)
{
	switch (adjust->kind) {
	case CREATE:
		return ck_pack(adjust->merge.sum, out, err);
	case UPDATE:
		return ck_adjust_seen(adjust, out, err);
	case OTHERS:
		break;
	}
	return 0;
}

int ck_adjust_owners(const struct ck_adjust *adjust, struct ck_bytes *out, struct ck_error *err)
{
	struct ck_writer owners = { .bytes = *out };
	if (adjust->kind != OTHERS)
		ck_claims_write(&adjust->claims, &owners);
	for (size_t i = 0; i < adjust->changes_n; i++)
		ck_claims_write(&adjust->changes[i].claims, &owners);
	*out = owners.bytes;
	return owners.r < 0 ? ck_nomem(err) : 0;
}

static int write_update(struct ck_writer *out, uint32_t field, const struct change *change,
			struct ck_error *err)
{
	size_t update = ck_writer_open(out, field);
	ck_writer_text(out, 1, change->claims.id);
	size_t linux_part = ck_writer_open(out, 2), resources = ck_writer_open(out, 1);
	if (out->r == 0)
		out->r = ck_pack(change->resources, &out->bytes, err);
	ck_writer_close(out, resources);
	ck_writer_close(out, linux_part);
	ck_writer_number(out, 3, change->ignore_failure);
	ck_writer_close(out, update);
	return out->r < 0 ? ck_nomem(err) : 0;
}

static int write_owners(const struct ck_adjust *adjust, struct ck_writer *out, struct ck_error *err)
{
	size_t owners = ck_writer_open(out, 5);
	if (out->r == 0)
		out->r = ck_adjust_owners(adjust, &out->bytes, err);
	ck_writer_close(out, owners);
	return out->r;
}

int ck_adjust_validation(const struct ck_adjust *adjust, const void *pod, size_t pod_len,
			 const char *const *plugins, size_t n, struct ck_bytes *out,
			 struct ck_error *err)
{
	struct ck_writer request = { .bytes = *out };
	ck_writer_bytes(&request, 1, pod, pod_len);
	ck_writer_bytes(&request, 2, adjust->before.p, adjust->before.len);
	size_t sum = ck_writer_open(&request, 3);
	if (request.r == 0)
		request.r = ck_adjust_result(adjust, &request.bytes, err);
	ck_writer_close(&request, sum);
	for (size_t i = 0; i < adjust->changes_n && request.r == 0; i++)
		request.r = write_update(&request, 4, &adjust->changes[i], err);
	write_owners(adjust, &request, err);
	for (size_t i = 0; i < n; i++) { /* "10-a" */
		size_t dash = strcspn(plugins[i], "-"), plugin = ck_writer_open(&request, 6);
		ck_writer_text(&request, 1, plugins[i] + dash + (plugins[i][dash] ? 1 : 0));
		ck_writer_bytes(&request, 2, plugins[i], dash);
		ck_writer_close(&request, plugin);
	}
	*out = request.bytes;
	return request.r < 0 ? ck_nomem(err) : 0;
}

size_t ck_adjust_others_n(const struct ck_adjust *adjust)
{
	return adjust->changes_n;
}

int ck_adjust_other(struct ck_adjust *adjust, size_t i, struct ck_adjust_other *ret_other,
		    struct ck_error *err)
{
	struct change *change = &adjust->changes[i];
	if (!change->is_packed) {
		change->packed.len = 0;
		int r = ck_pack(change->resources, &change->packed, err);
		if (r < 0)
			return r;
		change->is_packed = true;
	}
	*ret_other = (struct ck_adjust_other){
		.container_id = change->claims.id,
		.plugins = change->plugins ? change->plugins : "",
		.resources = change->packed.p,
		.len = change->packed.len,
		.ignore_failure = change->ignore_failure,
	};
	return 0;
}

int ck_adjust_failed(struct ck_adjust *adjust, const bool *failed, struct ck_bytes *out,
		     struct ck_error *err)
{
	struct ck_writer response = { .bytes = *out };
	int r = 0;
	for (size_t i = 0; i < adjust->changes_n && r == 0; i++) {
		if (failed[i] && !adjust->changes[i].ignore_failure)
			r = write_update(&response, 1, &adjust->changes[i], err);
	}
	*out = response.bytes;
	return r;
}

size_t ck_adjust_evictions_n(const struct ck_adjust *adjust)
{
	return adjust->evictions_n;
}

struct ck_adjust_eviction ck_adjust_eviction(const struct ck_adjust *adjust, size_t i)
{
	return adjust->evictions[i];
}
