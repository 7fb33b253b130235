/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of calls: complete, as CRI has it, and nothing that changes anything is read-only. The
 * table, the shapes and the numbers are compared with what cri-api 0.37.2 says of its calls,
 * messages and enumerations: tests/data/cri-api-0.37.2.txt.
 */
#include "tests/unit/harness.h"

#include <fnmatch.h>
#include <string.h>

#include "cache/request/cri.pb-c.h"
#include "src/base/mem.h"
#include "src/daemon/metrics.h"
#include "src/cri/numbers.h"
#include "src/cri/shapes.h"
#include "tests/unit/cri-build.h"

/* The calls of the table, written down a second time: class, kind; s(treams), r(ead-only),
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
	{ "RuntimeService", "CheckpointPod", CK_CRI_GUARD, CK_SANDBOX, "" },
	{ "RuntimeService", "RestorePod", CK_CRI_PASS, 0, "" },
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

/* ---- the record ------------------------------------------------------------------------------ */

#define NAME_SIZE 64
#define LINE_SIZE 512

struct recorded_method {
	char service[NAME_SIZE], name[NAME_SIZE], request[NAME_SIZE], response[NAME_SIZE];
	bool streams;
};

struct recorded_number { /* of a field; or of an enumeration's value, without a type */
	char of[NAME_SIZE], name[NAME_SIZE], type[NAME_SIZE];
	unsigned number;
};

static struct record {
	struct recorded_method methods[64];
	struct recorded_number numbers[1024];
	size_t n_methods, n_numbers;
} record;

static int record_read(void **state)
{
	FILE *f = data_open("cri-api-0.37.2.txt");
	char line[LINE_SIZE], more[NAME_SIZE];

	(void)state;
	while (fgets(line, sizeof(line), f)) {
		struct recorded_method *m = &record.methods[record.n_methods];
		struct recorded_number *n = &record.numbers[record.n_numbers];
		*more = '\0';
		if (*line == '#')
			continue;
		if (sscanf(line, "%63[^/. ]/%63s %63s %63s %63s", m->service, m->name, m->request,
			   m->response, more) >= 4) {
			m->streams = !strcmp(more, "stream");
			assert_true(++record.n_methods < CK_COUNT(record.methods));
		} else {
			int parts = sscanf(line, "%63[^.].%63s %u %63s", n->of, n->name, &n->number,
					   n->type);
			assert_true(parts == 3 || parts == 4);
			assert_true(++record.n_numbers < CK_COUNT(record.numbers));
		}
	}
	fclose(f);
	return 0;
}

static const struct recorded_number *recorded(const char *of, const char *name)
{
	for (size_t i = 0; i < record.n_numbers; i++)
		if (!strcmp(record.numbers[i].of, of) && !strcmp(record.numbers[i].name, name))
			return &record.numbers[i];
	return NULL;
}

/* of a message: it has fields, and fields have types */
static bool is_message(const char *type)
{
	for (size_t i = 0; i < record.n_numbers; i++)
		if (!strcmp(record.numbers[i].of, type))
			return *record.numbers[i].type;
	return false;
}

static void the_table_has_every_recorded_call(void **state)
{
	char path[2 * NAME_SIZE + 16];

	(void)state;
	assert_int_equal(record.n_methods, 43);
	for (size_t i = 0; i < record.n_methods; i++) {
		const struct recorded_method *m = &record.methods[i];
		snprintf(path, sizeof(path), "/runtime.v1.%s/%s", m->service, m->name);
		const struct ck_cri_method *method = find(path);
		if (!method)
			fail_msg("the table has no %s", m->name);
		assert_int_equal(method->streams, m->streams);
	}
	assert_null(ck_cri_method_at(record.n_methods)); /* and no other */
}

/* ---- numbers --------------------------------------------------------------------------------- */

static const struct number {
	const char *of, *name;
	unsigned number;
} numbers[] = {
#define NUMBER(message, field, number) { #message, #field, number },
	CK_CRI_NUMBERS(NUMBER)
#undef NUMBER
};

static void every_number_is_the_recorded_one(void **state)
{
	(void)state;
	for (size_t i = 0; i < CK_COUNT(numbers); i++) {
		const struct recorded_number *known = recorded(numbers[i].of, numbers[i].name);
		if (!known || known->number != numbers[i].number)
			fail_msg("%s.%s is %u", numbers[i].of, numbers[i].name, numbers[i].number);
	}
}

/* each field of a message of cri.proto, and of those in it, against the record and our numbers */
static unsigned compare_message(const ProtobufCMessageDescriptor *message)
{
	unsigned compared = 0;

	for (unsigned i = 0; i < message->n_fields; i++) {
		const ProtobufCFieldDescriptor *field = &message->fields[i];
		const struct recorded_number *known = recorded(message->short_name, field->name);
		const ProtobufCMessageDescriptor *inside = field->descriptor;
		bool map = field->type == PROTOBUF_C_TYPE_MESSAGE &&
			   strstr(inside->short_name, "Entry");
		assert_non_null(known);
		assert_int_equal(known->number, field->id);
		assert_int_equal(map, !strcmp(known->type, "map"));
		for (size_t n = 0; n < CK_COUNT(numbers); n++) {
			if (strcmp(numbers[n].of, message->short_name) ||
			    strcmp(numbers[n].name, field->name))
				continue;
			assert_int_equal(numbers[n].number, field->id);
			compared++;
		}
		if (map)
			continue;
		if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
			assert_string_equal(known->type, inside->short_name);
			compared += compare_message(inside);
		}
	}
	return compared;
}

static void numbers_are_those_of_cri_proto(void **state)
{
	static const ProtobufCMessageDescriptor *const roots[] = {
		&ck__cri__run_pod_sandbox_request__descriptor,
		&ck__cri__run_pod_sandbox_response__descriptor,
		&ck__cri__create_container_request__descriptor,
		&ck__cri__create_container_response__descriptor,
	};
	unsigned compared = 0;

	(void)state;
	for (size_t i = 0; i < CK_COUNT(roots); i++)
		compared += compare_message(roots[i]);
	assert_true(compared > 50); /* some messages are inside several */
}

/* ---- shapes ---------------------------------------------------------------------------------- */

/* what the field is called that tells this; NULL: it is a message */
static const char *const used_names[] = {
	[CK_USE_ID] = "|id|pod_sandbox_id|container_id|",
	[CK_USE_SANDBOX_ID] = "|pod_sandbox_id|",
	[CK_USE_POD_NAME] = "|name|",
	[CK_USE_POD_NAMESPACE] = "|namespace|",
	[CK_USE_POD_UID] = "|uid|",
	[CK_USE_CONTAINER_NAME] = "|name|",
	[CK_USE_ATTEMPT] = "|attempt|",
	[CK_USE_STATE] = "|state|",
	[CK_USE_CREATED_AT] = "|created_at|",
	[CK_USE_STARTED_AT] = "|started_at|",
	[CK_USE_LABELS] = "|labels|",
	[CK_USE_ANNOTATIONS] = "|annotations|",
	[CK_USE_SUBJECT] = "|container_id|",
	[CK_USE_INSIDE] = NULL,
	[CK_USE_OBJECT] = NULL,
	[CK_USE_ACTS_ON] = "|id|pod_sandbox_id|container_id|",
	[CK_USE_NAMES] = "|pod_sandbox_id|target_id|",
	[CK_USE_LISTED] = "|container_ids|",
};

/* ids that no shape has, by their way through the messages */
static const char *const other_ids[] = {
	"*image_id", "*images.id", "*image.id",           /* of images */
	"*[ug]id*Mappings.*_id", "*userns_options.*_id",  /* of users */
	"RunPodSandbox>.pod_sandbox_id",                  /* what was made */
	"CreateContainer>.container_id",
	"RestorePod>.pod_sandbox_id", "RestorePod>.restored_containers.container_id",
	"*.linux.namespaces.options.target_id",           /* a sandbox has no target */
	"RunPodSandbox<.config.*.target_id",
	"RestorePod<.config.*.target_id",
	"RestorePod<.container_configs.*.target_id",      /* as the checkpoint has it */
	"*<.sandbox_config.*.target_id",
};

static bool other_met[CK_COUNT(other_ids)];

static bool is_id_name(const char *name)
{
	return !strcmp(name, "id") || !fnmatch("*_id", name, 0) || !fnmatch("*_ids", name, 0);
}

static void check_place(const struct ck_place *place, const struct recorded_number *field,
			const char *way)
{
	char name[NAME_SIZE + 2];

	snprintf(name, sizeof(name), "|%s|", field->name);
	const char *names = used_names[place->use];
	if (names ? !strstr(names, name) : !is_message(field->type))
		fail_msg("%s is not what its shape says", way);
	if (!names)
		assert_non_null(place->inside);
}

/* @way: how we came here, "ListContainers<.filter"; @shape: NULL where nothing is looked at */
static void walk_message(const char *message, const struct ck_shape *shape, const char *way,
			 unsigned *ids)
{
	unsigned met = 0;

	assert_true(strlen(way) < LINE_SIZE - NAME_SIZE);
	for (size_t i = 0; i < record.n_numbers; i++) {
		const struct recorded_number *field = &record.numbers[i];
		const struct ck_place *place = NULL;
		char path[LINE_SIZE];
		if (strcmp(field->of, message))
			continue;
		snprintf(path, sizeof(path), "%s.%s", way, field->name);
		for (unsigned p = 0; shape && p < shape->n; p++)
			if (shape->places[p].field == field->number)
				place = &shape->places[p];
		if (place)
			check_place(place, field, path);
		met += place != NULL;
		if (is_message(field->type)) {
			walk_message(field->type, place ? place->inside : NULL, path, ids);
			continue;
		}
		if (!is_id_name(field->name))
			continue;
		bool known = place != NULL;
		*ids += known;
		for (size_t n = 0; n < CK_COUNT(other_ids) && !known; n++) {
			known = !fnmatch(other_ids[n], path, 0);
			other_met[n] |= known;
		}
		if (!known)
			fail_msg("no shape has %s", path);
	}
	if (shape)
		assert_int_equal(met, shape->n);
}

static void every_recorded_id_lies_in_a_shape(void **state)
{
	unsigned ids = 0;

	(void)state;
	for (size_t i = 0; i < record.n_methods; i++) {
		const struct recorded_method *m = &record.methods[i];
		const struct ck_cri_method *method = ck_cri_method_named(m->name);
		char way[NAME_SIZE + 2];
		assert_non_null(method);
		snprintf(way, sizeof(way), "%s<", m->name);
		walk_message(m->request, method->request, way, &ids);
		snprintf(way, sizeof(way), "%s>", m->name);
		walk_message(m->response, method->response, way, &ids);
	}
	assert_int_equal(ids, 61);
	for (size_t n = 0; n < CK_COUNT(other_ids); n++)
		assert_true(other_met[n]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_call_of_both_versions_is_as_cri_has_it),
		cmocka_unit_test(the_table_has_no_other_call_and_fits_the_metrics),
		cmocka_unit_test(what_is_not_a_call_of_cri_is_not_found),
		cmocka_unit_test(what_acts_is_not_read_only_and_what_lists_has_a_shape),
		cmocka_unit_test(the_table_has_every_recorded_call),
		cmocka_unit_test(every_number_is_the_recorded_one),
		cmocka_unit_test(numbers_are_those_of_cri_proto),
		cmocka_unit_test(every_recorded_id_lies_in_a_shape),
	};
	return CK_TEST_MAIN(tests, record_read, NULL);
}
