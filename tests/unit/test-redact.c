/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/harness.h"

#include "cache/request/redact.h"
#include "src/base/fault.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "tests/unit/cri-build.h"

static void expect(const char *text, enum ck_kind kind, const struct pb *request,
		   const char *redacted)
{
	char out[CK_TEXT_MAX + 1];

	ck_redact(text, kind, request ? request->bytes : NULL, request ? request->len : 0, out);
	assert_string_equal(out, redacted);
}

static void expect_config(const char *text, const struct pb *config, const char *redacted)
{
	struct pb request;

	build_container(&request, config, NULL);
	expect(text, CK_CONTAINER, &request, redacted);
}

static void prose_passes(void **state)
{
	struct pb config = { .len = 0 };

	(void)state;
	pb_pair(&config, 6, "A", "secret");
	expect_config("failed to create shim task: no space left on device", &config,
		      "failed to create shim task: no space left on device");
	expect("", CK_SANDBOX, NULL, "");
}

static void every_source_of_values_is_redacted(void **state)
{
	struct pb config = { .len = 0 }, sandbox_config = { .len = 0 }, request;

	(void)state;
	pb_text(&config, 3, "my-command");
	pb_text(&config, 4, "--flag=arg");
	pb_pair(&config, 6, "PASSWORD", "env-value");
	pb_mount(&config, "/target", "/host/source");
	pb_pair(&config, 10, "note", "annotation");
	pb_pair(&sandbox_config, 7, "pod-note", "pod-annotation");
	build_container(&request, &config, &sandbox_config);
	expect("run my-command with --flag=arg, env-value: mount /host/source on /target for "
	       "annotation and pod-annotation",
	       CK_CONTAINER, &request,
	       "run *** with ***, ***: mount *** on /target for *** and ***");
	build_sandbox(&request, &sandbox_config);
	expect("plugin said 'pod-annotation' of pod-note", CK_SANDBOX, &request,
	       "plugin said '***' of pod-note");
}

static void names_and_short_values_pass(void **state)
{
	struct pb config = { .len = 0 };

	(void)state;
	pb_pair(&config, 6, "PASSWORD", "abc");
	pb_pair(&config, 9, "label", "label-value");
	expect_config("PASSWORD abc label label-value", &config, "PASSWORD abc label label-value");
}

static void longest_value_goes_first_and_overlaps_go_whole(void **state)
{
	struct pb config = { .len = 0 };

	(void)state;
	pb_pair(&config, 6, "A", "pass");
	pb_pair(&config, 6, "B", "password1");
	pb_pair(&config, 6, "C", "word12345");
	expect_config("x password1 y", &config, "x *** y");
	expect_config("x passwor y", &config, "x ***wor y");
	expect_config("x password12345 y", &config, "x *** y"); /* two values share "word1" */
	expect_config("x passpasspass y", &config, "x *** y");
	expect_config("pass,pass", &config, "***,***");
}

static void value_within_another_word_is_found(void **state)
{
	struct pb config = { .len = 0 };

	(void)state;
	pb_pair(&config, 6, "A", "hunter2");
	expect_config("dsn=user:hunter2@db", &config, "dsn=user:***@db");
}

static void long_words_are_redacted_without_a_request(void **state)
{
	(void)state;
	expect("id 0123456789abcdef0123456789abcdef gone", CK_SANDBOX, NULL, "id *** gone");
	expect("0123456789abcdef0123456", CK_SANDBOX, NULL, "0123456789abcdef0123456");
	expect("0123456789abcdef01234567", CK_SANDBOX, NULL, "***");
	expect("/var/lib/containerd/io.containerd.runtime.v2.task/k8s.io", CK_SANDBOX, NULL,
	       "/var/lib/containerd/io.containerd.runtime.v2.task/k8s.io");
	expect("/x/0123456789abcdef0123456789abcdef/y", CK_SANDBOX, NULL, "/x/***/y");
}

static void value_that_breaks_a_character_hides_it(void **state)
{
	struct pb config = { .len = 0 }, env = { .len = 0 };

	(void)state;
	pb_text(&env, 1, "A");
	pb_text(&env, 2, "\xa9secret"); /* starts with the second byte of an é */
	pb_message(&config, 6, &env);
	expect_config("x \xc3\xa9secret y", &config, "x *** y");
}

static void control_characters_and_bad_utf8_are_replaced(void **state)
{
	(void)state;
	expect("a\x1b[2Jb\nc\x7f", CK_SANDBOX, NULL, "a?[2Jb?c?");
	expect("gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80", CK_SANDBOX, NULL,
	       "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80");
	expect("\xc2\x85|", CK_SANDBOX, NULL, "??|");           /* a C1 control */
	expect("\xc0\xaf|", CK_SANDBOX, NULL, "??|");           /* an overlong '/' */
	expect("\xe0\x80\xaf|", CK_SANDBOX, NULL, "???|");      /* the same in three bytes */
	expect("\xed\xa0\x80|", CK_SANDBOX, NULL, "???|");      /* a surrogate */
	expect("\xf4\x90\x80\x80|", CK_SANDBOX, NULL, "????|"); /* beyond the last character */
	expect("\xe2\x82", CK_SANDBOX, NULL, "??");             /* cut */
	expect("\x80\xff", CK_SANDBOX, NULL, "??");
}

static void text_is_cut_on_a_character(void **state)
{
	char text[CK_TEXT_MAX + 64], out[CK_TEXT_MAX + 1];

	(void)state;
	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = "ab "[i % 3];
	memcpy(text + CK_TEXT_MAX - 1, "\xc3\xbc", 2);
	text[sizeof(text) - 1] = '\0';
	ck_redact(text, CK_SANDBOX, NULL, 0, out);
	assert_int_equal(strlen(out), CK_TEXT_MAX - 1);
	assert_memory_equal(out, text, CK_TEXT_MAX - 1);
}

static void hidden_text_makes_room_and_a_long_one_ends(void **state)
{
	struct pb config = { .len = 0 };
	char text[20000], out[CK_TEXT_MAX + 1];
	struct pb request;

	(void)state;
	pb_pair(&config, 6, "A", "topsecret");
	build_container(&request, &config, NULL);
	for (size_t i = 0; i + 9 < sizeof(text); i += 9)
		memcpy(text + i, "topsecret", 10);
	ck_redact(text, CK_CONTAINER, request.bytes, request.len, out);
	assert_string_equal(out, "***");
	memcpy(text + 300, " end ", 5);
	ck_redact(text, CK_CONTAINER, request.bytes, request.len, out);
	assert_string_equal(out, "*** end ***");
}

static void in_doubt_all_is_hidden(void **state)
{
	struct pb request, config = { .len = 0 };

	(void)state;
	expect("text", CK_SANDBOX, &(struct pb){ .bytes = { 0x0a, 0x05 }, .len = 2 }, "***");
	pb_pair(&config, 6, "A", "secret");
	build_container(&request, &config, NULL);
	ck_fault_arm(CK_FAULT_ALLOC, 1, false);
	expect("text", CK_CONTAINER, &request, "***");
	ck_fault_arm(0, 0, false);
	expect("text", CK_CONTAINER, &request, "text");
}

static void many_values_that_begin_alike_take_no_time(void **state)
{
	struct pb config = { .len = 0 }, request;
	char value[200], text[3000], out[CK_TEXT_MAX + 1];

	(void)state;
	memset(value, 'a', sizeof(value));
	for (size_t len = 4; len < sizeof(value); len++)
		pb_bytes(&config, 4, value, len);
	memset(text, 'a', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	text[500] = ' ';
	text[504] = ' ';
	text[1000] = 'b';
	build_container(&request, &config, NULL);
	ck_redact(text, CK_CONTAINER, request.bytes, request.len, out);
	assert_string_equal(out, "*** aaa ***");
}

static void recorded_values_do_not_pass(void **state)
{
	struct pb request;

	(void)state;
	load_recorded("011-CreateContainer-api-main.bin", &request);
	expect("exec: DB_PASSWORD=s3cr3t is wrong", CK_CONTAINER, &request,
	       "exec: DB_PASSWORD=*** is wrong");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(prose_passes),
		cmocka_unit_test(every_source_of_values_is_redacted),
		cmocka_unit_test(names_and_short_values_pass),
		cmocka_unit_test(longest_value_goes_first_and_overlaps_go_whole),
		cmocka_unit_test(value_within_another_word_is_found),
		cmocka_unit_test(long_words_are_redacted_without_a_request),
		cmocka_unit_test(value_that_breaks_a_character_hides_it),
		cmocka_unit_test(control_characters_and_bad_utf8_are_replaced),
		cmocka_unit_test(text_is_cut_on_a_character),
		cmocka_unit_test(hidden_text_makes_room_and_a_long_one_ends),
		cmocka_unit_test(in_doubt_all_is_hidden),
		cmocka_unit_test(many_values_that_begin_alike_take_no_time),
		cmocka_unit_test(recorded_values_do_not_pass),
	};

	return CK_TEST_MAIN(tests);
}
