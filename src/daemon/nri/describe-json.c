/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts JSON to messages of NRI. One table for each object says which key becomes which field;
 * the message itself says what it takes. The keys are those of the OCI runtime spec (1.2). For the
 * requested configuration of a container they are those of CRI's messages, as Go writes them as
 * JSON.
 */
#include <json-c/json.h>
#include <stdbool.h>

#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/daemon/nri/describe-int.h"
#include "src/daemon/nri/resources.h"

/* ---- reading --------------------------------------------------------------------------------- */

/*
 * json-c uses some 700 bytes for each object and array, so a few MiB of "[[],[],..." would take
 * gigabytes. Values are counted before parsing. Strings are skipped.
 */
static bool bearable(const char *p, const char *end)
{
	unsigned parts = 0;
	bool inside = false;
	for (; p < end && parts <= CK_INFO_PARTS_MAX; p++) {
		if (inside && *p == '\\')
			p++;
		else if (*p == '"')
			inside = !inside;
		else if (!inside)
			parts += *p == '{' || *p == '[' || *p == ',';
	}
	return parts <= CK_INFO_PARTS_MAX;
}

struct json_object *ck_info_parse(const void *text, size_t len)
{
	const char *p = text;
	if (len > CK_INFO_MAX || !bearable(p, p + len))
		return NULL;
	struct json_tokener *tokener = json_tokener_new_ex(CK_INFO_DEPTH_MAX);
	if (!tokener)
		return NULL;
	struct json_object *json = json_tokener_parse_ex(tokener, p, (int)len);
	json_tokener_free(tokener);
	return json;
}

struct json_object *ck_info_key(struct json_object *json, const char *key)
{
	struct json_object *value = NULL;
	if (json_object_is_type(json, json_type_object))
		json_object_object_get_ex(json, key, &value);
	return value;
}

struct json_object *ck_info_at(struct json_object *json, const char *path)
{
	char key[32];
	while (json && *path) {
		size_t len = strcspn(path, ".");
		if (CK_NEVER(len >= sizeof(key)))
			return NULL;
		memcpy(key, path, len);
		key[len] = '\0';
		json = ck_info_key(json, key);
		path += len + (path[len] == '.');
	}
	return json;
}

const char *ck_info_text(struct json_object *json, size_t *ret_len)
{
	if (!json_object_is_type(json, json_type_string))
		return NULL;
	*ret_len = (size_t)json_object_get_string_len(json);
	return json_object_get_string(json);
}

/* As on the wire: a negative number is 64 bits of two's complement. A number over INT64_MAX is
 * unsigned. */
uint64_t ck_info_number(struct json_object *json)
{
	if (!json_object_is_type(json, json_type_int))
		return 0;
	int64_t number = json_object_get_int64(json);
	return number < 0 ? (uint64_t)number : json_object_get_uint64(json);
}

/* ---- what a key becomes ---------------------------------------------------------------------- */

struct place {
	const char *key, *field;
	const struct place *inside; /* of a message, or of each in an array or map */
	size_t inside_n;
	const char *const *words; /* of an enumeration that OCI writes as a word: its place here */
};

static void put_object(struct ck_nri_message *to, const struct place *places, size_t n,
		       struct json_object *object);

/* -1: it is none of them */
static int64_t word(struct json_object *json, const char *const *words)
{
	size_t len;
	const char *text = ck_info_text(json, &len);
	for (int64_t i = 0; text && words[i]; i++)
		if (!strcmp(words[i], text))
			return i;
	return -1;
}

/* a text, number or truth value; what is of another type counts as missing */
static void put_value(struct ck_nri_message *to, const char *field, enum ck_takes takes,
		      const char *const *words, struct json_object *json)
{
	size_t len = 0;
	const char *text = ck_info_text(json, &len);
	int64_t number = words ? word(json, words) : 0;
	if (takes == CK_TAKES_TEXT && text) {
		ck_message_text(to, field, text, len);
	} else if (takes == CK_TAKES_BOOL && json_object_is_type(json, json_type_boolean)) {
		ck_message_number(to, field, json_object_get_boolean(json));
	} else if (takes == CK_TAKES_NUMBER && words && number >= 0) {
		ck_message_number(to, field, number);
	} else if (takes == CK_TAKES_NUMBER && json_object_is_type(json, json_type_int)) {
		ck_message_offer(to, field, (int64_t)ck_info_number(json));
	}
}

static void put_map(struct ck_nri_message *to, const struct place *place,
		    struct json_object *object)
{
	json_object_object_foreach(object, key, value) {
		struct ck_nri_message *pair = ck_message_item(to, place->field);
		ck_nri_put_text(pair, "key", key);
		if (!place->inside)
			put_value(pair, "value", CK_TAKES_TEXT, NULL, value);
		else if (json_object_is_type(value, json_type_object))
			put_object(ck_message_item(pair, "value"), place->inside, place->inside_n,
				   value);
	}
}

static void put_array(struct ck_nri_message *to, const struct place *place, enum ck_takes takes,
		      struct json_object *array)
{
	for (size_t i = 0; i < json_object_array_length(array); i++) {
		struct json_object *item = json_object_array_get_idx(array, i);
		if (takes != CK_TAKES_MESSAGE)
			put_value(to, place->field, takes, place->words, item);
		else if (json_object_is_type(item, json_type_object))
			put_object(ck_message_item(to, place->field), place->inside,
				   place->inside_n, item);
	}
}

static void put_object(struct ck_nri_message *to, const struct place *places, size_t n,
		       struct json_object *object)
{
	for (const struct place *place = places; place < places + n; place++) {
		struct json_object *value = ck_info_key(object, place->key);
		bool list;
		enum ck_takes takes = ck_message_takes(to, place->field, &list);
		if (json_object_is_type(value, json_type_array) && list)
			put_array(to, place, takes, value);
		else if (json_object_is_type(value, json_type_object) &&
			 takes == CK_TAKES_MESSAGE && list)
			put_map(to, place, value);
		else if (json_object_is_type(value, json_type_object) &&
			 takes == CK_TAKES_MESSAGE)
			put_object(ck_message_item(to, place->field), place->inside,
				   place->inside_n, value);
		else if (!list)
			put_value(to, place->field, takes, place->words, value);
	}
}

/* ---- the OCI runtime spec -------------------------------------------------------------------- */

#define IS(key, field)           { key, field, NULL, 0, NULL }
#define OF(key, field, table)    { key, field, table, CK_COUNT(table), NULL }
#define NAMED(key, field, names) { key, field, NULL, 0, names }

static const struct place namespace[] = { IS("type", "type"), IS("path", "path") };

static const struct place device[] = {
	IS("path", "path"),
	IS("type", "type"),
	IS("major", "major"),
	IS("minor", "minor"),
	IS("fileMode", "file_mode"),
	IS("uid", "uid"),
	IS("gid", "gid"),
};

static const struct place memory[] = {
	IS("limit", "limit"),
	IS("reservation", "reservation"),
	IS("swap", "swap"),
	IS("kernel", "kernel"),
	IS("kernelTCP", "kernel_tcp"),
	IS("swappiness", "swappiness"),
	IS("disableOOMKiller", "disable_oom_killer"),
	IS("useHierarchy", "use_hierarchy"),
};

static const struct place cpu[] = {
	IS("shares", "shares"),
	IS("quota", "quota"),
	IS("period", "period"),
	IS("realtimeRuntime", "realtime_runtime"),
	IS("realtimePeriod", "realtime_period"),
	IS("cpus", "cpus"),
	IS("mems", "mems"),
};

static const struct place hugepages[] = { IS("pageSize", "page_size"), IS("limit", "limit") };

static const struct place device_rule[] = {
	IS("allow", "allow"),
	IS("type", "type"),
	IS("major", "major"),
	IS("minor", "minor"),
	IS("access", "access"),
};

static const struct place pids[] = { IS("limit", "limit") };

static const struct place resources[] = {
	OF("memory", "memory", memory),
	OF("cpu", "cpu", cpu),
	OF("hugepageLimits", "hugepage_limits", hugepages),
	IS("unified", "unified"),
	OF("devices", "devices", device_rule),
	OF("pids", "pids", pids),
};

static const struct place seccomp_arg[] = {
	IS("index", "index"),
	IS("value", "value"),
	IS("valueTwo", "value_two"),
	IS("op", "op"),
};

static const struct place syscall[] = {
	IS("names", "names"),
	IS("action", "action"),
	IS("errnoRet", "errno_ret"),
	OF("args", "args", seccomp_arg),
};

static const struct place seccomp[] = {
	IS("defaultAction", "default_action"),
	IS("defaultErrnoRet", "default_errno"),
	IS("architectures", "architectures"),
	IS("flags", "flags"),
	IS("listenerPath", "listener_path"),
	IS("listenerMetadata", "listener_metadata"),
	OF("syscalls", "syscalls", syscall),
};

static const struct place net_device[] = { IS("name", "name") };

static const struct place rdt[] = {
	IS("closID", "clos_id"),
	IS("schemata", "schemata"),
	IS("enableMonitoring", "enable_monitoring"),
};

static const struct place container_linux[] = {
	OF("namespaces", "namespaces", namespace),
	OF("devices", "devices", device),
	OF("resources", "resources", resources),
	IS("cgroupsPath", "cgroups_path"),
	OF("seccomp", "seccomp_policy", seccomp),
	IS("sysctl", "sysctl"),
	OF("netDevices", "net_devices", net_device),
	OF("intelRdt", "rdt", rdt),
};

static const struct place pod_linux[] = {
	IS("cgroupsPath", "cgroups_path"),
	OF("namespaces", "namespaces", namespace),
	OF("resources", "resources", resources),
};

static const char *const io_classes[] = { "", "IOPRIO_CLASS_RT", "IOPRIO_CLASS_BE",
					  "IOPRIO_CLASS_IDLE", NULL };
static const struct place io_priority[] = { NAMED("class", "class", io_classes),
					    IS("priority", "priority") };

static const char *const policies[] = {
	"",          "SCHED_OTHER", "SCHED_FIFO",     "SCHED_RR", "SCHED_BATCH",
	"SCHED_ISO", "SCHED_IDLE",  "SCHED_DEADLINE", NULL,
};
static const char *const scheduler_flags[] = {
	"SCHED_FLAG_RESET_ON_FORK",
	"SCHED_FLAG_RECLAIM",
	"SCHED_FLAG_DL_OVERRUN",
	"SCHED_FLAG_KEEP_POLICY",
	"SCHED_FLAG_KEEP_PARAMS",
	"SCHED_FLAG_UTIL_CLAMP_MIN",
	"SCHED_FLAG_UTIL_CLAMP_MAX",
	NULL,
};
static const struct place scheduler[] = {
	NAMED("policy", "policy", policies),
	IS("nice", "nice"),
	IS("priority", "priority"),
	NAMED("flags", "flags", scheduler_flags),
	IS("runtime", "runtime"),
	IS("deadline", "deadline"),
	IS("period", "period"),
};

static const struct place linux_process[] = {
	IS("oomScoreAdj", "oom_score_adj"),
	OF("ioPriority", "io_priority", io_priority),
	OF("scheduler", "scheduler", scheduler),
};

static const struct place rlimit[] = { IS("type", "type"), IS("hard", "hard"),
				       IS("soft", "soft") };

static const struct place user[] = { IS("uid", "uid"), IS("gid", "gid"),
				     IS("additionalGids", "additional_gids") };

static const struct place process[] = {
	IS("args", "args"),
	IS("env", "env"),
	OF("rlimits", "rlimits", rlimit),
	OF("user", "user", user),
};

static const struct place mount[] = {
	IS("destination", "destination"),
	IS("type", "type"),
	IS("source", "source"),
	IS("options", "options"),
};

static const struct place hook[] = {
	IS("path", "path"),
	IS("args", "args"),
	IS("env", "env"),
	IS("timeout", "timeout"),
};

static const struct place hooks[] = {
	OF("prestart", "prestart", hook),
	OF("createRuntime", "create_runtime", hook),
	OF("createContainer", "create_container", hook),
	OF("startContainer", "start_container", hook),
	OF("poststart", "poststart", hook),
	OF("poststop", "poststop", hook),
};

static const struct place outside[] = { OF("mounts", "mounts", mount),
					OF("hooks", "hooks", hooks) };

void ck_info_process(struct ck_nri_message *to, struct json_object *json)
{
	put_object(to, process, CK_COUNT(process), json);
}

void ck_info_outside(struct ck_nri_message *to, struct json_object *spec)
{
	put_object(to, outside, CK_COUNT(outside), spec);
}

void ck_info_linux(struct ck_nri_message *to, struct json_object *oci_linux)
{
	put_object(to, container_linux, CK_COUNT(container_linux), oci_linux);
}

void ck_info_linux_process(struct ck_nri_message *to, struct json_object *json)
{
	put_object(to, linux_process, CK_COUNT(linux_process), json);
}

void ck_info_pod_linux(struct ck_nri_message *to, struct json_object *oci_linux)
{
	put_object(to, pod_linux, CK_COUNT(pod_linux), oci_linux);
}

/* ---- CRI's messages -------------------------------------------------------------------------- */

static const struct place profile[] = { IS("profile_type", "profile_type"),
					IS("localhost_ref", "localhost_ref") };

static const struct place context[] = { OF("seccomp", "seccomp_profile", profile) };

static const struct place cdi_device[] = { IS("name", "name") };

static const struct place cdi[] = { OF("CDI_devices", "CDI_devices", cdi_device) };

/* of LinuxContainerResources; ck_resources has the rest */
static const struct place cri_hugepages[] = { IS("page_size", "page_size"), IS("limit", "limit") };

static const struct place cri_resources[] = {
	OF("hugepage_limits", "hugepage_limits", cri_hugepages),
	IS("unified", "unified"),
};

void ck_info_seccomp_profile(struct ck_nri_message *to, struct json_object *json)
{
	put_object(to, context, CK_COUNT(context), json);
}

void ck_info_cdi(struct ck_nri_message *to, struct json_object *config)
{
	put_object(to, cdi, CK_COUNT(cdi), config);
}

void ck_info_resources(struct ck_nri_message *to, const char *path, struct json_object *json)
{
	size_t len;
	if (!json_object_is_type(json, json_type_object))
		return;
	struct ck_nri_message *inner = ck_message_item(to, path);
	for (const struct ck_resource *resource = ck_resources; resource->cri; resource++) {
		struct json_object *value = ck_info_key(json, resource->name);
		const char *text = ck_info_text(value, &len);
		if (text && resource->text && len)
			ck_message_text(inner, resource->path, text, len);
		else if (!resource->text && ck_info_number(value))
			ck_message_offer(inner, resource->path, (int64_t)ck_info_number(value));
	}
	put_object(inner, cri_resources, CK_COUNT(cri_resources), json);
}
