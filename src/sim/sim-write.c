/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CRI's messages about objects. Metadata, labels, annotations and mounts are copied from the config
 * as bytes, so they come back as they were sent, also with fields that this file does not know. The
 * kubelet requires that created_at is not 0, that a sandbox has a network, and that a container has
 * an image and an image_ref.
 */
#include <stdio.h>

#include "src/base/limits.h"
#include "src/sim/sim-int.h"

#define MIB (UINT64_C(1) << 20)

struct move { /* a field of the config, and its number in the answer */
	uint32_t from, to;
};
#define MOVE(from, to, field) \
	{ \
		CRI_##from##_##field, CRI_##to##_##field \
	}
#define MOVES(from, to) \
	MOVE(from, to, metadata), MOVE(from, to, labels), MOVE(from, to, annotations)

static void put_fields(struct ck_writer *out, const struct ck_bytes *config,
		       const struct move *moves, size_t n)
{
	struct ck_wire wire = ck_wire_begin(config->p, config->len);
	struct ck_wire_field field;
	while (ck_wire_next(&wire, &field, NULL) > 0) { /* well-formed: it was read when it came */
		for (size_t i = 0; i < n; i++) {
			if (moves[i].from != field.number)
				continue;
			if (field.type == CK_WIRE_BYTES)
				ck_writer_bytes(out, moves[i].to, field.data, field.len);
			else if (field.type == CK_WIRE_VARINT)
				ck_writer_number(out, moves[i].to, field.value);
		}
	}
}

/* ---- looking into a config ------------------------------------------------------------------- */

char *ck_sim_config_text(const struct ck_bytes *config, uint32_t outer, uint32_t number)
{
	struct ck_wire wire = ck_wire_begin(config->p, config->len);
	struct ck_wire_field field;
	bool found = !outer || ck_cri_last(wire, outer, &field, NULL) > 0;
	if (outer && found)
		wire = ck_wire_inside(&wire, &field);
	found = found && ck_cri_last(wire, number, &field, NULL) > 0;
	return found ? ck_strndup((const char *)field.data, field.len) : ck_strdup("");
}

/* the NamespaceOption of a sandbox's config; false: it has none */
static bool namespace_options(const struct ck_bytes *config, struct ck_wire_field *ret_field)
{
	static const uint32_t way[] = {
		CRI_PodSandboxConfig_linux,
		CRI_LinuxPodSandboxConfig_security_context,
		CRI_LinuxSandboxSecurityContext_namespace_options,
	};
	struct ck_wire wire = ck_wire_begin(config->p, config->len);
	for (size_t i = 0; i < CK_COUNT(way); i++) {
		if (ck_cri_last(wire, way[i], ret_field, NULL) <= 0)
			return false;
		wire = ck_wire_inside(&wire, ret_field);
	}
	return true;
}

/* ---- sandboxes ------------------------------------------------------------------------------- */

void ck_sim_put_sandbox(struct ck_writer *out, const struct ck_sim_object *sandbox)
{
	static const struct move moves[] = { MOVES(PodSandboxConfig, PodSandbox) };
	ck_writer_text(out, CRI_PodSandbox_id, sandbox->id);
	put_fields(out, &sandbox->config, moves, CK_COUNT(moves));
	ck_writer_number(out, CRI_PodSandbox_state, sandbox->state);
	ck_writer_number(out, CRI_PodSandbox_created_at, sandbox->created_at);
	ck_writer_text(out, CRI_PodSandbox_runtime_handler, sandbox->handler);
}

bool ck_sim_in_host_network(const struct ck_sim_object *sandbox)
{
	struct ck_wire_field field;
	struct ck_fields options;
	return namespace_options(&sandbox->config, &field) &&
	       ck_fields_read(ck_wire_begin(field.data, field.len), &options, NULL) == 0 &&
	       ck_fields_number(&options, CRI_NamespaceOption_network) == CRI_NamespaceMode_NODE;
}

static void put_network(struct ck_writer *out, const struct ck_sim_object *sandbox)
{
	struct ck_wire_field options = { .data = NULL };
	char ip[32];
	bool known = namespace_options(&sandbox->config, &options);
	snprintf(ip, sizeof(ip), "10.%u.%u.%u", 64 + (unsigned)(sandbox->number >> 16 & 63),
		 (unsigned)(sandbox->number >> 8 & 255), (unsigned)(sandbox->number & 255));
	size_t network = ck_writer_open(out, CRI_PodSandboxStatus_network);
	if (!ck_sim_in_host_network(sandbox) && sandbox->state == CK_SIM_READY)
		ck_writer_text(out, CRI_PodSandboxNetworkStatus_ip, ip);
	ck_writer_close(out, network);
	size_t linux_status = ck_writer_open(out, CRI_PodSandboxStatus_linux),
	       namespaces = ck_writer_open(out, CRI_LinuxPodSandboxStatus_namespaces);
	ck_writer_bytes(out, CRI_Namespace_options, options.data, known ? options.len : 0);
	ck_writer_close(out, namespaces);
	ck_writer_close(out, linux_status);
}

void ck_sim_put_sandbox_status(struct ck_writer *out, const struct ck_sim_object *sandbox)
{
	static const struct move moves[] = { MOVES(PodSandboxConfig, PodSandboxStatus) };
	ck_writer_text(out, CRI_PodSandboxStatus_id, sandbox->id);
	put_fields(out, &sandbox->config, moves, CK_COUNT(moves));
	ck_writer_number(out, CRI_PodSandboxStatus_state, sandbox->state);
	ck_writer_number(out, CRI_PodSandboxStatus_created_at, sandbox->created_at);
	put_network(out, sandbox);
	ck_writer_text(out, CRI_PodSandboxStatus_runtime_handler, sandbox->handler);
}

void ck_sim_put_containers_of(struct ck_writer *out, uint32_t field,
			      const struct ck_sim_object *sandbox,
			      void (*put)(struct ck_writer *out,
					  const struct ck_sim_object *container))
{
	for (struct ck_sim_object *c = sandbox->sim->list[CK_CONTAINER]; c; c = c->next) {
		if (strcmp(c->sandbox_id, sandbox->id) != 0)
			continue;
		size_t opened = ck_writer_open(out, field);
		put(out, c);
		ck_writer_close(out, opened);
	}
}

/* ---- containers ------------------------------------------------------------------------------ */

static void put_image_id(struct ck_writer *out, uint32_t ref, uint32_t id,
			 const struct ck_sim_object *container)
{
	char digest[CK_SIM_IMAGE_ID];
	CK_AUTO_FREE char *image = ck_sim_config_text(&container->config, CRI_ContainerConfig_image,
						      CRI_ImageSpec_image);
	if (!image || ck_sim_image_id(image, digest) < 0) {
		out->r = -CK_ENOMEM;
		return;
	}
	ck_writer_text(out, ref, digest);
	ck_writer_text(out, id, digest);
}

void ck_sim_put_container(struct ck_writer *out, const struct ck_sim_object *container)
{
	static const struct move moves[] = {
		MOVES(ContainerConfig, Container),
		MOVE(ContainerConfig, Container, image),
	};
	ck_writer_text(out, CRI_Container_id, container->id);
	ck_writer_text(out, CRI_Container_pod_sandbox_id, container->sandbox_id);
	put_fields(out, &container->config, moves, CK_COUNT(moves));
	put_image_id(out, CRI_Container_image_ref, CRI_Container_image_id, container);
	ck_writer_number(out, CRI_Container_state, container->state);
	ck_writer_number(out, CRI_Container_created_at, container->created_at);
}

/* where the kubelet reads logs; the directory is in the config of the sandbox */
static void put_log_path(struct ck_writer *out, const struct ck_sim_object *container)
{
	struct ck_sim_object *sandbox;
	CK_AUTO_FREE char *path = ck_sim_config_text(&container->config, 0,
						     CRI_ContainerConfig_log_path),
			  *directory = NULL;
	HASH_FIND(by_id, container->sim->by_id[CK_SANDBOX], container->sandbox_id, CK_SIM_ID,
		  sandbox);
	directory = sandbox ? ck_sim_config_text(&sandbox->config, 0,
						 CRI_PodSandboxConfig_log_directory)
			    : ck_strdup("");
	if (!path || !directory) {
		out->r = -CK_ENOMEM;
		return;
	}
	struct ck_bytes whole = { 0 };
	if (*path && *directory &&
	    (ck_bytes_add_text(&whole, directory) < 0 || ck_bytes_add_text(&whole, "/") < 0))
		out->r = -CK_ENOMEM;
	if (ck_bytes_add_text(&whole, path) < 0)
		out->r = -CK_ENOMEM;
	if (whole.len)
		ck_writer_bytes(out, CRI_ContainerStatus_log_path, whole.p, whole.len);
	ck_bytes_free(&whole);
}

void ck_sim_put_container_status(struct ck_writer *out, const struct ck_sim_object *container)
{
	static const struct move moves[] = {
		MOVES(ContainerConfig, ContainerStatus),
		MOVE(ContainerConfig, ContainerStatus, image),
		MOVE(ContainerConfig, ContainerStatus, mounts),
		MOVE(ContainerConfig, ContainerStatus, stop_signal),
	};
	ck_writer_text(out, CRI_ContainerStatus_id, container->id);
	put_fields(out, &container->config, moves, CK_COUNT(moves));
	ck_writer_number(out, CRI_ContainerStatus_state, container->state);
	ck_writer_number(out, CRI_ContainerStatus_created_at, container->created_at);
	ck_writer_number(out, CRI_ContainerStatus_started_at, container->started_at);
	if (container->state == CK_SIM_EXITED) {
		ck_writer_number(out, CRI_ContainerStatus_finished_at, container->finished_at);
		ck_writer_number(out, CRI_ContainerStatus_exit_code, container->exit_code);
		ck_writer_text(out, CRI_ContainerStatus_reason,
			       container->exit_code ? "Error" : "Completed");
	}
	put_image_id(out, CRI_ContainerStatus_image_ref, CRI_ContainerStatus_image_id, container);
	put_log_path(out, container);
	if (container->uses[CK_SIM_RESOURCES].len) {
		size_t resources = ck_writer_open(out, CRI_ContainerStatus_resources);
		ck_writer_bytes(out, CRI_ContainerResources_linux,
				container->uses[CK_SIM_RESOURCES].p,
				container->uses[CK_SIM_RESOURCES].len);
		ck_writer_close(out, resources);
	}
}

/* ---- statistics: made up, but they never fall ------------------------------------------------ */

static uint64_t cpu_time(const struct ck_sim_object *container)
{
	uint64_t until =
		container->state == CK_SIM_RUNNING ? ck_sim_wall() : container->finished_at;
	return container->started_at && until > container->started_at
		       ? (until - container->started_at) / 1000
		       : 0;
}

static void put_cpu(struct ck_writer *out, uint32_t field, uint64_t now, uint64_t used)
{
	size_t cpu = ck_writer_open(out, field);
	ck_writer_number(out, CRI_CpuUsage_timestamp, now);
	ck_writer_value(out, CRI_CpuUsage_usage_core_nano_seconds, used);
	/* a thousandth of a core */
	ck_writer_value(out, CRI_CpuUsage_usage_nano_cores, CK_NS_PER_MS);
	ck_writer_close(out, cpu);
}

static void put_memory(struct ck_writer *out, uint32_t field, uint64_t now, uint64_t bytes)
{
	size_t memory = ck_writer_open(out, field);
	ck_writer_number(out, CRI_MemoryUsage_timestamp, now);
	ck_writer_value(out, CRI_MemoryUsage_working_set_bytes, bytes);
	ck_writer_value(out, CRI_MemoryUsage_usage_bytes, bytes);
	ck_writer_value(out, CRI_MemoryUsage_rss_bytes, bytes);
	ck_writer_close(out, memory);
}

void ck_sim_put_filesystem(struct ck_writer *out, uint32_t field, uint64_t used)
{
	size_t filesystem = ck_writer_open(out, field);
	ck_writer_number(out, CRI_FilesystemUsage_timestamp, ck_sim_wall());
	size_t id = ck_writer_open(out, CRI_FilesystemUsage_fs_id);
	ck_writer_text(out, CRI_FilesystemIdentifier_mountpoint, "/var/lib/crikeep-sim");
	ck_writer_close(out, id);
	ck_writer_value(out, CRI_FilesystemUsage_used_bytes, used);
	ck_writer_value(out, CRI_FilesystemUsage_inodes_used, used / 4096);
	ck_writer_close(out, filesystem);
}

void ck_sim_put_container_stats(struct ck_writer *out, const struct ck_sim_object *container)
{
	static const struct move moves[] = { MOVES(ContainerConfig, ContainerAttributes) };
	uint64_t now = ck_sim_wall();
	size_t attributes = ck_writer_open(out, CRI_ContainerStats_attributes);
	ck_writer_text(out, CRI_ContainerAttributes_id, container->id);
	put_fields(out, &container->config, moves, CK_COUNT(moves));
	ck_writer_close(out, attributes);
	put_cpu(out, CRI_ContainerStats_cpu, now, cpu_time(container));
	put_memory(out, CRI_ContainerStats_memory, now,
		   container->state == CK_SIM_RUNNING ? 4 * MIB : 0);
	ck_sim_put_filesystem(out, CRI_ContainerStats_writable_layer, 8192);
}

static void put_interface(struct ck_writer *out, uint32_t field)
{
	size_t interface = ck_writer_open(out, field);
	ck_writer_text(out, CRI_NetworkInterfaceUsage_name, "eth0");
	ck_writer_value(out, CRI_NetworkInterfaceUsage_rx_bytes, 1024);
	ck_writer_value(out, CRI_NetworkInterfaceUsage_rx_errors, 0);
	ck_writer_value(out, CRI_NetworkInterfaceUsage_tx_bytes, 1024);
	ck_writer_value(out, CRI_NetworkInterfaceUsage_tx_errors, 0);
	ck_writer_close(out, interface);
}

void ck_sim_put_sandbox_stats(struct ck_writer *out, const struct ck_sim_object *sandbox)
{
	static const struct move moves[] = { MOVES(PodSandboxConfig, PodSandboxAttributes) };
	uint64_t now = ck_sim_wall(), used = 0, running = 0;
	for (struct ck_sim_object *c = sandbox->sim->list[CK_CONTAINER]; c; c = c->next) {
		if (strcmp(c->sandbox_id, sandbox->id) != 0)
			continue;
		used += cpu_time(c);
		running += c->state == CK_SIM_RUNNING;
	}
	size_t attributes = ck_writer_open(out, CRI_PodSandboxStats_attributes);
	ck_writer_text(out, CRI_PodSandboxAttributes_id, sandbox->id);
	put_fields(out, &sandbox->config, moves, CK_COUNT(moves));
	ck_writer_close(out, attributes);
	size_t stats = ck_writer_open(out, CRI_PodSandboxStats_linux);
	put_cpu(out, CRI_LinuxPodSandboxStats_cpu, now, used);
	put_memory(out, CRI_LinuxPodSandboxStats_memory, now, MIB + running * 4 * MIB);
	size_t network = ck_writer_open(out, CRI_LinuxPodSandboxStats_network);
	ck_writer_number(out, CRI_NetworkUsage_timestamp, now);
	put_interface(out, CRI_NetworkUsage_default_interface);
	ck_writer_close(out, network);
	size_t processes = ck_writer_open(out, CRI_LinuxPodSandboxStats_process);
	ck_writer_number(out, CRI_ProcessUsage_timestamp, now);
	ck_writer_value(out, CRI_ProcessUsage_process_count, 1 + running);
	ck_writer_close(out, processes);
	ck_sim_put_containers_of(out, CRI_LinuxPodSandboxStats_containers, sandbox,
				 ck_sim_put_container_stats);
	ck_writer_close(out, stats);
}
