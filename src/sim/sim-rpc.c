/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of the calls that are served, and the handlers that change an existing object. As in
 * containerd, stopping or removing an unknown object succeeds. A call that is not in the table is
 * UNIMPLEMENTED.
 */
#include "src/base/limits.h"
#include "src/sim/sim-int.h"

/* ---- acting ---------------------------------------------------------------------------------- */

static int stop(struct ck_sim_call *call)
{
	struct ck_sim_object *object;
	int r = ck_sim_request_object(call, call->method->kind, false, &object);
	if (r == 0 && object)
		ck_sim_object_stop(object);
	return r;
}

static int remove_object(struct ck_sim_call *call)
{
	struct ck_sim_object *object;
	int r = ck_sim_request_object(call, call->method->kind, false, &object);
	if (r == 0 && object)
		ck_sim_object_remove(object);
	return r;
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
	ck_writer_text(&call->out, CRI_ExecSyncResponse_stdout, "simulated\n");
	return CK_SIM_DONE;
}

/* a call that has no effect here, but fails without its object */
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
	struct ck_sim_object *container;
	int r = ck_sim_request_object(call, CK_CONTAINER, true, &container);
	r = r < 0 ? r
		  : update(call, &container->uses[CK_SIM_RESOURCES],
			   CRI_UpdateContainerResourcesRequest_linux);
	return r < 0 ? r : updated(container);
}

static int update_sandbox(struct ck_sim_call *call)
{
	struct ck_sim_object *sandbox;
	int r = ck_sim_request_object(call, CK_SANDBOX, true, &sandbox);
	r = r < 0 ? r
		  : update(call, &sandbox->uses[CK_SIM_OVERHEAD],
			   CRI_UpdatePodSandboxResourcesRequest_overhead);
	r = r < 0 ? r
		  : update(call, &sandbox->uses[CK_SIM_RESOURCES],
			   CRI_UpdatePodSandboxResourcesRequest_resources);
	return r < 0 ? r : updated(sandbox);
}

/* ---- the runtime itself ---------------------------------------------------------------------- */

static int version(struct ck_sim_call *call)
{
	/* the version must be that of the request: kubelet 1.20 accepts no other */
	ck_writer_text(&call->out, CRI_VersionResponse_version, "0.1.0");
	ck_writer_text(&call->out, CRI_VersionResponse_runtime_name, "crikeep-sim");
	ck_writer_text(&call->out, CRI_VersionResponse_runtime_version, PACKAGE_VERSION);
	ck_writer_text(&call->out, CRI_VersionResponse_runtime_api_version, call->version);
	return CK_SIM_DONE;
}

static int runtime_config(struct ck_sim_call *call)
{
	size_t config = ck_writer_open(&call->out, CRI_RuntimeConfigResponse_linux);
	ck_writer_number(&call->out, CRI_LinuxRuntimeConfiguration_cgroup_driver,
			 CRI_CgroupDriver_CGROUPFS);
	ck_writer_close(&call->out, config);
	return CK_SIM_DONE;
}

static int nothing(struct ck_sim_call *call)
{
	(void)call;
	return CK_SIM_DONE;
}

/* ---- the table ------------------------------------------------------------------------------- */

static const struct ck_sim_rpc rpcs[] = {
	{ "Version", version, CK_SIM_NOW },
	{ "Status", ck_sim_status, CK_SIM_NOW },
	{ "RuntimeConfig", runtime_config, CK_SIM_NOW },
	{ "UpdateRuntimeConfig", nothing, CK_SIM_NOW },

	/* creations have timers of their own */
	{ "RunPodSandbox", ck_sim_run_sandbox, CK_SIM_NOW },
	{ "StopPodSandbox", stop, CK_SIM_STOP },
	{ "RemovePodSandbox", remove_object, CK_SIM_REMOVE },
	{ "PodSandboxStatus", ck_sim_sandbox_status, CK_SIM_NOW },
	{ "ListPodSandbox", ck_sim_list_objects, CK_SIM_LIST },
	{ "StreamPodSandboxes", ck_sim_list_objects, CK_SIM_LIST },
	{ "UpdatePodSandboxResources", update_sandbox, CK_SIM_NOW },

	{ "CreateContainer", ck_sim_create_container, CK_SIM_NOW },
	{ "StartContainer", start_container, CK_SIM_START },
	{ "StopContainer", stop, CK_SIM_STOP },
	{ "RemoveContainer", remove_object, CK_SIM_REMOVE },
	{ "ContainerStatus", ck_sim_container_status, CK_SIM_NOW },
	{ "ListContainers", ck_sim_list_objects, CK_SIM_LIST },
	{ "StreamContainers", ck_sim_list_objects, CK_SIM_LIST },
	{ "UpdateContainerResources", update_container, CK_SIM_NOW },
	{ "ReopenContainerLog", touch_container, CK_SIM_NOW },
	{ "ExecSync", exec_sync, CK_SIM_NOW },

	{ "ContainerStats", ck_sim_stats, CK_SIM_NOW },
	{ "ListContainerStats", ck_sim_list_stats, CK_SIM_LIST },
	{ "StreamContainerStats", ck_sim_list_stats, CK_SIM_LIST },
	{ "PodSandboxStats", ck_sim_stats, CK_SIM_NOW },
	{ "ListPodSandboxStats", ck_sim_list_stats, CK_SIM_LIST },
	{ "StreamPodSandboxStats", ck_sim_list_stats, CK_SIM_LIST },
	{ "ListMetricDescriptors", ck_sim_metric_descriptors, CK_SIM_NOW },
	{ "ListPodSandboxMetrics", ck_sim_list_metrics, CK_SIM_LIST },
	{ "StreamPodSandboxMetrics", ck_sim_list_metrics, CK_SIM_LIST },
	{ "GetContainerEvents", ck_sim_events, CK_SIM_NOW },

	{ "ListImages", ck_sim_list_images, CK_SIM_LIST },
	{ "StreamImages", ck_sim_list_images, CK_SIM_LIST },
	{ "ImageStatus", ck_sim_image_status, CK_SIM_NOW },
	{ "PullImage", ck_sim_pull_image, CK_SIM_NOW },
	{ "RemoveImage", ck_sim_remove_image, CK_SIM_NOW },
	{ "ImageFsInfo", ck_sim_image_fs, CK_SIM_NOW },
};
_Static_assert(CK_COUNT(rpcs) <= CK_SIM_RPCS, "a count for each");

const struct ck_sim_rpc *ck_sim_rpc_at(unsigned i)
{
	return i < CK_COUNT(rpcs) ? &rpcs[i] : NULL;
}

const struct ck_sim_rpc *ck_sim_rpc_find(struct ck_sim *sim, const struct ck_cri_method *method)
{
	for (size_t i = 0; i < CK_COUNT(rpcs) && method; i++) {
		if (strcmp(rpcs[i].name, method->rpc))
			continue;
		sim->called[i]++;
		return &rpcs[i];
	}
	return NULL;
}
