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
	X(VersionResponse, version, 1) X(VersionResponse, runtime_name, 2) \
	X(VersionResponse, runtime_version, 3) X(VersionResponse, runtime_api_version, 4) \
	X(DNSConfig, servers, 1) X(DNSConfig, searches, 2) X(DNSConfig, options, 3) \
	X(Mount, container_path, 1) X(Mount, host_path, 2) X(Mount, readonly, 3) \
	X(Mount, propagation, 5) X(NamespaceMode, POD, 0) X(NamespaceMode, CONTAINER, 1) \
	X(NamespaceMode, NODE, 2) X(NamespaceOption, network, 1) X(NamespaceOption, pid, 2) \
	X(NamespaceOption, target_id, 4) X(Int64Value, value, 1) \
	X(LinuxSandboxSecurityContext, namespace_options, 1) X(SecurityProfile, profile_type, 1) \
	X(SecurityProfile, localhost_ref, 2) X(LinuxPodSandboxConfig, cgroup_parent, 1) \
	X(LinuxPodSandboxConfig, security_context, 2) X(LinuxPodSandboxConfig, overhead, 4) \
	X(LinuxPodSandboxConfig, resources, 5) X(PodSandboxMetadata, name, 1) \
	X(PodSandboxMetadata, uid, 2) X(PodSandboxMetadata, namespace, 3) \
	X(PodSandboxMetadata, attempt, 4) X(PodSandboxConfig, metadata, 1) \
	X(PodSandboxConfig, hostname, 2) X(PodSandboxConfig, log_directory, 3) \
	X(PodSandboxConfig, dns_config, 4) X(PodSandboxConfig, labels, 6) \
	X(PodSandboxConfig, annotations, 7) X(PodSandboxConfig, linux, 8) \
	X(RunPodSandboxRequest, config, 1) X(RunPodSandboxRequest, runtime_handler, 2) \
	X(RunPodSandboxResponse, pod_sandbox_id, 1) X(PodSandboxStatusRequest, pod_sandbox_id, 1) \
	X(PodSandboxStatusRequest, verbose, 2) X(PodIP, ip, 1) X(PodSandboxNetworkStatus, ip, 1) \
	X(PodSandboxNetworkStatus, additional_ips, 2) X(Namespace, options, 2) \
	X(LinuxPodSandboxStatus, namespaces, 1) X(PodSandboxState, SANDBOX_READY, 0) \
	X(PodSandboxState, SANDBOX_NOTREADY, 1) X(PodSandboxStatus, id, 1) \
	X(PodSandboxStatus, metadata, 2) X(PodSandboxStatus, state, 3) \
	X(PodSandboxStatus, created_at, 4) X(PodSandboxStatus, network, 5) \
	X(PodSandboxStatus, linux, 6) X(PodSandboxStatus, labels, 7) \
	X(PodSandboxStatus, annotations, 8) X(PodSandboxStatus, runtime_handler, 9) \
	X(PodSandboxStatusResponse, status, 1) X(PodSandboxStatusResponse, info, 2) \
	X(PodSandboxStatusResponse, containers_statuses, 3) \
	X(PodSandboxStatusResponse, timestamp, 4) X(PodSandboxFilter, id, 1) \
	X(PodSandboxFilter, state, 2) X(PodSandboxFilter, label_selector, 3) \
	X(ListPodSandboxRequest, filter, 1) X(PodSandbox, id, 1) X(PodSandbox, metadata, 2) \
	X(PodSandbox, state, 3) X(PodSandbox, created_at, 4) X(PodSandbox, labels, 5) \
	X(PodSandbox, annotations, 6) X(PodSandbox, runtime_handler, 7) \
	X(ListPodSandboxResponse, items, 1) X(PodSandboxStatsFilter, id, 1) \
	X(PodSandboxStatsFilter, label_selector, 2) X(PodSandboxAttributes, id, 1) \
	X(PodSandboxAttributes, metadata, 2) X(PodSandboxAttributes, labels, 3) \
	X(PodSandboxAttributes, annotations, 4) X(PodSandboxStats, attributes, 1) \
	X(PodSandboxStats, linux, 2) X(PodSandboxStats, windows, 3) \
	X(LinuxPodSandboxStats, cpu, 1) X(LinuxPodSandboxStats, memory, 2) \
	X(LinuxPodSandboxStats, network, 3) X(LinuxPodSandboxStats, process, 4) \
	X(LinuxPodSandboxStats, containers, 5) X(NetworkUsage, timestamp, 1) \
	X(NetworkUsage, default_interface, 2) X(NetworkInterfaceUsage, name, 1) \
	X(NetworkInterfaceUsage, rx_bytes, 2) X(NetworkInterfaceUsage, rx_errors, 3) \
	X(NetworkInterfaceUsage, tx_bytes, 4) X(NetworkInterfaceUsage, tx_errors, 5) \
	X(ProcessUsage, timestamp, 1) X(ProcessUsage, process_count, 2) X(ImageSpec, image, 1) \
	X(ImageSpec, user_specified_image, 18) X(KeyValue, key, 1) X(KeyValue, value, 2) \
	X(LinuxContainerResources, cpu_period, 1) X(LinuxContainerResources, cpu_quota, 2) \
	X(LinuxContainerResources, cpu_shares, 3) \
	X(LinuxContainerResources, memory_limit_in_bytes, 4) \
	X(LinuxContainerResources, oom_score_adj, 5) X(LinuxContainerResources, cpuset_cpus, 6) \
	X(LinuxContainerResources, cpuset_mems, 7) X(LinuxContainerResources, hugepage_limits, 8) \
	X(LinuxContainerResources, unified, 9) \
	X(LinuxContainerResources, memory_swap_limit_in_bytes, 10) X(HugepageLimit, page_size, 1) \
	X(HugepageLimit, limit, 2) X(LinuxContainerSecurityContext, namespace_options, 3) \
	X(LinuxContainerSecurityContext, run_as_user, 5) \
	X(LinuxContainerSecurityContext, run_as_group, 12) \
	X(LinuxContainerSecurityContext, supplemental_groups, 8) \
	X(LinuxContainerSecurityContext, seccomp, 15) X(LinuxContainerConfig, resources, 1) \
	X(LinuxContainerConfig, security_context, 2) X(LinuxContainerUser, uid, 1) \
	X(LinuxContainerUser, gid, 2) X(LinuxContainerUser, supplemental_groups, 3) \
	X(ContainerMetadata, name, 1) X(ContainerMetadata, attempt, 2) \
	X(Device, container_path, 1) X(CDIDevice, name, 1) X(ContainerConfig, metadata, 1) \
	X(ContainerConfig, image, 2) X(ContainerConfig, command, 3) X(ContainerConfig, args, 4) \
	X(ContainerConfig, envs, 6) X(ContainerConfig, mounts, 7) X(ContainerConfig, devices, 8) \
	X(ContainerConfig, labels, 9) X(ContainerConfig, annotations, 10) \
	X(ContainerConfig, log_path, 11) X(ContainerConfig, linux, 15) \
	X(ContainerConfig, CDI_devices, 17) X(ContainerConfig, stop_signal, 18) \
	X(CreateContainerRequest, pod_sandbox_id, 1) X(CreateContainerRequest, config, 2) \
	X(CreateContainerRequest, sandbox_config, 3) X(CreateContainerResponse, container_id, 1) \
	X(CheckpointPodRequest, pod_sandbox_id, 1) X(CheckpointPodRequest, container_ids, 3) \
	X(StopContainerRequest, timeout, 2) X(ContainerState, CONTAINER_CREATED, 0) \
	X(ContainerState, CONTAINER_RUNNING, 1) X(ContainerState, CONTAINER_EXITED, 2) \
	X(ContainerStateValue, state, 1) X(ContainerFilter, id, 1) X(ContainerFilter, state, 2) \
	X(ContainerFilter, pod_sandbox_id, 3) X(ContainerFilter, label_selector, 4) \
	X(ListContainersRequest, filter, 1) X(Container, id, 1) X(Container, pod_sandbox_id, 2) \
	X(Container, metadata, 3) X(Container, image, 4) X(Container, image_ref, 5) \
	X(Container, state, 6) X(Container, created_at, 7) X(Container, labels, 8) \
	X(Container, annotations, 9) X(Container, image_id, 10) \
	X(ContainerStatusRequest, container_id, 1) X(ContainerStatusRequest, verbose, 2) \
	X(ContainerStatus, id, 1) X(ContainerStatus, metadata, 2) X(ContainerStatus, state, 3) \
	X(ContainerStatus, created_at, 4) X(ContainerStatus, started_at, 5) \
	X(ContainerStatus, finished_at, 6) X(ContainerStatus, exit_code, 7) \
	X(ContainerStatus, image, 8) X(ContainerStatus, image_ref, 9) \
	X(ContainerStatus, reason, 10) X(ContainerStatus, message, 11) \
	X(ContainerStatus, labels, 12) X(ContainerStatus, annotations, 13) \
	X(ContainerStatus, mounts, 14) X(ContainerStatus, log_path, 15) \
	X(ContainerStatus, resources, 16) X(ContainerStatus, image_id, 17) \
	X(ContainerStatus, user, 18) X(ContainerStatus, stop_signal, 19) \
	X(ContainerStatusResponse, status, 1) X(ContainerStatusResponse, info, 2) \
	X(ContainerResources, linux, 1) X(ContainerUser, linux, 1) \
	X(UpdateContainerResourcesRequest, linux, 2) X(ExecSyncResponse, stdout, 1) \
	X(ListImagesRequest, filter, 1) X(Image, id, 1) X(Image, repo_tags, 2) \
	X(Image, repo_digests, 3) X(Image, size, 4) X(Image, uid, 5) \
	X(ImageStatusRequest, image, 1) X(ImageStatusRequest, verbose, 2) \
	X(ImageStatusResponse, image, 1) X(ImageStatusResponse, info, 2) \
	X(PullImageResponse, image_ref, 1) X(RuntimeCondition, type, 1) \
	X(RuntimeCondition, status, 2) X(RuntimeStatus, conditions, 1) \
	X(StatusRequest, verbose, 1) X(StatusResponse, status, 1) X(StatusResponse, info, 2) \
	X(StatusResponse, runtime_handlers, 3) X(FilesystemIdentifier, mountpoint, 1) \
	X(FilesystemUsage, timestamp, 1) X(FilesystemUsage, fs_id, 2) \
	X(FilesystemUsage, used_bytes, 3) X(FilesystemUsage, inodes_used, 4) \
	X(ImageFsInfoResponse, image_filesystems, 1) \
	X(ImageFsInfoResponse, container_filesystems, 2) X(ListContainerStatsRequest, filter, 1) \
	X(ContainerStatsFilter, id, 1) X(ContainerStatsFilter, pod_sandbox_id, 2) \
	X(ContainerStatsFilter, label_selector, 3) X(ContainerAttributes, id, 1) \
	X(ContainerAttributes, metadata, 2) X(ContainerAttributes, labels, 3) \
	X(ContainerAttributes, annotations, 4) X(ContainerStats, attributes, 1) \
	X(ContainerStats, cpu, 2) X(ContainerStats, memory, 3) \
	X(ContainerStats, writable_layer, 4) X(CpuUsage, timestamp, 1) \
	X(CpuUsage, usage_core_nano_seconds, 2) X(CpuUsage, usage_nano_cores, 3) \
	X(MemoryUsage, timestamp, 1) X(MemoryUsage, working_set_bytes, 2) \
	X(MemoryUsage, usage_bytes, 4) X(MemoryUsage, rss_bytes, 5) \
	X(ContainerEventResponse, container_id, 1) \
	X(ContainerEventResponse, container_event_type, 2) \
	X(ContainerEventResponse, created_at, 3) X(ContainerEventResponse, pod_sandbox_status, 4) \
	X(ContainerEventResponse, containers_statuses, 5) \
	X(ContainerEventType, CONTAINER_CREATED_EVENT, 0) \
	X(ContainerEventType, CONTAINER_STARTED_EVENT, 1) \
	X(ContainerEventType, CONTAINER_STOPPED_EVENT, 2) \
	X(ContainerEventType, CONTAINER_DELETED_EVENT, 3) \
	X(ListMetricDescriptorsResponse, descriptors, 1) X(MetricDescriptor, name, 1) \
	X(MetricDescriptor, help, 2) X(MetricDescriptor, label_keys, 3) \
	X(PodSandboxMetrics, pod_sandbox_id, 1) X(PodSandboxMetrics, metrics, 2) \
	X(PodSandboxMetrics, container_metrics, 3) X(ContainerMetrics, container_id, 1) \
	X(ContainerMetrics, metrics, 2) X(Metric, name, 1) X(Metric, timestamp, 2) \
	X(Metric, metric_type, 3) X(Metric, label_values, 4) X(Metric, value, 5) \
	X(MetricType, GAUGE, 1) X(RuntimeConfigResponse, linux, 1) \
	X(LinuxRuntimeConfiguration, cgroup_driver, 1) X(CgroupDriver, CGROUPFS, 1) \
	X(UpdatePodSandboxResourcesRequest, overhead, 2) \
	X(UpdatePodSandboxResourcesRequest, resources, 3)
/* clang-format on */

enum {
#define CRI_NUMBER(message, field, number) CRI_##message##_##field = (number),
	CK_CRI_NUMBERS(CRI_NUMBER)
#undef CRI_NUMBER
};
#endif
