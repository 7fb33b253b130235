/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The JSON in a verbose status, in containerd's form: pid, config, runtimeSpec. The config has only
 * what the spec does not have. The spec has what a runtime makes of the request, with an image that
 * this file makes up.
 */
#include <json-c/json.h>
#include <stdio.h>

#include "src/sim/sim-int.h"

enum { FIRST_PID = 10000 }; /* like on a node that has run for a while */

typedef struct json_object json;

/* ---- JSON: without memory a value becomes null ----------------------------------------------- */

static void add(json *to, const char *key, json *value)
{
	if (!to || json_object_object_add(to, key, value) < 0)
		json_object_put(value);
}

static json *add_object(json *to, const char *key)
{
	json *object = json_object_new_object();
	add(to, key, object);
	return object;
}

static json *add_array(json *to, const char *key)
{
	json *array = json_object_new_array();
	add(to, key, array);
	return array;
}

static void append(json *array, json *value)
{
	if (!array || json_object_array_add(array, value) < 0)
		json_object_put(value);
}

static json *append_object(json *array)
{
	json *object = json_object_new_object();
	append(array, object);
	return object;
}

static void add_text(json *to, const char *key, const char *text)
{
	add(to, key, json_object_new_string(text));
}

static json *bytes(const struct ck_wire_field *field)
{
	return json_object_new_string_len((const char *)field->data, (int)field->len);
}

static void add_bytes(json *to, const char *key, const struct ck_fields *fields, uint32_t number)
{
	const struct ck_wire_field *field = ck_fields_get(fields, number);
	if (field && field->len)
		add(to, key, bytes(field));
}

/* 0 means not set */
static void add_number(json *to, const char *key, const struct ck_fields *fields, uint32_t number)
{
	uint64_t value = ck_fields_number(fields, number);
	if (value)
		add(to, key, json_object_new_int64((int64_t)value));
}

/* ---- resources ------------------------------------------------------------------------------- */

static void add_entries(json *to, const struct ck_fields *uses, const char *limits,
			const char *page_size)
{
	struct ck_wire wire = uses->all;
	struct ck_wire_field field;
	struct ck_fields entry;
	json *array = NULL, *unified = NULL;
	while (ck_wire_next(&wire, &field, NULL) > 0) {
		if (field.type != CK_WIRE_BYTES ||
		    (field.number != CRI_LinuxContainerResources_hugepage_limits &&
		     field.number != CRI_LinuxContainerResources_unified) ||
		    ck_fields_read(ck_wire_inside(&wire, &field), &entry, NULL) < 0)
			continue;
		if (field.number == CRI_LinuxContainerResources_hugepage_limits) {
			array = array ? array : add_array(to, limits);
			json *limit = append_object(array);
			add_bytes(limit, page_size, &entry, CRI_HugepageLimit_page_size);
			add_number(limit, "limit", &entry, CRI_HugepageLimit_limit);
		} else {
			const struct ck_wire_field *key = ck_fields_get(&entry, CK_MAP_KEY);
			CK_AUTO_FREE char *name =
				key ? ck_strndup((const char *)key->data, key->len) : NULL;
			unified = unified ? unified : add_object(to, "unified");
			if (name)
				add_bytes(unified, name, &entry, CK_MAP_VALUE);
		}
	}
}

static void uses_of(const struct ck_sim_object *object, int which, struct ck_fields *ret_uses)
{
	ck_fields_read(ck_wire_begin(object->uses[which].p, object->uses[which].len), ret_uses,
		       NULL);
}

/* OCI's LinuxResources from CRI's */
static void add_resources(json *oci_linux, const struct ck_sim_object *object)
{
	struct ck_fields uses;
	uses_of(object, CK_SIM_RESOURCES, &uses);
	json *resources = add_object(oci_linux, "resources");
	json *memory = add_object(resources, "memory"), *cpu = add_object(resources, "cpu");
	add_number(memory, "limit", &uses, CRI_LinuxContainerResources_memory_limit_in_bytes);
	add_number(memory, "swap", &uses, CRI_LinuxContainerResources_memory_swap_limit_in_bytes);
	add_number(cpu, "shares", &uses, CRI_LinuxContainerResources_cpu_shares);
	add_number(cpu, "quota", &uses, CRI_LinuxContainerResources_cpu_quota);
	add_number(cpu, "period", &uses, CRI_LinuxContainerResources_cpu_period);
	add_bytes(cpu, "cpus", &uses, CRI_LinuxContainerResources_cpuset_cpus);
	add_bytes(cpu, "mems", &uses, CRI_LinuxContainerResources_cpuset_mems);
	add_entries(resources, &uses, "hugepageLimits", "pageSize");
}

/* CRI's resources as Go writes them: nothing if there are none */
static void add_cri_resources(json *to, const char *key, const struct ck_sim_object *object,
			      int which)
{
	struct ck_fields uses;
	if (!object->uses[which].len)
		return;
	uses_of(object, which, &uses);
	json *resources = add_object(to, key);
#define ADD(kind, name) add_##kind(resources, #name, &uses, CRI_LinuxContainerResources_##name)
	ADD(number, cpu_period);
	ADD(number, cpu_quota);
	ADD(number, cpu_shares);
	ADD(number, memory_limit_in_bytes);
	ADD(number, oom_score_adj);
	ADD(number, memory_swap_limit_in_bytes);
	ADD(bytes, cpuset_cpus);
	ADD(bytes, cpuset_mems);
#undef ADD
	add_entries(resources, &uses, "hugepage_limits", "page_size");
}

/* ---- sandboxes ------------------------------------------------------------------------------- */

static int pid_of(const struct ck_sim_object *object)
{
	bool runs = object->kind == CK_SANDBOX ? object->state == CK_SIM_READY
					       : object->state == CK_SIM_RUNNING;
	return runs ? FIRST_PID + (int)(object->number % 1000000) : 0;
}

static void add_namespace(json *namespaces, const char *type, const char *path)
{
	json *namespace = append_object(namespaces);
	add_text(namespace, "type", type);
	if (path)
		add_text(namespace, "path", path);
}

static void read_config(const struct ck_sim_object *object, struct ck_fields *ret_config)
{
	ck_fields_read(ck_wire_begin(object->config.p, object->config.len), ret_config, NULL);
}

static void add_cgroups_path(json *oci_linux, const struct ck_sim_object *sandbox, const char *id)
{
	struct ck_fields config, asked;
	read_config(sandbox, &config);
	ck_fields_inside(&config, CRI_PodSandboxConfig_linux, &asked, NULL);
	const struct ck_wire_field *parent =
		ck_fields_get(&asked, CRI_LinuxPodSandboxConfig_cgroup_parent);
	struct ck_bytes path = { 0 };
	int r = parent && parent->len ? ck_bytes_add(&path, parent->data, parent->len)
				      : ck_bytes_add_text(&path, "/k8s.io");
	r = r < 0 ? r : ck_bytes_add_text(&path, "/");
	r = r < 0 ? r : ck_bytes_add_text(&path, id);
	if (r == 0)
		add(oci_linux, "cgroupsPath",
		    json_object_new_string_len((const char *)path.p, (int)path.len));
	ck_bytes_free(&path);
}

static void add_sandbox(json *info, const struct ck_sim_object *sandbox)
{
	struct ck_fields config, asked;
	char netns[64];
	read_config(sandbox, &config);
	ck_fields_inside(&config, CRI_PodSandboxConfig_linux, &asked, NULL);
	json *config_linux = add_object(add_object(info, "config"), "linux");
	add_bytes(config_linux, "cgroup_parent", &asked, CRI_LinuxPodSandboxConfig_cgroup_parent);
	add_cri_resources(config_linux, "overhead", sandbox, CK_SIM_OVERHEAD);
	add_cri_resources(config_linux, "resources", sandbox, CK_SIM_RESOURCES);
	json *spec = add_object(info, "runtimeSpec");
	append(add_array(add_object(spec, "process"), "args"), json_object_new_string("/pause"));
	json *annotations = add_object(spec, "annotations");
	add_text(annotations, "io.kubernetes.cri.container-type", "sandbox");
	add_text(annotations, "io.kubernetes.cri.sandbox-id", sandbox->id);
	json *oci_linux = add_object(spec, "linux");
	add_cgroups_path(oci_linux, sandbox, sandbox->id);
	json *namespaces = add_array(oci_linux, "namespaces");
	static const char *const own[] = { "pid", "ipc", "uts", "mount" };
	for (size_t i = 0; i < CK_COUNT(own); i++)
		add_namespace(namespaces, own[i], NULL);
	snprintf(netns, sizeof(netns), "/var/run/netns/sim-%llu",
		 (unsigned long long)sandbox->number);
	if (!ck_sim_in_host_network(sandbox))
		add_namespace(namespaces, "network", netns);
	json *cpu = add_object(add_object(oci_linux, "resources"), "cpu");
	add(cpu, "shares", json_object_new_int64(2)); /* the pause process */
}

/* ---- containers ------------------------------------------------------------------------------ */

static void append_texts(json *array, const struct ck_fields *config, uint32_t number)
{
	struct ck_wire wire = config->all;
	struct ck_wire_field field;
	while (ck_cri_each(&wire, number, &field, NULL) > 0)
		append(array, bytes(&field));
}

/* call @fn for each message in field @number */
static void each(json *to, const struct ck_fields *config, uint32_t number,
		 void (*fn)(json *to, const struct ck_fields *item))
{
	struct ck_wire wire = config->all;
	struct ck_wire_field field;
	struct ck_fields item;
	while (ck_cri_each(&wire, number, &field, NULL) > 0)
		if (ck_fields_read(ck_wire_inside(&wire, &field), &item, NULL) == 0)
			fn(to, &item);
}

static void append_env(json *array, const struct ck_fields *pair)
{
	const struct ck_wire_field *key = ck_fields_get(pair, CRI_KeyValue_key),
				   *value = ck_fields_get(pair, CRI_KeyValue_value);
	struct ck_bytes text = { 0 };
	int r = key ? ck_bytes_add(&text, key->data, key->len) : 0;
	r = r < 0 ? r : ck_bytes_add_text(&text, "=");
	if (r == 0 && value)
		r = ck_bytes_add(&text, value->data, value->len);
	if (r == 0)
		append(array, json_object_new_string_len((const char *)text.p, (int)text.len));
	ck_bytes_free(&text);
}

static void append_mount(json *array, const struct ck_fields *asked)
{
	static const char *const propagations[] = { "rprivate", "rslave", "rshared" };
	uint64_t propagation = ck_fields_number(asked, CRI_Mount_propagation);
	json *mount = append_object(array);
	add_bytes(mount, "destination", asked, CRI_Mount_container_path);
	add_text(mount, "type", "bind");
	add_bytes(mount, "source", asked, CRI_Mount_host_path);
	json *options = add_array(mount, "options");
	append(options, json_object_new_string("rbind"));
	append(options,
	       json_object_new_string(
		       propagations[propagation < CK_COUNT(propagations) ? propagation : 0]));
	append(options,
	       json_object_new_string(ck_fields_number(asked, CRI_Mount_readonly) ? "ro" : "rw"));
}

static void append_device(json *array, const struct ck_fields *asked)
{
	json *device = append_object(array);
	add_bytes(device, "path", asked, CRI_Device_container_path);
	add_text(device, "type", "c");
	add(device, "major", json_object_new_int64(1));
	add(device, "minor", json_object_new_int64(3));
}

static void append_name(json *array, const struct ck_fields *asked)
{
	add_bytes(append_object(array), "name", asked, CRI_CDIDevice_name);
}

static void add_process(json *spec, const struct ck_sim_object *container,
			const struct ck_fields *config)
{
	struct ck_fields asked, security, user, group, uses;
	ck_fields_inside(config, CRI_ContainerConfig_linux, &asked, NULL);
	ck_fields_inside(&asked, CRI_LinuxContainerConfig_security_context, &security, NULL);
	ck_fields_inside(&security, CRI_LinuxContainerSecurityContext_run_as_user, &user, NULL);
	ck_fields_inside(&security, CRI_LinuxContainerSecurityContext_run_as_group, &group, NULL);
	uses_of(container, CK_SIM_RESOURCES, &uses);
	json *process = add_object(spec, "process"), *oci_user = add_object(process, "user");
	int64_t uid = (int64_t)ck_fields_number(&user, CRI_Int64Value_value),
		gid = (int64_t)ck_fields_number(&group, CRI_Int64Value_value);
	add(oci_user, "uid", json_object_new_int64(uid));
	add(oci_user, "gid", json_object_new_int64(gid));
	json *args = add_array(process, "args");
	append_texts(args, config, CRI_ContainerConfig_command);
	append_texts(args, config, CRI_ContainerConfig_args);
	if (args && !json_object_array_length(args))
		append(args, json_object_new_string("/bin/sh")); /* of the image */
	json *env = add_array(process, "env");
	append(env, json_object_new_string(
			    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"));
	each(env, config, CRI_ContainerConfig_envs, append_env);
	add(process, "oomScoreAdj",
	    json_object_new_int64(
		    (int64_t)ck_fields_number(&uses, CRI_LinuxContainerResources_oom_score_adj)));
}

static void add_container_namespaces(json *oci_linux, const struct ck_sim_object *sandbox)
{
	static const char *const of_pod[][2] = { { "ipc", "ipc" },
						 { "uts", "uts" },
						 { "network", "net" } };
	char path[64];
	json *namespaces = add_array(oci_linux, "namespaces");
	add_namespace(namespaces, "pid", NULL);
	add_namespace(namespaces, "mount", NULL);
	for (size_t i = 0; i < CK_COUNT(of_pod); i++) {
		snprintf(path, sizeof(path), "/proc/%d/ns/%s", sandbox ? pid_of(sandbox) : 0,
			 of_pod[i][1]);
		add_namespace(namespaces, of_pod[i][0], path);
	}
}

static void add_container(json *info, const struct ck_sim_object *container)
{
	struct ck_fields config;
	struct ck_sim_object *sandbox = NULL;
	read_config(container, &config);
	ck_sim_object_find(container->sim, CK_SANDBOX, container->sandbox_id, CK_SIM_ID, &sandbox);
	add_text(info, "sandboxID", container->sandbox_id);
	each(add_array(add_object(info, "config"), "CDI_devices"), &config,
	     CRI_ContainerConfig_CDI_devices, append_name);
	json *spec = add_object(info, "runtimeSpec");
	add_process(spec, container, &config);
	each(add_array(spec, "mounts"), &config, CRI_ContainerConfig_mounts, append_mount);
	json *annotations = add_object(spec, "annotations");
	add_text(annotations, "io.kubernetes.cri.container-type", "container");
	add_text(annotations, "io.kubernetes.cri.sandbox-id", container->sandbox_id);
	json *oci_linux = add_object(spec, "linux");
	add_container_namespaces(oci_linux, sandbox);
	each(add_array(oci_linux, "devices"), &config, CRI_ContainerConfig_devices, append_device);
	if (sandbox)
		add_cgroups_path(oci_linux, sandbox, container->id);
	add_resources(oci_linux, container);
}

void ck_sim_put_info(struct ck_writer *out, uint32_t field, const struct ck_sim_object *object)
{
	json *info = json_object_new_object();
	add(info, "pid", json_object_new_int(pid_of(object)));
	if (object->kind == CK_SANDBOX)
		add_sandbox(info, object);
	else
		add_container(info, object);
	size_t len, entry = ck_writer_open(out, field);
	const char *text = json_object_to_json_string_length(info, JSON_C_TO_STRING_PLAIN, &len);
	ck_writer_text(out, CK_MAP_KEY, "info");
	if (text)
		/* an environment may have any bytes */
		ck_writer_utf8(out, CK_MAP_VALUE, text, len);
	else
		out->r = -CK_ENOMEM;
	ck_writer_close(out, entry);
	json_object_put(info);
}
