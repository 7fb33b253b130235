/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Merges one answer into what is merged so far. Two tables list the fields: single values, which
 * are pointers and may be NULL; and lists, whose items begin with their key. Fields that are in no
 * table (variables, arguments, hooks, RDT) have a function each. Messages are shared, not copied.
 */
#include "hooks/adjust/adjust-int.h"
#include "src/base/limits.h"

#define FIELD(name) CK__NRI__FIELD__##name
#define NONE        SIZE_MAX /* no such field there */

/* ---- the tables ------------------------------------------------------------------------------ */

/* A single value: a pointer at the offset @from of the adjustment. It is copied to the offset @seen
 * of the message that later plugins are shown. */
struct single {
	int field;
	bool is_text; /* "": not set */
	size_t from, seen;
};

#define SINGLE(name, from_type, from_member, seen_type, seen_member) \
	{ \
		FIELD(name), false, offsetof(Ck__Nri__##from_type, from_member), \
			offsetof(Ck__Nri__##seen_type, seen_member) \
	}
#define SINGLE_TEXT(name, from_type, from_member, seen_type, seen_member) \
	{ \
		FIELD(name), true, offsetof(Ck__Nri__##from_type, from_member), \
			offsetof(Ck__Nri__##seen_type, seen_member) \
	}
#define SAME(name, type, member)      SINGLE(name, type, member, type, member)
#define SAME_TEXT(name, type, member) SINGLE_TEXT(name, type, member, type, member)

static const struct single memory_singles[] = {
	SAME(MemLimit, LinuxMemory, limit),
	SAME(MemReservation, LinuxMemory, reservation),
	SAME(MemSwapLimit, LinuxMemory, swap),
	SAME(MemKernelLimit, LinuxMemory, kernel),
	SAME(MemTCPLimit, LinuxMemory, kernel_tcp),
	SAME(MemSwappiness, LinuxMemory, swappiness),
	SAME(MemDisableOomKiller, LinuxMemory, disable_oom_killer),
	SAME(MemUseHierarchy, LinuxMemory, use_hierarchy),
};
static const struct single cpu_singles[] = {
	SAME(CPUShares, LinuxCPU, shares),
	SAME(CPUQuota, LinuxCPU, quota),
	SAME(CPUPeriod, LinuxCPU, period),
	SAME(CPURealtimeRuntime, LinuxCPU, realtime_runtime),
	SAME(CPURealtimePeriod, LinuxCPU, realtime_period),
	SAME_TEXT(CPUSetCPUs, LinuxCPU, cpus),
	SAME_TEXT(CPUSetMems, LinuxCPU, mems),
};
static const struct single resources_singles[] = {
	SAME(BlockioClass, LinuxResources, blockio_class),
	SAME(RdtClass, LinuxResources, rdt_class),
	SAME(PidsLimit, LinuxResources, pids),
};
static const struct single linux_singles[] = {
	SINGLE_TEXT(CgroupsPath, LinuxContainerAdjustment, cgroups_path, LinuxContainer,
		    cgroups_path),
	SINGLE(OomScoreAdj, LinuxContainerAdjustment, oom_score_adj, LinuxContainer, oom_score_adj),
	SINGLE(IoPriority, LinuxContainerAdjustment, io_priority, LinuxContainer, io_priority),
	SINGLE(SeccompPolicy, LinuxContainerAdjustment, seccomp_policy, LinuxContainer,
	       seccomp_policy),
	SINGLE(LinuxSched, LinuxContainerAdjustment, scheduler, LinuxContainer, scheduler),
	{ FIELD(MemoryPolicy), false, offsetof(Ck__Nri__LinuxContainerAdjustment, memory_policy),
	  NONE },
};
static const struct single rdt_singles[] = {
	SAME(RdtClosID, LinuxRdt, clos_id),
	SAME(RdtSchemata, LinuxRdt, schemata),
	SAME(RdtEnableMonitoring, LinuxRdt, enable_monitoring),
};

/* A list, by the offset of its count. protobuf-c puts the array right behind the count. */
struct keyed {
	int field;
	/* can an item be removed with '-', and does the plugin that removes it own its key? */
	enum { KEEP, REMOVE, REMOVE_OWNED } removal;
	size_t from, seen;
};

#define KEYED(name, removal, from_type, from_member, seen_type, seen_member) \
	{ \
		FIELD(name), removal, offsetof(Ck__Nri__##from_type, n_##from_member), \
			offsetof(Ck__Nri__##seen_type, n_##seen_member) \
	}

static const struct keyed adjustment_lists[] = {
	KEYED(Annotations, REMOVE, ContainerAdjustment, annotations, Container, annotations),
	KEYED(Mounts, REMOVE, ContainerAdjustment, mounts, Container, mounts),
	/* shown by see_env() */
	{ FIELD(Env), REMOVE, offsetof(Ck__Nri__ContainerAdjustment, n_env), NONE },
	KEYED(Rlimits, KEEP, ContainerAdjustment, rlimits, Container, rlimits),
	{ FIELD(CdiDevices), KEEP, offsetof(Ck__Nri__ContainerAdjustment, n_cdi_devices), NONE },
};
static const struct keyed linux_lists[] = {
	KEYED(Devices, REMOVE, LinuxContainerAdjustment, devices, LinuxContainer, devices),
	KEYED(Namespace, REMOVE_OWNED, LinuxContainerAdjustment, namespaces, LinuxContainer,
	      namespaces),
	KEYED(Sysctl, REMOVE, LinuxContainerAdjustment, sysctl, LinuxContainer, sysctl),
	KEYED(LinuxNetDevices, REMOVE, LinuxContainerAdjustment, net_devices, LinuxContainer,
	      net_devices),
};
static const struct keyed resources_lists[] = {
	KEYED(HugepageLimits, KEEP, LinuxResources, hugepage_limits, LinuxResources,
	      hugepage_limits),
	KEYED(CgroupsUnified, KEEP, LinuxResources, unified, LinuxResources, unified),
};

#define FOLLOWS(type, member) \
	_Static_assert(offsetof(Ck__Nri__##type, n_##member) + sizeof(size_t) == \
			       offsetof(Ck__Nri__##type, member), \
		       "the array follows its count");
FOLLOWS(ContainerAdjustment, annotations)
FOLLOWS(LinuxContainerAdjustment, devices)
FOLLOWS(LinuxResources, unified)
#undef FOLLOWS
#define KEY_FIRST(type, key) \
	_Static_assert(offsetof(Ck__Nri__##type, key) == sizeof(ProtobufCMessage), \
		       "the key is the first field");
KEY_FIRST(ContainerAdjustment__AnnotationsEntry, key)
KEY_FIRST(Mount, destination)
KEY_FIRST(KeyValue, key)
KEY_FIRST(POSIXRlimit, type)
KEY_FIRST(CDIDevice, name)
KEY_FIRST(LinuxDevice, path)
KEY_FIRST(LinuxNamespace, type)
KEY_FIRST(LinuxContainerAdjustment__SysctlEntry, key)
KEY_FIRST(LinuxContainerAdjustment__NetDevicesEntry, key)
KEY_FIRST(HugepageLimit, page_size)
KEY_FIRST(LinuxResources__UnifiedEntry, key)
#undef KEY_FIRST

/* ---- pointers and lists by their offset ------------------------------------------------------ */

static void *single_get(const void *message, size_t at)
{
	void *value;
	memcpy(&value, (const char *)message + at, sizeof(value));
	return value;
}

static void single_set(void *message, size_t at, void *value)
{
	memcpy((char *)message + at, &value, sizeof(value));
}

static int list_append(struct ck_arena *arena, void *message, size_t at, struct ck_list more,
		       struct ck_error *err)
{
	struct ck_list list = ck_list_get(message, at);
	if (!more.n)
		return 0;
	int r = ck_list_grow(arena, &list, more.n, err);
	if (r < 0)
		return r;
	memcpy(list.items + list.n, more.items, more.n * sizeof(*more.items));
	list.n += more.n;
	ck_list_set(message, at, list);
	return 0;
}

static bool is_removal(const struct keyed *keyed, const void *item)
{
	return keyed->removal != KEEP && *ck_list_key(item) == '-';
}

/* without the '-' */
static const char *target_of(const struct keyed *keyed, const void *item)
{
	return ck_list_key(item) + (is_removal(keyed, item) ? 1 : 0);
}

/* ---- singles --------------------------------------------------------------------------------- */

/* @seen may be NULL. Return: 1 if one of them was set, 0 */
static int merge_singles(const struct single *singles, size_t n, const struct ck_claimant *by,
			 const void *from, void *sum, void *seen, struct ck_error *err)
{
	int changed = 0;
	for (size_t i = 0; i < n; i++) {
		const struct single *single = &singles[i];
		void *value = single_get(from, single->from);
		if (!value || (single->is_text && !*(const char *)value))
			continue;
		int r = ck_claim(by, single->field, NULL, err);
		if (r < 0)
			return r;
		single_set(sum, single->from, value);
		if (seen && single->seen != NONE)
			single_set(seen, single->seen, value);
		changed = 1;
	}
	return changed;
}
#define MERGE_SINGLES(singles, ...) merge_singles(singles, CK_COUNT(singles), __VA_ARGS__)

/* ---- lists ----------------------------------------------------------------------------------- */

static bool is_set_in(const struct keyed *keyed, struct ck_list items, const char *key)
{
	for (size_t i = 0; i < items.n; i++) {
		if (!is_removal(keyed, items.items[i]) && !strcmp(ck_list_key(items.items[i]), key))
			return true;
	}
	return false;
}

/* one item into the sum, in place of an earlier item of its key */
static void put(const struct keyed *keyed, struct ck_list *list, void *item)
{
	size_t n = 0;
	for (size_t i = 0; i < list->n; i++) {
		if (strcmp(target_of(keyed, list->items[i]), target_of(keyed, item)))
			list->items[n++] = list->items[i];
	}
	list->items[n++] = item;
	list->n = n;
}

/* Removals come first: a plugin that removes and sets a key in one answer takes it over from the
 * plugin that had set it. */
static int merge_list(const struct keyed *keyed, const struct ck_claimant *by, const void *from,
		      void *sum, void *seen, struct ck_error *err)
{
	struct ck_list items = ck_list_get(from, keyed->from), sums = ck_list_get(sum, keyed->from);
	bool shown = seen && keyed->seen != NONE;
	struct ck_list seens = shown ? ck_list_get(seen, keyed->seen) : (struct ck_list){ 0 };
	int r;
	if (!items.n)
		return 0;
	if (items.n > CK_NRI_ENTRIES_MAX)
		return ck_fail(err, CK_ETOOBIG,
			       "%zu things of one kind to change, at most %u are taken", items.n,
			       CK_NRI_ENTRIES_MAX);
	if ((r = ck_list_grow(by->arena, &sums, items.n, err)) < 0 ||
	    (shown && (r = ck_list_grow(by->arena, &seens, items.n, err)) < 0))
		return r;
	for (size_t i = 0; i < items.n; i++) {
		if (!is_removal(keyed, items.items[i]))
			continue;
		const char *key = target_of(keyed, items.items[i]);
		r = keyed->removal == REMOVE_OWNED
			    ? ck_claim(by, keyed->field, key, err)
			    : ck_claim_clear(by, keyed->field, key, true, err);
		if (r < 0)
			return r;
		if (!is_set_in(keyed, items, key))
			put(keyed, &sums, items.items[i]);
		ck_list_drop(&seens, key);
	}
	for (size_t i = 0; i < items.n; i++) {
		if (is_removal(keyed, items.items[i]))
			continue;
		const char *key = ck_list_key(items.items[i]);
		if ((r = ck_claim(by, keyed->field, key, err)) < 0)
			return r;
		put(keyed, &sums, items.items[i]);
		if (shown) {
			ck_list_drop(&seens, key);
			seens.items[seens.n++] = items.items[i];
		}
	}
	ck_list_set(sum, keyed->from, sums);
	if (shown)
		ck_list_set(seen, keyed->seen, seens);
	return 1;
}

static int merge_lists(const struct keyed *lists, size_t n, const struct ck_claimant *by,
		       const void *from, void *sum, void *seen, struct ck_error *err)
{
	int changed = 0;
	for (size_t i = 0; i < n; i++) {
		int r = merge_list(&lists[i], by, from, sum, seen, err);
		if (r < 0)
			return r;
		changed |= r;
	}
	return changed;
}
#define MERGE_LISTS(lists, ...) merge_lists(lists, CK_COUNT(lists), __VA_ARGS__)

/* Fields of a later NRI are passed on; the host applies them or says that it cannot. Whether they
 * conflict is not known. */
static int carry_unknown(const struct ck_claimant *by, const void *from, void *sum,
			 struct ck_error *err)
{
	const ProtobufCMessage *source = from;
	ProtobufCMessage *base = sum;
	if (!source->n_unknown_fields)
		return 0;
	size_t n = base->n_unknown_fields, more = source->n_unknown_fields;
	ProtobufCMessageUnknownField *all = ck_arena_alloc(by->arena, (n + more) * sizeof(*all));
	if (!all)
		return ck_arena_fail(by->arena, err);
	if (n)
		memcpy(all, base->unknown_fields, n * sizeof(*all));
	memcpy(all + n, source->unknown_fields, more * sizeof(*all));
	base->unknown_fields = all;
	base->n_unknown_fields = (unsigned)(n + more);
	int r = ck_claim_share(by, FIELD(None), err);
	return r < 0 ? r : 1;
}

/* ---- resources ------------------------------------------------------------------------------- */

/* memory and cpu: a message inside the message, added if it is missing */
static int merge_group(const struct single *singles, size_t n, size_t at,
		       const ProtobufCMessageDescriptor *type, const struct ck_claimant *by,
		       const void *from, void *sum, void *seen, struct ck_error *err)
{
	const void *group = single_get(from, at);
	void *group_sum = single_get(sum, at), *group_seen = seen ? single_get(seen, at) : NULL;
	if (!group)
		return 0;
	if (!group_sum && !(group_sum = ck_arena_new(by->arena, type)))
		return ck_arena_fail(by->arena, err);
	if (seen && !group_seen && !(group_seen = ck_arena_new(by->arena, type)))
		return ck_arena_fail(by->arena, err);
	int changed = merge_singles(singles, n, by, group, group_sum, group_seen, err);
	int unknown = changed < 0 ? 0 : carry_unknown(by, group, group_sum, err);
	if (changed < 0 || unknown < 0)
		return changed < 0 ? changed : unknown;
	if (changed || unknown) {
		single_set(sum, at, group_sum);
		if (seen)
			single_set(seen, at, group_seen);
	}
	return changed | unknown;
}

static int merge_both(const struct ck_claimant *by, const Ck__Nri__LinuxResources *from,
		      Ck__Nri__LinuxResources *sum, Ck__Nri__LinuxResources *seen,
		      struct ck_error *err)
{
	size_t devices = offsetof(Ck__Nri__LinuxResources, n_devices);
	struct ck_list rules = ck_list_get(from, devices);
	int changed = rules.n ? 1 : 0, r;
	if ((r = merge_group(memory_singles, CK_COUNT(memory_singles),
			     offsetof(Ck__Nri__LinuxResources, memory),
			     &ck__nri__linux_memory__descriptor, by, from, sum, seen, err)) < 0)
		return r;
	changed |= r;
	if ((r = merge_group(cpu_singles, CK_COUNT(cpu_singles),
			     offsetof(Ck__Nri__LinuxResources, cpu),
			     &ck__nri__linux_cpu__descriptor, by, from, sum, seen, err)) < 0)
		return r;
	changed |= r;
	if ((r = MERGE_SINGLES(resources_singles, by, from, sum, seen, err)) < 0)
		return r;
	changed |= r;
	if ((r = MERGE_LISTS(resources_lists, by, from, sum, seen, err)) < 0)
		return r;
	changed |= r;
	if ((r = carry_unknown(by, from, sum, err)) < 0)
		return r;
	changed |= r;
	/* rules for devices are appended; no field of OwningPlugins names their owners */
	if ((rules.n && (r = ck_claim_share(by, FIELD(None), err)) < 0) ||
	    (r = list_append(by->arena, sum, devices, rules, err)) < 0 ||
	    (seen && (r = list_append(by->arena, seen, devices, rules, err)) < 0))
		return r;
	return changed;
}

int ck_merge_resources(Ck__Nri__LinuxResources *to, const struct ck_claimant *by,
		       const Ck__Nri__LinuxResources *resources, struct ck_error *err)
{
	return merge_both(by, resources, to, NULL, err);
}

/* ---- fields with a function each ------------------------------------------------------------- */

static bool is_variable(const char *variable, const char *name)
{
	size_t len = strlen(name);
	return !strncmp(variable, name, len) && (!variable[len] || variable[len] == '=');
}

/* a container's variables are "NAME=value" */
static int see_env(struct ck_merge *merge, const struct ck_claimant *by,
		   const Ck__Nri__ContainerAdjustment *from, struct ck_error *err)
{
	static const struct keyed env = { FIELD(Env), REMOVE, 0, NONE };
	Ck__Nri__Container *seen = merge->seen;
	size_t n = 0;
	if (!from->n_env)
		return 0;
	char **variables =
		ck_arena_alloc(by->arena, (seen->n_env + from->n_env) * sizeof(*variables));
	if (!variables)
		return ck_arena_fail(by->arena, err);
	for (size_t i = 0; i < seen->n_env; i++) {
		bool replaced = false;
		for (size_t k = 0; k < from->n_env && !replaced; k++)
			replaced = is_variable(seen->env[i], target_of(&env, from->env[k]));
		if (!replaced)
			variables[n++] = seen->env[i];
	}
	for (size_t k = 0; k < from->n_env; k++) {
		if (is_removal(&env, from->env[k]))
			continue;
		const char *value = from->env[k]->value ? from->env[k]->value : "";
		if (!(variables[n++] = ck_arena_printf(by->arena, "%s=%s",
						       ck_list_key(from->env[k]), value)))
			return ck_arena_fail(by->arena, err);
	}
	seen->env = variables;
	seen->n_env = n;
	return 0;
}

/* A first "" takes the arguments over from the plugin that had set them. If nothing follows it, the
 * container has its own arguments again. */
static int merge_args(struct ck_merge *merge, const struct ck_claimant *by,
		      const Ck__Nri__ContainerAdjustment *from, struct ck_error *err)
{
	size_t marked = from->n_args && !*from->args[0] ? 1 : 0, n = from->n_args - marked;
	int r;
	if (!from->n_args)
		return 0;
	if ((marked && (r = ck_claim_clear(by, FIELD(Args), NULL, false, err)) < 0) ||
	    (r = ck_claim(by, FIELD(Args), NULL, err)) < 0)
		return r;
	merge->sum->n_args = n;
	merge->sum->args = n ? from->args + marked : NULL;
	merge->seen->n_args = n ? n : merge->args_n;
	merge->seen->args = n ? merge->sum->args : merge->args;
	return 0;
}

static int merge_hooks(struct ck_merge *merge, const struct ck_claimant *by,
		       const Ck__Nri__Hooks *from, struct ck_error *err)
{
	static const size_t kinds[] = {
		offsetof(Ck__Nri__Hooks, n_prestart),
		offsetof(Ck__Nri__Hooks, n_create_runtime),
		offsetof(Ck__Nri__Hooks, n_create_container),
		offsetof(Ck__Nri__Hooks, n_start_container),
		offsetof(Ck__Nri__Hooks, n_poststart),
		offsetof(Ck__Nri__Hooks, n_poststop),
	};
	size_t n = 0;
	int r = 0;
	for (size_t i = 0; from && i < CK_COUNT(kinds); i++)
		n += ck_list_get(from, kinds[i]).n;
	if (!n && !(from && from->base.n_unknown_fields))
		return 0;
	Ck__Nri__Hooks **both[] = { &merge->sum->hooks, &merge->seen->hooks };
	for (size_t k = 0; k < CK_COUNT(both); k++) {
		if (!*both[k] && !(*both[k] = ck_arena_new(by->arena, &ck__nri__hooks__descriptor)))
			return ck_arena_fail(by->arena, err);
		for (size_t i = 0; i < CK_COUNT(kinds) && r >= 0; i++)
			r = list_append(by->arena, *both[k], kinds[i], ck_list_get(from, kinds[i]),
					err);
		if (r < 0)
			return r;
	}
	if ((r = carry_unknown(by, from, merge->sum->hooks, err)) < 0)
		return r;
	return n ? ck_claim_share(by, FIELD(OciHooks), err) : 0;
}

/* "remove" takes all of RDT over from the plugin that had set it; values beside it are set instead
 * */
static int merge_rdt(struct ck_merge *merge, const struct ck_claimant *by,
		     const Ck__Nri__LinuxRdt *from, struct ck_error *err)
{
	Ck__Nri__LinuxRdt **sum = &merge->linux_sum->rdt;
	int r = 0;
	if (!from)
		return 0;
	Ck__Nri__LinuxRdt *rdt = *sum && !from->remove
					 ? *sum
					 : ck_arena_new(by->arena, &ck__nri__linux_rdt__descriptor);
	if (!rdt)
		return ck_arena_fail(by->arena, err);
	for (size_t i = 0; from->remove && i < CK_COUNT(rdt_singles) && r >= 0; i++)
		r = ck_claim_clear(by, rdt_singles[i].field, NULL, false, err);
	if (r < 0)
		return r;
	if (from->remove)
		rdt->has_remove = rdt->remove = true;
	int set = MERGE_SINGLES(rdt_singles, by, from, rdt, NULL, err);
	int unknown = set < 0 ? 0 : carry_unknown(by, from, rdt, err);
	if (set < 0 || unknown < 0)
		return set < 0 ? set : unknown;
	if (set)
		rdt->has_remove = rdt->remove = false;
	if (set || unknown || from->remove)
		*sum = rdt;
	return 0;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static int merge_linux(struct ck_merge *merge, const struct ck_claimant *by,
		       const Ck__Nri__LinuxContainerAdjustment *from, struct ck_error *err)
{
	Ck__Nri__LinuxContainer *seen = merge->seen->linux;
	int r;
	if (!from)
		return 0;
	if ((r = MERGE_LISTS(linux_lists, by, from, merge->linux_sum, seen, err)) < 0 ||
	    (from->resources && (r = merge_both(by, from->resources, merge->resources_sum,
						seen->resources, err)) < 0) ||
	    (r = MERGE_SINGLES(linux_singles, by, from, merge->linux_sum, seen, err)) < 0 ||
	    (r = merge_rdt(merge, by, from->rdt, err)) < 0)
		return r;
	return carry_unknown(by, from, merge->linux_sum, err);
}

static bool is_empty(const void *message)
{
	return protobuf_c_message_get_packed_size(message) == 0;
}

int ck_merge_adjustment(struct ck_merge *merge, const struct ck_claimant *by,
			const Ck__Nri__ContainerAdjustment *adjustment, struct ck_error *err)
{
	int r;
	if ((r = MERGE_LISTS(adjustment_lists, by, adjustment, merge->sum, merge->seen, err)) < 0 ||
	    (r = see_env(merge, by, adjustment, err)) < 0 ||
	    (r = merge_args(merge, by, adjustment, err)) < 0 ||
	    (r = merge_hooks(merge, by, adjustment->hooks, err)) < 0 ||
	    (r = merge_linux(merge, by, adjustment->linux, err)) < 0 ||
	    (r = carry_unknown(by, adjustment, merge->sum, err)) < 0)
		return r;
	/* an empty message would mean something: it is present */
	merge->linux_sum->resources = is_empty(merge->resources_sum) ? NULL : merge->resources_sum;
	merge->sum->linux = is_empty(merge->linux_sum) ? NULL : merge->linux_sum;
	return 0;
}
