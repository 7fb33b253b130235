/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_CRI_NUMBERS_H
#define CK_CRI_NUMBERS_H
/*
 * The numbers of CRI's fields and enumerations, under the names of cri-api's api.proto: the field
 * `id` of PodSandbox is CRI_PodSandbox_id. What no code here reads or writes is left out.
 * runtime.v1 and runtime.v1alpha2 have the same numbers. tests/unit/test-cri-calls.c compares each
 * row with cache/request/cri.proto and with the recorded messages of cri-api.
 */
/* message or enumeration, field or value, number */
/* clang-format off */
#define CK_CRI_NUMBERS(X) \
	X(Mount, container_path, 1) X(Mount, host_path, 2) X(Mount, readonly, 3) \
	X(Mount, propagation, 5) \
	X(NamespaceOption, target_id, 4) \
	X(Int64Value, value, 1) \
	X(SecurityProfile, profile_type, 1) X(SecurityProfile, localhost_ref, 2) \
	X(PodSandboxMetadata, name, 1) X(PodSandboxMetadata, uid, 2) \
	X(PodSandboxMetadata, namespace, 3) X(PodSandboxMetadata, attempt, 4) \
	X(RunPodSandboxResponse, pod_sandbox_id, 1) \
	X(PodSandboxStatusRequest, pod_sandbox_id, 1) X(PodSandboxStatusRequest, verbose, 2) \
	X(PodIP, ip, 1) \
	X(PodSandboxNetworkStatus, ip, 1) X(PodSandboxNetworkStatus, additional_ips, 2) \
	X(PodSandboxState, SANDBOX_READY, 0) X(PodSandboxState, SANDBOX_NOTREADY, 1) \
	X(PodSandboxStatus, id, 1) X(PodSandboxStatus, metadata, 2) \
	X(PodSandboxStatus, network, 5) X(PodSandboxStatus, labels, 7) \
	X(PodSandboxStatus, annotations, 8) X(PodSandboxStatus, runtime_handler, 9) \
	X(PodSandboxStatusResponse, status, 1) X(PodSandboxStatusResponse, info, 2) \
	X(PodSandboxStatusResponse, containers_statuses, 3) \
	X(ListPodSandboxRequest, filter, 1) \
	X(PodSandbox, id, 1) X(PodSandbox, metadata, 2) X(PodSandbox, state, 3) \
	X(PodSandbox, created_at, 4) \
	X(ListPodSandboxResponse, items, 1) \
	X(PodSandboxAttributes, id, 1) X(PodSandboxAttributes, metadata, 2) \
	X(PodSandboxStats, attributes, 1) X(PodSandboxStats, linux, 2) \
	X(PodSandboxStats, windows, 3) \
	X(LinuxPodSandboxStats, containers, 5) \
	X(ImageSpec, image, 1) X(ImageSpec, user_specified_image, 18) \
	X(KeyValue, key, 1) X(KeyValue, value, 2) \
	X(LinuxContainerResources, cpu_period, 1) X(LinuxContainerResources, cpu_quota, 2) \
	X(LinuxContainerResources, cpu_shares, 3) \
	X(LinuxContainerResources, memory_limit_in_bytes, 4) \
	X(LinuxContainerResources, oom_score_adj, 5) X(LinuxContainerResources, cpuset_cpus, 6) \
	X(LinuxContainerResources, cpuset_mems, 7) X(LinuxContainerResources, hugepage_limits, 8) \
	X(LinuxContainerResources, unified, 9) \
	X(LinuxContainerResources, memory_swap_limit_in_bytes, 10) \
	X(LinuxContainerSecurityContext, namespace_options, 3) \
	X(LinuxContainerSecurityContext, run_as_user, 5) \
	X(LinuxContainerSecurityContext, run_as_group, 12) \
	X(LinuxContainerSecurityContext, supplemental_groups, 8) \
	X(LinuxContainerSecurityContext, seccomp, 15) \
	X(LinuxContainerConfig, resources, 1) X(LinuxContainerConfig, security_context, 2) \
	X(LinuxContainerUser, uid, 1) X(LinuxContainerUser, gid, 2) \
	X(LinuxContainerUser, supplemental_groups, 3) \
	X(ContainerMetadata, name, 1) X(ContainerMetadata, attempt, 2) \
	X(Device, container_path, 1) \
	X(CDIDevice, name, 1) \
	X(ContainerConfig, metadata, 1) X(ContainerConfig, image, 2) \
	X(ContainerConfig, command, 3) X(ContainerConfig, args, 4) X(ContainerConfig, envs, 6) \
	X(ContainerConfig, mounts, 7) X(ContainerConfig, devices, 8) \
	X(ContainerConfig, labels, 9) X(ContainerConfig, annotations, 10) \
	X(ContainerConfig, linux, 15) X(ContainerConfig, CDI_devices, 17) \
	X(CreateContainerRequest, pod_sandbox_id, 1) X(CreateContainerRequest, config, 2) \
	X(CreateContainerResponse, container_id, 1) \
	X(StopContainerRequest, timeout, 2) \
	X(ContainerState, CONTAINER_CREATED, 0) X(ContainerState, CONTAINER_RUNNING, 1) \
	X(ContainerState, CONTAINER_EXITED, 2) \
	X(ContainerStateValue, state, 1) \
	X(ContainerFilter, id, 1) X(ContainerFilter, state, 2) \
	X(ContainerFilter, pod_sandbox_id, 3) \
	X(ListContainersRequest, filter, 1) \
	X(Container, id, 1) X(Container, pod_sandbox_id, 2) X(Container, metadata, 3) \
	X(Container, state, 6) X(Container, created_at, 7) X(Container, labels, 8) \
	X(ContainerStatusRequest, container_id, 1) \
	X(ContainerStatus, id, 1) X(ContainerStatus, metadata, 2) X(ContainerStatus, state, 3) \
	X(ContainerStatus, created_at, 4) X(ContainerStatus, started_at, 5) \
	X(ContainerStatus, finished_at, 6) X(ContainerStatus, exit_code, 7) \
	X(ContainerStatus, image, 8) X(ContainerStatus, image_ref, 9) \
	X(ContainerStatus, reason, 10) X(ContainerStatus, message, 11) \
	X(ContainerStatus, labels, 12) X(ContainerStatus, annotations, 13) \
	X(ContainerStatus, mounts, 14) X(ContainerStatus, resources, 16) \
	X(ContainerStatus, image_id, 17) X(ContainerStatus, user, 18) \
	X(ContainerStatusResponse, status, 1) \
	X(ContainerResources, linux, 1) \
	X(ContainerUser, linux, 1) \
	X(UpdateContainerResourcesRequest, linux, 2) \
	X(Image, id, 1) \
	X(ImageStatusRequest, image, 1) \
	X(ImageStatusResponse, image, 1) \
	X(ListContainerStatsRequest, filter, 1) \
	X(ContainerStatsFilter, id, 1) X(ContainerStatsFilter, pod_sandbox_id, 2) \
	X(ContainerAttributes, id, 1) X(ContainerAttributes, metadata, 2) \
	X(ContainerAttributes, labels, 3) \
	X(ContainerStats, attributes, 1) \
	X(ContainerEventResponse, container_id, 1) \
	X(ContainerEventResponse, container_event_type, 2) \
	X(ContainerEventResponse, created_at, 3) X(ContainerEventResponse, pod_sandbox_status, 4) \
	X(ContainerEventResponse, containers_statuses, 5) \
	X(ContainerEventType, CONTAINER_DELETED_EVENT, 3) \
	X(PodSandboxMetrics, pod_sandbox_id, 1) X(PodSandboxMetrics, container_metrics, 3) \
	X(ContainerMetrics, container_id, 1) \
	X(UpdatePodSandboxResourcesRequest, overhead, 2) \
	X(UpdatePodSandboxResourcesRequest, resources, 3)
/* clang-format on */

enum {
#define CRI_NUMBER(message, field, number) CRI_##message##_##field = (number),
	CK_CRI_NUMBERS(CRI_NUMBER)
#undef CRI_NUMBER
};
#endif
