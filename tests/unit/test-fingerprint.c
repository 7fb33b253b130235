/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/harness.h"

#include "cache/request/fingerprint.h"
#include "cache/request/digests.h"
#include "cache/request/normalize.h"
#include "src/base/fault.h"
#include "src/base/mem.h"
#include "tests/unit/cri-build.h"

CK_AUTO_DEFINE(ck_fingerprint)

static struct ck_digest_key test_key;
static const struct ck_compare_rules normalized = { .mode = CK_MODE_NORMALIZED };
static const struct ck_compare_rules strict = { .mode = CK_MODE_STRICT };
static const struct ck_compare_rules identity = { .mode = CK_MODE_IDENTITY };

static int setup_key(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(test_key.bytes); i++)
		test_key.bytes[i] = (unsigned char)(3 * i + 1);
	return ck_digest_key_derive(&test_key) ? 0 : -1;
}

static struct ck_fingerprint *fingerprint_of(enum ck_kind kind, const struct pb *request)
{
	struct ck_fingerprint *fp = NULL;
	/* no longer than its content, so that a sanitizer sees a byte that is read too far */
	CK_AUTO_FREE void *bytes = ck_memdup(request->bytes, request->len);

	assert_int_equal(ck_fingerprint_make(&test_key, kind, bytes, request->len, &fp, NULL), 0);
	assert_int_equal(ck_fingerprint_digest(fp, NULL), 0); /* from now on without @bytes */
	return fp;
}

/* all ways to compare two fingerprints must give the same result */
static enum ck_relation compare_fingerprints(const struct ck_fingerprint *a,
					     const struct ck_fingerprint *b,
					     const struct ck_compare_rules *rules,
					     struct ck_difference *difference)
{
	struct ck_difference from_record = { "", 0 }, ignored;
	struct ck_record record;

	*difference = (struct ck_difference){ "", 0 };
	enum ck_relation relation = ck_fingerprints_compare(a, b, rules, difference);
	assert_int_equal(ck_fingerprints_compare(b, a, rules, &ignored), relation);
	assert_int_equal(ck_fingerprints_compare(a, b, rules, NULL), relation);
	assert_int_equal(ck_record_make(a, &record, NULL), 0);
	assert_true(ck_digests_check(record.digests, record.digests_len));
	assert_int_equal(ck_record_compare(&record, b, rules, &from_record), relation);
	assert_string_equal(from_record.text, difference->text);
	assert_int_equal(from_record.count, difference->count);

	unsigned char *digests = record.digests; /* as if they came from the database */
	record.digests = NULL;
	enum ck_relation without = ck_record_compare(&record, b, rules, &from_record);
	assert_true(without == relation || without == CK_RELATION_NEEDS_DIGESTS);
	record.digests = ck_memdup(digests, record.digests_len);
	assert_int_equal(ck_record_compare(&record, b, rules, NULL), relation);
	free(digests);
	ck_record_fini(&record);
	return relation;
}

static enum ck_relation compare(enum ck_kind kind, const struct pb *a, const struct pb *b,
				const struct ck_compare_rules *rules,
				struct ck_difference *difference)
{
	CK_AUTO(ck_fingerprint) *fp_a = fingerprint_of(kind, a);
	CK_AUTO(ck_fingerprint) *fp_b = fingerprint_of(kind, b);

	return compare_fingerprints(fp_a, fp_b, rules, difference);
}

static void expect_same(enum ck_kind kind, const struct pb *a, const struct pb *b,
			const struct ck_compare_rules *rules)
{
	struct ck_difference difference;

	assert_int_equal(compare(kind, a, b, rules, &difference), CK_RELATION_SAME);
	assert_int_equal(difference.count, 0);
}

static void expect(enum ck_kind kind, const struct pb *a, const struct pb *b,
		   const struct ck_compare_rules *rules, enum ck_relation relation,
		   const char *text)
{
	struct ck_difference difference;

	assert_int_equal(compare(kind, a, b, rules, &difference), relation);
	assert_string_equal(difference.text, text);
}

/* two containers that differ in these fields of config */
static void expect_configs(const struct pb *a, const struct pb *b,
			   const struct ck_compare_rules *rules, enum ck_relation relation,
			   const char *text)
{
	struct pb request_a, request_b;

	build_container(&request_a, a, NULL);
	build_container(&request_b, b, NULL);
	expect(CK_CONTAINER, &request_a, &request_b, rules, relation, text);
}

static void expect_same_configs(const struct pb *a, const struct pb *b)
{
	expect_configs(a, b, &normalized, CK_RELATION_SAME, "");
}

static void expect_sandbox_configs(const struct pb *a, const struct pb *b,
				   const struct ck_compare_rules *rules, enum ck_relation relation,
				   const char *in_sandbox, const char *in_container)
{
	struct pb request_a, request_b;

	build_sandbox(&request_a, a);
	build_sandbox(&request_b, b);
	expect(CK_SANDBOX, &request_a, &request_b, rules, in_sandbox ? relation : CK_RELATION_SAME,
	       in_sandbox ? in_sandbox : "");
	build_container(&request_a, NULL, a);
	build_container(&request_b, NULL, b);
	expect(CK_CONTAINER, &request_a, &request_b, rules,
	       in_container ? relation : CK_RELATION_SAME, in_container ? in_container : "");
}

/* ---- recorded -------------------------------------------------------------------------------- */

struct row {
	char file[64], rpc[32], pod[32], container[32], vs[16], bytes[16], deep[16];
	unsigned attempt;
};

static size_t load_index(struct row *rows, size_t max)
{
	FILE *f = data_open("kubelet-retries/index.tsv");
	char line[512];
	size_t n = 0;

	assert_non_null(fgets(line, sizeof(line), f)); /* the column names */
	while (n < max && fgets(line, sizeof(line), f)) {
		struct row *row = &rows[n];
		if (sscanf(line, "%63s %31s %31s %31s %u %*s %*s %15s %15s %15s", row->file,
			   row->rpc, row->pod, row->container, &row->attempt, row->vs, row->bytes,
			   row->deep) == 8)
			n++;
	}
	fclose(f);
	return n;
}

static const struct row *previous_of_same_key(const struct row *rows, size_t i)
{
	const struct row *row = &rows[i];

	while (i-- > 0)
		if (!strcmp(rows[i].rpc, row->rpc) && !strcmp(rows[i].pod, row->pod) &&
		    !strcmp(rows[i].container, row->container) && rows[i].attempt == row->attempt)
			return &rows[i];
	return NULL;
}

static enum ck_kind kind_of(const struct row *row)
{
	return strcmp(row->rpc, "RunPodSandbox") ? CK_CONTAINER : CK_SANDBOX;
}

static void recorded_retries_are_told_as_the_index_says(void **state)
{
	struct row rows[64];
	size_t n = load_index(rows, CK_COUNT(rows)), same = 0, changed = 0, first = 0;

	(void)state;
	for (size_t i = 0; i < n; i++) {
		const struct row *before = previous_of_same_key(rows, i);
		struct ck_difference difference;
		struct pb a, b;
		if (!strcmp(rows[i].vs, "first")) {
			assert_null(before);
			first++;
			continue;
		}
		assert_non_null(before);
		load_recorded(before->file, &a);
		load_recorded(rows[i].file, &b);
		enum ck_relation relation =
			compare(kind_of(&rows[i]), &a, &b, &normalized, &difference);
		if (!strcmp(rows[i].vs, "same")) {
			assert_int_equal(relation, CK_RELATION_SAME);
			same++;
		} else {
			assert_int_equal(relation, CK_RELATION_DIFFERENT);
			assert_string_equal(difference.text, "config.mounts[/etc/hosts]");
			changed++;
		}
		expect_same(kind_of(&rows[i]), &a, &b, &identity);
	}
	assert_int_equal(n, 24);
	assert_int_equal(first, 6);
	assert_int_equal(same, 17);
	assert_int_equal(changed, 1);
}

static void strict_mode_refuses_every_container_retry_and_names_why(void **state)
{
	struct row rows[64];
	size_t n = load_index(rows, CK_COUNT(rows)), containers = 0, deep_equal = 0, restarted = 0;

	(void)state;
	for (size_t i = 0; i < n; i++) {
		const struct row *before = previous_of_same_key(rows, i);
		struct ck_difference difference;
		struct pb a, b;
		if (!before)
			continue;
		load_recorded(before->file, &a);
		load_recorded(rows[i].file, &b);
		enum ck_relation relation =
			compare(kind_of(&rows[i]), &a, &b, &strict, &difference);
		if (kind_of(&rows[i]) == CK_CONTAINER) {
			assert_int_equal(relation, CK_RELATION_DIFFERENT);
			assert_non_null(strstr(difference.text, "config.mounts[/dev/term"));
			assert_non_null(strstr(difference.text, "].host_path"));
			containers++;
		} else if (!strcmp(rows[i].deep, "deep-equal")) {
			assert_int_equal(relation, CK_RELATION_SAME);
			deep_equal++;
		} else { /* the kubelet was restarted */
			assert_int_equal(relation, CK_RELATION_COSMETIC);
			assert_string_equal(difference.text,
					    "config.annotations[kubernetes.io/config.seen]");
			restarted++;
		}
	}
	assert_int_equal(containers, 12);
	assert_int_equal(deep_equal, 4);
	assert_int_equal(restarted, 2);
}

static void unrelated_requests_differ_and_the_list_is_cut(void **state)
{
	struct ck_difference difference;
	struct pb a, b;

	(void)state;
	load_recorded("001-RunPodSandbox-api.bin", &a);
	load_recorded("002-RunPodSandbox-web.bin", &b);
	assert_int_equal(compare(CK_SANDBOX, &a, &b, &normalized, &difference),
			 CK_RELATION_DIFFERENT);
	assert_true(difference.count > CK_DIFF_PATHS_MAX);
	assert_memory_equal(
		difference.text,
		"config.metadata.name, config.metadata.uid, config.metadata.namespace, ", 70);
	assert_non_null(strstr(difference.text, ", and "));
	assert_non_null(strstr(difference.text, " more"));
	expect_same(CK_SANDBOX, &a, &b, &identity);
}

/* ---- order ----------------------------------------------------------------------------------- */

static void shuffled_envs_are_the_same(void **state)
{
	struct pb a = { .len = 0 }, b = { .len = 0 };

	(void)state;
	pb_pair(&a, 6, "A", "1");
	pb_pair(&a, 6, "B", "2");
	pb_pair(&a, 6, "C", "3");
	pb_pair(&b, 6, "C", "3");
	pb_pair(&b, 6, "A", "1");
	pb_pair(&b, 6, "B", "2");
	expect_same_configs(&a, &b);
}

static void order_among_envs_of_one_name_counts(void **state)
{
	struct pb a = { .len = 0 }, b = { .len = 0 }, c = { .len = 0 };

	(void)state;
	pb_pair(&a, 6, "A", "1");
	pb_pair(&a, 6, "A", "2");
	pb_pair(&a, 6, "B", "3");
	pb_pair(&b, 6, "A", "1");
	pb_pair(&b, 6, "B", "3");
	pb_pair(&b, 6, "A", "2");
	pb_pair(&c, 6, "A", "2");
	pb_pair(&c, 6, "A", "1");
	pb_pair(&c, 6, "B", "3");
	expect_same_configs(&a, &b);
	expect_configs(&a, &c, &normalized, CK_RELATION_DIFFERENT, "config.envs[A]");
}

static void doubled_env_or_mount_is_a_difference(void **state)
{
	struct pb a = { .len = 0 }, b = { .len = 0 };

	(void)state;
	pb_pair(&a, 6, "A", "1");
	pb_mount(&a, "/data", "/srv");
	b = a;
	pb_pair(&b, 6, "A", "1");
	expect_configs(&a, &b, &normalized, CK_RELATION_DIFFERENT, "config.envs[A]");
	b = a;
	pb_mount(&b, "/data", "/srv");
	expect_configs(&a, &b, &normalized, CK_RELATION_DIFFERENT, "config.mounts[/data]");
}

static void changed_env_is_named_and_its_value_is_not(void **state)
{
	struct pb a = { .len = 0 }, b = { .len = 0 };
	struct ck_difference difference;
	struct pb request_a, request_b;

	(void)state;
	pb_pair(&a, 6, "TOKEN", "first-secret");
	pb_pair(&a, 6, "GONE", "third-secret");
	pb_text(&a, 4, "--password=fourth-secret");
	pb_pair(&b, 6, "TOKEN", "second-secret");
	build_container(&request_a, &a, NULL);
	build_container(&request_b, &b, NULL);
	assert_int_equal(compare(CK_CONTAINER, &request_a, &request_b, &normalized, &difference),
			 CK_RELATION_DIFFERENT);
	assert_string_equal(difference.text, "config.args, config.envs[GONE], config.envs[TOKEN]");
	assert_int_equal(difference.count, 3);
}

static void no_value_is_in_a_record(void **state)
{
	struct ck_record record;
	struct pb request;

	(void)state;
	load_recorded("011-CreateContainer-api-main.bin", &request);
	CK_AUTO(ck_fingerprint) *fp = fingerprint_of(CK_CONTAINER, &request);
	assert_int_equal(ck_record_make(fp, &record, NULL), 0);
	/* names are there, values are not */
	assert_non_null(memmem(record.digests, record.digests_len, "DB_PASSWORD", 11));
	assert_non_null(memmem(request.bytes, request.len, "/var/log/pods/", 14));
	assert_null(memmem(record.digests, record.digests_len, "/var/log/pods/", 14));
	assert_non_null(memmem(request.bytes, request.len, "api-node1", 9));
	assert_null(memmem(record.digests, record.digests_len, "api-node1", 9));
	ck_record_fini(&record);
}

static void order_of_maps_mounts_devices_and_dns_options_does_not_count(void **state)
{
	struct pb a = { .len = 0 }, b = { .len = 0 }, dns = { .len = 0 };

	(void)state;
	pb_pair(&a, 9, "app", "web");
	pb_pair(&a, 9, "tier", "front");
	pb_mount(&a, "/a", "/srv/1");
	pb_mount(&a, "/b", "/srv/2");
	pb_mount(&a, "/b", "/srv/3");
	pb_pair(&a, 8, "/dev/x", "/dev/x0");
	pb_pair(&a, 8, "/dev/y", "/dev/y0");
	pb_text(&dns, 1, "vendor/one");
	pb_message(&a, 17, &dns);
	dns.len = 0;
	pb_text(&dns, 1, "vendor/two");
	pb_message(&a, 17, &dns);

	pb_message(&b, 17, &dns);
	dns.len = 0;
	pb_text(&dns, 1, "vendor/one");
	pb_message(&b, 17, &dns);
	pb_pair(&b, 8, "/dev/y", "/dev/y0");
	pb_pair(&b, 8, "/dev/x", "/dev/x0");
	pb_mount(&b, "/b", "/srv/3");
	pb_mount(&b, "/b", "/srv/2");
	pb_mount(&b, "/a", "/srv/1");
	pb_pair(&b, 9, "tier", "front");
	pb_pair(&b, 9, "app", "web");
	expect_same_configs(&a, &b);

	a.len = b.len = dns.len = 0;
	pb_text(&dns, 3, "ndots:5");
	pb_text(&dns, 3, "edns0");
	pb_message(&a, 4, &dns);
	dns.len = 0;
	pb_text(&dns, 3, "edns0");
	pb_text(&dns, 3, "ndots:5");
	pb_message(&b, 4, &dns);
	expect_sandbox_configs(&a, &b, &strict, CK_RELATION_SAME, NULL, NULL);
}

static void order_of_args_servers_and_groups_counts(void **state)
{
	struct pb a = { .len = 0 }, b = { .len = 0 };

	(void)state;
	pb_text(&a, 4, "x");
	pb_text(&a, 4, "y");
	pb_text(&b, 4, "y");
	pb_text(&b, 4, "x");
	expect_configs(&a, &b, &normalized, CK_RELATION_DIFFERENT, "config.args");
	b.len = 0;
	pb_text(&b, 4, "xy"); /* where one ends and the next begins */
	expect_configs(&a, &b, &normalized, CK_RELATION_DIFFERENT, "config.args");
	b.len = 0;
	pb_text(&b, 4, "x");
	pb_text(&b, 4, "y");
	pb_text(&b, 4, "");
	expect_configs(&a, &b, &normalized, CK_RELATION_DIFFERENT, "config.args");
}

/* ---- encodings ------------------------------------------------------------------------------- */

static void wrap_linux(struct pb *config, uint32_t field, const struct pb *inner)
{
	struct pb linux_config = { .len = 0 };

	pb_message(&linux_config, field, inner);
	pb_message(config, 15, &linux_config);
}

static void packed_and_unpacked_numbers_are_the_same(void **state)
{
	struct pb a = { .len = 0 }, b = { .len = 0 }, packed = { .len = 0 }, context = { .len = 0 };

	(void)state;
	pb_varint(&packed, 1000);
	pb_varint(&packed, UINT64_MAX);
	pb_varint(&packed, 0);
	pb_message(&context, 8, &packed);
	wrap_linux(&a, 2, &context);
	context.len = packed.len = 0;
	pb_number(&context, 8, 1000);
	pb_varint(&packed, UINT64_MAX);
	pb_varint(&packed, 0);
	pb_message(&context, 8, &packed);
	wrap_linux(&b, 2, &context);
	expect_same_configs(&a, &b);
	context.len = 0;
	pb_number(&context, 8, 1000);
	pb_number(&context, 8, UINT64_MAX);
	b.len = 0;
	wrap_linux(&b, 2, &context);
	expect_configs(&a, &b, &normalized, CK_RELATION_DIFFERENT,
		       "config.linux.security_context.supplemental_groups");
}

static void default_is_the_same_as_absence(void **state)
{
	struct pb a = { .len = 0 }, b = { .len = 0 }, mount = { .len = 0 };

	(void)state;
	pb_number(&a, 14, 0);
	pb_text(&a, 5, "");
	pb_number(&a, 14, 1); /* the last one counts ... */
	pb_number(&a, 14, 0); /* ... and it is the default */
	pb_text(&mount, 1, "/a");
	pb_number(&mount, 3, 0);
	pb_message(&a, 7, &mount);
	mount.len = 0;
	pb_text(&mount, 1, "/a");
	pb_message(&b, 7, &mount);
	expect_same_configs(&a, &b);

	a.len = b.len = 0;
	pb_pair(&a, 9, "empty", "");
	mount.len = 0;
	pb_text(&mount, 1, "empty");
	pb_message(&b, 9, &mount);
	expect_same_configs(&a, &b);
	b.len = 0;
	expect_configs(&a, &b, &normalized, CK_RELATION_DIFFERENT, "config.labels[empty]");
}

static void empty_message_is_not_absence(void **state)
{
	struct pb a = { .len = 0 }, b = { .len = 0 }, context = { .len = 0 }, zero = { .len = 0 };

	(void)state;
	/* run_as_user {} means root; without it the image decides */
	pb_message(&context, 5, &zero);
	wrap_linux(&a, 2, &context);
	context.len = 0;
	wrap_linux(&b, 2, &context);
	expect_configs(&a, &b, &normalized, CK_RELATION_DIFFERENT,
		       "config.linux.security_context.run_as_user");
	b.len = 0;
	expect_configs(&a, &b, &normalized, CK_RELATION_DIFFERENT, "config.linux");
}

static void numbers_mean_what_their_type_holds(void **state)
{
	struct pb a = { .len = 0 }, b = { .len = 0 };

	(void)state;
	pb_number(&a, 14, 1);
	pb_number(&b, 14, 2); /* a bool is either true or false */
	pb_number(&a, 18, (uint64_t)-1);
	pb_number(&b, 18, UINT32_MAX); /* int32: -1 in ten bytes or in five */
	expect_same_configs(&a, &b);
	a.len = b.len = 0;
	pb_number(&a, 18, UINT64_C(1) << 32); /* more bits than an int32 has: 0, so absent */
	expect_same_configs(&a, &b);
}

static void messages_in_pieces_merge(void **state)
{
	struct pb a = { .len = 0 }, b = { .len = 0 }, piece = { .len = 0 };

	(void)state;
	pb_number(&piece, 2, 50000);
	pb_number(&piece, 1, 100000);
	wrap_linux(&a, 1, &piece);
	piece.len = 0;
	pb_number(&piece, 1, 5);
	wrap_linux(&b, 1, &piece);
	piece.len = 0;
	pb_number(&piece, 2, 50000);
	wrap_linux(&b, 1, &piece);
	piece.len = 0;
	pb_number(&piece, 1, 100000);
	wrap_linux(&b, 1, &piece);
	expect_same_configs(&a, &b);
	piece.len = 0;
	pb_number(&piece, 2, 60000);
	wrap_linux(&b, 1, &piece);
	expect_configs(&a, &b, &normalized, CK_RELATION_DIFFERENT,
		       "config.linux.resources.cpu_quota");
}

static void last_entry_of_a_map_counts(void **state)
{
	struct pb a = { .len = 0 }, b = { .len = 0 };

	(void)state;
	pb_pair(&a, 9, "app", "old");
	pb_pair(&a, 9, "app", "new");
	pb_pair(&b, 9, "app", "new");
	expect_same_configs(&a, &b);
	b.len = 0;
	pb_pair(&b, 9, "app", "old");
	expect_configs(&a, &b, &normalized, CK_RELATION_DIFFERENT, "config.labels[app]");
}

static void unknown_fields_count_and_are_named(void **state)
{
	struct pb a = { .len = 0 }, b = { .len = 0 }, inner = { .len = 0 };

	(void)state;
	pb_number(&inner, 99, 1);
	pb_message(&a, 15, &inner);
	inner.len = 0;
	pb_message(&b, 15, &inner);
	expect_configs(&a, &b, &normalized, CK_RELATION_DIFFERENT, "config.linux.#99");
	pb_number(&inner, 99, 0); /* its default is not known */
	b.len = 0;
	pb_message(&b, 15, &inner);
	expect_configs(&a, &b, &normalized, CK_RELATION_DIFFERENT, "config.linux.#99");

	a.len = b.len = 0; /* a map of a newer API: any order */
	pb_pair(&a, 70000, "k", "1");
	pb_pair(&a, 70000, "l", "2");
	pb_pair(&b, 70000, "l", "2");
	pb_pair(&b, 70000, "k", "1");
	expect_same_configs(&a, &b);
	pb_pair(&b, 70000, "k", "1");
	expect_configs(&a, &b, &normalized, CK_RELATION_DIFFERENT, "config.#70000");

	for (unsigned number = 127; number <= 128; number++) { /* in one byte, and in four */
		char path[32];
		a.len = b.len = 0;
		pb_number(&a, number, 1);
		pb_number(&b, number, 2);
		snprintf(path, sizeof(path), "config.#%u", number);
		expect_configs(&a, &b, &normalized, CK_RELATION_DIFFERENT, path);
	}
}

static void field_of_another_wire_type_counts_as_unknown(void **state)
{
	struct pb a = { .len = 0 }, b = { .len = 0 };

	(void)state;
	pb_text(&a, 14, "x"); /* tty as bytes: every decoder keeps it, and none uses it */
	expect_configs(&a, &b, &normalized, CK_RELATION_DIFFERENT, "config.tty");
	pb_number(&a, 14, 1);
	pb_number(&b, 14, 1);
	expect_configs(&a, &b, &normalized, CK_RELATION_DIFFERENT, "config.tty");
	a.len = b.len = 0;
	pb_number(&a, 7, 3);
	pb_number(&a, 15, 3);
	expect_configs(&a, &b, &normalized, CK_RELATION_DIFFERENT, "config.mounts, config.linux");
}

static void nul_inside_a_value_counts(void **state)
{
	struct pb a = { .len = 0 }, b = { .len = 0 }, env = { .len = 0 };

	(void)state;
	pb_text(&env, 1, "A");
	pb_bytes(&env, 2, "x\0y", 3);
	pb_message(&a, 6, &env);
	env.len = 0;
	pb_text(&env, 1, "A");
	pb_bytes(&env, 2, "x\0z", 3);
	pb_message(&b, 6, &env);
	expect_configs(&a, &b, &normalized, CK_RELATION_DIFFERENT, "config.envs[A]");
	b.len = env.len = 0;
	pb_bytes(&env, 1, "A\0", 2);
	pb_bytes(&env, 2, "x\0y", 3);
	pb_message(&b, 6, &env);
	expect_configs(&a, &b, &normalized, CK_RELATION_DIFFERENT,
		       "config.envs[A], config.envs[A\\x00]");
}

static void order_of_fields_does_not_count(void **state)
{
	struct pb a = { .len = 0 }, b = { .len = 0 };

	(void)state;
	pb_text(&a, 5, "/work");
	pb_number(&a, 14, 1);
	pb_text(&a, 3, "sh");
	pb_text(&b, 3, "sh");
	pb_number(&b, 14, 1);
	pb_text(&b, 5, "/work");
	expect_same_configs(&a, &b);
}

/* ---- what is left out ------------------------------------------------------------------------ */

#define TERMINATION "io.kubernetes.container.terminationMessagePath"

static void expect_termination(const char *annotation, const char *target, const char *host_a,
			       const char *host_b, bool same)
{
	struct pb a = { .len = 0 }, b = { .len = 0 };
	char text[128];

	pb_mount(&a, target, host_a);
	pb_mount(&b, target, host_b);
	if (annotation) {
		/* it comes after the mounts, as on the wire */
		pb_pair(&a, 10, TERMINATION, annotation);
		pb_pair(&b, 10, TERMINATION, annotation);
	}
	snprintf(text, sizeof(text), "config.mounts[%s]", target);
	expect_configs(&a, &b, &normalized, same ? CK_RELATION_SAME : CK_RELATION_DIFFERENT,
		       same ? "" : text);
	if (same) {
		snprintf(text, sizeof(text), "config.mounts[%s].host_path", target);
		expect_configs(&a, &b, &strict, CK_RELATION_DIFFERENT, text);
	}
}

static void random_name_of_the_termination_log_does_not_count(void **state)
{
	(void)state;
	expect_termination("/dev/termination-log", "/dev/termination-log", "/pods/c/0123abcd",
			   "/pods/c/fedc9876", true);
	expect_termination("log", "/log", "/pods/c/0123abcd", "/pods/c/fedc9876", true);
	expect_termination("/log", "/log", "0123abcd", "fedc9876", true);
}

static void nothing_else_of_the_termination_log_is_left_out(void **state)
{
	(void)state;
	expect_termination(NULL, "/log", "/c/0123abcd", "/c/fedc9876", false);
	expect_termination("/other", "/log", "/c/0123abcd", "/c/fedc9876", false);
	expect_termination("", "/log", "/c/0123abcd", "/c/fedc9876", false);
	/* only the annotation may be relative */
	expect_termination("/log", "log", "/c/0123abcd", "/c/fedc9876", false);
	/* a different directory counts */
	expect_termination("/log", "/log", "/c/0123abcd", "/d/fedc9876", false);
	expect_termination("/log", "/log", "/c/0123abcD", "/c/0123abcE", false);   /* upper case */
	expect_termination("/log", "/log", "/c/0123abc", "/c/0123abd", false);     /* seven */
	expect_termination("/log", "/log", "/c/0123abcde", "/c/0123abcdf", false); /* nine */
	expect_termination("/log", "/log", "/c/0123abcg", "/c/0123abch", false);
	/* a path that was cut differs from a short path */
	expect_termination("/log", "/log", "/c/", "/c/fedc9876", false);
	expect_termination("/log", "/log", "/c/0123abcd", "/c/log", false);
}

static void last_termination_path_counts_wherever_it_stands(void **state)
{
	struct pb mount_a = { .len = 0 }, mount_b = { .len = 0 }, log = { .len = 0 },
		  other = { .len = 0 }, newer = { .len = 0 };
	struct pb entry = { .len = 0 };

	(void)state;
	pb_mount(&mount_a, "/log", "/c/0123abcd");
	pb_mount(&mount_b, "/log", "/c/fedc9876");
	pb_pair(&log, 10, TERMINATION, "/log");
	pb_pair(&other, 10, TERMINATION, "/other");
	pb_text(&entry, 1, TERMINATION); /* an entry with a field that we do not know */
	pb_text(&entry, 2, "/log");
	pb_number(&entry, 3, 1);
	pb_message(&newer, 10, &entry);
	const struct {
		const struct pb *before, *behind;
		enum ck_relation relation;
	} cases[] = {
		{ &log, NULL, CK_RELATION_SAME },        { &other, &log, CK_RELATION_SAME },
		{ &log, &other, CK_RELATION_DIFFERENT }, { &log, &newer, CK_RELATION_DIFFERENT },
		{ &newer, &log, CK_RELATION_SAME },
	};
	for (size_t i = 0; i < CK_COUNT(cases); i++) {
		struct pb a, b;
		build_container(&a, cases[i].before, NULL);
		b = a;
		pb_message(&a, 2, &mount_a); /* config in pieces */
		pb_message(&b, 2, &mount_b);
		if (cases[i].behind) {
			pb_message(&a, 2, cases[i].behind);
			pb_message(&b, 2, cases[i].behind);
		}
		expect(CK_CONTAINER, &a, &b, &normalized, cases[i].relation,
		       cases[i].relation == CK_RELATION_SAME ? "" : "config.mounts[/log]");
	}
}

static void termination_log_of_another_mode_or_absent_differs(void **state)
{
	struct pb a = { .len = 0 }, b = { .len = 0 }, mount = { .len = 0 };

	(void)state;
	pb_pair(&a, 10, TERMINATION, "/log");
	b = a;
	pb_mount(&a, "/log", "/c/0123abcd");
	expect_configs(&a, &b, &normalized, CK_RELATION_DIFFERENT, "config.mounts[/log]");
	pb_text(&mount, 1, "/log");
	pb_text(&mount, 2, "/c/0123abcd");
	pb_number(&mount, 3, 1);
	pb_message(&b, 7, &mount);
	expect_configs(&a, &b, &normalized, CK_RELATION_DIFFERENT, "config.mounts[/log]");
	expect_configs(&a, &b, &strict, CK_RELATION_DIFFERENT, "config.mounts[/log]");
}

static void config_seen_does_not_count(void **state)
{
	struct pb a = { .len = 0 }, b = { .len = 0 };

	(void)state;
	pb_pair(&a, 7, "kubernetes.io/config.seen", "2024-01-01T00:00:00.000000001Z");
	pb_pair(&b, 7, "kubernetes.io/config.seen", "2024-01-01T00:00:00.000000002Z");
	expect_sandbox_configs(&a, &b, &normalized, CK_RELATION_SAME, NULL, NULL);
	expect_sandbox_configs(&a, &b, &strict, CK_RELATION_COSMETIC,
			       "config.annotations[kubernetes.io/config.seen]",
			       "sandbox_config.annotations[kubernetes.io/config.seen]");
	b.len = 0;
	expect_sandbox_configs(&a, &b, &normalized, CK_RELATION_SAME, NULL, NULL);

	a.len = 0; /* a container's own annotation with that name does count */
	pb_pair(&a, 10, "kubernetes.io/config.seen", "x");
	expect_configs(&a, &b, &normalized, CK_RELATION_DIFFERENT,
		       "config.annotations[kubernetes.io/config.seen]");
}

static void annotations_of_network_plugins_do_not_count(void **state)
{
	static const char *const written[] = { "cni.projectcalico.org/containerID",
					       "k8s.v1.cni.cncf.io/network-status",
					       "k8s.v1.cni.cncf.io/networks-status",
					       "k8s.ovn.org/pod-networks" };
	struct pb none = { .len = 0 };

	(void)state;
	for (size_t i = 0; i < CK_COUNT(written); i++) {
		struct pb a = { .len = 0 };
		pb_pair(&a, 7, written[i], "new");
		expect_sandbox_configs(&a, &none, &normalized, CK_RELATION_SAME, NULL, NULL);
	}
	struct pb a = { .len = 0 };
	/* only '*' is a wildcard */
	pb_pair(&a, 7, "k8s.v1.cni.cncf.io/network-status-2", "new");
	expect_sandbox_configs(&a, &none, &normalized, CK_RELATION_COSMETIC,
			       "config.annotations[k8s.v1.cni.cncf.io/network-status-2]",
			       "sandbox_config.annotations[k8s.v1.cni.cncf.io/network-status-2]");
	a.len = 0;
	pb_pair(&a, 10, "cni.projectcalico.org/containerID", "x"); /* a container's own */
	expect_configs(&a, &none, &normalized, CK_RELATION_DIFFERENT,
		       "config.annotations[cni.projectcalico.org/containerID]");
}

static void ignored_annotations_are_the_rules_when_comparing(void **state)
{
	static const char *const nothing[] = { NULL };
	static const char *const mine[] = { "exact", "pre*", NULL };
	static const char *const all[] = { "*", NULL };
	struct ck_compare_rules rules = normalized;
	struct pb a = { .len = 0 }, none = { .len = 0 };

	(void)state;
	pb_pair(&a, 7, "cni.projectcalico.org/podIP", "1");
	pb_pair(&a, 7, "exact", "1");
	pb_pair(&a, 7, "prefix", "1");
	rules.ignore_annotations = nothing;
	expect_sandbox_configs(
		&a, &none, &rules, CK_RELATION_COSMETIC,
		"config.annotations[cni.projectcalico.org/podIP], config.annotations[exact], "
		"config.annotations[prefix]",
		"sandbox_config.annotations[cni.projectcalico.org/podIP], "
		"sandbox_config.annotations[exact], "
		"sandbox_config.annotations[prefix]");
	rules.ignore_annotations = mine;
	expect_sandbox_configs(&a, &none, &rules, CK_RELATION_COSMETIC,
			       "config.annotations[cni.projectcalico.org/podIP]",
			       "sandbox_config.annotations[cni.projectcalico.org/podIP]");
	rules.ignore_annotations = all;
	expect_sandbox_configs(&a, &none, &rules, CK_RELATION_SAME, NULL, NULL);
	rules.mode = CK_MODE_STRICT;
	expect_sandbox_configs(
		&none, &a, &rules, CK_RELATION_COSMETIC,
		"config.annotations[cni.projectcalico.org/podIP], config.annotations[exact], "
		"config.annotations[prefix]",
		"sandbox_config.annotations[cni.projectcalico.org/podIP], "
		"sandbox_config.annotations[exact], "
		"sandbox_config.annotations[prefix]");
}

static void what_only_the_sandbox_consumes_does_not_count_for_a_container(void **state)
{
	struct ck_compare_rules all = normalized;
	struct pb a = { .len = 0 }, none = { .len = 0 }, inner = { .len = 0 },
		  linux_config = { .len = 0 };
	struct pb request_a, request_b;

	(void)state;
	pb_text(&inner, 1, "10.0.0.1");
	pb_message(&a, 4, &inner);
	inner.len = 0;
	pb_number(&inner, 2, 80);
	pb_message(&a, 5, &inner);
	pb_pair(&linux_config, 3, "net.core.somaxconn", "1");
	inner.len = 0;
	pb_number(&inner, 2, 50000);
	pb_message(&linux_config, 4, &inner);
	pb_message(&linux_config, 5, &inner);
	pb_message(&a, 8, &linux_config);
	linux_config.len = 0;
	/* that linux is present counts, but this is about something else */
	pb_message(&none, 8, &linux_config);
	expect_sandbox_configs(&a, &none, &normalized, CK_RELATION_DIFFERENT,
			       "config.dns_config, config.port_mappings, "
			       "config.linux.sysctls[net.core.somaxconn], "
			       "config.linux.overhead, config.linux.resources",
			       NULL);
	all.compare_sandbox_config = true;
	build_container(&request_a, NULL, &a);
	build_container(&request_b, NULL, &none);
	expect(CK_CONTAINER, &request_a, &request_b, &all, CK_RELATION_DIFFERENT,
	       "sandbox_config.dns_config, sandbox_config.port_mappings, "
	       "sandbox_config.linux.sysctls[net.core.somaxconn], "
	       "sandbox_config.linux.overhead, sandbox_config.linux.resources");
	a.len = linux_config.len = 0;
	pb_text(&linux_config, 1, "/kubepods");
	pb_message(&a, 8, &linux_config);
	expect_sandbox_configs(&a, &none, &normalized, CK_RELATION_DIFFERENT,
			       "config.linux.cgroup_parent", "sandbox_config.linux.cgroup_parent");
}

static void only_the_pods_labels_and_annotations_are_cosmetic(void **state)
{
	struct pb a = { .len = 0 }, none = { .len = 0 };

	(void)state;
	pb_pair(&a, 6, "team", "x");
	pb_pair(&a, 7, "note", "y");
	expect_sandbox_configs(&a, &none, &normalized, CK_RELATION_COSMETIC,
			       "config.labels[team], config.annotations[note]",
			       "sandbox_config.labels[team], sandbox_config.annotations[note]");
	pb_text(&a, 2, "host");
	expect_sandbox_configs(&a, &none, &normalized, CK_RELATION_DIFFERENT,
			       "config.hostname, config.labels[team], config.annotations[note]",
			       "sandbox_config.hostname, sandbox_config.labels[team], "
			       "sandbox_config.annotations[note]");
	a.len = 0;
	pb_pair(&a, 10, "io.kubernetes.container.hash", "1");
	expect_configs(&a, &none, &normalized, CK_RELATION_DIFFERENT,
		       "config.annotations[io.kubernetes.container.hash]");
	a.len = 0;
	pb_number(&a, 7, 1); /* this is no annotation */
	expect_sandbox_configs(&a, &none, &normalized, CK_RELATION_DIFFERENT, "config.annotations",
			       "sandbox_config.annotations");
}

static void handler_and_sandbox_id_count(void **state)
{
	struct pb a, b;

	(void)state;
	build_sandbox(&a, NULL);
	b = a;
	pb_text(&b, 2, "gvisor");
	expect(CK_SANDBOX, &a, &b, &normalized, CK_RELATION_DIFFERENT, "runtime_handler");
	build_container(&a, NULL, NULL);
	b = a;
	pb_text(&b, 1, "sandbox-2");
	expect(CK_CONTAINER, &a, &b, &normalized, CK_RELATION_DIFFERENT, "pod_sandbox_id");
}

/* ---- images (E5) ----------------------------------------------------------------------------- */

static void image_config(struct pb *config, const char *image, const char *user_image)
{
	struct pb spec = { .len = 0 };

	config->len = 0;
	pb_text(&spec, 1, image);
	pb_text(&spec, 18, user_image);
	pb_message(config, 2, &spec);
}

static void image_mount(struct pb *config, const char *image, const char *user_image, bool readonly)
{
	struct pb spec = { .len = 0 }, mount = { .len = 0 };

	pb_text(&spec, 1, image);
	pb_text(&spec, 18, user_image);
	pb_text(&mount, 1, "/vol");
	pb_number(&mount, 3, readonly);
	pb_message(&mount, 9, &spec);
	pb_message(config, 7, &mount);
}

static void other_image_reference_is_a_question(void **state)
{
	struct pb a, b;

	(void)state;
	image_config(&a, "sha256:1", "");
	image_config(&b, "docker.io/app@sha256:2", "");
	expect_configs(&a, &b, &normalized, CK_RELATION_IMAGE, "config.image.image");
	expect_configs(&a, &b, &strict, CK_RELATION_DIFFERENT, "config.image.image");
	image_config(&a, "sha256:1", "app:1");
	image_config(&b, "docker.io/app@sha256:2", "app:1");
	expect_configs(&a, &b, &normalized, CK_RELATION_SAME, "");
	expect_configs(&a, &b, &strict, CK_RELATION_DIFFERENT, "config.image.image");
	image_config(&b, "docker.io/app@sha256:2", "app:2");
	expect_configs(&a, &b, &normalized, CK_RELATION_DIFFERENT,
		       "config.image.user_specified_image");
	image_config(&b, "docker.io/app@sha256:2", "");
	expect_configs(&a, &b, &normalized, CK_RELATION_DIFFERENT,
		       "config.image.image, config.image.user_specified_image");
	image_config(&b, "", "app:1"); /* an absent reference is not another name of one */
	expect_configs(&a, &b, &normalized, CK_RELATION_DIFFERENT, "config.image.image");
	image_config(&a, "sha256:1", "");
	image_config(&b, "sha256:2", "");
	pb_text(&b, 5, "/work");
	expect_configs(&a, &b, &normalized, CK_RELATION_DIFFERENT,
		       "config.image.image, config.working_dir");
}

static void image_of_a_mount_is_a_question_of_its_own(void **state)
{
	struct pb a = { .len = 0 }, b = { .len = 0 };

	(void)state;
	image_mount(&a, "sha256:1", "", false);
	image_mount(&b, "sha256:2", "", false);
	expect_configs(&a, &b, &normalized, CK_RELATION_IMAGE, "config.mounts[/vol].image.image");
	expect_configs(&a, &b, &strict, CK_RELATION_DIFFERENT, "config.mounts[/vol].image.image");
	b.len = 0;
	image_mount(&b, "sha256:2", "", true);
	expect_configs(&a, &b, &normalized, CK_RELATION_DIFFERENT, "config.mounts[/vol]");
	a.len = b.len = 0;
	image_mount(&a, "sha256:1", "vol:1", false);
	image_mount(&b, "sha256:2", "vol:1", false);
	expect_configs(&a, &b, &normalized, CK_RELATION_SAME, "");
	b.len = 0;
	image_mount(&b, "sha256:2", "vol:2", false);
	expect_configs(&a, &b, &normalized, CK_RELATION_DIFFERENT, "config.mounts[/vol]");
}

static void mounts_of_one_target_cannot_exchange_their_images(void **state)
{
	struct pb a = { .len = 0 }, b = { .len = 0 };

	(void)state;
	image_mount(&a, "sha256:1", "", false);
	image_mount(&a, "sha256:2", "", true);
	image_mount(&b, "sha256:2", "", true);
	image_mount(&b, "sha256:1", "", false);
	expect_configs(&a, &b, &strict, CK_RELATION_SAME, "");
	b.len = 0;
	image_mount(&b, "sha256:1", "", true);
	image_mount(&b, "sha256:2", "", false);
	expect_configs(&a, &b, &strict, CK_RELATION_DIFFERENT, "config.mounts[/vol].image.image");
	expect_configs(&a, &b, &normalized, CK_RELATION_IMAGE, "config.mounts[/vol].image.image");
}

static void resolved_image_ids_answer_the_question(void **state)
{
	struct pb config_a, config_b, sandbox = { .len = 0 }, request;
	struct ck_difference difference;
	struct ck_record record;

	(void)state;
	image_config(&config_a, "sha256:1", "");
	image_config(&config_b, "app@sha256:2", "");
	build_container(&request, &config_a, NULL);
	CK_AUTO(ck_fingerprint) *a = fingerprint_of(CK_CONTAINER, &request);
	build_container(&request, &config_b, NULL);
	CK_AUTO(ck_fingerprint) *b = fingerprint_of(CK_CONTAINER, &request);
	pb_pair(&sandbox, 6, "team", "x");
	build_container(&request, &config_b, &sandbox);
	CK_AUTO(ck_fingerprint) *relabelled = fingerprint_of(CK_CONTAINER, &request);
	assert_string_equal(ck_fingerprint_image(a), "sha256:1");

	assert_int_equal(compare_fingerprints(a, relabelled, &normalized, &difference),
			 CK_RELATION_IMAGE);
	ck_fingerprint_set_image_id(a, "id-1");
	assert_int_equal(compare_fingerprints(a, b, &normalized, &difference), CK_RELATION_IMAGE);
	ck_fingerprint_set_image_id(b, "id-2");
	assert_int_equal(compare_fingerprints(a, b, &normalized, &difference),
			 CK_RELATION_DIFFERENT);
	assert_string_equal(difference.text, "config.image.image");
	ck_fingerprint_set_image_id(b, "id-1");
	assert_int_equal(compare_fingerprints(a, b, &normalized, &difference), CK_RELATION_SAME);
	assert_int_equal(compare_fingerprints(a, b, &strict, &difference), CK_RELATION_DIFFERENT);
	ck_fingerprint_set_image_id(relabelled, "id-1");
	assert_int_equal(compare_fingerprints(a, relabelled, &normalized, &difference),
			 CK_RELATION_COSMETIC);
	assert_string_equal(difference.text, "sandbox_config.labels[team]");

	ck_fingerprint_set_image_id(a, NULL); /* resolved only after the record was made */
	assert_int_equal(ck_record_make(a, &record, NULL), 0);
	assert_int_equal(ck_record_compare(&record, b, &normalized, NULL), CK_RELATION_IMAGE);
	ck_record_set_image_id(&record, a);
	assert_int_equal(ck_record_compare(&record, b, &normalized, NULL), CK_RELATION_IMAGE);
	ck_fingerprint_set_image_id(a, "id-1");
	ck_record_set_image_id(&record, a);
	assert_int_equal(ck_record_compare(&record, b, &normalized, NULL), CK_RELATION_SAME);
	ck_record_fini(&record);
}

static void a_tag_that_moved_is_another_image(void **state)
{
	struct pb config_a, config_b, request;
	struct ck_record record;

	(void)state;
	image_config(&config_a, "sha256:1", "app:latest");
	image_config(&config_b, "sha256:2", "app:latest");
	build_container(&request, &config_a, NULL);
	CK_AUTO(ck_fingerprint) *a = fingerprint_of(CK_CONTAINER, &request);
	build_container(&request, &config_b, NULL);
	CK_AUTO(ck_fingerprint) *b = fingerprint_of(CK_CONTAINER, &request);

	assert_int_equal(ck_record_make(a, &record, NULL), 0);
	/* nobody can tell */
	assert_int_equal(ck_record_compare(&record, b, &normalized, NULL), CK_RELATION_SAME);
	ck_fingerprint_set_image_id(a, "id-1");
	ck_record_set_image_id(&record, a);
	/* it can be resolved: ask */
	assert_int_equal(ck_record_compare(&record, b, &normalized, NULL), CK_RELATION_IMAGE);
	ck_fingerprint_set_image_id(b, NULL);
	/* it was asked for in vain */
	assert_int_equal(ck_record_compare(&record, b, &normalized, NULL), CK_RELATION_SAME);
	ck_fingerprint_set_image_id(b, "id-2");
	assert_int_equal(ck_record_compare(&record, b, &normalized, NULL), CK_RELATION_DIFFERENT);
	ck_fingerprint_set_image_id(b, "id-1");
	assert_int_equal(ck_record_compare(&record, b, &normalized, NULL), CK_RELATION_SAME);
	ck_record_fini(&record);
}

static void image_reference_with_a_nul_is_not_resolved(void **state)
{
	struct pb request, config = { .len = 0 }, spec = { .len = 0 };

	(void)state;
	pb_bytes(&spec, 1, "app\0:1", 6);
	pb_message(&config, 2, &spec);
	build_container(&request, &config, NULL);
	CK_AUTO(ck_fingerprint) *fp = fingerprint_of(CK_CONTAINER, &request);
	assert_string_equal(ck_fingerprint_image(fp), "");
	build_sandbox(&request, NULL);
	CK_AUTO(ck_fingerprint) *sandbox = fingerprint_of(CK_SANDBOX, &request);
	assert_string_equal(ck_fingerprint_image(sandbox), "");
}

/* ---- names ----------------------------------------------------------------------------------- */

/* Rows of an earlier release are compared with requests of this one. Another sum means another
 * form: raise CK_FORM_VERSION. */
static void the_form_of_this_version_stays(void **state)
{
	struct pb request, config = { .len = 0 };
	struct ck_normalized form;
	struct ck_difference difference;
	uint64_t sum = UINT64_C(14695981039346656037); /* FNV-1a */
	static const struct ck_record earlier = { /* of the same request */
		.form = 1,
		.key_id = { 0xb7, 0x38, 0xab, 0xee, 0x37, 0x89, 0x08, 0x88 },
		.salt = { 0x11, 0xdc, 0x10, 0xa2, 0xb6, 0x6a, 0x2c, 0x92, 0x74, 0xd3, 0x17, 0xed,
		  0xba, 0xf5, 0x1b, 0x2a },
		.root = { 0x19, 0xb7, 0x43, 0x20, 0xea, 0xf5, 0x96, 0x9b, 0x12, 0x40, 0x12, 0x5c,
		  0xd2, 0x26, 0x7d, 0xc7, 0x17, 0xd3, 0x35, 0x42, 0x9e, 0xbd, 0xd8, 0xa8,
		  0x13, 0x7a, 0x42, 0x7c, 0x70, 0xc8, 0x3d, 0xa5 },
		.rest = { 0x5d, 0xca, 0x66, 0x61, 0xba, 0x82, 0xec, 0x8c, 0xf6, 0xd3, 0x5b, 0xce,
		  0x42, 0x67, 0x38, 0x40 },
	};

	(void)state;
	image_config(&config, "quay.io/a", "quay.io/b");
	image_mount(&config, "quay.io/c", "quay.io/d", true);
	pb_pair(&config, 6, "LEVEL", "1");
	pb_pair(&config, 9, "app", "web");
	pb_text(&config, 4, "run");
	pb_number(&config, 99, 7);
	build_container(&request, &config, NULL);
	assert_int_equal(ck_normalize(CK_CONTAINER, request.bytes, request.len, &form, NULL), 0);
	for (size_t i = 0; i < form.n; i++)
		for (size_t k = 0; k < form.fields[i].len; k++)
			sum = (sum ^ form.fields[i].bytes[k]) * UINT64_C(1099511628211);
	ck_normalized_fini(&form);
	assert_int_equal(CK_FORM_VERSION, 1);
	assert_int_equal(sum, UINT64_C(0xc6fb5f70a7a6389d));
	CK_AUTO(ck_fingerprint) *fp = fingerprint_of(CK_CONTAINER, &request);
	assert_int_equal(ck_record_compare(&earlier, fp, &strict, &difference), CK_RELATION_SAME);
}

static void names_are_printed_safely(void **state)
{
	struct pb a = { .len = 0 }, none = { .len = 0 };
	char name[400], text[CK_ERROR_TEXT];

	(void)state;
	pb_pair(&a, 6, "A\x1b[2J\\\xc3\xa9", "x");
	expect_configs(&a, &none, &normalized, CK_RELATION_DIFFERENT,
		       "config.envs[A\\x1b[2J\\x5c\\xc3\\xa9]");
	a.len = 0;
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	pb_pair(&a, 6, name, "x");
	pb_pair(&a, 9, name, "x");
	pb_number(&a, 14, 1);
	/* completely, or not at all, and nothing after it */
	snprintf(text, sizeof(text), "config.envs[%.320s...], and 2 more", name);
	expect_configs(&a, &none, &normalized, CK_RELATION_DIFFERENT, text);
	a.len = 0;
	pb_pair(&a, 6, "", "x");
	expect_configs(&a, &none, &normalized, CK_RELATION_DIFFERENT, "config.envs[]");
}

/* ---- records --------------------------------------------------------------------------------- */

/* the digests of a block, one after the other */
static size_t digests_of(const struct ck_record *record, unsigned char *out)
{
	struct ck_digests digests;
	struct ck_field_digest digest;
	size_t len = 0;

	assert_true(ck_digests_begin(&digests, record->digests, record->digests_len));
	for (; ck_digests_next(&digests, &digest) > 0; len += CK_DIGEST_BYTES)
		memcpy(out + len, digest.bytes, CK_DIGEST_BYTES);
	return len;
}

static bool share_eight_bytes(const unsigned char *a, const unsigned char *b, size_t len)
{
	for (size_t i = 0; i + 8 <= len; i++)
		if (memmem(b, len, a + i, 8))
			return true;
	return false;
}

static void two_records_of_one_request_share_nothing(void **state)
{
	unsigned char digests_a[16384], digests_b[16384];
	struct ck_record a, b;
	struct pb request;

	(void)state;
	load_recorded("011-CreateContainer-api-main.bin", &request);
	CK_AUTO(ck_fingerprint) *fp = fingerprint_of(CK_CONTAINER, &request);
	ck_fingerprint_set_image_id(fp, "id-1");
	assert_int_equal(ck_record_make(fp, &a, NULL), 0);
	assert_int_equal(ck_record_make(fp, &b, NULL), 0);
	assert_false(share_eight_bytes(a.salt, b.salt, sizeof(a.salt)));
	assert_false(share_eight_bytes(a.root, b.root, sizeof(a.root)));
	assert_false(share_eight_bytes(a.rest, b.rest, sizeof(a.rest)));
	assert_false(share_eight_bytes(a.image_id, b.image_id, sizeof(a.image_id)));
	size_t len = digests_of(&a, digests_a);
	assert_int_equal(digests_of(&b, digests_b), len);
	assert_true(len > 40 * CK_DIGEST_BYTES);
	assert_false(share_eight_bytes(digests_a, digests_b, len));
	ck_record_fini(&a);
	ck_record_fini(&b);
}

static void record_of_another_key_form_or_kind_is_not_comparable(void **state)
{
	struct ck_digest_key other = test_key;
	struct ck_fingerprint *fp = NULL;
	struct ck_record record;
	struct pb request, sandbox;

	(void)state;
	build_container(&request, NULL, NULL);
	build_sandbox(&sandbox, NULL);
	CK_AUTO(ck_fingerprint) *mine = fingerprint_of(CK_CONTAINER, &request);
	CK_AUTO(ck_fingerprint) *other_kind = fingerprint_of(CK_SANDBOX, &sandbox);
	other.bytes[7] ^= 1;
	assert_true(ck_digest_key_derive(&other));
	assert_int_equal(
		ck_fingerprint_make(&other, CK_CONTAINER, request.bytes, request.len, &fp, NULL),
		0);
	CK_AUTO(ck_fingerprint) *theirs = fp;
	assert_int_equal(ck_record_make(mine, &record, NULL), 0);
	assert_int_equal(ck_record_compare(&record, mine, &normalized, NULL), CK_RELATION_SAME);
	assert_int_equal(ck_record_compare(&record, theirs, &normalized, NULL),
			 CK_RELATION_NOT_COMPARABLE);
	assert_int_equal(ck_record_compare(&record, theirs, &identity, NULL), CK_RELATION_SAME);
	assert_int_equal(ck_fingerprints_compare(mine, theirs, &normalized, NULL),
			 CK_RELATION_NOT_COMPARABLE);
	assert_int_equal(ck_record_compare(&record, other_kind, &normalized, NULL),
			 CK_RELATION_NOT_COMPARABLE);
	assert_int_equal(ck_fingerprints_compare(mine, other_kind, &normalized, NULL),
			 CK_RELATION_NOT_COMPARABLE);
	ck_fingerprint_set_image_id(theirs, "id-1");
	ck_record_set_image_id(&record, theirs);
	assert_int_equal(record.image_id[0] | record.image_id[1] | record.image_id[2], 0);
	record.form++;
	assert_int_equal(ck_record_compare(&record, mine, &normalized, NULL),
			 CK_RELATION_NOT_COMPARABLE);
	ck_record_fini(&record);
}

static void key_of_equal_bytes_is_none(void **state)
{
	struct ck_digest_key key = { .bytes = { 0 } };

	(void)state;
	assert_false(ck_digest_key_derive(&key));
	memset(key.bytes, 0xff, sizeof(key.bytes));
	assert_false(ck_digest_key_derive(&key));
	key.bytes[31] = 0;
	assert_true(ck_digest_key_derive(&key));
	assert_memory_not_equal(key.id, test_key.id, sizeof(key.id));
}

static void damaged_leaves_are_refused_or_differ_safely(void **state)
{
	struct pb request, other;
	struct ck_record record;

	(void)state;
	load_recorded("013-CreateContainer-web-init.bin", &request);
	load_recorded("017-CreateContainer-web-init.bin", &other);
	CK_AUTO(ck_fingerprint) *fp = fingerprint_of(CK_CONTAINER, &request);
	CK_AUTO(ck_fingerprint) *asked = fingerprint_of(CK_CONTAINER, &other);
	assert_int_equal(ck_record_make(fp, &record, NULL), 0);
	size_t len = record.digests_len;
	for (size_t at = 0; at < len; at++) {
		for (unsigned bit = 0; bit < 8; bit++) {
			record.digests[at] ^= (unsigned char)(1u << bit);
			if (ck_digests_check(record.digests, len)) {
				struct ck_difference difference;
				enum ck_relation relation =
					ck_record_compare(&record, asked, &normalized, &difference);
				assert_true(relation == CK_RELATION_DIFFERENT ||
					    relation == CK_RELATION_NOT_COMPARABLE);
			} else {
				/* this must be safe, too */
				ck_record_compare(&record, asked, &normalized, NULL);
			}
			record.digests[at] ^= (unsigned char)(1u << bit);
		}
	}
	for (size_t cut = 0; cut < len; cut++) {
		CK_AUTO_FREE unsigned char *digests = ck_memdup(record.digests, cut);
		struct ck_record shorter = record;
		shorter.digests = digests;
		shorter.digests_len = cut;
		ck_digests_check(digests, cut);
		ck_record_compare(&shorter, asked, &normalized, NULL);
	}
	assert_true(ck_digests_check(record.digests, len));
	assert_false(ck_digests_check(record.digests, len - 1));
	assert_false(ck_digests_check(record.digests, 0));
	ck_record_fini(&record);
}

static void leaves_out_of_order_are_refused(void **state)
{
	/* kind, then two digests without a key: flags, path_len, key_len, tail, path, digest */
	unsigned char block[1 + 2 * (8 + 1 + CK_DIGEST_BYTES)] = { CK_SANDBOX };

	(void)state;
	block[2] = block[1 + 25 + 1] = 1;
	block[9] = 2;
	block[9 + 25] = 1;
	assert_false(ck_digests_check(block, sizeof(block)));
	block[9] = 1;
	block[9 + 25] = 2;
	assert_true(ck_digests_check(block, sizeof(block)));
	block[9 + 25] = 0;
	assert_false(ck_digests_check(block, sizeof(block)));
}

/* ---- limits and faults ----------------------------------------------------------------------- */

static void every_truncation_is_refused_or_whole(void **state)
{
	struct pb request;
	size_t refused = 0;

	(void)state;
	load_recorded("011-CreateContainer-api-main.bin", &request);
	for (size_t len = 0; len < request.len; len++) {
		CK_AUTO_FREE unsigned char *cut = ck_memdup(request.bytes, len);
		struct ck_fingerprint *fp = NULL;
		struct ck_error err = { .code = 0 };
		int r = ck_fingerprint_make(&test_key, CK_CONTAINER, cut, len, &fp, &err);
		assert_true(r == 0 || (r == -CK_EMALFORMED && err.code == CK_EMALFORMED &&
				       strstr(err.text, "byte ")));
		assert_true((r == 0) == (fp != NULL));
		refused += r < 0;
		ck_fingerprint_free(fp);
	}
	assert_true(refused > request.len * 9 / 10);
}

static void malformed_inside_an_element_is_refused(void **state)
{
	struct pb request, config = { .len = 0 }, context = { .len = 0 };
	struct ck_fingerprint *fp = NULL;
	struct ck_error err;

	(void)state;
	pb_bytes(&config, 7, "\x0a\x05x", 3);
	build_container(&request, &config, NULL);
	assert_int_equal(
		ck_fingerprint_make(&test_key, CK_CONTAINER, request.bytes, request.len, &fp, &err),
		-CK_EMALFORMED);
	config.len = 0;
	pb_bytes(&context, 8, "\x80", 1); /* packed groups */
	wrap_linux(&config, 2, &context);
	build_container(&request, &config, NULL);
	assert_int_equal(
		ck_fingerprint_make(&test_key, CK_CONTAINER, request.bytes, request.len, &fp, &err),
		-CK_EMALFORMED);
	config.len = 0;
	pb_bytes(&config, 10, "\x0b", 1);
	build_container(&request, &config, NULL);
	assert_int_equal(
		ck_fingerprint_make(&test_key, CK_CONTAINER, request.bytes, request.len, &fp, &err),
		-CK_EMALFORMED);
	assert_non_null(strstr(err.text, "a wire type that CRI does not use"));
}

static void too_much_is_refused_and_says_so(void **state)
{
	const size_t config_len = 2 * (CK_FIELDS_MAX + 1), head = 4;
	CK_AUTO_FREE unsigned char *bytes = ck_alloc(head + config_len);
	struct ck_fingerprint *fp = NULL;
	struct ck_error err;

	(void)state;
	struct pb pb = { .len = 0 };
	pb_varint(&pb, 2 << 3 | 2);
	pb_varint(&pb, config_len);
	assert_int_equal(pb.len, head);
	memcpy(bytes, pb.bytes, head);
	for (size_t i = 0; i < config_len; i += 2)
		bytes[head + i] = 4 << 3 | 2; /* an empty argument */
	assert_int_equal(
		ck_fingerprint_make(&test_key, CK_CONTAINER, bytes, head + config_len, &fp, &err),
		-CK_ETOOBIG);
	assert_string_equal(err.text, "a request of more than 65536 parts");
	assert_int_equal(
		ck_fingerprint_make(&test_key, CK_CONTAINER, bytes, CK_REQUEST_MAX + 1, &fp, &err),
		-CK_ETOOBIG);
	assert_null(fp);
}

static void large_request_is_taken(void **state)
{
	enum { ENVS = 20000 };
	struct pb env = { .len = 0 };
	CK_AUTO_FREE unsigned char *bytes = ck_alloc(ENVS * 64);
	CK_AUTO_FREE unsigned char *config = ck_alloc(ENVS * 64 + 16);
	struct ck_fingerprint *fp = NULL;
	struct ck_record record;
	size_t len = 0;

	(void)state;
	for (unsigned i = 0; i < ENVS; i++) { /* in an order that is far from being sorted */
		char name[32];
		env.len = 0;
		snprintf(name, sizeof(name), "V%u", (i * 7919) % ENVS);
		pb_pair(&env, 6, name, "value");
		memcpy(bytes + len, env.bytes, env.len);
		len += env.len;
	}
	env.len = 0;
	pb_varint(&env, 2 << 3 | 2);
	pb_varint(&env, len);
	memcpy(config, env.bytes, env.len);
	memcpy(config + env.len, bytes, len);
	assert_int_equal(
		ck_fingerprint_make(&test_key, CK_CONTAINER, config, env.len + len, &fp, NULL), 0);
	CK_AUTO(ck_fingerprint) *made = fp;
	assert_int_equal(ck_record_make(made, &record, NULL), 0);
	assert_true(ck_digests_check(record.digests, record.digests_len));
	ck_record_fini(&record);
}

static void every_allocation_may_fail(void **state)
{
	struct pb request, config = { .len = 0 };
	unsigned failed = 0;

	(void)state;
	for (unsigned i = 0; i < 600; i++) { /* enough that the fields are moved once */
		char name[16];
		snprintf(name, sizeof(name), "E%u", i);
		pb_pair(&config, 6, name, "value");
	}
	build_container(&request, &config, NULL);
	for (unsigned nth = 1;; nth++) {
		struct ck_fingerprint *fp = NULL;
		struct ck_record record = { .digests = NULL };
		struct ck_error err = { .code = 0 };
		ck_fault_arm(CK_FAULT_ALLOC, nth, false);
		int r = ck_fingerprint_make(&test_key, CK_CONTAINER, request.bytes, request.len,
					    &fp, &err);
		if (r == 0)
			r = ck_record_make(fp, &record, &err);
		bool hit = ck_fault_hit();
		ck_fault_arm(0, 0, false);
		ck_fingerprint_free(fp);
		ck_record_fini(&record);
		if (!hit) {
			assert_int_equal(r, 0);
			break;
		}
		assert_int_equal(r, -CK_ENOMEM);
		assert_int_equal(err.code, CK_ENOMEM);
		failed++;
	}
	assert_in_range(failed, 4, 8);
}

static void without_memory_the_digests_are_missing(void **state)
{
	struct pb request[2], config = { .len = 0 };
	struct ck_difference difference;

	(void)state;
	build_container(&request[0], &config, NULL);
	pb_pair(&config, 6, "E", "value");
	build_container(&request[1], &config, NULL);
	for (unsigned nth = 1;; nth++) {
		CK_AUTO(ck_fingerprint) *a = NULL;
		CK_AUTO(ck_fingerprint) *b = NULL;
		assert_int_equal(ck_fingerprint_make(&test_key, CK_CONTAINER, request[0].bytes,
						     request[0].len, &a, NULL),
				 0);
		assert_int_equal(ck_fingerprint_make(&test_key, CK_CONTAINER, request[1].bytes,
						     request[1].len, &b, NULL),
				 0);
		ck_fault_arm(CK_FAULT_ALLOC, nth, false);
		enum ck_relation relation =
			ck_fingerprints_compare(a, b, &normalized, &difference);
		bool hit = ck_fault_hit();
		ck_fault_arm(0, 0, false);
		assert_int_equal(relation,
				 hit ? CK_RELATION_NEEDS_DIGESTS : CK_RELATION_DIFFERENT);
		if (!hit)
			return;
	}
}

/* the root tells; only who differs needs memory for digests, and may come again */
static void a_request_that_comes_again_needs_no_digests(void **state)
{
	static struct pb request, other;
	struct ck_record record;
	struct ck_fingerprint *again = NULL, *changed = NULL;

	(void)state;
	load_recorded("011-CreateContainer-api-main.bin", &request);
	other = request;
	pb_number(&other, 99, 1);
	CK_AUTO(ck_fingerprint) *first = fingerprint_of(CK_CONTAINER, &request);
	assert_int_equal(ck_record_make(first, &record, NULL), 0);
	assert_int_equal(ck_fingerprint_make(&test_key, CK_CONTAINER, request.bytes, request.len,
					     &again, NULL),
			 0);
	assert_int_equal(ck_fingerprint_make(&test_key, CK_CONTAINER, other.bytes, other.len,
					     &changed, NULL),
			 0);
	ck_fault_arm(CK_FAULT_ALLOC, 1, false);
	assert_int_equal(ck_record_compare(&record, again, &normalized, NULL), CK_RELATION_SAME);
	assert_int_equal(ck_fingerprints_compare(first, again, &normalized, NULL),
			 CK_RELATION_SAME);
	assert_false(ck_fault_hit());
	assert_int_equal(ck_record_compare(&record, changed, &normalized, NULL),
			 CK_RELATION_NEEDS_DIGESTS);
	assert_true(ck_fault_hit());
	ck_fault_arm(0, 0, false);
	assert_int_equal(ck_record_compare(&record, changed, &normalized, NULL),
			 CK_RELATION_DIFFERENT);
	ck_fingerprint_free(again);
	ck_fingerprint_free(changed);
	ck_record_fini(&record);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(recorded_retries_are_told_as_the_index_says),
		cmocka_unit_test(strict_mode_refuses_every_container_retry_and_names_why),
		cmocka_unit_test(unrelated_requests_differ_and_the_list_is_cut),
		cmocka_unit_test(shuffled_envs_are_the_same),
		cmocka_unit_test(order_among_envs_of_one_name_counts),
		cmocka_unit_test(doubled_env_or_mount_is_a_difference),
		cmocka_unit_test(changed_env_is_named_and_its_value_is_not),
		cmocka_unit_test(no_value_is_in_a_record),
		cmocka_unit_test(order_of_maps_mounts_devices_and_dns_options_does_not_count),
		cmocka_unit_test(order_of_args_servers_and_groups_counts),
		cmocka_unit_test(packed_and_unpacked_numbers_are_the_same),
		cmocka_unit_test(default_is_the_same_as_absence),
		cmocka_unit_test(empty_message_is_not_absence),
		cmocka_unit_test(numbers_mean_what_their_type_holds),
		cmocka_unit_test(messages_in_pieces_merge),
		cmocka_unit_test(last_entry_of_a_map_counts),
		cmocka_unit_test(unknown_fields_count_and_are_named),
		cmocka_unit_test(field_of_another_wire_type_counts_as_unknown),
		cmocka_unit_test(nul_inside_a_value_counts),
		cmocka_unit_test(order_of_fields_does_not_count),
		cmocka_unit_test(random_name_of_the_termination_log_does_not_count),
		cmocka_unit_test(nothing_else_of_the_termination_log_is_left_out),
		cmocka_unit_test(last_termination_path_counts_wherever_it_stands),
		cmocka_unit_test(termination_log_of_another_mode_or_absent_differs),
		cmocka_unit_test(config_seen_does_not_count),
		cmocka_unit_test(annotations_of_network_plugins_do_not_count),
		cmocka_unit_test(ignored_annotations_are_the_rules_when_comparing),
		cmocka_unit_test(what_only_the_sandbox_consumes_does_not_count_for_a_container),
		cmocka_unit_test(only_the_pods_labels_and_annotations_are_cosmetic),
		cmocka_unit_test(handler_and_sandbox_id_count),
		cmocka_unit_test(other_image_reference_is_a_question),
		cmocka_unit_test(image_of_a_mount_is_a_question_of_its_own),
		cmocka_unit_test(mounts_of_one_target_cannot_exchange_their_images),
		cmocka_unit_test(resolved_image_ids_answer_the_question),
		cmocka_unit_test(a_tag_that_moved_is_another_image),
		cmocka_unit_test(image_reference_with_a_nul_is_not_resolved),
		cmocka_unit_test(the_form_of_this_version_stays),
		cmocka_unit_test(names_are_printed_safely),
		cmocka_unit_test(two_records_of_one_request_share_nothing),
		cmocka_unit_test(record_of_another_key_form_or_kind_is_not_comparable),
		cmocka_unit_test(key_of_equal_bytes_is_none),
		cmocka_unit_test(damaged_leaves_are_refused_or_differ_safely),
		cmocka_unit_test(leaves_out_of_order_are_refused),
		cmocka_unit_test(every_truncation_is_refused_or_whole),
		cmocka_unit_test(malformed_inside_an_element_is_refused),
		cmocka_unit_test(too_much_is_refused_and_says_so),
		cmocka_unit_test(large_request_is_taken),
		cmocka_unit_test(every_allocation_may_fail),
		cmocka_unit_test(without_memory_the_digests_are_missing),
		cmocka_unit_test(a_request_that_comes_again_needs_no_digests),
	};

	return CK_TEST_MAIN(tests, setup_key, NULL);
}
