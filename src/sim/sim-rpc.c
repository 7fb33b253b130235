/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of the calls that are served, and the handlers of those that change something that
 * exists. As in containerd, what is unknown can be stopped and removed, and a call that is not in
 * the table is UNIMPLEMENTED.
 */
#include "src/base/limits.h"
#include "src/sim/sim-int.h"

/* ---- acting ---------------------------------------------------------------------------------- */

static int stop(struct ck_sim_call *call, enum ck_kind kind)
{
	struct ck_sim_object *object;
	int r = ck_sim_request_object(call, kind, false, &object);
	if (r == 0 && object)
		ck_sim_object_stop(object);
	return r;
}

static int remove_object(struct ck_sim_call *call, enum ck_kind kind)
{
	struct ck_sim_object *object;
	int r = ck_sim_request_object(call, kind, false, &object);
	if (r == 0 && object)
		ck_sim_object_remove(object);
	return r;
}

static int stop_sandbox(struct ck_sim_call *call)
{
	return stop(call, CK_SANDBOX);
}

static int stop_container(struct ck_sim_call *call)
{
	return stop(call, CK_CONTAINER);
}

static int remove_sandbox(struct ck_sim_call *call)
{
	return remove_object(call, CK_SANDBOX);
}

static int remove_container(struct ck_sim_call *call)
{
	return remove_object(call, CK_CONTAINER);
}

static const char *state_name(const struct ck_sim_object *container)
{
	static const char *const names[] = {
		[CK_SIM_CREATED] = "CONTAINER_CREATED",
		[CK_SIM_RUNNING] = "CONTAINER_RUNNING",
		[CK_SIM_EXITED] = "CONTAINER_EXITED",
	};
	return names[container->state];
}

static int start_container(struct ck_sim_call *call)
{
	struct ck_sim_object *container, *sandbox;
	int r = ck_sim_request_object(call, CK_CONTAINER, true, &container);
	if (r < 0)
		return r;
	if (container->state != CK_SIM_CREATED)
		return ck_sim_fail(call, CK_GRPC_UNKNOWN, "container is in %s state",
				   state_name(container));
	r = ck_sim_object_find(call->sim, CK_SANDBOX, container->sandbox_id, CK_SIM_ID, &sandbox);
	if (r < 0 || sandbox->state != CK_SIM_READY)
		return ck_sim_fail(call, CK_GRPC_UNKNOWN, "sandbox container \"%s\" is not running",
				   container->sandbox_id);
	ck_sim_container_start(container);
	return CK_SIM_DONE;
}

static int exec_sync(struct ck_sim_call *call)
{
	struct ck_sim_object *container;
	int r = ck_sim_request_object(call, CK_CONTAINER, true, &container);
	if (r < 0)
		return r;
	if (container->state != CK_SIM_RUNNING)
		return ck_sim_fail(call, CK_GRPC_UNKNOWN, "container is in %s state",
				   state_name(container));
	ck_writer_text(&call->out, 1, "simulated\n");
	return CK_SIM_DONE;
}

/* what changes nothing here, but wants its object */
static int touch_container(struct ck_sim_call *call)
{
	struct ck_sim_object *container;
	return ck_sim_request_object(call, CK_CONTAINER, true, &container);
}

/* one LinuxContainerResources of the request */
static int update(struct ck_sim_call *call, struct ck_bytes *uses, uint32_t field_number)
{
	struct ck_wire_field field;
	struct ck_error err;
	int r = ck_sim_request_field(call, field_number, &field);
	if (r <= 0)
		return r;
	r = ck_sim_uses_update(uses, field.data, field.len, &err);
	if (r == -CK_EMALFORMED)
		return ck_sim_fail(call, CK_GRPC_INTERNAL, "grpc: error unmarshalling request: %s",
				   err.text);
	return r < 0 ? ck_sim_nomem(call) : 0;
}

static int updated(struct ck_sim_object *object)
{
	ck_sim_log(object->sim, "update", object);
	ck_sim_keep(object, CK_SIM_UPDATED);
	return CK_SIM_DONE;
}

static int update_container(struct ck_sim_call *call)
{
	enum { LINUX = 2 };
	struct ck_sim_object *container;
	int r = ck_sim_request_object(call, CK_CONTAINER, true, &container);
	r = r < 0 ? r : update(call, &container->uses[CK_SIM_RESOURCES], LINUX);
	return r < 0 ? r : updated(container);
}

static int update_sandbox(struct ck_sim_call *call)
{
	enum { OVERHEAD = 2, RESOURCES };
	struct ck_sim_object *sandbox;
	int r = ck_sim_request_object(call, CK_SANDBOX, true, &sandbox);
	r = r < 0 ? r : update(call, &sandbox->uses[CK_SIM_OVERHEAD], OVERHEAD);
	r = r < 0 ? r : update(call, &sandbox->uses[CK_SIM_RESOURCES], RESOURCES);
	return r < 0 ? r : updated(sandbox);
}

/* ---- the runtime itself ---------------------------------------------------------------------- */

static int version(struct ck_sim_call *call)
{
	/* the kubelet's version of the question: 1.20 takes no other */
	ck_writer_text(&call->out, 1, "0.1.0");
	ck_writer_text(&call->out, 2, "crikeep-sim");
	ck_writer_text(&call->out, 3, ck_version());
	ck_writer_text(&call->out, 4, call->version);
	return CK_SIM_DONE;
}

static int runtime_config(struct ck_sim_call *call)
{
	enum { CGROUPFS = 1 };
	size_t config = ck_writer_open(&call->out, 1);
	ck_writer_number(&call->out, 1, CGROUPFS);
	ck_writer_close(&call->out, config);
	return CK_SIM_DONE;
}

static int nothing(struct ck_sim_call *call)
{
	(void)call;
	return CK_SIM_DONE;
}

/* ---- the table ------------------------------------------------------------------------------- */

#define RUNTIME "RuntimeService"
#define IMAGE   "ImageService"

static const struct ck_sim_rpc rpcs[] = {
	{ RUNTIME, "Version", version, CK_SIM_NOW, false },
	{ RUNTIME, "Status", ck_sim_status, CK_SIM_NOW, false },
	{ RUNTIME, "RuntimeConfig", runtime_config, CK_SIM_NOW, false },
	{ RUNTIME, "UpdateRuntimeConfig", nothing, CK_SIM_NOW, false },

	/* has a timer of its own, as CreateContainer */
	{ RUNTIME, "RunPodSandbox", ck_sim_run_sandbox, CK_SIM_NOW, false },
	{ RUNTIME, "StopPodSandbox", stop_sandbox, CK_SIM_STOP, false },
	{ RUNTIME, "RemovePodSandbox", remove_sandbox, CK_SIM_REMOVE, false },
	{ RUNTIME, "PodSandboxStatus", ck_sim_sandbox_status, CK_SIM_NOW, false },
	{ RUNTIME, "ListPodSandbox", ck_sim_list_sandboxes, CK_SIM_LIST, false },
	{ RUNTIME, "StreamPodSandboxes", ck_sim_list_sandboxes, CK_SIM_LIST, true },
	{ RUNTIME, "UpdatePodSandboxResources", update_sandbox, CK_SIM_NOW, false },

	{ RUNTIME, "CreateContainer", ck_sim_create_container, CK_SIM_NOW, false },
	{ RUNTIME, "StartContainer", start_container, CK_SIM_NOW, false },
	{ RUNTIME, "StopContainer", stop_container, CK_SIM_STOP, false },
	{ RUNTIME, "RemoveContainer", remove_container, CK_SIM_REMOVE, false },
	{ RUNTIME, "ContainerStatus", ck_sim_container_status, CK_SIM_NOW, false },
	{ RUNTIME, "ListContainers", ck_sim_list_containers, CK_SIM_LIST, false },
	{ RUNTIME, "StreamContainers", ck_sim_list_containers, CK_SIM_LIST, true },
	{ RUNTIME, "UpdateContainerResources", update_container, CK_SIM_NOW, false },
	{ RUNTIME, "ReopenContainerLog", touch_container, CK_SIM_NOW, false },
	{ RUNTIME, "ExecSync", exec_sync, CK_SIM_NOW, false },

	{ RUNTIME, "ContainerStats", ck_sim_container_stats, CK_SIM_NOW, false },
	{ RUNTIME, "ListContainerStats", ck_sim_list_container_stats, CK_SIM_LIST, false },
	{ RUNTIME, "StreamContainerStats", ck_sim_list_container_stats, CK_SIM_LIST, true },
	{ RUNTIME, "PodSandboxStats", ck_sim_sandbox_stats, CK_SIM_NOW, false },
	{ RUNTIME, "ListPodSandboxStats", ck_sim_list_sandbox_stats, CK_SIM_LIST, false },
	{ RUNTIME, "StreamPodSandboxStats", ck_sim_list_sandbox_stats, CK_SIM_LIST, true },
	{ RUNTIME, "ListMetricDescriptors", ck_sim_metric_descriptors, CK_SIM_NOW, false },
	{ RUNTIME, "ListPodSandboxMetrics", ck_sim_list_metrics, CK_SIM_LIST, false },
	{ RUNTIME, "StreamPodSandboxMetrics", ck_sim_list_metrics, CK_SIM_LIST, true },
	{ RUNTIME, "GetContainerEvents", ck_sim_events, CK_SIM_NOW, true },

	{ IMAGE, "ListImages", ck_sim_list_images, CK_SIM_LIST, false },
	{ IMAGE, "StreamImages", ck_sim_list_images, CK_SIM_LIST, true },
	{ IMAGE, "ImageStatus", ck_sim_image_status, CK_SIM_NOW, false },
	{ IMAGE, "PullImage", ck_sim_pull_image, CK_SIM_NOW, false },
	{ IMAGE, "RemoveImage", ck_sim_remove_image, CK_SIM_NOW, false },
	{ IMAGE, "ImageFsInfo", ck_sim_image_fs, CK_SIM_NOW, false },
};
_Static_assert(CK_COUNT(rpcs) <= CK_SIM_RPCS, "a count for each");

const struct ck_sim_rpc *ck_sim_rpc_at(unsigned i)
{
	return i < CK_COUNT(rpcs) ? &rpcs[i] : NULL;
}

static bool is_text(const char *p, size_t len, const char *text)
{
	return strlen(text) == len && !memcmp(p, text, len);
}

/* "/runtime.v1.RuntimeService/Version", looked at by every call: no printing, no copying */
const struct ck_sim_rpc *ck_sim_rpc_find(struct ck_sim *sim, const char *path, size_t len,
					 const char **ret_version)
{
	static const char *const versions[] = { "v1alpha2", "v1" };
	static const char package[] = "/runtime.";
	const char *version_at = path + sizeof(package) - 1, *end = path + len;
	if (len < sizeof(package) || memcmp(path, package, sizeof(package) - 1) != 0)
		return NULL;
	const char *dot = memchr(version_at, '.', (size_t)(end - version_at));
	const char *slash = dot ? memchr(dot, '/', (size_t)(end - dot)) : NULL;
	if (!slash)
		return NULL;
	*ret_version = NULL;
	for (size_t v = 0; v < CK_COUNT(versions); v++)
		if (is_text(version_at, (size_t)(dot - version_at), versions[v]))
			*ret_version = versions[v];
	for (size_t i = 0; i < CK_COUNT(rpcs) && *ret_version; i++) {
		if (!is_text(slash + 1, (size_t)(end - slash - 1), rpcs[i].name) ||
		    !is_text(dot + 1, (size_t)(slash - dot - 1), rpcs[i].service))
			continue;
		sim->called[i]++;
		return &rpcs[i];
	}
	return NULL;
}
