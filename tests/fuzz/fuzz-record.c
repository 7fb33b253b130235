/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A block of digests from a database that somebody else has written. It is refused, or comparing
 * with it is safe; and no block is taken for a request that it does not describe.
 */
#include <stdlib.h>
#include <string.h>

#include "cache/request/digests.h"
#include "cache/request/fingerprint.h"
#include "src/base/mem.h"
#include "tests/fuzz/fuzz.h"

static void check(int holds)
{
	if (!holds)
		abort();
}

/* config.metadata.name = "x", and a pod_sandbox_id or runtime_handler "y" */
static const unsigned char request[] = { 0x12, 0x05, 0x0a, 0x03, 0x0a, 0x01, 'x', 0x0a, 0x01, 'y' };
static const unsigned char sandbox_request[] = { 0x0a, 0x05, 0x0a, 0x03, 0x0a,
						 0x01, 'x',  0x12, 0x01, 'y' };

static void compare_with(enum ck_kind kind, const void *bytes, size_t len, struct ck_record *record)
{
	struct ck_digest_key key = { .bytes = "a key of thirty-two bytes ......" };
	struct ck_fingerprint *fp = NULL;
	struct ck_record own;

	check(ck_digest_key_derive(&key));
	check(ck_fingerprint_make(&key, kind, bytes, len, &fp, NULL) == 0);
	check(ck_record_make(fp, &own, NULL) == 0);
	memcpy(record->key_id, own.key_id, sizeof(own.key_id));
	/* fresh: no block can hold digests that fit */
	memcpy(record->salt, own.salt, sizeof(own.salt));
	for (int mode = CK_MODE_NORMALIZED; mode <= CK_MODE_STRICT; mode++) {
		struct ck_compare_rules rules = { .mode = (enum ck_mode)mode };
		struct ck_difference difference;
		if (mode == CK_MODE_IDENTITY)
			continue;
		enum ck_relation relation = ck_record_compare(record, fp, &rules, &difference);
		check(relation == CK_RELATION_DIFFERENT || relation == CK_RELATION_NOT_COMPARABLE);
		check(relation != CK_RELATION_DIFFERENT ||
		      (difference.count && strlen(difference.text) < sizeof(difference.text)));
	}
	ck_record_fini(&own);
	ck_fingerprint_free(fp);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ck_record record = { .form = CK_FORM_VERSION,
				    .digests = ck_memdup(data, size),
				    .digests_len = size };

	check(record.digests != NULL);
	ck_digests_check(data, size);
	/* whether it was checked or not */
	compare_with(CK_CONTAINER, request, sizeof(request), &record);
	compare_with(CK_SANDBOX, sandbox_request, sizeof(sandbox_request), &record);
	ck_record_fini(&record);
	return 0;
}
