/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts JSON to messages of NRI. One table for each object says which key becomes which field,
 * and how. The keys are those of the OCI runtime spec (1.2). For the requested configuration of a
 * container they are those of CRI's messages, as Go writes them as JSON.
 */
#include <json-c/json.h>
#include <stdbool.h>

#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/base/wire.h"
#include "src/cri/numbers.h"
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

enum kind {
	TEXT,
	NUMBER,  /* also an enumeration that Go writes as a number */
	BOOL,
	WORD,    /* an enumeration that OCI writes as a word: its place in words */
	MESSAGE, /* of an object */
	/* of an array */
	TEXTS,
	NUMBERS, /* packed */
	WORDS,   /* packed */
	MESSAGES,
	/* of an object whose keys are data */
	MAP, /* of texts */
	MAP_OF_MESSAGES,
	/* a message around the value: present, it tells 0 from nothing */
	SET_NUMBER,
	SET_BOOL,
	SET_TEXT,
	SET_TEXTS,
};

struct place {
	const char *key;
	uint32_t field;
	enum kind kind;
	const struct place *inside;
	size_t inside_n;
	const char *const *words;
};

static void put_object(struct ck_writer *out, const struct place *places, size_t n,
		       struct json_object *object);

static void put_text(struct ck_writer *out, uint32_t field, struct json_object *json,
		     bool empty_too)
{
	size_t len;
	const char *text = ck_info_text(json, &len);
	if (text && (len || empty_too))
		ck_writer_utf8(out, field, text, len);
}

static uint64_t word(struct json_object *json, const char *const *words)
{
	size_t len;
	const char *text = ck_info_text(json, &len);
	for (uint64_t i = 0; text && words[i]; i++)
		if (!strcmp(words[i], text))
			return i;
	return 0;
}

static void put_message(struct ck_writer *out, uint32_t field, const struct place *place,
			struct json_object *object)
{
	if (!json_object_is_type(object, json_type_object))
		return;
	size_t opened = ck_writer_open(out, field);
	put_object(out, place->inside, place->inside_n, object);
	ck_writer_close(out, opened);
}

static void put_map(struct ck_writer *out, const struct place *place, struct json_object *object)
{
	if (!json_object_is_type(object, json_type_object))
		return;
	json_object_object_foreach(object, key, value) {
		size_t opened = ck_writer_open(out, place->field);
		ck_writer_utf8(out, CK_MAP_KEY, key, strlen(key));
		if (place->kind == MAP)
			put_text(out, CK_MAP_VALUE, value, false);
		else
			put_message(out, CK_MAP_VALUE, place, value);
		ck_writer_close(out, opened);
	}
}

static void put_array(struct ck_writer *out, const struct place *place, struct json_object *array)
{
	if (!json_object_is_type(array, json_type_array) || !json_object_array_length(array))
		return;
	bool packed = place->kind == NUMBERS || place->kind == WORDS;
	bool wrapped = place->kind == SET_TEXTS;
	size_t opened = packed || wrapped ? ck_writer_open(out, place->field) : 0;
	for (size_t i = 0; i < json_object_array_length(array); i++) {
		struct json_object *item = json_object_array_get_idx(array, i);
		if (place->kind == MESSAGES)
			put_message(out, place->field, place, item);
		else if (!packed)
			put_text(out, wrapped ? 1 : place->field, item, true);
		else if (out->r == 0)
			out->r = ck_bytes_varint(&out->bytes, place->kind == WORDS
								      ? word(item, place->words)
								      : ck_info_number(item));
	}
	if (packed || wrapped)
		ck_writer_close(out, opened);
}

static void put_wrapped(struct ck_writer *out, const struct place *place, struct json_object *json)
{
	static const enum json_type types[] = { [SET_NUMBER] = json_type_int,
						[SET_BOOL] = json_type_boolean,
						[SET_TEXT] = json_type_string };
	if (!json_object_is_type(json, types[place->kind]))
		return;
	size_t opened = ck_writer_open(out, place->field);
	if (place->kind == SET_TEXT)
		put_text(out, 1, json, false);
	else
		ck_writer_number(out, 1,
				 place->kind == SET_BOOL ? (uint64_t)json_object_get_boolean(json)
							 : ck_info_number(json));
	ck_writer_close(out, opened);
}

static void put_object(struct ck_writer *out, const struct place *places, size_t n,
		       struct json_object *object)
{
	for (const struct place *place = places; place < places + n; place++) {
		struct json_object *value = ck_info_key(object, place->key);
		if (!value)
			continue;
		switch (place->kind) {
		case TEXT:
			put_text(out, place->field, value, false);
			break;
		case NUMBER:
			ck_writer_number(out, place->field, ck_info_number(value));
			break;
		case BOOL:
			ck_writer_number(out, place->field,
					 json_object_is_type(value, json_type_boolean) &&
						 json_object_get_boolean(value));
			break;
		case WORD:
			ck_writer_number(out, place->field, word(value, place->words));
			break;
		case MESSAGE:
			put_message(out, place->field, place, value);
			break;
		case TEXTS:
		case NUMBERS:
		case WORDS:
		case MESSAGES:
		case SET_TEXTS:
			put_array(out, place, value);
			break;
		case MAP:
		case MAP_OF_MESSAGES:
			put_map(out, place, value);
			break;
		case SET_NUMBER:
		case SET_BOOL:
		case SET_TEXT:
			put_wrapped(out, place, value);
			break;
		}
	}
}

/* ---- the OCI runtime spec -------------------------------------------------------------------- */

#define IS(key, field, kind)           { key, field, kind, NULL, 0, NULL }
#define OF(key, field, kind, table)    { key, field, kind, table, CK_COUNT(table), NULL }
#define NAMED(key, field, kind, names) { key, field, kind, NULL, 0, names }

static const struct place namespace[] = { IS("type", 1, TEXT), IS("path", 2, TEXT) };

static const struct place device[] = {
	IS("path", 1, TEXT),
	IS("type", 2, TEXT),
	IS("major", 3, NUMBER),
	IS("minor", 4, NUMBER),
	IS("fileMode", 5, SET_NUMBER),
	IS("uid", 6, SET_NUMBER),
	IS("gid", 7, SET_NUMBER),
};

static const struct place memory[] = {
	IS("limit", 1, SET_NUMBER),
	IS("reservation", 2, SET_NUMBER),
	IS("swap", 3, SET_NUMBER),
	IS("kernel", 4, SET_NUMBER),
	IS("kernelTCP", 5, SET_NUMBER),
	IS("swappiness", 6, SET_NUMBER),
	IS("disableOOMKiller", 7, SET_BOOL),
	IS("useHierarchy", 8, SET_BOOL),
};

static const struct place cpu[] = {
	IS("shares", 1, SET_NUMBER),
	IS("quota", 2, SET_NUMBER),
	IS("period", 3, SET_NUMBER),
	IS("realtimeRuntime", 4, SET_NUMBER),
	IS("realtimePeriod", 5, SET_NUMBER),
	IS("cpus", 6, TEXT),
	IS("mems", 7, TEXT),
};

static const struct place hugepages[] = { IS("pageSize", 1, TEXT), IS("limit", 2, NUMBER) };

static const struct place device_rule[] = {
	IS("allow", 1, BOOL),
	IS("type", 2, TEXT),
	IS("major", 3, SET_NUMBER),
	IS("minor", 4, SET_NUMBER),
	IS("access", 5, TEXT),
};

static const struct place pids[] = { IS("limit", 1, NUMBER) };

static const struct place resources[] = {
	OF("memory", 1, MESSAGE, memory),
	OF("cpu", 2, MESSAGE, cpu),
	OF("hugepageLimits", 3, MESSAGES, hugepages),
	IS("unified", 6, MAP),
	OF("devices", 7, MESSAGES, device_rule),
	OF("pids", 8, MESSAGE, pids),
};

static const struct place seccomp_arg[] = {
	IS("index", 1, NUMBER),
	IS("value", 2, NUMBER),
	IS("valueTwo", 3, NUMBER),
	IS("op", 4, TEXT),
};

static const struct place syscall[] = {
	IS("names", 1, TEXTS),
	IS("action", 2, TEXT),
	IS("errnoRet", 3, SET_NUMBER),
	OF("args", 4, MESSAGES, seccomp_arg),
};

static const struct place seccomp[] = {
	IS("defaultAction", 1, TEXT),
	IS("defaultErrnoRet", 2, SET_NUMBER),
	IS("architectures", 3, TEXTS),
	IS("flags", 4, TEXTS),
	IS("listenerPath", 5, TEXT),
	IS("listenerMetadata", 6, TEXT),
	OF("syscalls", 7, MESSAGES, syscall),
};

static const struct place net_device[] = { IS("name", 1, TEXT) };

static const struct place rdt[] = {
	IS("closID", 1, SET_TEXT),
	IS("schemata", 2, SET_TEXTS),
	IS("enableMonitoring", 3, SET_BOOL),
};

static const struct place container_linux[] = {
	OF("namespaces", 1, MESSAGES, namespace),
	OF("devices", 2, MESSAGES, device),
	OF("resources", 3, MESSAGE, resources),
	IS("cgroupsPath", 5, TEXT),
	OF("seccomp", 8, MESSAGE, seccomp),
	IS("sysctl", 9, MAP),
	OF("netDevices", 10, MAP_OF_MESSAGES, net_device),
	OF("intelRdt", 12, MESSAGE, rdt),
};

static const struct place pod_linux[] = {
	IS("cgroupsPath", 4, TEXT),
	OF("namespaces", 5, MESSAGES, namespace),
	OF("resources", 6, MESSAGE, resources),
};

static const char *const io_classes[] = { "", "IOPRIO_CLASS_RT", "IOPRIO_CLASS_BE",
					  "IOPRIO_CLASS_IDLE", NULL };
static const struct place io_priority[] = { NAMED("class", 1, WORD, io_classes),
					    IS("priority", 2, NUMBER) };

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
	NAMED("policy", 1, WORD, policies),
	IS("nice", 2, NUMBER),
	IS("priority", 3, NUMBER),
	NAMED("flags", 4, WORDS, scheduler_flags),
	IS("runtime", 5, NUMBER),
	IS("deadline", 6, NUMBER),
	IS("period", 7, NUMBER),
};

static const struct place linux_process[] = {
	IS("oomScoreAdj", 4, SET_NUMBER),
	OF("ioPriority", 6, MESSAGE, io_priority),
	OF("scheduler", 11, MESSAGE, scheduler),
};

static const struct place rlimit[] = { IS("type", 1, TEXT), IS("hard", 2, NUMBER),
				       IS("soft", 3, NUMBER) };

static const struct place user[] = { IS("uid", 1, NUMBER), IS("gid", 2, NUMBER),
				     IS("additionalGids", 3, NUMBERS) };

static const struct place process[] = {
	IS("args", 7, TEXTS),
	IS("env", 8, TEXTS),
	OF("rlimits", 13, MESSAGES, rlimit),
	OF("user", 21, MESSAGE, user),
};

static const struct place mount[] = {
	IS("destination", 1, TEXT),
	IS("type", 2, TEXT),
	IS("source", 3, TEXT),
	IS("options", 4, TEXTS),
};

static const struct place hook[] = {
	IS("path", 1, TEXT),
	IS("args", 2, TEXTS),
	IS("env", 3, TEXTS),
	IS("timeout", 4, SET_NUMBER),
};

static const struct place hooks[] = {
	OF("prestart", 1, MESSAGES, hook),
	OF("createRuntime", 2, MESSAGES, hook),
	OF("createContainer", 3, MESSAGES, hook),
	OF("startContainer", 4, MESSAGES, hook),
	OF("poststart", 5, MESSAGES, hook),
	OF("poststop", 6, MESSAGES, hook),
};

static const struct place outside[] = { OF("mounts", 9, MESSAGES, mount),
					OF("hooks", 10, MESSAGE, hooks) };

void ck_info_process(struct ck_writer *out, struct json_object *json)
{
	put_object(out, process, CK_COUNT(process), json);
}

void ck_info_outside(struct ck_writer *out, struct json_object *spec)
{
	put_object(out, outside, CK_COUNT(outside), spec);
}

void ck_info_linux(struct ck_writer *out, struct json_object *oci_linux)
{
	put_object(out, container_linux, CK_COUNT(container_linux), oci_linux);
}

void ck_info_linux_process(struct ck_writer *out, struct json_object *json)
{
	put_object(out, linux_process, CK_COUNT(linux_process), json);
}

void ck_info_pod_linux(struct ck_writer *out, struct json_object *oci_linux)
{
	put_object(out, pod_linux, CK_COUNT(pod_linux), oci_linux);
}

/* ---- CRI's messages -------------------------------------------------------------------------- */

static const struct place profile[] = { IS("profile_type", 1, NUMBER),
					IS("localhost_ref", 2, TEXT) };

static const struct place context[] = { OF("seccomp", 7, MESSAGE, profile) };

static const struct place cdi_device[] = { IS("name", 1, TEXT) };

static const struct place cdi[] = { OF("CDI_devices", 20, MESSAGES, cdi_device) };

/* into a message of CRI, which resources.c converts to NRI's; each key names its field */
static const struct place cri_hugepages[] = {
	IS("page_size", CRI_HugepageLimit_page_size, TEXT),
	IS("limit", CRI_HugepageLimit_limit, NUMBER),
};

static const struct place cri_resources[] = {
#define RESOURCE(name, kind) IS(#name, CRI_LinuxContainerResources_##name, kind)
	RESOURCE(cpu_period, NUMBER),
	RESOURCE(cpu_quota, NUMBER),
	RESOURCE(cpu_shares, NUMBER),
	RESOURCE(memory_limit_in_bytes, NUMBER),
	RESOURCE(oom_score_adj, NUMBER),
	RESOURCE(cpuset_cpus, TEXT),
	RESOURCE(cpuset_mems, TEXT),
	OF("hugepage_limits", CRI_LinuxContainerResources_hugepage_limits, MESSAGES, cri_hugepages),
	RESOURCE(unified, MAP),
	RESOURCE(memory_swap_limit_in_bytes, NUMBER),
#undef RESOURCE
};

void ck_info_seccomp_profile(struct ck_writer *out, struct json_object *json)
{
	put_object(out, context, CK_COUNT(context), json);
}

void ck_info_cdi(struct ck_writer *out, struct json_object *config)
{
	put_object(out, cdi, CK_COUNT(cdi), config);
}

void ck_info_resources(struct ck_writer *out, uint32_t field, struct json_object *json)
{
	struct ck_writer cri = { .r = 0 };
	if (!json_object_is_type(json, json_type_object))
		return;
	put_object(&cri, cri_resources, CK_COUNT(cri_resources), json);
	size_t opened = ck_writer_open(out, field);
	if (out->r == 0)
		out->r = cri.r;
	if (out->r == 0)
		out->r = ck_resources_from_cri(cri.bytes.p, cri.bytes.len, &out->bytes, NULL);
	ck_writer_close(out, opened);
	ck_bytes_free(&cri.bytes);
}
