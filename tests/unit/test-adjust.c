/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plugins' changes merged: every field set, set twice, removed, overridden, and shown to the next;
 * other containers; evictions; validation; what is malformed or too much.
 */
#include "tests/unit/harness.h"

#include "hooks/adjust/adjust.h"
#include "hooks/wire/nri.pb-c.h"
#include "src/base/fault.h"
#include "src/base/limits.h"
#include "tests/unit/proto-text.h"
#include "tests/unit/wire-build.h"

#define TYPE(name) (&ck__nri__##name##__descriptor)

static const ProtobufCMessageDescriptor *const reply_types[] = {
	[CK_REPLY_CREATE_CONTAINER] = &ck__nri__create_container_response__descriptor,
	[CK_REPLY_UPDATE_CONTAINER] = &ck__nri__update_container_response__descriptor,
	[CK_REPLY_STOP_CONTAINER] = &ck__nri__stop_container_response__descriptor,
	[CK_REPLY_SYNCHRONIZE] = &ck__nri__synchronize_response__descriptor,
	[CK_REPLY_UPDATE_CONTAINERS] = &ck__nri__update_containers_request__descriptor,
};

static struct ck_adjust *begin(const char *container)
{
	struct ck_bytes bytes = { 0 };
	struct ck_adjust *adjust = NULL;
	text_proto(TYPE(container), container, &bytes);
	unsigned char *copy = exact_copy(bytes.p, bytes.len);
	assert_int_equal(ck_adjust_create(copy, bytes.len, &adjust, NULL), 0);
	free(copy);
	ck_bytes_free(&bytes);
	return adjust;
}

static struct ck_adjust *begin_update(const char *id, const char *resources)
{
	struct ck_bytes bytes = { 0 };
	struct ck_adjust *adjust = NULL;
	text_proto(TYPE(linux_resources), resources, &bytes);
	assert_int_equal(ck_adjust_update(id, bytes.p, bytes.len, &adjust, NULL), 0);
	ck_bytes_free(&bytes);
	return adjust;
}

static int reply_as(struct ck_adjust *adjust, enum ck_adjust_reply what, const char *plugin,
		    const char *text, struct ck_error *err)
{
	struct ck_bytes bytes = { 0 };
	char name[CK_NRI_NAME_MAX + 1];
	text_proto(reply_types[what], text, &bytes);
	unsigned char *copy = exact_copy(bytes.p, bytes.len);
	snprintf(name, sizeof(name), "%s", plugin);
	int r = ck_adjust_reply(adjust, what, name, copy, bytes.len, err);
	memset(name, 'x', sizeof(name)); /* nothing of it is borrowed */
	free(copy);
	ck_bytes_free(&bytes);
	return r;
}

/* @adjustment: the inside of adjust{} */
static int reply(struct ck_adjust *adjust, const char *plugin, const char *adjustment,
		 struct ck_error *err)
{
	char text[4096];
	snprintf(text, sizeof(text), "adjust{%s}", adjustment);
	return reply_as(adjust, CK_REPLY_CREATE_CONTAINER, plugin, text, err);
}

static void assert_text(const ProtobufCMessageDescriptor *type, struct ck_bytes *bytes,
			const char *expected)
{
	char *text = proto_text(type, bytes->p, bytes->len);
	assert_string_equal(text, expected);
	free(text);
	ck_bytes_free(bytes);
}

static void assert_result(const struct ck_adjust *adjust, const char *expected)
{
	struct ck_bytes bytes = { 0 };
	assert_int_equal(ck_adjust_result(adjust, &bytes, NULL), 0);
	assert_text(TYPE(container_adjustment), &bytes, expected);
	assert_int_equal(ck_adjust_is_empty(adjust), !*expected);
}

static void assert_seen(const struct ck_adjust *adjust, const char *expected)
{
	struct ck_bytes bytes = { 0 };
	assert_int_equal(ck_adjust_seen(adjust, &bytes, NULL), 0);
	assert_text(TYPE(container), &bytes, expected);
}

static const char *field_name(int field)
{
	return protobuf_c_enum_descriptor_get_value(&ck__nri__field__descriptor, field)->name;
}

/* "c1: Args=10-a Env[A]=-20-b; x: ...": whole fields first */
static void assert_owners(const struct ck_adjust *adjust, const char *expected)
{
	struct ck_bytes bytes = { 0 };
	char text[1024] = "";
	size_t n = 0;
	assert_int_equal(ck_adjust_owners(adjust, &bytes, NULL), 0);
	Ck__Nri__OwningPlugins *all = ck__nri__owning_plugins__unpack(NULL, bytes.len, bytes.p);
	assert_non_null(all);
	for (size_t i = 0; i < all->n_owners; i++) {
		const Ck__Nri__FieldOwners *owners = all->owners[i]->value;
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s:", i ? "; " : "",
				      all->owners[i]->key);
		for (size_t k = 0; k < owners->n_simple; k++)
			n += (size_t)snprintf(text + n, sizeof(text) - n, " %s=%s",
					      field_name(owners->simple[k]->key),
					      owners->simple[k]->value);
		for (size_t k = 0; k < owners->n_compound; k++) {
			const Ck__Nri__CompoundFieldOwners *keys = owners->compound[k]->value;
			for (size_t m = 0; m < keys->n_owners; m++)
				n += (size_t)snprintf(text + n, sizeof(text) - n, " %s[%s]=%s",
						      field_name(owners->compound[k]->key),
						      keys->owners[m]->key, keys->owners[m]->value);
		}
	}
	ck__nri__owning_plugins__free_unpacked(all, NULL);
	ck_bytes_free(&bytes);
	assert_string_equal(text, expected);
}

/* ---- the fields ------------------------------------------------------------------------------ */

#define CONTAINER \
	"id:'c1' annotations{key:'old' value:'1'} args:'/bin/old' env:'PATH=/bin' env:'LONG' " \
	"mounts{destination:'/old' source:'/host'} linux{namespaces{type:'network' path:'/n'} " \
	"devices{path:'/dev/old'} " \
	"resources{memory{limit{value:100}} hugepage_limits{page_size:'2Mi' limit:1} " \
	"unified{key:'cpu.max' value:'1'} }" \
	" sysctl{key:'net.old' value:'1'} net_devices{key:'eth9' value{name:'in9'}}} " \
	"rlimits{type:'RLIMIT_CORE' hard:1}"

/* Each row: what a plugin sets, what another sets instead, the field's name in a conflict, and its
 * owner's entry. */
static const struct row {
	const char *set, *set_again; /* inside of adjust{} */
	const char *remove;          /* NULL: it cannot be removed */
	const char *field;           /* as a conflict names it */
	bool alone;                  /* in a linux{} */
} rows[] = {
	{ "annotations{key:'k' value:'v'}", "annotations{key:'k' value:'w'}",
	  "annotations{key:'-k'}", "Annotations k", 0 },
	{ "mounts{destination:'/m' source:'/a'}", "mounts{destination:'/m' source:'/b'}",
	  "mounts{destination:'-/m'}", "Mounts /m", 0 },
	{ "env{key:'E' value:'1'}", "env{key:'E' value:'2'}", "env{key:'-E'}", "Env E", 0 },
	{ "args:'a' args:'b'", "args:'c'", NULL, "Args", 0 },
	{ "rlimits{type:'RLIMIT_NPROC' hard:2 soft:1}", "rlimits{type:'RLIMIT_NPROC'}", NULL,
	  "Rlimits RLIMIT_NPROC", 0 },
	{ "CDI_devices{name:'v.com/c=d'}", "CDI_devices{name:'v.com/c=d'}", NULL,
	  "CdiDevices v.com/c=d", 0 },
	{ "devices{path:'/dev/d' type:'c' major:1}", "devices{path:'/dev/d'}",
	  "devices{path:'-/dev/d'}", "Devices /dev/d", 1 },
	{ "namespaces{type:'ipc' path:'/i'}", "namespaces{type:'ipc'}", NULL, "Namespace ipc", 1 },
	{ "sysctl{key:'s' value:'1'}", "sysctl{key:'s' value:'2'}", "sysctl{key:'-s'}", "Sysctl s",
	  1 },
	{ "net_devices{key:'e0' value{name:'n'}}", "net_devices{key:'e0' value{}}",
	  "net_devices{key:'-e0'}", "LinuxNetDevices e0", 1 },
	{ "cgroups_path:'/a'", "cgroups_path:'/b'", NULL, "CgroupsPath", 1 },
	{ "oom_score_adj{value:-5}", "oom_score_adj{}", NULL, "OomScoreAdj", 1 },
	{ "io_priority{class:IOPRIO_CLASS_RT priority:1}", "io_priority{}", NULL, "IoPriority", 1 },
	{ "seccomp_policy{default_action:'x'}", "seccomp_policy{}", NULL, "SeccompPolicy", 1 },
	{ "scheduler{policy:SCHED_RR flags:SCHED_FLAG_RECLAIM}", "scheduler{}", NULL, "LinuxSched",
	  1 },
	{ "memory_policy{mode:MPOL_BIND nodes:'0'}", "memory_policy{}", NULL, "MemoryPolicy", 1 },
	{ "rdt{clos_id{value:'c'}}", "rdt{clos_id{}}", NULL, "RdtClosID", 1 },
	{ "rdt{schemata{value:'a' value:'b'}}", "rdt{schemata{}}", NULL, "RdtSchemata", 1 },
	{ "rdt{enable_monitoring{value:true}}", "rdt{enable_monitoring{}}", NULL,
	  "RdtEnableMonitoring", 1 },
#define RESOURCE(inside, again, field) \
	{ \
		"resources{" inside "}", "resources{" again "}", NULL, field, 1 \
	}
#define MEMORY(name, field) RESOURCE("memory{" name "{value:1}}", "memory{" name "{}}", field)
#define CPU(name, field)    RESOURCE("cpu{" name "{value:1}}", "cpu{" name "{}}", field)
	MEMORY("limit", "MemLimit"),
	MEMORY("reservation", "MemReservation"),
	MEMORY("swap", "MemSwapLimit"),
	MEMORY("kernel", "MemKernelLimit"),
	MEMORY("kernel_tcp", "MemTCPLimit"),
	MEMORY("swappiness", "MemSwappiness"),
	RESOURCE("memory{disable_oom_killer{value:true}}", "memory{disable_oom_killer{}}",
		 "MemDisableOomKiller"),
	RESOURCE("memory{use_hierarchy{value:true}}", "memory{use_hierarchy{}}", "MemUseHierarchy"),
	CPU("shares", "CPUShares"),
	CPU("quota", "CPUQuota"),
	CPU("period", "CPUPeriod"),
	CPU("realtime_runtime", "CPURealtimeRuntime"),
	CPU("realtime_period", "CPURealtimePeriod"),
	RESOURCE("cpu{cpus:'0'}", "cpu{cpus:'1'}", "CPUSetCPUs"),
	RESOURCE("cpu{mems:'0'}", "cpu{mems:'1'}", "CPUSetMems"),
	RESOURCE("hugepage_limits{page_size:'1Gi' limit:1}", "hugepage_limits{page_size:'1Gi'}",
		 "HugepageLimits 1Gi"),
	RESOURCE("unified{key:'u' value:'1'}", "unified{key:'u' value:'2'}", "CgroupsUnified u"),
	RESOURCE("blockio_class{value:'b'}", "blockio_class{}", "BlockioClass"),
	RESOURCE("rdt_class{value:'r'}", "rdt_class{}", "RdtClass"),
	RESOURCE("pids{limit:5}", "pids{}", "PidsLimit"),
};

static const char *inside(const struct row *row, const char *text, char *buf, size_t size)
{
	snprintf(buf, size, row->alone ? "linux{%s}" : "%s", text);
	return buf;
}

static void every_field_is_set(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct ck_adjust *adjust = begin("id:'c1'");
		char set[512];
		assert_int_equal(reply(adjust, "10-a",
				       inside(&rows[i], rows[i].set, set, sizeof(set)), NULL),
				 0);
		assert_result(adjust, set);
		ck_adjust_free(adjust);
	}
}

/* all at once, by as many plugins: they do not hurt each other */
static void different_fields_go_together(void **state)
{
	(void)state;
	struct ck_adjust *adjust = begin(CONTAINER);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		char set[512], plugin[16];
		snprintf(plugin, sizeof(plugin), "%02zu-p", i);
		assert_int_equal(reply(adjust, plugin,
				       inside(&rows[i], rows[i].set, set, sizeof(set)), NULL),
				 0);
	}
	assert_result(
		adjust,
		"annotations{key:'k' value:'v'} mounts{destination:'/m' source:'/a'} env{key:'E' "
		"value:'1'} "
		"linux{devices{path:'/dev/d' type:'c' major:1} "
		"resources{memory{limit{value:1} reservation{value:1} swap{value:1} "
		"kernel{value:1} kernel_tcp{value:1} "
		"swappiness{value:1} disable_oom_killer{value:true} use_hierarchy{value:true}} "
		"cpu{shares{value:1} quota{value:1} period{value:1} realtime_runtime{value:1} "
		"realtime_period{value:1} cpus:'0' "
		"mems:'0'} hugepage_limits{page_size:'1Gi' limit:1} blockio_class{value:'b'} "
		"rdt_class{value:'r'} "
		"unified{key:'u' value:'1'} pids{limit:5}} cgroups_path:'/a' "
		"oom_score_adj{value:-5} "
		"io_priority{class:IOPRIO_CLASS_RT priority:1} seccomp_policy{default_action:'x'} "
		"namespaces{type:'ipc' path:'/i'} sysctl{key:'s' value:'1'} net_devices{key:'e0' "
		"value{name:'n'}} "
		"scheduler{policy:SCHED_RR flags:SCHED_FLAG_RECLAIM} "
		"rdt{clos_id{value:'c'} schemata{value:'a' value:'b'} "
		"enable_monitoring{value:true}} "
		"memory_policy{mode:MPOL_BIND nodes:'0'}} rlimits{type:'RLIMIT_NPROC' hard:2 "
		"soft:1} "
		"CDI_devices{name:'v.com/c=d'} args:'a' args:'b'");
	ck_adjust_free(adjust);
}

static void two_plugins_conflict_over_each_field(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct ck_adjust *adjust = begin(CONTAINER);
		struct ck_error err = { 0 };
		char set[512], expected[256];
		assert_int_equal(reply(adjust, "10-a",
				       inside(&rows[i], rows[i].set, set, sizeof(set)), NULL),
				 0);
		assert_int_equal(reply(adjust, "20-b",
				       inside(&rows[i], rows[i].set_again, set, sizeof(set)), &err),
				 -CK_ECONFLICT);
		snprintf(expected, sizeof(expected),
			 "plugins \"20-b\" and \"10-a\" both tried to set %s", rows[i].field);
		assert_string_equal(err.text, expected);
		ck_adjust_free(adjust);
	}
}

/* a plugin removes, in one answer with its own, what another had set; a third cannot take that */
static void removing_and_setting_overrides(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		if (!rows[i].remove)
			continue;
		struct ck_adjust *adjust = begin("id:'c1'");
		struct ck_error err = { 0 };
		char text[512], both[512], expected[256];
		assert_int_equal(reply(adjust, "10-a",
				       inside(&rows[i], rows[i].set, text, sizeof(text)), NULL),
				 0);
		snprintf(both, sizeof(both), "%s %s", rows[i].set_again, rows[i].remove);
		assert_int_equal(
			reply(adjust, "20-b", inside(&rows[i], both, text, sizeof(text)), NULL), 0);
		assert_result(adjust, inside(&rows[i], rows[i].set_again, text, sizeof(text)));
		assert_int_equal(reply(adjust, "30-c",
				       inside(&rows[i], rows[i].set, text, sizeof(text)), &err),
				 -CK_ECONFLICT);
		snprintf(expected, sizeof(expected),
			 "plugins \"30-c\" and \"20-b\" both tried to set %s", rows[i].field);
		assert_string_equal(err.text, expected);
		ck_adjust_free(adjust);
	}
}

/* what only the container itself has is removed, too: Go's side forgets it for variables and
 * devices, and misplaces sysctls */
static void what_nobody_set_is_removed(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		if (!rows[i].remove)
			continue;
		struct ck_adjust *adjust = begin("id:'c1'");
		char text[512];
		inside(&rows[i], rows[i].remove, text, sizeof(text));
		assert_int_equal(reply(adjust, "10-a", text, NULL), 0);
		assert_int_equal(reply(adjust, "20-b", text, NULL), 0); /* once is enough */
		assert_result(adjust, text);
		/* and may be set by whoever comes then */
		assert_int_equal(reply(adjust, "30-c",
				       inside(&rows[i], rows[i].set, text, sizeof(text)), NULL),
				 0);
		assert_result(adjust, text);
		ck_adjust_free(adjust);
	}
}

static void removing_what_another_set_keeps_others_out(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		if (!rows[i].remove)
			continue;
		struct ck_adjust *adjust = begin("id:'c1'");
		char text[512];
		assert_int_equal(reply(adjust, "10-a",
				       inside(&rows[i], rows[i].set, text, sizeof(text)), NULL),
				 0);
		assert_int_equal(reply(adjust, "20-b",
				       inside(&rows[i], rows[i].remove, text, sizeof(text)), NULL),
				 0);
		assert_result(adjust, text);
		assert_int_equal(reply(adjust, "30-c",
				       inside(&rows[i], rows[i].set, text, sizeof(text)), NULL),
				 -CK_ECONFLICT);
		ck_adjust_free(adjust);
		/* the one that removed it may set it */
		adjust = begin("id:'c1'");
		assert_int_equal(reply(adjust, "10-a",
				       inside(&rows[i], rows[i].set, text, sizeof(text)), NULL),
				 0);
		assert_int_equal(reply(adjust, "20-b",
				       inside(&rows[i], rows[i].remove, text, sizeof(text)), NULL),
				 0);
		assert_int_equal(reply(adjust, "20-b",
				       inside(&rows[i], rows[i].set_again, text, sizeof(text)),
				       NULL),
				 0);
		assert_result(adjust, text);
		ck_adjust_free(adjust);
	}
}

static void namespaces_are_removed_once(void **state)
{
	(void)state;
	struct ck_adjust *adjust = begin(CONTAINER);
	struct ck_error err = { 0 };
	assert_int_equal(reply(adjust, "10-a", "linux{namespaces{type:'-network'}}", NULL), 0);
	assert_result(adjust, "linux{namespaces{type:'-network'}}");
	assert_owners(adjust, "c1: Namespace[network]=10-a");
	assert_int_equal(reply(adjust, "20-b", "linux{namespaces{type:'-network'}}", &err),
			 -CK_ECONFLICT);
	assert_string_equal(err.text,
			    "plugins \"20-b\" and \"10-a\" both tried to set Namespace network");
	ck_adjust_free(adjust);
}

static void arguments_are_taken_over_with_an_empty_first(void **state)
{
	(void)state;
	struct ck_adjust *adjust = begin(CONTAINER);
	assert_int_equal(reply(adjust, "10-a", "args:'a'", NULL), 0);
	assert_int_equal(reply(adjust, "20-b", "args:'' args:'b' args:'c'", NULL), 0);
	assert_result(adjust, "args:'b' args:'c'");
	assert_owners(adjust, "c1: Args=20-b");
	assert_int_equal(reply(adjust, "30-c", "args:'d'", NULL), -CK_ECONFLICT);
	ck_adjust_free(adjust);

	adjust = begin("id:'c1' args:'own'");
	assert_int_equal(reply(adjust, "10-a", "args:'a'", NULL), 0);
	assert_seen(adjust, "id:'c1' args:'a' linux{resources{}}");
	assert_int_equal(reply(adjust, "20-b", "args:''", NULL), 0);
	assert_result(adjust, "");
	assert_seen(adjust, "id:'c1' args:'own'");
	ck_adjust_free(adjust);
}

static void hooks_add_up(void **state)
{
	(void)state;
	struct ck_adjust *adjust = begin("id:'c1' hooks{poststop{path:'/own'}}");
	assert_int_equal(
		reply(adjust, "10-a", "hooks{prestart{path:'/a'} create_runtime{path:'/r'}}", NULL),
		0);
	assert_int_equal(reply(adjust, "20-b",
			       "hooks{prestart{path:'/b'} create_container{path:'/c'} "
			       "start_container{path:'/s'}}",
			       NULL),
			 0);
	assert_int_equal(reply(adjust, "30-c", "hooks{}", NULL), 0);
	assert_int_equal(
		reply(adjust, "40-d", "hooks{poststart{path:'/p'} poststop{path:'/q'}}", NULL), 0);
	assert_result(adjust,
		      "hooks{prestart{path:'/a'} prestart{path:'/b'} create_runtime{path:'/r'} "
		      "create_container{path:'/c'} "
		      "start_container{path:'/s'} poststart{path:'/p'} poststop{path:'/q'}}");
	assert_seen(
		adjust,
		"id:'c1' hooks{prestart{path:'/a'} prestart{path:'/b'} create_runtime{path:'/r'} "
		"create_container{path:'/c'} start_container{path:'/s'} poststart{path:'/p'} "
		"poststop{path:'/own'} "
		"poststop{path:'/q'}} linux{resources{}}");
	assert_owners(adjust, "c1: OciHooks=10-a,20-b,40-d");
	ck_adjust_free(adjust);
}

static void device_rules_add_up(void **state)
{
	(void)state;
	struct ck_adjust *adjust = begin("id:'c1' linux{resources{devices{access:'m'}}}");
	assert_int_equal(
		reply(adjust, "10-a", "linux{resources{devices{allow:true access:'r'}}}", NULL), 0);
	assert_int_equal(
		reply(adjust, "20-b", "linux{resources{devices{allow:true access:'r'}}}", NULL), 0);
	assert_result(
		adjust,
		"linux{resources{devices{allow:true access:'r'} devices{allow:true access:'r'}}}");
	assert_seen(adjust,
		    "id:'c1' linux{resources{devices{access:'m'} devices{allow:true access:'r'} "
		    "devices{allow:true access:'r'}}}");
	assert_owners(adjust, "c1: None=10-a,20-b");
	ck_adjust_free(adjust);
}

static void removing_rdt_takes_it_from_all(void **state)
{
	(void)state;
	struct ck_adjust *adjust = begin("id:'c1'");
	assert_int_equal(reply(adjust, "10-a",
			       "linux{rdt{clos_id{value:'a'} enable_monitoring{value:true}}}",
			       NULL),
			 0);
	assert_int_equal(reply(adjust, "20-b", "linux{rdt{remove:true}}", NULL), 0);
	assert_result(adjust, "linux{rdt{remove:true}}");
	assert_owners(adjust, "c1: RdtClosID=-20-b RdtEnableMonitoring=-20-b RdtSchemata=-20-b");
	assert_int_equal(reply(adjust, "20-b", "linux{rdt{schemata{value:'x'}}}", NULL), 0);
	assert_result(adjust, "linux{rdt{schemata{value:'x'}}}");
	assert_int_equal(reply(adjust, "30-c", "linux{rdt{clos_id{value:'c'}}}", NULL),
			 -CK_ECONFLICT);
	ck_adjust_free(adjust);
}

/* "" for cpus and mems, no value at all elsewhere */
static void nothing_is_owned_by_who_sets_nothing(void **state)
{
	(void)state;
	static const char *const nothing[] = {
		"",
		"linux{}",
		"linux{resources{}}",
		"linux{resources{memory{} cpu{cpus:'' mems:''}}}",
		"hooks{}",
		"linux{rdt{}}",
		"linux{cgroups_path:''}",
	};
	struct ck_adjust *adjust = begin(CONTAINER);
	struct ck_bytes before = { 0 }, seen = { 0 };
	text_proto(TYPE(container), CONTAINER, &before);
	for (size_t i = 0; i < sizeof(nothing) / sizeof(*nothing); i++)
		assert_int_equal(reply(adjust, "10-a", nothing[i], NULL), 0);
	assert_int_equal(ck_adjust_reply(adjust, CK_REPLY_CREATE_CONTAINER, "10-a", NULL, 0, NULL),
			 0);
	assert_result(adjust, "");
	assert_owners(adjust, "");
	assert_int_equal(ck_adjust_seen(adjust, &seen, NULL), 0);
	assert_int_equal(seen.len, before.len); /* to the byte as it came */
	assert_memory_equal(seen.p, before.p, seen.len);
	ck_bytes_free(&before);
	ck_bytes_free(&seen);
	ck_adjust_free(adjust);
}

/* ---- the container that the next plugin is shown --------------------------------------------- */

static void later_plugins_see_what_was_changed(void **state)
{
	(void)state;
	struct ck_adjust *adjust = begin(CONTAINER " 99:'kept' pid:7");
	assert_int_equal(
		reply(adjust, "10-a",
		      "annotations{key:'-old'} annotations{key:'new' value:'2'} args:'/new' "
		      "env{key:'PATH' value:'/new'} env{key:'-LONG'} env{key:'A'} "
		      "mounts{destination:'/old' source:'/other'} mounts{destination:'/m'} "
		      "rlimits{type:'RLIMIT_CORE' hard:2} "
		      "CDI_devices{name:'v.com/c=d'} "
		      "linux{devices{path:'-/dev/old'} devices{path:'/dev/new'} "
		      "namespaces{type:'-network'} "
		      "namespaces{type:'ipc'} "
		      "sysctl{key:'-net.old'} net_devices{key:'eth9' value{name:'in8'}} "
		      "oom_score_adj{} cgroups_path:'/c' "
		      "memory_policy{nodes:'0'} rdt{clos_id{value:'c'}} io_priority{priority:3} "
		      "resources{memory{swap{value:1}} cpu{shares{value:2}} "
		      "hugepage_limits{page_size:'2Mi' limit:5} "
		      "unified{key:'cpu.max' value:'2'} pids{limit:3} blockio_class{value:'b'}}}",
		      NULL),
		0);
	assert_seen(adjust,
		    "id:'c1' annotations{key:'new' value:'2'} args:'/new' env:'PATH=/new' env:'A=' "
		    "mounts{destination:'/old' source:'/other'} mounts{destination:'/m'} "
		    "linux{namespaces{type:'ipc'} devices{path:'/dev/new'} "
		    "resources{memory{limit{value:100} swap{value:1}} cpu{shares{value:2}} "
		    "hugepage_limits{page_size:'2Mi' limit:5} "
		    "blockio_class{value:'b'} unified{key:'cpu.max' value:'2'} pids{limit:3}} "
		    "oom_score_adj{} cgroups_path:'/c' "
		    "io_priority{priority:3} net_devices{key:'eth9' value{name:'in8'}}} pid:7 "
		    "rlimits{type:'RLIMIT_CORE' hard:2} 99:'kept'");
	ck_adjust_free(adjust);
}

static void fields_of_a_later_nri_are_carried_on(void **state)
{
	(void)state;
	struct ck_adjust *adjust = begin("id:'c1'");
	assert_int_equal(reply(adjust, "10-a",
			       "99:'x' linux{98:1 resources{97:2 cpu{96:3}}} hooks{95:4}", NULL),
			 0);
	assert_int_equal(reply(adjust, "20-b", "99:'y' mounts{destination:'/m' 94:5}", NULL), 0);
	assert_result(adjust, "mounts{destination:'/m' 94:5} hooks{95:4} linux{resources{cpu{96:3} "
			      "97:2} 98:1} 99:'x' 99:'y'");
	/* nobody can tell who has a right to it, but who has a part in it */
	assert_owners(adjust, "c1: None=10-a,20-b Mounts[/m]=20-b");
	ck_adjust_free(adjust);
}

static void owners_are_told(void **state)
{
	(void)state;
	struct ck_adjust *adjust = begin(CONTAINER);
	assert_int_equal(reply(adjust, "10-a",
			       "env{key:'A'} env{key:'B'} linux{resources{cpu{shares{value:1}}}}",
			       NULL),
			 0);
	assert_int_equal(reply(adjust, "20-b", "env{key:'-B'} env{key:'-PATH'} env{key:'C'}", NULL),
			 0);
	assert_owners(adjust,
		      "c1: CPUShares=10-a Env[A]=10-a Env[B]=-20-b Env[PATH]=-20-b Env[C]=20-b");
	assert_int_equal(reply(adjust, "30-c", "annotations{key:'N' value:'1'}", NULL), 0);
	assert_owners(adjust, "c1: CPUShares=10-a Env[A]=10-a Env[B]=-20-b Env[PATH]=-20-b "
			      "Env[C]=20-b Annotations[N]=30-c");
	ck_adjust_free(adjust);
}

/* ---- other containers ------------------------------------------------------------------------ */

static void assert_other(struct ck_adjust *adjust, size_t i, const char *id, const char *plugins,
			 const char *resources, bool ignore)
{
	struct ck_adjust_other other;
	assert_int_equal(ck_adjust_other(adjust, i, &other, NULL), 0);
	assert_string_equal(other.container_id, id);
	assert_string_equal(other.plugins, plugins);
	assert_int_equal(other.ignore_failure, ignore);
	char *text = proto_text(TYPE(linux_resources), other.resources, other.len);
	assert_string_equal(text, resources);
	free(text);
}

#define UPDATE(id, resources)        "update{container_id:'" id "' linux{resources{" resources "}}}"
#define UPDATE_IGNORE(id, resources) \
	"update{container_id:'" id "' linux{resources{" resources "}} ignore_failure:true}"

static void updates_of_others_are_merged(void **state)
{
	(void)state;
	struct ck_adjust *adjust = begin("id:'c1'");
	const enum ck_adjust_reply create = CK_REPLY_CREATE_CONTAINER;
	assert_int_equal(reply_as(adjust, create, "10-a",
				  UPDATE_IGNORE("x", "cpu{shares{value:1}}")
					  UPDATE("y", "pids{limit:5}"),
				  NULL),
			 0);
	assert_int_equal(reply_as(adjust, create, "20-b",
				  UPDATE_IGNORE("x", "cpu{quota{value:2}} unified{key:'k'}"), NULL),
			 0);
	assert_int_equal(reply_as(adjust, create, "30-c",
				  UPDATE_IGNORE("y", "memory{limit{value:3}}"), NULL),
			 0);
	/* nothing in it: nobody is to be updated */
	assert_int_equal(reply_as(adjust, create, "40-d",
				  UPDATE("z", "cpu{}") "update{container_id:'w'} update{}", NULL),
			 0);
	struct ck_error untouched = { .code = 77 };
	assert_int_equal(reply_as(adjust, create, "45-e",
				  UPDATE_IGNORE("x", "cpu{period{value:4}}"), &untouched),
			 0);
	assert_int_equal(untouched.code, 77); /* there was no failure */
	assert_int_equal(ck_adjust_others_n(adjust), 2);
	assert_other(adjust, 0, "x", "10-a,20-b,45-e",
		     "cpu{shares{value:1} quota{value:2} period{value:4}} unified{key:'k'}", true);
	assert_other(adjust, 1, "y", "10-a,30-c", "memory{limit{value:3}} pids{limit:5}", false);
	assert_other(adjust, 1, "y", "10-a,30-c", "memory{limit{value:3}} pids{limit:5}", false);
	/* after it was looked at */
	assert_int_equal(reply_as(adjust, create, "40-d", UPDATE("y", "cpu{mems:'0'}"), NULL), 0);
	assert_other(adjust, 1, "y", "10-a,30-c,40-d",
		     "memory{limit{value:3}} cpu{mems:'0'} pids{limit:5}", false);
	assert_true(ck_adjust_is_empty(adjust));
	assert_owners(adjust, "x: CPUShares=10-a CPUQuota=20-b CPUPeriod=45-e "
			      "CgroupsUnified[k]=20-b; "
			      "y: PidsLimit=10-a MemLimit=30-c CPUSetMems=40-d");

	struct ck_error err = { 0 };
	assert_int_equal(
		reply_as(adjust, create, "50-e", UPDATE("x", "cpu{shares{value:9}}"), &err),
		-CK_ECONFLICT);
	assert_string_equal(err.text, "plugins \"50-e\" and \"10-a\" both tried to set CPUShares");
	ck_adjust_free(adjust);
}

/* what may fail leaves no trace if another has a part of it, also not of the parts that nobody
 * had */
static void an_update_that_may_fail_yields_as_a_whole(void **state)
{
	(void)state;
	struct ck_adjust *adjust = begin("id:'c1'");
	const enum ck_adjust_reply create = CK_REPLY_CREATE_CONTAINER;
	assert_int_equal(reply_as(adjust, create, "10-a", UPDATE("x", "cpu{quota{value:1}}"), NULL),
			 0);
	assert_int_equal(
		reply_as(adjust, create, "20-b",
			 UPDATE_IGNORE(
				 "x", "memory{limit{value:7}} cpu{shares{value:2} quota{value:2}}"),
			 NULL),
		0);
	assert_int_equal(reply_as(adjust, create, "30-c",
				  UPDATE("x", "memory{limit{value:3}} cpu{shares{value:3}}"), NULL),
			 0);
	assert_int_equal(ck_adjust_others_n(adjust), 1);
	assert_other(adjust, 0, "x", "10-a,30-c",
		     "memory{limit{value:3}} cpu{shares{value:3} quota{value:1}}", false);
	ck_adjust_free(adjust);
}

static void the_container_being_created_cannot_be_updated(void **state)
{
	(void)state;
	struct ck_adjust *adjust = begin("id:'c1'");
	struct ck_error err = { 0 };
	assert_int_equal(reply_as(adjust, CK_REPLY_CREATE_CONTAINER, "10-a",
				  UPDATE_IGNORE("c1", "pids{limit:1}"), &err),
			 -CK_EINVAL);
	assert_string_equal(err.text, "plugin \"10-a\" asked update of \"c1\" during creation");
	ck_adjust_free(adjust);
	adjust = begin("id:'c1'");
	assert_int_equal(reply_as(adjust, CK_REPLY_CREATE_CONTAINER, "10-a",
				  "evict{container_id:'c1'}", &err),
			 -CK_EINVAL);
	assert_string_equal(err.text, "plugin \"10-a\" asked eviction of \"c1\" during creation");
	ck_adjust_free(adjust);
}

static void an_update_goes_into_what_was_asked_for(void **state)
{
	(void)state;
	struct ck_adjust *adjust = begin_update(
		"c1",
		"memory{limit{value:10}} pids{limit:4} hugepage_limits{page_size:'2Mi' limit:1}");
	struct ck_bytes bytes = { 0 };
	assert_true(ck_adjust_is_empty(adjust));
	assert_int_equal(reply_as(adjust, CK_REPLY_UPDATE_CONTAINER, "10-a",
				  UPDATE("x", "cpu{cpus:'1'}"), NULL),
			 0);
	assert_true(ck_adjust_is_empty(adjust));
	assert_int_equal(
		reply_as(adjust, CK_REPLY_UPDATE_CONTAINER, "10-a",
			 UPDATE("c1",
				"memory{limit{value:20}} hugepage_limits{page_size:'2Mi' limit:2}"),
			 NULL),
		0);
	/* pids were asked for, by nobody among the plugins: they are no conflict, and are changed
	 * like the rest */
	assert_int_equal(reply_as(adjust, CK_REPLY_UPDATE_CONTAINER, "20-b",
				  UPDATE("c1", "pids{limit:8}"), NULL),
			 0);
	assert_false(ck_adjust_is_empty(adjust));
	assert_int_equal(ck_adjust_result(adjust, &bytes, NULL), 0);
	assert_text(
		TYPE(linux_resources), &bytes,
		"memory{limit{value:20}} hugepage_limits{page_size:'2Mi' limit:2} pids{limit:8}");
	assert_int_equal(ck_adjust_seen(adjust, &bytes, NULL), 0);
	assert_text(
		TYPE(linux_resources), &bytes,
		"memory{limit{value:20}} hugepage_limits{page_size:'2Mi' limit:2} pids{limit:8}");
	assert_int_equal(ck_adjust_others_n(adjust), 1);
	assert_other(adjust, 0, "x", "10-a", "cpu{cpus:'1'}", false);
	assert_owners(
		adjust,
		"c1: MemLimit=10-a PidsLimit=20-b HugepageLimits[2Mi]=10-a; x: CPUSetCPUs=10-a");
	/* one that may fail yields to it */
	assert_int_equal(reply_as(adjust, CK_REPLY_UPDATE_CONTAINER, "30-c",
				  UPDATE_IGNORE("c1", "pids{limit:1} cpu{cpus:'0'}"), NULL),
			 0);
	assert_int_equal(ck_adjust_result(adjust, &bytes, NULL), 0);
	assert_text(
		TYPE(linux_resources), &bytes,
		"memory{limit{value:20}} hugepage_limits{page_size:'2Mi' limit:2} pids{limit:8}");
	assert_int_equal(reply_as(adjust, CK_REPLY_UPDATE_CONTAINER, "30-c",
				  UPDATE("c1", "pids{limit:1}"), NULL),
			 -CK_ECONFLICT);
	ck_adjust_free(adjust);
}

/* a plugin that speaks for itself only does not contradict itself */
static void the_last_of_one_plugins_updates_wins(void **state)
{
	(void)state;
	static const enum ck_adjust_reply alone[] = { CK_REPLY_SYNCHRONIZE,
						      CK_REPLY_UPDATE_CONTAINERS };
	for (size_t i = 0; i < sizeof(alone) / sizeof(*alone); i++) {
		struct ck_adjust *adjust = NULL;
		assert_int_equal(ck_adjust_others(&adjust, NULL), 0);
		assert_int_equal(
			reply_as(adjust, alone[i], "10-a",
				 UPDATE("x", "cpu{shares{value:1}} unified{key:'k' value:'1'}")
					 UPDATE("x",
						"cpu{shares{value:2}} unified{key:'k' value:'2'}"),
				 NULL),
			0);
		assert_other(adjust, 0, "x", "10-a",
			     "cpu{shares{value:2}} unified{key:'k' value:'2'}", false);
		ck_adjust_free(adjust);
	}
	struct ck_adjust *adjust = NULL;
	assert_int_equal(ck_adjust_others(&adjust, NULL), 0);
	assert_int_equal(reply_as(adjust, CK_REPLY_STOP_CONTAINER, "10-a",
				  UPDATE("x", "pids{limit:1}"), NULL),
			 0);
	assert_int_equal(reply_as(adjust, CK_REPLY_STOP_CONTAINER, "20-b",
				  UPDATE("x", "pids{limit:2}"), NULL),
			 -CK_ECONFLICT);
	ck_adjust_free(adjust);
}

static void failures_are_told_unless_ignored(void **state)
{
	(void)state;
	struct ck_adjust *adjust = NULL;
	struct ck_bytes bytes = { 0 };
	assert_int_equal(ck_adjust_others(&adjust, NULL), 0);
	assert_int_equal(reply_as(adjust, CK_REPLY_UPDATE_CONTAINERS, "10-a",
				  UPDATE("x", "pids{limit:1}") UPDATE_IGNORE("y", "pids{limit:2}")
					  UPDATE("z", "pids{limit:3}"),
				  NULL),
			 0);
	assert_int_equal(ck_adjust_failed(adjust, (bool[]){ true, true, false }, &bytes, NULL), 0);
	assert_text(TYPE(update_containers_response), &bytes,
		    "failed{container_id:'x' linux{resources{pids{limit:1}}}}");
	assert_int_equal(ck_adjust_failed(adjust, (bool[]){ false, false, false }, &bytes, NULL),
			 0);
	assert_int_equal(bytes.len, 0);
	ck_bytes_free(&bytes);
	ck_adjust_free(adjust);
}

static void evictions_are_kept(void **state)
{
	(void)state;
	struct ck_adjust *adjust = begin("id:'c1'");
	assert_int_equal(reply_as(adjust, CK_REPLY_CREATE_CONTAINER, "10-a",
				  "evict{container_id:'x' reason:'old'}", NULL),
			 0);
	assert_int_equal(reply_as(adjust, CK_REPLY_CREATE_CONTAINER, "20-b",
				  "evict{container_id:'x' reason:'b'} evict{container_id:'y'}",
				  NULL),
			 0);
	assert_int_equal(ck_adjust_evictions_n(adjust), 2);
	struct ck_adjust_eviction first = ck_adjust_eviction(adjust, 0),
				  second = ck_adjust_eviction(adjust, 1);
	assert_string_equal(first.container_id, "x");
	assert_string_equal(first.reason, "old");
	assert_string_equal(first.plugin, "10-a");
	assert_string_equal(second.container_id, "y");
	assert_string_equal(second.reason, "");
	assert_string_equal(second.plugin, "20-b");
	ck_adjust_free(adjust);

	static const enum ck_adjust_reply more[] = { CK_REPLY_UPDATE_CONTAINER,
						     CK_REPLY_UPDATE_CONTAINERS };
	for (size_t i = 0; i < sizeof(more) / sizeof(*more); i++) {
		adjust = begin_update("c1", "");
		assert_int_equal(
			reply_as(adjust, more[i], "10-a", "evict{container_id:'c1'}", NULL), 0);
		assert_int_equal(ck_adjust_evictions_n(adjust), 1);
		ck_adjust_free(adjust);
	}
}

/* ---- validation ------------------------------------------------------------------------------ */

static void validators_are_asked_with_all_of_it(void **state)
{
	(void)state;
	struct ck_adjust *adjust = begin("id:'c1' name:'app'");
	struct ck_bytes pod = { 0 }, bytes = { 0 };
	static const char *const plugins[] = { "10-a", "20-b-c" };
	text_proto(TYPE(pod_sandbox), "id:'p1'", &pod);
	assert_int_equal(
		reply_as(adjust, CK_REPLY_CREATE_CONTAINER, "10-a",
			 "adjust{env{key:'A' value:'1'}}" UPDATE_IGNORE("x", "pids{limit:1}"),
			 NULL),
		0);
	assert_int_equal(ck_adjust_validation(adjust, pod.p, pod.len, plugins, 2, &bytes, NULL), 0);
	assert_text(TYPE(validate_container_adjustment_request), &bytes,
		    "pod{id:'p1'} container{id:'c1' name:'app'} adjust{env{key:'A' value:'1'}} "
		    "update{container_id:'x' linux{resources{pids{limit:1}}} ignore_failure:true} "
		    "owners{owners{key:'c1' value{compound{key:6 value{owners{key:'A' "
		    "value:'10-a'}}}}} "
		    "owners{key:'x' value{simple{key:23 value:'10-a'}}}} "
		    "plugins{name:'a' index:'10'} plugins{name:'b-c' index:'20'}");
	ck_bytes_free(&pod);
	ck_adjust_free(adjust);
}

/* ---- what is malformed, or too much ---------------------------------------------------------- */

static void malformed_answers_are_told(void **state)
{
	(void)state;
	static const struct {
		const char *bytes;
		size_t len;
	} bad[] = {
		{ "\x0a\x05"
		  "abc",
		  5 },                                     /* longer than it is */
		{ "\xff", 1 },                             /* half a number */
		{ "\x08\x01", 2 },                         /* adjust is no number */
		{ "\x0a\x04\x12\x02\x0a\x05", 6 },         /* inside */
		{ "\x0a\x06\x12\x04\x0a\x02\xc3\x28", 8 }, /* not UTF-8 */
		{ "\x0a\x06\x12\x04\x0a\x02"
		  "a\xc3",
		  8 }, /* cut off */
		{ "\x0a\x06\x12\x04\x0a\x02"
		  "a\0",
		  8 }, /* a NUL */
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct ck_adjust *adjust = begin("id:'c1'");
		struct ck_error err = { 0 };
		unsigned char *copy = exact_copy(bad[i].bytes, bad[i].len);
		assert_int_equal(ck_adjust_reply(adjust, CK_REPLY_CREATE_CONTAINER, "10-a", copy,
						 bad[i].len, &err),
				 -CK_EMALFORMED);
		assert_non_null(strstr(err.text, "the answer of plugin \"10-a\": "));
		free(copy);
		ck_adjust_free(adjust);
	}
	struct ck_adjust *adjust = NULL;
	assert_int_equal(ck_adjust_create("\xff", 1, &adjust, NULL), -CK_EMALFORMED);
	assert_int_equal(ck_adjust_update("c1", "\xff", 1, &adjust, NULL), -CK_EMALFORMED);
	assert_null(adjust);
	adjust = begin("id:'c1'");
	assert_int_equal(ck_adjust_reply(adjust, (enum ck_adjust_reply)99, "10-a", "\x0a", 1, NULL),
			 -CK_EINVAL);
	ck_adjust_free(adjust);
}

static void too_many_containers_are_refused(void **state)
{
	(void)state;
	for (unsigned n = CK_NRI_CHANGES_MAX; n <= CK_NRI_CHANGES_MAX + 1; n++) {
		struct ck_adjust *adjust = NULL;
		struct ck_bytes bytes = { 0 };
		for (unsigned i = 0; i < n; i++) {
			char text[128];
			snprintf(text, sizeof(text),
				 i % 2 ? UPDATE("x%u", "pids{limit:1}")
				       : "evict{container_id:'x%u'}",
				 i);
			text_proto(TYPE(update_containers_request), text, &bytes);
		}
		struct ck_error err = { 0 };
		assert_int_equal(ck_adjust_others(&adjust, NULL), 0);
		assert_int_equal(ck_adjust_reply(adjust, CK_REPLY_UPDATE_CONTAINERS, "10-a",
						 bytes.p, bytes.len, &err),
				 n > CK_NRI_CHANGES_MAX ? -CK_ETOOBIG : 0);
		ck_bytes_free(&bytes);
		ck_adjust_free(adjust);
	}
}

static void too_many_changes_of_one_container_are_refused(void **state)
{
	(void)state;
	for (unsigned n = CK_NRI_ENTRIES_MAX; n <= CK_NRI_ENTRIES_MAX + 1; n++) {
		struct ck_adjust *adjust = begin("id:'c1'");
		for (unsigned half = 0; half < 2; half++) {
			struct ck_bytes adjustment = { 0 }, bytes = { 0 };
			for (unsigned i = half ? n / 2 : 0; i < (half ? n : n / 2); i++) {
				char text[64];
				snprintf(text, sizeof(text), "annotations{key:'k%u'}", i);
				text_proto(TYPE(container_adjustment), text, &adjustment);
			}
			put(&bytes, 1, &adjustment);
			assert_int_equal(ck_adjust_reply(adjust, CK_REPLY_CREATE_CONTAINER, "10-a",
							 bytes.p, bytes.len, NULL),
					 half && n > CK_NRI_ENTRIES_MAX ? -CK_ETOOBIG : 0);
			ck_bytes_free(&bytes);
		}
		ck_adjust_free(adjust);
	}
}

/* two bytes each, a hundred unpacked: it has an end */
static void an_answer_of_nothings_is_refused(void **state)
{
	(void)state;
	struct ck_adjust *adjust = begin("id:'c1'");
	struct ck_bytes adjustment = { 0 }, bytes = { 0 };
	struct ck_error err = { 0 };
	for (unsigned i = 0; i < 2u << 20; i++)
		must(ck_bytes_field(&adjustment, 3, "", 0));
	put(&bytes, 1, &adjustment);
	assert_int_equal(ck_adjust_reply(adjust, CK_REPLY_CREATE_CONTAINER, "10-a", bytes.p,
					 bytes.len, &err),
			 -CK_ETOOBIG);
	assert_string_equal(err.text, "the answer of plugin \"10-a\": it takes more than 64 MiB");
	ck_bytes_free(&bytes);
	ck_adjust_free(adjust);
}

/* each allocation fails in turn: the error says so, and nothing leaks (which the sanitizers
 * watch) */
static int whole_story(void)
{
	static const char container[] = "\x0a\x02"
					"c1"
					"\x42\x03"
					"A=1";
	CK_AUTO(ck_adjust) *adjust = NULL, *update = NULL;
	CK_AUTO_BYTES struct ck_bytes out = { 0 };
	struct ck_adjust_other other;
	struct ck_bytes replies[4] = { 0 };
	text_proto(reply_types[0],
		   "adjust{env{key:'A'} env{key:'-B'} args:'x' hooks{prestart{}} "
		   "annotations{key:'k'} 99:1 "
		   "linux{rdt{remove:true clos_id{}} devices{path:'d'} resources{cpu{shares{}} "
		   "memory{limit{}} "
		   "devices{}}}} evict{container_id:'e'}" UPDATE("x", "pids{}"),
		   &replies[0]);
	text_proto(reply_types[0],
		   "adjust{hooks{prestart{}} linux{resources{cpu{quota{}}}}}" UPDATE_IGNORE(
			   "x", "pids{}"),
		   &replies[1]);
	text_proto(reply_types[0], UPDATE("x", "unified{key:'k'}"), &replies[2]);
	text_proto(reply_types[1], UPDATE("c1", "pids{}") UPDATE("y", "pids{}"), &replies[3]);
	ck_fault_arm(CK_FAULT_ALLOC, 0, false);
	for (unsigned nth = 1;; nth++) {
		struct ck_error err = { 0 };
		ck_fault_arm(CK_FAULT_ALLOC, nth, false);
		int r = ck_adjust_create(container, sizeof(container) - 1, &adjust, &err);
		for (unsigned i = 0; i < 3 && r == 0; i++)
			r = ck_adjust_reply(adjust, CK_REPLY_CREATE_CONTAINER,
					    i == 1 ? "20-b" : "10-a", replies[i].p, replies[i].len,
					    &err);
		r = r < 0 ? r : ck_adjust_seen(adjust, &out, &err);
		r = r < 0 ? r : ck_adjust_result(adjust, &out, &err);
		r = r < 0 ? r
			  : ck_adjust_validation(adjust, "", 0, (const char *const[]){ "10-a" }, 1,
						 &out, &err);
		r = r < 0 ? r : ck_adjust_other(adjust, 0, &other, &err);
		r = r < 0 ? r : ck_adjust_failed(adjust, (bool[]){ true }, &out, &err);
		r = r < 0 ? r : ck_adjust_update("c1", "", 0, &update, &err);
		r = r < 0 ? r
			  : ck_adjust_reply(update, CK_REPLY_UPDATE_CONTAINER, "10-a", replies[3].p,
					    replies[3].len, &err);
		r = r < 0 ? r : ck_adjust_result(update, &out, &err);
		bool hit = ck_fault_hit();
		ck_fault_arm(0, 0, false);
		ck_adjust_free(CK_TAKE(adjust));
		ck_adjust_free(CK_TAKE(update));
		ck_bytes_free(&out);
		assert_int_equal(r, hit ? -CK_ENOMEM : 0);
		assert_int_equal(err.code, hit ? CK_ENOMEM : 0);
		if (!hit) {
			for (unsigned i = 0; i < 4; i++)
				ck_bytes_free(&replies[i]);
			return (int)nth;
		}
	}
}

static void every_allocation_may_fail(void **state)
{
	(void)state;
	assert_in_range(whole_story(), 80, 2000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_field_is_set),
		cmocka_unit_test(different_fields_go_together),
		cmocka_unit_test(two_plugins_conflict_over_each_field),
		cmocka_unit_test(removing_and_setting_overrides),
		cmocka_unit_test(what_nobody_set_is_removed),
		cmocka_unit_test(removing_what_another_set_keeps_others_out),
		cmocka_unit_test(namespaces_are_removed_once),
		cmocka_unit_test(arguments_are_taken_over_with_an_empty_first),
		cmocka_unit_test(hooks_add_up),
		cmocka_unit_test(device_rules_add_up),
		cmocka_unit_test(removing_rdt_takes_it_from_all),
		cmocka_unit_test(nothing_is_owned_by_who_sets_nothing),
		cmocka_unit_test(later_plugins_see_what_was_changed),
		cmocka_unit_test(fields_of_a_later_nri_are_carried_on),
		cmocka_unit_test(owners_are_told),
		cmocka_unit_test(updates_of_others_are_merged),
		cmocka_unit_test(an_update_that_may_fail_yields_as_a_whole),
		cmocka_unit_test(the_container_being_created_cannot_be_updated),
		cmocka_unit_test(an_update_goes_into_what_was_asked_for),
		cmocka_unit_test(the_last_of_one_plugins_updates_wins),
		cmocka_unit_test(failures_are_told_unless_ignored),
		cmocka_unit_test(evictions_are_kept),
		cmocka_unit_test(validators_are_asked_with_all_of_it),
		cmocka_unit_test(malformed_answers_are_told),
		cmocka_unit_test(too_many_containers_are_refused),
		cmocka_unit_test(too_many_changes_of_one_container_are_refused),
		cmocka_unit_test(an_answer_of_nothings_is_refused),
		cmocka_unit_test(every_allocation_may_fail),
	};
	return CK_TEST_MAIN(tests);
}
