/* SPDX-License-Identifier: Apache-2.0 */
/* Keys that are alike must not gather in few buckets: a table of uthash would become a list. */
#include <stdio.h>

#include "src/base/hash.h"
#include "tests/unit/harness.h"

#define KEYS    4096u
#define BUCKETS 4096u /* as many: the fullest has 6 to 8 keys if chance decides */

typedef size_t make_fn(unsigned i, char *key);

static size_t number(unsigned i, char *key)
{
	uint64_t row = i + 1;
	memcpy(key, &row, sizeof(row));
	return sizeof(row);
}

static size_t large_number(unsigned i, char *key)
{
	uint64_t row = (uint64_t)(i + 1) << 48;
	memcpy(key, &row, sizeof(row));
	return sizeof(row);
}

static size_t id(unsigned i, char *key)
{
	return (size_t)sprintf(key, "%08x%056u", i * 2654435761u, 0);
}

static size_t last_letters(unsigned i, char *key)
{
	return (size_t)sprintf(key, "%060u%04x", 0, i);
}

static size_t uid(unsigned i, char *key)
{
	return (size_t)sprintf(key, "00000000-0000-4000-8000-%012u", i);
}

static size_t name(unsigned i, char *key)
{
	return (size_t)sprintf(key, "default/web-%u", i);
}

static size_t zeros(unsigned i, char *key) /* of other lengths */
{
	memset(key, 0, i + 1);
	return i + 1;
}

static void keys_that_are_alike_are_spread(void **state)
{
	static make_fn *const make[] = { number, large_number, id, last_letters, uid, name, zeros };
	static char key[KEYS + 1];
	(void)state;
	for (size_t k = 0; k < CK_COUNT(make); k++) {
		static unsigned short bucket[BUCKETS];
		unsigned most = 0;
		memset(bucket, 0, sizeof(bucket));
		for (unsigned i = 0; i < KEYS; i++) {
			unsigned n = ++bucket[ck_hash(key, make[k](i, key)) % BUCKETS];
			most = n > most ? n : most;
		}
		if (most > 10)
			fail_msg("kind %zu: %u of %u keys in one bucket", k, most, KEYS);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_that_are_alike_are_spread),
	};
	return CK_TEST_MAIN(tests);
}
