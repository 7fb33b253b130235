/* SPDX-License-Identifier: Apache-2.0 */
/* Reads CRI's answers and requests. describe-json.c reads the JSON that some of them contain. */
#include <json-c/json_object.h>
#include <stdbool.h>

#include "src/base/mem.h"
#include "src/daemon/nri/describe-int.h"
#include "src/daemon/nri/describe.h"
#include "src/cri/message.h"
#include "src/daemon/nri/resources.h"

/* ---- pieces ---------------------------------------------------------------------------------- */

/* one description; after a failure nothing more is read or written */
struct describe {
	struct ck_writer out; /* its r is also what reading failed with; then *err is set */
	struct ck_error *err;
};

/* failed - remember a failure to read */
static bool failed(struct describe *d, int r)
{
	if (d->out.r == 0 && r < 0)
		d->out.r = r;
	return d->out.r < 0;
}

/* the next message or text at @number */
static bool next(struct describe *d, struct ck_wire *wire, uint32_t number,
		 struct ck_wire_field *ret_field)
{
	int r = d->out.r < 0 ? 0 : ck_cri_each(wire, number, ret_field, d->err);
	return !failed(d, r) && r > 0;
}

/* inside - is the message at @number there? If not, *ret_fields is empty */
static bool inside(struct describe *d, const struct ck_fields *fields, uint32_t number,
		   struct ck_fields *ret_fields)
{
	struct ck_error *err = d->out.r < 0 ? NULL : d->err; /* the first error is kept */
	failed(d, ck_fields_inside(fields, number, ret_fields, err));
	return ck_fields_get(fields, number);
}

static void put_text(struct describe *d, uint32_t to, const struct ck_fields *fields, uint32_t from)
{
	const struct ck_wire_field *field = ck_fields_get(fields, from);
	if (field && field->len)
		ck_writer_utf8(&d->out, to, field->data, field->len);
}

static void put_number(struct describe *d, uint32_t to, const struct ck_fields *fields,
		       uint32_t from)
{
	ck_writer_number(&d->out, to, ck_fields_number(fields, from));
}

static bool same_text(const struct ck_wire_field *field, const char *text)
{
	return field && field->len == strlen(text) && !memcmp(field->data, text, field->len);
}

/* put_map - a map of texts; @without: a key that is left out, or NULL */
static void put_map(struct describe *d, uint32_t to, const struct ck_fields *fields, uint32_t from,
		    const char *without)
{
	struct ck_wire wire = fields->all;
	struct ck_wire_field field;
	struct ck_fields pair;
	while (next(d, &wire, from, &field)) {
		if (failed(d, ck_fields_read(ck_wire_inside(&wire, &field), &pair, d->err)))
			return;
		if (without && same_text(ck_fields_get(&pair, CK_MAP_KEY), without))
			continue;
		size_t opened = ck_writer_open(&d->out, to);
		put_text(d, CK_MAP_KEY, &pair, CK_MAP_KEY);
		put_text(d, CK_MAP_VALUE, &pair, CK_MAP_VALUE);
		ck_writer_close(&d->out, opened);
	}
}

/* put_texts - a list of them; empty ones count */
static void put_texts(struct describe *d, uint32_t to, const struct ck_fields *fields,
		      uint32_t from)
{
	struct ck_wire wire = fields->all;
	struct ck_wire_field field;
	while (next(d, &wire, from, &field))
		ck_writer_utf8(&d->out, to, field.data, field.len);
}

/* the value of a map's entry; empty if it is absent */
static struct ck_wire_field find_pair(struct describe *d, const struct ck_fields *fields,
				      uint32_t map, const char *key)
{
	struct ck_wire_field value = { 0 };
	if (d->out.r == 0)
		failed(d, ck_cri_find(fields->all, map, key, strlen(key), &value, d->err));
	return value;
}

/* a function for each message of a list */
typedef void put_fn(struct describe *d, uint32_t to, const struct ck_fields *item);
static void put_each(struct describe *d, uint32_t to, const struct ck_fields *fields, uint32_t from,
		     put_fn *put)
{
	struct ck_wire wire = fields->all;
	struct ck_wire_field field;
	struct ck_fields item;
	while (next(d, &wire, from, &field)) {
		if (failed(d, ck_fields_read(ck_wire_inside(&wire, &field), &item, d->err)))
			return;
		put(d, to, &item);
	}
}

/* a Mount of CRI as the runtimes write it into an OCI spec */
static void put_mount(struct describe *d, uint32_t to, const struct ck_fields *mount)
{
	static const char *const propagations[] = { "rprivate", "rslave", "rshared" };
	uint64_t propagation = ck_fields_number(mount, CRI_Mount_propagation);
	bool readonly = ck_fields_number(mount, CRI_Mount_readonly);
	size_t opened = ck_writer_open(&d->out, to);
	put_text(d, 1, mount, CRI_Mount_container_path);
	ck_writer_text(&d->out, 2, "bind");
	put_text(d, 3, mount, CRI_Mount_host_path);
	ck_writer_text(&d->out, 4, "rbind");
	ck_writer_text(&d->out, 4,
		       propagations[propagation < CK_COUNT(propagations) ? propagation : 0]);
	ck_writer_text(&d->out, 4, readonly ? "ro" : "rw");
	ck_writer_close(&d->out, opened);
}

/* the runtime looks up the type and numbers of the device */
static void put_device(struct describe *d, uint32_t to, const struct ck_fields *device)
{
	size_t opened = ck_writer_open(&d->out, to);
	put_text(d, 1, device, CRI_Device_container_path);
	ck_writer_close(&d->out, opened);
}

static void put_cdi_device(struct describe *d, uint32_t to, const struct ck_fields *device)
{
	size_t opened = ck_writer_open(&d->out, to);
	put_text(d, 1, device, CRI_CDIDevice_name);
	ck_writer_close(&d->out, opened);
}

static void put_env(struct describe *d, uint32_t to, const struct ck_fields *pair)
{
	const struct ck_wire_field *key = ck_fields_get(pair, CRI_KeyValue_key),
				   *value = ck_fields_get(pair, CRI_KeyValue_value);
	CK_AUTO_BYTES struct ck_bytes text = { 0 };
	int r = key ? ck_bytes_add(&text, key->data, key->len) : 0;
	r = r < 0 ? r : ck_bytes_add_text(&text, "=");
	if (r == 0 && value)
		r = ck_bytes_add(&text, value->data, value->len);
	if (!failed(d, r))
		ck_writer_utf8(&d->out, to, text.p, text.len);
}

/* the ip of a PodIP */
static void put_ip(struct describe *d, uint32_t to, const struct ck_fields *ip)
{
	put_text(d, to, ip, CRI_PodIP_ip);
}

/* LinuxResources at @to, and OptionalInt at @oom, of a LinuxContainerResources at @from */
static void put_resources(struct describe *d, uint32_t to, uint32_t oom,
			  const struct ck_fields *fields, uint32_t from)
{
	const struct ck_wire_field *field = ck_fields_get(fields, from);
	struct ck_fields resources;
	if (!inside(d, fields, from, &resources) || d->out.r < 0)
		return;
	uint64_t score = ck_fields_number(&resources, CRI_LinuxContainerResources_oom_score_adj);
	size_t opened = ck_writer_open(&d->out, to);
	if (d->out.r == 0)
		failed(d, ck_resources_from_cri(field->data, field->len, &d->out.bytes, d->err));
	ck_writer_close(&d->out, opened);
	if (score)
		ck_writer_value(&d->out, oom, score);
}

/* numbers of a list, packed or not, into a packed one */
static void put_numbers(struct describe *d, uint32_t to, const struct ck_fields *fields,
			uint32_t from)
{
	struct ck_wire wire = fields->all, packed;
	struct ck_wire_field field;
	uint64_t number;
	int r;
	size_t before = d->out.bytes.len, opened = ck_writer_open(&d->out, to);
	while (d->out.r == 0 && ck_wire_next(&wire, &field, NULL) > 0) {
		if (field.number != from)
			continue;
		if (field.type == CK_WIRE_VARINT)
			d->out.r = ck_bytes_varint(&d->out.bytes, field.value);
		if (field.type != CK_WIRE_BYTES)
			continue;
		packed = ck_wire_inside(&wire, &field);
		while ((r = ck_wire_next_packed(&packed, &number, d->err)) > 0 && d->out.r == 0)
			d->out.r = ck_bytes_varint(&d->out.bytes, number);
		failed(d, r);
	}
	if (d->out.bytes.len == opened)
		d->out.bytes.len = before; /* the list is empty */
	else
		ck_writer_close(&d->out, opened);
}

/* User of a LinuxContainerUser */
static void put_status_user(struct describe *d, const struct ck_fields *status)
{
	struct ck_fields user, ids;
	inside(d, status, CRI_ContainerStatus_user, &user);
	if (!inside(d, &user, CRI_ContainerUser_linux, &ids))
		return;
	size_t opened = ck_writer_open(&d->out, 21);
	put_number(d, 1, &ids, CRI_LinuxContainerUser_uid);
	put_number(d, 2, &ids, CRI_LinuxContainerUser_gid);
	put_numbers(d, 3, &ids, CRI_LinuxContainerUser_supplemental_groups);
	ck_writer_close(&d->out, opened);
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
static void put_image_id(struct ck_writer *out, const struct ck_wire_field *const *ids, size_t n)
{
	bool bare;
	for (size_t i = 0; i < n; i++) {
		if (!is_image_id(ids[i], &bare))
			continue;
		size_t opened = ck_writer_open(out, 3);
		if (out->r == 0 && bare)
			out->r = ck_bytes_add_text(&out->bytes, "sha256:");
		if (out->r == 0)
			out->r = ck_bytes_add(&out->bytes, ids[i]->data, ids[i]->len);
		ck_writer_close(out, opened);
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
	size_t opened = ck_writer_open(&d->out, 22);
	if (user && user->len)
		put_text(d, 1, &spec, CRI_ImageSpec_user_specified_image);
	else if (!is_image_id(image, &bare))
		put_text(d, 1, &spec, CRI_ImageSpec_image);
	for (size_t i = 0; i < CK_COUNT(digests); i++) {
		const unsigned char *at = digests[i] && digests[i]->len
						  ? memchr(digests[i]->data, '@', digests[i]->len)
						  : NULL;
		if (!at)
			continue;
		ck_writer_utf8(&d->out, 2, at + 1,
			       (size_t)(digests[i]->data + digests[i]->len - at - 1));
		break;
	}
	put_image_id(&d->out, ids, CK_COUNT(ids));
	ck_writer_close(&d->out, opened);
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
	if (d->out.r == 0 && (!id || !id->len))
		failed(d, ck_fail(d->err, CK_EMALFORMED, "a status without an id"));
	if (d->out.r == 0 && info.len)
		ret_answer->info = ck_info_parse(info.data, info.len);
}

static uint64_t pid_of(const struct answer *answer)
{
	uint64_t pid = ck_info_number(ck_info_at(answer->info, "pid"));
	return pid <= INT32_MAX ? pid : 0;
}

static int finish(struct describe *d, struct ck_bytes *ret_bytes)
{
	if (d->out.r == 0)
		*ret_bytes = d->out.bytes;
	else
		ck_bytes_free(&d->out.bytes);
	return d->out.r == -CK_ENOMEM ? ck_nomem(d->err) : d->out.r;
}

/* ---- pods ------------------------------------------------------------------------------------ */

/* CRI-O writes the requested values of a pod into annotations of its spec, as JSON; since 1.35 with
 * other names */
static void put_crio_resources(struct ck_writer *out, uint32_t to, struct json_object *annotations,
			       const char *name, const char *older)
{
	struct json_object *value = ck_info_key(annotations, name);
	size_t len;
	const char *text = ck_info_text(value ? value : ck_info_key(annotations, older), &len);
	struct json_object *resources = text ? ck_info_parse(text, len) : NULL;
	ck_info_resources(out, to, resources);
	json_object_put(resources);
}

static void put_cgroup_parent(struct ck_writer *out, struct json_object *config,
			      struct json_object *annotations)
{
	size_t len = 0;
	const char *parent = ck_info_text(ck_info_at(config, "cgroup_parent"), &len);
	if (!parent)
		parent = ck_info_text(ck_info_key(annotations, "io.kubernetes.cri-o.CgroupParent"),
				      &len);
	if (parent && len)
		ck_writer_utf8(out, 3, parent, len);
}

static void put_pod_linux(struct ck_writer *out, struct json_object *info)
{
	struct json_object *config = ck_info_at(info, "config.linux");
	struct json_object *annotations = ck_info_at(info, "runtimeSpec.annotations");
	size_t opened = ck_writer_open(out, 8);
	if (config) {
		ck_info_resources(out, 1, ck_info_at(config, "overhead"));
		ck_info_resources(out, 2, ck_info_at(config, "resources"));
	} else {
		put_crio_resources(out, 1, annotations, "pod-linux-overhead.crio.io",
				   "io.kubernetes.cri-o.PodLinuxOverhead");
		put_crio_resources(out, 2, annotations, "pod-linux-resources.crio.io",
				   "io.kubernetes.cri-o.PodLinuxResources");
	}
	put_cgroup_parent(out, config, annotations);
	ck_info_pod_linux(out, ck_info_at(info, "runtimeSpec.linux"));
	ck_writer_close(out, opened);
}

static void put_pod(struct describe *d, const struct answer *answer)
{
	const struct ck_fields *status = &answer->status;
	struct ck_fields metadata, network;
	inside(d, status, CRI_PodSandboxStatus_metadata, &metadata);
	put_text(d, 1, status, CRI_PodSandboxStatus_id);
	put_text(d, 2, &metadata, CRI_PodSandboxMetadata_name);
	put_text(d, 3, &metadata, CRI_PodSandboxMetadata_uid);
	put_text(d, 4, &metadata, CRI_PodSandboxMetadata_namespace);
	put_map(d, 5, status, CRI_PodSandboxStatus_labels, NULL);
	put_map(d, 6, status, CRI_PodSandboxStatus_annotations, NULL);
	put_text(d, 7, status, CRI_PodSandboxStatus_runtime_handler);
	put_pod_linux(&d->out, answer->info);
	ck_writer_number(&d->out, 9, pid_of(answer));
	inside(d, status, CRI_PodSandboxStatus_network, &network);
	put_text(d, 10, &network, CRI_PodSandboxNetworkStatus_ip);
	put_each(d, 10, &network, CRI_PodSandboxNetworkStatus_additional_ips, put_ip);
}

int ck_describe_pod(const void *response, size_t len, struct ck_bytes *ret_pod,
		    struct ck_error *err)
{
	struct answer answer = { .info = NULL };
	struct describe d = { .err = err };
	answer_read(&d, response, len, &answer);
	if (d.out.r == 0)
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
		ck_writer_utf8(&d->out, 1, alias.data, alias.len);
	else
		put_text(d, 1, status, CRI_ContainerStatus_id);
}

static void put_sandbox_id(struct ck_writer *out, const char *sandbox_id, struct json_object *info)
{
	size_t len = 0;
	const char *told = sandbox_id ? NULL : ck_info_text(ck_info_at(info, "sandboxID"), &len);
	if (sandbox_id && *sandbox_id)
		ck_writer_utf8(out, 2, sandbox_id, strlen(sandbox_id));
	else if (told && len)
		ck_writer_utf8(out, 2, told, len);
}

static uint64_t nri_state(uint64_t cri)
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
	ck_info_process(&d->out, process);
	if (!ck_info_at(process, "user"))
		put_status_user(d, &answer->status);
	ck_info_outside(&d->out, spec);
	if (!ck_info_at(spec, "mounts"))
		put_each(d, 9, &answer->status, CRI_ContainerStatus_mounts, put_mount);
	size_t opened = ck_writer_open(&d->out, 11);
	ck_info_linux(&d->out, oci_linux);
	ck_info_linux_process(&d->out, process);
	ck_info_seccomp_profile(&d->out,
				ck_info_at(answer->info, "config.linux.security_context"));
	inside(d, &answer->status, CRI_ContainerStatus_resources, &resources);
	if (!ck_info_at(oci_linux, "resources"))
		put_resources(d, 3, 4, &resources, CRI_ContainerResources_linux);
	ck_writer_close(&d->out, opened);
	ck_info_cdi(&d->out, ck_info_at(answer->info, "config"));
	ck_writer_number(&d->out, 12, pid_of(answer));
}

static void put_container(struct describe *d, const struct answer *answer, const char *sandbox_id)
{
	const struct ck_fields *status = &answer->status;
	struct ck_fields metadata;
	inside(d, status, CRI_ContainerStatus_metadata, &metadata);
	put_id(d, status);
	put_sandbox_id(&d->out, sandbox_id, answer->info);
	put_text(d, 3, &metadata, CRI_ContainerMetadata_name);
	ck_writer_number(&d->out, 4,
			 nri_state(ck_fields_number(status, CRI_ContainerStatus_state)));
	put_map(d, 5, status, CRI_ContainerStatus_labels, NULL);
	put_map(d, 6, status, CRI_ContainerStatus_annotations, CK_ALIAS_ANNOTATION);
	put_info(d, answer);
	put_number(d, 14, status, CRI_ContainerStatus_created_at);
	put_number(d, 15, status, CRI_ContainerStatus_started_at);
	put_number(d, 16, status, CRI_ContainerStatus_finished_at);
	put_number(d, 17, status, CRI_ContainerStatus_exit_code);
	put_text(d, 18, status, CRI_ContainerStatus_reason);
	put_text(d, 19, status, CRI_ContainerStatus_message);
	put_image(d, status, CRI_ContainerStatus_image,
		  ck_fields_get(status, CRI_ContainerStatus_image_ref),
		  ck_fields_get(status, CRI_ContainerStatus_image_id));
}

int ck_describe_container(const void *response, size_t len, const char *sandbox_id,
			  struct ck_bytes *ret_container, struct ck_error *err)
{
	struct answer answer = { .info = NULL };
	struct describe d = { .err = err };
	answer_read(&d, response, len, &answer);
	if (d.out.r == 0)
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
	size_t opened = ck_writer_open(&d->out, 21);
	put_number(d, 1, &user, CRI_Int64Value_value);
	put_number(d, 2, &group, CRI_Int64Value_value);
	put_numbers(d, 3, security, CRI_LinuxContainerSecurityContext_supplemental_groups);
	ck_writer_close(&d->out, opened);
}

static void put_request_linux(struct describe *d, const struct ck_fields *config)
{
	struct ck_fields asked, security, seccomp;
	inside(d, config, CRI_ContainerConfig_linux, &asked);
	inside(d, &asked, CRI_LinuxContainerConfig_security_context, &security);
	bool profiled =
		inside(d, &security, CRI_LinuxContainerSecurityContext_seccomp, &seccomp);
	size_t opened = ck_writer_open(&d->out, 11);
	put_each(d, 2, config, CRI_ContainerConfig_devices, put_device);
	put_resources(d, 3, 4, &asked, CRI_LinuxContainerConfig_resources);
	if (profiled) {
		size_t profile = ck_writer_open(&d->out, 7);
		put_number(d, 1, &seccomp, CRI_SecurityProfile_profile_type);
		put_text(d, 2, &seccomp, CRI_SecurityProfile_localhost_ref);
		ck_writer_close(&d->out, profile);
	}
	ck_writer_close(&d->out, opened);
	put_security_user(d, &security);
}

static void put_request(struct describe *d, const struct ck_fields *request, const char *id)
{
	struct ck_fields config, metadata;
	if (!inside(d, request, CRI_CreateContainerRequest_config, &config) && d->out.r == 0)
		failed(d, ck_fail(d->err, CK_EMALFORMED, "a request without a config"));
	inside(d, &config, CRI_ContainerConfig_metadata, &metadata);
	ck_writer_utf8(&d->out, 1, id, strlen(id));
	put_text(d, 2, request, CRI_CreateContainerRequest_pod_sandbox_id);
	put_text(d, 3, &metadata, CRI_ContainerMetadata_name);
	put_map(d, 5, &config, CRI_ContainerConfig_labels, NULL);
	put_map(d, 6, &config, CRI_ContainerConfig_annotations, CK_ALIAS_ANNOTATION);
	put_texts(d, 7, &config, CRI_ContainerConfig_command);
	put_texts(d, 7, &config, CRI_ContainerConfig_args);
	put_each(d, 8, &config, CRI_ContainerConfig_envs, put_env);
	put_each(d, 9, &config, CRI_ContainerConfig_mounts, put_mount);
	put_request_linux(d, &config);
	put_each(d, 20, &config, CRI_ContainerConfig_CDI_devices, put_cdi_device);
	put_image(d, &config, CRI_ContainerConfig_image, NULL, NULL);
}

int ck_describe_request(const void *request, size_t len, const char *id,
			struct ck_bytes *ret_container, struct ck_error *err)
{
	struct ck_fields fields;
	struct describe d = { .err = err };
	failed(&d, ck_fields_read(ck_wire_begin(request, len), &fields, err));
	if (d.out.r == 0)
		put_request(&d, &fields, id);
	return finish(&d, ret_container);
}
