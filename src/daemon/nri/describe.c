/* SPDX-License-Identifier: Apache-2.0 */
/* Reads CRI's answers and requests. describe-json.c reads the JSON that some of them contain. */
#include <json-c/json_object.h>
#include <stdbool.h>
#include <stdio.h>

#include "src/base/mem.h"
#include "src/daemon/nri/describe-int.h"
#include "src/daemon/nri/describe.h"
#include "src/cri/message.h"
#include "src/daemon/nri/resources.h"

/* ---- pieces ---------------------------------------------------------------------------------- */

/* one description; after a failure nothing more is read or written */
struct describe {
	struct ck_nri_message *out; /* it keeps its own failures */
	int r;                      /* what reading failed with; then *err is set */
	struct ck_error *err;
};

/* failed - remember a failure to read */
static bool failed(struct describe *d, int r)
{
	if (d->r == 0 && r < 0)
		d->r = r;
	return d->r < 0;
}

/* the next message or text at @number */
static bool next(struct describe *d, struct ck_wire *wire, uint32_t number,
		 struct ck_wire_field *ret_field)
{
	int r = d->r < 0 ? 0 : ck_cri_each(wire, number, ret_field, d->err);
	return !failed(d, r) && r > 0;
}

/* inside - is the message at @number there? If not, *ret_fields is empty */
static bool inside(struct describe *d, const struct ck_fields *fields, uint32_t number,
		   struct ck_fields *ret_fields)
{
	struct ck_error *err = d->r < 0 ? NULL : d->err; /* the first error is kept */
	failed(d, ck_fields_inside(fields, number, ret_fields, err));
	return ck_fields_get(fields, number);
}

static void put_text(struct ck_nri_message *to, const char *path, const struct ck_fields *fields,
		     uint32_t from)
{
	const struct ck_wire_field *field = ck_fields_get(fields, from);
	if (field && field->len)
		ck_message_text(to, path, field->data, field->len);
}

static void put_number(struct ck_nri_message *to, const char *path, const struct ck_fields *fields,
		       uint32_t from)
{
	ck_message_offer(to, path, (int64_t)ck_fields_number(fields, from));
}

static bool same_text(const struct ck_wire_field *field, const char *text)
{
	return field && field->len == strlen(text) && !memcmp(field->data, text, field->len);
}

/* put_map - a map of texts; @without: a key that is left out, or NULL */
static void put_map(struct describe *d, const char *path, const struct ck_fields *fields,
		    uint32_t from, const char *without)
{
	struct ck_wire wire = fields->all;
	struct ck_wire_field field;
	struct ck_fields pair;
	while (next(d, &wire, from, &field)) {
		if (failed(d, ck_fields_read(ck_wire_inside(&wire, &field), &pair, d->err)))
			return;
		if (without && same_text(ck_fields_get(&pair, CK_MAP_KEY), without))
			continue;
		struct ck_nri_message *to = ck_message_item(d->out, path);
		put_text(to, "key", &pair, CK_MAP_KEY);
		put_text(to, "value", &pair, CK_MAP_VALUE);
	}
}

/* put_texts - a list of them; empty ones count */
static void put_texts(struct describe *d, const char *path, const struct ck_fields *fields,
		      uint32_t from)
{
	struct ck_wire wire = fields->all;
	struct ck_wire_field field;
	while (next(d, &wire, from, &field))
		ck_message_text(d->out, path, field.data, field.len);
}

/* the value of a map's entry; empty if it is absent */
static struct ck_wire_field find_pair(struct describe *d, const struct ck_fields *fields,
				      uint32_t map, const char *key)
{
	struct ck_wire_field value = { 0 };
	if (d->r == 0)
		failed(d, ck_cri_find(fields->all, map, key, strlen(key), &value, d->err));
	return value;
}

/* a function for each message of a list */
typedef void put_fn(struct describe *d, const struct ck_fields *item);
static void put_each(struct describe *d, const struct ck_fields *fields, uint32_t from, put_fn *put)
{
	struct ck_wire wire = fields->all;
	struct ck_wire_field field;
	struct ck_fields item;
	while (next(d, &wire, from, &field)) {
		if (failed(d, ck_fields_read(ck_wire_inside(&wire, &field), &item, d->err)))
			return;
		put(d, &item);
	}
}

/* a Mount of CRI as the runtimes write it into an OCI spec */
static void put_mount(struct describe *d, const struct ck_fields *mount)
{
	static const char *const propagations[] = { "rprivate", "rslave", "rshared" };
	uint64_t propagation = ck_fields_number(mount, CRI_Mount_propagation);
	struct ck_nri_message *to = ck_message_item(d->out, "mounts");
	put_text(to, "destination", mount, CRI_Mount_container_path);
	ck_nri_put_text(to, "type", "bind");
	put_text(to, "source", mount, CRI_Mount_host_path);
	ck_nri_put_text(to, "options", "rbind");
	ck_nri_put_text(to, "options",
			propagations[propagation < CK_COUNT(propagations) ? propagation : 0]);
	ck_nri_put_text(to, "options",
			ck_fields_number(mount, CRI_Mount_readonly) ? "ro" : "rw");
}

/* the runtime looks up the type and numbers of the device */
static void put_device(struct describe *d, const struct ck_fields *device)
{
	put_text(ck_message_item(d->out, "linux.devices"), "path", device,
		 CRI_Device_container_path);
}

static void put_cdi_device(struct describe *d, const struct ck_fields *device)
{
	put_text(ck_message_item(d->out, "CDI_devices"), "name", device, CRI_CDIDevice_name);
}

static void put_env(struct describe *d, const struct ck_fields *pair)
{
	const struct ck_wire_field *key = ck_fields_get(pair, CRI_KeyValue_key),
				   *value = ck_fields_get(pair, CRI_KeyValue_value);
	CK_AUTO_BYTES struct ck_bytes text = { 0 };
	int r = key ? ck_bytes_add(&text, key->data, key->len) : 0;
	r = r < 0 ? r : ck_bytes_add_text(&text, "=");
	if (r == 0 && value)
		r = ck_bytes_add(&text, value->data, value->len);
	if (!failed(d, r))
		ck_message_text(d->out, "env", text.p, text.len);
}

static void put_ip(struct describe *d, const struct ck_fields *ip)
{
	put_text(d->out, "ips", ip, CRI_PodIP_ip);
}

/* what a LinuxContainerResources at @from says */
static void put_resources(struct describe *d, const struct ck_fields *fields, uint32_t from)
{
	const struct ck_wire_field *field = ck_fields_get(fields, from);
	struct ck_fields resources;
	if (!inside(d, fields, from, &resources) || d->r < 0)
		return;
	failed(d, ck_resources_put(ck_message_item(d->out, "linux.resources"), field->data,
				   field->len, d->err));
	if (ck_fields_number(&resources, CRI_LinuxContainerResources_oom_score_adj))
		put_number(d->out, "linux.oom_score_adj", &resources,
			   CRI_LinuxContainerResources_oom_score_adj);
}

/* numbers of a list, packed or not */
static void put_numbers(struct describe *d, const char *path, const struct ck_fields *fields,
			uint32_t from)
{
	struct ck_wire wire = fields->all, packed;
	struct ck_wire_field field;
	uint64_t number;
	int r;
	while (d->r == 0 && ck_wire_next(&wire, &field, NULL) > 0) {
		if (field.number != from)
			continue;
		if (field.type == CK_WIRE_VARINT)
			ck_message_offer(d->out, path, (int64_t)field.value);
		if (field.type != CK_WIRE_BYTES)
			continue;
		packed = ck_wire_inside(&wire, &field);
		while ((r = ck_wire_next_packed(&packed, &number, d->err)) > 0)
			ck_message_offer(d->out, path, (int64_t)number);
		failed(d, r);
	}
}

/* User of a LinuxContainerUser */
static void put_status_user(struct describe *d, const struct ck_fields *status)
{
	struct ck_fields user, ids;
	inside(d, status, CRI_ContainerStatus_user, &user);
	if (!inside(d, &user, CRI_ContainerUser_linux, &ids))
		return;
	ck_message_item(d->out, "user");
	put_number(d->out, "user.uid", &ids, CRI_LinuxContainerUser_uid);
	put_number(d->out, "user.gid", &ids, CRI_LinuxContainerUser_gid);
	put_numbers(d, "user.additional_gids", &ids, CRI_LinuxContainerUser_supplemental_groups);
}

/* ---- images ---------------------------------------------------------------------------------- */

static bool hex_digits(const unsigned char *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!((p[i] >= '0' && p[i] <= '9') || (p[i] >= 'a' && p[i] <= 'f')))
			return false;
	return true;
}

/* an image's id: "sha256:" and 64 digits; CRI-O leaves out "sha256:" */
static bool is_image_id(const struct ck_wire_field *field, bool *ret_bare)
{
	static const char prefix[] = "sha256:";
	const size_t digits = 64, before = sizeof(prefix) - 1;
	if (!field)
		return false;
	*ret_bare = field->len == digits;
	if (*ret_bare)
		return hex_digits(field->data, digits);
	return field->len == before + digits && !memcmp(field->data, prefix, before) &&
	       hex_digits(field->data + before, digits);
}

/* the first image id among @ids */
static void put_image_id(struct describe *d, const struct ck_wire_field *const *ids, size_t n)
{
	char text[sizeof("sha256:") + 64];
	bool bare;
	for (size_t i = 0; i < n; i++) {
		if (!is_image_id(ids[i], &bare))
			continue;
		snprintf(text, sizeof(text), "%s%.*s", bare ? "sha256:" : "", (int)ids[i]->len,
			 (const char *)ids[i]->data);
		ck_nri_put_text(d->out, "image.config_digest", text);
		return;
	}
}

/*
 * Image: its name as the user wrote it, or as the runtime knows it; the digest of its manifest,
 * from "name@digest"; and the digest of its config, which is its id in CRI. @ref and @id are NULL
 * in a request.
 */
static void put_image(struct describe *d, const struct ck_fields *fields, uint32_t from,
		      const struct ck_wire_field *ref, const struct ck_wire_field *id)
{
	struct ck_fields spec;
	bool bare;
	inside(d, fields, from, &spec);
	const struct ck_wire_field *image = ck_fields_get(&spec, CRI_ImageSpec_image);
	const struct ck_wire_field *user = ck_fields_get(&spec, CRI_ImageSpec_user_specified_image);
	const struct ck_wire_field *const digests[] = { ref, image, user }, *const ids[] = {
		id, ref, image
	};
	ck_message_item(d->out, "image");
	if (user && user->len)
		put_text(d->out, "image.name", &spec, CRI_ImageSpec_user_specified_image);
	else if (!is_image_id(image, &bare))
		put_text(d->out, "image.name", &spec, CRI_ImageSpec_image);
	for (size_t i = 0; i < CK_COUNT(digests); i++) {
		const unsigned char *at = digests[i] && digests[i]->len
						  ? memchr(digests[i]->data, '@', digests[i]->len)
						  : NULL;
		if (!at)
			continue;
		ck_message_text(d->out, "image.digest", at + 1,
				(size_t)(digests[i]->data + digests[i]->len - at - 1));
		break;
	}
	put_image_id(d, ids, CK_COUNT(ids));
}

/* ---- answers --------------------------------------------------------------------------------- */

struct answer {
	struct ck_fields whole, status;
	struct json_object *info; /* NULL: none, or none that can be read */
};

/* the answers for pods and for containers have the same numbers for these two fields */
static void answer_read(struct describe *d, const void *response, size_t len,
			struct answer *ret_answer)
{
	struct ck_fields *whole = &ret_answer->whole, *status = &ret_answer->status;
	failed(d, ck_fields_read(ck_wire_begin(response, len), whole, d->err));
	inside(d, whole, CRI_PodSandboxStatusResponse_status, status);
	struct ck_wire_field info =
		find_pair(d, whole, CRI_PodSandboxStatusResponse_info, "info");
	const struct ck_wire_field *id = ck_fields_get(status, CRI_PodSandboxStatus_id);
	if (d->r == 0 && (!id || !id->len))
		failed(d, ck_fail(d->err, CK_EMALFORMED, "a status without an id"));
	if (d->r == 0 && info.len)
		ret_answer->info = ck_info_parse(info.data, info.len);
}

static void put_pid(struct describe *d, const struct answer *answer)
{
	uint64_t pid = ck_info_number(ck_info_at(answer->info, "pid"));
	ck_nri_put_number(d->out, "pid", pid <= INT32_MAX ? (int64_t)pid : 0);
}

static int begin(struct describe *d, enum ck_nri_type type)
{
	return ck_message_new(type, &d->out, d->err);
}

static int finish(struct describe *d, struct ck_bytes *ret_bytes)
{
	int r = d->r < 0 ? d->r : ck_message_bytes(d->out, ret_bytes, d->err);
	ck_message_free(d->out);
	return r == -CK_ENOMEM ? ck_nomem(d->err) : r;
}

/* ---- pods ------------------------------------------------------------------------------------ */

/* CRI-O writes the requested values of a pod into annotations of its spec, as JSON; since 1.35 with
 * other names */
static void put_crio_resources(struct ck_nri_message *to, const char *path,
			       struct json_object *annotations, const char *name, const char *older)
{
	struct json_object *value = ck_info_key(annotations, name);
	size_t len;
	const char *text = ck_info_text(value ? value : ck_info_key(annotations, older), &len);
	struct json_object *resources = text ? ck_info_parse(text, len) : NULL;
	ck_info_resources(to, path, resources);
	json_object_put(resources);
}

static void put_cgroup_parent(struct ck_nri_message *to, struct json_object *config,
			      struct json_object *annotations)
{
	size_t len = 0;
	const char *parent = ck_info_text(ck_info_at(config, "cgroup_parent"), &len);
	if (!parent)
		parent = ck_info_text(ck_info_key(annotations, "io.kubernetes.cri-o.CgroupParent"),
				      &len);
	if (parent && len)
		ck_message_text(to, "cgroup_parent", parent, len);
}

static void put_pod_linux(struct ck_nri_message *to, struct json_object *info)
{
	struct json_object *config = ck_info_at(info, "config.linux");
	struct json_object *annotations = ck_info_at(info, "runtimeSpec.annotations");
	if (config) {
		ck_info_resources(to, "pod_overhead", ck_info_at(config, "overhead"));
		ck_info_resources(to, "pod_resources", ck_info_at(config, "resources"));
	} else {
		put_crio_resources(to, "pod_overhead", annotations, "pod-linux-overhead.crio.io",
				   "io.kubernetes.cri-o.PodLinuxOverhead");
		put_crio_resources(to, "pod_resources", annotations, "pod-linux-resources.crio.io",
				   "io.kubernetes.cri-o.PodLinuxResources");
	}
	put_cgroup_parent(to, config, annotations);
	ck_info_pod_linux(to, ck_info_at(info, "runtimeSpec.linux"));
}

static void put_pod(struct describe *d, const struct answer *answer)
{
	const struct ck_fields *status = &answer->status;
	struct ck_fields metadata, network;
	inside(d, status, CRI_PodSandboxStatus_metadata, &metadata);
	put_text(d->out, "id", status, CRI_PodSandboxStatus_id);
	put_text(d->out, "name", &metadata, CRI_PodSandboxMetadata_name);
	put_text(d->out, "uid", &metadata, CRI_PodSandboxMetadata_uid);
	put_text(d->out, "namespace", &metadata, CRI_PodSandboxMetadata_namespace);
	put_map(d, "labels", status, CRI_PodSandboxStatus_labels, NULL);
	put_map(d, "annotations", status, CRI_PodSandboxStatus_annotations, NULL);
	put_text(d->out, "runtime_handler", status, CRI_PodSandboxStatus_runtime_handler);
	put_pod_linux(ck_message_item(d->out, "linux"), answer->info);
	put_pid(d, answer);
	inside(d, status, CRI_PodSandboxStatus_network, &network);
	put_text(d->out, "ips", &network, CRI_PodSandboxNetworkStatus_ip);
	put_each(d, &network, CRI_PodSandboxNetworkStatus_additional_ips, put_ip);
}

int ck_describe_pod(const void *response, size_t len, struct ck_bytes *ret_pod,
		    struct ck_error *err)
{
	struct answer answer = { .info = NULL };
	struct describe d = { .err = err };
	int r = begin(&d, CK_NRI_POD_SANDBOX);
	if (r < 0)
		return r;
	answer_read(&d, response, len, &answer);
	if (d.r == 0)
		put_pod(&d, &answer);
	json_object_put(answer.info);
	return finish(&d, ret_pod);
}

/* ---- containers ------------------------------------------------------------------------------ */

/* the id, or the alias that plugins know the container by */
static void put_id(struct describe *d, const struct ck_fields *status)
{
	struct ck_wire_field alias =
		find_pair(d, status, CRI_ContainerStatus_annotations, CK_ALIAS_ANNOTATION);
	if (alias.len == CK_ALIAS_LEN && hex_digits(alias.data, alias.len))
		ck_message_text(d->out, "id", alias.data, alias.len);
	else
		put_text(d->out, "id", status, CRI_ContainerStatus_id);
}

static void put_sandbox_id(struct ck_nri_message *to, const char *sandbox_id,
			   struct json_object *info)
{
	size_t len = 0;
	const char *told = sandbox_id ? NULL : ck_info_text(ck_info_at(info, "sandboxID"), &len);
	if (sandbox_id)
		ck_nri_put_text(to, "pod_sandbox_id", sandbox_id);
	else if (told)
		ck_message_text(to, "pod_sandbox_id", told, len);
}

static int64_t nri_state(uint64_t cri)
{
	enum { NRI_UNKNOWN = 0, NRI_CREATED = 1, NRI_RUNNING = 3, NRI_STOPPED = 4 };
	static const uint8_t states[] = {
		[CRI_ContainerState_CONTAINER_CREATED] = NRI_CREATED,
		[CRI_ContainerState_CONTAINER_RUNNING] = NRI_RUNNING,
		[CRI_ContainerState_CONTAINER_EXITED] = NRI_STOPPED,
	};
	return cri < CK_COUNT(states) ? states[cri] : NRI_UNKNOWN;
}

/* LinuxContainer, and other fields from the info */
static void put_info(struct describe *d, const struct answer *answer)
{
	struct json_object *spec = ck_info_at(answer->info, "runtimeSpec");
	struct json_object *process = ck_info_at(spec, "process"),
			   *oci_linux = ck_info_at(spec, "linux");
	struct ck_fields resources;
	ck_info_process(d->out, process);
	if (!ck_info_at(process, "user"))
		put_status_user(d, &answer->status);
	ck_info_outside(d->out, spec);
	if (!ck_info_at(spec, "mounts"))
		put_each(d, &answer->status, CRI_ContainerStatus_mounts, put_mount);
	struct ck_nri_message *to = ck_message_item(d->out, "linux");
	ck_info_linux(to, oci_linux);
	ck_info_linux_process(to, process);
	ck_info_seccomp_profile(to, ck_info_at(answer->info, "config.linux.security_context"));
	inside(d, &answer->status, CRI_ContainerStatus_resources, &resources);
	if (!ck_info_at(oci_linux, "resources"))
		put_resources(d, &resources, CRI_ContainerResources_linux);
	ck_info_cdi(d->out, ck_info_at(answer->info, "config"));
	put_pid(d, answer);
}

static void put_container(struct describe *d, const struct answer *answer, const char *sandbox_id)
{
	const struct ck_fields *status = &answer->status;
	struct ck_fields metadata;
	inside(d, status, CRI_ContainerStatus_metadata, &metadata);
	put_id(d, status);
	put_sandbox_id(d->out, sandbox_id, answer->info);
	put_text(d->out, "name", &metadata, CRI_ContainerMetadata_name);
	ck_nri_put_number(d->out, "state",
			  nri_state(ck_fields_number(status, CRI_ContainerStatus_state)));
	put_map(d, "labels", status, CRI_ContainerStatus_labels, NULL);
	put_map(d, "annotations", status, CRI_ContainerStatus_annotations, CK_ALIAS_ANNOTATION);
	put_info(d, answer);
	put_number(d->out, "created_at", status, CRI_ContainerStatus_created_at);
	put_number(d->out, "started_at", status, CRI_ContainerStatus_started_at);
	put_number(d->out, "finished_at", status, CRI_ContainerStatus_finished_at);
	put_number(d->out, "exit_code", status, CRI_ContainerStatus_exit_code);
	put_text(d->out, "status_reason", status, CRI_ContainerStatus_reason);
	put_text(d->out, "status_message", status, CRI_ContainerStatus_message);
	put_image(d, status, CRI_ContainerStatus_image,
		  ck_fields_get(status, CRI_ContainerStatus_image_ref),
		  ck_fields_get(status, CRI_ContainerStatus_image_id));
}

int ck_describe_container(const void *response, size_t len, const char *sandbox_id,
			  struct ck_bytes *ret_container, struct ck_error *err)
{
	struct answer answer = { .info = NULL };
	struct describe d = { .err = err };
	int r = begin(&d, CK_NRI_CONTAINER);
	if (r < 0)
		return r;
	answer_read(&d, response, len, &answer);
	if (d.r == 0)
		put_container(&d, &answer, sandbox_id);
	json_object_put(answer.info);
	return finish(&d, ret_container);
}

/* ---- requests -------------------------------------------------------------------------------- */

/* User of a security context; nothing if the image's user is taken */
static void put_security_user(struct describe *d, const struct ck_fields *security)
{
	struct ck_fields user, group;
	bool set = inside(d, security, CRI_LinuxContainerSecurityContext_run_as_user, &user);
	inside(d, security, CRI_LinuxContainerSecurityContext_run_as_group, &group);
	if (!set)
		return;
	ck_message_item(d->out, "user");
	put_number(d->out, "user.uid", &user, CRI_Int64Value_value);
	put_number(d->out, "user.gid", &group, CRI_Int64Value_value);
	put_numbers(d, "user.additional_gids", security,
		    CRI_LinuxContainerSecurityContext_supplemental_groups);
}

static void put_request_linux(struct describe *d, const struct ck_fields *config)
{
	struct ck_fields asked, security, seccomp;
	inside(d, config, CRI_ContainerConfig_linux, &asked);
	inside(d, &asked, CRI_LinuxContainerConfig_security_context, &security);
	bool profiled =
		inside(d, &security, CRI_LinuxContainerSecurityContext_seccomp, &seccomp);
	ck_message_item(d->out, "linux");
	put_each(d, config, CRI_ContainerConfig_devices, put_device);
	put_resources(d, &asked, CRI_LinuxContainerConfig_resources);
	if (profiled) {
		struct ck_nri_message *to = ck_message_item(d->out, "linux.seccomp_profile");
		put_number(to, "profile_type", &seccomp, CRI_SecurityProfile_profile_type);
		put_text(to, "localhost_ref", &seccomp, CRI_SecurityProfile_localhost_ref);
	}
	put_security_user(d, &security);
}

static void put_request(struct describe *d, const struct ck_fields *request, const char *id)
{
	struct ck_fields config, metadata;
	if (!inside(d, request, CRI_CreateContainerRequest_config, &config) && d->r == 0)
		failed(d, ck_fail(d->err, CK_EMALFORMED, "a request without a config"));
	inside(d, &config, CRI_ContainerConfig_metadata, &metadata);
	ck_nri_put_text(d->out, "id", id);
	put_text(d->out, "pod_sandbox_id", request, CRI_CreateContainerRequest_pod_sandbox_id);
	put_text(d->out, "name", &metadata, CRI_ContainerMetadata_name);
	put_map(d, "labels", &config, CRI_ContainerConfig_labels, NULL);
	put_map(d, "annotations", &config, CRI_ContainerConfig_annotations, CK_ALIAS_ANNOTATION);
	put_texts(d, "args", &config, CRI_ContainerConfig_command);
	put_texts(d, "args", &config, CRI_ContainerConfig_args);
	put_each(d, &config, CRI_ContainerConfig_envs, put_env);
	put_each(d, &config, CRI_ContainerConfig_mounts, put_mount);
	put_request_linux(d, &config);
	put_each(d, &config, CRI_ContainerConfig_CDI_devices, put_cdi_device);
	put_image(d, &config, CRI_ContainerConfig_image, NULL, NULL);
}

int ck_describe_request(const void *request, size_t len, const char *id,
			struct ck_bytes *ret_container, struct ck_error *err)
{
	struct ck_fields fields;
	struct describe d = { .err = err };
	int r = begin(&d, CK_NRI_CONTAINER);
	if (r < 0)
		return r;
	failed(&d, ck_fields_read(ck_wire_begin(request, len), &fields, err));
	if (d.r == 0)
		put_request(&d, &fields, id);
	return finish(&d, ret_container);
}
