/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A creation, from its name to its end. It is a timer, so that thousands may be under way. As in
 * containerd the name is reserved from the first moment on, and nothing is looked at again once it
 * has begun: a container whose sandbox has gone meanwhile still comes into being.
 *
 *   begun --timer--> exists | failed            the caller leaves: cancel=finish changes nothing,
 *                                               cancel=rollback --timer--> rolled back (its name is reserved until then)
 */
#include <stdio.h>

#include "src/base/limits.h"
#include "src/sim/sim-int.h"

static void creation_over(struct ck_rt_object *object, const char *verb, uint64_t *count)
{
	struct ck_rt_call *caller = CK_TAKE(object->caller);
	++*count;
	ck_rt_log(object->rt, verb, object);
	ck_rt_object_free(object);
	if (!caller)
		return;
	caller->making = NULL;
	ck_rt_answer(caller);
}

static void created(struct ck_rt_object *object)
{
	struct ck_rt_call *caller = CK_TAKE(object->caller);
	object->created_at = ck_rt_wall();
	object->rt->count[object->kind].finished++;
	ck_rt_log(object->rt, "create", object);
	ck_rt_keep(object, CK_RT_MADE);
	ck_rt_event(object, CK_RT_IS_CREATED); /* before the answer, as containerd does */
	if (object->kind == CK_SANDBOX)
		ck_rt_event(object, CK_RT_IS_STARTED);
	if (!caller)
		return;
	caller->making = NULL;
	ck_writer_text(&caller->out, 1, object->id);
	ck_rt_answer(caller);
}

static void creation_due(void *userdata)
{
	struct ck_rt_object *object = userdata;
	struct ck_rt *rt = object->rt;
	struct ck_rt_count *count = &rt->count[object->kind];
	ck_loop_timer_free(CK_TAKE(object->timer));
	if (rt->conf.fail[object->kind]) {
		rt->conf.fail[object->kind]--;
		if (object->caller)
			ck_rt_fail_as_told(object->caller);
		creation_over(object, "fail", &count->failed);
	} else if (ck_rt_object_exists(object) < 0) {
		if (object->caller)
			ck_rt_nomem(object->caller);
		creation_over(object, "fail", &count->failed);
	} else {
		created(object);
	}
}

static void rolled_back(void *userdata)
{
	struct ck_rt_object *object = userdata;
	creation_over(object, "rollback", &object->rt->count[object->kind].rolled_back);
}

void ck_rt_create_left(struct ck_rt_object *object)
{
	struct ck_rt *rt = object->rt;
	object->caller = NULL;
	if (rt->conf.finish)
		return;
	/* what was made so far is removed, and that takes its time, too */
	if (!rt->conf.remove ||
	    ck_loop_timer(&rt->loop, &object->timer, ck_loop_now() + rt->conf.remove, rolled_back,
			  object) < 0)
		rolled_back(object);
}

/* ---- how it begins --------------------------------------------------------------------------- */

struct creation { /* what the request says */
	enum ck_kind kind;
	struct ck_wire_field config;
	char *name; /* in the runtime */
	const char *sandbox_id;
	char *handler;
};

static int creation_begin(struct ck_rt_call *call, struct creation *creation)
{
	struct ck_rt *rt = call->rt;
	struct ck_rt_object *object;
	const char *what = creation->kind == CK_SANDBOX ? "sandbox" : "container";
	int r = ck_rt_object_new(rt, creation->kind, creation->name, &object);
	if (r == -CK_ECONFLICT) {
		rt->count[creation->kind].refused++;
		return ck_rt_fail(
			call, CK_GRPC_UNKNOWN,
			"failed to reserve %s name \"%s\": name \"%s\" is reserved for \"%s\"",
			what, object->name, object->name, object->id);
	}
	if (r < 0)
		return ck_rt_nomem(call);
	object->handler = CK_TAKE(creation->handler);
	snprintf(object->sandbox_id, sizeof(object->sandbox_id), "%s", creation->sandbox_id);
	r = ck_bytes_add(&object->config, creation->config.data, creation->config.len);
	if (r == 0)
		r = ck_loop_timer(&rt->loop, &object->timer,
				  ck_loop_now() + rt->conf.create[creation->kind], creation_due,
				  object);
	if (r < 0) {
		ck_rt_object_free(object);
		return ck_rt_nomem(call);
	}
	object->caller = call;
	call->making = object;
	rt->count[creation->kind].begun++;
	ck_rt_log(rt, "begin", object);
	return CK_RT_LATER;
}

/* of a sandbox (name, uid, namespace, attempt) or of a container (name, attempt) */
struct metadata {
	struct ck_wire_field field[5];
};

/* read_metadata - field 1 of @config, and that all of @config can be read. CK_RT_DONE or a
 * failure */
static int read_metadata(struct ck_rt_call *call, const struct ck_wire_field *config,
			 struct metadata *ret_metadata)
{
	struct ck_wire wire = ck_wire_begin(config->data, config->len);
	struct ck_wire_field field;
	struct ck_error err;
	bool found = false;
	int r;
	*ret_metadata = (struct metadata){ 0 };
	while ((r = ck_wire_next(&wire, &field, &err)) > 0) {
		struct ck_wire inside = ck_wire_inside(&wire, &field);
		struct ck_wire_field part;
		if (field.number != 1 || field.type != CK_WIRE_BYTES)
			continue;
		found = true;
		while ((r = ck_wire_next(&inside, &part, &err)) > 0)
			if (part.number < CK_COUNT(ret_metadata->field))
				ret_metadata->field[part.number] = part;
		if (r < 0)
			break;
	}
	if (r < 0)
		return ck_rt_fail(call, CK_GRPC_INTERNAL, "grpc: error unmarshalling request: %s",
				  err.text);
	if (!found || !ret_metadata->field[1].len)
		return ck_rt_fail(call, CK_GRPC_INVALID_ARGUMENT,
				  "config must include metadata with a name");
	return CK_RT_DONE;
}

/* name_add - "part_part_part", behind what @name has and a '_' */
static int name_add(struct ck_bytes *name, const struct metadata *metadata, const unsigned *parts,
		    size_t n)
{
	int r = 0;
	for (size_t i = 0; i < n && r == 0; i++) {
		const struct ck_wire_field *part = &metadata->field[parts[i]];
		r = name->len ? ck_bytes_add_text(name, "_") : 0;
		if (r == 0 && part->type == CK_WIRE_BYTES)
			r = ck_bytes_add(name, part->data, part->len);
	}
	return r;
}

static char *name_end(struct ck_bytes *name, const struct metadata *metadata, unsigned attempt)
{
	char number[32];
	snprintf(number, sizeof(number), "_%u", (unsigned)(uint32_t)metadata->field[attempt].value);
	return ck_bytes_add_text(name, number) < 0 ? NULL
						   : ck_strndup((const char *)name->p, name->len);
}

static const unsigned pod_parts[] = { 1, 3, 2 }; /* name, namespace, uid */

int ck_rt_run_sandbox(struct ck_rt_call *call)
{
	struct creation creation = { .kind = CK_SANDBOX, .sandbox_id = "" };
	struct metadata metadata;
	int r = ck_rt_request_field(call, 1, &creation.config);
	if (r >= 0)
		r = read_metadata(call, &creation.config, &metadata);
	if (r < 0)
		return r;
	struct ck_bytes name = { 0 };
	creation.handler = ck_rt_config_text(&call->reader.message, 0, 2);
	if (name_add(&name, &metadata, pod_parts, CK_COUNT(pod_parts)) == 0)
		creation.name = name_end(&name, &metadata, 4);
	r = creation.name && creation.handler ? creation_begin(call, &creation) : ck_rt_nomem(call);
	ck_bytes_free(&name);
	free(creation.name);
	free(creation.handler);
	return r;
}

int ck_rt_create_container(struct ck_rt_call *call)
{
	static const unsigned own_part[] = { 1 };
	struct creation creation = { .kind = CK_CONTAINER };
	struct ck_wire_field sandbox_config = { 0 };
	struct ck_rt_object *sandbox;
	struct metadata metadata, pod;
	int r = ck_rt_request_object(call, CK_SANDBOX, true, &sandbox);
	if (r < 0)
		return r;
	if (sandbox->state != CK_RT_READY)
		return ck_rt_fail(call, CK_GRPC_UNKNOWN, "sandbox container \"%s\" is not running",
				  sandbox->id);
	r = ck_rt_request_field(call, 2, &creation.config);
	if (r >= 0)
		r = read_metadata(call, &creation.config, &metadata);
	if (r >= 0)
		r = ck_rt_request_field(call, 3, &sandbox_config);
	if (r == 0) /* crictl and the kubelet always send it */
		sandbox_config = (struct ck_wire_field){ .data = sandbox->config.p,
							 .len = sandbox->config.len };
	if (r >= 0)
		r = read_metadata(call, &sandbox_config, &pod);
	if (r < 0)
		return r;
	struct ck_bytes config = { .p = (unsigned char *)creation.config.data,
				   .len = creation.config.len },
			name = { 0 };
	CK_AUTO_FREE char *image = ck_rt_config_text(&config, 2, 1);
	creation.sandbox_id = sandbox->id;
	if (image && name_add(&name, &metadata, own_part, 1) == 0 &&
	    name_add(&name, &pod, pod_parts, CK_COUNT(pod_parts)) == 0)
		creation.name = name_end(&name, &metadata, 2);
	if (!creation.name)
		r = ck_rt_nomem(call);
	else if (!*image)
		r = ck_rt_fail(call, CK_GRPC_INVALID_ARGUMENT, "config must name an image");
	else
		r = creation_begin(call, &creation);
	ck_bytes_free(&name);
	free(creation.name);
	return r;
}

/* ---- what exists from the start -------------------------------------------------------------- */

static void put_padding(struct ck_rt *rt, struct ck_writer *out, uint32_t number)
{
	CK_AUTO_FREE char *padding = ck_alloc((size_t)rt->conf.padding + 1);
	if (!padding) {
		out->r = -CK_ENOMEM;
		return;
	}
	memset(padding, 'p', (size_t)rt->conf.padding);
	if (rt->conf.padding)
		ck_writer_pair(out, number, "crikeep.sim/padding", padding);
}

static void put_pod_labels(struct ck_writer *out, uint32_t number, const char *pod, const char *uid)
{
	ck_writer_pair(out, number, "io.kubernetes.pod.name", pod);
	ck_writer_pair(out, number, "io.kubernetes.pod.namespace", "made");
	ck_writer_pair(out, number, "io.kubernetes.pod.uid", uid);
}

static struct ck_rt_object *premake(struct ck_rt *rt, const struct ck_rt_object *sandbox,
				    uint64_t pod, uint64_t i)
{
	enum ck_kind kind = sandbox ? CK_CONTAINER : CK_SANDBOX;
	struct ck_writer out = { .r = 0 };
	struct ck_rt_object *object = NULL;
	char pod_name[32], uid[64], name[160], container[32];
	snprintf(pod_name, sizeof(pod_name), "made-%llu", (unsigned long long)pod);
	snprintf(uid, sizeof(uid), "00000000-0000-4000-8000-%012llu", (unsigned long long)pod);
	snprintf(container, sizeof(container), "c%llu", (unsigned long long)i);
	size_t metadata = ck_writer_open(&out, 1);
	ck_writer_text(&out, 1, kind == CK_SANDBOX ? pod_name : container);
	if (kind == CK_SANDBOX) {
		ck_writer_text(&out, 2, uid);
		ck_writer_text(&out, 3, "made");
	}
	ck_writer_close(&out, metadata);
	if (kind == CK_CONTAINER) {
		size_t image = ck_writer_open(&out, 2);
		ck_writer_text(&out, 1, "busybox");
		ck_writer_close(&out, image);
		ck_writer_pair(&out, ck_rt_labels(kind), "io.kubernetes.container.name", container);
	}
	put_pod_labels(&out, ck_rt_labels(kind), pod_name, uid);
	put_padding(rt, &out, ck_rt_labels(kind) + 1);
	snprintf(name, sizeof(name), "%s%s%s_made_%s_0", kind == CK_SANDBOX ? "" : container,
		 kind == CK_SANDBOX ? "" : "_", pod_name, uid);
	if (out.r < 0 || ck_rt_object_new(rt, kind, name, &object) < 0) {
		ck_bytes_free(&out.bytes);
		return NULL;
	}
	object->config = out.bytes;
	object->created_at = ck_rt_wall();
	if (sandbox)
		memcpy(object->sandbox_id, sandbox->id, sizeof(object->sandbox_id));
	if (ck_rt_object_exists(object) < 0) {
		ck_rt_object_free(object);
		return NULL;
	}
	ck_rt_keep(object, CK_RT_MADE);
	return object;
}

int ck_rt_premake(struct ck_rt *rt)
{
	uint64_t pods = rt->conf.made[CK_SANDBOX];
	for (uint64_t i = 0; i < pods; i++)
		if (!premake(rt, NULL, i, 0))
			return -CK_ENOMEM;
	struct ck_rt_object *sandbox = rt->list[CK_SANDBOX];
	for (uint64_t i = 0; i < rt->conf.made[CK_CONTAINER]; i++) {
		struct ck_rt_object *container = premake(rt, sandbox, i % pods, i / pods);
		if (!container)
			return -CK_ENOMEM;
		ck_rt_start(container);
		sandbox = sandbox->next ? sandbox->next : rt->list[CK_SANDBOX];
	}
	return 0;
}
