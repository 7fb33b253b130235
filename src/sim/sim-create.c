/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A creation, from its name to its end. It is a timer, so that thousands may be under way. As in
 * containerd, the name is reserved from the first moment on, and nothing is checked again once the
 * creation has begun: a container is created even if its sandbox has been removed meanwhile.
 *
 *   begun --timer--> exists | failed
 *
 * When the caller leaves, cancel=finish changes nothing. With cancel=rollback a second timer runs,
 * and at its end the creation is undone. Its name stays reserved until then.
 */
#include <stdio.h>

#include "src/base/limits.h"
#include "src/sim/sim-int.h"

static void creation_over(struct ck_sim_object *object, const char *verb, uint64_t *count)
{
	struct ck_sim_call *caller = CK_TAKE(object->caller);
	++*count;
	ck_sim_log(object->sim, verb, object);
	ck_sim_object_free(object);
	if (!caller)
		return;
	caller->making = NULL;
	ck_sim_answer(caller);
}

static void created(struct ck_sim_object *object)
{
	struct ck_sim_call *caller = CK_TAKE(object->caller);
	object->created_at = ck_sim_wall();
	object->sim->count[object->kind].finished++;
	ck_sim_log(object->sim, "create", object);
	ck_sim_keep(object, CK_SIM_MADE);
	ck_sim_event(object, CK_SIM_IS_CREATED); /* before the answer, as containerd does */
	if (object->kind == CK_SANDBOX)
		ck_sim_event(object, CK_SIM_IS_STARTED);
	if (!caller)
		return;
	caller->making = NULL;
	/* the same field number in both answers */
	ck_writer_text(&caller->out, CRI_CreateContainerResponse_container_id, object->id);
	ck_sim_answer(caller);
}

static void creation_due(void *userdata)
{
	struct ck_sim_object *object = userdata;
	struct ck_sim *sim = object->sim;
	struct ck_sim_count *count = &sim->count[object->kind];
	ck_loop_timer_free(CK_TAKE(object->timer));
	if (sim->conf.fail[object->kind]) {
		sim->conf.fail[object->kind]--;
		if (object->caller)
			ck_sim_fail_as_told(object->caller);
		creation_over(object, "fail", &count->failed);
	} else if (ck_sim_object_exists(object) < 0) {
		if (object->caller)
			ck_sim_nomem(object->caller);
		creation_over(object, "fail", &count->failed);
	} else {
		created(object);
	}
}

static void rolled_back(void *userdata)
{
	struct ck_sim_object *object = userdata;
	creation_over(object, "rollback", &object->sim->count[object->kind].rolled_back);
}

void ck_sim_create_left(struct ck_sim_object *object)
{
	struct ck_sim *sim = object->sim;
	object->caller = NULL;
	if (sim->conf.finish)
		return;
	/* the rollback takes as long as a removal */
	if (!sim->conf.remove ||
	    ck_loop_timer(&sim->loop, &object->timer, ck_loop_now() + sim->conf.remove, rolled_back,
			  object) < 0)
		rolled_back(object);
}

/* ---- how it begins --------------------------------------------------------------------------- */

struct creation { /* what the request says */
	enum ck_kind kind;
	struct ck_wire_field config;
	char *name; /* as the runtime reserves it */
	const char *sandbox_id;
	char *handler;
};

static int creation_begin(struct ck_sim_call *call, struct creation *creation)
{
	struct ck_sim *sim = call->sim;
	struct ck_sim_object *object;
	const char *what = creation->kind == CK_SANDBOX ? "sandbox" : "container";
	int r = ck_sim_object_new(sim, creation->kind, creation->name, &object);
	if (r == -CK_ECONFLICT) {
		sim->count[creation->kind].refused++;
		ck_sim_log(sim, "refuse", object);
		return ck_sim_fail(
			call, CK_GRPC_UNKNOWN,
			"failed to reserve %s name \"%s\": name \"%s\" is reserved for \"%s\"",
			what, object->name, object->name, object->id);
	}
	if (r < 0)
		return ck_sim_nomem(call);
	object->handler = CK_TAKE(creation->handler);
	snprintf(object->sandbox_id, sizeof(object->sandbox_id), "%s", creation->sandbox_id);
	r = ck_bytes_add(&object->config, creation->config.data, creation->config.len);
	if (r == 0)
		r = ck_loop_timer(&sim->loop, &object->timer,
				  ck_loop_now() + sim->conf.create[creation->kind], creation_due,
				  object);
	if (r < 0) {
		ck_sim_object_free(object);
		return ck_sim_nomem(call);
	}
	object->caller = call;
	call->making = object;
	sim->count[creation->kind].begun++;
	ck_sim_log(sim, "begin", object);
	return CK_SIM_LATER;
}

/* read_metadata - of a sandbox or a container: both configs have the same field numbers of the
 * metadata and of its name. CK_SIM_DONE or a failure */
static int read_metadata(struct ck_sim_call *call, const struct ck_wire_field *config,
			 struct ck_fields *ret_metadata)
{
	struct ck_fields fields;
	struct ck_error err;
	int r = ck_fields_read(ck_wire_begin(config->data, config->len), &fields, &err);
	r = r < 0 ? r : ck_fields_inside(&fields, CRI_ContainerConfig_metadata, ret_metadata, &err);
	if (r < 0)
		return ck_sim_fail(call, CK_GRPC_INTERNAL, "grpc: error unmarshalling request: %s",
				   err.text);
	const struct ck_wire_field *name = ck_fields_get(ret_metadata, CRI_ContainerMetadata_name);
	if (!name || !name->len)
		return ck_sim_fail(call, CK_GRPC_INVALID_ARGUMENT,
				   "config must include metadata with a name");
	return CK_SIM_DONE;
}

/* name_add - append "_part_part_part" to @name, without the first '_' if @name is empty */
static int name_add(struct ck_bytes *name, const struct ck_fields *metadata, const uint32_t *parts,
		    size_t n)
{
	int r = 0;
	for (size_t i = 0; i < n && r == 0; i++) {
		const struct ck_wire_field *part = ck_fields_get(metadata, parts[i]);
		r = name->len ? ck_bytes_add_text(name, "_") : 0;
		if (r == 0 && part)
			r = ck_bytes_add(name, part->data, part->len);
	}
	return r;
}

static char *name_end(struct ck_bytes *name, uint64_t attempt)
{
	char number[32];
	snprintf(number, sizeof(number), "_%u", (unsigned)(uint32_t)attempt);
	return ck_bytes_add_text(name, number) < 0 ? NULL
						   : ck_strndup((const char *)name->p, name->len);
}

static const uint32_t pod_parts[] = {
	CRI_PodSandboxMetadata_name,
	CRI_PodSandboxMetadata_namespace,
	CRI_PodSandboxMetadata_uid,
};

int ck_sim_run_sandbox(struct ck_sim_call *call)
{
	struct creation creation = { .kind = CK_SANDBOX, .sandbox_id = "" };
	struct ck_fields metadata = { .all = ck_wire_begin(NULL, 0) };
	int r = ck_sim_request_field(call, CRI_RunPodSandboxRequest_config, &creation.config);
	if (r >= 0)
		r = read_metadata(call, &creation.config, &metadata);
	if (r < 0)
		return r;
	struct ck_bytes name = { 0 };
	creation.handler = ck_sim_config_text(&call->reader.message, 0,
					      CRI_RunPodSandboxRequest_runtime_handler);
	if (name_add(&name, &metadata, pod_parts, CK_COUNT(pod_parts)) == 0)
		creation.name = name_end(
			&name, ck_fields_number(&metadata, CRI_PodSandboxMetadata_attempt));
	r = creation.name && creation.handler ? creation_begin(call, &creation)
					      : ck_sim_nomem(call);
	ck_bytes_free(&name);
	free(creation.name);
	free(creation.handler);
	return r;
}

int ck_sim_create_container(struct ck_sim_call *call)
{
	static const uint32_t own_part = CRI_ContainerMetadata_name;
	struct creation creation = { .kind = CK_CONTAINER };
	struct ck_wire_field sandbox_config = { 0 };
	struct ck_sim_object *sandbox;
	struct ck_fields metadata = { .all = ck_wire_begin(NULL, 0) }, pod = metadata;
	int r = ck_sim_request_object(call, CK_SANDBOX, true, &sandbox);
	if (r < 0)
		return r;
	if (sandbox->state != CK_SIM_READY)
		return ck_sim_fail(call, CK_GRPC_UNKNOWN, "sandbox container \"%s\" is not running",
				   sandbox->id);
	r = ck_sim_request_field(call, CRI_CreateContainerRequest_config, &creation.config);
	if (r >= 0)
		r = read_metadata(call, &creation.config, &metadata);
	if (r >= 0)
		r = ck_sim_request_field(call, CRI_CreateContainerRequest_sandbox_config,
					 &sandbox_config);
	if (r == 0) /* only a client other than crictl and the kubelet leaves it out */
		sandbox_config = (struct ck_wire_field){ .data = sandbox->config.p,
							 .len = sandbox->config.len };
	if (r >= 0)
		r = read_metadata(call, &sandbox_config, &pod);
	if (r < 0)
		return r;
	struct ck_bytes config = { .p = (unsigned char *)creation.config.data,
				   .len = creation.config.len },
			name = { 0 };
	CK_AUTO_FREE char *image =
		ck_sim_config_text(&config, CRI_ContainerConfig_image, CRI_ImageSpec_image);
	creation.sandbox_id = sandbox->id;
	if (image && name_add(&name, &metadata, &own_part, 1) == 0 &&
	    name_add(&name, &pod, pod_parts, CK_COUNT(pod_parts)) == 0)
		creation.name =
			name_end(&name, ck_fields_number(&metadata, CRI_ContainerMetadata_attempt));
	if (!image || !creation.name)
		r = ck_sim_nomem(call);
	else if (!*image)
		r = ck_sim_fail(call, CK_GRPC_INVALID_ARGUMENT, "config must name an image");
	else
		r = creation_begin(call, &creation);
	ck_bytes_free(&name);
	free(creation.name);
	return r;
}

/* ---- what exists from the start -------------------------------------------------------------- */

static void put_padding(struct ck_sim *sim, struct ck_writer *out, uint32_t number)
{
	CK_AUTO_FREE char *padding = ck_alloc((size_t)sim->conf.padding + 1);
	if (!padding) {
		out->r = -CK_ENOMEM;
		return;
	}
	memset(padding, 'p', (size_t)sim->conf.padding);
	if (sim->conf.padding)
		ck_writer_pair(out, number, "crikeep.sim/padding", padding);
}

static void put_pod_labels(struct ck_writer *out, uint32_t number, const char *pod, const char *uid)
{
	ck_writer_pair(out, number, "io.kubernetes.pod.name", pod);
	ck_writer_pair(out, number, "io.kubernetes.pod.namespace", "made");
	ck_writer_pair(out, number, "io.kubernetes.pod.uid", uid);
}

static struct ck_sim_object *premake(struct ck_sim *sim, const struct ck_sim_object *sandbox,
				     uint64_t pod, uint64_t i)
{
	enum ck_kind kind = sandbox ? CK_CONTAINER : CK_SANDBOX;
	struct ck_writer out = { .r = 0 };
	struct ck_sim_object *object = NULL;
	char pod_name[32], uid[64], name[160], container[32];
	snprintf(pod_name, sizeof(pod_name), "made-%llu", (unsigned long long)pod);
	snprintf(uid, sizeof(uid), "00000000-0000-4000-8000-%012llu", (unsigned long long)pod);
	snprintf(container, sizeof(container), "c%llu", (unsigned long long)i);
	/* the field numbers of the metadata and of its name are the same in both configs */
	size_t metadata = ck_writer_open(&out, CRI_ContainerConfig_metadata);
	ck_writer_text(&out, CRI_ContainerMetadata_name, kind == CK_SANDBOX ? pod_name : container);
	if (kind == CK_SANDBOX) {
		ck_writer_text(&out, CRI_PodSandboxMetadata_uid, uid);
		ck_writer_text(&out, CRI_PodSandboxMetadata_namespace, "made");
	}
	ck_writer_close(&out, metadata);
	if (kind == CK_CONTAINER) {
		size_t image = ck_writer_open(&out, CRI_ContainerConfig_image);
		ck_writer_text(&out, CRI_ImageSpec_image, "busybox");
		ck_writer_close(&out, image);
		ck_writer_pair(&out, ck_sim_labels(kind), "io.kubernetes.container.name",
			       container);
	}
	put_pod_labels(&out, ck_sim_labels(kind), pod_name, uid);
	put_padding(sim, &out,
		    kind == CK_SANDBOX ? CRI_PodSandboxConfig_annotations
				       : CRI_ContainerConfig_annotations);
	snprintf(name, sizeof(name), "%s%s%s_made_%s_0", kind == CK_SANDBOX ? "" : container,
		 kind == CK_SANDBOX ? "" : "_", pod_name, uid);
	if (out.r < 0 || ck_sim_object_new(sim, kind, name, &object) < 0) {
		ck_bytes_free(&out.bytes);
		return NULL;
	}
	object->config = out.bytes;
	object->created_at = ck_sim_wall();
	if (sandbox)
		memcpy(object->sandbox_id, sandbox->id, sizeof(object->sandbox_id));
	if (ck_sim_object_exists(object) < 0) {
		ck_sim_object_free(object);
		return NULL;
	}
	ck_sim_keep(object, CK_SIM_MADE);
	return object;
}

int ck_sim_premake(struct ck_sim *sim)
{
	uint64_t pods = sim->conf.made[CK_SANDBOX];
	for (uint64_t i = 0; i < pods; i++)
		if (!premake(sim, NULL, i, 0))
			return -CK_ENOMEM;
	struct ck_sim_object *sandbox = sim->list[CK_SANDBOX];
	for (uint64_t i = 0; pods && i < sim->conf.made[CK_CONTAINER]; i++) {
		struct ck_sim_object *container = premake(sim, sandbox, i % pods, i / pods);
		if (!container)
			return -CK_ENOMEM;
		ck_sim_container_start(container);
		sandbox = sandbox->next ? sandbox->next : sim->list[CK_SANDBOX];
	}
	return 0;
}
