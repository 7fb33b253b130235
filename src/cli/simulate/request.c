/* SPDX-License-Identifier: Apache-2.0 */
/* See request.h. */
#include <stdio.h>

#include "src/base/mem.h"
#include "src/cli/simulate/request.h"
#include "src/cri/numbers.h"

struct pair {
	const char *key, *value;
};

/* Entries of a map, or KeyValue messages, which have the same fields. Go's maps are unordered, and
 * so is their encoding. */
static void shuffled(struct ck_writer *out, uint32_t field, struct pair *pairs, unsigned n,
		     const struct ck_simulation_call *call)
{
	for (unsigned i = n; i > 1; i--) {
		unsigned j = (unsigned)ck_simulation_chance_below(
			call->pod->sim, CK_CHANCE_REQUEST,
			(uint64_t)call->pod->number << 32 | call->serial, field << 8 | i, i);
		struct pair swapped = pairs[j];
		pairs[j] = pairs[i - 1];
		pairs[i - 1] = swapped;
	}
	for (unsigned i = 0; i < n; i++)
		ck_writer_pair(out, field, pairs[i].key, pairs[i].value);
}

static void mount(struct ck_writer *out, const char *container_path, const char *host_path)
{
	size_t mounted = ck_writer_open(out, CRI_ContainerConfig_mounts);
	ck_writer_text(out, CRI_Mount_container_path, container_path);
	ck_writer_text(out, CRI_Mount_host_path, host_path);
	ck_writer_close(out, mounted);
}

/* ---- the messages ---------------------------------------------------------------------------- */

static void pod_config(struct ck_writer *out, uint32_t field, const struct ck_simulation_call *call)
{
	const struct ck_simulation_pod *pod = call->pod;
	char path[160], seen[64];
	size_t config = ck_writer_open(out, field);
	size_t part = ck_writer_open(out, CRI_PodSandboxConfig_metadata);
	ck_writer_text(out, CRI_PodSandboxMetadata_name, pod->name);
	ck_writer_text(out, CRI_PodSandboxMetadata_uid, pod->uid);
	ck_writer_text(out, CRI_PodSandboxMetadata_namespace, "default");
	ck_writer_number(out, CRI_PodSandboxMetadata_attempt,
			 call->kind == CK_SANDBOX ? call->attempt : 0);
	ck_writer_close(out, part);
	ck_writer_text(out, CRI_PodSandboxConfig_hostname, pod->name);
	snprintf(path, sizeof(path), "/var/log/pods/default_%s_%s", pod->name, pod->uid);
	ck_writer_text(out, CRI_PodSandboxConfig_log_directory, path);
	part = ck_writer_open(out, CRI_PodSandboxConfig_dns_config);
	ck_writer_text(out, CRI_DNSConfig_servers, "10.96.0.10");
	ck_writer_text(out, CRI_DNSConfig_searches, "default.svc.cluster.local");
	ck_writer_text(out, CRI_DNSConfig_searches, "svc.cluster.local");
	ck_writer_text(out, CRI_DNSConfig_options, "ndots:5");
	ck_writer_close(out, part);
	struct pair labels[] = {
		{ "app", "web" },
		{ "pod-template-hash", "6d4b75cb6d" },
		{ "io.kubernetes.pod.name", pod->name },
		{ "io.kubernetes.pod.namespace", "default" },
		{ "io.kubernetes.pod.uid", pod->uid },
	};
	shuffled(out, CRI_PodSandboxConfig_labels, labels, CK_COUNT(labels), call);
	snprintf(seen, sizeof(seen), "2024-05-01T10:%02u:07.123456789Z",
		 pod->sim->kubelet_life % 60);
	struct pair annotations[] = {
		{ "kubernetes.io/config.seen", seen },
		{ "kubernetes.io/config.source", "api" },
		{ "prometheus.io/scrape", "true" },
	};
	shuffled(out, CRI_PodSandboxConfig_annotations, annotations, CK_COUNT(annotations), call);
	part = ck_writer_open(out, CRI_PodSandboxConfig_linux);
	snprintf(path, sizeof(path), "/kubepods/burstable/pod%s", pod->uid);
	ck_writer_text(out, CRI_LinuxPodSandboxConfig_cgroup_parent, path);
	ck_writer_close(out, part);
	ck_writer_close(out, config);
}

static void container_config(struct ck_writer *out, const struct ck_simulation_call *call)
{
	const struct ck_simulation_pod *pod = call->pod;
	char name[16], attempt[16], path[160];
	snprintf(name, sizeof(name), "c%u", call->container);
	snprintf(attempt, sizeof(attempt), "%u", call->attempt);
	size_t config = ck_writer_open(out, CRI_CreateContainerRequest_config);
	size_t part = ck_writer_open(out, CRI_ContainerConfig_metadata);
	ck_writer_text(out, CRI_ContainerMetadata_name, name);
	ck_writer_number(out, CRI_ContainerMetadata_attempt, call->attempt);
	ck_writer_close(out, part);
	part = ck_writer_open(out, CRI_ContainerConfig_image);
	ck_writer_text(out, CRI_ImageSpec_image,
		       "sha256:4f67c83422ec747235357c04556616234e66fc3fa39cb4f40b2d4441ddd8f100");
	ck_writer_text(out, CRI_ImageSpec_user_specified_image, "registry.example/web:1.4");
	ck_writer_close(out, part);
	ck_writer_text(out, CRI_ContainerConfig_args, "--listen=:8080");
	struct pair envs[] = {
		{ "KUBERNETES_SERVICE_HOST", "10.96.0.1" },
		{ "KUBERNETES_SERVICE_PORT", "443" },
		{ "KUBERNETES_PORT", "tcp://10.96.0.1:443" },
		{ "WEB_SERVICE_HOST", "10.96.12.7" },
		{ "WEB_SERVICE_PORT", "8080" },
		{ "DB_HOST", "db.default.svc" },
		{ "DB_PASSWORD", "not-a-real-one" },
		{ "LOG_LEVEL", "info" },
		{ "POD_NAME", pod->name },
	};
	shuffled(out, CRI_ContainerConfig_envs, envs, CK_COUNT(envs), call);
	snprintf(path, sizeof(path),
		 "/var/lib/kubelet/pods/%s/volumes/kubernetes.io~empty-dir/work", pod->uid);
	mount(out, "/work", path);
	snprintf(path, sizeof(path), "/var/lib/kubelet/pods/%s/etc-hosts", pod->uid);
	mount(out, "/etc/hosts", path);
	snprintf(path, sizeof(path), "/var/lib/kubelet/pods/%s/containers/%s/%08x", pod->uid, name,
		 (unsigned)ck_simulation_chance(pod->sim, CK_CHANCE_REQUEST,
						(uint64_t)pod->number << 32 | call->serial, 0));
	mount(out, "/dev/termination-log", path);
	struct pair labels[] = {
		{ "io.kubernetes.container.name", name },
		{ "io.kubernetes.pod.name", pod->name },
		{ "io.kubernetes.pod.namespace", "default" },
		{ "io.kubernetes.pod.uid", pod->uid },
	};
	shuffled(out, CRI_ContainerConfig_labels, labels, CK_COUNT(labels), call);
	struct pair annotations[] = {
		{ "io.kubernetes.container.hash", "5d2f1a3b" },
		{ "io.kubernetes.container.restartCount", attempt },
		{ "io.kubernetes.container.terminationMessagePath", "/dev/termination-log" },
		{ "io.kubernetes.container.terminationMessagePolicy", "File" },
		{ "io.kubernetes.pod.terminationGracePeriod", "30" },
	};
	shuffled(out, CRI_ContainerConfig_annotations, annotations, CK_COUNT(annotations), call);
	snprintf(path, sizeof(path), "%s/%s.log", name, attempt);
	ck_writer_text(out, CRI_ContainerConfig_log_path, path);
	ck_writer_close(out, config);
}

int ck_simulation_request_write(struct ck_writer *out, const struct ck_simulation_call *call)
{
	out->bytes.len = 0;
	out->r = 0;
	if (call->kind == CK_SANDBOX) {
		pod_config(out, CRI_RunPodSandboxRequest_config, call);
	} else {
		ck_writer_text(out, CRI_CreateContainerRequest_pod_sandbox_id, call->sandbox_id);
		container_config(out, call);
		pod_config(out, CRI_CreateContainerRequest_sandbox_config, call);
	}
	return out->r;
}
