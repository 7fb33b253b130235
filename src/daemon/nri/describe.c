/* SPDX-License-Identifier: Apache-2.0 */
/* CRI's answers and requests, walked; the JSON that some of them carry is read in
 * describe-json.c. */
#include <json-c/json_object.h>
#include <stdbool.h>

#include "src/base/fault.h"
#include "src/base/mem.h"
#include "src/daemon/nri/describe-int.h"
#include "src/daemon/nri/describe.h"
#include "src/cri/message.h"
#include "src/daemon/nri/resources.h"

/* CRI's numbers of the fields that are read. Metadata: of a pod, of a container only name and
 * attempt */
enum { META_NAME = 1, META_UID = 2, META_NAMESPACE = 3 };
enum { RESPONSE_STATUS = 1, RESPONSE_INFO = 2 };
enum {
	POD_ID = 1,
	POD_METADATA = 2,
	POD_NETWORK = 5,
	POD_LABELS = 7,
	POD_ANNOTATIONS = 8,
	POD_HANDLER = 9
};
enum {
	STATUS_ID = 1,
	STATUS_METADATA = 2,
	STATUS_STATE = 3,
	STATUS_CREATED_AT = 4,
	STATUS_STARTED_AT = 5,
	STATUS_FINISHED_AT = 6,
	STATUS_EXIT_CODE = 7,
	STATUS_IMAGE = 8,
	STATUS_IMAGE_REF = 9,
	STATUS_REASON = 10,
	STATUS_MESSAGE = 11,
	STATUS_LABELS = 12,
	STATUS_ANNOTATIONS = 13,
	STATUS_MOUNTS = 14,
	STATUS_RESOURCES = 16,
	STATUS_IMAGE_ID = 17,
	STATUS_USER = 18,
};
enum { REQUEST_SANDBOX_ID = 1, REQUEST_CONFIG = 2 };
enum {
	CONFIG_METADATA = 1,
	CONFIG_IMAGE = 2,
	CONFIG_COMMAND = 3,
	CONFIG_ARGS = 4,
	CONFIG_ENVS = 6,
	CONFIG_MOUNTS = 7,
	CONFIG_DEVICES = 8,
	CONFIG_LABELS = 9,
	CONFIG_ANNOTATIONS = 10,
	CONFIG_LINUX = 15,
	CONFIG_CDI = 17,
};
enum { LINUX_RESOURCES = 1, LINUX_SECURITY = 2 };
enum { SECURITY_USER = 5, SECURITY_GROUPS = 8, SECURITY_GROUP = 12, SECURITY_SECCOMP = 15 };
enum { RESOURCES_OOM_SCORE_ADJ = 5 };

/* ---- pieces ---------------------------------------------------------------------------------- */

static void put_text(struct ck_writer *out, uint32_t to, const struct ck_fields *fields,
		     uint32_t from)
{
	const struct ck_wire_field *field = ck_fields_get(fields, from, CK_WIRE_BYTES);
	if (field && field->len)
		ck_writer_utf8(out, to, field->data, field->len);
}

static bool same_text(const struct ck_wire_field *field, const char *text)
{
	return field && field->len == strlen(text) && !memcmp(field->data, text, field->len);
}

/* put_map - a map of texts; @without: a key that is left out, or NULL */
static int put_map(struct ck_writer *out, uint32_t to, const struct ck_fields *fields,
		   uint32_t from, const char *without, struct ck_error *err)
{
	struct ck_wire wire = fields->all;
	struct ck_wire_field field;
	struct ck_fields pair;
	int r;
	while ((r = ck_wire_next(&wire, &field, err)) > 0) {
		if (field.number != from || field.type != CK_WIRE_BYTES)
			continue;
		r = ck_fields_read(ck_wire_inside(&wire, &field), &pair, err);
		if (r < 0)
			return r;
		if (without && same_text(ck_fields_get(&pair, 1, CK_WIRE_BYTES), without))
			continue;
		size_t opened = ck_writer_open(out, to);
		put_text(out, 1, &pair, 1);
		put_text(out, 2, &pair, 2);
		ck_writer_close(out, opened);
	}
	return r;
}

/* put_texts - a list of them; empty ones count */
static void put_texts(struct ck_writer *out, uint32_t to, const struct ck_fields *fields,
		      uint32_t from)
{
	struct ck_wire wire = fields->all;
	struct ck_wire_field field;
	while (ck_wire_next(&wire, &field, NULL) > 0)
		if (field.number == from && field.type == CK_WIRE_BYTES)
			ck_writer_utf8(out, to, field.data, field.len);
}

/* the value of a map's entry; the last one counts */
static int find_pair(const struct ck_fields *fields, uint32_t map, const char *key,
		     struct ck_wire_field *ret_value, struct ck_error *err)
{
	struct ck_wire wire = fields->all;
	struct ck_wire_field field;
	struct ck_fields pair;
	int r;
	*ret_value = (struct ck_wire_field){ 0 };
	while ((r = ck_wire_next(&wire, &field, err)) > 0) {
		if (field.number != map || field.type != CK_WIRE_BYTES)
			continue;
		r = ck_fields_read(ck_wire_inside(&wire, &field), &pair, err);
		if (r < 0)
			return r;
		const struct ck_wire_field *value = ck_fields_get(&pair, 2, CK_WIRE_BYTES);
		if (value && same_text(ck_fields_get(&pair, 1, CK_WIRE_BYTES), key))
			*ret_value = *value;
	}
	return r;
}

/* each message of a list, by a function */
typedef int put_fn(struct ck_writer *out, uint32_t to, const struct ck_fields *item,
		   struct ck_error *err);
static int put_each(struct ck_writer *out, uint32_t to, const struct ck_fields *fields,
		    uint32_t from, put_fn *put, struct ck_error *err)
{
	struct ck_wire wire = fields->all;
	struct ck_wire_field field;
	struct ck_fields item;
	int r;
	while ((r = ck_wire_next(&wire, &field, err)) > 0) {
		if (field.number != from || field.type != CK_WIRE_BYTES)
			continue;
		r = ck_fields_read(ck_wire_inside(&wire, &field), &item, err);
		if (r == 0)
			r = put(out, to, &item, err);
		if (r < 0)
			return r;
	}
	return r;
}

/* a Mount of CRI as the runtimes write it into an OCI spec */
static int put_mount(struct ck_writer *out, uint32_t to, const struct ck_fields *mount,
		     struct ck_error *err)
{
	enum { CONTAINER_PATH = 1, HOST_PATH, READONLY, PROPAGATION = 5 };
	static const char *const propagations[] = { "rprivate", "rslave", "rshared" };
	uint64_t propagation = ck_fields_number(mount, PROPAGATION);
	size_t opened = ck_writer_open(out, to);
	(void)err;
	put_text(out, 1, mount, CONTAINER_PATH);
	ck_writer_text(out, 2, "bind");
	put_text(out, 3, mount, HOST_PATH);
	ck_writer_text(out, 4, "rbind");
	ck_writer_text(out, 4,
		       propagations[propagation < CK_COUNT(propagations) ? propagation : 0]);
	ck_writer_text(out, 4, ck_fields_number(mount, READONLY) ? "ro" : "rw");
	ck_writer_close(out, opened);
	return 0;
}

/* what kind of device it is, and its numbers, the runtime will find out */
static int put_device(struct ck_writer *out, uint32_t to, const struct ck_fields *device,
		      struct ck_error *err)
{
	size_t opened = ck_writer_open(out, to);
	(void)err;
	put_text(out, 1, device, 1);
	ck_writer_close(out, opened);
	return 0;
}

static int put_cdi_device(struct ck_writer *out, uint32_t to, const struct ck_fields *device,
			  struct ck_error *err)
{
	return put_device(out, to, device, err); /* a name at 1, here and there */
}

static int put_env(struct ck_writer *out, uint32_t to, const struct ck_fields *pair,
		   struct ck_error *err)
{
	const struct ck_wire_field *key = ck_fields_get(pair, 1, CK_WIRE_BYTES),
				   *value = ck_fields_get(pair, 2, CK_WIRE_BYTES);
	CK_AUTO_BYTES struct ck_bytes text = { 0 };
	int r = key ? ck_bytes_add(&text, key->data, key->len) : 0;
	r = r < 0 ? r : ck_bytes_add_text(&text, "=");
	if (r == 0 && value)
		r = ck_bytes_add(&text, value->data, value->len);
	if (r < 0)
		return ck_nomem(err);
	ck_writer_utf8(out, to, text.p, text.len);
	return 0;
}

/* the ip of a PodIP */
static int put_ip(struct ck_writer *out, uint32_t to, const struct ck_fields *ip,
		  struct ck_error *err)
{
	(void)err;
	put_text(out, to, ip, 1);
	return 0;
}

/* LinuxResources at @to, and OptionalInt at @oom, of a LinuxContainerResources at @from */
static int put_resources(struct ck_writer *out, uint32_t to, uint32_t oom,
			 const struct ck_fields *fields, uint32_t from, struct ck_error *err)
{
	const struct ck_wire_field *field = ck_fields_get(fields, from, CK_WIRE_BYTES);
	struct ck_fields resources;
	if (!field || out->r < 0)
		return 0;
	int r = ck_fields_inside(fields, from, &resources, err);
	if (r < 0)
		return r;
	size_t opened = ck_writer_open(out, to);
	if (out->r == 0)
		r = ck_resources_from_cri(field->data, field->len, &out->bytes, err);
	ck_writer_close(out, opened);
	if (ck_fields_number(&resources, RESOURCES_OOM_SCORE_ADJ))
		ck_writer_value(out, oom, ck_fields_number(&resources, RESOURCES_OOM_SCORE_ADJ));
	return r;
}

/* numbers of a list, packed or not, into a packed one */
static int put_numbers(struct ck_writer *out, uint32_t to, const struct ck_fields *fields,
		       uint32_t from, struct ck_error *err)
{
	struct ck_wire wire = fields->all, packed;
	struct ck_wire_field field;
	struct ck_bytes numbers = { 0 };
	uint64_t number;
	int r;
	while ((r = ck_wire_next(&wire, &field, err)) > 0 && out->r == 0) {
		if (field.number != from)
			continue;
		if (field.type == CK_WIRE_VARINT)
			out->r = ck_bytes_varint(&numbers, field.value);
		if (field.type != CK_WIRE_BYTES)
			continue;
		packed = ck_wire_inside(&wire, &field);
		while ((r = ck_wire_next_packed(&packed, &number, err)) > 0 && out->r == 0)
			out->r = ck_bytes_varint(&numbers, number);
		if (r < 0)
			break;
	}
	if (r >= 0 && numbers.len)
		ck_writer_bytes(out, to, numbers.p, numbers.len);
	ck_bytes_free(&numbers);
	return r < 0 ? r : 0;
}

/* User of a LinuxContainerUser: uid, gid, supplemental_groups */
static int put_status_user(struct ck_writer *out, uint32_t to, const struct ck_fields *status,
			   struct ck_error *err)
{
	struct ck_fields user, numbers;
	int r = ck_fields_inside(status, STATUS_USER, &user, err);
	r = r < 0 ? r : ck_fields_inside(&user, 1, &numbers, err);
	if (r < 0 || !ck_fields_get(&user, 1, CK_WIRE_BYTES))
		return r;
	size_t opened = ck_writer_open(out, to);
	ck_writer_number(out, 1, ck_fields_number(&numbers, 1));
	ck_writer_number(out, 2, ck_fields_number(&numbers, 2));
	r = put_numbers(out, 3, &numbers, 3, err);
	ck_writer_close(out, opened);
	return r;
}

/* ---- images ---------------------------------------------------------------------------------- */

static bool hex_digits(const unsigned char *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!((p[i] >= '0' && p[i] <= '9') || (p[i] >= 'a' && p[i] <= 'f')))
			return false;
	return true;
}

/* an image's id: "sha256:" and 64 digits, which CRI-O writes without what is before them */
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

/* the first of @ids that is one */
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
 * from "name@digest"; and that of its config, which is its id in CRI. @ref and @id: NULL in a
 * request.
 */
static int put_image(struct ck_writer *out, const struct ck_fields *fields, uint32_t from,
		     const struct ck_wire_field *ref, const struct ck_wire_field *id,
		     struct ck_error *err)
{
	enum { IMAGE = 1, USER_SPECIFIED = 18 };
	struct ck_fields spec;
	bool bare;
	int r = ck_fields_inside(fields, from, &spec, err);
	if (r < 0)
		return r;
	const struct ck_wire_field *image = ck_fields_get(&spec, IMAGE, CK_WIRE_BYTES);
	const struct ck_wire_field *user = ck_fields_get(&spec, USER_SPECIFIED, CK_WIRE_BYTES);
	const struct ck_wire_field *const digests[] = { ref, image, user }, *const ids[] = {
		id, ref, image
	};
	size_t opened = ck_writer_open(out, 22);
	if (user && user->len)
		put_text(out, 1, &spec, USER_SPECIFIED);
	else if (!is_image_id(image, &bare))
		put_text(out, 1, &spec, IMAGE);
	for (size_t i = 0; i < CK_COUNT(digests); i++) {
		const unsigned char *at = digests[i] && digests[i]->len
						  ? memchr(digests[i]->data, '@', digests[i]->len)
						  : NULL;
		if (!at)
			continue;
		ck_writer_utf8(out, 2, at + 1,
			       (size_t)(digests[i]->data + digests[i]->len - at - 1));
		break;
	}
	put_image_id(out, ids, CK_COUNT(ids));
	ck_writer_close(out, opened);
	return 0;
}

/* ---- answers --------------------------------------------------------------------------------- */

struct answer {
	struct ck_fields whole, status;
	struct json_object *info; /* NULL: none, or none that can be read */
};

static void answer_fini(struct answer *answer)
{
	json_object_put(answer->info);
}

static int answer_read(const void *response, size_t len, struct answer *ret_answer,
		       struct ck_error *err)
{
	struct ck_wire_field info;
	int r = ck_fields_read(ck_wire_begin(response, len), &ret_answer->whole, err);
	r = r < 0 ? r
		  : ck_fields_inside(&ret_answer->whole, RESPONSE_STATUS, &ret_answer->status, err);
	r = r < 0 ? r : find_pair(&ret_answer->whole, RESPONSE_INFO, "info", &info, err);
	if (r < 0)
		return r;
	const struct ck_wire_field *id = ck_fields_get(&ret_answer->status, 1, CK_WIRE_BYTES);
	if (!id || !id->len)
		return ck_fail(err, CK_EMALFORMED, "a status without an id");
	ret_answer->info = info.len ? ck_info_parse(info.data, info.len) : NULL;
	return 0;
}

static uint64_t pid_of(const struct answer *answer)
{
	uint64_t pid = ck_info_number(ck_info_at(answer->info, "pid"));
	return pid <= INT32_MAX ? pid : 0;
}

static int finish(struct ck_writer *out, int r, struct ck_bytes *ret_bytes, struct ck_error *err)
{
	if (r == 0 && out->r < 0)
		r = ck_nomem(err);
	if (r == 0)
		*ret_bytes = out->bytes;
	else
		ck_bytes_free(&out->bytes);
	return r;
}

/* ---- pods ------------------------------------------------------------------------------------ */

/* CRI-O writes what a pod was asked for into annotations of its spec, as JSON; under newer names
 * since 1.35 */
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

static int put_ips(struct ck_writer *out, const struct ck_fields *status, struct ck_error *err)
{
	struct ck_fields network;
	int r = ck_fields_inside(status, POD_NETWORK, &network, err);
	if (r < 0)
		return r;
	put_text(out, 10, &network, 1);
	return put_each(out, 10, &network, 2, put_ip, err);
}

static int put_pod(struct ck_writer *out, const struct answer *answer, struct ck_error *err)
{
	const struct ck_fields *status = &answer->status;
	struct ck_fields metadata;
	int r = ck_fields_inside(status, POD_METADATA, &metadata, err);
	put_text(out, 1, status, POD_ID);
	put_text(out, 2, &metadata, META_NAME);
	if (!CK_BROKEN(R15))
		put_text(out, 3, &metadata, META_UID);
	put_text(out, 4, &metadata, META_NAMESPACE);
	r = r < 0 ? r : put_map(out, 5, status, POD_LABELS, NULL, err);
	r = r < 0 ? r : put_map(out, 6, status, POD_ANNOTATIONS, NULL, err);
	put_text(out, 7, status, POD_HANDLER);
	put_pod_linux(out, answer->info);
	ck_writer_number(out, 9, pid_of(answer));
	return r < 0 ? r : put_ips(out, status, err);
}

int ck_describe_pod(const void *response, size_t len, struct ck_bytes *ret_pod,
		    struct ck_error *err)
{
	struct answer answer = { .info = NULL };
	struct ck_writer out = { .r = 0 };
	int r = answer_read(response, len, &answer, err);
	r = r < 0 ? r : put_pod(&out, &answer, err);
	answer_fini(&answer);
	return finish(&out, r, ret_pod, err);
}

/* ---- containers ------------------------------------------------------------------------------ */

/* the id, or the alias that plugins know it by */
static int put_id(struct ck_writer *out, const struct ck_fields *status, struct ck_error *err)
{
	struct ck_wire_field alias;
	int r = find_pair(status, STATUS_ANNOTATIONS, CK_ALIAS_ANNOTATION, &alias, err);
	if (r < 0)
		return r;
	if (alias.len == CK_ALIAS_LEN && hex_digits(alias.data, alias.len))
		ck_writer_utf8(out, 1, alias.data, alias.len);
	else
		put_text(out, 1, status, STATUS_ID);
	return 0;
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
	/* CREATED, RUNNING, EXITED of CRI */
	static const uint8_t states[] = { NRI_CREATED, NRI_RUNNING, NRI_STOPPED };
	return cri < CK_COUNT(states) ? states[cri] : NRI_UNKNOWN;
}

/* LinuxContainer, and what else comes out of the info */
static int put_info(struct ck_writer *out, const struct answer *answer, struct ck_error *err)
{
	struct json_object *spec = ck_info_at(answer->info, "runtimeSpec");
	struct json_object *process = ck_info_at(spec, "process"),
			   *oci_linux = ck_info_at(spec, "linux");
	struct ck_fields resources;
	int r = ck_fields_inside(&answer->status, STATUS_RESOURCES, &resources, err);
	ck_info_process(out, process);
	if (r == 0 && !ck_info_at(process, "user"))
		r = put_status_user(out, 21, &answer->status, err);
	ck_info_outside(out, spec);
	if (r == 0 && !ck_info_at(spec, "mounts"))
		r = put_each(out, 9, &answer->status, STATUS_MOUNTS, put_mount, err);
	size_t opened = ck_writer_open(out, 11);
	ck_info_linux(out, oci_linux);
	ck_info_linux_process(out, process);
	ck_info_seccomp_profile(out, ck_info_at(answer->info, "config.linux.security_context"));
	if (r == 0 && !ck_info_at(oci_linux, "resources"))
		r = put_resources(out, 3, 4, &resources, 1, err);
	ck_writer_close(out, opened);
	ck_info_cdi(out, ck_info_at(answer->info, "config"));
	ck_writer_number(out, 12, pid_of(answer));
	return r;
}

static int put_container(struct ck_writer *out, const struct answer *answer, const char *sandbox_id,
			 struct ck_error *err)
{
	const struct ck_fields *status = &answer->status;
	struct ck_fields metadata;
	int r = ck_fields_inside(status, STATUS_METADATA, &metadata, err);
	r = r < 0 ? r : put_id(out, status, err);
	put_sandbox_id(out, sandbox_id, answer->info);
	put_text(out, 3, &metadata, META_NAME);
	ck_writer_number(out, 4, nri_state(ck_fields_number(status, STATUS_STATE)));
	r = r < 0 ? r : put_map(out, 5, status, STATUS_LABELS, NULL, err);
	r = r < 0 ? r : put_map(out, 6, status, STATUS_ANNOTATIONS, CK_ALIAS_ANNOTATION, err);
	r = r < 0 ? r : put_info(out, answer, err);
	ck_writer_number(out, 14, ck_fields_number(status, STATUS_CREATED_AT));
	ck_writer_number(out, 15, ck_fields_number(status, STATUS_STARTED_AT));
	ck_writer_number(out, 16, ck_fields_number(status, STATUS_FINISHED_AT));
	ck_writer_number(out, 17, ck_fields_number(status, STATUS_EXIT_CODE));
	put_text(out, 18, status, STATUS_REASON);
	put_text(out, 19, status, STATUS_MESSAGE);
	if (r < 0)
		return r;
	return put_image(out, status, STATUS_IMAGE,
			 ck_fields_get(status, STATUS_IMAGE_REF, CK_WIRE_BYTES),
			 ck_fields_get(status, STATUS_IMAGE_ID, CK_WIRE_BYTES), err);
}

int ck_describe_container(const void *response, size_t len, const char *sandbox_id,
			  struct ck_bytes *ret_container, struct ck_error *err)
{
	struct answer answer = { .info = NULL };
	struct ck_writer out = { .r = 0 };
	int r = answer_read(response, len, &answer, err);
	r = r < 0 ? r : put_container(&out, &answer, sandbox_id, err);
	answer_fini(&answer);
	return finish(&out, r, ret_container, err);
}

/* ---- what is asked for ----------------------------------------------------------------------- */

/* User of a security context; nothing if it leaves the user to the image */
static int put_security_user(struct ck_writer *out, const struct ck_fields *security,
			     struct ck_error *err)
{
	struct ck_fields user, group;
	int r = ck_fields_inside(security, SECURITY_USER, &user, err);
	r = r < 0 ? r : ck_fields_inside(security, SECURITY_GROUP, &group, err);
	if (r < 0 || !ck_fields_get(security, SECURITY_USER, CK_WIRE_BYTES))
		return r;
	size_t opened = ck_writer_open(out, 21);
	ck_writer_number(out, 1, ck_fields_number(&user, 1));
	ck_writer_number(out, 2, ck_fields_number(&group, 1));
	r = put_numbers(out, 3, security, SECURITY_GROUPS, err);
	ck_writer_close(out, opened);
	return r;
}

static int put_request_linux(struct ck_writer *out, const struct ck_fields *config,
			     struct ck_error *err)
{
	struct ck_fields asked, security, seccomp;
	int r = ck_fields_inside(config, CONFIG_LINUX, &asked, err);
	r = r < 0 ? r : ck_fields_inside(&asked, LINUX_SECURITY, &security, err);
	r = r < 0 ? r : ck_fields_inside(&security, SECURITY_SECCOMP, &seccomp, err);
	if (r < 0)
		return r;
	size_t opened = ck_writer_open(out, 11);
	r = put_each(out, 2, config, CONFIG_DEVICES, put_device, err);
	r = r < 0 ? r : put_resources(out, 3, 4, &asked, LINUX_RESOURCES, err);
	/* the same numbers in both */
	if (ck_fields_get(&security, SECURITY_SECCOMP, CK_WIRE_BYTES)) {
		size_t profile = ck_writer_open(out, 7);
		ck_writer_number(out, 1, ck_fields_number(&seccomp, 1));
		put_text(out, 2, &seccomp, 2);
		ck_writer_close(out, profile);
	}
	ck_writer_close(out, opened);
	return r < 0 ? r : put_security_user(out, &security, err);
}

static int put_request(struct ck_writer *out, const struct ck_fields *request, const char *id,
		       struct ck_error *err)
{
	struct ck_fields config, metadata;
	int r = ck_fields_inside(request, REQUEST_CONFIG, &config, err);
	r = r < 0 ? r : ck_fields_inside(&config, CONFIG_METADATA, &metadata, err);
	if (r < 0)
		return r;
	if (!ck_fields_get(request, REQUEST_CONFIG, CK_WIRE_BYTES))
		return ck_fail(err, CK_EMALFORMED, "a request without a config");
	ck_writer_utf8(out, 1, id, strlen(id));
	put_text(out, 2, request, REQUEST_SANDBOX_ID);
	put_text(out, 3, &metadata, META_NAME);
	r = put_map(out, 5, &config, CONFIG_LABELS, NULL, err);
	r = r < 0 ? r : put_map(out, 6, &config, CONFIG_ANNOTATIONS, CK_ALIAS_ANNOTATION, err);
	put_texts(out, 7, &config, CONFIG_COMMAND);
	put_texts(out, 7, &config, CONFIG_ARGS);
	r = r < 0 ? r : put_each(out, 8, &config, CONFIG_ENVS, put_env, err);
	r = r < 0 ? r : put_each(out, 9, &config, CONFIG_MOUNTS, put_mount, err);
	r = r < 0 ? r : put_request_linux(out, &config, err);
	r = r < 0 ? r : put_each(out, 20, &config, CONFIG_CDI, put_cdi_device, err);
	return r < 0 ? r : put_image(out, &config, CONFIG_IMAGE, NULL, NULL, err);
}

int ck_describe_request(const void *request, size_t len, const char *id,
			struct ck_bytes *ret_container, struct ck_error *err)
{
	struct ck_fields fields;
	struct ck_writer out = { .r = 0 };
	int r = ck_fields_read(ck_wire_begin(request, len), &fields, err);
	r = r < 0 ? r : put_request(&out, &fields, id, err);
	return finish(&out, r, ret_container, err);
}
