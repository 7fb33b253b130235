/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of CRI's calls, and the shapes of their messages. Messages of one shape share it under
 * the names of one of them; tests/unit/test-cri-calls.c compares the shapes of every call with the
 * recorded messages of cri-api.
 */
#include <string.h>

#include "src/base/mem.h"
#include "src/cri/calls.h"
#include "src/cri/numbers.h"
#include "src/cri/shapes.h"

/* ---- shapes ---------------------------------------------------------------------------------- */

#define SHAPE(name, object, flags, ...) \
	static const struct ck_place name##_places[] = { __VA_ARGS__ }; \
	static const struct ck_shape name = { object, flags, CK_COUNT(name##_places), \
					      name##_places }

#define TELLS(field, use)    { field, CK_USE_##use, 0, NULL }
#define INSIDE(field, shape) { field, CK_USE_INSIDE, 0, &(shape) }
#define OBJECT(field, shape) { field, CK_USE_OBJECT, 0, &(shape) }
#define ACTS_ON(field, kind) { field, CK_USE_ACTS_ON, kind, NULL }
#define NAMES(field, kind)   { field, CK_USE_NAMES, kind, NULL }
#define LISTED(field, kind)  { field, CK_USE_LISTED, kind, NULL }

/* What requests name. All requests about one object have its id at the same place; so have the
 * filters of sandboxes. */
SHAPE(on_sandbox, 0, 0, ACTS_ON(CRI_PodSandboxStatusRequest_pod_sandbox_id, CK_SANDBOX));
SHAPE(on_container, 0, 0, ACTS_ON(CRI_ContainerStatusRequest_container_id, CK_CONTAINER));
SHAPE(checkpoint_pod, 0, 0, ACTS_ON(CRI_CheckpointPodRequest_pod_sandbox_id, CK_SANDBOX),
      LISTED(CRI_CheckpointPodRequest_container_ids, CK_CONTAINER));
SHAPE(container_filter, 0, 0, ACTS_ON(CRI_ContainerFilter_id, CK_CONTAINER),
      NAMES(CRI_ContainerFilter_pod_sandbox_id, CK_SANDBOX));
SHAPE(container_stats_filter, 0, 0, ACTS_ON(CRI_ContainerStatsFilter_id, CK_CONTAINER),
      NAMES(CRI_ContainerStatsFilter_pod_sandbox_id, CK_SANDBOX));
SHAPE(sandboxes, 0, 0, INSIDE(CRI_ListPodSandboxRequest_filter, on_sandbox));
SHAPE(containers, 0, 0, INSIDE(CRI_ListContainersRequest_filter, container_filter));
SHAPE(containers_stats, 0, 0,
      INSIDE(CRI_ListContainerStatsRequest_filter, container_stats_filter));

SHAPE(namespace_option, 0, 0, NAMES(CRI_NamespaceOption_target_id, CK_CONTAINER));
SHAPE(container_security, 0, 0,
      INSIDE(CRI_LinuxContainerSecurityContext_namespace_options, namespace_option));
SHAPE(container_linux, 0, 0,
      INSIDE(CRI_LinuxContainerConfig_security_context, container_security));
SHAPE(container_config, 0, 0, INSIDE(CRI_ContainerConfig_linux, container_linux));
SHAPE(create_container, 0, 0, ACTS_ON(CRI_CreateContainerRequest_pod_sandbox_id, CK_SANDBOX),
      INSIDE(CRI_CreateContainerRequest_config, container_config));

/* what answers tell */
SHAPE(sandbox_metadata, 0, 0, TELLS(CRI_PodSandboxMetadata_name, POD_NAME),
      TELLS(CRI_PodSandboxMetadata_uid, POD_UID),
      TELLS(CRI_PodSandboxMetadata_namespace, POD_NAMESPACE),
      TELLS(CRI_PodSandboxMetadata_attempt, ATTEMPT));
SHAPE(container_metadata, 0, 0, TELLS(CRI_ContainerMetadata_name, CONTAINER_NAME),
      TELLS(CRI_ContainerMetadata_attempt, ATTEMPT));

SHAPE(sandbox, CK_SANDBOX, CK_SHAPE_STATE, /* and PodSandboxStatus */
      TELLS(CRI_PodSandbox_id, ID), INSIDE(CRI_PodSandbox_metadata, sandbox_metadata),
      TELLS(CRI_PodSandbox_state, STATE), TELLS(CRI_PodSandbox_created_at, CREATED_AT));
SHAPE(container, CK_CONTAINER, CK_SHAPE_STATE | CK_SHAPE_HOLDS, TELLS(CRI_Container_id, ID),
      TELLS(CRI_Container_pod_sandbox_id, SANDBOX_ID),
      INSIDE(CRI_Container_metadata, container_metadata), TELLS(CRI_Container_state, STATE),
      TELLS(CRI_Container_created_at, CREATED_AT), TELLS(CRI_Container_labels, LABELS),
      TELLS(CRI_Container_annotations, ANNOTATIONS));
SHAPE(container_status, CK_CONTAINER, CK_SHAPE_STATE | CK_SHAPE_HOLDS,
      TELLS(CRI_ContainerStatus_id, ID),
      INSIDE(CRI_ContainerStatus_metadata, container_metadata),
      TELLS(CRI_ContainerStatus_state, STATE),
      TELLS(CRI_ContainerStatus_created_at, CREATED_AT),
      TELLS(CRI_ContainerStatus_started_at, STARTED_AT),
      TELLS(CRI_ContainerStatus_labels, LABELS),
      TELLS(CRI_ContainerStatus_annotations, ANNOTATIONS));
SHAPE(sandbox_attributes, 0, 0, TELLS(CRI_PodSandboxAttributes_id, ID),
      INSIDE(CRI_PodSandboxAttributes_metadata, sandbox_metadata));
SHAPE(container_attributes, 0, CK_SHAPE_HOLDS, TELLS(CRI_ContainerAttributes_id, ID),
      INSIDE(CRI_ContainerAttributes_metadata, container_metadata),
      TELLS(CRI_ContainerAttributes_labels, LABELS),
      TELLS(CRI_ContainerAttributes_annotations, ANNOTATIONS));
SHAPE(container_stats, CK_CONTAINER, CK_SHAPE_HOLDS, /* and WindowsContainerStats */
      INSIDE(CRI_ContainerStats_attributes, container_attributes));
SHAPE(os_sandbox_stats, 0, CK_SHAPE_HOLDS, /* and WindowsPodSandboxStats */
      OBJECT(CRI_LinuxPodSandboxStats_containers, container_stats));
SHAPE(sandbox_stats, CK_SANDBOX, CK_SHAPE_HOLDS,
      INSIDE(CRI_PodSandboxStats_attributes, sandbox_attributes),
      INSIDE(CRI_PodSandboxStats_linux, os_sandbox_stats),
      INSIDE(CRI_PodSandboxStats_windows, os_sandbox_stats));
SHAPE(container_metrics, CK_CONTAINER, CK_SHAPE_ID_ONLY,
      TELLS(CRI_ContainerMetrics_container_id, ID));
SHAPE(sandbox_metrics, CK_SANDBOX, CK_SHAPE_ID_ONLY | CK_SHAPE_HOLDS,
      TELLS(CRI_PodSandboxMetrics_pod_sandbox_id, ID),
      OBJECT(CRI_PodSandboxMetrics_container_metrics, container_metrics));

/* Lists, and messages of streams. All of them have their items at the same place. */
#define LIST(name, item) \
	SHAPE(name, 0, CK_SHAPE_HOLDS, OBJECT(CRI_ListPodSandboxResponse_items, item))
LIST(list_sandbox, sandbox);
LIST(list_container, container);
LIST(list_sandbox_stats, sandbox_stats);
LIST(list_container_stats, container_stats);
LIST(list_sandbox_metrics, sandbox_metrics);

/* An answer about one object is that object: its status may come in pieces, which protobuf
 * merges. All of them have the status, or the statistics, at the same place. */
SHAPE(about_sandbox, CK_SANDBOX, CK_SHAPE_STATE | CK_SHAPE_HOLDS,
      INSIDE(CRI_PodSandboxStatusResponse_status, sandbox),
      OBJECT(CRI_PodSandboxStatusResponse_containers_statuses, container_status));
SHAPE(about_container, CK_CONTAINER, CK_SHAPE_STATE | CK_SHAPE_HOLDS,
      INSIDE(CRI_PodSandboxStatusResponse_status, container_status));
SHAPE(about_container_stats, CK_CONTAINER, CK_SHAPE_HOLDS,
      INSIDE(CRI_PodSandboxStatusResponse_status, container_stats));
SHAPE(about_sandbox_stats, CK_SANDBOX, CK_SHAPE_HOLDS,
      INSIDE(CRI_PodSandboxStatusResponse_status, sandbox_stats));
SHAPE(event, CK_SANDBOX, CK_SHAPE_STATE | CK_SHAPE_HOLDS,
      TELLS(CRI_ContainerEventResponse_container_id, SUBJECT),
      INSIDE(CRI_ContainerEventResponse_pod_sandbox_status, sandbox),
      OBJECT(CRI_ContainerEventResponse_containers_statuses, container_status));

/* ---- the table ------------------------------------------------------------------------------- */

static const char runtime[] = "RuntimeService/", image[] = "ImageService/";

#define NOTHING NULL
#define STREAM 1u /* server streaming */
#define READ   2u /* allowed on the unfiltered socket */
#define WHOLE  4u /* without a filter it lists all there are of its kind */

/* the shapes: of the request; of the answer, or of each message of a streamed answer */
#define METHOD(service, name, class, kind, flags, request, response) \
	{ \
		service, \
		#name, \
		sizeof(#name) - 1, \
		CK_CRI_##class, \
		kind, \
		!!((flags)&STREAM), \
		!!((flags)&READ), \
		!!((flags)&WHOLE), \
		request, \
		response \
	}

#define RUNTIME(...) METHOD(runtime, __VA_ARGS__)
#define IMAGE(...)   METHOD(image, __VA_ARGS__)

static const struct ck_cri_method methods[] = {
	RUNTIME(Version, PASS, 0, READ, NOTHING, NOTHING),
	RUNTIME(Status, PASS, 0, READ, NOTHING, NOTHING),
	RUNTIME(RuntimeConfig, PASS, 0, READ, NOTHING, NOTHING),
	RUNTIME(UpdateRuntimeConfig, PASS, 0, 0, NOTHING, NOTHING),
	RUNTIME(RunPodSandbox, CREATE, CK_SANDBOX, 0, NOTHING, NOTHING),
	RUNTIME(StopPodSandbox, STOP, CK_SANDBOX, 0, &on_sandbox, NOTHING),
	RUNTIME(RemovePodSandbox, REMOVE, CK_SANDBOX, 0, &on_sandbox, NOTHING),
	RUNTIME(PodSandboxStatus, STATUS, CK_SANDBOX, READ, &on_sandbox, &about_sandbox),
	RUNTIME(ListPodSandbox, FILTER, CK_SANDBOX, READ | WHOLE, &sandboxes, &list_sandbox),
	RUNTIME(StreamPodSandboxes, FILTER, CK_SANDBOX, READ | STREAM, &sandboxes, &list_sandbox),
	RUNTIME(PortForward, GUARD, CK_SANDBOX, 0, &on_sandbox, NOTHING),
	RUNTIME(UpdatePodSandboxResources, GUARD, CK_SANDBOX, 0, &on_sandbox, NOTHING),
	RUNTIME(CheckpointPod, GUARD, CK_SANDBOX, 0, &checkpoint_pod, NOTHING),
	RUNTIME(RestorePod, PASS, 0, 0, NOTHING, NOTHING), /* what it makes is found in lists */
	RUNTIME(CreateContainer, CREATE, CK_CONTAINER, 0, &create_container, NOTHING),
	RUNTIME(StartContainer, START, CK_CONTAINER, 0, &on_container, NOTHING),
	RUNTIME(StopContainer, STOP, CK_CONTAINER, 0, &on_container, NOTHING),
	RUNTIME(RemoveContainer, REMOVE, CK_CONTAINER, 0, &on_container, NOTHING),
	RUNTIME(ContainerStatus, STATUS, CK_CONTAINER, READ, &on_container, &about_container),
	RUNTIME(ListContainers, FILTER, CK_CONTAINER, READ | WHOLE, &containers, &list_container),
	RUNTIME(StreamContainers, FILTER, CK_CONTAINER, READ | STREAM, &containers,
		&list_container),
	RUNTIME(UpdateContainerResources, GUARD, CK_CONTAINER, 0, &on_container, NOTHING),
	RUNTIME(ReopenContainerLog, GUARD, CK_CONTAINER, 0, &on_container, NOTHING),
	RUNTIME(ExecSync, GUARD, CK_CONTAINER, 0, &on_container, NOTHING),
	RUNTIME(Exec, GUARD, CK_CONTAINER, 0, &on_container, NOTHING),
	RUNTIME(Attach, GUARD, CK_CONTAINER, 0, &on_container, NOTHING),
	RUNTIME(CheckpointContainer, GUARD, CK_CONTAINER, 0, &on_container, NOTHING),
	RUNTIME(PodSandboxStats, STATUS, CK_SANDBOX, READ, &on_sandbox, &about_sandbox_stats),
	RUNTIME(ListPodSandboxStats, FILTER, CK_SANDBOX, READ, &sandboxes, &list_sandbox_stats),
	RUNTIME(StreamPodSandboxStats, FILTER, CK_SANDBOX, READ | STREAM, &sandboxes,
		&list_sandbox_stats),
	RUNTIME(ContainerStats, STATUS, CK_CONTAINER, READ, &on_container, &about_container_stats),
	RUNTIME(ListContainerStats, FILTER, CK_CONTAINER, READ, &containers_stats,
		&list_container_stats),
	RUNTIME(StreamContainerStats, FILTER, CK_CONTAINER, READ | STREAM, &containers_stats,
		&list_container_stats),
	RUNTIME(ListMetricDescriptors, PASS, 0, READ, NOTHING, NOTHING),
	RUNTIME(ListPodSandboxMetrics, FILTER, CK_SANDBOX, READ, NOTHING, &list_sandbox_metrics),
	RUNTIME(StreamPodSandboxMetrics, FILTER, CK_SANDBOX, READ | STREAM, NOTHING,
		&list_sandbox_metrics),
	RUNTIME(GetContainerEvents, EVENTS, 0, READ | STREAM, NOTHING, &event),
	IMAGE(ListImages, PASS, 0, READ, NOTHING, NOTHING),
	IMAGE(StreamImages, PASS, 0, READ | STREAM, NOTHING, NOTHING),
	IMAGE(ImageStatus, PASS, 0, READ, NOTHING, NOTHING),
	IMAGE(ImageFsInfo, PASS, 0, READ, NOTHING, NOTHING),
	IMAGE(PullImage, PASS, 0, 0, NOTHING, NOTHING),
	IMAGE(RemoveImage, PASS, 0, 0, NOTHING, NOTHING),
};

static bool skip(const char **path, size_t *len, const char *what)
{
	size_t n = strlen(what);
	if (*len < n || memcmp(*path, what, n))
		return false;
	*path += n;
	*len -= n;
	return true;
}

const struct ck_cri_method *ck_cri_method_find(const char *path, size_t len)
{
	if (!skip(&path, &len, "/runtime.v1.") && !skip(&path, &len, "/runtime.v1alpha2."))
		return NULL;
	const char *service = skip(&path, &len, runtime) ? runtime
			      : skip(&path, &len, image) ? image
							 : NULL;
	for (size_t i = 0; i < CK_COUNT(methods); i++)
		if (methods[i].rpc_len == len && methods[i].service == service &&
		    !memcmp(methods[i].rpc, path, len))
			return &methods[i];
	return NULL;
}

const struct ck_cri_method *ck_cri_method_named(const char *rpc)
{
	for (size_t i = 0; i < CK_COUNT(methods); i++)
		if (!strcmp(methods[i].rpc, rpc))
			return &methods[i];
	return NULL;
}

const struct ck_cri_method *ck_cri_method_at(size_t i)
{
	return i < CK_COUNT(methods) ? &methods[i] : NULL;
}
