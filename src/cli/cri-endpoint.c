/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "src/base/wire.h"
#include "src/base/mem.h"
#include "src/cli/cli.h"
#include "src/cli/cri-endpoint.h"

#define ENDPOINT_DEFAULT "unix:///run/crikeep/cri.sock"

enum { OPT_ENDPOINT = 0x300, OPT_API };
enum { NODE = 2, CONTAINER = 1 }; /* NamespaceMode; POD is 0, the default */

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

const struct argp ck_cri_argp = { .options = options, .parser = parse };

struct ck_client *ck_cri_connect(void)
{
	struct ck_client *client;
	struct ck_error err;
	const char *from_environment = getenv("CONTAINER_RUNTIME_ENDPOINT");
	if (!ck_cri.endpoint)
		ck_cri.endpoint =
			from_environment && *from_environment ? from_environment : ENDPOINT_DEFAULT;
	int r = ck_client_new(ck_cri.endpoint, &client, &err);
	if (r < 0) {
		ck_print_error("%s", err.text);
		return NULL;
	}
	if (ck_client_dial(client, &err) < 0) {
		ck_print_error("cannot connect: %s", err.text);
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

/* out of memory: print that and exit */
static void must(int r)
{
	if (r < 0)
		ck_print_nomem();
}

static void put(struct ck_bytes *out, uint32_t field, struct ck_bytes *inner)
{
	must(ck_bytes_field(out, field, inner->p, inner->len));
	ck_bytes_free(inner);
}

static void put_pair(struct ck_bytes *out, uint32_t field, const char *key, const char *value)
{
	struct ck_bytes pair = { 0 };
	must(ck_bytes_field_text(&pair, 1, key));
	must(ck_bytes_field_text(&pair, 2, value));
	put(out, field, &pair);
}

static void put_pod_labels(struct ck_bytes *out, uint32_t field, const struct ck_cri_pod *pod)
{
	put_pair(out, field, "io.kubernetes.pod.name", pod->name);
	put_pair(out, field, "io.kubernetes.pod.namespace", pod->namespace);
	put_pair(out, field, "io.kubernetes.pod.uid", pod->uid);
}

static void put_namespaces(struct ck_bytes *out, uint32_t field, const struct ck_cri_pod *pod)
{
	struct ck_bytes namespaces = { 0 };
	must(ck_bytes_field_number(&namespaces, 1, pod->host_network ? NODE : 0));
	must(ck_bytes_field_number(&namespaces, 2, CONTAINER));
	put(out, field, &namespaces);
}

static void make_config(const struct ck_cri_pod *pod, struct ck_bytes *config)
{
	struct ck_bytes metadata = { 0 }, security = { 0 }, linux_config = { 0 };
	CK_AUTO_FREE char *logs = NULL;
	if (asprintf(&logs, "/var/log/pods/%s_%s_%s", pod->namespace, pod->name, pod->uid) < 0)
		ck_print_nomem();
	must(ck_bytes_field_text(&metadata, 1, pod->name));
	must(ck_bytes_field_text(&metadata, 2, pod->uid));
	must(ck_bytes_field_text(&metadata, 3, pod->namespace));
	must(ck_bytes_field_number(&metadata, 4, pod->attempt));
	put(config, 1, &metadata);
	must(ck_bytes_field_text(config, 2, pod->host_network ? NULL : pod->name));
	must(ck_bytes_field_text(config, 3, logs));
	put_pod_labels(config, 6, pod);
	put_pair(config, 7, "kubernetes.io/config.source", "api");
	put_namespaces(&security, 1, pod);
	put(&linux_config, 2, &security);
	put(config, 8, &linux_config);
}

void ck_cri_make_sandbox(const struct ck_cri_pod *pod, struct ck_bytes *ret_request)
{
	struct ck_bytes config = { 0 };
	make_config(pod, &config);
	put(ret_request, 1, &config);
	must(ck_bytes_field_text(ret_request, 2, pod->runtime_handler));
}

void ck_cri_make_container(const struct ck_cri_pod *pod, const char *sandbox_id,
			   struct ck_bytes *ret_request)
{
	struct ck_bytes config = { 0 }, metadata = { 0 }, image = { 0 }, sandbox_config = { 0 };
	struct ck_bytes linux_config = { 0 }, resources = { 0 }, security = { 0 };
	char attempt[12];
	CK_AUTO_FREE char *log = NULL;
	snprintf(attempt, sizeof(attempt), "%u", pod->container_attempt);
	if (asprintf(&log, "%s/%s.log", pod->container, attempt) < 0)
		ck_print_nomem();
	must(ck_bytes_field_text(&metadata, 1, pod->container));
	must(ck_bytes_field_number(&metadata, 2, pod->container_attempt));
	put(&config, 1, &metadata);
	must(ck_bytes_field_text(&image, 1, pod->image));
	/* newer kubelets also send what the user wrote */
	must(ck_bytes_field_text(&image, 18, pod->image));
	put(&config, 2, &image);
	put_pair(&config, 9, "io.kubernetes.container.name", pod->container);
	put_pod_labels(&config, 9, pod);
	put_pair(&config, 10, "io.kubernetes.container.restartCount", attempt);
	must(ck_bytes_field_text(&config, 11, log));
	/* a pod without resource requests: least CPU share, killed first */
	must(ck_bytes_field_number(&resources, 3, 2));
	must(ck_bytes_field_number(&resources, 5, 1000));
	put(&linux_config, 1, &resources);
	put_namespaces(&security, 3, pod);
	put(&linux_config, 2, &security);
	put(&config, 15, &linux_config);

	must(ck_bytes_field_text(ret_request, 1, sandbox_id));
	put(ret_request, 2, &config);
	make_config(pod, &sandbox_config);
	put(ret_request, 3, &sandbox_config);
}

/* ---- answers --------------------------------------------------------------------------------- */

char *ck_cri_read_text(const void *message, size_t len, uint32_t number)
{
	struct ck_wire wire = ck_wire_begin(message, len);
	struct ck_wire_field field;
	char *text = NULL;
	int r;
	while ((r = ck_wire_next(&wire, &field, NULL)) > 0) {
		if (field.number != number || field.type != CK_WIRE_BYTES)
			continue;
		free(text);
		text = ck_strndup((const char *)field.data, field.len);
		if (!text)
			ck_print_nomem();
	}
	if (r < 0)
		free(CK_TAKE(text));
	return text;
}
