/* SPDX-License-Identifier: Apache-2.0 */
/* The table of calls: complete, as CRI has it, and nothing that changes anything is read-only. */
#include "tests/unit/harness.h"

#include <string.h>

#include "src/base/mem.h"
#include "src/daemon/metrics.h"
#include "src/cri/calls.h"

/* The calls of cri-api v0.36, written down a second time: class, kind; s(treams), r(ead-only),
 * w(hole list) */
static const struct expected {
	const char *service, *rpc;
	enum ck_cri_class class;
	enum ck_kind kind;
	const char *flags;
} expected[] = {
	{ "RuntimeService", "Version", CK_CRI_PASS, 0, "r" },
	{ "RuntimeService", "RunPodSandbox", CK_CRI_CREATE, CK_SANDBOX, "" },
	{ "RuntimeService", "StopPodSandbox", CK_CRI_STOP, CK_SANDBOX, "" },
	{ "RuntimeService", "RemovePodSandbox", CK_CRI_REMOVE, CK_SANDBOX, "" },
	{ "RuntimeService", "PodSandboxStatus", CK_CRI_STATUS, CK_SANDBOX, "r" },
	{ "RuntimeService", "ListPodSandbox", CK_CRI_FILTER, CK_SANDBOX, "rw" },
	{ "RuntimeService", "StreamPodSandboxes", CK_CRI_FILTER, CK_SANDBOX, "sr" },
	{ "RuntimeService", "CreateContainer", CK_CRI_CREATE, CK_CONTAINER, "" },
	{ "RuntimeService", "StartContainer", CK_CRI_START, CK_CONTAINER, "" },
	{ "RuntimeService", "StopContainer", CK_CRI_STOP, CK_CONTAINER, "" },
	{ "RuntimeService", "RemoveContainer", CK_CRI_REMOVE, CK_CONTAINER, "" },
	{ "RuntimeService", "ListContainers", CK_CRI_FILTER, CK_CONTAINER, "rw" },
	{ "RuntimeService", "StreamContainers", CK_CRI_FILTER, CK_CONTAINER, "sr" },
	{ "RuntimeService", "ContainerStatus", CK_CRI_STATUS, CK_CONTAINER, "r" },
	{ "RuntimeService", "UpdateContainerResources", CK_CRI_GUARD, CK_CONTAINER, "" },
	{ "RuntimeService", "ReopenContainerLog", CK_CRI_GUARD, CK_CONTAINER, "" },
	{ "RuntimeService", "ExecSync", CK_CRI_GUARD, CK_CONTAINER, "" },
	{ "RuntimeService", "Exec", CK_CRI_GUARD, CK_CONTAINER, "" },
	{ "RuntimeService", "Attach", CK_CRI_GUARD, CK_CONTAINER, "" },
	{ "RuntimeService", "PortForward", CK_CRI_GUARD, CK_SANDBOX, "" },
	{ "RuntimeService", "ContainerStats", CK_CRI_STATUS, CK_CONTAINER, "r" },
	{ "RuntimeService", "ListContainerStats", CK_CRI_FILTER, CK_CONTAINER, "r" },
	{ "RuntimeService", "StreamContainerStats", CK_CRI_FILTER, CK_CONTAINER, "sr" },
	{ "RuntimeService", "PodSandboxStats", CK_CRI_STATUS, CK_SANDBOX, "r" },
	{ "RuntimeService", "ListPodSandboxStats", CK_CRI_FILTER, CK_SANDBOX, "r" },
	{ "RuntimeService", "StreamPodSandboxStats", CK_CRI_FILTER, CK_SANDBOX, "sr" },
	{ "RuntimeService", "UpdateRuntimeConfig", CK_CRI_PASS, 0, "" },
	{ "RuntimeService", "Status", CK_CRI_PASS, 0, "r" },
	{ "RuntimeService", "CheckpointContainer", CK_CRI_GUARD, CK_CONTAINER, "" },
	{ "RuntimeService", "GetContainerEvents", CK_CRI_EVENTS, 0, "sr" },
	{ "RuntimeService", "ListMetricDescriptors", CK_CRI_PASS, 0, "r" },
	{ "RuntimeService", "ListPodSandboxMetrics", CK_CRI_FILTER, CK_SANDBOX, "r" },
	{ "RuntimeService", "StreamPodSandboxMetrics", CK_CRI_FILTER, CK_SANDBOX, "sr" },
	{ "RuntimeService", "RuntimeConfig", CK_CRI_PASS, 0, "r" },
	{ "RuntimeService", "UpdatePodSandboxResources", CK_CRI_GUARD, CK_SANDBOX, "" },
	{ "ImageService", "ListImages", CK_CRI_PASS, 0, "r" },
	{ "ImageService", "StreamImages", CK_CRI_PASS, 0, "sr" },
	{ "ImageService", "ImageStatus", CK_CRI_PASS, 0, "r" },
	{ "ImageService", "PullImage", CK_CRI_PASS, 0, "" },
	{ "ImageService", "RemoveImage", CK_CRI_PASS, 0, "" },
	{ "ImageService", "ImageFsInfo", CK_CRI_PASS, 0, "r" },
};

static const struct ck_cri_method *find(const char *path)
{
	return ck_cri_method_find(path, strlen(path));
}

static void every_call_of_both_versions_is_as_cri_has_it(void **state)
{
	static const char *const versions[] = { "v1", "v1alpha2" };
	char path[128];

	(void)state;
	for (size_t i = 0; i < CK_COUNT(expected); i++) {
		const struct expected *e = &expected[i];
		for (size_t v = 0; v < CK_COUNT(versions); v++) {
			snprintf(path, sizeof(path), "/runtime.%s.%s/%s", versions[v], e->service,
				 e->rpc);
			const struct ck_cri_method *method = find(path);
			assert_non_null(method);
			assert_string_equal(method->rpc, e->rpc);
			assert_int_equal(method->class, e->class);
			assert_int_equal(method->kind, e->kind);
			assert_int_equal(method->streams, strchr(e->flags, 's') != NULL);
			assert_int_equal(method->read_only, strchr(e->flags, 'r') != NULL);
			assert_int_equal(method->whole_list, strchr(e->flags, 'w') != NULL);
		}
	}
}

static void the_table_has_no_other_call_and_fits_the_metrics(void **state)
{
	size_t n = 0;

	(void)state;
	while (ck_cri_method_at(n))
		n++;
	assert_int_equal(n, CK_COUNT(expected));
	assert_true(n < CK_METRIC_METHODS);
	assert_null(ck_cri_method_at(n + 1));
	assert_null(ck_cri_method_at(SIZE_MAX));
}

static void what_is_not_a_call_of_cri_is_not_found(void **state)
{
	static const char *const paths[] = {
		"",
		"/",
		"Version",
		"/Version",
		"runtime.v1.RuntimeService/Version",
		"/runtime.v2.RuntimeService/Version",
		"/runtime.v1.RuntimeService",
		"/runtime.v1.RuntimeService/",
		"/runtime.v1.RuntimeService/version",
		"/runtime.v1.RuntimeService/Versio",
		"/runtime.v1.RuntimeService/Version2",
		"/runtime.v1.RuntimeService/Version/",
		"/runtime.v1.RuntimeService//Version",
		"/runtime.v1.RuntimeService/ListImages", /* of the other service */
		"/runtime.v1.ImageService/Version",
		"/runtime.v1.ImageService/ListPodSandbox",
		"/runtime.v1alpha.RuntimeService/Version",
		"/runtime.v1alpha2RuntimeService/Version",
		"/containerd.services.containers.v1.Containers/List",
		"/grpc.health.v1.Health/Check",
	};

	(void)state;
	for (size_t i = 0; i < CK_COUNT(paths); i++)
		assert_null(find(paths[i]));
	/* the length counts, not a NUL */
	assert_null(ck_cri_method_find("/runtime.v1.RuntimeService/Version\0", 35));
	assert_non_null(ck_cri_method_find("/runtime.v1.RuntimeService/VersionX", 34));
}

static void what_acts_is_not_read_only_and_what_lists_has_a_shape(void **state)
{
	(void)state;
	for (size_t i = 0; ck_cri_method_at(i); i++) {
		const struct ck_cri_method *r = ck_cri_method_at(i);
		bool tells = r->class == CK_CRI_STATUS || r->class == CK_CRI_FILTER ||
			     r->class == CK_CRI_EVENTS;
		assert_true(!r->read_only || tells || r->class == CK_CRI_PASS);
		assert_int_equal(r->response != NULL, tells);
		assert_true(r->request || r->class == CK_CRI_PASS ||
			    r->class == CK_CRI_EVENTS || !strcmp(r->rpc, "RunPodSandbox") ||
			    strstr(r->rpc, "PodSandboxMetrics"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_call_of_both_versions_is_as_cri_has_it),
		cmocka_unit_test(the_table_has_no_other_call_and_fits_the_metrics),
		cmocka_unit_test(what_is_not_a_call_of_cri_is_not_found),
		cmocka_unit_test(what_acts_is_not_read_only_and_what_lists_has_a_shape),
	};
	return CK_TEST_MAIN(tests);
}
