/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/base/wire-writer.h"
#include "src/cli/cli.h"
#include "src/cli/cri-endpoint.h"
#include "src/cli/select-entries.h"
#include "src/cri/message.h"

#define ENDPOINT_DEFAULT "unix:///run/crikeep/cri.sock"

enum { OPT_ENDPOINT = 0x300, OPT_API };

struct ck_cri ck_cri;

/* ---- the endpoint ---------------------------------------------------------------------------- */

static const struct argp_option options[] = {
	{ "endpoint", OPT_ENDPOINT, "URL", 0,
	  "CRI socket, unix:///PATH (default: $CONTAINER_RUNTIME_ENDPOINT, else "
	  "crikeepd's, " ENDPOINT_DEFAULT ")",
	  -2 },
	{ "api", OPT_API, "VERSION", 0, "CRI version: v1 (default) or v1alpha2", -2 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	switch (key) {
	case OPT_ENDPOINT:
		ck_cri.endpoint = arg;
		return 0;
	case OPT_API:
		if (strcmp(arg, "v1") != 0 && strcmp(arg, "v1alpha2") != 0)
			argp_error(state, "invalid API version '%s'; expected v1 or v1alpha2", arg);
		ck_cri.api = arg;
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp cri_argp = { .options = options, .parser = parse };
const struct argp_child ck_cri_children[] = {
	{ &cri_argp, 0, NULL, 0 }, { &ck_cli_argp, 0, NULL, 0 }, { 0 }
};

const char *ck_cri_endpoint(void)
{
	const char *from_environment = getenv("CONTAINER_RUNTIME_ENDPOINT");
	if (ck_cri.endpoint)
		return ck_cri.endpoint;
	return from_environment && *from_environment ? from_environment : ENDPOINT_DEFAULT;
}

struct ck_client *ck_cri_connect(void)
{
	struct ck_client *client;
	struct ck_error err;
	ck_cri.endpoint = ck_cri_endpoint();
	int r = ck_client_new(ck_cri.endpoint, &client, &err);
	if (r < 0) {
		ck_print_error("%s", err.text);
		return NULL;
	}
	if (ck_client_dial(client, &err) < 0) {
		ck_print_error("cannot connect: %s%s", err.text, ck_look_root_hint(&err));
		ck_client_free(client);
		return NULL;
	}
	return client;
}

const char *ck_cri_path(const char *rpc, char buf[CK_CRI_PATH])
{
	snprintf(buf, CK_CRI_PATH, "/runtime.%s.RuntimeService/%s",
		 ck_cri.api ? ck_cri.api : "v1", rpc);
	return buf;
}

bool ck_cri_newer_than_server(const struct ck_unary *call)
{
	if (ck_cri.api || call->status.code != CK_GRPC_UNIMPLEMENTED)
		return false;
	ck_cri.api = "v1alpha2";
	return true;
}

/* ---- requests -------------------------------------------------------------------------------- */

static void put_pod_labels(struct ck_writer *out, uint32_t field, const struct ck_cri_pod *pod)
{
	ck_writer_pair(out, field, "io.kubernetes.pod.name", pod->name);
	ck_writer_pair(out, field, "io.kubernetes.pod.namespace", pod->namespace);
	ck_writer_pair(out, field, "io.kubernetes.pod.uid", pod->uid);
}

static void put_namespaces(struct ck_writer *out, uint32_t field, const struct ck_cri_pod *pod)
{
	size_t namespaces = ck_writer_open(out, field);
	ck_writer_number(out, CRI_NamespaceOption_network,
			 pod->host_network ? CRI_NamespaceMode_NODE : CRI_NamespaceMode_POD);
	ck_writer_number(out, CRI_NamespaceOption_pid, CRI_NamespaceMode_CONTAINER);
	ck_writer_close(out, namespaces);
}

static void put_pod_config(struct ck_writer *out, uint32_t field, const struct ck_cri_pod *pod)
{
	CK_AUTO_FREE char *logs =
		ck_text_format("/var/log/pods/%s_%s_%s", pod->namespace, pod->name, pod->uid);
	size_t config = ck_writer_open(out, field);
	size_t metadata = ck_writer_open(out, CRI_PodSandboxConfig_metadata);
	ck_writer_text(out, CRI_PodSandboxMetadata_name, pod->name);
	ck_writer_text(out, CRI_PodSandboxMetadata_uid, pod->uid);
	ck_writer_text(out, CRI_PodSandboxMetadata_namespace, pod->namespace);
	ck_writer_number(out, CRI_PodSandboxMetadata_attempt, pod->attempt);
	ck_writer_close(out, metadata);
	ck_writer_text(out, CRI_PodSandboxConfig_hostname, pod->host_network ? NULL : pod->name);
	ck_writer_text(out, CRI_PodSandboxConfig_log_directory, logs);
	put_pod_labels(out, CRI_PodSandboxConfig_labels, pod);
	ck_writer_pair(out, CRI_PodSandboxConfig_annotations, "kubernetes.io/config.source", "api");
	size_t linux_config = ck_writer_open(out, CRI_PodSandboxConfig_linux),
	       security = ck_writer_open(out, CRI_LinuxPodSandboxConfig_security_context);
	put_namespaces(out, CRI_LinuxSandboxSecurityContext_namespace_options, pod);
	ck_writer_close(out, security);
	ck_writer_close(out, linux_config);
	ck_writer_close(out, config);
}

static void put_container_config(struct ck_writer *out, uint32_t field,
				 const struct ck_cri_pod *pod)
{
	CK_AUTO_FREE char *attempt = ck_text_format("%u", pod->container_attempt);
	CK_AUTO_FREE char *log = ck_text_format("%s/%s.log", pod->container, attempt);
	size_t config = ck_writer_open(out, field);
	size_t part = ck_writer_open(out, CRI_ContainerConfig_metadata);
	ck_writer_text(out, CRI_ContainerMetadata_name, pod->container);
	ck_writer_number(out, CRI_ContainerMetadata_attempt, pod->container_attempt);
	ck_writer_close(out, part);
	part = ck_writer_open(out, CRI_ContainerConfig_image);
	ck_writer_text(out, CRI_ImageSpec_image, pod->image);
	/* newer kubelets also send what the user wrote */
	ck_writer_text(out, CRI_ImageSpec_user_specified_image, pod->image);
	ck_writer_close(out, part);
	ck_writer_pair(out, CRI_ContainerConfig_labels, "io.kubernetes.container.name",
		       pod->container);
	put_pod_labels(out, CRI_ContainerConfig_labels, pod);
	ck_writer_pair(out, CRI_ContainerConfig_annotations,
		       "io.kubernetes.container.restartCount", attempt);
	ck_writer_text(out, CRI_ContainerConfig_log_path, log);
	size_t linux_config = ck_writer_open(out, CRI_ContainerConfig_linux);
	/* a pod without resource requests: least CPU share, killed first */
	part = ck_writer_open(out, CRI_LinuxContainerConfig_resources);
	ck_writer_number(out, CRI_LinuxContainerResources_cpu_shares, 2);
	ck_writer_number(out, CRI_LinuxContainerResources_oom_score_adj, 1000);
	ck_writer_close(out, part);
	part = ck_writer_open(out, CRI_LinuxContainerConfig_security_context);
	put_namespaces(out, CRI_LinuxContainerSecurityContext_namespace_options, pod);
	ck_writer_close(out, part);
	ck_writer_close(out, linux_config);
	ck_writer_close(out, config);
}

/* out of memory: print that and exit */
static void finish(const struct ck_writer *out, struct ck_bytes *ret_request)
{
	if (out->r < 0)
		ck_text_nomem();
	*ret_request = out->bytes;
}

void ck_cri_make_sandbox(const struct ck_cri_pod *pod, struct ck_bytes *ret_request)
{
	struct ck_writer out = { .r = 0 };
	put_pod_config(&out, CRI_RunPodSandboxRequest_config, pod);
	ck_writer_text(&out, CRI_RunPodSandboxRequest_runtime_handler, pod->runtime_handler);
	finish(&out, ret_request);
}

void ck_cri_make_container(const struct ck_cri_pod *pod, const char *sandbox_id,
			   struct ck_bytes *ret_request)
{
	struct ck_writer out = { .r = 0 };
	ck_writer_text(&out, CRI_CreateContainerRequest_pod_sandbox_id, sandbox_id);
	put_container_config(&out, CRI_CreateContainerRequest_config, pod);
	put_pod_config(&out, CRI_CreateContainerRequest_sandbox_config, pod);
	finish(&out, ret_request);
}

/* ---- answers --------------------------------------------------------------------------------- */

char *ck_cri_read_text(const void *message, size_t len, uint32_t number)
{
	struct ck_wire_field field;
	if (ck_cri_last(ck_wire_begin(message, len), number, &field, NULL) <= 0)
		return NULL;
	return ck_must(ck_strndup((const char *)field.data, field.len));
}
