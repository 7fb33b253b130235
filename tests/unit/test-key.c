/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/harness.h"

#include "cache/request/key.h"
#include "src/base/fault.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "tests/unit/cri-build.h"

CK_AUTO_DEFINE(ck_key)

static struct ck_key *key_of(enum ck_kind kind, const struct pb *request)
{
	struct ck_key *key = NULL;
	struct ck_error err;

	assert_int_equal(ck_key_from_request(kind, request->bytes, request->len, &key, &err), 0);
	return key;
}

static void assert_refused(enum ck_kind kind, const struct pb *request, int code, const char *text)
{
	struct ck_key *key = NULL;
	struct ck_error err;

	assert_int_equal(ck_key_from_request(kind, request->bytes, request->len, &key, &err),
			 -code);
	assert_null(key);
	assert_int_equal(err.code, code);
	assert_non_null(strstr(err.text, text));
	assert_int_equal(ck_key_from_request(kind, request->bytes, request->len, &key, NULL),
			 -code);
}

static void sandbox_key_is_read(void **state)
{
	struct pb request, config = { .len = 0 }, whole = { .len = 0 };

	(void)state;
	build_sandbox_metadata(&config, "web", "uid-1", "shop", 300);
	pb_message(&whole, 1, &config);
	request = whole;
	CK_AUTO(ck_key) *key = key_of(CK_SANDBOX, &request);
	assert_int_equal(key->kind, CK_SANDBOX);
	assert_int_equal(key->attempt, 300);
	assert_string_equal(key->pod_name, "web");
	assert_string_equal(key->pod_uid, "uid-1");
	assert_string_equal(key->pod_namespace, "shop");
	assert_string_equal(key->sandbox_id, "");
	assert_string_equal(key->container, "");
}

static void container_key_carries_its_pod(void **state)
{
	struct pb request, config = { .len = 0 };

	(void)state;
	build_container_metadata(&config, "app", 2);
	build_container(&request, &config, NULL);
	CK_AUTO(ck_key) *key = key_of(CK_CONTAINER, &request);
	assert_int_equal(key->attempt, 2);
	assert_string_equal(key->sandbox_id, "sandbox-1");
	assert_string_equal(key->container, "app");
	assert_string_equal(key->pod_name, "web");
	assert_string_equal(key->pod_uid, "uid-1");
	assert_string_equal(key->pod_namespace, "shop");
}

static void attempt_of_a_container_is_not_its_sandboxs(void **state)
{
	struct pb request, config = { .len = 0 };

	(void)state;
	build_sandbox_metadata(&config, "web", "uid-1", "shop", 7);
	build_container(&request, NULL, &config);
	CK_AUTO(ck_key) *key = key_of(CK_CONTAINER, &request);
	assert_int_equal(key->attempt, 0);
}

static void recorded_requests_have_keys(void **state)
{
	struct pb request;

	(void)state;
	load_recorded("001-RunPodSandbox-api.bin", &request);
	CK_AUTO(ck_key) *sandbox = key_of(CK_SANDBOX, &request);
	assert_string_equal(sandbox->pod_name, "api-node1");
	assert_int_equal(sandbox->attempt, 0);
	load_recorded("025-CreateContainer-web-app.bin", &request);
	CK_AUTO(ck_key) *container = key_of(CK_CONTAINER, &request);
	assert_string_equal(container->container, "app");
	assert_string_equal(container->pod_name, "web-node1");
	assert_true(*container->sandbox_id != '\0');
}

static void last_scalar_wins_and_messages_merge(void **state)
{
	struct pb request = { .len = 0 }, config = { .len = 0 }, metadata = { .len = 0 };

	(void)state;
	pb_text(&metadata, 1, "first");
	pb_text(&metadata, 1, "second");
	pb_number(&metadata, 4, 1);
	pb_message(&config, 1, &metadata);
	pb_message(&request, 1, &config);
	config.len = metadata.len = 0;
	pb_number(&metadata, 4, 5);
	pb_text(&metadata, 2, "uid-1");
	pb_message(&config, 1, &metadata);
	pb_message(&request, 1, &config);
	CK_AUTO(ck_key) *key = key_of(CK_SANDBOX, &request);
	assert_string_equal(key->pod_name, "second");
	assert_string_equal(key->pod_uid, "uid-1");
	assert_string_equal(key->pod_namespace, "");
	assert_int_equal(key->attempt, 5);
}

static void what_is_missing_is_named(void **state)
{
	struct pb request = { .len = 0 }, config = { .len = 0 }, metadata = { .len = 0 };

	(void)state;
	assert_refused(CK_SANDBOX, &request, CK_EMALFORMED, "config.metadata.name");
	assert_refused(CK_CONTAINER, &request, CK_EMALFORMED, "pod_sandbox_id");
	pb_text(&metadata, 1, "web");
	pb_message(&config, 1, &metadata);
	pb_message(&request, 1, &config);
	assert_refused(CK_SANDBOX, &request, CK_EMALFORMED, "config.metadata.uid");
	request.len = 0;
	pb_text(&request, 1, "sandbox-1");
	assert_refused(CK_CONTAINER, &request, CK_EMALFORMED, "config.metadata.name");
	pb_message(&request, 2, &config);
	assert_refused(CK_CONTAINER, &request, CK_EMALFORMED, "sandbox_config.metadata.name");
	pb_message(&request, 3, &config);
	assert_refused(CK_CONTAINER, &request, CK_EMALFORMED, "sandbox_config.metadata.uid");
}

static void key_field_of_another_wire_type_is_absent(void **state)
{
	struct pb request = { .len = 0 }, config = { .len = 0 }, metadata = { .len = 0 };

	(void)state;
	pb_number(&metadata, 1, 5);
	pb_message(&config, 1, &metadata);
	pb_number(&config, 1, 5);
	pb_message(&request, 1, &config);
	pb_number(&request, 1, 5);
	assert_refused(CK_SANDBOX, &request, CK_EMALFORMED, "config.metadata.name");
}

static void nul_inside_a_name_is_refused(void **state)
{
	struct pb request = { .len = 0 }, config = { .len = 0 }, metadata = { .len = 0 };

	(void)state;
	pb_bytes(&metadata, 1, "we\0b", 4);
	pb_text(&metadata, 2, "uid-1");
	pb_message(&config, 1, &metadata);
	pb_message(&request, 1, &config);
	assert_refused(CK_SANDBOX, &request, CK_EMALFORMED, "pod name: a NUL");
}

static void long_names_and_requests_are_refused(void **state)
{
	struct pb request = { .len = 0 }, config = { .len = 0 };
	char name[CK_NAME_MAX_LEN + 2];
	struct ck_key *key = NULL;
	struct ck_error err;

	(void)state;
	memset(name, 'n', sizeof(name));
	name[CK_NAME_MAX_LEN] = '\0';
	build_sandbox_metadata(&config, name, "uid-1", "shop", 0);
	pb_message(&request, 1, &config);
	ck_key_free(key_of(CK_SANDBOX, &request));
	config.len = request.len = 0;
	name[CK_NAME_MAX_LEN] = 'n';
	name[CK_NAME_MAX_LEN + 1] = '\0';
	build_sandbox_metadata(&config, name, "uid-1", "shop", 0);
	pb_message(&request, 1, &config);
	assert_refused(CK_SANDBOX, &request, CK_ETOOBIG, "pod name");
	assert_int_equal(ck_key_from_request(CK_SANDBOX, name, CK_REQUEST_MAX + 1, &key, &err),
			 -CK_ETOOBIG);
}

static void what_is_no_protobuf_is_refused_where_it_breaks(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
		const char *text;
	} cases[] = {
		{ "\x0a\x05web", 5, "byte 2: a length runs past" },
		{ "\x0a", 1, "byte 1: the message ends inside a number" },
		{ "\x08\x01\x0a\x80", 4, "byte 3: the message ends inside a number" },
		{ "\x00\x01", 2, "byte 0: not a field number" },
		{ "\x0b", 1, "byte 0: a wire type" },
		{ "\x0c", 1, "byte 0: a wire type" },
		{ "\x0e", 1, "byte 0: a wire type" },
		{ "\x0f", 1, "byte 0: a wire type" },
		{ "\x09\x01\x02", 3, "byte 1: the message ends inside a number" },
		{ "\x0d\x01\x02", 3, "byte 1: the message ends inside a number" },
		{ "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 11,
		  "byte 1: a number of more than 64 bits" },
		{ "\x0a\x03\x0a\x05x", 5, "byte 4: a length runs past" },
		{ "\xff\xff\xff\xff\x7f\x01", 6, "byte 0: not a field number" },
	};

	(void)state;
	for (size_t i = 0; i < CK_COUNT(cases); i++) {
		struct pb request = { .len = cases[i].len };
		memcpy(request.bytes, cases[i].bytes, cases[i].len);
		assert_refused(CK_SANDBOX, &request, CK_EMALFORMED, cases[i].text);
	}
}

static void every_truncation_is_refused_or_whole(void **state)
{
	struct pb request;

	(void)state;
	load_recorded("011-CreateContainer-api-main.bin", &request);
	for (size_t len = 0; len < request.len; len++) {
		unsigned char *cut = ck_memdup(request.bytes, len);
		struct ck_key *key = NULL;
		int r = ck_key_from_request(CK_CONTAINER, cut, len, &key, NULL);
		assert_true(r == 0 || r == -CK_EMALFORMED);
		assert_true((r == 0) == (key != NULL));
		ck_key_free(key);
		free(cut);
	}
}

static struct ck_object an_object(enum ck_kind kind)
{
	return (struct ck_object){
		.size = sizeof(struct ck_object),
		.kind = kind,
		.pod_name = "web",
		.pod_namespace = "shop",
		.pod_uid = "uid-1",
		.sandbox_id = "sandbox-1",
		.container_name = "app",
	};
}

static void listed_object_has_the_key_of_its_request(void **state)
{
	struct ck_object object = an_object(CK_CONTAINER);
	struct pb request;
	struct ck_key *from_object = NULL;

	(void)state;
	build_container(&request, NULL, NULL);
	CK_AUTO(ck_key) *asked = key_of(CK_CONTAINER, &request);
	assert_int_equal(ck_key_from_object(&object, &from_object, NULL), 0);
	assert_true(ck_key_same(asked, from_object));
	assert_true(ck_key_same_runtime_name(asked, from_object));
	ck_key_free(from_object);

	object = (struct ck_object){ .size = sizeof(object), .kind = CK_SANDBOX };
	assert_int_equal(ck_key_from_object(&object, &from_object, NULL), 0);
	assert_string_equal(from_object->pod_name, "");
	ck_key_free(from_object);
	object.kind = 0;
	assert_int_equal(ck_key_from_object(&object, &from_object, NULL), -CK_EINVAL);
}

static struct ck_key *key_from(struct ck_object object)
{
	struct ck_key *key = NULL;

	assert_int_equal(ck_key_from_object(&object, &key, NULL), 0);
	return key;
}

static void slot_attempt_and_runtime_name_are_told_apart(void **state)
{
	struct ck_object object = an_object(CK_SANDBOX);

	(void)state;
	CK_AUTO(ck_key) *sandbox = key_from(object);
	object.attempt = 1;
	CK_AUTO(ck_key) *next = key_from(object);
	assert_true(ck_key_same_slot(sandbox, next));
	assert_false(ck_key_same(sandbox, next));
	assert_false(ck_key_same_runtime_name(sandbox, next));
	object.attempt = 0;
	object.pod_uid = "uid-2";
	CK_AUTO(ck_key) *other = key_from(object);
	assert_false(ck_key_same_slot(sandbox, other));

	object = an_object(CK_CONTAINER);
	CK_AUTO(ck_key) *container = key_from(object);
	assert_false(ck_key_same_slot(sandbox, container));
	assert_false(ck_key_same_runtime_name(sandbox, container));
	object.sandbox_id = "sandbox-2";
	CK_AUTO(ck_key) *elsewhere = key_from(object);
	assert_false(ck_key_same_slot(container, elsewhere));
	assert_true(ck_key_same_runtime_name(container, elsewhere));
	object.sandbox_id = "sandbox-1";
	object.pod_name = "db";
	CK_AUTO(ck_key) *moved = key_from(object);
	assert_true(ck_key_same(container, moved));
	assert_false(ck_key_same_runtime_name(container, moved));
}

static void copy_is_the_same_and_its_own(void **state)
{
	struct ck_key *copy = NULL;

	(void)state;
	CK_AUTO(ck_key) *key = key_from(an_object(CK_CONTAINER));
	assert_int_equal(ck_key_dup(key, &copy), 0);
	assert_true(ck_key_same(key, copy));
	assert_true(ck_key_same_runtime_name(key, copy));
	assert_ptr_not_equal(key->pod_name, copy->pod_name);
	ck_key_free(copy);
	ck_key_free(NULL);
}

static void key_prints_for_people(void **state)
{
	struct ck_object object = an_object(CK_CONTAINER);
	char buf[64], small[8];

	(void)state;
	object.attempt = 1;
	object.pod_name = "w\x1b[2Jb";
	CK_AUTO(ck_key) *container = key_from(object);
	assert_string_equal(ck_key_print(container, buf, sizeof(buf)),
			    "container shop/w?[2Jb/app attempt 1");
	CK_AUTO(ck_key) *sandbox = key_from(an_object(CK_SANDBOX));
	assert_string_equal(ck_key_print(sandbox, buf, sizeof(buf)), "sandbox shop/web attempt 0");
	assert_string_equal(ck_key_print(sandbox, small, sizeof(small)), "sandbox");
}

static void no_memory_is_an_error(void **state)
{
	struct pb request;
	struct ck_key *key = NULL;
	struct ck_error err;

	(void)state;
	build_sandbox(&request, NULL);
	ck_fault_arm(CK_FAULT_ALLOC, 1, false);
	int r = ck_key_from_request(CK_SANDBOX, request.bytes, request.len, &key, &err);
	assert_true(ck_fault_hit());
	ck_fault_arm(0, 0, false);
	assert_int_equal(r, -CK_ENOMEM);
	assert_int_equal(err.code, CK_ENOMEM);
	assert_null(key);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(sandbox_key_is_read),
		cmocka_unit_test(container_key_carries_its_pod),
		cmocka_unit_test(attempt_of_a_container_is_not_its_sandboxs),
		cmocka_unit_test(recorded_requests_have_keys),
		cmocka_unit_test(last_scalar_wins_and_messages_merge),
		cmocka_unit_test(what_is_missing_is_named),
		cmocka_unit_test(key_field_of_another_wire_type_is_absent),
		cmocka_unit_test(nul_inside_a_name_is_refused),
		cmocka_unit_test(long_names_and_requests_are_refused),
		cmocka_unit_test(what_is_no_protobuf_is_refused_where_it_breaks),
		cmocka_unit_test(every_truncation_is_refused_or_whole),
		cmocka_unit_test(listed_object_has_the_key_of_its_request),
		cmocka_unit_test(slot_attempt_and_runtime_name_are_told_apart),
		cmocka_unit_test(copy_is_the_same_and_its_own),
		cmocka_unit_test(key_prints_for_people),
		cmocka_unit_test(no_memory_is_an_error),
	};

	return CK_TEST_MAIN(tests);
}
