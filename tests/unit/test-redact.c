/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/harness.h"

#include <string.h>

#include "cache/request/redact.h"
#include "cache/request/words.h"
#include "src/base/fault.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "tests/unit/cri-build.h"

#define ID   "dd311ca871902316d9841aab4ccec38d79d89a0da0c41aebb8f010b8e9a5b5ab"
#define UUID "5d2c0c55-b8d4-4a0a-8c6e-3b9f7f1f2a11"
#define TEXT \
	"S3cr3t \"Q/o+t?e~d\"\n\twith=0 \\u{7a}" /* encoded, it has every character of base64 */

static void expect(const char *text, enum ck_kind kind, const struct pb *request,
		   const char *redacted)
{
	char out[CK_TEXT_MAX + 1];
	struct ck_known known = { .kind = kind };

	if (request) {
		known.request = request->bytes;
		known.len = request->len;
	}
	ck_redact(text, &known, out);
	assert_string_equal(out, redacted);
}

static void expect_config(const char *text, const struct pb *config, const char *redacted)
{
	struct pb request;

	build_container(&request, config, NULL);
	expect(text, CK_CONTAINER, &request, redacted);
}

static void expect_env(const char *text, const char *value, const char *redacted)
{
	struct pb config = { .len = 0 };

	pb_pair(&config, 6, "A", value);
	expect_config(text, &config, redacted);
}

/* ---- what may stay --------------------------------------------------------------------------- */

static void words_are_sorted(void **state)
{
	char before[64] = "", word[64];
	int n;

	(void)state;
	for (size_t i = 0; ck_words(i); i++)
		for (const char *p = ck_words(i); *p; p += n + (p[n] == ' ')) {
			assert_int_equal(sscanf(p, "%63[a-z0-9]%n", word, &n), 1);
			assert_true(!p[n] || (p[n] == ' ' && p[n + 1]));
			if (strcmp(before, word) >= 0)
				fail_msg("'%s' stands before '%s'", before, word);
			strcpy(before, word);
			assert_true(ck_word_listed((const unsigned char *)word, strlen(word)));
		}
	assert_true(ck_word_listed((const unsigned char *)"Zone", 4));
	for (size_t i = 0; i < 4; i++)
		assert_false(ck_word_listed((const unsigned char *)"zzzz", i));
	assert_false(ck_word_listed((const unsigned char *)"containerdcontainerd", 20));
}

static void words_of_runtimes_stay(void **state)
{
	(void)state;
	expect_env("failed to create shim task: no space left on device", "secret",
		   "failed to create shim task: no space left on device");
	expect("/runtime.v1.RuntimeService/RunPodSandbox: OOMKilled, couldn't mount", CK_SANDBOX,
	       NULL, "/runtime.v1.RuntimeService/RunPodSandbox: OOMKilled, couldn't mount");
	expect("", CK_SANDBOX, NULL, "");
}

static void other_words_go(void **state)
{
	(void)state;
	expect("dsn=user:hunter2@db failed", CK_SANDBOX, NULL, "***=user:*** failed");
	expect("CorrectHorseBattery, nEtWoRk, container1, RunXPod", CK_SANDBOX, NULL,
	       "***, ***, ***, ***");
}

static void hidden_words_join(void **state)
{
	(void)state;
	expect("x7q y8r-z9s/a1b2", CK_SANDBOX, NULL, "***");
	expect("x7q: y8r, \"z9s\"", CK_SANDBOX, NULL, "***: ***, \"***\"");
	expect("/var/x7q/log", CK_SANDBOX, NULL, "/var/***/log");
}

static void numbers_stay(void **state)
{
	(void)state;
	expect("exit 137, 128MiB, v2, 1m59.999938771s, 4194304", CK_SANDBOX, NULL,
	       "exit 137, 128MiB, v2, 1m59.999938771s, 4194304");
	expect("4111x, 123456789012345678901", CK_SANDBOX, NULL, "***, ***");
	/* three digits of a value tell nothing, with their unit; found by fuzz-redact */
	expect_env("(882K]]#, 7772GIb----", "~(882K]]#!, 2GIb-----", "(882K]]#, 7772GIb----");
}

static void ids_stay(void **state)
{
	(void)state;
	expect("sandbox " ID " in cni-" UUID, CK_SANDBOX, NULL, "sandbox " ID " in cni-" UUID);
	expect("0123456789abcdef0123456789abcdef", CK_SANDBOX, NULL, "***");
	expect("g" ID, CK_SANDBOX, NULL, "***");
	/* "S3cr3tEnvValue0123456789abcdefgh" in hexadecimal is as long as an id */
	expect("5333637233744 536e7656", CK_SANDBOX, NULL, "5333637233744 ***");
	expect("533363723374456e7656616c75653031323334353637383961626364656667680a", CK_SANDBOX,
	       NULL, "***");
	expect("533363723374456e7656616c7565303132333435363738396162636465666768", CK_SANDBOX, NULL,
	       "***");
}

static void own_names_stay(void **state)
{
	struct pb config = { .len = 0 }, image = { .len = 0 };
	const char *const names[] = { "c1d2 x7q", NULL };
	struct ck_known known = { .names = names, .n = 2 };
	char out[CK_TEXT_MAX + 1];

	(void)state;
	pb_text(&image, 1, "quay.io/shop/x7q@sha256:1");
	pb_message(&config, 2, &image);
	pb_pair(&config, 6, "POD", "web.shop");
	pb_text(&config, 4, "app");
	expect_config("app_web_shop_uid-1_0 (sandbox-1) of quay.io/shop/x7q@sha256:1, webshop",
		      &config,
		      "app_web_shop_uid-1_0 (sandbox-1) of quay.io/shop/x7q@sha256:1, ***");
	ck_redact("x7q of c1d2, c1d2e3", &known, out);
	assert_string_equal(out, "x7q of c1d2, ***");
}

static void name_of_the_plugin_that_refuses_stays(void **state)
{
	(void)state;
	expect_env("plugin 10-x7q.y8r_z: z9s, plugin 10-x7q", "y8s",
		   "plugin 10-x7q.y8r_z: ***, plugin 10-***");
	expect_env("plugin 10-x7q", "10 x7q", "plugin ***");
	expect_env("plugin 10-hunter2: no", "hunter", "plugin 10-***: no");
	expect_env("plugin 10-68756e74x: no", "xhunter", "plugin 10-***: no");
	/* found by fuzz-redact: "hunter" in base64 is like any name */
	expect_env("plugin 10-aHVudGVy: aHVudGVy", "hunter", "plugin 10-aHVudGVy: ***");
	expect_env("plugin 10 x7q", "", "plugin 10 ***");
	expect_env("failed 10-x7q: no", "", "failed 10-***: no"); /* who fails is no plugin */
	expect_env("plugin 10-" ID ID " no", "", "plugin 10-*** no");
}

static void directories_of_runtimes_stay(void **state)
{
	struct pb config = { .len = 0 };

	(void)state;
	pb_mount(&config, "/var/lib/containerd/x7q", "/var/lib/mysql/data");
	expect_config("open /var/lib/containerd/x7q/data: /var/lib/mysql", &config,
		      "open /var/lib/containerd/***/data: /var/lib/***");
}

static void control_characters_and_others_go(void **state)
{
	(void)state;
	expect("open\x1b[2Jfile\nread\x7f", CK_SANDBOX, NULL, "open*** read***");
	expect("gr\xc3\xbc\xc3\x9f \xe2\x82\xac file", CK_SANDBOX, NULL, "*** file");
	expect("a ((((((((( b", CK_SANDBOX, NULL, "a ((((***");
}

/* ---- what a request has ---------------------------------------------------------------------- */

static void quoted_value_goes(void **state)
{
	(void)state;
	expect_env("invalid value \"top\\\"secret7\\n\"", "top\"secret7\n",
		   "invalid value \"***\"");
	expect_env("invalid value \\\"top\\\\\\\"secret7\\\\n\\\"", "top\"secret7\n",
		   "invalid value \"***\"");
	/* words of the list, all of them */
	expect_env("invalid value \"network\\\"device\\nfile\"", "network\"device\nfile",
		   "invalid value \"***\"");
	expect_env("invalid value \"network\\u00e9device\\x01file\"",
		   "network\xc3\xa9"
		   "device\1file",
		   "invalid value \"***\"");
	expect_env("invalid value 'network&quot;device&quot;file'", "network\"device\"file",
		   "invalid value '***'");
	expect_env("invalid value network%22device%0afile", "network\"device\nfile",
		   "invalid value ***");
}

static void tail_of_an_argument_goes(void **state)
{
	struct pb config = { .len = 0 };

	(void)state;
	pb_text(&config, 4, "--password=hunter2-pw");
	pb_text(&config, 4, "--token=permission");
	expect_config("invalid value \"hunter2-pw\"", &config, "invalid value \"***\"");
	expect_config("invalid value \"permission\"", &config, "invalid value \"***\"");
	expect_config("invalid value \"ter2-pw\"", &config, "invalid value \"***\"");
}

static void neighbours_go(void **state)
{
	(void)state;
	expect_env("no space left on device", "space-left ON", "no *** device");
	expect_env("no Space Left on device", "many words, space left", "no *** on device");
	expect_env("no space on device left", "space left", "no space on device left");
	/* cut at either end */
	expect_env("no vice network", "device networking", "no ***");
	expect_env("network", "network device", "network");
}

static void a_word_alone_goes_if_it_is_long(void **state)
{
	(void)state;
	expect_env("the device is default", "device", "the device is default");
	expect_env("is not permitted: Permission denied", "permission",
		   "is not permitted: *** denied");
	expect_env("permission denied", "permission to write", "permission denied");
}

static void numbers_and_ids_of_values_go(void **state)
{
	(void)state;
	expect_env("code 483920, 4839, 48, 48392s, 10.96.0.1", "PIN 483920 at 10.96.0.1",
		   "code ***, ***, 48, ***, ***");
	expect_env("cni-" UUID ", " ID ", " ID, UUID "x" ID, "cni-***, ***, ***");
	expect_env("code 9483920", "483920", "code ***");
	expect_env("bad PluginNetworkReady", "MyNetworkReadyEvent", "bad ***");
	expect_env("bad NetworkReady", "network ready", "bad ***");
	expect_env("bad NetworkReady", "Network", "bad NetworkReady");
	expect_env("31323334353637 1323334353637 333435363738", "12345678", "***");
}

/* found by fuzz-redact: pieces of a value in hexadecimal, cut within a byte, and within an id */
static void eight_hexadecimal_digits_go(void **state)
{
	(void)state;
	expect_env("code 8888m51345152", "Q4QR", "code ***");
	expect_env("code 513451, 0x513451", "Q4Q", "code 513451, ***");
	expect_env("code 13 23 33 43", "0123456", "code ***");
	expect_env("id d332e3134871902316d9841aab4ccec38d79d89a0da0c41aebb8f010b8e9a5b5", "v3.14",
		   "id ***");
	expect_env("id d332e3174871902316d9841aab4ccec38d79d89a0da0c41aebb8f010b8e9a5b5", "v3.1",
		   "id d332e3174871902316d9841aab4ccec38d79d89a0da0c41aebb8f010b8e9a5b5");
}

static void digits_in_groups_go(void **state)
{
	(void)state;
	expect_env("size 1,234,567 is", "1234567", "size *** is");
	expect_env("size 34,567,89", "1,234,567,890", "size ***"); /* cut at either end */
	expect_env("cpus 0,1,234,567", "1: 34", "cpus 0,1,234,567");
}

static size_t encode(const char *text, int how, char *out)
{
	static const char *const digits[] = {
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_",
	};
	size_t n = 0, len = strlen(text);

	for (size_t i = 0; how < 2 && i + 2 < len; i += 3)
		for (int k = 18; k >= 0; k -= 6)
			out[n++] = digits[how][((unsigned)(unsigned char)text[i] << 16 |
						(unsigned)(unsigned char)text[i + 1] << 8 |
						(unsigned char)text[i + 2]) >>
						       k &
					       63];
	for (size_t i = 0; how >= 2 && i < len; i++)
		n += (size_t)sprintf(out + n,
				     how == 2   ? "%02x"
				     : how == 3 ? "%02X"
						: "%%%02x",
				     (unsigned char)text[i]);
	out[n] = '\0';
	return n;
}

/* no six bytes of @text in a row */
static void expect_no_piece(const char *text, const char *value)
{
	struct pb config = { .len = 0 }, request;
	char out[CK_TEXT_MAX + 1];

	pb_pair(&config, 6, "A", value);
	build_container(&request, &config, NULL);
	struct ck_known known = { CK_CONTAINER, request.bytes, request.len, NULL, 0 };
	ck_redact(text, &known, out);
	for (const char *p = out; strlen(p) >= 6; p++)
		if (memmem(text, strlen(text), p, 6))
			fail_msg("'%s' of '%s' shows '%s'", text, value, out);
}

static void encoded_values_go(void **state)
{
	static const char *const values[] = {
		TEXT,
		"network device file",
		"no such file or directory",
		"S3cr3tEnvValue0123456789abcdefgh",
		"0123456789 0123456789",
	};
	char encoded[512], text[1024];

	(void)state;
	for (size_t v = 0; v < CK_COUNT(values); v++)
		for (int how = 0; how < 5; how++) {
			size_t len = encode(values[v], how, encoded);
			for (size_t from = 0; from < len && len - from > 8; from++) {
				snprintf(text, sizeof(text), "\"%s\"", encoded + from);
				expect_no_piece(text, values[v]);
			}
		}
}

static void values_that_numbers_spell_go(void **state)
{
	(void)state;
	/* Go's %v and "% x" of bytes, an entity of HTML, quoted-printable, a dump */
	expect_env("value [104 117 110 116 101 114 50]", "hunter2", "value [***]");
	expect_env("value 68 75 6e 74 65 72 32", "hunter2", "value ***");
	expect_env("value &#104;&#117;&#110;&#116;", "hunter2", "value ***;");
	expect_env("value =68=75=6E=74=65=72=32", "hunter2", "value =***");
	expect_env("value 6875 6e74 6572 32", "hunter2", "value ***");
	expect_env("value 101 114 50", "hunter2", "value ***"); /* at its end */
	expect_env("dial tcp 10.43.0.1:443", "hunter2", "dial tcp 10.43.0.1:443");
}

static void case_of_an_id_says_nothing(void **state)
{
	(void)state;
	expect_env("failed: 5d2c0c55-b8d4-4a0a-8c6e-3b9f7f1f2a11",
		   "5D2C0C55-B8D4-4A0A-8C6E-3B9F7F1F2A11", "failed: ***");
	expect_env("failed: AABBCCDD-EEFF-4A0A-8C6E-ABCDEFABCDEF",
		   "aabbccdd-eeff-4a0a-8c6e-abcdefabcdef", "failed: ***");
}

static void every_source_of_values_is_redacted(void **state)
{
	struct pb config = { .len = 0 }, sandbox_config = { .len = 0 }, linux = { .len = 0 },
		  request;

	(void)state;
	pb_text(&config, 3, "task one");
	pb_text(&config, 4, "task two");
	pb_text(&config, 5, "task three");
	pb_pair(&config, 6, "PASSWORD", "file one");
	pb_mount(&config, "/file/two", "/file/three");
	pb_pair(&config, 9, "label", "group one");
	pb_pair(&config, 10, "note", "group two");
	build_container(&request, &config, NULL);
	expect("task one, task two, task three, file one, file two, file three, group one, "
	       "group two, group three",
	       CK_CONTAINER, &request, "***, ***, ***, ***, ***, ***, ***, ***, group three");
	pb_pair(&sandbox_config, 6, "label", "mode one");
	pb_pair(&sandbox_config, 7, "note", "mode two");
	pb_pair(&linux, 3, "kernel.x", "mode three");
	pb_message(&sandbox_config, 8, &linux);
	build_container(&request, &config, &sandbox_config);
	expect("mode one, mode two, mode three", CK_CONTAINER, &request, "***, ***, ***");
	build_sandbox(&request, &sandbox_config);
	expect("mode one, mode two, mode three", CK_SANDBOX, &request, "***, ***, ***");
}

static void recorded_values_do_not_pass(void **state)
{
	struct pb request;

	(void)state;
	load_recorded("011-CreateContainer-api-main.bin", &request);
	expect("exec: DB_PASSWORD=s3cr3t is wrong", CK_CONTAINER, &request, "exec: *** is wrong");
}

/* ---- limits ---------------------------------------------------------------------------------- */

static void text_is_cut(void **state)
{
	char text[CK_REDACT_READ + 64], out[CK_TEXT_MAX + 1];

	(void)state;
	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = "to "[i % 3];
	text[sizeof(text) - 1] = '\0';
	ck_redact(text, NULL, out);
	assert_int_equal(strlen(out), CK_TEXT_MAX - 1); /* 85 words and blanks */
	assert_memory_equal(out, text, CK_TEXT_MAX - 1);
	/* a word that goes on where nothing is read is not known */
	for (size_t i = 0; i < sizeof(text) - 1; i++)
		text[i] = 'x';
	memcpy(text + CK_REDACT_READ - 8, " network1", 9);
	ck_redact(text, NULL, out);
	assert_string_equal(out, "***");
}

static void hidden_text_makes_room_and_a_long_one_ends(void **state)
{
	char text[20000], out[CK_TEXT_MAX + 1];

	(void)state;
	for (size_t i = 0; i + 10 < sizeof(text); i += 9)
		memcpy(text + i, "topsecre7", 10);
	ck_redact(text, NULL, out);
	assert_string_equal(out, "***");
	memcpy(text + 300, " end ", 5);
	ck_redact(text, NULL, out);
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

/* ---- real texts ------------------------------------------------------------------------------ */

static void build_shop(struct pb *request)
{
	struct pb config = { .len = 0 }, sandbox_config = { .len = 0 }, image = { .len = 0 };

	request->len = 0;
	pb_text(request, 1, ID);
	build_container_metadata(&config, "app", 0);
	pb_text(&image, 1, "registry.example.com/shop/web:1.4");
	pb_message(&config, 2, &image);
	pb_text(&config, 3, "/usr/local/bin/server");
	pb_text(&config, 4, "--password=hunter2-pw");
	pb_pair(&config, 6, "DB_PASSWORD", "top\"secret7\n");
	pb_pair(&config, 6, "LOG_LEVEL", "error");
	pb_mount(&config, "/etc/shop/db",
		 "/var/lib/kubelet/pods/e7c1a2b4-5d6f-4a8b-9c0d-1e2f3a4b5c6d/volumes/"
		 "kubernetes.io~secret/db");
	pb_mount(&config, "/srv/web", "/srv/web");
	pb_pair(&config, 10, "io.kubernetes.container.restartCount", "0");
	pb_message(request, 2, &config);
	build_sandbox_metadata(&sandbox_config, "web-0", "e7c1a2b4-5d6f-4a8b-9c0d-1e2f3a4b5c6d",
			       "shop", 0);
	pb_message(request, 3, &sandbox_config);
}

static void real_texts_can_be_read(void **state)
{
	static struct pb request;
	const char *golden = getenv("CK_TEST_GOLDEN");
	char line[2048], text[2048] = "", out[CK_TEXT_MAX + 1], made[32768];
	size_t n = 0, texts = 0;
	bool write = golden && !strcmp(golden, "write");
	FILE *f = data_open("runtime-errors.txt");

	(void)state;
	build_shop(&request);
	struct ck_known known = { CK_CONTAINER, request.bytes, request.len, NULL, 0 };
	while (fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		if (!strncmp(line, "< ", 2)) {
			snprintf(text, sizeof(text), "%s", line + 2);
		} else if (line[0] == '>') {
			ck_redact(text, &known, out);
			if (!write)
				assert_string_equal(strlen(line) < 2 ? "" : line + 2, out);
			snprintf(line, sizeof(line), "> %s", out);
			texts++;
		}
		assert_true(n + strlen(line) + 2 < sizeof(made));
		n += (size_t)sprintf(made + n, "%s\n", line);
	}
	fclose(f);
	assert_true(texts >= 30);
	if (write) {
		char path[4096];
		snprintf(path, sizeof(path), "%s/tests/data/runtime-errors.txt",
			 getenv("CK_TEST_SRCDIR"));
		f = fopen(path, "w");
		assert_non_null(f);
		fwrite(made, 1, n, f);
		fclose(f);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_are_sorted),
		cmocka_unit_test(words_of_runtimes_stay),
		cmocka_unit_test(other_words_go),
		cmocka_unit_test(hidden_words_join),
		cmocka_unit_test(numbers_stay),
		cmocka_unit_test(ids_stay),
		cmocka_unit_test(own_names_stay),
		cmocka_unit_test(name_of_the_plugin_that_refuses_stays),
		cmocka_unit_test(directories_of_runtimes_stay),
		cmocka_unit_test(control_characters_and_others_go),
		cmocka_unit_test(quoted_value_goes),
		cmocka_unit_test(tail_of_an_argument_goes),
		cmocka_unit_test(neighbours_go),
		cmocka_unit_test(a_word_alone_goes_if_it_is_long),
		cmocka_unit_test(numbers_and_ids_of_values_go),
		cmocka_unit_test(eight_hexadecimal_digits_go),
		cmocka_unit_test(digits_in_groups_go),
		cmocka_unit_test(encoded_values_go),
		cmocka_unit_test(values_that_numbers_spell_go),
		cmocka_unit_test(case_of_an_id_says_nothing),
		cmocka_unit_test(every_source_of_values_is_redacted),
		cmocka_unit_test(recorded_values_do_not_pass),
		cmocka_unit_test(text_is_cut),
		cmocka_unit_test(hidden_text_makes_room_and_a_long_one_ends),
		cmocka_unit_test(in_doubt_all_is_hidden),
		cmocka_unit_test(real_texts_can_be_read),
	};

	return CK_TEST_MAIN(tests);
}
