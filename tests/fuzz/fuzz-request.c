/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes from the socket, taken for either kind of request. Besides not breaking anything: a request
 * is the same as itself, in every mode and by way of a record, the record's digests are well
 * formed, and a redacted text ends.
 */
#include <stdlib.h>
#include <string.h>

#include "cache/request/digests.h"
#include "cache/request/fingerprint.h"
#include "cache/request/key.h"
#include "cache/request/redact.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "tests/fuzz/fuzz.h"

static void check(int holds)
{
	if (!holds)
		abort();
}

static struct ck_digest_key fixed_key(void)
{
	struct ck_digest_key key = { .bytes = "a key of thirty-two bytes ......" };

	check(ck_digest_key_derive(&key));
	return key;
}

static void check_key(enum ck_kind kind, const uint8_t *data, size_t size)
{
	struct ck_key *key = NULL, *copy = NULL;
	struct ck_error err;
	char text[64];

	if (ck_key_from_request(kind, data, size, &key, &err) < 0)
		return;
	check(strlen(ck_key_print(key, text, sizeof(text))) < sizeof(text));
	check(ck_key_dup(key, &copy) == 0);
	check(ck_key_same(key, copy) && ck_key_same_runtime_name(key, copy));
	ck_key_free(copy);
	ck_key_free(key);
}

static void check_fingerprint(const struct ck_digest_key *digest_key, enum ck_kind kind,
			      const uint8_t *data, size_t size)
{
	struct ck_fingerprint *fp = NULL;
	struct ck_record record;
	struct ck_difference difference;
	struct ck_error err;

	if (ck_fingerprint_make(digest_key, kind, data, size, &fp, &err) < 0)
		return;
	check(ck_record_make(fp, &record, &err) == 0);
	check(ck_digests_check(record.digests, record.digests_len));
	for (int mode = CK_MODE_NORMALIZED; mode <= CK_MODE_STRICT; mode++) {
		struct ck_compare_rules rules = { .mode = (enum ck_mode)mode };
		check(ck_fingerprints_compare(fp, fp, &rules, NULL) == CK_RELATION_SAME);
		check(ck_record_compare(&record, fp, &rules, NULL) == CK_RELATION_SAME);
		record.root[0] ^= 1; /* so that the digests decide: they must agree */
		check(ck_record_compare(&record, fp, &rules, &difference) == CK_RELATION_SAME);
		record.root[0] ^= 1;
	}
	ck_record_fini(&record);
	ck_fingerprint_free(fp);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const enum ck_kind kinds[] = { CK_SANDBOX, CK_CONTAINER };
	struct ck_digest_key key = fixed_key();
	char *text = ck_strndup((const char *)data, size), out[CK_TEXT_MAX + 1];

	check(text != NULL);
	for (size_t i = 0; i < CK_COUNT(kinds); i++) {
		check_key(kinds[i], data, size);
		check_fingerprint(&key, kinds[i], data, size);
		struct ck_known known = { kinds[i], data, size, NULL, 0 };
		ck_redact(text, &known, out);
		check(strlen(out) <= CK_TEXT_MAX);
	}
	ck_redact(text, NULL, out);
	check(strlen(out) <= CK_TEXT_MAX);
	free(text);
	return 0;
}
