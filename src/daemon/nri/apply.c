/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request is unpacked, changed in place and packed again; protobuf-c keeps unknown fields. Every
 * field of an adjustment is either applied or refused here. So a new field of nri.proto must be
 * added here as well.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "cache/request/cri.pb-c.h"
#include "hooks/wire/nri.pb-c.h"
#include "src/base/arena.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/base/wire-writer.h"
#include "src/cri/message.h"
#include "src/daemon/nri/apply.h"
#include "src/daemon/nri/describe.h"
#include "src/daemon/nri/resources.h"

#define FIELD(name)     CK__NRI__FIELD__##name
#define LIST(name)      offsetof(Ck__Cri__ContainerConfig, n_##name)
#define TYPE(api, name) (&ck__##api##__##name##__descriptor)

struct apply {
	struct ck_arena arena;
	Ck__Cri__CreateContainerRequest *request;
	Ck__Cri__ContainerConfig *config;
	const Ck__Nri__ContainerAdjustment *adjustment;
	const Ck__Nri__FieldOwners *owners; /* NULL: nobody owns anything */
	struct ck_error *err;
};

/* ---- which plugin wants it ------------------------------------------------------------------- */

static const char *simple_owner(const Ck__Nri__FieldOwners *owners, int field)
{
	for (size_t i = 0; i < owners->n_simple; i++) {
		if (owners->simple[i]->key == field) /* an absent key is 0, which is None */
			return owners->simple[i]->value;
	}
	return NULL;
}

static const char *key_owner(const Ck__Nri__FieldOwners *owners, int field, const char *key)
{
	for (size_t i = 0; i < owners->n_compound; i++) {
		const Ck__Nri__CompoundFieldOwners *keys = owners->compound[i]->value;
		for (size_t k = 0; owners->compound[i]->key == field && keys && k < keys->n_owners;
		     k++) {
			if (!strcmp(ck_list_key(keys->owners[k]), key))
				return keys->owners[k]->value;
		}
	}
	return NULL;
}

/* "10-a", also of a plugin that has removed it. Fields without an owner of their own are listed
 * under None. */
static const char *owner_of(const struct apply *apply, int field, const char *key)
{
	const char *owner = NULL;
	if (apply->owners)
		owner = key ? key_owner(apply->owners, field, key)
			    : simple_owner(apply->owners, field);
	if (apply->owners && !owner)
		owner = simple_owner(apply->owners, FIELD(None));
	if (!owner)
		return "of unknown name";
	return owner + (*owner == '-' ? 1 : 0);
}

static const char *name_of(int field)
{
	const ProtobufCEnumValue *value =
		protobuf_c_enum_descriptor_get_value(TYPE(nri, field), field);
	return value ? value->name : "";
}

/* "plugin 10-a: field Rlimits RLIMIT_CORE cannot be applied through CRI" */
static int refuse(const struct apply *apply, int field, const char *key)
{
	return ck_fail(apply->err, CK_EINVAL,
		       "plugin %s: field %s%s%s cannot be applied through CRI",
		       owner_of(apply, field, key), name_of(field), key ? " " : "", key ? key : "");
}

static int refuse_unknown(const struct apply *apply, int field, const char *key, uint32_t number)
{
	return ck_fail(apply->err, CK_EINVAL,
		       "plugin %s: field %u, of an NRI later than this one's, cannot be applied "
		       "through CRI",
		       owner_of(apply, field, key), (unsigned)number);
}

static int fail_memory(const struct apply *apply)
{
	return ck_arena_fail(&apply->arena, apply->err);
}

/* ---- lists ----------------------------------------------------------------------------------- */

/* An item of CRI's list from one of NRI's. NULL and an error in *ret_r: CRI cannot express it. */
typedef void *make_fn(struct apply *apply, const void *item, int *ret_r);

struct list_rule {
	int field;
	/* offsets of the counts, in (Linux)ContainerAdjustment and in ContainerConfig */
	size_t from, to;
	bool removable;
	/* the image or the runtime may set it as well; then CRI cannot remove it. What it is
	 * called; NULL: only the request sets it */
	const char *elsewhere;
	make_fn *make;
};

static int apply_list(struct apply *apply, const struct list_rule *rule, const void *from)
{
	struct ck_list items = ck_list_get(from, rule->from),
		       list = ck_list_get(apply->config, rule->to);
	int r;
	if (!items.n)
		return 0;
	if ((r = ck_list_grow(&apply->arena, &list, items.n, apply->err)) < 0)
		return r;
	for (size_t i = 0; i < items.n; i++) {
		const char *key = ck_list_key(items.items[i]);
		bool removal = rule->removable && *key == '-';
		uint32_t unknown = removal ? 0 : ck_unpacked_unknown(items.items[i]);
		key += removal ? 1 : 0;
		if (unknown)
			return refuse_unknown(apply, rule->field, key, unknown);
		if (!ck_list_drop(&list, key) && removal && rule->elsewhere)
			return ck_fail(apply->err, CK_EINVAL,
				       "plugin %s removes %s %s, which the request does not have: "
				       "CRI cannot remove what is set by the image or the runtime",
				       owner_of(apply, rule->field, key), rule->elsewhere, key);
		if (!removal && !(list.items[list.n++] = rule->make(apply, items.items[i], &r)))
			return r;
	}
	ck_list_set(apply->config, rule->to, list);
	return 0;
}

static void *no_memory(struct apply *apply, int *ret_r)
{
	*ret_r = fail_memory(apply);
	return NULL;
}

static void *make_annotation(struct apply *apply, const void *item, int *ret_r)
{
	const Ck__Nri__ContainerAdjustment__AnnotationsEntry *from = item;
	Ck__Cri__ContainerConfig__AnnotationsEntry *to =
		ck_arena_new(&apply->arena, TYPE(cri, container_config__annotations_entry));
	if (!to)
		return no_memory(apply, ret_r);
	to->key = from->key;
	to->value = from->value;
	return to;
}

static void *make_env(struct apply *apply, const void *item, int *ret_r)
{
	const Ck__Nri__KeyValue *from = item;
	Ck__Cri__KeyValue *to = ck_arena_new(&apply->arena, TYPE(cri, key_value));
	if (!to)
		return no_memory(apply, ret_r);
	to->key = from->key;
	to->has_value = from->value && *from->value;
	if (to->has_value) {
		to->value.data = (uint8_t *)from->value;
		to->value.len = strlen(from->value);
	}
	return to;
}

/* of two options that contradict each other the last one counts, as in an OCI spec */
static bool take_option(Ck__Cri__Mount *mount, const char *option, bool *ret_bind)
{
	static const struct {
		const char *name;
		int readonly, propagation; /* -1: not set by this option */
		bool bind;
	} options[] = {
		{ "rw", 0, -1, false },
		{ "ro", 1, -1, false },
		{ "bind", -1, -1, true },
		{ "rbind", -1, -1, true },
		{ "rprivate", -1, CK__CRI__MOUNT_PROPAGATION__PROPAGATION_PRIVATE, false },
		{ "rslave", -1, CK__CRI__MOUNT_PROPAGATION__PROPAGATION_HOST_TO_CONTAINER, false },
		{ "rshared", -1, CK__CRI__MOUNT_PROPAGATION__PROPAGATION_BIDIRECTIONAL, false },
	};
	for (size_t i = 0; i < CK_COUNT(options); i++) {
		if (strcmp(option, options[i].name))
			continue;
		if (options[i].readonly >= 0)
			mount->has_readonly = mount->readonly = options[i].readonly;
		if (options[i].propagation >= 0)
			mount->propagation = (Ck__Cri__MountPropagation)options[i].propagation;
		*ret_bind |= options[i].bind;
		return true;
	}
	return false;
}

static void *make_mount(struct apply *apply, const void *item, int *ret_r)
{
	const Ck__Nri__Mount *from = item;
	Ck__Cri__Mount *to = ck_arena_new(&apply->arena, TYPE(cri, mount));
	const char *type = from->type ? from->type : "", *source = from->source ? from->source : "";
	bool bind = !strcmp(type, "bind");
	if (!to)
		return no_memory(apply, ret_r);
	to->container_path = from->destination;
	to->host_path = from->source;
	for (size_t i = 0; i < from->n_options; i++) {
		if (take_option(to, from->options[i], &bind))
			continue;
		/* without its value: the options of some file systems contain a password */
		*ret_r = ck_fail(apply->err, CK_EINVAL,
				 "plugin %s: option \"%.*s\" of field Mounts %s cannot be applied "
				 "through CRI",
				 owner_of(apply, FIELD(Mounts), ck_list_key(from)),
				 (int)strcspn(from->options[i], "="), from->options[i],
				 ck_list_key(from));
		return NULL;
	}
	to->has_propagation = to->propagation != CK__CRI__MOUNT_PROPAGATION__PROPAGATION_PRIVATE;
	if (bind && (!*type || !strcmp(type, "bind") || !strcmp(type, "none")) && *source == '/')
		return to;
	*ret_r = ck_fail(apply->err, CK_EINVAL,
			 "plugin %s wants mount %s, which CRI cannot express: it is not a bind "
			 "mount of a path of the host",
			 owner_of(apply, FIELD(Mounts), ck_list_key(from)), ck_list_key(from));
	return NULL;
}

#define DEVNAME "DEVNAME="

/* the path in /dev of the host's device with these numbers, as the kernel tells it */
static bool path_by_number(const Ck__Nri__LinuxDevice *from, bool block, char *buf, size_t size)
{
	char path[64], text[CK_UEVENT_MAX + 2] = "\n";
	snprintf(path, sizeof(path), "/sys/dev/%s/%lld:%lld/uevent", block ? "block" : "char",
		 (long long)from->major, (long long)from->minor);
	CK_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, text + 1, sizeof(text) - 2) < 0)
		return false;
	const char *at = strstr(text, "\n" DEVNAME);
	if (!at)
		return false;
	at += strlen("\n" DEVNAME);
	snprintf(buf, size, "/dev/%.*s", (int)strcspn(at, "\n"), at);
	return true;
}

/* CRI names a device by its path on the host, where the runtime looks up the type, the numbers, the
 * mode and the owner. So there must be one which has those that the plugin wants. */
static const char *check_device(const Ck__Nri__LinuxDevice *from, bool block, const char *path)
{
	struct stat st;
	if (*path != '/' || stat(path, &st) < 0 ||
	    (block ? !S_ISBLK(st.st_mode) : !S_ISCHR(st.st_mode)) ||
	    from->major != (int64_t)major(st.st_rdev) || from->minor != (int64_t)minor(st.st_rdev))
		return "the host has no such device";
	if ((from->file_mode && (from->file_mode->value & 07777) != (st.st_mode & 07777)) ||
	    (from->uid && from->uid->value != st.st_uid) ||
	    (from->gid && from->gid->value != st.st_gid))
		return "the host's device has another mode or owner";
	return NULL;
}

/* the path on the host. NULL and an error in *ret_r: there is none */
static char *find_device(struct apply *apply, const Ck__Nri__LinuxDevice *from, int *ret_r)
{
	const char *type = from->type ? from->type : "", *why;
	char path[CK_PATH_MAX];
	bool block = !strcmp(type, "b"), named = from->path && *from->path;
	if (named && !*type && !from->major && !from->minor && !from->file_mode && !from->uid &&
	    !from->gid)
		return from->path; /* the plugin gives only a path */
	if (!named) {
		why = "it has no path";
	} else if (!block && strcmp(type, "c") && strcmp(type, "u")) {
		why = "it is not a character or block device";
	} else {
		if (!(why = check_device(from, block, from->path)))
			return from->path;
		if (path_by_number(from, block, path, sizeof(path)) &&
		    !(why = check_device(from, block, path))) {
			char *copy = ck_arena_strdup(&apply->arena, path);
			return copy ? copy : no_memory(apply, ret_r);
		}
	}
	*ret_r = ck_fail(apply->err, CK_EINVAL,
			 "plugin %s wants device %s (%s %lld:%lld), which CRI cannot express: %s",
			 owner_of(apply, FIELD(Devices), ck_list_key(from)), ck_list_key(from),
			 block                          ? "block"
			 : *type == 'c' || *type == 'u' ? "char"
							: "other",
			 (long long)from->major, (long long)from->minor, why);
	return NULL;
}

static void *make_device(struct apply *apply, const void *item, int *ret_r)
{
	const Ck__Nri__LinuxDevice *from = item;
	Ck__Cri__Device *to = ck_arena_new(&apply->arena, TYPE(cri, device));
	if (!to)
		return no_memory(apply, ret_r);
	if (!(to->host_path = find_device(apply, from, ret_r)))
		return NULL;
	bool block = from->type && *from->type == 'b';
	to->container_path = from->path;
	/* as NRI's own helper for OCI specs does */
	to->permissions = ck_arena_strdup(&apply->arena, block ? "rwm" : "rw");
	return to->permissions ? to : no_memory(apply, ret_r);
}

static void *make_cdi_device(struct apply *apply, const void *item, int *ret_r)
{
	const Ck__Nri__CDIDevice *from = item;
	Ck__Cri__CDIDevice *to = ck_arena_new(&apply->arena, TYPE(cri, cdidevice));
	if (!to)
		return no_memory(apply, ret_r);
	to->name = from->name;
	return to;
}

#define FROM(name) offsetof(Ck__Nri__ContainerAdjustment, n_##name)
static const struct list_rule lists[] = {
	{ FIELD(Annotations), FROM(annotations), LIST(annotations), true, NULL, make_annotation },
	{ FIELD(Mounts), FROM(mounts), LIST(mounts), true, "mount", make_mount },
	{ FIELD(Env), FROM(env), LIST(envs), true, "variable", make_env },
	{ FIELD(CdiDevices), FROM(cdi_devices), LIST(cdi_devices), false, NULL, make_cdi_device },
};
static const struct list_rule device_list = {
	FIELD(Devices), offsetof(Ck__Nri__LinuxContainerAdjustment, n_devices),
	LIST(devices),  true,
	"device",       make_device
};

/* ---- resources ------------------------------------------------------------------------------- */

/* Single values replace those of the request; so do huge pages and unified entries, each by its
 * key. */
static int set_resources(struct ck_arena *arena, Ck__Cri__LinuxContainerResources *to,
			 const struct ck_bytes *cri, struct ck_error *err)
{
	static const size_t keyed[] = {
		offsetof(Ck__Cri__LinuxContainerResources, n_hugepage_limits),
		offsetof(Ck__Cri__LinuxContainerResources, n_unified),
	};
	Ck__Cri__LinuxContainerResources *from;
	int r = ck_unpack(arena, TYPE(cri, linux_container_resources), cri->p, cri->len, &from,
			  err);
	if (r < 0)
		return r;
#define SET(name) \
	do { \
		if (from->has_##name) { \
			to->has_##name = true; \
			to->name = from->name; \
		} \
	} while (0)
	SET(cpu_period);
	SET(cpu_quota);
	SET(cpu_shares);
	SET(memory_limit_in_bytes);
	SET(memory_swap_limit_in_bytes);
#undef SET
	if (from->cpuset_cpus)
		to->cpuset_cpus = from->cpuset_cpus;
	if (from->cpuset_mems)
		to->cpuset_mems = from->cpuset_mems;
	for (size_t i = 0; i < CK_COUNT(keyed); i++) {
		struct ck_list more = ck_list_get(from, keyed[i]), list = ck_list_get(to, keyed[i]);
		if (!more.n)
			continue;
		if ((r = ck_list_grow(arena, &list, more.n, err)) < 0)
			return r;
		for (size_t k = 0; k < more.n; k++) {
			ck_list_drop(&list, ck_list_key(more.items[k]));
			list.items[list.n++] = more.items[k];
		}
		ck_list_set(to, keyed[i], list);
	}
	return 0;
}

/* the key of an entry of a list: its first field */
static const char *entry_key(struct apply *apply, struct ck_wire entry)
{
	struct ck_wire_field field;
	char *key = NULL;
	if (ck_cri_each(&entry, CK_MAP_KEY, &field, NULL) > 0)
		key = ck_arena_alloc(&apply->arena, field.len + 1);
	return key ? memcpy(key, field.data, field.len) : "";
}

/* One field of LinuxResources, converted by the code that updates use. It is converted alone, so
 * that an error can name its owner. */
static int convert(struct apply *apply, const struct ck_bytes *alone, int field,
		   const struct ck_wire *entry, struct ck_bytes *cri)
{
	int r = ck_resources_to_cri(alone->p, alone->len, cri, apply->err);
	if (r != -CK_EINVAL)
		return r;
	return ck_context(apply->err, r, "plugin %s",
			  owner_of(apply, field, entry ? entry_key(apply, *entry) : NULL));
}

/* @group: 1 memory, 2 cpu. Their fields and the values of enum Field have the same order. */
static int convert_group(struct apply *apply, struct ck_wire group, uint32_t number,
			 struct ck_bytes *cri)
{
	int first = number == 1 ? FIELD(MemLimit) : FIELD(CPUShares),
	    last = number == 1 ? FIELD(MemUseHierarchy) : FIELD(CPUSetMems);
	struct ck_wire_field field;
	int r;
	while ((r = ck_wire_next(&group, &field, apply->err)) > 0) {
		CK_AUTO_BYTES struct ck_bytes inner = { 0 }, alone = { 0 };
		int owned = first + (int)field.number - 1;
		if (ck_bytes_field(&inner, field.number, field.data, field.len) < 0 ||
		    ck_bytes_field(&alone, number, inner.p, inner.len) < 0)
			return ck_nomem(apply->err);
		if (field.type != CK_WIRE_BYTES || owned > last)
			return refuse_unknown(apply, FIELD(None), NULL, field.number);
		if ((r = convert(apply, &alone, owned, NULL, cri)) < 0)
			return r;
	}
	return r;
}
_Static_assert(FIELD(MemUseHierarchy) - FIELD(MemLimit) == 7 &&
		       FIELD(CPUSetMems) - FIELD(CPUShares) == 6,
	       "in step");

static int convert_resources(struct apply *apply, const Ck__Nri__LinuxResources *resources,
			     struct ck_bytes *cri)
{
	static const int fields[] = {
		[3] = FIELD(HugepageLimits), FIELD(BlockioClass), FIELD(RdtClass),
		FIELD(CgroupsUnified),       FIELD(None),         FIELD(PidsLimit)
	};
	CK_AUTO_BYTES struct ck_bytes bytes = { 0 };
	struct ck_wire_field field;
	int r = ck_pack(resources, &bytes, apply->err);
	if (r < 0)
		return r;
	struct ck_wire wire = ck_wire_begin(bytes.p, bytes.len);
	while ((r = ck_wire_next(&wire, &field, apply->err)) > 0) {
		struct ck_wire inside = ck_wire_inside(&wire, &field);
		if (field.type != CK_WIRE_BYTES || field.number >= CK_COUNT(fields)) {
			r = refuse_unknown(apply, FIELD(None), NULL, field.number);
		} else if (field.number < 3) {
			r = convert_group(apply, inside, field.number, cri);
		} else {
			int owned = fields[field.number];
			bool keyed =
				owned == FIELD(HugepageLimits) || owned == FIELD(CgroupsUnified);
			CK_AUTO_BYTES struct ck_bytes alone = { 0 };
			if (ck_bytes_field(&alone, field.number, field.data, field.len) < 0)
				return ck_nomem(apply->err);
			r = convert(apply, &alone, owned, keyed ? &inside : NULL, cri);
		}
		if (r < 0)
			return r;
	}
	return r;
}

static int apply_resources(struct apply *apply, const Ck__Nri__LinuxContainerAdjustment *from)
{
	Ck__Cri__LinuxContainerConfig **config = &apply->config->linux;
	CK_AUTO_BYTES struct ck_bytes cri = { 0 };
	int r;
	if (!from->resources && !from->oom_score_adj)
		return 0;
	if (!*config && !(*config = ck_arena_new(&apply->arena, TYPE(cri, linux_container_config))))
		return fail_memory(apply);
	if (!(*config)->resources &&
	    !((*config)->resources =
		      ck_arena_new(&apply->arena, TYPE(cri, linux_container_resources))))
		return fail_memory(apply);
	if (from->oom_score_adj) { /* without it a container gets 0 */
		(*config)->resources->oom_score_adj = from->oom_score_adj->value;
		(*config)->resources->has_oom_score_adj = from->oom_score_adj->value != 0;
	}
	if (!from->resources)
		return 0;
	if ((r = convert_resources(apply, from->resources, &cri)) < 0)
		return r;
	return set_resources(&apply->arena, (*config)->resources, &cri, apply->err);
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* fields that CRI cannot express */
static int refuse_linux(const struct apply *apply, const Ck__Nri__LinuxContainerAdjustment *from)
{
	if (from->cgroups_path && *from->cgroups_path)
		return refuse(apply, FIELD(CgroupsPath), NULL);
	if (from->io_priority)
		return refuse(apply, FIELD(IoPriority), NULL);
	if (from->seccomp_policy)
		return refuse(apply, FIELD(SeccompPolicy), NULL);
	if (from->scheduler)
		return refuse(apply, FIELD(LinuxSched), NULL);
	if (from->memory_policy)
		return refuse(apply, FIELD(MemoryPolicy), NULL);
	if (from->rdt)
		return refuse(apply,
			      from->rdt->schemata            ? FIELD(RdtSchemata)
			      : from->rdt->enable_monitoring ? FIELD(RdtEnableMonitoring)
							     : FIELD(RdtClosID),
			      NULL);
	static const struct {
		int field;
		size_t at;
	} keyed[] = {
		{ FIELD(Namespace), offsetof(Ck__Nri__LinuxContainerAdjustment, n_namespaces) },
		{ FIELD(Sysctl), offsetof(Ck__Nri__LinuxContainerAdjustment, n_sysctl) },
		{ FIELD(LinuxNetDevices),
		  offsetof(Ck__Nri__LinuxContainerAdjustment, n_net_devices) },
	};
	for (size_t i = 0; i < CK_COUNT(keyed); i++) {
		struct ck_list list = ck_list_get(from, keyed[i].at);
		const char *key = list.n ? ck_list_key(list.items[0]) : NULL;
		if (key)
			return refuse(apply, keyed[i].field, key + (*key == '-' ? 1 : 0));
	}
	return 0;
}

static int apply_all(struct apply *apply)
{
	const Ck__Nri__ContainerAdjustment *from = apply->adjustment;
	int r;
	if (from->hooks)
		return refuse(apply, FIELD(OciHooks), NULL);
	if (from->n_rlimits)
		return refuse(apply, FIELD(Rlimits), ck_list_key(from->rlimits[0]));
	if (from->linux && (r = refuse_linux(apply, from->linux)) < 0)
		return r;
	for (size_t i = 0; i < CK_COUNT(lists); i++) {
		if ((r = apply_list(apply, &lists[i], from)) < 0)
			return r;
	}
	if (from->linux && ((r = apply_list(apply, &device_list, from->linux)) < 0 ||
			    (r = apply_resources(apply, from->linux)) < 0))
		return r;
	uint32_t unknown = ck_unpacked_unknown(from);
	if (unknown)
		return refuse_unknown(apply, FIELD(None), NULL, unknown);
	if (from->n_args) {
		apply->config->command = from->args;
		apply->config->n_command = from->n_args;
		apply->config->n_args = 0;
	}
	return 0;
}

static int apply_begin(struct apply *apply, const void *request, size_t len, struct ck_error *err)
{
	apply->err = err;
	ck_arena_init(&apply->arena, CK_APPLY_MAX);
	int r = ck_unpack(&apply->arena, TYPE(cri, create_container_request), request, len,
			  &apply->request, err);
	if (r < 0)
		return ck_context(err, r, "the request");
	if (!apply->request->config)
		return ck_fail(err, CK_EMALFORMED, "the request has no config");
	apply->config = apply->request->config;
	return 0;
}

static void apply_end(struct apply *apply)
{
	ck_arena_fini(&apply->arena);
}

int ck_apply_adjustment(const void *request, size_t len, const void *adjustment,
			size_t adjustment_len, const void *owners, size_t owners_len,
			struct ck_bytes *ret_request, struct ck_error *err)
{
	__attribute__((cleanup(apply_end))) struct apply apply = { 0 };
	Ck__Nri__ContainerAdjustment *from;
	Ck__Nri__OwningPlugins *owning;
	int r;
	if ((r = apply_begin(&apply, request, len, err)) < 0)
		return r;
	if ((r = ck_unpack(&apply.arena, TYPE(nri, container_adjustment), adjustment,
			   adjustment_len, &from, err)) < 0)
		return ck_context(err, r, "the adjustment");
	if ((r = ck_unpack(&apply.arena, TYPE(nri, owning_plugins), owners, owners_len, &owning,
			   err)) < 0)
		return ck_context(err, r, "the owners");
	apply.adjustment = from;
	apply.owners = owning->n_owners ? owning->owners[0]->value : NULL;
	if ((r = apply_all(&apply)) < 0)
		return r;
	return ck_pack(apply.request, ret_request, err);
}

int ck_apply_alias(const void *request, size_t len, const char *alias, struct ck_bytes *ret_request,
		   struct ck_error *err)
{
	__attribute__((cleanup(apply_end))) struct apply apply = { 0 };
	int r = apply_begin(&apply, request, len, err);
	if (r < 0)
		return r;
	struct ck_list list = ck_list_get(apply.config, LIST(annotations));
	Ck__Cri__ContainerConfig__AnnotationsEntry *entry =
		ck_arena_new(&apply.arena, TYPE(cri, container_config__annotations_entry));
	if (!entry || !(entry->key = ck_arena_strdup(&apply.arena, CK_ALIAS_ANNOTATION)) ||
	    !(entry->value = ck_arena_strdup(&apply.arena, alias)))
		return fail_memory(&apply);
	if ((r = ck_list_grow(&apply.arena, &list, 1, err)) < 0)
		return r;
	ck_list_drop(&list, CK_ALIAS_ANNOTATION);
	list.items[list.n++] = entry;
	ck_list_set(apply.config, LIST(annotations), list);
	return ck_pack(apply.request, ret_request, err);
}

/* ---- updates --------------------------------------------------------------------------------- */

/* the kubelet's resources, which may be in several pieces, into @linux_part; the rest unchanged
 * into
 * @out */
static int split_update(struct ck_wire wire, struct ck_writer *out, struct ck_bytes *linux_part,
			struct ck_error *err)
{
	struct ck_wire_field field;
	const unsigned char *before = wire.p;
	int r;
	while ((r = ck_wire_next(&wire, &field, err)) > 0) {
		bool ours = field.number == CRI_UpdateContainerResourcesRequest_linux &&
			    field.type == CK_WIRE_BYTES;
		if (ours ? ck_bytes_add(linux_part, field.data, field.len) < 0
			 : ck_bytes_add(&out->bytes, before, (size_t)(wire.p - before)) < 0)
			return ck_nomem(err);
		before = wire.p;
	}
	return r;
}

int ck_apply_update(const void *request, size_t len, const void *resources, size_t resources_len,
		    struct ck_bytes *ret_request, struct ck_error *err)
{
	__attribute__((cleanup(ck_arena_fini))) struct ck_arena arena;
	CK_AUTO_BYTES struct ck_bytes linux_part = { 0 }, cri = { 0 };
	struct ck_writer out = { .bytes = *ret_request };
	size_t before = out.bytes.len;
	Ck__Cri__LinuxContainerResources *all;
	ck_arena_init(&arena, CK_APPLY_MAX);
	int r = split_update(ck_wire_begin(request, len), &out, &linux_part, err);
	if (r == 0)
		r = ck_resources_to_cri(resources, resources_len, &cri, err);
	if (r == 0)
		r = ck_unpack(&arena, TYPE(cri, linux_container_resources), linux_part.p,
			      linux_part.len, &all, err);
	if (r == 0)
		r = set_resources(&arena, all, &cri, err);
	if (r == 0) {
		size_t opened = ck_writer_open(&out, CRI_UpdateContainerResourcesRequest_linux);
		if (out.r == 0)
			out.r = ck_pack(all, &out.bytes, err);
		ck_writer_close(&out, opened);
		r = out.r < 0 ? ck_nomem(err) : 0;
	}
	*ret_request = out.bytes; /* its memory may have moved */
	if (r < 0)
		ret_request->len = before;
	return r;
}

int ck_apply_resources(const char *container_id, const void *resources, size_t len,
		       struct ck_bytes *ret_request, struct ck_error *err)
{
	CK_AUTO_BYTES struct ck_bytes request = { 0 };
	if (ck_cri_put_id(&request, container_id) < 0)
		return ck_nomem(err);
	return ck_apply_update(request.p, request.len, resources, len, ret_request, err);
}
