/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "tests/daemon/pods.h"
#include "tests/unit/harness.h"

static int create(struct cri_client *client, const char *rpc, struct ck_bytes *request,
		  const char *timeout, char *ret_id)
{
	struct cri_call call;
	cri_start(client, &call, rpc, request, timeout);
	cri_wait(&call);
	int code = call.answered ? call.status.code : -1;
	if (ret_id)
		snprintf(ret_id, POD_ID, "%s",
			 code == CK_GRPC_OK ? cri_text(&call.reply, "1") : "");
	cri_end(&call);
	return code;
}

int pod_run(struct cri_client *client, const char *name, unsigned attempt, const char *timeout,
	    char *ret_id)
{
	struct ck_bytes request = cri_run_request(name, attempt);
	return create(client, "RunPodSandbox", &request, timeout, ret_id);
}

int pod_create(struct cri_client *client, const char *sandbox_id, const char *pod_name,
	       unsigned attempt, const char *timeout, char *ret_id)
{
	struct ck_bytes request = cri_create_request(sandbox_id, pod_name, "main", attempt);
	return create(client, "CreateContainer", &request, timeout, ret_id);
}

static struct ck_bytes list(struct cri_client *client, const char *rpc)
{
	struct ck_bytes none = { 0 }, reply;
	assert_int_equal(cri_do(client, rpc, &none, &reply), CK_GRPC_OK);
	return reply;
}

static bool shown(struct cri_client *client, const char *rpc, const char *id)
{
	struct ck_bytes reply = list(client, rpc);
	bool there = false;
	for (unsigned i = 0; i < cri_count(&reply, "1") && !there; i++) {
		char path[32];
		snprintf(path, sizeof(path), "1#%u.1", i);
		there = !strcmp(cri_text(&reply, path), id);
	}
	ck_bytes_free(&reply);
	return there;
}

bool pod_shown(struct cri_client *client, const char *id)
{
	return shown(client, "ListPodSandbox", id);
}

bool container_shown(struct cri_client *client, const char *id)
{
	return shown(client, "ListContainers", id);
}

unsigned pod_n(struct cri_client *client)
{
	struct ck_bytes reply = list(client, "ListPodSandbox");
	unsigned n = cri_count(&reply, "1");
	ck_bytes_free(&reply);
	return n;
}

void pod_id_of(struct cri_client *client, unsigned i, char *ret_id)
{
	struct ck_bytes reply = list(client, "ListPodSandbox");
	char path[32];
	snprintf(path, sizeof(path), "1#%u.1", i);
	snprintf(ret_id, POD_ID, "%s", cri_text(&reply, path));
	ck_bytes_free(&reply);
}
